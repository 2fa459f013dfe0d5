/* SPDX-License-Identifier: MIT
 *
 * Sinusoids (Vaswani et al. 2017, section 3.5) in every variant that models in use really differ by:
 *
 *     pair i of position p:   sin(x * omega_i), cos(x * omega_i),     x = position_scale * p + offset
 *     omega_i = base^(-e_i),  e_i = 2i/w (denominator half) or 2i/(w-2) (half_minus_one), e_0 = 0 always
 *
 * w is d_model, or d_model - 1 when it is odd and a zero column fills the end. There are ceil(w/2) values of
 * the first kind (sine, unless order says otherwise) and floor(w/2) of the second:
 *
 *     interleaved   s0 c0 s1 c1 ...          halves   s0 s1 ... c0 c1 ...
 *
 * e_0 = 0 is the guard that tensor2tensor has and fairseq lacks: for w = 2 the quotient would be 0/0.
 * The values are exact, see core/phase.h, unless `arithmetic` asks for what other code computes instead, see
 * core/replay.h; the frequencies are computed once per plan.
 */
#include "core/ladder.h"
#include "core/replay.h"
#include "encodings/encoding.h"
#include "kernels/wave_add.h"

#include <math.h>
#include <string.h>

struct sinusoidal {
    uint64_t given;
    int64_t d_model;
    double base;
    int layout, order, denominator, odd;
    double position_scale, offset;
    int64_t padding_idx;
    int arithmetic; /* enum pe_arithmetic */
};

enum { LAYOUT_INTERLEAVED = 1, LAYOUT_HALVES };
enum { ORDER_SIN_COS = 1, ORDER_COS_SIN };
enum { DENOMINATOR_HALF = 1, DENOMINATOR_HALF_MINUS_ONE };
enum { ODD_TRUNCATE = 1, ODD_ZERO, ODD_REJECT };

static const struct pe_choice layouts[] = {
    {"interleaved", LAYOUT_INTERLEAVED,
     "s0 c0 s1 c1 ...: the paper, the Annotated Transformer and PyTorch tutorials, ESPnet, keras-hub"},
    {"halves", LAYOUT_HALVES,
     "s0 s1 ... c0 c1 ...: tensor2tensor, fairseq, Marian, Pegasus, RoFormer, M2M100 and NLLB, Whisper, "
     "diffusion timesteps"},
    {NULL, 0, NULL}};
static const struct pe_choice orders[] = {
    {"sin_cos", ORDER_SIN_COS, "sines first: nearly all"},
    {"cos_sin", ORDER_COS_SIN,
     "cosines first: GLIDE, DiT and Stable Diffusion (flip_sin_to_cos of diffusers)"},
    {NULL, 0, NULL}};
static const struct pe_choice denominators[] = {
    {"half", DENOMINATOR_HALF,
     "exponent 2i/w: the paper, keras-hub, RoFormer, Pegasus and Marian in transformers, DiT, GLIDE "
     "(downscale_freq_shift 0)"},
    {"half_minus_one", DENOMINATOR_HALF_MINUS_ONE,
     "exponent 2i/(w-2), so that for even widths the last frequency is 1/base: tensor2tensor, fairseq, "
     "Marian itself, M2M100 "
     "and NLLB, Whisper, DDPM (downscale_freq_shift 1)"},
    {NULL, 0, NULL}};
static const struct pe_choice odds[] = {
    {"truncate", ODD_TRUNCATE,
     "the last value of the second kind is left out: keras-hub, the paper's formula"},
    {"zero", ODD_ZERO,
     "a zero column at the end, the rest as for d_model - 1: tensor2tensor, fairseq, diffusers"},
    {"reject", ODD_REJECT, "an odd d_model is an error: Whisper, Marian, fairseq2"},
    {NULL, 0, NULL}};

enum {
    FIELD_D_MODEL,
    FIELD_BASE,
    FIELD_LAYOUT,
    FIELD_ORDER,
    FIELD_DENOMINATOR,
    FIELD_ODD,
    FIELD_POSITION_SCALE,
    FIELD_OFFSET,
    FIELD_PADDING_IDX,
    FIELD_ARITHMETIC
};

