/* SPDX-License-Identifier: MIT
 *
 * One function per kind of row. A posted tensor is echoed as its shape and dtype: the caller has its numbers.
 */
#include "wire/echo.h"

#include <stddef.h>

static void echo_names(struct text *text, const char *const *names, size_t n) {
    text_puts(text, "[");
    for (size_t i = 0; i < n; i++) {
        if (i) {
            text_puts(text, ",");
        }
        text_string(text, names[i]);
    }
    text_puts(text, "]");
}

static void echo_ints(struct text *text, const struct pe_ints *ints) {
    text_puts(text, "[");
    for (size_t i = 0; i < ints->n; i++) {
        if (i) {
            text_puts(text, ",");
        }
        text_int(text, ints->v[i]);
    }
    text_puts(text, "]");
}

void echo_tensor(struct text *text, const struct pe_tensor *tensor) {
    text_key(text, "shape");
    text_puts(text, "[");
    for (int i = 0; i < tensor->rank; i++) {
        if (i) {
            text_puts(text, ",");
        }
        text_int(text, (int64_t)tensor->dim[i]);
    }
    text_puts(text, "]");
    text_key(text, "dtype");
    text_string(text, pe_dtype_name(tensor->dtype));
}

/* Short lists of plain numbers are parameters like others. */
#define NUMBERS_SHOWN 4096

static void echo_numbers(struct text *text, const struct pe_tensor *tensor) {
    text_puts(text, "[");
    for (size_t i = 0; i < tensor->dim[0]; i++) {
        double value;
        pe_dtype_load(tensor->dtype, (const char *)tensor->data + i * pe_dtype_size(tensor->dtype), 1,
                      &value);
        text_puts(text, i ? "," : "");
        text_real(text, value);
    }
    text_puts(text, "]");
}

static void echo_posted(struct text *text, const struct pe_field *row, const struct pe_tensor *tensor) {
    if ((row->flags & PE_FIELD_NUMBERS) && tensor->rank == 1 && tensor->dim[0] <= NUMBERS_SHOWN) {
        echo_numbers(text, tensor);
        return;
    }
    text_puts(text, "{");
    echo_tensor(text, tensor);
    text_puts(text, "}");
}

static void echo_table(struct text *text, const struct pe_field *row, const struct pe_table *table) {
    if (table->name) {
        text_string(text, table->name);
    } else {
        echo_posted(text, row, table->tensor);
    }
}

static void echo_scale(struct text *text, const struct pe_field *row, const struct pe_scale *scale) {
    if (scale->choice) {
        text_string(text, pe_choice_name(row->choices, scale->choice));
    } else {
        text_real(text, scale->number);
    }
}

/* Has the member a value at all? Numbers without a default have one only when given. */
static bool is_absent(const struct pe_field *fields, const struct pe_field *row, const void *base,
                      const void *member) {
    switch (row->kind) {
    case PE_KIND_CONFIG:  /* what it says is in the other fields by now */
    case PE_KIND_TENSORS: /* which were used is said by who used them */
        return true;
    case PE_KIND_TEXT:
        return !*(const char *const *)member;
    case PE_KIND_TENSOR:
    case PE_KIND_OBJECT:
        return !*(const void *const *)member;
    case PE_KIND_TABLE:
        return !((const struct pe_table *)member)->name && !((const struct pe_table *)member)->tensor;
    case PE_KIND_CHOICE:
        return !*(const int *)member;
    case PE_KIND_ENCODING:
        return !((const struct pe_spec *)member)->encoding;
    default:
        return !row->def && !pe_field_given(fields, row, base);
    }
}

static void echo_value(struct text *text, const struct pe_field *row, const void *member) {
    switch (row->kind) {
    case PE_KIND_BOOL:
        text_bool(text, *(const bool *)member);
        break;
    case PE_KIND_INT:
        text_int(text, *(const int64_t *)member);
        break;
    case PE_KIND_REAL:
        text_real(text, *(const double *)member);
        break;
    case PE_KIND_TEXT:
        text_string(text, *(const char *const *)member);
        break;
    case PE_KIND_CHOICE:
        text_string(text, pe_choice_name(row->choices, *(const int *)member));
        break;
    case PE_KIND_SCALE:
        echo_scale(text, row, member);
        break;
    case PE_KIND_INTS:
        echo_ints(text, member);
        break;
    case PE_KIND_NAMES:
        echo_names(text, ((const struct pe_names *)member)->v, ((const struct pe_names *)member)->n);
        break;
    case PE_KIND_TEXTS:
        echo_names(text, ((const struct pe_texts *)member)->v, ((const struct pe_texts *)member)->n);
        break;
    case PE_KIND_CONFIG:
    case PE_KIND_TENSORS:
        break;
    case PE_KIND_TENSOR:
        echo_posted(text, row, *(const struct pe_tensor *const *)member);
        break;
    case PE_KIND_TABLE:
        echo_table(text, row, member);
        break;
    case PE_KIND_POSITIONS: /* no encoding has any; a reply's are numbers of its own (task_echo_positions) */
        text_puts(text, "null");
        break;
    case PE_KIND_ENCODING:
        echo_encoding(text, member);
        break;
    case PE_KIND_OBJECT:
        text_puts(text, "{");
        echo_fields(text, row->fields, row->n_fields, *(const void *const *)member);
        text_puts(text, "}");
        break;
    }
}

void echo_field(struct text *text, const struct pe_field *fields, const struct pe_field *row,
                const void *base) {
    const void *member = (const char *)base + row->offset;
    if (!is_absent(fields, row, base, member)) {
        text_key(text, row->name);
        echo_value(text, row, member);
    }
}

void echo_fields(struct text *text, const struct pe_field *fields, size_t n, const void *base) {
    for (size_t i = 0; i < n; i++) {
        echo_field(text, fields, &fields[i], base);
    }
}

void echo_encoding(struct text *text, const struct pe_spec *spec) {
    text_puts(text, "{");
    text_key(text, "type");
    text_string(text, spec->encoding->type);
    echo_fields(text, spec->encoding->fields, spec->encoding->n_fields, spec->params);
    text_puts(text, "}");
}
