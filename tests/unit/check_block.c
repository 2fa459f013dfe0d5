/* SPDX-License-Identifier: MIT
 *
 * block: what must hold whatever the numbers are (these are in tests/cases/block, from torch). Weights come
 * from seeds: then layers are far from trivial, and the same in each test.
 */
#include "block_run.h"
#include "instructions.h"
#include "suites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { B = BLOCK_B, T = BLOCK_T, D = BLOCK_D, HEADS = BLOCK_HEADS, LAYERS = 3 };

/* ---- What attention cannot see ------------------------------------------------------------------------- */

static const struct {
    const char *type, *name, *value;
    bool ordered;
} encodings[] = {
    {NULL, NULL, NULL, false},          {"none", NULL, NULL, false}, {"sinusoidal", NULL, NULL, true},
    {"rope", "layout", "halves", true}, {"alibi", NULL, NULL, true}, {"t5", "seed", "1", true},
};

/* How far the outputs of tokens in another order are from the outputs in that order. */
static double change_of_order(const struct pe_plan *plan, enum pe_block_norm norm, enum pe_dtype dtype) {
    static const size_t order[T] = {3, 0, 6, 1, 5, 2, 4};
    struct pe_tensor x = block_numbers(dtype, 0), moved = block_numbers(dtype, 0);
    size_t row = D * pe_dtype_size(dtype);
    for (size_t t = 0; t < T; t++) {
        memcpy((char *)moved.data + t * row, (char *)x.data + order[t] * row, row);
    }
    struct pe_block_args args = {.plan = plan, .layers = LAYERS, .heads = HEADS, .norm = norm};
    args.activation = PE_BLOCK_GELU;
    args.init_std = 0.2;
    args.embeddings = &x;
    struct pe_block_result one = block_run(args);
    args.embeddings = &moved;
    struct pe_block_result other = block_run(args);
    double most = 0;
    for (size_t t = 0; t < T; t++) {
        most = fmax(most, block_apart(&other.output, t * D, &one.output, order[t] * D, D));
    }
    return most;
}

START_TEST(without_an_encoding_order_does_not_matter) {
    struct pe_plan *plan =
        encodings[_i].type ? block_plan(encodings[_i].type, encodings[_i].name, encodings[_i].value) : NULL;
    for (int norm = PE_BLOCK_NORM_PRE; norm <= PE_BLOCK_NORM_POST; norm++) {
        double single = change_of_order(plan, (enum pe_block_norm)norm, PE_DTYPE_F32);
        double wide = change_of_order(plan, (enum pe_block_norm)norm, PE_DTYPE_F64);
        if (encodings[_i].ordered) {
            ck_assert_msg(single > 1e-2 && wide > 1e-2, "%s: %g %g", encodings[_i].type, single, wide);
        } else {
            ck_assert_msg(single < 1e-6 && wide < 1e-13, "%g %g", single, wide);
        }
    }
    pe_plan_close(plan);
}
END_TEST

/* ---- Parts of the result ------------------------------------------------------------------------------- */

START_TEST(the_stream_is_that_of_fewer_layers) {
    struct pe_tensor x = block_numbers(PE_DTYPE_F64, B);
    struct pe_plan *plan = block_plan("sinusoidal", NULL, NULL);
    struct pe_block_args args = {
        .plan = plan, .embeddings = &x, .layers = LAYERS, .heads = HEADS, .naming = PE_BLOCK_GPT2};
    struct pe_block_result whole = block_run(args);
    const size_t items = (size_t)B * T * D, weights = (size_t)B * HEADS * T * T;
    ck_assert_int_eq(whole.stream.rank, 4);
    ck_assert_uint_eq(whole.stream.dim[0], LAYERS + 1);
    ck_assert_uint_eq(whole.weights.dim[0], LAYERS);
    args.final_norm = PE_BLOCK_NO;
    for (size_t l = 1; l <= LAYERS; l++) {
        args.layers = l;
        struct pe_block_result some = block_run(args);
        ck_assert(block_apart(&some.output, 0, &whole.stream, l * items, items) == 0);
        ck_assert(block_apart(&some.weights, 0, &whole.weights, 0, l * weights) == 0);
    }
    args.layers = LAYERS;
    struct pe_block_result bare = block_run(args);
    ck_assert(block_apart(&bare.output, 0, &whole.output, 0, items) >
              0.01); /* the final norm does something */
    struct pe_tensor sum;
    struct pe_work work;
    const struct pe_apply_args apply = {.size = sizeof apply, .plan = plan, .embeddings = &x};
    ck_assert_int_eq(pe_apply_open(block_arena, &work, &sum, &apply, &block_err), 0);
    pe_work_run(&work);
    ck_assert(block_apart(&whole.stream, 0, &sum, 0, items) == 0);
    pe_plan_close(plan);
}
END_TEST

