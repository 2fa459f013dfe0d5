/* SPDX-License-Identifier: MIT
 *
 * The envelope: everything but the lifted arrays, with just enough JSON understood to know where a value
 * begins and which keys lead to it.
 *
 * The rules for being right about that are few: inside a string only the backslash and the quote matter; a
 * bracket outside a string opens or closes a level; a string where an object wants a key is a key. On text
 * that is JSON these states are exact. On other text they may be wrong, and then it does not matter: every
 * byte outside an array that was read as a complete JSON value is still in the envelope, and the parser
 * refuses it.
 */
#include "wire/lift.h"
#include "wire/lift_array.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum lift_state {
    VALUE,  /* a value is wanted: the only place where an array can be lifted */
    KEY,    /* a key, or the end of the object */
    COLON,  /* after a key */
    AFTER,  /* inside or after a value */
    STRING, /* a string that is a value */
    STRING_ESCAPE,
    NAME, /* a string that is a key */
    NAME_ESCAPE,
    NAME_UNICODE, /* the four digits of \uXXXX in a key */
    LIFTED        /* inside an array that is lifted */
};

/* An open bracket of the envelope. */
struct lift_level {
    bool object;
    bool hidden;  /* nothing under here can be watched */
    size_t index; /* array: of the element */
    size_t named; /* array: the index that name shows */
    size_t n_name;
    char name[LIFT_MAX_KEY + 1]; /* the key, or "[3]" */
};

struct lift {
    struct lift_options options;
    enum lift_state state;
    int depth;
    struct lift_level levels[LIFT_MAX_DEPTH];
    const char *keys[LIFT_MAX_DEPTH];
    unsigned unicode, n_unicode;
    char *envelope;
    size_t length, room;
    struct lift_budget budget;
    struct lift_reader reader;
    struct lift_array **arrays; /* in the order of the text, after lift_finish also by path */
    struct lift_array **sorted;
    size_t n_arrays, room_arrays;
    size_t offset; /* bytes of the text so far */
    struct pe_error failure;
};

/* ---- Paths --------------------------------------------------------------------------------------------- */

/* Can this byte be in a key of a watched path? Without these four, paths are never ambiguous. */
static bool is_plain(unsigned char c) {
    return c >= 0x20 && c <= 0x7e && c != '[' && c != ']' && c != '"' && c != '\\';
}

static bool is_word(const char *key) {
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    return key[0] != '\0' && key[strspn(key, word)] == '\0';
}

bool lift_path_add(char *path, size_t size, const char *key) {
    size_t n = strlen(path);
    const char *before = "[\"", *after = "\"]";
    if (is_word(key) || key[0] == '[') {
        before = n > 0 && key[0] != '[' ? "." : "";
        after = "";
    }
    size_t n_key = strlen(before) + strlen(key) + strlen(after);
    if (n_key >= size - n) {
        return false;
    }
    snprintf(path + n, size - n, "%s%s%s", before, key, after);
    return true;
}

/* The keys to the value that comes now; false when one of them is hidden. */
static bool keys_fill(struct lift *lift) {
    for (int i = 0; i < lift->depth; i++) {
        struct lift_level *level = &lift->levels[i];
        if (level->hidden) {
            return false;
        }
        if (!level->object && level->named != level->index) {
            level->named = level->index;
            snprintf(level->name, sizeof level->name, "[%zu]", level->index);
        }
        lift->keys[i] = level->name;
    }
    return true;
}

/* Is an array that begins now watched? Then its path. */
static bool path_watched(struct lift *lift, char *path, size_t size) {
    if (!keys_fill(lift) || !lift->options.watches(lift->options.context, lift->keys, (size_t)lift->depth)) {
        return false;
    }
    path[0] = '\0';
    for (int i = 0; i < lift->depth; i++) {
        if (!lift_path_add(path, size, lift->keys[i])) {
            return false;
        }
    }
    return true;
}

