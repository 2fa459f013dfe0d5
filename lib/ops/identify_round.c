/* SPDX-License-Identifier: MIT
 *
 * identify: the simplest numbers that explain a sheet. A fit gives base 10000.37 where somebody wrote 10000.
 *
 * What is better is a matter of nats, the logarithm of how probable the sheet is: n/2 * log(mean square) for
 * how far off it is, and for each number what writing it down takes, 2.3 for each digit. A round number is
 * better where the loss is smaller than the digits that it saves; where the sheet is known to all its digits,
 * nothing but the right number is.
 */
#include "ops/identify.h"

#include <math.h>

#define NATS_PER_DIGIT 2.302585092994046
#define MOST_DIGITS    12
#define WHOLE          1e-8
#define NEAR_STARTS    9
#define NEAR           2e-3 /* only numbers so close are tried, in parts of the number */

static double round_digits(double x, int digits) {
    if (x == 0) {
        return 0;
    }
    double unit = pow(10, floor(log10(fabs(x))) - (digits - 1));
    double steps = nearbyint(x / unit);
    return unit < 1 ? steps / nearbyint(1 / unit) : steps * unit;
}

/* How many digits writing it takes. */
static int digits_of(double x) {
    int digits = 1;
    while (digits < MOST_DIGITS && fabs(round_digits(x, digits) - x) > 1e-12 * fabs(x)) {
        digits++;
    }
    return digits;
}

static double digits_nats(double x) {
    return NATS_PER_DIGIT * digits_of(x);
}

/* ---- What numbers are usual ---------------------------------------------------------------------------- */

static double base_penalty(double base) {
    static const double usual[] = {100, 1000, 100000, 500000, 1000000, 150000};
    if (fabs(base / 10000 - 1) < 1e-12) {
        return 0;
    }
    for (size_t i = 0; i < PE_COUNT(usual); i++) {
        if (fabs(base / usual[i] - 1) < 1e-12) {
            return 2;
        }
    }
    return (base < 5 || base > 2e7 ? 12 : 2) + digits_nats(base);
}

/* 1, a number of few digits, or 1 over one. */
static double scale_penalty(double scale) {
    return fabs(scale - 1) < 1e-12 ? 0 : 3 + fmin(digits_nats(scale), digits_nats(1 / scale));
}

static double offset_penalty(double offset) {
    bool whole = fabs(offset - nearbyint(offset)) < 1e-9;
    return fabs(offset) < 1e-12 ? 0 : whole ? 1 + log1p(fabs(offset)) : 4 + digits_nats(offset);
}

/* 1, sqrt(D) and its like, or a number of few digits. */
#define FACTORS 7
static void usual_factors(size_t width, double out[FACTORS]) {
    double root = sqrt((double)width);
    const double all[FACTORS] = {1, root, 1 / root, root / sqrt(2), sqrt(2) / root, 2, 0.5};
    for (size_t i = 0; i < FACTORS; i++) {
        out[i] = all[i];
    }
}

static double factor_penalty(double factor, size_t width) {
    double usual[FACTORS];
    usual_factors(width, usual);
    for (size_t i = 0; i < FACTORS; i++) {
        if (fabs(factor / usual[i] - 1) < 1e-12) {
            return i ? 4 : 0;
        }
    }
    return 4 + digits_nats(factor);
}

double pe_ladder_penalty(const struct pe_ladder *ladder, size_t width) {
    return base_penalty(exp(ladder->v[PE_LADDER_BASE])) + scale_penalty(pe_ladder_scale(ladder)) +
           offset_penalty(ladder->v[PE_LADDER_OFFSET]) +
           factor_penalty(exp(ladder->v[PE_LADDER_FACTOR]), width) + (ladder->sign < 0 ? 6 : 0);
}

double pe_sheet_score(const struct pe_sheet *sheet, double square, double penalty) {
    double n = (double)sheet->rows * (double)sheet->width;
    return 0.5 * fmin(n, 8192) * log(square + sheet->floor * sheet->floor) + penalty;
}

/* ---- Rounding ------------------------------------------------------------------------------------------ */

#define CHOICES 14
struct choices {
    double v[CHOICES];
    size_t n;
};

static void choices_add(struct choices *choices, double value, double now, double near) {
    bool known = false;
    for (size_t i = 0; i < choices->n; i++) {
        known = known || fabs(choices->v[i] - value) <= 1e-14 * fabs(value);
    }
    if (!known && choices->n < CHOICES && fabs(value - now) <= near) {
        choices->v[choices->n++] = value;
    }
}

static void base_choices(const struct pe_ladder *ladder, size_t width, struct choices *out) {
    double base = exp(ladder->v[PE_LADDER_BASE]);
    (void)width;
    if (!(base > 3 && base < 3e8)) { /* nothing moved by it: any will do */
        choices_add(out, log(10000), 0, INFINITY);
        choices_add(out, log(1e6), 0, INFINITY);
        choices_add(out, log(1e7), 0, INFINITY);
        return;
    }
    for (int digits = 1; digits <= 6; digits++) {
        choices_add(out, log(round_digits(base, digits)), log(base), 30 * NEAR);
    }
}

