/* SPDX-License-Identifier: MIT
 *
 * Tensors that an operation returns. Whoever opens it may have a limit of its own for them, in whatever form
 * it sends them on (struct pe_result_rule): it is asked about all of them before memory is taken for the
 * first, so that a request that is refused has taken nothing from others.
 */
#ifndef PE_RESULTS_H
#define PE_RESULTS_H

#include "posenc.h"

/* May a result of this shape be made? Asked once for each. */
int pe_result_ask(struct pe_arena *arena, enum pe_dtype dtype, int rank, const size_t *dim,
                  struct pe_error *err);

#endif
