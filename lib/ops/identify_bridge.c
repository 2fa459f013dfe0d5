/* SPDX-License-Identifier: MIT
 *
 * identify: rows that stand together, and others far away. The near ones tell the ladder, but not well enough
 * to count turns as far as the next row is, and no single column can help: its frequency fits at every whole
 * turn. All columns together can, as their frequencies hang on one base. So the near rows are fitted and made
 * simple, which settles scale and offset, and from row to row the base is searched for in the range that is
 * left.
 */
#include "ops/identify.h"

#include <float.h>
#include <math.h>

#define LEAST_ROWS 4
#define JUMP       3     /* a gap so many times what is covered ends the near rows */
#define MOST_STEPS 20000 /* of one search */
#define COLUMNS    48    /* that take part */
#define CHOICES    8
#define ROUNDS     8

static struct pe_sheet rows_of(const struct pe_sheet *sheet, size_t first, size_t n) {
    struct pe_sheet part = *sheet;
    part.p += first;
    part.x += first * sheet->width;
    part.weight = sheet->weight ? sheet->weight + first * sheet->width : NULL;
    part.rows = n;
    return part;
}

/* The rows from the one next to 0 up to the first jump. */
static size_t near_rows(const struct pe_sheet *sheet, size_t *first) {
    size_t zero = 0, n = 1;
    for (size_t i = 1; i < sheet->rows; i++) {
        zero = fabs(sheet->p[i]) < fabs(sheet->p[zero]) ? i : zero;
    }
    *first = zero;
    while (zero + n < sheet->rows) {
        double covered = sheet->p[zero + n - 1] - sheet->p[zero],
               gap = sheet->p[zero + n] - sheet->p[zero + n - 1];
        if (n > LEAST_ROWS && gap > JUMP * fmax(covered, 1)) {
            break;
        }
        n++;
    }
    return n;
}

static double row_miss(const struct pe_sheet *sheet, const struct pe_shape *shape,
                       const struct pe_ladder *ladder, size_t row) {
    size_t step = sheet->width > COLUMNS ? (sheet->width / COLUMNS) | 1 : 1;
    double sum = 0, weight = 0;
    for (size_t c = 0; c < sheet->width; c += step) {
        struct pe_column column = pe_shape_column(shape, sheet->width, c);
        double w = sheet->weight ? sheet->weight[row * sheet->width + c] : 1;
        double off = sheet->x[row * sheet->width + c] - pe_ladder_value(ladder, &column, sheet->p[row]);
        sum += w * off * off;
        weight += w;
    }
    return weight > 0 ? sum / weight : 0;
}

/* The bases by which this row fits best, the best first: where columns are few, several fit well. `covered`:
 * how far away the base is known well enough for. */
static size_t row_search(const struct pe_sheet *sheet, const struct pe_shape *shape,
                         const struct pe_ladder *ladder, size_t row, double covered, double bases[CHOICES]) {
    double middle = ladder->v[PE_LADDER_BASE], scale = pe_ladder_scale(ladder), misses[CHOICES];
    /* An angle changes by at most x/(e*log(base)) for each unit of log(base). */
    double step = 0.7 * middle / fmax(scale * fabs(sheet->p[row]), 1);
    double range = fmin(2 * middle / fmax(scale * covered, 1), 0.02 * middle);
    long steps = (long)fmin(ceil(range / step), MOST_STEPS);
    struct pe_ladder at = *ladder;
    size_t n = 0;
    for (long k = -steps; k <= steps && !(k % 256 == 0 && pe_error_poll(sheet->err)); k++) {
        at.v[PE_LADDER_BASE] = middle + (double)k * step;
        double miss = row_miss(sheet, shape, &at, row);
        size_t to = n;
        while (to > 0 && misses[to - 1] > miss) {
            to--;
        }
        if (to == CHOICES) {
            continue;
        }
        n += n < CHOICES;
        for (size_t i = n - 1; i > to; i--) {
            misses[i] = misses[i - 1];
            bases[i] = bases[i - 1];
        }
        misses[to] = miss;
        bases[to] = at.v[PE_LADDER_BASE];
    }
    return n;
}

/* From row to row, each of which must find the base where the rows before have left it. */
double pe_ladder_chain(const struct pe_sheet *sheet, const struct pe_shape *shape, struct pe_ladder *ladder,
                       size_t n, bool from_zero) {
    double good = 0.001 * sheet->power;
    for (size_t row = n; row < sheet->rows && !pe_error_poll(sheet->err); row++) {
        struct pe_sheet known = rows_of(sheet, 0, row + 1);
        if (row_miss(sheet, shape, ladder, row) > good) {
            double bases[CHOICES];
            double covered = from_zero ? fabs(sheet->p[row - 1]) : sheet->p[row - 1] - sheet->p[0];
            if (row_search(sheet, shape, ladder, row, covered, bases)) {
                ladder->v[PE_LADDER_BASE] = bases[0];
            }
            pe_ladder_refine(&known, shape, ladder, 1U << PE_LADDER_BASE, ROUNDS);
        }
    }
    return pe_ladder_refine(sheet, shape, ladder, 1U << PE_LADDER_BASE, ROUNDS);
}

bool pe_ladder_bridge(const struct pe_sheet *sheet, const struct pe_shape *shape, double *scratch,
                      struct pe_ladder *ladder) {
    size_t first, n = near_rows(sheet, &first);
    struct pe_sheet near = rows_of(sheet, first, n), whole = rows_of(sheet, first, sheet->rows - first);
    double bases[CHOICES], best = DBL_MAX;
    if (first + n == sheet->rows || n < LEAST_ROWS ||
        (scratch && !pe_ladder_find(&near, shape, scratch, ladder)) ||
        pe_ladder_refine(&near, shape, ladder, 15, ROUNDS) > 0.01 * sheet->power) {
        return false;
    }
    pe_ladder_simplify(&near, shape, ladder, false);
    struct pe_ladder start = *ladder;
    size_t choices = row_search(&whole, shape, &start, n, near.p[n - 1] - near.p[0], bases);
    for (size_t i = 0; i <= choices && best > 1e-4 * sheet->power; i++) {
        struct pe_ladder at = start;
        at.v[PE_LADDER_BASE] = i ? bases[i - 1] : start.v[PE_LADDER_BASE]; /* as it is, first */
        double miss = pe_ladder_chain(&whole, shape, &at, n, false);
        if (miss < best) {
            best = miss;
            *ladder = at;
        }
    }
    return true;
}
