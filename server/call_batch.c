/* SPDX-License-Identifier: MIT
 *
 * batch: each entry is a task of its own in the call's arena. All are bound and planned first, on the call's
 * thread; then each is one part of the work, which runs the entry's own parts and writes its reply's text. An
 * entry that fails gets its problem and status; the others are not touched.
 */
#include "call_state.h"

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* {"requests", "[2]", "q"}: as in a request of any operation. */
bool call_batch_watches(void *context, const char *const *keys, size_t depth) {
    (void)context;
    if (depth < 3 || strcmp(keys[0], "requests") != 0 || keys[1][0] != '[') {
        return false;
    }
    for (size_t i = 0; i < api_op_count(); i++) {
        const struct api_op *op = api_op_at(i);
        struct bind_target target = {op->fields, op->n_fields, NULL};
        if (bind_watches(&target, keys + 2, depth - 2)) {
            return true;
        }
    }
    return false;
}

static int entries_open(void *context, size_t n, struct pe_error *err) {
    struct call *call = context;
    call->entries = pe_arena_array(call->arena, n, sizeof *call->entries, err);
    call->n_entries = call->entries ? n : 0;
    return err->code;
}

static int entry_begin(void *context, size_t index, const char *name, struct bind **bind,
                       struct pe_error *err) {
    struct call *call = context;
    const struct api_op *op = api_op_find(name);
    if (!op || op->batch) {
        return pe_fail(err, PE_ERR_CHOICE, "op", "\"%.40s\" is not an operation that a batch may hold", name);
    }
    struct call_entry *entry = &call->entries[index];
    if (call_task_init(call, &entry->task, op, err)) {
        return err->code;
    }
    entry->bind = (struct bind){
        .arena = call->arena,
        .service = call->service,
        .lift = call->body.lift,
        .common = {api_common_fields, api_common_n_fields, &entry->task.common},
        .op = {op->fields, op->n_fields, entry->task.request},
    };
    *bind = &entry->bind;
    return PE_OK;
}

/* Plans an entry that was bound. */
static int entry_plan(struct call *call, struct call_entry *entry, struct pe_error *err) {
    struct task *task = &entry->task;
    task->posted = entry->bind.posted;
    if (task->common.format && strcmp(task->common.format, "json") != 0) {
        return pe_fail(err, SERVER_NOT_ACCEPTABLE, "format", "the replies of a batch are JSON");
    }
    const struct format *json = format_at(FORMAT_JSON);
    if (task_open(task, err) || format_check(json, &task->result, err) ||
        source_open(&entry->source, call->arena, json, &task->result, task->common.flat, err)) {
        return err->code;
    }
    uint64_t limit = (uint64_t)call->service->config->reply_bytes;
    uint64_t bound = call->bound + source_bound(&entry->source);
    if (bound > limit) {
        return pe_fail_limit(err, "", "reply_bytes", limit, bound,
                             "with this reply all may take %llu bytes, at most %llu are allowed",
                             (unsigned long long)bound, (unsigned long long)limit);
    }
    call->bound = bound;
    return PE_OK;
}

static void entry_fail(struct call *call, struct call_entry *entry, const struct pe_error *err) {
    char text[PROBLEM_ROOM];
    size_t n = problem_write(err, call->request_id, text, sizeof text);
    entry->status = problem_status(err->code);
    entry->body.n = 0;
    text_add(&entry->body, text, n);
    entry->body.failed = entry->body.failed || n == 0; /* no memory even for the problem */
}

static void entry_end(void *context, size_t index, const struct pe_error *bound) {
    struct call *call = context;
    struct call_entry *entry = &call->entries[index];
    struct pe_error err = *bound;
    if (!err.code) {
        entry_plan(call, entry, &err);
    }
    entry->planned = !err.code;
    if (err.code) {
        entry_fail(call, entry, &err);
    }
}

static void entry_run(const void *state, size_t part) {
    struct call *call = (struct call *)(uintptr_t)state;
    struct call_entry *entry = &call->entries[part];
    struct pe_error err = {.stop = &call->end_asked};
    if (!entry->planned || !pe_work_run(&entry->task.work)) {
        return;
    }
    if (result_check_finite(&entry->task.result, &err)) {
        entry_fail(call, entry, &err);
        return;
    }
    char block[8192];
    for (size_t n; !call_stopped(call) && (n = source_pull(&entry->source, block, sizeof block)) > 0;) {
        text_add(&entry->body, block, n);
    }
    entry->status = 200;
}

int call_batch_open(struct call *call) {
    struct bind_batch batch = {
        .arena = call->arena,
        .context = call,
        .limit = (size_t)call->service->config->batch_requests,
        .open = entries_open,
        .begin = entry_begin,
        .end = entry_end,
    };
    size_t length;
    if (call->query[0]) {
        return pe_fail(&call->err, PE_ERR_UNKNOWN_FIELD, "query", "a batch takes no parameters");
    }
    const struct format *format = format_choose(NULL, call->head.accept, NULL, &call->err);
    if (format && format->id != FORMAT_JSON) {
        return pe_fail(&call->err, SERVER_NOT_ACCEPTABLE, "Accept", "the replies of a batch are JSON");
    }
    const char *text = lift_envelope(call->body.lift, &length);
    if (!format || bind_batch_json(&batch, text, length, &call->err)) {
        return call->err.code;
    }
    call->work = (struct pe_work){.n_parts = call->n_entries, .state = call, .run = entry_run};
    call->work.cost_ns = (double)call->bound * CALL_WRITE_NS_PER_BYTE;
    for (size_t i = 0; i < call->n_entries; i++) {
        call->work.cost_ns += call->entries[i].task.work.cost_ns;
    }
    return PE_OK;
}

/* What stands before the body of an entry. Returns its length. */
static size_t entry_head(const struct call *call, size_t i, char *out, size_t size) {
    return (size_t)snprintf(out, size, "%s{\"status\":%d,\"body\":", i ? "," : "", call->entries[i].status);
}

int call_batch_write(struct call *call) {
    static const char first[] = "{\"responses\":[", last[] = "]}";
    char head[48];
    size_t room = sizeof first + sizeof last;
    for (size_t i = 0; i < call->n_entries; i++) {
        room += entry_head(call, i, head, sizeof head) + call->entries[i].body.n + 1;
        if (call->entries[i].body.failed) {
            return pe_fail(&call->err, PE_ERR_MEMORY, "", "no memory for the reply");
        }
    }
    if (call_buffer_open(call, room)) {
        return call->err.code;
    }
    call_buffer_add(call, first, sizeof first - 1);
    for (size_t i = 0; i < call->n_entries; i++) {
        struct text *body = &call->entries[i].body;
        call_buffer_add(call, head, entry_head(call, i, head, sizeof head));
        call_buffer_add(call, body->data, body->n);
        call_buffer_add(call, "}", 1);
        text_free(body);
    }
    call_buffer_add(call, last, sizeof last - 1);
    call_answer_buffer(call, 200, "application/json", true);
    return PE_OK;
}

void call_batch_close(struct call *call) {
    for (size_t i = 0; i < call->n_entries; i++) {
        task_close(&call->entries[i].task);
        source_close(&call->entries[i].source);
        text_free(&call->entries[i].body);
    }
}
