/* SPDX-License-Identifier: MIT
 *
 * identify: the ladder of a sheet from nothing, given which columns are sines and which cosines.
 *
 * A pair of columns is a hand on a clock, z(p) = cos + i sin. How fast it turns is told by pairs of rows: the
 * angle from z(s) to z(t) is omega*(p_t - p_s), up to whole turns. Rows close together tell omega roughly but
 * without doubt, rows twice as far apart twice as well where omega is known well enough to count the turns;
 * so the precision doubles from level to level up to the whole span, whatever the gaps are. Hands whose turns
 * cannot be counted even between neighbours are foretold by the others, as log(omega) is a straight line.
 * Where the hands stand tells the offset in the same way, from the slowest hand to the fastest.
 */
#include "ops/identify.h"

#include <float.h>
#include <math.h>

#define TURN    6.283185307179586
#define STARTS  24   /* pairs of rows on a level */
#define LEVELS  40   /* gaps up to 2^40 times the smallest */
#define ALONE   20   /* guesses where hands do not agree */
#define FAR     3000 /* positions for which a measured base is too rough */
#define ALIASED 3    /* gaps in which the fastest hand turns too far */
#define LINES   24   /* hands that take part in a vote */
#define BASES   3000
/* log(base) from 5 to 2e7 */
#define RANGE_FIRST 1.6
#define RANGE_LAST  16.9
#define RANGE_ROWS  50000
#define SCAN_BASES  152 /* from 5 to 2e7 in steps of a tenth of log(base) */
/* How far away a table may begin without saying so. */
#define STARTS_MAX  1100000.0
#define STARTS_NEAR 2000.0 /* where the scale is not 1 */

/* ---- Hands of a clock ---------------------------------------------------------------------------------- */

static double weight_of(const struct pe_sheet *sheet, size_t at) {
    return sheet->weight ? sheet->weight[at] : 1;
}

struct hands {
    const struct pe_sheet *sheet;
    const struct pe_shape *shape;
    size_t n;
    double *omega, *phase; /* [n]: per unit of position; where it stands at row `zero` */
    double noise;          /* of an angle */
    size_t zero;
    bool whole;            /* the scale is 1 */
    double smallest, span; /* of the gaps */
};

static void hand_of(const struct hands *hands, size_t pair, size_t row, double z[2]) {
    size_t width = hands->sheet->width, firsts = (width + 1) / 2;
    const double *x = hands->sheet->x + row * width;
    size_t a = hands->shape->halves ? pair : 2 * pair, b = hands->shape->halves ? firsts + pair : a + 1;
    double weight = sqrt(weight_of(hands->sheet, row * width + a));
    z[0] = weight * (hands->shape->cos_first ? x[a] : x[b]);
    z[1] = weight * (hands->shape->cos_first ? x[b] : x[a]);
}

/* Every hand has the same length. Sets the noise; false where lengths differ as if these were no hands. */
static bool hands_are_round(struct hands *hands) {
    double sum = 0, square = 0, weight = 0;
    for (size_t row = 0; row < hands->sheet->rows; row++) {
        for (size_t i = 0; i < hands->n; i++) {
            double z[2];
            hand_of(hands, i, row, z);
            double w = weight_of(hands->sheet, row * hands->sheet->width + i);
            double length = w > 0 ? hypot(z[0], z[1]) / sqrt(w) : 0;
            sum += w * length;
            square += w * length * length;
            weight += w;
        }
    }
    double mean = weight > 0 ? sum / weight : 0;
    double spread = weight > 0 ? fmax(square / weight - mean * mean, 0) : 0;
    hands->noise = fmax(sqrt(spread) / fmax(mean, DBL_MIN), 1e-13);
    return mean > 0 && hands->noise < 0.25;
}

static double whole_turns(double angle) {
    return TURN * nearbyint(angle / TURN);
}

/* The first row behind `row` whose gap is at least so large. */
static size_t row_behind(const struct pe_sheet *sheet, size_t row, double gap) {
    size_t low = row + 1, high = sheet->rows;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sheet->p[middle] - sheet->p[row] < gap) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* omega of a hand from pairs of rows whose gaps are from `gap` to twice that. `foretold`: turns are counted.
 */
