/* SPDX-License-Identifier: MIT
 *
 * resize: a learned table for sequences or images of another size. The rows before and behind what is
 * resized (class tokens) are kept as they are; the others are a line [n] or a grid [h, w] of rows,
 *
 *     new(Y, X) = sum over y, x of a_y(Y) b_x(X) old(y, x)          weights: kernels/resample.h
 *
 * one axis after the other: for each place along the first a line of sums, of which the second axis then
 * takes its own. Which axis is first is what costs less; then no table takes more than a few steps for each
 * of its numbers and of the result's. A line of rows is a grid of width 1.
 */
#include "ops/operand.h"

#include "core/dtype.h"
#include "kernels/resample.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define SCRATCH_BYTES ((size_t)16 << 20) /* of all parts together, if there is more than one */
#define PARTS_MOST    32

enum { AXIS_H, AXIS_W, AXES };

/* The weights of all targets along an axis: those of target t are n[t] from weights + t*most on. */
struct taps {
    struct pe_resample_axis axis;
    size_t most;
    double *weights;
    size_t *first, *n;
};

struct resize {
    struct pe_tensor in, out; /* [rows, D] */
    size_t prefix, suffix, width;
    struct taps taps[AXES];
    int outer; /* the axis that is summed first; parts are some of its targets */
    size_t targets_per_part, n_parts;
    double *scratch; /* [parts, line] */
    size_t line;     /* numbers of a line */
    const struct pe_stop *stop;
};

/* ---- Running ------------------------------------------------------------------------------------------- */

static const void *row_in(const struct resize *op, size_t outer, size_t inner) {
    size_t y = op->outer == AXIS_H ? outer : inner, x = op->outer == AXIS_H ? inner : outer;
    size_t row = op->prefix + y * op->taps[AXIS_W].axis.from + x;
    return (const char *)op->in.data + row * op->width * pe_dtype_size(op->in.dtype);
}

static void *row_out(const struct resize *op, size_t outer, size_t inner) {
    size_t y = op->outer == AXIS_H ? outer : inner, x = op->outer == AXIS_H ? inner : outer;
    size_t row = op->prefix + y * op->taps[AXIS_W].axis.to + x;
    return (char *)op->out.data + row * op->width * pe_dtype_size(op->out.dtype);
}

/* The sums along the outer axis for one target: line [from of the inner axis, D]. */
static void line_fill(const struct resize *op, size_t target, double *line) {
    const struct taps *taps = &op->taps[op->outer];
    const double *weights = taps->weights + target * taps->most;
    size_t cells = op->taps[1 - op->outer].axis.from;
    for (size_t tap = 0; tap < taps->n[target]; tap++) {
        for (size_t cell = 0; cell < cells; cell++) {
            if (cell % 64 == 0 && pe_stop_asked(op->stop)) {
                return;
            }
            pe_resample_add(op->in.dtype, row_in(op, taps->first[target] + tap, cell), op->width,
                            weights[tap], tap == 0, line + cell * op->width);
        }
    }
}

/* The rows that one line makes; sum [D]. */
static void line_use(const struct resize *op, size_t target, const double *line, double *sum) {
    const struct taps *taps = &op->taps[1 - op->outer];
    for (size_t t = 0; t < taps->axis.to; t++) {
        const double *weights = taps->weights + t * taps->most;
        if (t % 64 == 0 && pe_stop_asked(op->stop)) {
            return;
        }
        for (size_t tap = 0; tap < taps->n[t]; tap++) {
            pe_resample_add(PE_DTYPE_F64, line + (taps->first[t] + tap) * op->width, op->width, weights[tap],
                            tap == 0, sum);
        }
        pe_dtype_store(op->out.dtype, sum, op->width, row_out(op, target, t));
    }
}

static void resize_part(const void *state, size_t part) {
    const struct resize *op = state;
    double *line = op->scratch + part * op->line, *sum = line + op->line - op->width;
    size_t first = part * op->targets_per_part, targets = op->taps[op->outer].axis.to;
    for (size_t i = 0; i < op->targets_per_part && first + i < targets; i++) {
        if (pe_stop_asked(op->stop)) {
            return;
        }
        line_fill(op, first + i, line);
        line_use(op, first + i, line, sum);
    }
}

/* ---- Checks -------------------------------------------------------------------------------------------- */

