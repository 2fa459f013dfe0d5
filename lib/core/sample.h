/* SPDX-License-Identifier: MIT
 *
 * A sorted sample without replacement, the same on every machine.
 */
#ifndef PE_SAMPLE_H
#define PE_SAMPLE_H

#include "posenc.h"

/* ARENA [count]: so many different whole numbers from 0 to below-1, ascending; every set of them is as
 * likely. count <= below <= 2^53. NULL on failure. */
double *pe_sample(struct pe_arena *arena, size_t count, size_t below, uint64_t seed, struct pe_error *err);

#endif
