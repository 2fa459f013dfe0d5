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
#define GEMMA3                                                                                               \
    GEMMA, .root = "query_pre_attn_scalar", .default_root = 256,                                             \
           .layers = {{.type = "full_attention", .base = "rope_theta", .default_base = 1e6, .scaled = true}, \
                      {.type = "sliding_attention", .base = "rope_local_base_freq", .default_base = 10000}}
#define GEMMA4                                                                                               \
    GEMMA, .default_root = 1, .needs_parameters = true,                                                      \
           .layers = {                                                                                       \
               {.type = "full_attention",                                                                    \
                .base = "rope_theta",                                                                        \
                .default_base = 1e6,                                                                         \
                .scaled = true,                                                                              \
                .head_dim = "global_head_dim",                                                               \
                .default_head = 512},                                                                        \
               {.type = "sliding_attention", .base = "rope_theta", .default_base = 10000, .scaled = true}}

/* Gemma 2 and 3 take the root of query_pre_attn_scalar, Gemma 4 scales by 1, Granite by a number of its own.
 */
static const struct rope_family families[] = {
    {"llama", LLAMA},
    {"mistral", LLAMA},
    {"mistral3", LLAMA},
    {"ministral", LLAMA},
    {"mixtral", HALVES, PART(1), BASE(1e6)},
    {"qwen2", LLAMA},
    {"qwen2_moe", LLAMA},
    {"qwen2_vl", HALVES, PART(1), BASE(1e6)},
    {"qwen2_vl_text", HALVES, PART(1), BASE(1e6)},
    {"qwen2_5_vl", HALVES, PART(1), BASE(1e6)},
    {"qwen2_5_vl_text", HALVES, PART(1), BASE(1e6)},
    {"qwen3", LLAMA, .default_head = 128},
    {"qwen3_moe", LLAMA},
    {"qwen3_vl", HALVES, PART(1), BASE(5e6), .default_head = 128},
    {"qwen3_vl_text", HALVES, PART(1), BASE(5e6), .default_head = 128},
    {"phi", HALVES, PART(0.5), BASE(10000)},
    {"phi3", LLAMA, .longrope = "yarn"},
    {"gemma", GEMMA},
    {"gemma2", GEMMA, .root = "query_pre_attn_scalar", .default_root = 256},
    {"gemma3", GEMMA3},
    {"gemma3_text", GEMMA3},
    {"gemma4", GEMMA4},
    {"gemma4_text", GEMMA4},
    {"gpt_oss", HALVES, PART(1), BASE(150000), .default_head = 64},
    {"olmo2", LLAMA},
    {"granite", LLAMA, .multiplier = "attention_multiplier"},
    {"smollm3", HALVES, PART(1), BASE(2e6)},
    {"stablelm", HALVES, PART(0.25), BASE(10000)},
    {"cohere", INTERLEAVED, PART(1), BASE(10000)},
    {"glm4", INTERLEAVED, PART(0.5), BASE(10000), .default_head = 128},
    {"modernbert", HALVES, .default_partial = 1,
     .layers =
         {{.type = "full_attention", .base = "global_rope_theta", .default_base = 160000, .scaled = true},
          {.type = "sliding_attention",
           .base = "local_rope_theta",
           .default_base = 10000,
           .null_is_first = true,
           .scaled = true}}},
    {"gpt_neox", .layout = ROPE_LAYOUT_HALVES, .hidden = "hidden_size", .heads = "num_attention_heads",
     .partial = "rotary_pct", .default_partial = 0.25, .base = "rotary_emb_base", .default_base = 10000},
    {"gptj", .layout = ROPE_LAYOUT_INTERLEAVED, .hidden = "n_embd", .heads = "n_head",
     .rotary_dim = "rotary_dim", .default_base = 10000, .default_partial = 1},
    {"deepseek_v2", DEEPSEEK},
    {"deepseek_v3", DEEPSEEK},
};

const struct rope_family *pe_rope_family_find(const char *model_type) {
    for (size_t i = 0; i < PE_COUNT(families); i++) {
        if (strcmp(families[i].model_type, model_type) == 0) {
            return &families[i];
        }
    }
    return NULL;
}

const char *pe_rope_family_names(char *out, size_t size) {
    for (size_t i = 0, n = 0; i < PE_COUNT(families) && n < size; i++) {
        n += (size_t)snprintf(out + n, size - n, "%s%s", i ? ", " : "", families[i].model_type);
    }
    return out;
}
