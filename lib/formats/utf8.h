/* SPDX-License-Identifier: MIT
 *
 * UTF-8 in names that came from outside.
 */
#ifndef PE_UTF8_H
#define PE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the character that text[0..left) begins with; 0 when it is not UTF-8 (RFC 3629). left > 0. */
size_t pe_utf8_length(const unsigned char *text, size_t left);
/* Writes a character (not a surrogate, at most 0x10FFFF) as 1 to 4 bytes; returns how many. */
size_t pe_utf8_write(uint32_t code, char *out);
/* A name for a message: cut between characters to fit, control characters as '?'. Returns out. */
char *pe_utf8_show(const char *name, char *out, size_t size);

#endif
