/* SPDX-License-Identifier: MIT
 *
 * Axes with letters: the same letter must have the same size in all tensors of a call.
 */
#ifndef PE_AXES_H
#define PE_AXES_H

#include "posenc.h"

enum pe_letter {
    PE_AXIS_B,
    PE_AXIS_H,
    PE_AXIS_HK,
    PE_AXIS_TQ,
    PE_AXIS_TK,
    PE_AXIS_D_MODEL,
    PE_AXIS_D,
    PE_AXIS_DV,
    PE_AXIS_COUNT
};

struct pe_axes {
    size_t size[PE_AXIS_COUNT];
    const char *owner[PE_AXIS_COUNT]; /* the field that gave the size first; NULL: none yet */
};

/* The last axes of the tensor stand for the last letters of [n]. PE_ERR_SHAPE at `field` for a size that
 * differs from an earlier one, for 0 where it is not a length, and for sizes beyond the products of matrices.
 */
int pe_axes_bind(struct pe_axes *axes, const char *field, const struct pe_tensor *tensor,
                 const enum pe_letter *letters, int n, struct pe_error *err);

#endif
