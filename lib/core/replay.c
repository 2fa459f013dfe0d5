/* SPDX-License-Identifier: MIT
 *
 * With fl for one rounding to float32, d the width and e_i = 2i/d the exponents, tpow and texp the functions
 * of PyTorch, see core/torch.h:
 *
 *     float32_pow           w_i = fl(1 / tpow(fl(base), fl(2i/d)))
 *                           1.0 / (base ** (arange(0, d, 2).float() / d))
 *     float32_exp           w_i = texp(fl(2i * fl(-ln(base)/d)))
 *                           exp(arange(0, d, 2).float() * (-log(base) / d))
 *     bfloat16_positions    p rounded to bfloat16 first, w_i as for float32_pow
 *     float16_positions     the same with float16
 *                           angle = fl(fl(p) * w_i)
 *     ggml                  s = fl(fl(base)^fl(-2/d)), theta_0 = fl(p), theta_i = fl(theta_(i-1) * s)
 *                           x = fl(theta_i / rate_i), angle = fl(stretch * x), and where a part m of it
 *                           is not stretched fl(fl(fl(stretch * x) * fl(1 - m)) + fl(x * m))
 *
 * The first two are how most code for PyTorch and NumPy writes the ladder (the Llama and GPT-NeoX files of
 * transformers, the PyTorch tutorial and fairseq), ggml the loop of llama.cpp. ln(base)/d is a double there,
 * as Python's. The error of all but the first frequency, some 2^-24 of it, grows with the position.
 */
#include "core/replay.h"

#include "core/admit.h"
#include "core/torch.h"

#include <float.h>
#include <math.h>

#define RATES_TOGETHER 64     /* between two questions whether to stop: some milliseconds */
#define FLOAT16_END    65520. /* the midpoint above the largest number, which rounds to infinity */

const struct pe_choice pe_arithmetic_choices[] = {
    {"exact", PE_ARITHMETIC_EXACT, "every value is rounded once from the exact one"},
    {"float32_pow", PE_ARITHMETIC_FLOAT32_POW,
     "frequencies 1/base^(2i/d) and angles in float32: Llama, GPT-NeoX and most others in transformers"},
    {"float32_exp", PE_ARITHMETIC_FLOAT32_EXP,
     "frequencies exp(-2i*ln(base)/d) and angles in float32: PyTorch tutorial, Annotated Transformer, "
     "fairseq"},
    {"bfloat16_positions", PE_ARITHMETIC_BFLOAT16_POSITIONS,
     "positions rounded to bfloat16, which knows 256 but not 257; then as float32_pow"},
    {"float16_positions", PE_ARITHMETIC_FLOAT16_POSITIONS,
     "positions rounded to float16, which knows 2048 but not 2049; then as float32_pow"},
    {"ggml", PE_ARITHMETIC_GGML, "a running product in float32 from angle to angle: llama.cpp"},
    {NULL, 0, NULL}};

/* ---- Frequencies --------------------------------------------------------------------------------------- */

/* Rounded once to float32: no power here is a tie, as exponents are below 1 or the result is the base. */
static float nearest(const struct pe_wide *a) {
    return (float)pe_wide_odd(a);
}

/* base^exponent from ln(base). */
static float power(const struct pe_wide *log_base, float exponent) {
    struct pe_wide wide = pe_wide_of((double)exponent);
    pe_wide_mul(&wide, &wide, log_base);
    pe_wide_exp(&wide, &wide);
    return nearest(&wide);
}

static struct pe_wide log_of(double base) {
    struct pe_wide log = pe_wide_of(base);
    pe_wide_log(&log, &log);
    return log;
}

static float rate_of(enum pe_arithmetic arithmetic, const struct pe_replay_ladder *ladder, double log_base,
                     size_t i, size_t n) {
    float up = (float)(i * ladder->num);
    if (arithmetic == PE_ARITHMETIC_GGML) {
        return 1;
    }
    if (arithmetic == PE_ARITHMETIC_FLOAT32_EXP) {
        float factor = (float)(-log_base / (double)ladder->den);
        return pe_torch_exp(up * factor);
    }
    float exponent = up / (float)ladder->den;
    float raised = pe_torch_pow((float)ladder->base, exponent, i, n);
    return ladder->upward ? raised : 1 / raised;
}

float pe_replay_log(float a) {
    const struct pe_wide log = log_of((double)a);
    return nearest(&log);
}

