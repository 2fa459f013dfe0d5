/* SPDX-License-Identifier: MIT
 *
 * Scalings of rope in the float32 steps of deployed code, one row a type: those of transformers
 * (modeling_rope_utils.py); ggml's own are in rope_replay_ggml.c. fl is left out: every operation rounds
 * once, and numbers of the configuration, which are doubles there, are rounded to float32 where they meet a
 * tensor. p_i = base^(2i/d), w_i = 1/p_i, f = factor, L = original_max_position_embeddings:
 *
 *     linear         w / f
 *     ntk            the base is base*f^(d/(d-2)), in doubles
 *     dynamic        up to L the base is base*(f*L/L - (f-1))^(d/(d-2)), in doubles; beyond it seq_len is a
 *                    tensor, and so all of base*((f*seq_len)/L - (f-1))^(d/(d-2)) is float32, with f-1
 *                    rounded; but one number is raised to a double's power in doubles
 *     proportional   (1/base^(2i/head_dim))/f for the pairs that turn, 0 beyond
 *     yarn           r = clamp((i - low)/(high - low)), e = 1 - r, (1/(f*p))*(1 - e) + (1/p)*e; low and high
 *                    and their difference are doubles
 *     longrope       1/(factor_i * p)
 *     llama3         l = (1/w)*(2 pi); w/f where l > L/low; where neither that nor l < L/high:
 *                    s = ((1/l)*L - low)/(high - low), ((1-s)*w)/f + s*w
 *
 * (1/w)*(2 pi) and (1/l)*L because PyTorch divides a number by a tensor as the tensor's reciprocal times the
 * number. The attention factor is a double, rounded when sines and cosines are multiplied by it.
 */
#include "encodings/rope.h"

#include <math.h>

/* What the rungs of a ladder become. */
struct steps {
    const struct rope *params;
    const struct rope_scaling *scaling;
    const struct rope_plan *plan;
};

static float linear_rate(const struct steps *steps, size_t i, float rate) {
    (void)i;
    return rate / (float)steps->scaling->factor;
}

/* ---- A base of its own --------------------------------------------------------------------------------- */

/* Python's x ** y. */
static double power(double x, double y) {
    struct pe_wide log = pe_wide_of(x), wide = pe_wide_of(y);
    pe_wide_log(&log, &log);
    pe_wide_mul(&wide, &wide, &log);
    pe_wide_exp(&wide, &wide);
    return pe_wide_nearest(&wide);
}

static double stretch_exponent(const struct rope *params) {
    double d = (double)pe_rope_width(params);
    return d / (d - 2);
}

static double ntk_base(const struct rope *params, const struct rope_scaling *scaling) {
    return pe_rope_base(params) * power(scaling->factor, stretch_exponent(params));
}

static double dynamic_base(const struct rope *params, const struct rope_scaling *scaling) {
    double base = pe_rope_base(params), f = scaling->factor, exponent = stretch_exponent(params);
    double context = (double)scaling->original_max_position_embeddings;
    if (params->seq_len <= scaling->original_max_position_embeddings) {
        double part = f * context / context;
        return base * power(part - (f - 1), exponent);
    }
    float length = (float)f * (float)params->seq_len;
    float part = length / (float)context;
    float growth = part - (float)(f - 1);
    float raised = (float)power((double)growth, exponent);
    return (double)((float)base * raised);
}

/* ---- Rungs --------------------------------------------------------------------------------------------- */

static float proportional_rate(const struct steps *steps, size_t i, float rate) {
    return i < pe_rope_scaling_turning(steps->params, steps->scaling) ? rate / (float)steps->scaling->factor
                                                                      : 0;
}

/* 0 up to the ramp's beginning, 1 from its end. */
static float yarn_ramp(const struct rope_plan *plan, size_t i) {
    double high = plan->high == plan->low ? plan->high + 0.001 : plan->high;
    float above = (float)i - (float)plan->low;
    float ramp = above / (float)(high - plan->low);
    return ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
}

