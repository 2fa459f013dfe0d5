/* SPDX-License-Identifier: MIT
 *
 * Cheap work runs on the loop thread: handing it over costs some 30 us, so below 100 us of work the hand-over
 * would be what takes the time. All else goes to the pool, whose last worker also writes the reply, as making
 * text of a million numbers is work too. Checking and planning goes there as well, unless it is sure to be
 * short (call_is_quick): a few bytes of a request can stand for millions of positions.
 *
 * Who may touch the call: the loop until pool_submit, then the workers, then the loop from the moment the
 * request is taken from the list of the done. In between the loop may only call_stop it.
 */
#include "request_record.h"

#include "answer.h"
#include "config.h"
#include "metrics.h"
#include "tcp.h"
#include "wire/problem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define INLINE_NS 100000.0
/* A refused body is read to its end, so that clients which send before they listen get to see the answer;
 * up to so many times the limit of a body. */
#define SWALLOW_FACTOR 4
#define NEVER          INT64_MAX

static struct request *request_of(struct pool_job *job) {
    return (struct request *)((char *)job - offsetof(struct request, job));
}

static void reject(const struct request *request, enum metrics_reason reason) {
    metrics_reject(request->shell->service->metrics, reason);
}

/* ---- Head and body ------------------------------------------------------------------------------------- */

struct request *request_open(struct shell *shell, struct conn *conn, const char *target) {
    size_t size = strlen(target) + 1;
    struct request *request = malloc(sizeof *request + size);
    if (request == NULL) {
        return NULL;
    }
    *request = (struct request){.shell = shell,
                                .conn = conn,
                                .peer = conn->peer,
                                .phase = REQUEST_HEAD,
                                .opened_ns = pool_now_ns(),
                                .deadline_ns = NEVER,
                                .direct = -1};
    memcpy(request->target, target, size);
    conn->request = request;
    return request;
}

static int64_t swallow_limit(const struct request *request) {
    return SWALLOW_FACTOR * request->shell->service->config->body_bytes;
}

/* Answered before the body. The library closes the connection after a reply that is sent before the body's
 * end, so that is done only where the body will not come or is too long to be read for nothing. */
static void answer_early(struct request *request, const struct gate_result *gate) {
    bool waits = gate->expects_continue && gate->length != 0;
    bool now = waits || gate->length > swallow_limit(request);
    request->phase = now ? REQUEST_READY : REQUEST_BODY;
    request->close = request->close || now;
    request->swallow = !now;
}

/* The next bytes for an id; NULL where the system gives none. */
static const unsigned char *next_random(struct shell *shell) {
    if (shell->n_random == 0 &&
        getrandom(shell->random, sizeof shell->random, GRND_NONBLOCK) == (ssize_t)sizeof shell->random) {
        shell->n_random = sizeof shell->random;
    }
    if (shell->n_random == 0) {
        return NULL;
    }
    shell->n_random -= CALL_RANDOM_BYTES;
    return shell->random + shell->n_random;
}

bool request_begin(struct request *request, const struct gate_request *seen) {
    struct shell *shell = request->shell;
    struct gate_result gate;
    struct call_head head = {.target = gate_target(request->target), .admin = shell->admin};
    request->texts = gate_head(seen, &head);
    if (request->texts == NULL) {
        return false;
    }
    gate_check(seen, &gate);
    head.content_length = gate.length;
    head.random = head.request_id == NULL ? next_random(shell) : NULL;
    request->is_head = strcmp(head.method, "HEAD") == 0;
    request->call = call_open(shell->service, &head);
    if (request->call == NULL) {
        return false;
    }
    metrics_add(shell->service->metrics, METRICS_REQUESTS_IN_FLIGHT, 1);
    request->phase = REQUEST_BODY;
    if (gate.code != 0) {
        request->malformed = request->close = true;
        call_refuse_at(request->call, gate.field, gate.code, gate.detail);
        request->phase = REQUEST_READY;
    } else if (call_answered(request->call)) {
        answer_early(request, &gate);
    }
    if (request->phase == REQUEST_BODY) {
        request->conn->deadline_ns = call_deadline_ns(request->call);
    }
    return true;
}

