/* SPDX-License-Identifier: MIT
 *
 * The posted weights of blocks: each name is understood, each tensor that is needed found, its shape compared
 * with what it has to be, its numbers brought into the type of the arithmetic. What is posted and not needed
 * is told from what was used.
 */
#include "ops/block_names.h"

#include <stdio.h>

#define NONE SIZE_MAX

/* Which posted tensor is which; NONE: it is not there. */
struct pe_block_names {
    size_t part[PE_BLOCK_LAYERS_MAX][PE_BLOCK_PARTS];
    size_t final[2]; /* weight, bias */
    size_t vocabulary;
    size_t layers;
    bool biased;      /* a part is a bias */
    const char *like; /* the first that is a part */
};

/* A path to the weight of this name. */
static int at_weight(const char *name, struct pe_error *err) {
    char path[sizeof err->path];
    pe_error_at(err, pe_member_path(name, path, sizeof path));
    return pe_error_at(err, "weights");
}

/* ---- Names --------------------------------------------------------------------------------------------- */

static enum pe_block_naming naming_of(const struct pe_block_args *args) {
    return args->naming ? args->naming : PE_BLOCK_TORCH;
}

const struct pe_named_tensor *pe_block_position_table(const struct pe_block_args *args) {
    for (size_t i = 0; i < args->n_weights; i++) {
        if (pe_block_name_read(naming_of(args), args->weights[i].name).role == PE_BLOCK_ROLE_TABLE) {
            return &args->weights[i];
        }
    }
    return NULL;
}

/* D as this weight has it; 0: it does not tell. */
static size_t width_of(const struct pe_named_tensor *w, const struct pe_block_name *name) {
    const struct pe_tensor *t = &w->tensor;
    if (name->role == PE_BLOCK_ROLE_VOCABULARY) {
        return t->rank == 2 ? t->dim[1] : 0;
    }
    if (name->role != PE_BLOCK_ROLE_PART) {
        return 0;
    }
    switch (name->part) {
    case PE_BLOCK_PROJECTION_BIAS:
    case PE_BLOCK_DOWN_BIAS:
    case PE_BLOCK_NORM1_WEIGHT:
    case PE_BLOCK_NORM2_WEIGHT:
        return t->rank == 1 ? t->dim[0] : 0;
    case PE_BLOCK_PROJECTION_WEIGHT:
        return t->rank == 2 && t->dim[0] == t->dim[1] ? t->dim[0] : 0;
    default:
        return 0;
    }
}

size_t pe_block_width(const struct pe_block_args *args) {
    size_t width = 0;
    for (size_t i = 0; i < args->n_weights && !width; i++) {
        struct pe_block_name name = pe_block_name_read(naming_of(args), args->weights[i].name);
        width = width_of(&args->weights[i], &name);
    }
    return width;
}

/* The slot of a name; NULL for one that has none. */
static size_t *slot_of(struct pe_block_names *names, const struct pe_block_name *name) {
    switch (name->role) {
    case PE_BLOCK_ROLE_PART:
        return &names->part[name->layer][name->part];
    case PE_BLOCK_ROLE_FINAL_WEIGHT:
        return &names->final[0];
    case PE_BLOCK_ROLE_FINAL_BIAS:
        return &names->final[1];
    case PE_BLOCK_ROLE_VOCABULARY:
        return &names->vocabulary;
    default:
        return NULL;
    }
}

static int unknown_fail(const struct pe_block_reader *r, size_t i, struct pe_error *err) {
    const char *text = r->args->weights[i].name, *others = "";
    char like[100];
    if (r->naming == PE_BLOCK_TORCH && pe_block_name_read(PE_BLOCK_GPT2, text).role) {
        others = "; gpt2 and nanogpt have it";
    } else if (r->naming != PE_BLOCK_TORCH && pe_block_name_read(PE_BLOCK_TORCH, text).role) {
        others = "; torch has it";
    }
    pe_fail(err, PE_ERR_UNKNOWN_NAME, "", "is not a weight by the naming %s, which has such as %s%s",
            pe_block_naming_name(r->naming),
            pe_block_name_write(r->naming, 0, i % PE_BLOCK_PARTS, r->names->like, like, sizeof like), others);
    return at_weight(text, err);
}

static bool is_bias(enum pe_block_part part) {
    return part % 2 == PE_BLOCK_NORM1_BIAS % 2; /* weights and biases take turns */
}

