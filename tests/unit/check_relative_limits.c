/* SPDX-License-Identifier: MIT
 *
 * What relative encodings take, and when: memory beside the result, a result that is too large, questions
 * whether to stop, and numbers that would overflow.
 */
#include "posenc.h"
#include "report_run.h"
#include "suites.h"

#include <math.h>
#include <string.h>

static struct pe_arena *arena;
static struct pe_plan *plan;
static struct pe_error err;

static size_t asked;
static bool count(void *context) {
    (void)context;
    asked++;
    return false;
}
static const struct pe_stop stop = {.asked = count};

static void open(size_t limit, const char *type, const char *name, const char *value) {
    struct pe_spec spec;
    struct pe_arena *own = pe_arena_open((size_t)1 << 20, NULL, &err);
    ck_assert_int_eq(pe_spec_init(own, &spec, type, &err), PE_OK);
    if (name) {
        ck_assert_int_eq(pe_spec_set(own, &spec, name, value, &err), PE_OK);
    }
    ck_assert_int_eq(pe_plan_open(&plan, &spec, &err), PE_OK);
    pe_arena_close(own);
    arena = pe_arena_open(limit, NULL, &err);
}

static void teardown(void) {
    pe_plan_close(plan);
    pe_arena_close(arena);
    plan = NULL;
    arena = NULL;
    err = (struct pe_error){0};
    asked = 0;
}

/* Positions first .. first+n-1, by a rule or as a list. */
static struct pe_positions places(double first, size_t n, double *list) {
    for (size_t i = 0; list && i < n; i++) {
        list[i] = first + (double)i;
    }
    return (struct pe_positions){.length = n, .axes = 1, .start = first, .step = 1, .list = list};
}

/* ---- Memory -------------------------------------------------------------------------------------------- */

enum { KEYS = 4096, QUERIES = 512, WIDTH = 8 };
static float keys_of_zero[KEYS * WIDTH];
static double list_q[KEYS], list_k[KEYS];

static struct pe_tensor vectors(size_t n) {
    return (struct pe_tensor){keys_of_zero, PE_DTYPE_F32, 3, {1, n, WIDTH}};
}

/* One head of sixteen and a block of the queries: nothing of the size of all heads or all queries. Each lane keeps the
 * keys packed, which are WIDTH/QUERIES of the result for each of a few lanes. */
START_TEST(attention_takes_little_beside_its_result) {
    static const double head[1] = {3};
    open((size_t)1 << 26, "alibi", NULL, NULL);
    struct pe_tensor q = vectors(QUERIES), k = vectors(KEYS),
                     index = {(void *)(uintptr_t)head, PE_DTYPE_F64, 1, {1}};
    struct pe_positions of_q = places(KEYS - QUERIES, QUERIES, _i ? list_q : NULL),
                        of_k = places(0, KEYS, _i ? list_k : NULL);
    struct pe_attention_args args = {.size = sizeof args,
                                     .plan = plan,
                                     .q = &q,
                                     .k = &k,
                                     .heads = 16,
                                     .head_index = &index,
                                     .query_positions = &of_q,
                                     .key_positions = &of_k};
    struct pe_attention_result result;
    struct pe_work work;
    size_t before = pe_arena_used(arena), bytes = sizeof(float) * QUERIES * KEYS;
    ck_assert_msg(pe_attention_open(arena, &work, &result, &args, &err) == PE_OK, "%s: %s", err.path,
                  err.text);
    ck_assert(pe_work_run(&work));
    ck_assert_uint_ge(pe_arena_used(arena) - before, bytes);
    ck_assert_uint_lt(pe_arena_used(arena) - before, bytes + bytes / 10);
}
END_TEST

