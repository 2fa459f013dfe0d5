/* SPDX-License-Identifier: MIT
 *
 * Powers of ten in 128 bits, for the number reader and writer, and the product of two 64-bit numbers.
 *
 * Row k is g = floor(10^k * 2^(127 - L)) + 1 with L = floor(log2(10^k)): between 2^127 and 2^128, and never
 * more than one unit above the true value.
 */
#ifndef PE_POWERS_H
#define PE_POWERS_H

#include <stdint.h>

#define PE_POWER_MIN (-292)
#define PE_POWER_MAX 324

/* A number of 128 bits. */
struct pe_u128 {
    uint64_t high, low;
};

extern const struct pe_u128 pe_powers[PE_POWER_MAX - PE_POWER_MIN + 1];

/* Row k of the table. */
static inline struct pe_u128 pe_power(int k) {
    return pe_powers[k - PE_POWER_MIN];
}

/* floor(log2(10^k)) for |k| <= 1233: log2(10) in fixed point. A right shift of a negative number rounds down
 * on every compiler we build with. */
static inline int pe_power_log2(int k) {
    return (k * 1741647) >> 19;
}

#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 pe_u128_word;
static inline struct pe_u128 pe_u128_multiply(uint64_t a, uint64_t b) {
    pe_u128_word product = (pe_u128_word)a * b;
    return (struct pe_u128){(uint64_t)(product >> 64), (uint64_t)product};
}
#else
/* By halves, as on paper: no partial sum can overflow. */
static inline struct pe_u128 pe_u128_multiply(uint64_t a, uint64_t b) {
    uint64_t a1 = a >> 32, a0 = a & UINT32_MAX, b1 = b >> 32, b0 = b & UINT32_MAX;
    uint64_t low = a0 * b0, cross = a1 * b0 + (low >> 32), other = a0 * b1 + (cross & UINT32_MAX);
    return (struct pe_u128){a1 * b1 + (cross >> 32) + (other >> 32), (other << 32) | (low & UINT32_MAX)};
}
#endif

#endif
