/* SPDX-License-Identifier: MIT
 *
 * Paths to what answers them: an operation, or a page (a small document made at once).
 */
#ifndef ROUTES_H
#define ROUTES_H

#include "api/api.h"
#include "api/page.h"

struct route {
    const char *path;       /* "/v1/encodings/{type}" */
    const char *get, *post; /* names for logs and metrics; NULL = not by that method */
    const struct api_op *op;
    int (*page)(struct page *page, struct pe_error *err);
    bool admin; /* also on the admin listener */
    const char *doc;
};

/* Copies the route of a path to *out; *argument points into path. false: there is none. */
bool routes_find(const char *path, struct route *out, const char **argument);
/* The names of all routes and methods, for metrics_open. Returns how many; at most `max` are written. */
size_t routes_names(const char **names, size_t max);

#endif
