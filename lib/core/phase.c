/* SPDX-License-Identifier: MIT
 *
 * Exact phase by integers. The angle position * omega is taken in turns, t = omega/(2*pi), because the whole
 * turns then drop out of a product of integers for nothing:
 *
 *     frac(x * t) = (x * floor(t * 2^192)) mod 2^192        for a whole x below 2^64: three multiplications
 *
 * and a fractional x = m * 2^-f is the same product shifted right by f; scaled and offset positions take more
 * words. 128 bits of it are kept. In floating
 * point the same step costs 2^-53 of x*t, which at a million is already more than float32 shows and at 2^53
 * is a whole radian.
 *
 * The fraction is folded into an octant, |r| <= 1/8 turn; a = 2*pi*r becomes a 64-bit mantissa, and Taylor's
 * series in z = a^2 give sin a = a - a*(z/3! - z^2/5! + ...) and cos a = 1 - (z/2! - z^2/4! + ...), all in
 * unsigned 64-bit fixed point. Integers rather than doubles: 11 bits more than a double has, no dependence on
 * the compiler's contraction or the machine's rounding, and the same speed.
 *
 * Rounding is decided as Ziv did: if every number within the error bound of the 64-bit value rounds to the
 * same element, that element is right. If not (one in 2^34 for float32), or if the folded phase is so small
 * that 128 bits say too little about it, the element is computed again with 448 bits (core/wide.h). sin and
 * cos of x*omega are transcendental for x != 0, so no value lies on a boundary and 448 bits decide in
 * practice: that they would not is as likely as a run of 150 equal bits. float64 leaves only 11 bits for the
 * test and takes the 64-bit value as it is: at most 0.51 units of the last place.
 *
 * Error of the 64-bit values, in units of the last of their 64 bits. A relative error of e * 2^-64 is at most
 * e of them, and a cut at a mantissa, which is at least 2^63, a relative one of at most 2 * 2^-64.
 *
 *     the fraction: x or t cut, their product cut, the complement: 3 of 2^-128 turns, of 2^-64 at least   3
 *     its mantissa, cut to 64 bits                                                                        2
 *     2*pi, off by 0.77 of 2^63.65                                                                        1
 *     their product, cut                                                                                  2
 *     sin a = a - a*(s*z): z off by 2.6, s by 3, two products cut, all doubled by a normalising shift     6
 *
 * makes 14. For cos a = 1 - c*z, z off by 2.6, c by 3 and a product cut make 5, and of the angle's 8 counts
 * a*sin a < 0.56. For a tiny phase x, t, their product, 2*pi and its product are cut: 13. BOUND is more than
 * twice all of them; the most seen is 5.
 */
#include "core/phase.h"

#include "core/bits.h"

#include <string.h>

#define BOUND 32

/* With a gain: 14 of the value and 10 of the gain are at most 25 of the product, which a normalising shift
 * may double. */
#define BOUND_GAIN 100

/* The rows below are compiled once per element type, with the format as constants. */
static PE_INLINE uint64_t mul_top(uint64_t a, uint64_t b) {
    uint64_t low;
    return pe_multiply(a, b, &low);
}

/* ---- The phase, as a 128-bit fraction of a turn ------------------------------------------------------- */

/* product [9] += m * t [n] * 2^(64*at). */
static void add_product(uint64_t *product, uint64_t m, const uint64_t *t, int n, int at) {
    uint64_t carry = 0;
    for (int i = 0; i < n; i++) {
        uint64_t low, high = pe_multiply(m, t[i], &low);
        low += carry;
        high += low < carry;
        product[at + i] += low;
        carry = high + (product[at + i] < low);
    }
    product[at + n] += carry;
}

/* One word of x and 192 bits of t: the product counts in 2^-(192 + fraction_bits), so the 128 bits behind the
 * point start 64 + fraction_bits up. Four words and 256 bits: it counts in 2^-(256 + 128). */
