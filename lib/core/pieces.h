/* SPDX-License-Identifier: MIT
 *
 * One block of memory for several things, one after the other, each 64-byte aligned. The same calls say how much
 * it takes (memory NULL) and where they are.
 */
#ifndef PE_PIECES_H
#define PE_PIECES_H

#include "posenc.h"

struct pe_pieces {
    unsigned char *memory; /* NULL: there is none yet */
    size_t bytes;          /* taken; SIZE_MAX: they do not fit */
};

/* [rows, columns] items of a size. */
static inline void *pe_pieces_take(struct pe_pieces *pieces, size_t rows, size_t columns, size_t item) {
    size_t bytes, at = pieces->bytes;
    bool fits = pe_size_product((const size_t[]){rows, columns, item}, 3, &bytes) && bytes < SIZE_MAX - 64 &&
                (bytes + 63) / 64 * 64 < SIZE_MAX - at;
    pieces->bytes = fits ? at + (bytes + 63) / 64 * 64 : SIZE_MAX;
    return pieces->memory ? pieces->memory + at : NULL;
}

#endif
