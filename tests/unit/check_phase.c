/* SPDX-License-Identifier: MIT
 *
 * Wide numbers and exact phase. Expected numbers are mpmath's, with 2000 bits; tests/exact compares far more
 * of them with MPFR.
 *
 * The last part compiles phase.c once more, without 128-bit integers: both must give the same bits.
 */
#include "suites.h"

#include "core/ladder.h"
#include "posenc_fields.h"
#include "random.h"

#include <math.h>
#include <string.h>

/* ---- Helpers ------------------------------------------------------------------------------------------- */

static struct pe_turn turn_of(double base, uint32_t num, uint32_t den) {
    struct pe_ladder ladder;
    struct pe_turn turn;
    pe_ladder_start(&ladder, base, num, den);
    pe_ladder_next(&ladder);
    pe_turn_of(&turn, &ladder.turns);
    return turn;
}

/* sin and cos of x * base^(-num/den) as doubles. */
static void sincos_of(const struct pe_turn *turn, double x, enum pe_dtype dtype, double out[2]) {
    uint64_t raw[2];
    struct pe_place place;
    pe_place_of(&place, x, 1, 0);
    pe_phase_row(&place, turn, 1, dtype, &(struct pe_phase_out){&raw[0], &raw[1], 1, NULL});
    pe_dtype_load(dtype, &raw[0], 1, &out[0]);
    pe_dtype_load(dtype, &raw[1], 1, &out[1]);
}

/* Whole, fractional, tiny and huge, halfway between two float32, either sign. */
static double random_position(uint64_t *state) {
    uint64_t bits = random_next(state);
    double sign = bits & 8 ? -1 : 1, m = (double)(bits >> 11);
    switch (bits & 7) {
    case 0:
    case 1:
        return sign * m;
    case 2:
    case 3:
        return sign * trunc(ldexp(m, -40));
    case 4:
        return sign * ldexp(m, -(int)(bits >> 4 & 255));
    case 5:
        return sign * ldexp((double)((bits >> 41) + (1 << 23)) + 0.5, -24 - (int)(bits >> 4 & 31));
    default:
        return sign * ldexp(m, -(int)(bits >> 4 & 63));
    }
}

/* ---- Wide numbers -------------------------------------------------------------------------------------- */

/* |a - b| <= 2^-bits * |b|. */
static bool agree(const struct pe_wide *a, const struct pe_wide *b, int bits) {
    struct pe_wide difference;
    pe_wide_sub(&difference, a, b);
    return difference.sign == 0 || difference.exponent <= b->exponent - bits;
}

START_TEST(wide_constants_fit_together) {
    const struct pe_wide one = pe_wide_of(1), two = pe_wide_of(2), ten = pe_wide_of(10);
    struct pe_wide a, b, square, sum;
    pe_wide_mul(&a, &pe_wide_2pi, &pe_wide_1_2pi);
    ck_assert(agree(&a, &one, 445));
    pe_wide_exp(&a, &pe_wide_ln2);
    ck_assert(agree(&a, &two, 430));
    pe_wide_log(&a, &ten);
    pe_wide_exp(&b, &a);
    ck_assert(agree(&b, &ten, 428));
    a = pe_wide_2pi; /* sin^2 + cos^2 = 1, and tan(2*pi/8) = 1 */
    a.exponent -= 3;
    pe_wide_sincos(&a, &b, &a);
    ck_assert(agree(&a, &b, 440));
    pe_wide_mul(&square, &a, &a);
    pe_wide_mul(&sum, &b, &b);
    pe_wide_add(&sum, &sum, &square);
    ck_assert(agree(&sum, &one, 440));
}
END_TEST

