/* SPDX-License-Identifier: MIT
 *
 * attention: what it refuses, where, and in which words; and that what it does not refuse cannot overflow.
 */
#include "suites.h"

#include "posenc.h"

#include <math.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct pe_arena *arena;
static struct pe_error err;
static struct pe_work work;
static struct pe_attention_result result;
static float zeros[4096];

static void setup(void) {
    memset(&err, 0, sizeof err);
    arena = pe_arena_open((size_t)16 << 20, NULL, &err);
}

static void teardown(void) {
    pe_arena_close(arena);
}

/* A tensor of zeros of that shape. */
#define SHAPE(r, ...)     (&(struct pe_tensor){zeros, PE_DTYPE_F32, r, {__VA_ARGS__}})
#define FLOATS(r, n, ...) (&(struct pe_tensor){(float[]){__VA_ARGS__}, PE_DTYPE_F32, r, {n, 1}})

static void refused(struct pe_attention_args args, int code, const char *path, const char *text) {
    memset(&err, 0, sizeof err);
    args.size = sizeof args;
    ck_assert_int_eq(pe_attention_open(arena, &work, &result, &args, &err), code);
    ck_assert_str_eq(err.path, path);
    ck_assert_msg(strstr(err.text, text) != NULL, "%s", err.text);
}

static void accepted(struct pe_attention_args args) {
    memset(&err, 0, sizeof err);
    args.size = sizeof args;
    ck_assert_msg(pe_attention_open(arena, &work, &result, &args, &err) == 0, "%s: %s", err.path, err.text);
    pe_work_run(&work);
}

#define ARGS(...) ((struct pe_attention_args){__VA_ARGS__})

START_TEST(what_is_missing) {
    struct pe_tensor *q = SHAPE(2, 3, 4);
    refused(ARGS(0), PE_ERR_MISSING, "q", "post q and k, or embeddings");
    refused(ARGS(.k = q), PE_ERR_MISSING, "q", "is missing");
    refused(ARGS(.q = q), PE_ERR_MISSING, "k", "is missing");
    refused(ARGS(.q = q, .k = q, .outputs = PE_ATTENTION_OUTPUT), PE_ERR_MISSING, "v", "values");
}
END_TEST

START_TEST(what_contradicts) {
    struct pe_tensor *q = SHAPE(2, 3, 4);
    refused(ARGS(.q = q, .k = q, .embeddings = q), PE_ERR_CONFLICT, "embeddings", "not both");
    refused(ARGS(.v = q, .embeddings = q), PE_ERR_CONFLICT, "v", "not both");
    refused(ARGS(.q = q, .k = q, .w_k = q), PE_ERR_CONFLICT, "w_k", "projects embeddings");
    refused(ARGS(.q = q, .k = q, .heads = 2), PE_ERR_CONFLICT, "heads", "is 2 but q has H = 1");
}
END_TEST

START_TEST(shapes_name_both_sides) {
    struct pe_tensor *q = SHAPE(2, 3, 2), *heads = SHAPE(3, 8, 3, 2);
    refused(ARGS(.q = q, .k = SHAPE(2, 3, 4)), PE_ERR_SHAPE, "k", "has d = 4 but q has d = 2");
    refused(ARGS(.q = q, .k = SHAPE(3, 1, 3, 2)), PE_ERR_SHAPE, "k", "has 3 axes but q has 2");
    refused(ARGS(.q = q, .k = q, .v = SHAPE(2, 5, 2)), PE_ERR_SHAPE, "v", "has T = 5 but k has T = 3");
    refused(ARGS(.q = heads, .k = SHAPE(3, 3, 3, 2)), PE_ERR_SHAPE, "k", "has H = 3, which does not divide");
    refused(ARGS(.q = SHAPE(4, 2, 1, 3, 2), .k = SHAPE(4, 3, 1, 3, 2)), PE_ERR_SHAPE, "k",
            "has B = 3 but q has B = 2");
    refused(ARGS(.q = SHAPE(1, 3), .k = q), PE_ERR_SHAPE, "q", "has shape [3]");
    refused(ARGS(.q = SHAPE(2, 3, 0), .k = q), PE_ERR_SHAPE, "q", "allowed for d are 1");
    refused(ARGS(.q = q, .k = q, .bias = SHAPE(2, 3, 4)), PE_ERR_SHAPE, "bias", "[1, 1, 3, 3]");
    refused(ARGS(.embeddings = SHAPE(2, 3, 6), .heads = 4), PE_ERR_SHAPE, "heads",
            "6 columns, not a multiple of 4");
    refused(ARGS(.embeddings = q, .w_q = SHAPE(2, 5, 2)), PE_ERR_SHAPE, "w_q",
            "has D = 5 but embeddings has D = 2");
    refused(
        ARGS(.embeddings = q, .query_positions = &(struct pe_positions){.length = 4, .axes = 1, .step = 1}),
        PE_ERR_SHAPE, "query_positions", "has shape [4]");
}
END_TEST

