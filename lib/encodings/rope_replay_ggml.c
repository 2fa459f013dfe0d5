/* SPDX-License-Identifier: MIT
 *
 * Scalings of rope in the float32 steps of ggml (ggml_rope_cache_init, ggml_rope_yarn_corr_dims) and of
 * llama.cpp, which turns a model's configuration into ggml's arguments. All operations are float, each rounds
 * once; core/replay.c has the running product. f = factor, L = original_max_position_embeddings:
 *
 *     linear         freq_scale = 1/f
 *     ntk            the base is that of transformers, as one gives it to llama.cpp by hand
 *     proportional   freq_scale = 1/f; freq_factors 1 for the pairs that turn, 1e30 beyond, which the
 *                    converter stores beside the weights
 *     yarn           freq_scale = 1/f, ext_factor = 1, attn_factor = m/(1 + 0.1*ln(1/freq_scale)),
 *                    m = 1 where mscale and mscale_all_dim are the same, else 1 + 0.1*ln(1/freq_scale),
 *                    and 1 for f <= 1
 *     longrope       freq_factors = the list; attn_factor = transformers' attention factor
 *     llama3         freq_factors 1, f, or 1/((1-s)/f + s), of the converter
 *     ggml           the arguments themselves
 *
 * With ext_factor e not 0: low = floor(d*ln(L/(beta_fast*2*pi))/(2*ln(base))), high = ceil(the same of
 * beta_slow), within 0 and d-1; a part m_i = (1 - clamp((i - low)/max(0.001, high - low)))*e of each angle is
 * not scaled, and sines and cosines are times attn_factor*(1 + 0.1*ln(1/freq_scale)).
 */
#include "encodings/rope.h"

#include <math.h>

#define STANDS 1e30f /* the divisor of a pair that does not turn */

/* ggml's arguments, but those of core/replay.h. */
struct arguments {
    float ext_factor, attn_factor;
    bool has_ext;
};

/* ---- YaRN ---------------------------------------------------------------------------------------------- */

/* 1 + 0.1*ln(1/freq_scale) */
static float magnitude(float freq_scale) {
    float inverse = 1 / freq_scale;
    float part = 0.1f * pe_replay_log(inverse);
    return 1 + part;
}

static float corr_dim(const struct rope *params, const struct rope_scaling *scaling, double beta) {
    float turns = (float)beta * 2;
    float circle = turns * (float)3.14159265358979323846;
    float share = (float)scaling->original_max_position_embeddings / circle;
    float above = (float)pe_rope_width(params) * pe_replay_log(share);
    float below = 2 * pe_replay_log((float)pe_rope_base(params));
    return above / below;
}

/* The part of each angle that is not scaled. */
static void mix_fill(const struct rope_plan *plan, const struct rope *params, float ext_factor, float *mix) {
    const struct rope_scaling *scaling = params->scaling;
    float last = (float)(pe_rope_width(params) - 1);
    float low = floorf(corr_dim(params, scaling, scaling->beta_fast));
    float high = ceilf(corr_dim(params, scaling, scaling->beta_slow));
    low = low > 0 ? low : 0;
    high = high < last ? high : last;
    float width = high - low;
    width = width > 0.001f ? width : 0.001f;
    for (size_t i = 0; i < plan->n_pairs; i++) {
        float above = (float)i - low;
        float ramp = above / width;
        ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
        float rest = 1 - ramp;
        mix[i] = rest * ext_factor;
    }
}

/* ---- The arguments ------------------------------------------------------------------------------------- */

static int linear_arguments(struct rope_plan *plan, const struct rope *params, struct arguments *out,
                            struct pe_error *err) {
    (void)out, (void)err;
    plan->replay.stretch = 1 / (float)((const struct rope_scaling *)params->scaling)->factor;
    return PE_OK;
}

