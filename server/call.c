/* SPDX-License-Identifier: MIT
 *
 * The life of a request. Each step either moves on or answers; after an answer the later steps do nothing, so
 * callers need not ask.
 */
#include "call_state.h"

#include "config.h"
#include "wire/query.h"
#include "wire/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* A reply whose writing is too long to be done between other requests. */
#define LONG_REPLY_NS 100e3
#define QUICK_QUERY   256 /* bytes of a query, and digits in a row, that cannot stand for much work */
#define QUICK_DIGITS  3

int64_t call_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Another failure takes its place; who may stop the call stays. */
static void error_clear(struct pe_error *err) {
    *err = (struct pe_error){.stop = err->stop};
}

/* ---- open -------------------------------------------------------------------------------------------- */

static const char *copy_text(struct call *call, const char *text) {
    return text ? pe_arena_text(call->arena, text, strlen(text), &call->err) : NULL;
}

static void copy_head(struct call *call, const struct call_head *head) {
    call->head = *head;
    call->head.method = copy_text(call, head->method);
    call->head.target = copy_text(call, head->target);
    call->head.accept = copy_text(call, head->accept);
    call->head.accept_encoding = copy_text(call, head->accept_encoding);
    call->head.content_type = copy_text(call, head->content_type);
    call->head.content_encoding = copy_text(call, head->content_encoding);
    call->head.if_none_match = copy_text(call, head->if_none_match);
    call->head.traceparent = copy_text(call, head->traceparent);
    call->head.timeout_ms = copy_text(call, head->timeout_ms);
    call->head.raw_shape = copy_text(call, head->raw_shape);
    call->head.raw_dtype = copy_text(call, head->raw_dtype);
}

static void draw(unsigned char bytes[CALL_RANDOM_BYTES]) {
    if (getrandom(bytes, CALL_RANDOM_BYTES, GRND_NONBLOCK) != CALL_RANDOM_BYTES) {
        int64_t now = call_now_ns(); /* the clock is better than nothing */
        memset(bytes, 0, CALL_RANDOM_BYTES);
        memcpy(bytes, &now, sizeof now);
    }
}

/* A client's id is taken when it is short printable ASCII; else one is drawn, which tells nobody anything,
 * and differs between all daemons behind one address. */
static void set_request_id(struct call *call, const struct call_head *head) {
    const char *asked = head->request_id;
    size_t n = asked ? strlen(asked) : 0;
    bool good = n > 0 && n <= 128;
    for (size_t i = 0; good && i < n; i++) {
        good = asked[i] > 0x20 && asked[i] < 0x7f;
    }
    if (good) {
        memcpy(call->request_id, asked, n + 1);
        return;
    }
    unsigned char drawn[CALL_RANDOM_BYTES];
    const unsigned char *bytes = head->random;
    if (!bytes) {
        draw(drawn);
        bytes = drawn;
    }
    *text_put_hex(call->request_id, bytes, CALL_RANDOM_BYTES) = '\0';
}

static int set_deadline(struct call *call) {
    int64_t limit_ms = call->service->config->deadline_ms;
    call->deadline_ns = call->times.open + limit_ms * 1000000;
    if (!call->head.timeout_ms) {
        return PE_OK;
    }
    struct pe_number asked;
    enum pe_number_status status =
        pe_number_parse(call->head.timeout_ms, strlen(call->head.timeout_ms), &asked);
    if (status != PE_NUMBER_OK || !(asked.value >= 1 && asked.value <= 1e9)) {
        return pe_fail(&call->err, PE_ERR_RANGE, "X-Posenc-Timeout-Ms",
                       "must be a number of milliseconds from 1 to 1e9, got \"%.40s\"",
                       call->head.timeout_ms);
    }
    if (asked.value < (double)limit_ms) {
        call->deadline_ns = call->times.open + (int64_t)(asked.value * 1e6);
    }
    return PE_OK;
}

