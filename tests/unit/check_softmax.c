/* SPDX-License-Identifier: MIT
 *
 * The softmax of one row: its exponential against libm, and rows of every length with every kind of hiding.
 */
#include "suites.h"

#include "kernels/softmax.h"

#include <math.h>
#include <string.h>

#define LONGEST 200

/* The row {0, x, x ..}: w_1/w_0 is exp(x), off by at most one unit of the exponential and half a one for each
 * of the two products with 1/sum. */
START_TEST(double_exponential) {
    struct pe_softmax softmax = {.dtype = PE_DTYPE_F64, .n = 9, .end = 9};
    for (int i = 1; i < 200000; i++) {
        double x = -700.0 * i / 200000, row[9] = {0};
        for (int j = 1; j < 9; j++) {
            row[j] = x;
        }
        pe_softmax_run(&softmax, row);
        for (int j = 1; j < 9; j++) {
            ck_assert_msg(fabs(row[j] / row[0] / exp(x) - 1) < 3.2 * 0x1p-52, "x = %.17g", x);
        }
    }
}
END_TEST

START_TEST(float_exponential) {
    struct pe_softmax softmax = {.dtype = PE_DTYPE_F32, .n = 17, .end = 17};
    for (int i = 1; i < 200000; i++) {
        float x = -85.0F * (float)i / 200000, row[17] = {0};
        for (int j = 1; j < 17; j++) {
            row[j] = x;
        }
        pe_softmax_run(&softmax, row);
        for (int j = 1; j < 17; j++) {
            ck_assert_msg(fabs((double)row[j] / (double)row[0] / exp((double)x) - 1) < 2 * 0x1p-23,
                          "x = %.9g", (double)x);
        }
    }
}
END_TEST

START_TEST(far_below_is_zero) {
    float narrow[3] = {0, -88, -3e38F};
    double wide[3] = {0, -709, -1e308};
    pe_softmax_run(&(struct pe_softmax){.dtype = PE_DTYPE_F32, .n = 3, .end = 3}, narrow);
    pe_softmax_run(&(struct pe_softmax){.dtype = PE_DTYPE_F64, .n = 3, .end = 3}, wide);
    ck_assert(narrow[0] == 1 && narrow[1] == 0 && narrow[2] == 0);
    ck_assert(wide[0] == 1 && wide[1] == 0 && wide[2] == 0);
}
END_TEST

/* Every length up to LONGEST, a window inside, a bias and hidden entries, against plain loops. */
static void length_check(enum pe_dtype dtype, size_t n) {
    double logits[LONGEST], bias[LONGEST], hidden[LONGEST], expected[LONGEST] = {0}, sum = 0;
    double row[LONGEST], typed_bias[LONGEST], typed_hidden[LONGEST]; /* as memory of either type */
    size_t first = n / 5, end = n - n / 7;
    for (size_t j = 0; j < n; j++) {
        logits[j] = (double)(j * 37 % 64) / 16 - 2;
        bias[j] = j % 11 == 3 ? -INFINITY : -(double)(j % 5) / 4;
        hidden[j] = j % 13 == 4 ? -INFINITY : 0;
    }
    for (size_t j = first; j < end; j++) {
        sum += expected[j] = exp(logits[j] + bias[j] + hidden[j]);
    }
    pe_dtype_store(dtype, logits, n, row);
    pe_dtype_store(dtype, bias, n, typed_bias);
    pe_dtype_store(dtype, hidden, n, typed_hidden);
    struct pe_softmax softmax = {
        .dtype = dtype, .n = n, .first = first, .end = end, .bias = typed_bias, .hidden = typed_hidden};
    pe_softmax_run(&softmax, row);
    pe_dtype_load(dtype, memcpy(typed_bias, row, sizeof row), n, logits);
    for (size_t j = 0; j < n; j++) {
        double right = sum > 0 ? expected[j] / sum : 0;
        ck_assert((right == 0) == (logits[j] == 0));
        ck_assert(fabs(logits[j] - right) <= right * (dtype == PE_DTYPE_F64 ? 1e-15 : 5e-7));
    }
}

START_TEST(rows_of_every_length) {
    for (size_t n = 0; n <= LONGEST; n++) {
        length_check(PE_DTYPE_F32, n);
        length_check(PE_DTYPE_F64, n);
    }
}
END_TEST

/* The sum of many equal weights does not drift: 2^20 of them, whose float sum would stall. */
START_TEST(long_rows_sum_to_one) {
    static float row[1 << 20];
    struct pe_softmax softmax = {.dtype = PE_DTYPE_F32, .n = 1 << 20, .end = 1 << 20};
    memset(row, 0, sizeof row);
    pe_softmax_run(&softmax, row);
    for (size_t j = 0; j < 1 << 20; j++) {
        ck_assert(row[j] == 0x1p-20F);
    }
}
END_TEST

Suite *softmax_suite(void) {
    Suite *suite = suite_create("softmax");
    TCase *tests = tcase_create("softmax");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, double_exponential);
    tcase_add_test(tests, float_exponential);
    tcase_add_test(tests, far_below_is_zero);
    tcase_add_test(tests, rows_of_every_length);
    tcase_add_test(tests, long_rows_sum_to_one);
    suite_add_tcase(suite, tests);
    return suite;
}
