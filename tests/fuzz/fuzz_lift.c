/* SPDX-License-Identifier: MIT
 *
 * The lift: the input is a JSON text, or not. It is read by the lift and jansson together, as the service
 * does, and by jansson alone; both must accept it or neither, and find the same. And the same comes out
 * however the text is cut into chunks. Arrays are watched for at the paths q, embeddings, q.data,
 * positions.mask, requests[i].q, and at any key of w.
 *
 * Where jansson may accept what the lift does not:
 *   - watched arrays that are no tensors, as [[1], [2, 3]] or ["x"], or of a rank over 8: they hold an error;
 *   - more than 64 levels of brackets;
 *   - numbers of more than 4096 bytes and what else is over a limit: PE_ERR_LIMIT;
 *   - a zero byte: jansson passes over it in some places, so such texts are not compared.
 * Whole numbers beyond 64 bits, which jansson refuses as integers, are read as reals, as the service does.
 */
#include "fuzz/target.h"

#include "posenc_fields.h"
#include "wire/lift.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOAD (JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL | JSON_DECODE_ANY)

static const char *const watched[][3] = {
    {"q"}, {"embeddings"}, {"q", "data"}, {"positions", "mask"}, {"requests", "[]", "q"}, {"w", "*"},
};

static bool key_fits(const char *pattern, const char *key) {
    if (strcmp(pattern, "*") == 0) {
        return key[0] != '[';
    }
    return strcmp(pattern, "[]") == 0 ? key[0] == '[' : strcmp(pattern, key) == 0;
}

static bool watches(void *context, const char *const *keys, size_t depth) {
    (void)context;
    for (size_t i = 0; i < PE_COUNT(watched); i++) {
        size_t n = 0;
        while (n < depth && n < 3 && watched[i][n] && key_fits(watched[i][n], keys[n])) {
            n++;
        }
        if (n == depth && depth > 0 && (n == 3 || !watched[i][n])) {
            return true;
        }
    }
    return false;
}

/* ---- Feeding ------------------------------------------------------------------------------------------- */

/* In chunks of at most `most` bytes, of chosen lengths when `state` is given. Who fails once, fails again. */
static int feed(struct lift *lift, const uint8_t *data, size_t size, size_t most, uint64_t *state,
                struct pe_error *err) {
    int code = PE_OK;
    for (size_t at = 0, n; at < size && !code; at += n) {
        n = state ? 1 + fuzz_below(state, most) : most;
        n = n < size - at ? n : size - at;
        char one = (char)data[at], *chunk = n > 1 ? fuzz_copy(data + at, n) : &one;
        code = lift_feed(lift, chunk, n, err);
        free(n > 1 ? chunk : NULL);
    }
    code = code ? code : lift_finish(lift, err);
    fuzz_error_check(code, err);
    if (code) {
        struct pe_error again = {0};
        FUZZ_EXPECT(lift_feed(lift, "1", 1, &again) == code && strcmp(again.text, err->text) == 0,
                    "fails first with %s, then with %s", err->text, again.text);
    }
    return code;
}

static struct lift *lift_new(void) {
    const struct lift_options options = {
        .envelope_limit = 1 << 16, .value_limit = 1 << 14, .watches = watches};
    struct pe_error err = {0};
    struct lift *lift = lift_open(&options, &err);
    FUZZ_EXPECT(lift, "%s", err.text);
    return lift;
}

/* ---- All that came out, as text ------------------------------------------------------------------------ */

static void describe_array(FILE *out, struct lift_array *array) {
    struct pe_error err = {0};
    const double *values = lift_array_doubles(array, &err);
    fprintf(out, "\n%s %d %s %s\n", array->path, array->error.code, array->error.path, array->error.text);
    for (int i = 0; i < array->rank; i++) {
        fprintf(out, "[%zu]", array->dim[i]);
    }
    for (size_t i = 0; i < array->n; i++) {
        fwrite(&values[i], sizeof *values, 1, out);
    }
    for (size_t i = 0; i < array->n_fixes; i++) {
        fprintf(out, " fix %zu %a", array->fixes[i].index, (double)array->fixes[i].single);
    }
    fprintf(out, " null %zu", array->has_null ? array->first_null : SIZE_MAX);
    fprintf(out, " beyond %zu", array->has_beyond ? array->first_beyond : SIZE_MAX);
}

static char *outcome(const uint8_t *data, size_t size, size_t most, uint64_t *state, size_t *n) {
    struct pe_error err = {0};
    struct lift *lift = lift_new();
    char *text = NULL;
    FILE *out = open_memstream(&text, n);
    FUZZ_EXPECT(out, "no memory");
    if (feed(lift, data, size, most, state, &err)) {
        fprintf(out, "%d %s %s", err.code, err.path, err.text);
    } else {
        size_t length;
        const char *envelope = lift_envelope(lift, &length);
        fwrite(envelope, 1, length, out);
        for (size_t i = 0; i < lift_count(lift); i++) {
            describe_array(out, lift_at(lift, i));
        }
    }
    fclose(out);
    lift_close(lift);
    return text;
}

static void check_chunks(const uint8_t *data, size_t size) {
    uint64_t state = fuzz_seed(data, size);
    size_t n_whole, n;
    char *whole = outcome(data, size, size, NULL, &n_whole);
    for (int way = 0; way < 2; way++) {
        char *cut = outcome(data, size, way ? 24 : 1, way ? &state : NULL, &n);
        FUZZ_EXPECT(n == n_whole && memcmp(cut, whole, n) == 0, "whole:\n%s\nin chunks:\n%s", whole, cut);
        free(cut);
    }
    free(whole);
}

/* ---- Against jansson ----------------------------------------------------------------------------------- */

