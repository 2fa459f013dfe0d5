/* SPDX-License-Identifier: MIT
 *
 * The sinusoidal encoding: every convention against published figures (named beside them), and what must hold
 * for any position. How exact the values are is for check_phase.c and tests/exact.
 */
#include "suites.h"

#include "encodings/encoding.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_WIDTH 1024

/* ---- Helpers ------------------------------------------------------------------------------------------- */

/* Sets parameters from "name=value name=value". */
static int set_all(struct pe_arena *arena, struct pe_spec *spec, const char *params, struct pe_error *err) {
    char name[40], value[40];
    int used = 0;
    while (sscanf(params, "%39[^=]=%39s%n", name, value, &used) == 2) {
        if (pe_spec_set(arena, spec, name, value, err)) {
            return err->code;
        }
        params += used;
        params += *params == ' ';
    }
    return PE_OK;
}

static int try_plan(struct pe_plan **plan, const char *params, struct pe_error *err) {
    struct pe_arena *arena = pe_arena_open(1 << 20, NULL, err);
    struct pe_spec spec;
    *plan = NULL;
    if (arena && !pe_spec_init(arena, &spec, "sinusoidal", err) && !set_all(arena, &spec, params, err) &&
        pe_plan_open(plan, &spec, err)) {
        *plan = NULL;
    }
    pe_arena_close(arena);
    return err->code;
}

static struct pe_plan *plan_of(const char *params) {
    struct pe_error err = {0};
    struct pe_plan *plan;
    ck_assert_msg(try_plan(&plan, params, &err) == PE_OK, "%s: %s: %s", params, err.path, err.text);
    ck_assert_uint_le(pe_plan_width(plan), MAX_WIDTH);
    return plan;
}

/* The vector of one position, as doubles. */
static void vector(const struct pe_plan *plan, double position, enum pe_dtype dtype, double *out) {
    char row[8 * MAX_WIDTH];
    struct pe_positions positions = {.length = 1, .axes = 1, .list = &position};
    pe_encode_rows(plan, &positions, dtype, 0, 1, row);
    pe_dtype_load(dtype, row, pe_plan_width(plan), out);
}

/* ---- Published figures ----------------------------------------------------------------------------------
 */

