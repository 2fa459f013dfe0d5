/* SPDX-License-Identifier: MIT
 *
 * identify: usual numbers, one by one, for sheets whose hands cannot be measured, as rows are few, or so far from each
 * other that every hand turned too far, or begin very far away.
 *
 * The fastest hand turns at the scale whatever the base is, so that it alone tells which scale and offset can be.
 * Then the base is tried: numbers of two digits, and all others in steps that no column can hide between. Where rows
 * begin is told from slow hands to fast, each of which is foretold by those before it to less than half a turn;
 * what is known about the base grows on the way.
 */
#include "ops/identify.h"

#include <float.h>
#include <math.h>

#define COLUMNS      24
#define NUMBERS      240
#define GOOD         4e-4 /* of the power */
#define COARSE       0.12 /* of the power: the base may be half a step away */
#define TOGETHER     0.99 /* a hand that turns at this scale points to one place */
#define LOG_FIRST    1.6  /* log(base) from 5 to 2e7 */
#define LOG_LAST     16.9
#define LOG_FARTHEST 20.8 /* of a base that refining found: beyond, it has run away */
#define MOST_STEPS   3e6
#define MOST_BASES   10000000 /* of all scales: the usual ones are first */
#define CHOICES      24
#define ROUNDS       8
#define NEAR_HANDS   32
#define NEAR_ROWS    32
#define MOST_TURNS   3000.0
#define STARTS_MAX   1100000.0
#define ALIASED      3       /* gaps in which the fastest hand turns too far */
#define MOST_TRIED   1000000 /* starts */
#define TRIED_WORTH  400     /* of them take as long as one that is compared */
#define FOLLOWED     0.02    /* of an angle: standard deviation */

struct usual {
    struct pe_hands hands;
    const struct pe_sheet *sheet;
    const struct pe_shape *shape;
    bool far, quick;
    double sign, scale, offset, log_factor;
    size_t tried; /* starts */
    size_t bases; /* that all numbers were looked through for */
    double best;  /* the least miss so far, in parts of the power */
    struct pe_ladder *ladder;
};

/* A number of two digits: k = 0 .. 89 are 1.0 .. 9.9. */
static double two_digits(size_t k, double unit) {
    return (10 + (double)k) / 10 * unit;
}

static struct pe_ladder ladder_at(const struct usual *u, double slope) {
    struct pe_ladder ladder = {.sign = u->sign};
    ladder.v[PE_LADDER_BASE] = slope * (double)u->sheet->width / 2;
    ladder.v[PE_LADDER_SCALE] = log(u->scale);
    ladder.v[PE_LADDER_OFFSET] = u->sign * u->offset;
    ladder.v[PE_LADDER_FACTOR] = u->log_factor;
    return ladder;
}

/* Keeps a ladder if it is better than the best. */
static void offer(struct usual *u, const struct pe_ladder *ladder) {
    double miss = pe_ladder_miss(u->sheet, u->shape, ladder) / u->sheet->power;
    if (miss < u->best) {
        u->best = miss;
        *u->ladder = *ladder;
    }
}

/* ---- The base, where scale and offset are known -------------------------------------------------------- */

/* Numbers that a base moves, those of the farthest rows first, which tell most bases to be wrong. */
struct watch {
    size_t n;
    struct number {
        struct pe_column column;
        double place, x, w;
    } of[2 * NUMBERS];
};

static void watch_rows(const struct usual *u, size_t rows, struct watch *out) {
    const struct pe_sheet *sheet = u->sheet;
    size_t columns = sheet->width < COLUMNS ? sheet->width : COLUMNS;
    size_t step = rows * columns > NUMBERS ? (rows * columns + NUMBERS - 1) / NUMBERS : 1;
    out->n = 0;
    for (size_t k = (rows + step - 1) / step; k-- > 0;) {
        double x = u->sign * (u->scale * sheet->p[k * step] + u->offset);
        for (size_t j = 0; j < columns; j++) {
            size_t c = j * sheet->width / columns, at = k * step * sheet->width + c;
            struct pe_column column = pe_shape_column(u->shape, sheet->width, c);
            double w = sheet->weight ? fmin(sheet->weight[at], 1) : 1;
            if (column.exponent > 0 && out->n < PE_COUNT(out->of)) {
                out->of[out->n++] = (struct number){column, x, sheet->x[at], w};
            }
        }
    }
}

