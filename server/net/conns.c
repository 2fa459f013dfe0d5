/* SPDX-License-Identifier: MIT
 *
 * A list: 4096 connections are swept in some milliseconds at most, twice a second. Only those that wait or
 * are sent to cost a system call each.
 *
 * A request line that trickles cannot be seen from outside of the library, which reads it. But the kernel
 * counts what has come, so the first byte after a request's end starts the clock of the next header.
 *
 * For replies what counts is what the client's system has acknowledged, not what send() took: the kernel's
 * buffers would hide a slow reader for minutes. While nothing of ours is on its way it is us who are waited
 * for, and the reader owes nothing. Its system may take in steps (it tells of free room late, and on
 * loopback by 64 KiB), for which it has credit.
 */
#include "conns.h"

#include "config.h"
#include "pool.h"
#include "tcp.h"

#include <stdlib.h>
#include <sys/socket.h>

/* A pipelined request may be in the library's buffer already. */
#define CONN_IDLE_GRACE_NS (50 * POOL_MS)
#define CONN_LINGER_NS     (2 * POOL_SECOND)
#define CONN_READER_STEP   ((double)(128 << 10))
#define NEVER              INT64_MAX

void conns_init(struct conns *conns, const struct config *config) {
    double rate = (double)config->min_rate_bytes, patience = (double)config->rate_patience_s;
    size_t per_peer = config->connections_per_ip > 0 ? (size_t)config->connections_per_ip : SIZE_MAX;
    *conns = (struct conns){.per_peer = per_peer,
                            .idle_ns = config->idle_timeout_s * POOL_SECOND,
                            .header_ns = config->header_timeout_s * POOL_SECOND,
                            .body = pace_rule(rate, patience, 0),
                            .reader = pace_rule(rate, patience, CONN_READER_STEP)};
}

void conn_enter(struct conns *conns, struct conn *conn, enum conn_phase phase) {
    bool header_goes_on = phase == CONN_HEADER && conn->begun;
    conn->phase = phase;
    conn->since_ns = header_goes_on ? conn->since_ns : pool_now_ns();
    conn->begun = false;
    conn->received = 0;
    conn->idle_mark = -1;
    conn->stood_at = -1;
    conn->deadline_ns = NEVER;
    pace_begin(&conn->pace, phase == CONN_BODY ? &conns->body : &conns->reader);
}

struct conn *conns_add(struct conns *conns, int fd, const struct sockaddr *peer) {
    struct conn *conn = calloc(1, sizeof *conn);
    if (conn == NULL) {
        return NULL;
    }
    conn->peer = peers_enter(&conns->peers, peer);
    if (conn->peer == NULL) {
        free(conn);
        return NULL;
    }
    if (conn->peer->n_conns > conns->per_peer) {
        peers_leave(&conns->peers, conn->peer);
        free(conn);
        return NULL;
    }
    conn->fd = fd;
    conn_enter(conns, conn, CONN_IDLE);
    conn->idle_mark = 0; /* what came before the first sweep is seen by it */
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
    peers_leave(&conns->peers, conn->peer);
    free(conn);
}

/* What waits to be read: > 0 bytes, 0 the client closed, < 0 nothing. */
static int peek(const struct conn *conn) {
    char byte;
    return (int)recv(conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
}

static void cut(struct conn *conn, const char *why) {
    conn->cut = true;
    conn->why = why;
    shutdown(conn->fd, SHUT_RDWR);
}

/* A request line that has begun makes its first byte the start of the time for its header. */
static const char *look_at_idle(const struct conns *conns, struct conn *conn, int64_t now_ns) {
    struct tcp_state tcp;
    if (tcp_look(conn->fd, &tcp)) {
        bool begins = !conn->begun && conn->idle_mark >= 0 && tcp.received > conn->idle_mark;
        conn->since_ns = begins ? now_ns : conn->since_ns;
        conn->begun = conn->begun || begins;
        conn->idle_mark = tcp.received;
        conn->left = tcp.closing && now_ns - conn->since_ns > CONN_IDLE_GRACE_NS && peek(conn) == 0;
    }
    int64_t elapsed = now_ns - conn->since_ns;
    if (conn->begun) {
        return elapsed > conns->header_ns ? "the header took longer than header_timeout_s" : NULL;
    }
    return elapsed > conns->idle_ns + POOL_SECOND ? "nothing came for idle_timeout_s" : NULL;
}

static const char *look_at_reader(const struct conns *conns, struct conn *conn, int64_t now_ns) {
    struct tcp_state tcp;
    bool slow =
        tcp_look(conn->fd, &tcp) && !pace_holds(&conn->pace, &conns->reader, tcp.taken, tcp.owes, now_ns);
    return slow ? "the reply was taken more slowly than min_rate_bytes" : NULL;
}

/* Why it is too slow; NULL = it is not. */
static const char *look(const struct conns *conns, struct conn *conn, int64_t now_ns) {
    int64_t elapsed = now_ns - conn->since_ns;
    switch (conn->phase) {
    case CONN_IDLE:
        return look_at_idle(conns, conn, now_ns);
    case CONN_HEADER:
        return elapsed > conns->header_ns ? "the header took longer than header_timeout_s" : NULL;
    case CONN_BODY:
        return pace_holds(&conn->pace, &conns->body, conn->received, true, now_ns)
                   ? NULL
                   : "the body came more slowly than min_rate_bytes";
    case CONN_BUSY:
        return look_at_reader(conns, conn, now_ns);
    case CONN_LINGER:
        return elapsed > CONN_LINGER_NS ? "the body came later than the deadline" : NULL;
    }
    return NULL;
}

/* The library reads what there is, unless its buffer is full. Full of half a line of a chunk's size, it never
 * gets on, and wakes up the loop in vain as long as the connection lasts. */
static bool stands(struct conn *conn, bool unread) {
    bool stood = unread && conn->stood_at == conn->received;
    conn->stood_at = unread ? conn->received : -1;
    return stood;
}

/* The library takes a short read for the end of what there is. When a client's last bytes and its close came
 * together, it never sees the close: that is looked for here. */
static void sweep_one(const struct conns *conns, struct conn *conn, int64_t now_ns) {
    bool reading = conn->phase == CONN_HEADER || conn->phase == CONN_BODY || conn->phase == CONN_LINGER;
    int unread = reading ? peek(conn) : -1;
    conn->left = unread == 0;
    const char *why = conn->left ? NULL : look(conns, conn, now_ns);
    if (conn->phase == CONN_BODY && stands(conn, unread > 0)) {
        why = "the line of a chunk's size does not fit into the buffer";
    }
    if (conn->left || why != NULL) {
        cut(conn, why);
    }
}

void conns_sweep(struct conns *conns, int64_t now_ns, void (*late)(struct request *request)) {
    for (struct conn *conn = conns->first; conn != NULL; conn = conn->next) {
        if (!conn->cut) {
            sweep_one(conns, conn, now_ns);
        }
        if (!conn->cut && conn->deadline_ns <= now_ns) {
            late(conn->request);
            conn_enter(conns, conn, CONN_LINGER);
        }
    }
}

/* Not those with bytes that nobody has read yet: closing would lose a request. */
void conns_cut_idle(struct conns *conns, int64_t now_ns) {
    for (struct conn *conn = conns->first; conn != NULL; conn = conn->next) {
        bool idle = conn->phase == CONN_IDLE && now_ns - conn->since_ns > CONN_IDLE_GRACE_NS;
        if (idle && !conn->cut && peek(conn) <= 0) {
            cut(conn, NULL);
        }
    }
}
