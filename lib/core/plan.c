/* SPDX-License-Identifier: MIT
 *
 * Specs and plans. A spec is an encoding's row with a parameter struct that can still change; a plan is the
 * checked, immutable result: one reference-counted block that holds the row, its own copy of the parameters
 * and what the encoding precomputed.
 */
#include "encodings/encoding.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pe_plan {
    atomic_size_t references;
    const struct pe_encoding *row;
    struct pe_plan_view view;
    size_t bytes;
    struct pe_allocator allocator; /* of the block that it is in; alloc NULL: it is one of aligned_alloc */
    void *block;
};

#define ALIGN 64
#define LARGE ((size_t)1 << 18) /* blocks that an allocator is asked for */

/* All that an error's text has room for, beside what stands around it: the registry grows. */
#define NAMES_ROOM (sizeof(((struct pe_error *)0)->text) - 100)

static int unknown_type(const char *type, struct pe_error *err) {
    char names[NAMES_ROOM] = "";
    for (size_t i = 0; i < pe_encoding_count(); i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", pe_encoding_at(i)->type);
    }
    return pe_fail(err, PE_ERR_UNKNOWN_NAME, "type", "must be one of %s, got \"%.60s\"", names, type);
}

int pe_spec_init(struct pe_arena *arena, struct pe_spec *spec, const char *type, struct pe_error *err) {
    *spec = (struct pe_spec){0};
    if (err->code) {
        return err->code;
    }
    const struct pe_encoding_info *info = pe_encoding_find(type);
    if (!info) {
        return unknown_type(type, err);
    }
    void *params = pe_arena_array(arena, 1, info->params_size, err);
    if (!params) {
        return err->code;
    }
    pe_fields_init(info->fields, info->n_fields, params, info->params_size);
    *spec = (struct pe_spec){.encoding = info, .params = params};
    return PE_OK;
}

static const struct pe_field *spec_row(const struct pe_spec *spec, const char *name, struct pe_error *err) {
    if (err->code) { /* there may be no encoding */
        return NULL;
    }
    const struct pe_field *row = pe_field_find(spec->encoding->fields, spec->encoding->n_fields, name);
    char names[480];
    if (!row) {
        pe_fail(err, PE_ERR_UNKNOWN_FIELD, name, "%s has no such parameter; it has %s", spec->encoding->type,
                pe_fields_names(spec->encoding->fields, spec->encoding->n_fields, names, sizeof names));
    }
    return row;
}

/* "scaling.factor": a member of an object. */
static int set_member(struct pe_arena *arena, const struct pe_spec *spec, const char *name, size_t dot,
                      const char *text, struct pe_error *err) {
    char first[64];
    snprintf(first, sizeof first, "%.*s", (int)dot, name);
    const struct pe_field *row = spec_row(spec, first, err);
    if (!row) {
        return err->code;
    }
    if (row->kind != PE_KIND_OBJECT) {
        return pe_fail(err, PE_ERR_UNKNOWN_FIELD, name, "%s has no members", row->name);
    }
    const struct pe_field *member = pe_field_find(row->fields, row->n_fields, name + dot + 1);
    char names[480];
    if (!member) {
        return pe_fail(err, PE_ERR_UNKNOWN_FIELD, name, "unknown field; there are %s",
                       pe_fields_names(row->fields, row->n_fields, names, sizeof names));
    }
    void *object = pe_field_open_object(arena, spec->encoding->fields, row, spec->params, err);
    if (object && pe_field_parse(arena, row->fields, member, object, text, err)) {
        return pe_error_at(err, row->name);
    }
    return err->code;
}

int pe_spec_set(struct pe_arena *arena, struct pe_spec *spec, const char *name, const char *text,
                struct pe_error *err) {
    size_t dot = strcspn(name, ".");
    if (!err->code && name[dot] && dot < 64) {
        return set_member(arena, spec, name, dot, text, err);
    }
    const struct pe_field *row = spec_row(spec, name, err);
    return row ? pe_field_parse(arena, spec->encoding->fields, row, spec->params, text, err) : err->code;
}

int pe_spec_set_tensor(struct pe_spec *spec, const char *name, const struct pe_tensor *tensor,
                       struct pe_error *err) {
    const struct pe_field *row = spec_row(spec, name, err);
    return row ? pe_field_set_tensor(spec->encoding->fields, row, spec->params, tensor, err) : err->code;
}

/* Gives `row` the value that follows from the data, or compares it with what was given. */
static int fit(struct pe_spec *spec, const struct pe_field *row, size_t value, bool must_agree,
               struct pe_error *err) {
    const struct pe_field *fields = spec->encoding->fields;
    int64_t given = *(const int64_t *)(const void *)((const char *)spec->params + row->offset);
    if (!pe_field_given(fields, row, spec->params)) {
        return pe_field_set_int(fields, row, spec->params, (int64_t)value, err);
    }
    if (must_agree && given != (int64_t)value) {
        return pe_fail(err, PE_ERR_CONFLICT, row->name, "is %lld but the embeddings have width %zu",
                       (long long)given, value);
    }
    return PE_OK;
}

int pe_spec_fit(struct pe_spec *spec, size_t width, size_t length, struct pe_error *err) {
    if (err->code) {
        return err->code;
    }
    const struct pe_encoding *encoding = pe_encoding_row(spec->encoding);
    if (encoding->adopt && encoding->adopt(spec->params, err)) {
        return err->code;
    }
    for (size_t i = 0; i < spec->encoding->n_fields; i++) {
        const struct pe_field *row = &spec->encoding->fields[i];
        if ((row->flags & PE_FIELD_WIDTH) && width && fit(spec, row, width, true, err)) {
            return err->code;
        }
        if ((row->flags & PE_FIELD_LENGTH) && length && fit(spec, row, length, false, err)) {
            return err->code;
        }
    }
    return PE_OK;
}

