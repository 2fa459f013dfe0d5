/* SPDX-License-Identifier: MIT
 *
 * One logarithm and one exponential give the ratio r = base^(-num/den); the rungs follow by multiplication.
 * The exponent is below 2^12 and right to 2^-430 of itself, so r is right to 2^-418. Rung i has i times that:
 * with 2^15 rungs the last is right to 2^-403, and a phase at its largest, 2^107 turns, to 2^-296 turns. A
 * power per rung would be no better and a hundred times slower.
 */
#include "core/ladder.h"

/* base^(-num/den). */
static struct pe_wide power(const struct pe_wide *base, uint32_t num, uint32_t den) {
    struct pe_wide exponent;
    pe_wide_log(&exponent, base);
    pe_wide_mul_small(&exponent, &exponent, num);
    pe_wide_div_small(&exponent, &exponent, den);
    exponent.sign = -exponent.sign;
    pe_wide_exp(&exponent, &exponent);
    return exponent;
}

void pe_ladder_start(struct pe_ladder *ladder, double base, uint32_t num, uint32_t den) {
    struct pe_wide wide = pe_wide_of(base);
    ladder->ratio = power(&wide, num, den);
    ladder->turns = pe_wide_1_2pi;
}

void pe_ladder_stretch(struct pe_ladder *ladder, const struct pe_wide *factor, uint32_t num, uint32_t den) {
    struct pe_wide ratio = power(factor, num, den);
    pe_wide_mul(&ladder->ratio, &ladder->ratio, &ratio);
}

void pe_ladder_next(struct pe_ladder *ladder) {
    pe_wide_mul(&ladder->turns, &ladder->turns, &ladder->ratio);
}

void pe_ladder_fill(struct pe_turn *turns, size_t n, double base, uint32_t num, uint32_t den) {
    struct pe_ladder ladder;
    if (n == 0) {
        return;
    }
    pe_ladder_start(&ladder, base, num, den);
    pe_turn_of(&turns[0], &ladder.turns);
    for (size_t i = 1; i < n; i++) {
        pe_ladder_next(&ladder);
        pe_turn_of(&turns[i], &ladder.turns);
    }
}

void pe_turn_shift(const struct pe_turn *turn, double distance, double scale, bool cos_first, double m[4]) {
    double sin, cos;
    struct pe_place place;
    pe_place_of(&place, distance, scale, 0);
    pe_phase_row(&place, turn, 1, PE_DTYPE_F64, &(struct pe_phase_out){&sin, &cos, 1, NULL});
    m[0] = m[3] = cos;
    m[1] = cos_first ? -sin : sin;
    m[2] = -m[1];
}

void pe_turn_frequency(const struct pe_turn *turn, enum pe_dtype dtype, void *out) {
    struct pe_wide omega;
    pe_wide_mul(&omega, &turn->exact, &pe_wide_2pi);
    double value = dtype == PE_DTYPE_F64 ? pe_wide_nearest(&omega) : pe_wide_odd(&omega);
    pe_dtype_store(dtype, &value, 1, out);
}
