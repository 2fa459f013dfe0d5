/* SPDX-License-Identifier: MIT
 *
 * JSON values into structs. Private to bind*.c: only they know jansson.
 */
#ifndef BIND_VALUE_H
#define BIND_VALUE_H

#include "wire/bind.h"

#include <jansson.h>

/* "an object", "a string" ...: for messages. */
const char *bind_json_word(const json_t *value);
/* There is no such field; `names` are those there are. Keys that are no plain words are quoted: [""]. */
int bind_unknown_member(const char *key, const char *names, struct pe_error *err);
/* All members of an object into a struct. `path` is where the object stands in the document, "" at the root;
 * errors come out relative to it. `skip` is a member that was read already, or NULL. */
int bind_members(struct bind *bind, const struct bind_target *targets, size_t n_targets, const json_t *object,
                 const char *path, const char *skip, struct pe_error *err);
/* {"type": ..., parameters} into a spec; errors relative to the object. */
int bind_spec_object(struct bind *bind, struct pe_spec *spec, const json_t *object, const char *path,
                     struct pe_error *err);
/* A string or an object into a spec; errors start with "encoding". */
int bind_spec_value(struct bind *bind, struct pe_spec *spec, const json_t *value, const char *path,
                    struct pe_error *err);
/* bind_config.c: a list of numbers that no lift took out (of a preset, of somebody else's object) as float64
 * [n]; NULL where something else is in it, or without memory. */
struct pe_tensor *bind_numbers(struct pe_arena *arena, const json_t *list, struct pe_error *err);
/* Somebody else's object. */
int bind_config(struct bind *bind, const struct bind_target *target, const struct pe_field *row,
                const json_t *value, struct pe_error *err);
/* How many coordinates posted positions have. */
int bind_axes(const struct pe_tensor *tensor);
/* An axis of size 0 makes a tensor empty, so that nothing but this bounds the others: PE_ERR_SHAPE. */
int bind_check_empty(const struct pe_tensor *tensor, struct pe_error *err);
/* The type that the request asks for, NONE where it does not. */
enum pe_dtype bind_asked_dtype(const struct bind *bind);
/* A posted tensor's type counts towards that of the result. */
void bind_note_dtype(struct bind *bind, enum pe_dtype dtype);

#endif
