/* SPDX-License-Identifier: MIT
 *
 * resize, and learned tables of grids: what is refused and how it is said, and what must hold of any kernel.
 * Numbers are in the cases, from torch.
 */
#include "suites.h"

#include "posenc.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct pe_arena *arena;
static struct pe_error err;
static struct pe_work work;
static struct pe_tensor resized;
static double numbers[4096];
static struct pe_tensor table;

static void setup(void) {
    err = (struct pe_error){0};
    arena = pe_arena_open((size_t)64 << 20, NULL, &err);
    for (size_t i = 0; i < COUNT(numbers); i++) {
        numbers[i] = (double)(i * 37 % 101) / 8 - 6;
    }
    table = (struct pe_tensor){.data = numbers, .dtype = PE_DTYPE_F64, .rank = 2, .dim = {10, 3}};
}

static void teardown(void) {
    pe_arena_close(arena);
}

#define ARGS(...)                                                                                            \
    &(const struct pe_resize_args) {                                                                         \
        .size = sizeof(struct pe_resize_args), .table = &table, __VA_ARGS__                                  \
    }

static void refused(const struct pe_resize_args *args, int code, const char *path, const char *part) {
    err = (struct pe_error){0};
    ck_assert_int_eq(pe_resize_open(arena, &work, &resized, args, &err), code);
    ck_assert_str_eq(err.path, path);
    ck_assert_msg(strstr(err.text, part) != NULL, "%s is not in %s", part, err.text);
    ck_assert_int_eq(resized.rank, 0);
    ck_assert_uint_eq(work.n_parts, 0);
}

#define BICUBIC .kernel = PE_RESAMPLE_BICUBIC

START_TEST(what_is_refused) {
    refused(&(struct pe_resize_args){.size = sizeof(struct pe_resize_args), .to_rows = 2, BICUBIC},
            PE_ERR_MISSING, "tensor", "is missing");
    refused(ARGS(BICUBIC), PE_ERR_MISSING, "to_grid", "or to_rows");
    refused(ARGS(BICUBIC, .to_rows = 2, .to_grid = {1, 1}), PE_ERR_CONFLICT, "to_grid", "beside to_rows");
    refused(ARGS(BICUBIC, .to_grid = {3, 0}), PE_ERR_RANGE, "to_grid", "got 3 x 0, allowed are a height");
    refused(ARGS(BICUBIC, .from_grid = {2, 5}, .to_grid = {SIZE_MAX / 2, 1}), PE_ERR_RANGE, "to_grid",
            "which is too large");
    refused(ARGS(BICUBIC, .to_rows = 2, .from_grid = {2, 5}), PE_ERR_CONFLICT, "from_grid", "of grids");
    refused(ARGS(.to_rows = 2), PE_ERR_MISSING, "kernel", "projects differ");
    refused(ARGS(.to_rows = 2, .kernel = (enum pe_resample)99), PE_ERR_CHOICE, "kernel",
            "got 99, allowed are 1 to 6");
    refused(ARGS(.to_rows = 2, .kernel = PE_RESAMPLE_BICUBIC_ANTIALIAS, .align_corners = true),
            PE_ERR_CONFLICT, "align_corners", "antialiased");
    refused(ARGS(BICUBIC, .to_rows = 2, .dtype = (enum pe_dtype)9), PE_ERR_DTYPE, "dtype", "got 9");
    refused(ARGS(BICUBIC, .to_grid = {2, 2}), PE_ERR_MISSING, "from_grid", "no square; 10 are 3 x 3 and 1");
    refused(ARGS(BICUBIC, .to_grid = {2, 2}, .from_grid = {2, 4}), PE_ERR_SHAPE, "tensor",
            "has 10 rows, but a grid of 2 x 4 and 0 rows beside it has 8; 10 are 3 x 3 and 1");
    refused(ARGS(BICUBIC, .to_rows = 2, .prefix_rows = 4, .suffix_rows = 6), PE_ERR_RANGE, "prefix_rows",
            "10 of the 10 rows");
    refused(ARGS(BICUBIC, .to_rows = 2, .prefix_rows = SIZE_MAX, .suffix_rows = 2), PE_ERR_RANGE,
            "prefix_rows", "rows");
    refused(ARGS(BICUBIC, .to_grid = {(size_t)1 << 40, (size_t)1 << 40}, .prefix_rows = 1), PE_ERR_RANGE,
            "to_grid", "too large");
    refused(ARGS(BICUBIC, .to_grid = {(size_t)1 << 24, (size_t)1 << 20}, .prefix_rows = 1), PE_ERR_LIMIT,
            "to_grid", "");
    refused(ARGS(BICUBIC, .to_rows = (size_t)1 << 40), PE_ERR_LIMIT, "to_rows", "");
}
END_TEST

