/* SPDX-License-Identifier: MIT
 *
 * Rotary encodings (Su et al. 2021, RoFormer): pair i of a query or key at position p is turned by an angle,
 *
 *     (a, b) -> (a cos x - b sin x, b cos x + a sin x),     x = p * omega_i,     omega_i = base^(-2i/d)
 *
 * so that the product of a query at m and a key at n depends on m - n alone. d is rotary_dim, the part of the
 * head that turns; the rest passes. Which columns are a pair is what models differ by, and what is mixed up
 * most:
 *
 *     halves        (i, i + d/2)     Llama as Hugging Face has it, GPT-NeoX, Mistral, Qwen, Gemma, Phi
 *     interleaved   (2i, 2i + 1)     RoFormer, GPT-J, Llama as Meta has it, DeepSeek
 *
 * Scalings for long contexts are rows of rope_scaling.c. Several coordinates turn pairs of their own:
 * `sections` of M-RoPE (text, height, width), or the axes of an image (rope_axes.c). Angles are exact, see
 * core/phase.h.
 */
#include "encodings/rope.h"

#include "core/admit.h"

#include <math.h>
#include <string.h>

static const struct pe_choice layouts[] = {
    {"halves", ROPE_LAYOUT_HALVES,
     "pair i is columns i and i + rotary_dim/2: Llama, Mistral, Qwen, Gemma and Phi in transformers, "
     "GPT-NeoX, "
     "keras-hub, ggml mode 2"},
    {"interleaved", ROPE_LAYOUT_INTERLEAVED,
     "pair i is columns 2i and 2i + 1: RoFormer, GPT-J, Meta's own Llama, torchtune, DeepSeek, ggml mode 0"},
    {NULL, 0, NULL}};
static const struct pe_choice directions[] = {
    {"counterclockwise", ROPE_COUNTERCLOCKWISE, "from the first column of a pair to the second: nearly all"},
    {"clockwise", ROPE_CLOCKWISE, "the other way: nanochat; scores are the same"},
    {NULL, 0, NULL}};
static const struct pe_choice section_layouts[] = {
    {"contiguous", ROPE_CONTIGUOUS, "t t ... h h ... w w ...: Qwen2-VL, Qwen2.5-VL"},
    {"interleaved", ROPE_INTERLEAVED, "t h w t h w ... t t: Qwen3-VL, ggml's IMROPE"},
    {NULL, 0, NULL}};

#define OBJECT(member, rows, type)                                                                           \
    PE_FIELD(rope, member), .fields = rows, .n_fields = PE_COUNT(rows), .object_size = sizeof(struct type)

static const struct pe_field xpos_fields[] = {
    {PE_FIELD(rope_xpos, scale_base), .min = 1, .max = 1e9, .def = "512",
     .doc = "Positions over which a pair grows or shrinks by its zeta."},
    {PE_FIELD(rope_xpos, center), .min = -PE_POSITION_MAX, .max = PE_POSITION_MAX, .def = "0",
     .doc = "The position that is not scaled; in the middle of the sequence the numbers stay small."},
};

