/* SPDX-License-Identifier: MIT
 *
 * Tensors for benchmarks: float32 from -1 to 1, the same in every run. Who cannot have them gives up.
 */
#ifndef TENSORS_H
#define TENSORS_H

#include "posenc.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline void give_up(const struct pe_error *err) {
    fprintf(stderr, "%s: %s\n", err->path, err->text);
    exit(1);
}

static inline struct pe_tensor *tensor_make(struct pe_arena *arena, int rank, const size_t *dim) {
    struct pe_error err = {0};
    struct pe_tensor *out = pe_arena_array(arena, 1, sizeof *out, &err);
    uint32_t state = 1;
    if (!out || pe_tensor_alloc(arena, out, PE_DTYPE_F32, rank, dim, &err)) {
        give_up(&err);
    }
    for (size_t i = 0; i < pe_tensor_count(out); i++) {
        state = state * 1664525U + 1013904223U;
        ((float *)out->data)[i] = (float)(state >> 8) * 0x1p-23F - 1;
    }
    return out;
}

#endif
