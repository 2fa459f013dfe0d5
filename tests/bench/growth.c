/* SPDX-License-Identifier: MIT
 *
 * How cost grows: time against tokens, width, heads, batch and position, everything else kept. One line a series, of
 * {size, milliseconds} for each size, from which bench.py fits an exponent. The sizes of a series are measured in
 * turn, and each time is a median over rounds of this thread's CPU time. Whole operations are computed, but opened
 * once.
 */
#define _DEFAULT_SOURCE /* madvise; NOLINT(bugprone-reserved-identifier): named by the C library */

#include "bench/pages.h"
#include "bench/rounds.h"
#include "bench/tensors.h"
#include "posenc_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS   15
#define MAX_SIZE 7
#define MOMENT   0.2 /* ms: what is shorter is run several times */

/* The axes of an operation; START is the first position. */
enum axis { BATCH, TOKENS, HEADS, WIDTH, START, AXES };

struct point {
    double size[AXES];
    struct pe_arena *arena;
    struct pe_plan *plan;
    struct pe_positions positions;
    struct pe_work work;
    size_t repeat;
};

static size_t count_of(const struct point *point, enum axis axis) {
    return (size_t)point->size[axis];
}

static void plan_make(struct point *point, const char *type, const char *width) {
    struct pe_error err = {0};
    struct pe_spec spec;
    char text[32];
    snprintf(text, sizeof text, "%zu", count_of(point, WIDTH));
    if (pe_spec_init(point->arena, &spec, type, &err) ||
        pe_spec_set(point->arena, &spec, width, text, &err) ||
        (strcmp(type, "rope") == 0 && pe_spec_set(point->arena, &spec, "layout", "halves", &err)) ||
        pe_plan_open(&point->plan, &spec, &err)) {
        give_up(&err);
    }
}

static void open_encode(struct point *point) {
    struct pe_error err = {0};
    struct pe_tensor vectors;
    plan_make(point, "sinusoidal", "d_model");
    const double start = point->size[START];
    if (pe_positions_range(&point->positions, start, start + point->size[TOKENS], 1, &err) ||
        pe_encode_open(point->arena, &point->work, &vectors, point->plan, &point->positions, PE_DTYPE_F32,
                       &err)) {
        give_up(&err);
    }
}

static void open_apply(struct point *point, const char *axes, int rank, const size_t *dim) {
    struct pe_error err = {0};
    struct pe_tensor out;
    const struct pe_apply_args args = {.size = sizeof args,
                                       .plan = point->plan,
                                       .embeddings = tensor_make(point->arena, rank, dim),
                                       .axes = axes};
    if (pe_apply_open(point->arena, &point->work, &out, &args, &err)) {
        give_up(&err);
    }
}

static void open_add(struct point *point) {
    plan_make(point, "sinusoidal", "d_model");
    open_apply(point, NULL, 3,
               (size_t[]){count_of(point, BATCH), count_of(point, TOKENS), count_of(point, WIDTH)});
}

static void open_rope(struct point *point) {
    plan_make(point, "rope", "head_dim");
    open_apply(point, "bthd", 4,
               (size_t[]){count_of(point, BATCH), count_of(point, TOKENS), count_of(point, HEADS),
                          count_of(point, WIDTH)});
}

static void open_attention(struct point *point) {
    struct pe_error err = {0};
    struct pe_attention_result result;
    const size_t dim[] = {count_of(point, BATCH), count_of(point, HEADS), count_of(point, TOKENS),
                          count_of(point, WIDTH)};
    const struct pe_attention_args args = {
        .size = sizeof args, .q = tensor_make(point->arena, 4, dim), .k = tensor_make(point->arena, 4, dim)};
    if (pe_attention_open(point->arena, &point->work, &result, &args, &err)) {
        give_up(&err);
    }
}

static const struct series {
    const char *name;
    void (*open)(struct point *);
    enum axis axis;
    double size[AXES]; /* of the others */
    double sizes[MAX_SIZE];
} series[] = {
    {"encode_by_tokens", open_encode, TOKENS, {1, 0, 1, 512, 0}, {64, 256, 1024, 4096, 16384}},
    {"encode_by_width", open_encode, WIDTH, {1, 512, 1, 0, 0}, {64, 256, 1024, 4096, 16384}},
    {"encode_by_position", open_encode, START, {1, 512, 1, 512, 0}, {1, 1e3, 1e6, 1e9, 1e12, 1e15}},
    {"add_by_batch", open_add, BATCH, {0, 128, 1, 512, 0}, {1, 4, 16, 64}},
    {"rope_by_heads", open_rope, HEADS, {1, 512, 0, 64, 0}, {1, 2, 4, 8, 16, 32}},
    {"attention_by_tokens", open_attention, TOKENS, {1, 0, 8, 64, 0}, {64, 128, 256, 512, 1024}},
    {"attention_by_width", open_attention, WIDTH, {1, 512, 8, 0, 0}, {16, 32, 64, 128, 256}},
    {"attention_by_heads", open_attention, HEADS, {1, 256, 0, 64, 0}, {1, 2, 4, 8, 16, 32}},
    {"attention_by_batch", open_attention, BATCH, {0, 128, 8, 64, 0}, {1, 2, 4, 8, 16}},
};

static double run(const struct point *point) {
    double start = rounds_now();
    for (size_t i = 0; i < point->repeat; i++) {
        pe_work_run(&point->work);
    }
    return (rounds_now() - start) / (double)point->repeat;
}

static void point_open(struct point *point, const struct series *row, double size) {
    static const struct pe_allocator pages = {pages_alloc, pages_release, NULL};
    struct pe_error err = {0};
    *point = (struct point){.repeat = 1, .arena = pe_arena_open((size_t)1 << 30, &pages, &err)};
    if (!point->arena) {
        give_up(&err);
    }
    for (size_t i = 0; i < AXES; i++) {
        point->size[i] = i == row->axis ? size : row->size[i];
    }
    row->open(point);
    run(point);
    point->repeat += (size_t)(MOMENT / (run(point) + 1e-6));
}

static void measure(const struct series *row) {
    struct point points[MAX_SIZE];
    double times[MAX_SIZE][ROUNDS];
    size_t n = 0;
    for (; n < MAX_SIZE && row->sizes[n] > 0; n++) {
        point_open(&points[n], row, row->sizes[n]);
    }
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < n; i++) {
            times[i][round] = run(&points[i]);
        }
    }
    printf("{\"name\": \"%s\", \"points\": [", row->name);
    for (size_t i = 0; i < n; i++) {
        printf("%s[%g, %.6g]", i > 0 ? ", " : "", row->sizes[i], rounds_median(times[i], ROUNDS));
        pe_plan_close(points[i].plan);
        pe_arena_close(points[i].arena);
    }
    printf("]}\n");
    fflush(stdout);
}

int main(void) {
    pe_linalg_init();
    for (size_t i = 0; i < PE_COUNT(series); i++) {
        measure(&series[i]);
    }
    return 0;
}
