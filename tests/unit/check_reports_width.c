/* SPDX-License-Identifier: MIT
 *
 * Public bug reports on widths, formulas and layouts. Each test is named after a project and its report; what
 * was wrong there stands above it, and the right numbers are from the report itself, or from the formula it
 * should have followed.
 *
 * Not here: odd widths of rotary encodings (check_reports_rotary.c).
 */
#include "report_run.h"
#include "suites.h"

#include <math.h>
#include <string.h>

#define SINUSOIDAL "GET /v1/encode?type=sinusoidal&dtype=float64"

/* ---- Odd and tiny widths ------------------------------------------------------------------------------- */

/* Sines and cosines of an odd width were given as many columns each, and the assignment failed. There are
 * ceil(d/2) sines and floor(d/2) cosines. */
START_TEST(pyaptamer_526_607_odd_width) {
    static const size_t widths[] = {5, 7, 9, 127};
    report_expect(SINUSOIDAL "&d_model=5&positions=1", NULL, "vectors", REPORT_SHAPE(1, 5), 6e-7,
                  REPORT_VALUES(.841471, .540302, .025116, .999685, .000631));
    for (size_t i = 0; i < PE_COUNT(widths); i++) {
        char plain[100], halves[120];
        size_t d = widths[i], sines = (d + 1) / 2;
        snprintf(plain, sizeof plain, SINUSOIDAL "&d_model=%zu&positions=1:3", d);
        snprintf(halves, sizeof halves, "%s&layout=halves", plain);
        struct report_tensor a = report_tensor(plain, NULL, "vectors"),
                             b = report_tensor(halves, NULL, "vectors");
        ck_assert(a.n == 2 * d && b.n == 2 * d);
        for (size_t k = 0; k < 2 * d; k++) {
            size_t c = k % d, other = k - c + (c % 2 ? sines + c / 2 : c / 2);
            ck_assert_double_eq_tol(a.values[k], report_paper(1.0 + (double)(k / d), c, d), 1e-14);
            ck_assert(b.values[other] == a.values[k]);
        }
    }
}
END_TEST

/* "The expanded size of the tensor (14) must match the existing size (15)". */
START_TEST(bert_pytorch_78_width_29) {
    struct report_tensor got =
        report_tensor(SINUSOIDAL "&d_model=29&positions=0:10000&format=raw", NULL, "vectors");
    ck_assert(got.rank == 2 && got.dim[0] == 10000 && got.dim[1] == 29);
    for (size_t p = 0; p < 10000; p += 101) {
        ck_assert_double_eq_tol(got.values[29 * p + 28], sin((double)p * pow(10000, -28.0 / 29)), 1e-12);
    }
}
END_TEST

/* ---- Formulas ------------------------------------------------------------------------------------------ */

/* Column j used the exponent 2j/d: sine and cosine of a pair had different frequencies, and the last ones
 * were beyond 1/10000. */
START_TEST(jadore801120_32_pairs_share_a_frequency) {
    report_expect(SINUSOIDAL "&d_model=6&positions=1", NULL, "vectors", REPORT_SHAPE(1, 6), 6e-7,
                  REPORT_VALUES(.841471, .540302, .046399, .998923, .002154, .999998));
}
END_TEST

/* The cosine of pair i was computed with i + 1. */
START_TEST(samlynnevans_25_yutaroogawa_79_cosine_of_the_same_pair) {
    report_expect(SINUSOIDAL "&d_model=4&positions=1", NULL, "vectors", REPORT_SHAPE(1, 4), 1e-8,
                  REPORT_VALUES(.84147098, .54030231, .00999983, .99995));
    struct report_tensor got = report_tensor(SINUSOIDAL "&d_model=64&positions=0:500:7.25", NULL, "vectors");
    for (size_t i = 0; i + 1 < got.n; i += 2) {
        ck_assert_double_eq_tol(pow(got.values[i], 2) + pow(got.values[i + 1], 2), 1, 1e-15);
    }
}
END_TEST

/* i/d of whole numbers is 0 in Python 2, so all frequencies were 1. */
START_TEST(kyubyong_81_exponents_are_real) {
    report_expect(SINUSOIDAL "&d_model=4&positions=10", NULL, "vectors", REPORT_SHAPE(1, 4), 1e-8,
                  REPORT_VALUES(-.54402111, -.83907153, .09983342, .99500417));
}
END_TEST

