/* SPDX-License-Identifier: MIT
 *
 * Which keys a query sees, ready for the softmax of one row.
 */
#ifndef PE_MASK_H
#define PE_MASK_H

#include "kernels/softmax.h"

/* What attention knows of its shapes: [B, .., Tq, Tk]; batch 0 when there is no such axis. */
struct pe_mask_shape {
    size_t batch, queries, keys;
    enum pe_dtype real;
};

struct pe_mask {
    struct pe_mask_shape shape;
    bool causal, windowed;
    int64_t back, ahead;
    const size_t *lengths;                       /* [B] or NULL */
    const size_t *document_first, *document_end; /* [Tk], of the document that token i is in, or NULL */
    const unsigned char *hidden;                 /* 0 or -infinity, real, or NULL */
    size_t hidden_batch, hidden_row;             /* strides in bytes, 0 where it is the same for all */
};

/* mask NULL: every key is seen. Errors are at `mask.keep` and so on. */
int pe_mask_open(struct pe_arena *arena, struct pe_mask *out, const struct pe_attention_mask *mask,
                 const struct pe_mask_shape *shape, struct pe_error *err);
/* Sets first, end and hidden of the row of query i of sequence b. */
void pe_mask_row(const struct pe_mask *mask, size_t b, size_t i, struct pe_softmax *row);

#endif
