/* SPDX-License-Identifier: MIT
 *
 * libmicrohttpd 0.9.75 with a loop of our own. Its internal thread waits twice when exactly 128, 256 ...
 * connections are ready at once, and a resume from another thread can be lost; so here one thread waits with
 * epoll for {the library's epoll descriptor, the list of the done, the sockets of suspended connections} and
 * then calls MHD_run, which never waits. Only this thread calls the library. Workers hand requests back by
 * the list of the done, and the loop resumes their connections.
 *
 * MHD_stop_daemon aborts the process when a connection is suspended, so the loop first brings all of them
 * back.
 */
#include "http.h"

#include "call.h"
#include "config.h"
#include "http_reply.h"
#include "http_suspended.h"
#include "log.h"
#include "metrics.h"
#include "request.h"

#include <limits.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* The library's buffer of one connection: its header must fit, and bodies come in pieces of this size.
 * Measured: smaller halves the speed of uploads, larger gains nothing and costs it for each connection. */
#define HTTP_CONNECTION_BYTES CALL_HEAD_BYTES
#define HTTP_STACK_BYTES      ((size_t)2 << 20) /* jansson's recursion, 2048 levels deep */
#define HTTP_LIBRARY          "0.9.75"          /* of which we know where a head lies */
#define HTTP_EVENTS           64
#define HTTP_PIECE_BYTES      (HTTP_CONNECTION_BYTES / 4) /* of a body: from here on there is more in the socket */
#define HTTP_RUNS             8  /* of the library in a turn, while bodies come in pieces like that */
#define HTTP_STUCK_TURNS      48 /* without any event: a buffer that is full of half a line */
#define HTTP_STUCK_MS         5
#define HTTP_DRAIN_TICK_NS    (20 * POOL_MS)
#define HTTP_LAST_WORDS_NS    POOL_SECOND /* after the drain timeout, to send what was stopped */
#define NEVER                 INT64_MAX

enum http_phase { HTTP_SERVING, HTTP_DRAINING, HTTP_STOPPING, HTTP_GONE };

struct http {
    struct shell shell;
    struct conns conns;
    struct listener listener;
    struct MHD_Daemon *daemon;
    struct suspended suspended; /* and the loop's epoll descriptor */
    enum http_phase phase;
    int64_t next_sweep;
    int64_t end_ns; /* of the phase */
    int stuck;      /* turns since something happened */
    bool poked;     /* the list of the done says that there is something */
    bool pieces;    /* a body goes on */
    pthread_t thread;
    bool has_thread;
    _Atomic int64_t drain_ns; /* when the drain must be over; NEVER = go on serving */
};

/* ---- The library's callbacks --------------------------------------------------------------------------- */

static struct conn *conn_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

static enum request_outcome outcome_of(const struct request *request, enum MHD_RequestTerminationCode code) {
    switch (code) {
    case MHD_REQUEST_TERMINATED_COMPLETED_OK:
        return REQUEST_SENT;
    case MHD_REQUEST_TERMINATED_TIMEOUT_REACHED:
        return REQUEST_TIMED_OUT;
    case MHD_REQUEST_TERMINATED_DAEMON_SHUTDOWN:
        return REQUEST_CUT;
    case MHD_REQUEST_TERMINATED_WITH_ERROR:
        if (request->call == NULL && !request->conn->cut) {
            return REQUEST_SENT; /* the library has refused the head by itself */
        }
        return request_broken(request);
    default:
        return request_broken(request);
    }
}

static void on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode code) {
    struct http *http = context;
    struct metrics *metrics = http->shell.service->metrics;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        struct conn *conn = *socket_context;
        if (conn != NULL) {
            if (conn->request != NULL) { /* a head without room for its parts: on_completed is not called */
                request_release(conn->request, outcome_of(conn->request, MHD_REQUEST_TERMINATED_WITH_ERROR));
            }
            if (conn->phase == CONN_IDLE && conn->begun && conn->why != NULL) {
                metrics_reject(metrics, METRICS_IDLE_TIMEOUT); /* there was no request yet that could be */
            }
            conns_remove(&http->conns, conn);
            metrics_add(metrics, METRICS_CONNECTIONS, -1);
        }
        return;
    }
    int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    const struct sockaddr *peer =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
    *socket_context = conns_add(&http->conns, fd, peer);
    if (*socket_context == NULL) {
        shutdown(fd, SHUT_RDWR);
        return;
    }
    metrics_add(metrics, METRICS_CONNECTIONS, 1);
    metrics_add(metrics, METRICS_CONNECTIONS_TOTAL, 1);
}

