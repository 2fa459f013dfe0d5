/* SPDX-License-Identifier: MIT
 *
 * The request target: its path, and its query's names and values, percent-decoded.
 */
#ifndef QUERY_H
#define QUERY_H

#include "posenc.h"

/* The path of a target, decoded into the arena; *query is what follows '?', still encoded (or ""). The
 * absolute form ("http://host/path") is accepted. NULL on failure. */
const char *target_split(struct pe_arena *arena, const char *target, const char **query,
                         struct pe_error *err);

/* Takes the next "name=value" off *query. false at the end, or on failure (see err). */
bool query_next(struct pe_arena *arena, const char **query, const char **name, const char **value,
                struct pe_error *err);

/* All of them, in order, in the arena. */
struct query_pair {
    const char *name, *value;
};
struct query_pairs {
    struct query_pair *v;
    size_t n;
};
int query_read(struct pe_arena *arena, const char *query, struct query_pairs *pairs, struct pe_error *err);

#endif
