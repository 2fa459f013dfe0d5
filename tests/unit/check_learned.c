/* SPDX-License-Identifier: MIT
 *
 * The encoding `learned`: rows come out as stored, at the offset asked for; what lies outside the table or
 * between its rows is refused by name, never wrapped; and what the three policies give instead.
 */
#include "suites.h"

#include "posenc.h"

#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Element [r][c] is r + c/4: a row's number can be read from its values, and all are exact in float16. */
#define ROWS  8
#define WIDTH 3

static struct pe_arena *arena;
static struct pe_error err;
static double numbers[ROWS * WIDTH];
static struct pe_tensor table;

static void setup(void) {
    err = (struct pe_error){0};
    arena = pe_arena_open((size_t)64 << 20, NULL, &err);
    for (int i = 0; i < ROWS * WIDTH; i++) {
        numbers[i] = i / WIDTH + i % WIDTH / 4.0;
    }
    table = (struct pe_tensor){.data = numbers, .dtype = PE_DTYPE_F64, .rank = 2, .dim = {ROWS, WIDTH}};
}

static void teardown(void) {
    pe_arena_close(arena);
}

/* A plan with the table and parameters given as name, text ... NULL. */
static int plan_open(struct pe_plan **plan, const struct pe_tensor *rows, const char *const *params) {
    struct pe_spec spec;
    *plan = NULL;
    int code = pe_spec_init(arena, &spec, "learned", &err);
    if (!code && rows) {
        code = pe_spec_set_tensor(&spec, "table", rows, &err);
    }
    for (; !code && *params; params += 2) {
        code = pe_spec_set(arena, &spec, params[0], params[1], &err);
    }
    return code ? code : pe_plan_open(plan, &spec, &err);
}
#define PLAN(plan, rows, ...) plan_open(plan, rows, (const char *const[]){__VA_ARGS__})

static struct pe_tensor encode(const struct pe_plan *plan, const char *positions, enum pe_dtype dtype) {
    struct pe_positions at;
    struct pe_work work;
    struct pe_tensor out = {0};
    int code = pe_positions_parse(arena, &at, positions, &err);
    code = code ? code : pe_encode_open(arena, &work, &out, plan, &at, dtype, &err);
    if (code == PE_OK) {
        pe_work_run(&work);
    }
    return out;
}

/* The first column of [n, WIDTH], after a look at the others. */
static void assert_rows(const struct pe_tensor *got, const double *want, size_t n) {
    double values[64];
    ck_assert_msg(err.code == PE_OK, "%s: %s", err.path, err.text);
    ck_assert_uint_eq(pe_tensor_count(got), n * WIDTH);
    pe_dtype_load(got->dtype, got->data, n * WIDTH, values);
    for (size_t i = 0; i < n * WIDTH; i++) {
        ck_assert_double_eq(values[i], want[i / WIDTH] + (double)(i % WIDTH) / 4.0);
    }
}

/* BERT: row p. RoBERTa, OPT and BART: row p + 2 (transformers #20761, #19240). No row is zeroed, neither row
 * 0 nor the padding row (transformers #10200). In every type, stored or asked for. */
START_TEST(rows_come_out_as_stored) {
    static const double bert[] = {0, 1, 5, 1}, opt[] = {2, 3, 7, 3};
    enum pe_dtype stored = (enum pe_dtype)(_i % 4 + 1), asked = (enum pe_dtype)(_i / 4 + 1);
    struct pe_tensor rows, out;
    struct pe_plan *plan;
    ck_assert_int_eq(pe_tensor_convert(arena, &rows, &table, stored, &err), PE_OK);
    ck_assert_int_eq(PLAN(&plan, &rows, NULL), PE_OK);
    ck_assert_uint_eq(pe_plan_width(plan), WIDTH);
    out = encode(plan, "0,1,5,1", asked);
    assert_rows(&out, bert, 4);
    pe_plan_close(plan);
    ck_assert_int_eq(PLAN(&plan, &rows, "offset", "2", NULL), PE_OK);
    out = encode(plan, "0,1,5,1", asked);
    assert_rows(&out, opt, 4);
    pe_plan_close(plan);
}
END_TEST

