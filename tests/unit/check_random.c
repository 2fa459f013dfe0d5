/* SPDX-License-Identifier: MIT
 *
 * The encoding `random`: Philox against the published vectors, values against an independent script in 60
 * digits (tests/golden/make_random.py), moments against theory, and that a value depends on nothing but seed,
 * position and column.
 */
#include "suites.h"

#include "core/cells.h"
#include "core/rng.h"
#include "posenc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct random_value {
    int64_t seed, position;
    uint32_t column;
    const char *distribution;
    double std, value;
};
#include "../golden/random_values.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct pe_arena *arena;
static struct pe_error err;

static void setup(void) {
    err = (struct pe_error){0};
    arena = pe_arena_open((size_t)256 << 20, NULL, &err);
}

static void teardown(void) {
    pe_arena_close(arena);
}

/* A plan with parameters given as name, text, name, text ... NULL. */
static struct pe_plan *plan_open(const char *const *params) {
    struct pe_spec spec;
    struct pe_plan *plan = NULL;
    int code = pe_spec_init(arena, &spec, "random", &err);
    for (; !code && *params; params += 2) {
        code = pe_spec_set(arena, &spec, params[0], params[1], &err);
    }
    if (!code) {
        code = pe_plan_open(&plan, &spec, &err);
    }
    ck_assert_msg(!code, "%s: %s", err.path, err.text);
    return plan;
}
#define PLAN(...) plan_open((const char *const[]){__VA_ARGS__, NULL})

/* Vectors [n, D] of positions first, first+1 ... */
static double *encode(const struct pe_plan *plan, double first, size_t n) {
    struct pe_positions positions;
    int code = pe_positions_steps(&positions, first, 1, n, &err);
    double *out = pe_arena_array(arena, n * pe_plan_width(plan), sizeof *out, &err);
    ck_assert(!code && out && !pe_encode_check(plan, &positions, PE_DTYPE_F32, &err));
    pe_encode_rows(plan, &positions, PE_DTYPE_F64, 0, n, out);
    return out;
}

