/* SPDX-License-Identifier: MIT
 *
 * Every operation in every format and element type, in and out, as a matrix that is printed. A cell works,
 * and holds the numbers of the float64 reply in JSON within the roundings of its type; or it is a 406 that
 * names the formats which would do, all of them and no other.
 */
#include "call_run.h"
#include "suites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const formats[] = {"json", "npy", "raw", "safetensors", "csv", "png"};
static const char *const dtypes[] = {"float64", "float32", "float16", "bfloat16"};
/* Unit roundoff of each: half of the distance of 1 and the next number. */
static const double roundoff[] = {0x1p-53, 0x1p-24, 0x1p-11, 0x1p-8};

#define N_FORMATS (int)PE_COUNT(formats)
#define N_DTYPES  (int)PE_COUNT(dtypes)

/* What each format holds, told apart from the program. */
static bool holds(int format, int dtype, int rank, bool matrix) {
    switch (format) {
    case 0: /* json: no 16-bit types */
        return dtype < 2;
    case 1: /* npy: no bfloat16 */
        return dtype < 3;
    case 4: /* csv: rows and columns of numbers */
        return dtype < 2 && rank <= 2;
    case 5: /* png: of one matrix */
        return dtype < 2 && matrix;
    default:
        return true;
    }
}

static const struct {
    const char *name, *request, *body, *tensor;
    int rank;
    bool matrix; /* but for leading axes of length 1 */
} ops[] = {
    {"encode", "GET /v1/encode?type=sinusoidal&d_model=6&positions=0:5", NULL, "vectors", 2, true},
    {"encode batch", "GET /v1/encode?type=random&d_model=3&positions=[[0,1],[4,5]]", NULL, "vectors", 3,
     false},
    {"encode stream", "GET /v1/encode?type=sinusoidal&d_model=64&positions=0:2100", NULL, "vectors", 2, true},
    {"apply", "POST /v1/apply?", "{\"encoding\":\"vaswani\",\"embeddings\":[[1,2.5],[-3,4],[0.125,6]]}",
     "embeddings", 2, true},
    {"attention", "POST /v1/attention?", "{\"q\":[[1,2],[3,4]],\"k\":[[1,0.5],[0,1]],\"mask\":\"causal\"}",
     "weights", 2, true},
    {"attention heads", "POST /v1/attention?",
     "{\"q\":[[[1,2],[3,4]]],\"k\":[[[1,0.5],[0,1]]],\"return\":\"logits\"}", "logits", 3, true},
    {"shift", "GET /v1/shift?type=sinusoidal&d_model=4&distance=3", NULL, "blocks", 3, false},
    {"shift matrix", "GET /v1/shift?type=sinusoidal&d_model=4&distance=3&return=matrix", NULL, "matrix", 2,
     true},
    {"positions", "GET /v1/positions?mask=[[0,1,1],[1,1,0]]&rule=opt", NULL, "positions", 2, true},
    {"positions grid", "GET /v1/positions?grid=3", NULL, "positions", 2, true},
};

static struct call_ground ground;
static struct pe_arena *arena;

static void setup(void) {
    struct pe_error err = {0};
    call_ground_open(&ground);
    ground.config.reply_bytes = 2 << 20; /* little, so that it is soon streamed */
    arena = pe_arena_open((size_t)64 << 20, NULL, &err);
}

static void teardown(void) {
    pe_arena_close(arena);
    call_ground_close(&ground);
}

/* ---- Reading replies ----------------------------------------------------------------------------------- */

static size_t json_flatten(const json_t *data, double *out, size_t n) {
    if (!json_is_array(data)) {
        out[n] = json_number_value(data);
        return n + 1;
    }
    for (size_t i = 0; i < json_array_size(data); i++) {
        n = json_flatten(json_array_get(data, i), out, n);
    }
    return n;
}

static size_t csv_read(const struct call_try *try, double *out) {
    size_t n = 0;
    for (char *at = try->reply, *end; *at; at = end + 1) {
        out[n++] = strtod(at, &end);
        ck_assert_msg(end > at && (*end == ',' || *end == '\n'), "%.20s", at);
    }
    return n;
}

