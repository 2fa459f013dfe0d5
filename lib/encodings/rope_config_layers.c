/* SPDX-License-Identifier: MIT
 *
 * Which model a configuration is of, which of its layers are asked for, and where their scaling is:
 *
 *     rope_parameters.<type of layers>.*     where they differ, in version 5 of transformers
 *     rope_parameters.*, rope_scaling.*      else, or for those layers that the family says
 */
#include "encodings/rope_config.h"

#include <stdio.h>
#include <string.h>

/* Does anything below this prefix say something? */
static bool has_prefix(const struct rope_reading *reading, const char *prefix) {
    char path[ROPE_CONFIG_PATH];
    size_t length = (size_t)snprintf(path, sizeof path, "%s%s", reading->within, prefix);
    for (size_t i = 0; i < reading->config->n; i++) {
        const struct pe_config_item *item = &reading->config->items[i];
        if (item->kind != PE_CONFIG_NULL && strncmp(item->key, path, length) == 0) {
            return true;
        }
    }
    return false;
}

/* Is there anything below this prefix, be it null? */
static bool has_below(const struct rope_reading *reading, const char *prefix) {
    for (size_t i = 0; i < reading->config->n; i++) {
        if (strncmp(reading->config->items[i].key, prefix, strlen(prefix)) == 0) {
            return true;
        }
    }
    return false;
}

/* Where an object is read, anything else is not passed over. Its members are items of their own. */
static int object_check(const struct rope_reading *reading, const char *key, struct pe_error *err) {
    const struct pe_config_item *item = pe_rope_config_find(reading, "", key);
    return item && item->kind != PE_CONFIG_EMPTY
               ? pe_rope_config_fail(item, PE_ERR_TYPE, err, "must be an object")
               : PE_OK;
}

/* ---- The model ----------------------------------------------------------------------------------------- */

static int family_fail(const struct pe_config_item *item, struct pe_error *err) {
    char path[ROPE_CONFIG_PATH], names[340];
    snprintf(path, sizeof path, "hf_config.%s", item->key);
    pe_rope_family_names(item->text, names, sizeof names);
    return pe_fail(
        err, PE_ERR_UNKNOWN_NAME, path,
        "\"%.40s\" is no rotary model known here: say head_dim, base, layout and scaling instead%s%s",
        item->text, *names ? ", or one of " : "", names);
}

/* Positions in another way than by turning. */
static int other_check(const struct rope_reading *reading, struct pe_error *err) {
    const char *key = reading->family->other;
    struct pe_config_item *item = key ? pe_rope_config_find(reading, "", key) : NULL;
    if (!item) {
        return PE_OK;
    }
    if (item->kind != PE_CONFIG_BOOL) {
        return pe_rope_config_fail(item, PE_ERR_TYPE, err, "must be true or false");
    }
    pe_rope_config_use(item);
    return item->flag ? pe_rope_config_fail(item, PE_ERR_UNSUPPORTED, err,
                                            "is true: no query or key of this model turns")
                      : PE_OK;
}

int pe_rope_config_family(struct rope_reading *reading, struct pe_error *err) {
    reading->within = "";
    bool nested = has_prefix(reading, "text_config.");
    struct pe_config_item *outer = pe_rope_config_find(reading, "", "model_type");
    struct pe_config_item *inner = pe_rope_config_find(reading, "text_config.", "model_type");
    struct pe_config_item *item = inner ? inner : outer;
    if (object_check(reading, "text_config", err)) {
        return err->code;
    }
    reading->within = nested ? "text_config." : "";
    if (!item) {
        return pe_fail(err, PE_ERR_MISSING, "hf_config.model_type",
                       "is missing, it tells how the rest is read");
    }
    if (item->kind != PE_CONFIG_TEXT) {
        return pe_rope_config_fail(item, PE_ERR_TYPE, err, "must be a string");
    }
    reading->family = pe_rope_family_find(item->text);
    if (!reading->family) {
        return family_fail(item, err);
    }
    pe_rope_config_use(item);
    reading->source = (struct rope_source){.name = "hf_config"};
    snprintf(reading->model, sizeof reading->model, "model_type %s", reading->family->model_type);
    reading->source.model = reading->model;
    return other_check(reading, err);
}

/* ---- Types of layers ----------------------------------------------------------------------------------- */

#define NAME_SIZE 64
#define MAX_NAMES 8

/* The types of layers that a configuration tells apart. */
struct names {
    char v[MAX_NAMES][NAME_SIZE];
    int n;
};

