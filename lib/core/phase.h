/* SPDX-License-Identifier: MIT
 *
 * Exact phase: sin and cos of position * frequency, each rounded once to the element type, at any position.
 *
 *     struct pe_turn turn;       a frequency, as turns per unit of position (core/ladder.h makes them)
 *     struct pe_place place;     a position, prepared once per row
 *     pe_place_of(&place, 1e6, 1, 0);
 *     pe_phase_row(&place, &turn, 1, PE_DTYPE_F32, &(struct pe_phase_out){&s, &c, 1});
 *
 * float32, float16 and bfloat16 are correctly rounded; float64 is within 0.51 units of the last place. The
 * bits of an element depend on its position and frequency alone: not on the row, the batch or the machine.
 */
#ifndef PE_PHASE_H
#define PE_PHASE_H

#include "core/gain.h"
#include "posenc.h"

struct pe_turn {
    /* floor(t * 2^256), least significant first; 0 for t >= 1, which has no fast path */
    uint64_t fraction[4];
    struct pe_wide exact; /* t >= 0 */
};

/* From t >= 0 turns per unit of position. */
void pe_turn_of(struct pe_turn *turn, const struct pe_wide *turns);
/* Does it take the full-width path at every position, or with a gain at every near one? PE_TURN_SLOW_NS. */
bool pe_turn_is_slow(const struct pe_turn *turn, bool has_gain);
#define PE_TURN_SLOW_NS 25000.0

/* The effective position x = scale*position + offset as the real number it is, without any rounding.
 * |position|, |scale| and |offset| are at most 2^53. */
struct pe_place {
    double position, scale, offset;
    bool zero;         /* x = 0, and what follows means nothing */
    bool negative;     /* x < 0 */
    int n_fixed;       /* words of fixed in use: 1, or 4 with fraction_bits 128 */
    int fraction_bits; /* at most 192; 0 exactly for whole numbers below 2^64 */
    uint64_t fixed[4]; /* floor(|x| * 2^fraction_bits), least significant first; exact, or to 2^-128 */
    uint64_t top;      /* |x| = top * 2^(exponent-64), cut; the top bit is set */
    int32_t exponent;
};

void pe_place_of(struct pe_place *place, double position, double scale, double offset);
/* x as a wide number: the sum is cut to 448 bits, but never moved across its larger term. */
struct pe_wide pe_place_wide(const struct pe_place *place);
/* Is x this whole number, exactly? */
bool pe_place_is(const struct pe_place *place, int64_t value);

/* Where the values of frequency i go: element i*step after `sin` and after `cos`; either may be NULL. */
struct pe_phase_out {
    void *sin, *cos;
    size_t step;
    const struct pe_gain *gain; /* NULL = 1 */
};

/* sin and cos of 2*pi*x*t for turns [n], times the gain. At x = 0 and t = 0 they are +0 and the gain. */
void pe_phase_row(const struct pe_place *place, const struct pe_turn *turns, size_t n, enum pe_dtype dtype,
                  const struct pe_phase_out *out);
/* The same for one frequency, always on the full-width path that decides the difficult cases: the reference
 * that faster kernels fall back on and are tested against. */
void pe_phase_exact(const struct pe_place *place, const struct pe_turn *turn, enum pe_dtype dtype,
                    const struct pe_phase_out *out);

#endif
