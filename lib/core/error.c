/* SPDX-License-Identifier: MIT
 *
 * One error value per chain of calls. The first failure wins: a later one never overwrites it, so the text a
 * user sees is the one written where the fault was found. Each layer on the way up only puts its own path
 * segment in front.
 *
 * Messages repeat what users sent, which may be any bytes, and cut it at some length. Here, in one place,
 * they become one line of valid UTF-8, whatever came in, so that replies and log lines can be built of them
 * without another look. What does not fit ends in "...".
 */
#include "posenc_fields.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *slug, *title;
} codes[PE_ERR_COUNT] = {
    [PE_OK] = {"ok", "no error"},
    [PE_ERR_MISSING] = {"missing", "required field is missing"},
    [PE_ERR_UNKNOWN_FIELD] = {"unknown_field", "unknown field"},
    [PE_ERR_UNKNOWN_NAME] = {"unknown_name", "unknown name"},
    [PE_ERR_TYPE] = {"type", "value of the wrong kind"},
    [PE_ERR_CHOICE] = {"choice", "value is not one of the choices"},
    [PE_ERR_RANGE] = {"range", "value out of range"},
    [PE_ERR_SHAPE] = {"shape", "wrong shape"},
    [PE_ERR_DTYPE] = {"dtype", "element type not allowed"},
    [PE_ERR_NONFINITE] = {"nonfinite", "number is not finite"},
    [PE_ERR_CONFLICT] = {"conflict", "fields contradict each other"},
    [PE_ERR_SYNTAX] = {"syntax", "malformed text"},
    [PE_ERR_FORMAT] = {"format", "malformed file"},
    [PE_ERR_UNSUPPORTED] = {"unsupported", "operation not supported by this encoding"},
    [PE_ERR_LIMIT] = {"limit", "over a limit"},
    [PE_ERR_MEMORY] = {"memory", "out of memory"},
    [PE_ERR_STOPPED] = {"stopped", "ended early"},
};

const char *pe_version(void) {
    return PE_VERSION;
}

const char *pe_code_slug(int code) {
    return code >= 0 && code < PE_ERR_COUNT ? codes[code].slug : NULL;
}

const char *pe_code_title(int code) {
    return code >= 0 && code < PE_ERR_COUNT ? codes[code].title : NULL;
}

/* One line of valid UTF-8: what is not becomes '?'. */
static void text_clean(char *text) {
    for (size_t left = strlen(text); left > 0;) {
        uint32_t value;
        size_t length = pe_utf8_read(text, left, &value);
        if (length == 0 || value < 0x20 || value == 0x7f) {
            *text = '?';
            length = 1;
        }
        text += length;
        left -= length;
    }
}

/* A text of `length` bytes was written to `size`: if it was cut, says so, and ends before the cut letter. */
static void text_finish(char *text, size_t size, int length) {
    if (length >= 0 && (size_t)length >= size) {
        size_t end = size - sizeof "...";
        while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80) {
            end--;
        }
        memcpy(text + end, "...", sizeof "...");
    }
    text_clean(text);
}

static void error_set(struct pe_error *err, int code, const char *path, const char *format, va_list args)
    PE_PRINTF(4, 0);

static void error_set(struct pe_error *err, int code, const char *path, const char *format, va_list args) {
    err->code = code;
    err->limit_name = NULL;
    err->limit = err->got = 0;
    text_finish(err->path, sizeof err->path, snprintf(err->path, sizeof err->path, "%s", path));
    text_finish(err->text, sizeof err->text, vsnprintf(err->text, sizeof err->text, format, args));
}

int pe_fail(struct pe_error *err, int code, const char *path, const char *format, ...) {
    if (err->code) {
        return err->code;
    }
    va_list args;
    va_start(args, format);
    error_set(err, code, path, format, args);
    va_end(args);
    return err->code;
}

int pe_fail_limit(struct pe_error *err, const char *path, const char *name, uint64_t limit, uint64_t got,
                  const char *format, ...) {
    if (err->code) {
        return err->code;
    }
    va_list args;
    va_start(args, format);
    error_set(err, PE_ERR_LIMIT, path, format, args);
    va_end(args);
    err->limit_name = name;
    err->limit = limit;
    err->got = got;
    return err->code;
}

bool pe_stop_asked(const struct pe_stop *stop) {
    return stop && stop->asked(stop->context);
}

int pe_error_poll(struct pe_error *err) {
    if (!err->code && pe_stop_asked(err->stop)) {
        pe_fail(err, PE_ERR_STOPPED, "", "the work was stopped before its end");
    }
    return err->code;
}

int pe_error_at(struct pe_error *err, const char *segment) {
    if (!err->code) {
        return PE_OK;
    }
    char rest[sizeof err->path];
    memcpy(rest, err->path, sizeof rest);
    bool joined = rest[0] == '\0' || rest[0] == '[' || segment[0] == '\0';
    int length = snprintf(err->path, sizeof err->path, "%s%s%s", segment, joined ? "" : ".", rest);
    text_finish(err->path, sizeof err->path, length);
    return err->code;
}
