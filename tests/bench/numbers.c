/* SPDX-License-Identifier: MIT
 *
 * Numbers as JSON text against the libraries people use for that: jansson, which reads the rest of our requests,
 * and simdjson (where it was installed when this was built; the fastest reader there is, but it needs the whole
 * text in memory first), and python's json. The document is {"model": .., "embeddings": [[512] x 512], "scale": true} with the vectors
 * of the sinusoidal encoding as shortest text, and ours is read in chunks as the network brings them. As in
 * kernels.c the two are measured in turn, and what counts is the median over rounds, of one thread's CPU time.
 */
#include "bench/rounds.h"
#include "bench/torch.h"
#include "instructions.h"
#include "numbers_simdjson.h"
#include "posenc_fields.h"
#include "wire/lift.h"

#include <jansson.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 15
#define T      512
#define D      512
#define CHUNK  ((size_t)32 << 10)

struct state {
    float *floats;    /* [T, D] */
    char *text;       /* where numbers are written */
    char *document;   /* and one that is read, with room behind it as simdjson wants */
    size_t n, length; /* numbers and bytes of the document */
    size_t written;
    float *read;
    struct torch torch;
};

/* ---- Writing ------------------------------------------------------------------------------------------- */

static void write_batch(struct state *s) {
    s->written = pe_numbers_write_f32(s->text, s->floats, T * D);
}

static void write_each(struct state *s) {
    char *p = s->text;
    for (size_t i = 0; i < T * D; i++) {
        p += pe_number_write_f32(p, s->floats[i]);
        *p++ = ',';
    }
    s->written = (size_t)(p - s->text);
}

static void write_jansson(struct state *s) {
    json_t *list = json_array();
    for (size_t i = 0; i < T * D; i++) {
        json_array_append_new(list, json_real((double)s->floats[i]));
    }
    char *text = json_dumps(list, JSON_REAL_PRECISION(9) | JSON_COMPACT);
    if (!text) {
        abort();
    }
    free(text);
    json_decref(list);
}

/* ---- Reading ------------------------------------------------------------------------------------------- */

static bool watches(void *context, const char *const *keys, size_t depth) {
    (void)context;
    return depth == 1 && strcmp(keys[0], "embeddings") == 0;
}

static void read_lift(struct state *s) {
    const struct lift_options options = {
        .envelope_limit = 1 << 16, .value_limit = (size_t)1 << 30, .watches = watches};
    struct pe_error err = {0};
    struct lift *lift = lift_open(&options, &err);
    for (size_t at = 0, n; at < s->length && !err.code; at += n) {
        n = s->length - at < CHUNK ? s->length - at : CHUNK;
        if (lift_feed(lift, s->document + at, n, &err)) {
            break;
        }
    }
    if (err.code || lift_finish(lift, &err)) {
        fprintf(stderr, "%s: %s\n", err.path, err.text);
        abort();
    }
    struct lift_array *array = lift_find(lift, "embeddings");
    const float *singles = lift_array_singles(array);
    if (!singles || array->n != s->n) {
        abort();
    }
    s->read[0] = singles[array->n - 1];
    lift_close(lift);
}

static void read_jansson(struct state *s) {
    json_t *root = json_loadb(s->document, s->length, 0, NULL), *rows = json_object_get(root, "embeddings");
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        for (size_t j = 0; j < json_array_size(row); j++) {
            s->read[n++] = (float)json_number_value(json_array_get(row, j));
        }
    }
    json_decref(root);
    if (n != s->n) {
        abort();
    }
}

static void read_simdjson(struct state *s) {
    if (numbers_simdjson_read(s->document, s->length, s->read) != s->n) {
        abort();
    }
}

/* ---- Measuring ----------------------------------------------------------------------------------------- */

static const struct row {
    const char *name;
    void (*ours)(struct state *), (*theirs)(struct state *);
    enum pe_instructions limit; /* what ours may use */
    const char *python;         /* what it is asked for, where theirs is NULL */
} rows[] = {
    {"json_write_each/jansson", write_each, write_jansson, PE_INSTRUCTIONS_PLAIN, NULL},
    {"json_write_plain/jansson", write_batch, write_jansson, PE_INSTRUCTIONS_PLAIN, NULL},
    {"json_write_avx512/jansson", write_batch, write_jansson, PE_INSTRUCTIONS_AVX512, NULL},
    {"json_read_plain/jansson", read_lift, read_jansson, PE_INSTRUCTIONS_PLAIN, NULL},
    {"json_read_sse/jansson", read_lift, read_jansson, PE_INSTRUCTIONS_AVX2, NULL},
    {"json_read_plain/simdjson", read_lift, read_simdjson, PE_INSTRUCTIONS_PLAIN, NULL},
    {"json_read_sse/simdjson", read_lift, read_simdjson, PE_INSTRUCTIONS_AVX2, NULL},
    {"json_write/python", write_batch, NULL, PE_INSTRUCTIONS_PLAIN, "json_write 512 512"},
    {"json_read/python", read_lift, NULL, PE_INSTRUCTIONS_PLAIN, "json_read 512 512"},
};

