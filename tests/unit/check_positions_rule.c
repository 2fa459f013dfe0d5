/* SPDX-License-Identifier: MIT
 *
 * Positions made by a rule. Tests that carry a project and a number are public reports about it, restated as
 * input and the right answer.
 */
#include "suites.h"

#include "posenc_fields.h"

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

static const struct pe_field *row(const char *name) {
    const struct pe_field *found = pe_field_find(pe_positions_fields, pe_positions_n_fields, name);
    ck_assert_msg(found != NULL, "no field %s", name);
    return found;
}

/* A rule from fields as a request gives them: numbers and names as text, tensors by pointer. */
struct given {
    const char *start, *step, *count, *rule, *padding_idx;
    const struct pe_tensor *grid, *mask, *lengths;
};

static void set_text(struct pe_positions_rule *rule, const char *name, const char *text) {
    struct pe_error err = {0};
    if (text) {
        ck_assert_int_eq(pe_field_parse(arena, pe_positions_fields, row(name), rule, text, &err), PE_OK);
    }
}

static void set_tensor(struct pe_positions_rule *rule, const char *name, const struct pe_tensor *tensor) {
    struct pe_error err = {0};
    if (tensor) {
        ck_assert_int_eq(pe_field_set_tensor(pe_positions_fields, row(name), rule, tensor, &err), PE_OK);
    }
}

static int make(struct pe_positions *out, const struct given *given, struct pe_error *err) {
    struct pe_positions_rule rule;
    pe_fields_init(pe_positions_fields, pe_positions_n_fields, &rule, sizeof rule);
    set_text(&rule, "start", given->start);
    set_text(&rule, "step", given->step);
    set_text(&rule, "count", given->count);
    set_text(&rule, "rule", given->rule);
    set_text(&rule, "padding_idx", given->padding_idx);
    set_tensor(&rule, "grid", given->grid);
    set_tensor(&rule, "mask", given->mask);
    set_tensor(&rule, "lengths", given->lengths);
    return pe_positions_make(arena, out, &rule, err);
}

static int make_mask(struct pe_positions *out, const char *rule, const char *padding_idx,
                     const struct pe_tensor *mask, struct pe_error *err) {
    return make(out, &(struct given){.rule = rule, .padding_idx = padding_idx, .mask = mask}, err);
}

/* Two rows of five tokens, padded on one side or the other. */
static double left_right[2][5] = {{0, 0, 1, 1, 1}, {1, 1, 1, 0, 0}};
static double right_left[2][5] = {{1, 1, 1, 0, 0}, {0, 0, 1, 1, 1}};
static const struct pe_tensor mask_left_right = {left_right, PE_DTYPE_F64, 2, {2, 5}};
static const struct pe_tensor mask_right_left = {right_left, PE_DTYPE_F64, 2, {2, 5}};

static void expect_mask(const char *rule, const char *padding_idx, const struct pe_tensor *mask,
                        const double *expected) {
    struct pe_error err = {0};
    struct pe_positions out = {0};
    ck_assert_msg(make_mask(&out, rule, padding_idx, mask, &err) == PE_OK, "%s: %s", err.path, err.text);
    ck_assert(out.by_rule);
    ck_assert_uint_eq(out.batch, mask->rank == 2 ? mask->dim[0] : 0);
    ck_assert_uint_eq(out.length, mask->dim[mask->rank - 1]);
    expect(&out, expected, pe_tensor_count(mask));
}

/* What the token ids [[5,6,7,1,1],[1,1,5,6,7]] get with padding id 1 in fairseq, RoBERTa and M2M100. */
START_TEST(roberta_and_fairseq_count_from_padding_idx) {
    const double expected[] = {2, 3, 4, 1, 1, 1, 1, 2, 3, 4};
    expect_mask("roberta", NULL, &mask_right_left, expected);
    expect_mask("roberta", "1", &mask_right_left, expected);
    expect_mask("fairseq", NULL, &mask_right_left, expected);
    const double from_0[] = {1, 2, 3, 0, 0, 0, 0, 1, 2, 3};
    expect_mask("fairseq", "0", &mask_right_left, from_0);
}
END_TEST

