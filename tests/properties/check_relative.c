/* SPDX-License-Identifier: MIT
 *
 * What holds for every relative encoding in attention (relative_setups.c), and for its biases: the logits are
 * content and position, tokens may come one by one, padded, in batches, with shared keys or as some of the
 * heads, and the weights are those of the whole. An encoding that is added is tested by being added.
 */
#include "relative_setups.h"
#include "unit/suites.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { T = RELATIVE_T, H = RELATIVE_H, W = RELATIVE_W, N = H * T * W };

#define ALL                                                                                                  \
    (PE_ATTENTION_WEIGHTS | PE_ATTENTION_LOGITS | PE_ATTENTION_CONTENT | PE_ATTENTION_POSITION |             \
     PE_ATTENTION_OUTPUT)

static struct pe_arena *arena;
static struct pe_plan *plan;
static const struct pe_encoding *row;
static char name[200];

static void setup_open(int i) {
    struct pe_error err = {0};
    arena = pe_arena_open((size_t)1 << 26, NULL, &err);
    relative_setup_text(relative_setup_at(i), name, sizeof name);
    ck_assert_int_eq(relative_setup_open(arena, relative_setup_at(i), &plan, &err), PE_OK);
    row = pe_encoding_row(relative_setup_at(i)->info);
}

static void teardown(void) {
    pe_plan_close(plan);
    pe_arena_close(arena);
    plan = NULL;
    arena = NULL;
}

static double *doubles(size_t n) {
    struct pe_error err = {0};
    double *out = pe_arena_array(arena, n, sizeof *out, &err);
    ck_assert_ptr_nonnull(out);
    return out;
}

/* Numbers without structure, between -2 and 2. */
static const double *numbers(size_t n, unsigned seed) {
    double *out = doubles(n);
    for (size_t i = 0; i < n; i++) {
        out[i] = (double)((i * 7919 + seed * 104729 + i * i * 31) % 257) / 64 - 2;
    }
    return out;
}

static struct pe_tensor tensor(const double *data, int rank, const size_t *dim) {
    struct pe_tensor out = {.data = (void *)(uintptr_t)data, .dtype = PE_DTYPE_F64, .rank = rank};
    memcpy(out.dim, dim, (size_t)rank * sizeof *dim);
    return out;
}

/* [heads, t, W] */
static struct pe_tensor heads_of(const double *data, size_t heads, size_t t) {
    return tensor(data, 3, (const size_t[]){heads, t, W});
}

/* Positions first, first + step ... as a list, or as a rule. */
static struct pe_positions places(double first, double step, size_t n, bool list) {
    struct pe_positions at = {.length = n, .axes = 1, .start = first, .step = step};
    if (list) {
        double *values = doubles(n);
        for (size_t i = 0; i < n; i++) {
            values[i] = first + (double)i * step;
        }
        at = (struct pe_positions){.length = n, .axes = 1, .list = values};
    }
    return at;
}

static struct pe_attention_result attend(const struct pe_attention_args *args) {
    struct pe_error err = {0};
    struct pe_work work;
    struct pe_attention_result out;
    struct pe_attention_args mine = *args;
    mine.size = sizeof mine;
    mine.plan = plan;
    ck_assert_msg(pe_attention_open(arena, &work, &out, &mine, &err) == PE_OK, "%s: %s: %s", name, err.path,
                  err.text);
    ck_assert(pe_work_run(&work));
    return out;
}

static const double *weights(const struct pe_attention_args *args) {
    return attend(args).weights.data;
}

static void expect_near(const char *what, const double *got, const double *wanted, size_t n) {
    for (size_t i = 0; i < n; i++) {
        ck_assert_msg(fabs(got[i] - wanted[i]) <= 1e-12, "%s: %s: number %zu is %.17g, not %.17g", name, what,
                      i, got[i], wanted[i]);
    }
}

static void expect_bits(const char *what, const void *got, const void *wanted, size_t n) {
    ck_assert_msg(memcmp(got, wanted, n * sizeof(double)) == 0, "%s: %s: not the same bits", name, what);
}