static int target_check(const struct pe_resize_args *args, struct pe_error *err) {
    bool grid = args->to_grid[AXIS_H] || args->to_grid[AXIS_W];
    if (grid == (args->to_rows > 0)) {
        return pe_fail(err, grid ? PE_ERR_CONFLICT : PE_ERR_MISSING, "to_grid",
                       grid ? "is given beside to_rows" : "is missing, or to_rows for a table in a line");
    }
    if (grid && (!args->to_grid[AXIS_H] || !args->to_grid[AXIS_W])) {
        return pe_fail(err, PE_ERR_RANGE, "to_grid",
                       "got %zu x %zu, allowed are a height and a width of 1 or more", args->to_grid[AXIS_H],
                       args->to_grid[AXIS_W]);
    }
    if (!grid && (args->from_grid[AXIS_H] || args->from_grid[AXIS_W])) {
        return pe_fail(err, PE_ERR_CONFLICT, "from_grid", "is of grids, but to_rows is of a line");
    }
    return PE_OK;
}

static int kernel_check(const struct pe_resize_args *args, struct pe_error *err) {
    if (!args->kernel) {
        return pe_fail(err, PE_ERR_MISSING, "kernel", "is missing: projects differ in it");
    }
    if (args->kernel < PE_RESAMPLE_LINEAR || args->kernel > PE_RESAMPLE_BICUBIC_ANTIALIAS) {
        return pe_fail(err, PE_ERR_CHOICE, "kernel", "got %d, allowed are %d to %d", (int)args->kernel,
                       PE_RESAMPLE_LINEAR, PE_RESAMPLE_BICUBIC_ANTIALIAS);
    }
    if (args->align_corners && pe_resample_antialiased(args->kernel)) {
        return pe_fail(err, PE_ERR_CONFLICT, "align_corners",
                       "is not for antialiased kernels, which weigh whole cells");
    }
    return PE_OK;
}

static int args_check(const struct pe_resize_args *args, struct pe_error *err) {
    if (!args->table) {
        return pe_fail(err, PE_ERR_MISSING, "tensor", "is missing: the table to resize");
    }
    return target_check(args, err) || kernel_check(args, err) ||
                   (args->dtype && pe_dtype_check(args->dtype, err))
               ? err->code
               : PE_OK;
}

/* The table as rows [rows, D], and its own height and width where its axes tell. */
static int table_read(const struct pe_resize_args *args, struct resize *op, size_t from[AXES],
                      struct pe_error *err) {
    const struct pe_tensor *table = args->table;
    bool one = table->rank > 2 && table->dim[0] == 1;
    int rank = table->rank - one;
    const size_t *dim = table->dim + one;
    char shape[128];
    if (rank < 2 || rank > 3 || (rank == 3 && args->to_rows)) {
        return pe_fail(err, PE_ERR_SHAPE, "tensor",
                       "has shape %s, allowed are [rows, D], and of grids [h, w, D], each also behind a 1",
                       pe_tensor_shape_text(table, shape, sizeof shape));
    }
    op->in = *table;
    op->in.rank = 2;
    op->in.dim[1] = op->width = dim[rank - 1];
    op->in.dim[0] = rank == 3 ? dim[0] * dim[1] : dim[0];
    from[AXIS_H] = rank == 3 ? dim[0] : args->from_grid[AXIS_H];
    from[AXIS_W] = rank == 3 ? dim[1] : args->from_grid[AXIS_W];
    if (rank == 3 && args->from_grid[AXIS_H] &&
        (args->from_grid[AXIS_H] != dim[0] || args->from_grid[AXIS_W] != dim[1])) {
        return pe_fail(err, PE_ERR_CONFLICT, "from_grid", "is %zu x %zu, but the tensor has shape %s",
                       args->from_grid[AXIS_H], args->from_grid[AXIS_W],
                       pe_tensor_shape_text(table, shape, sizeof shape));
    }
    if (pe_tensor_count(&op->in) == 0) {
        return pe_fail(err, PE_ERR_SHAPE, "tensor", "has shape %s, which is empty",
                       pe_tensor_shape_text(table, shape, sizeof shape));
    }
    return PE_OK;
}

