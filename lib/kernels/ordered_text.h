/* SPDX-License-Identifier: MIT
 *
 * The text of products in a fixed order for one instruction set; ordered.c includes it and says what
 * the names mean.
 */

/* Rows first .. first+depth-1 of b's columns j .. j+n-1, beside zeros, into panel [depth, COLUMNS]. */
static void NAMED(pack)(const struct pe_gemm *g, size_t first, size_t depth, size_t j, size_t n,
                        double *panel) {
    const double *b = g->b.data;
    size_t down = g->b_transposed ? 1 : g->b.ld, across = g->b_transposed ? g->b.ld : 1;
    for (size_t l = 0; l < depth; l++) {
        const double *row = b + (first + l) * down + j * across;
        for (size_t c = 0; c < COLUMNS; c++) {
            panel[l * COLUMNS + c] = c < n ? row[c * across] : 0;
        }
    }
}

/* sums [COLUMNS] += a [depth] times panel. */
static void NAMED(row_add)(const double *restrict a, size_t depth, const double *restrict panel,
                           double *restrict sums) {
    double sum[COLUMNS];
    for (size_t c = 0; c < COLUMNS; c++) {
        sum[c] = sums[c];
    }
    for (size_t l = 0; l < depth; l++) {
        double x = a[l];
        for (size_t c = 0; c < COLUMNS; c++) {
            sum[c] += x * panel[l * COLUMNS + c];
        }
    }
    for (size_t c = 0; c < COLUMNS; c++) {
        sums[c] = sum[c];
    }
}

/* Rows i .. i+m-1 and columns j .. j+n-1 of c. */
static void NAMED(tile)(const struct pe_gemm *g, size_t i, size_t m, size_t j, size_t n) {
    double panel[DEPTH * COLUMNS], sums[ROWS * COLUMNS];
    const double *a = (const double *)g->a.data + i * g->a.ld;
    double *out = (double *)g->c.data + i * g->c.ld + j;
    for (size_t s = 0; s < m * COLUMNS; s++) {
        sums[s] = 0;
    }
    for (size_t l = 0; l < g->k && !pe_stop_asked(g->stop); l += DEPTH) {
        size_t depth = g->k - l < DEPTH ? g->k - l : DEPTH;
        NAMED(pack)(g, l, depth, j, n, panel);
        for (size_t r = 0; r < m; r++) {
            NAMED(row_add)(a + r * g->a.ld + l, depth, panel, sums + r * COLUMNS);
        }
    }
    for (size_t r = 0; r < m; r++) {
        for (size_t c = 0; c < n; c++) {
            out[r * g->c.ld + c] = g->alpha * sums[r * COLUMNS + c];
        }
    }
}

static void NAMED(product)(const struct pe_gemm *g) {
    for (size_t i = 0; i < g->m && !pe_stop_asked(g->stop); i += ROWS) {
        size_t m = g->m - i < ROWS ? g->m - i : ROWS;
        for (size_t j = 0; j < g->n && !pe_stop_asked(g->stop); j += COLUMNS) {
            NAMED(tile)(g, i, m, j, g->n - j < COLUMNS ? g->n - j : COLUMNS);
        }
    }
}

#undef COLUMNS
#undef NAMED
