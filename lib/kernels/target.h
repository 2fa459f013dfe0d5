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

/* In this order each has all before it. */
enum pe_instructions {
    PE_INSTRUCTIONS_PLAIN,
    PE_INSTRUCTIONS_AVX2,   /* what stands between avx2_begin.h or fma_begin.h and avx2_end.h */
    PE_INSTRUCTIONS_AVX512, /* and between avx512_begin.h and avx512_end.h */
    PE_INSTRUCTIONS_COUNT,
};

/* The last that this processor has. A function of its own, so that tests can put theirs in its place, which says
 * less (tests/instructions.h). */
enum pe_instructions pe_instructions(void);

static inline bool pe_has_avx2(void) {
    return pe_instructions() >= PE_INSTRUCTIONS_AVX2;
}

#endif
