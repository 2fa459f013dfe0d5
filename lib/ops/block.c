/* SPDX-License-Identifier: MIT
 *
 * block: opening. Sizes first, then the weights and the input, then attention, the memory of each sequence, and
 * at last, as it takes the longest, the numbers of weights from a seed.
 */
#include "ops/block.h"

#define EPS   1e-5
#define ALIGN ((size_t)64)

/* ---- Options ------------------------------------------------------------------------------------------- */

/* What a class of others has where nothing is said. */
static const struct defaults {
    enum pe_block_norm norm;
    enum pe_block_activation activation;
    bool final_norm, causal;
} defaults[] = {
    [PE_BLOCK_TORCH] = {PE_BLOCK_NORM_POST, PE_BLOCK_RELU, false, false},
    [PE_BLOCK_GPT2] = {PE_BLOCK_NORM_PRE, PE_BLOCK_GELU_TANH, true, true},
    [PE_BLOCK_NANOGPT] = {PE_BLOCK_NORM_PRE, PE_BLOCK_GELU, true, true},
};

static int choice_check(const char *field, int got, int most, struct pe_error *err) {
    if (got >= 0 && got <= most) {
        return PE_OK;
    }
    return pe_fail(err, PE_ERR_CHOICE, field, "got %d, allowed are 1 to %d", got, most);
}

static int choices_check(const struct pe_block_args *args, struct pe_error *err) {
    const unsigned known = PE_BLOCK_WEIGHTS | PE_BLOCK_OUTPUT | PE_BLOCK_STREAM;
    if (choice_check("naming", (int)args->naming, PE_BLOCK_NANOGPT, err) ||
        choice_check("norm", (int)args->norm, PE_BLOCK_NORM_NONE, err) ||
        choice_check("activation", (int)args->activation, PE_BLOCK_RELU, err) ||
        choice_check("residual", (int)args->residual, PE_BLOCK_NO, err) ||
        choice_check("final_norm", (int)args->final_norm, PE_BLOCK_NO, err) ||
        (args->dtype && pe_dtype_check(args->dtype, err))) {
        return err->code;
    }
    if (args->outputs & ~known) {
        return pe_fail(err, PE_ERR_CHOICE, "return", "got the bits %#x, allowed are those in %#x",
                       args->outputs, known);
    }
    if (args->norm_eps && !(*args->norm_eps >= 0 && *args->norm_eps <= 1)) {
        return pe_fail(err, PE_ERR_RANGE, "norm_eps", "got %g, allowed are 0 to 1", *args->norm_eps);
    }
    if (!(args->init_std >= 0 && args->init_std <= 1000)) {
        return pe_fail(err, PE_ERR_RANGE, "init_std", "got %g, allowed are 0 to 1000", args->init_std);
    }
    return PE_OK;
}

static int weights_check(const struct pe_block_args *args, struct pe_error *err) {
    if (args->n_weights && args->weights_seed) {
        return pe_fail(err, PE_ERR_CONFLICT, "weights_seed", "makes weights, but some are posted");
    }
    if (!args->n_weights && !args->weights_seed) {
        return pe_fail(err, PE_ERR_MISSING, "weights", "is missing: post weights, or give a weights_seed");
    }
    if (args->n_weights && args->init_std > 0) {
        return pe_fail(err, PE_ERR_CONFLICT, "init_std", "is of weights from a seed, but weights are posted");
    }
    return PE_OK;
}

static void options_resolve(struct pe_block_reader *r) {
    const struct pe_block_args *args = r->args;
    struct pe_block *block = r->block;
    const struct defaults *usual = &defaults[r->naming];
    block->norm = args->norm ? args->norm : usual->norm;
    block->activation = args->activation ? args->activation : usual->activation;
    block->residual = args->residual != PE_BLOCK_NO;
    block->norm_eps = args->norm_eps ? *args->norm_eps : EPS;
    bool by_itself = usual->final_norm || (r->names && pe_block_names_final(r->names));
    block->final_norm = args->final_norm == PE_BLOCK_DEFAULT ? by_itself : args->final_norm == PE_BLOCK_YES;
    block->transposed = r->naming != PE_BLOCK_GPT2 || !args->n_weights;
    r->causal = usual->causal;
}

