/* SPDX-License-Identifier: MIT
 *
 * What attention weights cost, 8 heads of width 64, float32, with a posted bias, against the product q.k^T alone by
 * the BLAS (whose processor type is told on stderr: it decides much) and against PyTorch; and what the term of Shaw
 * et al. costs with 16 distances each way, against its form with a vector for each pair [T, T, d], of which only the
 * product is timed, not the making of the vectors.
 *
 * Opening the work, which reads the tensors for numbers that are none, is not in it: only its run.
 */
#define _DEFAULT_SOURCE /* madvise; NOLINT(bugprone-reserved-identifier): named by the C library */

#include "bench/pages.h"
#include "bench/rounds.h"
#include "bench/tensors.h"
#include "bench/torch.h"
#include "kernels/band.h"
#include "posenc_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 21
#define HEADS  8
#define D      64
#define CLIP   16
#define ALIGN  64

struct state {
    size_t tokens;
    struct pe_work work;
    const float *q, *k; /* [HEADS, tokens, D] */
    float *out;         /* [HEADS, tokens, tokens] */
    float *table;       /* [2 * CLIP + 1, D] */
    float *pairs;       /* its rows [tokens, tokens, D] */
    double *positions;
    void *scratch;
    struct torch torch;
};

/* ---- What is timed ------------------------------------------------------------------------------------- */

static void run_work(struct state *s) {
    pe_work_run(&s->work);
}

static void run_product(struct state *s) {
    for (size_t h = 0; h < HEADS; h++) {
        struct pe_gemm gemm = {.dtype = PE_DTYPE_F32,
                               .b_transposed = true,
                               .m = s->tokens,
                               .n = s->tokens,
                               .k = D,
                               .alpha = 0.125,
                               .a = {s->q + h * s->tokens * D, D},
                               .b = {s->k + h * s->tokens * D, D},
                               .c = {s->out + h * s->tokens * s->tokens, s->tokens}};
        pe_gemm_run(&gemm);
    }
}

static struct pe_band band_of(const struct state *s) {
    return (struct pe_band){.data = s->table,
                            .dtype = PE_DTYPE_F32,
                            .ld = D,
                            .width = D,
                            .least = -CLIP,
                            .most = CLIP,
                            .clip = true};
}

static void run_shaw(struct state *s) {
    const struct pe_band band = band_of(s);
    for (size_t row = 0; row < HEADS * s->tokens; row += PE_BAND_ROWS) {
        const struct pe_band_term term = {.band = &band, .rows = {s->q + row * D, D}, .alpha = 0.125};
        const struct pe_band_block block = {.real = PE_DTYPE_F32,
                                            .n_rows = PE_BAND_ROWS,
                                            .n_columns = s->tokens,
                                            .rows = s->positions + row % s->tokens,
                                            .columns = s->positions,
                                            .scratch = s->scratch};
        pe_band_add(&term, &block, (struct pe_matrix){s->out + row * s->tokens, s->tokens});
    }
}

/* For each query the vectors of its pairs, times all heads. */
static void run_dense(struct state *s) {
    for (size_t i = 0; i < s->tokens; i++) {
        struct pe_gemm gemm = {.dtype = PE_DTYPE_F32,
                               .b_transposed = true,
                               .m = HEADS,
                               .n = s->tokens,
                               .k = D,
                               .alpha = 0.125,
                               .a = {s->q + i * D, s->tokens * D},
                               .b = {s->pairs + i * s->tokens * D, D},
                               .c = {s->out + i * s->tokens, s->tokens * s->tokens}};
        pe_gemm_run(&gemm);
    }
}

static const struct row {
    const char *name;
    size_t tokens;
    void (*ours)(struct state *), (*theirs)(struct state *); /* NULL: torch's */
    const char *torch;
    bool time; /* the ratio is that of ours to theirs */
} rows[] = {
    {"attention_512/sgemm_time", 512, run_work, run_product, NULL, true},
    {"attention_2048/sgemm_time", 2048, run_work, run_product, NULL, true},
    {"attention_512/torch", 512, run_work, NULL, "attention 8 512 64", false},
    {"attention_2048/torch", 2048, run_work, NULL, "attention 8 2048 64", false},
    {"shaw_16/dense", 512, run_shaw, run_dense, NULL, false},
};