static float yarn_rate(const struct steps *steps, size_t i, float raised) {
    float kept = 1 - yarn_ramp(steps->plan, i);
    float longer = (float)steps->scaling->factor * raised;
    float divided = 1 / longer, whole = 1 / raised;
    float rest = 1 - kept;
    float low = divided * rest;
    float high = whole * kept;
    return low + high;
}

static float longrope_rate(const struct steps *steps, size_t i, float raised) {
    const struct pe_tensor *list = pe_rope_scaling_list(steps->params, steps->scaling);
    float longer = (float)pe_rope_scaling_number(list, i) * raised;
    return 1 / longer;
}

enum pe_rope_band pe_rope_llama3_band(const struct rope_scaling *scaling, float rate, float *s) {
    double context = (double)scaling->original_max_position_embeddings;
    float reciprocal = 1 / rate;
    float wave = reciprocal * (float)(2 * 3.14159265358979323846);
    if (wave > (float)(context / scaling->low_freq_factor)) {
        return ROPE_BAND_DIVIDE;
    }
    if (wave < (float)(context / scaling->high_freq_factor) ||
        scaling->high_freq_factor == scaling->low_freq_factor) { /* there it would divide by 0 */
        return ROPE_BAND_KEEP;
    }
    float per_wave = 1 / wave;
    float turns = per_wave * (float)context;
    float above = turns - (float)scaling->low_freq_factor;
    *s = above / (float)(scaling->high_freq_factor - scaling->low_freq_factor);
    return ROPE_BAND_BETWEEN;
}

static float llama3_rate(const struct steps *steps, size_t i, float rate) {
    float s = 0, factor = (float)steps->scaling->factor;
    enum pe_rope_band band = pe_rope_llama3_band(steps->scaling, rate, &s);
    (void)i;
    if (band != ROPE_BAND_BETWEEN) {
        return band == ROPE_BAND_KEEP ? rate : rate / factor;
    }
    float rest = 1 - s;
    float product = rest * rate;
    float low = product / factor;
    float high = s * rate;
    return low + high;
}

/* ---- Rows ---------------------------------------------------------------------------------------------- */

struct replayed {
    double (*base)(const struct rope *params, const struct rope_scaling *scaling); /* NULL = as it is */
    float (*rate)(const struct steps *steps, size_t i, float rate);                /* NULL = as it is */
    bool upward;                                                                   /* `rate` is p, not w */
    const char *without, *without_ggml; /* why it is not known; NULL = it is */
};
ROPE_TYPES_KNOWN(10);

static const struct replayed types[ROPE_TYPE_COUNT] = {
    [ROPE_TYPE_DEFAULT] = {0},
    [ROPE_TYPE_LINEAR] = {.rate = linear_rate},
    [ROPE_TYPE_NTK] = {.base = ntk_base},
    [ROPE_TYPE_DYNAMIC] = {.base = dynamic_base,
                           .without_ggml = "no frequency of llama.cpp depends on the length"},
    [ROPE_TYPE_PROPORTIONAL] = {.rate = proportional_rate},
    [ROPE_TYPE_YARN] = {.rate = yarn_rate, .upward = true},
    [ROPE_TYPE_LONGROPE] = {.rate = longrope_rate, .upward = true},
    [ROPE_TYPE_LLAMA3] = {.rate = llama3_rate},
    [ROPE_TYPE_GGML] = {.without = "its numbers are arguments of ggml, whose arithmetic is ggml"},
};

static const struct replayed *replayed_of(const struct rope *params) {
    const struct rope_scaling *scaling = params->scaling;
    return &types[scaling ? scaling->rope_type : ROPE_TYPE_DEFAULT];
}

/* ---- Checking ------------------------------------------------------------------------------------------ */

#define BAND_LEAST 0x1p-50 /* between llama3's factors */

