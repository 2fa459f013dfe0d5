/* SPDX-License-Identifier: MIT
 *
 * identify: what it says without a search, and what is refused.
 */
#include "identify_made.h"
#include "suites.h"

#include <math.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct pe_arena *arena;
static struct pe_error err;
static struct pe_identify_result result;

static void setup(void) {
    memset(&err, 0, sizeof err);
    arena = pe_arena_open((size_t)256 << 20, NULL, &err);
}

static void teardown(void) {
    pe_arena_close(arena);
}

/* ---- Told at once --------------------------------------------------------------------------------------- */

START_TEST(rows_that_are_the_same_are_none) {
    double x[64 * 8];
    for (size_t i = 0; i < COUNT(x); i++) {
        x[i] = _i ? 0.1 * (double)(i % 8) : 1.25;
    }
    struct pe_tensor table = {x, PE_DTYPE_F64, 2, {64, 8}};
    struct pe_identify_args asked = {.size = sizeof asked, .tensor = &table};
    ck_assert(!pe_identify_open(arena, &result, &asked, &err));
    ck_assert_uint_eq(result.n, 0);
    ck_assert_str_eq(result.verdict, "none of these: all rows are the same");
}
END_TEST

/* Positions as far as they go, where rounding leaves nothing to tell: not that all rows are the same. */
START_TEST(far_rows_are_not_the_same) {
    double x[6 * 4], p[6] = {0, 1, 2, 9e6, 0x1p53, 5};
    for (size_t i = 0; i < COUNT(x); i++) {
        double angle = p[i / 4] * (i % 4 < 2 ? 1 : 0.01);
        x[i] = i % 2 ? cos(angle) : sin(angle);
    }
    struct pe_tensor table = {x, PE_DTYPE_F64, 2, {6, 4}};
    struct pe_positions at = {.length = 6, .axes = 1, .list = p};
    struct pe_identify_args asked = {.size = sizeof asked, .tensor = &table, .positions = &at};
    ck_assert(!pe_identify_open(arena, &result, &asked, &err));
    ck_assert_str_ne(result.verdict, "none of these: all rows are the same");
}
END_TEST

/* Rows that nothing has turned, to their last place, also such as were multiplied: no search finds more. */
static const struct {
    double gain, noise;
    enum pe_dtype dtype;
    const char *verdict;
} unturned[] = {
    {1, 0, PE_DTYPE_F64, "none of these: nothing turns, vectors are the same after as before"},
    {1, 1e-13, PE_DTYPE_F64, "none of these: nothing turns, vectors are the same after as before"},
    {1, 0, PE_DTYPE_F16, "none of these: nothing turns, vectors are the same after as before"},
    {1, 0, PE_DTYPE_BF16, "none of these: nothing turns, vectors are the same after as before"},
    {0.125, 0, PE_DTYPE_F64, "none of these: nothing turns, every number is multiplied by 0.125"},
    {3, 0, PE_DTYPE_F32, "none of these: nothing turns, every number is multiplied by 3"},
};

START_TEST(rows_that_are_not_turned_are_told_at_once) {
    enum { ROWS = 300, WIDTH = 8 };
    double was[ROWS * WIDTH], got[ROWS * WIDTH];
    uint64_t cells[ROWS * WIDTH];
    identify_begin(5);
    for (size_t i = 0; i < COUNT(was); i++) {
        was[i] = 2 * identify_uniform() - 1;
        got[i] = unturned[_i].gain * was[i] + unturned[_i].noise * identify_normal();
    }
    pe_dtype_store(unturned[_i].dtype, got, COUNT(got), cells);
    struct pe_tensor before = {was, PE_DTYPE_F64, 2, {ROWS, WIDTH}};
    struct pe_tensor after = {cells, unturned[_i].dtype, 2, {ROWS, WIDTH}};
    struct pe_identify_args asked = {.size = sizeof asked, .before = &before, .after = &after};
    ck_assert(!pe_identify_open(arena, &result, &asked, &err));
    ck_assert_uint_eq(result.n, 0);
    ck_assert_str_eq(result.verdict, unturned[_i].verdict);
}
END_TEST

START_TEST(angles_of_0_turn_nothing) {
    double cosines[20 * 4], sines[20 * 4] = {0};
    for (size_t i = 0; i < COUNT(cosines); i++) {
        cosines[i] = 1;
    }
    struct pe_tensor one = {cosines, PE_DTYPE_F64, 2, {20, 4}}, other = {sines, PE_DTYPE_F64, 2, {20, 4}};
    struct pe_identify_args asked = {.size = sizeof asked, .cos = &one, .sin = &other};
    ck_assert(!pe_identify_open(arena, &result, &asked, &err));
    ck_assert_str_eq(result.verdict,
                     "none of these: nothing turns, every sine is 0 and all rows are the same");
}
END_TEST

