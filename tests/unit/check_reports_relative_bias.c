/* SPDX-License-Identifier: MIT
 *
 * Public bug reports on biases of the logits, ALiBi and T5. Each test is named after a project and its
 * report.
 */
#include "report_run.h"
#include "suites.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define ALIBI "GET /v1/bias?type=alibi&"
#define SLOPE "&query_positions=1:2&key_positions=0:1"

/* ---- Scale and masks ----------------------------------------------------------------------------------- */

/* One query and two keys of 64 ones: q.k is 64, and 8 when scaled. */
static char *of_ones(char *text, size_t size, const char *more) {
    char ones[200] = "1";
    for (size_t i = 1; i < 64; i++) {
        memcpy(ones + 2 * i - 1, ",1", 3);
    }
    snprintf(text, size, "{\"q\":[[%s]],\"k\":[[%s],[%s]],%s}", ones, ones, ones, more);
    return text;
}

/* The scale 1/sqrt(d) was on the bias, too, and made -1.25 of -10 at d = 64. It is of q.k alone, whichever
 * way the bias is given; and T5 has none. */
START_TEST(tt_metal_56406_55337_the_bias_is_not_scaled) {
    static const struct {
        const char *more;
        double content, bias[2];
    } of[] = {
        {"\"bias\":[[0,-10]]", 8, {0, -10}},
        {"\"encoding\":{\"type\":\"alibi\",\"bias_max\":1},\"query_positions\":[20]", 8, {-10, -9.5}},
        {"\"encoding\":{\"type\":\"alibi\"},\"bias\":[[0,-10]]", 8, {-0.00390625, -10}},
        {"\"encoding\":{\"type\":\"t5\",\"num_buckets\":2,\"bidirectional\":false,\"table\":[[2],[-10]]}",
         64,
         {-10, 2}},
        {"\"encoding\":{\"type\":\"t5\",\"num_buckets\":2,\"bidirectional\":false,\"table\":[[2],[-10]]},"
         "\"scale\":0.125",
         8,
         {-10, 2}},
    };
    char body[1000];
    of_ones(body, sizeof body, of[_i].more);
    double a = of[_i].bias[0], b = of[_i].bias[1], c = of[_i].content, ea = exp(a - b);
    const char *request = "POST /v1/attention?return=logits,content,position,weights";
    report_expect(request, body, "content", REPORT_SHAPE(1, 2), 0, REPORT_VALUES(c, c));
    report_expect(request, body, "position", REPORT_SHAPE(1, 2), 0, REPORT_VALUES(a, b));
    report_expect(request, body, "logits", REPORT_SHAPE(1, 2), 1e-6, REPORT_VALUES(c + a, c + b));
    report_expect(request, body, "weights", REPORT_SHAPE(1, 2), 1e-7,
                  REPORT_VALUES(ea / (1 + ea), 1 / (1 + ea)));
}
END_TEST

/* Large negative numbers in place of -infinity were added twice, by a mask and by a bias, and overflowed to
 * -infinity or NaN. Masks add nothing here; such a bias leaves a weight of 0, and beside a term that would
 * carry it over the end it is refused. */
START_TEST(large_negative_biases_do_not_overflow) {
    static const char *const lowest[] = {"-3.4028234663852886e38", "-65504", "-1e9"};
    char body[600];
    for (size_t i = 0; i < PE_COUNT(lowest); i++) {
        snprintf(body, sizeof body,
                 "{\"encoding\":\"alibi\",\"q\":[[1,0],[0,1]],\"k\":[[1,0],[0,1]],\"mask\":\"causal\","
                 "\"bias\":[[0,%s],[0,%s]]}",
                 lowest[i], lowest[i]);
        report_expect("POST /v1/attention", body, "weights", REPORT_SHAPE(2, 2), 0,
                      REPORT_VALUES(1, 0, 1, 0));
    }
    snprintf(body, sizeof body,
             "{\"encoding\":\"alibi\",\"q\":[[1,0]],\"k\":[[1,0],[0,1]],\"bias\":[[%s,%s]]}", lowest[1],
             lowest[1]);
    report_expect("POST /v1/attention?dtype=float16&format=npy", body, "weights", REPORT_SHAPE(1, 2), 1e-3,
                  REPORT_VALUES(.668844, .331156));
    report_refused("POST /v1/attention?dtype=float32",
                   "{\"encoding\":\"alibi\",\"query_positions\":[9007199254740992],\"q\":[[1e15,0]],"
                   "\"k\":[[1e18,0]],\"bias\":[[-3.4028234663852886e38]],\"return\":[\"logits\"]}",
                   "range", "bias", REPORT_WORDS("float32"));
}
END_TEST

