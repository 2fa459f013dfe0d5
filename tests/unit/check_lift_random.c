/* SPDX-License-Identifier: MIT
 *
 * The lift on random documents, whole and broken, against what jansson reads from the same text.
 */
#include "fence.h"
#include "instructions.h"
#include "lift_outcome.h"
#include "suites.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Random documents ---------------------------------------------------------------------------------- */

static void add_space(struct text *out, uint64_t *state) {
    static const char *const spaces[] = {" ", "\n", "\t", "\r", "  \n"};
    if (random_below(state, 6) == 0) {
        outcome_add(out, "%s", spaces[random_below(state, PE_COUNT(spaces))]);
    }
}

static void add_number(struct text *out, uint64_t *state) {
    static const char *const odd[] = {"-0",
                                      "0",
                                      "1e-400",
                                      "5e-324",
                                      "1E+2",
                                      "0.1e1",
                                      "123456789012345678901234567890",
                                      "1.00000005960464477539062500001",
                                      "-1.7976931348623157e308",
                                      "9007199254740993"};
    switch (random_below(state, 6)) {
    case 0:
        outcome_add(out, "%s", odd[random_below(state, PE_COUNT(odd))]);
        break;
    case 1:
        outcome_add(out, "%d", (int)random_below(state, 2000) - 1000);
        break;
    case 2:
        outcome_add(out, "%.17g", ((double)random_next(state) - 0x1p63) * 0x1p-63);
        break;
    default:
        outcome_add(out, "%.8f", ((double)random_next(state) - 0x1p63) * 0x1p-63);
    }
}

static void add_tensor(struct text *out, uint64_t *state, const size_t *dim, int rank, bool nulls) {
    outcome_add(out, "[");
    add_space(out, state);
    for (size_t i = 0; i < dim[0]; i++) {
        if (rank > 1) {
            add_tensor(out, state, dim + 1, rank - 1, nulls);
        } else if (nulls && random_below(state, 3) == 0) {
            outcome_add(out, "null");
        } else {
            add_number(out, state);
        }
        add_space(out, state);
        outcome_add(out, "%s", i + 1 < dim[0] ? "," : "");
        add_space(out, state);
    }
    outcome_add(out, "]");
}

static const char *const strings[] = {"\"\"",           "\"x\"",         "\"[1,2\"",
                                      "\"\\\"]\"",      "\"\\\\\"",      "\"q\"",
                                      "\"\\u0041\\n\"", "\"\xc3\xa9}\"", "\"embeddings\\\":[\""};
static const char *const keys[] = {
    "embeddings", "q",   "data", "positions", "mask",     "requests", "weights", "a/b",         "\\u0071",
    "b",          "a.b", "[0]",  "\\\"",      "\xc3\xa9", "",         "q.data",  "\\u0071.data"};

static void add_value(struct text *out, uint64_t *state, int depth);

static void add_object(struct text *out, uint64_t *state, int depth) {
    outcome_add(out, "{");
    size_t n = random_below(state, 5), first = random_below(state, PE_COUNT(keys));
    for (size_t i = 0; i < n;
         i++) { /* 17 is prime to 5: no key twice, but for those that decode to the same */
        add_space(out, state);
        outcome_add(out, "\"%s\"", keys[(first + 5 * i) % PE_COUNT(keys)]);
        add_space(out, state);
        outcome_add(out, ":");
        add_value(out, state, depth + 1);
        outcome_add(out, "%s", i + 1 < n ? "," : "");
    }
    outcome_add(out, "}");
}

static void add_list(struct text *out, uint64_t *state, int depth) {
    size_t n = random_below(state, 4);
    outcome_add(out, "[");
    for (size_t i = 0; i < n; i++) {
        add_value(out, state, depth + 1);
        outcome_add(out, "%s", i + 1 < n ? "," : "");
    }
    outcome_add(out, "]");
}

static void add_value(struct text *out, uint64_t *state, int depth) {
    size_t kind = random_below(state, depth > 4 ? 6 : 12);
    size_t dim[3] = {random_below(state, 4), random_below(state, 4) + 1, random_below(state, 5)};
    add_space(out, state);
    if (kind < 1) {
        outcome_add(out, "%s", kind ? "null" : "true");
    } else if (kind < 2) {
        outcome_add(out, "%s", strings[random_below(state, PE_COUNT(strings))]);
    } else if (kind < 3) {
        add_number(out, state);
    } else if (kind < 6) {
        add_tensor(out, state, dim, 1 + (int)random_below(state, 3), random_below(state, 4) == 0);
    } else if (kind < 10) {
        add_object(out, state, depth);
    } else {
        add_list(out, state, depth);
    }
    add_space(out, state);
}

#define LOAD (JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL | JSON_DECODE_ANY)

struct walk {
    const struct lift *lift;
    const char *keys[32];
    size_t depth, found;
    char path[LIFT_MAX_PATH + 1];
};

