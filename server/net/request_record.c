/* SPDX-License-Identifier: MIT
 *
 * The status that is recorded is what the client got; where it got none, the number that servers customarily
 * log: 499 the client left, 408 it was too slow, 503 we stopped. The first two are also recorded where the
 * client left or was cut in the middle of a reply.
 */
#include "request_record.h"

#include "log.h"
#include "metrics.h"
#include "wire/problem.h"

static int final_status(const struct request *request, enum request_outcome outcome) {
    if (request->told) {
        return call_reply(request->call)->status;
    }
    if (outcome == REQUEST_TIMED_OUT) {
        return 408;
    }
    if (request->gone || outcome == REQUEST_CLIENT_GONE) {
        return 499;
    }
    if (request->call != NULL && request->phase >= REQUEST_READY) {
        return call_reply(request->call)->status;
    }
    /* 400: refused by the library, before there was a call; what it answered may have been 431. */
    return request->call == NULL && outcome != REQUEST_CUT ? 400 : 503;
}

/* The reason by which a request counts as not served; METRICS_REASON_COUNT = it was. Full queues are counted
 * where they are met. */
static enum metrics_reason reason_of(const struct request *request, int status,
                                     enum request_outcome outcome) {
    if (status == 408) {
        return METRICS_IDLE_TIMEOUT;
    }
    if (request->malformed || (request->call == NULL && status == 400)) {
        return METRICS_MALFORMED;
    }
    switch (status) {
    case 499:
        return METRICS_CLIENT_GONE;
    case 413:
        return METRICS_TOO_LARGE;
    case 504:
        return METRICS_DEADLINE;
    default:
        return outcome == REQUEST_CUT ? METRICS_DRAINING : METRICS_REASON_COUNT;
    }
}

/* Everything that the log and the metrics say in the same words. */
static struct log_request describe(const struct request *request, enum request_outcome outcome) {
    return (struct log_request){
        .method = request->texts != NULL ? request->texts : "-", /* the method is its first text */
        .target = request->target,
        .client = request->conn != NULL ? request->conn->client : NULL,
        .route = "unmatched",
        .status = final_status(request, outcome),
        .bytes = (uint64_t)request->sent,
        .duration_ns = pool_now_ns() - request->opened_ns,
        .queue_ns = request->job.queued_ns,
    };
}

static void describe_call(struct log_request *line, struct call *call) {
    const struct call_times *times = call_times(call);
    line->request_id = call_request_id(call);
    line->route = call_route_name(call);
    line->traceparent = call_traceparent(call);
    int64_t waited = times->queued_first ? 0 : times->queued_ns;
    line->compute_ns =
        times->run > 0 && times->written > times->run ? times->written - times->run - waited : 0;
}

static void describe_error(struct log_request *line, const struct pe_error *error) {
    if (error->code != PE_OK) {
        line->error = problem_slug(error->code);
        line->field = error->path;
        line->detail = error->text;
    }
}

void request_record(const struct request *request, enum request_outcome outcome, bool busy) {
    struct metrics *metrics = request->shell->service->metrics;
    struct log_request line = describe(request, outcome);
    if (request->call != NULL) {
        describe_call(&line, request->call);
    }
    if (line.status == 408) {
        line.error = "timeout";
        line.detail =
            request->conn->why != NULL ? request->conn->why : "nothing was sent or taken for too long";
    } else if (request->call != NULL && !busy) {
        describe_error(&line, call_error(request->call));
    }
    enum metrics_reason reason = reason_of(request, line.status, outcome);
    if (reason != METRICS_REASON_COUNT) {
        metrics_reject(metrics, reason);
    }
    metrics_request(metrics, &(struct metrics_request){
                                 .route = line.route,
                                 .method = line.method,
                                 .status = line.status,
                                 .bytes_in = (uint64_t)request->received,
                                 .bytes_out = line.bytes,
                                 .duration_ns = line.duration_ns,
                                 .queue_ns = request->was_queued ? line.queue_ns : -1,
                                 .compute_ns = line.compute_ns > 0 ? line.compute_ns : -1,
                             });
    log_request(request->shell->log, &line);
}
