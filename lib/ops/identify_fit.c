/* SPDX-License-Identifier: MIT
 *
 * identify: the ladder of a sheet, given which columns are sines and which cosines.
 *
 * Gauss-Newton over a sample of its numbers, from where identify_hands.c sees the ladder stand: over all four
 * numbers, or those that are not held.
 */
#include "ops/identify.h"

#include <math.h>

#define ITEMS         480 /* numbers in a sample */
#define NEAR_ROWS     8   /* to either side */
#define NEAR_ITEMS    128
#define LEAST_COLUMNS 24
#define ROUNDS        12 /* of Gauss-Newton */
#define ALL_ROWS      SIZE_MAX

/* ---- Columns ------------------------------------------------------------------------------------------- */

/* Pair and kind of a column: 0 is the first kind. */
static size_t pair_of(const struct pe_shape *shape, size_t width, size_t column, int *kind) {
    size_t firsts = (width + 1) / 2;
    *kind = shape->halves ? column >= firsts : (int)(column & 1);
    return shape->halves ? column - (*kind ? firsts : 0) : column / 2;
}

struct pe_column pe_shape_column(const struct pe_shape *shape, size_t width, size_t column) {
    int kind;
    size_t pair = pair_of(shape, width, column, &kind);
    struct pe_column out = {.cosine = (kind != 0) != shape->cos_first};
    double denominator = shape->minus_one ? (double)width - 2 : (double)width;
    if (width > 2) {
        out.exponent = (shape->first[out.cosine] + shape->step[out.cosine] * (double)pair) / denominator;
    }
    return out;
}

static double angle_of(const struct pe_ladder *ladder, double exponent, double p) {
    double scale = ladder->sign * pe_ladder_scale(ladder);
    return exp(-exponent * ladder->v[PE_LADDER_BASE]) * (scale * p + ladder->v[PE_LADDER_OFFSET]);
}

double pe_ladder_value(const struct pe_ladder *ladder, const struct pe_column *column, double p) {
    double angle = angle_of(ladder, column->exponent, p);
    return exp(ladder->v[PE_LADDER_FACTOR]) * (column->cosine ? cos(angle) : sin(angle));
}

/* ---- Samples ------------------------------------------------------------------------------------------- */

/* Some of the numbers: rows in even steps of the stretch around the row next to position 0, and columns in
 * even steps, every other of which is moved by one lest all be of one kind. */
struct sample {
    const struct pe_sheet *sheet;
    const struct pe_shape *shape;
    size_t first, rows, n_rows, n_columns;
};

static size_t row_of_zero(const struct pe_sheet *sheet) {
    size_t best = 0;
    for (size_t i = 1; i < sheet->rows; i++) {
        best = fabs(sheet->p[i]) < fabs(sheet->p[best]) ? i : best;
    }
    return best;
}

/* `reach` rows to either side. */
static struct sample sample_of(const struct pe_sheet *sheet, const struct pe_shape *shape, size_t reach,
                               size_t items) {
    size_t zero = row_of_zero(sheet);
    size_t first = reach < zero ? zero - reach : 0;
    size_t end = reach < sheet->rows - zero ? zero + reach : sheet->rows;
    struct sample s = {.sheet = sheet, .shape = shape, .first = first, .rows = end - first};
    size_t columns = sheet->width < LEAST_COLUMNS ? sheet->width : LEAST_COLUMNS;
    s.n_rows = items / columns < s.rows ? items / columns : s.rows;
    s.n_columns = items / s.n_rows < sheet->width ? items / s.n_rows : sheet->width;
    return s;
}

static size_t row_at(const struct sample *s, size_t i) {
    return s->n_rows > 1 ? s->first + i * (s->rows - 1) / (s->n_rows - 1) : s->first;
}

static size_t column_at(const struct sample *s, size_t j) {
    size_t column = j * s->sheet->width / s->n_columns;
    bool moves = s->n_columns < s->sheet->width && j % 2 && column + 1 < s->sheet->width;
    return column + moves;
}

static double weight_of(const struct pe_sheet *sheet, size_t at) {
    return sheet->weight ? sheet->weight[at] : 1;
}

static double sample_miss(const struct sample *s, const struct pe_ladder *ladder) {
    double square = 0, weight = 0, factor = exp(ladder->v[PE_LADDER_FACTOR]);
    double scale = ladder->sign * pe_ladder_scale(ladder), offset = ladder->v[PE_LADDER_OFFSET];
    for (size_t j = 0; j < s->n_columns; j++) {
        size_t column = column_at(s, j);
        struct pe_column kind = pe_shape_column(s->shape, s->sheet->width, column);
        double rate = exp(-kind.exponent * ladder->v[PE_LADDER_BASE]);
        for (size_t i = 0; i < s->n_rows; i++) {
            size_t row = row_at(s, i), at = row * s->sheet->width + column;
            double angle = rate * (scale * s->sheet->p[row] + offset);
            double off = s->sheet->x[at] - factor * (kind.cosine ? cos(angle) : sin(angle));
            square += weight_of(s->sheet, at) * off * off;
            weight += weight_of(s->sheet, at);
        }
    }
    return weight > 0 ? square / weight : 0;
}

double pe_ladder_miss(const struct pe_sheet *sheet, const struct pe_shape *shape,
                      const struct pe_ladder *ladder) {
    struct sample s = sample_of(sheet, shape, ALL_ROWS, ITEMS);
    return sample_miss(&s, ladder);
}

