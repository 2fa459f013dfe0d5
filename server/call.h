/* SPDX-License-Identifier: MIT
 *
 * One request as a pure function: (method, target, headers that matter, bytes) -> (status, headers, byte
 * source). HTTP only moves the bytes; the pool, the tests, `batch` and --call use the same six steps:
 *
 *     call_open    route it; it may be answered already (404, 405, 413 ...): see call_answered
 *     call_feed    the body as it arrives, in chunks of any size
 *     call_finish  parse, check, plan: everything that can fail, and all memory
 *     call_work    what is left to compute: parts for any threads
 *     call_write   the reply, after all parts ran (or none, when call_stop was called)
 *     call_close
 *
 * A call belongs to one thread at a time, but for the parts of its work, which may run on many.
 */
#ifndef CALL_H
#define CALL_H

#include "service.h"

#include <stdatomic.h>

#define CALL_RANDOM_BYTES 12
/* Method, target and, over HTTP, all headers are shorter than this. */
#define CALL_HEAD_BYTES ((size_t)32 << 10)

/* VIEWS, valid until call_close. NULL = absent. */
struct call_head {
    const char *method;
    const char *target; /* as sent: "/v1/encode?type=sinusoidal" (still percent-encoded) */
    const char *accept, *accept_encoding, *content_type, *content_encoding, *if_none_match;
    const char *request_id, *traceparent, *timeout_ms;
    const char *raw_shape, *raw_dtype; /* X-Posenc-Shape and X-Posenc-Dtype of a raw body */
    const unsigned char *random;       /* CALL_RANDOM_BYTES for the request's id; NULL = it draws them */
    int64_t content_length;            /* -1 = not known */
    bool admin;                        /* came by the admin listener */
};

enum call_stop_reason { CALL_STOP_NONE, CALL_STOP_CLIENT_GONE, CALL_STOP_DEADLINE, CALL_STOP_SHUTDOWN };

struct call_header {
    const char *name, *value;
};
#define CALL_MAX_HEADERS 20

/* The reply. Filled by call_write (or by call_open / call_finish when they answer at once). */
struct call_reply {
    int status;
    struct call_header headers[CALL_MAX_HEADERS]; /* without Content-Length */
    size_t n_headers;
    int64_t length; /* of the body; -1 = not known before it has been pulled */
    bool stream;    /* computed while it is pulled: pulling may cost; else it only copies what is there */
};

/* Times in nanoseconds of the monotonic clock, for Server-Timing and the log. */
struct call_times {
    int64_t open, finish, run, written; /* steps' starts; written = end of call_write */
    int64_t queued_ns;                  /* set by whoever queues it */
    bool queued_first;                  /* before call_finish, else between it and the work */
};

struct call;

/* NULL only when there is no memory at all. */
struct call *call_open(const struct service *service, const struct call_head *head);
bool call_answered(const struct call *call); /* nothing more is wanted: no body, no work */
/* false: the call is answered; the rest of the body may be thrown away. */
bool call_feed(struct call *call, const void *bytes, size_t n);
void call_finish(struct call *call);
/* Is call_finish sure to be short, so that it may run where others wait? */
bool call_is_quick(const struct call *call);
const struct pe_work *call_work(const struct call *call); /* n_parts 0: nothing to run */
/* Asks whatever runs, call_finish, parts or call_write, to end early: it does within milliseconds, and the
 * call is then answered with the reason. Any thread; the first reason stays. */
void call_stop(struct call *call, enum call_stop_reason reason);
bool call_stopped(const struct call *call);
int64_t call_deadline_ns(const struct call *call); /* monotonic time by which it must be written */
/* Runs one part unless the call was stopped. Any thread. */
void call_run(struct call *call, size_t part);
void call_write(struct call *call);
/* An answer that the embedding server gives in its place: queue full, draining, header gate. */
void call_refuse(struct call *call, int code, const char *detail);
/* The same, for what stands in this field; else it is the whole, `body`. */
void call_refuse_at(struct call *call, const char *field, int code, const char *detail);
/* The same for one client that asks for more at once than the option, a static text, allows it: 429. */
void call_refuse_client(struct call *call, const char *option, uint64_t limit, uint64_t got);

const struct call_reply *call_reply(const struct call *call);
/* The next bytes of the reply's body; 0 = its end. Not for HEAD and 304, which have none. */
size_t call_pull(struct call *call, char *out, size_t room);
/* Of a stream, no more than one turn among others may cost: perhaps none yet. *more: are there any to come? */
size_t call_pull_turn(struct call *call, char *out, size_t room, bool *more);
/* In place of pulling: the body where it lies until call_close, into parts [SOURCE_MAX_PIECES] (wire/source.h). Returns
 * their number, 0 where it has to be pulled. */
struct source_part;
size_t call_parts(const struct call *call, struct source_part *parts);
const char *call_request_id(const struct call *call);
const char *call_route_name(const struct call *call);  /* "POST /v1/apply", "unmatched" */
const char *call_traceparent(const struct call *call); /* NULL = none or malformed */
struct call_times *call_times(struct call *call);
const struct pe_error *call_error(const struct call *call); /* code 0: none */
/* A stream met a number that its format cannot hold: its body ends short and the connection must be cut. */
bool call_failed_short(const struct call *call);
void call_close(struct call *call);

#endif
