/* SPDX-License-Identifier: MIT
 *
 * Sine and cosine of one angle that is no product of a position and a frequency, but a sum: w*t + b, or a row
 * of a matrix times coordinates. The sum is exact in wide numbers, what is rounded is the result.
 */
#ifndef PE_ANGLE_H
#define PE_ANGLE_H

#include "core/phase.h"

/* Adds a*b to sum, without rounding as long as all terms are within 2^400 of each other. */
void pe_sum_add(struct pe_wide *sum, double a, double b);
/* sin and cos of 2*pi*turns, |turns| < 2^200, each rounded once as in phase.h; out->step is not used. */
void pe_angle_write(const struct pe_wide *turns, enum pe_dtype dtype, const struct pe_phase_out *out);
/* The number itself, rounded once (doubles below 2^-1022, which have fewer digits, twice). It is to be below the
 * type's overflow. */
void pe_sum_write(const struct pe_wide *sum, enum pe_dtype dtype, void *out);
#define PE_ANGLE_NS 1200.0 /* a sum of a few terms, its sine and cosine */

#endif
