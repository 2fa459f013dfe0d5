/* SPDX-License-Identifier: MIT
 *
 * Paths to what answers them: an operation, or a page (a small document made at once).
 */
#ifndef ROUTES_H
#define ROUTES_H

#include "api/api.h"
#include "wire/text.h"

/* What a page is made from and written to. */
struct page {
    const struct service *service;
    const char *argument; /* what stands for {name} in the path; NULL without */
    struct text *text;
    const char *media; /* default application/json */
    bool fresh;        /* changes from moment to moment: not to be cached */
    int status;        /* default 200 */
};

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

/* api/pages*.c */
int page_index(struct page *page, struct pe_error *err);
int page_encodings(struct page *page, struct pe_error *err);
int page_encoding(struct page *page, struct pe_error *err);
int page_presets(struct page *page, struct pe_error *err);
int page_tables(struct page *page, struct pe_error *err);
int page_table(struct page *page, struct pe_error *err);
int page_limits(struct page *page, struct pe_error *err);
int page_version(struct page *page, struct pe_error *err);
int page_health(struct page *page, struct pe_error *err);
int page_ready(struct page *page, struct pe_error *err);
int page_metrics(struct page *page, struct pe_error *err);

#endif
