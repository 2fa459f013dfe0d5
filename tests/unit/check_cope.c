/* SPDX-License-Identifier: MIT
 *
 * CoPE against its definition, summed up pair by pair, at sizes of several blocks, with random masks and
 * places; and every way in which it may be asked for wrongly.
 */
#include "relative_run.h"
#include "report_run.h"
#include "suites.h"

#include <math.h>

enum { QUERIES = 140, KEYS = 170, WIDTH = 3, HEADS = 2 };

static struct pe_arena *arena;

static void setup(void) {
    struct pe_error err = {0};
    arena = pe_arena_open((size_t)512 << 20, NULL, &err);
    pe_linalg_init();
}

static void teardown(void) {
    pe_arena_close(arena);
}

/* ---- Numbers ------------------------------------------------------------------------------------------- */

static const struct cope_case {
    size_t rows;
    bool by_head, causal;
    int step; /* of places, in no order where it is not 1 */
    enum pe_dtype dtype;
    double tolerance;
} cases[] = {
    {200, false, true, 1, PE_DTYPE_F64, 1e-12},  {20, true, true, 1, PE_DTYPE_F64, 1e-12},
    {1, false, true, 1, PE_DTYPE_F64, 1e-12},    {9, false, false, 1, PE_DTYPE_F64, 1e-12},
    {200, true, false, 37, PE_DTYPE_F64, 1e-12}, {15, false, true, 37, PE_DTYPE_F64, 1e-12},
    {200, true, true, 1, PE_DTYPE_F32, 2e-5},    {12, true, false, 37, PE_DTYPE_F32, 2e-5},
};

struct run {
    const struct cope_case *is;
    const double *q, *k, *e, *keep;
    double query_positions[QUERIES], key_positions[KEYS];
};

static const double *loaded(const struct pe_tensor *tensor) {
    struct pe_error err = {0};
    double *out = pe_arena_array(arena, pe_tensor_count(tensor), sizeof *out, &err);
    ck_assert_int_eq(pe_tensor_load(tensor, out, &err), PE_OK);
    return out;
}

static double dot(const double *a, const double *b) {
    double sum = 0;
    for (size_t c = 0; c < WIDTH; c++) {
        sum += a[c] * b[c];
    }
    return sum;
}

/* One key head for both heads. */
static double gate(const struct run *run, size_t h, size_t i, size_t t) {
    bool seen = run->keep[t] != 0 && (!run->is->causal || t <= i + KEYS - QUERIES);
    double x = dot(run->q + (h * QUERIES + i) * WIDTH, run->k + t * WIDTH) / sqrt(WIDTH);
    return seen ? 1 / (1 + exp(-x)) : 0;
}

static double term(const struct run *run, size_t h, size_t i, size_t j) {
    const double *e = run->e + (run->is->by_head ? h * run->is->rows * WIDTH : 0);
    const double *q = run->q + (h * QUERIES + i) * WIDTH;
    double p = 0;
    for (size_t t = 0; t < KEYS; t++) {
        bool between = run->key_positions[j] <= run->key_positions[t] &&
                       run->key_positions[t] <= run->query_positions[i];
        p += between ? gate(run, h, i, t) : 0;
    }
    p = fmin(p, (double)run->is->rows - 1);
    double part = p - floor(p);
    return dot(q, e + (size_t)floor(p) * WIDTH) * (1 - part) + dot(q, e + (size_t)ceil(p) * WIDTH) * part;
}

static void places_make(struct run *run) {
    for (size_t j = 0; j < KEYS; j++) {
        run->key_positions[j] = run->is->step == 1 ? (double)j : (double)((int)j * run->is->step % 101);
    }
    for (size_t i = 0; i < QUERIES; i++) {
        run->query_positions[i] = run->key_positions[i + KEYS - QUERIES];
    }
}

