/* SPDX-License-Identifier: MIT
 *
 * How the frequencies of rope are stretched for contexts longer than those of the training: the parameters,
 * as models' own configurations name them, which of them a type takes and needs, and what they may be. The
 * formulas are in rope_stretch.c.
 */
#include "encodings/rope.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct pe_choice types[] = {
    {"default", ROPE_TYPE_DEFAULT, "no scaling"},
    {"linear", ROPE_TYPE_LINEAR, "position interpolation: all frequencies divided by factor"},
    {"ntk", ROPE_TYPE_NTK, "NTK-aware: a larger base, fixed"},
    {"dynamic", ROPE_TYPE_DYNAMIC, "NTK-aware: a base that grows with seq_len"},
    {"proportional", ROPE_TYPE_PROPORTIONAL,
     "Gemma: the exponent of the whole head, zero beyond a part of it"},
    {"yarn", ROPE_TYPE_YARN, "YaRN: low frequencies divided, high ones kept, a ramp between"},
    {"longrope", ROPE_TYPE_LONGROPE, "LongRoPE: a divisor of its own for each frequency, by length"},
    {"llama3", ROPE_TYPE_LLAMA3, "Llama 3.1: as YaRN, by wavelength"},
    {"ggml", ROPE_TYPE_GGML, "what ggml's arguments of rope say: see the field ggml"},
    {NULL, 0, NULL}};

const struct pe_field pe_rope_scaling_fields[ROPE_SCALING_N_FIELDS] = {
    [ROPE_KEY_ROPE_TYPE] = {PE_FIELD(rope_scaling, rope_type), .alias = "type", .choices = types,
                            .flags = PE_FIELD_REQUIRED, .doc = "How frequencies are stretched."},
    [ROPE_KEY_FACTOR] = {PE_FIELD(rope_scaling, factor), .min = 1e-6, .max = 1e6,
                         .doc = "How many times longer the context becomes."},
    [ROPE_KEY_ROPE_THETA] = {PE_FIELD(rope_scaling, rope_theta), .min = 1, .max = 1e300,
                             .doc = "The base, where a model's configuration has it here."},
    [ROPE_KEY_PARTIAL] =
        {PE_FIELD(rope_scaling, partial_rotary_factor), .min = 0, .max = 1, .flags = PE_FIELD_OPEN_MIN,
         .doc = "The part of the head that rotates, where a model's configuration has it here."},
    [ROPE_KEY_ORIGINAL] = {PE_FIELD(rope_scaling, original_max_position_embeddings), .min = 2,
                           .max = PE_POSITION_MAX, .doc = "The context of the training, in tokens."},
    [ROPE_KEY_ATTENTION] = {PE_FIELD(rope_scaling, attention_factor), .min = 1e-6, .max = 1e6,
                            .doc = "Factor of sines and cosines; it wins over what the type would give."},
    [ROPE_KEY_MSCALE] = {PE_FIELD(rope_scaling, mscale), .min = 0, .max = 1e3,
                         .doc = "DeepSeek's weight of ln(factor) in the attention factor; 0 is as absent."},
    [ROPE_KEY_MSCALE_ALL] =
        {PE_FIELD(rope_scaling, mscale_all_dim), .min = 0, .max = 1e3,
         .doc = "DeepSeek's weight of ln(factor) in the scale of the softmax; 0 is as absent."},
    [ROPE_KEY_BETA_FAST] = {PE_FIELD(rope_scaling, beta_fast), .min = 0, .max = 1e9,
                            .flags = PE_FIELD_OPEN_MIN,
                            .doc = "Turns within the original context from which frequencies are kept [32]."},
    [ROPE_KEY_BETA_SLOW] = {PE_FIELD(rope_scaling, beta_slow), .min = 0, .max = 1e9,
                            .flags = PE_FIELD_OPEN_MIN,
                            .doc = "Turns within the original context below which they are divided [1]."},
    [ROPE_KEY_TRUNCATE] = {PE_FIELD(rope_scaling, truncate),
                           .doc = "Whether the ends of the ramp are rounded outwards to whole pairs [true]."},
    [ROPE_KEY_LOW] = {PE_FIELD(rope_scaling, low_freq_factor), .min = 0, .max = 1e9,
                      .flags = PE_FIELD_OPEN_MIN,
                      .doc = "Turns within the original context below which frequencies are divided."},
    [ROPE_KEY_HIGH] = {PE_FIELD(rope_scaling, high_freq_factor), .min = 0, .max = 1e9,
                       .flags = PE_FIELD_OPEN_MIN,
                       .doc = "Turns within the original context above which frequencies are kept."},
    [ROPE_KEY_SHORT] = {PE_FIELD(rope_scaling, short_factor), .flags = PE_FIELD_NUMBERS,
                        .shape = "[rotary_dim/2]",
                        .doc = "Divisors for sequences up to the original context."},
    [ROPE_KEY_LONG] = {PE_FIELD(rope_scaling, long_factor), .flags = PE_FIELD_NUMBERS,
                       .shape = "[rotary_dim/2]", .doc = "Divisors for longer sequences."},
    [ROPE_KEY_FREQ_SCALE] = {PE_FIELD(rope_scaling, freq_scale), .min = 1e-6, .max = 1e3,
                             .doc = "ggml: factor of the angles [1]."},
    [ROPE_KEY_EXT] = {PE_FIELD(rope_scaling, ext_factor), .min = 0, .max = 1,
                      .doc = "ggml: how much of YaRN is mixed in [0]."},
    [ROPE_KEY_ATTN] = {PE_FIELD(rope_scaling, attn_factor), .min = 1e-6, .max = 1e6,
                       .doc = "ggml: factor of sines and cosines, beside YaRN's own [1]."},
    [ROPE_KEY_FREQ_FACTORS] = {PE_FIELD(rope_scaling, freq_factors), .flags = PE_FIELD_NUMBERS,
                               .shape = "[rotary_dim/2]", .doc = "ggml: a divisor of each frequency."},
};

