/* SPDX-License-Identifier: MIT
 *
 * Decimal text to the nearest double, and to the nearest float where rounding twice would differ.
 *
 * The text is gathered as m * 10^e with m of at most 19 digits. Then, from cheap to dear:
 *
 *   1. m <= 2^53 and |e| <= 22: both are exact doubles, so one multiplication or division rounds once.
 *   2. m * g with g the 128-bit power of ten (core/powers.h). m is known exactly and g to one unit, so the
 *      upper 128 bits of the product are off by less than one unit: enough to round, unless they are exactly
 *      the middle between two doubles. (The idea of Eisel and Lemire with a plainer bound of the error.)
 *   3. strtod: more than 19 digits, middles, and what is not a normal double. Of the digits 800 are kept,
 *      and a last 1 when any were cut off: no middle between two doubles has more than 767.
 *
 * Digits are taken eight at a time: on random data a loop over single digits mispredicts its end each time.
 * For the same reason the sign is no branch.
 *
 * A float of a double is the float of the text, unless the double lies exactly in the middle of two floats
 * while the text does not. Only then, and among numbers below the normal floats, strtof decides.
 */
#include "posenc.h"
#include "core/bits.h"
#include "core/powers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_FAST  19  /* 10^19 < 2^64 */
#define DIGITS_KEPT  800 /* > 767 */
#define EXPONENT_MAX INT64_C(1000000000000000)

/* The parts of a number's text: [whole .][fraction] e exponent. */
struct parts {
    const char *whole, *fraction;
    size_t n_whole, n_fraction;
    int64_t exponent; /* as written; far beyond any double it stays at EXPONENT_MAX */
    uint64_t digits;  /* all digits as one number, modulo 2^64 */
    bool negative;
};

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* How many of the word's first bytes are digits, 0..8. */
static unsigned word_digits(uint64_t word) {
    uint64_t low = word ^ 0x3030303030303030; /* a digit is now 0..9 */
    /* Bit 7 of each byte: not a digit. A carry only goes up, so the first such byte is right. */
    uint64_t other = ((low + 0x7676767676767676) | low) & 0x8080808080808080;
    if (other == 0) {
        return 8;
    }
    uint64_t below = (other & (0 - other)) - 1; /* ones below the lowest such bit: 8i + 7 of them */
    return (unsigned)(((below & 0x0101010101010101) * 0x0101010101010101) >> 56) - 1;
}

/* Eight digits to a number: pairs, fours, eight, side by side in one word. */
static uint64_t word_value(uint64_t word) {
    word = (word & 0x0f0f0f0f0f0f0f0f) * 2561 >> 8;
    word = (word & 0x00ff00ff00ff00ff) * 6553601 >> 16;
    return (word & 0x0000ffff0000ffff) * 42949672960001 >> 32;
}

/* Appends the digits at text to *value; returns where they end. */
static const char *digits_scan(const char *text, const char *end, uint64_t *value) {
    static const uint64_t scales[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    while (end - text >= 8) {
        uint64_t word = pe_word_load(text);
        unsigned n = word_digits(word);
        if (n == 0) {
            return text;
        }
        *value = *value * scales[n] + word_value(word << (64 - 8 * n));
        text += n;
        if (n < 8) {
            return text;
        }
    }
    while (text < end && is_digit(*text)) {
        *value = *value * 10 + (uint64_t)(*text++ - '0');
    }
    return text;
}

/* The digits of an exponent after its e; text moves on. false: there are none. */
static bool exponent_scan(const char **text, const char *end, int64_t *exponent) {
    const char *at = *text;
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) {
        at++;
    }
    bool any = at < end && is_digit(*at);
    int64_t value = 0;
    for (; at < end && is_digit(*at); at++) {
        value = value < EXPONENT_MAX ? 10 * value + (*at - '0') : EXPONENT_MAX;
    }
    *text = at;
    *exponent = negative ? -value : value;
    return any;
}

