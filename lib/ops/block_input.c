/* SPDX-License-Identifier: MIT
 *
 * What goes into the first layer: embeddings, or vectors of tokens, and the vectors of an absolute encoding.
 * Numbers of tokens stand for rows of the vocabulary that is posted with a GPT's weights.
 *
 * The vector of a token is made of its text, so that a sentence can be tried without a vocabulary: the same
 * word has the same vector wherever it stands, and other words have others, nearly at right angles.
 *
 *     h     = FNV-1a, 64 bits, of the token's bytes
 *     words = Philox4x32-10(key = token_seed (low word, high word), counter = (h low, h high, column, 1))
 *     value = n(words)                      n standard normal, as in the type `random`
 */
#include "core/rng.h"
#include "kernels/vector.h"
#include "ops/block.h"

#include <math.h>

#define CHUNK  128
#define STREAM 1 /* the last word of the counter: 0 is that of `random`, 2 that of weights */

/* ---- Sizes --------------------------------------------------------------------------------------------- */

static int tokens_bind(struct pe_block_reader *r, struct pe_error *err) {
    const struct pe_block_args *args = r->args;
    struct pe_block *block = r->block;
    bool adds = args->plan && pe_encoding_adds(pe_plan_row(args->plan));
    if (args->n_tokens > PE_BLOCK_TOKENS_MAX) {
        return pe_fail(err, PE_ERR_RANGE, "tokens", "has %zu items, at most %d are allowed", args->n_tokens,
                       PE_BLOCK_TOKENS_MAX);
    }
    block->batch = 1;
    block->length = args->n_tokens;
    block->width = args->width ? args->width : adds ? pe_plan_width(args->plan) : pe_block_width(args);
    if (!block->width) {
        return pe_fail(
            err, PE_ERR_MISSING, "width",
            "is missing: how wide the vectors of the tokens are, where neither an absolute encoding nor "
            "posted weights tell");
    }
    return PE_OK;
}

static int shape_fail(const struct pe_tensor *x, const char *field, const char *allowed,
                      struct pe_error *err) {
    char shape[128];
    return pe_fail(err, PE_ERR_SHAPE, field, "has shape %s, allowed are %s",
                   pe_tensor_shape_text(x, shape, sizeof shape), allowed);
}

/* The last axes of a posted tensor that are no tokens: 1 of embeddings, none of ids. */
static int tensor_bind(struct pe_block_reader *r, const struct pe_tensor *x, int inner,
                       struct pe_error *err) {
    static const char *const allowed[] = {"[T] and [B, T] with B of 1 or more",
                                          "[T, D] and [B, T, D] with B and D of 1 or more"};
    struct pe_block *block = r->block;
    int rank = x->rank - inner;
    if ((rank != 1 && rank != 2) || (inner && x->dim[rank] == 0) || (rank == 2 && x->dim[0] == 0)) {
        return shape_fail(x, inner ? "embeddings" : "token_ids", allowed[inner], err);
    }
    block->batched = rank == 2;
    block->batch = block->batched ? x->dim[0] : 1;
    block->length = x->dim[rank - 1];
    block->width = inner ? x->dim[rank] : pe_block_width(r->args);
    if (r->args->width && r->args->width != block->width) {
        return pe_fail(err, PE_ERR_CONFLICT, "width", "is %zu but the %s have D = %zu", r->args->width,
                       inner ? "embeddings" : "weights", block->width);
    }
    return PE_OK;
}

static int ids_bind(struct pe_block_reader *r, struct pe_error *err) {
    if (r->naming == PE_BLOCK_TORCH || !r->args->n_weights) {
        return pe_fail(
            err, PE_ERR_CONFLICT, "token_ids",
            "are rows of wte.weight, which comes with weights posted by the naming gpt2 or nanogpt: "
            "post embeddings, or tokens");
    }
    if (!pe_block_width(r->args)) {
        return pe_fail(err, PE_ERR_MISSING, "weights",
                       "do not tell the width, which wte.weight does: token_ids are its rows");
    }
    return tensor_bind(r, r->args->token_ids, 0, err);
}

