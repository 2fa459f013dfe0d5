/* SPDX-License-Identifier: MIT
 *
 * Sinusoids against tests/golden/sinusoidal_values.h, which a script makes from the formula alone, and
 * against published figures, asked for as a user would: by the name of a preset.
 *
 * float32, float16 and bfloat16 must have the very bits of the truth, float64 may be one unit in the last
 * place off (at 0 that is the smallest number).
 */
#include "report_run.h"
#include "suites.h"

#include "golden/sinusoidal_values.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_WIDTH 512

/* ---- The script's values ------------------------------------------------------------------------------- */

static struct pe_plan *plan_of(const struct sinusoidal_case *row) {
    char name[40], value[40];
    int used = 0;
    struct pe_error err = {0};
    struct pe_plan *plan = NULL;
    struct pe_spec spec;
    struct pe_arena *arena = pe_arena_open(1 << 20, NULL, &err);
    ck_assert_int_eq(pe_spec_init(arena, &spec, "sinusoidal", &err), PE_OK);
    for (const char *at = row->params; sscanf(at, " %39[^=]=%39s%n", name, value, &used) == 2; at += used) {
        ck_assert_msg(pe_spec_set(arena, &spec, name, value, &err) == PE_OK, "%s: %s", name, err.text);
    }
    ck_assert_msg(pe_plan_open(&plan, &spec, &err) == PE_OK, "%s: %s", row->params, err.text);
    pe_arena_close(arena);
    ck_assert_uint_eq(pe_plan_width(plan), row->d_model);
    return plan;
}

/* Bits as a number on one line: neighbours differ by 1, and -0 is not 0 unless it is allowed to be. */
static int64_t order_of(uint64_t bits) {
    return bits >> 63 ? -(int64_t)(bits & INT64_MAX) : (int64_t)bits;
}

static void check_value(const struct sinusoidal_case *row, size_t column, enum pe_dtype dtype, uint64_t got) {
    const struct sinusoidal_value *value = &sinusoidal_values[row->first + column];
    const uint64_t wanted[] = {[PE_DTYPE_F64] = value->float64,
                               [PE_DTYPE_F32] = value->float32,
                               [PE_DTYPE_F16] = value->float16,
                               [PE_DTYPE_BF16] = value->bfloat16};
    int64_t apart = order_of(got) - order_of(wanted[dtype]);
    bool good = got == wanted[dtype] || (dtype == PE_DTYPE_F64 && apart >= -1 && apart <= 1);
    ck_assert_msg(good, "%s position %.17g column %zu %s: %#llx, not %#llx", row->params, row->position,
                  column, pe_dtype_name(dtype), (unsigned long long)got, (unsigned long long)wanted[dtype]);
}

START_TEST(values_of_the_script) {
    const struct sinusoidal_case *row = &sinusoidal_cases[_i];
    struct pe_positions positions = {.length = 1, .axes = 1, .list = &row->position};
    struct pe_plan *plan = plan_of(row);
    for (enum pe_dtype dtype = PE_DTYPE_F64; dtype < PE_DTYPE_COUNT; dtype++) {
        char out[8 * MAX_WIDTH];
        size_t size = pe_dtype_size(dtype);
        ck_assert_uint_le(row->d_model, MAX_WIDTH);
        pe_encode_rows(plan, &positions, dtype, 0, 1, out);
        for (size_t column = 0; column < row->d_model; column++) {
            uint64_t bits = 0;
            memcpy(&bits, out + column * size, size); /* little-endian, as all machines of the tests are */
            check_value(row, column, dtype, bits);
        }
    }
    pe_plan_close(plan);
}
END_TEST

/* ---- Published figures --------------------------------------------------------------------------------- */