static const struct pe_field fields[] = {
    [FIELD_D_MODEL] = {PE_FIELD(sinusoidal, d_model), .min = 1, .max = 65536,
                       .flags = PE_FIELD_REQUIRED | PE_FIELD_WIDTH,
                       .doc = "Width of a vector, the model's hidden size."},
    [FIELD_BASE] =
        {PE_FIELD(sinusoidal, base), .min = 1, .max = 1e300, .def = "10000",
         .doc = "Base of the frequencies, which run from 1 down towards 1/base; also called max_timescale, "
                "max_period, max_wavelength or temperature."},
    [FIELD_LAYOUT] = {PE_FIELD(sinusoidal, layout), .choices = layouts, .def = "interleaved",
                      .doc = "Which columns hold the sines and which the cosines."},
    [FIELD_ORDER] = {PE_FIELD(sinusoidal, order), .choices = orders, .def = "sin_cos",
                     .doc = "Whether the sine or the cosine of a pair comes first."},
    [FIELD_DENOMINATOR] = {PE_FIELD(sinusoidal, denominator), .choices = denominators, .def = "half",
                           .doc = "Spacing of the frequencies: base^(-i/(w/2)) or base^(-i/(w/2 - 1))."},
    [FIELD_ODD] = {PE_FIELD(sinusoidal, odd), .choices = odds, .def = "truncate",
                   .doc = "What an odd d_model means."},
    [FIELD_POSITION_SCALE] =
        {PE_FIELD(sinusoidal, position_scale), .min = -PE_POSITION_MAX, .max = PE_POSITION_MAX, .def = "1",
         .doc = "Positions are multiplied by this, without rounding; not 0. 1000 for diffusion "
                "times in [0, 1], which alone would hardly move the vectors."},
    [FIELD_OFFSET] = {PE_FIELD(sinusoidal, offset), .min = -PE_POSITION_MAX, .max = PE_POSITION_MAX,
                      .def = "0",
                      .doc = "Added to the scaled positions, without rounding: position p is encoded as "
                             "position_scale*p + offset. fairseq tables start at padding_idx + 1."},
    [FIELD_PADDING_IDX] =
        {PE_FIELD(sinusoidal, padding_idx), .min = -PE_POSITION_MAX, .max = PE_POSITION_MAX,
         .doc = "The position (after scale and offset) whose vector is all zeros, as row padding_idx "
                "of the tables of fairseq, M2M100 and NLLB; absent: no such row."},
    [FIELD_ARITHMETIC] = {PE_FIELD(sinusoidal, arithmetic), .choices = pe_arithmetic_choices, .def = "exact",
                          .doc = "Exact, or replayed as deployed code computes: what a trained model saw. "
                                 "Frequencies are PyTorch's to the bit, on CPUs with AVX2 and without MKL."},
};

/* What a plan holds: the columns, followed by one frequency per pair, and what makes rows of them fast. */
struct plan {
    size_t n_first, n_second; /* columns of either kind */
    size_t second, step;      /* the first column of the second kind; columns from pair to pair */
    struct pe_replay replay;  /* its rates follow the turns; not used where the arithmetic is exact */
    struct pe_wave wave;      /* its tables follow the turns; used where it is */
    struct pe_turn turns[];   /* [n_first] */
};

static int64_t paired_width(const struct sinusoidal *params) {
    return params->odd == ODD_ZERO ? params->d_model & ~INT64_C(1) : params->d_model;
}

static int check(const void *data, struct pe_error *err) {
    const struct sinusoidal *params = data;
    if (params->odd == ODD_REJECT && params->d_model % 2 != 0) {
        return pe_fail(err, PE_ERR_RANGE, "d_model", "is %lld, must be even because odd is \"reject\"",
                       (long long)params->d_model);
    }
    if (params->position_scale == 0) {
        return pe_fail(err, PE_ERR_RANGE, "position_scale",
                       "is 0, must not be: every position would be the same");
    }
    return PE_OK;
}

