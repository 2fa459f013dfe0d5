/* SPDX-License-Identifier: MIT
 *
 * e^y for a y of 448 bits: y = n ln 2 + r with 0 <= r < ln 2, of which the 64 bits behind the point are
 * enough here. With a = r * 2^64,
 *
 *     e^r - 1 = r + r^2 * (1/2! + r/3! + r^2/4! + ... )
 *
 * by Horner's rule in whole numbers; 19 terms, what follows is below 2^-66. Errors in units of 2^-64: r is
 * cut by one, each step by one, of which r^2 < 1/2 leaves less than 2, the last sum's halving 1: below 10 in
 * all.
 */
#include "core/gain.h"

#include "core/bits.h"

#include <math.h>
#include <stddef.h>

static uint64_t mul_top(uint64_t a, uint64_t b) {
    uint64_t low;
    return pe_multiply(a, b, &low);
}

void pe_gain_of(struct pe_gain *gain, const struct pe_wide *value) {
    double nearest = pe_wide_nearest(value);
    struct pe_wide back = pe_wide_of(nearest), rest;
    pe_wide_sub(&rest, value, &back);
    /* What comes out of a logarithm is right to 2^-430: closer than that to a double, it is that double. */
    bool is_double = rest.sign == 0 || rest.exponent < value->exponent - 400;
    *gain = (struct pe_gain){.is_double = is_double, .nearest = nearest, .exact = is_double ? back : *value};
    gain->mantissa = pe_wide_top(&gain->exact);
    gain->exponent = gain->exact.exponent - 1;
}

/* 2^64/n! for n = 21 .. 2, rounded. */
static const uint64_t inverse_factorials[] = {0x0,
                                              0x8,
                                              0x98,
                                              0xb41,
                                              0xca96,
                                              0xd73fa,
                                              0xd73f9f,
                                              0xc9cba54,
                                              0xb092309d,
                                              0x8f76c77fc,
                                              0x6b99159fd5,
                                              0x49f93edde28,
                                              0x2e3bc74aad8e,
                                              0x1a01a01a01a02,
                                              0xd00d00d00d00d,
                                              0x5b05b05b05b05b,
                                              0x222222222222222,
                                              0xaaaaaaaaaaaaaab,
                                              0x2aaaaaaaaaaaaaab,
                                              0x8000000000000000};

/* floor((e^r - 1) * 2^64) for r = a * 2^-64 < ln 2, short by a few units. */
static uint64_t expm1_fixed(uint64_t a) {
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof inverse_factorials / sizeof inverse_factorials[0]; i++) {
        sum = inverse_factorials[i] + mul_top(sum, a);
    }
    return a + mul_top(mul_top(a, a), sum);
}

void pe_gain_power(struct pe_gain *gain, const struct pe_wide *rate, const struct pe_wide *x) {
    struct pe_wide y, r;
    pe_wide_mul(&y, rate, x);
    int32_t n = (int32_t)floor(pe_wide_double(&y) * 1.4426950408889634);
    pe_wide_mul_small(&r, &pe_wide_ln2, (uint32_t)(n < 0 ? -n : n));
    r.sign = n < 0 ? -r.sign : r.sign;
    pe_wide_sub(&r, &y, &r);
    if (r.sign < 0) { /* the quotient was rounded up, across a whole number */
        pe_wide_add(&r, &r, &pe_wide_ln2);
        n--;
    }
    uint64_t fixed[4];
    pe_wide_fixed(&r, 64, fixed);
    *gain =
        (struct pe_gain){.exponent = n, .is_power = true, .is_double = y.sign == 0, .nearest = 1, .exact = y};
    gain->mantissa = UINT64_C(1) << 63 | expm1_fixed(fixed[0]) >> 1;
}

struct pe_wide pe_gain_wide(const struct pe_gain *gain) {
    struct pe_wide value = gain->exact;
    if (gain->is_power) {
        pe_wide_exp(&value, &value);
    }
    return value;
}
