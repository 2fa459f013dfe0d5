/* SPDX-License-Identifier: MIT
 *
 * Ratios between two things measured in one process, or beside torch.h's, in turn, so that the machine's mood
 * cancels: the median over rounds. Each row is one pair. Times are of this thread's CPU; memory is warm, as each
 * measured run follows another.
 */
#define _DEFAULT_SOURCE /* madvise; NOLINT(bugprone-reserved-identifier): named by the C library */

#include "bench/pages.h"
#include "bench/rounds.h"
#include "bench/torch.h"
#include "instructions.h"
#include "posenc_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* The shorter a run, the more of them, that an interrupt or two do not decide. */
static const struct pace { unsigned rounds, runs; } paces[] = {{31, 1}, {15, 1}, {151, 8}};
enum { MIDDLE, LONG, SHORT };
#define MOST_ROUNDS 151

#define T           512
#define D           512
#define STREAM      1000000 /* rows of 1024 */
#define STREAM_ROWS 64      /* at a time: 256 KiB */

/* Vectors to make. */
static const struct table {
    const char *d_model;
    size_t rows;
    bool scattered; /* positions that are in no order */
} tables[] = {
    {"512", T, false},
    {"512", T, true},
    {"1024", 4096, false},
    {"1024", 65536, false},
};
enum { TABLE, LIST, MANY, MOST, TABLES = PE_COUNT(tables) };

struct state {
    struct pe_arena *arena;
    struct pe_plan *plan[TABLES];
    struct pe_work work[TABLES];
    struct pe_tensor vectors[TABLES];
    struct pe_spec spec; /* of d_model 1024 */
    int table;           /* the row's */
    struct torch torch;
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
    pe_work_run(&s->work[s->table]);
}

/* The fastest way to fill memory that caches cannot hold. */
static void run_fill(struct state *s) {
    fill_past_caches(s->vectors[s->table].data, pe_tensor_bytes(&s->vectors[s->table]));
}

static void run_memset(struct state *s) {
    memset(s->vectors[s->table].data, 0, pe_tensor_bytes(&s->vectors[s->table]));
}

/* A million rows through one block. */
static void run_stream(struct state *s) {
    struct pe_positions positions;
    struct pe_error err = {0};
    if (pe_positions_range(&positions, 0, STREAM, 1, &err)) {
        abort();
    }
    for (size_t row = 0; row < STREAM; row += STREAM_ROWS) {
        pe_encode_rows(s->plan[MANY], &positions, PE_DTYPE_F32, row, STREAM_ROWS, s->vectors[MANY].data);
    }
}

static void run_stream_memset(struct state *s) {
    char *block = s->vectors[MANY].data;
    for (size_t row = 0; row < STREAM; row += STREAM_ROWS) {
        memset(block, (int)row, STREAM_ROWS * 1024 * sizeof(float));
    }
}

static void run_plan(struct state *s) {
    struct pe_error err = {0};
    struct pe_plan *plan = NULL;
    if (pe_plan_open(&plan, &s->spec, &err)) {
        abort();
    }
    pe_plan_close(plan);
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
    int table;
    int pace;
    const enum pe_instructions *limit;                       /* NULL: what there is */
    void (*ours)(struct state *), (*theirs)(struct state *); /* both NULL: the time of ours */
    const char *torch;                                       /* what it is asked for */
} rows[] = {
#define ENCODE(i) .table = (i), .ours = run_encode
#define SMALL(i)  ENCODE(i), .pace = SHORT
#define SET(set)                                                                                             \
    .limit = &(const enum pe_instructions) {                                                                 \
        PE_INSTRUCTIONS_##set                                                                                \
    }
    {"sinusoidal_512/memset", SMALL(TABLE), .theirs = run_memset},
    {"sinusoidal_512/torch", SMALL(TABLE), .torch = "sinusoidal 512 512"},
    {"sinusoidal_512/numpy", SMALL(TABLE), .torch = "sinusoidal_numpy 512 512"},
    {"sinusoidal_512_avx2/torch", SMALL(TABLE), .torch = "sinusoidal 512 512", SET(AVX2)},
    {"sinusoidal_512_plain/torch", SMALL(TABLE), .torch = "sinusoidal 512 512", SET(PLAIN)},
    {"sinusoidal_list_512/memset", SMALL(LIST), .theirs = run_memset},
    {"sinusoidal_list_512/torch", SMALL(LIST), .torch = "sinusoidal_list 512 512"},
    {"sinusoidal_list_512_avx2/torch", SMALL(LIST), .torch = "sinusoidal_list 512 512", SET(AVX2)},
    {"sinusoidal_list_512_plain/torch", SMALL(LIST), .torch = "sinusoidal_list 512 512", SET(PLAIN)},
    {"sinusoidal_4096x1024/nt_fill", ENCODE(MANY), .theirs = run_fill},
    {"sinusoidal_4096x1024/torch", ENCODE(MANY), .torch = "sinusoidal 4096 1024"},
    {"sinusoidal_65536x1024/nt_fill", ENCODE(MOST), .theirs = run_fill, .pace = LONG},
    {"sinusoidal_65536x1024/torch", ENCODE(MOST), .torch = "sinusoidal 65536 1024", .pace = LONG},
    {"sinusoidal_stream/memset", MANY, .ours = run_stream, .theirs = run_stream_memset, .pace = LONG},
    {"plan_1024_time", .ours = run_plan, .pace = SHORT},
    {"number_write/snprintf", .ours = run_write, .theirs = run_printf},
    {"number_read/strtod", .ours = run_read, .theirs = run_strtod}, /* of what was written */
};

