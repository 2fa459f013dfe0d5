/* SPDX-License-Identifier: MIT
 *
 * Turned pairs from every instruction set that this processor has, against the formula, bit by bit: both layouts, all
 * types, any number of pairs, memory that is aligned to a number and no more, between pages that may not be touched.
 * And apply with rotary encodings: the same bits whatever is asked for together.
 */
#include "suites.h"

#include "core/dtype.h"
#include "fence.h"
#include "instructions.h"
#include "kernels/rotate.h"
#include "posenc_fields.h"
#include "random.h"

#include <stdio.h>
#include <string.h>

/* In (-1, 1), all 53 bits in use. */
static double next_number(uint64_t *state) {
    return (double)(int64_t)random_next(state) * 0x1p-63;
}

/* ---- The kernel ---------------------------------------------------------------------------------------- */

#define EACH ((size_t)70)   /* every number of pairs up to this, and some up to MOST */
#define MOST ((size_t)2050) /* pairs */

struct memory {
    struct fence x, out, cos, sin;
};

static void memory_open(struct memory *m) {
    struct fence *all[] = {&m->x, &m->out, &m->cos, &m->sin};
    for (size_t i = 0; i < PE_COUNT(all); i++) {
        fence_make(all[i], (2 * MOST + 4) * sizeof(double));
    }
}

static void memory_close(struct memory *m) {
    struct fence *all[] = {&m->x, &m->out, &m->cos, &m->sin};
    for (size_t i = 0; i < PE_COUNT(all); i++) {
        fence_drop(all[i]);
    }
}

/* What the turned pairs are, in out's type. Between the halves stands what does not turn. */
static void want_turned(enum pe_dtype real, const void *x, enum pe_dtype dtype, void *out, size_t n,
                        const struct pe_turn_pairs *pairs) {
    double numbers[2 * MOST + 4], turned[2 * MOST + 4];
    pe_dtype_load(real, x, n, numbers);
    pe_dtype_load(dtype, out, n, turned);
    for (size_t i = 0; i < pairs->n; i++) {
        const size_t first = i * pairs->step, second = first + pairs->apart;
        const double a = numbers[first], b = numbers[second], c = pairs->cos[i], s = pairs->sin[i];
        turned[first] = a * c - b * s;
        turned[second] = b * c + a * s;
    }
    pe_dtype_store(dtype, turned, n, out);
}

static void fill(enum pe_dtype dtype, void *x, size_t n, uint64_t *state) {
    for (size_t i = 0; i < n; i++) {
        const double v = 8 * next_number(state);
        pe_dtype_store(dtype, &v, 1, (char *)x + i * pe_dtype_size(dtype));
    }
}

/* Some pairs whose two products are the same, so that their difference is 0, but for who fuses it with one of them. */
static void cancel(enum pe_dtype real, void *x, double *cos, const double *sin,
                   const struct pe_turn_pairs *pairs, uint64_t *state) {
    const size_t size = pe_dtype_size(real);
    for (size_t i = random_next(state) % 8; i < pairs->n; i += 8) {
        char *first = (char *)x + i * pairs->step * size;
        memcpy(first + pairs->apart * size, first, size);
        cos[i] = sin[i];
    }
}

static void check_kernel(const struct memory *m, size_t n, enum pe_dtype real, enum pe_dtype dtype,
                         enum pe_instructions set, uint64_t *state) {
    const bool halves = random_next(state) & 1, at_end = random_next(state) & 1;
    const bool in_place = real == dtype && random_next(state) & 1;
    const size_t between = halves ? random_next(state) % 5 : 0, numbers = 2 * n + between;
    void *x = fence_side(&m->x, numbers * pe_dtype_size(real), at_end);
    void *out = in_place ? x : fence_side(&m->out, numbers * pe_dtype_size(dtype), at_end);
    double *cos = fence_side(&m->cos, n * sizeof *cos, at_end),
           *sin = fence_side(&m->sin, n * sizeof *sin, at_end);
    const struct pe_turn_pairs pairs = {.cos = cos,
                                        .sin = sin,
                                        .n = n,
                                        .step = halves ? 1 : 2,
                                        .apart = halves ? n + between : 1,
                                        .instructions = set,
                                        .far = random_next(state) & 1};
    double want[2 * MOST + 4];
    fill(dtype, out, numbers, state);
    fill(real, x, numbers, state);
    fill(PE_DTYPE_F64, cos, n, state);
    fill(PE_DTYPE_F64, sin, n, state);
    cancel(real, x, cos, sin, &pairs, state);
    memcpy(want, out, numbers * pe_dtype_size(dtype));
    want_turned(real, x, dtype, want, numbers, &pairs);
    pe_rotate(real, x, dtype, out, &pairs);
    ck_assert_msg(memcmp(out, want, numbers * pe_dtype_size(dtype)) == 0, "%s: %zu pairs %s%s, %s to %s",
                  instructions_name(set), n, halves ? "halves" : "neighbours", in_place ? " in place" : "",
                  pe_dtype_name(real), pe_dtype_name(dtype));
}

