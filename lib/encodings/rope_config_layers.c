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
        char path[ROPE_CONFIG_PATH], names[440];
        snprintf(path, sizeof path, "hf_config.%s", item->key);
        return pe_fail(err, PE_ERR_UNKNOWN_NAME, path,
                       "\"%.40s\" is not known: say head_dim, base, layout and scaling instead, or one of %s",
                       item->text, pe_rope_family_names(names, sizeof names));
    }
    pe_rope_config_use(item);
    reading->source = (struct rope_source){.name = "hf_config"};
    snprintf(reading->model, sizeof reading->model, "model_type %s", reading->family->model_type);
    reading->source.model = reading->model;
    return PE_OK;
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

/* Which layers, and where their scaling is. */
int pe_rope_config_layer(struct rope_reading *reading, const char *type, struct pe_error *err) {
    const struct rope_layer *layers = reading->family->layers;
    struct names differing = {.n = 0}, any = {.n = 0};
    if (object_check(reading, "rope_parameters", err) || object_check(reading, "rope_scaling", err)) {
        return err->code;
    }
    names_within(&differing, reading);
    bool by_type = differing.n > 0;
    for (int i = 0; i < 2; i++) {
        if (layers[i].type && !by_type) {
            name_add(&differing, layers[i].type, strlen(layers[i].type));
        }
        reading->layer =
            type && layers[i].type && strcmp(layers[i].type, type) == 0 ? &layers[i] : reading->layer;
    }
    name_add(&any, "full_attention", 14);
    name_add(&any, "sliding_attention", 17);
    const struct names *names = differing.n ? &differing : &any;
    if ((differing.n || type) && !(type && is_among(names, type))) {
        return layer_fail(names, type, err);
    }
    if (reading->family->needs_parameters && !by_type) {
        return pe_rope_config_missing(reading, "", "rope_parameters",
                                      "it tells what each type of layers does", err);
    }
    if (!by_type) {
        return scaling_find(reading, err);
    }
    char path[ROPE_CONFIG_PATH];
    snprintf(reading->scaling, sizeof reading->scaling, "rope_parameters.%.63s.", type);
    snprintf(path, sizeof path, "%s%s", reading->within, reading->scaling);
    return has_below(reading, path) ? PE_OK : layer_fail(names, type, err); /* a name that is cut is none */
}
