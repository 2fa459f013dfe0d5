/* SPDX-License-Identifier: MIT
 *
 * hf_config: published configurations against tests/golden/rope_configs.h, which a script makes from the
 * formulas alone, and against published figures; which keys count as used. The ways to be wrong are in
 * check_rope_config_errors.c.
 */
#include "config_run.h"
#include "suites.h"

#include "golden/rope_configs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *published(const char *name) {
    char path[300];
    snprintf(path, sizeof path, "%.*s../golden/configs/%s.json", (int)(strrchr(__FILE__, '/') + 1 - __FILE__),
             __FILE__, name);
    json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_msg(json_is_object(json), "%s: run the tests at the root of the project", path);
    return json;
}

static void encode_well(struct call_try *try, json_t *encoding) {
    config_encode(try, encoding);
    ck_assert_msg(try->status == 200, "%s", try->reply);
}

static double real_of(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    ck_assert_msg(json_is_number(value), "%s", name);
    return json_number_value(value);
}

static double frequency(const struct call_try *try, size_t i) {
    const json_t *data = json_object_get(json_object_get(try->json, "inv_freq"), "data");
    ck_assert_msg(i < json_array_size(data), "%zu", i);
    return json_number_value(json_array_get(data, i));
}

/* ---- The script's values ------------------------------------------------------------------------------- */

static void case_fields(const struct rope_config_case *row, char *out, size_t size) {
    int n = snprintf(out, size, "{");
    if (row->layer_type) {
        n += snprintf(out + n, size - (size_t)n, "\"layer_type\":\"%s\"", row->layer_type);
    }
    if (row->seq_len) {
        n += snprintf(out + n, size - (size_t)n, "\"seq_len\":%d", row->seq_len);
    }
    snprintf(out + n, size - (size_t)n, "}");
}

static void case_range(const struct rope_config_case *row, const struct call_try *try) {
    const json_t *range = json_object_get(try->json, "correction_range");
    ck_assert_int_eq(row->low >= 0, json_is_array(range));
    if (row->low >= 0) {
        ck_assert_double_eq(json_number_value(json_array_get(range, 0)), row->low);
        ck_assert_double_eq(json_number_value(json_array_get(range, 1)), row->high);
    }
}

START_TEST(published_configurations) {
    const struct rope_config_case *row = &rope_config_cases[_i];
    char fields[120];
    struct call_try try;
    case_fields(row, fields, sizeof fields);
    encode_well(&try, config_encoding(fields, published(row->name)));
    const json_t *encoding = json_object_get(try.json, "encoding");
    ck_assert_double_eq(real_of(encoding, "head_dim"), row->head_dim);
    ck_assert_double_eq(real_of(encoding, "rotary_dim"), row->rotary_dim);
    ck_assert_str_eq(json_string_value(json_object_get(encoding, "layout")), row->layout);
    ck_assert_double_eq(real_of(try.json, "attention_factor"), row->attention_factor);
    ck_assert_double_eq_tol(real_of(try.json, "softmax_scale"), row->softmax_scale,
                            4e-16 * row->softmax_scale);
    case_range(row, &try);
    for (int i = 0; i < row->rotary_dim / 2; i++) {
        double wanted = rope_config_values[row->first + i], got = frequency(&try, (size_t)i);
        ck_assert_msg(got == wanted, "%s pair %d: %a, not %a", row->name, i, got, wanted);
    }
    call_try_close(&try);
}
END_TEST

/* What is echoed is all that was computed from. */
START_TEST(the_echo_gives_the_same_bits) {
    const struct rope_config_case *row = &rope_config_cases[_i];
    static const char *const tensors[] = {"cos",          "sin", "inv_freq", "encoding", "attention_factor",
                                          "softmax_scale"};
    char fields[120];
    struct call_try first, second;
    case_fields(row, fields, sizeof fields);
    encode_well(&first, config_encoding(fields, published(row->name)));
    encode_well(&second, json_deep_copy(json_object_get(first.json, "encoding")));
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        ck_assert_msg(
            json_equal(json_object_get(first.json, tensors[i]), json_object_get(second.json, tensors[i])),
            "%s: %s", row->name, tensors[i]);
    }
    ck_assert(json_object_get(second.json, "hf_config") == NULL);
    call_try_close(&first);
    call_try_close(&second);
}
END_TEST

