/* SPDX-License-Identifier: MIT
 *
 * Element types: binary64, binary32, binary16 and bfloat16, to and from doubles.
 *
 * A 16-bit format is a sign, E exponent bits and F fraction bits; all that the conversion needs is E and F:
 *
 *     float16   E = 5, F = 10     bfloat16   E = 8, F = 7
 *
 * Narrowing works on the integer significand of the double: shift out the bits that do not fit and round
 * once, to nearest, ties to even. Going through float first would round twice: 1 + 2^-11 + 2^-40 is above the
 * midpoint of two float16 neighbours, but as a float it is the midpoint itself and falls to the even one.
 * Below the smallest normal number the exponent stops and the shift grows: that is all there is to
 * subnormals. A round up that overflows the fraction carries into the exponent, and from the largest exponent
 * into infinity, because the bit patterns of one sign are in the order of their values.
 *
 * Elements are moved by memcpy: views of posted bytes need not be aligned.
 */
#include "core/dtype.h"

#include <math.h>
#include <string.h>

struct half_format {
    int exponent_bits, fraction_bits;
};

static const struct half_format float16 = {.exponent_bits = 5, .fraction_bits = 10};
static const struct half_format bfloat16 = {.exponent_bits = 8, .fraction_bits = 7};

static const struct {
    const char *name;
    size_t size;
} dtypes[PE_DTYPE_COUNT] = {
    [PE_DTYPE_NONE] = {"none", 0},   [PE_DTYPE_F64] = {"float64", 8},   [PE_DTYPE_F32] = {"float32", 4},
    [PE_DTYPE_F16] = {"float16", 2}, [PE_DTYPE_BF16] = {"bfloat16", 2},
};

static bool dtype_known(enum pe_dtype dtype) {
    return dtype > PE_DTYPE_NONE && dtype < PE_DTYPE_COUNT;
}

size_t pe_dtype_size(enum pe_dtype dtype) {
    return dtype_known(dtype) ? dtypes[dtype].size : 0;
}

const char *pe_dtype_name(enum pe_dtype dtype) {
    return dtype_known(dtype) ? dtypes[dtype].name : dtypes[PE_DTYPE_NONE].name;
}

enum pe_dtype pe_dtype_find(const char *name) {
    for (int dtype = PE_DTYPE_NONE + 1; dtype < PE_DTYPE_COUNT; dtype++) {
        if (strcmp(dtypes[dtype].name, name) == 0) {
            return (enum pe_dtype)dtype;
        }
    }
    return PE_DTYPE_NONE;
}

double pe_dtype_overflow(enum pe_dtype dtype) {
    static const double from[PE_DTYPE_COUNT] = {
        [PE_DTYPE_F64] = INFINITY,
        [PE_DTYPE_F32] = 0x1.ffffffp127,
        [PE_DTYPE_F16] = 0x1.ffep15,
        [PE_DTYPE_BF16] = 0x1.ffp127,
    };
    return from[dtype];
}

/* floor(significand / 2^shift), then one up when the rest is over a half, or is a half and the floor odd. */
static uint64_t shift_to_even(uint64_t significand, int shift) {
    if (shift > 54) { /* less than a quarter of the last place */
        return 0;
    }
    uint64_t floor = significand >> shift;
    uint64_t rest = significand & ((UINT64_C(1) << shift) - 1);
    uint64_t half = UINT64_C(1) << (shift - 1);
    return floor + (rest > half || (rest == half && (floor & 1)));
}

static uint16_t half_from_double(const struct half_format *format, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const int fraction_bits = format->fraction_bits, dropped = 52 - fraction_bits;
    const int bias = (1 << (format->exponent_bits - 1)) - 1;
    const uint64_t infinity = ((UINT64_C(1) << format->exponent_bits) - 1) << fraction_bits;
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    int exponent = (int)(bits >> 52 & 0x7ff);

    uint64_t magnitude;
    if (exponent == 0x7ff && fraction) { /* NaN: keep the top of the payload, make it quiet */
        magnitude = infinity | fraction >> dropped | UINT64_C(1) << (fraction_bits - 1);
    } else if (exponent == 0x7ff) {
        magnitude = infinity;
    } else if (exponent == 0) { /* zero, or a double below 2^-1022: far under every half of a last place */
        magnitude = 0;
    } else {
        int biased = exponent - 1023 + bias;
        int below = biased < 1 ? 1 - biased : 0; /* steps below the smallest normal exponent */
        uint64_t rounded = shift_to_even(fraction | UINT64_C(1) << 52, dropped + below);
        /* The hidden bit of a normal number adds the last 1 to the exponent field. */
        magnitude = ((uint64_t)(below ? 0 : biased - 1) << fraction_bits) + rounded;
        if (magnitude > infinity) {
            magnitude = infinity;
        }
    }
    return (uint16_t)(bits >> 63 << 15 | magnitude);
}

static double half_to_double(const struct half_format *format, uint16_t half) {
    const int fraction_bits = format->fraction_bits;
    const uint64_t bias = (UINT64_C(1) << (format->exponent_bits - 1)) - 1;
    const uint64_t exponent_max = (UINT64_C(1) << format->exponent_bits) - 1;
    uint64_t exponent = (uint64_t)half >> fraction_bits & exponent_max;
    uint64_t fraction = half & ((UINT64_C(1) << fraction_bits) - 1);
    uint64_t sign = (uint64_t)half >> 15 << 63, bits;
    double value;

    if (exponent == exponent_max) {
        bits = UINT64_C(0x7ff) << 52 | fraction << (52 - fraction_bits);
    } else if (exponent) {
        bits = (exponent - bias + 1023) << 52 | fraction << (52 - fraction_bits);
    } else { /* subnormal or zero: fraction * 2^(1 - bias - F), a product of two exact doubles */
        uint64_t unit_bits = (UINT64_C(1024) - bias - (uint64_t)fraction_bits) << 52;
        double unit;
        memcpy(&unit, &unit_bits, sizeof unit);
        value = (double)fraction * unit;
        memcpy(&bits, &value, sizeof bits);
    }
    bits |= sign;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void half_load(const struct half_format *format, const unsigned char *in, size_t n, double *out) {
    for (size_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, in + i * sizeof half, sizeof half);
        out[i] = half_to_double(format, half);
    }
}

static void half_store(const struct half_format *format, const double *in, size_t n, unsigned char *out) {
    for (size_t i = 0; i < n; i++) {
        uint16_t half = half_from_double(format, in[i]);
        memcpy(out + i * sizeof half, &half, sizeof half);
    }
}

static void float_load(const unsigned char *in, size_t n, double *out) {
    for (size_t i = 0; i < n; i++) {
        float value;
        memcpy(&value, in + i * sizeof value, sizeof value);
        out[i] = (double)value;
    }
}

static void float_store(const double *in, size_t n, unsigned char *out) {
    for (size_t i = 0; i < n; i++) {
        float value = (float)in[i];
        memcpy(out + i * sizeof value, &value, sizeof value);
    }
}

void pe_dtype_load(enum pe_dtype dtype, const void *in, size_t n, double *out) {
    if (n == 0) {
        return;
    }
    switch (dtype) {
    case PE_DTYPE_F64:
        memcpy(out, in, n * sizeof *out);
        break;
    case PE_DTYPE_F32:
        float_load(in, n, out);
        break;
    case PE_DTYPE_F16:
        half_load(&float16, in, n, out);
        break;
    case PE_DTYPE_BF16:
        half_load(&bfloat16, in, n, out);
        break;
    case PE_DTYPE_NONE:
    case PE_DTYPE_COUNT:
        break;
    }
}

void pe_dtype_store(enum pe_dtype dtype, const double *in, size_t n, void *out) {
    if (n == 0) {
        return;
    }
    switch (dtype) {
    case PE_DTYPE_F64:
        memcpy(out, in, n * sizeof *in);
        break;
    case PE_DTYPE_F32:
        float_store(in, n, out);
        break;
    case PE_DTYPE_F16:
        half_store(&float16, in, n, out);
        break;
    case PE_DTYPE_BF16:
        half_store(&bfloat16, in, n, out);
        break;
    case PE_DTYPE_NONE:
    case PE_DTYPE_COUNT:
        break;
    }
}
