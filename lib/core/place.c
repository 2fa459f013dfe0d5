/* SPDX-License-Identifier: MIT
 *
 * What a phase is the product of: frequencies t and positions x, prepared as integers once, so that the rows
 * of core/phase.c only multiply. x = scale*position + offset is meant as a real number: where doubles do not
 * compute it exactly, wide numbers do.
 */
#include "core/phase.h"

#include "core/bits.h"

#include <string.h>

void pe_turn_of(struct pe_turn *turn, const struct pe_wide *turns) {
    turn->exact = *turns;
    memset(turn->fraction, 0, sizeof turn->fraction);
    if (turns->exponent <= 0) { /* t < 1 */
        pe_wide_fixed(turns, 256, turn->fraction);
    }
}

bool pe_turn_is_slow(const struct pe_turn *turn, bool has_gain) {
    return turn->exact.sign != 0 && (turn->exact.exponent > 0 || (has_gain && turn->exact.exponent <= -64));
}

/* Where one term is so much smaller that it would fall off the end of the other, a stand-in at the end
 * keeps the sum on its side of the larger one: 2 + 1e-300 is not 2. */
struct pe_wide pe_place_wide(const struct pe_place *place) {
    const int32_t far = PE_WIDE_BITS - 8;
    struct pe_wide x = pe_wide_of(place->position), y = pe_wide_of(place->offset);
    struct pe_wide scale = pe_wide_of(place->scale);
    pe_wide_mul(&x, &x, &scale);
    if (x.sign != 0 && y.sign != 0 && x.exponent < y.exponent - far) {
        x.exponent = y.exponent - far;
    }
    if (x.sign != 0 && y.sign != 0 && y.exponent < x.exponent - far) {
        y.exponent = x.exponent - far;
    }
    pe_wide_add(&x, &x, &y);
    return x;
}

/* A whole number below 2^53 in magnitude. Strictly: 2^53 may be a rounded 2^53 + 1. */
static bool is_whole(double v) {
    return v > -PE_POSITION_MAX && v < PE_POSITION_MAX && v == (double)(int64_t)v;
}

/* |x| = m * 2^-fraction_bits, 0 < m < 2^53. Far below 2^-128 nothing of it is left in fixed. */
static void place_double(struct pe_place *place, uint64_t m, int fraction_bits) {
    int top = pe_top_bit(m);
    place->n_fixed = 1;
    place->fixed[0] = fraction_bits <= 192 ? m : 0;
    place->fraction_bits = fraction_bits <= 192 ? fraction_bits : 192;
    place->top = m << (63 - top);
    place->exponent = top + 1 - fraction_bits;
}

/* Any x, by wide arithmetic. */
static void place_general(struct pe_place *place) {
    struct pe_wide x = pe_place_wide(place);
    place->zero = x.sign == 0;
    place->negative = x.sign < 0;
    place->top = pe_wide_top(&x);
    place->exponent = x.exponent;
    place->n_fixed = 1;
    if (x.exponent > 64 || !pe_wide_fixed(&x, 0, place->fixed)) {
        pe_wide_fixed(&x, 128, place->fixed);
        place->n_fixed = 4;
        place->fraction_bits = 128;
    }
}

void pe_place_of(struct pe_place *place, double position, double scale, double offset) {
    *place = (struct pe_place){.position = position, .scale = scale, .offset = offset};
    double product = scale * position, x = product + offset, magnitude = x < 0 ? -x : x;
    uint64_t bits;
    memcpy(&bits, &magnitude, sizeof bits);
    int field = (int)(bits >> 52);
    place->zero = x == 0;
    place->negative = x < 0;
    if (is_whole(position) && is_whole(scale) && is_whole(offset) && is_whole(product) && is_whole(x)) {
        /* whole numbers all the way, the usual case: doubles have computed x exactly */
        if (x != 0) {
            place_double(place, (uint64_t)magnitude, 0);
        }
    } else if (scale == 1 && offset == 0 && field > 0 && magnitude < PE_POSITION_MAX) {
        /* x is the position */
        place_double(place, (bits & (UINT64_MAX >> 12)) | UINT64_C(1) << 52, 1075 - field);
    } else {
        place_general(place);
    }
}

bool pe_place_is(const struct pe_place *place, int64_t value) {
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    if (place->zero || value == 0) {
        return place->zero && value == 0;
    }
    return place->fraction_bits == 0 && place->negative == (value < 0) && place->fixed[0] == magnitude;
}
