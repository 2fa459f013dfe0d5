/* SPDX-License-Identifier: MIT
 *
 * Replies: headers, entity tags, problems, and buffered bodies.
 */
#include "call_state.h"

#include "tables.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- buffers ----------------------------------------------------------------------------------------- */

static char *reply_alloc(struct call *call, size_t bytes) {
    const struct pe_allocator *allocator = &call->service->allocator;
    call->reply_room = bytes;
    call->reply_bytes = allocator->alloc ? allocator->alloc(allocator->context, bytes) : malloc(bytes);
    if (!call->reply_bytes) {
        pe_fail(&call->err, PE_ERR_MEMORY, "", "no memory for a reply of %zu bytes", bytes);
    }
    return call->reply_bytes;
}

int call_buffer_source(struct call *call, struct source *source) {
    size_t room = (size_t)call->bound + 256;
    if (!reply_alloc(call, room)) {
        return call->err.code;
    }
    for (size_t n; (n = source_pull(source, call->reply_bytes + call->reply_n, room - call->reply_n)) > 0;) {
        call->reply_n += n;
    }
    assert(source->at == source->n); /* source_bound holds */
    call->reply.length = (int64_t)call->reply_n;
    return PE_OK;
}

/* ---- headers ----------------------------------------------------------------------------------------- */

void call_add_header(struct call *call, const char *name, const char *value) {
    if (call->reply.n_headers < CALL_MAX_HEADERS) {
        call->reply.headers[call->reply.n_headers++] = (struct call_header){name, value};
    }
}

static void add_common_headers(struct call *call) {
    call_add_header(call, "X-Request-Id", call->request_id);
    call_add_header(call, "X-Content-Type-Options", "nosniff");
}

static const char *shape_header(struct call *call, const struct pe_tensor *tensor) {
    size_t n = 0;
    call->shape[0] = '\0';
    for (int i = 0; i < tensor->rank; i++) {
        n += (size_t)snprintf(call->shape + n, sizeof call->shape - n, "%s%zu", i ? "," : "", tensor->dim[i]);
    }
    return call->shape;
}

/* What a binary body cannot say of itself. */
static void add_tensor_headers(struct call *call) {
    const struct result_item *first = result_first(&call->task.result);
    if (call->format->id == FORMAT_JSON) {
        return;
    }
    if (call->task.encoding_json) {
        call_add_header(call, "X-Posenc-Encoding", call->task.encoding_json);
    }
    if (first && call->format->id == FORMAT_RAW) {
        call_add_header(call, "X-Posenc-Shape", shape_header(call, &first->tensor));
        call_add_header(call, "X-Posenc-Dtype", pe_dtype_name(first->tensor.dtype));
    }
}

void call_reply_headers(struct call *call) {
    if (call->reply.n_headers) {
        return; /* an answer that brought its own */
    }
    if (call->reply.status != 304) {
        call_add_header(call, "Content-Type", call->format->media);
    }
    add_common_headers(call);
    if (call->etag[0]) {
        call_add_header(call, "ETag", call->etag);
        call_add_header(call, "Cache-Control", "public, max-age=3600");
    } else {
        call_add_header(call, "Cache-Control", "no-store");
    }
    call_add_header(call, "Vary", "Accept, Accept-Encoding");
    if (call->reply.status == 304) {
        return;
    }
    add_tensor_headers(call);
    if (!call->reply.stream && call->timing[0]) {
        call_add_header(call, "Server-Timing", call->timing);
    }
}

/* ---- whole answers ----------------------------------------------------------------------------------- */

static void answer(struct call *call, int status) {
    call->answered = true;
    call->reply.status = status;
    call->reply.n_headers = 0;
    call->reply.stream = false;
    call->reply.length = (int64_t)call->reply_n;
    call->work.n_parts = 0;
}

