/* SPDX-License-Identifier: MIT
 *
 * Lists of names for messages. There may be hundreds, of which a message has room for a few: those that are like
 * the one that was asked for.
 */
#ifndef NAMES_H
#define NAMES_H

#include <stddef.h>

struct names {
    size_t n;
    const char *(*at)(const void *of, size_t i);
    const void *of;
};

/* "a, b, ...", as many as there is room for, those that are most like `asked` first; NULL: as they come. */
char *names_write(const struct names *names, const char *asked, char *text, size_t size);

#endif