/* The first numbers of a row from `column` on. */
static const struct figure {
    const char *query;
    double position;
    size_t column, n;
    double value[16], tolerance;
} figures[] = {
    /* Machine Learning Mastery, "A Gentle Introduction to Positional Encoding": n = 100, d = 4 */
    {"encoding=vaswani&d_model=4&base=100", 1, 0, 4, {.84147098, .54030231, .09983342, .99500417}, 1e-8},
    {"encoding=vaswani&d_model=4&base=100", 2, 0, 4, {.90929743, -.41614684, .19866933, .98006658}, 1e-8},
    {"encoding=vaswani&d_model=4&base=100", 3, 0, 4, {.14112001, -.9899925, .29552021, .95533649}, 1e-8},
    /* keras-hub, sine_position_encoding_test.py */
    {"encoding=vaswani&d_model=6", 3, 0, 6, {.14112, -.98999, .13879, .99032, .00646, .99997}, 1.1e-5},
    /* transformers, tests/models/roformer */
    {"encoding=roformer&d_model=6", 1, 0, 6, {.8415, .0464, .0022, .5403, .9989, 1.0}, 6e-5},
    {"encoding=roformer&d_model=6", 2, 0, 6, {.909297, .092699, .004309, -.416147, .995694, .999991}, 6e-7},
    /* transformers, tests/models/m2m_100: tokens [4, 10] with padding_idx 1 are at positions 2 and 3 */
    {"encoding=fairseq&d_model=6", 2, 0, 6, {.909297, .019999, .0002, -.416147, .9998, 1}, 6e-7},
    {"encoding=fairseq&d_model=6", 3, 0, 6, {.141120, .029996, .0003, -.989992, .99955, 1}, 6e-7},
    {"encoding=fairseq&d_model=6", 1, 0, 6, {0}, 0},
    {"encoding=tensor2tensor&d_model=6", 1, 0, 6, {.841471, .01, .0001, .540302, .99995, 1}, 6e-7},
    {"encoding=tensor2tensor&d_model=5", 1, 0, 5, {.841471, .0001, .540302, 1, 0}, 6e-7},
    {"encoding=tensor2tensor&d_model=2", 1, 0, 2, {.841471, .540302}, 6e-7},
    /* the lesson of d = 16, whole rows */
    {"encoding=vaswani&d_model=16",
     1,
     0,
     16,
     {.841471, .540302, .310984, .950415, .099833, .995004, .031618, .9995, .01, .99995, .003162, .999995,
      .001, 1, .000316, 1},
     6e-7},
    {"encoding=vaswani&d_model=16",
     3,
     0,
     16,
     {.141120, -.989992, .812649, .582754, .295520, .955336, .094726, .995503, .029996, .99955, .009487,
      .999955, .003, .999996, .000949, 1},
     6e-7},
    /* transformers, tests/models/marian: the rows that Marian's own tables hold, denominator d/2 - 1 */
    {"encoding=marian&d_model=512", 1, 0, 5, {.84147096, .82177866, .80180490, .78165019, .76140374}, 6e-8},
    {"encoding=marian&d_model=512", 2, 0, 5, {.90929741, .93651021, .95829457, .97505713, .98720258}, 6e-8},
    /* openai/whisper, sinusoids(1500, 384) */
    {"encoding=whisper&d_model=384", 1, 0, 3, {.841471, .815112, .788312}, 6e-7},
    {"encoding=whisper&d_model=384", 1, 192, 3, {.540302, .579303, .615275}, 6e-7},
    {"encoding=whisper&d_model=384", 1499, 191, 1, {.149339}, 6e-7},
    /* fairseq2, tests/unit/nn/test_position_encoder.py */
    {"encoding=whisper&d_model=32", 1, 0, 3, {.84147, .51514, .28870}, 6e-6},
    {"encoding=whisper&d_model=32", 1, 15, 3, {1.0e-4, .54030, .85711}, 6e-6},
    /* tensor2tensor, common_attention_test.py, add_timing_signals_given_positions: the columns of one axis */
    {"encoding=tensor2tensor&d_model=4", 5, 0, 4, {-.95892427, .0005, .28366219, .99999988}, 6e-8},
    /* DDPM, t = 999 of width 8 */
    {"encoding=ddpm&d_model=8",
     999,
     0,
     8,
     {-.02646075, .68486423, .8356485, .09973392, .99964985, -.7286707, -.54926458, .99501414},
     1e-8},
    {"encoding=ddpm&d_model=8",
     1,
     0,
     8,
     {.84147098, .04639922, .00215443, .0001, .54030231, .99892298, .99999768, 1},
     1e-8},
    /* sin p and cos p, and the second frequency of d = 128, far out (mpmath, 50 digits) */
    {"encoding=vaswani&d_model=2", 1000, 0, 2, {.8268795405, .5623790763}, 1e-10},
    {"encoding=vaswani&d_model=2", 8191, 0, 2, {-.7630067894, -.6463904698}, 1e-10},
    {"encoding=vaswani&d_model=2", 16384, 0, 2, {-.5599384657, -.8285341964}, 1e-10},
    {"encoding=vaswani&d_model=2", 100000, 0, 2, {.0357487980, -.9993608074}, 1e-10},
    {"encoding=vaswani&d_model=2", 131071, 0, 2, {-.5752416838, -.8179834994}, 1e-10},
    {"encoding=vaswani&d_model=2", 1e9, 0, 2, {.5458434494, .8378871814}, 1e-10},
    {"encoding=vaswani&d_model=2", 1e10, 0, 2, {-.4875060251, .8731196227}, 1e-10},
    {"encoding=vaswani&d_model=128", 131071, 2, 2, {-.2073307042, -.9782709129}, 1e-10},
    {"encoding=vaswani&d_model=128", 1e6, 2, 2, {-.0163605768, -.9998661568}, 1e-10},
};