static const struct golden {
    const char *params;
    double position;
    size_t column, n;
    double value[8], tolerance;
} golden[] = {
    /* Machine Learning Mastery, "A Gentle Introduction to Positional Encoding", n = 100 */
    {"d_model=4 base=100", 1, 0, 4, {.84147098, .54030231, .09983342, .99500417}, 1e-8},
    {"d_model=4 base=100", 2, 0, 4, {.90929743, -.41614684, .19866933, .98006658}, 1e-8},
    {"d_model=4 base=100", 3, 0, 4, {.14112001, -.9899925, .29552021, .95533649}, 1e-8},
    /* keras-hub, sine_position_encoding_test.py; columns 2 and 3 share one frequency */
    {"d_model=6", 0, 0, 6, {0, 1, 0, 1, 0, 1}, 0},
    {"d_model=6", 1, 0, 6, {.841471, .540302, .046399, .998923, .002154, .999998}, 6e-7},
    {"d_model=6", 3, 0, 6, {.14112, -.98999, .13879, .99032, .00646, .99997}, 1.1e-5},
    /* transformers, RoFormer test */
    {"d_model=6 layout=halves", 1, 0, 6, {.8415, .0464, .0022, .5403, .9989, 1.0}, 6e-5},
    {"d_model=6 layout=halves", 2, 0, 6, {.909297, .092699, .004309, -.416147, .995694, .999991}, 6e-7},
    /* transformers, M2M100 and Speech2Text tests; fairseq */
    {"d_model=6 layout=halves denominator=half_minus_one",
     1,
     0,
     6,
     {.841471, .01, .0001, .540302, .99995, 1},
     6e-7},
    {"d_model=6 layout=halves denominator=half_minus_one",
     2,
     0,
     6,
     {.909297, .019999, .0002, -.416147, .9998, 1},
     6e-7},
    {"d_model=6 layout=halves denominator=half_minus_one",
     3,
     0,
     6,
     {.14112, .029996, .0003, -.989992, .99955, 1},
     6e-7},
    /* the paper's formula at an odd width; tensor2tensor at the same */
    {"d_model=5", 1, 0, 5, {.841471, .540302, .025116, .999685, .000631}, 6e-7},
    {"d_model=5", 2, 0, 5, {.909297, -.416147, .050217, .998738, .001262}, 6e-7},
    {"d_model=5 layout=halves denominator=half_minus_one odd=zero",
     1,
     0,
     5,
     {.841471, .0001, .540302, 1, 0},
     6e-7},
    {"d_model=5 layout=halves", 1, 0, 5, {.841471, .025116, .000631, .540302, .999685}, 6e-7},
    {"d_model=5 order=cos_sin", 1, 0, 5, {.540302, .841471, .999685, .025116, 1}, 6e-7},
    /* widths of one pair and less: tensor2tensor's guard against 0/0 */
    {"d_model=2 denominator=half_minus_one", 1, 0, 2, {.841471, .540302}, 6e-7},
    {"d_model=3 denominator=half_minus_one odd=zero", 1, 0, 3, {.841471, .540302, 0}, 6e-7},
    {"d_model=1", 1, 0, 1, {.841471}, 6e-7},
    {"d_model=1 odd=zero", 1, 0, 1, {0}, 0},
    /* D2L and the lesson of d = 16 */
    {"d_model=16", 1, 0, 8, {.841471, .540302, .310984, .950415, .099833, .995004, .031618, .9995}, 6e-7},
    {"d_model=16", 3, 8, 8, {.029996, .99955, .009487, .999955, .003, .999996, .000949, 1}, 6e-7},
    /* the figure of the Annotated Transformer, columns 4 .. 7 */
    {"d_model=20", 10, 4, 4, {.999901, -.014096, .589918, .807463}, 6e-7},
    {"d_model=20", 50, 4, 4, {.997517, -.070426, -.013194, -.999913}, 6e-7},
    {"d_model=20", 99, 4, 4, {.017520, -.999847, -.036699, .999326}, 6e-7},
    /* transformers, Marian test: the weights of Marian itself, whose formula is not that of its port */
    {"d_model=512 layout=halves denominator=half_minus_one",
     1,
     0,
     5,
     {.84147096, .82177866, .80180490, .78165019, .76140374},
     6e-8},
    {"d_model=512 layout=halves denominator=half_minus_one",
     2,
     0,
     5,
     {.90929741, .93651021, .95829457, .97505713, .98720258},
     6e-8},
    /* Whisper's sinusoids(1500, 384) */
    {"d_model=384 layout=halves denominator=half_minus_one odd=reject",
     1,
     0,
     3,
     {.841471, .815112, .788312},
     6e-7},
    {"d_model=384 layout=halves denominator=half_minus_one odd=reject",
     1,
     192,
     3,
     {.540302, .579303, .615275},
     6e-7},
    {"d_model=384 layout=halves denominator=half_minus_one", 1499, 191, 1, {.149339}, 6e-7},
    /* fairseq2, test_position_encoder.py */
    {"d_model=32 layout=halves denominator=half_minus_one", 1, 0, 3, {.84147, .51514, .28870}, 6e-6},
    {"d_model=32 layout=halves denominator=half_minus_one", 1, 15, 3, {1.0e-4, .54030, .85711}, 6e-6},
    /* fairseq, relative positions of test_positional_encoding.py */
    {"d_model=2", -3, 0, 2, {-.1411, -.99}, 1e-4},
    {"d_model=2", -2, 0, 2, {-.9093, -.4161}, 1e-4},
    /* fractions and negative numbers (mpmath) */
    {"d_model=4", 0.5, 0, 4, {.47942554, .87758256, .00499998, .99998750}, 1e-8},
    {"d_model=4", 1.25, 0, 4, {.94898462, .31532236, .01249967, .99992188}, 1e-8},
    {"d_model=4", 2.75, 0, 4, {.38166099, -.92430238, .02749653, .99962190}, 1e-8},
    {"d_model=4", -1, 0, 4, {-.84147098, .54030231, -.00999983, .99995}, 1e-8},
    {"d_model=4 position_scale=-0.5 offset=2", 1.5, 0, 4, {.94898462, .31532236, .01249967, .99992188}, 1e-8},
    /* DDPM and, with denominator half and cosines first, DiT: timesteps of width 8 */
    {"d_model=8 layout=halves denominator=half_minus_one",
     1,
     0,
     8,
     {.84147098, .04639922, .00215443, .0001, .54030231, .99892298, .99999768, 1},
     1e-8},
    {"d_model=8 layout=halves denominator=half_minus_one",
     999,
     0,
     8,
     {-.02646075, .68486423, .8356485, .09973392, .99964985, -.7286707, -.54926458, .99501414},
     1e-8},
    {"d_model=8 layout=halves order=cos_sin",
     999,
     0,
     8,
     {.99964985, .80745866, -.8444697, .54114351, -.02646075, -.58992416, -.53560333, .84093026},
     1e-8},
    {"d_model=8 layout=halves order=cos_sin position_scale=1000 offset=-1",
     1,
     0,
     8,
     {.99964985, .80745866, -.8444697, .54114351, -.02646075, -.58992416, -.53560333, .84093026},
     1e-8},
    /* long positions, where one float64 angle would do and a float32 angle would not (mpmath) */
    {"d_model=2", 4095, 0, 2, {-.9978212104, -.0659759966}, 1e-10},
    {"d_model=2", 131071, 0, 2, {-.5752416838, -.8179834994}, 1e-10},
    {"d_model=2", 1e6, 0, 2, {-.3499935022, .9367521275}, 1e-10},
    {"d_model=2", 1e9, 0, 2, {.5458434494, .8378871814}, 1e-10},
    {"d_model=2", 1e10, 0, 2, {-.4875060251, .8731196227}, 1e-10},
    {"d_model=128", 1e6, 2, 2, {-.0163605768, -.9998661568}, 1e-10},
    /* rows padding_idx of fairseq's tables */
    {"d_model=4 padding_idx=1", 1, 0, 4, {0, 0, 0, 0}, 0},
    {"d_model=4 padding_idx=1 offset=1", 0, 0, 4, {0, 0, 0, 0}, 0},
    {"d_model=4 padding_idx=1", 2, 0, 4, {.90929743, -.41614684, .01999867, .99980001}, 1e-8},
    {"d_model=4 padding_idx=0", 0, 0, 4, {0, 0, 0, 0}, 0},
};