static const struct pe_attention_mask causal = {.size = sizeof causal, .causal = true};

static double softmaxed(const double *logits, size_t n, size_t at) {
    double top = -INFINITY, sum = 0;
    for (size_t j = 0; j < n; j++) {
        top = fmax(top, logits[j]);
    }
    for (size_t j = 0; j < n; j++) {
        sum += exp(logits[j] - top);
    }
    return exp(logits[at] - top) / sum;
}

/* ---- What is in a reply -------------------------------------------------------------------------------- */

static void content_and_position_are_the_logits(int which) {
    setup_open(which / 2);
    enum pe_dtype dtype = which % 2 ? PE_DTYPE_F64 : PE_DTYPE_F32;
    double eps = which % 2 ? DBL_EPSILON : FLT_EPSILON;
    struct pe_tensor x[3], as[3], parts[4];
    struct pe_error err = {0};
    for (unsigned i = 0; i < 3; i++) {
        x[i] = heads_of(numbers(N, i), H, T);
        ck_assert_int_eq(pe_tensor_alloc(arena, &as[i], dtype, 3, x[i].dim, &err), PE_OK);
        pe_dtype_store(dtype, x[i].data, N, as[i].data);
    }
    struct pe_attention_result got =
        attend(&(struct pe_attention_args){.q = &as[0], .k = &as[1], .v = &as[2], .outputs = ALL});
    const struct pe_tensor *of[] = {&got.weights, &got.logits, &got.content, &got.position};
    for (size_t i = 0; i < 4; i++) {
        ck_assert(of[i]->dtype == dtype);
        parts[i] = tensor(doubles(H * T * T), 3, of[i]->dim);
        ck_assert_int_eq(pe_tensor_load(of[i], parts[i].data, &err), PE_OK);
    }
    const double *w = parts[0].data, *logits = parts[1].data, *content = parts[2].data,
                 *position = parts[3].data;
    double moved = 0;
    for (size_t i = 0; i < H * T * T; i++) {
        double size = 1 + fabs(content[i]) + fabs(position[i]);
        ck_assert_msg(fabs(content[i] + position[i] - logits[i]) <= eps * size, "%s: logit %zu", name, i);
        ck_assert_msg(fabs(w[i] - softmaxed(logits + i / T * T, T, i % T)) <= 8 * eps * size,
                      "%s: weight %zu is %g", name, i, w[i]);
        moved = fmax(moved, fabs(position[i]));
    }
    ck_assert_msg(moved > 0, "%s adds nothing", name);
}

static void rows_sum_to_one_and_blind_ones_are_zero(int which) {
    enum { BLIND = 3 };
    setup_open(which);
    double *seen = doubles(T * T);
    for (size_t i = 0; i < T * T; i++) {
        seen[i] = i / T != BLIND && (i * 5) % 7 != 0;
    }
    struct pe_tensor q = heads_of(numbers(N, 1), H, T), k = heads_of(numbers(N, 2), H, T),
                     keep = tensor(seen, 2, (const size_t[]){T, T});
    struct pe_attention_mask mask = {.size = sizeof mask, .keep = &keep};
    struct pe_attention_result got = attend(&(struct pe_attention_args){
        .q = &q, .k = &k, .v = &k, .mask = &mask, .outputs = PE_ATTENTION_WEIGHTS | PE_ATTENTION_OUTPUT});
    const double *w = got.weights.data, *output = got.output.data;
    for (size_t r = 0; r < H * T; r++) {
        double sum = 0;
        for (size_t j = 0; j < T; j++) {
            sum += w[r * T + j];
            ck_assert_msg(seen[r % T * T + j] != 0 || w[r * T + j] == 0, "%s: hidden key %zu", name, j);
        }
        ck_assert_msg(fabs(sum - (r % T != BLIND)) <= 1e-14, "%s: row %zu sums to %.17g", name, r, sum);
        for (size_t c = 0; r % T == BLIND && c < W; c++) {
            ck_assert(output[r * W + c] == 0);
        }
    }
}

