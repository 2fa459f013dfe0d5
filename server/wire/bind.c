/* SPDX-License-Identifier: MIT
 *
 * JSON values are told apart here and nowhere else; what the rest of the program sees are structs. Members
 * are bound in the order of the document, so the first error is the first in the document. Errors inside a
 * lifted array waited in its entry until now for the same reason.
 */
#include "wire/bind.h"

#include "config_jansson.h"
#include "names.h"
#include "tables.h"
#include "wire/bind_value.h"
#include "wire/problem.h"
#include "wire/query.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define EMPTY_MAX 1048576

/* ---- encodings --------------------------------------------------------------------------------------- */

struct preset_reading {
    struct bind *bind;
    struct pe_spec *spec;
    const struct preset *preset;
    struct pe_error *err;
};

static void read_preset(void *context) {
    const struct preset_reading *reading = context;
    json_t *json = json_loads(reading->preset->json, JSON_REJECT_DUPLICATES, NULL);
    if (json) {
        bind_spec_object(reading->bind, reading->spec, json, "encoding", reading->err);
    } else { /* it was good when it was loaded */
        pe_fail(reading->err, PE_ERR_MEMORY, "", "no memory for reading the preset");
    }
    json_decref(json);
}

/* Name i of all that may stand for an encoding: types, presets, loaded tables. */
static const char *encoding_name(const void *of, size_t i) {
    const struct service *service = of;
    size_t presets = presets_count(service->presets);
    if (i < pe_encoding_count()) {
        return pe_encoding_at(i)->type;
    }
    i -= pe_encoding_count();
    return i < presets ? presets_at(service->presets, i)->name
                       : tables_at(service->tables, i - presets)->name;
}

static uint64_t *object_given(const struct pe_spec *spec, const struct pe_field *row) {
    return *(uint64_t **)(void *)((char *)spec->params + row->offset);
}

/* What a preset gave may be given once more. */
static int preset_note(struct bind *bind, const struct pe_spec *spec, struct pe_error *err) {
    const struct pe_encoding_info *info = spec->encoding;
    bind->preset_given = *(const uint64_t *)spec->params;
    bind->preset_members = pe_arena_array(bind->arena, info->n_fields, sizeof *bind->preset_members, err);
    for (size_t i = 0; i < info->n_fields && bind->preset_members; i++) {
        bool object = info->fields[i].kind == PE_KIND_OBJECT && object_given(spec, &info->fields[i]);
        bind->preset_members[i] = object ? *object_given(spec, &info->fields[i]) : 0;
    }
    return err->code;
}

/* A bit of those that a preset gave is no longer given by it, nor given at all: it is about to be. */
static void preset_yield(uint64_t *of_preset, uint64_t *given, uint64_t bit) {
    *given &= ~(*of_preset & bit);
    *of_preset &= ~bit;
}

/* The name of a preset, of a loaded table, or of a type with its defaults. */
static int encoding_named(struct bind *bind, struct pe_spec *spec, const char *name, struct pe_error *err) {
    const struct preset *preset = presets_find(bind->service->presets, name);
    if (preset) {
        struct preset_reading reading = {bind, spec, preset, err};
        int code = jansson_guard(read_preset, &reading, bind->arena, err);
        return code ? code : preset_note(bind, spec, err);
    }
    if (pe_encoding_find(name)) {
        return pe_spec_init(bind->arena, spec, name, err);
    }
    struct pe_error ignored = {0};
    if (tables_table(bind->service->tables, name, &ignored)) {
        if (pe_spec_init(bind->arena, spec, "learned", err)) {
            return err->code;
        }
        return pe_spec_set(bind->arena, spec, "table", name, err);
    }
    if (name[0] == '{') {
        return pe_fail(err, PE_ERR_TYPE, "",
                       "must be a name here; in a query the members of an object are parameters: "
                       "type=rope&layout=halves&scaling.factor=2");
    }
    char nearest[200];
    const struct service *service = bind->service;
    const struct names names = {pe_encoding_count() + presets_count(service->presets) +
                                    tables_count(service->tables),
                                encoding_name, service};
    return pe_fail(err, PE_ERR_UNKNOWN_NAME, "",
                   "\"%.60s\" is not a type, a preset (GET /v1/presets) or a loaded table; of these %zu "
                   "names the nearest "
                   "are: %s",
                   name, names.n, names_write(&names, name, nearest, sizeof nearest));
}

