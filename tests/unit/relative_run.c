/* SPDX-License-Identifier: MIT
 *
 * The definition is computed in doubles, pair by pair, from the tensors as they were rounded.
 */
#include "relative_run.h"
#include "expect.h"

#include <math.h>
#include <string.h>

static uint64_t state = 1;

double relative_noise(void) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(int32_t)(state >> 32) / 2147483648.0;
}

struct pe_tensor *relative_tensor(struct pe_arena *arena, enum pe_dtype dtype, int rank, const size_t *dim) {
    struct pe_error err = {0};
    struct pe_tensor *tensor = pe_arena_array(arena, 1, sizeof *tensor, &err);
    ck_assert_int_eq(pe_tensor_alloc(arena, tensor, dtype, rank, dim, &err), PE_OK);
    for (size_t i = 0; i < pe_tensor_count(tensor); i++) {
        double x = relative_noise();
        pe_dtype_store(dtype, &x, 1, (char *)tensor->data + i * pe_dtype_size(dtype));
    }
    return tensor;
}

void relative_spec(struct pe_arena *arena, struct pe_spec *spec, const char *type,
                   const char *const *settings) {
    struct pe_error err = {0};
    ck_assert_int_eq(pe_spec_init(arena, spec, type, &err), PE_OK);
    for (; *settings; settings += 2) {
        int code = pe_spec_set(arena, spec, settings[0], settings[1], &err);
        ck_assert_msg(code == PE_OK, "%s: %s", err.path, err.text);
    }
}

/* ---- One run ------------------------------------------------------------------------------------------- */

struct run {
    struct pe_arena *arena;
    const struct relative_sizes *sizes;
    const struct relative_definition *definition;
    const double *q, *k, *v;             /* as doubles */
    const double *positions[2];          /* [B, T] each */
    double *content, *position, *output; /* expected */
    double *weights;
};

static double *doubles(struct pe_arena *arena, size_t n) {
    struct pe_error err = {0};
    double *out = pe_arena_array(arena, n, sizeof *out, &err);
    ck_assert_ptr_nonnull(out);
    return out;
}

static double *loaded(struct pe_arena *arena, const struct pe_tensor *tensor) {
    struct pe_error err = {0};
    double *out = doubles(arena, pe_tensor_count(tensor));
    ck_assert_int_eq(pe_tensor_load(tensor, out, &err), PE_OK);
    return out;
}

static double place(enum relative_places places, size_t b, size_t t, size_t length) {
    double at = (double)t;
    switch (places) {
    case PLACES_PADDED:
        return t < 7 * b + 3 ? 0 : at - (double)(7 * b + 3);
    case PLACES_SHUFFLED:
        return (double)(t * 37 % 101);
    case PLACES_REPEATED:
        return floor(at / 3);
    case PLACES_STEPS:
        return 3 * at;
    case PLACES_FALLING:
        return (double)(length - t);
    case PLACES_DOCUMENTS:
        return (double)(t % 40);
    case PLACES_FAR:
        return 0x1p52 + at;
    case PLACES_REAL:
        return at * 0.75 - 3 + 0.3 * (double)b;
    default:
        return at;
    }
}

/* The queries are the last of the keys. */
static void positions_make(struct run *run, enum relative_places places) {
    const struct relative_sizes *s = run->sizes;
    const size_t n[2] = {s->tq, s->tk};
    for (size_t side = 0; side < 2; side++) {
        double *list = doubles(run->arena, s->b * n[side]);
        for (size_t i = 0; i < s->b * n[side]; i++) {
            list[i] = place(places, i / n[side], s->tk - n[side] + i % n[side], s->tk);
        }
        run->positions[side] = list;
    }
}

