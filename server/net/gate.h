/* SPDX-License-Identifier: MIT
 *
 * The header gate: what a request must look like before anything else looks at it. libmicrohttpd 0.9.75 lets
 * through what two servers in a row may read differently (two lengths, a length and a transfer coding, a
 * space before the colon), which is how requests are smuggled past proxies. Whatever is ambiguous is refused
 * with 400, and the connection closed, so that what follows on it is never taken for a request.
 *
 * Some of it the library hides: it cuts texts at a NUL, takes a line that begins with one or with a colon for
 * the end of the header, joins folded lines, and lets lines end without CR. But its texts lie where they were
 * received, so a head in which nothing is hidden leaves no gap between them: see target_at.
 *
 * Known limits: the library overwrites the two bytes of a line's end with NULs, so another line's end of two
 * bytes leaves the same gap. NUL LF behind a field passes for CR LF, and NUL LF or a colon and LF for the
 * empty line, behind which a second request may begin. The bytes are gone when this is asked.
 *
 * Pure functions over what was received: they are tested without a socket.
 */
#ifndef GATE_H
#define GATE_H

#include "call.h"

/* VIEWS. Sizes are what was received, so that a NUL inside shows. */
struct gate_header {
    const char *name, *value;
    size_t name_size, value_size;
};

#define GATE_MAX_HEADERS 128
struct gate_request {
    const char *method, *target, *version; /* target as sent */
    struct gate_header headers[GATE_MAX_HEADERS];
    size_t n_headers; /* may be more than GATE_MAX_HEADERS: then those are missing */
    /* Set when all texts but target lie where they were received: where the target does. NULL = unknown. */
    const char *target_at;
    size_t head_size; /* then: from the method to the end of the empty line */
};

struct gate_result {
    int code;              /* enum server_code; 0 = let in */
    const char *field;     /* what of the request is at fault, a static text */
    char detail[160];      /* one line, for the client */
    int64_t length;        /* of the body; -1 = not known before its end */
    bool expects_continue; /* the client waits before it sends the body */
};

void gate_check(const struct gate_request *request, struct gate_result *result);
/* The part of the target that routes see: "http://host/path" becomes "/path". */
const char *gate_target(const char *target);
/* Fills head's texts from the headers, several of one name joined by ", ". They are copies in one block,
 * which the caller frees; NULL = no memory. */
char *gate_head(const struct gate_request *request, struct call_head *head);

#endif
