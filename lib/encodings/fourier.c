/* SPDX-License-Identifier: MIT
 *
 * Fourier features of real coordinates p [n], where sinusoids are of positions in a sequence:
 *
 *     nerf       for k = 0..L-1 in turn: sin(2^k c p) of all axes, cos(2^k c p) of all; c = pi as the paper has
 *                it (Mildenhall et al. 2020), or 1 as its code does (bmild/nerf #12)
 *     periods    the same with 2*pi*p/P_k: of real timestamps, with the periods given (a day, a week, a year),
 *                or geometric from min_period to max_period
 *     gaussian   cos(2 pi B p) [m], then sin(2 pi B p) [m]; B [m, n] is posted, or sigma times normal numbers
 *                from a seed (Tancik et al. 2020; their demo has sines first, which is `order`)
 *
 * include_input puts p itself in front, as NeRF's code does. A position times 2^k is exact, so one frequency
 * serves all k; above 2^53, where pe_place_of ends, whole turns of pi are taken off (a double that large is
 * even), and without pi, or where 2^k p is infinite, the full-width path is taken.
 */
#include "core/admit.h"
#include "core/angle.h"
#include "core/cells.h"
#include "encodings/encoding.h"

#include <math.h>
#include <string.h>

struct fourier {
    uint64_t given;
    int features;
    int64_t n_axes, n_frequencies;
    bool pi, include_input;
    const struct pe_tensor *periods;
    double min_period, max_period;
    struct pe_table b;
    int64_t seed;
    double sigma;
    int order;
};

enum { FEATURES_NERF = 1, FEATURES_PERIODS, FEATURES_GAUSSIAN };
enum { ORDER_COS_SIN = 1, ORDER_SIN_COS };
#define MAX_FREQUENCIES 16384

static const struct pe_choice features[] = {
    {"nerf", FEATURES_NERF, "powers of two: NeRF"},
    {"periods", FEATURES_PERIODS, "given or geometric periods: real timestamps"},
    {"gaussian", FEATURES_GAUSSIAN, "random frequencies: Tancik et al."},
    {NULL, 0, NULL}};
static const struct pe_choice orders[] = {
    {"cos_sin", ORDER_COS_SIN, "cosines first: Tancik et al., the paper"},
    {"sin_cos", ORDER_SIN_COS, "sines first: their demo"},
    {NULL, 0, NULL}};

enum {
    FIELD_FEATURES,
    FIELD_N_AXES,
    FIELD_N_FREQUENCIES,
    FIELD_PI,
    FIELD_INCLUDE_INPUT,
    FIELD_PERIODS,
    FIELD_MIN_PERIOD,
    FIELD_MAX_PERIOD,
    FIELD_B,
    FIELD_SEED,
    FIELD_SIGMA,
    FIELD_ORDER
};

static const struct pe_field fields[] = {
    [FIELD_FEATURES] = {PE_FIELD(fourier, features), .choices = features, .flags = PE_FIELD_REQUIRED,
                        .doc = "Which frequencies."},
    [FIELD_N_AXES] = {PE_FIELD(fourier, n_axes), .min = 1, .max = PE_MAX_AXES, .def = "1",
                      .doc = "Coordinates of a position."},
    [FIELD_N_FREQUENCIES] = {PE_FIELD(fourier, n_frequencies), .min = 1, .max = MAX_FREQUENCIES,
                             .doc = "How many: L of nerf (10 for places, 4 for directions; at most 1000), of "
                                    "geometric periods, or m of a seed."},
    [FIELD_PI] = {PE_FIELD(fourier, pi),
                  .doc = "Of nerf: whether angles are 2^k*pi*p, as in the paper, or 2^k*p, as in its code "
                         "[true]."},
    [FIELD_INCLUDE_INPUT] = {PE_FIELD(fourier, include_input), .def = "false",
                             .doc = "The coordinates themselves come first."},
    [FIELD_PERIODS] = {PE_FIELD(fourier, periods), .flags = PE_FIELD_NUMBERS, .shape = "[L]",
                       .doc = "The periods, in units of position: 24 and 168 for days and weeks in hours."},
    [FIELD_MIN_PERIOD] = {PE_FIELD(fourier, min_period), .min = 1e-150, .max = 1e150,
                          .doc = "In place of periods: the first of n_frequencies geometric ones."},
    [FIELD_MAX_PERIOD] = {PE_FIELD(fourier, max_period), .min = 1e-150, .max = 1e150,
                          .doc = "The last of them; for timestamps at least the span of the data."},
    [FIELD_B] = {PE_FIELD(fourier, b), .shape = "[m, n_axes]", .doc = "Of gaussian: the frequencies."},
    [FIELD_SEED] = {PE_FIELD(fourier, seed), .min = 0, .max = PE_POSITION_MAX,
                    .doc = "In place of b: normal random numbers, another seed, others."},
    [FIELD_SIGMA] = {PE_FIELD(fourier, sigma), .min = 0, .max = 1e9, .flags = PE_FIELD_OPEN_MIN,
                     .doc = "Of a seed: the standard deviation [1]."},
    [FIELD_ORDER] = {PE_FIELD(fourier, order), .choices = orders, .doc = "Of gaussian [cos_sin]."},
};

