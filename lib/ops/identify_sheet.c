/* SPDX-License-Identifier: MIT
 *
 * identify: what was posted, as a sample of rows and as sheets of sines and cosines.
 *
 * The sample is half of rows that follow each other, as fast columns need them, and half of neighbours spread
 * over all rows, which slow columns and errors that grow with the position need.
 */
#include "ops/identify.h"
#include "ops/operand.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLE_ROWS  256
#define SAMPLE_ITEMS ((size_t)1 << 19)
#define LEAST_ROWS   16
#define MOST_WIDTH   65536

/* ---- What was posted ----------------------------------------------------------------------------------- */

static const struct {
    enum pe_identify_kind kind;
    const char *names[2];
    int ranks; /* the highest */
    const char *allowed;
} kinds[] = {
    {PE_IDENTIFY_TABLE, {"tensor", NULL}, 2, "[T, D]"},
    {PE_IDENTIFY_TRIG, {"cos", "sin"}, 2, "[T, n]"},
    {PE_IDENTIFY_TURNED, {"after", "before"}, 3, "[T, d], [T, H, d] and [H, T, d]"},
};

/* Without its first axes of 1, as far as it has too many: buffers are [1, T, D], [T, 1, D] and [1, 1, T, D], too. */
static struct pe_tensor squeezed(const struct pe_tensor *tensor, int ranks) {
    struct pe_tensor out = *tensor;
    for (int i = 0; i < out.rank - 1 && out.rank > ranks;) {
        if (out.dim[i] != 1) {
            i++;
            continue;
        }
        out.rank--;
        memmove(&out.dim[i], &out.dim[i + 1], (size_t)(out.rank - i) * sizeof out.dim[0]);
    }
    return out;
}

static int tensor_check(const struct pe_tensor *tensor, size_t kind, int which, struct pe_error *err) {
    char shape[128];
    size_t width = tensor->rank > 0 ? tensor->dim[tensor->rank - 1] : 0;
    if (tensor->rank < 2 || tensor->rank > kinds[kind].ranks || pe_tensor_count(tensor) == 0 ||
        width > MOST_WIDTH || (kind == 1 && 2 * width > MOST_WIDTH)) {
        return pe_fail(
            err, PE_ERR_SHAPE, kinds[kind].names[which],
            "has shape %s, allowed are %s without an empty axis and with rows of at most %d numbers",
            pe_tensor_shape_text(tensor, shape, sizeof shape), kinds[kind].allowed,
            kind == 1 ? MOST_WIDTH / 2 : MOST_WIDTH);
    }
    return pe_tensor_check_finite(tensor, false, err) ? pe_error_at(err, kinds[kind].names[which]) : PE_OK;
}

static int pair_check(const struct pe_tensor *a, const struct pe_tensor *b, size_t kind,
                      struct pe_error *err) {
    char one[128], other[128];
    if (a->rank != b->rank || memcmp(a->dim, b->dim, (size_t)a->rank * sizeof a->dim[0]) != 0) {
        return pe_fail(err, PE_ERR_SHAPE, kinds[kind].names[1], "has shape %s, but %s has %s",
                       pe_tensor_shape_text(b, one, sizeof one), kinds[kind].names[0],
                       pe_tensor_shape_text(a, other, sizeof other));
    }
    return PE_OK;
}

