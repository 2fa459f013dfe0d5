/* SPDX-License-Identifier: MIT
 *
 * attention: against cases from an independent script (tests/golden/make_attention.py) and published numbers,
 * and by its properties. Tolerances: in float64 the products have at most 64 terms of size 4, so 1e-12 leaves
 * room; in float32 a logit of size 10 is good to 1e-6, and so is a weight.
 */
#include "suites.h"

#include "posenc.h"

#include <math.h>
#include <string.h>

struct attention_case {
    const char *name;
    int rank, causal, n_window, n_lengths, n_documents, keep_rank;
    size_t b, h, hk, tq, tk, d, dv, bias_dim[4], keep_dim[3];
    int64_t window[2];
    double scale;
    const double *q, *k, *v, *bias, *lengths, *documents, *keep, *weights, *output;
};
struct embedded_case {
    const char *name;
    size_t b, t, d_model, heads, key_heads, d, dv;
    const double *positions, *x, *w_q, *w_k, *w_v, *logits, *weights, *terms, *output;
};
#include "../golden/attention_cases.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct pe_arena *arena;
static struct pe_error err;
static struct pe_work work;
static struct pe_attention_result result;

static void setup(void) {
    memset(&err, 0, sizeof err);
    arena = pe_arena_open((size_t)256 << 20, NULL, &err);
    pe_linalg_init();
}

static void teardown(void) {
    pe_arena_close(arena);
}

/* The last `rank` of four axes; the numbers rounded to dtype. */
static const struct pe_tensor *tensor(const double *values, enum pe_dtype dtype, int rank,
                                      const size_t dim[4]) {
    struct pe_tensor *t = pe_arena_array(arena, 1, sizeof *t, &err);
    ck_assert_int_eq(pe_tensor_alloc(arena, t, dtype, rank, dim + 4 - rank, &err), 0);
    pe_dtype_store(dtype, values, pe_tensor_count(t), t->data);
    return t;
}

#define TENSOR(values, dtype, rank, ...) tensor(values, dtype, rank, (const size_t[4]){__VA_ARGS__})

static double at(const struct pe_tensor *t, size_t i) {
    double value;
    pe_dtype_load(t->dtype, (const char *)t->data + i * pe_dtype_size(t->dtype), 1, &value);
    return value;
}

static double distance(const struct pe_tensor *t, const double *values) {
    double most = 0;
    for (size_t i = 0; i < pe_tensor_count(t); i++) {
        most = fmax(most, fabs(at(t, i) - values[i]));
    }
    return most;
}

static void attend(const struct pe_attention_args *args) {
    int code = pe_attention_open(arena, &work, &result, args, &err);
    ck_assert_msg(code == 0, "%s: %s", err.path, err.text);
    pe_work_run(&work);
}

/* A sequence of numbers without structure, in -1 .. 1. */
static uint64_t state = 1;
static double noise(void) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(int32_t)(state >> 32) / 2147483648.0;
}

static const struct pe_tensor *noise_tensor(enum pe_dtype dtype, int rank, const size_t dim[4]) {
    double values[8192];
    size_t n = 1;
    for (int i = 4 - rank; i < 4; i++) {
        n *= dim[i];
    }
    ck_assert_uint_le(n, COUNT(values));
    for (size_t i = 0; i < n; i++) {
        values[i] = 2 * noise();
    }
    return tensor(values, dtype, rank, dim);
}

#define NOISE(dtype, rank, ...) noise_tensor(dtype, rank, (const size_t[4]){__VA_ARGS__})

/* ---- Expected numbers -----------------------------------------------------------------------------------
 */

