/* SPDX-License-Identifier: MIT
 *
 * One small function per kind of row. An array of numbers of a body is never here: lift took it out and left
 * null, and the only way to find it is by its path in the lift's own table.
 */
#include "wire/bind_value.h"

#include "wire/problem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *bind_json_word(const json_t *value) {
    static const char *const words[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list",  [JSON_STRING] = "a string",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null",
    };
    return words[json_typeof(value)];
}

static int wrong(const struct pe_field *row, const char *wanted, const json_t *got, struct pe_error *err) {
    return pe_fail(err, PE_ERR_TYPE, row->name, "must be %s, got %s", wanted, bind_json_word(got));
}

/* The same for the whole value of a field, which could be left out. */
static int wrong_value(const struct pe_field *row, const char *wanted, const json_t *got,
                       struct pe_error *err) {
    if (!json_is_null(got) || (row->flags & PE_FIELD_REQUIRED)) {
        return wrong(row, wanted, got, err);
    }
    return pe_fail(err, PE_ERR_TYPE, row->name,
                   "must be %s, got null, which is not allowed: leave the field out for its default", wanted);
}

static char *path_join(char *out, size_t size, const char *path, const char *key) {
    snprintf(out, size, "%s", path);
    if (!lift_path_add(out, size, key)) {
        out[0] = '\0';
    }
    return out;
}

/* ---- tensors ----------------------------------------------------------------------------------------- */

/* Lifted numbers as float32, each rounded once from its text, in the memory they have. What may be too large for a
 * float is looked for, and named, where tensors are converted. */
static int lifted_to_f32(struct bind *bind, struct pe_tensor *tensor, struct lift_array *array,
                         struct pe_error *err) {
    if (!lift_array_is_large(array)) {
        pe_arena_discharge(bind->arena, lift_array_bytes(array) - array->n * sizeof(float));
        tensor->data = lift_array_singles(array);
        tensor->dtype = PE_DTYPE_F32;
        return PE_OK;
    }
    struct pe_tensor doubles = *tensor;
    doubles.data = lift_array_doubles(array, err);
    for (size_t i = 0; !err->code && i < array->n_fixes; i++) {
        array->values[array->fixes[i].index] = array->fixes[i].single;
    }
    if (err->code || pe_tensor_convert(bind->arena, tensor, &doubles, PE_DTYPE_F32, err)) {
        return err->code;
    }
    pe_arena_discharge(bind->arena, lift_array_bytes(array));
    lift_array_drop(array);
    return PE_OK;
}

/* The index of element i as "[1][3]". */
static void index_path(const struct lift_array *array, size_t i, char *path, size_t size) {
    size_t inner = array->n;
    path[0] = '\0';
    for (int axis = 0; axis < array->rank; axis++) {
        inner /= array->dim[axis];
        size_t used = strlen(path);
        snprintf(path + used, size - used, "[%zu]", i / inner);
        i %= inner;
    }
}

/* The tensor that was lifted at this path, in the memory of the lift. NULL, without an error, when nothing was lifted there. Errors are relative to the
 * row's name. */
