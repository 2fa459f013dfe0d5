/* SPDX-License-Identifier: MIT
 *
 * hf_config: published configurations against tests/golden/rope_configs.h, which a script makes from the
 * formulas alone, and against published figures; which keys count as used; and every way to be wrong.
 */
#include "report_run.h"
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

/* The encoding's fields as text, and a configuration beside them unless it is NULL. */
static json_t *encoding_of(const char *fields, json_t *config) {
    json_t *encoding = json_loads(fields, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_msg(encoding != NULL, "%s", fields);
    json_object_set_new(encoding, "type", json_string("rope"));
    if (config) {
        json_object_set_new(encoding, "hf_config", config);
    }
    return encoding;
}

/* Takes the encoding; the caller closes the try. */
static void encode(struct call_try *try, json_t *encoding) {
    json_t *body =
        json_pack("{s:o,s:[i,f],s:s}", "encoding", encoding, "positions", 3, 1000.5, "dtype", "float64");
    char *text = json_dumps(body, JSON_REAL_PRECISION(17));
    *try = (struct call_try){.request = "POST /v1/encode", .body = text};
    call_try(&report_ground, try);
    free(text);
    json_decref(body);
}

static void encode_well(struct call_try *try, json_t *encoding) {
    encode(try, encoding);
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
    encode_well(&try, encoding_of(fields, published(row->name)));
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
    encode_well(&first, encoding_of(fields, published(row->name)));
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
    encode_well(&first, encoding_of(fields, published(row->name)));
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
    static const char *const names[] = {"llama-2-7b",  "llama-3.1-8b",   "llama-3.2-1b", "mistral-7b",
                                        "qwen2.5-7b",  "gpt-neox-20b",   "gpt-j-6b",     "gpt-oss-20b",
                                        "deepseek-v3", "phi-3-mini-128k"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bool longrope = strncmp(names[i], "phi", 3) == 0;
        char request[200];
        snprintf(request, sizeof request, "GET /v1/encode?encoding=%s&positions=3,1000.5&dtype=float64%s",
                 names[i], longrope ? "&seq_len=5000" : "");
        struct call_try preset = {.request = request}, configured;
        call_try(&report_ground, &preset);
        encode_well(&configured, encoding_of(longrope ? "{\"seq_len\":5000}" : "{}", published(names[i])));
        json_object_del(configured.json, "hf_config");
        ck_assert_msg(json_equal(preset.json, configured.json), "%s", preset.reply);
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
    encode_well(&try, encoding_of("{}", published(row->name)));
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
        encode_well(&try, encoding_of("{}", published(rows[i].name)));
        ck_assert_double_eq_tol(real_of(try.json, rows[i].fact), rows[i].value, 1e-10);
        call_try_close(&try);
    }
}
END_TEST

/* ---- Small configurations ------------------------------------------------------------------------------ */

/* A Llama of heads of 4 with more keys behind. */
#define LLAMA(...)  "{\"model_type\":\"llama\",\"head_dim\":8" __VA_ARGS__ "}"
#define SCALED(...) LLAMA(",\"rope_scaling\":{" __VA_ARGS__ "}")
#define YARN        "\"rope_type\":\"yarn\",\"factor\":4"
#define ORIGINAL    "\"original_max_position_embeddings\":512"
#define FULL_YARN   YARN "," ORIGINAL
#define DEEPSEEK    "\"model_type\":\"deepseek_v3\",\"qk_rope_head_dim\":8,\"qk_nope_head_dim\":16"
#define GEMMA3      "\"model_type\":\"gemma3_text\",\"head_dim\":8"
#define SEQ         "{\"seq_len\":4096}"
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
    {LLAMA(), "{}", LLAMA(), "{\"layer_type\":\"sliding_attention\"}"},
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
    {PHI3("longrope"), SEQ, PHI3("su"), SEQ},
    {PHI3("longrope"), SEQ, PHI3("yarn"), SEQ},
};

START_TEST(two_ways_to_say_it) {
    const struct same *row = &same_rows[_i];
    struct call_try a, b;
    encode_well(&a, encoding_of(row->a_fields, json_loads(row->a_config, 0, NULL)));
    encode_well(&b, encoding_of(row->b_fields, json_loads(row->b_config, 0, NULL)));
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
    encode_well(&try, encoding_of(uses[_i].fields, json_loads(uses[_i].config, 0, NULL)));
    check_list(&try, "used", uses[_i].used);
    check_list(&try, "ignored", uses[_i].ignored);
    call_try_close(&try);
}
END_TEST