START_TEST(as_defined_pair_by_pair) {
    struct run run = {.is = &cases[_i]};
    struct pe_error err = {0};
    enum pe_dtype dtype = run.is->dtype;
    const struct pe_tensor *q = relative_tensor(arena, dtype, 3, (const size_t[]){HEADS, QUERIES, WIDTH}),
                           *k = relative_tensor(arena, dtype, 3, (const size_t[]){1, KEYS, WIDTH}),
                           *e = relative_tensor(arena, PE_DTYPE_F64, run.is->by_head ? 3 : 2,
                                                (const size_t[]){HEADS, run.is->rows, WIDTH} +
                                                    !run.is->by_head),
                           *keep = relative_tensor(arena, PE_DTYPE_F64, 1, (const size_t[]){KEYS});
    for (size_t j = 0; j < KEYS; j++) {
        ((double *)keep->data)[j] = ((double *)keep->data)[j] > -0.6;
    }
    run.q = loaded(q), run.k = loaded(k), run.e = loaded(e), run.keep = keep->data;
    places_make(&run);
    struct pe_spec spec;
    struct pe_plan *plan = NULL;
    relative_spec(arena, &spec, "cope", (const char *const[]){NULL});
    ck_assert_int_eq(pe_spec_set_tensor(&spec, "pos_emb", e, &err), PE_OK);
    ck_assert_msg(pe_plan_open(&plan, &spec, &err) == PE_OK, "%s: %s", err.path, err.text);
    const struct pe_positions queries = {.length = QUERIES, .axes = 1, .list = run.query_positions},
                              keys = {.length = KEYS, .axes = 1, .list = run.key_positions};
    const struct pe_attention_mask mask = {.size = sizeof mask, .causal = run.is->causal, .keep = keep};
    const struct pe_attention_args args = {.size = sizeof args,
                                           .plan = plan,
                                           .q = q,
                                           .k = k,
                                           .mask = &mask,
                                           .query_positions = &queries,
                                           .key_positions = &keys,
                                           .outputs = PE_ATTENTION_POSITION};
    struct pe_work work;
    struct pe_attention_result got;
    ck_assert_msg(pe_attention_open(arena, &work, &got, &args, &err) == PE_OK, "%s: %s", err.path, err.text);
    pe_work_run(&work);
    const double *position = loaded(&got.position);
    for (size_t at = 0; at < (size_t)HEADS * QUERIES * KEYS; at++) {
        size_t i = at / KEYS % QUERIES, j = at % KEYS;
        ck_assert_double_eq_tol(position[at], term(&run, at / KEYS / QUERIES, i, j), run.is->tolerance);
    }
    pe_plan_close(plan);
}
END_TEST

/* In C nobody has made the plan for these queries. */
START_TEST(plans_for_other_widths) {
    struct pe_error err = {0};
    struct pe_tensor *x = relative_tensor(arena, PE_DTYPE_F64, 2, (const size_t[]){2, 6});
    struct pe_work work;
    struct pe_attention_result got;
    struct pe_plan *plan = NULL;
    struct pe_spec spec;
    relative_spec(arena, &spec, "cope",
                  _i ? (const char *const[]){"seed", "1", "head_dim", "4", NULL}
                     : (const char *const[]){NULL});
    struct pe_tensor *e = relative_tensor(arena, PE_DTYPE_F64, 2, (const size_t[]){3, 4});
    ck_assert(_i || pe_spec_set_tensor(&spec, "pos_emb", e, &err) == PE_OK);
    ck_assert_msg(pe_plan_open(&plan, &spec, &err) == PE_OK, "%s: %s", err.path, err.text);
    struct pe_attention_args args = {.size = sizeof args, .plan = plan, .q = x, .k = x};
    ck_assert_int_eq(pe_attention_open(arena, &work, &got, &args, &err), _i ? PE_ERR_CONFLICT : PE_ERR_SHAPE);
    ck_assert_str_eq(err.path, _i ? "encoding.head_dim" : "encoding.pos_emb");
    pe_plan_close(plan);
}
END_TEST

/* ---- What is refused ----------------------------------------------------------------------------------- */

#define POST    "POST /v1/attention"
#define Q       "\"q\":[[1,2],[3,4]],\"k\":[[1,2],[3,4]]"
#define COPE(p) "{" Q ",\"encoding\":{\"type\":\"cope\"" p "}}"
#define TWO     ",\"pos_emb\":[[1,2],[3,4]]"

