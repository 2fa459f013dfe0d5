/* SPDX-License-Identifier: MIT
 *
 * identify: xPos (Sun et al. 2022), whose pairs grow or shrink as they turn. Pair i of a query at position p is
 * multiplied by
 *
 *     zeta_i^((p - center)/scale_base), zeta_i = (2i/d + 0.4)/1.4,
 *
 * that of a key by 1 over it. So the logarithm of a length is a plane over log(zeta_i) and p*log(zeta_i), which
 * least squares find without any angle; the lengths taken off, what is left is a plain rotary sheet.
 */
#include "ops/identify.h"

#include <math.h>
#include <string.h>

#define TERMS   3
#define ROUNDS  3
#define WORTH   12 /* nats by which growth must explain lengths better than none */
#define SLACK   12 /* in standard deviations squared: what a rounder number may be off by */
#define DIGITS  9
#define FASTEST 1.01 /* 1 over the least scale_base */

/* log(length) = slope*q*z + level*z + all, where z = log(zeta_i) and q = p - first. */
struct growth {
    double v[TERMS]; /* slope, level, all */
    double first;
};
enum { SLOPE, LEVEL, ALL };

static double log_zeta(size_t pair, size_t pairs) {
    return log((10 * (double)pair + 4 * (double)pairs) / (14 * (double)pairs));
}

static double growth_log(const struct growth *g, double p, double z) {
    return (g->v[SLOPE] * (p - g->first) + g->v[LEVEL]) * z + g->v[ALL];
}

/* ---- Least squares ------------------------------------------------------------------------------------- */

struct plane {
    double a[TERMS][TERMS], b[TERMS], square, weight;
};

static void plane_add(struct plane *plane, const double term[TERMS], double off, double weight) {
    for (int i = 0; i < TERMS; i++) {
        for (int j = 0; j < TERMS; j++) {
            plane->a[i][j] += weight * term[i] * term[j];
        }
        plane->b[i] += weight * term[i] * off;
    }
    plane->square += weight * off * off;
    plane->weight += weight;
}

/* What lengths are off by. A length counts by its square, as its logarithm is known the worse the shorter it is. */
static void plane_fill(const struct pe_sheet *sheet, const struct growth *g, struct plane *plane) {
    size_t pairs = sheet->width / 2;
    *plane = (struct plane){.weight = 0};
    for (size_t i = 0; i < pairs; i++) {
        double z = log_zeta(i, pairs);
        for (size_t row = 0; row < sheet->rows; row++) {
            size_t at = row * sheet->width + i;
            double length = hypot(sheet->x[at], sheet->x[at + pairs]);
            double weight = length * length * (sheet->weight ? sheet->weight[at] : 1);
            const double term[TERMS] = {(sheet->p[row] - g->first) * z, z, 1};
            if (length > 0 && weight > 0) {
                plane_add(plane, term, log(length) - growth_log(g, sheet->p[row], z), weight);
            }
        }
    }
}

/* One step of elimination for each number that is free. */
static void plane_solve(struct plane *plane, unsigned free, double step[TERMS]) {
    for (int i = 0; i < TERMS; i++) {
        for (int j = 0; j < TERMS && !(free >> i & 1); j++) {
            plane->a[i][j] = plane->a[j][i] = 0;
        }
        plane->b[i] = free >> i & 1 ? plane->b[i] : 0;
    }
    for (int i = 0; i < TERMS; i++) {
        for (int k = i + 1; k < TERMS && plane->a[i][i] > 0; k++) {
            double part = plane->a[k][i] / plane->a[i][i];
            for (int j = i; j < TERMS; j++) {
                plane->a[k][j] -= part * plane->a[i][j];
            }
            plane->b[k] -= part * plane->b[i];
        }
    }
    for (int i = TERMS; i-- > 0;) {
        double sum = plane->b[i];
        for (int j = i + 1; j < TERMS; j++) {
            sum -= plane->a[i][j] * step[j];
        }
        step[i] = plane->a[i][i] > 1e-300 ? sum / plane->a[i][i] : 0;
    }
}