/* The request line as it was sent; what this returns becomes *request_context of the others. */
static void *on_request_line(void *context, const char *target, struct MHD_Connection *connection) {
    struct http *http = context;
    struct conn *conn = conn_of(connection);
    struct request *request = conn != NULL ? request_open(&http->shell, conn, target) : NULL;
    if (request != NULL) {
        conn_enter(&http->conns, conn, CONN_HEADER);
        request->connection = connection;
    }
    return request;
}

/* The library is not to decode anything: calls take the target as it was sent. */
static size_t on_unescape(void *context, struct MHD_Connection *connection, char *text) {
    (void)context;
    (void)connection;
    return strlen(text);
}

static bool library_is_known(void) {
    return strcmp(MHD_get_version(), HTTP_LIBRARY) == 0;
}

static enum MHD_Result on_header(void *context, enum MHD_ValueKind kind, const char *name, size_t name_size,
                                 const char *value, size_t value_size) {
    struct gate_request *head = context;
    (void)kind;
    if (head->n_headers < GATE_MAX_HEADERS) {
        head->headers[head->n_headers] = (struct gate_header){.name = name,
                                                              .value = value != NULL ? value : "",
                                                              .name_size = name_size,
                                                              .value_size = value_size};
    }
    head->n_headers++;
    return MHD_YES;
}

/* Tells the gate where the head lies. Other releases may move texts, and read more strictly. */
static void place(struct gate_request *head, struct MHD_Connection *connection, const char *url) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    if (info != NULL && library_is_known()) {
        head->target_at = url;
        head->head_size = info->header_size;
    }
}

static enum MHD_Result begin(struct http *http, struct request *request, const char *url, const char *method,
                             const char *version) {
    struct gate_request head = {.method = method, .target = request->target, .version = version};
    MHD_get_connection_values_n(request->connection, MHD_HEADER_KIND, on_header, &head);
    place(&head, request->connection, url);
    conn_enter(&http->conns, request->conn, CONN_BODY);
    if (request->conn->own_timeout) {
        request->conn->own_timeout = false;
        MHD_set_connection_option(request->connection, MHD_CONNECTION_OPTION_TIMEOUT,
                                  (unsigned)http->shell.service->config->idle_timeout_s);
    }
    if (!request_begin(request, &head)) {
        return MHD_NO;
    }
    if (request->phase == REQUEST_READY) {
        conn_enter(&http->conns, request->conn, CONN_BUSY);
        return http_reply_send(request) ? MHD_YES : MHD_NO;
    }
    return MHD_YES;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *body,
                                  size_t *body_size, void **request_context) {
    struct http *http = context;
    struct request *request = *request_context;
    (void)connection;
    http->shell.moved = true;
    if (request == NULL || request->gone) {
        return MHD_NO;
    }
    if (request->phase == REQUEST_HEAD) {
        return begin(http, request, url, method, version);
    }
    if (request->phase == REQUEST_BODY && *body_size > 0) {
        bool ok = request_feed(request, body, *body_size);
        http->pieces = http->pieces || *body_size >= HTTP_PIECE_BYTES;
        *body_size = 0;
        return ok ? MHD_YES : MHD_NO;
    }
    if (request->phase == REQUEST_BODY) {
        conn_enter(&http->conns, request->conn, CONN_BUSY);
        request_finish(request);
    }
    if (request_waits(request)) {
        suspended_add(&http->suspended, request);
        return MHD_YES;
    }
    return http_reply_send(request) ? MHD_YES : MHD_NO;
}

static void on_completed(void *context, struct MHD_Connection *connection, void **request_context,
                         enum MHD_RequestTerminationCode code) {
    struct request *request = *request_context;
    struct http *http = context;
    (void)connection;
    if (request != NULL) {
        struct conn *conn = request->conn;
        *request_context = NULL;
        request_release(request, outcome_of(request, code));
        conn_enter(&http->conns, conn, CONN_IDLE);
    }
}

/* What the library has to say concerns single connections, and clients could fill the log with it. */
static void on_message(void *context, const char *format, va_list arguments) {
    (void)context;
    (void)format;
    (void)arguments;
}

/* ---- The loop ------------------------------------------------------------------------------------------ */

static void take_done(struct http *http) {
    if (!http->poked) {
        return;
    }
    struct done_item *item = done_take(&http->shell.done);
    http->poked = false;
    while (item != NULL) {
        struct request *request = (struct request *)item;
        item = item->next;
        bool orphan = request->phase == REQUEST_ORPHAN;
        request_returned(request);
        if (!orphan) {
            suspended_settle(&http->suspended, request);
        }
    }
}

