/* SPDX-License-Identifier: MIT
 *
 * JSON is written by hand: the envelopes are small and flat, and the numbers need their own writer anyway.
 * Strings come out as pure ASCII, so that the same text can stand in an HTTP header; bytes that are not UTF-8
 * become U+FFFD, since an error message must never be broken by what it quotes.
 */
#include "wire/text.h"

#include "posenc_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_free(struct text *text) {
    free(text->data);
    *text = (struct text){0};
}

/* Nearly always there is room: that case is inline, the other is not. */
static bool text_grow_more(struct text *text, size_t more) {
    if (text->failed) {
        return false;
    }
    size_t room = text->room ? text->room : 256;
    while (room - text->n < more && room <= SIZE_MAX / 2) {
        room *= 2;
    }
    char *data = room - text->n < more ? NULL : realloc(text->data, room);
    if (!data) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->room = room;
    return true;
}

static inline bool text_grow(struct text *text, size_t more) {
    return more <= text->room - text->n ? !text->failed : text_grow_more(text, more);
}

void text_add(struct text *text, const char *bytes, size_t n) {
    if (!n || !text_grow(text, n)) {
        return;
    }
    memcpy(text->data + text->n, bytes, n);
    text->n += n;
}

void text_puts(struct text *text, const char *literal) {
    text_add(text, literal, strlen(literal));
}

static void text_escape(struct text *text, uint32_t point) {
    char out[16];
    if (point == '"' || point == '\\') {
        snprintf(out, sizeof out, "\\%c", (char)point);
    } else if (point < 0x10000) {
        snprintf(out, sizeof out, "\\u%04x", (unsigned)point);
    } else {
        snprintf(out, sizeof out, "\\u%04x\\u%04x", (unsigned)(0xd800 + ((point - 0x10000) >> 10)),
                 (unsigned)(0xdc00 + ((point - 0x10000) & 0x3ff)));
    }
    text_puts(text, out);
}

/* How many of the n bytes stand for themselves. */
static size_t plain_length(const char *value, size_t n) {
    size_t i = 0;
    while (i < n && value[i] >= 0x20 && value[i] < 0x7f && value[i] != '"' && value[i] != '\\') {
        i++;
    }
    return i;
}

void text_string_n(struct text *text, const char *value, size_t n) {
    size_t plain = plain_length(value, n);
    if (plain == n && n <= SIZE_MAX / 2 && text_grow(text, n + 2)) { /* as nearly always */
        char *out = text->data + text->n;
        *out = '"';
        memcpy(out + 1, value, n);
        out[n + 1] = '"';
        text->n += n + 2;
        return;
    }
    text_add(text, "\"", 1);
    for (size_t i = 0; i < n; i += plain) {
        uint32_t point;
        plain = plain_length(value + i, n - i);
        text_add(text, value + i, plain);
        if (i + plain < n) {
            size_t length = pe_utf8_read(value + i + plain, n - i - plain, &point);
            text_escape(text, length ? point : 0xfffd);
            plain += length ? length : 1;
        }
    }
    text_add(text, "\"", 1);
}

void text_string(struct text *text, const char *value) {
    text_string_n(text, value, strlen(value));
}

void text_key(struct text *text, const char *name) {
    char last = text->n ? text->data[text->n - 1] : '{';
    if (last != '{' && last != '[') {
        text_add(text, ",", 1);
    }
    text_string_n(text, name, strlen(name));
    text_add(text, ":", 1);
}

void text_real(struct text *text, double value) {
    char out[PE_NUMBER_ROOM];
    text_add(text, out, pe_number_write_f64(out, value));
}

void text_int(struct text *text, int64_t value) {
    char out[PE_NUMBER_ROOM];
    text_add(text, out, pe_number_write_int(out, value));
}

void text_bool(struct text *text, bool value) {
    text_puts(text, value ? "true" : "false");
}

void text_key_real(struct text *text, const char *name, double value) {
    text_key(text, name);
    text_real(text, value);
}

char *text_put_hex(char *out, const unsigned char *bytes, size_t n) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
    return out;
}

char *text_put_ms(char *out, int64_t ns) {
    char digits[24], *at = digits + sizeof digits;
    uint64_t us = ns > 0 ? ((uint64_t)ns + 500) / 1000 : 0;
    for (int i = 0; i < 4 || us > 0; i++, us /= 10) {
        if (i == 3) {
            *--at = '.';
        }
        *--at = (char)('0' + us % 10);
    }
    size_t n = (size_t)(digits + sizeof digits - at);
    memcpy(out, at, n);
    return out + n;
}
