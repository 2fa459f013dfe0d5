/* SPDX-License-Identifier: MIT
 *
 * The parameters of `learned`, and what its two halves share: rows in a line (learned.c), and grids of rows
 * (learned_grid.c).
 */
#ifndef PE_LEARNED_H
#define PE_LEARNED_H

#include "encodings/encoding.h"

enum learned_outside { LEARNED_ERROR = 1, LEARNED_CLAMP, LEARNED_ZERO };
enum { LEARNED_NONE = PE_RESAMPLE_BICUBIC_ANTIALIAS + 1 }; /* the other values are those of pe_resample */
enum { LEARNED_RSQRT = 1 };
enum { LEARNED_FIELD_GRID = 5 };

struct learned {
    uint64_t given;
    struct pe_table table;
    const char *tensor_name;
    int64_t offset;
    int out_of_range;
    int interpolate;
    struct pe_ints grid, image_grid;
    int64_t cls_rows;
    bool align_corners;
    struct pe_scale table_scale;
};

size_t pe_learned_rows(const struct learned *learned);
size_t pe_learned_width(const struct learned *learned);
/* What every number of the table is multiplied by. */
double pe_learned_scale(const struct learned *learned);
/* Row `row` times that, rounded once: out [D]. */
void pe_learned_copy(const struct learned *learned, size_t row, enum pe_dtype dtype, unsigned char *out);
const unsigned char *pe_learned_row(const struct learned *learned, size_t row);
/* The first number of a row whose magnitude is not below limit, or 0. */
double pe_learned_excess(const struct learned *learned, size_t row, double limit);

/* ---- Grids --------------------------------------------------------------------------------------------- */

/* Are the rows those of a grid? */
bool pe_learned_is_grid(const struct learned *learned);
/* Sets the grid where it follows from the rows, which a posted table tells. */
void pe_learned_grid_adopt(struct learned *learned);
int pe_learned_grid_check(const struct learned *learned, struct pe_error *err);
/* No sum of |weights| of rows is larger. */
double pe_learned_reach(const struct learned *learned);
/* Tokens of an image: the class rows and the cells. */
size_t pe_learned_grid_tokens(const struct learned *learned);
int pe_learned_grid_admit(const struct learned *learned, const struct pe_positions *positions,
                          struct pe_error *err);
int pe_learned_grid_fits(const struct learned *learned, const struct pe_positions *positions,
                         enum pe_dtype dtype, double limit, struct pe_error *err);
/* The vector of a token (axes 1) or of a cell (axes 2): out [D]. */
void pe_learned_grid_encode(const struct learned *learned, const double *position, int axes,
                            enum pe_dtype dtype, unsigned char *out);
double pe_learned_grid_cost_ns(const struct learned *learned);

#endif