static int wait_ms(const struct http *http, int64_t now) {
    MHD_UNSIGNED_LONG_LONG library_ms;
    int64_t wake =
        http->suspended.next_deadline < http->next_sweep ? http->suspended.next_deadline : http->next_sweep;
    int64_t ms = wake == NEVER ? 60000 : (wake - now + POOL_MS - 1) / POOL_MS;
    if (MHD_get_timeout(http->daemon, &library_ms) == MHD_YES && (int64_t)library_ms < ms) {
        ms = (int64_t)library_ms;
    }
    /* The library wants to go on at once when there are bytes in a buffer, even if they fill it and end in
     * the middle of a chunk's first line, so that nothing can come of it until the sweep cuts it. But it also
     * reads a long head KiB by KiB without a word, and that must not have to wait. */
    if (http->stuck > HTTP_STUCK_TURNS && ms < HTTP_STUCK_MS) {
        ms = HTTP_STUCK_MS;
    }
    return ms < 0 ? 0 : (int)(ms < 60000 ? ms : 60000);
}

static void wait_events(struct http *http) {
    struct epoll_event events[HTTP_EVENTS];
    http->stuck = http->shell.moved ? 0 : http->stuck;
    http->shell.moved = false;
    int n = epoll_wait(http->suspended.epoll, events, HTTP_EVENTS, wait_ms(http, pool_now_ns()));
    http->stuck = n == 0 && http->stuck < INT_MAX ? http->stuck + 1 : 0;
    for (int i = 0; i < n; i++) {
        struct request *request = events[i].data.ptr;
        if (events[i].data.ptr == &http->shell.done) {
            http->poked = true;
            continue;
        }
        if (request == NULL) {
            continue; /* the library, which runs anyway */
        }
        request_client_left(request);
        suspended_settle(&http->suspended, request);
    }
}

static void start_draining(struct http *http) {
    http->phase = HTTP_DRAINING;
    http->next_sweep = 0; /* from now on at a quicker pace */
    http->shell.draining = true;
    MHD_run(http->daemon); /* takes in who is connected already */
    MHD_socket fd = MHD_quiesce_daemon(http->daemon);
    if (fd != MHD_INVALID_SOCKET) {
        close(fd);
    }
}

static void start_stopping(struct http *http, int64_t now) {
    http->phase = HTTP_STOPPING;
    http->end_ns = now + HTTP_LAST_WORDS_NS;
}

static void step_phase(struct http *http, int64_t now) {
    int64_t drain_ns = atomic_load(&http->drain_ns);
    bool idle = http->conns.n == 0;
    if (http->phase == HTTP_SERVING && drain_ns != NEVER) {
        start_draining(http);
    } else if (http->phase == HTTP_DRAINING) {
        conns_cut_idle(&http->conns, now);
        if (idle) {
            http->phase = HTTP_GONE;
        } else if (now >= drain_ns) {
            start_stopping(http, now);
        }
    } else if (http->phase == HTTP_STOPPING && (idle || now >= http->end_ns)) {
        http->phase = HTTP_GONE;
    }
    if (http->phase >= HTTP_STOPPING) {
        suspended_for_each(&http->suspended, NEVER, request_stop); /* those that still come, too */
    }
}

static void sweep(struct http *http, int64_t now) {
    if (now < http->next_sweep) {
        return;
    }
    MHD_run(http->daemon); /* what came while we, not the clients, were late */
    conns_sweep(&http->conns, now, request_body_late);
    http->next_sweep = now + (http->phase == HTTP_SERVING ? CONNS_SWEEP_NS : HTTP_DRAIN_TICK_NS);
}

/* A megabyte comes in more than sixty pieces, as the library's buffer holds no more. Waiting between any two of them,
 * with all that a turn looks at, would cost as much as reading them. */
static void run_library(struct http *http) {
    int runs = 0;
    do {
        http->pieces = false;
        MHD_run(http->daemon);
        runs++;
    } while (http->pieces && runs < HTTP_RUNS && done_is_empty(&http->shell.done));
}

static void turn(struct http *http) {
    wait_events(http);
    take_done(http);
    int64_t now = pool_now_ns();
    if (now >= http->suspended.next_deadline) {
        suspended_for_each(&http->suspended, now, request_expire);
    }
    sweep(http, now);
    step_phase(http, now);
    run_library(http);
}