static void fraction_long(const struct pe_place *place, const uint64_t t[4], uint64_t f[2]) {
    uint64_t product[9] = {0};
    int word = 4, bit = 0;
    if (place->n_fixed == 1) {
        add_product(product, place->fixed[0], t + 1, 3, 0);
        word = 1 + place->fraction_bits / 64;
        bit = place->fraction_bits % 64;
    } else {
        for (int i = 0; i < 4; i++) {
            add_product(product, place->fixed[i], t, 4, i);
        }
    }
    for (int i = 0; i < 2; i++) {
        f[i] = bit == 0 ? product[word + i] : product[word + i] >> bit | product[word + i + 1] << (64 - bit);
    }
}

/* f = floor(|x| * t * 2^128) mod 2^128, short by at most 3. */
static PE_INLINE void fraction_of(const struct pe_place *place, const uint64_t t[4], uint64_t f[2]) {
    if (place->fraction_bits != 0) {
        fraction_long(place, t, f);
        return;
    }
    uint64_t x = place->fixed[0], low, unused;
    uint64_t high = pe_multiply(x, t[2], &low);
    f[0] = low + pe_multiply(x, t[1], &unused);
    f[1] = high + (f[0] < low) + x * t[3];
}

/* ---- sin and cos --------------------------------------------------------------------------------------- */

/* +-mantissa * 2^(exponent-63) with the mantissa's top bit set. */
struct value {
    uint64_t mantissa;
    int exponent;
    bool negative;
};

static const struct value value_zero = {0, INT32_MIN / 2, false}, value_one = {UINT64_C(1) << 63, 0, false};

/* From the first octant to the whole circle: the phase is quarter/4 turn plus or minus the folded one, and
 * sin(a + pi/2) = cos a, cos(a + pi/2) = -sin a. Without branches: the quarter changes at random from one
 * frequency to the next, and a branch mispredicted every other time costs more than the sine. */
static PE_INLINE void unfold(struct value *sin, struct value *cos, unsigned quarter, bool minus,
                             bool negative) {
    bool odd = quarter & 1, half = quarter >> 1;
    uint64_t change = (sin->mantissa ^ cos->mantissa) & (0 - (uint64_t)odd);
    int exponent_change = (sin->exponent ^ cos->exponent) & -(int)odd;
    sin->mantissa ^= change;
    cos->mantissa ^= change;
    sin->exponent ^= exponent_change;
    cos->exponent ^= exponent_change;
    sin->negative = (minus & !odd) ^ half ^ negative;
    cos->negative = (odd & !minus) ^ half;
}

#define TWO_PI 0xc90fdaa22168c234 /* floor(2*pi * 2^61) */

/* a - b*z + rest*z^2 in units of 2^-64: two terms of an alternating series and what follows them. Steps in
 * z^2 make the chain of dependent products half as long as Horner's. `_small` is for b and rest below 2^32:
 * the upper half of z is enough then, and a cheaper product. */
static PE_INLINE uint64_t terms(uint64_t a, uint64_t b, uint64_t rest, uint64_t z, uint64_t z2) {
    return a - mul_top(b, z) + mul_top(rest, z2);
}

static PE_INLINE uint64_t terms_small(uint64_t a, uint64_t b, uint64_t rest, uint64_t z, uint64_t z2) {
    return a - (b * (z >> 32) >> 32) + (rest * (z2 >> 32) >> 32);
}

/* sin and cos of a = mantissa * 2^(exponent-63), 2^-63 < a < 1. The coefficients are round(2^64/n!) for
 * n = 3, 5 .. 19 and 2, 4 .. 18; what follows is below 2^-67 for a <= pi/4. */
static PE_INLINE void octant(uint64_t mantissa, int exponent, struct value *sin, struct value *cos) {
    uint64_t a = mantissa >> (-1 - exponent), z = mul_top(a, a), z2 = mul_top(z, z);
    uint64_t s = terms_small(0xd73f9f, 0xca96, 0x98, z, z2);
    uint64_t c = terms_small(0xc9cba54, 0xd73fa, 0xb41, z, z2);
    s = terms_small(0x6b99159fd5, 0xb092309d, s, z, z2);
    c = terms(0x49f93edde28, 0x8f76c77fc, c, z, z2);
    s = terms(0xd00d00d00d00d, 0x2e3bc74aad8e, s, z, z2);
    c = terms(0x5b05b05b05b05b, 0x1a01a01a01a02, c, z, z2);
    s = terms(0x2aaaaaaaaaaaaaab, 0x222222222222222, s, z, z2);
    c = terms(0x8000000000000000, 0xaaaaaaaaaaaaaab, c, z, z2);
    s = mantissa - mul_top(mantissa, mul_top(s, z));
    c = 0 - mul_top(c, z); /* 2^64 minus, which is 0 when cos a is 1 to 64 bits */
    int shift = (int)(1 - (s >> 63));
    *sin = (struct value){.mantissa = s << shift, .exponent = exponent - shift};
    *cos = (struct value){.mantissa = c | (uint64_t)(c == 0) << 63, .exponent = (c == 0) - 1};
}

