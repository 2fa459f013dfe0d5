/* SPDX-License-Identifier: MIT
 *
 * rope from a model's own configuration (config.json of transformers), by the rows of rope_family.c. The
 * scaling is read from rope_parameters, or from rope_scaling as it was called, by rope_scaling.c's own rows.
 *
 * Every key that is looked at is marked as used, and the reply lists the others: what was not understood is
 * told.
 */
#include "encodings/rope.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Keys ---------------------------------------------------------------------------------------------- */

/* One configuration being read. */
struct reading {
    const struct pe_config *config;
    const struct rope_family *family;
    const struct rope_layer *layer; /* NULL: all layers are alike */
    const char *within;             /* "" or "text_config." */
    char scaling[96];               /* "rope_parameters.", "rope_scaling.full_attention." ...; "" = none */
};

#define PATH_SIZE 160

static struct pe_config_item *item_at(const struct pe_config *config, const char *key) {
    for (size_t i = 0; i < config->n; i++) {
        if (strcmp(config->items[i].key, key) == 0) {
            config->items[i].used = true;
            return config->items[i].kind == PE_CONFIG_NULL ? NULL : &config->items[i];
        }
    }
    return NULL;
}

static struct pe_config_item *item_of(const struct reading *reading, const char *prefix, const char *key) {
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s%s%s", reading->within, prefix, key);
    return item_at(reading->config, path);
}

static int item_fail(const struct pe_config_item *item, const char *what, struct pe_error *err) {
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "hf_config.%s", item->key);
    return pe_fail(err, PE_ERR_TYPE, path, "must be %s", what);
}

static int missing_fail(const struct reading *reading, const char *key, const char *why,
                        struct pe_error *err) {
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "hf_config.%s%s", reading->within, key);
    return pe_fail(err, PE_ERR_MISSING, path, "is missing, %s", why);
}

/* The number of a key; `fallback` where it is not there. */
static int number_of(const struct reading *reading, const char *prefix, const char *key, double fallback,
                     double *out, struct pe_error *err) {
    const struct pe_config_item *item = key ? item_of(reading, prefix, key) : NULL;
    *out = fallback;
    if (!item) {
        return PE_OK;
    }
    if (item->kind != PE_CONFIG_NUMBER) {
        return item_fail(item, "a number", err);
    }
    *out = item->number;
    return PE_OK;
}

