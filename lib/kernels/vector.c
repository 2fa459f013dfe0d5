/* SPDX-License-Identifier: MIT
 *
 * The loops of vector.h, for float and for double from one text (vector_real.h), written so that compilers
 * make vectors of them in the order given.
 */
#include "kernels/vector.h"

#include "core/stop.h"

#include <math.h>
#include <string.h>

#define REAL      float
#define BITS      uint32_t
#define NAMED(x)  x##_float
#define MAGNITUDE UINT32_C(0x7fffffff)
#define INFINITE  UINT32_C(0x7f800000)
#define WIDE      16
#include "kernels/vector_real.h"

#define REAL      double
#define BITS      uint64_t
#define NAMED(x)  x##_double
#define MAGNITUDE UINT64_C(0x7fffffffffffffff)
#define INFINITE  UINT64_C(0x7ff0000000000000)
#define WIDE      8
#include "kernels/vector_real.h"

#define LANES      8     /* sums side by side */
#define UNIT_LEAST 1e-12 /* lengths count as no less, as in the models that have cosine attention */
#define CHUNK      128   /* numbers on the stack while a float row becomes another type */

/* Of some of them. */
static double step_largest(enum pe_dtype dtype, const void *x, size_t n, bool skip_minus_infinity) {
    if (dtype == PE_DTYPE_F64) {
        return largest_double(x, n, skip_minus_infinity);
    }
    if (dtype == PE_DTYPE_F32) {
        return (double)largest_float(x, n, skip_minus_infinity);
    }
    double chunk[CHUNK], most = 0;
    for (size_t first = 0, step; first < n; first += step) {
        step = n - first < CHUNK ? n - first : CHUNK;
        pe_dtype_load(dtype, (const unsigned char *)x + first * pe_dtype_size(dtype), step, chunk);
        most = fmax(most, largest_double(chunk, step, skip_minus_infinity));
    }
    return most;
}

double pe_vector_largest(enum pe_dtype dtype, const void *x, size_t n, bool skip_minus_infinity,
                         const struct pe_stop *stop) {
    const unsigned char *at = x;
    double most = 0;
    for (size_t done = 0, step; done < n && !pe_stop_asked(stop); done += step) {
        step = pe_stop_step(n, done);
        most = fmax(most, step_largest(dtype, at + done * pe_dtype_size(dtype), step, skip_minus_infinity));
    }
    return most;
}

double pe_vector_largest_of(const struct pe_tensor *tensor, const struct pe_stop *stop) {
    return tensor ? pe_vector_largest(tensor->dtype, tensor->data, pe_tensor_count(tensor), false, stop) : 0;
}

double pe_vector_limit(enum pe_dtype dtype) {
    static const double limits[PE_DTYPE_COUNT] = {
        [PE_DTYPE_F64] = 0x1.fffffffffffffp1023,
        [PE_DTYPE_F32] = 0x1.fffffep127,
        [PE_DTYPE_F16] = 0x1.ffcp15,
        [PE_DTYPE_BF16] = 0x1.fep127,
    };
    return limits[dtype];
}

double pe_vector_harmless(enum pe_dtype dtype) {
    static const double quarters[PE_DTYPE_COUNT] = {
        [PE_DTYPE_F64] = 0x1p969,
        [PE_DTYPE_F32] = 0x1p102,
        [PE_DTYPE_F16] = 0x1p3,
        [PE_DTYPE_BF16] = 0x1p118,
    };
    return quarters[dtype];
}

void pe_vector_scale_add(enum pe_dtype dtype, void *out, const void *x, double scale, const void *added,
                         size_t n) {
    if (dtype == PE_DTYPE_F64) {
        scale_add_double(out, x, scale, added, n);
    } else {
        scale_add_float(out, x, (float)scale, added, n);
    }
}

void pe_vector_add(enum pe_dtype dtype, void *out, const void *a, const void *b, size_t n) {
    if (dtype == PE_DTYPE_F64) {
        add_double(out, a, b, n);
    } else {
        add_float(out, a, b, n);
    }
}

void pe_vector_subtract(enum pe_dtype dtype, void *out, const void *a, const void *b, size_t n) {
    if (dtype == PE_DTYPE_F64) {
        subtract_double(out, a, b, n);
    } else {
        subtract_float(out, a, b, n);
    }
}

/* out = x * factor / divisor, in double. */
static void unit_store(enum pe_dtype dtype, void *x, size_t n, double divisor, double factor) {
    double chunk[CHUNK];
    for (size_t first = 0, step; first < n; first += step) {
        unsigned char *at = (unsigned char *)x + first * pe_dtype_size(dtype);
        step = n - first < CHUNK ? n - first : CHUNK;
        pe_dtype_load(dtype, at, step, chunk);
        for (size_t i = 0; i < step; i++) {
            chunk[i] = chunk[i] / divisor * factor;
        }
        pe_dtype_store(dtype, chunk, step, at);
    }
}

void pe_vector_unit(enum pe_dtype dtype, void *x, size_t n, double length) {
    double largest = pe_vector_largest(dtype, x, n, false, NULL), sum = 0, chunk[CHUNK];
    if (!(largest > 0)) {
        return;
    }
    for (size_t first = 0, step; first < n; first += step) {
        step = n - first < CHUNK ? n - first : CHUNK;
        pe_dtype_load(dtype, (const unsigned char *)x + first * pe_dtype_size(dtype), step, chunk);
        for (size_t i = 0; i < step; i++) {
            chunk[i] /= largest; /* no square overflows, and none that counts underflows */
        }
        sum += pe_vector_dot(chunk, chunk, step);
    }
    double norm = sqrt(sum); /* of x / largest */
    if (largest * norm < UNIT_LEAST) {
        unit_store(dtype, x, n, UNIT_LEAST, length);
    } else {
        unit_store(dtype, x, n, largest, length / norm);
    }
}

double pe_vector_dot(const double *a, const double *b, size_t n) {
    double lane[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (size_t l = 0; l < LANES; l++) {
            lane[l] += a[i + l] * b[i + l];
        }
    }
    for (size_t l = 0; i < n; i++, l++) {
        lane[l] += a[i] * b[i];
    }
    return ((lane[0] + lane[4]) + (lane[1] + lane[5])) + ((lane[2] + lane[6]) + (lane[3] + lane[7]));
}

void pe_vector_store(enum pe_dtype dtype, const void *x, size_t n, enum pe_dtype out_dtype, void *out) {
    if (dtype == out_dtype && x == out) {
        return;
    }
    double chunk[CHUNK];
    size_t in_size = pe_dtype_size(dtype), out_size = pe_dtype_size(out_dtype);
    for (size_t first = 0, step; first < n; first += step) {
        step = n - first < CHUNK ? n - first : CHUNK;
        pe_dtype_load(dtype, (const unsigned char *)x + first * in_size, step, chunk);
        pe_dtype_store(out_dtype, chunk, step, (unsigned char *)out + first * out_size);
    }
}