static const char *const known_methods[] = {"GET",   "HEAD",    "POST",  "PUT",    "DELETE",
                                            "PATCH", "OPTIONS", "TRACE", "CONNECT"};

static void set_allow(struct call *call) {
    snprintf(call->allow, sizeof call->allow, "%s%s%s", call->route.get ? "GET, HEAD, " : "",
             call->route.post ? "POST, " : "", "OPTIONS");
}

static int check_method(struct call *call) {
    for (size_t i = 0; i < PE_COUNT(known_methods); i++) {
        if (strcmp(call->head.method, known_methods[i]) == 0) {
            return PE_OK;
        }
    }
    return pe_fail(&call->err, SERVER_NOT_IMPLEMENTED, "method", "\"%.20s\" is not a method known here",
                   call->head.method);
}

/* The name of the route under this method, or an answer: OPTIONS, 405. */
static int choose_method(struct call *call) {
    const char *method = call->head.method;
    bool get = strcmp(method, "GET") == 0;
    call->head_only = strcmp(method, "HEAD") == 0;
    call->route_name = get || call->head_only        ? call->route.get
                       : strcmp(method, "POST") == 0 ? call->route.post
                                                     : NULL;
    if (call->route_name) {
        return PE_OK;
    }
    call->route_name = "unmatched";
    set_allow(call);
    if (strcmp(method, "OPTIONS") == 0) {
        call_answer_empty(call, 204);
        call_add_header(call, "Allow", call->allow);
        return PE_OK;
    }
    return pe_fail(&call->err, SERVER_METHOD, "method", "%s is not allowed here; allowed are %s", method,
                   call->allow);
}

/* OPTIONS * and CONNECT host:port are asked of the server, not of a path. */
static bool asks_server(const struct call_head *head) {
    return strcmp(head->method, "CONNECT") == 0 ||
           (strcmp(head->method, "OPTIONS") == 0 && strcmp(head->target, "*") == 0);
}

static int find_route(struct call *call) {
    if (check_method(call)) {
        return call->err.code;
    }
    if (asks_server(&call->head)) {
        call->route = (struct route){.get = "GET *", .post = "POST *"}; /* for Allow: what some path allows */
        return choose_method(call);
    }
    const char *path = target_split(call->arena, call->head.target, &call->query, &call->err);
    if (!path) {
        return call->err.code;
    }
    call->file = call->head.admin ? NULL : site_find(call->service->site, path);
    if (!routes_find(call->file ? "/" : path, &call->route, &call->argument) ||
        (call->head.admin && !call->route.admin)) {
        return pe_fail(&call->err, SERVER_NOT_FOUND, "path", "there is no \"%.100s\"%s", path,
                       call->head.admin ? "" : "; GET /v1 lists what there is");
    }
    return choose_method(call);
}

static int open_steps(struct call *call, const struct call_head *head) {
    copy_head(call, head);
    set_request_id(call, head);
    if (call->err.code || set_deadline(call) || find_route(call) || call->answered) {
        return call->err.code;
    }
    return call_body_open(call);
}

/* What everything that is long asks. */
static bool stop_asked(void *context) {
    return call_stopped(context);
}

struct call *call_open(const struct service *service, const struct call_head *head) {
    struct pe_error err = {0};
    struct call *call = calloc(1, sizeof *call);
    if (!call) {
        return NULL;
    }
    call->service = service;
    call->end_asked = (struct pe_stop){.asked = stop_asked, .context = call};
    call->err.stop = &call->end_asked;
    call->times.open = call_now_ns();
    call->route_name = "unmatched";
    call->arena = pe_arena_open((size_t)service->config->expanded_bytes, &service->allocator, &err);
    if (!call->arena) {
        free(call);
        return NULL;
    }
    if (open_steps(call, head)) {
        call_answer_problem(call);
    }
    return call;
}

bool call_answered(const struct call *call) {
    return call->answered;
}

bool call_feed(struct call *call, const void *bytes, size_t n) {
    if (!call->answered && call_body_feed(call, bytes, n)) {
        call_answer_problem(call);
    }
    return !call->answered;
}