START_TEST(a_sequence_alone_is_as_in_a_batch) {
    struct pe_tensor x = block_numbers(PE_DTYPE_F32, B);
    struct pe_block_args args = {.embeddings = &x, .layers = LAYERS, .heads = HEADS};
    struct pe_block_result all = block_run(args);
    for (size_t b = 0; b < B; b++) {
        struct pe_tensor one = {(float *)x.data + b * T * D, PE_DTYPE_F32, 2, {T, D}};
        args.embeddings = &one;
        struct pe_block_result alone = block_run(args);
        ck_assert_int_eq(alone.weights.rank, 4);
        ck_assert_int_eq(alone.stream.rank, 3);
        ck_assert(block_apart(&alone.output, 0, &all.output, b * T * D, (size_t)T * D) == 0);
        for (size_t l = 0; l < LAYERS; l++) {
            size_t n = (size_t)HEADS * T * T;
            ck_assert(block_apart(&alone.weights, l * n, &all.weights, (l * B + b) * n, n) == 0);
        }
    }
}
END_TEST

/* Weights that are not asked for share their memory, those that are rounded have another: the output stays.
 */
START_TEST(what_is_returned_changes_no_number) {
    struct pe_tensor x = block_numbers(PE_DTYPE_F32, B);
    struct pe_block_args args = {.embeddings = &x, .layers = LAYERS, .heads = HEADS};
    struct pe_block_result all = block_run(args);
    args.outputs = PE_BLOCK_OUTPUT;
    struct pe_block_result output = block_run(args);
    ck_assert(!output.weights.data && !output.stream.data);
    ck_assert(block_apart(&output.output, 0, &all.output, 0, (size_t)B * T * D) == 0);
    args.outputs = 0;
    args.dtype = PE_DTYPE_BF16;
    struct pe_block_result rounded = block_run(args);
    const struct pe_tensor *wide[] = {&all.weights, &all.output, &all.stream};
    const struct pe_tensor *narrow[] = {&rounded.weights, &rounded.output, &rounded.stream};
    for (size_t k = 0; k < PE_COUNT(wide); k++) {
        ck_assert_int_eq(narrow[k]->dtype, PE_DTYPE_BF16);
        ck_assert_int_eq(narrow[k]->rank, wide[k]->rank);
        for (size_t i = 0; i < pe_tensor_count(wide[k]); i++) {
            uint16_t value;
            double exact = block_at(wide[k], i);
            pe_dtype_store(PE_DTYPE_BF16, &exact, 1, &value);
            ck_assert_uint_eq(value, ((const uint16_t *)narrow[k]->data)[i]);
        }
    }
}
END_TEST

START_TEST(a_causal_token_sees_nothing_later) {
    struct pe_tensor x = block_numbers(PE_DTYPE_F32, 0);
    struct pe_block_args args = {.embeddings = &x, .layers = LAYERS, .heads = HEADS, .naming = PE_BLOCK_GPT2};
    struct pe_block_result one = block_run(args);
    ck_assert(one.causal && one.final_norm && one.norm == PE_BLOCK_NORM_PRE);
    ((float *)x.data)[(T - 1) * D] += 1;
    struct pe_block_result other = block_run(args);
    ck_assert(block_apart(&one.output, 0, &other.output, 0, (size_t)(T - 1) * D) == 0);
    ck_assert(block_apart(&one.output, (T - 1) * D, &other.output, (T - 1) * D, D) > 1e-3);
    const struct pe_attention_mask none = {.size = sizeof none};
    args.mask = &none;
    other = block_run(args);
    ck_assert(block_apart(&one.output, 0, &other.output, 0, D) > 1e-3);
}
END_TEST

