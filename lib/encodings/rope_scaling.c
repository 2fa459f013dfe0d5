/* SPDX-License-Identifier: MIT
 *
 * How the frequencies of rope are stretched for contexts longer than those of the training, one row a type.
 * With d = rotary_dim, pairs i < d/2, t_i = base^(-2i/d), f = factor, L = original_max_position_embeddings:
 *
 *     default       t_i
 *     linear        t_i / f                                               Chen et al. 2023, position
 * interpolation ntk           the base times f^(d/(d-2))                            the last frequency falls
 * to 1/f of it dynamic       the base times g^(d/(d-2)), g = f*S/L - (f-1), S = max(seq_len, L) proportional
 * base^(-2i/head_dim) / f for i < floor(p*head_dim/2), p = partial_rotary_factor; 0 beyond yarn          t_i
 * * (1 - r_i + r_i/f), r_i = clip((i - low)/(high - low), 0, 1)         Peng et al. 2023 low, high: the i
 * where L holds beta_fast and beta_slow turns: d*ln(L/(2 pi beta))/(2 ln base) longrope      t_i / e_i, e =
 * long_factor if seq_len > L, else short_factor              Ding et al. 2024 llama3        x = L*t_i/(2 pi)
 * turns: t_i if x > high_freq_factor, t_i/f if x < low_freq_factor, between them (1-s)*t_i/f + s*t_i, s = (x
 * - low)/(high - low)                      Llama 3.1
 *
 * and the attention factor, which multiplies sines and cosines:
 *
 *     yarn          attention_factor, else m(mscale)/m(mscale_all_dim) when both are given, else m(1),
 *                   m(s) = 0.1*s*ln f + 1, 1 for f <= 1
 *     longrope      attention_factor, else sqrt(1 + ln f / ln L), 1 for f <= 1
 *
 * The names and defaults are those of the models' own configurations. All of it is computed in wide numbers,
 * so a stretched frequency is as exact as any other.
 */
#include "encodings/rope.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    TYPE_DEFAULT = 1,
    TYPE_LINEAR,
    TYPE_NTK,
    TYPE_DYNAMIC,
    TYPE_PROPORTIONAL,
    TYPE_YARN,
    TYPE_LONGROPE,
    TYPE_LLAMA3,
    TYPE_COUNT
};

static const struct pe_choice types[] = {
    {"default", TYPE_DEFAULT, "no scaling"},
    {"linear", TYPE_LINEAR, "position interpolation: all frequencies divided by factor"},
    {"ntk", TYPE_NTK, "NTK-aware: a larger base, fixed"},
    {"dynamic", TYPE_DYNAMIC, "NTK-aware: a base that grows with seq_len"},
    {"proportional", TYPE_PROPORTIONAL, "Gemma: the exponent of the whole head, zero beyond a part of it"},
    {"yarn", TYPE_YARN, "YaRN: low frequencies divided, high ones kept, a ramp between"},
    {"longrope", TYPE_LONGROPE, "LongRoPE: a divisor of its own for each frequency, by length"},
    {"llama3", TYPE_LLAMA3, "Llama 3.1: as YaRN, by wavelength"},
    {NULL, 0, NULL}};

enum {
    KEY_ROPE_TYPE,
    KEY_FACTOR,
    KEY_ROPE_THETA,
    KEY_PARTIAL,
    KEY_ORIGINAL,
    KEY_ATTENTION,
    KEY_MSCALE,
    KEY_MSCALE_ALL,
    KEY_BETA_FAST,
    KEY_BETA_SLOW,
    KEY_TRUNCATE,
    KEY_LOW,
    KEY_HIGH,
    KEY_SHORT,
    KEY_LONG
};
#define BIT(key) (UINT64_C(1) << (key))

