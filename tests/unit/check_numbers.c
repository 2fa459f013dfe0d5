/* SPDX-License-Identifier: MIT
 *
 * Lists of numbers as text, with each instruction set that this processor has: the bytes of one number after the
 * other (check_number.c holds those against the C library), in just as much memory as is promised.
 */
#include "suites.h"

#include "fence.h"
#include "instructions.h"
#include "posenc_fields.h"

#include <stdlib.h>
#include <string.h>

#define EXPECT(condition, ...)                                                                               \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            ck_abort_msg(__VA_ARGS__);                                                                       \
        }                                                                                                    \
    } while (0)

/* splitmix64: the same numbers on every run. */
static uint64_t random_next(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

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

Suite *numbers_suite(void) {
    Suite *suite = suite_create("numbers");
    TCase *tests = tcase_create("numbers");
    int sets = (int)pe_instructions() + 1;
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, writes_lists_as_single_numbers, 0, sets);
    tcase_add_loop_test(tests, writes_edges, 0, sets);
    tcase_add_loop_test(tests, writes_in_its_room, 0, sets);
    suite_add_tcase(suite, tests);
    return suite;
}