/* ---- Levels and keys ----------------------------------------------------------------------------------- */

static int level_open(struct lift *lift, bool object, size_t offset) {
    if (lift->depth == LIFT_MAX_DEPTH) {
        return pe_fail(&lift->failure, PE_ERR_SYNTAX, "", "nested deeper than %d levels, at byte %zu",
                       LIFT_MAX_DEPTH, offset);
    }
    struct lift_level *level = &lift->levels[lift->depth];
    level->object = object;
    level->hidden = lift->depth > 0 && lift->levels[lift->depth - 1].hidden;
    level->index = 0;
    level->named = SIZE_MAX;
    level->n_name = 0;
    level->name[0] = '\0';
    lift->depth++;
    lift->state = object ? KEY : VALUE;
    return PE_OK;
}

static bool inside_object(const struct lift *lift) {
    return lift->depth > 0 && lift->levels[lift->depth - 1].object;
}

static void level_close(struct lift *lift) {
    if (lift->depth > 0) {
        lift->depth--;
    }
    lift->state = AFTER;
}

static void level_next(struct lift *lift) {
    lift->state = inside_object(lift) ? KEY : VALUE;
    if (lift->depth > 0) {
        lift->levels[lift->depth - 1].index++;
    }
}

/* A level's key is hidden by what its parent was, or by itself. */
static void name_begin(struct lift *lift) {
    struct lift_level *level = &lift->levels[lift->depth - 1];
    level->n_name = 0;
    level->hidden = lift->depth > 1 && lift->levels[lift->depth - 2].hidden;
    lift->state = NAME;
}

static void name_add(struct lift *lift, unsigned c) {
    struct lift_level *level = &lift->levels[lift->depth - 1];
    if (c > 0x7e || !is_plain((unsigned char)c) || level->n_name == LIFT_MAX_KEY) {
        level->hidden = true;
    } else {
        level->name[level->n_name++] = (char)c;
    }
}

static void name_end(struct lift *lift) {
    struct lift_level *level = &lift->levels[lift->depth - 1];
    level->name[level->n_name] = '\0';
    lift->state = COLON;
}

/* ---- One byte ------------------------------------------------------------------------------------------ */

static unsigned hex_value(unsigned char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    unsigned letter = (c | 0x20U) - 'a';
    return letter < 6 ? letter + 10 : 0x10000; /* makes the key one that cannot be watched */
}

static void name_step(struct lift *lift, unsigned char c) {
    if (lift->state == NAME_UNICODE) {
        lift->unicode = lift->unicode << 4 | hex_value(c);
        if (++lift->n_unicode == 4) {
            name_add(lift, lift->unicode);
            lift->state = NAME;
        }
    } else if (lift->state == NAME_ESCAPE) {
        lift->state = c == 'u' ? NAME_UNICODE : NAME;
        lift->unicode = lift->n_unicode = 0;
        if (c != 'u') { /* of the short escapes only \/ is a plain byte */
            name_add(lift, c == '/' ? '/' : 0);
        }
    } else if (c == '\\') {
        lift->state = NAME_ESCAPE;
    } else if (c == '"') {
        name_end(lift);
    } else {
        name_add(lift, c);
    }
}

static int mark_step(struct lift *lift, unsigned char c, size_t offset) {
    switch (c) {
    case ' ':
    case '\n':
    case '\r':
    case '\t':
        break;
    case '{':
    case '[':
        return level_open(lift, c == '{', offset);
    case '}':
    case ']':
        level_close(lift);
        break;
    case ',':
        level_next(lift);
        break;
    case ':':
        lift->state = lift->state == COLON ? VALUE : lift->state;
        break;
    case '"':
        if (lift->state == KEY) {
            name_begin(lift);
        } else {
            lift->state = STRING;
        }
        break;
    default:
        lift->state = lift->state == VALUE ? AFTER : lift->state;
    }
    return PE_OK;
}