/* Positions of each sequence: padded to the left, the tokens that are there come out as without padding. */
START_TEST(positions_of_each_sequence) {
    struct pe_tensor x = block_numbers(PE_DTYPE_F64, 2), short_x = {x.data, PE_DTYPE_F64, 2, {T - 2, D}};
    double list[2][T], keep[2][T];
    for (size_t t = 0; t < T; t++) { /* the second has its first T-2 tokens behind two of padding */
        list[0][t] = (double)t;
        list[1][t] = t < 2 ? 1 : (double)t - 2;
        keep[0][t] = 1;
        keep[1][t] = t >= 2;
    }
    memcpy((double *)x.data + (T + 2) * D, x.data, (T - 2) * D * sizeof(double));
    const struct pe_positions positions = {.batch = 2, .length = T, .axes = 1, .list = list[0]};
    const struct pe_tensor kept = {keep, PE_DTYPE_F64, 2, {2, T}};
    const struct pe_attention_mask mask = {.size = sizeof mask, .causal = true, .keep = &kept};
    const struct pe_attention_mask causal = {.size = sizeof causal, .causal = true};
    for (size_t i = 2; i < 4; i++) { /* one that is added, and one that turns */
        struct pe_plan *plan = block_plan(encodings[i].type, encodings[i].name, encodings[i].value);
        struct pe_block_args args = {.plan = plan,
                                     .embeddings = &x,
                                     .positions = &positions,
                                     .mask = &mask,
                                     .layers = 2,
                                     .heads = HEADS};
        struct pe_block_result padded = block_run(args);
        struct pe_block_args alone = {
            .plan = plan, .embeddings = &short_x, .mask = &causal, .layers = 2, .heads = HEADS};
        struct pe_block_result plain = block_run(alone);
        ck_assert(block_apart(&padded.output, (T + 2) * D, &plain.output, 0, (T - 2) * D) < 1e-12);
        pe_plan_close(plan);
    }
}
END_TEST

/* Small blocks are computed in float64 whatever is posted, and rounded once. */
START_TEST(float32_is_float64_rounded) {
    struct pe_tensor single = block_numbers(PE_DTYPE_F32, 0), wide = block_numbers(PE_DTYPE_F64, 0);
    struct pe_block_args args = {.embeddings = &single, .layers = LAYERS, .heads = HEADS};
    struct pe_block_result a = block_run(args);
    args.embeddings = &wide;
    struct pe_block_result b = block_run(args);
    ck_assert_int_eq(a.output.dtype, PE_DTYPE_F32);
    ck_assert_int_eq(b.output.dtype, PE_DTYPE_F64);
    for (size_t i = 0; i < T * D; i++) {
        ck_assert(block_at(&a.output, i) == (double)(float)block_at(&b.output, i));
    }
}
END_TEST

/* Rows of d_ff that are 0 change nothing but the size, which takes the layer over the limit. */
static struct pe_block_result padded_run(const struct pe_tensor *x, size_t d_ff) {
    static const struct {
        const char *name;
        size_t rows, columns; /* 0: d_ff */
    } parts[] = {{"self_attn.in_proj_weight", 3 * D, D},
                 {"self_attn.out_proj.weight", D, D},
                 {"linear1.weight", 0, D},
                 {"linear2.weight", D, 0},
                 {"norm1.weight", D, 1},
                 {"norm2.weight", D, 1}};
    struct pe_named_tensor weights[PE_COUNT(parts)];
    for (size_t k = 0; k < PE_COUNT(parts); k++) {
        size_t rows = parts[k].rows ? parts[k].rows : d_ff,
               columns = parts[k].columns ? parts[k].columns : d_ff;
        float *data = calloc(rows * columns, sizeof *data);
        for (size_t i = 0; i < rows && i < 4 * D; i++) {
            for (size_t j = 0; j < columns && j < 4 * D; j++) {
                data[i * columns + j] = (float)((i * 31 + j * 17 + k) % 37) / 64 - 0.25F;
            }
        }
        weights[k] = (struct pe_named_tensor){parts[k].name,
                                              {data, PE_DTYPE_F32, columns == 1 ? 1 : 2, {rows, columns}}};
    }
    struct pe_block_result made = block_run((struct pe_block_args){.embeddings = x,
                                                                   .weights = weights,
                                                                   .n_weights = PE_COUNT(parts),
                                                                   .heads = HEADS,
                                                                   .norm = PE_BLOCK_NORM_PRE,
                                                                   .activation = PE_BLOCK_GELU});
    for (size_t k = 0; k < PE_COUNT(parts); k++) {
        free(weights[k].tensor.data);
    }
    ck_assert(!made.bias && made.d_ff == d_ff);
    return made;
}