int bind_spec_value(struct bind *bind, struct pe_spec *spec, const json_t *value, const char *path,
                    struct pe_error *err) {
    if (json_is_string(value)) {
        if (encoding_named(bind, spec, json_string_value(value), err)) {
            return pe_error_at(err, "encoding");
        }
        return PE_OK;
    }
    if (json_is_object(value)) {
        return bind_spec_object(bind, spec, value, path, err);
    }
    return pe_fail(err, PE_ERR_TYPE, "encoding",
                   "must be an object with a type, or the name of a preset, table or type, got %s",
                   bind_json_word(value));
}

/* ---- query ------------------------------------------------------------------------------------------- */

static const struct pe_field *target_find(const struct bind_target *target, const char *name) {
    return pe_field_find(target->fields, target->n, name);
}

/* The operation's `encoding` row and the spec behind it; NULL where it has none. */
static struct pe_spec *query_spec(const struct bind *bind, const struct pe_field **row) {
    *row = target_find(&bind->op, "encoding");
    return *row ? (struct pe_spec *)(void *)((char *)bind->op.base + (*row)->offset) : NULL;
}

/* Here an object is given by its members, or named by one of its switches; who gives it whole is told so. */
static int query_object(struct bind *bind, const struct bind_target *target, const struct pe_field *row,
                        const char *value, struct pe_error *err) {
    const struct pe_field *word = pe_field_find(row->fields, row->n_fields, value);
    if (word && word->kind == PE_KIND_BOOL) {
        return pe_field_parse(bind->arena, target->fields, row, target->base, value, err);
    }
    char words[480];
    return pe_fail(err, PE_ERR_TYPE, row->name,
                   "must be %s (in a query each by itself, as %s.%s=), got \"%.60s\"",
                   pe_field_words(row, words, sizeof words), row->name, row->fields[0].name, value);
}

/* The row's value; numbers of tensors are float32 unless float64 is asked for, as in a JSON body. */
static int query_value(struct bind *bind, const struct bind_target *target, const struct pe_field *row,
                       const char *value, struct pe_error *err) {
    if (row->kind == PE_KIND_OBJECT) {
        return query_object(bind, target, row, value, err);
    }
    bool tensor = row->kind == PE_KIND_TENSOR || (row->kind == PE_KIND_TABLE && value[0] == '[');
    if (!tensor) {
        return pe_field_parse(bind->arena, target->fields, row, target->base, value, err);
    }
    enum pe_dtype dtype = bind_asked_dtype(bind) == PE_DTYPE_F64 ? PE_DTYPE_F64 : PE_DTYPE_F32;
    if (!(row->flags & PE_FIELD_NUMBERS)) {
        bind_note_dtype(bind, dtype);
    }
    return pe_field_parse_tensor(bind->arena, target->fields, row, target->base, value, dtype, err);
}

/* Before the others: `dtype`, which decides how tensors are read. */
static int query_dtype(struct bind *bind, const struct query_pairs *query, struct pe_error *err) {
    const struct pe_field *row = &bind->common.fields[0];
    for (size_t i = 0; i < query->n; i++) {
        if (strcmp(query->v[i].name, row->name) == 0 &&
            query_value(bind, &bind->common, row, query->v[i].value, err)) {
            return err->code;
        }
    }
    return err->code;
}

