/* SPDX-License-Identifier: MIT
 *
 * The kernels of blocks: activations and norms against 60 digits, and products in a fixed order.
 */
#include "instructions.h"
#include "suites.h"

#include "kernels/activate.h"
#include "kernels/linalg.h"
#include "kernels/norm.h"
#include "posenc.h"
#include "posenc_fields.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct activate_value {
    double x, gelu, gelu_tanh;
};
struct norm_row {
    size_t n;
    double x[9], out[9];
};
#include "../golden/activate_values.h"

/* erfc and exp of the C library are within an ulp; that of an argument grows by its square in the tails. */
START_TEST(gelus_have_all_their_digits) {
    for (size_t i = 0; i < PE_COUNT(activate_values); i++) {
        const struct activate_value *v = &activate_values[i];
        double exact = v->x, tanh = v->x, relu = v->x, square = fmin(v->x * v->x, 1e4);
        pe_activate(PE_BLOCK_GELU, PE_DTYPE_F64, &exact, 1);
        pe_activate(PE_BLOCK_GELU_TANH, PE_DTYPE_F64, &tanh, 1);
        pe_activate(PE_BLOCK_RELU, PE_DTYPE_F64, &relu, 1);
        ck_assert_msg(fabs(exact - v->gelu) <= 4e-16 * (1 + square) * fabs(v->gelu), "gelu(%g) is %.17g",
                      v->x, exact);
        ck_assert_msg(fabs(tanh - v->gelu_tanh) <= 4e-16 * (1 + square) * (1 + square) * fabs(v->gelu_tanh),
                      "gelu_tanh(%g) is %.17g", v->x, tanh);
        ck_assert(relu == fmax(v->x, 0));
        float single = (float)v->x;
        pe_activate(PE_BLOCK_GELU, PE_DTYPE_F32, &single, 1);
        ck_assert(fabs((double)single - v->gelu) <= 0x1p-23 * fabs(v->gelu) * (1 + square) + 0x1p-149);
    }
    double endless[] = {-INFINITY, -INFINITY, INFINITY, NAN};
    pe_activate(PE_BLOCK_GELU, PE_DTYPE_F64, &endless[0], 1);
    pe_activate(PE_BLOCK_GELU_TANH, PE_DTYPE_F64, &endless[1], 1);
    ck_assert(endless[0] == 0 && endless[1] == 0);
    pe_activate(PE_BLOCK_GELU_TANH, PE_DTYPE_F64, &endless[2], 1);
    pe_activate(PE_BLOCK_RELU, PE_DTYPE_F64, &endless[3], 1);
    ck_assert(isinf(endless[2]) && isnan(endless[3]));
}
END_TEST

START_TEST(variance_in_two_passes) {
    double ones[9], zeros[9] = {0}, out[9];
    float ones_single[9], zeros_single[9] = {0}, single[9];
    for (size_t i = 0; i < 9; i++) {
        ones[i] = ones_single[i] = 1;
    }
    for (size_t i = 0; i < PE_COUNT(norm_rows); i++) {
        const struct norm_row *row = &norm_rows[i];
        const struct pe_norm wide = {PE_DTYPE_F64, row->n, ones, zeros, 1e-5};
        pe_norm_run(&wide, row->x, out);
        for (size_t c = 0; c < row->n; c++) {
            ck_assert_msg(fabs(out[c] - row->out[c]) < 4e-15, "%zu, %zu: %.17g", i, c, out[c]);
            single[c] = (float)row->x[c];
            ck_assert((double)single[c] == row->x[c] || i == 1); /* 1e8 + 1 is no float32 */
        }
        const struct pe_norm narrow = {PE_DTYPE_F32, row->n, ones_single, zeros_single, 1e-5};
        pe_norm_run(&narrow, single, single);
        for (size_t c = 0; i != 1 && c < row->n; c++) {
            ck_assert_msg(single[c] == (float)row->out[c], "%zu, %zu: %.9g", i, c, (double)single[c]);
        }
    }
    const struct pe_norm alike = {PE_DTYPE_F64, 4, ones, zeros, 0};
    const double same[4] = {5, 5, 5, 5};
    pe_norm_run(&alike, same, out);
    ck_assert(out[0] == 0 && out[3] == 0);
}
END_TEST