/* Published: Random123, file kat_vectors, lines "philox4x32 10". */
START_TEST(philox_gives_the_published_words) {
    static const struct {
        uint32_t counter[4], key[2], words[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    uint32_t words[4];
    pe_philox(words, known[_i].counter, known[_i].key);
    ck_assert_mem_eq(words, known[_i].words, sizeof words);
}
END_TEST

/* The distance in units of the last place of the true value. */
static double ulps(double got, double want) {
    int exponent;
    frexp(want, &exponent);
    return fabs(got - want) / ldexp(1, exponent - 53);
}

/* The table's value is the true one rounded (half an ulp) and ours promises 1: so one place of difference is
 * allowed. But the sum of two doubles behind ours has an error of a few hundredths of an ulp for most values,
 * so few may fall to the other side: 1 in 50. */
START_TEST(values_are_those_of_the_independent_script) {
    size_t compared = 0, differing = 0;
    for (size_t i = 0; i < COUNT(random_values); i++) {
        const struct random_value *want = &random_values[i];
        if (want->column > 600 && i % 8) {
            continue; /* wide vectors are slow to make: some of them will do */
        }
        char seed[32], width[32], std[32];
        snprintf(seed, sizeof seed, "%lld", (long long)want->seed);
        snprintf(width, sizeof width, "%u", want->column < 65536 - 3 ? want->column + 3 : 65536);
        snprintf(std, sizeof std, "%.17g", want->std);
        struct pe_plan *plan =
            PLAN("d_model", width, "seed", seed, "distribution", want->distribution, "std", std);
        double got = encode(plan, (double)want->position, 1)[want->column];
        ck_assert_msg(ulps(got, want->value) <= 1, "seed %lld position %lld column %u %s std %g: %a is %a",
                      (long long)want->seed, (long long)want->position, want->column, want->distribution,
                      want->std, want->value, got);
        compared++;
        differing += got != want->value;
        pe_plan_close(plan);
    }
    ck_assert_uint_gt(compared, COUNT(random_values) / 2);
    ck_assert_msg(differing * 50 <= compared, "%zu of %zu differ", differing, compared);
}
END_TEST

/* For n independent samples of a normal distribution the standard errors are 1/sqrt(n) of the mean,
 * 1/sqrt(2n) of the standard deviation and sqrt(24/n) of the kurtosis. The even distribution has kurtosis
 * 9/5 and smaller errors. Five standard errors at n = 10^6: 0.005, 0.0036, 0.0245; and the numbers are fixed,
 * so the test cannot fail by chance. */
START_TEST(moments_are_those_of_the_distribution) {
    static const struct {
        const char *distribution;
        double kurtosis, largest;
    } rows[] = {{"gaussian", 3, 8.66}, {"uniform", 1.8, 1.7320508075688773}};
    struct pe_plan *plan =
        PLAN("d_model", "1000", "seed", "3", "distribution", rows[_i].distribution, "std", "2");
    const size_t n = 1000000;
    const double *v = encode(plan, -500, n / 1000);
    double sum = 0, squares = 0, fourths = 0, largest = 0;
    for (size_t i = 0; i < n; i++) {
        double x = v[i] / 2;
        sum += x;
        squares += x * x;
        fourths += x * x * x * x;
        largest = fabs(x) > largest ? fabs(x) : largest;
    }
    double mean = sum / (double)n, variance = squares / (double)n - mean * mean;
    ck_assert_double_eq_tol(mean, 0, 0.005);
    ck_assert_double_eq_tol(sqrt(variance), 1, 0.0036);
    ck_assert_double_eq_tol(fourths / (double)n / (variance * variance), rows[_i].kurtosis, 0.0245);
    ck_assert_double_le(largest, rows[_i].largest);
    pe_plan_close(plan);
}
END_TEST

/* The same bits from any start, in any width, in any order. */
/* sqrt(2*54*ln(2)), of words that are all 0: limits that are held beforehand count on it. */
START_TEST(the_largest_normal_number) {
    const uint32_t words[4] = {0};
    const struct pe_cells seeded = {.std = 1};
    double most = pe_random_gaussian(words, 1), bound = pe_cells_largest(&seeded, NULL);
    ck_assert_double_eq_tol(most, 8.6522, 1e-4);
    ck_assert_double_ge(bound, most);
    ck_assert_double_le(bound, 1.001 * most);
}
END_TEST

START_TEST(a_value_depends_on_seed_position_and_column_only) {
    struct pe_plan *wide = PLAN("d_model", "700", "seed", "9"), *narrow = PLAN("d_model", "5", "seed", "9");
    struct pe_plan *other = PLAN("d_model", "700", "seed", "10");
    const double *all = encode(wide, -3, 9), *some = encode(narrow, 2, 2), *seeded = encode(other, -3, 9);
    for (size_t t = 0; t < 2; t++) {
        ck_assert_mem_eq(all + (t + 5) * 700, some + t * 5, 5 * sizeof *all);
    }
    for (size_t i = 0; i < (size_t)9 * 700; i++) {
        ck_assert_double_ne(all[i], seeded[i]);
        ck_assert_double_ne(all[i], all[(i + 700) % (9 * 700)]);
    }
    pe_plan_close(wide);
    pe_plan_close(narrow);
    pe_plan_close(other);
}
END_TEST

START_TEST(narrow_types_are_the_double_rounded_once) {
    struct pe_plan *plan = PLAN("d_model", "300");
    const double *exact = encode(plan, 0, 4);
    struct pe_positions positions;
    ck_assert(!pe_positions_steps(&positions, 0, 1, 4, &err));
    for (int dtype = PE_DTYPE_F32; dtype < PE_DTYPE_COUNT; dtype++) {
        unsigned char got[4 * 300 * 4], want[4 * 300 * 4];
        pe_encode_rows(plan, &positions, (enum pe_dtype)dtype, 0, 4, got);
        pe_dtype_store((enum pe_dtype)dtype, exact, (size_t)4 * 300, want);
        ck_assert_mem_eq(got, want, 4 * 300 * pe_dtype_size((enum pe_dtype)dtype));
    }
    pe_plan_close(plan);
}
END_TEST

START_TEST(fractions_are_refused_at_their_index) {
    static const struct {
        const char *positions, *path;
    } rows[] = {
        {"0,1,2.5,3.5", "positions[2]"},
        {"[[0,1],[2,-0.5]]", "positions[1][1]"},
        {"0.5:3", "positions[0]"},
        {"0:3:0.5", "positions[1]"},
    };
    struct pe_plan *plan = PLAN("d_model", "2");
    struct pe_positions positions;
    ck_assert(!pe_positions_parse(arena, &positions, rows[_i].positions, &err));
    ck_assert_int_eq(pe_encode_check(plan, &positions, PE_DTYPE_F32, &err), PE_ERR_RANGE);
    ck_assert_str_eq(err.path, rows[_i].path);
    pe_plan_close(plan);
}
END_TEST

Suite *random_suite(void) {
    Suite *suite = suite_create("random");
    TCase *tc = tcase_create("random");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, philox_gives_the_published_words, 0, 3);
    tcase_add_test(tc, values_are_those_of_the_independent_script);
    tcase_add_loop_test(tc, moments_are_those_of_the_distribution, 0, 2);
    tcase_add_test(tc, the_largest_normal_number);
    tcase_add_test(tc, a_value_depends_on_seed_position_and_column_only);
    tcase_add_test(tc, narrow_types_are_the_double_rounded_once);
    tcase_add_loop_test(tc, fractions_are_refused_at_their_index, 0, 4);
    suite_add_tcase(suite, tc);
    return suite;
}
