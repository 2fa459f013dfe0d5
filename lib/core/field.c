/* SPDX-License-Identifier: MIT
 *
 * Reading and writing structs through their field rows. All checks of a single value (kind, bounds, choices,
 * finiteness) live here, once, so that JSON, query strings, configuration and the C API give the same
 * messages. What concerns several fields together is checked by whoever owns the struct.
 */
#include "posenc_fields.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct pe_choice pe_dtype_choices[] = {
    {"float64", PE_DTYPE_F64, "IEEE double"},
    {"float32", PE_DTYPE_F32, "IEEE single"},
    {"float16", PE_DTYPE_F16, "IEEE half; binary formats only"},
    {"bfloat16", PE_DTYPE_BF16, "the upper half of a single; binary formats only, no npy"},
    {0},
};

/* Is the name one of the words of the row's alias? Most rows have none. */
static bool is_alias(const struct pe_field *row, const char *name) {
    size_t length = row->alias ? strlen(name) : 0;
    for (const char *word = row->alias; word && *word; word += strspn(word, " ")) {
        size_t n = strcspn(word, " ");
        if (n == length && strncmp(word, name, n) == 0) {
            return true;
        }
        word += n;
    }
    return false;
}

/* Names mostly differ in their first letter. */
static bool is_name(const struct pe_field *row, const char *name) {
    return row->name[0] == name[0] && strcmp(row->name, name) == 0;
}

const struct pe_field *pe_field_find(const struct pe_field *fields, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++) {
        if (is_name(&fields[i], name) || is_alias(&fields[i], name)) {
            return &fields[i];
        }
    }
    return NULL;
}

static void *member(void *base, const struct pe_field *row) {
    return (char *)base + row->offset;
}

static uint64_t row_bit(const struct pe_field *fields, const struct pe_field *row) {
    return (uint64_t)1 << (row - fields);
}

bool pe_field_given(const struct pe_field *fields, const struct pe_field *row, const void *base) {
    return (*(const uint64_t *)base & row_bit(fields, row)) != 0;
}

void pe_fields_init(const struct pe_field *fields, size_t n, void *base, size_t size) {
    struct pe_error err = {0}; /* half a KiB: not one for each row */
    memset(base, 0, size);
    for (size_t i = 0; i < n; i++) {
        if (fields[i].def) {
            (void)!pe_field_parse(NULL, fields, &fields[i], base, fields[i].def, &err);
            err.code = PE_OK; /* of one row alone */
        }
    }
    *(uint64_t *)base = 0; /* a default is not a given value */
}

/* Marks the row as given. */
static int give(const struct pe_field *fields, const struct pe_field *row, void *base, struct pe_error *err) {
    uint64_t *given = base;
    if (err->code) {
        return err->code;
    }
    if ((*given & row_bit(fields, row)) && row->alias) {
        return pe_fail(err, PE_ERR_CONFLICT, row->name, "is given twice; it is also named %s", row->alias);
    }
    if (*given & row_bit(fields, row)) {
        return pe_fail(err, PE_ERR_CONFLICT, row->name, "is given twice");
    }
    *given |= row_bit(fields, row);
    return PE_OK;
}

const char *pe_choice_name(const struct pe_choice *choices, int value) {
    for (; choices && choices->name; choices++) {
        if (choices->value == value) {
            return choices->name;
        }
    }
    return NULL;
}

/* Appends to a bounded text; what does not fit is cut. */
static size_t append(char *text, size_t size, size_t at, const char *comma, const char *word) {
    if (at >= size) {
        return at;
    }
    int n = snprintf(text + at, size - at, "%s%s", at ? comma : "", word);
    return n < 0 ? at : at + (size_t)n;
}

char *pe_choices_names(const struct pe_choice *choices, char *text, size_t size) {
    text[0] = '\0';
    for (size_t at = 0; choices->name; choices++) {
        at = append(text, size, at, ", ", choices->name);
    }
    return text;
}

char *pe_fields_names(const struct pe_field *fields, size_t n, char *text, size_t size) {
    text[0] = '\0';
    for (size_t i = 0, at = 0; i < n; i++) {
        at = append(text, size, at, ", ", fields[i].name);
    }
    if (n == 0) {
        append(text, size, 0, "", "none");
    }
    return text;
}

