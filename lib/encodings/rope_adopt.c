/* SPDX-License-Identifier: MIT
 *
 * Fields that somebody else's words say (hf_config, ggml), and perhaps the request in ours, too: the same
 * twice is fine, a contradiction is a conflict at our field.
 */
#include "encodings/rope.h"

#include <stdio.h>
#include <string.h>

static void give(struct rope *params, int field) {
    params->given |= UINT64_C(1) << field;
}

int pe_rope_adopt_whole(struct rope *params, const struct rope_source *source, int field, int64_t value,
                        struct pe_error *err) {
    static const char *const names[] = {
        [ROPE_HEAD_DIM] = "head_dim", [ROPE_ROTARY_DIM] = "rotary_dim", [ROPE_QK_HEAD_DIM] = "qk_head_dim"};
    int64_t *member = field == ROPE_HEAD_DIM     ? &params->head_dim
                      : field == ROPE_ROTARY_DIM ? &params->rotary_dim
                                                 : &params->qk_head_dim;
    if (pe_rope_given(params, field) && *member != value) {
        return pe_fail(err, PE_ERR_CONFLICT, names[field], "is %lld, but %s gives %lld", (long long)*member,
                       source->name, (long long)value);
    }
    *member = value;
    give(params, field);
    return PE_OK;
}

int pe_rope_adopt_base(struct rope *params, const struct rope_source *source, double base,
                       struct pe_error *err) {
    if (pe_rope_given(params, ROPE_BASE) && params->base != base) {
        return pe_fail(err, PE_ERR_CONFLICT, "base", "is %.17g, but %s gives %.17g", params->base,
                       source->name, base);
    }
    params->base = base;
    give(params, ROPE_BASE);
    return PE_OK;
}

int pe_rope_adopt_layout(struct rope *params, const struct rope_source *source, int layout,
                         struct pe_error *err) {
    static const char *const names[] = {
        [ROPE_LAYOUT_HALVES] = "halves", [ROPE_LAYOUT_INTERLEAVED] = "interleaved"};
    if (params->layout != 0 && params->layout != layout) {
        return pe_fail(err, PE_ERR_CONFLICT, "layout", "is %s, but that of %s is %s", names[params->layout],
                       source->model, names[layout]);
    }
    params->layout = layout;
    give(params, ROPE_LAYOUT);
    return PE_OK;
}

int pe_rope_adopt_sections(struct rope *params, const struct rope_source *source,
                           const struct pe_ints *sections, int layout, struct pe_error *err) {
    const struct pe_ints *own = &params->sections;
    if (pe_rope_given(params, ROPE_SECTIONS) &&
        (own->n != sections->n || memcmp(own->v, sections->v, own->n * sizeof *own->v) != 0)) {
        return pe_fail(err, PE_ERR_CONFLICT, "sections", "differ from those of %s", source->name);
    }
    if (params->section_layout != 0 && params->section_layout != layout) {
        return pe_fail(err, PE_ERR_CONFLICT, "section_layout", "differs from that of %s", source->name);
    }
    params->sections = *sections;
    params->section_layout = layout;
    give(params, ROPE_SECTIONS);
    give(params, ROPE_SECTION_LAYOUT);
    return PE_OK;
}

/* ---- The scaling --------------------------------------------------------------------------------------- */

static bool is_same_list(const struct pe_tensor *a, const struct pe_tensor *b) {
    bool same = a->rank == 1 && b->rank == 1 && a->dim[0] == b->dim[0];
    for (size_t i = 0; same && i < a->dim[0]; i++) {
        same = pe_rope_scaling_number(a, i) == pe_rope_scaling_number(b, i);
    }
    return same;
}

static bool is_same(const struct pe_field *row, const struct rope_scaling *a, const struct rope_scaling *b) {
    const void *x = (const char *)a + row->offset, *y = (const char *)b + row->offset;
    switch (row->kind) {
    case PE_KIND_REAL:
        return *(const double *)x == *(const double *)y;
    case PE_KIND_INT:
        return *(const int64_t *)x == *(const int64_t *)y;
    case PE_KIND_BOOL:
        return *(const bool *)x == *(const bool *)y;
    case PE_KIND_CHOICE:
        return *(const int *)x == *(const int *)y;
    default:
        return is_same_list(*(const struct pe_tensor *const *)x, *(const struct pe_tensor *const *)y);
    }
}

/* What is wrong with a row of the request's own scaling; NULL: nothing. The base and the part that turns may
 * be said elsewhere. */
static const char *disagreement(int key, const struct rope_scaling *own, const struct rope_scaling *told) {
    bool given = pe_rope_scaling_has(own, key), known = pe_rope_scaling_has(told, key);
    if (key == ROPE_KEY_ROPE_THETA || key == ROPE_KEY_PARTIAL) {
        known = given;
    }
    if (given && known) {
        return is_same(&pe_rope_scaling_fields[key], own, told)
                   ? NULL
                   : "differs from what %s gives: change it there or leave it out here";
    }
    return given ? "is there, but %s does not give it" : known ? "is missing, but %s gives it" : NULL;
}

/* The request's own scaling says the same, once the defaults of both are filled in. */
static int scaling_agrees(const struct rope *params, const struct rope_source *source,
                          const struct rope_scaling *told_as_read, struct pe_error *err) {
    struct rope_scaling own = *(const struct rope_scaling *)params->scaling, told = *told_as_read;
    pe_rope_scaling_resolve(&own);
    pe_rope_scaling_resolve(&told);
    told.rope_theta = params->base;
    told.partial_rotary_factor = source->part;
    for (int key = 0; key < ROPE_SCALING_N_FIELDS; key++) {
        const char *fault = disagreement(key, &own, &told);
        if (fault) {
            char path[80], text[120];
            snprintf(path, sizeof path, "scaling.%s", pe_rope_scaling_fields[key].name);
            const char *gap = strstr(fault, "%s");
            snprintf(text, sizeof text, "%.*s%s%s", (int)(gap - fault), fault, source->name, gap + 2);
            return pe_fail(err, PE_ERR_CONFLICT, path, "%s", text);
        }
    }
    return PE_OK;
}

int pe_rope_adopt_scaling(struct rope *params, const struct rope_source *source,
                          const struct rope_scaling *told, struct pe_error *err) {
    bool own = params->scaling && params->scaling != &params->adopted;
    if (own && scaling_agrees(params, source, told, err)) {
        return err->code;
    }
    params->adopted = *told;
    params->scaling = told->rope_type == ROPE_TYPE_DEFAULT ? NULL : &params->adopted;
    if (params->scaling) {
        give(params, ROPE_SCALING);
    }
    return PE_OK;
}
