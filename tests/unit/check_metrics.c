/* SPDX-License-Identifier: MIT
 *
 * The exposition, read back line by line as Prometheus reads it: the text format 0.0.4 and its rules for
 * histograms (cumulative buckets, le="+Inf" equal to _count, one HELP and TYPE before the samples of a
 * metric, no series twice).
 */
#include "suites.h"

#include "metrics.h"
#include "posenc_fields.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const routes[] = {"GET /v1/encode", "POST /v1/encode", "POST /v1/apply", "GET /healthz",
                                     "GET /v1/encodings/{type}"};

static struct metrics *open_metrics(void) {
    struct pe_error err = {0};
    struct metrics *metrics = metrics_open(routes, PE_COUNT(routes), &err);
    ck_assert_msg(metrics != NULL, "%s", err.text);
    return metrics;
}

static char *exposition(const struct metrics *metrics) {
    size_t bound = metrics_bound(metrics);
    char *text = malloc(bound + 1);
    ck_assert_ptr_nonnull(text);
    size_t n = metrics_write(metrics, text, bound);
    ck_assert_uint_le(n, bound);
    text[n] = '\0';
    return text;
}

/* The value of a series, spelled with its labels; -1 when there is no such line. */
static double sample(const char *text, const char *series) {
    size_t n = strlen(series);
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, series, n) == 0 && line[n] == ' ') {
            return strtod(line + n + 1, NULL);
        }
    }
    return -1;
}

static void expect(const char *text, const char *series, double want) {
    double got = sample(text, series);
    ck_assert_msg(got == want, "%s is %.17g, expected %.17g", series, got, want);
}

#define REQUESTS(route, method, code)                                                                        \
    "posenc_http_requests_total{route=\"" route "\",method=\"" method "\",code=\"" code "\"}"
#define DURATION(part, route, le) "posenc_http_request_duration_seconds_" part "{route=\"" route "\"" le "}"

START_TEST(series_exist_at_zero_from_the_start) {
    struct metrics *metrics = open_metrics();
    char *text = exposition(metrics);
    static const char *const series[] = {
        REQUESTS("/v1/encode", "GET", "200"),
        REQUESTS("/v1/encode", "POST", "200"),
        REQUESTS("/v1/apply", "POST", "400"),
        REQUESTS("/v1/apply", "POST", "500"),
        REQUESTS("/v1/apply", "POST", "503"),
        REQUESTS("unmatched", "GET", "404"),
        REQUESTS("/v1/encodings/{type}", "GET", "404"),
        DURATION("count", "/v1/encode", ""),
        DURATION("sum", "unmatched", ""),
        DURATION("bucket", "/healthz", ",le=\"+Inf\""),
        "posenc_http_requests_in_flight",
        "posenc_ready",
        "posenc_connections",
        "posenc_connections_total",
        "posenc_queue_depth",
        "posenc_queue_capacity",
        "posenc_streams_active",
        "posenc_streams_total",
        "posenc_workers",
        "posenc_workers_busy",
        "posenc_tables",
        "posenc_table_bytes",
        "posenc_http_rejected_total{reason=\"queue_full\"}",
        "posenc_http_rejected_total{reason=\"streams_full\"}",
        "posenc_http_rejected_total{reason=\"client_limit\"}",
        "posenc_http_rejected_total{reason=\"too_large\"}",
        "posenc_http_rejected_total{reason=\"draining\"}",
        "posenc_http_rejected_total{reason=\"deadline\"}",
        "posenc_http_rejected_total{reason=\"idle_timeout\"}",
        "posenc_http_rejected_total{reason=\"malformed\"}",
        "posenc_http_rejected_total{reason=\"client_gone\"}",
        "posenc_queue_wait_seconds_count",
        "posenc_compute_seconds_bucket{le=\"+Inf\"}",
        "posenc_http_request_size_bytes_bucket{le=\"256\"}",
        "posenc_http_response_size_bytes_sum",
    };
    for (size_t i = 0; i < PE_COUNT(series); i++) {
        expect(text, series[i], 0);
    }
    expect(text, REQUESTS("/v1/apply", "GET", "200"), -1); /* no such route */
    expect(text, REQUESTS("/v1/apply", "POST", "418"), -1);
    free(text);
    metrics_close(metrics);
}
END_TEST