/* How much they miss, in parts of the power; `most`, as soon as it is more than that. */
static double base_miss(const struct usual *u, const struct watch *watch, double slope, double most) {
    double sum = 0, log_base = slope * (double)u->sheet->width / 2, factor = exp(u->log_factor);
    double enough = most * u->sheet->power * (double)watch->n;
    for (size_t i = 0; i < watch->n && sum <= enough; i++) {
        const struct number *number = &watch->of[i];
        double angle = exp(-number->column.exponent * log_base) * number->place;
        double off = number->x - factor * (number->column.cosine ? cos(angle) : sin(angle));
        sum += number->w * off * off;
    }
    return watch->n && sum <= enough ? sum / (double)watch->n / u->sheet->power : most;
}

/* Numbers of two digits, with either denominator. */
static void bases_round(struct usual *u) {
    double width = (double)u->sheet->width, best = COARSE, slope = NAN;
    struct watch watch;
    watch_rows(u, u->sheet->rows, &watch);
    for (double unit = 10; unit < 1e8 && !pe_error_poll(u->sheet->err); unit *= 10) {
        for (size_t k = 0; k < 180 && width > 2; k++) {
            double now = 2 * log(two_digits(k / 2, unit)) / (k % 2 ? width - 2 : width);
            double miss = base_miss(u, &watch, now, best);
            if (miss < best && now < 2 * LOG_LAST) {
                best = miss;
                slope = now;
            }
        }
    }
    if (!isnan(slope)) {
        struct pe_ladder ladder = ladder_at(u, slope);
        offer(u, &ladder);
        pe_ladder_refine(u->sheet, u->shape, &ladder, 1U << PE_LADDER_BASE, ROUNDS);
        offer(u, &ladder);
    }
}

struct choices {
    double slope[CHOICES], miss[CHOICES];
    size_t n;
};

static void choices_add(struct choices *choices, double slope, double miss) {
    size_t to = choices->n;
    while (to > 0 && choices->miss[to - 1] > miss) {
        to--;
    }
    if (to == CHOICES) {
        return;
    }
    choices->n += choices->n < CHOICES;
    for (size_t i = choices->n - 1; i > to; i--) {
        choices->slope[i] = choices->slope[i - 1];
        choices->miss[i] = choices->miss[i - 1];
    }
    choices->slope[to] = slope;
    choices->miss[to] = miss;
}

/* An angle changes by at most x/(e*log(base)) for each unit of log(base). */
static double base_step(double log_base, double x) {
    return fmin(1.6 * log_base / fmax(x, 1), 0.1);
}

static double reach_of(const struct usual *u, size_t row) {
    return fabs(u->scale * u->sheet->p[row] + u->offset);
}

/* So many rows as tell one base from others, and as the steps allow. None where a base moves no column. */
static size_t rows_searched(const struct usual *u) {
    size_t rows = 0, enough = u->sheet->width > 2 ? 16 : 0;
    while (rows < u->sheet->rows && rows * u->sheet->width < enough && 1.5 * reach_of(u, rows) < MOST_STEPS) {
        rows++;
    }
    return rows;
}

/* Has a base so near been followed? What is searched around it from row to row is wider by far. */
static bool is_followed(const double *bases, size_t n, double base, double reach) {
    double near = 1e-3 * fmin(2 * base / fmax(reach, 1), 0.02 * base);
    for (size_t i = 0; i < n; i++) {
        if (fabs(bases[i] - base) < near) {
            return true;
        }
    }
    return false;
}

