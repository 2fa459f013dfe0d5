/* SPDX-License-Identifier: MIT
 *
 * DeBERTa's terms against their definition for one pair, wherever queries and keys are; the rows of all
 * distances up to 4096; and every way in which it may be asked for wrongly.
 */
#include "relative_run.h"
#include "report_run.h"
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

/* ---- Numbers ------------------------------------------------------------------------------------------- */

static const struct deberta_case {
    const char *buckets, *most, *terms;
    double n_terms, tolerance;
    enum pe_dtype dtype;
} cases[] = {
    {"8", "40", "c2p,p2c", 2, 1e-12, PE_DTYPE_F64},   {"-1", "9", "p2c,c2p", 2, 1e-12, PE_DTYPE_F64},
    {"0", "200", "c2p,p2c", 2, 1e-12, PE_DTYPE_F64},  {"256", "512", "c2p", 1, 1e-12, PE_DTYPE_F64},
    {"32", "129", "p2c", 1, 1e-12, PE_DTYPE_F64},     {"2", "3", "c2p,p2c", 2, 1e-12, PE_DTYPE_F64},
    {"256", "512", "c2p,p2c", 2, 1e-6, PE_DTYPE_F32}, {"8", "6", "p2c,c2p", 2, 1e-6, PE_DTYPE_F32},
};

struct context {
    double buckets, most;
    bool c2p, p2c;
    const double *keys, *queries; /* [2 span, columns] */
    size_t columns;
};

/* The formula, with logarithms in long double: no edge of these settings is a whole number but 32 and 64 of
 * 32 buckets to 129, which are of the row before. */
static size_t row_of(const struct context *is, double r) {
    double n = fabs(r), mid = floor(is->buckets / 2), span = is->buckets > 0 ? is->buckets : is->most;
    double bucket = n;
    if (is->buckets > 0 && n > mid) {
        long double x = logl((long double)n / mid) / logl(((long double)is->most - 1) / mid) * (mid - 1);
        bucket = mid + (double)ceill(x - 1e-15L);
    }
    return (size_t)fmin(fmax(copysign(bucket, r) + span, 0), 2 * span - 1);
}

static double term(const struct relative_pair *pair, const void *given) {
    const struct context *is = given;
    size_t at = row_of(is, -pair->distance) * is->columns + pair->head * pair->d;
    double sum = 0;
    for (size_t c = 0; c < pair->d; c++) {
        sum +=
            (is->c2p ? pair->q[c] * is->keys[at + c] : 0) + (is->p2c ? pair->k[c] * is->queries[at + c] : 0);
    }
    return pair->scale * sum;
}

START_TEST(as_defined_pair_by_pair) {
    const struct relative_sizes sizes = {.b = 2, .h = 2, .hk = 1, .tq = 70, .tk = 150, .d = 5, .dv = 3};
    const struct deberta_case *is = &cases[(size_t)_i / PLACES_REAL];
    struct context context = {
        .buckets = strtod(is->buckets, NULL), .most = strtod(is->most, NULL), .columns = 10};
    struct pe_error err = {0};
    struct pe_spec spec;
    context.c2p = strstr(is->terms, "c2p") != NULL;
    context.p2c = strstr(is->terms, "p2c") != NULL;
    size_t rows = 2 * (size_t)(context.buckets > 0 ? context.buckets : context.most);
    const struct pe_tensor *keys = relative_tensor(arena, PE_DTYPE_F64, 2, (const size_t[]){rows, 10}),
                           *queries = relative_tensor(arena, PE_DTYPE_F64, 2, (const size_t[]){rows, 10});
    context.keys = keys->data;
    context.queries = queries->data;
    relative_spec(arena, &spec, "deberta",
                  (const char *const[]){"position_buckets", is->buckets, "max_relative_positions", is->most,
                                        "pos_att_type", is->terms, NULL});
    ck_assert(!context.c2p || pe_spec_set_tensor(&spec, "pos_keys", keys, &err) == PE_OK);
    ck_assert(!context.p2c || pe_spec_set_tensor(&spec, "pos_queries", queries, &err) == PE_OK);
    const struct relative_definition definition = {
        .term = term, .context = &context, .shrink = 1 / sqrt(1 + is->n_terms)};
    relative_compare(arena, &spec, &sizes, (enum relative_places)(_i % PLACES_REAL), is->dtype, &definition,
                     is->tolerance);
}
END_TEST

