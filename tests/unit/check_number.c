/* SPDX-License-Identifier: MIT
 *
 * Numbers as text against the C library: strtod, strtof and %.*e of glibc are exact. The expected strings of
 * the tables are the limits of float.h and the published examples of shortest printing.
 */
#include "suites.h"

#include "posenc.h"
#include "random.h"
#include "unit/expect.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_below(uint64_t *state, uint64_t n) {
    return random_next(state) % n;
}

static float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double double_of_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t bits_of_double(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ---- Writing ------------------------------------------------------------------------------------------- */

static const struct {
    float value;
    const char *text;
} floats[] = {
    {0.0f, "0.0"},
    {-0.0f, "-0.0"},
    {1.0f, "1.0"},
    {-1.0f, "-1.0"},
    {0.5f, "0.5"},
    {0.1f, "0.1"},
    {0.3f, "0.3"},
    {10.0f, "10.0"},
    {123.456f, "123.456"},
    {16777216.0f, "16777216.0"},
    {33554432.0f, "33554432.0"}, /* between its neighbours 33554430 and 33554436 */
    {1e-5f, "0.00001"},
    {9.5e-6f, "9.5e-6"},
    {1e-7f, "1e-7"},
    {1.5e20f, "1.5e20"},
    {1e10f, "10000000000.0"},
    {1e15f, "1000000000000000.0"},
    {1e16f, "1e16"},
    {FLT_MAX, "3.4028235e38"},
    {FLT_MIN, "1.1754944e-38"},
    {FLT_TRUE_MIN, "1e-45"},
    {7 * FLT_TRUE_MIN, "1e-44"}, /* 9.8e-45: ten is nearer than the next of one digit */
    {NAN, "null"},
    {INFINITY, "null"},
    {-INFINITY, "null"},
};

static const struct {
    double value;
    const char *text;
} doubles[] = {
    {0.0, "0.0"},
    {-0.0, "-0.0"},
    {0.1, "0.1"},
    {0.1 + 0.2, "0.30000000000000004"},
    {1.0 / 3, "0.3333333333333333"},
    {100.0, "100.0"},
    {9007199254740992.0, "9007199254740992.0"},
    {9999999999999998.0, "9999999999999998.0"},
    {1e16, "1e16"},
    {1e22, "1e22"},
    {1e23, "1e23"}, /* its lower neighbour in decimals is as near */
    {5e-324, "5e-324"},
    {2.2250738585072014e-308, "2.2250738585072014e-308"},
    {1.7976931348623157e308, "1.7976931348623157e308"},
    {-0.000012345678901234567, "-0.000012345678901234568"},
    {NAN, "null"},
    {INFINITY, "null"},
    {-INFINITY, "null"},
};

static const struct {
    int64_t value;
    const char *text;
} ints[] = {
    {0, "0"}, {7, "7"}, {-10, "-10"}, {INT64_MAX, "9223372036854775807"}, {INT64_MIN, "-9223372036854775808"},
};

static void expect_text(const char *out, size_t n, const char *text) {
    EXPECT(n == strlen(text) && memcmp(out, text, n) == 0, "got %.*s, expected %s", (int)n, out, text);
}

START_TEST(write_tables) {
    char out[PE_NUMBER_ROOM];
    for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++) {
        expect_text(out, pe_number_write_f32(out, floats[i].value), floats[i].text);
    }
    for (size_t i = 0; i < sizeof doubles / sizeof doubles[0]; i++) {
        expect_text(out, pe_number_write_f64(out, doubles[i].value), doubles[i].text);
    }
    for (size_t i = 0; i < sizeof ints / sizeof ints[0]; i++) {
        expect_text(out, pe_number_write_int(out, ints[i].value), ints[i].text);
    }
}
END_TEST

/* The digits of a text without point, sign, exponent and outer zeros: what "shortest" counts. */
static size_t digits_of(const char *text, size_t n, char *digits) {
    size_t count = 0;
    for (size_t i = 0; i < n && text[i] != 'e'; i++) {
        if (text[i] >= '0' && text[i] <= '9' && (count > 0 || text[i] != '0')) {
            digits[count++] = text[i];
        }
    }
    while (count > 0 && digits[count - 1] == '0') {
        count--;
    }
    return count;
}

