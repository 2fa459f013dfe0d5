/* SPDX-License-Identifier: MIT
 *
 * What apply costs, against what memory allows and against PyTorch: rotary encodings of 4096 tokens with 32 heads
 * of 128, and sinusoids that are added. As in kernels.c two things are timed in turn, and the median of the ratios
 * is told. Where there is no PyTorch its rows say so.
 *
 * Opening the work, which reads x for numbers that are none, is not in it: only its run.
 */
#define _DEFAULT_SOURCE /* madvise; NOLINT(bugprone-reserved-identifier): named by the C library */

#include "bench/pages.h"
#include "bench/rounds.h"
#include "bench/torch.h"
#include "kernels/vector.h"
#include "posenc_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS       15
#define SHORT_ROUNDS 151                /* of what takes but a moment, and then so often in each round: */
#define SHORT_RUNS   8                  /* an interrupt shall not decide */
#define SHORT        ((size_t)1 << 20)  /* numbers */
#define MOST         ((size_t)16 << 20) /* numbers */

struct state {
    struct pe_work work;
    float *x, *out, *vectors; /* out: of the copy, or the work's */
    size_t n, n_vectors;
    struct torch torch;
};

static void run_work(struct state *s) {
    pe_work_run(&s->work);
}

static void run_scale(struct state *s) {
    float *x = s->x;
    for (size_t i = 0; i < s->n; i++) {
        x[i] *= 0.9999F;
    }
}

static void run_copy(struct state *s) {
    memcpy(s->out, s->x, s->n * sizeof *s->x);
}

/* x + PE where PE is at hand. */
static void run_add(struct state *s) {
    for (size_t first = 0; first < s->n; first += s->n_vectors) {
        pe_vector_add(PE_DTYPE_F32, s->x + first, s->x + first, s->vectors, s->n_vectors);
    }
}

#define ROTARY         .dim = {1, 4096, 32, 128}, .rank = 4
#define ADDED(b, t, d) .dim = {b, t, d}, .rank = 3, .in_place = true, .torch = "add " #b " " #t " " #d

static const struct row {
    const char *name;
    const char *layout; /* NULL: sinusoids */
    size_t dim[4];
    int rank;
    bool in_place;
    void (*ours)(struct state *), (*theirs)(struct state *);
    const char *torch; /* what it is asked for, where theirs is NULL */
} rows[] = {
    {"rope_halves_in_place/scale", "halves", ROTARY, .in_place = true, .ours = run_work, .theirs = run_scale},
    {"rope_halves/copy", "halves", ROTARY, .ours = run_work, .theirs = run_copy},
    {"rope_halves/torch", "halves", ROTARY, .ours = run_work, .torch = "rotate_half 1 4096 32 128"},
    {"rope_interleaved_in_place/scale", "interleaved", ROTARY, .in_place = true, .ours = run_work,
     .theirs = run_scale},
    {"rope_interleaved/copy", "interleaved", ROTARY, .ours = run_work, .theirs = run_copy},
    {"rope_interleaved/torch", "interleaved", ROTARY, .ours = run_work, .torch = "rotate_half 1 4096 32 128"},
    {"add_given_512x1024/torch", NULL, ADDED(1, 512, 1024), .ours = run_add},
    {"add_512x1024/torch", NULL, ADDED(1, 512, 1024), .ours = run_work},
    {"add_given_4096x4096/torch", NULL, ADDED(1, 4096, 4096), .ours = run_add},
    {"add_4096x4096/torch", NULL, ADDED(1, 4096, 4096), .ours = run_work},
    {"add_given_32x512x1024/torch", NULL, ADDED(32, 512, 1024), .ours = run_add},
    {"add_32x512x1024/torch", NULL, ADDED(32, 512, 1024), .ours = run_work},
};

/* ---- Measuring ----------------------------------------------------------------------------------------- */

