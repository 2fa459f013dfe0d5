/* SPDX-License-Identifier: MIT
 *
 * block: what must hold whatever the numbers are (these are in tests/cases/block, from torch), and its
 * kernels against 60 digits. Weights come from seeds: then layers are far from trivial, and the same in each
 * test.
 */
#include "suites.h"

#include "kernels/activate.h"
#include "kernels/norm.h"
#include "posenc.h"

#include <math.h>
#include <string.h>

struct activate_value {
    double x, gelu, gelu_tanh;
};
struct norm_row {
    size_t n;
    double x[9], out[9];
};
#include "../golden/activate_values.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { B = 3, T = 7, D = 12, HEADS = 3, LAYERS = 3 };

static struct pe_arena *arena;
static struct pe_error err;
static const uint64_t seed = 5;

static void setup(void) {
    memset(&err, 0, sizeof err);
    arena = pe_arena_open((size_t)64 << 20, NULL, &err);
    pe_linalg_init();
}

static void teardown(void) {
    pe_arena_close(arena);
}

static struct pe_tensor numbers(enum pe_dtype dtype, size_t b) {
    struct pe_tensor x;
    const size_t dim[3] = {b, T, D};
    ck_assert_int_eq(pe_tensor_alloc(arena, &x, dtype, b ? 3 : 2, b ? dim : dim + 1, &err), 0);
    for (size_t i = 0; i < pe_tensor_count(&x); i++) {
        double value = (double)(i * 7919 % 1021) / 256 - 2;
        pe_dtype_store(dtype, &value, 1, (char *)x.data + i * pe_dtype_size(dtype));
    }
    return x;
}

static double at(const struct pe_tensor *t, size_t i) {
    double value;
    pe_dtype_load(t->dtype, (const char *)t->data + i * pe_dtype_size(t->dtype), 1, &value);
    return value;
}

/* The largest difference of n numbers from a[i] and b[k] on. */
static double apart(const struct pe_tensor *a, size_t i, const struct pe_tensor *b, size_t k, size_t n) {
    double most = 0;
    for (size_t m = 0; m < n; m++) {
        most = fmax(most, fabs(at(a, i + m) - at(b, k + m)));
    }
    return most;
}

static struct pe_block_result run(struct pe_block_args args) {
    struct pe_block_result result;
    struct pe_work work;
    args.size = sizeof args;
    if (!args.n_weights) {
        args.weights_seed = &seed;
    }
    ck_assert_msg(pe_block_open(arena, &work, &result, &args, &err) == 0, "%s: %s", err.path, err.text);
    ck_assert(pe_work_run(&work));
    return result;
}

static void refused(struct pe_block_args args, int code, const char *path, const char *text) {
    struct pe_block_result result;
    struct pe_work work;
    memset(&err, 0, sizeof err);
    args.size = sizeof args;
    ck_assert_int_eq(pe_block_open(arena, &work, &result, &args, &err), code);
    ck_assert_str_eq(err.path, path);
    ck_assert_msg(strstr(err.text, text) != NULL, "%s", err.text);
    ck_assert(!work.n_parts && !result.output.data && !result.weights.data);
}

static struct pe_plan *plan_of(const char *type, const char *name, const char *value) {
    struct pe_spec spec;
    struct pe_plan *plan = NULL;
    ck_assert_int_eq(pe_spec_init(arena, &spec, type, &err), 0);
    ck_assert(!name || pe_spec_set(arena, &spec, name, value, &err) == 0);
    ck_assert_int_eq(pe_spec_fit(&spec, strcmp(type, "sinusoidal") == 0 ? D : D / HEADS, T, &err), 0);
    ck_assert_msg(pe_plan_open(&plan, &spec, &err) == 0, "%s: %s", err.path, err.text);
    return plan;
}

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
    struct pe_tensor x = numbers(dtype, 0), moved = numbers(dtype, 0);
    size_t row = D * pe_dtype_size(dtype);
    for (size_t t = 0; t < T; t++) {
        memcpy((char *)moved.data + t * row, (char *)x.data + order[t] * row, row);
    }
    struct pe_block_args args = {.plan = plan, .layers = LAYERS, .heads = HEADS, .norm = norm};
    args.activation = PE_BLOCK_GELU;
    args.init_std = 0.2;
    args.embeddings = &x;
    struct pe_block_result one = run(args);
    args.embeddings = &moved;
    struct pe_block_result other = run(args);
    double most = 0;
    for (size_t t = 0; t < T; t++) {
        most = fmax(most, apart(&other.output, t * D, &one.output, order[t] * D, D));
    }
    return most;
}