static void case_run(const struct attention_case *c, enum pe_dtype dtype) {
    struct pe_attention_mask mask = {.size = sizeof mask, .causal = c->causal, .n_window = c->n_window};
    memcpy(mask.window, c->window, sizeof mask.window);
    if (c->lengths) {
        mask.lengths = TENSOR(c->lengths, PE_DTYPE_F64, 1, 0, 0, 0, (size_t)c->n_lengths);
    }
    if (c->documents) {
        mask.documents = TENSOR(c->documents, PE_DTYPE_F32, 1, 0, 0, 0, (size_t)c->n_documents);
    }
    const size_t *keep = c->keep_dim;
    if (c->keep) {
        mask.keep = c->keep_rank == 1 ? TENSOR(c->keep, PE_DTYPE_F16, 1, 0, 0, 0, keep[0])
                                      : TENSOR(c->keep, PE_DTYPE_F16, 2, 0, 0, keep[0], keep[1]);
    }
    struct pe_attention_args args = {.size = sizeof args,
                                     .q = TENSOR(c->q, dtype, c->rank, c->b, c->h, c->tq, c->d),
                                     .k = TENSOR(c->k, dtype, c->rank, c->b, c->hk, c->tk, c->d),
                                     .v = TENSOR(c->v, dtype, c->rank, c->b, c->hk, c->tk, c->dv),
                                     .bias = c->bias ? tensor(c->bias, dtype, 4, c->bias_dim) : NULL,
                                     .mask = &mask,
                                     .scale = c->scale != 0 ? &c->scale : NULL,
                                     .outputs = PE_ATTENTION_WEIGHTS | PE_ATTENTION_OUTPUT};
    attend(&args);
    double tolerance = dtype == PE_DTYPE_F64 ? 1e-12 : 4e-6;
    if (dtype == PE_DTYPE_F32 && c->bias && fabs(c->bias[0]) == 1e9) {
        tolerance = 1; /* logits - 1e9 leaves nothing of them in float32, only that rows sum to 1 */
    }
    ck_assert_int_eq(result.weights.rank, c->rank);
    ck_assert_int_eq(result.weights.dtype, dtype);
    ck_assert_msg(distance(&result.weights, c->weights) < tolerance, "%s: weights", c->name);
    ck_assert_msg(distance(&result.output, c->output) < 2 * tolerance, "%s: output", c->name);
    ck_assert_ptr_null(result.logits.data);
    for (size_t row = 0; row < c->b * c->h * c->tq; row++) {
        double expected = 0, sum = 0;
        for (size_t j = 0; j < c->tk; j++) {
            sum += at(&result.weights, row * c->tk + j);
            expected += c->weights[row * c->tk + j];
            if (c->weights[row * c->tk + j] == 0) {
                ck_assert(at(&result.weights, row * c->tk + j) == 0);
            }
        }
        ck_assert_msg(fabs(sum - expected) < (dtype == PE_DTYPE_F64 ? 1e-15 : 1e-7) * 4, "%s: sum", c->name);
    }
}

START_TEST(cases_in_float64) {
    case_run(&attention_cases[_i], PE_DTYPE_F64);
}
END_TEST

START_TEST(cases_in_float32) {
    case_run(&attention_cases[_i], PE_DTYPE_F32);
}
END_TEST

static struct pe_plan *sinusoidal(size_t width) {
    struct pe_spec spec;
    struct pe_plan *plan;
    ck_assert_int_eq(pe_spec_init(arena, &spec, "sinusoidal", &err), 0);
    ck_assert_int_eq(pe_spec_fit(&spec, width, 0, &err), 0);
    ck_assert_int_eq(pe_plan_open(&plan, &spec, &err), 0);
    return plan;
}

static void embedded_run(const struct embedded_case *c, enum pe_dtype dtype) {
    struct pe_plan *plan = sinusoidal(c->d_model);
    struct pe_positions positions = {.length = c->t, .axes = 1, .list = c->positions};
    struct pe_attention_args args = {.size = sizeof args,
                                     .plan = plan,
                                     .embeddings =
                                         TENSOR(c->x, dtype, c->b > 1 ? 3 : 2, 0, c->b, c->t, c->d_model),
                                     .w_q = TENSOR(c->w_q, dtype, 2, 0, 0, c->d_model, c->heads * c->d),
                                     .w_k = TENSOR(c->w_k, dtype, 2, 0, 0, c->d_model, c->key_heads * c->d),
                                     .w_v = TENSOR(c->w_v, dtype, 2, 0, 0, c->d_model, c->key_heads * c->dv),
                                     .heads = c->heads,
                                     .query_positions = &positions,
                                     .outputs = 63};
    attend(&args);
    double tolerance = dtype == PE_DTYPE_F64 ? 1e-12 : 3e-5;
    size_t n = pe_tensor_count(&result.logits);
    ck_assert_int_eq(result.terms.rank, c->b > 1 ? 5 : 4);
    ck_assert_uint_eq(pe_tensor_count(&result.terms), 4 * n);
    ck_assert(distance(&result.logits, c->logits) < tolerance);
    ck_assert(distance(&result.weights, c->weights) < tolerance);
    ck_assert(distance(&result.terms, c->terms) < tolerance);
    ck_assert(distance(&result.content, c->terms) < tolerance);
    ck_assert(distance(&result.output, c->output) < tolerance);
    for (size_t i = 0; i < n; i++) {
        double logit = at(&result.logits, i), content = at(&result.content, i);
        ck_assert(fabs(at(&result.position, i) - (logit - content)) < tolerance);
    }
    pe_plan_close(plan);
}

