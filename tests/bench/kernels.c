/* SPDX-License-Identifier: MIT
 *
 * Ratios between two things measured in one process, in turn, so that the machine's mood cancels: the median
 * over rounds. Each row is one pair. Times are of this thread's CPU.
 */
#include "bench/rounds.h"
#include "posenc_fields.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define ROUNDS 15
#define T      512
#define D      512

struct state {
    struct pe_work encode, large, list;
    struct pe_tensor vectors, large_vectors, list_vectors;
    float *floats;
    char *text;
};

/* Past the caches where the processor has stores for that. */
static void fill_past_caches(void *data, size_t bytes) {
#if defined(__SSE2__)
    const __m128i value = _mm_set1_epi32(1);
    for (size_t i = 0; i < bytes; i += sizeof value) {
        _mm_stream_si128((__m128i *)(void *)((char *)data + i), value);
    }
    _mm_sfence();
#else
    memset(data, 1, bytes);
#endif
}

static void run_encode(struct state *s) {
    pe_work_run(&s->encode);
}

static void run_large(struct state *s) {
    pe_work_run(&s->large);
}

/* The fastest way to fill memory that caches cannot hold. */
static void run_fill(struct state *s) {
    fill_past_caches(s->large_vectors.data, pe_tensor_bytes(&s->large_vectors));
}

static void run_list(struct state *s) {
    pe_work_run(&s->list);
}

static void run_memset(struct state *s) {
    memset(s->vectors.data, 0, pe_tensor_bytes(&s->vectors));
}

static void run_write(struct state *s) {
    char *p = s->text;
    for (size_t i = 0; i < T * D; i++) {
        p += pe_number_write_f32(p, s->floats[i]);
        *p++ = ',';
    }
    *p = '\0'; /* what snprintf wrote before was longer */
}

static void run_printf(struct state *s) {
    char *p = s->text;
    for (size_t i = 0; i < T * D; i++) {
        p += snprintf(p, 32, "%.9g,", (double)s->floats[i]);
    }
}

static void run_read(struct state *s) {
    const char *p = s->text, *end = p + strlen(p);
    struct pe_number number;
    for (; p < end; p++) {
        if (pe_number_scan(&p, end, &number) != PE_NUMBER_OK) {
            abort();
        }
    }
}

static void run_strtod(struct state *s) {
    char *p = s->text;
    double sum = 0;
    for (; *p; p++) {
        sum += strtod(p, &p);
    }
    s->floats[0] = (float)(sum * 0);
}

static const struct row {
    const char *name;
    void (*ours)(struct state *), (*theirs)(struct state *);
} rows_measured[] = {
    {"sinusoidal_512/memset", run_encode, run_memset},
    {"sinusoidal_4096x1024/nt_fill", run_large, run_fill},
    {"sinusoidal_list_512/memset", run_list, run_memset},
    {"number_write/snprintf", run_write, run_printf},
    {"number_read/strtod", run_read, run_strtod},
};

static double timed(void (*run)(struct state *), struct state *s) {
    double start = rounds_now();
    run(s);
    return rounds_now() - start;
}

static void measure(const struct row *row, struct state *s) {
    double ours[ROUNDS], ratio[ROUNDS];
    timed(row->ours, s);
    timed(row->theirs, s);
    for (int i = 0; i < ROUNDS; i++) {
        ours[i] = timed(row->ours, s);
        ratio[i] = timed(row->theirs, s) / ours[i];
    }
    rounds_print(row->name, rounds_median(ours, ROUNDS), rounds_median(ratio, ROUNDS));
}

/* Vectors [n, d_model] of these positions, and the work that computes them. The plan stays open for the process. */
static int encode_open(struct pe_arena *arena, const char *d_model, const struct pe_positions *positions,
                       struct pe_work *work, struct pe_tensor *vectors, struct pe_error *err) {
    struct pe_spec spec;
    struct pe_plan *plan = NULL;
    return pe_spec_init(arena, &spec, "sinusoidal", err) ||
           pe_spec_set(arena, &spec, "d_model", d_model, err) || pe_plan_open(&plan, &spec, err) ||
           pe_encode_open(arena, work, vectors, plan, positions, PE_DTYPE_F32, err);
}

int main(void) {
    struct pe_error err = {0};
    struct state s = {0};
    static double scattered[T];
    struct pe_positions rows, many, places = {.length = T, .axes = 1, .list = scattered};
    for (size_t i = 0; i < T; i++) {
        scattered[i] = (double)(i * 2654435761U % 65521);
    }
    struct pe_arena *arena = pe_arena_open((size_t)256 << 20, NULL, &err);
    if (!arena || pe_positions_range(&rows, 0, T, 1, &err) || pe_positions_range(&many, 0, 4096, 1, &err) ||
        encode_open(arena, "512", &rows, &s.encode, &s.vectors, &err) ||
        encode_open(arena, "512", &places, &s.list, &s.list_vectors, &err) ||
        encode_open(arena, "1024", &many, &s.large, &s.large_vectors, &err)) {
        fprintf(stderr, "%s: %s\n", err.path, err.text);
        return 1;
    }
    s.floats = s.vectors.data;
    s.text = calloc(T * D, PE_NUMBER_ROOM);
    run_encode(&s);
    for (size_t i = 0; s.text && i < PE_COUNT(rows_measured); i++) {
        measure(&rows_measured[i], &s);
        run_encode(&s); /* the next row reads what this one may have cleared */
        run_write(&s);
    }
    free(s.text);
    pe_arena_close(arena);
    return 0;
}
