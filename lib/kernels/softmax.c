/* SPDX-License-Identifier: MIT
 *
 * Softmax of a row, for float and for double from one text (softmax_row.h).
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

#include <math.h>
#include <string.h>

#define REAL      float
#define BITS      uint32_t
#define NAMED(x)  x##_float
#define LANES     16
#define FRACTION  23
#define MAGNITUDE UINT32_C(0x7fffffff)
#define LOWEST    -87.33F
#define TO_HALF   0x1.8p23F
#define LOG2E     0x1.715476p+0F
#define LN2_HIGH  0x1.62e4p-1F
#define LN2_LOW   0x1.7f7d1cp-20F
#define POLYNOMIAL(r)                                                                                        \
    (0x1.fffffcp-2F +                                                                                        \
     r * (0x1.555492p-3F + r * (0x1.5558eep-5F + r * (0x1.1239c8p-7F + r * 0x1.6a2754p-10F))))
#include "kernels/softmax_row.h"

#define REAL      double
#define BITS      uint64_t
#define NAMED(x)  x##_double
#define LANES     8
#define FRACTION  52
#define MAGNITUDE UINT64_C(0x7fffffffffffffff)
#define LOWEST    -708.39
#define TO_HALF   0x1.8p52
#define LOG2E     0x1.71547652b82fep+0
#define LN2_HIGH  0x1.62e42fefa2p-1
#define LN2_LOW   0x1.9ef35793c7673p-41
#define POLYNOMIAL(r)                                                                                        \
    (0x1.000000000000ap-1 +                                                                                  \
     r * (0x1.55555555554ffp-3 +                                                                             \
          r * (0x1.555555555089bp-5 +                                                                        \
               r * (0x1.111111112675ep-7 +                                                                   \
                    r * (0x1.6c16c184268e6p-10 +                                                             \
                         r * (0x1.a01a01315e12bp-13 +                                                        \
                              r * (0x1.a0199a143885ap-16 +                                                   \
                                   r * (0x1.71df15b49c193p-19 +                                              \
                                        r * (0x1.28ad6b08fd4fbp-22 + r * 0x1.ad97d16a6f039p-26)))))))))
#include "kernels/softmax_row.h"

void pe_softmax_run(const struct pe_softmax *softmax, void *row) {
    if (softmax->dtype == PE_DTYPE_F64)
        softmax_double(softmax, row);
    else
        softmax_float(softmax, row);
}
