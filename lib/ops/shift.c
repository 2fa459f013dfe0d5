/* SPDX-License-Identifier: MIT
 *
 * shift: the linear map M with M.PE(p) = PE(p + k). For a sinusoid of frequency w it is the addition theorem,
 *
 *     [sin(w(p+k))]   [ cos(wk)  sin(wk)] [sin(wp)]
 *     [cos(w(p+k))] = [-sin(wk)  cos(wk)].[cos(wp)]
 *
 * one rotation per pair, the same at every p: "a linear function can attend by relative position" (Vaswani et
 * al. 2017, section 3.5). Of a rotary encoding M is what turns a query on by k positions. The encoding's hook
 * gives the pairs exactly; the residual shows what remains of rounding.
 *
 * Other encodings have no such map. The best one is fitted, M = argmin sum over p of |M.PE(p) - PE(p+k)|^2,
 * of smallest norm where there are several: with fewer positions than columns any table can be fitted, which
 * says nothing; the residual over more of them tells. The work is cubic and cannot be cut into parts, since
 * each step of it stands on the one before; hence the limits: half a second or so.
 */
#include "core/stop.h"
#include "kernels/lstsq.h"
#include "kernels/vector.h"
#include "ops/operand.h"

#include "posenc_admits.h"

#include <math.h>
#include <string.h>

#define BLOCK_ITEMS    ((size_t)1 << 14) /* of the vectors looked at together */
#define WIDTH_LEAST    256               /* making the vectors of a narrow table is as dear as this width */
#define LARGEST        0x1p400           /* squares of vectors must not overflow */
#define PAIRS_TOGETHER 1024              /* between two questions whether to stop */

struct shift {
    const struct pe_plan *plan;
    struct pe_positions from, to; /* p and p + distance */
    size_t width, n, block_rows;
    double *before, *after; /* [block_rows, D] */
    size_t pairs;
    const double *blocks;   /* [pairs, 2, 2] */
    const size_t *columns;  /* [pairs, 2] */
    double *matrix;         /* [D, D] or NULL */
    double *residual, *rms; /* one number each */
    struct pe_lstsq *fit;   /* NULL where the map is exact */
    const struct pe_stop *stop;
};

/* A column outside of pairs is zero in vectors that are added; in queries and keys it passes as it is. */
static void exact_matrix(const struct shift *op) {
    double lone = pe_plan_row(op->plan)->pairs ? 1 : 0;
    for (size_t i = 0; i < op->width && !pe_stop_asked(op->stop); i++) {
        memset(op->matrix + i * op->width, 0, op->width * sizeof *op->matrix);
        op->matrix[i * op->width + i] = lone;
    }
    for (size_t i = 0; i < op->pairs; i++) {
        const size_t *c = op->columns + 2 * i;
        for (size_t j = 0; j < 4; j++) {
            op->matrix[c[j / 2] * op->width + c[j % 2]] = op->blocks[4 * i + j];
        }
    }
}

/* out = M.x by pairs; columns outside of pairs are zero, and stay so. */
static void exact_map(const struct shift *op, const double *x, double *out) {
    memset(out, 0, op->width * sizeof *out);
    for (size_t i = 0; i < op->pairs; i++) {
        const double *m = op->blocks + 4 * i;
        const size_t *c = op->columns + 2 * i;
        out[c[0]] = m[0] * x[c[0]] + m[1] * x[c[1]];
        out[c[1]] = m[2] * x[c[0]] + m[3] * x[c[1]];
    }
}

static void fitted_map(const struct shift *op, const double *x, double *out) {
    size_t together = PE_STOP_ITEMS / (op->width + 1) + 1; /* rows between two questions */
    for (size_t i = 0; i < op->width && (i % together || !pe_stop_asked(op->stop)); i++) {
        out[i] = pe_vector_dot(op->matrix + i * op->width, x, op->width);
    }
}

static void rows_encode(const struct shift *op, const struct pe_positions *positions, size_t first, size_t n,
                        double *out) {
    const struct pe_rows rows = {
        .plan = op->plan, .positions = positions, .dtype = PE_DTYPE_F64, .stop = op->stop};
    pe_rows_encode(&rows, first, n, out);
}

struct misses {
    double most, squares;
    size_t rows;
};

/* Does the row say anything about the map? Not where one of its two vectors is zeros for padding. */
static bool row_counts(const struct shift *op, size_t row) {
    bool (*apart)(const struct pe_plan_view *, double) = pe_plan_row(op->plan)->apart;
    const struct pe_plan_view *view = pe_plan_view(op->plan);
    double from, to;
    pe_positions_read(&op->from, row, 1, &from);
    pe_positions_read(&op->to, row, 1, &to);
    return !apart || !(apart(view, from) || apart(view, to));
}

