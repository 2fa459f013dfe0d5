/* SPDX-License-Identifier: MIT
 *
 * Matrix products by CBLAS: the only file that includes its header.
 *
 * A product of the operations is one part of many, and the parts are what is spread over threads, so each
 * call must stay on its own thread: see pe_linalg_init. With one thread per call OpenBLAS gives the same
 * bits for the same operands on one machine; between kinds of processor the order of its sums differs, which
 * is why what is cached by a strong tag asks for products that are `ordered`.
 */
#include "kernels/linalg.h"

#include "kernels/ordered.h"

#include <cblas.h>
#include <string.h>

#define TILE_PRODUCTS ((size_t)1 << 27) /* multiplications: some 10 ms of them on a slow core */
#define THIN          ((size_t)32)      /* a thinner matrix costs as much: moving it is what takes the time */
#define TILE_ROWS     ((size_t)128)
#define TILE_COLUMNS  ((size_t)128)

void pe_linalg_init(void) {
#ifdef OPENBLAS_VERSION
    openblas_set_num_threads(1);
#endif
}

const char *pe_linalg_name(void) {
#ifdef OPENBLAS_VERSION
    return openblas_get_config();
#else
    return "unknown";
#endif
}

/* BLAS may refuse sizes of zero: an empty sum is zero, an empty result is nothing. */
static bool gemm_is_empty(const struct pe_gemm *g) {
    if (g->m == 0 || g->n == 0) {
        return true;
    }
    if (g->k > 0) {
        return false;
    }
    size_t item = pe_dtype_size(g->dtype);
    for (size_t i = 0; i < g->m; i++) {
        memset((unsigned char *)g->c.data + i * g->c.ld * item, 0, g->n * item);
    }
    return true;
}

/* The tile that a product is cut into: all of it where that is a few milliseconds, else rows of c, since a
 * library packs b anew for each tile; where so few rows would be left that this costs, columns as well. k is
 * never cut: each number is the sum of one call. */
struct tile {
    size_t m, n;
};

static size_t between(size_t least, size_t x, size_t most) {
    size_t low = least < most ? least : most;
    return x < low ? low : x > most ? most : x;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

static struct tile tile_of(const struct pe_gemm *g) {
    size_t sums = TILE_PRODUCTS / larger(g->k, THIN) + 1; /* numbers of c */
    size_t m = between(TILE_ROWS, sums / g->n, g->m);
    size_t n = between(TILE_COLUMNS, sums / larger(m, THIN), g->n);
    return (struct tile){between(1, sums / n, m), n};
}

static void tile_run(const struct pe_gemm *g) {
    enum CBLAS_TRANSPOSE trans = g->b_transposed ? CblasTrans : CblasNoTrans;
    int m = (int)g->m, n = (int)g->n, k = (int)g->k;
    int lda = (int)g->a.ld, ldb = (int)g->b.ld, ldc = (int)g->c.ld;
    if (g->dtype == PE_DTYPE_F64) {
        cblas_dgemm(CblasRowMajor, CblasNoTrans, trans, m, n, k, g->alpha, g->a.data, lda, g->b.data, ldb,
                    0.0, g->c.data, ldc);
    } else {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, trans, m, n, k, (float)g->alpha, g->a.data, lda, g->b.data,
                    ldb, 0.0F, g->c.data, ldc);
    }
}

void pe_gemm_run(const struct pe_gemm *g) {
    if (g->ordered) {
        pe_ordered_run(g);
        return;
    }
    if (gemm_is_empty(g)) {
        return;
    }
    const struct tile tile = tile_of(g);
    size_t item = pe_dtype_size(g->dtype), column = g->b_transposed ? g->b.ld : 1;
    for (size_t i = 0; i < g->m; i += tile.m) {
        for (size_t j = 0; j < g->n && !pe_stop_asked(g->stop); j += tile.n) {
            struct pe_gemm part = *g;
            part.m = g->m - i < tile.m ? g->m - i : tile.m;
            part.n = g->n - j < tile.n ? g->n - j : tile.n;
            part.a.data = (const unsigned char *)g->a.data + i * g->a.ld * item;
            part.b.data = (const unsigned char *)g->b.data + j * column * item;
            part.c.data = (unsigned char *)g->c.data + (i * g->c.ld + j) * item;
            tile_run(&part);
        }
    }
}
