/* SPDX-License-Identifier: MIT
 *
 * The header gate: the input is the head of a request (request_text.h). What is let in is unambiguous by a
 * plain count of its fields, its texts hold no control characters, and what calls get to see are the values
 * that were sent.
 */
#include "fuzz/request_text.h"
#include "fuzz/target.h"

#include "wire/problem.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static size_t count(const struct gate_request *request, const char *name) {
    size_t n = 0;
    for (size_t i = 0; i < request->n_headers; i++) {
        n += request->headers[i].name_size == strlen(name) && strcasecmp(request->headers[i].name, name) == 0;
    }
    return n;
}

static bool is_clean(const char *text, size_t n, bool tab) {
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c < 0x20 && !(tab && c == '\t')) || c == 0x7f) {
            return false;
        }
    }
    return true;
}

static void check_length(const struct request_text *text, const struct gate_result *result) {
    const char *length = request_text_header(text, "Content-Length");
    if (!length) {
        bool chunked = count(&text->head, "Transfer-Encoding") > 0;
        FUZZ_EXPECT(result->length == (chunked ? -1 : 0), "length %lld", (long long)result->length);
        return;
    }
    FUZZ_EXPECT(length[0] && length[strspn(length, "0123456789")] == '\0', "length %s is let in", length);
    long long number = strtoll(length, NULL, 10); /* held at the largest one */
    FUZZ_EXPECT(result->length == number, "length %s is %lld", length, (long long)result->length);
}

static void check_let_in(const struct request_text *text, const struct gate_result *result) {
    static const char *const single[] = {"Content-Length", "Transfer-Encoding",  "Content-Type",
                                         "X-Request-Id",   "X-Posenc-Shape",     "X-Posenc-Dtype",
                                         "Traceparent",    "X-Posenc-Timeout-Ms"};
    const struct gate_request *head = &text->head;
    bool one_zero = strcmp(head->version, "HTTP/1.0") == 0;
    size_t hosts = count(head, "Host"), codings = count(head, "Transfer-Encoding");
    FUZZ_EXPECT(head->n_headers <= GATE_MAX_HEADERS, "%zu headers are let in", head->n_headers);
    FUZZ_EXPECT(hosts == 1 || (hosts == 0 && one_zero), "%zu hosts are let in", hosts);
    FUZZ_EXPECT(!codings || (!count(head, "Content-Length") && !one_zero), "two framings are let in");
    for (size_t i = 0; i < sizeof single / sizeof *single; i++) {
        FUZZ_EXPECT(count(head, single[i]) <= 1, "several %s are let in", single[i]);
    }
    for (size_t i = 0; i < head->n_headers; i++) {
        const struct gate_header *header = &head->headers[i];
        FUZZ_EXPECT(header->name_size > 0 && is_clean(header->name, header->name_size, false) &&
                        !memchr(header->name, ' ', header->name_size),
                    "the name of header %zu is let in", i);
        FUZZ_EXPECT(is_clean(header->value, header->value_size, true), "the value of %s is let in",
                    header->name);
    }
    FUZZ_EXPECT(is_clean(head->target, strlen(head->target), false) && !strchr(head->target, ' '),
                "the target is let in");
    check_length(text, result);
}

/* The values of one name, joined by ", ", are what the call sees; without a byte there is nothing. */
static void check_joined(const struct gate_request *request, const char *name, const char *got) {
    size_t at = 0, parts = 0;
    got = got ? got : "";
    size_t n = strlen(got);
    for (size_t i = 0; i < request->n_headers; i++) {
        const struct gate_header *header = &request->headers[i];
        if (strcasecmp(header->name, name) != 0) {
            continue;
        }
        FUZZ_EXPECT(at + header->value_size <= n && memcmp(got + at, header->value, header->value_size) == 0,
                    "%s is \"%s\" at part %zu", name, got, parts);
        at += header->value_size;
        bool more = at < n;
        FUZZ_EXPECT(!more || (n - at >= 2 && memcmp(got + at, ", ", 2) == 0), "%s is \"%s\"", name, got);
        at += more ? 2 : 0;
        parts++;
    }
    FUZZ_EXPECT(at == n, "%s is \"%s\", longer than what was sent", name, got);
}

static void check_head(const struct request_text *text) {
    struct call_head head = {0};
    char *block = gate_head(&text->head, &head);
    FUZZ_EXPECT(block, "no memory");
    FUZZ_EXPECT(strcmp(head.method, text->head.method) == 0, "method %s", head.method);
    check_joined(&text->head, "Content-Type", head.content_type);
    check_joined(&text->head, "X-Request-Id", head.request_id);
    check_joined(&text->head, "X-Posenc-Shape", head.raw_shape);
    free(block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct request_text text;
    struct gate_result result;
    request_text_open(&text, data, size);
    gate_check(&text.head, &result);
    FUZZ_EXPECT(result.code == 0 || result.code == SERVER_BAD_REQUEST ||
                    result.code == SERVER_NOT_IMPLEMENTED,
                "code %d", result.code);
    FUZZ_EXPECT((result.code == 0) == (result.detail[0] == '\0'), "detail \"%s\"", result.detail);
    FUZZ_EXPECT(is_clean(result.detail, strlen(result.detail), false), "a detail of several lines");
    const char *target = gate_target(text.head.target);
    if (result.code == 0) {
        FUZZ_EXPECT(target[0] == '/' || strcmp(target, "*") == 0, "target %s", target);
        check_let_in(&text, &result);
        check_head(&text);
    } else { /* a head is wanted even of what is refused, for the log */
        struct call_head head = {0};
        free(gate_head(&text.head, &head));
    }
    request_text_close(&text);
    return 0;
}
