/* SPDX-License-Identifier: MIT
 *
 * Products of queries with keys, q.k^T in float32, for keys that are packed once and met by many queries.
 */
#ifndef PE_SCORES_H
#define PE_SCORES_H

#include "kernels/linalg.h"
#include "kernels/target.h"

#define PE_SCORES_COLUMNS ((size_t)32) /* keys in a panel */

/* c [m, n] = alpha * a [m, k] . keys [n, k]^T + bias. Each product is the sum from the first to the last, times alpha:
 * it depends on its query, its key and the instruction set, not on how many there are nor where they stand. With AVX2
 * and AVX-512, which have fused operations, the bits are the same; without them, others. */
struct pe_scores {
    enum pe_instructions instructions;
    size_t m, n, k;
    float alpha;
    struct pe_const_matrix a;
    const float *packed; /* the keys, as pe_scores_pack leaves them */
    struct pe_matrix c;
    struct pe_const_matrix bias; /* [m, n]; no data: none */
    float *most; /* [m, PE_SCORES_COLUMNS], which become the larger of them and some of their row, so that
                                    it has all in one or another; or NULL */
    const struct pe_stop *stop; /* asked before some rows; or NULL */
};

/* Numbers that n packed keys of width k take. */
size_t pe_scores_packed(size_t n, size_t k);
/* Panels [k, PE_SCORES_COLUMNS] of keys, beside zeros. */
void pe_scores_pack(struct pe_const_matrix keys, size_t n, size_t k, float *packed);
void pe_scores_run(const struct pe_scores *scores);

#endif
