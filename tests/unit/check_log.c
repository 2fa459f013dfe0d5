/* SPDX-License-Identifier: MIT
 *
 * Log lines as a reader sees them: each is parsed as JSON and its members compared. Dates are those of RFC
 * 3339 and of the calendar (leap days, ends of years), from `date -u -d @SECONDS`.
 */
#include "suites.h"

#include "config.h"
#include "log.h"
#include "log_text.h"

#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TRACE  "4bf92f3577b34da6a3ce929d0e0e4736" /* the example of the W3C recommendation */
#define PARENT "00-" TRACE "-00f067aa0ba902b7-01"

/* A log into a pipe, and what came out of it. */
struct capture {
    struct log log;
    int read_fd;
    char text[65536];
};

static void capture_open(struct capture *capture, int format) {
    int fds[2];
    ck_assert_int_eq(pipe(fds), 0);
    log_init(&capture->log, fds[1], format);
    capture->read_fd = fds[0];
    ck_assert_int_eq(fcntl(capture->read_fd, F_SETFL, O_NONBLOCK), 0);
}

/* One read: what one write(2) put there, when there was one. */
static size_t capture_read(struct capture *capture) {
    ssize_t n = read(capture->read_fd, capture->text, sizeof capture->text - 1);
    size_t length = n < 0 ? 0 : (size_t)n;
    capture->text[length] = '\0';
    return length;
}

static json_t *capture_json(struct capture *capture) {
    size_t n = capture_read(capture);
    json_error_t problem;
    ck_assert_uint_gt(n, 0);
    ck_assert_int_eq(capture->text[n - 1], '\n');
    ck_assert_ptr_eq(memchr(capture->text, '\n', n), capture->text + n - 1);
    json_t *line = json_loadb(capture->text, n, JSON_REJECT_DUPLICATES, &problem);
    ck_assert_msg(line != NULL, "%s: %s", problem.text, capture->text);
    return line;
}

static const char *text_of(const json_t *line, const char *name) {
    const char *text = json_string_value(json_object_get(line, name));
    return text ? text : "(absent)";
}

static const struct log_request good = {
    .request_id = "r-1",
    .method = "POST",
    .target = "/v1/apply?x=1",
    .client = "127.0.0.1",
    .route = "POST /v1/apply",
    .traceparent = PARENT,
    .status = 200,
    .bytes = 1234,
    .duration_ns = 1234567,
    .queue_ns = 1000,
    .compute_ns = 999,
};

START_TEST(a_request_is_one_object) {
    struct capture capture;
    capture_open(&capture, CONFIG_LOG_JSON);
    log_request(&capture.log, &good);
    json_t *line = capture_json(&capture);
    static const char *const texts[][2] = {
        {"level", "info"},       {"msg", "request"},          {"request_id", "r-1"},
        {"method", "POST"},      {"target", "/v1/apply?x=1"}, {"route", "POST /v1/apply"},
        {"client", "127.0.0.1"}, {"trace_id", TRACE},         {"error", "(absent)"},
        {"field", "(absent)"},   {"detail", "(absent)"},
    };
    for (size_t i = 0; i < PE_COUNT(texts); i++) {
        ck_assert_str_eq(text_of(line, texts[i][0]), texts[i][1]);
    }
    ck_assert_int_eq(json_integer_value(json_object_get(line, "status")), 200);
    ck_assert_int_eq(json_integer_value(json_object_get(line, "bytes")), 1234);
    ck_assert_double_eq_tol(json_number_value(json_object_get(line, "duration_ms")), 1.234, 1e-12);
    ck_assert_double_eq_tol(json_number_value(json_object_get(line, "queue_ms")), 0.001, 1e-12);
    ck_assert_double_eq_tol(json_number_value(json_object_get(line, "compute_ms")), 0, 1e-12);
    const char *ts = text_of(line, "ts");
    ck_assert_uint_eq(strlen(ts), strlen("2024-02-29T23:59:59.123Z"));
    ck_assert_int_eq(ts[10], 'T');
    ck_assert_int_eq(ts[23], 'Z');
    json_decref(line);
}
END_TEST

