/* SPDX-License-Identifier: MIT
 *
 * The header gate: the input is the head of a request (request_text.h). What is let in is unambiguous by a
 * plain count of its fields, its texts hold no control characters, and what calls get to see are the values
 * that were sent. A line that the library would hide is found out.
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

static size_t trimmed(const char *value, size_t n) {
    while (n > 0 && (value[n - 1] == ' ' || value[n - 1] == '\t')) {
        n--;
    }
    return n;
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
        size_t size = trimmed(header->value, header->value_size);
        FUZZ_EXPECT(at + size <= n && memcmp(got + at, header->value, size) == 0, "%s is \"%s\" at part %zu",
                    name, got, parts);
        at += size;
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

/* ---- As it was received -------------------------------------------------------------------------------- */

static char *put(char *at, const char *bytes, size_t n) {
    memcpy(at, bytes, n);
    return at + n;
}

/* The head as it would be received, with the texts where they lie in it; behind the version (0) or a header
 * (1..) a folded line is hidden. free() what is returned. */
static char *lay_out(const struct gate_request *in, struct gate_request *out, size_t hidden) {
    static const char fold[] = "\0\n folded";
    size_t size = strlen(in->method) + strlen(in->target) + strlen(in->version) + 6 + sizeof fold;
    for (size_t i = 0; i < in->n_headers; i++) {
        size += in->headers[i].name_size + in->headers[i].value_size + 4;
    }
    char *head = calloc(1, size), *at = head;
    FUZZ_EXPECT(head, "no memory");
    *out = *in;
    out->method = at;
    at = put(put(at, in->method, strlen(in->method)), "\0", 1); /* the library puts zeros behind texts */
    out->target_at = at;
    at = put(put(at, in->target, strlen(in->target)), "\0", 1);
    out->version = at;
    at = put(at, in->version, strlen(in->version));
    for (size_t i = 0; i <= in->n_headers; i++) {
        at = hidden == i ? put(at, fold, sizeof fold - 1) : at;
        at = put(at, "\0\n", 2);
        if (i < in->n_headers) {
            struct gate_header *header = &out->headers[i];
            header->name = at;
            at = put(put(at, in->headers[i].name, header->name_size), "\0 ", 2);
            header->value = at;
            at = put(at, in->headers[i].value, header->value_size);
        }
    }
    out->head_size = (size_t)(put(at, "\r\n", 2) - head);
    return head;
}

/* Lying as received, it is judged as before; with something hidden in it, it is refused. */
static void check_received(const struct gate_request *request, const struct gate_result *result,
                           uint64_t *state) {
    struct gate_request received;
    struct gate_result again;
    char *head = lay_out(request, &received, SIZE_MAX);
    gate_check(&received, &again);
    FUZZ_EXPECT(again.code == result->code && strcmp(again.detail, result->detail) == 0, "%d %s, not %d %s",
                again.code, again.detail, result->code, result->detail);
    free(head);
    size_t hidden = fuzz_below(state, request->n_headers + 1);
    head = lay_out(request, &received, hidden);
    gate_check(&received, &again);
    FUZZ_EXPECT(again.code != 0, "a line hidden behind header %zu of %zu is let in", hidden,
                request->n_headers);
    free(head);
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
        bool server = strcmp(text.head.method, "CONNECT") == 0 || strcmp(target, "*") == 0;
        FUZZ_EXPECT(target[0] == '/' || server, "target %s", target);
        check_let_in(&text, &result);
        check_head(&text);
    } else { /* a head is wanted even of what is refused, for the log */
        struct call_head head = {0};
        free(gate_head(&text.head, &head));
    }
    if (text.head.n_headers <= GATE_MAX_HEADERS) {
        uint64_t state = fuzz_seed(data, size);
        check_received(&text.head, &result, &state);
    }
    request_text_close(&text);
    return 0;
}
