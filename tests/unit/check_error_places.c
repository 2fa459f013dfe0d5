/* SPDX-License-Identifier: MIT
 *
 * Errors that requests cannot cause, as the daemon checks more of them first, but a program that uses the
 * library can: `make cov` tells which places of the library no test reaches.
 */
#include "suites.h"

#include "core/number_array.h"
#include "posenc.h"
#include "posenc_fields.h"

#include <math.h>
#include <string.h>

static struct pe_arena *arena;
static struct pe_error err;
static struct pe_work work;
static float zeros[64];

static void setup(void) {
    memset(&err, 0, sizeof err);
    arena = pe_arena_open((size_t)1 << 20, NULL, &err);
    ck_assert_ptr_nonnull(arena);
}

static void teardown(void) {
    pe_arena_close(arena);
}

#define ZEROS(r, ...) (&(struct pe_tensor){zeros, PE_DTYPE_F32, r, {__VA_ARGS__}})

static void is_error(int got, int code, const char *path, const char *text) {
    ck_assert_int_eq(got, code);
    ck_assert_str_eq(err.path, path);
    ck_assert_msg(strstr(err.text, text) != NULL, "%s", err.text);
    memset(&err, 0, sizeof err);
}

START_TEST(learned_without_its_table) {
    struct pe_spec spec;
    struct pe_plan *plan = NULL;
    ck_assert_int_eq(pe_spec_init(arena, &spec, "learned", &err), 0);
    is_error(pe_plan_open(&plan, &spec, &err), PE_ERR_MISSING, "table", "");
    is_error(pe_spec_set_tensor(&spec, "table", NULL, &err), PE_ERR_TYPE, "table", "got none");
    ck_assert_ptr_null(plan);
}
END_TEST

START_TEST(shift_without_its_inputs) {
    struct pe_shift_result result;
    struct pe_shift_args args = {.size = sizeof args};
    is_error(pe_shift_open(arena, &work, &result, &args, &err), PE_ERR_MISSING, "encoding", "is missing");

    struct pe_spec spec;
    struct pe_plan *plan;
    ck_assert_int_eq(pe_spec_init(arena, &spec, "sinusoidal", &err), 0);
    ck_assert_int_eq(pe_spec_set(arena, &spec, "d_model", "4", &err), 0);
    ck_assert_int_eq(pe_plan_open(&plan, &spec, &err), 0);
    args.plan = plan;
    is_error(pe_shift_open(arena, &work, &result, &args, &err), PE_ERR_MISSING, "positions", "is missing");
    pe_plan_close(plan);
}
END_TEST

/* A fit squares the numbers of the table, so those of 1e300 are too many digits away. */
START_TEST(shift_of_a_table_too_large_to_fit) {
    static double huge[3] = {1e300, 1e300, 1e300};
    struct pe_tensor table = {huge, PE_DTYPE_F64, 2, {3, 1}};
    struct pe_spec spec;
    struct pe_plan *plan;
    struct pe_positions positions;
    struct pe_shift_result result;
    ck_assert_int_eq(pe_spec_init(arena, &spec, "learned", &err), 0);
    ck_assert_int_eq(pe_spec_set_tensor(&spec, "table", &table, &err), 0);
    ck_assert_int_eq(pe_plan_open(&plan, &spec, &err), 0);
    ck_assert_int_eq(pe_positions_range(&positions, 0, 2, 1, &err), 0);
    struct pe_shift_args args = {.size = sizeof args, .plan = plan, .distance = 1, .positions = &positions};
    is_error(pe_shift_open(arena, &work, &result, &args, &err), PE_ERR_RANGE, "encoding",
             "too large for a fit");
    pe_plan_close(plan);
}
END_TEST

static int attend(struct pe_attention_args args) {
    struct pe_attention_result result;
    args.size = sizeof args;
    return pe_attention_open(arena, &work, &result, &args, &err);
}
#define ATTEND(...) attend((struct pe_attention_args){__VA_ARGS__})

START_TEST(attention_of_tensors_of_other_ranks) {
    struct pe_tensor *x = ZEROS(2, 3, 4), *square = ZEROS(2, 4, 4);
    is_error(ATTEND(.embeddings = ZEROS(1, 4)), PE_ERR_SHAPE, "embeddings",
             "has shape [4], allowed are [T, D]");
    is_error(ATTEND(.embeddings = ZEROS(4, 1, 1, 2, 2)), PE_ERR_SHAPE, "embeddings", "[1, 1, 2, 2]");
    is_error(ATTEND(.embeddings = x, .w_q = ZEROS(1, 4), .w_k = square), PE_ERR_SHAPE, "w_q",
             "has shape [4]");
    is_error(ATTEND(.embeddings = x, .w_k = ZEROS(3, 1, 4, 4)), PE_ERR_SHAPE, "w_k", "[1, 4, 4]");
}
END_TEST

/* Queries of 2 heads of width 2; keys of 3 of them, which 2 is no multiple of. */
START_TEST(attention_of_key_heads_that_do_not_divide) {
    is_error(ATTEND(.embeddings = ZEROS(2, 3, 4), .heads = 2, .w_q = ZEROS(2, 4, 4), .w_k = ZEROS(2, 4, 6)),
             PE_ERR_SHAPE, "w_k", "3 heads of d = 2, which does not divide the 2 heads");
}
END_TEST

