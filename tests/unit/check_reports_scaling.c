/* SPDX-License-Identifier: MIT
 *
 * Public bug reports on scalings of rotary encodings for long contexts. Each test is named after a project
 * and its report. Numbers of formulas that several projects agree on are in check_rope_published.c.
 *
 * Not here: one option of Megatron that two pieces of code read differently (#1418); a member of `scaling` is
 * read by one.
 */
#include "report_run.h"
#include "suites.h"

#include <math.h>
#include <string.h>

#define ENCODE  "GET /v1/encode?dtype=float64&type=rope&layout=halves&positions=1&"
#define DYNAMIC "scaling.rope_type=dynamic&scaling.original_max_position_embeddings=2048&scaling.factor=2&"
#define YARN    "scaling.rope_type=yarn&scaling.factor=4&"

/* A number that a reply tells beside its tensors. */
static double fact(const char *query, const char *name) {
    char request[500];
    snprintf(request, sizeof request, ENCODE "%s", query);
    struct call_try try = {.request = request};
    call_try(&report_ground, &try);
    ck_assert_msg(json_is_number(json_object_get(try.json, name)), "%s: no %s in %.300s", query, name,
                  try.reply);
    double value = json_number_value(json_object_get(try.json, name));
    call_try_close(&try);
    return value;
}

static struct report_tensor inv_freq(const char *query) {
    char request[500];
    snprintf(request, sizeof request, ENCODE "%s", query);
    return report_tensor(request, NULL, "inv_freq");
}

static void expect_same(const struct report_tensor *a, const struct report_tensor *b) {
    ck_assert_uint_eq(a->n, b->n);
    ck_assert_mem_eq(a->values, b->values, a->n * sizeof *a->values);
}

/* The base was computed once, for the longest context there may be, and used at every length. Here each call
 * says its length, without which it is refused, and the reply says the base. */
START_TEST(vllm_41236_5093_3488_dynamic_follows_the_length) {
    ck_assert_double_eq_tol(fact("head_dim=128&seq_len=4096&" DYNAMIC, "base_used"), 30527.7367, 5.1e-5);
    ck_assert_double_eq_tol(fact("head_dim=128&seq_len=3072&" DYNAMIC, "base_used"),
                            10000 * pow(2 * 3072.0 / 2048 - 1, 128.0 / 126), 1e-7);
    ck_assert_double_eq(fact("head_dim=128&seq_len=2048&" DYNAMIC, "base_used"), 10000);
    report_refused(ENCODE "head_dim=128&" DYNAMIC, NULL, "missing", "encoding.seq_len",
                   REPORT_WORDS("dynamic"));
}
END_TEST

/* Below the original length the formula's inner factor is negative, and its power no number. */
START_TEST(vllm_52665_52675_dynamic_below_its_length) {
    struct report_tensor plain = inv_freq("head_dim=128");
    static const char *const lengths[] = {"1", "512", "1024", "2047"};
    for (size_t i = 0; i < PE_COUNT(lengths); i++) {
        char query[300];
        snprintf(query, sizeof query, "head_dim=128&seq_len=%s&" DYNAMIC, lengths[i]);
        struct report_tensor got = inv_freq(query);
        expect_same(&got, &plain);
        ck_assert_double_eq(fact(query, "base_used"), 10000);
    }
}
END_TEST

/* The factor that was given was replaced by the quotient of two lengths. It is the one that counts, and a
 * length that the scaling does not use is refused rather than passed over. */
START_TEST(transformers_38224_40320_the_given_factor_counts) {
    ck_assert_double_eq_tol(
        fact("head_dim=64&" YARN "scaling.original_max_position_embeddings=8192", "attention_factor"),
        .1 * log(4) + 1, 1e-15);
    report_refused(ENCODE "head_dim=64&" YARN "scaling.original_max_position_embeddings=8192&"
                          "scaling.max_position_embeddings=131072",
                   NULL, "unknown_field", "encoding.scaling.max_position_embeddings", REPORT_WORDS("factor"));
    /* In a configuration, max/original is 16 and the factor 4. */
    const char *body =
        "{\"encoding\":{\"type\":\"rope\",\"hf_config\":{\"model_type\":\"qwen2\",\"head_dim\":64,"
        "\"max_position_embeddings\":131072,\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4.0,"
        "\"original_max_position_embeddings\":8192}}},\"positions\":[1]}";
    struct call_try try = {.request = "POST /v1/encode", .body = body};
    call_try(&report_ground, &try);
    ck_assert_double_eq_tol(json_number_value(json_object_get(try.json, "attention_factor")), .1 * log(4) + 1,
                            1e-15);
    call_try_close(&try);
}
END_TEST