static int name_take(struct pe_block_reader *r, size_t i, struct pe_error *err) {
    const char *text = r->args->weights[i].name;
    struct pe_block_names *names = r->names;
    struct pe_block_name name = pe_block_name_read(r->naming, text);
    if (name.role == PE_BLOCK_ROLE_UNKNOWN) {
        return unknown_fail(r, i, err);
    }
    if (name.layer >= PE_BLOCK_LAYERS_MAX) {
        pe_fail(err, PE_ERR_RANGE, "", "is of a layer beyond the last one allowed, %d",
                PE_BLOCK_LAYERS_MAX - 1);
        return at_weight(text, err);
    }
    size_t *slot = slot_of(names, &name);
    if (slot && *slot != NONE) {
        pe_fail(err, PE_ERR_CONFLICT, "", "is the same weight as %.100s", r->args->weights[*slot].name);
        return at_weight(text, err);
    }
    if (slot) {
        *slot = i;
    }
    if (name.role == PE_BLOCK_ROLE_PART) {
        names->like = names->like ? names->like : text;
        names->layers = name.layer + 1 > names->layers ? name.layer + 1 : names->layers;
        names->biased = names->biased || is_bias(name.part);
    }
    return PE_OK;
}

int pe_block_names_read(struct pe_block_reader *r, struct pe_error *err) {
    size_t n = r->args->n_weights;
    if (n == 0) {
        return PE_OK;
    }
    if (n > PE_BLOCK_TENSORS_MAX) {
        return pe_fail(err, PE_ERR_RANGE, "weights", "has %zu tensors, at most %d are allowed", n,
                       PE_BLOCK_TENSORS_MAX);
    }
    r->names = pe_arena_array(r->arena, 1, sizeof *r->names, err);
    if (!r->names) {
        return err->code;
    }
    r->names->final[0] = r->names->final[1] = r->names->vocabulary = NONE;
    for (size_t l = 0; l < PE_BLOCK_LAYERS_MAX; l++) {
        for (size_t i = 0; i < PE_BLOCK_PARTS; i++) {
            r->names->part[l][i] = NONE;
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (name_take(r, i, err)) {
            return err->code;
        }
    }
    return PE_OK;
}

size_t pe_block_names_layers(const struct pe_block_names *names) {
    return names->layers;
}

bool pe_block_names_final(const struct pe_block_names *names) {
    return names->final[0] != NONE || names->final[1] != NONE;
}

bool pe_block_names_biased(const struct pe_block_names *names) {
    return names->biased;
}

bool pe_block_names_need(const struct pe_block_reader *r, size_t i) {
    struct pe_block_name name = pe_block_name_read(r->naming, r->args->weights[i].name);
    bool looked_up = name.role == PE_BLOCK_ROLE_VOCABULARY;
    return looked_up ? r->args->token_ids != NULL : slot_of(r->names, &name) != NULL;
}

/* By the bias; where there is none, by the matrix. */
size_t pe_block_names_d_ff(const struct pe_block_reader *r) {
    size_t bias = r->names->part[0][PE_BLOCK_UP_BIAS], up = r->names->part[0][PE_BLOCK_UP_WEIGHT];
    const struct pe_named_tensor *w = r->args->weights;
    if (bias != NONE) {
        return w[bias].tensor.rank == 1 ? w[bias].tensor.dim[0] : 0;
    }
    return up != NONE && w[up].tensor.rank == 2 ? w[up].tensor.dim[r->block->transposed ? 0 : 1] : 0;
}

const struct pe_tensor *pe_block_vocabulary(struct pe_block_reader *r, struct pe_error *err) {
    if (r->names->vocabulary == NONE) {
        pe_fail(err, PE_ERR_MISSING, "", "is missing among the posted weights: token_ids are its rows");
        at_weight("wte.weight", err);
        return NULL;
    }
    r->used[r->names->vocabulary] = true;
    return &r->args->weights[r->names->vocabulary].tensor;
}

/* ---- Tensors ------------------------------------------------------------------------------------------- */

/* A part as torch has it, [out, in] or [out]. */
static struct pe_tensor part_shape(const struct pe_block *block, enum pe_block_part part) {
    size_t d = block->width, f = block->d_ff;
    switch (part) {
    case PE_BLOCK_QKV_WEIGHT:
        return (struct pe_tensor){.rank = 2, .dim = {3 * d, d}};
    case PE_BLOCK_QKV_BIAS:
        return (struct pe_tensor){.rank = 1, .dim = {3 * d}};
    case PE_BLOCK_PROJECTION_WEIGHT:
        return (struct pe_tensor){.rank = 2, .dim = {d, d}};
    case PE_BLOCK_UP_WEIGHT:
        return (struct pe_tensor){.rank = 2, .dim = {f, d}};
    case PE_BLOCK_UP_BIAS:
        return (struct pe_tensor){.rank = 1, .dim = {f}};
    case PE_BLOCK_DOWN_WEIGHT:
        return (struct pe_tensor){.rank = 2, .dim = {d, f}};
    default:
        return (struct pe_tensor){.rank = 1, .dim = {d}};
    }
}

static int shape_check(const struct pe_block_reader *r, const struct pe_named_tensor *w,
                       enum pe_block_part part, struct pe_error *err) {
    struct pe_tensor wanted = part_shape(r->block, part);
    size_t out = wanted.dim[0], in = wanted.dim[1];
    bool matrix = wanted.rank == 2, turned = false;
    if (matrix && !r->block->transposed) {
        wanted.dim[0] = in;
        wanted.dim[1] = out;
    }
    if (w->tensor.rank == wanted.rank && w->tensor.dim[0] == wanted.dim[0] &&
        (!matrix || w->tensor.dim[1] == wanted.dim[1])) {
        return PE_OK;
    }
    turned = matrix && w->tensor.rank == 2 && w->tensor.dim[0] == wanted.dim[1] &&
             w->tensor.dim[1] == wanted.dim[0];
    char got[128], need[128];
    pe_fail(err, PE_ERR_SHAPE, "", "has shape %s, but with D = %zu and d_ff = %zu it has to be %s%s",
            pe_tensor_shape_text(&w->tensor, got, sizeof got), r->block->width, r->block->d_ff,
            pe_tensor_shape_text(&wanted, need, sizeof need),
            !turned                      ? ""
            : r->naming == PE_BLOCK_GPT2 ? ": the kernels of GPT-2 are [in, out], not as torch's Linear has "
                                           "them, but by naming = nanogpt"
            : r->naming == PE_BLOCK_NANOGPT ? ": its weights are [out, in], kernels [in, out] are those of "
                                              "naming = gpt2"
                                            : ": torch's weights are [out, in]");
    return at_weight(w->name, err);
}

static int tensor_take(struct pe_block_reader *r, size_t i, enum pe_block_part part,
                       const unsigned char **out, struct pe_error *err) {
    const struct pe_named_tensor *w = &r->args->weights[i];
    struct pe_operand_rule rule = {.name = "", .real = r->block->real};
    struct pe_operand operand;
    if (shape_check(r, w, part, err)) {
        return err->code;
    }
    if (pe_operand_read(r->arena, &operand, &w->tensor, &rule, err)) {
        return at_weight(w->name, err);
    }
    r->used[i] = true;
    *out = operand.tensor.data;
    return PE_OK;
}

static int missing(const struct pe_block_reader *r, size_t layer, size_t part, struct pe_error *err) {
    char name[120];
    pe_block_name_write(r->naming, layer, part, r->names->like, name, sizeof name);
    pe_fail(err, PE_ERR_MISSING, "", "is missing among the posted weights%s",
            layer == SIZE_MAX ? "; final_norm = false does without" : "");
    return at_weight(name, err);
}

static bool part_needed(const struct pe_block *block, enum pe_block_part part) {
    bool of_norm = part == PE_BLOCK_NORM1_WEIGHT || part == PE_BLOCK_NORM1_BIAS ||
                   part == PE_BLOCK_NORM2_WEIGHT || part == PE_BLOCK_NORM2_BIAS;
    return !of_norm || block->norm != PE_BLOCK_NORM_NONE;
}

/* zeros: for a model without biases. */
static int layer_read(struct pe_block_reader *r, size_t l, const unsigned char *zeros, struct pe_error *err) {
    for (size_t part = 0; part < PE_BLOCK_PARTS; part++) {
        size_t i = r->names->part[l][part];
        if (!part_needed(r->block, (enum pe_block_part)part)) {
            continue;
        }
        if (i == NONE && is_bias((enum pe_block_part)part) && !r->names->biased) {
            r->block->layer[l].part[part] = zeros;
            continue;
        }
        if (i == NONE) {
            return missing(r, l, part, err);
        }
        if (tensor_take(r, i, (enum pe_block_part)part, &r->block->layer[l].part[part], err)) {
            return err->code;
        }
    }
    return PE_OK;
}

static int final_read(struct pe_block_reader *r, const unsigned char *zeros, struct pe_error *err) {
    struct pe_block *block = r->block;
    const unsigned char **out[2] = {&block->final_weight, &block->final_bias};
    for (size_t i = 0; i < 2; i++) {
        size_t at = r->names->final[i];
        if (at == NONE && i == 1 && !r->names->biased) {
            *out[i] = zeros;
        } else if (at == NONE) {
            return missing(r, SIZE_MAX, i, err);
        } else if (tensor_take(r, at, i ? PE_BLOCK_NORM1_BIAS : PE_BLOCK_NORM1_WEIGHT, out[i], err)) {
            return err->code;
        }
    }
    return PE_OK;
}

int pe_block_weights_read(struct pe_block_reader *r, struct pe_error *err) {
    struct pe_block *block = r->block;
    size_t longest = block->d_ff > 3 * block->width ? block->d_ff : 3 * block->width;
    unsigned char *zeros = pe_block_alike(r, r->names->biased ? 1 : longest, 0, err);
    if (!zeros) {
        return err->code;
    }
    for (size_t l = 0; l < block->layers; l++) {
        if (layer_read(r, l, zeros, err)) {
            return err->code;
        }
    }
    return block->final_norm ? final_read(r, zeros, err) : PE_OK;
}
