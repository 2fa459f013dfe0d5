/* SPDX-License-Identifier: MIT
 *
 * std::to_chars behind C: a printer that shares nothing with ours (Ryu, where ours is Schubfach).
 */
#ifndef TO_CHARS_H
#define TO_CHARS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The shortest text of a float that is finite, "d.ddde-07"; no more than 32 bytes, without a zero at the end. */
size_t to_chars_f32(char *out, float value);

#ifdef __cplusplus
}
#endif

#endif
