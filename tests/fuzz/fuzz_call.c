/* SPDX-License-Identifier: MIT
 *
 * Whole requests through call.h: the input is a request as a text (request_text.h). It is answered twice,
 * with the body in one piece and with its parts in order, then with the body in many pieces, the parts
 * backwards and the reply pulled in many pieces; both must give the same bytes. No input may give a 500;
 * what is refused is a problem document; all memory comes back, and the next request is answered as ever. A
 * GET is asked again as HEAD, and with the tag that it was given.
 *
 * The service has a table, "test_small", and two files of a web page, / and /page.txt. Three headers speak to this target: `Transfer-Encoding` means that
 * the length of the body is not known, `Admin` that the request came by the admin listener, `Stop` that it is
 * stopped before its work.
 */
#include "fuzz/request_text.h"
#include "fuzz/target.h"

#include "api/plans.h"
#include "config.h"
#include "site.h"
#include "tables.h"
#include "wire/bind.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- The service: made once, const but for what it counts ---------------------------------------------- */

struct ground {
    struct config config;
    struct service service;
    struct presets *presets;
    struct tables *tables;
    size_t blocks, bytes; /* taken and not given back */
};

static void *count_alloc(void *context, size_t bytes) {
    struct ground *ground = context;
    ground->blocks++;
    ground->bytes += bytes;
    return malloc(bytes);
}

static void count_release(void *context, void *block, size_t bytes) {
    struct ground *ground = context;
    ground->blocks--;
    ground->bytes -= bytes;
    free(block);
}

/* Limits so small that an input reaches them, and that none is slow. */
static void set_limits(struct config *config) {
    config->body_bytes = 1 << 16;
    config->expanded_bytes = 1 << 19;
    config->envelope_bytes = 1 << 14;
    config->reply_bytes = 1 << 15;
    config->stream_bytes = 1 << 20;
    config->batch_requests = 8;
}

/* The loaded tables: one, "test_small" [4, 2], from a folder that is gone afterwards. */
static void open_tables(struct ground *ground) {
    static const float numbers[8] = {0, 1, -1, 0.5f, 2, -0.25f, 1e-30f, 3e38f};
    const struct pe_tensor tensor = {.dtype = PE_DTYPE_F32, .rank = 2, .dim = {4, 2}};
    char folder[] = "/tmp/fuzz-tables-XXXXXX", path[64], header[PE_NPY_HEADER_MAX];
    struct pe_error err = {0};
    FUZZ_EXPECT(mkdtemp(folder), "cannot make %s", folder);
    snprintf(path, sizeof path, "%s/test_small.npy", folder);
    FILE *file = fopen(path, "wb");
    size_t n = pe_npy_header(header, sizeof header, &tensor);
    FUZZ_EXPECT(file && fwrite(header, 1, n, file) == n && fwrite(numbers, sizeof numbers, 1, file) == 1 &&
                    fclose(file) == 0,
                "cannot write %s", path);
    FUZZ_EXPECT(tables_open(&ground->tables, folder, 1 << 20, &err) == PE_OK, "%s", err.text);
    FUZZ_EXPECT(unlink(path) == 0 && rmdir(folder) == 0, "cannot remove %s", folder);
}

static const unsigned char page[] = "<!doctype html>";
static const struct site_file page_files[] = {
    {"/", "text/html; charset=utf-8", false, {page, 15, "\"page\""}, {page + 10, 4, "\"zip\""}},
    {"/page.txt", "text/plain; charset=utf-8", true, {page, 2, "\"text\""}, {0}},
};
static const struct site site = {page_files, PE_COUNT(page_files)};