/* ---- ALiBi --------------------------------------------------------------------------------------------- */

/* The formula of a power of two was used for all numbers of heads, in MPT with a formula of its own. */
START_TEST(mlx_343_3071_transformers_28380_six_heads) {
    static const char *const rules[] = {"press", "mpt"};
    for (size_t r = 0; r < PE_COUNT(rules); r++) {
        char request[200];
        snprintf(request, sizeof request, ALIBI "heads=6&rule=%s" SLOPE, rules[r]);
        report_expect(request, NULL, "bias", REPORT_SHAPE(6, 1, 1), 0,
                      REPORT_VALUES(-.25, -.0625, -.015625, -.00390625, -.5, -.125));
    }
}
END_TEST

/* Slopes began with 1; tests asserted that they fall, which they do for powers of two only. */
START_TEST(aprender_2143_the_first_slope_is_a_half) {
    struct report_tensor eight = report_tensor(ALIBI "heads=8" SLOPE, NULL, "bias"),
                         twelve = report_tensor(ALIBI "heads=12" SLOPE, NULL, "bias");
    for (int h = 0; h < 8; h++) {
        ck_assert_double_eq(eight.values[h], -ldexp(.5, -h));
    }
    ck_assert(twelve.values[8] < twelve.values[7] && twelve.values[8] < twelve.values[0]);
}
END_TEST

/* It was proposed to sort the slopes. Heads were trained with theirs: the order of the code stays. */
START_TEST(croma_12_the_order_of_heads_stays) {
    report_expect(ALIBI "heads=12" SLOPE, NULL, "bias", REPORT_SHAPE(12, 1, 1), 3e-8,
                  REPORT_VALUES(-.5, -.25, -.125, -.0625, -.03125, -.015625, -.0078125, -.00390625,
                                -.707106781, -.353553391, -.176776695, -.088388348));
    report_expect(ALIBI "heads=12&head_index=8,0" SLOPE, NULL, "bias", REPORT_SHAPE(2, 1, 1), 3e-8,
                  REPORT_VALUES(-.707106781, -.5));
}
END_TEST

static struct report_tensor forms_of(const char *form, const char *mask, const char *name) {
    char body[600];
    snprintf(body, sizeof body,
             "{\"encoding\":{\"type\":\"alibi\",\"form\":\"%s\"},\"heads\":8,\"head_index\":[0],\"dtype\":"
             "\"float64\","
             "\"q\":[[[1,0],[0,1],[1,1],[2,-1]]],\"k\":[[[1,2],[0,1],[-1,0],[1,1]]],%s\"return\":[\"%s\"]}",
             form, mask, name);
    return report_tensor("POST /v1/attention", body, name);
}

/* m*j in place of -m|i-j|: other logits and the same weights, as long as a causal mask hides what is ahead.
 * Without a mask the weights differ. */
START_TEST(llm_foundry_186_baichuan_13b_172_flash_attention_540_by_key_needs_a_causal_mask) {
    struct report_tensor causal[2], open[2], logits[2];
    static const char *const forms[] = {"symmetric", "causal_key"};
    for (size_t f = 0; f < 2; f++) {
        causal[f] = forms_of(forms[f], "\"mask\":\"causal\",", "weights");
        open[f] = forms_of(forms[f], "", "weights");
        logits[f] = forms_of(forms[f], "\"mask\":\"causal\",", "logits");
    }
    for (size_t at = 0; at < 16; at++) {
        size_t i = at / 4, j = at % 4;
        ck_assert_double_eq_tol(causal[0].values[at], causal[1].values[at], 1e-15);
        double apart = .5 * (double)j + .5 * fabs((double)i - (double)j);
        ck_assert_double_eq_tol(logits[1].values[at] - logits[0].values[at], apart, 1e-15);
        ck_assert(i == 3 || fabs(open[0].values[at] - open[1].values[at]) > 1e-3);
    }
}
END_TEST

/* Biases were made in bfloat16, which has no 257: they are exact, and rounded once, where that is asked. */
START_TEST(model_connect_667_far_biases_are_not_rounded) {
    struct report_tensor exact = report_tensor(ALIBI
                                               "heads=8&query_positions=0:1&key_positions=0:5000&format=raw",
                                               NULL, "bias"),
                         brain = report_tensor(ALIBI "heads=8&query_positions=0:1&key_positions=0:5000"
                                                     "&format=raw&dtype=bfloat16",
                                               NULL, "bias");
    for (size_t at = 0; at < exact.n; at++) {
        double wanted = -ldexp((double)(at % 5000), -(int)(at / 5000) - 1);
        ck_assert_double_eq(exact.values[at], wanted);
        ck_assert(fabs(brain.values[at] - wanted) <= 0x1p-8 * fabs(exp2(floor(log2(fabs(wanted) + 1e-30)))));
    }
}
END_TEST

