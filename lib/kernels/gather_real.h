/* SPDX-License-Identifier: MIT
 *
 * The text of gather.c's loops for one type; it includes this once for each and says what the names mean.
 */

static void NAMED(add_constant)(REAL *out, size_t step, size_t n, REAL x) {
    if (step == 1) {
        for (size_t i = 0; i < n; i++) {
            out[i] += x;
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        out[i * step] += x;
    }
}

static void NAMED(add_slice)(REAL *restrict out, size_t step, size_t n, const REAL *restrict x) {
    if (step == 1) {
        for (size_t i = 0; i < n; i++) {
            out[i] += x[i];
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        out[i * step] += x[i];
    }
}

/* From x downwards. */
static void NAMED(add_reversed)(REAL *restrict out, size_t step, size_t n, const REAL *restrict x) {
    const REAL *from = x - (n ? n - 1 : 0);
    if (step == 1) {
        for (size_t i = 0; i < n; i++) {
            out[i] += from[n - 1 - i];
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        out[i * step] += from[n - 1 - i];
    }
}

static REAL NAMED(sum)(const REAL *x, size_t n) {
    double lane[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (size_t l = 0; l < LANES; l++) {
            lane[l] += (double)x[i + l];
        }
    }
    for (size_t l = 0; i < n; i++, l++) {
        lane[l] += (double)x[i];
    }
    return (REAL)(((lane[0] + lane[4]) + (lane[1] + lane[5])) + ((lane[2] + lane[6]) + (lane[3] + lane[7])));
}

/* Consecutive columns: those below the least distance, a slice, and those above the most. */
static void NAMED(run_add)(const struct pe_gather *g, const struct run *run, const REAL *products, REAL *out,
                           size_t step) {
    if (g->below) {
        NAMED(add_constant)(out, step, run->from, products[product_of(g, 0)]);
    }
    REAL *at = out + run->from * step;
    if (run->until > run->from) {
        (g->reversed ? NAMED(add_reversed) : NAMED(add_slice))(at, step, run->until - run->from,
                                                               products + product_of(g, run->first));
    }
    if (g->above) {
        NAMED(add_constant)
        (out + run->until * step, step, run->n - run->until, products[product_of(g, g->most - g->least)]);
    }
}

static void NAMED(run_sum)(const struct pe_gather *g, const struct run *run, const REAL *weights,
                           REAL *sums) {
    size_t n = run->until - run->from;
    if (g->below && run->from) {
        sums[product_of(g, 0)] += NAMED(sum)(weights, run->from);
    }
    if (n && g->reversed) {
        NAMED(add_reversed)(sums + product_of(g, run->first) - (n - 1), 1, n, weights + run->from + n - 1);
    } else if (n) {
        NAMED(add_slice)(sums + product_of(g, run->first), 1, n, weights + run->from);
    }
    if (g->above && run->until < run->n) {
        sums[product_of(g, g->most - g->least)] += NAMED(sum)(weights + run->until, run->n - run->until);
    }
}

/* Columns anywhere. */
static void NAMED(any_add)(const struct pe_gather *g, const struct columns *columns, int64_t row,
                           const REAL *products, REAL *out, size_t step) {
    for (size_t i = 0; i < columns->n; i++) {
        ptrdiff_t at = product_at(g, columns->position[i] - row);
        out[i * step] += at < 0 ? 0 : products[at];
    }
}

static void NAMED(any_sum)(const struct pe_gather *g, const struct columns *columns, int64_t row,
                           const REAL *weights, REAL *sums) {
    for (size_t i = 0; i < columns->n; i++) {
        ptrdiff_t at = product_at(g, columns->position[i] - row);
        if (at >= 0) {
            sums[at] += weights[i];
        }
    }
}

static void NAMED(add)(const struct pe_gather *g, const struct columns *columns,
                       struct pe_const_matrix products, struct pe_gather_out out) {
    for (size_t a = 0; a < g->n_rows; a++) {
        const REAL *from = (const REAL *)products.data + a * products.ld;
        REAL *to = (REAL *)out.data + a * out.row + columns->first * out.column;
        int64_t row = (int64_t)g->rows[a];
        if (columns->consecutive) {
            struct run run = run_of(g, columns, row);
            NAMED(run_add)(g, &run, from, to, out.column);
        } else {
            NAMED(any_add)(g, columns, row, from, to, out.column);
        }
    }
}

static void NAMED(sum_up)(const struct pe_gather *g, const struct columns *columns,
                          struct pe_const_matrix weights, struct pe_matrix sums) {
    for (size_t a = 0; a < g->n_rows; a++) {
        const REAL *from = (const REAL *)weights.data + a * weights.ld + columns->first;
        REAL *to = (REAL *)sums.data + a * sums.ld;
        int64_t row = (int64_t)g->rows[a];
        if (columns->consecutive) {
            struct run run = run_of(g, columns, row);
            NAMED(run_sum)(g, &run, from, to);
        } else {
            NAMED(any_sum)(g, columns, row, from, to);
        }
    }
}

#undef REAL
#undef NAMED