/* The text is JSON, as pe_number_parse says, too (its own tests say that it knows). */
static void expect_json(const char *text, size_t n) {
    struct pe_number number;
    EXPECT(pe_number_parse(text, n, &number) == PE_NUMBER_OK, "not JSON: %.*s", (int)n, text);
    EXPECT(memchr(text, '.', n) || memchr(text, 'e', n), "reads back as an integer: %.*s", (int)n, text);
}

/* Reads back to the same bits; no text with one digit less does; and it is the nearest of its length. Where a
 * float is a power of two, its lower neighbour is nearer, so that the nearest decimal of a length may be
 * outside while another is inside: there only "not longer" holds. */
static void expect_shortest_f32(uint32_t bits) {
    char out[PE_NUMBER_ROOM + 1], digits[32], other[64], other_digits[64];
    float value = float_of_bits(bits);
    size_t n = pe_number_write_f32(out, value);
    out[n] = '\0';
    EXPECT(bits_of_float(strtof(out, NULL)) == bits, "%08x is written %s", bits, out);
    expect_json(out, n);
    size_t n_digits = digits_of(out, n, digits);
    bool power_of_two = (bits & 0x7fffff) == 0;
    if (n_digits > 1) {
        snprintf(other, sizeof other, "%.*e", (int)n_digits - 2, (double)value);
        EXPECT(bits_of_float(strtof(other, NULL)) != bits, "%s, but %s is enough", out, other);
    }
    int n_other =
        snprintf(other, sizeof other, "%.*e", (int)(n_digits > 0 ? n_digits - 1 : 0), (double)value);
    size_t n_same = digits_of(other, (size_t)n_other, other_digits);
    if (!power_of_two && bits << 1 != 0) {
        EXPECT(n_same == n_digits && memcmp(digits, other_digits, n_same) == 0, "%s, but %s is nearer", out,
               other);
    }
}

static void expect_shortest_f64(uint64_t bits) {
    char out[PE_NUMBER_ROOM + 1], digits[32], other[64], other_digits[64];
    double value = double_of_bits(bits);
    size_t n = pe_number_write_f64(out, value);
    out[n] = '\0';
    EXPECT(bits_of_double(strtod(out, NULL)) == bits, "%a is written %s", value, out);
    expect_json(out, n);
    size_t n_digits = digits_of(out, n, digits);
    bool power_of_two = bits << 12 == 0;
    if (n_digits > 1) {
        snprintf(other, sizeof other, "%.*e", (int)n_digits - 2, value);
        EXPECT(bits_of_double(strtod(other, NULL)) != bits, "%s, but %s is enough", out, other);
    }
    int n_other = snprintf(other, sizeof other, "%.*e", (int)(n_digits > 0 ? n_digits - 1 : 0), value);
    size_t n_same = digits_of(other, (size_t)n_other, other_digits);
    if (!power_of_two && bits << 1 != 0) {
        EXPECT(n_same == n_digits && memcmp(digits, other_digits, n_same) == 0, "%s, but %s is nearer", out,
               other);
    }
}

START_TEST(write_f32_edges) {
    static const uint32_t fractions[] = {0,        1,        2,        3,        0x3fffff,
                                         0x400000, 0x400001, 0x7ffffd, 0x7ffffe, 0x7fffff};
    for (uint32_t exponent = 0; exponent < 255; exponent++) {
        for (size_t i = 0; i < sizeof fractions / sizeof fractions[0]; i++) {
            expect_shortest_f32(exponent << 23 | fractions[i]);
            expect_shortest_f32(0x80000000 | exponent << 23 | fractions[i]);
        }
    }
}
END_TEST

START_TEST(write_f32_random) {
    uint64_t state = 1;
    for (int i = 0; i < RANDOM_ROUNDS(4000000); i++) {
        uint32_t bits = (uint32_t)random_next(&state);
        if ((bits >> 23 & 0xff) != 0xff) {
            expect_shortest_f32(bits);
        }
    }
}
END_TEST

START_TEST(write_f64_edges_and_random) {
    static const uint64_t fractions[] = {
        0, 1, 2, 0x7ffffffffffff, 0x8000000000000, 0xffffffffffffe, 0xfffffffffffff};
    for (uint64_t exponent = 0; exponent < 2047; exponent++) {
        for (size_t i = 0; i < sizeof fractions / sizeof fractions[0]; i++) {
            expect_shortest_f64(exponent << 52 | fractions[i]);
        }
    }
    uint64_t state = 2;
    for (int i = 0; i < RANDOM_ROUNDS(500000); i++) {
        uint64_t bits = random_next(&state);
        if ((bits >> 52 & 0x7ff) != 0x7ff) {
            expect_shortest_f64(bits);
        }
        expect_shortest_f64(bits_of_double((double)(int64_t)(bits >> 12) / 1e6)); /* short decimals */
    }
}
END_TEST

