/* SPDX-License-Identifier: MIT
 *
 * Of element types, what only the library needs to know.
 */
#ifndef PE_DTYPE_H
#define PE_DTYPE_H

#include "posenc.h"

/* From this magnitude on a number rounds to infinity: the midpoint between the largest number and the next
 * power of two, which as a tie goes to the even one, the power. Infinite itself for float64. */
double pe_dtype_overflow(enum pe_dtype dtype);

#endif
