/* SPDX-License-Identifier: MIT
 *
 * The shortest decimal of a float or double (Raffaele Giulietti, "The Schubfach way to render doubles").
 *
 * A value v = c 2^q is what is read from every decimal in its rounding interval
 *
 *     [ (4c - 2) 2^(q-2), (4c + 2) 2^(q-2) ]      the ends count when c is even (ties go to even);
 *
 * where v is a power of two its lower neighbour is nearer: 4c - 1 there. With 10^k the largest power of ten
 * that is not wider than the interval, at least one multiple of 10^k lies inside, and at most one of
 * 10^(k+1). So the answer is that multiple of 10^(k+1), without its zeros, or else whichever of the multiples
 * s 10^k <= v < (s+1) 10^k is inside; when both are, the nearer one.
 *
 * Only the comparisons need v and the ends in units of 10^k / 4, and these are found by one multiplication
 * each with a rounded 10^-k, "rounded to odd": all bits that are cut off are kept as one sticky last bit,
 * which tells "exactly" from "a little more". That 64 bits of 10^-k are enough for floats and 128 for doubles
 * is the theorem of the paper; for floats the project has also tried all 2^32.
 *
 * The C library can do the same by trying %.1g to %.9g (or %.17g) through strtod, 20 to 50 times slower.
 */
#include "posenc.h"
#include "core/shortest_f32.h"

#include <string.h>

/* digits * 10^exponent, digits without trailing zeros. */
struct decimal {
    uint64_t digits;
    int exponent;
};

/* A float's or double's rounding interval in quarters of 10^k, rounded to odd. */
struct interval {
    uint64_t low, value, high;
    int k;
    bool open; /* its ends belong to the neighbours */
};

static uint64_t round_to_odd_128(struct pe_u128 power, uint64_t factor) {
    uint64_t carried = pe_u128_multiply(power.low, factor).high;
    struct pe_u128 product = pe_u128_multiply(power.high, factor);
    product.low += carried;
    product.high += product.low < carried;
    return product.high | (product.low > 1);
}

/* c < 2^24. The float's power is the upper half of the double's: rounded up as well. */
static struct interval interval_f32(uint32_t c, int q, bool lopsided) {
    int k = pe_interval_power(q, lopsided);
    int shift = q + pe_power_log2(-k) + 1;
    uint64_t power = pe_power(-k).high + 1, c4 = 4 * (uint64_t)c;
    return (struct interval){.low = pe_round_to_odd_64(power, (c4 - 2 + lopsided) << shift),
                             .value = pe_round_to_odd_64(power, c4 << shift),
                             .high = pe_round_to_odd_64(power, (c4 + 2) << shift),
                             .k = k,
                             .open = c & 1};
}

/* c < 2^53 */
static struct interval interval_f64(uint64_t c, int q, bool lopsided) {
    int k = pe_interval_power(q, lopsided);
    int shift = q + pe_power_log2(-k) + 1;
    struct pe_u128 power = pe_power(-k);
    return (struct interval){.low = round_to_odd_128(power, (4 * c - 2 + lopsided) << shift),
                             .value = round_to_odd_128(power, 4 * c << shift),
                             .high = round_to_odd_128(power, (4 * c + 2) << shift),
                             .k = k,
                             .open = c & 1};
}

static struct decimal decimal_strip(uint64_t digits, int exponent) {
    if (digits % 10 != 0) {
        return (struct decimal){digits, exponent};
    }
    static const struct {
        uint64_t divisor;
        int zeros;
    } steps[] = {{100000000, 8}, {10000, 4}, {100, 2}, {10, 1}};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (digits % steps[i].divisor == 0) {
            digits /= steps[i].divisor;
            exponent += steps[i].zeros;
        }
    }
    return (struct decimal){digits, exponent};
}

/* By pointer: a copy on the stack would be read before its parts have arrived there. */
static struct decimal interval_shortest(const struct interval *in) {
    uint64_t low = in->low + in->open, high = in->high - in->open; /* now: inside means low <= x <= high */
    uint64_t s = in->value / 4, tens = s / 10;
    if (tens > 0) {
        bool down = low <= 40 * tens, up = 40 * tens + 40 <= high;
        if (down != up) {
            return decimal_strip(tens + up, in->k + 1);
        }
    }
    bool down = low <= 4 * s, up = 4 * s + 4 <= high;
    uint64_t half = 4 * s + 2;
    bool nearer_up = in->value > half || (in->value == half && (s & 1));
    s += down != up ? up : nearer_up;
    return decimal_strip(s, in->k); /* 9 may have become 10 */
}

