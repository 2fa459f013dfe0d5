/* SPDX-License-Identifier: MIT
 *
 * Tiles of sums.
 */
#include "kernels/tile.h"

#include "kernels/vector.h"

size_t pe_tile_bytes(size_t rows, enum pe_dtype real) {
    return rows * PE_TILE_LD * pe_dtype_size(real);
}

bool pe_tile_next(struct pe_tile *tile, size_t columns, const struct pe_stop *stop) {
    tile->first += tile->n;
    tile->n = columns - tile->first < PE_TILE_COLUMNS ? columns - tile->first : PE_TILE_COLUMNS;
    return tile->n > 0 && !pe_stop_asked(stop);
}

void pe_tile_add(const struct pe_tile *tile, const void *constants, struct pe_matrix out) {
    size_t item = pe_dtype_size(tile->real);
    for (size_t t = 0; t < tile->rows; t++) {
        unsigned char *sums = (unsigned char *)tile->sums + t * PE_TILE_LD * item;
        unsigned char *to = (unsigned char *)out.data + (t * out.ld + tile->first) * item;
        if (constants) {
            pe_vector_add(tile->real, sums, sums, (const unsigned char *)constants + tile->first * item,
                          tile->n);
        }
        pe_vector_add(tile->real, to, to, sums, tile->n);
    }
}
