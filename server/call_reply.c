/* SPDX-License-Identifier: MIT
 *
 * Replies: headers, problems, and bodies. What is known to the byte before it is written, tensors as they lie
 * in memory and their header, is pulled from where it was computed: a copy would double what a large request
 * takes, for as long as its client reads. Numbers as text are written whole into a buffer: their length is known
 * only then, and the thread that sends is not to write them.
 */
#include "call_state.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POSITIONS_BYTES 1024 /* of positions in a header, at most */
#define POSITIONS_SHOWN ((size_t)256)
#define PULL_BYTES      ((size_t)256 << 10) /* of a reply, written between two questions whether to stop */

/* ---- buffers ----------------------------------------------------------------------------------------- */

int call_buffer_open(struct call *call, size_t room) {
    const struct pe_allocator *allocator = &call->service->allocator;
    call_drop_buffer(call);
    call->reply_room = room;
    call->reply_bytes = allocator->alloc ? allocator->alloc(allocator->context, room) : malloc(room);
    if (!call->reply_bytes) {
        return pe_fail(&call->err, PE_ERR_MEMORY, "", "no memory for a reply of %zu bytes", room);
    }
    return PE_OK;
}

void call_buffer_add(struct call *call, const void *bytes, size_t n) {
    assert(n <= call->reply_room - call->reply_n);
    if (n) {
        memcpy(call->reply_bytes + call->reply_n, bytes, n);
        call->reply_n += n;
    }
}

size_t call_write_source(const struct call *call, struct source *source, char *out, size_t room) {
    size_t total = 0;
    for (size_t n = 1; n > 0 && !call_stopped(call); total += n) {
        size_t left = room - total;
        n = source_pull(source, out + total, left < PULL_BYTES ? left : PULL_BYTES);
    }
    assert(source->at == source->n || source->failed || call_stopped(call)); /* source_bound holds */
    return total;
}

int call_buffer_source(struct call *call) {
    if (call_buffer_open(call, (size_t)call->bound + 1)) {
        return call->err.code;
    }
    call->reply_n = call_write_source(call, &call->source, call->reply_bytes, call->reply_room);
    call->reply.length = (int64_t)call->reply_n;
    if (call->source.failed) {
        return pe_fail(&call->err, PE_ERR_MEMORY, "", "no memory for writing the reply");
    }
    return pe_error_poll(&call->err);
}

/* ---- pulling ----------------------------------------------------------------------------------------- */

static size_t pull_source(struct call *call, char *out, size_t room) {
    return source_pull(&call->source, out, room);
}

/* Where a reply lies that was whole before it is sent. */
static const char *whole_reply(const struct call *call) {
    return call->lent ? call->lent : call->reply_bytes;
}

static size_t pull_buffer(struct call *call, char *out, size_t room) {
    size_t left = call->reply_n - call->reply_pulled;
    size_t n = left < room ? left : room;
    memcpy(out, n ? whole_reply(call) + call->reply_pulled : out, n);
    call->reply_pulled += n;
    return n;
}

void call_reply_from_source(struct call *call) {
    call->pull = pull_source;
}

size_t call_pull(struct call *call, char *out, size_t room) {
    return call->pull ? call->pull(call, out, room) : pull_buffer(call, out, room);
}

size_t call_pull_turn(struct call *call, char *out, size_t room, bool *more) {
    return source_pull_turn(&call->source, out, room, more);
}

size_t call_parts(const struct call *call, struct source_part *parts) {
    if (call->pull == pull_source && !call->reply.stream) {
        return source_parts(&call->source, parts);
    }
    parts[0] = (struct source_part){whole_reply(call), call->reply_n};
    return call->pull == NULL;
}

/* ---- headers ----------------------------------------------------------------------------------------- */

void call_add_header(struct call *call, const char *name, const char *value) {
    if (call->reply.n_headers < CALL_MAX_HEADERS) {
        call->reply.headers[call->reply.n_headers++] = (struct call_header){name, value};
    }
}

void call_add_common_headers(struct call *call) {
    call_add_header(call, "X-Request-Id", call->request_id);
    call_add_header(call, "X-Content-Type-Options", "nosniff");
    if (call->reply.status == 503 || call->reply.status == 429) {
        call_add_header(call, "Retry-After", "1");
    }
}

/* With a tag a reply may be kept for so many seconds; else it must not be. */
static void add_cache_headers(struct call *call, const char *control) {
    if (call->etag[0]) {
        call_add_header(call, "ETag", call->etag);
    }
    call_add_header(call, "Cache-Control", call->etag[0] ? control : "no-store");
    call_add_header(call, "Vary", "Accept, Accept-Encoding");
}