static const uint64_t powers_of_ten[] = {1,
                                         10,
                                         100,
                                         1000,
                                         10000,
                                         100000,
                                         1000000,
                                         10000000,
                                         100000000,
                                         1000000000,
                                         10000000000,
                                         100000000000,
                                         1000000000000,
                                         10000000000000,
                                         100000000000000,
                                         1000000000000000,
                                         10000000000000000,
                                         100000000000000000};

/* How many digits: by the binary exponent of (double)digits, then one comparison. 0 < digits < 10^17. */
static int digits_count(uint64_t digits) {
    double real = (double)digits;
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    int least = (((int)(bits >> 52) - 1023) * 1233) >> 12; /* floor(log10(2^e)) for e < 60 */
    return least + 1 + (digits >= powers_of_ten[least + 1]);
}

static void digits_write_8(char *out, uint32_t digits) {
    pe_word_store(out, pe_digits_8(digits) + PE_DIGITS_ASCII);
}

/* The n digits and zeros behind them: 9 bytes in all, or 17 when n > 9. */
static void digits_write(char *out, uint64_t digits, int n) {
    uint64_t rest = digits * powers_of_ten[(n > 9 ? 17 : 9) - n];
    if (n > 9) {
        digits_write_8(out + 9, (uint32_t)(rest % 100000000));
        rest /= 100000000;
    }
    out[0] = (char)('0' + rest / 100000000);
    digits_write_8(out + 1, (uint32_t)(rest % 100000000));
}

static char *exponent_write(char *out, int exponent) {
    *out++ = 'e';
    if (exponent < 0) {
        *out++ = '-';
        exponent = -exponent;
    }
    if (exponent >= 100) {
        *out++ = (char)('0' + exponent / 100);
    }
    if (exponent >= 10) {
        *out++ = (char)('0' + exponent / 10 % 10);
    }
    *out++ = (char)('0' + exponent % 10);
    return out;
}

/* Digits go in whole words past the end of the text: that is what PE_NUMBER_ROOM is for. */
static char *decimal_write(char *out, struct decimal decimal) {
    int n = digits_count(decimal.digits);
    int point = n + decimal.exponent; /* v = 0.ddd * 10^point */
    if (point > -5 && point <= 0) {
        memcpy(out, "0.0000", 6);
        digits_write(out + 2 - point, decimal.digits, n);
        return out + 2 - point + n;
    }
    if (point <= 0 || point > 16) {
        digits_write(out + 1, decimal.digits, n);
        out[0] = out[1];
        out[1] = '.';
        return exponent_write(out + n + (n > 1), point - 1);
    }
    memset(out, '0', 16);
    digits_write(out, decimal.digits, n);
    if (point >= n) {
        memcpy(out + point, ".0", 2);
        return out + point + 2;
    }
    char fraction[16];
    memcpy(fraction, out + point, sizeof fraction);
    memcpy(out + point + 1, fraction, sizeof fraction);
    out[point] = '.';
    return out + n + 1;
}

/* Zero, or what has no number in JSON. */
static size_t special_write(char *out, bool finite, bool negative) {
    const char *text = !finite ? "null" : negative ? "-0.0" : "0.0";
    size_t n = !finite || negative ? 4 : 3;
    memcpy(out, text, n);
    return n;
}

size_t pe_shortest_rare_f32(char *out, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t fraction = bits & 0x7fffff, exponent = bits >> 23 & 0xff, sign = bits >> 31;
    if ((bits & 0x7fffffff) == 0 || exponent == 0xff) {
        return special_write(out, exponent == 0, sign);
    }
    uint32_t c = exponent ? fraction | 0x800000 : fraction;
    int q = (exponent ? (int)exponent : 1) - 150;
    *out = '-';
    struct interval interval = interval_f32(c, q, fraction == 0 && exponent > 1);
    return (size_t)(decimal_write(out + sign, interval_shortest(&interval)) - out);
}

size_t pe_number_write_f32(char *out, float value) {
    return pe_shortest_write_f32(out, value);
}

size_t pe_number_write_f64(char *out, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t fraction = bits & 0xfffffffffffff, exponent = bits >> 52 & 0x7ff, sign = bits >> 63;
    if (bits << 1 == 0 || exponent == 0x7ff) {
        return special_write(out, exponent == 0, sign);
    }
    uint64_t c = exponent ? fraction | 0x10000000000000 : fraction;
    int q = (exponent ? (int)exponent : 1) - 1075;
    *out = '-';
    struct interval interval = interval_f64(c, q, fraction == 0 && exponent > 1);
    return (size_t)(decimal_write(out + sign, interval_shortest(&interval)) - out);
}

size_t pe_number_write_int(char *out, int64_t value) {
    char text[20];
    size_t n = 0;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        text[n++] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    size_t sign = value < 0;
    *out = '-';
    for (size_t i = 0; i < n; i++) {
        out[sign + i] = text[n - 1 - i];
    }
    return sign + n;
}