bool call_is_get(const struct call *call) {
    return call->route_name == call->route.get;
}

/* ---- finish ------------------------------------------------------------------------------------------ */

static int answer_page(struct call *call) {
    struct text text = {0};
    struct page page = {.service = call->service,
                        .argument = call->argument,
                        .text = &text,
                        .media = "application/json",
                        .status = 200};
    struct pe_error *err = &call->err;
    if (call->query[0] && pe_fail(err, PE_ERR_UNKNOWN_FIELD, "query", "this resource takes no parameters")) {
        return err->code;
    }
    if (call->route.page(&page, err) || text.failed) {
        text_free(&text);
        return pe_fail(err, PE_ERR_MEMORY, "", "no memory for the reply");
    }
    if (call_buffer_open(call, text.n + 1) == PE_OK) {
        call_buffer_add(call, text.data, text.n);
        call_answer_buffer(call, page.status, page.media, page.fresh);
    }
    text_free(&text);
    return err->code;
}

/* The request's struct from query and body. */
static int bind_task(struct call *call) {
    struct task *task = &call->task;
    if (call_task_init(call, task, call->route.op, &call->err)) {
        return call->err.code;
    }
    struct bind bind = {
        .arena = call->arena,
        .service = call->service,
        .common = {api_common_fields, api_common_n_fields, &task->common},
        .op = {task->op->fields, task->op->n_fields, task->request},
    };
    if (call->body.format && call->body.format->id == FORMAT_RAW) {
        bind.common.n = api_common_n_fields_raw;
    }
    if (bind_query(&bind, call->query, &call->err) || call_body_bind(call, &bind) ||
        bind_finish(&bind, &call->err)) {
        return call->err.code;
    }
    task->posted = bind.posted;
    task->stream_ok = call_is_get(call) && call->service->config->streams > 0;
    return PE_OK;
}

int call_task_init(struct call *call, struct task *task, const struct api_op *op, struct pe_error *err) {
    *task = (struct task){.service = call->service, .op = op, .arena = call->arena};
    pe_fields_init(api_common_fields, api_common_n_fields_raw, &task->common, sizeof task->common);
    task->request = pe_arena_array(call->arena, 1, op->request_size, err);
    if (!task->request) {
        return err->code;
    }
    pe_fields_init(op->fields, op->n_fields, task->request, op->request_size);
    return PE_OK;
}

/* The reply as it will be: its format, its source, its size. All before any work. */
static int plan_reply(struct call *call) {
    struct task *task = &call->task;
    struct pe_error *err = &call->err;
    if (format_check(call->format, &task->result, err) ||
        source_open(&call->source, call->arena, call->format, &task->result, &call->room.style, err)) {
        return err->code;
    }
    const struct result_item *first = result_first(&task->result);
    bool made_later = first && !first->tensor.data && pe_tensor_count(&first->tensor) > 0;
    call->reply.length = source_length(&call->source);
    call->bound = source_bound(&call->source);
    call->reply.stream = made_later || (call_room_streams(call, call->format) &&
                                        call->bound > (uint64_t)call->service->config->reply_bytes);
    return made_later && !call->format->image ? PE_OK : call_room_check(call, call->format, call->bound, err);
}

static void run_nothing(const void *state, size_t part) {
    (void)state;
    (void)part;
}

/* The task's work with the cost of writing its reply, which happens where the work ends. A long reply to no
 * work is work, too: it must not be written where others wait. */
static struct pe_work work_and_reply(const struct call *call) {
    struct pe_work work = call->task.work;
    double byte_ns = call->format->image ? CALL_WRITE_NS_PER_PIXEL : CALL_WRITE_NS_PER_BYTE;
    double write_ns = call->reply.stream ? 0 : (double)call->bound * byte_ns;
    if (!work.n_parts && write_ns >= LONG_REPLY_NS) {
        work.n_parts = 1;
        work.run = run_nothing;
    }
    work.cost_ns += write_ns;
    return work;
}