struct type {
    uint64_t takes, needs; /* beside the keys that all take */
    bool needs_seq_len;
};

static const struct type type_rows[ROPE_TYPE_COUNT] = {
    [ROPE_TYPE_DEFAULT] = {0},
    [ROPE_TYPE_LINEAR] = {.takes = ROPE_BIT(ROPE_KEY_FACTOR), .needs = ROPE_BIT(ROPE_KEY_FACTOR)},
    [ROPE_TYPE_NTK] = {.takes = ROPE_BIT(ROPE_KEY_FACTOR), .needs = ROPE_BIT(ROPE_KEY_FACTOR)},
    [ROPE_TYPE_DYNAMIC] = {.takes = ROPE_BIT(ROPE_KEY_FACTOR) | ROPE_BIT(ROPE_KEY_ORIGINAL),
                           .needs = ROPE_BIT(ROPE_KEY_FACTOR) | ROPE_BIT(ROPE_KEY_ORIGINAL),
                           .needs_seq_len = true},
    [ROPE_TYPE_PROPORTIONAL] = {.takes = ROPE_BIT(ROPE_KEY_FACTOR)},
    [ROPE_TYPE_YARN] = {.takes = ROPE_BIT(ROPE_KEY_FACTOR) | ROPE_BIT(ROPE_KEY_ORIGINAL) |
                                 ROPE_BIT(ROPE_KEY_ATTENTION) | ROPE_BIT(ROPE_KEY_MSCALE) |
                                 ROPE_BIT(ROPE_KEY_MSCALE_ALL) | ROPE_BIT(ROPE_KEY_BETA_FAST) |
                                 ROPE_BIT(ROPE_KEY_BETA_SLOW) | ROPE_BIT(ROPE_KEY_TRUNCATE),
                        .needs = ROPE_BIT(ROPE_KEY_FACTOR) | ROPE_BIT(ROPE_KEY_ORIGINAL)},
    [ROPE_TYPE_LONGROPE] = {.takes = ROPE_BIT(ROPE_KEY_FACTOR) | ROPE_BIT(ROPE_KEY_ORIGINAL) |
                                     ROPE_BIT(ROPE_KEY_ATTENTION) | ROPE_BIT(ROPE_KEY_SHORT) |
                                     ROPE_BIT(ROPE_KEY_LONG),
                            .needs = ROPE_BIT(ROPE_KEY_ORIGINAL) | ROPE_BIT(ROPE_KEY_SHORT) |
                                     ROPE_BIT(ROPE_KEY_LONG),
                            .needs_seq_len = true},
    [ROPE_TYPE_LLAMA3] = {.takes = ROPE_BIT(ROPE_KEY_FACTOR) | ROPE_BIT(ROPE_KEY_ORIGINAL) |
                                   ROPE_BIT(ROPE_KEY_LOW) | ROPE_BIT(ROPE_KEY_HIGH),
                          .needs = ROPE_BIT(ROPE_KEY_FACTOR) | ROPE_BIT(ROPE_KEY_ORIGINAL) |
                                   ROPE_BIT(ROPE_KEY_LOW) | ROPE_BIT(ROPE_KEY_HIGH)},
    [ROPE_TYPE_GGML] = {.takes = ROPE_BIT(ROPE_KEY_FREQ_SCALE) | ROPE_BIT(ROPE_KEY_EXT) |
                                 ROPE_BIT(ROPE_KEY_ATTN) | ROPE_BIT(ROPE_KEY_FREQ_FACTORS) |
                                 ROPE_BIT(ROPE_KEY_ORIGINAL) | ROPE_BIT(ROPE_KEY_BETA_FAST) |
                                 ROPE_BIT(ROPE_KEY_BETA_SLOW)},
};
#define TAKEN_BY_ALL                                                                                         \
    (ROPE_BIT(ROPE_KEY_ROPE_TYPE) | ROPE_BIT(ROPE_KEY_ROPE_THETA) | ROPE_BIT(ROPE_KEY_PARTIAL))