START_TEST(requests_are_counted_by_route_method_and_code) {
    struct metrics *metrics = open_metrics();
    static const struct metrics_request requests[] = {
        {.route = "POST /v1/apply", .method = "POST", .status = 200},
        {.route = "POST /v1/apply", .method = "POST", .status = 200},
        {.route = "GET /v1/encode", .method = "HEAD", .status = 304},
        {.route = "POST /v1/encode", .method = "POST", .status = 413},
        {.route = "unmatched", .method = "BREW", .status = 418},
        {.route = "GET /no/such/route", .method = "get", .status = 404},
        {.route = NULL, .method = NULL, .status = 404},
    };
    for (size_t i = 0; i < PE_COUNT(requests); i++) {
        metrics_request(metrics, &requests[i]);
    }
    char *text = exposition(metrics);
    expect(text, REQUESTS("/v1/apply", "POST", "200"), 2);
    expect(text, REQUESTS("/v1/encode", "HEAD", "304"), 1);
    expect(text, REQUESTS("/v1/encode", "POST", "413"), 1);
    expect(text, REQUESTS("/v1/encode", "GET", "200"), 0);
    expect(text, REQUESTS("unmatched", "other", "other"), 1);
    expect(text, REQUESTS("unmatched", "other", "404"), 2);
    expect(text, DURATION("count", "unmatched", ""), 3);
    expect(text, DURATION("count", "/v1/apply", ""), 2);
    free(text);
    metrics_close(metrics);
}
END_TEST

/* An edge belongs to its own bucket: le means less or equal. */
START_TEST(histograms_are_cumulative) {
    struct metrics *metrics = open_metrics();
    static const int64_t durations[] = {0, 25000, 25001, 1000000, 10000000000, 10000000001};
    for (size_t i = 0; i < PE_COUNT(durations); i++) {
        metrics_request(metrics, &(struct metrics_request){.route = "GET /healthz",
                                                           .method = "GET",
                                                           .status = 200,
                                                           .duration_ns = durations[i],
                                                           .queue_ns = -1,
                                                           .compute_ns = i == 0 ? 500000 : -1,
                                                           .bytes_out = 1000});
    }
    char *text = exposition(metrics);
    expect(text, DURATION("bucket", "/healthz", ",le=\"2.5e-05\""), 2);
    expect(text, DURATION("bucket", "/healthz", ",le=\"0.0001\""), 3);
    expect(text, DURATION("bucket", "/healthz", ",le=\"0.0005\""), 3);
    expect(text, DURATION("bucket", "/healthz", ",le=\"0.001\""), 4);
    expect(text, DURATION("bucket", "/healthz", ",le=\"2.5\""), 4);
    expect(text, DURATION("bucket", "/healthz", ",le=\"10.0\""), 5);
    expect(text, DURATION("bucket", "/healthz", ",le=\"+Inf\""), 6);
    expect(text, DURATION("count", "/healthz", ""), 6);
    expect(text, DURATION("sum", "/healthz", ""), 20.001050002); /* the sum of the list, in seconds */
    expect(text, "posenc_queue_wait_seconds_count", 0);
    expect(text, "posenc_compute_seconds_count", 1);
    expect(text, "posenc_compute_seconds_sum", 0.0005);
    expect(text, "posenc_compute_seconds_bucket{le=\"0.00025\"}", 0);
    expect(text, "posenc_compute_seconds_bucket{le=\"0.0005\"}", 1);
    expect(text, "posenc_http_response_size_bytes_sum", 6000);
    expect(text, "posenc_http_response_size_bytes_bucket{le=\"256\"}", 0);
    expect(text, "posenc_http_response_size_bytes_bucket{le=\"1024\"}", 6);
    expect(text, "posenc_http_request_size_bytes_bucket{le=\"256\"}", 6);
    free(text);
    metrics_close(metrics);
}
END_TEST

START_TEST(values_go_up_and_down) {
    struct metrics *metrics = open_metrics();
    metrics_add(metrics, METRICS_REQUESTS_IN_FLIGHT, 1);
    metrics_add(metrics, METRICS_REQUESTS_IN_FLIGHT, 1);
    metrics_add(metrics, METRICS_REQUESTS_IN_FLIGHT, -1);
    metrics_set(metrics, METRICS_QUEUE_CAPACITY, 256);
    metrics_set(metrics, METRICS_READY, 1);
    metrics_reject(metrics, METRICS_QUEUE_FULL);
    metrics_reject(metrics, METRICS_CLIENT_GONE);
    metrics_reject(metrics, METRICS_CLIENT_GONE);
    char *text = exposition(metrics);
    ck_assert_int_eq(metrics_get(metrics, METRICS_REQUESTS_IN_FLIGHT), 1);
    expect(text, "posenc_http_requests_in_flight", 1);
    expect(text, "posenc_queue_capacity", 256);
    expect(text, "posenc_ready", 1);
    expect(text, "posenc_http_rejected_total{reason=\"queue_full\"}", 1);
    expect(text, "posenc_http_rejected_total{reason=\"client_gone\"}", 2);
    expect(text, "posenc_http_rejected_total{reason=\"deadline\"}", 0);
    free(text);
    metrics_close(metrics);
}
END_TEST

