/* SPDX-License-Identifier: MIT
 *
 * Vectors in float64.
 */
#include "ops/vectors.h"

#include "core/stop.h"
#include "ops/operand.h"

static bool turns(const struct pe_plan *plan) {
    return pe_plan_row(plan)->angles != NULL;
}

size_t pe_vectors_width(const struct pe_plan *plan) {
    const struct pe_encoding *row = pe_plan_row(plan);
    if (turns(plan)) {
        return 2 * row->pairs(pe_plan_view(plan)).n;
    }
    return row->encode ? pe_plan_width(plan) : 0;
}

/* Items between two questions whether to stop. */
static size_t rows_at_once(size_t width) {
    return width && width < PE_STOP_ITEMS / 16 ? PE_STOP_ITEMS / 16 / width : 1;
}

static void rows_fill(const struct pe_plan *plan, const struct pe_positions *positions, size_t first,
                      size_t n, double *out) {
    if (turns(plan)) {
        const struct pe_rotary_rows rows = {
            .plan = plan, .positions = positions, .dtype = PE_DTYPE_F64, .form = PE_TRIG_PACKED};
        pe_rotary_fill(&rows, first, n, out, NULL);
        return;
    }
    const struct pe_rows rows = {.plan = plan, .positions = positions, .dtype = PE_DTYPE_F64};
    pe_rows_encode(&rows, first, n, out);
}

int pe_vectors_make(struct pe_arena *arena, double **out, const struct pe_plan *plan,
                    const struct pe_positions *positions, struct pe_error *err) {
    size_t n = pe_positions_count(positions), width = pe_vectors_width(plan);
    if (pe_positions_admit(plan, positions, PE_DTYPE_F64, "positions", err)) {
        return err->code;
    }
    *out = pe_arena_array(arena, n, width * sizeof **out, err);
    if (!*out) {
        return pe_error_at(err, "positions");
    }
    for (size_t done = 0, step; done < n && !pe_error_poll(err); done += step) {
        step = rows_at_once(width) < n - done ? rows_at_once(width) : n - done;
        rows_fill(plan, positions, done, step, *out + done * width);
    }
    return err->code;
}