static void weights_do_not_depend_on_what_is_returned(int which) {
    static const unsigned asked[] = {PE_ATTENTION_WEIGHTS, PE_ATTENTION_WEIGHTS | PE_ATTENTION_POSITION,
                                     PE_ATTENTION_WEIGHTS | PE_ATTENTION_OUTPUT | PE_ATTENTION_CONTENT};
    setup_open(which);
    struct pe_tensor q = heads_of(numbers(N, 1), H, T), k = heads_of(numbers(N, 2), H, T);
    struct pe_attention_args args = {.q = &q, .k = &k, .v = &k, .mask = &causal, .outputs = ALL};
    const double *all = weights(&args);
    for (size_t i = 0; i < PE_COUNT(asked); i++) {
        args.outputs = asked[i];
        expect_bits("weights", weights(&args), all, H * T * T);
    }
}

static void single_precision_is_near_double(int which) {
    setup_open(which);
    struct pe_error err = {0};
    struct pe_tensor q = heads_of(numbers(N, 1), H, T), k = heads_of(numbers(N, 2), H, T), q32, k32;
    ck_assert_int_eq(pe_tensor_alloc(arena, &q32, PE_DTYPE_F32, 3, q.dim, &err), PE_OK);
    ck_assert_int_eq(pe_tensor_alloc(arena, &k32, PE_DTYPE_F32, 3, k.dim, &err), PE_OK);
    pe_dtype_store(PE_DTYPE_F32, q.data, N, q32.data); /* exact: eighths */
    pe_dtype_store(PE_DTYPE_F32, k.data, N, k32.data);
    unsigned asked = PE_ATTENTION_WEIGHTS | PE_ATTENTION_LOGITS;
    struct pe_attention_result wide = attend(&(struct pe_attention_args){.q = &q, .k = &k, .outputs = asked});
    struct pe_attention_result got =
        attend(&(struct pe_attention_args){.q = &q32, .k = &k32, .outputs = asked});
    const double *w = wide.weights.data, *logits = wide.logits.data;
    const float *w32 = got.weights.data, *logits32 = got.logits.data;
    double size = 1;
    for (size_t i = 0; i < H * T * T; i++) {
        size = fmax(size, fabs(logits[i]));
    }
    for (size_t i = 0; i < H * T * T; i++) {
        ck_assert_msg(fabs((double)logits32[i] - logits[i]) <= 16 * FLT_EPSILON * size,
                      "%s: logit %zu: %g, %g", name, i, (double)logits32[i], logits[i]);
        ck_assert_msg(fabs((double)w32[i] - w[i]) <= 16 * FLT_EPSILON * size, "%s: weight %zu: %g, %g", name,
                      i, (double)w32[i], w[i]);
    }
}

/* `bias` is what attention adds. */
static void bias_is_the_position(int which) {
    setup_open(which);
    struct pe_error err = {0};
    struct pe_work work;
    struct pe_tensor bias, q = heads_of(numbers(N, 1), H, T), k = heads_of(numbers(N, 2), H, T);
    struct pe_positions at = places(0, 1, T, which % 2 == 1);
    struct pe_bias_args args = {.size = sizeof args,
                                .plan = plan,
                                .heads = H,
                                .query_positions = &at,
                                .key_positions = &at,
                                .dtype = PE_DTYPE_F64};
    int code = pe_bias_open(arena, &work, &bias, &args, &err);
    if (!row->bias) {
        ck_assert_int_eq(code, PE_ERR_UNSUPPORTED);
        return;
    }
    ck_assert_msg(code == PE_OK && pe_work_run(&work), "%s: %s: %s", name, err.path, err.text);
    struct pe_attention_result got =
        attend(&(struct pe_attention_args){.q = &q, .k = &k, .outputs = PE_ATTENTION_POSITION});
    expect_bits("bias", bias.data, got.position.data, H * T * T);
    args.query_positions = args.key_positions = NULL; /* then they are those it is made for, if any */
    struct pe_error again = {0};
    ck_assert_int_eq(pe_bias_open(arena, &work, &bias, &args, &again),
                     row->tokens && row->tokens(pe_plan_view(plan), false) ? PE_OK : PE_ERR_MISSING);
}