/* Which of the features a parameter is of. */
static const unsigned used_by[] = {
    [FIELD_N_FREQUENCIES] = 1U << FEATURES_NERF | 1U << FEATURES_PERIODS | 1U << FEATURES_GAUSSIAN,
    [FIELD_PI] = 1U << FEATURES_NERF,
    [FIELD_PERIODS] = 1U << FEATURES_PERIODS,
    [FIELD_MIN_PERIOD] = 1U << FEATURES_PERIODS,
    [FIELD_MAX_PERIOD] = 1U << FEATURES_PERIODS,
    [FIELD_B] = 1U << FEATURES_GAUSSIAN,
    [FIELD_SEED] = 1U << FEATURES_GAUSSIAN,
    [FIELD_SIGMA] = 1U << FEATURES_GAUSSIAN,
    [FIELD_ORDER] = 1U << FEATURES_GAUSSIAN,
};

struct plan {
    size_t n; /* frequencies */
    union {
        struct pe_turn *turns; /* nerf [1], periods [n] */
        double *b;             /* gaussian [n, n_axes] */
    };
};

static bool given(const struct fourier *fourier, int field) {
    return fourier->given >> field & 1;
}

/* ---- Parameters ---------------------------------------------------------------------------------------- */

/* Frequencies that follow from tensors; 0: from n_frequencies. */
static size_t n_posted(const struct fourier *fourier) {
    return fourier->periods ? fourier->periods->dim[0] : fourier->b.tensor ? fourier->b.tensor->dim[0] : 0;
}

static size_t n_of(const struct fourier *fourier) {
    size_t posted = n_posted(fourier);
    return posted ? posted : (size_t)fourier->n_frequencies;
}

static double period_at(const struct pe_tensor *periods, size_t i) {
    double period;
    const char *data = periods->data;
    pe_dtype_load(periods->dtype, data + i * pe_dtype_size(periods->dtype), 1, &period);
    return period;
}

static int check_used(const struct fourier *fourier, struct pe_error *err) {
    for (int i = FIELD_N_FREQUENCIES; i < (int)PE_COUNT(used_by); i++) {
        if (used_by[i] && given(fourier, i) && !(used_by[i] >> fourier->features & 1)) {
            return pe_fail(err, PE_ERR_CONFLICT, fields[i].name, "features %s do not use it",
                           pe_choice_name(features, fourier->features));
        }
    }
    return PE_OK;
}

static int check_count(const struct fourier *fourier, struct pe_error *err) {
    bool there = given(fourier, FIELD_N_FREQUENCIES);
    size_t posted = n_posted(fourier);
    if (!posted && !there) {
        return pe_fail(err, PE_ERR_MISSING, "n_frequencies", "is missing, the number of frequencies");
    }
    if (posted && there && posted != (size_t)fourier->n_frequencies) {
        return pe_fail(err, PE_ERR_CONFLICT, "n_frequencies", "is %lld, but %zu are given",
                       (long long)fourier->n_frequencies, posted);
    }
    if (fourier->features == FEATURES_NERF && fourier->n_frequencies > 1000) {
        return pe_fail(err, PE_ERR_RANGE, "n_frequencies", "is %lld, nerf has at most 1000: powers of two",
                       (long long)fourier->n_frequencies);
    }
    return PE_OK;
}