/* The numbers of the reply's one tensor; *dtype becomes its type's name. */
static size_t reply_read(const struct call_try *try, const char *name, double *out, const char **dtype) {
    const json_t *tensor = json_object_get(try->json, name);
    *dtype = json_string_value(json_object_get(tensor, "dtype"));
    if (try->json) {
        return json_flatten(json_object_get(tensor, "data"), out, 0);
    }
    if (strcmp(call_try_header(try, "Content-Type"), "text/csv") == 0) {
        return csv_read(try, out);
    }
    struct pe_tensor view = call_try_tensor(try, arena, name);
    pe_dtype_load(view.dtype, view.data, pe_tensor_count(&view), out);
    *dtype = pe_dtype_name(view.dtype);
    return pe_tensor_count(&view);
}

static void expect_near(const double *got, const double *wanted, size_t n, double unit, const char *what) {
    for (size_t i = 0; i < n; i++) {
        double off = unit * fabs(wanted[i]) + (unit > 0x1p-53 ? 0x1p-22 : 0);
        if (fabs(got[i] - wanted[i]) > off) {
            ck_abort_msg("%s: number %zu is %.17g, not %.17g", what, i, got[i], wanted[i]);
        }
    }
}

static void expect_406(const struct call_try *try, int dtype, int rank, bool matrix) {
    const char *detail = call_try_text(try, "detail"), *use = strstr(detail, "; use ");
    ck_assert_int_eq(try->status, 406);
    ck_assert_str_eq(call_try_slug(try), "not_acceptable");
    ck_assert_str_eq(call_try_text(try, "field"), "format");
    ck_assert_ptr_nonnull(use);
    for (int f = 0; f < N_FORMATS; f++) {
        ck_assert_msg((strstr(use, formats[f]) != NULL) == holds(f, dtype, rank, matrix), "%s: %s", detail,
                      formats[f]);
    }
}

/* ---- Out ----------------------------------------------------------------------------------------------- */

#define MOST (2100 * 64)

static size_t wanted_read(size_t op, double *wanted) {
    char request[200];
    const char *dtype;
    snprintf(request, sizeof request, "%s&dtype=float64", ops[op].request);
    struct call_try try = {.request = request, .body = ops[op].body};
    call_try(&ground, &try);
    ck_assert_msg(try.status == 200, "%s: %s", request, try.reply);
    size_t n = reply_read(&try, ops[op].tensor, wanted, &dtype);
    call_try_close(&try);
    return n;
}

static const char *cell(size_t op, int format, int dtype, const double *wanted, size_t n, double *got) {
    char request[200];
    const char *named;
    snprintf(request, sizeof request, "%s&dtype=%s&format=%s", ops[op].request, dtypes[dtype],
             formats[format]);
    struct call_try try = {.request = request, .body = ops[op].body};
    call_try(&ground, &try);
    int status = try.status;
    if (!holds(format, dtype, ops[op].rank, ops[op].matrix)) {
        expect_406(&try, dtype, ops[op].rank, ops[op].matrix);
    } else if (format == 5) { /* check_picture.c looks at it */
        ck_assert_str_eq(call_try_header(&try, "Content-Type"), "image/png");
    } else {
        ck_assert_msg(status == 200, "%s: %s", request, try.reply);
        ck_assert_uint_eq(reply_read(&try, ops[op].tensor, got, &named), n);
        ck_assert(!named || strcmp(named, dtypes[dtype]) == 0);
        expect_near(got, wanted, n, roundoff[dtype], request);
    }
    call_try_close(&try);
    return status == 200 ? "ok" : "406";
}

START_TEST(matrix_out) {
    size_t op = (size_t)_i;
    double *wanted = malloc(MOST * sizeof *wanted), *got = malloc(MOST * sizeof *got);
    size_t n = wanted_read(op, wanted);
    for (int dtype = 0; dtype < N_DTYPES; dtype++) {
        char line[200];
        int at = snprintf(line, sizeof line, "out  %-16s %-9s", ops[op].name, dtypes[dtype]);
        for (int format = 0; format < N_FORMATS; format++) {
            at += snprintf(line + at, sizeof line - (size_t)at, " %s %-4s", formats[format],
                           cell(op, format, dtype, wanted, n, got));
        }
        printf("%s\n", line);
    }
    free(wanted);
    free(got);
}
END_TEST

/* ---- In ------------------------------------------------------------------------------------------------ */