static struct pe_tensor *take_lifted(struct bind *bind, const struct pe_field *row, const char *path,
                                     enum pe_dtype dtype, struct pe_error *err) {
    struct lift_array *array = bind->lift ? lift_find(bind->lift, path) : NULL;
    if (!array) {
        return NULL;
    }
    if (array->error.code) { /* its path starts at the root of the body */
        size_t base = strlen(path) < strlen(array->error.path) ? strlen(path) : 0;
        pe_fail(err, array->error.code, array->error.path + base, "%s", array->error.text);
        return NULL;
    }
    char index[PE_MAX_RANK * 22];
    if (array->has_null && !(row->flags & PE_FIELD_MINUS_INF)) {
        index_path(array, array->first_null, index, sizeof index);
        pe_fail(err, PE_ERR_TYPE, index, "must be a number, got null");
        return NULL;
    }
    if (array->has_beyond && (row->kind == PE_KIND_POSITIONS || (row->flags & PE_FIELD_NUMBERS))) {
        index_path(array, array->first_beyond, index, sizeof index);
        pe_fail(err, PE_ERR_RANGE, index, "is beyond 2^53, allowed are -2^53 to 2^53");
        return NULL;
    }
    struct pe_tensor *tensor = pe_arena_array(bind->arena, 1, sizeof *tensor, err);
    if (!tensor) {
        return NULL;
    }
    *tensor = (struct pe_tensor){.dtype = PE_DTYPE_F64, .rank = array->rank};
    memcpy(tensor->dim, array->dim, sizeof tensor->dim);
    if (dtype == PE_DTYPE_F64) {
        tensor->data = lift_array_doubles(array, err);
    } else {
        lifted_to_f32(bind, tensor, array, err);
    }
    return err->code ? NULL : tensor;
}

/* "shape" of a tensor object against its data; flat data take the shape given. */
static int apply_shape(struct pe_tensor *tensor, const json_t *shape, struct pe_error *err) {
    struct pe_tensor given = {.dtype = tensor->dtype};
    size_t n = json_array_size(shape), count;
    if (!json_is_array(shape) || n > PE_MAX_RANK) {
        return pe_fail(err, PE_ERR_TYPE, "shape", "must be a list of at most %d whole numbers", PE_MAX_RANK);
    }
    for (size_t i = 0; i < n; i++) {
        double dim = json_number_value(json_array_get(shape, i));
        if (!json_is_number(json_array_get(shape, i)) || !(dim >= 0 && dim <= PE_POSITION_MAX) ||
            dim != floor(dim)) {
            return pe_fail(err, PE_ERR_TYPE, "shape", "must be a list of whole numbers");
        }
        given.dim[given.rank++] = (size_t)dim;
    }
    char wanted[200], got[200];
    bool same = pe_size_product(given.dim, n, &count) && count == pe_tensor_count(tensor);
    if (tensor->rank > 1) { /* nested lists end at an axis of size 0 */
        same = same && (given.rank == tensor->rank || (count == 0 && given.rank > tensor->rank)) &&
               memcmp(given.dim, tensor->dim, (size_t)tensor->rank * sizeof given.dim[0]) == 0;
    }
    if (!same) {
        return pe_fail(err, PE_ERR_SHAPE, "shape", "is %s but data have shape %s",
                       pe_tensor_shape_text(&given, wanted, sizeof wanted),
                       pe_tensor_shape_text(tensor, got, sizeof got));
    }
    tensor->rank = given.rank;
    memcpy(tensor->dim, given.dim, sizeof given.dim);
    return PE_OK;
}

static int object_dtype(const json_t *object, enum pe_dtype *dtype, struct pe_error *err) {
    const json_t *value = json_object_get(object, "dtype");
    if (!value) {
        return PE_OK;
    }
    enum pe_dtype named = json_is_string(value) ? pe_dtype_find(json_string_value(value)) : PE_DTYPE_NONE;
    if (named != PE_DTYPE_F64 && named != PE_DTYPE_F32) {
        return pe_fail(err, PE_ERR_DTYPE, "dtype",
                       "must be float64 or float32 in JSON; post npy or safetensors for others");
    }
    *dtype = named;
    return PE_OK;
}

