/* SPDX-License-Identifier: MIT
 *
 * Lists of floats as text: number, comma, number, comma. Each instruction set writes the same bytes.
 */
#include "kernels/numbers.h"

#include "core/shortest_f32.h"
#include "posenc.h"

static size_t write_plain(char *out, const float *values, size_t n) {
    char *at = out;
    for (size_t i = 0; i < n; i++) {
        at += pe_shortest_write_f32(at, values[i]);
        *at++ = ',';
    }
    return (size_t)(at - out);
}

size_t pe_numbers_write_f32(char *out, const float *values, size_t n) {
    static pe_numbers_writer *const writers[PE_INSTRUCTIONS_COUNT] = {
        [PE_INSTRUCTIONS_PLAIN] = write_plain,
        [PE_INSTRUCTIONS_AVX2] = write_plain,
#if PE_AVX2
        [PE_INSTRUCTIONS_AVX512] = pe_numbers_write_avx512,
#else
        [PE_INSTRUCTIONS_AVX512] = write_plain,
#endif
    };
    return writers[pe_instructions()](out, values, n);
}
