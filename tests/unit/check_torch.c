/* SPDX-License-Identifier: MIT
 *
 * The replays float32_pow and float32_exp against PyTorch itself (make_torch.py): frequencies bit by bit,
 * sines and cosines the nearest ones where PyTorch's are, and next to its where not.
 */
#include "suites.h"

#include "core/replay.h"
#include "core/torch.h"
#include "posenc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDEST 1024 /* of torch_sums */

struct torch_ladder {
    const char *arithmetic;
    double base;
    size_t d;
    float rates[256];
};
struct torch_sum {
    const char *arithmetic;
    double base;
    uint32_t first; /* of 128 widths, as far as WIDEST */
    uint64_t sum;
};
struct torch_elementary {
    const char *name;
    size_t n;
    uint64_t sum;
};
struct torch_table {
    const char *arithmetic;
    double base;
    size_t beside; /* values of PyTorch that are not the nearest */
    float rows[20][64];
};
#include "../golden/torch_values.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ---- Frequencies --------------------------------------------------------------------------------------- */

static size_t rates_of(const char *arithmetic, double base, uint32_t d, float *rates) {
    const struct pe_replay_ladder ladder = {.base = base, .num = 2, .den = d};
    bool power = strcmp(arithmetic, "float32_pow") == 0;
    struct pe_replay replay;
    struct pe_error err = {0};
    size_t n = (d + 1) / 2;
    int code = pe_replay_open(&replay, power ? PE_ARITHMETIC_FLOAT32_POW : PE_ARITHMETIC_FLOAT32_EXP, rates,
                              n, &ladder, &err);
    ck_assert_int_eq(code, 0);
    return n;
}

START_TEST(frequencies_are_those_of_torch) {
    float rates[256];
    for (size_t i = 0; i < COUNT(torch_ladders); i++) {
        const struct torch_ladder *row = &torch_ladders[i];
        size_t n = rates_of(row->arithmetic, row->base, (uint32_t)row->d, rates);
        for (size_t k = 0; k < n; k++) {
            ck_assert_msg(rates[k] == row->rates[k], "%s base %g width %zu: frequency %zu is %a, not %a",
                          row->arithmetic, row->base, row->d, k, (double)rates[k], (double)row->rates[k]);
        }
    }
}
END_TEST

START_TEST(frequencies_of_every_width) {
    float rates[WIDEST / 2];
    for (size_t i = 0; i < COUNT(torch_sums); i++) {
        const struct torch_sum *row = &torch_sums[i];
        uint64_t sum = 0, at = 1;
        for (uint32_t d = row->first; d < row->first + 128 && d <= WIDEST; d++) {
            size_t n = rates_of(row->arithmetic, row->base, d, rates);
            for (size_t k = 0; k < n; k++, at += 2) {
                sum += at * bits_of(rates[k]);
            }
        }
        ck_assert_msg(sum == row->sum, "%s base %g, widths from %u", row->arithmetic, row->base, row->first);
    }
}
END_TEST

/* ---- Exponentials and powers --------------------------------------------------------------------------- */

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float step(uint64_t i) {
    return (float)(i * 2654435761u % ((uint64_t)1 << 32) / 256) / 0x1p24F;
}

static float elementary(const char *name, size_t i) {
    if (strcmp(name, "exp") == 0) {
        return pe_torch_exp(-float_of(bits_of(1e-8F) + 509 * (uint32_t)i));
    }
    float base = 1 + step(i + ((uint64_t)1 << 18)) * 0x1p20F;
    return pe_torch_pow(base, step(i), 0, strcmp(name, "pow") == 0 ? 16 : 15);
}

START_TEST(exponentials_and_powers_of_other_numbers) {
    const struct torch_elementary *row = &torch_elementaries[_i];
    uint64_t sum = 0;
    for (size_t i = 0; i < row->n; i++) {
        sum += (2 * i + 1) * bits_of(elementary(row->name, i));
    }
    ck_assert_msg(sum == row->sum, "%s", row->name);
}
END_TEST

