/* SPDX-License-Identifier: MIT
 *
 * similarity: how alike the vectors of positions are, as attention would see it.
 *
 *     gram[i, j] = PE(p_i) . PE(p_j)                      or their cosine
 *     gram[i, j] = (PE(p_i) W_q) . (PE(p_j) W_k)          through projections
 *     by_offset[r + T-1] = mean of gram[i, i+r] over i    and spread, their largest less their smallest
 *
 * For sinusoids the product is a sum of cosines of the difference, so the spread is nothing but rounding: the
 * score depends on the distance alone. Through projections that nobody made for it, it no longer does, which
 * is why rotary encodings turn queries and keys after they were projected.
 *
 * Sums are in an order of their own and not a BLAS's, so that a GET has the same bits everywhere.
 */
#include "core/cells.h"
#include "core/stop.h"
#include "kernels/vector.h"
#include "ops/operand.h"
#include "ops/vectors.h"

#include "posenc_admits.h"

#include <math.h>

#define PART_ITEMS ((uint64_t)1 << 22) /* multiplications in one part */
#define ASK_ITEMS  ((size_t)1 << 17)   /* multiplications between two questions whether to stop */

struct similarity {
    size_t batch, length, width; /* of the vectors that are multiplied */
    double *queries, *keys;      /* [B, T, width]; the same where there are no projections */
    enum pe_dtype dtype;
    unsigned char *gram;               /* [B, T, T] */
    unsigned char *by_offset, *spread; /* [B, 2T - 1] or NULL */
    size_t offsets, offsets_per_part;  /* of one sequence: 0.. where the gram is symmetric */
    const struct pe_stop *stop;
};

/* ---- Vectors ------------------------------------------------------------------------------------------- */

static int weight_check(const struct pe_tensor *w, const char *field, size_t width, struct pe_error *err) {
    char shape[128];
    if (w->rank == 2 && w->dim[0] == width && w->dim[1] > 0) {
        return PE_OK;
    }
    return pe_fail(err, PE_ERR_SHAPE, field,
                   "has shape %s, allowed is [%zu, n]: the vectors have %zu numbers",
                   pe_tensor_shape_text(w, shape, sizeof shape), width, width);
}

static int weights_check(const struct pe_similarity_args *args, size_t width, struct pe_error *err) {
    const struct pe_tensor *w_q = args->w_q, *w_k = args->w_k;
    if (!w_q != !w_k) {
        return pe_fail(err, PE_ERR_MISSING, w_q ? "w_k" : "w_q", "is missing: give both or none");
    }
    if (w_q && args->w_seed) {
        return pe_fail(err, PE_ERR_CONFLICT, "w_seed", "makes weights, and w_q and w_k are given");
    }
    if (!w_q || weight_check(w_q, "w_q", width, err) || weight_check(w_k, "w_k", width, err)) {
        return err->code;
    }
    if (w_q->dim[1] != w_k->dim[1]) {
        return pe_fail(err, PE_ERR_SHAPE, "w_k", "has %zu columns but w_q has %zu", w_k->dim[1], w_q->dim[1]);
    }
    return PE_OK;
}

/* Weight number `which` as doubles, by columns: out [n, width]. */
static double *weight_read(struct pe_arena *arena, const struct pe_similarity_args *args, uint32_t which,
                           size_t width, size_t n, struct pe_error *err) {
    const struct pe_tensor *posted = which ? args->w_k : args->w_q;
    const struct pe_cells cells = {.tensor = posted,
                                   .columns = n,
                                   .seed = args->w_seed ? *args->w_seed : 0,
                                   .std = 1 / sqrt((double)width),
                                   .number = which};
    double *out = pe_arena_array(arena, n, width * sizeof *out, err);
    for (size_t row = 0; out && row < width && !pe_error_poll(err); row++) {
        for (size_t column = 0; column < n; column++) {
            out[column * width + row] = pe_cells_at(&cells, row, column);
        }
    }
    return err->code ? NULL : out;
}

/* x [rows, width] times w, given by columns [n, width], into out [rows, n]. */
static int project(const double *x, size_t rows, size_t width, const double *w, size_t n, double *out,
                   struct pe_error *err) {
    for (size_t i = 0; i < rows; i++) {
        for (size_t column = 0; column < n; column++) {
            out[i * n + column] = pe_vector_dot(x + i * width, w + column * width, width);
            if ((i * n + column) % (ASK_ITEMS / width + 1) == 0 && pe_error_poll(err)) {
                return err->code;
            }
        }
    }
    return pe_error_poll(err);
}

