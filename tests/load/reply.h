/* SPDX-License-Identifier: MIT
 *
 * One HTTP reply as its bytes come: a head, and a body with a Content-Length or in chunks. The body is counted, not
 * kept.
 */
#ifndef REPLY_H
#define REPLY_H

#include <stdbool.h>
#include <stddef.h>

#define REPLY_HEAD_BYTES 8192

enum reply_state { REPLY_MORE, REPLY_DONE, REPLY_BAD };

struct reply {
    size_t head_n; /* bytes of the head so far */
    size_t body_n; /* and of the body */
    size_t left;   /* of the body, or of the chunk and the line that ends it */
    bool in_body, chunked, in_size;
    bool last; /* the chunk of length 0 */
    char head[REPLY_HEAD_BYTES];
};

void reply_begin(struct reply *reply);

/* Takes what came. Bytes behind the reply's end, and a status other than 200, are bad. */
enum reply_state reply_take(struct reply *reply, const char *bytes, size_t n);

#endif