static const double posted[6] = {1, 2.5, -3, 4, 0.125, 6}; /* whole in every type */

/* The embeddings [3, 2] as a body; 0 where the format has no such type. */
static size_t body_make(int format, int dtype, char *out, size_t size) {
    struct pe_error err = {0};
    char data[64];
    struct pe_tensor tensor = {.data = data, .dtype = pe_dtype_find(dtypes[dtype]), .rank = 2, .dim = {3, 2}};
    struct pe_named_tensor named = {"embeddings", tensor};
    struct pe_safetensors_header header;
    size_t n = 0;
    pe_dtype_store(tensor.dtype, posted, 6, data);
    if (format == 0) {
        return dtype < 2 ? (size_t)snprintf(out, size,
                                            "{\"embeddings\":{\"dtype\":\"%s\",\"data\":[[1,2.5],[-3,4],"
                                            "[0.125,6]]}}",
                                            dtypes[dtype])
                         : 0;
    }
    if (format == 1 && (n = pe_npy_header(out, size, &tensor)) == 0) {
        return 0;
    }
    if (format == 3) {
        ck_assert_int_eq(pe_safetensors_write(arena, &header, &named, 1, &err), 0);
        memcpy(out, header.text, n = header.bytes);
    }
    memcpy(out + n, data, pe_tensor_bytes(&tensor));
    return n + pe_tensor_bytes(&tensor);
}

static const char *const media[] = {"application/json", "application/x-npy", "application/octet-stream",
                                    "application/x-safetensors"};

static struct call_try post(const char *request, int format, int dtype, const char *body, size_t n) {
    return (struct call_try){.request = request,
                             .body = body,
                             .body_n = n,
                             .head.content_type = media[format],
                             .head.raw_shape = "3,2",
                             .head.raw_dtype = dtypes[dtype]};
}

/* The reply to a posted tensor is in its format and type, where nothing else is asked. */
static void expect_like(const char *request, const char *name, int format, int dtype, const char *body,
                        size_t n, const double *wanted, size_t count) {
    double got[64];
    const char *named;
    struct call_try same = post(request, format, dtype, body, n);
    call_try(&ground, &same);
    ck_assert_str_eq(call_try_header(&same, "Content-Type"), media[format]);
    ck_assert_uint_eq(reply_read(&same, name, got, &named), count);
    ck_assert_str_eq(named, dtypes[dtype]);
    expect_near(got, wanted, count, roundoff[dtype], request);
    call_try_close(&same);
}

START_TEST(matrix_in) {
    static const struct {
        const char *name, *same, *json, *tensor;
    } rows[] = {{"apply", "POST /v1/apply?encoding=vaswani",
                 "POST /v1/apply?encoding=vaswani&dtype=float64&format=json", "embeddings"},
                {"attention", "POST /v1/attention?encoding=vaswani",
                 "POST /v1/attention?encoding=vaswani&dtype=float64&format=json", "weights"}};
    double wanted[64], got[64];
    char body[1000], line[200];
    const char *named;
    for (size_t r = 0; r < PE_COUNT(rows); r++) {
        size_t n = body_make(0, 0, body, sizeof body), count = 0;
        struct call_try first = post(rows[r].json, 0, 0, body, n);
        call_try(&ground, &first);
        ck_assert_msg((count = reply_read(&first, rows[r].tensor, wanted, &named)) > 0, "%s", first.reply);
        call_try_close(&first);
        for (int dtype = 0; dtype < N_DTYPES; dtype++) {
            int at = snprintf(line, sizeof line, "in   %-16s %-9s", rows[r].name, dtypes[dtype]);
            for (int format = 0; format < 4; format++) {
                n = body_make(format, dtype, body, sizeof body);
                at += snprintf(line + at, sizeof line - (size_t)at, " %s %-4s", formats[format],
                               n ? "ok" : "-");
                ck_assert_int_eq(n > 0, holds(format, dtype, 2, true));
                if (!n) {
                    continue;
                }
                struct call_try try = post(rows[r].json, format, dtype, body, n);
                call_try(&ground, &try);
                ck_assert_msg(reply_read(&try, rows[r].tensor, got, &named) == count, "%s", try.reply);
                ck_assert_mem_eq(got, wanted, count * sizeof *got); /* posted exactly: the same to the bit */
                call_try_close(&try);
                expect_like(rows[r].same, rows[r].tensor, format, dtype, body, n, wanted, count);
            }
            printf("%s\n", line);
        }
    }
}
END_TEST

