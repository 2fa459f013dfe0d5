/* SPDX-License-Identifier: MIT
 *
 * A recursive descent over nested lists, each level of which must have rows of one length. Blanks may stand
 * where JSON allows them.
 */
#include "core/number_array.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The state of reading a nested list: where we are, and the shape as far as it is known. */
struct reader {
    const char *p, *end;
    enum pe_dtype dtype;
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

static void skip_blanks(struct reader *r) {
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r')) {
        r->p++;
    }
}

static int read_number(struct reader *r, int depth, struct pe_error *err) {
    char what[100];
    struct pe_number number;
    const char *start = r->p;
    enum pe_number_status status = pe_number_scan(&r->p, r->end, &number);
    if (status == PE_NUMBER_OK && number.beyond) {
        return reader_fail(r, depth, PE_ERR_RANGE, "is beyond 2^53, allowed are -2^53 to 2^53", err);
    }
    if (status == PE_NUMBER_OK) {
        r->values[r->n++] = number.twice && r->dtype == PE_DTYPE_F32 ? number.single : number.value;
        return PE_OK;
    }
    snprintf(what, sizeof what, "%s, got \"%.*s\"",
             status == PE_NUMBER_OVERFLOW ? "must not be too large for a double" : "must be a number",
             (int)strcspn(start, ",]") < 40 ? (int)strcspn(start, ",]") : 40, start);
    return reader_fail(r, depth, status == PE_NUMBER_OVERFLOW ? PE_ERR_RANGE : PE_ERR_TYPE, what, err);
}

/* Ends a list at `depth` that held `count` items; the first one fixes the size of its level. */
static int close_list(struct reader *r, int depth, size_t count, struct pe_error *err) {
    char what[100];
    if (!r->closed[depth]) {
        r->closed[depth] = true;
        r->dim[depth] = count;
        return PE_OK;
    }
    if (r->dim[depth] == count) {
        return PE_OK;
    }
    snprintf(what, sizeof what, "has %zu items where the rows before it have %zu", count, r->dim[depth]);
    return reader_fail(r, depth, PE_ERR_SHAPE, what, err);
}

static int read_list(struct reader *r, int depth, struct pe_error *err);

static int read_item(struct reader *r, int depth, struct pe_error *err) {
    skip_blanks(r);
    bool list = r->p < r->end && *r->p == '[';
    if (list && depth >= PE_MAX_RANK) {
        return reader_fail(r, depth, PE_ERR_SHAPE, "is nested too deep", err);
    }
    if (r->rank < 0 && !list) {
        r->rank = depth;
    }
    if (list ? (r->rank >= 0 && depth >= r->rank) : depth != r->rank) {
        return reader_fail(r, depth, PE_ERR_SHAPE, "mixes numbers and lists", err);
    }
    if (!list) {
        return read_number(r, depth, err);
    }
    r->p++;
    return read_list(r, depth, err);
}

/* The items of a list at `depth`, up to its closing bracket (depth 0 without brackets: up to the end). */
static int read_list(struct reader *r, int depth, struct pe_error *err) {
    size_t count = 0;
    skip_blanks(r);
    if (r->p < r->end && *r->p == ']') {
        r->p++;
        if (r->rank < 0) {
            r->rank = depth + 1;
        }
        return close_list(r, depth, 0, err);
    }
    for (;; count++) {
        r->at[depth] = count;
        if (read_item(r, depth + 1, err)) {
            return err->code;
        }
        skip_blanks(r);
        if (r->p < r->end && *r->p == ',') {
            r->p++;
            continue;
        }
        break;
    }
    if (r->p == r->end || *r->p != ']') {
        return reader_fail(r, depth + 1, PE_ERR_SYNTAX, "is not followed by a comma or a closing bracket",
                           err);
    }
    r->p++;
    return close_list(r, depth, count + 1, err);
}

int pe_number_array(struct pe_arena *arena, struct pe_tensor *out, const char *text, enum pe_dtype dtype,
                    struct pe_error *err) {
    size_t length = strlen(text);
    if (strchr(text, ':')) {
        return pe_fail(
            err, PE_ERR_SYNTAX, "",
            "must be a list of numbers such as 0,1,2, got \"%.40s\": a range stands for positions alone, and "
            "without brackets",
            text);
    }
    if (text[0] != '[') { /* a bare list is read as if it had brackets */
        char *bracketed = pe_arena_alloc(arena, length + 3, err);
        if (!bracketed) {
            return err->code;
        }
        snprintf(bracketed, length + 3, "[%s]", text);
        text = bracketed;
        length += 2;
    }
    struct reader r = {.p = text + 1, .end = text + length, .dtype = dtype, .rank = -1};
    r.room = length / 2 + 1; /* an item and its comma take two characters at least */
    r.values = pe_arena_array(arena, r.room, sizeof *r.values, err);
    if (!r.values || read_list(&r, 0, err)) {
        return err->code;
    }
    if (r.p != r.end) {
        return pe_fail(err, PE_ERR_SYNTAX, "", "has text after its end: \"%.40s\"", r.p);
    }
    struct pe_tensor doubles = {.data = r.values, .dtype = PE_DTYPE_F64, .rank = r.rank};
    memcpy(doubles.dim, r.dim, sizeof r.dim);
    if (dtype == PE_DTYPE_F32) {
        return pe_tensor_convert(arena, out, &doubles, dtype, err);
    }
    *out = doubles;
    return PE_OK;
}