/* Of one of some runs. */
static double timed(void (*run)(struct state *), struct state *s, unsigned runs) {
    run(s); /* what was measured before may have taken the caches */
    double start = rounds_now();
    for (unsigned i = 0; i < runs; i++) {
        run(s);
    }
    return (rounds_now() - start) / runs;
}

static void give_up(const struct pe_error *err) {
    fprintf(stderr, "%s: %s\n", err->path, err->text);
    exit(1);
}

static void spec_make(struct state *s, const char *d_model) {
    struct pe_error err = {0};
    if (pe_spec_init(s->arena, &s->spec, "sinusoidal", &err) ||
        pe_spec_set(s->arena, &s->spec, "d_model", d_model, &err)) {
        give_up(&err);
    }
}

/* The plan of a table, for the instruction set that was chosen, and the work. */
static void table_open(struct state *s, int i) {
    struct pe_error err = {0};
    struct pe_positions positions;
    const size_t n = tables[i].rows;
    double *places = calloc(n, sizeof *places);
    if (!places || pe_positions_range(&positions, 0, (double)n, 1, &err)) {
        give_up(&err);
    }
    for (size_t row = 0; row < n; row++) {
        places[row] = (double)(row * 2654435761U % 65521);
    }
    if (tables[i].scattered) {
        positions = (struct pe_positions){.length = n, .axes = 1, .list = places}; /* for the process */
    } else {
        free(places);
    }
    spec_make(s, tables[i].d_model);
    pe_plan_close(s->plan[i]);
    if (pe_plan_open(&s->plan[i], &s->spec, &err)) {
        give_up(&err);
    }
    if (pe_encode_open(s->arena, &s->work[i], &s->vectors[i], s->plan[i], &positions, PE_DTYPE_F32, &err)) {
        give_up(&err);
    }
}

static void measure(const struct row *row, struct state *s) {
    double ours[MOST_ROUNDS], ratio[MOST_ROUNDS];
    const size_t n = paces[row->pace].rounds;
    const unsigned runs = paces[row->pace].runs;
    for (size_t i = 0; i < n; i++) {
        ours[i] = timed(row->ours, s, runs);
        if (row->torch) {
            ratio[i] = torch_ms(&s->torch, row->torch, runs) / ours[i];
        } else {
            ratio[i] = row->theirs ? timed(row->theirs, s, runs) / ours[i] : ours[i] * 1e3; /* microseconds */
        }
    }
    rounds_print(row->name, rounds_median(ours, n), rounds_median(ratio, n));
}

static void row_run(const struct row *row, struct state *s) {
    instructions_limit(PE_INSTRUCTIONS_COUNT - 1);
    if (row->torch && !s->torch.from) {
        rounds_missing(row->name, "python3-torch");
        return;
    }
    if (row->limit && *row->limit > pe_instructions()) {
        rounds_missing(row->name, "such a processor");
        return;
    }
    if (row->limit) {
        instructions_limit(*row->limit);
    }
    struct pe_error err = {0};
    const struct pe_allocator pages = {pages_alloc, pages_release, NULL};
    s->arena = pe_arena_open((size_t)512 << 20, &pages, &err);
    if (!s->arena) {
        give_up(&err);
    }
    s->table = row->table;
    table_open(s, row->table);
    spec_make(s, "1024");
    measure(row, s);
    pe_arena_close(s->arena);
}

int main(void) {
    struct state s = {.torch = torch_begin()};
    s.floats = calloc(T * D, sizeof(float));
    s.text = calloc(T * D, PE_NUMBER_ROOM);
    if (!s.floats || !s.text) {
        return 1;
    }
    for (size_t i = 0; i < T * D; i++) {
        s.floats[i] = (float)(i * 2654435761U % 65521) * 0x1p-16F;
    }
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        row_run(&rows[i], &s);
    }
    torch_end(&s.torch);
    free(s.floats);
    free(s.text);
    return 0;
}
