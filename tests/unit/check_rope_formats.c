/* SPDX-License-Identifier: MIT
 *
 * Rotary encodings over the wire: queries posted as npy, raw and safetensors, tables in every format and
 * streamed, and the echoed encoding, which binds back, for every scaling, section and axis.
 */
#include "call_run.h"
#include "properties/rotary_setups.h"
#include "suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct call_ground ground;
static struct pe_arena *arena;

static void setup(void) {
    struct pe_error err = {0};
    call_ground_open(&ground);
    arena = pe_arena_open(1 << 24, NULL, &err);
}

static void teardown(void) {
    pe_arena_close(arena);
    call_ground_close(&ground);
}

/* ---- Bodies -------------------------------------------------------------------------------------------- */

enum { NPY, RAW, SAFETENSORS, N_FORMATS };
static const char *const media[] = {"application/x-npy", "application/octet-stream",
                                    "application/x-safetensors"};
static const double q[] = {1, 2, 3, 4, -0.5, 0.25, 8, -1, 2.5, 0, 0, 1, 3, -3, 0.125, 6}; /* [1, 2, 2, 4] */
enum { COUNT = 16 };

static size_t body_make(int format, enum pe_dtype dtype, char *out, size_t size) {
    struct pe_error err = {0};
    char data[8 * COUNT];
    struct pe_named_tensor named = {"embeddings",
                                    {.data = data, .dtype = dtype, .rank = 4, .dim = {1, 2, 2, 4}}};
    struct pe_safetensors_header header;
    size_t n = 0;
    pe_dtype_store(dtype, q, COUNT, data);
    if (format == NPY && (n = pe_npy_header(out, size, &named.tensor)) == 0) {
        return 0; /* it has no bfloat16 */
    }
    if (format == SAFETENSORS) {
        ck_assert_int_eq(pe_safetensors_write(arena, &header, &named, 1, &err), 0);
        memcpy(out, header.text, n = header.bytes);
    }
    memcpy(out + n, data, pe_tensor_bytes(&named.tensor));
    return n + pe_tensor_bytes(&named.tensor);
}

/* What comes back is in the format and type that was posted, turned in float64 and rounded once. */
START_TEST(queries_come_back_as_they_came) {
    char body[1000], rounded[8 * COUNT];
    double exact[COUNT];
    enum pe_dtype dtype = (enum pe_dtype)(PE_DTYPE_F64 + _i / N_FORMATS);
    size_t n = body_make(_i % N_FORMATS, dtype, body, sizeof body), axis[4] = {1, 2, 2, 4};
    if (n == 0) {
        return;
    }
    struct rotary r = {.setup = &rotary_setups[0], .arena = arena};
    struct pe_error err = {0};
    struct pe_spec spec;
    ck_assert(!pe_spec_init(arena, &spec, "rope", &err) &&
              !pe_spec_set(arena, &spec, "layout", "halves", &err) &&
              !pe_spec_set(arena, &spec, "head_dim", "4", &err) && !pe_plan_open(&r.plan, &spec, &err));
    memcpy(exact, rotary_apply(&r, q, &(struct pe_apply_args){.axes = "bthd"}, 4, axis), sizeof exact);
    pe_plan_close(r.plan);
    pe_dtype_store(dtype, exact, COUNT, rounded);
    struct call_try try = {.request = "POST /v1/apply?type=rope&layout=halves&axes=bthd",
                           .body = body,
                           .body_n = n,
                           .head.content_type = media[_i % N_FORMATS],
                           .head.raw_shape = "1,2,2,4",
                           .head.raw_dtype = pe_dtype_name(dtype)};
    call_try(&ground, &try);
    ck_assert_msg(try.status == 200, "%s", try.reply);
    ck_assert_str_eq(call_try_header(&try, "Content-Type"), media[_i % N_FORMATS]);
    ck_assert_ptr_nonnull(strstr(call_try_header(&try, "X-Posenc-Encoding"), "\"head_dim\":4"));
    struct pe_tensor got = call_try_tensor(&try, arena, "embeddings");
    ck_assert(got.rank == 4 && got.dtype == dtype && pe_tensor_count(&got) == COUNT);
    ck_assert_mem_eq(got.data, rounded, pe_tensor_bytes(&got));
    call_try_close(&try);
}
END_TEST

/* ---- Tables -------------------------------------------------------------------------------------------- */

#define TABLE "/v1/encode?type=rope&layout=interleaved&head_dim=8&scaling.rope_type=linear&scaling.factor=4&"

/* The bytes of a tensor in a format, to be freed. */
static unsigned char *table(const char *request, const char *name, size_t bytes) {
    struct call_try try = {.request = request};
    call_try(&ground, &try);
    ck_assert_msg(try.status == 200, "%s: %s", request, try.reply);
    struct pe_tensor tensor = call_try_tensor(&try, arena, name);
    ck_assert_uint_eq(pe_tensor_bytes(&tensor), bytes);
    unsigned char *copy = malloc(bytes);
    memcpy(copy, tensor.data, bytes);
    call_try_close(&try);
    return copy;
}