/* False when the folded phase is below 2^-64 turns. */
static PE_INLINE bool pair_fast(const struct pe_place *place, const struct pe_turn *turn, struct value *sin,
                                struct value *cos) {
    uint64_t f[2];
    fraction_of(place, turn->fraction, f);
    unsigned quarter = (unsigned)((f[1] + (UINT64_C(1) << 61)) >> 62); /* the nearest */
    uint64_t high = f[1] - ((uint64_t)quarter << 62), low = f[0];
    bool minus = high >> 63;
    high ^= 0 - (uint64_t)minus; /* -r - 2^-128: the fraction was short by up to 3 of that */
    low ^= 0 - (uint64_t)minus;
    if (high == 0) {
        return false;
    }
    int top = pe_top_bit(high); /* at most 61 */
    uint64_t product_low, product = pe_multiply(high << (63 - top) | low >> (top + 1), TWO_PI, &product_low);
    int shift = (int)(1 - (product >> 63)); /* a = product * 2^(top - 124) turned into radians */
    octant(product << shift | (product_low >> 63 & (uint64_t)shift), top - 61 - shift, sin, cos);
    unfold(sin, cos, quarter, minus, place->negative);
    return true;
}

/* A phase that is below 2^-64 without any folding: sin a = a, cos a = 1 to more than 64 bits. */
static bool pair_tiny(const struct pe_place *place, const struct pe_turn *turn, struct value *sin,
                      struct value *cos) {
    int exponent = place->exponent + turn->exact.exponent;
    if (exponent > -64) {
        return false;
    }
    uint64_t product = mul_top(place->top, pe_wide_top(&turn->exact));
    int shift = (int)(1 - (product >> 63));
    uint64_t a = mul_top(product << shift, TWO_PI);
    int shift_again = (int)(1 - (a >> 63));
    *sin = (struct value){a << shift_again, exponent + 2 - shift - shift_again, place->negative};
    *cos = value_one;
    return true;
}

static struct value value_of(const struct pe_wide *a) {
    return (struct value){.mantissa = pe_wide_top(a), .exponent = a->exponent - 1};
}

static void pair_exact(const struct pe_place *place, const struct pe_turn *turn, const struct pe_gain *gain,
                       struct value *sin, struct value *cos) {
    struct pe_wide quarters = pe_place_wide(place), whole, s, c;
    quarters.sign = 1;
    pe_wide_mul(&quarters, &quarters, &turn->exact);
    quarters.exponent += 2;
    unsigned quarter = pe_wide_round(&whole, &quarters);
    pe_wide_sub(&quarters, &quarters, &whole);
    if (whole.sign != 0 && quarters.exponent < -300) {
        quarters.sign =
            0; /* a frequency that is a fraction of a turn, as 1/3, cut: what is left is the cut */
    }
    bool minus = quarters.sign < 0;
    quarters.sign = quarters.sign != 0; /* 0 only for a frequency that is a fraction of a turn */
    quarters.exponent -= 2;
    pe_wide_mul(&quarters, &quarters, &pe_wide_2pi);
    pe_wide_sincos(&s, &c, &quarters);
    if (gain) {
        struct pe_wide factor = pe_gain_wide(gain);
        pe_wide_mul(&s, &s, &factor);
        pe_wide_mul(&c, &c, &factor);
    }
    *sin = s.sign == 0 ? value_zero : value_of(&s);
    *cos = value_of(&c);
    unfold(sin, cos, quarter, minus, place->negative);
    sin->negative &= sin->mantissa != 0; /* zeros have no sign */
    cos->negative &= cos->mantissa != 0;
}

