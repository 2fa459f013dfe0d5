/* SPDX-License-Identifier: MIT
 *
 * Axes with letters. A message then says what both sides are, "has d = 4 but q has d = 2", wherever the
 * second tensor comes from.
 */
#include "ops/axes.h"

#include "kernels/linalg.h"

static const char *const names[PE_AXIS_COUNT] = {
    [PE_AXIS_B] = "B",  [PE_AXIS_H] = "H",       [PE_AXIS_HK] = "H", [PE_AXIS_TQ] = "T",
    [PE_AXIS_TK] = "T", [PE_AXIS_D_MODEL] = "D", [PE_AXIS_D] = "d",  [PE_AXIS_DV] = "dv",
};

int pe_axes_bind(struct pe_axes *axes, const char *field, const struct pe_tensor *tensor,
                 const enum pe_letter *letters, int n, struct pe_error *err) {
    char shape[128];
    for (int i = 0; i < tensor->rank; i++) {
        enum pe_letter letter = letters[n - tensor->rank + i];
        size_t size = tensor->dim[i];
        bool is_length = letter == PE_AXIS_TQ || letter == PE_AXIS_TK;
        if ((size == 0 && !is_length) || size > PE_GEMM_MAX) {
            return pe_fail(err, PE_ERR_SHAPE, field, "has shape %s, allowed for %s are %d to 2^31 - 1",
                           pe_tensor_shape_text(tensor, shape, sizeof shape), names[letter],
                           is_length ? 0 : 1);
        }
        if (!axes->owner[letter]) {
            axes->owner[letter] = field;
            axes->size[letter] = size;
        } else if (axes->size[letter] != size) {
            return pe_fail(err, PE_ERR_SHAPE, field, "has %s = %zu but %s has %s = %zu", names[letter], size,
                           axes->owner[letter], names[letter], axes->size[letter]);
        }
    }
    return PE_OK;
}