START_TEST(embeddings_with_sinusoids) {
    embedded_run(&embedded_cases[_i], PE_DTYPE_F64);
    embedded_run(&embedded_cases[_i], PE_DTYPE_F32);
}
END_TEST

/* Q = K = the unit matrix, d = 2: 1/(1 + exp(-(1/sqrt(2) + 1))) and so on, to eight places. */
START_TEST(two_by_two_as_published) {
    const double unit[4] = {1, 0, 0, 1}, bias[4] = {0, -1, 0.5, 0};
    const double expected[4] = {.84646064, .15353936, .44840759, .55159241};
    struct pe_attention_args args = {.size = sizeof args,
                                     .q = TENSOR(unit, PE_DTYPE_F32, 2, 0, 0, 2, 2),
                                     .k = TENSOR(unit, PE_DTYPE_F32, 2, 0, 0, 2, 2),
                                     .bias = TENSOR(bias, PE_DTYPE_F32, 2, 0, 0, 2, 2)};
    attend(&args);
    ck_assert(distance(&result.weights, expected) < 1e-7);
    args.bias = NULL;
    attend(&args);
    ck_assert(fabs(at(&result.weights, 0) - .66976155) < 1e-7);
}
END_TEST

/* ALiBi, slopes 1/2 and 1/4, zero logits, causal (Press et al. 2022): the rows of the mpt and bloom heads. */
START_TEST(alibi_rows) {
    const double zeros[8] = {0}, rows[2][4] = {{.10153632, .1674051, .27600434, .45505423},
                                               {.16529618, .21224449, .27252732, .34993201}};
    double bias[32];
    for (size_t i = 0; i < 32; i++) {
        bias[i] = -(i < 16 ? 0.5 : 0.25) * fabs((double)(i / 4 % 4) - (double)(i % 4));
    }
    struct pe_attention_mask mask = {.size = sizeof mask, .causal = true};
    struct pe_attention_args args = {.size = sizeof args,
                                     .q = TENSOR(zeros, PE_DTYPE_F64, 3, 0, 2, 4, 1),
                                     .k = TENSOR(zeros, PE_DTYPE_F64, 3, 0, 2, 4, 1),
                                     .bias = TENSOR(bias, PE_DTYPE_F32, 3, 0, 2, 4, 4),
                                     .mask = &mask};
    attend(&args);
    for (size_t i = 0; i < 8; i++) {
        ck_assert(fabs(at(&result.weights, i / 4 * 16 + 12 + i % 4) - rows[i / 4][i % 4]) < 1e-8);
    }
}
END_TEST

/* ---- Properties -----------------------------------------------------------------------------------------
 */

/* Any masks together, against a loop over all pairs. */
START_TEST(masks_are_combined_by_and) {
    for (int round = 0; round < 300; round++) {
        size_t tq = 1 + (size_t)(3.5 * fabs(noise())), tk = tq + (size_t)(3.9 * fabs(noise())), b = 2;
        double keep[64], lengths[2], documents[2];
        for (size_t i = 0; i < 64; i++) {
            keep[i] = noise() > -0.5;
        }
        lengths[0] = floor((double)tk * fabs(noise()));
        lengths[1] = (double)tk;
        documents[0] = floor((double)tk * fabs(noise()));
        documents[1] = (double)tk - documents[0];
        struct pe_attention_mask mask = {.size = sizeof mask, .causal = noise() > 0, .window = {1, 2}};
        mask.n_window = noise() > 0 ? 2 : 0;
        mask.lengths = noise() > 0 ? TENSOR(lengths, PE_DTYPE_F32, 1, 0, 0, 0, 2) : NULL;
        mask.documents = noise() > 0 ? TENSOR(documents, PE_DTYPE_F32, 1, 0, 0, 0, 2) : NULL;
        mask.keep = noise() > 0 ? TENSOR(keep, PE_DTYPE_F32, 3, 0, b, tq, tk) : NULL;
        struct pe_attention_args args = {.size = sizeof args,
                                         .q = NOISE(PE_DTYPE_F32, 4, b, 1, tq, 2),
                                         .k = NOISE(PE_DTYPE_F32, 4, b, 1, tk, 2),
                                         .mask = &mask};
        attend(&args);
        for (size_t i = 0; i < b * tq * tk; i++) {
            long place = (long)(i / tk % tq) + (long)(tk - tq), j = (long)(i % tk);
            bool seen = !mask.causal || j <= place;
            seen = seen && (!mask.n_window || (place - j <= 1 && j - place <= 2));
            seen = seen && (!mask.lengths || (double)j < lengths[i / tk / tq]);
            seen = seen && (!mask.documents || ((double)j < documents[0]) == ((double)place < documents[0]));
            seen = seen && (!mask.keep || keep[i] != 0);
            ck_assert(seen == (at(&result.weights, i) > 0));
        }
    }
}
END_TEST