START_TEST(bias_takes_little_beside_its_result) {
    static const double head[1] = {3};
    open((size_t)1 << 26, "alibi", NULL, NULL);
    struct pe_tensor index = {(void *)(uintptr_t)head, PE_DTYPE_F64, 1, {1}}, bias;
    struct pe_positions of_q = places(KEYS - QUERIES, QUERIES, _i ? list_q : NULL),
                        of_k = places(0, KEYS, _i ? list_k : NULL);
    struct pe_bias_args args = {.size = sizeof args,
                                .plan = plan,
                                .heads = 16,
                                .head_index = &index,
                                .query_positions = &of_q,
                                .key_positions = &of_k};
    struct pe_work work;
    size_t before = pe_arena_used(arena), bytes = sizeof(float) * QUERIES * KEYS;
    ck_assert_int_eq(pe_bias_open(arena, &work, &bias, &args, &err), PE_OK);
    ck_assert(pe_work_run(&work));
    ck_assert_uint_ge(pe_arena_used(arena) - before, bytes);
    ck_assert_uint_lt(pe_arena_used(arena) - before, bytes + bytes / 50);
}
END_TEST

/* A result that does not fit is refused before anything is made for it: no lists, and no biases, which may
 * take long. */
START_TEST(a_bias_too_large_takes_nothing) {
    open((size_t)1 << 20, "sandwich", "d_model", "4096");
    struct pe_positions at = places(0, KEYS, NULL);
    struct pe_bias_args args = {.size = sizeof args, .plan = plan, .heads = 16, .query_positions = &at};
    struct pe_work work;
    struct pe_tensor bias;
    err.stop = &stop;
    size_t before = pe_arena_used(arena);
    ck_assert_int_eq(pe_bias_open(arena, &work, &bias, &args, &err), PE_ERR_LIMIT);
    ck_assert_str_eq(err.path, "key_positions");
    ck_assert_uint_lt(pe_arena_used(arena) - before, 4096);
    ck_assert_uint_lt(asked, 10);
}
END_TEST

START_TEST(attention_too_large_makes_no_biases) {
    open((size_t)1 << 20, "sandwich", "d_model", "4096");
    struct pe_tensor q = vectors(KEYS);
    struct pe_attention_args args = {.size = sizeof args, .plan = plan, .q = &q, .k = &q};
    struct pe_attention_result result;
    struct pe_work work;
    err.stop = &stop;
    size_t before = pe_arena_used(arena);
    ck_assert_int_eq(pe_attention_open(arena, &work, &result, &args, &err), PE_ERR_LIMIT);
    ck_assert_uint_lt(pe_arena_used(arena) - before, 2 * sizeof list_q + 8192); /* the positions' lists */
    ck_assert_uint_lt(asked, 50);
}
END_TEST

/* ---- Time ---------------------------------------------------------------------------------------------- */

/* A bias of 2048 cosines, or of 4096 units, takes long enough that few are made between two questions. */
static const float *units(size_t n) {
    float *out = pe_arena_array(arena, n, sizeof *out, &err);
    for (size_t i = 0; out && i < n; i++) {
        out[i] = (float)(i % 7) / 8;
    }
    return out;
}

static void fire_open(void) {
    enum { N = 4096 };
    static const char *const names[] = {"w1", "b1", "w2", "b2"};
    struct pe_spec spec;
    arena = pe_arena_open((size_t)1 << 24, NULL, &err);
    ck_assert_int_eq(pe_spec_init(arena, &spec, "fire", &err), PE_OK);
    const size_t dim[4][2] = {{N}, {N}, {N, 1}, {1}};
    static struct pe_tensor tensor[4];
    for (size_t i = 0; i < 4; i++) {
        tensor[i] = (struct pe_tensor){
            (void *)(uintptr_t)units(N), PE_DTYPE_F32, i == 2 ? 2 : 1, {dim[i][0], dim[i][1]}};
        ck_assert_int_eq(pe_spec_set_tensor(&spec, names[i], &tensor[i], &err), PE_OK);
    }
    ck_assert_msg(pe_plan_open(&plan, &spec, &err) == PE_OK, "%s: %s", err.path, err.text);
}