static int rows_fail(const struct resize *op, const size_t from[AXES], struct pe_error *err) {
    size_t rows = op->in.dim[0], kept = op->prefix + op->suffix, beside, side;
    char own[100] = "";
    side = pe_resample_square(rows, &beside);
    if (side) {
        snprintf(own, sizeof own, "; %zu are %zu x %zu and %zu", rows, side, side, beside);
    }
    if (!from[AXIS_H]) {
        return pe_fail(err, PE_ERR_MISSING, "from_grid",
                       "is missing, as %zu rows without prefix_rows and suffix_rows, %zu, are no square%s",
                       rows, kept, own);
    }
    return pe_fail(err, PE_ERR_SHAPE, "tensor",
                   "has %zu rows, but a grid of %zu x %zu and %zu rows beside it has %zu%s", rows,
                   from[AXIS_H], from[AXIS_W], kept, from[AXIS_H] * from[AXIS_W] + kept, own);
}

/* Sizes of both axes, before and after. */
static int sizes_read(const struct pe_resize_args *args, struct resize *op, struct pe_error *err) {
    size_t from[AXES], rows, kept = args->prefix_rows + args->suffix_rows;
    if (table_read(args, op, from, err)) {
        return err->code;
    }
    rows = op->in.dim[0];
    op->prefix = args->prefix_rows;
    op->suffix = args->suffix_rows;
    if (kept < args->prefix_rows || kept >= rows) {
        return pe_fail(err, PE_ERR_RANGE, "prefix_rows",
                       "and suffix_rows are %zu of the %zu rows, and leave "
                       "nothing to resize",
                       kept, rows);
    }
    if (args->to_rows) {
        from[AXIS_H] = rows - kept;
        from[AXIS_W] = 1;
    } else if (!from[AXIS_H] && !from[AXIS_W]) {
        size_t side = (size_t)(sqrt((double)(rows - kept)) + 0.5);
        from[AXIS_H] = from[AXIS_W] = side * side == rows - kept ? side : 0;
    }
    size_t cells;
    if (!pe_size_product(from, AXES, &cells) || cells != rows - kept) {
        return rows_fail(op, from, err);
    }
    for (int i = 0; i < AXES; i++) {
        size_t to = args->to_rows ? (i == AXIS_H ? args->to_rows : 1) : args->to_grid[i];
        op->taps[i].axis = (struct pe_resample_axis){
            .kernel = args->kernel, .from = from[i], .to = to, .align_corners = args->align_corners};
    }
    return PE_OK;
}

/* ---- Opening ------------------------------------------------------------------------------------------- */

/* All weights along an axis; *reach becomes the largest sum of their magnitudes. */
static int taps_open(struct pe_arena *arena, struct taps *taps, double *reach, struct pe_error *err) {
    size_t to = taps->axis.to;
    taps->most = pe_resample_most(&taps->axis);
    taps->weights = pe_arena_array(arena, to, taps->most * sizeof *taps->weights, err);
    taps->first = pe_arena_array(arena, to, sizeof *taps->first, err);
    taps->n = pe_arena_array(arena, to, sizeof *taps->n, err);
    for (size_t t = 0; t < to && !err->code && !pe_error_poll(err); t++) {
        double place = pe_resample_place(&taps->axis, (double)t), sum = 0;
        double *weights = taps->weights + t * taps->most;
        taps->n[t] = pe_resample_weights(&taps->axis, place, weights, &taps->first[t]);
        for (size_t i = 0; i < taps->n[t]; i++) {
            sum += fabs(weights[i]);
        }
        *reach = fmax(*reach, sum);
    }
    return err->code;
}

/* Multiplications with this axis first. */
static double cost_of(const struct resize *op, int outer) {
    const struct taps *first = &op->taps[outer], *second = &op->taps[1 - outer];
    double line = (double)first->most * (double)second->axis.from;
    double rest = (double)second->most * (double)second->axis.to;
    return (double)first->axis.to * (line + rest) * (double)op->width;
}

/* Would a sum be too large for the type? */
static int range_check(const struct resize *op, double reach, struct pe_error *err) {
    double largest = pe_largest_find(op->in.dtype, op->in.data, pe_tensor_count(&op->in), false, err);
    double limit = fmin(pe_dtype_overflow(op->out.dtype), DBL_MAX);
    if (!err->code && !(largest * fmax(reach, 1) < limit)) {
        return pe_fail(err, PE_ERR_RANGE, "tensor",
                       "has numbers up to %g, which the kernel may take beyond the largest %s", largest,
                       pe_dtype_name(op->out.dtype));
    }
    return err->code;
}

