/* SPDX-License-Identifier: MIT
 *
 * Learned tables of images: class rows first, then the rows of a grid of patches, row by row,
 *
 *     PE(token t)      = table[t]                                   t < cls_rows
 *     PE(y, x)         = table[cls_rows + y w + x]                  on the table's own grid [h, w]
 *     PE(y, x)         = sum over i, j of a_i(y) b_j(x) table[cls_rows + i w + j]
 *
 * on a grid [H, W] of another size, with the weights of kernels/resample.h: so a model trained on images of
 * one size reads those of another (interpolate_pos_encoding, resample_abs_pos_embed). A position is a token's
 * number in the image, or the two coordinates of a cell, which may lie between cells, and up to half a step
 * beyond those at the edges, as cells do.
 */
#include "encodings/learned.h"

#include "core/admit.h"
#include "kernels/resample.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BUFFER      256 /* doubles summed at a time, on the stack */
#define SHRINK_MOST 8   /* times that an image may be smaller: kernels widen, and each vector takes all */
#define TAPS_MOST   (4 * SHRINK_MOST + 2)
#define REACH       4.0 /* no kernel's |weights| sum to more, of both axes: 1.375^2 at a = -3/4 */

enum { GRID_H, GRID_W, GRID_AXES };

/* What a position means. */
struct spot {
    enum { SPOT_NONE, SPOT_ROW, SPOT_CELL } kind;
    size_t row;
    double at[GRID_AXES];
};

/* The rows that make a vector, and their weights along both axes. */
struct taps {
    size_t first[GRID_AXES], n[GRID_AXES];
    double weights[GRID_AXES][TAPS_MOST];
};

static bool is_kernel(const struct learned *learned) {
    return learned->interpolate != LEARNED_NONE && learned->interpolate != PE_RESAMPLE_LINEAR;
}

bool pe_learned_is_grid(const struct learned *learned) {
    return learned->grid.n || learned->image_grid.n || learned->cls_rows || is_kernel(learned);
}

double pe_learned_reach(const struct learned *learned) {
    return is_kernel(learned) ? REACH : 1;
}

void pe_learned_grid_adopt(struct learned *learned) {
    const struct pe_tensor *table = learned->table.tensor;
    if (!table || table->rank < 2 || learned->grid.n || !pe_learned_is_grid(learned) ||
        pe_learned_rows(learned) <= (size_t)learned->cls_rows) {
        return;
    }
    size_t cells = pe_learned_rows(learned) - (size_t)learned->cls_rows;
    size_t side = (size_t)(sqrt((double)cells) + 0.5);
    if (side * side == cells && side <= INT32_MAX) {
        learned->grid = (struct pe_ints){.n = GRID_AXES, .v = {(int64_t)side, (int64_t)side}};
        learned->given |= UINT64_C(1) << LEARNED_FIELD_GRID;
    }
}

/* ---- Checks -------------------------------------------------------------------------------------------- */

static int rows_fail(const struct learned *learned, struct pe_error *err) {
    size_t rows = pe_learned_rows(learned), beside, side = pe_resample_square(rows, &beside);
    char own[100] = "";
    if (side) {
        snprintf(own, sizeof own, ", but %zu x %zu and %zu", side, side, beside);
    }
    if (!learned->grid.n) {
        return pe_fail(err, PE_ERR_MISSING, "grid",
                       "is missing, as %zu rows, %lld of them class rows, are no square%s", rows,
                       (long long)learned->cls_rows, own);
    }
    long long h = learned->grid.v[0], w = learned->grid.v[1], cls = learned->cls_rows;
    return pe_fail(err, PE_ERR_SHAPE, "table",
                   "has %zu rows%s; a grid of %lld x %lld and %lld class row%s has %lld; convert with resize "
                   "makes a table for another grid",
                   rows, own, h, w, cls, cls == 1 ? "" : "s", h * w + cls);
}