static struct ground *ground_get(void) {
    static struct ground ground;
    struct pe_error err = {0};
    if (!ground.presets) {
        pe_linalg_init();
        pe_fields_init(config_fields, config_n_fields, &ground.config, sizeof ground.config);
        set_limits(&ground.config);
        FUZZ_EXPECT(presets_open(&ground.presets, "", &err) == PE_OK, "%s", err.text);
        open_tables(&ground);
        ground.service =
            (struct service){.config = &ground.config,
                             .presets = ground.presets,
                             .tables = ground.tables,
                             .site = &site,
                             .plans = plans_open(1 << 20, NULL), /* its answers must be the same */
                             .allocator = {count_alloc, count_release, &ground}};
    }
    return &ground;
}

/* ---- One answer ---------------------------------------------------------------------------------------- */

#define REPLY_MOST ((size_t)1 << 16) /* over reply_bytes */

struct answer {
    struct call *call;
    bool cut;        /* in many pieces */
    bool head;       /* HEAD in place of GET */
    const char *tag; /* an If-None-Match of its own */
    uint64_t *state; /* where it is cut */
    char *bytes;
    size_t n;
};

static size_t piece(const struct answer *answer, size_t most) {
    return answer->cut ? 1 + fuzz_below(answer->state, 64) : most;
}

static void feed(const struct answer *answer, const struct request_text *text) {
    bool more = !call_answered(answer->call);
    for (size_t at = 0, n; more && at < text->body_n; at += n) {
        n = piece(answer, text->body_n);
        n = n < text->body_n - at ? n : text->body_n - at;
        char *own = fuzz_copy((const char *)text->body + at, n);
        more = call_feed(answer->call, own, n);
        free(own);
    }
}

static void run(const struct answer *answer) {
    size_t n = call_work(answer->call)->n_parts;
    for (size_t i = 0; i < n; i++) {
        call_run(answer->call, answer->cut ? n - 1 - i : i);
    }
}

/* Up to the end; of a long stream only the beginning, as for a client that goes away. */
static void pull(struct answer *answer) {
    const struct call_reply *reply = call_reply(answer->call);
    for (size_t n = 1; n > 0 && answer->n < REPLY_MOST; answer->n += n) {
        size_t room = answer->cut ? 1 + fuzz_below(answer->state, 4096) : 1 << 14;
        char *own = malloc(room);
        answer->bytes = realloc(answer->bytes, answer->n + room);
        FUZZ_EXPECT(own && answer->bytes, "no memory");
        n = call_pull(answer->call, own, room);
        FUZZ_EXPECT(n <= room, "%zu bytes in %zu", n, room);
        memcpy(answer->bytes + answer->n, own, n);
        free(own);
    }
    if (answer->n >= REPLY_MOST) {
        FUZZ_EXPECT(reply->stream, "the reply does not end");
        answer->n = REPLY_MOST;
        return;
    }
    FUZZ_EXPECT(reply->length < 0 || call_failed_short(answer->call) || reply->length == (int64_t)answer->n,
                "%zu bytes, %lld were announced", answer->n, (long long)reply->length);
}

/* An id that was drawn, not sent, is another each time. */
static void hide_id(struct answer *answer, const char *sent) {
    const char *id = call_request_id(answer->call);
    size_t length = sent && strcmp(sent, id) == 0 ? 0 : strlen(id);
    for (size_t i = 0; length && i + length <= answer->n; i++) {
        if (memcmp(answer->bytes + i, id, length) == 0) {
            memset(answer->bytes + i, '#', length);
        }
    }
}

static void answer_open(struct answer *answer, const struct ground *ground, const struct request_text *text,
                        bool stop) {
    struct call_head head = {0};
    char *block = gate_head(&text->head, &head);
    FUZZ_EXPECT(block, "no memory");
    head.target = text->head.target;
    head.content_length = request_text_header(text, "Transfer-Encoding") ? -1 : (int64_t)text->body_n;
    head.admin = request_text_header(text, "Admin") != NULL;
    head.method = answer->head ? "HEAD" : head.method;
    head.if_none_match = answer->tag ? answer->tag : head.if_none_match;
    answer->call = call_open(&ground->service, &head);
    FUZZ_EXPECT(answer->call, "no memory");
    free(block); /* a call keeps copies */
    feed(answer, text);
    call_finish(answer->call);
    if (stop) {
        call_stop(answer->call, CALL_STOP_DEADLINE);
    }
    if (!call_answered(answer->call)) {
        run(answer);
        call_write(answer->call);
    }
    FUZZ_EXPECT(call_answered(answer->call), "is not answered");
    if (!answer->head && strcmp(text->head.method, "HEAD") != 0) {
        pull(answer);
    }
    hide_id(answer, request_text_header(text, "X-Request-Id"));
}

