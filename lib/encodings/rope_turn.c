/* SPDX-License-Identifier: MIT
 *
 * rope's plan and the angles that it gives: which coordinate turns which pair, and where a position is too
 * far. Angles are exact, see core/phase.h, unless `arithmetic` asks for a replay, see core/replay.h.
 */
#include "encodings/rope.h"

#include "core/admit.h"

#include <math.h>
#include <string.h>

#define GROWTH_MOST    1e300 /* of xPos: then nothing is beyond float64 */
#define FAST_PAIRS     64    /* at a time, a multiple of a wave's lanes */
#define RATES_TOGETHER 64    /* logarithms between two questions whether to stop: a millisecond or two */

bool pe_rope_exact(const struct pe_plan_view *view) {
    return ((const struct rope *)view->params)->arithmetic == PE_ARITHMETIC_EXACT;
}

/* ---- Positions ----------------------------------------------------------------------------------------- */

/* How far xPos lets positions be: up to a growth of `limit`. */
static int growth_check(const struct rope_plan *plan, const struct pe_positions *positions,
                        enum pe_dtype dtype, double limit, struct pe_error *err) {
    double rate = fabs(pe_wide_double(&plan->rates[0])), reach = log(limit) / rate * (1 - 1e-12);
    struct pe_admit rule = {.min = plan->xpos.center - reach, .max = plan->xpos.center + reach};
    struct pe_stray stray;
    if (!pe_positions_stray(positions, &rule, err->stop, &stray)) {
        return PE_OK;
    }
    return pe_positions_overflow(positions, stray.index, exp(rate * fabs(stray.position - plan->xpos.center)),
                                 dtype, limit, err);
}

int pe_rope_admit(const struct pe_plan_view *view, const struct pe_positions *positions,
                  struct pe_error *err) {
    const struct rope_plan *plan = view->data;
    const struct rope *params = view->params;
    bool text = positions->axes == 1 && !params->rope_axes; /* M-RoPE: a text's t, h and w are the same */
    if (positions->axes != plan->axes && !text) {
        return pe_fail(err, PE_ERR_SHAPE, "", "have %d coordinate%s each, this encoding takes %d%s",
                       positions->axes, positions->axes > 1 ? "s" : "", plan->axes,
                       plan->axes > 1 && !params->rope_axes ? ", or one that stands for all" : "");
    }
    if (plan->rates) {
        return growth_check(plan, positions, PE_DTYPE_F64, GROWTH_MOST, err);
    }
    return pe_replay_admit((enum pe_arithmetic)params->arithmetic, positions, 1, 0, err);
}

/* No value is above the attention factor, or above what xPos grows to. */
int pe_rope_fits(const struct pe_plan_view *view, const struct pe_positions *positions, enum pe_dtype dtype,
                 double limit, struct pe_error *err) {
    const struct rope_plan *plan = view->data;
    if (plan->rates) {
        return growth_check(plan, positions, dtype, limit, err);
    }
    double gain = pe_rope_exact(view) ? plan->gain.nearest : (double)plan->replay.gain;
    return gain < limit || pe_positions_count(positions) == 0
               ? PE_OK
               : pe_positions_overflow(positions, 0, gain, dtype, limit, err);
}

/* ---- The plan ------------------------------------------------------------------------------------------ */

/* Which coordinate turns pair i. Interleaved: t h w t h w ..., a coordinate whose share is used up leaves its
 * places to t, with ggml's four sections to the fourth. */
static unsigned char section_of(const struct rope *params, size_t pair) {
    const struct pe_ints *sections = &params->sections;
    int64_t i = (int64_t)pair;
    if (params->section_layout == ROPE_INTERLEAVED) {
        int64_t axis = i % 3;
        return (unsigned char)(i < 3 * sections->v[axis] ? axis : sections->n == 4 ? 3 : 0);
    }
    unsigned char axis = 0;
    while (i >= sections->v[axis]) {
        i -= sections->v[axis++];
    }
    return axis;
}

/* zeta_i = (2i/d + 0.4)/1.4 = (10i + 2d)/(7d). */
static int make_rates(const struct rope_plan *plan, struct pe_wide *rates, struct pe_error *err) {
    const struct pe_wide scale_base = pe_wide_of(plan->xpos.scale_base);
    struct pe_wide whole = pe_wide_of(14 * (double)plan->n_pairs);
    for (size_t i = 0; i < plan->n_pairs; i++) {
        if (i % RATES_TOGETHER == 0 && pe_error_poll(err)) {
            return err->code;
        }
        rates[i] = pe_wide_of(10 * (double)i + 4 * (double)plan->n_pairs);
        pe_wide_div(&rates[i], &rates[i], &whole);
        pe_wide_log(&rates[i], &rates[i]);
        pe_wide_div(&rates[i], &rates[i], &scale_base);
    }
    return PE_OK;
}

