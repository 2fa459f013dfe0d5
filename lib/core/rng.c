/* SPDX-License-Identifier: MIT
 *
 * Philox4x32-10 and the normal distribution, without state and without libm.
 *
 * Philox (Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3") is a small block
 * cipher: the counter is the plain text, the words that come out are the random numbers. One round multiplies
 * two of the four words by constants, and the high halves of the products, mixed with the key and the other
 * two words, change places with the low halves; ten rounds, the key growing by a constant after each.
 *
 * Box and Muller: for u1, u2 even on (0, 1), sqrt(-2 ln u1) cos(2 pi u2) is normal. The logarithm and cosine
 * of the C library differ from one version to the next in their last bit, and then so would the vectors.
 * Those below use IEEE + - * / only, which are the same everywhere. Both begin with integers, so that their
 * arguments carry no rounding:
 *
 *     u1 = (2k+1) 2^-54 = 2^e (1+f),  |f| <= sqrt(2)-1,  f exact;   with s = f/(2+f) and P = 2s^2/3 + 2s^4/5
 * + ... ln u1 = e ln 2 + 2 atanh(s) = e ln 2 + f - s(f - P)
 *
 *     u2 = j 2^-53 = (q + t)/4,  q = 0..3,  and t or 1-t at most 1/2, exact;   x = t pi/2, as a sum of two
 * doubles cos and sin by their Taylor series to x^17: the next term is below 2^-58 of the value
 */
#include "core/rng.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#define ROUNDS 10

void pe_philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t a = UINT64_C(0xD2511F53) * c0, b = UINT64_C(0xCD9E8D57) * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)b;
        c3 = (uint32_t)a;
        k0 += UINT32_C(0x9E3779B9); /* the golden ratio */
        k1 += UINT32_C(0xBB67AE85); /* sqrt(3) - 1 */
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* The upper 53 of the 64 bits of two words. */
static uint64_t bits53(uint32_t low, uint32_t high) {
    return ((uint64_t)high << 32 | low) >> 11;
}

/* c[0] + c[1] z + c[2] z^2 ... */
static double polynomial(double z, const double *c, size_t n) {
    double sum = c[n - 1];
    for (size_t i = n - 1; i-- > 0;)
        sum = sum * z + c[i];
    return sum;
}

/* -ln(odd 2^-54) for odd in [1, 2^54). */
static double minus_log(uint64_t odd) {
    static const double atanh_terms[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                                         2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
    /* ln 2 in two parts; the first has 40 bits, so that its product with the exponent is exact. */
    const double ln2_high = 0x1.62e42fefa2p-1, ln2_low = 0x1.9ef35793c7673p-41;
    const uint64_t one = UINT64_C(1) << 63, sqrt2 = UINT64_C(0xB504F333F9DE6484); /* in units of 2^-63 */
    int exponent = 63 - 54;
    for (; odd < one; odd <<= 1)
        exponent--;
    double f;
    if (odd < sqrt2) {
        f = (double)(odd - one) * 0x1p-63;
    } else { /* half of it, so that 1+f lies between sqrt(1/2) and 1 */
        f = -(double)(UINT64_MAX - odd + 1) * 0x1p-64;
        exponent++;
    }
    double s = f / (2 + f), z = s * s;
    double p = z * polynomial(z, atanh_terms, sizeof atanh_terms / sizeof *atanh_terms);
    return -(exponent * ln2_high + (f - (s * (f - p) - exponent * ln2_low)));
}

/* t pi/2 = x + rest for t = n 2^-51 <= 1/2: the parts of 25 and 26 bits have an exact product. */
static double quarter_turns(uint64_t n, double *rest) {
    const double high = 0x1.921fb5p+0, low = 0x1.110b4611a6263p-26; /* pi/2 */
    double n_high = (double)(n >> 25 << 25) * 0x1p-51,
           n_low = (double)(n & ((UINT64_C(1) << 25) - 1)) * 0x1p-51;
    double product = n_high * high;
    double correction = n_low * high + (n_high + n_low) * low;
    double x = product + correction;
    *rest = product - x + correction;
    return x;
}

static double sine(double x, double rest) {
    static const double terms[] = {
        -1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
        -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
    double z = x * x;
    return x + (x * z * polynomial(z, terms, sizeof terms / sizeof *terms) + rest * (1 - z / 2));
}

static double cosine(double x, double rest) {
    static const double terms[] = {
        1.0 / 24,        -1.0 / 720,           1.0 / 40320,           -1.0 / 3628800,
        1.0 / 479001600, -1.0 / 87178291200.0, 1.0 / 20922789888000.0};
    double z = x * x, half = z / 2, most = 1 - half;
    return most + (1 - most - half + (z * z * polynomial(z, terms, sizeof terms / sizeof *terms) - x * rest));
}

/* cos(2 pi j 2^-53) for j in [0, 2^53). */
static double cosine_of_turn(uint64_t j) {
    const uint64_t quarter = UINT64_C(1) << 51;
    uint64_t quadrant = j >> 51, n = j & (quarter - 1);
    bool mirrored = n > quarter / 2; /* cos(pi/2 - x) = sin(x) */
    double rest, x = quarter_turns(mirrored ? quarter - n : n, &rest);
    bool odd = quadrant & 1; /* cos(x + pi/2) = -sin(x) */
    double value = odd != mirrored ? sine(x, rest) : cosine(x, rest);
    return quadrant == 1 || quadrant == 2 ? -value : value;
}

double pe_random_uniform(const uint32_t words[4]) {
    int64_t k = (int64_t)bits53(words[0], words[1]);
    return (double)(k - (INT64_C(1) << 52)) * 0x1p-52;
}

double pe_random_gaussian(const uint32_t words[4]) {
    double radius = sqrt(2 * minus_log(2 * bits53(words[0], words[1]) + 1));
    return radius * cosine_of_turn(bits53(words[2], words[3]));
}
