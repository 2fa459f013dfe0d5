/* SPDX-License-Identifier: MIT
 *
 * Work whose end needs all of its parts: whichever of them is done last goes on to the end.
 */
#ifndef PE_LAST_H
#define PE_LAST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct pe_last {
    size_t n_parts;
    atomic_size_t undone;
};

static inline void pe_last_open(struct pe_last *last, size_t n_parts) {
    last->n_parts = n_parts;
    atomic_init(&last->undone, n_parts);
}

/* At the end of each part. true: it was the last one, and sees what the others wrote. */
static inline bool pe_last_done(struct pe_last *last) {
    if (atomic_fetch_sub(&last->undone, 1) != 1) {
        return false;
    }
    atomic_store(&last->undone, last->n_parts); /* a work may be run again */
    return true;
}

#endif
