/* SPDX-License-Identifier: MIT
 *
 * convert: the two layouts of rotary heads are one and the same model with the rows of two weights in another
 * order. A head's row r of W_q belongs to the pair that column r of its query belongs to, so with d =
 * rotary_dim
 *
 *     to halves         new row j is old row 2j, new row d/2 + j is old row 2j + 1        j < d/2
 *     to interleaved    new row 2j is old row j, new row 2j + 1 is old row d/2 + j
 *
 * within every head, and rows from d on stay. Queries and keys are permuted alike, so their products are the
 * same; what is stored is not. Nothing is computed, so numbers of any type, and quantised ones, move as they
 * are: W_new[i] = W_old[permutation[i]]. The heads of W_k may be fewer (grouped queries).
 */
#include "ops/operand.h"

#include <string.h>

#define PART_BYTES ((size_t)256 << 10) /* moved in one part */

/* A tensor [outer, n, inner bytes], permuted along n. */
struct convert {
    const char *in;
    char *out;
    const double *permutation; /* [n] */
    size_t n, inner;           /* bytes */
    size_t items;              /* outer*n */
    size_t items_per_part;
    const struct pe_stop *stop;
};

/* ---- The permutation ----------------------------------------------------------------------------------- */

/* Which row of a head the new row comes from. */
static size_t row_before(const struct pe_convert_args *args, size_t row) {
    size_t half = args->rotary_dim / 2;
    if (row >= args->rotary_dim || args->from == args->to) {
        return row;
    }
    if (args->to == PE_ROTARY_HALVES) {
        return row < half ? 2 * row : 2 * (row - half) + 1;
    }
    return row % 2 ? half + row / 2 : row / 2;
}

static int permutation_open(struct pe_arena *arena, struct pe_tensor *out, const struct pe_convert_args *args,
                            size_t heads, struct pe_error *err) {
    size_t factors[2] = {heads, args->head_dim}, n;
    if (!pe_size_product(factors, 2, &n)) {
        return pe_fail(err, PE_ERR_RANGE, "heads", "got %zu heads of width %zu, which are too many", heads,
                       args->head_dim);
    }
    if (pe_tensor_alloc(arena, out, PE_DTYPE_F64, 1, &n, err)) {
        return pe_error_at(err, "heads");
    }
    double *permutation = out->data;
    for (size_t i = 0; i < n; i++) {
        if (i % PE_STOP_ITEMS == 0 && pe_error_poll(err)) {
            return err->code;
        }
        size_t row = i % args->head_dim;
        permutation[i] = (double)(i - row + row_before(args, row));
    }
    return PE_OK;
}

/* ---- The tensor ---------------------------------------------------------------------------------------- */

static void convert_part(const void *state, size_t part) {
    const struct convert *op = state;
    size_t first = part * op->items_per_part;
    size_t end = op->items - first < op->items_per_part ? op->items : first + op->items_per_part;
    for (size_t i = first; i < end; i++) {
        size_t row = i % op->n;
        if (i % PE_STOP_ITEMS == 0 && pe_stop_asked(op->stop)) {
            return;
        }
        memcpy(op->out + i * op->inner, op->in + (i - row + (size_t)op->permutation[row]) * op->inner,
               op->inner);
    }
}

static int tensor_check(const struct pe_convert_args *args, size_t n, struct pe_error *err) {
    const struct pe_tensor *tensor = args->tensor;
    char shape[128];
    if (tensor->rank < 1 || tensor->rank > 2) {
        return pe_fail(
            err, PE_ERR_SHAPE, "tensor",
            "has shape %s, allowed are a weight [out, in], with axis 1 [in, out], and a bias [out]",
            pe_tensor_shape_text(tensor, shape, sizeof shape));
    }
    if (args->axis >= (size_t)tensor->rank) {
        return pe_fail(err, PE_ERR_RANGE, "axis", "is %zu, but the tensor has %d", args->axis, tensor->rank);
    }
    if (tensor->dim[args->axis] != n) {
        return pe_fail(
            err, PE_ERR_SHAPE, "tensor", "has shape %s, its axis %zu must be %zu: %s %zu times head_dim %zu",
            pe_tensor_shape_text(tensor, shape, sizeof shape), args->axis, n,
            args->keys ? "kv_heads" : "heads", args->keys ? args->kv_heads : args->heads, args->head_dim);
    }
    return PE_OK;
}

