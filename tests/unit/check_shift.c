/* SPDX-License-Identifier: MIT
 *
 * shift: the addition theorem for sinusoids, least squares for the rest against numpy's (make_shift.py).
 */
#include "suites.h"

#include "posenc.h"

#include <math.h>
#include <string.h>

struct shift_case {
    const char *name;
    size_t rows, width;
    int distance;
    size_t n;
    const double *table, *matrix;
    double residual, rms;
};
#include "../golden/shift_cases.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct pe_arena *arena;
static struct pe_error err;
static struct pe_plan *plan;
static struct pe_work work;
static struct pe_shift_result result;

static void setup(void) {
    memset(&err, 0, sizeof err);
    arena = pe_arena_open((size_t)64 << 20, NULL, &err);
    plan = NULL;
}

static void teardown(void) {
    pe_plan_close(plan);
    pe_arena_close(arena);
}

/* A plan with parameters given as name, text, name, text ... NULL. */
static void plan_open(const char *type, const char *const *params) {
    struct pe_spec spec;
    memset(&err, 0, sizeof err);
    pe_plan_close(plan);
    ck_assert_int_eq(pe_spec_init(arena, &spec, type, &err), 0);
    for (; *params; params += 2) {
        ck_assert_int_eq(pe_spec_set(arena, &spec, params[0], params[1], &err), 0);
    }
    ck_assert_int_eq(pe_plan_open(&plan, &spec, &err), 0);
}

#define PARAMS(...) ((const char *const[]){__VA_ARGS__, NULL})

static int shift_open(double distance, const char *positions, bool matrix) {
    static struct pe_positions parsed;
    memset(&err, 0, sizeof err);
    ck_assert_int_eq(pe_positions_parse(arena, &parsed, positions, &err), 0);
    struct pe_shift_args args = {
        .size = sizeof args, .plan = plan, .distance = distance, .positions = &parsed, .matrix = matrix};
    return pe_shift_open(arena, &work, &result, &args, &err);
}

static void shift(double distance, const char *positions, bool matrix) {
    ck_assert_msg(shift_open(distance, positions, matrix) == 0, "%s: %s", err.path, err.text);
    pe_work_run(&work);
}

static double number(const struct pe_tensor *tensor, size_t i) {
    return ((const double *)tensor->data)[i];
}

/* The pair of frequency w turns by w*k: d = 4 has the frequencies 1 and 1/100. */
START_TEST(sinusoids_turn) {
    plan_open("sinusoidal", PARAMS("d_model", "4"));
    shift(2.5, "0:1000", true);
    ck_assert(result.exact);
    ck_assert_int_eq(result.blocks.rank, 3);
    ck_assert_uint_eq(result.blocks.dim[0], 2);
    const double w[2] = {1, 0.01};
    for (size_t i = 0; i < 2; i++) {
        double c = cos(2.5 * w[i]), s = sin(2.5 * w[i]);
        const double expected[4] = {c, s, -s, c};
        for (size_t j = 0; j < 4; j++) {
            ck_assert(fabs(number(&result.blocks, 4 * i + j) - expected[j]) < 1e-15);
            ck_assert(number(&result.matrix, (2 * i + j / 2) * 4 + 2 * i + j % 2) ==
                      number(&result.blocks, 4 * i + j));
        }
    }
    ck_assert(number(&result.matrix, 2) == 0);
    ck_assert(number(&result.residual, 0) < 4e-16 * 4); /* three products of numbers good to 1 ulp */
    ck_assert(number(&result.residual, 0) > 0);
    ck_assert(number(&result.rms, 0) <= number(&result.residual, 0));
}
END_TEST

/* The matrix, tried from outside on vectors of encode, for every layout. */
START_TEST(matrix_maps_the_vectors) {
    static const char *const layouts[] = {"interleaved", "halves"}, *const orders[] = {"sin_cos", "cos_sin"};
    plan_open("sinusoidal", PARAMS("d_model", "10", "layout", layouts[_i / 2], "order", orders[_i % 2]));
    shift(-7, "-3:3000:2.25", true);
    struct pe_positions two = {.length = 2, .axes = 1, .start = 100.5, .step = -7};
    double x[20];
    pe_encode_rows(plan, &two, PE_DTYPE_F64, 0, 2, x);
    for (size_t i = 0; i < 10; i++) {
        double sum = 0;
        for (size_t j = 0; j < 10; j++) {
            sum += number(&result.matrix, i * 10 + j) * x[j];
        }
        ck_assert(fabs(sum - x[10 + i]) < 2e-15);
    }
    ck_assert(number(&result.residual, 0) < 2e-15);
}
END_TEST

START_TEST(odd_widths) {
    plan_open("sinusoidal", PARAMS("d_model", "7", "odd", "zero"));
    shift(1, "0:50", true);
    ck_assert_uint_eq(result.blocks.dim[0], 3);
    ck_assert(number(&result.residual, 0) < 2e-15);
    for (size_t i = 0; i < 7; i++) {
        ck_assert(number(&result.matrix, 42 + i) == 0 && number(&result.matrix, 7 * i + 6) == 0);
    }
    plan_open("sinusoidal", PARAMS("d_model", "7"));
    ck_assert_int_eq(shift_open(1, "0:50", false), PE_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.path, "encoding.d_model");
    ck_assert(strstr(err.text, "column 6 has no partner") != NULL);
}
END_TEST

