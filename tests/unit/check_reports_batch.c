/* SPDX-License-Identifier: MIT
 *
 * Public bug reports on the order of axes, and on masks of attention. Each test is named after a project and
 * its report.
 *
 * Not here: rotary encodings (check_reports_rotary.c), images [H, W, C] (tatp22 #2) and tensors on another
 * device (tatp22 #33), which are not at all.
 */
#include "report_run.h"
#include "suites.h"

#include <math.h>

#define APPLY "POST /v1/apply?type=sinusoidal&format=raw"

/* x [B, S, D], x[b][s][c] = b - s/4 + c/8: every number tells where it was. */
static double *tokens(size_t batch, size_t length, size_t width) {
    double *x = report_doubles(batch * length * width);
    for (size_t i = 0; i < batch * length * width; i++) {
        x[i] = (double)(i / width / length) - (double)(i / width % length) / 4 + (double)(i % width) / 8;
    }
    return x;
}

/* x + PE, where row s of every sequence has the vector of position first + s. */
static void expect_sum(const struct report_tensor *got, const double *x, const size_t dim[3], double first) {
    size_t length = dim[1], width = dim[2];
    ck_assert_uint_eq(got->n, dim[0] * length * width);
    for (size_t i = 0; i < got->n; i++) {
        double p = first + (double)(i / width % length);
        ck_assert_double_eq_tol(got->values[i] - x[i], report_paper(p, i % width, width), 1e-12);
    }
}

/* The encoding ran along the batch of [B, S, D]. No error as long as B <= max_len, but wrong numbers. */
START_TEST(influenza_transformer_9_getnext_2_rows_follow_the_sequence) {
    static const size_t shapes[][3] = {{3, 2, 4}, {2, 5, 4}, {7, 1, 4}, {1, 7, 4}, {5, 5, 6}};
    for (size_t i = 0; i < PE_COUNT(shapes); i++) {
        double *x = tokens(shapes[i][0], shapes[i][1], shapes[i][2]);
        struct report_tensor got = report_tensor_raw(APPLY, x, shapes[i], 3, "embeddings");
        ck_assert(got.rank == 3 && got.dim[0] == shapes[i][0] && got.dim[1] == shapes[i][1]);
        expect_sum(&got, x, shapes[i], 0);
    }
}
END_TEST

/* pe[:, :x.size(0)]: as many rows as there are sequences. Where B < S it failed, where B > S it was wrong.
 * Here the positions are given, so that their number must be S, or B times S. */
START_TEST(numpy_transformer_1_anlp_1_c_origami_42_slices_by_the_sequence) {
    static const size_t shapes[][3] = {{4, 6, 8}, {6, 4, 8}, {1, 40, 8}, {40, 1, 8}};
    for (size_t i = 0; i < PE_COUNT(shapes); i++) {
        char request[120];
        double *x = tokens(shapes[i][0], shapes[i][1], shapes[i][2]);
        snprintf(request, sizeof request, APPLY "&positions.start=100&positions.count=%zu", shapes[i][1]);
        struct report_tensor got = report_tensor_raw(request, x, shapes[i], 3, "embeddings");
        expect_sum(&got, x, shapes[i], 100);
    }
    report_refused("POST /v1/apply?type=sinusoidal&positions=0:3",
                   "{\"embeddings\":[[[0,0],[0,0]],[[0,0],[0,0]],[[0,0],[0,0]]]}", "shape", "positions",
                   REPORT_WORDS("[3]", "[2]", "[3, 2]"));
}
END_TEST

/* Row s of sequence b has positions[b][s] where they differ. */
START_TEST(numpy_transformer_1_positions_of_each_sequence) {
    report_expect(
        "POST /v1/apply?dtype=float64",
        "{\"encoding\":{\"type\":\"sinusoidal\"},\"positions\":[[0,1],[2,0],[3,3]],"
        "\"embeddings\":[[[0,0],[0,0]],[[0,0],[0,0]],[[0,0],[0,0]]]}",
        "embeddings", REPORT_SHAPE(3, 2, 2), 6e-7,
        REPORT_VALUES(0, 1, .841471, .540302, .909297, -.416147, 0, 1, .141120, -.989992, .141120, -.989992));
}
END_TEST

