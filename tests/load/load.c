/* SPDX-License-Identifier: MIT
 *
 * Load for an HTTP server: load HOST:PORT CONNECTIONS SECONDS TARGET [BODYFILE [CONTENT-TYPE]].
 *
 * Where SECONDS is `-`, it works in windows: each line `SECONDS REPLIES` of standard input is one, which lasts that
 * long and until so many replies have come, and is answered by a line of figures. Between windows requests stay on
 * their way, so that servers can be measured by turns while each is kept busy.
 *
 * Every connection is kept open and has one request on its way at any time: a GET of TARGET, or a POST of the
 * file. One thread and epoll; latencies go into a histogram whose cells are 3% wide, so their number costs no
 * memory. A reply counts when its status is 200 and its body as long as the first one's; anything else is an
 * error, and its connection is opened again.
 *
 *     $ load 127.0.0.1:8080 64 5 '/v1/encode?type=sinusoidal&d_model=6&positions=0:4'
 *     requests_per_s=61234.5 p50_us=980.1 p99_us=2011.7 requests=306172 errors=0 connections=64
 * body_bytes=432
 *
 * Exit code 0 without errors, 1 with some, 2 when it could not begin.
 */
#include "load/reply.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_CONNECTIONS 10000
#define MAX_BODY        ((size_t)64 << 20)
#define TARGET_ROOM     8192
#define READ_BYTES      ((size_t)256 << 10)
#define N_EVENTS        256
#define CELLS_PER_OCT   32 /* of the histogram */
#define N_CELLS         (CELLS_PER_OCT * 40)
#define WAIT_MS         100
#define SECOND_NS       INT64_C(1000000000)
#define PATIENCE_NS     (60 * SECOND_NS)

struct conn {
    int fd;      /* -1 = closed */
    size_t sent; /* bytes of the request */
    bool wants_write;
    int64_t began_ns;
    struct reply reply;
};

struct load {
    struct addrinfo *address;
    char *request;
    size_t request_n;
    struct conn *conns;
    size_t n_conns;
    int epoll;
    int64_t end_ns;
    bool by_windows;
    uint64_t n_wanted; /* replies, before the end counts */
    bool has_length;
    size_t length; /* of the first reply's body */
    uint64_t n_requests, n_errors;
    uint64_t cells[N_CELLS];
    char *buffer;
};

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * SECOND_NS + now.tv_nsec;
}

/* ---- Latencies ----------------------------------------------------------------------------------------- */

/* Below 32 ns a cell each, above that 32 to an octave. */
static size_t cell_of(int64_t ns) {
    size_t octave = 0;
    while (ns >= 2 * CELLS_PER_OCT) {
        ns /= 2;
        octave++;
    }
    size_t cell = octave * CELLS_PER_OCT + (size_t)ns;
    return cell < N_CELLS ? cell : N_CELLS - 1;
}

static double middle_us(size_t cell) {
    size_t octave = cell < 2 * CELLS_PER_OCT ? 0 : cell / CELLS_PER_OCT - 1;
    double ns = (double)(cell - octave * CELLS_PER_OCT) + 0.5;
    return ns * (double)(UINT64_C(1) << octave) / 1000;
}

static double percentile_us(const struct load *load, double share) {
    double wanted = share * (double)load->n_requests, seen = 0;
    for (size_t i = 0; i < N_CELLS; i++) {
        seen += (double)load->cells[i];
        if (seen >= wanted && seen > 0) {
            return middle_us(i);
        }
    }
    return 0;
}

/* ---- Connections --------------------------------------------------------------------------------------- */

static void want(struct load *load, struct conn *conn, bool write, int operation) {
    struct epoll_event event = {.events = write ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = conn};
    conn->wants_write = write;
    epoll_ctl(load->epoll, operation, conn->fd, &event);
}

/* As much of the request as the socket takes. */
static bool send_on(struct load *load, struct conn *conn) {
    while (conn->sent < load->request_n) {
        ssize_t n = send(conn->fd, load->request + conn->sent, load->request_n - conn->sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN) {
            return false;
        }
        if (n < 0) {
            break;
        }
        conn->sent += (size_t)n;
    }
    bool more = conn->sent < load->request_n;
    if (more != conn->wants_write) {
        want(load, conn, more, EPOLL_CTL_MOD);
    }
    return true;
}

