/* SPDX-License-Identifier: MIT
 *
 * Values given as text, where an error came from and what the system says, and "did you mean".
 */
#include "config_source.h"

#include "log_text.h"

#include <stdio.h>
#include <string.h>

static int set_plain_text(struct pe_arena *arena, struct config *config, const struct pe_field *row,
                          const char *text, struct pe_error *err) {
    if (!log_text_plain(text)) {
        return pe_fail(err, PE_ERR_SYNTAX, row->name, "must be UTF-8 without control characters");
    }
    return pe_field_parse(arena, config_fields, row, config, text, err);
}

int config_set_text(struct pe_arena *arena, struct config *config, const struct pe_field *row,
                    const char *text, struct pe_error *err) {
    if (row->flags & PE_FIELD_BYTES) {
        int64_t bytes = 0; /* "auto" */
        bool automatic = (row->flags & PE_FIELD_AUTO) && strcmp(text, "auto") == 0;
        if (!automatic && config_bytes_parse(text, &bytes, err)) {
            return err->code;
        }
        return pe_field_set_int(config_fields, row, config, bytes, err);
    }
    return set_plain_text(arena, config, row, text, err);
}

int config_error_from(struct pe_error *err, const char *origin, const char *key) {
    const size_t max = 100, length = strlen(origin);
    const char *tail = length > max ? origin + length - max : origin;
    char place[sizeof err->path];
    snprintf(place, sizeof place, "%s%s%s%.48s", tail == origin ? "" : "...", tail, key ? ": " : "",
             key ? key : "");
    err->path[0] = '\0';
    return pe_error_at(err, place); /* which makes it one line, whatever the key holds */
}

char *config_errno_text(int number, char *text, size_t size) {
    if (strerror_r(number, text, size) != 0) {
        snprintf(text, size, "error %d", number);
    }
    return text;
}

void config_nearest_init(struct config_nearest *nearest, const char *wanted) {
    *nearest = (struct config_nearest){.wanted = wanted, .distance = SIZE_MAX};
}

static size_t least(size_t a, size_t b, size_t c) {
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Levenshtein's distance. With D[i][j] the changes that make the first i letters of `a` the first j of `b`:
 *     D[i][j] = min(D[i-1][j] + 1, D[i][j-1] + 1, D[i-1][j-1] + (a_i != b_j))
 * and only one row of D is kept. Names are compared up to CONFIG_NAME_SIZE letters. */
static size_t distance(const char *a, const char *b) {
    const size_t n = strnlen(a, CONFIG_NAME_SIZE), m = strnlen(b, CONFIG_NAME_SIZE);
    size_t row[CONFIG_NAME_SIZE + 1];
    for (size_t j = 0; j <= m; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t above = row[j];
            row[j] = least(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[m];
}

void config_nearest_offer(struct config_nearest *nearest, const char *name) {
    size_t d = distance(nearest->wanted, name);
    if (d < nearest->distance) {
        nearest->distance = d;
        snprintf(nearest->name, sizeof nearest->name, "%s", name);
    }
}