/* First pass: `encoding` or `type`, on which the names of the other fields depend. */
static int query_encoding(struct bind *bind, const struct query_pairs *query, struct pe_error *err) {
    const struct pe_field *row;
    struct pe_spec *spec = query_spec(bind, &row);
    for (size_t i = 0; spec && i < query->n; i++) {
        const char *name = query->v[i].name, *value = query->v[i].value;
        bool type = strcmp(name, "type") == 0;
        if (!type && strcmp(name, "encoding") != 0) {
            continue;
        }
        if (pe_field_given(bind->op.fields, row, bind->op.base)) {
            return pe_fail(err, PE_ERR_CONFLICT, "encoding", "is given twice; give one of type and encoding");
        }
        struct pe_spec made = {0};
        if (type ? pe_spec_init(bind->arena, &made, value, err) : encoding_named(bind, &made, value, err)) {
            return pe_error_at(err, "encoding");
        }
        if (pe_field_set_encoding(bind->op.fields, row, bind->op.base, &made, err)) {
            return err->code;
        }
    }
    return err->code;
}

/* A parameter of the encoding; one that a preset set may be set once more. */
static int query_param(struct bind *bind, struct pe_spec *spec, const struct pe_field *param,
                       const char *value, struct pe_error *err) {
    preset_yield(&bind->preset_given, spec->params, (uint64_t)1 << (param - spec->encoding->fields));
    if (bind->preset_members) { /* of an object that is no longer the preset's */
        bind->preset_members[param - spec->encoding->fields] = 0;
    }
    const struct bind_target target = {spec->encoding->fields, spec->encoding->n_fields, spec->params};
    if (query_value(bind, &target, param, value, err)) {
        return pe_error_at(err, "encoding");
    }
    return PE_OK;
}

static int unknown_parameter(const struct bind *bind, const struct pe_spec *spec, const char *name,
                             struct pe_error *err) {
    char common[200], own[240], params[240] = "";
    pe_fields_names(bind->common.fields, bind->common.n, common, sizeof common);
    pe_fields_names(bind->op.fields, bind->op.n, own, sizeof own);
    if (spec && spec->encoding) {
        pe_fields_names(spec->encoding->fields, spec->encoding->n_fields, params, sizeof params);
    }
    const char *more = params[0] ? ", " : spec ? ", and those of the encoding, once its type is given" : "";
    return pe_fail(err, PE_ERR_UNKNOWN_FIELD, name[0] ? name : "query",
                   "unknown parameter; there are %s%s, %s%s%s", spec ? "type, " : "", own, common, more,
                   params);
}

/* The struct behind "mask.causal" or "positions.mask": that of an OBJECT row, or of a rule for positions.
 * Made when first named. */
static void *inner_struct(struct bind *bind, const struct bind_target *target, const struct pe_field *row,
                          struct bind_target *inner, struct pe_error *err) {
    if (row->kind == PE_KIND_POSITIONS) {
        *inner = (struct bind_target){pe_positions_fields, pe_positions_n_fields, NULL};
        for (size_t i = 0; i < bind->n_rules; i++) {
            if (bind->rules[i].row == row) {
                return inner->base = &bind->rules[i].rule;
            }
        }
        if (bind->n_rules == BIND_MAX_RULES) {
            return NULL;
        }
        struct bind_rule *rule = &bind->rules[bind->n_rules++];
        rule->row = row;
        pe_fields_init(inner->fields, inner->n, &rule->rule, sizeof rule->rule);
        return inner->base = &rule->rule;
    }
    const void **member = (const void **)(void *)((char *)target->base + row->offset);
    *inner = (struct bind_target){row->fields, row->n_fields, (void *)(uintptr_t)*member};
    if (inner->base) {
        return inner->base;
    }
    inner->base = pe_arena_array(bind->arena, 1, row->object_size, err);
    if (!inner->base) {
        return NULL;
    }
    pe_fields_init(row->fields, row->n_fields, inner->base, row->object_size);
    return pe_field_set_object(target->fields, row, target->base, inner->base, err) ? NULL : inner->base;
}

