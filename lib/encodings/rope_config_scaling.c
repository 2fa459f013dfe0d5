/* SPDX-License-Identifier: MIT
 *
 * The scaling and the sections of a model's configuration: what transformers' code takes from rope_parameters
 * (or rope_scaling) and, where it is not there, from beside it.
 *
 *     yarn, longrope    factor, else max_position_embeddings / original_max_position_embeddings
 *     dynamic           max_position_embeddings is the context of the training, whatever else is said
 *     all               original_max_position_embeddings may be beside; it is never guessed
 *     yarn              mscale and mscale_all_dim count when both are there: their quotient is an attention
 *                       factor, but of DeepSeek alone mscale_all_dim scales the softmax
 *
 * Members that the type does not use are left to the reply's list of ignored keys.
 */
#include "encodings/rope_config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FIELDS pe_rope_scaling_fields

static void drop(struct rope_scaling *scaling, int key, double *member) {
    scaling->given &= ~ROPE_BIT(key);
    *member = 0;
}

/* ---- The type ------------------------------------------------------------------------------------------ */

/* Qwen2-VL calls its sections a type, and LongRoPE was "su" at first, for Phi-3 even "yarn". */
static const char *const other_names[][2] = {{"mrope", "default"}, {"su", "longrope"}};

/* 0: none that a configuration has. */
static int type_named(const struct rope_family *family, const char *name) {
    if (family->longrope && strcmp(name, family->longrope) == 0) {
        return ROPE_TYPE_LONGROPE;
    }
    for (size_t i = 0; i < PE_COUNT(other_names); i++) {
        name = strcmp(name, other_names[i][0]) == 0 ? other_names[i][1] : name;
    }
    int type = pe_rope_scaling_type(name);
    return type == ROPE_TYPE_GGML ? 0 : type;
}

static const char *type_names(char *out, size_t size) {
    size_t n = 0;
    for (const struct pe_choice *type = FIELDS[ROPE_KEY_ROPE_TYPE].choices; type->name; type++) {
        if (type->value != ROPE_TYPE_GGML && n < size) {
            n += (size_t)snprintf(out + n, size - n, "%s%s", n ? ", " : "", type->name);
        }
    }
    for (size_t i = 0; i < PE_COUNT(other_names) && n < size; i++) {
        n += (size_t)snprintf(out + n, size - n, ", %s", other_names[i][0]);
    }
    return out;
}

/* What is said here of the encoding, whatever the type. */
static bool is_common(int key) {
    return key == ROPE_KEY_ROPE_THETA || key == ROPE_KEY_PARTIAL;
}

/* An object without a type may only hold what every type has. */
static int untyped(struct rope_reading *reading, struct pe_error *err) {
    for (int key = 1; key < ROPE_SCALING_N_FIELDS; key++) {
        if (!is_common(key) && pe_rope_config_find(reading, reading->scaling, FIELDS[key].name)) {
            return pe_rope_config_missing(reading, reading->scaling, "rope_type",
                                          "it tells how the rest is read", err);
        }
    }
    return PE_OK;
}

int pe_rope_config_type(struct rope_reading *reading, struct pe_error *err) {
    reading->type = ROPE_TYPE_DEFAULT;
    if (!reading->scaling[0]) {
        return PE_OK;
    }
    struct pe_config_item *item = pe_rope_config_find(reading, reading->scaling, "rope_type");
    item = item ? item : pe_rope_config_find(reading, reading->scaling, "type");
    if (!item) {
        return untyped(reading, err);
    }
    if (item->kind != PE_CONFIG_TEXT) {
        return pe_rope_config_fail(item, PE_ERR_TYPE, err, "must be a string");
    }
    reading->type = type_named(reading->family, item->text);
    if (reading->type == 0) {
        char names[160];
        return pe_rope_config_fail(item, PE_ERR_CHOICE, err, "must be one of %s, got \"%.40s\"",
                                   type_names(names, sizeof names), item->text);
    }
    reading->is_mrope = strcmp(item->text, "mrope") == 0;
    pe_rope_config_use(item);
    return PE_OK;
}

/* ---- Sections ------------------------------------------------------------------------------------------ */

static int section_list(const struct pe_config_item *item, struct pe_ints *out, struct pe_error *err) {
    bool good = item->kind == PE_CONFIG_NUMBERS && item->list->dim[0] <= PE_MAX_INTS;
    *out = (struct pe_ints){.n = 0};
    for (size_t i = 0; good && i < item->list->dim[0]; i++) {
        double value = ((const double *)item->list->data)[i];
        good = value >= 0 && value <= 32768 && value == floor(value);
        out->v[out->n++] = good ? (int64_t)value : 0;
    }
    return good ? PE_OK
                : pe_rope_config_fail(item, PE_ERR_TYPE, err, "must be a short list of whole numbers");
}

