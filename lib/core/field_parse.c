/* SPDX-License-Identifier: MIT
 *
 * Field values from text: query strings, flags, environment variables, defaults. Numbers follow the JSON
 * grammar (no hex, no "inf", no leading plus), so a query and a JSON body accept the same spellings.
 */
#include "posenc_fields.h"

#include "core/number_array.h"

#include <stdio.h>
#include <string.h>

static int wrong_text(const struct pe_field *row, const char *wanted, const char *text,
                      struct pe_error *err) {
    return pe_fail(err, PE_ERR_TYPE, row->name, "must be %s, got \"%.60s\"", wanted, text);
}

/* 2^53 + 1 as a double is 2^53: another number, and nobody would be told. */
static int beyond(const struct pe_field *row, const char *text, struct pe_error *err) {
    return pe_fail(err, PE_ERR_RANGE, row->name, "must be at most 2^53 from zero, got %.40s", text);
}

static int parse_bool(const struct pe_field *fields, const struct pe_field *row, void *base, const char *text,
                      struct pe_error *err) {
    bool yes = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    if (!yes && strcmp(text, "false") != 0 && strcmp(text, "0") != 0) {
        return wrong_text(row, "true or false", text, err);
    }
    return pe_field_set_bool(fields, row, base, yes, err);
}

static int parse_int(const struct pe_field *fields, const struct pe_field *row, void *base, const char *text,
                     struct pe_error *err) {
    if ((row->flags & PE_FIELD_AUTO) && strcmp(text, "auto") == 0) {
        return pe_field_set_int(fields, row, base, 0, err);
    }
    struct pe_number number;
    if (pe_number_parse(text, strlen(text), &number) != PE_NUMBER_OK) {
        return wrong_text(row, "a whole number", text, err);
    }
    if (number.beyond) {
        return beyond(row, text, err);
    }
    return pe_field_set_real(fields, row, base, number.value, err);
}

static int parse_real(const struct pe_field *fields, const struct pe_field *row, void *base, const char *text,
                      struct pe_error *err) {
    struct pe_number number;
    enum pe_number_status result = pe_number_parse(text, strlen(text), &number);
    if (result == PE_NUMBER_OVERFLOW) {
        return pe_fail(err, PE_ERR_RANGE, row->name, "\"%.60s\" is too large for a double", text);
    }
    if (result != PE_NUMBER_OK) {
        if (row->kind == PE_KIND_SCALE) {
            return pe_field_set_text(fields, row, base, text, err);
        }
        return wrong_text(row, "a number", text, err);
    }
    if (number.beyond) {
        return beyond(row, text, err);
    }
    return pe_field_set_real(fields, row, base, number.value, err);
}

/* Calls with each comma-separated item of "a,b" or "[a,b]" in turn; false when there are too many. */
struct items {
    const char *next, *end;
};

static struct items items_of(const char *text) {
    size_t n = strlen(text);
    if (n >= 2 && text[0] == '[' && text[n - 1] == ']') {
        return (struct items){text + 1, text + n - 1};
    }
    return (struct items){text, text + n};
}

static bool items_next(struct items *items, const char **item, size_t *length) {
    if (!items->next || items->next > items->end || (items->next == items->end && items->next[0] == ']')) {
        return false;
    }
    const char *comma = memchr(items->next, ',', (size_t)(items->end - items->next));
    *item = items->next;
    *length = (size_t)((comma ? comma : items->end) - items->next);
    items->next = comma ? comma + 1 : NULL;
    return true;
}

static int parse_ints(const struct pe_field *fields, const struct pe_field *row, void *base, const char *text,
                      struct pe_error *err) {
    struct pe_ints list = {0};
    struct items items = items_of(text);
    const char *item;
    size_t length;
    while (items_next(&items, &item, &length)) {
        struct pe_number number;
        if (list.n == PE_MAX_INTS) {
            return pe_fail(err, PE_ERR_RANGE, row->name, "has more than %d items", PE_MAX_INTS);
        }
        if (pe_number_parse(item, length, &number) != PE_NUMBER_OK || number.beyond ||
            number.value < -PE_POSITION_MAX || number.value > PE_POSITION_MAX ||
            (double)(int64_t)number.value != number.value) {
            return wrong_text(row, "a list of whole numbers", text, err);
        }
        list.v[list.n++] = (int64_t)number.value;
    }
    return pe_field_set_ints(fields, row, base, &list, err);
}

/* Without the quotes that a JSON list has. Its escapes, and commas within quotes, are for a JSON body. */
static int unquote(const struct pe_field *row, const char **item, size_t *length, struct pe_error *err) {
    const char *text = *item;
    size_t n = *length;
    if (!n || text[0] != '"') {
        return PE_OK;
    }
    if (n < 2 || text[n - 1] != '"' || memchr(text, '\\', n)) {
        return pe_fail(err, PE_ERR_SYNTAX, row->name,
                       "has a quote that is open at a comma, or an escape, which only a JSON body may have");
    }
    *item = text + 1;
    *length = n - 2;
    return PE_OK;
}

