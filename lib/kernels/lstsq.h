/* SPDX-License-Identifier: MIT
 *
 * Linear least squares: the x of smallest norm among those that minimise |a.x - b|.
 */
#ifndef PE_LSTSQ_H
#define PE_LSTSQ_H

#include "posenc.h"

/* Everything by columns: column j of a [m, n] is a[j*m ..], and so on. */
struct pe_lstsq {
    size_t m, n, n_right;
    double *a;       /* [m, n], lost */
    double *b;       /* [m, n_right], lost */
    double *x;       /* [n, n_right], the result */
    double *scratch; /* pe_lstsq_scratch(m, n) numbers */
    size_t *order;   /* [n] */
    size_t rank;     /* the result: of a, to working precision */
};

/* The count of numbers; false when it does not fit. */
bool pe_lstsq_scratch(size_t m, size_t n, size_t *count);
/* Asks `stop` (or NULL) at every column; when that wants an end, x is not complete. */
void pe_lstsq_run(struct pe_lstsq *problem, const struct pe_stop *stop);

#endif
