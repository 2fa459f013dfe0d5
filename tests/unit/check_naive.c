/* SPDX-License-Identifier: MIT
 *
 * The encodings `naive` and `none`: values by hand, p/N rounded once against exact fractions
 * (tests/golden/make_naive.py), and the positions that binary refuses.
 */
#include "suites.h"

#include "posenc.h"

#include <stdio.h>
#include <string.h>

struct naive_value {
    int64_t p, n;
    enum pe_dtype dtype;
    double value;
};
#include "../golden/naive_values.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct pe_arena *arena;
static struct pe_error err;

static void setup(void) {
    err = (struct pe_error){0};
    arena = pe_arena_open((size_t)1 << 20, NULL, &err);
}

static void teardown(void) {
    pe_arena_close(arena);
}

static struct pe_spec spec_of(const char *form, const char *width) {
    struct pe_spec spec;
    ck_assert(!pe_spec_init(arena, &spec, "naive", &err) && !pe_spec_set(arena, &spec, "form", form, &err) &&
              !pe_spec_set(arena, &spec, "d_model", width, &err));
    return spec;
}

/* Vectors of these positions; fails the test when they are refused. */
static struct pe_tensor encode(struct pe_spec *spec, const char *positions, enum pe_dtype dtype) {
    struct pe_positions at;
    struct pe_plan *plan;
    struct pe_work work;
    struct pe_tensor out;
    int code = pe_positions_parse(arena, &at, positions, &err);
    code = code ? code : pe_spec_fit(spec, 0, pe_positions_count(&at), &err);
    code = code ? code : pe_plan_open(&plan, spec, &err);
    code = code ? code : pe_encode_open(arena, &work, &out, plan, &at, dtype, &err);
    ck_assert_msg(!code, "%s: %s", err.path, err.text);
    pe_work_run(&work);
    pe_plan_close(plan);
    return out;
}

static void assert_values(const struct pe_tensor *got, const double *want, size_t n) {
    double values[64];
    ck_assert_uint_eq(pe_tensor_count(got), n);
    pe_dtype_load(got->dtype, got->data, n, values);
    for (size_t i = 0; i < n; i++) {
        ck_assert_double_eq(values[i], want[i]);
    }
}

START_TEST(integer_is_the_position_in_every_column) {
    struct pe_spec spec = spec_of("integer", "3");
    struct pe_tensor out = encode(&spec, "0,-2,2.5,1000000", PE_DTYPE_F32);
    static const double want[] = {0, 0, 0, -2, -2, -2, 2.5, 2.5, 2.5, 1000000, 1000000, 1000000};
    assert_values(&out, want, COUNT(want));
}
END_TEST

/* Over 4 positions the step is 1/4, over 8 it is 1/8: the fault of this attempt. */
START_TEST(normalized_follows_the_number_of_positions) {
    static const double four[] = {0, 0.25, 0.5, 0.75}, eight[] = {0, 0.125, 0.25, 0.375};
    struct pe_spec follows = spec_of("normalized", "1"), given = spec_of("normalized", "1");
    struct pe_tensor out = encode(&follows, "0:4", PE_DTYPE_F64);
    assert_values(&out, four, 4);
    ck_assert_int_eq(pe_spec_set(arena, &given, "seq_len", "8", &err), PE_OK);
    out = encode(&given, "0:4", PE_DTYPE_F16);
    assert_values(&out, eight, 4);
}
END_TEST

START_TEST(normalized_needs_a_length) {
    struct pe_spec spec = spec_of("normalized", "1");
    struct pe_plan *plan;
    ck_assert_int_eq(pe_plan_open(&plan, &spec, &err), PE_ERR_MISSING);
    ck_assert_str_eq(err.path, "seq_len");
}
END_TEST

START_TEST(normalized_is_rounded_once) {
    for (size_t i = 0; i < 2 * COUNT(naive_values); i++) {
        const struct naive_value *want = &naive_values[i / 2];
        const double sign = i % 2 ? -1 : 1, values[] = {sign * want->value};
        char length[32], position[32];
        struct pe_spec spec = spec_of("normalized", "1");
        snprintf(length, sizeof length, "%lld", (long long)want->n);
        snprintf(position, sizeof position, "%lld", (long long)want->p * (long long)sign);
        ck_assert_int_eq(pe_spec_set(arena, &spec, "seq_len", length, &err), PE_OK);
        struct pe_tensor out = encode(&spec, position, want->dtype);
        assert_values(&out, values, 1);
    }
}
END_TEST

START_TEST(binary_is_the_bits_least_significant_first) {
    struct pe_spec spec = spec_of("binary", "4"), wide = spec_of("binary", "60");
    struct pe_tensor out = encode(&spec, "0,1,2,7,8,15", PE_DTYPE_BF16);
    static const double want[] = {0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1};
    assert_values(&out, want, COUNT(want));
    double top[60] = {[53] = 1};
    out = encode(&wide, "9007199254740992", PE_DTYPE_F64);
    assert_values(&out, top, COUNT(top));
}
END_TEST

