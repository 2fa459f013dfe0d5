/* SPDX-License-Identifier: MIT
 *
 * Many numbers as text: what numbers.c and numbers_avx512.c share.
 */
#ifndef PE_NUMBERS_H
#define PE_NUMBERS_H

#include "kernels/target.h"

#include <stddef.h>

/* Writes n numbers, each with a comma behind it; returns the length. */
typedef size_t pe_numbers_writer(char *out, const float *values, size_t n);

pe_numbers_writer pe_numbers_write_avx512; /* numbers_avx512.c, where PE_AVX2 */

#endif