/* The best over the first rows are refined there, and followed over the rows behind. */
static void bases_follow(struct usual *u, const struct choices *choices, size_t rows) {
    double bases[CHOICES];
    size_t n = 0;
    for (size_t i = 0; i < choices->n && u->best > GOOD; i++) {
        struct pe_ladder ladder = ladder_at(u, choices->slope[i]);
        struct pe_sheet near = *u->sheet;
        near.rows = rows;
        pe_ladder_refine(&near, u->shape, &ladder, 1U << PE_LADDER_BASE, ROUNDS);
        double base = ladder.v[PE_LADDER_BASE];
        if (base > LOG_FARTHEST || is_followed(bases, n, base, reach_of(u, rows - 1))) {
            continue;
        }
        bases[n++] = base;
        pe_ladder_chain(u->sheet, u->shape, &ladder, rows, true);
        offer(u, &ladder);
    }
}

/* All bases over the first rows. */
static void bases_all(struct usual *u) {
    size_t rows = u->sheet->p[0] < 0 ? 0 : rows_searched(u);
    double log_base = LOG_FIRST, width = (double)u->sheet->width;
    struct choices choices = {.n = 0};
    struct watch watch;
    watch_rows(u, rows, &watch);
    while (rows > 0 && log_base < LOG_LAST && u->bases < MOST_BASES &&
           !(u->bases++ % 1024 == 0 && pe_error_poll(u->sheet->err))) {
        double miss = base_miss(u, &watch, 2 * log_base / width, COARSE);
        if (miss < COARSE) {
            choices_add(&choices, 2 * log_base / width, miss);
        }
        log_base += base_step(log_base, reach_of(u, rows - 1));
    }
    bases_follow(u, &choices, rows);
}

/* ---- Where rows begin ---------------------------------------------------------------------------------- */

/* What is known about x at row `zero` and the slope: their covariance. */
struct state {
    double x, slope, xx, xs, ss;
};

/* Takes in one hand: false where it points elsewhere. */
static bool state_follow(struct state *s, double phase, double i) {
    double rate = exp(-s->slope * i), jx = rate, js = -i * s->x * rate;
    double off = phase - s->x * rate, px = s->xx * jx + s->xs * js, ps = s->xs * jx + s->ss * js;
    double variance = jx * px + js * ps + FOLLOWED * FOLLOWED;
    off -= pe_whole_turns(off);
    if (off * off > 16 * variance) {
        return false;
    }
    double kx = px / variance, ks = ps / variance;
    s->x += kx * off;
    s->slope += ks * off;
    s->xx -= kx * px;
    s->xs -= kx * ps;
    s->ss -= ks * ps;
    return true;
}

/* The start by which all hands stand as they do, where the slowest has been round so many times; NAN: none. */
static double start_follow(const struct usual *u, double *slope, double doubt, double turns) {
    const struct pe_hands *hands = &u->hands;
    size_t stride = hands->n > NEAR_HANDS ? hands->n / NEAR_HANDS : 1,
           last = (hands->n - 1) / stride * stride;
    double slowness = exp(*slope * (double)last), x = (hands->phase[last] + PE_TURN * turns) * slowness;
    double moved = (double)last * x; /* dx/dslope */
    struct state s = {.x = x, .slope = *slope, .ss = doubt * doubt, .xs = moved * doubt * doubt};
    s.xx = FOLLOWED * FOLLOWED * slowness * slowness + moved * s.xs;
    for (size_t i = last / stride; i-- > 0;) {
        if (!state_follow(&s, hands->phase[i * stride], (double)(i * stride))) {
            return NAN;
        }
    }
    *slope = s.slope;
    return s.x;
}

