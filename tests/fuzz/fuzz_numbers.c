/* SPDX-License-Identifier: MIT
 *
 * The reader of JSON numbers: the input is a text that begins with a number, or not. It is held against the
 * grammar of RFC 8259 as an automaton, against strtod and strtof, which glibc rounds correctly, and, for the
 * flag `beyond`, against 2^53 by the digits. What was read is written, and read again to the same bits.
 */
#include "fuzz/target.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The grammar --------------------------------------------------------------------------------------- */

enum state { START, MINUS, ZERO, WHOLE, POINT, FRACTION, MARK, SIGN, EXPONENT, WRONG };

static enum state grammar_step(enum state state, char c) {
    bool digit = c >= '0' && c <= '9', mark = c == 'e' || c == 'E';
    switch (state) {
    case START:
    case MINUS:
        return c == '-' && state == START ? MINUS : c == '0' ? ZERO : digit ? WHOLE : WRONG;
    case ZERO:
    case WHOLE:
        return digit && state == WHOLE ? WHOLE : c == '.' ? POINT : mark ? MARK : WRONG;
    case POINT:
        return digit ? FRACTION : WRONG;
    case FRACTION:
        return digit ? FRACTION : mark ? MARK : WRONG;
    case MARK:
        return c == '+' || c == '-' ? SIGN : digit ? EXPONENT : WRONG;
    case SIGN:
    case EXPONENT:
        return digit ? EXPONENT : WRONG;
    default:
        return WRONG;
    }
}

/* Does the text begin with a number, and where does it end, or go wrong? A digit after a leading zero does
 * not end the number: it is wrong. */
static bool grammar_accepts(const char *text, size_t n, size_t *end) {
    enum state state = START;
    size_t at = 0;
    for (enum state next; at < n && (next = grammar_step(state, text[at])) != WRONG; at++) {
        state = next;
    }
    *end = at;
    bool digit_follows = at < n && text[at] >= '0' && text[at] <= '9';
    return (state == ZERO && !digit_follows) || state == WHOLE || state == FRACTION || state == EXPONENT;
}

/* ---- The value ----------------------------------------------------------------------------------------- */

/* Is |number| > 2^53? By its digits: 0.d1d2d3... * 10^point. */
static bool beyond_limit(const char *number) {
    static const char limit[] = "9007199254740992";
    const char *c = number + (*number == '-');
    char digits[sizeof limit] = "";
    size_t n = 0;
    bool fraction = false, more = false;
    long long point = 0;
    for (; *c && *c != 'e' && *c != 'E'; c++) {
        if (*c == '.') {
            fraction = true;
        } else if (n == 0 && *c == '0') {
            point -= fraction;
        } else {
            more = more || (n == sizeof limit - 1 && *c != '0');
            if (n < sizeof limit - 1) {
                digits[n++] = *c;
            }
            point += !fraction;
        }
    }
    long long exponent = *c ? strtoll(c + 1, NULL, 10) : 0; /* at most some 9e18, and point is small */
    memset(digits + n, '0', sizeof limit - 1 - n);
    long long want = (long long)sizeof limit - 1 - point;
    if (n == 0 || exponent != want) {
        return n > 0 && exponent > want;
    }
    int order = memcmp(digits, limit, sizeof limit - 1);
    return order > 0 || (order == 0 && more);
}

static bool same_double(double a, double b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

static bool same_float(float a, float b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

static void check_value(const struct pe_number *number, enum pe_number_status status, const char *text) {
    double value = strtod(text, NULL);
    float single = strtof(text, NULL);
    FUZZ_EXPECT(same_double(number->value, value), "%s: %a, strtod has %a", text, number->value, value);
    FUZZ_EXPECT(same_float(number->single, single), "%s: %a, strtof has %a", text, (double)number->single,
                (double)single);
    FUZZ_EXPECT(number->twice == !same_float((float)value, single), "%s: twice is %d", text, number->twice);
    FUZZ_EXPECT((status == PE_NUMBER_OVERFLOW) == (isinf(value) != 0), "%s: status %d", text, (int)status);
    bool beyond = fabs(value) == 0x1p53 && beyond_limit(text);
    FUZZ_EXPECT(number->beyond == beyond, "%s: beyond is %d", text, number->beyond);
}

/* ---- Writing ------------------------------------------------------------------------------------------- */

static void check_text(const char *text, size_t n, double value, float single, bool is_single) {
    struct pe_number again;
    FUZZ_EXPECT(n <= 25, "%.*s has %zu bytes", (int)n, text, n);
    if (isinf(is_single ? (double)single : value)) {
        FUZZ_EXPECT(n == 4 && memcmp(text, "null", 4) == 0, "an infinity is %.*s", (int)n, text);
        return;
    }
    FUZZ_EXPECT(pe_number_parse(text, n, &again) == PE_NUMBER_OK, "cannot be read: %.*s", (int)n, text);
    FUZZ_EXPECT(is_single ? same_float(again.single, single) : same_double(again.value, value),
                "another number is read back from %.*s", (int)n, text);
}

static void check_written(const struct pe_number *number) {
    char text[PE_NUMBER_ROOM];
    size_t n = pe_number_write_f64(text, number->value);
    check_text(text, n, number->value, 0, false);
    n = pe_number_write_f32(text, number->single);
    check_text(text, n, 0, number->single, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *bytes = fuzz_copy(data, size);
    const char *at = bytes;
    struct pe_number number, whole;
    size_t end;
    bool accepts = grammar_accepts(bytes, size, &end);
    enum pe_number_status status = pe_number_scan(&at, bytes + size, &number);
    FUZZ_EXPECT((status != PE_NUMBER_SYNTAX) == accepts, "%.*s: status %d", (int)size, bytes, (int)status);
    FUZZ_EXPECT(at == bytes + end, "%.*s: stops at %td, not %zu", (int)size, bytes, at - bytes, end);
    enum pe_number_status all = pe_number_parse(bytes, size, &whole);
    FUZZ_EXPECT(all == (end == size ? status : PE_NUMBER_SYNTAX), "%.*s: as a whole %d", (int)size, bytes,
                (int)all);
    if (accepts) {
        char *text = fuzz_text(bytes, end);
        check_value(&number, status, text);
        check_written(&number);
        free(text);
    }
    free(bytes);
    return 0;
}
