/* SPDX-License-Identifier: MIT
 *
 * A part is counted as due before a lane is looked for, and who frees a lane looks afterwards whether a part is
 * due. All of these are in one order for all threads, so of a thread that finds no lane and another that finds
 * nothing due one was first, and the other sees what it did: no part is forgotten, and nobody waits.
 */
#include "core/lanes.h"

#include <stdatomic.h>

struct pe_lanes {
    size_t n;
    atomic_size_t due, next; /* parts that may run and nobody runs; the next one's number */
    atomic_bool busy[];      /* [n] */
};

struct pe_lanes *pe_lanes_open(struct pe_arena *arena, size_t n, struct pe_error *err) {
    struct pe_lanes *lanes = pe_arena_array(arena, 1, sizeof *lanes + n * sizeof lanes->busy[0], err);
    if (!lanes) {
        return NULL;
    }
    lanes->n = n;
    atomic_init(&lanes->due, 0);
    atomic_init(&lanes->next, 0);
    for (size_t i = 0; i < n; i++) {
        atomic_init(&lanes->busy[i], false);
    }
    return lanes;
}

static bool lane_take(struct pe_lanes *lanes, size_t *lane) {
    for (*lane = 0; *lane < lanes->n; ++*lane) {
        if (!atomic_exchange(&lanes->busy[*lane], true)) {
            return true;
        }
    }
    return false;
}

static bool due_take(struct pe_lanes *lanes) {
    size_t due = atomic_load(&lanes->due);
    while (due > 0 && !atomic_compare_exchange_weak(&lanes->due, &due, due - 1)) {
    }
    return due > 0;
}

void pe_lanes_run(struct pe_lanes *lanes, const struct pe_lanes_work *work) {
    size_t lane;
    atomic_fetch_add(&lanes->due, 1);
    while (atomic_load(&lanes->due) > 0 && lane_take(lanes, &lane)) {
        while (due_take(lanes)) { /* a work that is run again starts from its first part */
            size_t next = atomic_fetch_add(&lanes->next, 1);
            work->run(work->state, (struct pe_lanes_part){next % work->n_parts, lane, next / work->n_parts});
        }
        atomic_store(&lanes->busy[lane], false);
    }
}
