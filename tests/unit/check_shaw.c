/* SPDX-License-Identifier: MIT
 *
 * shaw, against its definition pair by pair ([T, T, d] numbers in the papers): whichever way the positions
 * go, and however far the table reaches. Then all that it refuses.
 */
#include "call_run.h"
#include "relative_run.h"
#include "suites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct pe_arena *arena;

static void setup(void) {
    struct pe_error err = {0};
    arena = pe_arena_open((size_t)512 << 20, NULL, &err);
    pe_linalg_init();
}

static void teardown(void) {
    pe_arena_close(arena);
}

/* ---- The definition ------------------------------------------------------------------------------------ */

struct shaw_case {
    const char *name;
    int64_t back, ahead;
    bool zero, query_minus_key, unscaled, key_side, by_head, values;
    enum pe_dtype table, dtype;
    double tolerance;
};

struct context {
    const struct shaw_case *is;
    const struct pe_tensor *keys, *values;
};

/* Row of the distance; false: none. */
static bool row_of(const struct shaw_case *is, double distance, size_t *row) {
    double r = is->query_minus_key ? -distance : distance, low = -(double)is->back, high = (double)is->ahead;
    if (is->zero && (r < low || r > high)) {
        return false;
    }
    *row = (size_t)(fmin(fmax(r, low), high) - low);
    return true;
}

static double cell(const struct context *context, const struct pe_tensor *table, size_t head, size_t row,
                   size_t column) {
    size_t width = table->dim[table->rank - 1], rows = table->dim[table->rank - 2];
    size_t at = ((context->is->by_head ? head * rows : 0) + row) * width + column;
    double x;
    pe_dtype_load(table->dtype, (const char *)table->data + at * pe_dtype_size(table->dtype), 1, &x);
    return x;
}

static double term(const struct relative_pair *pair, const void *given) {
    const struct context *context = given;
    double sum = 0;
    size_t row;
    if (!row_of(context->is, pair->distance, &row)) {
        return 0;
    }
    for (size_t c = 0; c < pair->d; c++) {
        sum += (pair->q[c] + (context->is->key_side ? pair->k[c] : 0)) *
               cell(context, context->keys, pair->head, row, c);
    }
    return context->is->unscaled ? sum : pair->scale * sum;
}

static void value(const struct relative_pair *pair, const void *given, double *out) {
    const struct context *context = given;
    size_t row, dv = context->values->dim[context->values->rank - 1];
    bool there = row_of(context->is, pair->distance, &row);
    for (size_t c = 0; c < dv; c++) {
        out[c] = there ? cell(context, context->values, pair->head, row, c) : 0;
    }
}

static const struct relative_sizes sizes = {.b = 2, .h = 2, .hk = 1, .tq = 70, .tk = 150, .d = 5, .dv = 3};