static int byte_step(struct lift *lift, unsigned char c, size_t offset) {
    if (c == 0) { /* jansson passes over one that follows a number or a word, such as our null */
        return pe_fail(
            &lift->failure, PE_ERR_SYNTAX, "",
            "got byte 0x00, which no JSON holds, at byte %zu: a binary body needs its Content-Type", offset);
    }
    switch (lift->state) {
    case STRING:
        lift->state = c == '"' ? AFTER : c == '\\' ? STRING_ESCAPE : STRING;
        return PE_OK;
    case STRING_ESCAPE:
        lift->state = STRING;
        return PE_OK;
    case NAME:
    case NAME_ESCAPE:
    case NAME_UNICODE:
        name_step(lift, c);
        return PE_OK;
    default:
        return mark_step(lift, c, offset);
    }
}

/* ---- Envelope and arrays ------------------------------------------------------------------------------- */

static int envelope_full(struct lift *lift) {
    size_t limit = lift->options.envelope_limit;
    return pe_fail_limit(&lift->failure, "", LIFT_LIMIT_ENVELOPE, limit, limit + 1,
                         "JSON outside its tensors is longer than %zu bytes", limit);
}

static int envelope_add(struct lift *lift, const char *bytes, size_t n) {
    size_t limit = lift->options.envelope_limit;
    if (n > limit - lift->length) {
        return envelope_full(lift);
    }
    if (n > lift->room - lift->length) {
        size_t room = lift->room > limit / 2 ? limit : 2 * lift->room;
        room = room < lift->length + n ? lift->length + n : room;
        char *envelope = realloc(lift->envelope, room);
        if (!envelope) {
            return pe_fail(&lift->failure, PE_ERR_MEMORY, "", "no memory for the text of the request");
        }
        lift->envelope = envelope;
        lift->room = room;
    }
    memcpy(lift->envelope + lift->length, bytes, n);
    lift->length += n;
    return PE_OK;
}

static int array_begin(struct lift *lift, const char *path) {
    if (envelope_add(lift, "null", 4)) {
        return lift->failure.code;
    }
    if (lift->n_arrays == lift->room_arrays) {
        size_t room = 2 * lift->room_arrays + 8;
        struct lift_array **arrays = realloc(lift->arrays, room * sizeof *arrays);
        if (!arrays) {
            return pe_fail(&lift->failure, PE_ERR_MEMORY, path, "no memory for the list of arrays");
        }
        lift->arrays = arrays;
        lift->room_arrays = room;
    }
    struct lift_array *array = lift_reader_begin(&lift->reader, path, &lift->failure);
    if (array) {
        lift->arrays[lift->n_arrays++] = array;
        lift->state = LIFTED;
    }
    return lift->failure.code;
}

/* Envelope text up to an array that is to be lifted, a failure, or `end`; returns where it stopped. */
static const char *envelope_read(struct lift *lift, const char *text, const char *end) {
    char path[LIFT_MAX_PATH + 1];
    size_t left = lift->options.envelope_limit - lift->length;
    const char *at = text, *stop = (size_t)(end - text) > left ? text + left : end;
    bool lifted = false;
    while (at < stop) {
        lifted = lift->state == VALUE && *at == '[' && path_watched(lift, path, sizeof path);
        if (lifted || byte_step(lift, (unsigned char)*at, lift->offset + (size_t)(at - text))) {
            break;
        }
        at++;
    }
    if (lift->failure.code || envelope_add(lift, text, (size_t)(at - text))) {
        return at;
    }
    if (lifted) {
        array_begin(lift, path);
    } else if (at < end) {
        envelope_full(lift);
    }
    return at;
}