static const char *shape_header(struct call *call, const struct pe_tensor *tensor) {
    size_t n = 0;
    call->shape[0] = '\0';
    for (int i = 0; i < tensor->rank; i++) {
        n += (size_t)snprintf(call->shape + n, sizeof call->shape - n, "%s%zu", i ? "," : "", tensor->dim[i]);
    }
    return call->shape;
}

/* Positions that a rule made, as JSON, where that is short; in safetensors they are a tensor. */
static const char *positions_text(struct call *call, const struct result_item *item) {
    struct result alone = {0};
    struct source source;
    struct pe_error err = {0};
    char text[64 + PE_NUMBER_ROOM * POSITIONS_SHOWN];
    size_t prefix = strlen(item->name) + sizeof "{\"\":" - 1, n = 0;
    if (pe_tensor_count(&item->tensor) > POSITIONS_SHOWN) {
        return NULL;
    }
    result_numbers(&alone, item->name, &item->tensor);
    const struct source_style nested = {.flat = false};
    if (source_open(&source, call->arena, format_at(FORMAT_JSON), &alone, &nested, &err) == PE_OK) {
        n = source_pull(&source, text, sizeof text);
    }
    source_close(&source);
    bool fits = n > prefix && n - prefix - 1 <= POSITIONS_BYTES;
    return fits ? pe_arena_text(call->arena, text + prefix, n - prefix - 1, &err) : NULL;
}

static void add_positions(struct call *call) {
    static const struct {
        const char *name, *header;
    } rows[] = {{"positions", "X-Posenc-Positions"},
                {"query_positions", "X-Posenc-Query-Positions"},
                {"key_positions", "X-Posenc-Key-Positions"}};
    const struct result *result = &call->task.result;
    for (size_t i = 0; i < result->n * PE_COUNT(rows); i++) {
        const struct result_item *item = &result->items[i / PE_COUNT(rows)];
        size_t row = i % PE_COUNT(rows);
        const char *text = result_is_list(item) && strcmp(item->name, rows[row].name) == 0
                               ? positions_text(call, item)
                               : NULL;
        if (text) {
            call_add_header(call, rows[row].header, text);
        }
    }
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
    if (call->format->id != FORMAT_SAFETENSORS) {
        add_positions(call);
    }
    if (first && call->format->id == FORMAT_RAW) {
        call_add_header(call, "X-Posenc-Shape", shape_header(call, &first->tensor));
        call_add_header(call, "X-Posenc-Dtype", pe_dtype_name(first->tensor.dtype));
    }
}

void call_reply_headers(struct call *call) {
    if (call->reply.status != 304) {
        call_add_header(call, "Content-Type", call->format->media);
        add_tensor_headers(call);
    }
    call_add_common_headers(call);
    add_cache_headers(call, "public, max-age=3600");
}

/* ---- whole answers ----------------------------------------------------------------------------------- */

static void answer(struct call *call, int status) {
    call->answered = true;
    call->reply.status = status;
    call->reply.n_headers = 0;
    call->reply.stream = false;
    call->pull = NULL;
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
    call->lent = NULL;
    call->reply_n = call->reply_room = call->reply_pulled = 0;
}

void call_answer_problem(struct call *call) {
    if (call_buffer_open(call, PROBLEM_ROOM) == PE_OK) {
        call->reply_n = problem_write(&call->err, call->request_id, call->reply_bytes, PROBLEM_ROOM);
    }
    answer(call, problem_status(call->err.code));
    call_add_header(call, "Content-Type", "application/problem+json");
    call_add_header(call, "Cache-Control", "no-store");
    call_add_common_headers(call);
    if (call->err.code == SERVER_METHOD) {
        call_add_header(call, "Allow", call->allow);
    }
}

void call_answer_buffer(struct call *call, int status, const char *media, bool fresh) {
    answer(call, status);
    if (!fresh) {
        call_tag_bytes(call, call->reply_bytes, call->reply_n);
    }
    if (call_tag_matches(call)) {
        call_drop_buffer(call);
        answer(call, 304);
    } else {
        call_add_header(call, "Content-Type", media);
    }
    call_add_common_headers(call);
    add_cache_headers(call, "public, max-age=60");
}

void call_answer_lent(struct call *call, const void *bytes, size_t n) {
    call_drop_buffer(call);
    call->lent = bytes;
    call->reply_n = n;
    answer(call, 200);
    call_add_common_headers(call);
}

void call_answer_empty(struct call *call, int status) {
    call_drop_buffer(call);
    answer(call, status);
    if (status != 304) {
        call_add_common_headers(call);
    }
}
