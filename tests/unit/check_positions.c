/* SPDX-License-Identifier: MIT
 *
 * Positions as text, progressions and tensors. Counts and elements at the edge of rounding were made by exact
 * fractions (make_positions_table.py).
 */
#include "suites.h"

#include "golden/positions_table.h"
#include "posenc_fields.h"

#include <math.h>
#include <string.h>

#define TWO_53 9007199254740992.0

static struct pe_arena *arena;

static void setup(void) {
    struct pe_error err = {0};
    arena = pe_arena_open(1 << 20, NULL, &err);
}

static void teardown(void) {
    pe_arena_close(arena);
}

/* Compares all positions, flat, with n expected numbers. */
static void expect(const struct pe_positions *positions, const double *expected, size_t n) {
    double got[64];
    ck_assert_uint_eq(pe_positions_count(positions) * (size_t)positions->axes, n);
    ck_assert_uint_le(n, PE_COUNT(got));
    pe_positions_read(positions, 0, pe_positions_count(positions), got);
    for (size_t i = 0; i < n; i++) {
        ck_assert_msg(got[i] == expected[i], "position %zu is %.17g, expected %.17g", i, got[i], expected[i]);
    }
}

/* ---- Text ---- */

START_TEST(text_is_a_range_or_a_list) {
    static const struct {
        const char *text;
        size_t batch, length;
        double expected[8];
    } rows[] = {
        {"0:4", 0, 4, {0, 1, 2, 3}},
        {"5:0:-1", 0, 5, {5, 4, 3, 2, 1}},
        {"-2:2", 0, 4, {-2, -1, 0, 1}}, /* positions, not counts from the end */
        {"0:1:0.25", 0, 4, {0, 0.25, 0.5, 0.75}},
        {"0:1.01:0.25", 0, 5, {0, 0.25, 0.5, 0.75, 1}},
        {"-0.5:-2:-0.75", 0, 2, {-0.5, -1.25}},
        {"1e3:1.002E+3", 0, 2, {1000, 1001}},
        {"4:0", 0, 0, {0}},
        {"4:4", 0, 0, {0}},
        {"0:4:-1", 0, 0, {0}},
        {"1e300:0", 0, 0, {0}}, /* nothing before stop, so no position out of range */
        {"9007199254740990:9007199254740992", 0, 2, {9007199254740990, 9007199254740991}},
        {"5", 0, 1, {5}},
        {"-2.5", 0, 1, {-2.5}},
        {"0,1,2.5", 0, 3, {0, 1, 2.5}},
        {"[0,1,2.5]", 0, 3, {0, 1, 2.5}},
        {"[[0,1],[2,3]]", 2, 2, {0, 1, 2, 3}}, /* one axis: two rows of two, not two axes */
        {"[[7]]", 1, 1, {7}},
        {"[]", 0, 0, {0}},
        {"-9007199254740992,9007199254740992", 0, 2, {-TWO_53, TWO_53}},
    };
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct pe_error err = {0};
        struct pe_positions out = {0};
        ck_assert_msg(pe_positions_parse(arena, &out, rows[i].text, &err) == PE_OK, "\"%s\": %s",
                      rows[i].text, err.text);
        ck_assert_uint_eq(out.batch, rows[i].batch);
        ck_assert_uint_eq(out.length, rows[i].length);
        ck_assert_int_eq(out.axes, 1);
        ck_assert(!out.by_rule);
        expect(&out, rows[i].expected, (rows[i].batch ? rows[i].batch : 1) * rows[i].length);
    }
}
END_TEST