START_TEST(shapes_that_are_refused) {
    static const struct {
        int rank;
        size_t dim[5];
        bool rows;
        const char *part;
    } all[] = {
        {1, {30}, true, "has shape [30], allowed are"},
        {3, {2, 5, 3}, true, "has shape [2, 5, 3], allowed are"},
        {4, {2, 5, 1, 3}, false, "allowed are [rows, D], and of grids [h, w, D]"},
        {5, {1, 1, 2, 5, 3}, false, "allowed are"},
        {2, {0, 3}, true, "which is empty"},
        {2, {3, 0}, true, "which is empty"},
    };
    table.rank = all[_i].rank;
    memcpy(table.dim, all[_i].dim, sizeof all[_i].dim);
    refused(all[_i].rows ? ARGS(BICUBIC, .to_rows = 2) : ARGS(BICUBIC, .to_grid = {2, 2}), PE_ERR_SHAPE,
            "tensor", all[_i].part);
}
END_TEST

START_TEST(the_grid_of_the_axes) {
    table.rank = 4;
    memcpy(table.dim, (size_t[]){1, 2, 5, 3}, 4 * sizeof(size_t));
    refused(ARGS(BICUBIC, .to_grid = {2, 2}, .from_grid = {5, 2}), PE_ERR_CONFLICT, "from_grid", "is 5 x 2");
    refused(ARGS(BICUBIC, .to_grid = {2, 2}, .prefix_rows = 1), PE_ERR_SHAPE, "tensor", "2 x 5 and 1 rows");
    err = (struct pe_error){0};
    ck_assert(!pe_resize_open(arena, &work, &resized, ARGS(BICUBIC, .to_grid = {3, 4}), &err));
    ck_assert(resized.rank == 4 && resized.dim[1] == 3 && resized.dim[2] == 4 && resized.dim[3] == 3);
}
END_TEST

/* Weights sum to 1, so constants stay, and sizes that are the same change nothing, whichever axis is first. */
START_TEST(constants_and_same_sizes_stay) {
    static const size_t sizes[][4] = {{4, 9, 4, 9}, {9, 4, 9, 4},  {4, 9, 17, 2}, {9, 4, 2, 17},
                                      {1, 1, 3, 3}, {36, 1, 5, 1}, {1, 36, 1, 7}, {6, 6, 1, 1}};
    for (int kernel = PE_RESAMPLE_LINEAR; kernel <= PE_RESAMPLE_BICUBIC_ANTIALIAS; kernel++) {
        const size_t *s = sizes[_i];
        bool same = s[0] == s[2] && s[1] == s[3];
        double ones[36 * 2];
        for (size_t i = 0; i < COUNT(ones); i++) {
            ones[i] = 3.5;
        }
        table.data = same ? numbers : ones;
        table.dim[0] = s[0] * s[1];
        table.dim[1] = 2;
        ck_assert_msg(!pe_resize_open(arena, &work, &resized,
                                      ARGS(.kernel = (enum pe_resample)kernel, .from_grid = {s[0], s[1]},
                                           .to_grid = {s[2], s[3]}),
                                      &err),
                      "%s", err.text);
        ck_assert(pe_work_run(&work));
        for (size_t i = 0; i < s[2] * s[3] * 2; i++) {
            double got = ((const double *)resized.data)[i];
            ck_assert_msg(same ? got == numbers[i] : fabs(got - 3.5) < 1e-14, "kernel %d: number %zu: %.17g",
                          kernel, i, got);
        }
    }
}
END_TEST