static double dot(const double *a, const double *b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

static void softmax(double *x, size_t n) {
    double top = -INFINITY, sum = 0;
    for (size_t j = 0; j < n; j++) {
        top = fmax(top, x[j]);
    }
    for (size_t j = 0; j < n; j++) {
        x[j] = exp(x[j] - top);
        sum += x[j];
    }
    for (size_t j = 0; j < n; j++) {
        x[j] /= sum;
    }
}

/* The row of query i of head h of sequence b; at is its number. */
static void row_expect(const struct run *run, size_t b, size_t h, size_t i, size_t at) {
    const struct relative_sizes *s = run->sizes;
    const struct relative_definition *is = run->definition;
    size_t key_head = b * s->hk + h / (s->h / s->hk);
    double more[64] = {0}, *weights = run->weights + at * s->tk, *output = run->output + at * s->dv;
    struct relative_pair pair = {.head = h,
                                 .d = s->d,
                                 .scale = (is->shrink > 0 ? is->shrink : 1) / sqrt((double)s->d),
                                 .q = run->q + at * s->d};
    for (int pass = 0; pass < 2; pass++) {
        for (size_t j = 0; j < s->tk; j++) {
            pair.k = run->k + (key_head * s->tk + j) * s->d;
            pair.distance = run->positions[1][b * s->tk + j] - run->positions[0][b * s->tq + i];
            if (pass == 0) {
                run->content[at * s->tk + j] = pair.scale * dot(pair.q, pair.k, s->d);
                run->position[at * s->tk + j] = is->term(&pair, is->context);
                weights[j] = run->content[at * s->tk + j] + run->position[at * s->tk + j];
                continue;
            }
            if (is->value) {
                is->value(&pair, is->context, more);
            }
            for (size_t c = 0; c < s->dv; c++) {
                output[c] += weights[j] * (run->v[(key_head * s->tk + j) * s->dv + c] + more[c]);
            }
        }
        if (pass == 0) {
            softmax(weights, s->tk);
        }
    }
}

static void expect(struct run *run) {
    const struct relative_sizes *s = run->sizes;
    size_t rows = s->b * s->h * s->tq;
    run->content = doubles(run->arena, rows * s->tk);
    run->position = doubles(run->arena, rows * s->tk);
    run->weights = doubles(run->arena, rows * s->tk);
    run->output = doubles(run->arena, rows * s->dv);
    for (size_t at = 0; at < rows; at++) {
        row_expect(run, at / s->tq / s->h, at / s->tq % s->h, at % s->tq, at);
    }
}

static void near(const char *name, const struct run *run, const struct pe_tensor *got, const double *wanted,
                 double tolerance) {
    double largest = 1, worst = 0;
    const double *values = loaded(run->arena, got);
    for (size_t i = 0; i < pe_tensor_count(got); i++) {
        largest = fmax(largest, fabs(wanted[i]));
    }
    for (size_t i = 0; i < pe_tensor_count(got); i++) {
        double error = fabs(values[i] - wanted[i]);
        worst = error > worst || error != error ? error : worst;
    }
    ck_assert_msg(worst <= tolerance * largest, "%s is %g off, of numbers up to %g", name, worst, largest);
}

void relative_compare(struct pe_arena *arena, const struct pe_spec *spec, const struct relative_sizes *sizes,
                      enum relative_places places, enum pe_dtype dtype,
                      const struct relative_definition *definition, double tolerance) {
    const struct relative_sizes *s = sizes;
    struct pe_error err = {0};
    struct pe_plan *plan = NULL;
    struct run run = {.arena = arena, .sizes = sizes, .definition = definition};
    struct pe_tensor *q = relative_tensor(arena, dtype, 4, (const size_t[]){s->b, s->h, s->tq, s->d}),
                     *k = relative_tensor(arena, dtype, 4, (const size_t[]){s->b, s->hk, s->tk, s->d}),
                     *v = relative_tensor(arena, dtype, 4, (const size_t[]){s->b, s->hk, s->tk, s->dv});
    ck_assert_msg(pe_plan_open(&plan, spec, &err) == PE_OK, "%s: %s", err.path, err.text);
    positions_make(&run, places);
    struct pe_positions queries = {.batch = s->b, .length = s->tq, .axes = 1, .list = run.positions[0]},
                        keys = {.batch = s->b, .length = s->tk, .axes = 1, .list = run.positions[1]};
    struct pe_attention_args args = {
        .size = sizeof args,
        .plan = plan,
        .q = q,
        .k = k,
        .v = v,
        .query_positions = places == PLACES_DEFAULT ? NULL : &queries,
        .key_positions = places == PLACES_DEFAULT ? NULL : &keys,
        .outputs = PE_ATTENTION_WEIGHTS | PE_ATTENTION_LOGITS | PE_ATTENTION_CONTENT | PE_ATTENTION_POSITION |
                   PE_ATTENTION_OUTPUT,
    };
    struct pe_attention_result got;
    struct pe_work work;
    int code = pe_attention_open(arena, &work, &got, &args, &err);
    ck_assert_msg(code == PE_OK, "%s: %s", err.path, err.text);
    pe_work_run(&work);
    run.q = loaded(arena, q);
    run.k = loaded(arena, k);
    run.v = loaded(arena, v);
    expect(&run);
    near("content", &run, &got.content, run.content, tolerance);
    near("position", &run, &got.position, run.position, tolerance);
    near("weights", &run, &got.weights, run.weights, tolerance);
    near("output", &run, &got.output, run.output, tolerance);
    for (size_t i = 0; i < pe_tensor_count(&got.logits); i++) {
        run.content[i] += run.position[i];
    }
    near("logits", &run, &got.logits, run.content, tolerance);
    pe_plan_close(plan);
}
