/* SPDX-License-Identifier: MIT
 *
 * Percent-decoding is strict: a '%' without two hex digits, a decoded NUL or control character, and bytes
 * that a target may not hold are refused, never repaired. '+' is a space, as forms send it.
 */
#include "wire/query.h"

#include "wire/problem.h"

#include <string.h>

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
        return (c | 0x20) - 'a' + 10;
    }
    return -1;
}

/* One decoded byte at *p, which moves on; -1 when malformed. */
static int decode_byte(const char **p, const char *end, bool form) {
    unsigned char c = (unsigned char)*(*p)++;
    if (c == '+' && form) {
        return ' ';
    }
    if (c != '%') {
        return c <= 0x20 || c == 0x7f ? -1 : c;
    }
    if (end - *p < 2 || hex_digit((*p)[0]) < 0 || hex_digit((*p)[1]) < 0) {
        return -1;
    }
    int value = hex_digit((*p)[0]) * 16 + hex_digit((*p)[1]);
    *p += 2;
    return value < 0x20 || value == 0x7f ? -1 : value;
}

static const char *decode(struct pe_arena *arena, const char *text, size_t length, bool form,
                          const char *field, struct pe_error *err) {
    char *out = pe_arena_alloc(arena, length + 1, err);
    if (!out) {
        return NULL;
    }
    size_t n = 0;
    for (const char *p = text; p < text + length;) {
        int c = decode_byte(&p, text + length, form);
        if (c < 0) {
            pe_fail(err, SERVER_BAD_REQUEST, field,
                    "malformed percent-encoding or control character at byte %zu", (size_t)(p - text));
            return NULL;
        }
        out[n++] = (char)c;
    }
    out[n] = '\0';
    return out;
}

const char *target_split(struct pe_arena *arena, const char *target, const char **query,
                         struct pe_error *err) {
    static const char scheme[] = "http://";
    if (strncmp(target, scheme, sizeof scheme - 1) == 0) {
        const char *path = strchr(target + sizeof scheme - 1, '/');
        target = path ? path : "/";
    }
    size_t length = strcspn(target, "?");
    *query = target[length] == '?' ? target + length + 1 : "";
    return decode(arena, target, length, false, "path", err);
}

bool query_next(struct pe_arena *arena, const char **query, const char **name, const char **value,
                struct pe_error *err) {
    const char *p = *query;
    while (*p == '&') {
        p++;
    }
    if (!*p) {
        return false;
    }
    size_t length = strcspn(p, "&");
    const char *equals = memchr(p, '=', length);
    size_t name_length = equals ? (size_t)(equals - p) : length;
    *query = p + length;
    *name = decode(arena, p, name_length, true, "query", err);
    if (!*name) {
        return false;
    }
    *value = equals ? decode(arena, equals + 1, length - name_length - 1, true, *name, err) : "";
    return *value != NULL;
}

int query_read(struct pe_arena *arena, const char *query, struct query_pairs *pairs, struct pe_error *err) {
    size_t room = query[0] ? 1 : 0;
    for (const char *p = query; *p; p++) {
        room += *p == '&';
    }
    *pairs = (struct query_pairs){0};
    if (!room) {
        return PE_OK;
    }
    pairs->v = pe_arena_alloc(arena, room * sizeof *pairs->v, err);
    struct query_pair pair;
    while (pairs->v && query_next(arena, &query, &pair.name, &pair.value, err)) {
        pairs->v[pairs->n++] = pair;
    }
    return err->code;
}
