/* SPDX-License-Identifier: MIT
 *
 * Work with an end of its own: what an operation does once all parts of the library's work are done, such as
 * writing numbers that came out of it. Whichever part is done last goes on to the end.
 */
#include "api/api.h"

int task_end_open(struct task *task, struct api_end *end, struct pe_error *err) {
    end->work = task->work;
    end->undone = pe_arena_array(task->arena, 1, sizeof *end->undone, err);
    task->work.n_parts = end->work.n_parts ? end->work.n_parts : 1;
    if (end->undone) {
        atomic_init(end->undone, task->work.n_parts);
    }
    return err->code;
}

bool api_end_reached(const struct api_end *end, size_t part) {
    if (part < end->work.n_parts && !pe_stop_asked(end->work.stop)) {
        end->work.run(end->work.state, part);
    }
    if (atomic_fetch_sub(end->undone, 1) != 1) {
        return false;
    }
    atomic_store(end->undone, end->work.n_parts ? end->work.n_parts : 1); /* it may be run again */
    return !pe_stop_asked(end->work.stop);
}
