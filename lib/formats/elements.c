/* SPDX-License-Identifier: MIT
 *
 * From bytes in a file to a tensor in C order, native byte order, aligned. Most files already lie so and are
 * viewed, not copied. For the rest every element is put together from its bytes by shifts, which is the same
 * code whatever the byte order of file and machine, and whatever the alignment.
 *
 * Positions and masks come as whole numbers and booleans. They become float64, which holds all of up to 2^53
 * and some beyond; one that it does not hold is refused, as rounding it would make it another position.
 */
#include "formats/elements.h"

#include "core/stop.h"

#include <inttypes.h>
#include <string.h>

bool pe_host_little_endian(void) {
    const uint16_t mark = 0xFEFF;
    unsigned char first;
    memcpy(&first, &mark, 1);
    return first == 0xFF;
}

/* Where the elements in C order are found in the file: an odometer over the axes. */
struct walk {
    int rank;
    size_t dim[PE_MAX_RANK], stride[PE_MAX_RANK], index[PE_MAX_RANK];
    size_t at; /* element of the file */
};

/* The shape has elements: no dim is 0. */
static void walk_init(struct walk *walk, const struct pe_tensor *shape, bool fortran) {
    *walk = (struct walk){.rank = shape->rank};
    size_t stride = 1;
    for (int i = 0; i < shape->rank; i++) {
        int axis = fortran ? i : shape->rank - 1 - i;
        walk->dim[axis] = shape->dim[axis];
        walk->stride[axis] = stride;
        stride *= shape->dim[axis];
    }
}

static void walk_next(struct walk *walk) {
    for (int axis = walk->rank - 1; axis >= 0; axis--) {
        walk->at += walk->stride[axis];
        if (++walk->index[axis] < walk->dim[axis]) {
            return;
        }
        walk->at -= walk->dim[axis] * walk->stride[axis];
        walk->index[axis] = 0;
    }
}

static uint64_t bits_load(const unsigned char *at, size_t size, bool big_endian) {
    uint64_t bits = 0;
    for (size_t i = 0; i < size; i++) {
        bits = bits << 8 | at[big_endian ? i : size - 1 - i];
    }
    return bits;
}

static void bits_store(void *out, size_t size, uint64_t bits) {
    uint16_t bits16 = (uint16_t)bits;
    uint32_t bits32 = (uint32_t)bits;
    const void *in = size == 2 ? (const void *)&bits16 : size == 4 ? (const void *)&bits32 : &bits;
    memcpy(out, in, size);
}

/* The whole number +-magnitude as a double, if one is exactly that. */
static bool whole_number(uint64_t magnitude, bool negative, double *out) {
    double value = (double)magnitude;
    *out = negative ? -value : value;
    return value < 0x1p64 && (uint64_t)value == magnitude;
}

static int number_load(const struct pe_elements *elements, const unsigned char *at, double *out,
                       struct pe_error *err) {
    uint64_t bits = bits_load(at, elements->size, elements->big_endian);
    if (elements->kind == PE_ELEMENT_BOOL && bits > 1) {
        return pe_fail(err, PE_ERR_FORMAT, "", "got byte %u for a boolean, allowed are 0 and 1",
                       (unsigned)bits);
    }
    uint64_t sign = UINT64_C(1) << (8 * elements->size - 1);
    bool negative = elements->kind == PE_ELEMENT_INT && (bits & sign);
    uint64_t magnitude = negative ? sign - (bits - sign) : bits;
    if (!whole_number(magnitude, negative, out)) {
        return pe_fail(err, PE_ERR_RANGE, "", "got %s%" PRIu64 ", which float64 cannot hold exactly",
                       negative ? "-" : "", magnitude);
    }
    return PE_OK;
}

static bool lies_as_tensor(const struct pe_tensor *out, const struct pe_elements *elements,
                           const void *bytes) {
    return elements->kind == PE_ELEMENT_FLOAT && elements->big_endian != pe_host_little_endian() &&
           !(elements->fortran && out->rank > 1) && (uintptr_t)bytes % elements->size == 0;
}

/* A tensor's data is not const, as some tensors are written to; one that was read is not. */
static void *without_const(const void *bytes) {
    return (void *)(uintptr_t)bytes;
}

int pe_elements_read(struct pe_arena *arena, struct pe_tensor *out, const struct pe_elements *elements,
                     const void *bytes, struct pe_error *err) {
    bool is_float = elements->kind == PE_ELEMENT_FLOAT;
    out->dtype = is_float ? elements->dtype : PE_DTYPE_F64;
    if (lies_as_tensor(out, elements, bytes)) {
        out->data = without_const(bytes);
        return PE_OK;
    }
    if (pe_tensor_alloc(arena, out, out->dtype, out->rank, out->dim, err)) {
        return err->code;
    }
    struct walk walk;
    walk_init(&walk, out, elements->fortran);
    size_t n = pe_tensor_count(out), size = pe_dtype_size(out->dtype);
    for (size_t i = 0; i < n; i++, walk_next(&walk)) {
        const unsigned char *at = (const unsigned char *)bytes + walk.at * elements->size;
        unsigned char *to = (unsigned char *)out->data + i * size;
        double number = 0;
        if (i % PE_STOP_ITEMS == 0 && pe_error_poll(err)) {
            return err->code;
        }
        if (is_float) {
            bits_store(to, size, bits_load(at, size, elements->big_endian));
        } else if (number_load(elements, at, &number, err) == PE_OK) {
            memcpy(to, &number, sizeof number);
        } else {
            char path[sizeof err->path];
            return pe_error_at(err, pe_tensor_index_text(out, i, path, sizeof path));
        }
    }
    return PE_OK;
}