static const struct shaw_case cases[] = {
    {"narrow", 3, 3, .values = true, .table = PE_DTYPE_F64, .dtype = PE_DTYPE_F64, .tolerance = 1e-12},
    {"zero beyond, by head", 3, 5, .zero = true, .values = true, .by_head = true, .table = PE_DTYPE_F64,
     .dtype = PE_DTYPE_F64, .tolerance = 1e-12},
    {"SpeechT5", 6, 5, .query_minus_key = true, .values = true, .table = PE_DTYPE_F64, .dtype = PE_DTYPE_F64,
     .tolerance = 1e-12},
    {"only back", 20, 0, .zero = true, .unscaled = true, .table = PE_DTYPE_F64, .dtype = PE_DTYPE_F64,
     .tolerance = 1e-12},
    {"only ahead", 0, 9, .values = true, .query_minus_key = true, .zero = true, .table = PE_DTYPE_F64,
     .dtype = PE_DTYPE_F64, .tolerance = 1e-12},
    {"one row", 0, 0, .values = true, .table = PE_DTYPE_F64, .dtype = PE_DTYPE_F64, .tolerance = 1e-12},
    {"both sides", 30, 30, .key_side = true, .query_minus_key = true, .values = true, .table = PE_DTYPE_F64,
     .dtype = PE_DTYPE_F64, .tolerance = 1e-12},
    {"both sides, by head", 4, 90, .key_side = true, .by_head = true, .zero = true, .table = PE_DTYPE_F64,
     .dtype = PE_DTYPE_F64, .tolerance = 1e-12},
    {"wider than a window", 400, 430, .values = true, .table = PE_DTYPE_F64, .dtype = PE_DTYPE_F64,
     .tolerance = 1e-12},
    {"wider, both sides", 400, 430, .key_side = true, .zero = true, .query_minus_key = true,
     .table = PE_DTYPE_F64, .dtype = PE_DTYPE_F64, .tolerance = 1e-12},
    {"of another type", 7, 7, .values = true, .key_side = true, .table = PE_DTYPE_F16, .dtype = PE_DTYPE_F64,
     .tolerance = 1e-12},
    {"float32", 7, 7, .values = true, .table = PE_DTYPE_F32, .dtype = PE_DTYPE_F32, .tolerance = 1e-6},
    {"float32, of doubles", 7, 7, .values = true, .key_side = true, .table = PE_DTYPE_F64,
     .dtype = PE_DTYPE_F32, .tolerance = 1e-6},
};

static const struct pe_tensor *table_of(const struct shaw_case *is, size_t width) {
    const size_t dim[] = {sizes.h, (size_t)(is->back + is->ahead + 1), width};
    return relative_tensor(arena, is->table, is->by_head ? 3 : 2, dim + !is->by_head);
}

START_TEST(as_defined_pair_by_pair) {
    const struct shaw_case *is = &cases[(size_t)_i / PLACES_REAL];
    enum relative_places places = (enum relative_places)(_i % PLACES_REAL); /* whole ones */
    char clip[60];
    snprintf(clip, sizeof clip, "%lld,%lld", (long long)is->back, (long long)is->ahead);
    const char *const settings[] = {"clip",     clip,
                                    "outside",  is->zero ? "zero" : "clip",
                                    "sign",     is->query_minus_key ? "query_minus_key" : "key_minus_query",
                                    "scaled",   is->unscaled ? "false" : "true",
                                    "key_side", is->key_side ? "true" : "false",
                                    NULL};
    struct context context = {.is = is, .keys = table_of(is, sizes.d)};
    struct pe_error err = {0};
    struct pe_spec spec;
    relative_spec(arena, &spec, "shaw", settings);
    ck_assert_int_eq(pe_spec_set_tensor(&spec, "keys", context.keys, &err), PE_OK);
    if (is->values) {
        context.values = table_of(is, sizes.dv);
        ck_assert_int_eq(pe_spec_set_tensor(&spec, "values", context.values, &err), PE_OK);
    }
    const struct relative_definition definition = {
        .term = term, .value = is->values ? value : NULL, .context = &context};
    relative_compare(arena, &spec, &sizes, places, is->dtype, &definition, is->tolerance);
}
END_TEST