/* ---- Several tensors ----------------------------------------------------------------------------------- */

START_TEST(several_tensors) {
    static const char body[] = "{\"q\":[[1,2]],\"k\":[[3,4],[5,6]],\"return\":[\"logits\",\"weights\"]}";
    for (int format = 0; format < N_FORMATS; format++) {
        char request[100];
        snprintf(request, sizeof request, "POST /v1/attention?format=%s", formats[format]);
        struct call_try try = {.request = request, .body = body};
        call_try(&ground, &try);
        if (format == 0 || format == 3) {
            ck_assert_int_eq(try.status, 200);
        } else {
            const char *detail = call_try_text(&try, "detail");
            ck_assert_int_eq(try.status, 406);
            ck_assert_msg(strstr(detail, "weights") && strstr(detail, "logits") &&
                              strstr(detail, "use json, safetensors"),
                          "%s", detail);
        }
        if (format == 3) {
            struct pe_tensor weights = call_try_tensor(&try, arena, "weights"),
                             logits = call_try_tensor(&try, arena, "logits");
            ck_assert(weights.dim[1] == 2 && logits.dim[1] == 2);
        }
        call_try_close(&try);
    }
}
END_TEST

/* Positions that a rule made are told in every format: a field, a tensor, or a header while they are short.
 */
START_TEST(positions_of_a_rule) {
    static const double made[] = {0, 1, 2, 0, 0, 1};
    struct call_try raw = {.request =
                               "GET /v1/encode?type=naive&d_model=1&positions.lengths=3,1,2&format=raw"};
    call_try(&ground, &raw);
    ck_assert_str_eq(call_try_header(&raw, "X-Posenc-Positions"), "[0.0,1.0,2.0,0.0,0.0,1.0]");
    call_try_close(&raw);
    struct call_try named = {
        .request = "GET /v1/encode?type=naive&d_model=1&positions.lengths=3,1,2&format=safetensors"};
    call_try(&ground, &named);
    struct pe_tensor positions = call_try_tensor(&named, arena, "positions");
    ck_assert(positions.dtype == PE_DTYPE_F64 && positions.rank == 1 && positions.dim[0] == 6);
    ck_assert_mem_eq(positions.data, made, sizeof made);
    ck_assert_uint_eq(call_try_tensor(&named, arena, "vectors").dim[0], 6);
    ck_assert_str_eq(call_try_header(&named, "X-Posenc-Positions"), "");
    call_try_close(&named);
    struct call_try both = {.request = "POST /v1/attention?format=npy",
                            .body = "{\"encoding\":\"vaswani\",\"embeddings\":[[1,2],[3,4]],"
                                    "\"query_positions\":{\"mask\":[[0,1]],\"rule\":\"opt\"}}"};
    call_try(&ground, &both);
    ck_assert_str_eq(call_try_header(&both, "X-Posenc-Query-Positions"), "[[1.0,2.0]]");
    call_try_close(&both);
    static const struct {
        const char *request;
        bool told;
    } rows[] = {{"GET /v1/encode?type=naive&d_model=1&positions.lengths=180&format=npy", true},
                {"GET /v1/encode?type=naive&d_model=1&positions.lengths=200&format=npy", false},
                {"GET /v1/encode?type=naive&d_model=1&positions=0:5&format=npy", false}};
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct call_try try = {.request = rows[i].request};
        call_try(&ground, &try);
        size_t n = strlen(call_try_header(&try, "X-Posenc-Positions"));
        ck_assert_msg(rows[i].told ? n > 900 && n <= 1024 : n == 0, "%s: %zu", rows[i].request, n);
        call_try_close(&try);
    }
}
END_TEST

Suite *call_formats_suite(void) {
    Suite *suite = suite_create("call_formats");
    TCase *tests = tcase_create("formats");
    tcase_add_test(tests, positions_of_a_rule);
    suite_add_tcase(suite, tests);
    tcase_set_timeout(tests, 60); /* sanitizers take their time */
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, matrix_out, 0, (int)PE_COUNT(ops));
    tcase_add_test(tests, matrix_in);
    tcase_add_test(tests, several_tensors);
    return suite;
}
