/* SPDX-License-Identifier: MIT
 *
 * The products of attention on every instruction set: within what rounding allows of the exact sum, at any size,
 * place and alignment, between pages that may not be touched; and attention as a whole, which is the same wherever
 * its rows are computed.
 */
#include "suites.h"

#include "expect.h"
#include "fence.h"
#include "instructions.h"
#include "kernels/scores.h"
#include "posenc.h"
#include "random.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define ULP 0x1p-24 /* the most that one rounding of a float32 changes, of the number */

/* In -1 .. 1, of all magnitudes down to 2^-16. */
static float number(uint64_t *state) {
    const uint64_t word = random_next(state);
    return (float)ldexp((double)(int64_t)word * 0x1p-63, -(int)(word & 15));
}

/* ---- Products ------------------------------------------------------------------------------------------ */

enum { D_MOST = 65, N_MOST = 513, M_MOST = 19, SLACK = 3 };

static struct {
    struct fence q, keys, packed, c, bias, most;
    float want[M_MOST * N_MOST];
} memory;

static void memory_make(void) {
    fence_make(&memory.q, M_MOST * (D_MOST + SLACK) * sizeof(float));
    fence_make(&memory.keys, N_MOST * (D_MOST + SLACK) * sizeof(float));
    fence_make(&memory.packed, pe_scores_packed(N_MOST, D_MOST) * sizeof(float));
    fence_make(&memory.c, M_MOST * (N_MOST + SLACK) * sizeof(float));
    fence_make(&memory.bias, M_MOST * (N_MOST + SLACK) * sizeof(float));
    fence_make(&memory.most, M_MOST * PE_SCORES_COLUMNS * sizeof(float));
}

static void memory_drop(void) {
    fence_drop(&memory.q);
    fence_drop(&memory.keys);
    fence_drop(&memory.packed);
    fence_drop(&memory.c);
    fence_drop(&memory.bias);
    fence_drop(&memory.most);
}

/* A matrix [rows, columns] whose last row ends, or whose first row begins, where memory does. */
static float *matrix(const struct fence *fence, size_t rows, size_t columns, size_t ld, bool last,
                     uint64_t *state) {
    float *out = fence_side(fence, ((rows - 1) * ld + columns) * sizeof *out, last);
    for (size_t i = 0; state && i < (rows - 1) * ld + columns; i++) {
        out[i] = number(state);
    }
    return out;
}

static struct pe_scores scores_make(size_t m, size_t n, size_t k, bool last, uint64_t *state) {
    const size_t slack = random_next(state) % (SLACK + 1);
    const struct pe_const_matrix keys = {matrix(&memory.keys, n, k, k + slack, last, state), k + slack};
    float *packed = fence_side(&memory.packed, pe_scores_packed(n, k) * sizeof *packed, last);
    pe_scores_pack(keys, n, k, packed);
    struct pe_scores s = {.m = m, .n = n, .k = k, .alpha = 0.37F, .packed = packed};
    s.a = (struct pe_const_matrix){matrix(&memory.q, m, k, k + slack, last, state), k + slack};
    s.c = (struct pe_matrix){matrix(&memory.c, m, n, n + slack, last, NULL), n + slack};
    if (random_next(state) % 2) {
        s.bias = (struct pe_const_matrix){matrix(&memory.bias, m, n, n + slack, last, state), n + slack};
    }
    s.most = fence_side(&memory.most, m * PE_SCORES_COLUMNS * sizeof *s.most, last);
    return s;
}

static void scores_run(struct pe_scores *s, enum pe_instructions set) {
    s->instructions = set;
    for (size_t i = 0; s->most && i < s->m * PE_SCORES_COLUMNS; i++) {
        s->most[i] = -INFINITY;
    }
    pe_scores_run(s);
}

/* k products and k - 1 sums, the scale, alpha and the bias: each rounding is at most ULP of what it rounds, and none of
 * these is more than the sum of magnitudes. (1 + ULP)^(k + 3) is below 1 + (k + 4)*ULP for k < 1000; products too small
 * for all their bits lose 2^-149 each. */
