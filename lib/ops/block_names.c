/* SPDX-License-Identifier: MIT
 *
 * The names that weights of blocks go by: those of torch's TransformerEncoderLayer and of GPT-2 in
 * transformers, alone ("linear1.weight"), in a list of layers ("layers.0.linear1.weight",
 * "h.0.mlp.c_fc.weight"), or in a model that has the list ("encoder.layers.0.", "transformer.h.0."). Copies
 * of GPT-2 with torch's Linear (nanoGPT, minGPT) have its names, and their matrices the other way round.
 */
#include "ops/block_names.h"

#include <stdio.h>
#include <string.h>

#define GPT2                                                                                                 \
    {                                                                                                        \
        .model = "transformer.", .list = "h.",                                                               \
        .part = {"ln_1.weight",        "ln_1.bias",        "attn.c_attn.weight", "attn.c_attn.bias",         \
                 "attn.c_proj.weight", "attn.c_proj.bias", "ln_2.weight",        "ln_2.bias",                \
                 "mlp.c_fc.weight",    "mlp.c_fc.bias",    "mlp.c_proj.weight",  "mlp.c_proj.bias"},         \
        .final = {"ln_f.weight", "ln_f.bias"}, .table = "wpe.weight", .vocabulary = "wte.weight",            \
        .others = {"lm_head.weight", NULL}, .buffers = {"attn.bias", "attn.masked_bias", NULL},              \
    }

static const struct naming {
    const char *model, *list; /* prefixes */
    const char *part[PE_BLOCK_PARTS];
    const char *final[2];
    const char *table, *vocabulary; /* of positions and of tokens; NULL: there are none */
    const char *others[2];  /* of the model, not used: lm_head is wte once more, or comes after blocks */
    const char *buffers[3]; /* of a layer, not used: masks that GPT-2 stores */
} namings[] = {
    [PE_BLOCK_TORCH] = {"encoder.",
                        "layers.",
                        {"norm1.weight", "norm1.bias", "self_attn.in_proj_weight", "self_attn.in_proj_bias",
                         "self_attn.out_proj.weight", "self_attn.out_proj.bias", "norm2.weight", "norm2.bias",
                         "linear1.weight", "linear1.bias", "linear2.weight", "linear2.bias"},
                        {"norm.weight", "norm.bias"},
                        NULL,
                        NULL,
                        {NULL},
                        {NULL}},
    [PE_BLOCK_GPT2] = GPT2,
    [PE_BLOCK_NANOGPT] = GPT2,
};

/* What programs put before the names of any model: parallel training, torch.compile. */
static const char *const wrappers[] = {"module.", "_orig_mod."};

/* What follows the prefix; NULL when it is not there. */
static const char *after(const char *name, const char *prefix) {
    size_t n = strlen(prefix);
    return strncmp(name, prefix, n) == 0 ? name + n : NULL;
}

static bool among(const char *name, const char *const *list) {
    for (; *list; list++) {
        if (strcmp(name, *list) == 0) {
            return true;
        }
    }
    return false;
}

/* "12." in front of the rest, without zeros before it; NULL when it is something else. */
static const char *layer_read(const char *text, size_t *layer) {
    size_t n = strspn(text, "0123456789");
    if (n == 0 || (n > 1 && text[0] == '0') || text[n] != '.') {
        return NULL;
    }
    *layer = 0;
    for (size_t i = 0; i < n && *layer < PE_BLOCK_LAYERS_MAX; i++) {
        *layer = 10 * *layer + (size_t)(text[i] - '0');
    }
    *layer = *layer < PE_BLOCK_LAYERS_MAX ? *layer : PE_BLOCK_LAYERS_MAX;
    return text + n + 1;
}

static struct pe_block_name part_read(const struct naming *naming, const char *name, size_t layer) {
    struct pe_block_name read = {.layer = layer};
    for (size_t i = 0; i < PE_BLOCK_PARTS; i++) {
        if (strcmp(name, naming->part[i]) == 0) {
            read.role = PE_BLOCK_ROLE_PART;
            read.part = (enum pe_block_part)i;
        }
    }
    if (among(name, naming->buffers)) {
        read.role = PE_BLOCK_ROLE_OTHER;
    }
    return read;
}

/* The name without what wraps the model, and *inner without the model's own prefix: NULL when that is not
 * there. */
static const char *unwrapped(const struct naming *naming, const char *name, const char **inner) {
    for (size_t i = 0; i < PE_COUNT(wrappers); i++) {
        const char *rest = after(name, wrappers[i]);
        name = rest ? rest : name;
    }
    *inner = after(name, naming->model);
    return *inner ? *inner : name;
}

struct pe_block_name pe_block_name_read(enum pe_block_naming which, const char *name) {
    const struct naming *naming = &namings[which];
    const char *inner, *rest;
    size_t layer = 0;
    name = unwrapped(naming, name, &inner);
    const struct {
        const char *name;
        enum pe_block_role role;
    } others[] = {{naming->final[0], PE_BLOCK_ROLE_FINAL_WEIGHT},
                  {naming->final[1], PE_BLOCK_ROLE_FINAL_BIAS},
                  {naming->table, PE_BLOCK_ROLE_TABLE},
                  {naming->vocabulary, PE_BLOCK_ROLE_VOCABULARY}};
    for (size_t i = 0; i < PE_COUNT(others); i++) {
        if (others[i].name && strcmp(name, others[i].name) == 0) {
            return (struct pe_block_name){.role = others[i].role};
        }
    }
    if (among(name, naming->others)) {
        return (struct pe_block_name){.role = PE_BLOCK_ROLE_OTHER};
    }
    if ((rest = after(name, naming->list)) != NULL) {
        rest = layer_read(rest, &layer);
        return rest ? part_read(naming, rest, layer) : (struct pe_block_name){0};
    }
    return inner ? (struct pe_block_name){0} : part_read(naming, name, 0);
}

char *pe_block_name_write(enum pe_block_naming which, size_t layer, size_t part, const char *like, char *text,
                          size_t size) {
    const struct naming *naming = &namings[which];
    const char *inner, *rest = unwrapped(naming, like ? like : naming->list, &inner);
    int n = like ? (int)(rest - like) : 0;
    bool listed = !like || after(rest, naming->list) || layer > 0;
    like = like ? like : "";
    if (layer == SIZE_MAX) {
        snprintf(text, size, "%.*s%s", n, like, naming->final[part]);
    } else if (listed) {
        snprintf(text, size, "%.*s%s%zu.%s", n, like, naming->list, layer, naming->part[part]);
    } else {
        snprintf(text, size, "%.*s%s", n, like, naming->part[part]);
    }
    return text;
}

const char *pe_block_naming_name(enum pe_block_naming naming) {
    static const char *const names[] = {
        [PE_BLOCK_TORCH] = "torch", [PE_BLOCK_GPT2] = "gpt2", [PE_BLOCK_NANOGPT] = "nanogpt"};
    return names[naming];
}