START_TEST(wrong_text_is_refused) {
    static const struct {
        const char *text;
        int code;
        const char *path;
    } rows[] = {
        {"", PE_ERR_SYNTAX, ""},
        {":", PE_ERR_SYNTAX, ""},
        {"1:", PE_ERR_SYNTAX, ""},
        {":5", PE_ERR_SYNTAX, ""},
        {"1:2:", PE_ERR_SYNTAX, ""},
        {"1:2:3:4", PE_ERR_SYNTAX, ""},
        {"0x10:20", PE_ERR_SYNTAX, ""},
        {" 1:2", PE_ERR_SYNTAX, ""},
        {"1:2 ", PE_ERR_SYNTAX, ""},
        {"+1:2", PE_ERR_SYNTAX, ""},
        {"01:2", PE_ERR_SYNTAX, ""},
        {".5:2", PE_ERR_SYNTAX, ""},
        {"1.:2", PE_ERR_SYNTAX, ""},
        {"0:inf", PE_ERR_SYNTAX, ""},
        {"nan:5", PE_ERR_SYNTAX, ""},
        {"0:5;1", PE_ERR_SYNTAX, ""},
        {"4:0:0", PE_ERR_RANGE, ""},
        {"0:1e999", PE_ERR_RANGE, ""},
        {"0:9223372036854775807", PE_ERR_RANGE, ""},
        {"-1e300:5", PE_ERR_RANGE, ""},
        {"0:-1e300:-1e200", PE_ERR_RANGE, ""},
        {"0:1:1e-300", PE_ERR_RANGE, ""},
        {"abc", PE_ERR_TYPE, "[0]"},
        {"1,x", PE_ERR_TYPE, "[1]"},
        {"1,,2", PE_ERR_TYPE, "[1]"},
        {"1,2,", PE_ERR_TYPE, "[2]"},
        {"0x10", PE_ERR_SYNTAX, "[0]"},
        {"[0,1", PE_ERR_SYNTAX, "[1]"},
        {"0,1e999", PE_ERR_RANGE, "[1]"},
        {"0,9007199254740994", PE_ERR_RANGE, "[1]"},
        {"[[0,1],[2,-9007199254740994]]", PE_ERR_RANGE, "[1][1]"},
        {"[[0,1],[2]]", PE_ERR_SHAPE, "[1]"},
        {"[[0],1]", PE_ERR_SHAPE, "[1]"},
        {"[[[0]]]", PE_ERR_SHAPE, ""},
    };
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct pe_error err = {0};
        struct pe_positions out = {.length = 99};
        ck_assert_msg(pe_positions_parse(arena, &out, rows[i].text, &err) == rows[i].code,
                      "\"%s\" gives code %d: %s", rows[i].text, err.code, err.text);
        ck_assert_str_eq(err.path, rows[i].path);
        ck_assert_str_ne(err.text, "");
        ck_assert_uint_eq(out.length, 99); /* untouched */
    }
}
END_TEST

START_TEST(messages_say_what_came_and_what_may) {
    static const char *const rows[][2] = {
        {"4:0:0", "got step 0, allowed is any other finite number"},
        {"0:9223372036854775807", "got positions up to 9.2233720368547758e+18, allowed are -2^53 to 2^53"},
        {"0,1e16", "got position 10000000000000000, allowed are -2^53 to 2^53"},
        {"x:2", "got \"x\" for the start of a range, a number is needed"},
        {"1:2:3:4", "got more than three numbers, a range is start:stop or start:stop:step"},
    };
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct pe_error err = {0};
        struct pe_positions out;
        ck_assert_int_ne(pe_positions_parse(arena, &out, rows[i][0], &err), PE_OK);
        ck_assert_str_eq(err.text, rows[i][1]);
    }
}
END_TEST

/* ---- Progressions ---- */

START_TEST(a_range_ends_where_its_rounded_elements_do) {
    for (size_t i = 0; i < PE_COUNT(range_table); i++) {
        const double start = range_table[i].start, stop = range_table[i].stop, step = range_table[i].step;
        struct pe_error err = {0};
        struct pe_positions out = {0};
        ck_assert_int_eq(pe_positions_range(&out, start, stop, step, &err), PE_OK);
        ck_assert_msg(out.length == range_table[i].count, "%.17g:%.17g:%.17g has %zu positions, expected %zu",
                      start, stop, step, out.length, range_table[i].count);
    }
}
END_TEST

START_TEST(the_longest_ranges_have_2_to_the_53_elements) {
    static const struct {
        double start, stop, step;
        int code;
        double count;
    } rows[] = {
        {0, TWO_53, 1, PE_OK, TWO_53},      {-TWO_53, 0, 1, PE_OK, TWO_53},
        {0, 1, 0x1p-53, PE_OK, TWO_53},     {0, 1, 0x0.fffffffffffffp-53, PE_ERR_RANGE, 0},
        {-TWO_53, 1, 1, PE_ERR_RANGE, 0},   {0, TWO_53 + 2, 1, PE_ERR_RANGE, 0},
        {1, 2, 0x1p-52, PE_OK, TWO_53 / 2}, {1, 2, 0x1p-53, PE_ERR_RANGE, 0},
    };
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct pe_error err = {0};
        struct pe_positions out = {0};
        const int code = pe_positions_range(&out, rows[i].start, rows[i].stop, rows[i].step, &err);
        ck_assert_int_eq(code, rows[i].code);
        ck_assert_double_eq((double)out.length, rows[i].count);
    }
}
END_TEST

/* Every element is another number than the one before it, and none is lost at the end, or the range is refused. From
 * 2^52 on doubles are the whole numbers, from 2^51 on the halves. */
