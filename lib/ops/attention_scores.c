/* SPDX-License-Identifier: MIT
 *
 * q.k^T of a block. In float32 by tiles of our own (kernels/scores.h), for which keys are packed: once a head in each
 * lane, as a lane keeps what it packed last, and the next block is nearly always of the same head. Where the keys of a
 * head are more than a lane keeps, they are packed piece by piece for each block, as a BLAS does it.
 *
 * A BLAS has the rest: float64, whose order is fixed where it matters (kernels/ordered.h), vectors so wide that few
 * keys fit, and a few queries alone, which are not worth packing for.
 */
#include "kernels/scores.h"
#include "ops/attention.h"

#include <math.h>

#define QUERIES_LEAST ((size_t)8)
#define WIDTH_MOST    ((size_t)1024)
#define PACKED_MOST   ((size_t)1 << 18) /* numbers of packed keys: 1 MiB */
#define FAR_BYTES     ((size_t)8 << 20) /* of weights that caches will not keep */

static void packing_plan(struct pe_attention *a) {
    size_t most = PACKED_MOST / (a->width ? a->width : 1) / PE_SCORES_COLUMNS * PE_SCORES_COLUMNS;
    bool by_tiles = a->real == PE_DTYPE_F32 && !a->ordered && a->queries >= QUERIES_LEAST && a->width > 0 &&
                    a->width <= WIDTH_MOST;
    a->instructions = pe_instructions();
    a->packed_keys = !by_tiles ? 0 : a->keys < most ? a->keys : most;
}

void pe_scores_plan(struct pe_attention *a) {
    packing_plan(a);
    bool others = (a->split && pe_rows_made(&a->content)) || pe_rows_made(&a->terms[0]);
    if (others || !a->packed_keys ||
        a->packed_keys < a->keys) { /* what is packed would change with every strip */
        a->strip_rows = a->block_rows;
        return;
    }
    a->strip_rows = a->relative ? PE_LOGITS_ROWS : PE_STRIP_ROWS;
    a->plain = !a->relative && !pe_rows_made(&a->logits) && !pe_rows_made(&a->content) &&
               !pe_rows_made(&a->position);
    size_t rows = a->batch * a->heads * a->queries;
    a->far = a->plain && a->weights.real && !pe_rows_made(&a->output) && a->keys > 0 &&
             rows >= FAR_BYTES / a->real_size / a->keys;
}

size_t pe_scores_packed_bytes(const struct pe_attention *a) {
    return a->packed_keys ? pe_scores_packed(a->packed_keys, a->width) * sizeof(float) : 0;
}

size_t pe_scores_strip_bytes(const struct pe_attention *a) {
    return a->far ? a->strip_rows * a->keys * a->real_size : 0;
}

/* n keys from `first` on. They are those of the last time, or are packed now. */
static const float *keys_pack(const struct pe_attention_block *block, enum pe_stream_name stream,
                              size_t first, size_t n) {
    const struct pe_attention *a = block->a;
    unsigned char *lane = block->scratch;
    struct pe_packed *packed = &a->packed[(size_t)(lane - a->lane) / a->lane_bytes];
    float *keys = (float *)(void *)(lane + a->packed_at);
    size_t head = block->h / (a->heads / a->stream[stream].heads);
    bool same = packed->is_filled && packed->run == block->run && packed->stream == stream &&
                packed->b == block->b && packed->head == head && packed->first == first;
    if (!same) {
        pe_scores_pack(pe_block_rows(block, stream, first), n, a->width, keys);
        *packed = (struct pe_packed){stream, true, block->run, block->b, head, first};
    }
    return keys;
}

static struct pe_scores scores_of(const struct pe_attention_block *block, enum pe_stream_name q) {
    const struct pe_attention *a = block->a;
    return (struct pe_scores){.instructions = a->instructions,
                              .m = block->n,
                              .k = a->width,
                              .alpha = (float)a->scale,
                              .a = pe_block_rows(block, q, block->first),
                              .stop = a->stop};
}

void pe_block_scores(const struct pe_attention_block *block, unsigned char *out, float *most) {
    const struct pe_attention *a = block->a;
    struct pe_scores scores = scores_of(block, PE_STREAM_Q);
    for (size_t i = 0; i < block->n * PE_SCORES_COLUMNS; i++) {
        most[i] = -INFINITY;
    }
    scores.n = a->keys;
    scores.packed = keys_pack(block, PE_STREAM_K, 0, a->keys);
    scores.c = (struct pe_matrix){out, a->keys};
    scores.bias = (struct pe_const_matrix){pe_block_bias(block, block->first), a->bias.row};
    scores.most = most;
    pe_scores_run(&scores);
}

static void tiles_multiply(const struct pe_attention_block *block, enum pe_stream_name q,
                           enum pe_stream_name k, unsigned char *out) {
    const struct pe_attention *a = block->a;
    struct pe_scores scores = scores_of(block, q);
    for (size_t first = 0; first < a->keys && !pe_stop_asked(a->stop); first += scores.n) {
        scores.n = a->keys - first < a->packed_keys ? a->keys - first : a->packed_keys;
        scores.packed = keys_pack(block, k, first, scores.n);
        scores.c = (struct pe_matrix){(float *)(void *)out + first, a->keys};
        pe_scores_run(&scores);
    }
}

void pe_block_multiply(const struct pe_attention_block *block, enum pe_stream_name q, enum pe_stream_name k,
                       unsigned char *out) {
    const struct pe_attention *a = block->a;
    if (a->packed_keys) {
        tiles_multiply(block, q, k, out);
        return;
    }
    struct pe_gemm gemm = {.dtype = a->real,
                           .ordered = a->ordered,
                           .stop = a->stop,
                           .b_transposed = true,
                           .m = block->n,
                           .n = a->keys,
                           .k = a->width,
                           .alpha = a->scale,
                           .a = pe_block_rows(block, q, block->first),
                           .b = pe_block_rows(block, k, 0),
                           .c = {.data = out, .ld = a->keys}};
    pe_gemm_run(&gemm);
}
