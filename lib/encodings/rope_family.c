/* SPDX-License-Identifier: MIT
 *
 * The families of models whose config.json is read, one row a model_type: which keys say the width of a head,
 * the base and the part that turns, with the defaults of transformers' own classes; and what a configuration
 * does not say, the layout of the pairs and the scale of the softmax.
 */
#include "encodings/rope_config.h"

#include <stdio.h>
#include <string.h>

#define BASE(theta) .base = "rope_theta", .default_base = (theta)
#define PART(part)  .partial = "partial_rotary_factor", .default_partial = (part)
#define HEADS       .head_dim = "head_dim", .hidden = "hidden_size", .heads = "num_attention_heads"
#define HALVES      .layout = ROPE_LAYOUT_HALVES, HEADS
#define INTERLEAVED .layout = ROPE_LAYOUT_INTERLEAVED, HEADS
#define LLAMA       HALVES, PART(1), BASE(10000)
#define GEMMA       HALVES, PART(1), BASE(10000), .default_head = 256
#define DEEPSEEK                                                                                             \
    .layout = ROPE_LAYOUT_INTERLEAVED, .interleave = "rope_interleave", .head_dim = "qk_rope_head_dim",      \
    .nope = "qk_nope_head_dim", BASE(10000), .default_partial = 1, .scales_softmax = true
#define FULL(...)                                                                                            \
    { .type = "full_attention", __VA_ARGS__ }
#define SLIDING(...)                                                                                         \
    { .type = "sliding_attention", __VA_ARGS__ }
#define SCALED(theta) .base = "rope_theta", .default_base = (theta), .scaled = true
#define GEMMA3                                                                                               \
    GEMMA, .root = "query_pre_attn_scalar", .default_root = 256,                                             \
           .layers = {FULL(SCALED(1e6)), SLIDING(.base = "rope_local_base_freq", .default_base = 10000)}
#define GEMMA3N                                                                                              \
    GEMMA, .default_root = 1,                                                                                \
           .layers = {FULL(SCALED(1e6)), SLIDING(.base = "rope_local_base_freq", .default_base = 10000)}
#define GEMMA4                                                                                               \
    GEMMA, .default_root = 1, .needs_parameters = true,                                                      \
           .layers = {FULL(SCALED(1e6), .head_dim = "global_head_dim", .default_head = 512),                 \
                      SLIDING(SCALED(10000))}
#define LLAMA4                                                                                               \
    INTERLEAVED, PART(1), BASE(5e5),                                                                         \
        .default_head = 128, .layers = {{.type = "chunked_attention", SCALED(5e5)}, FULL(.still = true)}
#define MODERNBERT                                                                                           \
    HALVES, .default_partial = 1,                                                                            \
            .layers = {FULL(.base = "global_rope_theta", .default_base = 160000, .scaled = true),            \
                       SLIDING(.base = "local_rope_theta", .default_base = 10000, .scaled = true,            \
                               .null_is_first = true)}
#define GPTJ                                                                                                 \
    .layout = ROPE_LAYOUT_INTERLEAVED, .hidden = "n_embd", .heads = "n_head", .rotary_dim = "rotary_dim",    \
    .default_base = 10000, .default_partial = 1
#define QWEN2_VL HALVES, PART(1), BASE(1e6)
#define QWEN3_VL HALVES, PART(1), BASE(5e6), .default_head = 128
#define QWEN3_5  HALVES, PART(0.25), BASE(10000), .default_head = 256, .needs_parameters = true
#define GRANITE  LLAMA, .multiplier = "attention_multiplier"

/* Gemma 2 and 3 take the root of query_pre_attn_scalar, Gemma 3n and 4 scale by 1, Granite by a number of its
 * own. Command R7B, EXAONE 4 and Llama 4 have positions in their local layers alone. OLMo 3 was trained with
 * a scaling of its full layers alone. */
