/* SPDX-License-Identifier: MIT
 *
 * Lists of numbers as text, with each instruction set that this processor has: written, the bytes of one number after
 * the other (check_number.c holds those against the C library), in just as much memory as is promised; read, the same
 * numbers as one by one, nothing that is none, and no byte behind the end.
 */
#include "suites.h"

#include "fence.h"
#include "instructions.h"
#include "posenc_fields.h"
#include "random.h"
#include "unit/expect.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Of any bits; below 1 as encodings are; of any size that is written without an exponent; whole; 0; a power of 2. */
static float float_make(uint64_t *state) {
    uint64_t word = random_next(state);
    uint32_t bits = (uint32_t)word, kind = (uint32_t)(word >> 60);
    uint32_t sign = bits & 0x80000000, fraction = bits & 0x7fffff;
    return kind == 0   ? float_of_bits(bits)
           : kind < 8  ? float_of_bits(sign | ((118 + (bits >> 23 & 7)) << 23) | fraction)
           : kind < 12 ? float_of_bits(sign | ((108 + (bits >> 23 & 63)) << 23) | fraction)
           : kind < 14 ? (float)(int16_t)bits
           : kind < 15 ? float_of_bits(sign)
                       : float_of_bits(bits & 0xff800000);
}

/* ---- Writing ------------------------------------------------------------------------------------------- */

static void expect_list(const struct fence *in, const struct fence *out, const float *values, size_t n) {
    char *want = malloc(PE_NUMBERS_ROOM(n)), *got = fence_last(out, PE_NUMBERS_ROOM(n));
    float *list = (float *)(void *)fence_last(in, n * sizeof *list);
    size_t length = 0;
    ck_assert_ptr_nonnull(want);
    memcpy(list, values, n * sizeof *list);
    for (size_t i = 0; i < n; i++) {
        length += pe_number_write_f32(want + length, values[i]);
        want[length++] = ',';
    }
    size_t got_length = pe_numbers_write_f32(got, list, n);
    for (size_t at = 0; at < length; at++) {
        EXPECT(at < got_length && got[at] == want[at], "byte %zu: %.40s, expected %.40s", at, got + at,
               want + at);
    }
    EXPECT(got_length == length, "%zu bytes, expected %zu", got_length, length);
    free(want);
}

enum { MOST = 300 };

START_TEST(writes_lists_as_single_numbers) {
    struct fence in, out;
    uint64_t state = 1;
    float values[MOST];
    fence_make(&in, sizeof values);
    fence_make(&out, PE_NUMBERS_ROOM((size_t)MOST));
    instructions_limit((enum pe_instructions)_i);
    for (size_t round = 0; round < 4000; round++) {
        size_t n = round < 40 ? round : 1 + (size_t)(random_next(&state) % MOST);
        for (size_t i = 0; i < n; i++) {
            values[i] = float_make(&state);
        }
        expect_list(&in, &out, values, n);
    }
    fence_drop(&in);
    fence_drop(&out);
}
END_TEST

/* The ends and middles of every power of two, each of them beside others that are written another way. */
START_TEST(writes_edges) {
    static const uint32_t fractions[] = {0, 1, 2, 0x3fffff, 0x400000, 0x7ffffe, 0x7fffff};
    struct fence in, out;
    float values[2 * PE_COUNT(fractions)];
    fence_make(&in, sizeof values);
    fence_make(&out, PE_NUMBERS_ROOM(PE_COUNT(values)));
    instructions_limit((enum pe_instructions)_i);
    for (uint32_t exponent = 0; exponent < 256; exponent++) {
        for (size_t i = 0; i < PE_COUNT(fractions); i++) {
            values[2 * i] = float_of_bits(exponent << 23 | fractions[i]);
            values[2 * i + 1] = float_of_bits(0x80000000 | ((exponent * 7) & 0xff) << 23 | fractions[i]);
        }
        expect_list(&in, &out, values, PE_COUNT(values));
    }
    fence_drop(&in);
    fence_drop(&out);
}
END_TEST

/* The longest texts there are, and the most of their room that is used. */
START_TEST(writes_in_its_room) {
    static const float longest[] = {-9876543488888832.0F, -9.8765431e15F, -1.17549435e-38F, -1.00000136e-05F};
    struct fence in, out;
    float values[MOST];
    fence_make(&in, sizeof values);
    fence_make(&out, PE_NUMBERS_ROOM((size_t)MOST));
    instructions_limit((enum pe_instructions)_i);
    for (size_t k = 0; k < PE_COUNT(longest); k++) {
        for (size_t i = 0; i < MOST; i++) {
            values[i] = longest[k];
        }
        for (size_t n = 0; n <= MOST; n += n < 20 ? 1 : 7) {
            expect_list(&in, &out, values, n);
        }
    }
    fence_drop(&in);
    fence_drop(&out);
}
END_TEST

/* ---- Reading ------------------------------------------------------------------------------------------- */

static const char *const tokens[] = {
    "0",
    "-0",
    "0.0",
    "-0.0",
    "1",
    "12345678",
    "123456789",
    "2147483647",
    "00",
    "01.5",
    "-01",
    "-00.1",
    "1.",
    ".5",
    "-.5",
    "-",
    "+1",
    "--1",
    "1.2.3",
    "1-2",
    "NaN",
    "null",
    "[",
    "]",
    "\"1\"",
    "1e5",
    "1.5e-7",
    "0.1234567",
    "0.12345678",
    "0.123456789",
    "0.1234567891",
    "0.12345678912",
    "1.5 ",
    " 1.5",
    "-12.5",
    "123.45",
    "1234567.8",
    "12345678.5",
    "123456789.5",
    "2147483.647",
    "2147483.648",
    "214748364.8",
    "0.00000001",
    "0.0000000012",
    "00000000.1",
    "999999999999",
    "1:2",
    "1/2",
    "\x80.5",
    "0.1234567890123456",
    "0.5\t",
    "\xb0.5",
    "1;",
    "1.5,",
    "-1.5, ",
    ",",
    " ",
    "",
    "0x1",
};

