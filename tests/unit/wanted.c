/* SPDX-License-Identifier: MIT
 *
 * The lists are those of the tables themselves: what a test holds against them is that a message names them
 * all, in their order.
 */
#include "wanted.h"

#include "api/api.h"
#include "wire/bind.h"
#include "wire/format.h"
#include "expect.h"

#include <stdlib.h>
#include <string.h>

#define MAX_TEXT 2000

/* A text that grows; ", " stands between the names of a list. */
struct text {
    char *at;
    size_t n;
};

static void text_add(struct text *text, const char *bytes, size_t n) {
    ck_assert_uint_lt(text->n + n, MAX_TEXT);
    memcpy(text->at + text->n, bytes, n);
    text->n += n;
    text->at[text->n] = '\0';
}

static void name_add(struct text *text, const char *name, size_t i) {
    text_add(text, ", ", i > 0 ? 2 : 0);
    text_add(text, name, strlen(name));
}

static void fields_add(struct text *text, const struct pe_field *fields, size_t n) {
    for (size_t i = 0; i < n; i++) {
        name_add(text, fields[i].name, i);
    }
}

static void fields_of_add(struct text *text, const char *of) {
    const struct pe_encoding_info *info = pe_encoding_find(of);
    const struct api_op *op = api_op_find(of);
    if (info) {
        fields_add(text, info->fields, info->n_fields);
    } else {
        ck_assert_msg(op != NULL, "there are no fields of \"%s\"", of);
        fields_add(text, op->fields, op->n_fields);
    }
}

static void list_add(struct text *text, const struct presets *presets, const char *list) {
    static const char fields_of[] = "fields of ", tensors_of[] = "tensors of ";
    if (strcmp(list, "types") == 0) {
        for (size_t i = 0; i < pe_encoding_count(); i++) {
            name_add(text, pe_encoding_at(i)->type, i);
        }
    } else if (strcmp(list, "presets") == 0) {
        for (size_t i = 0; i < presets_count(presets); i++) {
            name_add(text, presets_at(presets, i)->name, i);
        }
    } else if (strcmp(list, "formats") == 0) {
        for (int i = 0; i < FORMAT_COUNT; i++) {
            name_add(text, format_at((enum format_id)i)->name, (size_t)i);
        }
    } else if (strcmp(list, "common") == 0) {
        fields_add(text, api_common_fields, api_common_n_fields);
    } else if (strcmp(list, "positions") == 0) {
        fields_add(text, pe_positions_fields, pe_positions_n_fields);
    } else if (strncmp(list, tensors_of, sizeof tensors_of - 1) == 0) {
        const struct api_op *op = api_op_find(list + sizeof tensors_of - 1);
        ck_assert_msg(op && op->tensors, "there are no tensors of \"%s\"", list);
        text_add(text, op->tensors, strlen(op->tensors));
    } else {
        ck_assert_msg(strncmp(list, fields_of, sizeof fields_of - 1) == 0, "no list is called \"%s\"", list);
        fields_of_add(text, list + sizeof fields_of - 1);
    }
}

char *wanted_text(const struct presets *presets, const char *text) {
    struct text out = {.at = calloc(1, MAX_TEXT)};
    for (const char *open; (open = strchr(text, '{')) != NULL;) {
        size_t length = strcspn(open + 1, "}");
        char list[40];
        ck_assert_msg(open[1 + length] == '}' && length < sizeof list, "no list in \"%s\"", text);
        memcpy(list, open + 1, length);
        list[length] = '\0';
        text_add(&out, text, (size_t)(open - text));
        list_add(&out, presets, list);
        text = open + length + 2;
    }
    text_add(&out, text, strlen(text));
    return out.at;
}
