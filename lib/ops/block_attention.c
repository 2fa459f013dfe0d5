/* SPDX-License-Identifier: MIT
 *
 * The attention of blocks. It is opened once: its queries, keys and values are memory that the run fills, its
 * mask, angles and biases are made here and shared by all layers, which differ in where their weights go.
 */
#include "ops/attention_input.h"
#include "ops/block.h"

#include <stdio.h>
#include <string.h>

/* The dimensions without the batch, where there is none: axis 1. */
int pe_block_dims(const struct pe_block *b, const size_t *full, int n, size_t *dim) {
    int rank = 0;
    for (int i = 0; i < n; i++) {
        if (i != 1 || b->batched) {
            dim[rank++] = full[i];
        }
    }
    return rank;
}

/* [B, H, T, d], cleared. */
static int stream_open(const struct pe_block_reader *r, struct pe_tensor *out, struct pe_error *err) {
    const struct pe_block *b = r->block;
    *out = (struct pe_tensor){
        .dtype = b->real, .rank = 4, .dim = {b->batch, b->heads, b->length, b->head_width}};
    size_t n, factors[] = {b->batch, b->length, b->width};
    if (!pe_size_product(factors, PE_COUNT(factors), &n)) {
        n = SIZE_MAX;
    }
    out->data = pe_arena_array(r->arena, n, b->real_size, err);
    return out->data ? PE_OK : pe_error_at(err, pe_block_input_field(r->args));
}

/* Attention speaks of its own fields. */
static int rename_path(const struct pe_block_reader *r, const struct pe_error *inner, struct pe_error *err) {
    const char *input = pe_block_input_field(r->args);
    const char *const names[][2] = {
        {"query_positions", "positions"}, {"key_positions", "positions"}, {"q", input}, {"k", input}};
    const struct pe_stop *stop = err->stop;
    *err = *inner;
    err->stop = stop;
    for (size_t i = 0; i < PE_COUNT(names); i++) {
        size_t n = strcspn(inner->path, ".[");
        if (strlen(names[i][0]) == n && strncmp(inner->path, names[i][0], n) == 0) {
            snprintf(err->path, sizeof err->path, "%s%s", names[i][1], inner->path + n);
        }
    }
    return err->code;
}

static int attention_read(struct pe_block_reader *r, struct pe_attention *a, struct pe_error *err) {
    struct pe_block *block = r->block;
    const struct pe_plan *plan = r->args->plan;
    bool inside = plan && !pe_encoding_adds(pe_plan_row(plan));
    struct pe_tensor q, k, v, mixed;
    if (stream_open(r, &q, err) || stream_open(r, &k, err) || stream_open(r, &v, err) ||
        stream_open(r, &mixed, err)) {
        return err->code;
    }
    const struct pe_attention_mask causal = {.size = sizeof causal, .causal = true};
    const struct pe_attention_mask *usual = r->causal ? &causal : NULL;
    const struct pe_attention_args args = {
        .size = sizeof args,
        .plan = inside ? plan : NULL,
        .q = &q,
        .k = &k,
        .v = &v,
        .query_positions = inside ? r->args->positions : NULL,
        .key_positions = inside ? r->args->positions : NULL,
        .mask = r->args->mask ? r->args->mask : usual,
        .outputs = PE_ATTENTION_WEIGHTS | PE_ATTENTION_OUTPUT,
        .dtype = block->real,
    };
    struct pe_error inner = {.stop = err->stop};
    a->stop = err->stop;
    a->ordered = block->ordered;
    if (pe_attention_read(r->arena, a, &args, &inner)) {
        return rename_path(r, &inner, err);
    }
    block->q = q.data;
    block->k = k.data;
    block->v = v.data;
    block->mixed = mixed.data;
    a->unit_heads = 1;
    a->output = (struct pe_attention_rows){.real = mixed.data, .width = block->head_width};
    return PE_OK;
}

/* Attention of each layer, whose weights go to the result, or where they are not asked for (or have to be
 * rounded) to memory that all layers share. */
static void layers_fill(struct pe_block *b, const struct pe_attention *a, const struct pe_tensor *weights,
                        const struct pe_tensor *shared) {
    bool wanted = weights->data, own = b->dtype == b->real;
    size_t items = wanted ? pe_tensor_count(weights) / b->layers : 0;
    for (size_t l = 0; l < b->layers; l++) {
        unsigned char *out = wanted ? (unsigned char *)weights->data + l * items * b->size : NULL;
        b->attention[l] = *a;
        b->attention[l].dtype = b->dtype; /* what it rounds to */
        b->attention[l].size = b->size;
        b->attention[l].weights = (struct pe_attention_rows){.real = wanted && own ? out : shared->data,
                                                             .out = own ? NULL : out,
                                                             .width = b->length,
                                                             .reused = !wanted};
    }
}

static int weights_open(struct pe_block_reader *r, const struct pe_attention *a, struct pe_tensor *weights,
                        struct pe_error *err) {
    struct pe_block *b = r->block;
    size_t full[] = {b->layers, b->batch, b->heads, b->length, b->length}, dim[5];
    bool wanted = pe_block_wants(r, PE_BLOCK_WEIGHTS);
    size_t shared_dim[] = {b->batch, wanted ? b->heads : 1, b->length, b->length};
    struct pe_tensor shared = {0};
    int rank = pe_block_dims(b, full, 5, dim);
    if (wanted && pe_tensor_alloc(r->arena, weights, b->dtype, rank, dim, err)) {
        return pe_error_at(err, "return");
    }
    if ((!wanted || b->dtype != b->real) && pe_tensor_alloc(r->arena, &shared, b->real, 4, shared_dim, err)) {
        return pe_error_at(err, pe_block_input_field(r->args));
    }
    b->attention = pe_arena_array(r->arena, b->layers, sizeof *b->attention, err);
    if (b->attention) {
        layers_fill(b, a, weights, &shared);
    }
    return err->code;
}

int pe_block_attention_open(struct pe_block_reader *r, struct pe_block_result *result, struct pe_error *err) {
    struct pe_attention *a = pe_arena_array(r->arena, 1, sizeof *a, err);
    if (!a || attention_read(r, a, err) || weights_open(r, a, &result->weights, err)) {
        return err->code;
    }
    result->causal = a->mask.causal;
    return PE_OK;
}
