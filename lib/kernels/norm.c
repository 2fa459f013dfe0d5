/* SPDX-License-Identifier: MIT
 *
 * Layer normalisation (Ba, Kiros, Hinton 2016), as torch.nn.LayerNorm has it:
 *
 *     mean = sum(x) / n,  variance = sum((x - mean)^2) / n
 *     out  = (x - mean) / sqrt(variance + eps) * weight + bias
 *
 * The variance takes a second pass over the row: sum(x^2)/n - mean^2, which would do with one, loses all
 * digits where the mean is large beside the differences. Both types are computed in double, so that float32
 * is rounded once, at its end. Sums go by LANES, in an order that is written here and is the same on any
 * machine. Where a row is of one number only and eps is 0, the quotient 0/0 counts as 0. Squares that overflow make
 * the row NaN, as in torch: a quotient by infinity would look like an answer.
 */
#include "kernels/norm.h"

#include <math.h>

#define LANES 8

static double lanes_sum(const double lane[LANES]) {
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

#define REAL     float
#define NAMED(x) x##_float
#include "kernels/norm_real.h"
#define REAL     double
#define NAMED(x) x##_double
#include "kernels/norm_real.h"

void pe_norm_run(const struct pe_norm *norm, const void *x, void *out) {
    if (norm->dtype == PE_DTYPE_F64) {
        norm_double(norm, x, out);
    } else {
        norm_float(norm, x, out);
    }
}
