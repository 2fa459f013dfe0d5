/* SPDX-License-Identifier: MIT
 *
 * identify: rotary frequencies that are no straight ladder, as contexts were stretched. They are measured, hand by
 * hand, where rows stand close enough together to count turns, and held against what the formulas make of usual
 * numbers and of those that the hands suggest: fast hands tell the base, slow ones the factor. Where rows are too
 * far apart, usual numbers are tried against the table itself. What follows no formula but turns evenly is a list of
 * divisors, as LongRoPE's.
 *
 *     t_i = base^(-2i/d); llama3, yarn: between t_i and t_i/factor; proportional: t_i or 0; longrope: t_i/divisor_i
 */
#include "ops/identify.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define SLOWEST 1e-300
#define LIKELY  300 /* what a right formula may miss measured hands by, where angles are in float32 and far */
#define KNOWN   4   /* standard deviations of an angle, over span and rows: how well a hand is known */

/* ---- The formulas -------------------------------------------------------------------------------------- */

static double rung(const struct pe_stretch *stretch, size_t i, size_t width) {
    return exp(-2 * (double)i / (double)width * log(stretch->base));
}

/* The pair that turns so many times within the original context. */
static double turning(const struct pe_stretch *stretch, double turns, double width) {
    return width * log(stretch->original / (PE_TURN * turns)) / (2 * log(stretch->base));
}

static void yarn_rates(const struct pe_stretch *stretch, size_t width, double *rates) {
    double d = (double)width, low = turning(stretch, stretch->fast, d),
           high = turning(stretch, stretch->slow, d);
    low = fmax(stretch->truncate ? floor(low) : low, 0);
    high = fmin(stretch->truncate ? ceil(high) : high, d - 1);
    high += low == high ? 0.001 : 0;
    for (size_t i = 0; i < width / 2; i++) {
        double ramp = fmax(0, fmin(1, ((double)i - low) / (high - low)));
        rates[i] = rung(stretch, i, width) * (1 - ramp + ramp / stretch->factor);
    }
}

static void llama3_rates(const struct pe_stretch *stretch, size_t width, double *rates) {
    for (size_t i = 0; i < width / 2; i++) {
        double rate = rung(stretch, i, width), turns = stretch->original * rate / PE_TURN;
        double part = fmax(0, fmin(1, (turns - stretch->slow) / (stretch->fast - stretch->slow)));
        rates[i] = rate * (part + (1 - part) / stretch->factor);
    }
}

static void proportional_rates(const struct pe_stretch *stretch, size_t width, double *rates) {
    for (size_t i = 0; i < width / 2; i++) {
        rates[i] = i < stretch->turning ? rung(stretch, i, width) / stretch->factor : 0;
    }
}

static void longrope_rates(const struct pe_stretch *stretch, size_t width, double *rates) {
    for (size_t i = 0; i < width / 2; i++) {
        rates[i] = rung(stretch, i, width) / stretch->divisors[i];
    }
}

static void (*const formulas[])(const struct pe_stretch *stretch, size_t width, double *rates) = {
    [PE_STRETCH_YARN] = yarn_rates,
    [PE_STRETCH_LLAMA3] = llama3_rates,
    [PE_STRETCH_PROPORTIONAL] = proportional_rates,
    [PE_STRETCH_LONGROPE] = longrope_rates,
};

/* ---- How well rates explain the sheet ------------------------------------------------------------------ */

#define SAMPLE      48  /* numbers of a first look */
#define LOOK_WORTH  0.5 /* of the power: what misses more is not looked at again */
#define LONG_SAMPLE 400
#define MOST_CHI    1e4

struct view {
    const struct pe_sheet *sheet;
    struct pe_hands hands;
    bool measured; /* the hands are */
    double gain, sign;
    double *sigma, *rates; /* [pairs] */
    struct pe_stretch best[PE_STRETCH_BEST];
    double miss[PE_STRETCH_BEST];
    size_t n;
    double hint;
};

/* Of measured hands: the mean square of what they are off by, in standard deviations. */
static double miss_hands(const struct view *view) {
    double sum = 0;
    for (size_t i = 0; i < view->hands.n; i++) {
        double off = (view->hands.omega[i] - view->sign * view->rates[i]) / view->sigma[i];
        sum += fmin(off * off, MOST_CHI);
    }
    return sum / (double)view->hands.n;
}

