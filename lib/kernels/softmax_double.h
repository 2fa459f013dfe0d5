/* SPDX-License-Identifier: MIT
 *
 * The constants of softmax for double: see softmax.c.
 */

#define REAL      double
#define BITS      uint64_t
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