/* One of the three ways to post, whole. */
static int kind_find(struct pe_identify *op, const struct pe_identify_args *args, struct pe_error *err) {
    const struct pe_tensor *const all[][2] = {
        {args->tensor, NULL}, {args->cos, args->sin}, {args->after, args->before}};
    size_t found = PE_COUNT(kinds);
    for (size_t k = 0; k < PE_COUNT(kinds); k++) {
        if (!all[k][0] && !all[k][1]) {
            continue;
        }
        if (found < PE_COUNT(kinds)) {
            return pe_fail(err, PE_ERR_CONFLICT, kinds[k].names[all[k][0] ? 0 : 1],
                           "%s is there, too: one of them is identified", kinds[found].names[0]);
        }
        found = k;
    }
    if (found == PE_COUNT(kinds)) {
        return pe_fail(err, PE_ERR_MISSING, "tensor",
                       "is missing: a table, cos and sin, or before and after");
    }
    for (int i = 0; i < 2 && kinds[found].names[i]; i++) {
        if (!all[found][i]) {
            return pe_fail(err, PE_ERR_MISSING, kinds[found].names[i], "is missing: %s is there",
                           kinds[found].names[1 - i]);
        }
        op->posted[i] = squeezed(all[found][i], kinds[found].ranks);
        if (tensor_check(&op->posted[i], found, i, err)) {
            return err->code;
        }
    }
    op->kind = kinds[found].kind;
    op->made[0] = &op->posted[0];
    op->made[1] = op->kind == PE_IDENTIFY_TRIG ? &op->posted[1] : NULL;
    op->before = op->kind == PE_IDENTIFY_TURNED ? &op->posted[1] : NULL;
    return all[found][1] ? pair_check(&op->posted[0], &op->posted[1], found, err) : PE_OK;
}

static void row_load(const struct pe_identify *op, const struct pe_tensor *tensor, size_t row, double *out) {
    size_t pieces = op->heads_first ? op->heads : 1, items = pe_tensor_count(tensor) / op->length / pieces;
    for (size_t h = 0; h < pieces; h++) {
        size_t at = (h * op->length + row) * items * pe_dtype_size(tensor->dtype);
        pe_dtype_load(tensor->dtype, (const char *)tensor->data + at, items, out + h * items);
    }
}

void pe_identify_load(const struct pe_identify *op, size_t row, double *got, double *was) {
    row_load(op, op->made[0], row, got);
    if (op->made[1]) {
        row_load(op, op->made[1], row, got + op->items / 2);
    }
    if (op->before) {
        row_load(op, op->before, row, was);
    }
}

/* ---- The sample ---------------------------------------------------------------------------------------- */

struct place {
    double p;
    size_t row;
};

static int place_compare(const void *a, const void *b) {
    const struct place *x = a, *y = b;
    return x->p != y->p ? (x->p > y->p) - (x->p < y->p) : (x->row > y->row) - (x->row < y->row);
}

/* Row k of the sample, rising. */
static size_t sample_row(const struct pe_identify *op, size_t k) {
    size_t close = op->n / 2, rest = op->n - close, left = op->length - close;
    if (op->n == op->length || k < close) {
        return k;
    }
    size_t pair = (k - close) / 2 * 2, odd = (k - close) % 2;
    return k == op->n - 1 ? op->length - 1 : close + pair * left / rest + odd;
}

static int sample_places(struct pe_identify *op, struct pe_error *err) {
    struct place *places = pe_arena_array(op->arena, op->n, sizeof *places, err);
    op->row = pe_arena_array(op->arena, op->n, sizeof *op->row, err);
    op->p = pe_arena_array(op->arena, op->n, sizeof *op->p, err);
    op->zero = pe_arena_array(op->arena, op->n, sizeof *op->zero, err);
    if (err->code) {
        return err->code;
    }
    for (size_t k = 0; k < op->n; k++) {
        places[k].row = sample_row(op, k);
        pe_positions_read(&op->positions, places[k].row, 1, &places[k].p);
    }
    qsort(places, op->n, sizeof *places, place_compare);
    for (size_t k = 0; k < op->n; k++) {
        op->row[k] = places[k].row;
        op->p[k] = places[k].p;
    }
    return PE_OK;
}

static double mean_square(const double *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += x[i] * x[i];
    }
    return n ? sum / (double)n : 0;
}

