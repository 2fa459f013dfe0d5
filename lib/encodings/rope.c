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
 * Several coordinates may turn pairs of their own: `sections` of M-RoPE (text, height, width), or the axes of
 * an image. Here are the parameters and what they may be. The rest is one encoding, too, and has a file a
 * subject, which share rope.h:
 *
 *     rope_turn.c                    the plan, and the angles at a position
 *     rope_scaling.c, _formulas.c    longer contexts: what a configuration may say, and what it means
 *     rope_axes.c                    the axes of images
 *     rope_replay.c, _ggml.c         the float32 steps of deployed code in place of the exact angles
 *     rope_config.c, _layers.c, _scaling.c, rope_family.c    a model's config.json as fields
 *     rope_ggml.c, rope_adopt.c      ggml's arguments as fields, and what both need for that
 */
#include "encodings/rope.h"

#include "core/scale.h"

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
    [ROPE_BASE] = {PE_FIELD(rope, base), .alias = "rope_theta", .min = 1, .max = 1e300,
                   .doc = "Base of the frequencies, which run from 1 down towards 1/base [10000]."},
    [ROPE_LAYOUT] = {PE_FIELD(rope, layout), .choices = layouts, .flags = PE_FIELD_REQUIRED,
                     .doc =
                         "Which columns are a pair. Models differ, and a wrong guess is not seen at once."},
    [ROPE_DIRECTION] = {PE_FIELD(rope, direction), .choices = directions, .def = "counterclockwise",
                        .doc = "Which way pairs turn as positions grow."},
    [ROPE_SCALING] =
        {PE_FIELD(rope, scaling), .alias = "rope_scaling rope_parameters", .fields = pe_rope_scaling_fields,
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
    [ROPE_AXES] = {PE_FIELD(rope, rope_axes), .fields = pe_rope_axes_fields, .n_fields = ROPE_AXES_N_FIELDS,
                   .object_size = sizeof(struct rope_axes),
                   .doc = "Vision: every axis of an image turns a share of the pairs."},
    [ROPE_XPOS] = {OBJECT(xpos, xpos_fields, rope_xpos),
                   .doc = "xPos: queries decay and keys grow with position."},
    [ROPE_QK_HEAD_DIM] =
        {PE_FIELD(rope, qk_head_dim), .min = 1, .max = 65536,
         .doc = "What the softmax takes the root of, where that is not head_dim: 192, the whole "
                "query, for DeepSeek-V3, query_pre_attn_scalar for Gemma [head_dim]."},
    [ROPE_HF_CONFIG] = {PE_FIELD(rope, hf_config),
                        .doc = "A model's config.json as it is; it says all of the above but seq_len."},
    [ROPE_LAYER_TYPE] =
        {PE_FIELD(rope, layer_type),
         .doc = "Of hf_config: which layers, where they differ: full_attention or sliding_attention."},
    [ROPE_GGML] =
        {PE_FIELD(rope, ggml), .fields = pe_rope_ggml_fields, .n_fields = ROPE_GGML_N_FIELDS,
         .object_size = sizeof(struct rope_ggml),
         .doc = "ggml's arguments of rope, which say the base, the layout, the sections and the scaling."},
    [ROPE_ARITHMETIC] = {PE_FIELD(rope, arithmetic), .choices = pe_arithmetic_choices, .def = "exact",
                         .doc = "Exact, or angles replayed as deployed code computes them: what a trained "
                                "model saw. Frequencies are PyTorch's to the bit, on CPUs with AVX2 and "
                                "without MKL."},
};

bool pe_rope_given(const struct rope *params, int field) {
    return params->given >> field & 1;
}

double pe_rope_base(const struct rope *params) {
    const struct rope_scaling *scaling = params->scaling;
    double base = pe_rope_given(params, ROPE_BASE) ? params->base : 10000;
    return scaling && scaling->rope_theta != 0 ? scaling->rope_theta : base;
}

/* Of a proportional scaling all of the head is in the formula, with frequencies of 0 where it passes. */
int64_t pe_rope_width(const struct rope *params) {
    const struct rope_scaling *scaling = params->scaling;
    double part = params->partial_rotary_factor;
    if (params->rotary_dim != 0) {
        return params->rotary_dim;
    }
    if (part == 0 && scaling) {
        part = scaling->partial_rotary_factor;
    }
    return part == 0 || (scaling && pe_rope_scaling_keeps_width(scaling->rope_type))
               ? params->head_dim
               : (int64_t)(part * (double)params->head_dim);
}

/* ---- Checking ------------------------------------------------------------------------------------------ */