static bool has_prefix(const struct reading *reading, const char *prefix) {
    char path[PATH_SIZE];
    size_t length = (size_t)snprintf(path, sizeof path, "%s%s", reading->within, prefix);
    for (size_t i = 0; i < reading->config->n; i++) {
        if (strncmp(reading->config->items[i].key, path, length) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- The model ----------------------------------------------------------------------------------------- */

static int family_read(struct reading *reading, struct pe_error *err) {
    const struct pe_config_item *inner = item_at(reading->config, "text_config.model_type");
    const struct pe_config_item *item = item_at(reading->config, "model_type");
    reading->within = inner ? "text_config." : "";
    item = inner ? inner : item;
    if (!item) {
        return missing_fail(reading, "model_type", "it tells how the rest is read", err);
    }
    if (item->kind != PE_CONFIG_TEXT) {
        return item_fail(item, "a string", err);
    }
    reading->family = rope_family_find(item->text);
    if (reading->family) {
        return PE_OK;
    }
    char names[400];
    return pe_fail(err, PE_ERR_UNKNOWN_NAME, "hf_config.model_type", "\"%.40s\" is not known, known are %s",
                   item->text, rope_family_names(names, sizeof names));
}

static int layer_fail(const struct reading *reading, const char *got, struct pe_error *err) {
    const struct rope_layer *layers = reading->family->layers;
    const char *first = layers[0].type ? layers[0].type : "full_attention";
    const char *second = layers[1].type ? layers[1].type : "sliding_attention";
    if (!got) {
        return pe_fail(err, PE_ERR_MISSING, "layer_type",
                       "is missing, the layers of this model differ: %s or %s", first, second);
    }
    return pe_fail(err, PE_ERR_CHOICE, "layer_type", "must be %s or %s, got \"%.60s\"", first, second, got);
}

/* The layers of this type; all, where the model's do not differ. */
static int layer_read(struct reading *reading, const char *type, struct pe_error *err) {
    const struct rope_layer *layers = reading->family->layers;
    if (!layers[0].type) {
        return PE_OK;
    }
    for (int i = 0; i < 2 && type; i++) {
        reading->layer = strcmp(layers[i].type, type) == 0 ? &layers[i] : reading->layer;
    }
    return reading->layer ? PE_OK : layer_fail(reading, type, err);
}

/* Where the scaling of these layers is. */
static int scaling_find(struct reading *reading, const char *type, struct pe_error *err) {
    bool by_layer = has_prefix(reading, "rope_parameters.full_attention.") ||
                    has_prefix(reading, "rope_parameters.sliding_attention.");
    if (by_layer) {
        snprintf(reading->scaling, sizeof reading->scaling, "rope_parameters.%.60s.", type ? type : "");
        return type && has_prefix(reading, reading->scaling) ? PE_OK : layer_fail(reading, type, err);
    }
    const char *where = has_prefix(reading, "rope_parameters.") ? "rope_parameters." : "rope_scaling.";
    bool there = has_prefix(reading, where) && (!reading->layer || reading->layer->scaled);
    snprintf(reading->scaling, sizeof reading->scaling, "%s", there ? where : "");
    return PE_OK;
}

/* ---- Fields -------------------------------------------------------------------------------------------- */

/* A field that the configuration gives and perhaps the request, too. */
static int adopt_whole(struct rope *params, int field, const char *name, int64_t *member, double value,
                       struct pe_error *err) {
    if (value < 1 || value > 1e15 || value != floor(value)) {
        return pe_fail(err, PE_ERR_RANGE, "hf_config", "gives %s %.17g, which is not a whole number from 1",
                       name, value);
    }
    if ((params->given >> field & 1) && *member != (int64_t)value) {
        return pe_fail(err, PE_ERR_CONFLICT, name, "is %lld, but hf_config gives %.17g", (long long)*member,
                       value);
    }
    *member = (int64_t)value;
    params->given |= UINT64_C(1) << field;
    return PE_OK;
}

/* The width of a head: a number of its own, or what is left of the model's for each head. */
static int head_width(const struct reading *reading, double *head, struct pe_error *err) {
    const struct rope_family *family = reading->family;
    double hidden, heads;
    if (number_of(reading, "", family->head_dim, 0, head, err) ||
        number_of(reading, "", family->hidden, 0, &hidden, err) ||
        number_of(reading, "", family->heads, 0, &heads, err)) {
        return err->code;
    }
    if (*head == 0 && !(hidden > 0 && heads > 0)) {
        return missing_fail(reading, family->hidden ? family->hidden : family->head_dim,
                            "the width of a head follows from it", err);
    }
    *head = *head == 0 ? floor(hidden / heads) : *head;
    return PE_OK;
}

static int adopt_width(const struct reading *reading, struct rope *params, struct pe_error *err) {
    const struct rope_family *family = reading->family;
    double head, part, rotary, nope;
    if (head_width(reading, &head, err) || number_of(reading, "", family->rotary_dim, 0, &rotary, err) ||
        number_of(reading, "", family->nope, 0, &nope, err) ||
        number_of(reading, "", family->partial, family->default_partial, &part, err) ||
        number_of(reading, reading->scaling, "partial_rotary_factor", part, &part, err)) {
        return err->code;
    }
    if (nope > 0 &&
        adopt_whole(params, ROPE_QK_HEAD_DIM, "qk_head_dim", &params->qk_head_dim, head + nope, err)) {
        return err->code;
    }
    rotary = rotary == 0 ? floor(head * part) : rotary;
    params->config_part = part;
    return adopt_whole(params, ROPE_HEAD_DIM, "head_dim", &params->head_dim, head, err) ||
                   adopt_whole(params, ROPE_ROTARY_DIM, "rotary_dim", &params->rotary_dim, rotary, err)
               ? err->code
               : PE_OK;
}

static int adopt_base(const struct reading *reading, struct rope *params, struct pe_error *err) {
    const struct rope_family *family = reading->family;
    double base = reading->layer ? reading->layer->default_base : family->default_base;
    const char *key = reading->layer ? reading->layer->base : family->base;
    if (number_of(reading, "", key, base, &base, err) ||
        (reading->scaling[0] && number_of(reading, reading->scaling, "rope_theta", base, &base, err))) {
        return err->code;
    }
    if (!(base >= 1 && base <= 1e300)) {
        return pe_fail(err, PE_ERR_RANGE, "hf_config", "gives base %g, allowed is 1 to 1e+300", base);
    }
    if ((params->given >> ROPE_BASE & 1) && params->base != base) {
        return pe_fail(err, PE_ERR_CONFLICT, "base", "is %g, but hf_config gives %g", params->base, base);
    }
    params->base = base;
    params->given |= UINT64_C(1) << ROPE_BASE;
    return PE_OK;
}

static int adopt_layout(const struct reading *reading, struct rope *params, struct pe_error *err) {
    if (params->layout != 0 && params->layout != reading->family->layout) {
        return pe_fail(err, PE_ERR_CONFLICT, "layout", "differs from that of model_type %s",
                       reading->family->model_type);
    }
    params->layout = reading->family->layout;
    params->given |= UINT64_C(1) << ROPE_LAYOUT;
    return PE_OK;
}

/* mrope_section: the only list of whole numbers. */
static int adopt_sections(const struct reading *reading, struct rope *params, struct pe_error *err) {
    const struct pe_config_item *item = item_of(reading, reading->scaling, "mrope_section");
    const struct pe_config_item *interleaved = item_of(reading, reading->scaling, "mrope_interleaved");
    if (!item) {
        return PE_OK;
    }
    if (item->kind != PE_CONFIG_NUMBERS || item->list->dim[0] > PE_MAX_INTS) {
        return item_fail(item, "a short list of whole numbers", err);
    }
    params->sections.n = item->list->dim[0];
    for (size_t i = 0; i < params->sections.n; i++) {
        double value = ((const double *)item->list->data)[i];
        if (value < 0 || value > 32768 || value != floor(value)) {
            return item_fail(item, "a short list of whole numbers", err);
        }
        params->sections.v[i] = (int64_t)value;
    }
    params->section_layout = interleaved && interleaved->kind == PE_CONFIG_BOOL && interleaved->flag
                                 ? ROPE_INTERLEAVED
                                 : ROPE_CONTIGUOUS;
    params->given |= UINT64_C(1) << ROPE_SECTIONS | UINT64_C(1) << ROPE_SECTION_LAYOUT;
    return PE_OK;
}

/* ---- Scaling ------------------------------------------------------------------------------------------- */

/* The type under both of its names. Qwen2-VL calls its sections a type, Phi-3 LongRoPE "su". */
static int type_read(const struct reading *reading, int *type, struct pe_error *err) {
    const struct pe_config_item *item = item_of(reading, reading->scaling, "rope_type");
    const struct pe_config_item *legacy = item_of(reading, reading->scaling, "type");
    item = item ? item : legacy;
    if (!item) {
        return missing_fail(reading, reading->scaling, "without rope_type it cannot be read", err);
    }
    if (item->kind != PE_CONFIG_TEXT) {
        return item_fail(item, "a string", err);
    }
    const char *name = strcmp(item->text, "mrope") == 0 ? "default"
                       : strcmp(item->text, "su") == 0  ? "longrope"
                                                        : item->text;
    *type = rope_scaling_type(name);
    if (*type == 0) {
        char path[PATH_SIZE];
        snprintf(path, sizeof path, "hf_config.%s", item->key);
        return pe_fail(err, PE_ERR_CHOICE, path, "\"%.40s\" is not known", item->text);
    }
    return PE_OK;
}

/* One row of the scaling from the item of its name. */
static int member_read(const struct pe_config_item *item, int key, struct rope_scaling *out,
                       struct pe_error *err) {
    const struct pe_field *fields = rope_scaling_fields, *row = &rope_scaling_fields[key];
    int failed = PE_OK;
    if (row->kind == PE_KIND_TENSOR && item->kind == PE_CONFIG_NUMBERS) {
        failed = pe_field_set_tensor(fields, row, out, item->list, err);
    } else if (row->kind == PE_KIND_BOOL && item->kind == PE_CONFIG_BOOL) {
        failed = pe_field_set_bool(fields, row, out, item->flag, err);
    } else if (row->kind != PE_KIND_TENSOR && row->kind != PE_KIND_BOOL && item->kind == PE_CONFIG_NUMBER) {
        failed = pe_field_set_real(fields, row, out, item->number, err);
    } else {
        return item_fail(item,
                         row->kind == PE_KIND_TENSOR ? "a list of numbers"
                         : row->kind == PE_KIND_BOOL ? "true or false"
                                                     : "a number",
                         err);
    }
    return failed ? pe_error_at(err, "hf_config.scaling") : PE_OK;
}

/* What the model's code takes from elsewhere when it is not in the scaling itself. */
static int complete(const struct reading *reading, const struct rope *params, struct rope_scaling *scaling,
                    struct pe_error *err) {
    double most, original;
    if (number_of(reading, "", "max_position_embeddings", 0, &most, err) ||
        number_of(reading, "", "original_max_position_embeddings", 0, &original, err)) {
        return err->code;
    }
    rope_scaling_complete(scaling, most, original, params->config_part);
    return PE_OK;
}

static int adopt_scaling(const struct reading *reading, struct rope *params, struct pe_error *err) {
    struct rope_scaling *scaling = &params->adopted;
    int type;
    pe_fields_init(rope_scaling_fields, ROPE_SCALING_N_FIELDS, scaling, sizeof *scaling);
    if (type_read(reading, &type, err)) {
        return err->code;
    }
    scaling->rope_type = type;
    scaling->given = 1; /* its first row */
    for (int key = 1; key < ROPE_SCALING_N_FIELDS; key++) {
        if (!rope_scaling_takes(type, key)) {
            continue;
        }
        const struct pe_config_item *item = item_of(reading, reading->scaling, rope_scaling_fields[key].name);
        if (item && member_read(item, key, scaling, err)) {
            return err->code;
        }
    }
    if (complete(reading, params, scaling, err)) {
        return err->code;
    }
    if (rope_scaling_keeps_width(scaling)) {
        params->rotary_dim = params->head_dim;
    }
    params->scaling = type == rope_scaling_type("default") ? NULL : scaling;
    if (params->scaling) {
        params->given |= UINT64_C(1) << ROPE_SCALING;
    }
    return PE_OK;
}

int rope_config_adopt(struct rope *params, struct pe_error *err) {
    struct reading reading = {.config = &params->hf_config};
    bool own_scaling = params->scaling && params->scaling != &params->adopted;
    if (own_scaling) {
        return pe_fail(err, PE_ERR_CONFLICT, "scaling", "is given beside hf_config, which says it already");
    }
    if (family_read(&reading, err) || layer_read(&reading, params->layer_type, err) ||
        scaling_find(&reading, params->layer_type, err) || adopt_layout(&reading, params, err) ||
        adopt_width(&reading, params, err) || adopt_base(&reading, params, err)) {
        return err->code;
    }
    if (!reading.scaling[0]) {
        return PE_OK;
    }
    return adopt_sections(&reading, params, err) || adopt_scaling(&reading, params, err) ? err->code : PE_OK;
}