/* Bases of 1000 and other slips of the pen. The default is 10000, and a reply tells the base it used. */
START_TEST(yutaroogawa_15_the_base_is_echoed) {
    static const char *const formats[] = {"json", "npy"};
    for (size_t i = 0; i < PE_COUNT(formats); i++) {
        char request[120];
        snprintf(request, sizeof request, SINUSOIDAL "&d_model=4&positions=1&format=%s", formats[i]);
        struct call_try try = {.request = request};
        call_try(&report_ground, &try);
        const char *echo = i ? call_try_header(&try, "X-Posenc-Encoding") : try.reply;
        ck_assert_msg(strstr(echo, "\"base\":10000.0") != NULL, "%s", echo);
        call_try_close(&try);
    }
    /* sin and cos of 1000^(-1/2) */
    struct report_tensor got = report_tensor(SINUSOIDAL "&d_model=4&positions=1&base=1000", NULL, "vectors");
    report_row(&got, 2, 1e-8, REPORT_VALUES(.03161751, .99950004));
}
END_TEST

/* Is the denominator d/2 or d/2 - 1? Both are in use, and differ: frequencies 1, .1, .01, .001 and 1,
 * .0464159, .00215443, .0001. */
START_TEST(diffusion_15_denominator_half_or_half_minus_one) {
    report_expect(SINUSOIDAL "&d_model=8&layout=halves&denominator=half_minus_one&positions=1", NULL,
                  "vectors", REPORT_SHAPE(1, 8), 1e-8,
                  REPORT_VALUES(.84147098, .04639922, .00215443, .0001, .54030231, .99892298, .99999768, 1));
    report_expect(SINUSOIDAL "&d_model=8&layout=halves&positions=999", NULL, "vectors", REPORT_SHAPE(1, 8),
                  1e-8,
                  REPORT_VALUES(-.02646075, -.58992416, -.53560333, .84093026, .99964985, .80745866,
                                -.8444697, .54114351));
}
END_TEST

/* Times in [0, 1] on a ladder made for positions: the vectors hardly differ. position_scale takes them to
 * [0, 1000]. .999*1000 is exact but for the rounding of .999 itself. */
START_TEST(sit_24_repa_40_just_a_dit_9_times_below_1) {
    struct report_tensor plain = report_tensor(
        SINUSOIDAL "&d_model=256&layout=halves&order=cos_sin&positions=0.5,0.501", NULL, "vectors");
    struct report_tensor scaled =
        report_tensor(SINUSOIDAL "&d_model=256&layout=halves&order=cos_sin&positions=0.5,0.501"
                                 "&position_scale=1000",
                      NULL, "vectors");
    double near = 0, far = 0;
    for (size_t i = 0; i < 256; i++) {
        near += pow(plain.values[i] - plain.values[256 + i], 2);
        far += pow(scaled.values[i] - scaled.values[256 + i], 2);
    }
    ck_assert(sqrt(near) < 0.01 && sqrt(far) > 1);
    report_expect(SINUSOIDAL "&d_model=8&layout=halves&order=cos_sin&positions=0.999&position_scale=1000",
                  NULL, "vectors", REPORT_SHAPE(1, 8), 1e-8,
                  REPORT_VALUES(.99964985, .80745866, -.8444697, .54114351, -.02646075, -.58992416,
                                -.53560333, .84093026));
}
END_TEST

/* The paper's formula has a pi that its code has not. Both are in use, so which is a flag. */
START_TEST(nerf_12_50_tiny_cuda_nn_298_nerf_pytorch_146_pi_is_a_flag) {
    report_expect("GET /v1/encode?type=fourier&features=nerf&n_frequencies=2&pi=true&positions=0.5", NULL,
                  "vectors", REPORT_SHAPE(1, 4), 0, REPORT_VALUES(1, 0, 0, -1));
    report_expect("GET /v1/encode?type=fourier&features=nerf&n_frequencies=2&pi=false&positions=0.5", NULL,
                  "vectors", REPORT_SHAPE(1, 4), 6e-7, REPORT_VALUES(.479426, .877583, .841471, .540302));
    struct call_try try = {.request =
                               "GET /v1/encode?type=fourier&features=nerf&n_frequencies=1&positions=0"};
    call_try(&report_ground, &try);
    ck_assert_msg(strstr(try.reply, "\"pi\":true") != NULL, "%s", try.reply);
    call_try_close(&try);
}
END_TEST

