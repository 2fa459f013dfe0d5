/* SPDX-License-Identifier: MIT
 *
 * The loops of kernels that are written once and made into vectors by compilers: for any number of elements, at any
 * alignment of the type, between pages that may not be touched, they do what their definition does element by element.
 */
#include "suites.h"

#include "core/dtype.h"
#include "fence.h"
#include "kernels/activate.h"
#include "kernels/gather.h"
#include "kernels/norm.h"
#include "kernels/vector.h"
#include "posenc_fields.h"
#include "random.h"
#include "unit/expect.h"

#include <math.h>
#include <string.h>

#define WIDEST ((size_t)4097)

static const enum pe_dtype types[] = {PE_DTYPE_F64, PE_DTYPE_F32, PE_DTYPE_F16, PE_DTYPE_BF16};
#define N_REAL 2 /* of them are types of arithmetic */

/* Every number up to 70, and some more. */
static size_t size_at(size_t i) {
    static const size_t wide[] = {127, 128, 129, 256, 1000, WIDEST - 1, WIDEST};
    return i <= 70 ? i : wide[i - 71];
}
#define N_SIZES ((size_t)78)

static struct fence fences[3];

static void setup(void) {
    for (size_t i = 0; i < PE_COUNT(fences); i++) {
        fence_make(&fences[i], (WIDEST + 1) * sizeof(double));
    }
}

static void teardown(void) {
    for (size_t i = 0; i < PE_COUNT(fences); i++) {
        fence_drop(&fences[i]);
    }
}

static double number_at(enum pe_dtype dtype, const void *x, size_t i) {
    double value;
    pe_dtype_load(dtype, (const char *)x + i * pe_dtype_size(dtype), 1, &value);
    return value;
}

static void number_put(enum pe_dtype dtype, void *x, size_t i, double value) {
    pe_dtype_store(dtype, &value, 1, (char *)x + i * pe_dtype_size(dtype));
}

/* n random numbers in (-1, 1), or whole ones of a few bits, before or behind a fence. */
static void *numbers(int fence, enum pe_dtype dtype, size_t n, bool whole, uint64_t *state) {
    void *x = fence_side(&fences[fence], n * pe_dtype_size(dtype), random_next(state) & 1);
    for (size_t i = 0; i < n; i++) {
        const int64_t word = (int64_t)random_next(state);
        number_put(dtype, x, i, whole ? (double)(word % 16) : (double)word * 0x1p-63);
    }
    return x;
}

/* As the type has it. */
static double rounded(enum pe_dtype dtype, double value) {
    return dtype == PE_DTYPE_F32 ? (double)(float)value : value;
}

static void expect_numbers(enum pe_dtype dtype, const void *got, const double *want, size_t n,
                           const char *what) {
    for (size_t i = 0; i < n; i++) {
        const double v = number_at(dtype, got, i);
        EXPECT(memcmp(&v, &want[i], sizeof v) == 0, "%s of %zu %s: element %zu is %a, not %a", what, n,
               pe_dtype_name(dtype), i, v, want[i]);
    }
}

/* ---- vector.h ------------------------------------------------------------------------------------------ */

/* Which of x and added is out: neither, x, added; and nothing added. */
static void check_scale_add(enum pe_dtype dtype, size_t n, int way, uint64_t *state) {
    static double want[WIDEST];
    const double scale = rounded(dtype, 22.627416997969522);
    void *x = numbers(0, dtype, n, false, state), *added = numbers(1, dtype, n, false, state);
    void *apart = numbers(2, dtype, n, false, state), *out = way % 3 == 1 ? x : way % 3 == 2 ? added : apart;
    const bool adds = way < 3;
    for (size_t i = 0; i < n; i++) {
        const double product = rounded(dtype, number_at(dtype, x, i) * scale);
        want[i] = adds ? rounded(dtype, product + number_at(dtype, added, i)) : product;
    }
    pe_vector_scale_add(dtype, out, x, scale, adds ? added : NULL, n);
    expect_numbers(dtype, out, want, n, "scale_add");
}

