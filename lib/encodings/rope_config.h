/* SPDX-License-Identifier: MIT
 *
 * What rope_config*.c share: the families of models, and one configuration being read.
 */
#ifndef PE_ROPE_CONFIG_H
#define PE_ROPE_CONFIG_H

#include "encodings/rope.h"

/* Layers of one type: the key of their base, whether rope_scaling is for them, and the key of their width
 * where it is not that of the others (NULL). `still`: they have no positions, as nothing turns. */
struct rope_layer {
    const char *type, *base;
    double default_base;
    bool null_is_first; /* a base of null is that of the first row of layers */
    bool scaled, still;
    const char *head_dim;
    double default_head;
};

/* Keys are NULL, and defaults 0, where a family has none. */
struct rope_family {
    const char *model_type;
    int layout;
    const char *interleave; /* the layout is halves where this is false */
    const char *head_dim;   /* the width of a head */
    double default_head;    /* where it is not there; 0 = the quotient of the next two */
    const char *hidden, *heads;
    const char *rotary_dim, *partial, *base;
    double default_partial, default_base;
    const char *nope; /* the width of the part of a query that never turns, a tensor of its own */
    const char *root; /* what the softmax takes the root of, where that is not head_dim */
    double default_root;
    const char *multiplier; /* the scale of the softmax itself */
    const char *longrope;   /* what its configurations once called longrope, beside su */
    bool scales_softmax;    /* mscale_all_dim does, as DeepSeek's code has it */
    bool needs_parameters; /* where none are said, its class has a scaling of its own, which is not guessed */
    const char *other;     /* a flag: positions are encoded in another way */
    const char *alike;     /* where this is null, layers do not differ, and all turn */
    struct rope_layer layers[2];
};

const struct rope_family *pe_rope_family_find(const char *model_type);
/* Those that begin with the same letter, by commas; "" where there are none. */
const char *pe_rope_family_names(const char *model_type, char *out, size_t size);

#define ROPE_CONFIG_PATH 200

struct rope_reading {
    const struct pe_config *config;
    const struct rope_family *family;
    const struct rope_layer *layer; /* NULL: all layers are alike */
    const char *within;             /* "" or "text_config." */
    char scaling[ROPE_CONFIG_PATH]; /* "rope_parameters.", "rope_parameters.full_attention." ...; "" = none */
    int type;                       /* of the scaling */
    bool is_mrope;                  /* its type is called mrope, so it has sections */
    struct rope_source source;
    char model[64]; /* of the source */
};

/* A number and the item that holds it; NULL: a default. */
struct rope_figure {
    double value;
    struct pe_config_item *item;
};

/* The item at a whole path, whatever it holds; NULL where it is not there. */
struct pe_config_item *pe_rope_config_item(const struct pe_config *config, const char *path);
/* The item of a key below `prefix` ("" or reading->scaling); NULL where it is not there, or null. It is not
 * yet marked as used: whoever lets its value take part does that. */
struct pe_config_item *pe_rope_config_find(const struct rope_reading *reading, const char *prefix,
                                           const char *key);
int pe_rope_config_number(const struct rope_reading *reading, const char *prefix, const char *key,
                          double fallback, struct rope_figure *out, struct pe_error *err);
void pe_rope_config_use(struct pe_config_item *item); /* NULL is passed over */
int pe_rope_config_fail(const struct pe_config_item *item, int code, struct pe_error *err, const char *format,
                        ...) PE_PRINTF(4, 5);
int pe_rope_config_missing(const struct rope_reading *reading, const char *prefix, const char *key,
                           const char *why, struct pe_error *err);

/* rope_config_layers.c: reading->family and within; then, of the layers of this type (NULL = not told), layer
 * and scaling. */
int pe_rope_config_family(struct rope_reading *reading, struct pe_error *err);
int pe_rope_config_layer(struct rope_reading *reading, const char *type, struct pe_error *err);

/* rope_config_scaling.c: reading->type; then the sections, and the scaling into params->adopted. `part` is
 * the part that turns. */
int pe_rope_config_type(struct rope_reading *reading, struct pe_error *err);
int pe_rope_config_scaling(struct rope_reading *reading, struct rope *params, struct rope_figure *part,
                           struct pe_error *err);

#endif