START_TEST(dear_biases_are_asked_between) {
    static const struct {
        size_t keys, at_most; /* biases between two questions */
    } of[] = {{60, 25}, {1024, 250}};
    size_t n = of[_i / 2].keys;
    if (_i / 2) {
        fire_open();
    } else {
        open((size_t)1 << 24, "sandwich", "d_model", "4096");
    }
    struct pe_tensor q = vectors(2), k = vectors(n), bias;
    struct pe_positions of_q = places(0, 2, NULL), of_k = places(0, n, NULL);
    struct pe_work work;
    struct pe_attention_result result;
    err.stop = &stop;
    if (_i % 2) {
        struct pe_attention_args args = {.size = sizeof args, .plan = plan, .q = &q, .k = &k};
        ck_assert_int_eq(pe_attention_open(arena, &work, &result, &args, &err), PE_OK);
    } else {
        struct pe_bias_args args = {
            .size = sizeof args, .plan = plan, .heads = 1, .query_positions = &of_q, .key_positions = &of_k};
        ck_assert_int_eq(pe_bias_open(arena, &work, &bias, &args, &err), PE_OK);
    }
    ck_assert(work.cost_ns > 1000.0 * (double)(2 * n)); /* nor is it done where requests are read */
    asked = 0;
    ck_assert(pe_work_run(&work));
    ck_assert_uint_ge(asked, 2 * n / of[_i / 2].at_most);
}
END_TEST

/* ---- Numbers ------------------------------------------------------------------------------------------- */

#define BIAS             "POST /v1/bias?dtype=float64"
#define ATTENTION        "POST /v1/attention"
#define F64(shape, data) "{\"shape\":[" shape "],\"dtype\":\"float64\",\"data\":" data "}"
#define HUGE2            F64("2", "[1e308,-1e308]")
#define ZERO21           F64("2,1", "[[0],[0]]")

/* What comes out infinite on the way, and NaN where it meets a 0, is refused by the bound, never returned. */
START_TEST(networks_that_overflow_are_refused) {
    static const char fire[] =
        "{\"encoding\":{\"type\":\"fire\",\"w1\":" HUGE2 ",\"b1\":" HUGE2 ",\"w2\":" ZERO21 ",\"b2\":[0]}";
    static const char swin[] = "{\"encoding\":{\"type\":\"swin_v2\",\"window\":[1,2],\"w1\":" F64(
        "2,1", "[[1.75e308],[1.75e308]]") ",\"b1\":[0],\"w2\":[[0]]}";
    static const char swin2[] = "{\"encoding\":{\"type\":\"swin_v2\",\"window\":[1,2],\"w1\":" F64(
        "2,1", "[[0],[1e200]]") ",\"b1\":[0],\"w2\":" F64("1,1", "[[1e200]]") "}";
    char body[1000];
    snprintf(body, sizeof body, "%s,\"heads\":1,\"query_positions\":[0],\"key_positions\":[700]}", fire);
    report_refused(BIAS, body, "range", "key_positions", REPORT_WORDS("biases may reach inf"));
    snprintf(body, sizeof body, "%s,\"q\":[[1]],\"k\":[[1]],\"key_positions\":[700]}", fire);
    report_refused(ATTENTION, body, "range", "encoding", REPORT_WORDS("may reach inf"));
    snprintf(body, sizeof body, "%s,\"heads\":1}", swin);
    report_refused(BIAS, body, "range", "encoding.w1", REPORT_WORDS("unit 0", "float64"));
    snprintf(body, sizeof body, "%s,\"heads\":1}", swin2);
    report_refused(BIAS, body, "range", "encoding.w2", REPORT_WORDS("output 0", "float64"));
}
END_TEST

/* Whoever opens a plan is asked while its table is looked through. */
static const struct {
    const char *type, *table, *name, *value; /* a parameter beside it; NULL: none */
    int rank;
    size_t dim[2], passes; /* over the table */
} large[] = {
    {"custom", "by_distance", NULL, NULL, 1, {524287, 1}, 1},
    {"shaw", "keys", NULL, NULL, 2, {8193, 64}, 1},
    {"transformer_xl", "table", "first_distance", "9", 2, {8192, 64}, 1},
    {"transformer_xl", "w_r", NULL, NULL, 2, {1024, 512}, 1},
    {"deberta", "rel_embeddings", NULL, NULL, 2, {512, 1024}, 4},
    {"cope", "pos_emb", NULL, NULL, 2, {8192, 64}, 1},
};

