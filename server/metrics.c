/* SPDX-License-Identifier: MIT
 *
 * Counting. The lists of label values are here; what a request adds to is found by a walk over short lists,
 * as there are some fifty routes. No update takes a lock or waits for another one.
 */
#include "metrics_state.h"

#include "posenc_fields.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Lists ------------------------------------------------------------------------------------------- */

const char *const metrics_methods[METRICS_METHODS] = {"GET",    "HEAD",    "POST",  "PUT",
                                                      "DELETE", "OPTIONS", "PATCH", "other"};

const struct metrics_code metrics_codes[METRICS_CODES] = {
    {200, true},  {204, false}, {206, false}, {304, false}, {400, true},  {401, false},
    {403, false}, {404, true},  {405, false}, {406, false}, {408, false}, {409, false},
    {411, false}, {412, false}, {413, false}, {415, false}, {417, false}, {429, true},
    {499, false}, {500, true},  {501, false}, {503, true},  {504, true},  {0, false}, /* 0: any other */
};

const char *const metrics_reasons[METRICS_REASON_COUNT] = {
    [METRICS_QUEUE_FULL] = "queue_full",     [METRICS_STREAMS_FULL] = "streams_full",
    [METRICS_CLIENT_LIMIT] = "client_limit", [METRICS_TOO_LARGE] = "too_large",
    [METRICS_DRAINING] = "draining",         [METRICS_DEADLINE] = "deadline",
    [METRICS_IDLE_TIMEOUT] = "idle_timeout", [METRICS_MALFORMED] = "malformed",
    [METRICS_CLIENT_GONE] = "client_gone",
};

const struct metrics_edge metrics_second_edges[] = {
    {25000, "2.5e-05"},  {100000, "0.0001"},  {250000, "0.00025"}, {500000, "0.0005"},    {1000000, "0.001"},
    {2500000, "0.0025"}, {5000000, "0.005"},  {10000000, "0.01"},  {25000000, "0.025"},   {100000000, "0.1"},
    {250000000, "0.25"}, {1000000000, "1.0"}, {2500000000, "2.5"}, {10000000000, "10.0"},
};
const struct metrics_edge metrics_byte_edges[] = {
    {256, "256"},           {1024, "1024"},         {4096, "4096"},           {16384, "16384"},
    {65536, "65536"},       {262144, "262144"},     {1048576, "1048576"},     {4194304, "4194304"},
    {16777216, "16777216"}, {67108864, "67108864"}, {268435456, "268435456"},
};
const size_t metrics_n_second_edges = PE_COUNT(metrics_second_edges),
             metrics_n_byte_edges = PE_COUNT(metrics_byte_edges);
_Static_assert(PE_COUNT(metrics_second_edges) <= METRICS_EDGES, "the edges of times fit");
_Static_assert(PE_COUNT(metrics_byte_edges) <= METRICS_EDGES, "the edges of sizes fit");

/* ---- Opening ----------------------------------------------------------------------------------------- */

static size_t method_index(const char *method, size_t length) {
    size_t i = 0;
    while (i < METRICS_METHODS - 1 &&
           (strlen(metrics_methods[i]) != length || memcmp(metrics_methods[i], method, length) != 0)) {
        i++;
    }
    return i;
}

/* "GET /v1/encode" is its path /v1/encode with the method GET; a name without a space has none. */
static const char *path_of(const char *name) {
    const char *space = strchr(name, ' ');
    return space ? space + 1 : name;
}

static struct metrics_route *find_route(const struct metrics *metrics, const char *name) {
    const char *path = name ? path_of(name) : "";
    size_t i = 0;
    while (i + 1 < metrics->n_routes && strcmp(metrics->routes[i].path, path) != 0) {
        i++;
    }
    return &metrics->routes[i];
}