static bool start_request(struct load *load, struct conn *conn) {
    conn->sent = 0;
    reply_begin(&conn->reply);
    conn->began_ns = now_ns();
    return send_on(load, conn);
}

static bool open_conn(struct load *load, struct conn *conn) {
    const struct addrinfo *address = load->address;
    int one = 1;
    conn->fd = socket(address->ai_family, SOCK_STREAM, 0);
    if (conn->fd < 0) {
        return false;
    }
    if (connect(conn->fd, address->ai_addr, address->ai_addrlen) != 0) {
        close(conn->fd);
        conn->fd = -1;
        return false;
    }
    setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    want(load, conn, false, EPOLL_CTL_ADD);
    return start_request(load, conn);
}

/* ---- Replies ------------------------------------------------------------------------------------------- */

/* As long as the first one? */
static bool finish_reply(struct load *load, struct conn *conn) {
    if (!load->has_length) {
        load->has_length = true;
        load->length = conn->reply.body_n;
    }
    if (conn->reply.body_n != load->length) {
        return false;
    }
    int64_t now = now_ns();
    load->cells[cell_of(now - conn->began_ns)]++;
    load->n_requests++;
    return (now >= load->end_ns && !load->by_windows) || start_request(load, conn);
}

static bool receive(struct load *load, struct conn *conn) {
    ssize_t n = recv(conn->fd, load->buffer, READ_BYTES, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return true;
    }
    enum reply_state state = n > 0 ? reply_take(&conn->reply, load->buffer, (size_t)n) : REPLY_BAD;
    return state == REPLY_MORE || (state == REPLY_DONE && finish_reply(load, conn));
}

static void fail(struct load *load, struct conn *conn) {
    load->n_errors++;
    close(conn->fd);
    conn->fd = -1;
    if (!open_conn(load, conn) && conn->fd >= 0) {
        close(conn->fd);
        conn->fd = -1;
    }
}

/* Until the time is up and there are as many answers as wanted, which a slow server may take longer for. */
static bool goes_on(const struct load *load) {
    int64_t now = now_ns();
    bool all = load->n_requests + load->n_errors >= load->n_wanted;
    return now < load->end_ns || (!all && now < load->end_ns + PATIENCE_NS);
}

static void run(struct load *load) {
    struct epoll_event events[N_EVENTS];
    while (goes_on(load)) {
        int n = epoll_wait(load->epoll, events, N_EVENTS, WAIT_MS);
        for (int i = 0; i < n; i++) {
            struct conn *conn = events[i].data.ptr;
            bool ok = (events[i].events & EPOLLOUT) == 0 || send_on(load, conn);
            if (ok && (events[i].events & ~(uint32_t)EPOLLOUT) != 0) {
                ok = receive(load, conn);
            }
            if (!ok) {
                fail(load, conn);
            }
        }
    }
}

/* ---- The beginning and the end ----------------------------------------------------------------------------
 */

static bool resolve(struct load *load, const char *where) {
    char host[256];
    const char *colon = strrchr(where, ':');
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    if (colon == NULL || (size_t)(colon - where) >= sizeof host) {
        return false;
    }
    memcpy(host, where, (size_t)(colon - where));
    host[colon - where] = '\0';
    return getaddrinfo(host, colon + 1, &hints, &load->address) == 0;
}

static char *read_body(const char *path, size_t *n) {
    FILE *file = fopen(path, "rb");
    char *body = file != NULL ? malloc(MAX_BODY) : NULL;
    if (body != NULL) {
        *n = fread(body, 1, MAX_BODY, file);
    }
    if (file != NULL) {
        fclose(file);
    }
    return body;
}

