/* SPDX-License-Identifier: MIT
 *
 * Products with a table that has a vector for each distance, for the pairs of a block: the vectors of rows
 * times the table, once, and then each pair takes the product of its distance (gather.h). Never a vector for
 * each pair. Only those rows of the table are multiplied that the block's distances reach, and some hundred
 * at a time, so that the memory is small however many there are.
 */
#ifndef PE_BAND_H
#define PE_BAND_H

#include "kernels/gather.h"

#define PE_BAND_ROWS 64 /* of a block, at most */

/* One vector for each distance (column - row) from least to most, in this order or reversed. */
struct pe_band {
    const void *data; /* [most - least + 1, width], of any type */
    enum pe_dtype dtype;
    size_t ld, width;
    int64_t least, most;
    bool reversed;
    bool clip; /* distances beyond the ends take the vectors at the ends; else none */
};

/* Positions are whole numbers, at most 2^53 from zero. */
struct pe_band_block {
    enum pe_dtype real;
    bool ordered; /* as in pe_gemm */
    size_t n_rows, n_columns;
    const double *rows, *columns; /* positions */
    void *scratch;                /* pe_band_scratch_bytes, 64-byte aligned */
    const struct pe_stop *stop;
};

/* What a pair takes: alpha * (rows(a) + columns(b)) . band(distance of a and b) + constants(b). */
struct pe_band_term {
    const struct pe_band *band;
    struct pe_const_matrix rows;    /* [n_rows, width] */
    struct pe_const_matrix columns; /* [n_columns, width]; no data: zeros */
    const void *constants;          /* [n_columns], also where there is no vector; NULL: zeros */
    double alpha;
};

/* out [n_rows, n_columns] += term, as one number of type real. */
void pe_band_add(const struct pe_band_term *term, const struct pe_band_block *block, struct pe_matrix out);
/* out [n, width] += sum over columns b of weights(a, b) * band(distance of a and b). */
void pe_band_mix(const struct pe_band *band, const struct pe_band_block *block,
                 struct pe_const_matrix weights, struct pe_matrix out);
/* tiles: of a term with vectors of columns, or constants. */
size_t pe_band_scratch_bytes(const struct pe_band *band, enum pe_dtype real, bool tiles);

#endif
