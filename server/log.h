/* SPDX-License-Identifier: MIT
 *
 * The log: one line per request and per event of the process's life, to one file descriptor. JSON for
 * machines, text without colours for a terminal. A line is formatted on the stack and handed over by one
 * write(2), so lines of different threads never mix and nobody waits for a lock of ours.
 */
#ifndef LOG_H
#define LOG_H

#include "posenc.h"

struct config;

enum log_level { LOG_INFO, LOG_WARNING, LOG_ERROR };

/* A value; const once it is made, shared by all threads. */
struct log {
    int fd;
    int format; /* enum config_log, never CONFIG_LOG_AUTO; CONFIG_LOG_OFF keeps warnings and errors */
};

/* `format` CONFIG_LOG_AUTO becomes text when fd is a terminal, else JSON. */
void log_init(struct log *log, int fd, int format);

/* One key of an event: a text, or (text NULL) a number. */
struct log_pair {
    const char *name;
    const char *text;
    int64_t number;
};

/* "started", "draining", "stopped" ... with n pairs. Any thread. */
void log_event(const struct log *log, enum log_level level, const char *message, const struct log_pair *pairs,
               size_t n);
/* An event that carries the whole effective configuration, secrets hidden, under their option names. */
void log_config(const struct log *log, const char *message, const struct config *config);

/* What is said about one request. VIEWS; texts may be NULL and may hold any bytes: they are escaped and cut.
 */
struct log_request {
    const char *request_id, *method, *target, *client;
    const char *route;       /* call_route_name: "POST /v1/apply", "unmatched" */
    const char *traceparent; /* as received; its trace id is logged when it is well formed */
    int status;
    uint64_t bytes; /* of the reply's body that were sent */
    int64_t duration_ns, queue_ns, compute_ns;
    const char *error, *field; /* slug of the code, and the path; NULL = none */
    const char *detail;
};

/* Writes the line; health probes and scrapes (/healthz, /readyz, /metrics, /v2/health/...) only when they
 * failed. Any thread. */
void log_request(const struct log *log, const struct log_request *request);

#endif