/* No tokens are no error: nothing of the width asked for. */
START_TEST(opennmt_tf_784_no_tokens) {
    static const char *const requests[] = {SINUSOIDAL "&d_model=8&positions=0:0",
                                           SINUSOIDAL "&d_model=8&positions=[]",
                                           SINUSOIDAL "&d_model=8&positions=5:5&format=raw"};
    for (size_t i = 0; i < PE_COUNT(requests); i++) {
        report_expect(requests[i], NULL, "vectors", REPORT_SHAPE(0, 8), 0, NULL, 0);
    }
    report_expect("POST /v1/apply",
                  "{\"encoding\":\"vaswani\",\"embeddings\":{\"shape\":[2,0,8],\"data\":[[],[]]}}",
                  "embeddings", REPORT_SHAPE(2, 0, 8), 0, NULL, 0);
}
END_TEST

/* ---- Not bugs, but asked as such ----------------------------------------------------------------------- */

/* "Why are the cosines first?" Models were trained so: DiT and Stable Diffusion. */
START_TEST(dit_cosines_first_stay_available) {
    report_expect(SINUSOIDAL "&d_model=4&layout=halves&order=cos_sin&positions=1", NULL, "vectors",
                  REPORT_SHAPE(1, 4), 1e-8, REPORT_VALUES(.54030231, .99995, .84147098, .00999983));
    report_expect(SINUSOIDAL "&d_model=4&order=cos_sin&positions=1", NULL, "vectors", REPORT_SHAPE(1, 4),
                  1e-8, REPORT_VALUES(.54030231, .84147098, .99995, .00999983));
}
END_TEST

/* "Why d/2 - 1?" So that the last frequency is 1/10000 exactly; where that is 0/0, tensor2tensor's guard. */
START_TEST(tensor2tensor_half_minus_one_stays_available) {
    report_expect("GET /v1/encode?encoding=tensor2tensor&d_model=5&positions=1&dtype=float64", NULL,
                  "vectors", REPORT_SHAPE(1, 5), 6e-7, REPORT_VALUES(.841471, .0001, .540302, 1, 0));
    report_expect("GET /v1/encode?encoding=fairseq&d_model=2&positions=0,1&padding_idx=0&dtype=float64", NULL,
                  "vectors", REPORT_SHAPE(2, 2), 6e-7, REPORT_VALUES(0, 0, .841471, .540302));
}
END_TEST

/* fairseq and ESPnet multiply x by sqrt(d) first, others do not: it is off unless asked for. */
START_TEST(fairseq_espnet_scale_is_an_option) {
#define TOKENS "\"embeddings\":[[1,2,-3,4]],\"positions\":[0],\"encoding\":\"vaswani\""
    report_expect("POST /v1/apply", "{" TOKENS "}", "embeddings", REPORT_SHAPE(1, 4), 0,
                  REPORT_VALUES(1, 3, -3, 5));
    report_expect("POST /v1/apply", "{" TOKENS ",\"embedding_scale\":\"sqrt_d_model\"}", "embeddings",
                  REPORT_SHAPE(1, 4), 0, REPORT_VALUES(2, 5, -6, 9));
    report_expect("POST /v1/apply", "{" TOKENS ",\"embedding_scale\":0.5}", "embeddings", REPORT_SHAPE(1, 4),
                  0, REPORT_VALUES(.5, 2, -1.5, 3));
}
END_TEST

Suite *reports_width_suite(void) {
    Suite *suite = suite_create("reports_width");
    TCase *tests = tcase_create("width");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, report_setup, report_teardown);
    tcase_add_test(tests, pyaptamer_526_607_odd_width);
    tcase_add_test(tests, bert_pytorch_78_width_29);
    tcase_add_test(tests, jadore801120_32_pairs_share_a_frequency);
    tcase_add_test(tests, samlynnevans_25_yutaroogawa_79_cosine_of_the_same_pair);
    tcase_add_test(tests, kyubyong_81_exponents_are_real);
    tcase_add_test(tests, yutaroogawa_15_the_base_is_echoed);
    tcase_add_test(tests, diffusion_15_denominator_half_or_half_minus_one);
    tcase_add_test(tests, sit_24_repa_40_just_a_dit_9_times_below_1);
    tcase_add_test(tests, nerf_12_50_tiny_cuda_nn_298_nerf_pytorch_146_pi_is_a_flag);
    tcase_add_test(tests, opennmt_tf_784_no_tokens);
    tcase_add_test(tests, dit_cosines_first_stay_available);
    tcase_add_test(tests, tensor2tensor_half_minus_one_stays_available);
    tcase_add_test(tests, fairseq_espnet_scale_is_an_option);
    return suite;
}
