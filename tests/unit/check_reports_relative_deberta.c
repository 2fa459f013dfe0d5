/* SPDX-License-Identifier: MIT
 *
 * Public bug reports on DeBERTa's disentangled attention. Each test is named after a project and its report.
 */
#include "report_run.h"
#include "suites.h"

#include <string.h>

#define ATTENTION "POST /v1/attention?return=position&dtype=float64&scale=1"

/* p2c took the row of +r, or forgot to transpose: its gather is of -r with keys as rows, so that query i and
 * key j take row i - j of the table, as c2p does. Query 2 and key 0 are 2 apart: row 4 + 2 of eight, in both
 * terms; query 0 and key 2 take row 4 - 2. */
START_TEST(nntrainer_3982_p2c_takes_minus_r_transposed) {
    char body[600];
    const char *table = "[[0],[1],[2],[3],[4],[5],[6],[7]]";
    snprintf(body, sizeof body,
             "{\"q\":[[1],[1],[1]],\"k\":[[1],[10],[100]],\"encoding\":{\"type\":\"deberta\",\"position_"
             "buckets\":0,"
             "\"max_relative_positions\":4,\"pos_att_type\":[\"%s\"],\"%s\":%s}}",
             _i ? "c2p" : "p2c", _i ? "pos_keys" : "pos_queries", table);
    static const double rows[] = {4, 3, 2, 5, 4, 3, 6, 5, 4};
    double wanted[9];
    for (int at = 0; at < 9; at++) {
        wanted[at] = rows[at] * (_i || at % 3 == 0 ? 1 : at % 3 == 1 ? 10 : 100);
    }
    report_expect(ATTENTION, body, "position", REPORT_SHAPE(3, 3), 0, wanted, 9);
}
END_TEST

/* A body with a table of so many rows of one number, its row. */
static char *with_rows(char *body, size_t size, const char *more, int rows) {
    size_t at = (size_t)snprintf(body, size,
                                 "{\"q\":[[1]],\"k\":[[1],[1]],\"key_positions\":[-600,600],"
                                 "\"query_positions\":[0],\"encoding\":{\"type\":\"deberta\","
                                 "\"pos_att_type\":[\"c2p\"]%s,\"rel_embeddings\":[",
                                 more);
    for (int r = 0; r < rows; r++) {
        at += (size_t)snprintf(body + at, size - at, "%s[%d]", r ? "," : "", r);
    }
    snprintf(body + at, size - at, "]}}");
    return body;
}

/* The published weights have 512 rows, the code wanted 1024: with 256 buckets there are 2*256, and without
 * buckets 2*512. */
START_TEST(transformers_10186_two_rows_for_each_bucket) {
    char body[20000];
    report_expect(ATTENTION, with_rows(body, sizeof body, "", 512), "position", REPORT_SHAPE(1, 2), 0,
                  REPORT_VALUES(511, 0));
    report_expect(ATTENTION, with_rows(body, sizeof body, ",\"position_buckets\":-1", 1024), "position",
                  REPORT_SHAPE(1, 2), 0, REPORT_VALUES(1023, 0));
}
END_TEST

/* A table of the wrong shape is refused with both shapes. */
START_TEST(deberta_10186_both_shapes_are_told) {
    char body[20000];
    report_refused(ATTENTION, with_rows(body, sizeof body, "", 1024), "shape", "encoding.rel_embeddings",
                   REPORT_WORDS("[1024, 1]", "[512, D]", "256 position_buckets"));
    report_refused(ATTENTION, with_rows(body, sizeof body, ",\"position_buckets\":0", 512), "shape",
                   "encoding.rel_embeddings",
                   REPORT_WORDS("[512, 1]", "[1024, D]", "512 max_relative_positions"));
    report_refused(ATTENTION, with_rows(body, sizeof body, "", 511), "shape", "encoding.rel_embeddings",
                   REPORT_WORDS("[511, 1]", "[512, D]"));
}
END_TEST

Suite *reports_relative_deberta_suite(void) {
    Suite *suite = suite_create("reports_relative_deberta");
    TCase *tests = tcase_create("reports");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, report_setup, report_teardown);
    tcase_add_loop_test(tests, nntrainer_3982_p2c_takes_minus_r_transposed, 0, 2);
    tcase_add_test(tests, transformers_10186_two_rows_for_each_bucket);
    tcase_add_test(tests, deberta_10186_both_shapes_are_told);
    return suite;
}
