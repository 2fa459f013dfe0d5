/* SPDX-License-Identifier: MIT
 *
 * Public bug reports on rotary encodings: widths, axes, precision, padding, offsets and caches, layouts and
 * several coordinates. Each test is named after a project and its report. Those on scalings are in
 * check_reports_scaling.c.
 *
 * Not here: DINOv3's weights, which hold periods in bfloat16 (a note in timm), as no arithmetic of ours
 * rounds periods so.
 */
#include "report_run.h"
#include "suites.h"

#include <math.h>
#include <string.h>

#define ENCODE "GET /v1/encode?type=rope&layout=halves&"
#define APPLY  "POST /v1/apply?type=rope&layout=halves&format=raw&"

/* Numbers that tell where they were. */
static double *tokens(size_t n, unsigned seed) {
    double *x = report_doubles(n);
    for (size_t i = 0; i < n; i++) {
        x[i] = (double)((i * 37 + seed * 11) % 101) / 25 - 2;
    }
    return x;
}

/* Row x [d] turned in halves at p, in plain C. */
static void expect_turned(const double *got, const double *x, size_t d, double p) {
    for (size_t i = 0; i < d / 2; i++) {
        double angle = p * pow(10000, -2.0 * (double)i / (double)d), a = x[i], b = x[i + d / 2];
        ck_assert_double_eq_tol(got[i], a * cos(angle) - b * sin(angle), 1e-11);
        ck_assert_double_eq_tol(got[i + d / 2], b * cos(angle) + a * sin(angle), 1e-11);
    }
}

/* ---- Widths and axes ----------------------------------------------------------------------------------- */

/* Odd widths failed far inside. They are refused by the name of their parameter. */
START_TEST(retnet_31_transformers_48648_odd_widths) {
    report_refused(ENCODE "head_dim=7&positions=1", NULL, "range", "encoding.head_dim",
                   REPORT_WORDS("7", "even"));
    report_refused(ENCODE "head_dim=16&rotary_dim=7&positions=1", NULL, "range", "encoding.rotary_dim",
                   REPORT_WORDS("7", "even"));
    report_refused(ENCODE "head_dim=5&xpos.scale_base=512&positions=1", NULL, "range", "encoding.head_dim",
                   REPORT_WORDS("even"));
    const char *body = "{\"encoding\":{\"type\":\"rope\",\"hf_config\":{\"model_type\":\"deepseek_v3\","
                       "\"qk_rope_head_dim\":7,\"qk_nope_head_dim\":128}},\"positions\":[1]}";
    struct call_try try = {.request = "POST /v1/encode", .body = body};
    call_try(&report_ground, &try);
    ck_assert_int_eq(try.status, 400);
    ck_assert_msg(strstr(try.reply, "even") != NULL, "%s", try.reply);
    call_try_close(&try);
}
END_TEST

/* The rotation ran along another axis than that of the tokens: [B, S, H, D] was taken for [B, H, S, D]. Four
 * axes have to be named, and row s turns by s. */
START_TEST(xformers_841_728_the_axis_of_the_tokens_is_named) {
    static const size_t dim[] = {2, 3, 4, 8};
    const double *x = tokens(2 * 3 * 4 * 8, 1);
    struct report_tensor bthd = report_tensor_raw(APPLY "axes=bthd", x, dim, 4, "embeddings"),
                         bhtd = report_tensor_raw(APPLY "axes=bhtd", x, dim, 4, "embeddings");
    for (size_t i = 0; i < 2 * 3 * 4; i++) {
        expect_turned(bthd.values + 8 * i, x + 8 * i, 8, (double)(i / 4 % 3));
        expect_turned(bhtd.values + 8 * i, x + 8 * i, 8, (double)(i % 4));
    }
    report_refused("POST /v1/apply?type=rope&layout=halves", "{\"embeddings\":[[[[1,2]]]]}", "missing",
                   "axes", REPORT_WORDS("bthd", "bhtd"));
}
END_TEST

/* Cosines were sliced by the size of the batch, which is wrong where there are fewer sequences than tokens.
 */
