/* SPDX-License-Identifier: MIT
 *
 * A table that a model projects, x.w + bias, once and for good: from tensors of any type into doubles.
 */
#ifndef PE_PROJECT_H
#define PE_PROJECT_H

#include "posenc.h"

struct pe_projection {
    const struct pe_tensor *x;    /* [rows, D] */
    const struct pe_tensor *w;    /* [D, columns]; NULL: x as it is */
    const struct pe_tensor *bias; /* [columns]; NULL: none */
    double *panels;               /* memory of pe_project_panels numbers, where there is w */
};

size_t pe_project_panels(const struct pe_tensor *x, const struct pe_tensor *w);
/* out [rows, columns]. Fails where it is stopped. */
int pe_project(const struct pe_projection *projection, double *out, struct pe_error *err);

#endif