/* Row r of the table says r. */
START_TEST(every_distance_takes_its_row) {
    enum { REACH = 4096, KEYS = 2 * REACH + 1 };
    const struct context is = {.buckets = _i ? 0 : 256, .most = _i ? 3000 : 512};
    const double where = REACH;
    size_t rows = _i ? 6000 : 512;
    struct pe_error err = {0};
    struct pe_tensor *keys = relative_tensor(arena, PE_DTYPE_F64, 2, (const size_t[]){rows, 1}),
                     *q = relative_tensor(arena, PE_DTYPE_F64, 2, (const size_t[]){1, 1}),
                     *k = relative_tensor(arena, PE_DTYPE_F64, 2, (const size_t[]){KEYS, 1});
    struct pe_spec spec;
    struct pe_plan *plan = NULL;
    struct pe_work work;
    struct pe_attention_result got;
    for (size_t r = 0; r < rows; r++) {
        ((double *)keys->data)[r] = (double)r;
    }
    *(double *)q->data = 1;
    relative_spec(arena, &spec, "deberta",
                  (const char *const[]){"position_buckets", _i ? "0" : "256", "max_relative_positions",
                                        _i ? "3000" : "512", "pos_att_type", "c2p", NULL});
    ck_assert_int_eq(pe_spec_set_tensor(&spec, "pos_keys", keys, &err), PE_OK);
    ck_assert_int_eq(pe_plan_open(&plan, &spec, &err), PE_OK);
    const struct pe_positions query = {.length = 1, .axes = 1, .list = &where};
    const struct pe_attention_args args = {.size = sizeof args,
                                           .plan = plan,
                                           .q = q,
                                           .k = k,
                                           .scale = &(double){1},
                                           .query_positions = &query,
                                           .outputs = PE_ATTENTION_POSITION};
    ck_assert_msg(pe_attention_open(arena, &work, &got, &args, &err) == PE_OK, "%s: %s", err.path, err.text);
    pe_work_run(&work);
    for (int j = 0; j < KEYS; j++) {
        ck_assert_double_eq(((double *)got.position.data)[j], (double)row_of(&is, where - j));
    }
    pe_plan_close(plan);
}
END_TEST

/* Differences of positions that are no doubles any more: all distances are beyond the last bucket. */
START_TEST(the_farthest_take_the_last_row) {
    enum { N = 64 };
    double queries[N], keys[N];
    struct pe_error err = {0};
    struct pe_tensor *table = relative_tensor(arena, PE_DTYPE_F64, 2, (const size_t[]){8, 1}),
                     *ones = relative_tensor(arena, PE_DTYPE_F64, 2, (const size_t[]){N, 1});
    struct pe_spec spec;
    struct pe_plan *plan = NULL;
    struct pe_work work;
    struct pe_attention_result got;
    for (size_t i = 0; i < N; i++) {
        ((double *)ones->data)[i] = 1;
        queries[i] = -0x1p53 + (double)i;
        keys[i] = 0x1p53 - (N - 1) + (double)i;
    }
    for (size_t r = 0; r < 8; r++) {
        ((double *)table->data)[r] = (double)r + 1;
    }
    relative_spec(arena, &spec, "deberta",
                  (const char *const[]){"position_buckets", "4", "max_relative_positions", "5", NULL});
    ck_assert_int_eq(pe_spec_set_tensor(&spec, "pos_keys", table, &err), PE_OK);
    ck_assert_int_eq(pe_spec_set_tensor(&spec, "pos_queries", table, &err), PE_OK);
    ck_assert_int_eq(pe_plan_open(&plan, &spec, &err), PE_OK);
    const struct pe_positions low = {.length = N, .axes = 1, .list = queries},
                              high = {.length = N, .axes = 1, .list = keys};
    const struct pe_attention_args args = {.size = sizeof args,
                                           .plan = plan,
                                           .q = ones,
                                           .k = ones,
                                           .scale = &(double){1},
                                           .query_positions = _i ? &high : &low,
                                           .key_positions = _i ? &low : &high,
                                           .outputs = PE_ATTENTION_POSITION};
    ck_assert_msg(pe_attention_open(arena, &work, &got, &args, &err) == PE_OK, "%s: %s", err.path, err.text);
    pe_work_run(&work);
    for (size_t n = 0; n < (size_t)N * N; n++) {
        ck_assert_double_eq(((double *)got.position.data)[n], _i ? 16 : 2);
    }
    pe_plan_close(plan);
}
END_TEST