/* One of the three. */
static int source_bind(struct pe_block_reader *r, struct pe_error *err) {
    const struct pe_block_args *args = r->args;
    int n = (args->embeddings != NULL) + (args->tokens != NULL) + (args->token_ids != NULL);
    if (n > 1) {
        return pe_fail(err, PE_ERR_CONFLICT, args->tokens ? "tokens" : "token_ids",
                       "post one of tokens, token_ids and embeddings, not %d", n);
    }
    if (n == 0) {
        return pe_fail(err, PE_ERR_MISSING, "embeddings",
                       "is missing: post embeddings, or tokens, or token_ids");
    }
    return args->tokens       ? tokens_bind(r, err)
           : args->embeddings ? tensor_bind(r, args->embeddings, 1, err)
                              : ids_bind(r, err);
}

const char *pe_block_input_field(const struct pe_block_args *args) {
    return args->embeddings ? "embeddings" : args->tokens ? "tokens" : "token_ids";
}

int pe_block_input_bind(struct pe_block_reader *r, struct pe_error *err) {
    const struct pe_block_args *args = r->args;
    if (source_bind(r, err)) {
        return err->code;
    }
    const char *field = args->embeddings ? "embeddings" : args->tokens ? "width" : "weights";
    const struct pe_block *block = r->block;
    if (block->width > PE_BLOCK_WIDTH_MAX) {
        return pe_fail(err, PE_ERR_RANGE, field, "has D = %zu, at most %d is allowed", block->width,
                       PE_BLOCK_WIDTH_MAX);
    }
    if (args->plan && pe_encoding_adds(pe_plan_row(args->plan)) &&
        pe_plan_width(args->plan) != block->width) {
        return pe_fail(err, PE_ERR_SHAPE, field, "has D = %zu but the encoding has D = %zu", block->width,
                       pe_plan_width(args->plan));
    }
    return PE_OK;
}

/* ---- Vectors ------------------------------------------------------------------------------------------- */