/* The scale of the softmax lacked mscale squared: logits too small by 1.59 and 1.87. */
START_TEST(transformers_47435_mobius_548_the_scale_has_mscale_squared) {
    static const struct {
        const char *weight;
        double square;
    } all[] = {{"0.707", 1.589626}, {"1.0", 1.873854}};
    for (size_t i = 0; i < PE_COUNT(all); i++) {
        char body[600];
        snprintf(
            body, sizeof body,
            "{\"encoding\":{\"type\":\"rope\",\"layout\":\"interleaved\",\"scaling\":{\"rope_type\":\"yarn\","
            "\"factor\":40,\"original_max_position_embeddings\":4096,\"mscale\":%s,\"mscale_all_dim\":%s}},"
            "\"q\":[[1,0,0,0]],\"k\":[[1,0,0,0]],\"return\":[\"logits\"]}",
            all[i].weight, all[i].weight);
        struct report_tensor got = report_tensor("POST /v1/attention?dtype=float64", body, "logits");
        ck_assert_double_eq_tol(got.values[0], all[i].square / 2,
                                1e-6); /* 4^-0.5; sines and cosines have none */
    }
}
END_TEST

/* The factor stood inside of the power, and the ramp was rounded: the mixed frequencies are straight between.
 */
START_TEST(tvm_18576_the_ramp_is_linear) {
    struct report_tensor plain = inv_freq("head_dim=128"),
                         got = inv_freq("head_dim=128&" YARN "scaling.original_max_position_embeddings=4096");
    for (size_t i = 0; i < 64; i++) {
        double ramp = fmin(fmax(((double)i - 20) / (46 - 20), 0), 1);
        ck_assert_double_eq_tol(got.values[i] / plain.values[i], 1 - ramp + ramp / 4, 1e-14);
    }
}
END_TEST

/* keras-hub bounded the range at d/2 - 1 and did not cut it to pairs: up to .065 and .268 off the cosines of
 * transformers. Cut is the default here; not to cut is an option; and the bound is d - 1. */
START_TEST(keras_hub_2981_yarn_is_that_of_transformers) {
    struct report_tensor cut = inv_freq("head_dim=128&" YARN "scaling.original_max_position_embeddings=4096"),
                         whole =
                             inv_freq("head_dim=128&" YARN
                                      "scaling.original_max_position_embeddings=4096&scaling.truncate=false");
    ck_assert_double_eq_tol(cut.values[30], 9.488517883e-3, 1e-12);
    ck_assert(fabs(whole.values[30] / cut.values[30] - 1) > 0.001);
    /* d=8: the upper end, 6.5 pairs, is beyond d/2 - 1 = 3. */
    struct report_tensor small =
        inv_freq("head_dim=8&base=10&" YARN "scaling.original_max_position_embeddings=256");
    double low = floor(8 * log(256 / (2 * acos(-1) * 32)) / (2 * log(10))), high = 7;
    for (size_t i = 0; i < 4; i++) {
        double ramp = fmin(fmax(((double)i - low) / (high - low), 0), 1);
        ck_assert_double_eq_tol(small.values[i], pow(10, -(double)i / 4) * (1 - ramp + ramp / 4), 1e-12);
    }
}
END_TEST

/* Lengths that were not there became some default. */
START_TEST(nemo_automodel_2652_sglang_14270_nothing_is_guessed) {
    report_refused(ENCODE "head_dim=64&" YARN, NULL, "missing",
                   "encoding.scaling.original_max_position_embeddings", REPORT_WORDS("yarn"));
    report_refused(ENCODE "head_dim=64&scaling.rope_type=llama3&scaling.factor=8&scaling.low_freq_factor=1&"
                          "scaling.original_max_position_embeddings=8192",
                   NULL, "missing", "encoding.scaling.high_freq_factor", REPORT_WORDS("llama3"));
    report_refused(ENCODE "head_dim=64&scaling.factor=8", NULL, "missing", "encoding.scaling.rope_type",
                   REPORT_WORDS("required"));
}
END_TEST

/* Queries and keys were turned twice. A reply says by which encoding it turned; what is turned already is
 * posted without one, and gives the same weights. */
START_TEST(tensorrt_llm_16378_turned_once) {
    static const char *const rope = "\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\"}";
    char body[600];
    static const double q[] = {1, 2, -1, .5, .25, -2, 3, 1};
    struct report_tensor turned =
        report_tensor_raw("POST /v1/apply?type=rope&layout=halves&format=raw&positions=3,7", q,
                          (const size_t[]){2, 4}, 2, "embeddings");
    snprintf(body, sizeof body,
             "{%s,\"q\":[[1,2,-1,0.5]],\"k\":[[0.25,-2,3,1]],\"query_positions\":[3],\"key_positions\":[7],"
             "\"return\":[\"logits\"],\"dtype\":\"float64\"}",
             rope);
    struct report_tensor once = report_tensor("POST /v1/attention", body, "logits");
    double product = 0;
    for (size_t i = 0; i < 4; i++) {
        product += turned.values[i] * turned.values[4 + i];
    }
    ck_assert_double_eq_tol(once.values[0], product / 2, 1e-14);
    struct report_tensor twice =
        report_tensor_raw("POST /v1/apply?type=rope&layout=halves&format=raw&positions=3,7", turned.values,
                          (const size_t[]){2, 4}, 2, "embeddings");
    ck_assert(fabs(twice.values[0] - turned.values[0]) > 0.1);
}
END_TEST