/* With the permutation that goes with it. */
static int tensor_open(struct pe_arena *arena, struct pe_work *work, struct pe_convert_result *result,
                       const struct pe_convert_args *args, struct pe_error *err) {
    const struct pe_tensor *permutation = args->keys ? &result->permutation_k : &result->permutation;
    enum pe_dtype dtype = args->dtype ? args->dtype : args->tensor->dtype;
    struct pe_tensor in;
    struct convert *op = pe_arena_array(arena, 1, sizeof *op, err);
    if (!op || tensor_check(args, permutation->dim[0], err) || pe_dtype_check(dtype, err) ||
        pe_result_ask(arena, dtype, args->tensor->rank, args->tensor->dim, err)) {
        return err->code;
    }
    if (pe_tensor_convert(arena, &in, args->tensor, dtype, err) ||
        pe_tensor_alloc(arena, &result->tensor, dtype, in.rank, in.dim, err)) {
        return pe_error_at(err, "tensor");
    }
    *op = (struct convert){.in = in.data,
                           .out = result->tensor.data,
                           .permutation = permutation->data,
                           .n = permutation->dim[0],
                           .inner = pe_dtype_size(dtype),
                           .stop = err->stop};
    op->items = pe_tensor_count(&in);
    if (in.rank == 2 && args->axis == 0) { /* whole rows move */
        op->inner *= in.dim[1];
        op->items = in.dim[0];
    }
    op->items_per_part = op->inner && op->inner < PART_BYTES ? PART_BYTES / op->inner : 1;
    *work = (struct pe_work){
        .n_parts = op->inner ? op->items / op->items_per_part + (op->items % op->items_per_part != 0) : 0,
        .cost_ns = (double)op->items * (2 + 0.1 * (double)op->inner),
        .state = op,
        .run = convert_part,
        .stop = err->stop,
    };
    return PE_OK;
}

/* ---- Opening ------------------------------------------------------------------------------------------- */

static int layout_check(enum pe_rotary_layout layout, const char *field, struct pe_error *err) {
    if (layout == PE_ROTARY_INTERLEAVED || layout == PE_ROTARY_HALVES) {
        return PE_OK;
    }
    return layout
               ? pe_fail(err, PE_ERR_CHOICE, field, "got %d, allowed are halves and interleaved", (int)layout)
               : pe_fail(err, PE_ERR_MISSING, field, "is missing: halves or interleaved");
}

/* Also fills in what was not given. */
static int args_check(struct pe_convert_args *args, struct pe_error *err) {
    args->rotary_dim = args->rotary_dim ? args->rotary_dim : args->head_dim;
    args->heads = args->heads ? args->heads : 1;
    args->kv_heads = args->kv_heads ? args->kv_heads : args->heads;
    if (layout_check(args->from, "from", err) || layout_check(args->to, "to", err)) {
        return err->code;
    }
    if (args->head_dim == 0) {
        return pe_fail(err, PE_ERR_MISSING, "head_dim", "is missing: the width of a head");
    }
    if (args->rotary_dim % 2) {
        return pe_fail(err, PE_ERR_RANGE, args->rotary_dim == args->head_dim ? "head_dim" : "rotary_dim",
                       "is %zu, must be even: rows belong to pairs", args->rotary_dim);
    }
    if (args->rotary_dim > args->head_dim) {
        return pe_fail(err, PE_ERR_RANGE, "rotary_dim", "is %zu, allowed is at most head_dim, %zu",
                       args->rotary_dim, args->head_dim);
    }
    if (args->heads % args->kv_heads) {
        return pe_fail(err, PE_ERR_RANGE, "kv_heads", "is %zu, must divide heads, %zu", args->kv_heads,
                       args->heads);
    }
    return PE_OK;
}

int pe_convert_open(struct pe_arena *arena, struct pe_work *work, struct pe_convert_result *result,
                    const struct pe_convert_args *theirs, struct pe_error *err) {
    struct pe_convert_args args;
    *work = (struct pe_work){0};
    *result = (struct pe_convert_result){0};
    if (err->code || pe_args_copy(&args, sizeof args, theirs, theirs->size, err) || args_check(&args, err)) {
        return err->code;
    }
    if (permutation_open(arena, &result->permutation, &args, args.heads, err) ||
        permutation_open(arena, &result->permutation_k, &args, args.kv_heads, err) ||
        (args.tensor && tensor_open(arena, work, result, &args, err))) {
        *result = (struct pe_convert_result){0};
    }
    return err->code;
}
