/* SPDX-License-Identifier: MIT
 *
 * How the frequencies of rope are stretched for contexts longer than those of the training: the parameters,
 * as models' own configurations name them, which of them a type takes and needs, and what they may be. The
 * formulas are in rope_scaling_formulas.c.
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

static int scaling_fail(struct pe_error *err, int code, int key, const char *text) {
    char path[80];
    snprintf(path, sizeof path, "scaling.%s", pe_rope_scaling_fields[key].name);
    return pe_fail(err, code, path, "%s", text);
}

/* ---- What a type asks of its values -------------------------------------------------------------------- */

/* The exponent of the larger base is d/(d - 2). */
static int ntk_check(const struct rope *params, const struct rope_scaling *scaling, struct pe_error *err) {
    return pe_rope_width(params) >= 4
               ? PE_OK
               : pe_fail(err, PE_ERR_RANGE, "rotary_dim", "is %lld, rope_type %s needs 4 or more",
                         (long long)pe_rope_width(params), pe_choice_name(types, scaling->rope_type));
}

static int proportional_check(const struct rope *params, const struct rope_scaling *scaling,
                              struct pe_error *err) {
    return pe_rope_scaling_has(scaling, ROPE_KEY_PARTIAL) || params->partial_rotary_factor != 0
               ? PE_OK
               : scaling_fail(err, PE_ERR_MISSING, ROPE_KEY_PARTIAL,
                              "is missing, rope_type proportional needs it");
}

/* The ends of the ramp are logarithms to the base, of turns within the context. */
static int yarn_check(const struct rope *params, const struct rope_scaling *scaling, struct pe_error *err) {
    return pe_rope_base(params) > 1 ? PE_OK
                                    : pe_fail(err, PE_ERR_RANGE, "base",
                                              "is 1, rope_type %s needs more: all wavelengths are the same",
                                              pe_choice_name(types, scaling->rope_type));
}

static int longrope_check(const struct rope *params, const struct rope_scaling *scaling,
                          struct pe_error *err) {
    (void)params;
    return pe_rope_scaling_has(scaling, ROPE_KEY_FACTOR) || pe_rope_scaling_has(scaling, ROPE_KEY_ATTENTION)
               ? PE_OK
               : scaling_fail(err, PE_ERR_MISSING, ROPE_KEY_FACTOR,
                              "is missing, rope_type longrope needs it or attention_factor");
}

static int llama3_check(const struct rope *params, const struct rope_scaling *scaling, struct pe_error *err) {
    (void)params;
    return scaling->low_freq_factor <= scaling->high_freq_factor
               ? PE_OK
               : pe_fail(err, PE_ERR_RANGE, "scaling.high_freq_factor",
                         "is %g, must be low_freq_factor, %g, or above", scaling->high_freq_factor,
                         scaling->low_freq_factor);
}

/* As yarn's, where YaRN is mixed in. */
static int ggml_check(const struct rope *params, const struct rope_scaling *scaling, struct pe_error *err) {
    if (scaling->ext_factor == 0) {
        return PE_OK;
    }
    if (yarn_check(params, scaling, err)) {
        return err->code;
    }
    return pe_rope_scaling_has(scaling, ROPE_KEY_ORIGINAL)
               ? PE_OK
               : scaling_fail(err, PE_ERR_MISSING, ROPE_KEY_ORIGINAL, "is missing, ext_factor needs it");
}

/* How many decades the last frequency falls below 1/base at most. */
static double factor_decades(const struct rope *params, const struct rope_scaling *scaling) {
    (void)params;
    return scaling->factor > 1 ? log10(scaling->factor) : 0;
}

static double ntk_decades(const struct rope *params, const struct rope_scaling *scaling) {
    double d = (double)pe_rope_width(params);
    return factor_decades(params, scaling) * d / (d - 2);
}

static double dynamic_decades(const struct rope *params, const struct rope_scaling *scaling) {
    double d = (double)pe_rope_width(params), original = (double)scaling->original_max_position_embeddings;
    double beyond = fmax((double)params->seq_len - original, 0);
    return log10(1 + scaling->factor * beyond / original) * d / (d - 2);
}

