/* SPDX-License-Identifier: MIT
 *
 * Scalings of rope in the float32 steps of deployed code, one row a type. fl is left out: every operation
 * rounds once, numbers of the configuration are rounded to float32 where they meet one.
 *
 *     linear     w / f                                                  transformers, modeling_rope_utils.py
 *     llama3     l = (1/w)*(2 pi); w/f where l > L/low; where neither that nor l < L/high:
 *                s = ((1/l)*L - low)/(high - low), ((1-s)*w)/f + s*w
 *     ggml       linear: all angles times 1/f. llama3: angles divided by 1, f, or 1/((1-s)/f + s), which
 *                llama.cpp's converter stores beside the weights
 *
 * (1/w)*(2 pi) and (1/l)*L because PyTorch divides a number by a tensor as the tensor's reciprocal times the
 * number.
 */
#include "encodings/rope.h"

static float linear_rate(const struct rope_scaling *scaling, float rate) {
    return rate / (float)scaling->factor;
}

/* A wavelength among llama3's three bands. s: between keep (1) and divide (0). */
enum band { BAND_KEEP, BAND_DIVIDE, BAND_BETWEEN };

static enum band llama3_band(const struct rope_scaling *scaling, float rate, float *s) {
    double context = (double)scaling->original_max_position_embeddings;
    float reciprocal = 1 / rate;
    float wave = reciprocal * (float)(2 * 3.14159265358979323846);
    if (wave > (float)(context / scaling->low_freq_factor)) {
        return BAND_DIVIDE;
    }
    if (wave < (float)(context / scaling->high_freq_factor)) {
        return BAND_KEEP;
    }
    float per_wave = 1 / wave;
    float turns = per_wave * (float)context;
    float above = turns - (float)scaling->low_freq_factor;
    *s = above / (float)(scaling->high_freq_factor - scaling->low_freq_factor);
    return BAND_BETWEEN;
}

static float llama3_rate(const struct rope_scaling *scaling, float rate) {
    float s = 0, factor = (float)scaling->factor;
    enum band band = llama3_band(scaling, rate, &s);
    if (band != BAND_BETWEEN) {
        return band == BAND_KEEP ? rate : rate / factor;
    }
    float rest = 1 - s;
    float product = rest * rate;
    float low = product / factor;
    float high = s * rate;
    return low + high;
}

static float llama3_divisor(const struct rope_scaling *scaling, float rate) {
    float s = 0, factor = (float)scaling->factor;
    enum band band = llama3_band(scaling, rate, &s);
    if (band != BAND_BETWEEN) {
        return band == BAND_KEEP ? 1 : factor;
    }
    float rest = 1 - s;
    float low = rest / factor;
    float sum = low + s;
    return 1 / sum;
}

struct replayed {
    bool known;
    float (*rate)(const struct rope_scaling *scaling, float rate);    /* NULL = as it is */
    float (*divisor)(const struct rope_scaling *scaling, float rate); /* ggml; NULL = 1 */
    bool stretch;                                                     /* ggml: by 1/factor */
};
static const struct replayed types[ROPE_TYPE_COUNT] = {
    [ROPE_TYPE_DEFAULT] = {.known = true},
    [ROPE_TYPE_LINEAR] = {.known = true, .rate = linear_rate, .stretch = true},
    [ROPE_TYPE_LLAMA3] = {.known = true, .rate = llama3_rate, .divisor = llama3_divisor},
};

static const struct replayed *replayed_of(const struct rope *params) {
    const struct rope_scaling *scaling = params->scaling;
    return &types[scaling ? scaling->rope_type : ROPE_TYPE_DEFAULT];
}

#define BAND_LEAST 0x1p-50 /* between llama3's factors */

/* What float32 would make zero and divide by. */
static int numbers_check(const struct rope_scaling *scaling, struct pe_error *err) {
    if (scaling->rope_type == ROPE_TYPE_LLAMA3 &&
        scaling->high_freq_factor - scaling->low_freq_factor < BAND_LEAST) {
        return pe_fail(err, PE_ERR_RANGE, "scaling.high_freq_factor",
                       "is %g, must with this arithmetic be above low_freq_factor, %g, by %g or more",
                       scaling->high_freq_factor, scaling->low_freq_factor, BAND_LEAST);
    }
    return PE_OK;
}

int pe_rope_replay_check(const struct rope *params, struct pe_error *err) {
    const struct rope_scaling *scaling = params->scaling;
    const char *name = pe_choice_name(pe_arithmetic_choices, params->arithmetic);
    bool sections = params->sections.n > 0 && params->arithmetic == PE_ARITHMETIC_GGML;
    if (params->arithmetic == PE_ARITHMETIC_EXACT) {
        return PE_OK;
    }
    if (!replayed_of(params)->known) {
        const struct pe_choice *names = pe_rope_scaling_fields[ROPE_KEY_ROPE_TYPE].choices;
        return pe_fail(err, PE_ERR_UNSUPPORTED, "arithmetic",
                       "%s with rope_type %s is not known, it is with default, linear and llama3", name,
                       pe_choice_name(names, scaling->rope_type));
    }
    if (params->rope_axes || params->xpos || sections) {
        return pe_fail(err, PE_ERR_UNSUPPORTED, "arithmetic", "%s with %s is not known", name,
                       params->rope_axes ? "rope_axes"
                       : params->xpos    ? "xpos"
                                         : "sections");
    }
    return scaling ? numbers_check(scaling, err) : PE_OK;
}

/* Of ggml the divisors, which follow from the frequencies that its converter computes. */
static int divisors_fill(struct pe_replay *replay, const struct rope *params,
                         const struct pe_replay_ladder *ladder, struct pe_error *err) {
    const struct replayed *type = replayed_of(params);
    const struct rope_scaling *scaling = params->scaling;
    struct pe_replay converter;
    float *rates = replay->rates;
    if (type->stretch) {
        replay->stretch = 1 / (float)scaling->factor;
    }
    if (!type->divisor) {
        return PE_OK;
    }
    if (pe_replay_open(&converter, PE_ARITHMETIC_FLOAT32_POW, rates, replay->n, ladder, err)) {
        return err->code;
    }
    for (size_t i = 0; i < replay->n; i++) {
        rates[i] = type->divisor(scaling, rates[i]);
    }
    return PE_OK;
}

int pe_rope_replay_fill(struct rope_plan *plan, const struct rope *params, float *rates,
                        struct pe_error *err) {
    const struct pe_replay_ladder ladder = {pe_rope_base(params), 2, (uint32_t)pe_rope_width(params)};
    const struct replayed *type = replayed_of(params);
    struct pe_replay *replay = &plan->replay;
    bool ggml = params->arithmetic == PE_ARITHMETIC_GGML;
    if (pe_replay_open(replay, (enum pe_arithmetic)params->arithmetic, rates, plan->n_pairs, &ladder, err) ||
        (ggml && divisors_fill(replay, params, &ladder, err))) {
        return err->code;
    }
    for (size_t i = 0; i < plan->n_pairs && !ggml && type->rate; i++) {
        rates[i] = type->rate(params->scaling, rates[i]);
    }
    return PE_OK;
}
