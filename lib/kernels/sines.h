/* SPDX-License-Identifier: MIT
 *
 * Products with projected sinusoids of distances: of a vector x [d] and a matrix W [D, d], where R_n is
 * [sin n w_0, sin n w_1 .., cos n w_0 ..] of width D,
 *
 *     x.(R_n W)           n = row's position - column's position
 *
 * Either the rows R_n W of all distances are made, once, and then a band of them (band.h) serves any number of
 * pairs. Or, where there are few pairs of each distance, or distances are not whole numbers, z = W x is turned
 * by the angles a of the row's position, and its product with the sinusoid of the column's is that of the
 * distance:
 *
 *     sin(a - b) z + cos(a - b) z' = (z' sin a - z cos a) sin b + (z sin a + z' cos a) cos b
 *     [z and z' of a frequency, b of the column's position]
 *
 * Sinusoids are exact (core/phase.h), rounded once to the type of the arithmetic, and what was turned is, too.
 */
#ifndef PE_SINES_H
#define PE_SINES_H

#include "core/phase.h"
#include "kernels/linalg.h"

#define PE_SINES_ROWS 64 /* of a block, at most */

struct pe_sines {
    const struct pe_turn *turns; /* [width / 2] */
    size_t width;
};

/* The sinusoids of positions, out [n, width]. */
void pe_sines_fill(const struct pe_sines *sines, const double *positions, size_t n, enum pe_dtype dtype,
                   void *out, const struct pe_stop *stop);

/* R_n W, out [rows, columns], for n = first, first - 1 .. */
struct pe_sines_table {
    const struct pe_sines *sines;
    enum pe_dtype real;
    bool ordered; /* as in pe_gemm */
    int64_t first;
    size_t rows, columns;
    struct pe_const_matrix w; /* [width, columns] */
    void *out;
    void *scratch; /* pe_sines_table_bytes, 64-byte aligned */
    const struct pe_stop *stop;
};

void pe_sines_project(const struct pe_sines_table *table);
size_t pe_sines_table_bytes(size_t width, size_t columns, enum pe_dtype real);

/* A block of pairs, by turning. */
struct pe_sines_block {
    enum pe_dtype real;
    bool ordered; /* as in pe_gemm */
    size_t n_rows, n_columns, width, d;
    struct pe_const_matrix x; /* [n_rows, d] */
    struct pe_const_matrix w; /* [width, d] */
    const double *row_sines;  /* [n_rows, width] */
    const void *column_sines; /* [n_columns, width] of type real */
    const void *constants;    /* [n_columns]; NULL: zeros */
    double alpha;
    void *scratch; /* pe_sines_scratch_bytes, 64-byte aligned */
    const struct pe_stop *stop;
};

/* out [n_rows, n_columns] += alpha * x.(R W) + constants, as one number of type real. */
void pe_sines_add(const struct pe_sines_block *block, struct pe_matrix out);
size_t pe_sines_scratch_bytes(size_t width, enum pe_dtype real);

#endif