/* Routes of one path share one row: their series would have the same labels. */
static bool add_route(struct metrics *metrics, const char *name) {
    const char *path = path_of(name);
    size_t i = 0;
    while (i < metrics->n_routes && strcmp(metrics->routes[i].path, path) != 0) {
        i++;
    }
    struct metrics_route *route = &metrics->routes[i];
    if (i == metrics->n_routes) {
        size_t size = strlen(path) + 1;
        route->path = malloc(size);
        if (!route->path) {
            return false;
        }
        memcpy(route->path, path, size);
        metrics->n_routes++;
    }
    route->own[path == name ? 0 : method_index(name, (size_t)(path - 1 - name))] = true;
    return true;
}

static bool add_routes(struct metrics *metrics, const char *const *routes, size_t n_routes) {
    metrics->routes = calloc(n_routes + 1, sizeof *metrics->routes);
    bool good = metrics->routes != NULL;
    for (size_t i = 0; good && i < n_routes; i++) {
        good = strcmp(path_of(routes[i]), "unmatched") == 0 || add_route(metrics, routes[i]);
    }
    return good && add_route(metrics, "unmatched");
}

struct metrics *metrics_open(const char *const *routes, size_t n_routes, struct pe_error *err) {
    for (size_t i = 0; i < n_routes; i++) {
        if (strpbrk(routes[i], "\"\\\n")) {
            pe_fail(err, PE_ERR_SYNTAX, "routes", "a name must hold no quote, backslash or line break");
            return NULL;
        }
    }
    struct metrics *metrics = calloc(1, sizeof *metrics);
    if (!metrics || !add_routes(metrics, routes, n_routes)) {
        pe_fail(err, PE_ERR_MEMORY, "", "no memory for the metrics of %zu routes", n_routes);
        metrics_close(metrics);
        return NULL;
    }
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    metrics->start_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    return metrics;
}

void metrics_close(struct metrics *metrics) {
    if (!metrics) {
        return;
    }
    for (size_t i = 0; i < metrics->n_routes; i++) {
        free(metrics->routes[i].path);
    }
    free(metrics->routes);
    free(metrics);
}

/* ---- Counting ---------------------------------------------------------------------------------------- */

static void count(atomic_uint_least64_t *counter, uint64_t amount) {
    atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}

static void observe(struct histogram *histogram, const struct metrics_edge *edges, size_t n_edges,
                    uint64_t value) {
    size_t i = 0;
    while (i < n_edges && value > (uint64_t)edges[i].upper) {
        i++;
    }
    count(&histogram->buckets[i], 1);
    count(&histogram->sum, value);
}

static void observe_ns(struct histogram *histogram, int64_t ns) {
    if (ns >= 0) {
        observe(histogram, metrics_second_edges, metrics_n_second_edges, (uint64_t)ns);
    }
}

void metrics_add(struct metrics *metrics, enum metrics_value value, int64_t amount) {
    atomic_fetch_add_explicit(&metrics->values[value], amount, memory_order_relaxed);
}

void metrics_set(struct metrics *metrics, enum metrics_value value, int64_t amount) {
    atomic_store_explicit(&metrics->values[value], amount, memory_order_relaxed);
}

int64_t metrics_get(const struct metrics *metrics, enum metrics_value value) {
    return atomic_load_explicit(&metrics->values[value], memory_order_relaxed);
}

void metrics_reject(struct metrics *metrics, enum metrics_reason reason) {
    count(&metrics->rejected[reason], 1);
}

void metrics_request(struct metrics *metrics, const struct metrics_request *request) {
    struct metrics_route *route = find_route(metrics, request->route);
    const char *method = request->method ? request->method : "";
    size_t code = 0;
    while (code < METRICS_CODES - 1 && metrics_codes[code].status != request->status) {
        code++;
    }
    count(&route->requests[method_index(method, strlen(method))][code], 1);
    observe_ns(&route->duration, request->duration_ns);
    observe_ns(&metrics->queue_wait, request->queue_ns);
    observe_ns(&metrics->compute, request->compute_ns);
    observe(&metrics->bytes_in, metrics_byte_edges, metrics_n_byte_edges, request->bytes_in);
    observe(&metrics->bytes_out, metrics_byte_edges, metrics_n_byte_edges, request->bytes_out);
}
