/* SPDX-License-Identifier: MIT
 *
 * Wide numbers: floating point with a mantissa of 448 bits, for the few places where a double is not enough:
 * frequencies (computed once per plan) and the rare vector elements that lie next to a rounding boundary.
 */
#ifndef PE_WIDE_H
#define PE_WIDE_H

#include <stdbool.h>
#include <stdint.h>

#define PE_WIDE_LIMBS 14
#define PE_WIDE_BITS  (32 * PE_WIDE_LIMBS)

/* sign * (limb / 2^448) * 2^exponent, least significant limb first, with the top bit set; so |value| is in
 * [2^(exponent-1), 2^exponent). sign 0 is zero. A plain value: copy it freely. */
struct pe_wide {
    uint32_t limb[PE_WIDE_LIMBS];
    int32_t exponent;
    int32_t sign;
};

extern const struct pe_wide pe_wide_2pi, pe_wide_1_2pi, pe_wide_ln2; /* 2*pi, 1/(2*pi), ln 2 */

/* `out` may be one of the inputs throughout. Results are cut after 448 bits: an error below one unit of the
 * last bit, always towards zero for mul and the small operations. Nothing overflows for |exponent| < 2^29. */

struct pe_wide pe_wide_of(double value); /* exact, for any finite value */
void pe_wide_add(struct pe_wide *out, const struct pe_wide *a, const struct pe_wide *b);
void pe_wide_sub(struct pe_wide *out, const struct pe_wide *a, const struct pe_wide *b);
void pe_wide_mul(struct pe_wide *out, const struct pe_wide *a, const struct pe_wide *b);
void pe_wide_mul_small(struct pe_wide *out, const struct pe_wide *a, uint32_t b);
void pe_wide_div_small(struct pe_wide *out, const struct pe_wide *a, uint32_t b);        /* b > 0 */
void pe_wide_div(struct pe_wide *out, const struct pe_wide *a, const struct pe_wide *b); /* b not zero */

/* Cut to a double: a first approximation. |a| < 2^1024; 0 below 2^-1000. */
double pe_wide_double(const struct pe_wide *a);
/* The nearest double, ties to even, for 2^-1000 <= |a| < 2^1023, and 0. */
double pe_wide_nearest(const struct pe_wide *a);
/* Cut to a double, whose last bit becomes 1 when digits were cut: rounded on to a narrower type, it neither
 * sees a tie that is none nor misses one. 2^-1000 <= |a| < 2^1024, and 0. */
double pe_wide_odd(const struct pe_wide *a);
/* The top 64 bits of the mantissa; 0 for zero. */
uint64_t pe_wide_top(const struct pe_wide *a);
/* floor(|a| * 2^shift) into m [4], least significant first, for |a| * 2^shift < 2^256. Returns whether that
 * is exact. */
bool pe_wide_fixed(const struct pe_wide *a, int shift, uint64_t m[4]);
/* The nearest whole number to a >= 0 (exponent < 448) into out; returns its two lowest bits. */
unsigned pe_wide_round(struct pe_wide *out, const struct pe_wide *a);

/* Natural logarithm of a > 0, square root of a > 0, and e^a for |a| < 2^12: relative error below 2^-430, but
 * near a = 1, where the logarithm's absolute error is below 2^-440. */
void pe_wide_log(struct pe_wide *out, const struct pe_wide *a);
void pe_wide_sqrt(struct pe_wide *out, const struct pe_wide *a);
void pe_wide_exp(struct pe_wide *out, const struct pe_wide *a);
/* sin and cos of 0 <= a <= 1, relative error below 2^-430 however small a is. */
void pe_wide_sincos(struct pe_wide *sin, struct pe_wide *cos, const struct pe_wide *a);

#endif
