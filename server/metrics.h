/* SPDX-License-Identifier: MIT
 *
 * Counters, gauges and histograms for Prometheus. Label values come from fixed lists only, so no client can
 * make the number of series grow. All updates are relaxed atomics: any thread, no lock.
 */
#ifndef METRICS_H
#define METRICS_H

#include "posenc.h"

#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct metrics;

/* HANDLE. `routes` are the names that call_route_name may give, "GET /v1/encode" (copied); "unmatched" is
 * always there. NULL on failure. */
struct metrics *metrics_open(const char *const *routes, size_t n_routes, struct pe_error *err);
void metrics_close(struct metrics *metrics);

/* Metrics of one number without labels. */
enum metrics_value {
    METRICS_REQUESTS_IN_FLIGHT, /* gauges: metrics_add with 1 and -1, or metrics_set */
    METRICS_CONNECTIONS,
    METRICS_QUEUE_DEPTH,
    METRICS_QUEUE_CAPACITY,
    METRICS_STREAMS_ACTIVE,
    METRICS_WORKERS,
    METRICS_WORKERS_BUSY,
    METRICS_READY,             /* 1 or 0 */
    METRICS_TABLES,            /* loaded */
    METRICS_TABLE_BYTES,       /* of their data */
    METRICS_PLANS,             /* kept */
    METRICS_PLAN_BYTES,        /* of these */
    METRICS_CONNECTIONS_TOTAL, /* counters: metrics_add with a positive number */
    METRICS_STREAMS_TOTAL,
    METRICS_PLAN_HITS,
    METRICS_PLAN_MISSES,
    METRICS_VALUE_COUNT
};
void metrics_add(struct metrics *metrics, enum metrics_value value, int64_t amount);
void metrics_set(struct metrics *metrics, enum metrics_value value, int64_t amount);
int64_t metrics_get(const struct metrics *metrics, enum metrics_value value);

/* Requests that were not served, by reason. Counted beside (not in place of) metrics_request. */
enum metrics_reason {
    METRICS_QUEUE_FULL,
    METRICS_STREAMS_FULL,
    METRICS_CLIENT_LIMIT,
    METRICS_TOO_LARGE,
    METRICS_DRAINING,
    METRICS_DEADLINE,
    METRICS_IDLE_TIMEOUT,
    METRICS_MALFORMED,
    METRICS_CLIENT_GONE,
    METRICS_REASON_COUNT
};
void metrics_reject(struct metrics *metrics, enum metrics_reason reason);

/* One finished request. */
struct metrics_request {
    const char *route;  /* call_route_name; NULL or a name that is not among the routes = "unmatched" */
    const char *method; /* as sent; one that HTTP does not name counts as "other" */
    int status;
    uint64_t bytes_in, bytes_out; /* bodies */
    int64_t duration_ns;
    int64_t queue_ns, compute_ns; /* -1 = was not queued, did not compute */
};
void metrics_request(struct metrics *metrics, const struct metrics_request *request);

/* Enough bytes for a metrics_write that follows soon. */
size_t metrics_bound(const struct metrics *metrics);
/* The exposition into text, no terminating zero; returns the length. What does not fit is left out by whole
 * lines. */
size_t metrics_write(const struct metrics *metrics, char *text, size_t size);

#endif
