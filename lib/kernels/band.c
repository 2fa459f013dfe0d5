/* SPDX-License-Identifier: MIT
 *
 * A window is some of the table's rows: it is multiplied, and the pairs whose distance is in it take their
 * product; those beyond the table's ends belong to the first and the last window.
 */
#include "kernels/band.h"

#include "kernels/vector.h"

#define WINDOW_MOST  ((size_t)512)
#define WINDOW_LEAST ((size_t)32)
#define WINDOW_ITEMS ((size_t)1 << 16) /* numbers of the table, where its vectors are long */
#define ALIGN        ((size_t)64)

struct pe_band pe_band_transposed(const struct pe_band *band) {
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

/* The scratch memory: products [n, window] (or sums), rows of the table in another type, a product. */
struct parts {
    size_t converted, product, bytes;
};

static struct parts parts_of(const struct pe_band *band, enum pe_dtype real) {
    size_t item = pe_dtype_size(real), window = window_rows(band);
    struct parts parts;
    parts.converted = aligned(PE_BAND_ROWS * window * item);
    parts.product = parts.converted + (band->dtype == real ? 0 : aligned(window * band->width * item));
    parts.bytes = parts.product + aligned(PE_BAND_ROWS * band->width * item);
    return parts;
}

size_t pe_band_scratch_bytes(const struct pe_band *band, enum pe_dtype real) {
    return parts_of(band, real).bytes;
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

/* The window of distances least .. most as a gather, and its rows in the type of the arithmetic. */
static struct pe_gather window_open(const struct pe_band *band, const struct pe_band_block *block,
                                    int64_t least, int64_t most, struct pe_const_matrix *rows) {
    size_t first = (size_t)(band->reversed ? band->most - most : least - band->least);
    size_t n = (size_t)(most - least) + 1, size = pe_dtype_size(band->dtype);
    const unsigned char *from = (const unsigned char *)band->data + first * band->ld * size;
    *rows = (struct pe_const_matrix){from, band->ld};
    if (band->dtype != block->real) {
        unsigned char *to = (unsigned char *)block->scratch + parts_of(band, block->real).converted;
        size_t item = pe_dtype_size(block->real);
        *rows = (struct pe_const_matrix){to, band->width};
        for (size_t r = 0; r < n; r++) {
            pe_vector_store(band->dtype, from + r * band->ld * size, band->width, block->real,
                            to + r * band->width * item);
        }
    }
    return (struct pe_gather){
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
}

static int64_t window_end(const struct pe_band *band, int64_t least, int64_t high) {
    int64_t most = least + (int64_t)window_rows(band) - 1;
    return most < high ? most : high;
}

void pe_band_add(const struct pe_band *band, const struct pe_band_block *block,
                 struct pe_const_matrix vectors, double alpha, struct pe_gather_out out) {
    int64_t low, high;
    size_t ld = window_rows(band);
    if (!reached(band, block, &low, &high)) {
        return;
    }
    for (int64_t most; low <= high && !pe_stop_asked(block->stop); low = most + 1) {
        struct pe_const_matrix rows;
        most = window_end(band, low, high);
        struct pe_gather gather = window_open(band, block, low, most, &rows);
        struct pe_gemm gemm = {.dtype = block->real,
                               .ordered = block->ordered,
                               .stop = block->stop,
                               .b_transposed = true,
                               .m = block->n_rows,
                               .n = (size_t)(most - low) + 1,
                               .k = band->width,
                               .alpha = alpha,
                               .a = vectors,
                               .b = rows,
                               .c = {.data = block->scratch, .ld = ld}};
        pe_gemm_run(&gemm);
        pe_gather_add(&gather, (struct pe_const_matrix){block->scratch, ld}, out);
    }
}

void pe_band_mix(const struct pe_band *band, const struct pe_band_block *block,
                 struct pe_const_matrix weights, struct pe_matrix out) {
    int64_t low, high;
    size_t ld = window_rows(band), item = pe_dtype_size(block->real);
    unsigned char *product = (unsigned char *)block->scratch + parts_of(band, block->real).product;
    if (!reached(band, block, &low, &high)) {
        return;
    }
    for (int64_t most; low <= high && !pe_stop_asked(block->stop); low = most + 1) {
        struct pe_const_matrix rows;
        most = window_end(band, low, high);
        struct pe_gather gather = window_open(band, block, low, most, &rows);
        pe_gather_sum(&gather, weights, (struct pe_matrix){block->scratch, ld});
        struct pe_gemm gemm = {.dtype = block->real,
                               .ordered = block->ordered,
                               .stop = block->stop,
                               .m = block->n_rows,
                               .n = band->width,
                               .k = (size_t)(most - low) + 1,
                               .alpha = 1,
                               .a = {.data = block->scratch, .ld = ld},
                               .b = rows,
                               .c = {.data = product, .ld = band->width}};
        pe_gemm_run(&gemm);
        for (size_t a = 0; a < block->n_rows; a++) {
            unsigned char *to = (unsigned char *)out.data + a * out.ld * item;
            pe_vector_add(block->real, to, to, product + a * band->width * item, band->width);
        }
    }
}
