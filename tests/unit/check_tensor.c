/* SPDX-License-Identifier: MIT
 *
 * Tensors: sizes that overflow are told apart, conversion rounds once, faults are named by their index.
 */
#include "suites.h"

#include "core/dtype.h"
#include "posenc_fields.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct pe_arena *arena;

static void setup(void) {
    struct pe_error err = {0};
    arena = pe_arena_open(1 << 20, NULL, &err);
}

static void teardown(void) {
    pe_arena_close(arena);
}

START_TEST(products_tell_overflow_apart) {
    size_t product = 7;
    const size_t half = SIZE_MAX / 2 + 1; /* 2^63 where size_t has 64 bits */
    ck_assert(pe_size_product((size_t[]){3, 4, 5}, 3, &product));
    ck_assert_uint_eq(product, 60);
    ck_assert(pe_size_product(NULL, 0, &product));
    ck_assert_uint_eq(product, 1);
    ck_assert(pe_size_product((size_t[]){SIZE_MAX, 1}, 2, &product));
    ck_assert_uint_eq(product, SIZE_MAX);
    ck_assert(!pe_size_product((size_t[]){half, 2}, 2, &product));
    ck_assert(!pe_size_product((size_t[]){half, 2, 3}, 3, &product));
    ck_assert(pe_size_product((size_t[]){half, 4, 0}, 3, &product)); /* nothing, however large the others */
    ck_assert_uint_eq(product, 0);
    ck_assert(pe_size_product((size_t[]){0, half, 4}, 3, &product));
    ck_assert_uint_eq(product, 0);
}
END_TEST

START_TEST(counts_and_bytes_saturate) {
    struct pe_tensor tensor = {.dtype = PE_DTYPE_F32, .rank = 2, .dim = {3, 5}};
    ck_assert_uint_eq(pe_tensor_count(&tensor), 15);
    ck_assert_uint_eq(pe_tensor_bytes(&tensor), 60);
    tensor.dim[0] = SIZE_MAX;
    ck_assert_uint_eq(pe_tensor_count(&tensor), SIZE_MAX);
    ck_assert_uint_eq(pe_tensor_bytes(&tensor), SIZE_MAX);
    tensor.dim[0] = SIZE_MAX / 10; /* the count fits, the bytes do not */
    tensor.dim[1] = 9;
    ck_assert_uint_lt(pe_tensor_count(&tensor), SIZE_MAX);
    ck_assert_uint_eq(pe_tensor_bytes(&tensor), SIZE_MAX);
    tensor.rank = 0;
    ck_assert_uint_eq(pe_tensor_count(&tensor), 1);
}
END_TEST

START_TEST(alloc_checks_shape_type_and_limit) {
    static const size_t dim[PE_MAX_RANK + 1] = {2, 3, 1, 1, 1, 1, 1, 1, 1};
    static const struct {
        enum pe_dtype dtype;
        int rank, code;
    } rows[] = {
        {PE_DTYPE_F32, 2, PE_OK},           {PE_DTYPE_F32, 0, PE_OK},
        {PE_DTYPE_F32, PE_MAX_RANK, PE_OK}, {PE_DTYPE_F32, PE_MAX_RANK + 1, PE_ERR_SHAPE},
        {PE_DTYPE_F32, -1, PE_ERR_SHAPE},   {PE_DTYPE_NONE, 2, PE_ERR_DTYPE},
    };
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct pe_error err = {0};
        struct pe_tensor out = {0};
        ck_assert_int_eq(pe_tensor_alloc(arena, &out, rows[i].dtype, rows[i].rank, dim, &err), rows[i].code);
        ck_assert_int_eq(err.code, rows[i].code);
        ck_assert_int_eq(out.data != NULL, rows[i].code == PE_OK);
        ck_assert_int_eq(out.rank, rows[i].code == PE_OK ? rows[i].rank : 0);
    }
}
END_TEST

START_TEST(alloc_takes_no_memory_for_a_shape_that_overflows) {
    static const size_t shapes[][2] = {
        {SIZE_MAX / 2 + 1, 2}, {SIZE_MAX / 8 + 1, 1}, {SIZE_MAX, SIZE_MAX}, {(1 << 20) / 8 + 1, 1}};
    for (size_t i = 0; i < PE_COUNT(shapes); i++) {
        struct pe_error err = {0};
        struct pe_tensor out = {0};
        ck_assert_int_eq(pe_tensor_alloc(arena, &out, PE_DTYPE_F64, 2, shapes[i], &err), PE_ERR_LIMIT);
        ck_assert_uint_eq(err.limit, 1 << 20);
        ck_assert_uint_gt(err.got, 1 << 20);
        ck_assert_uint_eq(pe_arena_used(arena), 0);
    }
}
END_TEST

START_TEST(an_empty_tensor_has_data) {
    struct pe_error err = {0};
    struct pe_tensor out, copy;
    ck_assert_int_eq(pe_tensor_alloc(arena, &out, PE_DTYPE_F64, 2, (size_t[]){0, 8}, &err), PE_OK);
    ck_assert_ptr_nonnull(out.data);
    ck_assert_uint_eq(pe_tensor_bytes(&out), 0);
    ck_assert_int_eq(pe_tensor_check_finite(&out, false, &err), PE_OK);
    ck_assert_int_eq(pe_tensor_convert(arena, &copy, &out, PE_DTYPE_F16, &err), PE_OK);
}
END_TEST

START_TEST(converting_to_the_same_type_is_a_view) {
    float values[] = {1, NAN};
    struct pe_error err = {0};
    struct pe_tensor in = {values, PE_DTYPE_F32, 1, {2}}, out;
    ck_assert_int_eq(pe_tensor_convert(arena, &out, &in, PE_DTYPE_F32, &err), PE_OK);
    ck_assert_ptr_eq(out.data, values);
    ck_assert_uint_eq(pe_arena_used(arena), 0);
}
END_TEST

/* More elements than any buffer inside, so that its seams are crossed; all are exact in float16. */
START_TEST(converting_keeps_order_and_shape) {
    enum { N = 1000 };
    double values[N];
    for (size_t i = 0; i < N; i++) {
        values[i] = (double)i - 500;
    }
    struct pe_error err = {0};
    struct pe_tensor in = {values, PE_DTYPE_F64, 2, {10, 100}}, half, back;
    ck_assert_int_eq(pe_tensor_convert(arena, &half, &in, PE_DTYPE_F16, &err), PE_OK);
    ck_assert_int_eq(half.dtype, PE_DTYPE_F16);
    ck_assert_int_eq(half.rank, 2);
    ck_assert_uint_eq(half.dim[0], 10);
    ck_assert_uint_eq(half.dim[1], 100);
    ck_assert_int_eq(pe_tensor_convert(arena, &back, &half, PE_DTYPE_F64, &err), PE_OK);
    ck_assert_mem_eq(back.data, values, sizeof values);
}
END_TEST

START_TEST(converting_rounds_once) {
    double value = 1 + 0x1p-11 + 0x1p-40;
    struct pe_error err = {0};
    struct pe_tensor in = {&value, PE_DTYPE_F64, 0, {0}}, out;
    ck_assert_int_eq(pe_tensor_convert(arena, &out, &in, PE_DTYPE_F16, &err), PE_OK);
    uint16_t half;
    memcpy(&half, out.data, sizeof half);
    ck_assert_uint_eq(half, 0x3c01);
}
END_TEST

START_TEST(a_finite_number_never_becomes_infinite) {
    static const struct {
        enum pe_dtype dtype;
        double fits;
    } rows[] = {{PE_DTYPE_F32, 0x1.fffffefffffffp127},
                {PE_DTYPE_F16, 0x1.ffdffffffffffp15},
                {PE_DTYPE_BF16, 0x1.fefffffffffffp127}};
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        for (int sign = -1; sign <= 1; sign += 2) {
            double values[2][300] = {{INFINITY, -INFINITY, NAN}};
            struct pe_error err = {0};
            struct pe_tensor in = {values, PE_DTYPE_F64, 2, {2, 300}}, out = {0};
            values[1][280] = sign * rows[i].fits;
            ck_assert_int_eq(pe_tensor_convert(arena, &out, &in, rows[i].dtype, &err), PE_OK);
            values[1][280] = sign * nextafter(rows[i].fits, INFINITY);
            ck_assert_int_eq(pe_tensor_convert(arena, &out, &in, rows[i].dtype, &err), PE_ERR_RANGE);
            ck_assert_str_eq(err.path, "[1][280]");
        }
    }
}
END_TEST