bool request_feed(struct request *request, const void *bytes, size_t n) {
    request->received += (int64_t)n;
    request->conn->received += (int64_t)n;
    if (!request->swallow) {
        request->swallow = !call_feed(request->call, bytes, n);
    }
    return !request->swallow || request->received <= swallow_limit(request);
}

void request_body_late(struct request *request) {
    if (!call_answered(request->call)) {
        call_refuse(request->call, SERVER_DEADLINE, "the deadline passed before the body was complete");
    }
    request->swallow = request->told = true;
    request->sent += (int64_t)answer_now(request->conn->fd, request->call, request->is_head);
}

/* ---- The reply ----------------------------------------------------------------------------------------- */

/* Has this client `n` of them open already, and no more are allowed? Then it is told so. */
static bool over_share(struct request *request, const char *option, int64_t limit, size_t n) {
    if (limit == 0 || n < (size_t)limit) {
        return false;
    }
    reject(request, METRICS_CLIENT_LIMIT);
    call_refuse_client(request->call, option, (uint64_t)limit, n + 1);
    return true;
}

/* On a worker. */
static void stream_is_filled(void *context) {
    struct request *request = context;
    done_push(&request->shell->done, &request->done);
}

static void stream_begin(struct request *request) {
    struct shell *shell = request->shell;
    struct metrics *metrics = shell->service->metrics;
    const struct config *config = shell->service->config;
    request->phase = REQUEST_READY;
    if (over_share(request, "streams_per_ip", config->streams_per_ip, request->peer->n_streams)) {
        return;
    }
    if (shell->n_streams >= (size_t)config->streams) {
        reject(request, METRICS_STREAMS_FULL);
        call_refuse(request->call, SERVER_BUSY, "as many streams as are allowed (option streams) are open");
        return;
    }
    request->deadline_ns = call_deadline_ns(request->call);
    request->stream = stream_open(shell->pool, request->call, stream_is_filled, request);
    if (request->stream == NULL) {
        call_refuse(request->call, PE_ERR_MEMORY, "no memory for a stream");
        return;
    }
    shell->n_streams++;
    request->peer->n_streams++;
    metrics_add(metrics, METRICS_STREAMS_ACTIVE, 1);
    metrics_add(metrics, METRICS_STREAMS_TOTAL, 1);
    request->phase = REQUEST_FIRST;
}

/* No worker has the stream. */
static void stream_drop(struct request *request) {
    if (request->stream != NULL) {
        stream_close(request->stream);
        request->stream = NULL;
        request->shell->n_streams--;
        request->peer->n_streams--;
        peers_settle(request->shell->peers, request->peer);
        metrics_add(request->shell->service->metrics, METRICS_STREAMS_ACTIVE, -1);
    }
}

/* The call has its reply. */
static void written(struct request *request) {
    request->deadline_ns = NEVER;
    request->phase = REQUEST_READY;
    request->peer->n_requests -= request->shared ? 1 : 0;
    request->shared = false;
    if (!request->gone && !request->is_head && call_reply(request->call)->stream) {
        stream_begin(request);
    }
}

/* ---- Work ---------------------------------------------------------------------------------------------- */

static bool is_cheap(const struct pe_work *work) {
    return work->n_parts == 0 || work->cost_ns < INLINE_NS;
}

static void run_all(struct call *call, const struct pe_work *work) {
    for (size_t part = 0; part < work->n_parts; part++) {
        call_run(call, part);
    }
}

/* On a worker: the first part of a job that plans. What it finds to do becomes further parts. */
static void plan_part(struct request *request) {
    struct call *call = request->call;
    call_finish(call);
    if (call_answered(call)) {
        return;
    }
    const struct pe_work *work = call_work(call);
    if (is_cheap(work)) {
        run_all(call, work);
    } else {
        pool_grow(request->shell->pool, &request->job, work->n_parts);
    }
}

