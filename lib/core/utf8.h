/* SPDX-License-Identifier: MIT
 *
 * UTF-8 in names that came from outside.
 */
#ifndef PE_UTF8_H
#define PE_UTF8_H

#include "posenc_fields.h"

/* Writes a character (not a surrogate, at most 0x10FFFF) as 1 to 4 bytes; returns how many. */
size_t pe_utf8_write(uint32_t code, char *out);
/* A name for a message: cut between characters to fit, control characters as '?'. Returns out. */
char *pe_utf8_show(const char *name, char *out, size_t size);

#endif
