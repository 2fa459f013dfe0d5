/* SPDX-License-Identifier: MIT
 *
 * Powers of ten in 128 bits, for the number reader and writer.
 *
 * Row k is g = floor(10^k * 2^(127 - L)) + 1 with L = floor(log2(10^k)): between 2^127 and 2^128, and never
 * more than one unit above the true value.
 */
#ifndef PE_POWERS_H
#define PE_POWERS_H

#include "core/bits.h"

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

static inline struct pe_u128 pe_u128_multiply(uint64_t a, uint64_t b) {
    struct pe_u128 product;
    product.high = pe_multiply(a, b, &product.low);
    return product;
}

#endif
