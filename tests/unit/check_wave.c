/* SPDX-License-Identifier: MIT
 *
 * Rows of sines and cosines from every instruction set that this processor has, against pe_phase_row, bit by bit:
 * odd widths, starts, steps and numbers of rows, memory that is aligned to a float and no more, and a page that
 * may not be touched right behind it, or before.
 */
#include "suites.h"

#include "core/ladder.h"
#include "fence.h"
#include "instructions.h"
#include "kernels/wave.h"
#include "posenc_fields.h"
#include "random.h"

#include <stdlib.h>
#include <string.h>

/* ---- Rows of one encoding ------------------------------------------------------------------------------ */

#define MOST_ROWS 140
#define MOST_WIDE 4097

struct setup {
    struct pe_turn *turns;
    struct pe_wave wave;
    void *tables;
    size_t width, n; /* columns, pairs */
    bool halves, cos_first;
    struct fence fence;
    float *want;
};

static void setup_open(struct setup *s, size_t width, double base, enum pe_instructions instructions) {
    s->width = width;
    s->n = (width + 1) / 2;
    s->turns = calloc(s->n, sizeof *s->turns);
    s->tables = aligned_alloc(64, (pe_wave_bytes(s->n) + 63) / 64 * 64);
    s->want = calloc(MOST_ROWS * width, sizeof(float));
    ck_assert(s->turns && s->tables && s->want);
    pe_ladder_fill(s->turns, s->n, base, 2, (uint32_t)(width < 2 ? 2 : width));
    instructions_limit(instructions);
    pe_wave_open(&s->wave, s->tables, s->turns, s->n, 1, width % 2);
    ck_assert_int_eq(s->wave.instructions, instructions);
    fence_make(&s->fence, MOST_ROWS * width * sizeof(float));
}

static void setup_close(struct setup *s) {
    free(s->turns);
    free(s->tables);
    free(s->want);
    fence_drop(&s->fence);
}

static struct pe_wave_out out_of(const struct setup *s, float *row) {
    float *second = row + (s->halves ? s->n : 1);
    size_t n_second = s->width / 2;
    return (struct pe_wave_out){.sin = s->cos_first ? second : row,
                                .cos = s->cos_first ? row : second,
                                .step = s->halves ? 1 : 2,
                                .n_sin = s->cos_first ? n_second : s->n,
                                .n_cos = s->cos_first ? s->n : n_second,
                                .stride = s->width};
}

/* The row in s->want. */
static void want_row(const struct setup *s, size_t row, const struct pe_place *place) {
    const struct pe_wave_out to = out_of(s, s->want + row * s->width);
    for (size_t i = 0; i < s->n; i++) {
        pe_phase_row(place, &s->turns[i], 1, PE_DTYPE_F32,
                     &(struct pe_phase_out){.sin = i < to.n_sin ? to.sin + i * to.step : NULL,
                                            .cos = i < to.n_cos ? to.cos + i * to.step : NULL,
                                            .step = 1});
    }
}

static void compare_rows(const struct setup *s, const float *got, size_t rows, int64_t x, int64_t step) {
    for (size_t i = 0; i < rows * s->width; i++) {
        if (memcmp(&got[i], &s->want[i], sizeof(float)) !=
            0) { /* an assertion each would take most of the time */
            ck_abort_msg("%s: width %zu %s %s x %lld step %lld rows %zu: row %zu column %zu is %a, not %a",
                         instructions_name(s->wave.instructions), s->width,
                         s->halves ? "halves" : "interleaved", s->cos_first ? "cos_sin" : "sin_cos",
                         (long long)x, (long long)step, rows, i / s->width, i % s->width, (double)got[i],
                         (double)s->want[i]);
        }
    }
}

static void check_run(struct setup *s, int64_t x, int64_t step, size_t rows, bool at_end, bool far) {
    float *got = fence_side(&s->fence, rows * s->width * sizeof(float), at_end);
    struct pe_wave_out to = out_of(s, got);
    to.far = far;
    for (size_t row = 0; row < rows; row++) {
        struct pe_place place;
        pe_place_of(&place, (double)(x + (int64_t)row * step), 1, 0);
        want_row(s, row, &place);
    }
    memset(got, 0x7f, rows * s->width * sizeof(float));
    pe_wave_run(&s->wave, x, step, rows, &to);
    compare_rows(s, got, rows, x, step);
}

