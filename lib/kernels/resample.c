/* SPDX-License-Identifier: MIT
 *
 * Weights that resample. Those of numbers beyond the ends are added to the last number's, so that what is
 * left is a run of numbers that exist.
 */
#include "kernels/resample.h"

#include <math.h>
#include <string.h>

#define BUFFER 256 /* doubles converted at a time, on the stack */

struct kernel {
    int support; /* 1: linear, 2: cubic */
    double a;
    bool antialias;
};

static const struct kernel kernels[] = {
    [PE_RESAMPLE_LINEAR] = {.support = 1},
    [PE_RESAMPLE_BILINEAR] = {.support = 1},
    [PE_RESAMPLE_BILINEAR_ANTIALIAS] = {.support = 1, .antialias = true},
    [PE_RESAMPLE_BICUBIC] = {.support = 2, .a = -0.75},
    [PE_RESAMPLE_BICUBIC_KEYS] = {.support = 2, .a = -0.5},
    [PE_RESAMPLE_BICUBIC_ANTIALIAS] = {.support = 2, .a = -0.5, .antialias = true},
};

static double kernel_at(const struct kernel *kernel, double x) {
    const double a = kernel->a;
    x = fabs(x);
    if (x >= kernel->support) {
        return 0;
    }
    if (kernel->support == 1) {
        return 1 - x;
    }
    return x < 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : a * (x - 1) * (x - 2) * (x - 2);
}

bool pe_resample_antialiased(enum pe_resample kernel) {
    return kernels[kernel].antialias;
}

/* For a whole target the numerator is exact, so that the place is rounded once. */
double pe_resample_place(const struct pe_resample_axis *axis, double target) {
    const double from = (double)axis->from, to = (double)axis->to;
    if (axis->from == axis->to) {
        return target;
    }
    if (axis->align_corners) {
        return axis->to == 1 ? 0 : target * (from - 1) / (to - 1);
    }
    return ((2 * target + 1) * from - to) / (2 * to);
}

static double width_of(const struct pe_resample_axis *axis) {
    bool wider = kernels[axis->kernel].antialias && axis->from > axis->to;
    return wider ? (double)axis->from / (double)axis->to : 1;
}

size_t pe_resample_most(const struct pe_resample_axis *axis) {
    double most = 2 * kernels[axis->kernel].support * width_of(axis) + 2;
    return most < (double)axis->from ? (size_t)most : axis->from;
}

static double clamp(double x, double last) {
    return fmin(fmax(x, 0), last);
}

/* Without the zeros at either end: a place that is a number's own has that number alone. */
static size_t trim(double *weights, size_t n, size_t *first) {
    size_t zeros = 0;
    while (n > 1 && weights[n - 1] == 0) {
        n--;
    }
    while (zeros + 1 < n && weights[zeros] == 0) {
        zeros++;
    }
    memmove(weights, weights + zeros, (n - zeros) * sizeof *weights);
    *first += zeros;
    return n - zeros;
}

size_t pe_resample_weights(const struct pe_resample_axis *axis, double place, double *weights,
                           size_t *first) {
    const struct kernel *kernel = &kernels[axis->kernel];
    const double last = (double)(axis->from - 1), width = width_of(axis), reach = kernel->support * width;
    double low = ceil(place - reach), high = floor(place + reach), sum = 0;
    if (kernel->antialias) {
        low = clamp(low, last);
        high = clamp(high, last);
    }
    const double begin = clamp(low, last);
    const size_t n = (size_t)(clamp(high, last) - begin) + 1;
    memset(weights, 0, n * sizeof *weights);
    for (double j = low; j <= high; j++) {
        double weight = kernel_at(kernel, (j - place) / width);
        weights[(size_t)(clamp(j, last) - begin)] += weight;
        sum += weight;
    }
    for (size_t i = 0; i < n && kernel->antialias; i++) {
        weights[i] /= sum;
    }
    *first = (size_t)begin;
    return trim(weights, n, first);
}

void pe_resample_add(enum pe_dtype dtype, const void *x, size_t n, double weight, bool begin, double *sum) {
    const unsigned char *in = x;
    double values[BUFFER];
    for (size_t done = 0, step; done < n; done += step) {
        step = n - done < BUFFER ? n - done : BUFFER;
        pe_dtype_load(dtype, in + done * pe_dtype_size(dtype), step, values);
        for (size_t i = 0; i < step; i++) {
            double product = weight * values[i];
            sum[done + i] = begin ? product : sum[done + i] + product;
        }
    }
}

size_t pe_resample_square(size_t rows, size_t *beside) {
    for (*beside = 1; *beside <= 3 && *beside < rows; ++*beside) {
        size_t side = (size_t)(sqrt((double)(rows - *beside)) + 0.5);
        if (side * side == rows - *beside) {
            return side;
        }
    }
    return 0;
}
