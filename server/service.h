/* SPDX-License-Identifier: MIT
 *
 * What every request may look at: the configuration and what was loaded by it. Owned by main, const while
 * requests run; the metrics are atomic counters of their own.
 */
#ifndef SERVICE_H
#define SERVICE_H

#include "posenc_fields.h"

struct config;  /* config.h */
struct presets; /* wire/bind_preset.h */
struct tables;  /* tables.h */
struct metrics; /* metrics.h */
struct budget;  /* budget.h */
struct plans;   /* api/plans.h */
struct site;    /* site.h */

struct service {
    const struct config *config;
    const struct presets *presets;
    const struct tables *tables;
    const struct site *site; /* the web page; NULL = none */
    struct metrics *metrics;
    struct plans *plans;           /* kept for requests to come; NULL = none */
    struct pe_allocator allocator; /* big blocks; zero = malloc */
    struct budget *budget;         /* of bodies; what the allocator gives is counted there; NULL = none */
};

#endif