START_TEST(encoding_has_the_published_values) {
    const struct golden *g = &golden[_i];
    struct pe_plan *plan = plan_of(g->params);
    for (enum pe_dtype dtype = PE_DTYPE_F64; dtype < PE_DTYPE_COUNT; dtype++) {
        static const double rounding[] = {
            [PE_DTYPE_F32] = 0x1p-25, [PE_DTYPE_F16] = 0x1p-12, [PE_DTYPE_BF16] = 0x1p-9};
        double out[MAX_WIDTH], tolerance = g->tolerance + (dtype == PE_DTYPE_F64 ? 0 : rounding[dtype]);
        vector(plan, g->position, dtype, out);
        for (size_t i = 0; i < g->n; i++) {
            ck_assert_msg(fabs(out[g->column + i] - g->value[i]) <= tolerance,
                          "%s position %g column %zu: %.10f, not %.10f", g->params, g->position,
                          g->column + i, out[g->column + i], g->value[i]);
        }
    }
    pe_plan_close(plan);
}
END_TEST

/* ---- Properties -----------------------------------------------------------------------------------------
 */

START_TEST(encoding_of_minus_p_mirrors_the_sines) {
    struct pe_plan *plan = plan_of("d_model=64 base=500000");
    for (int n = 0; n < 200; n++) {
        double p = n < 100 ? ldexp(1 + 0.37 * n, n - 80) : floor(ldexp(1 + 0.0037 * n, n / 4)), plus[64],
               minus[64];
        vector(plan, p, PE_DTYPE_F64, plus);
        vector(plan, -p, PE_DTYPE_F64, minus);
        for (int i = 0; i < 64; i += 2) {
            ck_assert(minus[i] == -plus[i] && minus[i + 1] == plus[i + 1]);
        }
    }
    pe_plan_close(plan);
}
END_TEST

/* Neither a row's neighbours nor where a range starts may change a bit. */
START_TEST(encoding_depends_on_the_position_alone) {
    struct pe_plan *plan = plan_of("d_model=33 odd=zero");
    static float all[40 * 33], one[33];
    struct pe_positions range, later;
    struct pe_error err = {0};
    ck_assert_int_eq(pe_positions_range(&range, -10, 30, 1, &err), PE_OK);
    ck_assert_int_eq(pe_positions_range(&later, 5, 50, 1, &err), PE_OK);
    pe_encode_rows(plan, &range, PE_DTYPE_F32, 0, 40, all);
    for (size_t i = 15; i < 40; i++) {
        pe_encode_rows(plan, &later, PE_DTYPE_F32, i - 15, 1, one);
        ck_assert(memcmp(one, all + 33 * i, sizeof one) == 0);
    }
    pe_plan_close(plan);
}
END_TEST

