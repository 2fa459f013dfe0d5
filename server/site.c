/* SPDX-License-Identifier: MIT
 *
 * Only what the table names is there: no path is ever looked up in a file system.
 */
#include "site.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *path, const void *file) {
    return strcmp(path, ((const struct site_file *)file)->path);
}

const struct site_file *site_find(const struct site *site, const char *path) {
    return site && site->n ? bsearch(path, site->files, site->n, sizeof *site->files, compare) : NULL;
}

bool site_is_document(const struct site_file *file) {
    static const char html[] = "text/html";
    return strncmp(file->media, html, sizeof html - 1) == 0;
}
