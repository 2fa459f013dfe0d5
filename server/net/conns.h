/* SPDX-License-Identifier: MIT
 *
 * The open connections of one listener, and the rules of time that the HTTP library does not have. Its
 * timeout counts from the last byte, so a client that sends or takes one byte every second holds a connection
 * for ever; here a header has to be complete in time, and bodies and replies have to get on. And at shutdown
 * the idle connections are closed at once.
 *
 * For the loop thread alone. It never closes a descriptor, which is the library's: it shuts the socket down,
 * and the library finds it closed.
 */
#ifndef CONNS_H
#define CONNS_H

#include "listen.h"
#include "pace.h"
#include "peers.h"

struct config;
struct request;

enum conn_phase {
    CONN_IDLE,   /* no request line yet */
    CONN_HEADER, /* after the request line */
    CONN_BODY,
    CONN_BUSY,  /* the request is complete: computing or sending */
    CONN_LINGER /* answered before the body's end, which is thrown away for a while */
};

struct conn {
    int fd;
    enum conn_phase phase;
    int64_t since_ns;    /* of the phase; of its first byte, where a request line has begun */
    int64_t deadline_ns; /* for the body to be complete */
    int64_t received;    /* bytes of the body */
    int64_t idle_mark;   /* the kernel's count of received bytes when the phase IDLE began; -1 = not seen */
    int64_t stood_at; /* received, when a sweep saw bytes of the body that nobody had read; -1 = it did not */
    struct pace pace;
    bool begun;       /* some of the request line is there */
    bool left;        /* the client closed in the middle of a request */
    bool cut;         /* shut down by us */
    bool own_timeout; /* the library's timeout was changed for this one */
    const char *why;  /* it was cut for being slow; static text */
    char client[LISTEN_NAME_SIZE];
    struct peer *peer;
    struct request *request; /* NULL between two */
    struct conn *next, *previous;
};

struct conns {
    struct conn *first;
    size_t n;
    int64_t idle_ns;   /* the library's own timeout */
    int64_t header_ns; /* for a header, from its first byte */
    size_t per_peer;   /* connections of one client; SIZE_MAX = no limit */
    struct pace_rule body, reader;
    struct peers peers;
};

/* How often conns_sweep is to be called, each time after the library has read what there is. */
#define CONNS_SWEEP_NS (500 * INT64_C(1000000))

void conns_init(struct conns *conns, const struct config *config);
/* NULL = no memory, or more than its client may have. */
struct conn *conns_add(struct conns *conns, int fd, const struct sockaddr *peer);
void conns_remove(struct conns *conns, struct conn *conn);
void conn_enter(struct conns *conns, struct conn *conn, enum conn_phase phase);
/* Cuts those that are too slow, and those whose client left unseen. Calls `late` on requests whose body is
 * not complete at their deadline; what still comes of it is thrown away for a while. */
void conns_sweep(struct conns *conns, int64_t now_ns, void (*late)(struct request *request));
/* Cuts those that wait for a request and have not sent anything of one. */
void conns_cut_idle(struct conns *conns, int64_t now_ns);

#endif
