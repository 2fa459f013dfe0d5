/* SPDX-License-Identifier: MIT
 *
 * What the processor can do, as the compiler's run-time library tells: it asks the system, too, which registers it
 * keeps.
 */
#include "kernels/target.h"

enum pe_instructions pe_instructions(void) {
#if PE_AVX2
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
        return PE_INSTRUCTIONS_PLAIN;
    }
    bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    return avx512 ? PE_INSTRUCTIONS_AVX512 : PE_INSTRUCTIONS_AVX2;
#else
    return PE_INSTRUCTIONS_PLAIN;
#endif
}
