/* SPDX-License-Identifier: MIT
 *
 * The kernels of blocks: activations and norms against 60 digits, and products in a fixed order.
 */
#include "fence.h"
#include "instructions.h"
#include "suites.h"
#include "unit/expect.h"

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
                {1, 40, 1000, true, 1}, {2, 4097, 7, false, 1}, {3, 31, 4097, true, 1},
                {7, 2, 4097, false, -1}};

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

/* A matrix of noise whose last number is the last before a page that may not be touched, or whose first is the first
 * behind one: aligned to a number and no more. */
static double *fenced(struct fence *fence, size_t rows, size_t ld, size_t columns, unsigned salt,
                      bool at_end) {
    size_t n = rows && columns ? (rows - 1) * ld + columns : 0;
    fence_make(fence, (n + 1) * sizeof(double));
    double *all = fence_side(fence, n * sizeof *all, at_end), *from = noise(n, salt);
    memcpy(all, from, n * sizeof *all);
    free(from);
    return all;
}

static void expect_sums(const struct pe_gemm *gemm) {
    const double *a = gemm->a.data, *b = gemm->b.data, *c = gemm->c.data;
    for (size_t i = 0; i < gemm->m; i++) {
        for (size_t j = 0; j < gemm->n; j++) {
            double sum = 0;
            for (size_t l = 0; l < gemm->k; l++) {
                sum += a[i * gemm->a.ld + l] *
                       (gemm->b_transposed ? b[j * gemm->b.ld + l] : b[l * gemm->b.ld + j]);
            }
            EXPECT(bits_of(c[i * gemm->c.ld + j]) == bits_of(sum * gemm->alpha),
                   "%s: %zu, %zu of %zu, %zu, %zu", instructions_name(pe_instructions()), i, j, gemm->m,
                   gemm->n, gemm->k);
        }
    }
}

/* Bit for bit the sums of the definition from every instruction set, in matrices that have more columns than are
 * used. */
START_TEST(ordered_products_follow_k) {
    const size_t m = products[_i].m, n = products[_i].n, k = products[_i].k;
    const bool across = products[_i].b_transposed;
    const enum pe_instructions most = pe_instructions();
    for (enum pe_instructions set = 0; set <= most; set++) {
        for (int at_end = 0; at_end < 2; at_end++) {
            struct fence in[2], out;
            const size_t lda = k + 3, ldb = across ? k + 1 : n + 1, ldc = n + 2;
            const double *a = fenced(&in[0], m, lda, k, 1, at_end),
                         *b = fenced(&in[1], across ? n : k, ldb, across ? k : n, 2, at_end);
            double *c = fenced(&out, m, ldc, n, 3, at_end);
            const double beside = m > 1 ? c[n] : 0;
            const struct pe_gemm gemm = {.dtype = PE_DTYPE_F64,
                                         .ordered = true,
                                         .b_transposed = across,
                                         .m = m,
                                         .n = n,
                                         .k = k,
                                         .alpha = products[_i].alpha,
                                         .a = {a, lda},
                                         .b = {b, ldb},
                                         .c = {c, ldc}};
            instructions_limit(set);
            pe_gemm_run(&gemm);
            expect_sums(&gemm);
            ck_assert(m == 1 || bits_of(c[n]) == bits_of(beside));
            fence_drop(&in[0]);
            fence_drop(&in[1]);
            fence_drop(&out);
        }
    }
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
    tcase_add_loop_test(tests, ordered_products_follow_k, 0, PE_COUNT(products));
    tcase_add_test(tests, an_ordered_product_is_asked_to_stop);
    return suite;
}
