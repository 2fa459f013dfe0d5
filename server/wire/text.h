/* SPDX-License-Identifier: MIT
 *
 * A growing text, and the pieces of JSON that are written into it. An allocation that fails is remembered, so
 * a chain of calls is checked once, at its end.
 */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    char *data; /* not zero-terminated; NULL while empty */
    size_t n, room;
    bool failed; /* no memory: what follows was dropped */
};

void text_free(struct text *text);
void text_add(struct text *text, const char *bytes, size_t n);
void text_puts(struct text *text, const char *literal);
void text_string(struct text *text, const char *value); /* "quoted", escaped, pure ASCII */
void text_string_n(struct text *text, const char *value, size_t n);
void text_key(struct text *text, const char *name); /* a comma where one is due, then "name": */
void text_real(struct text *text, double value);
void text_int(struct text *text, int64_t value);
void text_bool(struct text *text, bool value);
void text_key_real(struct text *text, const char *name, double value); /* both */

/* What every reply has, small ones too, where printf would take longer than all else. Both return the end of what was
 * put, which is not zero-terminated. */
char *text_put_hex(char *out, const unsigned char *bytes, size_t n); /* 2*n digits */
char *text_put_ms(char *out, int64_t ns); /* milliseconds, "1.234"; at most 24 bytes */

#endif
