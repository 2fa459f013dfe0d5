/* SPDX-License-Identifier: MIT
 *
 * Requests that are stopped, by their deadline or otherwise, at every step of a call: 504 or 503 and nothing
 * of the reply, all memory given back, and the first reason stays. And a queue that is full, which the
 * embedding server answers.
 */
#include "unit/call_run.h"
#include "unit/suites.h"

#include "wire/problem.h"

#include <string.h>

static struct call_ground ground;

static const struct row {
    const char *request, *body;
} rows[] = {
    {"GET /v1/encode?type=sinusoidal&d_model=6&positions=0:4", NULL},
    {"GET /v1/encode?type=sinusoidal&d_model=256&positions=0:200&format=npy", NULL},  /* parts */
    {"GET /v1/encode?type=sinusoidal&d_model=256&positions=0:2200&format=npy", NULL}, /* a stream */
    {"GET /v1/shift?type=sinusoidal&d_model=6&distance=1", NULL},
    {"POST /v1/apply", "{\"encoding\":\"vaswani\",\"embeddings\":[[1,2],[3,4]]}"},
    {"POST /v1/attention",
     "{\"q\":[[1,0],[0,1]],\"k\":[[1,0],[0,1]],\"v\":[[1],[2]],\"return\":[\"output\"]}"},
    {"POST /v1/block", "{\"embeddings\":[[[1,2]],[[3,4]]],\"weights_seed\":1,\"layers\":2}"},
    {"POST /v1/batch", "{\"requests\":[{\"op\":\"encode\",\"encoding\":{\"type\":\"random\",\"d_model\":2},"
                       "\"positions\":[1]},{\"op\":\"positions\",\"lengths\":[2]},[]]}"},
    {"GET /v1/convert?from=halves&to=interleaved&head_dim=4", NULL},
    {"POST /v1/check", "{\"encoding\":\"vaswani\",\"tensor\":[[1,2],[3,4]]}"},
    {"POST /v1/positions", "{\"lengths\":[1,2]}"},
};

/* A step of a call after which it is stopped: 0 open, 1 half of the body, 2 body, 3 finish, then each part.
 */
enum { AFTER_OPEN, AFTER_HALF, AFTER_BODY, AFTER_FINISH, AFTER_PART };

struct stopping {
    struct call *call;
    size_t at, step; /* the step to stop after, and the next one */
    enum call_stop_reason reason;
};

/* A second reason must not count. */
static void step_done(struct stopping *stopping) {
    if (stopping->step++ == stopping->at) {
        call_stop(stopping->call, stopping->reason);
        call_stop(stopping->call, CALL_STOP_SHUTDOWN);
        call_stop(stopping->call, CALL_STOP_DEADLINE);
    }
}

static void setup(void) {
    call_ground_open(&ground);
}

static void teardown(void) {
    call_ground_close(&ground);
}

static struct call *open_row(const struct row *row, char *method, size_t size) {
    size_t n = strcspn(row->request, " ");
    ck_assert_uint_lt(n, size);
    memcpy(method, row->request, n);
    method[n] = '\0';
    const struct call_head head = {.method = method,
                                   .target = row->request + n + 1,
                                   .content_length = row->body ? (int64_t)strlen(row->body) : 0};
    return call_open(&ground.service, &head);
}

/* All steps up to call_write; returns how many there were. */
static size_t run(const struct row *row, struct stopping *stopping) {
    size_t n = row->body ? strlen(row->body) : 0;
    step_done(stopping);
    call_feed(stopping->call, row->body ? row->body : "", n / 2);
    step_done(stopping);
    call_feed(stopping->call, row->body ? row->body + n / 2 : "", n - n / 2);
    step_done(stopping);
    call_finish(stopping->call);
    step_done(stopping);
    for (size_t part = 0; part < call_work(stopping->call)->n_parts; part++) {
        call_run(stopping->call, part);
        step_done(stopping);
    }
    call_write(stopping->call);
    return stopping->step;
}

