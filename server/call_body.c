/* SPDX-License-Identifier: MIT
 *
 * The body as it arrives: counted, inflated, and either lifted (JSON) or collected (binary). Limits hold for
 * what was sent (body_bytes) and for what it becomes (expanded_bytes), before memory is taken. What it has
 * become, once it is complete, counts in the arena: the body and all that is computed from it share the one
 * limit.
 */
#include "call_state.h"

#include "budget.h"

#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

static int open_lift(struct call *call) {
    const struct config *config = call->service->config;
    struct lift_options options = {
        .envelope_limit = (size_t)config->envelope_bytes,
        .value_limit = (size_t)config->expanded_bytes / sizeof(double),
        .watches = call->route.op->batch ? call_batch_watches : bind_watches,
    };
    struct bind_target *op = pe_arena_array(call->arena, 1, sizeof *op, &call->err);
    if (!op) {
        return call->err.code;
    }
    *op = (struct bind_target){call->route.op->fields, call->route.op->n_fields, NULL};
    options.context = op;
    call->body.lift = lift_open(&options, &call->err);
    return call->err.code;
}

static int open_coding(struct call *call) {
    const char *coding = call->head.content_encoding;
    if (!coding || !coding[0] || strcasecmp(coding, "identity") == 0) {
        return PE_OK;
    }
    if (strcasecmp(coding, "gzip") != 0 && strcasecmp(coding, "x-gzip") != 0) {
        return pe_fail(&call->err, SERVER_MEDIA_TYPE, "Content-Encoding",
                       "must be gzip or identity, got \"%.40s\"", coding);
    }
    call->body.gzip = true;
    return PE_OK;
}

static int too_large(struct call *call, uint64_t got) {
    uint64_t limit = (uint64_t)call->service->config->body_bytes;
    return pe_fail_limit(&call->err, "body", "body_bytes", limit, got,
                         "has %llu bytes, at most %llu are allowed", (unsigned long long)got,
                         (unsigned long long)limit);
}

int call_body_open(struct call *call) {
    struct call_body *body = &call->body;
    if (call->head.content_length > call->service->config->body_bytes) {
        return too_large(call, (uint64_t)call->head.content_length);
    }
    if (call->route_name != call->route.post) {
        return PE_OK; /* what a GET carries is thrown away, within the limit */
    }
    body->format = format_of_body(call->head.content_type, &call->err);
    if (!body->format || open_coding(call)) {
        return call->err.code;
    }
    if (call->route.op->batch && body->format->id != FORMAT_JSON) {
        return pe_fail(&call->err, SERVER_MEDIA_TYPE, "Content-Type", "a batch is JSON");
    }
    return body->format->id == FORMAT_JSON ? open_lift(call) : PE_OK;
}

/* Twice the room, but all that is announced at once, and never more than may come. */
static size_t next_room(const struct call *call, const struct call_bytes *bytes, size_t n, int64_t limit) {
    size_t most = (size_t)limit, need = bytes->n + n;
    size_t announced = call->head.content_length > 0 ? (size_t)call->head.content_length : 0;
    size_t room = bytes->room ? bytes->room * 2 : 4096;
    room = room < announced ? announced : room;
    room = room < most ? room : most;
    return room < need ? need : room;
}

/* At most `limit` bytes in all: the caller has looked. */
static int collect(struct call *call, struct call_bytes *bytes, const void *more, size_t n, int64_t limit) {
    if (n > bytes->room - bytes->n) {
        size_t room = next_room(call, bytes, n, limit);
        char *grown = realloc(bytes->data, room);
        if (!grown) {
            return pe_fail(&call->err, PE_ERR_MEMORY, "body", "no memory for the body");
        }
        bytes->data = grown;
        bytes->room = room;
    }
    memcpy(bytes->data + bytes->n, more, n);
    bytes->n += n;
    return PE_OK;
}

static int feed_plain(struct call *call, const void *bytes, size_t n) {
    uint64_t limit = (uint64_t)call->service->config->expanded_bytes;
    if (!n) {
        return PE_OK;
    }
    call->body.expanded += n;
    if (call->body.expanded > limit) {
        return pe_fail_limit(&call->err, "body", "expanded_bytes", limit, call->body.expanded,
                             "inflates to more than the %llu bytes that are allowed",
                             (unsigned long long)limit);
    }
    if (call->body.lift) {
        return lift_feed(call->body.lift, bytes, n, &call->err);
    }
    return call->body.format ? collect(call, &call->body.plain, bytes, n, (int64_t)limit) : PE_OK;
}