/* A list holds divisors up to 1e9. */
static double list_decades(const struct rope *params, const struct rope_scaling *scaling) {
    (void)params;
    (void)scaling;
    return 9;
}

/* And freq_scale, which is 1 where it is not given. */
static double ggml_decades(const struct rope *params, const struct rope_scaling *scaling) {
    (void)params;
    double scale = pe_rope_scaling_has(scaling, ROPE_KEY_FREQ_SCALE) ? scaling->freq_scale : 1;
    return (scaling->freq_factors ? 9 : 0) - fmin(log10(scale), 0);
}

/* ---- The types ----------------------------------------------------------------------------------------- */

struct type {
    uint64_t takes, needs; /* keys: those it may have beside those it needs, and those that all take */
    uint64_t usual; /* of those it takes: where they are not given, they are as usual_values has them */
    bool needs_seq_len;
    bool keeps_width; /* all of the head is in the formula, whatever part of it turns */
    int (*check)(const struct rope *params, const struct rope_scaling *scaling, struct pe_error *err);
    double (*decades)(const struct rope *params, const struct rope_scaling *scaling); /* NULL = 0 */
};

#define TAKEN_BY_ALL                                                                                         \
    (ROPE_BIT(ROPE_KEY_ROPE_TYPE) | ROPE_BIT(ROPE_KEY_ROPE_THETA) | ROPE_BIT(ROPE_KEY_PARTIAL))
#define FACTOR   ROPE_BIT(ROPE_KEY_FACTOR)
#define ORIGINAL ROPE_BIT(ROPE_KEY_ORIGINAL)
#define RAMP     (ROPE_BIT(ROPE_KEY_BETA_FAST) | ROPE_BIT(ROPE_KEY_BETA_SLOW))
#define GGML     (ROPE_BIT(ROPE_KEY_FREQ_SCALE) | ROPE_BIT(ROPE_KEY_EXT) | ROPE_BIT(ROPE_KEY_ATTN))

ROPE_TYPES_KNOWN(10);

static const struct type type_rows[ROPE_TYPE_COUNT] = {
    [ROPE_TYPE_DEFAULT] = {0},
    [ROPE_TYPE_LINEAR] = {.needs = FACTOR, .decades = factor_decades},
    [ROPE_TYPE_NTK] = {.needs = FACTOR, .check = ntk_check, .decades = ntk_decades},
    [ROPE_TYPE_DYNAMIC] = {.needs = FACTOR | ORIGINAL,
                           .needs_seq_len = true,
                           .check = ntk_check,
                           .decades = dynamic_decades},
    [ROPE_TYPE_PROPORTIONAL] = {.takes = FACTOR,
                                .usual = FACTOR,
                                .keeps_width = true,
                                .check = proportional_check,
                                .decades = factor_decades},
    [ROPE_TYPE_YARN] = {.needs = FACTOR | ORIGINAL,
                        .takes = RAMP | ROPE_BIT(ROPE_KEY_TRUNCATE) | ROPE_BIT(ROPE_KEY_ATTENTION) |
                                 ROPE_BIT(ROPE_KEY_MSCALE) | ROPE_BIT(ROPE_KEY_MSCALE_ALL),
                        .usual = RAMP | ROPE_BIT(ROPE_KEY_TRUNCATE),
                        .check = yarn_check,
                        .decades = factor_decades},
    [ROPE_TYPE_LONGROPE] = {.needs = ORIGINAL | ROPE_BIT(ROPE_KEY_SHORT) | ROPE_BIT(ROPE_KEY_LONG),
                            .takes = FACTOR | ROPE_BIT(ROPE_KEY_ATTENTION),
                            .needs_seq_len = true,
                            .check = longrope_check,
                            .decades = list_decades},
    [ROPE_TYPE_LLAMA3] = {.needs = FACTOR | ORIGINAL | ROPE_BIT(ROPE_KEY_LOW) | ROPE_BIT(ROPE_KEY_HIGH),
                          .check = llama3_check,
                          .decades = factor_decades},
    [ROPE_TYPE_GGML] = {.takes = GGML | RAMP | ORIGINAL | ROPE_BIT(ROPE_KEY_FREQ_FACTORS),
                        .usual = GGML | RAMP,
                        .check = ggml_check,
                        .decades = ggml_decades},
};