static int projections_open(struct pe_arena *arena, struct similarity *op,
                            const struct pe_similarity_args *args, const double *x, struct pe_error *err) {
    size_t rows = op->batch * op->length, width = op->width;
    size_t n = args->w_q ? args->w_q->dim[1] : width;
    for (uint32_t which = 0; which < 2; which++) {
        const double *w = weight_read(arena, args, which, width, n, err);
        double *projected = pe_arena_array(arena, rows, n * sizeof *projected, err);
        if (!w || !projected || project(x, rows, width, w, n, projected, err)) {
            return err->code;
        }
        *(which ? &op->keys : &op->queries) = projected;
    }
    op->width = n;
    return PE_OK;
}

/* x [width] to length 1; a vector of zeros stays, and has the cosine 0 with all. A power of two, which changes
 * no digit, keeps its squares from overflow and underflow. */
static void row_normalise(double *x, size_t width) {
    double largest = pe_vector_largest(PE_DTYPE_F64, x, width, false, NULL);
    int exponent;
    if (largest == 0 || !isfinite(largest)) {
        return;
    }
    (void)frexp(largest, &exponent);
    for (size_t c = 0; c < width; c++) {
        x[c] = ldexp(x[c], -exponent);
    }
    double length = sqrt(pe_vector_dot(x, x, width));
    for (size_t c = 0; c < width; c++) {
        x[c] /= length;
    }
}

static int normalise(double *x, size_t rows, size_t width, struct pe_error *err) {
    for (size_t i = 0; i < rows && !pe_error_poll(err); i++) {
        row_normalise(x + i * width, width);
    }
    return err->code;
}

/* ---- Opening ------------------------------------------------------------------------------------------- */

/* Before anything is made: T*T*width multiplications, and as many as the projections take. */
static int work_check(const struct similarity *op, const struct pe_similarity_args *args,
                      struct pe_error *err) {
    double n = (double)op->length, w = (double)op->width, rows = (double)op->batch * n;
    double columns = args->w_q ? (double)args->w_q->dim[1] : args->w_seed ? w : 0;
    double work = rows * n * (columns > 0 ? columns : w) + 2 * rows * w * columns;
    if (work <= (double)PE_SIMILARITY_WORK_MAX) {
        return PE_OK;
    }
    return pe_fail_limit(
        err, "positions", "similarity_work", PE_SIMILARITY_WORK_MAX,
        work < 1.8e19 ? (uint64_t)work : UINT64_MAX,
        "%zu positions with vectors of %zu numbers are %.3g multiplications, at most %.3g are "
        "allowed",
        op->length, op->width, work, (double)PE_SIMILARITY_WORK_MAX);
}

static int results_open(struct pe_arena *arena, struct similarity *op, struct pe_similarity_result *result,
                        const struct pe_positions *positions, struct pe_error *err) {
    size_t n = op->length, dim[3] = {op->batch, n, n}, offsets[2] = {op->batch, n ? 2 * n - 1 : 0};
    int batched = positions->batch ? 1 : 0;
    if (pe_result_ask(arena, op->dtype, 2 + batched, dim + 1 - batched, err)) {
        return err->code;
    }
    if (pe_tensor_alloc(arena, &result->gram, op->dtype, 2 + batched, dim + 1 - batched, err)) {
        return pe_error_at(err, "positions");
    }
    op->gram = result->gram.data;
    if (positions->list || positions->axes > 1) {
        return PE_OK;
    }
    if (pe_tensor_alloc(arena, &result->by_offset, op->dtype, 1 + batched, offsets + 1 - batched, err) ||
        pe_tensor_alloc(arena, &result->spread, op->dtype, 1 + batched, offsets + 1 - batched, err)) {
        return err->code;
    }
    op->by_offset = result->by_offset.data;
    op->spread = result->spread.data;
    return PE_OK;
}

static int vectors_open(struct pe_arena *arena, struct similarity *op, const struct pe_similarity_args *args,
                        struct pe_error *err) {
    double *x;
    size_t rows = op->batch * op->length;
    if (pe_vectors_make(arena, &x, args->plan, args->positions, err)) {
        return err->code;
    }
    op->queries = op->keys = x;
    if ((args->w_q || args->w_seed) && projections_open(arena, op, args, x, err)) {
        return err->code;
    }
    if (args->metric != PE_SIMILARITY_COSINE) {
        return PE_OK;
    }
    if (normalise(op->queries, rows, op->width, err)) {
        return err->code;
    }
    return op->keys == op->queries ? PE_OK : normalise(op->keys, rows, op->width, err);
}

/* ---- Running ------------------------------------------------------------------------------------------- */