/* Every distance up to 4096, one by one: row r of the table says r. */
START_TEST(every_distance_takes_its_row) {
    enum { REACH = 4096, KEYS = 2 * REACH + 21, ROWS = 2 * REACH + 1 };
    struct pe_error err = {0};
    struct pe_tensor *keys = relative_tensor(arena, PE_DTYPE_F64, 2, (const size_t[]){ROWS, 1}),
                     *q = relative_tensor(arena, PE_DTYPE_F64, 2, (const size_t[]){1, 1}),
                     *k = relative_tensor(arena, PE_DTYPE_F64, 2, (const size_t[]){KEYS, 1});
    for (size_t r = 0; r < ROWS; r++) {
        ((double *)keys->data)[r] = (double)r;
    }
    *(double *)q->data = 1;
    for (int sign = 0; sign < 2; sign++) {
        const double where = REACH + 10;
        struct pe_spec spec;
        struct pe_plan *plan = NULL;
        struct pe_work work;
        struct pe_attention_result got;
        relative_spec(arena, &spec, "shaw",
                      (const char *const[]){"sign", sign ? "query_minus_key" : "key_minus_query", "scaled",
                                            "false", NULL});
        struct pe_positions query = {.length = 1, .axes = 1, .list = &where};
        struct pe_attention_args args = {.size = sizeof args, .q = q, .k = k, .query_positions = &query};
        ck_assert_int_eq(pe_spec_set_tensor(&spec, "keys", keys, &err), PE_OK);
        ck_assert_int_eq(pe_plan_open(&plan, &spec, &err), PE_OK);
        args.plan = plan;
        args.outputs = PE_ATTENTION_POSITION;
        ck_assert_msg(pe_attention_open(arena, &work, &got, &args, &err) == PE_OK, "%s: %s", err.path,
                      err.text);
        pe_work_run(&work);
        for (int j = 0; j < KEYS; j++) {
            double r = sign ? where - j : j - where;
            ck_assert_double_eq(((double *)got.position.data)[j], fmax(-REACH, fmin(REACH, r)) + REACH);
        }
        pe_plan_close(plan);
    }
}
END_TEST

/* ---- What is refused ----------------------------------------------------------------------------------- */

#define POST     "POST /v1/attention"
#define Q        "\"q\":[[1,2],[3,4]],\"k\":[[1,2],[3,4]],\"v\":[[1,2,3],[4,5,6]]"
#define SHAW(p)  "{" Q ",\"encoding\":{\"type\":\"shaw\"" p "}}"
#define OUT(p)   "{" Q ",\"return\":\"output\",\"encoding\":{\"type\":\"shaw\"" p "}}"
#define OUT32(p) "{\"dtype\":\"float32\"," Q ",\"return\":\"output\",\"encoding\":{\"type\":\"shaw\"" p "}}"
#define AT(p, e) "{" Q "," p ",\"encoding\":{\"type\":\"shaw\"" e "}}"
#define K3       ",\"keys\":[[1,2],[3,4],[5,6]]"
#define K4       ",\"keys\":[[1,2],[3,4],[5,6],[7,8]]"

