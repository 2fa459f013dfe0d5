/* SPDX-License-Identifier: MIT
 *
 * identify: where the hands stand, which tells the offset: from the slowest hand, which has not yet been round, to
 * the fastest. Far from position 0, and where hands do not agree, by searching.
 */
#include "ops/identify.h"

#include <float.h>
#include <math.h>

#define ALONE   20   /* guesses where hands do not agree */
#define FAR     3000 /* positions for which a measured base is too rough */
#define ALIASED 3    /* gaps in which the fastest hand turns too far */
#define LINES   PE_HANDS_VOTING
#define BASES   3000
/* log(base) from 5 to 2e7 */
#define RANGE_FIRST 1.6
#define RANGE_LAST  16.9
#define RANGE_ROWS  200000
#define SCAN_BASES  152 /* from 5 to 2e7 in steps of a tenth of log(base) */
/* How far away a table may begin without saying so. */
#define STARTS_MAX  1100000.0
#define STARTS_NEAR 2000.0 /* where the scale is no number that one would write */

/* ---- Searching ----------------------------------------------------------------------------------------- */

/* x at row `zero`, from slow hands to fast: each is off from what the slower ones foretell by less than half
 * a turn. */
static double stand_follow(const struct pe_hands *hands, double slope, double x) {
    double known = DBL_MIN; /* the slowest hands may not move at all */
    for (size_t i = hands->n; i-- > 0;) {
        double rate = exp(-slope * (double)i), off = hands->phase[i] - rate * x;
        off -= pe_whole_turns(off);
        known += rate * rate;
        x += rate * off / known;
    }
    return x;
}

/* How well the hands stand for x, from -1 to 1; -1 where that is not over `least`. */
static double stand_rate(const struct pe_hands *hands, double slope, double x, double least) {
    double sum = 0, most, rate = 1;
    size_t stride = hands->n > LINES ? hands->n / LINES : 1, n = (hands->n + stride - 1) / stride;
    double ratio = exp(-slope * (double)stride);
    most = (double)n;
    for (size_t i = 0; i < hands->n && most > least * (double)n; i += stride, rate *= ratio) {
        double one = cos(hands->phase[i] - rate * x);
        sum += one;
        most += one - 1;
    }
    return most > least * (double)n ? sum / (double)n : -1;
}

/* Asked now and then. */
static bool is_stopped(const struct pe_hands *hands, double step) {
    return fmod(step, 4096) == 0 && pe_error_poll(hands->sheet->err);
}

/* Far from position 0 a base that is known to a thousandth tells nothing about whole turns: bases around it,
 * with the usual offsets, in steps that no hand can hide between. */
static double base_search(const struct pe_hands *hands, double *slope, double near) {
    double best = 0.9, middle = *slope, at = NAN;
    double step = 0.8 * middle / fmax(fabs(near), 1);
    for (int k = -BASES; k <= BASES && !(k % 64 == 0 && pe_error_poll(hands->sheet->err)); k++) {
        for (int offset = -3; offset <= 5; offset++) {
            double rate = stand_rate(hands, middle + k * step, near + offset, best);
            if (rate > best) {
                best = rate;
                *slope = middle + k * step;
                at = near + offset;
            }
        }
    }
    return at;
}

/* The same where nothing is known about the base but that the scale is 1, as hands turned too far from row to
 * row: the whole range of bases, at a row not far from position 0. */
static double range_search(const struct pe_hands *hands, double p, double *slope) {
    double denominator = (double)hands->sheet->width, best = 0.9, at = NAN, log_base = RANGE_FIRST;
    for (size_t k = 0; log_base < RANGE_LAST && fabs(p) <= RANGE_ROWS && !is_stopped(hands, (double)k); k++) {
        for (int offset = 0; offset <= 2; offset++) {
            double rate = stand_rate(hands, 2 * log_base / denominator, p + offset, best);
            if (rate > best) {
                best = rate;
                *slope = 2 * log_base / denominator;
                at = p + offset;
            }
        }
        log_base += fmin(log_base / fmax(fabs(p), 1), 0.1);
    }
    return at;
}

/* Rows that begin far away without saying so: the whole numbers that the fastest hand stands for, seen by all
 * of them. */
