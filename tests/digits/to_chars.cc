/* SPDX-License-Identifier: MIT
 *
 * C++ has the shortest decimal of a float in its library, C has not.
 */
#include "to_chars.h"

#include <charconv>

size_t to_chars_f32(char *out, float value) {
    return static_cast<size_t>(std::to_chars(out, out + 32, value, std::chars_format::scientific).ptr - out);
}
