/* SPDX-License-Identifier: MIT
 *
 * RFC 9112 (message syntax) and RFC 9110 (fields), read strictly. Order of the checks: first what makes the
 * message ambiguous, then what is only wrong. The values that a reply would echo are never echoed: a detail
 * names the field, and its name only after it was found to be a token.
 */
#include "gate.h"

#include "wire/problem.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- Characters ---------------------------------------------------------------------------------------- */

/* The characters of a method or a field's name (RFC 9110 section 5.6.2). */
static bool is_token(const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        bool common = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || (c >= '0' && c <= '9');
        if (!common && (c == '\0' || strchr("!#$%&'*+.^_`|~", c) == NULL)) {
            return false;
        }
    }
    return size > 0;
}

/* No control characters but the tab; bytes beyond ASCII are opaque and allowed. */
static bool is_value(const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            return false;
        }
    }
    return true;
}

/* Without the white space at its end, which is no part of a value; that before it is gone already. */
static size_t trimmed(const struct gate_header *header) {
    size_t size = header->value_size;
    while (size > 0 && (header->value[size - 1] == ' ' || header->value[size - 1] == '\t')) {
        size--;
    }
    return size;
}

static bool same(const struct gate_header *header, const char *name) {
    return header->name_size == strlen(name) && strncasecmp(header->name, name, header->name_size) == 0;
}

static bool value_is(const struct gate_header *header, const char *text) {
    return header->value_size == strlen(text) && strncasecmp(header->value, text, header->value_size) == 0;
}

/* ---- Faults -------------------------------------------------------------------------------------------- */

/* The first fault stays. */
static void refuse(struct gate_result *result, int code, const char *field, const char *detail) {
    if (result->code == 0) {
        result->code = code;
        result->field = field;
        snprintf(result->detail, sizeof result->detail, "%s", detail);
    }
}

static void refuse_field(struct gate_result *result, int code, const struct gate_header *header,
                         const char *what) {
    if (result->code == 0) {
        int shown = header->name_size < 60 ? (int)header->name_size : 60;
        result->code = code;
        result->field = "headers";
        snprintf(result->detail, sizeof result->detail, "header %.*s: %s", shown, header->name, what);
    }
}

/* ---- The request line ---------------------------------------------------------------------------------- */

/* The byte that "%XY" at text stands for; -1 when it is not an escape. */
static int escaped(const char *text) {
    static const char digits[] = "0123456789abcdef";
    int value = 0;
    for (int i = 1; i <= 2; i++) {
        const char *digit = text[i] == '\0' ? NULL : strchr(digits, tolower((unsigned char)text[i]));
        if (digit == NULL) {
            return -1;
        }
        value = value * 16 + (int)(digit - digits);
    }
    return value;
}

/* The forms of RFC 9112 section 3.2: two methods may be asked of the server, not of a path. */
static bool is_form(const struct gate_request *request) {
    if (strcmp(request->method, "CONNECT") == 0) {
        return request->target[0] != '\0';
    }
    return gate_target(request->target)[0] == '/' ||
           (strcmp(request->method, "OPTIONS") == 0 && strcmp(request->target, "*") == 0);
}

static void check_target(const struct gate_request *request, struct gate_result *result) {
    const char *target = request->target;
    bool in_path = true;
    for (const char *c = target; *c != '\0'; c++) {
        in_path = in_path && *c != '?';
        if (*c <= 0x20 || *c >= 0x7f || *c == '#') {
            refuse(result, SERVER_BAD_REQUEST, in_path ? "path" : "query",
                   "the target holds a space, a control character, a # or a byte beyond ASCII; it must be "
                   "percent-encoded");
        } else if (*c == '%' && in_path && escaped(c) < 0) {
            refuse(result, SERVER_BAD_REQUEST, "path",
                   "the path holds a % that two hexadecimal digits do not follow");
        } else if (*c == '%' && in_path && (escaped(c) < 0x20 || escaped(c) == 0x7f)) {
            refuse(result, SERVER_BAD_REQUEST, "path", "the path holds an encoded control character");
        }
    }
    if (!is_form(request)) {
        refuse(result, SERVER_BAD_REQUEST, "path", "the target must begin with / (or http://host/)");
    }
}

const char *gate_target(const char *target) {
    size_t skip = 0;
    if (strncasecmp(target, "http://", 7) == 0) {
        skip = 7;
    } else if (strncasecmp(target, "https://", 8) == 0) {
        skip = 8;
    } else {
        return target;
    }
    size_t host = strcspn(target + skip, "/?");
    if (host == 0) {
        return target;
    }
    const char *path = target + skip + host;
    return *path == '\0' ? "/" : path; /* "?query" without a path is refused by the gate */
}

/* ---- Header fields ------------------------------------------------------------------------------------- */

