/* SPDX-License-Identifier: MIT
 *
 * Public bug reports on precision: positions, angles or tables kept in the model's 16 bits, and angles in
 * float32. Each test is named after a project and its report. Numbers of many digits were computed with
 * mpmath at 40 digits; where none is written down, plain double arithmetic is right to 1e-10 and better.
 *
 * Some of these are about rotary encodings; sinusoids take the same angles, so the numbers are the same. Not
 * here: the periods that DINOv3 keeps in bfloat16, an option of rotary encodings.
 */
#include "report_run.h"
#include "suites.h"

#include <math.h>
#include <string.h>

static const char *const dtypes[] = {"float64", "float32", "float16", "bfloat16"};
static const int digits[] = {53, 24, 11, 8};          /* bits of a significand */
static const int lowest[] = {-1074, -149, -24, -133}; /* exponent of the smallest number */

/* Half of the last place that a number has in a type. */
static double half_place(double x, size_t type) {
    int exponent;
    frexp(x, &exponent);
    int place = exponent - digits[type];
    return ldexp(0.5, place < lowest[type] ? lowest[type] : place);
}

static struct report_tensor encode(size_t d_model, const char *positions, size_t type, const char *more) {
    char request[300];
    snprintf(request, sizeof request,
             "GET /v1/encode?type=sinusoidal&d_model=%zu&positions=%s&format=raw&dtype=%s%s", d_model,
             positions, dtypes[type], more);
    return report_tensor(request, NULL, "vectors");
}

/* Sine and cosine of p, each as near as its type can be. */
static void expect_pair(const char *p, double sine, double cosine) {
    for (size_t type = 0; type < PE_COUNT(dtypes); type++) {
        struct report_tensor got = encode(2, p, type, "");
        double slack = type ? 1e-16 : 2.3e-16;
        ck_assert_double_eq_tol(got.values[0], sine, half_place(sine, type) + slack);
        ck_assert_double_eq_tol(got.values[1], cosine, half_place(cosine, type) + slack);
    }
}

/* All columns at a position, in each type. */
static void expect_row(size_t d_model, double p) {
    char text[40];
    snprintf(text, sizeof text, "%.17g", p);
    for (size_t type = 0; type < PE_COUNT(dtypes); type++) {
        struct report_tensor got = encode(d_model, text, type, "");
        ck_assert_uint_eq(got.n, d_model);
        for (size_t c = 0; c < d_model; c++) {
            double right = report_paper(p, c, d_model);
            ck_assert_double_eq_tol(got.values[c], right, half_place(right, type) + 4e-16 * (1 + p));
        }
    }
}

/* 257 is no bfloat16: positions from there on fell together in pairs, then in fours. */
START_TEST(transformers_29285_25681_positions_from_257) {
    expect_pair("256", -0.9992080341070627, -0.03979075993115771);
    expect_pair("257", -0.57335717481554264, 0.8193055291449822);
    expect_row(128, 257);
    expect_row(128, 1027);
}
END_TEST

/* 2049 is no float16: equal to 2048; from 65520 on all positions were infinite, and the vectors NaN. */
START_TEST(megatron_535_positions_from_2049_and_65520) {
    expect_pair("2048", -0.31305701279012341, 0.94973433482365189);
    expect_pair("2049", 0.63002846015123549, 0.77657204392088638);
    expect_pair("65519", -0.88440115950299396, -0.4667275319388817);
    expect_pair("65520", -0.87058166172949382, 0.49202395293350628);
    expect_pair("65536", 0.69206545382272325, -0.7218347509126643);
    expect_row(128, 2049);
    expect_row(128, 65520);
}
END_TEST

/* 4095 became 4096 in bfloat16, and more than half of the columns were wrong, the worst by .828. */
START_TEST(sglang_jax_1472_1473_position_4095) {
    expect_pair("4095", -0.9978212103769744, -0.065975996558064896);
    expect_pair("4096", -0.59464198760821467, 0.80399061348584902);
    expect_row(128, 4095);
}
END_TEST