/* What is said of all rows holds for those that are not searched, too: one of 4000 is another. */
START_TEST(rows_that_are_not_searched_are_looked_at) {
    static double x[4000 * 4];
    for (size_t row = 203; row < 4000; row += 759) {
        for (size_t i = 0; i < COUNT(x); i++) {
            x[i] = i / 4 == row ? 0.5 : _i;
        }
        struct pe_tensor table = {x, PE_DTYPE_F64, 2, {4000, 4}};
        struct pe_identify_args asked = {.size = sizeof asked, .tensor = &table};
        ck_assert(!pe_identify_open(arena, &result, &asked, &err));
        ck_assert_uint_eq(result.n, 0);
        ck_assert_str_ne(result.verdict, "none of these: every number is 0");
        ck_assert_str_ne(result.verdict, "none of these: all rows are the same");
    }
}
END_TEST

/* Sizes whose squares are no numbers are told, and all others make no difference. */
static const struct {
    double size;
    bool searched;
} sizes[] = {{1e-170, false}, {1e-100, false}, {1e-58, true},  {1e-20, true},
             {1e20, true},    {1e58, true},    {1e100, false}, {1e300, false}};

START_TEST(sizes_are_told_where_they_cannot_be_searched) {
    double x[40 * 8], other[40 * 8];
    identify_begin(3);
    for (size_t i = 0; i < 40 * 4; i++) {
        size_t row = i / 4, pair = i % 4;
        double angle = (double)row * pow(10000, -(double)pair / 4);
        double a = 2 * identify_uniform() - 1, b = 2 * identify_uniform() - 1;
        double size = sizes[_i / 3].size;
        if (_i % 3 == 2) { /* turned */
            other[row * 8 + 2 * pair] = size * a;
            other[row * 8 + 2 * pair + 1] = size * b;
            x[row * 8 + 2 * pair] = size * (a * cos(angle) - b * sin(angle));
            x[row * 8 + 2 * pair + 1] = size * (b * cos(angle) + a * sin(angle));
        } else if (_i % 3 == 1) {
            x[i] = size * cos(angle);
            other[i] = size * sin(angle);
        } else {
            x[row * 8 + 2 * pair] = size * sin(angle);
            x[row * 8 + 2 * pair + 1] = size * cos(angle);
        }
    }
    struct pe_tensor one = {x, PE_DTYPE_F64, 2, {40, _i % 3 == 1 ? 4 : 8}}, two = one;
    two.data = other;
    struct pe_identify_args asked = {.size = sizeof asked};
    asked.tensor = _i % 3 == 0 ? &one : NULL;
    asked.cos = _i % 3 == 1 ? &one : NULL;
    asked.sin = _i % 3 == 1 ? &two : NULL;
    asked.after = _i % 3 == 2 ? &one : NULL;
    asked.before = _i % 3 == 2 ? &two : NULL;
    ck_assert_msg(!pe_identify_open(arena, &result, &asked, &err), "%s: %s", err.path, err.text);
    if (!sizes[_i / 3].searched) {
        ck_assert_uint_eq(result.n, 0);
        ck_assert_msg(strstr(result.verdict, "outside of 1e-60 to 1e+60"), "%s", result.verdict);
        return;
    }
    static const char *const names[] = {"vaswani", "rope halves", "rope interleaved"};
    ck_assert_uint_ge(result.n, 1);
    ck_assert_str_eq(result.candidates[0].name, names[_i % 3]);
}
END_TEST

/* The only number of a size that can be searched is in a row that is not. */
START_TEST(rows_that_are_searched_are_told_by_their_size) {
    enum { ROWS = 700, WIDTH = 4, ALONE = 301 };
    static const char *const said[] = {"every number is 0", "every number is below 1e-60"};
    static double x[ROWS * WIDTH];
    for (size_t i = 0; i < COUNT(x); i++) {
        x[i] = i / WIDTH == ALONE ? 1 : _i * 1e-70;
    }
    struct pe_tensor table = {x, PE_DTYPE_F64, 2, {ROWS, WIDTH}};
    struct pe_identify_args asked = {.size = sizeof asked, .tensor = &table};
    ck_assert_msg(!pe_identify_open(arena, &result, &asked, &err), "%s: %s", err.path, err.text);
    const char *reason = strstr(result.verdict, "rows that are searched ");
    ck_assert_msg(reason && strcmp(reason + strlen("rows that are searched "), said[_i]) == 0, "%s",
                  result.verdict);
}
END_TEST

