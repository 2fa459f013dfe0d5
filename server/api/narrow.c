/* SPDX-License-Identifier: MIT
 *
 * Results that an operation makes in float64, in the element type that was asked for: they are stored once
 * the work is done.
 */
#include "api/api.h"

#include <assert.h>

#define MAX_NARROW 4

struct narrow {
    struct api_end end;
    struct pe_tensor wide[MAX_NARROW], out[MAX_NARROW];
    size_t n;
};

static void narrow_store(const struct narrow *narrow, const struct pe_tensor *wide,
                         const struct pe_tensor *out) {
    const double *from = wide->data;
    unsigned char *to = out->data;
    size_t n = pe_tensor_count(wide), size = pe_dtype_size(out->dtype);
    for (size_t i = 0, step; i < n && !pe_stop_asked(narrow->end.work.stop); i += step) {
        step = api_stop_step(n, i);
        pe_dtype_store(out->dtype, from + i, step, to + i * size);
    }
}

static void narrow_run(const void *state, size_t part) {
    const struct narrow *narrow = state;
    bool done = api_end_reached(&narrow->end, part);
    for (size_t i = 0; done && i < narrow->n; i++) {
        narrow_store(narrow, &narrow->wide[i], &narrow->out[i]);
    }
}

int task_narrow(struct task *task, const char *name, const struct pe_tensor *wide, enum pe_dtype dtype,
                struct pe_error *err) {
    struct narrow *narrow = task->narrow;
    if (!narrow) {
        narrow = pe_arena_array(task->arena, 1, sizeof *narrow, err);
        if (!narrow || task_end_open(task, &narrow->end, err)) {
            return err->code;
        }
        task->work.state = task->narrow = narrow;
        task->work.run = narrow_run;
    }
    assert(narrow->n < MAX_NARROW);
    struct pe_tensor *out = &narrow->out[narrow->n];
    narrow->wide[narrow->n++] = *wide;
    if (pe_tensor_alloc(task->arena, out, dtype, wide->rank, wide->dim, err)) {
        return err->code;
    }
    result_tensor(&task->result, name, out);
    return PE_OK;
}
