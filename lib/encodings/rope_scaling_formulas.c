/* SPDX-License-Identifier: MIT
 *
 * The formulas of rope's scalings, one row a type. With d = rotary_dim, pairs i < d/2, t_i = base^(-2i/d),
 * f = factor, L = original_max_position_embeddings:
 *
 *     default       t_i
 *     linear        t_i / f                         Chen et al. 2023, position interpolation
 *     ntk           the base times f^(d/(d-2))      the last frequency falls to 1/f of it
 *     dynamic       the base times g^(d/(d-2)), g = f*S/L - (f-1), S = max(seq_len, L)
 *     proportional  base^(-2i/head_dim) / f for i < floor(p*head_dim/2), p = partial_rotary_factor; 0 beyond
 *     yarn          t_i * (1 - r_i + r_i/f), r_i = clip((i - low)/(high - low), 0, 1)     Peng et al. 2023
 *                   low, high: the i where L holds beta_fast and beta_slow turns,
 *                   d*ln(L/(2 pi beta))/(2 ln base)
 *     longrope      t_i / e_i, e = long_factor if seq_len > L, else short_factor          Ding et al. 2024
 *     llama3        x = L*t_i/(2 pi) turns: t_i if x > high_freq_factor, t_i/f if x < low_freq_factor,
 *                   between them (1-s)*t_i/f + s*t_i, s = (x - low)/(high - low)          Llama 3.1
 *     ggml          rope_ggml.c has it
 *
 * and the attention factor, which multiplies sines and cosines:
 *
 *     yarn          attention_factor, else m(mscale)/m(mscale_all_dim) when both are given, else m(1),
 *                   m(s) = 0.1*s*ln f + 1, 1 for f <= 1
 *     longrope      attention_factor, else sqrt(1 + ln f / ln L), 1 for f <= 1
 *
 * All of it is computed in wide numbers, so a stretched frequency is as exact as any other.
 */
#include "encodings/rope.h"

#include <math.h>

#define RUNGS_TOGETHER 512 /* between two questions whether to stop: a millisecond or two */

/* What the rungs of a ladder are turned into. */
struct stretch {
    const struct rope *params;
    const struct rope_scaling *scaling;
    struct rope_plan *plan;
    struct pe_wide low, width; /* yarn: the ramp begins, and its width */
};

struct formula {
    void (*start)(struct stretch *stretch, struct pe_ladder *ladder); /* NULL = nothing */
    void (*rung)(const struct stretch *stretch, size_t i, struct pe_wide *turns);
    struct pe_wide (*factor)(const struct rope_scaling *scaling); /* of sines and cosines; NULL = 1 */
};

static uint32_t ladder_width(const struct rope *params, int type) {
    return (uint32_t)(pe_rope_scaling_keeps_width(type) ? params->head_dim : pe_rope_width(params));
}

static void divide(struct pe_wide *turns, double divisor) {
    struct pe_wide wide = pe_wide_of(divisor);
    pe_wide_div(turns, turns, &wide);
}

static void linear_rung(const struct stretch *stretch, size_t i, struct pe_wide *turns) {
    (void)i;
    divide(turns, stretch->scaling->factor);
}

/* The base times g^(d/(d-2)): rung i times g^(-2i/(d-2)). */
static void stretch_base(struct stretch *stretch, struct pe_ladder *ladder, const struct pe_wide *g) {
    uint32_t d = (uint32_t)pe_rope_width(stretch->params);
    struct pe_wide log;
    pe_ladder_stretch(ladder, g, 2, d - 2);
    pe_wide_log(&log, g);
    pe_wide_mul_small(&log, &log, d);
    pe_wide_div_small(&log, &log, d - 2);
    pe_wide_exp(&log, &log);
    struct pe_wide base = pe_wide_of(stretch->plan->base_used);
    pe_wide_mul(&base, &base, &log);
    stretch->plan->base_used = pe_wide_nearest(&base);
}

static void ntk_start(struct stretch *stretch, struct pe_ladder *ladder) {
    struct pe_wide factor = pe_wide_of(stretch->scaling->factor);
    stretch_base(stretch, ladder, &factor);
}