/* Of numbers of the sheet, in parts of the power; `n`: so many of them. */
static double miss_numbers(const struct view *view, size_t n) {
    const struct pe_sheet *sheet = view->sheet;
    size_t pairs = view->hands.n;
    double sum = 0, weight = 0;
    for (size_t k = 0; k < n; k++) {
        size_t pair = k * 7 % pairs, row = n > 1 ? k * (sheet->rows - 1) / (n - 1) : 0,
               at = row * sheet->width + pair;
        double w = sheet->weight ? sheet->weight[at] : 1,
               angle = view->sign * view->rates[pair] * sheet->p[row];
        double c = sheet->x[at] - view->gain * cos(angle), s = sheet->x[at + pairs] - view->gain * sin(angle);
        sum += w * (c * c + s * s);
        weight += 2 * w;
    }
    return weight > 0 ? sum / weight / sheet->power : 1;
}

static void view_try(struct view *view, const struct pe_stretch *stretch) {
    formulas[stretch->type](stretch, view->sheet->width, view->rates);
    double miss = view->measured ? miss_hands(view) : miss_numbers(view, SAMPLE);
    if (!view->measured && miss < LOOK_WORTH) {
        miss = miss_numbers(view, LONG_SAMPLE);
    }
    size_t to = view->n;
    while (to > 0 && miss < view->miss[to - 1] * (1 - 1e-3)) {
        to--;
    }
    bool again = to > 0 && miss <= view->miss[to - 1] * (1 + 1e-3); /* what is usual was first */
    if (to == PE_STRETCH_BEST || again) {
        return;
    }
    view->n += view->n < PE_STRETCH_BEST;
    for (size_t i = view->n - 1; i > to; i--) {
        view->best[i] = view->best[i - 1];
        view->miss[i] = view->miss[i - 1];
    }
    view->best[to] = *stretch;
    view->miss[to] = miss;
}

/* ---- Numbers to try ------------------------------------------------------------------------------------ */

#define MOST_NUMBERS 64

struct numbers {
    double v[MOST_NUMBERS];
    size_t n;
};

static void numbers_add(struct numbers *numbers, double value) {
    for (size_t i = 0; i < numbers->n; i++) {
        if (fabs(numbers->v[i] - value) <= 1e-9 * fabs(value)) {
            return;
        }
    }
    if (numbers->n < MOST_NUMBERS && value > 0 && isfinite(value)) {
        numbers->v[numbers->n++] = value;
    }
}

static double rounded(double x, int digits) {
    double unit = pow(10, floor(log10(x)) - (digits - 1));
    return nearbyint(x / unit) * unit;
}

/* The usual ones, and what each hand would have as base if its frequency were not scaled. */
static void bases_fill(const struct view *view, struct numbers *out) {
    static const double usual[] = {10000, 500000, 1e6,    150000, 1e7, 1e5, 1000, 5e6,
                                   2e6,   50000,  160000, 200000, 8e6, 1e8, 100,  25000};
    const size_t width = view->sheet->width, at[] = {1, 2, 3, 4, 6, 8, width / 16, width / 8};
    out->n = 0;
    numbers_add(out, view->hint);
    for (size_t i = 0; i < PE_COUNT(usual); i++) {
        numbers_add(out, usual[i]);
    }
    for (size_t k = 0; k < PE_COUNT(at) && view->measured; k++) {
        double omega = at[k] > 0 && at[k] < width / 2 ? fabs(view->hands.omega[at[k]]) : 0;
        double down = (double)width / (2 * fmax((double)at[k], 1)),
               doubt = down * view->sigma[at[k] % (width / 2)] / fmax(omega, SLOWEST);
        double base = omega > 0 ? pow(omega, -down) : 0;
        for (int digits = 1; digits <= 6 && base > 2 && base < 1e12 && doubt < 0.05; digits++) {
            if (fabs(rounded(base, digits) / base - 1) < 4 * doubt + 1e-6) {
                numbers_add(out, rounded(base, digits));
                break;
            }
        }
    }
}

/* The usual ones, and by how much slow hands are slower than they would be. */
static void factors_fill(const struct view *view, double base, struct numbers *out) {
    static const double usual[] = {8, 4, 32, 2, 16, 40, 64, 3, 6, 10, 5, 12, 20, 24, 128};
    double width = (double)view->sheet->width;
    out->n = 0;
    for (size_t i = 0; i < PE_COUNT(usual); i++) {
        numbers_add(out, usual[i]);
    }
    size_t told = 0;
    for (size_t i = view->hands.n; i-- > 1 && told < 6 && view->measured;) {
        double omega = fmax(fabs(view->hands.omega[i]), SLOWEST),
               factor = pow(base, -2 * (double)i / width) / omega;
        if (omega > 20 * view->sigma[i] && factor > 1.05 && factor < 1e4) {
            told++;
            numbers_add(out, rounded(factor, 1));
            numbers_add(out, rounded(factor, 2));
            numbers_add(out, rounded(factor, 3));
        }
    }
}