START_TEST(binary_refuses_what_has_no_bits) {
    static const struct {
        const char *positions, *path, *text;
    } rows[] = {
        {"0,7,8", "positions[2]", "got 8, allowed are whole numbers from 0 to 7 (3 bits)"},
        {"0,-1", "positions[1]", "got -1, allowed are whole numbers from 0 to 7 (3 bits)"},
        {"0.5", "positions[0]", "got 0.5, allowed are whole numbers from 0 to 7 (3 bits)"},
        {"[[0,1],[2,9]]", "positions[1][1]", "got 9, allowed are whole numbers from 0 to 7 (3 bits)"},
        {"0:1000000000000", "positions[8]", "got 8, allowed are whole numbers from 0 to 7 (3 bits)"},
        {"7:-4:-2", "positions[4]", "got -1, allowed are whole numbers from 0 to 7 (3 bits)"},
        {"0:2:0.5", "positions[1]", "got 0.5, allowed are whole numbers from 0 to 7 (3 bits)"},
    };
    struct pe_spec spec = spec_of("binary", "3");
    struct pe_plan *plan;
    struct pe_positions at;
    ck_assert(!pe_plan_open(&plan, &spec, &err) && !pe_positions_parse(arena, &at, rows[_i].positions, &err));
    ck_assert_int_eq(pe_encode_check(plan, &at, PE_DTYPE_F32, &err), PE_ERR_RANGE);
    ck_assert_str_eq(err.path, rows[_i].path);
    ck_assert_str_eq(err.text, rows[_i].text);
    pe_plan_close(plan);
}
END_TEST

/* float16 ends at 65504, and 65520, halfway to 2^16, is the first number that rounds to infinity (IEEE 754,
 * 4.3.1). Nothing of that is ever a result. */
START_TEST(what_does_not_fit_the_type_is_refused) {
    static const struct {
        const char *form, *positions, *path; /* path NULL: it fits */
        enum pe_dtype dtype;
    } rows[] = {
        {"integer", "65519,65519.99", NULL, PE_DTYPE_F16},
        {"integer", "1,-65519.99,65520", "positions[2]", PE_DTYPE_F16},
        {"integer", "-65520", "positions[0]", PE_DTYPE_F16},
        {"integer", "0:1000000000000", "positions[65520]", PE_DTYPE_F16},
        {"integer", "5:-1000000000000:-1", "positions[65525]", PE_DTYPE_F16},
        {"integer", "9007199254740992", NULL, PE_DTYPE_BF16},
        {"normalized", "196559", NULL, PE_DTYPE_F16}, /* by 3: 65519.67 */
        {"normalized", "0,196560", "positions[1]", PE_DTYPE_F16},
        {"normalized", "196560", NULL, PE_DTYPE_F32},
        {"binary", "65535", NULL, PE_DTYPE_F16},
    };
    struct pe_spec spec = spec_of(rows[_i].form, "17");
    struct pe_plan *plan;
    struct pe_positions at;
    struct pe_work work;
    struct pe_tensor out;
    ck_assert(!pe_spec_set(arena, &spec, "seq_len", "3", &err) && !pe_plan_open(&plan, &spec, &err) &&
              !pe_positions_parse(arena, &at, rows[_i].positions, &err));
    if (!rows[_i].path) {
        ck_assert_int_eq(pe_encode_open(arena, &work, &out, plan, &at, rows[_i].dtype, &err), PE_OK);
        pe_work_run(&work);
        ck_assert(!pe_tensor_check_finite(&out, false, &err));
    } else {
        ck_assert_int_eq(pe_encode_check(plan, &at, rows[_i].dtype, &err), PE_ERR_RANGE);
        ck_assert_str_eq(err.path, rows[_i].path);
    }
    pe_plan_close(plan);
}
END_TEST

START_TEST(none_makes_no_vectors) {
    struct pe_spec spec;
    struct pe_plan *plan;
    struct pe_positions at;
    ck_assert(!pe_spec_init(arena, &spec, "none", &err) && !pe_plan_open(&plan, &spec, &err) &&
              !pe_positions_parse(arena, &at, "0:3", &err));
    ck_assert_uint_eq(pe_plan_width(plan), 0);
    ck_assert_int_eq(spec.encoding->family, PE_FAMILY_NONE);
    ck_assert_int_eq(pe_encode_check(plan, &at, PE_DTYPE_F32, &err), PE_ERR_UNSUPPORTED);
    err.code = PE_OK;
    ck_assert_int_eq(pe_encode_check(plan, &at, PE_DTYPE_NONE, &err), PE_ERR_DTYPE);
    ck_assert_str_eq(err.path, "dtype");
    pe_plan_close(plan);
}
END_TEST

Suite *naive_suite(void) {
    Suite *suite = suite_create("naive");
    TCase *tc = tcase_create("naive");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, integer_is_the_position_in_every_column);
    tcase_add_test(tc, normalized_follows_the_number_of_positions);
    tcase_add_test(tc, normalized_needs_a_length);
    tcase_add_test(tc, normalized_is_rounded_once);
    tcase_add_test(tc, binary_is_the_bits_least_significant_first);
    tcase_add_loop_test(tc, binary_refuses_what_has_no_bits, 0, 7);
    tcase_add_loop_test(tc, what_does_not_fit_the_type_is_refused, 0, 10);
    tcase_add_test(tc, none_makes_no_vectors);
    suite_add_tcase(suite, tc);
    return suite;
}
