/* SPDX-License-Identifier: MIT
 *
 * rope in the words of ggml (the arguments of ggml_rope_ext and ggml_rope_multi), which become the fields of
 * the encoding. With pairs i < d/2, p the position, ff_i = freq_factors, or 1, e = ext_factor:
 *
 *     extrap = p * freq_base^(-2i/d) / ff_i,     interp = freq_scale * extrap
 *     e = 0     the angle is interp, sines and cosines are times attn_factor
 *     else      the angle is interp * (1 - m_i) + extrap * m_i,
 *               m_i = e * (1 - clip((i - low)/max(0.001, high - low), 0, 1)),
 *               sines and cosines are times attn_factor * (1 + 0.1*ln(1/freq_scale))
 *
 * with low and high as YaRN has them for n_ctx_orig, beta_fast and beta_slow, rounded outwards.
 *
 * Those numbers are the scaling of rope_type ggml (rope_scaling.c, rope_scaling_formulas.c), unless they say
 * nothing. The mode is the layout of the pairs, and how sections share them out.
 */
#include "encodings/rope.h"

enum {
    ROW_FREQ_BASE,
    ROW_FREQ_SCALE,
    ROW_EXT,
    ROW_ATTN,
    ROW_FAST,
    ROW_SLOW,
    ROW_FACTORS,
    ROW_MODE,
    ROW_N_CTX,
    ROW_SECTIONS
};
enum { MODE_NORMAL = 0, MODE_NEOX = 2, MODE_MROPE = 8, MODE_VISION = 24, MODE_IMROPE = 40 };

const struct pe_field pe_rope_ggml_fields[ROPE_GGML_N_FIELDS] = {
    [ROW_FREQ_BASE] = {PE_FIELD(rope_ggml, freq_base), .min = 1, .max = 1e300, .def = "10000",
                       .doc = "Base of the frequencies."},
    [ROW_FREQ_SCALE] = {PE_FIELD(rope_ggml, freq_scale), .min = 1e-6, .max = 1e3, .def = "1",
                        .doc = "Factor of the angles: 1/f for a context f times as long."},
    [ROW_EXT] = {PE_FIELD(rope_ggml, ext_factor), .min = 0, .max = 1, .def = "0",
                 .doc = "How much of YaRN is mixed in: 0 none, 1 all."},
    [ROW_ATTN] = {PE_FIELD(rope_ggml, attn_factor), .min = 1e-6, .max = 1e6, .def = "1",
                  .doc = "Factor of sines and cosines, beside YaRN's own."},
    [ROW_FAST] = {PE_FIELD(rope_ggml, beta_fast), .min = 0, .max = 1e9, .flags = PE_FIELD_OPEN_MIN,
                  .def = "32", .doc = "YaRN: turns within n_ctx_orig from which frequencies are kept."},
    [ROW_SLOW] = {PE_FIELD(rope_ggml, beta_slow), .min = 0, .max = 1e9, .flags = PE_FIELD_OPEN_MIN,
                  .def = "1", .doc = "YaRN: turns within n_ctx_orig below which they are scaled."},
    [ROW_FACTORS] = {PE_FIELD(rope_ggml, freq_factors), .flags = PE_FIELD_NUMBERS, .shape = "[rotary_dim/2]",
                     .doc = "A divisor of each frequency, as converted Llama 3.1 and Phi-3 have them."},
    [ROW_MODE] = {PE_FIELD(rope_ggml, mode), .min = 0, .max = 1024,
                  .doc = "0 normal (pairs are interleaved), 2 NEOX (halves), 8 MROPE, 40 IMROPE; where it is "
                         "missing, the field layout must be there."},
    [ROW_N_CTX] = {PE_FIELD(rope_ggml, n_ctx_orig), .min = 0, .max = PE_POSITION_MAX, .def = "0",
                   .doc = "YaRN: the context of the training, in tokens."},
    [ROW_SECTIONS] = {PE_FIELD(rope_ggml, sections), .min = 0, .max = 32768,
                      .doc = "MROPE and IMROPE: how many pairs each of four coordinates turns."},
};

static bool is_given(const struct rope_ggml *ggml, int row) {
    return (ggml->given & ROPE_BIT(row)) != 0;
}

/* ---- The mode ------------------------------------------------------------------------------------------ */

static int mode_check(const struct rope *params, const struct rope_ggml *ggml, struct pe_error *err) {
    if (!is_given(ggml, ROW_MODE)) {
        return params->layout ? PE_OK
                              : pe_fail(err, PE_ERR_MISSING, "ggml.mode",
                                        "is missing, it tells the layout: 0 (interleaved) or 2 (halves)");
    }
    if (ggml->mode == MODE_VISION) {
        return pe_fail(err, PE_ERR_CHOICE, "ggml.mode",
                       "24 (vision) shares the pairs out to the axes of an image: give the field rope_axes "
                       "in its place");
    }
    if (ggml->mode != MODE_NORMAL && ggml->mode != MODE_NEOX && ggml->mode != MODE_MROPE &&
        ggml->mode != MODE_IMROPE) {
        return pe_fail(err, PE_ERR_CHOICE, "ggml.mode",
                       "must be 0 (normal), 2 (NEOX), 8 (MROPE) or 40 (IMROPE), got %lld",
                       (long long)ggml->mode);
    }
    return PE_OK;
}

