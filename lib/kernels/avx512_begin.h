/* SPDX-License-Identifier: MIT
 *
 * As avx2_begin.h, for processors with AVX-512 (F, DQ, BW and VL: all but the first ones) and FMA, which may be
 * called when pe_has_avx512(). They are written with intrinsics: <immintrin.h> goes before this header.
 */
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma"))),         \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")
#endif