START_TEST(without_an_encoding_order_does_not_matter) {
    struct pe_plan *plan =
        encodings[_i].type ? plan_of(encodings[_i].type, encodings[_i].name, encodings[_i].value) : NULL;
    for (int norm = PE_BLOCK_NORM_PRE; norm <= PE_BLOCK_NORM_POST; norm++) {
        double single = change_of_order(plan, (enum pe_block_norm)norm, PE_DTYPE_F32);
        double wide = change_of_order(plan, (enum pe_block_norm)norm, PE_DTYPE_F64);
        if (encodings[_i].ordered) {
            ck_assert_msg(single > 1e-2 && wide > 1e-2, "%s: %g %g", encodings[_i].type, single, wide);
        } else {
            ck_assert_msg(single < 1e-5 && wide < 1e-13, "%g %g", single, wide);
        }
    }
    pe_plan_close(plan);
}
END_TEST

/* ---- Parts of the result ------------------------------------------------------------------------------- */

START_TEST(the_stream_is_that_of_fewer_layers) {
    struct pe_tensor x = numbers(PE_DTYPE_F64, B);
    struct pe_plan *plan = plan_of("sinusoidal", NULL, NULL);
    struct pe_block_args args = {
        .plan = plan, .embeddings = &x, .layers = LAYERS, .heads = HEADS, .naming = PE_BLOCK_GPT2};
    struct pe_block_result whole = run(args);
    const size_t items = (size_t)B * T * D, weights = (size_t)B * HEADS * T * T;
    ck_assert_int_eq(whole.stream.rank, 4);
    ck_assert_uint_eq(whole.stream.dim[0], LAYERS + 1);
    ck_assert_uint_eq(whole.weights.dim[0], LAYERS);
    args.final_norm = PE_BLOCK_NO;
    for (size_t l = 1; l <= LAYERS; l++) {
        args.layers = l;
        struct pe_block_result some = run(args);
        ck_assert(apart(&some.output, 0, &whole.stream, l * items, items) == 0);
        ck_assert(apart(&some.weights, 0, &whole.weights, 0, l * weights) == 0);
    }
    args.layers = LAYERS;
    struct pe_block_result bare = run(args);
    ck_assert(apart(&bare.output, 0, &whole.output, 0, items) > 0.01); /* the final norm does something */
    struct pe_tensor sum;
    struct pe_work work;
    const struct pe_apply_args apply = {.size = sizeof apply, .plan = plan, .embeddings = &x};
    ck_assert_int_eq(pe_apply_open(arena, &work, &sum, &apply, &err), 0);
    pe_work_run(&work);
    ck_assert(apart(&whole.stream, 0, &sum, 0, items) == 0);
    pe_plan_close(plan);
}
END_TEST

START_TEST(a_sequence_alone_is_as_in_a_batch) {
    struct pe_tensor x = numbers(PE_DTYPE_F32, B);
    struct pe_block_args args = {.embeddings = &x, .layers = LAYERS, .heads = HEADS};
    struct pe_block_result all = run(args);
    for (size_t b = 0; b < B; b++) {
        struct pe_tensor one = {(float *)x.data + b * T * D, PE_DTYPE_F32, 2, {T, D}};
        args.embeddings = &one;
        struct pe_block_result alone = run(args);
        ck_assert_int_eq(alone.weights.rank, 4);
        ck_assert_int_eq(alone.stream.rank, 3);
        ck_assert(apart(&alone.output, 0, &all.output, b * T * D, (size_t)T * D) == 0);
        for (size_t l = 0; l < LAYERS; l++) {
            size_t n = (size_t)HEADS * T * T;
            ck_assert(apart(&alone.weights, l * n, &all.weights, (l * B + b) * n, n) == 0);
        }
    }
}
END_TEST

/* Weights that are not asked for share their memory, those that are rounded have another: the output stays.
 */