static const double usual_values[ROPE_SCALING_N_FIELDS] = {
    [ROPE_KEY_FACTOR] = 1,   [ROPE_KEY_BETA_FAST] = 32, [ROPE_KEY_BETA_SLOW] = 1,
    [ROPE_KEY_TRUNCATE] = 1, [ROPE_KEY_FREQ_SCALE] = 1, [ROPE_KEY_ATTN] = 1,
};

/* ---- Keys without effect ------------------------------------------------------------------------------- */

static bool lacks_all_dim(const struct rope_scaling *scaling) {
    return scaling->mscale != 0 && scaling->mscale_all_dim == 0; /* 0 is as absent */
}

static bool has_attention(const struct rope_scaling *scaling) {
    return pe_rope_scaling_has(scaling, ROPE_KEY_ATTENTION);
}

static bool mixes_nothing(const struct rope_scaling *scaling) {
    return scaling->ext_factor == 0;
}

/* What a type takes, but not beside, or without, another of its keys: who gives it expects something of it.
 */
static const struct idle {
    int type, key;
    bool (*is)(const struct rope_scaling *scaling);
    const char *why;
} idle_rows[] = {
    {ROPE_TYPE_YARN, ROPE_KEY_MSCALE, has_attention, "has no effect beside attention_factor"},
    {ROPE_TYPE_YARN, ROPE_KEY_MSCALE, lacks_all_dim, "has no effect without mscale_all_dim"},
    {ROPE_TYPE_LONGROPE, ROPE_KEY_FACTOR, has_attention, "has no effect beside attention_factor"},
    {ROPE_TYPE_GGML, ROPE_KEY_ORIGINAL, mixes_nothing, "has no effect where ext_factor is 0"},
    {ROPE_TYPE_GGML, ROPE_KEY_BETA_FAST, mixes_nothing, "has no effect where ext_factor is 0"},
    {ROPE_TYPE_GGML, ROPE_KEY_BETA_SLOW, mixes_nothing, "has no effect where ext_factor is 0"},
};

static const struct idle *idle_row(const struct rope_scaling *scaling, int key) {
    for (size_t i = 0; i < PE_COUNT(idle_rows); i++) {
        const struct idle *row = &idle_rows[i];
        if (row->type == scaling->rope_type && row->key == key && row->is(scaling)) {
            return row;
        }
    }
    return NULL;
}

/* ---- Checking ------------------------------------------------------------------------------------------ */