/* The squares are infinite, so nothing is known of the row: what torch.nn.LayerNorm says of this one in float64. */
START_TEST(a_norm_beyond_its_type_is_no_number) {
    const double ones[4] = {1, 1, 1, 1}, row[4] = {1e200, -1e200, 3e200, 0};
    const struct pe_norm norm = {PE_DTYPE_F64, 4, ones, ones, 1e-5};
    double out[4];
    pe_norm_run(&norm, row, out);
    for (size_t c = 0; c < 4; c++) {
        ck_assert_double_nan(out[c]);
    }
}
END_TEST

/* ---- Products ------------------------------------------------------------------------------------------ */

static const struct {
    size_t m, n, k;
    bool b_transposed;
    double alpha;
} products[] = {{1, 1, 1, false, 1},    {3, 5, 0, false, 1},    {65, 33, 64, true, 0.125},
                {64, 32, 65, false, 1}, {2, 100, 130, true, 1}, {130, 7, 3, false, -2},
                {1, 40, 1000, true, 1}};

static double *noise(size_t n, unsigned salt) {
    double *all = malloc((n + 1) * sizeof *all);
    for (size_t i = 0; i < n; i++) {
        all[i] = (double)((i + salt) * 7919 % 100003) / 7 - 7000;
    }
    return all;
}

static uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Bit for bit the sums of the definition, in matrices that have more columns than are used. */
START_TEST(ordered_products_follow_k) {
    size_t m = products[_i / 2].m, n = products[_i / 2].n, k = products[_i / 2].k, lda = k + 3, ldc = n + 2;
    size_t ldb = products[_i / 2].b_transposed ? k + 1 : n + 1;
    double *a = noise(m * lda, 1), *b = noise((n + k) * ldb + n * k, 2), *c = noise(m * ldc, 3);
    struct pe_gemm gemm = {.dtype = PE_DTYPE_F64,
                           .ordered = true,
                           .b_transposed = products[_i / 2].b_transposed,
                           .m = m,
                           .n = n,
                           .k = k,
                           .alpha = products[_i / 2].alpha,
                           .a = {a, lda},
                           .b = {b, ldb},
                           .c = {c, ldc}};
    double beside = c[n];
    instructions_limit(_i % 2 ? PE_INSTRUCTIONS_AVX2 : PE_INSTRUCTIONS_PLAIN);
    pe_gemm_run(&gemm);
    instructions_limit(PE_INSTRUCTIONS_COUNT);
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) {
            double sum = 0;
            for (size_t l = 0; l < k; l++) {
                sum += a[i * lda + l] * (gemm.b_transposed ? b[j * ldb + l] : b[l * ldb + j]);
            }
            ck_assert_msg(bits_of(c[i * ldc + j]) == bits_of(sum * gemm.alpha), "%zu, %zu", i, j);
        }
    }
    ck_assert(bits_of(c[n]) == bits_of(beside));
    free(a);
    free(b);
    free(c);
}
END_TEST

static bool yes_at_last(void *left) {
    size_t *n = left;
    return *n == 0 || --*n == 0;
}

/* Asked again after at most 2^18 multiplications: far less than 10 ms. */
START_TEST(an_ordered_product_is_asked_to_stop) {
    const size_t m = 70, n = 90, k = 5000;
    double *a = noise(m * k, 1), *b = noise(n * k, 2), *c = calloc(m * n, sizeof *c);
    size_t often = m * n * k >> 18, left = often;
    const struct pe_stop stop = {yes_at_last, &left};
    struct pe_gemm gemm = {.dtype = PE_DTYPE_F64,
                           .ordered = true,
                           .m = m,
                           .n = n,
                           .k = k,
                           .alpha = 1,
                           .a = {a, k},
                           .b = {b, n},
                           .c = {c, n},
                           .stop = &stop};
    pe_gemm_run(&gemm);
    ck_assert_uint_eq(left, 0);
    ck_assert(c[m * n - 1] == 0); /* it never came there */
    free(a);
    free(b);
    free(c);
}
END_TEST

Suite *block_kernels_suite(void) {
    Suite *suite = suite_create("block_kernels");
    TCase *tests = tcase_create("block_kernels");
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, gelus_have_all_their_digits);
    tcase_add_test(tests, variance_in_two_passes);
    tcase_add_test(tests, a_norm_beyond_its_type_is_no_number);
    tcase_add_loop_test(tests, ordered_products_follow_k, 0, 2 * PE_COUNT(products));
    tcase_add_test(tests, an_ordered_product_is_asked_to_stop);
    return suite;
}
