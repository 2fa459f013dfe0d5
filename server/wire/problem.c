/* SPDX-License-Identifier: MIT
 *
 * Rows from codes to HTTP. The library's codes are all the caller's fault (400), but for sizes over a limit
 * (413) and a system without memory (503).
 */
#include "wire/problem.h"

#include "config.h"
#include "wire/text.h"

#include <string.h>

struct row {
    int code, status;
    const char *slug, *title; /* NULL: as the library says */
};

static const struct row rows[] = {
    {PE_ERR_LIMIT, 413, NULL, NULL},
    {PE_ERR_MEMORY, 503, NULL, NULL},
    {PE_ERR_STOPPED, 503, NULL, NULL},
    {SERVER_BAD_REQUEST, 400, "bad_request", "malformed request"},
    {SERVER_NOT_FOUND, 404, "not_found", "no such resource"},
    {SERVER_METHOD, 405, "method_not_allowed", "method not allowed"},
    {SERVER_NOT_ACCEPTABLE, 406, "not_acceptable", "no format fits this reply"},
    {SERVER_MEDIA_TYPE, 415, "media_type", "unsupported media type or coding"},
    {SERVER_NOT_IMPLEMENTED, 501, "not_implemented", "not implemented"},
    {SERVER_CLIENT_LIMIT, 429, "client_limit", "too many requests of one client"},
    {SERVER_BUSY, 503, "busy", "too busy, try again"},
    {SERVER_DRAINING, 503, "draining", "shutting down"},
    {SERVER_DEADLINE, 504, "deadline", "deadline exceeded"},
};

static const struct row *row_find(int code) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].code == code) {
            return &rows[i];
        }
    }
    return NULL;
}

int problem_status(int code) {
    const struct row *row = row_find(code);
    return row ? row->status : 400;
}

const char *problem_slug(int code) {
    const struct row *row = row_find(code);
    return row && row->slug ? row->slug : pe_code_slug(code);
}

static const char *problem_title(int code) {
    const struct row *row = row_find(code);
    return row && row->title ? row->title : pe_code_title(code);
}

/* The options that set limits, by the names that these have where they were met; `unit` is what one of them
 * counts for in the option. Other limits have the names of their options. */
struct option {
    const char *limit_name, *name;
    uint64_t unit;
};
static const struct option options[] = {
    {"request_memory", "expanded_bytes", 1},
    {"values", "expanded_bytes", sizeof(double)},
    {"envelope", "envelope_bytes", 1},
};

static struct option option_of(const char *limit_name) {
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (strcmp(options[i].limit_name, limit_name) == 0) {
            return options[i];
        }
    }
    return (struct option){limit_name, limit_name, 1};
}

static void problem_limit(struct text *text, const struct pe_error *err) {
    struct option option = option_of(err->limit_name);
    uint64_t most = INT64_MAX / option.unit;
    text_key(text, "limit");
    text_int(text, (int64_t)((err->limit < most ? err->limit : most) * option.unit));
    text_key(text, "got");
    text_int(text, (int64_t)((err->got < most ? err->got : most) * option.unit));
    if (!pe_field_find(config_fields, config_n_fields, option.name)) {
        return; /* no option changes it */
    }
    text_key(text, "option");
    text_string(text, option.name);
}

static void problem_text(struct text *text, const struct pe_error *err, const char *request_id) {
    text_puts(text, "{\"type\":\"urn:posenc:error:");
    text_puts(text, problem_slug(err->code));
    text_puts(text, "\"");
    text_key(text, "title");
    text_string(text, problem_title(err->code));
    text_key(text, "status");
    text_int(text, problem_status(err->code));
    text_key(text, "detail");
    text_string(text, err->text);
    text_key(text, "field");
    text_string(text, err->path[0] ? err->path : "body");
    if (err->limit_name) {
        problem_limit(text, err);
    }
    text_key(text, "request_id");
    text_string(text, request_id);
    text_puts(text, "}");
}

size_t problem_write(const struct pe_error *err, const char *request_id, char *out, size_t size) {
    struct text text = {0};
    problem_text(&text, err, request_id);
    size_t n = text.failed || text.n > size ? 0 : text.n;
    memcpy(out, n ? text.data : out, n);
    text_free(&text);
    return n;
}