static const struct rope_family families[] = {
    {"llama", LLAMA},
    {"llama4", LLAMA4},
    {"llama4_text", LLAMA4},
    {"mllama", HALVES, PART(1), BASE(5e5)},
    {"mllama_text_model", HALVES, PART(1), BASE(5e5)},
    {"mistral", LLAMA},
    {"mistral3", LLAMA},
    {"ministral", LLAMA},
    {"ministral3", HALVES, PART(1), BASE(1e6), .default_head = 128, .needs_parameters = true},
    {"mixtral", HALVES, PART(1), BASE(1e6)},
    {"qwen2", LLAMA},
    {"qwen2_moe", LLAMA},
    {"qwen2_vl", QWEN2_VL},
    {"qwen2_vl_text", QWEN2_VL},
    {"qwen2_5_vl", QWEN2_VL},
    {"qwen2_5_vl_text", QWEN2_VL},
    {"qwen3", LLAMA, .default_head = 128},
    {"qwen3_moe", LLAMA},
    {"qwen3_next", HALVES, PART(0.25), BASE(10000), .default_head = 256},
    {"qwen3_vl", QWEN3_VL},
    {"qwen3_vl_text", QWEN3_VL},
    {"qwen3_vl_moe", QWEN3_VL},
    {"qwen3_vl_moe_text", QWEN3_VL},
    {"qwen3_5", QWEN3_5},
    {"qwen3_5_text", QWEN3_5},
    {"qwen3_5_moe", QWEN3_5},
    {"qwen3_5_moe_text", QWEN3_5},
    {"phi", HALVES, PART(0.5), BASE(10000)},
    {"phi3", LLAMA, .longrope = "yarn"},
    {"phi4mm", LLAMA, .longrope = "yarn"},
    {"phi4_multimodal", LLAMA, .longrope = "yarn"},
    {"gemma", GEMMA},
    {"gemma2", GEMMA, .root = "query_pre_attn_scalar", .default_root = 256},
    {"gemma3", GEMMA3},
    {"gemma3_text", GEMMA3},
    {"gemma3n", GEMMA3N},
    {"gemma3n_text", GEMMA3N},
    {"gemma4", GEMMA4},
    {"gemma4_text", GEMMA4},
    {"gemma4_unified", GEMMA4},
    {"gemma4_unified_text", GEMMA4},
    {"gpt_oss", HALVES, PART(1), BASE(150000), .default_head = 64, .needs_parameters = true},
    {"olmo", LLAMA},
    {"olmo2", LLAMA},
    {"olmo3", LLAMA, .layers = {FULL(SCALED(10000)), SLIDING(.base = "rope_theta", .default_base = 10000)}},
    {"olmoe", LLAMA},
    {"granite", GRANITE},
    {"granitemoe", GRANITE},
    {"granitemoeshared", GRANITE},
    {"smollm3", HALVES, PART(1), BASE(2e6)},
    {"stablelm", HALVES, PART(0.25), BASE(10000)},
    {"cohere", INTERLEAVED, PART(1), BASE(10000)},
    {"cohere2", INTERLEAVED, PART(1), BASE(10000), .layers = {FULL(.still = true), SLIDING(SCALED(10000))}},
    {"glm", INTERLEAVED, PART(0.5), BASE(10000), .default_head = 128},
    {"glm4", INTERLEAVED, PART(0.5), BASE(10000), .default_head = 128},
    {"glm4_moe", HALVES, PART(0.5), BASE(10000)},
    {"ernie4_5", INTERLEAVED, PART(1), BASE(5e5), .default_head = 128},
    {"ernie4_5_moe", INTERLEAVED, PART(1), BASE(5e5)},
    {"exaone", LLAMA},
    {"exaone4", LLAMA, .alike = "sliding_window", .layers = {FULL(.still = true), SLIDING(SCALED(10000))}},
    {"exaone4_5", LLAMA, .alike = "sliding_window", .layers = {FULL(.still = true), SLIDING(SCALED(10000))}},
    {"exaone4_5_text", LLAMA, .alike = "sliding_window",
     .layers = {FULL(.still = true), SLIDING(SCALED(10000))}},
    {"falcon", .layout = ROPE_LAYOUT_HALVES, .hidden = "hidden_size", .heads = "num_attention_heads", PART(1),
     BASE(10000), .other = "alibi"},
    {"nemotron", HALVES, PART(0.5), BASE(10000)},
    {"minicpm", LLAMA},
    {"minicpm3", .layout = ROPE_LAYOUT_HALVES, .head_dim = "qk_rope_head_dim", .nope = "qk_nope_head_dim",
     BASE(10000), .default_partial = 1},
    {"minimax_m2", HALVES, PART(1), BASE(5e6), .rotary_dim = "rotary_dim"},
    {"internlm2", LLAMA},
    {"internlm3", LLAMA},
    {"seed_oss", LLAMA, .default_head = 128},
    {"starcoder2", LLAMA},
    {"persimmon", HALVES, PART(0.5), BASE(25000)},
    {"lfm2", HALVES, PART(1), BASE(1e6)},
    {"arcee", LLAMA},
    {"dots1", LLAMA},
    {"modernbert", MODERNBERT},
    {"modernbert-decoder", MODERNBERT},
    {"gpt_neox", .layout = ROPE_LAYOUT_HALVES, .hidden = "hidden_size", .heads = "num_attention_heads",
     .partial = "rotary_pct", .default_partial = 0.25, .base = "rotary_emb_base", .default_base = 10000},
    {"gptj", GPTJ},
    {"codegen", GPTJ},
    {"deepseek_v2", DEEPSEEK},
    {"deepseek_v3", DEEPSEEK},
    {"deepseek_v32", DEEPSEEK},
    {"kimi_k2", DEEPSEEK},
};

const struct rope_family *pe_rope_family_find(const char *model_type) {
    for (size_t i = 0; i < PE_COUNT(families); i++) {
        if (strcmp(families[i].model_type, model_type) == 0) {
            return &families[i];
        }
    }
    return NULL;
}

const char *pe_rope_family_names(const char *model_type, char *out, size_t size) {
    *out = '\0';
    for (size_t i = 0, n = 0; i < PE_COUNT(families) && n < size; i++) {
        if (families[i].model_type[0] == model_type[0]) {
            n += (size_t)snprintf(out + n, size - n, "%s%s", n ? ", " : "", families[i].model_type);
        }
    }
    return out;
}