static void level_measure(const struct hands *hands, size_t pair, double gap, bool foretold) {
    const struct pe_sheet *sheet = hands->sheet;
    double up = 0, down = 0, omega = hands->omega[pair];
    for (size_t k = 0; k < STARTS && k < sheet->rows; k++) {
        size_t s = sheet->rows <= STARTS ? k : k * sheet->rows / STARTS;
        size_t t = row_behind(sheet, s, gap * (1 - 1e-9));
        double a[2], b[2];
        if (t == sheet->rows || sheet->p[t] - sheet->p[s] > 2 * gap) {
            continue;
        }
        double g = sheet->p[t] - sheet->p[s];
        hand_of(hands, pair, s, a);
        hand_of(hands, pair, t, b);
        double angle = atan2(a[0] * b[1] - a[1] * b[0], a[0] * b[0] + a[1] * b[1]);
        double weight = hypot(a[0], a[1]) * hypot(b[0], b[1]);
        if (foretold) {
            angle += whole_turns(omega * g - angle);
        }
        up += weight * g * angle;
        down += weight * g * g;
    }
    hands->omega[pair] = down > 0 ? up / down : omega;
}

static void hand_measure(const struct hands *hands, size_t pair, bool foretold) {
    double gap = hands->smallest;
    for (int level = 0; level < LEVELS && gap <= hands->span * (1 + 1e-9); level++, gap *= 2) {
        level_measure(hands, pair, gap, foretold || level > 0);
    }
}

/* Does this straight line through log(omega) foretell the hand? The weight with which it does, else 0. */
static double agreement(const struct hands *hands, size_t pair, double log_first, double slope) {
    double expected = exp(log_first - slope * (double)pair);
    double off = fabs(fabs(hands->omega[pair]) - expected);
    double blur = 6 * hands->noise / hands->span;
    return off < fmax(0.02 * expected, blur) && expected > blur ? 1 : 0;
}

/* The line that most hands are on, through two of them. */
static bool line_vote(const struct hands *hands, double *log_first, double *slope) {
    double best = 0;
    size_t stride = hands->n > LINES ? hands->n / LINES : 1;
    for (size_t i = 0; i < hands->n; i += stride) {
        for (size_t j = i + stride; j < hands->n; j += stride) {
            double a = hands->omega[i], b = hands->omega[j];
            if (!(a * b > 0)) {
                continue;
            }
            double line = log(a / b) / (double)(j - i), first = log(fabs(a)) + line * (double)i, votes = 0;
            for (size_t k = 0; k < hands->n; k += stride) {
                votes += agreement(hands, k, first, line);
            }
            if (votes > best && line > -1e-6) {
                best = votes;
                *log_first = first;
                *slope = line;
            }
        }
    }
    return best >= 2;
}

/* The straight line through log(omega) of the hands that agree: each counts by how well it is known. */
static void line_fit(const struct hands *hands, double *log_first, double *slope) {
    double w = 0, wi = 0, wii = 0, wy = 0, wiy = 0;
    for (size_t i = 0; i < hands->n; i++) {
        if (agreement(hands, i, *log_first, *slope) > 0) {
            double at = (double)i, y = log(fabs(hands->omega[i]));
            double weight = hands->omega[i] * hands->omega[i];
            w += weight;
            wi += weight * at;
            wii += weight * at * at;
            wy += weight * y;
            wiy += weight * at * y;
        }
    }
    double down = w * wii - wi * wi;
    if (down > 1e-12 * w * wii) {
        *slope = (wi * wy - w * wiy) / down;
        *log_first = (wy + *slope * wi) / w;
    }
}

/* Hands whose turns could not be counted, from slow to fast. */
static void hands_foretell(const struct hands *hands, double *log_first, double *slope) {
    size_t voters = 0;
    double sign = 0;
    for (size_t i = 0; i < hands->n; i++) {
        if (agreement(hands, i, *log_first, *slope) > 0) {
            voters++;
            sign += hands->omega[i];
        }
    }
    for (size_t i = hands->n; i-- > 0 && voters >= 2;) {
        if (agreement(hands, i, *log_first, *slope) > 0) {
            continue;
        }
        hands->omega[i] = copysign(exp(*log_first - *slope * (double)i), sign);
        hand_measure(hands, i, true);
        line_fit(hands, log_first, slope);
    }
}

/* ---- Where the hands stand ----------------------------------------------------------------------------- */

