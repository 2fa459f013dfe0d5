/* SPDX-License-Identifier: MIT
 *
 * Functions between this header and avx2_end.h are compiled for processors with AVX2 and may be called when
 * pe_has_avx2(). Without fused operations: with contraction off they give the same bits as the plain ones,
 * eight floats at a time. Include no other header in between. PE_AVX2 is defined where the compiler can do
 * it.
 */
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif
