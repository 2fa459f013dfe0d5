/* SPDX-License-Identifier: MIT
 *
 * The softmax of one row: its exponential against libm, and rows of every length with every kind of hiding; from every
 * instruction set that this processor has with the bits of the plain one, in memory that is aligned to a number and no
 * more, between pages that may not be touched.
 */
#include "suites.h"

#include "fence.h"
#include "instructions.h"
#include "kernels/softmax.h"
#include "posenc_fields.h"
#include "random.h"
#include "unit/expect.h"

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
            EXPECT(fabs(row[j] / row[0] / exp(x) - 1) < 3.2 * 0x1p-52, "x = %.17g", x);
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
            EXPECT(fabs((double)row[j] / (double)row[0] / exp((double)x) - 1) < 2 * 0x1p-23, "x = %.9g",
                   (double)x);
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
        EXPECT((right == 0) == (logits[j] == 0), "%g, not %g", logits[j], right);
        EXPECT(fabs(logits[j] - right) <= right * (dtype == PE_DTYPE_F64 ? 1e-15 : 5e-7), "%g, not %g",
               logits[j], right);
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
        EXPECT(row[j] == 0x1p-20F, "%zu: %a", j, (double)row[j]);
    }
}
END_TEST

/* ---- Instruction sets ---------------------------------------------------------------------------------- */

#define WIDEST ((size_t)4097)

struct memory {
    struct fence row, bias, hidden;
    double given[3][WIDEST], want[WIDEST]; /* as memory of either type */
};

/* Numbers of some twenty orders of magnitude, some hidden. */
static void fill(enum pe_dtype dtype, void *out, size_t n, uint64_t *state) {
    for (size_t i = 0; i < n; i++) {
        const uint64_t word = random_next(state);
        const double spread = word % 16 == 0 ? 400 : 4, v = (double)(int64_t)word * 0x1p-63 * spread;
        const double logit = word >> 8 & 31 ? v : -INFINITY;
        pe_dtype_store(dtype, &logit, 1, (char *)out + i * pe_dtype_size(dtype));
    }
}

static void check_sets(struct memory *m, enum pe_dtype dtype, size_t n, uint64_t *state) {
    const enum pe_instructions most = pe_instructions();
    const size_t bytes = n * pe_dtype_size(dtype);
    const uint64_t bits = random_next(state);
    const bool at_end = bits & 1;
    void *row = fence_side(&m->row, bytes, at_end), *bias = fence_side(&m->bias, bytes, at_end),
         *hidden = fence_side(&m->hidden, bytes, at_end);
    const size_t first = bits >> 1 & 1 ? random_next(state) % (n + 1) : 0,
                 end = bits >> 2 & 1 ? first + random_next(state) % (n - first + 1) : n;
    const struct pe_softmax softmax = {.dtype = dtype,
                                       .n = n,
                                       .first = first,
                                       .end = end,
                                       .bias = bits >> 3 & 1 ? bias : NULL,
                                       .hidden = bits >> 4 & 1 ? hidden : NULL};
    for (size_t i = 0; i < PE_COUNT(m->given); i++) {
        fill(dtype, m->given[i], n, state);
    }
    memcpy(bias, m->given[1], bytes);
    memcpy(hidden, m->given[2], bytes);
    for (enum pe_instructions set = 0; set <= most; set++) {
        instructions_limit(set);
        memcpy(row, m->given[0], bytes);
        pe_softmax_run(&softmax, row);
        if (set == 0) {
            memcpy(m->want, row, bytes);
        }
        EXPECT(memcmp(row, m->want, bytes) == 0, "%s: %s, %zu .. %zu of %zu", instructions_name(set),
               pe_dtype_name(dtype), first, end, n);
    }
    instructions_limit(most);
}

START_TEST(instruction_sets_change_no_bit) {
    static const size_t wide[] = {127, 128, 129, 255, 513, 1000, WIDEST - 1, WIDEST};
    static struct memory m;
    uint64_t state = 3;
    fence_make(&m.row, sizeof m.want);
    fence_make(&m.bias, sizeof m.want);
    fence_make(&m.hidden, sizeof m.want);
    for (size_t i = 0; i < 80 + PE_COUNT(wide); i++) {
        for (int k = 0; k < 32; k++) {
            check_sets(&m, k & 1 ? PE_DTYPE_F64 : PE_DTYPE_F32, i < 80 ? i : wide[i - 80], &state);
        }
    }
    fence_drop(&m.row);
    fence_drop(&m.bias);
    fence_drop(&m.hidden);
}
END_TEST

/* Weights that go elsewhere, near or far, from a row whose largest number is known or not, have the bits that they have
 * in the row's place. */
START_TEST(elsewhere_has_the_same_bits) {
    const enum pe_instructions all = pe_instructions();
    instructions_limit((enum pe_instructions)_i);
    struct fence fence;
    float row[LONGEST], want[LONGEST], most[PE_SOFTMAX_MOST];
    uint64_t state = 7;
    fence_make(&fence, sizeof row);
    for (size_t n = 1; n <= LONGEST; n++) {
        for (int kind = 0; kind < 16; kind++) {
            float *out = fence_side(&fence, n * sizeof *out, kind & 1);
            struct pe_softmax softmax = {.dtype = PE_DTYPE_F32, .n = n, .end = n};
            softmax.first = kind & 8 ? n / 3 : 0;
            for (size_t j = 0; j < n; j++) {
                row[j] = want[j] = (float)(random_next(&state) >> 40) * 0x1p-20F;
                most[j % PE_SOFTMAX_MOST] =
                    j < PE_SOFTMAX_MOST ? row[j] : fmaxf(most[j % PE_SOFTMAX_MOST], row[j]);
            }
            for (size_t j = n; j < PE_SOFTMAX_MOST; j++) {
                most[j] = -INFINITY;
            }
            pe_softmax_run(&softmax, want);
            softmax.out = out;
            softmax.far = kind & 2;
            softmax.most = kind & 4 && !(kind & 8) ? most : NULL;
            pe_softmax_run(&softmax, row);
            pe_softmax_settle();
            EXPECT(memcmp(out, want, n * sizeof *want) == 0, "%zu numbers, kind %d", n, kind);
        }
    }
    fence_drop(&fence);
    instructions_limit(all);
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
    tcase_add_test(tests, instruction_sets_change_no_bit);
    tcase_add_loop_test(tests, elsewhere_has_the_same_bits, 0, PE_INSTRUCTIONS_COUNT);
    suite_add_tcase(suite, tests);
    return suite;
}