/* The next of z's input, at most 2^20 bytes: zlib counts in unsigned. */
static void next_input(z_stream *z, const struct call_bytes *packed, size_t *taken) {
    size_t n = packed->n - *taken < (1u << 20) ? packed->n - *taken : (1u << 20);
    z->next_in = (unsigned char *)packed->data + *taken;
    z->avail_in = (unsigned)n;
    *taken += n;
}

static int inflate_fail(struct call *call, int result, bool first) {
    const char *what = result == Z_BUF_ERROR ? "ends inside its gzip stream"
                       : first               ? "is not valid gzip"
                               : "has bytes after its gzip stream that are no further part of it";
    return pe_fail(&call->err, PE_ERR_SYNTAX, "body", "%s", what);
}

/* All members, one after the other (RFC 1952, 2.2). */
static int inflate_all(struct call *call, z_stream *z) {
    const struct call_bytes *packed = &call->body.packed;
    unsigned char out[16384];
    size_t taken = 0;
    bool first = true;
    for (int result = Z_OK; result != Z_STREAM_END || z->avail_in || taken < packed->n;) {
        if (result == Z_STREAM_END) {
            first = false;
            inflateReset(z);
        }
        if (!z->avail_in && taken < packed->n) {
            next_input(z, packed, &taken);
        }
        z->next_out = out;
        z->avail_out = sizeof out;
        result = inflate(z, Z_NO_FLUSH);
        if (result != Z_OK && result != Z_STREAM_END) {
            return inflate_fail(call, result, first);
        }
        if (pe_error_poll(&call->err) || feed_plain(call, out, sizeof out - z->avail_out)) {
            return call->err.code;
        }
    }
    return PE_OK;
}

static int unpack(struct call *call) {
    z_stream z = {0};
    if (inflateInit2(&z, 15 + 16) != Z_OK) { /* 16: a gzip header */
        return pe_fail(&call->err, PE_ERR_MEMORY, "", "no memory to inflate the body");
    }
    inflate_all(call, &z);
    inflateEnd(&z);
    return call->err.code;
}

/* Counts what the body holds by now among the memory of all requests. */
static int hold(struct call *call) {
    struct call_body *body = &call->body;
    size_t held = body->packed.room + body->plain.room + (body->lift ? lift_bytes(body->lift) : 0);
    if (held > body->held && !budget_take(call->service->budget, held - body->held)) {
        return pe_fail(&call->err, PE_ERR_MEMORY, "body",
                       "the memory of all requests (option memory_bytes) is in use, try again");
    }
    if (held < body->held) {
        budget_give(call->service->budget, body->held - held);
    }
    body->held = held;
    return PE_OK;
}

int call_body_feed(struct call *call, const void *bytes, size_t n) {
    int64_t limit = call->service->config->body_bytes;
    call->body.received += n;
    if (call->body.received > (uint64_t)limit) {
        return too_large(call, call->body.received);
    }
    if (call->body.gzip ? collect(call, &call->body.packed, bytes, n, limit) : feed_plain(call, bytes, n)) {
        return call->err.code;
    }
    return hold(call);
}

static void drop(struct call_bytes *bytes) {
    free(bytes->data);
    *bytes = (struct call_bytes){0};
}

/* Gives back the room that was not needed. */
static void trim(struct call_bytes *bytes) {
    char *trimmed = bytes->n > 0 && bytes->n < bytes->room ? realloc(bytes->data, bytes->n) : NULL;
    if (trimmed) {
        bytes->data = trimmed;
        bytes->room = bytes->n;
    }
}

int call_body_end(struct call *call) {
    struct call_body *body = &call->body;
    if (body->gzip && body->packed.n && unpack(call)) {
        return call->err.code;
    }
    drop(&body->packed);
    trim(&body->plain);
    if (body->lift && lift_finish(body->lift, &call->err)) {
        return call->err.code;
    }
    if (hold(call)) {
        return call->err.code;
    }
    return pe_arena_charge(call->arena, body->held, &call->err) ? pe_error_at(&call->err, "body") : PE_OK;
}

/* ---- binding ----------------------------------------------------------------------------------------- */

static int set_raw_header(struct call *call, struct bind *bind, const char *header, const char *name,
                          const char *value) {
    const struct pe_field *row = pe_field_find(bind->common.fields, bind->common.n, name);
    if (!value) {
        return PE_OK;
    }
    if (pe_field_given(bind->common.fields, row, bind->common.base)) {
        return pe_fail(&call->err, PE_ERR_CONFLICT, header, "is given beside %s in the query", name);
    }
    if (pe_field_parse(call->arena, bind->common.fields, row, bind->common.base, value, &call->err)) {
        call->err.path[0] = '\0';
        return pe_error_at(&call->err, header);
    }
    return PE_OK;
}