/* g = f*S/L - (f-1) = 1 + f*(S-L)/L, which is 1 up to L. */
static void dynamic_start(struct stretch *stretch, struct pe_ladder *ladder) {
    int64_t original = stretch->scaling->original_max_position_embeddings;
    int64_t beyond = stretch->params->seq_len > original ? stretch->params->seq_len - original : 0;
    struct pe_wide g = pe_wide_of(stretch->scaling->factor), times = pe_wide_of((double)beyond);
    const struct pe_wide one = pe_wide_of(1);
    pe_wide_mul(&g, &g, &times);
    divide(&g, (double)original);
    pe_wide_add(&g, &g, &one);
    stretch_base(stretch, ladder, &g);
}

size_t pe_rope_scaling_turning(const struct rope *params, const struct rope_scaling *scaling) {
    double part =
        scaling->partial_rotary_factor != 0 ? scaling->partial_rotary_factor : params->partial_rotary_factor;
    return (size_t)floor(part * (double)params->head_dim / 2);
}

static void proportional_rung(const struct stretch *stretch, size_t i, struct pe_wide *turns) {
    if (i >= pe_rope_scaling_turning(stretch->params, stretch->scaling)) {
        *turns = pe_wide_of(0);
    } else {
        divide(turns, stretch->scaling->factor);
    }
}

/* The pair whose wavelength holds `beta` turns within L: d*ln(L/(2 pi beta))/(2 ln base). */
static struct pe_wide pair_of_turns(const struct stretch *stretch, double beta) {
    struct pe_wide pair = pe_wide_of((double)stretch->scaling->original_max_position_embeddings);
    struct pe_wide base = pe_wide_of(pe_rope_base(stretch->params));
    pe_wide_mul(&pair, &pair, &pe_wide_1_2pi);
    divide(&pair, beta);
    pe_wide_log(&pair, &pair);
    pe_wide_log(&base, &base);
    pe_wide_div(&pair, &pair, &base);
    pe_wide_mul_small(&pair, &pair, (uint32_t)pe_rope_width(stretch->params));
    pair.exponent -= pair.sign != 0;
    return pair;
}

static bool is_below(const struct pe_wide *a, const struct pe_wide *b) {
    struct pe_wide difference;
    pe_wide_sub(&difference, a, b);
    return difference.sign < 0;
}

static void yarn_start(struct stretch *stretch, struct pe_ladder *ladder) {
    const struct rope_scaling *scaling = stretch->scaling;
    const struct pe_wide zero = pe_wide_of(0), end = pe_wide_of((double)pe_rope_width(stretch->params) - 1);
    struct pe_wide low = pair_of_turns(stretch, scaling->beta_fast);
    struct pe_wide high = pair_of_turns(stretch, scaling->beta_slow);
    (void)ladder;
    if (scaling->truncate || scaling->rope_type == ROPE_TYPE_GGML) {
        low = pe_wide_of(floor(pe_wide_double(&low)));
        high = pe_wide_of(ceil(pe_wide_double(&high)));
    }
    low = is_below(&low, &zero) ? zero : low;
    high = is_below(&end, &high) ? end : high;
    stretch->plan->has_range = true;
    stretch->plan->low = pe_wide_nearest(&low);
    stretch->plan->high = pe_wide_nearest(&high);
    pe_wide_sub(&stretch->width, &high, &low);
    if (stretch->width.sign == 0) { /* as the reference code keeps clear of 0/0 */
        stretch->width = pe_wide_of(1);
        divide(&stretch->width, 1000);
    }
    stretch->low = low;
}

/* 0 up to the ramp's beginning, 1 from its end. */
static struct pe_wide ramp_at(const struct stretch *stretch, size_t i) {
    const struct pe_wide one = pe_wide_of(1);
    struct pe_wide ramp = pe_wide_of((double)i);
    pe_wide_sub(&ramp, &ramp, &stretch->low);
    pe_wide_div(&ramp, &ramp, &stretch->width);
    return ramp.sign < 0 ? pe_wide_of(0) : is_below(&one, &ramp) ? one : ramp;
}

static void yarn_rung(const struct stretch *stretch, size_t i, struct pe_wide *turns) {
    const struct pe_wide one = pe_wide_of(1);
    struct pe_wide ramp = ramp_at(stretch, i), divided = *turns, rest;
    divide(&divided, stretch->scaling->factor);
    pe_wide_mul(&divided, &divided, &ramp);
    pe_wide_sub(&rest, &one, &ramp);
    pe_wide_mul(turns, turns, &rest);
    pe_wide_add(turns, turns, &divided);
}

double pe_rope_scaling_number(const struct pe_tensor *list, size_t i) {
    double value;
    pe_dtype_load(list->dtype, (const char *)list->data + i * pe_dtype_size(list->dtype), 1, &value);
    return value;
}