/* One tensor in the formats that hold one, all of them in safetensors; the same bytes. */
START_TEST(formats_of_tables_agree) {
    static const char *const names[] = {"cos", "sin", "inv_freq"};
    static const size_t bytes[] = {48, 48, 16};
    for (size_t i = 0; i < PE_COUNT(names); i++) {
        char request[200];
        unsigned char *all =
            table("GET " TABLE "positions=1,2,131071&format=safetensors", names[i], bytes[i]);
        static const char *const formats[] = {"npy", "raw", "safetensors"};
        for (size_t f = 0; f < PE_COUNT(formats); f++) {
            snprintf(request, sizeof request, "GET " TABLE "positions=1,2,131071&format=%s&return=%s",
                     formats[f], names[i]);
            unsigned char *one = table(request, names[i], bytes[i]);
            ck_assert_mem_eq(all, one, bytes[i]);
            free(one);
        }
        free(all);
    }
    unsigned char *packed = table("GET " TABLE "positions=1,2&trig_form=packed&format=npy", "packed", 64);
    unsigned char *complex = table("GET " TABLE "positions=1,2&trig_form=complex&format=raw", "complex", 64);
    for (size_t i = 0; i < 8; i++) {
        size_t t = i / 4, pair = i % 4;
        ck_assert_mem_eq(packed + 4 * (8 * t + pair), complex + 8 * i, 4);
        ck_assert_mem_eq(packed + 4 * (8 * t + 4 + pair), complex + 8 * i + 4, 4);
    }
    free(packed);
    free(complex);
    struct call_try csv = {.request = "GET " TABLE "positions=0&format=csv&return=cos"};
    call_try(&ground, &csv);
    ck_assert_msg(strncmp(csv.reply, "1.0,1.0,1.0,1.0", 15) == 0, "%s", csv.reply);
    call_try_close(&csv);
}
END_TEST

/* Long tables of a GET are computed while they are sent: their bytes are those of a POST. */
START_TEST(streams_are_the_tables) {
    static const char *const returns[] = {"return=cos", "return=sin", "trig_form=packed&return=packed",
                                          "trig_form=full&return=sin", "return=sin&role=key"};
    for (size_t i = 0; i < PE_COUNT(returns); i++) {
        char get[300], post[300];
        snprintf(get, sizeof get, "GET " TABLE "format=raw&positions=5:20005&%s", returns[i]);
        snprintf(post, sizeof post, "POST /v1/encode?format=raw&%s", returns[i]);
        struct call_try stream = {.request = get, .room = 5000},
                        whole = {
                            .request = post,
                            .body =
                                "{\"encoding\":{\"type\":\"rope\",\"layout\":\"interleaved\",\"head_dim\":8,"
                                "\"scaling\":{\"rope_type\":\"linear\",\"factor\":4}},"
                                "\"positions\":\"5:20005\"}"};
        call_try(&ground, &stream);
        call_try(&ground, &whole);
        ck_assert_int_eq(stream.status, 200);
        ck_assert_uint_eq(stream.reply_n, whole.reply_n);
        ck_assert_mem_eq(stream.reply, whole.reply, whole.reply_n);
        ck_assert_str_eq(call_try_header(&stream, "X-Posenc-Shape"),
                         call_try_header(&whole, "X-Posenc-Shape"));
        call_try_close(&stream);
        call_try_close(&whole);
    }
}
END_TEST

/* The limit of a stream is on the bytes of the table that is sent, of half the head's width or all of it. */
START_TEST(streams_count_their_own_bytes) {
    static const struct {
        const char *returns;
        int width;
    } rows[] = {{"return=cos", 4}, {"trig_form=full&return=cos", 8}, {"trig_form=packed&return=packed", 8}};
    ground.config.stream_bytes = 128000;
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        char get[300], detail[100];
        int most = 128000 / (4 * rows[i].width);
        snprintf(get, sizeof get, "GET " TABLE "format=raw&positions=0:%d&%s", most, rows[i].returns);
        struct call_try fits = {.request = get};
        call_try(&ground, &fits);
        ck_assert_msg(fits.status == 200 && fits.reply_n == 128000, "%s: %s", get, fits.reply);
        call_try_close(&fits);
        snprintf(get, sizeof get, "GET " TABLE "format=raw&positions=0:%d&%s", most + 1, rows[i].returns);
        snprintf(detail, sizeof detail,
                 "%d positions of width %d are more than the 128000 bytes that a stream may have", most + 1,
                 rows[i].width);
        struct call_try over = {.request = get};
        call_expect_problem(&ground, &over, 413, "limit", "positions", detail);
        call_try_close(&over);
    }
}
END_TEST

/* ---- Echo ---------------------------------------------------------------------------------------------- */

