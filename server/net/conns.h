/* SPDX-License-Identifier: MIT
 *
 * The open connections of one listener, and two rules that the HTTP library does not have. Its timeout counts
 * from the last byte, so a client that sends one byte every second holds a connection for ever; here a header
 * and a body have to get on. And at shutdown the idle connections are closed at once.
 *
 * For the loop thread alone. It never closes a descriptor, which is the library's: it shuts the socket down,
 * and the library finds it closed.
 */
#ifndef CONNS_H
#define CONNS_H

#include "listen.h"

enum conn_phase {
    CONN_IDLE,   /* no request line yet */
    CONN_HEADER, /* after the request line */
    CONN_BODY,
    CONN_BUSY /* the request is complete: computing or sending */
};

struct conn {
    int fd;
    enum conn_phase phase;
    int64_t since_ns; /* of the phase */
    int64_t received; /* bytes of the body */
    bool left;        /* the client closed in the middle of a request */
    bool cut;         /* shut down by us */
    bool own_timeout; /* the library's timeout was changed for this one */
    char client[LISTEN_NAME_SIZE];
    struct conn *next, *previous;
};

struct conns {
    struct conn *first;
    size_t n;
    int64_t idle_ns;     /* the library's own timeout */
    int64_t patience_ns; /* for a header, and before a body's rate is looked at */
};

void conns_init(struct conns *conns, int64_t idle_timeout_s);
/* NULL = no memory. */
struct conn *conns_add(struct conns *conns, int fd, const struct sockaddr *peer);
void conns_remove(struct conns *conns, struct conn *conn);
void conn_enter(struct conn *conn, enum conn_phase phase);
void conn_cut(struct conn *conn);
/* Cuts those that are too slow, and those whose client left unseen. To be called about every second. */
void conns_sweep(struct conns *conns, int64_t now_ns);
/* Cuts those that wait for a request and have not sent anything of one. */
void conns_cut_idle(struct conns *conns, int64_t now_ns);

#endif