/* The row before the dot of "mask.causal", where it has members; *rest is what follows the dot. */
static const struct pe_field *dotted_row(const struct bind_target *target, const char *name,
                                         const char **rest) {
    size_t length = strcspn(name, ".");
    if (!name[length]) {
        return NULL;
    }
    *rest = name + length + 1;
    for (size_t i = 0; i < target->n; i++) {
        const struct pe_field *row = &target->fields[i];
        bool has_members = row->kind == PE_KIND_OBJECT || row->kind == PE_KIND_POSITIONS;
        if (has_members && strlen(row->name) == length && strncmp(row->name, name, length) == 0) {
            return row;
        }
    }
    return NULL;
}

/* The struct and the row of a dotted name. */
static const struct pe_field *dotted_member(struct bind *bind, const struct bind_target *target,
                                            const struct pe_field *row, const char *rest,
                                            struct bind_target *inner, struct pe_error *err) {
    char names[480];
    if (!inner_struct(bind, target, row, inner, err)) {
        return NULL;
    }
    const struct pe_field *member = target_find(inner, rest);
    if (!member) {
        pe_fail(err, PE_ERR_UNKNOWN_FIELD, rest, "unknown field; there are %s",
                pe_fields_names(inner->fields, inner->n, names, sizeof names));
        pe_error_at(err, row->name);
    }
    return member;
}

static int query_dotted(struct bind *bind, const struct bind_target *target, const struct pe_field *row,
                        const char *rest, const char *value, struct pe_error *err) {
    struct bind_target inner;
    const struct pe_field *member = dotted_member(bind, target, row, rest, &inner, err);
    if (member && query_value(bind, &inner, member, value, err)) {
        return pe_error_at(err, row->name);
    }
    return err->code;
}

static int finish_tensors(struct bind *bind, struct pe_error *err) {
    const struct pe_tensors tensors = {bind->tensors.n, bind->tensors.list};
    const struct pe_field *row = bind->tensors.row;
    bind->tensors.row = NULL;
    return row ? pe_field_set_tensors(bind->op.fields, row, bind->op.base, &tensors, err) : err->code;
}

int bind_finish(struct bind *bind, struct pe_error *err) {
    for (size_t i = 0; i < bind->n_rules; i++) {
        const struct pe_field *row = bind->rules[i].row;
        struct pe_positions positions;
        if (pe_positions_make(bind->arena, &positions, &bind->rules[i].rule, err)) {
            return pe_error_at(err, row->name);
        }
        if (pe_field_set_positions(bind->op.fields, row, bind->op.base, &positions, err)) {
            return err->code;
        }
    }
    bind->n_rules = 0;
    return finish_tensors(bind, err);
}

/* "scaling.factor": the row of an object of the encoding; NULL: it is none. */
static const struct pe_field *object_row(const struct pe_spec *spec, const char *name) {
    char first[48];
    size_t length = strcspn(name, ".");
    if (!spec || !spec->encoding || !name[length] || length >= sizeof first) {
        return NULL;
    }
    memcpy(first, name, length);
    first[length] = 0;
    const struct pe_field *row = pe_field_find(spec->encoding->fields, spec->encoding->n_fields, first);
    return row && row->kind == PE_KIND_OBJECT ? row : NULL;
}

/* A member of an object of the encoding; one that a preset set may be set once more. */
static int query_member(struct bind *bind, struct pe_spec *spec, const struct pe_field *row, const char *name,
                        const char *value, struct pe_error *err) {
    const struct pe_field *member = pe_field_find(row->fields, row->n_fields, strchr(name, '.') + 1);
    if (member && bind->preset_members && object_given(spec, row)) {
        preset_yield(&bind->preset_members[row - spec->encoding->fields], object_given(spec, row),
                     (uint64_t)1 << (member - row->fields));
    }
    return pe_spec_set(bind->arena, spec, name, value, err) ? pe_error_at(err, "encoding") : PE_OK;
}