static int kernel_check(const struct learned *learned, struct pe_error *err) {
    if (learned->interpolate == PE_RESAMPLE_LINEAR) {
        return pe_fail(err, PE_ERR_CONFLICT, "interpolate",
                       "is linear, which is for rows in a line; for those of a grid there is bilinear");
    }
    if (learned->image_grid.n && !is_kernel(learned)) {
        return pe_fail(err, PE_ERR_CONFLICT, "image_grid",
                       "is given, but interpolate is none; a grid of another size needs bilinear or bicubic");
    }
    if (learned->align_corners && !learned->image_grid.n) {
        return pe_fail(err, PE_ERR_CONFLICT, "align_corners",
                       "is how grids of two sizes lie on each other, but there is no image_grid");
    }
    if (learned->align_corners && pe_resample_antialiased((enum pe_resample)learned->interpolate)) {
        return pe_fail(err, PE_ERR_CONFLICT, "align_corners",
                       "is not for antialiased kernels, which weigh whole cells");
    }
    return PE_OK;
}

static int sizes_check(const struct learned *learned, struct pe_error *err) {
    const struct pe_ints *of[] = {&learned->grid, &learned->image_grid};
    for (size_t i = 0; i < PE_COUNT(of); i++) {
        if (of[i]->n && of[i]->n != GRID_AXES) {
            return pe_fail(err, PE_ERR_SHAPE, i ? "image_grid" : "grid",
                           "got %zu sizes, allowed are 2: height and width", of[i]->n);
        }
    }
    size_t cells = pe_learned_rows(learned) - (size_t)learned->cls_rows; /* may wrap: then they are none */
    if (!learned->grid.n || pe_learned_rows(learned) < (size_t)learned->cls_rows ||
        cells != (size_t)learned->grid.v[0] * (size_t)learned->grid.v[1]) {
        return rows_fail(learned, err);
    }
    for (size_t i = 0; i < learned->image_grid.n; i++) {
        if (learned->grid.v[i] > SHRINK_MOST * learned->image_grid.v[i]) {
            return pe_fail(
                err, PE_ERR_RANGE, "image_grid",
                "is %lld where the table's grid is %lld, allowed is down to one in %d; convert with "
                "resize has no such bound",
                (long long)learned->image_grid.v[i], (long long)learned->grid.v[i], SHRINK_MOST);
        }
    }
    return PE_OK;
}

int pe_learned_grid_check(const struct learned *learned, struct pe_error *err) {
    if (learned->offset) {
        return pe_fail(err, PE_ERR_CONFLICT, "offset",
                       "is %lld, but in a grid cls_rows tells where the first cell is",
                       (long long)learned->offset);
    }
    return kernel_check(learned, err) || sizes_check(learned, err) ? err->code : PE_OK;
}

/* ---- Positions ----------------------------------------------------------------------------------------- */

static size_t size_along(const struct learned *learned, int axis) {
    return (size_t)(learned->image_grid.n ? learned->image_grid.v[axis] : learned->grid.v[axis]);
}

size_t pe_learned_grid_tokens(const struct learned *learned) {
    return (size_t)learned->cls_rows + size_along(learned, GRID_H) * size_along(learned, GRID_W);
}

/* How far cells reach beyond their centres. */
static double margin(const struct learned *learned) {
    return is_kernel(learned) ? 0.5 : 0;
}

static int cell_fail(const struct learned *learned, const struct pe_positions *positions, size_t index,
                     double position, struct pe_error *err) {
    char path[64];
    pe_positions_index_text(positions, index, path, sizeof path);
    if (!is_kernel(learned) && floor(position) != position) {
        return pe_fail(err, PE_ERR_RANGE, path,
                       "coordinate %.17g is not a whole number; interpolate=bilinear or bicubic allows those "
                       "between cells",
                       position);
    }
    double last = (double)size_along(learned, index % GRID_AXES) - 1;
    return pe_fail(err, PE_ERR_RANGE, path, "coordinate %.17g is outside of the grid, %g to %g; %s", position,
                   0 - margin(learned), last + margin(learned),
                   "image_grid is for images of another size, convert with resize makes a table of it");
}

static bool cell_strays(const struct learned *learned, int axis, double position) {
    double last = (double)size_along(learned, axis) - 1;
    if (!is_kernel(learned) && floor(position) != position) {
        return true;
    }
    return learned->out_of_range == LEARNED_ERROR &&
           (position < -margin(learned) || position > last + margin(learned));
}

static int cells_admit(const struct learned *learned, const struct pe_positions *positions,
                       struct pe_error *err) {
    size_t n = pe_positions_count(positions);
    for (size_t i = 0; i < n; i++) {
        double at[PE_MAX_AXES];
        pe_positions_read(positions, i, 1, at);
        if (i % 4096 == 0 && pe_error_poll(err)) {
            return err->code;
        }
        for (int axis = 0; axis < GRID_AXES; axis++) {
            if (cell_strays(learned, axis, at[axis])) {
                return cell_fail(learned, positions, i * GRID_AXES + (size_t)axis, at[axis], err);
            }
        }
    }
    return PE_OK;
}