/* On a worker. */
static bool run_part(struct pool_job *job, size_t part) {
    struct request *request = request_of(job);
    struct call *call = request->call;
    if (pool_now_ns() >= call_deadline_ns(call)) {
        call_stop(call, CALL_STOP_DEADLINE);
    }
    if (call_stopped(call)) {
        return false;
    }
    if (!request->plans) {
        call_run(call, part);
    } else if (part == 0) {
        plan_part(request);
    } else {
        call_run(call, part - 1);
    }
    return true;
}

/* On the worker that ran the last part. */
static void parts_end(struct pool_job *job) {
    struct request *request = request_of(job);
    call_times(request->call)->queued_ns = job->queued_ns;
    call_times(request->call)->queued_first = request->plans;
    if (!call_answered(request->call)) {
        call_write(request->call);
    }
    done_push(&request->shell->done, &request->done);
}

static void work_on_pool(struct request *request, size_t n_parts) {
    if (over_share(request, "requests_per_ip", request->shell->service->config->requests_per_ip,
                   request->peer->n_requests)) {
        written(request);
        return;
    }
    request->job = (struct pool_job){.n_parts = n_parts, .run = run_part, .end = parts_end};
    request->deadline_ns = call_deadline_ns(request->call);
    request->phase = REQUEST_WORKING;
    request->was_queued = request->shared = true;
    request->peer->n_requests++;
    if (!pool_submit(request->shell->pool, &request->job)) {
        reject(request, METRICS_QUEUE_FULL);
        call_refuse(request->call, SERVER_BUSY, "the queue of requests (option queue_depth) is full");
        request->was_queued = false;
        written(request);
    }
}

void request_finish(struct request *request) {
    struct call *call = request->call;
    if (!call_is_quick(call)) {
        request->plans = true;
        work_on_pool(request, 1);
        return;
    }
    call_finish(call);
    if (call_answered(call)) {
        written(request);
    } else if (is_cheap(call_work(call))) {
        run_all(call, call_work(call));
        call_write(call);
        written(request);
    } else {
        work_on_pool(request, call_work(call)->n_parts);
    }
}

/* ---- Events -------------------------------------------------------------------------------------------- */

static void free_request(struct request *request) {
    stream_drop(request);
    if (request->call != NULL) {
        call_close(request->call);
        metrics_add(request->shell->service->metrics, METRICS_REQUESTS_IN_FLIGHT, -1);
    }
    free(request->texts);
    free(request);
}

/* A stream that ends before its first byte was sent: there can still be a proper answer. */
static void refuse_stream(struct request *request) {
    int code = request->late ? SERVER_DEADLINE : SERVER_DRAINING;
    stream_drop(request);
    call_refuse(request->call, code,
                request->late ? "the deadline passed before the first byte" : "the daemon is shutting down");
    written(request);
}

static void first_returned(struct request *request) {
    stream_filled(request->stream);
    request->deadline_ns = NEVER;
    request->phase = REQUEST_READY;
    if (!request->gone && (request->late || call_stopped(request->call))) {
        refuse_stream(request);
    }
}

void request_returned(struct request *request) {
    switch (request->phase) {
    case REQUEST_WORKING:
        written(request);
        break;
    case REQUEST_FIRST:
        first_returned(request);
        break;
    case REQUEST_ORPHAN:
        request->shell->n_orphans--;
        free_request(request);
        break;
    case REQUEST_SENDING:
        stream_filled(request->stream);
        request->waits_block = false;
        break;
    case REQUEST_HEAD:
    case REQUEST_BODY:
    case REQUEST_READY:
        break; /* no worker has these */
    }
}