double pe_ladder_miss_near(const struct pe_sheet *sheet, const struct pe_shape *shape,
                           const struct pe_ladder *ladder) {
    struct sample s = sample_of(sheet, shape, NEAR_ROWS, NEAR_ITEMS);
    return sample_miss(&s, ladder);
}

/* ---- Gauss-Newton -------------------------------------------------------------------------------------- */

struct normal {
    double a[PE_LADDER_N][PE_LADDER_N], b[PE_LADDER_N];
};

/* Adds one number: its residual and its derivatives by the four. */
static void normal_add(struct normal *normal, unsigned free, double off, double weight,
                       double slope[PE_LADDER_N]) {
    for (int i = 0; i < PE_LADDER_N; i++) {
        slope[i] = free >> i & 1 ? slope[i] : 0;
        normal->b[i] += weight * slope[i] * off;
        for (int j = 0; j <= i; j++) {
            normal->a[i][j] += weight * slope[i] * slope[j];
        }
    }
}

static void normal_fill(const struct sample *s, const struct pe_ladder *ladder, unsigned free,
                        struct normal *normal) {
    double scale = ladder->sign * pe_ladder_scale(ladder), factor = exp(ladder->v[PE_LADDER_FACTOR]);
    *normal = (struct normal){0};
    for (size_t j = 0; j < s->n_columns; j++) {
        size_t column = column_at(s, j);
        struct pe_column kind = pe_shape_column(s->shape, s->sheet->width, column);
        double rate = exp(-kind.exponent * ladder->v[PE_LADDER_BASE]);
        for (size_t i = 0; i < s->n_rows; i++) {
            size_t row = row_at(s, i), at = row * s->sheet->width + column;
            double moved = rate * scale * s->sheet->p[row];
            double angle = moved + rate * ladder->v[PE_LADDER_OFFSET];
            double sine = factor * sin(angle), cosine = factor * cos(angle);
            double value = kind.cosine ? cosine : sine, change = kind.cosine ? -sine : cosine;
            double slope[PE_LADDER_N] = {[PE_LADDER_BASE] = -kind.exponent * angle * change,
                                         [PE_LADDER_SCALE] = moved * change,
                                         [PE_LADDER_OFFSET] = rate * change,
                                         [PE_LADDER_FACTOR] = value};
            normal_add(normal, free, s->sheet->x[at] - value, weight_of(s->sheet, at), slope);
        }
    }
}

/* Solves by Cholesky, scaled to a diagonal of ones; a number that nothing depends on stays. */
static void normal_solve(const struct normal *normal, double damping, double step[PE_LADDER_N]) {
    double l[PE_LADDER_N][PE_LADDER_N] = {{0}}, unit[PE_LADDER_N];
    for (int i = 0; i < PE_LADDER_N; i++) {
        unit[i] = normal->a[i][i] > 0 ? 1 / sqrt(normal->a[i][i]) : 0;
        double sum = normal->b[i] * unit[i];
        for (int j = 0; j <= i; j++) {
            double rest = i == j ? 1 + damping : normal->a[i][j] * unit[i] * unit[j];
            for (int k = 0; k < j; k++) {
                rest -= l[i][k] * l[j][k];
            }
            l[i][j] = i == j ? sqrt(fmax(rest, 1e-14)) : rest / l[j][j];
        }
        for (int k = 0; k < i; k++) {
            sum -= l[i][k] * step[k];
        }
        step[i] = sum / l[i][i];
    }
    for (int i = PE_LADDER_N; i-- > 0;) {
        for (int k = i + 1; k < PE_LADDER_N; k++) {
            step[i] -= l[k][i] * step[k];
        }
        step[i] /= l[i][i];
    }
    for (int i = 0; i < PE_LADDER_N; i++) {
        step[i] *= unit[i];
    }
}

static double sample_refine(const struct sample *s, struct pe_ladder *ladder, unsigned free, int rounds) {
    double miss = sample_miss(s, ladder), damping = 1e-9, least = 1e-4 * s->sheet->floor * s->sheet->floor;
    for (int round = 0; round < rounds && miss > least; round++) {
        struct normal normal;
        struct pe_ladder next = *ladder;
        double step[PE_LADDER_N];
        normal_fill(s, ladder, free, &normal);
        normal_solve(&normal, damping, step);
        for (int i = 0; i < PE_LADDER_N; i++) {
            next.v[i] += step[i];
        }
        double after = sample_miss(s, &next);
        if (!(after < miss)) {
            damping = damping < 1e-6 ? 1e-3 : damping * 10;
            if (damping > 1) {
                break;
            }
            continue;
        }
        bool done = after > miss * (1 - 1e-6);
        *ladder = next;
        miss = after;
        damping = fmax(damping * 0.1, 1e-12);
        if (done) {
            break;
        }
    }
    return miss;
}

double pe_ladder_refine(const struct pe_sheet *sheet, const struct pe_shape *shape, struct pe_ladder *ladder,
                        unsigned free, int rounds) {
    struct sample s = sample_of(sheet, shape, ALL_ROWS, ITEMS);
    return sample_refine(&s, ladder, free, rounds);
}

double pe_ladder_approach(const struct pe_sheet *sheet, const struct pe_shape *shape,
                          struct pe_ladder *ladder, unsigned free) {
    for (size_t reach = 4; reach < 2 * sheet->rows; reach *= 4) {
        struct sample s = sample_of(sheet, shape, reach, ITEMS);
        sample_refine(&s, ladder, free, ROUNDS);
    }
    return pe_ladder_refine(sheet, shape, ladder, free, ROUNDS);
}