/* A row wider than the buffer of the conversion. */
START_TEST(wide_rows_are_whole) {
    const size_t width = 1000;
    double *wide = pe_arena_array(arena, 3 * width, sizeof *wide, &err);
    for (size_t i = 0; i < 3 * width; i++) {
        wide[i] = (double)i;
    }
    struct pe_tensor rows = {.data = wide, .dtype = PE_DTYPE_F64, .rank = 3, .dim = {1, 3, width}};
    struct pe_plan *plan;
    ck_assert_int_eq(PLAN(&plan, &rows, "interpolate", "linear", NULL), PE_OK);
    struct pe_tensor out = encode(plan, "2,1.5", PE_DTYPE_F32);
    const float *values = out.data;
    for (size_t c = 0; c < width; c++) {
        ck_assert_float_eq(values[c], (float)(2 * width + c));
        ck_assert_float_eq(values[width + c], (float)width * 1.5F + (float)c);
    }
    pe_plan_close(plan);
}
END_TEST

static const struct {
    const char *offset, *positions, *path, *text;
} outside[] = {
    /* -1 must not wrap to the last row, nor rows to the first (pytorch #183608, onnxruntime #27597). */
    {"0", "-1", "positions[0]", "position -1 with offset 0 is row -1, but the table has 8 rows, 0 to 7"},
    {"0", "0,8", "positions[1]", "position 8 with offset 0 is row 8, but the table has 8 rows, 0 to 7"},
    {"2", "5,6", "positions[1]", "position 6 with offset 2 is row 8, but the table has 8 rows, 0 to 7"},
    {"2", "-2,-3", "positions[1]", "position -3 with offset 2 is row -1, but the table has 8 rows, 0 to 7"},
    {"-1", "1,0", "positions[1]", "position 0 with offset -1 is row -1, but the table has 8 rows, 0 to 7"},
    /* 532 tokens on 512 rows (sentence-transformers #929), here 20 on 8. */
    {"0", "0:20", "positions[8]", "position 8 with offset 0 is row 8, but the table has 8 rows, 0 to 7"},
    {"0", "0:1000000000000", "positions[8]",
     "position 8 with offset 0 is row 8, but the table has 8 rows, 0 to 7"},
    {"0", "7:-5:-3", "positions[3]", "position -2 with offset 0 is row -2, but the table has 8 rows, 0 to 7"},
    {"0", "[[0,1],[8,2]]", "positions[1][0]",
     "position 8 with offset 0 is row 8, but the table has 8 rows, 0 to 7"},
    {"9007199254740992", "9007199254740992", "positions[0]",
     "position 9007199254740992 with offset 9007199254740992 is row 18014398509481984, but the table has 8 "
     "rows, 0 to 7"},
    {"0", "1,0.5", "positions[1]",
     "position 0.5 is not a whole number; interpolate=linear allows those between rows"},
    {"0", "0:2:0.25", "positions[1]",
     "position 0.25 is not a whole number; interpolate=linear allows those between rows"},
};

START_TEST(what_has_no_row_is_refused_by_name) {
    struct pe_plan *plan;
    ck_assert_int_eq(PLAN(&plan, &table, "offset", outside[_i].offset, NULL), PE_OK);
    encode(plan, outside[_i].positions, PE_DTYPE_F32);
    ck_assert_int_eq(err.code, PE_ERR_RANGE);
    ck_assert_str_eq(err.path, outside[_i].path);
    ck_assert_str_eq(err.text, outside[_i].text);
    pe_plan_close(plan);
}
END_TEST

/* A million positions of a table that has them: judged by the ends, so also 2^40 are at once. */
START_TEST(a_long_range_is_judged_by_its_ends) {
    const size_t rows = 1000000;
    float *ones = pe_arena_array(arena, rows, sizeof *ones, &err);
    struct pe_tensor long_table = {.data = ones, .dtype = PE_DTYPE_F32, .rank = 2, .dim = {rows, 1}};
    struct pe_plan *plan;
    struct pe_positions at;
    ck_assert_int_eq(PLAN(&plan, &long_table, NULL), PE_OK);
    ck_assert(!pe_positions_steps(&at, 0, 1, rows, &err) && !pe_encode_check(plan, &at, PE_DTYPE_F32, &err));
    ck_assert(!pe_positions_steps(&at, 0, 1, rows + 1, &err));
    ck_assert_int_eq(pe_encode_check(plan, &at, PE_DTYPE_F32, &err), PE_ERR_RANGE);
    ck_assert_str_eq(err.path, "positions[1000000]");
    err = (struct pe_error){0};
    ck_assert(!pe_positions_steps(&at, 0, 1, (size_t)1 << 40, &err));
    ck_assert_int_eq(pe_encode_check(plan, &at, PE_DTYPE_F32, &err), PE_ERR_RANGE);
    pe_plan_close(plan);
}
END_TEST

