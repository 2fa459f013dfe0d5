/* SPDX-License-Identifier: MIT
 *
 * Public bug reports on biases within windows of patches. Each test is named after a project and its report.
 */
#include "report_run.h"
#include "suites.h"

#include <stdio.h>
#include <string.h>

/* {"encoding":{..., "table":[[0],[1], ...]}, "heads":1}, a table of so many rows, each its own number */
static char *table_body(char *body, size_t size, const char *encoding, int rows) {
    int at = snprintf(body, size, "{\"encoding\":{\"type\":\"swin\",%s,\"table\":[", encoding);
    for (int i = 0; i < rows; i++) {
        at += snprintf(body + at, size - (size_t)at, "%s[%d]", i ? "," : "", i);
    }
    snprintf(body + at, size - (size_t)at, "]},\"heads\":1}");
    return body;
}

/* The index of a 3 x 4 window was made with 2h - 1, which a square window does not notice: different offsets
 * shared a row of the table. All 35 have their own, and the same offset is the same everywhere. */
START_TEST(keras_cv_attention_models_26_a_window_that_is_not_square) {
    enum { H = 3, W = 4, N = H * W };
    char body[1000];
    table_body(body, sizeof body, "\"window\":[3,4]", (2 * H - 1) * (2 * W - 1));
    struct report_tensor got = report_tensor("POST /v1/bias", body, "bias");
    ck_assert_uint_eq(got.n, N * N);
    for (int q = 0; q < N; q++) {
        for (int k = 0; k < N; k++) {
            int wanted = (q / W - k / W + H - 1) * 7 + q % W - k % W + W - 1;
            ck_assert_double_eq(got.values[q * N + k], wanted);
        }
    }
}
END_TEST

/* A table of another resolution was loaded, with a broadcast or an index beyond its end: 732 rows are those
 * of 14 x 14 patches and a class token, 2212 those of 24 x 24. */
START_TEST(x2_vlm_15_a_table_of_another_window) {
    static const struct {
        int window, rows;
        const char *shape, *needs;
    } of[] = {{24, 732, "[732, 1]", "[2212, H]"},
              {14, 2212, "[2212, 1]", "[732, H]"},
              {14, 729, "[729, 1]", "[732, H]"}};
    static char body[40000];
    char window[80], size[20];
    for (size_t i = 0; i < PE_COUNT(of); i++) {
        snprintf(window, sizeof window, "\"cls_rows\":1,\"window\":[%d,%d]", of[i].window, of[i].window);
        snprintf(size, sizeof size, "%d x %d", of[i].window, of[i].window);
        report_refused("POST /v1/bias", table_body(body, sizeof body, window, of[i].rows), "shape",
                       "encoding.table",
                       REPORT_WORDS(of[i].shape, of[i].needs, size, "class token", "resized"));
    }
    table_body(body, sizeof body, "\"cls_rows\":1,\"window\":[14,14]", 732);
    ck_assert_uint_eq(report_tensor("POST /v1/bias?format=raw", body, "bias").n, 197 * 197);
}
END_TEST

Suite *reports_relative_window_suite(void) {
    Suite *suite = suite_create("reports_relative_window");
    TCase *tests = tcase_create("windows");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, report_setup, report_teardown);
    tcase_add_test(tests, keras_cv_attention_models_26_a_window_that_is_not_square);
    tcase_add_test(tests, x2_vlm_15_a_table_of_another_window);
    return suite;
}
