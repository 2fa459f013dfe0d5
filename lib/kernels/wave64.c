/* SPDX-License-Identifier: MIT
 *
 * Sines and cosines in float64 by angle addition. x stands in a block of sixteen whole numbers, b aside from the
 * block's middle a, and as in wave.c
 *
 *     sin(a + b) = sin a cos b + cos a sin b          cos(a + b) = cos a cos b - sin a sin b
 *     sin(a - b) = sin a cos b - cos a sin b          cos(a - b) = cos a cos b + sin a sin b
 *
 * There the results are rounded to float32, and what doubles lose on the way is far behind; here it is not. So
 * each factor is high + low, high a multiple of 2^-26. Products of high parts are then multiples of 2^-52, and so
 * are their sums and differences, below 2: doubles hold them exactly. What remains are products with low parts,
 * 2^-27 of the whole, whose roundings are as small as 2^-80. One addition brings both together, and rounds.
 *
 * Angles at the middle are made of the exact phase, as in core/phase.c: the nearest 256th of the circle, from a
 * table, and by the same addition the rest, at most 1/512 turn, by Taylor's series. Its parts that count, the angle
 * and half its square, are taken apart so that nothing of them is lost.
 *
 * Which block x is in depends on x alone, so its bits do, too, and not on the rows around it. Products and sums are
 * in a fixed order and none is fused, so the instruction set does not matter.
 *
 * Errors, absolute: of the rest's sine, whose series from the cube on is below 2^-21.5, 2^-73; all else 2^-77. As
 * vectors (cos, sin) an anchor and what it is turned by are off by 2^-72.9 each, which makes 2^-71.8 before the
 * one rounding. For values of 2^-13 and more that is 0.02 units of the last place. Smaller ones are left to
 * pe_phase_row: one random angle in 6,000, and those whose sines are next to nothing.
 */
#include "kernels/wave64.h"

#include "core/bits.h"
#include "kernels/wave64_parts.h"

#include <string.h>

#define LANES      PE_WAVE64_LANES
#define ROWS       PE_WAVE64_ROWS
#define LEAST      0x1p-13
#define LEAST_BITS UINT64_C(0x3f20000000000000)
#define GRID       0x1.8p26 /* added and subtracted it rounds to a multiple of 2^-26 */

/* gcc unrolls so short a loop before it looks for vectors in it, and then finds few. */
#define EACH_LANE(l) _Pragma("GCC unroll 1") for (int l = 0; l < LANES; l++)

/* 2*pi: its first 26 bits, what is left, and all. */
#define TWO_PI_HIGH 0x1.921fb5p+2
#define TWO_PI_LOW  0x1.110b4611a6263p-24
#define TWO_PI      0x1.921fb54442d18p+2

/* A phase: parts/256 turn of a quarter, of which cos and sin are in the table, and upper * 2^-35 + lower * 2^-88
 * turns. */
struct phases {
    double upper[LANES], lower[LANES];
    double cos_high[LANES], cos_low[LANES], sin_high[LANES], sin_low[LANES];
    uint64_t quarter[LANES];
};

/* The phase at twice/2, shifted by 1/8 turn, so that the two bits on top tell the nearest quarter. */
static PE_INLINE void phases_of(const struct pe_wave64_group *group, int64_t twice, struct phases *out) {
    const uint64_t sign = 0 - (uint64_t)(twice < 0), m = ((uint64_t)twice ^ sign) - sign;
    for (int l = 0; l < LANES; l++) {
        uint64_t low, cut, high = pe_multiply(m, group->half[1][l], &low);
        const uint64_t carried = pe_multiply(m, group->half[0][l], &cut);
        low += carried;
        high += (low < carried) + m * group->half[2][l];
        high = (high ^ sign) + (UINT64_C(1) << 61); /* -v - 2^-128: what is cut is more */
        low ^= sign;
        const uint64_t within = high & (UINT64_MAX >> 2);
        const uint64_t part = (within + (UINT64_C(1) << 55)) >> 56; /* 0 .. 64, 32 for the quarter itself */
        const int64_t rest = (int64_t)(within - (part << 56));      /* of 2^-64, at most 2^55 */
        const int64_t upper = (rest + (INT64_C(1) << 56)) / (INT64_C(1) << 29) - (INT64_C(1) << 27);
        const uint64_t lower = ((uint64_t)rest & ((UINT64_C(1) << 29) - 1)) << 24 | low >> 40;
        out->upper[l] = (double)upper;
        out->lower[l] = (double)(int64_t)lower;
        out->quarter[l] = high >> 62;
        out->cos_high[l] = wave64_parts[part][0];
        out->cos_low[l] = wave64_parts[part][1];
        out->sin_high[l] = wave64_parts[part][2];
        out->sin_low[l] = wave64_parts[part][3];
    }
}

/* Where results of a group go. */
struct target {
    double *cos, *sin;
    size_t stride;
    unsigned from, end; /* rows of the block */
};