/* ---- Rounding to the element type ---------------------------------------------------------------------- */

struct format {
    int bits;         /* of the mantissa, with the hidden one */
    int exponent_min; /* of a normal number, |v| in [2^e, 2^(e+1)) */
    int sign_bit;
    bool certain; /* the 64-bit values are good enough as they are */
};

static const struct format formats[PE_DTYPE_COUNT] = {
    [PE_DTYPE_F64] = {53, -1022, 63, true},
    [PE_DTYPE_F32] = {24, -126, 31, false},
    [PE_DTYPE_F16] = {11, -14, 15, false},
    [PE_DTYPE_BF16] = {8, -126, 15, false},
};

/* Bits of the mantissa that the format keeps at this exponent: fewer for subnormals, down to none. */
static PE_INLINE int kept_bits(const struct format *format, int exponent) {
    int below = format->exponent_min - exponent;
    return below > 0 ? format->bits - below : format->bits;
}

/* The same for values of the fast path, which are above 2^-65: only float16 has subnormals there. */
static PE_INLINE int kept_bits_fast(const struct format *format, int exponent) {
    return format->exponent_min < -65 ? format->bits : kept_bits(format, exponent);
}

/* Does a boundary between two elements lie within BOUND of the value? Where no bit is kept, the boundary is
 * half of the smallest subnormal: below a mantissa of 2^63 with kept 0, above one of 2^64 with kept -1. */
static PE_INLINE bool undecided(const struct value *v, int kept, uint64_t bound) {
    if (kept < 0) {
        return kept == -1 && 0 - v->mantissa <= bound;
    }
    uint64_t half = UINT64_C(1) << (63 - kept);
    return ((v->mantissa - half + bound) & (2 * half - 1)) <= 2 * bound;
}

/* Round to nearest: up where the first bit dropped is one. That is all, because there are no ties: a value is
 * 0, 1 or transcendental, and what lies behind its 64 bits is not zero. The hidden bit and a carry move into
 * the exponent field by themselves. */
static PE_INLINE uint64_t pack(const struct value *v, const struct format *format, int kept) {
    int exponent = v->exponent - format->exponent_min;
    uint64_t sign = (uint64_t)v->negative << format->sign_bit;
    if (kept < 0) { /* below half of the smallest subnormal */
        return sign;
    }
    uint64_t whole = ((v->mantissa >> (63 - kept)) + 1) >> 1;
    return sign | (whole + ((uint64_t)(kept < format->bits ? 0 : exponent) << (format->bits - 1)));
}

static PE_INLINE void store(void *out, uint64_t bits, enum pe_dtype dtype) {
    uint32_t bits32 = (uint32_t)bits;
    uint16_t bits16 = (uint16_t)bits;
    if (dtype == PE_DTYPE_F64) {
        memcpy(out, &bits, 8);
    } else if (dtype == PE_DTYPE_F32) {
        memcpy(out, &bits32, 4);
    } else {
        memcpy(out, &bits16, 2);
    }
}

/* Rounds, with `kept` bits, into `out` unless that is NULL. */
static PE_INLINE void emit(void *out, const struct value *v, int kept, enum pe_dtype dtype) {
    if (out) {
        store(out, pack(v, &formats[dtype], kept), dtype);
    }
}

/* ---- Gains --------------------------------------------------------------------------------------------- */

static PE_INLINE void amplify(struct value *v, const struct pe_gain *gain) {
    uint64_t low, product = pe_multiply(v->mantissa, gain->mantissa, &low);
    int shift = (int)(1 - (product >> 63));
    v->mantissa = product << shift | (low >> 63 & (uint64_t)shift);
    v->exponent += gain->exponent + 1 - shift;
}

/* Where the phase is 0: sin 0 = 0 and cos 0 = 1, times the gain, the one value that can be a tie. */
static void emit_still(const struct pe_phase_out *out, enum pe_dtype dtype) {
    const double zero = 0, one = 1;
    if (out->sin) {
        pe_dtype_store(dtype, &zero, 1, out->sin);
    }
    if (!out->cos) {
        return;
    }
    if (out->gain && !out->gain->is_double) {
        struct pe_wide gain = pe_gain_wide(out->gain);
        struct value v = value_of(&gain);
        emit(out->cos, &v, kept_bits(&formats[dtype], v.exponent), dtype);
    } else {
        pe_dtype_store(dtype, out->gain ? &out->gain->nearest : &one, 1, out->cos);
    }
}