static void element_check(const struct pe_scores *s, size_t i, size_t j, const float *key) {
    const float *q = (const float *)s->a.data + i * s->a.ld;
    double sum = 0, size = 0, bias = 0;
    for (size_t l = 0; l < s->k; l++) {
        sum += (double)q[l] * (double)key[l];
        size += fabs((double)q[l] * (double)key[l]);
    }
    if (s->bias.data) {
        bias = (double)((const float *)s->bias.data)[i * s->bias.ld + j];
    }
    const double alpha = (double)s->alpha, got = (double)((const float *)s->c.data)[i * s->c.ld + j];
    const double most = (alpha * size + fabs(bias)) * ((double)s->k + 4) * ULP + (double)s->k * 0x1p-149;
    EXPECT(fabs(got - (sum * alpha + bias)) <= most, "%s: [%zu, %zu] of [%zu, %zu], k = %zu",
           instructions_name(s->instructions), i, j, s->m, s->n, s->k);
}

static void most_check(const struct pe_scores *s) {
    for (size_t i = 0; i < s->m; i++) {
        const float *row = (const float *)s->c.data + i * s->c.ld, *most = s->most + i * PE_SCORES_COLUMNS;
        float of_row = -INFINITY, of_most = -INFINITY;
        for (size_t j = 0; j < s->n; j++) {
            of_row = fmaxf(of_row, row[j]);
        }
        for (size_t j = 0; j < PE_SCORES_COLUMNS; j++) {
            of_most = fmaxf(of_most, most[j]);
        }
        EXPECT(of_row == of_most, "%s: row %zu of [%zu, %zu]", instructions_name(s->instructions), i, s->m,
               s->n);
    }
}

static void rows_copy(const struct pe_scores *s, float *out) {
    for (size_t i = 0; i < s->m; i++) {
        memcpy(out + i * s->n, (const float *)s->c.data + i * s->c.ld, s->n * sizeof *out);
    }
}

/* The sets that have fused operations have the same bits. */
static void fused_check(const struct pe_scores *s) {
    if (s->instructions == PE_INSTRUCTIONS_AVX2) {
        rows_copy(s, memory.want);
    }
    for (size_t i = 0; s->instructions > PE_INSTRUCTIONS_AVX2 && i < s->m; i++) {
        EXPECT(memcmp(memory.want + i * s->n, (const float *)s->c.data + i * s->c.ld, s->n * sizeof(float)) ==
                   0,
               "%s: row %zu of [%zu, %zu], k = %zu", instructions_name(s->instructions), i, s->m, s->n, s->k);
    }
}

static void product_check(size_t m, size_t n, size_t k, uint64_t *state) {
    const bool last = random_next(state) % 2;
    struct pe_scores s = scores_make(m, n, k, last, state);
    const size_t ld = s.a.ld; /* the keys' as well */
    const float *keys = fence_side(&memory.keys, ((n - 1) * ld + k) * sizeof *keys, last);
    for (enum pe_instructions set = 0; set <= pe_instructions(); set++) {
        scores_run(&s, set);
        for (size_t i = 0; i < m; i++) {
            for (size_t j = 0; j < n; j++) {
                element_check(&s, i, j, keys + j * ld);
            }
        }
        most_check(&s);
        fused_check(&s);
    }
}

START_TEST(products_of_every_size) {
    static const size_t widths[] = {1, 2, 3, 7, 64, D_MOST}, keys[] = {1, 2, 3, 17, 63, 64, 65, N_MOST},
                        queries[] = {1, 2, 3, 7, 8, 9, M_MOST};
    uint64_t state = (uint64_t)_i;
    memory_make();
    for (size_t n = 0; n < COUNT(keys); n++) {
        for (size_t m = 0; m < COUNT(queries); m++) {
            product_check(queries[m], keys[n], widths[_i], &state);
        }
    }
    memory_drop();
}
END_TEST