static int check_list(const struct pe_tensor *periods, struct pe_error *err) {
    char text[64];
    if (periods->rank != 1 || periods->dim[0] < 1 || periods->dim[0] > MAX_FREQUENCIES) {
        return pe_fail(err, PE_ERR_SHAPE, "periods", "has shape %s, allowed is a list of 1 to %d numbers",
                       pe_tensor_shape_text(periods, text, sizeof text), MAX_FREQUENCIES);
    }
    for (size_t i = 0; i < periods->dim[0]; i++) {
        double period = period_at(periods, i);
        if (!(period >= 1e-150 && period <= 1e150)) {
            pe_fail(err, PE_ERR_RANGE, pe_tensor_index_text(periods, i, text, sizeof text),
                    "got %.17g, allowed are 1e-150 to 1e150", period);
            return pe_error_at(err, "periods");
        }
    }
    return PE_OK;
}

static int check_periods(const struct fourier *fourier, struct pe_error *err) {
    bool least = given(fourier, FIELD_MIN_PERIOD), most = given(fourier, FIELD_MAX_PERIOD);
    if (fourier->periods && (least || most)) {
        return pe_fail(err, PE_ERR_CONFLICT, "periods",
                       "is given, and so are geometric ones: give one of them");
    }
    if (fourier->periods) {
        return check_list(fourier->periods, err);
    }
    if (!least || !most) {
        return pe_fail(err, PE_ERR_MISSING, least ? "max_period" : "min_period",
                       "is missing: periods, or min_period and max_period");
    }
    return PE_OK;
}

static int check_gaussian(const struct fourier *fourier, struct pe_error *err) {
    const struct pe_tensor *b = fourier->b.tensor;
    char shape[64];
    if (pe_cells_check(&fourier->b, "b", given(fourier, FIELD_SEED), err)) {
        return err->code;
    }
    if (b && given(fourier, FIELD_SIGMA)) {
        return pe_fail(err, PE_ERR_CONFLICT, "sigma", "is of a seed, but b is given");
    }
    if (b && (b->rank != 2 || b->dim[0] < 1 || b->dim[0] > MAX_FREQUENCIES ||
              b->dim[1] != (size_t)fourier->n_axes)) {
        return pe_fail(err, PE_ERR_SHAPE, "b", "has shape %s, allowed is [m, %lld] with m from 1 to %d",
                       pe_tensor_shape_text(b, shape, sizeof shape), (long long)fourier->n_axes,
                       MAX_FREQUENCIES);
    }
    const struct pe_cells cells = {.tensor = b, .columns = 1};
    return b ? pe_cells_check_range(&cells, "b", err) : PE_OK;
}

static int check(const void *params, struct pe_error *err) {
    const struct fourier *fourier = params;
    if (check_used(fourier, err) || (fourier->features == FEATURES_PERIODS && check_periods(fourier, err)) ||
        (fourier->features == FEATURES_GAUSSIAN && check_gaussian(fourier, err))) {
        return err->code;
    }
    return check_count(fourier, err);
}

/* Numbers of one frequency: a sine and a cosine, of gaussian one pair for all axes. */
static size_t pair_axes(const struct fourier *fourier) {
    return fourier->features == FEATURES_GAUSSIAN ? 1 : (size_t)fourier->n_axes;
}

static size_t width(const void *params) {
    const struct fourier *fourier = params;
    return 2 * n_of(fourier) * pair_axes(fourier) + (fourier->include_input ? (size_t)fourier->n_axes : 0);
}

static size_t plan_bytes(const void *params) {
    const struct fourier *fourier = params;
    size_t n = n_of(fourier);
    size_t bytes = fourier->features == FEATURES_GAUSSIAN ? n * (size_t)fourier->n_axes * sizeof(double)
                   : fourier->features == FEATURES_NERF   ? sizeof(struct pe_turn)
                                                          : n * sizeof(struct pe_turn);
    return sizeof(struct plan) + bytes;
}

static void resolve(void *params, void *data) {
    struct fourier *fourier = params;
    uint64_t *bits = &fourier->given;
    (void)data;
    if (fourier->features == FEATURES_NERF && !given(fourier, FIELD_PI)) {
        fourier->pi = true;
        *bits |= UINT64_C(1) << FIELD_PI;
    }
    if (fourier->features == FEATURES_GAUSSIAN && !given(fourier, FIELD_ORDER)) {
        fourier->order = ORDER_COS_SIN;
        *bits |= UINT64_C(1) << FIELD_ORDER;
    }
    if (given(fourier, FIELD_SEED) && !given(fourier, FIELD_SIGMA)) {
        fourier->sigma = 1;
        *bits |= UINT64_C(1) << FIELD_SIGMA;
    }
}

