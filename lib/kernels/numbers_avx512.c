/* SPDX-License-Identifier: MIT
 *
 * Lists of floats as text, eight at a time: the arithmetic of core/shortest_f32.h with a number in each lane of 64
 * bits. Digits, point and sign of a number are then in one register of 16 bytes, and one shuffle puts them in order.
 * What has no place in it (exponents, more than nine digits before the point) is left to the plain writer.
 */
#include "kernels/numbers.h"

#if PE_AVX2

#include "core/bits.h"
#include "core/shortest_f32.h"
#include "posenc.h"

#include <immintrin.h>

#include "kernels/avx512_begin.h"

/* Places in a number's 16 bytes: nine digits, then these. */
enum { Z = 9, P = 10, M = 11 };
#define POINT_MIN (-4)
#define POINT_MAX 9

/* The order of the bytes for each place of the point, for a positive and a negative number. */
/* clang-format off */
static const uint8_t orders[2 * (POINT_MAX - POINT_MIN + 1)][16] = {
    {Z, P, Z, Z, Z, Z, 0, 1, 2, 3, 4, 5, 6, 7, 8, Z},
    {M, Z, P, Z, Z, Z, Z, 0, 1, 2, 3, 4, 5, 6, 7, 8},
    {Z, P, Z, Z, Z, 0, 1, 2, 3, 4, 5, 6, 7, 8, Z, Z},
    {M, Z, P, Z, Z, Z, 0, 1, 2, 3, 4, 5, 6, 7, 8, Z},
    {Z, P, Z, Z, 0, 1, 2, 3, 4, 5, 6, 7, 8, Z, Z, Z},
    {M, Z, P, Z, Z, 0, 1, 2, 3, 4, 5, 6, 7, 8, Z, Z},
    {Z, P, Z, 0, 1, 2, 3, 4, 5, 6, 7, 8, Z, Z, Z, Z},
    {M, Z, P, Z, 0, 1, 2, 3, 4, 5, 6, 7, 8, Z, Z, Z},
    {Z, P, 0, 1, 2, 3, 4, 5, 6, 7, 8, Z, Z, Z, Z, Z},
    {M, Z, P, 0, 1, 2, 3, 4, 5, 6, 7, 8, Z, Z, Z, Z},
    {0, P, 1, 2, 3, 4, 5, 6, 7, 8, Z, Z, Z, Z, Z, Z},
    {M, 0, P, 1, 2, 3, 4, 5, 6, 7, 8, Z, Z, Z, Z, Z},
    {0, 1, P, 2, 3, 4, 5, 6, 7, 8, Z, Z, Z, Z, Z, Z},
    {M, 0, 1, P, 2, 3, 4, 5, 6, 7, 8, Z, Z, Z, Z, Z},
    {0, 1, 2, P, 3, 4, 5, 6, 7, 8, Z, Z, Z, Z, Z, Z},
    {M, 0, 1, 2, P, 3, 4, 5, 6, 7, 8, Z, Z, Z, Z, Z},
    {0, 1, 2, 3, P, 4, 5, 6, 7, 8, Z, Z, Z, Z, Z, Z},
    {M, 0, 1, 2, 3, P, 4, 5, 6, 7, 8, Z, Z, Z, Z, Z},
    {0, 1, 2, 3, 4, P, 5, 6, 7, 8, Z, Z, Z, Z, Z, Z},
    {M, 0, 1, 2, 3, 4, P, 5, 6, 7, 8, Z, Z, Z, Z, Z},
    {0, 1, 2, 3, 4, 5, P, 6, 7, 8, Z, Z, Z, Z, Z, Z},
    {M, 0, 1, 2, 3, 4, 5, P, 6, 7, 8, Z, Z, Z, Z, Z},
    {0, 1, 2, 3, 4, 5, 6, P, 7, 8, Z, Z, Z, Z, Z, Z},
    {M, 0, 1, 2, 3, 4, 5, 6, P, 7, 8, Z, Z, Z, Z, Z},
    {0, 1, 2, 3, 4, 5, 6, 7, P, 8, Z, Z, Z, Z, Z, Z},
    {M, 0, 1, 2, 3, 4, 5, 6, 7, P, 8, Z, Z, Z, Z, Z},
    {0, 1, 2, 3, 4, 5, 6, 7, 8, P, Z, Z, Z, Z, Z, Z},
    {M, 0, 1, 2, 3, 4, 5, 6, 7, 8, P, Z, Z, Z, Z, Z},
};
/* clang-format on */

/* Eight numbers before they are put together. */
struct texts {
    uint64_t even[8], odd[8]; /* 16 bytes each: numbers 0, 2, 4, 6 and 1, 3, 5, 7 */
    uint64_t order[8], length[8];
};

static PE_INLINE __m512i all(int64_t value) {
    return _mm512_set1_epi64(value);
}