/* Beyond what sums show one by one: ends of the range, and where the exponent alone decides. */
START_TEST(exact_powers) {
    for (size_t n = 1; n <= 16; n += 15) {
        for (int k = 0; k < 127; k++) {
            ck_assert(pe_torch_pow(ldexpf(1, k), 0, 0, n) == 1);
            ck_assert(pe_torch_pow(ldexpf(1, k), 1, 0, n) == ldexpf(1, k));
            ck_assert(pe_torch_pow(ldexpf(1, k), .5F, 0, n) ==
                      (k % 2 ? sqrtf(ldexpf(1, k)) : ldexpf(1, k / 2)));
        }
        ck_assert(pe_torch_pow(1, .3F, 0, n) == 1);
    }
    ck_assert(pe_torch_exp(0) == 1 && pe_torch_exp(-0.0F) == 1);
}
END_TEST

/* ---- Sines and cosines --------------------------------------------------------------------------------- */

static struct pe_arena *arena;
static struct pe_error err;

static void setup(void) {
    memset(&err, 0, sizeof err);
    arena = pe_arena_open((size_t)64 << 20, NULL, &err);
}

static void teardown(void) {
    pe_arena_close(arena);
}

static struct pe_plan *plan_of(const char *type, const struct torch_table *table) {
    static const char *const names[2][4] = {{"head_dim", "64", "layout", "halves"},
                                            {"d_model", "64", "layout", "halves"}};
    bool sinusoidal = strcmp(type, "sinusoidal") == 0;
    const char *const *name = names[sinusoidal];
    char base[40];
    struct pe_spec spec;
    struct pe_plan *plan = NULL;
    snprintf(base, sizeof base, "%.17g", table->base);
    ck_assert(pe_spec_init(arena, &spec, type, &err) == 0 &&
              pe_spec_set(arena, &spec, name[0], name[1], &err) == 0 &&
              pe_spec_set(arena, &spec, name[2], name[3], &err) == 0 &&
              pe_spec_set(arena, &spec, "base", base, &err) == 0 &&
              pe_spec_set(arena, &spec, "arithmetic", table->arithmetic, &err) == 0);
    ck_assert(!sinusoidal || pe_spec_set(arena, &spec, "order", "cos_sin", &err) == 0);
    ck_assert_msg(pe_plan_open(&plan, &spec, &err) == 0, "%s", err.text);
    return plan;
}

/* How many of the values are the neighbours of PyTorch's; none is farther away. */
static size_t compare(const struct torch_table *table, const float *got) {
    size_t beside = 0;
    for (size_t i = 0; i < COUNT(table->rows) * TORCH_D; i++) {
        float wanted = table->rows[i / TORCH_D][i % TORCH_D];
        bool zero = got[i] == 0 && wanted == 0; /* -0 is 0 */
        long off = zero ? 0 : labs((long)bits_of(got[i]) - (long)bits_of(wanted));
        ck_assert_msg(off <= 1, "%s base %g at %.0f, column %zu: %a, not %a", table->arithmetic, table->base,
                      torch_positions[i / TORCH_D], i % TORCH_D, (double)got[i], (double)wanted);
        beside += off != 0;
    }
    return beside;
}

START_TEST(tables_of_torch) {
    const struct torch_table *table = &torch_tables[_i];
    const struct pe_positions at = {.length = COUNT(torch_positions), .axes = 1, .list = torch_positions};
    float got[COUNT(torch_positions)][TORCH_D];
    struct pe_plan *plan = plan_of("rope", table);
    const struct pe_rotary_rows rows = {
        .plan = plan, .positions = &at, .dtype = PE_DTYPE_F32, .form = PE_TRIG_PACKED};
    pe_rotary_fill(&rows, 0, at.length, got, NULL);
    pe_plan_close(plan);
    ck_assert_uint_eq(compare(table, got[0]), table->beside);
    plan = plan_of("sinusoidal", table);
    pe_encode_rows(plan, &at, PE_DTYPE_F32, 0, at.length, got);
    pe_plan_close(plan);
    ck_assert_uint_eq(compare(table, got[0]), table->beside);
}
END_TEST

Suite *torch_suite(void) {
    Suite *suite = suite_create("torch");
    TCase *tests = tcase_create("torch");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, frequencies_are_those_of_torch);
    tcase_add_test(tests, frequencies_of_every_width);
    tcase_add_loop_test(tests, exponentials_and_powers_of_other_numbers, 0, (int)COUNT(torch_elementaries));
    tcase_add_test(tests, exact_powers);
    tcase_add_loop_test(tests, tables_of_torch, 0, (int)COUNT(torch_tables));
    return suite;
}