static uint64_t token_hash(const char *text) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const unsigned char *byte = (const unsigned char *)text; *byte; byte++) {
        hash = (hash ^ *byte) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static void token_vector(const struct pe_block_reader *r, const char *text, unsigned char *out) {
    uint64_t hash = token_hash(text), seed = r->args->token_seed;
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (size_t c = 0; c < r->block->width; c++) {
        const uint32_t counter[4] = {(uint32_t)hash, (uint32_t)(hash >> 32), (uint32_t)c, STREAM};
        uint32_t words[4];
        pe_philox(words, counter, key);
        double value = pe_random_gaussian(words, 1);
        pe_dtype_store(r->block->real, &value, 1, out + c * r->block->real_size);
    }
}

static int tokens_read(struct pe_block_reader *r, struct pe_error *err) {
    struct pe_block *block = r->block;
    struct pe_tensor x;
    if (pe_tensor_alloc(r->arena, &x, block->real, 2, (size_t[2]){block->length, block->width}, err)) {
        return pe_error_at(err, "tokens");
    }
    unsigned char *rows = x.data;
    for (size_t t = 0; t < block->length && !pe_error_poll(err); t++) {
        token_vector(r, r->args->tokens[t], rows + t * block->width * block->real_size);
    }
    block->input = rows;
    return err->code;
}

static int embeddings_read(struct pe_block_reader *r, struct pe_error *err) {
    struct pe_operand_rule rule = {.name = "embeddings", .real = r->block->real};
    struct pe_operand x;
    if (pe_operand_read(r->arena, &x, r->args->embeddings, &rule, err)) {
        return err->code;
    }
    r->block->input = x.tensor.data;
    return PE_OK;
}

/* Row `id` of the table, checked, in the type of the arithmetic. */
static int row_take(const struct pe_block_reader *r, const struct pe_tensor *table, double id,
                    unsigned char *out, struct pe_error *err) {
    size_t width = r->block->width, item = pe_dtype_size(table->dtype);
    if (!(id >= 0 && id < (double)table->dim[0]) || id != floor(id)) {
        return pe_fail(err, PE_ERR_RANGE, "", "is %g, but the rows of wte.weight are 0 to %zu", id,
                       table->dim[0] - 1);
    }
    const unsigned char *row = (const unsigned char *)table->data + (size_t)id * width * item;
    for (size_t i = 0, step; i < width; i += step) {
        double chunk[CHUNK];
        step = width - i < CHUNK ? width - i : CHUNK;
        pe_dtype_load(table->dtype, row + i * item, step, chunk);
        if (isinf(pe_vector_largest(PE_DTYPE_F64, chunk, step, false, NULL))) {
            return pe_fail(err, PE_ERR_NONFINITE, "", "row %.0f of wte.weight is not of numbers alone", id);
        }
        pe_dtype_store(r->block->real, chunk, step, out + i * r->block->real_size);
    }
    return PE_OK;
}

static int ids_read(struct pe_block_reader *r, struct pe_error *err) {
    struct pe_block *block = r->block;
    const struct pe_tensor *ids = r->args->token_ids, *table = pe_block_vocabulary(r, err);
    struct pe_tensor x;
    char path[sizeof err->path];
    if (!table) {
        return err->code;
    }
    if (table->rank != 2 || table->dim[0] == 0 || table->dim[1] != block->width) {
        return shape_fail(table, "weights[\"wte.weight\"]", "[tokens, D]", err);
    }
    size_t n = block->batch * block->length, row_bytes = block->width * block->real_size;
    if (pe_tensor_alloc(r->arena, &x, block->real, 2, (size_t[2]){n, block->width}, err)) {
        return pe_error_at(err, "token_ids");
    }
    for (size_t t = 0; t < n && !pe_error_poll(err); t++) {
        double id;
        pe_dtype_load(ids->dtype, (const char *)ids->data + t * pe_dtype_size(ids->dtype), 1, &id);
        if (row_take(r, table, id, (unsigned char *)x.data + t * row_bytes, err)) {
            pe_error_at(err, pe_tensor_index_text(ids, t, path, sizeof path));
            return pe_error_at(err, "token_ids");
        }
    }
    block->input = x.data;
    return err->code;
}

/* The vectors that are added: [T, D], or [B, T, D] for positions of each sequence. */
static int encoding_read(struct pe_block_reader *r, struct pe_error *err) {
    struct pe_block *block = r->block;
    const struct pe_plan *plan = r->args->plan;
    size_t batch = block->batched ? block->batch : 0;
    struct pe_positions positions = {.length = block->length, .axes = 1, .step = 1};
    if (r->args->positions) {
        positions = pe_positions_for(plan, r->args->positions, batch, block->length);
    }
    if (pe_positions_fit(plan, &positions, batch, block->length, "positions", err) ||
        (r->args->positions ? pe_positions_admit(plan, &positions, block->real, "positions", err)
                            : pe_positions_admit_default(plan, &positions, block->real, "positions",
                                                         pe_block_input_field(r->args), err))) {
        return err->code;
    }
    struct pe_tensor p;
    size_t n = pe_positions_count(&positions);
    if (pe_tensor_alloc(r->arena, &p, block->real, 2, (size_t[2]){n, block->width}, err)) {
        return err->code;
    }
    const struct pe_rows rows = {
        .plan = plan, .positions = &positions, .dtype = block->real, .stop = err->stop};
    pe_rows_encode(&rows, 0, n, p.data);
    block->positions = p.data;
    block->positions_batch = positions.batch > 1 ? block->length * block->width : 0;
    return pe_error_poll(err);
}

int pe_block_input_read(struct pe_block_reader *r, struct pe_error *err) {
    const struct pe_plan *plan = r->args->plan;
    const struct pe_encoding *row = plan ? pe_plan_row(plan) : NULL;
    const struct pe_operand_scale scale = {r->args->scale_mode, r->args->scale};
    if (r->args->tokens       ? tokens_read(r, err)
        : r->args->embeddings ? embeddings_read(r, err)
                              : ids_read(r, err)) {
        return err->code;
    }
    enum pe_dtype allowed = r->block->dtype == PE_DTYPE_F64 ? PE_DTYPE_F64 : PE_DTYPE_F32;
    if (pe_operand_scale_read(&scale, r->block->width, allowed, &r->block->input_scale, err)) {
        return err->code;
    }
    if (r->args->positions && (!row || row->info.family == PE_FAMILY_NONE)) {
        return pe_fail(err, PE_ERR_CONFLICT, "positions",
                       "no encoding takes these positions: give one that does, or leave them out");
    }
    return row && pe_encoding_adds(row) ? encoding_read(r, err) : PE_OK;
}