/* A number depends on its query and its key alone: each row by itself has the same bits, and so has each key. */
START_TEST(products_are_the_same_anywhere) {
    enum { M = 13, N = 70, K = 17 };
    uint64_t state = 5;
    memory_make();
    struct pe_scores s = scores_make(M, N, K, false, &state);
    const float *keys = fence_side(&memory.keys, 1, false);
    const size_t ld = s.a.ld;
    s.bias.data = NULL;
    for (enum pe_instructions set = 0; set <= pe_instructions(); set++) {
        float alone[K * PE_SCORES_COLUMNS], one;
        scores_run(&s, set);
        rows_copy(&s, memory.want);
        for (size_t i = 0; i < M * N; i++) {
            pe_scores_pack((struct pe_const_matrix){keys + i % N * ld, ld}, 1, K, alone);
            struct pe_scores single = s;
            single.m = single.n = 1;
            single.a.data = (const float *)s.a.data + i / N * ld;
            single.packed = alone;
            single.c = (struct pe_matrix){&one, 1};
            single.most = NULL;
            pe_scores_run(&single);
            EXPECT(memcmp(&one, memory.want + i, sizeof one) == 0, "%s: number %zu", instructions_name(set),
                   i);
        }
    }
    memory_drop();
}
END_TEST

/* ---- Attention ----------------------------------------------------------------------------------------- */

static struct pe_arena *arena;
static struct pe_error err;

static void setup(void) {
    memset(&err, 0, sizeof err);
    arena = pe_arena_open((size_t)256 << 20, NULL, &err);
    pe_linalg_init();
}

static void teardown(void) {
    instructions_limit(PE_INSTRUCTIONS_COUNT - 1);
    pe_arena_close(arena);
}

static struct pe_tensor *tensor(size_t a, size_t b, size_t c, uint64_t *state) {
    struct pe_tensor *t = pe_arena_array(arena, 1, sizeof *t, &err);
    ck_assert_int_eq(pe_tensor_alloc(arena, t, PE_DTYPE_F32, 3, (const size_t[]){a, b, c}, &err), PE_OK);
    for (size_t i = 0; i < pe_tensor_count(t); i++) {
        ((float *)t->data)[i] = 2 * number(state);
    }
    return t;
}

static const float *weights_of(const struct pe_attention_args *args, struct pe_work *work) {
    struct pe_attention_result result;
    ck_assert_msg(pe_attention_open(arena, work, &result, args, &err) == PE_OK, "%s: %s", err.path, err.text);
    return result.weights.data;
}

/* Logits of two instruction sets are within twice the bound of element_check of each other: q.k/sqrt(d) is at most
 * 4*sqrt(d) here, a bias at most 2, so they are off by x = 2*(4*sqrt(d) + 2)*(d + 4)*ULP. A weight exp(s)/sum then
 * changes by a factor within exp(+-2x), below 1 + 3x; softmax itself is within 5e-7 on each side (check_softmax). */
static void sets_compare(const float *plain, const float *other, size_t n, size_t width) {
    const double d = (double)width, x = 2 * (4 * sqrt(d) + 2) * (d + 4) * ULP;
    for (size_t i = 0; i < n; i++) {
        EXPECT((plain[i] == 0) == (other[i] == 0), "number %zu", i);
        EXPECT(fabs((double)plain[i] - (double)other[i]) <= (double)plain[i] * (3 * x + 1e-6), "number %zu",
               i);
    }
}

static void rows_check(const float *weights, size_t rows, size_t keys) {
    for (size_t i = 0; i < rows; i++) {
        double sum = 0;
        for (size_t j = 0; j < keys; j++) {
            const float w = weights[i * keys + j];
            EXPECT(w >= 0 && w <= 1, "row %zu", i);
            EXPECT(j <= i % keys || w == 0, "row %zu sees key %zu", i, j);
            sum += (double)w;
        }
        EXPECT(fabs(sum - 1) < 1e-6, "row %zu", i);
    }
}

