/* SPDX-License-Identifier: MIT
 *
 * The table of operations. To add one: its file in this folder, and its line here.
 */
#include "api/api.h"

#include <string.h>

/* One line an operation; the list stands here once, for its declarations and its table. */
#define OPS(ROW)                                                                                             \
    ROW(api_encode)                                                                                          \
    ROW(api_apply)                                                                                           \
    ROW(api_bias)                                                                                            \
    ROW(api_attention)                                                                                       \
    ROW(api_shift)                                                                                           \
    ROW(api_block)                                                                                           \
    ROW(api_similarity)                                                                                      \
    ROW(api_properties)                                                                                      \
    ROW(api_head)                                                                                            \
    ROW(api_positions)                                                                                       \
    ROW(api_convert)                                                                                         \
    ROW(api_check)                                                                                           \
    ROW(api_identify)                                                                                        \
    ROW(api_batch)

#define DECLARE(name) extern const struct api_op name;
OPS(DECLARE)

#define ENTRY(name) &name,
static const struct api_op *const ops[] = {OPS(ENTRY)};

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
