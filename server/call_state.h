/* SPDX-License-Identifier: MIT
 *
 * A call from the inside: private to call*.c.
 */
#ifndef CALL_STATE_H
#define CALL_STATE_H

#include "call.h"
#include "routes.h"
#include "site.h"
#include "wire/bind.h"
#include "wire/format.h"
#include "wire/problem.h"
#include "wire/source.h"

struct call_bytes {
    char *data;
    size_t n, room;
};

/* The body on its way in. A compressed one is kept as it comes, and inflated when it is complete: a few bytes
 * may become millions, and that is work, which does not belong where bodies arrive. */
struct call_body {
    const struct format *format;
    uint64_t received;        /* as sent */
    uint64_t expanded;        /* after inflating */
    struct lift *lift;        /* JSON */
    struct call_bytes packed; /* gzip: as sent */
    struct call_bytes plain;  /* binary formats: all of it, inflated */
    size_t held;              /* bytes counted in the budget of all requests */
    bool gzip;
};

/* What results of a task are asked for as they are opened: call_room.c. */
struct call_room {
    const struct call *call;
    const struct format *format; /* of the reply */
    struct source_style style;
    uint64_t bound; /* bytes of what was asked about so far, and of a batch's entries before */
};

/* One entry of a batch. */
struct call_entry {
    struct task task;
    struct bind bind;
    struct source source;
    struct call_room room;
    char *body; /* the reply's text, of body_n bytes: a part of the call's buffer */
    size_t body_n, body_room;
    struct text problem; /* in its place */
    int status;
    bool planned;
};

struct call {
    const struct service *service;
    struct pe_arena *arena;
    struct call_head head; /* texts copied into the arena */
    struct route route;
    const char *route_name, *argument, *query;
    const struct site_file *file; /* of the web page; then that is the reply */
    bool head_only;               /* HEAD */
    struct call_body body;
    struct task task; /* the operation, where it is not a batch */
    const struct format *format;
    struct call_room room;
    struct source source;
    struct call_entry *entries; /* a batch */
    size_t n_entries;
    struct pe_work work;
    uint64_t bound;                                        /* bytes of the reply, at most */
    size_t (*pull)(struct call *, char *out, size_t room); /* where the reply is; NULL: as it is in: */
    char *reply_bytes;                                     /* a buffer, from service->allocator */
    const char *lent;                                      /* in its place: bytes that outlive the call */
    size_t reply_room, reply_n, reply_pulled;
    size_t piece; /* of a batch, that is pulled; reply_pulled bytes of it were */
    struct call_reply reply;
    bool answered;
    struct pe_error err;
    atomic_int stop;
    struct pe_stop end_asked; /* asks `stop`; that of err, and so of all that is planned with it */
    int64_t deadline_ns;
    struct call_times times;
    char request_id[136], etag[SITE_TAG_SIZE], timing[160], allow[40], shape[220];
};

/* Estimates: numbers as text, and pictures, whose bound is as many bytes as pixels. */
#define CALL_WRITE_NS_PER_BYTE  2.0
#define CALL_WRITE_NS_PER_PIXEL 15.0

int64_t call_now_ns(void);
/* A task of this operation, its request at the defaults. */
int call_task_init(struct call *call, struct task *task, const struct api_op *op, struct pe_error *err);
/* The reply becomes the problem in call->err. */
void call_answer_problem(struct call *call);
/* The reply becomes what was buffered, of that media type; a fresh one is not to be kept. */
void call_answer_buffer(struct call *call, int status, const char *media, bool fresh);
/* The reply becomes these bytes, which have to outlive the call. */
void call_answer_lent(struct call *call, const void *bytes, size_t n);
/* The reply becomes an empty one: 204, 304. */
void call_answer_empty(struct call *call, int status);
void call_add_header(struct call *call, const char *name, const char *value);
void call_add_common_headers(struct call *call); /* of every reply */
/* call_room.c */
/* May a reply in this format be pulled from its source, whether or not its numbers are there already? */
bool call_room_streams(const struct call *call, const struct format *format);
/* PE_ERR_LIMIT where a reply of so many bytes in this format, or with a batch's entries before, is too long. */
int call_room_check(const struct call *call, const struct format *format, uint64_t bound,
                    struct pe_error *err);
/* Has results that are opened from now on checked before there is memory for them. */
void call_room_open(struct call_room *room, const struct call *call, const struct format *format,
                    const struct source_style *style);
/* call_body.c */
int call_body_open(struct call *call);
int call_body_feed(struct call *call, const void *bytes, size_t n);
/* The complete body into the task's request. */
int call_body_bind(struct call *call, struct bind *bind);
int call_body_end(struct call *call);
void call_body_close(struct call *call);
/* call_batch.c */
bool call_batch_watches(void *context, const char *const *keys, size_t depth);
int call_batch_open(struct call *call);
int call_batch_write(struct call *call);
void call_batch_close(struct call *call);
/* call_site.c */
/* The reply becomes call->file, or a 304. */
void call_site_answer(struct call *call);
/* call_tag.c: entity tags */
/* That of an operation's reply, from its request; none where it cannot be kept (POST). */
int call_tag_request(struct call *call);
/* That of a page, from its text. */
void call_tag_bytes(struct call *call, const void *bytes, size_t n);
/* Has the client this very reply? Not when there is no tag. */
bool call_tag_matches(const struct call *call);
/* call_reply.c */
/* An empty buffer for the reply, in place of what a step before had buffered. */
int call_buffer_open(struct call *call, size_t room);
void call_buffer_add(struct call *call, const void *bytes, size_t n);
void call_drop_buffer(struct call *call);
/* Fills the buffer with the source. */
int call_buffer_source(struct call *call);
/* Writes a source into `room` bytes, at least its bound, unless it is asked to stop. Returns how many it wrote. */
size_t call_write_source(const struct call *call, struct source *source, char *out, size_t room);
/* The reply is pulled from the source, which needs no buffer. */
void call_reply_from_source(struct call *call);
/* The headers of an operation's own reply, or of the 304 in its place. */
void call_reply_headers(struct call *call);
bool call_is_get(const struct call *call); /* or HEAD */

#endif