/* ---- What is refused ----------------------------------------------------------------------------------- */

#define POST       "POST /v1/attention"
#define Q          "\"q\":[[1,2],[3,4]],\"k\":[[1,2],[3,4]]"
#define DEBERTA(p) "{" Q ",\"encoding\":{\"type\":\"deberta\"" p "}}"
#define SMALL      ",\"position_buckets\":0,\"max_relative_positions\":1" /* two rows */
#define TWO(n)     ",\"" n "\":[[1,2],[3,4]]"
#define C2P        ",\"pos_att_type\":[\"c2p\"]"

static const struct {
    const char *body, *slug, *field, *detail;
} bad[] = {
    /* clang-format off */
    {DEBERTA(""), "missing", "encoding.rel_embeddings", "is missing: give the table, or a seed for a random one"},
    {DEBERTA(SMALL TWO("pos_keys")), "missing", "encoding.pos_queries",
     "is missing: give the table, or a seed for a random one"},
    {DEBERTA(SMALL TWO("pos_key_proj")), "missing", "encoding.rel_embeddings",
     "is missing: give the table, or a seed for a random one"},
    {DEBERTA(SMALL TWO("pos_keys") TWO("pos_queries") TWO("pos_key_proj")), "conflict", "encoding.pos_key_proj",
     "is given, but rel_embeddings, which it projects, is not"},
    {DEBERTA(SMALL TWO("rel_embeddings") TWO("pos_queries")), "conflict", "encoding.pos_queries",
     "is given, and so is rel_embeddings: give one of them"},
    {DEBERTA(SMALL TWO("rel_embeddings") ",\"seed\":1"), "conflict", "encoding.rel_embeddings",
     "is given, and so is seed: give one of them"},
    {DEBERTA(SMALL TWO("pos_queries") ",\"seed\":1"), "conflict", "encoding.pos_queries",
     "is given, and so is seed: give one of them"},
    {DEBERTA(SMALL C2P TWO("rel_embeddings") TWO("pos_query_proj")), "conflict", "encoding.pos_query_proj",
     "is given, but pos_att_type has no p2c"},
    {DEBERTA(SMALL C2P TWO("pos_keys") TWO("pos_queries")), "conflict", "encoding.pos_queries",
     "is given, but pos_att_type has no p2c"},
    {DEBERTA(SMALL C2P TWO("pos_queries")), "missing", "encoding.pos_keys",
     "is missing: give the table, or a seed for a random one"},
    {DEBERTA(SMALL TWO("rel_embeddings") ",\"pos_key_bias\":[1,2,3]"), "shape", "encoding.pos_key_bias",
     "has shape [3], allowed is [2], the columns of the projection"},
    {DEBERTA(SMALL TWO("rel_embeddings") ",\"pos_key_proj\":[[1,2]]"), "shape", "encoding.pos_key_proj",
     "has shape [1, 2], allowed is [2, H*d], with the D of rel_embeddings"},
    {DEBERTA(SMALL TWO("rel_embeddings") ",\"pos_key_proj\":[1,2]"), "shape", "encoding.pos_key_proj",
     "has shape [2], allowed is [2, H*d], with the D of rel_embeddings"},
    {DEBERTA(SMALL TWO("rel_embeddings") ",\"pos_key_proj\":[[1,2,3],[4,5,6]]"), "shape", "encoding.rel_embeddings",
     "gives p2c 2 columns, but c2p has 3: both are H*d"},
    {DEBERTA(SMALL TWO("rel_embeddings") ",\"pos_query_proj\":[[1,2,3],[4,5,6]]"), "shape", "encoding.pos_query_proj",
     "gives p2c 3 columns, but c2p has 2: both are H*d"},
    {DEBERTA(SMALL TWO("pos_keys") ",\"pos_queries\":[[1,2,3],[4,5,6]]"), "shape", "encoding.pos_queries",
     "has 3 columns, but pos_keys has 2"},
    {DEBERTA(SMALL ",\"rel_embeddings\":[[1,2,3],[4,5,6]]"), "shape", "encoding.rel_embeddings",
     "has 3 columns, but 1 heads of width 2 take 2"},
    {DEBERTA(SMALL C2P ",\"pos_keys\":[[1,2,3],[4,5,6]]"), "shape", "encoding.pos_keys",
     "has 3 columns, but 1 heads of width 2 take 2"},
    {DEBERTA(SMALL TWO("rel_embeddings") ",\"pos_key_proj\":[[1],[2]],\"pos_query_proj\":[[1],[2]]"), "shape",
     "encoding.pos_key_proj", "has 1 columns, but 1 heads of width 2 take 2"},
    {DEBERTA(SMALL ",\"rel_embeddings\":[1,2]"), "shape", "encoding.rel_embeddings",
     "has shape [2], allowed is [2, D]: two rows for each of 1 max_relative_positions"},
    {DEBERTA(SMALL ",\"rel_embeddings\":{\"shape\":[2,0],\"data\":[]}"), "shape", "encoding.rel_embeddings",
     "has shape [2, 0], allowed is [2, D]: two rows for each of 1 max_relative_positions"},
    {DEBERTA(SMALL ",\"rel_embeddings\":\"nowhere\""), "unknown_name", "encoding.rel_embeddings",
     "no table is named \"nowhere\"; loaded are: none"},
    {DEBERTA(SMALL TWO("rel_embeddings") ",\"pos_key_proj\":\"nowhere\""), "unknown_name", "encoding.pos_key_proj",
     "no table is named \"nowhere\"; loaded are: none"},
    {DEBERTA(",\"seed\":1,\"pos_att_type\":[]"), "range", "encoding.pos_att_type",
     "names no term: allowed are c2p, p2c, or both; the type none adds nothing"},
    {DEBERTA(",\"seed\":1,\"pos_att_type\":[\"c2p\",\"c2p\"]"), "conflict", "encoding.pos_att_type", "names c2p twice"},
    {DEBERTA(",\"seed\":1,\"pos_att_type\":[\"p2p\"]"), "choice", "encoding.pos_att_type",
     "must be a list of c2p, p2c, got \"p2p\""},
    {DEBERTA(",\"seed\":1,\"position_buckets\":-2"), "range", "encoding.position_buckets",
     "must be at least -1 and at most 4096, got -2"},
    {DEBERTA(",\"seed\":1,\"position_buckets\":4097"), "range", "encoding.position_buckets",
     "must be at least -1 and at most 4096, got 4097"},
    {DEBERTA(",\"seed\":1,\"position_buckets\":7"), "range", "encoding.position_buckets",
     "got 7, allowed are even numbers, or 0 for a row for each distance"},
    {DEBERTA(",\"seed\":1,\"max_relative_positions\":129"), "range", "encoding.max_relative_positions",
     "got 129, allowed is more than 129: of 256 buckets so many distances have one of their own"},
    {DEBERTA(",\"seed\":1,\"max_relative_positions\":0"), "range", "encoding.max_relative_positions",
     "must be at least 1 and at most 65536, got 0"},
    {DEBERTA(",\"seed\":1,\"max_relative_positions\":65537"), "range", "encoding.max_relative_positions",
     "must be at least 1 and at most 65536, got 65537"},
    {DEBERTA(",\"seed\":1,\"std\":0"), "range", "encoding.std", "must be above 0 and at most 1000, got 0"},
    {"{" Q ",\"query_positions\":[0,1.5],\"encoding\":{\"type\":\"deberta\",\"seed\":1}}", "range", "query_positions[1]",
     "got 1.5, allowed are whole numbers: buckets are of whole distances"},
    {"{" Q ",\"dtype\":\"float32\",\"encoding\":{\"type\":\"deberta\"" SMALL
     ",\"rel_embeddings\":{\"dtype\":\"float64\",\"data\":[[1e300,0],[0,0]]}}}", "range", "encoding", NULL},
    {"{" Q ",\"dtype\":\"float64\",\"encoding\":{\"type\":\"deberta\"" SMALL
     ",\"rel_embeddings\":{\"dtype\":\"float64\",\"data\":[[1e200,0],[0,0]]},"
     "\"pos_key_proj\":{\"dtype\":\"float64\",\"data\":[[1e200,0],[0,0]]}}}", "range", "encoding", NULL},
    /* clang-format on */
};

