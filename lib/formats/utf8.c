/* SPDX-License-Identifier: MIT
 *
 * UTF-8 (RFC 3629): 0xxxxxxx | 110xxxxx 10xxxxxx | 1110xxxx .. | 11110xxx .. . Strict: no longer form than a
 * character needs (E0 80, F0 80: two spellings of one name would be two names), no surrogates (ED A0),
 * nothing over 10FFFF (F4 90).
 */
#include "formats/utf8.h"

#include <string.h>

size_t pe_utf8_length(const unsigned char *text, size_t left) {
    unsigned char first = text[0];
    if (first < 0x80)
        return 1;
    size_t length = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
    if (length == 0 || length > left)
        return 0;
    unsigned char lowest = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    unsigned char highest = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (text[1] < lowest || text[1] > highest)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    return length;
}

size_t pe_utf8_write(uint32_t code, char *out) {
    static const unsigned char leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)(leads[length] | code);
    return length;
}

char *pe_utf8_show(const char *name, char *out, size_t size) {
    size_t used = 0, left = strlen(name);
    while (left > 0) {
        size_t length = pe_utf8_length((const unsigned char *)name, left);
        size_t taken = length ? length : 1;
        if (used + taken >= size)
            break;
        if (length == 0 || (unsigned char)*name < 0x20 || *name == 0x7f)
            out[used] = '?';
        else
            memcpy(out + used, name, length);
        used += taken;
        name += taken;
        left -= taken;
    }
    out[used] = '\0';
    return out;
}
