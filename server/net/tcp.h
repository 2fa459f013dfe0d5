/* SPDX-License-Identifier: MIT
 *
 * What the kernel knows of a connection and the HTTP library does not tell. send() only says that bytes went
 * into a buffer of megabytes; how many of them the client has taken is in the kernel's own figures.
 */
#ifndef TCP_H
#define TCP_H

#include <stdbool.h>
#include <stdint.h>

struct tcp_state {
    int64_t received; /* bytes, since the connection began */
    int64_t taken;    /* bytes that the other side has acknowledged */
    bool owes;        /* the other side has not taken all that was sent */
    bool closing;     /* the other side sends nothing more */
};

/* false: the kernel does not say. */
bool tcp_look(int fd, struct tcp_state *state);
/* Closing it will throw away what was not taken, and reset the connection. */
void tcp_drop_unsent(int fd);
/* Options of a listening socket that the accepted ones inherit. */
void tcp_prepare(int fd);

#endif