static const struct {
    const char *body, *slug, *field, *detail;
} bad[] = {
    /* clang-format off */
    {SHAW(""), "missing", "encoding.keys",
     "is missing: give the table, or a seed for a random one"},
    {SHAW(",\"values\":[[1,2,3]]"), "missing", "encoding.keys",
     "is missing: give the table, or a seed for a random one"},
    {SHAW(K3 ",\"seed\":1"), "conflict", "encoding.keys",
     "is given, and so is seed: give one of them"},
    {SHAW(",\"seed\":1,\"values\":[[1,2,3]]"), "conflict", "encoding.values",
     "is given, and so is seed: give one of them"},
    {SHAW(",\"keys\":\"nowhere\""), "unknown_name", "encoding.keys", "no table is named \"nowhere\"; loaded are: none"},
    {SHAW(",\"keys\":[1,2]"), "shape", "encoding.keys",
     "got shape [2], allowed are [rows, d] and [H, rows, d]"},
    {SHAW(",\"keys\":{\"shape\":[1,0],\"data\":[]}"), "shape", "encoding.keys",
     "got shape [1, 0], allowed are 1 row or more of width 1 to 65536"},
    {SHAW(",\"keys\":[[1,2,3]]"), "shape", "encoding.keys", "has shape [1, 3], but heads are 2 wide"},
    {SHAW(",\"keys\":[[1,2],[3,4],[5,null]]"), "type", "encoding.keys[2][1]", "must be a number, got null"},
    {SHAW(",\"keys\":[[[1,2]],[[3,4]]]"), "shape", "encoding.keys",
     "has shape [2, 1, 2]: it is for 2 heads, but there are 1"},
    {SHAW(K4), "missing", "encoding.clip",
     "is missing: 4 rows may be those of any [back, ahead] whose sum is 3"},
    {SHAW(K4 ",\"clip\":2"), "shape", "encoding.clip", "[2, 2] takes 5 rows, but keys has 4"},
    {SHAW(K4 ",\"clip\":[1,1]"), "shape", "encoding.clip", "[1, 1] takes 3 rows, but keys has 4"},
    {SHAW(K4 ",\"clip\":[1,1,1]"), "shape", "encoding.clip",
     "must be one number or [back, ahead], got 3 numbers"},
    {SHAW(K4 ",\"clip\":[]"), "shape", "encoding.clip", "must be one number or [back, ahead], got 0 numbers"},
    {SHAW(K4 ",\"clip\":[-1,4]"), "range", "encoding.clip[0]", NULL},
    {SHAW(K4 ",\"clip\":1.5"), "type", "encoding.clip", "must be a list of whole numbers, got a number"},
    {SHAW(K4 ",\"clip\":9007199254740992"), "shape", "encoding.clip",
     "[9007199254740992, 9007199254740992] takes 18014398509481985 rows, but keys has 4"},
    {SHAW(K3 ",\"outside\":\"error\""), "choice", "encoding.outside",
     "must be one of clip, zero, got \"error\""},
    {SHAW(K3 ",\"sign\":\"minus\""), "choice", "encoding.sign",
     "must be one of key_minus_query, query_minus_key, got \"minus\""},
    {SHAW(K3 ",\"values\":[[1,2,3]]"), "shape", "encoding.values", "has 1 rows, but keys has 3"},
    {OUT(K3 ",\"values\":[[1,2],[3,4],[5,6]]"), "shape", "encoding.values",
     "has shape [3, 2], but its vectors are added to those of width 3"},
    {SHAW(K3 ",\"head_dim\":3"), "conflict", "encoding.head_dim", NULL},
    {SHAW(",\"seed\":1,\"std\":0"), "range", "encoding.std", "must be above 0 and at most 1000, got 0"},
    {SHAW(",\"seed\":1,\"clip\":2097152"), "range", "encoding.clip",
     "makes 4194305 rows of width 2 from the seed, allowed are 4194304 numbers"},
    {AT("\"query_positions\":[0,1.5]", K3), "range", "query_positions[1]",
     "got 1.5, allowed are whole numbers: a distance is a row of the table"},
    {AT("\"key_positions\":[0.5,1]", K3), "range", "key_positions[0]",
     "got 0.5, allowed are whole numbers: a distance is a row of the table"},
    {SHAW(",\"keys\":[[1e38,0],[0,0],[0,0]]"), "range", "encoding", NULL},
    {"{\"dtype\":\"float32\",\"q\":[[0,0]],\"k\":[[0,0]],\"encoding\":{\"type\":\"shaw\",\"keys\":{\"dtype\":\"float64\","
     "\"data\":[[1e300,0]]}}}", "range", "encoding",
     "adds numbers that may reach 1e+300 to the logits, too near the largest float32, 3.40282e+38"},
    {OUT32(K3 ",\"values\":{\"dtype\":\"float64\",\"data\":[[1e300,0,0],[0,0,0],[0,0,0]]}"), "range", "encoding",
     "the values may reach 1e+300, too near the largest float32, 3.40282e+38"},
    /* clang-format on */
};

static struct call_ground ground;

static void ground_setup(void) {
    call_ground_open(&ground);
}

static void ground_teardown(void) {
    call_ground_close(&ground);
}

START_TEST(bad_requests) {
    struct call_try try = {.request = POST, .body = bad[_i].body};
    call_expect_problem(&ground, &try, 400, bad[_i].slug, bad[_i].field, bad[_i].detail);
    call_try_close(&try);
}
END_TEST

/* Two tables in one file: each field takes the tensor of its name, and a file without one says what it holds.
 */
