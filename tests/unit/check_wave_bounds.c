/* SPDX-License-Identifier: MIT
 *
 * What random values do not find: the two bounds of wave.c on which correct rounding rests. Angles are held against
 * the exact ones in double, so that a wrong digit of a polynomial shows long before it changes a float; and values
 * that are so near the middle of two floats that no double tells on which side they are, from every instruction set, at
 * every place of a run.
 */
#include "suites.h"

#include "core/ladder.h"
#include "instructions.h"
#include "kernels/wave_types.h"
#include "posenc_fields.h"
#include "random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PAIRS ((size_t)256)
#define ROWS  64

static struct pe_turn turns[PAIRS];
static struct pe_wave wave;
static void *tables;

static void setup(void) {
    tables = aligned_alloc(64, (pe_wave_bytes(PAIRS) + 63) / 64 * 64);
    ck_assert_ptr_nonnull(tables);
    pe_ladder_fill(turns, PAIRS, 10000, 2, 2 * PAIRS);
}

static void teardown(void) {
    free(tables);
}

static void wave_of(int set, int64_t step, bool pairs) {
    instructions_limit((enum pe_instructions)set);
    pe_wave_open(&wave, tables, turns, PAIRS, step, pairs);
    ck_assert_int_eq((int)wave.instructions, set);
}

/* ---- Angles -------------------------------------------------------------------------------------------- */

/* Twice the cosine of a whole unit. */
static void expect_twice(const struct pe_wave_step *steps, int64_t unit, bool pairs) {
    double sin[PAIRS], cos[PAIRS];
    struct pe_place place;
    pe_place_of(&place, (double)unit, 1, 0);
    pe_phase_row(&place, turns, PAIRS, PE_DTYPE_F64, &(struct pe_phase_out){sin, cos, 1, NULL});
    for (size_t i = 0; i < PAIRS; i++) {
        const struct pe_wave_step *step = &steps[i / PE_WAVE_LANES];
        const size_t lane = i % PE_WAVE_LANES, column = pairs ? 2 * lane : lane,
                     other = pairs ? 1 : PE_WAVE_LANES;
        EXPECT(fabs(step->twice_cos[column] - 2 * cos[i]) <= 0x1.4p-51, "%s: pair %zu at %lld: %a, not %a",
               instructions_name(wave.instructions), i, (long long)unit, step->twice_cos[column], 2 * cos[i]);
        ck_assert(memcmp(&step->twice_cos[column], &step->twice_cos[column + other], sizeof(double)) == 0);
    }
}

/* The turnings by 1, 3, 5 and 7 halves of unit are angles as kernels compute them, off by 2^-52 at most; the exact ones
 * were rounded, by 2^-54. */
static void expect_angles(const struct pe_wave_step *steps, int64_t unit, bool pairs) {
    for (int k = 0; k < PE_WAVE_TURNINGS; k++) {
        double sin[PAIRS], cos[PAIRS];
        struct pe_place place;
        pe_place_of(&place, (double)((2 * k + 1) * unit), 0.5, 0);
        pe_phase_row(&place, turns, PAIRS, PE_DTYPE_F64, &(struct pe_phase_out){sin, cos, 1, NULL});
        for (size_t i = 0; i < PAIRS; i++) {
            const struct pe_wave_step *step = &steps[i / PE_WAVE_LANES];
            const size_t lane = i % PE_WAVE_LANES, column = pairs ? 2 * lane : lane;
            const double off = fmax(fabs(step->sin[k][column] - sin[i]), fabs(step->cos[k][column] - cos[i]));
            EXPECT(off <= 0x1.4p-52, "%s: pair %zu at %lld/2 * %d is off by %a",
                   instructions_name(wave.instructions), i, (long long)unit, 2 * k + 1, off);
        }
    }
}

START_TEST(angles_are_within_their_bound) {
    uint64_t state = 1;
    for (int round = 0; round < RANDOM_ROUNDS(400); round++) {
        const int64_t step = 1 + (int64_t)(random_next(&state) >> 17 >> random_next(&state) % 40);
        const bool pairs = round % 2;
        wave_of(_i, round % 4 < 2 ? step : -step, pairs);
        expect_angles(wave.steps, wave.step, pairs);
        expect_angles(wave.leaps, 8 * wave.step, pairs);
        expect_twice(wave.steps, wave.step, pairs);
    }
}
END_TEST

