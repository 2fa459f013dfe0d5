/* SPDX-License-Identifier: MIT
 *
 * Targets and positions as text: the input is a target. Its path and the names and values of its query are
 * held against a percent-decoding of their own; each value, and the input as a whole, is then read as
 * positions: a range must end where its numbers say, a list must be what jansson reads.
 */
#include "fuzz/target.h"

#include "wire/query.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT ((size_t)1 << 20)

/* ---- Percent-decoding ---------------------------------------------------------------------------------- */

/* Is `got` (NULL = refused) what text[0..n) stands for? */
static void check_decoded(const char *text, size_t n, bool form, const char *got) {
    char *want = malloc(n + 1), byte[3] = "";
    size_t length = 0;
    bool good = true;
    FUZZ_EXPECT(want, "no memory");
    for (size_t i = 0; i < n && good; i++) {
        char c = text[i];
        if (c == '%') {
            good = n - i > 2 && strspn(text + i + 1, "0123456789abcdefABCDEF") >= 2;
            memcpy(byte, text + i + 1, good ? 2 : 0);
            c = (char)strtol(byte, NULL, 16);
            i += 2;
            good = good && ((unsigned char)c >= 0x20 && c != 0x7f);
        } else {
            good = (unsigned char)c > 0x20 && c != 0x7f;
            c = form && c == '+' ? ' ' : c;
        }
        want[length++] = c;
    }
    want[length] = '\0';
    FUZZ_EXPECT(good == (got != NULL), "%.*s: %s", (int)n, text, got ? got : "refused");
    FUZZ_EXPECT(!good || strcmp(want, got) == 0, "%.*s: %s, not %s", (int)n, text, got, want);
    free(want);
}

/* ---- Positions ----------------------------------------------------------------------------------------- */

static void check_range(const struct pe_positions *positions, const char *text) {
    char *end;
    double start = strtod(text, &end), stop = strtod(end + 1, &end);
    double step = *end == ':' ? strtod(end + 1, &end) : 1;
    size_t n = positions->length;
    FUZZ_EXPECT(*end == '\0', "a range ends before \"%s\"", end);
    FUZZ_EXPECT(!positions->batch && !positions->list, "a range is no list");
    double after = fma((double)n, step, start);
    FUZZ_EXPECT(step > 0 ? after >= stop : after <= stop, "%s: there are more than %zu", text, n);
    if (n) {
        double first, last;
        pe_positions_read(positions, 0, 1, &first);
        pe_positions_read(positions, n - 1, 1, &last);
        FUZZ_EXPECT(first >= start && first <= start, "%s begins at %.17g", text, first);
        FUZZ_EXPECT(step > 0 ? last < stop : last > stop, "%s: element %zu is %.17g", text, n - 1, last);
        FUZZ_EXPECT(fabs(last) <= PE_POSITION_MAX, "%s: up to %.17g", text, last);
    }
}

static void check_row(const json_t *row, const double *values, size_t n) {
    FUZZ_EXPECT(json_array_size(row) == n, "a row of %zu, not %zu", n, json_array_size(row));
    for (size_t i = 0; i < n; i++) {
        double want = json_number_value(json_array_get(row, i));
        FUZZ_EXPECT(memcmp(&want, &values[i], sizeof want) == 0, "[%zu] is %.17g, not %.17g", i, values[i],
                    want);
    }
}

static void check_list(const struct pe_positions *positions, const char *text) {
    char *bracketed = malloc(strlen(text) + 3);
    FUZZ_EXPECT(bracketed, "no memory");
    snprintf(bracketed, strlen(text) + 3, text[0] == '[' ? "%s" : "[%s]", text);
    json_t *json = json_loads(bracketed, JSON_DECODE_INT_AS_REAL, NULL);
    FUZZ_EXPECT(json, "jansson refuses %s", bracketed);
    FUZZ_EXPECT(positions->list, "a list is no range");
    size_t n = positions->length;
    for (size_t i = 0; i < n * (positions->batch ? positions->batch : 1); i++) {
        FUZZ_EXPECT(fabs(positions->list[i]) <= PE_POSITION_MAX, "%s: %.17g", text, positions->list[i]);
    }
    if (positions->batch) {
        FUZZ_EXPECT(json_array_size(json) == positions->batch, "%s: %zu rows", text, positions->batch);
    }
    for (size_t i = 0; i < (positions->batch ? positions->batch : 1); i++) {
        check_row(positions->batch ? json_array_get(json, i) : json, positions->list + i * n, n);
    }
    json_decref(json);
    free(bracketed);
}

static void check_positions(const char *text) {
    struct pe_arena *arena = fuzz_arena(LIMIT);
    struct pe_positions positions;
    struct pe_error err = {0};
    int code = pe_positions_parse(arena, &positions, text, &err);
    fuzz_error_check(code, &err);
    if (code == PE_OK) {
        FUZZ_EXPECT(positions.axes == 1, "%d axes", positions.axes);
        if (text[0] != '[' && strchr(text, ':')) {
            check_range(&positions, text);
        } else {
            check_list(&positions, text);
        }
    }
    pe_arena_close(arena);
}

/* ---- Targets ------------------------------------------------------------------------------------------- */

static void check_query(struct pe_arena *arena, const char *query) {
    const char *rest = query, *name = NULL, *value;
    struct pe_error err = {0};
    while (query_next(arena, &rest, &name, &value, &err)) {
        query += strspn(query, "&");
        size_t n = strcspn(query, "&"), n_name = strcspn(query, "=&");
        check_decoded(query, n_name, true, name);
        check_decoded(query + n_name + (n_name < n), n - n_name - (n_name < n), true, value);
        check_positions(value);
        query += n;
        FUZZ_EXPECT(rest == query, "\"%s\" is left, not \"%s\"", rest, query);
    }
    query += strspn(query, "&");
    fuzz_error_check(err.code, &err);
    FUZZ_EXPECT(err.code || !*query, "ends before \"%s\"", query);
    if (err.code && err.code != PE_ERR_LIMIT) {
        size_t n = strcspn(query, "&"), n_name = strcspn(query, "=&");
        bool has_value = n_name < n;
        check_decoded(query, n_name, true, name);
        if (name) {
            FUZZ_EXPECT(has_value, "a value that is not there is refused");
            check_decoded(query + n_name + 1, n - n_name - 1, true, NULL);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *target = fuzz_text(data, size);
    const char *query = "";
    struct pe_error err = {0};
    struct pe_arena *arena = fuzz_arena(LIMIT);
    const char *path = target_split(arena, target, &query, &err);
    fuzz_error_check(err.code, &err);
    FUZZ_EXPECT((path == NULL) == (err.code != 0), "code %d", err.code);
    if (target[0] == '/') {
        check_decoded(target, strcspn(target, "?"), false, path);
    }
    if (path) {
        check_query(arena, query);
    }
    check_positions(target);
    pe_arena_close(arena);
    free(target);
    return 0;
}