/* ---- Measuring ----------------------------------------------------------------------------------------- */

static double timed(void (*run)(struct state *), struct state *s, const char *torch) {
    double start = rounds_now();
    if (!run) {
        return torch_ms(&s->torch, torch, 1);
    }
    run(s);
    return rounds_now() - start;
}

static void measure(const struct row *row, struct state *s) {
    double ours[ROUNDS], ratio[ROUNDS];
    timed(row->ours, s, NULL);
    timed(row->theirs, s, row->torch);
    for (int i = 0; i < ROUNDS; i++) {
        ours[i] = timed(row->ours, s, NULL);
        ratio[i] = timed(row->theirs, s, row->torch) / ours[i];
        ratio[i] = row->time ? 1 / ratio[i] : ratio[i];
    }
    rounds_print(row->name, rounds_median(ours, ROUNDS), rounds_median(ratio, ROUNDS));
}

/* Memory of the term: tables, positions, and a vector for each pair. */
static void shaw_open(struct state *s, struct pe_arena *arena) {
    struct pe_error err = {0};
    const struct pe_tensor *table = tensor_make(arena, 2, (const size_t[]){2 * CLIP + 1, D});
    const struct pe_tensor *pairs = tensor_make(arena, 3, (const size_t[]){s->tokens, s->tokens, D});
    s->table = table->data;
    s->pairs = pairs->data;
    s->positions = pe_arena_array(arena, s->tokens, sizeof *s->positions, &err);
    const struct pe_band band = band_of(s);
    size_t bytes = pe_band_scratch_bytes(&band, PE_DTYPE_F32, false);
    char *scratch = pe_arena_alloc(arena, bytes + ALIGN, &err);
    if (!scratch) {
        give_up(&err);
    }
    s->scratch = scratch + (ALIGN - (uintptr_t)scratch % ALIGN) % ALIGN;
    for (size_t i = 0; i < s->tokens; i++) {
        s->positions[i] = (double)i;
    }
    rounds_print("shaw_16_extra_bytes", 0, (double)bytes);
}

static void row_run(const struct row *row, struct state *s, const struct pe_allocator *pages) {
    struct pe_error err = {0};
    struct pe_arena *arena = pe_arena_open((size_t)1 << 30, pages, &err);
    if (!arena) {
        give_up(&err);
    }
    s->tokens = row->tokens;
    struct pe_tensor *q = tensor_make(arena, 3, (const size_t[]){HEADS, s->tokens, D}),
                     *k = tensor_make(arena, 3, (const size_t[]){HEADS, s->tokens, D}),
                     *bias = tensor_make(arena, 3, (const size_t[]){HEADS, s->tokens, s->tokens});
    const struct pe_attention_args args = {.size = sizeof args, .q = q, .k = k, .bias = bias};
    struct pe_attention_result result;
    if (pe_attention_open(arena, &s->work, &result, &args, &err)) {
        give_up(&err);
    }
    s->q = q->data;
    s->k = k->data;
    s->out = result.weights.data;
    if (row->ours == run_shaw) {
        shaw_open(s, arena);
    }
    measure(row, s);
    pe_arena_close(arena);
}

int main(void) {
    const struct pe_allocator pages = {pages_alloc, pages_release, NULL};
    struct state s = {.torch = torch_begin()};
    pe_linalg_init();
    fprintf(stderr, "BLAS: %s\n", pe_linalg_name());
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        if (rows[i].theirs || s.torch.from) {
            row_run(&rows[i], &s, &pages);
        } else {
            rounds_missing(rows[i].name, "torch");
        }
    }
    torch_end(&s.torch);
    return 0;
}
