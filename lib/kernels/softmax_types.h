/* SPDX-License-Identifier: MIT
 *
 * The constants of softmax for float and for double, and the text of both: see softmax.c. TARGETED(x) names a
 * function for the instruction set that is compiled for.
 */

#define REAL      float
#define BITS      uint32_t
#define NAMED(x)  TARGETED(x##_float)
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
#define NAMED(x)  TARGETED(x##_double)
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