START_TEST(attention_of_every_size) {
    static const size_t widths[] = {1, 2, 3, 7, 64, 65}, tokens[] = {8, 17, 63, 64, 65, 200};
    const struct pe_attention_mask causal = {.size = sizeof causal, .causal = true};
    uint64_t state = 9;
    for (size_t i = 0; i < COUNT(tokens); i++) {
        const size_t t = tokens[i], d = widths[_i], n = 2 * t * t;
        const struct pe_attention_args args = {.size = sizeof args,
                                               .q = tensor(2, t, d, &state),
                                               .k = tensor(2, t, d, &state),
                                               .bias = i % 2 ? tensor(2, t, t, &state) : NULL,
                                               .mask = &causal};
        const float *plain = NULL;
        for (enum pe_instructions set = 0; set < PE_INSTRUCTIONS_COUNT; set++) {
            struct pe_work work;
            instructions_limit(set);
            const float *weights = weights_of(&args, &work);
            ck_assert(pe_work_run(&work));
            rows_check(weights, 2 * t, t);
            plain = plain ? plain : weights;
            sets_compare(plain, weights, n, d);
        }
    }
}
END_TEST

/* More weights than caches keep, and rows that begin anywhere in a line, against some of the queries alone. */
START_TEST(large_results_are_the_same_as_small_ones) {
    enum { H = 2, T = 1030, KEYS = 1027, D = 24, FEW = 21, FIRST = 500 };
    uint64_t state = 11;
    struct pe_tensor *q = tensor(H, T, D, &state), *k = tensor(H, KEYS, D, &state),
                     *bias = tensor(H, T, KEYS, &state);
    ((float *)bias->data)[FIRST * KEYS + 3] = -INFINITY;
    struct pe_attention_args args = {.size = sizeof args, .q = q, .k = k, .bias = bias};
    struct pe_work work;
    const float *all = weights_of(&args, &work);
    ck_assert(pe_work_run(&work));
    for (size_t h = 0; h < H; h++) {
        const struct pe_tensor some_q = {
            (float *)q->data + (h * T + FIRST) * D, PE_DTYPE_F32, 3, {1, FEW, D}};
        const struct pe_tensor one_k = {(float *)k->data + h * KEYS * D, PE_DTYPE_F32, 3, {1, KEYS, D}};
        const struct pe_tensor some_bias = {
            (float *)bias->data + (h * T + FIRST) * KEYS, PE_DTYPE_F32, 3, {1, FEW, KEYS}};
        args = (struct pe_attention_args){.size = sizeof args, .q = &some_q, .k = &one_k, .bias = &some_bias};
        const float *few = weights_of(&args, &work);
        ck_assert(pe_work_run(&work));
        ck_assert_mem_eq(few, all + (h * T + FIRST) * KEYS, FEW * KEYS * sizeof *few);
        ck_assert(h > 0 || few[3] == 0);
    }
}
END_TEST

/* Parts in any order, on as many threads: lanes keep packed keys of other heads meanwhile. */
struct share {
    const struct pe_work *work;
    size_t first, step;
};

static void *share_run(void *context) {
    const struct share *share = context;
    for (size_t i = share->first; i < share->work->n_parts; i += share->step) {
        share->work->run(share->work->state, i);
    }
    return NULL;
}