/* A table may hold more than the type asked for: refused at the first position that takes such a row, and
 * only there. The table is 0 1 2 3 and so on by rows; row 5 ends in 65520, the first number that float16
 * rounds to infinity, and row 6 in 1e300. */
START_TEST(rows_beyond_the_type_are_refused) {
    static const struct {
        const char *positions, *outside, *between, *path; /* path NULL: it fits */
        enum pe_dtype dtype;
    } rows[] = {
        {"0,4,7", "error", "none", NULL, PE_DTYPE_F16},
        {"0,4,5", "error", "none", "positions[2]", PE_DTYPE_F16},
        {"0,5,6", "error", "none", "positions[2]", PE_DTYPE_F32},
        {"0:8", "error", "none", NULL, PE_DTYPE_F64},
        {"0:8", "error", "none", "positions[5]", PE_DTYPE_F16},
        {"0:8:3", "error", "none", "positions[2]", PE_DTYPE_F32},
        {"-100000000000:100000000000", "zero", "none", "positions[100000000006]", PE_DTYPE_F32},
        {"100000000000:-100000000000:-1", "clamp", "none", "positions[99999999994]", PE_DTYPE_F32},
        {"8:1000000000000", "clamp", "none", NULL, PE_DTYPE_F16},
        {"3:4.01:0.125", "error", "linear", NULL, PE_DTYPE_F16},
        {"3:5:0.125", "error", "linear", "positions[9]", PE_DTYPE_F16},
        {"[[6.5,0],[0,7]]", "error", "linear", "positions[0][0]", PE_DTYPE_BF16},
    };
    numbers[5 * WIDTH + WIDTH - 1] = 65520;
    numbers[6 * WIDTH + WIDTH - 1] = 1e300;
    struct pe_plan *plan;
    struct pe_positions at;
    ck_assert(!PLAN(&plan, &table, "out_of_range", rows[_i].outside, "interpolate", rows[_i].between, NULL));
    ck_assert(!pe_positions_parse(arena, &at, rows[_i].positions, &err));
    int code = pe_encode_check(plan, &at, rows[_i].dtype, &err);
    ck_assert_int_eq(code, rows[_i].path ? PE_ERR_RANGE : PE_OK);
    ck_assert_str_eq(err.path, rows[_i].path ? rows[_i].path : "");
    pe_plan_close(plan);
}
END_TEST

START_TEST(clamp_takes_the_nearest_row) {
    static const double want[] = {0, 0, 7, 7, 7, 0};
    struct pe_plan *plan;
    ck_assert_int_eq(PLAN(&plan, &table, "out_of_range", "clamp", "offset", "2", NULL), PE_OK);
    struct pe_tensor out = encode(plan, "-3,-2,5,6,9007199254740992,-9007199254740992", PE_DTYPE_F64);
    assert_rows(&out, want, COUNT(want));
    pe_plan_close(plan);
}
END_TEST

START_TEST(zero_gives_zeros) {
    struct pe_plan *plan;
    ck_assert_int_eq(PLAN(&plan, &table, "out_of_range", "zero", NULL), PE_OK);
    struct pe_tensor out = encode(plan, "-1,7,8", PE_DTYPE_F64);
    static const double want[] = {0, 0, 0, 7, 7.25, 7.5, 0, 0, 0};
    ck_assert_mem_eq(out.data, want, sizeof want);
    pe_plan_close(plan);
}
END_TEST

/* The rows are linear in their number, so the value between is the number itself. */
START_TEST(linear_mixes_the_two_rows) {
    static const double want[] = {0, 0.5, 6.75, 7, 3.25};
    struct pe_plan *plan;
    ck_assert_int_eq(PLAN(&plan, &table, "interpolate", "linear", "offset", "-1", NULL), PE_OK);
    struct pe_tensor out = encode(plan, "1,1.5,7.75,8,4.25", PE_DTYPE_F32);
    assert_rows(&out, want, COUNT(want));
    pe_plan_close(plan);
}
END_TEST

/* 1/10 of the way from 1 to 2^-60 in float64: (9 + 2^-60)/10 by hand; the weights are those of the double
 * nearest to 0.1, 0.1 + 2^-57.3, so the value is 0.9 - 2^-57.3, of which 0.9 is the nearest double. */
