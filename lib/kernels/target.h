/* SPDX-License-Identifier: MIT
 *
 * Which instruction sets kernels are compiled for beside the plain one. PE_PORTABLE turns all of them off.
 */
#ifndef PE_TARGET_H
#define PE_TARGET_H

#include <stdbool.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(PE_PORTABLE)
#define PE_AVX2 1
#else
#define PE_AVX2 0
#endif

/* Can this processor run what stands between avx2_begin.h and avx2_end.h? */
static inline bool pe_has_avx2(void) {
#if PE_AVX2
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

/* And what stands between avx512_begin.h and avx512_end.h? */
static inline bool pe_has_avx512(void) {
#if PE_AVX2
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

#endif
