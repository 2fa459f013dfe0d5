/* SPDX-License-Identifier: MIT
 *
 * Exponentials and powers of float32 numbers with the bits that PyTorch gives them on a CPU with AVX2: most
 * are the nearest ones, some a unit of the last place beside.
 */
#ifndef PE_TORCH_H
#define PE_TORCH_H

#include <stddef.h>

/* torch.exp, -104 < x < 89. */
float pe_torch_exp(float x);
/* Element i of base ** exponents, where `exponents` has n elements; base above 0. */
float pe_torch_pow(float base, float exponent, size_t i, size_t n);

#endif
