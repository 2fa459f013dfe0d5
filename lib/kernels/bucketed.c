/* SPDX-License-Identifier: MIT
 *
 * The two products of a pair are added up before they are added to out, so that out takes one number. One
 * query's tile is small, as its keys have a row each: all but the products on a diagonal are thrown away.
 */
#include "kernels/bucketed.h"

#include "posenc_fields.h"

#include <math.h>

#define TILE       64 /* keys */
#define TILE_LEAST 8

struct span {
    double least, most;
};

/* Keys first .. first+n-1 and the rows that their pairs with the block take. */
struct tile {
    size_t first, n;
    uint32_t least, most;
    bool line;    /* rows are of consecutive distances, from that of the least query to the last key on */
    double query; /* the least */
    uint32_t rows[PE_BUCKETED_QUERIES * TILE]; /* else [queries, n] */
};

uint32_t pe_bucketed_row(const uint32_t *rows, size_t reach, double distance) {
    double end = (double)reach;
    return rows[(size_t)(fmax(-end, fmin(end, distance)) + end)];
}

static struct span span_of(const double *positions, size_t n) {
    struct span span = {INFINITY, -INFINITY};
    for (size_t i = 0; i < n; i++) {
        span.least = fmin(span.least, positions[i]);
        span.most = fmax(span.most, positions[i]);
    }
    return span;
}

static bool is_run(const double *keys, size_t n) {
    size_t i = 1;
    while (i < n && keys[i] - keys[i - 1] == 1) {
        i++;
    }
    return i >= n;
}

/* Of consecutive keys, and queries that are near each other, the rows of all distances are made; those of a
 * query are a part of them. */
static bool line_open(const struct pe_bucketed *block, struct span queries, struct tile *tile) {
    const double *keys = block->keys + tile->first, low = queries.least - keys[tile->n - 1];
    size_t n = (size_t)fmin(queries.most - queries.least, PE_COUNT(tile->rows)) + tile->n;
    tile->line = n <= PE_COUNT(tile->rows) && is_run(keys, tile->n);
    tile->query = queries.least;
    for (size_t i = 0; tile->line && i < n; i++) {
        tile->rows[i] = pe_bucketed_row(block->rows, block->reach, low + (double)i);
    }
    tile->least = tile->rows[0];
    tile->most = tile->line ? tile->rows[n - 1] : 0;
    return tile->line;
}

static void tile_open(const struct pe_bucketed *block, struct span queries, struct tile *tile) {
    uint32_t *out = tile->rows;
    if (line_open(block, queries, tile)) {
        return;
    }
    tile->least = UINT32_MAX;
    tile->most = 0;
    for (size_t i = 0; i < block->n_queries; i++) {
        const double *keys = block->keys + tile->first, query = block->queries[i];
        for (size_t j = 0; j < tile->n; j++) {
            uint32_t row = pe_bucketed_row(block->rows, block->reach, query - keys[j]);
            tile->least = row < tile->least ? row : tile->least;
            tile->most = row > tile->most ? row : tile->most;
            *out++ = row;
        }
    }
}

/* scale * x [m, width] times rows first .. first+n-1 of a table, into its products [m, n]. */
static void multiply(const struct pe_bucketed *block, int side, struct pe_const_matrix x, size_t m,
                     size_t first, size_t n) {
    const struct pe_const_matrix *table = &block->table[side];
    size_t skipped = (first - block->first) * table->ld * pe_dtype_size(block->real);
    struct pe_gemm gemm = {
        .dtype = block->real,
        .ordered = block->ordered,
        .b_transposed = true,
        .m = m,
        .n = n,
        .k = block->width,
        .alpha = block->scale,
        .a = x,
        .b = {(const unsigned char *)table->data + skipped, table->ld},
        .c = {block->products[side], n},
        .stop = block->stop,
    };
    pe_gemm_run(&gemm);
}

/* The products of one query, of rows from `query_first` on, and of the keys of a tile; NULL: there are none.
 * Key j takes row rows[j * step]. */
struct products {
    const void *query, *key;
    size_t query_first, key_first, key_ld;
    const uint32_t *rows;
    ptrdiff_t step;
};

#define ADD(name, real)                                                                                      \
    static void name(const struct products *x, size_t n, void *to) {                                         \
        const real *query = x->query, *key = x->key;                                                         \
        const uint32_t *row = x->rows;                                                                       \
        real *out = to;                                                                                      \
        for (size_t j = 0; !key && j < n; j++, row += x->step) {                                             \
            out[j] += query[*row - x->query_first];                                                          \
        }                                                                                                    \
        for (size_t j = 0; key && j < n; j++, row += x->step, key += x->key_ld) {                            \
            real sum = query ? query[*row - x->query_first] : 0;                                             \
            out[j] += sum + key[*row - x->key_first];                                                        \
        }                                                                                                    \
    }
ADD(add_float, float)
ADD(add_double, double)

/* Rows. */
struct reached {
    uint32_t least, most;
};

static void tile_add(const struct pe_bucketed *block, const struct reached *reached, const struct tile *tile,
                     unsigned char *out) {
    size_t item = pe_dtype_size(block->real);
    const unsigned char *query =
        block->table[PE_BUCKETED_QUERY].data ? block->products[PE_BUCKETED_QUERY] : NULL;
    struct products x = {
        .key = block->table[PE_BUCKETED_KEY].data ? block->products[PE_BUCKETED_KEY] : NULL,
        .query_first = reached->least,
        .key_first = tile->least,
        .key_ld = tile->most - tile->least + 1,
        .step = tile->line ? -1 : 1,
    };
    for (size_t i = 0; i < block->n_queries; i++) {
        size_t first_key = tile->n - 1 + (size_t)(block->queries[i] - tile->query);
        x.rows = tile->rows + (tile->line ? first_key : i * tile->n);
        x.query = query ? query + i * (reached->most - reached->least + 1) * item : NULL;
        (block->real == PE_DTYPE_F64 ? add_double : add_float)(
            &x, tile->n, out + (i * block->n_keys + tile->first) * item);
    }
}

void pe_bucketed_add(const struct pe_bucketed *block, void *out) {
    size_t step = block->n_queries < TILE_LEAST ? TILE_LEAST : block->n_queries;
    struct span q = span_of(block->queries, block->n_queries), k = span_of(block->keys, block->n_keys);
    const struct reached reached = {pe_bucketed_row(block->rows, block->reach, q.least - k.most),
                                    pe_bucketed_row(block->rows, block->reach, q.most - k.least)};
    struct tile tile;
    if (block->table[PE_BUCKETED_QUERY].data) {
        multiply(block, PE_BUCKETED_QUERY, block->q, block->n_queries, reached.least,
                 reached.most - reached.least + 1);
    }
    for (tile.first = 0; tile.first < block->n_keys && !pe_stop_asked(block->stop); tile.first += tile.n) {
        tile.n = block->n_keys - tile.first < step ? block->n_keys - tile.first : step;
        tile_open(block, q, &tile);
        if (block->table[PE_BUCKETED_KEY].data) {
            size_t skipped = tile.first * block->k.ld * pe_dtype_size(block->real);
            struct pe_const_matrix x = {(const unsigned char *)block->k.data + skipped, block->k.ld};
            multiply(block, PE_BUCKETED_KEY, x, tile.n, tile.least, tile.most - tile.least + 1);
        }
        tile_add(block, &reached, &tile, out);
    }
}