static double start_search(const struct pe_hands *hands, double slope, double near, double *rate) {
    double at = NAN, phase = (hands->phase[0] - near) / PE_TURN;
    double most = hands->whole ? STARTS_MAX : STARTS_NEAR;
    double doubt = fmin(2e-5, 100 * hands->noise * hands->noise + 1e-10);
    phase -= floor(phase + 0.5);
    for (double turn = -floor(most / PE_TURN); turn <= most / PE_TURN && !is_stopped(hands, turn); turn++) {
        double offset = nearbyint((phase + turn) * PE_TURN), off = phase + turn - offset / PE_TURN;
        double now = fabs(off) < 0.02 ? stand_rate(hands, slope, near + offset, *rate) : -1;
        now -= now > *rate ? doubt * log1p(fabs(offset)) : 0; /* the nearest one where many fit */
        if (now > *rate) {
            *rate = now;
            at = near + offset;
        }
    }
    return at;
}

/* The same with the base as it was measured, and with simple bases nearby, as from afar nothing but the right
 * one fits. */
static double starts_search(const struct pe_hands *hands, double *slope, double near) {
    double width = (double)hands->sheet->width, measured = *slope, rate = 0.97, at = NAN;
    for (int k = 0; k < 7; k++) {
        double denominator = k % 2 ? width : width - 2, base = exp(measured * denominator / 2);
        double unit = pow(10, floor(log10(base)) - k / 2), round = nearbyint(base / unit) * unit;
        double now = k == 6 ? measured : 2 * log(round) / denominator;
        double x = fabs(now / measured - 1) < 2e-3 ? start_search(hands, now, near, &rate) : NAN;
        if (!isnan(x)) {
            at = x;
            *slope = now;
        }
    }
    return at;
}

/* ---- The whole ----------------------------------------------------------------------------------------- */

/* log(omega) = log_first - slope*pair in the terms of the shape. */
static struct pe_ladder ladder_of(const struct pe_hands *hands, double log_first, double slope) {
    double width = (double)hands->sheet->width;
    double denominator = hands->shape->minus_one ? width - 2 : width, sum = 0;
    struct pe_ladder ladder = {.v = {[PE_LADDER_BASE] = slope * denominator / 2,
                                     [PE_LADDER_SCALE] = log_first,
                                     [PE_LADDER_FACTOR] = 0.5 * log(fmax(hands->sheet->power * 2, DBL_MIN))}};
    for (size_t i = 0; i < hands->n; i++) {
        sum += hands->omega[i];
    }
    ladder.sign = sum < 0 ? -1 : 1;
    return ladder;
}

/* The nearest number that one would write: of two digits, or 1 over one. */
static double simple_scale(double scale) {
    const double sides[2] = {scale, 1 / scale};
    for (int side = 0; side < 2; side++) {
        double unit = pow(10, floor(log10(sides[side])) - 1), round = nearbyint(sides[side] / unit) * unit;
        if (fabs(round / sides[side] - 1) < 1e-3) {
            return side ? 1 / round : round;
        }
    }
    return scale;
}

/* Keeps the better of two ladders. `free`: the numbers that are not known for certain. */
static double ladder_better(const struct pe_hands *hands, struct pe_ladder next, unsigned free, double miss,
                            struct pe_ladder *best) {
    double found = pe_ladder_approach(hands->sheet, hands->shape, &next, free);
    if (found < miss) {
        *best = next;
    }
    return fmin(found, miss);
}

/* The offset, by the slow hands first; where that fails, by the base nearby or the start far away. */
static void ladder_stand(struct pe_hands *hands, double log_first, double slope, struct pe_ladder *ladder) {
    struct pe_ladder first = ladder_of(hands, log_first, slope);
    double line = slope, p = hands->sheet->p[hands->zero], near = first.sign * exp(log_first) * p;
    double good = (3e-9 + 9 * hands->noise * hands->noise) * hands->sheet->power;
    for (size_t i = 0; i < hands->n && !pe_error_poll(hands->sheet->err); i++) {
        hands->phase[i] = pe_hand_stand(hands, i, first.sign * exp(log_first - slope * (double)i));
    }
    *ladder = first;
    first.v[PE_LADDER_OFFSET] = stand_follow(hands, slope, near) - near;
    double miss = ladder_better(hands, first, 15, DBL_MAX, ladder);
    double scale = simple_scale(exp(log_first));
    near = first.sign * scale * p;
    hands->whole = scale == 1 || scale != exp(log_first);
    if (miss > good && fabs(near) > FAR) {
        double x = base_search(hands, &slope, near);
        first = ladder_of(hands, log(scale), slope);
        first.v[PE_LADDER_OFFSET] = x - near;
        miss = isnan(x) ? miss : ladder_better(hands, first, 9, miss, ladder);
    }
    if (miss > good && first.sign > 0 && !hands->sheet->rounded &&
        pe_hands_against(hands, log_first, line) * 8 <= hands->n) {
        double x = starts_search(hands, &slope, near);
        first = ladder_of(hands, log(scale), slope);
        first.v[PE_LADDER_OFFSET] = x - near;
        miss = isnan(x) ? miss : ladder_better(hands, first, 9, miss, ladder);
    }
}

