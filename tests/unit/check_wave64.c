/* SPDX-License-Identifier: MIT
 *
 * Rows of sines and cosines in float64 from every instruction set that this processor has: against pe_phase_row,
 * which is within 0.51 units of the last place, so that the two are neighbours at most; and bit by bit against each
 * other, in every part of a block, between pages that may not be touched.
 */
#include "suites.h"

#include "core/ladder.h"
#include "fence.h"
#include "instructions.h"
#include "kernels/wave64.h"
#include "posenc_fields.h"
#include "random.h"

#include <stdlib.h>
#include <string.h>

#define ROWS PE_WAVE64_ROWS
#define MOST 136 /* pairs */

struct setup {
    struct pe_turn turns[MOST];
    struct pe_wave64 wave;
    void *tables;
    struct fence fence;
};

static void setup_open(struct setup *s, size_t n, double base, enum pe_instructions set) {
    fence_make(&s->fence, pe_wave64_bytes(n) + 2 * sizeof(double[ROWS][MOST]));
    s->tables = aligned_alloc(64, (pe_wave64_bytes(n) + 63) / 64 * 64);
    ck_assert(s->tables != NULL);
    pe_ladder_fill(s->turns, n, base, 2, (uint32_t)(2 * n));
    instructions_limit(set);
    pe_wave64_open(&s->wave, s->tables, s->turns, n);
    ck_assert_int_eq(s->wave.instructions, set);
}

static void setup_close(struct setup *s) {
    free(s->tables);
    fence_drop(&s->fence);
}

static size_t stride_of(size_t n) {
    return (n + PE_WAVE64_LANES - 1) / PE_WAVE64_LANES * PE_WAVE64_LANES;
}

/* cos and sin [rows, stride] into memory that ends, or begins, at a fence. */
static struct pe_wave64_out run(const struct setup *s, int64_t x, size_t rows, size_t first, size_t n,
                                bool at_end) {
    const size_t stride = stride_of(n), values = rows * stride;
    double *both = fence_side(&s->fence, 2 * values * sizeof(double), at_end);
    struct pe_wave64_out out = {both, both + values, first, n, stride};
    memset(both, 0x7f, 2 * values * sizeof(double));
    pe_wave64_run(&s->wave, x, rows, &out);
    return out;
}

/* The first whole number of a block, of up to so many bits. */
static int64_t block_at(uint64_t *state, int bits) {
    const int64_t magnitude = (int64_t)(random_next(state) >> (64 - bits)) / ROWS * ROWS;
    return random_next(state) & 1 ? magnitude : -magnitude;
}