/* Token ids [[4,5,6],[4,3,3]] with padding id 3: the positions happen to equal the ids. */
START_TEST(transformers_9116_padding_idx_3) {
    double mask[2][3] = {{1, 1, 1}, {1, 0, 0}};
    const struct pe_tensor tensor = {mask, PE_DTYPE_F64, 2, {2, 3}};
    const double expected[] = {4, 5, 6, 4, 3, 3};
    expect_mask("roberta", "3", &tensor, expected);
    expect_mask("fairseq", "3", &tensor, expected);
}
END_TEST

/* Left padding must not shift the tokens: OPT's table rows, and what GPT-2 and Llama generate with. */
START_TEST(transformers_21080_left_padding_opt) {
    expect_mask("opt", NULL, &mask_left_right, (const double[]){1, 1, 2, 3, 4, 2, 3, 4, 1, 1});
}
END_TEST

START_TEST(transformers_18478_left_padding_gpt2) {
    expect_mask("gpt2", NULL, &mask_left_right, (const double[]){1, 1, 0, 1, 2, 0, 1, 2, 1, 1});
}
END_TEST

/* cumsum - 1 alone gives -1 at the padding. */
START_TEST(transformers_17866_left_padding_bloom) {
    expect_mask("bloom", NULL, &mask_left_right, (const double[]){0, 0, 0, 1, 2, 0, 1, 2, 0, 0});
}
END_TEST

START_TEST(bert_does_not_look_at_the_mask) {
    expect_mask("bert", NULL, &mask_left_right, (const double[]){0, 1, 2, 3, 4, 0, 1, 2, 3, 4});
}
END_TEST

/* Tokens in two runs: those of the second go on counting. One row, no batch axis, a narrow type. */
START_TEST(masks_may_have_holes_and_one_axis) {
    const double mask[] = {1, 0, 1, 1, 0, 1};
    uint16_t half[PE_COUNT(mask)];
    pe_dtype_store(PE_DTYPE_F16, mask, PE_COUNT(mask), half);
    const struct pe_tensor tensor = {half, PE_DTYPE_F16, 1, {PE_COUNT(mask)}};
    expect_mask("bert", NULL, &tensor, (const double[]){0, 1, 2, 3, 4, 5});
    expect_mask("roberta", NULL, &tensor, (const double[]){2, 1, 3, 4, 1, 5});
    expect_mask("opt", NULL, &tensor, (const double[]){2, 1, 3, 4, 1, 5});
    expect_mask("gpt2", NULL, &tensor, (const double[]){0, 1, 1, 2, 1, 3});
    expect_mask("bloom", NULL, &tensor, (const double[]){0, 0, 1, 2, 0, 3});
}
END_TEST

/* Rows without tokens are as many as their shape says, which costs nothing to say. */
START_TEST(many_empty_rows_take_no_time) {
    struct pe_tensor mask = {
        .data = &(double){0}, .dtype = PE_DTYPE_F64, .rank = 2, .dim = {SIZE_MAX / 2, 0}};
    struct pe_positions positions;
    struct pe_error err = {0};
    ck_assert_int_eq(make(&positions, &(struct given){.mask = &mask, .rule = "opt"}, &err), PE_OK);
    ck_assert_uint_eq(pe_positions_count(&positions), 0);
}
END_TEST

START_TEST(masks_are_zeros_and_ones) {
    static const double wrong[] = {2, -1, 0.5, 1.0000000000000002};
    for (size_t i = 0; i < PE_COUNT(wrong); i++) {
        double mask[2][5] = {{0, 0, 1, 1, 1}, {1, 1, 1, wrong[i], 7}};
        const struct pe_tensor tensor = {mask, PE_DTYPE_F64, 2, {2, 5}};
        struct pe_error err = {0};
        struct pe_positions out;
        ck_assert_int_eq(make_mask(&out, "bert", NULL, &tensor, &err), PE_ERR_RANGE);
        ck_assert_str_eq(err.path, "mask[1][3]");
    }
}
END_TEST

START_TEST(masks_have_one_or_two_axes) {
    static double mask[8];
    static const struct {
        int rank;
        size_t dim[3];
        int code;
    } rows[] = {{0, {0}, PE_ERR_SHAPE},
                {3, {2, 2, 2}, PE_ERR_SHAPE},
                {2, {0, 5}, PE_ERR_SHAPE},
                {2, {2, 0}, PE_OK},
                {1, {0}, PE_OK}};
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct pe_tensor tensor = {mask, PE_DTYPE_F64, rows[i].rank, {0}};
        struct pe_error err = {0};
        struct pe_positions out;
        memcpy(tensor.dim, rows[i].dim, sizeof rows[i].dim);
        ck_assert_int_eq(make_mask(&out, "gpt2", NULL, &tensor, &err), rows[i].code);
        ck_assert_str_eq(err.path, rows[i].code ? "mask" : "");
    }
}
END_TEST