/* pe_round_to_odd_64; power as its low and high half. */
static PE_INLINE __m512i round_to_odd(__m512i power, __m512i upper, __m512i factor) {
    __m512i carried = _mm512_srli_epi64(_mm512_mul_epu32(power, factor), 32);
    __m512i product = _mm512_add_epi64(_mm512_mul_epu32(upper, factor), carried);
    __m512i whole = _mm512_srli_epi64(product, 32), rest = _mm512_and_si512(product, all(UINT32_MAX));
    return _mm512_mask_or_epi64(whole, _mm512_cmpgt_epu64_mask(rest, all(1)), whole, all(1));
}

/* pe_shortest_digits */
static PE_INLINE __m512i shortest(__m512i c, __m512i q, __mmask8 lopsided, __m512i k) {
    const __m512i minus_k = _mm512_sub_epi64(_mm512_setzero_si512(), k);
    const __m512i row = _mm512_slli_epi64(_mm512_sub_epi64(minus_k, all(PE_POWER_MIN)), 1);
    const __m512i power = _mm512_add_epi64(_mm512_i64gather_epi64(row, &pe_powers[0].high, 8), all(1));
    const __m512i log2 = _mm512_srai_epi64(_mm512_mul_epi32(minus_k, all(1741647)), 19);
    const __m512i shift = _mm512_add_epi64(_mm512_add_epi64(q, log2), all(1));
    const __m512i upper = _mm512_srli_epi64(power, 32), c4 = _mm512_slli_epi64(c, 2);
    const __m512i open = _mm512_and_si512(c, all(1));
    __m512i below = _mm512_sub_epi64(c4, all(2));
    below = _mm512_mask_add_epi64(below, lopsided, below, all(1));
    __m512i low = round_to_odd(power, upper, _mm512_sllv_epi64(below, shift));
    __m512i value = round_to_odd(power, upper, _mm512_sllv_epi64(c4, shift));
    __m512i high = round_to_odd(power, upper, _mm512_sllv_epi64(_mm512_add_epi64(c4, all(2)), shift));
    low = _mm512_add_epi64(low, open);
    high = _mm512_sub_epi64(high, open);
    const __m512i s = _mm512_srli_epi64(value, 2), s4 = _mm512_slli_epi64(s, 2);
    const __m512i tens = _mm512_srli_epi64(_mm512_mul_epu32(s, all(0xcccccccd)), 35);
    const __m512i forty = _mm512_mul_epu32(tens, all(40));
    const __mmask8 ten_up = _mm512_cmple_epu64_mask(_mm512_add_epi64(forty, all(40)), high);
    const __mmask8 ten = _mm512_cmple_epu64_mask(low, forty) ^ ten_up;
    const __mmask8 up = _mm512_cmple_epu64_mask(_mm512_add_epi64(s4, all(4)), high);
    const __mmask8 one = _mm512_cmple_epu64_mask(low, s4) ^ up;
    const __m512i even = _mm512_add_epi64(value, _mm512_and_si512(s, all(1)));
    const __mmask8 nearer_up = _mm512_cmplt_epu64_mask(_mm512_add_epi64(s4, all(2)), even);
    const __mmask8 add = (__mmask8)((up & one) | (nearer_up & ~one));
    const __m512i units = _mm512_mask_add_epi64(s, add, s, all(1));
    const __m512i decades = _mm512_mask_add_epi64(tens, ten_up, tens, all(1));
    return _mm512_mask_mul_epu32(units, ten, decades, all(10));
}

/* pe_digits_8 */
static PE_INLINE __m512i digits_8(__m512i digits) {
    const __m512i upper = _mm512_srli_epi64(_mm512_mul_epu32(digits, all(109951163)), 40); /* / 10^4 */
    const __m512i lower = _mm512_sub_epi64(digits, _mm512_mul_epu32(upper, all(10000)));
    __m512i word = _mm512_or_si512(upper, _mm512_slli_epi64(lower, 32));
    const __m512i hundreds = _mm512_srli_epi32(_mm512_madd_epi16(word, _mm512_set1_epi32(10486)), 20);
    word = _mm512_sub_epi32(word, _mm512_madd_epi16(hundreds, _mm512_set1_epi32(100)));
    word = _mm512_or_si512(hundreds, _mm512_slli_epi32(word, 16));
    const __m512i tens = _mm512_srli_epi16(_mm512_mullo_epi16(word, _mm512_set1_epi16(103)), 10);
    word = _mm512_sub_epi16(word, _mm512_mullo_epi16(tens, _mm512_set1_epi16(10)));
    return _mm512_or_si512(tens, _mm512_slli_epi16(word, 8));
}

/* The 16 bytes of each number from its nine digits; how many digits before the zeros at the end. */
static PE_INLINE __m512i texts_digits(struct texts *texts, __m512i nine) {
    const __m512i first = _mm512_srli_epi64(_mm512_mul_epu32(nine, all(1441151881)), 57); /* / 10^8 */
    const __m512i word = digits_8(_mm512_sub_epi64(nine, _mm512_mul_epu32(first, all(100000000))));
    const __m512i ascii = all((long long)PE_DIGITS_ASCII);
    const __m512i marks = all(0x2d2e3030); /* -.00 */
    const __m512i a = _mm512_add_epi64(_mm512_or_si512(first, _mm512_slli_epi64(word, 8)), ascii);
    const __m512i b = _mm512_add_epi64(_mm512_srli_epi64(word, 56), marks);
    _mm512_storeu_si512(texts->even, _mm512_unpacklo_epi64(a, b));
    _mm512_storeu_si512(texts->odd, _mm512_unpackhi_epi64(a, b));
    /* pe_top_bit(word << 3 | 1) */
    const __m512i real =
        _mm512_castpd_si512(_mm512_cvtepi64_pd(_mm512_or_si512(_mm512_slli_epi64(word, 3), all(1))));
    const __m512i top = _mm512_sub_epi64(_mm512_srli_epi64(real, 52), all(1023 - 5));
    return _mm512_add_epi64(_mm512_srli_epi64(top, 3), all(1));
}

