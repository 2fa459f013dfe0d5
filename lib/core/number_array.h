/* SPDX-License-Identifier: MIT
 *
 * Arrays of numbers from short texts (queries, options, lists of positions), in the JSON grammar.
 */
#ifndef PE_NUMBER_ARRAY_H
#define PE_NUMBER_ARRAY_H

#include "posenc.h"

/* "1,2", "[1,2]" or "[[1,2],[3,4]]" (rectangular, rank <= PE_MAX_RANK) into an ARENA tensor of float64 or float32,
 * each number rounded once from its text. A single number without brackets is an array of one. The path of an error
 * is the index, "[1][0]". */
int pe_number_array(struct pe_arena *arena, struct pe_tensor *out, const char *text, enum pe_dtype dtype,
                    struct pe_error *err);

#endif
