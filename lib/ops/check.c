/* SPDX-License-Identifier: MIT
 *
 * check: a posted table against the exact one. The exact values are those of encode in float64, so good to
 * half a unit of its last place; errors are told in absolute numbers, and in units of the last place of the
 * posted type at the exact value, which a correctly rounded table keeps at one half.
 *
 * The usual fault of a table grows with the position, as frequencies that are off by 2^-24 make angles that
 * are off by p*2^-24; hence the largest error for each octave of |p|: [0, 1), [1, 2), [2, 4) ... Another
 * formula shows in some columns, another layout in nearly all from position 1 on.
 *
 * One part: the maxima of all rows are one result, and a row costs little more than making it.
 */
#include "ops/operand.h"

#include "posenc_admits.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define BLOCK_ITEMS ((size_t)1 << 14) /* numbers looked at together */
#define MAX_TABLES  2

struct table {
    const char *name;
    struct pe_tensor tensor;
    enum pe_trig_form form; /* 0: vectors */
    bool second;            /* sines of a form of two tensors */
    size_t items;           /* of a row */
    double *columns;        /* [items]: the largest error */
};

struct check {
    const struct pe_plan *plan;
    struct pe_positions positions;
    size_t batch, length; /* rows are [batch, length]; batch 0: no such axis */
    struct table tables[MAX_TABLES];
    size_t n_tables;
    double rtol, atol;
    bool keys;
    double *exact, *got; /* [rows of a block, items] */
    size_t block_rows;
    struct pe_check_report *report;
    const struct pe_stop *stop;
};

/* ---- Errors of one block ------------------------------------------------------------------------------- */

/* The distance of neighbouring numbers at x. */
static double ulp_of(enum pe_dtype dtype, double x) {
    static const struct {
        int bits, exponent_min;
    } formats[PE_DTYPE_COUNT] = {[PE_DTYPE_F64] = {53, -1022},
                                 [PE_DTYPE_F32] = {24, -126},
                                 [PE_DTYPE_F16] = {11, -14},
                                 [PE_DTYPE_BF16] = {8, -126}};
    int exponent = formats[dtype].exponent_min + 1;
    int of_x = exponent;
    if (x != 0) {
        frexp(x, &of_x);
    }
    return ldexp(1, (of_x > exponent ? of_x : exponent) - formats[dtype].bits);
}

static double finite(double x) {
    return x < DBL_MAX ? x : DBL_MAX;
}

/* The octave of a position: that of its largest coordinate. 0 is [0, 1), k is [2^(k-1), 2^k). */
static size_t octave_of(const double *position, int axes) {
    double most = 0;
    int exponent;
    for (int i = 0; i < axes; i++) {
        most = fmax(most, fabs(position[i]));
    }
    frexp(most, &exponent);
    return most < 1 ? 0 : (size_t)exponent;
}

static void keep_first_bad(const struct check *op, const struct table *table, size_t row, size_t column,
                           const double values[2]) {
    struct pe_check_bad *bad = &op->report->first_bad;
    if (!op->report->pass && bad->row <= row) {
        return;
    }
    op->report->pass = false;
    *bad = (struct pe_check_bad){
        .tensor = table->name, .row = row, .column = column, .got = values[0], .exact = values[1]};
    pe_positions_read(&op->positions, op->positions.batch ? row : row % op->length, 1, bad->position);
}

/* One row of a table; returns its largest error. */
static double row_check(const struct check *op, const struct table *table, size_t row, const double *got,
                        const double *exact) {
    struct pe_check_report *report = op->report;
    double most = 0;
    for (size_t i = 0; i < table->items; i++) {
        double off = finite(fabs(got[i] - exact[i]));
        if (off == 0) {
            continue;
        }
        report->max_ulp = fmax(report->max_ulp, finite(off / ulp_of(table->tensor.dtype, exact[i])));
        table->columns[i] = fmax(table->columns[i], off);
        most = fmax(most, off);
        if (!(off <= op->atol + op->rtol * fabs(exact[i]))) {
            keep_first_bad(op, table, row, i, (const double[2]){got[i], exact[i]});
        }
    }
    return most;
}

/* Rows first .. first+n-1, exactly; `place` is the first position's index. */
static void exact_rows(const struct check *op, const struct table *table, size_t place, size_t n) {
    const struct pe_rows vectors = {
        .plan = op->plan, .positions = &op->positions, .dtype = PE_DTYPE_F64, .stop = op->stop};
    const struct pe_rotary_rows trig = {.plan = op->plan,
                                        .positions = &op->positions,
                                        .dtype = PE_DTYPE_F64,
                                        .form = table->form,
                                        .keys = op->keys,
                                        .stop = op->stop};
    if (table->form) {
        pe_rotary_fill(&trig, place, n, table->second ? NULL : op->exact, table->second ? op->exact : NULL);
    } else {
        pe_rows_encode(&vectors, place, n, op->exact);
    }
}

