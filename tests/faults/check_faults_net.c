/* SPDX-License-Identifier: MIT
 *
 * Want while the daemon serves: a listener with its loop and its pool, in this process, and a client that has
 * a whole exchange for every n. The reply is that of always, or 503 `memory`, or the connection is closed
 * without one; what the exchange took is given back; and the next one is answered as always.
 *
 * Which thread (tsan looks on) meets the n-th request may differ from run to run, but all of them are met by
 * some n.
 */
#include "faults/fault_call.h"
#include "unit/suites.h"

#include "config.h"
#include "log.h"
#include "net/http.h"
#include "net/pool.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_FAULTS 2000

static struct call_ground ground;
static struct log quiet;
static struct pool *pool;
static struct http *http;
static struct sockaddr_in address;

struct reply {
    char bytes[2 << 20];
    size_t n;
    const char *body; /* after the head; NULL: there is no whole head */
    int status;
};
static struct reply usual, got;

static void setup(void) {
    struct pe_error err = {0};
    struct pool_options workers = {.n_workers = 2, .n_waiting = 4};
    fault_ground_open(&ground);
    ground.config.connections = 16;
    workers.metrics = ground.service.metrics;
    log_init(&quiet, STDERR_FILENO, CONFIG_LOG_OFF);
    ck_assert_msg(!pool_open(&pool, &workers, &err), "%s", err.text);
    struct http_options options = {.service = &ground.service,
                                   .log = &quiet,
                                   .pool = pool,
                                   .address = "127.0.0.1:0",
                                   .option = "--listen"};
    ck_assert_msg(!http_open(&http, &options, &err), "%s", err.text);
    const char *port = strrchr(http_address(http), ':');
    address = (struct sockaddr_in){.sin_family = AF_INET,
                                   .sin_port = htons((unsigned short)strtol(port + 1, NULL, 10)),
                                   .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

static void teardown(void) {
    http_drain(http, 5 * POOL_SECOND);
    http_join(http);
    pool_close(pool);
    http_close(http);
    fault_ground_close(&ground);
}

/* ---- The client, which allocates nothing --------------------------------------------------------------- */

static void read_head(struct reply *reply) {
    char *end;
    reply->bytes[reply->n] = '\0';
    end = strstr(reply->bytes, "\r\n\r\n");
    reply->body = end ? end + 4 : NULL;
    reply->status =
        end && strncmp(reply->bytes, "HTTP/1.1 ", 9) == 0 ? (int)strtol(reply->bytes + 9, NULL, 10) : 0;
}

/* The request, then all that comes until the connection is closed. false: no socket. */
static bool talk(const char *request, size_t n, struct reply *reply) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ssize_t read;
    reply->n = 0;
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        return false;
    }
    send(fd, request, n, MSG_NOSIGNAL);
    while ((read = recv(fd, reply->bytes + reply->n, sizeof reply->bytes - 1 - reply->n, 0)) > 0) {
        reply->n += (size_t)read;
    }
    close(fd);
    read_head(reply);
    return true;
}

/* ---- Sweeping ------------------------------------------------------------------------------------------ */

/* Bodies alone are alike: heads have dates, ids and times. */
static bool same(const struct reply *a, const struct reply *b) {
    size_t head_a = a->body ? (size_t)(a->body - a->bytes) : 0,
           head_b = b->body ? (size_t)(b->body - b->bytes) : 0;
    return a->body && b->body && a->status == b->status && a->n - head_a == b->n - head_b &&
           memcmp(a->body, b->body, a->n - head_a) == 0;
}

/* No reply, an honest one, or that of always without its body, when it is a problem. */
static bool is_want(const struct reply *reply, enum fault_mode mode) {
    bool head_only = !usual.body[0];
    if (!reply->body || reply->status != 503) {
        return reply->n == 0 ||
               (reply->body && !*reply->body && usual.status >= 400 && reply->status == usual.status);
    }
    return strstr(reply->bytes, "\r\nRetry-After: 1\r\n") &&
           (strstr(reply->body, "urn:posenc:error:memory") ||
            (!*reply->body && (mode == FAULT_ONWARDS || head_only)));
}