static const struct pe_field fields[] = {
    [ROPE_HEAD_DIM] = {PE_FIELD(rope, head_dim), .min = 2, .max = 65536,
                       .flags = PE_FIELD_REQUIRED | PE_FIELD_WIDTH,
                       .doc = "Width of one head's query or key."},
    [ROPE_ROTARY_DIM] = {PE_FIELD(rope, rotary_dim), .min = 2, .max = 65536,
                         .doc = "How many of its columns turn, the first ones; even [all]."},
    [ROPE_PARTIAL] = {PE_FIELD(rope, partial_rotary_factor), .min = 0, .max = 1, .flags = PE_FIELD_OPEN_MIN,
                      .doc = "The same as a part of head_dim, rounded down."},
    [ROPE_BASE] = {PE_FIELD(rope, base), .alias = "rope_theta", .min = 1, .max = 1e300, .def = "10000",
                   .doc = "Base of the frequencies, which run from 1 down towards 1/base."},
    [ROPE_LAYOUT] = {PE_FIELD(rope, layout), .choices = layouts, .flags = PE_FIELD_REQUIRED,
                     .doc =
                         "Which columns are a pair. Models differ, and a wrong guess is not seen at once."},
    [ROPE_DIRECTION] = {PE_FIELD(rope, direction), .choices = directions, .def = "counterclockwise",
                        .doc = "Which way pairs turn as positions grow."},
    [ROPE_SCALING] =
        {PE_FIELD(rope, scaling), .alias = "rope_scaling rope_parameters", .fields = rope_scaling_fields,
         .n_fields = ROPE_SCALING_N_FIELDS, .object_size = sizeof(struct rope_scaling),
         .doc = "How frequencies are stretched for long contexts, as models' configurations say it."},
    [ROPE_SEQ_LEN] = {PE_FIELD(rope, seq_len), .min = 1, .max = PE_POSITION_MAX,
                      .doc =
                          "Length of the sequence, for rope_type dynamic and longrope, which depend on it."},
    [ROPE_SECTIONS] =
        {PE_FIELD(rope, sections), .alias = "mrope_section", .min = 0, .max = 32768,
         .doc = "M-RoPE: how many pairs each coordinate (t, h, w) turns; their sum is rotary_dim/2."},
    [ROPE_SECTION_LAYOUT] = {PE_FIELD(rope, section_layout), .choices = section_layouts,
                             .doc = "M-RoPE: which pairs those are [contiguous]."},
    [ROPE_AXES] = {PE_FIELD(rope, rope_axes), .fields = rope_axes_fields, .n_fields = ROPE_AXES_N_FIELDS,
                   .object_size = sizeof(struct rope_axes),
                   .doc = "Vision: every axis of an image turns a share of the pairs."},
    [ROPE_XPOS] = {OBJECT(xpos, xpos_fields, rope_xpos),
                   .doc = "xPos: queries decay and keys grow with position."},
    [ROPE_QK_HEAD_DIM] = {PE_FIELD(rope, qk_head_dim), .min = 1, .max = 65536,
                          .doc =
                              "Width of the whole query, of which the softmax takes the root, where that is "
                              "not head_dim: 192 for DeepSeek-V3 [head_dim]."},
    [ROPE_HF_CONFIG] = {PE_FIELD(rope, hf_config),
                        .doc = "A model's config.json as it is; it says all of the above but seq_len."},
    [ROPE_LAYER_TYPE] =
        {PE_FIELD(rope, layer_type),
         .doc = "Of hf_config: which layers, where they differ: full_attention or sliding_attention."},
};

static bool is_given(const struct rope *params, int field) {
    return params->given >> field & 1;
}

bool rope_base_given(const struct rope *params) {
    return is_given(params, ROPE_BASE);
}

double rope_base(const struct rope *params) {
    const struct rope_scaling *scaling = params->scaling;
    return scaling && scaling->rope_theta != 0 ? scaling->rope_theta : params->base;
}

/* Of a proportional scaling all of the head is in the formula, with frequencies of 0 where it passes. */
int64_t rope_width(const struct rope *params) {
    const struct rope_scaling *scaling = params->scaling;
    double part = params->partial_rotary_factor;
    if (params->rotary_dim != 0) {
        return params->rotary_dim;
    }
    if (part == 0 && scaling) {
        part = scaling->partial_rotary_factor;
    }
    return part == 0 || (scaling && rope_scaling_keeps_width(scaling))
               ? params->head_dim
               : (int64_t)(part * (double)params->head_dim);
}

/* ---- Checking ------------------------------------------------------------------------------------------ */

static int width_check(const struct rope *params, struct pe_error *err) {
    int64_t width = rope_width(params);
    const char *field = params->rotary_dim          ? "rotary_dim"
                        : width == params->head_dim ? "head_dim"
                                                    : "partial_rotary_factor";
    if (params->rotary_dim && params->partial_rotary_factor != 0 &&
        params->rotary_dim != (int64_t)(params->partial_rotary_factor * (double)params->head_dim)) {
        return pe_fail(err, PE_ERR_CONFLICT, "rotary_dim",
                       "is %lld, but partial_rotary_factor %g of head_dim %lld is %lld",
                       (long long)params->rotary_dim, params->partial_rotary_factor,
                       (long long)params->head_dim,
                       (long long)(params->partial_rotary_factor * (double)params->head_dim));
    }
    if (width > params->head_dim) {
        return pe_fail(err, PE_ERR_RANGE, field, "is %lld, allowed is at most head_dim, %lld",
                       (long long)width, (long long)params->head_dim);
    }
    if (width < 2 || width % 2 != 0) {
        return pe_fail(
            err, PE_ERR_RANGE, field,
            "makes a width of %lld that turns, allowed are even ones from 2: columns turn in pairs",
            (long long)width);
    }
    return PE_OK;
}