START_TEST(linear_is_rounded_as_the_exact_mix) {
    double two[2] = {1, 0x1p-60};
    struct pe_tensor rows = {.data = two, .dtype = PE_DTYPE_F64, .rank = 2, .dim = {2, 1}};
    struct pe_plan *plan;
    ck_assert_int_eq(PLAN(&plan, &rows, "interpolate", "linear", NULL), PE_OK);
    struct pe_tensor out = encode(plan, "0.1", PE_DTYPE_F64);
    ck_assert_double_eq(*(const double *)out.data, 0.9);
    pe_plan_close(plan);
}
END_TEST

/* Between the last row and nothing there is nothing; nor before the first. */
START_TEST(linear_ends_with_the_table) {
    static const char *const policies[] = {"error", "clamp", "zero"};
    static const double clamped[] = {7, 0};
    struct pe_plan *plan;
    ck_assert_int_eq(PLAN(&plan, &table, "interpolate", "linear", "out_of_range", policies[_i], NULL), PE_OK);
    struct pe_tensor out = encode(plan, "7.5,-0.00000000000000000001", PE_DTYPE_F64);
    if (_i == 0) {
        ck_assert_int_eq(err.code, PE_ERR_RANGE);
        ck_assert_str_eq(err.path, "positions[0]");
        ck_assert_str_eq(err.text, "position 7.5 with offset 0 is row 7.5, but the table has 8 rows, 0 to 7");
    } else if (_i == 1) {
        assert_rows(&out, clamped, 2);
    } else {
        static const double zeros[2 * WIDTH] = {0};
        ck_assert_mem_eq(out.data, zeros, sizeof zeros);
    }
    pe_plan_close(plan);
}
END_TEST

START_TEST(a_table_is_needed_and_has_two_axes) {
    static const struct {
        int rank;
        size_t dim[4];
        int code;
        const char *text;
    } rows[] = {
        {1, {24}, PE_ERR_SHAPE, "got shape [24], allowed are [rows, D] and [1, rows, D]"},
        {3, {2, 4, 3}, PE_ERR_SHAPE, "got shape [2, 4, 3], allowed are [rows, D] and [1, rows, D]"},
        {4, {1, 1, 8, 3}, PE_ERR_SHAPE, "got shape [1, 1, 8, 3], allowed are [rows, D] and [1, rows, D]"},
        {2, {0, 3}, PE_ERR_SHAPE, "got shape [0, 3], allowed are 1 row or more of width 1 to 65536"},
        {2, {8, 0}, PE_ERR_SHAPE, "got shape [8, 0], allowed are 1 row or more of width 1 to 65536"},
        {3, {1, 8, 3}, PE_OK, ""},
        {0, {0}, PE_ERR_MISSING, NULL},
    };
    struct pe_plan *plan;
    struct pe_tensor shaped = table;
    shaped.rank = rows[_i].rank;
    memcpy(shaped.dim, rows[_i].dim, sizeof rows[_i].dim);
    ck_assert_int_eq(PLAN(&plan, rows[_i].text ? &shaped : NULL, NULL), rows[_i].code);
    if (rows[_i].code) {
        ck_assert_str_eq(err.path, "table");
    }
    if (rows[_i].text) {
        ck_assert_str_eq(err.text, rows[_i].text);
    }
    pe_plan_close(plan);
}
END_TEST

START_TEST(a_name_without_a_table_is_refused) {
    struct pe_plan *plan;
    ck_assert_int_eq(PLAN(&plan, NULL, "table", "bert", NULL), PE_ERR_UNKNOWN_NAME);
    ck_assert_str_eq(err.path, "table");
    ck_assert_str_eq(err.text, "no table \"bert\" is loaded");
}
END_TEST

Suite *learned_suite(void) {
    Suite *suite = suite_create("learned");
    TCase *tc = tcase_create("learned");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, rows_come_out_as_stored, 0, 16);
    tcase_add_test(tc, wide_rows_are_whole);
    tcase_add_loop_test(tc, what_has_no_row_is_refused_by_name, 0, (int)COUNT(outside));
    tcase_add_test(tc, a_long_range_is_judged_by_its_ends);
    tcase_add_loop_test(tc, rows_beyond_the_type_are_refused, 0, 12);
    tcase_add_test(tc, clamp_takes_the_nearest_row);
    tcase_add_test(tc, zero_gives_zeros);
    tcase_add_test(tc, linear_mixes_the_two_rows);
    tcase_add_test(tc, linear_is_rounded_as_the_exact_mix);
    tcase_add_loop_test(tc, linear_ends_with_the_table, 0, 3);
    tcase_add_loop_test(tc, a_table_is_needed_and_has_two_axes, 0, 7);
    tcase_add_test(tc, a_name_without_a_table_is_refused);
    suite_add_tcase(suite, tc);
    return suite;
}