/* The type under its older name was not seen, and the scaling dropped without a word. */
START_TEST(mlxcel_1355_unsloth_6197_mlx_examples_907_type_is_rope_type) {
#define LLAMA                                                                                                \
    "scaling.factor=8&scaling.low_freq_factor=1&scaling.high_freq_factor=4&scaling.original_max_position_"   \
    "embeddings=8192"
    struct report_tensor now = inv_freq("head_dim=128&base=500000&scaling.rope_type=llama3&" LLAMA),
                         before = inv_freq("head_dim=128&base=500000&scaling.type=llama3&" LLAMA),
                         none = inv_freq("head_dim=128&base=500000");
    expect_same(&now, &before);
    ck_assert(now.values[63] != none.values[63]);
    report_refused(ENCODE "head_dim=128&scaling.type=llama4&" LLAMA, NULL, "choice",
                   "encoding.scaling.rope_type", REPORT_WORDS("llama4", "llama3"));
    report_refused(ENCODE "head_dim=128&scaling.type=linear&" LLAMA, NULL, "unknown_field",
                   "encoding.scaling.original_max_position_embeddings", REPORT_WORDS("linear"));
}
END_TEST

/* Bands of Llama-3.2-1B: pairs 0 to 14 are kept, 15 to 17 mixed, the others divided by 32. */
START_TEST(tiny_vllm_1_bands_of_llama_3_2) {
    struct report_tensor plain = inv_freq("head_dim=64&base=500000"),
                         got = inv_freq("head_dim=64&base=500000&scaling.type=llama3&scaling.factor=32&"
                                        "scaling.low_freq_factor=1&scaling.high_freq_factor=4&"
                                        "scaling.original_max_position_embeddings=8192");
    for (size_t i = 0; i < 32; i++) {
        double part = plain.values[i] / got.values[i];
        ck_assert(i <= 14 ? part == 1 : i <= 17 ? part > 1.5 && part < 31 : fabs(part - 32) < 1e-13);
    }
}
END_TEST

/* Lists of factors are for the pairs that turn, which are fewer than head_dim/2 where a part turns. */
START_TEST(onnxruntime_genai_1161_tvm_18102_lists_are_of_the_turning_pairs) {
#define LISTS(list)                                                                                          \
    "seq_len=5&scaling.rope_type=longrope&scaling.factor=4&scaling.original_max_position_embeddings=64&"     \
    "scaling.short_factor=" list "&scaling.long_factor=" list
    struct report_tensor got = inv_freq("head_dim=8&partial_rotary_factor=0.5&" LISTS("1,2"));
    report_row(&got, 0, 1e-17, REPORT_VALUES(1, .005));
    report_refused(ENCODE "head_dim=8&partial_rotary_factor=0.5&" LISTS("1,2,3,4"), NULL, "shape",
                   "encoding.scaling.short_factor", REPORT_WORDS("[4]", "[2]"));
}
END_TEST

/* The name of no scaling was missing from a table. */
START_TEST(transformers_molmo2_default_is_a_name) {
    struct report_tensor got = inv_freq("head_dim=8&scaling.rope_type=default"),
                         plain = inv_freq("head_dim=8");
    expect_same(&got, &plain);
}
END_TEST

Suite *reports_scaling_suite(void) {
    Suite *suite = suite_create("reports_scaling");
    TCase *tests = tcase_create("scaling");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, report_setup, report_teardown);
    tcase_add_test(tests, vllm_41236_5093_3488_dynamic_follows_the_length);
    tcase_add_test(tests, vllm_52665_52675_dynamic_below_its_length);
    tcase_add_test(tests, transformers_38224_40320_the_given_factor_counts);
    tcase_add_test(tests, transformers_47435_mobius_548_the_scale_has_mscale_squared);
    tcase_add_test(tests, tvm_18576_the_ramp_is_linear);
    tcase_add_test(tests, keras_hub_2981_yarn_is_that_of_transformers);
    tcase_add_test(tests, nemo_automodel_2652_sglang_14270_nothing_is_guessed);
    tcase_add_test(tests, tensorrt_llm_16378_turned_once);
    tcase_add_test(tests, mlxcel_1355_unsloth_6197_mlx_examples_907_type_is_rope_type);
    tcase_add_test(tests, tiny_vllm_1_bands_of_llama_3_2);
    tcase_add_test(tests, onnxruntime_genai_1161_tvm_18102_lists_are_of_the_turning_pairs);
    tcase_add_test(tests, transformers_molmo2_default_is_a_name);
    return suite;
}
