/* SPDX-License-Identifier: MIT
 *
 * Listening sockets, bound here and not by the HTTP library, so that a refusal names the address and the
 * option, port 0 works, and "[::]" serves both IP versions.
 */
#ifndef LISTEN_H
#define LISTEN_H

#include "posenc.h"

struct sockaddr;

#define LISTEN_NAME_SIZE 80
struct listener {
    int fd;
    char name[LISTEN_NAME_SIZE]; /* the address it really has: "127.0.0.1:8080", "[::]:8080" */
};

/* `option` names the option the address came from. PE_ERR_CONFLICT when the address is taken, PE_ERR_RANGE
 * when there is none such. */
int listen_open(struct listener *listener, const char *address, const char *option,
                struct pe_error *err) PE_CHECKED;
/* "127.0.0.1:4711" of a peer into text of LISTEN_NAME_SIZE; returns text. */
char *listen_peer_name(const struct sockaddr *peer, char *text);

#endif