START_TEST(tokenformer_minimal_1_slices_by_the_sequence) {
    static const size_t shapes[][4] = {{1, 5, 2, 4}, {2, 5, 2, 4}, {5, 2, 1, 4}};
    for (size_t s = 0; s < PE_COUNT(shapes); s++) {
        const size_t *dim = shapes[s];
        size_t n = dim[0] * dim[1] * dim[2];
        const double *x = tokens(n * 4, 2);
        struct report_tensor got = report_tensor_raw(APPLY "axes=bthd", x, dim, 4, "embeddings");
        for (size_t i = 0; i < n; i++) {
            expect_turned(got.values + 4 * i, x + 4 * i, 4, (double)(i / dim[2] % dim[1]));
        }
    }
}
END_TEST

/* ---- Precision ----------------------------------------------------------------------------------------- */

/* Positions, frequencies or tables were made in the 16 bits of the model: 257 became 256, 4095 4096, 15962
 * 15936, 2049 2048 and 65520 infinite. The result is the exact value rounded once, whatever its type. */
START_TEST(transformers_29285_megatron_535_sglang_jax_1472_candle_3520_16_bits) {
    static const char *const positions = "257,2049,4095,15962,65520,131071";
    static const double spacing[] = {0x1p-8, 0x1p-11}; /* half of the last place, of a power of two */
    static const char *const dtypes[] = {"bfloat16", "float16"};
    char request[200];
    snprintf(request, sizeof request, ENCODE "head_dim=128&dtype=float64&format=raw&return=cos&positions=%s",
             positions);
    struct report_tensor exact = report_tensor(request, NULL, "cos");
    ck_assert_double_eq_tol(exact.values[2 * 64], -.0659759966, 5.1e-11);
    ck_assert_double_eq_tol(exact.values[3 * 64], -.908015901, 5.1e-10);
    for (size_t t = 0; t < 2; t++) {
        snprintf(request, sizeof request, ENCODE "head_dim=128&dtype=%s&format=raw&return=cos&positions=%s",
                 dtypes[t], positions);
        struct report_tensor got = report_tensor(request, NULL, "cos");
        for (size_t i = 0; i < exact.n; i++) {
            ck_assert(fabs(got.values[i] - exact.values[i]) <=
                      spacing[t] * fmax(fabs(exact.values[i]), 0x1p-14));
        }
    }
}
END_TEST

/* sin(1e9) and sin(1e10) in float32. */
START_TEST(mlx_4157_large_arguments) {
    struct report_tensor got =
        report_tensor(ENCODE "head_dim=2&positions=1000000000,10000000000", NULL, "sin");
    report_row(&got, 0, 6e-8, REPORT_VALUES(.5458434494, -.4875060251));
}
END_TEST

/* Tables were made in the type of the model, then used in products. Queries of 16 bits are turned in float64
 * and rounded once. */
START_TEST(flashinfer_585_sglang_33117_vllm_863_queries_are_rounded_once) {
    static const size_t dim[] = {1, 8};
    const double *x = tokens(8, 3);
    struct report_tensor exact = report_tensor_raw(APPLY "positions=4095", x, dim, 2, "embeddings"),
                         half =
                             report_tensor_raw(APPLY "positions=4095&dtype=float16", x, dim, 2, "embeddings"),
                         brain = report_tensor_raw(APPLY "positions=4095&dtype=bfloat16", x, dim, 2,
                                                   "embeddings");
    expect_turned(exact.values, x, 8, 4095);
    for (size_t i = 0; i < 8; i++) {
        ck_assert(fabs(half.values[i] - exact.values[i]) <= 0x1.001p-12 * fabs(2 * exact.values[i]));
        ck_assert(fabs(brain.values[i] - exact.values[i]) <= 0x1.001p-9 * fabs(2 * exact.values[i]));
    }
}
END_TEST

/* An offset was rounded to 16 bits on its way to the position. */
START_TEST(tt_metal_33971_51845_55318_bumblebee_299_offsets_are_whole) {
    struct report_tensor run = report_tensor(ENCODE "head_dim=64&positions.start=100001&positions.count=3",
                                             NULL, "sin"),
                         list =
                             report_tensor(ENCODE "head_dim=64&positions=100001,100002,100003", NULL, "sin");
    ck_assert_mem_eq(run.values, list.values, run.n * sizeof(double));
    ck_assert(run.values[0] != run.values[32] && run.values[32] != run.values[64]);
}
END_TEST

/* ---- Positions, padding, caches ------------------------------------------------------------------------ */