START_TEST(wide_arithmetic_is_exact_where_it_can_be) {
    static const double value[] = {1,    -3, 0.1, 1e-300, 5e-324, 1.7976931348623157e308, 9007199254740991,
                                   -0.75};
    for (size_t i = 0; i < PE_COUNT(value); i++) {
        struct pe_wide a = pe_wide_of(value[i]), b;
        if (fabs(value[i]) > 1e-290) {
            ck_assert(pe_wide_double(&a) == value[i]);
        }
        for (size_t j = 0; j < PE_COUNT(value); j++) {
            struct pe_wide c = pe_wide_of(value[j]);
            pe_wide_mul(&b, &a, &c);
            pe_wide_div(&b, &b, &c);
            ck_assert(agree(&b, &a, 440));
        }
        pe_wide_sub(&b, &a, &a);
        ck_assert_int_eq(b.sign, 0);
        pe_wide_mul_small(&b, &a, 4000000000);
        pe_wide_div_small(&b, &b, 4000000000);
        ck_assert(agree(&b, &a, 447));
    }
}
END_TEST

/* base + half, half a unit of its last place, and a trifle beyond or short of that. */
START_TEST(wide_rounds_to_the_nearest_double) {
    static const struct {
        double base, half, trifle, nearest;
    } rows[] = {
        {1, 0x1p-53, 0, 1},
        {1, 0x1p-53, 0x1p-200, 0x1.0000000000001p0},
        {1, 0x1p-53, -0x1p-200, 1},
        {0x1.0000000000001p0, 0x1p-53, 0, 0x1.0000000000002p0},
        {0x1.0000000000001p0, 0x1p-53, 0x1p-400, 0x1.0000000000002p0},
        {0x1.0000000000001p0, 0x1p-53, -0x1p-400, 0x1.0000000000001p0},
        {0x1p900, 0x1p847, 0x1p500, 0x1.0000000000001p900},
        {0x1p-900, 0x1p-953, 0x1p-1074, 0x1.0000000000001p-900},
        {0x1p-900, 0x1p-953, -0x1p-1074, 0x1p-900},
    };
    for (size_t i = 0; i < 2 * PE_COUNT(rows); i++) {
        double sign = i % 2 ? -1 : 1;
        struct pe_wide sum = pe_wide_of(sign * rows[i / 2].base), half = pe_wide_of(sign * rows[i / 2].half);
        struct pe_wide trifle = pe_wide_of(sign * rows[i / 2].trifle);
        pe_wide_add(&sum, &sum, &half);
        pe_wide_add(&sum, &sum, &trifle);
        ck_assert_msg(pe_wide_nearest(&sum) == sign * rows[i / 2].nearest, "row %zu: %a", i / 2,
                      pe_wide_nearest(&sum));
    }
}
END_TEST

START_TEST(wide_rounds_to_whole_numbers) {
    static const struct {
        double value, nearest;
        unsigned low;
    } row[] = {{0, 0, 0},
               {0.25, 0, 0},
               {0.5, 1, 1},
               {0.75, 1, 1},
               {1.25, 1, 1},
               {2.5, 3, 3},
               {3.75, 4, 0},
               {4294967295.5, 4294967296, 0},
               {9007199254740991, 9007199254740991, 3}};
    for (size_t i = 0; i < PE_COUNT(row); i++) {
        struct pe_wide a = pe_wide_of(row[i].value);
        ck_assert_uint_eq(pe_wide_round(&a, &a), row[i].low);
        ck_assert(pe_wide_double(&a) == row[i].nearest);
    }
}
END_TEST

/* ---- Phase --------------------------------------------------------------------------------------------- */

/* mpmath: sin and cos of mpf(x)*mpf(base)**(-mpf(num)/den), rounded to double. The positions of the two zeros
 * next to 2^53 are those where |sin n| is smaller than for any smaller n (OEIS A046947). */
