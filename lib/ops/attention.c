/* SPDX-License-Identifier: MIT
 *
 * attention: opening. After the inputs are read this reserves the results and cuts the work into parts, by
 * sizes alone: the same parts, and the same bits, on any number of threads.
 *
 * A product of matrices packs the keys anew for each block of queries, so blocks are as large as a cache
 * allows: the whole head where its weights fit BLOCK_ITEMS, at least ROWS_LEAST queries otherwise. Small
 * heads are put together until a part is worth handing to a thread. When q, k and v are projected from
 * embeddings, a unit is all the query heads that share one key head, so that no projection is made twice or
 * waited for.
 */
#include "ops/attention.h"

#include "ops/operand.h"

#define BLOCK_ITEMS ((size_t)1 << 18) /* of weights: 1 MiB as float32 */
#define ROWS_LEAST  ((size_t)128)
#define PART_ITEMS  ((size_t)1 << 14) /* of weights, put together from small heads */
#define ALIGN       ((size_t)64)      /* of scratch memory */

/* One result: [.., Tq, width] with the leading axes of the weights, `lead` more in front. */
struct result {
    struct pe_tensor *tensor; /* NULL: not asked for */
    struct pe_attention_rows *rows;
    size_t width;
    size_t copies; /* tensors in a row, with an axis in front; 0: one without such an axis */
};

/* Reserves a result; when it is not asked for, only the memory of the arithmetic. */
static int result_open(struct pe_arena *arena, const struct pe_attention *a, const struct result *result,
                       struct pe_error *err) {
    const size_t full[5] = {result->copies, a->batch, a->heads, a->queries, result->width};
    size_t dim[5];
    int rank = 0;
    if (result->copies) {
        dim[rank++] = result->copies;
    }
    for (int i = 5 - a->rank; i < 5; i++) {
        dim[rank++] = full[i];
    }
    struct pe_tensor real, out;
    if (pe_tensor_alloc(arena, &real, a->real, rank, dim, err)) {
        return err->code;
    }
    out = real;
    if (result->tensor && a->dtype != a->real && pe_tensor_alloc(arena, &out, a->dtype, rank, dim, err)) {
        return err->code;
    }
    if (result->tensor) {
        *result->tensor = out;
    }
    size_t items = a->batch * a->heads * a->queries * result->width; /* of one copy; fits, as all of it did */
    for (size_t i = 0; i < (result->copies ? result->copies : 1); i++) {
        result->rows[i].real = (unsigned char *)real.data + i * items * a->real_size;
        result->rows[i].out = result->tensor ? (unsigned char *)out.data + i * items * a->size : NULL;
        result->rows[i].width = result->width;
    }
    return PE_OK;
}

static int results_open(struct pe_arena *arena, struct pe_attention *a, struct pe_attention_result *out,
                        unsigned outputs, struct pe_error *err) {
    bool split = a->split && (outputs & PE_ATTENTION_POSITION); /* is logits - content */
    const struct {
        unsigned bit;
        bool needed;
        struct result result;
    } all[] = {
        {PE_ATTENTION_WEIGHTS, true, {&out->weights, &a->weights, a->keys, 0}},
        {PE_ATTENTION_LOGITS, split, {&out->logits, &a->logits, a->keys, 0}},
        {PE_ATTENTION_CONTENT, split, {&out->content, &a->content, a->keys, 0}},
        {PE_ATTENTION_POSITION, false, {&out->position, &a->position, a->keys, 0}},
        {PE_ATTENTION_OUTPUT, false, {&out->output, &a->output, a->value_width, 0}},
        {PE_ATTENTION_TERMS, false, {&out->terms, a->terms, a->keys, PE_TERMS}},
    };
    for (size_t i = 0; i < PE_COUNT(all); i++) {
        struct result result = all[i].result;
        if (!(outputs & all[i].bit)) {
            result.tensor = NULL;
        }
        if ((all[i].needed || result.tensor) && result_open(arena, a, &result, err)) {
            return err->code;
        }
    }
    return PE_OK;
}

static size_t quotient_up(size_t a, size_t b) {
    return a / b + (a % b != 0);
}

