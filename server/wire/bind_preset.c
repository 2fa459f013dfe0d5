/* SPDX-License-Identifier: MIT
 *
 * Presets: names for encodings as projects use them. Those of config/presets.json are built in; the file that
 * the option presets_file names has the same form, and adds to them or replaces them.
 */
#include "config.h"
#include "config_jansson.h"
#include "wire/bind_value.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct presets {
    struct preset *v;
    size_t n;
};

static void preset_clear(struct preset *preset) {
    free((void *)(uintptr_t)preset->name);
    free((void *)(uintptr_t)preset->json);
    free((void *)(uintptr_t)preset->doc);
    free((void *)(uintptr_t)preset->source);
    free((void *)(uintptr_t)preset->type);
}

void presets_close(struct presets *presets) {
    if (!presets) {
        return;
    }
    for (size_t i = 0; i < presets->n; i++) {
        preset_clear(&presets->v[i]);
    }
    free(presets->v);
    free(presets);
}

size_t presets_count(const struct presets *presets) {
    return presets ? presets->n : 0;
}

const struct preset *presets_at(const struct presets *presets, size_t i) {
    return i < presets_count(presets) ? &presets->v[i] : NULL;
}

const struct preset *presets_find(const struct presets *presets, const char *name) {
    for (size_t i = 0; i < presets_count(presets); i++) {
        if (strcmp(presets->v[i].name, name) == 0) {
            return &presets->v[i];
        }
    }
    return NULL;
}

/* Would this encoding bind? Checked at start, so that a bad file stops the daemon and not a request. */
static int preset_check(const char *name, const json_t *encoding, struct pe_error *err) {
    struct service service = {0};
    struct pe_error inner = {0};
    struct pe_arena *arena = pe_arena_open((size_t)1 << 20, NULL, err);
    struct bind bind = {.arena = arena, .service = &service};
    struct pe_spec spec;
    if (arena && bind_spec_object(&bind, &spec, encoding, "", &inner)) {
        pe_fail(err, inner.code, inner.path, "preset \"%.60s\": %.200s", name, inner.text);
    }
    pe_arena_close(arena);
    return err->code;
}

struct writing {
    const json_t *encoding;
    char *text; /* NULL = no memory */
};

/* A step of jansson_outside. */
static void write_text(void *context) {
    struct writing *writing = context;
    size_t n = json_dumpb(writing->encoding, NULL, 0, JSON_COMPACT);
    char *text = n ? malloc(n + 1) : NULL;
    if (text && json_dumpb(writing->encoding, text, n, JSON_COMPACT) == n) {
        text[n] = '\0';
        writing->text = text;
    } else {
        free(text);
    }
}

/* The encoding, what it is, and perhaps whose it is. */
static int preset_add(struct presets *presets, const char *name, const json_t *entry, struct pe_error *err) {
    const json_t *encoding = json_object_get(entry, "encoding"), *doc = json_object_get(entry, "doc");
    const json_t *source = json_object_get(entry, "source");
    if (!json_is_object(encoding) || !json_is_string(doc) || (source && !json_is_string(source)) ||
        json_object_size(entry) != 2 + (source != NULL)) {
        return pe_fail(err, PE_ERR_TYPE, "presets_file",
                       "preset \"%.60s\" must be {\"doc\": text, \"source\": text, \"encoding\": object}, "
                       "where source may be left out",
                       name);
    }
    if (preset_check(name, encoding, err)) {
        return err->code;
    }
    struct preset *preset = (struct preset *)(uintptr_t)presets_find(presets, name);
    if (preset) {
        preset_clear(preset);
    } else {
        preset = &presets->v[presets->n++];
    }
    struct writing writing = {encoding, NULL};
    jansson_outside(write_text, &writing);
    *preset = (struct preset){.name = strdup(name),
                              .json = writing.text,
                              .doc = strdup(json_string_value(doc)),
                              .source = strdup(source ? json_string_value(source) : ""),
                              .type = strdup(json_string_value(json_object_get(encoding, "type")))};
    if (!preset->name || !preset->json || !preset->doc || !preset->source || !preset->type) {
        return pe_fail(err, PE_ERR_MEMORY, "presets_file", "no memory for presets");
    }
    return PE_OK;
}

static int presets_add(struct presets *presets, const json_t *root, struct pe_error *err) {
    const char *name;
    json_t *entry;
    if (!json_is_object(root)) {
        return pe_fail(err, PE_ERR_TYPE, "presets_file", "must hold an object of presets by name");
    }
    struct preset *v = realloc(presets->v, (presets->n + json_object_size(root)) * sizeof *v);
    if (!v) {
        return pe_fail(err, PE_ERR_MEMORY, "presets_file", "no memory for presets");
    }
    presets->v = v;
    json_object_foreach((json_t *)(uintptr_t)root, name, entry) {
        if (preset_add(presets, name, entry, err)) {
            return err->code;
        }
    }
    return PE_OK;
}

/* config/presets.json, built into the program (see the Makefile), so that it works without any file. The
 * linker names the bytes after the file. */
extern const char _binary_config_presets_json_start[], _binary_config_presets_json_end[];

static json_t *built_in_json(void) {
    const char *start = _binary_config_presets_json_start;
    return json_loadb(start, (size_t)(_binary_config_presets_json_end - start), JSON_REJECT_DUPLICATES, NULL);
}

struct reading {
    struct presets *presets;
    FILE *file; /* NULL = none */
    const char *path;
    struct pe_error *err;
};

/* A step of jansson_guard. */
static void read_built_in(void *context) {
    const struct reading *reading = context;
    json_t *root = built_in_json();
    presets_add(reading->presets, root, reading->err);
    json_decref(root);
}

static void read_file(void *context) {
    const struct reading *reading = context;
    json_error_t error;
    json_t *root = json_loadf(reading->file, JSON_REJECT_DUPLICATES, &error);
    if (root) {
        presets_add(reading->presets, root, reading->err);
    } else {
        pe_fail(reading->err, PE_ERR_SYNTAX, "presets_file", "%.100s: line %d: %.100s", reading->path,
                error.line, error.text);
    }
    json_decref(root);
}

static int presets_file(struct presets *presets, const char *path, struct pe_error *err) {
    struct reading reading = {presets, fopen(path, "rb"), path, err};
    if (!reading.file) {
        char reason[128];
        return pe_fail(err, PE_ERR_UNKNOWN_NAME, "presets_file", "%.100s: cannot be read: %s", path,
                       config_errno_text(errno, reason, sizeof reason));
    }
    jansson_guard(read_file, &reading, NULL, err);
    fclose(reading.file);
    return err->code;
}

int presets_open(struct presets **out, const char *file, struct pe_error *err) {
    struct presets *presets = calloc(1, sizeof *presets);
    struct reading built_in = {presets, NULL, "", err};
    *out = NULL;
    if (!presets) {
        return pe_fail(err, PE_ERR_MEMORY, "presets_file", "no memory for presets");
    }
    if (jansson_guard(read_built_in, &built_in, NULL, err) ||
        (file && file[0] && presets_file(presets, file, err))) {
        presets_close(presets);
        return err->code;
    }
    *out = presets;
    return PE_OK;
}
