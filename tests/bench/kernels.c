/* SPDX-License-Identifier: MIT
 *
 * Ratios between two things measured in one process, in turn, so that the machine's mood cancels: the median
 * over rounds. Each row is one pair. Times are of this thread's CPU.
 */
#include "posenc_fields.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 15
#define T      512
#define D      512

struct state {
    struct pe_work encode;
    struct pe_tensor vectors;
    float *floats;
    char *text;
};

static double cpu_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void run_encode(struct state *s) {
    pe_work_run(&s->encode);
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
    const char *what, *against;
    void (*ours)(struct state *), (*theirs)(struct state *);
} rows[] = {
    {"sinusoidal float32 512x512", "memset of the same bytes", run_encode, run_memset},
    {"JSON write of float32", "snprintf %.9g", run_write, run_printf},
    {"JSON read of numbers", "strtod", run_read, run_strtod},
};

static double timed(void (*run)(struct state *), struct state *s) {
    double start = cpu_ms();
    run(s);
    return cpu_ms() - start;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values) {
    qsort(values, ROUNDS, sizeof *values, by_value);
    return values[ROUNDS / 2];
}

static void measure(const struct row *row, struct state *s) {
    double ours[ROUNDS], ratio[ROUNDS];
    timed(row->ours, s);
    timed(row->theirs, s);
    for (int i = 0; i < ROUNDS; i++) {
        ours[i] = timed(row->ours, s);
        ratio[i] = timed(row->theirs, s) / ours[i];
    }
    double speed = median(ratio);
    printf("%-28s %9.3f ms   %7.3f x the speed of %s\n", row->what, median(ours), speed, row->against);
}

int main(void) {
    struct pe_error err = {0};
    struct state s = {0};
    struct pe_spec spec;
    struct pe_plan *plan = NULL;
    struct pe_positions positions;
    struct pe_arena *arena = pe_arena_open((size_t)256 << 20, NULL, &err);
    if (!arena || pe_spec_init(arena, &spec, "sinusoidal", &err) ||
        pe_spec_set(arena, &spec, "d_model", "512", &err) || pe_plan_open(&plan, &spec, &err) ||
        pe_positions_range(&positions, 0, T, 1, &err) ||
        pe_encode_open(arena, &s.encode, &s.vectors, plan, &positions, PE_DTYPE_F32, &err)) {
        fprintf(stderr, "%s: %s\n", err.path, err.text);
        return 1;
    }
    s.floats = s.vectors.data;
    s.text = calloc(T * D, PE_NUMBER_ROOM);
    run_encode(&s);
    for (size_t i = 0; s.text && i < PE_COUNT(rows); i++) {
        measure(&rows[i], &s);
        run_encode(&s); /* the next row reads what this one may have cleared */
        run_write(&s);
    }
    free(s.text);
    pe_plan_close(plan);
    pe_arena_close(arena);
    return 0;
}
