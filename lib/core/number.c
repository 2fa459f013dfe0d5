/* SPDX-License-Identifier: MIT
 *
 * The grammar is checked here by hand, since strtod alone would also take "0x10", "inf" and " 1"; the value
 * is then left to strtod, which is correctly rounded. The process never leaves the C locale.
 */
#include "core/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_LENGTH_MAX 400

static const char *skip_digits(const char *p, const char *end) {
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p;
}

/* number = [ - ] ( 0 | 1-9 digits ) [ . digits ] [ e [ + | - ] digits ]; the end of it, NULL if there is none
 */
static const char *number_end(const char *p, const char *end) {
    if (p < end && *p == '-')
        p++;
    const char *digits = p;
    p = skip_digits(p, end);
    if (p == digits || (*digits == '0' && p - digits > 1))
        return NULL;
    if (p < end && *p == '.') {
        const char *fraction = p + 1;
        p = skip_digits(fraction, end);
        if (p == fraction)
            return NULL;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        const char *exponent = p;
        p = skip_digits(p, end);
        if (p == exponent)
            return NULL;
    }
    return p;
}

enum pe_number pe_number_parse(const char *text, size_t length, double *value) {
    char copy[NUMBER_LENGTH_MAX + 1];
    if (length > NUMBER_LENGTH_MAX || number_end(text, text + length) != text + length)
        return PE_NUMBER_MALFORMED;
    memcpy(copy, text, length);
    copy[length] = '\0';
    *value = strtod(copy, NULL);
    return isinf(*value) ? PE_NUMBER_OVERFLOW : PE_NUMBER_OK;
}

/* The state of reading a nested list: where we are, and the shape as far as it is known. */
struct reader {
    const char *p, *end;
    double *values;
    size_t n, room;
    int rank;
    size_t dim[PE_MAX_RANK], at[PE_MAX_RANK];
    bool closed[PE_MAX_RANK]; /* dim is fixed: a first row at this level has ended */
};

static int reader_fail(const struct reader *r, int depth, int code, const char *what, struct pe_error *err) {
    char path[PE_MAX_RANK * 22 + 1] = "";
    for (int i = 0; i < depth; i++) {
        size_t used = strlen(path);
        snprintf(path + used, sizeof path - used, "[%zu]", r->at[i]);
    }
    return pe_fail(err, code, path, "%s", what);
}

static int read_number(struct reader *r, int depth, struct pe_error *err) {
    const char *start = r->p;
    r->p = number_end(r->p, r->end);
    double value = 0;
    if (!r->p || pe_number_parse(start, (size_t)(r->p - start), &value) == PE_NUMBER_MALFORMED)
        return reader_fail(r, depth, PE_ERR_TYPE, "must be a number", err);
    if (isinf(value))
        return reader_fail(r, depth, PE_ERR_RANGE, "is too large for a double", err);
    r->values[r->n++] = value;
    return PE_OK;
}

/* Ends a list at `depth` that held `count` items; the first one fixes the size of its level. */
static int close_list(struct reader *r, int depth, size_t count, struct pe_error *err) {
    char what[100];
    if (!r->closed[depth]) {
        r->closed[depth] = true;
        r->dim[depth] = count;
        return PE_OK;
    }
    if (r->dim[depth] == count)
        return PE_OK;
    snprintf(what, sizeof what, "has %zu items where the rows before it have %zu", count, r->dim[depth]);
    return reader_fail(r, depth, PE_ERR_SHAPE, what, err);
}

static int read_list(struct reader *r, int depth, struct pe_error *err);

static int read_item(struct reader *r, int depth, struct pe_error *err) {
    bool list = r->p < r->end && *r->p == '[';
    if (list && depth >= PE_MAX_RANK)
        return reader_fail(r, depth, PE_ERR_SHAPE, "is nested too deep", err);
    if (r->rank < 0 && !list)
        r->rank = depth;
    if (list ? (r->rank >= 0 && depth >= r->rank) : depth != r->rank)
        return reader_fail(r, depth, PE_ERR_SHAPE, "mixes numbers and lists", err);
    if (!list)
        return read_number(r, depth, err);
    r->p++;
    return read_list(r, depth, err);
}

/* The items of a list at `depth`, up to its closing bracket (depth 0 without brackets: up to the end). */
static int read_list(struct reader *r, int depth, struct pe_error *err) {
    size_t count = 0;
    if (r->p < r->end && *r->p == ']') {
        r->p++;
        if (r->rank < 0)
            r->rank = depth + 1;
        return close_list(r, depth, 0, err);
    }
    for (;; count++) {
        r->at[depth] = count;
        if (read_item(r, depth + 1, err))
            return err->code;
        if (r->p < r->end && *r->p == ',') {
            r->p++;
            continue;
        }
        break;
    }
    if (r->p == r->end || *r->p != ']')
        return reader_fail(r, depth + 1, PE_ERR_SYNTAX, "is not followed by a comma or a closing bracket",
                           err);
    r->p++;
    return close_list(r, depth, count + 1, err);
}

int pe_number_array(struct pe_arena *arena, struct pe_tensor *out, const char *text, struct pe_error *err) {
    size_t length = strlen(text);
    if (text[0] != '[') { /* a bare list is read as if it had brackets */
        char *bracketed = pe_arena_alloc(arena, length + 3, err);
        if (!bracketed)
            return err->code;
        snprintf(bracketed, length + 3, "[%s]", text);
        text = bracketed;
        length += 2;
    }
    struct reader r = {.p = text + 1, .end = text + length, .rank = -1};
    r.room = length / 2 + 1; /* an item and its comma take two characters at least */
    r.values = pe_arena_array(arena, r.room, sizeof *r.values, err);
    if (!r.values || read_list(&r, 0, err))
        return err->code;
    if (r.p != r.end)
        return pe_fail(err, PE_ERR_SYNTAX, "", "has text after its end: \"%.40s\"", r.p);
    *out = (struct pe_tensor){.data = r.values, .dtype = PE_DTYPE_F64, .rank = r.rank};
    memcpy(out->dim, r.dim, sizeof r.dim);
    return PE_OK;
}
