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
 * Those below use IEEE + - * / and sqrt only, which are the same everywhere. Both begin with integers, so
 * that their arguments carry no rounding, and hand on what the last addition rounded off, so that the value
 * is within 1 ulp at the end:
 *
 *     u1 = (2k+1) 2^-54 = 2^e (1+f)                with f exact and |f| <= sqrt(2)-1
 *     ln u1 = e ln 2 + 2 atanh(s)                  with s = f/(2+f)
 *           = e ln 2 + f - f^2/2 + s(f^2/2 + P)    with P = 2s^2/3 + 2s^4/5 + ...
 *
 *     u2 = j 2^-53 = (q + t)/4                     with q = 0..3, and t or 1-t exact and at most 1/2
 *     cos(q pi/2 + x), x = t pi/2                  by the Taylor series to x^17: what is left out is below
 *                                                  2^-58 of the value
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

/* A number as the unevaluated sum of two doubles, low at most an ulp of high. */
struct pair {
    double high, low;
};

/* a + b exactly, for |a| >= |b| or a = 0 (Dekker). */
static struct pair pair_sum(double a, double b) {
    double sum = a + b;
    return (struct pair){sum, a - sum + b};
}

/* The upper half of the bits of a (Veltkamp): the product of two halves is exact. */
static double upper_half(double a) {
    double scaled = a * 0x1.000002p+27;
    return scaled - (scaled - a);
}

/* a b exactly (Dekker). */
static struct pair pair_product(double a, double b) {
    double product = a * b, a1 = upper_half(a), b1 = upper_half(b), a2 = a - a1, b2 = b - b1;
    return (struct pair){product, a1 * b1 - product + a1 * b2 + a2 * b1 + a2 * b2};
}

/* a b but for about 2^-100 of it. */
static struct pair pair_times(struct pair a, struct pair b) {
    struct pair product = pair_product(a.high, b.high);
    return pair_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

/* The root by one step of Newton from the root of the higher part. */
static struct pair pair_root(struct pair a) {
    double root = sqrt(a.high);
    struct pair square = pair_product(root, root);
    return pair_sum(root, (a.high - square.high - square.low + a.low) / (2 * root));
}

/* c[0] + c[1] z + c[2] z^2 ... */
static double polynomial(double z, const double *c, size_t n) {
    double sum = c[n - 1];
    for (size_t i = n - 1; i-- > 0;) {
        sum = sum * z + c[i];
    }
    return sum;
}

/* -ln(odd 2^-54) for odd in [1, 2^54). */
static struct pair minus_log(uint64_t odd) {
    static const double terms[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                                   2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
    /* ln 2 in two parts; the first has 40 bits, so that its product with the exponent is exact. */
    const double ln2_high = 0x1.62e42fefa2p-1, ln2_low = 0x1.9ef35793c7673p-41;
    const uint64_t one = UINT64_C(1) << 63, sqrt2 = UINT64_C(0xB504F333F9DE6484); /* in units of 2^-63 */
    int exponent = 63 - 54;
    for (; odd < one; odd <<= 1) {
        exponent--;
    }
    double f;
    if (odd < sqrt2) {
        f = (double)(odd - one) * 0x1p-63;
    } else { /* half of it, so that 1+f lies between sqrt(1/2) and 1 */
        f = -(double)(UINT64_MAX - odd + 1) * 0x1p-64;
        exponent++;
    }
    struct pair square = pair_product(f, f);
    double s = f / (2 + f), z = s * s, half = square.high / 2;
    double bend = s * (half + z * polynomial(z, terms, sizeof terms / sizeof *terms));
    struct pair whole = pair_sum(-exponent * ln2_high, -f); /* |f| is below ln 2, and f^2/2 below the rest */
    struct pair most = pair_sum(whole.high, half);
    return pair_sum(most.high, most.low + whole.low + square.low / 2 - bend - exponent * ln2_low);
}

/* x = t pi/2 for t = n 2^-51 <= 1/2. */
static struct pair quarter_turns(uint64_t n) {
    const double high = 0x1.921fb54442d18p+0, low = 0x1.1a62633145c07p-54; /* pi/2 */
    double t = (double)n * 0x1p-51;
    struct pair x = pair_product(t, high);
    return pair_sum(x.high, x.low + t * low);
}

static struct pair sine(struct pair x) {
    static const double terms[] = {
        -1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
        -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
    double z = x.high * x.high, bend = x.high * z * polynomial(z, terms, sizeof terms / sizeof *terms);
    return pair_sum(x.high, bend + x.low * (1 - z / 2));
}

static struct pair cosine(struct pair x) {
    static const double terms[] = {1.0 / 24,        -1.0 / 720,         1.0 / 40320,         -1.0 / 3628800,
                                   1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000};
    struct pair square = pair_product(x.high, x.high);
    double z = square.high, bend = z * z * polynomial(z, terms, sizeof terms / sizeof *terms);
    struct pair most = pair_sum(1, -z / 2);
    return pair_sum(most.high, most.low + (bend - x.high * x.low - square.low / 2));
}

/* cos(2 pi j 2^-53) for j in [0, 2^53). */
static struct pair cosine_of_turn(uint64_t j) {
    const uint64_t quarter = UINT64_C(1) << 51;
    uint64_t quadrant = j >> 51, n = j & (quarter - 1);
    bool mirrored = n > quarter / 2; /* cos(pi/2 - x) = sin(x) */
    struct pair x = quarter_turns(mirrored ? quarter - n : n);
    bool odd = quadrant & 1; /* cos(pi/2 + x) = -sin(x) */
    struct pair value = odd != mirrored ? sine(x) : cosine(x);
    return quadrant == 1 || quadrant == 2 ? (struct pair){-value.high, -value.low} : value;
}

double pe_random_uniform(const uint32_t words[4], double std) {
    const struct pair sqrt3 = {0x1.bb67ae8584caap+0, 0x1.cec95d0b5c1e3p-54};
    int64_t k = (int64_t)bits53(words[0], words[1]);
    double u = (double)(k - (INT64_C(1) << 52)) * 0x1p-52; /* in [-1, 1) */
    return pair_times(pair_product(u, std), sqrt3).high;
}

double pe_random_gaussian(const uint32_t words[4], double std) {
    struct pair log = minus_log(2 * bits53(words[0], words[1]) + 1);
    struct pair radius = pair_root((struct pair){2 * log.high, 2 * log.low});
    struct pair normal = pair_times(radius, cosine_of_turn(bits53(words[2], words[3])));
    return pair_times(normal, (struct pair){std, 0}).high;
}