START_TEST(overflow_of_float32_is_seen_in_narrower_types) {
    float values[] = {1, 65520};
    struct pe_error err = {0};
    struct pe_tensor in = {values, PE_DTYPE_F32, 1, {2}}, out;
    ck_assert_int_eq(pe_tensor_convert(arena, &out, &in, PE_DTYPE_F16, &err), PE_ERR_RANGE);
    ck_assert_str_eq(err.path, "[1]");
    ck_assert_str_eq(err.text, "got 65520, which is beyond the largest float16");
}
END_TEST

START_TEST(finite_check_names_the_first_fault) {
    static const struct {
        double value;
        bool allow_minus_inf;
        int code;
        const char *text;
    } rows[] = {
        {0, false, PE_OK, ""},
        {1e308, false, PE_OK, ""},
        {NAN, false, PE_ERR_NONFINITE, "got nan, allowed are finite numbers"},
        {INFINITY, false, PE_ERR_NONFINITE, "got infinity, allowed are finite numbers"},
        {-INFINITY, false, PE_ERR_NONFINITE, "got -infinity, allowed are finite numbers"},
        {-INFINITY, true, PE_OK, ""},
        {INFINITY, true, PE_ERR_NONFINITE, "got infinity, allowed are finite numbers and -infinity"},
        {NAN, true, PE_ERR_NONFINITE, "got nan, allowed are finite numbers and -infinity"},
    };
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        double values[2][3][100] = {0};
        struct pe_error err = {0};
        const struct pe_tensor tensor = {values, PE_DTYPE_F64, 3, {2, 3, 100}};
        values[1][0][99] = values[1][2][5] = rows[i].value;
        ck_assert_int_eq(pe_tensor_check_finite(&tensor, rows[i].allow_minus_inf, &err), rows[i].code);
        ck_assert_str_eq(err.text, rows[i].text);
        ck_assert_str_eq(err.path, rows[i].code ? "[1][0][99]" : "");
    }
}
END_TEST

START_TEST(finite_check_reads_every_type) {
    for (int dtype = PE_DTYPE_F64; dtype < PE_DTYPE_COUNT; dtype++) {
        const double values[] = {1, 2, INFINITY};
        unsigned char bytes[sizeof values];
        struct pe_error err = {0};
        pe_dtype_store((enum pe_dtype)dtype, values, 3, bytes);
        const struct pe_tensor tensor = {bytes, (enum pe_dtype)dtype, 1, {3}};
        ck_assert_int_eq(pe_tensor_check_finite(&tensor, false, &err), PE_ERR_NONFINITE);
        ck_assert_str_eq(err.path, "[2]");
    }
}
END_TEST

/* Among the largest and smallest numbers of either sign, at every place of a length that fills no word. */
START_TEST(finite_check_finds_it_at_every_place) {
    enum { N = 83 };
    for (int dtype = PE_DTYPE_F64; dtype < PE_DTYPE_COUNT; dtype++) {
        const double top = dtype == PE_DTYPE_F64 ? 0x1.fffffffffffffp1023
                                                 : nextafter(pe_dtype_overflow((enum pe_dtype)dtype), 0);
        const double wrong[] = {INFINITY, -INFINITY, NAN};
        for (size_t at = 0; at <= N * PE_COUNT(wrong); at++) {
            double values[N];
            unsigned char bytes[sizeof values];
            struct pe_error err = {0};
            for (size_t i = 0; i < N; i++) {
                values[i] = i % 3 == 2 ? 5e-324 : i % 3 ? -top : top;
            }
            if (at < N * PE_COUNT(wrong)) {
                values[at / PE_COUNT(wrong)] = wrong[at % PE_COUNT(wrong)];
            }
            pe_dtype_store((enum pe_dtype)dtype, values, N, bytes);
            const struct pe_tensor tensor = {bytes, (enum pe_dtype)dtype, 1, {N}};
            const int code = at < N * PE_COUNT(wrong) ? PE_ERR_NONFINITE : PE_OK;
            char path[20] = "";
            if (code != PE_OK) {
                snprintf(path, sizeof path, "[%zu]", at / PE_COUNT(wrong));
            }
            ck_assert_int_eq(pe_tensor_check_finite(&tensor, false, &err), code);
            ck_assert_str_eq(err.path, path);
        }
    }
}
END_TEST

