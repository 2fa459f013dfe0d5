/* SPDX-License-Identifier: MIT
 *
 * Layer normalisation of rows of float32 or float64.
 */
#ifndef PE_NORM_H
#define PE_NORM_H

#include "posenc.h"

/* weight and bias [width]. */
struct pe_norm {
    enum pe_dtype dtype;
    size_t width;
    const void *weight, *bias;
    double eps;
};

/* out [width] = (x - mean) / sqrt(variance + eps) * weight + bias; out may be x. */
void pe_norm_run(const struct pe_norm *norm, const void *x, void *out);

#endif