static void check_sums(enum pe_dtype dtype, size_t n, bool subtract, bool in_place, uint64_t *state) {
    static double want[WIDEST];
    void *a = numbers(0, dtype, n, false, state), *b = numbers(1, dtype, n, false, state);
    void *out = in_place ? a : numbers(2, dtype, n, false, state);
    for (size_t i = 0; i < n; i++) {
        const double x = number_at(dtype, a, i), y = number_at(dtype, b, i);
        want[i] = rounded(dtype, subtract ? x - y : x + y);
    }
    (subtract ? pe_vector_subtract : pe_vector_add)(dtype, out, a, b, n);
    expect_numbers(dtype, out, want, n, subtract ? "subtract" : "add");
}

START_TEST(sums_are_those_of_elements) {
    uint64_t state = 1;
    for (size_t i = 0; i < N_SIZES * N_REAL; i++) {
        const enum pe_dtype dtype = types[i % N_REAL];
        const size_t n = size_at(i / N_REAL);
        for (int way = 0; way < 5; way++) {
            check_scale_add(dtype, n, way, &state);
        }
        for (int way = 0; way < 4; way++) {
            check_sums(dtype, n, way & 1, way >> 1, &state);
        }
    }
}
END_TEST

/* One of all is larger, an infinity, or no number; -infinity may count for nothing. */
START_TEST(the_largest_is_found_anywhere) {
    static const double special[] = {5, -7, INFINITY, -INFINITY, NAN};
    uint64_t state = 2;
    for (size_t i = PE_COUNT(types); i < N_SIZES * PE_COUNT(types); i++) {
        const enum pe_dtype dtype = types[i % PE_COUNT(types)];
        const size_t n = size_at(i / PE_COUNT(types));
        for (size_t k = 0; k < 2 * PE_COUNT(special); k++) {
            const double is = special[k / 2];
            const bool skip = k & 1;
            double most = 0;
            void *x = numbers(0, dtype, n, false, &state);
            for (size_t j = 0; j < n; j++) {
                most = fmax(most, fabs(number_at(dtype, x, j)));
            }
            const size_t at = random_next(&state) % n;
            const double before = fabs(number_at(dtype, x, at));
            number_put(dtype, x, at, is);
            if (!skip || is != -INFINITY) {
                most = isfinite(is) ? fabs(is) : INFINITY;
            } else if (before == most) {
                continue;
            }
            const double got = pe_vector_largest(dtype, x, n, skip, NULL);
            EXPECT(got == most, "%zu %s, %g at %zu: %a, not %a", n, pe_dtype_name(dtype), is, at, got, most);
        }
    }
}
END_TEST

/* The order of the sum is the one that vector.c writes. */
START_TEST(dot_products_have_their_order) {
    uint64_t state = 3;
    for (size_t i = 0; i < N_SIZES; i++) {
        const size_t n = size_at(i);
        const double *a = numbers(0, PE_DTYPE_F64, n, false, &state),
                     *b = numbers(1, PE_DTYPE_F64, n, false, &state);
        double lane[8] = {0};
        for (size_t j = 0; j < n; j++) {
            lane[j % 8] += a[j] * b[j];
        }
        const double want =
            ((lane[0] + lane[4]) + (lane[1] + lane[5])) + ((lane[2] + lane[6]) + (lane[3] + lane[7]));
        EXPECT(pe_vector_dot(a, b, n) == want, "%zu: %a, not %a", n, pe_vector_dot(a, b, n), want);
    }
}
END_TEST

/* ---- Types ---------------------------------------------------------------------------------------------- */

/* Many at once are one after the other; memory of any alignment at all. */
START_TEST(conversions_are_those_of_elements) {
    static double loaded[WIDEST];
    uint64_t state = 4;
    for (size_t i = 0; i < N_SIZES * PE_COUNT(types); i++) {
        const enum pe_dtype dtype = types[i % PE_COUNT(types)];
        const size_t n = size_at(i / PE_COUNT(types)), size = pe_dtype_size(dtype);
        for (size_t k = 0; k < 3; k++) {
            const double *from = numbers(0, PE_DTYPE_F64, n, false, &state);
            char *to = fence_last(&fences[1], n * size + k); /* k bytes before the fence are left */
            pe_dtype_store(dtype, from, n, to);
            for (size_t j = 0; j < n; j++) {
                char one[sizeof(double)];
                pe_dtype_store(dtype, &from[j], 1, one);
                EXPECT(memcmp(one, to + j * size, size) == 0, "%zu %s: element %zu", n, pe_dtype_name(dtype),
                       j);
                pe_dtype_load(dtype, one, 1, &loaded[j]);
            }
            double *back = (double *)(void *)fence_last(&fences[2], n * sizeof *back);
            pe_dtype_load(dtype, to, n, back);
            EXPECT(memcmp(back, loaded, n * sizeof *back) == 0, "%zu %s", n, pe_dtype_name(dtype));
        }
    }
}
END_TEST