static int adopt_sections(const struct rope_reading *reading, struct rope *params, struct pe_error *err) {
    struct pe_config_item *item = pe_rope_config_find(reading, reading->scaling, "mrope_section");
    struct pe_config_item *flag = pe_rope_config_find(reading, reading->scaling, "mrope_interleaved");
    struct pe_ints told;
    if (!item) {
        return reading->is_mrope ? pe_rope_config_missing(reading, reading->scaling, "mrope_section",
                                                          "type mrope needs it", err)
                                 : PE_OK;
    }
    if (flag && flag->kind != PE_CONFIG_BOOL) {
        return pe_rope_config_fail(flag, PE_ERR_TYPE, err, "must be true or false");
    }
    if (section_list(item, &told, err)) {
        return err->code;
    }
    pe_rope_config_use(item);
    pe_rope_config_use(flag);
    return pe_rope_adopt_sections(params, &reading->source, &told,
                                  flag && flag->flag ? ROPE_INTERLEAVED : ROPE_CONTIGUOUS, err);
}

/* ---- Members ------------------------------------------------------------------------------------------- */

/* Where the object is, as a path for errors: without its last dot. */
static int at_scaling(const struct rope_reading *reading, struct pe_error *err) {
    char path[2 * ROPE_CONFIG_PATH];
    int length = snprintf(path, sizeof path, "hf_config.%s%s", reading->within, reading->scaling);
    path[length - 1] = '\0';
    return pe_error_at(err, path);
}

/* One row from the item of its name. */
static int member_read(const struct rope_reading *reading, const struct pe_config_item *item,
                       const struct pe_field *row, struct rope_scaling *out, struct pe_error *err) {
    bool list = row->kind == PE_KIND_TENSOR, flag = row->kind == PE_KIND_BOOL;
    enum pe_config_kind wanted = list ? PE_CONFIG_NUMBERS : flag ? PE_CONFIG_BOOL : PE_CONFIG_NUMBER;
    if (item->kind != wanted) {
        return pe_rope_config_fail(item, PE_ERR_TYPE, err, "must be %s",
                                   list   ? "a list of numbers"
                                   : flag ? "true or false"
                                          : "a number");
    }
    int failed = list   ? pe_field_set_tensor(FIELDS, row, out, item->list, err)
                 : flag ? pe_field_set_bool(FIELDS, row, out, item->flag, err)
                        : pe_field_set_real(FIELDS, row, out, item->number, err);
    return failed ? at_scaling(reading, err) : PE_OK;
}

/* All that the type takes. `items` are told which rows they are for, to be marked once it is clear what
 * counts. */
static int members_read(const struct rope_reading *reading, struct rope_scaling *out,
                        struct pe_config_item *items[ROPE_SCALING_N_FIELDS], struct pe_error *err) {
    bool dynamic = reading->type == ROPE_TYPE_DYNAMIC;
    for (int key = 1; key < ROPE_SCALING_N_FIELDS; key++) {
        const struct pe_field *row = &FIELDS[key];
        bool from_beside = dynamic && key == ROPE_KEY_ORIGINAL;
        bool takes = pe_rope_scaling_takes(reading->type, key) && !from_beside;
        items[key] = takes ? pe_rope_config_find(reading, reading->scaling, row->name) : NULL;
        if (items[key] && member_read(reading, items[key], row, out, err)) {
            return err->code;
        }
    }
    return PE_OK;
}

/* Leaves what takes part: an attention factor wins over what it would be made of. */
static void settle(const struct rope_reading *reading, struct rope_scaling *scaling,
                   struct pe_config_item *items[ROPE_SCALING_N_FIELDS]) {
    bool attention = pe_rope_scaling_has(scaling, ROPE_KEY_ATTENTION);
    bool quotient = !attention && scaling->mscale > 0 && scaling->mscale_all_dim > 0;
    bool deepseek = reading->family->scales_softmax && scaling->mscale_all_dim > 0;
    if (reading->type == ROPE_TYPE_LONGROPE && attention) {
        drop(scaling, ROPE_KEY_FACTOR, &scaling->factor);
    }
    if (quotient && !deepseek) {
        pe_rope_config_use(items[ROPE_KEY_MSCALE]);
        pe_rope_config_use(items[ROPE_KEY_MSCALE_ALL]);
        scaling->attention_factor = pe_rope_scaling_quotient(scaling);
        scaling->given |= ROPE_BIT(ROPE_KEY_ATTENTION);
    }
    if (!quotient || !deepseek) {
        drop(scaling, ROPE_KEY_MSCALE, &scaling->mscale);
    }
    if (!deepseek) {
        drop(scaling, ROPE_KEY_MSCALE_ALL, &scaling->mscale_all_dim);
    }
    for (int key = 1; key < ROPE_SCALING_N_FIELDS; key++) {
        if (items[key] && pe_rope_scaling_has(scaling, key)) {
            pe_rope_config_use(items[key]);
        }
    }
}

