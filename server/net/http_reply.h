/* SPDX-License-Identifier: MIT
 *
 * The reply of a request, as libmicrohttpd wants it.
 */
#ifndef HTTP_REPLY_H
#define HTTP_REPLY_H

#include <stdbool.h>

struct request;

/* Hands the reply of a request in the phase READY to its connection. false: close that. */
bool http_reply_send(struct request *request);

#endif
