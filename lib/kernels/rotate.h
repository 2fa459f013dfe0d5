/* SPDX-License-Identifier: MIT
 *
 * Turning pairs of columns: (a, b) -> (a c - b s, b c + a s).
 */
#ifndef PE_ROTATE_H
#define PE_ROTATE_H

#include "posenc.h"

/* Pair i is elements i*step and i*step + apart, turned by c = cos[i], s = sin[i]. */
struct pe_turn_pairs {
    const double *cos, *sin;
    size_t n, step, apart;
};

/* x of type real (float32 or float64) to out of any type. Products and sums are float64 and rounded once to
 * the type of out, so that a float32 result is right but for what 2^-52 of the larger product can do. out may
 * be x. */
void pe_rotate(enum pe_dtype real, const void *x, enum pe_dtype out_dtype, void *out,
               const struct pe_turn_pairs *pairs);

#endif
