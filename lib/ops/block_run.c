/* SPDX-License-Identifier: MIT
 *
 * One sequence through all layers (Vaswani et al. 2017, section 3.1; Xiong et al. 2020 for the place of the
 * norm):
 *
 *     pre     x = x + attention(norm1(x)),   x = x + ff(norm2(x))
 *     post    x = norm1(x + attention(x)),   x = norm2(x + ff(x))
 *     none    x = x + attention(x),          x = x + ff(x)
 *
 *     attention(h) = concat over heads(softmax(scale q.k^T + ..) v) Wo + bo,   (q, k, v) = h Wqkv + bqkv
 *     ff(h)        = f(h W1 + b1) W2 + b2
 *
 * What a layer computes the next one needs, so the parts of the work are the sequences. Attention is the
 * library's, whose streams of queries, keys and values are filled here, head by head.
 */
#include "ops/block.h"

#include "core/stop.h"
#include "kernels/activate.h"
#include "kernels/norm.h"
#include "kernels/vector.h"

#include <string.h>

static struct pe_block_scratch scratch_of(const struct pe_block *block, size_t b) {
    const struct pe_block_scratch *all = &block->scratch;
    size_t rows = b * block->length * block->real_size;
    return (struct pe_block_scratch){
        .x = all->x + rows * block->width,
        .h = all->h + rows * block->width,
        .y = all->y + rows * block->width,
        .ff = all->ff + rows * block->d_ff,
        .relative = all->relative ? all->relative + b * block->relative_bytes : NULL,
    };
}

/* out [T, n] = in [T, k] . w + bias. */
struct product {
    const unsigned char *in, *w, *bias;
    unsigned char *out;
    size_t n, k;
    size_t w_columns; /* of the whole matrix, of which w is the first of n outputs */
};

static void product_run(const struct pe_block *block, const struct product *p) {
    size_t row_bytes = p->n * block->real_size;
    struct pe_gemm gemm = {.dtype = block->real,
                           .ordered = block->ordered,
                           .b_transposed = block->transposed,
                           .m = block->length,
                           .n = p->n,
                           .k = p->k,
                           .alpha = 1,
                           .a = {.data = p->in, .ld = p->k},
                           .b = {.data = p->w, .ld = block->transposed ? p->k : p->w_columns},
                           .c = {.data = p->out, .ld = p->n},
                           .stop = block->stop};
    pe_gemm_run(&gemm);
    for (size_t t = 0; t < block->length && !pe_stop_asked(block->stop); t++) {
        pe_vector_add(block->real, p->out + t * row_bytes, p->out + t * row_bytes, p->bias, p->n);
    }
}

static void norm_run(const struct pe_block *block, const unsigned char *weight, const unsigned char *bias,
                     const unsigned char *x, unsigned char *out) {
    const struct pe_norm norm = {
        .dtype = block->real, .width = block->width, .weight = weight, .bias = bias, .eps = block->norm_eps};
    size_t row_bytes = block->width * block->real_size;
    for (size_t t = 0; t < block->length && !pe_stop_asked(block->stop); t++) {
        pe_norm_run(&norm, x + t * row_bytes, out + t * row_bytes);
    }
}

/* n numbers, in steps between which it is asked whether to stop. */
static void add(const struct pe_block *block, unsigned char *out, const unsigned char *a,
                const unsigned char *b) {
    size_t n = block->length * block->width;
    for (size_t i = 0, step; i < n && !pe_stop_asked(block->stop); i += step) {
        step = pe_stop_step(n, i);
        size_t at = i * block->real_size;
        pe_vector_add(block->real, out + at, a + at, b + at, step);
    }
}

static void copy(const struct pe_block *block, unsigned char *out, const unsigned char *x) {
    size_t n = block->length * block->width, item = block->real_size;
    for (size_t i = 0, step; i < n && !pe_stop_asked(block->stop); i += step) {
        step = pe_stop_step(n, i);
        memcpy(out + i * item, x + i * item, step * item);
    }
}

/* [T, D] to its place in a result. */
static void store(const struct pe_block *block, const unsigned char *x, unsigned char *result, size_t place) {
    size_t n = block->length * block->width;
    unsigned char *out = result + place * n * block->size;
    for (size_t i = 0, step; i < n && !pe_stop_asked(block->stop); i += step) {
        step = pe_stop_step(n, i);
        pe_vector_store(block->real, x + i * block->real_size, step, block->dtype, out + i * block->size);
    }
}

/* Queries, keys and values of every head from h [T, D]. */
static void project(const struct pe_block *block, const struct pe_block_layer *layer, size_t b,
                    const unsigned char *h) {
    unsigned char *const out[3] = {block->q, block->k, block->v};
    size_t d = block->head_width, item = block->real_size, head_items = block->length * d;
    size_t step = block->transposed ? block->width : 1; /* from output to output of the matrix */
    for (size_t i = 0; i < 3; i++) {
        for (size_t head = 0; head < block->heads && !pe_stop_asked(block->stop); head++) {
            size_t column = i * block->width + head * d;
            struct product product = {
                .in = h,
                .w = layer->part[PE_BLOCK_QKV_WEIGHT] + column * step * item,
                .bias = layer->part[PE_BLOCK_QKV_BIAS] + column * item,
                .out = out[i] + (b * block->heads + head) * head_items * item,
                .n = d,
                .k = block->width,
                .w_columns = 3 * block->width,
            };
            product_run(block, &product);
        }
    }
}

