/* SPDX-License-Identifier: MIT
 *
 * One const row per metric (metric_rows); a row names its writer, so a new number is a row and, where it is a
 * plain one, a value in the enum.
 *
 * Series. Labels come from fixed lists: the routes given at the start, the methods, the statuses. A series of
 * posenc_http_requests_total is shown from the start at 0 for the method of its route and the statuses that
 * alerts look at (`always` in metrics.c), so that a rate sees the first failure; the other combinations,
 * thousands of them that never happen, are shown once they have. All other series exist from the start.
 *
 * Consistency. Numbers are read while others count. A histogram's count is the sum of its buckets, not a
 * counter of its own, so `le="+Inf"` and _count agree always; the sum may be one observation ahead.
 */
#include "metrics_state.h"

#include "config.h"
#include "metrics_process.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static uint64_t read_counter(const atomic_uint_least64_t *counter) {
    return atomic_load_explicit(counter, memory_order_relaxed);
}

#define SLACK 16384 /* for series that appear between measuring and writing */

/* In measure mode nothing is written, and numbers are as long as they can get. */
struct out {
    char *data;
    size_t size, length;
    bool measure, full;
};

PE_PRINTF(2, 3) static void put(struct out *out, const char *format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    size_t length = n < 0 || (size_t)n >= sizeof line ? 0 : (size_t)n;
    if (out->measure) {
        out->length += length;
    } else if (!out->full && length <= out->size - out->length) {
        memcpy(out->data + out->length, line, length);
        out->length += length;
    } else {
        out->full = true;
    }
}

static unsigned long long shown(const struct out *out, uint64_t number) {
    return out->measure ? UINT64_MAX : number;
}

/* One sample. `labels` is "" or {...}. */
static void put_sample(struct out *out, const char *name, const char *labels, int64_t number) {
    put(out, "%s%s %lld\n", name, labels, out->measure ? INT64_MIN : (long long)number);
}

static void put_seconds(struct out *out, const char *name, const char *labels, uint64_t ns) {
    unsigned long long n = shown(out, ns);
    put(out, "%s%s %llu.%09llu\n", name, labels, n / 1000000000, n % 1000000000);
}

struct metric {
    const char *name, *type, *help;
    void (*write)(struct out *out, const struct metric *row, const struct metrics *metrics,
                  const struct metrics_process *process);
    size_t which; /* enum metrics_value, or the offset of a member of struct metrics or metrics_process */
    bool bytes;   /* a histogram of sizes, else of times */
};

#define WRITER(name)                                                                                         \
    static void name(struct out *out, const struct metric *row, const struct metrics *metrics,               \
                     const struct metrics_process *process)

/* One histogram; `label` is "" or `route="..."`. */
static void put_histogram(struct out *out, const struct metric *row, const char *label,
                          const struct histogram *histogram) {
    const struct metrics_edge *edges = row->bytes ? metrics_byte_edges : metrics_second_edges;
    size_t n_edges = row->bytes ? metrics_n_byte_edges : metrics_n_second_edges;
    uint64_t total = 0;
    const char *comma = label[0] ? "," : "";
    char name[96], labels[200] = "";
    for (size_t i = 0; i <= n_edges; i++) {
        total += read_counter(&histogram->buckets[i]);
        put(out, "%s_bucket{%s%sle=\"%s\"} %llu\n", row->name, label, comma,
            i < n_edges ? edges[i].le : "+Inf", shown(out, total));
    }
    if (label[0]) {
        snprintf(labels, sizeof labels, "{%s}", label);
    }
    snprintf(name, sizeof name, "%s_sum", row->name);
    if (row->bytes) {
        put(out, "%s%s %llu\n", name, labels, shown(out, read_counter(&histogram->sum)));
    } else {
        put_seconds(out, name, labels, read_counter(&histogram->sum));
    }
    put(out, "%s_count%s %llu\n", row->name, labels, shown(out, total));
}

WRITER(write_histogram) {
    (void)process;
    put_histogram(out, row, "", (const void *)((const char *)metrics + row->which));
}