static const double originals[] = {8192, 4096, 32768, 2048, 16384, 65536, 131072, 262144, 1024, 512};
static const struct {
    int type;
    double fast, slow;
    bool truncate;
} forms[] = {
    {PE_STRETCH_YARN, 32, 1, true},   {PE_STRETCH_LLAMA3, 4, 1, false}, {PE_STRETCH_YARN, 32, 1, false},
    {PE_STRETCH_LLAMA3, 8, 1, false}, {PE_STRETCH_YARN, 16, 1, true},   {PE_STRETCH_YARN, 64, 1, true},
    {PE_STRETCH_YARN, 16, 1, false},  {PE_STRETCH_YARN, 64, 1, false},  {PE_STRETCH_LLAMA3, 2, 1, false},
};

static void try_base(struct view *view, double base) {
    struct numbers factors;
    factors_fill(view, base, &factors);
    for (size_t k = 0; k < factors.n * PE_COUNT(originals) * PE_COUNT(forms); k++) {
        size_t form = k / factors.n / PE_COUNT(originals);
        if (k % 64 == 0 && pe_error_poll(view->sheet->err)) {
            return;
        }
        struct pe_stretch stretch = {.type = forms[form].type,
                                     .base = base,
                                     .factor = factors.v[k % factors.n],
                                     .original = originals[k / factors.n % PE_COUNT(originals)],
                                     .fast = forms[form].fast,
                                     .slow = forms[form].slow,
                                     .truncate = forms[form].truncate};
        view_try(view, &stretch);
    }
    for (size_t k = 1; k < view->hands.n; k++) {
        struct pe_stretch stretch = {
            .type = PE_STRETCH_PROPORTIONAL, .base = base, .factor = 1, .turning = k, .original = 0};
        view_try(view, &stretch);
    }
}

/* ---- Divisors of their own ----------------------------------------------------------------------------- */

/* As many digits as the hand is known to. */
static double divisor_of(const struct view *view, double rate, size_t i) {
    double omega = fmax(fabs(view->hands.omega[i]), SLOWEST), exact = rate / omega;
    double known = KNOWN * view->hands.noise / (view->hands.span * sqrt((double)view->sheet->rows));
    for (int digits = 1; digits <= 15; digits++) {
        double round = rounded(exact, digits);
        if (fabs(rate / round - omega) <= known) {
            return round;
        }
    }
    return exact;
}

/* Hands that turn too slowly to be measured have the divisor of the one before. The base is the first usual one by
 * which no frequency is raised. */
static bool divisors_fill(const struct view *view, struct pe_stretch *stretch, double *divisors) {
    struct numbers bases = {.n = 0};
    bases_fill(view, &bases);
    stretch->divisors = divisors;
    for (size_t k = 0; k < bases.n; k++) {
        bool raised = false;
        stretch->base = bases.v[k];
        for (size_t i = 0; i < view->hands.n; i++) {
            bool known = fabs(view->hands.omega[i]) > 3 * view->sigma[i];
            double before = i > 0 ? divisors[i - 1] : 1;
            divisors[i] = known ? divisor_of(view, rung(stretch, i, view->sheet->width), i) : before;
            raised = raised || divisors[i] < 0.98;
        }
        if (!raised) {
            return true;
        }
    }
    return false;
}

/* ---- The whole ----------------------------------------------------------------------------------------- */

static void view_measure(struct view *view) {
    struct pe_hands *hands = &view->hands;
    double rows = (double)view->sheet->rows, most = 0, turned = 0;
    for (size_t i = 0; i < view->sheet->rows; i++) {
        most = fmax(most, fabs(view->sheet->p[i]));
    }
    for (size_t i = 0; i < hands->n && view->measured && !pe_error_poll(view->sheet->err); i++) {
        hands->omega[i] = 0;
        pe_hand_measure(hands, i, false);
        pe_hand_refine(hands, i);
        turned += hands->omega[i];
    }
    for (size_t i = 0; i < hands->n; i++) {
        double noise = hands->noise + 6e-8 * most * fabs(hands->omega[i]);
        view->sigma[i] = KNOWN * noise / (hands->span * sqrt(rows)) + 2e-7 * fabs(hands->omega[i]) + SLOWEST;
    }
    view->sign = turned < 0 ? -1 : 1;
}

/* No formula changes the fastest hand, which turns by 1 radian: forwards or backwards, or not so. */
static bool sign_find(struct view *view) {
    double re[2] = {0}, im[2] = {0}, length = 0;
    for (size_t row = 0; row < view->sheet->rows; row++) {
        double z[2], c = cos(view->sheet->p[row]), s = sin(view->sheet->p[row]);
        pe_hand_at(&view->hands, 0, row, z);
        for (int k = 0; k < 2; k++) {
            double sine = k ? -s : s;
            re[k] += z[0] * c + z[1] * sine;
            im[k] += z[1] * c - z[0] * sine;
        }
        length += hypot(z[0], z[1]);
    }
    double forwards = hypot(re[0], im[0]), backwards = hypot(re[1], im[1]);
    view->sign = backwards > forwards ? -1 : 1;
    return fmax(forwards, backwards) > 0.9 * length;
}