/* rotary_dim and a part of the head, wherever that is said, are the same thing twice. */
static int part_check(const struct rope *params, struct pe_error *err) {
    const struct rope_scaling *scaling = params->scaling;
    bool whole = scaling && pe_rope_scaling_keeps_width(scaling->rope_type);
    double outer = params->partial_rotary_factor, inner = scaling ? scaling->partial_rotary_factor : 0;
    double part = whole ? 1 : outer != 0 ? outer : inner;
    int64_t turns = (int64_t)(part * (double)params->head_dim);
    if (!params->rotary_dim || part == 0 || params->rotary_dim == turns) {
        return PE_OK;
    }
    if (whole) {
        return pe_fail(err, PE_ERR_CONFLICT, "rotary_dim",
                       "is %lld, but this rope_type is of the whole head, %lld",
                       (long long)params->rotary_dim, (long long)params->head_dim);
    }
    return pe_fail(err, PE_ERR_CONFLICT, "rotary_dim",
                   "is %lld, but partial_rotary_factor %g of head_dim %lld is %lld",
                   (long long)params->rotary_dim, part, (long long)params->head_dim, (long long)turns);
}

static int width_check(const struct rope *params, struct pe_error *err) {
    int64_t width = pe_rope_width(params);
    const char *field = params->rotary_dim          ? "rotary_dim"
                        : width == params->head_dim ? "head_dim"
                                                    : "partial_rotary_factor";
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

/* Interleaved, h and w have every third place, of which there may be fewer than their shares; nobody's rule
 * tells what then. What is left is t's, or with ggml's four sections the fourth's. */
static int places_check(const struct pe_ints *sections, int64_t pairs, struct pe_error *err) {
    if (sections->n < 3) {
        return pe_fail(err, PE_ERR_RANGE, "sections",
                       "got %zu numbers, interleaved ones are 3, t, h and w, or ggml's 4", sections->n);
    }
    for (int axis = 1; axis < 3; axis++) {
        long long share = sections->v[axis], places = (pairs + 2 - axis) / 3;
        if (share > places) {
            return pe_fail(
                err, PE_ERR_RANGE, "sections",
                "has %lld pair%s for coordinate %d, but interleaved, t h w t h w ..., %lld pairs have "
                "%lld place%s for it",
                share, share == 1 ? "" : "s", axis, (long long)pairs, places, places == 1 ? "" : "s");
        }
    }
    return PE_OK;
}

static int sections_check(const struct rope *params, struct pe_error *err) {
    const struct pe_ints *sections = &params->sections;
    int64_t sum = 0, pairs = pe_rope_width(params) / 2;
    if (!pe_rope_given(params, ROPE_SECTIONS)) {
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
                       "has the length %zu and the sum %lld, allowed are 2 to %d numbers with the sum %lld, "
                       "the number of pairs",
                       sections->n, (long long)sum, ROPE_MAX_AXES, (long long)pairs);
    }
    return params->section_layout == ROPE_INTERLEAVED ? places_check(sections, pairs, err) : PE_OK;
}

static int one_of_check(const struct rope *params, struct pe_error *err) {
    bool sections = pe_rope_given(params, ROPE_SECTIONS);
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
    if (params->ggml) {
        return pe_rope_ggml_adopt(params, err);
    }
    if (params->hf_config.n) {
        return pe_rope_config_adopt(params, err);
    }
    return params->layer_type
               ? pe_fail(err, PE_ERR_CONFLICT, "layer_type", "is of hf_config, which is not given")
               : PE_OK;
}

static int check(const void *data, struct pe_error *err) {
    const struct rope *params = data;
    if (part_check(params, err) || width_check(params, err) || sections_check(params, err) ||
        one_of_check(params, err) || (params->scaling && pe_rope_scaling_check(params, err)) ||
        (params->rope_axes && pe_rope_axes_check(params, err)) || pe_rope_replay_check(params, err)) {
        return err->code;
    }
    return PE_OK;
}

/* ---- The plan ------------------------------------------------------------------------------------------ */

size_t pe_rope_lists_bytes(const struct rope *params) {
    const struct rope_scaling *scaling = params->scaling;
    size_t n =
        scaling ? (size_t) !!scaling->short_factor + !!scaling->long_factor + !!scaling->freq_factors : 0;
    return n * ((size_t)pe_rope_width(params) / 2) * sizeof(double);
}

static size_t width(const void *params) {
    return (size_t)((const struct rope *)params)->head_dim;
}

static size_t plan_bytes(const void *data) {
    const struct rope *params = data;
    size_t n = (size_t)pe_rope_width(params) / 2;
    size_t each =
        sizeof(struct pe_turn) + 2 * sizeof(float) + 1 + (params->xpos ? sizeof(struct pe_wide) : 0);
    size_t waves = params->arithmetic == PE_ARITHMETIC_EXACT
                       ? ROPE_ALIGNMENT + pe_wave_bytes(n) + pe_wave64_bytes(n)
                       : 0;
    return sizeof(struct rope_plan) + n * each + pe_rope_lists_bytes(params) + waves;
}

