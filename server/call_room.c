/* SPDX-License-Identifier: MIT
 *
 * Room for a reply: reply_bytes, of all entries of a batch together. How long a reply may be is known when all of
 * it is declared; but its tensors are asked about before an operation takes memory for them, so that a request
 * whose reply is too large is told so and takes nothing from others. What is counted then is what the tensors
 * take in the reply's format; names and shapes come later.
 *
 * A picture may take as many bytes as it has pixels, a thousand times what it takes. So where that is more than may be
 * buffered it is streamed, if it may be, and what bounds it is what bounds a stream.
 */
#include "call_state.h"

#include "config.h"

bool call_room_streams(const struct call *call, const struct format *format) {
    return format->image && call->task.stream_ok;
}

int call_room_check(const struct call *call, const struct format *format, uint64_t bound,
                    struct pe_error *err) {
    const struct config *config = call->service->config;
    bool streams = call_room_streams(call, format) && config->stream_bytes > config->reply_bytes;
    uint64_t limit = (uint64_t)(streams ? config->stream_bytes : config->reply_bytes);
    bool text = format->id == FORMAT_JSON || format->id == FORMAT_CSV;
    const char *hint = text            ? "; a binary format is smaller"
                       : format->image ? "; a smaller png.cell makes a smaller picture"
                                       : "";
    if (bound <= limit) {
        return PE_OK;
    }
    if (call->route.op->batch) {
        return pe_fail_limit(err, "", "reply_bytes", limit, bound,
                             "with this reply all may take %llu bytes, at most %llu are allowed",
                             (unsigned long long)bound, (unsigned long long)limit);
    }
    return pe_fail_limit(err, "", streams ? "stream_bytes" : "reply_bytes", limit, bound,
                         "the reply may take %llu bytes, at most %llu are allowed%s",
                         (unsigned long long)bound, (unsigned long long)limit, hint);
}

static int room_ask(void *context, const struct pe_tensor *shape, struct pe_error *err) {
    struct call_room *room = context;
    uint64_t bytes = source_tensor_bound(room->format, &room->style, shape);
    uint64_t bound = bytes > UINT64_MAX - room->bound ? UINT64_MAX : room->bound + bytes;
    if (room->format->many) { /* else there is one tensor, or the format is refused by its name */
        room->bound = bound;
    }
    return call_room_check(room->call, room->format, bound, err);
}

void call_room_open(struct call_room *room, const struct call *call, const struct format *format,
                    const struct source_style *style) {
    *room = (struct call_room){.call = call, .format = format, .style = *style, .bound = call->bound};
    const struct pe_result_rule rule = {.allowed = room_ask, .context = room};
    pe_arena_rule_results(call->arena, &rule);
}
