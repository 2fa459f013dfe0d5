/* SPDX-License-Identifier: MIT
 *
 * Cells of a table, one at a time, as doubles.
 */
#include "core/cells.h"

#include "core/rng.h"
#include "core/stop.h"

#include <math.h>

#define CHUNK       256  /* cells read at a time, on the stack; divides PE_STOP_ITEMS */
#define SEEDED_MOST 8.66 /* no normal number of rng.h is larger */

int pe_cells_check(const struct pe_table *table, const char *field, bool seeded, struct pe_error *err) {
    if (table->name && !table->tensor) {
        return pe_fail(err, PE_ERR_UNKNOWN_NAME, field, "no table \"%.60s\" is loaded", table->name);
    }
    if (table->tensor && seeded) {
        return pe_fail(err, PE_ERR_CONFLICT, field, "is given, and so is seed: give one of them");
    }
    if (!table->tensor && !seeded) {
        return pe_fail(err, PE_ERR_MISSING, field, "is missing: give the table, or a seed for a random one");
    }
    return PE_OK;
}

int pe_cells_shape_fail(const struct pe_tensor *tensor, const char *field, const char *allowed,
                        struct pe_error *err) {
    char shape[128];
    return pe_fail(err, PE_ERR_SHAPE, field, "has shape %s, allowed is %s",
                   pe_tensor_shape_text(tensor, shape, sizeof shape), allowed);
}

bool pe_cells_given(const struct pe_table *table) {
    return table->tensor || table->name;
}

double pe_cells_at(const struct pe_cells *cells, size_t row, size_t column) {
    double value;
    if (cells->tensor) {
        const unsigned char *data = cells->tensor->data;
        size_t index = row * cells->columns + column;
        pe_dtype_load(cells->tensor->dtype, data + index * pe_dtype_size(cells->tensor->dtype), 1, &value);
        return value;
    }
    uint64_t seed = (uint64_t)cells->seed;
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)row, (uint32_t)column, cells->number, 1};
    uint32_t words[4];
    pe_philox(words, counter, key);
    return pe_random_gaussian(words, cells->std);
}

void pe_cells_row(const struct pe_cells *cells, size_t row, size_t first, size_t n, enum pe_dtype dtype,
                  void *out) {
    const struct pe_tensor *tensor = cells->tensor;
    double chunk[CHUNK];
    for (size_t i = 0, step; i < n; i += step) {
        step = n - i < CHUNK ? n - i : CHUNK;
        if (tensor) {
            size_t at = row * cells->columns + first + i;
            pe_dtype_load(tensor->dtype,
                          (const unsigned char *)tensor->data + at * pe_dtype_size(tensor->dtype), step,
                          chunk);
        }
        for (size_t k = 0; !tensor && k < step; k++) {
            chunk[k] = pe_cells_at(cells, row, first + i + k);
        }
        pe_dtype_store(dtype, chunk, step, (unsigned char *)out + i * pe_dtype_size(dtype));
    }
}

void pe_cells_fill(const struct pe_cells *cells, size_t rows, size_t columns, double *out,
                   const struct pe_stop *stop) {
    for (size_t i = 0; i < rows; i++) {
        for (size_t c = 0, step; c < columns && !pe_stop_asked(stop); c += step) {
            step = columns - c < CHUNK ? columns - c : CHUNK;
            pe_cells_row(cells, i, c, step, PE_DTYPE_F64, out + i * columns + c);
        }
    }
}

double pe_cells_largest(const struct pe_cells *cells, const struct pe_stop *stop) {
    if (!cells->tensor) {
        return SEEDED_MOST * cells->std;
    }
    const struct pe_tensor *tensor = cells->tensor;
    const unsigned char *data = tensor->data;
    size_t n = pe_tensor_count(tensor), size = pe_dtype_size(tensor->dtype);
    double most = 0, chunk[CHUNK];
    for (size_t i = 0, step; i < n && (i % PE_STOP_ITEMS || !pe_stop_asked(stop)); i += step) {
        step = n - i < CHUNK ? n - i : CHUNK;
        pe_dtype_load(tensor->dtype, data + i * size, step, chunk);
        for (size_t k = 0; k < step; k++) {
            most = isinf(chunk[k]) ? most : fmax(most, fabs(chunk[k]));
        }
    }
    return most;
}

int pe_cells_check_range(const struct pe_cells *cells, const char *field, struct pe_error *err) {
    double largest = pe_cells_largest(cells, err->stop);
    if (largest <= PE_POSITION_MAX) {
        return pe_error_poll(err);
    }
    return pe_fail(err, PE_ERR_RANGE, field, "reaches %g, allowed are -2^53 to 2^53", largest);
}