/* What the heads made, [H, T, d], side by side: [T, H*d]. */
static void gather(const struct pe_block *block, size_t b, unsigned char *out) {
    size_t row_bytes = block->head_width * block->real_size;
    const unsigned char *mixed = block->mixed + b * block->heads * block->length * row_bytes;
    for (size_t t = 0; t < block->length && !pe_stop_asked(block->stop); t++) {
        for (size_t head = 0; head < block->heads; head++) {
            memcpy(out + (t * block->heads + head) * row_bytes,
                   mixed + (head * block->length + t) * row_bytes, row_bytes);
        }
    }
}

/* y = attention(h). */
static void attend(const struct pe_block *block, size_t l, size_t b, const unsigned char *h) {
    const struct pe_block_layer *layer = &block->layer[l];
    const struct pe_block_scratch of_b = scratch_of(block, b), *s = &of_b;
    project(block, layer, b, h);
    if (pe_stop_asked(block->stop)) {
        return;
    }
    pe_attention_sequence(&block->attention[l], b, s->relative);
    gather(block, b, s->h);
    struct product product = {.in = s->h,
                              .w = layer->part[PE_BLOCK_PROJECTION_WEIGHT],
                              .bias = layer->part[PE_BLOCK_PROJECTION_BIAS],
                              .out = s->y,
                              .n = block->width,
                              .k = block->width,
                              .w_columns = block->width};
    product_run(block, &product);
}

/* ff [T, d_ff], in place. */
static void activate(const struct pe_block *block, unsigned char *ff) {
    size_t n = block->length * block->d_ff;
    for (size_t i = 0, step; i < n && !pe_stop_asked(block->stop); i += step) {
        step = pe_stop_step(n, i);
        pe_activate(block->activation, block->real, ff + i * block->real_size, step);
    }
}

/* y = ff(h). */
static void feed_forward(const struct pe_block *block, size_t l, size_t b, const unsigned char *h) {
    const struct pe_block_layer *layer = &block->layer[l];
    const struct pe_block_scratch of_b = scratch_of(block, b), *s = &of_b;
    struct product up = {.in = h,
                         .w = layer->part[PE_BLOCK_UP_WEIGHT],
                         .bias = layer->part[PE_BLOCK_UP_BIAS],
                         .out = s->ff,
                         .n = block->d_ff,
                         .k = block->width,
                         .w_columns = block->d_ff};
    product_run(block, &up);
    if (pe_stop_asked(block->stop)) {
        return;
    }
    activate(block, s->ff);
    struct product down = {.in = s->ff,
                           .w = layer->part[PE_BLOCK_DOWN_WEIGHT],
                           .bias = layer->part[PE_BLOCK_DOWN_BIAS],
                           .out = s->y,
                           .n = block->width,
                           .k = block->d_ff,
                           .w_columns = block->width};
    product_run(block, &down);
}

/* One of the two halves of a layer, with its norm where that belongs. */
static void half_run(const struct pe_block *block, size_t l, size_t b, bool second) {
    static void (*const halves[])(const struct pe_block *, size_t, size_t,
                                  const unsigned char *) = {attend, feed_forward};
    const struct pe_block_scratch of_b = scratch_of(block, b), *s = &of_b;
    const unsigned char *const *part = block->layer[l].part;
    const unsigned char *weight = part[second ? PE_BLOCK_NORM2_WEIGHT : PE_BLOCK_NORM1_WEIGHT];
    const unsigned char *bias = part[second ? PE_BLOCK_NORM2_BIAS : PE_BLOCK_NORM1_BIAS];
    const unsigned char *h = s->x;
    if (block->norm == PE_BLOCK_NORM_PRE) {
        norm_run(block, weight, bias, s->x, s->h);
        h = s->h;
    }
    halves[second](block, l, b, h);
    if (pe_stop_asked(block->stop)) {
        return;
    }
    if (block->residual) {
        add(block, s->x, s->x, s->y);
    } else {
        copy(block, s->x, s->y);
    }
    if (block->norm == PE_BLOCK_NORM_POST) {
        norm_run(block, weight, bias, s->x, s->x);
    }
}

static void stream_store(const struct pe_block *block, size_t l, size_t b) {
    if (block->stream) {
        store(block, scratch_of(block, b).x, block->stream, l * block->batch + b);
    }
}

/* x = fl(fl(input*scale) + vectors of positions), as `apply` has it. */
static void input_take(const struct pe_block *block, size_t b, unsigned char *x) {
    size_t n = block->length * block->width;
    const unsigned char *input = block->input + b * n * block->real_size;
    const unsigned char *added = block->positions;
    added = added ? added + b * block->positions_batch * block->real_size : NULL;
    for (size_t i = 0, step; i < n && !pe_stop_asked(block->stop); i += step) {
        step = pe_stop_step(n, i);
        size_t at = i * block->real_size;
        pe_vector_scale_add(block->real, x + at, input + at, block->input_scale, added ? added + at : NULL,
                            step);
    }
}

void pe_block_sequence(const void *state, size_t b) {
    const struct pe_block *block = state;
    const struct pe_block_scratch of_b = scratch_of(block, b), *s = &of_b;
    if (!block->length) {
        return;
    }
    input_take(block, b, s->x);
    stream_store(block, 0, b);
    for (size_t l = 0; l < block->layers && !pe_stop_asked(block->stop); l++) {
        half_run(block, l, b, false);
        if (pe_stop_asked(block->stop)) {
            return;
        }
        half_run(block, l, b, true);
        stream_store(block, l + 1, b);
    }
    if (!block->output || pe_stop_asked(block->stop)) {
        return;
    }
    if (block->final_norm) {
        norm_run(block, block->final_weight, block->final_bias, s->x, s->x);
    }
    store(block, s->x, block->output, b);
}