START_TEST(zeros_are_told_with_their_type) {
    double x[12] = {0};
    struct pe_tensor table = {x, _i ? PE_DTYPE_F32 : PE_DTYPE_F64, 2, {3, 4}};
    struct pe_identify_args asked = {.size = sizeof asked, .tensor = &table};
    ck_assert(!pe_identify_open(arena, &result, &asked, &err));
    ck_assert_str_eq(result.verdict,
                     _i ? "none of these: every number is 0 in float32" : "none of these: every number is 0");
}
END_TEST

/* ---- Refused ------------------------------------------------------------------------------------------- */

/* What is posted wrongly, and where that is said. */
static const struct {
    const char *path;
    int code;
    bool tensor, cos, sin, before;
    double base;
    const char *type, *layout;
} bad[] = {
    {.path = "tensor", .code = PE_ERR_MISSING},
    {.path = "sin", .code = PE_ERR_MISSING, .cos = true},
    {.path = "cos", .code = PE_ERR_MISSING, .sin = true},
    {.path = "after", .code = PE_ERR_MISSING, .before = true},
    {.path = "cos", .code = PE_ERR_CONFLICT, .tensor = true, .cos = true, .sin = true},
    {.path = "hints.type", .code = PE_ERR_UNKNOWN_NAME, .tensor = true, .type = "nonesuch"},
    {.path = "hints.layout", .code = PE_ERR_CHOICE, .tensor = true, .layout = "nonesuch"},
    {.path = "hints.base", .code = PE_ERR_RANGE, .tensor = true, .base = 0.5},
};

START_TEST(errors_name_the_field) {
    double values[6] = {0, 1, 2, 3, 4, 5};
    struct pe_tensor tensor = {.data = values, .dtype = PE_DTYPE_F64, .rank = 2, .dim = {3, 2}};
    const struct pe_identify_args args = {.size = sizeof args,
                                          .tensor = bad[_i].tensor ? &tensor : NULL,
                                          .cos = bad[_i].cos ? &tensor : NULL,
                                          .sin = bad[_i].sin ? &tensor : NULL,
                                          .before = bad[_i].before ? &tensor : NULL,
                                          .type = bad[_i].type,
                                          .layout = bad[_i].layout,
                                          .base = bad[_i].base};
    ck_assert_int_eq(pe_identify_open(arena, &result, &args, &err), bad[_i].code);
    ck_assert_str_eq(err.path, bad[_i].path);
}
END_TEST

/* Shapes that are none, and tables that do not belong together. */
START_TEST(shapes_are_checked) {
    double values[12] = {0};
    struct pe_tensor flat = {.data = values, .dtype = PE_DTYPE_F64, .rank = 1, .dim = {12}};
    struct pe_tensor one = {.data = values, .dtype = PE_DTYPE_F64, .rank = 2, .dim = {3, 4}};
    struct pe_tensor other = {.data = values, .dtype = PE_DTYPE_F64, .rank = 2, .dim = {4, 3}};
    struct pe_positions few = {.length = 2, .axes = 1, .step = 1};
    const struct pe_identify_args all[] = {{.size = sizeof all[0], .tensor = &flat},
                                           {.size = sizeof all[0], .cos = &one, .sin = &other},
                                           {.size = sizeof all[0], .tensor = &one, .positions = &few}};
    static const char *const paths[] = {"tensor", "sin", "positions"};
    ck_assert_int_eq(pe_identify_open(arena, &result, &all[_i], &err), PE_ERR_SHAPE);
    ck_assert_str_eq(err.path, paths[_i]);
}
END_TEST