/* |mapped - after| of one row. */
static void misses_add(struct misses *misses, const double *mapped, const double *after, size_t width) {
    misses->rows++;
    for (size_t i = 0; i < width; i++) {
        double off = fabs(mapped[i] - after[i]);
        misses->most = off > misses->most ? off : misses->most;
        misses->squares += off * off;
    }
}

/* The largest and the mean square of M.PE(p) - PE(p + k). */
static void residuals(const struct shift *op) {
    size_t width = op->width;
    double *mapped = op->after + op->block_rows * width; /* one row more */
    struct misses misses = {0};
    for (size_t first = 0, rows; first < op->n; first += rows) {
        rows = op->n - first < op->block_rows ? op->n - first : op->block_rows;
        rows_encode(op, &op->from, first, rows, op->before);
        rows_encode(op, &op->to, first, rows, op->after);
        for (size_t i = 0; i < rows; i++) {
            if (pe_stop_asked(op->stop)) {
                return;
            }
            if (row_counts(op, first + i)) {
                (op->fit ? fitted_map : exact_map)(op, op->before + i * width, mapped);
                misses_add(&misses, mapped, op->after + i * width, width);
            }
        }
    }
    double count = (double)misses.rows * (double)width;
    *op->residual = misses.most;
    *op->rms = count > 0 ? sqrt(misses.squares / count) : 0;
}

/* Vectors [T, D] by columns. */
static void columns_fill(const struct shift *op, const struct pe_positions *positions, double *out) {
    for (size_t first = 0, rows; first < op->n; first += rows) {
        rows = op->n - first < op->block_rows ? op->n - first : op->block_rows;
        rows_encode(op, positions, first, rows, op->before);
        if (pe_stop_asked(op->stop)) {
            return;
        }
        for (size_t c = 0; c < op->width; c++) {
            for (size_t t = 0; t < rows; t++) {
                out[c * op->n + first + t] = op->before[t * op->width + c];
            }
        }
    }
}

/* Both sides of the fit, times one power of two that brings them near 1: the map is the same, and no square
 * of theirs overflows or vanishes. */
static void sides_fill(const struct shift *op) {
    size_t items = op->n * op->width;
    double *sides[2] = {op->fit->a, op->fit->b};
    columns_fill(op, &op->from, sides[0]);
    columns_fill(op, &op->to, sides[1]);
    double most = fmax(pe_vector_largest(PE_DTYPE_F64, sides[0], items, false, NULL),
                       pe_vector_largest(PE_DTYPE_F64, sides[1], items, false, NULL));
    int exponent = 0;
    frexp(most, &exponent);
    double factor = ldexp(1, exponent > -1000 ? -exponent : 1000);
    for (size_t i = 0; i < items; i++) {
        sides[0][i] *= factor;
        sides[1][i] *= factor;
    }
}

static void shift_part(const void *state, size_t part) {
    (void)part;
    const struct shift *op = state;
    if (op->fit) {
        sides_fill(op);
        pe_lstsq_run(op->fit, op->stop);
    } else if (op->matrix) {
        exact_matrix(op);
    }
    residuals(op);
}

/* ---- Opening ------------------------------------------------------------------------------------------- */

int pe_shift_admits(const struct pe_encoding_info *encoding, struct pe_error *err) {
    const struct pe_encoding *row = pe_encoding_row(encoding);
    if (!row->encode) {
        return pe_encoding_unsupported(row, "makes no vectors that could be shifted", err);
    }
    if (row->unshifted) {
        return pe_encoding_unsupported(
            row, "has positions of several coordinates, and a shift is by a distance along one", err);
    }
    return err->code;
}

static int args_check(const struct pe_shift_args *args, struct pe_error *err) {
    if (!args->plan) {
        return pe_fail(err, PE_ERR_MISSING, "encoding", "is missing");
    }
    if (!args->positions) {
        return pe_fail(err, PE_ERR_MISSING, "positions", "is missing");
    }
    const struct pe_encoding *row = pe_plan_row(args->plan);
    if (pe_shift_admits(&row->info, err)) {
        return err->code;
    }
    if (row->admit_shift && row->admit_shift(pe_plan_view(args->plan), err)) {
        return pe_error_at(err, "encoding");
    }
    if (!isfinite(args->distance)) {
        return pe_fail(err, PE_ERR_NONFINITE, "distance", "got %g, allowed are finite numbers",
                       args->distance);
    }
    if (fabs(args->distance) > PE_POSITION_MAX) {
        return pe_fail(err, PE_ERR_RANGE, "distance", "got %.17g, allowed are -2^53 to 2^53", args->distance);
    }
    if (pe_vectors_admit(args->plan, args->positions, PE_DTYPE_F64, "positions", err)) {
        return err->code;
    }
    if (args->positions->axes != 1) {
        return pe_fail(err, PE_ERR_SHAPE, "positions",
                       "have %d coordinates each, a shift is by a distance along one", args->positions->axes);
    }
    return PE_OK;
}