static const char *const kind_words[] = {
    [PE_KIND_BOOL] = "true or false",
    [PE_KIND_INT] = "a whole number",
    [PE_KIND_REAL] = "a number",
    [PE_KIND_TEXT] = "a string",
    [PE_KIND_CHOICE] = "a string",
    [PE_KIND_SCALE] = "a number or a string",
    [PE_KIND_INTS] = "a list of whole numbers",
    [PE_KIND_NAMES] = "a list of strings",
    [PE_KIND_TEXTS] = "a list of strings",
    [PE_KIND_TENSOR] = "an array of numbers",
    [PE_KIND_TENSORS] = "an object of arrays of numbers, in a JSON body, or tensors of a safetensors body",
    [PE_KIND_TABLE] = "the name of a table or an array of numbers",
    [PE_KIND_POSITIONS] = "a list of numbers, a range \"start:stop:step\", or an object",
    [PE_KIND_ENCODING] = "an object with a type, or the name of a preset, table or type",
    [PE_KIND_CONFIG] =
        "an object in a JSON body (a query takes the fields of the encoding that is echoed for it)",
    [PE_KIND_OBJECT] = "an object",
};

/* An object and the switches in it that may stand for it: see parse_object. */
static size_t object_words(const struct pe_field *row, char *text, size_t size) {
    size_t at = append(text, size, 0, "", "an object");
    for (size_t i = 0; i < row->n_fields; i++) {
        at = append(text, size, at, i ? ", " : " with ", row->fields[i].name);
    }
    for (size_t i = 0; i < row->n_fields; i++) {
        if (row->fields[i].kind == PE_KIND_BOOL) {
            at = append(text, size, at, ", or the word ", row->fields[i].name);
        }
    }
    return at;
}

char *pe_field_words(const struct pe_field *row, char *text, size_t size) {
    size_t at = 0;
    const char *of = row->kind == PE_KIND_CHOICE  ? "one of "
                     : row->kind == PE_KIND_SCALE ? "a number or "
                     : row->kind == PE_KIND_NAMES ? "a list of "
                                                  : NULL;
    text[0] = '\0';
    if (row->kind == PE_KIND_OBJECT) {
        at = object_words(row, text, size);
    } else if (row->choices && of) {
        at = append(text, size, at, "", of);
        pe_choices_names(row->choices, text + at, size - at);
    } else {
        append(text, size, at, "", kind_words[row->kind]);
    }
    return text;
}

#define WORDS_ROOM 240

static int wrong_kind(const struct pe_field *row, const char *got, struct pe_error *err) {
    char words[WORDS_ROOM];
    return pe_fail(err, PE_ERR_TYPE, row->name, "must be %s, got %s",
                   pe_field_words(row, words, sizeof words), got);
}

/* A number for a message: without the digits that only the conversion to binary made. */
static const char *shown(double value, char text[40]) {
    snprintf(text, 40, "%.15g", value);
    if (strtod(text, NULL) != value) {
        snprintf(text, 40, "%.17g", value);
    }
    return text;
}

static int check_bounds(const struct pe_field *row, double value, struct pe_error *err) {
    if (row->min == 0 && row->max == 0) {
        return PE_OK;
    }
    bool open = (row->flags & PE_FIELD_OPEN_MIN) != 0;
    if (value > row->max || value < row->min || (open && value == row->min)) {
        char min[40], max[40], got[40];
        return pe_fail(err, PE_ERR_RANGE, row->name, "must be %s %s and at most %s, got %s",
                       open ? "above" : "at least", shown(row->min, min), shown(row->max, max),
                       shown(value, got));
    }
    return PE_OK;
}

static int set_choice(const struct pe_field *row, int *out, const char *name, struct pe_error *err) {
    for (const struct pe_choice *c = row->choices; c && c->name; c++) {
        if (strcmp(c->name, name) == 0) {
            *out = c->value;
            return PE_OK;
        }
    }
    char words[WORDS_ROOM];
    return pe_fail(err, PE_ERR_CHOICE, row->name, "must be %s, got \"%.60s\"",
                   pe_field_words(row, words, sizeof words), name);
}

