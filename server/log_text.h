/* SPDX-License-Identifier: MIT
 *
 * Bounded text: what does not fit is cut, and `cut` says so; nothing is allocated, no lock is taken. Texts
 * that came from outside go through log_text_escape, so that they can neither end a line nor steer a
 * terminal.
 */
#ifndef LOG_TEXT_H
#define LOG_TEXT_H

#include "posenc.h"

#include <time.h>

struct log_text {
    char *data; /* no terminating zero */
    size_t size, length;
    bool cut;
};

void log_text_put(struct log_text *out, const char *bytes, size_t n);
void log_text_print(struct log_text *out, const char *format, ...) PE_PRINTF(2, 3);
/* The content of a JSON string for the first `max` bytes of text; "..." follows where it was longer. Quotes,
 * backslashes, control characters (C0, DEL, C1) and line separators are escaped as JSON does it; a byte that
 * is not UTF-8 becomes the four characters \xNN, escaped: "\\xff". */
void log_text_escape(struct log_text *out, const char *text, size_t max);
/* UTF-8 without control characters? */
bool log_text_plain(const char *text);
/* "2024-02-29T23:59:59.123Z" */
void log_text_time(struct log_text *out, struct timespec time);
/* The trace id, 32 hexadecimal digits, inside a well formed traceparent (W3C, version 00); else NULL. */
const char *log_trace_id(const char *traceparent);

#endif
