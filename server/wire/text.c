/* SPDX-License-Identifier: MIT
 *
 * JSON is written by hand: the envelopes are small and flat, and the numbers need their own writer anyway.
 * Strings come out as pure ASCII, so that the same text can stand in an HTTP header; bytes that are not UTF-8
 * become U+FFFD, since an error message must never be broken by what it quotes.
 */
#include "wire/text.h"

#include "posenc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_free(struct text *text) {
    free(text->data);
    *text = (struct text){0};
}

static bool text_grow(struct text *text, size_t more) {
    if (text->failed)
        return false;
    if (more <= text->room - text->n)
        return true;
    size_t room = text->room ? text->room : 256;
    while (room - text->n < more && room <= SIZE_MAX / 2)
        room *= 2;
    char *data = room - text->n < more ? NULL : realloc(text->data, room);
    if (!data) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->room = room;
    return true;
}

void text_add(struct text *text, const char *bytes, size_t n) {
    if (!n || !text_grow(text, n))
        return;
    memcpy(text->data + text->n, bytes, n);
    text->n += n;
}

void text_puts(struct text *text, const char *literal) {
    text_add(text, literal, strlen(literal));
}

/* The code point at p (of `left` bytes) and its length; U+FFFD and 1 for anything that is not UTF-8. */
static uint32_t utf8_next(const unsigned char *p, size_t left, size_t *length) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = p[0] < 0x80 ? 1 : p[0] >= 0xf0 && p[0] < 0xf8 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc0 ? 2 : 0;
    *length = 1;
    if (n == 1)
        return p[0];
    if (n == 0 || p[0] >= 0xf8 || n > left)
        return 0xfffd;
    uint32_t point = p[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0xfffd;
        point = point << 6 | (p[i] & 0x3f);
    }
    if (point < least[n] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
        return 0xfffd;
    *length = n;
    return point;
}

static void text_escape(struct text *text, uint32_t point) {
    char out[16];
    if (point == '"' || point == '\\')
        snprintf(out, sizeof out, "\\%c", (char)point);
    else if (point >= 0x20 && point < 0x7f)
        snprintf(out, sizeof out, "%c", (char)point);
    else if (point < 0x10000)
        snprintf(out, sizeof out, "\\u%04x", (unsigned)point);
    else
        snprintf(out, sizeof out, "\\u%04x\\u%04x", (unsigned)(0xd800 + ((point - 0x10000) >> 10)),
                 (unsigned)(0xdc00 + ((point - 0x10000) & 0x3ff)));
    text_puts(text, out);
}

void text_string_n(struct text *text, const char *value, size_t n) {
    const unsigned char *p = (const unsigned char *)value;
    text_add(text, "\"", 1);
    for (size_t i = 0, length; i < n; i += length)
        text_escape(text, utf8_next(p + i, n - i, &length));
    text_add(text, "\"", 1);
}

void text_string(struct text *text, const char *value) {
    text_string_n(text, value, strlen(value));
}

void text_key(struct text *text, const char *name) {
    char last = text->n ? text->data[text->n - 1] : '{';
    if (last != '{' && last != '[')
        text_add(text, ",", 1);
    text_string(text, name);
    text_add(text, ":", 1);
}

void text_real(struct text *text, double value) {
    char out[PE_NUMBER_ROOM];
    text_add(text, out, pe_number_write_f64(out, value));
}

void text_int(struct text *text, int64_t value) {
    char out[24];
    text_add(text, out, (size_t)snprintf(out, sizeof out, "%lld", (long long)value));
}

void text_bool(struct text *text, bool value) {
    text_puts(text, value ? "true" : "false");
}
