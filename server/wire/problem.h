/* SPDX-License-Identifier: MIT
 *
 * Failures as HTTP: one row for each code of the library and of the daemon, with its status, and the
 * application/problem+json body (RFC 9457).
 */
#ifndef PROBLEM_H
#define PROBLEM_H

#include "posenc.h"

/* The daemon's own codes, beside the library's. */
enum server_code {
    SERVER_BAD_REQUEST = PE_ERR_HOST, /* 400: malformed HTTP or target */
    SERVER_NOT_FOUND,                 /* 404 */
    SERVER_METHOD,                    /* 405 + Allow */
    SERVER_NOT_ACCEPTABLE,            /* 406 */
    SERVER_MEDIA_TYPE,                /* 415 */
    SERVER_NOT_IMPLEMENTED,           /* 501: unknown method or transfer coding */
    SERVER_CLIENT_LIMIT,              /* 429 + Retry-After: one client has its share */
    SERVER_BUSY,                      /* 503 + Retry-After: queue or streams full */
    SERVER_DRAINING,                  /* 503 + Retry-After: shutting down */
    SERVER_DEADLINE,                  /* 504 */
    SERVER_CODE_END
};

/* Enough for any problem: path and text of struct pe_error in escapes of at most 6 bytes each. */
#define PROBLEM_ROOM 4096

int problem_status(int code);
const char *problem_slug(int code);
/* The body of a failure into text, cut to size never in the middle of its syntax; returns its length. */
size_t problem_write(const struct pe_error *err, const char *request_id, char *text, size_t size);

#endif
