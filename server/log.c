/* SPDX-License-Identifier: MIT
 *
 * Log lines. A line is built from pairs in one buffer of LINE bytes on the stack; a pair that does not fit is
 * taken back as a whole, so a cut line is still one JSON object. LINE is the PIPE_BUF of Linux: one write of
 * at most so many bytes to a pipe or a file opened for appending is not torn apart by those of other threads
 * or processes.
 *
 *     {"ts":"2024-02-29T23:59:59.123Z","level":"info","msg":"request","method":"GET",...}
 *     2024-02-29T23:59:59.123Z info request GET /v1/encode 200 1234 bytes 1.234 ms client="127.0.0.1" ...
 *
 * Rejected: a thread of its own for the log. It needs a queue with a policy for its overflow, and loses the
 * last lines before a crash, which are those one wants.
 */
#include "log.h"

#include "config.h"
#include "log_text.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define LINE       4096
#define TAIL       2 /* "}\n" always fits */
#define MAX_TARGET 200
#define MAX_TEXT   160

static const char *const level_names[] = {
    [LOG_INFO] = "info", [LOG_WARNING] = "warning", [LOG_ERROR] = "error"};

/* Asked for at every health probe and scrape. */
static const char *const probe_paths[] = {"/healthz", "/readyz", "/metrics", "/v2/health/live",
                                          "/v2/health/ready"};

struct line {
    struct log_text text;
    bool json;
    char buffer[LINE];
};

void log_init(struct log *log, int fd, int format) {
    *log = (struct log){.fd = fd, .format = format};
    if (format == CONFIG_LOG_AUTO) {
        log->format = isatty(fd) ? CONFIG_LOG_TEXT : CONFIG_LOG_JSON;
    }
}

static void pair_text(struct line *line, const char *name, const char *value, size_t max) {
    if (!value) {
        return;
    }
    const struct log_text before = line->text;
    log_text_print(&line->text, line->json ? ",\"%s\":\"" : " %s=\"", name);
    log_text_escape(&line->text, value, max);
    log_text_put(&line->text, "\"", 1);
    if (line->text.cut) {
        line->text = before;
    }
}

static void pair_number(struct line *line, const char *name, int64_t value) {
    const struct log_text before = line->text;
    log_text_print(&line->text, line->json ? ",\"%s\":%lld" : " %s=%lld", name, (long long)value);
    if (line->text.cut) {
        line->text = before;
    }
}

/* Nanoseconds as milliseconds with three places. */
static void pair_ms(struct line *line, const char *name, int64_t ns) {
    const struct log_text before = line->text;
    long long us = (long long)(ns < 0 ? 0 : ns / 1000);
    log_text_print(&line->text, line->json ? ",\"%s\":%lld.%03lld" : " %s=%lld.%03lld", name, us / 1000,
                   us % 1000);
    if (line->text.cut) {
        line->text = before;
    }
}

static void line_begin(struct line *line, const struct log *log, enum log_level level, const char *message) {
    line->json = log->format != CONFIG_LOG_TEXT;
    line->text = (struct log_text){.data = line->buffer, .size = LINE - TAIL};
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    log_text_put(&line->text, "{\"ts\":\"", line->json ? 7 : 0);
    log_text_time(&line->text, now);
    if (line->json) {
        log_text_print(&line->text, "\",\"level\":\"%s\"", level_names[level]);
        pair_text(line, "msg", message, MAX_TEXT);
    } else {
        log_text_print(&line->text, " %s ", level_names[level]);
        log_text_escape(&line->text, message, MAX_TEXT);
    }
}

/* A log that cannot be written must not stop the service: the outcome is not looked at. */
static void line_end(struct line *line, const struct log *log) {
    line->text.size = LINE;
    log_text_put(&line->text, line->json ? "}\n" : "\n", line->json ? 2 : 1);
    ssize_t n;
    do {
        n = write(log->fd, line->buffer, line->text.length);
    } while (n < 0 && errno == EINTR);
}

