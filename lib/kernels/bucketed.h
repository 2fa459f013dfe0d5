/* SPDX-License-Identifier: MIT
 *
 * Products with vectors of buckets of distances, moved to the pairs that are so far apart. A list says which
 * row of a table a distance (of query and key, whole numbers) takes, rows in the order of the distances;
 *
 *     out(i, j) += scale * (q_i . A[row] + k_j . B[row])            row = rows[query_i - key_j]
 *
 * where either table may be missing. Queries are multiplied once, by the rows of A that their block reaches.
 * Keys are many, so a tile of them is multiplied by the rows of B that this tile and the block reach: few
 * where the tile is far, fewer than twice its size where it is near.
 */
#ifndef PE_BUCKETED_H
#define PE_BUCKETED_H

#include "kernels/linalg.h"

#define PE_BUCKETED_QUERIES 64 /* in a block, at most */

enum { PE_BUCKETED_QUERY, PE_BUCKETED_KEY }; /* whose products: table A, table B */

struct pe_bucketed {
    enum pe_dtype real; /* float32 or float64 */
    bool ordered;       /* as in pe_gemm */
    size_t n_queries, n_keys, width;
    const double *queries, *keys; /* positions */
    struct pe_const_matrix q, k;  /* [n_queries, width], [n_keys, width] */
    double scale;
    const uint32_t *rows; /* [2 reach + 1] of distances -reach .. reach; those beyond have that at the end */
    size_t reach;
    const struct pe_stop *stop;
    size_t first; /* row that the tables begin with; there are all that the block reaches */
    struct pe_const_matrix table[2]; /* [n, width]; no data: there is no such product */
    void *products[2];               /* memory for [PE_BUCKETED_QUERIES, n] */
};

/* Row of a distance. */
uint32_t pe_bucketed_row(const uint32_t *rows, size_t reach, double distance);
/* out [n_queries, n_keys]: to each element one number is added. */
void pe_bucketed_add(const struct pe_bucketed *block, void *out);

#endif