static int sections_check(const struct rope_ggml *ggml, bool wanted, struct pe_error *err) {
    bool given = is_given(ggml, ROW_SECTIONS);
    if (wanted && !given) {
        return pe_fail(err, PE_ERR_MISSING, "ggml.sections",
                       "is missing, mode %lld shares the pairs out by them", (long long)ggml->mode);
    }
    if (given && !wanted) {
        return pe_fail(err, PE_ERR_CONFLICT, "ggml.sections", "are of the modes 8 and 40");
    }
    if (given && ggml->sections.n != 4) {
        return pe_fail(err, PE_ERR_SHAPE, "ggml.sections", "got %zu numbers, allowed are 4: t, h, w and e",
                       ggml->sections.n);
    }
    return PE_OK;
}

static int adopt_mode(struct rope *params, const struct rope_source *source, const struct rope_ggml *ggml,
                      struct pe_error *err) {
    bool multi = is_given(ggml, ROW_MODE) && (ggml->mode == MODE_MROPE || ggml->mode == MODE_IMROPE);
    if (mode_check(params, ggml, err) || sections_check(ggml, multi, err)) {
        return err->code;
    }
    int layout = ggml->mode == MODE_NORMAL ? ROPE_LAYOUT_INTERLEAVED : ROPE_LAYOUT_HALVES;
    if (is_given(ggml, ROW_MODE) && pe_rope_adopt_layout(params, source, layout, err)) {
        return err->code;
    }
    return multi ? pe_rope_adopt_sections(params, source, &ggml->sections,
                                          ggml->mode == MODE_IMROPE ? ROPE_INTERLEAVED : ROPE_CONTIGUOUS, err)
                 : PE_OK;
}

/* ---- The scaling --------------------------------------------------------------------------------------- */

/* Do the numbers say anything? */
static bool is_plain(const struct rope_ggml *ggml) {
    return ggml->freq_scale == 1 && ggml->ext_factor == 0 && ggml->attn_factor == 1 && !ggml->freq_factors;
}

static struct rope_scaling scaling_of(const struct rope_ggml *ggml) {
    struct rope_scaling scaling = {.given = ROPE_BIT(ROPE_KEY_ROPE_TYPE), .rope_type = ROPE_TYPE_DEFAULT};
    if (is_plain(ggml)) {
        return scaling;
    }
    scaling.rope_type = ROPE_TYPE_GGML;
    scaling.freq_scale = ggml->freq_scale;
    scaling.ext_factor = ggml->ext_factor;
    scaling.attn_factor = ggml->attn_factor;
    scaling.freq_factors = ggml->freq_factors;
    scaling.given |= ROPE_BIT(ROPE_KEY_FREQ_SCALE) | ROPE_BIT(ROPE_KEY_EXT) | ROPE_BIT(ROPE_KEY_ATTN) |
                     (ggml->freq_factors ? ROPE_BIT(ROPE_KEY_FREQ_FACTORS) : 0);
    if (ggml->ext_factor != 0) {
        scaling.beta_fast = ggml->beta_fast;
        scaling.beta_slow = ggml->beta_slow;
        scaling.original_max_position_embeddings = ggml->n_ctx_orig;
        scaling.given |=
            ROPE_BIT(ROPE_KEY_BETA_FAST) | ROPE_BIT(ROPE_KEY_BETA_SLOW) | ROPE_BIT(ROPE_KEY_ORIGINAL);
    }
    return scaling;
}

int pe_rope_ggml_adopt(struct rope *params, struct pe_error *err) {
    const struct rope_source source = {.name = "ggml", .model = "ggml.mode"};
    const struct rope_ggml *ggml = params->ggml;
    if (params->hf_config.n) {
        return pe_fail(err, PE_ERR_CONFLICT, "ggml",
                       "hf_config is there, too: the model is described by one of them");
    }
    if (ggml->ext_factor != 0 && ggml->n_ctx_orig < 2) {
        return pe_fail(err, PE_ERR_MISSING, "ggml.n_ctx_orig",
                       "is missing, ext_factor %g needs the context of the training, from 2",
                       ggml->ext_factor);
    }
    const struct rope_scaling scaling = scaling_of(ggml);
    if (adopt_mode(params, &source, ggml, err) || pe_rope_adopt_base(params, &source, ggml->freq_base, err) ||
        pe_rope_adopt_scaling(params, &source, &scaling, err)) {
        return err->code;
    }
    return PE_OK;
}