static int work_check(const struct shift *op, bool exact, struct pe_error *err) {
    double items = (double)op->n * (double)op->width;
    double work = exact ? items : items * fmax((double)op->width, WIDTH_LEAST);
    uint64_t limit = exact ? PE_SHIFT_ITEMS_MAX : PE_SHIFT_WORK_MAX;
    if (work <= (double)limit) {
        return PE_OK;
    }
    return pe_fail_limit(err, "positions", exact ? "shift_items" : "shift_work", limit,
                         work < 1e18 ? (uint64_t)work : UINT64_MAX,
                         "%zu positions of width %zu are too many to %s", op->n, op->width,
                         exact ? "try the map on" : "fit a map to");
}

/* The list of p + distance, each one of the encoding's positions too. */
static int shifted_open(struct pe_arena *arena, struct shift *op, double distance, struct pe_error *err) {
    struct pe_tensor list;
    if (pe_tensor_alloc(arena, &list, PE_DTYPE_F64, 1, &op->n, err)) {
        return pe_error_at(err, "positions");
    }
    double *to = list.data;
    if (pe_positions_fill(&op->from, to, err)) {
        return err->code;
    }
    for (size_t i = 0; i < op->n; i++) {
        double p = to[i];
        if (i % PE_STOP_ITEMS == 0 && pe_error_poll(err)) {
            return err->code;
        }
        to[i] = p + distance;
        if (fabs(to[i]) > PE_POSITION_MAX) {
            return pe_fail(err, PE_ERR_RANGE, "distance",
                           "takes position %.17g to %.17g, allowed are -2^53 to 2^53", p, to[i]);
        }
    }
    op->to = (struct pe_positions){.length = op->n, .axes = 1, .list = to};
    struct pe_error beyond = {.stop = err->stop};
    if (pe_positions_admit(op->plan, &op->to, PE_DTYPE_F64, "", &beyond)) {
        return pe_fail(err, beyond.code, "distance", "shifted by %g: %s", distance, beyond.text);
    }
    return PE_OK;
}

/* A column outside of pairs must be zero, or there is no map. Of the three places at most one is padding, and
 * at most one is the place 0, where sines are 0. */
static int lone_check(struct pe_arena *arena, const struct shift *op, struct pe_error *err) {
    static const double somewhere[3] = {0.25, 0.5, 0.75};
    const struct pe_positions three = {.length = 3, .axes = 1, .list = somewhere};
    bool *paired = pe_arena_array(arena, op->width, sizeof *paired, err);
    double *vectors = pe_arena_array(arena, 3 * op->width, sizeof *vectors, err);
    if (!paired || !vectors) {
        return err->code;
    }
    for (size_t i = 0; i < 2 * op->pairs; i++) {
        paired[op->columns[i]] = true;
    }
    pe_encode_rows(op->plan, &three, PE_DTYPE_F64, 0, 3, vectors);
    for (size_t c = 0; c < op->width; c++) {
        bool zero = vectors[c] == 0 && vectors[op->width + c] == 0 && vectors[2 * op->width + c] == 0;
        if (!paired[c] && !zero) {
            return pe_fail(err, PE_ERR_UNSUPPORTED, "encoding.d_model",
                           "is %zu, so column %zu has no partner to turn with and no map shifts it",
                           op->width, c);
        }
    }
    return PE_OK;
}

static int exact_open(struct pe_arena *arena, struct shift *op, struct pe_shift_result *out, double distance,
                      struct pe_error *err) {
    const struct pe_encoding *row = pe_plan_row(op->plan);
    const struct pe_plan_view *view = pe_plan_view(op->plan);
    op->pairs = row->shift_pairs(view);
    size_t *columns = pe_arena_array(arena, op->pairs, 2 * sizeof *columns, err);
    if (!columns ||
        pe_tensor_alloc(arena, &out->blocks, PE_DTYPE_F64, 3, (size_t[3]){op->pairs, 2, 2}, err)) {
        return err->code;
    }
    double *blocks = out->blocks.data;
    for (size_t i = 0; i < op->pairs; i++) {
        if (i % PAIRS_TOGETHER == 0 && pe_error_poll(err)) {
            return err->code;
        }
        row->shift(view, distance, i, blocks + 4 * i, columns + 2 * i);
        if (!isfinite(blocks[4 * i])) {
            return pe_fail(err, PE_ERR_RANGE, "distance", "got %.17g, so far vectors grow beyond float64",
                           distance);
        }
    }
    op->blocks = blocks;
    op->columns = columns;
    out->exact = true;
    return lone_check(arena, op, err);
}