/* Which are told as they were posted. */
START_TEST(shapes_are_told_as_posted) {
    static const struct {
        size_t n; /* positions */
        int after, before;
        size_t dims[2][4];
        const char *path, *text;
    } told[] = {
        {7,
         3,
         3,
         {{3, 9, 2}, {3, 9, 2}},
         "positions",
         "has shape [7] but the tokens need [3], as [T, H, d], or [9], as [H, T, d]"},
        {7, 3, 3, {{9, 9, 2}, {9, 9, 2}}, "positions", "has shape [7] but the tokens need [9]"},
        {0, 4, 3, {{1, 1, 9, 2}, {1, 8, 2}}, "before", "has shape [1, 8, 2], but after has [1, 1, 9, 2]"},
        {0,
         4,
         4,
         {{1, 1, 9, 2}, {1, 2, 9, 2}},
         "before",
         "has shape [1, 2, 9, 2], but after has [1, 1, 9, 2]"},
    };
    static double values[9 * 9 * 2];
    struct pe_tensor after = {values, PE_DTYPE_F64, told[_i].after, {0}}, before = after;
    struct pe_positions at = {.length = told[_i].n, .axes = 1, .step = 1};
    before.rank = told[_i].before;
    memcpy(after.dim, told[_i].dims[0], sizeof told[_i].dims[0]);
    memcpy(before.dim, told[_i].dims[1], sizeof told[_i].dims[1]);
    struct pe_identify_args asked = {
        .size = sizeof asked, .before = &before, .after = &after, .positions = told[_i].n ? &at : NULL};
    ck_assert_int_eq(pe_identify_open(arena, &result, &asked, &err), PE_ERR_SHAPE);
    ck_assert_str_eq(err.path, told[_i].path);
    ck_assert_str_eq(err.text, told[_i].text);
}
END_TEST

START_TEST(numbers_that_are_none_are_told_as_posted) {
    double values[6] = {0, 1, 2, INFINITY, 4, 5};
    struct pe_tensor table = {values, PE_DTYPE_F64, 3, {1, 3, 2}};
    struct pe_identify_args asked = {.size = sizeof asked, .tensor = &table};
    ck_assert_int_ne(pe_identify_open(arena, &result, &asked, &err), PE_OK);
    ck_assert_str_eq(err.path, "tensor[0][1][1]");
}
END_TEST

/* Vectors of before and after may have axes of 1 in different places. */
START_TEST(axes_of_one_may_be_on_one_side) {
    static const size_t shapes[][4] = {{9, 8}, {1, 9, 8}, {9, 1, 8}, {1, 1, 9, 8}, {1, 9, 1, 8}};
    static const int ranks[] = {2, 3, 3, 4, 4};
    double was[9 * 8], got[9 * 8];
    identify_begin(8);
    for (size_t i = 0; i < 9 * 4; i++) {
        double angle = (double)(i / 4) * pow(10000, -(double)(i % 4) / 4);
        was[2 * i] = identify_normal();
        was[2 * i + 1] = identify_normal();
        got[2 * i] = was[2 * i] * cos(angle) - was[2 * i + 1] * sin(angle);
        got[2 * i + 1] = was[2 * i + 1] * cos(angle) + was[2 * i] * sin(angle);
    }
    struct pe_tensor before = {was, PE_DTYPE_F64, ranks[_i / 5], {0}},
                     after = {got, PE_DTYPE_F64, ranks[_i % 5], {0}};
    memcpy(before.dim, shapes[_i / 5], sizeof shapes[0]);
    memcpy(after.dim, shapes[_i % 5], sizeof shapes[0]);
    struct pe_identify_args asked = {.size = sizeof asked, .before = &before, .after = &after};
    ck_assert_msg(!pe_identify_open(arena, &result, &asked, &err), "%s: %s", err.path, err.text);
    ck_assert_uint_ge(result.n, 1);
    ck_assert_str_eq(result.candidates[0].name, "rope interleaved");
}
END_TEST

Suite *identify_plain_suite(void) {
    Suite *suite = suite_create("identify_plain");
    TCase *single = tcase_create("plain");
    suite_add_tcase(suite, single);
    tcase_add_checked_fixture(single, setup, teardown);
    tcase_add_loop_test(single, rows_that_are_the_same_are_none, 0, 2);
    tcase_add_test(single, far_rows_are_not_the_same);
    tcase_add_loop_test(single, rows_that_are_not_turned_are_told_at_once, 0, COUNT(unturned));
    tcase_add_test(single, angles_of_0_turn_nothing);
    tcase_add_loop_test(single, rows_that_are_not_searched_are_looked_at, 0, 2);
    tcase_add_loop_test(single, sizes_are_told_where_they_cannot_be_searched, 0, 3 * COUNT(sizes));
    tcase_add_loop_test(single, rows_that_are_searched_are_told_by_their_size, 0, 2);
    tcase_add_loop_test(single, zeros_are_told_with_their_type, 0, 2);
    tcase_add_loop_test(single, shapes_are_told_as_posted, 0, 4);
    tcase_add_test(single, numbers_that_are_none_are_told_as_posted);
    tcase_add_loop_test(single, axes_of_one_may_be_on_one_side, 0, 25);
    tcase_add_loop_test(single, errors_name_the_field, 0, COUNT(bad));
    tcase_add_loop_test(single, shapes_are_checked, 0, 3);
    return suite;
}