START_TEST(steps_that_doubles_cannot_go_are_refused) {
    static const struct {
        double start, stop, step;
        size_t count; /* 0: it is refused */
    } rows[] = {
        {-6084843033884922, -6084843033884890, 0.5, 0},
        {-6084843033884890, -6084843033884922, -0.5, 0},
        {-6084843033884922, -6084843033884890, 1, 32},
        {0x1p52 + 1, 0x1p52 + 2, 0.5, 0}, /* fl(2^52 + 1.5) is the stop */
        {0x1p52 - 2, 0x1p52, 0.5, 4},
        {0x1p52 - 2, 0x1p52 + 1, 0.5, 0},
        {0x1p52 - 2, 0x1p52 + 4, 0.9, 0},
        {0x1p52 - 1.5, 0x1p52 + 4, 1, 0}, /* fl(2^52 + 1.5) = fl(2^52 + 2.5) */
        {0x1p52 - 2, 0x1p52 + 4, 1, 6},
        {-0x1p52 - 4, -0x1p52 + 2.5, 1, 7},
        {0x1p51, 0x1p51 + 2, 0.25, 0},
        {0x1p51, 0x1p51 + 2, 0.75, 3},
        {TWO_53, TWO_53 + 2, 1, 0}, /* fl(2^53 + 1) = 2^53 */
        {-TWO_53, -TWO_53 - 2, -1, 0},
        {TWO_53 - 2, TWO_53 + 2, 1.5, 0},
        {TWO_53 - 1, TWO_53 + 2, 2, 0}, /* 2^53 + 1 would go as 2^53, which it is not */
        {TWO_53 - 2, TWO_53 + 2, 2, 2},
        {1e300, 0, 1e290, SIZE_MAX}, /* empty */
    };
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct pe_error err = {0};
        struct pe_positions out = {0};
        int code = pe_positions_range(&out, rows[i].start, rows[i].stop, rows[i].step, &err);
        ck_assert_msg(code == (rows[i].count ? PE_OK : PE_ERR_RANGE), "row %zu: %s", i, err.text);
        ck_assert_uint_eq(out.length, rows[i].count == SIZE_MAX ? 0 : rows[i].count);
        double was = NAN, is;
        for (size_t k = 0; k < out.length; k++, was = is) {
            pe_positions_read(&out, k, 1, &is);
            ck_assert(is != was);
        }
    }
    struct pe_error err = {0};
    struct pe_positions out = {0};
    ck_assert_int_eq(pe_positions_steps(&out, 0x1p52, 0.5, 3, &err), PE_ERR_RANGE);
    err = (struct pe_error){0};
    ck_assert_int_eq(pe_positions_steps(&out, 0x1p52, 0.5, 1, &err), PE_OK);
    ck_assert_int_eq(pe_positions_steps(&out, 0x1p52, 0, 3, &err), PE_OK);
}
END_TEST

/* Beyond 2^53 nothing is taken for 2^53. */
START_TEST(ends_that_round_to_the_edge_from_beyond_are_refused) {
    for (size_t i = 0; i < PE_COUNT(edge_table); i++) {
        const double start = edge_table[i].start, step = edge_table[i].step;
        const int code = edge_table[i].within ? PE_OK : PE_ERR_RANGE;
        struct pe_error err = {0};
        struct pe_positions out = {0};
        ck_assert_msg(pe_positions_steps(&out, start, step, edge_table[i].count, &err) == code, "row %zu: %s",
                      i, err.text);
        err = (struct pe_error){0};
        ck_assert_int_eq(pe_positions_steps(&out, start, step, edge_table[i].count - 1, &err), PE_OK);
        err = (struct pe_error){0};
        if (code != PE_OK) {
            ck_assert_int_eq(pe_positions_range(&out, start, copysign(TWO_53 + 2, step), step, &err), code);
            ck_assert_str_eq(err.text,
                             step > 0 ? "got positions beyond 9007199254740992, allowed are -2^53 to 2^53"
                                      : "got positions beyond -9007199254740992, allowed are -2^53 to 2^53");
        }
    }
}
END_TEST

START_TEST(elements_are_rounded_once) {
    for (size_t i = 0; i < PE_COUNT(element_table); i++) {
        struct pe_error err = {0};
        struct pe_positions out = {0};
        double got;
        ck_assert_int_eq(pe_positions_steps(&out, element_table[i].start, element_table[i].step,
                                            element_table[i].i + 1, &err),
                         PE_OK);
        pe_positions_read(&out, element_table[i].i, 1, &got);
        ck_assert_double_eq(got, element_table[i].expected);
    }
}
END_TEST