/* Returns the number of parts. */
static size_t parts_cut(struct pe_attention *a) {
    size_t row = a->keys ? a->keys : 1, head = a->queries * row; /* fits: weights are reserved */
    a->unit_heads = a->projects ? a->heads / a->key_heads : 1;
    a->units = a->batch * (a->heads / a->unit_heads);
    a->block_rows = a->queries;
    if (!a->projects && head > BLOCK_ITEMS) {
        a->block_rows = BLOCK_ITEMS / row > ROWS_LEAST ? BLOCK_ITEMS / row : ROWS_LEAST;
    }
    a->blocks = a->queries ? quotient_up(a->queries, a->block_rows) : 0;
    a->part_units = 1;
    if (a->blocks > 1) {
        return a->units * a->blocks;
    }
    if (head * a->unit_heads < PART_ITEMS) {
        a->part_units = PART_ITEMS / (head * a->unit_heads + 1) + 1;
    }
    return a->blocks ? quotient_up(a->units, a->part_units) : 0;
}

/* Roughly 40 operations of a product, or one weight of the softmax, in a nanosecond. */
static double cost_ns(const struct pe_attention *a) {
    double rows = (double)a->batch * (double)a->heads * (double)a->queries, scores = rows * (double)a->keys;
    double flops = 2 * scores * (double)a->width;
    if (a->output.real) {
        flops += 2 * scores * (double)a->value_width;
    }
    for (size_t i = 0; i < PE_STREAM_COUNT; i++) {
        const struct pe_stream *s = &a->stream[i];
        if (s->w) {
            flops += 2.0 * (double)a->batch * (double)s->heads * (double)s->rows * (double)s->width *
                     (double)s->inner;
        }
    }
    if (a->content.real && a->split) {
        flops += 2 * scores * (double)a->width;
    }
    if (a->terms[0].real) {
        flops += 8 * scores * (double)a->width;
    }
    double wide = a->real == PE_DTYPE_F64 ? 2 : 1, biases = 0;
    if (a->relative && !a->relative->row->term) {
        biases = scores * pe_relative_cost_ns(a->relative);
    }
    return wide * (flops / 40 + scores) + biases;
}

/* Memory for the encoding's term, of each part. */
static int scratch_open(struct pe_arena *arena, struct pe_attention *a, size_t n_parts,
                        struct pe_error *err) {
    if (!a->relative || !a->relative->scratch_bytes) {
        return PE_OK;
    }
    a->relative->scratch_bytes = (a->relative->scratch_bytes + ALIGN - 1) / ALIGN * ALIGN;
    size_t bytes, factors[2] = {n_parts, a->relative->scratch_bytes};
    if (!pe_size_product(factors, 2, &bytes)) {
        bytes = SIZE_MAX;
    }
    a->scratch = pe_arena_alloc(arena, bytes, err);
    return a->scratch ? PE_OK : pe_error_at(err, "encoding");
}

int pe_attention_open(struct pe_arena *arena, struct pe_work *work, struct pe_attention_result *result,
                      const struct pe_attention_args *theirs, struct pe_error *err) {
    struct pe_attention_args args;
    *work = (struct pe_work){0};
    *result = (struct pe_attention_result){0};
    if (err->code || pe_args_copy(&args, sizeof args, theirs, theirs->size, err)) {
        return err->code;
    }
    struct pe_attention *a = pe_arena_array(arena, 1, sizeof *a, err);
    if (a) {
        a->stop = err->stop;
    }
    if (!a || pe_attention_read(arena, a, &args, err)) {
        return err->code;
    }
    unsigned outputs = args.outputs ? args.outputs : PE_ATTENTION_WEIGHTS;
    if (results_open(arena, a, result, outputs, err)) {
        *result = (struct pe_attention_result){0};
        return err->code;
    }
    size_t n_parts = parts_cut(a);
    if (scratch_open(arena, a, n_parts, err) ||
        (a->relative && pe_relative_prepare(arena, a->relative, err))) {
        *result = (struct pe_attention_result){0};
        return err->code;
    }
    *work = (struct pe_work){
        .n_parts = n_parts,
        .cost_ns = cost_ns(a),
        .state = a,
        .run = pe_attention_part,
        .stop = err->stop,
    };
    return PE_OK;
}
