/* SPDX-License-Identifier: MIT
 *
 * The descriptor of a plan: the type and all parameters as bytes, each with whether it was given, before anything is
 * resolved. Equal bytes make equal plans.
 */
#ifndef PLAN_KEY_H
#define PLAN_KEY_H

#include "posenc_fields.h"

#define PLAN_KEY_BYTES ((size_t)4096) /* longer ones are none */

struct plan_key {
    size_t n;   /* bytes; 0 at first */
    bool unfit; /* it is none: too long, or with what is not looked into */
    unsigned char bytes[PLAN_KEY_BYTES];
};

/* Adds the spec to an empty one. */
void plan_key_make(struct plan_key *key, const struct pe_spec *spec);
/* Does nothing in the plan point into the request that it was made for? */
bool plan_lives_alone(const struct pe_plan *plan);

#endif