static int proportional_arguments(struct rope_plan *plan, const struct rope *params, struct arguments *out,
                                  struct pe_error *err) {
    for (size_t i = pe_rope_scaling_turning(params, params->scaling); i < plan->n_pairs; i++) {
        plan->replay.rates[i] = STANDS;
    }
    return linear_arguments(plan, params, out, err);
}

static int yarn_arguments(struct rope_plan *plan, const struct rope *params, struct arguments *out,
                          struct pe_error *err) {
    const struct rope_scaling *scaling = params->scaling;
    linear_arguments(plan, params, out, err);
    float own = magnitude(plan->replay.stretch), factor = 1 / plan->replay.stretch;
    float wanted = scaling->mscale_all_dim != 0 || factor <= 1 ? 1 : own;
    float inverse = 1 / own;
    *out = (struct arguments){.has_ext = true, .ext_factor = 1, .attn_factor = wanted * inverse};
    return PE_OK;
}

static int longrope_arguments(struct rope_plan *plan, const struct rope *params, struct arguments *out,
                              struct pe_error *err) {
    const struct pe_tensor *list = pe_rope_scaling_list(params, params->scaling);
    (void)err;
    for (size_t i = 0; i < plan->n_pairs; i++) {
        plan->replay.rates[i] = (float)pe_rope_scaling_number(list, i);
    }
    out->attn_factor = (float)plan->gain.nearest;
    return PE_OK;
}

static float llama3_divisor(const struct rope_scaling *scaling, float rate) {
    float s = 0, factor = (float)scaling->factor;
    enum pe_rope_band band = pe_rope_llama3_band(scaling, rate, &s);
    if (band != ROPE_BAND_BETWEEN) {
        return band == ROPE_BAND_KEEP ? 1 : factor;
    }
    float rest = 1 - s;
    float low = rest / factor;
    float sum = low + s;
    return 1 / sum;
}

/* The converter computes the frequencies by themselves first. */
static int llama3_arguments(struct rope_plan *plan, const struct rope *params, struct arguments *out,
                            struct pe_error *err) {
    const struct pe_replay_ladder ladder = pe_rope_replay_ladder(params);
    float *rates = plan->replay.rates;
    struct pe_replay converter;
    (void)out;
    if (pe_replay_open(&converter, PE_ARITHMETIC_FLOAT32_POW, rates, plan->n_pairs, &ladder, err)) {
        return err->code;
    }
    for (size_t i = 0; i < plan->n_pairs; i++) {
        rates[i] = llama3_divisor(params->scaling, rates[i]);
    }
    return PE_OK;
}

static int ggml_arguments(struct rope_plan *plan, const struct rope *params, struct arguments *out,
                          struct pe_error *err) {
    const struct rope_scaling *scaling = params->scaling;
    (void)err;
    plan->replay.stretch = (float)scaling->freq_scale;
    for (size_t i = 0; i < plan->n_pairs && scaling->freq_factors; i++) {
        plan->replay.rates[i] = (float)pe_rope_scaling_number(scaling->freq_factors, i);
    }
    *out = (struct arguments){.has_ext = (float)scaling->ext_factor != 0,
                              .ext_factor = (float)scaling->ext_factor,
                              .attn_factor = (float)scaling->attn_factor};
    return PE_OK;
}

typedef int arguments_function(struct rope_plan *plan, const struct rope *params, struct arguments *out,
                               struct pe_error *err);
ROPE_TYPES_KNOWN(10);

/* NULL: none but the base. */
static arguments_function *const rows[ROPE_TYPE_COUNT] = {
    [ROPE_TYPE_LINEAR] = linear_arguments, [ROPE_TYPE_PROPORTIONAL] = proportional_arguments,
    [ROPE_TYPE_YARN] = yarn_arguments,     [ROPE_TYPE_LONGROPE] = longrope_arguments,
    [ROPE_TYPE_LLAMA3] = llama3_arguments, [ROPE_TYPE_GGML] = ggml_arguments,
};

/* ---- Checking ------------------------------------------------------------------------------------------ */

