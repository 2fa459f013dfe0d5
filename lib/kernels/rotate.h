/* SPDX-License-Identifier: MIT
 *
 * Turning pairs of columns: (a, b) -> (a c - b s, b c + a s).
 */
#ifndef PE_ROTATE_H
#define PE_ROTATE_H

#include "kernels/target.h"
#include "posenc.h"

/* Pair i is elements i*step and i*step + apart, turned by c = cos[i], s = sin[i]. With step 2 apart is 1. */
struct pe_turn_pairs {
    const double *cos, *sin;
    size_t n, step, apart;
    enum pe_instructions instructions; /* that may be used; the result is the same */
    bool far; /* nobody will read the result soon: keep it out of the caches; pe_rotate_settle */
};

/* x of type real (float32 or float64) to out of any type. Products and sums are float64 and rounded once to
 * the type of out, so that a float32 result is right but for what 2^-52 of the larger product can do. out may
 * be x. */
void pe_rotate(enum pe_dtype real, const void *x, enum pe_dtype out_dtype, void *out,
               const struct pe_turn_pairs *pairs);
/* Has what was kept out of the caches arrive before what is written next. */
void pe_rotate_settle(void);

#endif
