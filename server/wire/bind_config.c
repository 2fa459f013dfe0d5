/* SPDX-License-Identifier: MIT
 *
 * Somebody else's JSON object as a flat list: "rope_scaling.factor" and its value. A model's configuration
 * has a hundred keys of which a handful matter; which they are is known to whoever reads the list.
 */
#include "wire/bind_value.h"

#include <stdio.h>
#include <string.h>

#define MAX_DEPTH 8

struct flat {
    struct pe_arena *arena;
    struct pe_config config;
    struct pe_error *err;
};

static size_t count_leaves(const json_t *value, int depth) {
    const char *key;
    json_t *inner;
    size_t n = 0;
    if (!json_is_object(value) || depth == MAX_DEPTH || json_object_size(value) == 0) {
        return 1;
    }
    json_object_foreach((json_t *)(uintptr_t)value, key, inner) {
        n += count_leaves(inner, depth + 1);
    }
    return n;
}

struct pe_tensor *bind_numbers(struct pe_arena *arena, const json_t *list, struct pe_error *err) {
    bool one = json_is_number(list);
    size_t n = one ? 1 : json_array_size(list);
    for (size_t i = 0; i < n && !one; i++) {
        if (!json_is_number(json_array_get(list, i))) {
            return NULL;
        }
    }
    struct pe_tensor *tensor = pe_arena_array(arena, 1, sizeof *tensor, err);
    if (!tensor || pe_tensor_alloc(arena, tensor, PE_DTYPE_F64, 1, &n, err)) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        ((double *)tensor->data)[i] = json_number_value(one ? list : json_array_get(list, i));
    }
    return tensor;
}

/* Anything but a list of numbers stays PE_CONFIG_OTHER. */
static void take_list(struct flat *flat, struct pe_config_item *item, const json_t *list) {
    const struct pe_tensor *tensor = bind_numbers(flat->arena, list, flat->err);
    if (tensor) {
        item->kind = PE_CONFIG_NUMBERS;
        item->list = tensor;
    }
}

static void take_leaf(struct flat *flat, const char *path, const json_t *value) {
    struct pe_config_item *item = &flat->config.items[flat->config.n++];
    *item = (struct pe_config_item){.kind = PE_CONFIG_OTHER};
    item->key = path;
    if (json_is_object(value) && json_object_size(value) == 0) {
        item->kind = PE_CONFIG_EMPTY;
    } else if (json_is_null(value)) {
        item->kind = PE_CONFIG_NULL;
    } else if (json_is_boolean(value)) {
        item->kind = PE_CONFIG_BOOL;
        item->flag = json_is_true(value);
    } else if (json_is_number(value)) {
        item->kind = PE_CONFIG_NUMBER;
        item->number = json_number_value(value);
    } else if (json_is_string(value)) {
        item->kind = PE_CONFIG_TEXT;
        item->text =
            pe_arena_text(flat->arena, json_string_value(value), json_string_length(value), flat->err);
    } else if (json_is_array(value)) {
        take_list(flat, item, value);
    }
}

/* Would it be taken for a path, or for none? Then it stands in quotes, and no member is found by it. */
static bool is_misleading(const char *key) {
    return !key[0] || strchr(key, '.') || strchr(key, '"');
}

/* The path of a member, as long as it may be: a name that is cut may be another's. */
static const char *path_of(struct flat *flat, const char *path, const char *key) {
    const char *quote = is_misleading(key) ? "\"" : "";
    size_t size = strlen(path) + strlen(key) + 4;
    char *longer = pe_arena_alloc(flat->arena, size, flat->err);
    if (longer) {
        snprintf(longer, size, "%s%s%s%s%s", path, path[0] ? "." : "", quote, key, quote);
    }
    return longer;
}

static void take(struct flat *flat, const char *path, const json_t *value, int depth) {
    const char *key;
    json_t *inner;
    if (!json_is_object(value) || depth == MAX_DEPTH || json_object_size(value) == 0) {
        take_leaf(flat, path, value);
        return;
    }
    json_object_foreach((json_t *)(uintptr_t)value, key, inner) {
        const char *longer = path_of(flat, path, key);
        if (!longer) {
            return;
        }
        take(flat, longer, inner, depth + 1);
    }
}

int bind_config(struct bind *bind, const struct bind_target *target, const struct pe_field *row,
                const json_t *value, struct pe_error *err) {
    struct flat flat = {.arena = bind->arena, .err = err};
    if (!json_is_object(value) || json_object_size(value) == 0) {
        return pe_fail(err, PE_ERR_TYPE, row->name, "must be an object with keys, got %s",
                       json_is_object(value) ? "an empty one" : bind_json_word(value));
    }
    flat.config.items = pe_arena_array(bind->arena, count_leaves(value, 0), sizeof *flat.config.items, err);
    if (!flat.config.items) {
        return err->code;
    }
    take(&flat, "", value, 0);
    return err->code ? pe_error_at(err, row->name)
                     : pe_field_set_config(target->fields, row, target->base, &flat.config, err);
}