static const struct {
    double base;
    uint32_t num, den;
    double position, sin, cos;
} exact_table[] = {
    {10000, 0, 6, 9007199254740992, -0x1.b2a66c8f35586p-1, -0x1.0e9918bb35aacp-1},
    {10000, 2, 6, 9007199254740992, -0x1.72b09d2a68430p-2, -0x1.dd465a54fcac6p-1},
    {10000, 4, 6, 9007199254740991, -0x1.040ecca6a5bdcp-4, -0x1.fef78da46e7d1p-1},
    {500000, 126, 128, 9007199254740991, -0x1.127aa43c0769fp-2, 0x1.ed439149ce3a5p-1},
    {10, 14, 16, -4503599627370497, -0x1.206223685a90cp-4, -0x1.febabbb91a855p-1},
    {10000, 2, 128, 131071, -0x1.a89d000fd569dp-3, -0x1.f4dfecd361582p-1},
    {10000, 2, 128, 1234.56789, 0x1.a08ab1e9d5b27p-1, 0x1.29b83656e0acbp-1},
    {10000, 0, 6, 5706674932067741, 0x1.e88e4bd46cec1p-52, 1},
    {10000, 0, 6, 6134899525417045, 0x1.b5ebde2aae00bp-54, -1},
    {10000, 0, 6, -355, 0x1.f9bd0307d1de3p-16, -0x1.fffffffc18e4cp-1},
    {10000, 0, 6, 8.5e-9, 0x1.240eca6a943fep-27, 1},
    {1e300, 2, 4, 1, 0x1.a2fe76a3f9475p-499, 1},
    {1e300, 2, 4, 9007199254740992, 0x1.a2fe76a3f9475p-446, 1},
    {2, 2, 4, 1e-300, 0x1.e4e8d12762225p-998, 1},
    {10000, 0, 6, 5e-324, 5e-324, 1},
};

static double one_ulp(double v) {
    return nextafter(fabs(v), INFINITY) - fabs(v);
}

START_TEST(phase_agrees_with_mpmath_in_every_element_type) {
    for (size_t i = 0; i < PE_COUNT(exact_table); i++) {
        struct pe_turn turn = turn_of(exact_table[i].base, exact_table[i].num, exact_table[i].den);
        const double want[2] = {exact_table[i].sin, exact_table[i].cos};
        double got[2];
        sincos_of(&turn, exact_table[i].position, PE_DTYPE_F64, got);
        for (int k = 0; k < 2; k++) {
            ck_assert_msg(fabs(got[k] - want[k]) <= one_ulp(want[k]), "row %zu: %a, not %a", i, got[k],
                          want[k]);
        }
        for (enum pe_dtype dtype = PE_DTYPE_F32; dtype < PE_DTYPE_COUNT; dtype++) {
            sincos_of(&turn, exact_table[i].position, dtype, got);
            for (int k = 0; k < 2; k++) {
                uint64_t raw = 0;
                double rounded;
                pe_dtype_store(dtype, &want[k], 1, &raw);
                pe_dtype_load(dtype, &raw, 1, &rounded);
                ck_assert_msg(got[k] == rounded, "row %zu %s: %a, not %a", i, pe_dtype_name(dtype), got[k],
                              rounded);
            }
        }
    }
}
END_TEST

/* Halfway between two elements, x itself would round to the even one; sin x < x must round down, unless x is
 * above the middle by more than sin x is below x. */
START_TEST(phase_decides_tiny_midpoints) {
    static const struct {
        enum pe_dtype dtype;
        double position, offset, sin;
    } row[] = {
        {PE_DTYPE_F32, 0x1.000003p-100, 0, 0x1.000002p-100},
        {PE_DTYPE_F32, 0x1.000003p-30, 0, 0x1.000002p-30},
        {PE_DTYPE_F32, 0x1.000001p-100, 0, 0x1p-100},
        {PE_DTYPE_F32, 0x1.000001p-100, 0x1p-200, 0x1.000002p-100},
        {PE_DTYPE_F32, 0x1.8p-149, 0, 0x1p-149},
        {PE_DTYPE_F32, 0x1p-150, 0, 0},
        {PE_DTYPE_F32, 0x1p-150, 0x1p-250, 0x1p-149},
        {PE_DTYPE_BF16, 0x1.03p-100, 0, 0x1.02p-100},
        {PE_DTYPE_BF16, 0x1.01p-100, 0x1p-200, 0x1.02p-100},
        {PE_DTYPE_BF16, 0x1.8p-133, 0, 0x1p-133},
        {PE_DTYPE_F16, 0x1.8p-24, 0, 0x1p-24},
        {PE_DTYPE_F16, 0x1p-25, 0, 0},
        {PE_DTYPE_F16, 0x1p-25, 0x1p-70, 0x1p-24},
        {PE_DTYPE_F16, 0x1.fffffep-26, 0, 0},
    };
    const struct pe_turn turn = turn_of(10000, 0, 1);
    for (size_t i = 0; i < PE_COUNT(row); i++) {
        for (int sign = -1; sign <= 1; sign += 2) {
            struct pe_place place;
            uint64_t raw[2];
            double got[2];
            pe_place_of(&place, sign * row[i].position, 1, sign * row[i].offset);
            pe_phase_row(&place, &turn, 1, row[i].dtype, &(struct pe_phase_out){&raw[0], &raw[1], 1, NULL});
            pe_dtype_load(row[i].dtype, &raw[0], 1, &got[0]);
            pe_dtype_load(row[i].dtype, &raw[1], 1, &got[1]);
            ck_assert_msg(got[0] == sign * row[i].sin, "row %zu: %a, not %a", i, got[0], row[i].sin);
            ck_assert(!signbit(got[0]) == (sign > 0) && got[1] == 1);
        }
    }
}
END_TEST

