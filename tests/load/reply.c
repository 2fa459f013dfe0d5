/* SPDX-License-Identifier: MIT
 *
 * The framing of replies (RFC 9112, 6 and 7.1), as far as a load generator needs it: extensions of chunks are skipped,
 * trailers are not known. reply.h says the rest.
 */
#define _GNU_SOURCE /* memmem, strcasestr; NOLINT(bugprone-reserved-identifier): named by the C library */

#include "load/reply.h"

#include <stdlib.h>
#include <string.h>

void reply_begin(struct reply *reply) {
    reply->head_n = reply->body_n = reply->left = 0;
    reply->in_body = reply->chunked = reply->in_size = reply->last = false;
}

static const char *field_of(const char *head, const char *name) {
    const char *field = strcasestr(head, name);
    return field ? field + strlen(name) : NULL;
}

/* The head is complete: what follows it? */
static bool read_head(struct reply *reply) {
    if (strncmp(reply->head, "HTTP/1.1 200 ", 13) != 0) {
        return false;
    }
    const char *length = field_of(reply->head, "\r\nContent-Length:");
    reply->in_body = true;
    reply->chunked = reply->in_size = field_of(reply->head, "\r\nTransfer-Encoding: chunked\r\n") != NULL;
    if (reply->chunked) {
        reply->head_n = 0; /* sizes of chunks are collected in its place */
        return true;
    }
    char *end = NULL;
    reply->left = length ? strtoull(length, &end, 10) : 0;
    return end && *end == '\r';
}

/* Collects bytes until `mark` ends them; how many were taken, 0 where there are too many. */
static size_t collect(struct reply *reply, const char *bytes, size_t n, const char *mark, bool *whole) {
    size_t before = reply->head_n, room = REPLY_HEAD_BYTES - 1 - before, taken = n < room ? n : room;
    memcpy(reply->head + before, bytes, taken);
    reply->head_n += taken;
    reply->head[reply->head_n] = '\0';
    const char *end = memmem(reply->head, reply->head_n, mark, strlen(mark));
    *whole = end != NULL;
    return end                                    ? (size_t)(end - reply->head) + strlen(mark) - before
           : reply->head_n < REPLY_HEAD_BYTES - 1 ? taken
                                                  : 0;
}

/* The line with a chunk's size; the one that ends its data is counted to them. */
static size_t take_size(struct reply *reply, const char *bytes, size_t n) {
    bool whole;
    size_t used = collect(reply, bytes, n < 64 ? n : 64, "\r\n", &whole);
    if (whole) {
        size_t size = strtoull(reply->head, NULL, 16);
        reply->last = size == 0;
        reply->left = size + 2;
        reply->body_n += size;
        reply->head_n = 0;
        reply->in_size = false;
    }
    return used;
}

static size_t take_data(struct reply *reply, size_t n) {
    size_t used = n < reply->left ? n : reply->left;
    reply->left -= used;
    if (!reply->chunked) {
        reply->body_n += used;
    } else if (reply->left == 0) {
        reply->in_size = !reply->last;
    }
    return used;
}

enum reply_state reply_take(struct reply *reply, const char *bytes, size_t n) {
    while (true) {
        if (reply->in_body && reply->left == 0 && !reply->in_size) {
            return n == 0 ? REPLY_DONE : REPLY_BAD;
        }
        if (n == 0) {
            return REPLY_MORE;
        }
        bool whole = false;
        size_t used = !reply->in_body  ? collect(reply, bytes, n, "\r\n\r\n", &whole)
                      : reply->in_size ? take_size(reply, bytes, n)
                                       : take_data(reply, n);
        if (used == 0 || (whole && !read_head(reply))) {
            return REPLY_BAD;
        }
        bytes += used;
        n -= used;
    }
}