/* Position -1 and one beyond the cache were read out of bounds. There is no cache: every position up to 2^53
 * has its angle, -1 the one of 1 turned back, and one beyond 2^53 is refused. */
START_TEST(onnxruntime_27597_28205_28214_rotary_embedding_torch_8192_no_cache_to_leave) {
    struct report_tensor cosines =
                             report_tensor(ENCODE "head_dim=64&positions=-1,1,8191,8192,8193", NULL, "cos"),
                         sines =
                             report_tensor(ENCODE "head_dim=64&positions=-1,1,8191,8192,8193", NULL, "sin");
    for (size_t i = 0; i < 32; i++) {
        ck_assert(cosines.values[i] == cosines.values[32 + i] && sines.values[i] == -sines.values[32 + i]);
        double omega = pow(10000, -(double)i / 32);
        for (size_t p = 0; p < 3; p++) {
            ck_assert_double_eq_tol(cosines.values[(2 + p) * 32 + i], cos(omega * (8191 + (double)p)), 1e-7);
        }
    }
    report_refused(ENCODE "head_dim=64&positions=9007199254740993", NULL, "range", "positions[0]",
                   REPORT_WORDS("2^53"));
}
END_TEST

/* A cache did not know the offset it was made for: the second call got the first's. */
START_TEST(rotary_embedding_torch_11_offsets_differ) {
    struct report_tensor first = report_tensor(ENCODE "head_dim=8&positions=0:4", NULL, "sin"),
                         second = report_tensor(ENCODE "head_dim=8&positions=5:9", NULL, "sin"),
                         again = report_tensor(ENCODE "head_dim=8&positions=0:4", NULL, "sin");
    ck_assert_mem_eq(first.values, again.values, first.n * sizeof(double));
    for (size_t i = 0; i < first.n; i++) {
        ck_assert(first.values[i] != second.values[i]);
    }
}
END_TEST

/* q [1, d] and k [10, d] of width 2: the logits are cosines of the distances. */
static void expect_distances(const char *query_positions, const char *key_positions, double q, double k) {
    char body[500], keys[100] = "[1,0]";
    double wanted[10];
    for (size_t i = 1; i < 10; i++) {
        snprintf(keys + strlen(keys), sizeof keys - strlen(keys), ",[1,0]");
    }
    snprintf(
        body, sizeof body,
        "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\"},\"q\":[[1,0]],\"k\":[%s]%s%s,\"scale\":1,"
        "\"return\":[\"logits\"]}",
        keys, query_positions, key_positions);
    for (size_t i = 0; i < 10; i++) {
        wanted[i] = cos(q - k - (double)i);
    }
    report_expect("POST /v1/attention?dtype=float64", body, "logits", REPORT_SHAPE(1, 10), 1e-14, wanted, 10);
}

/* Fewer queries than keys: the query was turned by 0, though it is the last of the tokens. Every decode step
 * was at position 0 (mlx-vlm), at n + 1 in place of n (onnxruntime-genai), or at -1 (CTranslate2). */
START_TEST(rotary_embedding_torch_2_15_48_x_transformers_103_mlx_vlm_1983_queries_are_the_last) {
    expect_distances("", "", 9, 0);
    expect_distances(",\"query_positions\":[9]", "", 9, 0);
    expect_distances(",\"query_positions\":[12]", ",\"key_positions\":\"3:13\"", 12, 3);
}
END_TEST

START_TEST(onnxruntime_genai_2354_veloxquant_389_hipfire_391_steps_follow_the_prompt) {
    /* A prompt of nine tokens, 0 to 8, and the first one that is generated, 9. */
    struct report_tensor all = report_tensor(ENCODE "head_dim=8&positions=0:10", NULL, "cos"),
                         step = report_tensor(ENCODE "head_dim=8&positions=9", NULL, "cos");
    ck_assert_mem_eq(all.values + 9 * 4, step.values, 4 * sizeof(double));
    expect_distances("", ",\"key_positions\":\"0:10\"", 9, 0);
}
END_TEST

START_TEST(ctranslate2_1572_without_a_cache_the_first_is_0) {
    static const size_t dim[] = {2, 4};
    const double *x = tokens(8, 4);
    struct report_tensor got = report_tensor_raw(APPLY, x, dim, 2, "embeddings");
    ck_assert_mem_eq(got.values, x, 4 * sizeof(double)); /* turned by 0: the very bits */
    expect_turned(got.values + 4, x + 4, 4, 1);
}
END_TEST