/* Both orders of the axes: a table and its transpose give the same, transposed. */
START_TEST(axes_are_alike) {
    double turned[4 * 9];
    struct pe_tensor first;
    table.dim[0] = 36;
    table.dim[1] = 1;
    ck_assert(
        !pe_resize_open(arena, &work, &first, ARGS(BICUBIC, .from_grid = {4, 9}, .to_grid = {7, 2}), &err));
    ck_assert(pe_work_run(&work));
    double cost_ns = work.cost_ns;
    for (size_t i = 0; i < 36; i++) {
        turned[i % 9 * 4 + i / 9] = numbers[i];
    }
    table.data = turned;
    ck_assert(
        !pe_resize_open(arena, &work, &resized, ARGS(BICUBIC, .from_grid = {9, 4}, .to_grid = {2, 7}), &err));
    ck_assert(pe_work_run(&work));
    ck_assert_double_eq(work.cost_ns, cost_ns); /* the axis that costs less was first in both */
    for (size_t i = 0; i < 14; i++) {
        double a = ((const double *)first.data)[i], b = ((const double *)resized.data)[i % 2 * 7 + i / 2];
        ck_assert_double_eq_tol(a, b, 1e-14);
    }
}
END_TEST

/* Cubic kernels go beyond what they are given; numbers that this takes to infinity are refused. */
START_TEST(what_would_overflow_is_refused) {
    double ends[4] = {0, DBL_MAX, DBL_MAX, 0};
    table.data = ends;
    table.dim[0] = 4;
    table.dim[1] = 1;
    refused(ARGS(BICUBIC, .to_rows = 7), PE_ERR_RANGE, "tensor", "beyond the largest float64");
    ends[1] = ends[2] = 65000;
    refused(ARGS(BICUBIC, .to_rows = 7, .dtype = PE_DTYPE_F16), PE_ERR_RANGE, "tensor", "65000");
    err = (struct pe_error){0};
    ck_assert(!pe_resize_open(arena, &work, &resized, ARGS(BICUBIC, .to_rows = 7), &err));
}
END_TEST

/* Halfway |weights| sum to 1.375 along an axis, and along two to its square. */
START_TEST(both_axes_may_overflow) {
    double cells[64];
    for (size_t i = 0; i < COUNT(cells); i++) {
        cells[i] = 40000;
    }
    table.data = cells;
    table.dim[0] = 64;
    table.dim[1] = 1;
    refused(ARGS(BICUBIC, .to_grid = {4, 4}, .dtype = PE_DTYPE_F16), PE_ERR_RANGE, "tensor", "40000");
    err = (struct pe_error){0};
    ck_assert(
        !pe_resize_open(arena, &work, &resized, ARGS(BICUBIC, .to_rows = 32, .dtype = PE_DTYPE_F16), &err));
}
END_TEST

static bool count_asked(void *context) {
    ++*(int *)context;
    return false;
}

/* Every 64 cells of a line, and every 64 rows that it makes: here 2000 cells of 2 rows, and 2000 rows. */
START_TEST(long_lines_may_be_stopped) {
    int asked = 0;
    const struct pe_stop stop = {count_asked, &asked};
    table.dim[0] = 4000;
    table.dim[1] = 1;
    err.stop = &stop;
    ck_assert(!pe_resize_open(arena, &work, &resized,
                              ARGS(BICUBIC, .from_grid = {2, 2000}, .to_grid = {1, 2000}), &err));
    asked = 0;
    ck_assert(pe_work_run(&work));
    ck_assert_int_ge(asked, 3 * (2000 / 64));
}
END_TEST

/* ---- Learned tables of grids --------------------------------------------------------------------------- */

