/* SPDX-License-Identifier: MIT
 *
 * The vectors of an encoding in float64, for operations that look at them: those that are added to
 * embeddings, or of a rotary encoding the cosines and sines of all pairs (which is what a query of ones
 * becomes), so that both have products that say how alike two places are.
 */
#ifndef PE_VECTORS_H
#define PE_VECTORS_H

#include "encodings/encoding.h"

/* Numbers in a vector; 0 where the encoding has none. */
size_t pe_vectors_width(const struct pe_plan *plan);
/* out [B*T, width], ARENA, of an encoding that has vectors. Errors are at `positions`. */
int pe_vectors_make(struct pe_arena *arena, double **out, const struct pe_plan *plan,
                    const struct pe_positions *positions, struct pe_error *err);

#endif
