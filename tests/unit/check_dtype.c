/* SPDX-License-Identifier: MIT
 *
 * Element types. The table was made by exact fractions and agrees with numpy (make_dtype_table.py); beside it
 * stand properties over all 65536 numbers of each 16-bit type.
 */
#include "suites.h"

#include "golden/dtype_table.h"
#include "posenc_fields.h"

#include <math.h>
#include <string.h>

static const enum pe_dtype halves[] = {PE_DTYPE_F16, PE_DTYPE_BF16};

static uint16_t half_of(enum pe_dtype dtype, double value) {
    uint16_t half;
    pe_dtype_store(dtype, &value, 1, &half);
    return half;
}

static double value_of(enum pe_dtype dtype, uint16_t half) {
    double value;
    pe_dtype_load(dtype, &half, 1, &value);
    return value;
}

START_TEST(narrowing_agrees_with_exact_fractions) {
    for (size_t i = 0; i < PE_COUNT(dtype_table); i++) {
        const double value = dtype_table[i].value;
        ck_assert_msg(half_of(PE_DTYPE_F16, value) == dtype_table[i].float16, "float16 of %a is %04x", value,
                      half_of(PE_DTYPE_F16, value));
        ck_assert_msg(half_of(PE_DTYPE_BF16, value) == dtype_table[i].bfloat16, "bfloat16 of %a is %04x",
                      value, half_of(PE_DTYPE_BF16, value));
    }
}
END_TEST

/* The midpoint plus a little: as a float it is the midpoint, which then falls to the even neighbour. */
START_TEST(narrowing_never_goes_through_float) {
    ck_assert_uint_eq(half_of(PE_DTYPE_F16, 1 + 0x1p-11 + 0x1p-40), 0x3c01);
    ck_assert_uint_eq(half_of(PE_DTYPE_BF16, 1 + 0x1p-8 + 0x1p-40), 0x3f81);
    ck_assert_uint_eq(half_of(PE_DTYPE_F16, 0x1p-25 + 0x1p-60), 0x0001);
}
END_TEST

START_TEST(every_half_survives_double_and_back) {
    for (size_t d = 0; d < PE_COUNT(halves); d++) {
        for (unsigned bits = 0; bits < 0x10000; bits++) {
            const uint16_t half = (uint16_t)bits, quiet = halves[d] == PE_DTYPE_F16 ? 0x200 : 0x40;
            const double value = value_of(halves[d], half);
            const uint16_t back = half_of(halves[d], value);
            ck_assert_uint_eq(back, isnan(value) ? half | quiet : half);
        }
    }
}
END_TEST

/* One number after the other, with no gap of a wrong size: float16 and bfloat16 by their definition. */
START_TEST(halves_have_the_values_of_their_definition) {
    static const struct {
        enum pe_dtype dtype;
        int fraction_bits, exponent_max, bias;
    } formats[] = {{PE_DTYPE_F16, 10, 31, 15}, {PE_DTYPE_BF16, 7, 255, 127}};
    for (size_t f = 0; f < PE_COUNT(formats); f++) {
        const int bits = formats[f].fraction_bits, bias = formats[f].bias;
        for (int half = 0; half < formats[f].exponent_max << bits; half++) {
            const int exponent = half >> bits, fraction = half & ((1 << bits) - 1);
            const double expected = exponent ? ldexp((1 << bits) + fraction, exponent - bias - bits)
                                             : ldexp(fraction, 1 - bias - bits);
            ck_assert_double_eq(value_of(formats[f].dtype, (uint16_t)half), expected);
            ck_assert_double_eq(value_of(formats[f].dtype, (uint16_t)(half | 0x8000)), -expected);
        }
    }
}
END_TEST

START_TEST(signs_infinities_and_nan_are_kept) {
    for (int dtype = PE_DTYPE_F64; dtype < PE_DTYPE_COUNT; dtype++) {
        const double in[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, -NAN};
        unsigned char bytes[sizeof in];
        double out[PE_COUNT(in)];
        pe_dtype_store((enum pe_dtype)dtype, in, PE_COUNT(in), bytes);
        pe_dtype_load((enum pe_dtype)dtype, bytes, PE_COUNT(in), out);
        for (size_t i = 0; i < PE_COUNT(in); i++) {
            ck_assert_int_eq(!signbit(in[i]), !signbit(out[i]));
            ck_assert(isnan(in[i]) ? isnan(out[i]) : in[i] == out[i]);
        }
    }
}
END_TEST

/* A signalling NaN whose payload lies only in the bits that are cut off must not become an infinity. */
START_TEST(nan_with_a_low_payload_stays_nan) {
    const uint64_t bits = UINT64_C(0x7ff0000000000001);
    double nan;
    memcpy(&nan, &bits, sizeof nan);
    ck_assert(isnan(value_of(PE_DTYPE_F16, half_of(PE_DTYPE_F16, nan))));
    ck_assert(isnan(value_of(PE_DTYPE_BF16, half_of(PE_DTYPE_BF16, nan))));
}
END_TEST

