/* SPDX-License-Identifier: MIT
 *
 * Softmax of a row, for float and for double, each for any processor and for AVX2, from one text
 * (softmax_row.h).
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

#include "kernels/target.h"

#include <math.h>
#include <string.h>

#define TARGETED(x) x##_plain
#include "kernels/softmax_types.h"
#undef TARGETED

#if PE_AVX2
#include "kernels/avx2_begin.h"
#define TARGETED(x) x##_avx2
#include "kernels/softmax_types.h"
#undef TARGETED
#include "kernels/avx2_end.h"
#endif

void pe_softmax_run(const struct pe_softmax *softmax, void *row) {
    static void (*const run[][2])(const struct pe_softmax *, void *) = {
        {softmax_float_plain, softmax_double_plain},
#if PE_AVX2
        {softmax_float_avx2, softmax_double_avx2},
#endif
    };
    run[pe_has_avx2()][softmax->dtype == PE_DTYPE_F64](softmax, row);
}