START_TEST(rows_sum_to_one_at_any_length) {
    for (size_t tk = 1; tk < 300; tk += 1 + tk / 7) {
        struct pe_attention_args args = {.size = sizeof args,
                                         .q = NOISE(PE_DTYPE_F32, 2, 0, 0, 3, 4),
                                         .k = NOISE(PE_DTYPE_F32, 2, 0, 0, tk, 4)};
        attend(&args);
        for (size_t i = 0; i < 3; i++) {
            double sum = 0;
            for (size_t j = 0; j < tk; j++) {
                sum += at(&result.weights, i * tk + j);
            }
            ck_assert(fabs(sum - 1) < 1.8e-7); /* 1/sum and the product with it: one and a half last places */
        }
    }
}
END_TEST

/* The bias that stands for -infinity in float32 code. */
START_TEST(lowest_bias_hides) {
    const double bias[3] = {-0x1.fffffep127, 0, -1e9}, lowest[3] = {bias[0], bias[0], bias[0]};
    struct pe_attention_args args = {.size = sizeof args,
                                     .q = NOISE(PE_DTYPE_F32, 2, 0, 0, 2, 4),
                                     .k = NOISE(PE_DTYPE_F32, 2, 0, 0, 3, 4),
                                     .bias = TENSOR(bias, PE_DTYPE_F32, 1, 0, 0, 0, 3)};
    attend(&args);
    for (size_t i = 0; i < 6; i++) {
        ck_assert(at(&result.weights, i) == (i % 3 == 1));
    }
    args.bias = TENSOR(lowest, PE_DTYPE_F32, 1, 0, 0, 0, 3);
    attend(&args);
    for (size_t i = 0; i < 6; i++) {
        ck_assert(fabs(at(&result.weights, i) - 1.0 / 3) < 1e-7);
    }
}
END_TEST

/* Without an encoding a permutation of the tokens permutes rows and columns, and nothing else. */
START_TEST(without_encoding_order_is_lost) {
    const struct pe_tensor *x = NOISE(PE_DTYPE_F64, 2, 0, 0, 5, 6);
    const size_t order[5] = {3, 0, 4, 1, 2};
    double permuted[30], before[25];
    for (size_t i = 0; i < 30; i++) {
        permuted[i] = at(x, order[i / 6] * 6 + i % 6);
    }
    struct pe_attention_args args = {.size = sizeof args, .embeddings = x};
    attend(&args);
    pe_dtype_load(PE_DTYPE_F64, result.weights.data, 25, before);
    args.embeddings = TENSOR(permuted, PE_DTYPE_F64, 2, 0, 0, 5, 6);
    attend(&args);
    for (size_t i = 0; i < 25; i++) {
        ck_assert(fabs(at(&result.weights, i) - before[order[i / 5] * 5 + order[i % 5]]) < 1e-14);
    }
    args.plan = sinusoidal(6);
    attend(&args);
    ck_assert(distance(&result.weights, before) > 1e-3);
    pe_plan_close((struct pe_plan *)(uintptr_t)args.plan);
}
END_TEST

