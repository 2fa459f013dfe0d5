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
 *
 * What is not asked for, or has to be rounded, is there for one block at a time: weights for the output alone
 * take a few blocks, not [H, Tq, Tk]. The blocks are the same ones either way, and so are the bits, which of a
 * BLAS may depend on how many rows there are.
 */
#include "ops/attention.h"

#include "ops/operand.h"

#define BLOCK_ITEMS ((size_t)1 << 18) /* of weights: 1 MiB as float32 */
#define ROWS_LEAST  ((size_t)128)
#define LANES_BYTES ((size_t)32 << 20) /* of all lanes, where one is not more */
#define LANES_MOST  ((size_t)64)
#define PART_ITEMS  ((size_t)1 << 14) /* of weights, put together from small heads */
#define ALIGN       ((size_t)64)      /* of scratch memory */

static size_t quotient_up(size_t a, size_t b) {
    return a / b + (a % b != 0);
}

/* Rows of a block, of which a head has so many weights. */
static size_t block_rows(const struct pe_attention *a, size_t head) {
    size_t rows = BLOCK_ITEMS / (a->keys ? a->keys : 1);
    return head <= BLOCK_ITEMS ? a->queries : rows > ROWS_LEAST ? rows : ROWS_LEAST;
}

/* How the work is cut; PE_ERR_LIMIT where nobody could count it. */
static int parts_cut(struct pe_arena *arena, struct pe_attention *a, struct pe_error *err) {
    const size_t sizes[5] = {a->queries, a->keys ? a->keys : 1, sizeof(double), a->batch, a->heads};
    size_t head = sizes[0] * sizes[1], all;
    if (!pe_size_product(sizes, 3, &all) || !pe_size_product(sizes, 5, &all)) {
        return pe_arena_alloc(arena, SIZE_MAX, err) ? PE_OK : err->code;
    }
    a->unit_heads = a->projects ? a->heads / a->key_heads : 1;
    a->units = a->batch * (a->heads / a->unit_heads);
    a->block_rows = block_rows(a, head);
    a->blocks = a->queries ? quotient_up(a->queries, a->block_rows) : 0;
    a->blocks = a->projects && a->blocks ? 1 : a->blocks;
    a->part_units = 1;
    if (a->blocks <= 1 && head * a->unit_heads < PART_ITEMS) {
        a->part_units = PART_ITEMS / (head * a->unit_heads + 1) + 1;
    }
    a->n_parts = a->blocks ? quotient_up(a->units * a->blocks, a->part_units) : 0;
    return PE_OK;
}

/* One result: [.., Tq, width] with the leading axes of the weights, `lead` more in front. */
struct result {
    struct pe_tensor *tensor; /* NULL: not asked for */
    struct pe_attention_rows *rows;
    size_t width;
    size_t copies; /* tensors in a row, with an axis in front; 0: one without such an axis */
};

/* Room in a lane; what does not fit a size becomes SIZE_MAX, which no arena has. */
static void lane_grow(struct pe_attention *a, size_t bytes) {
    bool fits = bytes <= SIZE_MAX - ALIGN && a->lane_bytes <= SIZE_MAX - ALIGN - bytes;
    a->lane_bytes = fits ? a->lane_bytes + (bytes + ALIGN - 1) / ALIGN * ALIGN : SIZE_MAX;
}

/* [.., Tq, width]; returns the rank. */
static int result_shape(const struct pe_attention *a, const struct result *result, size_t dim[5]) {
    const size_t full[5] = {result->copies, a->batch, a->heads, a->queries, result->width};
    int rank = 0;
    if (result->copies) {
        dim[rank++] = result->copies;
    }
    for (int i = 5 - a->rank; i < 5; i++) {
        dim[rank++] = full[i];
    }
    return rank;
}