START_TEST(write_stays_in_its_room) {
    char out[PE_NUMBER_ROOM + 16];
    uint64_t state = 3;
    size_t longest = 0;
    for (int i = 0; i < 100000; i++) {
        memset(out, '#', sizeof out);
        size_t n = i & 1 ? pe_number_write_f64(out, double_of_bits(random_next(&state)))
                         : pe_number_write_f32(out, float_of_bits((uint32_t)random_next(&state)));
        longest = n > longest ? n : longest;
        for (size_t k = PE_NUMBER_ROOM; k < sizeof out; k++) {
            EXPECT(out[k] == '#', "byte %zu was written", k);
        }
    }
    ck_assert_uint_le(longest, 25);
}
END_TEST

/* ---- Reading ------------------------------------------------------------------------------------------- */

static const char *const valid[] = {
    "0",
    "-0",
    "0.0",
    "-0.0",
    "1",
    "10",
    "-1.5",
    "1e5",
    "1E5",
    "1e+5",
    "1e-5",
    "1.25e-5",
    "0e0",
    "0e999999999999999999999",
    "0.000e-99999999999999999999",
    "1e-400",
    "1e-99999999999999999999",
    "1e-18446744073709551617", /* -1 modulo 2^64 */
    "9007199254740993",
    "9007199254740992.9999999999999999999999999999999",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999",
    "1.7976931348623157e308",
    "1.7976931348623158e308",
    "4.9e-324",
    "2.4703282292062327e-324", /* just under half the smallest */
    "2.4703282292062328e-324", /* just above it */
    "2.2250738585072011e-308", /* the number that hung PHP */
    "2.2250738585072012e-308", /* and Java */
    "0.000061035156249999998",
    "12345678",
    "123456789012345678",
    "1.12345678",
    "1.123456789",
    "3.4028235e38",
    "3.4028235677973366e38", /* the middle between FLT_MAX and infinity */
    "7.006492321624085e-46",
};

static const struct {
    const char *text;
    size_t wrong; /* offset of the byte that is wrong */
} invalid[] = {
    {"", 0},      {"-", 1},     {"+1", 0},       {"01", 1},       {"-01", 2},       {"00", 1},   {".5", 0},
    {"5.", 2},    {"5.e1", 2},  {"1e", 2},       {"1e+", 3},      {"1e-", 3},       {"1e.5", 2}, {"--1", 1},
    {"NaN", 0},   {"nan", 0},   {"Infinity", 0}, {"inf", 0},      {"-Infinity", 1}, {"e5", 0},   {"0x10", 1},
    {"1,5", 1},   {"1.2.3", 3}, {"1e5e5", 3},    {" 1", 0},       {"1 ", 1},        {"1f", 1},   {"1_000", 1},
    {"1e5.0", 3}, {"1-1", 1},   {"null", 0},     {"\xd9\xa1", 0},
};

static bool same_double(double a, double b) {
    return bits_of_double(a) == bits_of_double(b);
}

/* As strtod and strtof have it, from memory of exactly its size, so that a sanitizer sees reads beyond it.
 * Returns whether rounding twice would go wrong. */
static bool expect_read(const char *text) {
    size_t n = strlen(text);
    char *exact = malloc(n > 0 ? n : 1);
    ck_assert_ptr_nonnull(exact);
    memcpy(exact, text, n);
    struct pe_number number;
    enum pe_number_status status = pe_number_parse(exact, n, &number);
    free(exact);
    double value = strtod(text, NULL);
    float single = strtof(text, NULL);
    EXPECT(status == (isinf(value) ? PE_NUMBER_OVERFLOW : PE_NUMBER_OK), "%s: status %d", text, (int)status);
    EXPECT(same_double(number.value, value), "%s: %a, expected %a", text, number.value, value);
    EXPECT(bits_of_float(number.single) == bits_of_float(single), "%s: single %a, expected %a", text,
           (double)number.single, (double)single);
    bool twice = bits_of_float((float)value) != bits_of_float(single);
    EXPECT(number.twice == twice, "%s: twice %d", text, number.twice);
    return twice;
}

START_TEST(read_valid) {
    for (size_t i = 0; i < sizeof valid / sizeof valid[0]; i++) {
        expect_read(valid[i]);
    }
}
END_TEST