static bool is_among(const struct names *names, const char *name) {
    for (int i = 0; i < names->n; i++) {
        if (strcmp(names->v[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static void name_add(struct names *names, const char *name, size_t length) {
    char copy[NAME_SIZE];
    snprintf(copy, sizeof copy, "%.*s", (int)(length < NAME_SIZE ? length : NAME_SIZE - 1), name);
    if (names->n < MAX_NAMES && !is_among(names, copy)) {
        snprintf(names->v[names->n++], NAME_SIZE, "%s", copy);
    }
}

/* The objects within rope_parameters. */
static void names_within(struct names *names, const struct rope_reading *reading) {
    char path[ROPE_CONFIG_PATH];
    size_t length = (size_t)snprintf(path, sizeof path, "%srope_parameters.", reading->within);
    for (size_t i = 0; i < reading->config->n; i++) {
        const char *key = reading->config->items[i].key;
        const char *dot = strncmp(key, path, length) == 0 ? strchr(key + length, '.') : NULL;
        if (dot) {
            name_add(names, key + length, (size_t)(dot - key) - length);
        }
    }
}

static int layer_fail(const struct names *names, const char *got, struct pe_error *err) {
    char list[MAX_NAMES * NAME_SIZE] = "";
    for (int i = 0, used = 0; i < names->n; i++) {
        used += snprintf(list + used, sizeof list - (size_t)used, "%s%s", i ? " or " : "", names->v[i]);
    }
    if (!got) {
        return pe_fail(err, PE_ERR_MISSING, "layer_type",
                       "is missing, the layers of this model differ: %.160s", list);
    }
    return pe_fail(err, PE_ERR_CHOICE, "layer_type", "must be %.160s, got \"%.60s\"", list, got);
}

/* One object for all, under its old or new name. */
static int scaling_find(struct rope_reading *reading, struct pe_error *err) {
    bool for_these = !reading->layer || reading->layer->scaled;
    bool parameters = has_prefix(reading, "rope_parameters."), scaling = has_prefix(reading, "rope_scaling.");
    if (parameters && scaling) {
        char path[ROPE_CONFIG_PATH];
        snprintf(path, sizeof path, "hf_config.%srope_scaling", reading->within);
        return pe_fail(err, PE_ERR_CONFLICT, path,
                       "rope_parameters is there, too: the same thing under two names");
    }
    if (for_these && (parameters || scaling)) {
        snprintf(reading->scaling, sizeof reading->scaling, "%s",
                 parameters ? "rope_parameters." : "rope_scaling.");
        return PE_OK;
    }
    char path[ROPE_CONFIG_PATH];
    snprintf(path, sizeof path, "%srope_scaling", reading->within);
    if (for_these) {
        pe_rope_config_use(pe_rope_config_item(reading->config, path)); /* null: there is none */
    }
    return PE_OK;
}

/* Layers that a family tells apart, but where a configuration says that they are alike. */
static const struct rope_layer *layers_of(const struct rope_reading *reading) {
    static const struct rope_layer none[2] = {{.type = NULL}, {.type = NULL}};
    const struct rope_family *family = reading->family;
    char path[ROPE_CONFIG_PATH];
    if (!family->alike) {
        return family->layers;
    }
    snprintf(path, sizeof path, "%s%s", reading->within, family->alike);
    struct pe_config_item *item = pe_rope_config_item(reading->config, path);
    pe_rope_config_use(item);
    return item && item->kind == PE_CONFIG_NULL ? none : family->layers;
}

/* What the class of a family would fill in by itself. */
static int parameters_check(const struct rope_reading *reading, bool by_type, struct pe_error *err) {
    const struct rope_family *family = reading->family;
    char path[ROPE_CONFIG_PATH];
    snprintf(path, sizeof path, "%srope_scaling", reading->within);
    bool flat = has_prefix(reading, "rope_parameters.") || has_prefix(reading, "rope_scaling.") ||
                pe_rope_config_item(reading->config, path);
    bool told = family->layers[0].type ? by_type : flat;
    return !family->needs_parameters || told
               ? PE_OK
               : pe_rope_config_missing(reading, "", "rope_parameters",
                                        family->layers[0].type ? "it tells what each type of layers does"
                                                               : "and so is rope_scaling: where none are "
                                                                 "said, the class of the model has its own",
                                        err);
}

static int still_check(const struct rope_reading *reading, struct pe_error *err) {
    const struct rope_layer *layer = reading->layer;
    return layer && layer->still
               ? pe_fail(err, PE_ERR_UNSUPPORTED, "layer_type",
                         "is %s, but in this model nothing turns in such layers", layer->type)
               : PE_OK;
}

/* The family's layers of this type, unless it has none; all of its types into `names`. */
static const struct rope_layer *layer_of(const struct rope_reading *reading, const char *type,
                                         struct names *names) {
    const struct rope_layer *layers = layers_of(reading), *found = NULL;
    for (int i = 0; i < 2 && layers[i].type; i++) {
        name_add(names, layers[i].type, strlen(layers[i].type));
        found = type && strcmp(layers[i].type, type) == 0 ? &layers[i] : found;
    }
    return found;
}

/* Which layers, and where their scaling is. */
int pe_rope_config_layer(struct rope_reading *reading, const char *type, struct pe_error *err) {
    struct names within = {.n = 0}, own = {.n = 0};
    if (object_check(reading, "rope_parameters", err) || object_check(reading, "rope_scaling", err)) {
        return err->code;
    }
    names_within(&within, reading);
    reading->layer = layer_of(reading, type, &own);
    bool by_type = within.n > 0;
    const struct names *names = by_type ? &within : &own;
    if (names->n == 0 && type) {
        return pe_fail(err, PE_ERR_CONFLICT, "layer_type",
                       "is \"%.60s\", but in this model all layers are alike", type);
    }
    if (names->n && !(type && is_among(names, type))) {
        return layer_fail(names, type, err);
    }
    if (still_check(reading, err) || parameters_check(reading, by_type, err)) {
        return err->code;
    }
    if (!by_type) {
        return scaling_find(reading, err);
    }
    char path[ROPE_CONFIG_PATH];
    snprintf(reading->scaling, sizeof reading->scaling, "rope_parameters.%.63s.", type);
    snprintf(path, sizeof path, "%s%s", reading->within, reading->scaling);
    return has_below(reading, path) ? PE_OK : layer_fail(names, type, err); /* a name that is cut is none */
}