/* What YaRN may say that ggml's code does not take. */
static int yarn_check(const struct rope_scaling *scaling, struct pe_error *err) {
    if (pe_rope_scaling_has(scaling, ROPE_KEY_TRUNCATE) && !scaling->truncate) {
        return pe_fail(err, PE_ERR_UNSUPPORTED, "scaling.truncate",
                       "is false, but ggml rounds the ends of the ramp, always");
    }
    if (pe_rope_scaling_has(scaling, ROPE_KEY_ATTENTION)) {
        return pe_fail(err, PE_ERR_UNSUPPORTED, "scaling.attention_factor",
                       "is not what ggml takes: give the field ggml with attn_factor in place of scaling");
    }
    if (magnitude(1 / (float)scaling->factor) == 0) {
        return pe_fail(err, PE_ERR_RANGE, "scaling.factor",
                       "is %.17g, of which 1 + 0.1*ln(factor), by which ggml divides, is 0 in float32",
                       scaling->factor);
    }
    if (scaling->mscale != scaling->mscale_all_dim) {
        return pe_fail(err, PE_ERR_UNSUPPORTED, "scaling.mscale_all_dim",
                       "is %g, with arithmetic ggml it must be the same as mscale, %g",
                       scaling->mscale_all_dim, scaling->mscale);
    }
    return PE_OK;
}

#define BETA_LEAST 1e-20 /* 2^53/(2*pi*beta) is still a float */

/* What float32 would divide by zero, or make infinite. */
static int mix_check(const struct rope *params, const struct rope_scaling *scaling, struct pe_error *err) {
    if ((float)pe_rope_base(params) <= 1) {
        return pe_fail(err, PE_ERR_RANGE, "base",
                       "is %.17g, which is 1 in float32: all wavelengths are the same", pe_rope_base(params));
    }
    for (int slow = 0; slow < 2; slow++) {
        bool given = pe_rope_scaling_has(scaling, slow ? ROPE_KEY_BETA_SLOW : ROPE_KEY_BETA_FAST);
        double beta = slow ? scaling->beta_slow : scaling->beta_fast;
        if (given && beta < BETA_LEAST) {
            return pe_fail(err, PE_ERR_RANGE, slow ? "scaling.beta_slow" : "scaling.beta_fast",
                           "is %g, with arithmetic ggml it must be at least %g", beta, BETA_LEAST);
        }
    }
    return PE_OK;
}

int pe_rope_replay_ggml_check(const struct rope *params, struct pe_error *err) {
    const struct rope_scaling *scaling = params->scaling;
    bool yarn = scaling && scaling->rope_type == ROPE_TYPE_YARN;
    bool mixes = yarn || (scaling && scaling->rope_type == ROPE_TYPE_GGML && scaling->ext_factor != 0);
    return (mixes && mix_check(params, scaling, err)) || (yarn && yarn_check(scaling, err)) ? err->code
                                                                                            : PE_OK;
}

/* ---- The plan ------------------------------------------------------------------------------------------ */

int pe_rope_replay_ggml(struct rope_plan *plan, const struct rope *params, float *rates,
                        struct pe_error *err) {
    const struct pe_replay_ladder ladder = pe_rope_replay_ladder(params);
    const struct rope_scaling *scaling = params->scaling;
    struct arguments arguments = {.attn_factor = 1};
    struct pe_replay *replay = &plan->replay;
    arguments_function *row = rows[scaling ? scaling->rope_type : ROPE_TYPE_DEFAULT];
    if (pe_replay_open(replay, PE_ARITHMETIC_GGML, rates, plan->n_pairs, &ladder, err) ||
        (row && row(plan, params, &arguments, err))) {
        return err->code;
    }
    replay->gain = arguments.attn_factor;
    if (arguments.has_ext) {
        float *mix = rates + plan->n_pairs;
        mix_fill(plan, params, arguments.ext_factor, mix);
        replay->mix = mix;
        replay->gain = arguments.attn_factor * magnitude(replay->stretch);
    }
    return PE_OK;
}