/* How hands stand at row `zero` if they turn by this slope, by the rows around it. */
static void hands_stand(struct usual *u, double slope) {
    struct pe_sheet near = *u->sheet;
    struct pe_hands hands = u->hands;
    size_t first = hands.zero;
    near.p += first;
    near.x += first * near.width;
    near.weight = near.weight ? near.weight + first * near.width : NULL;
    near.rows = near.rows - first < NEAR_ROWS ? near.rows - first : NEAR_ROWS;
    hands.sheet = &near;
    hands.zero = 0;
    for (size_t i = 0; i < hands.n; i++) {
        double omega = u->sign * u->scale * exp(-slope * (double)i);
        hands.phase[i] = u->sign * pe_hand_stand(&hands, i, omega);
    }
}

/* Every number of turns of the slowest hand. `doubt`: of the slope. */
static void starts_try(struct usual *u, double slope, double doubt) {
    double far = u->scale * STARTS_MAX, p = u->scale * u->sheet->p[u->hands.zero];
    double most = fmin(far * exp(-slope * (double)(u->hands.n - 1)) / PE_TURN + 1, MOST_TURNS);
    hands_stand(u, slope);
    for (double turns = -1; turns <= most && u->tried < MOST_TRIED && !pe_error_poll(u->sheet->err);
         turns++) {
        double now = slope, x = start_follow(u, &now, doubt, turns) - p;
        u->tried++;
        double start = nearbyint(2 * x / u->scale) / 2; /* and perhaps an offset of a half */
        if (isnan(x) || fabs(x - start * u->scale) > 0.06 || fabs(start) > STARTS_MAX) {
            continue;
        }
        u->tried += TRIED_WORTH;
        struct usual at = *u;
        at.offset = start * u->scale;
        struct pe_ladder ladder = ladder_at(&at, now);
        offer(u, &ladder);
        pe_ladder_refine(u->sheet, u->shape, &ladder, 1U << PE_LADDER_BASE, ROUNDS);
        offer(u, &ladder);
    }
}

/* By the slope as it was measured, and of numbers of two digits near it, or all where none was. */
static void starts_far(struct usual *u, double measured) {
    double width = (double)u->sheet->width;
    if (measured > 0) {
        starts_try(u, measured, 2e-3 * measured);
    }
    for (double unit = 10; unit < 1e8 && u->best > GOOD && width > 2; unit *= 10) {
        for (size_t k = 0; k < 180 && !pe_error_poll(u->sheet->err); k++) {
            double slope = 2 * log(two_digits(k / 2, unit)) / (k % 2 ? width - 2 : width);
            if (!(measured > 0) || fabs(slope / measured - 1) < 0.02) {
                starts_try(u, slope, 1e-9);
            }
        }
    }
}

/* ---- The scale ----------------------------------------------------------------------------------------- */

static const double scales[] = {1,  0.5, 2,  0.25, 4, 0.125, 8,  10,     0.1, 1000, 0.01,    100,     0.001,
                                16, 32,  64, 3,    5, 20,    50, 0.0625, 0.2, 0.05, 1.0 / 3, 1.0 / 32};
static const double offsets[] = {0, 1, 2, -1, 3, 0.5, -2, 4, 5, 0.25, 0.75, 1.5, 7, 10, 100};

/* Where the fastest hand stands at position 0 if it turns at the scale; false: it does not. */
static bool hand_stands(const struct usual *u, double *angle) {
    double re = 0, im = 0, length = 0;
    for (size_t row = 0; row < u->sheet->rows; row++) {
        double z[2], turn = u->scale * u->sheet->p[row];
        pe_hand_at(&u->hands, 0, row, z);
        re += z[0] * cos(turn) + u->sign * z[1] * sin(turn);
        im += u->sign * z[1] * cos(turn) - z[0] * sin(turn);
        length += hypot(z[0], z[1]);
    }
    *angle = atan2(im, re);
    return hypot(re, im) > TOGETHER * length;
}

