/* SPDX-License-Identifier: MIT
 *
 * Public bug reports on images: the order of tokens and of axes. Each test is named after a project and its
 * report. Grids that are not square tell rows from columns, and square ones hide that they were swapped.
 */
#include "report_run.h"
#include "suites.h"

#include <math.h>

#define ND "GET /v1/encode?type=sinusoidal_nd&dtype=float64&d_model=8&positions.grid="

/* Token t of a grid [h, w] is row t/w and column t%w; block 0 of the vector is rows, or block 1 is. */
static void expect_row_major(const struct report_tensor *got, size_t h, size_t w, bool columns_first) {
    ck_assert(got->rank == 2 && got->dim[0] == h * w && got->dim[1] == 8);
    for (size_t t = 0; t < h * w; t++) {
        const double *row = got->values + 8 * t;
        double y = (double)(t / w), x = (double)(t % w);
        double first = columns_first ? x : y, second = columns_first ? y : x;
        report_row(got, 8 * t, 1e-15,
                   REPORT_VALUES(sin(first), sin(first / 100), cos(first), cos(first / 100)));
        ck_assert_double_eq_tol(row[4], sin(second), 1e-15);
        ck_assert_double_eq_tol(row[7], cos(second / 100), 1e-15);
    }
}

/* meshgrid(w, h) for tokens that stand row by row: with w = 4 and h = 3 their vectors were another's. */
START_TEST(transformers_41380_torchtitan_4244_rows_then_columns) {
    struct report_tensor got = report_tensor(ND "3,4&combine=timm_interleaved", NULL, "vectors");
    expect_row_major(&got, 3, 4, false);
    got = report_tensor(ND "4,3&combine=timm_interleaved", NULL, "vectors");
    expect_row_major(&got, 4, 3, false);
    report_expect("GET /v1/positions?grid=3,4", NULL, "positions", REPORT_SHAPE(12, 2), 0,
                  REPORT_VALUES(0, 0, 0, 1, 0, 2, 0, 3, 1, 0, 1, 1, 1, 2, 1, 3, 2, 0, 2, 1, 2, 2, 2, 3));
}
END_TEST

/* Indexing 'xy' or reversed coordinates moved the tokens instead of the columns. Which axis has the first
 * columns is one question (MAE: the column of the image), the order of tokens another. */
START_TEST(timm_2541_reverse_coord_rows_follow_tokens) {
    struct report_tensor mae = report_tensor(ND "2,3&combine=mae", NULL, "vectors");
    expect_row_major(&mae, 2, 3, true);
    struct report_tensor other =
        report_tensor(ND "2,3&combine=timm_interleaved&axes_order=last_axis_first", NULL, "vectors");
    expect_row_major(&other, 2, 3, true);
}
END_TEST

/* An image that is posted as one is walked as its memory is. */
START_TEST(torchtitan_4244_images_have_the_grid_of_their_shape) {
    static const size_t image[] = {2, 3, 8};
    double *zeros = report_doubles(48);
    struct report_tensor got =
        report_tensor_raw("POST /v1/apply?type=sinusoidal_nd&combine=timm_interleaved&axes=hwd&format=raw",
                          zeros, image, 3, "embeddings");
    got.rank = 2;
    got.dim[0] = 6;
    got.dim[1] = 8;
    expect_row_major(&got, 2, 3, false);
    report_refused("POST /v1/apply?type=sinusoidal_nd&combine=detr&normalize=true&grid=3,2&axes=hwd",
                   "{\"embeddings\":[[[0,0,0,0],[0,0,0,0],[0,0,0,0]],[[0,0,0,0],[0,0,0,0],[0,0,0,0]]]}",
                   "conflict", "embeddings", REPORT_WORDS("[2, 3]", "[3, 2]"));
}
END_TEST

/* A grid that was told twice, and not the same: refused where it goes beyond. Its first rows are none the less
 * a part of it. */
START_TEST(torchtitan_4244_grids_told_twice_agree) {
#define DETR "&combine=detr&normalize=true&start=1&grid=2,3"
    report_refused(ND "3,2" DETR, NULL, "conflict", "positions", REPORT_WORDS("[3, 2]", "[2, 3]"));
    report_refused(
        "POST /v1/attention",
        "{\"q\":[[1,0,0,0],[0,1,0,0]],\"k\":[[1,0,0,0],[0,1,0,0]],\"key_positions\":{\"grid\":[1,2]},"
        "\"query_positions\":{\"grid\":[2,1]},\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\","
        "\"rope_axes\":{\"frequencies\":\"language\",\"coordinates\":\"unit\",\"grid\":[1,2]}}}",
        "conflict", "query_positions", REPORT_WORDS("[2, 1]", "[1, 2]"));
    struct report_tensor all = report_tensor(ND "2,3" DETR, NULL, "vectors"),
                         part = report_tensor(ND "1,3" DETR, NULL, "vectors");
    ck_assert_uint_eq(part.n, 24);
    report_row(&all, 0, 0, part.values, part.n);
}
END_TEST

/* Without coordinates nothing can tell a grid from a line, so none is guessed. */
START_TEST(tokens_alone_are_no_grid) {
    report_refused("POST /v1/apply?type=sinusoidal_nd&combine=mae", "{\"embeddings\":[[0,0,0,0],[0,0,0,0]]}",
                   "missing", "positions", REPORT_WORDS("2 coordinates"));
    report_refused("GET /v1/encode?type=sinusoidal_nd&combine=mae&d_model=4&positions=0:4", NULL, "shape",
                   "positions", REPORT_WORDS("[T, 2]", "grid"));
}
END_TEST

Suite *reports_grids_suite(void) {
    Suite *suite = suite_create("reports_grids");
    TCase *tests = tcase_create("reports");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, report_setup, report_teardown);
    tcase_add_test(tests, transformers_41380_torchtitan_4244_rows_then_columns);
    tcase_add_test(tests, timm_2541_reverse_coord_rows_follow_tokens);
    tcase_add_test(tests, torchtitan_4244_images_have_the_grid_of_their_shape);
    tcase_add_test(tests, torchtitan_4244_grids_told_twice_agree);
    tcase_add_test(tests, tokens_alone_are_no_grid);
    return suite;
}
