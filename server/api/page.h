/* SPDX-License-Identifier: MIT
 *
 * Pages: small documents that are made at once, with no request but their path.
 */
#ifndef PAGE_H
#define PAGE_H

#include "service.h"
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