START_TEST(threads_change_no_bit) {
    enum { H = 5, T = 600, D = 16, THREADS = 3 };
    uint64_t state = 13;
    const struct pe_attention_args args = {.size = sizeof args,
                                           .q = tensor(H, T, D, &state),
                                           .k = tensor(H, T, D, &state),
                                           .bias = tensor(H, T, T, &state)};
    struct pe_work one, several;
    const float *want = weights_of(&args, &one), *got = weights_of(&args, &several);
    ck_assert(pe_work_run(&one));
    ck_assert_uint_gt(several.n_parts, H);
    pthread_t threads[THREADS];
    struct share shares[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        shares[i] = (struct share){&several, i, THREADS};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, share_run, &shares[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    ck_assert_mem_eq(want, got, H * T * T * sizeof *want);
}
END_TEST

/* A caller may change its keys and run the work again. */
START_TEST(keys_of_the_next_run_are_seen) {
    enum { T = 40, D = 16 };
    uint64_t state = 19;
    struct pe_tensor *k = tensor(1, T, D, &state);
    const struct pe_attention_args args = {.size = sizeof args, .q = tensor(1, T, D, &state), .k = k};
    struct pe_work work, fresh;
    const float *got = weights_of(&args, &work);
    ck_assert(pe_work_run(&work));
    ((float *)k->data)[3] += 1;
    ck_assert(pe_work_run(&work));
    const float *want = weights_of(&args, &fresh);
    ck_assert(pe_work_run(&fresh));
    ck_assert_mem_eq(got, want, T * T * sizeof *want);
}
END_TEST

/* Keys with and without their positions are packed by turns. Without: logits of the embeddings alone, of which the
 * logits with positions are another product. */
START_TEST(content_is_of_the_embeddings_alone) {
    enum { T = 40, D = 16 };
    uint64_t state = 23;
    struct pe_tensor x = *tensor(1, T, D, &state);
    struct pe_spec spec;
    struct pe_plan *plan = NULL;
    struct pe_attention_result with, without;
    struct pe_work work;
    x.rank = 2;
    x.dim[0] = T;
    x.dim[1] = D;
    ck_assert_int_eq(pe_spec_init(arena, &spec, "sinusoidal", &err) ||
                         pe_spec_set(arena, &spec, "d_model", "16", &err) || pe_plan_open(&plan, &spec, &err),
                     0);
    struct pe_attention_args args = {
        .size = sizeof args, .embeddings = &x, .outputs = PE_ATTENTION_LOGITS, .plan = NULL};
    ck_assert_int_eq(pe_attention_open(arena, &work, &without, &args, &err), PE_OK);
    ck_assert(pe_work_run(&work));
    args.plan = plan;
    args.outputs |= PE_ATTENTION_CONTENT;
    ck_assert_int_eq(pe_attention_open(arena, &work, &with, &args, &err), PE_OK);
    ck_assert(pe_work_run(&work));
    ck_assert_mem_eq(with.content.data, without.logits.data, T * T * sizeof(float));
    ck_assert_mem_ne(with.logits.data, without.logits.data, T * T * sizeof(float));
    pe_plan_close(plan);
}
END_TEST

/* More keys than a lane keeps packed: they come in pieces, which change no bit. */
START_TEST(keys_in_pieces) {
    enum { T = 9, KEYS = 700, D = 1000, FEW = 200 };
    uint64_t state = 17;
    struct pe_tensor *q = tensor(1, T, D, &state), *k = tensor(1, KEYS, D, &state);
    struct pe_attention_args args = {.size = sizeof args, .q = q, .k = k, .outputs = PE_ATTENTION_LOGITS};
    struct pe_attention_result all, few;
    struct pe_work work;
    ck_assert_int_eq(pe_attention_open(arena, &work, &all, &args, &err), PE_OK);
    ck_assert(pe_work_run(&work));
    for (size_t first = 0; first < KEYS; first += 100) {
        const size_t n = KEYS - first < FEW ? KEYS - first : FEW;
        const struct pe_tensor some = {(float *)k->data + first * D, PE_DTYPE_F32, 3, {1, n, D}};
        args.k = &some;
        ck_assert_int_eq(pe_attention_open(arena, &work, &few, &args, &err), PE_OK);
        ck_assert(pe_work_run(&work));
        for (size_t i = 0; i < T; i++) {
            ck_assert_mem_eq((float *)few.logits.data + i * n, (float *)all.logits.data + i * KEYS + first,
                             n * sizeof(float));
        }
    }
}
END_TEST

Suite *attention_kernels_suite(void) {
    Suite *suite = suite_create("attention_kernels");
    TCase *products = tcase_create("products"), *whole = tcase_create("attention");
    tcase_set_timeout(products, 60);
    tcase_set_timeout(whole, 60);
    tcase_add_loop_test(products, products_of_every_size, 0, 6);
    tcase_add_test(products, products_are_the_same_anywhere);
    tcase_add_checked_fixture(whole, setup, teardown);
    tcase_add_loop_test(whole, attention_of_every_size, 0, 6);
    tcase_add_test(whole, large_results_are_the_same_as_small_ones);
    tcase_add_test(whole, threads_change_no_bit);
    tcase_add_test(whole, keys_in_pieces);
    tcase_add_test(whole, keys_of_the_next_run_are_seen);
    tcase_add_test(whole, content_is_of_the_embeddings_alone);
    suite_add_tcase(suite, products);
    suite_add_tcase(suite, whole);
    return suite;
}