/* The narrowest type that holds all numbers of the sample. */
static enum pe_dtype stored_of(const struct pe_identify *op) {
    static const enum pe_dtype narrow[] = {PE_DTYPE_BF16, PE_DTYPE_F16, PE_DTYPE_F32};
    for (size_t k = 0; k < PE_COUNT(narrow); k++) {
        bool holds = true;
        for (size_t i = 0; i < op->n * op->items && holds; i++) {
            double back;
            uint64_t cell = 0;
            pe_dtype_store(narrow[k], &op->got[i], 1, &cell);
            pe_dtype_load(narrow[k], &cell, 1, &back);
            holds = back == op->got[i];
        }
        if (holds) {
            return narrow[k];
        }
    }
    return PE_DTYPE_F64;
}

/* What a right table may be off by, of numbers of size 1: a part of the last place. */
static double floor_of(const struct pe_identify *op) {
    static const double floors[PE_DTYPE_COUNT] = {
        [PE_DTYPE_F64] = 1e-12, [PE_DTYPE_F32] = 2e-8, [PE_DTYPE_F16] = 5e-5, [PE_DTYPE_BF16] = 4e-4};
    double far = fmax(fabs(op->p[0]), fabs(op->p[op->n - 1]));
    double floor = fmax(floors[op->stored], 4e-16 * far);
    return (op->kind == PE_IDENTIFY_TURNED ? 3 : 1) * floor * sqrt(2 * op->power);
}

static void zeros_find(struct pe_identify *op) {
    for (size_t k = 0; k < op->n && op->kind == PE_IDENTIFY_TABLE; k++) {
        op->zero[k] = op->items > 1 && mean_square(op->got + k * op->items, op->items) < 0.01 * op->power;
        op->n_zero += op->zero[k];
    }
    if (op->n_zero * 2 > op->n) { /* more is no padding */
        memset(op->zero, 0, op->n * sizeof *op->zero);
        op->n_zero = 0;
    }
}

static int sample_read(struct pe_identify *op, struct pe_error *err) {
    size_t most = SAMPLE_ITEMS / op->items;
    most = most < LEAST_ROWS ? LEAST_ROWS : most > SAMPLE_ROWS ? SAMPLE_ROWS : most;
    op->n = op->length < most ? op->length : most;
    size_t n = op->n * op->items;
    op->got = pe_arena_array(op->arena, n, sizeof(double), err);
    op->was = op->before ? pe_arena_array(op->arena, n, sizeof(double), err) : NULL;
    op->scratch = pe_arena_array(op->arena, n + 4 * op->items, sizeof(double), err);
    if (err->code || sample_places(op, err)) {
        return err->code;
    }
    for (size_t k = 0; k < op->n; k++) {
        pe_identify_load(op, op->row[k], op->got + k * op->items, op->was ? op->was + k * op->items : NULL);
    }
    op->power = mean_square(op->got, n);
    op->stored = stored_of(op);
    op->floor = floor_of(op);
    zeros_find(op);
    return PE_OK;
}

/* ---- The form of cosines ------------------------------------------------------------------------------- */

/* How far column a(i) is from column b(i), as a mean square. */
static double twins(const struct pe_identify *op, bool halves) {
    size_t m = op->items / 2, pairs = m / 2;
    double sum = 0;
    for (size_t k = 0; k < op->n * 2; k++) {
        const double *x = op->got + k * m;
        for (size_t i = 0; i < pairs; i++) {
            double off = halves ? x[i] - x[i + pairs] : x[2 * i] - x[2 * i + 1];
            sum += off * off;
        }
    }
    return sum / (double)(op->n * m);
}

static void form_find(struct pe_identify *op) {
    double halves = 1, pairs = 1, near = 1e-4 * op->power + 4e-6;
    op->form = PE_TRIG_HALF;
    if (op->items % 4 == 0) {
        halves = twins(op, true);
        pairs = twins(op, false);
    }
    if (fmin(halves, pairs) < near && halves != pairs) {
        op->form = PE_TRIG_FULL;
        op->layout = halves < pairs ? PE_ROTARY_HALVES : PE_ROTARY_INTERLEAVED;
    }
    op->width = op->form == PE_TRIG_FULL ? op->items / 2 : op->items;
}

