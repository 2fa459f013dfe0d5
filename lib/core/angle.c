/* SPDX-License-Identifier: MIT
 *
 * Whole turns are taken off the wide number, which leaves at most half a turn: as the frequency of position 1
 * or -1 it takes the fast path of core/phase.c. After 2^200 turns there are 248 bits left behind the point.
 */
#include "core/angle.h"

#include <math.h>

void pe_sum_add(struct pe_wide *sum, double a, double b) {
    struct pe_wide x = pe_wide_of(a), y = pe_wide_of(b);
    pe_wide_mul(&x, &x, &y);
    pe_wide_add(sum, sum, &x);
}

void pe_angle_write(const struct pe_wide *turns, enum pe_dtype dtype, const struct pe_phase_out *out) {
    struct pe_wide rest = *turns, whole;
    bool negative = turns->sign < 0;
    rest.sign = rest.sign != 0;
    if (rest.exponent >= 0) { /* half a turn or more */
        pe_wide_round(&whole, &rest);
        pe_wide_sub(&rest, &rest, &whole);
        negative = negative != (rest.sign < 0);
        rest.sign = rest.sign != 0;
    }
    struct pe_turn turn;
    struct pe_place place;
    pe_turn_of(&turn, &rest);
    pe_place_of(&place, negative ? -1 : 1, 1, 0);
    pe_phase_row(&place, &turn, 1, dtype, out);
}

void pe_sum_write(const struct pe_wide *sum, enum pe_dtype dtype, void *out) {
    const int up = sum->exponent > -1000 ? 0 : 512; /* doubles of wide numbers end at 2^-1000 */
    struct pe_wide scaled = *sum;
    double value = 0;
    scaled.exponent += up;
    if (sum->sign != 0) {
        value = ldexp(dtype == PE_DTYPE_F64 ? pe_wide_nearest(&scaled) : pe_wide_odd(&scaled), -up);
    }
    pe_dtype_store(dtype, &value, 1, out);
}