/* {"shape": [..], "dtype": "..", "data": [..]} */
static struct pe_tensor *tensor_object(struct bind *bind, const struct pe_field *row, const json_t *object,
                                       const char *path, enum pe_dtype dtype, struct pe_error *err) {
    char inner[LIFT_MAX_PATH + 1];
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        if (strcmp(key, "shape") != 0 && strcmp(key, "dtype") != 0 && strcmp(key, "data") != 0) {
            pe_fail(err, PE_ERR_UNKNOWN_FIELD, key, "unknown field; a tensor has shape, dtype, data");
            return NULL;
        }
    }
    if (object_dtype(object, &dtype, err)) {
        return NULL;
    }
    struct pe_tensor *tensor =
        take_lifted(bind, row, path_join(inner, sizeof inner, path, "data"), dtype, err);
    if (!tensor) {
        if (err->code) {
            pe_error_at(err, "data");
        } else {
            pe_fail(err, PE_ERR_MISSING, "data", "must be an array of numbers");
        }
        return NULL;
    }
    const json_t *shape = json_object_get(object, "shape");
    return shape && apply_shape(tensor, shape, err) ? NULL : tensor;
}

/* The dtype that the request asks for, whose row comes first; a preset is no request. */
enum pe_dtype bind_asked_dtype(const struct bind *bind) {
    const char *base = bind->common.base;
    return base ? (enum pe_dtype) * (const int *)(const void *)(base + bind->common.fields[0].offset)
                : PE_DTYPE_NONE;
}

/* A tensor in any of its spellings; errors start with the row's name. */
static const struct pe_tensor *any_tensor(struct bind *bind, const struct pe_field *row, const json_t *value,
                                          const char *path, bool numbers, struct pe_error *err) {
    enum pe_dtype asked = bind_asked_dtype(bind);
    bool exact = numbers || (row->flags & PE_FIELD_NUMBERS);
    enum pe_dtype dtype = exact || asked == PE_DTYPE_F64 ? PE_DTYPE_F64 : PE_DTYPE_F32;
    struct pe_tensor *tensor = NULL;
    if (json_is_object(value)) {
        tensor = tensor_object(bind, row, value, path, dtype, err);
    } else if (json_is_null(value)) {
        tensor = take_lifted(bind, row, path, dtype, err);
    } else if (exact && (json_is_array(value) || json_is_number(value))) { /* of a preset; a list of one */
        tensor = bind_numbers(bind->arena, value, err);
    }
    if (tensor && bind_check_empty(tensor, err) == PE_OK && !exact) {
        bind_note_dtype(bind, tensor->dtype);
    }
    if (err->code) {
        pe_error_at(err, row->name);
    } else if (!tensor) {
        char words[480];
        wrong_value(row, pe_field_words(row, words, sizeof words), value, err);
    }
    return err->code ? NULL : tensor;
}

/* ---- other kinds ------------------------------------------------------------------------------------- */

static const char *keep(struct bind *bind, const json_t *string, struct pe_error *err) {
    return pe_arena_text(bind->arena, json_string_value(string), json_string_length(string), err);
}

/* [B, T, axes]; with fewer axes the encoding decides what the last one is (pe_positions_suit). */
int bind_axes(const struct pe_tensor *tensor) {
    return tensor->rank == 3 && tensor->dim[2] > 1 && tensor->dim[2] <= PE_MAX_AXES ? (int)tensor->dim[2] : 1;
}

static int bind_positions(struct bind *bind, const struct bind_target *target, const struct pe_field *row,
                          const json_t *value, const char *path, struct pe_error *err) {
    struct pe_positions positions;
    if (json_is_string(value)) {
        if (pe_positions_parse(bind->arena, &positions, json_string_value(value), err)) {
            return pe_error_at(err, row->name);
        }
    } else if (json_is_object(value) && !json_object_get(value, "data")) {
        struct pe_positions_rule rule;
        struct bind_target inner = {pe_positions_fields, pe_positions_n_fields, &rule};
        pe_fields_init(inner.fields, inner.n, &rule, sizeof rule);
        if (bind_members(bind, &inner, 1, value, path, NULL, err) ||
            pe_positions_make(bind->arena, &positions, &rule, err)) {
            return pe_error_at(err, row->name);
        }
    } else if (json_is_null(value) || json_is_object(value)) {
        const struct pe_tensor *tensor = any_tensor(bind, row, value, path, true, err);
        if (!tensor) {
            return err->code;
        }
        if (pe_positions_tensor(bind->arena, &positions, tensor, bind_axes(tensor), err)) {
            return pe_error_at(err, row->name);
        }
    } else {
        return wrong_value(row, "a list of numbers, a range \"start:stop:step\" or an object", value, err);
    }
    return pe_field_set_positions(target->fields, row, target->base, &positions, err);
}

