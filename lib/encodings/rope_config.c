/* SPDX-License-Identifier: MIT
 *
 * rope from a model's own configuration, config.json of transformers as it is. What its code would make of
 * the file becomes the fields of the encoding, by the rows of rope_family.c; the scaling is
 * rope_config_scaling.c's.
 *
 *     rope_parameters    the scaling, the base and the part that turns; perhaps one such object a layer_type
 *     rope_scaling       the same under its older name, without the base
 *     text_config        all of it, in models that see or hear, too
 *
 * A key is marked as used where its value took part, and the reply lists the others, so that what was not
 * understood is seen. Fields of the request that say the same are fine, and a conflict where they differ.
 */
#include "encodings/rope_config.h"

#include "core/scale.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Items --------------------------------------------------------------------------------------------- */

struct pe_config_item *pe_rope_config_item(const struct pe_config *config, const char *path) {
    for (size_t i = 0; i < config->n; i++) {
        if (strcmp(config->items[i].key, path) == 0) {
            return &config->items[i];
        }
    }
    return NULL;
}

struct pe_config_item *pe_rope_config_find(const struct rope_reading *reading, const char *prefix,
                                           const char *key) {
    char path[ROPE_CONFIG_PATH];
    snprintf(path, sizeof path, "%s%s%s", reading->within, prefix, key);
    struct pe_config_item *item = pe_rope_config_item(reading->config, path);
    return item && item->kind == PE_CONFIG_NULL ? NULL : item;
}

void pe_rope_config_use(struct pe_config_item *item) {
    if (item) {
        item->used = true;
    }
}

int pe_rope_config_fail(const struct pe_config_item *item, int code, struct pe_error *err, const char *format,
                        ...) {
    char path[ROPE_CONFIG_PATH], text[240];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(path, sizeof path, "hf_config.%s", item->key);
    return pe_fail(err, code, path, "%s", text);
}

int pe_rope_config_missing(const struct rope_reading *reading, const char *prefix, const char *key,
                           const char *why, struct pe_error *err) {
    char path[ROPE_CONFIG_PATH];
    snprintf(path, sizeof path, "hf_config.%s%s%s", reading->within, prefix, key);
    return pe_fail(err, PE_ERR_MISSING, path, "is missing, %s", why);
}

int pe_rope_config_number(const struct rope_reading *reading, const char *prefix, const char *key,
                          double fallback, struct rope_figure *out, struct pe_error *err) {
    *out = (struct rope_figure){fallback, key ? pe_rope_config_find(reading, prefix, key) : NULL};
    if (!out->item) {
        return PE_OK;
    }
    if (out->item->kind != PE_CONFIG_NUMBER) {
        return pe_rope_config_fail(out->item, PE_ERR_TYPE, err, "must be a number");
    }
    out->value = out->item->number;
    return PE_OK;
}

/* ---- Fields -------------------------------------------------------------------------------------------- */

/* A whole number from 1 to 65536, as the fields of widths have it. */
static int whole_read(const struct rope_reading *reading, const char *key, double fallback,
                      struct rope_figure *out, struct pe_error *err) {
    if (pe_rope_config_number(reading, "", key, fallback, out, err)) {
        return err->code;
    }
    if (out->item && !(out->value >= 1 && out->value <= 65536 && out->value == floor(out->value))) {
        return pe_rope_config_fail(out->item, PE_ERR_RANGE, err,
                                   "got %.17g, allowed are whole numbers from 1 to 65536", out->value);
    }
    return PE_OK;
}

