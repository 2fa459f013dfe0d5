/* SPDX-License-Identifier: MIT
 *
 * convert: what a permutation is, that scores do not change and stored vectors do, and that every bit of a
 * posted weight arrives.
 */
#include "suites.h"

#include "posenc.h"

#include <math.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct pe_arena *arena;
static struct pe_error err;
static struct pe_work work;
static struct pe_convert_result result;

static void setup(void) {
    memset(&err, 0, sizeof err);
    arena = pe_arena_open((size_t)64 << 20, NULL, &err);
}

static void teardown(void) {
    pe_arena_close(arena);
}

static void convert(const struct pe_convert_args *args) {
    ck_assert_msg(pe_convert_open(arena, &work, &result, args, &err) == 0, "%s: %s", err.path, err.text);
    ck_assert(pe_work_run(&work));
}

static double row_of(const struct pe_tensor *permutation, size_t i) {
    return ((const double *)permutation->data)[i];
}

/* ---- The permutation ----------------------------------------------------------------------------------- */

/* Per head the even rows, then the odd ones; beyond rotary_dim nothing moves. */
START_TEST(rows_of_every_head) {
    static const struct {
        enum pe_rotary_layout from, to;
        size_t head_dim, rotary_dim, heads, kv_heads, n, n_k;
        double rows[12];
    } all[] = {
        {PE_ROTARY_INTERLEAVED, PE_ROTARY_HALVES, 4, 0, 2, 1, 8, 4, {0, 2, 1, 3, 4, 6, 5, 7}},
        {PE_ROTARY_INTERLEAVED, PE_ROTARY_HALVES, 6, 0, 2, 0, 12, 12, {0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11}},
        {PE_ROTARY_HALVES, PE_ROTARY_INTERLEAVED, 6, 0, 2, 2, 12, 12, {0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11}},
        {PE_ROTARY_INTERLEAVED, PE_ROTARY_HALVES, 6, 4, 1, 0, 6, 6, {0, 2, 1, 3, 4, 5}},
        {PE_ROTARY_HALVES, PE_ROTARY_INTERLEAVED, 5, 4, 2, 0, 10, 10, {0, 2, 1, 3, 4, 5, 7, 6, 8, 9}},
        {PE_ROTARY_HALVES, PE_ROTARY_HALVES, 4, 0, 0, 0, 4, 4, {0, 1, 2, 3}},
    };
    convert(&(struct pe_convert_args){.size = sizeof(struct pe_convert_args),
                                      .from = all[_i].from,
                                      .to = all[_i].to,
                                      .head_dim = all[_i].head_dim,
                                      .rotary_dim = all[_i].rotary_dim,
                                      .heads = all[_i].heads,
                                      .kv_heads = all[_i].kv_heads});
    ck_assert_uint_eq(result.permutation.dim[0], all[_i].n);
    ck_assert_uint_eq(result.permutation_k.dim[0], all[_i].n_k);
    for (size_t i = 0; i < all[_i].n; i++) {
        ck_assert(row_of(&result.permutation, i) == all[_i].rows[i]);
    }
    for (size_t i = 0; i < all[_i].n_k; i++) {
        ck_assert(row_of(&result.permutation_k, i) == all[_i].rows[i]);
    }
    ck_assert_int_eq(result.tensor.rank, 0);
    ck_assert_uint_eq(work.n_parts, 0);
}
END_TEST

/* ---- Scores -------------------------------------------------------------------------------------------- */

enum { TOKENS = 5, IN = 7, HEADS = 4, KV_HEADS = 2, WIDTH = 10 };

static double wave(size_t i) {
    return sin(0.7 * (double)i + 0.3 * (double)(i % 11));
}