/* Tokens behind left padding counted the padding. By the rule of generate() they do not, and turn as without.
 */
START_TEST(transformers_21080_unsloth_3795_4078_alpaca_lora_315_left_padding) {
    static const size_t dim[] = {5, 4};
    const double *x = tokens(20, 5);
    struct report_tensor padded = report_tensor_raw(APPLY "positions.mask=0,0,1,1,1&positions.rule=gpt2", x,
                                                    dim, 2, "embeddings"),
                         alone = report_tensor_raw(APPLY, x + 8, (const size_t[]){3, 4}, 2, "embeddings");
    ck_assert_mem_eq(padded.values + 8, alone.values, 12 * sizeof(double));
}
END_TEST

/* Packed documents: positions begin anew, a document of one token too. */
START_TEST(olmo_core_503_torchtitan_2559_ms_swift_9904_packed_documents) {
    static const size_t dim[] = {6, 4};
    const double *x = tokens(24, 6);
    static const double positions[] = {0, 1, 2, 0, 0, 1};
    struct report_tensor got = report_tensor_raw(APPLY "positions.lengths=3,1,2", x, dim, 2, "embeddings");
    for (size_t i = 0; i < 6; i++) {
        expect_turned(got.values + 4 * i, x + 4 * i, 4, positions[i]);
    }
}
END_TEST

/* ---- Layouts ------------------------------------------------------------------------------------------- */

/* One layout where the weights had the other. It has to be said, and the two are told apart. */
START_TEST(nanochat_264_llms_from_scratch_838_746_tinyllama_24_llama_cpp_3018_the_layout_is_said) {
    report_refused("POST /v1/apply?type=rope", "{\"embeddings\":[[1,2,3,4]]}", "missing", "encoding.layout",
                   REPORT_WORDS("required"));
    report_expect("POST /v1/apply?type=rope&layout=halves&positions=1", "{\"embeddings\":[[1,2,3,4]]}",
                  "embeddings", REPORT_SHAPE(1, 4), 1e-6,
                  REPORT_VALUES(-1.984111, 1.959901, 2.462378, 4.019800));
    report_expect("POST /v1/apply?type=rope&layout=interleaved&positions=1", "{\"embeddings\":[[1,2,3,4]]}",
                  "embeddings", REPORT_SHAPE(1, 4), 1e-5,
                  REPORT_VALUES(-1.14264, 1.922076, 2.959851, 4.0298));
}
END_TEST

/* Frequencies repeated pair by pair (t0 t0 t1 t1), but halves turned: the two columns of a pair had two
 * angles, and scores were not relative any more. The table in full has both columns of a pair alike, in
 * either layout. */
START_TEST(llama_cpp_7481_tt_metal_26844_vllm_26995_megatron_3900_tables_fit_the_layout) {
    struct report_tensor
        halves = report_tensor(ENCODE "head_dim=8&positions=3&trig_form=full", NULL, "cos"),
        pairs = report_tensor(
            "GET /v1/encode?type=rope&layout=interleaved&head_dim=8&positions=3&trig_form=full", NULL, "cos");
    for (size_t i = 0; i < 4; i++) {
        ck_assert(halves.values[i] == halves.values[i + 4] && pairs.values[2 * i] == pairs.values[2 * i + 1]);
        ck_assert(halves.values[i] == pairs.values[2 * i]);
    }
}
END_TEST

/* The other direction: scores are the same, vectors are not. */
START_TEST(nanochat_489_directions) {
    report_expect("POST /v1/apply?type=rope&layout=halves&positions=1", "{\"embeddings\":[[1,0]]}",
                  "embeddings", REPORT_SHAPE(1, 2), 1e-6, REPORT_VALUES(.540302, .841471));
    report_expect("POST /v1/apply?type=rope&layout=halves&direction=clockwise&positions=1",
                  "{\"embeddings\":[[1,0]]}", "embeddings", REPORT_SHAPE(1, 2), 1e-6,
                  REPORT_VALUES(.540302, -.841471));
    char bodies[2][300];
    struct report_tensor logits[2];
    for (int i = 0; i < 2; i++) {
        snprintf(bodies[i], sizeof bodies[i],
                 "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\",\"direction\":\"%s\"},\"q\":[[1,2],["
                 "3,-1]],"
                 "\"k\":[[2,1],[0,5]],\"return\":[\"logits\"]}",
                 i ? "clockwise" : "counterclockwise");
        logits[i] = report_tensor("POST /v1/attention?dtype=float64", bodies[i], "logits");
    }
    ck_assert_double_eq_tol(logits[0].values[0], logits[1].values[0], 1e-14); /* the same position */
    ck_assert_double_eq_tol(logits[0].values[3], logits[1].values[3], 1e-14);
}
END_TEST