static const size_t widths[] = {1, 2, 3, 7, 15, 16, 17, 31, 33, 64, 130, 512, 513, 1040, MOST_WIDE};

/* ---- Tests --------------------------------------------------------------------------------------------- */

static void check_runs(size_t width, enum pe_instructions set) {
    static const int64_t starts[] = {0,     1,       -1,         -3,         -100,
                                     12345, 1048577, 2147483643, 4294967290, 9007199254730000};
    static const int64_t steps[] = {1, 1, 1, -1, 2, 7, 1000, 0, 16777259};
    static const size_t rows[] = {1, 3, 7, 8, 9, 15, 16, 17, 63, 64, 65, 66, 72, 129, MOST_ROWS};
    uint64_t state = width;
    struct setup s;
    setup_open(&s, width, 10000, set);
    for (int i = 0; i < (width > 600 ? 8 : 40); i++) {
        int64_t step = steps[random_next(&state) % PE_COUNT(steps)],
                x = starts[random_next(&state) % PE_COUNT(starts)];
        uint64_t bits = random_next(&state);
        s.halves = bits & 1;
        s.cos_first = bits >> 1 & 1;
        if (x > 9007199254700000) {
            step = step > 7 ? 1 : step;
        }
        check_run(&s, x, step, rows[random_next(&state) % PE_COUNT(rows)], bits >> 2 & 1, bits >> 3 & 1);
    }
    setup_close(&s);
}

START_TEST(wave_runs_have_the_bits_of_single_rows) {
    const enum pe_instructions most = pe_instructions();
    for (enum pe_instructions set = 0; set <= most; set++) {
        for (size_t i = 0; i < PE_COUNT(widths); i++) {
            check_runs(widths[i], set);
        }
    }
}
END_TEST

/* Values next to nothing: x is nearly a multiple of half a turn, by the continued fraction of pi (x = 355,
 * 6381956970095103, ..), or t is tiny, so that no sine of a row is decided by what is fast. */
START_TEST(wave_decides_what_is_next_to_zero) {
    const enum pe_instructions most = pe_instructions();
    static const int64_t middle[] = {
        22, 355, 103993, 411557987, 21053343141, 5706674932067741, 6134899525417045};
    for (enum pe_instructions set = 0; set <= most; set++) {
        struct setup s = {0};
        setup_open(&s, 32, 10000, set);
        for (size_t i = 0; i < PE_COUNT(middle); i++) {
            check_run(&s, middle[i] - 5, 1, 17, true, false);
        }
        setup_close(&s);
        setup_open(&s, 66, 1e300, set);
        check_run(&s, -3, 1, 70, true, false);
        check_run(&s, 9007199254740000, 1, 70, true, false);
        setup_close(&s);
    }
}
END_TEST

static void check_places(struct setup *s, uint64_t *state, int n) {
    static const double scales[] = {1, 1, 1000, 0.1, -1, 1 / 3.0, 9007199254740991.0, 1e-9},
                        offsets[] = {0, 0, 0.5, -7, 1e-30, 4503599627370497.5};
    while (n--) {
        double sign = random_next(state) & 1 ? -1 : 1;
        double p = sign * (double)(random_next(state) >> 11 >> random_next(state) % 53) *
                   (random_next(state) & 1 ? 1 : 0x1p-30);
        struct pe_place place;
        float *got = fence_side(&s->fence, s->width * sizeof(float), random_next(state) & 1);
        s->halves = random_next(state) & 1;
        s->cos_first = random_next(state) & 1;
        pe_place_of(&place, p, scales[random_next(state) % PE_COUNT(scales)],
                    offsets[random_next(state) % PE_COUNT(offsets)]);
        const struct pe_wave_out to = out_of(s, got);
        want_row(s, 0, &place);
        memset(got, 0x7f, s->width * sizeof(float));
        pe_wave_row(&s->wave, &place, &to);
        compare_rows(s, got, 1, (int64_t)p, 0);
    }
}

