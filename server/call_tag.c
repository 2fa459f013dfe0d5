/* SPDX-License-Identifier: MIT
 *
 * Entity tags. That of an operation's reply is a hash of what fixes its bytes: the request as it was
 * resolved, with all defaults, so that most spellings of one request have the same tag (a list of positions
 * and the range that it could be have not), and it is known before anything is computed. That of a page is a
 * hash of its text.
 */
#include "call_state.h"

#include "digest.h"
#include "tables.h"
#include "wire/echo.h"
#include "wire/text.h"

#include <string.h>

static void set_tag(struct call *call, uint64_t hash) {
    unsigned char bytes[sizeof hash]; /* the highest first */
    for (size_t i = 0; i < sizeof hash; i++) {
        bytes[i] = (unsigned char)(hash >> 8 * (sizeof hash - 1 - i));
    }
    call->etag[0] = '"';
    memcpy(text_put_hex(call->etag + 1, bytes, sizeof bytes), "\"", 2);
}

void call_tag_bytes(struct call *call, const void *bytes, size_t n) {
    set_tag(call, digest_words(DIGEST_START, bytes, n));
}

static uint64_t hash_text(uint64_t hash, const char *text) {
    return digest_words(hash, text, strlen(text) + 1);
}

static uint64_t hash_tensor(uint64_t hash, const struct pe_tensor *tensor) {
    return tensor ? digest_words(hash, tensor->data, pe_tensor_bytes(tensor)) : hash;
}

static uint64_t hash_tensors(uint64_t hash, const struct pe_tensors *tensors) {
    for (size_t i = 0; i < tensors->n; i++) {
        hash = hash_tensor(hash_text(hash, tensors->v[i].name), &tensors->v[i].tensor);
    }
    return hash;
}

static uint64_t hash_positions(uint64_t hash, const struct pe_positions *positions, struct pe_error *err) {
    const uint64_t sizes[] = {positions->batch, positions->length, (uint64_t)positions->axes};
    const double rule[] = {positions->start, positions->step};
    hash = digest_words(digest_words(hash, sizes, sizeof sizes), rule, sizeof rule);
    size_t n = positions->list ? pe_positions_count(positions) * (size_t)positions->axes : 0;
    for (size_t done = 0, step; done < n && !pe_error_poll(err); done += step) {
        step = api_stop_step(n, done);
        hash = digest_words(hash, positions->list + done, step * sizeof(double));
    }
    return hash;
}

/* The numbers in a struct, which its echo leaves out. A loaded table is hashed once, at start. */
static uint64_t hash_numbers(uint64_t hash, const struct pe_field *fields, size_t n, const void *base,
                             struct pe_error *err) {
    for (size_t i = 0; base && i < n; i++) {
        const void *member = (const char *)base + fields[i].offset;
        const struct pe_table *table = member;
        const struct pe_spec *spec = member;
        switch (fields[i].kind) {
        case PE_KIND_TENSOR:
            hash = hash_tensor(hash, *(const struct pe_tensor *const *)member);
            break;
        case PE_KIND_TABLE:
            hash = table->name ? hash : hash_tensor(hash, table->tensor);
            break;
        case PE_KIND_TENSORS:
            hash = hash_tensors(hash, member);
            break;
        case PE_KIND_POSITIONS:
            hash = hash_positions(hash, member, err);
            break;
        case PE_KIND_OBJECT:
            hash =
                hash_numbers(hash, fields[i].fields, fields[i].n_fields, *(const void *const *)member, err);
            break;
        case PE_KIND_ENCODING:
            hash = spec->encoding ? hash_numbers(hash, spec->encoding->fields, spec->encoding->n_fields,
                                                 spec->params, err)
                                  : hash;
            break;
        default:
            break;
        }
    }
    return hash;
}