const struct pe_tensor *pe_rope_scaling_list(const struct rope *params, const struct rope_scaling *scaling) {
    bool is_long = params->seq_len > scaling->original_max_position_embeddings;
    return is_long ? scaling->long_factor : scaling->short_factor;
}

static void longrope_rung(const struct stretch *stretch, size_t i, struct pe_wide *turns) {
    divide(turns, pe_rope_scaling_number(pe_rope_scaling_list(stretch->params, stretch->scaling), i));
}

/* Llama 4 Scout has high = low: then no frequency is between, as x is never a number of float64 but 0. */
static void llama3_rung(const struct stretch *stretch, size_t i, struct pe_wide *turns) {
    const struct rope_scaling *scaling = stretch->scaling;
    const struct pe_wide low = pe_wide_of(scaling->low_freq_factor), one = pe_wide_of(1);
    const struct pe_wide high = pe_wide_of(scaling->high_freq_factor);
    struct pe_wide x = pe_wide_of((double)scaling->original_max_position_embeddings), divided = *turns, width;
    (void)i;
    pe_wide_mul(&x, &x, turns);
    pe_wide_sub(&width, &high, &low);
    if (is_below(&high, &x) || (width.sign == 0 && !is_below(&x, &low))) {
        return;
    }
    divide(&divided, scaling->factor);
    if (is_below(&x, &low)) {
        *turns = divided;
        return;
    }
    pe_wide_sub(&x, &x, &low);
    pe_wide_div(&x, &x, &width); /* s */
    pe_wide_mul(turns, turns, &x);
    pe_wide_sub(&x, &one, &x);
    pe_wide_mul(&divided, &divided, &x);
    pe_wide_add(turns, turns, &divided);
}

/* ggml never truncates less, and keeps clear of 0/0 by a width of 0.001 at least. */
static void ggml_start(struct stretch *stretch, struct pe_ladder *ladder) {
    struct pe_wide least = pe_wide_of(1);
    if (stretch->scaling->ext_factor == 0) {
        return;
    }
    divide(&least, 1000);
    yarn_start(stretch, ladder);
    stretch->width = is_below(&stretch->width, &least) ? least : stretch->width;
}

static void ggml_rung(const struct stretch *stretch, size_t i, struct pe_wide *turns) {
    const struct rope_scaling *scaling = stretch->scaling;
    const struct pe_wide one = pe_wide_of(1), scale = pe_wide_of(scaling->freq_scale);
    struct pe_wide mix = pe_wide_of(scaling->ext_factor), kept, rest;
    if (scaling->freq_factors) {
        divide(turns, pe_rope_scaling_number(scaling->freq_factors, i));
    }
    kept = *turns;
    pe_wide_mul(turns, turns, &scale);
    if (scaling->ext_factor == 0) {
        return;
    }
    rest = ramp_at(stretch, i);
    pe_wide_sub(&rest, &one, &rest);
    pe_wide_mul(&mix, &mix, &rest);
    pe_wide_sub(&rest, &one, &mix);
    pe_wide_mul(turns, turns, &rest);
    pe_wide_mul(&kept, &kept, &mix);
    pe_wide_add(turns, turns, &kept);
}

/* ---- The attention factor ------------------------------------------------------------------------------ */

/* 0.1*weight*ln f + 1; 1 for f <= 1. */
static struct pe_wide yarn_mscale(double factor, double weight) {
    const struct pe_wide one = pe_wide_of(1);
    struct pe_wide log = pe_wide_of(factor), w = pe_wide_of(weight);
    if (factor <= 1 || weight == 0) {
        return one;
    }
    pe_wide_log(&log, &log);
    pe_wide_mul(&log, &log, &w);
    pe_wide_div_small(&log, &log, 10);
    pe_wide_add(&log, &log, &one);
    return log;
}

static struct pe_wide longrope_factor(const struct rope_scaling *scaling) {
    const struct pe_wide one = pe_wide_of(1);
    struct pe_wide f = pe_wide_of(scaling->factor);
    struct pe_wide l = pe_wide_of((double)scaling->original_max_position_embeddings);
    if (scaling->factor <= 1) {
        return one;
    }
    pe_wide_log(&f, &f);
    pe_wide_log(&l, &l);
    pe_wide_div(&f, &f, &l);
    pe_wide_add(&f, &f, &one);
    pe_wide_sqrt(&f, &f);
    return f;
}