static const struct {
    const char *params[8], *positions;
    enum pe_code code;
    const char *path, *part;
} grids[] = {
    {{"cls_rows", "2"},
     "0",
     PE_ERR_MISSING,
     "grid",
     "10 rows, 2 of them class rows, are no square, but 3 x 3 and 1"},
    {{"grid", "3"}, "0", PE_ERR_SHAPE, "grid", "got 1 sizes"},
    {{"grid", "3,3", "image_grid", "1,2,3", "interpolate", "bicubic"},
     "0",
     PE_ERR_SHAPE,
     "image_grid",
     "3 sizes"},
    {{"grid", "2,5", "cls_rows", "1"}, "0", PE_ERR_SHAPE, "table", "2 x 5 and 1 class row has 11; convert"},
    {{"cls_rows", "20"}, "0", PE_ERR_MISSING, "grid", "no square"},
    {{"grid", "2,5", "offset", "1"}, "0", PE_ERR_CONFLICT, "offset", "cls_rows"},
    {{"grid", "2,5", "interpolate", "linear"}, "0", PE_ERR_CONFLICT, "interpolate", "bilinear"},
    {{"grid", "2,5", "image_grid", "3,3"}, "0", PE_ERR_CONFLICT, "image_grid", "interpolate is none"},
    {{"grid", "2,5", "align_corners", "true"}, "0", PE_ERR_CONFLICT, "align_corners", "no image_grid"},
    {{"grid", "2,5", "align_corners", "true", "image_grid", "2,2", "interpolate", "bicubic_antialias"},
     "0",
     PE_ERR_CONFLICT,
     "align_corners",
     "antialiased"},
    {{"grid", "1,10", "image_grid", "1,1", "interpolate", "bicubic"},
     "0",
     PE_ERR_RANGE,
     "image_grid",
     "one in 8; convert"},
    {{"grid", "2,5"},
     "9,10",
     PE_ERR_RANGE,
     "positions[1]",
     "image of 2 x 5 with 0 class rows, which are 0 to 9"},
    {{"grid", "2,5"}, "-1", PE_ERR_RANGE, "positions[0]", "no token"},
    {{"grid", "2,5"}, "0.5", PE_ERR_RANGE, "positions[0]", "has two coordinates"},
    {{"grid", "2,5"}, "[[1,4],[1,5]]", PE_ERR_RANGE, "positions[1][1]", "outside of the grid, 0 to 4"},
    {{"grid", "2,5"}, "[[1,4],[0.5,4]]", PE_ERR_RANGE, "positions[1][0]", "not a whole number"},
    {{"grid", "2,5", "interpolate", "bilinear"},
     "[[1.5,4.5],[-0.75,0]]",
     PE_ERR_RANGE,
     "positions[1][0]",
     "outside of the grid, -0.5 to 1.5"},
    {{"grid", "2,5", "interpolate", "bilinear"}, "[[1,2,3]]", PE_ERR_SHAPE, "positions", "3 coordinates"},
    {{"offset", "1"}, "[[1,2]]", PE_ERR_SHAPE, "positions", "a grid says that they have 2"},
};

static struct pe_plan *plan_open(const char *const *params) {
    struct pe_spec spec;
    struct pe_plan *plan = NULL;
    ck_assert(!pe_spec_init(arena, &spec, "learned", &err) &&
              !pe_spec_set_tensor(&spec, "table", &table, &err));
    for (size_t i = 0; i < 8 && params[i]; i += 2) {
        ck_assert_msg(!pe_spec_set(arena, &spec, params[i], params[i + 1], &err), "%s", err.text);
    }
    return pe_plan_open(&plan, &spec, &err) ? NULL : plan;
}

/* Rows of coordinates where the text is a list of lists. */
static int positions_open(struct pe_positions *at, const char *text) {
    int code = pe_positions_parse(arena, at, text, &err);
    if (!code && text[0] == '[') {
        at->axes = (int)at->length;
        at->length = at->batch;
        at->batch = 0;
    }
    return code;
}

START_TEST(grids_that_are_refused) {
    struct pe_positions at;
    struct pe_plan *plan = plan_open(grids[_i].params);
    if (plan) {
        ck_assert(!positions_open(&at, grids[_i].positions));
        ck_assert_int_ne(pe_encode_check(plan, &at, PE_DTYPE_F32, &err), 0);
    }
    ck_assert_msg((int)grids[_i].code == (int)err.code, "%d at %s: %s", err.code, err.path, err.text);
    ck_assert_str_eq(err.path, grids[_i].path);
    ck_assert_msg(strstr(err.text, grids[_i].part) != NULL, "%s is not in %s", grids[_i].part, err.text);
    pe_plan_close(plan);
}
END_TEST

/* Positions beyond the grid: the edge of the nearest cell, or zeros. Rows are 0, 1 .. 9. */
START_TEST(beyond_the_grid) {
    static const struct {
        const char *outside, *interpolate, *positions;
        double want[3];
    } rows[] = {
        {"clamp", "none", "[[0,5],[-3,1],[9,-9]]", {4, 1, 5}},
        {"zero", "none", "[[0,5],[1,1],[2,0]]", {0, 6, 0}},
        {"clamp", "bilinear", "[[0,7.5],[-1,1.25],[9,-9]]", {4, 1.25, 5}},
        {"zero", "bilinear", "[[0,4.75],[1,1.5],[-0.5,4.5]]", {0, 6.5, 4}},
        {"clamp", "none", "-5,3,12", {0, 3, 9}},
        {"zero", "bilinear", "-1,3,10", {0, 3, 0}},
    };
    const char *params[8] = {"grid",           "2,5",         "out_of_range",
                             rows[_i].outside, "interpolate", rows[_i].interpolate};
    struct pe_positions at;
    struct pe_tensor out;
    table.dim[1] = 1;
    for (int i = 0; i < 10; i++) {
        numbers[i] = i;
    }
    struct pe_plan *plan = plan_open(params);
    ck_assert(plan && !positions_open(&at, rows[_i].positions));
    ck_assert_msg(!pe_encode_open(arena, &work, &out, plan, &at, PE_DTYPE_F64, &err), "%s", err.text);
    ck_assert(pe_work_run(&work));
    for (size_t i = 0; i < 3; i++) {
        ck_assert_double_eq_tol(((const double *)out.data)[i], rows[_i].want[i], 1e-14);
    }
    pe_plan_close(plan);
}
END_TEST

