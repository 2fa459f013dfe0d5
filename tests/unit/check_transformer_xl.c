/* SPDX-License-Identifier: MIT
 *
 * transformer_xl, against its definition pair by pair, with sines and cosines of the distance itself; its
 * tables, and which distances they have; then all that it refuses.
 */
#include "call_run.h"
#include "relative_run.h"
#include "suites.h"

#include <math.h>
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

#define D_MODEL 6
#define FIRST   460 /* of the table; it goes to -FIRST */

static const struct relative_sizes sizes = {.b = 2, .h = 2, .hk = 1, .tq = 70, .tk = 150, .d = 5, .dv = 3};

struct context {
    const struct pe_tensor *w_r, *u, *v, *table; /* NULL: not given */
};

static double cell(const struct pe_tensor *tensor, size_t row, size_t column) {
    size_t columns = pe_tensor_count(tensor) / tensor->dim[0];
    double x;
    pe_dtype_load(tensor->dtype,
                  (const char *)tensor->data + (row * columns + column) * pe_dtype_size(tensor->dtype), 1,
                  &x);
    return x;
}

/* Element c of W_R R for query - key. */
static double projected(const struct context *is, double distance, size_t column) {
    double sum = 0;
    if (is->table) {
        return cell(is->table, (size_t)(FIRST - distance), column);
    }
    for (size_t m = 0; m < D_MODEL / 2; m++) {
        double angle = distance * pow(10000, -2.0 * (double)m / D_MODEL);
        sum += sin(angle) * cell(is->w_r, m, column) + cos(angle) * cell(is->w_r, D_MODEL / 2 + m, column);
    }
    return sum;
}

static double term(const struct relative_pair *pair, const void *given) {
    const struct context *is = given;
    double sum = 0;
    for (size_t c = 0; c < pair->d; c++) {
        double query = pair->q[c] + (is->v ? cell(is->v, pair->head, c) : 0);
        sum += query * projected(is, -pair->distance, pair->head * pair->d + c);
        sum += is->u ? cell(is->u, pair->head, c) * pair->k[c] : 0;
    }
    return pair->scale * sum;
}

static const struct {
    bool table, by_head, u, v;
    enum pe_dtype tables, dtype;
    double tolerance;
} cases[] = {
    {false, false, true, true, PE_DTYPE_F64, PE_DTYPE_F64, 1e-12},
    {false, false, false, false, PE_DTYPE_F64, PE_DTYPE_F64, 1e-12},
    {false, false, true, false, PE_DTYPE_BF16, PE_DTYPE_F64, 1e-12},
    {false, false, true, true, PE_DTYPE_F32, PE_DTYPE_F32, 1e-6},
    {true, false, true, true, PE_DTYPE_F64, PE_DTYPE_F64, 1e-12},
    {true, true, false, true, PE_DTYPE_F16, PE_DTYPE_F64, 1e-12},
    {true, true, true, true, PE_DTYPE_F64, PE_DTYPE_F32, 1e-6},
};

static void give(struct pe_spec *spec, const char *name, const struct pe_tensor *tensor) {
    struct pe_error err = {0};
    ck_assert_msg(!tensor || pe_spec_set_tensor(spec, name, tensor, &err) == PE_OK, "%s: %s", name, err.text);
}

START_TEST(as_defined_pair_by_pair) {
    size_t which = (size_t)_i / PLACES_COUNT, columns = sizes.h * sizes.d;
    enum relative_places places = (enum relative_places)(_i % PLACES_COUNT);
    enum pe_dtype dtype = cases[which].tables;
    const size_t of_heads[] = {sizes.h, sizes.d}, rows[] = {2 * FIRST + 1, sizes.h, sizes.d};
    struct context is = {0};
    struct pe_spec spec;
    if (cases[which].table && places == PLACES_REAL) {
        return; /* has whole distances alone, see below */
    }
    relative_spec(arena, &spec, "transformer_xl",
                  cases[which].table ? (const char *const[]){"first_distance", "460", NULL}
                                     : (const char *const[]){NULL});
    if (!cases[which].table) {
        is.w_r = relative_tensor(arena, dtype, 2, (const size_t[]){D_MODEL, columns});
    } else {
        is.table = cases[which].by_head
                       ? relative_tensor(arena, dtype, 3, rows)
                       : relative_tensor(arena, dtype, 2, (const size_t[]){rows[0], columns});
    }
    is.u = cases[which].u ? relative_tensor(arena, dtype, 2, of_heads) : NULL;
    is.v = cases[which].v ? relative_tensor(arena, dtype, 2, of_heads) : NULL;
    give(&spec, "w_r", is.w_r);
    give(&spec, "table", is.table);
    give(&spec, "content_bias", is.u);
    give(&spec, "position_bias", is.v);
    const struct relative_definition definition = {.term = term, .context = &is};
    relative_compare(arena, &spec, &sizes, places, cases[which].dtype, &definition, cases[which].tolerance);
}
END_TEST