struct kernel {
    void (*anchor)(const struct pe_wave64_group *group, int64_t twice, struct pe_wave64_angles *out);
    /* true: some value is too small */
    bool (*block)(const struct pe_wave64_group *group, const struct pe_wave64_angles *anchor,
                  const struct target *to);
};

#define TARGETED(x) x##_plain
#include "kernels/wave64_rows.h"
#undef TARGETED

#if PE_AVX2
#include "kernels/avx2_begin.h"
#define TARGETED(x) x##_avx2
#include "kernels/wave64_rows.h"
#undef TARGETED
#include "kernels/avx2_end.h"

#include "kernels/avx512_begin.h"
#define TARGETED(x) x##_avx512
#include "kernels/wave64_rows.h"
#undef TARGETED
#include "kernels/avx512_end.h"
#endif

static const struct kernel kernels[PE_INSTRUCTIONS_COUNT] = {
    [PE_INSTRUCTIONS_PLAIN] = {anchor_plain, block_plain},
#if PE_AVX2
    [PE_INSTRUCTIONS_AVX2] = {anchor_avx2, block_avx2},
    [PE_INSTRUCTIONS_AVX512] = {anchor_avx512, block_avx512},
#endif
};

/* ---- Tables -------------------------------------------------------------------------------------------- */

static size_t groups_of(size_t n) {
    return n / LANES + (n % LANES != 0);
}

size_t pe_wave64_bytes(size_t n) {
    return groups_of(n) * sizeof(struct pe_wave64_group);
}

void pe_wave64_open(struct pe_wave64 *wave, void *memory, const struct pe_turn *turns, size_t n) {
    *wave = (struct pe_wave64){turns, n, memory, pe_instructions()};
    const struct kernel *kernel = &kernels[wave->instructions];
    for (size_t i = 0; i < groups_of(n) * LANES; i++) {
        const uint64_t *t = turns[i < n ? i : n - 1].fraction; /* behind the last pair it again */
        struct pe_wave64_group *group = &wave->groups[i / LANES];
        for (int word = 0; word < 3; word++) {
            group->half[word][i % LANES] = t[word + 1] >> 1 | (word < 2 ? t[word + 2] << 63 : 0);
        }
    }
    for (size_t g = 0; g < groups_of(n); g++) {
        for (int k = 0; k < ROWS / 2; k++) {
            kernel->anchor(&wave->groups[g], 2 * k + 1, &wave->groups[g].aside[k]);
        }
    }
}

/* ---- Rows ---------------------------------------------------------------------------------------------- */

bool pe_wave64_takes(const struct pe_place *place, int64_t *x) {
    if (place->zero) {
        *x = 0;
        return true;
    }
    if (place->fraction_bits != 0 || place->n_fixed != 1 || place->fixed[0] >= UINT64_C(1) << 53) {
        return false;
    }
    *x = place->negative ? -(int64_t)place->fixed[0] : (int64_t)place->fixed[0];
    return true;
}

/* Which of the sixteen x is, and the block's middle, twice. */
static unsigned row_of(int64_t x) {
    return (unsigned)((uint64_t)x % ROWS);
}

static int64_t middle_of(int64_t x) {
    return 2 * (x - (int64_t)row_of(x)) + (ROWS - 1);
}

/* Of the group at `done` of out's pairs, those values that are too small, and what is beside them. */
static void small_again(const struct pe_wave64 *wave, int64_t x, size_t rows, const struct pe_wave64_out *out,
                        size_t done) {
    const size_t pair = out->first + done;
    for (size_t row = 0; row < rows; row++) {
        double *c = out->cos + row * out->stride + done, *s = out->sin + row * out->stride + done;
        struct pe_place place;
        pe_place_of(&place, (double)(x + (int64_t)row), 1, 0);
        for (size_t l = 0; l < LANES && pair + l < wave->n; l++) {
            if ((c[l] < LEAST && -c[l] < LEAST) || (s[l] < LEAST && -s[l] < LEAST)) {
                pe_phase_row(&place, wave->exact + pair + l, 1, PE_DTYPE_F64,
                             &(struct pe_phase_out){&s[l], &c[l], 1, NULL});
            }
        }
    }
}

void pe_wave64_run(const struct pe_wave64 *wave, int64_t x, size_t rows, const struct pe_wave64_out *out) {
    const struct kernel *kernel = &kernels[wave->instructions];
    const unsigned from = row_of(x);
    for (size_t done = 0; done < out->n; done += LANES) {
        const struct pe_wave64_group *group = &wave->groups[(out->first + done) / LANES];
        const struct target to = {out->cos + done, out->sin + done, out->stride, from, from + (unsigned)rows};
        struct pe_wave64_angles anchor;
        kernel->anchor(group, middle_of(x), &anchor);
        if (kernel->block(group, &anchor, &to)) {
            small_again(wave, x, rows, out, done);
        }
    }
}