static int bind_ints(const struct bind_target *target, const struct pe_field *row, const json_t *value,
                     struct pe_error *err) {
    struct pe_ints ints = {0};
    size_t n = json_is_array(value) ? json_array_size(value) : 1;
    if (n > PE_MAX_INTS) {
        return pe_fail(err, PE_ERR_RANGE, row->name, "has %zu items, at most %d are allowed", n, PE_MAX_INTS);
    }
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_is_array(value) ? json_array_get(value, i) : value;
        double number = json_number_value(item);
        if (!json_is_number(item) || number != floor(number) || fabs(number) > PE_POSITION_MAX) {
            return (item == value ? wrong_value : wrong)(row, "a list of whole numbers", item, err);
        }
        ints.v[ints.n++] = (int64_t)number;
    }
    return pe_field_set_ints(target->fields, row, target->base, &ints, err);
}

/* Item i of a list, or the only one. */
static const json_t *list_item(const json_t *value, size_t i) {
    return json_is_array(value) ? json_array_get(value, i) : value;
}

/* NULL: no string, or no memory. */
static const char *keep_item(struct bind *bind, const struct pe_field *row, const json_t *value, size_t i,
                             struct pe_error *err) {
    const json_t *item = list_item(value, i);
    if (json_is_string(item)) {
        return keep(bind, item, err);
    }
    (item == value ? wrong_value : wrong)(row, "a list of strings", item, err);
    return NULL;
}

static int bind_names(struct bind *bind, const struct bind_target *target, const struct pe_field *row,
                      const json_t *value, struct pe_error *err) {
    struct pe_names names = {0};
    size_t n = json_is_array(value) ? json_array_size(value) : 1;
    if (n > PE_MAX_NAMES) {
        return pe_fail(err, PE_ERR_RANGE, row->name, "has %zu items, at most %d are allowed", n,
                       PE_MAX_NAMES);
    }
    for (size_t i = 0; i < n; i++) {
        names.v[names.n++] = keep_item(bind, row, value, i, err);
        if (err->code) {
            return err->code;
        }
    }
    return pe_field_set_names(target->fields, row, target->base, &names, err);
}

static int bind_texts(struct bind *bind, const struct bind_target *target, const struct pe_field *row,
                      const json_t *value, struct pe_error *err) {
    size_t n = json_is_array(value) ? json_array_size(value) : 1;
    const char **texts = pe_arena_array(bind->arena, n, sizeof *texts, err);
    for (size_t i = 0; texts && i < n; i++) {
        texts[i] = keep_item(bind, row, value, i, err);
        if (err->code) {
            return err->code;
        }
    }
    const struct pe_texts list = {n, texts};
    return texts ? pe_field_set_texts(target->fields, row, target->base, &list, err) : err->code;
}

static int bind_object(struct bind *bind, const struct bind_target *target, const struct pe_field *row,
                       const json_t *value, const char *path, struct pe_error *err) {
    if (json_is_string(value)) {
        return pe_field_parse(bind->arena, target->fields, row, target->base, json_string_value(value), err);
    }
    if (!json_is_object(value)) {
        char words[480];
        return wrong_value(row, pe_field_words(row, words, sizeof words), value, err);
    }
    struct bind_target inner = {row->fields, row->n_fields,
                                pe_arena_array(bind->arena, 1, row->object_size, err)};
    if (!inner.base) {
        return err->code;
    }
    pe_fields_init(inner.fields, inner.n, inner.base, row->object_size);
    if (bind_members(bind, &inner, 1, value, path, NULL, err)) {
        return pe_error_at(err, row->name);
    }
    return pe_field_set_object(target->fields, row, target->base, inner.base, err);
}

