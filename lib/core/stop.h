/* SPDX-License-Identifier: MIT
 *
 * How often long loops ask whether to stop.
 */
#ifndef PE_STOP_H
#define PE_STOP_H

#include "posenc.h"

/* Numbers that a plain loop handles between two questions: well under a millisecond, and so many that the
 * question costs nothing. */
#define PE_STOP_ITEMS ((size_t)1 << 16)

/* The next so many of n items, of which `done` are done. */
static inline size_t pe_stop_step(size_t n, size_t done) {
    return n - done < PE_STOP_ITEMS ? n - done : PE_STOP_ITEMS;
}

#endif