/* ---- Sizes --------------------------------------------------------------------------------------------- */

static int heads_choose(struct pe_block_reader *r, struct pe_error *err) {
    struct pe_block *block = r->block;
    if (!r->args->heads && r->names) {
        return pe_fail(err, PE_ERR_MISSING, "heads", "is missing: the shapes of weights do not tell it");
    }
    block->heads = r->args->heads ? r->args->heads : 1;
    block->head_width = block->width / block->heads;
    if (block->head_width == 0 || block->width % block->heads) {
        return pe_fail(err, PE_ERR_RANGE, "heads", "is %zu, which does not divide the width D = %zu",
                       block->heads, block->width);
    }
    const struct pe_plan *plan = r->args->plan;
    const struct pe_encoding *row = plan ? pe_plan_row(plan) : NULL;
    if (row && row->angles && pe_plan_width(plan) != block->head_width) {
        return pe_fail(err, PE_ERR_SHAPE, "encoding", "has head_dim %zu, but D = %zu and %zu heads make %zu",
                       pe_plan_width(plan), block->width, block->heads, block->head_width);
    }
    return PE_OK;
}

static int layers_choose(struct pe_block_reader *r, struct pe_error *err) {
    struct pe_block *block = r->block;
    size_t named = r->names ? pe_block_names_layers(r->names) : 1, most = 16 * (size_t)PE_BLOCK_WIDTH_MAX;
    size_t d_ff = r->names ? pe_block_names_d_ff(r) : 0;
    block->layers = r->args->layers ? r->args->layers : named;
    block->d_ff = r->args->d_ff ? r->args->d_ff : d_ff ? d_ff : 4 * block->width;
    if (block->layers < 1 || block->layers > PE_BLOCK_LAYERS_MAX) {
        return pe_fail(err, PE_ERR_RANGE, block->layers ? "layers" : "weights",
                       "has %zu layers, allowed are 1 to %d", block->layers, PE_BLOCK_LAYERS_MAX);
    }
    if (block->d_ff > most) {
        return pe_fail(err, PE_ERR_RANGE, "d_ff", "is %zu, at most %zu is allowed", block->d_ff, most);
    }
    block->layer = pe_arena_array(r->arena, block->layers, sizeof *block->layer, err);
    return err->code;
}

/* ---- Arithmetic ---------------------------------------------------------------------------------------- */

static double matrices_of(const struct pe_block *b) {
    double d = (double)b->width, f = (double)b->d_ff;
    return (double)b->layers * d * (4 * d + 2 * f);
}

/* Multiplications in all products. */
static double products_of(const struct pe_block *b) {
    double t = (double)b->length, d = (double)b->width;
    return (double)b->batch * t * (matrices_of(b) + (double)b->layers * 2 * t * d);
}

/* Weights from a seed are what a GET has, whose tag promises its bits. Posted ones are multiplied in the same
 * way as long as that costs little, so that what is small enough to look at does not depend on the machine. */
static bool are_ordered(const struct pe_block_reader *r) {
    return !r->names || (products_of(r->block) <= PE_BLOCK_ORDERED_PRODUCTS &&
                         matrices_of(r->block) <= PE_BLOCK_ORDERED_WEIGHTS);
}

static enum pe_dtype wider(enum pe_dtype a, enum pe_dtype b) {
    if (a == PE_DTYPE_NONE || a == b) {
        return b;
    }
    return a == PE_DTYPE_F64 || b == PE_DTYPE_F64 ? PE_DTYPE_F64 : PE_DTYPE_F32;
}