/* What float32 would make zero and divide by. */
static int numbers_check(const struct rope_scaling *scaling, struct pe_error *err) {
    double band = scaling->high_freq_factor - scaling->low_freq_factor;
    if (scaling->rope_type == ROPE_TYPE_LLAMA3 && band > 0 && band < BAND_LEAST) {
        return pe_fail(err, PE_ERR_RANGE, "scaling.high_freq_factor",
                       "is %g, must with this arithmetic be low_freq_factor, %g, or above it by %g or more",
                       scaling->high_freq_factor, scaling->low_freq_factor, BAND_LEAST);
    }
    return PE_OK;
}

/* Why the scaling is not known; NULL: it is. */
static const char *without(const struct rope *params) {
    const struct replayed *type = replayed_of(params);
    if (params->arithmetic == PE_ARITHMETIC_GGML) {
        return type->without_ggml;
    }
    return type->upward && params->arithmetic == PE_ARITHMETIC_FLOAT32_EXP
               ? "code that has it takes powers, as float32_pow does"
               : type->without;
}

int pe_rope_replay_check(const struct rope *params, struct pe_error *err) {
    const struct rope_scaling *scaling = params->scaling;
    const char *name = pe_choice_name(pe_arithmetic_choices, params->arithmetic);
    if (params->arithmetic == PE_ARITHMETIC_EXACT) {
        return PE_OK;
    }
    const char *why = without(params);
    if (why) {
        const struct pe_choice *names = pe_rope_scaling_fields[ROPE_KEY_ROPE_TYPE].choices;
        return pe_fail(err, PE_ERR_UNSUPPORTED, "arithmetic", "%s with rope_type %s is not known: %s", name,
                       pe_choice_name(names, scaling->rope_type), why);
    }
    if (params->rope_axes || params->xpos) {
        return pe_fail(err, PE_ERR_UNSUPPORTED, "arithmetic", "%s with %s is not known: %s", name,
                       params->rope_axes ? "rope_axes" : "xpos",
                       params->rope_axes ? "its steps are those of one sequence, and each model of images "
                                           "has others"
                                         : "no model has one way to compute its growth");
    }
    if (scaling && numbers_check(scaling, err)) {
        return err->code;
    }
    return params->arithmetic == PE_ARITHMETIC_GGML ? pe_rope_replay_ggml_check(params, err) : PE_OK;
}

/* ---- The plan ------------------------------------------------------------------------------------------ */

struct pe_replay_ladder pe_rope_replay_ladder(const struct rope *params) {
    const struct replayed *type = replayed_of(params);
    const struct rope_scaling *scaling = params->scaling;
    bool whole = scaling && pe_rope_scaling_keeps_width(scaling->rope_type);
    return (struct pe_replay_ladder){.base = type->base ? type->base(params, scaling) : pe_rope_base(params),
                                     .num = 2,
                                     .den = (uint32_t)(whole ? params->head_dim : pe_rope_width(params))};
}

int pe_rope_replay_fill(struct rope_plan *plan, const struct rope *params, float *rates,
                        struct pe_error *err) {
    const struct replayed *type = replayed_of(params);
    const struct steps steps = {params, params->scaling, plan};
    struct pe_replay_ladder ladder = pe_rope_replay_ladder(params);
    if (params->arithmetic == PE_ARITHMETIC_GGML) {
        return pe_rope_replay_ggml(plan, params, rates, err);
    }
    ladder.upward = type->upward;
    ladder.n_raised = type->rate == proportional_rate ? pe_rope_scaling_turning(params, params->scaling) : 0;
    if (pe_replay_open(&plan->replay, (enum pe_arithmetic)params->arithmetic, rates, plan->n_pairs, &ladder,
                       err)) {
        return err->code;
    }
    for (size_t i = 0; i < plan->n_pairs && type->rate; i++) {
        rates[i] = type->rate(&steps, i, rates[i]);
    }
    plan->replay.gain = (float)plan->gain.nearest;
    return PE_OK;
}
