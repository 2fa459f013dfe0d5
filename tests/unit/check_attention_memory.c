/* SPDX-License-Identifier: MIT
 *
 * What attention takes beside its results: rows that are no result are there for a few blocks at a time. So
 * the output alone needs no [H, Tq, Tk], and its bits are those that it has beside the weights.
 */
#include "posenc.h"
#include "suites.h"

#include <string.h>

static struct pe_arena *arena;
static struct pe_plan *plan;
static struct pe_error err;

static void teardown(void) {
    pe_plan_close(plan);
    pe_arena_close(arena);
    plan = NULL;
    arena = NULL;
    err = (struct pe_error){0};
}

static const struct {
    const char *type, *name[3], *value[3];
    bool embedded;
} encodings[] = {
    {.type = NULL},
    {.type = "alibi"},
    {.type = "shaw", .name = {"clip", "seed"}, .value = {"5", "1"}},
    {.type = "rope", .name = {"layout", "head_dim"}, .value = {"halves", "8"}},
    {.type = "sinusoidal", .name = {"d_model"}, .value = {"16"}, .embedded = true},
};

static void encoding_open(size_t i) {
    struct pe_arena *own = pe_arena_open((size_t)1 << 20, NULL, &err);
    struct pe_spec spec;
    if (encodings[i].type) {
        ck_assert_int_eq(pe_spec_init(own, &spec, encodings[i].type, &err), PE_OK);
        for (size_t k = 0; k < 3 && encodings[i].name[k]; k++) {
            ck_assert_int_eq(pe_spec_set(own, &spec, encodings[i].name[k], encodings[i].value[k], &err),
                             PE_OK);
        }
        ck_assert_int_eq(pe_spec_fit(&spec, encodings[i].embedded ? 16 : 8, 0, &err), PE_OK);
        ck_assert_msg(pe_plan_open(&plan, &spec, &err) == PE_OK, "%s: %s", err.path, err.text);
    }
    pe_arena_close(own);
}

enum { HEADS = 2, TOKENS_MOST = 2048, WIDTH = 8 };
static double numbers[HEADS * TOKENS_MOST * WIDTH];

/* [HEADS, n, WIDTH], or embeddings [n, HEADS*WIDTH]. */
static struct pe_tensor tensor(bool embedded, size_t n, enum pe_dtype dtype) {
    uint32_t state = 1;
    for (size_t i = 0; i < HEADS * n * WIDTH; i++) {
        state = state * 1664525 + 1013904223;
        double value = (double)(state >> 8) / (1 << 23) - 1;
        pe_dtype_store(dtype, &value, 1, (unsigned char *)numbers + i * pe_dtype_size(dtype));
    }
    return embedded ? (struct pe_tensor){numbers, dtype, 2, {n, HEADS * WIDTH}}
                    : (struct pe_tensor){numbers, dtype, 3, {HEADS, n, WIDTH}};
}

static struct pe_attention_args arguments(const struct pe_tensor *x, bool embedded) {
    struct pe_attention_args args = {.size = sizeof args, .plan = plan};
    if (embedded) {
        args.embeddings = x;
        args.heads = HEADS;
    } else {
        args.q = args.k = args.v = x;
    }
    return args;
}

/* What is asked for, in so much memory; returns what it took. */
static size_t run(struct pe_attention_args *args, unsigned outputs, struct pe_attention_result *result) {
    struct pe_work work;
    size_t before = pe_arena_used(arena);
    args->outputs = outputs;
    ck_assert_msg(pe_attention_open(arena, &work, result, args, &err) == PE_OK, "%s: %s", err.path, err.text);
    ck_assert(pe_work_run(&work));
    return pe_arena_used(arena) - before;
}

/* The weights would be 32 MiB. */
START_TEST(the_output_alone_needs_no_weights) {
    enum { LIMIT = 6 << 20 };
    bool embedded = encodings[_i].embedded;
    struct pe_attention_result result;
    encoding_open((size_t)_i);
    arena = pe_arena_open(LIMIT, NULL, &err);
    struct pe_tensor x = tensor(embedded, TOKENS_MOST, PE_DTYPE_F32);
    struct pe_attention_args args = arguments(&x, embedded);
    ck_assert_uint_lt(run(&args, PE_ATTENTION_OUTPUT, &result), LIMIT);
    ck_assert_ptr_null(result.weights.data);
    struct pe_work work;
    args.outputs = PE_ATTENTION_WEIGHTS;
    ck_assert_int_eq(pe_attention_open(arena, &work, &result, &args, &err), PE_ERR_LIMIT);
}
END_TEST

/* Rounded results take no memory in the type of the arithmetic; what only others need takes little, too. */
START_TEST(a_result_takes_little_beside_itself) {
    enum { N = 1024, BYTES = HEADS * N * N };
    static const struct {
        size_t encoding;
        unsigned outputs;
        enum pe_dtype dtype;
        size_t bytes;
    } of[] = {
        {1, PE_ATTENTION_WEIGHTS, PE_DTYPE_F16, 2 * BYTES},
        {1, PE_ATTENTION_LOGITS, PE_DTYPE_F32, 4 * BYTES},
        {3, PE_ATTENTION_POSITION, PE_DTYPE_F32, 4 * BYTES},
    };
    struct pe_attention_result result;
    encoding_open(of[_i].encoding);
    arena = pe_arena_open(of[_i].bytes + (4 << 20), NULL, &err);
    struct pe_tensor x = tensor(false, N, PE_DTYPE_F32);
    struct pe_attention_args args = arguments(&x, false);
    args.dtype = of[_i].dtype;
    ck_assert_uint_ge(run(&args, of[_i].outputs, &result), of[_i].bytes);
}
END_TEST