/* What adds to the logits says how much at most, or its results are not checked against overflow. */
static double reach_of(const struct pe_encoding *of, const struct pe_relation *relation) {
    ck_assert_msg(of->reach, "%s: with the hooks bias and term goes the hook reach", name);
    return of->reach(pe_plan_view(plan), relation);
}

/* The checks against overflow stand on it. */
static void no_term_is_beyond_its_reach(int which) {
    setup_open(which);
    const double *x = numbers(N, 7), *y = numbers(N, 8);
    struct pe_tensor q = heads_of(x, H, T), k = heads_of(y, H, T);
    struct pe_positions at = places(0, 1, T, true);
    struct pe_attention_result got =
        attend(&(struct pe_attention_args){.q = &q, .k = &k, .outputs = PE_ATTENTION_POSITION});
    double usual = 1 / sqrt(W), largest = 0;
    struct pe_relation relation = {.heads = H,
                                   .width = W,
                                   .queries = T,
                                   .keys = T,
                                   .distance = T - 1,
                                   .furthest_key = fmax(fabs(at.list[0]), fabs(at.list[T - 1])),
                                   .query_positions = at.list,
                                   .key_positions = at.list,
                                   .n_query_positions = T,
                                   .n_key_positions = T,
                                   .scale = row->scale ? row->scale(pe_plan_view(plan), usual) : usual};
    for (size_t i = 0; i < N; i++) {
        relation.largest_query = fmax(relation.largest_query, fabs(x[i]));
        relation.largest_key = fmax(relation.largest_key, fabs(y[i]));
    }
    for (size_t i = 0; i < H * T * T; i++) {
        largest = fmax(largest, fabs(((const double *)got.position.data)[i]));
    }
    double reach = reach_of(row, &relation);
    ck_assert_msg(largest <= reach * (1 + 1e-12), "%s: %.17g is beyond %.17g", name, largest, reach);
}

/* Biases far away, near each other and at negative positions. */
static void no_bias_is_beyond_its_reach(int which) {
    static const double spots[] = {-9007199254740000, -1000001, -700, -5, 0, 1, 3, 513, 100003, 1e15};
    setup_open(which);
    enum { S = PE_COUNT(spots) };
    for (size_t i = 0; row->bias && i < S * S; i++) {
        struct pe_error err = {0};
        struct pe_work work;
        struct pe_tensor bias;
        const double *query = spots + i / S, *key = spots + i % S;
        struct pe_positions of_q = {.length = 1, .axes = 1, .list = query},
                            of_k = {.length = 1, .axes = 1, .list = key};
        struct pe_bias_args args = {.size = sizeof args,
                                    .plan = plan,
                                    .heads = H,
                                    .dtype = PE_DTYPE_F64,
                                    .query_positions = &of_q,
                                    .key_positions = &of_k};
        struct pe_relation relation = {.heads = H,
                                       .queries = 1,
                                       .keys = 1,
                                       .distance = fabs(*key - *query),
                                       .furthest_key = fabs(*key),
                                       .query_positions = query,
                                       .key_positions = key,
                                       .n_query_positions = 1,
                                       .n_key_positions = 1};
        if (pe_bias_open(arena, &work, &bias, &args, &err) != PE_OK) {
            ck_assert_msg(err.code == PE_ERR_RANGE, "%s: %s: %s", name, err.path, err.text);
            continue;
        }
        ck_assert(pe_work_run(&work));
        double reach = reach_of(row, &relation);
        for (size_t h = 0; h < H; h++) {
            double b = ((const double *)bias.data)[h];
            ck_assert_msg(fabs(b) <= reach * (1 + 1e-12), "%s: %.17g at %.17g, %.17g is beyond %.17g", name,
                          b, *query, *key, reach);
        }
    }
}

/* ---- Where tokens are ---------------------------------------------------------------------------------- */

/* A query alone, aligned to the right, is the last row of all queries; and where it stands may be said, too.
 */
