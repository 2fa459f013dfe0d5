/* SPDX-License-Identifier: MIT
 *
 * Replies are sent from where they lie: a body in one piece leaves together with its header. A small one that lies in
 * several pieces is copied into one, so that it does, too. Streams, and what is written while it is sent, the library
 * pulls block by block.
 */
#include "http_reply.h"

#include "config.h"
#include "http_suspended.h"
#include "request.h"
#include "wire/source.h"

#include <microhttpd.h>
#include <stdlib.h>

#define HTTP_SMALL_REPLY (32 << 10)
#define HTTP_REPLY_BLOCK ((size_t)256 << 10)

static ssize_t read_reply(void *context, uint64_t position, char *out, size_t room) {
    struct request *request = context;
    size_t n;
    (void)position;
    request->shell->moved = true;
    switch (request_read(request, out, room, &n)) {
    case STREAM_BYTES:
        return (ssize_t)n;
    case STREAM_WAIT:
        suspended_add(request->shell->suspended, request);
        return 0;
    case STREAM_END:
        /* Short of the announced length is a failure; the library closes the connection then. */
        return call_reply(request->call)->length > request->sent ? MHD_CONTENT_READER_END_WITH_ERROR
                                                                 : MHD_CONTENT_READER_END_OF_STREAM;
    case STREAM_FAILED:
        break;
    }
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

/* The library's to free. */
static struct MHD_Response *copied_response(struct request *request, size_t length) {
    char *body = malloc(length + 1);
    if (body == NULL) {
        return NULL;
    }
    size_t n = 0, got = 1;
    while (n < length && got > 0) {
        request_read(request, body + n, length - n, &got);
        n += got;
    }
    struct MHD_Response *response = MHD_create_response_from_buffer(n, body, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(body);
    }
    return response;
}

static struct MHD_Response *lying_response(const struct source_part *part) {
    return MHD_create_response_from_buffer(part->n, (void *)(uintptr_t)part->bytes, MHD_RESPMEM_PERSISTENT);
}

/* What is small counts as sent when it is handed over. */
static struct MHD_Response *small_response(struct request *request, size_t length) {
    struct source_part parts[SOURCE_MAX_PIECES];
    if (call_parts(request->call, parts) != 1 || parts[0].n != length) {
        return copied_response(request, length);
    }
    request->sent += (int64_t)length;
    return lying_response(&parts[0]);
}

/* The body from where it lies, which is there until the request is released; NULL where it has to be pulled. */
static struct MHD_Response *direct_response(struct request *request, uint64_t length) {
    struct source_part parts[SOURCE_MAX_PIECES];
    struct MHD_IoVec vector[SOURCE_MAX_PIECES];
    size_t n = call_parts(request->call, parts);
    if (n == 0) {
        return NULL;
    }
    request_send_directly(request, (int64_t)length);
    if (n == 1) {
        return lying_response(&parts[0]);
    }
    for (size_t i = 0; i < n; i++) {
        vector[i] = (struct MHD_IoVec){parts[i].bytes, parts[i].n};
    }
    return MHD_create_response_from_iovec(vector, (unsigned)n, NULL, NULL);
}

/* Pulled by the library, block by block; of a HEAD nothing is. */
static struct MHD_Response *pulled_response(struct request *request, int64_t length) {
    uint64_t size = length >= 0 ? (uint64_t)length : MHD_SIZE_UNKNOWN;
    size_t block = size < HTTP_REPLY_BLOCK ? (size_t)size + 1 : HTTP_REPLY_BLOCK;
    struct MHD_Response *response = MHD_create_response_from_callback(size, block, read_reply, request, NULL);
    if (response != NULL && request->is_head && length < 0) {
        /* The library would send the end of a chunked body after the header. Without chunks there is no body
         * and no length, and the connection is closed. */
        MHD_set_response_options(response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
    }
    return response;
}

static struct MHD_Response *make_response(struct request *request, const struct call_reply *reply) {
    bool no_body = reply->status == MHD_HTTP_NO_CONTENT || reply->status == MHD_HTTP_NOT_MODIFIED;
    bool known = reply->length >= 0 && request->stream == NULL && !request->is_head;
    if (no_body || (known && reply->length <= HTTP_SMALL_REPLY)) {
        return small_response(request, no_body ? 0 : (size_t)reply->length);
    }
    struct MHD_Response *direct = known ? direct_response(request, (uint64_t)reply->length) : NULL;
    return direct != NULL ? direct : pulled_response(request, reply->length);
}

bool http_reply_send(struct request *request) {
    const struct shell *shell = request->shell;
    const struct call_reply *reply = call_reply(request->call);
    struct MHD_Response *response = make_response(request, reply);
    if (response == NULL) {
        return false;
    }
    bool ok = true;
    for (size_t i = 0; i < reply->n_headers; i++) {
        ok = MHD_add_response_header(response, reply->headers[i].name, reply->headers[i].value) == MHD_YES &&
             ok;
    }
    if (request->close || shell->draining) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    }
    if (request->stream != NULL) {
        request->conn->own_timeout = true;
        MHD_set_connection_option(request->connection, MHD_CONNECTION_OPTION_TIMEOUT,
                                  (unsigned)shell->service->config->stream_timeout_s);
    }
    request->phase = REQUEST_SENDING;
    ok = ok && MHD_queue_response(request->connection, (unsigned)reply->status, response) == MHD_YES;
    MHD_destroy_response(response);
    return ok;
}