struct walk {
    const struct lift *lift;
    const char *keys[LIFT_MAX_DEPTH + 1];
    size_t depth, found;
    char path[LIFT_MAX_PATH + 1];
};

static void same_numbers(const struct lift_array *array, const json_t *json, int level, size_t *at) {
    if (!json_is_array(json)) {
        FUZZ_EXPECT(level == array->rank && *at < array->n, "%s has more numbers", array->path);
        double want = json_is_null(json) ? -INFINITY : json_number_value(json), got = array->values[(*at)++];
        FUZZ_EXPECT(memcmp(&want, &got, sizeof want) == 0, "%s: %.17g, not %.17g", array->path, got, want);
        return;
    }
    FUZZ_EXPECT(level < array->rank && json_array_size(json) == array->dim[level], "%s: other shape",
                array->path);
    for (size_t i = 0; i < json_array_size(json); i++) {
        same_numbers(array, json_array_get(json, i), level + 1, at);
    }
}

/* Such keys are never on a watched path: lift.h. */
static bool key_hides(const char *key) {
    for (const char *c = key; *c; c++) {
        if (*c < 0x20 || *c > 0x7e || strchr("[]\"\\", *c)) {
            return true;
        }
    }
    return strlen(key) > LIFT_MAX_KEY;
}

static void same_value(struct walk *walk, const json_t *whole, const json_t *envelope, bool plain);

static void same_member(struct walk *walk, const char *key, bool plain, const json_t *whole,
                        const json_t *envelope) {
    size_t n = strlen(walk->path);
    FUZZ_EXPECT(walk->depth < PE_COUNT(walk->keys), "deeper than the lift goes");
    plain = plain && lift_path_add(walk->path, sizeof walk->path, key);
    walk->keys[walk->depth++] = key;
    same_value(walk, whole, envelope, plain);
    walk->depth--;
    walk->path[n] = '\0';
}

static void same_members(struct walk *walk, json_t *whole, const json_t *envelope, bool plain) {
    const char *key;
    json_t *value;
    FUZZ_EXPECT(json_object_size(whole) == json_object_size(envelope), "%s: other size", walk->path);
    json_object_foreach(whole, key, value) {
        same_member(walk, key, plain && !key_hides(key), value, json_object_get(envelope, key));
    }
}

static void same_elements(struct walk *walk, const json_t *whole, const json_t *envelope, bool plain) {
    FUZZ_EXPECT(json_array_size(whole) == json_array_size(envelope), "%s: other length", walk->path);
    for (size_t i = 0; i < json_array_size(whole); i++) {
        char key[32];
        snprintf(key, sizeof key, "[%zu]", i);
        same_member(walk, key, plain, json_array_get(whole, i), json_array_get(envelope, i));
    }
}

/* The envelope is the whole but for null where a watched array was, and that array is in the table. */
static void same_value(struct walk *walk, const json_t *whole, const json_t *envelope, bool plain) {
    if (json_is_array(whole) && plain && watches(NULL, walk->keys, walk->depth)) {
        struct pe_error err = {0};
        struct lift_array *array = lift_find(walk->lift, walk->path);
        size_t at = 0;
        FUZZ_EXPECT(json_is_null(envelope) && array, "%s is not lifted", walk->path);
        lift_array_doubles(array, &err);
        same_numbers(array, whole, 0, &at);
        FUZZ_EXPECT(at == array->n, "%s has fewer numbers", walk->path);
        walk->found++;
        return;
    }
    FUZZ_EXPECT(envelope && json_typeof(whole) == json_typeof(envelope), "%s: other type", walk->path);
    if (json_is_object(whole)) {
        same_members(walk, (json_t *)(uintptr_t)whole, envelope, plain);
    } else if (json_is_array(whole)) {
        same_elements(walk, whole, envelope, plain);
    } else {
        FUZZ_EXPECT(json_equal(whole, envelope), "%s: other value", walk->path);
    }
}

static size_t depth_of(const json_t *json) {
    size_t most = 0;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)json, key, value) {
        size_t depth = depth_of(value);
        most = depth > most ? depth : most;
    }
    for (size_t i = 0; i < json_array_size(json); i++) {
        size_t depth = depth_of(json_array_get(json, i));
        most = depth > most ? depth : most;
    }
    return most + (json_is_array(json) || json_is_object(json));
}

static void check_jansson(const uint8_t *data, size_t size) {
    struct pe_error err = {0};
    struct walk walk = {.lift = NULL};
    struct lift *lift = lift_new();
    json_t *whole = json_loadb((const char *)data, size, LOAD, NULL), *envelope = NULL;
    int code = feed(lift, data, size, size, NULL, &err);
    if (!code) {
        size_t length;
        const char *text = lift_envelope(lift, &length);
        envelope = json_loadb(text, length, LOAD, NULL);
    }
    if (envelope && !lift_first_error(lift)) {
        walk.lift = lift;
        FUZZ_EXPECT(whole, "only jansson refuses it");
        same_value(&walk, whole, envelope, true);
        FUZZ_EXPECT(walk.found == lift_count(lift), "%zu arrays are lifted, not %zu", lift_count(lift),
                    walk.found);
    } else if (whole && code != PE_ERR_LIMIT && depth_of(whole) <= LIFT_MAX_DEPTH) {
        FUZZ_EXPECT(envelope, "only the lift refuses it: %s", err.text);
    }
    json_decref(whole);
    json_decref(envelope);
    lift_close(lift);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check_chunks(data, size);
    if (size && !memchr(data, 0, size)) {
        char *text = fuzz_copy(data, size);
        check_jansson((const uint8_t *)text, size);
        free(text);
    }
    return 0;
}