static void cached_decoding_is_the_last_row(int which) {
    setup_open(which);
    const double *x = numbers(T * W, 1), *y = numbers(T * W, 2);
    static const double one_head[1] = {2};
    struct pe_tensor q = heads_of(x, 1, T), k = heads_of(y, 1, T), last = heads_of(x + (T - 1) * W, 1, 1),
                     head = tensor(one_head, 1, (const size_t[]){1});
    struct pe_attention_args args = {.q = &q, .k = &k, .mask = &causal, .heads = H, .head_index = &head};
    const double *all = weights(&args);
    args.q = &last;
    const double *one = weights(&args);
    expect_near("the last query", one, all + (T - 1) * T, T);
    struct pe_positions at = places(T - 1, 1, 1, false), of_k = places(0, 1, T, true);
    args.query_positions = &at;
    args.key_positions = &of_k;
    expect_near("at its position", weights(&args), one, T);
}

static void a_list_of_positions_is_the_range(int which) {
    setup_open(which);
    struct pe_tensor q = heads_of(numbers(N, 1), H, T), k = heads_of(numbers(N, 2), H, T);
    struct pe_positions list = places(0, 1, T, true), range = places(0, 1, T, false);
    struct pe_attention_args args = {.q = &q, .k = &k};
    const double *wanted = weights(&args);
    args.query_positions = args.key_positions = &range;
    expect_bits("a range", weights(&args), wanted, H * T * T);
    args.key_positions = &list;
    expect_bits("a list of keys", weights(&args), wanted, H * T * T);
    args.query_positions = &list;
    expect_bits("lists", weights(&args), wanted, H * T * T);
}