/* The encoding's parameter of that name. */
static const struct pe_field *param_find(const struct pe_spec *spec, const char *name) {
    return spec && spec->encoding ? pe_field_find(spec->encoding->fields, spec->encoding->n_fields, name)
                                  : NULL;
}

static int query_one(struct bind *bind, const char *name, const char *value, struct pe_error *err) {
    const struct pe_field *encoding_row, *row;
    struct pe_spec *spec = query_spec(bind, &encoding_row);
    if (spec && (strcmp(name, "type") == 0 || strcmp(name, "encoding") == 0)) {
        return PE_OK; /* the first pass took it */
    }
    if ((row = target_find(&bind->common, name)) != NULL) {
        return row == bind->common.fields ? PE_OK : query_value(bind, &bind->common, row, value, err);
    }
    const struct pe_field *param = param_find(spec, name);
    row = target_find(&bind->op, name);
    if (row && (!param || strcmp(row->name, name) == 0)) { /* its names come first, its aliases last */
        return query_value(bind, &bind->op, row, value, err);
    }
    if (param) {
        return query_param(bind, spec, param, value, err);
    }
    const char *rest;
    if ((row = dotted_row(&bind->common, name, &rest)) != NULL) {
        return query_dotted(bind, &bind->common, row, rest, value, err);
    }
    if ((row = dotted_row(&bind->op, name, &rest)) != NULL) {
        return query_dotted(bind, &bind->op, row, rest, value, err);
    }
    if ((row = object_row(spec, name)) != NULL) {
        return query_member(bind, spec, row, name, value, err);
    }
    return unknown_parameter(bind, spec, name, err);
}

int bind_query(struct bind *bind, const char *query, struct pe_error *err) {
    struct query_pairs pairs;
    if (query_read(bind->arena, query, &pairs, err) || query_dtype(bind, &pairs, err) ||
        query_encoding(bind, &pairs, err)) {
        return err->code;
    }
    for (size_t i = 0; i < pairs.n; i++) {
        if (query_one(bind, pairs.v[i].name, pairs.v[i].value, err)) {
            return err->code;
        }
    }
    return err->code;
}

/* ---- tensors of a binary body ------------------------------------------------------------------------ */

/* The widest of the types posted: float64 over float32 over the 16-bit ones; two different 16-bit types meet
 * in float32. */
void bind_note_dtype(struct bind *bind, enum pe_dtype dtype) {
    enum pe_dtype now = bind->posted;
    if (now == PE_DTYPE_NONE || dtype == now) {
        bind->posted = dtype;
    } else if (now == PE_DTYPE_F64 || dtype == PE_DTYPE_F64) {
        bind->posted = PE_DTYPE_F64;
    } else {
        bind->posted = PE_DTYPE_F32;
    }
}

int bind_check_empty(const struct pe_tensor *tensor, struct pe_error *err) {
    size_t others[PE_MAX_RANK], n = 0, product;
    for (int i = 0; i < tensor->rank; i++) {
        if (tensor->dim[i]) {
            others[n++] = tensor->dim[i];
        }
    }
    char shape[200];
    if (n == (size_t)tensor->rank || (pe_size_product(others, n, &product) && product <= EMPTY_MAX)) {
        return PE_OK;
    }
    return pe_fail(err, PE_ERR_SHAPE, "", "has shape %s: beside a 0 the others may be %d together",
                   pe_tensor_shape_text(tensor, shape, sizeof shape), EMPTY_MAX);
}

