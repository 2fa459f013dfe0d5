/* SPDX-License-Identifier: MIT
 *
 * Plans that are kept for the requests to come. A plan follows from its encoding's parameters alone and is
 * immutable, so requests for the same encoding share one; making it would take longer than all else that a
 * small request needs. What is kept is bounded in number and bytes; those used longest ago go first.
 */
#ifndef PLANS_H
#define PLANS_H

#include "posenc_fields.h"

struct metrics;
struct service;
struct plans; /* any thread */

#define PLANS_MOST 1024 /* kept at once */

/* A plan with its resolved encoding as JSON; immutable. */
struct planned {
    struct pe_plan *plan;
    const char *json;
    size_t json_n;
};

/* HANDLE; keep_bytes 0 keeps nothing. Hits and misses are counted in metrics, unless that is NULL. NULL = no
 * memory. */
struct plans *plans_open(size_t keep_bytes, struct metrics *metrics);
void plans_close(struct plans *plans); /* what was taken stays until it is given back */

/* The plan of a spec whose tables have their tensors: kept, or made and perhaps kept from now on. To be given
 * back. Either counts in the arena of who takes it: limits must not depend on who came before. Memory of large ones
 * is from the service's allocator. NULL on failure, of which nothing is kept. Without service->plans it is made. */
const struct planned *plans_take(const struct service *service, const struct pe_spec *spec,
                                 struct pe_arena *arena, struct pe_error *err);
void plans_give(const struct planned *planned);

#endif
