/* SPDX-License-Identifier: MIT
 *
 * Matrix products whose bits are the same on every machine, for what is cached by a strong tag.
 */
#ifndef PE_ORDERED_H
#define PE_ORDERED_H

#include "kernels/linalg.h"

/* The product by pe_gemm's definition, of float64: each number of c is the sum of a[i, l]*b[l, j] over l from
 * the first to the last, times alpha. So it depends on its row of a and its column of b, and on nothing else:
 * neither on where they stand, nor on how many there are. */
void pe_ordered_run(const struct pe_gemm *gemm);

#endif