/* 15962 became 15936: cos was -.267950071. (The report says 15968, but bfloat16's places are 64 wide there.)
 */
START_TEST(candle_3520_position_15962) {
    expect_pair("15962", 0.41893570279372957, -0.908015901251032);
    expect_row(128, 15962);
}
END_TEST

/* sin(1e9) came out as 13.29. */
START_TEST(mlx_4157_large_arguments) {
    struct report_tensor got = encode(2, "1000000000,10000000000", 0, "");
    report_row(&got, 0, 6e-11, REPORT_VALUES(.5458434494, .8378871814, -.4875060251, .8731196227));
    for (size_t type = 1; type < PE_COUNT(dtypes); type++) {
        struct report_tensor narrow = encode(2, "1000000000,10000000000", type, "");
        for (size_t i = 0; i < 4; i++) {
            ck_assert_double_eq_tol(narrow.values[i], got.values[i], half_place(got.values[i], type));
        }
    }
}
END_TEST

/* Tables made in the model's type. Whatever type is asked for, the number is the true one, rounded once. */
START_TEST(transformer_engine_1245_vllm_863_keras_hub_1497_tables_are_rounded_once) {
    static const double positions[] = {1, 255, 256, 511, 2047, 4097, 8191, 16383, 32769, 131071};
    for (size_t i = 0; i < PE_COUNT(positions); i++) {
        expect_row(64, positions[i]);
    }
}
END_TEST

/* With an offset over 2048, or one cast to 16 bits, precision dropped: an offset is added to the position
 * without rounding, whatever the type of the result. */
START_TEST(tt_metal_33971_bumblebee_299_offsets_keep_their_digits) {
    static const char *const offsets[] = {"2049", "4095", "15962", "100001", "9007199254740991"};
    for (size_t i = 0; i < PE_COUNT(offsets) * PE_COUNT(dtypes); i++) {
        size_t type = i % PE_COUNT(dtypes);
        char more[60];
        const char *offset = offsets[i / PE_COUNT(dtypes)];
        snprintf(more, sizeof more, "&offset=%s", offset);
        struct report_tensor shifted = encode(64, "0", type, more), plain = encode(64, offset, type, "");
        ck_assert_mem_eq(shifted.values, plain.values, 64 * sizeof(double));
    }
    struct report_tensor sum = encode(64, "2046", 2, "&offset=3"), whole = encode(64, "2049", 2, "");
    ck_assert_mem_eq(sum.values, whole.values, 64 * sizeof(double));
}
END_TEST

/* 16-bit embeddings: the position enters a float32 sum, so it is not lost beside a large number. 256 + 0.84
 * is 257 in bfloat16 only if .84 is added before the rounding to 8 bits; 256 has a place of 2. */
START_TEST(transformers_29285_sums_are_rounded_once) {
    report_expect("POST /v1/apply?dtype=bfloat16&format=raw",
                  "{\"encoding\":\"vaswani\",\"positions\":[1],\"embeddings\":[[256.5,128.25]]}",
                  "embeddings", REPORT_SHAPE(1, 2), 0, REPORT_VALUES(258, 129));
}
END_TEST

Suite *reports_precision_suite(void) {
    Suite *suite = suite_create("reports_precision");
    TCase *tests = tcase_create("precision");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, report_setup, report_teardown);
    tcase_add_test(tests, transformers_29285_25681_positions_from_257);
    tcase_add_test(tests, megatron_535_positions_from_2049_and_65520);
    tcase_add_test(tests, sglang_jax_1472_1473_position_4095);
    tcase_add_test(tests, candle_3520_position_15962);
    tcase_add_test(tests, mlx_4157_large_arguments);
    tcase_add_test(tests, transformer_engine_1245_vllm_863_keras_hub_1497_tables_are_rounded_once);
    tcase_add_test(tests, tt_metal_33971_bumblebee_299_offsets_keep_their_digits);
    tcase_add_test(tests, transformers_29285_sums_are_rounded_once);
    return suite;
}