/* Two of padding on the left, positions counted from the first token: the tokens' weights are as without. */
static void left_padding_changes_nothing(int which) {
    enum { PAD = 2, REAL = T - PAD };
    static const double seen[T] = {0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    setup_open(which);
    const double *x = numbers(N, 5), *y = numbers(N, 6);
    double *x_alone = doubles(H * REAL * W), *y_alone = doubles(H * REAL * W), *at_values = doubles(T);
    for (size_t h = 0; h < H; h++) {
        memcpy(x_alone + h * REAL * W, x + (h * T + PAD) * W, REAL * W * sizeof *x);
        memcpy(y_alone + h * REAL * W, y + (h * T + PAD) * W, REAL * W * sizeof *y);
    }
    for (size_t i = 0; i < T; i++) {
        at_values[i] = i < PAD ? 1 : (double)(i - PAD); /* as generate() fills padding */
    }
    struct pe_tensor q = heads_of(x, H, T), k = heads_of(y, H, T), q_alone = heads_of(x_alone, H, REAL),
                     k_alone = heads_of(y_alone, H, REAL), keep = tensor(seen, 1, (const size_t[]){T});
    struct pe_positions at = {.length = T, .axes = 1, .list = at_values},
                        of_alone = places(0, 1, REAL, false);
    struct pe_attention_mask mask = {.size = sizeof mask, .causal = true, .keep = &keep};
    const double *padded = weights(&(struct pe_attention_args){
        .q = &q, .k = &k, .query_positions = &at, .key_positions = &at, .mask = &mask});
    const double *alone = weights(&(struct pe_attention_args){.q = &q_alone,
                                                              .k = &k_alone,
                                                              .query_positions = &of_alone,
                                                              .key_positions = &of_alone,
                                                              .mask = &causal});
    for (size_t r = 0; r < H * REAL; r++) {
        size_t of = r / REAL * T + PAD + r % REAL;
        expect_near("padded", padded + of * T + PAD, alone + r * REAL, REAL);
        ck_assert(padded[of * T] == 0 && padded[of * T + 1] == 0);
    }
}

/* The distance is all that matters, wherever the two are. */
static void stationary_ones_see_distances_alone(int which) {
    static const double firsts[] = {7, -5, 1048576, 4503599627370496};
    setup_open(which);
    if (!row->stationary || !row->stationary(pe_plan_view(plan))) {
        return;
    }
    struct pe_tensor q = heads_of(numbers(N, 1), H, T), k = heads_of(numbers(N, 2), H, T);
    const double *wanted = weights(&(struct pe_attention_args){.q = &q, .k = &k});
    for (size_t i = 0; i < 2 * PE_COUNT(firsts); i++) {
        struct pe_positions at = places(firsts[i / 2], 1, T, i % 2);
        struct pe_attention_args args = {.q = &q, .k = &k, .query_positions = &at, .key_positions = &at};
        expect_bits("moved", weights(&args), wanted, H * T * T);
    }
}

/* ---- Heads, batches, parts ----------------------------------------------------------------------------- */

/* Sequences of a batch are each computed alone, with positions of their own: here one forwards, one back. */
static void sequences_of_a_batch_are_alone(int which) {
    enum { B = 2 };
    setup_open(which);
    const double *x = numbers(B * N, 11), *y = numbers(B * N, 12);
    double *list = doubles(B * T);
    for (size_t i = 0; i < T; i++) {
        list[i] = (double)i;
        list[T + i] = (double)(T - 1 - i);
    }
    struct pe_positions at = {.batch = B, .length = T, .axes = 1, .list = list};
    struct pe_tensor q = tensor(x, 4, (const size_t[]){B, H, T, W}),
                     k = tensor(y, 4, (const size_t[]){B, H, T, W});
    const double *both =
        weights(&(struct pe_attention_args){.q = &q, .k = &k, .query_positions = &at, .key_positions = &at});
    for (size_t b = 0; b < B; b++) {
        struct pe_tensor q_alone = heads_of(x + b * N, H, T), k_alone = heads_of(y + b * N, H, T);
        struct pe_positions its = {.length = T, .axes = 1, .list = list + b * T};
        expect_near("of a batch", both + b * H * T * T,
                    weights(&(struct pe_attention_args){
                        .q = &q_alone, .k = &k_alone, .query_positions = &its, .key_positions = &its}),
                    H * T * T);
    }
}

/* Some heads, in any order and more than once, are those of the whole; of biases, too. */
static void head_index_is_of_the_whole(int which) {
    static const double index[] = {5, 2, 2, 0};
    enum { SOME = PE_COUNT(index) };
    setup_open(which);
    const double *x = numbers(N, 1), *y = numbers(N, 2);
    double *x_some = doubles(SOME * T * W), *y_some = doubles(SOME * T * W);
    for (size_t i = 0; i < SOME; i++) {
        memcpy(x_some + i * T * W, x + (size_t)index[i] * T * W, T * W * sizeof *x);
        memcpy(y_some + i * T * W, y + (size_t)index[i] * T * W, T * W * sizeof *y);
    }
    struct pe_tensor q = heads_of(x, H, T), k = heads_of(y, H, T), q_some = heads_of(x_some, SOME, T),
                     k_some = heads_of(y_some, SOME, T), list = tensor(index, 1, (const size_t[]){SOME});
    const double *all = weights(&(struct pe_attention_args){.q = &q, .k = &k});
    const double *some =
        weights(&(struct pe_attention_args){.q = &q_some, .k = &k_some, .heads = H, .head_index = &list});
    for (size_t i = 0; i < SOME; i++) {
        expect_near("a head", some + i * T * T, all + (size_t)index[i] * T * T, T * T);
    }
}

/* Two key heads for six query heads are these keys written out three times each. */
static void grouped_key_heads_are_repeated_ones(int which) {
    enum { KEY_HEADS = 2 };
    setup_open(which);
    const double *x = numbers(N, 9), *y = numbers(KEY_HEADS * T * W, 10);
    double *repeated = doubles(N);
    for (size_t h = 0; h < H; h++) {
        memcpy(repeated + h * T * W, y + h / (H / KEY_HEADS) * T * W, T * W * sizeof *y);
    }
    struct pe_tensor q = heads_of(x, H, T), k = heads_of(y, KEY_HEADS, T), k_all = heads_of(repeated, H, T);
    struct pe_attention_args args = {.q = &q, .k = &k, .v = &k, .outputs = ALL};
    struct pe_attention_result grouped = attend(&args);
    args.k = args.v = &k_all;
    struct pe_attention_result whole = attend(&args);
    expect_near("weights", grouped.weights.data, whole.weights.data, H * T * T);
    expect_near("output", grouped.output.data, whole.output.data, H * T * W);
}

/* Many parts, the last first, are each what one alone is. */
static void parts_are_independent(int which) {
    enum { B = 40 };
    setup_open(which);
    const double *x = numbers(N, 3), *y = numbers(N, 4);
    double *xs = doubles(B * N), *ys = doubles(B * N);
    for (size_t b = 0; b < B; b++) {
        memcpy(xs + b * N, x, N * sizeof *x);
        memcpy(ys + b * N, y, N * sizeof *y);
    }
    struct pe_tensor one_q = heads_of(x, H, T), one_k = heads_of(y, H, T),
                     q = tensor(xs, 4, (const size_t[]){B, H, T, W}), k = tensor(ys, 4, q.dim);
    struct pe_attention_result alone = attend(&(struct pe_attention_args){
                                   .q = &one_q, .k = &one_k, .v = &one_k, .outputs = ALL}),
                               many;
    struct pe_attention_args args = {
        .size = sizeof args, .plan = plan, .q = &q, .k = &k, .v = &k, .outputs = ALL};
    struct pe_error err = {0};
    struct pe_work work;
    ck_assert_int_eq(pe_attention_open(arena, &work, &many, &args, &err), PE_OK);
    ck_assert_uint_gt(work.n_parts, 1);
    for (size_t part = work.n_parts; part-- > 0;) {
        work.run(work.state, part);
    }
    for (size_t b = 0; b < B; b++) {
        expect_bits("weights", (double *)many.weights.data + b * H * T * T, alone.weights.data, H * T * T);
        expect_bits("output", (double *)many.output.data + b * N, alone.output.data, N);
    }
}

/* ---- All of them --------------------------------------------------------------------------------------- */

/* What is checked of each setup, and in how many ways. */
static const struct {
    void (*check)(int which);
    int ways;
} properties[] = {
    {content_and_position_are_the_logits, 2},
    {rows_sum_to_one_and_blind_ones_are_zero, 1},
    {weights_do_not_depend_on_what_is_returned, 1},
    {single_precision_is_near_double, 1},
    {bias_is_the_position, 1},
    {no_term_is_beyond_its_reach, 1},
    {no_bias_is_beyond_its_reach, 1},
    {cached_decoding_is_the_last_row, 1},
    {a_list_of_positions_is_the_range, 1},
    {left_padding_changes_nothing, 1},
    {stationary_ones_see_distances_alone, 1},
    {sequences_of_a_batch_are_alone, 1},
    {head_index_is_of_the_whole, 1},
    {grouped_key_heads_are_repeated_ones, 1},
    {parts_are_independent, 1},
};

enum { GROUPS = 5 }; /* of setups: a test for each setup and property would be a process for each */

START_TEST(every_setup) {
    size_t property = (size_t)_i / GROUPS;
    int n = relative_setups_make() * properties[property].ways;
    for (int i = _i % GROUPS; i < n; i += GROUPS) {
        properties[property].check(i);
        teardown();
    }
}
END_TEST

/* ---- The setups themselves ----------------------------------------------------------------------------- */

START_TEST(every_type_and_choice_is_set_up) {
    for (size_t e = 0; e < pe_encoding_count(); e++) {
        const struct pe_encoding_info *info = pe_encoding_at(e);
        const struct pe_encoding *of = pe_encoding_row(info);
        int found = 0;
        for (int i = 0; i < relative_setups_make(); i++) {
            found += relative_setup_at(i)->info == info;
        }
        ck_assert_msg((found > 0) == (of->bias || of->term),
                      "%s has %d setups: no shape in relative_setups.c fits its tables", info->type, found);
    }
}
END_TEST

Suite *relative_suite(void) {
    Suite *suite = suite_create("relative");
    TCase *each = tcase_create("every setup");
    suite_add_tcase(suite, each);
    tcase_add_checked_fixture(each, NULL, teardown);
    tcase_add_loop_test(each, every_setup, 0, GROUPS * (int)PE_COUNT(properties));
    tcase_add_test(each, every_type_and_choice_is_set_up);
    return suite;
}