static void check_refusal(const struct row *row, struct stopping *stopping, int status, const char *slug) {
    static char body[1 << 16];
    const struct call_reply *reply = call_reply(stopping->call);
    ck_assert_msg(reply->status == status, "%s stopped at %zu: %d", row->request, stopping->at,
                  reply->status);
    size_t n = call_pull(stopping->call, body, sizeof body - 1);
    body[n] = '\0';
    ck_assert_msg(strstr(body, slug) != NULL, "%s: %s", row->request, body);
    ck_assert_msg(body[0] == '{' && !strstr(body, "shape"), "%s: %s", row->request, body);
    ck_assert(!reply->stream);
    ck_assert_int_eq(reply->length, (int64_t)n);
    ck_assert_uint_eq(call_pull(stopping->call, body, sizeof body), 0);
    ck_assert(call_stopped(stopping->call));
}

/* Stops after every step; the last run has no such step and is answered. */
static void sweep(const struct row *row, enum call_stop_reason reason, int status, const char *slug) {
    size_t n_steps = SIZE_MAX;
    for (size_t at = 0; at <= n_steps; at++) {
        char method[16];
        struct stopping stopping = {.at = at, .reason = reason};
        stopping.call = open_row(row, method, sizeof method);
        ck_assert_ptr_nonnull(stopping.call);
        n_steps = run(row, &stopping);
        if (at < n_steps) {
            check_refusal(row, &stopping, status, slug);
        } else {
            ck_assert_int_eq(call_reply(stopping.call)->status, 200);
        }
        call_close(stopping.call);
        ck_assert_uint_eq(atomic_load(&ground.blocks), 0);
    }
    ck_assert_uint_ge(n_steps, AFTER_PART);
}

START_TEST(past_the_deadline) {
    sweep(&rows[_i], CALL_STOP_DEADLINE, 504, "urn:posenc:error:deadline");
}
END_TEST

START_TEST(at_the_end) {
    sweep(&rows[_i], CALL_STOP_SHUTDOWN, 503, "urn:posenc:error:draining");
}
END_TEST

/* What a server does when there is no room for work, whatever step it is at. */
START_TEST(refused_when_full) {
    static const int codes[] = {SERVER_BUSY, SERVER_DRAINING, SERVER_DEADLINE};
    static const int statuses[] = {503, 503, 504};
    for (size_t i = 0; i < PE_COUNT(codes); i++) {
        char method[16], body[4096];
        struct stopping stopping = {.at = SIZE_MAX};
        stopping.call = open_row(&rows[_i], method, sizeof method);
        run(&rows[_i], &stopping); /* its reply is thrown away */
        call_refuse(stopping.call, codes[i], "no room");
        const struct call_reply *reply = call_reply(stopping.call);
        bool retry = false;
        for (size_t h = 0; h < reply->n_headers; h++) {
            retry = retry || strcmp(reply->headers[h].name, "Retry-After") == 0;
        }
        ck_assert_int_eq(reply->status, statuses[i]);
        ck_assert_int_eq(retry, statuses[i] == 503);
        size_t n = call_pull(stopping.call, body, sizeof body - 1);
        body[n] = '\0';
        ck_assert_msg(strstr(body, "\"no room\"") && !reply->stream, "%s", body);
        call_close(stopping.call);
    }
}
END_TEST

/* A stream that is stopped between blocks is never longer, and can still be closed. */
START_TEST(a_stream_between_blocks) {
    static char block[4096];
    char method[16];
    struct stopping stopping = {.at = SIZE_MAX};
    stopping.call = open_row(&rows[2], method, sizeof method);
    run(&rows[2], &stopping);
    ck_assert(call_reply(stopping.call)->stream);
    ck_assert_uint_gt(call_pull(stopping.call, block, sizeof block), 0);
    call_stop(stopping.call, CALL_STOP_CLIENT_GONE);
    ck_assert(call_stopped(stopping.call));
    call_close(stopping.call);
}
END_TEST

Suite *faults_stop_suite(void) {
    Suite *suite = suite_create("faults_stop");
    TCase *tests = tcase_create("faults_stop");
    tcase_set_timeout(tests, 60);
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, past_the_deadline, 0, PE_COUNT(rows));
    tcase_add_loop_test(tests, at_the_end, 0, PE_COUNT(rows));
    tcase_add_loop_test(tests, refused_when_full, 0, PE_COUNT(rows));
    tcase_add_test(tests, a_stream_between_blocks);
    return suite;
}