START_TEST(bad_requests) {
    struct call_try try = {.request = POST, .body = bad[_i].body};
    call_expect_problem(&report_ground, &try, 400, bad[_i].slug, bad[_i].field, bad[_i].detail);
    call_try_close(&try);
}
END_TEST

/* A few numbers ask for a projection of thousands of millions. */
START_TEST(projections_have_a_limit) {
    char body[20000];
    size_t at =
        (size_t)snprintf(body, sizeof body, "%s",
                         "{\"q\":[[1]],\"k\":[[1]],\"encoding\":{\"type\":\"deberta\",\"rel_embeddings\":[");
    for (int r = 0; r < 512; r++) {
        at += (size_t)snprintf(body + at, sizeof body - at, "%s[0]", r ? "," : "");
    }
    at += (size_t)snprintf(body + at, sizeof body - at, "],\"pos_key_proj\":[[");
    for (int c = 0; c < 8193; c++) {
        at += (size_t)snprintf(body + at, sizeof body - at, "%s0", c ? "," : "");
    }
    snprintf(body + at, sizeof body - at, "]],\"pos_att_type\":[\"c2p\"]}}");
    struct call_try try = {.request = POST, .body = body};
    call_expect_problem(&report_ground, &try, 413, "limit", "encoding",
                        "512 rows of 8193 columns are 4194816 numbers, at most 4194304 are allowed");
    call_try_close(&try);
}
END_TEST

Suite *deberta_suite(void) {
    Suite *suite = suite_create("deberta");
    TCase *numbers = tcase_create("numbers"), *refused = tcase_create("refused");
    suite_add_tcase(suite, numbers);
    tcase_add_checked_fixture(numbers, setup, teardown);
    tcase_add_loop_test(numbers, as_defined_pair_by_pair, 0, (int)PE_COUNT(cases) * PLACES_REAL);
    tcase_add_loop_test(numbers, every_distance_takes_its_row, 0, 2);
    tcase_add_loop_test(numbers, the_farthest_take_the_last_row, 0, 2);
    suite_add_tcase(suite, refused);
    tcase_add_checked_fixture(refused, report_setup, report_teardown);
    tcase_add_loop_test(refused, bad_requests, 0, (int)PE_COUNT(bad));
    tcase_add_test(refused, projections_have_a_limit);
    return suite;
}