START_TEST(overflow_goes_to_infinity_at_the_midpoint) {
    ck_assert_uint_eq(half_of(PE_DTYPE_F16, 65504), 0x7bff);
    ck_assert_uint_eq(half_of(PE_DTYPE_F16, nextafter(65520, 0)), 0x7bff);
    ck_assert_uint_eq(half_of(PE_DTYPE_F16, 65520), 0x7c00);
    ck_assert_uint_eq(half_of(PE_DTYPE_F16, -1e300), 0xfc00);
    ck_assert_uint_eq(half_of(PE_DTYPE_BF16, 0x1.ffp127), 0x7f80);
    ck_assert_uint_eq(half_of(PE_DTYPE_BF16, nextafter(0x1.ffp127, 0)), 0x7f7f);
    const double wide[] = {0x1.ffffffp127, 0x1.fffffefp127};
    float narrow[2];
    pe_dtype_store(PE_DTYPE_F32, wide, 2, narrow);
    ck_assert(isinf(narrow[0]));
    ck_assert_float_eq(narrow[1], 0x1.fffffep127f);
}
END_TEST

START_TEST(float32_rounds_to_nearest_even_down_to_subnormals) {
    const double in[] = {1 + 0x1p-24, 1 + 0x1p-24 + 0x1p-50, 1 + 3 * 0x1p-24, 0x1p-149, 0x1p-150, 0x1.8p-149};
    const float expected[] = {1, 1 + 0x1p-23f, 1 + 0x1p-22f, 0x1p-149f, 0, 0x1p-148f};
    float out[PE_COUNT(in)];
    pe_dtype_store(PE_DTYPE_F32, in, PE_COUNT(in), out);
    for (size_t i = 0; i < PE_COUNT(in); i++) {
        ck_assert_float_eq(out[i], expected[i]);
    }
}
END_TEST

START_TEST(bytes_need_no_alignment) {
    for (int dtype = PE_DTYPE_F64; dtype < PE_DTYPE_COUNT; dtype++) {
        const double in[] = {1.5, -2, 0.25};
        unsigned char bytes[sizeof in + 1];
        double out[PE_COUNT(in)] = {0};
        pe_dtype_store((enum pe_dtype)dtype, in, PE_COUNT(in), bytes + 1);
        pe_dtype_load((enum pe_dtype)dtype, bytes + 1, PE_COUNT(in), out);
        ck_assert_mem_eq(in, out, sizeof in);
    }
}
END_TEST

START_TEST(names_and_sizes) {
    static const struct {
        enum pe_dtype dtype;
        const char *name;
        size_t size;
    } rows[] = {{PE_DTYPE_F64, "float64", 8},
                {PE_DTYPE_F32, "float32", 4},
                {PE_DTYPE_F16, "float16", 2},
                {PE_DTYPE_BF16, "bfloat16", 2}};
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        ck_assert_str_eq(pe_dtype_name(rows[i].dtype), rows[i].name);
        ck_assert_uint_eq(pe_dtype_size(rows[i].dtype), rows[i].size);
        ck_assert_int_eq(pe_dtype_find(rows[i].name), rows[i].dtype);
        ck_assert_str_eq(pe_choice_name(pe_dtype_choices, (int)rows[i].dtype), rows[i].name);
    }
    ck_assert_int_eq(pe_dtype_find("Float32"), PE_DTYPE_NONE);
    ck_assert_int_eq(pe_dtype_find("none"), PE_DTYPE_NONE);
    ck_assert_int_eq(pe_dtype_find(""), PE_DTYPE_NONE);
    ck_assert_uint_eq(pe_dtype_size(PE_DTYPE_NONE), 0);
}
END_TEST

Suite *dtype_suite(void) {
    Suite *suite = suite_create("dtype");
    TCase *tests = tcase_create("dtype");
    tcase_add_test(tests, narrowing_agrees_with_exact_fractions);
    tcase_add_test(tests, narrowing_never_goes_through_float);
    tcase_add_test(tests, every_half_survives_double_and_back);
    tcase_add_test(tests, halves_have_the_values_of_their_definition);
    tcase_add_test(tests, signs_infinities_and_nan_are_kept);
    tcase_add_test(tests, nan_with_a_low_payload_stays_nan);
    tcase_add_test(tests, overflow_goes_to_infinity_at_the_midpoint);
    tcase_add_test(tests, float32_rounds_to_nearest_even_down_to_subnormals);
    tcase_add_test(tests, bytes_need_no_alignment);
    tcase_add_test(tests, names_and_sizes);
    suite_add_tcase(suite, tests);
    return suite;
}