/* out [TOKENS, heads, WIDTH] = x.W^T, turned by rope in a layout. */
static struct pe_tensor project(const struct pe_tensor *w, const char *layout, const char *rotary_dim) {
    size_t n = w->dim[0];
    const double *rows = w->data;
    struct pe_tensor made, turned;
    struct pe_spec spec;
    struct pe_plan *plan;
    ck_assert(!pe_tensor_alloc(arena, &made, PE_DTYPE_F64, 3, (size_t[]){TOKENS, n / WIDTH, WIDTH}, &err));
    for (size_t t = 0; t < TOKENS; t++) {
        for (size_t r = 0; r < n; r++) {
            double sum = 0;
            for (size_t i = 0; i < IN; i++) {
                sum += wave(1000 + t * IN + i) * rows[r * IN + i];
            }
            ((double *)made.data)[t * n + r] = sum;
        }
    }
    ck_assert(
        !pe_spec_init(arena, &spec, "rope", &err) && !pe_spec_set(arena, &spec, "head_dim", "10", &err) &&
        !pe_spec_set(arena, &spec, "layout", layout, &err) &&
        !pe_spec_set(arena, &spec, "rotary_dim", rotary_dim, &err) && !pe_plan_open(&plan, &spec, &err));
    const struct pe_apply_args args = {.size = sizeof args, .plan = plan, .embeddings = &made, .axes = "thd"};
    ck_assert_msg(!pe_apply_open(arena, &work, &turned, &args, &err), "%s: %s", err.path, err.text);
    ck_assert(pe_work_run(&work));
    pe_plan_close(plan);
    return turned;
}

static double score(const struct pe_tensor *q, const struct pe_tensor *k, size_t i, size_t j, size_t head) {
    const double *a = (const double *)q->data + (i * HEADS + head) * WIDTH;
    const double *b = (const double *)k->data + (j * KV_HEADS + head / (HEADS / KV_HEADS)) * WIDTH;
    double sum = 0;
    for (size_t c = 0; c < WIDTH; c++) {
        sum += a[c] * b[c];
    }
    return sum;
}

START_TEST(scores_stay_and_vectors_do_not) {
    static const char *const rotary_dims[] = {"10", "6"};
    static const size_t widths[] = {10, 6};
    struct pe_tensor w[2], before[2], after[2];
    struct pe_convert_args args = {.size = sizeof args,
                                   .from = PE_ROTARY_INTERLEAVED,
                                   .to = PE_ROTARY_HALVES,
                                   .head_dim = WIDTH,
                                   .rotary_dim = widths[_i],
                                   .heads = HEADS,
                                   .kv_heads = KV_HEADS};
    for (size_t side = 0; side < 2; side++) {
        size_t rows = (side ? KV_HEADS : HEADS) * WIDTH;
        ck_assert(!pe_tensor_alloc(arena, &w[side], PE_DTYPE_F64, 2, (size_t[]){rows, IN}, &err));
        for (size_t i = 0; i < rows * IN; i++) {
            ((double *)w[side].data)[i] = wave(i * (3 + side));
        }
        args.tensor = &w[side];
        args.keys = side == 1;
        convert(&args);
        struct pe_tensor moved = result.tensor;
        before[side] = project(&w[side], "interleaved", rotary_dims[_i]);
        after[side] = project(&moved, "halves", rotary_dims[_i]);
        ck_assert(memcmp(before[side].data, after[side].data, rows * TOKENS * sizeof(double)) != 0);
    }
    for (size_t i = 0; i < (size_t)TOKENS * TOKENS * HEADS; i++) {
        size_t m = i / HEADS / TOKENS, n = i / HEADS % TOKENS, head = i % HEADS;
        double is = score(&after[0], &after[1], m, n, head), was = score(&before[0], &before[1], m, n, head);
        ck_assert_msg(fabs(is - was) < 1e-13, "%zu: %g, not %g", i, is, was);
    }
}
END_TEST

/* ---- Tensors ------------------------------------------------------------------------------------------- */

/* Element (row, column) holds its own number, in a type that has it exactly. */
static struct pe_tensor numbered(enum pe_dtype dtype, int rank, size_t first, size_t second) {
    struct pe_tensor tensor;
    ck_assert(!pe_tensor_alloc(arena, &tensor, dtype, rank, (size_t[]){first, second}, &err));
    for (size_t i = 0; i < pe_tensor_count(&tensor); i++) {
        double value = (double)(i % 256) * (i % 2 ? -1 : 1);
        pe_dtype_store(dtype, &value, 1, (char *)tensor.data + i * pe_dtype_size(dtype));
    }
    return tensor;
}

/* Every element of the result against its place before, by the permutation of the same call. */
static void check_moved(const struct pe_tensor *in, const struct pe_tensor *rows, size_t axis) {
    size_t inner = in->rank == 2 && axis == 0 ? in->dim[1] : 1, size = pe_dtype_size(in->dtype),
           n = rows->dim[0];
    ck_assert_int_eq(result.tensor.rank, in->rank);
    ck_assert_int_eq((int)result.tensor.dtype, (int)in->dtype);
    ck_assert_mem_eq(result.tensor.dim, in->dim, (size_t)in->rank * sizeof in->dim[0]);
    for (size_t i = 0; i < pe_tensor_count(in); i++) {
        size_t row = i / inner % n, from = i - row * inner + (size_t)row_of(rows, row) * inner;
        ck_assert(memcmp((char *)result.tensor.data + i * size, (char *)in->data + from * size, size) == 0);
    }
}