START_TEST(rotate_kernels_compute_the_formula) {
    static const enum pe_dtype types[][2] = {{PE_DTYPE_F32, PE_DTYPE_F32}, {PE_DTYPE_F64, PE_DTYPE_F64},
                                             {PE_DTYPE_F32, PE_DTYPE_F16}, {PE_DTYPE_F32, PE_DTYPE_BF16},
                                             {PE_DTYPE_F64, PE_DTYPE_F32}, {PE_DTYPE_F32, PE_DTYPE_F64},
                                             {PE_DTYPE_F64, PE_DTYPE_F16}};
    static const size_t wide[] = {128, 511, 512, 513, 2047, 2048, 2049, MOST};
    const enum pe_instructions most = pe_instructions();
    uint64_t state = 17;
    struct memory m;
    memory_open(&m);
    for (enum pe_instructions set = 0; set <= most; set++) {
        for (size_t n = 1; n <= EACH + PE_COUNT(wide); n++) {
            for (size_t i = 0; i < 8 * PE_COUNT(types); i++) {
                const enum pe_dtype *type = types[i % PE_COUNT(types)];
                check_kernel(&m, n <= EACH ? n : wide[n - EACH - 1], type[0], type[1], set, &state);
            }
        }
    }
    memory_close(&m);
}
END_TEST

/* ---- apply --------------------------------------------------------------------------------------------- */

static struct pe_arena *arena;
static struct pe_error err;

static void setup(void) {
    memset(&err, 0, sizeof err);
    arena = pe_arena_open((size_t)64 << 20, NULL, &err);
}

static void teardown(void) {
    pe_arena_close(arena);
}

static struct pe_plan *plan_open(size_t head_dim, size_t rotary_dim, const char *layout) {
    char numbers[2][32];
    struct pe_spec spec;
    struct pe_plan *plan = NULL;
    snprintf(numbers[0], sizeof numbers[0], "%zu", head_dim);
    snprintf(numbers[1], sizeof numbers[1], "%zu", rotary_dim);
    ck_assert_int_eq(pe_spec_init(arena, &spec, "rope", &err), 0);
    ck_assert_int_eq(pe_spec_set(arena, &spec, "layout", layout, &err), 0);
    ck_assert_int_eq(pe_spec_set(arena, &spec, "head_dim", numbers[0], &err), 0);
    ck_assert_int_eq(pe_spec_set(arena, &spec, "rotary_dim", numbers[1], &err), 0);
    ck_assert_msg(pe_plan_open(&plan, &spec, &err) == 0, "%s: %s", err.path, err.text);
    return plan;
}

/* The result, at x's own place or not. */
static void *applied(const struct pe_plan *plan, const struct pe_tensor *x,
                     const struct pe_positions *positions, enum pe_dtype dtype, bool in_place) {
    const struct pe_apply_args args = {.size = sizeof args,
                                       .plan = plan,
                                       .embeddings = x,
                                       .positions = positions,
                                       .dtype = dtype,
                                       .axes = x->rank == 4 ? "bhtd" : "td",
                                       .in_place = in_place};
    struct pe_work work;
    struct pe_tensor out;
    ck_assert_msg(pe_apply_open(arena, &work, &out, &args, &err) == 0, "%s: %s", err.path, err.text);
    pe_work_run(&work);
    ck_assert(!in_place || out.data == x->data);
    return out.data;
}

#define LENGTH 37

/* Each vector alone, and all of them at once: the same bits. x, in memory that begins at an odd place, stands before
 * a page that may not be touched. */
