/* SPDX-License-Identifier: MIT
 *
 * One part of attention: a block of queries of one head against all its keys.
 *
 *     project   q, k, v = x.w               embeddings only
 *     rotate                                (a rotary encoding turns copies of q and k here)
 *     multiply  s = scale * q.k^T
 *     bias      s += b                      (a relative encoding adds its term here, then the posted bias)
 *     softmax   w_j = exp(s_j - max) / sum  over the visible keys, in place, with the bias and the mask
 *     multiply  o = w.v
 *     mix                                   (an encoding with position vectors in the values adds here)
 *
 * The three places are where encodings of other families enter; nothing else knows of them.
 */
#include "ops/attention.h"

#include "core/stop.h"
#include "kernels/scores.h"
#include "kernels/vector.h"

#include <string.h>

/* The number of the block's first row among those of a result. */
static size_t first_row(const struct pe_attention_block *block, const struct pe_attention_rows *rows) {
    const struct pe_attention *a = block->a;
    size_t head = rows->reused ? block->b : block->b * a->heads + block->h;
    return head * a->queries + block->first;
}

unsigned char *pe_block_place(const struct pe_attention_block *block, const struct pe_attention_rows *rows) {
    if (rows->local) {
        size_t before = block->above * rows->width * block->a->real_size;
        return (unsigned char *)block->scratch + rows->at + before;
    }
    return rows->real + first_row(block, rows) * rows->width * block->a->real_size;
}

struct pe_const_matrix pe_block_rows(const struct pe_attention_block *block, enum pe_stream_name name,
                                     size_t row) {
    const struct pe_attention *a = block->a;
    const struct pe_stream *s = &a->stream[name];
    size_t head = block->h / (a->heads / s->heads);
    size_t first = block->b * s->batch + head * s->head + row * s->ld;
    return (struct pe_const_matrix){.data = s->data + first * a->real_size, .ld = s->ld};
}

const unsigned char *pe_block_bias(const struct pe_attention_block *block, size_t i) {
    const struct pe_attention_bias *bias = &block->a->bias;
    if (!bias->data) {
        return NULL;
    }
    size_t first = block->b * bias->batch + block->h * bias->head + i * bias->row;
    return bias->data + first * block->a->real_size;
}

/* scores [n, Tk] become weights, in place or where they are asked for. `most`: where they are plain, else NULL. */
static void block_softmax(const struct pe_attention_block *block, unsigned char *scores, const float *most) {
    const struct pe_attention *a = block->a;
    const size_t row_bytes = a->keys * a->real_size;
    unsigned char *out = pe_block_place(block, &a->weights);
    struct pe_softmax row = {.dtype = a->real, .n = a->keys, .far = a->far, .stop = a->stop};
    for (size_t i = 0; i < block->n && !pe_stop_asked(a->stop); i++) {
        row.bias = most ? NULL : pe_block_bias(block, block->first + i);
        row.out = out == scores ? NULL : out + i * row_bytes;
        pe_mask_row(&a->mask, block->b, block->first + i, &row);
        bool all = !row.hidden && row.first == 0 && row.end == a->keys;
        row.most = most && all ? most + i * PE_SOFTMAX_MOST : NULL;
        pe_softmax_run(&row, scores + i * row_bytes);
    }
}

static void block_output(const struct pe_attention_block *block, const unsigned char *weights) {
    const struct pe_attention *a = block->a;
    struct pe_gemm gemm = {.dtype = a->real,
                           .ordered = a->ordered,
                           .stop = a->stop,
                           .m = block->n,
                           .n = a->value_width,
                           .k = a->keys,
                           .alpha = 1,
                           .a = {.data = weights, .ld = a->keys},
                           .b = pe_block_rows(block, PE_STREAM_V, 0),
                           .c = {.data = pe_block_place(block, &a->output), .ld = a->value_width}};
    pe_gemm_run(&gemm);
}

/* Rounds the block of one result to the type asked for. */
static void block_store(const struct pe_attention_block *block, const struct pe_attention_rows *rows) {
    const struct pe_attention *a = block->a;
    if (!rows->out) {
        return;
    }
    unsigned char *real = pe_block_place(block, rows);
    unsigned char *out = rows->out + first_row(block, rows) * rows->width * a->size;
    size_t n = out == real ? 0 : block->n * rows->width;
    for (size_t i = 0, step; i < n && !pe_stop_asked(a->stop); i += step) {
        step = pe_stop_step(n, i);
        pe_vector_store(a->real, real + i * a->real_size, step, a->dtype, out + i * a->size);
    }
}

_Static_assert(PE_SCORES_COLUMNS == PE_SOFTMAX_MOST, "what scores find of each row, softmax takes");

/* Some rows, from products to weights. */
static void strip_run(const struct pe_attention_block *strip) {
    const struct pe_attention *a = strip->a;
    unsigned char *scores =
        a->far ? (unsigned char *)strip->scratch + a->scores_at : pe_block_place(strip, &a->weights);
    if (a->plain) {
        float most[PE_STRIP_ROWS * PE_SOFTMAX_MOST];
        pe_block_scores(strip, scores, most);
        block_softmax(strip, scores, most);
        return;
    }
    pe_block_multiply(strip, PE_STREAM_Q, PE_STREAM_K, scores);
    pe_block_content(strip, scores);
    if (a->relative) {
        pe_block_relate(strip, scores);
    }
    pe_block_explain(strip, scores);
    block_softmax(strip, scores, NULL);
}