static int finish_op(struct call *call) {
    struct task *task = &call->task;
    if (bind_task(call)) {
        return call->err.code;
    }
    bool binary = call->route_name == call->route.post && task->op->tensors; /* it returns some, too */
    const struct format *body = binary ? call->body.format : NULL;
    call->format = format_choose(task->common.format, call->head.accept, body, &call->err);
    const struct source_style style = {task->common.flat, task->common.png};
    call_room_open(&call->room, call, call->format, &style);
    if (!call->format || format_check_look(call->format, task->common.png, &call->err) ||
        task_open(task, &call->err) || plan_reply(call) || call_tag_request(call)) {
        return call->err.code;
    }
    if (call_tag_matches(call)) {
        call_answer_empty(call, 304);
        call_reply_headers(call);
        return PE_OK;
    }
    call->work = work_and_reply(call);
    return PE_OK;
}

/* Few bytes can stand for much: a grid of [3000,3000] is nine million positions, an encoding of width 65536
 * takes milliseconds to plan, one of width 9998 with a power or logarithm a pair a tenth of a second,
 * 0:999:0.0001 is ten million positions. Short queries without lists, escapes, fractions and numbers of four
 * digits cannot. */
static bool query_is_plain(const char *query) {
    size_t n = 0, digits = 0;
    for (; query[n] && n < QUICK_QUERY; n++) {
        bool digit = query[n] >= '0' && query[n] <= '9';
        bool longer = digits && (query[n] == '.' || (query[n] | 0x20) == 'e'); /* 0.0001, 1e9 */
        if (query[n] == '%' || query[n] == ',' || longer) {
            return false;
        }
        digits = digit ? digits + 1 : 0;
        if (digits > QUICK_DIGITS) {
            return false;
        }
    }
    return !query[n];
}

bool call_is_quick(const struct call *call) {
    bool brief = call->route.op && call->route.op->brief;
    return call->answered || call->route.page || (brief && call_is_get(call) && query_is_plain(call->query));
}

static int stopped_error(struct call *call) {
    switch (atomic_load(&call->stop)) {
    case CALL_STOP_NONE:
        return PE_OK;
    case CALL_STOP_DEADLINE:
        return pe_fail(&call->err, SERVER_DEADLINE, "body",
                       "the deadline of %lld ms passed before the work was done",
                       (long long)((call->deadline_ns - call->times.open) / 1000000));
    default:
        return pe_fail(&call->err, SERVER_DRAINING, "body", "the work was given up");
    }
}

/* A step failed: perhaps only because it was asked to end. */
static void answer_failure(struct call *call) {
    if (call->err.code == PE_ERR_STOPPED) {
        error_clear(&call->err);
        stopped_error(call);
    }
    call_answer_problem(call);
}

void call_finish(struct call *call) {
    call->times.finish = call_now_ns();
    if (call->answered) {
        return;
    }
    int code = call_body_end(call);
    if (!code && call->file) {
        call_site_answer(call);
    } else if (!code && call->route.page) {
        code = answer_page(call);
    } else if (!code) {
        code = call->route.op->batch ? call_batch_open(call) : finish_op(call);
    }
    if (code) {
        answer_failure(call);
    }
    call->times.run = call_now_ns();
}

/* ---- run --------------------------------------------------------------------------------------------- */

const struct pe_work *call_work(const struct call *call) {
    return &call->work;
}

void call_stop(struct call *call, enum call_stop_reason reason) {
    int none = CALL_STOP_NONE;
    atomic_compare_exchange_strong(&call->stop, &none, (int)reason);
}

bool call_stopped(const struct call *call) {
    return atomic_load(&((struct call *)(uintptr_t)call)->stop) != CALL_STOP_NONE;
}

int64_t call_deadline_ns(const struct call *call) {
    return call->deadline_ns;
}

void call_run(struct call *call, size_t part) {
    if (!call_stopped(call) && part < call->work.n_parts) {
        call->work.run(call->work.state, part);
    }
}