void log_event(const struct log *log, enum log_level level, const char *message, const struct log_pair *pairs,
               size_t n) {
    if (log->format == CONFIG_LOG_OFF && level == LOG_INFO) {
        return;
    }
    struct line line;
    line_begin(&line, log, level, message);
    for (size_t i = 0; i < n; i++) {
        if (pairs[i].text) {
            pair_text(&line, pairs[i].name, pairs[i].text, MAX_TEXT);
        } else {
            pair_number(&line, pairs[i].name, pairs[i].number);
        }
    }
    line_end(&line, log);
}

void log_config(const struct log *log, const char *message, const struct config *config) {
    if (log->format == CONFIG_LOG_OFF) {
        return;
    }
    struct line line;
    line_begin(&line, log, LOG_INFO, message);
    for (size_t i = 0; i < config_n_fields; i++) {
        const struct pe_field *row = &config_fields[i];
        char value[MAX_TEXT];
        bool number = config_value_text(row, config, value, sizeof value);
        if (number || (row->flags & PE_FIELD_BYTES)) {
            /* Sizes as plain numbers, which a program can compare. */
            pair_number(&line, row->name,
                        *(const int64_t *)(const void *)((const char *)config + row->offset));
        } else {
            pair_text(&line, row->name, value, MAX_TEXT);
        }
    }
    line_end(&line, log);
}

static bool is_probe(const char *route) {
    const char *path = route ? strchr(route, ' ') : NULL;
    for (size_t i = 0; path && i < PE_COUNT(probe_paths); i++) {
        if (strcmp(path + 1, probe_paths[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* 503 and 504 are the service protecting itself; other 5xx are faults of its own. */
static enum log_level level_of(int status) {
    if (status < 500) {
        return LOG_INFO;
    }
    return status == 503 || status == 504 ? LOG_WARNING : LOG_ERROR;
}

/* "GET /v1/encode?... 200 1234 bytes 1.234 ms": what a person reads first. */
static void request_head_text(struct line *line, const struct log_request *request) {
    log_text_put(&line->text, " ", 1);
    log_text_escape(&line->text, request->method ? request->method : "-", 16);
    log_text_put(&line->text, " ", 1);
    log_text_escape(&line->text, request->target ? request->target : "-", MAX_TARGET);
    long long us = (long long)(request->duration_ns < 0 ? 0 : request->duration_ns / 1000);
    log_text_print(&line->text, " %d %llu bytes %lld.%03lld ms", request->status,
                   (unsigned long long)request->bytes, us / 1000, us % 1000);
}

static void request_head_json(struct line *line, const struct log_request *request) {
    pair_text(line, "method", request->method, 16);
    pair_text(line, "target", request->target, MAX_TARGET);
    pair_number(line, "status", request->status);
    pair_number(line, "bytes", (int64_t)request->bytes);
    pair_ms(line, "duration_ms", request->duration_ns);
}

void log_request(const struct log *log, const struct log_request *request) {
    if (log->format == CONFIG_LOG_OFF || (request->status < 400 && is_probe(request->route))) {
        return;
    }
    struct line line;
    line_begin(&line, log, level_of(request->status), "request");
    pair_text(&line, "request_id", line.json ? request->request_id : NULL, MAX_TEXT);
    if (line.json) {
        request_head_json(&line, request);
    } else {
        request_head_text(&line, request);
    }
    pair_text(&line, "route", request->route, MAX_TEXT);
    pair_ms(&line, "queue_ms", request->queue_ns);
    pair_ms(&line, "compute_ms", request->compute_ns);
    pair_text(&line, "client", request->client, 64);
    if (!line.json) {
        pair_text(&line, "request_id", request->request_id, MAX_TEXT);
    }
    const char *trace = log_trace_id(request->traceparent);
    char trace_id[33] = "";
    if (trace) {
        memcpy(trace_id, trace, 32);
    }
    pair_text(&line, "trace_id", trace ? trace_id : NULL, 32);
    pair_text(&line, "error", request->error, MAX_TEXT);
    pair_text(&line, "field", request->field, MAX_TEXT);
    pair_text(&line, "detail", request->detail, 512);
    line_end(&line, log);
}