static void block_check(const struct check *op, const struct table *table, size_t first, size_t n) {
    const int axes = op->positions.axes;
    size_t place = op->positions.batch ? first : first % op->length;
    const char *at =
        (const char *)table->tensor.data + first * table->items * pe_dtype_size(table->tensor.dtype);
    exact_rows(op, table, place, n);
    pe_dtype_load(table->tensor.dtype, at, n * table->items, op->got);
    for (size_t i = 0; i < n && !pe_stop_asked(op->stop); i++) {
        double position[PE_MAX_AXES];
        pe_positions_read(&op->positions, place + i, 1, position);
        struct pe_check_octave *octave = &op->report->octaves[octave_of(position, axes)];
        double most =
            row_check(op, table, first + i, op->got + i * table->items, op->exact + i * table->items);
        octave->n++;
        octave->max_abs = fmax(octave->max_abs, most);
        op->report->max_abs = fmax(op->report->max_abs, most);
    }
}

/* ---- The whole ----------------------------------------------------------------------------------------- */

/* Columns in the order of their errors; among equal ones the first stays in front. */
static void worst_columns(const struct check *op) {
    struct pe_check_report *report = op->report;
    for (size_t k = 0; k < op->n_tables; k++) {
        const struct table *table = &op->tables[k];
        for (size_t c = 0; c < table->items; c++) {
            size_t at = report->n_columns;
            while (at > 0 && report->columns[at - 1].max_abs < table->columns[c]) {
                at--;
            }
            if (table->columns[c] == 0 || at == PE_CHECK_COLUMNS) {
                continue;
            }
            report->n_columns += report->n_columns < PE_CHECK_COLUMNS;
            memmove(&report->columns[at + 1], &report->columns[at],
                    (report->n_columns - at - 1) * sizeof report->columns[0]);
            report->columns[at] =
                (struct pe_check_column){.tensor = table->name, .column = c, .max_abs = table->columns[c]};
        }
    }
}

static size_t n_rows(const struct check *op) {
    return (op->batch ? op->batch : 1) * op->length;
}

static void check_part(const void *state, size_t part) {
    const struct check *op = state;
    (void)part;
    for (size_t first = 0, n; first < n_rows(op); first += n) {
        size_t left = op->length - first % op->length; /* a block stays in its row of the batch */
        n = left < op->block_rows ? left : op->block_rows;
        for (size_t k = 0; k < op->n_tables; k++) {
            if (pe_stop_asked(op->stop)) {
                return;
            }
            block_check(op, &op->tables[k], first, n);
        }
    }
    worst_columns(op);
}

/* ---- Opening ------------------------------------------------------------------------------------------- */

static int shape_fail(const struct table *table, const char *allowed, struct pe_error *err) {
    char shape[128];
    return pe_fail(err, PE_ERR_SHAPE, table->name, "has shape %s, allowed are %s",
                   pe_tensor_shape_text(&table->tensor, shape, sizeof shape), allowed);
}

/* A table's rows: [T, ...] or [B, T, ...], where `axes` axes make a row. All tables have the same. */
static int rows_of(struct check *op, const struct table *table, int axes, const char *allowed,
                   struct pe_error *err) {
    const struct pe_tensor *tensor = &table->tensor;
    int rank = tensor->rank - axes;
    if (rank < 1 || rank > 2) {
        return shape_fail(table, allowed, err);
    }
    size_t batch = rank == 2 ? tensor->dim[0] : 0, length = tensor->dim[rank - 1];
    const struct table *first = &op->tables[0];
    if (op->n_tables == 0) {
        op->batch = batch;
        op->length = length;
    } else if (op->batch != batch || op->length != length) {
        char shape[128], other[128];
        return pe_fail(err, PE_ERR_SHAPE, table->name, "has shape %s, which has not the rows of %s, %s",
                       pe_tensor_shape_text(tensor, shape, sizeof shape), first->name,
                       pe_tensor_shape_text(&first->tensor, other, sizeof other));
    } else if (first->tensor.dtype != tensor->dtype) {
        return pe_fail(err, PE_ERR_DTYPE, table->name, "is %s, but %s is %s: one tolerance is for both",
                       pe_dtype_name(tensor->dtype), first->name, pe_dtype_name(first->tensor.dtype));
    }
    return PE_OK;
}