static void check_alone(const struct pe_plan *plan, size_t width, enum pe_dtype dtype, double start) {
    const size_t size = pe_dtype_size(dtype), bytes = LENGTH * width * size;
    struct pe_positions all, one;
    struct fence fence;
    uint64_t state = width;
    fence_make(&fence, bytes);
    char *numbers = fence_side(&fence, bytes, true);
    fill(dtype, numbers, LENGTH * width, &state);
    struct pe_tensor x = {numbers, dtype, 2, {LENGTH, width}};
    ck_assert_int_eq(pe_positions_range(&all, start, start + LENGTH, 1, &err), 0);
    const char *together = applied(plan, &x, &all, dtype, false);
    for (size_t t = 0; t < LENGTH; t++) {
        struct pe_tensor row = {numbers + t * width * size, dtype, 2, {1, width}};
        ck_assert_int_eq(pe_positions_range(&one, start + (double)t, start + (double)t + 1, 1, &err), 0);
        const char *alone = applied(plan, &row, &one, dtype, false);
        ck_assert_msg(memcmp(alone, together + t * width * size, width * size) == 0,
                      "%s, width %zu, position %g", pe_dtype_name(dtype), width, start + (double)t);
    }
    const char *instead = applied(plan, &x, &all, dtype, true);
    ck_assert(memcmp(instead, together, bytes) == 0);
    fence_drop(&fence);
}

START_TEST(rotary_vectors_are_the_same_alone) {
    static const struct {
        size_t head_dim, rotary_dim;
    } sizes[] = {{2, 2}, {3, 2}, {7, 4}, {7, 6}, {16, 16}, {18, 18}, {130, 130}, {134, 132}, {300, 290}};
    static const double starts[] = {0, -20, 5, 1048571, 4503599627370000, 0.5};
    static const enum pe_dtype types[] = {PE_DTYPE_F32, PE_DTYPE_F64, PE_DTYPE_F16, PE_DTYPE_BF16};
    const enum pe_instructions most = pe_instructions();
    for (enum pe_instructions set = 0; set <= most; set++) {
        instructions_limit(set);
        for (size_t i = 0; i < PE_COUNT(sizes); i++) {
            struct pe_plan *plan =
                plan_open(sizes[i].head_dim, sizes[i].rotary_dim, i % 2 ? "interleaved" : "halves");
            for (size_t j = 0; j < PE_COUNT(starts); j++) {
                check_alone(plan, sizes[i].head_dim, types[j % 4], starts[j]);
                check_alone(plan, sizes[i].head_dim, PE_DTYPE_F32, starts[j]);
            }
            pe_plan_close(plan);
        }
    }
}
END_TEST

/* A result so large that it is written past the caches, heads before positions, from each instruction set. */
START_TEST(large_results_are_the_same) {
    const size_t dim[4] = {1, 3, 6001, 128}, width = 128, n = 3 * 6001 * width;
    const enum pe_instructions most = pe_instructions();
    struct pe_plan *plan = plan_open(128, 128, "halves");
    struct pe_tensor x, first = {0};
    uint64_t state = 1;
    ck_assert_int_eq(pe_tensor_alloc(arena, &x, PE_DTYPE_F32, 4, dim, &err), 0);
    fill(PE_DTYPE_F32, x.data, n, &state);
    for (enum pe_instructions set = 0; set <= most; set++) {
        instructions_limit(set);
        const float *got = applied(plan, &x, NULL, PE_DTYPE_F32, false);
        first.data = first.data ? first.data : (void *)(uintptr_t)got;
        ck_assert(memcmp(got, first.data, n * sizeof *got) == 0);
    }
    struct pe_positions at;
    const size_t head = 2, t = 6000;
    struct pe_tensor row = {(float *)x.data + (head * 6001 + t) * width, PE_DTYPE_F32, 2, {1, width}};
    ck_assert_int_eq(pe_positions_range(&at, (double)t, (double)t + 1, 1, &err), 0);
    ck_assert(memcmp(applied(plan, &row, &at, PE_DTYPE_F32, false),
                     (float *)first.data + (head * 6001 + t) * width, width * sizeof(float)) == 0);
    pe_plan_close(plan);
}
END_TEST

Suite *rotate_suite(void) {
    Suite *suite = suite_create("rotate");
    TCase *kernels = tcase_create("kernels"), *ops = tcase_create("apply");
    tcase_add_test(kernels, rotate_kernels_compute_the_formula);
    suite_add_tcase(suite, kernels);
    tcase_add_checked_fixture(ops, setup, teardown);
    tcase_add_test(ops, rotary_vectors_are_the_same_alone);
    tcase_add_test(ops, large_results_are_the_same);
    suite_add_tcase(suite, ops);
    return suite;
}
