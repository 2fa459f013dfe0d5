/* SPDX-License-Identifier: MIT
 *
 * The configuration file: one flat JSON object whose keys are the options. Kinds are strict (a number is not
 * written as a string), except that sizes may be "64MiB" and what follows the machine "auto". A key given
 * twice, an unknown key or text after the object is refused.
 */
#include "config_jansson.h"
#include "config_source.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static int unknown_key(const char *key, struct pe_error *err) {
    struct config_nearest nearest;
    config_nearest_init(&nearest, key);
    for (size_t i = 0; i < config_n_fields; i++) {
        config_nearest_offer(&nearest, config_fields[i].name);
    }
    return pe_fail(err, PE_ERR_UNKNOWN_FIELD, "", "is not an option, the nearest is \"%s\"", nearest.name);
}

static int set_string(struct pe_arena *arena, struct config *config, const struct pe_field *row,
                      const char *text, struct pe_error *err) {
    bool spelled =
        (row->flags & PE_FIELD_BYTES) || ((row->flags & PE_FIELD_AUTO) && strcmp(text, "auto") == 0);
    if (row->kind == PE_KIND_TEXT || row->kind == PE_KIND_CHOICE || spelled) {
        return config_set_text(arena, config, row, text, err);
    }
    return pe_field_set_text(config_fields, row, config, text, err); /* says what it must be */
}

static int set_value(struct pe_arena *arena, struct config *config, const struct pe_field *row,
                     const json_t *value, struct pe_error *err) {
    switch (json_typeof(value)) {
    case JSON_STRING:
        return set_string(arena, config, row, json_string_value(value), err);
    case JSON_INTEGER:
        return pe_field_set_int(config_fields, row, config, json_integer_value(value), err);
    case JSON_REAL:
        return pe_field_set_real(config_fields, row, config, json_real_value(value), err);
    case JSON_TRUE:
    case JSON_FALSE:
        return pe_field_set_bool(config_fields, row, config, json_is_true(value), err);
    default:
        return pe_fail(err, PE_ERR_TYPE, row->name, "must be a number or a string, got %s",
                       json_is_null(value)    ? "null"
                       : json_is_array(value) ? "an array"
                                              : "an object");
    }
}

static int set_all(struct pe_arena *arena, struct config *config, json_t *root, const char *origin,
                   struct pe_error *err) {
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value) {
        const struct pe_field *row = pe_field_find(config_fields, config_n_fields, key);
        int code = row ? set_value(arena, config, row, value, err) : unknown_key(key, err);
        if (code) {
            return config_error_from(err, origin, key);
        }
    }
    return PE_OK;
}

/* Applies a parsed file and releases it; root NULL: it could not be parsed. */
static int apply(struct pe_arena *arena, struct config *config, json_t *root, const json_error_t *problem,
                 const char *origin, struct pe_error *err) {
    if (!root) {
        pe_fail(err, PE_ERR_SYNTAX, "", "line %d column %d: %.200s", problem->line, problem->column,
                problem->text);
        return config_error_from(err, origin, NULL);
    }
    int code;
    if (json_is_object(root)) {
        code = set_all(arena, config, root, origin, err);
    } else {
        pe_fail(err, PE_ERR_TYPE, "", "must be one object of options, got an array");
        code = config_error_from(err, origin, NULL);
    }
    json_decref(root);
    return code;
}

/* What a step of jansson_guard needs. */
struct reading {
    struct pe_arena *arena;
    struct config *config;
    const char *origin;
    struct pe_error *err;
    const char *text; /* of this length, or */
    size_t length;
    FILE *file;
    bool applied; /* false: no memory, or the file cannot be read */
    int number;   /* errno of the file */
};

static void read_text(void *context) {
    struct reading *r = context;
    json_error_t problem;
    json_t *root = json_loadb(r->text, r->length, JSON_REJECT_DUPLICATES, &problem);
    r->applied = true;
    apply(r->arena, r->config, root, &problem, r->origin, r->err);
}

static void read_file(void *context) {
    struct reading *r = context;
    json_error_t problem;
    errno = 0;
    json_t *root = json_loadf(r->file, JSON_REJECT_DUPLICATES, &problem);
    r->number = errno;
    if (ferror(r->file)) {
        json_decref(root);
        return;
    }
    r->applied = true;
    apply(r->arena, r->config, root, &problem, r->origin, r->err);
}

int config_parse_json(struct pe_arena *arena, struct config *config, const char *text, size_t length,
                      const char *origin, struct pe_error *err) {
    struct reading r = {
        .arena = arena, .config = config, .origin = origin, .err = err, .text = text, .length = length};
    jansson_guard(read_text, &r, NULL, err);
    return r.applied ? err->code : config_error_from(err, origin, NULL);
}

static int unreadable(const char *path, int number, struct pe_error *err) {
    char reason[128];
    pe_fail(err, PE_ERR_UNKNOWN_NAME, "", "cannot be read: %s",
            config_errno_text(number, reason, sizeof reason));
    return config_error_from(err, path, NULL);
}

int config_read_file(struct pe_arena *arena, struct config *config, const char *path, struct pe_error *err) {
    struct reading r = {.arena = arena, .config = config, .origin = path, .err = err};
    r.file = fopen(path, "rb");
    if (!r.file) {
        return unreadable(path, errno, err);
    }
    jansson_guard(read_file, &r, NULL, err);
    fclose(r.file);
    if (r.applied) {
        return err->code;
    }
    return err->code ? config_error_from(err, path, NULL) : unreadable(path, r.number, err);
}
