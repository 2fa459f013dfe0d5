/* SPDX-License-Identifier: MIT
 *
 * The names that weights of blocks go by: those of torch's TransformerEncoderLayer and of GPT-2 in
 * transformers, alone ("linear1.weight"), in a list of layers ("layers.0.linear1.weight",
 * "h.0.mlp.c_fc.weight"), or in a model that has the list ("encoder.layers.0.", "transformer.h.0.").
 */
#include "ops/block_names.h"

#include <stdio.h>
#include <string.h>

static const struct naming {
    const char *model, *list; /* prefixes */
    const char *part[PE_BLOCK_PARTS];
    const char *final[2];
    const char *table;
    const char *others[4];  /* of the model, not used */
    const char *buffers[3]; /* of a layer, not used: masks that GPT-2 stores */
} namings[] = {
    [PE_BLOCK_TORCH] = {"encoder.",
                        "layers.",
                        {"norm1.weight", "norm1.bias", "self_attn.in_proj_weight", "self_attn.in_proj_bias",
                         "self_attn.out_proj.weight", "self_attn.out_proj.bias", "norm2.weight", "norm2.bias",
                         "linear1.weight", "linear1.bias", "linear2.weight", "linear2.bias"},
                        {"norm.weight", "norm.bias"},
                        NULL,
                        {NULL},
                        {NULL}},
    [PE_BLOCK_GPT2] = {"transformer.",
                       "h.",
                       {"ln_1.weight", "ln_1.bias", "attn.c_attn.weight", "attn.c_attn.bias",
                        "attn.c_proj.weight", "attn.c_proj.bias", "ln_2.weight", "ln_2.bias",
                        "mlp.c_fc.weight", "mlp.c_fc.bias", "mlp.c_proj.weight", "mlp.c_proj.bias"},
                       {"ln_f.weight", "ln_f.bias"},
                       "wpe.weight",
                       {"wte.weight", "lm_head.weight", NULL},
                       {"attn.bias", "attn.masked_bias", NULL}},
};

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

struct pe_block_name pe_block_name_read(enum pe_block_naming which, const char *name) {
    const struct naming *naming = &namings[which];
    const char *inner = after(name, naming->model), *rest;
    size_t layer = 0;
    name = inner ? inner : name;
    for (int i = 0; i < 2; i++) {
        if (strcmp(name, naming->final[i]) == 0) {
            return (struct pe_block_name){.role = i ? PE_BLOCK_ROLE_FINAL_BIAS : PE_BLOCK_ROLE_FINAL_WEIGHT};
        }
    }
    if (naming->table && strcmp(name, naming->table) == 0) {
        return (struct pe_block_name){.role = PE_BLOCK_ROLE_TABLE};
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
    const char *inner = like ? after(like, naming->model) : NULL;
    const char *model = inner ? naming->model : "";
    bool listed = !like || after(inner ? inner : like, naming->list) || layer > 0;
    if (layer == SIZE_MAX) {
        snprintf(text, size, "%s%s", model, naming->final[part]);
    } else if (listed) {
        snprintf(text, size, "%s%s%zu.%s", model, naming->list, layer, naming->part[part]);
    } else {
        snprintf(text, size, "%s", naming->part[part]);
    }
    return text;
}
