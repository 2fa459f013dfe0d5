/* SPDX-License-Identifier: MIT
 *
 * Operations on 64 bits that processors have and C has not.
 */
#ifndef PE_BITS_H
#define PE_BITS_H

#include <stdint.h>
#include <string.h>

/* Becomes part of what calls it: a kernel's instructions, or its constants, may be its caller's. */
#if defined(__GNUC__)
#define PE_INLINE inline __attribute__((always_inline))
#else
#define PE_INLINE inline
#endif

/* The upper half of the 128 bits of a*b; *low becomes the lower. */
#if defined(__SIZEOF_INT128__) && !defined(PE_PORTABLE)
__extension__ typedef unsigned __int128 pe_uint128;

static inline uint64_t pe_multiply(uint64_t a, uint64_t b, uint64_t *low) {
    pe_uint128 product = (pe_uint128)a * b;
    *low = (uint64_t)product;
    return (uint64_t)(product >> 64);
}
#else
/* By halves, as on paper: no partial sum can overflow. */
static inline uint64_t pe_multiply(uint64_t a, uint64_t b, uint64_t *low) {
    uint64_t a0 = a & UINT32_MAX, a1 = a >> 32, b0 = b & UINT32_MAX, b1 = b >> 32;
    uint64_t cross = a1 * b0 + (a0 * b0 >> 32);
    uint64_t middle = a0 * b1 + (cross & UINT32_MAX);
    *low = a * b;
    return a1 * b1 + (cross >> 32) + (middle >> 32);
}
#endif

/* The bits of a double, and the double of bits. */
static PE_INLINE uint64_t pe_bits_of(double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static PE_INLINE double pe_bits_double(uint64_t bits) {
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* Eight bytes; the first is the lowest of the word. A loop says so on any machine, but gcc leaves it a loop. */
static inline uint64_t pe_word_load(const char *text) {
    uint64_t word = 0;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(&word, text, sizeof word);
#else
    for (int i = 0; i < 8; i++) {
        word |= (uint64_t)(unsigned char)text[i] << 8 * i;
    }
#endif
    return word;
}

/* Index of the highest one bit of 0 < v < 2^63, from the exponent of v as a double. Clearing the bit below
 * the highest keeps the conversion from rounding up to the next power of two. */
static inline int pe_top_bit(uint64_t v) {
    return (int)(pe_bits_of((double)(int64_t)(v & ~(v >> 1))) >> 52) - 1023;
}

#endif
