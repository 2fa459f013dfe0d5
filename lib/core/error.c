/* SPDX-License-Identifier: MIT
 *
 * One error value per chain of calls. The first failure wins: a later one never overwrites it, so the text a
 * user sees is the one written where the fault was found. Each layer on the way up only puts its own path
 * segment in front.
 */
#include "posenc.h"

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

static void error_set(struct pe_error *err, int code, const char *path, const char *format, va_list args) {
    err->code = code;
    snprintf(err->path, sizeof err->path, "%s", path);
    vsnprintf(err->text, sizeof err->text, format, args);
}

int pe_fail(struct pe_error *err, int code, const char *path, const char *format, ...) {
    if (err->code)
        return err->code;
    va_list args;
    va_start(args, format);
    error_set(err, code, path, format, args);
    va_end(args);
    return err->code;
}

int pe_fail_limit(struct pe_error *err, const char *path, const char *name, uint64_t limit, uint64_t got,
                  const char *format, ...) {
    if (err->code)
        return err->code;
    va_list args;
    va_start(args, format);
    error_set(err, PE_ERR_LIMIT, path, format, args);
    va_end(args);
    err->limit_name = name;
    err->limit = limit;
    err->got = got;
    return err->code;
}

int pe_error_at(struct pe_error *err, const char *segment) {
    if (!err->code)
        return PE_OK;
    char rest[sizeof err->path];
    memcpy(rest, err->path, sizeof rest);
    bool joined = rest[0] == '\0' || rest[0] == '[';
    size_t head = (size_t)snprintf(err->path, sizeof err->path, "%s%s", segment, joined ? "" : ".");
    if (head < sizeof err->path)
        snprintf(err->path + head, sizeof err->path - head, "%s", rest);
    return err->code;
}