/* Positions that nothing would use: without an encoding, and beside an explicit bias. */
START_TEST(positions_without_their_encoding) {
    struct pe_tensor *q = SHAPE(2, 3, 2);
    const struct pe_positions positions = {.length = 3, .axes = 1, .step = 1};
    refused(ARGS(.embeddings = q, .query_positions = &positions), PE_ERR_CONFLICT, "query_positions",
            "no encoding takes these positions");
    refused(ARGS(.embeddings = q, .key_positions = &positions), PE_ERR_CONFLICT, "key_positions",
            "no encoding takes these positions");
    refused(ARGS(.q = q, .k = q, .bias = SHAPE(2, 3, 3), .key_positions = &positions), PE_ERR_CONFLICT,
            "key_positions", "give one that does, or leave them out");
}
END_TEST

START_TEST(masks_that_cannot_be) {
    struct pe_tensor *q = SHAPE(4, 2, 1, 2, 3);
    struct pe_attention_mask mask = {.size = sizeof mask, .n_window = 1};
    const struct pe_attention_args args = {.q = q, .k = q, .mask = &mask};
    refused(args, PE_ERR_RANGE, "mask.window", "got 0, allowed are 1");
    mask = (struct pe_attention_mask){.size = sizeof mask, .lengths = SHAPE(1, 3)};
    refused(args, PE_ERR_SHAPE, "mask.lengths", "has shape [3], allowed is [2]");
    mask.lengths = FLOATS(1, 2, 1, 3);
    refused(args, PE_ERR_RANGE, "mask.lengths[1]", "got 3, allowed are whole numbers from 0 to 2");
    mask.lengths = FLOATS(1, 2, 0.5f, 1);
    refused(args, PE_ERR_RANGE, "mask.lengths[0]", "got 0.5");
    mask = (struct pe_attention_mask){.size = sizeof mask, .documents = FLOATS(1, 1, 1)};
    refused(args, PE_ERR_SHAPE, "mask.documents", "add up to 1 but there are 2 keys");
    mask = (struct pe_attention_mask){.size = sizeof mask, .keep = SHAPE(2, 2, 2)};
    refused(args, PE_ERR_SHAPE, "mask.keep", "[B, 1, Tk] or [1, Tq, Tk]");
    mask.keep = SHAPE(2, 3, 2);
    refused(args, PE_ERR_SHAPE, "mask.keep", "B = 2, Tq = 2 and Tk = 2");
    mask.keep = FLOATS(1, 2, 1, 2);
    refused(args, PE_ERR_RANGE, "mask.keep[1]", "got 2, allowed are 0 and 1");
}
END_TEST

/* Too large to multiply is refused, as large as possible is computed and stays finite. */
START_TEST(nothing_overflows) {
    struct pe_tensor *small = FLOATS(2, 1, 1), *large = FLOATS(2, 1, 1e30f), *huge = FLOATS(2, 1, 3e38f);
    refused(ARGS(.q = large, .k = large), PE_ERR_RANGE, "q", "may reach 1e+60");
    refused(ARGS(.q = huge, .k = small), PE_ERR_RANGE, "q", "float32");
    refused(ARGS(.q = small, .k = small, .v = huge, .outputs = PE_ATTENTION_OUTPUT), PE_ERR_RANGE, "v",
            "float32");
    refused(ARGS(.q = large, .k = FLOATS(2, 1, 100), .bias = FLOATS(2, 1, -3e38f)), PE_ERR_RANGE, "bias",
            "1e+32");
    refused(ARGS(.q = small, .k = small, .scale = &(double){1e39}), PE_ERR_RANGE, "scale", "1e+39");
    refused(ARGS(.q = small, .k = small, .scale = &(double){NAN}), PE_ERR_NONFINITE, "scale", "nan");
    refused(ARGS(.q = FLOATS(2, 1, INFINITY), .k = small), PE_ERR_NONFINITE, "q[0][0]", "infinity");
    refused(ARGS(.q = FLOATS(2, 1, -INFINITY), .k = small), PE_ERR_NONFINITE, "q[0][0]", "infinity");
    refused(ARGS(.q = small, .k = small, .bias = FLOATS(2, 1, INFINITY)), PE_ERR_NONFINITE, "bias[0][0]",
            "infinity");
    refused(ARGS(.q = large, .k = small, .dtype = PE_DTYPE_F16, .outputs = PE_ATTENTION_LOGITS), PE_ERR_RANGE,
            "q", "float16");
    accepted(ARGS(.q = large, .k = large, .dtype = PE_DTYPE_F64));
    accepted(ARGS(.q = FLOATS(2, 1, 1e18f), .k = FLOATS(2, 1, 1e19f), .outputs = PE_ATTENTION_LOGITS));
    ck_assert(isfinite(*(float *)result.logits.data));
    accepted(ARGS(.q = FLOATS(2, 1, 1e10f), .k = FLOATS(2, 1, -1e10f), .bias = FLOATS(2, 1, -0x1.fffffep127f),
                  .outputs = PE_ATTENTION_LOGITS));
    ck_assert(*(float *)result.logits.data == -0x1.fffffep127f);
}
END_TEST