WRITER(write_durations) {
    (void)process;
    for (size_t i = 0; i < metrics->n_routes; i++) {
        char label[160];
        snprintf(label, sizeof label, "route=\"%.140s\"", metrics->routes[i].path);
        put_histogram(out, row, label, &metrics->routes[i].duration);
    }
}

static void put_requests(struct out *out, const struct metric *row, const struct metrics_route *route,
                         size_t method) {
    for (size_t i = 0; i < METRICS_CODES; i++) {
        uint64_t n = read_counter(&route->requests[method][i]);
        char code[16] = "other";
        if (metrics_codes[i].status) {
            snprintf(code, sizeof code, "%d", metrics_codes[i].status);
        }
        if (n > 0 || (route->own[method] && metrics_codes[i].always)) {
            put(out, "%s{route=\"%.140s\",method=\"%s\",code=\"%s\"} %llu\n", row->name, route->path,
                metrics_methods[method], code, shown(out, n));
        }
    }
}

WRITER(write_requests) {
    (void)process;
    for (size_t i = 0; i < metrics->n_routes; i++) {
        for (size_t method = 0; method < METRICS_METHODS; method++) {
            put_requests(out, row, &metrics->routes[i], method);
        }
    }
}

WRITER(write_rejected) {
    (void)process;
    for (size_t i = 0; i < METRICS_REASON_COUNT; i++) {
        put(out, "%s{reason=\"%s\"} %llu\n", row->name, metrics_reasons[i],
            shown(out, read_counter(&metrics->rejected[i])));
    }
}

WRITER(write_value) {
    (void)process;
    put_sample(out, row->name, "", metrics_get(metrics, (enum metrics_value)row->which));
}

WRITER(write_build) {
    (void)metrics;
    (void)process;
#if defined(__clang__)
    const char *compiler = __VERSION__; /* names itself */
#elif defined(__GNUC__)
    const char *compiler = "gcc " __VERSION__;
#else
    const char *compiler = "unknown";
#endif
    char labels[240];
    snprintf(labels, sizeof labels, "{version=\"%s\",numerics=\"%d\",commit=\"%.40s\",compiler=\"%.80s\"}",
             pe_version(), PE_NUMERICS_VERSION, config_commit(), compiler);
    put_sample(out, row->name, labels, 1);
}

WRITER(write_start) {
    (void)process;
    put_seconds(out, row->name, "", (uint64_t)metrics->start_ns);
}

static int64_t process_number(const struct metric *row, const struct metrics_process *process) {
    return *(const int64_t *)(const void *)((const char *)process + row->which);
}

/* -1: not known, and then no sample. */
WRITER(write_process) {
    (void)metrics;
    int64_t number = process_number(row, process);
    if (number >= 0 || out->measure) {
        put_sample(out, row->name, "", number);
    }
}

WRITER(write_cpu) {
    (void)metrics;
    int64_t ns = process_number(row, process);
    if (ns >= 0 || out->measure) {
        put_seconds(out, row->name, "", (uint64_t)ns);
    }
}

#define VALUE(name_, type_, help_, value_)                                                                   \
    { .name = name_, .type = type_, .help = help_, .write = write_value, .which = value_ }
#define TIMES(name_, help_, member_)                                                                         \
    {                                                                                                        \
        .name = name_, .type = "histogram", .help = help_, .write = write_histogram,                         \
        .which = offsetof(struct metrics, member_)                                                           \
    }
#define SIZES(name_, help_, member_)                                                                         \
    {                                                                                                        \
        .name = name_, .type = "histogram", .help = help_, .write = write_histogram,                         \
        .which = offsetof(struct metrics, member_), .bytes = true                                            \
    }
#define PROCESS(name_, help_, member_)                                                                       \
    {                                                                                                        \
        .name = name_, .type = "gauge", .help = help_, .write = write_process,                               \
        .which = offsetof(struct metrics_process, member_)                                                   \
    }

