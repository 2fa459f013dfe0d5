/* SPDX-License-Identifier: MIT
 *
 * The harness itself allocates nothing while a fault is armed: replies go into static memory, and no
 * ck_assert is asked before it is disarmed, as libcheck's own memory is linked like ours.
 */
#include "faults/fault_call.h"

#include "metrics.h"
#include "routes.h"
#include "tables.h"
#include "wire/bind.h"

#include <stdlib.h>
#include <string.h>

#define MAX_FAULTS 20000 /* a sweep that does not end by itself is a fault, too */

struct answer {
    int status;         /* 0: there was no call */
    char headers[8192]; /* "Name: value" by line */
    size_t n_headers;
    char body[2 << 20];
    size_t n;
    const char *wrong; /* what must never be */
};
static struct answer usual, under_want, after;

/* ---- The service --------------------------------------------------------------------------------------- */

static void table_write(const char *path) {
    char header[PE_NPY_HEADER_MAX];
    struct pe_tensor shape = {.dtype = PE_DTYPE_F32, .rank = 2, .dim = {8, 6}};
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    fwrite(header, 1, pe_npy_header(header, sizeof header, &shape), file);
    for (int i = 0; i < 48; i++) {
        float x = (float)(i * 37 % 101) / 8.0F - 6;
        fwrite(&x, sizeof x, 1, file);
    }
    fclose(file);
}

void fault_ground_open(struct call_ground *ground) {
    char folder[] = "/tmp/check_faults_XXXXXX", path[100];
    const char *names[256];
    struct pe_error err = {0};
    fault_setup();
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/test_table.npy", folder);
    table_write(path);
    call_ground_open_tables(ground, folder);
    ground->service.plans = NULL; /* each request makes its own, so that all of its allocations are tried */
    remove(path);
    remove(folder);
    ground->service.metrics = metrics_open(names, routes_names(names, PE_COUNT(names)), &err);
    ck_assert_ptr_nonnull(ground->service.metrics);
}

void fault_ground_close(struct call_ground *ground) {
    metrics_close(ground->service.metrics);
    call_ground_close(ground);
}

/* ---- One request --------------------------------------------------------------------------------------- */

static struct call *open_call(const struct call_ground *ground, const struct call_try *try, char *method,
                              size_t size) {
    struct call_head head = try->head;
    size_t n = strcspn(try->request, " ");
    n = n < size ? n : size - 1;
    memcpy(method, try->request, n);
    method[n] = '\0';
    head.method = method;
    head.target = try->request + n + 1;
    head.request_id = "fault";
    head.content_length = head.content_length > 0 ? head.content_length : (int64_t)try->body_n;
    return call_open(&ground->service, &head);
}

static void take_headers(const struct call_reply *reply, struct answer *answer) {
    for (size_t i = 0; i < reply->n_headers; i++) {
        const struct call_header *header = &reply->headers[i];
        if (strcmp(header->name, "Server-Timing") != 0) { /* the only one that differs from time to time */
            answer->n_headers += (size_t)snprintf(answer->headers + answer->n_headers,
                                                  sizeof answer->headers - answer->n_headers, "%s: %s\n",
                                                  header->name, header->value);
        }
    }
}

static void take_body(struct call *call, struct answer *answer) {
    const struct call_reply *reply = call_reply(call);
    for (size_t n; (n = call_pull(call, answer->body + answer->n, sizeof answer->body - answer->n)) > 0;) {
        answer->n += n;
    }
    if (call_failed_short(call) || (reply->length >= 0 && reply->length != (int64_t)answer->n)) {
        answer->wrong = "the body has another length than its reply says";
    }
}

static void run_call(struct call *call, const struct call_try *try, struct answer *answer, bool wants_body) {
    size_t step = try->chunk ? try->chunk : 4096;
    bool more = !call_answered(call);
    for (size_t at = 0; more && at < try->body_n; at += step) {
        size_t n = try->body_n - at < step ? try->body_n - at : step;
        more = call_feed(call, (const char *)try->body + at, n);
    }
    call_finish(call);
    for (size_t part = 0; part < call_work(call)->n_parts; part++) {
        call_run(call, part);
    }
    call_write(call);
    answer->wrong = call_answered(call) ? NULL : "there is no answer";
    answer->status = call_reply(call)->status;
    take_headers(call_reply(call), answer);
    if (wants_body) {
        take_body(call, answer);
    }
}

/* Did the fault strike? */
static bool run(const struct call_ground *ground, const struct call_try *try, size_t n, enum fault_mode mode,
                struct answer *answer) {
    char method[16];
    answer->status = 0;
    answer->wrong = NULL;
    answer->n = answer->n_headers = 0;
    answer->headers[0] = '\0';
    fault_arm(n, mode);
    struct call *call = open_call(ground, try, method, sizeof method);
    if (call) {
        run_call(call, try, answer, strcmp(method, "HEAD") != 0);
    }
    call_close(call);
    bool struck = fault_disarm();
    ck_assert_msg(!answer->wrong, "%s\nfault %zu: %s", try->request, n, answer->wrong);
    return struck;
}