static int raw_tensor(struct call *call, struct bind *bind, struct pe_tensor *out) {
    if (set_raw_header(call, bind, "X-Posenc-Shape", "shape", call->head.raw_shape) ||
        set_raw_header(call, bind, "X-Posenc-Dtype", "body_dtype", call->head.raw_dtype)) {
        return call->err.code;
    }
    const struct api_common *common = bind->common.base;
    enum pe_dtype dtype = common->body_dtype ? (enum pe_dtype)common->body_dtype : PE_DTYPE_F32;
    if (!common->shape.n) {
        return pe_fail(&call->err, PE_ERR_MISSING, "shape", "is required for a raw body (or X-Posenc-Shape)");
    }
    if (common->shape.n > PE_MAX_RANK) {
        return pe_fail(&call->err, PE_ERR_SHAPE, "shape", "has %zu axes, at most %d are allowed",
                       common->shape.n, PE_MAX_RANK);
    }
    struct pe_tensor view = {.data = call->body.plain.data, .dtype = dtype, .rank = (int)common->shape.n};
    for (size_t i = 0; i < common->shape.n; i++) {
        view.dim[i] = (size_t)common->shape.v[i];
    }
    size_t bytes, factors[PE_MAX_RANK + 1];
    memcpy(factors, view.dim, sizeof view.dim);
    factors[view.rank] = pe_dtype_size(dtype);
    char shape[200];
    if (!pe_size_product(factors, (size_t)view.rank + 1, &bytes) || bytes != call->body.plain.n) {
        return pe_fail(&call->err, PE_ERR_SHAPE, "shape", "%s of %s does not fit the body of %zu bytes",
                       pe_tensor_shape_text(&view, shape, sizeof shape), pe_dtype_name(dtype),
                       call->body.plain.n);
    }
    *out = view;
    return PE_OK;
}

static int bind_one_tensor(struct call *call, struct bind *bind) {
    const struct api_op *op = call->route.op;
    struct pe_tensor tensor;
    if (!op->tensor) {
        return pe_fail(&call->err, SERVER_MEDIA_TYPE, "Content-Type", "%s takes no tensor; post JSON",
                       op->name);
    }
    if (call->body.format->id == FORMAT_RAW) {
        if (raw_tensor(call, bind, &tensor)) {
            return call->err.code;
        }
    } else if (pe_npy_read(call->arena, &tensor, call->body.plain.data, call->body.plain.n, &call->err)) {
        return call->err.path[0] ? pe_error_at(&call->err, op->tensor) : call->err.code;
    }
    return bind_named_tensor(bind, op->tensor, &tensor, &call->err);
}

static int bind_safetensors(struct call *call, struct bind *bind) {
    struct pe_safetensors file;
    if (pe_safetensors_open(call->arena, &file, call->body.plain.data, call->body.plain.n, &call->err)) {
        return call->err.code;
    }
    for (size_t i = 0; i < file.n; i++) {
        struct pe_tensor tensor;
        const char *name = file.entries[i].name;
        if (pe_safetensors_get(call->arena, &tensor, &file, name, &call->err)) {
            return pe_error_at(&call->err, name);
        }
        if (bind_named_tensor(bind, name, &tensor, &call->err)) {
            return call->err.code;
        }
    }
    return PE_OK;
}

int call_body_bind(struct call *call, struct bind *bind) {
    struct call_body *body = &call->body;
    size_t length;
    if (!body->format) {
        return PE_OK;
    }
    if (body->lift) {
        const char *text = lift_envelope(body->lift, &length);
        bind->lift = body->lift;
        return bind_json(bind, text, length, &call->err);
    }
    if (!body->plain.n) {
        return pe_fail(&call->err, PE_ERR_MISSING, "body", "is empty");
    }
    return body->format->id == FORMAT_SAFETENSORS ? bind_safetensors(call, bind)
                                                  : bind_one_tensor(call, bind);
}

void call_body_close(struct call *call) {
    budget_give(call->service->budget, call->body.held);
    call->body.held = 0;
    struct call_body *body = &call->body;
    if (body->lift) {
        lift_close(body->lift);
    }
    drop(&body->packed);
    drop(&body->plain);
}
