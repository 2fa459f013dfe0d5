/* SPDX-License-Identifier: MIT
 *
 * check: tables as float32 code makes them, with the errors that make_check.py found, the figures that were
 * published for such tables, and the replays that make them.
 */
#include "suites.h"

#include "posenc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct check_table {
    const char *name;
    const float (*rows)[16];
    const double *octaves, *columns;
    size_t bad_row, bad_column; /* with atol 1e-3 */
};
/* Published: how far cosines are off that numpy's float32 frequencies make at a position. */
struct check_figure {
    const char *params;
    const float *rates; /* [64] */
    double position, error;
    bool of_torch; /* PyTorch's frequencies give it, too */
};
#include "../golden/check_values.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct pe_arena *arena;
static struct pe_error err;
static struct pe_plan *plan;
static struct pe_work work;
static struct pe_check_result result;

static void setup(void) {
    memset(&err, 0, sizeof err);
    arena = pe_arena_open((size_t)256 << 20, NULL, &err);
    plan = NULL;
}

static void teardown(void) {
    pe_plan_close(plan);
    pe_arena_close(arena);
}

static void open_plan(const char *type, const char *params) {
    struct pe_spec spec;
    char text[300];
    snprintf(text, sizeof text, "%s", params);
    ck_assert_int_eq(pe_spec_init(arena, &spec, type, &err), 0);
    for (char *at = text, *name; (name = strtok_r(at, " ", &at));) {
        char *value = strchr(name, '=');
        *value = '\0';
        ck_assert_int_eq(pe_spec_set(arena, &spec, name, value + 1, &err), 0);
    }
    pe_plan_close(plan);
    ck_assert_msg(pe_plan_open(&plan, &spec, &err) == 0, "%s: %s", err.path, err.text);
}

static const struct pe_check_report *check(struct pe_check_args *args) {
    args->size = sizeof *args;
    args->plan = plan;
    ck_assert_msg(pe_check_open(arena, &work, &result, args, &err) == 0, "%s: %s", err.path, err.text);
    ck_assert(pe_work_run(&work));
    return result.report;
}

static bool close_to(double got, double wanted) {
    return fabs(got - wanted) <= 1e-12 * fabs(wanted) + 1e-16;
}

START_TEST(errors_of_a_float32_table) {
    const struct check_table *t = &check_tables[_i];
    const struct pe_positions at = {.length = COUNT(check_positions), .axes = 1, .list = check_positions};
    const struct pe_tensor table = {.data = (void *)(uintptr_t)t->rows,
                                    .dtype = PE_DTYPE_F32,
                                    .rank = 2,
                                    .dim = {COUNT(check_positions), 16}};
    const double atol = 1e-3, rtol = 0;
    double most = 0;
    open_plan("sinusoidal", "d_model=16");
    const struct pe_check_report *report =
        check(&(struct pe_check_args){.tensor = &table, .positions = &at, .atol = &atol, .rtol = &rtol});
    for (size_t k = 0; k < PE_CHECK_OCTAVES; k++) { /* positions of 0 to 2^24 - 1 */
        const struct pe_check_octave *octave = &report->octaves[k];
        ck_assert(octave->from == (k ? ldexp(1, (int)k - 1) : 0) && octave->to == ldexp(1, (int)k));
        ck_assert_uint_eq(octave->n, k > 24 ? 0 : k < 2 ? 1 : 3);
        ck_assert_msg(octave->n == 0 || close_to(octave->max_abs, t->octaves[k]),
                      "%s octave %zu: %.17g, not %.17g", t->name, k, octave->max_abs, t->octaves[k]);
        most = fmax(most, octave->max_abs);
    }
    ck_assert(report->max_abs == most);
    ck_assert(!report->pass);
    ck_assert_uint_eq(report->first_bad.row, t->bad_row);
    ck_assert_uint_eq(report->first_bad.column, t->bad_column);
    ck_assert(report->first_bad.position[0] == check_positions[t->bad_row]);
    ck_assert(report->first_bad.got == (double)t->rows[t->bad_row][t->bad_column]);
    ck_assert_uint_eq(report->n_columns, PE_CHECK_COLUMNS);
    for (size_t i = 0; i < PE_CHECK_COLUMNS; i++) {
        size_t better = 0;
        const struct pe_check_column *c = &report->columns[i];
        ck_assert(close_to(c->max_abs, t->columns[c->column]));
        for (size_t k = 0; k < 16; k++) {
            better += t->columns[k] > t->columns[c->column];
        }
        ck_assert_uint_le(better, i);
        ck_assert(i == 0 || report->columns[i - 1].max_abs >= c->max_abs);
    }
}
END_TEST

/* A table of 1024 rows, made in the arithmetic that is asked for. */
static struct pe_tensor replayed(const char *arithmetic, const struct pe_positions *at) {
    char params[100];
    struct pe_tensor table;
    snprintf(params, sizeof params, "d_model=512 arithmetic=%s", arithmetic);
    open_plan("sinusoidal", params);
    ck_assert_int_eq(pe_encode_open(arena, &work, &table, plan, at, PE_DTYPE_F32, &err), 0);
    ck_assert(pe_work_run(&work));
    return table;
}

/* At a million, as the README says. */
START_TEST(the_tutorial_at_a_million) {
    const struct pe_positions at = {.length = 1, .axes = 1, .start = 1e6, .step = 1};
    struct pe_tensor table = replayed("float32_exp", &at);
    open_plan("sinusoidal", "d_model=512");
    const struct pe_check_report *report = check(&(struct pe_check_args){.tensor = &table, .positions = &at});
    ck_assert_msg(fabs(report->max_abs - .045) <= .0005, "%g", report->max_abs);
}
END_TEST

