/* SPDX-License-Identifier: MIT
 *
 * The embedding of a diffusion model's time, in the words of diffusers' get_timestep_embedding: with
 * h = floor(d_model/2) frequencies,
 *
 *     sin(position_scale * t * omega_i) [h], cos(position_scale * t * omega_i) [h], a zero where d_model is odd
 *     omega_i = max_period^(-i/(h - downscale_freq_shift)), omega_0 = 1 always
 *
 * position_scale is called scale there; flip_sin_to_cos puts the cosines first. DDPM: shift 1, sines first.
 * GLIDE, DiT, ADM: shift 0, cosines first, as Stable Diffusion. A time in [0, 1] moves hardly any column of a
 * ladder down to 1/10000: then position_scale is 1000 (SiT, REPA), or the model sees nearly the same vector
 * at all times.
 *
 * It is `sinusoidal` under other names, but for shifts that it has not: these names are what the settings of
 * such models have.
 */
#include "core/ladder.h"
#include "encodings/encoding.h"

#include <math.h>
#include <string.h>

struct timestep {
    uint64_t given;
    int64_t d_model;
    int64_t downscale_freq_shift;
    bool flip_sin_to_cos;
    double position_scale, max_period;
};

static const struct pe_field fields[] = {
    {PE_FIELD(timestep, d_model), .min = 1, .max = 65536, .flags = PE_FIELD_REQUIRED | PE_FIELD_WIDTH,
     .alias = "embedding_dim num_channels", .doc = "Width of a vector."},
    {PE_FIELD(timestep, downscale_freq_shift), .min = 0, .max = 32767, .def = "1", .alias = "freq_shift",
     .doc = "Exponents are i/(d_model/2 - this): 1 for DDPM, 0 for GLIDE, DiT and Stable Diffusion."},
    {PE_FIELD(timestep, flip_sin_to_cos), .def = "false", .doc = "Cosines first."},
    {PE_FIELD(timestep, position_scale), .min = -PE_POSITION_MAX, .max = PE_POSITION_MAX, .def = "1",
     .alias = "scale",
     .doc = "Times are multiplied by this, without rounding; not 0. 1000 for times in [0, 1], which alone "
            "would hardly move the vectors."},
    {PE_FIELD(timestep, max_period), .min = 1, .max = 1e300, .def = "10000",
     .doc = "Base of the frequencies, which run from 1 down towards 1/max_period."},
};

struct plan {
    size_t half;
    struct pe_turn turns[];
};

static size_t half_of(const struct timestep *timestep) {
    return (size_t)timestep->d_model / 2;
}

static int check(const void *params, struct pe_error *err) {
    const struct timestep *timestep = params;
    int64_t half = timestep->d_model / 2;
    if (timestep->position_scale == 0) {
        return pe_fail(err, PE_ERR_RANGE, "position_scale",
                       "is 0, must not be: every time would be the same");
    }
    if (half > 1 && timestep->downscale_freq_shift >= half) {
        return pe_fail(err, PE_ERR_RANGE, "downscale_freq_shift",
                       "is %lld, must be below the %lld frequencies of d_model",
                       (long long)timestep->downscale_freq_shift, (long long)half);
    }
    return PE_OK;
}

static size_t width(const void *params) {
    return (size_t)((const struct timestep *)params)->d_model;
}

static size_t plan_bytes(const void *params) {
    return sizeof(struct plan) + half_of(params) * sizeof(struct pe_turn);
}

static int make_plan(struct pe_plan_view *view, struct pe_error *err) {
    const struct timestep *timestep = view->params;
    struct plan *plan = view->data;
    (void)err;
    plan->half = half_of(timestep);
    bool several = plan->half > 1;
    uint32_t down = several ? (uint32_t)((int64_t)plan->half - timestep->downscale_freq_shift) : 1;
    pe_ladder_fill(plan->turns, plan->half, timestep->max_period, several, down);
    return PE_OK;
}

static void encode(const struct pe_plan_view *view, const double *positions, size_t n, enum pe_dtype dtype,
                   void *out) {
    const struct timestep *timestep = view->params;
    const struct plan *plan = view->data;
    size_t size = pe_dtype_size(dtype), used = 2 * plan->half;
    for (size_t i = 0; i < n; i++) {
        char *row = (char *)out + i * view->width * size, *second = row + plan->half * size;
        struct pe_place place;
        pe_place_of(&place, positions[i], timestep->position_scale, 0);
        struct pe_phase_out values = {.sin = timestep->flip_sin_to_cos ? second : row,
                                      .cos = timestep->flip_sin_to_cos ? row : second,
                                      .step = 1};
        pe_phase_row(&place, plan->turns, plan->half, dtype, &values);
        memset(row + used * size, 0, (view->width - used) * size);
    }
}

static size_t shift_pairs(const struct pe_plan_view *view) {
    return ((const struct plan *)view->data)->half;
}

static void shift(const struct pe_plan_view *view, double distance, size_t pair, double m[4],
                  size_t columns[2]) {
    const struct timestep *timestep = view->params;
    const struct plan *plan = view->data;
    pe_turn_shift(&plan->turns[pair], distance, timestep->position_scale, timestep->flip_sin_to_cos, m);
    columns[0] = pair;
    columns[1] = plan->half + pair;
}

static double fastest(const struct pe_plan_view *view) {
    return fabs(((const struct timestep *)view->params)->position_scale);
}

static double row_cost_ns(const struct pe_plan_view *view, enum pe_dtype dtype) {
    (void)dtype;
    return 60 + 12 * (double)view->width;
}

const struct pe_encoding pe_timestep = {
    .info = {.type = "timestep",
             .title = "Diffusion timestep",
             .doc = "Sines and cosines of a diffusion model's time, with the parameters that diffusers has.",
             .reference = "Ho et al. 2020, Denoising Diffusion Probabilistic Models; diffusers, "
                          "get_timestep_embedding",
             .family = PE_FAMILY_ABSOLUTE,
             .params_size = sizeof(struct timestep),
             .fields = fields,
             .n_fields = PE_COUNT(fields)},
    .check = check,
    .width = width,
    .plan_bytes = plan_bytes,
    .plan = make_plan,
    .encode = encode,
    .shift_pairs = shift_pairs,
    .shift = shift,
    .fastest = fastest,
    .row_cost_ns = row_cost_ns,
};