/* ---- Several coordinates ------------------------------------------------------------------------------- */

#define MROPE                                                                                                \
    "GET /v1/encode?type=rope&layout=halves&head_dim=128&base=1000000&dtype=float64&sections=16,24,24&"

/* One-dimensional ids for three coordinates, sections cut wrong, the offset of an image lost while decoding.
 */
START_TEST(transformers_45381_40490_vllm_16878_27854_liger_276_mlx_lm_1768_verl_5024_mrope) {
    struct report_tensor image = report_tensor(MROPE "positions=[[5,7,11]]", NULL, "cos"),
                         text = report_tensor(MROPE "positions=9", NULL, "cos"),
                         same = report_tensor(MROPE "positions=[[9,9,9]]", NULL, "cos"),
                         plain = report_tensor(ENCODE "head_dim=128&base=1000000&dtype=float64&positions=9",
                                               NULL, "cos");
    for (size_t i = 0; i < 64; i++) {
        double p = i < 16 ? 5 : i < 40 ? 7 : 11;
        ck_assert_double_eq_tol(image.values[i], cos(p * pow(1e6, -(double)i / 64)), 1e-14);
    }
    ck_assert_mem_eq(text.values, same.values, 64 * sizeof(double));
    ck_assert_mem_eq(text.values, plain.values, 64 * sizeof(double));
    report_refused(MROPE "positions=[[[1,2],[3,4]]]", NULL, "shape", "positions", REPORT_WORDS("3"));
}
END_TEST

/* Texts of a batch have one coordinate; a list of rows of three is positions of one sequence. */
START_TEST(vllm_16878_batches_of_texts) {
    const char *encoding = "\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\",\"sections\":[1,1,2]}";
    char body[900];
    static const char *const x = "[1,2,3,4,5,6,7,8]";
    struct report_tensor lists[3];
    static const char *const positions[] = {"[[0,1,2],[4,5,6]]",
                                            "[[[0,0,0],[1,1,1],[2,2,2]],[[4,4,4],[5,5,5],[6,6,6]]]"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(body, sizeof body, "{%s,\"positions\":%s,\"embeddings\":[[%s,%s,%s],[%s,%s,%s]]}", encoding,
                 positions[i], x, x, x, x, x, x);
        lists[i] = report_tensor("POST /v1/apply?dtype=float64", body, "embeddings");
    }
    ck_assert_mem_eq(lists[0].values, lists[1].values, lists[0].n * sizeof(double));
    snprintf(body, sizeof body,
             "{%s,\"query_positions\":[[1,2,3],[4,5,6]],\"key_positions\":[[1,2,3],[4,5,6]],\"q\":[%s,%s],"
             "\"k\":[%s,%s],"
             "\"return\":[\"logits\"]}",
             encoding, x, x, x, x);
    struct report_tensor rows = report_tensor("POST /v1/attention?dtype=float64", body, "logits");
    ck_assert_double_eq_tol(rows.values[0], 204 / sqrt(8), 1e-12);
    ck_assert(fabs(rows.values[1] - rows.values[0]) > 1);
}
END_TEST

/* 64 columns for three axes were cut into 24, 20 and 20 in one place and 22, 21 and 21 in another. The shares
 * are parameters, their sum is checked, and the axes of an image have equal ones or are refused. */
START_TEST(diffusers_12538_shares_are_said) {
    report_refused(ENCODE "head_dim=64&sections=11,10,10&positions=1", NULL, "range", "encoding.sections",
                   REPORT_WORDS("31", "32"));
    report_refused(ENCODE "head_dim=64&rope_axes.n_axes=3&rope_axes.frequencies=language&positions=[[1,2,3]]",
                   NULL, "range", "encoding.rope_axes.n_axes", REPORT_WORDS("3", "32"));
    struct report_tensor got =
        report_tensor(ENCODE "head_dim=64&sections=12,10,10&positions=[[1,2,3]]", NULL, "cos");
    ck_assert_uint_eq(got.n, 32);
}
END_TEST