static struct pe_wide quotient(const struct rope_scaling *scaling) {
    struct pe_wide above = yarn_mscale(scaling->factor, scaling->mscale);
    struct pe_wide below = yarn_mscale(scaling->factor, scaling->mscale_all_dim);
    pe_wide_div(&above, &above, &below);
    return above;
}

/* attn_factor, times 1 + 0.1*ln(1/freq_scale) where YaRN is mixed in. */
static struct pe_wide ggml_factor(const struct rope_scaling *scaling) {
    const struct pe_wide one = pe_wide_of(1);
    struct pe_wide factor = pe_wide_of(scaling->attn_factor), log = pe_wide_of(scaling->freq_scale);
    if (scaling->ext_factor != 0) {
        pe_wide_log(&log, &log);
        pe_wide_div_small(&log, &log, 10);
        pe_wide_sub(&log, &one, &log);
        pe_wide_mul(&factor, &factor, &log);
    }
    return factor;
}

static struct pe_wide yarn_factor(const struct rope_scaling *scaling) {
    bool both = scaling->mscale != 0 && scaling->mscale_all_dim != 0;
    return both ? quotient(scaling) : yarn_mscale(scaling->factor, 1);
}

/* DeepSeek scales the softmax by the square of what it leaves out of sines and cosines; 1 where there is no
 * mscale_all_dim. */
static struct pe_wide softmax_factor(const struct rope_scaling *scaling) {
    struct pe_wide m = yarn_mscale(scaling->factor, scaling->mscale_all_dim);
    pe_wide_mul(&m, &m, &m);
    return m;
}

/* ---- The types ----------------------------------------------------------------------------------------- */

ROPE_TYPES_KNOWN(10);

static const struct formula formulas[ROPE_TYPE_COUNT] = {
    [ROPE_TYPE_DEFAULT] = {0},
    [ROPE_TYPE_LINEAR] = {.rung = linear_rung},
    [ROPE_TYPE_NTK] = {.start = ntk_start},
    [ROPE_TYPE_DYNAMIC] = {.start = dynamic_start},
    [ROPE_TYPE_PROPORTIONAL] = {.rung = proportional_rung},
    [ROPE_TYPE_YARN] = {.start = yarn_start, .rung = yarn_rung, .factor = yarn_factor},
    [ROPE_TYPE_LONGROPE] = {.rung = longrope_rung, .factor = longrope_factor},
    [ROPE_TYPE_LLAMA3] = {.rung = llama3_rung},
    [ROPE_TYPE_GGML] = {.start = ggml_start, .rung = ggml_rung, .factor = ggml_factor},
};

double pe_rope_scaling_quotient(const struct rope_scaling *scaling) {
    struct pe_wide factor = quotient(scaling);
    return pe_wide_nearest(&factor);
}

/* One that is given wins. */
static struct pe_wide attention_factor(const struct rope_scaling *scaling) {
    const struct formula *formula = &formulas[scaling->rope_type];
    if (pe_rope_scaling_has(scaling, ROPE_KEY_ATTENTION)) {
        return pe_wide_of(scaling->attention_factor);
    }
    return formula->factor ? formula->factor(scaling) : pe_wide_of(1);
}

int pe_rope_scaling_fill(struct rope_plan *plan, const struct rope *params, struct pe_error *err) {
    static const struct rope_scaling none = {.rope_type = ROPE_TYPE_DEFAULT};
    const struct rope_scaling *scaling = params->scaling ? &plan->scaling : &none;
    const struct formula *formula = &formulas[scaling->rope_type];
    struct stretch stretch = {.params = params, .scaling = scaling, .plan = plan};
    struct pe_ladder ladder;
    struct pe_wide factor = attention_factor(scaling);
    pe_gain_of(&plan->gain, &factor);
    plan->has_gain = !(plan->gain.is_double && plan->gain.nearest == 1);
    plan->softmax_factor = softmax_factor(scaling);
    plan->base_used = pe_rope_base(params);
    pe_ladder_start(&ladder, plan->base_used, 2, ladder_width(params, scaling->rope_type));
    if (formula->start) {
        formula->start(&stretch, &ladder);
    }
    for (size_t i = 0; i < plan->n_pairs; i++, pe_ladder_next(&ladder)) {
        struct pe_wide turns = ladder.turns;
        if (i % RUNGS_TOGETHER == 0 && pe_error_poll(err)) {
            return err->code;
        }
        if (formula->rung) {
            formula->rung(&stretch, i, &turns);
        }
        pe_turn_of(&plan->turns[i], &turns);
    }
    return PE_OK;
}
