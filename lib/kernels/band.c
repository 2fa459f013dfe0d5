/* SPDX-License-Identifier: MIT
 *
 * A window is some of the table's rows: it is multiplied, and the pairs whose distance is in it take their
 * product; those beyond the table's ends belong to the first and the last window.
 */
#include "kernels/band.h"

#include "kernels/tile.h"
#include "kernels/vector.h"

#include <string.h>

#define WINDOW_MOST  ((size_t)512)
#define WINDOW_LEAST ((size_t)32)
#define WINDOW_ITEMS ((size_t)1 << 16) /* numbers of the table, where its vectors are long */
#define ALIGN        ((size_t)64)

/* The same, for rows in the place of columns. */
static struct pe_band transposed(const struct pe_band *band) {
    struct pe_band other = *band;
    other.least = -band->most;
    other.most = -band->least;
    other.reversed = !band->reversed;
    return other;
}

static size_t window_rows(const struct pe_band *band) {
    uint64_t rows = (uint64_t)(band->most - band->least) + 1;
    size_t n = WINDOW_ITEMS / (band->width ? band->width : 1);
    n = n > WINDOW_MOST ? WINDOW_MOST : n < WINDOW_LEAST ? WINDOW_LEAST : n;
    return rows < n ? (size_t)rows : n;
}

