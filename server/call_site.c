/* SPDX-License-Identifier: MIT
 *
 * Replies that are files of the web page. A name with a hash in it may be kept for ever, as other contents come
 * under another name; all else is asked for again each time, and answered 304 while it is the same.
 *
 * The policy for documents lets nothing in from elsewhere: scripts and styles are the daemon's own files, never
 * written into a document; scripts may talk to this origin only, and make markup only by lit's templates, under the
 * one trusted type that it registers. Figures are drawn to blobs. Other sites' frames show nothing. There is no
 * Cross-Origin-Opener-Policy: browsers call it an error where a class opens the page by plain HTTP under the teacher's
 * name, and nothing here is secret from whoever opened the window.
 */
#include "call_state.h"

#include <string.h>

static const struct call_header document_headers[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'self'; require-trusted-types-for 'script'; "
     "trusted-types lit-html"},
    {"Referrer-Policy", "no-referrer"},
};

static void add_entity_headers(struct call *call, const struct site_body *body) {
    const struct site_file *file = call->file;
    call_add_header(call, "Content-Type", file->media);
    if (body == &file->gzip) {
        call_add_header(call, "Content-Encoding", "gzip");
    }
    for (size_t i = 0; site_is_document(file) && i < PE_COUNT(document_headers); i++) {
        call_add_header(call, document_headers[i].name, document_headers[i].value);
    }
}

void call_site_answer(struct call *call) {
    const struct site_file *file = call->file;
    bool zipped = file->gzip.n && format_takes_gzip(call->head.accept_encoding);
    const struct site_body *body = zipped ? &file->gzip : &file->plain;
    memcpy(call->etag, body->etag, sizeof body->etag);
    if (call_tag_matches(call)) {
        call_answer_empty(call, 304);
        call_add_common_headers(call);
    } else {
        call_answer_lent(call, body->bytes, body->n);
        add_entity_headers(call, body);
    }
    call_add_header(call, "ETag", call->etag);
    call_add_header(call, "Cache-Control",
                    file->immutable ? "public, max-age=31536000, immutable" : "no-cache");
    call_add_header(call, "Vary", "Accept-Encoding");
}