static int token_fail(const struct learned *learned, const struct pe_positions *positions,
                      const struct pe_stray *stray, struct pe_error *err) {
    char path[64];
    pe_positions_index_text(positions, stray->index, path, sizeof path);
    if (stray->fraction) {
        return pe_fail(err, PE_ERR_RANGE, path,
                       "position %.17g is not a whole number, as tokens of an image are; a place between "
                       "cells has two coordinates",
                       stray->position);
    }
    return pe_fail(
        err, PE_ERR_RANGE, path,
        "position %.17g is no token of an image of %zu x %zu with %lld class row%s, which are 0 to "
        "%zu; image_grid is for images of another size, convert with resize makes a table of it",
        stray->position, size_along(learned, GRID_H), size_along(learned, GRID_W),
        (long long)learned->cls_rows, learned->cls_rows == 1 ? "" : "s", pe_learned_grid_tokens(learned) - 1);
}

int pe_learned_grid_admit(const struct learned *learned, const struct pe_positions *positions,
                          struct pe_error *err) {
    if (positions->axes == GRID_AXES) {
        return cells_admit(learned, positions, err);
    }
    if (positions->axes != 1) {
        return pe_fail(err, PE_ERR_SHAPE, "",
                       "have %d coordinates each, a grid has 2, and tokens of an image have one",
                       positions->axes);
    }
    struct pe_admit rule = {.whole = true, .min = -INFINITY, .max = INFINITY};
    if (learned->out_of_range == LEARNED_ERROR) {
        rule.min = 0;
        rule.max = (double)(pe_learned_grid_tokens(learned) - 1);
    }
    struct pe_stray stray;
    return pe_positions_stray(positions, &rule, err->stop, &stray)
               ? token_fail(learned, positions, &stray, err)
               : PE_OK;
}

/* ---- Vectors ------------------------------------------------------------------------------------------- */

static struct spot spot_of_token(const struct learned *learned, double position) {
    double last = (double)(pe_learned_grid_tokens(learned) - 1), token = fmin(fmax(position, 0), last);
    size_t cls = (size_t)learned->cls_rows, width = size_along(learned, GRID_W);
    if (token != position && learned->out_of_range == LEARNED_ZERO) {
        return (struct spot){.kind = SPOT_NONE};
    }
    if (token < (double)cls) {
        return (struct spot){.kind = SPOT_ROW, .row = (size_t)token};
    }
    size_t cell = (size_t)token - cls;
    return (struct spot){.kind = SPOT_CELL, .at = {(double)(cell / width), (double)(cell % width)}};
}

static struct spot spot_of_cell(const struct learned *learned, const double *position) {
    struct spot spot = {.kind = SPOT_CELL};
    for (int axis = 0; axis < GRID_AXES; axis++) {
        double last = (double)size_along(learned, axis) - 1, more = margin(learned);
        spot.at[axis] = fmin(fmax(position[axis], -more), last + more);
        if (spot.at[axis] != position[axis] && learned->out_of_range == LEARNED_ZERO) {
            return (struct spot){.kind = SPOT_NONE};
        }
    }
    return spot;
}

static void taps_find(const struct learned *learned, const struct spot *spot, struct taps *taps) {
    for (int axis = 0; axis < GRID_AXES; axis++) {
        const struct pe_resample_axis along = {.kernel = (enum pe_resample)learned->interpolate,
                                               .from = (size_t)learned->grid.v[axis],
                                               .to = size_along(learned, axis),
                                               .align_corners = learned->align_corners};
        if (is_kernel(learned)) {
            double place = fmin(pe_resample_place(&along, spot->at[axis]), (double)along.from - 0.5);
            taps->n[axis] =
                pe_resample_weights(&along, fmax(place, -0.5), taps->weights[axis], &taps->first[axis]);
        } else {
            taps->n[axis] = 1;
            taps->first[axis] = (size_t)spot->at[axis];
            taps->weights[axis][0] = 1;
        }
    }
}