START_TEST(phase_of_zero_is_plus_zero_and_one) {
    const struct pe_turn turn = turn_of(10000, 2, 6);
    static const double zero[][3] = {{0, 1, 0},   {-0.0, 1, 0},   {0.0, -5, 0},
                                     {7, 3, -21}, {0.5, 3, -1.5}, {-4, 0.25, 1}};
    for (size_t i = 0; i < PE_COUNT(zero); i++) {
        for (enum pe_dtype dtype = PE_DTYPE_F64; dtype < PE_DTYPE_COUNT; dtype++) {
            struct pe_place place;
            uint64_t raw[2];
            double got[2];
            pe_place_of(&place, zero[i][0], zero[i][1], zero[i][2]);
            pe_phase_row(&place, &turn, 1, dtype, &(struct pe_phase_out){&raw[0], &raw[1], 1, NULL});
            pe_dtype_load(dtype, &raw[0], 1, &got[0]);
            pe_dtype_load(dtype, &raw[1], 1, &got[1]);
            ck_assert(got[0] == 0 && !signbit(got[0]) && got[1] == 1);
        }
    }
}
END_TEST

/* Frequencies that are whole parts of a turn, as Fourier features have: sin(pi/2 * k) is 0, 1, 0, -1. */
START_TEST(phase_of_whole_quarter_turns_is_exact) {
    static const double sine[] = {0, 1, 0, -1};
    for (int exponent = -1; exponent < 3; exponent++) {
        struct pe_wide turns = pe_wide_of(ldexp(1, exponent));
        struct pe_turn turn;
        pe_turn_of(&turn, &turns);
        for (int k = -8; k <= 8; k++) {
            double got[2];
            sincos_of(&turn, ldexp(k, -2 - exponent), PE_DTYPE_F32, got);
            ck_assert(got[0] == sine[k & 3] && got[1] == sine[(k + 1) & 3]);
            ck_assert(got[0] != 0 || !signbit(got[0]));
        }
    }
}
END_TEST

START_TEST(phase_takes_scale_and_offset_without_rounding) {
    const struct pe_turn turn = turn_of(10000, 0, 1);
    static const struct {
        double position, scale, offset, sin; /* sin x = x for such x */
    } row[] = {{10, 0.1, -1, 0x1p-54},       /* the double 0.1 is 1/10 + 2^-54/10 */
               {3, 1 / 3.0, -1, -0x1p-54},   /* 1/3 - 2^-54/3 */
               {9007199254740992, 1 + 0x1p-52, -9007199254740992, 0x1.d18f6ead1b446p-1},
               {1e-300, 1, 0, 1e-300},
               {0.1, 9007199254740992, -900719925474099.25, 0}};
    for (size_t i = 0; i < PE_COUNT(row); i++) {
        struct pe_place place;
        double sine = -7, cosine;
        pe_place_of(&place, row[i].position, row[i].scale, row[i].offset);
        pe_phase_row(&place, &turn, 1, PE_DTYPE_F64, &(struct pe_phase_out){&sine, &cosine, 1, NULL});
        ck_assert_msg(fabs(sine - row[i].sin) <= one_ulp(row[i].sin), "row %zu: %a, not %a", i, sine,
                      row[i].sin);
    }
}
END_TEST

