/* SPDX-License-Identifier: MIT
 *
 * The two products of a pair are added up before they are added to out, so that out takes one number. One
 * query's tile is small, as its keys have a row each: all but the products on a diagonal are thrown away.
 */
#include "kernels/bucketed.h"

#include <math.h>

#define TILE       64 /* keys */
#define TILE_LEAST 8

/* Keys first .. first+n-1 and the rows that their pairs with the block take. */
struct tile {
    size_t first, n;
    uint32_t least, most;
    uint32_t rows[PE_BUCKETED_QUERIES * TILE]; /* [queries, n] */
};

static uint32_t row_of(const uint32_t *rows, double reach, double distance) {
    return rows[(size_t)(fmax(-reach, fmin(reach, distance)) + reach)];
}

size_t pe_bucketed_most(const uint32_t *rows, size_t reach, double distance) {
    double end = (double)reach;
    return (size_t)row_of(rows, end, distance) - row_of(rows, end, -distance) + 1;
}

struct span {
    double least, most;
};

static struct span span_of(const double *positions, size_t n) {
    struct span span = {INFINITY, -INFINITY};
    for (size_t i = 0; i < n; i++) {
        span.least = fmin(span.least, positions[i]);
        span.most = fmax(span.most, positions[i]);
    }
    return span;
}

void pe_bucketed_open(struct pe_bucketed *block) {
    struct span q = span_of(block->queries, block->n_queries), k = span_of(block->keys, block->n_keys);
    double reach = (double)block->reach;
    block->first = row_of(block->rows, reach, q.least - k.most);
    block->n = row_of(block->rows, reach, q.most - k.least) - block->first + 1;
}

static void tile_open(const struct pe_bucketed *block, struct tile *tile) {
    double reach = (double)block->reach;
    uint32_t *out = tile->rows;
    tile->least = UINT32_MAX;
    tile->most = 0;
    for (size_t i = 0; i < block->n_queries; i++) {
        const double *keys = block->keys + tile->first, query = block->queries[i];
        for (size_t j = 0; j < tile->n; j++) {
            uint32_t row = row_of(block->rows, reach, query - keys[j]);
            tile->least = row < tile->least ? row : tile->least;
            tile->most = row > tile->most ? row : tile->most;
            *out++ = row;
        }
    }
}

/* scale * x [m, width] times rows first .. first+n-1 of a table, into its products [m, n]. */
static void multiply(const struct pe_bucketed *block, int side, struct pe_const_matrix x, size_t m,
                     size_t first, size_t n) {
    size_t skipped = (first - block->first) * block->width * pe_dtype_size(block->real);
    struct pe_gemm gemm = {
        .dtype = block->real,
        .ordered = block->ordered,
        .b_transposed = true,
        .m = m,
        .n = n,
        .k = block->width,
        .alpha = block->scale,
        .a = x,
        .b = {(const unsigned char *)block->table[side] + skipped, block->width},
        .c = {block->products[side], n},
        .stop = block->stop,
    };
    pe_gemm_run(&gemm);
}

/* The products of one query, of rows from `first` on, and of the keys of a tile; NULL: there are none. */
struct products {
    const void *query, *key;
    size_t query_first, key_first, key_ld;
};

#define ADD(name, real)                                                                                      \
    static void name(const struct products *x, const uint32_t *rows, size_t n, void *to) {                   \
        const real *query = x->query, *key = x->key;                                                         \
        real *out = to;                                                                                      \
        for (size_t j = 0; j < n; j++) {                                                                     \
            real sum = query ? query[rows[j] - x->query_first] : 0;                                          \
            out[j] += key ? sum + key[j * x->key_ld + (rows[j] - x->key_first)] : sum;                       \
        }                                                                                                    \
    }
ADD(add_float, float)
ADD(add_double, double)

static void tile_add(const struct pe_bucketed *block, const struct tile *tile, unsigned char *out) {
    size_t item = pe_dtype_size(block->real);
    const unsigned char *query = block->table[PE_BUCKETED_QUERY] ? block->products[PE_BUCKETED_QUERY] : NULL;
    struct products x = {
        .key = block->table[PE_BUCKETED_KEY] ? block->products[PE_BUCKETED_KEY] : NULL,
        .query_first = block->first,
        .key_first = tile->least,
        .key_ld = tile->most - tile->least + 1,
    };
    for (size_t i = 0; i < block->n_queries; i++) {
        x.query = query ? query + i * block->n * item : NULL;
        (block->real == PE_DTYPE_F64 ? add_double : add_float)(
            &x, tile->rows + i * tile->n, tile->n, out + (i * block->n_keys + tile->first) * item);
    }
}

void pe_bucketed_add(const struct pe_bucketed *block, void *out) {
    size_t step = block->n_queries < TILE_LEAST ? TILE_LEAST : block->n_queries;
    struct tile tile;
    if (block->table[PE_BUCKETED_QUERY]) {
        multiply(block, PE_BUCKETED_QUERY, block->q, block->n_queries, block->first, block->n);
    }
    for (tile.first = 0; tile.first < block->n_keys && !pe_stop_asked(block->stop); tile.first += tile.n) {
        tile.n = block->n_keys - tile.first < step ? block->n_keys - tile.first : step;
        tile_open(block, &tile);
        if (block->table[PE_BUCKETED_KEY]) {
            size_t skipped = tile.first * block->k.ld * pe_dtype_size(block->real);
            struct pe_const_matrix k = {(const unsigned char *)block->k.data + skipped, block->k.ld};
            multiply(block, PE_BUCKETED_KEY, k, tile.n, tile.least, tile.most - tile.least + 1);
        }
        tile_add(block, &tile, out);
    }
}