static int sections_check(const struct rope *params, struct pe_error *err) {
    const struct pe_ints *sections = &params->sections;
    int64_t sum = 0, pairs = rope_width(params) / 2;
    if (!is_given(params, ROPE_SECTIONS)) {
        return params->section_layout == 0
                   ? PE_OK
                   : pe_fail(err, PE_ERR_MISSING, "sections",
                             "is missing, section_layout tells how they are laid out");
    }
    for (size_t i = 0; i < sections->n; i++) {
        sum += sections->v[i];
    }
    if (sections->n < 2 || sections->n > ROPE_MAX_AXES || sum != pairs) {
        return pe_fail(err, PE_ERR_RANGE, "sections",
                       "%zu numbers with the sum %lld, allowed are 2 to %d with the sum %lld, "
                       "the number of pairs",
                       sections->n, (long long)sum, ROPE_MAX_AXES, (long long)pairs);
    }
    if (params->section_layout == ROPE_INTERLEAVED && sections->n != 3 &&
        !(sections->n == 4 && sections->v[3] == 0)) {
        return pe_fail(err, PE_ERR_RANGE, "sections", "got %zu numbers, interleaved ones are 3: t, h and w",
                       sections->n);
    }
    return PE_OK;
}

static int one_of_check(const struct rope *params, struct pe_error *err) {
    bool sections = is_given(params, ROPE_SECTIONS);
    if (params->rope_axes && sections) {
        return pe_fail(err, PE_ERR_CONFLICT, "rope_axes",
                       "sections are there, too: pairs are shared out by one of them");
    }
    if (params->rope_axes && params->scaling) {
        return pe_fail(err, PE_ERR_CONFLICT, "rope_axes",
                       "scaling is there, too: it is for one sequence of positions");
    }
    if (params->xpos && (params->rope_axes || sections || params->scaling)) {
        return pe_fail(err, PE_ERR_CONFLICT, "xpos", "is defined for one coordinate without scaling only");
    }
    return PE_OK;
}

static int adopt(void *data, struct pe_error *err) {
    struct rope *params = data;
    return params->hf_config.n ? rope_config_adopt(params, err) : PE_OK;
}

static int check(const void *data, struct pe_error *err) {
    const struct rope *params = data;
    if (width_check(params, err) || sections_check(params, err) || one_of_check(params, err) ||
        (params->scaling && rope_scaling_check(params, err)) ||
        (params->rope_axes && rope_axes_check(params, err))) {
        return err->code;
    }
    return PE_OK;
}

static int admit(const struct pe_plan_view *view, const struct pe_positions *positions,
                 struct pe_error *err) {
    const struct rope_plan *plan = view->data;
    const struct rope *params = view->params;
    bool text = positions->axes == 1 && !params->rope_axes; /* M-RoPE: a text's t, h and w are the same */
    if (positions->axes != plan->axes && !text) {
        return pe_fail(err, PE_ERR_SHAPE, "", "have %d coordinates each, this encoding takes %d%s",
                       positions->axes, plan->axes,
                       plan->axes > 1 && !params->rope_axes ? ", or one that stands for all" : "");
    }
    return PE_OK;
}