/* Only what is written beyond 2^53 and rounds to it. */
START_TEST(read_beyond) {
    static const struct {
        const char *text;
        bool beyond;
    } rows[] = {
        {"9007199254740991", false},
        {"9007199254740992", false},
        {"9007199254740992.0", false},
        {"9007199254740993", true},
        {"-9007199254740993", true},
        {"9007199254740992.5", true},
        {"9007199254740994", false},
        {"9007199254740991.9", false},
        {"1", false},
        {"9007199254740993e0", true},
        {"90071992547409925e-1", true},
        {"0.9007199254740993e16", true},
        {"9.007199254740992e15", false},
        {"90071992547409915e-1", false},
        {"900719925474099.3e1", true},
        {"9007199254740992.000e0", false},
        {"9007199254740992000000000000000001e-18", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pe_number number;
        ck_assert_int_eq(pe_number_parse(rows[i].text, strlen(rows[i].text), &number), PE_NUMBER_OK);
        ck_assert_msg(number.beyond == rows[i].beyond, "%s", rows[i].text);
    }
}
END_TEST

START_TEST(read_invalid) {
    for (size_t i = 0; i < sizeof invalid / sizeof invalid[0]; i++) {
        struct pe_number number;
        const char *text = invalid[i].text, *end = text + strlen(text), *at = text;
        EXPECT(pe_number_parse(text, strlen(text), &number) == PE_NUMBER_SYNTAX, "%s is accepted", text);
        pe_number_scan(&at, end, &number);
        EXPECT((size_t)(at - text) == invalid[i].wrong, "%s: stops at %d", text, (int)(at - text));
    }
}
END_TEST

START_TEST(read_overflow) {
    static const char *const texts[] = {"1e400",
                                        "-1e400",
                                        "1e309",
                                        "1.7976931348623159e308",
                                        "1e99999999999999999999",
                                        "1e18446744073709551617",
                                        "17976931348623159e292"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct pe_number number;
        ck_assert_int_eq(pe_number_parse(texts[i], strlen(texts[i]), &number), PE_NUMBER_OVERFLOW);
        EXPECT(isinf(number.value), "%s", texts[i]);
        expect_read(texts[i]);
    }
    char zeros[1002] = "1"; /* 1 and 1000 zeros; with e-1000 it is 1 */
    memset(zeros + 1, '0', 1000);
    expect_read(zeros);
}
END_TEST

START_TEST(read_float_middles) {
    struct pe_number number;
    /* 1 + 2^-24 and a little more: the double is the middle and would go to the even 1. */
    const char *above = "1.00000005960464477539062500001";
    ck_assert_int_eq(pe_number_parse(above, strlen(above), &number), PE_NUMBER_OK);
    ck_assert(number.twice && (float)number.value == 1.0f && number.single == 1.0f + FLT_EPSILON);
    const char *middle = "1.000000059604644775390625";
    ck_assert_int_eq(pe_number_parse(middle, strlen(middle), &number), PE_NUMBER_OK);
    ck_assert(!number.twice && number.single == 1.0f);
    const char *under = "-1.00000017881393432617187499999"; /* 1 + 3 * 2^-24 and a little less: odd below */
    ck_assert_int_eq(pe_number_parse(under, strlen(under), &number), PE_NUMBER_OK);
    ck_assert(number.twice && number.single == -1.0f - FLT_EPSILON);
    /* Near the end of floats: the double is the middle to infinity, the text is below. */
    const char *largest = "3.40282356779733661637539395458142568447e38";
    ck_assert_int_eq(pe_number_parse(largest, strlen(largest), &number), PE_NUMBER_OK);
    ck_assert(number.twice && number.single == FLT_MAX && isinf((float)number.value));
    expect_read(above);
    expect_read(middle);
    expect_read(under);
    expect_read(largest);
}
END_TEST

/* The digits of a middle between doubles, then n zeros, then a last 1: only the 1 tells it from the middle.
 */
START_TEST(read_long_tokens) {
    static const char *const middles[] = {"1.00000000000000011102230246251565404236316680908203125",
                                          "9007199254740993.0",
                                          "0.500000000000000055511151231257827021181583404541015625"};
    enum { ROOM = 20000 };
    char *text = malloc(ROOM);
    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < sizeof middles / sizeof middles[0]; i++) {
        for (size_t zeros = 0; zeros < ROOM - 1000; zeros = zeros * 5 / 3 + 1) {
            size_t n = strlen(middles[i]);
            memcpy(text, middles[i], n);
            memset(text + n, '0', zeros);
            memcpy(text + n + zeros, "", 1);
            expect_read(text);
            memcpy(text + n + zeros, "1", 2);
            expect_read(text);
            memcpy(text + n + zeros, "9e-50", 6);
            expect_read(text);
        }
    }
    for (size_t zeros = 1; zeros < 1000; zeros += 7) { /* 0.000...123e+zeros */
        int n = snprintf(text, ROOM, "0.%0*d", (int)zeros, 0);
        snprintf(text + n, (size_t)(ROOM - n), "12345678901234567e%zu", zeros);
        expect_read(text);
    }
    /* The middle below the smallest subnormal has 751 digits, of which the last decides: 2^-1075 as
     * 5^1075 / 10^1075, and strtod is the judge. */
    double tiny = double_of_bits(3);
    int n = snprintf(text, ROOM, "%.1080f", tiny);
    expect_read(text);
    memcpy(text + n, "000001", 7);
    expect_read(text);
    free(text);
}
END_TEST