START_TEST(a_failure_says_what_and_where) {
    static const struct {
        int status;
        const char *level;
    } rows[] = {{400, "info"}, {500, "error"}, {501, "error"}, {503, "warning"}, {504, "warning"}};
    struct capture capture;
    capture_open(&capture, CONFIG_LOG_JSON);
    struct log_request request = good;
    request.status = rows[_i].status;
    request.error = "range";
    request.field = "encoding.base";
    request.detail = "must be at least 1, got 0";
    log_request(&capture.log, &request);
    json_t *line = capture_json(&capture);
    ck_assert_str_eq(text_of(line, "level"), rows[_i].level);
    ck_assert_str_eq(text_of(line, "error"), "range");
    ck_assert_str_eq(text_of(line, "field"), "encoding.base");
    ck_assert_str_eq(text_of(line, "detail"), "must be at least 1, got 0");
    json_decref(line);
}
END_TEST

START_TEST(probes_are_left_out_unless_they_fail) {
    static const char *const probes[] = {"GET /healthz", "GET /readyz", "GET /metrics", "GET /v2/health/live",
                                         "GET /v2/health/ready"};
    struct capture capture;
    capture_open(&capture, CONFIG_LOG_JSON);
    struct log_request request = good;
    request.route = probes[_i];
    log_request(&capture.log, &request);
    ck_assert_uint_eq(capture_read(&capture), 0);
    request.status = 503;
    log_request(&capture.log, &request);
    ck_assert_uint_gt(capture_read(&capture), 0);
    request.status = 200;
    request.route = "GET /v1/encode"; /* whatever its target claims */
    request.target = "/healthz";
    log_request(&capture.log, &request);
    ck_assert_uint_gt(capture_read(&capture), 0);
}
END_TEST

START_TEST(hostile_texts_stay_inside_their_member) {
    struct capture capture;
    capture_open(&capture, CONFIG_LOG_JSON);
    struct log_request request = good;
    request.target = "/a\n{\"level\":\"error\"}\r\x1b[31m\x7f\xff\xc3\x28 \xc2\x9b \xe2\x80\xa8 \xc3\xa9\\\"";
    log_request(&capture.log, &request);
    json_t *line = capture_json(&capture);
    ck_assert_str_eq(text_of(line, "level"), "info");
    /* Controls come back as themselves from the JSON, bytes that are not UTF-8 as \xNN. */
    ck_assert_str_eq(
        text_of(line, "target"),
        "/a\n{\"level\":\"error\"}\r\x1b[31m\x7f\\xff\\xc3\x28 \xc2\x9b \xe2\x80\xa8 \xc3\xa9\\\"");
    for (const char *c = capture.text; *c && *c != '\n'; c++) {
        ck_assert_msg((unsigned char)*c >= 0x20 && *c != 0x7f, "a raw control character in the line");
    }
    ck_assert_ptr_null(strstr(capture.text, "\xc2\x9b"));
    ck_assert_ptr_null(strstr(capture.text, "\xe2\x80\xa8"));
    json_decref(line);
}
END_TEST

START_TEST(long_texts_are_cut_and_the_line_stays_whole) {
    struct capture capture;
    char target[4096], ones[4096];
    capture_open(&capture, CONFIG_LOG_JSON);
    memset(target, 'a', sizeof target);
    memset(ones, '\x01', sizeof ones);
    target[sizeof target - 1] = ones[sizeof ones - 1] = '\0';
    struct log_request request = good;
    request.target = target;
    log_request(&capture.log, &request);
    json_t *line = capture_json(&capture);
    ck_assert_uint_eq(strlen(text_of(line, "target")), 203);
    ck_assert_str_eq(text_of(line, "target") + 200, "...");
    json_decref(line);
    /* Each byte takes six here: not all members fit into one line, and those that do are whole. */
    request = (struct log_request){.request_id = ones,
                                   .method = ones,
                                   .target = ones,
                                   .client = ones,
                                   .route = ones,
                                   .error = ones,
                                   .field = ones,
                                   .detail = ones,
                                   .status = 500};
    log_request(&capture.log, &request);
    line = capture_json(&capture);
    size_t n = strlen(capture.text);
    ck_assert_uint_le(n, 4096);
    ck_assert_uint_gt(n, 3000);
    ck_assert_int_eq(json_integer_value(json_object_get(line, "status")), 500);
    json_decref(line);
}
END_TEST

