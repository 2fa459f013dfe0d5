/* SPDX-License-Identifier: MIT
 *
 * Rows of sines and cosines that are added to others as they are made, without memory for the rows.
 */
#ifndef PE_WAVE_ADD_H
#define PE_WAVE_ADD_H

#include "kernels/wave.h"

/* out = x*scale + values, each product and sum rounded; out may be x. */
struct pe_wave_sum {
    const float *x;
    float *out;
    double scale;
};

/* n rows as of pe_wave_run. `rows` says where they would go if they went to sum->out; of each row every number
 * between its first value and its last is one. */
void pe_wave_add(const struct pe_wave *wave, int64_t x, int64_t step, size_t n,
                 const struct pe_wave_out *rows, const struct pe_wave_sum *sum);

#endif