static void scale_try(struct usual *u, double scale, double measured) {
    double angle, most = reach_of(u, u->sheet->rows - 1);
    u->scale = scale;
    if (u->best <= GOOD || !hand_stands(u, &angle)) {
        return;
    }
    for (size_t k = 0; k < PE_COUNT(offsets) + 5 && u->best > GOOD; k++) {
        size_t starts = k - PE_COUNT(offsets);
        u->offset = k < PE_COUNT(offsets) ? offsets[k] : scale * (double)(starts + 1);
        double off = u->offset - angle;
        if (fabs(off - pe_whole_turns(off)) < 0.03 + 3 * u->hands.noise + 1e-7 * most) {
            bases_round(u);
            if (u->best > GOOD && !u->quick) {
                bases_all(u);
            }
        }
    }
    u->offset = 0;
    if (u->far && u->hands.n >= 3 && u->best > GOOD) {
        bool seen =
            fabs(fabs(u->hands.omega[0]) / scale - 1) < 0.05; /* it did not turn too far to be measured */
        starts_far(u, seen ? measured : 0);
    }
}

/* ---- The whole ----------------------------------------------------------------------------------------- */

/* The slope of hands that could be measured, and the sign with which they turn. */
static double slope_measured(struct usual *u) {
    struct pe_hands *hands = &u->hands;
    double log_first = 0, slope = 0, turned = 0;
    for (size_t i = 0; i < hands->n && !pe_error_poll(u->sheet->err); i++) {
        hands->omega[i] = 0;
        pe_hand_measure(hands, i, false);
    }
    if (!pe_hands_line(hands, &log_first, &slope) ||
        pe_hands_against(hands, log_first, slope) * 4 > hands->n) {
        return 0;
    }
    for (size_t i = 0; i < hands->n; i++) {
        turned += hands->omega[i];
    }
    u->sign = turned < 0 ? -1 : 1;
    return slope;
}

/* The mean length of the fastest hand. */
static double length_of(const struct pe_hands *hands) {
    const struct pe_sheet *sheet = hands->sheet;
    double length = 0, weight = 0;
    for (size_t row = 0; row < sheet->rows; row++) {
        double z[2];
        pe_hand_at(hands, 0, row, z);
        length += hypot(z[0], z[1]);
        weight += sheet->weight ? sqrt(sheet->weight[row * sheet->width]) : 1;
    }
    return fmax(length / fmax(weight, DBL_MIN), DBL_MIN);
}

static void scales_try(struct usual *u, double measured) {
    bool far = u->far;
    for (size_t i = 0; i < PE_COUNT(scales); i++) {
        scale_try(u, scales[i], measured);
    }
    u->far = false;
    for (size_t i = 0; i < 360 && !u->quick && u->best > GOOD && !pe_error_poll(u->sheet->err); i++) {
        scale_try(u, two_digits(i % 90, pow(10, (double)(i / 90) - 2)), measured);
    }
    u->far = far;
}

bool pe_ladder_usual(const struct pe_sheet *sheet, const struct pe_shape *shape, double *scratch, bool far,
                     bool quick, struct pe_ladder *ladder) {
    struct usual u = {
        .sheet = sheet, .shape = shape, .best = 1, .ladder = ladder, .far = far, .quick = quick};
    bool rotary = shape == &pe_identify_rotary;
    u.hands = pe_hands_open(sheet, shape, scratch);
    if (u.hands.n < 1 || !(u.hands.span > 0) || !pe_hands_are_round(&u.hands)) {
        return false;
    }
    u.log_factor = log(length_of(&u.hands));
    u.sign = 1;
    double measured = u.hands.n >= 3 && u.hands.smallest <= ALIASED ? slope_measured(&u) : 0;
    u.sign = rotary ? u.sign : 1; /* vectors that seem to turn backwards turn too far */
    scales_try(&u, measured);
    if (rotary && u.best > GOOD) {
        u.sign = -u.sign;
        u.bases = 0;
        scales_try(&u, measured);
    }
    return u.best < 0.05;
}