/* argv: TARGET [BODYFILE [CONTENT-TYPE]] */
static bool make_request(struct load *load, int argc, char **argv) {
    size_t body_n = 0;
    char *body = argc > 1 ? read_body(argv[1], &body_n) : NULL;
    if (argc > 1 && body == NULL) {
        return false;
    }
    size_t room = TARGET_ROOM + strlen(argv[0]) + (argc > 2 ? strlen(argv[2]) : 0) + body_n;
    load->request = malloc(room);
    if (load->request == NULL) {
        free(body);
        return false;
    }
    int n =
        snprintf(load->request, room, "%s %s HTTP/1.1\r\nHost: load\r\n", argc > 1 ? "POST" : "GET", argv[0]);
    if (argc > 1) {
        n += snprintf(load->request + n, room - (size_t)n, "Content-Type: %s\r\nContent-Length: %zu\r\n",
                      argc > 2 ? argv[2] : "application/json", body_n);
    }
    n += snprintf(load->request + n, room - (size_t)n, "\r\n");
    if (body_n > 0) {
        memcpy(load->request + n, body, body_n);
    }
    load->request_n = (size_t)n + body_n;
    free(body);
    return true;
}

static bool open_all(struct load *load) {
    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    load->conns = calloc(load->n_conns, sizeof *load->conns);
    load->buffer = malloc(READ_BYTES);
    if (load->epoll < 0 || load->conns == NULL || load->buffer == NULL) {
        return false;
    }
    for (size_t i = 0; i < load->n_conns; i++) {
        if (!open_conn(load, &load->conns[i])) {
            return false;
        }
    }
    return true;
}

static void close_all(struct load *load) {
    for (size_t i = 0; load->conns != NULL && i < load->n_conns; i++) {
        if (load->conns[i].fd > 0) {
            close(load->conns[i].fd);
        }
    }
    if (load->address != NULL) {
        freeaddrinfo(load->address);
    }
    free(load->conns);
    free(load->buffer);
    free(load->request);
}

static int report(const struct load *load, int64_t took_ns) {
    printf("requests_per_s=%.7g p50_us=%.1f p99_us=%.1f requests=%llu errors=%llu connections=%zu "
           "body_bytes=%zu\n",
           (double)load->n_requests * (double)SECOND_NS / (double)took_ns, percentile_us(load, 0.5),
           percentile_us(load, 0.99), (unsigned long long)load->n_requests,
           (unsigned long long)load->n_errors, load->n_conns, load->length);
    return load->n_errors > 0 || load->n_requests == 0;
}

/* As if it had just begun: what was on its way waited for the window, not for the server. */
static void open_window(struct load *load, double seconds, uint64_t n_wanted) {
    int64_t now = now_ns();
    for (size_t i = 0; i < load->n_conns; i++) {
        load->conns[i].began_ns = now;
    }
    memset(load->cells, 0, sizeof load->cells);
    load->n_requests = load->n_errors = 0;
    load->n_wanted = n_wanted;
    load->end_ns = now + (int64_t)(seconds * (double)SECOND_NS);
}

static int run_windows(struct load *load) {
    char line[100];
    int status = 0;
    while (fgets(line, sizeof line, stdin) != NULL) {
        char *rest;
        double seconds = strtod(line, &rest);
        open_window(load, seconds, strtoull(rest, NULL, 10));
        int64_t began = now_ns();
        run(load);
        status |= report(load, now_ns() - began);
        fflush(stdout);
    }
    return status;
}

static int run_once(struct load *load, double seconds) {
    open_window(load, seconds, load->n_conns); /* connecting does not count */
    int64_t began = now_ns();
    run(load);
    return report(load, now_ns() - began);
}

int main(int argc, char **argv) {
    struct load load = {.epoll = -1};
    if (argc < 5 || argc > 7) {
        fprintf(stderr, "usage: load HOST:PORT CONNECTIONS SECONDS TARGET [BODYFILE [CONTENT-TYPE]]\n");
        return 2;
    }
    load.n_conns = strtoul(argv[2], NULL, 10);
    load.by_windows = strcmp(argv[3], "-") == 0;
    double seconds = strtod(argv[3], NULL);
    if (load.n_conns == 0 || load.n_conns > MAX_CONNECTIONS || !(seconds > 0 || load.by_windows)) {
        fprintf(stderr, "load: 1 to %d connections, and seconds above 0, or -\n", MAX_CONNECTIONS);
        return 2;
    }
    int status = 2;
    load.end_ns = INT64_MAX;
    if (resolve(&load, argv[1]) && make_request(&load, argc - 4, argv + 4) && open_all(&load)) {
        status = load.by_windows ? run_windows(&load) : run_once(&load, seconds);
    } else {
        fprintf(stderr, "load: cannot begin: %s\n", strerror(errno));
    }
    close_all(&load);
    return status;
}