/* The loop releases a request after its last byte was sent. One block does not come back to us: libmicrohttpd
 * frees the body of a small reply itself. */
static bool all_given_back(void) {
    struct timespec moment = {.tv_nsec = 1000000};
    for (int i = 0; i < 20000 && fault_live() > 1; i++) {
        nanosleep(&moment, NULL);
    }
    return fault_live() <= 1;
}

static void sweep(const char *request, size_t n_bytes, enum fault_mode mode) {
    size_t n = 0;
    for (bool struck = true; struck;) {
        fault_arm(++n, mode);
        bool reached = talk(request, n_bytes, &got);
        /* What comes after the reply, the releasing, asks for nothing: it may go on unarmed. */
        struck = fault_disarm();
        ck_assert(reached);
        ck_assert_msg(same(&got, &usual) || (struck && is_want(&got, mode)),
                      "%.60s\nfault %zu%s: %zu bytes: %.600s", request, n,
                      mode == FAULT_ONWARDS ? " and all after" : "", got.n, got.bytes);
        ck_assert_msg(all_given_back(), "%.60s\nfault %zu: %zu blocks", request, n, fault_live());
        ck_assert(talk(request, n_bytes, &got));
        ck_assert_msg(same(&got, &usual), "%.60s\nafter fault %zu: %.600s", request, n, got.bytes);
        ck_assert_uint_lt(n, MAX_FAULTS);
    }
    ck_assert_uint_gt(n, 1);
}

static void sweep_request(const char *head, const void *body, size_t body_n) {
    static char request[4096];
    size_t n =
        (size_t)snprintf(request, sizeof request,
                         "%s HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Request-Id: fault\r\n", head);
    if (body) {
        n += (size_t)snprintf(request + n, sizeof request - n, "Content-Length: %zu\r\n", body_n);
    }
    n += (size_t)snprintf(request + n, sizeof request - n, "\r\n");
    ck_assert_uint_lt(n + body_n, sizeof request);
    for (size_t i = 0; i < body_n; i++) {
        request[n + i] = ((const char *)body)[i];
    }
    ck_assert(talk(request, n + body_n, &usual));
    ck_assert_msg(usual.body != NULL && usual.status > 0, "%s: %s", head, usual.bytes);
    sweep(request, n + body_n, FAULT_ONCE);
    sweep(request, n + body_n, FAULT_ONWARDS);
}

static const struct {
    const char *head, *body;
    int status;
} rows[] = {
    {"GET /healthz", NULL, 200},
    {"GET /v1/encode?type=sinusoidal&d_model=6&positions=0:4", NULL, 200},
    {"HEAD /v1/encode?type=sinusoidal&d_model=6&positions=0:4", NULL, 200},
    {"GET /v1/encode?type=sinusoidal&d_model=16&positions=0,1,2,3&format=npy", NULL, 200}, /* by the pool */
    {"GET /v1/encode?type=sinusoidal&d_model=16&positions=0:20000&format=npy", NULL, 200}, /* a stream */
    {"GET /v1/none_such", NULL, 404},
    {"POST /v1/none_such", "{}", 404},
    {"POST /v1/encode", "{\"encoding\":{\"type\":\"sinusoidal\",\"d_model\":600},\"positions\":\"0:20\"}",
     200},
    {"POST /v1/apply", "{\"encoding\":\"vaswani\",\"embeddings\":[[1,2],[3,4]]}", 200},
};

START_TEST(an_exchange) {
    sweep_request(rows[_i].head, rows[_i].body, rows[_i].body ? strlen(rows[_i].body) : 0);
    ck_assert_int_eq(usual.status, rows[_i].status);
}
END_TEST

Suite *faults_net_suite(void) {
    Suite *suite = suite_create("faults_net");
    TCase *tests = tcase_create("faults_net");
    tcase_set_timeout(tests, 60);
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, an_exchange, 0, PE_COUNT(rows));
    return suite;
}