int pe_field_set_bool(const struct pe_field *fields, const struct pe_field *row, void *base, bool value,
                      struct pe_error *err) {
    if (row->kind != PE_KIND_BOOL) {
        return wrong_kind(row, value ? "true" : "false", err);
    }
    if (give(fields, row, base, err)) {
        return err->code;
    }
    *(bool *)member(base, row) = value;
    return PE_OK;
}

int pe_field_set_int(const struct pe_field *fields, const struct pe_field *row, void *base, int64_t value,
                     struct pe_error *err) {
    if (row->kind != PE_KIND_INT) {
        double real = (double)value;
        if (fabs(real) == PE_POSITION_MAX && (int64_t)real != value) {
            return pe_fail(err, PE_ERR_RANGE, row->name, "must be at most 2^53 from zero, got %lld",
                           (long long)value);
        }
        return pe_field_set_real(fields, row, base, real, err);
    }
    if (row->min != 0 || row->max != 0) {
        /* Compared as integers: 2^53 + 1 as a double would be 2^53. */
        if (value < (int64_t)row->min || value > (int64_t)row->max) {
            return pe_fail(err, PE_ERR_RANGE, row->name, "must be at least %.17g and at most %.17g, got %lld",
                           row->min, row->max, (long long)value);
        }
    }
    if (give(fields, row, base, err)) {
        return err->code;
    }
    *(int64_t *)member(base, row) = value;
    return PE_OK;
}

static int set_whole(const struct pe_field *fields, const struct pe_field *row, void *base, double value,
                     struct pe_error *err) {
    if (check_bounds(row, value, err)) {
        return err->code;
    }
    if (value != floor(value) || fabs(value) > PE_POSITION_MAX) {
        return pe_fail(err, PE_ERR_TYPE, row->name, "must be a whole number, got %.17g", value);
    }
    return pe_field_set_int(fields, row, base, (int64_t)value, err);
}

/* Apart from the setter: making the text takes longer than setting. */
static int no_number(const struct pe_field *row, double value, struct pe_error *err) {
    if (row->kind == PE_KIND_TENSOR || row->kind == PE_KIND_TABLE || row->kind == PE_KIND_POSITIONS) {
        return pe_fail(err, PE_ERR_TYPE, row->name, "must be %s, got the number %.17g", kind_words[row->kind],
                       value);
    }
    char got[40];
    snprintf(got, sizeof got, "%.17g", value);
    return wrong_kind(row, got, err);
}

int pe_field_set_real(const struct pe_field *fields, const struct pe_field *row, void *base, double value,
                      struct pe_error *err) {
    if (row->kind != PE_KIND_REAL && row->kind != PE_KIND_SCALE && row->kind != PE_KIND_INT) {
        return no_number(row, value, err);
    }
    if (!isfinite(value)) {
        return pe_fail(err, PE_ERR_NONFINITE, row->name, "must be finite, got %.17g", value);
    }
    if (row->kind == PE_KIND_INT) {
        return set_whole(fields, row, base, value, err);
    }
    if (check_bounds(row, value, err) || give(fields, row, base, err)) {
        return err->code;
    }
    if (row->kind == PE_KIND_SCALE) {
        *(struct pe_scale *)member(base, row) = (struct pe_scale){.number = value};
    } else {
        *(double *)member(base, row) = value;
    }
    return PE_OK;
}

int pe_field_set_text(const struct pe_field *fields, const struct pe_field *row, void *base, const char *text,
                      struct pe_error *err) {
    struct pe_scale scale = {0};
    int choice = 0;
    switch (row->kind) {
    case PE_KIND_CHOICE:
        if (set_choice(row, &choice, text, err) || give(fields, row, base, err)) {
            return err->code;
        }
        *(int *)member(base, row) = choice;
        return PE_OK;
    case PE_KIND_SCALE:
        if (set_choice(row, &scale.choice, text, err) || give(fields, row, base, err)) {
            return err->code;
        }
        *(struct pe_scale *)member(base, row) = scale;
        return PE_OK;
    case PE_KIND_TEXT:
        if (give(fields, row, base, err)) {
            return err->code;
        }
        *(const char **)member(base, row) = text;
        return PE_OK;
    case PE_KIND_TABLE:
        if (give(fields, row, base, err)) {
            return err->code;
        }
        *(struct pe_table *)member(base, row) = (struct pe_table){.name = text};
        return PE_OK;
    default: {
        char got[80];
        snprintf(got, sizeof got, "the string \"%.60s\"", text);
        return wrong_kind(row, got, err);
    }
    }
}