START_TEST(what_is_returned_changes_no_number) {
    struct pe_tensor x = numbers(PE_DTYPE_F32, B);
    struct pe_block_args args = {.embeddings = &x, .layers = LAYERS, .heads = HEADS};
    struct pe_block_result all = run(args);
    args.outputs = PE_BLOCK_OUTPUT;
    struct pe_block_result output = run(args);
    ck_assert(!output.weights.data && !output.stream.data);
    ck_assert(apart(&output.output, 0, &all.output, 0, (size_t)B * T * D) == 0);
    args.outputs = 0;
    args.dtype = PE_DTYPE_BF16;
    struct pe_block_result rounded = run(args);
    const struct pe_tensor *wide[] = {&all.weights, &all.output, &all.stream};
    const struct pe_tensor *narrow[] = {&rounded.weights, &rounded.output, &rounded.stream};
    for (size_t k = 0; k < COUNT(wide); k++) {
        ck_assert_int_eq(narrow[k]->dtype, PE_DTYPE_BF16);
        ck_assert_int_eq(narrow[k]->rank, wide[k]->rank);
        for (size_t i = 0; i < pe_tensor_count(wide[k]); i++) {
            uint16_t value;
            double exact = at(wide[k], i);
            pe_dtype_store(PE_DTYPE_BF16, &exact, 1, &value);
            ck_assert_uint_eq(value, ((const uint16_t *)narrow[k]->data)[i]);
        }
    }
}
END_TEST

START_TEST(a_causal_token_sees_nothing_later) {
    struct pe_tensor x = numbers(PE_DTYPE_F32, 0);
    struct pe_block_args args = {.embeddings = &x, .layers = LAYERS, .heads = HEADS, .naming = PE_BLOCK_GPT2};
    struct pe_block_result one = run(args);
    ck_assert(one.causal && one.final_norm && one.norm == PE_BLOCK_NORM_PRE);
    ((float *)x.data)[(T - 1) * D] += 1;
    struct pe_block_result other = run(args);
    ck_assert(apart(&one.output, 0, &other.output, 0, (size_t)(T - 1) * D) == 0);
    ck_assert(apart(&one.output, (T - 1) * D, &other.output, (T - 1) * D, D) > 1e-3);
    const struct pe_attention_mask none = {.size = sizeof none};
    args.mask = &none;
    other = run(args);
    ck_assert(apart(&one.output, 0, &other.output, 0, D) > 1e-3);
}
END_TEST

/* Positions of each sequence: padded to the left, the tokens that are there come out as without padding. */
START_TEST(positions_of_each_sequence) {
    struct pe_tensor x = numbers(PE_DTYPE_F64, 2), short_x = {x.data, PE_DTYPE_F64, 2, {T - 2, D}};
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
        struct pe_plan *plan = plan_of(encodings[i].type, encodings[i].name, encodings[i].value);
        struct pe_block_args args = {.plan = plan,
                                     .embeddings = &x,
                                     .positions = &positions,
                                     .mask = &mask,
                                     .layers = 2,
                                     .heads = HEADS};
        struct pe_block_result padded = run(args);
        struct pe_block_args alone = {
            .plan = plan, .embeddings = &short_x, .mask = &causal, .layers = 2, .heads = HEADS};
        struct pe_block_result plain = run(alone);
        ck_assert(apart(&padded.output, (T + 2) * D, &plain.output, 0, (T - 2) * D) < 1e-12);
        pe_plan_close(plan);
    }
}
END_TEST

START_TEST(float32_is_near_float64) {
    struct pe_tensor single = numbers(PE_DTYPE_F32, 0), wide = numbers(PE_DTYPE_F64, 0);
    struct pe_block_args args = {.embeddings = &single, .layers = LAYERS, .heads = HEADS};
    struct pe_block_result a = run(args);
    args.embeddings = &wide;
    struct pe_block_result b = run(args);
    ck_assert_int_eq(b.output.dtype, PE_DTYPE_F64);
    double off = apart(&a.output, 0, &b.output, 0, (size_t)T * D);
    ck_assert_msg(off > 0 && off < 1e-5, "%g", off);
    args.dtype = PE_DTYPE_F32; /* computed in float64, rounded once */
    struct pe_block_result c = run(args);
    for (size_t i = 0; i < T * D; i++) {
        ck_assert(at(&c.output, i) == (double)(float)at(&b.output, i));
    }
}
END_TEST

START_TEST(nothing_is_no_work) {
    struct pe_tensor x = {&x, PE_DTYPE_F32, 3, {1000, 0, D}};
    struct pe_block_result none = run((struct pe_block_args){.embeddings = &x, .heads = HEADS});
    ck_assert_uint_eq(none.stream.dim[1], 1000);
}
END_TEST

