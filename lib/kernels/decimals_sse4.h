/* SPDX-License-Identifier: MIT
 *
 * A part of decimals.c: a whole number at a time, in a register of 16 bytes. The mask of what is no digit tells where
 * sign, point and end are; one shuffle moves the digits to the end of the register and closes the gap of the point;
 * three multiplications make pairs, fours and eights of them. SSE4.1 is all it takes; the table of instruction sets
 * has AVX2 next.
 */
#include "core/bits.h"

#include <immintrin.h>

#include "kernels/avx2_begin.h"

/* The digits of bytes 0 .. end, without the byte at `point`, as one number; other bytes below '0' are zeros. */
static PE_INLINE uint64_t register_value(__m128i text, int point, unsigned end) {
    static const int8_t places[32] = {-16, -15, -14, -13, -12, -11, -10, -9, -8, -7, -6, -5, -4, -3, -2, -1,
                                      0,   1,   2,   3,   4,   5,   6,   7,  8,  9,  10, 11, 12, 13, 14, 15};
    const __m128i digits = _mm_subs_epu8(text, _mm_set1_epi8('0'));
    __m128i from = _mm_loadu_si128((const __m128i *)(const void *)(places + end));
    from = _mm_add_epi8(from, _mm_cmpgt_epi8(_mm_set1_epi8((char)(point + 1)), from));
    const __m128i placed = _mm_shuffle_epi8(digits, from);
    const __m128i twos = _mm_maddubs_epi16(placed, _mm_set1_epi16(1 << 8 | 10));
    const __m128i fours = _mm_madd_epi16(twos, _mm_set1_epi32(1 << 16 | 100));
    const __m128i eights = _mm_madd_epi16(_mm_packus_epi32(fours, fours), _mm_set1_epi32(1 << 16 | 10000));
    const uint64_t both = (uint64_t)_mm_cvtsi128_si64(eights);
    return (both & UINT32_MAX) * 100000000 + (both >> 32);
}

/* No digit before the point or behind it, a zero before others, no comma at the end. One answer of all: a branch for
 * each would follow the signs. */
static PE_INLINE bool decimal_bad(const char *text, unsigned negative, unsigned point, unsigned last) {
    const unsigned n_whole = point - negative;
    const unsigned zero = (unsigned)(text[negative] == '0') & (unsigned)(n_whole > 1);
    return (zero | (unsigned)(n_whole == 0) | (unsigned)(last == point + 1) | (unsigned)(last > 15) |
            (unsigned)(text[last] != ',')) != 0;
}

static const char *scan_sse4(struct pe_decimals_place *out, const char *text, const char *end) {
    struct pe_decimals_place place = *out;
    while (place.room > 0 && end - text >= PE_DECIMALS_WINDOW) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)text);
        const __m128i above = _mm_add_epi8(bytes, _mm_set1_epi8((char)(127 - '9'))); /* a digit: 118 .. 127 */
        const unsigned digits = (unsigned)_mm_movemask_epi8(_mm_cmpgt_epi8(above, _mm_set1_epi8(117)));
        const unsigned others = ~digits & 0xfffe; /* the first byte is a sign, or else has to be a digit */
        const unsigned negative = *text == '-';
        const unsigned point = (unsigned)__builtin_ctz(others | 0x10000);
        const unsigned behind = others & (others - 1);
        const bool whole = text[point] == ',';
        const unsigned last = whole ? point : (unsigned)__builtin_ctz(behind | 0x10000);
        if (!((digits ^ negative) & 1)) {
            if (*text != ' ') {
                break;
            }
            text++; /* behind a comma */
            continue;
        }
        if (decimal_bad(text, negative, point, last) || (!whole && text[point] != '.')) {
            break;
        }
        const uint64_t m = register_value(bytes, whole ? -2 : (int)point, last);
        if (m >> 31) {
            break;
        }
        pe_decimals_add(&place, m, negative, whole ? 0 : (int)(last - point) - 1);
        text += last + 1;
    }
    *out = place;
    return text;
}

#undef PE_INLINE

#include "kernels/avx2_end.h"
