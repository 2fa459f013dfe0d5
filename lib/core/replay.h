/* SPDX-License-Identifier: MIT
 *
 * What deployed code computes in place of the exact angles: a replay of its float32 arithmetic, step by step,
 * so that one can see what a trained model really saw. No step depends on the C library: frequencies are
 * PyTorch's to the bit (core/torch.h), sines and cosines are rounded once from the exact phase of the float32
 * angle, which is what PyTorch aims at; one in twenty of its own is the nearest number's neighbour.
 */
#ifndef PE_REPLAY_H
#define PE_REPLAY_H

#include "core/phase.h"
#include "posenc_fields.h"

enum pe_arithmetic {
    PE_ARITHMETIC_EXACT = 1,
    PE_ARITHMETIC_FLOAT32_POW,
    PE_ARITHMETIC_FLOAT32_EXP,
    PE_ARITHMETIC_BFLOAT16_POSITIONS,
    PE_ARITHMETIC_FLOAT16_POSITIONS,
    PE_ARITHMETIC_GGML
};
extern const struct pe_choice pe_arithmetic_choices[];

/* Of a plan. Encodings that scale frequencies change what follows `n` after pe_replay_open, which leaves
 * `stretch` and `gain` 1; with positions of 2^53 and rates up to 2^50 the angles stay within what
 * core/phase.h takes. */
struct pe_replay {
    enum pe_arithmetic arithmetic;
    size_t n;
    float *rates;     /* VIEW [n]: frequencies; ggml: what the angles are divided by, 1 unless changed */
    float step;       /* ggml: from one angle to the next */
    float stretch;    /* ggml: factor of all angles */
    const float *mix; /* ggml, VIEW [n]: the part of each angle that is not stretched; NULL = none */
    float gain;       /* of sines and cosines */
    struct pe_turn radian;
};

/* base^(-i*num/den) for i < n. PE_ERR_RANGE at `base` when that is infinite in float32. */
struct pe_replay_ladder {
    double base;
    uint32_t num, den;
    bool upward;     /* base^(i*num/den), of float32_pow and of rounded positions */
    size_t n_raised; /* elements of the tensor of exponents there, 0: n */
};
int pe_replay_open(struct pe_replay *replay, enum pe_arithmetic arithmetic, float *rates, size_t n,
                   const struct pe_replay_ladder *ladder, struct pe_error *err);
float pe_replay_log(float a); /* logf, a above 0 */
/* The frequencies [n], float32 numbers in that type: the angles at position 1. */
void pe_replay_rates(const struct pe_replay *replay, enum pe_dtype dtype, void *out);
/* sin and cos of pairs first .. first+n-1 at a position: float32 numbers, rounded again to other types. The
 * gain of `out` is not used. */
void pe_replay_row(const struct pe_replay *replay, double position, size_t first, size_t n,
                   enum pe_dtype dtype, const struct pe_phase_out *out);
/* The first position p whose scale*p + offset the arithmetic cannot hold: PE_ERR_RANGE at its index. */
int pe_replay_admit(enum pe_arithmetic arithmetic, const struct pe_positions *positions, double scale,
                    double offset, struct pe_error *err);

#endif