static int hints_read(struct pe_identify *op, const struct pe_identify_args *args, struct pe_error *err) {
    bool halves = args->layout && strcmp(args->layout, "halves") == 0;
    if (args->layout && !halves && strcmp(args->layout, "interleaved") != 0) {
        return pe_fail(err, PE_ERR_CHOICE, "hints.layout", "got \"%s\", allowed are halves and interleaved",
                       args->layout);
    }
    if (args->type && !pe_encoding_find(args->type)) {
        return pe_fail(err, PE_ERR_UNKNOWN_NAME, "hints.type", "got \"%s\", which is no type of an encoding",
                       args->type);
    }
    if (args->base != 0 && !(args->base >= 1 && args->base <= 1e300)) {
        return pe_fail(err, PE_ERR_RANGE, "hints.base", "got %g, allowed is 1 to 1e300", args->base);
    }
    op->hint_layout = !args->layout ? 0 : halves ? PE_ROTARY_HALVES : PE_ROTARY_INTERLEAVED;
    op->hint_type = args->type;
    op->hint_base = args->base;
    return PE_OK;
}

/* ---- Coordinates --------------------------------------------------------------------------------------- */

/* Is coordinate pair k, behind the class rows, the next cell of a grid w wide? */
static bool is_cell(const double *cell, size_t k, size_t w, double origin) {
    return cell[0] == origin + (double)(k / w) && cell[1] == origin + (double)(k % w);
}

/* [T, 2], which comes as a batch of rows of two where nobody said what the last axis is: all cells of a grid, row by
 * row, behind class rows at -1. Then positions are tokens, as where none are posted. */
static int coordinates_read(struct pe_identify *op, struct pe_error *err) {
    const double *list = op->positions.list;
    size_t before = 0, w = 1;
    while (before < op->length && list[2 * before] < 0 && list[2 * before + 1] < 0) {
        before++;
    }
    const double *cells = list + 2 * before;
    size_t n = op->length - before;
    while (w < n && cells[2 * w] == cells[0]) {
        w++;
    }
    bool whole = n > 0 && n % w == 0;
    for (size_t k = 0; k < n && whole && !pe_error_poll(err); k++) {
        whole = is_cell(cells + 2 * k, k, w, cells[0]);
    }
    if (!whole) {
        return pe_fail(
            err, PE_ERR_UNSUPPORTED, "positions",
            "are coordinates that are not all cells of a grid, row by row: others are not understood here");
    }
    op->columns = w;
    op->origin = cells[0];
    op->positions = (struct pe_positions){.length = op->length, .axes = 1, .step = 1};
    return err->code;
}

/* Two coordinates for each row of a table. */
static bool are_coordinates(const struct pe_identify *op) {
    const struct pe_positions *at = &op->positions;
    bool many = at->axes == 2 && at->batch <= 1 && at->length == op->length;
    bool few = at->axes == 1 && at->batch == op->length && at->length == 2;
    return op->kind == PE_IDENTIFY_TABLE && at->list && op->length > 1 && (many || few);
}

int pe_identify_read(struct pe_arena *arena, struct pe_identify *op, const struct pe_identify_args *args,
                     struct pe_error *err) {
    op->arena = arena;
    if (kind_find(op, args, err) || hints_read(op, args, err)) {
        return err->code;
    }
    const struct pe_tensor *made = op->made[0];
    bool turned = op->kind == PE_IDENTIFY_TURNED && made->rank == 3;
    op->heads_first = turned && pe_identify_heads_first(arena, made, op->before, args->positions, err);
    op->length = made->dim[op->heads_first ? 1 : 0];
    op->width = made->dim[made->rank - 1];
    op->items = pe_tensor_count(made) / op->length * (op->made[1] ? 2 : 1);
    op->heads = made->rank == 3 ? made->dim[op->heads_first ? 0 : 1] : 1;
    op->positions = (struct pe_positions){.length = op->length, .axes = 1, .step = 1};
    if (args->positions) {
        op->positions = *args->positions;
    }
    if (are_coordinates(op) && coordinates_read(op, err)) {
        return err->code;
    }
    if (pe_positions_fit(NULL, &op->positions, 0, op->length, "positions", err) || sample_read(op, err)) {
        return err->code;
    }
    if (op->kind == PE_IDENTIFY_TRIG) {
        form_find(op);
    }
    return PE_OK;
}

