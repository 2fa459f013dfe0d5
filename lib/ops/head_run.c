/* SPDX-License-Identifier: MIT
 *
 * A head tried on its sequence: the scores row by row, in parts; then the gain, from the smallest gap among all
 * of them, and the weights, see head.c.
 */
#include "ops/head.h"

#include "core/cells.h"
#include "core/stop.h"
#include "kernels/softmax.h"
#include "kernels/vector.h"

#include <math.h>

#define REST      0.01 /* of the weight, for all other tokens together */
#define GAIN_MOST 1e6  /* beyond it the gap is rounding */

/* A row of out [width] = x [inner] . w, of which taps are the rows that count. */
static void row_project(const struct pe_head_work *op, const double *x, bool keys, double *out) {
    const double one = 1, *w = keys ? op->w_k : op->w_q;
    const struct pe_head_taps *taps = keys ? op->k_of : op->q_of;
    x = x ? x : &one;
    for (size_t c = 0; c < op->width; c++) {
        size_t n = taps ? taps[c].n : op->inner;
        out[c] = 0;
        for (size_t k = 0; k < n; k++) {
            size_t from = taps ? taps[c].from[k] : k;
            out[c] += x[from] * w[from * op->width + c];
        }
    }
}

void pe_head_project(const struct pe_head_work *op) {
    for (size_t i = 0; i < op->n && !pe_stop_asked(op->stop); i++) {
        double *const rows[2] = {op->q + i * op->width, op->k + i * op->width};
        for (size_t side = 0; side < 2; side++) {
            row_project(op, op->x ? op->x + i * op->inner : NULL, side, rows[side]);
            if (op->turns) {
                pe_turns_run(&op->turns[side], 0, i, PE_DTYPE_F64, rows[side], rows[side]);
            }
        }
    }
}

/* The scores of query i. */
static void row_score(const struct pe_head_work *op, size_t i) {
    size_t together = PE_STOP_ITEMS / op->width + 1; /* products between two questions */
    for (size_t j = 0; j < op->n; j++) {
        double product = pe_vector_dot(op->q + i * op->width, op->k + j * op->width, op->width);
        op->scores[i * op->n + j] = op->scale * product;
        if (j % together == 0 && pe_stop_asked(op->stop)) {
            return;
        }
    }
}

/* The token that query i should look at, if it is there. */
static bool target_of(const struct pe_head_work *op, size_t i, size_t *target) {
    int64_t j = op->first ? 0 : (int64_t)i + op->offset;
    *target = (size_t)j;
    return j >= 0 && j < (int64_t)op->n && (!op->causal || j <= (int64_t)i);
}

static size_t visible_of(const struct pe_head_work *op, size_t i) {
    return op->causal ? i + 1 : op->n;
}

/* The smallest advantage of a wanted token over another. */
static double smallest_gap(const struct pe_head_work *op) {
    double gap = INFINITY;
    for (size_t i = 0; i < op->n; i++) {
        size_t target, n = visible_of(op, i);
        const double *row = op->scores + i * op->n;
        bool there = target_of(op, i, &target);
        for (size_t j = 0; there && j < n; j++) {
            gap = j == target ? gap : fmin(gap, row[target] - row[j]);
        }
    }
    return gap;
}

static void weights_read(const struct pe_head_work *op) {
    struct pe_head *out = op->out;
    double sum = 0;
    size_t rows = 0;
    out->mass_least = 1;
    for (size_t i = 0; i < op->n && !pe_stop_asked(op->stop); i++) {
        size_t target;
        const struct pe_softmax softmax = {.dtype = PE_DTYPE_F64, .n = op->n, .end = visible_of(op, i)};
        pe_softmax_run(&softmax, op->scores + i * op->n);
        if (target_of(op, i, &target)) {
            double mass = op->scores[i * op->n + target];
            out->mass_least = fmin(out->mass_least, mass);
            sum += mass;
            rows++;
        }
    }
    out->rows = rows;
    out->mass_mean = rows ? sum / (double)rows : 0;
    out->mass_least = rows ? out->mass_least : 0;
}

static void multiply(const struct pe_head_work *op, double *x, size_t n, double factor) {
    for (size_t i = 0, step; i < n && !pe_stop_asked(op->stop); i += step) {
        step = pe_stop_step(n, i);
        for (size_t k = i; k < i + step; k++) {
            x[k] *= factor;
        }
    }
}

/* Once all scores are there. */
static void head_end(const struct pe_head_work *op) {
    double gap = smallest_gap(op), gain = 1;
    if (isfinite(gap) && gap > 0) {
        gain = log((double)op->n / REST) / gap;
    }
    op->out->possible = gap > 0 && gain <= GAIN_MOST;
    op->out->gain = gain = op->out->possible ? gain : 1;
    multiply(op, op->w_q, op->inner * op->width, gain);
    multiply(op, op->scores, op->n * op->n, gain);
    weights_read(op);
}

void pe_head_part(const void *state, size_t part) {
    const struct pe_head_work *op = state;
    size_t first = part * op->part_rows, end = first + op->part_rows;
    for (size_t i = first; i < op->n && i < end && !pe_stop_asked(op->stop); i++) {
        row_score(op, i);
    }
    if (pe_last_done(op->last) && !pe_stop_asked(op->stop)) {
        head_end(op);
    }
}

static void weight_fill(const struct pe_head_work *op, uint32_t number, double *w) {
    const struct pe_cells cells = {.seed = 1, .std = 1, .number = number};
    for (size_t i = 0; i < op->inner * op->width; i++) {
        w[i] = pe_cells_at(&cells, i / op->width, i % op->width);
    }
}

void pe_head_tries(const void *state, size_t part) {
    const struct pe_head_work *op = state;
    struct pe_head best = {0};
    (void)part;
    for (uint32_t try = 0; try < PE_HEAD_TRIES && !pe_stop_asked(op->stop); try++) {
        weight_fill(op, 2 * try, op->w_q);
        weight_fill(op, 2 * try + 1, op->w_k);
        pe_head_project(op);
        for (size_t i = 0; i < op->n && !pe_stop_asked(op->stop); i++) {
            row_score(op, i);
        }
        weights_read(op);
        best = op->out->mass_mean > best.mass_mean ? *op->out : best;
    }
    best.gain = 1;
    best.tries = PE_HEAD_TRIES;
    *op->out = best;
}