START_TEST(rows_become_other_types) {
    static double want[WIDEST];
    uint64_t state = 5;
    for (size_t i = 0; i < N_SIZES * 16; i++) {
        const enum pe_dtype from = types[i % 4], to = types[i / 4 % 4];
        const size_t n = size_at(i / 16);
        const void *x = numbers(0, from, n, false, &state);
        void *out = numbers(1, to, n, false, &state);
        for (size_t j = 0; j < n; j++) {
            char one[sizeof(double)];
            number_put(to, one, 0, number_at(from, x, j));
            want[j] = number_at(to, one, 0);
        }
        pe_vector_store(from, x, n, to, out);
        expect_numbers(to, out, want, n, "store");
    }
}
END_TEST

/* ---- activate.h, norm.h --------------------------------------------------------------------------------- */

START_TEST(activations_are_those_of_elements) {
    static const enum pe_block_activation all[] = {PE_BLOCK_RELU, PE_BLOCK_GELU, PE_BLOCK_GELU_TANH};
    static double want[WIDEST];
    uint64_t state = 6;
    for (size_t i = 0; i < N_SIZES * 6; i++) {
        const enum pe_dtype dtype = types[i % N_REAL];
        const enum pe_block_activation f = all[i / N_REAL % 3];
        const size_t n = size_at(i / 6);
        void *x = numbers(0, dtype, n, false, &state);
        for (size_t j = 0; j < n; j++) {
            double one[1];
            number_put(dtype, one, 0, number_at(dtype, x, j));
            pe_activate(f, dtype, one, 1);
            want[j] = number_at(dtype, one, 0);
        }
        pe_activate(f, dtype, x, n);
        expect_numbers(dtype, x, want, n, "activation");
    }
}
END_TEST

/* Against the definition with more digits. A sum of n numbers below 1 in eight lanes is off by n/8 roundings and those
 * at its end, and as the quotient's divisor is sqrt(eps) at least, the quotient by less than 400 times as much. */
START_TEST(norms_are_those_of_the_definition) {
    uint64_t state = 7;
    for (size_t i = N_REAL; i < N_SIZES * N_REAL; i++) {
        const enum pe_dtype dtype = types[i % N_REAL];
        const size_t n = size_at(i / N_REAL);
        const void *x = numbers(0, dtype, n, false, &state), *weight = numbers(1, dtype, n, false, &state);
        void *out = numbers(2, dtype, n, false, &state);
        long double mean = 0, variance = 0;
        for (size_t j = 0; j < n; j++) {
            mean += (long double)number_at(dtype, x, j) / n;
        }
        for (size_t j = 0; j < n; j++) {
            const long double off = (long double)number_at(dtype, x, j) - mean;
            variance += off * off / n;
        }
        pe_norm_run(&(struct pe_norm){dtype, n, weight, weight, 1e-5}, x, out);
        for (size_t j = 0; j < n; j++) {
            const long double w = number_at(dtype, weight, j),
                              want =
                                  ((long double)number_at(dtype, x, j) - mean) / sqrtl(variance + 1e-5L) * w +
                                  w;
            const double last = dtype == PE_DTYPE_F32 ? 0x1p-23 : 0x1p-52,
                         most = (8 + (double)n / 8) * 0x1p-52;
            EXPECT(fabsl(number_at(dtype, out, j) - want) <= fabsl(want) * last / 2 + most * 400,
                   "%zu %s: element %zu is %a, not %La", n, pe_dtype_name(dtype), j, number_at(dtype, out, j),
                   want);
        }
    }
}
END_TEST

/* ---- gather.h ------------------------------------------------------------------------------------------- */

struct gathering {
    struct pe_gather g;
    double rows[5], columns[WIDEST];
    size_t width; /* of a row of products */
};

