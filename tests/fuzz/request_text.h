/* SPDX-License-Identifier: MIT
 *
 * A request as a text, so that inputs can be read and written by hand; the requests of tests/cases are such:
 *
 *     POST /v1/apply?dtype=float64        method, target and perhaps a version: without one HTTP/1.1
 *     Content-Type: application/json      headers, up to the first empty line; each line ends with \n alone
 *
 *     {"embeddings": [[1, 2]]}            the body: the rest, whatever its bytes
 *
 * Any bytes are such a text. What is between method and version is the target, with its spaces; a line
 * without a colon is a header without a value.
 */
#ifndef FUZZ_REQUEST_TEXT_H
#define FUZZ_REQUEST_TEXT_H

#include "net/gate.h"

struct request_text {
    struct gate_request head; /* VIEWS of `block` */
    const void *body;         /* VIEW of the input */
    size_t body_n;
    char *block;
};

void request_text_open(struct request_text *text, const uint8_t *data, size_t size);
void request_text_close(struct request_text *text);
/* The value of the first header of that name; NULL = there is none. */
const char *request_text_header(const struct request_text *text, const char *name);

#endif