/* ---- Values in the middle ------------------------------------------------------------------------------ */

/* Of width 512, base 10000. Found among the positions up to 60,000,000: the double nearest to the value, which is more
 * than 1/2, has the bits of the middle of two floats. */
static const struct middle {
    int64_t x;
    size_t pair;
    bool is_sine;
} middles[] = {
    {1599813, 8, true},     {2913351, 210, false},  {5495508, 225, true},   {9799602, 13, true},
    {10461481, 104, true},  {12607006, 47, true},   {13069831, 239, false}, {15075731, 159, false},
    {15998130, 72, true},   {16849923, 245, true},  {19001448, 3, false},   {22741563, 30, false},
    {22925034, 172, false}, {27882086, 13, true},   {30761040, 19, true},   {33272887, 94, false},
    {36136359, 252, true},  {40832421, 51, true},   {41348487, 103, false}, {42289789, 5, true},
    {42424395, 175, true},  {43102901, 128, true},  {44262604, 40, true},   {45474444, 206, false},
    {48605841, 159, true},  {49849235, 95, false},  {50067671, 243, false}, {50379917, 23, false},
    {51235835, 82, false},  {54279464, 205, false},
};

/* Found likewise up to 24,000,000: magnitudes below 2^-16 that are nearer than 2^-52 to the middle of two floats. To a
 * double of that size that is far, but what it is the sum of was rounded by as much. */
static const struct middle smalls[] = {
    {1893007, 57, false},   {1994693, 105, false}, {3803902, 50, false},  {4524508, 20, false},
    {6454809, 9, true},     {7086789, 64, false},  {9049016, 20, true},   {9341786, 6, false},
    {9689465, 55, false},   {11411706, 50, false}, {12914617, 25, true},  {13573524, 20, false},
    {15369853, 13, false},  {17157416, 87, true},  {17860573, 14, true},  {19363382, 204, false},
    {19946930, 169, false}, {20752727, 10, true},  {22622540, 20, false}, {23216692, 99, false},
};

/* The same width. Found among the positions from 1024 on: values next to a middle, between which and the value a raised
 * one is or is not, depending on how a block came to it, by a turning or by steps. */
static const struct middle straddled[] = {
    {1027378, 95, true},   {1832575, 35, true},   {2293777, 72, false}, {2297672, 130, false},
    {4015465, 50, true},   {5232062, 136, false}, {5328416, 27, false}, {5651537, 49, true},
    {7366377, 117, false}, {7837344, 76, false},
};

/* Only pairs are written past the caches, and only in whole lines. */
static const struct layout {
    bool pairs, cos_first, far;
} layouts[] = {{false, false, false}, {false, true, false}, {true, false, false},
               {true, true, false},   {true, false, true},  {true, true, true}};

/* The value's own group and those beside it, of which four are computed side by side. */
static void check_middle(const struct middle *middle, size_t before, const struct layout *layout) {
    enum { SOME = 4 * PE_WAVE_LANES };
    _Alignas(64) float rows[ROWS][2 * SOME];
    float want[2];
    const size_t first = middle->pair / SOME * SOME, at = middle->pair - first;
    const struct pe_wave part = pe_wave_part(&wave, first, SOME);
    float *second = rows[0] + (layout->pairs ? 1 : SOME);
    const struct pe_wave_out out = {.sin = layout->cos_first ? second : rows[0],
                                    .cos = layout->cos_first ? rows[0] : second,
                                    .step = layout->pairs ? 2 : 1,
                                    .n_sin = SOME,
                                    .n_cos = SOME,
                                    .stride = 2 * SOME,
                                    .far = layout->far};
    struct pe_place place;
    pe_place_of(&place, (double)middle->x, 1, 0);
    pe_phase_exact(&place, &turns[middle->pair], PE_DTYPE_F32,
                   &(struct pe_phase_out){&want[0], &want[1], 1, NULL});
    if (before < ROWS) {
        pe_wave_run(&part, middle->x - (int64_t)before, 1, ROWS, &out);
    } else {
        pe_wave_row(&part, &place, &out);
    }
    const float *got = (middle->is_sine ? out.sin : out.cos) + at * out.step + before % ROWS * out.stride;
    EXPECT(memcmp(got, &want[!middle->is_sine], sizeof *got) == 0,
           "%s: position %lld, pair %zu, row %zu: %a, not %a", instructions_name(wave.instructions),
           (long long)middle->x, middle->pair, before, (double)*got, (double)want[!middle->is_sine]);
}