/* And it agrees with the configuration that it comes from. */
START_TEST(the_echo_beside_the_configuration) {
    const struct rope_config_case *row = &rope_config_cases[_i];
    char fields[120];
    struct call_try first, second;
    case_fields(row, fields, sizeof fields);
    encode_well(&first, config_encoding(fields, published(row->name)));
    json_t *encoding = json_deep_copy(json_object_get(first.json, "encoding"));
    json_object_set_new(encoding, "hf_config", published(row->name));
    if (row->layer_type) {
        json_object_set_new(encoding, "layer_type", json_string(row->layer_type));
    }
    encode_well(&second, encoding);
    ck_assert_msg(json_equal(first.json, second.json), "%s", second.reply);
    call_try_close(&first);
    call_try_close(&second);
}
END_TEST

/* Presets of models are what their configurations say. */
START_TEST(presets_are_the_configurations) {
    static const struct {
        const char *preset, *config, *fields;
    } rows[] = {
        {"llama-2-7b", NULL, "{}"},
        {"llama-3.1-8b", NULL, "{}"},
        {"llama-3.2-1b", NULL, "{}"},
        {"mistral-7b", NULL, "{}"},
        {"qwen2.5-7b", NULL, "{}"},
        {"qwen2.5-7b-yarn", NULL, "{}"},
        {"qwen3-8b-yarn", NULL, "{}"},
        {"gpt-neox-20b", NULL, "{}"},
        {"gpt-j-6b", NULL, "{}"},
        {"gpt-oss-20b", NULL, "{}"},
        {"deepseek-v3", NULL, "{}"},
        {"gemma-2-27b", NULL, "{}"},
        {"gemma-3-4b-global", "gemma-3-4b", "{\"layer_type\":\"full_attention\"}"},
        {"gemma-3-4b-local", "gemma-3-4b", "{\"layer_type\":\"sliding_attention\"}"},
        {"modernbert-base-global", "modernbert-base", "{\"layer_type\":\"full_attention\"}"},
        {"modernbert-base-local", "modernbert-base", "{\"layer_type\":\"sliding_attention\"}"},
        {"phi-3-mini-128k", NULL, "{\"seq_len\":5000}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char request[200];
        snprintf(request, sizeof request, "GET /v1/encode?encoding=%s&positions=3,1000.5&dtype=float64%s",
                 rows[i].preset, strstr(rows[i].fields, "seq_len") ? "&seq_len=5000" : "");
        struct call_try preset = {.request = request}, configured;
        call_try(&report_ground, &preset);
        encode_well(&configured, config_encoding(rows[i].fields, published(rows[i].config ? rows[i].config
                                                                                          : rows[i].preset)));
        json_object_del(configured.json, "hf_config");
        ck_assert_msg(json_equal(preset.json, configured.json), "%s, not %s", preset.reply, configured.reply);
        call_try_close(&preset);
        call_try_close(&configured);
    }
}
END_TEST

/* ---- Published figures --------------------------------------------------------------------------------- */

/* Of the test suites of transformers and vLLM, and of the papers; to as many digits as they are printed with.
 */
static const struct figure {
    const char *name;
    int pair;
    double value;
} figures[] = {
    {"llama-2-7b", 1, .865964},           {"llama-2-7b", 63, 1.15478e-4},
    {"llama-3.1-8b", 28, 3.211445995e-3}, {"llama-3.1-8b", 29, 2.166570764e-3},
    {"llama-3.1-8b", 34, 1.785078128e-4}, {"llama-3.1-8b", 35, 9.556212354e-5},
    {"llama-3.1-8b", 63, 3.068925989e-7}, {"llama-3.2-1b", 14, 3.211445995e-3},
    {"llama-3.2-1b", 15, 1.290547928e-3}, {"llama-3.2-1b", 16, 4.295567966e-4},
    {"llama-3.2-1b", 17, 9.708287803e-5}, {"llama-3.2-1b", 31, 9.418306725e-8},
    {"gpt-oss-20b", 8, 5.081327e-2},      {"gpt-oss-20b", 12, 6.794959e-3},
    {"gpt-oss-20b", 17, 1.293187e-4},     {"gpt-oss-20b", 31, 3.023511e-7},
};

START_TEST(published_frequencies) {
    const struct figure *row = &figures[_i];
    struct call_try try;
    encode_well(&try, config_encoding("{}", published(row->name)));
    ck_assert_double_eq_tol(frequency(&try, (size_t)row->pair), row->value, 2e-6 * row->value);
    call_try_close(&try);
}
END_TEST

START_TEST(published_facts) {
    static const struct {
        const char *name, *fact;
        double value;
    } rows[] = {{"gpt-oss-20b", "attention_factor", 1.3465735902799727},
                {"qwen2.5-7b-yarn", "attention_factor", 1.138629436111989},
                {"deepseek-v3", "attention_factor", 1},
                {"deepseek-v3", "softmax_scale", .1352337789},
                {"deepseek-v2-lite", "softmax_scale", .1147213868}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct call_try try;
        encode_well(&try, config_encoding("{}", published(rows[i].name)));
        ck_assert_double_eq_tol(real_of(try.json, rows[i].fact), rows[i].value, 1e-10);
        call_try_close(&try);
    }
}
END_TEST

/* ---- Small configurations ------------------------------------------------------------------------------ */

#define MODERNBERT(local)                                                                                    \
    "{\"model_type\":\"modernbert\",\"hidden_size\":8,\"num_attention_heads\":1,\"global_rope_theta\":500,"  \
    "\"local_rope_theta\":" local "}"
#define PHI3(type)                                                                                           \
    "{\"model_type\":\"phi3\",\"head_dim\":8,\"rope_scaling\":{\"type\":\"" type "\",\"factor\":2," ORIGINAL \
    ",\"short_factor\":[1,1,1,1],\"long_factor\":[1,2,3,4]}}"

/* What two spellings of one thing must both give: the echo as the first has it. */
static const struct same {
    const char *a_config, *a_fields, *b_config, *b_fields;
} same_rows[] = {
    {LLAMA(",\"rope_theta\":500"), "{}",
     LLAMA(",\"rope_parameters\":{\"rope_theta\":500,\"rope_type\":\"default\"}"), "{}"},
    {LLAMA(",\"rope_theta\":500"), "{}", LLAMA(",\"rope_theta\":9,\"rope_parameters\":{\"rope_theta\":500}"),
     "{}"},
    {LLAMA(), "{}", LLAMA(",\"rope_scaling\":null,\"partial_rotary_factor\":null"), "{}"},
    {LLAMA(), "{}", SCALED("\"rope_type\":\"default\",\"factor\":3"), "{}"},
    {SCALED(FULL_YARN), "{}", SCALED("\"type\":\"yarn\",\"factor\":4,\"finetuned\":true," ORIGINAL), "{}"},
    {SCALED(FULL_YARN), "{}",
     LLAMA(",\"max_position_embeddings\":2048,\"rope_scaling\":{\"rope_type\":\"yarn\"," ORIGINAL "}"), "{}"},
    {SCALED(FULL_YARN), "{}", LLAMA(",\"max_position_embeddings\":4096,\"rope_scaling\":{" FULL_YARN "}"),
     "{}"},
    {SCALED(FULL_YARN), "{}", LLAMA("," ORIGINAL ",\"rope_scaling\":{" YARN "}"), "{}"},
    {SCALED(FULL_YARN), "{}",
     SCALED(FULL_YARN ",\"beta_fast\":32,\"beta_slow\":null,\"mscale\":2,\"low_freq_factor\":1"), "{}"},
    {SCALED(FULL_YARN ",\"attention_factor\":1"), "{}",
     SCALED(FULL_YARN ",\"mscale\":0.7,\"mscale_all_dim\":0.7"), "{}"},
    {SCALED(FULL_YARN ",\"attention_factor\":2"), "{}",
     SCALED(FULL_YARN ",\"attention_factor\":2,\"mscale\":1,\"mscale_all_dim\":1"), "{}"},
    {SCALED("\"rope_type\":\"linear\",\"factor\":2"), "{}",
     SCALED("\"type\":\"mrope\",\"rope_type\":\"linear\",\"factor\":2"), "{}"},
    {LLAMA(",\"max_position_embeddings\":512,\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2}"), SEQ,
     LLAMA(",\"max_position_embeddings\":512,\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2,\"original_"
           "max_position_embeddings\":64}"),
     SEQ},
    {LLAMA(), "{}",
     "{\"model_type\":\"llava\",\"text_config\":" LLAMA() ",\"vision_config\":{\"head_dim\":2}}", "{}"},
    {LLAMA(), "{}", "{\"model_type\":\"llama\",\"text_config\":{\"head_dim\":8}}", "{}"},
    {LLAMA(), "{}", LLAMA(),
     "{\"head_dim\":8,\"rotary_dim\":8,\"base\":10000,\"layout\":\"halves\",\"scaling\":{\"rope_type\":"
     "\"default\"}}"},
    {SCALED(FULL_YARN), "{}", SCALED(FULL_YARN),
     "{\"scaling\":{" FULL_YARN ",\"rope_theta\":10000,\"truncate\":true}}"},
    {LLAMA(",\"partial_rotary_factor\":0.5"), "{\"partial_rotary_factor\":0.5}",
     LLAMA(",\"rope_parameters\":{\"rope_type\":\"default\",\"partial_rotary_factor\":0.5}"),
     "{\"partial_rotary_factor\":0.5}"},
    {"{" GEMMA3 ",\"rope_theta\":100,\"rope_local_base_freq\":50,\"rope_scaling\":{\"rope_type\":\"linear\","
     "\"factor\":8}}",
     "{\"layer_type\":\"full_attention\"}",
     "{" GEMMA3 ",\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"linear\",\"factor\":8,\"rope_"
     "theta\":100},\"sliding_attention\":{\"rope_type\":\"default\",\"rope_theta\":50}}}",
     "{\"layer_type\":\"full_attention\"}"},
    {"{" GEMMA3 ",\"rope_theta\":100,\"rope_local_base_freq\":50,\"rope_scaling\":{\"rope_type\":\"linear\","
     "\"factor\":8}}",
     "{\"layer_type\":\"sliding_attention\"}",
     "{" GEMMA3
     ",\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"linear\",\"factor\":8,\"rope_theta\":100},"
     "\"sliding_attention\":{\"rope_type\":\"default\",\"rope_theta\":50},\"rope_theta\":null}}",
     "{\"layer_type\":\"sliding_attention\"}"},
    {"{\"model_type\":\"deepseek_v3\",\"qk_rope_head_dim\":8,\"qk_nope_head_dim\":16}",
     "{\"layout\":\"interleaved\"}", "{" DEEPSEEK ",\"rope_interleave\":true}", "{\"qk_head_dim\":24}"},
    {"{" DEEPSEEK ",\"rope_interleave\":false}", "{}", "{" DEEPSEEK ",\"rope_interleave\":false}",
     "{\"layout\":\"halves\"}"},
    {"{\"model_type\":\"granite\",\"head_dim\":8,\"attention_multiplier\":0.0078125}", "{}",
     "{\"model_type\":\"granite\",\"head_dim\":8,\"attention_multiplier\":0.0078125}",
     "{\"qk_head_dim\":16384}"},
    /* 128^-0.5 as Python's 128**-0.5 has it, the nearest, and 1/math.sqrt(128), which is its neighbour */
    {"{\"model_type\":\"granite\",\"head_dim\":8,\"attention_multiplier\":0.08838834764831845}",
     "{\"qk_head_dim\":128}",
     "{\"model_type\":\"granite\",\"head_dim\":8,\"attention_multiplier\":0.08838834764831843}", "{}"},
    {MODERNBERT("null"), "{\"layer_type\":\"sliding_attention\"}", MODERNBERT("7"),
     "{\"layer_type\":\"full_attention\"}"},
    {PHI3("longrope"), SEQ, PHI3("su"), SEQ},
    {PHI3("longrope"), SEQ, PHI3("yarn"), SEQ},
};

START_TEST(two_ways_to_say_it) {
    const struct same *row = &same_rows[_i];
    struct call_try a, b;
    encode_well(&a, config_encoding(row->a_fields, json_loads(row->a_config, 0, NULL)));
    encode_well(&b, config_encoding(row->b_fields, json_loads(row->b_config, 0, NULL)));
    json_object_del(a.json, "hf_config");
    json_object_del(b.json, "hf_config");
    ck_assert_msg(json_equal(a.json, b.json), "%s\n%s\n%s\n%s", row->a_config, row->b_config, a.reply,
                  b.reply);
    call_try_close(&a);
    call_try_close(&b);
}
END_TEST

/* Keys that took part; all others are ignored, and none is both. */
static const struct use {
    const char *config, *fields, *used, *ignored;
} uses[] = {
    {LLAMA(",\"hidden_size\":64,\"num_attention_heads\":4,\"vocab_size\":7"), "{}", "model_type head_dim",
     "hidden_size num_attention_heads vocab_size"},
    {"{\"model_type\":\"llama\",\"hidden_size\":64,\"num_attention_heads\":4,\"head_dim\":null,\"rope_"
     "scaling\":null}",
     "{}", "model_type hidden_size num_attention_heads rope_scaling", "head_dim"},
    {LLAMA(",\"rope_theta\":9,\"rope_parameters\":{\"rope_theta\":500,\"rope_type\":\"default\",\"type\":"
           "\"default\"}"),
     "{}", "model_type head_dim rope_parameters.rope_theta rope_parameters.rope_type",
     "rope_theta rope_parameters.type"},
    {LLAMA(",\"max_position_embeddings\":4096,\"rope_scaling\":{" FULL_YARN
           ",\"mscale\":1,\"finetuned\":true,\"long_factor\":[1]}"),
     "{}",
     "model_type head_dim rope_scaling.rope_type rope_scaling.factor "
     "rope_scaling.original_max_position_embeddings",
     "max_position_embeddings rope_scaling.mscale rope_scaling.finetuned rope_scaling.long_factor"},
    {LLAMA(",\"max_position_embeddings\":4096,\"rope_scaling\":{\"type\":\"yarn\"," ORIGINAL
           ",\"mscale\":1,\"mscale_all_dim\":0.5}"),
     "{}",
     "model_type head_dim max_position_embeddings rope_scaling.type "
     "rope_scaling.original_max_position_embeddings rope_scaling.mscale rope_scaling.mscale_all_dim",
     ""},
    {SCALED(FULL_YARN ",\"mscale_all_dim\":0.5"), "{}",
     "model_type head_dim rope_scaling.rope_type rope_scaling.factor "
     "rope_scaling.original_max_position_embeddings",
     "rope_scaling.mscale_all_dim"},
    {SCALED(FULL_YARN ",\"attention_factor\":2,\"mscale\":1,\"mscale_all_dim\":1"), "{}",
     "model_type head_dim rope_scaling.rope_type rope_scaling.factor "
     "rope_scaling.original_max_position_embeddings rope_scaling.attention_factor",
     "rope_scaling.mscale rope_scaling.mscale_all_dim"},
    {"{" DEEPSEEK ",\"rope_scaling\":{" FULL_YARN ",\"mscale_all_dim\":0.5}}", "{}",
     "model_type qk_rope_head_dim qk_nope_head_dim rope_scaling.rope_type rope_scaling.factor "
     "rope_scaling.original_max_position_embeddings rope_scaling.mscale_all_dim",
     ""},
    {SCALED("\"rope_type\":\"longrope\",\"factor\":4,\"attention_factor\":1.5,\"short_factor\":[1,1,1,1],"
            "\"long_factor\":[2,2,2,2]," ORIGINAL),
     SEQ,
     "model_type head_dim rope_scaling.rope_type rope_scaling.attention_factor rope_scaling.short_factor "
     "rope_scaling.long_factor rope_scaling.original_max_position_embeddings",
     "rope_scaling.factor"},
    {LLAMA(",\"max_position_embeddings\":512,\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2,\"original_"
           "max_position_embeddings\":64}"),
     SEQ, "model_type head_dim max_position_embeddings rope_scaling.type rope_scaling.factor",
     "rope_scaling.original_max_position_embeddings"},
    {"{\"model_type\":\"gptj\",\"n_embd\":64,\"n_head\":4,\"rotary_dim\":8,\"rope_theta\":5}", "{}",
     "model_type n_embd n_head rotary_dim", "rope_theta"},
    {"{\"model_type\":\"qwen2_vl\",\"text_config\":{\"head_dim\":8,\"rope_scaling\":{\"type\":\"mrope\","
     "\"mrope_section\":[2,1,1]}},\"vision_config\":{}}",
     "{}",
     "model_type text_config.head_dim text_config.rope_scaling.type text_config.rope_scaling.mrope_section",
     "vision_config"},
};

static void check_list(const struct call_try *try, const char *name, const char *words) {
    const json_t *list = json_object_get(json_object_get(try->json, "hf_config"), name);
    char text[1000] = "";
    for (size_t i = 0, n = 0; i < json_array_size(list); i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? " " : "",
                              json_string_value(json_array_get(list, i)));
    }
    ck_assert_str_eq(text, words);
}

