/* SPDX-License-Identifier: MIT
 *
 * hf_config: what the class of each family fills in where a file does not say it, its spellings in versions 4
 * and 5 of transformers, the layers that have no positions, and what is refused rather than guessed.
 * Defaults, layouts and scales of the softmax are those of the configuration_*.py and modeling_*.py of
 * transformers.
 */
#include "report_run.h"
#include "suites.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZES             "\"hidden_size\":512,\"num_attention_heads\":4"
#define MODEL(type, more) "{\"model_type\":\"" type "\"," SIZES more "}"
#define NESTED(type, more)                                                                                   \
    "{\"model_type\":\"" type "\",\"text_config\":{\"model_type\":\"" type "_text\"," SIZES more             \
    "},\"vision_config\":{}}"
#define LLAMA3                                                                                               \
    "\"rope_type\":\"llama3\",\"factor\":16,\"low_freq_factor\":1,\"original_max_position_embeddings\":8192"
#define DEEPSEEK "\"qk_rope_head_dim\":64,\"qk_nope_head_dim\":128"

static json_t *try_encode(struct call_try *try, const char *config, const char *layer_type) {
    json_t *hf_config = json_loads(config, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_msg(hf_config != NULL, "%s", config);
    json_t *encoding = json_pack("{s:s,s:o}", "type", "rope", "hf_config", hf_config);
    if (layer_type) {
        json_object_set_new(encoding, "layer_type", json_string(layer_type));
    }
    json_t *body = json_pack("{s:o,s:[i]}", "encoding", encoding, "positions", 3);
    char *text = json_dumps(body, JSON_REAL_PRECISION(17));
    *try = (struct call_try){.request = "POST /v1/encode", .body = text};
    call_try(&report_ground, try);
    free(text);
    json_decref(body);
    return json_object_get(try->json, "encoding");
}

static const struct family_row {
    const char *config, *layer_type;
    double head_dim, rotary_dim, base, root; /* the softmax's scale is 1/sqrt(root) */
    const char *layout;
} family_rows[] = {
    /* what a class has where the file says nothing */
    {MODEL("llama", ""), NULL, 128, 128, 1e4, 128, "halves"},
    {MODEL("mixtral", ""), NULL, 128, 128, 1e6, 128, "halves"},
    {MODEL("olmo", ""), NULL, 128, 128, 1e4, 128, "halves"},
    {MODEL("olmoe", ""), NULL, 128, 128, 1e4, 128, "halves"},
    {MODEL("phi", ""), NULL, 128, 64, 1e4, 128, "halves"},
    {MODEL("nemotron", ""), NULL, 128, 64, 1e4, 128, "halves"},
    {MODEL("stablelm", ""), NULL, 128, 32, 1e4, 128, "halves"},
    {MODEL("persimmon", ""), NULL, 128, 64, 25000, 128, "halves"},
    {MODEL("smollm3", ""), NULL, 128, 128, 2e6, 128, "halves"},
    {MODEL("starcoder2", ""), NULL, 128, 128, 1e4, 128, "halves"},
    {MODEL("lfm2", ""), NULL, 128, 128, 1e6, 128, "halves"},
    {MODEL("qwen3_next", ""), NULL, 256, 64, 1e4, 256, "halves"},
    {MODEL("falcon", ""), NULL, 128, 128, 1e4, 128, "halves"},
    {MODEL("falcon", ",\"alibi\":false,\"rope_theta\":500042"), NULL, 128, 128, 500042, 128, "halves"},
    {MODEL("cohere", ""), NULL, 128, 128, 1e4, 128, "interleaved"},
    {MODEL("glm", ""), NULL, 128, 64, 1e4, 128, "interleaved"},
    {MODEL("glm4", ""), NULL, 128, 64, 1e4, 128, "interleaved"},
    {MODEL("glm4_moe", ""), NULL, 128, 64, 1e4, 128, "halves"},
    {MODEL("ernie4_5", ""), NULL, 128, 128, 5e5, 128, "interleaved"},
    {MODEL("mllama_text_model", ""), NULL, 128, 128, 5e5, 128, "halves"},
    {MODEL("minicpm", ""), NULL, 128, 128, 1e4, 128, "halves"},
    {"{\"model_type\":\"minicpm3\",\"qk_rope_head_dim\":32,\"qk_nope_head_dim\":64}", NULL, 32, 32, 1e4, 96,
     "halves"},
    {"{\"model_type\":\"kimi_k2\"," DEEPSEEK ",\"rope_theta\":50000.0}", NULL, 64, 64, 5e4, 192,
     "interleaved"},
    {"{\"model_type\":\"deepseek_v32\"," DEEPSEEK "}", NULL, 64, 64, 1e4, 192, "interleaved"},
    {"{\"model_type\":\"codegen\",\"n_embd\":1024,\"n_head\":16,\"rotary_dim\":32}", NULL, 64, 32, 1e4, 64,
     "interleaved"},
    {MODEL("minimax_m2", ",\"head_dim\":128,\"rotary_dim\":64,\"rope_theta\":5000000"), NULL, 128, 64, 5e6,
     128, "halves"},
    {MODEL("granitemoe", ",\"attention_multiplier\":0.015625"), NULL, 128, 128, 1e4, 4096, "halves"},
    /* layers that differ */
    {NESTED("llama4", ""), "chunked_attention", 128, 128, 5e5, 128, "interleaved"},
    {NESTED("gemma3n", ""), "full_attention", 256, 256, 1e6, 1, "halves"},
    {NESTED("gemma3n", ""), "sliding_attention", 256, 256, 1e4, 1, "halves"},
    {MODEL("cohere2", ""), "sliding_attention", 128, 128, 1e4, 128, "interleaved"},
    {MODEL("exaone4", ""), "sliding_attention", 128, 128, 1e4, 128, "halves"},
    {MODEL("exaone4", ",\"sliding_window\":null"), NULL, 128, 128, 1e4, 128, "halves"},
    {MODEL("olmo3", ",\"rope_theta\":500000"), "sliding_attention", 128, 128, 5e5, 128, "halves"},
    {MODEL("modernbert-decoder", ""), "full_attention", 128, 128, 160000, 128, "halves"},
    {MODEL("modernbert-decoder", ""), "sliding_attention", 128, 128, 1e4, 128, "halves"},
    /* version 5: one object, or one a type of layers */
    {MODEL(
         "gpt_neox",
         ",\"rope_parameters\":{\"rope_theta\":77,\"partial_rotary_factor\":0.5,\"rope_type\":\"default\"}"),
     NULL, 128, 64, 77, 128, "halves"},
    {MODEL(
         "glm4",
         ",\"rope_parameters\":{\"rope_theta\":77,\"partial_rotary_factor\":0.25,\"rope_type\":\"default\"}"),
     NULL, 128, 32, 77, 128, "interleaved"},
    {MODEL("smollm3", ",\"rope_parameters\":{\"rope_theta\":5000000.0,\"rope_type\":\"default\"},\"no_rope_"
                      "layers\":[1,1,1,0]"),
     NULL, 128, 128, 5e6, 128, "halves"},
    {MODEL("cohere2", ",\"rope_parameters\":{\"rope_theta\":50000,\"rope_type\":\"default\"}"),
     "sliding_attention", 128, 128, 5e4, 128, "interleaved"},
    {MODEL("modernbert",
           ",\"rope_parameters\":{\"full_attention\":{\"rope_theta\":160000.0,\"rope_type\":\"default\"},"
           "\"sliding_attention\":{\"rope_theta\":20000.0,\"rope_type\":\"default\"}}"),
     "sliding_attention", 128, 128, 2e4, 128, "halves"},
    {MODEL("gemma3_text",
           ",\"rope_parameters\":{\"sliding_attention\":{\"rope_theta\":20000.0,\"rope_type\":\"default\"},"
           "\"full_attention\":{\"rope_theta\":1000000.0,\"rope_type\":\"linear\",\"factor\":8.0}}"),
     "sliding_attention", 256, 256, 2e4, 256, "halves"},
    {NESTED("qwen3_5",
            ",\"head_dim\":256,\"rope_parameters\":{\"mrope_interleaved\":true,\"mrope_section\":[11,11,10],"
            "\"partial_rotary_factor\":0.25,\"rope_theta\":10000000,\"rope_type\":\"default\"}"),
     NULL, 256, 64, 1e7, 256, "halves"},
    {NESTED("qwen3_vl_moe",
            ",\"head_dim\":128,\"rope_scaling\":{\"mrope_interleaved\":true,\"mrope_section\":[24,20,20],"
            "\"rope_type\":\"default\"}"),
     NULL, 128, 128, 5e6, 128, "halves"},
    {MODEL("ministral3", ",\"rope_parameters\":{\"type\":\"yarn\",\"rope_theta\":1000000.0,\"factor\":16.0,"
                         "\"original_max_position_embeddings\":16384,\"mscale\":1.0,\"mscale_all_dim\":1.0}"),
     NULL, 128, 128, 1e6, 128, "halves"},
    {MODEL("gpt_oss", ",\"rope_scaling\":null"), NULL, 64, 64, 150000, 64, "halves"},
    /* a text model within another */
    {"{\"model_type\":\"llava\",\"text_config\":" MODEL("mistral", ",\"head_dim\":64") "}", NULL, 64, 64, 1e4,
     64, "halves"},
    {"{\"model_type\":\"mistral3\",\"text_config\":" MODEL("mistral", ",\"rope_theta\":1000000000.0") "}",
     NULL, 128, 128, 1e9, 128, "halves"},
};

START_TEST(families_and_their_defaults) {
    const struct family_row *row = &family_rows[_i];
    struct call_try try;
    const json_t *encoding = try_encode(&try, row->config, row->layer_type);
    ck_assert_msg(try.status == 200, "%s\n%s", row->config, try.reply);
    double scale = json_number_value(json_object_get(try.json, "softmax_scale"));
    ck_assert_double_eq(json_number_value(json_object_get(encoding, "head_dim")), row->head_dim);
    ck_assert_double_eq(json_number_value(json_object_get(encoding, "rotary_dim")), row->rotary_dim);
    ck_assert_double_eq(json_number_value(json_object_get(encoding, "base")), row->base);
    ck_assert_str_eq(json_string_value(json_object_get(encoding, "layout")), row->layout);
    ck_assert_double_eq_tol(scale, 1 / sqrt(row->root), 1e-15);
    call_try_close(&try);
}
END_TEST

/* Where layers of both types turn, the scaling is of those that the model was trained with. */
START_TEST(scalings_of_layers) {
    static const struct {
        const char *config, *layer_type, *rope_type;
    } rows[] = {
        {MODEL("olmo3", ",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":8,\"original_max_position_"
                        "embeddings\":8192}"),
         "full_attention", "yarn"},
        {MODEL("olmo3", ",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":8,\"original_max_position_"
                        "embeddings\":8192}"),
         "sliding_attention", NULL},
        {MODEL("exaone4", ",\"rope_scaling\":{" LLAMA3 ",\"high_freq_factor\":4}"), "sliding_attention",
         "llama3"},
        {MODEL("llama4", ",\"rope_scaling\":{" LLAMA3 ",\"high_freq_factor\":1}"), "chunked_attention",
         "llama3"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct call_try try;
        const json_t *encoding = try_encode(&try, rows[i].config, rows[i].layer_type);
        const char *type =
            json_string_value(json_object_get(json_object_get(encoding, "scaling"), "rope_type"));
        ck_assert_msg(try.status == 200, "%s", try.reply);
        ck_assert_msg(type == rows[i].rope_type ||
                          (type && rows[i].rope_type && strcmp(type, rows[i].rope_type) == 0),
                      "%s", try.reply);
        call_try_close(&try);
    }
}
END_TEST

static const struct refusal {
    const char *config, *layer_type, *slug, *field, *detail;
} refusals[] = {
    {MODEL("cohere2", ""), "full_attention", "unsupported", "encoding.layer_type",
     "is full_attention, but in this model nothing turns in such layers"},
    {NESTED("llama4", ""), "full_attention", "unsupported", "encoding.layer_type",
     "is full_attention, but in this model nothing turns in such layers"},
    {MODEL("exaone4", ",\"sliding_window\":4096"), "full_attention", "unsupported", "encoding.layer_type",
     "is full_attention, but in this model nothing turns in such layers"},
    {NESTED("llama4", ""), NULL, "missing", "encoding.layer_type",
     "is missing, the layers of this model differ: chunked_attention or full_attention"},
    {MODEL("exaone4", ""), NULL, "missing", "encoding.layer_type",
     "is missing, the layers of this model differ: full_attention or sliding_attention"},
    {MODEL("falcon", ",\"alibi\":true"), NULL, "unsupported", "encoding.hf_config.alibi",
     "is true: no query or key of this model turns"},
    {MODEL("falcon", ",\"alibi\":1"), NULL, "type", "encoding.hf_config.alibi", "must be true or false"},
    {MODEL("gpt_oss", ""), NULL, "missing", "encoding.hf_config.rope_parameters",
     "is missing, and so is rope_scaling: where none are said, the class of the model has its own"},
    {NESTED("qwen3_5", ""), NULL, "missing", "encoding.hf_config.text_config.rope_parameters",
     "is missing, and so is rope_scaling: where none are said, the class of the model has its own"},
    {NESTED("gemma4", ""), "full_attention", "missing", "encoding.hf_config.text_config.rope_parameters",
     "is missing, it tells what each type of layers does"},
    {"{\"model_type\":\"minicpm3\",\"qk_nope_head_dim\":64}", NULL, "missing",
     "encoding.hf_config.qk_rope_head_dim", "is missing, the width of a head follows from it"},
    {MODEL("llama",
           ",\"rope_parameters\":{\"full_attention\":null,\"sliding_attention\":{\"rope_theta\":5}}"),
     "full_attention", "choice", "encoding.layer_type", "must be sliding_attention, got \"full_attention\""},
};

START_TEST(what_is_not_guessed) {
    const struct refusal *row = &refusals[_i];
    struct call_try try;
    try_encode(&try, row->config, row->layer_type);
    ck_assert_msg(try.status == 400, "%s\n%s", row->config, try.reply);
    ck_assert_str_eq(call_try_text(&try, "type") + strlen("urn:posenc:error:"), row->slug);
    ck_assert_str_eq(call_try_text(&try, "field"), row->field);
    ck_assert_str_eq(call_try_text(&try, "detail"), row->detail);
    call_try_close(&try);
}
END_TEST

/* A name that is not known is answered with those that begin with its letter. */
START_TEST(unknown_families) {
    static const struct {
        const char *type, *within, *without;
    } rows[] = {{"qwen9", "or one of qwen2, ", "llama"},
                {"mistral_next", ", mistral3, ", "gemma"},
                {"xyz", "layout and scaling instead", "or one of"},
                {"", "layout and scaling instead", "or one of"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct call_try try;
        char config[80];
        snprintf(config, sizeof config, "{\"model_type\":\"%s\"}", rows[i].type);
        try_encode(&try, config, NULL);
        const char *detail = call_try_text(&try, "detail");
        ck_assert_msg(try.status == 400 && strstr(detail, rows[i].within) && !strstr(detail, rows[i].without),
                      "%s", detail);
        call_try_close(&try);
    }
}
END_TEST

Suite *rope_families_suite(void) {
    Suite *suite = suite_create("rope_families");
    TCase *tests = tcase_create("rope_families");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, report_setup, report_teardown);
    tcase_add_loop_test(tests, families_and_their_defaults, 0, sizeof family_rows / sizeof *family_rows);
    tcase_add_test(tests, scalings_of_layers);
    tcase_add_loop_test(tests, what_is_not_guessed, 0, sizeof refusals / sizeof *refusals);
    tcase_add_test(tests, unknown_families);
    return suite;
}
