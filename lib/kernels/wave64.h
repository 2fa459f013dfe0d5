/* SPDX-License-Identifier: MIT
 *
 * Rows of sines and cosines in float64 for whole x, sixteen at a time, as rotations need them: within 0.53 units of
 * the last place, with the same bits on every instruction set and whichever rows are asked for together.
 */
#ifndef PE_WAVE64_H
#define PE_WAVE64_H

#include "core/phase.h"
#include "kernels/target.h"

#define PE_WAVE64_LANES 8  /* pairs in a group */
#define PE_WAVE64_ROWS  16 /* in a block */

/* cos and sin of a group, each high + low; high is a multiple of 2^-26. */
struct pe_wave64_angles {
    double cos_high[PE_WAVE64_LANES], cos_low[PE_WAVE64_LANES];
    double sin_high[PE_WAVE64_LANES], sin_low[PE_WAVE64_LANES];
};

struct pe_wave64_group {
    uint64_t half[3][PE_WAVE64_LANES]; /* of the turns per unit of x, in 2^-192, the least word first */
    struct pe_wave64_angles aside[PE_WAVE64_ROWS / 2]; /* from a block's middle by 1/2, 3/2 .. 15/2 */
};

struct pe_wave64 {
    const struct pe_turn *exact; /* [n] */
    size_t n;
    struct pe_wave64_group *groups;
    enum pe_instructions instructions;
};

/* Memory for n pairs. */
size_t pe_wave64_bytes(size_t n);
/* Every turn must be below 1. */
void pe_wave64_open(struct pe_wave64 *wave, void *memory, const struct pe_turn *turns, size_t n);

/* Is this place a whole number that rows can be at? Then it is *x. */
bool pe_wave64_takes(const struct pe_place *place, int64_t *x);

/* Where values go: n pairs from `first` on, a multiple of the lanes, in rows that have room for whole groups. */
struct pe_wave64_out {
    double *cos, *sin;
    size_t first, n, stride;
};
/* Rows x, x + 1, .. x + rows - 1; x / PE_WAVE64_ROWS, rounded down, has to be the same of all. */
void pe_wave64_run(const struct pe_wave64 *wave, int64_t x, size_t rows, const struct pe_wave64_out *out);

#endif
