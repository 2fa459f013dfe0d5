/* SPDX-License-Identifier: MIT
 *
 * Opens and runs blocks for several suites.
 */
#include "block_run.h"
#include "expect.h"

#include <math.h>
#include <string.h>

struct pe_arena *block_arena;
struct pe_error block_err;
const uint64_t block_seed = 5;

enum { T = BLOCK_T, D = BLOCK_D };

void block_setup(void) {
    memset(&block_err, 0, sizeof block_err);
    block_arena = pe_arena_open((size_t)64 << 20, NULL, &block_err);
    pe_linalg_init();
}

void block_teardown(void) {
    pe_arena_close(block_arena);
}

struct pe_tensor block_numbers(enum pe_dtype dtype, size_t b) {
    struct pe_tensor x;
    const size_t dim[3] = {b, T, D};
    ck_assert_int_eq(pe_tensor_alloc(block_arena, &x, dtype, b ? 3 : 2, b ? dim : dim + 1, &block_err), 0);
    for (size_t i = 0; i < pe_tensor_count(&x); i++) {
        double value = (double)(i * 7919 % 1021) / 256 - 2;
        pe_dtype_store(dtype, &value, 1, (char *)x.data + i * pe_dtype_size(dtype));
    }
    return x;
}

double block_at(const struct pe_tensor *t, size_t i) {
    double value;
    pe_dtype_load(t->dtype, (const char *)t->data + i * pe_dtype_size(t->dtype), 1, &value);
    return value;
}

double block_apart(const struct pe_tensor *a, size_t i, const struct pe_tensor *b, size_t k, size_t n) {
    double most = 0;
    for (size_t m = 0; m < n; m++) {
        most = fmax(most, fabs(block_at(a, i + m) - block_at(b, k + m)));
    }
    return most;
}

struct pe_block_result block_run(struct pe_block_args args) {
    struct pe_block_result result;
    struct pe_work work;
    args.size = sizeof args;
    if (!args.n_weights) {
        args.weights_seed = &block_seed;
    }
    ck_assert_msg(pe_block_open(block_arena, &work, &result, &args, &block_err) == 0, "%s: %s",
                  block_err.path, block_err.text);
    ck_assert(pe_work_run(&work));
    return result;
}

void block_refused(struct pe_block_args args, int code, const char *path, const char *text) {
    struct pe_block_result result;
    struct pe_work work;
    memset(&block_err, 0, sizeof block_err);
    args.size = sizeof args;
    ck_assert_int_eq(pe_block_open(block_arena, &work, &result, &args, &block_err), code);
    ck_assert_str_eq(block_err.path, path);
    ck_assert_msg(strstr(block_err.text, text) != NULL, "%s", block_err.text);
    ck_assert(!work.n_parts && !result.output.data && !result.weights.data);
}

struct pe_plan *block_plan(const char *type, const char *name, const char *value) {
    struct pe_spec spec;
    struct pe_plan *plan = NULL;
    ck_assert_int_eq(pe_spec_init(block_arena, &spec, type, &block_err), 0);
    ck_assert(!name || pe_spec_set(block_arena, &spec, name, value, &block_err) == 0);
    ck_assert_int_eq(pe_spec_fit(&spec, strcmp(type, "sinusoidal") == 0 ? D : D / BLOCK_HEADS, T, &block_err),
                     0);
    ck_assert_msg(pe_plan_open(&plan, &spec, &block_err) == 0, "%s: %s", block_err.path, block_err.text);
    return plan;
}
