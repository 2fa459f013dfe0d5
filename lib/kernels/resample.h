/* SPDX-License-Identifier: MIT
 *
 * Resampling along one axis: which of n numbers, by which weights, make the number at some place between
 * them. Two axes are resampled one after the other, by the products of their weights.
 *
 *     place of target t among `from` numbers    (t + 1/2) from/to - 1/2       half-pixel centres
 *                                               t (from - 1)/(to - 1)         align_corners
 *     weight of number j                        k((j - place) / width)
 *     linear                                    k(x) = 1 - |x|                                |x| < 1
 *     cubic (Keys 1981)                         k(x) = (a+2)|x|^3 - (a+3)|x|^2 + 1            |x| < 1
 *                                                      a(|x| - 1)(|x| - 2)^2                  |x| < 2
 *
 * Where kernels of one name differ: `bicubic` of torch has a = -3/4, of jax, TensorFlow and Pillow a = -1/2;
 * and beyond the ends either the last number repeats, or what is there does not count and the other weights
 * are divided by their sum. Antialiased kernels are the latter, and when there are fewer numbers to be had
 * they are as much wider: width = from/to.
 */
#ifndef PE_RESAMPLE_H
#define PE_RESAMPLE_H

#include "posenc.h"

struct pe_resample_axis {
    enum pe_resample kernel;
    size_t from, to; /* > 0 */
    bool align_corners;
};

/* Is it a kernel that widens, whose places are always those of half-pixel centres? */
bool pe_resample_antialiased(enum pe_resample kernel);
/* The place of target t, which may lie between two targets, or half a step beyond the ends. */
double pe_resample_place(const struct pe_resample_axis *axis, double target);
/* No place has more weights. */
size_t pe_resample_most(const struct pe_resample_axis *axis);
/* The weights of numbers *first .. *first + n - 1 at a place, -1/2 <= place <= from - 1/2; returns n, 1 <= n
 * <= most. Their sum is 1. */
size_t pe_resample_weights(const struct pe_resample_axis *axis, double place, double *weights, size_t *first);
/* sum += weight * x, in double; `begin`: sum = weight * x. x [n] is of any type. */
void pe_resample_add(enum pe_dtype dtype, const void *x, size_t n, double weight, bool begin, double *sum);
/* The grid that so many rows may be, with 1 to 3 rows beside it: 577 is 24 x 24 and 1. 0: none. */
size_t pe_resample_square(size_t rows, size_t *beside);

#endif