static struct pe_tensor list_of(double *values, size_t n) {
    return (struct pe_tensor){values, PE_DTYPE_F64, 1, {n}};
}

/* A document of one token follows another: its start is no decrease of the position. */
START_TEST(olmo_core_503_packed_documents) {
    double lengths[] = {3, 1, 2}, singles[] = {1, 1, 0, 1};
    const struct pe_tensor packed = list_of(lengths, 3), one_each = list_of(singles, 4),
                           none = list_of(lengths, 0);
    struct pe_error err = {0};
    struct pe_positions out;
    ck_assert_int_eq(make(&out, &(struct given){.lengths = &packed}, &err), PE_OK);
    ck_assert(out.by_rule);
    ck_assert_uint_eq(out.batch, 0);
    expect(&out, (const double[]){0, 1, 2, 0, 0, 1}, 6);
    ck_assert_int_eq(make(&out, &(struct given){.lengths = &one_each}, &err), PE_OK);
    expect(&out, (const double[]){0, 0, 0}, 3);
    ck_assert_int_eq(make(&out, &(struct given){.lengths = &none}, &err), PE_OK);
    expect(&out, NULL, 0);
}
END_TEST

START_TEST(grids_are_walked_row_by_row) {
    double size[] = {2, 3, 2}, flat[] = {4}, empty[] = {3, 0};
    const struct pe_tensor plane = list_of(size, 2), space = list_of(size, 3), line = list_of(flat, 1),
                           nothing = list_of(empty, 2);
    struct pe_error err = {0};
    struct pe_positions out;
    ck_assert_int_eq(make(&out, &(struct given){.grid = &plane}, &err), PE_OK);
    ck_assert(out.by_rule);
    ck_assert_int_eq(out.axes, 2);
    ck_assert_uint_eq(out.length, 6);
    expect(&out, (const double[]){0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 2}, 12);
    ck_assert_int_eq(make(&out, &(struct given){.grid = &space}, &err), PE_OK);
    ck_assert_int_eq(out.axes, 3);
    expect(&out, (const double[]){0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 1, 1, 0, 2, 0, 0, 2, 1,
                                  1, 0, 0, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1, 2, 0, 1, 2, 1},
           36);
    ck_assert_int_eq(make(&out, &(struct given){.grid = &line}, &err), PE_OK);
    ck_assert_int_eq(out.axes, 1);
    expect(&out, (const double[]){0, 1, 2, 3}, 4);
    ck_assert_int_eq(make(&out, &(struct given){.grid = &nothing}, &err), PE_OK);
    ck_assert_int_eq(out.axes, 2);
    expect(&out, NULL, 0);
}
END_TEST

START_TEST(sizes_are_whole_and_not_negative) {
    static const double wrong[] = {-1, 2.5, TWO_53 + 2, 1e300};
    for (size_t i = 0; i < PE_COUNT(wrong); i++) {
        double size[] = {3, wrong[i]};
        const struct pe_tensor tensor = list_of(size, 2);
        struct pe_error grid = {0}, lengths = {0};
        struct pe_positions out;
        ck_assert_int_eq(make(&out, &(struct given){.grid = &tensor}, &grid), PE_ERR_RANGE);
        ck_assert_str_eq(grid.path, "grid[1]");
        ck_assert_int_eq(make(&out, &(struct given){.lengths = &tensor}, &lengths), PE_ERR_RANGE);
        ck_assert_str_eq(lengths.path, "lengths[1]");
    }
}
END_TEST