/* One random number as text, of a kind that could go wrong. */
static void number_make(uint64_t *state, char *text, size_t size) {
    uint64_t bits = random_next(state), kind = random_below(state, 9);
    int digits = (int)random_below(state, 40);
    float single = float_of_bits((uint32_t)bits & 0xff7fffff); /* finite */
    uint32_t next_bits = bits_of_float(single) + 1;
    double next = isfinite(float_of_bits(next_bits)) ? (double)float_of_bits(next_bits) : 0x1p128;
    double real = double_of_bits(bits & 0xffefffffffffffff);
    switch (kind) {
    case 0:
        snprintf(text, size, "%.17g", real);
        break;
    case 1:
        snprintf(text, size, "%.*g", digits, (double)single);
        break;
    case 2: /* around a middle of floats, both sides */
        snprintf(text, size, "%.*g", digits, ((double)single + next) / 2);
        break;
    case 3: /* at a middle and just above it */
        snprintf(text, size, "%.*f%d", 60,
                 ((double)(float)(bits % 65536) / 64 + (double)(bits >> 60) * 0x1p-25), digits);
        break;
    case 4: /* subnormals */
        snprintf(text, size, "%.*e", digits,
                 double_of_bits(bits >> random_below(state, 64) & 0xfffffffffffff));
        break;
    case 5: /* 64 bits of mantissa: middles of doubles where long double has them */
        snprintf(text, size, "%.*Lg", digits + 10,
                 (long double)(bits | 1) * (long double)ldexp(1.0, digits - 60));
        break;
    case 6: /* short decimals */
        snprintf(text, size, "%" PRIu64 ".%0*" PRIu64, bits % 1000, 1 + digits % 9, bits >> 20 & 0xffff);
        break;
    case 7: /* many digits, any exponent */
        snprintf(text, size, "%" PRIu64 "%0*" PRIu64 ".%" PRIu64 "e%d", bits % 99 + 1, digits % 20,
                 bits >> 30, bits, (int)(bits >> 8 & 1023) - 512);
        break;
    default: /* leading zeros */
        snprintf(text, size, "-0.%0*d%" PRIu64 "e%d", digits + 1, 0, bits, digits);
    }
}

START_TEST(read_fuzz) {
    uint64_t state = 4;
    char text[512];
    int fixes = 0;
    for (int i = 0; i < RANDOM_ROUNDS(1500000); i++) {
        number_make(&state, text, sizeof text);
        fixes += expect_read(text);
    }
    ck_assert_int_gt(fixes, RANDOM_ROUNDS(1000)); /* the hard cases are among them */
}
END_TEST

Suite *number_suite(void) {
    Suite *suite = suite_create("number");
    TCase *tests = tcase_create("number");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, write_tables);
    tcase_add_test(tests, write_f32_edges);
    tcase_add_test(tests, write_f32_random);
    tcase_add_test(tests, write_f64_edges_and_random);
    tcase_add_test(tests, write_stays_in_its_room);
    tcase_add_test(tests, read_valid);
    tcase_add_test(tests, read_beyond);
    tcase_add_test(tests, read_invalid);
    tcase_add_test(tests, read_overflow);
    tcase_add_test(tests, read_float_middles);
    tcase_add_test(tests, read_long_tokens);
    tcase_add_test(tests, read_fuzz);
    suite_add_tcase(suite, tests);
    return suite;
}