START_TEST(tables_of_one_file) {
    static const char header[] = "{\"keys\":{\"dtype\":\"F64\",\"shape\":[1,1],\"data_offsets\":[0,8]},"
                                 "\"values\":{\"dtype\":\"F64\",\"shape\":[1,1],\"data_offsets\":[8,16]}}";
    static const double numbers[] = {3, 5};
    char folder[] = "/tmp/check_shaw_XXXXXX", path[60];
    uint64_t n = sizeof header - 1;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/test_two.safetensors", folder);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    fwrite(&n, sizeof n, 1, file);
    fwrite(header, 1, n, file);
    fwrite(numbers, sizeof numbers, 1, file);
    fclose(file);
    struct call_ground own;
    call_ground_open_tables(&own, folder);
    remove(path);
    remove(folder);
    struct call_try try = {
        .request = "POST /v1/attention",
        .body = "{\"q\":[[2]],\"k\":[[0]],\"v\":[[2]],\"return\":[\"position\",\"output\"],"
                "\"encoding\":{\"type\":\"shaw\",\"keys\":\"test_two\",\"values\":\"test_two\"}}"};
    call_try(&own, &try);
    ck_assert_msg(try.status == 200 && strstr(try.reply, "[[6.0]]") && strstr(try.reply, "[[7.0]]"), "%s",
                  try.reply);
    call_try_close(&try);
    struct call_try other = {.request = "POST /v1/attention",
                             .body = "{\"q\":[[2]],\"k\":[[0]],\"encoding\":{\"type\":\"transformer_xl\","
                                     "\"w_r\":\"test_two\"}}"};
    call_expect_problem(
        &own, &other, 400, "unknown_name", "encoding.w_r",
        "the table \"test_two\" has no tensor \"w_r\" among its 2; the nearest are: keys, values");
    call_try_close(&other);
    call_ground_close(&own);
}
END_TEST

/* In C nobody has made the plan for these queries. */
START_TEST(plans_for_other_widths) {
    struct pe_error err = {0};
    struct pe_tensor *x = relative_tensor(arena, PE_DTYPE_F64, 2, (const size_t[]){2, 6});
    struct pe_work work;
    struct pe_attention_result got;
    for (int seeded = 0; seeded < 2; seeded++) {
        struct pe_plan *plan = NULL;
        struct pe_spec spec;
        relative_spec(arena, &spec, "shaw",
                      seeded ? (const char *const[]){"seed", "1", "head_dim", "4", NULL}
                             : (const char *const[]){NULL});
        err = (struct pe_error){0};
        struct pe_tensor *keys = relative_tensor(arena, PE_DTYPE_F64, 2, (const size_t[]){3, 4});
        ck_assert(seeded || pe_spec_set_tensor(&spec, "keys", keys, &err) == PE_OK);
        ck_assert_msg(pe_plan_open(&plan, &spec, &err) == PE_OK, "%s: %s", err.path, err.text);
        struct pe_attention_args args = {.size = sizeof args, .plan = plan, .q = x, .k = x};
        ck_assert_int_eq(pe_attention_open(arena, &work, &got, &args, &err),
                         seeded ? PE_ERR_CONFLICT : PE_ERR_SHAPE);
        ck_assert_str_eq(err.path, seeded ? "encoding.head_dim" : "encoding.keys");
        pe_plan_close(plan);
    }
}
END_TEST

Suite *shaw_suite(void) {
    Suite *suite = suite_create("shaw");
    TCase *numbers = tcase_create("numbers"), *refused = tcase_create("refused");
    suite_add_tcase(suite, numbers);
    tcase_add_checked_fixture(numbers, setup, teardown);
    tcase_add_loop_test(numbers, as_defined_pair_by_pair, 0, (int)PE_COUNT(cases) * PLACES_REAL);
    tcase_add_test(numbers, every_distance_takes_its_row);
    tcase_add_test(numbers, plans_for_other_widths);
    suite_add_tcase(suite, refused);
    tcase_add_checked_fixture(refused, ground_setup, ground_teardown);
    tcase_add_test(refused, tables_of_one_file);
    tcase_add_loop_test(refused, bad_requests, 0, (int)PE_COUNT(bad));
    return suite;
}
