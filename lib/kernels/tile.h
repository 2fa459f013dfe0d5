/* SPDX-License-Identifier: MIT
 *
 * Where the numbers of pairs have several summands: these are put together for some columns at a time, so that
 * each element of the result takes one number, rounded as the sum of all.
 *
 *     struct pe_tile tile = {.real = .., .rows = n, .sums = memory};
 *     while (pe_tile_next(&tile, columns, stop)) {
 *         ...                                        what columns tile.first .. tile.first+tile.n-1 take
 *         pe_tile_add(&tile, constants, out);
 *     }
 */
#ifndef PE_TILE_H
#define PE_TILE_H

#include "kernels/linalg.h"

#define PE_TILE_COLUMNS 512
#define PE_TILE_LD      (PE_TILE_COLUMNS + 16) /* columns of it are far apart in a cache, too */

struct pe_tile {
    enum pe_dtype real;
    size_t rows;
    void *sums; /* [rows, n], from row to row PE_TILE_LD */
    size_t first, n;
};

size_t pe_tile_bytes(size_t rows, enum pe_dtype real);
/* The first or the next columns of so many. False: there are none, or somebody asked to stop. */
bool pe_tile_next(struct pe_tile *tile, size_t columns, const struct pe_stop *stop);
/* out [rows, columns]: its part for this tile += sums + constants [columns] (NULL: none). sums are changed. */
void pe_tile_add(const struct pe_tile *tile, const void *constants, struct pe_matrix out);

#endif
