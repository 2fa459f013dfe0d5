/* SPDX-License-Identifier: MIT
 *
 * Weights that resample: places, and how many weights they have. What the weights are is in the cases, from torch.
 */
#include "suites.h"

#include "kernels/resample.h"

/* The place of a number has that number alone, so that no other of the table counts, be it the largest; halfway
 * there are as many as the kernel is wide, less those beyond the ends. */
START_TEST(a_place_of_its_own_has_one_weight) {
    double weights[8];
    size_t first;
    for (int kernel = PE_RESAMPLE_LINEAR; kernel <= PE_RESAMPLE_BICUBIC_ANTIALIAS; kernel++) {
        const struct pe_resample_axis axis = {.kernel = (enum pe_resample)kernel, .from = 6, .to = 6};
        size_t wide = kernel >= PE_RESAMPLE_BICUBIC ? 4 : 2;
        for (size_t place = 0; place < 6; place++) {
            ck_assert_uint_eq(pe_resample_weights(&axis, (double)place, weights, &first), 1);
            ck_assert(first == place && weights[0] == 1);
        }
        ck_assert_uint_eq(pe_resample_weights(&axis, 2.5, weights, &first), wide);
        ck_assert_uint_eq(first, 3 - wide / 2);
        ck_assert_uint_eq(pe_resample_weights(&axis, -0.5, weights, &first), wide / 2);
        ck_assert_uint_eq(first, 0);
    }
}
END_TEST

/* Targets that lie on a number, by (t + 1/2) from/to - 1/2 with a quotient that is no double. */
START_TEST(places_are_rounded_once) {
    static const struct {
        size_t from, to;
        double target, place;
    } rows[] = {{1, 49, 24, 0}, {3, 47, 23, 1}, {7, 25, 12, 3}, {9, 33, 27, 7}, {10, 58, 43, 7}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct pe_resample_axis axis = {
            .kernel = PE_RESAMPLE_LINEAR, .from = rows[i].from, .to = rows[i].to};
        ck_assert(pe_resample_place(&axis, rows[i].target) == rows[i].place);
    }
}
END_TEST

Suite *resample_suite(void) {
    Suite *suite = suite_create("resample");
    TCase *tests = tcase_create("resample");
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, a_place_of_its_own_has_one_weight);
    tcase_add_test(tests, places_are_rounded_once);
    return suite;
}