/* ---- Checking ------------------------------------------------------------------------------------------ */

static int scaling_fail(struct pe_error *err, int code, int key, const char *text) {
    char path[80];
    snprintf(path, sizeof path, "scaling.%s", pe_rope_scaling_fields[key].name);
    return pe_fail(err, code, path, "%s", text);
}

/* Keys that the type needs, and keys that it would ignore. */
static int keys_check(const struct rope_scaling *scaling, struct pe_error *err) {
    const struct type *type = &type_rows[scaling->rope_type];
    const char *name = pe_choice_name(types, scaling->rope_type);
    for (int key = 0; key < ROPE_SCALING_N_FIELDS; key++) {
        bool given = scaling->given >> key & 1;
        char path[80];
        snprintf(path, sizeof path, "scaling.%s", pe_rope_scaling_fields[key].name);
        if (!given && (type->needs & ROPE_BIT(key))) {
            return pe_fail(err, PE_ERR_MISSING, path, "is missing, rope_type %s needs it", name);
        }
        if (given && !((type->takes | TAKEN_BY_ALL) & ROPE_BIT(key))) {
            return pe_fail(err, PE_ERR_UNKNOWN_FIELD, path, "rope_type %s does not use it", name);
        }
    }
    return PE_OK;
}

static int list_check(const struct rope *params, const struct pe_tensor *list, int key,
                      struct pe_error *err) {
    char path[80];
    size_t n = (size_t)pe_rope_width(params) / 2;
    snprintf(path, sizeof path, "scaling.%s", pe_rope_scaling_fields[key].name);
    if (list->rank != 1 || list->dim[0] != n) {
        char shape[128];
        return pe_fail(err, PE_ERR_SHAPE, path, "has shape %s, allowed is [%zu], one number for each pair",
                       pe_tensor_shape_text(list, shape, sizeof shape), n);
    }
    for (size_t i = 0; i < n; i++) {
        double divisor;
        pe_dtype_load(list->dtype, (const char *)list->data + i * pe_dtype_size(list->dtype), 1, &divisor);
        if (divisor < 1e-6 || divisor > 1e9) {
            snprintf(path, sizeof path, "scaling.%s[%zu]", pe_rope_scaling_fields[key].name, i);
            return pe_fail(err, PE_ERR_RANGE, path, "got %g, allowed is 1e-06 to 1e+09", divisor);
        }
    }
    return PE_OK;
}