/* ---- Judging ------------------------------------------------------------------------------------------- */

static bool has(const struct answer *answer, const char *header) {
    const char *at = strstr(answer->headers, header);
    return at && (at == answer->headers || at[-1] == '\n') && at[strlen(header)] == '\n';
}

static bool same(const struct answer *a, const struct answer *b, bool varies) {
    return a->status == b->status && strcmp(a->headers, b->headers) == 0 &&
           (varies || (a->n == b->n && memcmp(a->body, b->body, a->n) == 0));
}

static bool says_memory(const json_t *problem) {
    const char *type = json_string_value(json_object_get(problem, "type"));
    return type && strcmp(type, "urn:posenc:error:memory") == 0;
}

/* 503, honestly. */
static bool is_want(const struct call_try *try, const struct answer *answer, enum fault_mode mode) {
    bool may_be_empty = mode == FAULT_ONWARDS || strncmp(try->request, "HEAD ", 5) == 0;
    if (answer->status != 503 || !has(answer, "Retry-After: 1") ||
        !has(answer, "Content-Type: application/problem+json")) {
        return false;
    }
    json_t *problem = json_loadb(answer->body, answer->n, JSON_REJECT_DUPLICATES, NULL);
    bool good = problem ? says_memory(problem) : answer->n == 0 && may_be_empty;
    json_decref(problem);
    return good;
}

/* A batch in which an entry failed for want; the others are as always. */
static bool is_batch_want(const struct answer *answer) {
    json_t *got = json_loadb(answer->body, answer->n, JSON_REJECT_DUPLICATES, NULL);
    json_t *wanted = json_loadb(usual.body, usual.n, JSON_REJECT_DUPLICATES, NULL);
    const json_t *entries = json_object_get(got, "responses"),
                 *as_always = json_object_get(wanted, "responses");
    size_t n = json_array_size(as_always), n_failed = 0;
    bool good = n > 0 && json_array_size(entries) == n && answer->status == 200;
    for (size_t i = 0; good && i < n; i++) {
        const json_t *entry = json_array_get(entries, i);
        bool failed = json_integer_value(json_object_get(entry, "status")) == 503 &&
                      says_memory(json_object_get(entry, "body"));
        n_failed += failed;
        good = failed || json_equal(entry, json_array_get(as_always, i));
    }
    json_decref(got);
    json_decref(wanted);
    return good && n_failed > 0;
}

static bool is_good(const struct call_try *try, const struct answer *answer, enum fault_mode mode,
                    bool varies) {
    bool bare = usual.status >= 400 && answer->status == usual.status && answer->n == 0;
    return answer->status == 0 || same(answer, &usual, varies) || is_want(try, answer, mode) || bare ||
           (strstr(try->request, "/batch") && is_batch_want(answer));
}

static void judge(const struct call_ground *ground, const struct call_try *try, size_t n,
                  enum fault_mode mode, bool varies) {
    ck_assert_msg(is_good(try, &under_want, mode, varies),
                  "%s %.300s\nfault %zu%s: status %d (always %d)\n%s\n%.*s", try->request,
                  try->body ? (const char *)try->body : "", n, mode == FAULT_ONWARDS ? " and all after" : "",
                  under_want.status, usual.status, under_want.headers,
                  (int)(under_want.n < 1000 ? under_want.n : 1000), under_want.body);
    ck_assert_msg(fault_live() == 0 && atomic_load(&ground->blocks) == 0,
                  "%s\nfault %zu%s: %zu blocks, %zu of the service's", try->request, n,
                  mode == FAULT_ONWARDS ? " and all after" : "", fault_live(), atomic_load(&ground->blocks));
}

/* After each single fault the same request is answered as always; after those that go on it is asked at the end, as
 * what a fault left behind would still be there. */
static size_t sweep(const struct call_ground *ground, const struct call_try *try, enum fault_mode mode,
                    bool varies) {
    size_t n = 1;
    while (run(ground, try, n, mode, &under_want)) {
        judge(ground, try, n, mode, varies);
        if (mode == FAULT_ONCE) {
            run(ground, try, 0, mode, &after);
            ck_assert_msg(same(&after, &usual, varies), "%s\nafter fault %zu: status %d", try->request, n,
                          after.status);
        }
        ck_assert_uint_lt(++n, MAX_FAULTS);
    }
    ck_assert_msg(same(&under_want, &usual, varies), "%s: without a fault, status %d", try->request,
                  under_want.status);
    return n - 1;
}

size_t fault_sweep(const struct call_ground *ground, const struct call_try *in, bool varies) {
    struct call_try try = *in;
    try.body_n = try.body && !try.body_n ? strlen(try.body) : try.body_n;
    run(ground, &try, 0, FAULT_ONCE, &usual);
    ck_assert_int_ne(usual.status, 0);
    ck_assert_uint_eq(fault_live(), 0);
    size_t once = sweep(ground, &try, FAULT_ONCE, varies),
           onwards = sweep(ground, &try, FAULT_ONWARDS, varies);
    return once + onwards;
}
