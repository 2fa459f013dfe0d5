/* SPDX-License-Identifier: MIT
 *
 * What the rows of an encoding's parameters tell about a plan: the bytes by which it is found, and whether all that it
 * points to is its own.
 */
#include "api/plan_key.h"

#include <string.h>

/* ---- The descriptor ------------------------------------------------------------------------------------ */

static void key_add(struct plan_key *key, const void *bytes, size_t n) {
    if (key->unfit || n > PLAN_KEY_BYTES - key->n) {
        key->unfit = true;
        return;
    }
    if (n > 0) { /* else bytes may be NULL */
        memcpy(key->bytes + key->n, bytes, n);
    }
    key->n += n;
}

static void key_text(struct plan_key *key, const char *text) {
    unsigned char given = text != NULL;
    key_add(key, &given, 1);
    if (text != NULL) {
        key_add(key, text, strlen(text) + 1);
    }
}

static void key_tensor(struct plan_key *key, const struct pe_tensor *tensor) {
    int shape[2] = {tensor ? (int)tensor->dtype : 0, tensor ? tensor->rank : -1};
    key_add(key, shape, sizeof shape);
    if (tensor != NULL) {
        key_add(key, tensor->dim, (size_t)tensor->rank * sizeof tensor->dim[0]);
        key_add(key, tensor->data, pe_tensor_bytes(tensor));
    }
}

static void key_fields(struct plan_key *key, const struct pe_field *fields, size_t n, const void *base);

static void key_object(struct plan_key *key, const struct pe_field *row, const void *object) {
    unsigned char given = object != NULL;
    key_add(key, &given, 1);
    if (object != NULL) {
        key_fields(key, row->fields, row->n_fields, object);
    }
}

static void key_value(struct plan_key *key, const struct pe_field *row, const void *member) {
    const struct pe_scale *scale = member;
    const struct pe_ints *ints = member;
    const struct pe_table *table = member;
    switch (row->kind) {
    case PE_KIND_BOOL:
        key_add(key, member, sizeof(bool));
        break;
    case PE_KIND_INT:
        key_add(key, member, sizeof(int64_t));
        break;
    case PE_KIND_REAL:
        key_add(key, member, sizeof(double));
        break;
    case PE_KIND_CHOICE:
        key_add(key, member, sizeof(int));
        break;
    case PE_KIND_SCALE:
        key_add(key, &scale->number, sizeof scale->number);
        key_add(key, &scale->choice, sizeof scale->choice);
        break;
    case PE_KIND_TEXT:
        key_text(key, *(const char *const *)member);
        break;
    case PE_KIND_INTS:
        key_add(key, &ints->n, sizeof ints->n);
        key_add(key, ints->v, ints->n * sizeof ints->v[0]);
        break;
    case PE_KIND_TENSOR:
        key_tensor(key, *(const struct pe_tensor *const *)member);
        break;
    case PE_KIND_OBJECT:
        key_object(key, row, *(const void *const *)member);
        break;
    case PE_KIND_TABLE:
        key->unfit = key->unfit || table->name || table->tensor;
        break;
    case PE_KIND_NAMES:
        key->unfit = key->unfit || ((const struct pe_names *)member)->n;
        break;
    case PE_KIND_CONFIG:
        key->unfit = key->unfit || ((const struct pe_config *)member)->n;
        break;
    case PE_KIND_TEXTS: /* no encoding has these */
    case PE_KIND_TENSORS:
    case PE_KIND_POSITIONS:
    case PE_KIND_ENCODING:
        key->unfit = true;
        break;
    }
}

static void key_fields(struct plan_key *key, const struct pe_field *fields, size_t n, const void *base) {
    key_add(key, base, sizeof(uint64_t)); /* which are given */
    for (size_t i = 0; i < n; i++) {
        key_value(key, &fields[i], (const char *)base + fields[i].offset);
    }
}

void plan_key_make(struct plan_key *key, const struct pe_spec *spec) {
    key->unfit = false;
    key_add(key, &spec->encoding, sizeof spec->encoding);
    key_fields(key, spec->encoding->fields, spec->encoding->n_fields, spec->params);
}

/* ---- Does it live by itself? --------------------------------------------------------------------------- */

static bool holds(const struct pe_plan *plan, const void *start) {
    uintptr_t from = (uintptr_t)plan, at = (uintptr_t)start;
    return at >= from && at - from < pe_plan_bytes(plan);
}

static bool holds_fields(const struct pe_plan *plan, const struct pe_field *fields, size_t n,
                         const void *base);

static bool holds_value(const struct pe_plan *plan, const struct pe_field *row, const void *member) {
    const void *start = NULL;
    const struct pe_table *table = member;
    switch (row->kind) {
    case PE_KIND_TEXT:
    case PE_KIND_TENSOR:
    case PE_KIND_OBJECT:
        start = *(const void *const *)member;
        break;
    case PE_KIND_TABLE:
        return !table->name && !table->tensor;
    case PE_KIND_NAMES:
        return ((const struct pe_names *)member)->n == 0;
    case PE_KIND_CONFIG:
        return ((const struct pe_config *)member)->n == 0;
    case PE_KIND_BOOL:
    case PE_KIND_INT:
    case PE_KIND_REAL:
    case PE_KIND_CHOICE:
    case PE_KIND_SCALE:
    case PE_KIND_INTS:
        return true;
    default:
        return false;
    }
    if (start == NULL) {
        return true;
    }
    if (!holds(plan, start)) {
        return false;
    }
    return row->kind == PE_KIND_TENSOR   ? holds(plan, ((const struct pe_tensor *)start)->data)
           : row->kind == PE_KIND_OBJECT ? holds_fields(plan, row->fields, row->n_fields, start)
                                         : true;
}

static bool holds_fields(const struct pe_plan *plan, const struct pe_field *fields, size_t n,
                         const void *base) {
    bool all = true;
    for (size_t i = 0; all && i < n; i++) {
        all = holds_value(plan, &fields[i], (const char *)base + fields[i].offset);
    }
    return all;
}

bool plan_lives_alone(const struct pe_plan *plan) {
    const struct pe_encoding_info *info = pe_plan_encoding(plan);
    return holds_fields(plan, info->fields, info->n_fields, pe_plan_params(plan));
}