/* The same with a learned table: row s of each sequence is table row s. */
START_TEST(hello_agents_61_learned_rows_follow_the_sequence) {
    report_expect("POST /v1/apply",
                  "{\"encoding\":{\"type\":\"learned\",\"table\":[[1,2],[3,4],[5,6],[7,8]]},"
                  "\"embeddings\":[[[0,0],[10,10],[20,20]],[[100,100],[200,200],[300,300]]]}",
                  "embeddings", REPORT_SHAPE(2, 3, 2), 0,
                  REPORT_VALUES(1, 2, 13, 14, 25, 26, 101, 102, 203, 204, 305, 306));
}
END_TEST

/* The result had a batch of 1 whatever was posted. What is posted comes back with its shape, un-batched too
 * (#30), at a width that the layer was not made for (#3). */
START_TEST(tatp22_2_3_30_the_shape_is_the_posted_one) {
    static const size_t three[] = {3, 4, 169}, two[] = {4, 169};
    double *x = tokens(3, 4, 169);
    struct report_tensor batch = report_tensor_raw(APPLY, x, three, 3, "embeddings"),
                         one = report_tensor_raw(APPLY, x, two, 2, "embeddings");
    ck_assert(batch.rank == 3 && batch.dim[0] == 3 && batch.dim[1] == 4 && batch.dim[2] == 169);
    ck_assert(one.rank == 2 && one.dim[0] == 4 && one.dim[1] == 169);
    expect_sum(&batch, x, three, 0);
    for (size_t i = 0; i < one.n; i++) {
        ck_assert(one.values[i] == batch.values[i]);
    }
}
END_TEST

/* ---- Attention ----------------------------------------------------------------------------------------- */

/* n numbers of one value as a JSON list. */
static size_t list(char *out, size_t size, const char *value, size_t n) {
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        at += (size_t)snprintf(out + at, size - at, "%s%s", i ? "," : "[", value);
    }
    return at + (size_t)snprintf(out + at, size - at, "]");
}

/* The bias was multiplied by 1/sqrt(d) as well: -10 became -1.25 at d = 64. Here q.k = 64 for the first key,
 * so its logit is 64/8 - 10. */
START_TEST(tt_metal_56406_55337_the_bias_is_not_scaled) {
    char ones[200], zeros[200], body[1000];
    list(ones, sizeof ones, "1", 64);
    list(zeros, sizeof zeros, "0", 64);
    snprintf(body, sizeof body,
             "{\"q\":[%s],\"k\":[%s,%s],\"bias\":[[-10,0]],\"dtype\":\"float64\","
             "\"return\":[\"logits\",\"weights\",\"position\",\"content\"]}",
             ones, ones, zeros);
    report_expect("POST /v1/attention", body, "logits", REPORT_SHAPE(1, 2), 1e-14, REPORT_VALUES(-2, 0));
    report_expect("POST /v1/attention", body, "position", REPORT_SHAPE(1, 2), 0, REPORT_VALUES(-10, 0));
    report_expect("POST /v1/attention", body, "content", REPORT_SHAPE(1, 2), 1e-14, REPORT_VALUES(8, 0));
    double weight = exp(-2) / (1 + exp(-2));
    report_expect("POST /v1/attention", body, "weights", REPORT_SHAPE(1, 2), 1e-14,
                  REPORT_VALUES(weight, 1 - weight));
}
END_TEST

/* -1e9, or the type's lowest number, stands for -infinity in much code, and is added twice where a mask meets
 * a bias. Even where every key has it the weights are finite and sum to 1: all keys are alike. */
