/* SPDX-License-Identifier: MIT
 *
 * The functions between the two layers of a feed-forward network.
 */
#ifndef PE_ACTIVATE_H
#define PE_ACTIVATE_H

#include "posenc.h"

/* x [n], float32 or float64, becomes f(x). */
void pe_activate(enum pe_block_activation f, enum pe_dtype dtype, void *x, size_t n);

#endif