/* Of one of some runs; before several there is one that does not count, as torch_ms has it. */
static double timed(void (*run)(struct state *), struct state *s, const char *torch, unsigned runs) {
    if (!run) {
        return torch_ms(&s->torch, torch, runs);
    }
    if (runs > 1) {
        run(s);
    }
    double start = rounds_now();
    for (unsigned i = 0; i < runs; i++) {
        run(s);
    }
    return (rounds_now() - start) / runs;
}

static void measure(const struct row *row, struct state *s) {
    double ours[SHORT_ROUNDS], ratio[SHORT_ROUNDS];
    const bool is_short = s->n < SHORT;
    const size_t rounds = is_short ? SHORT_ROUNDS : ROUNDS;
    const unsigned runs = is_short ? SHORT_RUNS : 1;
    timed(row->ours, s, NULL, 1);
    timed(row->theirs, s, row->torch, 1);
    for (size_t i = 0; i < rounds; i++) {
        ours[i] = timed(row->ours, s, NULL, runs);
        ratio[i] = timed(row->theirs, s, row->torch, runs) / ours[i];
    }
    rounds_print(row->name, rounds_median(ours, rounds), rounds_median(ratio, rounds));
}

static void give_up(const struct pe_error *err) {
    fprintf(stderr, "%s: %s\n", err->path, err->text);
    exit(1);
}

static struct pe_plan *plan_make(struct pe_arena *arena, const struct row *row) {
    struct pe_error err = {0};
    struct pe_spec spec;
    struct pe_plan *plan = NULL;
    char width[32];
    snprintf(width, sizeof width, "%zu", row->dim[row->rank - 1]);
    if (pe_spec_init(arena, &spec, row->layout ? "rope" : "sinusoidal", &err) ||
        pe_spec_set(arena, &spec, row->layout ? "head_dim" : "d_model", width, &err) ||
        (row->layout && pe_spec_set(arena, &spec, "layout", row->layout, &err)) ||
        pe_plan_open(&plan, &spec, &err)) {
        give_up(&err);
    }
    return plan;
}

static void row_run(const struct row *row, struct state *s, const struct pe_allocator *pages) {
    struct pe_error err = {0};
    struct pe_arena *arena = pe_arena_open((size_t)512 << 20, pages, &err);
    struct pe_tensor x, out;
    if (!arena || pe_tensor_alloc(arena, &x, PE_DTYPE_F32, row->rank, row->dim, &err)) {
        give_up(&err);
    }
    struct pe_plan *plan = plan_make(arena, row);
    s->x = x.data;
    s->n = pe_tensor_count(&x);
    s->n_vectors = row->layout ? 0 : row->dim[1] * row->dim[2];
    for (size_t i = 0; i < s->n; i++) {
        s->x[i] = (float)(i * 2654435761U % 65521) * 0x1p-16F;
    }
    memset(s->vectors, 0, s->n_vectors * sizeof(float));
    const struct pe_apply_args args = {.size = sizeof args,
                                       .plan = plan,
                                       .embeddings = &x,
                                       .axes = row->layout ? "bthd" : NULL,
                                       .in_place = row->in_place};
    if (pe_apply_open(arena, &s->work, &out, &args, &err)) {
        give_up(&err);
    }
    s->out = out.data;
    measure(row, s);
    pe_plan_close(plan);
    pe_arena_close(arena);
}

int main(void) {
    const struct pe_allocator pages = {pages_alloc, pages_release, NULL};
    struct state s = {.vectors = pages_alloc(NULL, MOST * sizeof(float)), .torch = torch_begin()};
    for (size_t i = 0; s.vectors && i < PE_COUNT(rows); i++) {
        if (rows[i].theirs || s.torch.from) {
            row_run(&rows[i], &s, &pages);
        } else {
            rounds_missing(rows[i].name, "python3-torch");
        }
    }
    torch_end(&s.torch);
    free(s.vectors);
    return 0;
}