START_TEST(lowest_numbers_for_infinity_stay_finite) {
    static const char *const lowest[] = {"-1e9", "-65504", "-3.4028234663852886e38"};
    static const char *const dtypes[] = {"float64", "float32", "float16", "bfloat16"};
    for (size_t i = 0; i < PE_COUNT(lowest) * PE_COUNT(dtypes); i++) {
        char request[80], body[300];
        const char *low = lowest[i % PE_COUNT(lowest)];
        snprintf(request, sizeof request, "POST /v1/attention?format=raw&dtype=%s",
                 dtypes[i / PE_COUNT(lowest)]);
        snprintf(body, sizeof body, "{\"q\":[[-100,0]],\"k\":[[100,0],[100,0]],\"bias\":[[%s,%s]]}", low,
                 low);
        report_expect(request, body, "weights", REPORT_SHAPE(1, 2), 0, REPORT_VALUES(.5, .5));
        snprintf(body, sizeof body, "{\"q\":[[-100,0]],\"k\":[[100,0],[100,0]],\"bias\":[[%s,0]]}", low);
        report_expect(request, body, "weights", REPORT_SHAPE(1, 2), 0, REPORT_VALUES(0, 1));
        snprintf(body, sizeof body,
                 "{\"q\":[[-100,0]],\"k\":[[100,0],[100,0]],\"bias\":[[%s,%s]],\"mask\":{\"keep\":[1,0]}}",
                 low, low);
        report_expect(request, body, "weights", REPORT_SHAPE(1, 2), 0, REPORT_VALUES(1, 0));
    }
}
END_TEST

/* Positions begin anew with each packed document, but a token still saw the documents before it: the mask
 * must be block-diagonal too. Its blocks come from the lengths, as a document of one token (0 -> 0) shows no
 * decrease of the position. */
START_TEST(olmo_core_503_torchtitan_2559_nanovlm_201_documents_are_apart) {
    static const size_t document[] = {0, 0, 0, 1, 2, 2};
    report_expect("GET /v1/positions?lengths=3,1,2", NULL, "positions", REPORT_SHAPE(6), 0,
                  REPORT_VALUES(0, 1, 2, 0, 0, 1));
    for (int causal = 0; causal < 2; causal++) {
        char body[400];
        snprintf(body, sizeof body,
                 "{\"embeddings\":[[1,0],[0,1],[1,1],[2,0],[1,0],[0,1]],\"encoding\":\"vaswani\","
                 "\"query_positions\":{\"lengths\":[3,1,2]},"
                 "\"mask\":{\"documents\":[3,1,2],\"causal\":%s}}",
                 causal ? "true" : "false");
        struct report_tensor got = report_tensor("POST /v1/attention?dtype=float64", body, "weights");
        ck_assert(got.rank == 2 && got.dim[0] == 6 && got.dim[1] == 6);
        for (size_t i = 0; i < 6; i++) {
            double sum = 0;
            for (size_t j = 0; j < 6; j++) {
                bool seen = document[i] == document[j] && (!causal || j <= i);
                ck_assert((got.values[6 * i + j] > 0) == seen);
                sum += got.values[6 * i + j];
            }
            ck_assert_double_eq_tol(sum, 1, 1e-15);
        }
        /* Document 1 alone, and document 2 as if it stood alone at positions 0 and 1. */
        ck_assert(got.values[6 * 3 + 3] == 1);
        snprintf(body, sizeof body,
                 "{\"embeddings\":[[1,0],[0,1]],\"encoding\":\"vaswani\",\"mask\":{\"causal\":%s}}",
                 causal ? "true" : "false");
        struct report_tensor alone = report_tensor("POST /v1/attention?dtype=float64", body, "weights");
        for (size_t k = 0; k < 4; k++) {
            ck_assert_double_eq_tol(got.values[6 * (4 + k / 2) + 4 + k % 2], alone.values[k], 1e-15);
        }
    }
}
END_TEST

Suite *reports_batch_suite(void) {
    Suite *suite = suite_create("reports_batch");
    TCase *tests = tcase_create("batch");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, report_setup, report_teardown);
    tcase_add_test(tests, influenza_transformer_9_getnext_2_rows_follow_the_sequence);
    tcase_add_test(tests, numpy_transformer_1_anlp_1_c_origami_42_slices_by_the_sequence);
    tcase_add_test(tests, numpy_transformer_1_positions_of_each_sequence);
    tcase_add_test(tests, hello_agents_61_learned_rows_follow_the_sequence);
    tcase_add_test(tests, tatp22_2_3_30_the_shape_is_the_posted_one);
    tcase_add_test(tests, tt_metal_56406_55337_the_bias_is_not_scaled);
    tcase_add_test(tests, lowest_numbers_for_infinity_stay_finite);
    tcase_add_test(tests, olmo_core_503_torchtitan_2559_nanovlm_201_documents_are_apart);
    return suite;
}