/* ---- Errors -------------------------------------------------------------------------------------------- */

#define MISSING  "missing"
#define TYPE     "type"
#define RANGE    "range"
#define CONFLICT "conflict"
#define CHOICE   "choice"
#define AT       "encoding.hf_config."

static const struct wrong {
    const char *config, *fields, *slug, *field, *detail;
} wrongs[] = {
    {"{}", "{}", TYPE, "encoding.hf_config", "must be an object with keys, got an empty one"},
    {"[1]", "{}", TYPE, "encoding.hf_config", "must be an object with keys, got a list"},
    {"{\"a\":1}", "{}", MISSING, AT "model_type", "is missing, it tells how the rest is read"},
    {"{\"model_type\":5}", "{}", TYPE, AT "model_type", "must be a string"},
    {"{\"model_type\":\"llava\",\"text_config\":{\"model_type\":[]}}", "{}", TYPE,
     AT "text_config.model_type", "must be a string"},
    {"{\"model_type\":\"t5\"}", "{}", "unknown_name", AT "model_type",
     "\"t5\" is not known: say head_dim, base, layout and scaling instead, or one of llama, mistral, "
     "mistral3, ministral, mixtral, qwen2, qwen2_moe, "
     "qwen2_vl, qwen2_vl_text, qwen2_5_vl, "
     "qwen2_5_vl_text, qwen3, qwen3_moe, qwen3_vl, qwen3_vl_text, phi, phi3, gemma, gemma2, gemma3, "
     "gemma3_text, gemma4, gemma4_text, gpt_oss, "
     "olmo2, granite, smollm3, stablelm, cohere, glm4, modernbert, gpt_neox, gptj, deepseek_v2, deepseek_v3"},
    /* layers */
    {"{" GEMMA3 "}", "{}", MISSING, "encoding.layer_type",
     "is missing, the layers of this model differ: full_attention or sliding_attention"},
    {"{" GEMMA3 "}", "{\"layer_type\":\"local\"}", CHOICE, "encoding.layer_type",
     "must be full_attention or sliding_attention, got \"local\""},
    {LLAMA(), "{\"layer_type\":\"local\"}", CHOICE, "encoding.layer_type",
     "must be full_attention or sliding_attention, got \"local\""},
    {LLAMA(",\"rope_parameters\":{\"a\":{\"rope_theta\":1},\"b\":{\"rope_theta\":2},\"a2\":{\"rope_theta\":2}"
           "}"),
     "{}", MISSING, "encoding.layer_type", "is missing, the layers of this model differ: a or b or a2"},
    {LLAMA(",\"rope_parameters\":{\"a\":{\"rope_theta\":1},\"b\":{\"rope_theta\":2}}"),
     "{\"layer_type\":\"full_attention\"}", CHOICE, "encoding.layer_type",
     "must be a or b, got \"full_attention\""},
    {"{\"model_type\":\"gemma4_text\"}", "{\"layer_type\":\"full_attention\"}", MISSING, AT "rope_parameters",
     "is missing, it tells what each type of layers does"},
    {LLAMA(",\"rope_parameters\":{\"rope_theta\":5},\"rope_scaling\":{\"type\":\"default\"}"), "{}", CONFLICT,
     AT "rope_scaling", "rope_parameters is there, too: the same thing under two names"},
    {NULL, "{\"head_dim\":8,\"layout\":\"halves\",\"layer_type\":\"full_attention\"}", CONFLICT,
     "encoding.layer_type", "is of hf_config, which is not given"},
    /* widths */
    {"{\"model_type\":\"llama\"}", "{}", MISSING, AT "hidden_size",
     "is missing, the width of a head follows from it"},
    {"{\"model_type\":\"llama\",\"hidden_size\":64}", "{}", MISSING, AT "num_attention_heads",
     "is missing, the width of a head follows from it"},
    {"{\"model_type\":\"deepseek_v3\"}", "{}", MISSING, AT "qk_rope_head_dim",
     "is missing, the width of a head follows from it"},
    {"{\"model_type\":\"deepseek_v3\",\"qk_rope_head_dim\":8}", "{}", MISSING, AT "qk_nope_head_dim",
     "is missing, the scale of the softmax follows from it"},
    {"{\"model_type\":\"llama\",\"text_config\":{\"head_dim\":\"8\"}}", "{}", TYPE, AT "text_config.head_dim",
     "must be a number"},
    {"{\"model_type\":\"llama\",\"head_dim\":8.5}", "{}", RANGE, AT "head_dim",
     "got 8.5, allowed are whole numbers from 1 to 65536"},
    {"{\"model_type\":\"llama\",\"head_dim\":0}", "{}", RANGE, AT "head_dim",
     "got 0, allowed are whole numbers from 1 to 65536"},
    {"{\"model_type\":\"llama\",\"head_dim\":65537}", "{}", RANGE, AT "head_dim",
     "got 65537, allowed are whole numbers from 1 to 65536"},
    {"{\"model_type\":\"llama\",\"hidden_size\":4,\"num_attention_heads\":4}", "{}", RANGE, AT "hidden_size",
     "makes heads of width 1 with 4 heads, allowed is 2 and more"},
    {"{\"model_type\":\"deepseek_v3\",\"qk_rope_head_dim\":7,\"qk_nope_head_dim\":8}", "{}", RANGE,
     AT "qk_rope_head_dim",
     "lets 7 columns of a head of width 7 turn, allowed are even numbers from 2: columns turn in pairs"},
    {"{\"model_type\":\"deepseek_v3\",\"qk_rope_head_dim\":8,\"qk_nope_head_dim\":65536}", "{}", RANGE,
     AT "qk_nope_head_dim", "makes queries of width 65544, allowed is at most 65536"},
    {LLAMA(",\"partial_rotary_factor\":0.4"), "{}", RANGE, AT "partial_rotary_factor",
     "lets 3 columns of a head of width 8 turn, allowed are even numbers from 2: columns turn in pairs"},
    {LLAMA(",\"partial_rotary_factor\":0"), "{}", RANGE, AT "partial_rotary_factor",
     "got 0, allowed is above 0 up to 1"},
    {LLAMA(",\"rope_parameters\":{\"partial_rotary_factor\":1.5}"), "{}", RANGE,
     AT "rope_parameters.partial_rotary_factor", "got 1.5, allowed is above 0 up to 1"},
    {"{\"model_type\":\"gptj\",\"n_embd\":16,\"n_head\":4,\"rotary_dim\":8}", "{}", RANGE, AT "rotary_dim",
     "lets 8 columns of a head of width 4 turn, allowed are even numbers from 2: columns turn in pairs"},
    {"{\"model_type\":\"granite\",\"head_dim\":8,\"attention_multiplier\":0.3}", "{}", RANGE,
     AT "attention_multiplier",
     "got 0.29999999999999999, allowed is 1/sqrt(n) of a whole number n from 1 to 65536"},
    {"{\"model_type\":\"granite\",\"head_dim\":8,\"attention_multiplier\":0}", "{}", RANGE,
     AT "attention_multiplier", "got 0, allowed is 1/sqrt(n) of a whole number n from 1 to 65536"},
    {"{\"model_type\":\"granite\",\"head_dim\":8,\"attention_multiplier\":1e-200}", "{}", RANGE,
     AT "attention_multiplier",
     "got 9.9999999999999998e-201, allowed is 1/sqrt(n) of a whole number n from 1 to 65536"},
    {LLAMA(",\"rope_theta\":0"), "{}", RANGE, AT "rope_theta", "got 0, allowed is 1 to 1e+300"},
    {LLAMA(",\"rope_parameters\":{\"rope_theta\":0.5}"), "{}", RANGE, AT "rope_parameters.rope_theta",
     "got 0.5, allowed is 1 to 1e+300"},
    {"{" DEEPSEEK ",\"rope_interleave\":1}", "{}", TYPE, AT "rope_interleave", "must be true or false"},
    /* the type */
    {SCALED("\"factor\":2"), "{}", MISSING, AT "rope_scaling.rope_type",
     "is missing, it tells how the rest is read"},
    {SCALED("\"type\":2"), "{}", TYPE, AT "rope_scaling.type", "must be a string"},
    {SCALED("\"rope_type\":\"lamma3\""), "{}", CHOICE, AT "rope_scaling.rope_type",
     "must be default, linear, dynamic, proportional, yarn, longrope (su), llama3, mrope or ntk, got "
     "\"lamma3\""},
    {"{" GEMMA3 ",\"rope_parameters\":{\"full_attention\":{\"type\":\"x\"}}}",
     "{\"layer_type\":\"full_attention\"}", CHOICE, AT "rope_parameters.full_attention.type",
     "must be default, linear, dynamic, proportional, yarn, longrope (su), llama3, mrope or ntk, got \"x\""},
    /* members */
    {SCALED("\"type\":\"linear\""), "{}", MISSING, AT "rope_scaling.factor",
     "is missing, its rope_type needs it"},
    {SCALED("\"type\":\"linear\",\"factor\":\"2\""), "{}", TYPE, AT "rope_scaling.factor",
     "must be a number"},
    {SCALED("\"type\":\"linear\",\"factor\":0"), "{}", RANGE, AT "rope_scaling.factor",
     "must be at least 1e-06 and at most 1000000, got 0"},
    {"{\"model_type\":\"a\",\"text_config\":" SCALED("\"type\":\"linear\",\"factor\":0") "}", "{}", RANGE,
     AT "text_config.rope_scaling.factor", "must be at least 1e-06 and at most 1000000, got 0"},
    {SCALED(YARN), "{}", MISSING, AT "rope_scaling.original_max_position_embeddings",
     "is missing, it is the context of the training, which is not guessed"},
    {LLAMA(",\"max_position_embeddings\":4096,\"rope_scaling\":{" YARN "}"), "{}", MISSING,
     AT "rope_scaling.original_max_position_embeddings",
     "is missing, it is the context of the training, which is not guessed"},
    {LLAMA(",\"original_max_position_embeddings\":1,\"rope_scaling\":{" YARN "}"), "{}", RANGE,
     AT "original_max_position_embeddings", "got 1, allowed are whole numbers from 2 to 2^53"},
    {SCALED("\"type\":\"yarn\"," ORIGINAL), "{}", MISSING, AT "rope_scaling.factor",
     "is missing, and so is max_position_embeddings, which it would follow from"},
    {LLAMA(",\"max_position_embeddings\":-1,\"rope_scaling\":{\"type\":\"yarn\"," ORIGINAL "}"), "{}", RANGE,
     AT "rope_scaling.factor", "must be at least 1e-06 and at most 1000000, got -0.001953125"},
    {SCALED(FULL_YARN ",\"truncate\":0"), "{}", TYPE, AT "rope_scaling.truncate", "must be true or false"},
    {SCALED("\"type\":\"dynamic\",\"factor\":2"), SEQ, MISSING, AT "max_position_embeddings",
     "is missing, it is the context of the training, which is not guessed"},
    {LLAMA(",\"max_position_embeddings\":512,\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2}"), "{}",
     MISSING, "encoding.seq_len",
     "is missing, rope_type dynamic needs the length of the sequence, as frequencies depend on it"},
    {SCALED("\"type\":\"su\"," ORIGINAL ",\"short_factor\":[1,1,1,1]"), SEQ, MISSING,
     AT "rope_scaling.factor", "is missing, and so is max_position_embeddings, which it would follow from"},
    {SCALED("\"type\":\"su\",\"factor\":2," ORIGINAL ",\"short_factor\":[1,1,1,1]"), SEQ, MISSING,
     AT "rope_scaling.long_factor", "is missing, its rope_type needs it"},
    {SCALED("\"type\":\"su\",\"factor\":2," ORIGINAL ",\"short_factor\":[1,1,1,\"a\"]"), SEQ, TYPE,
     AT "rope_scaling.short_factor", "must be a list of numbers"},
    {SCALED("\"type\":\"su\",\"factor\":2," ORIGINAL ",\"short_factor\":[1,1,1,1],\"long_factor\":[1]"), SEQ,
     "shape", "encoding.scaling.long_factor", "has shape [1], allowed is [4], one number for each pair"},
    {SCALED("\"type\":\"llama3\",\"factor\":2,\"low_freq_factor\":1," ORIGINAL), "{}", MISSING,
     AT "rope_scaling.high_freq_factor", "is missing, its rope_type needs it"},
    /* sections */
    {SCALED("\"type\":\"mrope\""), "{}", MISSING, AT "rope_scaling.mrope_section",
     "is missing, type mrope needs it"},
    {SCALED("\"type\":\"mrope\",\"mrope_section\":4"), "{}", TYPE, AT "rope_scaling.mrope_section",
     "must be a short list of whole numbers"},
    {SCALED("\"type\":\"mrope\",\"mrope_section\":[2,1.5,0.5]"), "{}", TYPE, AT "rope_scaling.mrope_section",
     "must be a short list of whole numbers"},
    {SCALED("\"type\":\"mrope\",\"mrope_section\":[2,1,1],\"mrope_interleaved\":1"), "{}", TYPE,
     AT "rope_scaling.mrope_interleaved", "must be true or false"},
    {SCALED("\"type\":\"mrope\",\"mrope_section\":[2,1,2]"), "{}", RANGE, "encoding.sections",
     "has the length 3 and the sum 5, allowed are 2 to 4 numbers with the sum 4, the number of pairs"},
    /* fields that contradict */
    {LLAMA(), "{\"head_dim\":16}", CONFLICT, "encoding.head_dim", "is 16, but hf_config gives 8"},
    {LLAMA(), "{\"rotary_dim\":4}", CONFLICT, "encoding.rotary_dim", "is 4, but hf_config gives 8"},
    {LLAMA(), "{\"partial_rotary_factor\":0.5}", CONFLICT, "encoding.partial_rotary_factor",
     "is 0.5, but of hf_config 8 columns of 8 turn"},
    {LLAMA(), "{\"base\":500}", CONFLICT, "encoding.base", "is 500, but hf_config gives 10000"},
    {LLAMA(), "{\"layout\":\"interleaved\"}", CONFLICT, "encoding.layout",
     "is interleaved, but that of model_type llama is halves"},
    {"{" DEEPSEEK "}", "{\"qk_head_dim\":8}", CONFLICT, "encoding.qk_head_dim",
     "is 8, but hf_config gives 24"},
    {LLAMA(), "{\"scaling\":{\"rope_type\":\"linear\",\"factor\":2}}", CONFLICT, "encoding.scaling.rope_type",
     "differs from what hf_config gives: change it there or leave it out here"},
    {SCALED(FULL_YARN), "{\"scaling\":{\"rope_type\":\"yarn\",\"factor\":8," ORIGINAL "}}", CONFLICT,
     "encoding.scaling.factor", "differs from what hf_config gives: change it there or leave it out here"},
    {SCALED(FULL_YARN), "{\"scaling\":{" FULL_YARN ",\"attention_factor\":1}}", CONFLICT,
     "encoding.scaling.attention_factor", "is there, but hf_config does not give it"},
    {SCALED(FULL_YARN ",\"attention_factor\":2"), "{\"scaling\":{" FULL_YARN "}}", CONFLICT,
     "encoding.scaling.attention_factor", "is missing, but hf_config gives it"},
    {SCALED(FULL_YARN), "{\"scaling\":{" FULL_YARN ",\"rope_theta\":5}}", CONFLICT,
     "encoding.scaling.rope_theta",
     "differs from what hf_config gives: change it there or leave it out here"},
    {SCALED("\"type\":\"mrope\",\"mrope_section\":[2,1,1]"), "{\"sections\":[1,2,1]}", CONFLICT,
     "encoding.sections", "differ from those of hf_config"},
    {SCALED("\"type\":\"mrope\",\"mrope_section\":[2,1,1]"),
     "{\"sections\":[2,1,1],\"section_layout\":\"interleaved\"}", CONFLICT, "encoding.section_layout",
     "differs from that of hf_config"},
};

START_TEST(configurations_that_are_wrong) {
    const struct wrong *row = &wrongs[_i];
    struct call_try try;
    encode(&try, encoding_of(row->fields, row->config ? json_loads(row->config, 0, NULL) : NULL));
    ck_assert_msg(try.status == 400, "%s: %s", row->config, try.reply);
    ck_assert_str_eq(call_try_text(&try, "field"), row->field);
    ck_assert_str_eq(call_try_text(&try, "detail"), row->detail);
    ck_assert_str_eq(call_try_slug(&try), row->slug);
    call_try_close(&try);
}
END_TEST

/* Keys are told as long as they are. */
START_TEST(long_keys_are_whole) {
    char key[400], config[600];
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    snprintf(config, sizeof config, LLAMA(",\"quantization_config\":{\"%s\":1}"), key);
    struct call_try try;
    encode_well(&try, encoding_of("{}", json_loads(config, 0, NULL)));
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
    tcase_add_loop_test(all, configurations_that_are_wrong, 0, N_OF(wrongs));
    tcase_add_test(all, long_keys_are_whole);
    suite_add_tcase(suite, all);
    return suite;
}