START_TEST(published_figures_by_preset) {
    const struct figure *figure = &figures[_i];
    char request[200];
    snprintf(request, sizeof request, "GET /v1/encode?%s&positions=%.17g&dtype=float64", figure->query,
             figure->position);
    struct report_tensor got = report_tensor(request, NULL, "vectors");
    report_row(&got, figure->column, figure->tolerance, figure->value, figure->n);
}
END_TEST

/* PE(0).PE(k) depends on k alone (D2L and others plot it); the sums for d = 128 and 512 were recomputed with
 * mpmath. */
START_TEST(dot_products_depend_on_the_distance) {
    static const double first[] = {64, 62.09368, 57.38186, 47.18501, 42.82002, 38.93405, 34.95501},
                        second[] = {256, 249.10210, 231.73362, 189.59667, 173.78973, 157.57398, 131.09076};
    static const size_t distance[] = {0, 1, 2, 5, 10, 20, 50};
    for (int large = 0; large < 2; large++) {
        size_t d = large ? 512 : 128;
        char request[120];
        snprintf(request, sizeof request,
                 "GET /v1/encode?encoding=vaswani&d_model=%zu&positions=0:151&dtype=float64", d);
        struct report_tensor got = report_tensor(request, NULL, "vectors");
        for (size_t k = 0; k < PE_COUNT(distance); k++) {
            for (size_t from = 0; from <= 100; from += 50) {
                double sum = 0;
                for (size_t c = 0; c < d; c++) {
                    sum += got.values[from * d + c] * got.values[(from + distance[k]) * d + c];
                }
                ck_assert_double_eq_tol(sum, large ? second[k] : first[k], 6e-6);
            }
        }
    }
}
END_TEST

/* fairseq, tests/test_positional_encoding.py: relative positions run down from T - 1, at width 2. */
START_TEST(fairseq_relative_rows) {
    report_expect("GET /v1/encode?encoding=vaswani&d_model=2&positions=3:-4:-1&dtype=float64", NULL,
                  "vectors", REPORT_SHAPE(7, 2), 1e-4,
                  REPORT_VALUES(.1411, -.99, .9093, -.4161, .8415, .5403, 0, 1, -.8415, .5403, -.9093, -.4161,
                                -.1411, -.99));
}
END_TEST

Suite *golden_suite(void) {
    Suite *suite = suite_create("golden");
    TCase *script = tcase_create("script"), *published = tcase_create("published");
    suite_add_tcase(suite, script);
    suite_add_tcase(suite, published);
    tcase_add_loop_test(script, values_of_the_script, 0, (int)PE_COUNT(sinusoidal_cases));
    tcase_add_checked_fixture(published, report_setup, report_teardown);
    tcase_add_loop_test(published, published_figures_by_preset, 0, (int)PE_COUNT(figures));
    tcase_add_test(published, dot_products_depend_on_the_distance);
    tcase_add_test(published, fairseq_relative_rows);
    return suite;
}
