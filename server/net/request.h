/* SPDX-License-Identifier: MIT
 *
 * One request on its way through the daemon, without the HTTP library: gate, call, pool, stream, log. It is a
 * state machine that is driven by the loop thread alone; workers only run the parts of its job and hand it
 * back by the list of the done.
 *
 *     HEAD -> BODY -> WORKING -> FIRST -> READY -> SENDING -> (released)
 *
 * Phases are left out as the request needs: no body, nothing to compute on the pool, no stream.
 */
#ifndef REQUEST_H
#define REQUEST_H

#include "conns.h"
#include "done.h"
#include "gate.h"
#include "pool.h"
#include "stream.h"

struct log;
struct suspended;

/* What the requests of one listener share. Owned by its loop thread, but for done. */
struct shell {
    const struct service *service;
    const struct log *log;
    struct pool *pool;
    struct done done;
    struct peers *peers;
    bool admin;
    bool draining;    /* replies say Connection: close */
    size_t n_streams; /* open now */
    size_t n_orphans; /* released while a worker still fills a block */
    /* Random bytes for ids, drawn for many requests at once: the system call costs as much as all else that a
     * small request needs of the system. */
    unsigned char random[64 * CALL_RANDOM_BYTES];
    size_t n_random; /* bytes that are left */

    /* The HTTP side's own. */
    struct suspended *suspended;
    bool moved; /* something was received or sent since the last look */
};

enum request_phase {
    REQUEST_HEAD,    /* the request line is known */
    REQUEST_BODY,    /* bytes are wanted, or swallowed */
    REQUEST_WORKING, /* on the pool */
    REQUEST_FIRST,   /* the first block of a stream is on the pool */
    REQUEST_READY,   /* the reply may be sent */
    REQUEST_SENDING,
    REQUEST_ORPHAN /* released, but a worker still has it */
};

enum request_outcome { REQUEST_SENT, REQUEST_CLIENT_GONE, REQUEST_TIMED_OUT, REQUEST_CUT };

struct request {
    struct done_item done; /* first: the list's item is the request */
    struct pool_job job;
    struct shell *shell;
    struct conn *conn; /* NULL when released */
    struct peer *peer;
    struct call *call;     /* NULL until the head is complete */
    struct stream *stream; /* NULL = the reply is in memory */
    char *texts;           /* what the call's head points to */
    enum request_phase phase;
    bool is_head;     /* the method is HEAD */
    bool close;       /* Connection: close */
    bool swallow;     /* the rest of the body is not wanted */
    bool gone;        /* the client left */
    bool late;        /* past the deadline, but parts are running */
    bool malformed;   /* refused by the gate */
    bool waits_block; /* the sender came for a block that is being filled */
    bool was_queued;
    bool told;   /* answered in the middle of its body */
    bool failed; /* by us, in the middle of the reply */
    bool shared; /* counted in peer->n_requests */
    bool plans;  /* the job's first part is call_finish */
    int64_t opened_ns, deadline_ns;
    int64_t received, sent; /* bytes of the bodies */
    int64_t direct;         /* of the reply, sent without being read; -1 = it is read */
    int64_t direct_mark;    /* what the client had taken of the connection when that began; -1 = not known */

    /* The HTTP side's own. */
    void *connection;
    bool suspended;
    struct request *next, *previous; /* the suspended ones */
    char target[];                   /* as sent */
};

/* At the request line. NULL = no memory. */
struct request *request_open(struct shell *shell, struct conn *conn, const char *target);
/* The header is complete: BODY or READY. false = no memory: close the connection. */
bool request_begin(struct request *request, const struct gate_request *head);
/* false: too much to swallow, close the connection. */
bool request_feed(struct request *request, const void *bytes, size_t n);
/* Its body is not complete at the deadline: answers, and throws away what still comes. */
void request_body_late(struct request *request);
/* The body is complete: WORKING, FIRST or READY. */
void request_finish(struct request *request);
/* It was taken from the list of the done. */
void request_returned(struct request *request);

/* Events while a worker has it (phases WORKING, FIRST, SENDING with waits_block). */
void request_client_left(struct request *request);
void request_expire(struct request *request); /* its deadline has passed */
void request_stop(struct request *request);   /* the daemon stops */

/* Nothing can be sent now: the connection is to be suspended. */
bool request_waits(const struct request *request);
/* The next bytes of the reply's body. STREAM_WAIT sets waits_block. */
enum stream_state request_read(struct request *request, char *out, size_t room, size_t *n);
/* The reply of so many bytes goes out without being read. */
void request_send_directly(struct request *request, int64_t length);
/* Its connection broke: cut by the sweep for being slow, or failed by us in the middle of a reply; else the
 * client left. */
enum request_outcome request_broken(const struct request *request);
/* The connection is done with it: log it, then free it, now or when the worker has handed it back. */
void request_release(struct request *request, enum request_outcome outcome);

#endif