static int64_t bits_of(double v) {
    int64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* Of a full block: how many values are not those of pe_phase_row; none is two units off. */
static size_t differing(const struct setup *s, int64_t x, size_t n, const struct pe_wave64_out *got) {
    size_t count = 0;
    for (size_t row = 0; row < ROWS; row++) {
        double want[2][MOST];
        struct pe_place place;
        pe_place_of(&place, (double)(x + (int64_t)row), 1, 0);
        pe_phase_row(&place, s->turns, n, PE_DTYPE_F64, &(struct pe_phase_out){want[1], want[0], 1, NULL});
        for (size_t i = 0; i < 2 * n; i++) {
            const double *values = i < n ? got->cos : got->sin, v = values[row * got->stride + i % n];
            const int64_t off = bits_of(v) - bits_of(want[i / n][i % n]);
            ck_assert_msg(off >= -1 && off <= 1, "%s: x %lld pair %zu of %zu: %a, not %a",
                          instructions_name(s->wave.instructions), (long long)x + (long long)row, i % n, n, v,
                          want[i / n][i % n]);
            count += off != 0;
        }
    }
    return count;
}

/* ---- Tests --------------------------------------------------------------------------------------------- */

/* Rounding the exact value to within 0.02 units and 0.01 units differs in three of a hundred at most. */
START_TEST(wave64_is_within_a_unit_of_the_last_place) {
    static const int bits[] = {10, 20, 31, 53};
    uint64_t state = 11;
    size_t differ = 0, all = 0;
    struct setup s;
    setup_open(&s, 64, 10000, pe_instructions());
    for (int i = 0; i < 40 * (int)PE_COUNT(bits); i++) {
        const int64_t x = block_at(&state, bits[i % (int)PE_COUNT(bits)]);
        const struct pe_wave64_out got = run(&s, x, ROWS, 0, 64, i & 1);
        differ += differing(&s, x, 64, &got);
        all += 2 * 64 * ROWS;
    }
    ck_assert_uint_le(differ * 100, all * 3);
    setup_close(&s);
}
END_TEST

/* Sines and cosines next to nothing: see wave_decides_what_is_next_to_zero. They are pe_phase_row's own. */
START_TEST(wave64_keeps_what_is_next_to_zero) {
    static const int64_t places[] = {
        0, 11, 22, 33, 355, 103993, 411557987, 21053343141, 5706674932067741, 6134899525417045};
    const enum pe_instructions most = pe_instructions();
    for (enum pe_instructions set = 0; set <= most; set++) {
        for (size_t i = 0; i < PE_COUNT(places); i++) {
            const int64_t x = places[i] / ROWS * ROWS;
            struct setup s;
            setup_open(&s, 40, i % 2 ? 10000 : 1e300, set);
            const struct pe_wave64_out got = run(&s, x, ROWS, 0, 40, true);
            differing(&s, x, 40, &got);
            setup_close(&s);
        }
    }
}
END_TEST

static void check_parts(size_t n, enum pe_instructions set, uint64_t *state) {
    static double whole[2][ROWS * MOST];
    struct setup s, plain;
    setup_open(&plain, n, 10000, PE_INSTRUCTIONS_PLAIN);
    setup_open(&s, n, 10000, set);
    for (int i = 0; i < 30; i++) {
        const int64_t x = block_at(state, 1 + (int)(random_next(state) % 53));
        struct pe_wave64_out want = {whole[0], whole[1], 0, n, stride_of(n)};
        pe_wave64_run(&plain.wave, x, ROWS, &want);
        const size_t from = random_next(state) % ROWS, rows = 1 + random_next(state) % (ROWS - from);
        const size_t first = random_next(state) % ((n + 7) / 8) * 8,
                     some = 1 + random_next(state) % (n - first);
        const struct pe_wave64_out got = run(&s, x + (int64_t)from, rows, first, some, i & 1);
        for (size_t v = 0; v < rows * some; v++) {
            const size_t row = v / some, pair = v % some;
            const size_t at = (from + row) * want.stride + first + pair, mine = row * got.stride + pair;
            ck_assert_msg(bits_of(want.cos[at]) == bits_of(got.cos[mine]) &&
                              bits_of(want.sin[at]) == bits_of(got.sin[mine]),
                          "%s: %zu pairs, x %lld, row %zu of %zu+%zu, pair %zu", instructions_name(set), n,
                          (long long)x, row, from, rows, first + pair);
        }
    }
    setup_close(&s);
    setup_close(&plain);
}

START_TEST(wave64_has_the_same_bits_in_every_part) {
    static const size_t pairs[] = {1, 2, 3, 7, 8, 9, 16, 31, 33, 64, 65, MOST};
    const enum pe_instructions most = pe_instructions();
    uint64_t state = 3;
    for (enum pe_instructions set = 0; set <= most; set++) {
        for (size_t i = 0; i < PE_COUNT(pairs); i++) {
            check_parts(pairs[i], set, &state);
        }
    }
}
END_TEST

START_TEST(wave64_takes_whole_numbers) {
    static const struct {
        double position, scale, offset;
        int64_t x;
        bool taken;
    } places[] = {{0, 1, 0, 0, true},
                  {5, -1, 0, -5, true},
                  {2, 0.5, 0, 1, true},
                  {0.5, 1, 0.5, 1, true},
                  {0.5, 1, 0, 0, false},
                  {3, 1, 1e-30, 0, false},
                  {9007199254740991, 1, 0, 9007199254740991, true},
                  {9007199254740991, 2, 0, 0, false}};
    for (size_t i = 0; i < PE_COUNT(places); i++) {
        struct pe_place place;
        int64_t x = 0;
        pe_place_of(&place, places[i].position, places[i].scale, places[i].offset);
        ck_assert_int_eq(pe_wave64_takes(&place, &x), places[i].taken);
        ck_assert_int_eq(places[i].taken ? x : 0, places[i].x);
    }
}
END_TEST

Suite *wave64_suite(void) {
    Suite *suite = suite_create("wave64");
    TCase *tcase = tcase_create("wave64");
    tcase_add_test(tcase, wave64_is_within_a_unit_of_the_last_place);
    tcase_add_test(tcase, wave64_keeps_what_is_next_to_zero);
    tcase_add_test(tcase, wave64_has_the_same_bits_in_every_part);
    tcase_add_test(tcase, wave64_takes_whole_numbers);
    suite_add_tcase(suite, tcase);
    return suite;
}
