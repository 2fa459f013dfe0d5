/* SPDX-License-Identifier: MIT
 *
 * Matrix products by CBLAS: the only file that includes its header.
 *
 * A product of the operations is one part of many, and the parts are what is spread over threads, so each
 * call must stay on its own thread: see pe_linalg_init. With one thread per call OpenBLAS gives the same
 * bits for the same operands on one machine; between kinds of processor the order of its sums differs, which
 * is why nothing that is cached by a strong tag may depend on this file.
 */
#include "kernels/linalg.h"

#include <cblas.h>
#include <string.h>

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

void pe_gemm_run(const struct pe_gemm *g) {
    if (gemm_is_empty(g)) {
        return;
    }
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