/* The plan's own copies of the lists of its scaling, as float64. */
static void lists_keep(struct rope_plan *plan, size_t n_pairs) {
    const struct pe_tensor **lists[ROPE_N_LISTS] = {&plan->scaling.short_factor, &plan->scaling.long_factor,
                                                    &plan->scaling.freq_factors};
    double *room = (double *)(void *)(plan->turns + n_pairs);
    for (int i = 0; i < ROPE_N_LISTS; i++) {
        const struct pe_tensor *list = *lists[i];
        if (!list) {
            continue;
        }
        pe_dtype_load(list->dtype, list->data, n_pairs, room);
        plan->lists[i] = *list;
        plan->lists[i].dtype = PE_DTYPE_F64;
        plan->lists[i].data = room;
        *lists[i] = &plan->lists[i];
        room += n_pairs;
    }
}

static void resolve(void *data, void *plan_data) {
    struct rope *params = data;
    struct rope_plan *plan = plan_data;
    if (params->scaling) {
        plan->scaling = *(const struct rope_scaling *)params->scaling;
        pe_rope_scaling_resolve(&plan->scaling);
        lists_keep(plan, (size_t)pe_rope_width(params) / 2);
        params->scaling = &plan->scaling;
    }
    if (params->xpos) {
        plan->xpos = *(const struct rope_xpos *)params->xpos;
        params->xpos = &plan->xpos;
    }
    if (params->rope_axes) {
        plan->rope_axes = *(const struct rope_axes *)params->rope_axes;
        pe_rope_axes_resolve(&plan->rope_axes);
        params->rope_axes = &plan->rope_axes;
    }
    params->layer_type = NULL; /* what these three say is in the other fields by now */
    params->ggml = NULL;
    params->hf_config = (struct pe_config){0};
    params->rotary_dim = pe_rope_width(params);
    params->given |= UINT64_C(1) << ROPE_ROTARY_DIM;
    if (!params->rope_axes || pe_rope_axes_use_base(params->rope_axes)) {
        params->base = pe_rope_base(params);
        params->given |= UINT64_C(1) << ROPE_BASE;
    }
    if (pe_rope_given(params, ROPE_SECTIONS) && params->section_layout == 0) {
        params->section_layout = ROPE_CONTIGUOUS;
    }
}

static double scale(const struct pe_plan_view *view, double usual) {
    const struct rope *params = view->params;
    const struct rope_plan *plan = view->data;
    int64_t width = params->qk_head_dim ? params->qk_head_dim : params->head_dim;
    (void)usual;
    return pe_scale_of(&plan->softmax_factor, (size_t)width);
}

/* Its angles along one coordinate are those of a sequence; those of an image have no such. */
static int admit_shift(const struct pe_plan_view *view, struct pe_error *err) {
    return ((const struct rope *)view->params)->rope_axes
               ? pe_fail(err, PE_ERR_UNSUPPORTED, "rope_axes",
                         "is there, and a shift is along one coordinate only")
               : PE_OK;
}

static size_t facts(const struct pe_plan_view *view, struct pe_fact *out) {
    const struct rope_plan *plan = view->data;
    size_t n = 0;
    out[n++] = (struct pe_fact){"attention_factor", 1, {plan->gain.nearest}};
    if (plan->base_used != 0) {
        out[n++] = (struct pe_fact){"base_used", 1, {plan->base_used}};
    }
    if (plan->has_range) {
        out[n++] = (struct pe_fact){"correction_range", 2, {plan->low, plan->high}};
    }
    out[n++] = (struct pe_fact){"softmax_scale", 1, {scale(view, 0)}};
    return n;
}

static double row_cost_ns(const struct pe_plan_view *view, enum pe_dtype dtype) {
    const struct rope_plan *plan = view->data;
    bool is_fast = plan->is_fast && dtype == PE_DTYPE_F32;
    return 60 +
           (is_fast               ? 2 * pe_wave_value_ns(&plan->wave)
            : plan->rates         ? 400
            : pe_rope_exact(view) ? 24
                                  : 80) *
               (double)plan->n_pairs +
           PE_TURN_SLOW_NS * (double)plan->n_slow;
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
    .plan = pe_rope_plan_fill,
    .exact = pe_rope_exact,
    .admit = pe_rope_admit,
    .fits = pe_rope_fits,
    .encode = pe_rope_encode,
    .admit_shift = admit_shift,
    .shift_pairs = pe_rope_shift_pairs,
    .shift = pe_rope_shift,
    .pairs = pe_rope_pairs,
    .axes = pe_rope_n_axes,
    .grid_size = pe_rope_grid_size,
    .angles = pe_rope_angles,
    .angles_rows = pe_rope_angles_rows,
    .frequencies = pe_rope_frequencies,
    .scale = scale,
    .facts = facts,
    .row_cost_ns = row_cost_ns,
};
