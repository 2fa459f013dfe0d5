/* SPDX-License-Identifier: MIT
 *
 * Multiple precision in its plainest form: schoolbook products of 32-bit limbs in 64-bit registers, power
 * series for the functions. One product takes about 0.1 us, a pair of sin and cos about 10 us; both are rare
 * enough that nothing cleverer pays. Everything is integer work, so every machine gives the same bits.
 *
 * Why 448 bits. A phase is position * frequency with up to 108 bits before the point (positions of 2^53,
 * scales of 2^53). Near a zero of sin or cos another 110 bits or so of the fraction can vanish, and the
 * rounding of what is left may need 70 more to be decided. The rest is margin.
 */
#include "core/wide.h"

#include <string.h>

#define N PE_WIDE_LIMBS

const struct pe_wide pe_wide_2pi = {{0xf25f1437, 0x302b0a6d, 0xcd3a431b, 0xef9519b3, 0x8e3404dd, 0x514a0879,
                                     0x3b139b22, 0x020bbea6, 0x8a67cc74, 0x29024e08, 0x80dc1cd1, 0xc4c6628b,
                                     0x2168c234, 0xc90fdaa2},
                                    .exponent = 3,
                                    .sign = 1};
const struct pe_wide pe_wide_1_2pi = {{0xb129a73e, 0xfe1deb1c, 0x09d1921c, 0x06492eea, 0x424dd2e0, 0xb7246e3a,
                                       0xdebbc561, 0xfe5163ab, 0x3c439041, 0xdb629599, 0xf534ddc0, 0xfc2757d1,
                                       0x4e441529, 0xa2f9836e},
                                      .exponent = -2,
                                      .sign = 1};
const struct pe_wide pe_wide_ln2 = {{0xc1382144, 0xed2eae35, 0x4afa1b10, 0x559552fb, 0x6debac98, 0xe7b87620,
                                     0x8baafa2b, 0x8a0d175b, 0x7298b62d, 0x40f34326, 0x03f2f6af, 0xc9e3b398,
                                     0xd1cf79ab, 0xb17217f7},
                                    .exponent = 0,
                                    .sign = 1};

/* ---- Limbs: whole numbers of n limbs, least significant first ------------------------------------------ */

/* Shifts left by 0 <= bits < 32 * n. */
static void limbs_shift_left(uint32_t *a, int n, int bits) {
    int words = bits / 32, rest = bits % 32;
    for (int i = n - 1; i >= 0; i--) {
        uint64_t high = i >= words ? a[i - words] : 0;
        uint64_t low = i > words ? a[i - words - 1] : 0;
        a[i] = (uint32_t)(((high << 32 | low) << rest) >> 32);
    }
}

static void limbs_shift_right(uint32_t *a, int n, int bits) {
    int words = bits / 32, rest = bits % 32;
    for (int i = 0; i < n; i++) {
        uint64_t low = i + words < n ? a[i + words] : 0;
        uint64_t high = i + words + 1 < n ? a[i + words + 1] : 0;
        a[i] = (uint32_t)((high << 32 | low) >> rest);
    }
}

/* Zeros above the highest one bit; 32 * n when there is none. */
static int limbs_leading_zeros(const uint32_t *a, int n) {
    int zeros = 0;
    while (n > 0 && a[n - 1] == 0) {
        zeros += 32;
        n--;
    }
    if (n > 0) {
        for (uint32_t top = a[n - 1]; !(top >> 31); top <<= 1) {
            zeros++;
        }
    }
    return zeros;
}

static int limbs_compare(const uint32_t *a, const uint32_t *b, int n) {
    for (int i = n - 1; i >= 0; i--) {
        if (a[i] != b[i]) {
            return a[i] > b[i] ? 1 : -1;
        }
    }
    return 0;
}

