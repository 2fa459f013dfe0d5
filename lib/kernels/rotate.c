/* SPDX-License-Identifier: MIT
 *
 * Loops for both layouts of pairs and for each type, compiled for each instruction set, and a slow one for results
 * of 16 bits.
 */
#include "kernels/rotate.h"

#include <stdint.h>
#if PE_AVX2
#include <immintrin.h>
#endif

#define REAL     float
#define NAMED(x) x##_float_plain
#include "kernels/rotate_real.h"

#define REAL     double
#define NAMED(x) x##_double_plain
#include "kernels/rotate_real.h"

#if PE_AVX2
#include "kernels/avx2_begin.h"
#define REAL     float
#define NAMED(x) x##_float_avx2
#include "kernels/rotate_real.h"

#define REAL     double
#define NAMED(x) x##_double_avx2
#include "kernels/rotate_real.h"
#include "kernels/avx2_end.h"

#include "kernels/avx512_begin.h"
#include "kernels/rotate_avx512.h"
#include "kernels/avx512_end.h"
#endif

static const struct {
    void (*of_float)(const void *x, void *out, const struct pe_turn_pairs *pairs);
    void (*of_double)(const void *x, void *out, const struct pe_turn_pairs *pairs);
} kernels[PE_INSTRUCTIONS_COUNT] = {
    [PE_INSTRUCTIONS_PLAIN] = {rotate_float_plain, rotate_double_plain},
#if PE_AVX2
    [PE_INSTRUCTIONS_AVX2] = {rotate_float_avx2, rotate_double_avx2},
    /* gcc 12 fuses alternating sums and differences of products where it may use FMA, contraction off or not */
    [PE_INSTRUCTIONS_AVX512] = {rotate_float_avx512, rotate_double_avx2},
#endif
};

static void rotate_narrow(enum pe_dtype real, const void *x, enum pe_dtype out_dtype, char *out,
                          const struct pe_turn_pairs *pairs) {
    size_t size = pe_dtype_size(real), out_size = pe_dtype_size(out_dtype);
    for (size_t i = 0; i < pairs->n; i++) {
        size_t first = i * pairs->step, second = first + pairs->apart;
        double a, b;
        pe_dtype_load(real, (const char *)x + first * size, 1, &a);
        pe_dtype_load(real, (const char *)x + second * size, 1, &b);
        double turned[2] = {a * pairs->cos[i] - b * pairs->sin[i], b * pairs->cos[i] + a * pairs->sin[i]};
        pe_dtype_store(out_dtype, &turned[0], 1, out + first * out_size);
        pe_dtype_store(out_dtype, &turned[1], 1, out + second * out_size);
    }
}

void pe_rotate(enum pe_dtype real, const void *x, enum pe_dtype out_dtype, void *out,
               const struct pe_turn_pairs *pairs) {
    if (real != out_dtype) {
        rotate_narrow(real, x, out_dtype, out, pairs);
    } else if (real == PE_DTYPE_F64) {
        kernels[pairs->instructions].of_double(x, out, pairs);
    } else {
        kernels[pairs->instructions].of_float(x, out, pairs);
    }
}

void pe_rotate_settle(void) {
#if PE_AVX2
    _mm_sfence();
#endif
}
