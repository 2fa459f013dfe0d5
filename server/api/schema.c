/* SPDX-License-Identifier: MIT
 *
 * JSON Schema (draft 2020-12) for every kind of row: what the binder accepts, in words a form can be built
 * from.
 */
#include "api/schema.h"

#include <string.h>

static const char *const kind_schemas[] = {
    [PE_KIND_BOOL] = "\"type\":\"boolean\"",
    [PE_KIND_INT] = "\"type\":\"integer\"",
    [PE_KIND_REAL] = "\"type\":\"number\"",
    [PE_KIND_TEXT] = "\"type\":\"string\"",
    [PE_KIND_CHOICE] = "\"type\":\"string\"",
    [PE_KIND_SCALE] = "\"type\":[\"number\",\"string\"]",
    [PE_KIND_INTS] = "\"type\":\"array\",\"items\":{\"type\":\"integer\"}",
    [PE_KIND_NAMES] = "\"type\":\"array\"",
    [PE_KIND_TEXTS] = "\"type\":\"array\",\"items\":{\"type\":\"string\"}",
    [PE_KIND_TENSOR] = "\"type\":[\"array\",\"object\"]",
    [PE_KIND_TABLE] = "\"type\":[\"string\",\"array\",\"object\"]",
    [PE_KIND_TENSORS] = "\"type\":\"object\"",
    [PE_KIND_POSITIONS] = "\"type\":[\"string\",\"array\",\"object\"]",
    [PE_KIND_ENCODING] = "\"type\":[\"string\",\"object\"]",
    [PE_KIND_CONFIG] = "\"type\":\"object\"",
};

static void schema_names(struct text *text, const struct pe_field *row) {
    text_key(text, row->kind == PE_KIND_SCALE ? "x-names" : "enum");
    text_puts(text, "[");
    for (const struct pe_choice *c = row->choices; c->name; c++) {
        text_puts(text, c == row->choices ? "" : ",");
        text_string(text, c->name);
    }
    text_puts(text, "]");
}

/* Of a list it is the items that are texts, and one of the choices. */
static void schema_items(struct text *text, const struct pe_field *row) {
    text_key(text, "items");
    text_puts(text, "{\"type\":\"string\"");
    if (row->choices) {
        schema_names(text, row);
    }
    text_puts(text, "}");
}

static void schema_choices(struct text *text, const struct pe_field *row) {
    if (row->kind != PE_KIND_NAMES) {
        schema_names(text, row);
    }
    text_key(text, "x-docs");
    text_puts(text, "{");
    for (const struct pe_choice *c = row->choices; c->name; c++) {
        text_key(text, c->name);
        text_string(text, c->doc ? c->doc : "");
    }
    text_puts(text, "}");
}

static void schema_bounds(struct text *text, const struct pe_field *row) {
    bool numbers = row->kind == PE_KIND_INT || row->kind == PE_KIND_REAL || row->kind == PE_KIND_SCALE;
    if (!numbers || (row->min == 0 && row->max == 0)) {
        return;
    }
    text_key(text, row->flags & PE_FIELD_OPEN_MIN ? "exclusiveMinimum" : "minimum");
    text_real(text, row->min);
    text_key(text, "maximum");
    text_real(text, row->max);
}

static void schema_default(struct text *text, const struct pe_field *row) {
    if (!row->def) {
        return;
    }
    text_key(text, "default");
    struct pe_number number;
    bool may_be_number = row->kind == PE_KIND_REAL || row->kind == PE_KIND_SCALE;
    if (row->kind == PE_KIND_BOOL || row->kind == PE_KIND_INT) {
        text_puts(text, row->def);
    } else if (may_be_number && pe_number_parse(row->def, strlen(row->def), &number) == PE_NUMBER_OK) {
        text_real(text, number.value);
    } else {
        text_string(text, row->def);
    }
}

static void schema_member(struct text *text, const struct pe_field *row) {
    text_puts(text, "{");
    if (row->kind == PE_KIND_OBJECT) {
        text_puts(text, "\"$ref\":\"#/$defs/");
        text_puts(text, row->name);
        text_puts(text, "\"");
    } else {
        text_puts(text, kind_schemas[row->kind]);
    }
    if (row->kind == PE_KIND_NAMES) {
        schema_items(text, row);
    }
    if (row->choices) {
        schema_choices(text, row);
    }
    schema_bounds(text, row);
    schema_default(text, row);
    if (row->shape) {
        text_key(text, "x-shape");
        text_string(text, row->shape);
    }
    if (row->unit) {
        text_key(text, "x-unit");
        text_string(text, row->unit);
    }
    if (row->flags & PE_FIELD_WIDTH) {
        text_key(text, "x-follows");
        text_string(text, "the width of posted embeddings");
    }
    if (row->flags & PE_FIELD_LENGTH) {
        text_key(text, "x-follows");
        text_string(text, "the number of positions");
    }
    text_key(text, "description");
    text_string(text, row->doc ? row->doc : "");
    text_puts(text, "}");
}

static void schema_defs(struct text *text, const struct pe_field *fields, size_t n) {
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        any = any || fields[i].kind == PE_KIND_OBJECT;
    }
    if (!any) {
        return;
    }
    text_key(text, "$defs");
    text_puts(text, "{");
    for (size_t i = 0; i < n; i++) {
        if (fields[i].kind != PE_KIND_OBJECT) {
            continue;
        }
        text_key(text, fields[i].name);
        schema_object(text, fields[i].fields, fields[i].n_fields);
    }
    text_puts(text, "}");
}

void schema_object(struct text *text, const struct pe_field *fields, size_t n) {
    text_puts(text, "{\"type\":\"object\",\"properties\":{");
    for (size_t i = 0; i < n; i++) {
        text_key(text, fields[i].name);
        schema_member(text, &fields[i]);
    }
    text_puts(text, "},\"required\":[");
    for (size_t i = 0, n_required = 0; i < n; i++) {
        if (fields[i].flags & PE_FIELD_REQUIRED) {
            text_puts(text, n_required++ ? "," : "");
            text_string(text, fields[i].name);
        }
    }
    text_puts(text, "],\"additionalProperties\":false");
    schema_defs(text, fields, n);
    text_puts(text, "}");
}