/* The same of numpy's exponentials, whose frequencies are up to two units of the last place beside. */
static struct pe_tensor of_numpy(const struct pe_positions *at) {
    float *rows = pe_arena_alloc(arena, at->length * 512 * sizeof *rows, &err);
    ck_assert_ptr_nonnull(rows);
    for (size_t i = 0; i < at->length * 256; i++) {
        double angle = (double)((float)(at->start + (double)(i / 256)) * numpy_exp_rates[i % 256]);
        rows[2 * i] = (float)sin(angle);
        rows[2 * i + 1] = (float)cos(angle);
    }
    return (struct pe_tensor){.data = rows, .dtype = PE_DTYPE_F32, .rank = 2, .dim = {at->length, 512}};
}

/* The PyTorch tutorial's table, width 512 and 1024 rows, with the exponentials of PyTorch and of numpy: to
 * the digits that were published. */
START_TEST(published_errors_of_the_tutorial) {
    static const struct {
        double start, torch, numpy, torch_digit, numpy_digit;
        size_t octave; /* of the worst */
    } all[] = {{0, 6.0e-5, 9.4e-5, 1e-6, 1e-6, 10},
               {0x1p20, .062, .10, 1e-3, 1e-2, 21},
               {0x1p24 - 1024, .95, 1.47, 1e-2, 1e-2, 24}};
    const struct pe_positions at = {.length = 1024, .axes = 1, .start = all[_i].start, .step = 1};
    const struct pe_tensor tables[2] = {replayed("float32_exp", &at), of_numpy(&at)};
    open_plan("sinusoidal", "d_model=512");
    for (size_t i = 0; i < 2; i++) {
        const struct pe_check_report *report =
            check(&(struct pe_check_args){.tensor = &tables[i], .positions = &at});
        double error = i ? all[_i].numpy : all[_i].torch,
               digit = i ? all[_i].numpy_digit : all[_i].torch_digit;
        ck_assert_msg(fabs(report->max_abs - error) <= 0.51 * digit, "%s: %g, not %g", i ? "numpy" : "torch",
                      report->max_abs, error);
        ck_assert(report->octaves[all[_i].octave].max_abs == report->max_abs);
        ck_assert(!report->pass);
    }
}
END_TEST

/* Is it the figure, to its two digits? */
static bool is_figure(double got, double figure) {
    return fabs(got - figure) <= 0.51 * pow(10, floor(log10(figure)) - 1);
}

/* The largest error of the cosines of one row. */
static double cosines_off(const char *params, const struct pe_positions *at, double cosines[64]) {
    const struct pe_tensor table = {.data = cosines, .dtype = PE_DTYPE_F64, .rank = 2, .dim = {1, 64}};
    open_plan("rope", params);
    const struct pe_check_report *report = check(&(struct pe_check_args){.cos = &table, .positions = at});
    ck_assert(!report->pass);
    return report->max_abs;
}

/* All are errors at the position, not the largest up to it, and of numpy's own powers; those of PyTorch,
 * which float32_pow replays, give four. */
START_TEST(published_errors_of_float32_products) {
    const struct check_figure *row = &check_figures[_i];
    const struct pe_positions at = {.length = 1, .axes = 1, .list = &row->position};
    double cosines[128];
    char params[100];
    for (size_t i = 0; i < 64; i++) {
        cosines[i] = cos((double)((float)row->position * row->rates[i]));
    }
    double off = cosines_off(row->params, &at, cosines);
    ck_assert_msg(is_figure(off, row->error), "%s at %.0f: %g, not %g", row->params, row->position, off,
                  row->error);
    snprintf(params, sizeof params, "%s arithmetic=float32_pow", row->params);
    open_plan("rope", params);
    const struct pe_rotary_rows rows = {
        .plan = plan, .positions = &at, .dtype = PE_DTYPE_F64, .form = PE_TRIG_PACKED};
    pe_rotary_fill(&rows, 0, 1, cosines, NULL);
    off = cosines_off(row->params, &at, cosines);
    ck_assert_msg(is_figure(off, row->error) == row->of_torch, "%s at %.0f replayed: %g, published %g",
                  row->params, row->position, off, row->error);
}
END_TEST

/* Against the replay that made it a table is right to the bit. */
START_TEST(a_replay_is_recognised) {
    static const char *const all[] = {"float32_exp", "float32_pow", "bfloat16_positions", "ggml"};
    const struct pe_positions at = {.length = 64, .axes = 1, .start = 1000, .step = 1};
    for (size_t i = 0; i < COUNT(all); i++) {
        struct pe_tensor table = replayed(all[i], &at);
        const double zero = 0;
        for (size_t k = 0; k < COUNT(all); k++) {
            char params[100];
            snprintf(params, sizeof params, "d_model=512 arithmetic=%s", all[k]);
            open_plan("sinusoidal", params);
            const struct pe_check_report *report = check(
                &(struct pe_check_args){.tensor = &table, .positions = &at, .atol = &zero, .rtol = &zero});
            ck_assert_int_eq(report->pass, i == k);
            ck_assert(i != k || (report->max_abs == 0 && report->max_ulp == 0 && report->n_columns == 0));
        }
    }
}
END_TEST

Suite *check_tables_suite(void) {
    Suite *suite = suite_create("check_tables");
    TCase *tests = tcase_create("check_tables");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, errors_of_a_float32_table, 0, (int)COUNT(check_tables));
    tcase_add_test(tests, the_tutorial_at_a_million);
    tcase_add_loop_test(tests, published_errors_of_the_tutorial, 0, 3);
    tcase_add_loop_test(tests, published_errors_of_float32_products, 0, (int)COUNT(check_figures));
    tcase_add_test(tests, a_replay_is_recognised);
    return suite;
}