/* Nothing is taken for what cannot be held: 2^53 squared wraps to 0 in 64 bits, 2^53 * 2^11 wraps as well. */
START_TEST(sizes_are_checked_before_memory_is_taken) {
    static double sizes[][3] = {
        {TWO_53, TWO_53, 1}, {TWO_53, 2048, 1}, {TWO_53, 2048, TWO_53}, {60000, 2, 3}};
    for (size_t i = 0; i < PE_COUNT(sizes); i++) {
        const struct pe_tensor tensor = list_of(sizes[i], 3);
        struct pe_error err = {0};
        struct pe_positions out;
        ck_assert_int_eq(make(&out, &(struct given){.grid = &tensor}, &err), PE_ERR_LIMIT);
        ck_assert_str_eq(err.path, "grid");
        ck_assert_uint_eq(pe_arena_used(arena), 0);
    }
    static double many[2048];
    for (size_t i = 0; i < PE_COUNT(many); i++) {
        many[i] = TWO_53; /* 2^53 * 2048 wraps to 0 */
    }
    const struct pe_tensor tensor = list_of(many, PE_COUNT(many)), one = list_of(many, 1);
    struct pe_error err = {0}, single = {0};
    struct pe_positions out;
    ck_assert_int_eq(make(&out, &(struct given){.lengths = &tensor}, &err), PE_ERR_LIMIT);
    ck_assert_str_eq(err.path, "lengths");
    ck_assert_int_eq(make(&out, &(struct given){.lengths = &one}, &single), PE_ERR_LIMIT);
    ck_assert_uint_eq(pe_arena_used(arena), 0);
}
END_TEST

START_TEST(lists_of_sizes_have_one_axis) {
    double size[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    const struct pe_tensor square = {size, PE_DTYPE_F64, 2, {2, 2}}, number = {size, PE_DTYPE_F64, 0, {0}},
                           none = list_of(size, 0), nine = list_of(size, 9);
    const struct given rows[] = {{.grid = &square}, {.grid = &number},    {.grid = &none},
                                 {.grid = &nine},   {.lengths = &square}, {.lengths = &number}};
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct pe_error err = {0};
        struct pe_positions out;
        ck_assert_int_eq(make(&out, &rows[i], &err), PE_ERR_SHAPE);
        ck_assert_str_eq(err.path, rows[i].grid ? "grid" : "lengths");
    }
}
END_TEST

START_TEST(ranges_have_a_count) {
    static const struct {
        struct given given;
        size_t n;
        double expected[4];
    } rows[] = {
        {{.count = "3"}, 3, {0, 1, 2}},
        {{.count = "0"}, 0, {0}},
        {{.start = "5", .count = "2"}, 2, {5, 6}},
        {{.start = "1", .step = "-0.5", .count = "4"}, 4, {1, 0.5, 0, -0.5}},
    };
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct pe_error err = {0};
        struct pe_positions out;
        ck_assert_int_eq(make(&out, &rows[i].given, &err), PE_OK);
        ck_assert(!out.by_rule);
        ck_assert_int_eq(out.axes, 1);
        expect(&out, rows[i].expected, rows[i].n);
    }
}
END_TEST

START_TEST(positions_are_described_in_one_way) {
    static double size[] = {2, 2};
    static const struct pe_tensor list = {size, PE_DTYPE_F64, 1, {2}};
    static const struct {
        struct given given;
        int code;
        const char *path, *text;
    } rows[] = {
        {{0}, PE_ERR_MISSING, "", "got none of count, grid, mask, lengths and sample, one is needed"},
        {{.start = "1"}, PE_ERR_MISSING, "count", "got a range without count, the number of positions"},
        {{.step = "2"}, PE_ERR_MISSING, "count", "got a range without count, the number of positions"},
        {{.rule = "bert"}, PE_ERR_MISSING, "mask", "got rule without mask"},
        {{.padding_idx = "1"}, PE_ERR_MISSING, "mask", "got padding_idx without mask"},
        {{.mask = &mask_left_right},
         PE_ERR_MISSING,
         "rule",
         "got mask without rule, allowed are bert, roberta, opt, gpt2, bloom, fairseq"},
        {{.mask = &mask_left_right, .rule = "gpt2", .padding_idx = "1"},
         PE_ERR_CONFLICT,
         "padding_idx",
         "got gpt2, only roberta and fairseq have one"},
        {{.count = "3", .grid = &list},
         PE_ERR_CONFLICT,
         "grid",
         "got count and grid, allowed is one of count, grid, mask, lengths and sample"},
        {{.start = "3", .lengths = &list},
         PE_ERR_CONFLICT,
         "lengths",
         "got start and lengths, allowed is one of count, grid, mask, lengths and sample"},
        {{.grid = &list, .mask = &mask_left_right, .rule = "bert"},
         PE_ERR_CONFLICT,
         "mask",
         "got grid and mask, allowed is one of count, grid, mask, lengths and sample"},
        {{.grid = &list, .rule = "bert"},
         PE_ERR_CONFLICT,
         "rule",
         "got grid and rule, allowed is one of count, grid, mask, lengths and sample"},
        {{.grid = &list, .padding_idx = "1"},
         PE_ERR_CONFLICT,
         "padding_idx",
         "got grid and padding_idx, allowed is one of count, grid, mask, lengths and sample"},
        {{.rule = "bert", .lengths = &list},
         PE_ERR_CONFLICT,
         "lengths",
         "got rule and lengths, allowed is one of count, grid, mask, lengths and sample"},
    };
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct pe_error err = {0};
        struct pe_positions out;
        ck_assert_int_eq(make(&out, &rows[i].given, &err), rows[i].code);
        ck_assert_str_eq(err.path, rows[i].path);
        ck_assert_str_eq(err.text, rows[i].text);
    }
}
END_TEST

