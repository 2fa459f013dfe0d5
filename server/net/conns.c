/* SPDX-License-Identifier: MIT
 *
 * A list: 4096 connections are swept in some ten microseconds, once a second.
 *
 * A trickle inside of the request line cannot be seen from outside of the library. But it keeps the library's
 * timeout from striking, so a connection that has been idle for longer than that timeout must be trickling.
 */
#include "conns.h"

#include "pool.h"

#include <stdlib.h>
#include <sys/socket.h>

#define CONN_PATIENCE_NS   (20 * POOL_SECOND)
#define CONN_BODY_RATE     1000 /* bytes per second, on average, after the patience */
#define CONN_IDLE_GRACE_NS (50 * POOL_MS)

void conns_init(struct conns *conns, int64_t idle_timeout_s) {
    int64_t idle_ns = idle_timeout_s * POOL_SECOND;
    *conns = (struct conns){.idle_ns = idle_ns,
                            .patience_ns = idle_ns < CONN_PATIENCE_NS ? idle_ns : CONN_PATIENCE_NS};
}

struct conn *conns_add(struct conns *conns, int fd, const struct sockaddr *peer) {
    struct conn *conn = calloc(1, sizeof *conn);
    if (conn == NULL) {
        return NULL;
    }
    conn->fd = fd;
    conn->since_ns = pool_now_ns();
    conn->next = conns->first;
    if (conn->next != NULL) {
        conn->next->previous = conn;
    }
    conns->first = conn;
    conns->n++;
    listen_peer_name(peer, conn->client);
    return conn;
}

void conns_remove(struct conns *conns, struct conn *conn) {
    if (conn->previous != NULL) {
        conn->previous->next = conn->next;
    } else {
        conns->first = conn->next;
    }
    if (conn->next != NULL) {
        conn->next->previous = conn->previous;
    }
    conns->n--;
    free(conn);
}

void conn_enter(struct conn *conn, enum conn_phase phase) {
    conn->phase = phase;
    conn->received = 0;
    conn->since_ns = pool_now_ns();
}

void conn_cut(struct conn *conn) {
    conn->cut = true;
    shutdown(conn->fd, SHUT_RDWR);
}

static bool is_slow(const struct conns *conns, const struct conn *conn, int64_t elapsed) {
    switch (conn->phase) {
    case CONN_IDLE:
        return elapsed > conns->idle_ns + POOL_SECOND;
    case CONN_HEADER:
        return elapsed > conns->patience_ns;
    case CONN_BODY:
        return elapsed > conns->patience_ns &&
               conn->received < (elapsed - conns->patience_ns) / POOL_SECOND * CONN_BODY_RATE;
    case CONN_BUSY:
        break;
    }
    return false;
}

/* What waits to be read: > 0 bytes, 0 the client closed, < 0 nothing. */
static int peek(const struct conn *conn) {
    char byte;
    return (int)recv(conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
}

/* The library takes a short read for the end of what there is. When a client's last bytes and its close came
 * together, it never sees the close. */
static bool left_unseen(const struct conn *conn) {
    return (conn->phase == CONN_HEADER || conn->phase == CONN_BODY) && peek(conn) == 0;
}

static void sweep_one(const struct conns *conns, struct conn *conn, int64_t now_ns) {
    conn->left = left_unseen(conn);
    if (conn->left || is_slow(conns, conn, now_ns - conn->since_ns)) {
        conn_cut(conn);
    }
}

void conns_sweep(struct conns *conns, int64_t now_ns) {
    for (struct conn *conn = conns->first; conn != NULL; conn = conn->next) {
        if (!conn->cut) {
            sweep_one(conns, conn, now_ns);
        }
    }
}

/* Not those with bytes that nobody has read yet: closing would lose a request. The short grace is for
 * requests that are in the library's buffer already (pipelined ones). */
void conns_cut_idle(struct conns *conns, int64_t now_ns) {
    for (struct conn *conn = conns->first; conn != NULL; conn = conn->next) {
        bool idle = conn->phase == CONN_IDLE && now_ns - conn->since_ns > CONN_IDLE_GRACE_NS;
        if (idle && !conn->cut && peek(conn) <= 0) {
            conn_cut(conn);
        }
    }
}