/* No value is above the attention factor, or above what xPos grows to. */
static int fits(const struct pe_plan_view *view, const struct pe_positions *positions, enum pe_dtype dtype,
                double limit, struct pe_error *err) {
    const struct rope_plan *plan = view->data;
    struct pe_stray stray;
    if (!plan->rates) {
        return plan->gain.nearest < limit || pe_positions_count(positions) == 0
                   ? PE_OK
                   : pe_positions_overflow(positions, 0, plan->gain.nearest, dtype, limit, err);
    }
    double rate = fabs(pe_wide_double(&plan->rates[0])), reach = log(limit) / rate * (1 - 1e-12);
    struct pe_admit rule = {.min = plan->xpos.center - reach, .max = plan->xpos.center + reach};
    if (!pe_positions_stray(positions, &rule, err->stop, &stray)) {
        return PE_OK;
    }
    return pe_positions_overflow(positions, stray.index, exp(rate * fabs(stray.position - plan->xpos.center)),
                                 dtype, limit, err);
}

/* ---- The plan ------------------------------------------------------------------------------------------ */

static size_t width(const void *params) {
    return (size_t)((const struct rope *)params)->head_dim;
}

static size_t plan_bytes(const void *data) {
    const struct rope *params = data;
    size_t n = (size_t)rope_width(params) / 2;
    size_t each = sizeof(struct pe_turn) + 1 + (params->xpos ? sizeof(struct pe_wide) : 0);
    return sizeof(struct rope_plan) + n * each;
}

static void resolve(void *data, void *plan_data) {
    struct rope *params = data;
    struct rope_plan *plan = plan_data;
    if (params->scaling) {
        plan->scaling = *(const struct rope_scaling *)params->scaling;
        rope_scaling_resolve(&plan->scaling);
        params->scaling = &plan->scaling;
    }
    if (params->xpos) {
        plan->xpos = *(const struct rope_xpos *)params->xpos;
        params->xpos = &plan->xpos;
    }
    if (params->rope_axes) {
        plan->rope_axes = *(const struct rope_axes *)params->rope_axes;
        rope_axes_resolve(&plan->rope_axes, params);
        params->rope_axes = &plan->rope_axes;
    }
    params->rotary_dim = rope_width(params);
    params->base = rope_base(params);
    params->given |= UINT64_C(1) << ROPE_ROTARY_DIM;
    if (is_given(params, ROPE_SECTIONS) && params->section_layout == 0) {
        params->section_layout = ROPE_CONTIGUOUS;
    }
}

/* Which coordinate turns pair i. Interleaved: t h w t h w ..., a coordinate whose share is used up leaves its
 * places to t. */
static unsigned char section_of(const struct rope *params, size_t pair) {
    const struct pe_ints *sections = &params->sections;
    int64_t i = (int64_t)pair;
    if (params->section_layout == ROPE_INTERLEAVED) {
        int64_t axis = i % 3;
        return (unsigned char)(i < 3 * sections->v[axis] ? axis : 0);
    }
    unsigned char axis = 0;
    while (i >= sections->v[axis]) {
        i -= sections->v[axis++];
    }
    return axis;
}

/* zeta_i = (2i/d + 0.4)/1.4 = (10i + 2d)/(7d). */
static void make_rates(const struct rope_plan *plan, struct pe_wide *rates) {
    const struct pe_wide scale_base = pe_wide_of(plan->xpos.scale_base);
    struct pe_wide whole = pe_wide_of(14 * (double)plan->n_pairs);
    for (size_t i = 0; i < plan->n_pairs; i++) {
        rates[i] = pe_wide_of(10 * (double)i + 4 * (double)plan->n_pairs);
        pe_wide_div(&rates[i], &rates[i], &whole);
        pe_wide_log(&rates[i], &rates[i]);
        pe_wide_div(&rates[i], &rates[i], &scale_base);
    }
}

static int make_plan(struct pe_plan_view *view, struct pe_error *err) {
    const struct rope *params = view->params;
    struct rope_plan *plan = view->data;
    (void)err;
    plan->n_pairs = (size_t)rope_width(params) / 2;
    char *after = (char *)(plan->turns + plan->n_pairs);
    if (params->xpos) {
        struct pe_wide *rates = (struct pe_wide *)(void *)after;
        make_rates(plan, rates);
        plan->rates = rates;
        after = (char *)(rates + plan->n_pairs);
    }
    plan->axis = (unsigned char *)after;
    plan->axes = is_given(params, ROPE_SECTIONS) ? (int)params->sections.n : 1;
    for (int axis = 0; axis < ROPE_MAX_AXES; axis++) {
        plan->scale[axis] = 1;
    }
    rope_scaling_fill(plan, params);
    if (params->rope_axes) {
        rope_axes_fill(plan, params);
        return PE_OK;
    }
    for (size_t i = 0; i < plan->n_pairs; i++) {
        plan->axis[i] = plan->axes > 1 ? section_of(params, i) : 0;
    }
    return PE_OK;
}

