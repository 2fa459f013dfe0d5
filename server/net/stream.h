/* SPDX-License-Identifier: MIT
 *
 * A reply that is computed while it is sent, with flat memory: two blocks, of which one is being sent (the
 * front) while the pool fills the other (the back). The loop thread only ever copies from the front, so a
 * stream of a costly encoding does not hold up other connections.
 *
 * All functions are for the loop thread. A fill runs on a worker and ends by `filled`, on that worker; then
 * the loop calls stream_filled.
 */
#ifndef STREAM_H
#define STREAM_H

#include "pool.h"

struct call;
struct stream;

enum stream_state {
    STREAM_BYTES, /* some were copied */
    STREAM_WAIT,  /* the back block is being filled */
    STREAM_END,   /* all was copied */
    STREAM_FAILED /* the call failed or was stopped in the middle */
};

/* HANDLE; the call stays the caller's. The first fill starts at once. NULL = no memory. */
struct stream *stream_open(struct pool *pool, struct call *call, void (*filled)(void *context),
                           void *context);
/* Copies at most `room` bytes, *n in number. */
enum stream_state stream_read(struct stream *stream, char *out, size_t room, size_t *n);
/* A fill has come back. */
void stream_filled(struct stream *stream);
/* No more fills. true: none is on its way, the stream may be closed; false: one `filled` will still come. */
bool stream_cancel(struct stream *stream);
void stream_close(struct stream *stream); /* NULL is allowed */

#endif