/* Columns follow each other, in runs or none at all. */
static void gathering_make(struct gathering *is, size_t n, uint64_t *state) {
    const uint64_t bits = random_next(state);
    const int64_t least = -(int64_t)(random_next(state) % 40),
                  most = least + (int64_t)(random_next(state) % 60);
    is->width = (size_t)(most - least) + 1;
    is->g = (struct pe_gather){.real = types[bits & 1],
                               .n_rows = 1 + (bits >> 1 & 3),
                               .n_columns = n,
                               .rows = is->rows,
                               .columns = is->columns,
                               .least = least,
                               .most = most,
                               .reversed = bits >> 3 & 1,
                               .below = bits >> 4 & 1,
                               .above = bits >> 5 & 1};
    for (size_t i = 0; i < PE_COUNT(is->rows); i++) {
        is->rows[i] = (double)(random_next(state) % 100);
    }
    double at = (double)(random_next(state) % 50);
    for (size_t i = 0; i < n; i++) {
        is->columns[i] = at;
        at += bits >> 6 & 1 || random_next(state) % 16 ? 1 : (double)(random_next(state) % 7) - 3;
    }
}

/* In a row of products; is->width: nowhere. */
static size_t place_of(const struct gathering *is, size_t row, size_t column) {
    const struct pe_gather *g = &is->g;
    int64_t distance = (int64_t)(g->columns[column] - g->rows[row]);
    if ((distance < g->least && !g->below) || (distance > g->most && !g->above)) {
        return is->width;
    }
    distance = distance < g->least ? g->least : distance > g->most ? g->most : distance;
    return (size_t)(g->reversed ? g->most - distance : distance - g->least);
}

/* Whole numbers, so that no sum is rounded; out's columns next to each other, or `apart`. */
static void check_gather(struct gathering *is, size_t n, size_t apart, uint64_t *state) {
    static double want[4 * WIDEST];
    gathering_make(is, n, state);
    const struct pe_gather *g = &is->g;
    const size_t products = g->n_rows * is->width, pairs = g->n_rows * n;
    const size_t row = apart > 1 ? 1 : n, column = apart > 1 ? g->n_rows : 1;
    const void *from = numbers(0, g->real, products, true, state);
    void *out = numbers(1, g->real, pairs, true, state), *sums = numbers(2, g->real, products, true, state);
    for (size_t a = 0; a < g->n_rows; a++) {
        for (size_t b = 0; b < n; b++) {
            const size_t at = place_of(is, a, b), to = a * row + b * column;
            want[to] = number_at(g->real, out, to) +
                       (at < is->width ? number_at(g->real, from, a * is->width + at) : 0);
        }
    }
    pe_gather_add(g, (struct pe_const_matrix){from, is->width}, (struct pe_gather_out){out, row, column});
    expect_numbers(g->real, out, want, pairs, "gather");
    memset(want, 0, products * sizeof *want);
    for (size_t i = 0; i < pairs; i++) {
        const size_t at = place_of(is, i / n, i % n);
        want[i / n * is->width + (at < is->width ? at : 0)] +=
            at < is->width ? number_at(g->real, out, i) : 0;
    }
    pe_gather_sum(g, (struct pe_const_matrix){out, n}, (struct pe_matrix){sums, is->width});
    expect_numbers(g->real, sums, want, products, "sums");
}

START_TEST(gathered_are_those_of_pairs) {
    static struct gathering is;
    static const size_t wide[] = {127, 256, 300, 1000};
    uint64_t state = 8;
    for (size_t i = 1; i <= 70 + PE_COUNT(wide); i++) {
        for (size_t k = 0; k < 40; k++) {
            check_gather(&is, i <= 70 ? i : wide[i - 71], 1 + k % 2, &state);
        }
    }
}
END_TEST

Suite *loops_suite(void) {
    Suite *suite = suite_create("loops");
    TCase *tests = tcase_create("loops");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, sums_are_those_of_elements);
    tcase_add_test(tests, the_largest_is_found_anywhere);
    tcase_add_test(tests, dot_products_have_their_order);
    tcase_add_test(tests, conversions_are_those_of_elements);
    tcase_add_test(tests, rows_become_other_types);
    tcase_add_test(tests, activations_are_those_of_elements);
    tcase_add_test(tests, norms_are_those_of_the_definition);
    tcase_add_test(tests, gathered_are_those_of_pairs);
    suite_add_tcase(suite, tests);
    return suite;
}