static struct pe_pairs pairs(const struct pe_plan_view *view) {
    const struct rope *params = view->params;
    size_t n = ((const struct rope_plan *)view->data)->n_pairs;
    if (params->layout == ROPE_LAYOUT_HALVES) {
        return (struct pe_pairs){.n = n, .step = 1, .apart = n};
    }
    return (struct pe_pairs){.n = n, .step = 2, .apart = 1};
}

static int axes(const struct pe_plan_view *view) {
    return ((const struct rope_plan *)view->data)->axes;
}

/* ---- Angles -------------------------------------------------------------------------------------------- */

/* NULL stays NULL. */
static void *element(void *out, size_t i, enum pe_dtype dtype) {
    return out ? (char *)out + i * pe_dtype_size(dtype) : NULL;
}

static struct pe_phase_out out_from(const struct pe_angles *out, size_t i, enum pe_dtype dtype) {
    return (struct pe_phase_out){.sin = element(out->sin, i * out->step, dtype),
                                 .cos = element(out->cos, i * out->step, dtype),
                                 .step = out->step};
}

/* With xPos every pair has a gain of its own. */
static void grown_angles(const struct rope_plan *plan, const struct pe_place *place,
                         const struct pe_spot *spot, enum pe_dtype dtype, const struct pe_angles *out) {
    struct pe_wide x = pe_wide_of(spot->position[0]), center = pe_wide_of(plan->xpos.center);
    pe_wide_sub(&x, &x, &center);
    x.sign = spot->keys ? -x.sign : x.sign;
    for (size_t i = 0; i < out->n; i++) {
        struct pe_gain gain;
        struct pe_phase_out one = out_from(out, i, dtype);
        pe_gain_power(&gain, &plan->rates[out->first + i], &x);
        one.gain = &gain;
        pe_phase_row(place, &plan->turns[out->first + i], 1, dtype, &one);
    }
}

/* Runs of pairs that one coordinate turns. */
static void plain_angles(const struct rope_plan *plan, const struct pe_place *places, enum pe_dtype dtype,
                         const struct pe_angles *out) {
    const unsigned char *axis = plan->axis + out->first;
    for (size_t i = 0, n; i < out->n; i += n) {
        struct pe_phase_out run = out_from(out, i, dtype);
        run.gain = plan->has_gain ? &plan->gain : NULL;
        n = 1;
        while (i + n < out->n && axis[i + n] == axis[i]) {
            n++;
        }
        pe_phase_row(&places[axis[i]], plan->turns + out->first + i, n, dtype, &run);
    }
}

static void angles(const struct pe_plan_view *view, const struct pe_spot *spot, enum pe_dtype dtype,
                   const struct pe_angles *out) {
    const struct rope *params = view->params;
    const struct rope_plan *plan = view->data;
    double sign = params->direction == ROPE_CLOCKWISE ? -1 : 1;
    struct pe_place places[ROPE_MAX_AXES];
    for (int axis = 0; axis < plan->axes; axis++) {
        double position = spot->position[spot->axes == 1 ? 0 : axis];
        pe_place_of(&places[axis], position, sign * plan->scale[axis], sign * plan->offset[axis]);
    }
    if (plan->rates) {
        grown_angles(plan, &places[0], spot, dtype, out);
    } else {
        plain_angles(plan, places, dtype, out);
    }
}

/* A pair as the point on its circle: cos at its first column, sin at its second, and 0 where nothing turns.
 * Turned by k positions, it is the point k positions on, which is what `shift` is about. */