/* Positions [B, T]: each sequence gets what it would get alone. */
START_TEST(positions_of_each_sequence) {
    struct pe_tensor x = *NOISE(PE_DTYPE_F32, 3, 0, 2, 5, 6);
    const double list[10] = {0, 1, 2, 3, 4, 7, 5, 5, 100, 0.5};
    struct pe_positions positions = {.batch = 2, .length = 5, .axes = 1, .list = list};
    struct pe_plan *plan = sinusoidal(6);
    struct pe_attention_args args = {.size = sizeof args, .plan = plan, .embeddings = &x, .outputs = 63};
    args.key_positions = &positions;
    attend(&args);
    struct pe_attention_result both = result;
    x.rank = 2;
    x.dim[0] = 5;
    x.dim[1] = 6;
    positions.batch = 0;
    for (size_t b = 0; b < 2; b++) {
        attend(&args);
        ck_assert_mem_eq(result.weights.data, (float *)both.weights.data + b * 25, 25 * sizeof(float));
        ck_assert_mem_eq(result.terms.data, (float *)both.terms.data + b * 25, 25 * sizeof(float));
        x.data = (float *)x.data + 30;
        positions.list = list + 5;
    }
    pe_plan_close(plan);
}
END_TEST

/* Queries and keys may stand at different places. */
START_TEST(positions_of_queries_and_keys) {
    const struct pe_tensor *x = NOISE(PE_DTYPE_F64, 2, 0, 0, 3, 4);
    struct pe_positions near = {.length = 3, .axes = 1, .step = 1}, far = near;
    far.start = 50;
    struct pe_plan *plan = sinusoidal(4);
    struct pe_attention_args args = {.size = sizeof args, .plan = plan, .embeddings = x};
    args.query_positions = &near;
    args.key_positions = &far;
    attend(&args);
    double q[12], k[12], p[12], weights[9];
    pe_encode_rows(plan, &near, PE_DTYPE_F64, 0, 3, p);
    for (size_t i = 0; i < 12; i++) {
        q[i] = at(x, i) + p[i];
    }
    pe_encode_rows(plan, &far, PE_DTYPE_F64, 0, 3, p);
    for (size_t i = 0; i < 12; i++) {
        k[i] = at(x, i) + p[i];
    }
    memcpy(weights, result.weights.data, sizeof weights);
    struct pe_attention_args plain = {.size = sizeof plain,
                                      .q = TENSOR(q, PE_DTYPE_F64, 2, 0, 0, 3, 4),
                                      .k = TENSOR(k, PE_DTYPE_F64, 2, 0, 0, 3, 4)};
    attend(&plain);
    ck_assert(distance(&result.weights, weights) < 1e-15);
    pe_plan_close(plan);
}
END_TEST

START_TEST(grouped_heads_are_repeated_heads) {
    const struct pe_tensor *q = NOISE(PE_DTYPE_F32, 3, 0, 6, 4, 8), *k = NOISE(PE_DTYPE_F32, 3, 0, 2, 5, 8);
    float repeated[6 * 40], weights[6 * 20];
    for (size_t h = 0; h < 6; h++) {
        memcpy(repeated + h * 40, (const float *)k->data + h / 3 * 40, 40 * sizeof(float));
    }
    struct pe_attention_args args = {.size = sizeof args, .q = q, .k = k};
    attend(&args);
    memcpy(weights, result.weights.data, sizeof weights);
    struct pe_tensor all = {repeated, PE_DTYPE_F32, 3, {6, 5, 8}};
    args.k = &all;
    attend(&args);
    ck_assert_mem_eq(weights, result.weights.data, sizeof weights);
}
END_TEST

START_TEST(one_head_in_any_rank_has_the_same_bits) {
    struct pe_tensor q = *NOISE(PE_DTYPE_F32, 4, 1, 1, 7, 4), k = *NOISE(PE_DTYPE_F32, 4, 1, 1, 9, 4);
    struct pe_attention_args args = {.size = sizeof args, .q = &q, .k = &k};
    attend(&args);
    float weights[63];
    memcpy(weights, result.weights.data, sizeof weights);
    for (int rank = 3; rank >= 2; rank--) {
        q.rank = k.rank = rank;
        memmove(q.dim, q.dim + 1, 3 * sizeof q.dim[0]);
        memmove(k.dim, k.dim + 1, 3 * sizeof k.dim[0]);
        attend(&args);
        ck_assert_int_eq(result.weights.rank, rank);
        ck_assert_mem_eq(weights, result.weights.data, sizeof weights);
    }
}
END_TEST