/* The width of a head: by its own key, the family's own, or what the model's width leaves for each. */
static int head_read(const struct rope_reading *reading, struct rope_figure *head, struct pe_error *err) {
    const struct rope_family *family = reading->family;
    const struct rope_layer *layer = reading->layer;
    bool own = layer && layer->head_dim;
    struct rope_figure hidden, heads;
    if (whole_read(reading, own ? layer->head_dim : family->head_dim,
                   own ? layer->default_head : family->default_head, head, err)) {
        return err->code;
    }
    if (head->value > 0) {
        pe_rope_config_use(head->item);
        return PE_OK;
    }
    if (whole_read(reading, family->hidden, 0, &hidden, err) ||
        whole_read(reading, family->heads, 0, &heads, err)) {
        return err->code;
    }
    if (!hidden.item || !heads.item) {
        const char *key = !family->hidden ? family->head_dim : !hidden.item ? family->hidden : family->heads;
        return pe_rope_config_missing(reading, "", key, "the width of a head follows from it", err);
    }
    *head = (struct rope_figure){floor(hidden.value / heads.value), hidden.item};
    pe_rope_config_use(hidden.item);
    pe_rope_config_use(heads.item);
    return head->value < 2
               ? pe_rope_config_fail(hidden.item, PE_ERR_RANGE, err,
                                     "makes heads of width %g with %g heads, allowed is 2 and more",
                                     head->value, heads.value)
               : PE_OK;
}

/* The part of the head that turns. Within the scaling it wins. */
static int part_read(const struct rope_reading *reading, struct rope_figure *part, struct pe_error *err) {
    const struct rope_family *family = reading->family;
    if (pe_rope_config_number(reading, "", family->partial, family->default_partial, part, err)) {
        return err->code;
    }
    struct rope_figure outer = *part;
    if (reading->scaling[0] &&
        pe_rope_config_number(reading, reading->scaling, "partial_rotary_factor", part->value, part, err)) {
        return err->code;
    }
    part->item = part->item ? part->item : outer.item;
    if (part->item && !(part->value > 0 && part->value <= 1)) {
        return pe_rope_config_fail(part->item, PE_ERR_RANGE, err, "got %.17g, allowed is above 0 up to 1",
                                   part->value);
    }
    return PE_OK;
}

static int rotary_check(const struct rope_figure *rotary, const struct rope_figure *head,
                        const struct rope_figure *part, struct pe_error *err) {
    const struct pe_config_item *item = rotary->item ? rotary->item : part->item ? part->item : head->item;
    bool wrong = rotary->value < 2 || rotary->value > head->value || fmod(rotary->value, 2) != 0;
    return wrong && item ? pe_rope_config_fail(
                               item, PE_ERR_RANGE, err,
                               "lets %g columns of a head of width %g turn, allowed are even numbers from "
                               "2: columns turn in pairs",
                               rotary->value, head->value)
                         : PE_OK;
}

/* rotary_dim, and whether the field partial_rotary_factor agrees. */
static int adopt_rotary(const struct rope_reading *reading, struct rope *params,
                        const struct rope_figure *head, struct rope_figure *part, struct pe_error *err) {
    struct rope_figure rotary;
    if (part_read(reading, part, err) || whole_read(reading, reading->family->rotary_dim, 0, &rotary, err)) {
        return err->code;
    }
    bool by_part = !rotary.item;
    rotary.value = by_part ? floor(head->value * part->value) : rotary.value;
    pe_rope_config_use(by_part ? part->item : rotary.item);
    if (rotary_check(&rotary, head, part, err)) {
        return err->code;
    }
    double said = pe_rope_given(params, ROPE_PARTIAL) ? floor(params->partial_rotary_factor * head->value)
                                                      : rotary.value;
    if (said != rotary.value) {
        return pe_fail(err, PE_ERR_CONFLICT, "partial_rotary_factor",
                       "is %g, but of hf_config %g columns of %g turn", params->partial_rotary_factor,
                       rotary.value, head->value);
    }
    double width = pe_rope_scaling_keeps_width(reading->type) ? head->value : rotary.value;
    return pe_rope_adopt_whole(params, &reading->source, ROPE_ROTARY_DIM, (int64_t)width, err);
}

/* Is it n^-0.5, the nearest double, or what 1/sqrt(n) makes of it? Files have both. */
static bool is_root(double n, double scale) {
    return scale == pe_scale_usual((size_t)n) || scale == 1 / sqrt(n);
}

