/* SPDX-License-Identifier: MIT
 *
 * Requests into structs, by field rows: from a query, from a JSON body whose arrays of numbers were lifted
 * out on the way in (lift.h), and from tensors of a binary body. Each may set a field once; which of them set
 * it makes no difference.
 */
#ifndef BIND_H
#define BIND_H

#include "service.h"
#include "wire/lift.h"

/* A struct and its rows. */
struct bind_target {
    const struct pe_field *fields;
    size_t n;
    void *base;
};

/* Positions described by a rule, while its members are still coming in. */
struct bind_rule {
    const struct pe_field *row; /* of the operation */
    struct pe_positions_rule rule;
};
#define BIND_MAX_RULES 2

/* Tensors of a binary body under names of their own, while they are still coming in. */
struct bind_tensors {
    const struct pe_field *row; /* of the operation */
    struct pe_named_tensor *list;
    size_t n, room;
};

struct bind {
    struct pe_arena *arena;
    const struct service *service;
    struct bind_target common; /* fields that every operation has */
    struct bind_target op;     /* the operation's own */
    struct lift *lift;         /* arrays of the JSON body; NULL = there is none */
    enum pe_dtype posted;      /* out: the widest type of a posted tensor, NONE without any */
    /* What a preset set, which a query may change: rows of the encoding, and of each row that is an object its
     * members (NULL: there is no preset). */
    uint64_t preset_given, *preset_members;
    struct bind_rule rules[BIND_MAX_RULES];
    size_t n_rules;
    struct bind_tensors tensors;
};

/* "type=sinusoidal&d_model=8&positions=0:4": names of the common fields, the operation's, and the encoding's.
 * `encoding` or `type` may stand anywhere. */
int bind_query(struct bind *bind, const char *query, struct pe_error *err);
/* The JSON text of a body, as lift passed it on. Paths in errors start at the root of the body. */
int bind_json(struct bind *bind, const char *text, size_t length, struct pe_error *err);
/* One tensor of a binary body by its field's name: "q", "positions.mask", "table". Where the operation takes
 * tensors of any name, `weights`, those that are no field are of them: "h.0.ln_1.weight", also
 * "weights.h.0.ln_1.weight". */
int bind_named_tensor(struct bind *bind, const char *name, const struct pe_tensor *tensor,
                      struct pe_error *err);
/* After all parts of the request: positions whose rule came in pieces ("positions.mask" and rule), and
 * tensors of any name. */
int bind_finish(struct bind *bind, struct pe_error *err);
/* Which paths of a JSON body may hold arrays of numbers: for lift_options.watches. The context is the
 * operation's bind_target. */
bool bind_watches(void *context, const char *const *keys, size_t depth);

/* A batch: the JSON text is {"requests": [{"op": name, ...}, ...]}. Calls `open` with the number of entries,
 * then `begin` for each, which fills in a bind for the operation of that name (or fails), and binds the
 * entry's other members. An entry that
 * fails is reported by `end` and does not stop the others; a malformed list fails as a whole. */
struct bind_batch {
    struct pe_arena *arena; /* where the parsed text counts */
    void *context;
    size_t limit; /* entries allowed */
    int (*open)(void *context, size_t n, struct pe_error *err);
    int (*begin)(void *context, size_t index, const char *op, struct bind **bind, struct pe_error *err);
    void (*end)(void *context, size_t index, const struct pe_error *err);
};
int bind_batch_json(const struct bind_batch *batch, const char *text, size_t length, struct pe_error *err);

/* bind_preset.c: presets are encodings as one would post them, by name. */
struct preset {
    const char *name, *json, *doc;
    const char *source; /* "" = not told */
    const char *type;   /* of the encoding */
};
/* HANDLE. The built-in presets and those of a file ("" = none), whose entries replace built-in ones. */
int presets_open(struct presets **presets, const char *file, struct pe_error *err);
void presets_close(struct presets *presets);
size_t presets_count(const struct presets *presets);
const struct preset *presets_at(const struct presets *presets, size_t i);
const struct preset *presets_find(const struct presets *presets, const char *name);

#endif
