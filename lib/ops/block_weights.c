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
    size_t layers;
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

size_t pe_block_width(const struct pe_block_args *args) {
    for (size_t i = 0; i < args->n_weights; i++) {
        const struct pe_named_tensor *w = &args->weights[i];
        struct pe_block_name name = pe_block_name_read(naming_of(args), w->name);
        bool tells = name.role == PE_BLOCK_ROLE_PART &&
                     (name.part == PE_BLOCK_PROJECTION_BIAS || name.part == PE_BLOCK_DOWN_BIAS);
        if (tells && w->tensor.rank == 1) {
            return w->tensor.dim[0];
        }
    }
    return 0;
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
    default:
        return NULL;
    }
}

static int name_take(struct pe_block_reader *r, size_t i, struct pe_error *err) {
    const char *text = r->args->weights[i].name;
    struct pe_block_names *names = r->names;
    struct pe_block_name name = pe_block_name_read(r->naming, text);
    if (name.role == PE_BLOCK_ROLE_UNKNOWN) {
        char like[100];
        pe_fail(err, PE_ERR_UNKNOWN_NAME, "", "is not a weight by the naming %s, which has such as %s",
                r->naming == PE_BLOCK_GPT2 ? "gpt2" : "torch",
                pe_block_name_write(r->naming, 0, i % PE_BLOCK_PARTS, names->like, like, sizeof like));
        return at_weight(text, err);
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
    r->names->final[0] = r->names->final[1] = NONE;
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

bool pe_block_names_need(const struct pe_block_reader *r, size_t i) {
    struct pe_block_name name = pe_block_name_read(r->naming, r->args->weights[i].name);
    return slot_of(r->names, &name) != NULL;
}

size_t pe_block_names_d_ff(const struct pe_block_reader *r) {
    size_t i = r->names->part[0][PE_BLOCK_UP_BIAS];
    const struct pe_tensor *bias = i == NONE ? NULL : &r->args->weights[i].tensor;
    return bias && bias->rank == 1 ? bias->dim[0] : 0;
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
            !turned                ? ""
            : r->block->transposed ? ": torch's weights are [out, in]"
                                   : ": the kernels of GPT-2 are [in, out], not as torch's Linear has them");
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

static int layer_read(struct pe_block_reader *r, size_t l, struct pe_error *err) {
    for (size_t part = 0; part < PE_BLOCK_PARTS; part++) {
        size_t i = r->names->part[l][part];
        if (!part_needed(r->block, (enum pe_block_part)part)) {
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

int pe_block_weights_read(struct pe_block_reader *r, struct pe_error *err) {
    struct pe_block *block = r->block;
    const unsigned char **final[2] = {&block->final_weight, &block->final_bias};
    for (size_t l = 0; l < block->layers; l++) {
        if (layer_read(r, l, err)) {
            return err->code;
        }
    }
    for (size_t i = 0; block->final_norm && i < 2; i++) {
        size_t at = r->names->final[i];
        if (at == NONE) {
            return missing(r, SIZE_MAX, i, err);
        }
        if (tensor_take(r, at, PE_BLOCK_NORM1_WEIGHT, final[i], err)) {
            return err->code;
        }
    }
    return PE_OK;
}