/* a += b; returns the carry. */
static uint32_t limbs_add(uint32_t *a, const uint32_t *b, int n) {
    uint64_t carry = 0;
    for (int i = 0; i < n; i++) {
        carry += (uint64_t)a[i] + b[i];
        a[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return (uint32_t)carry;
}

/* a -= b for a >= b. */
static void limbs_sub(uint32_t *a, const uint32_t *b, int n) {
    uint64_t borrow = 0;
    for (int i = 0; i < n; i++) {
        uint64_t difference = (uint64_t)a[i] - b[i] - borrow;
        a[i] = (uint32_t)difference;
        borrow = difference >> 63;
    }
}

/* ---- Values -------------------------------------------------------------------------------------------- */

/* The value sign * (limb[0..n) / 2^(32n)) * 2^exponent, n >= N, brought to the normal form. Clobbers limb. */
static void normalise(struct pe_wide *out, uint32_t *limb, int n, int32_t exponent, int32_t sign) {
    int zeros = limbs_leading_zeros(limb, n);
    if (zeros == 32 * n || sign == 0) {
        *out = (struct pe_wide){.sign = 0};
        return;
    }
    limbs_shift_left(limb, n, zeros);
    memcpy(out->limb, limb + n - N, sizeof out->limb);
    out->exponent = exponent - zeros;
    out->sign = sign;
}

struct pe_wide pe_wide_of(double value) {
    struct pe_wide out;
    uint32_t limb[N] = {0};
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    int32_t exponent = (int32_t)(bits >> 52 & 0x7ff);
    uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
    if (exponent > 0) {
        mantissa |= UINT64_C(1) << 52;
    } else {
        exponent = 1;
    }
    limb[N - 1] = (uint32_t)(mantissa >> 32);
    limb[N - 2] = (uint32_t)mantissa;
    normalise(&out, limb, N, exponent - 1075 + 64, bits >> 63 ? -1 : 1);
    return out;
}

/* |a| + |b| with the sign of a, |a| >= |b|, b shifted right by `shift` < 448. */
static void add_magnitudes(struct pe_wide *out, const struct pe_wide *a, const struct pe_wide *b, int shift) {
    uint32_t sum[N + 1] = {0}, low[N];
    memcpy(sum, a->limb, sizeof a->limb);
    memcpy(low, b->limb, sizeof low);
    limbs_shift_right(low, N, shift);
    sum[N] = limbs_add(sum, low, N);
    normalise(out, sum, N + 1, a->exponent + 32, a->sign);
}

/* |a| - |b| with the sign of a. One limb below the last keeps the bits that the shift moves out. */
static void sub_magnitudes(struct pe_wide *out, const struct pe_wide *a, const struct pe_wide *b, int shift) {
    uint32_t difference[N + 1] = {0}, low[N + 1] = {0};
    memcpy(difference + 1, a->limb, sizeof a->limb);
    memcpy(low + 1, b->limb, sizeof b->limb);
    limbs_shift_right(low, N + 1, shift);
    limbs_sub(difference, low, N + 1);
    normalise(out, difference, N + 1, a->exponent, a->sign);
}

void pe_wide_add(struct pe_wide *out, const struct pe_wide *a, const struct pe_wide *b) {
    const struct pe_wide *big = a, *small = b;
    if (a->sign == 0 ||
        (b->sign != 0 && (b->exponent > a->exponent ||
                          (b->exponent == a->exponent && limbs_compare(b->limb, a->limb, N) > 0)))) {
        big = b;
        small = a;
    }
    int64_t shift = (int64_t)big->exponent - small->exponent;
    if (small->sign == 0 || shift >= PE_WIDE_BITS) {
        *out = *big;
    } else if (big->sign == small->sign) {
        add_magnitudes(out, big, small, (int)shift);
    } else {
        sub_magnitudes(out, big, small, (int)shift);
    }
}

void pe_wide_sub(struct pe_wide *out, const struct pe_wide *a, const struct pe_wide *b) {
    struct pe_wide minus = *b;
    minus.sign = -minus.sign;
    pe_wide_add(out, a, &minus);
}

void pe_wide_mul(struct pe_wide *out, const struct pe_wide *a, const struct pe_wide *b) {
    uint32_t product[2 * N] = {0};
    for (int i = 0; i < N; i++) {
        uint64_t carry = 0;
        if (a->limb[i] == 0) { /* positions and small constants are mostly zeros */
            continue;
        }
        for (int j = 0; j < N; j++) {
            carry += (uint64_t)a->limb[i] * b->limb[j] + product[i + j];
            product[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        product[i + N] = (uint32_t)carry;
    }
    normalise(out, product, 2 * N, a->exponent + b->exponent, a->sign * b->sign);
}

void pe_wide_mul_small(struct pe_wide *out, const struct pe_wide *a, uint32_t b) {
    uint32_t product[N + 1];
    uint64_t carry = 0;
    for (int i = 0; i < N; i++) {
        carry += (uint64_t)a->limb[i] * b;
        product[i] = (uint32_t)carry;
        carry >>= 32;
    }
    product[N] = (uint32_t)carry;
    normalise(out, product, N + 1, a->exponent + 32, a->sign);
}

void pe_wide_div_small(struct pe_wide *out, const struct pe_wide *a, uint32_t b) {
    uint32_t quotient[N + 1]; /* one more limb, since the top one may become zero */
    uint64_t rest = 0;
    for (int i = N; i >= 0; i--) {
        rest = rest << 32 | (i > 0 ? a->limb[i - 1] : 0);
        quotient[i] = (uint32_t)(rest / b);
        rest %= b;
    }
    normalise(out, quotient, N + 1, a->exponent, a->sign);
}

/* Newton's step r <- r + r*(1 - b*r) doubles the bits that are right: 50, 100, 200, 400, all. */
void pe_wide_div(struct pe_wide *out, const struct pe_wide *a, const struct pe_wide *b) {
    const struct pe_wide one = pe_wide_of(1);
    struct pe_wide mantissa = *b, step;
    mantissa.exponent = 0; /* in [1/2, 1), so that the double below cannot overflow */
    struct pe_wide r = pe_wide_of(1 / pe_wide_double(&mantissa));
    for (int i = 0; i < 4; i++) {
        pe_wide_mul(&step, &mantissa, &r);
        pe_wide_sub(&step, &one, &step);
        pe_wide_mul(&step, &step, &r);
        pe_wide_add(&r, &r, &step);
    }
    r.exponent -= b->exponent;
    pe_wide_mul(out, a, &r);
}

/* ---- Views --------------------------------------------------------------------------------------------- */

double pe_wide_double(const struct pe_wide *a) {
    int32_t exponent = a->exponent;
    if (a->sign == 0 || exponent < -1000) {
        return 0;
    }
    uint64_t mantissa = pe_wide_top(a) >> 11;
    uint64_t bits = (uint64_t)(exponent + 1022) << 52 | (mantissa & ((UINT64_C(1) << 52) - 1));
    double value;
    memcpy(&value, &bits, sizeof value);
    return a->sign < 0 ? -value : value;
}

double pe_wide_odd(const struct pe_wide *a) {
    double value = pe_wide_double(a);
    struct pe_wide back = pe_wide_of(value), rest;
    pe_wide_sub(&rest, a, &back);
    if (rest.sign != 0) {
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        bits |= 1;
        memcpy(&value, &bits, sizeof value);
    }
    return value;
}

double pe_wide_nearest(const struct pe_wide *a) {
    double high = pe_wide_double(a);
    struct pe_wide part = pe_wide_of(high), rest;
    pe_wide_sub(&rest, a, &part);
    return high + pe_wide_odd(&rest); /* rounds once: what was cut shows, so that a tie is one */
}

uint64_t pe_wide_top(const struct pe_wide *a) {
    return (uint64_t)a->limb[N - 1] << 32 | a->limb[N - 2];
}

bool pe_wide_fixed(const struct pe_wide *a, int shift, uint64_t m[4]) {
    uint32_t limb[N];
    int drop = PE_WIDE_BITS - a->exponent - shift, zeros = 0; /* at least 448 - 256 */
    memset(limb, 0, sizeof limb);
    while (zeros < PE_WIDE_BITS && !(a->limb[zeros / 32] >> zeros % 32 & 1)) {
        zeros++;
    }
    if (drop < PE_WIDE_BITS) {
        memcpy(limb, a->limb, sizeof limb);
        limbs_shift_right(limb, N, drop);
    }
    for (int i = 0; i < 4; i++) {
        m[i] = (uint64_t)limb[2 * i + 1] << 32 | limb[2 * i];
    }
    return zeros >= drop;
}

static unsigned bit_at(const struct pe_wide *a, int i) {
    return i < 0 || i >= PE_WIDE_BITS ? 0 : a->limb[i / 32] >> i % 32 & 1;
}

unsigned pe_wide_round(struct pe_wide *out, const struct pe_wide *a) {
    const struct pe_wide one = pe_wide_of(1);
    int fraction = PE_WIDE_BITS - a->exponent; /* number of bits behind the point */
    if (a->sign == 0 || fraction > PE_WIDE_BITS) {
        *out = (struct pe_wide){.sign = 0};
        return 0;
    }
    unsigned half = bit_at(a, fraction - 1);
    unsigned low = bit_at(a, fraction + 1) << 1 | bit_at(a, fraction);
    *out = *a;
    for (int i = 0; i < N; i++) { /* clear what is behind the point */
        if (32 * (i + 1) <= fraction) {
            out->limb[i] = 0;
        } else if (32 * i < fraction) {
            out->limb[i] &= UINT32_MAX << fraction % 32;
        }
    }
    if (fraction == PE_WIDE_BITS) { /* a < 1 */
        out->sign = 0;
    }
    if (half) {
        pe_wide_add(out, out, &one);
    }
    return (low + half) & 3;
}

/* ---- Functions ----------------------------------------------------------------------------------------- */

/* v = m * 2^k with m in (3/4, 3/2]; ln m = 2 atanh(y), y = (m-1)/(m+1), |y| <= 1/5. Error: some 100 terms are
 * cut, 2^-441; k ln 2 is right to two units of its last bit, and at most half of it cancels. */
void pe_wide_log(struct pe_wide *out, const struct pe_wide *a) {
    const struct pe_wide one = pe_wide_of(1);
    struct pe_wide m = *a, below, above, y, power, sum, term;
    int32_t k = m.exponent - 1;
    m.exponent = 1;
    if (pe_wide_double(&m) > 1.5) {
        m.exponent = 0;
        k++;
    }
    pe_wide_sub(&below, &m, &one);
    pe_wide_add(&above, &m, &one);
    pe_wide_div(&y, &below, &above);
    sum = power = y;
    pe_wide_mul(&y, &y, &y);
    for (uint32_t i = 3; power.sign != 0 && power.exponent > sum.exponent - PE_WIDE_BITS; i += 2) {
        pe_wide_mul(&power, &power, &y);
        pe_wide_div_small(&term, &power, i);
        pe_wide_add(&sum, &sum, &term);
    }
    sum.exponent++;
    pe_wide_mul_small(&term, &pe_wide_ln2, (uint32_t)(k < 0 ? -k : k));
    term.sign = k < 0 ? -term.sign : term.sign;
    pe_wide_add(out, &sum, &term);
}

/* a = n ln 2 + r, |r| <= 0.35; e^r by its series at r/256, squared 8 times. Error: n ln 2 is below
 * 2^12 and right to two units of its last bit, 2^-435; some 50 terms of the series are cut, and each squaring
 * doubles what is there: 50 * 2^8 units, 2^-434. */
void pe_wide_exp(struct pe_wide *out, const struct pe_wide *a) {
    double quotient = pe_wide_double(a) * 1.4426950408889634;
    int32_t n = (int32_t)(quotient < 0 ? quotient - 0.5 : quotient + 0.5);
    struct pe_wide r, term, sum = pe_wide_of(1);
    pe_wide_mul_small(&r, &pe_wide_ln2, (uint32_t)(n < 0 ? -n : n));
    r.sign = n < 0 ? -r.sign : r.sign;
    pe_wide_sub(&r, a, &r);
    r.exponent -= 8;
    term = sum;
    for (uint32_t i = 1; term.sign != 0 && term.exponent > -PE_WIDE_BITS; i++) {
        pe_wide_mul(&term, &term, &r);
        pe_wide_div_small(&term, &term, i);
        pe_wide_add(&sum, &sum, &term);
    }
    for (int i = 0; i < 8; i++) {
        pe_wide_mul(&sum, &sum, &sum);
    }
    sum.exponent += n;
    *out = sum;
}

/* e^(ln a / 2), with the whole powers of 4 in a kept out of the logarithm. */
void pe_wide_sqrt(struct pe_wide *out, const struct pe_wide *a) {
    struct pe_wide m = *a;
    int32_t half = m.exponent / 2;
    m.exponent -= 2 * half;
    pe_wide_log(&m, &m);
    m.exponent -= m.sign != 0;
    pe_wide_exp(out, &m);
    out->exponent += half;
}

/* sum of first, -first*a^2/((k+1)(k+2)), ...: k = 1 gives sin from a, k = 0 gives cos from 1. */
static void alternating(struct pe_wide *out, const struct pe_wide *first, const struct pe_wide *square,
                        uint32_t k) {
    struct pe_wide term = *first, sum = *first;
    while (term.sign != 0 && term.exponent > sum.exponent - PE_WIDE_BITS) {
        pe_wide_mul(&term, &term, square);
        pe_wide_div_small(&term, &term, (k + 1) * (k + 2));
        term.sign = -term.sign;
        pe_wide_add(&sum, &sum, &term);
        k += 2;
    }
    *out = sum;
}

void pe_wide_sincos(struct pe_wide *sin, struct pe_wide *cos, const struct pe_wide *a) {
    const struct pe_wide angle = *a, one = pe_wide_of(1);
    struct pe_wide square;
    pe_wide_mul(&square, &angle, &angle);
    alternating(sin, &angle, &square, 1);
    alternating(cos, &one, &square, 0);
}
