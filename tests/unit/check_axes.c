/* SPDX-License-Identifier: MIT
 *
 * Axes with letters, where sizes end. What differs from another tensor is in check_attention_errors.c.
 */
#include "suites.h"

#include "kernels/linalg.h"
#include "ops/axes.h"

/* Products of matrices count in int: 2^31 - 1 is the last size, and 0 is one of lengths alone. */
START_TEST(sizes_have_an_end) {
    static const enum pe_letter letters[] = {PE_AXIS_TQ, PE_AXIS_D};
    static const struct {
        size_t length, width;
        const char *text; /* NULL: they are taken */
    } rows[] = {
        {0, PE_GEMM_MAX, NULL},
        {PE_GEMM_MAX, 1, NULL},
        {1, 0, "has shape [1, 0], allowed for d are 1 to 2^31 - 1"},
        {0, (size_t)PE_GEMM_MAX + 1, "has shape [0, 2147483648], allowed for d are 1 to 2^31 - 1"},
        {(size_t)PE_GEMM_MAX + 1, 1, "has shape [2147483648, 1], allowed for T are 0 to 2^31 - 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pe_axes axes = {{0}, {NULL}};
        struct pe_error err = {0};
        const struct pe_tensor tensor = {
            .dtype = PE_DTYPE_F32, .rank = 2, .dim = {rows[i].length, rows[i].width}};
        int code = pe_axes_bind(&axes, "q", &tensor, letters, 2, &err);
        ck_assert_int_eq(code, rows[i].text ? PE_ERR_SHAPE : PE_OK);
        ck_assert_str_eq(err.text, rows[i].text ? rows[i].text : "");
    }
}
END_TEST

Suite *axes_suite(void) {
    Suite *suite = suite_create("axes");
    TCase *tests = tcase_create("axes");
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, sizes_have_an_end);
    return suite;
}
