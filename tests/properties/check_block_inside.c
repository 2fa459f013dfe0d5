/* SPDX-License-Identifier: MIT
 *
 * Encodings inside of blocks: every rotary and every relative one, with all their choices, acts in the
 * attention of each layer as in the operation `attention`, with the same scale. The block's second half is
 * made to add nothing and its projection to be the identity, so that a layer is x + attention(x).
 */
#include "properties/relative_setups.h"
#include "properties/rotary_setups.h"
#include "unit/suites.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { T = RELATIVE_T, HEADS = RELATIVE_H, LAYERS = 2 };

static struct pe_arena *arena;
static struct pe_error err;

static void setup(void) {
    memset(&err, 0, sizeof err);
    arena = pe_arena_open((size_t)64 << 20, NULL, &err);
    pe_linalg_init();
}

static void teardown(void) {
    pe_arena_close(arena);
}

static double *zeros(size_t n) {
    double *all = pe_arena_array(arena, n, sizeof *all, &err);
    ck_assert_ptr_nonnull(all);
    return all;
}

static double *noise(size_t n, unsigned salt, double size) {
    double *all = zeros(n);
    for (size_t i = 0; i < n; i++) {
        all[i] = size * ((double)((i + salt) * 7919 % 1021) / 510 - 1);
    }
    return all;
}

/* The weights of a layer whose projection is the identity and whose second half is nothing. */
struct plain {
    size_t d;
    double *in, *in_bias;
    struct pe_named_tensor tensors[LAYERS * 8];
    size_t n;
};

static void tensor_add(struct plain *w, size_t layer, const char *name, double *data, size_t rows,
                       size_t columns) {
    char *full = pe_arena_alloc(arena, 80, &err);
    ck_assert_ptr_nonnull(full);
    snprintf(full, 80, "layers.%zu.%s", layer, name);
    struct pe_tensor tensor = {data, PE_DTYPE_F64, columns ? 2 : 1, {rows, columns}};
    w->tensors[w->n++] = (struct pe_named_tensor){full, tensor};
}

static void plain_make(struct plain *w, size_t d) {
    double *identity = zeros(d * d), *nothing = zeros(d * d);
    for (size_t i = 0; i < d; i++) {
        identity[i * d + i] = 1;
    }
    w->d = d;
    w->n = 0;
    w->in = noise(3 * d * d, 3, 0.5);
    w->in_bias = noise(3 * d, 11, 0.5);
    for (size_t l = 0; l < LAYERS; l++) {
        tensor_add(w, l, "self_attn.in_proj_weight", w->in, 3 * d, d);
        tensor_add(w, l, "self_attn.in_proj_bias", w->in_bias, 3 * d, 0);
        tensor_add(w, l, "self_attn.out_proj.weight", identity, d, d);
        tensor_add(w, l, "self_attn.out_proj.bias", nothing, d, 0);
        tensor_add(w, l, "linear1.weight", nothing, 1, d);
        tensor_add(w, l, "linear1.bias", nothing, 1, 0);
        tensor_add(w, l, "linear2.weight", nothing, d, 1);
        tensor_add(w, l, "linear2.bias", nothing, d, 0);
    }
}

/* Queries (0), keys (1) or values (2) of x [T, D]: [1, H, T, d]. */
static struct pe_tensor project(const struct plain *w, const double *x, size_t which) {
    size_t width = w->d / HEADS;
    struct pe_tensor out = {zeros(w->d * T), PE_DTYPE_F64, 4, {1, HEADS, T, width}};
    for (size_t h = 0; h < HEADS; h++) {
        for (size_t i = 0; i < T * width; i++) {
            size_t row = which * w->d + h * width + i % width, t = i / width;
            double sum = w->in_bias[row];
            for (size_t c = 0; c < w->d; c++) {
                sum += x[t * w->d + c] * w->in[row * w->d + c];
            }
            ((double *)out.data)[h * T * width + i] = sum;
        }
    }
    return out;
}

