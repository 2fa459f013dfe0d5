/* SPDX-License-Identifier: MIT
 *
 * A factor of sine and cosine that is rounded together with them, not before: the attention factor of YaRN
 * and LongRoPE, the growth of xPos. Held as 64 bits, which decide nearly always, and as the number itself.
 */
#ifndef PE_GAIN_H
#define PE_GAIN_H

#include "core/wide.h"

struct pe_gain {
    uint64_t mantissa; /* gain = mantissa * 2^(exponent-63), to within 10 units; the top bit is set */
    int exponent;
    bool is_double; /* nearest is exact, so a product with 1 may be a tie */
    bool is_power;  /* the number is e^exact, else exact */
    double nearest;
    struct pe_wide exact;
};

/* From 2^-1000 < value < 2^1000. */
void pe_gain_of(struct pe_gain *gain, const struct pe_wide *value);
/* e^(rate * x), for |rate * x| < 2^11. */
void pe_gain_power(struct pe_gain *gain, const struct pe_wide *rate, const struct pe_wide *x);
/* The number itself. */
struct pe_wide pe_gain_wide(const struct pe_gain *gain);

#endif
