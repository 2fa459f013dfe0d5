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

/* The columns of a row that take part. What those miss that no base moves is known beforehand. */
struct watch {
    size_t n;
    double weight, place, factor; /* of all; x at this row */
    double still;
    struct pe_column column[2 * COLUMNS];
    double x[2 * COLUMNS], w[2 * COLUMNS];
};

static double watch_one(const struct watch *watch, size_t i, double base) {
    double angle = exp(-watch->column[i].exponent * base) * watch->place;
    double off = watch->x[i] - watch->factor * (watch->column[i].cosine ? cos(angle) : sin(angle));
    return watch->w[i] * off * off;
}

static void watch_row(struct watch *out, const struct pe_sheet *sheet, const struct pe_shape *shape,
                      const struct pe_ladder *ladder, size_t row) {
    size_t step = sheet->width > COLUMNS ? (sheet->width / COLUMNS) | 1 : 1;
    out->n = 0;
    out->weight = 0;
    out->still = 0;
    out->place = ladder->sign * pe_ladder_scale(ladder) * sheet->p[row] + ladder->v[PE_LADDER_OFFSET];
    out->factor = exp(ladder->v[PE_LADDER_FACTOR]);
    for (size_t c = 0; c < sheet->width && out->n < 2 * COLUMNS; c += step) {
        size_t i = out->n;
        out->column[i] = pe_shape_column(shape, sheet->width, c);
        out->x[i] = sheet->x[row * sheet->width + c];
        out->w[i] = sheet->weight ? sheet->weight[row * sheet->width + c] : 1;
        out->weight += out->w[i];
        if (out->column[i].exponent == 0) {
            out->still += watch_one(out, i, 0);
        } else {
            out->n++;
        }
    }
}

/* How much they miss by a base; infinite as soon as that is more than `most`. */
static double watch_miss(const struct watch *watch, double base, double most) {
    double sum = watch->still, enough = most * watch->weight;
    for (size_t i = 0; i < watch->n && !(sum > enough); i++) {
        sum += watch_one(watch, i, base);
    }
    return sum > enough ? INFINITY : watch->weight > 0 ? sum / watch->weight : 0;
}

static double row_miss(const struct pe_sheet *sheet, const struct pe_shape *shape,
                       const struct pe_ladder *ladder, size_t row) {
    struct watch watch;
    watch_row(&watch, sheet, shape, ladder, row);
    return watch_miss(&watch, ladder->v[PE_LADDER_BASE], INFINITY);
}

/* The bases by which a row fits best, the best first: where columns are few, several fit well. */
struct fits {
    size_t n, most;
    double bases[CHOICES], misses[CHOICES];
};

static void fits_add(struct fits *fits, double base, double miss) {
    size_t to = fits->n;
    while (to > 0 && fits->misses[to - 1] > miss) {
        to--;
    }
    if (to == fits->most) {
        return;
    }
    fits->n += fits->n < fits->most;
    for (size_t i = fits->n - 1; i > to; i--) {
        fits->misses[i] = fits->misses[i - 1];
        fits->bases[i] = fits->bases[i - 1];
    }
    fits->misses[to] = miss;
    fits->bases[to] = base;
}

/* `covered`: how far away the base is known well enough for. Most bases are far off, which a column or two tell. */
static void row_search(const struct pe_sheet *sheet, const struct pe_shape *shape,
                       const struct pe_ladder *ladder, size_t row, double covered, struct fits *out) {
    double middle = ladder->v[PE_LADDER_BASE], scale = pe_ladder_scale(ladder);
    /* An angle changes by at most x/(e*log(base)) for each unit of log(base). */
    double step = 0.7 * middle / fmax(scale * fabs(sheet->p[row]), 1);
    double range = fmin(2 * middle / fmax(scale * covered, 1), 0.02 * middle);
    long steps = (long)fmin(ceil(range / step), MOST_STEPS);
    struct watch watch;
    watch_row(&watch, sheet, shape, ladder, row);
    for (long k = -steps; k <= steps && !(k % 256 == 0 && pe_error_poll(sheet->err)); k++) {
        double base = middle + (double)k * step;
        double most = out->n < out->most ? INFINITY : out->misses[out->most - 1];
        fits_add(out, base, watch_miss(&watch, base, most));
    }
}

/* From row to row, each of which must find the base where the rows before have left it. */
double pe_ladder_chain(const struct pe_sheet *sheet, const struct pe_shape *shape, struct pe_ladder *ladder,
                       size_t n, bool from_zero) {
    double good = 0.001 * sheet->power;
    for (size_t row = n; row < sheet->rows && !pe_error_poll(sheet->err); row++) {
        struct pe_sheet known = rows_of(sheet, 0, row + 1);
        if (row_miss(sheet, shape, ladder, row) > good) {
            struct fits fits = {.most = 1};
            double covered = from_zero ? fabs(sheet->p[row - 1]) : sheet->p[row - 1] - sheet->p[0];
            row_search(sheet, shape, ladder, row, covered, &fits);
            ladder->v[PE_LADDER_BASE] = fits.n ? fits.bases[0] : ladder->v[PE_LADDER_BASE];
            pe_ladder_refine(&known, shape, ladder, 1U << PE_LADDER_BASE, ROUNDS);
        }
    }
    return pe_ladder_refine(sheet, shape, ladder, 1U << PE_LADDER_BASE, ROUNDS);
}

bool pe_ladder_bridge(const struct pe_sheet *sheet, const struct pe_shape *shape, double *scratch,
                      struct pe_ladder *ladder) {
    size_t first, n = near_rows(sheet, &first);
    struct pe_sheet near = rows_of(sheet, first, n), whole = rows_of(sheet, first, sheet->rows - first);
    struct fits fits = {.most = CHOICES};
    double best = DBL_MAX;
    if (first + n == sheet->rows || n < LEAST_ROWS ||
        (scratch && !pe_ladder_find(&near, shape, scratch, ladder)) ||
        pe_ladder_refine(&near, shape, ladder, 15, ROUNDS) > 0.01 * sheet->power) {
        return false;
    }
    pe_ladder_simplify(&near, shape, ladder, false);
    struct pe_ladder start = *ladder;
    row_search(&whole, shape, &start, n, near.p[n - 1] - near.p[0], &fits);
    for (size_t i = 0; i <= fits.n && best > 1e-4 * sheet->power; i++) {
        struct pe_ladder at = start;
        at.v[PE_LADDER_BASE] = i ? fits.bases[i - 1] : start.v[PE_LADDER_BASE]; /* as it is, first */
        double miss = pe_ladder_chain(&whole, shape, &at, n, false);
        if (miss < best) {
            best = miss;
            *ladder = at;
        }
    }
    return true;
}