/* A program may fill the struct itself, without the setters and their checks. */
START_TEST(a_rule_filled_by_hand_is_checked) {
    const uint64_t count = UINT64_C(1) << (row("count") - pe_positions_fields);
    const uint64_t padding_idx = UINT64_C(1) << (row("padding_idx") - pe_positions_fields);
    const struct {
        struct pe_positions_rule rule;
        int code;
        const char *path;
    } rows[] = {
        {{.given = count, .count = 4}, PE_OK, ""},
        {{.given = count, .count = -1}, PE_ERR_RANGE, "count"},
        {{.given = count, .count = INT64_MAX}, PE_ERR_RANGE, ""},
        {{.mask = &mask_left_right, .rule = PE_POSITION_RULE_OPT}, PE_OK, ""},
        {{.mask = &mask_left_right, .rule = 77}, PE_ERR_CHOICE, "rule"},
        {{.given = padding_idx,
          .mask = &mask_left_right,
          .rule = PE_POSITION_RULE_ROBERTA,
          .padding_idx = -1},
         PE_ERR_RANGE,
         "padding_idx"},
    };
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct pe_error err = {0};
        struct pe_positions out;
        ck_assert_int_eq(pe_positions_make(arena, &out, &rows[i].rule, &err), rows[i].code);
        ck_assert_str_eq(err.path, rows[i].path);
    }
}
END_TEST

START_TEST(a_failure_before_is_kept) {
    struct pe_error err = {0};
    struct pe_positions out = {.length = 99};
    const struct pe_positions_rule rule = {0};
    pe_fail(&err, PE_ERR_TYPE, "first", "failure");
    ck_assert_int_eq(pe_positions_make(NULL, &out, &rule, &err), PE_ERR_TYPE);
    ck_assert_uint_eq(out.length, 99);
    ck_assert_str_eq(err.path, "first");
}
END_TEST

Suite *positions_rule_suite(void) {
    Suite *suite = suite_create("positions_rule");
    TCase *tests = tcase_create("positions_rule");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, roberta_and_fairseq_count_from_padding_idx);
    tcase_add_test(tests, transformers_9116_padding_idx_3);
    tcase_add_test(tests, transformers_21080_left_padding_opt);
    tcase_add_test(tests, transformers_18478_left_padding_gpt2);
    tcase_add_test(tests, transformers_17866_left_padding_bloom);
    tcase_add_test(tests, bert_does_not_look_at_the_mask);
    tcase_add_test(tests, masks_may_have_holes_and_one_axis);
    tcase_add_test(tests, many_empty_rows_take_no_time);
    tcase_add_test(tests, masks_are_zeros_and_ones);
    tcase_add_test(tests, masks_have_one_or_two_axes);
    tcase_add_test(tests, olmo_core_503_packed_documents);
    tcase_add_test(tests, grids_are_walked_row_by_row);
    tcase_add_test(tests, sizes_are_whole_and_not_negative);
    tcase_add_test(tests, sizes_are_checked_before_memory_is_taken);
    tcase_add_test(tests, lists_of_sizes_have_one_axis);
    tcase_add_test(tests, ranges_have_a_count);
    tcase_add_test(tests, positions_are_described_in_one_way);
    tcase_add_test(tests, a_rule_filled_by_hand_is_checked);
    tcase_add_test(tests, a_failure_before_is_kept);
    suite_add_tcase(suite, tests);
    return suite;
}