/* Returns the mean square that is left. `free`: the numbers that are not held. */
static double growth_fit(const struct pe_sheet *sheet, struct growth *g, unsigned free) {
    struct plane plane;
    for (int round = 0; round < ROUNDS; round++) {
        double step[TERMS] = {0};
        plane_fill(sheet, g, &plane);
        plane_solve(&plane, free, step);
        for (int i = 0; i < TERMS; i++) {
            g->v[i] += step[i];
        }
    }
    plane_fill(sheet, g, &plane);
    return plane.weight > 0 ? plane.square / plane.weight : 0;
}

/* ---- Rounding ------------------------------------------------------------------------------------------ */

static double rounded(double x, int digits) {
    double unit = pow(10, floor(log10(fabs(x))) - (digits - 1));
    return nearbyint(x / unit) * unit;
}

/* The roundest scale_base, then the roundest center, that explain lengths as well. */
static void growth_simplify(const struct pe_sheet *sheet, struct growth *g, double miss) {
    double n = (double)sheet->rows * (double)sheet->width / 2, floor = 2 * sheet->floor / sqrt(sheet->power);
    double most = miss * (1 + SLACK / n) + floor * floor;
    const struct growth exact = *g;
    for (int digits = 1; digits <= DIGITS; digits++) {
        struct growth round = exact;
        double base =
            digits == 1 ? copysign(512, 1 / exact.v[SLOPE]) : rounded(1 / exact.v[SLOPE], digits - 1);
        round.v[SLOPE] = 1 / base;
        if (fabs(round.v[SLOPE]) <= 1 && growth_fit(sheet, &round, 1U << LEVEL | 1U << ALL) <= most) {
            *g = round;
            break;
        }
    }
    double center = g->first - g->v[LEVEL] / g->v[SLOPE];
    for (int digits = 0; digits <= 4; digits++) {
        struct growth round = *g;
        double unit = pow(10, digits - 1), at = digits ? nearbyint(center * unit) / unit : 0;
        round.v[LEVEL] = g->v[SLOPE] * (g->first - at);
        if (growth_fit(sheet, &round, 1U << ALL) <= most) {
            *g = round;
            break;
        }
    }
}

/* ---- The whole ----------------------------------------------------------------------------------------- */

bool pe_xpos_find(const struct pe_sheet *sheet, struct pe_xpos *out) {
    struct growth none = {.first = sheet->rows ? sheet->p[0] : 0}, some;
    double n = fmin((double)sheet->rows * (double)sheet->width / 2, PE_IDENTIFY_COMPARED);
    if (sheet->rows < 3 || sheet->width < 4 || !(sheet->power > 0)) {
        return false;
    }
    double flat = growth_fit(sheet, &none, 1U << ALL), floor = sheet->floor / sqrt(sheet->power);
    some = none;
    double miss = growth_fit(sheet, &some, (1U << TERMS) - 1);
    if (!(0.5 * n * log((flat + floor * floor) / (miss + floor * floor)) > WORTH) || some.v[SLOPE] == 0 ||
        !(fabs(some.v[SLOPE]) <= FASTEST)) {
        return false;
    }
    growth_simplify(sheet, &some, miss);
    out->keys = some.v[SLOPE] < 0;
    out->scale_base = fabs(1 / some.v[SLOPE]);
    out->center = some.first - some.v[LEVEL] / some.v[SLOPE];
    return out->scale_base >= 1 && out->scale_base <= 1e9;
}

void pe_xpos_take_off(const struct pe_xpos *xpos, struct pe_sheet *sheet) {
    size_t pairs = sheet->width / 2;
    double sum = 0, weight = 0;
    for (size_t at = 0; at < sheet->rows * sheet->width; at++) {
        double p = sheet->p[at / sheet->width], turn = (p - xpos->center) / xpos->scale_base;
        double gain = exp((xpos->keys ? -turn : turn) * log_zeta(at % sheet->width % pairs, pairs));
        sheet->x[at] /= gain;
        if (sheet->weight) {
            sheet->weight[at] *= gain * gain;
        }
        double w = sheet->weight ? sheet->weight[at] : 1;
        sum += w * sheet->x[at] * sheet->x[at];
        weight += w;
    }
    sheet->power = weight > 0 ? sum / weight : 0;
}