static void scale_choices(const struct pe_ladder *ladder, size_t width, struct choices *out) {
    double scale = pe_ladder_scale(ladder), now = log(scale);
    (void)width;
    choices_add(out, 0, now, 30 * NEAR);
    for (int digits = 1; digits <= 4; digits++) {
        choices_add(out, log(round_digits(scale, digits)), now, 2 * NEAR);
        choices_add(out, -log(round_digits(1 / scale, digits)), now, 2 * NEAR);
    }
}

static void offset_choices(const struct pe_ladder *ladder, size_t width, struct choices *out) {
    double offset = ladder->v[PE_LADDER_OFFSET];
    (void)width;
    choices_add(out, 0, offset, 0.7);
    choices_add(out, nearbyint(offset), offset, 1);
    for (int whole = -NEAR_STARTS; whole <= NEAR_STARTS;
         whole++) { /* whole turns of the fastest column away */
        double off = (whole - offset) / 6.283185307179586;
        if (fabs(off - nearbyint(off)) < 0.01) {
            choices_add(out, whole, offset, 3 * NEAR_STARTS);
        }
    }
    choices_add(out, nearbyint(offset * 10) / 10, offset, 1);
    choices_add(out, nearbyint(offset * 100) / 100, offset, 1);
    choices_add(out, nearbyint(offset * 10000) / 10000, offset, 1);
}

static void factor_choices(const struct pe_ladder *ladder, size_t width, struct choices *out) {
    double factor = exp(ladder->v[PE_LADDER_FACTOR]), usual[FACTORS], now = log(factor);
    usual_factors(width, usual);
    for (size_t i = 0; i < FACTORS; i++) {
        choices_add(out, log(usual[i]), now, 10 * NEAR);
    }
    for (int digits = 1; digits <= 5; digits++) {
        choices_add(out, log(round_digits(factor, digits)), now, 2 * NEAR);
    }
}

/* The order matters: what is left free makes up for what is rounded. */
static const struct {
    int number;
    void (*choices)(const struct pe_ladder *ladder, size_t width, struct choices *out);
} roundings[] = {
    {PE_LADDER_FACTOR, factor_choices},
    {PE_LADDER_SCALE, scale_choices},
    {PE_LADDER_OFFSET, offset_choices},
    {PE_LADDER_BASE, base_choices},
};

struct rounding {
    const struct pe_sheet *sheet;
    const struct pe_shape *shape;
    bool bold;
};

static double score_of(const struct rounding *rounding, const struct pe_ladder *ladder, double miss) {
    if (rounding->bold) { /* a third more of error is no reason */
        return log(fmax(miss / rounding->sheet->power, 1e-3)) * 100 +
               pe_ladder_penalty(ladder, rounding->sheet->width);
    }
    return pe_sheet_score(rounding->sheet, miss, pe_ladder_penalty(ladder, rounding->sheet->width));
}

/* Holds one number at the best of its choices, or leaves it free. Returns what is still free. */
static unsigned round_one(const struct rounding *rounding, size_t which, unsigned free,
                          struct pe_ladder *ladder) {
    struct choices choices = {.n = 0};
    unsigned rest = free & ~(1U << roundings[which].number);
    double best = 1 + score_of(rounding, ladder, pe_ladder_miss(rounding->sheet, rounding->shape, ladder));
    bool held = false;
    struct pe_ladder from = *ladder;
    roundings[which].choices(ladder, rounding->sheet->width, &choices);
    for (size_t i = 0; i < choices.n && !pe_error_poll(rounding->sheet->err); i++) {
        struct pe_ladder to = from;
        to.v[roundings[which].number] = choices.v[i];
        double miss = pe_ladder_refine(rounding->sheet, rounding->shape, &to, rest, 5);
        double score = score_of(rounding, &to, miss);
        if (score < best) {
            best = score;
            *ladder = to;
            held = true;
        }
    }
    return held ? rest : free;
}

void pe_ladder_simplify(const struct pe_sheet *sheet, const struct pe_shape *shape, struct pe_ladder *ladder,
                        bool bold) {
    const struct rounding rounding = {.sheet = sheet, .shape = shape, .bold = bold};
    const double *v = ladder->v;
    unsigned free = (1U << PE_LADDER_N) - 1;
    /* What a guess has set and no fit has moved is as simple as can be. */
    free &= ~((v[PE_LADDER_SCALE] == 0 ? 1U : 0U) << PE_LADDER_SCALE);
    free &= ~((v[PE_LADDER_FACTOR] == 0 ? 1U : 0U) << PE_LADDER_FACTOR);
    free &= ~((v[PE_LADDER_OFFSET] == nearbyint(v[PE_LADDER_OFFSET]) ? 1U : 0U) << PE_LADDER_OFFSET);
    if (fabs(v[PE_LADDER_OFFSET] - nearbyint(v[PE_LADDER_OFFSET])) < WHOLE) { /* or as a fit can tell */
        ladder->v[PE_LADDER_OFFSET] = nearbyint(v[PE_LADDER_OFFSET]);
        free &= ~(1U << PE_LADDER_OFFSET);
    }
    for (size_t i = 0; i < PE_COUNT(roundings); i++) {
        if (free >> roundings[i].number & 1) {
            free = round_one(&rounding, i, free, ladder);
        }
    }
}