void request_client_left(struct request *request) {
    request->gone = true;
    request->deadline_ns = NEVER;
    call_stop(request->call, CALL_STOP_CLIENT_GONE);
    if (request->phase == REQUEST_WORKING) {
        if (pool_cancel(request->shell->pool, &request->job)) {
            written(request);
        }
    } else if (request->stream != NULL && stream_cancel(request->stream)) {
        request->waits_block = false;
        request->phase = request->phase == REQUEST_FIRST ? REQUEST_READY : request->phase;
    }
}

/* Stops it for a reason that is still answered. */
static void stop(struct request *request, enum call_stop_reason reason) {
    request->deadline_ns = NEVER;
    call_stop(request->call, reason);
    if (request->phase == REQUEST_WORKING) {
        if (pool_cancel(request->shell->pool, &request->job)) {
            call_write(request->call);
            written(request);
        }
    } else if (request->stream != NULL && stream_cancel(request->stream)) {
        request->waits_block = false;
        if (request->phase == REQUEST_FIRST) {
            refuse_stream(request);
        }
    }
}

void request_expire(struct request *request) {
    request->late = true;
    stop(request, CALL_STOP_DEADLINE);
}

void request_stop(struct request *request) {
    stop(request, CALL_STOP_SHUTDOWN);
}

bool request_waits(const struct request *request) {
    return request->phase == REQUEST_WORKING || request->phase == REQUEST_FIRST || request->waits_block;
}

/* ---- Sending ------------------------------------------------------------------------------------------- */

enum stream_state request_read(struct request *request, char *out, size_t room, size_t *n) {
    enum stream_state state;
    if (request->stream != NULL) {
        state = stream_read(request->stream, out, room, n);
        request->waits_block = state == STREAM_WAIT;
    } else {
        *n = call_pull(request->call, out, room);
        state = *n > 0 ? STREAM_BYTES : STREAM_END;
    }
    if (state == STREAM_END && call_failed_short(request->call)) {
        state = STREAM_FAILED;
    }
    request->failed = request->failed || (state == STREAM_FAILED && !request->gone);
    request->sent += (int64_t)*n;
    return state;
}

void request_send_directly(struct request *request, int64_t length) {
    struct tcp_state tcp;
    request->direct = length;
    request->direct_mark = tcp_look(request->conn->fd, &tcp) ? tcp.taken : -1;
}

/* Nobody counted what went out by itself: all of it, or what the client's kernel has acknowledged, of which the header
 * is a few hundred bytes. */
static void count_direct(struct request *request, enum request_outcome outcome) {
    struct tcp_state tcp;
    if (request->direct < 0) {
        return;
    }
    request->sent = request->direct;
    if (outcome != REQUEST_SENT) {
        bool known = request->direct_mark >= 0 && tcp_look(request->conn->fd, &tcp);
        int64_t taken = known ? tcp.taken - request->direct_mark : 0;
        request->sent = taken < request->direct ? taken : request->direct;
    }
}

/* ---- The end ------------------------------------------------------------------------------------------- */

enum request_outcome request_broken(const struct request *request) {
    const struct conn *conn = request->conn;
    if (conn->cut) {
        return conn->left ? REQUEST_CLIENT_GONE : REQUEST_TIMED_OUT;
    }
    return request->failed ? REQUEST_CUT : REQUEST_CLIENT_GONE;
}

void request_release(struct request *request, enum request_outcome outcome) {
    if (request->stream != NULL && outcome != REQUEST_SENT) {
        call_stop(request->call, CALL_STOP_CLIENT_GONE);
    }
    bool busy = request->stream != NULL && !stream_cancel(request->stream);
    count_direct(request, outcome);
    request_record(request, outcome, busy);
    request->conn->request = NULL;
    if (outcome == REQUEST_TIMED_OUT && !request->told) {
        tcp_drop_unsent(request->conn->fd); /* else the kernel would go on sending to who takes nothing */
    }
    if (busy) {
        request->phase = REQUEST_ORPHAN;
        request->conn = NULL;
        request->connection = NULL;
        request->shell->n_orphans++;
    } else {
        free_request(request);
    }
}
