/* SPDX-License-Identifier: MIT
 *
 * encode for rotary encodings: the cosines and sines of the angles, in the forms that programs keep them in.
 *
 *     half       cos [T, n], sin [T, n]      n = rotary_dim/2 pairs
 *     full       cos [T, 2n], sin [T, 2n]    each at both columns of its pair: x*cos + turned(x)*sin
 *     packed     packed [T, 2n]              cosines, then sines: one cache for both
 *     complex    complex [T, n, 2]           cos + i sin, with which a pair is multiplied as a + i b
 */
#include "ops/operand.h"

#include "core/stop.h"

#include <string.h>

#define PART_BYTES (256 << 10) /* of output in one part */

struct rotary {
    struct pe_rotary_rows rows;
    struct pe_positions positions;
    size_t n; /* positions */
    struct pe_tensor out[2];
    size_t rows_per_part;
    const struct pe_stop *stop;
};

static size_t pairs_of(const struct pe_plan *plan) {
    return pe_plan_row(plan)->pairs(pe_plan_view(plan)).n;
}

size_t pe_rotary_row_items(const struct pe_rotary_rows *rows) {
    size_t n = pairs_of(rows->plan);
    return rows->form == PE_TRIG_HALF ? n : 2 * n;
}

/* From the first n elements of a row to all 2n of it, backwards, as they overlap. */
static void spread(char *row, const struct pe_pairs *pairs, size_t size) {
    if (pairs->step == 1) {
        memcpy(row + pairs->apart * size, row, pairs->n * size);
        return;
    }
    for (size_t i = pairs->n; i-- > 0;) {
        char value[8];
        memcpy(value, row + i * size, size);
        memcpy(row + (i * pairs->step + pairs->apart) * size, value, size);
        memcpy(row + i * pairs->step * size, value, size);
    }
}

static void make_row(const struct pe_rotary_rows *rows, const struct pe_spot *spot, char *first,
                     char *second) {
    const struct pe_encoding *row = pe_plan_row(rows->plan);
    const struct pe_plan_view *view = pe_plan_view(rows->plan);
    struct pe_pairs pairs = row->pairs(view);
    size_t size = pe_dtype_size(rows->dtype);
    struct pe_angles out = {.n = pairs.n, .cos = first, .sin = second, .step = 1};
    if (rows->form == PE_TRIG_PACKED) {
        out.sin = first + pairs.n * size;
    } else if (rows->form == PE_TRIG_COMPLEX) {
        out.sin = first + size;
        out.step = 2;
    }
    row->angles(view, spot, rows->dtype, &out);
    if (rows->form == PE_TRIG_FULL && first) {
        spread(first, &pairs, size);
    }
    if (rows->form == PE_TRIG_FULL && second) {
        spread(second, &pairs, size);
    }
}

void pe_rotary_fill(const struct pe_rotary_rows *rows, size_t first, size_t n, void *cos, void *sin) {
    size_t row_bytes = pe_rotary_row_items(rows) * pe_dtype_size(rows->dtype);
    for (size_t i = 0; i < n && !pe_stop_asked(rows->stop); i++) {
        double position[PE_MAX_AXES];
        struct pe_spot spot = {.position = position, .axes = rows->positions->axes, .keys = rows->keys};
        pe_positions_read(rows->positions, first + i, 1, position);
        make_row(rows, &spot, cos ? (char *)cos + i * row_bytes : NULL,
                 sin ? (char *)sin + i * row_bytes : NULL);
    }
}

int pe_rotary_check(const struct pe_plan *plan, const struct pe_positions *positions, enum pe_dtype dtype,
                    struct pe_error *err) {
    if (err->code || pe_dtype_check(dtype, err)) {
        return err->code;
    }
    const struct pe_encoding *row = pe_plan_row(plan);
    if (!row->angles) {
        return pe_encoding_unsupported(row, "has no angles", err);
    }
    return pe_positions_admit(plan, positions, dtype, "positions", err);
}

static void rotary_part(const void *state, size_t part) {
    const struct rotary *op = state;
    size_t first = part * op->rows_per_part;
    size_t n = op->n - first < op->rows_per_part ? op->n - first : op->rows_per_part;
    size_t bytes = first * pe_rotary_row_items(&op->rows) * pe_dtype_size(op->rows.dtype);
    char *cos = op->out[0].data, *sin = op->out[1].data;
    pe_rotary_fill(&op->rows, first, n, cos ? cos + bytes : NULL, sin ? sin + bytes : NULL);
}

