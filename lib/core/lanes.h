/* SPDX-License-Identifier: MIT
 *
 * Memory for parts that run at the same time. A part may need more memory than all parts together could have,
 * and the library does not know on how many threads they run; so the memory is of a few lanes, and a part takes
 * a free one. Where none is, the part is left to those who have one, and its thread is free for others.
 */
#ifndef PE_LANES_H
#define PE_LANES_H

#include "posenc.h"

struct pe_lanes;

struct pe_lanes_part {
    size_t n;    /* from 0 */
    size_t lane; /* that it has for itself meanwhile */
    size_t run;  /* how often the work was run before */
};

struct pe_lanes_work {
    size_t n_parts;
    const void *state;
    void (*run)(const void *state, struct pe_lanes_part part);
};

/* n lanes, at least 1, numbered from 0; ARENA memory. */
struct pe_lanes *pe_lanes_open(struct pe_arena *arena, size_t n, struct pe_error *err);
/* One part more may run: to be called n_parts times, from any threads. Once all calls have returned, all parts
 * have run, each once. Which of them this call runs, if any, is not said. */
void pe_lanes_run(struct pe_lanes *lanes, const struct pe_lanes_work *work);

#endif