/* What lies behind the turns: lists of the scaling, rates of xPos, two numbers a pair of a replay, the
 * coordinates of the pairs, tables of the wave. */
static float *parts_place(struct rope_plan *plan, const struct rope *params) {
    char *after = (char *)(plan->turns + plan->n_pairs) + pe_rope_lists_bytes(params);
    if (params->xpos) {
        plan->rates = (struct pe_wide *)(void *)after;
        after = (char *)(plan->rates + plan->n_pairs);
    }
    float *replayed = (float *)(void *)after;
    plan->axis = (unsigned char *)(replayed + 2 * plan->n_pairs);
    return replayed;
}

/* One ladder for all pairs; which coordinate turns each, sections say. */
static int ladder_fill(struct rope_plan *plan, const struct rope *params, struct pe_error *err) {
    if (pe_rope_scaling_fill(plan, params, err)) {
        return err->code;
    }
    plan->axes = pe_rope_given(params, ROPE_SECTIONS) ? (int)params->sections.n : 1;
    for (size_t i = 0; i < plan->n_pairs; i++) {
        plan->axis[i] = plan->axes > 1 ? section_of(params, i) : 0;
    }
    return PE_OK;
}

/* One coordinate, no factors, and frequencies that kernels can take: none above a turn per position, and none 0. */
static bool is_fast(const struct rope_plan *plan) {
    if (plan->axes > 1 || plan->has_gain || plan->rates) {
        return false;
    }
    for (size_t i = 0; i < plan->n_pairs; i++) {
        if (plan->turns[i].exact.sign == 0 || pe_turn_is_slow(&plan->turns[i], false)) {
            return false;
        }
    }
    return true;
}

static void waves_open(struct rope_plan *plan) {
    size_t at = (size_t)((char *)(plan->axis + plan->n_pairs) - (char *)plan);
    at = (at + ROPE_ALIGNMENT - 1) / ROPE_ALIGNMENT * ROPE_ALIGNMENT;
    plan->is_fast = is_fast(plan);
    if (plan->is_fast) {
        pe_wave64_open(&plan->wave64, (char *)plan + at, plan->turns, plan->n_pairs);
        pe_wave_open(&plan->wave, (char *)plan + at + pe_wave64_bytes(plan->n_pairs), plan->turns,
                     plan->n_pairs, 0, false);
    }
}

int pe_rope_plan_fill(struct pe_plan_view *view, struct pe_error *err) {
    const struct rope *params = view->params;
    struct rope_plan *plan = view->data;
    plan->n_pairs = (size_t)pe_rope_width(params) / 2;
    float *replayed = parts_place(plan, params);
    for (int axis = 0; axis < ROPE_MAX_AXES; axis++) {
        plan->scale[axis] = 1;
        plan->divisor[axis] = 1;
    }
    if (ladder_fill(plan, params, err) || (params->xpos && make_rates(plan, plan->rates, err))) {
        return err->code;
    }
    if (params->rope_axes && pe_rope_axes_fill(plan, params, err)) {
        return err->code;
    }
    if (!pe_rope_exact(view)) {
        return pe_rope_replay_fill(plan, params, replayed, err);
    }
    for (size_t i = 0; i < plan->n_pairs; i++) {
        plan->n_slow += pe_turn_is_slow(&plan->turns[i], plan->has_gain || plan->rates);
    }
    waves_open(plan);
    return PE_OK;
}

struct pe_pairs pe_rope_pairs(const struct pe_plan_view *view) {
    const struct rope *params = view->params;
    const struct rope_plan *plan = view->data;
    bool halves = params->layout == ROPE_LAYOUT_HALVES;
    return (struct pe_pairs){.n = plan->n_pairs,
                             .step = halves ? 1 : 2,
                             .apart = halves ? plan->n_pairs : 1,
                             .factor = plan->gain.nearest};
}

int pe_rope_n_axes(const struct pe_plan_view *view) {
    return ((const struct rope_plan *)view->data)->axes;
}

size_t pe_rope_grid_size(const struct pe_plan_view *view, int axis) {
    const struct rope_axes *axes = ((const struct rope *)view->params)->rope_axes;
    return axes && (size_t)axis < axes->grid.n ? (size_t)axes->grid.v[axis] : 0;
}

/* ---- Angles -------------------------------------------------------------------------------------------- */

/* NULL stays NULL. */
static void *element(void *out, size_t i, enum pe_dtype dtype) {
    return out ? (char *)out + i * pe_dtype_size(dtype) : NULL;
}

static struct pe_phase_out out_from(const struct pe_angles *out, size_t i, enum pe_dtype dtype) {
    return (struct pe_phase_out){.sin = element(out->sin, i * out->step, dtype),
                                 .cos = element(out->cos, i * out->step, dtype),
                                 .step = out->step};
}

