/* SPDX-License-Identifier: MIT
 *
 * Softmax of a row. For float and for double from one text (softmax_row.h), for double also compiled for AVX2; for float
 * from another for AVX2 and AVX-512 (softmax_lanes.h), with the same bits.
 *
 * Both use exp(x) = 2^n * exp(r) with n = round(x / ln 2), so that |r| <= ln(2)/2. n*ln(2) is taken off in
 * two pieces: the first has so few bits that its product with n is exact. On the rest exp is 1 + r +
 * r^2*P(r), where P minimises the largest relative error over the interval (the float one leaves 3.0e-9, a
 * twentieth of a last place; the double one 3.6e-18). Rounding to n and building 2^n are done with the bits
 * of x/ln(2) + 1.5*2^(fraction bits): the low bits of that sum are n. So the loop has no branch, no table and
 * no call, and compilers make vectors of it without being told to change the order of operations.
 *
 * x is a difference from the row's maximum, so x <= 0: there is no overflow. Below LOWEST, where exp leaves
 * the normal numbers, the result is 0: subnormals are slow on many processors, and next to a weight of at
 * least 1/n they are nothing. A hidden entry is -infinity and so becomes exactly 0.
 */
#include "kernels/softmax.h"

#include "core/bits.h"
#include "core/stop.h"
#include "kernels/target.h"

#include <math.h>
#include <string.h>
#if PE_AVX2
#include <immintrin.h>
#endif

#define LINE 64 /* bytes */

/* Asked of rows that take long; of others before each. */
static bool is_stopped(const struct pe_softmax *s, size_t n) {
    return n > PE_STOP_ITEMS && pe_stop_asked(s->stop);
}

#define NAMED(x) x##_float
#include "kernels/softmax_float.h"
#include "kernels/softmax_row.h"

#define NAMED(x) x##_double
#include "kernels/softmax_double.h"
#include "kernels/softmax_row.h"

#if PE_AVX2
#include "kernels/avx2_begin.h"
#define NAMED(x) x##_double_avx2
#include "kernels/softmax_double.h"
#include "kernels/softmax_row.h"
#include "kernels/avx2_end.h"

#include "kernels/softmax_float.h"

/* Of halves of the lanes, which were added to each other: as in softmax_row.h. */
static double total_of(double lane[LANES / 2]) {
    for (size_t half = LANES / 4; half; half /= 2) {
        for (size_t l = 0; l < half; l++) {
            lane[l] += lane[l + half];
        }
    }
    return lane[0];
}

#include "kernels/avx2_begin.h"
#include "kernels/softmax_avx2.h"
#include "kernels/avx2_end.h"

#include "kernels/avx512_begin.h"
#include "kernels/softmax_avx512.h"
#include "kernels/avx512_end.h"
#endif

static const struct {
    void (*of_float)(const struct pe_softmax *softmax, void *row);
    void (*of_double)(const struct pe_softmax *softmax, void *row);
} kernels[PE_INSTRUCTIONS_COUNT] = {
    [PE_INSTRUCTIONS_PLAIN] = {softmax_float, softmax_double},
#if PE_AVX2
    [PE_INSTRUCTIONS_AVX2] = {softmax_lanes_avx2, softmax_double_avx2},
    [PE_INSTRUCTIONS_AVX512] = {softmax_lanes_avx512, softmax_double_avx2},
#endif
};

void pe_softmax_run(const struct pe_softmax *softmax, void *row) {
    if (softmax->dtype == PE_DTYPE_F64) {
        kernels[pe_instructions()].of_double(softmax, row);
    } else {
        kernels[pe_instructions()].of_float(softmax, row);
    }
}

void pe_softmax_settle(void) {
#if PE_AVX2
    _mm_sfence();
#endif
}