static const struct {
    const char *body, *slug, *field, *detail;
} bad[] = {
    /* clang-format off */
    {COPE(""), "missing", "encoding.pos_emb", "is missing: give the table, or a seed for a random one"},
    {COPE(TWO ",\"seed\":1"), "conflict", "encoding.pos_emb", "is given, and so is seed: give one of them"},
    {COPE(",\"pos_emb\":\"nowhere\""), "unknown_name", "encoding.pos_emb",
     "no table is named \"nowhere\"; loaded are: none"},
    {COPE(",\"pos_emb\":[1,2]"), "shape", "encoding.pos_emb",
     "has shape [2], allowed are [npos_max, d] and [H, npos_max, d], npos_max and d from 1 to 65536"},
    {COPE(",\"pos_emb\":{\"shape\":[0,2],\"data\":[]}"), "shape", "encoding.pos_emb",
     "has shape [0, 2], allowed are [npos_max, d] and [H, npos_max, d], npos_max and d from 1 to 65536"},
    {COPE(TWO ",\"npos_max\":3"), "shape", "encoding.pos_emb", "has shape [2, 2], but npos_max is 3"},
    {COPE(",\"pos_emb\":[[1,2,3]]"), "shape", "encoding.pos_emb", "has shape [1, 3], but heads are 2 wide"},
    {COPE(",\"pos_emb\":[[[1,2]],[[3,4]]]"), "shape", "encoding.pos_emb", "is for 2 heads, but there are 1"},
    {COPE(TWO ",\"head_dim\":3"), "conflict", "encoding.head_dim", NULL},
    {COPE(",\"seed\":1,\"npos_max\":0"), "range", "encoding.npos_max",
     "must be at least 1 and at most 65536, got 0"},
    {COPE(",\"seed\":1,\"npos_max\":65537"), "range", "encoding.npos_max",
     "must be at least 1 and at most 65536, got 65537"},
    {COPE(",\"seed\":1,\"npos_max\":2.5"), "type", "encoding.npos_max", NULL},
    {COPE(",\"seed\":1,\"std\":0"), "range", "encoding.std", "must be above 0 and at most 1000, got 0"},
    {COPE(",\"seed\":-1"), "range", "encoding.seed", "must be at least 0 and at most 9007199254740992, got -1"},
    {"{" Q ",\"dtype\":\"float32\",\"encoding\":{\"type\":\"cope\",\"pos_emb\":{\"dtype\":\"float64\",\"data\":[[1e300,0]]}}}",
     "range", "encoding", NULL},
    /* clang-format on */
};

START_TEST(bad_requests) {
    struct call_try try = {.request = POST, .body = bad[_i].body};
    call_expect_problem(&report_ground, &try, 400, bad[_i].slug, bad[_i].field, bad[_i].detail);
    call_try_close(&try);
}
END_TEST

START_TEST(seeds_have_a_limit) {
    struct pe_error err = {0};
    struct pe_spec spec;
    struct pe_plan *plan = NULL;
    relative_spec(arena, &spec, "cope",
                  (const char *const[]){"seed", "1", "head_dim", "65", "npos_max", "65536", NULL});
    ck_assert_int_eq(pe_plan_open(&plan, &spec, &err), PE_ERR_RANGE);
    ck_assert_str_eq(err.path, "npos_max");
    ck_assert_str_eq(err.text, "makes 65536 rows of width 65 from the seed, allowed are 4194304 numbers");
    err = (struct pe_error){0};
    relative_spec(arena, &spec, "cope", (const char *const[]){"seed", "1", NULL});
    ck_assert_int_eq(pe_plan_open(&plan, &spec, &err), PE_ERR_MISSING);
    ck_assert_str_eq(err.path, "head_dim");
}
END_TEST

Suite *cope_suite(void) {
    Suite *suite = suite_create("cope");
    TCase *numbers = tcase_create("numbers"), *refused = tcase_create("refused");
    suite_add_tcase(suite, numbers);
    tcase_add_checked_fixture(numbers, setup, teardown);
    tcase_add_loop_test(numbers, as_defined_pair_by_pair, 0, (int)PE_COUNT(cases));
    tcase_add_loop_test(numbers, plans_for_other_widths, 0, 2);
    tcase_add_test(numbers, seeds_have_a_limit);
    suite_add_tcase(suite, refused);
    tcase_add_checked_fixture(refused, report_setup, report_teardown);
    tcase_add_loop_test(refused, bad_requests, 0, (int)PE_COUNT(bad));
    return suite;
}