/* A length is digits only. One that does not fit is as large as can be: the limit will refuse it. */
static int64_t parse_length(const struct gate_header *header) {
    int64_t length = 0;
    for (size_t i = 0; i < header->value_size; i++) {
        int digit = header->value[i] - '0';
        if (digit < 0 || digit > 9) {
            return -1;
        }
        length = length > (INT64_MAX - digit) / 10 ? INT64_MAX : length * 10 + digit;
    }
    return header->value_size > 0 ? length : -1;
}

/* Where the host at the beginning of text ends; 0 = there is none. A name of RFC 3986 without the comma, by
 * which some would join two hosts, or an address in brackets. */
static size_t host_end(const char *text, size_t size) {
    bool brackets = size > 0 && text[0] == '[';
    size_t end = brackets ? 1 : 0;
    while (end < size && text[end] != '\0' &&
           (isalnum((unsigned char)text[end]) || strchr("-._~%!$&'()*+;=", text[end]) != NULL ||
            (brackets && text[end] == ':'))) {
        end++;
    }
    if (!brackets) {
        return end;
    }
    return end > 1 && end < size && text[end] == ']' ? end + 1 : 0;
}

/* host or host ":" digits */
static bool is_host(const char *text, size_t size) {
    size_t end = host_end(text, size);
    bool port = end < size && text[end] == ':';
    for (size_t i = end + 1; port && i < size; i++) {
        port = text[i] >= '0' && text[i] <= '9';
    }
    return end > 0 && (end == size || port);
}

struct framing {
    size_t n_lengths, n_codings, n_hosts;
};

static void check_framing_field(const struct gate_header *header, struct framing *framing,
                                struct gate_result *result) {
    if (same(header, "Content-Length")) {
        framing->n_lengths++;
        result->length = parse_length(header);
        if (result->length < 0) {
            refuse_field(result, SERVER_BAD_REQUEST, header, "must be a whole number of bytes");
        }
    } else if (same(header, "Transfer-Encoding")) {
        framing->n_codings++;
        if (!value_is(header, "chunked")) {
            refuse_field(result, SERVER_NOT_IMPLEMENTED, header, "only chunked is known here");
        }
    } else if (same(header, "Host")) {
        framing->n_hosts++;
        if (!is_host(header->value, trimmed(header))) {
            refuse_field(result, SERVER_BAD_REQUEST, header, "must be host or host:port");
        }
    } else if (same(header, "Expect")) {
        result->expects_continue = value_is(header, "100-continue");
    }
}

static void check_framing(const struct gate_request *request, const struct framing *framing,
                          struct gate_result *result) {
    bool one_zero = strcmp(request->version, "HTTP/1.0") == 0;
    if (framing->n_lengths > 1) {
        refuse(result, SERVER_BAD_REQUEST, "Content-Length", "header Content-Length was sent more than once");
    }
    if (framing->n_lengths > 0 && framing->n_codings > 0) {
        refuse(result, SERVER_BAD_REQUEST, "Content-Length",
               "headers Content-Length and Transfer-Encoding contradict each other");
    }
    if (framing->n_codings > 1 || (framing->n_codings > 0 && one_zero)) {
        refuse(result, SERVER_BAD_REQUEST, "Transfer-Encoding",
               one_zero ? "HTTP/1.0 has no Transfer-Encoding"
                        : "header Transfer-Encoding was sent more than once");
    }
    if (framing->n_hosts > 1) {
        refuse(result, SERVER_BAD_REQUEST, "Host", "header Host was sent more than once");
    }
    if (framing->n_hosts == 0 && !one_zero) {
        refuse(result, SERVER_BAD_REQUEST, "Host", "header Host is missing");
    }
    if (framing->n_codings > 0) {
        result->length = -1;
    } else if (framing->n_lengths == 0) {
        result->length = 0;
    }
}

static uintptr_t end_of(const char *text, size_t size) {
    return (uintptr_t)text + size;
}

/* Is all that was received among the texts? See gate.h for what the library hides. Addresses are compared,
 * nothing between the texts is read. */
static void check_gaps(const struct gate_request *request, struct gate_result *result) {
    if (request->target_at == NULL) {
        return;
    }
    uintptr_t target = (uintptr_t)request->target_at, version = (uintptr_t)request->version;
    if (target != end_of(request->method, strlen(request->method)) + 1 ||
        version != target + strlen(request->target) + 1) {
        refuse(result, SERVER_BAD_REQUEST, "body", "the request line holds a NUL");
    }
    uintptr_t end = end_of(request->version, strlen(request->version)), crlf = 2;
    for (size_t i = 0; i < request->n_headers; i++) {
        const struct gate_header *header = &request->headers[i];
        if ((uintptr_t)header->name != end + crlf) {
            break;
        }
        end = end_of(header->value, header->value_size);
    }
    if (end_of(request->method, request->head_size) != end + 2 * crlf) {
        refuse(result, SERVER_BAD_REQUEST, "headers",
               "a line of the header is folded, begins with a colon, ends without CR, or holds a NUL");
    }
}