/* 700 rows are several blocks, which are cut by sizes and not by what is asked for. */
START_TEST(the_output_has_the_same_bits_with_the_weights) {
    enum { N = 700, ITEMS = HEADS * N * WIDTH };
    static const enum pe_dtype dtypes[][2] = {
        {PE_DTYPE_F32, PE_DTYPE_F32}, {PE_DTYPE_F64, PE_DTYPE_F64}, {PE_DTYPE_F32, PE_DTYPE_BF16}};
    const enum pe_dtype *dtype = dtypes[_i % 3];
    bool embedded = encodings[_i / 3].embedded;
    struct pe_attention_result alone, beside, all;
    encoding_open((size_t)_i / 3);
    arena = pe_arena_open((size_t)1 << 27, NULL, &err);
    struct pe_tensor x = tensor(embedded, N, dtype[0]);
    struct pe_attention_args args = arguments(&x, embedded);
    args.dtype = dtype[1];
    run(&args, PE_ATTENTION_OUTPUT, &alone);
    run(&args, PE_ATTENTION_OUTPUT | PE_ATTENTION_WEIGHTS, &beside);
    run(&args,
        PE_ATTENTION_OUTPUT | PE_ATTENTION_WEIGHTS | PE_ATTENTION_LOGITS | PE_ATTENTION_CONTENT |
            PE_ATTENTION_POSITION,
        &all);
    ck_assert_uint_eq(pe_tensor_bytes(&alone.output), ITEMS * pe_dtype_size(dtype[1]));
    ck_assert_mem_eq(alone.output.data, beside.output.data, pe_tensor_bytes(&alone.output));
    ck_assert_mem_eq(alone.output.data, all.output.data, pe_tensor_bytes(&alone.output));
    ck_assert_mem_eq(beside.weights.data, all.weights.data, pe_tensor_bytes(&all.weights));
    struct pe_tensor logits = all.logits, position = all.position;
    run(&args, PE_ATTENTION_LOGITS, &alone);
    ck_assert_mem_eq(alone.logits.data, logits.data, pe_tensor_bytes(&logits));
    run(&args, PE_ATTENTION_POSITION, &alone);
    ck_assert_mem_eq(alone.position.data, position.data, pe_tensor_bytes(&position));
}
END_TEST

struct asked {
    size_t n, most; /* so many may be had */
    size_t used;    /* of the arena, at the first question */
};

static int few_allowed(void *context, const struct pe_tensor *shape, struct pe_error *at) {
    struct asked *asked = context;
    ck_assert_ptr_null(shape->data);
    ck_assert_int_eq(shape->dtype, PE_DTYPE_BF16);
    ck_assert_uint_eq(pe_tensor_count(shape), HEADS * 512 * 512);
    asked->used = asked->n++ ? asked->used : pe_arena_used(arena);
    return asked->n <= asked->most ? PE_OK : pe_fail_limit(at, "", "few", asked->most, asked->n, "too many");
}

/* Who opened the arena is asked about every result before there is memory for the first. */
START_TEST(results_are_asked_for_before_there_is_memory) {
    struct pe_attention_result result;
    struct pe_work work;
    encoding_open(1);
    arena = pe_arena_open((size_t)1 << 27, NULL, &err);
    struct pe_tensor x = tensor(false, 512, PE_DTYPE_F32);
    struct pe_attention_args args = arguments(&x, false);
    args.dtype = PE_DTYPE_BF16;
    args.outputs = PE_ATTENTION_WEIGHTS | PE_ATTENTION_LOGITS | PE_ATTENTION_POSITION;
    struct asked asked = {.most = 2};
    pe_arena_rule_results(arena, &(struct pe_result_rule){few_allowed, &asked});
    ck_assert_int_eq(pe_attention_open(arena, &work, &result, &args, &err), PE_ERR_LIMIT);
    ck_assert_str_eq(err.limit_name, "few");
    ck_assert_uint_eq(asked.n, 3);
    ck_assert_uint_eq(pe_arena_used(arena), asked.used);
    err = (struct pe_error){0};
    asked = (struct asked){.most = 3};
    ck_assert_int_eq(pe_attention_open(arena, &work, &result, &args, &err), PE_OK);
    ck_assert_uint_eq(asked.n, 3);
    pe_arena_rule_results(arena, NULL);
    ck_assert_int_eq(pe_attention_open(arena, &work, &result, &args, &err), PE_OK);
    ck_assert_uint_eq(asked.n, 3);
}
END_TEST

Suite *attention_memory_suite(void) {
    Suite *suite = suite_create("attention_memory");
    TCase *tests = tcase_create("library");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, NULL, teardown);
    tcase_add_loop_test(tests, the_output_alone_needs_no_weights, 0, 5);
    tcase_add_loop_test(tests, a_result_takes_little_beside_itself, 0, 3);
    tcase_add_loop_test(tests, the_output_has_the_same_bits_with_the_weights, 0, 15);
    tcase_add_test(tests, results_are_asked_for_before_there_is_memory);
    return suite;
}