int pe_field_set_ints(const struct pe_field *fields, const struct pe_field *row, void *base,
                      const struct pe_ints *value, struct pe_error *err) {
    if (row->kind != PE_KIND_INTS) {
        return wrong_kind(row, "a list", err);
    }
    for (size_t i = 0; i < value->n && !err->code; i++) {
        if (check_bounds(row, (double)value->v[i], err)) {
            snprintf(err->path, sizeof err->path, "%s[%zu]", row->name, i);
            return err->code;
        }
    }
    if (give(fields, row, base, err)) {
        return err->code;
    }
    *(struct pe_ints *)member(base, row) = *value;
    return PE_OK;
}

int pe_field_set_names(const struct pe_field *fields, const struct pe_field *row, void *base,
                       const struct pe_names *value, struct pe_error *err) {
    if (row->kind != PE_KIND_NAMES) {
        return wrong_kind(row, "a list", err);
    }
    int choice = 0;
    for (size_t i = 0; i < value->n && row->choices; i++) {
        if (set_choice(row, &choice, value->v[i], err)) {
            return err->code;
        }
    }
    if (give(fields, row, base, err)) {
        return err->code;
    }
    *(struct pe_names *)member(base, row) = *value;
    return PE_OK;
}

int pe_field_set_texts(const struct pe_field *fields, const struct pe_field *row, void *base,
                       const struct pe_texts *value, struct pe_error *err) {
    if (row->kind != PE_KIND_TEXTS) {
        return wrong_kind(row, "a list", err);
    }
    if (row->max > 0 && value->n > (size_t)row->max) {
        return pe_fail(err, PE_ERR_RANGE, row->name, "has %zu items, at most %zu are allowed", value->n,
                       (size_t)row->max);
    }
    if (give(fields, row, base, err)) {
        return err->code;
    }
    *(struct pe_texts *)member(base, row) = *value;
    return PE_OK;
}

int pe_field_set_tensor(const struct pe_field *fields, const struct pe_field *row, void *base,
                        const struct pe_tensor *value, struct pe_error *err) {
    if (row->kind != PE_KIND_TENSOR && row->kind != PE_KIND_TABLE) {
        return wrong_kind(row, "an array", err);
    }
    if (!value) {
        return wrong_kind(row, "none", err);
    }
    if (pe_tensor_check_finite(value, (row->flags & PE_FIELD_MINUS_INF) != 0, err)) {
        return pe_error_at(err, row->name);
    }
    if (give(fields, row, base, err)) {
        return err->code;
    }
    if (row->kind == PE_KIND_TABLE) {
        *(struct pe_table *)member(base, row) = (struct pe_table){.tensor = value};
    } else {
        *(const struct pe_tensor **)member(base, row) = value;
    }
    return PE_OK;
}

char *pe_member_path(const char *name, char *text, size_t size) {
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    bool plain = name[0] && name[strspn(name, word)] == '\0';
    snprintf(text, size, plain ? "%s" : "[\"%s\"]", name);
    return text;
}

static int member_check(const struct pe_field *row, const struct pe_tensors *all, size_t i,
                        struct pe_error *err) {
    char path[sizeof err->path];
    for (size_t before = 0; before < i; before++) {
        if (strcmp(all->v[before].name, all->v[i].name) == 0) {
            pe_fail(err, PE_ERR_CONFLICT, "", "is given twice");
        }
    }
    if (err->code || pe_tensor_check_finite(&all->v[i].tensor, false, err)) {
        pe_error_at(err, pe_member_path(all->v[i].name, path, sizeof path));
        pe_error_at(err, row->name);
    }
    return err->code;
}

int pe_field_set_tensors(const struct pe_field *fields, const struct pe_field *row, void *base,
                         const struct pe_tensors *value, struct pe_error *err) {
    if (row->kind != PE_KIND_TENSORS) {
        return wrong_kind(row, "named arrays", err);
    }
    if (row->max > 0 && value->n > (size_t)row->max) {
        return pe_fail(err, PE_ERR_RANGE, row->name, "has %zu tensors, at most %zu are allowed", value->n,
                       (size_t)row->max);
    }
    for (size_t i = 0; i < value->n; i++) {
        if (member_check(row, value, i, err)) {
            return err->code;
        }
    }
    if (give(fields, row, base, err)) {
        return err->code;
    }
    *(struct pe_tensors *)member(base, row) = *value;
    return PE_OK;
}