static int table_add(struct pe_arena *arena, struct check *op, const struct table *table,
                     struct pe_error *err) {
    struct table *out = &op->tables[op->n_tables++];
    *out = *table;
    out->columns = pe_arena_array(arena, out->items, sizeof *out->columns, err);
    return out->columns && pe_tensor_check_finite(&out->tensor, false, err) ? pe_error_at(err, out->name)
                                                                            : err->code;
}

int pe_check_admits(const struct pe_encoding_info *encoding, struct pe_error *err) {
    const struct pe_encoding *row = pe_encoding_row(encoding);
    return row->encode || row->angles ? err->code
                                      : pe_encoding_unsupported(row, "makes no vectors to check", err);
}

static int vectors_open(struct pe_arena *arena, struct check *op, const struct pe_check_args *args,
                        struct pe_error *err) {
    struct table table = {.name = "tensor", .items = pe_plan_width(op->plan)};
    const struct pe_encoding *row = pe_plan_row(op->plan);
    char allowed[80];
    if (pe_check_admits(&row->info, err)) {
        return err->code;
    }
    if (args->cos || args->sin || args->packed || args->as_complex) {
        return pe_fail(err, PE_ERR_CONFLICT,
                       args->cos      ? "cos"
                       : args->sin    ? "sin"
                       : args->packed ? "packed"
                                      : "complex",
                       "is of rotary encodings, got %s, whose vectors go to tensor", row->info.type);
    }
    if (!args->tensor) {
        return pe_fail(err, PE_ERR_MISSING, "tensor", "is missing: the vectors to check");
    }
    table.tensor = *args->tensor;
    snprintf(allowed, sizeof allowed, "[T, %zu] and [B, T, %zu]", table.items, table.items);
    if (table.tensor.rank < 1 || table.tensor.dim[table.tensor.rank - 1] != table.items) {
        return shape_fail(&table, allowed, err);
    }
    return rows_of(op, &table, 1, allowed, err) || table_add(arena, op, &table, err) ? err->code : PE_OK;
}

/* Which form a tensor of cosines and sines has: its last axes tell. 0: none. */
static enum pe_trig_form form_of(const char *name, const struct pe_tensor *tensor, size_t pairs) {
    size_t last = tensor->rank > 0 ? tensor->dim[tensor->rank - 1] : 0;
    bool complex = tensor->rank > 1 && last == 2 && tensor->dim[tensor->rank - 2] == pairs;
    if (strcmp(name, "cos") == 0 || strcmp(name, "sin") == 0) {
        return last == pairs ? PE_TRIG_HALF : last == 2 * pairs ? PE_TRIG_FULL : 0;
    }
    if (last == 2 * pairs && strcmp(name, "complex") != 0) {
        return PE_TRIG_PACKED;
    }
    return complex && strcmp(name, "packed") != 0 ? PE_TRIG_COMPLEX : 0;
}

static int trig_open(struct pe_arena *arena, struct check *op, const char *name,
                     const struct pe_tensor *tensor, struct pe_error *err) {
    size_t pairs = pe_plan_row(op->plan)->pairs(pe_plan_view(op->plan)).n;
    struct table table = {.name = name, .tensor = *tensor, .second = strcmp(name, "sin") == 0};
    bool two = table.second || strcmp(name, "cos") == 0;
    char allowed[120];
    if (two) {
        snprintf(allowed, sizeof allowed, "[T, %zu] and [T, %zu], perhaps with a batch in front", pairs,
                 2 * pairs);
    } else {
        snprintf(allowed, sizeof allowed,
                 "packed [T, %zu] and complex [T, %zu, 2], perhaps with a batch in front", 2 * pairs, pairs);
    }
    table.form = form_of(name, tensor, pairs);
    if (!table.form) {
        return shape_fail(&table, allowed, err);
    }
    table.items = table.form == PE_TRIG_HALF ? pairs : 2 * pairs;
    return rows_of(op, &table, table.form == PE_TRIG_COMPLEX ? 2 : 1, allowed, err) ||
                   table_add(arena, op, &table, err)
               ? err->code
               : PE_OK;
}

/* cos and sin, or one of them, or one tensor that holds both. */
static int rotary_open(struct pe_arena *arena, struct check *op, const struct pe_check_args *args,
                       struct pe_error *err) {
    const struct {
        const char *name;
        const struct pe_tensor *tensor;
    } all[] = {{"cos", args->cos},
               {"sin", args->sin},
               {"packed", args->packed},
               {"complex", args->as_complex},
               {"tensor", args->tensor}};
    for (size_t i = 0; i < PE_COUNT(all); i++) {
        if (all[i].tensor && op->n_tables && i >= 2) {
            return pe_fail(err, PE_ERR_CONFLICT, all[i].name, "%s is there, too: one of them is checked",
                           op->tables[0].name);
        }
        if (all[i].tensor && trig_open(arena, op, all[i].name, all[i].tensor, err)) {
            return err->code;
        }
    }
    return op->n_tables ? PE_OK
                        : pe_fail(err, PE_ERR_MISSING, "cos",
                                  "is missing: cos and sin, packed or complex of the table to check");
}

