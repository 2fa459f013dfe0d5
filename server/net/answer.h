/* SPDX-License-Identifier: MIT
 *
 * An answer in the middle of a request's body, which the HTTP library does not send before the body's end. A
 * client whose body is late would learn nothing but that it was cut.
 */
#ifndef ANSWER_H
#define ANSWER_H

#include <stdbool.h>
#include <stddef.h>

struct call;

/* Puts the call's reply, a problem, straight into the socket, with Connection: close, and ends our side of
 * the connection. Nothing of another reply may be on its way there. The reply to a HEAD has no body. Returns
 * how many bytes of the body went out. */
size_t answer_now(int fd, struct call *call, bool is_head);

#endif