START_TEST(keys_that_took_part) {
    struct call_try try;
    encode_well(&try, config_encoding(uses[_i].fields, json_loads(uses[_i].config, 0, NULL)));
    check_list(&try, "used", uses[_i].used);
    check_list(&try, "ignored", uses[_i].ignored);
    call_try_close(&try);
}
END_TEST

/* ---- Keys -----------------------------------------------------------------------------------------------
 */

/* Keys are told as long as they are. */
START_TEST(long_keys_are_whole) {
    char key[400], config[600];
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    snprintf(config, sizeof config, LLAMA(",\"quantization_config\":{\"%s\":1}"), key);
    struct call_try try;
    encode_well(&try, config_encoding("{}", json_loads(config, 0, NULL)));
    const json_t *ignored = json_object_get(json_object_get(try.json, "hf_config"), "ignored");
    ck_assert_str_eq(json_string_value(json_array_get(ignored, 0)) + strlen("quantization_config."), key);
    call_try_close(&try);
}
END_TEST

#define N_CASES    (int)(sizeof rope_config_cases / sizeof *rope_config_cases)
#define N_OF(rows) (int)(sizeof rows / sizeof *rows)

Suite *rope_config_suite(void) {
    Suite *suite = suite_create("rope_config");
    TCase *all = tcase_create("rope_config");
    tcase_add_checked_fixture(all, report_setup, report_teardown);
    tcase_add_loop_test(all, published_configurations, 0, N_CASES);
    tcase_add_loop_test(all, the_echo_gives_the_same_bits, 0, N_CASES);
    tcase_add_loop_test(all, the_echo_beside_the_configuration, 0, N_CASES);
    tcase_add_test(all, presets_are_the_configurations);
    tcase_add_loop_test(all, published_frequencies, 0, N_OF(figures));
    tcase_add_test(all, published_facts);
    tcase_add_loop_test(all, two_ways_to_say_it, 0, N_OF(same_rows));
    tcase_add_loop_test(all, keys_that_took_part, 0, N_OF(uses));
    tcase_add_test(all, long_keys_are_whole);
    suite_add_tcase(suite, all);
    return suite;
}