int pe_field_set_positions(const struct pe_field *fields, const struct pe_field *row, void *base,
                           const struct pe_positions *value, struct pe_error *err) {
    if (row->kind != PE_KIND_POSITIONS) {
        return wrong_kind(row, "positions", err);
    }
    if (give(fields, row, base, err)) {
        return err->code;
    }
    *(struct pe_positions *)member(base, row) = *value;
    return PE_OK;
}

int pe_field_set_encoding(const struct pe_field *fields, const struct pe_field *row, void *base,
                          const struct pe_spec *value, struct pe_error *err) {
    if (row->kind != PE_KIND_ENCODING) {
        return wrong_kind(row, "an encoding", err);
    }
    if (give(fields, row, base, err)) {
        return err->code;
    }
    *(struct pe_spec *)member(base, row) = *value;
    return PE_OK;
}

int pe_field_set_config(const struct pe_field *fields, const struct pe_field *row, void *base,
                        const struct pe_config *value, struct pe_error *err) {
    if (row->kind != PE_KIND_CONFIG) {
        return wrong_kind(row, "an object", err);
    }
    if (give(fields, row, base, err)) {
        return err->code;
    }
    *(struct pe_config *)member(base, row) = *value;
    return PE_OK;
}

int pe_field_set_object(const struct pe_field *fields, const struct pe_field *row, void *base,
                        const void *value, struct pe_error *err) {
    if (row->kind != PE_KIND_OBJECT) {
        return wrong_kind(row, "an object", err);
    }
    if (give(fields, row, base, err)) {
        return err->code;
    }
    *(const void **)member(base, row) = value;
    return PE_OK;
}

static const void *const *object_of(const struct pe_field *row, const void *base) {
    return (const void *const *)(const void *)((const char *)base + row->offset);
}

void *pe_field_open_object(struct pe_arena *arena, const struct pe_field *fields, const struct pe_field *row,
                           void *base, struct pe_error *err) {
    const void *there = *object_of(row, base);
    if (there) {
        return (void *)(uintptr_t)there;
    }
    void *object = pe_arena_array(arena, 1, row->object_size, err);
    if (!object) {
        return NULL;
    }
    pe_fields_init(row->fields, row->n_fields, object, row->object_size);
    return pe_field_set_object(fields, row, base, object, err) ? NULL : object;
}

/* Kinds that say little of what the field is: "a whole number" of what? */
static bool needs_doc(const struct pe_field *row) {
    return row->doc && row->doc[0] &&
           (row->kind == PE_KIND_INT || row->kind == PE_KIND_REAL || row->kind == PE_KIND_BOOL ||
            row->kind == PE_KIND_TENSOR);
}

static int missing(const struct pe_field *row, struct pe_error *err) {
    char words[WORDS_ROOM];
    pe_field_words(row, words, sizeof words);
    if (!needs_doc(row)) {
        return pe_fail(err, PE_ERR_MISSING, row->name, "is required: %s", words);
    }
    size_t n = strlen(row->doc); /* a sentence, perhaps, which goes on with ours */
    bool word = n > 1 && row->doc[1] >= 'a' && row->doc[1] <= 'z';
    return pe_fail(err, PE_ERR_MISSING, row->name, "is required: %s, %c%.*s", words,
                   word ? tolower((unsigned char)row->doc[0]) : row->doc[0],
                   (int)(n - 1 - (row->doc[n - 1] == '.')), row->doc + 1);
}

int pe_fields_check(const struct pe_field *fields, size_t n, const void *base, struct pe_error *err) {
    for (size_t i = 0; i < n; i++) {
        const struct pe_field *row = &fields[i];
        if ((row->flags & PE_FIELD_REQUIRED) && !pe_field_given(fields, row, base)) {
            return missing(row, err);
        }
        const void *object = row->kind == PE_KIND_OBJECT ? *object_of(row, base) : NULL;
        if (object && pe_fields_check(row->fields, row->n_fields, object, err)) {
            return pe_error_at(err, row->name);
        }
    }
    return PE_OK;
}
