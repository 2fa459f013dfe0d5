/* SPDX-License-Identifier: MIT
 *
 * As avx2_begin.h, for processors with FMA besides, which all are that pe_instructions() says have AVX2; ends with
 * avx2_end.h. Only for what does not depend on whether a compiler fuses: gcc 12 fuses alternating sums of pairs that
 * it makes into vectors, contraction off or not. It leaves single intrinsics as they are.
 */
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