/* The grammar: -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)? */
static bool parts_scan(const char **text, const char *end, struct parts *parts) {
    const char *at = *text;
    *parts = (struct parts){.negative = at < end && *at == '-'};
    at += parts->negative;
    parts->whole = at;
    at = digits_scan(at, end, &parts->digits);
    parts->n_whole = (size_t)(at - parts->whole);
    if (parts->n_whole == 0 || (*parts->whole == '0' && parts->n_whole > 1)) {
        *text = parts->n_whole == 0 ? at : parts->whole + 1;
        return false;
    }
    if (at < end && *at == '.') {
        parts->fraction = ++at;
        at = digits_scan(at, end, &parts->digits);
        parts->n_fraction = (size_t)(at - parts->fraction);
        if (parts->n_fraction == 0) {
            *text = at;
            return false;
        }
    }
    *text = at;
    if (at < end && (*at == 'e' || *at == 'E')) {
        ++*text;
        return exponent_scan(text, end, &parts->exponent);
    }
    return true;
}

/* The digits without leading zeros, cut after DIGITS_KEPT of them (with a last 1 when what is cut off was not
 * zero), and the power of ten of their last one. */
struct gathered {
    char digits[DIGITS_KEPT + 1];
    size_t n;
    int64_t exponent;
};

static void gather(struct gathered *all, const char *digits, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (all->n == DIGITS_KEPT + 1 || (all->n == DIGITS_KEPT && digits[i] == '0')) {
            all->exponent++;
        } else if (all->n > 0 || digits[i] != '0') {
            all->digits[all->n] = all->n == DIGITS_KEPT ? '1' : digits[i];
            all->n++;
        }
    }
}

static void parts_gather(const struct parts *parts, struct gathered *all) {
    all->n = 0;
    all->exponent = parts->exponent - (int64_t)parts->n_fraction;
    gather(all, parts->whole, parts->n_whole);
    gather(all, parts->fraction, parts->n_fraction);
}

/* "digits e exponent" for strtod, the exponent held where every result is zero or infinite anyway. */
#define GATHERED_TEXT (DIGITS_KEPT + 32)
static void gathered_text(const struct gathered *all, char *text) {
    int64_t exponent = all->exponent;
    exponent = exponent > 9999 ? 9999 : exponent < -9999 ? -9999 : exponent;
    memcpy(text, all->digits, all->n);
    snprintf(text + all->n, GATHERED_TEXT - all->n, "%se%d", all->n == 0 ? "0" : "", (int)exponent);
}

static double double_of_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t bits_of_double(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* How many zero bits are above the highest one: from the exponent of (double)m, which may have been rounded
 * up to the next power of two. m > 0. */
static int zeros_above(uint64_t m) {
    int top = (int)(bits_of_double((double)m) >> 52) - 1023;
    return top > 63 || m >> top == 0 ? 64 - top : 63 - top;
}

/* Step 2: m * 10^e for m > 0. false: perhaps a middle, or not a normal double. */
static bool product_round(uint64_t m, int64_t e, double *value) {
    if (e < PE_POWER_MIN || e > PE_POWER_MAX) {
        return false;
    }
    int zeros = zeros_above(m);
    struct pe_u128 power = pe_power((int)e);
    struct pe_u128 product = pe_u128_multiply(m << zeros, power.high);
    uint64_t carried = pe_u128_multiply(m << zeros, power.low).high;
    product.low += carried;
    product.high += product.low < carried;
    /* 2^126 <= product < 2^128, and the true one is within a unit of it: product * 2^(e2 - 126). */
    int top = (int)(product.high >> 63);
    int e2 = pe_power_log2((int)e) + 63 - zeros + top;
    int cut = 10 + top; /* bits of product.high below the 53 */
    uint64_t mantissa = product.high >> cut, middle = UINT64_C(1) << (cut - 1);
    uint64_t rest = product.high & (2 * middle - 1);
    if ((rest == middle && product.low == 0) || e2 < -1022 || e2 > 1022) {
        return false;
    }
    mantissa += rest >= middle; /* 2^53 becomes the next exponent by itself */
    *value = double_of_bits(((uint64_t)(e2 + 1022) << 52) + mantissa);
    return true;
}

/* Steps 1 and 2. */
static bool decimal_round(uint64_t m, int64_t e, double *value) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (m <= UINT64_C(1) << 53 && e >= -22 && e <= 22) {
        *value = e < 0 ? (double)m / powers[-e] : (double)m * powers[e];
        return true;
    }
    if (m == 0) {
        *value = 0;
        return true;
    }
    return product_round(m, e, value);
}