/* As a query: "scaling.rope_type=yarn scaling.factor=8" with its blanks as '&'. */
static void query_of(const struct rotary_setup *setup, const char *layout, char *out, size_t size) {
    int n = snprintf(out, size, "GET /v1/encode?type=%s&head_dim=%d&layout=%s&", setup->type, ROTARY_WIDTH,
                     layout);
    snprintf(out + n, size - (size_t)n, "%s", setup->params);
    for (char *c = strchr(out, '?'); *c; c++) {
        *c = *c == ' ' ? '&' : *c;
    }
}

/* The encoding that a reply tells, posted, gives that reply again. */
START_TEST(echoed_encodings_bind_back) {
    const struct rotary_setup *row = &rotary_setups[_i / ROTARY_LAYOUTS];
    char request[700], positions[60], body[2000];
    struct rotary r;
    rotary_open(&r, _i);
    int axes = r.axes;
    rotary_close(&r);
    static const char *const points[] = {"", "[1,7]", "[[1,2],[7,3]]", "[[1,2,3],[7,0,1]]",
                                         "[[1,2,3,4],[7,0,1,2]]"};
    ck_assert_int_le(axes, PE_MAX_AXES);
    snprintf(positions, sizeof positions, "%s", points[axes]);
    query_of(row, rotary_layouts[_i % ROTARY_LAYOUTS], request, sizeof request);
    strncat(request, "&positions=", sizeof request - strlen(request) - 1);
    strncat(request, positions, sizeof request - strlen(request) - 1);
    struct call_try first = {.request = request};
    call_try(&ground, &first);
    ck_assert_msg(first.status == 200, "%s: %s", request, first.reply);
    char *echo = json_dumps(json_object_get(first.json, "encoding"), JSON_COMPACT | JSON_REAL_PRECISION(17));
    snprintf(body, sizeof body, "{\"encoding\":%s,\"positions\":%s}", echo, positions);
    struct call_try again = {.request = "POST /v1/encode", .body = body};
    call_try(&ground, &again);
    ck_assert_str_eq(again.reply, first.reply);
    free(echo);
    call_try_close(&again);
    call_try_close(&first);
}
END_TEST

/* The double nearest to d^-0.5 (mpmath), of which 1/sqrt(d) is a neighbour for each of these d: what the
 * reply says, and what attention takes where no scale is given, with whatever encoding. */
static const struct root {
    int width;
    double scale;
} roots[] = {{96, 0.10206207261596575}, {128, 0.08838834764831845}, {192, 0.07216878364870322}};
static const char *const unscaled[] = {
    "{\"type\":\"rope\",\"layout\":\"halves\"}",
    "{\"type\":\"rope\",\"layout\":\"halves\",\"direction\":\"clockwise\"}", "\"alibi\"", "\"none\""};

/* Numbers that are small and whole, so that products are exact: one logit, and what scales it. */
START_TEST(scales_are_the_nearest) {
    const struct root *row = &roots[_i % (int)PE_COUNT(roots)];
    char vector[1000] = "[[1", body[3000];
    size_t n = strlen(vector);
    for (int i = 1; i < row->width; i++) {
        n += (size_t)snprintf(vector + n, sizeof vector - n, ",0");
    }
    snprintf(vector + n, sizeof vector - n, "]]");
    snprintf(body, sizeof body,
             "{\"encoding\":%s,\"q\":%s,\"k\":%s,\"return\":[\"logits\"],\"dtype\":\"float64\"}",
             unscaled[_i / (int)PE_COUNT(roots)], vector, vector);
    struct call_try got = {.request = "POST /v1/attention", .body = body};
    call_try(&ground, &got);
    ck_assert_msg(got.status == 200, "%s", got.reply);
    const json_t *data = json_object_get(json_object_get(got.json, "logits"), "data");
    ck_assert_double_eq(json_number_value(json_array_get(json_array_get(data, 0), 0)), row->scale);
    const json_t *told = json_object_get(got.json, "softmax_scale");
    ck_assert(!told || json_number_value(told) == row->scale);
    ck_assert(told || _i / (int)PE_COUNT(roots) > 1);
    call_try_close(&got);
}
END_TEST

Suite *rope_formats_suite(void) {
    Suite *suite = suite_create("rope_formats");
    TCase *tests = tcase_create("formats");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, queries_come_back_as_they_came, 0, 4 * N_FORMATS);
    tcase_add_test(tests, formats_of_tables_agree);
    tcase_add_test(tests, streams_are_the_tables);
    tcase_add_test(tests, streams_count_their_own_bytes);
    tcase_add_loop_test(tests, scales_are_the_nearest, 0, (int)(PE_COUNT(unscaled) * PE_COUNT(roots)));
    tcase_add_loop_test(tests, echoed_encodings_bind_back, 0, ROTARY_LAYOUTS * rotary_setup_count);
    return suite;
}