static void *loop_main(void *context) {
    struct http *http = context;
    /* The library aborts when it is stopped with a suspended connection. */
    while (http->phase != HTTP_GONE || http->suspended.first != NULL) {
        turn(http);
    }
    MHD_stop_daemon(http->daemon);
    http->daemon = NULL;
    /* Released streams of which a worker still fills a block. */
    while (http->shell.n_orphans > 0) {
        struct epoll_event event;
        epoll_wait(http->suspended.epoll, &event, 1, 1000);
        http->poked = true;
        take_done(http);
    }
    return NULL;
}

/* ---- Opening and closing ------------------------------------------------------------------------------- */

static bool start_daemon(struct http *http) {
    const struct config *config = http->shell.service->config;
    http->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_ITC | MHD_USE_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_request,
        http, MHD_OPTION_EXTERNAL_LOGGER, on_message, NULL, MHD_OPTION_LISTEN_SOCKET, http->listener.fd,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, HTTP_CONNECTION_BYTES, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)config->connections, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)config->idle_timeout_s,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION, on_connection, http,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, http, MHD_OPTION_URI_LOG_CALLBACK, on_request_line, http,
        MHD_OPTION_UNESCAPE_CALLBACK, on_unescape, NULL, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
        MHD_OPTION_END);
    return http->daemon != NULL;
}

static bool watch(struct http *http, int fd, void *what) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = what};
    return epoll_ctl(http->suspended.epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

static bool start_loop(struct http *http) {
    http->suspended.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (http->suspended.epoll < 0 || !done_open(&http->shell.done) || !start_daemon(http)) {
        return false;
    }
    int library = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    if (!watch(http, library, NULL) || !watch(http, http->shell.done.fd, &http->shell.done)) {
        return false;
    }
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) {
        return false;
    }
    pthread_attr_setstacksize(&attributes, HTTP_STACK_BYTES);
    http->has_thread = pthread_create(&http->thread, &attributes, loop_main, http) == 0;
    pthread_attr_destroy(&attributes);
    return http->has_thread;
}

static void warn_of_library(const struct log *log) {
    const struct log_pair pairs[] = {{.name = "version", .text = MHD_get_version()},
                                     {.name = "checked_with", .text = HTTP_LIBRARY}};
    log_event(log, LOG_WARNING, "header lines are not checked as strictly with this libmicrohttpd", pairs,
              PE_COUNT(pairs));
}

int http_open(struct http **out, const struct http_options *options, struct pe_error *err) {
    *out = NULL;
    struct http *http = calloc(1, sizeof *http);
    if (http == NULL) {
        return pe_fail(err, PE_ERR_MEMORY, options->option, "no memory for a listener");
    }
    http->shell = (struct shell){.service = options->service,
                                 .log = options->log,
                                 .pool = options->pool,
                                 .done = {.fd = -1},
                                 .admin = options->admin};
    conns_init(&http->conns, options->service->config);
    http->shell.peers = &http->conns.peers;
    http->shell.suspended = &http->suspended;
    http->suspended = (struct suspended){.epoll = -1, .next_deadline = NEVER};
    atomic_init(&http->drain_ns, NEVER);
    if (listen_open(&http->listener, options->address, options->option, err) != PE_OK) {
        http_close(http);
        return err->code;
    }
    if (!library_is_known() && !options->admin) {
        warn_of_library(options->log);
    }
    if (!start_loop(http)) {
        http_close(http);
        return pe_fail(err, PE_ERR_MEMORY, options->option, "the system gave no thread or descriptor for %s",
                       options->address);
    }
    *out = http;
    return PE_OK;
}

const char *http_address(const struct http *http) {
    return http->listener.name;
}

void http_drain(struct http *http, int64_t timeout_ns) {
    atomic_store(&http->drain_ns, pool_now_ns() + timeout_ns);
    done_poke(&http->shell.done);
}

void http_join(struct http *http) {
    if (http->has_thread) {
        pthread_join(http->thread, NULL);
        http->has_thread = false;
    }
}

void http_close(struct http *http) {
    if (http == NULL) {
        return;
    }
    if (http->daemon != NULL) {
        MHD_stop_daemon(http->daemon); /* closes the socket, too */
    } else if (http->listener.fd > 0 && http->phase == HTTP_SERVING) {
        close(http->listener.fd);
    }
    if (http->suspended.epoll >= 0) {
        close(http->suspended.epoll);
    }
    done_close(&http->shell.done);
    free(http);
}

const char *http_library_version(void) {
    return MHD_get_version();
}
