/* SPDX-License-Identifier: MIT
 *
 * rope over the axes of an image: each of n axes turns its share of the pairs, axis after axis, by its own
 * coordinate. With m = rotary_dim/2/n pairs for an axis and j < m, the angle per unit of coordinate is
 *
 *     language   base^(-j/m)                              Qwen2-VL's images, rotary-embedding-torch (lang)
 *     shared     base^(-(n*j + axis)/(n*m))               Pixtral: each axis takes every n-th rung of one
 *     pixel      pi * (1 + j*(max_freq/2 - 1)/(m - 1))    rotary-embedding-torch (pixel), EVA in timm
 *     period     2*pi * base^(-j/m)                       DINOv3, with base 100
 *
 * and the coordinate of row or column p out of N, for which the grid has to be known but for the first,
 *
 *     positions      p
 *     unit           -1 + 2p/(N-1)                  from -1 to 1, as torch.linspace(-1, 1, N)
 *     centered       (2p + 1)/N - 1                 the middle of a patch; DINOv3's normalize_coords separate
 *     centered_max   (2p + 1)/max(grid) - 1         ... max
 *     centered_min   (2p + 1)/min(grid) - 1         ... min
 *
 * The division by N goes into the turns, which are wide; what is left of a coordinate is whole.
 */
#include "encodings/rope.h"

#include <stdio.h>

#define RUNGS_TOGETHER 128 /* between two questions whether to stop: under a millisecond */

enum { FREQUENCIES_LANGUAGE = 1, FREQUENCIES_SHARED, FREQUENCIES_PIXEL, FREQUENCIES_PERIOD };
enum { COORDINATES_POSITIONS = 1, COORDINATES_UNIT, COORDINATES_CENTERED, COORDINATES_MAX, COORDINATES_MIN };

static const struct pe_choice frequencies[] = {
    {"language", FREQUENCIES_LANGUAGE, "a ladder for each axis: Qwen2-VL's image tower"},
    {"shared", FREQUENCIES_SHARED, "one ladder, of which each axis takes every n-th rung: Pixtral"},
    {"pixel", FREQUENCIES_PIXEL, "evenly spaced from pi to pi*max_freq/2: rotary-embedding-torch, EVA"},
    {"period", FREQUENCIES_PERIOD, "whole turns with periods from 1 towards base: DINOv3, base 100"},
    {NULL, 0, NULL}};
static const struct pe_choice coordinates[] = {
    {"positions", COORDINATES_POSITIONS, "the positions as they are"},
    {"unit", COORDINATES_UNIT, "from -1 to 1, the ends included"},
    {"centered", COORDINATES_CENTERED, "middles of patches between -1 and 1, each axis for itself"},
    {"centered_max", COORDINATES_MAX, "the same by the longest axis"},
    {"centered_min", COORDINATES_MIN, "the same by the shortest axis"},
    {NULL, 0, NULL}};

enum { FIELD_N_AXES, FIELD_FREQUENCIES, FIELD_COORDINATES, FIELD_MAX_FREQ, FIELD_GRID };

const struct pe_field pe_rope_axes_fields[ROPE_AXES_N_FIELDS] = {
    [FIELD_N_AXES] = {PE_FIELD(rope_axes, n_axes), .min = 2, .max = ROPE_MAX_AXES, .def = "2",
                      .doc = "Coordinates of a position."},
    [FIELD_FREQUENCIES] = {PE_FIELD(rope_axes, frequencies), .choices = frequencies,
                           .flags = PE_FIELD_REQUIRED, .doc = "The angles per unit of coordinate."},
    [FIELD_COORDINATES] = {PE_FIELD(rope_axes, coordinates), .choices = coordinates, .def = "positions",
                           .doc = "What turns: positions, or where they lie in the grid."},
    [FIELD_MAX_FREQ] = {PE_FIELD(rope_axes, max_freq), .min = 2, .max = 1e9,
                        .doc = "Of pixel frequencies: the highest is pi*max_freq/2 [10]."},
    [FIELD_GRID] = {PE_FIELD(rope_axes, grid), .min = 1, .max = 16777216,
                    .doc = "Size of each axis, as [height, width], for coordinates other than positions."},
};

bool pe_rope_axes_use_base(const struct rope_axes *axes) {
    return axes->frequencies != FREQUENCIES_PIXEL;
}

int pe_rope_axes_check(const struct rope *params, struct pe_error *err) {
    const struct rope_axes *axes = params->rope_axes;
    int64_t pairs = pe_rope_width(params) / 2;
    bool grid = axes->given >> FIELD_GRID & 1, wanted = axes->coordinates > COORDINATES_POSITIONS;
    if (pairs % axes->n_axes != 0) {
        return pe_fail(err, PE_ERR_RANGE, "rope_axes.n_axes", "is %lld, which does not divide the %lld pairs",
                       (long long)axes->n_axes, (long long)pairs);
    }
    if (wanted && !grid) {
        return pe_fail(err, PE_ERR_MISSING, "rope_axes.grid", "is missing, coordinates %s need it",
                       pe_choice_name(coordinates, axes->coordinates));
    }
    if (grid && (!wanted || axes->grid.n != (size_t)axes->n_axes)) {
        return pe_fail(err, wanted ? PE_ERR_SHAPE : PE_ERR_UNKNOWN_FIELD, "rope_axes.grid",
                       wanted ? "must have a size for each of n_axes"
                              : "coordinates positions do not use it");
    }
    if ((axes->given >> FIELD_MAX_FREQ & 1) && axes->frequencies != FREQUENCIES_PIXEL) {
        return pe_fail(err, PE_ERR_UNKNOWN_FIELD, "rope_axes.max_freq", "frequencies %s do not use it",
                       pe_choice_name(frequencies, axes->frequencies));
    }
    if (pe_rope_given(params, ROPE_BASE) && !pe_rope_axes_use_base(axes)) {
        return pe_fail(err, PE_ERR_CONFLICT, "base", "is there, but frequencies %s do not use it",
                       pe_choice_name(frequencies, axes->frequencies));
    }
    return PE_OK;
}