/* The contents of the loaded tables that the encoding names. */
static int hash_tables(const struct call *call, const struct pe_spec *spec, uint64_t *hash,
                       struct pe_error *err) {
    const struct pe_encoding_info *info = spec->encoding;
    const struct pe_field *part = pe_field_find(info->fields, info->n_fields, "tensor_name");
    for (size_t i = 0; i < info->n_fields; i++) {
        const char *params = spec->params;
        const struct pe_table *table =
            (const struct pe_table *)(const void *)(params + info->fields[i].offset);
        if (info->fields[i].kind != PE_KIND_TABLE || !table->name) {
            continue;
        }
        const char *tensor_name = part ? *(const char *const *)(const void *)(params + part->offset) : NULL;
        const struct table_tensor *tensor =
            tables_tensor(call->service->tables, table->name, tensor_name, err);
        if (!tensor) {
            return err->code;
        }
        *hash = digest_words(*hash, &tensor->digest, sizeof tensor->digest);
    }
    return PE_OK;
}

/* How the reply is written, and what it holds: format, names and element types, and the pieces of JSON that are
 * known: of these the first is the encoding as it was resolved. */
static uint64_t hash_reply(uint64_t hash, const struct call *call) {
    const struct result *result = &call->task.result;
    const int numbers[] = {PE_NUMERICS_VERSION, call->task.common.flat};
    hash = hash_text(digest_words(hash, numbers, sizeof numbers), call->format->name);
    for (size_t i = 0; i < result->n; i++) {
        hash = hash_text(hash, result->items[i].name);
        hash = digest_words(hash, &result->items[i].tensor.dtype, sizeof result->items[i].tensor.dtype);
        hash = result->items[i].json ? hash_text(hash, result->items[i].json) : hash;
    }
    if (call->source.picture) {
        const struct picture_look *look = picture_look(call->source.picture);
        const double numbers_of_look[] = {look->domain, (double)look->cell, look->theme};
        char maker[PICTURE_MAKER_ROOM];
        picture_maker(maker);
        hash = hash_text(digest_words(hash, numbers_of_look, sizeof numbers_of_look), maker);
    }
    return hash;
}

int call_tag_request(struct call *call) {
    const struct task *task = &call->task;
    const struct api_op *op = task->op;
    if (!call_is_get(call)) {
        return PE_OK;
    }
    struct text echo = {0};
    text_string(&echo, op->name);
    for (size_t i = 0; i < op->n_fields; i++) {
        if (op->fields[i].kind != PE_KIND_ENCODING) { /* that is among the reply's pieces */
            echo_field(&echo, op->fields, &op->fields[i], task->request);
        }
    }
    uint64_t hash = digest_words(hash_reply(DIGEST_START, call), echo.data, echo.n);
    bool failed = echo.failed;
    text_free(&echo);
    if (failed) {
        return pe_fail(&call->err, PE_ERR_MEMORY, "", "no memory for the tag of the reply");
    }
    hash = hash_numbers(hash, op->fields, op->n_fields, task->request, &call->err);
    if (call->err.code) {
        return call->err.code;
    }
    const struct pe_field *row = pe_field_find(op->fields, op->n_fields, "encoding");
    const struct pe_spec *spec = row ? (const void *)((const char *)task->request + row->offset) : NULL;
    if (spec && spec->encoding && hash_tables(call, spec, &hash, &call->err)) {
        return call->err.code;
    }
    set_tag(call, hash);
    return PE_OK;
}

bool call_tag_matches(const struct call *call) {
    const char *p = call->head.if_none_match;
    if (!p || !call->etag[0]) {
        return false;
    }
    while (*p) {
        p += strspn(p, " \t,");
        size_t n = strcspn(p, ",");
        while (n && (p[n - 1] == ' ' || p[n - 1] == '\t')) {
            n--;
        }
        const char *tag = n > 2 && p[0] == 'W' && p[1] == '/' ? p + 2 : p;
        size_t length = n - (size_t)(tag - p);
        if ((n == 1 && p[0] == '*') ||
            (length == strlen(call->etag) && memcmp(tag, call->etag, length) == 0)) {
            return true;
        }
        p += strcspn(p, ",");
    }
    return false;
}