/* The angle of a hand at row `zero`, from all rows. */
static double stand_of(const struct hands *hands, size_t pair, double omega) {
    double sine = 0, cosine = 0;
    for (size_t row = 0; row < hands->sheet->rows; row++) {
        double z[2], angle = -omega * (hands->sheet->p[row] - hands->sheet->p[hands->zero]);
        hand_of(hands, pair, row, z);
        double s = sin(angle), c = cos(angle);
        cosine += z[0] * c - z[1] * s;
        sine += z[0] * s + z[1] * c;
    }
    return atan2(sine, cosine);
}

/* x at row `zero`, from slow hands to fast: each is off from what the slower ones foretell by less than half
 * a turn. */
static double stand_follow(const struct hands *hands, double slope, double x) {
    double known = 0;
    for (size_t i = hands->n; i-- > 0;) {
        double rate = exp(-slope * (double)i), off = hands->phase[i] - rate * x;
        off -= whole_turns(off);
        known += rate * rate;
        x += rate * off / known;
    }
    return x;
}

/* How well the hands stand for x, from -1 to 1; -1 where that is not over `least`. */
static double stand_rate(const struct hands *hands, double slope, double x, double least) {
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

/* Far from position 0 a base that is known to a thousandth tells nothing about whole turns: bases around it,
 * with the usual offsets, in steps that no hand can hide between. */
static double base_search(const struct hands *hands, double *slope, double near) {
    double best = 0.9, middle = *slope, at = NAN;
    double step = 0.8 * middle / fmax(fabs(near), 1);
    for (int k = -BASES; k <= BASES; k++) {
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
static double range_search(const struct hands *hands, double p, double *slope) {
    double denominator = (double)hands->sheet->width, best = 0.9, at = NAN, log_base = RANGE_FIRST;
    while (log_base < RANGE_LAST && fabs(p) <= RANGE_ROWS) {
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
static double start_search(const struct hands *hands, double slope, double near, double *rate) {
    double at = NAN, phase = (hands->phase[0] - near) / TURN;
    double most = hands->whole ? STARTS_MAX : STARTS_NEAR;
    for (double offset = -most; offset <= most; offset++) {
        double off = phase - offset / TURN;
        off -= floor(off + 0.5);
        double now = fabs(off) < 0.02 ? stand_rate(hands, slope, near + offset, *rate) : -1;
        now -= now > *rate ? 2e-5 * log1p(fabs(offset)) : 0; /* the nearest one where many fit */
        if (now > *rate) {
            *rate = now;
            at = near + offset;
        }
    }
    return at;
}

/* The same with the base as it was measured, and with simple bases nearby, as from afar nothing but the right
 * one fits. */
static double starts_search(const struct hands *hands, double *slope, double near) {
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

static struct hands hands_open(const struct pe_sheet *sheet, const struct pe_shape *shape, double *scratch) {
    struct hands hands = {.sheet = sheet,
                          .shape = shape,
                          .n = sheet->width / 2,
                          .omega = scratch,
                          .phase = scratch + sheet->width,
                          .smallest = DBL_MAX};
    for (size_t i = 1; i < sheet->rows; i++) {
        double gap = sheet->p[i] - sheet->p[i - 1];
        hands.smallest = gap > 0 ? fmin(hands.smallest, gap) : hands.smallest;
        hands.zero = fabs(sheet->p[i]) < fabs(sheet->p[hands.zero]) ? i : hands.zero;
    }
    hands.span = sheet->rows ? sheet->p[sheet->rows - 1] - sheet->p[0] : 0;
    return hands;
}

/* log(omega) = log_first - slope*pair in the terms of the shape. */
static struct pe_ladder ladder_of(const struct hands *hands, double log_first, double slope) {
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
static double ladder_better(const struct hands *hands, struct pe_ladder next, unsigned free, double miss,
                            struct pe_ladder *best) {
    double found = pe_ladder_approach(hands->sheet, hands->shape, &next, free);
    if (found < miss) {
        *best = next;
    }
    return fmin(found, miss);
}

/* The offset, by the slow hands first; where that fails, by the base nearby or the start far away. */
static void ladder_stand(struct hands *hands, double log_first, double slope, struct pe_ladder *ladder) {
    struct pe_ladder first = ladder_of(hands, log_first, slope);
    double p = hands->sheet->p[hands->zero], near = first.sign * exp(log_first) * p;
    double good = (1e-5 + 9 * hands->noise * hands->noise) * hands->sheet->power;
    for (size_t i = 0; i < hands->n; i++) {
        hands->phase[i] = stand_of(hands, i, first.sign * exp(log_first - slope * (double)i));
    }
    *ladder = first;
    first.v[PE_LADDER_OFFSET] = stand_follow(hands, slope, near) - near;
    double miss = ladder_better(hands, first, 15, DBL_MAX, ladder);
    double scale = simple_scale(exp(log_first));
    near = first.sign * scale * p;
    hands->whole = scale == 1;
    if (miss > good && fabs(near) > FAR) {
        double x = base_search(hands, &slope, near);
        first = ladder_of(hands, log(scale), slope);
        first.v[PE_LADDER_OFFSET] = x - near;
        miss = isnan(x) ? miss : ladder_better(hands, first, 9, miss, ladder);
    }
    if (miss > good && first.sign > 0) {
        double x = starts_search(hands, &slope, near);
        first = ladder_of(hands, log(scale), slope);
        first.v[PE_LADDER_OFFSET] = x - near;
        miss = isnan(x) ? miss : ladder_better(hands, first, 9, miss, ladder);
    }
}

/* No two hands agree: what the fastest tells alone, or a search where even that turned too far. */
static void ladder_alone(const struct hands *hands, struct pe_ladder *ladder) {
    double width = (double)hands->sheet->width, usual = 2 * log(10000) / width, slope = usual;
    double moved = fabs(hands->omega[0]), x = NAN;
    if (hands->smallest > ALIASED) {
        size_t row =
            hands->zero + (hands->sheet->p[hands->zero] == 0 && hands->zero + 1 < hands->sheet->rows);
        for (size_t i = 0; i < hands->n; i++) {
            double z[2];
            hand_of(hands, i, row, z);
            hands->phase[i] = atan2(z[1], z[0]);
        }
        x = range_search(hands, hands->sheet->p[row], &slope) - hands->sheet->p[row];
        moved = 1;
    }
    if (!isnan(x)) {
        *ladder = ladder_of(hands, 0, slope);
        ladder->sign = 1;
        ladder->v[PE_LADDER_OFFSET] = x;
        pe_ladder_approach(hands->sheet, hands->shape, ladder, 9);
        return;
    }
    double miss = DBL_MAX, scale = simple_scale(fmax(moved, 1e-9));
    double off =
        stand_of(hands, 0, hands->omega[0]) - copysign(scale, hands->omega[0]) * hands->sheet->p[hands->zero];
    for (int k = 0; k < ALONE; k++) { /* bases, and whole turns of the fastest hand */
        struct pe_ladder at = ladder_of(hands, log(scale), usual * (0.5 + 0.5 * (k % 4)));
        at.v[PE_LADDER_OFFSET] = off - whole_turns(off) + TURN * ((k / 4 + 1) / 2 * (k / 4 % 2 ? -1 : 1));
        miss = ladder_better(hands, at, 15, miss, ladder);
    }
}

bool pe_ladder_find(const struct pe_sheet *sheet, const struct pe_shape *shape, double *scratch,
                    struct pe_ladder *ladder) {
    struct hands hands = hands_open(sheet, shape, scratch);
    double log_first = 0, slope = 0;
    if (hands.n < 2 || !(hands.span > 0) || !hands_are_round(&hands)) {
        return false;
    }
    for (size_t i = 0; i < hands.n; i++) {
        hands.omega[i] = 0;
        hand_measure(&hands, i, false);
    }
    if (!line_vote(&hands, &log_first, &slope)) {
        ladder_alone(&hands, ladder);
        return true;
    }
    line_fit(&hands, &log_first, &slope);
    hands_foretell(&hands, &log_first, &slope);
    line_fit(&hands, &log_first, &slope);
    ladder_stand(&hands, log_first, slope, ladder);
    return true;
}

void pe_ladder_scan(const struct pe_sheet *sheet, const struct pe_shape *shape, struct pe_ladder *ladder) {
    static const double offsets[] = {0, 1, 2};
    struct pe_ladder best = {.sign = 1};
    double least = DBL_MAX, full = 0.5 * log(fmax(sheet->power * 2, DBL_MIN));
    for (int k = 0; k < SCAN_BASES * 6; k++) {
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