/* [T, width], [B, T, width], or with a last axis of 2; returns the rank. */
static int table_shape(const struct rotary *op, size_t dim[4]) {
    const struct pe_positions *positions = &op->positions;
    size_t items = pe_rotary_row_items(&op->rows);
    int rank = 0;
    if (positions->batch) {
        dim[rank++] = positions->batch;
    }
    dim[rank++] = positions->length;
    dim[rank++] = op->rows.form == PE_TRIG_COMPLEX ? items / 2 : items;
    if (op->rows.form == PE_TRIG_COMPLEX) {
        dim[rank++] = 2;
    }
    return rank;
}

static int table_open(struct pe_arena *arena, struct pe_tensor *out, const struct rotary *op,
                      struct pe_error *err) {
    size_t dim[4] = {0};
    int rank = table_shape(op, dim);
    return pe_tensor_alloc(arena, out, op->rows.dtype, rank, dim, err) ? pe_error_at(err, "positions")
                                                                       : PE_OK;
}

/* The tables that are wanted all have one shape. */
static int results_ask(struct pe_arena *arena, const struct rotary *op, unsigned tables,
                       struct pe_error *err) {
    size_t dim[4] = {0};
    int rank = table_shape(op, dim);
    for (; tables; tables &= tables - 1) {
        if (pe_result_ask(arena, op->rows.dtype, rank, dim, err)) {
            return err->code;
        }
    }
    return PE_OK;
}

static int results_open(struct pe_arena *arena, struct rotary *op, struct pe_rotary_result *result,
                        const struct pe_rotary_args *args, struct pe_error *err) {
    bool one = op->rows.form == PE_TRIG_PACKED || op->rows.form == PE_TRIG_COMPLEX;
    struct pe_tensor *first = op->rows.form == PE_TRIG_PACKED ? &result->packed
                              : one                           ? &result->as_complex
                                                              : &result->cos;
    unsigned wanted = args->outputs;
    if (results_ask(arena, op, wanted & (one ? PE_ROTARY_TABLE : PE_ROTARY_COS | PE_ROTARY_SIN), err)) {
        return err->code;
    }
    if ((one ? wanted & PE_ROTARY_TABLE : wanted & PE_ROTARY_COS) && table_open(arena, first, op, err)) {
        return err->code;
    }
    if (!one && (wanted & PE_ROTARY_SIN) && table_open(arena, &result->sin, op, err)) {
        return err->code;
    }
    op->out[0] = *first;
    op->out[1] = result->sin;
    if (!(wanted & PE_ROTARY_INV_FREQ)) {
        return PE_OK;
    }
    size_t n = pairs_of(args->plan);
    if (pe_tensor_alloc(arena, &result->inv_freq, op->rows.dtype, 1, &n, err)) {
        return err->code;
    }
    pe_plan_row(args->plan)->frequencies(pe_plan_view(args->plan), op->rows.dtype, result->inv_freq.data);
    return PE_OK;
}

int pe_rotary_open(struct pe_arena *arena, struct pe_work *work, struct pe_rotary_result *result,
                   const struct pe_rotary_args *theirs, struct pe_error *err) {
    struct pe_rotary_args args;
    *work = (struct pe_work){0};
    *result = (struct pe_rotary_result){0};
    if (err->code || pe_args_copy(&args, sizeof args, theirs, theirs->size, err)) {
        return err->code;
    }
    enum pe_dtype dtype = args.dtype ? args.dtype : PE_DTYPE_F32;
    if (pe_rotary_check(args.plan, args.positions, dtype, err)) {
        return err->code;
    }
    struct rotary *op = pe_arena_array(arena, 1, sizeof *op, err);
    if (!op) {
        return err->code;
    }
    *op = (struct rotary){
        .positions = *args.positions, .n = pe_positions_count(args.positions), .stop = err->stop};
    op->rows = (struct pe_rotary_rows){.plan = args.plan,
                                       .positions = &op->positions,
                                       .dtype = dtype,
                                       .form = args.form ? args.form : PE_TRIG_HALF,
                                       .keys = args.keys,
                                       .stop = err->stop};
    size_t row_bytes = pe_rotary_row_items(&op->rows) * pe_dtype_size(dtype);
    op->rows_per_part = row_bytes < PART_BYTES ? PART_BYTES / row_bytes : 1;
    if (results_open(arena, op, result, &args, err)) {
        *result = (struct pe_rotary_result){0};
        return err->code;
    }
    bool any = op->out[0].data || op->out[1].data;
    *work = (struct pe_work){
        .n_parts = any ? op->n / op->rows_per_part + (op->n % op->rows_per_part != 0) : 0,
        .cost_ns = (double)op->n * pe_encoding_row_ns(args.plan, args.dtype),
        .state = op,
        .run = rotary_part,
        .stop = err->stop,
    };
    return PE_OK;
}