START_TEST(place_knows_whole_numbers_exactly) {
    static const struct {
        double position, scale, offset;
        int64_t value;
        bool is;
    } row[] = {{2, 1, 0, 2, true},
               {2, 1, 0, -2, false},
               {-2, 1, 0, -2, true},
               {1.5, 2, 0, 3, true},
               {0, 1, 0, 0, true},
               {0.5, 1, 0, 0, false},
               {10, 0.1, 0, 1, false},
               {2.5, 1, -0.5, 2, true},
               {1e-300, 1, 2, 2, false},
               {5e-324, 0x1p-40, 2, 2, false},
               {-1e-300, 1, 2, 2, false},
               {2, 1, 1e-300, 2, false},
               {2, 1, -5e-324, 2, false},
               {9007199254740992, 1, 0, 9007199254740992, true},
               {9007199254740992, 1, 1, 9007199254740992, false}};
    for (size_t i = 0; i < PE_COUNT(row); i++) {
        struct pe_place place;
        pe_place_of(&place, row[i].position, row[i].scale, row[i].offset);
        ck_assert_msg(pe_place_is(&place, row[i].value) == row[i].is, "row %zu", i);
    }
}
END_TEST

/* Every position through both paths. In float64 the fast one may be a unit off, but rarely: its 64 bits are
 * good to some 5 units of which 1024 make half a unit of a double. */
START_TEST(phase_has_the_bits_of_the_full_width_path) {
    uint64_t state = 1;
    int off = 0;
    struct pe_turn turns[16];
    pe_ladder_fill(turns, 16, 10000, 2, 32);
    for (int n = 0; n < 2000; n++) {
        const struct pe_turn *turn = &turns[random_next(&state) & 15];
        struct pe_place place;
        pe_place_of(&place, random_position(&state), n % 3 ? 1 : 0.1, n % 7 ? 0 : 0.3);
        for (enum pe_dtype dtype = PE_DTYPE_F64; dtype < PE_DTYPE_COUNT; dtype++) {
            uint64_t fast[2] = {0}, slow[2] = {0}, unit = dtype == PE_DTYPE_F64;
            pe_phase_row(&place, turn, 1, dtype, &(struct pe_phase_out){&fast[0], &fast[1], 1, NULL});
            pe_phase_exact(&place, turn, dtype, &(struct pe_phase_out){&slow[0], &slow[1], 1, NULL});
            for (int k = 0; k < 2; k++) {
                ck_assert_msg(fast[k] - slow[k] + unit <= 2 * unit, "%s of %a: %llx, not %llx",
                              pe_dtype_name(dtype), place.position, (unsigned long long)fast[k],
                              (unsigned long long)slow[k]);
                off += fast[k] != slow[k];
            }
        }
    }
    ck_assert_int_lt(off, 20);
}
END_TEST

/* ---- phase.c without 128-bit integers -------------------------------------------------------------------
 */

void portable_row(const struct pe_place *place, const struct pe_turn *turns, size_t n, enum pe_dtype dtype,
                  const struct pe_phase_out *out);
void portable_exact(const struct pe_place *place, const struct pe_turn *turn, enum pe_dtype dtype,
                    const struct pe_phase_out *out);

#ifndef PE_PORTABLE
#define PE_PORTABLE 1
#endif
#define pe_phase_row   portable_row
#define pe_phase_exact portable_exact
#include "core/phase.c"
#undef pe_phase_row
#undef pe_phase_exact

START_TEST(phase_has_the_same_bits_without_128_bit_integers) {
    uint64_t state = 3;
    struct pe_turn turns[16];
    pe_ladder_fill(turns, 16, 10000, 2, 32);
    for (int n = 0; n < 4000; n++) {
        struct pe_place place;
        double position = random_position(&state), scale = n % 3 ? 1 : 0.1, offset = n % 7 ? 0 : 0.3;
        pe_place_of(&place, position, scale, offset);
        for (enum pe_dtype dtype = PE_DTYPE_F64; dtype < PE_DTYPE_COUNT; dtype++) {
            unsigned char a[2][16 * 8], b[2][16 * 8];
            memset(a, 0, sizeof a);
            memset(b, 0, sizeof b);
            pe_phase_row(&place, turns, 16, dtype, &(struct pe_phase_out){a[0], a[1], 1, NULL});
            portable_row(&place, turns, 16, dtype, &(struct pe_phase_out){b[0], b[1], 1, NULL});
            ck_assert(memcmp(a, b, sizeof a) == 0);
        }
    }
}
END_TEST

