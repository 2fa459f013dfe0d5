/* SPDX-License-Identifier: MIT
 *
 * Sinusoids that are added as they are made, from every instruction set that this processor has: the bits of
 * pe_phase_row's values added one by one, in place or not, at odd widths, numbers of rows and alignments, between pages
 * that may not be touched.
 */
#include "suites.h"

#include "core/ladder.h"
#include "fence.h"
#include "instructions.h"
#include "kernels/wave_add.h"
#include "posenc_fields.h"
#include "random.h"
#include "unit/expect.h"

#include <stdlib.h>
#include <string.h>

#define MOST_ROWS ((size_t)140)
#define WIDEST    ((size_t)4097)

struct setup {
    size_t width, n; /* columns, pairs */
    struct pe_turn *turns;
    void *tables;
    struct pe_wave wave;
    struct fence x, out;
    float *want;
};

static void setup_open(struct setup *s, size_t width, enum pe_instructions set) {
    const size_t bytes = MOST_ROWS * width * sizeof(float);
    s->width = width;
    s->n = (width + 1) / 2;
    s->turns = calloc(s->n, sizeof *s->turns);
    s->tables = aligned_alloc(64, (pe_wave_bytes(s->n) + 63) / 64 * 64);
    s->want = calloc(MOST_ROWS * width, sizeof *s->want);
    ck_assert(s->turns && s->tables && s->want);
    pe_ladder_fill(s->turns, s->n, 10000, 2, (uint32_t)(width < 2 ? 2 : width));
    instructions_limit(set);
    pe_wave_open(&s->wave, s->tables, s->turns, s->n, 1, width % 2);
    ck_assert_int_eq(s->wave.instructions, set);
    fence_make(&s->x, bytes);
    fence_make(&s->out, bytes);
}

static void setup_close(struct setup *s) {
    free(s->turns);
    free(s->tables);
    free(s->want);
    fence_drop(&s->x);
    fence_drop(&s->out);
}

static struct pe_wave_out rows_of(const struct setup *s, float *row, bool halves, bool cos_first) {
    float *second = row + (halves ? s->n : 1);
    return (struct pe_wave_out){.sin = cos_first ? second : row,
                                .cos = cos_first ? row : second,
                                .step = halves ? 1 : 2,
                                .n_sin = cos_first ? s->width / 2 : s->n,
                                .n_cos = cos_first ? s->n : s->width / 2,
                                .stride = s->width};
}

/* s->want: x*scale + values */
static void want_rows(const struct setup *s, const float *x, float scale, int64_t from, int64_t step,
                      size_t rows, bool halves, bool cos_first) {
    for (size_t row = 0; row < rows; row++) {
        const struct pe_wave_out to = rows_of(s, s->want + row * s->width, halves, cos_first);
        struct pe_place place;
        pe_place_of(&place, (double)(from + (int64_t)row * step), 1, 0);
        for (size_t i = 0; i < s->n; i++) {
            pe_phase_row(&place, &s->turns[i], 1, PE_DTYPE_F32,
                         &(struct pe_phase_out){.sin = i < to.n_sin ? to.sin + i * to.step : NULL,
                                                .cos = i < to.n_cos ? to.cos + i * to.step : NULL,
                                                .step = 1});
        }
    }
    for (size_t i = 0; i < rows * s->width; i++) {
        const float product = x[i] * scale;
        s->want[i] = product + s->want[i];
    }
}

static void check_sum(struct setup *s, uint64_t *state) {
    static const size_t counts[] = {1, 2, 7, 8, 9, 15, 16, 17, 23, 24, 25, 33, 64, 71, 72, 73, MOST_ROWS};
    static const int64_t starts[] = {0, 1, -3, -100, 12345, 1048577, 9007199254700001},
                         steps[] = {1, 1, -1, 3};
    static const float scales[] = {1, 22.627417F, -0.3F};
    const uint64_t bits = random_next(state);
    const bool halves = bits & 1, cos_first = bits >> 1 & 1, at_end = bits >> 2 & 1, in_place = bits >> 3 & 1;
    const size_t rows = counts[random_next(state) % PE_COUNT(counts)], numbers = rows * s->width;
    const int64_t from = starts[random_next(state) % PE_COUNT(starts)],
                  step = steps[random_next(state) % PE_COUNT(steps)];
    const float scale = scales[random_next(state) % PE_COUNT(scales)];
    float *x = fence_side(&s->x, numbers * sizeof *x, at_end);
    float *out = in_place ? x : fence_side(&s->out, numbers * sizeof *out, !at_end);
    for (size_t i = 0; i < numbers; i++) {
        x[i] = (float)(int64_t)random_next(state) * 0x1p-60F;
    }
    want_rows(s, x, scale, from, step, rows, halves, cos_first);
    const struct pe_wave_out to = rows_of(s, out, halves, cos_first);
    pe_wave_add(&s->wave, from, step, rows, &to, &(struct pe_wave_sum){x, out, (double)scale});
    for (size_t i = 0; i < numbers; i++) {
        EXPECT(memcmp(&out[i], &s->want[i], sizeof *out) == 0,
               "%s: width %zu %s %s%s x %lld step %lld: row %zu of %zu, column %zu is %a, not %a",
               instructions_name(s->wave.instructions), s->width, halves ? "halves" : "interleaved",
               cos_first ? "cos_sin" : "sin_cos", in_place ? " in place" : "", (long long)from,
               (long long)step, i / s->width, rows, i % s->width, (double)out[i], (double)s->want[i]);
    }
}

START_TEST(wave_add_adds_the_bits_of_single_rows) {
    static const size_t widths[] = {1, 2, 3, 7, 16, 31, 130, 511, 512, 513, 1026, WIDEST};
    const enum pe_instructions most = pe_instructions();
    for (enum pe_instructions set = 0; set <= most; set++) {
        uint64_t state = 13;
        for (size_t i = 0; i < PE_COUNT(widths); i++) {
            struct setup s;
            setup_open(&s, widths[i], set);
            for (int k = 0; k < (widths[i] > 200 ? 8 : 40); k++) {
                check_sum(&s, &state);
            }
            setup_close(&s);
        }
    }
}
END_TEST

Suite *wave_add_suite(void) {
    Suite *suite = suite_create("wave_add");
    TCase *tcase = tcase_create("wave_add");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, wave_add_adds_the_bits_of_single_rows);
    suite_add_tcase(suite, tcase);
    return suite;
}