/* xPos grows with every position, to infinity. Positions where it would are refused, and a center keeps it
 * small. */
START_TEST(local_attention_14_xpos_stays_finite) {
    report_refused(ENCODE "head_dim=64&xpos.scale_base=64&positions=0,10000", NULL, "range", "positions[1]",
                   REPORT_WORDS("float32"));
    struct report_tensor got = report_tensor(
        ENCODE "head_dim=64&xpos.scale_base=64&xpos.center=4000&positions=0,8000&role=key", NULL, "cos");
    for (size_t i = 0; i < got.n; i++) {
        ck_assert(isfinite(got.values[i]));
    }
    report_tensor(ENCODE "head_dim=64&xpos.scale_base=64&positions=0,10000&dtype=float64", NULL, "cos");
}
END_TEST

/* Tables were left uninitialised after loading: inv_freq[0] was 6.9e-18. It is 1, whatever else is asked. */
START_TEST(transformers_45902_34234_48892_fastplms_47_gpt_neox_1168_the_first_frequency_is_1) {
    static const char *const more[] = {"", "&base=500000", "&rotary_dim=4", "&dtype=float64",
                                       "&dtype=float16&format=raw"};
    for (size_t i = 0; i < PE_COUNT(more); i++) {
        char request[200];
        snprintf(request, sizeof request, ENCODE "head_dim=16&positions=1&return=inv_freq%s", more[i]);
        ck_assert(report_tensor(request, NULL, "inv_freq").values[0] == 1);
    }
}
END_TEST

Suite *reports_rotary_suite(void) {
    Suite *suite = suite_create("reports_rotary");
    TCase *tests = tcase_create("rotary");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, report_setup, report_teardown);
    tcase_add_test(tests, retnet_31_transformers_48648_odd_widths);
    tcase_add_test(tests, xformers_841_728_the_axis_of_the_tokens_is_named);
    tcase_add_test(tests, tokenformer_minimal_1_slices_by_the_sequence);
    tcase_add_test(tests, transformers_29285_megatron_535_sglang_jax_1472_candle_3520_16_bits);
    tcase_add_test(tests, mlx_4157_large_arguments);
    tcase_add_test(tests, flashinfer_585_sglang_33117_vllm_863_queries_are_rounded_once);
    tcase_add_test(tests, tt_metal_33971_51845_55318_bumblebee_299_offsets_are_whole);
    tcase_add_test(tests, onnxruntime_27597_28205_28214_rotary_embedding_torch_8192_no_cache_to_leave);
    tcase_add_test(tests, rotary_embedding_torch_11_offsets_differ);
    tcase_add_test(tests,
                   rotary_embedding_torch_2_15_48_x_transformers_103_mlx_vlm_1983_queries_are_the_last);
    tcase_add_test(tests, onnxruntime_genai_2354_veloxquant_389_hipfire_391_steps_follow_the_prompt);
    tcase_add_test(tests, ctranslate2_1572_without_a_cache_the_first_is_0);
    tcase_add_test(tests, transformers_21080_unsloth_3795_4078_alpaca_lora_315_left_padding);
    tcase_add_test(tests, olmo_core_503_torchtitan_2559_ms_swift_9904_packed_documents);
    tcase_add_test(tests,
                   nanochat_264_llms_from_scratch_838_746_tinyllama_24_llama_cpp_3018_the_layout_is_said);
    tcase_add_test(tests, llama_cpp_7481_tt_metal_26844_vllm_26995_megatron_3900_tables_fit_the_layout);
    tcase_add_test(tests, nanochat_489_directions);
    tcase_add_test(tests, transformers_45381_40490_vllm_16878_27854_liger_276_mlx_lm_1768_verl_5024_mrope);
    tcase_add_test(tests, vllm_16878_batches_of_texts);
    tcase_add_test(tests, diffusers_12538_shares_are_said);
    tcase_add_test(tests, local_attention_14_xpos_stays_finite);
    tcase_add_test(tests, transformers_45902_34234_48892_fastplms_47_gpt_neox_1168_the_first_frequency_is_1);
    return suite;
}