/* 1/P of all periods. */
static void plan_periods(const struct fourier *fourier, struct plan *plan) {
    const struct pe_wide one = pe_wide_of(1);
    struct pe_wide ratio = one, turns = pe_wide_of(fourier->min_period), period;
    if (!fourier->periods) { /* (max/min)^(-1/(n-1)) from one to the next */
        struct pe_wide most = pe_wide_of(fourier->max_period);
        pe_wide_div(&ratio, &turns, &most);
        pe_wide_log(&ratio, &ratio);
        pe_wide_div_small(&ratio, &ratio, plan->n > 1 ? (uint32_t)plan->n - 1 : 1);
        pe_wide_exp(&ratio, &ratio);
        pe_wide_div(&turns, &one, &turns);
    }
    for (size_t i = 0; i < plan->n; i++) {
        if (fourier->periods) {
            period = pe_wide_of(period_at(fourier->periods, i));
            pe_wide_div(&turns, &one, &period);
        }
        pe_turn_of(&plan->turns[i], &turns);
        pe_wide_mul(&turns, &turns, &ratio);
    }
}

static int make_plan(struct pe_plan_view *view, struct pe_error *err) {
    const struct fourier *fourier = view->params;
    struct plan *plan = view->data;
    (void)err;
    plan->n = n_of(fourier);
    plan->turns = (struct pe_turn *)(void *)(plan + 1);
    if (fourier->features == FEATURES_NERF) {
        struct pe_wide half = pe_wide_of(0.5);
        pe_turn_of(plan->turns, fourier->pi ? &half : &pe_wide_1_2pi);
    } else if (fourier->features == FEATURES_PERIODS) {
        plan_periods(fourier, plan);
    } else {
        size_t n = (size_t)fourier->n_axes;
        const struct pe_cells cells = {
            .tensor = fourier->b.tensor, .columns = n, .seed = fourier->seed, .std = fourier->sigma};
        for (size_t i = 0; i < plan->n * n; i++) {
            plan->b[i] = pe_cells_at(&cells, i / n, i % n);
        }
    }
    return PE_OK;
}

static int axes(const struct pe_plan_view *view) {
    return (int)((const struct fourier *)view->params)->n_axes;
}

static int admit(const struct pe_plan_view *view, const struct pe_positions *positions,
                 struct pe_error *err) {
    int wanted = axes(view);
    if (positions->axes == wanted || positions->length == 0) {
        return PE_OK;
    }
    return pe_fail(err, PE_ERR_SHAPE, "", "have %d coordinates each, but n_axes is %d", positions->axes,
                   wanted);
}

static int fits(const struct pe_plan_view *view, const struct pe_positions *positions, enum pe_dtype dtype,
                double limit, struct pe_error *err) {
    const struct fourier *fourier = view->params;
    const struct pe_admit rule = {.min = -nextafter(limit, 0), .max = nextafter(limit, 0)};
    struct pe_stray stray;
    if (pe_positions_count(positions) == 0) {
        return PE_OK;
    }
    if (limit <= 1) {
        return pe_positions_overflow(positions, 0, 1, dtype, limit, err);
    }
    if (!fourier->include_input || !pe_positions_stray(positions, &rule, err->stop, &stray)) {
        return PE_OK;
    }
    return pe_positions_overflow(positions, stray.index, stray.position, dtype, limit, err);
}

/* ---- Vectors ------------------------------------------------------------------------------------------- */

/* sin and cos of 2^k*p times the only frequency. */
static void write_power(const struct fourier *fourier, const struct pe_turn *turn, double p, size_t k,
                        enum pe_dtype dtype, const struct pe_phase_out *out) {
    struct pe_place place;
    double x = ldexp(p, (int)k);
    if (fourier->pi && isfinite(x)) {
        x = fmod(x, 2); /* exact */
    }
    if (fabs(x) <= PE_POSITION_MAX) {
        pe_place_of(&place, x, 1, 0);
        pe_phase_row(&place, turn, 1, dtype, out);
        return;
    }
    struct pe_turn scaled;
    struct pe_wide turns = turn->exact;
    turns.exponent += (int32_t)k;
    pe_turn_of(&scaled, &turns);
    pe_place_of(&place, p, 1, 0);
    pe_phase_row(&place, &scaled, 1, dtype, out);
}