/* Numbers are looked at by thousands; -infinity, where it is allowed, hides nothing behind it. */
START_TEST(finite_check_finds_it_among_thousands) {
    enum { N = 3 * 4096 + 5 };
    static float values[N];
    static const size_t places[] = {0, 255, 256, 4095, 4096, 4352, 8191, 8192, N - 1};
    const struct pe_tensor tensor = {values, PE_DTYPE_F32, 1, {N}};
    for (size_t i = 0; i < PE_COUNT(places); i++) {
        for (size_t hidden = 0; hidden < 2; hidden++) {
            struct pe_error err = {0};
            char path[20];
            memset(values, 0, sizeof values);
            for (size_t j = 0; hidden && j < N; j += 100) {
                values[j] = -INFINITY;
            }
            ck_assert_int_eq(pe_tensor_check_finite(&tensor, true, &err), PE_OK);
            values[places[i]] = NAN;
            values[N - 1] = NAN; /* the first is named */
            snprintf(path, sizeof path, "[%zu]", places[i]);
            ck_assert_int_eq(pe_tensor_check_finite(&tensor, true, &err), PE_ERR_NONFINITE);
            ck_assert_str_eq(err.path, path);
        }
    }
}
END_TEST

START_TEST(shapes_and_indices_as_text) {
    char text[64], tight[6];
    const struct pe_tensor three = {.rank = 3, .dim = {2, 5, 16}}, one = {.rank = 1, .dim = {7}}, none = {0};
    ck_assert_str_eq(pe_tensor_shape_text(&three, text, sizeof text), "[2, 5, 16]");
    ck_assert_str_eq(pe_tensor_shape_text(&one, text, sizeof text), "[7]");
    ck_assert_str_eq(pe_tensor_shape_text(&none, text, sizeof text), "[]");
    ck_assert_str_eq(pe_tensor_shape_text(&three, tight, sizeof tight), "[2, 5");
    ck_assert_str_eq(pe_tensor_index_text(&three, 0, text, sizeof text), "[0][0][0]");
    ck_assert_str_eq(pe_tensor_index_text(&three, 1 * 80 + 3 * 16 + 15, text, sizeof text), "[1][3][15]");
    ck_assert_str_eq(pe_tensor_index_text(&one, 6, text, sizeof text), "[6]");
    ck_assert_str_eq(pe_tensor_index_text(&none, 0, text, sizeof text), "");
    ck_assert_str_eq(pe_tensor_index_text(&three, 0, tight, sizeof tight), "[0][0");
}
END_TEST

START_TEST(after_a_failure_nothing_is_done) {
    struct pe_error err = {0};
    double value = NAN;
    struct pe_tensor in = {&value, PE_DTYPE_F64, 0, {0}}, out = {0};
    pe_fail(&err, PE_ERR_TYPE, "first", "failure");
    ck_assert_int_eq(pe_tensor_alloc(NULL, &out, PE_DTYPE_F64, 0, NULL, &err), PE_ERR_TYPE);
    ck_assert_int_eq(pe_tensor_convert(NULL, &out, &in, PE_DTYPE_F64, &err), PE_ERR_TYPE);
    ck_assert_int_eq(pe_tensor_check_finite(&in, false, &err), PE_ERR_TYPE);
    ck_assert_ptr_null(out.data);
}
END_TEST

Suite *tensor_suite(void) {
    Suite *suite = suite_create("tensor");
    TCase *tests = tcase_create("tensor");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, products_tell_overflow_apart);
    tcase_add_test(tests, counts_and_bytes_saturate);
    tcase_add_test(tests, alloc_checks_shape_type_and_limit);
    tcase_add_test(tests, alloc_takes_no_memory_for_a_shape_that_overflows);
    tcase_add_test(tests, an_empty_tensor_has_data);
    tcase_add_test(tests, converting_to_the_same_type_is_a_view);
    tcase_add_test(tests, converting_keeps_order_and_shape);
    tcase_add_test(tests, converting_rounds_once);
    tcase_add_test(tests, a_finite_number_never_becomes_infinite);
    tcase_add_test(tests, overflow_of_float32_is_seen_in_narrower_types);
    tcase_add_test(tests, finite_check_names_the_first_fault);
    tcase_add_test(tests, finite_check_reads_every_type);
    tcase_add_test(tests, finite_check_finds_it_at_every_place);
    tcase_add_test(tests, finite_check_finds_it_among_thousands);
    tcase_add_test(tests, shapes_and_indices_as_text);
    tcase_add_test(tests, after_a_failure_nothing_is_done);
    suite_add_tcase(suite, tests);
    return suite;
}