/* ---- write ------------------------------------------------------------------------------------------- */

static int write_op(struct call *call) {
    if (call->route.op->batch) {
        return call_batch_write(call);
    }
    if (result_check_finite(&call->task.result, &call->err)) {
        return call->err.code;
    }
    if (call->reply.stream || call->reply.length >= 0) {
        call_reply_from_source(call);
    } else if (call_buffer_source(call)) {
        return call->err.code;
    }
    call->reply.status = 200;
    call_reply_headers(call);
    return PE_OK;
}

/* "compute;dur=1.234", in milliseconds. */
static char *timing_put(char *out, const char *name, int64_t ns) {
    static const char dur[] = ";dur=";
    size_t n = strlen(name);
    memcpy(out, name, n);
    memcpy(out + n, dur, sizeof dur - 1);
    return text_put_ms(out + n + sizeof dur - 1, ns);
}

void call_write(struct call *call) {
    if (call->answered) {
        return;
    }
    int64_t start = call_now_ns();
    if (stopped_error(call) || write_op(call)) {
        answer_failure(call);
        return;
    }
    call->answered = true;
    call->times.written = call_now_ns();
    if (call->reply.stream) {
        return; /* its time is still to come */
    }
    const struct call_times *times = &call->times;
    int64_t before = times->queued_first ? 0 : times->queued_ns;
    char *end = call->timing;
    end = timing_put(end, "parse", times->run - times->finish);
    end = timing_put(end, ", queue", times->queued_ns);
    end = timing_put(end, ", compute", start - times->run - before);
    end = timing_put(end, ", write", times->written - start);
    *end = '\0';
    call_add_header(call, "Server-Timing", call->timing);
}

void call_refuse_at(struct call *call, const char *field, int code, const char *detail) {
    error_clear(&call->err);
    pe_fail(&call->err, code, field, "%s", detail);
    call_answer_problem(call);
}

void call_refuse(struct call *call, int code, const char *detail) {
    call_refuse_at(call, "body", code, detail);
}

void call_refuse_client(struct call *call, const char *option, uint64_t limit, uint64_t got) {
    error_clear(&call->err);
    pe_fail_limit(
        &call->err, "body", option, limit, got,
        "%llu at once from one address, at most %llu are allowed (option %s); try again when one of "
        "them is done",
        (unsigned long long)got, (unsigned long long)limit, option);
    call->err.code = SERVER_CLIENT_LIMIT;
    call_answer_problem(call);
}

/* ---- the reply --------------------------------------------------------------------------------------- */

const struct call_reply *call_reply(const struct call *call) {
    return &call->reply;
}

bool call_failed_short(const struct call *call) {
    return call->pull && call->source.failed; /* what is buffered is whole */
}

const char *call_request_id(const struct call *call) {
    return call->request_id;
}

const char *call_route_name(const struct call *call) {
    return call->route_name;
}

/* 00-<32 hex>-<16 hex>-<2 hex>, ids not all zero */
const char *call_traceparent(const struct call *call) {
    static const char form[] = "00-hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh-hhhhhhhhhhhhhhhh-hh";
    const char *text = call->head.traceparent;
    if (!text || strlen(text) != sizeof form - 1) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof form - 1; i++) {
        if (form[i] == 'h' ? !strchr("0123456789abcdef", text[i]) : text[i] != form[i]) {
            return NULL;
        }
    }
    bool zero = strspn(text + 3, "0") >= 32 || strspn(text + 36, "0") >= 16;
    return zero ? NULL : text;
}

struct call_times *call_times(struct call *call) {
    return &call->times;
}

const struct pe_error *call_error(const struct call *call) {
    return &call->err;
}

void call_close(struct call *call) {
    if (!call) {
        return;
    }
    call_batch_close(call);
    task_close(&call->task);
    source_close(&call->source);
    call_body_close(call);
    call_drop_buffer(call);
    pe_arena_close(call->arena);
    free(call);
}
