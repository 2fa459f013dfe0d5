/* SPDX-License-Identifier: MIT
 *
 * Whole JSON bodies: the text is parsed by jansson, strictly, and its root bound.
 */
#include "wire/bind_value.h"

#include "config_jansson.h"
#include "wire/problem.h"

#include <stdio.h>
#include <string.h>

/* Numbers are read as doubles: a whole number over 2^63 is then out of range, not unreadable. */
#define PARSE_FLAGS (JSON_REJECT_DUPLICATES | JSON_DECODE_ANY)

static json_t *json_parse(const char *text, size_t length, struct pe_error *err) {
    json_error_t error;
    if (length == 0) {
        pe_fail(err, PE_ERR_MISSING, "body", "is empty; an object is expected");
        return NULL;
    }
    json_t *root = json_loadb(text, length, PARSE_FLAGS, &error);
    if (!root &&
        json_error_code(&error) == json_error_numeric_overflow) { /* which field's, its row will tell */
        root = json_loadb(text, length, PARSE_FLAGS | JSON_DECODE_INT_AS_REAL, &error);
    }
    if (!root) {
        pe_fail(err, PE_ERR_SYNTAX, "body", "malformed JSON at line %d: %.120s", error.line, error.text);
    } else if (!json_is_object(root)) {
        pe_fail(err, PE_ERR_TYPE, "body", "must be an object, got %s", bind_json_word(root));
    }
    if (err->code) {
        json_decref(root);
        return NULL;
    }
    return root;
}

/* `dtype` decides how tensors before it in the document are read, so it is looked at first. */
static int peek_dtype(struct bind *bind, const json_t *object, struct pe_error *err) {
    const json_t *value = json_object_get(object, "dtype");
    enum pe_dtype dtype = json_is_string(value) ? pe_dtype_find(json_string_value(value)) : PE_DTYPE_NONE;
    if (dtype == PE_DTYPE_NONE) {
        return PE_OK; /* absent, or refused in its turn */
    }
    return pe_field_parse(bind->arena, bind->common.fields, &bind->common.fields[0], bind->common.base,
                          json_string_value(value), err);
}

/* The members of one request; `skip` is a member that is not the operation's. */
static int bind_request(struct bind *bind, const json_t *object, const char *path, const char *skip,
                        struct pe_error *err) {
    struct bind_target targets[2] = {bind->op, bind->common};
    if (peek_dtype(bind, object, err)) {
        return err->code;
    }
    /* Read once already: let the second reading pass. */
    if (json_is_string(json_object_get(object, "dtype"))) {
        *(uint64_t *)bind->common.base &= ~(uint64_t)1;
    }
    if (bind_members(bind, targets, 2, object, path, skip, err)) {
        return err->code;
    }
    return bind_finish(bind, err);
}

/* The rest of a spoiled array was skipped by its brackets alone, so its text must not pass, bound or not. */
static int refuse_spoiled(const struct lift *lift, struct pe_error *err) {
    const struct lift_array *spoiled = lift_first_error(lift);
    if (spoiled) {
        pe_fail(err, spoiled->error.code, spoiled->error.path, "%s", spoiled->error.text);
    }
    return err->code;
}

/* What a step of jansson_guard needs. */
struct reading {
    struct bind *bind;              /* one request */
    const struct bind_batch *batch; /* or many */
    const char *text;
    size_t length;
    struct pe_error *err;
};

static void read_request(void *context) {
    const struct reading *reading = context;
    json_t *root = json_parse(reading->text, reading->length, reading->err);
    if (root) {
        bind_request(reading->bind, root, "", NULL, reading->err);
        refuse_spoiled(reading->bind->lift, reading->err);
    }
    json_decref(root);
}

int bind_json(struct bind *bind, const char *text, size_t length, struct pe_error *err) {
    struct reading reading = {.bind = bind, .text = text, .length = length, .err = err};
    return jansson_guard(read_request, &reading, bind->arena, err);
}

/* The type of an encoding may follow later in the text: a tensor of any encoding will do. */
static bool encodings_watch(const char *const *keys, size_t depth) {
    for (size_t i = 0; i < pe_encoding_count(); i++) {
        const struct pe_encoding_info *info = pe_encoding_at(i);
        struct bind_target params = {info->fields, info->n_fields, NULL};
        if (bind_watches(&params, keys, depth)) {
            return true;
        }
    }
    return false;
}