static void weights_of(const struct pe_plan *plan, const struct pe_tensor *x, const struct pe_tensor *head,
                       struct pe_attention_result *result) {
    struct pe_error err = {0};
    struct pe_work work;
    const struct pe_attention_args args = {
        .size = sizeof args, .plan = plan, .q = x, .k = x, .heads = 2, .head_index = head};
    ck_assert_msg(!pe_attention_open(arena, &work, result, &args, &err), "%s: %s", err.path, err.text);
    ck_assert(pe_work_run(&work));
}

/* The last head alone takes its own columns of a matrix that is of the arithmetic's type already: by turning, and
 * with rows for all distances. */
START_TEST(a_head_takes_its_own_columns) {
    enum { D = 5 };
    const size_t T = _i ? 12 : 9;
    struct pe_error err = {0};
    struct pe_spec spec;
    struct pe_plan *plan;
    double index = 1;
    relative_spec(arena, &spec, "transformer_xl", (const char *const[]){NULL});
    give(&spec, "w_r", relative_tensor(arena, PE_DTYPE_F64, 2, (const size_t[]){D_MODEL, 2 * D}));
    ck_assert(!pe_plan_open(&plan, &spec, &err));
    const struct pe_tensor *both = relative_tensor(arena, PE_DTYPE_F64, 3, (const size_t[]){2, T, D}),
                           head = {&index, PE_DTYPE_F64, 1, {1}};
    struct pe_tensor last = *both;
    struct pe_attention_result whole, some;
    last.dim[0] = 1;
    last.data = (double *)both->data + T * D;
    weights_of(plan, both, NULL, &whole);
    weights_of(plan, &last, &head, &some);
    for (size_t i = 0; i < T * T; i++) {
        ck_assert_double_eq_tol(((const double *)some.weights.data)[i],
                                ((const double *)whole.weights.data)[T * T + i], 1e-14);
    }
    pe_plan_close(plan);
}
END_TEST

/* Far from zero as near it: sines of distances, not of rounded angles; where rows of all distances are made, as
 * heads are narrow, and where queries are turned. */
START_TEST(only_the_distance_counts) {
    struct pe_error err = {0};
    struct pe_spec spec;
    struct pe_plan *plan = NULL;
    const size_t d = _i ? 16 : 4;
    struct pe_tensor *q = relative_tensor(arena, PE_DTYPE_F64, 2, (const size_t[]){9, d}),
                     *w_r = relative_tensor(arena, PE_DTYPE_F64, 2, (const size_t[]){64, d});
    relative_spec(arena, &spec, "transformer_xl", (const char *const[]){NULL});
    give(&spec, "w_r", w_r);
    ck_assert_int_eq(pe_plan_open(&plan, &spec, &err), PE_OK);
    static const double starts[] = {0, 1e6, -0x1p40, 0x1p53 - 9};
    struct pe_attention_result got[PE_COUNT(starts)];
    for (size_t i = 0; i < PE_COUNT(starts); i++) {
        struct pe_positions at = {.length = 9, .axes = 1, .start = starts[i], .step = 1};
        struct pe_attention_args args = {.size = sizeof args, .plan = plan, .q = q, .k = q};
        struct pe_work work;
        args.query_positions = args.key_positions = &at;
        args.outputs = PE_ATTENTION_POSITION;
        ck_assert_int_eq(pe_attention_open(arena, &work, &got[i], &args, &err), PE_OK);
        pe_work_run(&work);
        for (size_t n = 0; n < 81; n++) {
            ck_assert_double_eq_tol(((double *)got[i].position.data)[n], ((double *)got[0].position.data)[n],
                                    2e-13);
        }
    }
    pe_plan_close(plan);
}
END_TEST

/* ---- Tables and distances ------------------------------------------------------------------------------ */

static struct call_ground ground;

static void ground_setup(void) {
    call_ground_open(&ground);
}

