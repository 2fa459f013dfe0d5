/* SPDX-License-Identifier: MIT
 *
 * Linear least squares by a complete orthogonal decomposition (Golub and Van Loan, Matrix Computations, 5.5).
 *
 *     a.P = Q.[R; 0]     Householder reflections, always on the longest column left, so that |diagonal of R|
 *                        falls and the rank r shows: where it drops below rounding of the largest
 *     R^T = Z.[S; 0]     the same without exchange: R [r, n] = S^T.Z^T, which leaves the n - r directions
 *                        that a does not see as the last columns of Z
 *     x = P.Z.[S^-T.(Q^T b)_r ; 0]               nothing along those directions: the smallest norm
 *
 * A library's singular values would judge the rank a little better, but its bits depend on the processor it
 * was tuned for. The order of sums here is that of pe_vector_dot: the same bits everywhere, so that a result
 * may be cached by its request.
 */
#include "kernels/lstsq.h"

#include "kernels/vector.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* H = 1 - beta.v.v^T, with v in place of the column it was made for. */
struct reflection {
    double beta, diagonal; /* the column becomes (diagonal, 0, ...) */
};

static struct reflection reflection_make(double *v, size_t n) {
    double length = sqrt(pe_vector_dot(v, v, n));
    if (length == 0) {
        return (struct reflection){0};
    }
    double diagonal = v[0] > 0 ? -length : length; /* away from v[0]: nothing cancels */
    double beta = 1 / (length * (length + fabs(v[0])));
    v[0] -= diagonal;
    return (struct reflection){.beta = beta, .diagonal = diagonal};
}

static void reflect(const double *restrict v, double beta, double *restrict column, size_t n) {
    double along = beta * pe_vector_dot(v, column, n);
    for (size_t i = 0; i < n; i++) {
        column[i] -= along * v[i];
    }
}

/* The scratch, divided. */
struct factors {
    double *diagonal, *beta, *norm, *reference; /* [n] each */
    double *row;                                /* [n] */
    double *s;                                  /* R^T, then Z and S: [n, min(m, n)] */
};

static size_t rank_most(size_t m, size_t n) {
    return m < n ? m : n;
}

bool pe_lstsq_scratch(size_t m, size_t n, size_t *count) {
    size_t columns = rank_most(m, n);
    return columns <= SIZE_MAX - 5 && pe_size_product((size_t[2]){n, columns + 5}, 2, count);
}

static void swap_columns(struct pe_lstsq *p, const struct factors *f, size_t j, size_t k) {
    double *a = p->a + j * p->m, *b = p->a + k * p->m;
    for (size_t i = 0; i < p->m && j != k; i++) {
        double kept = a[i];
        a[i] = b[i];
        b[i] = kept;
    }
    size_t order = p->order[j];
    p->order[j] = p->order[k];
    p->order[k] = order;
    f->norm[j] = f->norm[k];
    f->reference[j] = f->reference[k];
}

/* Squared lengths of the columns below row k, kept up by subtraction until too much has cancelled. */
static void norms_update(const struct pe_lstsq *p, const struct factors *f, size_t k) {
    for (size_t j = k + 1; j < p->n; j++) {
        const double *column = p->a + j * p->m;
        f->norm[j] -= column[k] * column[k];
        if (f->norm[j] < 1e-8 * f->reference[j]) {
            f->norm[j] = f->reference[j] = pe_vector_dot(column + k + 1, column + k + 1, p->m - k - 1);
        }
    }
}

/* a becomes R above the diagonal, b becomes Q^T b. */
static void factor_a(struct pe_lstsq *p, const struct factors *f, const struct pe_stop *stop) {
    size_t longest = p->m > p->n ? p->m : p->n;
    double least = 0;
    for (size_t j = 0; j < p->n; j++) {
        p->order[j] = j;
        f->norm[j] = f->reference[j] = pe_vector_dot(p->a + j * p->m, p->a + j * p->m, p->m);
    }
    for (p->rank = 0; p->rank < rank_most(p->m, p->n) && !pe_stop_asked(stop); p->rank++) {
        size_t k = p->rank, pivot = k;
        for (size_t j = k + 1; j < p->n; j++) {
            pivot = f->norm[j] > f->norm[pivot] ? j : pivot;
        }
        swap_columns(p, f, pivot, k);
        double *v = p->a + k * p->m + k;
        struct reflection h = reflection_make(v, p->m - k);
        if (fabs(h.diagonal) <= least) {
            return;
        }
        if (k == 0) {
            least = fabs(h.diagonal) * DBL_EPSILON * (double)longest;
        }
        f->diagonal[k] = h.diagonal;
        for (size_t j = k + 1; j < p->n; j++) {
            reflect(v, h.beta, p->a + j * p->m + k, p->m - k);
        }
        for (size_t j = 0; j < p->n_right; j++) {
            reflect(v, h.beta, p->b + j * p->m + k, p->m - k);
        }
        norms_update(p, f, k);
    }
}

/* s = R^T, then its factors: column i of s has S above the diagonal and the reflection from it on. */
static void factor_r(const struct pe_lstsq *p, const struct factors *f, const struct pe_stop *stop) {
    size_t n = p->n, r = p->rank;
    for (size_t i = 0; i < r && !pe_stop_asked(stop); i++) {
        double *column = f->s + i * n;
        memset(column, 0, i * sizeof *column);
        column[i] = f->diagonal[i];
        for (size_t j = i + 1; j < n; j++) {
            column[j] = p->a[j * p->m + i];
        }
    }
    for (size_t i = 0; i < r && !pe_stop_asked(stop); i++) {
        double *v = f->s + i * n + i;
        struct reflection h = reflection_make(v, n - i);
        f->diagonal[i] = h.diagonal;
        f->beta[i] = h.beta;
        for (size_t j = i + 1; j < r; j++) {
            reflect(v, h.beta, f->s + j * n + i, n - i);
        }
    }
}

/* One column of x from one of Q^T b. */
static void solve(const struct pe_lstsq *p, const struct factors *f, const double *right, double *x) {
    double *y = f->row;
    memset(y, 0, p->n * sizeof *y);
    for (size_t j = 0; j < p->rank; j++) {
        y[j] = (right[j] - pe_vector_dot(f->s + j * p->n, y, j)) / f->diagonal[j];
    }
    for (size_t i = p->rank; i-- > 0;) {
        reflect(f->s + i * p->n + i, f->beta[i], y + i, p->n - i);
    }
    for (size_t j = 0; j < p->n; j++) {
        x[p->order[j]] = y[j];
    }
}

void pe_lstsq_run(struct pe_lstsq *p, const struct pe_stop *stop) {
    size_t n = p->n;
    double *at = p->scratch;
    struct factors f = {.diagonal = at,
                        .beta = at + n,
                        .norm = at + 2 * n,
                        .reference = at + 3 * n,
                        .row = at + 4 * n,
                        .s = at + 5 * n};
    factor_a(p, &f, stop);
    factor_r(p, &f, stop);
    for (size_t i = 0; i < p->n_right && !pe_stop_asked(stop); i++) {
        solve(p, &f, p->b + i * p->m, p->x + i * n);
    }
}
