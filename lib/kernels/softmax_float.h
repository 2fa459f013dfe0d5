/* SPDX-License-Identifier: MIT
 *
 * The constants of softmax for float: see softmax.c.
 */

#define REAL      float
#define BITS      uint32_t
#define LANES     16
#define FRACTION  23
#define MAGNITUDE UINT32_C(0x7fffffff)
#define LOWEST    -87.33F
#define TO_HALF   0x1.8p23F
#define LOG2E     0x1.715476p+0F
#define LN2_HIGH  0x1.62e4p-1F
#define LN2_LOW   0x1.7f7d1cp-20F
/* P(r): its coefficients, from the constant one up. */
#define POLYNOMIAL_0 0x1.fffffcp-2F
#define POLYNOMIAL_1 0x1.555492p-3F
#define POLYNOMIAL_2 0x1.5558eep-5F
#define POLYNOMIAL_3 0x1.1239c8p-7F
#define POLYNOMIAL_4 0x1.6a2754p-10F
#define POLYNOMIAL(r)                                                                                        \
    (POLYNOMIAL_0 + r * (POLYNOMIAL_1 + r * (POLYNOMIAL_2 + r * (POLYNOMIAL_3 + r * POLYNOMIAL_4))))