/* An item that outlives the text: the choice that it names, which is static, else a copy. */
static const char *keep_name(struct pe_arena *arena, const struct pe_field *row, const char *item,
                             size_t length, struct pe_error *err) {
    for (const struct pe_choice *c = row->choices; c && c->name; c++) {
        if (strlen(c->name) == length && memcmp(c->name, item, length) == 0) {
            return c->name;
        }
    }
    return pe_arena_text(arena, item, length, err);
}

static int parse_names(struct pe_arena *arena, const struct pe_field *fields, const struct pe_field *row,
                       void *base, const char *text, struct pe_error *err) {
    struct pe_names list = {0};
    struct items items = items_of(text);
    const char *item;
    size_t length;
    while (items_next(&items, &item, &length)) {
        if (list.n == PE_MAX_NAMES) {
            return pe_fail(err, PE_ERR_RANGE, row->name, "has more than %d items", PE_MAX_NAMES);
        }
        if (unquote(row, &item, &length, err) ||
            !(list.v[list.n++] = keep_name(arena, row, item, length, err))) {
            return err->code;
        }
    }
    return pe_field_set_names(fields, row, base, &list, err);
}

static int parse_texts(struct pe_arena *arena, const struct pe_field *fields, const struct pe_field *row,
                       void *base, const char *text, struct pe_error *err) {
    size_t n = 0, length;
    const char *item;
    for (struct items items = items_of(text); items_next(&items, &item, &length);) {
        n++;
    }
    const char **texts = pe_arena_array(arena, n, sizeof *texts, err);
    struct items items = items_of(text);
    for (size_t i = 0; texts && items_next(&items, &item, &length); i++) {
        if (unquote(row, &item, &length, err) || !(texts[i] = pe_arena_text(arena, item, length, err))) {
            return err->code;
        }
    }
    const struct pe_texts list = {n, texts};
    return texts ? pe_field_set_texts(fields, row, base, &list, err) : err->code;
}

static int parse_positions(struct pe_arena *arena, const struct pe_field *fields, const struct pe_field *row,
                           void *base, const char *text, struct pe_error *err) {
    struct pe_positions positions;
    if (pe_positions_parse(arena, &positions, text, err)) {
        return pe_error_at(err, row->name);
    }
    return pe_field_set_positions(fields, row, base, &positions, err);
}

static int parse_text(struct pe_arena *arena, const struct pe_field *fields, const struct pe_field *row,
                      void *base, const char *text, struct pe_error *err) {
    /* Defaults are static texts, parsed without an arena. */
    const char *copy = arena ? pe_arena_text(arena, text, strlen(text), err) : text;
    return copy ? pe_field_set_text(fields, row, base, copy, err) : err->code;
}

/* "causal": an object named by one of its switches. */
static int parse_object(struct pe_arena *arena, const struct pe_field *fields, const struct pe_field *row,
                        void *base, const char *text, struct pe_error *err) {
    const struct pe_field *inner = pe_field_find(row->fields, row->n_fields, text);
    if (!inner || inner->kind != PE_KIND_BOOL) {
        char words[480];
        return wrong_text(row, pe_field_words(row, words, sizeof words), text, err);
    }
    void *object = pe_arena_array(arena, 1, row->object_size, err);
    if (!object) {
        return err->code;
    }
    pe_fields_init(row->fields, row->n_fields, object, row->object_size);
    if (pe_field_set_bool(row->fields, inner, object, true, err)) {
        return pe_error_at(err, row->name);
    }
    return pe_field_set_object(fields, row, base, object, err);
}

int pe_field_parse_tensor(struct pe_arena *arena, const struct pe_field *fields, const struct pe_field *row,
                          void *base, const char *text, enum pe_dtype dtype, struct pe_error *err) {
    if (row->kind == PE_KIND_TABLE && text[0] != '[') {
        return parse_text(arena, fields, row, base, text, err);
    }
    struct pe_tensor *tensor = pe_arena_array(arena, 1, sizeof *tensor, err);
    bool exact = row->flags & PE_FIELD_NUMBERS;
    if (!tensor || pe_number_array(arena, tensor, text, exact ? PE_DTYPE_F64 : dtype, err)) {
        return pe_error_at(err, row->name);
    }
    return pe_field_set_tensor(fields, row, base, tensor, err);
}

int pe_field_parse(struct pe_arena *arena, const struct pe_field *fields, const struct pe_field *row,
                   void *base, const char *text, struct pe_error *err) {
    switch (row->kind) {
    case PE_KIND_BOOL:
        return parse_bool(fields, row, base, text, err);
    case PE_KIND_INT:
        return parse_int(fields, row, base, text, err);
    case PE_KIND_REAL:
    case PE_KIND_SCALE:
        return parse_real(fields, row, base, text, err);
    case PE_KIND_INTS:
        return parse_ints(fields, row, base, text, err);
    case PE_KIND_NAMES:
        return parse_names(arena, fields, row, base, text, err);
    case PE_KIND_TEXTS:
        return parse_texts(arena, fields, row, base, text, err);
    case PE_KIND_POSITIONS:
        return parse_positions(arena, fields, row, base, text, err);
    case PE_KIND_TENSOR:
    case PE_KIND_TABLE:
        return pe_field_parse_tensor(arena, fields, row, base, text, PE_DTYPE_F64, err);
    case PE_KIND_OBJECT:
        return parse_object(arena, fields, row, base, text, err);
    default:
        return parse_text(arena, fields, row, base, text, err);
    }
}
