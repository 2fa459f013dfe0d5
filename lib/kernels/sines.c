/* SPDX-License-Identifier: MIT
 *
 * R_-n differs from R_n by the sign of its sines, so the products with a matrix's two halves are made once for
 * both, and their sum and difference are the rows of n and of -n.
 */
#include "kernels/sines.h"

#include "kernels/tile.h"
#include "kernels/vector.h"

#define STEP ((size_t)64) /* distances at a time */

void pe_sines_fill(const struct pe_sines *sines, const double *positions, size_t n, enum pe_dtype dtype,
                   void *out, const struct pe_stop *stop) {
    size_t half = sines->width / 2, bytes = half * pe_dtype_size(dtype);
    unsigned char *row = out;
    for (size_t i = 0; i < n && !pe_stop_asked(stop); i++, row += 2 * bytes) {
        struct pe_place place;
        pe_place_of(&place, positions[i], 1, 0);
        pe_phase_row(&place, sines->turns, half, dtype,
                     &(struct pe_phase_out){.sin = row, .cos = row + bytes, .step = 1});
    }
}

/* ---- All distances ------------------------------------------------------------------------------------- */

size_t pe_sines_table_bytes(size_t width, size_t columns, enum pe_dtype real) {
    size_t bytes;
    const size_t factors[] = {STEP, width + 2 * columns, pe_dtype_size(real)};
    return pe_size_product(factors, 3, &bytes) ? bytes : SIZE_MAX;
}

/* Sinusoids of distances low .. low+n-1 times the two halves of the matrix: sines' products [n, columns], and
 * the cosines' after them. */
static void *step_multiply(const struct pe_sines_table *table, int64_t low, size_t n) {
    size_t item = pe_dtype_size(table->real), width = table->sines->width, half = width / 2 * item;
    unsigned char *rows = table->scratch, *products = rows + STEP * width * item;
    double distances[STEP];
    for (size_t i = 0; i < n; i++) {
        distances[i] = (double)(low + (int64_t)i);
    }
    pe_sines_fill(table->sines, distances, n, table->real, rows, table->stop);
    for (size_t side = 0; side < 2; side++) {
        struct pe_gemm gemm = {
            .dtype = table->real,
            .ordered = table->ordered,
            .stop = table->stop,
            .m = n,
            .n = table->columns,
            .k = width / 2,
            .alpha = 1,
            .a = {rows + side * half, width},
            .b = {(const unsigned char *)table->w.data + side * half * table->w.ld, table->w.ld},
            .c = {products + side * n * table->columns * item, table->columns},
        };
        pe_gemm_run(&gemm);
    }
    return products;
}

/* The rows of distances n and -n, as far as the table has them. */
static void rows_store(const struct pe_sines_table *table, int64_t n, const unsigned char *sine,
                       const unsigned char *cosine) {
    size_t bytes = table->columns * pe_dtype_size(table->real);
    int64_t above = table->first - n, below = table->first + n;
    unsigned char *out = table->out;
    if (above >= 0 && above < (int64_t)table->rows) {
        pe_vector_add(table->real, out + (size_t)above * bytes, cosine, sine, table->columns);
    }
    if (n > 0 && below >= 0 && below < (int64_t)table->rows) {
        pe_vector_subtract(table->real, out + (size_t)below * bytes, cosine, sine, table->columns);
    }
}

void pe_sines_project(const struct pe_sines_table *table) {
    int64_t first = table->first, last = first - (int64_t)table->rows + 1;
    int64_t low = last > 0 ? last : first < 0 ? -first : 0, high = first > -last ? first : -last;
    size_t bytes = table->columns * pe_dtype_size(table->real);
    for (int64_t n; low <= high && !pe_stop_asked(table->stop); low += n) {
        n = high - low < (int64_t)STEP ? high - low + 1 : (int64_t)STEP;
        const unsigned char *products = step_multiply(table, low, (size_t)n);
        for (size_t i = 0; i < (size_t)n; i++) {
            rows_store(table, low + (int64_t)i, products + i * bytes, products + ((size_t)n + i) * bytes);
        }
    }
}

/* ---- By turning ---------------------------------------------------------------------------------------- */

#define TURN(name, real)                                                                                     \
    static void name(void *row, size_t half, const double *sin, const double *cos) {                         \
        real *z = row;                                                                                       \
        for (size_t m = 0; m < half; m++) {                                                                  \
            double a = (double)z[m], b = (double)z[half + m];                                                \
            z[m] = (real)(b * sin[m] - a * cos[m]);                                                          \
            z[half + m] = (real)(a * sin[m] + b * cos[m]);                                                   \
        }                                                                                                    \
    }
TURN(turn_float, float)
TURN(turn_double, double)

/* W x of all rows, turned: [n_rows, width]. */
static void rows_turn(const struct pe_sines_block *block, unsigned char *out) {
    size_t bytes = block->width * pe_dtype_size(block->real), half = block->width / 2;
    struct pe_gemm gemm = {.dtype = block->real,
                           .ordered = block->ordered,
                           .stop = block->stop,
                           .b_transposed = true,
                           .m = block->n_rows,
                           .n = block->width,
                           .k = block->d,
                           .alpha = 1,
                           .a = block->x,
                           .b = block->w,
                           .c = {.data = out, .ld = block->width}};
    pe_gemm_run(&gemm);
    for (size_t t = 0; t < block->n_rows && !pe_stop_asked(block->stop); t++) {
        const double *sin = block->row_sines + t * block->width;
        (block->real == PE_DTYPE_F64 ? turn_double : turn_float)(out + t * bytes, half, sin, sin + half);
    }
}

size_t pe_sines_scratch_bytes(size_t width, enum pe_dtype real) {
    return pe_tile_bytes(PE_SINES_ROWS, real) + PE_SINES_ROWS * width * pe_dtype_size(real);
}

void pe_sines_add(const struct pe_sines_block *block, struct pe_matrix out) {
    size_t bytes = block->width * pe_dtype_size(block->real);
    unsigned char *turned = (unsigned char *)block->scratch + pe_tile_bytes(PE_SINES_ROWS, block->real);
    struct pe_tile tile = {.real = block->real, .rows = block->n_rows, .sums = block->scratch};
    rows_turn(block, turned);
    while (pe_tile_next(&tile, block->n_columns, block->stop)) {
        struct pe_gemm gemm = {
            .dtype = block->real,
            .ordered = block->ordered,
            .stop = block->stop,
            .b_transposed = true,
            .m = block->n_rows,
            .n = tile.n,
            .k = block->width,
            .alpha = block->alpha,
            .a = {turned, block->width},
            .b = {(const unsigned char *)block->column_sines + tile.first * bytes, block->width},
            .c = {.data = tile.sums, .ld = PE_TILE_LD}};
        pe_gemm_run(&gemm);
        pe_tile_add(&tile, block->constants, out);
    }
}