static size_t width(const void *params) {
    return (size_t)((const struct sinusoidal *)params)->d_model;
}

/* Where the tables begin behind n frequencies. */
static size_t tables_at(size_t n) {
    return (sizeof(struct plan) + n * sizeof(struct pe_turn) + 63) / 64 * 64;
}

static size_t plan_bytes(const void *params) {
    size_t n_first = ((size_t)paired_width(params) + 1) / 2;
    bool exact = ((const struct sinusoidal *)params)->arithmetic == PE_ARITHMETIC_EXACT;
    return tables_at(n_first) + (exact ? pe_wave_bytes(n_first) : n_first * sizeof(float));
}

static bool is_exact(const struct pe_plan_view *view) {
    return ((const struct sinusoidal *)view->params)->arithmetic == PE_ARITHMETIC_EXACT;
}

/* v as a whole number below 2^53 in magnitude; else 0. */
static int64_t whole(double v) {
    return v > -PE_POSITION_MAX && v < PE_POSITION_MAX && v == (double)(int64_t)v ? (int64_t)v : 0;
}

static int make_plan(struct pe_plan_view *view, struct pe_error *err) {
    const struct sinusoidal *params = view->params;
    struct plan *plan = view->data;
    uint32_t w = (uint32_t)paired_width(params);
    uint32_t denominator = params->denominator == DENOMINATOR_HALF ? w : w - 2;
    bool halves = params->layout == LAYOUT_HALVES;
    const struct pe_replay_ladder ladder = {
        .base = params->base, .num = w <= 2 ? 0 : 2, .den = w <= 2 ? 1 : denominator};
    plan->n_first = (w + 1) / 2;
    plan->n_second = w / 2;
    plan->second = halves ? plan->n_first : 1;
    plan->step = halves ? 1 : 2;
    pe_ladder_fill(plan->turns, plan->n_first, ladder.base, ladder.num, ladder.den);
    void *tables = (char *)plan + tables_at(plan->n_first);
    if (is_exact(view)) {
        pe_wave_open(&plan->wave, tables, plan->turns, plan->n_first, whole(params->position_scale),
                     plan->step == 2);
        return PE_OK;
    }
    float *rates = tables;
    return pe_replay_open(&plan->replay, (enum pe_arithmetic)params->arithmetic, rates, plan->n_first,
                          &ladder, err);
}

static int admit(const struct pe_plan_view *view, const struct pe_positions *positions,
                 struct pe_error *err) {
    const struct sinusoidal *params = view->params;
    return pe_replay_admit((enum pe_arithmetic)params->arithmetic, positions, params->position_scale,
                           params->offset, err);
}

/* Pairs first..first+n-1 of one row: all of them have the second kind, or none. */
static void encode_pairs(const struct pe_plan_view *view, const struct pe_place *place, size_t first,
                         size_t n, enum pe_dtype dtype, char *row) {
    const struct sinusoidal *params = view->params;
    const struct plan *plan = view->data;
    size_t size = pe_dtype_size(dtype);
    char *kind[2] = {row + (first * plan->step) * size,
                     first < plan->n_second ? row + (plan->second + first * plan->step) * size : NULL};
    bool swap = params->order == ORDER_COS_SIN;
    struct pe_phase_out out = {.sin = kind[swap], .cos = kind[!swap], .step = plan->step};
    if (is_exact(view)) {
        pe_phase_row(place, plan->turns + first, n, dtype, &out);
    } else {
        double x = place->scale * place->position + place->offset;
        pe_replay_row(&plan->replay, x, first, n, dtype, &out);
    }
}

/* Is it the row of padding? */
static bool is_padding(const struct sinusoidal *params, const struct pe_place *place) {
    return (params->given >> FIELD_PADDING_IDX & 1) && pe_place_is(place, params->padding_idx);
}