static int bind_plain(struct bind *bind, const struct bind_target *target, const struct pe_field *row,
                      const json_t *value, struct pe_error *err) {
    if (json_is_boolean(value)) {
        return pe_field_set_bool(target->fields, row, target->base, json_is_true(value), err);
    }
    if (json_is_integer(value)) {
        return pe_field_set_int(target->fields, row, target->base, json_integer_value(value), err);
    }
    if (json_is_number(value)) {
        return pe_field_set_real(target->fields, row, target->base, json_number_value(value), err);
    }
    if (!json_is_string(value)) {
        char words[480];
        return wrong_value(row, pe_field_words(row, words, sizeof words), value, err);
    }
    const char *text = keep(bind, value, err);
    return text ? pe_field_set_text(target->fields, row, target->base, text, err) : err->code;
}

static int bind_tensor(struct bind *bind, const struct bind_target *target, const struct pe_field *row,
                       const json_t *value, const char *path, struct pe_error *err) {
    if (row->kind == PE_KIND_TABLE && json_is_string(value)) {
        return bind_plain(bind, target, row, value, err);
    }
    bool numbers = target->fields == pe_positions_fields;
    const struct pe_tensor *tensor = any_tensor(bind, row, value, path, numbers, err);
    return tensor ? pe_field_set_tensor(target->fields, row, target->base, tensor, err) : err->code;
}

/* {"h.0.ln_1.weight": [..], ...}: tensors whose names are not ours. */
static int bind_tensors(struct bind *bind, const struct bind_target *target, const struct pe_field *row,
                        const json_t *value, const char *path, struct pe_error *err) {
    char inner[LIFT_MAX_PATH + 1], label[sizeof err->path], words[480];
    const char *key;
    json_t *item;
    if (!json_is_object(value)) {
        return wrong_value(row, pe_field_words(row, words, sizeof words), value, err);
    }
    struct pe_named_tensor *list = pe_arena_array(bind->arena, json_object_size(value), sizeof *list, err);
    struct pe_tensors tensors = {0, list};
    json_object_foreach((json_t *)(uintptr_t)value, key, item) {
        struct pe_field one = {.name = pe_member_path(key, label, sizeof label), .kind = PE_KIND_TENSOR};
        const struct pe_tensor *tensor =
            list ? any_tensor(bind, &one, item, path_join(inner, sizeof inner, path, key), false, err) : NULL;
        if (!tensor) {
            return pe_error_at(err, row->name);
        }
        list[tensors.n].tensor = *tensor;
        list[tensors.n].name = pe_arena_text(bind->arena, key, strlen(key), err);
        if (!list[tensors.n++].name) {
            return err->code;
        }
    }
    return list ? pe_field_set_tensors(target->fields, row, target->base, &tensors, err) : err->code;
}

static int bind_encoding(struct bind *bind, const struct bind_target *target, const struct pe_field *row,
                         const json_t *value, const char *path, struct pe_error *err) {
    struct pe_spec spec = {0};
    char words[480];
    if (json_is_null(value)) {
        return wrong_value(row, pe_field_words(row, words, sizeof words), value, err);
    }
    if (bind_spec_value(bind, &spec, value, path, err)) {
        return err->code;
    }
    return pe_field_set_encoding(target->fields, row, target->base, &spec, err);
}

/* In a batch, a list of numbers is lifted where any operation's field of that name takes one: `mask` of
 * attention, which is an object, as well as that of positions. */
static int refuse_lifted(const struct pe_field *row, struct pe_error *err) {
    char words[480];
    return pe_fail(err, PE_ERR_TYPE, row->name, "must be %s, got a list",
                   pe_field_words(row, words, sizeof words));
}