START_TEST(encodings_in_their_place) {
    struct pe_spec spec;
    struct pe_plan *plan, *none;
    ck_assert_int_eq(pe_spec_init(arena, &spec, "sinusoidal", &err), 0);
    ck_assert_int_eq(pe_spec_fit(&spec, 6, 0, &err), 0);
    ck_assert_int_eq(pe_plan_open(&plan, &spec, &err), 0);
    ck_assert_int_eq(pe_spec_init(arena, &spec, "none", &err), 0);
    ck_assert_int_eq(pe_plan_open(&none, &spec, &err), 0);
    struct pe_tensor *x = SHAPE(2, 3, 6);
    refused(ARGS(.q = x, .k = x, .plan = plan), PE_ERR_CONFLICT, "encoding", "before they are projected");
    refused(ARGS(.embeddings = SHAPE(2, 3, 4), .plan = plan), PE_ERR_SHAPE, "embeddings",
            "has D = 4 but the encoding has D = 6");
    refused(ARGS(.embeddings = x, .plan = none, .outputs = PE_ATTENTION_TERMS), PE_ERR_UNSUPPORTED, "return",
            "none");
    refused(ARGS(.q = x, .k = x, .outputs = PE_ATTENTION_TERMS), PE_ERR_UNSUPPORTED, "return", "embeddings");
    refused(ARGS(.q = x, .k = x, .outputs = 64), PE_ERR_CHOICE, "return", "0x40");
    accepted(ARGS(.q = x, .k = x, .plan = none));
    accepted(ARGS(.embeddings = x, .plan = plan, .outputs = 63));
    pe_plan_close(plan);
    pe_plan_close(none);
}
END_TEST

START_TEST(memory_is_checked_first) {
    struct pe_tensor big = {zeros, PE_DTYPE_F32, 2, {4096, 1}};
    refused(ARGS(.q = &big, .k = &big), PE_ERR_LIMIT, "", "memory");
}
END_TEST

START_TEST(types_are_those_there_are) {
    struct pe_tensor *q = SHAPE(2, 3, 4);
    refused(ARGS(.q = q, .k = q, .dtype = PE_DTYPE_COUNT), PE_ERR_DTYPE, "dtype",
            "got 5, allowed are float64");
    refused(ARGS(.q = q, .k = q, .dtype = (enum pe_dtype)1000), PE_ERR_DTYPE, "dtype", "got 1000");
}
END_TEST

/* Sequences without tokens are as many as their shape says, which costs nothing to say. */
START_TEST(many_empty_sequences_take_no_time) {
    struct pe_tensor *x = SHAPE(3, 2147483647, 0, 4);
    struct pe_spec spec;
    struct pe_plan *plan;
    ck_assert(!pe_spec_init(arena, &spec, "sinusoidal", &err) &&
              !pe_spec_set(arena, &spec, "d_model", "4", &err) && !pe_plan_open(&plan, &spec, &err));
    accepted(ARGS(.plan = plan, .embeddings = x, .outputs = 0x3f));
    ck_assert_uint_eq(work.n_parts, 0);
    pe_plan_close(plan);
}
END_TEST

/* A caller's struct from an older header is shorter; one from a newer header may only ask for nothing new. */
START_TEST(arguments_of_other_versions) {
    struct {
        struct pe_attention_args args;
        size_t more;
    } newer = {.args = {.size = sizeof newer, .q = SHAPE(2, 3, 4), .k = SHAPE(2, 3, 4)}};
    ck_assert_int_eq(pe_attention_open(arena, &work, &result, &newer.args, &err), 0);
    newer.more = 1;
    ck_assert_int_eq(pe_attention_open(arena, &work, &result, &newer.args, &err), PE_ERR_UNKNOWN_FIELD);
    memset(&err, 0, sizeof err);
    newer.args.dtype = PE_DTYPE_F64;
    newer.args.size = offsetof(struct pe_attention_args, dtype);
    ck_assert_int_eq(pe_attention_open(arena, &work, &result, &newer.args, &err), 0);
    ck_assert_int_eq(result.weights.dtype, PE_DTYPE_F32);
    newer.args.size = 0;
    ck_assert_int_eq(pe_attention_open(arena, &work, &result, &newer.args, &err), PE_ERR_RANGE);
}
END_TEST

Suite *attention_errors_suite(void) {
    Suite *suite = suite_create("attention_errors");
    TCase *tests = tcase_create("attention_errors");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, what_is_missing);
    tcase_add_test(tests, what_contradicts);
    tcase_add_test(tests, shapes_name_both_sides);
    tcase_add_test(tests, positions_without_their_encoding);
    tcase_add_test(tests, masks_that_cannot_be);
    tcase_add_test(tests, nothing_overflows);
    tcase_add_test(tests, encodings_in_their_place);
    tcase_add_test(tests, memory_is_checked_first);
    tcase_add_test(tests, types_are_those_there_are);
    tcase_add_test(tests, many_empty_sequences_take_no_time);
    tcase_add_test(tests, arguments_of_other_versions);
    suite_add_tcase(suite, tests);
    return suite;
}