/* The fraction of x*t from the full-width product, for whole x, x of one word with a fraction, and of four.
 */
START_TEST(phase_fraction_is_short_by_three_at_most) {
    static const int shift[] = {0, 1, 63, 64, 100, 128, 192};
    uint64_t state = 4;
    struct pe_turn turns[16];
    pe_ladder_fill(turns, 16, 10000, 2, 32);
    for (int n = 0; n < 3000; n++) {
        struct pe_place place = {.n_fixed = n % 2 ? 1 : 4};
        const struct pe_turn *turn = &turns[random_next(&state) & 15];
        struct pe_wide x = {.sign = 1}, whole;
        uint64_t got[2], want[4];
        place.fraction_bits = place.n_fixed == 4 ? 128 : shift[n / 2 % (int)PE_COUNT(shift)];
        x.exponent = 64 * place.n_fixed - place.fraction_bits;
        for (int i = 0; i < place.n_fixed; i++) {
            place.fixed[i] = random_next(&state) | (uint64_t)(i == place.n_fixed - 1) << 63;
            x.limb[PE_WIDE_LIMBS - 2 * (place.n_fixed - i)] = (uint32_t)place.fixed[i];
            x.limb[PE_WIDE_LIMBS - 2 * (place.n_fixed - i) + 1] = (uint32_t)(place.fixed[i] >> 32);
        }
        fraction_of(&place, turn->fraction, got);
        pe_wide_mul(&x, &x, &turn->exact);
        whole = x;
        for (int i = 0; i < PE_WIDE_BITS - x.exponent && i < PE_WIDE_BITS; i++) {
            whole.limb[i / 32] &= ~(UINT32_C(1) << i % 32);
        }
        if (x.exponent > 0) {
            pe_wide_sub(&x, &x, &whole);
        }
        pe_wide_fixed(&x, 128, want);
        ck_assert_uint_eq(want[1] - got[1], want[0] < got[0]);
        ck_assert_uint_le(want[0] - got[0], 3);
    }
}
END_TEST

START_TEST(portable_products_carry) {
    static const uint64_t edge[] = {0, 1, UINT32_MAX, UINT64_C(1) << 32, UINT64_MAX - 1, UINT64_MAX, TWO_PI};
    for (size_t i = 0; i < PE_COUNT(edge); i++) {
        uint64_t low; /* (2^64 - 1) * b = b * 2^64 - b */
        ck_assert_uint_eq(pe_multiply(UINT64_MAX, edge[i], &low), edge[i] - (edge[i] != 0));
        ck_assert_uint_eq(low, 0 - edge[i]);
    }
}
END_TEST

Suite *phase_suite(void) {
    Suite *suite = suite_create("phase");
    TCase *wide = tcase_create("wide"), *phase = tcase_create("phase");
    tcase_add_test(wide, wide_constants_fit_together);
    tcase_add_test(wide, wide_arithmetic_is_exact_where_it_can_be);
    tcase_add_test(wide, wide_rounds_to_the_nearest_double);
    tcase_add_test(wide, wide_rounds_to_whole_numbers);
    tcase_add_test(phase, phase_agrees_with_mpmath_in_every_element_type);
    tcase_add_test(phase, phase_decides_tiny_midpoints);
    tcase_add_test(phase, phase_of_zero_is_plus_zero_and_one);
    tcase_add_test(phase, phase_of_whole_quarter_turns_is_exact);
    tcase_add_test(phase, phase_takes_scale_and_offset_without_rounding);
    tcase_add_test(phase, place_knows_whole_numbers_exactly);
    tcase_add_test(phase, phase_has_the_bits_of_the_full_width_path);
    tcase_add_test(phase, phase_has_the_same_bits_without_128_bit_integers);
    tcase_add_test(phase, phase_fraction_is_short_by_three_at_most);
    tcase_add_test(phase, portable_products_carry);
    suite_add_tcase(suite, wide);
    suite_add_tcase(suite, phase);
    return suite;
}
