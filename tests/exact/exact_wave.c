/* SPDX-License-Identifier: MIT
 *
 * Sinusoids in float32 as they are made many rows at a time, from each instruction set, against MPFR: 64 rows in
 * equal steps, and the same rows in an order that has none. Each value of the reference is compared with all of
 * them.
 *
 *     random      n values each at positions up to 2^10, 2^20, 2^31 and 2^53
 *     near zero   rows around the positions of the convergents, and 2 and 3 times these
 */
#include "exact.h"

#include "instructions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREC      320 /* of angles below 2^57, values down to 2^-70 and 24 bits of them: 170 more than needed */
#define ROWS      64
#define MAX_PAIRS 64
#define ORDERS    2 /* of rows: as they are, and mixed */

struct setup {
    int d, scale;
    bool halves, cos_first;
    double base;
};

struct waves {
    struct setup setup;
    struct pe_arena *arena;
    struct pe_plan *plan[PE_INSTRUCTIONS_COUNT];
    int n_plans; /* for the instruction sets that this processor has */
    struct counts *counts;
    mpfr_t frequency[MAX_PAIRS], angle, sin, cos;
    float got[PE_INSTRUCTIONS_COUNT][ORDERS][ROWS][2 * MAX_PAIRS];
};

static void set(struct waves *w, struct pe_spec *spec, const char *name, const char *value) {
    struct pe_error err = {0};
    if (pe_spec_set(w->arena, spec, name, value, &err)) {
        fprintf(stderr, "exact: %s: %s\n", err.path, err.text);
        abort();
    }
}

static void plans_open(struct waves *w) {
    const struct setup *s = &w->setup;
    struct pe_error err = {0};
    struct pe_spec spec;
    char text[3][40];
    snprintf(text[0], sizeof text[0], "%d", s->d);
    snprintf(text[1], sizeof text[1], "%.17g", s->base);
    snprintf(text[2], sizeof text[2], "%d", s->scale);
    w->arena = pe_arena_open((size_t)1 << 20, NULL, &err);
    if (!w->arena || pe_spec_init(w->arena, &spec, "sinusoidal", &err)) {
        abort();
    }
    set(w, &spec, "d_model", text[0]);
    set(w, &spec, "base", text[1]);
    set(w, &spec, "position_scale", text[2]);
    set(w, &spec, "layout", s->halves ? "halves" : "interleaved");
    set(w, &spec, "order", s->cos_first ? "cos_sin" : "sin_cos");
    for (int i = 0; i < w->n_plans; i++) {
        instructions_limit((enum pe_instructions)i);
        if (pe_plan_open(&w->plan[i], &spec, &err)) {
            abort();
        }
    }
}

static void plans_close(struct waves *w) {
    for (int i = 0; i < w->n_plans; i++) {
        pe_plan_close(w->plan[i]);
    }
    pe_arena_close(w->arena);
}

static void frequencies(struct waves *w) {
    for (int pair = 0; pair < w->setup.d / 2; pair++) {
        mpfr_set_si(w->angle, -2L * pair, MPFR_RNDN);
        mpfr_div_si(w->angle, w->angle, w->setup.d, MPFR_RNDN);
        mpfr_set_d(w->frequency[pair], w->setup.base, MPFR_RNDN);
        mpfr_pow(w->frequency[pair], w->frequency[pair], w->angle, MPFR_RNDN);
    }
}

/* Row i is where row i*29 + 1 would be: no three follow in equal steps for long. */
static size_t mixed(size_t row) {
    return (row * 29 + 1) % ROWS;
}

/* Rows first, first + step, ... from all plans, in both orders. */
static void encode(struct waves *w, double first, double step) {
    double list[ORDERS][ROWS];
    for (size_t i = 0; i < ROWS; i++) {
        list[0][i] = first + (double)i * step;
    }
    for (size_t i = 0; i < ROWS; i++) {
        list[1][i] = list[0][mixed(i)];
    }
    for (int i = 0; i < w->n_plans; i++) {
        for (int order = 0; order < ORDERS; order++) {
            struct pe_positions positions = {.length = ROWS, .axes = 1, .list = list[order]};
            float rows[ROWS * 2 * MAX_PAIRS];
            pe_encode_rows(w->plan[i], &positions, PE_DTYPE_F32, 0, ROWS, rows);
            for (size_t row = 0; row < ROWS; row++) {
                memcpy(w->got[i][order][order ? mixed(row) : row], rows + row * (size_t)w->setup.d,
                       (size_t)w->setup.d * sizeof(float));
            }
        }
    }
}

static void compare(struct waves *w, double position, size_t row, int column, double want) {
    const struct setup *s = &w->setup;
    for (int i = 0; i < w->n_plans; i++) {
        for (int order = 0; order < ORDERS; order++) {
            double got = (double)w->got[i][order][row][column];
            if (exact_compare(w->counts, PE_DTYPE_F32, got, want)) {
                printf("%s, row %zu%s: d=%d base=%.17g %s %s scale=%d: position %.17g column %d is %a, must "
                       "be %a\n",
                       instructions_name((enum pe_instructions)i), row, order ? " mixed" : "", s->d, s->base,
                       s->halves ? "halves" : "interleaved", s->cos_first ? "cos_sin" : "sin_cos", s->scale,
                       position, column, got, want);
            }
        }
    }
}