START_TEST(beyond_the_limit_a_blas_says_the_same) {
    struct pe_tensor x = block_numbers(PE_DTYPE_F32, 0);
    const size_t large = (size_t)(PE_BLOCK_ORDERED_WEIGHTS / (2 * D));
    struct pe_block_result small = padded_run(&x, 4 * D), blas = padded_run(&x, large);
    double off = block_apart(&small.output, 0, &blas.output, 0, (size_t)T * D);
    ck_assert_msg(off < 1e-5, "%g", off);
    ck_assert(block_apart(&small.output, 0, &x, 0, (size_t)T * D) > 0.1);
}
END_TEST

START_TEST(instruction_sets_change_no_bit) {
    struct pe_tensor x = block_numbers(PE_DTYPE_F64, B);
    struct pe_block_result made[PE_INSTRUCTIONS_COUNT];
    for (int i = 0; i < PE_INSTRUCTIONS_COUNT; i++) {
        struct pe_block_args args = {.embeddings = &x, .layers = LAYERS, .heads = HEADS};
        args.activation = (enum pe_block_activation)_i;
        instructions_limit((enum pe_instructions)i);
        made[i] = block_run(args);
        instructions_limit(PE_INSTRUCTIONS_COUNT);
        ck_assert(memcmp(made[i].output.data, made[0].output.data, pe_tensor_bytes(&made[0].output)) == 0);
        ck_assert(memcmp(made[i].weights.data, made[0].weights.data, pe_tensor_bytes(&made[0].weights)) == 0);
    }
}
END_TEST

START_TEST(nothing_is_no_work) {
    struct pe_tensor x = {&x, PE_DTYPE_F32, 3, {1000, 0, D}};
    struct pe_block_result none = block_run((struct pe_block_args){.embeddings = &x, .heads = HEADS});
    ck_assert_uint_eq(none.stream.dim[1], 1000);
}
END_TEST

/* ---- Tokens -------------------------------------------------------------------------------------------- */

START_TEST(a_token_is_its_text) {
    const char *const words[] = {"a", "b", "a", "", "ab", "\xc3\xa4"};
    struct pe_block_args args = {.tokens = words, .n_tokens = PE_COUNT(words), .width = 64};
    struct pe_block_result made = block_run(args);
    ck_assert(block_apart(&made.stream, 0, &made.stream, 2 * 64, 64) == 0);
    for (size_t i = 0; i < PE_COUNT(words); i++) {
        double length = 0;
        for (size_t k = 0; k < i; k++) {
            double dot = 0;
            for (size_t c = 0; c < 64; c++) {
                dot += block_at(&made.stream, i * 64 + c) * block_at(&made.stream, k * 64 + c) / 64;
            }
            ck_assert_msg((i == 2 && k == 0) || fabs(dot) < 0.5, "%s and %s: %g", words[i], words[k], dot);
        }
        for (size_t c = 0; c < 64; c++) {
            length += block_at(&made.stream, i * 64 + c) * block_at(&made.stream, i * 64 + c) / 64;
        }
        ck_assert_msg(length > 0.5 && length < 2, "%s: %g", words[i], length);
    }
    args.token_seed = 1;
    struct pe_block_result other = block_run(args);
    ck_assert(block_apart(&other.stream, 0, &made.stream, 0, 64) > 0.1);
}
END_TEST

Suite *block_suite(void) {
    Suite *suite = suite_create("block");
    TCase *tests = tcase_create("block");
    tcase_add_checked_fixture(tests, block_setup, block_teardown);
    suite_add_tcase(suite, tests);
    tcase_add_loop_test(tests, without_an_encoding_order_does_not_matter, 0, PE_COUNT(encodings));
    tcase_add_test(tests, the_stream_is_that_of_fewer_layers);
    tcase_add_test(tests, a_sequence_alone_is_as_in_a_batch);
    tcase_add_test(tests, what_is_returned_changes_no_number);
    tcase_add_test(tests, a_causal_token_sees_nothing_later);
    tcase_add_test(tests, positions_of_each_sequence);
    tcase_add_test(tests, float32_is_float64_rounded);
    tcase_add_test(tests, beyond_the_limit_a_blas_says_the_same);
    tcase_add_loop_test(tests, instruction_sets_change_no_bit, PE_BLOCK_GELU, PE_BLOCK_RELU + 1);
    tcase_add_test(tests, nothing_is_no_work);
    tcase_add_test(tests, a_token_is_its_text);
    return suite;
}
