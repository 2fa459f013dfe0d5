/* SPDX-License-Identifier: MIT
 *
 * The web page: files that are part of the program, found by their path. `make` has server/www write them into a
 * folder, and server/www/embed.mjs turn that into the one table there is, build/site.c.
 */
#ifndef SITE_H
#define SITE_H

#include <stdbool.h>
#include <stddef.h>

#define SITE_TAG_SIZE 24

/* Bytes that last as long as the program. */
struct site_body {
    const unsigned char *bytes;
    size_t n;
    char etag[SITE_TAG_SIZE]; /* with its quotes */
};

struct site_file {
    const char *path;             /* "/", "/labs/order", "/assets/lab-0123ABCD.js" */
    const char *media;            /* Content-Type */
    bool immutable;               /* its name changes with its contents */
    struct site_body plain, gzip; /* gzip.n 0: would be no smaller */
};

struct site {
    const struct site_file *files; /* in order of their paths' bytes */
    size_t n;
};

extern const struct site site_embedded; /* empty where the page was left out */

/* NULL: there is no such file, or no site. */
const struct site_file *site_find(const struct site *site, const char *path);
/* A document, which may run scripts, and not what documents are made of. */
bool site_is_document(const struct site_file *file);

#endif