START_TEST(layouts_and_orders_permute_the_same_numbers) {
    struct pe_plan *plain = plan_of("d_model=10"), *halves = plan_of("d_model=10 layout=halves");
    struct pe_plan *swapped = plan_of("d_model=10 order=cos_sin"),
                   *both = plan_of("d_model=10 layout=halves order=cos_sin");
    double a[10], b[10], c[10], d[10];
    vector(plain, 77, PE_DTYPE_F32, a);
    vector(halves, 77, PE_DTYPE_F32, b);
    vector(swapped, 77, PE_DTYPE_F32, c);
    vector(both, 77, PE_DTYPE_F32, d);
    for (int i = 0; i < 5; i++) {
        ck_assert(a[2 * i] == b[i] && a[2 * i + 1] == b[5 + i]);
        ck_assert(a[2 * i] == c[2 * i + 1] && a[2 * i + 1] == c[2 * i]);
        ck_assert(a[2 * i] == d[5 + i] && a[2 * i + 1] == d[i]);
    }
    pe_plan_close(plain);
    pe_plan_close(halves);
    pe_plan_close(swapped);
    pe_plan_close(both);
}
END_TEST

START_TEST(shift_moves_a_vector_exactly) {
    static const char *const params[] = {
        "d_model=8", "d_model=9 layout=halves order=cos_sin", "d_model=7 odd=zero",
        "d_model=8 order=cos_sin position_scale=-0.5 offset=3",
        "d_model=12 layout=halves denominator=half_minus_one position_scale=1000"};
    static const double distance[] = {1, -7, 0.25, 1e6};
    for (size_t k = 0; k < PE_COUNT(params); k++) {
        struct pe_plan *plan = plan_of(params[k]);
        const struct pe_encoding *row = pe_plan_row(plan);
        size_t width = pe_plan_width(plan), pairs = row->shift_pairs(pe_plan_view(plan));
        ck_assert_uint_eq(pairs, width / 2);
        for (size_t j = 0; j < PE_COUNT(distance); j++) {
            double from[16], to[16], m[4];
            size_t column[2];
            vector(plan, 1e6, PE_DTYPE_F64, from);
            vector(plan, 1e6 + distance[j], PE_DTYPE_F64, to);
            for (size_t i = 0; i < pairs; i++) {
                row->shift(pe_plan_view(plan), distance[j], i, m, column);
                double a = from[column[0]], b = from[column[1]];
                ck_assert_double_eq_tol(m[0] * a + m[1] * b, to[column[0]], 5e-16);
                ck_assert_double_eq_tol(m[2] * a + m[3] * b, to[column[1]], 5e-16);
            }
        }
        pe_plan_close(plan);
    }
}
END_TEST

START_TEST(bad_parameters_are_refused_by_name) {
    static const struct {
        const char *params, *path;
    } row[] = {{"d_model=5 odd=reject", "d_model"},
               {"d_model=0", "d_model"},
               {"d_model=65537", "d_model"},
               {"d_model=4 base=0.5", "base"},
               {"d_model=4 base=-1", "base"},
               {"d_model=4 base=0", "base"},
               {"d_model=4 position_scale=0", "position_scale"},
               {"d_model=4 position_scale=1e17", "position_scale"},
               {"d_model=4 offset=-1e17", "offset"}};
    for (size_t i = 0; i < PE_COUNT(row); i++) {
        struct pe_error err = {0};
        struct pe_plan *plan;
        ck_assert_msg(try_plan(&plan, row[i].params, &err) == PE_ERR_RANGE, "%s", row[i].params);
        ck_assert_str_eq(err.path, row[i].path);
        ck_assert_ptr_null(plan);
    }
}
END_TEST

Suite *sinusoidal_suite(void) {
    Suite *suite = suite_create("sinusoidal");
    TCase *encoding = tcase_create("encoding");
    tcase_add_loop_test(encoding, encoding_has_the_published_values, 0, (int)PE_COUNT(golden));
    tcase_add_test(encoding, encoding_of_minus_p_mirrors_the_sines);
    tcase_add_test(encoding, encoding_depends_on_the_position_alone);
    tcase_add_test(encoding, layouts_and_orders_permute_the_same_numbers);
    tcase_add_test(encoding, shift_moves_a_vector_exactly);
    tcase_add_test(encoding, bad_parameters_are_refused_by_name);
    suite_add_tcase(suite, encoding);
    return suite;
}