/* Indices of 32 bits went over in 32 heads of 8192 by 8192, the last of which is 2^31 - 1; that of 128 heads is over
 * 2^32, too. The last rows are made without the others. */
START_TEST(pytorch_107959_beyond_two_thousand_million) {
    struct pe_error err = {0};
    struct pe_arena *arena = pe_arena_open((size_t)64 << 20, NULL, &err);
    struct pe_spec spec;
    struct pe_plan *plan = NULL;
    struct pe_positions positions;
    const struct pe_bias_rows *rows;
    const size_t heads = 128, n = 8192;
    float *row = (float *)(void *)report_doubles(n);
    ck_assert(!pe_spec_init(arena, &spec, "alibi", &err) && !pe_plan_open(&plan, &spec, &err) &&
              !pe_positions_steps(&positions, 0, 1, n, &err));
    struct pe_bias_args args = {.size = sizeof args,
                                .plan = plan,
                                .heads = heads,
                                .query_positions = &positions,
                                .dtype = PE_DTYPE_F32};
    ck_assert_msg(!pe_bias_rows_open(arena, &rows, &args, &err), "%s: %s", err.path, err.text);
    for (size_t back = 1; back <= n; back += n - 1) {
        pe_bias_rows_fill(rows, heads * n - back, 1, row);
        for (size_t j = 0; j < n; j++) {
            ck_assert_double_eq(row[j], -0x1p-8 * fabs((double)(n - back) - (double)j));
        }
    }
    pe_plan_close(plan);
    pe_arena_close(arena);
}
END_TEST

/* With cached keys there is one query, and the bias had the shape or the positions of one key. It is a row of
 * the whole, by the positions of all keys. */
START_TEST(mistral_rs_1382_one_query_and_all_keys) {
    struct report_tensor all = report_tensor(ALIBI "heads=3&query_positions=0:10", NULL, "bias"),
                         step = report_tensor(ALIBI "heads=3&query_positions=9:10&key_positions=0:10", NULL,
                                              "bias");
    ck_assert(step.rank == 3 && step.dim[0] == 3 && step.dim[1] == 1 && step.dim[2] == 10);
    for (size_t h = 0; h < 3; h++) {
        ck_assert_mem_eq(step.values + 10 * h, all.values + 100 * h + 90, 10 * sizeof(double));
    }
    report_expect("POST /v1/attention",
                  "{\"encoding\":{\"type\":\"alibi\",\"bias_max\":1},\"q\":[[0,0]],\"k\":[[0,0],[0,0],[0,0]],"
                  "\"return\":[\"position\"]}",
                  "position", REPORT_SHAPE(1, 3), 0, REPORT_VALUES(-1, -.5, 0));
}
END_TEST

/* ---- T5 ------------------------------------------------------------------------------------------------ */

/* The bucket of key - query, of a rule; by a table whose numbers are those of its rows. */
static double bucket(int n, int max_distance, bool both, double offset, const char *query) {
    char body[2000], request[100];
    snprintf(body, sizeof body,
             "{\"encoding\":{\"type\":\"t5\",\"num_buckets\":%d,\"max_distance\":%d,\"bidirectional\":%s,"
             "\"table\":[[0]",
             n, max_distance, both ? "true" : "false");
    for (int b = 1; b < n; b++) {
        snprintf(body + strlen(body), sizeof body - strlen(body), ",[%d]", b);
    }
    snprintf(body + strlen(body), sizeof body - strlen(body),
             "]},\"heads\":1,\"query_positions\":[1000],\"key_positions\":[%.0f]}", 1000 + offset);
    snprintf(request, sizeof request, "POST /v1/bias%s", query);
    return report_tensor(request, body, "bias").values[0];
}

/* The last bucket was not the last: rows beyond the table were read from max_distance on. */
START_TEST(candle_727_1312_the_last_bucket_takes_all_beyond) {
    static const double far[] = {91, 127, 128, 129, 200, 1000, 1e6, 1e15};
    for (size_t i = 0; i < PE_COUNT(far); i++) {
        ck_assert_double_eq(bucket(32, 128, true, -far[i], ""), 15);
        ck_assert_double_eq(bucket(32, 128, true, far[i], ""), 31);
        ck_assert_double_eq(bucket(32, 128, false, -far[i], ""), far[i] < 113 ? 29 : 31);
    }
}
END_TEST