void call_drop_buffer(struct call *call) {
    const struct pe_allocator *allocator = &call->service->allocator;
    if (call->reply_bytes && allocator->release) {
        allocator->release(allocator->context, call->reply_bytes, call->reply_room);
    } else {
        free(call->reply_bytes);
    }
    call->reply_bytes = NULL;
    call->reply_n = call->reply_room = call->reply_pulled = 0;
}

void call_answer_problem(struct call *call) {
    char *out;
    call_drop_buffer(call);
    if ((out = reply_alloc(call, PROBLEM_ROOM)) != NULL) {
        call->reply_n = problem_write(&call->err, call->request_id, out, PROBLEM_ROOM);
    }
    answer(call, problem_status(call->err.code));
    call_add_header(call, "Content-Type", "application/problem+json");
    call_add_header(call, "Cache-Control", "no-store");
    add_common_headers(call);
    if (call->reply.status == 503) {
        call_add_header(call, "Retry-After", "1");
    }
    if (call->err.code == SERVER_METHOD) {
        call_add_header(call, "Allow", call->allow);
    }
}

/* FNV-1a, 64 bits: tells versions of a reply apart, nothing more. */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n) {
    for (const unsigned char *p = bytes; n; n--, p++) {
        hash = (hash ^ *p) * 0x100000001b3u;
    }
    return hash;
}

static uint64_t hash_text(uint64_t hash, const char *text) {
    return hash_bytes(hash, text, strlen(text) + 1);
}

#define HASH_START 0xcbf29ce484222325u

void call_answer_text(struct call *call, int status, const char *media, struct text *text, bool fresh) {
    call_drop_buffer(call);
    if (!reply_alloc(call, text->n ? text->n : 1)) {
        text_free(text);
        call_answer_problem(call);
        return;
    }
    memcpy(call->reply_bytes, text->n ? text->data : "", text->n);
    call->reply_n = text->n;
    uint64_t hash = hash_bytes(HASH_START, text->data, text->n);
    text_free(text);
    answer(call, status);
    snprintf(call->etag, sizeof call->etag, "\"%016llx\"", (unsigned long long)hash);
    if (!fresh && call_tag_matches(call)) {
        call_drop_buffer(call);
        answer(call, 304);
    } else {
        call_add_header(call, "Content-Type", media);
    }
    add_common_headers(call);
    call_add_header(call, "Cache-Control", fresh ? "no-store" : "public, max-age=60");
    if (!fresh) {
        call_add_header(call, "ETag", call->etag);
    }
}

void call_answer_empty(struct call *call, int status) {
    call_drop_buffer(call);
    answer(call, status);
    if (status != 304) {
        add_common_headers(call);
    }
}

/* ---- entity tags ------------------------------------------------------------------------------------- */

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
        *hash = hash_bytes(*hash, &tensor->digest, sizeof tensor->digest);
    }
    return PE_OK;
}

/* What fixes the bytes of a GET: its target, the encoding with all defaults, the format and element type, the
 * tables, and the version of the numbers. */
int call_tag(struct call *call) {
    const struct task *task = &call->task;
    if (call->head.method[0] == 'P') {
        return PE_OK;
    }
    uint64_t hash = hash_text(HASH_START, call->head.target);
    const int numbers[] = {PE_NUMERICS_VERSION, (int)task_dtype(task)};
    hash = hash_bytes(hash, numbers, sizeof numbers);
    hash = hash_text(hash, call->format->name);
    hash = hash_text(hash, task->encoding_json ? task->encoding_json : "");
    const struct pe_field *row = pe_field_find(task->op->fields, task->op->n_fields, "encoding");
    const struct pe_spec *spec = row ? (const void *)((const char *)task->request + row->offset) : NULL;
    if (spec && spec->encoding && hash_tables(call, spec, &hash, &call->err)) {
        return call->err.code;
    }
    snprintf(call->etag, sizeof call->etag, "\"%016llx\"", (unsigned long long)hash);
    return PE_OK;
}

bool call_tag_matches(const struct call *call) {
    const char *p = call->head.if_none_match;
    if (!p || !call->etag[0] || call->head.method[0] == 'P') {
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