/* Keys that the type needs, and keys that would be ignored. */
static int keys_check(const struct rope_scaling *scaling, struct pe_error *err) {
    const struct type *type = &type_rows[scaling->rope_type];
    const char *name = pe_choice_name(types, scaling->rope_type);
    for (int key = 0; key < ROPE_SCALING_N_FIELDS; key++) {
        bool given = pe_rope_scaling_has(scaling, key);
        char path[80];
        snprintf(path, sizeof path, "scaling.%s", pe_rope_scaling_fields[key].name);
        if (!given && (type->needs & ROPE_BIT(key))) {
            return pe_fail(err, PE_ERR_MISSING, path, "is missing, rope_type %s needs it", name);
        }
        if (given && !((type->needs | type->takes | TAKEN_BY_ALL) & ROPE_BIT(key))) {
            return pe_fail(err, PE_ERR_UNKNOWN_FIELD, path, "rope_type %s does not use it", name);
        }
        const struct idle *idle = given ? idle_row(scaling, key) : NULL;
        if (idle) {
            return pe_fail(err, PE_ERR_CONFLICT, path, "%s", idle->why);
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
        double divisor = pe_rope_scaling_number(list, i);
        if (divisor < 1e-6 || divisor > 1e9) {
            snprintf(path, sizeof path, "scaling.%s[%zu]", pe_rope_scaling_fields[key].name, i);
            return pe_fail(err, PE_ERR_RANGE, path, "got %g, allowed is 1e-06 to 1e+09", divisor);
        }
    }
    return PE_OK;
}

/* The same thing said here and in a field of the encoding. */
static int twice_check(const struct rope *params, const struct rope_scaling *scaling, struct pe_error *err) {
    if (pe_rope_scaling_has(scaling, ROPE_KEY_ROPE_THETA) && pe_rope_given(params, ROPE_BASE) &&
        params->base != scaling->rope_theta) {
        return scaling_fail(err, PE_ERR_CONFLICT, ROPE_KEY_ROPE_THETA, "differs from the field base");
    }
    if (pe_rope_scaling_has(scaling, ROPE_KEY_PARTIAL) && params->partial_rotary_factor != 0 &&
        params->partial_rotary_factor != scaling->partial_rotary_factor) {
        return scaling_fail(err, PE_ERR_CONFLICT, ROPE_KEY_PARTIAL,
                            "differs from the field partial_rotary_factor");
    }
    return PE_OK;
}

/* The last frequency is about 1/base, divided by what the type makes of it; no exponent may leave
 * float64's. */
static int far_check(const struct rope *params, const struct rope_scaling *scaling, struct pe_error *err) {
    const struct type *type = &type_rows[scaling->rope_type];
    double decades = log10(pe_rope_base(params)) + (type->decades ? type->decades(params, scaling) : 0);
    return decades <= 300
               ? PE_OK
               : pe_fail(err, PE_ERR_RANGE, "base",
                         "is %g, with this scaling the last frequency may be 1e-%.0f, allowed is from 1e-300",
                         pe_rope_base(params), decades);
}

static int lists_check(const struct rope *params, const struct rope_scaling *scaling, struct pe_error *err) {
    const struct {
        int key;
        const struct pe_tensor *list;
    } lists[] = {{ROPE_KEY_SHORT, scaling->short_factor},
                 {ROPE_KEY_LONG, scaling->long_factor},
                 {ROPE_KEY_FREQ_FACTORS, scaling->freq_factors}};
    for (size_t i = 0; i < PE_COUNT(lists); i++) {
        if (lists[i].list && list_check(params, lists[i].list, lists[i].key, err)) {
            return err->code;
        }
    }
    return PE_OK;
}

int pe_rope_scaling_check(const struct rope *params, struct pe_error *err) {
    const struct rope_scaling *scaling = params->scaling;
    const struct type *type = &type_rows[scaling->rope_type];
    if (keys_check(scaling, err) || twice_check(params, scaling, err) ||
        (type->check && type->check(params, scaling, err))) {
        return err->code;
    }
    if (type->needs_seq_len && params->seq_len == 0) {
        return pe_fail(
            err, PE_ERR_MISSING, "seq_len",
            "is missing, rope_type %s needs the length of the sequence, as frequencies depend on it",
            pe_choice_name(types, scaling->rope_type));
    }
    return lists_check(params, scaling, err) || far_check(params, scaling, err) ? err->code : PE_OK;
}

bool pe_rope_scaling_has(const struct rope_scaling *scaling, int key) {
    return (scaling->given & ROPE_BIT(key)) != 0;
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
    return ((type_rows[type].takes | type_rows[type].needs) & ROPE_BIT(key)) != 0;
}

bool pe_rope_scaling_needs(int type, int key) {
    return (type_rows[type].needs & ROPE_BIT(key)) != 0;
}

bool pe_rope_scaling_keeps_width(int type) {
    return type_rows[type].keeps_width;
}

/* ---- Resolving ----------------------------------------------------------------------------------------- */

void pe_rope_scaling_resolve(struct rope_scaling *scaling) {
    uint64_t missing = type_rows[scaling->rope_type].usual & ~scaling->given;
    for (int key = 0; key < ROPE_SCALING_N_FIELDS; key++) {
        const struct pe_field *row = &pe_rope_scaling_fields[key];
        void *member = (char *)scaling + row->offset;
        if (!(missing & ROPE_BIT(key)) || idle_row(scaling, key)) {
            missing &= ~ROPE_BIT(key);
            continue;
        }
        if (row->kind == PE_KIND_BOOL) {
            *(bool *)member = usual_values[key] != 0;
        } else {
            *(double *)member = usual_values[key];
        }
    }
    scaling->given |= missing;
}