static bool apart(const struct pe_plan_view *view, double position) {
    const struct sinusoidal *params = view->params;
    struct pe_place place;
    pe_place_of(&place, position, params->position_scale, params->offset);
    return is_padding(params, &place);
}

static void encode_row(const struct pe_plan_view *view, double position, enum pe_dtype dtype, char *row) {
    const struct sinusoidal *params = view->params;
    const struct plan *plan = view->data;
    size_t size = pe_dtype_size(dtype), used = plan->n_first + plan->n_second;
    struct pe_place place;
    pe_place_of(&place, position, params->position_scale, params->offset);
    if (is_padding(params, &place)) {
        used = 0;
    }
    memset(row + used * size, 0, (view->width - used) * size); /* all bits zero is +0 in every element type */
    if (used == 0) {
        return;
    }
    encode_pairs(view, &place, 0, plan->n_second, dtype, row);
    encode_pairs(view, &place, plan->n_second, plan->n_first - plan->n_second, dtype, row);
}

/* ---- Many rows in float32 ------------------------------------------------------------------------------ */

/* Rows whose x are whole numbers in equal steps. */
struct run {
    size_t n;
    int64_t x, step;
};

/* How many positions from the first on are so, at least one, and where; 0: the first is not. Ends that doubles
 * compute exactly are enough, as what is between them is smaller than one of them. */
static size_t run_of(const struct sinusoidal *params, const double *positions, size_t n, struct run *run) {
    const int64_t scale = whole(params->position_scale), offset = whole(params->offset),
                  first = whole(*positions);
    const int64_t step = n > 1 ? whole(positions[1]) - first : 0;
    if (scale == 0 || (double)offset != params->offset) {
        return 0;
    }
    run->n = 1;
    for (int64_t next = first + step; run->n < n && (double)next == positions[run->n]; next += step) {
        run->n++;
    }
    for (size_t i = 0; i < 2; i++) {
        const double p = positions[i ? run->n - 1 : 0], product = params->position_scale * p;
        const double x = product + params->offset;
        if ((double)whole(p) != p || (double)whole(product) != product || (double)whole(x) != x) {
            return 0;
        }
    }
    run->x = scale * first + offset;
    run->step = scale * step;
    return run->n;
}

static struct pe_wave_out wave_out(const struct pe_plan_view *view, float *row) {
    const struct plan *plan = view->data;
    float *const kind[2] = {row, row + plan->second};
    const size_t n[2] = {plan->n_first, plan->n_second};
    const bool swap = ((const struct sinusoidal *)view->params)->order == ORDER_COS_SIN;
    return (struct pe_wave_out){.sin = kind[swap],
                                .cos = kind[!swap],
                                .step = plan->step,
                                .n_sin = n[swap],
                                .n_cos = n[!swap],
                                .stride = view->width,
                                .far = view->far};
}

/* What is zero of a row: the column at its end, or all of it where it is padding's. */
static void encode_zeros(const struct pe_plan_view *view, double position, float *row) {
    const struct sinusoidal *params = view->params;
    const struct plan *plan = view->data;
    size_t used = plan->n_first + plan->n_second;
    if (params->given >> FIELD_PADDING_IDX & 1 && apart(view, position)) {
        used = 0;
    }
    for (size_t i = used; i < view->width; i++) {
        row[i] = 0;
    }
}

static void encode_fast(const struct pe_plan_view *view, const double *positions, size_t n, float *out) {
    const struct sinusoidal *params = view->params;
    const struct pe_wave *wave = &((const struct plan *)view->data)->wave;
    struct run run = {0};
    for (size_t i = 0; i < n; i += run.n) {
        const struct pe_wave_out to = wave_out(view, out + i * view->width);
        if (run_of(params, positions + i, n - i, &run) != 0) {
            pe_wave_run(wave, run.x, run.step, run.n, &to);
        } else {
            struct pe_place place;
            pe_place_of(&place, positions[i], params->position_scale, params->offset);
            pe_wave_row(wave, &place, &to);
            run.n = 1;
        }
    }
    const struct plan *plan = view->data;
    bool padded = params->given >> FIELD_PADDING_IDX & 1,
         zero_column = plan->n_first + plan->n_second < view->width;
    for (size_t i = 0; i < n && (padded || zero_column); i++) {
        encode_zeros(view, positions[i], out + i * view->width);
    }
}

