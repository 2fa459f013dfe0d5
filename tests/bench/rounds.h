/* SPDX-License-Identifier: MIT
 *
 * Rounds of a benchmark: two things are timed by turns, so that what else the machine does meets both, and the
 * median of the ratios is told.
 */
#ifndef ROUNDS_H
#define ROUNDS_H

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

#endif
