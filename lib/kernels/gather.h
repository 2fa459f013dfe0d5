/* SPDX-License-Identifier: MIT
 *
 * Numbers of distances, moved to the pairs that are so far apart. Row a and column b of a matrix have
 * positions, whole numbers, and their distance is that of the column less that of the row. A vector's
 * products with a table that has a row for each distance are [n, R]; the pair's is one of them:
 *
 *     out(a, b) += products(a, distance of a and b)
 *
 * so that neither vectors nor indices of all pairs are ever made. Where columns are consecutive, as nearly
 * always, a row of out takes a slice of a row of products ("skewing"), with the two ends of the table beside
 * it.
 */
#ifndef PE_GATHER_H
#define PE_GATHER_H

#include "kernels/linalg.h"

/* Which distances there are products of: least, least + 1 .. most, in this order or reversed. Pairs that are
 * nearer than least, or farther than most, take the number at that end, or nothing. Positions and distances
 * are at most 2^53 from zero. */
struct pe_gather {
    enum pe_dtype real; /* float32 or float64 */
    size_t n_rows, n_columns;
    const double *rows, *columns; /* positions */
    int64_t least, most;
    bool reversed, below, above;
    const struct pe_stop *stop;
};

/* out(a, b) is element a*row + b*column. */
struct pe_gather_out {
    void *data;
    size_t row, column;
};

void pe_gather_add(const struct pe_gather *gather, struct pe_const_matrix products, struct pe_gather_out out);
/* The other way: sums(a, r) [n, R] = the sum of weights(a, b) over all columns b at distance r. */
void pe_gather_sum(const struct pe_gather *gather, struct pe_const_matrix weights, struct pe_matrix sums);

#endif
