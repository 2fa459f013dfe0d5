/* SPDX-License-Identifier: MIT
 *
 * What rope takes from the configurations of models, one row a family: which keys say the width of a head,
 * the base and the part that turns, and what a configuration does not say, the layout.
 */
#include "encodings/rope.h"

#include <stdio.h>
#include <string.h>

#define USUAL(part)                                                                                          \
    .head_dim = "head_dim", .hidden = "hidden_size", .heads = "num_attention_heads",                         \
    .partial = "partial_rotary_factor", .default_partial = part, .base = "rope_theta", .default_base = 10000
#define HALVES      .layout = ROPE_LAYOUT_HALVES, USUAL(1)
#define INTERLEAVED .layout = ROPE_LAYOUT_INTERLEAVED, USUAL(1)
#define DEEPSEEK                                                                                             \
    .layout = ROPE_LAYOUT_INTERLEAVED, .head_dim = "qk_rope_head_dim", .nope = "qk_nope_head_dim",           \
    .base = "rope_theta", .default_base = 10000, .default_partial = 1

static const struct rope_family families[] = {
    {"llama", HALVES},
    {"mistral", HALVES},
    {"mistral3", HALVES},
    {"mixtral", HALVES},
    {"ministral", HALVES},
    {"qwen2", HALVES},
    {"qwen2_moe", HALVES},
    {"qwen3", HALVES},
    {"qwen3_moe", HALVES},
    {"qwen2_vl", HALVES},
    {"qwen2_vl_text", HALVES},
    {"qwen2_5_vl", HALVES},
    {"qwen2_5_vl_text", HALVES},
    {"qwen3_vl", HALVES},
    {"qwen3_vl_text", HALVES},
    {"phi3", HALVES},
    {"gemma", HALVES},
    {"gemma2", HALVES},
    {"gpt_oss", HALVES},
    {"olmo2", HALVES},
    {"granite", HALVES},
    {"smollm3", HALVES},
    {"cohere", INTERLEAVED},
    {"glm4", INTERLEAVED},
    {"gemma3_text", HALVES,
     .layers = {{"full_attention", "rope_theta", 1000000, true},
                {"sliding_attention", "rope_local_base_freq", 10000, false}}},
    {"gemma3", HALVES,
     .layers = {{"full_attention", "rope_theta", 1000000, true},
                {"sliding_attention", "rope_local_base_freq", 10000, false}}},
    {"modernbert", HALVES,
     .layers = {{"full_attention", "global_rope_theta", 160000, true},
                {"sliding_attention", "local_rope_theta", 10000, true}}},
    {"gpt_neox", .layout = ROPE_LAYOUT_HALVES, .hidden = "hidden_size", .heads = "num_attention_heads",
     .partial = "rotary_pct", .default_partial = 0.25, .base = "rotary_emb_base", .default_base = 10000},
    {"gptj", .layout = ROPE_LAYOUT_INTERLEAVED, .hidden = "n_embd", .heads = "n_head",
     .rotary_dim = "rotary_dim", .base = "rope_theta", .default_base = 10000, .default_partial = 1},
    {"deepseek_v2", DEEPSEEK},
    {"deepseek_v3", DEEPSEEK},
    {"phi", .layout = ROPE_LAYOUT_HALVES, USUAL(0.5)},
    {"stablelm", .layout = ROPE_LAYOUT_HALVES, USUAL(0.25)},
};

const struct rope_family *rope_family_find(const char *model_type) {
    for (size_t i = 0; i < PE_COUNT(families); i++) {
        if (strcmp(families[i].model_type, model_type) == 0) {
            return &families[i];
        }
    }
    return NULL;
}

const char *rope_family_names(char *text, size_t size) {
    text[0] = '\0';
    for (size_t i = 0; i < PE_COUNT(families); i++) {
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s", i ? " " : "", families[i].model_type);
    }
    return text;
}
