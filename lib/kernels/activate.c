/* SPDX-License-Identifier: MIT
 *
 * The functions between the two layers of a feed-forward network:
 *
 *     relu       max(0, x)
 *     gelu       x * Phi(x) = x/2 * (1 + erf(x/sqrt(2)))            Hendrycks and Gimpel 2016
 *     gelu_tanh  x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))  the same paper's approximation: GPT-2
 *
 * The two GELUs differ by up to 5e-4: which one a model was trained with has to be said. Phi is computed as
 * erfc(-x/sqrt(2))/2, and (1 + tanh(u))/2 as 1/(1 + exp(-2u)), since 1 + erf and 1 + tanh would lose the
 * digits of small values where x is far below zero. All is computed in double and rounded once. The
 * exponential is our own: that of a C library follows the processor in its last bit.
 */
#include "kernels/activate.h"

#include <math.h>

#define SQRT_HALF    0x1.6a09e667f3bcdp-1 /* sqrt(1/2) */
#define LOG2E        0x1.71547652b82fep+0 /* 1/ln(2) */
#define LN2_HIGH     0x1.62e42fefa2p-1
#define LN2_LOW      0x1.9ef35793c7673p-41
#define SQRT_2_OF_PI 0x1.9884533d43651p-1 /* sqrt(2/pi) */

static double relu(double x) {
    return x < 0 ? 0 : x; /* NaN stays */
}

static double gelu(double x) {
    return x < -40 ? 0 : x / 2 * erfc(-x * SQRT_HALF); /* minus infinity times 0 is to be 0 */
}

/* exp(x) for x <= 0: 2^n exp(r) with |r| <= ln(2)/2, and of that Taylor's series, up to r^14/14! < 2^-57.
 * n*LN2_HIGH is exact. */
static double power(double x) {
    if (!(x > -746)) {
        return x < 0 ? 0 : x; /* NaN stays */
    }
    static const double shares[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800,
                                    1.0 / 362880,     1.0 / 40320,     1.0 / 5040,     1.0 / 720,
                                    1.0 / 120,        1.0 / 24,        1.0 / 6,        1.0 / 2};
    double n = floor(x * LOG2E + 0.5), r = (x - n * LN2_HIGH) - n * LN2_LOW, sum = 0;
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        sum = sum * r + shares[i];
    }
    return ldexp(1 + (r + r * r * sum), (int)n);
}

/* exp of what is not above 0, whatever the sign of x. */
static double gelu_tanh(double x) {
    double small = power(-2 * SQRT_2_OF_PI * fabs(x + 0.044715 * x * x * x));
    return x < -40 ? 0 : x < 0 ? x * small / (1 + small) : x / (1 + small);
}

void pe_activate(enum pe_block_activation f, enum pe_dtype dtype, void *x, size_t n) {
    static double (*const functions[])(double) = {
        [PE_BLOCK_GELU] = gelu, [PE_BLOCK_GELU_TANH] = gelu_tanh, [PE_BLOCK_RELU] = relu};
    double (*const function)(double) = functions[f];
    if (dtype == PE_DTYPE_F64) {
        double *values = x;
        for (size_t i = 0; i < n; i++) {
            values[i] = function(values[i]);
        }
        return;
    }
    float *values = x;
    for (size_t i = 0; i < n; i++) {
        values[i] = (float)function((double)values[i]);
    }
}