/* ---- What is beside ------------------------------------------------------------------------------------ */

/* A length in tokens from beside the scaling into a row of it. */
static int length_beside(const struct rope_reading *reading, const char *key, struct rope_scaling *scaling,
                         struct pe_error *err) {
    struct rope_figure length;
    if (pe_rope_config_number(reading, "", key, 0, &length, err) || !length.item) {
        return err->code;
    }
    if (!(length.value >= 2 && length.value <= PE_POSITION_MAX && length.value == floor(length.value))) {
        return pe_rope_config_fail(length.item, PE_ERR_RANGE, err,
                                   "got %.17g, allowed are whole numbers from 2 to 2^53", length.value);
    }
    pe_rope_config_use(length.item);
    scaling->original_max_position_embeddings = (int64_t)length.value;
    scaling->given |= ROPE_BIT(ROPE_KEY_ORIGINAL);
    return PE_OK;
}

static int original_complete(const struct rope_reading *reading, struct rope_scaling *scaling,
                             struct pe_error *err) {
    bool dynamic = reading->type == ROPE_TYPE_DYNAMIC;
    const char *key = dynamic ? "max_position_embeddings" : FIELDS[ROPE_KEY_ORIGINAL].name;
    if (!pe_rope_scaling_takes(reading->type, ROPE_KEY_ORIGINAL) ||
        pe_rope_scaling_has(scaling, ROPE_KEY_ORIGINAL)) {
        return PE_OK;
    }
    if (length_beside(reading, key, scaling, err) || pe_rope_scaling_has(scaling, ROPE_KEY_ORIGINAL)) {
        return err->code;
    }
    return pe_rope_config_missing(reading, dynamic ? "" : reading->scaling, key,
                                  "it is the context of the training, which is not guessed", err);
}

static int factor_complete(const struct rope_reading *reading, struct rope_scaling *scaling,
                           struct pe_error *err) {
    bool longrope = reading->type == ROPE_TYPE_LONGROPE;
    bool derives = longrope || reading->type == ROPE_TYPE_YARN;
    struct rope_figure most;
    if (!derives || pe_rope_scaling_has(scaling, ROPE_KEY_FACTOR) ||
        (longrope && pe_rope_scaling_has(scaling, ROPE_KEY_ATTENTION))) {
        return PE_OK;
    }
    if (pe_rope_config_number(reading, "", "max_position_embeddings", 0, &most, err)) {
        return err->code;
    }
    if (!most.item) {
        return pe_rope_config_missing(reading, reading->scaling, "factor",
                                      "and so is max_position_embeddings, which it would follow from", err);
    }
    pe_rope_config_use(most.item);
    double factor = most.value / (double)scaling->original_max_position_embeddings;
    return pe_field_set_real(FIELDS, &FIELDS[ROPE_KEY_FACTOR], scaling, factor, err)
               ? at_scaling(reading, err)
               : PE_OK;
}

static int needs_check(const struct rope_reading *reading, const struct rope_scaling *scaling,
                       struct pe_error *err) {
    for (int key = 1; key < ROPE_SCALING_N_FIELDS; key++) {
        if (pe_rope_scaling_needs(reading->type, key) && !pe_rope_scaling_has(scaling, key)) {
            return pe_rope_config_missing(reading, reading->scaling, FIELDS[key].name,
                                          "its rope_type needs it", err);
        }
    }
    return PE_OK;
}

/* ---- All of it ----------------------------------------------------------------------------------------- */

static int scaling_read(const struct rope_reading *reading, struct rope_scaling *out,
                        struct rope_figure *part, struct pe_error *err) {
    struct pe_config_item *items[ROPE_SCALING_N_FIELDS] = {NULL};
    pe_fields_init(FIELDS, ROPE_SCALING_N_FIELDS, out, sizeof *out);
    out->rope_type = reading->type;
    out->given = 1; /* its first row */
    if (reading->scaling[0] && members_read(reading, out, items, err)) {
        return err->code;
    }
    if (original_complete(reading, out, err) || factor_complete(reading, out, err) ||
        needs_check(reading, out, err)) {
        return err->code;
    }
    settle(reading, out, items);
    if (pe_rope_scaling_keeps_width(out->rope_type)) {
        pe_rope_config_use(part->item);
        out->partial_rotary_factor = part->value;
        out->given |= ROPE_BIT(ROPE_KEY_PARTIAL);
    }
    return PE_OK;
}

int pe_rope_config_scaling(struct rope_reading *reading, struct rope *params, struct rope_figure *part,
                           struct pe_error *err) {
    struct rope_scaling told;
    reading->source.part = part->value;
    if ((reading->scaling[0] && adopt_sections(reading, params, err)) ||
        scaling_read(reading, &told, part, err)) {
        return err->code;
    }
    return pe_rope_adopt_scaling(params, &reading->source, &told, err);
}