/* ---- Tokens -------------------------------------------------------------------------------------------- */

START_TEST(a_token_is_its_text) {
    const char *const words[] = {"a", "b", "a", "", "ab", "\xc3\xa4"};
    struct pe_block_args args = {.tokens = words, .n_tokens = COUNT(words), .width = 64};
    struct pe_block_result made = run(args);
    ck_assert(apart(&made.stream, 0, &made.stream, 2 * 64, 64) == 0);
    for (size_t i = 0; i < COUNT(words); i++) {
        double length = 0;
        for (size_t k = 0; k < i; k++) {
            double dot = 0;
            for (size_t c = 0; c < 64; c++) {
                dot += at(&made.stream, i * 64 + c) * at(&made.stream, k * 64 + c) / 64;
            }
            ck_assert_msg((i == 2 && k == 0) || fabs(dot) < 0.5, "%s and %s: %g", words[i], words[k], dot);
        }
        for (size_t c = 0; c < 64; c++) {
            length += at(&made.stream, i * 64 + c) * at(&made.stream, i * 64 + c) / 64;
        }
        ck_assert_msg(length > 0.5 && length < 2, "%s: %g", words[i], length);
    }
    args.token_seed = 1;
    struct pe_block_result other = run(args);
    ck_assert(apart(&other.stream, 0, &made.stream, 0, 64) > 0.1);
}
END_TEST

/* ---- Limits -------------------------------------------------------------------------------------------- */

static size_t memory_of(size_t layers, size_t length) {
    float *keep = pe_arena_array(arena, length * length, sizeof *keep, &err);
    for (size_t i = 0; i < length * length; i++) {
        keep[i] = 1;
    }
    const struct pe_tensor pairs = {keep, PE_DTYPE_F32, 2, {length, length}};
    const struct pe_attention_mask mask = {.size = sizeof mask, .keep = &pairs};
    struct pe_tensor x;
    ck_assert_int_eq(pe_tensor_alloc(arena, &x, PE_DTYPE_F32, 2, (size_t[2]){length, 4}, &err), 0);
    memset(x.data, 0, pe_tensor_bytes(&x));
    size_t before = pe_arena_used(arena);
    run((struct pe_block_args){
        .embeddings = &x, .layers = layers, .mask = &mask, .outputs = PE_BLOCK_OUTPUT, .heads = 2});
    return pe_arena_used(arena) - before;
}

/* metaseq PR 333: out of memory by a mask built anew for each layer. Here one mask, and one matrix of weights
 * where they are not asked for, serve all layers. */
START_TEST(report_m_metaseq_333_one_mask_for_all_layers) {
    const size_t length = 512, one = length * length * sizeof(float);
    size_t few = memory_of(1, length), many = memory_of(PE_BLOCK_LAYERS_MAX, length);
    ck_assert_msg(few >= one && few < 3 * one, "%zu", few);
    ck_assert_msg(many - few < one / 2, "%zu more for %d layers", many - few, PE_BLOCK_LAYERS_MAX - 1);
}
END_TEST

START_TEST(memory_is_refused_before_anything_is_computed) {
    struct pe_tensor x = {arena, PE_DTYPE_F32, 3, {1000, 4096, 4}}; /* never read: the arena is too small */
    struct pe_error small = {0};
    struct pe_arena *room = pe_arena_open((size_t)1 << 20, NULL, &small);
    float *data = pe_arena_array(arena, 4096 * 4, sizeof *data, &err);
    x = (struct pe_tensor){data, PE_DTYPE_F32, 2, {4096, 4}};
    struct pe_block_args args = {.size = sizeof args, .embeddings = &x, .weights_seed = &seed};
    struct pe_block_result result;
    struct pe_work work;
    ck_assert_int_eq(pe_block_open(room, &work, &result, &args, &small), PE_ERR_LIMIT);
    ck_assert_uint_eq(work.n_parts, 0);
    pe_arena_close(room);
}
END_TEST

/* ---- What a program may get wrong ---------------------------------------------------------------------- */

#define ARGS(...) ((struct pe_block_args){.weights_seed = &seed, __VA_ARGS__})