static int bind_value(struct bind *bind, const struct bind_target *target, const struct pe_field *row,
                      const json_t *value, const char *path, struct pe_error *err) {
    bool takes_list =
        row->kind == PE_KIND_POSITIONS || row->kind == PE_KIND_TENSOR || row->kind == PE_KIND_TABLE;
    if (!takes_list && json_is_null(value) && bind->lift && lift_find(bind->lift, path)) {
        return refuse_lifted(row, err);
    }
    switch (row->kind) {
    case PE_KIND_POSITIONS:
        return bind_positions(bind, target, row, value, path, err);
    case PE_KIND_TENSOR:
    case PE_KIND_TABLE:
        return bind_tensor(bind, target, row, value, path, err);
    case PE_KIND_TENSORS:
        return bind_tensors(bind, target, row, value, path, err);
    case PE_KIND_INTS:
        return bind_ints(target, row, value, err);
    case PE_KIND_NAMES:
        return bind_names(bind, target, row, value, err);
    case PE_KIND_TEXTS:
        return bind_texts(bind, target, row, value, err);
    case PE_KIND_OBJECT:
        return bind_object(bind, target, row, value, path, err);
    case PE_KIND_ENCODING:
        return bind_encoding(bind, target, row, value, path, err);
    case PE_KIND_CONFIG:
        return bind_config(bind, target, row, value, err);
    default:
        return bind_plain(bind, target, row, value, err);
    }
}

/* ---- objects ----------------------------------------------------------------------------------------- */

int bind_unknown_member(const char *key, const char *names, struct pe_error *err) {
    char label[LIFT_MAX_PATH + 1];
    if (!path_join(label, sizeof label, "", key)[0]) {
        snprintf(label, sizeof label, "%.95s", key);
    }
    return pe_fail(err, PE_ERR_UNKNOWN_FIELD, label, "unknown field; there are %s", names);
}

static int unknown_of(const struct bind_target *targets, size_t n_targets, const char *key,
                      struct pe_error *err) {
    char names[680];
    size_t used = 0;
    for (size_t i = 0; i < n_targets && used + 2 < sizeof names; i++) {
        used += (size_t)snprintf(names + used, sizeof names - used, "%s", used ? ", " : "");
        pe_fields_names(targets[i].fields, targets[i].n, names + used, sizeof names - used);
        used += strlen(names + used);
    }
    return bind_unknown_member(key, names, err);
}

int bind_members(struct bind *bind, const struct bind_target *targets, size_t n_targets, const json_t *object,
                 const char *path, const char *skip, struct pe_error *err) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        const struct pe_field *row = NULL;
        const struct bind_target *target = targets;
        if (skip && strcmp(key, skip) == 0) {
            continue;
        }
        for (size_t i = 0; i < n_targets && !row; i++) {
            target = &targets[i];
            row = pe_field_find(target->fields, target->n, key);
        }
        char inner[LIFT_MAX_PATH + 1];
        if (!row) {
            return unknown_of(targets, n_targets, key, err);
        }
        if (bind_value(bind, target, row, value, path_join(inner, sizeof inner, path, key), err)) {
            return err->code;
        }
    }
    return PE_OK;
}

int bind_spec_object(struct bind *bind, struct pe_spec *spec, const json_t *object, const char *path,
                     struct pe_error *err) {
    const json_t *type = json_object_get(object, "type");
    if (!type) {
        return pe_fail(err, PE_ERR_MISSING, "encoding.type", "is required: the type of the encoding");
    }
    if (!json_is_string(type)) {
        return pe_fail(err, PE_ERR_TYPE, "encoding.type", "must be a string, got %s", bind_json_word(type));
    }
    if (pe_spec_init(bind->arena, spec, json_string_value(type), err)) {
        return pe_error_at(err, "encoding");
    }
    struct bind_target params = {spec->encoding->fields, spec->encoding->n_fields, spec->params};
    if (bind_members(bind, &params, 1, object, path, "type", err)) {
        return pe_error_at(err, "encoding");
    }
    return PE_OK;
}
