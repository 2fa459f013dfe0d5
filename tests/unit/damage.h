/* SPDX-License-Identifier: MIT
 *
 * Files cut short and with changed bytes, for the tests of readers.
 */
#ifndef DAMAGE_H
#define DAMAGE_H

#include <stddef.h>

/* Reads n bytes that may be anything, from memory of just that size; touches all that it makes of them.
 * Returns the reader's code. */
typedef int damage_reader(const unsigned char *bytes, size_t n);

/* Every beginning of a file [n] must be refused. Then each byte of it takes other values, every `step`th of
 * all: whatever the reader says, a sanitizer must find nothing. */
void damage_file(const void *file, size_t n, unsigned step, damage_reader *reader);

#endif