/* By what is posted and may be used; others, as the masks that GPT-2 stores, widen nothing. */
static void dtype_choose(const struct pe_block_reader *r) {
    const struct pe_block_args *args = r->args;
    struct pe_block *block = r->block;
    enum pe_dtype widest = args->embeddings ? args->embeddings->dtype : PE_DTYPE_NONE;
    for (size_t i = 0; i < args->n_weights; i++) {
        if (pe_block_names_need(r, i)) {
            widest = wider(widest, args->weights[i].tensor.dtype);
        }
    }
    widest = widest ? widest : PE_DTYPE_F32;
    block->dtype = args->dtype ? args->dtype : widest;
    block->ordered = are_ordered(r);
    bool wide = block->ordered || widest == PE_DTYPE_F64 || block->dtype == PE_DTYPE_F64;
    block->real = wide ? PE_DTYPE_F64 : PE_DTYPE_F32;
    block->size = pe_dtype_size(block->dtype);
    block->real_size = pe_dtype_size(block->real);
}

/* ---- Memory -------------------------------------------------------------------------------------------- */

/* Whether the results, in the order of a reply, may be made; asked before anything large is. */
static int results_ask(const struct pe_block_reader *r, struct pe_error *err) {
    const struct pe_block *b = r->block;
    const struct {
        unsigned bit;
        size_t full[5];
        int rank, from; /* [from..rank) of the axes */
    } all[] = {
        {PE_BLOCK_WEIGHTS, {b->layers, b->batch, b->heads, b->length, b->length}, 5, 0},
        {PE_BLOCK_OUTPUT, {1, b->batch, b->length, b->width}, 4, 1},
        {PE_BLOCK_STREAM, {b->layers + 1, b->batch, b->length, b->width}, 4, 0},
    };
    for (size_t i = 0; i < PE_COUNT(all); i++) {
        size_t dim[5];
        int rank = pe_block_dims(b, all[i].full, all[i].rank, dim) - all[i].from;
        if (pe_block_wants(r, all[i].bit) &&
            pe_result_ask(r->arena, b->dtype, rank, dim + all[i].from, err)) {
            return err->code;
        }
    }
    return PE_OK;
}

static int results_open(struct pe_block_reader *r, struct pe_block_result *result, struct pe_error *err) {
    struct pe_block *b = r->block;
    size_t full[] = {b->layers + 1, b->batch, b->length, b->width}, dim[4];
    int rank = pe_block_dims(b, full, 4, dim);
    if (pe_block_wants(r, PE_BLOCK_OUTPUT) &&
        pe_tensor_alloc(r->arena, &result->output, b->dtype, rank - 1, dim + 1, err)) {
        return pe_error_at(err, "return");
    }
    if (pe_block_wants(r, PE_BLOCK_STREAM) &&
        pe_tensor_alloc(r->arena, &result->stream, b->dtype, rank, dim, err)) {
        return pe_error_at(err, "return");
    }
    b->output = result->output.data;
    b->stream = result->stream.data;
    return PE_OK;
}

/* [B, T, width] */
static unsigned char *rows_open(const struct pe_block_reader *r, size_t width, struct pe_error *err) {
    const struct pe_block *b = r->block;
    struct pe_tensor rows;
    if (pe_tensor_alloc(r->arena, &rows, b->real, 3, (size_t[3]){b->batch, b->length, width}, err)) {
        pe_error_at(err, pe_block_input_field(r->args));
        return NULL;
    }
    return rows.data;
}

static int scratch_open(struct pe_block_reader *r, struct pe_error *err) {
    struct pe_block *b = r->block;
    struct pe_relative *relative = b->attention[0].relative; /* the same in all layers */
    size_t bytes = 0;
    b->relative_bytes = relative ? (relative->scratch_bytes + ALIGN - 1) / ALIGN * ALIGN : 0;
    b->scratch.x = rows_open(r, b->width, err);
    b->scratch.h = rows_open(r, b->width, err);
    b->scratch.y = rows_open(r, b->width, err);
    b->scratch.ff = rows_open(r, b->d_ff, err);
    if (err->code || (relative && pe_relative_prepare(r->arena, relative, err)) || !b->relative_bytes) {
        return err->code;
    }
    if (!pe_size_product((size_t[2]){b->batch, b->relative_bytes}, 2, &bytes)) {
        bytes = SIZE_MAX;
    }
    b->scratch.relative = pe_arena_alloc(r->arena, bytes, err);
    return b->scratch.relative ? PE_OK : pe_error_at(err, "encoding");
}