/* The map does not change with the unit of the vectors, however small or large. */
static void fit_check(const struct shift_case *c, double unit) {
    struct pe_tensor table;
    struct pe_spec spec;
    ck_assert_int_eq(pe_tensor_alloc(arena, &table, PE_DTYPE_F64, 2, (size_t[2]){c->rows, c->width}, &err),
                     0);
    for (size_t i = 0; i < c->rows * c->width; i++) {
        ((double *)table.data)[i] = c->table[i] * unit;
    }
    ck_assert_int_eq(pe_spec_init(arena, &spec, "learned", &err), 0);
    ck_assert_int_eq(pe_spec_set_tensor(&spec, "table", &table, &err), 0);
    pe_plan_close(plan);
    ck_assert_int_eq(pe_plan_open(&plan, &spec, &err), 0);
    struct pe_positions positions = {.length = c->n, .axes = 1, .step = 1};
    struct pe_shift_args args = {
        .size = sizeof args, .plan = plan, .distance = c->distance, .positions = &positions};
    ck_assert_int_eq(pe_shift_open(arena, &work, &result, &args, &err), 0);
    pe_work_run(&work);
    ck_assert(!result.exact);
    ck_assert_ptr_null(result.blocks.data);
    double most = 0;
    for (size_t i = 0; i < c->width * c->width; i++) {
        most = fmax(most, fabs(number(&result.matrix, i) - c->matrix[i]));
    }
    ck_assert_msg(most < 1e-11, "%s: matrix off by %g", c->name, most); /* conditions up to 1e3 */
    ck_assert_msg(fabs(number(&result.residual, 0) / unit - c->residual) < 1e-12, "%s: residual", c->name);
    if (unit > 0x1p-500) { /* below, squares vanish */
        ck_assert_msg(fabs(number(&result.rms, 0) / unit - c->rms) < 1e-12, "%s: rms", c->name);
    }
}

START_TEST(tables_get_the_best_map) {
    fit_check(&shift_cases[_i], 1);
    fit_check(&shift_cases[_i], 0x1p-700);
    fit_check(&shift_cases[_i], 0x1p300);
}
END_TEST

START_TEST(what_is_refused) {
    plan_open("naive", PARAMS("d_model", "4", "form", "binary"));
    ck_assert_int_eq(shift_open(NAN, "0:4", false), PE_ERR_NONFINITE);
    ck_assert_str_eq(err.path, "distance");
    ck_assert_int_eq(shift_open(0x1p53, "0:4", false), PE_ERR_RANGE);
    ck_assert_str_eq(err.path, "distance");
    ck_assert_int_eq(shift_open(0.5, "0:4", false), PE_ERR_RANGE);
    ck_assert_str_eq(err.path, "distance");
    plan_open("random", PARAMS("d_model", "4", "seed", "1"));
    ck_assert_int_eq(shift_open(1, "0:1000000000000", false), PE_ERR_LIMIT);
    ck_assert_str_eq(err.limit_name, "shift_work");
    /* n * d^2 is what a fit costs, whichever of them is larger, and narrow vectors are not free either. */
    ck_assert_int_eq(shift_open(1, "0:4194304", false), PE_ERR_LIMIT);
    plan_open("random", PARAMS("d_model", "4096", "seed", "1"));
    ck_assert_int_eq(shift_open(1, "0:65", false), PE_ERR_LIMIT);
    ck_assert_uint_eq(err.got, 65 * 4096 * 4096ULL);
    plan_open("sinusoidal", PARAMS("d_model", "4"));
    ck_assert_int_eq(shift_open(0x1p53 + 2, "0:0", false), PE_ERR_RANGE); /* also without positions */
    ck_assert_str_eq(err.path, "distance");
    ck_assert_int_eq(shift_open(1e300, "0:0", false), PE_ERR_RANGE);
    ck_assert_int_eq(shift_open(1, "0:1000000000000", false), PE_ERR_LIMIT);
    ck_assert_int_eq(shift_open(1, "0:0", true), 0);
    pe_work_run(&work);
    ck_assert(number(&result.residual, 0) == 0 && number(&result.rms, 0) == 0);
    plan_open("none", (const char *const[]){NULL});
    ck_assert_int_eq(shift_open(1, "0:4", false), PE_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.path, "encoding.type");
}
END_TEST

Suite *shift_suite(void) {
    Suite *suite = suite_create("shift");
    TCase *tests = tcase_create("shift");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, sinusoids_turn);
    tcase_add_loop_test(tests, matrix_maps_the_vectors, 0, 4);
    tcase_add_test(tests, odd_widths);
    tcase_add_loop_test(tests, tables_get_the_best_map, 0, COUNT(shift_cases));
    tcase_add_test(tests, what_is_refused);
    suite_add_tcase(suite, tests);
    return suite;
}
