/* SPDX-License-Identifier: MIT
 *
 * Matrix products. The one place that stands on a BLAS; everything above sees these two types.
 */
#ifndef PE_LINALG_H
#define PE_LINALG_H

#include "posenc.h"

/* A matrix inside a larger block: element (i, j) is data[i*ld + j]. */
struct pe_matrix {
    void *data;
    size_t ld;
};
struct pe_const_matrix {
    const void *data;
    size_t ld;
};

/* c [m, n] = alpha * a [m, k] . b, where b is [k, n], or [n, k] and read transposed. c's old content is not
 * read. All are of one type, float32 or float64; every size and ld is at most PE_GEMM_MAX. */
struct pe_gemm {
    enum pe_dtype dtype;
    bool b_transposed;
    bool ordered; /* in an order that is the same on every machine (ordered.h), float64 alone; else by BLAS */
    size_t m, n, k;
    double alpha;
    struct pe_const_matrix a, b;
    struct pe_matrix c;
    const struct pe_stop *stop; /* asked between tiles, whose sizes follow from m, n and k alone; or NULL */
};

#define PE_GEMM_MAX ((size_t)INT32_MAX)

void pe_gemm_run(const struct pe_gemm *gemm);

#endif
