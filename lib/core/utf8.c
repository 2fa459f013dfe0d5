/* SPDX-License-Identifier: MIT
 *
 * UTF-8 (RFC 3629): 0xxxxxxx | 110xxxxx 10xxxxxx | 1110xxxx .. | 11110xxx .. . Strict: no longer form than a
 * character needs (E0 80, F0 80: two spellings of one name would be two names), no surrogates (ED A0),
 * nothing over 10FFFF (F4 90).
 */
#include "core/utf8.h"

#include <string.h>

/* The first bytes of each form, and what their second byte may be. */
static const struct {
    unsigned char first, last, second_first, second_last, length;
} forms[] = {
    {0x00, 0x7F, 0x00, 0xFF, 1}, {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
    {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
    {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
};
#define N_FORMS (sizeof forms / sizeof *forms)

size_t pe_utf8_read(const char *text, size_t left, uint32_t *value) {
    static const unsigned char lead_bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    const unsigned char *p = (const unsigned char *)text;
    size_t form = 0;
    while (form < N_FORMS && (p[0] < forms[form].first || p[0] > forms[form].last)) {
        form++;
    }
    if (form == N_FORMS || forms[form].length > left) {
        return 0;
    }
    size_t length = forms[form].length;
    if (length > 1 && (p[1] < forms[form].second_first || p[1] > forms[form].second_last)) {
        return 0;
    }
    *value = p[0] & lead_bits[length];
    for (size_t i = 1; i < length; i++) {
        if ((p[i] & 0xC0) != 0x80) {
            return 0;
        }
        *value = *value << 6 | (p[i] & 0x3F);
    }
    return length;
}

size_t pe_utf8_write(uint32_t code, char *out) {
    static const unsigned char leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, code >>= 6) {
        out[i] = (char)(0x80 | (code & 0x3F));
    }
    out[0] = (char)(leads[length] | code);
    return length;
}

char *pe_utf8_show(const char *name, char *out, size_t size) {
    size_t used = 0, left = strlen(name);
    while (left > 0) {
        uint32_t value;
        size_t length = pe_utf8_read(name, left, &value);
        size_t taken = length ? length : 1;
        if (used + taken >= size) {
            break;
        }
        if (length == 0 || (unsigned char)*name < 0x20 || *name == 0x7f) {
            out[used] = '?';
        } else {
            memcpy(out + used, name, length);
        }
        used += taken;
        name += taken;
        left -= taken;
    }
    out[used] = '\0';
    return out;
}