int pe_replay_open(struct pe_replay *replay, enum pe_arithmetic arithmetic, float *rates, size_t n,
                   const struct pe_replay_ladder *ladder, struct pe_error *err) {
    if (!isfinite(ladder->base)) {
        return pe_fail(err, PE_ERR_RANGE, "base",
                       "is beyond the largest float32, the arithmetic that was asked for, once the scaling "
                       "raised it");
    }
    if (ladder->base > (double)FLT_MAX) {
        return pe_fail(err, PE_ERR_RANGE, "base",
                       "is %g, which is infinite in float32, the arithmetic that was asked for",
                       ladder->base);
    }
    const struct pe_wide log = log_of(ladder->base), log_single = log_of((double)(float)ladder->base);
    const double log_base = pe_wide_nearest(&log);
    const size_t together = ladder->n_raised ? ladder->n_raised : n;
    *replay = (struct pe_replay){.arithmetic = arithmetic, .n = n, .rates = rates, .stretch = 1, .gain = 1};
    pe_turn_of(&replay->radian, &pe_wide_1_2pi);
    replay->step = power(&log_single, -(float)ladder->num / (float)ladder->den);
    for (size_t i = 0; i < n; i++) {
        if (i % RATES_TOGETHER == 0 && pe_error_poll(err)) {
            return err->code;
        }
        rates[i] = rate_of(arithmetic, ladder, log_base, i, together);
    }
    return PE_OK;
}

/* ---- Angles -------------------------------------------------------------------------------------------- */

/* The type that positions are rounded to. */
static enum pe_dtype position_dtype(enum pe_arithmetic arithmetic) {
    return arithmetic == PE_ARITHMETIC_BFLOAT16_POSITIONS  ? PE_DTYPE_BF16
           : arithmetic == PE_ARITHMETIC_FLOAT16_POSITIONS ? PE_DTYPE_F16
                                                           : PE_DTYPE_F32;
}

static float position_round(const struct pe_replay *replay, double position) {
    enum pe_dtype dtype = position_dtype(replay->arithmetic);
    char element[8];
    pe_dtype_store(dtype, &position, 1, element);
    pe_dtype_load(dtype, element, 1, &position);
    return (float)position;
}

/* The angle of pair i; theta is the running product of ggml, the position in all others. */
static float angle_of(const struct pe_replay *replay, float theta, size_t i) {
    if (replay->arithmetic != PE_ARITHMETIC_GGML) {
        return theta * replay->rates[i];
    }
    float divided = theta / replay->rates[i];
    float stretched = replay->stretch * divided;
    if (!replay->mix) {
        return stretched;
    }
    float mix = replay->mix[i], rest = 1 - mix;
    float low = stretched * rest;
    float high = divided * mix;
    return low + high;
}

static float theta_next(const struct pe_replay *replay, float theta) {
    return replay->arithmetic == PE_ARITHMETIC_GGML ? theta * replay->step : theta;
}

static void single_store(void *out, size_t i, enum pe_dtype dtype, float value) {
    double wide = (double)value;
    if (out) {
        pe_dtype_store(dtype, &wide, 1, (char *)out + i * pe_dtype_size(dtype));
    }
}

void pe_replay_rates(const struct pe_replay *replay, enum pe_dtype dtype, void *out) {
    float theta = 1;
    for (size_t i = 0; i < replay->n; i++, theta = theta_next(replay, theta)) {
        single_store(out, i, dtype, angle_of(replay, theta, i));
    }
}

void pe_replay_row(const struct pe_replay *replay, double position, size_t first, size_t n,
                   enum pe_dtype dtype, const struct pe_phase_out *out) {
    float theta = position_round(replay, position);
    for (size_t i = 0; i < first && replay->arithmetic == PE_ARITHMETIC_GGML; i++) {
        theta = theta_next(replay, theta);
    }
    for (size_t i = 0; i < n; i++, theta = theta_next(replay, theta)) {
        float s, c;
        struct pe_place place;
        pe_place_of(&place, (double)angle_of(replay, theta, first + i), 1, 0);
        pe_phase_row(&place, &replay->radian, 1, PE_DTYPE_F32, &(struct pe_phase_out){&s, &c, 1, NULL});
        single_store(out->sin, i * out->step, dtype, s * replay->gain);
        single_store(out->cos, i * out->step, dtype, c * replay->gain);
    }
}

int pe_replay_admit(enum pe_arithmetic arithmetic, const struct pe_positions *positions, double scale,
                    double offset, struct pe_error *err) {
    if (arithmetic != PE_ARITHMETIC_FLOAT16_POSITIONS) {
        return PE_OK;
    }
    /* the bounds are quotients, rounded: a little inside where they are */
    double end = nextafter(FLOAT16_END, 0) * (fabs(scale) == 1 && offset == 0 ? 1 : 1 - 1e-12);
    double a = (-end - offset) / scale, b = (end - offset) / scale;
    const struct pe_admit rule = {.min = fmin(a, b), .max = fmax(a, b)};
    struct pe_stray stray;
    char path[64];
    if (!pe_positions_stray(positions, &rule, err->stop, &stray)) {
        return PE_OK;
    }
    return pe_fail(err, PE_ERR_RANGE, pe_positions_index_text(positions, stray.index, path, sizeof path),
                   "got %.17g, which arithmetic float16_positions rounds to infinity: allowed is less than "
                   "%g in magnitude, with scale and offset",
                   stray.position, FLOAT16_END);
}