/* Reserves a result; what is not asked for, or rounded, has rows in the lanes. */
static int result_open(struct pe_arena *arena, struct pe_attention *a, const struct result *result,
                       struct pe_error *err) {
    unsigned char *data = NULL;
    size_t items = 0; /* of one copy */
    if (result->tensor) {
        size_t dim[5];
        int rank = result_shape(a, result, dim);
        if (pe_tensor_alloc(arena, result->tensor, a->dtype, rank, dim, err)) {
            return err->code;
        }
        data = result->tensor->data;
        items = a->batch * a->heads * a->queries * result->width; /* fits, as the tensor did */
    }
    for (size_t i = 0; i < (result->copies ? result->copies : 1); i++) {
        unsigned char *out = data ? data + i * items * a->size : NULL;
        bool local = !out || a->dtype != a->real;
        result->rows[i] = (struct pe_attention_rows){.real = local ? NULL : out,
                                                     .out = out,
                                                     .width = result->width,
                                                     .local = local,
                                                     .at = a->lane_bytes};
        lane_grow(a, local ? a->block_rows * result->width * a->real_size : 0);
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
    lane_grow(a, a->relative ? a->relative->scratch_bytes : 0);
    for (size_t i = 0; i < PE_COUNT(all); i++) {
        size_t dim[5];
        int rank = result_shape(a, &all[i].result, dim);
        if ((outputs & all[i].bit) && pe_result_ask(arena, a->dtype, rank, dim, err)) {
            return err->code;
        }
    }
    for (size_t i = 0; i < PE_COUNT(all); i++) {
        struct result result = all[i].result;
        if (!(outputs & all[i].bit)) {
            result.tensor = NULL;
        }
        if ((all[i].needed || result.tensor) && result_open(arena, a, &result, err)) {
            return err->code;
        }
    }
    pe_scores_plan(a);
    a->packed_at = a->lane_bytes;
    lane_grow(a, pe_scores_packed_bytes(a));
    a->scores_at = a->lane_bytes;
    lane_grow(a, pe_scores_strip_bytes(a));
    return PE_OK;
}

/* Roughly 40 operations of a product, or one weight of the softmax, in a nanosecond. */
static double cost_ns(const struct pe_attention *a) {
    double rows = (double)a->batch * (double)a->heads * (double)a->queries, scores = rows * (double)a->keys;
    double flops = 2 * scores * (double)a->width;
    if (pe_rows_made(&a->output)) {
        flops += 2 * scores * (double)a->value_width;
    }
    for (size_t i = 0; i < PE_STREAM_COUNT; i++) {
        const struct pe_stream *s = &a->stream[i];
        if (s->w) {
            flops += 2.0 * (double)a->batch * (double)s->heads * (double)s->rows * (double)s->width *
                     (double)s->inner;
        }
    }
    if (pe_rows_made(&a->content) && a->split) {
        flops += 2 * scores * (double)a->width;
    }
    if (pe_rows_made(&a->terms[0])) {
        flops += 8 * scores * (double)a->width;
    }
    double wide = a->real == PE_DTYPE_F64 ? 2 : 1, biases = 0;
    if (a->relative) {
        biases = scores * pe_relative_cost_ns(a->relative, a->keys);
    }
    return wide * (flops / 40 + scores) + biases;
}

/* Memory for a few blocks at a time. */
static int lanes_open(struct pe_arena *arena, struct pe_attention *a, struct pe_error *err) {
    size_t most = LANES_BYTES, bytes, left = pe_arena_limit(arena) - pe_arena_used(arena);
    if (!a->lane_bytes || !a->n_parts) {
        return PE_OK;
    }
    most = left / 2 < most ? left / 2 : most;
    size_t n = most / a->lane_bytes < LANES_MOST ? most / a->lane_bytes : LANES_MOST;
    n = n < a->n_parts ? n : a->n_parts;
    n = n ? n : 1;
    if (!pe_size_product((size_t[2]){n, a->lane_bytes}, 2, &bytes)) {
        bytes = SIZE_MAX;
    }
    a->lane = pe_arena_alloc(arena, bytes, err);
    a->lanes = pe_lanes_open(arena, n, err);
    a->packed = pe_arena_array(arena, n, sizeof *a->packed, err);
    bool its = a->relative && a->relative->scratch_bytes > a->lane_bytes / 2;
    return err->code && its ? pe_error_at(err, "encoding") : err->code;
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
    if (parts_cut(arena, a, err) || results_open(arena, a, result, outputs, err) ||
        lanes_open(arena, a, err) || (a->relative && pe_relative_prepare(arena, a->relative, err))) {
        *result = (struct pe_attention_result){0};
        return err->code;
    }
    *work = (struct pe_work){
        .n_parts = a->n_parts,
        .cost_ns = cost_ns(a),
        .state = a,
        .run = pe_attention_part,
        .stop = err->stop,
    };
    return PE_OK;
}
