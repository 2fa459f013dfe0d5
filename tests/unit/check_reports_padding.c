/* SPDX-License-Identifier: MIT
 *
 * Public bug reports on padding: which positions masked tokens and those beside them get, and which rows of a
 * table are special. Each test is named after a project and its report; expected rows are the reports' own.
 */
#include "report_run.h"
#include "suites.h"

/* Row r of this table is [r, -r]. */
#define TABLE "\"table\":[[0,0],[1,-1],[2,-2],[3,-3],[4,-4],[5,-5],[6,-6]]"

/* ---- Learned tables ------------------------------------------------------------------------------------ */

/* OPT's and BART's tables have two rows more than positions, and the first token's is row 2: loading them as
 * they are gave every token the row of the token two before it. */
START_TEST(transformers_20761_19240_first_token_is_row_2) {
    report_expect("POST /v1/encode",
                  "{\"encoding\":{\"type\":\"learned\"," TABLE ",\"offset\":2},\"positions\":[0,1,4]}",
                  "vectors", REPORT_SHAPE(3, 2), 0, REPORT_VALUES(2, -2, 3, -3, 6, -6));
    report_expect("POST /v1/encode?encoding=opt&table=[[0,0],[1,-1],[2,-2],[3,-3]]", "{\"positions\":[0,1]}",
                  "vectors", REPORT_SHAPE(2, 2), 0, REPORT_VALUES(2, -2, 3, -3));
    /* The rule's ids are rows already. */
    report_expect("POST /v1/apply",
                  "{\"encoding\":{\"type\":\"learned\"," TABLE "},\"embeddings\":[[0,0],[0,0],[0,0]],"
                  "\"positions\":{\"mask\":[0,1,1],\"rule\":\"opt\"}}",
                  "embeddings", REPORT_SHAPE(3, 2), 0, REPORT_VALUES(1, -1, 2, -2, 3, -3));
}
END_TEST

/* padding_idx of a POSITION table zeroed, and froze, the row of the first token (row 0 of BERT, row 2 of
 * BART). Rows come out as stored. */
START_TEST(transformers_409_10200_19240_no_row_is_zeroed) {
    report_expect("GET /v1/encode?type=learned&table=[[5,6],[7,8],[9,10]]&positions=0:3", NULL, "vectors",
                  REPORT_SHAPE(3, 2), 0, REPORT_VALUES(5, 6, 7, 8, 9, 10));
    report_expect("GET /v1/encode?type=learned&table=[[5,6],[7,8],[9,10]]&offset=2&positions=0", NULL,
                  "vectors", REPORT_SHAPE(1, 2), 0, REPORT_VALUES(9, 10));
    report_refused("GET /v1/encode?type=learned&table=[[5,6],[7,8]]&padding_idx=0&positions=0", NULL,
                   "unknown_field", "padding_idx", REPORT_WORDS("unknown"));
}
END_TEST

/* The other way round, row padding_idx of fairseq's SINUSOIDS is zero, and only that one. */
START_TEST(transformers_19240_fairseq_sinusoids_have_a_zero_row) {
    report_expect("GET /v1/encode?encoding=fairseq&d_model=6&positions=0:4&dtype=float64", NULL, "vectors",
                  REPORT_SHAPE(4, 6), 6e-7,
                  REPORT_VALUES(0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, .909297, .019999, .0002, -.416147, .9998,
                                1, .141120, .029996, .0003, -.989992, .99955, 1));
}
END_TEST

/* ---- Positions from masks ------------------------------------------------------------------------------ */

/* RoBERTa's positions with padding_idx 3: ids [[4,5,6],[4,3,3]] happen to be their own positions. */
START_TEST(transformers_9116_padding_idx_3) {
    report_expect("GET /v1/positions?mask=[[1,1,1],[1,0,0]]&rule=roberta&padding_idx=3", NULL, "positions",
                  REPORT_SHAPE(2, 3), 0, REPORT_VALUES(4, 5, 6, 4, 3, 3));
    report_expect("POST /v1/positions",
                  "{\"positions\":{\"mask\":[[1,1,1],[1,0,0]],\"rule\":\"fairseq\",\"padding_idx\":3}}",
                  "positions", REPORT_SHAPE(2, 3), 0, REPORT_VALUES(4, 5, 6, 4, 3, 3));
}
END_TEST

/* Padded tokens were given positions, and vectors, as if they were words. By the rule of fairseq they all
 * have position padding_idx, whose vector is zero. */
START_TEST(jadore801120_99_padding_gets_nothing) {
    report_expect(
        "POST /v1/apply",
        "{\"encoding\":{\"type\":\"sinusoidal\",\"padding_idx\":1},"
        "\"positions\":{\"mask\":[[1,1,0,0],[0,0,1,1]],\"rule\":\"fairseq\"},"
        "\"embeddings\":[[[0,0],[0,0],[0,0],[0,0]],[[0,0],[0,0],[0,0],[0,0]]],\"dtype\":\"float64\"}",
        "embeddings", REPORT_SHAPE(2, 4, 2), 6e-7,
        REPORT_VALUES(.909297, -.416147, .141120, -.989992, 0, 0, 0, 0, 0, 0, 0, 0, .909297, -.416147,
                      .141120, -.989992));
}
END_TEST

