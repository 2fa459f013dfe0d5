/* SPDX-License-Identifier: MIT
 *
 * 1/sqrt(d) by wide numbers: some microseconds, once for each request.
 */
#include "core/scale.h"

#include <math.h>

double pe_scale_of(const struct pe_wide *factor, size_t width) {
    struct pe_wide root = pe_wide_of((double)width);
    pe_wide_sqrt(&root, &root);
    pe_wide_div(&root, factor, &root);
    return pe_wide_nearest(&root);
}

double pe_scale_usual(size_t width) {
    const struct pe_wide one = pe_wide_of(1);
    return width ? pe_scale_of(&one, width) : INFINITY;
}