/* Columns sin(f0) of all axes, cos(f0) of all, sin(f1) ... */
static void encode_ladder(const struct pe_plan_view *view, const double *position, enum pe_dtype dtype,
                          char *row) {
    const struct fourier *fourier = view->params;
    const struct plan *plan = view->data;
    size_t size = pe_dtype_size(dtype), n = (size_t)fourier->n_axes;
    for (size_t a = 0; a < n; a++) {
        struct pe_place place;
        struct pe_phase_out out = {.sin = row + a * size, .cos = row + (n + a) * size, .step = 2 * n};
        if (fourier->features == FEATURES_PERIODS) {
            pe_place_of(&place, position[a], 1, 0);
            pe_phase_row(&place, plan->turns, plan->n, dtype, &out);
            continue;
        }
        for (size_t k = 0; k < plan->n; k++) {
            out.sin = row + (2 * n * k + a) * size;
            out.cos = row + (2 * n * k + n + a) * size;
            write_power(fourier, plan->turns, position[a], k, dtype, &out);
        }
    }
}

static void encode_gaussian(const struct pe_plan_view *view, const double *position, enum pe_dtype dtype,
                            char *row) {
    const struct fourier *fourier = view->params;
    const struct plan *plan = view->data;
    size_t size = pe_dtype_size(dtype), n = (size_t)fourier->n_axes;
    bool cos_first = fourier->order == ORDER_COS_SIN;
    for (size_t i = 0; i < plan->n; i++) {
        struct pe_wide sum = {0};
        for (size_t a = 0; a < n; a++) {
            pe_sum_add(&sum, plan->b[i * n + a], position[a]);
        }
        char *first = row + i * size, *second = row + (plan->n + i) * size;
        pe_angle_write(&sum, dtype,
                       &(struct pe_phase_out){
                           .sin = cos_first ? second : first, .cos = cos_first ? first : second, .step = 1});
    }
}

static void encode(const struct pe_plan_view *view, const double *positions, size_t n, enum pe_dtype dtype,
                   void *out) {
    const struct fourier *fourier = view->params;
    size_t size = pe_dtype_size(dtype), n_axes = (size_t)fourier->n_axes;
    for (size_t i = 0; i < n; i++) {
        char *row = (char *)out + i * view->width * size;
        const double *position = positions + i * n_axes;
        if (fourier->include_input) {
            pe_dtype_store(dtype, position, n_axes, row);
            row += n_axes * size;
        }
        (fourier->features == FEATURES_GAUSSIAN ? encode_gaussian : encode_ladder)(view, position, dtype,
                                                                                   row);
    }
}

/* Frequencies of one axis that take the full-width path; of powers of two without pi those beyond 2^53, as if
 * at position 1. */
static size_t n_slow(const struct fourier *fourier, const struct plan *plan) {
    size_t n = 0;
    if (fourier->features == FEATURES_NERF && !fourier->pi) {
        n = plan->n > 53 ? plan->n - 53 : 0;
    }
    for (size_t i = 0; fourier->features == FEATURES_PERIODS && i < plan->n; i++) {
        n += pe_turn_is_slow(&plan->turns[i], false);
    }
    return n;
}

static double row_cost_ns(const struct pe_plan_view *view, enum pe_dtype dtype) {
    (void)dtype;
    const struct fourier *fourier = view->params;
    const struct plan *plan = view->data;
    double axes = (double)fourier->n_axes, n = (double)plan->n * axes;
    return 100 + 2 * PE_TURN_SLOW_NS * axes * (double)n_slow(fourier, plan) +
           n * (fourier->features == FEATURES_GAUSSIAN ? PE_ANGLE_NS : 60);
}

const struct pe_encoding pe_fourier = {
    .info = {.type = "fourier",
             .title = "Fourier features",
             .doc =
                 "Sines and cosines of real coordinates: NeRF's powers of two, Gaussian random features, and "
                 "periods that are chosen, for timestamps.",
             .reference = "Mildenhall et al. 2020, NeRF; Tancik et al. 2020, Fourier Features",
             .family = PE_FAMILY_ABSOLUTE,
             .params_size = sizeof(struct fourier),
             .fields = fields,
             .n_fields = PE_COUNT(fields)},
    .check = check,
    .width = width,
    .plan_bytes = plan_bytes,
    .resolve = resolve,
    .plan = make_plan,
    .admit = admit,
    .fits = fits,
    .axes = axes,
    .encode = encode,
    .encode_axes = encode,
    .row_cost_ns = row_cost_ns,
};