/* With xPos every pair has a gain of its own. */
static void grown_angles(const struct rope_plan *plan, const struct pe_place *place,
                         const struct pe_spot *spot, enum pe_dtype dtype, const struct pe_angles *out) {
    struct pe_wide x = pe_wide_of(spot->position[0]), center = pe_wide_of(plan->xpos.center);
    pe_wide_sub(&x, &x, &center);
    x.sign = spot->keys ? -x.sign : x.sign;
    for (size_t i = 0; i < out->n; i++) {
        struct pe_gain gain;
        struct pe_phase_out one = out_from(out, i, dtype);
        pe_gain_power(&gain, &plan->rates[out->first + i], &x);
        one.gain = &gain;
        pe_phase_row(place, &plan->turns[out->first + i], 1, dtype, &one);
    }
}

/* All pairs in float32, in pieces: sines and cosines go where they like, or nowhere. */
static void fast_angles(const struct rope_plan *plan, const struct pe_place *place,
                        const struct pe_angles *out) {
    float sin[FAST_PAIRS], cos[FAST_PAIRS], *to_sin = out->sin, *to_cos = out->cos;
    for (size_t first = 0, n; first < out->n; first += n) {
        n = out->n - first < FAST_PAIRS ? out->n - first : FAST_PAIRS;
        const struct pe_wave part = pe_wave_part(&plan->wave, first, n);
        pe_wave_row(&part, place,
                    &(struct pe_wave_out){.sin = sin, .cos = cos, .step = 1, .n_sin = n, .n_cos = n});
        for (size_t i = 0; to_sin && i < n; i++) {
            to_sin[(first + i) * out->step] = sin[i];
        }
        for (size_t i = 0; to_cos && i < n; i++) {
            to_cos[(first + i) * out->step] = cos[i];
        }
    }
}

/* Pairs in float64 at a whole x, likewise. Pieces begin where groups do, as that is what kernels take. */
static void fast_angles64(const struct rope_plan *plan, int64_t x, const struct pe_angles *out) {
    double sin[FAST_PAIRS], cos[FAST_PAIRS], *to_sin = out->sin, *to_cos = out->cos;
    for (size_t first = out->first, end = first + out->n; first < end;) {
        const size_t group = first / PE_WAVE64_LANES * PE_WAVE64_LANES;
        const size_t stop = end - group < FAST_PAIRS ? end : group + FAST_PAIRS;
        pe_wave64_run(&plan->wave64, x, 1,
                      &(struct pe_wave64_out){cos, sin, group, stop - group, FAST_PAIRS});
        for (; first < stop; first++) {
            const size_t to = (first - out->first) * out->step;
            if (to_sin) {
                to_sin[to] = sin[first - group];
            }
            if (to_cos) {
                to_cos[to] = cos[first - group];
            }
        }
    }
}

/* Runs of pairs that one coordinate turns. */
static void plain_angles(const struct pe_plan_view *view, const struct pe_place *places, enum pe_dtype dtype,
                         const struct pe_angles *out) {
    const struct rope_plan *plan = view->data;
    const unsigned char *axis = plan->axis + out->first;
    for (size_t i = 0, n; i < out->n; i += n) {
        struct pe_phase_out run = out_from(out, i, dtype);
        run.gain = plan->has_gain ? &plan->gain : NULL;
        n = 1;
        while (i + n < out->n && axis[i + n] == axis[i]) {
            n++;
        }
        const struct pe_place *place = &places[axis[i]];
        if (pe_rope_exact(view)) {
            pe_phase_row(place, plan->turns + out->first + i, n, dtype, &run);
        } else {
            pe_replay_row(&plan->replay, place->scale * place->position, out->first + i, n, dtype, &run);
        }
    }
}

void pe_rope_angles(const struct pe_plan_view *view, const struct pe_spot *spot, enum pe_dtype dtype,
                    const struct pe_angles *out) {
    const struct rope *params = view->params;
    const struct rope_plan *plan = view->data;
    double sign = params->direction == ROPE_CLOCKWISE ? -1 : 1;
    struct pe_place places[ROPE_MAX_AXES];
    for (int axis = 0; axis < plan->axes; axis++) {
        double position = spot->position[spot->axes == 1 ? 0 : axis];
        pe_place_of(&places[axis], position, sign * plan->scale[axis], sign * plan->offset[axis]);
    }
    int64_t x;
    if (plan->is_fast && dtype == PE_DTYPE_F64 && pe_wave64_takes(&places[0], &x)) {
        fast_angles64(plan, x, out);
    } else if (plan->is_fast && dtype == PE_DTYPE_F32 && out->first == 0) {
        fast_angles(plan, &places[0], out);
    } else if (plan->rates) {
        grown_angles(plan, &places[0], spot, dtype, out);
    } else {
        plain_angles(view, places, dtype, out);
    }
}

