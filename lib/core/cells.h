/* SPDX-License-Identifier: MIT
 *
 * A matrix of learned parameters: a posted table, or one made from a seed, so that an encoding can be tried
 * without a model. Cell (r, c) of table t of an encoding is then std times the standard normal number of
 *
 *     Philox4x32-10(key = seed (low word, high word), counter = (r, c, t, 1))
 *
 * whose last word keeps it apart from the vectors of the type `random`.
 */
#ifndef PE_CELLS_H
#define PE_CELLS_H

#include "posenc_fields.h"

struct pe_cells {
    const struct pe_tensor *tensor; /* read as [rows, columns] in C order; NULL: from the seed */
    size_t columns;                 /* of the tensor */
    int64_t seed;
    double std;
    uint32_t number; /* t */
};

/* A table parameter called `field`: it has a tensor or, where `seeded`, none. PE_ERR_MISSING without both,
 * PE_ERR_CONFLICT with both, PE_ERR_UNKNOWN_NAME for a name that is no loaded table's. */
int pe_cells_check(const struct pe_table *table, const char *field, bool seeded, struct pe_error *err);
/* PE_ERR_SHAPE: its shape, and the one that is allowed. */
int pe_cells_shape_fail(const struct pe_tensor *tensor, const char *field, const char *allowed,
                        struct pe_error *err);
/* Of a table [rows, d], or [H, rows, d] with one for each head. */
static inline size_t pe_table_rows(const struct pe_tensor *table) {
    return table->dim[table->rank - 2];
}
static inline size_t pe_table_width(const struct pe_tensor *table) {
    return table->dim[table->rank - 1];
}
/* Is the parameter a tensor, or a name that may not be loaded? */
bool pe_cells_given(const struct pe_table *table);
double pe_cells_at(const struct pe_cells *cells, size_t row, size_t column);
/* n cells of a row, from `first` on, each rounded once. */
void pe_cells_row(const struct pe_cells *cells, size_t row, size_t first, size_t n, enum pe_dtype dtype,
                  void *out);
/* All of [rows, columns]; stopped, it is any numbers. */
void pe_cells_fill(const struct pe_cells *cells, size_t rows, size_t columns, double *out,
                   const struct pe_stop *stop);
/* The largest |cell| but infinity, or what none from the seed exceeds. Stopped, it is any number. */
double pe_cells_largest(const struct pe_cells *cells, const struct pe_stop *stop);
/* PE_ERR_RANGE where a cell is beyond -2^53 to 2^53, as far as exact sums of products go. */
int pe_cells_check_range(const struct pe_cells *cells, const char *field, struct pe_error *err);

#endif