/* A pair of a row that `encode` made. */
static void check_pair(struct waves *w, double position, size_t row, int pair) {
    const struct setup *s = &w->setup;
    int first = s->halves ? pair : 2 * pair, second = s->halves ? pair + s->d / 2 : 2 * pair + 1;
    mpfr_mul_d(w->angle, w->frequency[pair], position, MPFR_RNDN);
    mpfr_mul_si(w->angle, w->angle, s->scale, MPFR_RNDN);
    if (mpfr_zero_p(w->angle)) { /* sin 0 is +0, whatever the sign of the zero */
        mpfr_set_zero(w->angle, 1);
    }
    mpfr_sin_cos(w->sin, w->cos, w->angle, MPFR_RNDN); /* no float32 of ours is subnormal */
    compare(w, position, row, s->cos_first ? second : first, mpfr_get_d(w->sin, MPFR_RNDN));
    compare(w, position, row, s->cos_first ? first : second, mpfr_get_d(w->cos, MPFR_RNDN));
}

static void random_setup(struct setup *s, struct random *r, bool scaled) {
    static const double bases[] = {10000, 10000, 10, 500000, 1.5, 1e6};
    static const int scales[] = {1, 1, 1, -1, 2, 3, -7, 10}, widths[] = {16, 32, 64, 72, 94, 128};
    uint64_t bits = random_bits(r);
    *s = (struct setup){.d = widths[random_below(r, sizeof widths / sizeof *widths)],
                        .scale = scaled ? scales[random_below(r, sizeof scales / sizeof *scales)] : 1,
                        .halves = bits & 1,
                        .cos_first = bits >> 1 & 1,
                        .base = bases[random_below(r, sizeof bases / sizeof *bases)]};
}

/* n values of which the magnitudes of positions go up to 2^bits. */
static void check_random(struct waves *w, struct random *r, int bits, long n) {
    static const int steps[] = {1, 1, 1, 1, -1, 2, 5, 1};
    const double most = ldexp(1, bits);
    while (n > 0) {
        random_setup(&w->setup, r, bits < 50);
        double step = steps[random_below(r, sizeof steps / sizeof *steps)];
        double first = (double)(random_bits(r) >> 11) * 0x1p-53 * (2 * most - 10 * ROWS);
        first = floor(first) - most + 5 * ROWS;
        plans_open(w);
        frequencies(w);
        encode(w, first, step);
        for (size_t row = 0; row < ROWS && n > 0; row++, n -= w->setup.d) {
            for (int pair = 0; pair < w->setup.d / 2; pair++) {
                check_pair(w, first + (double)row * step, row, pair);
            }
        }
        plans_close(w);
    }
}

static void check_near_zero(struct waves *w, int pair) {
    double denominators[MAX_CONVERGENTS];
    int n = exact_convergents(w->frequency[pair], denominators);
    for (int i = 0; i < 3 * n; i++) {
        double position = (i % 3 + 1) * denominators[i / 3], sign = i & 1 ? -1 : 1;
        size_t row =
            (size_t)(i * 7 + pair) % ROWS; /* in turn all places of a block, and of the rows of an anchor */
        if (position + ROWS <= PE_POSITION_MAX) {
            encode(w, sign * (position - (double)row), sign);
            check_pair(w, sign * position, row, pair);
        }
    }
}

void exact_wave(struct counts *counts, struct random *r, long n) {
    static const double bases[] = {10000, 500000, 10};
    static const int bits[] = {10, 20, 31, 53};
    struct waves *w = calloc(1, sizeof *w);
    if (!w) {
        abort();
    }
    w->counts = counts;
    w->n_plans = (int)pe_instructions() + 1;
    mpfr_inits2(PREC, w->angle, (mpfr_ptr)NULL);
    mpfr_inits2(24, w->sin, w->cos, (mpfr_ptr)NULL);
    for (int pair = 0; pair < MAX_PAIRS; pair++) {
        mpfr_init2(w->frequency[pair], PREC);
    }
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        check_random(w, r, bits[i], n);
    }
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
        w->setup =
            (struct setup){.d = 32, .scale = 1, .halves = i == 1, .cos_first = i == 2, .base = bases[i]};
        plans_open(w);
        frequencies(w);
        for (int pair = 0; pair < w->setup.d / 2; pair++) {
            check_near_zero(w, pair);
        }
        plans_close(w);
    }
    for (int pair = 0; pair < MAX_PAIRS; pair++) {
        mpfr_clear(w->frequency[pair]);
    }
    mpfr_clears(w->angle, w->sin, w->cos, (mpfr_ptr)NULL);
    free(w);
}
