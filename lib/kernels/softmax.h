/* SPDX-License-Identifier: MIT
 *
 * One row of attention: logits to weights, in place.
 */
#ifndef PE_SOFTMAX_H
#define PE_SOFTMAX_H

#include "posenc.h"

/* Of a row of n logits only first .. end-1 are visible. bias and hidden, each a row of n or NULL, are added
 * to the logits; hidden holds 0 or -infinity. All are of one type, float32 or float64; nothing is NaN. */
#define PE_SOFTMAX_MOST 32
struct pe_softmax {
    enum pe_dtype dtype;
    size_t n, first, end;
    const void *bias, *hidden;
    const void *most; /* [PE_SOFTMAX_MOST] of the type: the largest is that of the row; NULL: to be found */
    void *out;        /* where the weights go; NULL: into the row */
    bool far;         /* out is more than caches will keep: pe_softmax_settle before others read it */
    const struct pe_stop *stop; /* asked between passes over a row that takes long; or NULL */
};

/* The row becomes exp(x_j - max x) / sum, or it becomes anything and out does. Entries that are not visible become 0;
 * when none is, all do. When it is stopped the row and out hold anything. */
void pe_softmax_run(const struct pe_softmax *softmax, void *row);
void pe_softmax_settle(void);

#endif
