/* SPDX-License-Identifier: MIT
 *
 * Public bug reports on relative attention whose term depends on the query: what is scaled, the sign of the
 * distance, rows beyond a table, queries beside a cache, tables of the wrong size. Each test is named after a
 * project and its report.
 */
#include "report_run.h"
#include "suites.h"

#include <stdio.h>

#define POST "POST /v1/attention"

/* A posted bias was multiplied by 1/sqrt(d): -10 became -1.25 at d = 64. What is scaled is q.k, and Shaw's
 * term, which is a part of the key: q.a = 8 becomes 1 beside a bias that stays -10. */
START_TEST(tt_metal_56406_55337_a_bias_is_not_scaled) {
    char body[1000], zeros[130] = "";
    for (size_t i = 0; i < 63; i++) {
        snprintf(zeros + 2 * i, sizeof zeros - 2 * i, ",0");
    }
    for (int query = 0; query <= 8; query += 8) {
        const double wanted = query / 8 - 10;
        snprintf(body, sizeof body,
                 "{\"q\":[[%d%s]],\"k\":[[0%s]],\"bias\":[[-10]],\"return\":\"position\","
                 "\"encoding\":{\"type\":\"shaw\",\"keys\":[[1%s]]}}",
                 query, zeros, zeros, zeros);
        report_expect(POST, body, "position", REPORT_SHAPE(1, 1), 0, &wanted, 1);
    }
}
END_TEST

/* The sign of the relative position: which rows are of keys after the query has to be told. */
START_TEST(gluon_nlp_1470_sign_of_the_distance) {
#define ROWS                                                                                                 \
    "\"q\":[[1],[1]],\"k\":[[0],[0]],\"scale\":1,\"return\":\"position\",\"encoding\":{\"type\":\"shaw\","
    report_expect(POST, "{" ROWS "\"keys\":[[1],[2],[3]]}}", "position", REPORT_SHAPE(2, 2), 0,
                  REPORT_VALUES(2, 3, 1, 2));
    report_expect(POST, "{" ROWS "\"sign\":\"query_minus_key\",\"keys\":[[1],[2],[3]]}}", "position",
                  REPORT_SHAPE(2, 2), 0, REPORT_VALUES(2, 1, 3, 2));
    /* Transformer-XL's rows fall with query - key: the first is the farthest behind. */
    report_expect(POST,
                  "{\"q\":[[1],[1]],\"k\":[[0],[0]],\"scale\":1,\"return\":\"position\",\"encoding\":{"
                  "\"type\":\"transformer_xl\",\"first_distance\":1,\"table\":[[1],[2],[3]]}}",
                  "position", REPORT_SHAPE(2, 2), 0, REPORT_VALUES(2, 3, 1, 2));
}
END_TEST

/* An index beyond a table wrapped to its last row, or read what was not there. */
START_TEST(pytorch_183608_19120_no_row_is_another) {
#define FAR                                                                                                  \
    "\"q\":[[1]],\"k\":[[0],[0],[0],[0]],\"scale\":1,\"return\":\"position\",\"query_positions\":[0],"       \
    "\"key_positions\":[-9007199254740992,-2,2,9007199254740992],\"encoding\":{"
    report_expect(POST, "{" FAR "\"type\":\"shaw\",\"keys\":[[1],[2],[3]]}}", "position", REPORT_SHAPE(1, 4),
                  0, REPORT_VALUES(1, 1, 3, 3));
    report_expect(POST, "{" FAR "\"type\":\"shaw\",\"outside\":\"zero\",\"keys\":[[1],[2],[3]]}}", "position",
                  REPORT_SHAPE(1, 4), 0, REPORT_VALUES(0, 0, 0, 0));
    report_refused(POST, "{" FAR "\"type\":\"transformer_xl\",\"first_distance\":1,\"table\":[[1],[2],[3]]}}",
                   "range", "key_positions[0]", REPORT_WORDS("-9007199254740992", "from -1 to 1"));
}
END_TEST

/* Beside a cache queries are fewer than keys: they are the last of them. */
START_TEST(x_transformers_103_queries_beside_a_cache) {
    report_expect(
        POST,
        "{\"q\":[[1]],\"k\":[[0],[0],[0],[0],[0]],\"scale\":1,\"return\":\"position\",\"encoding\":{"
        "\"type\":\"shaw\",\"clip\":[3,0],\"keys\":[[1],[2],[3],[4]]}}",
        "position", REPORT_SHAPE(1, 5), 0, REPORT_VALUES(1, 1, 2, 3, 4));
    report_expect(POST,
                  "{\"q\":[[1]],\"k\":[[0],[0],[0]],\"scale\":1,\"return\":\"position\",\"encoding\":{"
                  "\"type\":\"transformer_xl\",\"first_distance\":2,\"table\":[[1],[2],[3]]}}",
                  "position", REPORT_SHAPE(1, 3), 0, REPORT_VALUES(1, 2, 3));
}
END_TEST

/* A table of another size was loaded as it was. Both sizes are told. */
START_TEST(x2_vlm_15_deberta_10186_tables_of_another_size) {
#define TWO "\"q\":[[1,0]],\"k\":[[1,0]],\"encoding\":{"
    report_refused(POST, "{" TWO "\"type\":\"shaw\",\"clip\":2,\"keys\":[[1,2],[3,4],[5,6]]}}", "shape",
                   "encoding.clip", REPORT_WORDS("5 rows", "has 3"));
    report_refused(POST, "{" TWO "\"type\":\"shaw\",\"keys\":[[1,2,3]]}}", "shape", "encoding.keys",
                   REPORT_WORDS("[1, 3]", "2 wide"));
    report_refused(POST, "{" TWO "\"type\":\"transformer_xl\",\"w_r\":[[1,2,3],[4,5,6]]}}", "shape",
                   "encoding.w_r", REPORT_WORDS("[2, 3]", "1 heads of width 2"));
}
END_TEST

Suite *reports_relative_terms_suite(void) {
    Suite *suite = suite_create("reports_relative_terms");
    TCase *reports = tcase_create("reports");
    suite_add_tcase(suite, reports);
    tcase_add_checked_fixture(reports, report_setup, report_teardown);
    tcase_add_test(reports, tt_metal_56406_55337_a_bias_is_not_scaled);
    tcase_add_test(reports, gluon_nlp_1470_sign_of_the_distance);
    tcase_add_test(reports, pytorch_183608_19120_no_row_is_another);
    tcase_add_test(reports, x_transformers_103_queries_beside_a_cache);
    tcase_add_test(reports, x2_vlm_15_deberta_10186_tables_of_another_size);
    return suite;
}
