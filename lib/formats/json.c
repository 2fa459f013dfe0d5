/* SPDX-License-Identifier: MIT
 *
 * Just enough of JSON (RFC 8259) for headers of a fixed schema: texts, whole numbers, lists of them, and
 * objects whose members the caller takes one by one. Nothing nests but as the caller asks for it, so there is
 * no depth to bound; nothing is kept but the texts.
 */
#include "formats/json.h"

#include "core/stop.h"
#include "core/utf8.h"

#include <string.h>

int pe_json_fail(struct pe_json *json, const char *wanted) {
    size_t at = (size_t)(json->at - json->start);
    if (json->at == json->end) {
        return pe_fail(json->err, PE_ERR_FORMAT, "", "the JSON header ends where %s should be", wanted);
    }
    return pe_fail(json->err, PE_ERR_FORMAT, "", "the JSON header has byte 0x%02x at %zu, where %s should be",
                   *json->at, at, wanted);
}

/* Some may be as long as the body of a request. */
static bool asked_to_stop(const struct pe_json *json, size_t n) {
    return n % PE_STOP_ITEMS == 0 && pe_error_poll(json->err);
}

void pe_json_space(struct pe_json *json) {
    for (size_t n = 1; json->at < json->end && *json->at && strchr(" \t\n\r", *json->at); n++) {
        if (asked_to_stop(json, n)) {
            return;
        }
        json->at++;
    }
}

/* True, and past it, when that character comes next. */
static bool take(struct pe_json *json, char c) {
    pe_json_space(json);
    if (json->at == json->end || *json->at != (unsigned char)c) {
        return false;
    }
    json->at++;
    return true;
}

int pe_json_expect(struct pe_json *json, char c, const char *wanted) {
    return take(json, c) ? PE_OK : pe_json_fail(json, wanted);
}

/* XXXX of \uXXXX. */
static int unit_scan(struct pe_json *json, uint32_t *unit) {
    *unit = 0;
    for (int i = 0; i < 4; i++, json->at++) {
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        const char *digit = json->at < json->end && *json->at ? strchr(digits, *json->at) : NULL;
        if (!digit) {
            return pe_json_fail(json, "a hexadecimal digit");
        }
        *unit = *unit << 4 | (uint32_t)((digit - digits) & 15);
    }
    return PE_OK;
}

/* What comes after \u. Beyond FFFF a character is two units, D800.. and DC00.., of 10 bits each. */
static int unicode_scan(struct pe_json *json, uint32_t *code) {
    uint32_t low = 0;
    if (unit_scan(json, code)) {
        return json->err->code;
    }
    if (*code == 0) {
        return pe_json_fail(json, "a text without the zero character");
    }
    if (*code < 0xD800 || *code > 0xDFFF) {
        return PE_OK;
    }
    if (*code > 0xDBFF || json->end - json->at < 2 || memcmp(json->at, "\\u", 2) != 0) {
        return pe_json_fail(json, "the other half of a pair of surrogates");
    }
    json->at += 2;
    if (unit_scan(json, &low)) {
        return json->err->code;
    }
    if (low < 0xDC00 || low > 0xDFFF) {
        return pe_json_fail(json, "the second half of a pair of surrogates");
    }
    *code = 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00);
    return PE_OK;
}

/* What comes after a backslash. */
static int escape_scan(struct pe_json *json, uint32_t *code) {
    static const char from[] = "u\"\\/bfnrt", to[] = "u\"\\/\b\f\n\r\t";
    const char *escape = json->at < json->end && *json->at ? strchr(from, *json->at) : NULL;
    if (!escape) {
        return pe_json_fail(json, "an escape of JSON");
    }
    json->at++;
    *code = (uint32_t)to[escape - from];
    return *escape == 'u' ? unicode_scan(json, code) : PE_OK;
}

/* "text": unescaped, with a zero at its end, into json->texts. */
int pe_json_text(struct pe_json *json, const char **text, const char *wanted) {
    if (pe_json_expect(json, '"', wanted)) {
        return json->err->code;
    }
    *text = json->texts;
    for (size_t n = 0; json->at < json->end && *json->at != '"'; n++) {
        uint32_t code;
        if (asked_to_stop(json, n)) {
            return json->err->code;
        }
        size_t length = pe_utf8_read((const char *)json->at, (size_t)(json->end - json->at), &code);
        if (length == 0 || *json->at < 0x20) {
            return pe_json_fail(json, "a character of UTF-8 that is not a control character");
        }
        memcpy(json->texts, json->at, length);
        bool escaped = *json->at == '\\';
        json->at += length;
        if (escaped && escape_scan(json, &code)) {
            return json->err->code;
        }
        json->texts += escaped ? pe_utf8_write(code, json->texts) : length;
    }
    *json->texts++ = '\0';
    return pe_json_expect(json, '"', "a closing quote");
}

/* Digits without sign, leading zeros, point or exponent. */
static int size_scan(struct pe_json *json, size_t *size) {
    pe_json_space(json);
    const unsigned char *first = json->at;
    *size = 0;
    for (; json->at < json->end && *json->at >= '0' && *json->at <= '9'; json->at++) {
        size_t digit = (size_t)(*json->at - '0');
        if (*size > (SIZE_MAX - digit) / 10) {
            return pe_fail(json->err, PE_ERR_FORMAT, "", "the JSON header has a number that is too large");
        }
        *size = *size * 10 + digit;
    }
    if (json->at == first || (*first == '0' && json->at - first > 1)) {
        json->at = first;
        return pe_json_fail(json, "a whole number");
    }
    return PE_OK;
}

/* [2,3] */
int pe_json_sizes(struct pe_json *json, struct pe_json_sizes *sizes) {
    *sizes = (struct pe_json_sizes){.product = 1};
    if (pe_json_expect(json, '[', "a [")) {
        return json->err->code;
    }
    if (take(json, ']')) {
        return PE_OK;
    }
    do {
        size_t size;
        if (size_scan(json, &size)) {
            return json->err->code;
        }
        if (sizes->n < PE_MAX_RANK) {
            sizes->v[sizes->n] = size;
        }
        sizes->n++;
        size_t factors[2] = {sizes->product, size};
        sizes->overflow |= !pe_size_product(factors, 2, &sizes->product);
    } while (take(json, ','));
    return pe_json_expect(json, ']', "a comma or a ]");
}

/* {"key": value, ...}: `item` takes one key with its value. */
int pe_json_object(struct pe_json *json, int (*item)(struct pe_json *json, void *context), void *context) {
    if (pe_json_expect(json, '{', "a {")) {
        return json->err->code;
    }
    if (take(json, '}')) {
        return PE_OK;
    }
    do {
        if (item(json, context)) {
            return json->err->code;
        }
    } while (take(json, ','));
    return pe_json_expect(json, '}', "a comma or a }");
}