static void ground_teardown(void) {
    call_ground_close(&ground);
}

#define Q        "\"q\":[[1,2],[3,4]],\"k\":[[1,2],[3,4]]"
#define XL(p)    "{" Q ",\"encoding\":{\"type\":\"transformer_xl\"" p "}}"
#define AT(p, e) "{" Q "," p ",\"encoding\":{\"type\":\"transformer_xl\"" e "}}"
#define PAST     ",\"first_distance\":1,\"table\":[[1,0],[0,1]],\"content_bias\":[[1,1]]"
#define ZEROS    "[[0],[0],[0],[0],[0],[0]]"
#define W        ",\"w_r\":[[1,2],[3,4]]"

/* A causal mask hides what a table of the past lacks, in whichever way it is said. The logit of the hidden
 * pair is what is left of it: (1 + 1 + ...) u.k alone. */
START_TEST(only_what_is_seen_has_to_be_in_the_table) {
    static const char *const bodies[] = {
        AT("\"scale\":1,\"return\":\"position\",\"mask\":\"causal\"", PAST),
        AT("\"scale\":1,\"return\":\"position\",\"mask\":{\"keep\":[[1,0],[1,1]]}", PAST),
        AT("\"scale\":1,\"return\":\"position\",\"mask\":{\"window\":[1,0]}", PAST),
    };
    for (size_t i = 0; i < PE_COUNT(bodies); i++) {
        struct call_try try = {.request = "POST /v1/attention", .body = bodies[i]};
        call_try(&ground, &try);
        ck_assert_msg(try.status == 200, "%s: %s", bodies[i], try.reply);
        /* u.k is 3 and 7; row 0 is distance 1, row 1 is 0 */
        ck_assert_msg(strstr(try.reply, "[[5.0,7.0],[6.0,11.0]]") != NULL, "%s", try.reply);
        call_try_close(&try);
    }
}
END_TEST