/* The numbers of a jansson array are those of the lifted one from *at on. */
static void expect_numbers(const struct lift_array *array, const json_t *json, int level, size_t *at) {
    if (!json_is_array(json)) {
        EXPECT(level == array->rank && *at < array->n, "%s: more numbers", array->path);
        double value = json_is_null(json) ? -INFINITY : json_number_value(json), got = array->values[(*at)++];
        EXPECT(memcmp(&value, &got, sizeof value) == 0, "%s: %.17g, expected %.17g", array->path, got, value);
        return;
    }
    EXPECT(level < array->rank && json_array_size(json) == array->dim[level], "%s: other shape", array->path);
    for (size_t i = 0; i < json_array_size(json); i++) {
        expect_numbers(array, json_array_get(json, i), level + 1, at);
    }
}

static bool key_plain(const char *key) {
    for (; *key; key++) {
        if (*key < 0x20 || *key > 0x7e || strchr("[]\"\\", *key)) {
            return false;
        }
    }
    return true;
}

static void expect_same(struct walk *walk, const json_t *whole, const json_t *envelope, bool plain);

static void expect_same_at(struct walk *walk, const char *key, bool plain, const json_t *whole,
                           const json_t *envelope) {
    size_t n = strlen(walk->path);
    EXPECT(walk->depth < 32, "too deep");
    plain = plain && lift_path_add(walk->path, sizeof walk->path, key);
    walk->keys[walk->depth++] = key;
    expect_same(walk, whole, envelope, plain);
    walk->depth--;
    walk->path[n] = '\0';
}

/* The envelope is the whole but for null where a watched array was, and that array is in the table. */
static void expect_same(struct walk *walk, const json_t *whole, const json_t *envelope, bool plain) {
    if (json_is_array(whole) && plain && lift_watched(NULL, walk->keys, walk->depth)) {
        struct pe_error err = {0};
        struct lift_array *array = lift_find(walk->lift, walk->path);
        EXPECT(json_is_null(envelope) && array, "%s is not lifted", walk->path);
        size_t at = 0;
        lift_array_doubles(array, &err);
        expect_numbers(array, whole, 0, &at);
        EXPECT(at == array->n, "%s: too many numbers", walk->path);
        walk->found++;
        return;
    }
    EXPECT(json_typeof(whole) == json_typeof(envelope), "%s: other type", walk->path);
    if (json_is_array(whole)) {
        EXPECT(json_array_size(whole) == json_array_size(envelope), "%s: other length", walk->path);
        for (size_t i = 0; i < json_array_size(whole); i++) {
            char key[32];
            snprintf(key, sizeof key, "[%zu]", i);
            expect_same_at(walk, key, plain, json_array_get(whole, i), json_array_get(envelope, i));
        }
    } else if (json_is_object(whole)) {
        EXPECT(json_object_size(whole) == json_object_size(envelope), "%s: other size", walk->path);
        for (void *i = json_object_iter((json_t *)(uintptr_t)whole); i;
             i = json_object_iter_next((json_t *)(uintptr_t)whole, i)) {
            const char *key = json_object_iter_key(i);
            expect_same_at(walk, key, plain && key_plain(key), json_object_iter_value(i),
                           json_object_get(envelope, key));
        }
    } else {
        EXPECT(json_equal(whole, envelope), "%s: other value", walk->path);
    }
}

/* What jansson makes of the whole text (which it must not with a zero byte in it: it passes over some),
 * against lift and jansson of the envelope. Returns how many arrays were compared, or -1 when the text was
 * refused. */
static int expect_as_jansson(const char *text, size_t n, uint64_t *state) {
    struct pe_error err = {0};
    struct lift *lift = lift_open(&lift_defaults, &err);
    json_t *whole = memchr(text, 0, n) ? NULL : json_loadb(text, n, LOAD, NULL), *envelope = NULL;
    struct walk walk = {.lift = lift};
    bool tensors = false, read = lift_feed_cut(lift, text, n, LIFT_CUT_RANDOM, state, &err) == PE_OK;
    if (read) {
        size_t length;
        const char *bytes = lift_envelope(lift, &length);
        envelope = json_loadb(bytes, length, LOAD, NULL);
        tensors = !lift_first_error(lift);
    }
    if (read && tensors && envelope) {
        EXPECT(whole, "accepted, but not by jansson: %.*s", (int)n, text);
        expect_same(&walk, whole, envelope, true);
        EXPECT(walk.found == lift_count(lift), "lifted more than was watched: %.*s", (int)n, text);
    } else if (whole) { /* only what is no tensor may be refused */
        EXPECT(read && envelope, "refused, but not by jansson: %.*s: %s", (int)n, text, err.text);
    }
    bool accepted = read && tensors && envelope;
    json_decref(whole);
    json_decref(envelope);
    lift_close(lift);
    return accepted ? (int)walk.found : -1;
}

static char *random_document(uint64_t *state, size_t *n) {
    struct text out = {0};
    add_object(&out, state, 0);
    *n = out.n;
    return out.bytes;
}