static void check_middles(int set, const struct middle *of, size_t n) {
    for (size_t k = 0; k < PE_COUNT(layouts); k++) {
        wave_of(set, 1, layouts[k].pairs);
        for (size_t i = 0; i < n; i++) {
            for (size_t before = 0; before <= ROWS; before++) {
                check_middle(&of[i], before, &layouts[k]);
            }
        }
    }
}

START_TEST(middles_are_decided_exactly) {
    check_middles(_i, middles, PE_COUNT(middles));
}
END_TEST

START_TEST(small_values_are_decided_exactly) {
    check_middles(_i, smalls, PE_COUNT(smalls));
}
END_TEST

START_TEST(doubts_are_about_what_was_written) {
    check_middles(_i, straddled, PE_COUNT(straddled));
}
END_TEST

#if PE_AVX2
/* Where a column is rounded wrongly, what is written past the caches is written again by whole lines, and then all
 * columns are as the sharp test has them, also one of which the cheap test was sure. If the sharp one is not, the group
 * is bad. No angle is known where that is so: errors would have to be near their bounds. So the angles are made up: all
 * are 0, but one column's is off in the turning by 7/2, which only the sharp test looks at. */
START_TEST(lines_written_again_are_decided) {
    enum { WRONG = 3, OFF = 12, LAST = PE_WAVE_TURNINGS - 1 };
    static const struct {
        bool far, off;
        uint32_t bad;
    } cases[] = {{true, true, 1}, {true, false, 0}, {false, true, 0}};
    const double tie = 0.5 + 0x1p-25, sure = 0.75, other_tie = 0.75 + 0x1p-25;
    _Alignas(64) float rows[WAVE_BLOCK][PE_WAVE_COLUMNS];
    const struct pe_wave_out out = {rows[0], rows[0] + 1, 2, 8, 8, PE_WAVE_COLUMNS, cases[_i].far};
    struct pe_wave_step step = {0};
    struct wave_anchor middles_of[1][WAVE_GROUPS];
    uint32_t bad[WAVE_BLOCKS];
    for (size_t j = 0; j < PE_WAVE_COLUMNS; j++) {
        step.twice_cos[j] = 2;
        for (size_t k = 0; k < PE_WAVE_TURNINGS; k++) {
            step.cos[k][j] = 1;
        }
        middles_of[0][0].column[j] = sure * WAVE_RAISE;
    }
    middles_of[0][0].column[WRONG] =
        tie * (1 + 0x1.6p-38); /* raised it is above the tie, and lowered below */
    step.cos[LAST][OFF] = cases[_i].off ? other_tie / sure : 1;
    pe_wave_avx512.blocks(&step, 1, (const struct wave_anchor(*)[WAVE_GROUPS])middles_of, 1, &out, bad);
    pe_wave_avx512.settle();
    ck_assert_uint_eq(bad[0], cases[_i].bad);
    for (size_t row = 0; row < WAVE_BLOCK; row++) {
        ck_assert_msg(rows[row][WRONG] == 0.5F, "row %zu: %a", row, (double)rows[row][WRONG]);
    }
}
END_TEST
#endif

Suite *wave_bounds_suite(void) {
    Suite *suite = suite_create("wave_bounds");
    TCase *tests = tcase_create("wave_bounds");
    const int sets = (int)pe_instructions() + 1;
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, angles_are_within_their_bound, 0, sets);
    tcase_add_loop_test(tests, middles_are_decided_exactly, 0, sets);
    tcase_add_loop_test(tests, small_values_are_decided_exactly, 0, sets);
    tcase_add_loop_test(tests, doubts_are_about_what_was_written, 0, sets);
#if PE_AVX2
    if (pe_instructions() == PE_INSTRUCTIONS_AVX512) {
        tcase_add_loop_test(tests, lines_written_again_are_decided, 0, 3);
    }
#endif
    suite_add_tcase(suite, tests);
    return suite;
}