static int out_open(struct pe_arena *arena, struct resize *op, struct pe_tensor *resized,
                    const struct pe_resize_args *args, struct pe_error *err) {
    const struct pe_tensor *table = args->table;
    size_t dim[PE_MAX_RANK], cells, to[AXES] = {op->taps[AXIS_H].axis.to, op->taps[AXIS_W].axis.to};
    int rank = table->rank;
    bool grid = rank - (table->dim[0] == 1) == 3;
    if (!pe_size_product(to, AXES, &cells) || cells > SIZE_MAX / 4) {
        return pe_fail(err, PE_ERR_RANGE, "to_grid", "is %zu x %zu, which is too large", to[0], to[1]);
    }
    memcpy(dim, table->dim, sizeof dim);
    dim[rank - 2] = grid ? to[AXIS_W] : op->prefix + cells + op->suffix;
    if (grid) {
        dim[rank - 3] = to[AXIS_H];
    }
    enum pe_dtype dtype = args->dtype ? args->dtype : table->dtype;
    if (pe_result_ask(arena, dtype, rank, dim, err)) {
        return err->code;
    }
    if (pe_tensor_alloc(arena, resized, dtype, rank, dim, err)) {
        return pe_error_at(err, args->to_rows ? "to_rows" : "to_grid");
    }
    op->out = *resized;
    return PE_OK;
}

static int rows_keep(const struct resize *op, size_t from, size_t to, size_t n, struct pe_error *err) {
    size_t in = pe_dtype_size(op->in.dtype), out = pe_dtype_size(op->out.dtype);
    double *row = op->scratch; /* at least a row */
    for (size_t i = 0; i < n && !pe_error_poll(err); i++) {
        pe_dtype_load(op->in.dtype, (const char *)op->in.data + (from + i) * op->width * in, op->width, row);
        pe_dtype_store(op->out.dtype, row, op->width, (char *)op->out.data + (to + i) * op->width * out);
    }
    return err->code;
}

static int parts_open(struct pe_arena *arena, struct resize *op, struct pe_error *err) {
    size_t targets = op->taps[op->outer].axis.to, parts;
    op->line = (op->taps[1 - op->outer].axis.from + 1) * op->width;
    parts = SCRATCH_BYTES / sizeof(double) / op->line;
    parts = parts < 1 ? 1 : parts < PARTS_MOST ? parts : PARTS_MOST;
    op->targets_per_part = targets / parts + (targets % parts != 0);
    op->n_parts = targets / op->targets_per_part + (targets % op->targets_per_part != 0);
    op->scratch = pe_arena_array(arena, op->n_parts, op->line * sizeof *op->scratch, err);
    return err->code ? pe_error_at(err, "tensor") : PE_OK;
}

/* Weights and scratch memory, and what is not resized. */
static int fill(struct pe_arena *arena, struct resize *op, struct pe_error *err) {
    double reach[AXES] = {0, 0};
    if (taps_open(arena, &op->taps[AXIS_H], &reach[AXIS_H], err) ||
        taps_open(arena, &op->taps[AXIS_W], &reach[AXIS_W], err) ||
        range_check(op, reach[AXIS_H] * reach[AXIS_W], err)) {
        return err->code;
    }
    op->outer = cost_of(op, AXIS_H) <= cost_of(op, AXIS_W) ? AXIS_H : AXIS_W;
    size_t in_end = op->in.dim[0] - op->suffix;
    size_t out_end = pe_tensor_count(&op->out) / op->width - op->suffix;
    return parts_open(arena, op, err) || rows_keep(op, 0, 0, op->prefix, err) ||
                   rows_keep(op, in_end, out_end, op->suffix, err)
               ? err->code
               : PE_OK;
}

int pe_resize_open(struct pe_arena *arena, struct pe_work *work, struct pe_tensor *resized,
                   const struct pe_resize_args *theirs, struct pe_error *err) {
    struct pe_resize_args args;
    *work = (struct pe_work){0};
    *resized = (struct pe_tensor){0};
    if (err->code || pe_args_copy(&args, sizeof args, theirs, theirs->size, err) || args_check(&args, err)) {
        return err->code;
    }
    struct resize *op = pe_arena_array(arena, 1, sizeof *op, err);
    if (!op || sizes_read(&args, op, err) || out_open(arena, op, resized, &args, err) ||
        fill(arena, op, err)) {
        *resized = (struct pe_tensor){0};
        return err->code;
    }
    op->stop = err->stop;
    *work = (struct pe_work){.n_parts = op->n_parts,
                             .cost_ns = cost_of(op, op->outer) * 1.5,
                             .state = op,
                             .run = resize_part,
                             .stop = err->stop};
    return PE_OK;
}