/* Which of eight numbers have a text here. */
static PE_INLINE __mmask8 texts_make(struct texts *texts, const float *values) {
    const __m512i bits = _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)(const void *)values));
    const __m512i fraction = _mm512_and_si512(bits, all(0x7fffff));
    const __m512i exponent = _mm512_and_si512(_mm512_srli_epi64(bits, 23), all(0xff));
    const __m512i sign = _mm512_srli_epi64(bits, 31), q = _mm512_sub_epi64(exponent, all(150));
    const __mmask8 zero = _mm512_testn_epi64_mask(bits, all(0x7fffffff));
    const __mmask8 normal = _mm512_cmplt_epu64_mask(_mm512_sub_epi64(exponent, all(1)), all(0xfe));
    const __mmask8 lopsided =
        _mm512_testn_epi64_mask(fraction, fraction) & _mm512_cmpgt_epu64_mask(exponent, all(1));
    __m512i power = _mm512_mul_epi32(q, all(1262611)); /* pe_interval_power */
    power = _mm512_mask_sub_epi64(power, lopsided, power, all(524031));
    const __m512i k = _mm512_srai_epi64(power, 22);
    const __m512i digits = shortest(_mm512_or_si512(fraction, all(0x800000)), q, lopsided, k);
    const __mmask8 eight = _mm512_cmpge_epu64_mask(digits, all(10000000));
    const __mmask8 nine = _mm512_cmpge_epu64_mask(digits, all(100000000));
    __m512i scale = _mm512_mask_blend_epi64(eight, all(100), all(10));
    scale = _mm512_mask_mov_epi64(scale, nine, all(1));
    __m512i point = _mm512_add_epi64(k, all(7));
    point = _mm512_mask_add_epi64(point, eight, point, all(1));
    point = _mm512_mask_add_epi64(point, nine, point, all(1));
    point = _mm512_mask_mov_epi64(point, zero, all(1));
    const __m512i n = texts_digits(texts, _mm512_maskz_mul_epu32((__mmask8)~zero, digits, scale));
    const __m512i place = _mm512_sub_epi64(point, all(POINT_MIN));
    const __mmask8 below = _mm512_cmple_epi64_mask(point, _mm512_setzero_si512());
    __m512i length = _mm512_max_epi64(n, _mm512_add_epi64(point, all(1)));
    length = _mm512_add_epi64(_mm512_add_epi64(length, sign), all(1));
    const __m512i fewer = _mm512_sub_epi64(_mm512_add_epi64(_mm512_add_epi64(n, sign), all(2)), point);
    _mm512_storeu_si512(texts->order, _mm512_add_epi64(_mm512_slli_epi64(place, 1), sign));
    _mm512_storeu_si512(texts->length, _mm512_mask_mov_epi64(length, below, fewer));
    return (__mmask8)((normal | zero) & _mm512_cmplt_epu64_mask(place, all(POINT_MAX - POINT_MIN + 1)));
}

static PE_INLINE char *text_store(char *out, const struct texts *texts, size_t i) {
    const uint64_t *from = i & 1 ? texts->odd : texts->even;
    const __m128i text = _mm_loadu_si128((const __m128i *)(const void *)(from + (i & 6)));
    const __m128i order = _mm_loadu_si128((const __m128i *)(const void *)orders[texts->order[i]]);
    const size_t length = texts->length[i];
    _mm_storeu_si128((__m128i *)(void *)out, _mm_shuffle_epi8(text, order));
    out[length] = ',';
    return out + length + 1;
}

static char *number_store(char *out, float value) {
    out += pe_shortest_write_f32(out, value);
    *out = ',';
    return out + 1;
}

size_t pe_numbers_write_avx512(char *out, const float *values, size_t n) {
    struct texts texts;
    char *at = out;
    size_t i = 0;
    for (; n - i >= 8; i += 8) {
        const __mmask8 ready = texts_make(&texts, values + i);
        if (ready == 0xff) {
            for (size_t j = 0; j < 8; j++) {
                at = text_store(at, &texts, j);
            }
            continue;
        }
        for (size_t j = 0; j < 8; j++) {
            at = ready >> j & 1 ? text_store(at, &texts, j) : number_store(at, values[i + j]);
        }
    }
    for (; i < n; i++) {
        at = number_store(at, values[i]);
    }
    return (size_t)(at - out);
}

#include "kernels/avx512_end.h"

#endif