const struct pe_field rope_scaling_fields[ROPE_SCALING_N_FIELDS] = {
    [KEY_ROPE_TYPE] = {PE_FIELD(rope_scaling, rope_type), .alias = "type", .choices = types,
                       .flags = PE_FIELD_REQUIRED, .doc = "How frequencies are stretched."},
    [KEY_FACTOR] = {PE_FIELD(rope_scaling, factor), .min = 0, .max = 1e6, .flags = PE_FIELD_OPEN_MIN,
                    .doc = "How many times longer the context becomes."},
    [KEY_ROPE_THETA] = {PE_FIELD(rope_scaling, rope_theta), .min = 1, .max = 1e300,
                        .doc = "The base, where a model's configuration has it here."},
    [KEY_PARTIAL] = {PE_FIELD(rope_scaling, partial_rotary_factor), .min = 0, .max = 1,
                     .flags = PE_FIELD_OPEN_MIN,
                     .doc = "The part of the head that rotates, where a model's configuration has it here."},
    [KEY_ORIGINAL] = {PE_FIELD(rope_scaling, original_max_position_embeddings), .min = 2,
                      .max = PE_POSITION_MAX, .doc = "The context of the training, in tokens."},
    [KEY_ATTENTION] = {PE_FIELD(rope_scaling, attention_factor), .min = 1e-6, .max = 1e6,
                       .doc = "Factor of sines and cosines; it wins over what the type would give."},
    [KEY_MSCALE] = {PE_FIELD(rope_scaling, mscale), .min = 0, .max = 1e3,
                    .doc = "DeepSeek's weight of ln(factor) in the attention factor; 0 is as absent."},
    [KEY_MSCALE_ALL] = {PE_FIELD(rope_scaling, mscale_all_dim), .min = 0, .max = 1e3,
                        .doc =
                            "DeepSeek's weight of ln(factor) in the scale of the softmax; 0 is as absent."},
    [KEY_BETA_FAST] = {PE_FIELD(rope_scaling, beta_fast), .min = 0, .max = 1e9, .flags = PE_FIELD_OPEN_MIN,
                       .doc = "Turns within the original context from which frequencies are kept [32]."},
    [KEY_BETA_SLOW] = {PE_FIELD(rope_scaling, beta_slow), .min = 0, .max = 1e9, .flags = PE_FIELD_OPEN_MIN,
                       .doc = "Turns within the original context below which they are divided [1]."},
    [KEY_TRUNCATE] = {PE_FIELD(rope_scaling, truncate),
                      .doc = "Whether the ends of the ramp are rounded outwards to whole pairs [true]."},
    [KEY_LOW] = {PE_FIELD(rope_scaling, low_freq_factor), .min = 0, .max = 1e9, .flags = PE_FIELD_OPEN_MIN,
                 .doc = "Turns within the original context below which frequencies are divided."},
    [KEY_HIGH] = {PE_FIELD(rope_scaling, high_freq_factor), .min = 0, .max = 1e9, .flags = PE_FIELD_OPEN_MIN,
                  .doc = "Turns within the original context above which frequencies are kept."},
    [KEY_SHORT] = {PE_FIELD(rope_scaling, short_factor), .flags = PE_FIELD_NUMBERS, .shape = "[rotary_dim/2]",
                   .doc = "Divisors for sequences up to the original context."},
    [KEY_LONG] = {PE_FIELD(rope_scaling, long_factor), .flags = PE_FIELD_NUMBERS, .shape = "[rotary_dim/2]",
                  .doc = "Divisors for longer sequences."},
};

/* ---- The types ----------------------------------------------------------------------------------------- */

/* What the rungs of a ladder are turned into. */
struct stretch {
    const struct rope *params;
    const struct rope_scaling *scaling;
    struct rope_plan *plan;
    struct pe_wide low, width; /* yarn: the ramp begins, and its width */
};

struct type {
    uint64_t takes, needs; /* beside the keys that all take */
    bool needs_seq_len;
    void (*start)(struct stretch *stretch, struct pe_ladder *ladder); /* NULL = nothing */
    void (*rung)(const struct stretch *stretch, size_t i, struct pe_wide *turns);
};