static size_t tokens_write(char *text, uint64_t *state, size_t n) {
    char *at = text;
    for (size_t i = 0; i < n; i++) {
        uint64_t word = random_next(state);
        if (word % 8 == 0) {
            const char *token = tokens[word / 8 % PE_COUNT(tokens)];
            memcpy(at, token, strlen(token));
            at += strlen(token);
        } else {
            at += pe_number_write_f32(at, float_make(state));
        }
        *at++ = ',';
        if (word >> 60 < 4) {
            *at++ = ' ';
        }
    }
    return (size_t)(at - text);
}

/* Every number that was taken is one by itself, and the same. Returns how many. */
static size_t expect_taken(const char *text, const char *stop, const struct pe_decimals *list) {
    size_t n = 0;
    for (const char *comma; text < stop; text = comma + 1) {
        struct pe_number number;
        while (text < stop && *text == ' ') {
            text++;
        }
        if (text == stop) {
            break;
        }
        comma = memchr(text, ',', (size_t)(stop - text));
        EXPECT(comma, "stopped inside a number: %.20s", text);
        int length = (int)(comma - text);
        EXPECT(pe_number_parse(text, (size_t)length, &number) == PE_NUMBER_OK, "took %.*s", length, text);
        EXPECT(number.decimal && n < list->n, "took %.*s", length, text);
        EXPECT(number.digits == list->digits[n] && number.exponent == list->exponents[n], "%.*s is %u e%d",
               length, text, list->digits[n] >> 1, list->exponents[n]);
        n++;
    }
    EXPECT(n == list->n, "%zu numbers, expected %zu", list->n, n);
    return n;
}

/* From every place where a token may begin, with the text's end in front of a page that may not be read. */
static size_t expect_scans(const struct fence *fence, const char *text, size_t n, size_t room) {
    enum { ROOM = 64 };
    uint32_t digits[ROOM];
    int8_t exponents[ROOM];
    char *copy = fence_last(fence, n);
    size_t taken = 0;
    memcpy(copy, text, n);
    for (const char *at = copy; at < copy + n;) {
        struct pe_decimals list = {.digits = digits, .exponents = exponents, .room = room};
        const char *stop = pe_decimals_scan(&list, at, copy + n);
        EXPECT(stop >= at && stop <= copy + n, "stops outside");
        taken += expect_taken(at, stop, &list);
        const char *comma = memchr(stop, ',', (size_t)(copy + n - stop));
        at = comma ? comma + 1 : copy + n;
    }
    return taken;
}

START_TEST(reads_what_is_a_number) {
    enum { NUMBERS = 30 };
    struct fence fence;
    char text[NUMBERS * 32];
    uint64_t state = 7;
    size_t taken = 0;
    fence_make(&fence, sizeof text);
    instructions_limit((enum pe_instructions)_i);
    for (int round = 0; round < 3000; round++) {
        size_t n = tokens_write(text, &state, NUMBERS);
        for (size_t cut = 0; cut < 3; cut++) {
            taken += expect_scans(&fence, text, n - cut * (size_t)(random_next(&state) % n) / 2,
                                  1 + (size_t)round % 64);
        }
    }
    ck_assert_uint_gt(taken, 3000 * NUMBERS); /* most of those that could be */
    fence_drop(&fence);
}
END_TEST

/* As the C library reads the text, for middles of floats as well. */
START_TEST(becomes_the_nearest_float) {
    uint64_t state = 9;
    for (int i = 0; i < 300000; i++) {
        uint64_t word = random_next(&state);
        uint32_t digits = (uint32_t)(word >> (word & 31)), bits;
        int8_t exponent = (int8_t)(i % 3 ? -(int)(word >> 58) : (int)(word >> 56) - 128);
        if (i % 5 == 0) { /* 2n + 1 in 2^24 .. 2^25 is a middle, and so is that with a zero behind it */
            digits = (UINT32_C(0x1000001) | (uint32_t)(word >> 40)) << 1;
            digits = i % 2 ? digits * 10 : digits;
            exponent = i % 2 ? -1 : 0;
        }
        char text[32];
        float got;
        snprintf(text, sizeof text, "%s%lue%d", digits & 1 ? "-" : "", (unsigned long)digits >> 1, exponent);
        float want = exponent == PE_DECIMAL_MINUS_INF ? -HUGE_VALF : strtof(text, NULL);
        memcpy(&bits, &digits, sizeof bits);
        pe_decimals_f32(&bits, &bits, &exponent, 1);
        memcpy(&got, &bits, sizeof got);
        EXPECT(memcmp(&got, &want, sizeof got) == 0, "%s: %a, expected %a", text, (double)got, (double)want);
    }
}
END_TEST

Suite *numbers_suite(void) {
    Suite *suite = suite_create("numbers");
    TCase *tests = tcase_create("numbers");
    int sets = (int)pe_instructions() + 1;
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, writes_lists_as_single_numbers, 0, sets);
    tcase_add_loop_test(tests, writes_edges, 0, sets);
    tcase_add_loop_test(tests, writes_in_its_room, 0, sets);
    tcase_add_loop_test(tests, reads_what_is_a_number, 0, sets);
    tcase_add_test(tests, becomes_the_nearest_float);
    suite_add_tcase(suite, tests);
    return suite;
}