START_TEST(arguments_out_of_their_range) {
    struct pe_tensor x = numbers(PE_DTYPE_F32, 0);
    const double low = -1, nan = NAN;
    const char *const word = "a", *const *many =
                                      pe_arena_array(arena, PE_BLOCK_TOKENS_MAX + 1, sizeof word, &err);
    static const struct pe_named_tensor weights[PE_BLOCK_TENSORS_MAX + 1] = {{.name = "norm.weight"}};
    refused(ARGS(.embeddings = &x, .naming = 3), PE_ERR_CHOICE, "naming", "got 3, allowed are 1 to 2");
    refused(ARGS(.embeddings = &x, .norm = 4), PE_ERR_CHOICE, "norm", "got 4");
    refused(ARGS(.embeddings = &x, .activation = 4), PE_ERR_CHOICE, "activation", "got 4");
    refused(ARGS(.embeddings = &x, .residual = 3), PE_ERR_CHOICE, "residual", "got 3");
    refused(ARGS(.embeddings = &x, .final_norm = 3), PE_ERR_CHOICE, "final_norm", "got 3");
    refused(ARGS(.embeddings = &x, .outputs = 8), PE_ERR_CHOICE, "return", "0x8");
    refused(ARGS(.embeddings = &x, .dtype = 9), PE_ERR_DTYPE, "dtype", "got 9");
    refused(ARGS(.embeddings = &x, .norm_eps = &low), PE_ERR_RANGE, "norm_eps", "got -1");
    refused(ARGS(.embeddings = &x, .norm_eps = &nan), PE_ERR_RANGE, "norm_eps", "nan");
    refused(ARGS(.embeddings = &x, .init_std = -1), PE_ERR_RANGE, "init_std", "got -1");
    refused(ARGS(.embeddings = &x, .layers = 65), PE_ERR_RANGE, "layers", "has 65 layers");
    refused(ARGS(.embeddings = &x, .d_ff = SIZE_MAX), PE_ERR_RANGE, "d_ff", "at most 1048576");
    refused(ARGS(.tokens = many, .n_tokens = PE_BLOCK_TOKENS_MAX + 1, .width = 4), PE_ERR_RANGE, "tokens",
            "has 4097 items");
    refused(ARGS(.tokens = &word, .n_tokens = 1, .width = PE_BLOCK_WIDTH_MAX + 1), PE_ERR_RANGE, "width",
            "at most 65536");
    struct pe_block_args args = {.embeddings = &x, .weights = weights, .n_weights = COUNT(weights)};
    refused(args, PE_ERR_RANGE, "weights", "has 2049 tensors");
    args.n_weights = 1;
    args.heads = 1;
    refused(args, PE_ERR_RANGE, "weights", "has 0 layers");
    memset(&err, 0, sizeof err);
    struct pe_plan *plan = plan_of("rope", "layout", "halves");
    refused(ARGS(.embeddings = &x, .plan = plan, .heads = 2), PE_ERR_SHAPE, "encoding", "has head_dim 4");
    pe_plan_close(plan);
    memset(&err, 0, sizeof err);
    plan = plan_of("sinusoidal", NULL, NULL);
    x.dim[1] = D / 2;
    refused(ARGS(.embeddings = &x, .plan = plan), PE_ERR_SHAPE, "embeddings", "the encoding has D = 12");
    pe_plan_close(plan);
    struct pe_tensor no_batch = {x.data, PE_DTYPE_F32, 3, {0, 1, D}};
    refused(ARGS(.embeddings = &no_batch), PE_ERR_SHAPE, "embeddings", "has shape [0, 1, 12]");
    ((float *)x.data)[1] = NAN;
    refused(ARGS(.embeddings = &x), PE_ERR_NONFINITE, "embeddings[0][1]", "");
}
END_TEST

/* ---- Kernels ------------------------------------------------------------------------------------------- */