static void encode(const struct pe_plan_view *view, const double *positions, size_t n, enum pe_dtype dtype,
                   void *out) {
    if (dtype == PE_DTYPE_F32 && is_exact(view)) {
        encode_fast(view, positions, n, out);
        return;
    }
    size_t row_bytes = view->width * pe_dtype_size(dtype);
    for (size_t i = 0; i < n; i++) {
        encode_row(view, positions[i], dtype, (char *)out + i * row_bytes);
    }
}

/* Rows in equal steps that hold nothing but values. */
static size_t encode_add(const struct pe_plan_view *view, const double *positions, size_t n, const float *x,
                         double scale, float *out) {
    const struct sinusoidal *params = view->params;
    const struct plan *plan = view->data;
    struct run run = {0};
    bool padded = params->given >> FIELD_PADDING_IDX & 1,
         zero_column = plan->n_first + plan->n_second < view->width;
    if (!is_exact(view) || padded || zero_column || run_of(params, positions, n, &run) == 0) {
        return 0;
    }
    const struct pe_wave_out rows = wave_out(view, out);
    pe_wave_add(&plan->wave, run.x, run.step, run.n, &rows, &(struct pe_wave_sum){x, out, scale});
    return run.n;
}

/* The lone column at the end of an odd width is in no pair, and neither is the zero column. */
static size_t shift_pairs(const struct pe_plan_view *view) {
    return ((const struct plan *)view->data)->n_second;
}

static void shift(const struct pe_plan_view *view, double distance, size_t pair, double m[4],
                  size_t columns[2]) {
    const struct sinusoidal *params = view->params;
    const struct plan *plan = view->data;
    pe_turn_shift(&plan->turns[pair], distance, params->position_scale, params->order == ORDER_COS_SIN, m);
    columns[0] = pair * plan->step;
    columns[1] = plan->second + pair * plan->step;
}

static void frequencies(const struct pe_plan_view *view, enum pe_dtype dtype, void *out) {
    const struct plan *plan = view->data;
    for (size_t i = 0; i < plan->n_second; i++) {
        pe_turn_frequency(&plan->turns[i], dtype, (unsigned char *)out + i * pe_dtype_size(dtype));
    }
}

static double fastest(const struct pe_plan_view *view) {
    return fabs(((const struct sinusoidal *)view->params)->position_scale);
}

static double row_cost_ns(const struct pe_plan_view *view, enum pe_dtype dtype) {
    const struct plan *plan = view->data;
    double slow = is_exact(view) ? 12 : 40;
    bool is_fast = is_exact(view) && dtype == PE_DTYPE_F32;
    return 60 + (is_fast ? pe_wave_value_ns(&plan->wave) : slow) * (double)view->width;
}

const struct pe_encoding pe_sinusoidal = {
    .info =
        {.type = "sinusoidal",
         .title = "Sinusoidal",
         .doc =
             "Sines and cosines of the position at a ladder of frequencies: each position is a set of clock "
             "hands that turn at different speeds. Moving on by k is a fixed rotation, at any length.",
         .reference = "Vaswani et al. 2017, Attention Is All You Need, section 3.5",
         .family = PE_FAMILY_ABSOLUTE,
         .params_size = sizeof(struct sinusoidal),
         .fields = fields,
         .n_fields = PE_COUNT(fields)},
    .check = check,
    .width = width,
    .plan_bytes = plan_bytes,
    .plan = make_plan,
    .exact = is_exact,
    .admit = admit,
    .apart = apart,
    .encode = encode,
    .encode_add = encode_add,
    .shift_pairs = shift_pairs,
    .shift = shift,
    .frequencies = frequencies,
    .fastest = fastest,
    .row_cost_ns = row_cost_ns,
};