/* Length of a metric's name at the start of text; 0 when it is none. */
static size_t name_length(const char *text) {
    static const char first[] = "abcdefghijklmnopqrstuvwxyz", all[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
    return strspn(text, first) ? strspn(text, all) : 0;
}

static bool ends_with(const char *name, size_t length, const char *suffix) {
    size_t n = strlen(suffix);
    return length > n && memcmp(name + length - n, suffix, n) == 0;
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

#define MAX_LINES 4000

/* Each line is a comment or a sample of the metric that the last TYPE named; a counter ends in _total, and no
 * unit is abbreviated. Lines are cut at the value, sorted, and no series may come twice. */
START_TEST(the_text_is_well_formed) {
    static char *lines[MAX_LINES];
    size_t n = 0, n_types = 0;
    const char *metric = "", *type = "";
    struct metrics *metrics = open_metrics();
    metrics_request(metrics,
                    &(struct metrics_request){.route = "GET /v1/encode", .method = "HEAD", .status = 200});
    char *text = exposition(metrics);
    ck_assert_int_eq(text[strlen(text) - 1], '\n');
    for (char *line = text, *next; *line; line = next) {
        next = strchr(line, '\n') + 1;
        next[-1] = '\0';
        if (strncmp(line, "# HELP ", 7) == 0) {
            ck_assert_msg(strlen(line) > 7 + name_length(line + 7) + 4, "%s", line);
            continue;
        }
        if (strncmp(line, "# TYPE ", 7) == 0) {
            metric = line + 7;
            type = metric + name_length(metric) + 1;
            bool counter = strcmp(type, "counter") == 0;
            ck_assert_msg(counter || !strcmp(type, "gauge") || !strcmp(type, "histogram"), "%s", line);
            ck_assert_msg(counter == ends_with(metric, name_length(metric), "_total"), "%s", line);
            n_types++;
            continue;
        }
        size_t length = name_length(line), want = name_length(metric);
        ck_assert_msg(length >= want && memcmp(line, metric, want) == 0, "%s is outside its metric", line);
        ck_assert_msg(length == want || strcmp(type, "histogram") == 0, "%s", line);
        char *value = strrchr(line, ' '), *end;
        ck_assert_msg(line[length] == '{' ? value[-1] == '}' : value == line + length, "%s", line);
        (void)strtod(value + 1, &end);
        ck_assert_msg(end != value + 1 && *end == '\0', "%s", line);
        *value = '\0';
        ck_assert_uint_lt(n, MAX_LINES);
        lines[n++] = line;
    }
    ck_assert_uint_gt(n_types, 20);
    qsort(lines, n, sizeof *lines, by_text);
    for (size_t i = 1; i < n; i++) {
        ck_assert_msg(strcmp(lines[i - 1], lines[i]) != 0, "%s comes twice", lines[i]);
    }
    free(text);
    metrics_close(metrics);
}
END_TEST

START_TEST(what_does_not_fit_is_left_out_by_whole_lines) {
    struct metrics *metrics = open_metrics();
    char text[1000];
    for (size_t size = 0; size <= sizeof text; size += 37) {
        memset(text, '#', sizeof text);
        size_t n = metrics_write(metrics, text, size);
        ck_assert_uint_le(n, size);
        ck_assert(n == 0 || text[n - 1] == '\n');
        for (size_t i = n; i < sizeof text; i++) {
            ck_assert_int_eq(text[i], '#');
        }
    }
    metrics_close(metrics);
}
END_TEST

START_TEST(bad_route_names_are_refused) {
    static const char *const bad[] = {"GET /a\"b"};
    struct pe_error err = {0};
    ck_assert_ptr_null(metrics_open(bad, 1, &err));
    ck_assert_int_eq(err.code, PE_ERR_SYNTAX);
}
END_TEST

/* Lives until the other end of its pipe is closed. */
static void *wait_for_end(void *fd) {
    char byte;
    while (read(*(const int *)fd, &byte, 1) > 0) {
    }
    return NULL;
}

/* Against what was done meanwhile, and what the system says by other calls. */
START_TEST(the_process_is_described) {
    struct metrics *metrics = open_metrics();
    int fds[2], copy;
    pthread_t threads[2];
    ck_assert_int_eq(pipe(fds), 0);
    /* A first thread, as a sanitizer starts one of its own beside it. */
    ck_assert_int_eq(pthread_create(&threads[0], NULL, wait_for_end, &fds[0]), 0);
    char *before = exposition(metrics);
    ck_assert_int_eq(pthread_create(&threads[1], NULL, wait_for_end, &fds[0]), 0);
    copy = dup(fds[0]);
    volatile double sum = 0;
    for (int i = 0; i < 20000000; i++) {
        sum = sum + i;
    }
    char *after = exposition(metrics);
    ck_assert_double_eq(sample(after, "process_open_fds"), sample(before, "process_open_fds") + 1);
    ck_assert_double_eq(sample(after, "process_threads"), sample(before, "process_threads") + 1);
    ck_assert_double_gt(sample(after, "process_cpu_seconds_total"),
                        sample(before, "process_cpu_seconds_total"));
    ck_assert_double_eq(sample(after, "process_max_fds"), (double)sysconf(_SC_OPEN_MAX));
    ck_assert_double_ge(sample(before, "process_threads"), 1);
    ck_assert_double_gt(sample(after, "process_resident_memory_bytes"), 100e3);
    ck_assert_double_gt(sample(after, "process_virtual_memory_bytes"),
                        sample(after, "process_resident_memory_bytes"));
    ck_assert_double_eq_tol(sample(after, "process_start_time_seconds"), (double)time(NULL), 30);
    close(fds[1]);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    close(copy);
    close(fds[0]);
    free(before);
    free(after);
    metrics_close(metrics);
}
END_TEST

#define THREADS 4
#define TIMES   20000
#define TIGHT   2000000

struct counting {
    struct metrics *metrics;
    pthread_barrier_t start; /* so that they count at the same time */
};

static void *count_requests(void *argument) {
    struct counting *counting = argument;
    pthread_barrier_wait(&counting->start);
    for (int i = 0; i < TIMES; i++) {
        metrics_request(counting->metrics, &(struct metrics_request){.route = "POST /v1/apply",
                                                                     .method = "POST",
                                                                     .status = 200,
                                                                     .duration_ns = 1000,
                                                                     .bytes_in = 1});
    }
    /* Loops of nothing else, so that the threads meet. */
    for (int i = 0; i < TIGHT; i++) {
        metrics_reject(counting->metrics, METRICS_DEADLINE);
    }
    for (int i = 0; i < TIGHT; i++) {
        metrics_add(counting->metrics, METRICS_CONNECTIONS, 1);
    }
    return NULL;
}

START_TEST(no_count_is_lost) {
    struct metrics *metrics = open_metrics();
    pthread_t threads[THREADS];
    struct counting counting = {.metrics = metrics};
    ck_assert_int_eq(pthread_barrier_init(&counting.start, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, count_requests, &counting), 0);
    }
    for (int i = 0; i < 20; i++) { /* and reading meanwhile sees counts that agree */
        char *text = exposition(metrics);
        expect(text, DURATION("count", "/v1/apply", ""),
               sample(text, DURATION("bucket", "/v1/apply", ",le=\"+Inf\"")));
        free(text);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    char *text = exposition(metrics);
    expect(text, REQUESTS("/v1/apply", "POST", "200"), THREADS * TIMES);
    expect(text, DURATION("count", "/v1/apply", ""), THREADS * TIMES);
    expect(text, DURATION("sum", "/v1/apply", ""), 0.08); /* 80,000 microseconds */
    expect(text, "posenc_http_request_size_bytes_sum", THREADS * TIMES);
    expect(text, "posenc_http_rejected_total{reason=\"deadline\"}", THREADS * TIGHT);
    expect(text, "posenc_connections", THREADS * TIGHT);
    free(text);
    pthread_barrier_destroy(&counting.start);
    metrics_close(metrics);
}
END_TEST

Suite *metrics_suite(void) {
    Suite *suite = suite_create("metrics");
    TCase *tests = tcase_create("metrics");
    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, series_exist_at_zero_from_the_start);
    tcase_add_test(tests, requests_are_counted_by_route_method_and_code);
    tcase_add_test(tests, histograms_are_cumulative);
    tcase_add_test(tests, values_go_up_and_down);
    tcase_add_test(tests, the_text_is_well_formed);
    tcase_add_test(tests, what_does_not_fit_is_left_out_by_whole_lines);
    tcase_add_test(tests, bad_route_names_are_refused);
    tcase_add_test(tests, the_process_is_described);
    tcase_add_test(tests, no_count_is_lost);
    suite_add_tcase(suite, tests);
    return suite;
}