START_TEST(a_long_range_takes_no_memory_and_does_not_drift) {
    struct pe_error err = {0};
    struct pe_positions out;
    double got[3];
    ck_assert_int_eq(pe_positions_parse(arena, &out, "0:9007199254740992", &err), PE_OK);
    ck_assert_uint_eq(pe_arena_used(arena), 0);
    ck_assert_ptr_null(out.list);
    pe_positions_read(&out, (size_t)9007199254740989, 3, got);
    ck_assert_double_eq(got[0], 9007199254740989.0);
    ck_assert_double_eq(got[2], 9007199254740991.0);
}
END_TEST

START_TEST(steps_check_both_ends) {
    static const struct {
        double start, step;
        size_t count;
        int code;
    } rows[] = {
        {0, 1, 5, PE_OK},
        {5, 0, 3, PE_OK}, /* one position three times */
        {1e300, 1, 0, PE_OK},
        {TWO_53, 1, 1, PE_OK},
        {TWO_53 - 1, 1, 2, PE_OK},
        {TWO_53 - 1, 1, 3, PE_ERR_RANGE},
        {TWO_53 - 1, 1, 4, PE_ERR_RANGE},
        {TWO_53 - 2, 1.5, 3, PE_ERR_RANGE},
        {-TWO_53 - 2, 1, 3, PE_ERR_RANGE},
        {TWO_53 + 2, -1, 9, PE_ERR_RANGE},
        {0, 1e300, 2, PE_ERR_RANGE},
        {NAN, 1, 1, PE_ERR_NONFINITE},
        {0, INFINITY, 1, PE_ERR_NONFINITE},
        {0, 0, (size_t)1 << 53, PE_OK},
        {0, 0, ((size_t)1 << 53) + 1, PE_ERR_RANGE},
    };
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct pe_error err = {0};
        struct pe_positions out = {0};
        ck_assert_msg(pe_positions_steps(&out, rows[i].start, rows[i].step, rows[i].count, &err) ==
                          rows[i].code,
                      "row %zu: code %d, %s", i, err.code, err.text);
        ck_assert_uint_eq(out.length, rows[i].code ? 0 : rows[i].count);
    }
    struct pe_error err = {0};
    struct pe_positions out;
    ck_assert_int_eq(pe_positions_range(&out, 0, NAN, 1, &err), PE_ERR_NONFINITE);
}
END_TEST

/* ---- Tensors ---- */

START_TEST(tensors_have_a_shape_for_their_axes) {
    static double values[24];
    static const struct {
        int axes, rank;
        size_t dim[4];
        int code;
        size_t batch, length;
    } rows[] = {
        {1, 1, {24}, PE_OK, 0, 24},
        {1, 2, {4, 6}, PE_OK, 4, 6},
        {1, 2, {24, 1}, PE_OK, 24, 1},
        {1, 1, {0}, PE_OK, 0, 0},
        {1, 2, {3, 0}, PE_OK, 3, 0},
        {1, 0, {0}, PE_ERR_SHAPE, 0, 0},
        {1, 3, {2, 3, 4}, PE_ERR_SHAPE, 0, 0},
        {1, 2, {0, 6}, PE_ERR_SHAPE, 0, 0},
        {3, 2, {8, 3}, PE_OK, 0, 8},
        {3, 3, {2, 4, 3}, PE_OK, 2, 4},
        {3, 2, {3, 8}, PE_ERR_SHAPE, 0, 0},
        {3, 1, {3}, PE_ERR_SHAPE, 0, 0},
        {3, 4, {2, 2, 2, 3}, PE_ERR_SHAPE, 0, 0},
        {0, 1, {24}, PE_ERR_SHAPE, 0, 0},
    };
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct pe_error err = {0};
        struct pe_positions out = {0};
        struct pe_tensor tensor = {values, PE_DTYPE_F64, rows[i].rank, {0}};
        memcpy(tensor.dim, rows[i].dim, sizeof rows[i].dim);
        ck_assert_msg(pe_positions_tensor(arena, &out, &tensor, rows[i].axes, &err) == rows[i].code,
                      "row %zu: %s", i, err.text);
        ck_assert_str_eq(err.path, "");
        ck_assert_uint_eq(out.batch, rows[i].batch);
        ck_assert_uint_eq(out.length, rows[i].length);
        ck_assert_int_eq(out.axes, rows[i].code ? 0 : rows[i].axes);
    }
}
END_TEST