static uint32_t ladder_width(const struct rope *params, int type) {
    return (uint32_t)(type == TYPE_PROPORTIONAL ? params->head_dim : rope_width(params));
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
    uint32_t d = (uint32_t)rope_width(stretch->params);
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

static void proportional_rung(const struct stretch *stretch, size_t i, struct pe_wide *turns) {
    double part = stretch->scaling->partial_rotary_factor != 0 ? stretch->scaling->partial_rotary_factor
                                                               : stretch->params->partial_rotary_factor;
    if ((double)i >= floor(part * (double)stretch->params->head_dim / 2)) {
        *turns = pe_wide_of(0);
    } else {
        divide(turns, stretch->scaling->factor);
    }
}

/* The pair whose wavelength holds `beta` turns within L: d*ln(L/(2 pi beta))/(2 ln base). */
static struct pe_wide pair_of_turns(const struct stretch *stretch, double beta) {
    struct pe_wide pair = pe_wide_of((double)stretch->scaling->original_max_position_embeddings);
    struct pe_wide base = pe_wide_of(rope_base(stretch->params));
    pe_wide_mul(&pair, &pair, &pe_wide_1_2pi);
    divide(&pair, beta);
    pe_wide_log(&pair, &pair);
    pe_wide_log(&base, &base);
    pe_wide_div(&pair, &pair, &base);
    pe_wide_mul_small(&pair, &pair, (uint32_t)rope_width(stretch->params));
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
    const struct pe_wide zero = pe_wide_of(0), end = pe_wide_of((double)rope_width(stretch->params) - 1);
    struct pe_wide low = pair_of_turns(stretch, scaling->beta_fast);
    struct pe_wide high = pair_of_turns(stretch, scaling->beta_slow);
    (void)ladder;
    if (scaling->truncate) {
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

static void yarn_rung(const struct stretch *stretch, size_t i, struct pe_wide *turns) {
    const struct pe_wide one = pe_wide_of(1);
    struct pe_wide ramp = pe_wide_of((double)i), divided = *turns, rest;
    pe_wide_sub(&ramp, &ramp, &stretch->low);
    pe_wide_div(&ramp, &ramp, &stretch->width);
    ramp = ramp.sign < 0 ? pe_wide_of(0) : is_below(&one, &ramp) ? one : ramp;
    divide(&divided, stretch->scaling->factor);
    pe_wide_mul(&divided, &divided, &ramp);
    pe_wide_sub(&rest, &one, &ramp);
    pe_wide_mul(turns, turns, &rest);
    pe_wide_add(turns, turns, &divided);
}

static void longrope_rung(const struct stretch *stretch, size_t i, struct pe_wide *turns) {
    const struct rope_scaling *scaling = stretch->scaling;
    bool is_long = stretch->params->seq_len > scaling->original_max_position_embeddings;
    double divisor;
    const struct pe_tensor *list = is_long ? scaling->long_factor : scaling->short_factor;
    pe_dtype_load(list->dtype, (const char *)list->data + i * pe_dtype_size(list->dtype), 1, &divisor);
    divide(turns, divisor);
}

static void llama3_rung(const struct stretch *stretch, size_t i, struct pe_wide *turns) {
    const struct rope_scaling *scaling = stretch->scaling;
    const struct pe_wide low = pe_wide_of(scaling->low_freq_factor), one = pe_wide_of(1);
    const struct pe_wide high = pe_wide_of(scaling->high_freq_factor);
    struct pe_wide x = pe_wide_of((double)scaling->original_max_position_embeddings), divided = *turns, width;
    (void)i;
    pe_wide_mul(&x, &x, turns);
    if (is_below(&high, &x)) {
        return;
    }
    divide(&divided, scaling->factor);
    if (is_below(&x, &low)) {
        *turns = divided;
        return;
    }
    pe_wide_sub(&x, &x, &low);
    pe_wide_sub(&width, &high, &low);
    pe_wide_div(&x, &x, &width); /* s */
    pe_wide_mul(turns, turns, &x);
    pe_wide_sub(&x, &one, &x);
    pe_wide_mul(&divided, &divided, &x);
    pe_wide_add(turns, turns, &divided);
}

static const struct type type_rows[TYPE_COUNT] = {
    [TYPE_DEFAULT] = {0},
    [TYPE_LINEAR] = {.takes = BIT(KEY_FACTOR), .needs = BIT(KEY_FACTOR), .rung = linear_rung},
    [TYPE_NTK] = {.takes = BIT(KEY_FACTOR), .needs = BIT(KEY_FACTOR), .start = ntk_start},
    [TYPE_DYNAMIC] = {.takes = BIT(KEY_FACTOR) | BIT(KEY_ORIGINAL),
                      .needs = BIT(KEY_FACTOR) | BIT(KEY_ORIGINAL),
                      .needs_seq_len = true,
                      .start = dynamic_start},
    [TYPE_PROPORTIONAL] = {.takes = BIT(KEY_FACTOR), .rung = proportional_rung},
    [TYPE_YARN] = {.takes = BIT(KEY_FACTOR) | BIT(KEY_ORIGINAL) | BIT(KEY_ATTENTION) | BIT(KEY_MSCALE) |
                            BIT(KEY_MSCALE_ALL) | BIT(KEY_BETA_FAST) | BIT(KEY_BETA_SLOW) | BIT(KEY_TRUNCATE),
                   .needs = BIT(KEY_FACTOR) | BIT(KEY_ORIGINAL),
                   .start = yarn_start,
                   .rung = yarn_rung},
    [TYPE_LONGROPE] = {.takes = BIT(KEY_FACTOR) | BIT(KEY_ORIGINAL) | BIT(KEY_ATTENTION) | BIT(KEY_SHORT) |
                                BIT(KEY_LONG),
                       .needs = BIT(KEY_ORIGINAL) | BIT(KEY_SHORT) | BIT(KEY_LONG),
                       .needs_seq_len = true,
                       .rung = longrope_rung},
    [TYPE_LLAMA3] = {.takes = BIT(KEY_FACTOR) | BIT(KEY_ORIGINAL) | BIT(KEY_LOW) | BIT(KEY_HIGH),
                     .needs = BIT(KEY_FACTOR) | BIT(KEY_ORIGINAL) | BIT(KEY_LOW) | BIT(KEY_HIGH),
                     .rung = llama3_rung},
};
#define TAKEN_BY_ALL (BIT(KEY_ROPE_TYPE) | BIT(KEY_ROPE_THETA) | BIT(KEY_PARTIAL))

/* ---- Checking ------------------------------------------------------------------------------------------ */

static int scaling_fail(struct pe_error *err, enum pe_code code, int key, const char *text) {
    char path[80];
    snprintf(path, sizeof path, "scaling.%s", rope_scaling_fields[key].name);
    return pe_fail(err, code, path, "%s", text);
}

/* Keys that the type needs, and keys that it would ignore. */
static int keys_check(const struct rope_scaling *scaling, struct pe_error *err) {
    const struct type *type = &type_rows[scaling->rope_type];
    const char *name = pe_choice_name(types, scaling->rope_type);
    for (int key = 0; key < ROPE_SCALING_N_FIELDS; key++) {
        bool given = scaling->given >> key & 1;
        char path[80];
        snprintf(path, sizeof path, "scaling.%s", rope_scaling_fields[key].name);
        if (!given && (type->needs & BIT(key))) {
            return pe_fail(err, PE_ERR_MISSING, path, "is missing, rope_type %s needs it", name);
        }
        if (given && !((type->takes | TAKEN_BY_ALL) & BIT(key))) {
            return pe_fail(err, PE_ERR_UNKNOWN_FIELD, path, "rope_type %s does not use it", name);
        }
    }
    return PE_OK;
}

static int list_check(const struct rope *params, const struct pe_tensor *list, int key,
                      struct pe_error *err) {
    char path[80];
    size_t n = (size_t)rope_width(params) / 2;
    snprintf(path, sizeof path, "scaling.%s", rope_scaling_fields[key].name);
    if (list->rank != 1 || list->dim[0] != n) {
        char shape[128];
        return pe_fail(err, PE_ERR_SHAPE, path, "has shape %s, allowed is [%zu], one number for each pair",
                       pe_tensor_shape_text(list, shape, sizeof shape), n);
    }
    for (size_t i = 0; i < n; i++) {
        double divisor;
        pe_dtype_load(list->dtype, (const char *)list->data + i * pe_dtype_size(list->dtype), 1, &divisor);
        if (divisor < 1e-6 || divisor > 1e9) {
            snprintf(path, sizeof path, "scaling.%s[%zu]", rope_scaling_fields[key].name, i);
            return pe_fail(err, PE_ERR_RANGE, path, "got %g, allowed is 1e-06 to 1e+09", divisor);
        }
    }
    return PE_OK;
}

/* The same thing said here and in a field of the encoding. */
static int twice_check(const struct rope *params, const struct rope_scaling *scaling, struct pe_error *err) {
    if ((scaling->given & BIT(KEY_ROPE_THETA)) && rope_base_given(params) &&
        params->base != scaling->rope_theta) {
        return scaling_fail(err, PE_ERR_CONFLICT, KEY_ROPE_THETA, "differs from the field base");
    }
    if ((scaling->given & BIT(KEY_PARTIAL)) && params->partial_rotary_factor != 0 &&
        params->partial_rotary_factor != scaling->partial_rotary_factor) {
        return scaling_fail(err, PE_ERR_CONFLICT, KEY_PARTIAL,
                            "differs from the field partial_rotary_factor");
    }
    return PE_OK;
}

static int values_check(const struct rope *params, const struct rope_scaling *scaling, struct pe_error *err) {
    int type = scaling->rope_type;
    if ((type == TYPE_NTK || type == TYPE_DYNAMIC) && rope_width(params) < 4) {
        return pe_fail(err, PE_ERR_RANGE, "rotary_dim", "is %lld, rope_type %s needs 4 or more",
                       (long long)rope_width(params), pe_choice_name(types, type));
    }
    if (type == TYPE_YARN && rope_base(params) == 1) {
        return pe_fail(err, PE_ERR_RANGE, "base",
                       "is 1, rope_type yarn needs more: all wavelengths are the same");
    }
    if (type == TYPE_LLAMA3 && scaling->low_freq_factor >= scaling->high_freq_factor) {
        return pe_fail(err, PE_ERR_RANGE, "scaling.high_freq_factor",
                       "is %g, must be above low_freq_factor, %g", scaling->high_freq_factor,
                       scaling->low_freq_factor);
    }
    if (type == TYPE_LONGROPE && !(scaling->given & (BIT(KEY_FACTOR) | BIT(KEY_ATTENTION)))) {
        return scaling_fail(err, PE_ERR_MISSING, KEY_FACTOR,
                            "is missing, rope_type longrope needs it or attention_factor");
    }
    if (type == TYPE_PROPORTIONAL && !(scaling->given & BIT(KEY_PARTIAL)) &&
        params->partial_rotary_factor == 0) {
        return scaling_fail(err, PE_ERR_MISSING, KEY_PARTIAL, "is missing, rope_type proportional needs it");
    }
    return PE_OK;
}

int rope_scaling_check(const struct rope *params, struct pe_error *err) {
    const struct rope_scaling *scaling = params->scaling;
    if (keys_check(scaling, err) || twice_check(params, scaling, err) || values_check(params, scaling, err)) {
        return err->code;
    }
    if (type_rows[scaling->rope_type].needs_seq_len && params->seq_len == 0) {
        return pe_fail(
            err, PE_ERR_MISSING, "seq_len",
            "is missing, rope_type %s needs the length of the sequence, as frequencies depend on it",
            pe_choice_name(types, scaling->rope_type));
    }
    if (scaling->rope_type == TYPE_LONGROPE && (list_check(params, scaling->short_factor, KEY_SHORT, err) ||
                                                list_check(params, scaling->long_factor, KEY_LONG, err))) {
        return err->code;
    }
    return PE_OK;
}

int rope_scaling_type(const char *name) {
    for (const struct pe_choice *type = types; type->name; type++) {
        if (strcmp(type->name, name) == 0) {
            return type->value;
        }
    }
    return 0;
}

bool rope_scaling_takes(int type, int key) {
    return type_rows[type].takes >> key & 1;
}

static void complete_real(struct rope_scaling *scaling, int key, double *member, double value) {
    if (rope_scaling_takes(scaling->rope_type, key) && !(scaling->given & BIT(key)) && value > 0) {
        *member = value;
        scaling->given |= BIT(key);
    }
}

void rope_scaling_complete(struct rope_scaling *scaling, double most, double original, double part) {
    int type = scaling->rope_type;
    original = original == 0 && type == TYPE_DYNAMIC ? most : original;
    if (!(scaling->given & BIT(KEY_ORIGINAL)) && rope_scaling_takes(type, KEY_ORIGINAL) && original >= 2 &&
        original <= PE_POSITION_MAX) {
        scaling->original_max_position_embeddings = (int64_t)original;
        scaling->given |= BIT(KEY_ORIGINAL);
    }
    if ((type == TYPE_YARN || type == TYPE_LONGROPE) && (scaling->given & BIT(KEY_ORIGINAL))) {
        complete_real(scaling, KEY_FACTOR, &scaling->factor,
                      most / (double)scaling->original_max_position_embeddings);
    }
    if (type == TYPE_PROPORTIONAL) {
        scaling->partial_rotary_factor = part;
        scaling->given |= BIT(KEY_PARTIAL);
    }
}

/* Proportional frequencies of 0 pass: all of the head is in the formula. */
bool rope_scaling_keeps_width(const struct rope_scaling *scaling) {
    return scaling->rope_type == TYPE_PROPORTIONAL;
}

/* ---- Resolving and filling ----------------------------------------------------------------------------- */

static void resolve_real(struct rope_scaling *scaling, int key, double *member, double value) {
    if (!(scaling->given & BIT(key))) {
        *member = value;
        scaling->given |= BIT(key);
    }
}

void rope_scaling_resolve(struct rope_scaling *scaling) {
    if (scaling->rope_type == TYPE_PROPORTIONAL) {
        resolve_real(scaling, KEY_FACTOR, &scaling->factor, 1);
    }
    if (scaling->rope_type == TYPE_YARN) {
        resolve_real(scaling, KEY_BETA_FAST, &scaling->beta_fast, 32);
        resolve_real(scaling, KEY_BETA_SLOW, &scaling->beta_slow, 1);
        scaling->truncate = !(scaling->given & BIT(KEY_TRUNCATE)) || scaling->truncate;
        scaling->given |= BIT(KEY_TRUNCATE);
    }
}

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

static struct pe_wide attention_factor(const struct rope_scaling *scaling) {
    if (scaling->given & BIT(KEY_ATTENTION)) {
        return pe_wide_of(scaling->attention_factor);
    }
    if (scaling->rope_type == TYPE_LONGROPE) {
        return longrope_factor(scaling);
    }
    if (scaling->rope_type != TYPE_YARN) {
        return pe_wide_of(1);
    }
    if (scaling->mscale == 0 || scaling->mscale_all_dim == 0) {
        return yarn_mscale(scaling->factor, 1);
    }
    struct pe_wide above = yarn_mscale(scaling->factor, scaling->mscale);
    struct pe_wide below = yarn_mscale(scaling->factor, scaling->mscale_all_dim);
    pe_wide_div(&above, &above, &below);
    return above;
}

/* DeepSeek scales the softmax by the square of what it leaves out of sines and cosines. */
static double softmax_factor(const struct rope_scaling *scaling) {
    if (scaling->rope_type != TYPE_YARN) {
        return 1;
    }
    struct pe_wide m = yarn_mscale(scaling->factor, scaling->mscale_all_dim);
    pe_wide_mul(&m, &m, &m);
    return pe_wide_nearest(&m);
}

void rope_scaling_fill(struct rope_plan *plan, const struct rope *params) {
    static const struct rope_scaling none = {.rope_type = TYPE_DEFAULT};
    const struct rope_scaling *scaling = params->scaling ? &plan->scaling : &none;
    const struct type *type = &type_rows[scaling->rope_type];
    struct stretch stretch = {.params = params, .scaling = scaling, .plan = plan};
    struct pe_ladder ladder;
    struct pe_wide factor = attention_factor(scaling);
    pe_gain_of(&plan->gain, &factor);
    plan->has_gain = !(plan->gain.is_double && plan->gain.nearest == 1);
    plan->softmax_factor = softmax_factor(scaling);
    plan->base_used = rope_base(params);
    pe_ladder_start(&ladder, plan->base_used, 2, ladder_width(params, scaling->rope_type));
    if (type->start) {
        type->start(&stretch, &ladder);
    }
    for (size_t i = 0; i < plan->n_pairs; i++, pe_ladder_next(&ladder)) {
        struct pe_wide turns = ladder.turns;
        if (type->rung) {
            type->rung(&stretch, i, &turns);
        }
        pe_turn_of(&plan->turns[i], &turns);
    }
}