bool bind_watches(void *context, const char *const *keys, size_t depth) {
    const struct bind_target *op = context;
    const struct pe_field *fields = op->fields;
    size_t n = op->n;
    for (size_t i = 0; i < depth; i++) {
        const struct pe_field *row = pe_field_find(fields, n, keys[i]);
        bool last = i + 1 == depth;
        if (!row) {
            return false;
        }
        switch (row->kind) {
        case PE_KIND_TENSOR:
        case PE_KIND_TABLE:
            return last || (i + 2 == depth && strcmp(keys[depth - 1], "data") == 0);
        case PE_KIND_TENSORS:
            return i + 2 == depth || (i + 3 == depth && strcmp(keys[depth - 1], "data") == 0);
        case PE_KIND_POSITIONS:
            if (last || (i + 2 == depth && strcmp(keys[depth - 1], "data") == 0)) {
                return true;
            }
            fields = pe_positions_fields;
            n = pe_positions_n_fields;
            break;
        case PE_KIND_OBJECT:
            fields = row->fields;
            n = row->n_fields;
            break;
        case PE_KIND_ENCODING:
            return !last && encodings_watch(keys + i + 1, depth - i - 1);
        default:
            return false;
        }
    }
    return false;
}

/* ---- batch ------------------------------------------------------------------------------------------- */

static int batch_entry(const struct bind_batch *batch, const json_t *entry, size_t i, struct pe_error *err) {
    char path[32];
    struct bind *bind;
    snprintf(path, sizeof path, "requests[%zu]", i);
    if (!json_is_object(entry)) {
        return pe_fail(err, PE_ERR_TYPE, "", "must be an object, got %s", bind_json_word(entry));
    }
    const json_t *op = json_object_get(entry, "op");
    if (!op) {
        return pe_fail(err, PE_ERR_MISSING, "op", "is required: the name of an operation");
    }
    if (!json_is_string(op)) {
        return pe_fail(err, PE_ERR_TYPE, "op", "must be a string, got %s", bind_json_word(op));
    }
    if (batch->begin(batch->context, i, json_string_value(op), &bind, err)) {
        return err->code;
    }
    return bind_request(bind, entry, path, "op", err);
}

static const json_t *batch_list(const json_t *root, size_t limit, struct pe_error *err) {
    const json_t *list = json_object_get(root, "requests");
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)root, key, value) {
        if (strcmp(key, "requests") != 0) {
            bind_unknown_member(key, "requests", err);
        }
    }
    if (!list) {
        pe_fail(err, PE_ERR_MISSING, "requests", "is required: a list of {\"op\": name, ...}");
    } else if (!json_is_array(list)) {
        pe_fail(err, PE_ERR_TYPE, "requests", "must be a list, got %s", bind_json_word(list));
    } else if (json_array_size(list) > limit) {
        pe_fail_limit(err, "requests", "batch_requests", limit, json_array_size(list),
                      "has %zu entries, at most %zu are allowed", json_array_size(list), limit);
    }
    return err->code ? NULL : list;
}

static void read_batch(void *context) {
    const struct reading *reading = context;
    const struct bind_batch *batch = reading->batch;
    json_t *root = json_parse(reading->text, reading->length, reading->err);
    const json_t *list = root ? batch_list(root, batch->limit, reading->err) : NULL;
    size_t n = json_array_size(list);
    if (list && batch->open(batch->context, n, reading->err)) {
        n = 0;
    }
    for (size_t i = 0; i < n && !pe_error_poll(reading->err); i++) {
        struct pe_error inner = {.stop = reading->err->stop};
        batch_entry(batch, json_array_get(list, i), i, &inner);
        batch->end(batch->context, i, &inner);
    }
    json_decref(root);
}

int bind_batch_json(const struct bind_batch *batch, const char *text, size_t length, struct pe_error *err) {
    struct reading reading = {.batch = batch, .text = text, .length = length, .err = err};
    return jansson_guard(read_batch, &reading, batch->arena, err);
}