START_TEST(a_large_table_is_asked_between) {
    enum { MANY = 8193 * 64, STEP = 65536 };
    static float numbers[MANY];
    struct pe_tensor table = {numbers, PE_DTYPE_F32, large[_i].rank, {large[_i].dim[0], large[_i].dim[1]}};
    struct pe_spec spec;
    arena = pe_arena_open((size_t)1 << 20, NULL, &err);
    ck_assert_uint_le(pe_tensor_count(&table), MANY);
    ck_assert_int_eq(pe_spec_init(arena, &spec, large[_i].type, &err), PE_OK);
    ck_assert_int_eq(pe_spec_set_tensor(&spec, large[_i].table, &table, &err), PE_OK);
    if (large[_i].name) {
        ck_assert_int_eq(pe_spec_set(arena, &spec, large[_i].name, large[_i].value, &err), PE_OK);
    }
    err.stop = &stop;
    ck_assert_msg(pe_plan_open(&plan, &spec, &err) == PE_OK, "%s: %s", err.path, err.text);
    ck_assert_uint_ge(asked, large[_i].passes * (pe_tensor_count(&table) / STEP));
}
END_TEST

/* A bias of the key alone reaches as far as the keys do, so small ones fit a small type. */
START_TEST(a_bias_by_the_key_fits_where_the_keys_do) {
    static const double furthest[] = {65504, 65505};
    open((size_t)1 << 20, "alibi", "form", "causal_key");
    struct pe_positions of_q = places(0, 2, NULL), of_k = places(furthest[_i] - 3, 4, NULL);
    struct pe_bias_args args = {.size = sizeof args,
                                .plan = plan,
                                .heads = 1,
                                .query_positions = &of_q,
                                .key_positions = &of_k,
                                .dtype = PE_DTYPE_F16};
    struct pe_work work;
    struct pe_tensor bias;
    ck_assert_int_eq(pe_bias_open(arena, &work, &bias, &args, &err), _i ? PE_ERR_RANGE : PE_OK);
}
END_TEST

/* Slopes and seeds count heads in 32 bits. */
START_TEST(heads_have_an_end) {
    static const size_t heads[] = {65536, 65537, SIZE_MAX};
    static const double last[1] = {65535};
    open((size_t)1 << 20, "alibi", NULL, NULL);
    struct pe_tensor index = {(void *)(uintptr_t)last, PE_DTYPE_F64, 1, {1}}, bias;
    struct pe_positions at = places(0, 2, NULL);
    struct pe_bias_args args = {
        .size = sizeof args, .plan = plan, .heads = heads[_i], .head_index = &index, .query_positions = &at};
    struct pe_work work;
    ck_assert_int_eq(pe_bias_open(arena, &work, &bias, &args, &err), _i ? PE_ERR_RANGE : PE_OK);
    ck_assert_str_eq(err.path, _i ? "heads" : "");
}
END_TEST

Suite *relative_limits_suite(void) {
    Suite *suite = suite_create("relative_limits");
    TCase *tests = tcase_create("library"), *calls = tcase_create("service");
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, calls);
    tcase_add_checked_fixture(tests, NULL, teardown);
    tcase_add_checked_fixture(calls, report_setup, report_teardown);
    tcase_add_loop_test(tests, attention_takes_little_beside_its_result, 0, 2);
    tcase_add_loop_test(tests, bias_takes_little_beside_its_result, 0, 2);
    tcase_add_test(tests, a_bias_too_large_takes_nothing);
    tcase_add_test(tests, attention_too_large_makes_no_biases);
    tcase_add_loop_test(tests, dear_biases_are_asked_between, 0, 4);
    tcase_add_loop_test(tests, a_large_table_is_asked_between, 0, (int)PE_COUNT(large));
    tcase_add_loop_test(tests, a_bias_by_the_key_fits_where_the_keys_do, 0, 2);
    tcase_add_loop_test(tests, heads_have_an_end, 0, 3);
    tcase_add_test(calls, networks_that_overflow_are_refused);
    return suite;
}
