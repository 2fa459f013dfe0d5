/* SPDX-License-Identifier: MIT
 *
 * The counters behind struct metrics and the lists of their labels; private to metrics*.c.
 */
#ifndef METRICS_STATE_H
#define METRICS_STATE_H

#include "metrics.h"

#include <stdatomic.h>

#define METRICS_METHODS 8
#define METRICS_CODES   24
#define METRICS_EDGES   14 /* at most, of a histogram */

extern const char *const metrics_methods[METRICS_METHODS]; /* the last one is "other" */
extern const char *const metrics_reasons[METRICS_REASON_COUNT];

struct metrics_code {
    int status;  /* 0: any other */
    bool always; /* shown from the start */
};
extern const struct metrics_code metrics_codes[METRICS_CODES];

/* Upper edge of a bucket, inclusive, and as the label le; above the last one is le="+Inf". */
struct metrics_edge {
    int64_t upper;
    const char *le;
};
extern const struct metrics_edge metrics_second_edges[]; /* nanoseconds, written as seconds */
extern const size_t metrics_n_second_edges;
extern const struct metrics_edge metrics_byte_edges[];
extern const size_t metrics_n_byte_edges;

struct histogram {
    atomic_uint_least64_t buckets[METRICS_EDGES + 1]; /* not yet cumulative */
    atomic_uint_least64_t sum;
};

struct metrics_route {
    char *path;
    bool own[METRICS_METHODS]; /* it is named with that method */
    atomic_uint_least64_t requests[METRICS_METHODS][METRICS_CODES];
    struct histogram duration;
};

struct metrics {
    size_t n_routes;
    struct metrics_route *routes; /* the last one is "unmatched" */
    atomic_int_least64_t values[METRICS_VALUE_COUNT];
    atomic_uint_least64_t rejected[METRICS_REASON_COUNT];
    struct histogram queue_wait, compute, bytes_in, bytes_out;
    int64_t start_ns; /* wall clock */
};

#endif