/* No two hands agree: what the fastest tells alone, or a search where even that turned too far. */
static void ladder_alone(const struct pe_hands *hands, struct pe_ladder *ladder) {
    double width = (double)hands->sheet->width, usual = 2 * log(10000) / width, slope = usual;
    double moved = fabs(hands->omega[0]), x = NAN;
    if (hands->smallest > ALIASED && !hands->sheet->rounded) {
        size_t row =
            hands->zero + (hands->sheet->p[hands->zero] == 0 && hands->zero + 1 < hands->sheet->rows);
        for (size_t i = 0; i < hands->n; i++) {
            double z[2];
            pe_hand_at(hands, i, row, z);
            hands->phase[i] = atan2(z[1], z[0]);
        }
        x = range_search(hands, hands->sheet->p[row], &slope) - hands->sheet->p[row];
        moved = 1;
    }
    if (!isnan(x)) {
        *ladder = ladder_of(hands, 0, slope);
        ladder->sign = 1;
        ladder->v[PE_LADDER_OFFSET] = x;
        struct pe_ladder chained = *ladder;
        double miss = pe_ladder_approach(hands->sheet, hands->shape, ladder, 9);
        double other =
            hands->zero == 0 ? pe_ladder_chain(hands->sheet, hands->shape, &chained, 1, true) : miss;
        *ladder = other < miss ? chained : *ladder;
        return;
    }
    double miss = DBL_MAX, scale = simple_scale(fmax(moved, 1e-9));
    double off = pe_hand_stand(hands, 0, hands->omega[0]) -
                 copysign(scale, hands->omega[0]) * hands->sheet->p[hands->zero];
    for (int k = 0; k < ALONE && !pe_error_poll(hands->sheet->err);
         k++) { /* bases, and whole turns of the fastest hand */
        struct pe_ladder at = ladder_of(hands, log(scale), usual * (0.5 + 0.5 * (k % 4)));
        at.v[PE_LADDER_OFFSET] =
            off - pe_whole_turns(off) + PE_TURN * ((k / 4 + 1) / 2 * (k / 4 % 2 ? -1 : 1));
        miss = ladder_better(hands, at, 15, miss, ladder);
    }
}

bool pe_ladder_find(const struct pe_sheet *sheet, const struct pe_shape *shape, double *scratch,
                    struct pe_ladder *ladder) {
    struct pe_hands hands = pe_hands_open(sheet, shape, scratch);
    double log_first = 0, slope = 0;
    if (hands.n < 2 || !(hands.span > 0) || !pe_hands_are_round(&hands)) {
        return false;
    }
    for (size_t i = 0; i < hands.n && !pe_error_poll(sheet->err); i++) {
        hands.omega[i] = 0;
        pe_hand_measure(&hands, i, false);
    }
    bool agree = pe_hands_line(&hands, &log_first, &slope);
    bool by_chance = hands.smallest > ALIASED && pe_hands_against(&hands, log_first, slope) * 4 > hands.n;
    if (agree && !by_chance) {
        ladder_stand(&hands, log_first, slope, ladder);
    } else {
        ladder_alone(&hands, ladder);
    }
    return true;
}

void pe_ladder_scan(const struct pe_sheet *sheet, const struct pe_shape *shape, struct pe_ladder *ladder) {
    static const double offsets[] = {0, 1, 2};
    struct pe_ladder best = {.sign = 1};
    double least = DBL_MAX, full = 0.5 * log(fmax(sheet->power * 2, DBL_MIN));
    for (int k = 0; k < SCAN_BASES * 6 && !(k % 64 == 0 && pe_error_poll(sheet->err)); k++) {
        struct pe_ladder at = {.sign = 1};
        at.v[PE_LADDER_BASE] = log(5) + k / 6 * 0.1;
        at.v[PE_LADDER_OFFSET] = offsets[k % 3];
        at.v[PE_LADDER_FACTOR] = k % 6 < 3 ? 0 : full;
        double miss = pe_ladder_miss_near(sheet, shape, &at);
        if (miss < least) {
            least = miss;
            best = at;
        }
    }
    *ladder = best;
}