static int set_positions(struct bind *bind, const struct pe_field *row, const struct pe_tensor *tensor,
                         struct pe_error *err) {
    struct pe_positions positions;
    if (pe_positions_tensor(bind->arena, &positions, tensor, bind_axes(tensor), err)) {
        return pe_error_at(err, row->name);
    }
    return pe_field_set_positions(bind->op.fields, row, bind->op.base, &positions, err);
}

static int set_inside(struct bind *bind, const struct pe_field *row, const char *rest,
                      const struct pe_tensor *tensor, struct pe_error *err) {
    struct bind_target inner;
    const struct pe_field *member = dotted_member(bind, &bind->op, row, rest, &inner, err);
    if (member && pe_field_set_tensor(inner.fields, member, inner.base, tensor, err)) {
        return pe_error_at(err, row->name);
    }
    return err->code;
}

/* The operation's row for tensors of any name; NULL where it has none. */
static const struct pe_field *tensors_row(const struct bind *bind) {
    for (size_t i = 0; i < bind->op.n; i++) {
        if (bind->op.fields[i].kind == PE_KIND_TENSORS) {
            return &bind->op.fields[i];
        }
    }
    return NULL;
}

/* One more of them, under its name without that of the row. */
static int add_tensor(struct bind *bind, const struct pe_field *row, const char *name,
                      const struct pe_tensor *tensor, struct pe_error *err) {
    struct bind_tensors *all = &bind->tensors;
    size_t length = strlen(row->name);
    bool prefixed = strncmp(name, row->name, length) == 0 && name[length] == '.';
    if (all->n == all->room) {
        size_t room = all->room ? 2 * all->room : 32;
        struct pe_named_tensor *list = pe_arena_array(bind->arena, room, sizeof *list, err);
        if (!list) {
            return err->code;
        }
        for (size_t i = 0; i < all->n; i++) {
            list[i] = all->list[i];
        }
        all->list = list;
        all->room = room;
    }
    all->row = row;
    all->list[all->n++] = (struct pe_named_tensor){prefixed ? name + length + 1 : name, *tensor};
    bind_note_dtype(bind, tensor->dtype);
    return PE_OK;
}

int bind_named_tensor(struct bind *bind, const char *name, const struct pe_tensor *tensor,
                      struct pe_error *err) {
    const struct pe_field *row = target_find(&bind->op, name), *encoding_row;
    struct pe_spec *spec = query_spec(bind, &encoding_row);
    struct pe_tensor *kept = pe_arena_array(bind->arena, 1, sizeof *kept, err);
    if (!kept) {
        return err->code;
    }
    if (bind_check_empty(tensor, err)) {
        return pe_error_at(err, name);
    }
    *kept = *tensor;
    if (row && row->kind == PE_KIND_POSITIONS) {
        return set_positions(bind, row, kept, err);
    }
    if (row) {
        if (!(row->flags & PE_FIELD_NUMBERS)) {
            bind_note_dtype(bind, tensor->dtype);
        }
        return pe_field_set_tensor(bind->op.fields, row, bind->op.base, kept, err);
    }
    const char *inner = strncmp(name, "encoding.", 9) == 0 ? name + 9 : name;
    const struct pe_field *param = param_find(spec, inner);
    if (param) {
        preset_yield(&bind->preset_given, spec->params, (uint64_t)1 << (param - spec->encoding->fields));
        if (pe_spec_set_tensor(spec, inner, kept, err)) {
            return pe_error_at(err, "encoding");
        }
        bind_note_dtype(bind, tensor->dtype);
        return PE_OK;
    }
    const char *rest;
    if ((row = dotted_row(&bind->op, name, &rest)) != NULL) {
        return set_inside(bind, row, rest, kept, err);
    }
    if ((row = tensors_row(bind)) != NULL) {
        return add_tensor(bind, row, name, kept, err);
    }
    char names[480];
    return pe_fail(err, PE_ERR_UNKNOWN_FIELD, name, "unknown tensor; the fields are %s",
                   pe_fields_names(bind->op.fields, bind->op.n, names, sizeof names));
}