START_TEST(a_cut_leaves_no_half_character) {
    struct log_text out;
    char buffer[64];
    out = (struct log_text){.data = buffer, .size = sizeof buffer};
    log_text_escape(&out,
                    "ab\xe2\x82\xac"
                    "cd",
                    4); /* the euro sign lies across the edge */
    ck_assert_uint_eq(out.length, 5);
    ck_assert_mem_eq(buffer, "ab...", 5);
    out = (struct log_text){.data = buffer, .size = sizeof buffer};
    log_text_escape(&out, "ab\xe2\x82\xac", 5);
    ck_assert_uint_eq(out.length, 5);
    ck_assert_mem_eq(buffer, "ab\xe2\x82\xac", 5);
    out = (struct log_text){.data = buffer, .size = 3};
    log_text_put(&out, "abcd", 4);
    ck_assert(out.cut);
    ck_assert_uint_eq(out.length, 3);
}
END_TEST

/* Overlong forms, surrogates, values beyond U+10FFFF, lone continuation and cut sequences are not UTF-8. */
START_TEST(what_is_plain_text) {
    static const struct {
        const char *text;
        bool plain;
    } rows[] = {
        {"", true},
        {"abc /-_.", true},
        {"\xc3\xa9", true},
        {"\xed\x9f\xbf", true},
        {"\xee\x80\x80", true},
        {"\xf0\x90\x80\x80", true},
        {"\xf4\x8f\xbf\xbf", true},
        {"\xe0\xa0\x80", true},
        {"\x01", false},
        {"\t", false},
        {"\x7f", false},
        {"\xc2\x80", false},
        {"\xe2\x80\xa9", false},
        {"\xc0\xaf", false},
        {"\xc1\xbf", false},
        {"\xe0\x9f\xbf", false},
        {"\xf0\x8f\xbf\xbf", false},
        {"\xed\xa0\x80", false},
        {"\xf4\x90\x80\x80", false},
        {"\xf5\x80\x80\x80", false},
        {"\x80", false},
        {"\xff", false},
        {"\xc3", false},
        {"\xe2\x82", false},
        {"\xf0\x9f\x98", false},
        {"\xc3\x28", false},
    };
    ck_assert_msg(log_text_plain(rows[_i].text) == rows[_i].plain, "row %d", _i);
}
END_TEST

START_TEST(times) {
    static const struct {
        time_t seconds;
        const char *want;
    } rows[] = {
        {0, "1970-01-01T00:00:00.007Z"},          {951782399, "2000-02-28T23:59:59.007Z"},
        {951782400, "2000-02-29T00:00:00.007Z"},  {951868800, "2000-03-01T00:00:00.007Z"},
        {1709251199, "2024-02-29T23:59:59.007Z"}, {1709251200, "2024-03-01T00:00:00.007Z"},
        {1735689599, "2024-12-31T23:59:59.007Z"}, {1735689600, "2025-01-01T00:00:00.007Z"},
        {4107542400, "2100-03-01T00:00:00.007Z"}, {4107542399, "2100-02-28T23:59:59.007Z"},
        {-1, "1970-01-01T00:00:00.007Z"},
    };
    char buffer[40] = {0};
    struct log_text out = {.data = buffer, .size = sizeof buffer};
    log_text_time(&out, (struct timespec){.tv_sec = rows[_i].seconds, .tv_nsec = 7999999});
    ck_assert_str_eq(buffer, rows[_i].want);
}
END_TEST

START_TEST(trace_ids_are_strict) {
    static const struct {
        const char *text;
        bool good;
    } rows[] = {
        {PARENT, true},
        {NULL, false},
        {"", false},
        {"01-" TRACE "-00f067aa0ba902b7-01", false},
        {"00-" TRACE "-00f067aa0ba902b7-01-", false},
        {"00-" TRACE "-00f067aa0ba902b7-0", false},
        {"00-" TRACE "-00f067aa0ba902b7-0G", false},
        {"00-" TRACE "-0000000000000000-01", false},
        {"00-00000000000000000000000000000000-00f067aa0ba902b7-01", false},
        {"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", false},
        {"00-" TRACE "_00f067aa0ba902b7-01", false},
    };
    const char *trace = log_trace_id(rows[_i].text);
    ck_assert((trace != NULL) == rows[_i].good);
    ck_assert(!trace || strncmp(trace, TRACE, 32) == 0);
}
END_TEST

START_TEST(text_for_people) {
    struct capture capture;
    capture_open(&capture, CONFIG_LOG_TEXT);
    struct log_request request = good;
    request.error = "range";
    request.target = "/v1/apply\x1b[2J";
    log_request(&capture.log, &request);
    ck_assert_uint_gt(capture_read(&capture), 0);
    ck_assert_ptr_nonnull(
        strstr(capture.text, " info request POST /v1/apply\\u001b[2J 200 1234 bytes 1.234 ms route="));
    ck_assert_ptr_nonnull(strstr(capture.text, " error=\"range\"\n"));
    ck_assert_ptr_nonnull(strstr(capture.text, " request_id=\"r-1\""));
    ck_assert_ptr_null(strchr(capture.text, '\x1b'));
}
END_TEST