START_TEST(wave_rows_are_right_at_any_place) {
    const enum pe_instructions most = pe_instructions();
    uint64_t state = 5;
    for (enum pe_instructions set = 0; set <= most; set++) {
        for (size_t i = 0; i < PE_COUNT(widths); i++) {
            struct setup s = {0};
            setup_open(&s, widths[i], i % 2 ? 10000 : 1.5, set);
            check_places(&s, &state, widths[i] > 600 ? 60 : 400);
            setup_close(&s);
        }
    }
}
END_TEST

/* Rows in parts of 8, 64 and 512 pairs, the last of them what is left, are the row. */
START_TEST(wave_parts_are_of_the_row) {
    struct setup s = {0};
    struct pe_place place;
    setup_open(&s, 1046, 10000, pe_instructions());
    s.halves = true;
    pe_place_of(&place, 12345.75, 1, 0);
    want_row(&s, 0, &place);
    for (size_t size = 8; size <= 512; size *= 8) {
        float *got = fence_side(&s.fence, s.width * sizeof(float), true);
        memset(got, 0x7f, s.width * sizeof(float));
        for (size_t first = 0; first < s.n; first += size) {
            size_t n = s.n - first < size ? s.n - first : size;
            const struct pe_wave part = pe_wave_part(&s.wave, first, n);
            struct pe_wave_out to = out_of(&s, got + first);
            to.n_sin = to.n_cos = n;
            pe_wave_row(&part, &place, &to);
        }
        compare_rows(&s, got, 1, 12345, 0);
    }
    setup_close(&s);
}
END_TEST

/* Half a million values at each magnitude, in runs of 64 rows and, of those, eight rows singly. pe_phase_row itself
 * is held against MPFR by tests/exact, and so are more of these. */
START_TEST(wave_is_right_in_half_a_million_values) {
    const enum pe_instructions most = pe_instructions();
    static const int bits[] = {10, 20, 31, 53};
    uint64_t state = 7;
    struct setup s = {0};
    setup_open(&s, 512, 10000, most);
    for (int n = 0; n < 16 * (int)PE_COUNT(bits); n++) {
        int64_t furthest = (INT64_C(1) << bits[n % (int)PE_COUNT(bits)]) - 64;
        int64_t x = (int64_t)(random_next(&state) % (uint64_t)(2 * furthest)) - furthest;
        float *got = fence_side(&s.fence, 64 * s.width * sizeof(float), n % 2);
        for (int64_t row = 0; row < 64; row++) {
            struct pe_place place;
            const struct pe_wave_out to = out_of(&s, s.want + (size_t)row * s.width);
            pe_place_of(&place, (double)(x + row), 1, 0);
            pe_phase_row(&place, s.turns, s.n, PE_DTYPE_F32,
                         &(struct pe_phase_out){.sin = to.sin, .cos = to.cos, .step = to.step});
        }
        for (enum pe_instructions set = 0; set <= most; set++) {
            const struct pe_wave_out to = out_of(&s, got);
            s.wave.instructions = set;
            pe_wave_run(&s.wave, x, 1, 64, &to);
            compare_rows(&s, got, 64, x, 1);
            memset(got, 0x7f, 64 * s.width * sizeof(float));
            for (int64_t row = 0; row < 8; row++) {
                const struct pe_wave_out one = out_of(&s, got + (size_t)row * s.width);
                pe_wave_run(&s.wave, x + row, 0, 1, &one);
            }
            compare_rows(&s, got, 8, x, 1);
        }
    }
    setup_close(&s);
}
END_TEST

Suite *wave_suite(void) {
    Suite *suite = suite_create("wave");
    TCase *tcase = tcase_create("wave");
    tcase_add_test(tcase, wave_runs_have_the_bits_of_single_rows);
    tcase_add_test(tcase, wave_decides_what_is_next_to_zero);
    tcase_add_test(tcase, wave_rows_are_right_at_any_place);
    tcase_add_test(tcase, wave_parts_are_of_the_row);
    tcase_add_test(tcase, wave_is_right_in_half_a_million_values);
    suite_add_tcase(suite, tcase);
    return suite;
}
