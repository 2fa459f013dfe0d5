/* SPDX-License-Identifier: MIT
 *
 * Helpers of the lift's tests; see lift_outcome.h.
 */
#include "lift_outcome.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t random_below(uint64_t *state, size_t n) {
    return (size_t)(random_next(state) % n);
}

/* Watched paths; a key "*" is any key, "[]" any index. */
static const char *const patterns[][4] = {
    {"embeddings"},   {"q"},   {"q", "data"}, {"positions", "mask"}, {"requests", "[]", "q"},
    {"weights", "*"}, {"a/b"},
};

static bool key_matches(const char *pattern, const char *key) {
    if (strcmp(pattern, "*") == 0) {
        return key[0] != '[';
    }
    return strcmp(pattern, "[]") == 0 ? key[0] == '[' : strcmp(pattern, key) == 0;
}

bool lift_watched(void *context, const char *const *keys, size_t depth) {
    (void)context;
    for (size_t i = 0; i < PE_COUNT(patterns); i++) {
        size_t n = 0;
        while (n < depth && n < 4 && patterns[i][n] && key_matches(patterns[i][n], keys[n])) {
            n++;
        }
        if (n == depth && depth > 0 && (n == 4 || !patterns[i][n])) {
            return true;
        }
    }
    return false;
}

const struct lift_options lift_defaults = {
    .envelope_limit = 1 << 20, .value_limit = 1 << 20, .watches = lift_watched};

/* ---- Feeding ------------------------------------------------------------------------------------------- */

static size_t piece_of(enum lift_cut cut, size_t at, size_t n, uint64_t *state) {
    switch (cut) {
    case LIFT_CUT_BYTES:
        return 1;
    case LIFT_CUT_RANDOM:
        return 1 + random_below(state, 24);
    case LIFT_CUT_AT:
        return at == 0 ? (size_t)*state : n;
    case LIFT_CUT_WHOLE:
    default:
        return n;
    }
}

int lift_feed_cut(struct lift *lift, const char *text, size_t n, enum lift_cut cut, uint64_t *state,
                  struct pe_error *err) {
    for (size_t i = 0, size; i < n; i += size) {
        size = piece_of(cut, i, n, state);
        size = size < n - i ? size : n - i;
        char *chunk = malloc(size);
        EXPECT(chunk, "no memory");
        memcpy(chunk, text + i, size);
        int code = lift_feed(lift, chunk, size, err);
        free(chunk);
        if (code) {
            return code;
        }
    }
    return lift_finish(lift, err);
}

void outcome_add(struct text *text, const char *format, ...) {
    char piece[1024];
    va_list args;
    va_start(args, format);
    size_t n = (size_t)vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    EXPECT(n < sizeof piece, "piece is too long");
    if (text->n + n + 1 > text->room) {
        text->room = 2 * (text->n + n) + 64;
        text->bytes = realloc(text->bytes, text->room);
        EXPECT(text->bytes, "no memory");
    }
    memcpy(text->bytes + text->n, piece, n + 1);
    text->n += n;
}

/* "embeddings[2,2] 1 2 3 4", or "embeddings! embeddings[1]: text" */
static void describe_array(struct text *out, struct lift_array *array) {
    struct pe_error err = {0};
    if (array->error.code) {
        EXPECT(array->n == 0 && !lift_array_doubles(array, &err), "%s has an error and values", array->path);
        outcome_add(out, "%s! %s %s: %s", array->path, pe_code_slug(array->error.code), array->error.path,
                    array->error.text);
        return;
    }
    outcome_add(out, "%s[", array->path);
    for (int i = 0; i < array->rank; i++) {
        outcome_add(out, "%s%zu", i ? "," : "", array->dim[i]);
    }
    outcome_add(out, "]");
    for (size_t i = 0; i < array->n; i++) {
        outcome_add(out, " %.17g", lift_array_doubles(array, &err)[i]);
    }
    for (size_t i = 0; i < array->n_fixes; i++) {
        outcome_add(out, " fix %zu %.9g", array->fixes[i].index, (double)array->fixes[i].single);
    }
    if (array->has_null) {
        outcome_add(out, " null at %zu", array->first_null);
    }
}

char *lift_outcome(const struct lift_options *options, const char *text, size_t n, enum lift_cut cut,
                   uint64_t *state) {
    struct pe_error err = {0};
    struct lift *lift = lift_open(options, &err);
    EXPECT(lift, "%s", err.text);
    struct text out = {0};
    if (lift_feed_cut(lift, text, n, cut, state, &err)) {
        struct pe_error again = {0};
        EXPECT(lift_feed(lift, "1", 1, &again) == err.code && strcmp(again.text, err.text) == 0, "second: %s",
               again.text);
        outcome_add(&out, "%s %s: %s", pe_code_slug(err.code), err.path, err.text);
    } else {
        size_t length;
        const char *envelope = lift_envelope(lift, &length);
        for (size_t i = 0; i < length; i++) { /* byte by byte: it may hold zeros */
            outcome_add(&out, envelope[i] ? "%c" : "\\0", envelope[i]);
        }
        for (size_t i = 0; i < lift_count(lift); i++) {
            outcome_add(&out, " | ");
            describe_array(&out, lift_at(lift, i));
        }
    }
    lift_close(lift);
    return out.bytes;
}
