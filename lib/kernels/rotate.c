/* SPDX-License-Identifier: MIT
 *
 * One loop for each pair of types that is common, and a slow one for results of 16 bits.
 */
#include "kernels/rotate.h"

static void rotate_f32(const float *x, float *out, const struct pe_turn_pairs *pairs) {
    for (size_t i = 0; i < pairs->n; i++) {
        size_t at = i * pairs->step;
        double a = (double)x[at], b = (double)x[at + pairs->apart];
        out[at] = (float)(a * pairs->cos[i] - b * pairs->sin[i]);
        out[at + pairs->apart] = (float)(b * pairs->cos[i] + a * pairs->sin[i]);
    }
}

static void rotate_f64(const double *x, double *out, const struct pe_turn_pairs *pairs) {
    for (size_t i = 0; i < pairs->n; i++) {
        size_t at = i * pairs->step;
        double a = x[at], b = x[at + pairs->apart];
        out[at] = a * pairs->cos[i] - b * pairs->sin[i];
        out[at + pairs->apart] = b * pairs->cos[i] + a * pairs->sin[i];
    }
}

static void rotate_narrow(enum pe_dtype real, const void *x, enum pe_dtype out_dtype, char *out,
                          const struct pe_turn_pairs *pairs) {
    size_t size = pe_dtype_size(real), out_size = pe_dtype_size(out_dtype);
    for (size_t i = 0; i < pairs->n; i++) {
        size_t first = i * pairs->step, second = first + pairs->apart;
        double a, b;
        pe_dtype_load(real, (const char *)x + first * size, 1, &a);
        pe_dtype_load(real, (const char *)x + second * size, 1, &b);
        double turned[2] = {a * pairs->cos[i] - b * pairs->sin[i], b * pairs->cos[i] + a * pairs->sin[i]};
        pe_dtype_store(out_dtype, &turned[0], 1, out + first * out_size);
        pe_dtype_store(out_dtype, &turned[1], 1, out + second * out_size);
    }
}

void pe_rotate(enum pe_dtype real, const void *x, enum pe_dtype out_dtype, void *out,
               const struct pe_turn_pairs *pairs) {
    if (real != out_dtype) {
        rotate_narrow(real, x, out_dtype, out, pairs);
    } else if (real == PE_DTYPE_F64) {
        rotate_f64(x, out, pairs);
    } else {
        rotate_f32(x, out, pairs);
    }
}