static void store(const struct similarity *op, unsigned char *out, size_t index, double value) {
    pe_dtype_store(op->dtype, &value, 1, out + index * pe_dtype_size(op->dtype));
}

/* All pairs (i, i + r) of sequence b: their products, and what they say of the offset. */
static void diagonal_run(const struct similarity *op, size_t b, ptrdiff_t r) {
    size_t n = op->length, first = r < 0 ? (size_t)-r : 0, count = n - (r < 0 ? (size_t)-r : (size_t)r);
    double sum = 0, least = INFINITY, most = -INFINITY;
    for (size_t t = 0; t < count; t++) {
        size_t i = first + t, j = (size_t)((ptrdiff_t)i + r);
        if (t % (ASK_ITEMS / (op->width + 1) + 1) == 0 && pe_stop_asked(op->stop)) {
            return;
        }
        double value = pe_vector_dot(op->queries + (b * n + i) * op->width,
                                     op->keys + (b * n + j) * op->width, op->width);
        store(op, op->gram, (b * n + i) * n + j, value);
        if (op->keys == op->queries) {
            store(op, op->gram, (b * n + j) * n + i, value);
        }
        sum += value;
        least = fmin(least, value);
        most = fmax(most, value);
    }
    for (int side = 0; op->by_offset && side < 2; side++) {
        size_t at = b * (2 * n - 1) + (size_t)((ptrdiff_t)n - 1 + (side ? -r : r));
        if (side == 0 || op->keys == op->queries) {
            store(op, op->by_offset, at, sum / (double)count);
            store(op, op->spread, at, most - least);
        }
    }
}

static void similarity_part(const void *state, size_t part) {
    const struct similarity *op = state;
    size_t parts = (op->offsets + op->offsets_per_part - 1) / op->offsets_per_part;
    size_t b = part / parts, first = part % parts * op->offsets_per_part;
    bool symmetric = op->keys == op->queries;
    for (size_t m = first; m < first + op->offsets_per_part && m < op->offsets; m++) {
        diagonal_run(op, b, symmetric ? (ptrdiff_t)m : (ptrdiff_t)m - (ptrdiff_t)op->length + 1);
    }
}

static size_t parts_cut(struct similarity *op) {
    uint64_t diagonal = (uint64_t)op->length * op->width + 1;
    op->offsets = op->length == 0 ? 0 : op->keys == op->queries ? op->length : 2 * op->length - 1;
    op->offsets_per_part = diagonal < PART_ITEMS ? (size_t)(PART_ITEMS / diagonal) : 1;
    return op->batch * ((op->offsets + op->offsets_per_part - 1) / op->offsets_per_part);
}

int pe_similarity_admits(const struct pe_encoding_info *encoding, struct pe_error *err) {
    const struct pe_encoding *row = pe_encoding_row(encoding);
    return row->encode || row->angles ? err->code
                                      : pe_encoding_unsupported(row, "has no vectors to compare", err);
}

int pe_similarity_open(struct pe_arena *arena, struct pe_work *work, struct pe_similarity_result *result,
                       const struct pe_similarity_args *theirs, struct pe_error *err) {
    struct pe_similarity_args args;
    *work = (struct pe_work){0};
    *result = (struct pe_similarity_result){0};
    if (err->code || pe_args_copy(&args, sizeof args, theirs, theirs->size, err)) {
        return err->code;
    }
    if (!args.plan || !args.positions) {
        return pe_fail(err, PE_ERR_MISSING, args.plan ? "positions" : "encoding", "is missing");
    }
    struct similarity *op = pe_arena_array(arena, 1, sizeof *op, err);
    if (!op) {
        return err->code;
    }
    *op = (struct similarity){.batch = args.positions->batch ? args.positions->batch : 1,
                              .length = args.positions->length,
                              .width = pe_vectors_width(args.plan),
                              .dtype = args.dtype ? args.dtype : PE_DTYPE_F32,
                              .stop = err->stop};
    if (pe_similarity_admits(pe_plan_encoding(args.plan), err) || pe_dtype_check(op->dtype, err) ||
        weights_check(&args, op->width, err) || work_check(op, &args, err) ||
        results_open(arena, op, result, args.positions, err) || vectors_open(arena, op, &args, err)) {
        *result = (struct pe_similarity_result){0};
        return err->code;
    }
    *work = (struct pe_work){
        .n_parts = parts_cut(op),
        .cost_ns = (double)op->batch * (double)op->length * (double)op->length * (double)op->width / 2,
        .state = op,
        .run = similarity_part,
        .stop = err->stop,
    };
    return PE_OK;
}