/* The same thing said here and in a field of the encoding. */
static int twice_check(const struct rope *params, const struct rope_scaling *scaling, struct pe_error *err) {
    if ((scaling->given & ROPE_BIT(ROPE_KEY_ROPE_THETA)) && pe_rope_given(params, ROPE_BASE) &&
        params->base != scaling->rope_theta) {
        return scaling_fail(err, PE_ERR_CONFLICT, ROPE_KEY_ROPE_THETA, "differs from the field base");
    }
    if ((scaling->given & ROPE_BIT(ROPE_KEY_PARTIAL)) && params->partial_rotary_factor != 0 &&
        params->partial_rotary_factor != scaling->partial_rotary_factor) {
        return scaling_fail(err, PE_ERR_CONFLICT, ROPE_KEY_PARTIAL,
                            "differs from the field partial_rotary_factor");
    }
    return PE_OK;
}

/* Where a ramp of YaRN is: its ends are logarithms to the base, of turns within the context. */
static int ramp_check(const struct rope *params, const struct rope_scaling *scaling, struct pe_error *err) {
    int type = scaling->rope_type;
    bool mixes = type == ROPE_TYPE_GGML && scaling->ext_factor != 0;
    if ((type == ROPE_TYPE_YARN || mixes) && pe_rope_base(params) == 1) {
        return pe_fail(err, PE_ERR_RANGE, "base",
                       "is 1, rope_type %s needs more: all wavelengths are the same",
                       pe_choice_name(types, type));
    }
    if (mixes && !(scaling->given & ROPE_BIT(ROPE_KEY_ORIGINAL))) {
        return scaling_fail(err, PE_ERR_MISSING, ROPE_KEY_ORIGINAL, "is missing, ext_factor needs it");
    }
    return PE_OK;
}

static int values_check(const struct rope *params, const struct rope_scaling *scaling, struct pe_error *err) {
    int type = scaling->rope_type;
    if ((type == ROPE_TYPE_NTK || type == ROPE_TYPE_DYNAMIC) && pe_rope_width(params) < 4) {
        return pe_fail(err, PE_ERR_RANGE, "rotary_dim", "is %lld, rope_type %s needs 4 or more",
                       (long long)pe_rope_width(params), pe_choice_name(types, type));
    }
    if (type == ROPE_TYPE_LLAMA3 && scaling->low_freq_factor >= scaling->high_freq_factor) {
        return pe_fail(err, PE_ERR_RANGE, "scaling.high_freq_factor",
                       "is %g, must be above low_freq_factor, %g", scaling->high_freq_factor,
                       scaling->low_freq_factor);
    }
    if (type == ROPE_TYPE_LONGROPE &&
        !(scaling->given & (ROPE_BIT(ROPE_KEY_FACTOR) | ROPE_BIT(ROPE_KEY_ATTENTION)))) {
        return scaling_fail(err, PE_ERR_MISSING, ROPE_KEY_FACTOR,
                            "is missing, rope_type longrope needs it or attention_factor");
    }
    if (type == ROPE_TYPE_PROPORTIONAL && !(scaling->given & ROPE_BIT(ROPE_KEY_PARTIAL)) &&
        params->partial_rotary_factor == 0) {
        return scaling_fail(err, PE_ERR_MISSING, ROPE_KEY_PARTIAL,
                            "is missing, rope_type proportional needs it");
    }
    return PE_OK;
}

