/* SPDX-License-Identifier: MIT
 *
 * batch: each entry is a task of its own in the call's arena. All are bound and planned first, on the call's
 * thread; then each is one part of the work, which runs the entry's own parts and writes its reply's text into
 * its own part of one buffer. The reply is pulled from there, with what stands between the texts. An entry that
 * fails gets its problem and status; the others are not touched.
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

static int op_unknown(const char *name, struct pe_error *err) {
    char names[400] = "";
    for (size_t i = 0; i < api_op_count(); i++) {
        const struct api_op *op = api_op_at(i);
        size_t used = strlen(names);
        if (!op->batch) {
            snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", op->name);
        }
    }
    return pe_fail(err, PE_ERR_CHOICE, "op",
                   "\"%.40s\" is not an operation that a batch may hold, allowed are %s", name, names);
}

static int entry_begin(void *context, size_t index, const char *name, struct bind **bind,
                       struct pe_error *err) {
    struct call *call = context;
    const struct api_op *op = api_op_find(name);
    if (!op || op->batch) {
        return op_unknown(name, err);
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
    const struct source_style style = {.flat = task->common.flat};
    call_room_open(&entry->room, call, json, &style);
    if (format_check_look(json, task->common.png, err) || task_open(task, err) ||
        format_check(json, &task->result, err) ||
        source_open(&entry->source, call->arena, json, &task->result, &style, err)) {
        return err->code;
    }
    entry->body_room = (size_t)source_bound(&entry->source);
    uint64_t bound = call->bound + entry->body_room;
    if (call_room_check(call, json, bound, err)) {
        return err->code;
    }
    call->bound = bound;
    return PE_OK;
}

static void entry_fail(struct call *call, struct call_entry *entry, const struct pe_error *err) {
    char text[PROBLEM_ROOM];
    size_t n = problem_write(err, call->request_id, text, sizeof text);
    entry->status = problem_status(err->code);
    text_add(&entry->problem, text, n);
    entry->problem.failed = entry->problem.failed || n == 0; /* no memory even for the problem */
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
    entry->body_n = call_write_source(call, &entry->source, entry->body, entry->body_room);
    entry->status = 200;
}

/* One buffer for the texts of all. */
static int bodies_open(struct call *call) {
    if (call_buffer_open(call, (size_t)call->bound + 1)) {
        return call->err.code;
    }
    char *next = call->reply_bytes;
    for (size_t i = 0; i < call->n_entries; i++) {
        call->entries[i].body = next;
        next += call->entries[i].planned ? call->entries[i].body_room : 0;
    }
    return PE_OK;
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
    if (!format || bind_batch_json(&batch, text, length, &call->err) || bodies_open(call)) {
        return call->err.code;
    }
    call->work = (struct pe_work){.n_parts = call->n_entries, .state = call, .run = entry_run};
    call->work.cost_ns = (double)call->bound * CALL_WRITE_NS_PER_BYTE;
    for (size_t i = 0; i < call->n_entries; i++) {
        call->work.cost_ns += call->entries[i].task.work.cost_ns;
    }
    return PE_OK;
}

/* ---- the reply: three pieces for each entry, one before all and one behind --------------------------- */

#define HEAD_ROOM 48

struct piece_bytes {
    const char *bytes;
    size_t n;
};

static size_t n_pieces(const struct call *call) {
    return 3 * call->n_entries + 2;
}

/* `head` [HEAD_ROOM] is for what is made up here. */
static struct piece_bytes piece_at(const struct call *call, size_t at, char *head) {
    static const char first[] = "{\"responses\":[", last[] = "]}", end[] = "}";
    if (at == 0) {
        return (struct piece_bytes){first, sizeof first - 1};
    }
    size_t i = (at - 1) / 3;
    if (i == call->n_entries) {
        return (struct piece_bytes){last, sizeof last - 1};
    }
    const struct call_entry *entry = &call->entries[i];
    switch ((at - 1) % 3) {
    case 0: {
        int n = snprintf(head, HEAD_ROOM, "%s{\"status\":%d,\"body\":", i ? "," : "", entry->status);
        return (struct piece_bytes){head, (size_t)n};
    }
    case 1:
        return entry->problem.n ? (struct piece_bytes){entry->problem.data, entry->problem.n}
                                : (struct piece_bytes){entry->body, entry->body_n};
    default:
        return (struct piece_bytes){end, sizeof end - 1};
    }
}

static size_t pull_pieces(struct call *call, char *out, size_t room) {
    char head[HEAD_ROOM];
    size_t total = 0;
    while (total < room && call->piece < n_pieces(call)) {
        struct piece_bytes piece = piece_at(call, call->piece, head);
        size_t left = piece.n - call->reply_pulled, n = left < room - total ? left : room - total;
        memcpy(out + total, piece.bytes + call->reply_pulled, n);
        total += n;
        call->reply_pulled += n;
        if (call->reply_pulled == piece.n) {
            call->piece++;
            call->reply_pulled = 0;
        }
    }
    return total;
}

int call_batch_write(struct call *call) {
    char head[HEAD_ROOM];
    size_t length = 0;
    for (size_t i = 0; i < call->n_entries; i++) {
        if (call->entries[i].problem.failed) {
            return pe_fail(&call->err, PE_ERR_MEMORY, "", "no memory for the reply");
        }
    }
    for (size_t at = 0; at < n_pieces(call); at++) {
        length += piece_at(call, at, head).n;
    }
    call_answer_buffer(call, 200, "application/json", true);
    call->reply.length = (int64_t)length;
    call->pull = pull_pieces;
    return PE_OK;
}

void call_batch_close(struct call *call) {
    for (size_t i = 0; i < call->n_entries; i++) {
        task_close(&call->entries[i].task);
        source_close(&call->entries[i].source);
        text_free(&call->entries[i].problem);
    }
}