static const struct {
    const char *body, *slug, *field, *detail;
} bad[] = {
    /* clang-format off */
    {XL(""), "missing", "encoding.w_r",
     "is missing: give it, or a table of projected sinusoids, or a seed for random numbers"},
    {XL(",\"content_bias\":[[1,2]]"), "missing", "encoding.w_r", NULL},
    {XL(W ",\"seed\":1"), "conflict", "encoding.w_r", "is given, and so is seed: give one of them"},
    {XL(",\"seed\":1,\"position_bias\":[[1,2]]"), "conflict", "encoding.position_bias",
     "is given, and so is seed: give one of them"},
    {XL(W ",\"first_distance\":1"), "conflict", "encoding.first_distance", "is of a table, and there is none"},
    {XL(W ",\"first_distance\":1,\"table\":[[1,2]]"), "conflict", "encoding.table",
     "is given, and so is w_r: give one of them"},
    {XL(",\"table\":[[1,2]]"), "missing", "encoding.first_distance",
     "is missing: query - key of the table's first row"},
    {XL(PAST ",\"d_model\":2"), "conflict", "encoding.d_model",
     "is of sinusoids, which table gives projected"},
    {XL(W ",\"d_model\":4"), "shape", "encoding.w_r", "has 2 rows, but d_model is 4"},
    {XL(",\"w_r\":[[1,2],[3,4],[5,6]]"), "range", "encoding.w_r",
     "makes sinusoids of width 3, allowed are even ones up to 65536: a sine and a cosine of each frequency"},
    {XL(",\"seed\":1,\"d_model\":7"), "range", "encoding.d_model", NULL},
    {XL(",\"seed\":1,\"d_model\":1"), "range", "encoding.d_model", "must be at least 2 and at most 65536, got 1"},
    {XL(",\"w_r\":[1,2]"), "shape", "encoding.w_r", "got shape [2], allowed is [d_model, H*d]"},
    {XL(",\"w_r\":[[[1,2]],[[1,2]]]"), "shape", "encoding.w_r", "got shape [2, 1, 2], allowed is [d_model, H*d]"},
    {XL(",\"w_r\":\"nowhere\""), "unknown_name", "encoding.w_r",
     "no table is named \"nowhere\"; loaded are: none"},
    {XL(",\"w_r\":[[1,2,3],[4,5,6]]"), "shape", "encoding.w_r",
     "has shape [2, 3], but there are 1 heads of width 2"},
    {XL(W ",\"content_bias\":[1,2]"), "shape", "encoding.content_bias", "got shape [2], allowed is [H, d]"},
    {XL(W ",\"content_bias\":[[1,2],[3,4]]"), "shape", "encoding.content_bias",
     "has shape [2, 2], but there are 1 heads of width 2"},
    {XL(W ",\"position_bias\":[[1,2,3]]"), "shape", "encoding.position_bias",
     "has shape [1, 3], but there are 1 heads of width 2"},
    {XL(",\"first_distance\":1,\"table\":[[[1],[0]],[[0],[1]]]"), "shape", "encoding.table",
     "has shape [2, 2, 1], but there are 1 heads of width 2"},
    {XL(",\"first_distance\":1.5,\"table\":[[1,2]]"), "type", "encoding.first_distance", NULL},
    {XL(W ",\"base\":0"), "range", "encoding.base", "must be at least 1 and at most 1e+300, got 0"},
    {XL(PAST), "range", "key_positions",
     "key 1 at 1 is at distance 1 from query 0 at 0, which sees it; allowed are distances (key - query) from "
     "-1 to 0"},
    {AT("\"key_positions\":[0,7]", PAST), "range", "key_positions[1]",
     "key 1 at 7 is at distance 7 from query 0 at 0, which sees it; allowed are distances (key - query) from "
     "-1 to 0"},
    {AT("\"query_positions\":[1,2],\"mask\":\"causal\"", PAST), "range", "query_positions[1]",
     "key 0 at 0 is at distance -2 from query 1 at 2, which sees it; allowed are distances (key - query) from "
     "-1 to 0"},
    {AT("\"key_positions\":[0,0.5]", PAST), "range", "key_positions[1]",
     "got 0.5, allowed are whole numbers: a distance is a row of the table"},
    {XL(",\"w_r\":[[1e37,0],[0,0]]"), "range", "encoding", NULL},
    {"{\"dtype\":\"float32\",\"q\":[[0,0]],\"k\":[[0,0]],\"encoding\":{\"type\":\"transformer_xl\",\"seed\":1,"
     "\"std\":1e300}}", "range", "encoding.std", "must be above 0 and at most 1000, got 1e+300"},
    {"{\"dtype\":\"float32\",\"q\":[[0,0]],\"k\":[[0,0]],\"encoding\":{\"type\":\"transformer_xl\",\"w_r\":"
     "{\"dtype\":\"float64\",\"data\":[[1e300,0],[0,0]]}}}", "range", "encoding",
     "adds numbers that may reach 2e+300 to the logits, too near the largest float32, 3.40282e+38"},
    /* no number of w_r is too large, but its products with sinusoids are, which queries of 0 do not undo */
    {"{\"dtype\":\"float32\",\"q\":" ZEROS ",\"k\":" ZEROS ",\"encoding\":{\"type\":\"transformer_xl\",\"base\":1,"
     "\"w_r\":{\"dtype\":\"float32\",\"data\":[[8e37],[8e37],[8e37],[8e37],[8e37],[8e37],[8e37],[8e37]]}}}",
     "range", "encoding",
     "adds numbers that may reach 6.4e+38 to the logits, too near the largest float32, 3.40282e+38"},
    /* clang-format on */
};

START_TEST(bad_requests) {
    struct call_try try = {.request = "POST /v1/attention", .body = bad[_i].body};
    call_expect_problem(&ground, &try, 400, bad[_i].slug, bad[_i].field, bad[_i].detail);
    call_try_close(&try);
}
END_TEST

Suite *transformer_xl_suite(void) {
    Suite *suite = suite_create("transformer_xl");
    TCase *numbers = tcase_create("numbers"), *asked = tcase_create("asked");
    suite_add_tcase(suite, numbers);
    tcase_add_checked_fixture(numbers, setup, teardown);
    tcase_add_loop_test(numbers, as_defined_pair_by_pair, 0, (int)PE_COUNT(cases) * PLACES_COUNT);
    tcase_add_loop_test(numbers, a_head_takes_its_own_columns, 0, 2);
    tcase_add_loop_test(numbers, only_the_distance_counts, 0, 2);
    suite_add_tcase(suite, asked);
    tcase_add_checked_fixture(asked, ground_setup, ground_teardown);
    tcase_add_test(asked, only_what_is_seen_has_to_be_in_the_table);
    tcase_add_loop_test(asked, bad_requests, 0, (int)PE_COUNT(bad));
    return suite;
}
