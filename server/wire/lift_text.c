/* SPDX-License-Identifier: MIT
 *
 * The text of one JSON array of numbers, in chunks of any size.
 *
 * Nearly all time goes into row_read: number, comma, number, with no state in between. It must not meet the
 * end of the chunk inside a number, so it only sees the chunk up to its last byte that cannot be part of one;
 * the few bytes behind wait in `token` for the next chunk. Both ways end in the same results and the same
 * errors, wherever the text is cut.
 */
#include "wire/lift_array.h"

#include <math.h>

static size_t place(const struct lift_reader *reader, const char *at) {
    return reader->offset + (size_t)(at - reader->chunk);
}

/* `byte` is wrong where `expected` should be. */
static void syntax_fail(const struct lift_reader *reader, unsigned char byte, size_t offset,
                        const char *expected, struct pe_error *err) {
    char path[LIFT_PATH_ROOM];
    lift_element_path(reader, reader->depth, path, sizeof path);
    if (byte == 'N' || byte == 'I') {
        pe_fail(err, PE_ERR_SYNTAX, path, "NaN and infinities are not JSON, at byte %zu", offset);
    } else if (byte < 0x20 || byte > 0x7e) {
        pe_fail(err, PE_ERR_SYNTAX, path, "got byte 0x%02x, expected %s, at byte %zu", byte, expected,
                offset);
    } else {
        pe_fail(err, PE_ERR_SYNTAX, path, "got '%c', expected %s, at byte %zu", byte, expected, offset);
    }
}

/* ---- Tokens -------------------------------------------------------------------------------------------- */