/* Padding on the left moved the words on: the same words got other positions, and other answers. */
START_TEST(transformers_21080_18478_7552_parlai_3193_unsloth_3795_left_padding) {
    report_expect("GET /v1/positions?mask=[[0,0,1,1,1],[1,1,1,0,0]]&rule=opt", NULL, "positions",
                  REPORT_SHAPE(2, 5), 0, REPORT_VALUES(1, 1, 2, 3, 4, 2, 3, 4, 1, 1));
    report_expect("GET /v1/positions?mask=[[0,0,1,1,1],[1,1,1,0,0]]&rule=gpt2", NULL, "positions",
                  REPORT_SHAPE(2, 5), 0, REPORT_VALUES(1, 1, 0, 1, 2, 0, 1, 2, 1, 1));
}
END_TEST

/* The words' vectors themselves: with padding on either side and without, the same. */
START_TEST(alpaca_lora_315_left_padding_equals_none) {
    static const char *const rules[] = {"opt", "gpt2", "bloom", "roberta", "fairseq"};
    for (size_t r = 0; r < PE_COUNT(rules); r++) {
        char request[200];
        snprintf(request, sizeof request,
                 "GET /v1/encode?type=sinusoidal&d_model=8&positions.mask=[[0,0,1,1,1],[1,1,1,0,0]]"
                 "&positions.rule=%s",
                 rules[r]);
        struct report_tensor padded = report_tensor(request, NULL, "vectors");
        snprintf(request, sizeof request,
                 "GET /v1/encode?type=sinusoidal&d_model=8&positions.mask=[1,1,1]&positions.rule=%s",
                 rules[r]);
        struct report_tensor plain = report_tensor(request, NULL, "vectors");
        ck_assert(padded.rank == 3 && padded.n == 80 && plain.n == 24);
        report_row(&padded, 16, 0, plain.values, 24);
        report_row(&padded, 40, 0, plain.values, 24);
    }
}
END_TEST

/* cumsum(mask) - 1 alone is -1 at the padding. */
START_TEST(transformers_17866_bloom_never_minus_1) {
    report_expect("GET /v1/positions?mask=[[0,0,1,1,1],[1,1,1,0,0]]&rule=bloom", NULL, "positions",
                  REPORT_SHAPE(2, 5), 0, REPORT_VALUES(0, 0, 0, 1, 2, 0, 1, 2, 0, 0));
}
END_TEST

/* Packed documents: positions ran on over the ends, or a document of one token was not seen as one. */
START_TEST(olmo_core_503_591_654_ms_swift_9904_packed_documents) {
    report_expect("POST /v1/positions", "{\"positions\":{\"lengths\":[3,1,2]}}", "positions", REPORT_SHAPE(6),
                  0, REPORT_VALUES(0, 1, 2, 0, 0, 1));
    report_expect("POST /v1/apply",
                  "{\"encoding\":{\"type\":\"learned\"," TABLE "},\"positions\":{\"lengths\":[2,1,1]},"
                  "\"embeddings\":[[0,0],[0,0],[0,0],[0,0]]}",
                  "embeddings", REPORT_SHAPE(4, 2), 0, REPORT_VALUES(0, 0, 1, -1, 0, 0, 0, 0));
    report_refused("POST /v1/apply",
                   "{\"encoding\":\"none\",\"positions\":{\"lengths\":[2,1]},"
                   "\"embeddings\":[[0,0],[0,0],[0,0],[0,0]]}",
                   "shape", "positions", REPORT_WORDS("[3]", "[4]"));
}
END_TEST

Suite *reports_padding_suite(void) {
    Suite *suite = suite_create("reports_padding");
    TCase *tests = tcase_create("padding");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, report_setup, report_teardown);
    tcase_add_test(tests, transformers_20761_19240_first_token_is_row_2);
    tcase_add_test(tests, transformers_409_10200_19240_no_row_is_zeroed);
    tcase_add_test(tests, transformers_19240_fairseq_sinusoids_have_a_zero_row);
    tcase_add_test(tests, transformers_9116_padding_idx_3);
    tcase_add_test(tests, jadore801120_99_padding_gets_nothing);
    tcase_add_test(tests, transformers_21080_18478_7552_parlai_3193_unsloth_3795_left_padding);
    tcase_add_test(tests, alpaca_lora_315_left_padding_equals_none);
    tcase_add_test(tests, transformers_17866_bloom_never_minus_1);
    tcase_add_test(tests, olmo_core_503_591_654_ms_swift_9904_packed_documents);
    return suite;
}