static void answer_close(struct answer *answer) {
    call_close(answer->call);
    free(answer->bytes);
}

/* ---- What must hold of it ------------------------------------------------------------------------------ */

static const char *header(const struct answer *answer, const char *name) {
    const struct call_reply *reply = call_reply(answer->call);
    for (size_t i = 0; i < reply->n_headers; i++) {
        if (strcmp(reply->headers[i].name, name) == 0) {
            return reply->headers[i].value;
        }
    }
    return "";
}

static void check_status(int status, bool stop) {
    static const int allowed[] = {200, 204, 304, 400, 404, 405, 406, 413, 415, 501};
    bool found = stop && status == 504;
    for (size_t i = 0; i < PE_COUNT(allowed); i++) {
        found = found || allowed[i] == status;
    }
    FUZZ_EXPECT(found, "status %d", status);
}

static void check_problem(const struct answer *answer, const json_t *json) {
    int status = call_reply(answer->call)->status;
    const char *detail = json_string_value(json_object_get(json, "detail"));
    const char *type = json_string_value(json_object_get(json, "type"));
    FUZZ_EXPECT(strcmp(header(answer, "Content-Type"), "application/problem+json") == 0, "%d is a %s", status,
                header(answer, "Content-Type"));
    FUZZ_EXPECT(json_is_string(json_object_get(json, "field")), "a problem without a field");
    FUZZ_EXPECT(detail && detail[0], "a problem without a detail");
    FUZZ_EXPECT(type && strncmp(type, "urn:posenc:error:", 17) == 0, "a problem without a type");
    FUZZ_EXPECT(json_integer_value(json_object_get(json, "status")) == status, "another status");
}

static void check_headers(const struct answer *answer) {
    const struct call_reply *reply = call_reply(answer->call);
    for (size_t i = 0; i < reply->n_headers; i++) {
        const char *value = reply->headers[i].value;
        for (; *value; value++) {
            FUZZ_EXPECT((unsigned char)*value >= 0x20 && *value != 0x7f, "header %s has byte 0x%02x",
                        reply->headers[i].name, (unsigned char)*value);
        }
    }
}

/* What goes into the log. */
static void check_record(const struct call *call) {
    const char *trace = call_traceparent(call);
    int status = call_reply(call)->status, code = call_error(call)->code;
    fuzz_error_check(code, call_error(call));
    FUZZ_EXPECT((status >= 400) == (code != 0), "status %d of error %d", status, code);
    FUZZ_EXPECT(!trace || strlen(trace) == 55, "traceparent %s", trace);
    FUZZ_EXPECT(call_route_name(call)[0], "a route without a name");
}

static void check_answer(const struct answer *answer, bool stop) {
    int status = call_reply(answer->call)->status;
    json_error_t error;
    check_status(status, stop);
    check_headers(answer);
    check_record(answer->call);
    bool is_json = strstr(header(answer, "Content-Type"), "json") != NULL;
    FUZZ_EXPECT(status < 400 || is_json, "a problem that is no JSON");
    if (!is_json || !answer->n || answer->n == REPLY_MOST || call_failed_short(answer->call)) {
        return;
    }
    json_t *json = json_loadb(answer->bytes, answer->n, JSON_REJECT_DUPLICATES, &error);
    FUZZ_EXPECT(json, "%s in %.*s", error.text, (int)answer->n, answer->bytes);
    if (status >= 400) {
        check_problem(answer, json);
    }
    json_decref(json);
}