/* As torch.testing.assert_close has them. */
static int tolerances(struct check *op, const struct pe_check_args *args, struct pe_error *err) {
    static const struct {
        double rtol, atol;
    } usual[PE_DTYPE_COUNT] = {[PE_DTYPE_F64] = {1e-7, 1e-7},
                               [PE_DTYPE_F32] = {1.3e-6, 1e-5},
                               [PE_DTYPE_F16] = {1e-3, 1e-5},
                               [PE_DTYPE_BF16] = {1.6e-2, 1e-5}};
    enum pe_dtype dtype = op->tables[0].tensor.dtype;
    op->rtol = args->rtol ? *args->rtol : usual[dtype].rtol;
    op->atol = args->atol ? *args->atol : usual[dtype].atol;
    for (int i = 0; i < 2; i++) {
        double value = i ? op->atol : op->rtol;
        if (!(value >= 0) || isinf(value)) {
            return pe_fail(err, PE_ERR_RANGE, i ? "atol" : "rtol",
                           "got %g, allowed are finite numbers from 0", value);
        }
    }
    return PE_OK;
}

/* Given, or 0 .. T-1. */
static int positions_open(struct check *op, const struct pe_check_args *args, struct pe_error *err) {
    op->positions = (struct pe_positions){.length = op->length, .axes = 1, .step = 1};
    if (args->positions) {
        op->positions = *args->positions;
    }
    if (pe_positions_fit(op->plan, &op->positions, op->batch, op->length, "positions", err)) {
        return err->code;
    }
    return args->positions ? pe_positions_admit(op->plan, &op->positions, PE_DTYPE_F64, "positions", err)
                           : pe_positions_admit_default(op->plan, &op->positions, PE_DTYPE_F64, "positions",
                                                        op->tables[0].name, err);
}

static void octaves_name(struct pe_check_report *report) {
    for (int k = 0; k < PE_CHECK_OCTAVES; k++) {
        report->octaves[k].from = k ? ldexp(1, k - 1) : 0;
        report->octaves[k].to = ldexp(1, k);
    }
}

static int memory_open(struct pe_arena *arena, struct check *op, struct pe_error *err) {
    size_t items = op->tables[0].items;
    items = op->n_tables > 1 && op->tables[1].items > items ? op->tables[1].items : items;
    op->block_rows = items < BLOCK_ITEMS ? BLOCK_ITEMS / items : 1;
    op->block_rows = op->length && op->length < op->block_rows ? op->length : op->block_rows;
    op->exact = pe_arena_array(arena, 2 * op->block_rows, items * sizeof(double), err);
    op->report = pe_arena_array(arena, 1, sizeof *op->report, err);
    if (!op->exact || !op->report) {
        return err->code;
    }
    op->got = op->exact + op->block_rows * items;
    op->report->pass = true;
    octaves_name(op->report);
    return PE_OK;
}

int pe_check_open(struct pe_arena *arena, struct pe_work *work, struct pe_check_result *result,
                  const struct pe_check_args *theirs, struct pe_error *err) {
    struct pe_check_args args;
    *work = (struct pe_work){0};
    *result = (struct pe_check_result){0};
    if (err->code || pe_args_copy(&args, sizeof args, theirs, theirs->size, err)) {
        return err->code;
    }
    if (!args.plan) {
        return pe_fail(err, PE_ERR_MISSING, "encoding", "is missing");
    }
    struct check *op = pe_arena_array(arena, 1, sizeof *op, err);
    if (!op) {
        return err->code;
    }
    op->plan = args.plan;
    op->keys = args.keys;
    op->stop = err->stop;
    bool rotary = pe_plan_row(args.plan)->angles != NULL;
    if ((rotary ? rotary_open : vectors_open)(arena, op, &args, err) || tolerances(op, &args, err) ||
        positions_open(op, &args, err) || memory_open(arena, op, err)) {
        return err->code;
    }
    double rows = (double)n_rows(op);
    *result = (struct pe_check_result){.rtol = op->rtol,
                                       .atol = op->atol,
                                       .length = op->length,
                                       .batched = op->batch > 0,
                                       .report = op->report};
    *work = (struct pe_work){
        .n_parts = 1,
        .cost_ns = rows * (pe_encoding_row_ns(args.plan, PE_DTYPE_F64) + 20 * (double)op->tables[0].items) *
                   (double)op->n_tables,
        .state = op,
        .run = check_part,
        .stop = err->stop};
    return PE_OK;
}