/* What the softmax takes the root of. */
static int adopt_root(const struct rope_reading *reading, struct rope *params, double head,
                      struct pe_error *err) {
    const struct rope_family *family = reading->family;
    struct rope_figure nope, root, scale;
    if (whole_read(reading, family->nope, 0, &nope, err) ||
        whole_read(reading, family->root, family->default_root, &root, err) ||
        pe_rope_config_number(reading, "", family->multiplier, 1, &scale, err)) {
        return err->code;
    }
    double value = root.value;
    if (family->nope && !nope.item) {
        return pe_rope_config_missing(reading, "", family->nope, "the scale of the softmax follows from it",
                                      err);
    }
    if (family->nope) {
        value = head + nope.value;
        if (value > 65536) {
            return pe_rope_config_fail(nope.item, PE_ERR_RANGE, err,
                                       "makes queries of width %g, allowed is at most 65536", value);
        }
    } else if (family->multiplier) {
        value = scale.value >= 1.0 / 256 ? nearbyint(1 / (scale.value * scale.value)) : 0;
        if (!(value >= 1 && value <= 65536 && is_root(value, scale.value))) {
            return pe_rope_config_fail(scale.item, PE_ERR_RANGE, err,
                                       "got %.17g, allowed is 1/sqrt(n) of a whole number n from 1 to 65536",
                                       scale.value);
        }
    }
    pe_rope_config_use(nope.item);
    pe_rope_config_use(root.item);
    pe_rope_config_use(scale.item);
    return value == 0 ? PE_OK
                      : pe_rope_adopt_whole(params, &reading->source, ROPE_QK_HEAD_DIM, (int64_t)value, err);
}

/* The row that tells the base; NULL: the family's. */
static const struct rope_layer *base_layer(const struct rope_reading *reading) {
    const struct rope_layer *layer = reading->layer;
    char path[ROPE_CONFIG_PATH];
    if (!layer || !layer->null_is_first) {
        return layer;
    }
    snprintf(path, sizeof path, "%s%s", reading->within, layer->base);
    struct pe_config_item *item = pe_rope_config_item(reading->config, path);
    if (!item || item->kind != PE_CONFIG_NULL) {
        return layer;
    }
    pe_rope_config_use(item);
    return &reading->family->layers[0];
}

static int adopt_base(const struct rope_reading *reading, struct rope *params, struct pe_error *err) {
    const struct rope_layer *layer = base_layer(reading);
    struct rope_figure base, within = {0};
    if (pe_rope_config_number(reading, "", layer ? layer->base : reading->family->base,
                              layer ? layer->default_base : reading->family->default_base, &base, err) ||
        (reading->scaling[0] &&
         pe_rope_config_number(reading, reading->scaling, "rope_theta", 0, &within, err))) {
        return err->code;
    }
    base = within.item ? within : base;
    if (base.item && !(base.value >= 1 && base.value <= 1e300)) {
        return pe_rope_config_fail(base.item, PE_ERR_RANGE, err, "got %.17g, allowed is 1 to 1e+300",
                                   base.value);
    }
    pe_rope_config_use(base.item);
    return pe_rope_adopt_base(params, &reading->source, base.value, err);
}

static int adopt_layout(const struct rope_reading *reading, struct rope *params, struct pe_error *err) {
    const struct rope_family *family = reading->family;
    struct pe_config_item *item =
        family->interleave ? pe_rope_config_find(reading, "", family->interleave) : NULL;
    if (item && item->kind != PE_CONFIG_BOOL) {
        return pe_rope_config_fail(item, PE_ERR_TYPE, err, "must be true or false");
    }
    pe_rope_config_use(item);
    return pe_rope_adopt_layout(params, &reading->source,
                                item && !item->flag ? ROPE_LAYOUT_HALVES : family->layout, err);
}

int pe_rope_config_adopt(struct rope *params, struct pe_error *err) {
    struct rope_reading reading = {.config = &params->hf_config};
    struct rope_figure head, part;
    if (pe_rope_config_family(&reading, err) || pe_rope_config_layer(&reading, params->layer_type, err) ||
        pe_rope_config_type(&reading, err) || adopt_layout(&reading, params, err) ||
        head_read(&reading, &head, err) ||
        pe_rope_adopt_whole(params, &reading.source, ROPE_HEAD_DIM, (int64_t)head.value, err) ||
        adopt_root(&reading, params, head.value, err) || adopt_base(&reading, params, err) ||
        adopt_rotary(&reading, params, &head, &part, err) ||
        pe_rope_config_scaling(&reading, params, &part, err)) {
        return err->code;
    }
    return PE_OK;
}