/* ---- Rows ---------------------------------------------------------------------------------------------- */

void pe_phase_exact(const struct pe_place *place, const struct pe_turn *turn, enum pe_dtype dtype,
                    const struct pe_phase_out *out) {
    struct value s, c;
    if (place->zero || turn->exact.sign == 0) {
        emit_still(out, dtype);
        return;
    }
    pair_exact(place, turn, out->gain, &s, &c);
    emit(out->sin, &s, kept_bits(&formats[dtype], s.exponent), dtype);
    emit(out->cos, &c, kept_bits(&formats[dtype], c.exponent), dtype);
}

/* What the fast path leaves over; apart, so that the loop below stays small. */
static void pair_rare(const struct pe_place *place, const struct pe_turn *turn, enum pe_dtype dtype,
                      const struct pe_phase_out *out) {
    const struct format *format = &formats[dtype];
    struct value s, c;
    if (place->zero || out->gain || turn->exact.sign == 0 || !pair_tiny(place, turn, &s, &c) ||
        (!format->certain && undecided(&s, kept_bits(format, s.exponent), BOUND))) {
        pe_phase_exact(place, turn, dtype, out);
        return;
    }
    emit(out->sin, &s, kept_bits(format, s.exponent), dtype);
    emit(out->cos, &c, format->bits, dtype);
}

/* A gain may make values as small as it likes. */
static PE_INLINE int kept_bits_row(const struct format *format, int exponent, const struct pe_gain *gain) {
    return gain ? kept_bits(format, exponent) : kept_bits_fast(format, exponent);
}

static PE_INLINE bool decided(const struct value *v, const struct format *format,
                              const struct pe_gain *gain) {
    return format->certain ||
           !undecided(v, kept_bits_row(format, v->exponent, gain), gain ? BOUND_GAIN : BOUND);
}

/* `gain` is out's, or NULL: a constant where there is none, so that the common case does without. */
static PE_INLINE void row(const struct pe_place *place, const struct pe_turn *turns, size_t n,
                          enum pe_dtype dtype, const struct pe_phase_out *out, const struct pe_gain *gain) {
    const struct format *format = &formats[dtype];
    size_t step = out->step * pe_dtype_size(dtype);
    struct pe_phase_out at = *out;
    for (size_t i = 0; i < n; i++) {
        struct value s, c;
        bool ok = pair_fast(place, &turns[i], &s, &c);
        if (ok && gain) {
            amplify(&s, gain);
            amplify(&c, gain);
        }
        if (ok && decided(&s, format, gain) && decided(&c, format, gain)) {
            emit(at.sin, &s, kept_bits_row(format, s.exponent, gain), dtype);
            emit(at.cos, &c, kept_bits_row(format, c.exponent, gain), dtype);
        } else {
            pair_rare(place, &turns[i], dtype, &at);
        }
        at.sin = at.sin ? (char *)at.sin + step : NULL;
        at.cos = at.cos ? (char *)at.cos + step : NULL;
    }
}

static PE_INLINE void row_of(const struct pe_place *place, const struct pe_turn *turns, size_t n,
                             enum pe_dtype dtype, const struct pe_phase_out *out) {
    if (out->gain) {
        row(place, turns, n, dtype, out, out->gain);
    } else {
        row(place, turns, n, dtype, out, NULL);
    }
}

void pe_phase_row(const struct pe_place *place, const struct pe_turn *turns, size_t n, enum pe_dtype dtype,
                  const struct pe_phase_out *out) {
    if (dtype == PE_DTYPE_F32) {
        row_of(place, turns, n, PE_DTYPE_F32, out);
    } else if (dtype == PE_DTYPE_F64) {
        row_of(place, turns, n, PE_DTYPE_F64, out);
    } else if (dtype == PE_DTYPE_F16) {
        row_of(place, turns, n, PE_DTYPE_F16, out);
    } else {
        row_of(place, turns, n, PE_DTYPE_BF16, out);
    }
}
