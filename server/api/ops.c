/* SPDX-License-Identifier: MIT
 *
 * The table of operations. To add one: its file in this folder, and its line here.
 */
#include "api/api.h"

#include <string.h>

extern const struct api_op api_encode, api_apply, api_attention, api_shift, api_positions, api_batch;

static const struct api_op *const ops[] = {
    &api_encode, &api_apply, &api_attention, &api_shift, &api_positions, &api_batch,
};

size_t api_op_count(void) {
    return PE_COUNT(ops);
}

const struct api_op *api_op_at(size_t i) {
    return i < PE_COUNT(ops) ? ops[i] : NULL;
}

const struct api_op *api_op_find(const char *name) {
    for (size_t i = 0; i < PE_COUNT(ops); i++) {
        if (strcmp(ops[i]->name, name) == 0) {
            return ops[i];
        }
    }
    return NULL;
}
