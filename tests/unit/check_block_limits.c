/* SPDX-License-Identifier: MIT
 *
 * block: what it refuses, and the memory that it takes.
 */
#include "block_run.h"
#include "suites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { T = BLOCK_T, D = BLOCK_D };

/* ---- Limits -------------------------------------------------------------------------------------------- */

static size_t memory_of(size_t layers, size_t length) {
    float *keep = pe_arena_array(block_arena, length * length, sizeof *keep, &block_err);
    for (size_t i = 0; i < length * length; i++) {
        keep[i] = 1;
    }
    const struct pe_tensor pairs = {keep, PE_DTYPE_F32, 2, {length, length}};
    const struct pe_attention_mask mask = {.size = sizeof mask, .keep = &pairs};
    struct pe_tensor x;
    ck_assert_int_eq(pe_tensor_alloc(block_arena, &x, PE_DTYPE_F32, 2, (size_t[2]){length, 4}, &block_err),
                     0);
    memset(x.data, 0, pe_tensor_bytes(&x));
    size_t before = pe_arena_used(block_arena);
    block_run((struct pe_block_args){
        .embeddings = &x, .layers = layers, .mask = &mask, .outputs = PE_BLOCK_OUTPUT, .heads = 2});
    return pe_arena_used(block_arena) - before;
}

/* metaseq PR 333: out of memory by a mask built anew for each layer. Here one mask, and one matrix of weights
 * where they are not asked for, serve all layers. */
START_TEST(report_m_metaseq_333_one_mask_for_all_layers) {
    const size_t length = 512, one = length * length * sizeof(double);
    size_t few = memory_of(1, length), many = memory_of(PE_BLOCK_LAYERS_MAX, length);
    ck_assert_msg(few >= one && few < 3 * one, "%zu", few);
    ck_assert_msg(many - few < one / 2, "%zu more for %d layers", many - few, PE_BLOCK_LAYERS_MAX - 1);
}
END_TEST

static bool count(void *asked) {
    ++*(size_t *)asked;
    return false;
}

/* Questions whether to stop until a block is refused the memory of its 1024*1024 weights of attention. */
static size_t asks_until_refused(const struct pe_tensor *x, size_t d_ff) {
    size_t asked = 0;
    const struct pe_stop stop = {count, &asked};
    struct pe_error small = {.stop = &stop};
    struct pe_arena *room = pe_arena_open((size_t)4 << 20, NULL, &small);
    struct pe_block_args args = {
        .size = sizeof args, .embeddings = x, .weights_seed = &block_seed, .d_ff = d_ff};
    struct pe_block_result result;
    struct pe_work work;
    ck_assert_int_eq(pe_block_open(room, &work, &result, &args, &small), PE_ERR_LIMIT);
    ck_assert_str_eq(small.path, "return");
    ck_assert_uint_eq(work.n_parts, 0);
    pe_arena_close(room);
    return asked;
}

/* Weights from a seed are numbers that take time, a question every few thousands. */
START_TEST(memory_is_refused_before_anything_is_computed) {
    struct pe_tensor x;
    ck_assert(!pe_tensor_alloc(block_arena, &x, PE_DTYPE_F64, 2, (size_t[2]){1024, 64}, &block_err));
    memset(x.data, 0, pe_tensor_bytes(&x));
    ck_assert_uint_eq(asks_until_refused(&x, 1024), asks_until_refused(&x, 64));
}
END_TEST

/* How often a run asks whether to stop, of one token with weights of zeros. */
static size_t asks_of(size_t d_ff) {
    const size_t d = 16;
    float *zeros = calloc(d_ff * d, sizeof *zeros), x[16] = {1};
    const struct pe_tensor square = {zeros, PE_DTYPE_F32, 2, {d, d}}, row = {zeros, PE_DTYPE_F32, 1, {d}};
    const struct pe_named_tensor weights[] = {
        {"self_attn.in_proj_weight", {zeros, PE_DTYPE_F32, 2, {3 * d, d}}},
        {"self_attn.out_proj.weight", square},
        {"linear1.weight", {zeros, PE_DTYPE_F32, 2, {d_ff, d}}},
        {"linear2.weight", {zeros, PE_DTYPE_F32, 2, {d, d_ff}}},
        {"norm1.weight", row},
        {"norm2.weight", row}};
    const struct pe_tensor embeddings = {x, PE_DTYPE_F32, 2, {1, d}};
    size_t asked = 0;
    const struct pe_stop stop = {count, &asked};
    struct pe_block_args args = {.size = sizeof args,
                                 .embeddings = &embeddings,
                                 .weights = weights,
                                 .n_weights = PE_COUNT(weights),
                                 .heads = 1,
                                 .activation = PE_BLOCK_GELU};
    struct pe_block_result result;
    struct pe_work work;
    block_err.stop = &stop;
    ck_assert_int_eq(pe_block_open(block_arena, &work, &result, &args, &block_err), 0);
    asked = 0;
    ck_assert(pe_work_run(&work));
    block_err.stop = NULL;
    free(zeros);
    return asked;
}

/* An activation takes some 30 ns, and a row may have a million of them. The products are the BLAS's here, which
 * ask seldom. */
START_TEST(a_wide_row_is_asked_to_stop) {
    size_t less = asks_of((size_t)1 << 19), more = asks_of((size_t)1 << 20);
    ck_assert_msg(more >= less + 8, "%zu and %zu", less, more);
}
END_TEST

