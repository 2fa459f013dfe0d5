/* SPDX-License-Identifier: MIT
 *
 * The shortest text of a normal float, as shortest.c explains it, without branches that follow the digits: they
 * would be mispredicted half of the time. Comparisons are the sign bits of differences, and choices are masks,
 * as compilers turn `?:` into jumps again.
 *
 * A normal float has 2^23 <= v/10^k < 1.7e8, seven to nine digits, so the digits are taken in units of 10^k even
 * where a multiple of 10^(k+1) was chosen, moved to nine, and written as one and eight; the zeros at the end are
 * counted in the word of eight.
 *
 * Inline, because one number (shortest.c) and many (kernels/numbers.c) have the same in them.
 */
#ifndef PE_SHORTEST_F32_H
#define PE_SHORTEST_F32_H

#include "core/bits.h"
#include "core/powers.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define PE_DIGITS_ASCII UINT64_C(0x3030303030303030)

/* All other floats, and texts that are neither 0.000ddd nor have 1 to 7 digits before their point (shortest.c). */
size_t pe_shortest_rare_f32(char *out, float value);

/* The lowest byte first. A loop says so on any machine, but not every compiler makes one store of it. */
static inline void pe_word_store(char *out, uint64_t word) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(out, &word, sizeof word);
#else
    for (int i = 0; i < 8; i++) {
        out[i] = (char)(word >> 8 * i);
    }
#endif
}

/* Eight digits of a number below 10^8, leading zeros kept: halves, quarters, eighths of one word, side by side. */
static inline uint64_t pe_digits_8(uint32_t digits) {
    uint64_t word = digits / 10000 | (uint64_t)(digits % 10000) << 32;
    uint64_t hundreds = (word * 10486 >> 20) & 0x7f0000007f;
    word = hundreds | (word - 100 * hundreds) << 16;
    uint64_t tens = (word * 103 >> 10) & 0x000f000f000f000f;
    return tens | (word - 10 * tens) << 8;
}

/* floor(log10(2^q)), or floor(log10(3/4 2^q)) for the shorter interval of a power of two; |q| <= 1100. */
static inline int pe_interval_power(int q, bool lopsided) {
    return (q * 1262611 - (lopsided ? 524031 : 0)) >> 22;
}

static inline uint64_t pe_round_to_odd_64(uint64_t power, uint64_t factor) {
    uint64_t carried = (power & UINT32_MAX) * factor >> 32;
    uint64_t product = (power >> 32) * factor + carried; /* in units of 2^-32 */
    return product >> 32 | ((product & UINT32_MAX) > 1);
}

/* a < b, both below 2^63 */
static inline uint64_t pe_less(uint64_t a, uint64_t b) {
    return (a - b) >> 63;
}

/* The digits of the normal float c * 2^q in units of 10^k. */
static inline uint32_t pe_shortest_digits(uint32_t c, int q, bool lopsided, int k) {
    int shift = q + pe_power_log2(-k) + 1;
    uint64_t power = pe_power(-k).high + 1, c4 = 4 * (uint64_t)c, open = c & 1;
    uint64_t low = pe_round_to_odd_64(power, (c4 - 2 + lopsided) << shift) + open;
    uint64_t value = pe_round_to_odd_64(power, c4 << shift);
    uint64_t high = pe_round_to_odd_64(power, (c4 + 2) << shift) - open;
    uint64_t s = value / 4, tens = s / 10, half = 4 * s + 2;
    uint64_t ten_down = pe_less(40 * tens, low) ^ 1, ten_up = pe_less(high, 40 * tens + 40) ^ 1;
    uint64_t down = pe_less(4 * s, low) ^ 1, up = pe_less(high, 4 * s + 4) ^ 1;
    uint64_t nearer_up = pe_less(half, value + (s & 1)); /* of two that are as near, the even one */
    uint64_t one = 0 - (down ^ up), ten = 0 - (ten_down ^ ten_up);
    uint64_t units = s + ((up & one) | (nearer_up & ~one));
    return (uint32_t)((10 * (tens + ten_up) & ten) | (units & ~ten));
}

/* Digits `first` and those of `word` with `point` of them, 1 to 7, before the point. */
static inline void pe_point_insert(char *out, uint64_t first, uint64_t word, int point) {
    uint64_t ascii = word + PE_DIGITS_ASCII, whole = ('0' + first) | ascii << 8;
    uint64_t before = (UINT64_C(1) << 8 * point) - 1, after = ~(before << 8 | 0xff);
    pe_word_store(out + 2, ascii);
    pe_word_store(out, (whole & before) | (uint64_t)'.' << 8 * point | (whole << 8 & after));
}

static inline size_t pe_shortest_write_f32(char *out, float value) {
    static const uint32_t to_nine[] = {100, 10, 1};
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t fraction = bits & 0x7fffff, exponent = bits >> 23 & 0xff, sign = bits >> 31;
    if (exponent - 1 >= 0xfe) {
        return pe_shortest_rare_f32(out, value);
    }
    int q = (int)exponent - 150;
    bool lopsided = (fraction == 0) & (exponent > 1);
    int k = pe_interval_power(q, lopsided);
    uint32_t digits = pe_shortest_digits(fraction | 0x800000, q, lopsided, k);
    int over = (int)(2 - pe_less(digits, 10000000) - pe_less(digits, 100000000)); /* digits beyond seven */
    uint32_t nine = digits * to_nine[over], first = nine / 100000000;
    uint64_t word = pe_digits_8(nine % 100000000);
    int n = 1 + ((pe_top_bit(word << 3 | 1) + 5) >> 3), point = 7 + over + k;
    *out = '-';
    char *at = out + sign;
    if (point > -5 && point <= 0) {
        memcpy(at, "0.000000", 8);
        at += 2 - point;
        *at = (char)('0' + first);
        pe_word_store(at + 1, word + PE_DIGITS_ASCII);
        return (size_t)(at + n - out);
    }
    if (point > 0 && point < 8) {
        pe_point_insert(at, first, word, point);
        return (size_t)(at + (n > point ? n : point + 1) + 1 - out);
    }
    return pe_shortest_rare_f32(out, value);
}

#endif