START_TEST(every_bit_of_a_tensor_arrives) {
    static const enum pe_dtype dtypes[] = {PE_DTYPE_F64, PE_DTYPE_F32, PE_DTYPE_F16, PE_DTYPE_BF16};
    struct pe_convert_args args = {.size = sizeof args,
                                   .from = PE_ROTARY_HALVES,
                                   .to = PE_ROTARY_INTERLEAVED,
                                   .head_dim = 16,
                                   .rotary_dim = 12,
                                   .heads = 12,
                                   .kv_heads = 3};
    for (size_t i = 0; i < 2 * COUNT(dtypes); i++) {
        args.keys = i % 2;
        const size_t n = args.keys ? 48 : 192;
        struct pe_tensor weight = numbered(dtypes[i / 2], 2, n, 300),
                         kernel = numbered(dtypes[i / 2], 2, 300, n), bias = numbered(dtypes[i / 2], 1, n, 0);
        const struct pe_tensor *all[] = {&weight, &kernel, &bias};
        for (size_t k = 0; k < COUNT(all); k++) {
            args.tensor = all[k];
            args.axis = k == 1;
            convert(&args);
            check_moved(all[k], args.keys ? &result.permutation_k : &result.permutation, args.axis);
        }
    }
}
END_TEST

START_TEST(there_and_back) {
    struct pe_tensor weight = numbered(PE_DTYPE_F32, 2, 64, 33);
    struct pe_convert_args args = {.size = sizeof args,
                                   .from = PE_ROTARY_HALVES,
                                   .to = PE_ROTARY_INTERLEAVED,
                                   .head_dim = 16,
                                   .heads = 4,
                                   .tensor = &weight};
    convert(&args);
    struct pe_tensor moved = result.tensor;
    ck_assert(memcmp(moved.data, weight.data, pe_tensor_bytes(&weight)) != 0);
    args.tensor = &moved;
    args.from = PE_ROTARY_INTERLEAVED;
    args.to = PE_ROTARY_HALVES;
    convert(&args);
    ck_assert_mem_eq(result.tensor.data, weight.data, pe_tensor_bytes(&weight));
}
END_TEST

START_TEST(another_type_is_rounded_once) {
    struct pe_tensor weight = numbered(PE_DTYPE_F64, 1, 4, 0), none = numbered(PE_DTYPE_F32, 2, 4, 0);
    ((double *)weight.data)[1] = 1 + 0x1p-24 + 0x1p-50; /* just above a tie */
    struct pe_convert_args args = {.size = sizeof args,
                                   .from = PE_ROTARY_INTERLEAVED,
                                   .to = PE_ROTARY_HALVES,
                                   .head_dim = 4,
                                   .tensor = &weight,
                                   .dtype = PE_DTYPE_F32};
    convert(&args);
    ck_assert(((float *)result.tensor.data)[2] == 1 + 0x1p-23F);
    args.tensor = &none;
    convert(&args);
    ck_assert_uint_eq(result.tensor.dim[1], 0);
    ck_assert_uint_eq(work.n_parts, 0);
}
END_TEST

/* ---- Errors -------------------------------------------------------------------------------------------- */