/* What the one before has freed in small pieces, malloc puts together at the next large request: not within the
 * time of the next. */
static double timed(void (*run)(struct state *), struct state *s) {
    void *volatile large = malloc((size_t)1 << 20);
    free(large);
    double start = rounds_now();
    run(s);
    return rounds_now() - start;
}

static double timed_theirs(const struct row *row, struct state *s) {
    return row->theirs ? timed(row->theirs, s) : torch_ms(&s->torch, row->python, 1);
}

/* What the row needs and this machine has not, or NULL. */
static const char *missing(const struct row *row, const struct state *s) {
    if (pe_instructions() < row->limit) {
        return "such instructions";
    }
    if (row->theirs == read_simdjson && !*numbers_simdjson_version) {
        return "simdjson";
    }
    return row->python && !s->torch.from ? "python3-torch" : NULL;
}

static void measure(const struct row *row, struct state *s) {
    double ours[ROUNDS], ratio[ROUNDS];
    instructions_limit(row->limit);
    if (missing(row, s)) {
        rounds_missing(row->name, missing(row, s));
        return;
    }
    timed(row->ours, s);
    timed_theirs(row, s);
    for (int i = 0; i < ROUNDS; i++) {
        ours[i] = timed(row->ours, s);
        ratio[i] = timed_theirs(row, s) / ours[i];
    }
    rounds_print(row->name, rounds_median(ours, ROUNDS), rounds_median(ratio, ROUNDS));
}

/* ---- Memory -------------------------------------------------------------------------------------------- */

/* A line of /proc/self/status, in bytes. */
static double status_bytes(const char *name) {
    char line[200];
    double kilobytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, name, strlen(name)) == 0) {
            kilobytes = strtod(line + strlen(name) + 1, NULL);
        }
    }
    if (file) {
        fclose(file);
    }
    return kilobytes * 1024;
}

/* The most memory that reading takes beyond what was held before, in a process of its own. */
static void measure_memory(struct state *s) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        FILE *file = fopen("/proc/self/clear_refs", "w");
        if (file) {
            fputs("5", file); /* the peak begins here */
            fclose(file);
        }
        double before = status_bytes("VmRSS");
        read_lift(s);
        rounds_print("json_read_number_bytes", 0, (status_bytes("VmHWM") - before) / (double)s->n);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

/* ---- The document -------------------------------------------------------------------------------------- */

static void document_make(struct state *s, size_t n_rows) {
    static const char head[] = "{\"model\":\"posenc\",\"embeddings\":[", tail[] = "],\"scale\":true}";
    free(s->document);
    s->document = calloc(n_rows * (D * 16 + 2) + 4096, 1);
    free(s->read);
    s->read = malloc(n_rows * D * sizeof *s->read);
    if (!s->document || !s->read) {
        abort();
    }
    char *p = s->document;
    memcpy(p, head, sizeof head - 1);
    p += sizeof head - 1;
    for (size_t row = 0; row < n_rows; row++) {
        *p++ = '[';
        p += pe_numbers_write_f32(p, s->floats + row % T * D, D);
        p[-1] = ']';
        *p++ = ',';
    }
    memcpy(p - 1, tail, sizeof tail - 1);
    s->length = (size_t)(p - 1 - s->document) + sizeof tail - 1;
    s->n = n_rows * D;
}

static int floats_make(struct pe_arena *arena, struct state *s, struct pe_error *err) {
    struct pe_positions positions;
    struct pe_tensor vectors;
    struct pe_work work;
    struct pe_spec spec;
    struct pe_plan *plan = NULL;
    if (pe_positions_range(&positions, 0, T, 1, err) || pe_spec_init(arena, &spec, "sinusoidal", err) ||
        pe_spec_set(arena, &spec, "d_model", "512", err) || pe_plan_open(&plan, &spec, err) ||
        pe_encode_open(arena, &work, &vectors, plan, &positions, PE_DTYPE_F32, err)) {
        return err->code;
    }
    pe_work_run(&work);
    s->floats = vectors.data;
    pe_plan_close(plan);
    return PE_OK;
}

int main(void) {
    struct pe_error err = {0};
    struct state s = {.torch = torch_begin()};
    struct pe_arena *arena = pe_arena_open((size_t)64 << 20, NULL, &err);
    if (!arena || floats_make(arena, &s, &err)) {
        fprintf(stderr, "%s: %s\n", err.path, err.text);
        return 1;
    }
    mallopt(M_MMAP_THRESHOLD,
            32 << 20); /* for all alike memory is warm: it is not given back between rounds */
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    s.text = calloc(T * D + PE_NUMBER_ROOM, 16);
    document_make(&s, T);
    for (size_t i = 0; s.text && i < PE_COUNT(rows); i++) {
        measure(&rows[i], &s);
    }
    write_batch(&s);
    rounds_print("json_write_number_bytes", 0, (double)s.written / (T * D)); /* with its comma */
    document_make(&s, (size_t)8 * T);
    measure_memory(&s);
    torch_end(&s.torch);
    free(s.text);
    free(s.read);
    free(s.document);
    pe_arena_close(arena);
    return 0;
}