/* Roughly 20 multiplications of a BLAS in a nanosecond, 4 of ordered products, and some nanoseconds for each
 * number between two. */
static double cost_ns(const struct pe_block *b) {
    double t = (double)b->length, d = (double)b->width, f = (double)b->d_ff;
    double other = (double)b->heads * t * t + 10 * t * f + 10 * t * d;
    double wide = b->real == PE_DTYPE_F64 ? 2 : 1;
    return products_of(b) / (b->ordered ? 4 : 20 / wide) +
           (double)b->batch * (double)b->layers * wide * other;
}

/* ---- Opening ------------------------------------------------------------------------------------------- */

/* The memory of all weights, and the numbers of posted ones. */
static int weights_open(struct pe_block_reader *r, struct pe_error *err) {
    return r->names ? pe_block_weights_read(r, err) : pe_block_seed_open(r, err);
}

/* What is asked, and all sizes: nothing large is made yet. */
static int sizes_read(struct pe_block_reader *r, struct pe_error *err) {
    if (choices_check(r->args, err) || weights_check(r->args, err)) {
        return err->code;
    }
    r->naming = r->args->naming ? r->args->naming : PE_BLOCK_TORCH;
    r->used = pe_arena_array(r->arena, r->args->n_weights, sizeof *r->used, err);
    if (!r->used || pe_block_input_bind(r, err) || pe_block_names_read(r, err)) {
        return err->code;
    }
    options_resolve(r);
    if (heads_choose(r, err) || layers_choose(r, err)) {
        return err->code;
    }
    dtype_choose(r);
    return results_ask(r, err);
}

static int read_all(struct pe_block_reader *r, struct pe_block_result *result, struct pe_error *err) {
    if (sizes_read(r, err) || pe_block_input_read(r, err) || weights_open(r, err) ||
        pe_block_attention_open(r, result, err) || results_open(r, result, err) || scratch_open(r, err)) {
        return err->code;
    }
    return r->names ? PE_OK : pe_block_seed_fill(r, err);
}

static void facts_fill(const struct pe_block_reader *r, struct pe_block_result *result) {
    const struct pe_block *b = r->block;
    result->naming = r->naming;
    result->layers = b->layers;
    result->heads = b->heads;
    result->width = b->width;
    result->d_ff = b->d_ff;
    result->norm = b->norm;
    result->activation = b->activation;
    result->residual = b->residual;
    result->final_norm = b->final_norm;
    result->bias = !r->names || pe_block_names_biased(r->names);
    result->norm_eps = b->norm_eps;
    result->used = r->used;
}

int pe_block_open(struct pe_arena *arena, struct pe_work *work, struct pe_block_result *result,
                  const struct pe_block_args *theirs, struct pe_error *err) {
    struct pe_block_args args;
    *work = (struct pe_work){0};
    *result = (struct pe_block_result){0};
    if (err->code || pe_args_copy(&args, sizeof args, theirs, theirs->size, err)) {
        return err->code;
    }
    struct pe_block *block = pe_arena_array(arena, 1, sizeof *block, err);
    struct pe_block_reader reader = {.arena = arena, .args = &args, .block = block};
    if (!block || read_all(&reader, result, err)) {
        *result = (struct pe_block_result){0};
        return err->code;
    }
    block->stop = err->stop;
    facts_fill(&reader, result);
    *work = (struct pe_work){
        .n_parts = block->batch,
        .cost_ns = cost_ns(block),
        .state = block,
        .run = pe_block_sequence,
        .stop = err->stop,
    };
    return PE_OK;
}