START_TEST(errors_name_the_field) {
    struct pe_tensor weight = numbered(PE_DTYPE_F64, 2, 8, 3), deep = numbered(PE_DTYPE_F64, 2, 8, 3),
                     big = numbered(PE_DTYPE_F64, 1, 8, 0);
    deep.rank = 3;
    deep.dim[2] = 1;
    ((double *)big.data)[3] = 1e300;
    const struct {
        struct pe_convert_args args;
        int code;
        const char *path, *text;
    } all[] = {
        {{.to = 1, .head_dim = 4}, PE_ERR_MISSING, "from", "is missing: halves or interleaved"},
        {{.from = 1, .head_dim = 4}, PE_ERR_MISSING, "to", "is missing"},
        {{.from = (enum pe_rotary_layout)3, .to = 1}, PE_ERR_CHOICE, "from", "got 3"},
        {{.from = 1, .to = 2}, PE_ERR_MISSING, "head_dim", "is missing: the width of a head"},
        {{.from = 1, .to = 2, .head_dim = 7}, PE_ERR_RANGE, "head_dim", "is 7, must be even"},
        {{.from = 1, .to = 2, .head_dim = 8, .rotary_dim = 5},
         PE_ERR_RANGE,
         "rotary_dim",
         "is 5, must be even"},
        {{.from = 1, .to = 2, .head_dim = 8, .rotary_dim = 10},
         PE_ERR_RANGE,
         "rotary_dim",
         "at most head_dim, 8"},
        {{.from = 1, .to = 2, .head_dim = 8, .heads = 6, .kv_heads = 4},
         PE_ERR_RANGE,
         "kv_heads",
         "must divide heads, 6"},
        {{.from = 1, .to = 2, .head_dim = 8, .heads = SIZE_MAX / 2}, PE_ERR_RANGE, "heads", "too many"},
        {{.from = 1, .to = 2, .head_dim = 4096, .heads = 4096}, PE_ERR_LIMIT, "heads", "memory"},
        {{.from = 1, .to = 2, .head_dim = 4, .heads = 4, .kv_heads = 2, .tensor = &weight},
         PE_ERR_SHAPE,
         "tensor",
         "has shape [8, 3], its axis 0 must be 16: heads 4 times head_dim 4"},
        {{.from = 1, .to = 2, .head_dim = 4, .heads = 2, .kv_heads = 1, .tensor = &weight, .keys = true},
         PE_ERR_SHAPE,
         "tensor",
         "its axis 0 must be 4: kv_heads 1"},
        {{.from = 1, .to = 2, .head_dim = 4, .heads = 2, .tensor = &weight, .axis = 1},
         PE_ERR_SHAPE,
         "tensor",
         "its axis 1 must be 8"},
        {{.from = 1, .to = 2, .head_dim = 4, .heads = 2, .tensor = &big, .axis = 1},
         PE_ERR_RANGE,
         "axis",
         "is 1, but the tensor has 1"},
        {{.from = 1, .to = 2, .head_dim = 4, .heads = 2, .tensor = &deep},
         PE_ERR_SHAPE,
         "tensor",
         "has shape [8, 3, 1], allowed are"},
        {{.from = 1, .to = 2, .head_dim = 4, .heads = 2, .tensor = &weight, .dtype = (enum pe_dtype)77},
         PE_ERR_DTYPE,
         "dtype",
         "got 77"},
        {{.from = 1, .to = 2, .head_dim = 4, .heads = 2, .tensor = &big, .dtype = PE_DTYPE_F32},
         PE_ERR_RANGE,
         "tensor[3]",
         "beyond the largest float32"},
    };
    for (size_t i = 0; i < COUNT(all); i++) {
        struct pe_convert_args args = all[i].args;
        args.size = sizeof args;
        memset(&err, 0, sizeof err);
        int code = pe_convert_open(arena, &work, &result, &args, &err);
        ck_assert_msg(code == all[i].code && strcmp(err.path, all[i].path) == 0 &&
                          strstr(err.text, all[i].text),
                      "%zu: %d at %s: %s", i, code, err.path, err.text);
        ck_assert_int_eq(result.permutation.rank, 0);
        ck_assert(pe_work_run(&work));
    }
}
END_TEST

static bool always(void *context) {
    (void)context;
    return true;
}

START_TEST(it_can_be_stopped) {
    const struct pe_stop stop = {always, NULL};
    const struct pe_convert_args args = {.size = sizeof args, .from = 1, .to = 2, .head_dim = 4};
    err.stop = &stop;
    ck_assert_int_eq(pe_convert_open(arena, &work, &result, &args, &err), PE_ERR_STOPPED);
}
END_TEST

Suite *convert_suite(void) {
    Suite *suite = suite_create("convert");
    TCase *tests = tcase_create("convert");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, rows_of_every_head, 0, 6);
    tcase_add_loop_test(tests, scores_stay_and_vectors_do_not, 0, 2);
    tcase_add_test(tests, every_bit_of_a_tensor_arrives);
    tcase_add_test(tests, there_and_back);
    tcase_add_test(tests, another_type_is_rounded_once);
    tcase_add_test(tests, errors_name_the_field);
    tcase_add_test(tests, it_can_be_stopped);
    return suite;
}