/* Is it a whole x that the kernels take? */
static bool takes(const struct pe_plan_view *view, double position, int64_t *x) {
    const struct rope_plan *plan = view->data;
    double sign = ((const struct rope *)view->params)->direction == ROPE_CLOCKWISE ? -1 : 1;
    struct pe_place place;
    if (!plan->is_fast) {
        return false;
    }
    pe_place_of(&place, position, sign * plan->scale[0], sign * plan->offset[0]);
    return pe_wave64_takes(&place, x);
}

void pe_rope_angles_rows(const struct pe_plan_view *view, const struct pe_spot *spots, size_t n,
                         const struct pe_angles_rows *out) {
    const struct rope_plan *plan = view->data;
    struct pe_spot spot = *spots;
    for (size_t row = 0, rows; row < n; row += rows) {
        double *cos = out->cos + row * out->stride, *sin = out->sin + row * out->stride;
        int64_t x, next;
        spot.position = spots->position + row * (size_t)spots->axes;
        rows = 1;
        if (!takes(view, *spot.position, &x)) {
            struct pe_angles one = {.first = out->first, .n = out->n, .cos = cos, .sin = sin, .step = 1};
            pe_rope_angles(view, &spot, PE_DTYPE_F64, &one);
            continue;
        }
        while (row + rows < n && (x + (int64_t)rows) % PE_WAVE64_ROWS != 0 &&
               takes(view, spot.position[rows], &next) && next == x + (int64_t)rows) {
            rows++;
        }
        pe_wave64_run(&plan->wave64, x, rows,
                      &(struct pe_wave64_out){cos, sin, out->first, out->n, out->stride});
    }
}

/* A pair as the point on its circle: cos at its first column, sin at its second, and 0 where nothing turns.
 * Turned by k positions, it is the point k positions on, which is what `shift` is about. */
void pe_rope_encode(const struct pe_plan_view *view, const double *positions, size_t n, enum pe_dtype dtype,
                    void *out) {
    const struct pe_pairs columns = pe_rope_pairs(view);
    size_t row_bytes = view->width * pe_dtype_size(dtype);
    memset(out, 0, n * row_bytes);
    for (size_t i = 0; i < n; i++) {
        char *row = (char *)out + i * row_bytes;
        struct pe_spot spot = {.position = positions + i, .axes = 1};
        struct pe_angles both = {.n = columns.n,
                                 .cos = element(row, columns.first, dtype),
                                 .sin = element(row, columns.first + columns.apart, dtype),
                                 .step = columns.step};
        pe_rope_angles(view, &spot, dtype, &both);
    }
}

size_t pe_rope_shift_pairs(const struct pe_plan_view *view) {
    return ((const struct rope_plan *)view->data)->n_pairs;
}

void pe_rope_shift(const struct pe_plan_view *view, double distance, size_t pair, double m[4],
                   size_t columns[2]) {
    const struct rope *params = view->params;
    const struct rope_plan *plan = view->data;
    const struct pe_pairs all = pe_rope_pairs(view);
    double sign = params->direction == ROPE_CLOCKWISE ? -1 : 1;
    struct pe_place place;
    columns[0] = all.first + pair * all.step;
    columns[1] = columns[0] + all.apart;
    pe_place_of(&place, distance, sign * plan->scale[plan->axis[pair]], 0);
    struct pe_phase_out out = {&m[2], &m[0], 1, NULL};
    struct pe_gain gain;
    if (plan->rates) { /* xPos: on by k is also smaller by zeta^k */
        struct pe_wide x = pe_wide_of(distance);
        if (fabs(pe_wide_double(&plan->rates[pair]) * distance) > log(GROWTH_MOST)) {
            m[0] = m[1] = m[2] = m[3] = INFINITY;
            return;
        }
        pe_gain_power(&gain, &plan->rates[pair], &x);
        out.gain = &gain;
    }
    pe_phase_row(&place, &plan->turns[pair], 1, PE_DTYPE_F64, &out);
    m[3] = m[0];
    m[1] = -m[2];
}

void pe_rope_frequencies(const struct pe_plan_view *view, enum pe_dtype dtype, void *out) {
    const struct rope_plan *plan = view->data;
    if (!pe_rope_exact(view)) {
        pe_replay_rates(&plan->replay, dtype, out);
        return;
    }
    for (size_t i = 0; i < plan->n_pairs; i++) {
        struct pe_turn turn = plan->turns[i];
        pe_wide_mul_small(&turn.exact, &turn.exact, plan->divisor[plan->axis[i]]);
        pe_turn_frequency(&turn, dtype, element(out, i, dtype));
    }
}