/* The last frequency is about 1/base, divided by the factor; no exponent may leave float64's. */
static int far_check(const struct rope *params, const struct rope_scaling *scaling, struct pe_error *err) {
    double d = (double)pe_rope_width(params), original = (double)scaling->original_max_position_embeddings;
    double decades = log10(pe_rope_base(params)), factor = scaling->factor > 1 ? scaling->factor : 1;
    double beyond = fmax((double)params->seq_len - original, 0);
    if (scaling->rope_type == ROPE_TYPE_NTK) {
        decades += log10(factor) * d / (d - 2);
    } else if (scaling->rope_type == ROPE_TYPE_DYNAMIC) {
        decades += log10(1 + scaling->factor * beyond / original) * d / (d - 2);
    } else { /* lists hold up to 1e9, freq_scale is from 1e-6 */
        decades += scaling->short_factor || scaling->freq_factors ? 9 : log10(factor);
        decades += scaling->given & ROPE_BIT(ROPE_KEY_FREQ_SCALE) ? 6 : 0;
    }
    return decades <= 300
               ? PE_OK
               : pe_fail(err, PE_ERR_RANGE, "base",
                         "is %g, with this scaling the last frequency may be 1e-%.0f, allowed is from 1e-300",
                         pe_rope_base(params), decades);
}

int pe_rope_scaling_check(const struct rope *params, struct pe_error *err) {
    const struct rope_scaling *scaling = params->scaling;
    if (keys_check(scaling, err) || twice_check(params, scaling, err) || values_check(params, scaling, err) ||
        ramp_check(params, scaling, err)) {
        return err->code;
    }
    if (type_rows[scaling->rope_type].needs_seq_len && params->seq_len == 0) {
        return pe_fail(
            err, PE_ERR_MISSING, "seq_len",
            "is missing, rope_type %s needs the length of the sequence, as frequencies depend on it",
            pe_choice_name(types, scaling->rope_type));
    }
    if (scaling->rope_type == ROPE_TYPE_LONGROPE &&
        (list_check(params, scaling->short_factor, ROPE_KEY_SHORT, err) ||
         list_check(params, scaling->long_factor, ROPE_KEY_LONG, err))) {
        return err->code;
    }
    if (scaling->freq_factors && list_check(params, scaling->freq_factors, ROPE_KEY_FREQ_FACTORS, err)) {
        return err->code;
    }
    return far_check(params, scaling, err);
}

int pe_rope_scaling_type(const char *name) {
    for (const struct pe_choice *type = types; type->name; type++) {
        if (strcmp(type->name, name) == 0) {
            return type->value;
        }
    }
    return 0;
}

bool pe_rope_scaling_takes(int type, int key) {
    return type_rows[type].takes >> key & 1;
}

bool pe_rope_scaling_needs(int type, int key) {
    return type_rows[type].needs >> key & 1;
}

/* Proportional frequencies of 0 pass: all of the head is in the formula. */
bool pe_rope_scaling_keeps_width(int type) {
    return type == ROPE_TYPE_PROPORTIONAL;
}

/* ---- Resolving ----------------------------------------------------------------------------------------- */

static void resolve_real(struct rope_scaling *scaling, int key, double *member, double value) {
    if (!(scaling->given & ROPE_BIT(key))) {
        *member = value;
        scaling->given |= ROPE_BIT(key);
    }
}

void pe_rope_scaling_resolve(struct rope_scaling *scaling) {
    if (scaling->rope_type == ROPE_TYPE_PROPORTIONAL) {
        resolve_real(scaling, ROPE_KEY_FACTOR, &scaling->factor, 1);
    }
    if (scaling->rope_type == ROPE_TYPE_GGML) {
        resolve_real(scaling, ROPE_KEY_FREQ_SCALE, &scaling->freq_scale, 1);
        resolve_real(scaling, ROPE_KEY_EXT, &scaling->ext_factor, 0);
        resolve_real(scaling, ROPE_KEY_ATTN, &scaling->attn_factor, 1);
        resolve_real(scaling, ROPE_KEY_BETA_FAST, &scaling->beta_fast, 32);
        resolve_real(scaling, ROPE_KEY_BETA_SLOW, &scaling->beta_slow, 1);
    }
    if (scaling->rope_type == ROPE_TYPE_YARN) {
        resolve_real(scaling, ROPE_KEY_BETA_FAST, &scaling->beta_fast, 32);
        resolve_real(scaling, ROPE_KEY_BETA_SLOW, &scaling->beta_slow, 1);
        scaling->truncate = !(scaling->given & ROPE_BIT(ROPE_KEY_TRUNCATE)) || scaling->truncate;
        scaling->given |= ROPE_BIT(ROPE_KEY_TRUNCATE);
    }
}
