/* SPDX-License-Identifier: MIT
 *
 * One listener: its socket, its loop thread, its connections. Only http*.c know libmicrohttpd. The daemon
 * has two of them, one for everybody and one for health and metrics, so that neither a full queue nor
 * a full table of connections hides whether the daemon lives.
 */
#ifndef HTTP_H
#define HTTP_H

#include "posenc.h"

struct http;
struct log;
struct pool;
struct service;

struct http_options {
    const struct service *service;
    const struct log *log;
    struct pool *pool;
    const char *address; /* "127.0.0.1:8080" */
    const char *option;  /* where the address comes from, for messages: "--listen" */
    bool admin;
};

/* HANDLE: bound, and served by a thread of its own from now on. */
int http_open(struct http **out, const struct http_options *options, struct pe_error *err) PE_CHECKED;
/* The address that it really has. */
const char *http_address(const struct http *http);
/* Any thread. No more connections; what is in flight may take until `timeout_ns` from now. */
void http_drain(struct http *http, int64_t timeout_ns);
/* Waits until all connections are closed. */
void http_join(struct http *http);
/* After http_join, and after pool_close: a worker may still be waking up the loop. NULL is allowed. */
void http_close(struct http *http);
/* Version of libmicrohttpd: "0.9.75". */
const char *http_library_version(void);

#endif