/* erfc and exp of the C library are within an ulp; that of an argument grows by its square in the tails. */
START_TEST(gelus_have_all_their_digits) {
    for (size_t i = 0; i < COUNT(activate_values); i++) {
        const struct activate_value *v = &activate_values[i];
        double exact = v->x, tanh = v->x, relu = v->x, square = fmin(v->x * v->x, 1e4);
        pe_activate(PE_BLOCK_GELU, PE_DTYPE_F64, &exact, 1);
        pe_activate(PE_BLOCK_GELU_TANH, PE_DTYPE_F64, &tanh, 1);
        pe_activate(PE_BLOCK_RELU, PE_DTYPE_F64, &relu, 1);
        ck_assert_msg(fabs(exact - v->gelu) <= 4e-16 * (1 + square) * fabs(v->gelu), "gelu(%g) is %.17g",
                      v->x, exact);
        ck_assert_msg(fabs(tanh - v->gelu_tanh) <= 4e-16 * (1 + square) * (1 + square) * fabs(v->gelu_tanh),
                      "gelu_tanh(%g) is %.17g", v->x, tanh);
        ck_assert(relu == fmax(v->x, 0));
        float single = (float)v->x;
        pe_activate(PE_BLOCK_GELU, PE_DTYPE_F32, &single, 1);
        ck_assert(fabs((double)single - v->gelu) <= 0x1p-23 * fabs(v->gelu) * (1 + square) + 0x1p-149);
    }
    double endless[] = {-INFINITY, -INFINITY, INFINITY, NAN};
    pe_activate(PE_BLOCK_GELU, PE_DTYPE_F64, &endless[0], 1);
    pe_activate(PE_BLOCK_GELU_TANH, PE_DTYPE_F64, &endless[1], 1);
    ck_assert(endless[0] == 0 && endless[1] == 0);
    pe_activate(PE_BLOCK_GELU_TANH, PE_DTYPE_F64, &endless[2], 1);
    pe_activate(PE_BLOCK_RELU, PE_DTYPE_F64, &endless[3], 1);
    ck_assert(isinf(endless[2]) && isnan(endless[3]));
}
END_TEST

START_TEST(variance_in_two_passes) {
    double ones[9], zeros[9] = {0}, out[9];
    float ones_single[9], zeros_single[9] = {0}, single[9];
    for (size_t i = 0; i < 9; i++) {
        ones[i] = ones_single[i] = 1;
    }
    for (size_t i = 0; i < COUNT(norm_rows); i++) {
        const struct norm_row *row = &norm_rows[i];
        const struct pe_norm wide = {PE_DTYPE_F64, row->n, ones, zeros, 1e-5};
        pe_norm_run(&wide, row->x, out);
        for (size_t c = 0; c < row->n; c++) {
            ck_assert_msg(fabs(out[c] - row->out[c]) < 4e-15, "%zu, %zu: %.17g", i, c, out[c]);
            single[c] = (float)row->x[c];
            ck_assert((double)single[c] == row->x[c] || i == 1); /* 1e8 + 1 is no float32 */
        }
        const struct pe_norm narrow = {PE_DTYPE_F32, row->n, ones_single, zeros_single, 1e-5};
        pe_norm_run(&narrow, single, single);
        for (size_t c = 0; i != 1 && c < row->n; c++) {
            ck_assert_msg(single[c] == (float)row->out[c], "%zu, %zu: %.9g", i, c, (double)single[c]);
        }
    }
    const struct pe_norm alike = {PE_DTYPE_F64, 4, ones, zeros, 0};
    const double same[4] = {5, 5, 5, 5};
    pe_norm_run(&alike, same, out);
    ck_assert(out[0] == 0 && out[3] == 0);
}
END_TEST

Suite *block_suite(void) {
    Suite *suite = suite_create("block");
    TCase *tests = tcase_create("block");
    tcase_add_checked_fixture(tests, setup, teardown);
    suite_add_tcase(suite, tests);
    tcase_add_loop_test(tests, without_an_encoding_order_does_not_matter, 0, COUNT(encodings));
    tcase_add_test(tests, the_stream_is_that_of_fewer_layers);
    tcase_add_test(tests, a_sequence_alone_is_as_in_a_batch);
    tcase_add_test(tests, what_is_returned_changes_no_number);
    tcase_add_test(tests, a_causal_token_sees_nothing_later);
    tcase_add_test(tests, positions_of_each_sequence);
    tcase_add_test(tests, float32_is_near_float64);
    tcase_add_test(tests, nothing_is_no_work);
    tcase_add_test(tests, a_token_is_its_text);
    tcase_add_test(tests, report_m_metaseq_333_one_mask_for_all_layers);
    tcase_add_test(tests, memory_is_refused_before_anything_is_computed);
    tcase_add_test(tests, arguments_out_of_their_range);
    tcase_add_test(tests, gelus_have_all_their_digits);
    tcase_add_test(tests, variance_in_two_passes);
    return suite;
}