/* The sign was that of query - key. A key after its query is 16 buckets on, or in bucket 0. */
START_TEST(gluon_nlp_1470_video_diffusion_11_keys_after_the_query) {
    for (double n = 1; n < 8; n++) {
        ck_assert_double_eq(bucket(32, 128, true, n, ""), 16 + n);
        ck_assert_double_eq(bucket(32, 128, true, -n, ""), n);
        ck_assert_double_eq(bucket(32, 128, false, n, ""), 0);
        ck_assert_double_eq(bucket(32, 128, false, -n, ""), n);
    }
}
END_TEST

/* Attention across two sequences had the bias of one, or one of the wrong shape. There T5 adds nothing:
 * without an encoding the position's part is zeros, whatever the lengths. */
START_TEST(transformers_7323_8518_4499_no_bias_across_sequences) {
    const char *body = "{\"q\":[[1,0],[0,1]],\"k\":[[1,0],[0,1],[2,2],[-1,3],[0,0]],\"scale\":1,"
                       "\"return\":[\"position\",\"logits\"]}";
    report_expect("POST /v1/attention", body, "position", REPORT_SHAPE(2, 5), 0,
                  REPORT_VALUES(0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
    report_expect("POST /v1/attention", body, "logits", REPORT_SHAPE(2, 5), 0,
                  REPORT_VALUES(1, 0, 2, -1, 0, 0, 1, 2, 3, 0));
}
END_TEST

/* Logarithms were taken in bfloat16. The type of the reply changes no bucket. */
START_TEST(mindone_670_buckets_in_16_bits) {
    static const char *const types[] = {"?format=raw&dtype=bfloat16", "?format=raw&dtype=float16", ""};
    for (size_t i = 0; i < PE_COUNT(types); i++) {
        ck_assert_double_eq(bucket(32, 128, true, -64, types[i]), 14);
        ck_assert_double_eq(bucket(32, 128, true, -63, types[i]), 13);
        ck_assert_double_eq(bucket(32, 128, true, 90, types[i]), 30);
        ck_assert_double_eq(bucket(32, 128, true, 91, types[i]), 31);
    }
}
END_TEST

/* Distances on an edge, which logarithms in float64 put below it, one order of operations here, another
 * there. */
START_TEST(t5_edges_by_logarithms_in_float64) {
    static const struct {
        int n, max_distance;
        bool both;
        double distance, bucket;
    } edges[] = {{32, 128, true, 64, 14},   {32, 128, true, 32, 12},  {32, 128, true, 16, 10},
                 {32, 256, false, 128, 28}, {32, 256, false, 64, 24}, {32, 256, false, 32, 20},
                 {128, 128, true, 64, 48},  {64, 128, false, 64, 48}};
    for (size_t i = 0; i < PE_COUNT(edges); i++) {
        int n = edges[i].n, far = edges[i].max_distance;
        ck_assert_double_eq(bucket(n, far, edges[i].both, -edges[i].distance, ""), edges[i].bucket);
        ck_assert_double_eq(bucket(n, far, edges[i].both, 1 - edges[i].distance, ""), edges[i].bucket - 1);
    }
}
END_TEST

Suite *reports_relative_bias_suite(void) {
    Suite *suite = suite_create("reports_relative_bias");
    TCase *tests = tcase_create("bias");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, report_setup, report_teardown);
    tcase_add_loop_test(tests, tt_metal_56406_55337_the_bias_is_not_scaled, 0, 5);
    tcase_add_test(tests, large_negative_biases_do_not_overflow);
    tcase_add_test(tests, mlx_343_3071_transformers_28380_six_heads);
    tcase_add_test(tests, aprender_2143_the_first_slope_is_a_half);
    tcase_add_test(tests, croma_12_the_order_of_heads_stays);
    tcase_add_test(tests, llm_foundry_186_baichuan_13b_172_flash_attention_540_by_key_needs_a_causal_mask);
    tcase_add_test(tests, model_connect_667_far_biases_are_not_rounded);
    tcase_add_test(tests, pytorch_107959_beyond_two_thousand_million);
    tcase_add_test(tests, mistral_rs_1382_one_query_and_all_keys);
    tcase_add_test(tests, candle_727_1312_the_last_bucket_takes_all_beyond);
    tcase_add_test(tests, gluon_nlp_1470_video_diffusion_11_keys_after_the_query);
    tcase_add_test(tests, transformers_7323_8518_4499_no_bias_across_sequences);
    tcase_add_test(tests, mindone_670_buckets_in_16_bits);
    tcase_add_test(tests, t5_edges_by_logarithms_in_float64);
    return suite;
}