static double apart(const double *a, const double *b, size_t n) {
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs(a[i] - b[i]));
    }
    return most;
}

static void held_against_attention(const char *name, const struct pe_plan *plan, size_t d,
                                   const struct pe_positions *positions) {
    struct plain w;
    plain_make(&w, d);
    double *x = noise(T * d, 5, 1);
    struct pe_tensor embeddings = {x, PE_DTYPE_F64, 2, {T, d}};
    const struct pe_block_args args = {.size = sizeof args,
                                       .plan = plan,
                                       .embeddings = &embeddings,
                                       .positions = positions,
                                       .weights = w.tensors,
                                       .n_weights = w.n,
                                       .heads = HEADS,
                                       .norm = PE_BLOCK_NORM_NONE};
    struct pe_block_result made;
    struct pe_work work;
    ck_assert_msg(pe_block_open(arena, &work, &made, &args, &err) == 0, "%s: %s: %s", name, err.path,
                  err.text);
    ck_assert(pe_work_run(&work));
    for (size_t l = 0; l < LAYERS; l++) {
        const double *in = (const double *)made.stream.data + l * T * d, *out = in + T * d;
        struct pe_tensor q = project(&w, in, 0), k = project(&w, in, 1), v = project(&w, in, 2);
        const struct pe_attention_args plainly = {.size = sizeof plainly,
                                                  .plan = plan,
                                                  .q = &q,
                                                  .k = &k,
                                                  .v = &v,
                                                  .query_positions = positions,
                                                  .key_positions = positions,
                                                  .outputs = PE_ATTENTION_WEIGHTS | PE_ATTENTION_OUTPUT};
        struct pe_attention_result wanted;
        ck_assert_msg(pe_attention_open(arena, &work, &wanted, &plainly, &err) == 0, "%s: %s", name,
                      err.text);
        pe_work_run(&work);
        size_t n = (size_t)HEADS * T * T, width = d / HEADS;
        double off = apart((const double *)made.weights.data + l * n, wanted.weights.data, n);
        ck_assert_msg(off < 1e-12, "%s: the weights of layer %zu are off by %g", name, l, off);
        for (size_t i = 0; i < T * d; i++) {
            size_t t = i / d, h = i % d / width;
            double mixed = ((const double *)wanted.output.data)[(h * T + t) * width + i % width];
            ck_assert_msg(fabs(out[i] - in[i] - mixed) < 1e-11, "%s: element %zu after layer %zu", name, i,
                          l);
        }
    }
}

START_TEST(relative_encodings_act_in_every_layer) {
    const int n = relative_setups_make();
    ck_assert_int_gt(n, 0);
    for (int i = 0; i < n; i++) {
        char name[200];
        struct pe_plan *plan = NULL;
        const struct relative_setup *one = relative_setup_at(i);
        relative_setup_text(one, name, sizeof name);
        ck_assert_int_eq(relative_setup_open(arena, one, &plan, &err), 0);
        held_against_attention(name, plan, (size_t)RELATIVE_H * RELATIVE_W, NULL);
        pe_plan_close(plan);
        teardown();
        setup();
    }
}
END_TEST

START_TEST(rotary_encodings_turn_in_every_layer) {
    struct rotary rotary;
    rotary_open(&rotary, _i);
    struct pe_positions positions = rotary_positions(&rotary, T, 1, 1);
    held_against_attention(rotary.setup->params, rotary.plan, (size_t)HEADS * ROTARY_WIDTH, &positions);
    rotary_close(&rotary);
}
END_TEST

Suite *block_inside_suite(void) {
    Suite *suite = suite_create("block_inside");
    TCase *tests = tcase_create("block_inside");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, setup, teardown);
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, relative_encodings_act_in_every_layer);
    tcase_add_loop_test(tests, rotary_encodings_turn_in_every_layer, 0, rotary_setup_count * ROTARY_LAYOUTS);
    return suite;
}
