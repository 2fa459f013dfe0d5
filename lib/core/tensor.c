/* SPDX-License-Identifier: MIT
 *
 * Tensors are views: a pointer, an element type and a shape, in C order. Nothing here owns memory; what is
 * new lies in the caller's arena. Products of sizes that came from outside are taken with overflow told
 * apart, before any memory is. A loop over elements goes through a short buffer of doubles, so that one loop
 * serves every element type; no type holds a number that a double cannot.
 */
#include "core/dtype.h"
#include "core/stop.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BUFFER 256  /* doubles: 2 KiB of stack */
#define SPAN   4096 /* elements that are nearly always good, looked at together */

bool pe_size_product(const size_t *factors, size_t n, size_t *product) {
    size_t result = 1;
    bool fits = true;
    for (size_t i = 0; i < n; i++) {
        if (factors[i] == 0) { /* nothing is nothing, however large the others */
            *product = 0;
            return true;
        }
        fits = fits && result <= SIZE_MAX / factors[i];
        if (fits) {
            result *= factors[i];
        }
    }
    if (fits) {
        *product = result;
    }
    return fits;
}

/* Both saturate: a shape too large to exist fails wherever its size is asked for. */
size_t pe_tensor_count(const struct pe_tensor *tensor) {
    size_t count;
    return pe_size_product(tensor->dim, (size_t)tensor->rank, &count) ? count : SIZE_MAX;
}

size_t pe_tensor_bytes(const struct pe_tensor *tensor) {
    size_t bytes, factors[2] = {pe_tensor_count(tensor), pe_dtype_size(tensor->dtype)};
    return pe_size_product(factors, 2, &bytes) ? bytes : SIZE_MAX;
}

int pe_tensor_alloc(struct pe_arena *arena, struct pe_tensor *out, enum pe_dtype dtype, int rank,
                    const size_t *dim, struct pe_error *err) {
    if (err->code) {
        return err->code;
    }
    if (rank < 0 || rank > PE_MAX_RANK) {
        return pe_fail(err, PE_ERR_SHAPE, "", "got %d axes, allowed are 0 to %d", rank, PE_MAX_RANK);
    }
    if (pe_dtype_size(dtype) == 0) {
        return pe_fail(err, PE_ERR_DTYPE, "", "a tensor needs an element type");
    }
    struct pe_tensor tensor = {.dtype = dtype, .rank = rank};
    for (int i = 0; i < rank; i++) {
        tensor.dim[i] = dim[i];
    }
    tensor.data = pe_arena_alloc(arena, pe_tensor_bytes(&tensor), err);
    if (!tensor.data) {
        return err->code;
    }
    *out = tensor;
    return PE_OK;
}

/* values [n] are elements first .. of `in`. */
static int overflow_check(const struct pe_tensor *in, size_t first, const double *values, size_t n,
                          enum pe_dtype dtype, struct pe_error *err) {
    const double overflow = pe_dtype_overflow(dtype);
    for (size_t i = 0; i < n; i++) {
        if (fabs(values[i]) >= overflow && isfinite(values[i])) {
            char path[sizeof err->path];
            return pe_fail(err, PE_ERR_RANGE, pe_tensor_index_text(in, first + i, path, sizeof path),
                           "got %.17g, which is beyond the largest %s", values[i], pe_dtype_name(dtype));
        }
    }
    return PE_OK;
}

/* At the first of BUFFER elements. */
static bool asked_to_stop(size_t first, struct pe_error *err) {
    return first % PE_STOP_ITEMS == 0 && pe_error_poll(err);
}

static const unsigned char *element(const struct pe_tensor *tensor, size_t i) {
    return (const unsigned char *)tensor->data + i * pe_dtype_size(tensor->dtype);
}

int pe_tensor_convert(struct pe_arena *arena, struct pe_tensor *out, const struct pe_tensor *in,
                      enum pe_dtype dtype, struct pe_error *err) {
    if (err->code) {
        return err->code;
    }
    if (in->dtype == dtype) {
        *out = *in;
        return PE_OK;
    }
    struct pe_tensor copy;
    if (pe_tensor_alloc(arena, &copy, dtype, in->rank, in->dim, err)) {
        return err->code;
    }
    const size_t count = pe_tensor_count(in), size = pe_dtype_size(dtype);
    double buffer[BUFFER] = {0};
    for (size_t first = 0, n; first < count; first += n) {
        n = count - first < BUFFER ? count - first : BUFFER;
        pe_dtype_load(in->dtype, element(in, first), n, buffer);
        if (overflow_check(in, first, buffer, n, dtype, err) || asked_to_stop(first, err)) {
            return err->code;
        }
        pe_dtype_store(dtype, buffer, n, (unsigned char *)copy.data + first * size);
    }
    *out = copy;
    return PE_OK;
}

int pe_tensor_load(const struct pe_tensor *tensor, double *out, struct pe_error *err) {
    const size_t count = pe_tensor_count(tensor);
    for (size_t first = 0, n; first < count && !pe_error_poll(err); first += n) {
        n = pe_stop_step(count, first);
        pe_dtype_load(tensor->dtype, element(tensor, first), n, out + first);
    }
    return err->code;
}