static void block_run(const struct pe_attention_block *block) {
    const struct pe_attention *a = block->a;
    struct pe_attention_block strip = *block;
    size_t most = a->strip_rows ? a->strip_rows : block->n;
    for (; strip.above < block->n && !pe_stop_asked(a->stop); strip.above += strip.n) {
        strip.first = block->first + strip.above;
        strip.n = block->n - strip.above < most ? block->n - strip.above : most;
        strip_run(&strip);
    }
    if (a->far) {
        pe_softmax_settle();
    }
    if (pe_rows_made(&a->output)) {
        unsigned char *weights = pe_block_place(block, &a->weights);
        block_output(block, weights);
        if (a->relative && a->relative->row->mix) {
            pe_block_mix(block, weights);
        }
    }
    block_store(block, &a->weights);
    block_store(block, &a->logits);
    block_store(block, &a->content);
    block_store(block, &a->position);
    block_store(block, &a->output);
    for (size_t i = 0; i < PE_TERMS; i++) {
        block_store(block, &a->terms[i]);
    }
}

/* x [rows, inner] . w[:, head] of the stream's head. */
static void stream_project(const struct pe_attention *a, const struct pe_stream *s, size_t b, size_t head) {
    size_t item = a->real_size;
    struct pe_gemm gemm = {.dtype = a->real,
                           .ordered = a->ordered,
                           .stop = a->stop,
                           .m = s->rows,
                           .n = s->width,
                           .k = s->inner,
                           .alpha = 1,
                           .a = {.data = s->source + b * s->source_batch * item, .ld = s->inner},
                           .b = {.data = s->w + head * s->width * item, .ld = s->heads * s->width},
                           .c = {.data = s->projected + (b * s->batch + head * s->head) * item, .ld = s->ld}};
    pe_gemm_run(&gemm);
}

/* The rows of a head, turned (or brought to one length) in their place, or from their source into it. */
static void stream_turn(const struct pe_attention *a, const struct pe_stream *s, size_t b, size_t head) {
    size_t row_bytes = s->width * a->real_size;
    unsigned char *out = s->projected + (b * s->batch + head * s->head) * a->real_size;
    const unsigned char *x = s->source + (b * s->source_batch + head * s->source_head) * a->real_size;
    for (size_t t = 0; t < s->rows && !pe_stop_asked(a->stop); t++, out += s->ld * a->real_size) {
        if (!s->w) {
            memcpy(out, x + t * s->source_ld * a->real_size, row_bytes);
        }
        if (s->turns) {
            pe_turns_run(s->turns, b, t, a->real, out, out);
        }
        if (s->unit) {
            double length = s == &a->stream[PE_STREAM_Q] ? pe_block_cosine(a, head) : 1;
            pe_vector_unit(a->real, out, s->width, length);
        }
    }
}

/* The vectors of the unit's heads h .. h+unit_heads-1. Units share no head of any stream. */
static void unit_project(const struct pe_attention *a, size_t b, size_t h) {
    for (size_t i = 0; i < PE_STREAM_COUNT; i++) {
        const struct pe_stream *s = &a->stream[i];
        bool filled = s->w || s->turns || s->unit;
        size_t group = filled ? a->heads / s->heads : 1;
        for (size_t head = h / group; filled && head * group < h + a->unit_heads; head++) {
            if (s->w) {
                stream_project(a, s, b, head);
            }
            if (s->turns || s->unit) {
                stream_turn(a, s, b, head);
            }
        }
    }
}

/* Rows first .. first+n-1 of head h of sequence b, block by block. */
static void head_run(const struct pe_attention *a, struct pe_attention_block block, size_t n) {
    size_t end = block.first + n, most = a->block_rows ? a->block_rows : n;
    for (; block.first < end && !pe_stop_asked(a->stop); block.first += block.n) {
        block.n = end - block.first < most ? end - block.first : most;
        block_run(&block);
    }
}

/* n rows of the unit's heads, from block.first on. */
static void unit_run(struct pe_attention_block block, size_t unit, size_t n) {
    const struct pe_attention *a = block.a;
    size_t units_per_batch = a->heads / a->unit_heads;
    block.b = unit / units_per_batch;
    block.h = unit % units_per_batch * a->unit_heads;
    unit_project(a, block.b, block.h);
    for (size_t i = 0; i < a->unit_heads && !pe_stop_asked(a->stop); i++, block.h++) {
        head_run(a, block, n);
    }
}

void pe_attention_sequence(const struct pe_attention *a, size_t b, void *scratch) {
    const struct pe_attention_block block = {.a = a, .scratch = scratch};
    for (size_t h = 0; h < a->heads && !pe_stop_asked(a->stop); h++) {
        unit_run(block, b * a->heads + h, a->queries);
    }
}

static void part_run(const void *state, struct pe_lanes_part part) {
    const struct pe_attention *a = state;
    struct pe_attention_block block = {
        .a = a, .run = part.run, .scratch = a->lane ? a->lane + part.lane * a->lane_bytes : NULL};
    if (a->blocks > 1) {
        block.first = part.n % a->blocks * a->block_rows;
        size_t left = a->queries - block.first;
        unit_run(block, part.n / a->blocks, left < a->block_rows ? left : a->block_rows);
        return;
    }
    size_t unit = part.n * a->part_units;
    for (size_t i = 0; i < a->part_units && unit < a->units && !pe_stop_asked(a->stop); i++, unit++) {
        unit_run(block, unit, a->queries);
    }
}

void pe_attention_part(const void *state, size_t part) {
    const struct pe_attention *a = state;
    const struct pe_lanes_work work = {.n_parts = a->n_parts, .state = a, .run = part_run};
    if (a->lanes) {
        pe_lanes_run(a->lanes, &work);
    } else {
        part_run(a, (struct pe_lanes_part){.n = part});
    }
}
