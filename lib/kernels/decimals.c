/* SPDX-License-Identifier: MIT
 *
 * Lists of numbers of few digits. Where one ends is what the next waits for, so all goes into finding that early: two
 * words of eight bytes behind the point are looked at together, and digits become a number beside it. Signs and
 * counts of digits differ from number to number, so neither is a branch; what is, goes the same way in nearly all
 * numbers of a text.
 */
#include "kernels/decimals.h"

#include "core/bits.h"
#include <string.h>

/* How many of the word's first bytes are digits, 0..8: as in core/number.c, but without a branch. */
static inline unsigned word_digits(uint64_t word) {
    uint64_t low = word ^ 0x3030303030303030;
    uint64_t other = ((low + 0x7676767676767676) | low) & 0x8080808080808080;
    uint64_t below = (other - 1) & ~other;
    return (unsigned)((((below & 0x0101010101010101) * 0x0101010101010101) >> 56) - 1 + (other == 0));
}

/* The first n digits, 0..8, as a number. */
static inline uint64_t word_value(uint64_t word, unsigned n) {
    unsigned half = 4 * (8 - n);
    word = word << half << half; /* by 64 at once is undefined */
    word = (word & 0x0f0f0f0f0f0f0f0f) * 2561 >> 8;
    word = (word & 0x00ff00ff00ff00ff) * 6553601 >> 16;
    return (word & 0x0000ffff0000ffff) * 42949672960001 >> 32;
}

static const uint64_t scales[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

/* The digits before the point, which begin with `first`: at most eight. NULL: not right, or too many. */
static inline const char *whole_scan(const char *at, uint64_t first, uint64_t *m) {
    uint64_t word = pe_word_load(at + 1);
    unsigned n = word_digits(word);
    *m = first * scales[n] + word_value(word, n);
    return n == 8 || (n > 0 && first == 0) ? NULL : at + 1 + n;
}

/* One more digit of m, if this byte is one and `on`: then 1. */
static inline unsigned digit_add(uint64_t *m, char byte, unsigned on) {
    uint64_t digit = (uint64_t)(unsigned char)byte - '0';
    unsigned more = on & (unsigned)(digit < 10);
    *m += (9 * *m + digit) & (0 - (uint64_t)more);
    return more;
}

/* At most 10 digits behind the point: there are seldom more of them, and who wants to know waits. How many. */
static inline unsigned fraction_scan(const char *at, uint64_t *m) {
    uint64_t word = pe_word_load(at);
    unsigned n = word_digits(word);
    *m = *m * scales[n] + word_value(word, n);
    unsigned ninth = digit_add(m, at[8], n >> 3), tenth = digit_add(m, at[9], ninth);
    return n + ninth + tenth;
}

static const char *scan_plain(struct pe_decimals_place *out, const char *text, const char *end) {
    struct pe_decimals_place place = *out;
    while (place.room > 0 && end - text >= PE_DECIMALS_WINDOW) {
        uint32_t negative = *text == '-';
        const char *at = text + negative;
        uint64_t m = (uint64_t)(unsigned char)*at - '0';
        unsigned n = 0;
        if (m > 9) {
            if (*text != ' ') {
                break;
            }
            text++; /* behind a comma */
            continue;
        }
        if (at[1] == '.') {
            at++;
        } else {
            at = whole_scan(at, m, &m);
        }
        if (at && *at == '.') {
            n = fraction_scan(at + 1, &m);
            at = n ? at + 1 + n : NULL;
        }
        if (!at || *at != ',' || m >> 31) {
            break;
        }
        pe_decimals_add(&place, m, negative, (int)n);
        text = at + 1;
    }
    *out = place;
    return text;
}

#if PE_AVX2
#include "kernels/decimals_sse4.h"
#endif

const char *pe_decimals_scan(struct pe_decimals *list, const char *text, const char *end) {
    static pe_decimals_reader *const readers[PE_INSTRUCTIONS_COUNT] = {
        [PE_INSTRUCTIONS_PLAIN] = scan_plain,
#if PE_AVX2
        [PE_INSTRUCTIONS_AVX2] = scan_sse4,
        [PE_INSTRUCTIONS_AVX512] = scan_sse4,
#endif
    };
    struct pe_decimals_place place = {list->digits + list->n, list->exponents + list->n,
                                      list->room - list->n};
    text = readers[pe_instructions()](&place, text, end);
    list->n = list->room - place.room;
    return text;
}

/* ---- To floats ----------------------------------------------------------------------------------------- */

/* By way of the nearest double, which is the quotient of two exact ones. Only where that is the very middle of two
 * floats the text has to be asked on which side it was. */
void pe_decimals_f32(void *out, const uint32_t *digits, const int8_t *exponents, size_t n) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    for (size_t i = 0; i < n; i++) {
        uint32_t word = digits[i], bits, low = 0x10000000;
        float single = 0;
        if (exponents[i] <= 0 && exponents[i] >= -22) {
            double value = (double)(int32_t)(word >> 1) / powers[-exponents[i]];
            uint64_t wide;
            memcpy(&wide, &value, sizeof wide);
            low = wide & 0x1fffffff;
            single = (float)value;
        }
        memcpy(&bits, &single, sizeof bits);
        bits |= word << 31;
        if (low == 0x10000000) {
            struct pe_number number;
            pe_decimal_number(word, exponents[i], &number);
            memcpy(&bits, &number.single, sizeof bits);
        }
        memcpy(&single, &bits, sizeof single);
        memcpy((char *)out + i * sizeof single, &single, sizeof single);
    }
}