int lift_feed(struct lift *lift, const void *bytes, size_t n, struct pe_error *err) {
    const char *at = bytes, *end = at + n;
    while (at < end && !lift->failure.code) {
        const char *text = at;
        if (lift->state == LIFTED) {
            bool done = false;
            at = lift_reader_feed(&lift->reader, at, end, lift->offset, &done, &lift->failure);
            lift->state = done ? AFTER : LIFTED;
        } else {
            at = envelope_read(lift, at, end);
        }
        lift->offset += (size_t)(at - text);
    }
    if (lift->failure.code && !err->code) {
        *err = lift->failure;
    }
    return lift->failure.code;
}

static int array_compare(const void *a, const void *b) {
    const struct lift_array *const *first = a, *const *second = b;
    return strcmp((*first)->path, (*second)->path);
}

int lift_finish(struct lift *lift, struct pe_error *err) {
    if (lift->state == LIFTED) {
        lift_reader_cut(&lift->reader, lift->offset, &lift->failure);
    }
    if (!lift->failure.code && lift->n_arrays > 0 && !lift->sorted) {
        lift->sorted = malloc(lift->n_arrays * sizeof(struct lift_array *));
        if (!lift->sorted) {
            pe_fail(&lift->failure, PE_ERR_MEMORY, "", "no memory for the index of arrays");
        }
    }
    if (lift->failure.code) {
        if (!err->code) {
            *err = lift->failure;
        }
        return lift->failure.code;
    }
    if (lift->n_arrays > 0) {
        memcpy(lift->sorted, lift->arrays, lift->n_arrays * sizeof(struct lift_array *));
        qsort(lift->sorted, lift->n_arrays, sizeof(struct lift_array *), array_compare);
    }
    return PE_OK;
}

/* ---- Results ------------------------------------------------------------------------------------------- */

const char *lift_envelope(const struct lift *lift, size_t *length) {
    *length = lift->length;
    return lift->envelope;
}

size_t lift_count(const struct lift *lift) {
    return lift->n_arrays;
}

size_t lift_bytes(const struct lift *lift) {
    size_t bytes = lift->room;
    for (size_t i = 0; i < lift->n_arrays; i++) {
        bytes += lift_array_bytes(lift->arrays[i]) + LIFT_ARRAY_COST * sizeof(double);
    }
    return bytes;
}

struct lift_array *lift_at(const struct lift *lift, size_t i) {
    return lift->arrays[i];
}

struct lift_array *lift_find(const struct lift *lift, const char *path) {
    size_t low = 0, high = lift->sorted ? lift->n_arrays : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(path, lift->sorted[middle]->path);
        if (order == 0) {
            return lift->sorted[middle];
        }
        low = order > 0 ? middle + 1 : low;
        high = order < 0 ? middle : high;
    }
    return NULL;
}

const struct lift_array *lift_first_error(const struct lift *lift) {
    for (size_t i = 0; i < lift->n_arrays; i++) {
        if (lift->arrays[i]->error.code) {
            return lift->arrays[i];
        }
    }
    return NULL;
}

/* ---- Life ---------------------------------------------------------------------------------------------- */

struct lift *lift_open(const struct lift_options *options, struct pe_error *err) {
    struct lift *lift = calloc(1, sizeof *lift);
    if (lift) {
        lift->options = *options;
        lift->budget.limit = options->value_limit < SIZE_MAX / 32 ? options->value_limit : SIZE_MAX / 32;
        lift->reader.budget = &lift->budget;
        lift->envelope = malloc(1);
        lift->room = 1;
    }
    if (!lift || !lift->envelope) {
        pe_fail(err, PE_ERR_MEMORY, "", "no memory for reading the request");
        lift_close(lift);
        return NULL;
    }
    return lift;
}

void lift_close(struct lift *lift) {
    if (!lift) {
        return;
    }
    for (size_t i = 0; i < lift->n_arrays; i++) {
        lift_array_free(lift->arrays[i]);
    }
    free(lift->arrays);
    free(lift->sorted);
    free(lift->envelope);
    free(lift);
}
