/* SPDX-License-Identifier: MIT
 *
 * Rounds of a benchmark: two things are timed by turns, so that what else the machine does meets both, and the
 * median of the ratios is told. A benchmark prints one JSON object a line, and nothing else, to standard output;
 * bench.py beside this makes a table of them, with the bars of bars.json.
 */
#ifndef ROUNDS_H
#define ROUNDS_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Processor time of this thread, in milliseconds. */
static inline double rounds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static inline int rounds_by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of n values, which are sorted. */
static inline double rounds_median(double *values, size_t n) {
    qsort(values, n, sizeof *values, rounds_by_value);
    return values[n / 2];
}

/* `name` is ours/peer. ratio: how many times as fast as the peer we are, or, where the name ends in _time or
 * _bytes, what it says. ms: what ours takes, where that is something. */
static inline void rounds_print(const char *name, double ms, double ratio) {
    printf("{\"name\": \"%s\", \"ms\": %.6g, \"ratio\": %.6g}\n", name, ms, ratio);
    fflush(stdout);
}

/* The row cannot be measured here: `what` is not there. */
static inline void rounds_missing(const char *name, const char *what) {
    printf("{\"name\": \"%s\", \"missing\": \"%s\"}\n", name, what);
    fflush(stdout);
}

#endif