/* Cells of an image with its corners on those of the table's grid, 2 on 10, reach half an image's cell beyond it, which
 * is 4.5 rows: the edge of the last row is the last place. There the cubic kernel of a = -3/4, whose weights half a row
 * and one and a half away are 19/32 and -3/32, takes what is beyond from the row at the end: 35/32 of that, and -3/32 of
 * the one before. */
START_TEST(image_cells_end_with_the_table) {
    static const char *const params[8] = {"grid",        "10,1",    "image_grid",    "2,1",
                                          "interpolate", "bicubic", "align_corners", "true"};
    struct pe_positions at;
    struct pe_tensor out;
    table.dim[1] = 1;
    for (int i = 0; i < 10; i++) {
        numbers[i] = i;
    }
    struct pe_plan *plan = plan_open(params);
    ck_assert(plan && !positions_open(&at, "[[1.5,0],[-0.5,0]]"));
    ck_assert_msg(!pe_encode_open(arena, &work, &out, plan, &at, PE_DTYPE_F64, &err), "%s", err.text);
    ck_assert(pe_work_run(&work));
    ck_assert_double_eq(((const double *)out.data)[0], (35.0 * 9 - 3.0 * 8) / 32);
    ck_assert_double_eq(((const double *)out.data)[1], -3.0 / 32);
    pe_plan_close(plan);
}
END_TEST

/* What a kernel or a scale may take to infinity is refused at its position. */
START_TEST(grids_beyond_the_type) {
    static const struct {
        const char *params[8], *positions, *path;
        enum pe_dtype dtype;
    } rows[] = {
        {{"grid", "2,5"}, "[[0,0],[1,4]]", "positions[1]", PE_DTYPE_F16},
        {{"grid", "2,5"}, "8,9", "positions[1]", PE_DTYPE_F16},
        {{"grid", "2,5", "interpolate", "bicubic"}, "[[0,0.5],[1,3.5]]", "positions[1]", PE_DTYPE_F64},
        {{"table_scale", "1000"}, "8,9", "positions[1]", PE_DTYPE_F64},
        {{"cls_rows", "1", "table_scale", "1000"}, "0,9", "positions[1]", PE_DTYPE_F64},
    };
    struct pe_positions at;
    table.dim[1] = 1;
    numbers[9] = 1e308;
    struct pe_plan *plan = plan_open(rows[_i].params);
    ck_assert(plan && !positions_open(&at, rows[_i].positions));
    ck_assert_int_eq(pe_encode_check(plan, &at, rows[_i].dtype, &err), PE_ERR_RANGE);
    ck_assert_msg(strncmp(err.path, rows[_i].path, strlen(rows[_i].path)) == 0, "%s: %s", err.path, err.text);
    pe_plan_close(plan);
}
END_TEST

Suite *resize_suite(void) {
    Suite *suite = suite_create("resize");
    TCase *tests = tcase_create("resize");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, what_is_refused);
    tcase_add_loop_test(tests, shapes_that_are_refused, 0, 6);
    tcase_add_test(tests, the_grid_of_the_axes);
    tcase_add_loop_test(tests, constants_and_same_sizes_stay, 0, 8);
    tcase_add_test(tests, axes_are_alike);
    tcase_add_test(tests, what_would_overflow_is_refused);
    tcase_add_test(tests, both_axes_may_overflow);
    tcase_add_test(tests, long_lines_may_be_stopped);
    tcase_add_loop_test(tests, grids_that_are_refused, 0, (int)COUNT(grids));
    tcase_add_loop_test(tests, beyond_the_grid, 0, 6);
    tcase_add_test(tests, image_cells_end_with_the_table);
    tcase_add_loop_test(tests, grids_beyond_the_type, 0, 5);
    return suite;
}
