/* SPDX-License-Identifier: MIT
 *
 * Formatting for log lines. Everything works on the caller's buffer and leaves the C library's time zone
 * alone (gmtime_r takes the lock of tzset), so a thread that logs never waits for another one.
 */
#include "log_text.h"

#include "posenc_fields.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void log_text_put(struct log_text *out, const char *bytes, size_t n) {
    size_t room = out->size - out->length;
    if (n > room) {
        out->cut = true;
        n = room;
    }
    memcpy(out->data + out->length, bytes, n);
    out->length += n;
}

void log_text_print(struct log_text *out, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof text) {
        out->cut = true;
        return;
    }
    log_text_put(out, text, (size_t)n);
}

/* Characters that could end a line or steer a terminal. */
static bool is_control(uint32_t value) {
    return value < 0x20 || (value >= 0x7f && value < 0xa0) || value == 0x2028 || value == 0x2029;
}

void log_text_escape(struct log_text *out, const char *text, size_t max) {
    const unsigned char *p = (const unsigned char *)text;
    size_t n = 0;
    while (n < max && p[n] != '\0') {
        n++;
    }
    bool longer = p[n] != '\0';
    /* A character across the edge is left out as a whole. */
    for (int i = 0; longer && i < 3 && n > 0 && (p[n] & 0xc0) == 0x80; i++) {
        n--;
    }
    for (size_t i = 0; i < n;) {
        uint32_t value = 0;
        size_t length = pe_utf8_read(text + i, n - i, &value);
        if (length == 0) {
            log_text_print(out, "\\\\x%02x", (unsigned)p[i]);
        } else if (value == '"' || value == '\\') {
            log_text_print(out, "\\%c", (int)value);
        } else if (is_control(value)) {
            log_text_print(out, "\\u%04x", value);
        } else {
            log_text_put(out, text + i, length);
        }
        i += length ? length : 1;
    }
    if (longer) {
        log_text_put(out, "...", 3);
    }
}

bool log_text_plain(const char *text) {
    for (size_t n = strlen(text); n > 0;) {
        uint32_t value = 0;
        size_t length = pe_utf8_read(text, n, &value);
        if (length == 0 || is_control(value)) {
            return false;
        }
        text += length;
        n -= length;
    }
    return true;
}

/* Days since 1970-01-01 to a civil date. Years start in March here, so the leap day is the last of its year
 * and month lengths repeat by (153*m + 2)/5; an era is the 400 years after which the calendar repeats. */
static void civil_date(int64_t days, int64_t *year, int64_t *month, int64_t *day) {
    const int64_t shifted = days + 719468; /* from 0000-03-01 */
    const int64_t era = shifted / 146097, in_era = shifted % 146097;
    const int64_t years = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    const int64_t in_year = in_era - (365 * years + years / 4 - years / 100);
    const int64_t march_month = (5 * in_year + 2) / 153;
    *day = in_year - (153 * march_month + 2) / 5 + 1;
    *month = march_month < 10 ? march_month + 3 : march_month - 9;
    *year = era * 400 + years + (*month <= 2);
}

void log_text_time(struct log_text *out, struct timespec time) {
    int64_t seconds = time.tv_sec < 0 ? 0 : (int64_t)time.tv_sec; /* a clock before 1970 is not set */
    int64_t year, month, day, rest = seconds % 86400;
    civil_date(seconds / 86400, &year, &month, &day);
    log_text_print(out, "%04lld-%02lld-%02lldT%02lld:%02lld:%02lld.%03ldZ", (long long)year, (long long)month,
                   (long long)day, (long long)(rest / 3600), (long long)(rest / 60 % 60),
                   (long long)(rest % 60), time.tv_nsec / 1000000);
}

/* n lower-case hexadecimal digits, not all of them zero. */
static bool is_id(const char *text, size_t n) {
    return strspn(text, "0123456789abcdef") >= n && strspn(text, "0") < n;
}

/* 00-<32 hex>-<16 hex>-<2 hex>; neither id may be zero. */
const char *log_trace_id(const char *traceparent) {
    if (!traceparent || strlen(traceparent) != 55 || strncmp(traceparent, "00-", 3) != 0) {
        return NULL;
    }
    const char *trace = traceparent + 3, *parent = trace + 33, *flags = parent + 17;
    bool good = is_id(trace, 32) && trace[32] == '-' && is_id(parent, 16) && parent[16] == '-' &&
                strspn(flags, "0123456789abcdef") == 2;
    return good ? trace : NULL;
}
