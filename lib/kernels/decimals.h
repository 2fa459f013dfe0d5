/* SPDX-License-Identifier: MIT
 *
 * Lists of numbers of few digits: what decimals.c and decimals_sse4.h share.
 */
#ifndef PE_DECIMALS_H
#define PE_DECIMALS_H

#include "kernels/target.h"
#include "posenc.h"

/* Bytes behind the first of a number that may be read. Those of a number, its comma, and one more are fewer. */
#define PE_DECIMALS_WINDOW 32

/* Where the numbers go. A copy, as bytes that are stored through pointers might be those of the list. */
struct pe_decimals_place {
    uint32_t *digits;
    int8_t *exponents;
    size_t room;
};

/* Moves the place on. */
typedef const char *pe_decimals_reader(struct pe_decimals_place *place, const char *text, const char *end);

/* The number m, negative or not, of n_fraction digits behind its point. */
static inline void pe_decimals_add(struct pe_decimals_place *place, uint64_t m, uint32_t negative,
                                   int n_fraction) {
    *place->digits++ = (uint32_t)m << 1 | negative;
    *place->exponents++ = (int8_t)-n_fraction;
    place->room--;
}

#endif