static int fit_open(struct pe_arena *arena, struct shift *op, struct pe_error *err) {
    size_t scratch, items;
    bool fits = pe_lstsq_scratch(op->n, op->width, &scratch) &&
                pe_size_product((size_t[2]){op->n, op->width}, 2, &items);
    bool below = pe_encoding_below(op->plan, &op->from, LARGEST, err->stop) &&
                 pe_encoding_below(op->plan, &op->to, LARGEST, err->stop);
    if (pe_error_poll(err)) {
        return err->code;
    }
    if (!below) {
        return pe_fail(err, PE_ERR_RANGE, "encoding",
                       "its vectors are too large for a fit, allowed is less than %g", LARGEST);
    }
    struct pe_lstsq *fit = pe_arena_array(arena, 1, sizeof *fit, err);
    if (!fit || !fits) {
        return pe_fail(err, PE_ERR_LIMIT, "positions", "are too many for the memory of this machine");
    }
    *fit = (struct pe_lstsq){.m = op->n, .n = op->width, .n_right = op->width, .x = op->matrix};
    fit->a = pe_arena_array(arena, items, sizeof *fit->a, err);
    fit->b = pe_arena_array(arena, items, sizeof *fit->b, err);
    fit->scratch = pe_arena_array(arena, scratch, sizeof *fit->scratch, err);
    fit->order = pe_arena_array(arena, op->width, sizeof *fit->order, err);
    if (!fit->a || !fit->b || !fit->scratch || !fit->order) {
        return pe_error_at(err, "positions");
    }
    op->fit = fit;
    return PE_OK;
}

/* Only vectors of the formula are shifted by the formula's map. */
static bool has_map(const struct pe_plan *plan) {
    const struct pe_encoding *row = pe_plan_row(plan);
    return row->shift_pairs && (!row->exact || row->exact(pe_plan_view(plan)));
}

/* Memory and, for a fit, its two sides. */
static int shift_fill(struct pe_arena *arena, struct shift *op, struct pe_shift_result *out,
                      const struct pe_shift_args *args, struct pe_error *err) {
    bool exact = has_map(op->plan);
    size_t rows = op->width < BLOCK_ITEMS ? BLOCK_ITEMS / op->width : 1;
    op->block_rows = rows < op->n ? rows : (op->n ? op->n : 1);
    if (work_check(op, exact, err) || shifted_open(arena, op, args->distance, err)) {
        return err->code;
    }
    op->before = pe_arena_array(arena, 2 * op->block_rows + 1, op->width * sizeof(double), err);
    if (!op->before || (exact && exact_open(arena, op, out, args->distance, err))) {
        return err->code;
    }
    op->after = op->before + op->block_rows * op->width;
    if ((!exact || args->matrix) &&
        pe_tensor_alloc(arena, &out->matrix, PE_DTYPE_F64, 2, (size_t[2]){op->width, op->width}, err)) {
        return err->code;
    }
    op->matrix = out->matrix.data;
    if (pe_tensor_alloc(arena, &out->residual, PE_DTYPE_F64, 0, NULL, err) ||
        pe_tensor_alloc(arena, &out->rms, PE_DTYPE_F64, 0, NULL, err)) {
        return err->code;
    }
    op->residual = out->residual.data;
    op->rms = out->rms.data;
    return exact ? PE_OK : fit_open(arena, op, err);
}

static double cost_ns(const struct shift *op) {
    double items = (double)op->n * (double)op->width;
    double vectors = 2 * (double)op->n * pe_encoding_row_ns(op->plan, PE_DTYPE_F64);
    if (!op->fit) {
        return vectors + 2 * items;
    }
    return 2 * vectors + 2 * items * (double)op->width;
}

int pe_shift_open(struct pe_arena *arena, struct pe_work *work, struct pe_shift_result *result,
                  const struct pe_shift_args *theirs, struct pe_error *err) {
    struct pe_shift_args args;
    *work = (struct pe_work){0};
    *result = (struct pe_shift_result){0};
    if (err->code || pe_args_copy(&args, sizeof args, theirs, theirs->size, err) || args_check(&args, err)) {
        return err->code;
    }
    struct shift *op = pe_arena_array(arena, 1, sizeof *op, err);
    if (!op) {
        return err->code;
    }
    op->plan = args.plan;
    op->stop = err->stop;
    op->from = *args.positions;
    op->n = pe_positions_count(args.positions);
    op->width = pe_plan_width(args.plan);
    if (shift_fill(arena, op, result, &args, err)) {
        *result = (struct pe_shift_result){0};
        return err->code;
    }
    *work = (struct pe_work){
        .n_parts = 1, .cost_ns = cost_ns(op), .state = op, .run = shift_part, .stop = err->stop};
    return PE_OK;
}
