/* SPDX-License-Identifier: MIT
 *
 * The ladder of frequencies that sinusoids and rotations share: omega_i = base^(-i*num/den), held as turns
 * t_i = omega_i / (2*pi) per unit of position.
 */
#ifndef PE_LADDER_H
#define PE_LADDER_H

#include "core/phase.h"

/* Walks the geometric progression. `turns` is t_i of the current rung; whoever scales frequencies (rotary
 * variants) changes a copy of it. */
struct pe_ladder {
    struct pe_wide turns, ratio;
};

/* The first rung, t_0 = 1/(2*pi). 1 <= base < infinity, den >= 1, num/den <= 4. */
void pe_ladder_start(struct pe_ladder *ladder, double base, uint32_t num, uint32_t den);
/* Rung i becomes factor^(-i*num/den) times what it was: another base, without rounding it to a double. Before
 * the first pe_ladder_next; factor > 0. */
void pe_ladder_stretch(struct pe_ladder *ladder, const struct pe_wide *factor, uint32_t num, uint32_t den);
void pe_ladder_next(struct pe_ladder *ladder);
/* turns [n]: the whole ladder. */
void pe_ladder_fill(struct pe_turn *turns, size_t n, double base, uint32_t num, uint32_t den);

/* Angle addition: with a = distance * scale * omega of one rung,
 *
 *     sin(t + a) =  cos a sin t + sin a cos t
 *     cos(t + a) = -sin a sin t + cos a cos t
 *
 * so M [2, 2], which takes the pair of a position to that `distance` on, is a rotation; of (cos, sin) pairs the
 * sines of M change sides. */
void pe_turn_shift(const struct pe_turn *turn, double distance, double scale, bool cos_first, double m[4]);
/* omega = 2*pi*t of one rung, rounded once to the element type. */
void pe_turn_frequency(const struct pe_turn *turn, enum pe_dtype dtype, void *out);

#endif