static void encode(const struct pe_plan_view *view, const double *positions, size_t n, enum pe_dtype dtype,
                   void *out) {
    const struct pe_pairs columns = pairs(view);
    size_t row_bytes = view->width * pe_dtype_size(dtype);
    memset(out, 0, n * row_bytes);
    for (size_t i = 0; i < n; i++) {
        char *row = (char *)out + i * row_bytes;
        struct pe_spot spot = {.position = positions + i, .axes = 1};
        struct pe_angles both = {.n = columns.n,
                                 .cos = element(row, columns.first, dtype),
                                 .sin = element(row, columns.first + columns.apart, dtype),
                                 .step = columns.step};
        angles(view, &spot, dtype, &both);
    }
}

static size_t shift_pairs(const struct pe_plan_view *view) {
    return ((const struct rope_plan *)view->data)->n_pairs;
}

static void shift(const struct pe_plan_view *view, double distance, size_t pair, double m[4],
                  size_t columns[2]) {
    const struct rope *params = view->params;
    const struct rope_plan *plan = view->data;
    const struct pe_pairs all = pairs(view);
    double sign = params->direction == ROPE_CLOCKWISE ? -1 : 1;
    struct pe_place place;
    pe_place_of(&place, distance, sign * plan->scale[plan->axis[pair]], 0);
    struct pe_phase_out out = {&m[2], &m[0], 1, NULL};
    struct pe_gain gain;
    if (plan->rates) { /* xPos: on by k is also smaller by zeta^k */
        struct pe_wide x = pe_wide_of(distance);
        pe_gain_power(&gain, &plan->rates[pair], &x);
        out.gain = &gain;
    }
    pe_phase_row(&place, &plan->turns[pair], 1, PE_DTYPE_F64, &out);
    m[3] = m[0];
    m[1] = -m[2];
    columns[0] = all.first + pair * all.step;
    columns[1] = columns[0] + all.apart;
}

static void frequencies(const struct pe_plan_view *view, enum pe_dtype dtype, void *out) {
    const struct rope_plan *plan = view->data;
    for (size_t i = 0; i < plan->n_pairs; i++) {
        pe_turn_frequency(&plan->turns[i], dtype, element(out, i, dtype));
    }
}

static double scale(const struct pe_plan_view *view, double usual) {
    const struct rope *params = view->params;
    usual = params->qk_head_dim ? 1 / sqrt((double)params->qk_head_dim) : usual;
    return usual * ((const struct rope_plan *)view->data)->softmax_factor;
}

static size_t facts(const struct pe_plan_view *view, struct pe_fact *out) {
    const struct rope *params = view->params;
    const struct rope_plan *plan = view->data;
    size_t n = 0;
    out[n++] = (struct pe_fact){"attention_factor", 1, {plan->gain.nearest}};
    out[n++] = (struct pe_fact){"base_used", 1, {plan->base_used}};
    if (plan->has_range) {
        out[n++] = (struct pe_fact){"correction_range", 2, {plan->low, plan->high}};
    }
    out[n++] = (struct pe_fact){"softmax_scale", 1, {scale(view, 1 / sqrt((double)params->head_dim))}};
    return n;
}

static double row_cost_ns(const struct pe_plan_view *view) {
    const struct rope_plan *plan = view->data;
    return 60 + (plan->rates ? 400 : 24) * (double)plan->n_pairs;
}

const struct pe_encoding pe_rope = {
    .info = {.type = "rope",
             .title = "Rotary (RoPE)",
             .doc = "Queries and keys are turned, pair by pair, by angles that grow with the position, so "
                    "that their "
                    "products depend on the distance alone. What most language models of today use.",
             .reference = "Su et al. 2021, RoFormer: Enhanced Transformer with Rotary Position Embedding",
             .family = PE_FAMILY_ROTARY,
             .params_size = sizeof(struct rope),
             .fields = fields,
             .n_fields = PE_COUNT(fields)},
    .adopt = adopt,
    .check = check,
    .width = width,
    .plan_bytes = plan_bytes,
    .resolve = resolve,
    .plan = make_plan,
    .admit = admit,
    .fits = fits,
    .encode = encode,
    .shift_pairs = shift_pairs,
    .shift = shift,
    .pairs = pairs,
    .axes = axes,
    .angles = angles,
    .frequencies = frequencies,
    .scale = scale,
    .facts = facts,
    .row_cost_ns = row_cost_ns,
};