void pe_rope_axes_resolve(struct rope_axes *axes) {
    if (axes->frequencies == FREQUENCIES_PIXEL && !(axes->given >> FIELD_MAX_FREQ & 1)) {
        axes->max_freq = 10;
        axes->given |= UINT64_C(1) << FIELD_MAX_FREQ;
    }
}

/* ---- Coordinates --------------------------------------------------------------------------------------- */

/* What 2p + offset is divided by. */
static int64_t divisor_of(const struct rope_axes *axes, int axis) {
    int64_t size = axes->grid.v[axis];
    for (size_t i = 0; i < axes->grid.n; i++) {
        int64_t other = axes->grid.v[i];
        bool takes = axes->coordinates == COORDINATES_MAX
                         ? other > size
                         : axes->coordinates == COORDINATES_MIN && other < size;
        size = takes ? other : size;
    }
    return axes->coordinates == COORDINATES_UNIT ? size - 1 : size;
}

/* Sets scale and offset of an axis; returns what coordinates are divided by. */
static uint32_t place_axis(struct rope_plan *plan, int axis) {
    const struct rope_axes *axes = &plan->rope_axes;
    plan->scale[axis] = 1;
    plan->offset[axis] = 0;
    if (axes->coordinates == COORDINATES_POSITIONS) {
        return 1;
    }
    int64_t divisor = divisor_of(axes, axis);
    if (divisor == 0) { /* a unit axis of one point, at -1 */
        plan->scale[axis] = 0;
        plan->offset[axis] = -1;
        return 1;
    }
    plan->scale[axis] = 2;
    plan->offset[axis] = (double)((axes->coordinates == COORDINATES_UNIT ? 0 : 1) - divisor);
    return (uint32_t)divisor;
}

/* ---- Frequencies --------------------------------------------------------------------------------------- */

/* Half of 1 + j*(max_freq/2 - 1)/(m - 1), in turns. */
static struct pe_wide pixel_turns(double max_freq, size_t j, size_t m) {
    const struct pe_wide one = pe_wide_of(1);
    struct pe_wide turns = pe_wide_of((max_freq - 2) / 2); /* exact: halves, and at most 2^30 */
    pe_wide_mul_small(&turns, &turns, (uint32_t)j);
    pe_wide_div_small(&turns, &turns, m > 1 ? (uint32_t)m - 1 : 1);
    pe_wide_add(&turns, &turns, &one);
    turns.exponent--;
    return turns;
}

static int fill_axis(struct rope_plan *plan, const struct rope *params, int axis, struct pe_error *err) {
    const struct rope_axes *axes = &plan->rope_axes;
    uint32_t n = (uint32_t)axes->n_axes, m = (uint32_t)plan->n_pairs / n;
    uint32_t divisor = plan->divisor[axis] = place_axis(plan, axis);
    bool shared = axes->frequencies == FREQUENCIES_SHARED;
    struct pe_ladder ladder;
    pe_ladder_start(&ladder, pe_rope_base(params), 1, shared ? n * m : m);
    if (axes->frequencies == FREQUENCIES_PERIOD) {
        ladder.turns = pe_wide_of(1);
    }
    for (int i = 0; i < (shared ? axis : 0); i++) {
        pe_ladder_next(&ladder);
    }
    for (uint32_t j = 0; j < m; j++) {
        if (j % RUNGS_TOGETHER == 0 && pe_error_poll(err)) {
            return err->code;
        }
        struct pe_wide turns =
            axes->frequencies == FREQUENCIES_PIXEL ? pixel_turns(axes->max_freq, j, m) : ladder.turns;
        pe_wide_div_small(&turns, &turns, divisor);
        pe_turn_of(&plan->turns[(uint32_t)axis * m + j], &turns);
        plan->axis[(uint32_t)axis * m + j] = (unsigned char)axis;
        for (uint32_t i = 0; i < (shared ? n : 1); i++) {
            pe_ladder_next(&ladder);
        }
    }
    return PE_OK;
}

int pe_rope_axes_fill(struct rope_plan *plan, const struct rope *params, struct pe_error *err) {
    plan->axes = (int)plan->rope_axes.n_axes;
    plan->base_used = pe_rope_axes_use_base(&plan->rope_axes) ? plan->base_used : 0;
    for (int axis = 0; axis < plan->axes; axis++) {
        if (fill_axis(plan, params, axis, err)) {
            return err->code;
        }
    }
    return PE_OK;
}