START_TEST(masks_of_other_sizes) {
    float three[1] = {3};
    struct pe_tensor *q = ZEROS(2, 5, 4), *k = ZEROS(2, 3, 4);
    struct pe_attention_mask packed = {.size = sizeof packed,
                                       .documents = &(struct pe_tensor){three, PE_DTYPE_F32, 1, {1}}};
    is_error(ATTEND(.q = q, .k = k, .mask = &packed), PE_ERR_SHAPE, "mask.documents",
             "there are 5 queries but 3 keys");
    struct pe_attention_mask window = {.size = sizeof window, .n_window = 3};
    is_error(ATTEND(.q = q, .k = k, .mask = &window), PE_ERR_SHAPE, "mask.window", "got 3 numbers");
    window.n_window = -1;
    is_error(ATTEND(.q = q, .k = k, .mask = &window), PE_ERR_SHAPE, "mask.window", "got -1 numbers");
}
END_TEST

START_TEST(embedding_scale_that_is_no_number) {
    struct pe_tensor out;
    struct pe_apply_args args = {.size = sizeof args,
                                 .embeddings = ZEROS(2, 3, 4),
                                 .scale_mode = PE_EMBEDDING_SCALE_NUMBER,
                                 .scale = NAN};
    is_error(pe_apply_open(arena, &work, &out, &args, &err), PE_ERR_NONFINITE, "embedding_scale", "got nan");
    args.scale = INFINITY;
    is_error(pe_apply_open(arena, &work, &out, &args, &err), PE_ERR_NONFINITE, "embedding_scale", "got inf");
}
END_TEST

START_TEST(safetensors_that_cannot_be_written) {
    struct pe_safetensors_header header;
    struct pe_named_tensor tensors[2] = {{"a", {NULL, PE_DTYPE_NONE, 1, {3}}}};
    is_error(pe_safetensors_write(arena, &header, tensors, 1, &err), PE_ERR_DTYPE, "", "element type");
    tensors[0] = (struct pe_named_tensor){"a", {NULL, PE_DTYPE_F64, 1, {SIZE_MAX / 20}}};
    tensors[1] = (struct pe_named_tensor){"b", {NULL, PE_DTYPE_F64, 1, {SIZE_MAX / 20}}};
    is_error(pe_safetensors_write(arena, &header, tensors, 2, &err), PE_ERR_SHAPE, "", "too large");
}
END_TEST

START_TEST(lists_of_numbers_as_text) {
    struct pe_tensor out;
    is_error(pe_number_array(arena, &out, "[[1,2],[3,4]] 5", PE_DTYPE_F64, &err), PE_ERR_SYNTAX, "",
             "text after its end");
    char deep[64] = "";
    memset(deep, '[', PE_MAX_RANK + 1);
    is_error(pe_number_array(arena, &out, deep, PE_DTYPE_F64, &err), PE_ERR_SHAPE, "[0][0][0][0][0][0][0][0]",
             "nested too deep");
}
END_TEST

/* A struct of a program's own, as the daemon's options are. */
struct options {
    uint64_t given;
    double ratio;
    struct pe_names names;
    const struct pe_tensor *tensor;
};
static const struct pe_field fields[] = {
    {PE_FIELD(options, ratio), .doc = "a number"},
    {PE_FIELD(options, names), .doc = "a list of names"},
    {PE_FIELD(options, tensor), .doc = "a tensor"},
};

START_TEST(fields_of_other_kinds) {
    struct options options = {0};
    is_error(pe_field_set_real(fields, &fields[0], &options, NAN, &err), PE_ERR_NONFINITE, "ratio",
             "must be finite");
    is_error(pe_field_set_real(fields, &fields[2], &options, 1.5, &err), PE_ERR_TYPE, "tensor",
             "got the number 1.5");
    ck_assert_uint_eq(options.given, 0);
}
END_TEST

START_TEST(more_names_than_there_is_room_for) {
    struct options options = {0};
    char text[2 * PE_MAX_NAMES + 2];
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = i % 2 == 0 ? 'n' : ','; /* one name more than that */
    }
    text[sizeof text - 1] = '\0';
    is_error(pe_field_parse(arena, fields, &fields[1], &options, text, &err), PE_ERR_RANGE, "names",
             "has more than");
}
END_TEST

START_TEST(more_items_than_a_row_allows) {
    struct lists {
        uint64_t given;
        struct pe_texts texts;
        struct pe_tensors tensors;
    } lists = {0};
    static const struct pe_field rows[] = {{PE_FIELD(lists, texts), .max = 1},
                                           {PE_FIELD(lists, tensors), .max = 1}};
    const char *const two[] = {"a", "b"};
    const struct pe_named_tensor named[2] = {{.name = "a"}, {.name = "b"}};
    is_error(pe_field_set_texts(rows, &rows[0], &lists, &(struct pe_texts){2, two}, &err), PE_ERR_RANGE,
             "texts", "has 2 items, at most 1 are allowed");
    is_error(pe_field_set_tensors(rows, &rows[1], &lists, &(struct pe_tensors){2, named}, &err), PE_ERR_RANGE,
             "tensors", "has 2 tensors, at most 1 are allowed");
    ck_assert_uint_eq(lists.given, 0);
}
END_TEST

Suite *error_places_suite(void) {
    Suite *suite = suite_create("error_places");
    TCase *tests = tcase_create("errors");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, learned_without_its_table);
    tcase_add_test(tests, shift_without_its_inputs);
    tcase_add_test(tests, shift_of_a_table_too_large_to_fit);
    tcase_add_test(tests, attention_of_tensors_of_other_ranks);
    tcase_add_test(tests, attention_of_key_heads_that_do_not_divide);
    tcase_add_test(tests, masks_of_other_sizes);
    tcase_add_test(tests, embedding_scale_that_is_no_number);
    tcase_add_test(tests, safetensors_that_cannot_be_written);
    tcase_add_test(tests, lists_of_numbers_as_text);
    tcase_add_test(tests, fields_of_other_kinds);
    tcase_add_test(tests, more_names_than_there_is_room_for);
    tcase_add_test(tests, more_items_than_a_row_allows);
    suite_add_tcase(suite, tests);
    return suite;
}