/* Parts in reverse order, and a head that is cut into blocks. */
START_TEST(parts_may_run_in_any_order) {
    size_t t = 700, n = t * t;
    struct pe_tensor q, out;
    ck_assert_int_eq(pe_tensor_alloc(arena, &q, PE_DTYPE_F32, 2, (size_t[2]){t, 8}, &err), 0);
    for (size_t i = 0; i < t * 8; i++) {
        ((float *)q.data)[i] = (float)noise();
    }
    struct pe_attention_args args = {.size = sizeof args, .q = &q, .k = &q};
    attend(&args);
    out = result.weights;
    ck_assert_uint_gt(work.n_parts, 1);
    ck_assert_int_eq(pe_attention_open(arena, &work, &result, &args, &err), 0);
    for (size_t part = work.n_parts; part-- > 0;) {
        work.run(work.state, part);
    }
    ck_assert_mem_eq(out.data, result.weights.data, n * sizeof(float));
}
END_TEST

START_TEST(small_heads_share_a_part) {
    struct pe_attention_args args = {.size = sizeof args,
                                     .q = NOISE(PE_DTYPE_F32, 4, 16, 16, 4, 4),
                                     .k = NOISE(PE_DTYPE_F32, 4, 16, 16, 4, 4)};
    attend(&args);
    ck_assert_uint_eq(work.n_parts, 1); /* 256 heads of 16 weights */
    ck_assert(at(&result.weights, 256 * 16 - 1) > 0);
}
END_TEST

START_TEST(sixteen_bits_are_rounded_once) {
    enum pe_dtype dtype = _i ? PE_DTYPE_BF16 : PE_DTYPE_F16;
    const struct pe_tensor *q = NOISE(dtype, 2, 0, 0, 3, 4), *k = NOISE(dtype, 2, 0, 0, 5, 4);
    struct pe_attention_args args = {.size = sizeof args, .q = q, .k = k, .outputs = 3};
    attend(&args);
    struct pe_attention_result narrow = result;
    ck_assert_int_eq(narrow.weights.dtype, dtype);
    args.dtype = PE_DTYPE_F32;
    attend(&args);
    for (size_t i = 0; i < 15; i++) {
        uint16_t expected[2];
        pe_dtype_store(dtype, &(double){at(&result.weights, i)}, 1, &expected[0]);
        pe_dtype_store(dtype, &(double){at(&result.logits, i)}, 1, &expected[1]);
        ck_assert_uint_eq(expected[0], ((const uint16_t *)narrow.weights.data)[i]);
        ck_assert_uint_eq(expected[1], ((const uint16_t *)narrow.logits.data)[i]);
    }
}
END_TEST

START_TEST(no_tokens_no_weights) {
    struct pe_attention_args args = {.size = sizeof args, .outputs = 31};
    args.q = NOISE(PE_DTYPE_F32, 2, 0, 0, 2, 4);
    args.k = args.v = NOISE(PE_DTYPE_F32, 2, 0, 0, 0, 4);
    attend(&args);
    ck_assert_uint_eq(pe_tensor_count(&result.weights), 0);
    for (size_t i = 0; i < 8; i++) {
        ck_assert(at(&result.output, i) == 0);
    }
    args.q = args.k;
    attend(&args);
    ck_assert_uint_eq(work.n_parts, 0);
}
END_TEST

Suite *attention_suite(void) {
    Suite *suite = suite_create("attention");
    TCase *tests = tcase_create("attention");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, cases_in_float64, 0, COUNT(attention_cases));
    tcase_add_loop_test(tests, cases_in_float32, 0, COUNT(attention_cases));
    tcase_add_loop_test(tests, embeddings_with_sinusoids, 0, COUNT(embedded_cases));
    tcase_add_test(tests, two_by_two_as_published);
    tcase_add_test(tests, alibi_rows);
    tcase_add_test(tests, masks_are_combined_by_and);
    tcase_add_test(tests, rows_sum_to_one_at_any_length);
    tcase_add_test(tests, lowest_bias_hides);
    tcase_add_test(tests, without_encoding_order_is_lost);
    tcase_add_test(tests, positions_of_each_sequence);
    tcase_add_test(tests, positions_of_queries_and_keys);
    tcase_add_test(tests, grouped_heads_are_repeated_heads);
    tcase_add_test(tests, one_head_in_any_rank_has_the_same_bits);
    tcase_add_test(tests, parts_may_run_in_any_order);
    tcase_add_test(tests, small_heads_share_a_part);
    tcase_add_loop_test(tests, sixteen_bits_are_rounded_once, 0, 2);
    tcase_add_test(tests, no_tokens_no_weights);
    suite_add_tcase(suite, tests);
    return suite;
}
