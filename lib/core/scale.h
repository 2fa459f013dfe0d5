/* SPDX-License-Identifier: MIT
 *
 * The scale of the softmax, 1/sqrt(d): the nearest double, of which 1/sqrt(d) in doubles is the neighbour
 * where both of its roundings go the same way, for d = 96, 128 and 192 among others.
 */
#ifndef PE_SCALE_H
#define PE_SCALE_H

#include "core/wide.h"

#include <stddef.h>

double pe_scale_usual(size_t width);
/* factor/sqrt(width), rounded once. */
double pe_scale_of(const struct pe_wide *factor, size_t width);

#endif