static double parts_round(const struct parts *parts) {
    double value;
    size_t n = parts->n_whole + parts->n_fraction;
    if (n <= DIGITS_FAST &&
        decimal_round(parts->digits, parts->exponent - (int64_t)parts->n_fraction, &value)) {
        return value;
    }
    struct gathered all;
    parts_gather(parts, &all);
    if (n > DIGITS_FAST && all.n <= DIGITS_FAST) { /* the others were leading zeros */
        uint64_t digits = 0;
        digits_scan(all.digits, all.digits + all.n, &digits);
        if (decimal_round(digits, all.exponent, &value)) {
            return value;
        }
    }
    char text[GATHERED_TEXT];
    gathered_text(&all, text);
    return strtod(text, NULL);
}

/* Does the nearest float follow from the double alone? Not in the middle of two floats, nor (where the
 * middles are elsewhere) below the normal floats, down to half the smallest one. */
static bool single_follows(double value) {
    uint64_t bits = bits_of_double(value);
    uint64_t exponent = bits >> 52 & 0x7ff;
    bool middle = (bits & 0x1fffffff) == 0x10000000;
    return !middle && (exponent >= 1023 - 126 || exponent < 1023 - 150);
}

static float parts_single(const struct parts *parts) {
    struct gathered all;
    parts_gather(parts, &all);
    char text[GATHERED_TEXT];
    gathered_text(&all, text);
    return strtof(text, NULL);
}

/* Whole numbers are exact up to 2^53; the next one rounds to it, and a position or a seed must not become
 * another in silence. What rounds to 2^53 has 16 digits before its point, however it is written, so the first
 * 16 compare as numbers. */
static bool beyond_whole(const struct parts *parts, double value) {
    static const char limit[] = "9007199254740992";
    const size_t n = sizeof limit - 1;
    if (value != 0x1p53) {
        return false;
    }
    struct gathered all;
    parts_gather(parts, &all);
    int order = memcmp(all.digits, limit, all.n < n ? all.n : n);
    for (size_t i = n; order == 0 && i < all.n; i++) {
        order = all.digits[i] != '0';
    }
    return order > 0;
}

/* Is the text m * 10^e with m < 2^31? */
static void decimal_note(const struct parts *parts, struct pe_number *out) {
    int64_t exponent = parts->exponent - (int64_t)parts->n_fraction;
    out->decimal = parts->n_whole + parts->n_fraction <= DIGITS_FAST && parts->digits >> 31 == 0 &&
                   exponent > PE_DECIMAL_MINUS_INF && exponent <= INT8_MAX;
    out->digits = out->decimal ? (uint32_t)parts->digits << 1 | parts->negative : 0;
    out->exponent = out->decimal ? (int8_t)exponent : 0;
}

enum pe_number_status pe_number_scan(const char **text, const char *end, struct pe_number *out) {
    struct parts parts;
    if (!parts_scan(text, end, &parts)) {
        return PE_NUMBER_SYNTAX;
    }
    double value = parts_round(&parts);
    out->single = (float)value;
    out->twice = false;
    out->beyond = beyond_whole(&parts, value);
    decimal_note(&parts, out);
    if (!single_follows(value)) {
        float single = parts_single(&parts);
        out->twice = single < out->single || single > out->single;
        out->single = single;
    }
    out->value = double_of_bits(bits_of_double(value) | (uint64_t)parts.negative << 63);
    out->single = parts.negative ? -out->single : out->single;
    return isinf(value) ? PE_NUMBER_OVERFLOW : PE_NUMBER_OK;
}

enum pe_number_status pe_number_parse(const char *text, size_t length, struct pe_number *out) {
    const char *end = text + length;
    enum pe_number_status status = pe_number_scan(&text, end, out);
    return text == end ? status : PE_NUMBER_SYNTAX;
}

void pe_decimal_number(uint32_t digits, int8_t exponent, struct pe_number *out) {
    char text[20];
    if (exponent == PE_DECIMAL_MINUS_INF) {
        *out = (struct pe_number){.value = -INFINITY, .single = -INFINITY};
        return;
    }
    int n =
        snprintf(text, sizeof text, "%s%lue%d", digits & 1 ? "-" : "", (unsigned long)digits >> 1, exponent);
    pe_number_parse(text, (size_t)n, out);
}