static size_t aligned(size_t bytes) {
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* The scratch memory: products (or sums of weights) [n, window], rows of the table in another type, and what
 * becomes of them: sums of a tile, or the product of the weights. */
struct parts {
    size_t converted, sums, bytes;
};

static struct parts parts_of(const struct pe_band *band, enum pe_dtype real, bool tiles) {
    size_t item = pe_dtype_size(real), window = window_rows(band), tile = pe_tile_bytes(PE_BAND_ROWS, real),
           product = aligned(PE_BAND_ROWS * band->width * item);
    struct parts parts;
    parts.converted = aligned(PE_BAND_ROWS * window * item);
    parts.sums = parts.converted + (band->dtype == real ? 0 : aligned(window * band->width * item));
    parts.bytes = parts.sums + (tiles && tile > product ? tile : product);
    return parts;
}

size_t pe_band_scratch_bytes(const struct pe_band *band, enum pe_dtype real, bool tiles) {
    return parts_of(band, real, tiles).bytes;
}

static void span_of(const double *positions, size_t n, int64_t *least, int64_t *most) {
    double low = positions[0], high = positions[0];
    for (size_t i = 1; i < n; i++) {
        low = positions[i] < low ? positions[i] : low;
        high = positions[i] > high ? positions[i] : high;
    }
    *least = (int64_t)low;
    *most = (int64_t)high;
}

static int64_t clamped(int64_t x, const struct pe_band *band) {
    return x < band->least ? band->least : x > band->most ? band->most : x;
}

/* The distances of the table that the block's pairs take. False: none. */
static bool reached(const struct pe_band *band, const struct pe_band_block *block, int64_t *low,
                    int64_t *high) {
    int64_t row[2], column[2];
    if (!block->n_rows || !block->n_columns) {
        return false;
    }
    span_of(block->rows, block->n_rows, &row[0], &row[1]);
    span_of(block->columns, block->n_columns, &column[0], &column[1]);
    int64_t least = column[0] - row[1], most = column[1] - row[0];
    *low = clamped(least, band);
    *high = clamped(most, band);
    return band->clip || (least <= band->most && most >= band->least);
}

/* Some rows of the table, in the type of the arithmetic, and the pairs that are so far apart. */
struct window {
    int64_t low, high; /* distances of the windows after it */
    struct pe_const_matrix rows;
    size_t n;
    struct pe_gather gather;
};

/* The rows as they are, or converted. */
static struct pe_const_matrix rows_open(const struct pe_band *band, const struct pe_band_block *block,
                                        size_t first, size_t n) {
    size_t size = pe_dtype_size(band->dtype), item = pe_dtype_size(block->real);
    const unsigned char *from = (const unsigned char *)band->data + first * band->ld * size;
    unsigned char *to = (unsigned char *)block->scratch + parts_of(band, block->real, false).converted;
    if (band->dtype == block->real) {
        return (struct pe_const_matrix){from, band->ld};
    }
    for (size_t r = 0; r < n; r++) {
        pe_vector_store(band->dtype, from + r * band->ld * size, band->width, block->real,
                        to + r * band->width * item);
    }
    return (struct pe_const_matrix){to, band->width};
}

static bool windows_open(const struct pe_band *band, const struct pe_band_block *block,
                         struct window *window) {
    return reached(band, block, &window->low, &window->high);
}

/* False: there are no more. */
static bool window_next(const struct pe_band *band, const struct pe_band_block *block,
                        struct window *window) {
    int64_t least = window->low, most = least + (int64_t)window_rows(band) - 1;
    if (least > window->high || pe_stop_asked(block->stop)) {
        return false;
    }
    most = most < window->high ? most : window->high;
    window->low = most + 1;
    window->n = (size_t)(most - least) + 1;
    window->rows =
        rows_open(band, block, (size_t)(band->reversed ? band->most - most : least - band->least), window->n);
    window->gather = (struct pe_gather){
        .real = block->real,
        .n_rows = block->n_rows,
        .n_columns = block->n_columns,
        .rows = block->rows,
        .columns = block->columns,
        .least = least,
        .most = most,
        .reversed = band->reversed,
        .below = band->clip && least == band->least,
        .above = band->clip && most == band->most,
        .stop = block->stop,
    };
    return true;
}

/* out(a, b) += alpha * vectors(a) . band(distance of a and b) */
static void products_add(const struct pe_band *band, const struct pe_band_block *block,
                         struct pe_const_matrix vectors, double alpha, struct pe_gather_out out) {
    struct pe_gemm gemm = {.dtype = block->real,
                           .ordered = block->ordered,
                           .stop = block->stop,
                           .b_transposed = true,
                           .m = block->n_rows,
                           .k = band->width,
                           .alpha = alpha,
                           .a = vectors,
                           .c = {.data = block->scratch, .ld = window_rows(band)}};
    struct window window;
    bool any = windows_open(band, block, &window);
    while (any && window_next(band, block, &window)) {
        gemm.b = window.rows;
        gemm.n = window.n;
        pe_gemm_run(&gemm);
        pe_gather_add(&window.gather, (struct pe_const_matrix){gemm.c.data, gemm.c.ld}, out);
    }
}

/* What columns first .. first+n-1 take, of one tile. Of the columns' own vectors each block of PE_BAND_ROWS
 * is multiplied by what the rows reach. */
static void tile_run(const struct pe_band_term *term, const struct pe_band_block *all,
                     const struct pe_tile *tile) {
    size_t item = pe_dtype_size(all->real);
    struct pe_band over = transposed(term->band);
    struct pe_band_block block = *all;
    block.columns = all->columns + tile->first;
    block.n_columns = tile->n;
    memset(tile->sums, 0, tile->rows * PE_TILE_LD * item);
    products_add(term->band, &block, term->rows, term->alpha,
                 (struct pe_gather_out){tile->sums, PE_TILE_LD, 1});
    block.columns = all->rows;
    block.n_columns = all->n_rows;
    for (size_t j = 0; term->columns.data && j < tile->n && !pe_stop_asked(all->stop); j += block.n_rows) {
        size_t first = tile->first + j;
        block.n_rows = tile->n - j < PE_BAND_ROWS ? tile->n - j : PE_BAND_ROWS;
        block.rows = all->columns + first;
        struct pe_const_matrix vectors = {
            (const unsigned char *)term->columns.data + first * term->columns.ld * item, term->columns.ld};
        products_add(&over, &block, vectors, term->alpha,
                     (struct pe_gather_out){(unsigned char *)tile->sums + j * item, 1, PE_TILE_LD});
    }
}

void pe_band_add(const struct pe_band_term *term, const struct pe_band_block *block, struct pe_matrix out) {
    if (!term->columns.data && !term->constants) {
        products_add(term->band, block, term->rows, term->alpha, (struct pe_gather_out){out.data, out.ld, 1});
        return;
    }
    struct pe_tile tile = {.real = block->real,
                           .rows = block->n_rows,
                           .sums = (unsigned char *)block->scratch +
                                   parts_of(term->band, block->real, false).sums};
    while (pe_tile_next(&tile, block->n_columns, block->stop)) {
        tile_run(term, block, &tile);
        pe_tile_add(&tile, term->constants, out);
    }
}

void pe_band_mix(const struct pe_band *band, const struct pe_band_block *block,
                 struct pe_const_matrix weights, struct pe_matrix out) {
    size_t item = pe_dtype_size(block->real);
    struct pe_matrix sums = {block->scratch, window_rows(band)},
                     product = {(unsigned char *)block->scratch + parts_of(band, block->real, false).sums,
                                band->width};
    struct pe_gemm gemm = {.dtype = block->real,
                           .ordered = block->ordered,
                           .stop = block->stop,
                           .m = block->n_rows,
                           .n = band->width,
                           .alpha = 1,
                           .a = {.data = sums.data, .ld = sums.ld},
                           .c = product};
    struct window window;
    bool any = windows_open(band, block, &window);
    while (any && window_next(band, block, &window)) {
        gemm.b = window.rows;
        gemm.k = window.n;
        pe_gather_sum(&window.gather, weights, sums);
        pe_gemm_run(&gemm);
        for (size_t a = 0; a < block->n_rows; a++) {
            unsigned char *to = (unsigned char *)out.data + a * out.ld * item;
            pe_vector_add(block->real, to, to, (const unsigned char *)product.data + a * product.ld * item,
                          band->width);
        }
    }
}