/* clang-format off */
static const struct metric metric_rows[] = {
    {.name = "posenc_build_info", .type = "gauge", .help = "What was built, and by what.", .write = write_build},
    VALUE("posenc_ready", "gauge", "1 when requests are welcome, as /readyz says.", METRICS_READY),
    {.name = "posenc_http_requests_total", .type = "counter", .write = write_requests,
     .help = "Finished requests. Combinations that never happened are left out."},
    {.name = "posenc_http_request_duration_seconds", .type = "histogram", .write = write_durations,
     .help = "From the request's head to the end of its reply."},
    VALUE("posenc_http_requests_in_flight", "gauge", "Requests being received, computed or answered.",
          METRICS_REQUESTS_IN_FLIGHT),
    {.name = "posenc_http_rejected_total", .type = "counter", .write = write_rejected,
     .help = "Requests that were not served, or not to their end, by reason."},
    SIZES("posenc_http_request_size_bytes", "Bodies received.", bytes_in),
    SIZES("posenc_http_response_size_bytes", "Bodies sent.", bytes_out),
    VALUE("posenc_connections", "gauge", "Open connections.", METRICS_CONNECTIONS),
    VALUE("posenc_connections_total", "counter", "Connections accepted.", METRICS_CONNECTIONS_TOTAL),
    VALUE("posenc_queue_depth", "gauge", "Requests that wait for a worker.", METRICS_QUEUE_DEPTH),
    VALUE("posenc_queue_capacity", "gauge", "Requests that may wait for a worker.", METRICS_QUEUE_CAPACITY),
    TIMES("posenc_queue_wait_seconds", "Waiting for a worker, of the requests that were queued.", queue_wait),
    TIMES("posenc_compute_seconds", "Computing, of the requests that computed.", compute),
    VALUE("posenc_workers", "gauge", "Threads that compute.", METRICS_WORKERS),
    VALUE("posenc_workers_busy", "gauge", "Threads that are computing now.", METRICS_WORKERS_BUSY),
    VALUE("posenc_streams_active", "gauge", "Replies computed while they are sent.", METRICS_STREAMS_ACTIVE),
    VALUE("posenc_streams_total", "counter", "Streamed replies begun.", METRICS_STREAMS_TOTAL),
    VALUE("posenc_tables", "gauge", "Loaded tables.", METRICS_TABLES),
    VALUE("posenc_table_bytes", "gauge", "Size of the loaded tables' files.", METRICS_TABLE_BYTES),
    VALUE("posenc_plans", "gauge", "Plans of encodings that are kept for requests to come.", METRICS_PLANS),
    VALUE("posenc_plan_bytes", "gauge", "Memory of these plans.", METRICS_PLAN_BYTES),
    VALUE("posenc_plan_hits_total", "counter", "Plans that were wanted and there.", METRICS_PLAN_HITS),
    VALUE("posenc_plan_misses_total", "counter", "Plans that had to be made.", METRICS_PLAN_MISSES),
    {.name = "process_cpu_seconds_total", .type = "counter", .help = "User and system time.", .write = write_cpu,
     .which = offsetof(struct metrics_process, cpu_ns)},
    {.name = "process_start_time_seconds", .type = "gauge", .write = write_start,
     .help = "When the process started, since 1970."},
    PROCESS("process_resident_memory_bytes", "Resident memory.", resident_bytes),
    PROCESS("process_virtual_memory_bytes", "Virtual memory.", virtual_bytes),
    PROCESS("process_open_fds", "Open file descriptors.", open_fds),
    PROCESS("process_max_fds", "Most file descriptors that may be open.", max_fds),
    PROCESS("process_threads", "Threads.", threads),
};
/* clang-format on */

static void write_all(struct out *out, const struct metrics *metrics) {
    struct metrics_process process = {0};
    if (!out->measure) {
        metrics_process_read(&process);
    }
    for (size_t i = 0; i < PE_COUNT(metric_rows); i++) {
        const struct metric *row = &metric_rows[i];
        put(out, "# HELP %s %s\n# TYPE %s %s\n", row->name, row->help, row->name, row->type);
        row->write(out, row, metrics, &process);
    }
}

size_t metrics_bound(const struct metrics *metrics) {
    struct out out = {.measure = true};
    write_all(&out, metrics);
    return out.length + SLACK;
}

size_t metrics_write(const struct metrics *metrics, char *text, size_t size) {
    struct out out = {.data = text, .size = size};
    write_all(&out, metrics);
    return out.length;
}
