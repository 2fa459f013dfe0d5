/* SPDX-License-Identifier: MIT
 *
 * What the parts of `exact` share: random numbers, rounding by MPFR, and counts.
 */
#ifndef EXACT_H
#define EXACT_H

#include "posenc.h"

#include <mpfr.h>

struct random {
    uint64_t state;
};
uint64_t random_bits(struct random *r);
size_t random_below(struct random *r, size_t n);
/* Whole numbers of every size up to 2^53, small ones, fractions, tiny numbers; either sign. */
double random_position(struct random *r);

struct counts {
    long checked[PE_DTYPE_COUNT], wrong[PE_DTYPE_COUNT];
    double worst; /* float64, in ulp */
};

/* The mantissa's bits of an element type. */
int exact_bits(enum pe_dtype dtype);
/* v, which was rounded to as many bits with this ternary value, as a number of the type: subnormals and
 * infinity. */
double exact_number(mpfr_ptr v, int ternary, enum pe_dtype dtype);
/* Counts a number: bits must be equal, of float64 neighbours are. Returns whether to complain. */
bool exact_compare(struct counts *counts, enum pe_dtype dtype, double got, double want);

/* The denominators, below 2^53, of the convergents of 2*frequency/pi; how many. */
#define MAX_CONVERGENTS 80 /* they grow no slower than Fibonacci's numbers */
int exact_convergents(mpfr_srcptr frequency, double denominators[MAX_CONVERGENTS]);

/* exact_rope.c */
void exact_rope(struct counts *counts, struct random *r, long n);
/* exact_wave.c */
void exact_wave(struct counts *counts, struct random *r, long n);

#endif