/* In two chunks, wherever the cut is, each chunk right before a page that may not be read. */
static void expect_cut(const struct fence *fence, const char *text, size_t n, size_t cut, const float *want,
                       size_t n_want) {
    struct pe_error err = {0};
    struct lift *lift = lift_open(&lift_defaults, &err);
    char *first = memcpy(fence_last(fence, cut), text, cut);
    EXPECT(!lift_feed(lift, first, cut, &err), "%s", err.text);
    char *second = memcpy(fence_last(fence, n - cut), text + cut, n - cut);
    EXPECT(!lift_feed(lift, second, n - cut, &err) && !lift_finish(lift, &err), "%s", err.text);
    struct lift_array *array = lift_find(lift, "q");
    EXPECT(array && array->n == n_want, "cut at %zu: %zu numbers", cut, array ? array->n : 0);
    const float *got = lift_array_singles(array);
    for (size_t i = 0; i < n_want; i++) {
        EXPECT(memcmp(&got[i], &want[i], sizeof *got) == 0, "cut at %zu: element %zu is %a, not %a", cut, i,
               (double)got[i], (double)want[i]);
    }
    lift_close(lift);
}

START_TEST(cut_at_every_byte) { /* read by each instruction set */
    enum { ROWS = 6, COLUMNS = 8, N = ROWS * COLUMNS };
    char text[N * 32] = "{\"q\":[";
    float want[N];
    struct fence fence;
    uint64_t state = 11;
    fence_make(&fence, sizeof text);
    instructions_limit((enum pe_instructions)_i);
    for (int round = 0; round < 20; round++) {
        size_t n = 6;
        for (size_t i = 0; i < N; i++) {
            uint64_t word = random_next(&state);
            double value = (double)(int64_t)word / (double)(UINT64_C(1) << (40 + word % 40 % 24));
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%.*g%s", i % COLUMNS ? "" : "[",
                                  round % 2 && word % 16 == 0 ? 17 : 1 + (int)(word % 9), value,
                                  (i + 1) % COLUMNS ? ","
                                  : i + 1 < N       ? "], "
                                                    : "]]}");
            const char *number = text + n - 1;
            while (strchr(",] }", *number)) {
                number--;
            }
            while (!strchr(",[ ", number[-1])) {
                number--;
            }
            want[i] = strtof(number, NULL);
        }
        for (size_t cut = 0; cut <= n; cut++) {
            expect_cut(&fence, text, n, cut, want, N);
        }
    }
    fence_drop(&fence);
}
END_TEST

START_TEST(reads_as_jansson) {
    uint64_t state = 5;
    int arrays = 0;
    for (int i = 0; i < RANDOM_ROUNDS(20000); i++) {
        size_t n;
        char *text = random_document(&state, &n);
        int found = expect_as_jansson(text, n, &state);
        arrays += found > 0 ? found : 0;
        free(text);
    }
    ck_assert_int_gt(arrays, RANDOM_ROUNDS(2000));
}
END_TEST

static void mutate(char *text, size_t *n, uint64_t *state) {
    static const char bytes[] = "[[[]]]{}{},,::\"\"\"\\0-19.eE+ntfNI \n/qu\x01\xff";
    for (size_t i = 1 + random_below(state, 3); i > 0; i--) {
        size_t at = random_below(state, *n), way = random_below(state, 3);
        char byte = bytes[random_below(state, sizeof bytes)]; /* also the zero */
        if (way == 0) {
            text[at] = byte;
        } else if (way == 1 && *n > 1) {
            memmove(text + at, text + at + 1, *n - at - 1);
            --*n;
        } else {
            memmove(text + at + 1, text + at, *n - at);
            text[at] = byte;
            ++*n;
        }
    }
}

/* Broken texts: refused when jansson refuses them, and in the same way however they are cut. */
START_TEST(mutations_are_judged_as_jansson_does) {
    uint64_t state = 6;
    int accepted = 0, refusals = 0;
    for (int i = 0; i < RANDOM_ROUNDS(60000); i++) {
        size_t n;
        char *made = random_document(&state, &n), *text = malloc(n + 8);
        EXPECT(text, "no memory");
        memcpy(text, made, n);
        free(made);
        mutate(text, &n, &state);
        int found = expect_as_jansson(text, n, &state);
        accepted += found > 0;
        refusals += found < 0;
        char *whole = lift_outcome(&lift_defaults, text, n, LIFT_CUT_WHOLE, &state);
        for (int k = 0; k < 2; k++) {
            char *other = lift_outcome(&lift_defaults, text, n, k ? LIFT_CUT_RANDOM : LIFT_CUT_BYTES, &state);
            EXPECT(strcmp(whole ? whole : "", other ? other : "") == 0, "%.*s\n  %s\n  %s", (int)n, text,
                   whole, other);
            free(other);
        }
        free(whole);
        free(text);
    }
    ck_assert_int_gt(accepted, RANDOM_ROUNDS(500));
    ck_assert_int_gt(refusals, RANDOM_ROUNDS(1000));
}
END_TEST

Suite *lift_random_suite(void) {
    Suite *suite = suite_create("lift_random");
    TCase *tests = tcase_create("lift_random");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, cut_at_every_byte, 0, (int)pe_instructions() + 1);
    tcase_add_test(tests, reads_as_jansson);
    tcase_add_test(tests, mutations_are_judged_as_jansson_does);
    suite_add_tcase(suite, tests);
    return suite;
}