/* values [n] are elements first .. of the tensor. */
static int finite_check(const struct pe_tensor *tensor, size_t first, const double *values, size_t n,
                        bool allow_minus_inf, struct pe_error *err) {
    for (size_t i = 0; i < n; i++) {
        if (isfinite(values[i]) || (allow_minus_inf && values[i] == -INFINITY)) {
            continue;
        }
        char path[sizeof err->path];
        return pe_fail(err, PE_ERR_NONFINITE, pe_tensor_index_text(tensor, first + i, path, sizeof path),
                       "got %s, allowed are finite numbers%s",
                       isnan(values[i]) ? "nan" : (values[i] > 0 ? "infinity" : "-infinity"),
                       allow_minus_inf ? " and -infinity" : "");
    }
    return PE_OK;
}

/* Where the lanes of a word hold elements of a type: all bits but the signs, one unit of the exponents, the signs. */
struct lanes {
    uint64_t rest, unit, sign;
};
static const struct lanes lanes_of[PE_DTYPE_COUNT] = {
    [PE_DTYPE_F64] = {0x7fffffffffffffff, 0x0010000000000000, 0x8000000000000000},
    [PE_DTYPE_F32] = {0x7fffffff7fffffff, 0x0080000000800000, 0x8000000080000000},
    [PE_DTYPE_F16] = {0x7fff7fff7fff7fff, 0x0400040004000400, 0x8000800080008000},
    [PE_DTYPE_BF16] = {0x7fff7fff7fff7fff, 0x0080008000800080, 0x8000800080008000},
};

/* Are n bytes finite numbers all? The exponent of one that is not is all ones, so that another unit carries into
 * the place of its sign, and no further. Nothing is converted, as nearly every number that ever comes is finite. One
 * sum over single words: gcc makes vectors of that and not of sums side by side, which took thrice as long. */
static bool all_finite(enum pe_dtype dtype, const unsigned char *bytes, size_t n) {
    const struct lanes lanes = lanes_of[dtype];
    const size_t n_words = n / sizeof(uint64_t), rest = n % sizeof(uint64_t);
    uint64_t carry = 0, word;
    for (size_t i = 0; i < n_words; i++) {
        memcpy(&word, bytes + i * sizeof word, sizeof word);
        carry |= (word & lanes.rest) + lanes.unit;
    }
    word = 0;
    memcpy(&word, bytes + n - rest, rest);
    carry |= (word & lanes.rest) + lanes.unit;
    return (carry & lanes.sign) == 0;
}

/* Elements first .. of the tensor, n of them. */
static bool span_finite(const struct pe_tensor *tensor, size_t first, size_t n) {
    return all_finite(tensor->dtype, element(tensor, first), n * pe_dtype_size(tensor->dtype));
}

/* Names the first that is not allowed, if there is one. */
static int span_check(const struct pe_tensor *tensor, size_t first, size_t count, bool allow_minus_inf,
                      struct pe_error *err) {
    double buffer[BUFFER];
    for (size_t end = first + count, n; first < end && !err->code; first += n) {
        n = end - first < BUFFER ? end - first : BUFFER;
        if (!span_finite(tensor, first, n)) {
            pe_dtype_load(tensor->dtype, element(tensor, first), n, buffer);
            (void)finite_check(tensor, first, buffer, n, allow_minus_inf, err);
        }
    }
    return err->code;
}

int pe_tensor_check_finite(const struct pe_tensor *tensor, bool allow_minus_inf, struct pe_error *err) {
    const size_t count = pe_tensor_count(tensor);
    for (size_t first = 0, n; first < count && !err->code && !asked_to_stop(first, err); first += n) {
        n = count - first < SPAN ? count - first : SPAN;
        if (!span_finite(tensor, first, n)) {
            (void)span_check(tensor, first, n, allow_minus_inf, err);
        }
    }
    return err->code;
}

/* Appends one number between two texts; a text that is full stays cut and terminated. */
static size_t append(char *text, size_t size, size_t used, const char *before, size_t number,
                     const char *after) {
    if (used >= size) {
        return used;
    }
    int added = snprintf(text + used, size - used, "%s%zu%s", before, number, after);
    return added < 0 ? used : used + (size_t)added;
}

char *pe_tensor_shape_text(const struct pe_tensor *tensor, char *text, size_t size) {
    size_t used = 0;
    if (tensor->rank == 0) {
        snprintf(text, size, "[]");
    }
    for (int i = 0; i < tensor->rank; i++) {
        used = append(text, size, used, i ? ", " : "[", tensor->dim[i], i == tensor->rank - 1 ? "]" : "");
    }
    return text;
}

char *pe_tensor_index_text(const struct pe_tensor *tensor, size_t i, char *text, size_t size) {
    size_t index[PE_MAX_RANK], used = 0;
    for (int axis = tensor->rank - 1; axis >= 0; axis--) {
        size_t dim = tensor->dim[axis] ? tensor->dim[axis] : 1;
        index[axis] = i % dim;
        i /= dim;
    }
    if (size) {
        text[0] = '\0';
    }
    for (int axis = 0; axis < tensor->rank; axis++) {
        used = append(text, size, used, "[", index[axis], "]");
    }
    return text;
}