/* ---- Sheets -------------------------------------------------------------------------------------------- */

static void table_row(const struct pe_identify *op, const struct pe_sheet *sheet, size_t k, size_t to) {
    memcpy(sheet->x + to * sheet->width, op->got + k * op->items, sheet->width * sizeof(double));
}

static void trig_row(const struct pe_identify *op, const struct pe_sheet *sheet, size_t k, size_t to) {
    size_t pairs = sheet->width / 2, step = op->layout == PE_ROTARY_INTERLEAVED ? 2 : 1;
    const double *x = op->got + k * op->items;
    double *out = sheet->x + to * sheet->width;
    for (size_t i = 0; i < pairs; i++) {
        out[i] = x[i * step];
        out[pairs + i] = x[op->items / 2 + i * step];
    }
}

/* The angle of a pair, from all heads: sum of after * conjugate of before, over the sum of |before|^2. */
static void turned_row(const struct pe_identify *op, const struct pe_sheet *sheet, int layout, size_t k,
                       size_t to) {
    size_t pairs = sheet->width / 2, at = k * op->items;
    double *out = sheet->x + to * sheet->width, *weight = sheet->weight + to * sheet->width;
    for (size_t i = 0; i < pairs; i++) {
        double re = 0, im = 0, length = 0;
        for (size_t h = 0; h < op->heads; h++) {
            size_t a = at + h * op->width + (layout == PE_ROTARY_HALVES ? i : 2 * i);
            size_t b = a + (layout == PE_ROTARY_HALVES ? pairs : 1);
            re += op->got[a] * op->was[a] + op->got[b] * op->was[b];
            im += op->got[b] * op->was[a] - op->got[a] * op->was[b];
            length += op->was[a] * op->was[a] + op->was[b] * op->was[b];
        }
        out[i] = length > 0 ? re / length : 1;
        out[pairs + i] = length > 0 ? im / length : 0;
        weight[i] = weight[pairs + i] = length;
    }
}

static void sheet_measure(const struct pe_identify *op, struct pe_sheet *sheet) {
    double square = 0, weight = 0;
    for (size_t i = 0; i < sheet->rows * sheet->width; i++) {
        double w = sheet->weight ? sheet->weight[i] : 1;
        square += w * sheet->x[i] * sheet->x[i];
        weight += w;
    }
    sheet->power = weight > 0 ? square / weight : 0;
    sheet->floor = op->floor * sqrt(sheet->power / fmax(op->power, 1e-300));
}

int pe_identify_sheet(const struct pe_identify *op, struct pe_sheet *sheet, size_t width, int layout,
                      struct pe_error *err) {
    size_t rows = op->n - op->n_zero, n = 0;
    double *p = pe_arena_array(op->arena, op->n, sizeof *p, err);
    *sheet = (struct pe_sheet){.rows = rows, .width = width, .p = p, .err = err};
    sheet->x = pe_arena_array(op->arena, rows * width, sizeof(double), err);
    if (op->kind == PE_IDENTIFY_TURNED) {
        sheet->weight = pe_arena_array(op->arena, rows * width, sizeof(double), err);
    }
    if (err->code) {
        return err->code;
    }
    for (size_t k = 0; k < op->n; k++) {
        if (op->zero[k]) {
            continue;
        }
        p[n] = op->p[k];
        if (op->kind == PE_IDENTIFY_TABLE) {
            table_row(op, sheet, k, n);
        } else if (op->kind == PE_IDENTIFY_TRIG) {
            trig_row(op, sheet, k, n);
        } else {
            turned_row(op, sheet, layout, k, n);
        }
        n++;
    }
    sheet_measure(op, sheet);
    return PE_OK;
}
