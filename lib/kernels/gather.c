/* SPDX-License-Identifier: MIT
 *
 * The columns are cut into runs of consecutive positions, for which a row takes a slice, and into pieces of
 * others, which are looked up one by one. For float and for double from one text (gather_real.h).
 */
#include "kernels/gather.h"

#include <string.h>

#define RUN_LEAST 8   /* shorter runs are looked up */
#define PIECE     256 /* columns looked up at a time, on the stack */
#define LANES     8   /* sums side by side */

/* Some columns that follow each other in memory. */
struct columns {
    size_t first, n;
    bool consecutive;                    /* their positions are, too */
    int64_t position[PIECE + RUN_LEAST]; /* of the first alone where they are consecutive */
};

/* Of n consecutive columns those from .. until-1 are at distances that there are products of; `first` says
 * how far behind the least the first of them is. */
struct run {
    size_t from, until, n;
    int64_t first;
};

static size_t between(int64_t x, size_t most) {
    return x < 0 ? 0 : x > (int64_t)most ? most : (size_t)x;
}

static struct run run_of(const struct pe_gather *g, const struct columns *columns, int64_t row) {
    int64_t distance = columns->position[0] - row;
    struct run run = {.n = columns->n,
                      .from = between(g->least - distance, columns->n),
                      .until = between(g->most + 1 - distance, columns->n)};
    run.first = distance + (int64_t)run.from - g->least;
    return run;
}

/* Where the product is of the distance that is `behind` the least. */
static ptrdiff_t product_of(const struct pe_gather *g, int64_t behind) {
    return (ptrdiff_t)(g->reversed ? g->most - g->least - behind : behind);
}

/* Where it is of any distance; -1: there is none. */
static inline ptrdiff_t product_at(const struct pe_gather *g, int64_t distance) {
    if (distance < g->least) {
        return g->below ? product_of(g, 0) : -1;
    }
    if (distance > g->most) {
        return g->above ? product_of(g, g->most - g->least) : -1;
    }
    return product_of(g, distance - g->least);
}

static size_t consecutive(const struct pe_gather *g, size_t first) {
    size_t n = 1;
    while (first + n < g->n_columns && g->columns[first + n] - g->columns[first + n - 1] == 1) {
        n++;
    }
    return n;
}

/* A run from `first` on, or else the columns until the next one. */
static void columns_cut(const struct pe_gather *g, size_t first, struct columns *out) {
    size_t run = consecutive(g, first), n = run;
    out->first = first;
    out->consecutive = run >= RUN_LEAST;
    while (!out->consecutive && n < PIECE && first + n < g->n_columns) {
        run = consecutive(g, first + n);
        if (run >= RUN_LEAST) {
            break;
        }
        n += run;
    }
    out->n = n;
    for (size_t i = 0; i < (out->consecutive ? 1 : n); i++) {
        out->position[i] = (int64_t)g->columns[first + i];
    }
}

#define REAL     float
#define NAMED(x) x##_float
#include "kernels/gather_real.h"

#define REAL     double
#define NAMED(x) x##_double
#include "kernels/gather_real.h"

void pe_gather_add(const struct pe_gather *g, struct pe_const_matrix products, struct pe_gather_out out) {
    struct columns columns;
    for (size_t first = 0; first < g->n_columns && !pe_stop_asked(g->stop); first += columns.n) {
        columns_cut(g, first, &columns);
        (g->real == PE_DTYPE_F64 ? add_double : add_float)(g, &columns, products, out);
    }
}

void pe_gather_sum(const struct pe_gather *g, struct pe_const_matrix weights, struct pe_matrix sums) {
    struct columns columns;
    size_t item = pe_dtype_size(g->real), bytes = (size_t)(g->most - g->least + 1) * item;
    for (size_t a = 0; a < g->n_rows; a++) {
        memset((unsigned char *)sums.data + a * sums.ld * item, 0, bytes);
    }
    for (size_t first = 0; first < g->n_columns && !pe_stop_asked(g->stop); first += columns.n) {
        columns_cut(g, first, &columns);
        (g->real == PE_DTYPE_F64 ? sum_up_double : sum_up_float)(g, &columns, weights, sums);
    }
}
