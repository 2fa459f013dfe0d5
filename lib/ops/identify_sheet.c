/* SPDX-License-Identifier: MIT
 *
 * identify: what was posted as a sample of its rows, and that as sheets of sines and cosines.
 *
 * The sample is half of rows that follow each other, as fast columns need them, and half of neighbours spread
 * over all rows, which slow columns and errors that grow with the position need.
 */
#include "ops/identify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLE_ROWS  256
#define SAMPLE_ITEMS ((size_t)1 << 19)
#define LEAST_ROWS   16

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

bool pe_identify_is_zero(const struct pe_identify *op, const double *row) {
    return op->kind == PE_IDENTIFY_TABLE && op->items > 1 && mean_square(row, op->items) < 0.01 * op->power;
}

static void zeros_find(struct pe_identify *op) {
    for (size_t k = 0; k < op->n; k++) {
        op->zero[k] = pe_identify_is_zero(op, op->got + k * op->items);
        op->n_zero += op->zero[k];
    }
    if (op->n_zero * 2 > op->n) { /* more is no padding */
        memset(op->zero, 0, op->n * sizeof *op->zero);
        op->n_zero = 0;
    }
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
    double halves = 1, pairs = 1, near = 1e-4 * op->power + fmin(4e-6, 1e-3 * op->power);
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

/* ---- The sample as a whole ----------------------------------------------------------------------------- */

int pe_identify_sample(struct pe_identify *op, struct pe_error *err) {
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