/* ---- What a program may get wrong ---------------------------------------------------------------------- */

#define ARGS(...) ((struct pe_block_args){.weights_seed = &block_seed, __VA_ARGS__})

START_TEST(arguments_out_of_their_range) {
    struct pe_tensor x = block_numbers(PE_DTYPE_F32, 0);
    const double low = -1, nan = NAN;
    const char *const word = "a", *const *many = pe_arena_array(block_arena, PE_BLOCK_TOKENS_MAX + 1,
                                                                sizeof word, &block_err);
    static const struct pe_named_tensor weights[PE_BLOCK_TENSORS_MAX + 1] = {{.name = "norm.weight"}};
    block_refused(ARGS(.embeddings = &x, .naming = 4), PE_ERR_CHOICE, "naming", "got 4, allowed are 1 to 3");
    block_refused(ARGS(.embeddings = &x, .norm = 4), PE_ERR_CHOICE, "norm", "got 4");
    block_refused(ARGS(.embeddings = &x, .activation = 4), PE_ERR_CHOICE, "activation", "got 4");
    block_refused(ARGS(.embeddings = &x, .residual = 3), PE_ERR_CHOICE, "residual", "got 3");
    block_refused(ARGS(.embeddings = &x, .final_norm = 3), PE_ERR_CHOICE, "final_norm", "got 3");
    block_refused(ARGS(.embeddings = &x, .outputs = 8), PE_ERR_CHOICE, "return", "0x8");
    block_refused(ARGS(.embeddings = &x, .dtype = 9), PE_ERR_DTYPE, "dtype", "got 9");
    block_refused(ARGS(.embeddings = &x, .norm_eps = &low), PE_ERR_RANGE, "norm_eps", "got -1");
    block_refused(ARGS(.embeddings = &x, .norm_eps = &nan), PE_ERR_RANGE, "norm_eps", "nan");
    block_refused(ARGS(.embeddings = &x, .init_std = -1), PE_ERR_RANGE, "init_std", "got -1");
    block_refused(ARGS(.embeddings = &x, .layers = 65), PE_ERR_RANGE, "layers", "has 65 layers");
    block_refused(ARGS(.embeddings = &x, .d_ff = SIZE_MAX), PE_ERR_RANGE, "d_ff", "at most 1048576");
    block_refused(ARGS(.tokens = many, .n_tokens = PE_BLOCK_TOKENS_MAX + 1, .width = 4), PE_ERR_RANGE,
                  "tokens", "has 4097 items");
    block_refused(ARGS(.tokens = &word, .n_tokens = 1, .width = PE_BLOCK_WIDTH_MAX + 1), PE_ERR_RANGE,
                  "width", "at most 65536");
    struct pe_block_args args = {.embeddings = &x, .weights = weights, .n_weights = PE_COUNT(weights)};
    block_refused(args, PE_ERR_RANGE, "weights", "has 2049 tensors");
    float id = 1, table[2][D] = {{0}, {0, NAN}}, ones[D] = {0};
    const struct pe_tensor ids = {&id, PE_DTYPE_F32, 1, {1}};
    const struct pe_named_tensor words[] = {{"wte.weight", {table, PE_DTYPE_F32, 2, {2, D}}},
                                            {"h.0.ln_1.weight", {ones, PE_DTYPE_F32, 1, {D}}}};
    const struct pe_block_args looked_up = {
        .token_ids = &ids, .weights = words, .n_weights = 2, .naming = PE_BLOCK_GPT2, .heads = 1};
    block_refused(looked_up, PE_ERR_NONFINITE, "token_ids[0]", "row 1 of wte.weight");
    args.n_weights = 1;
    args.heads = 1;
    block_refused(args, PE_ERR_RANGE, "weights", "has 0 layers");
    memset(&block_err, 0, sizeof block_err);
    struct pe_plan *plan = block_plan("rope", "layout", "halves");
    block_refused(ARGS(.embeddings = &x, .plan = plan, .heads = 2), PE_ERR_SHAPE, "encoding",
                  "has head_dim 4");
    pe_plan_close(plan);
    memset(&block_err, 0, sizeof block_err);
    plan = block_plan("sinusoidal", NULL, NULL);
    x.dim[1] = D / 2;
    block_refused(ARGS(.embeddings = &x, .plan = plan), PE_ERR_SHAPE, "embeddings",
                  "the encoding has D = 12");
    pe_plan_close(plan);
    struct pe_tensor no_batch = {x.data, PE_DTYPE_F32, 3, {0, 1, D}};
    block_refused(ARGS(.embeddings = &no_batch), PE_ERR_SHAPE, "embeddings", "has shape [0, 1, 12]");
    ((float *)x.data)[1] = NAN;
    block_refused(ARGS(.embeddings = &x), PE_ERR_NONFINITE, "embeddings[0][1]", "");
}
END_TEST

Suite *block_limits_suite(void) {
    Suite *suite = suite_create("block_limits");
    TCase *tests = tcase_create("block_limits");
    tcase_add_checked_fixture(tests, block_setup, block_teardown);
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, report_m_metaseq_333_one_mask_for_all_layers);
    tcase_add_test(tests, memory_is_refused_before_anything_is_computed);
    tcase_add_test(tests, a_wide_row_is_asked_to_stop);
    tcase_add_test(tests, arguments_out_of_their_range);
    return suite;
}