static void check_same(const struct answer *a, const struct answer *b) {
    const struct call_reply *one = call_reply(a->call), *two = call_reply(b->call);
    FUZZ_EXPECT(one->status == two->status, "status %d, then %d", one->status, two->status);
    FUZZ_EXPECT(one->length == two->length && one->stream == two->stream, "%lld bytes, then %lld",
                (long long)one->length, (long long)two->length);
    FUZZ_EXPECT(b->head || (a->n == b->n && (a->n == 0 || memcmp(a->bytes, b->bytes, a->n) == 0)),
                "first %.*s\nthen %.*s", (int)a->n, a->bytes, (int)b->n, b->bytes);
    FUZZ_EXPECT(one->n_headers == two->n_headers, "%zu headers, then %zu", one->n_headers, two->n_headers);
    for (size_t i = 0; i < one->n_headers; i++) {
        const struct call_header *left = &one->headers[i], *right = &two->headers[i];
        bool own = strcmp(left->name, "Server-Timing") == 0 || strcmp(left->name, "X-Request-Id") == 0;
        FUZZ_EXPECT(strcmp(left->name, right->name) == 0 && (own || strcmp(left->value, right->value) == 0),
                    "%s: %s, then %s: %s", left->name, left->value, right->name, right->value);
    }
}

/* HEAD tells what GET would, and a tag that was given out is known again. */
static void check_related(const struct ground *ground, const struct request_text *text,
                          const struct answer *get) {
    struct answer head = {.head = true};
    answer_open(&head, ground, text, false);
    if (call_reply(get->call)->status != 405) { /* it names the method */
        check_same(get, &head);
    }
    answer_close(&head);
    const char *tag = header(get, "ETag");
    if (tag[0]) {
        struct answer again = {.tag = tag};
        answer_open(&again, ground, text, false);
        FUZZ_EXPECT(call_reply(again.call)->status == 304 && again.n == 0, "the tag %s gives a %d", tag,
                    call_reply(again.call)->status);
        FUZZ_EXPECT(strcmp(header(&again, "ETag"), tag) == 0, "%s becomes %s", tag, header(&again, "ETag"));
        answer_close(&again);
    }
}

/* A request whose answer is known. */
static void check_probe(const struct ground *ground) {
    static const char request[] = "GET /v1/encode?type=sinusoidal&d_model=4&positions=1\n\n";
    static const char vectors[] = "\"data\":[[0.84147096,0.5403023,0.009999833,0.99995]]";
    struct request_text text;
    struct answer answer = {0};
    request_text_open(&text, (const uint8_t *)request, sizeof request - 1);
    answer_open(&answer, ground, &text, false);
    bool found = false;
    for (size_t i = 0; i + sizeof vectors - 1 <= answer.n && !found; i++) {
        found = memcmp(answer.bytes + i, vectors, sizeof vectors - 1) == 0;
    }
    FUZZ_EXPECT(found, "the next request is answered with %.*s", (int)answer.n, answer.bytes);
    answer_close(&answer);
    request_text_close(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct ground *ground = ground_get();
    struct request_text text;
    uint64_t state = fuzz_seed(data, size);
    request_text_open(&text, data, size);
    bool stop = request_text_header(&text, "Stop") != NULL;
    struct answer whole = {.state = &state}, cut = {.state = &state, .cut = true};
    answer_open(&whole, ground, &text, stop);
    check_answer(&whole, stop);
    answer_open(&cut, ground, &text, stop);
    check_same(&whole, &cut);
    if (strcmp(text.head.method, "GET") == 0 && !stop) {
        check_related(ground, &text, &whole);
    }
    answer_close(&whole);
    answer_close(&cut);
    check_probe(ground);
    FUZZ_EXPECT(!ground->blocks && !ground->bytes, "%zu blocks of %zu bytes are kept", ground->blocks,
                ground->bytes);
    request_text_close(&text);
    return 0;
}