static size_t rounded(size_t bytes) {
    return (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

static int plan_fill(struct pe_plan *plan, const struct pe_spec *spec, size_t data_bytes,
                     struct pe_error *err) {
    char *params = (char *)plan + rounded(sizeof *plan);
    memcpy(params, spec->params, spec->encoding->params_size);
    plan->row = pe_encoding_row(spec->encoding);
    plan->view.params = params;
    plan->view.data = data_bytes ? params + rounded(spec->encoding->params_size) : NULL;
    if (plan->row->resolve) {
        plan->row->resolve(params, plan->view.data);
    }
    plan->view.width = plan->row->width ? plan->row->width(params) : 0;
    atomic_init(&plan->references, 1);
    if (!plan->row->plan) {
        return PE_OK;
    }
    return plan->row->plan(&plan->view, err) ? err->code
                                             : pe_error_poll(err); /* what was stopped is half a plan */
}

static int plan_check(const struct pe_spec *spec, const struct pe_encoding *row, struct pe_error *err) {
    if (err->code || (row->adopt && row->adopt(spec->params, err)) ||
        pe_fields_check(spec->encoding->fields, spec->encoding->n_fields, spec->params, err)) {
        return err->code;
    }
    return row->check ? row->check(spec->params, err) : PE_OK;
}

/* Its memory, cleared. What an allocator gives need not be aligned. */
static struct pe_plan *plan_take(size_t bytes, const struct pe_allocator *allocator) {
    const bool large = bytes >= LARGE && allocator && allocator->alloc;
    char *block = large ? allocator->alloc(allocator->context, bytes + ALIGN) : aligned_alloc(ALIGN, bytes);
    if (!block) {
        return NULL;
    }
    struct pe_plan *plan = (void *)(block + (ALIGN - (uintptr_t)block % ALIGN) % ALIGN);
    memset(plan, 0, bytes);
    plan->bytes = bytes;
    plan->allocator = large ? *allocator : (struct pe_allocator){0};
    plan->block = block;
    return plan;
}

static void plan_give(struct pe_plan *plan) {
    const struct pe_allocator allocator = plan->allocator;
    if (allocator.alloc) {
        allocator.release(allocator.context, plan->block, plan->bytes + ALIGN);
    } else {
        free(plan);
    }
}

int pe_plan_open_within(struct pe_plan **out, const struct pe_spec *spec, struct pe_arena *arena,
                        const struct pe_allocator *allocator, struct pe_error *err) {
    *out = NULL;
    if (err->code) {
        return err->code;
    }
    const struct pe_encoding *row = pe_encoding_row(spec->encoding);
    if (plan_check(spec, row, err)) {
        return err->code;
    }
    size_t data_bytes = row->plan_bytes ? row->plan_bytes(spec->params) : 0;
    size_t bytes =
        rounded(sizeof(struct pe_plan)) + rounded(spec->encoding->params_size) + rounded(data_bytes);
    if (arena && pe_arena_charge(arena, bytes, err)) {
        return err->code;
    }
    struct pe_plan *plan = plan_take(bytes, allocator);
    if (!plan) {
        return pe_fail(err, PE_ERR_MEMORY, "", "no memory for a plan of %zu bytes", bytes);
    }
    if (plan_fill(plan, spec, data_bytes, err)) {
        plan_give(plan);
        return err->code;
    }
    *out = plan;
    return PE_OK;
}

int pe_plan_open(struct pe_plan **out, const struct pe_spec *spec, struct pe_error *err) {
    return pe_plan_open_within(out, spec, NULL, NULL, err);
}

struct pe_plan *pe_plan_share(struct pe_plan *plan) {
    atomic_fetch_add(&plan->references, 1);
    return plan;
}

void pe_plan_close(struct pe_plan *plan) {
    if (plan && atomic_fetch_sub(&plan->references, 1) == 1) {
        plan_give(plan);
    }
}

const struct pe_encoding_info *pe_plan_encoding(const struct pe_plan *plan) {
    return &plan->row->info;
}

size_t pe_plan_bytes(const struct pe_plan *plan) {
    return plan->bytes;
}

size_t pe_plan_width(const struct pe_plan *plan) {
    return plan->view.width;
}

void pe_plan_bounds(const struct pe_plan *plan, double *min, double *max) {
    *min = -PE_POSITION_MAX;
    *max = PE_POSITION_MAX;
    if (plan->row->bounds) {
        plan->row->bounds(&plan->view, min, max);
    }
}

const struct pe_plan_view *pe_plan_view(const struct pe_plan *plan) {
    return &plan->view;
}

const struct pe_encoding *pe_plan_row(const struct pe_plan *plan) {
    return plan->row;
}

size_t pe_plan_facts(const struct pe_plan *plan, struct pe_fact *facts, size_t room) {
    struct pe_fact all[PE_MAX_FACTS];
    size_t n = plan->row->facts ? plan->row->facts(&plan->view, all) : 0;
    for (size_t i = 0; i < n && i < room; i++) {
        facts[i] = all[i];
    }
    return n;
}

const void *pe_plan_params(const struct pe_plan *plan) {
    return plan->view.params;
}