/* Of the rows that `taps` names, as a number i of n[0]*n[1]. */
static size_t tap_row(const struct learned *learned, const struct taps *taps, size_t i) {
    size_t y = taps->first[GRID_H] + i / taps->n[GRID_W], x = taps->first[GRID_W] + i % taps->n[GRID_W];
    return (size_t)learned->cls_rows + y * (size_t)learned->grid.v[GRID_W] + x;
}

static double tap_weight(const struct taps *taps, size_t i) {
    return taps->weights[GRID_H][i / taps->n[GRID_W]] * taps->weights[GRID_W][i % taps->n[GRID_W]];
}

static void sum_rows(const struct learned *learned, const struct taps *taps, enum pe_dtype dtype,
                     unsigned char *out) {
    enum pe_dtype stored = learned->table.tensor->dtype;
    size_t width = pe_learned_width(learned), n_taps = taps->n[GRID_H] * taps->n[GRID_W];
    double scale = pe_learned_scale(learned), sum[BUFFER];
    for (size_t c = 0, n; c < width; c += n) {
        n = width - c < BUFFER ? width - c : BUFFER;
        for (size_t i = 0; i < n_taps; i++) {
            const unsigned char *row = pe_learned_row(learned, tap_row(learned, taps, i));
            pe_resample_add(stored, row + c * pe_dtype_size(stored), n, tap_weight(taps, i), i == 0, sum);
        }
        for (size_t i = 0; i < n; i++) {
            sum[i] *= scale;
        }
        pe_dtype_store(dtype, sum, n, out + c * pe_dtype_size(dtype));
    }
}

void pe_learned_grid_encode(const struct learned *learned, const double *position, int axes,
                            enum pe_dtype dtype, unsigned char *out) {
    struct spot spot = axes == 1 ? spot_of_token(learned, *position) : spot_of_cell(learned, position);
    struct taps taps;
    if (spot.kind == SPOT_NONE) {
        memset(out, 0, pe_learned_width(learned) * pe_dtype_size(dtype)); /* +0 in every element type */
        return;
    }
    if (spot.kind == SPOT_CELL) {
        taps_find(learned, &spot, &taps);
        spot.row = tap_row(learned, &taps, 0);
    }
    if (spot.kind == SPOT_ROW || (taps.n[GRID_H] == 1 && taps.n[GRID_W] == 1)) {
        pe_learned_copy(learned, spot.row, dtype, out);
    } else {
        sum_rows(learned, &taps, dtype, out);
    }
}

/* The first number of the rows that make a vector which may take it to the limit, or 0. */
static double spot_excess(const struct learned *learned, const struct spot *spot, double limit) {
    struct taps taps;
    double excess = 0;
    if (spot->kind == SPOT_ROW) {
        return pe_learned_excess(learned, spot->row, limit);
    }
    taps_find(learned, spot, &taps);
    size_t n = taps.n[GRID_H] * taps.n[GRID_W];
    for (size_t i = 0; i < n && excess == 0; i++) {
        excess = pe_learned_excess(learned, tap_row(learned, &taps, i), n == 1 ? limit : limit / REACH);
    }
    return excess;
}

int pe_learned_grid_fits(const struct learned *learned, const struct pe_positions *positions,
                         enum pe_dtype dtype, double limit, struct pe_error *err) {
    size_t n = pe_positions_count(positions);
    for (size_t i = 0; i < n; i++) {
        double at[PE_MAX_AXES];
        if (pe_error_poll(err)) {
            return err->code;
        }
        pe_positions_read(positions, i, 1, at);
        struct spot spot = positions->axes == 1 ? spot_of_token(learned, *at) : spot_of_cell(learned, at);
        double excess = spot.kind == SPOT_NONE ? 0 : spot_excess(learned, &spot, limit);
        if (excess != 0) {
            return pe_positions_overflow(positions, i * (size_t)positions->axes, excess, dtype, limit, err);
        }
    }
    return PE_OK;
}

double pe_learned_grid_cost_ns(const struct learned *learned) {
    double taps = 1;
    for (int axis = 0; axis < GRID_AXES && is_kernel(learned); axis++) {
        const struct pe_resample_axis along = {.kernel = (enum pe_resample)learned->interpolate,
                                               .from = (size_t)learned->grid.v[axis],
                                               .to = size_along(learned, axis)};
        taps *= (double)pe_resample_most(&along);
    }
    return taps * (20 + (double)pe_learned_width(learned));
}