/* Rows so close to the one before that turns can be counted. A few are close by chance. */
static size_t rows_close(const struct pe_sheet *sheet) {
    size_t n = 0;
    for (size_t i = 1; i < sheet->rows; i++) {
        n += sheet->p[i] - sheet->p[i - 1] <= 3;
    }
    return n;
}

static void found_take(const struct view *view, struct pe_stretches *out) {
    out->n = 0;
    for (size_t i = 0; i < view->n; i++) {
        bool good = view->miss[i] < (view->measured ? LIKELY : 0.05);
        if (good && view->miss[i] < 20 * view->miss[0] + 1e-9) {
            out->found[out->n++] = view->best[i];
        }
    }
}

size_t pe_stretch_search(struct pe_stretches *out, const struct pe_sheet *sheet, double hint,
                         double *scratch) {
    struct view view = {.sheet = sheet, .hint = hint, .gain = sqrt(2 * sheet->power)};
    view.hands = pe_hands_open(sheet, &pe_identify_rotary, scratch);
    view.sigma = scratch + 2 * sheet->width;
    view.rates = scratch + 3 * sheet->width;
    out->n = 0;
    if (view.hands.n < 4 || !(view.hands.span > 0) || !pe_hands_are_round(&view.hands)) {
        return 0;
    }
    struct numbers bases;
    view.measured = sheet->rows >= 8 && rows_close(sheet) * 4 >= sheet->rows;
    view_measure(&view);
    bases_fill(&view, &bases);
    for (size_t k = 0; k < bases.n && (view.measured || sign_find(&view)); k++) {
        try_base(&view, bases.v[k]);
    }
    found_take(&view, out);
    struct pe_stretch list = {.type = PE_STRETCH_LONGROPE, .factor = 1, .original = 4096};
    if (view.measured && !(view.n && view.miss[0] < 3) && divisors_fill(&view, &list, out->divisors)) {
        out->found[out->n++] = list;
    }
    out->sign = view.sign;
    out->gain = view.gain;
    out->noise = view.hands.noise;
    return out->n;
}

/* ---- Where they begin ---------------------------------------------------------------------------------- */

#define STARTS_MAX 1100000.0

/* How well hands stand for a start, from -1 to 1; -1 where that is not over `least`. */
static double start_rate(const struct pe_hands *hands, double sign, const double *rates, double start,
                         double least) {
    size_t stride = hands->n > PE_HANDS_VOTING ? hands->n / PE_HANDS_VOTING : 1;
    double sum = 0, n = (double)((hands->n + stride - 1) / stride), left = n;
    for (size_t i = 0; i < hands->n; i += stride) {
        sum += cos(hands->phase[i] - sign * rates[i] * start);
        if (sum + --left < least * n) {
            return -1;
        }
    }
    return sum / n;
}

double pe_stretch_start(const struct pe_stretch *stretch, double sign, const struct pe_sheet *sheet, bool far,
                        double *scratch) {
    struct pe_hands hands = pe_hands_open(sheet, &pe_identify_rotary, scratch);
    double *rates = scratch + 2 * sheet->width, best = 0.5, at = 0, most = far ? STARTS_MAX : 16;
    formulas[stretch->type](stretch, sheet->width, rates);
    for (size_t i = 0; i < hands.n && !pe_error_poll(sheet->err); i++) {
        hands.phase[i] = pe_hand_stand(&hands, i, sign * rates[i]) - sign * rates[i] * sheet->p[hands.zero];
    }
    double first = sign * hands.phase[0], turns = ceil(most / PE_TURN);
    first -= pe_whole_turns(first);
    /* From 0 outwards; the fastest hand turns by 1 radian, so that one whole number at most is near each turn. */
    for (double k = 0; k <= turns && !(fmod(k, 1024) == 0 && pe_error_poll(sheet->err));
         k = k > 0 ? -k : 1 - k) {
        double start = nearbyint(first + k * PE_TURN);
        if (fabs(first + k * PE_TURN - start) > 0.3 || start > most || start < -16) {
            continue;
        }
        double sum = start_rate(&hands, sign, rates, start, best) - 1e-5 * log1p(fabs(start));
        if (sum > best) {
            best = sum;
            at = start;
        }
        if (sum > 0.999 && start <= 16) {
            break;
        }
    }
    return at;
}