/* What of a head is kept, and which fields may come in several lines (RFC 9110 section 5.3: lists). */
struct head_row {
    const char *name;
    size_t name_size;
    size_t offset; /* of the const char * in struct call_head */
    bool list;
};
#define ROW(name_, member_, list_)                                                                           \
    {                                                                                                        \
        .name = name_, .name_size = sizeof(name_) - 1, .offset = offsetof(struct call_head, member_),        \
        .list = list_                                                                                        \
    }
static const struct head_row head_rows[] = {
    ROW("Accept", accept, true),
    ROW("Accept-Encoding", accept_encoding, true),
    ROW("If-None-Match", if_none_match, true),
    ROW("Content-Type", content_type, false),
    ROW("Content-Encoding", content_encoding, true),
    ROW("X-Request-Id", request_id, false),
    ROW("Traceparent", traceparent, false),
    ROW("X-Posenc-Timeout-Ms", timeout_ms, false),
    ROW("X-Posenc-Shape", raw_shape, false),
    ROW("X-Posenc-Dtype", raw_dtype, false),
};

static bool is_of(const struct head_row *row, const struct gate_header *header) {
    return row->name_size == header->name_size && strncasecmp(row->name, header->name, row->name_size) == 0;
}

static void check_single(const struct gate_request *request, const struct head_row *row,
                         struct gate_result *result) {
    size_t n = 0;
    for (size_t i = 0; i < request->n_headers; i++) {
        n += is_of(row, &request->headers[i]) ? 1 : 0;
        if (n > 1) {
            refuse_field(result, SERVER_BAD_REQUEST, &request->headers[i], "was sent more than once");
        }
    }
}

void gate_check(const struct gate_request *request, struct gate_result *result) {
    struct framing framing = {0};
    *result = (struct gate_result){.length = -1};
    if (request->n_headers > GATE_MAX_HEADERS) {
        refuse(result, SERVER_BAD_REQUEST, "headers", "more than 128 header fields");
        return;
    }
    for (size_t i = 0; i < request->n_headers; i++) {
        const struct gate_header *header = &request->headers[i];
        if (!is_token(header->name, header->name_size)) {
            refuse(result, SERVER_BAD_REQUEST, "headers",
                   "a header's name holds a space or another character that names "
                   "must not have");
        } else if (!is_value(header->value, header->value_size)) {
            refuse_field(result, SERVER_BAD_REQUEST, header, "its value holds a control character");
        }
    }
    for (size_t i = 0; i < request->n_headers; i++) {
        check_framing_field(&request->headers[i], &framing, result);
    }
    check_framing(request, &framing, result);
    check_gaps(request, result);
    if (!is_token(request->method, strlen(request->method))) {
        refuse(result, SERVER_BAD_REQUEST, "method", "the method is not a word");
    }
    check_target(request, result);
    for (size_t i = 0; i < PE_COUNT(head_rows); i++) {
        if (!head_rows[i].list) {
            check_single(request, &head_rows[i], result);
        }
    }
}

/* ---- The head ------------------------------------------------------------------------------------------ */

/* All values of one name, joined, to text; returns the bytes used, 0 = the field was not sent. */
static size_t collect(const struct gate_request *request, const struct head_row *row, char *text) {
    size_t used = 0;
    for (size_t i = 0; i < request->n_headers; i++) {
        const struct gate_header *header = &request->headers[i];
        if (!is_of(row, header)) {
            continue;
        }
        if (used > 0) {
            memcpy(text + used, ", ", 2);
            used += 2;
        }
        size_t size = trimmed(header);
        memcpy(text + used, header->value, size);
        used += size;
    }
    text[used] = '\0';
    return used;
}

char *gate_head(const struct gate_request *request, struct call_head *head) {
    size_t n = request->n_headers < GATE_MAX_HEADERS ? request->n_headers : GATE_MAX_HEADERS;
    size_t method_size = strlen(request->method) + 1;
    size_t size = method_size + PE_COUNT(head_rows);
    for (size_t i = 0; i < n; i++) {
        size += request->headers[i].value_size + 2;
    }
    char *block = malloc(size);
    if (block == NULL) {
        return NULL;
    }
    struct gate_request seen = *request;
    seen.n_headers = n;
    memcpy(block, request->method, method_size);
    head->method = block;
    char *text = block + method_size;
    for (size_t r = 0; r < PE_COUNT(head_rows); r++) {
        size_t used = collect(&seen, &head_rows[r], text);
        const char *value = used > 0 ? text : NULL;
        memcpy((char *)head + head_rows[r].offset, &value, sizeof value);
        text += used > 0 ? used + 1 : 0;
    }
    return block;
}