START_TEST(events) {
    struct capture capture;
    capture_open(&capture, CONFIG_LOG_AUTO); /* a pipe is no terminal */
    log_event(&capture.log, LOG_WARNING, "draining",
              (struct log_pair[]){{.name = "reason", .text = "SIGTERM"}, {.name = "in_flight", .number = -3}},
              2);
    json_t *line = capture_json(&capture);
    ck_assert_str_eq(text_of(line, "msg"), "draining");
    ck_assert_str_eq(text_of(line, "level"), "warning");
    ck_assert_str_eq(text_of(line, "reason"), "SIGTERM");
    ck_assert_int_eq(json_integer_value(json_object_get(line, "in_flight")), -3);
    json_decref(line);
}
END_TEST

START_TEST(off_keeps_only_what_went_wrong) {
    struct capture capture;
    capture_open(&capture, CONFIG_LOG_OFF);
    struct config config = {0};
    log_request(&capture.log, &good);
    log_event(&capture.log, LOG_INFO, "started", NULL, 0);
    log_config(&capture.log, "started", &config);
    ck_assert_uint_eq(capture_read(&capture), 0);
    log_event(&capture.log, LOG_ERROR, "cannot bind", NULL, 0);
    json_t *line = capture_json(&capture);
    ck_assert_str_eq(text_of(line, "msg"), "cannot bind");
    json_decref(line);
}
END_TEST

START_TEST(the_configuration_is_logged_whole) {
    struct capture capture;
    struct config config;
    capture_open(&capture, CONFIG_LOG_JSON);
    pe_fields_init(config_fields, config_n_fields, &config, sizeof config);
    log_config(&capture.log, "started", &config);
    json_t *line = capture_json(&capture);
    for (size_t i = 0; i < config_n_fields; i++) {
        ck_assert_msg(json_object_get(line, config_fields[i].name) != NULL, "%s", config_fields[i].name);
    }
    ck_assert_int_eq(json_integer_value(json_object_get(line, "body_bytes")), 67108864);
    ck_assert_str_eq(text_of(line, "workers"), "auto");
    json_decref(line);
}
END_TEST

#define THREADS 8
#define LINES   200

static void *write_lines(void *argument) {
    for (int i = 0; i < LINES; i++) {
        log_request(argument, &good);
    }
    return NULL;
}

/* Into a file, as whole lines also when the descriptor is shared. */
START_TEST(lines_of_threads_do_not_mix) {
    FILE *file = tmpfile();
    struct log log;
    pthread_t threads[THREADS];
    char line[4097];
    int n = 0;
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fcntl(fileno(file), F_SETFL, O_APPEND), 0);
    log_init(&log, fileno(file), CONFIG_LOG_JSON);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, write_lines, &log), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    rewind(file);
    for (; fgets(line, sizeof line, file); n++) {
        json_t *object = json_loads(line, 0, NULL);
        ck_assert_msg(object != NULL, "%s", line);
        json_decref(object);
    }
    ck_assert_int_eq(n, THREADS * LINES);
    fclose(file);
}
END_TEST

Suite *log_suite(void) {
    Suite *suite = suite_create("log");
    TCase *tests = tcase_create("log");
    tcase_add_test(tests, a_request_is_one_object);
    tcase_add_loop_test(tests, a_failure_says_what_and_where, 0, 5);
    tcase_add_loop_test(tests, probes_are_left_out_unless_they_fail, 0, 5);
    tcase_add_test(tests, hostile_texts_stay_inside_their_member);
    tcase_add_test(tests, long_texts_are_cut_and_the_line_stays_whole);
    tcase_add_test(tests, a_cut_leaves_no_half_character);
    tcase_add_loop_test(tests, what_is_plain_text, 0, 26);
    tcase_add_loop_test(tests, times, 0, 11);
    tcase_add_loop_test(tests, trace_ids_are_strict, 0, 11);
    tcase_add_test(tests, text_for_people);
    tcase_add_test(tests, events);
    tcase_add_test(tests, off_keeps_only_what_went_wrong);
    tcase_add_test(tests, the_configuration_is_logged_whole);
    tcase_add_test(tests, lines_of_threads_do_not_mix);
    suite_add_tcase(suite, tests);
    return suite;
}