START_TEST(tensors_of_every_type_are_copied) {
    for (int dtype = PE_DTYPE_F64; dtype < PE_DTYPE_COUNT; dtype++) {
        const double in[] = {0, 1, 2, -3.5, 100, 0.25};
        unsigned char bytes[sizeof in + 1];
        struct pe_error err = {0};
        struct pe_positions out = {0};
        pe_dtype_store((enum pe_dtype)dtype, in, PE_COUNT(in), bytes + 1); /* as posted: not aligned */
        const struct pe_tensor tensor = {bytes + 1, (enum pe_dtype)dtype, 2, {2, 3}};
        ck_assert_int_eq(pe_positions_tensor(arena, &out, &tensor, 1, &err), PE_OK);
        memset(bytes, 0xff, sizeof bytes);
        expect(&out, in, PE_COUNT(in));
    }
}
END_TEST

START_TEST(a_wrong_element_is_named) {
    static const struct {
        double value;
        int code;
    } rows[] = {{TWO_53, PE_OK},        {-TWO_53, PE_OK},        {TWO_53 + 2, PE_ERR_RANGE},
                {-1e300, PE_ERR_RANGE}, {NAN, PE_ERR_NONFINITE}, {-INFINITY, PE_ERR_NONFINITE}};
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        double values[2][5] = {0};
        struct pe_error err = {0};
        struct pe_positions out = {0};
        const struct pe_tensor tensor = {values, PE_DTYPE_F64, 2, {2, 5}};
        values[1][3] = rows[i].value;
        ck_assert_int_eq(pe_positions_tensor(arena, &out, &tensor, 1, &err), rows[i].code);
        ck_assert_str_eq(err.path, rows[i].code ? "[1][3]" : "");
    }
}
END_TEST

START_TEST(reading_starts_anywhere) {
    double values[2][3][2] = {{{0, 1}, {2, 3}, {4, 5}}, {{6, 7}, {8, 9}, {10, 11}}}, got[4];
    struct pe_error err = {0};
    struct pe_positions out;
    const struct pe_tensor tensor = {values, PE_DTYPE_F64, 3, {2, 3, 2}};
    ck_assert_int_eq(pe_positions_tensor(arena, &out, &tensor, 2, &err), PE_OK);
    ck_assert_uint_eq(pe_positions_count(&out), 6);
    pe_positions_read(&out, 2, 2, got);
    ck_assert_mem_eq(got, &values[0][2], sizeof got);
}
END_TEST

/* The first failure of a chain is kept, whatever is called after it. */
START_TEST(after_a_failure_nothing_is_done) {
    struct pe_error err = {0};
    struct pe_positions out = {.length = 99};
    double value = 0;
    const struct pe_tensor tensor = {&value, PE_DTYPE_F64, 1, {1}};
    pe_fail(&err, PE_ERR_TYPE, "first", "failure");
    ck_assert_int_eq(pe_positions_parse(NULL, &out, "0,1", &err), PE_ERR_TYPE);
    ck_assert_int_eq(pe_positions_range(&out, 0, 4, 1, &err), PE_ERR_TYPE);
    ck_assert_int_eq(pe_positions_steps(&out, 0, 1, 4, &err), PE_ERR_TYPE);
    ck_assert_int_eq(pe_positions_tensor(NULL, &out, &tensor, 1, &err), PE_ERR_TYPE);
    ck_assert_uint_eq(out.length, 99);
    ck_assert_str_eq(err.path, "first");
}
END_TEST

Suite *positions_suite(void) {
    Suite *suite = suite_create("positions");
    TCase *tests = tcase_create("positions");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, text_is_a_range_or_a_list);
    tcase_add_test(tests, wrong_text_is_refused);
    tcase_add_test(tests, messages_say_what_came_and_what_may);
    tcase_add_test(tests, a_range_ends_where_its_rounded_elements_do);
    tcase_add_test(tests, the_longest_ranges_have_2_to_the_53_elements);
    tcase_add_test(tests, steps_that_doubles_cannot_go_are_refused);
    tcase_add_test(tests, ends_that_round_to_the_edge_from_beyond_are_refused);
    tcase_add_test(tests, elements_are_rounded_once);
    tcase_add_test(tests, a_long_range_takes_no_memory_and_does_not_drift);
    tcase_add_test(tests, steps_check_both_ends);
    tcase_add_test(tests, tensors_have_a_shape_for_their_axes);
    tcase_add_test(tests, tensors_of_every_type_are_copied);
    tcase_add_test(tests, a_wrong_element_is_named);
    tcase_add_test(tests, reading_starts_anywhere);
    tcase_add_test(tests, after_a_failure_nothing_is_done);
    suite_add_tcase(suite, tests);
    return suite;
}