static bool is_space(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static bool is_number_byte(char c) {
    return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

static const char *space_pass(const char *at, const char *end) {
    while (at < end && is_space(*at)) {
        at++;
    }
    return at;
}

static void number_long(const struct lift_reader *reader, size_t offset, struct pe_error *err) {
    char path[LIFT_PATH_ROOM];
    lift_element_path(reader, reader->depth, path, sizeof path);
    pe_fail_limit(err, path, LIFT_LIMIT_NUMBER, LIFT_MAX_NUMBER, LIFT_MAX_NUMBER + 1,
                  "number of more than %d bytes, at byte %zu", LIFT_MAX_NUMBER, offset);
}

/* pe_number_scan has begun at `text` and stopped at `at`, the byte that is wrong. */
static void number_fail(const struct lift_reader *reader, enum pe_number_status status, const char *text,
                        const char *at, size_t offset, struct pe_error *err) {
    bool zero = status == PE_NUMBER_SYNTAX && *at >= '0' && *at <= '9';
    const char *expected = zero ? "no digit after a leading zero" : "a digit";
    expected = status == PE_NUMBER_SYNTAX ? expected : "',' or ']'";
    syntax_fail(reader, (unsigned char)*at, offset + (size_t)(at - text), expected, err);
}

/* Is the run of number bytes at text too long? */
static bool number_is_long(const char *text, const char *end) {
    const char *at = text;
    while (at < end && is_number_byte(*at)) {
        at++;
    }
    return at - text > LIFT_MAX_NUMBER;
}

static bool begins_number(const char *at, const char *end) {
    return at < end && (*at == '-' || (*at >= '0' && *at <= '9'));
}

/* One number of any form, which becomes the next element; only then it is followed by LIFT_AFTER. */
static const char *number_read(struct lift_reader *reader, const char *text, const char *end,
                               struct pe_error *err) {
    struct pe_number number;
    const char *at = text;
    enum pe_number_status status = pe_number_scan(&at, end, &number);
    if (status == PE_NUMBER_SYNTAX || is_number_byte(*at) || at - text > LIFT_MAX_NUMBER) {
        if (number_is_long(text, end)) {
            number_long(reader, place(reader, text), err);
        } else {
            number_fail(reader, status, text, at, place(reader, text), err);
        }
    } else if (status == PE_NUMBER_OVERFLOW) {
        lift_array_overflow(reader);
    } else {
        lift_number_add(reader, &number, err);
    }
    return at;
}

/* Numbers and commas at `at`, the first byte of a number, up to what is neither, or to end. Every number is
 * followed by another byte before `end`. Most go in many at a time. */
static const char *row_read(struct lift_reader *reader, const char *at, const char *end,
                            struct pe_error *err) {
    while (begins_number(at, end) && lift_number_allowed(reader, "a number")) {
        at = lift_numbers_read(reader, at, end, err);
        if (err->code || !begins_number(at, end) || !lift_number_allowed(reader, "a number")) {
            return at;
        }
        at = number_read(reader, at, end, err);
        if (reader->state != LIFT_AFTER) {
            return at;
        }
        at = space_pass(at, end);
        if (at == end || *at != ',') {
            return at;
        }
        reader->state = LIFT_VALUE;
        at = space_pass(at + 1, end);
    }
    return at;
}

/* More bytes of the number in `token`; when it is complete it is read. */
static const char *token_read(struct lift_reader *reader, const char *at, const char *end,
                              struct pe_error *err) {
    for (; at < end && is_number_byte(*at); at++) {
        if (reader->n_token == LIFT_MAX_NUMBER) {
            number_long(reader, reader->token_offset, err);
            return at;
        }
        reader->token[reader->n_token++] = *at;
    }
    if (at == end) {
        return at;
    }
    reader->token[reader->n_token] = *at;
    struct pe_number number;
    const char *text = reader->token, *stop = text + reader->n_token;
    enum pe_number_status status = pe_number_scan(&text, stop, &number);
    if (status == PE_NUMBER_SYNTAX || text < stop) {
        number_fail(reader, status, reader->token, text, reader->token_offset, err);
    } else if (status == PE_NUMBER_OVERFLOW) {
        lift_array_overflow(reader);
    } else {
        lift_number_add(reader, &number, err);
    }
    return at;
}

static const char *nil_read(struct lift_reader *reader, const char *at, const char *end,
                            struct pe_error *err) {
    static const char nil[] = "null";
    while (at < end && reader->n_nil < 4) {
        if (*at != nil[reader->n_nil]) {
            syntax_fail(reader, (unsigned char)*at, place(reader, at), "null", err);
            return at;
        }
        reader->n_nil++;
        at++;
    }
    if (reader->n_nil == 4) {
        struct lift_array *array = reader->array;
        array->first_null = array->has_null ? array->first_null : array->n;
        array->has_null = true;
        lift_number_add(reader, &(struct pe_number){.value = -INFINITY, .single = -INFINITY}, err);
    }
    return at;
}

/* To the end of an array that has an error: only strings and brackets matter. */
static const char *skip_read(struct lift_reader *reader, const char *at, const char *end) {
    for (; at < end && reader->skip_depth > 0; at++) {
        if (reader->skip_escape) {
            reader->skip_escape = false;
        } else if (reader->skip_string) {
            reader->skip_escape = *at == '\\';
            reader->skip_string = *at != '"';
        } else if (*at == '"') {
            reader->skip_string = true;
        } else if (*at == '[' || *at == '{') {
            reader->skip_depth++;
        } else if (*at == ']' || *at == '}') {
            reader->skip_depth--;
        }
    }
    reader->state = reader->skip_depth > 0 ? LIFT_SKIP : LIFT_DONE;
    return at;
}

/* ---- The state machine --------------------------------------------------------------------------------- */

/* A value begins at `at`. Numbers that end before `safe` are read at once. */
static const char *value_read(struct lift_reader *reader, const char *at, const char *safe,
                              struct pe_error *err) {
    switch (*at) {
    case '[':
        return at + lift_row_open(reader);
    case '"':
        lift_array_refuse(reader, PE_ERR_TYPE, "a string");
        return at;
    case '{':
        lift_array_refuse(reader, PE_ERR_TYPE, "an object");
        return at;
    case 't':
    case 'f':
        lift_array_refuse(reader, PE_ERR_TYPE, "a boolean");
        return at;
    case 'n':
        if (lift_number_allowed(reader, "null")) {
            reader->state = LIFT_NIL;
            reader->n_nil = 0;
        }
        return at;
    default:
        break;
    }
    if (*at != '-' && (*at < '0' || *at > '9')) {
        syntax_fail(reader, (unsigned char)*at, place(reader, at), lift_expected(reader), err);
    } else if (at < safe) {
        return row_read(reader, at, safe, err);
    } else if (lift_number_allowed(reader, "a number")) {
        reader->state = LIFT_TOKEN;
        reader->n_token = 0;
        reader->token_offset = place(reader, at);
    }
    return at;
}

/* Between values. */
static const char *mark_read(struct lift_reader *reader, const char *at, const char *safe,
                             struct pe_error *err) {
    if (*at == ']' && reader->state != LIFT_VALUE) {
        return at + lift_row_close(reader);
    }
    if (reader->state != LIFT_AFTER) {
        return value_read(reader, at, safe, err);
    }
    if (*at == ',') {
        reader->state = LIFT_VALUE;
        return at + 1;
    }
    syntax_fail(reader, (unsigned char)*at, place(reader, at), "',' or ']'", err);
    return at;
}

const char *lift_reader_feed(struct lift_reader *reader, const char *text, const char *end, size_t offset,
                             bool *done, struct pe_error *err) {
    const char *at = text, *safe = end;
    reader->chunk = text;
    reader->offset = offset;
    while (safe > text && is_number_byte(safe[-1])) {
        safe--;
    }
    while (at < end && reader->state != LIFT_DONE && !err->code) {
        if (reader->state == LIFT_TOKEN) {
            at = token_read(reader, at, end, err);
        } else if (reader->state == LIFT_NIL) {
            at = nil_read(reader, at, end, err);
        } else if (reader->state == LIFT_SKIP) {
            at = skip_read(reader, at, end);
        } else if (is_space(*at)) {
            at++;
        } else {
            at = mark_read(reader, at, safe, err);
        }
    }
    *done = reader->state == LIFT_DONE;
    if (*done && !reader->array->error.code) {
        lift_array_complete(reader);
    }
    return at;
}

int lift_reader_cut(struct lift_reader *reader, size_t offset, struct pe_error *err) {
    char path[LIFT_PATH_ROOM];
    lift_element_path(reader, reader->depth, path, sizeof path);
    return pe_fail(err, PE_ERR_SYNTAX, path, "text ends inside an array, at byte %zu", offset);
}
