/* SPDX-License-Identifier: MIT
 *
 * A relative encoding at the positions of one request: what it adds to rows of logits, for `bias` and for
 * attention. A bias is made on the fly, row by row, and never stored as [Tq, Tk]; where it depends on the
 * distance alone, and the positions are whole numbers in steps, it is made once for each distance, and a row
 * is a slice of that.
 */
#ifndef PE_RELATIVE_H
#define PE_RELATIVE_H

#include "encodings/encoding.h"

/* The heads of the model, and which of them are asked for. */
struct pe_relative_heads {
    size_t model, n;
    const size_t *index; /* [n]; NULL: 0..n-1 */
};

struct pe_relative {
    const struct pe_encoding *row;
    const struct pe_plan_view *view;
    struct pe_relation relation;
    struct pe_relative_heads heads;
    enum pe_dtype real;
    size_t query_batch, key_batch; /* positions from one sequence to the next; 0 = shared */
    const unsigned char *slices;   /* [heads.n, Tq + Tk - 1] of type real; NULL: none */
    const unsigned char *key_vectors;
    size_t key_width, scratch_bytes;
    bool sliced;    /* there are slices, once prepared */
    size_t at_once; /* biases made between two questions of `stop` */
    double cost_ns; /* of one number added, roughly */
    const struct pe_stop *stop;
    double reach;     /* no |bias| or |term| is larger, but -infinity */
    double mix_reach; /* no number added to the output is */
};

/* relation has heads' model, widths, largest numbers and scale; positions and distance are filled in from the
 * two, which were admitted and fit; batch: sequences. ARENA memory, of lists of positions at most. */
int pe_relative_open(struct pe_arena *arena, struct pe_relative *relative, const struct pe_plan *plan,
                     const struct pe_positions positions[2], struct pe_error *err);
/* What takes memory and time before the first row: after the result was found to fit. */
int pe_relative_prepare(struct pe_arena *arena, struct pe_relative *relative, struct pe_error *err);

/* Query i of sequence b with head h (of those asked for), and keys first .. first+n-1. */
struct pe_relative_place {
    size_t b, h, i, first, n;
};
/* Their biases into out [n], of type real. */
void pe_relative_read(const struct pe_relative *relative, const struct pe_relative_place *place, void *out);
/* The same, added to out [n]. */
void pe_relative_add(const struct pe_relative *relative, const struct pe_relative_place *place, void *out);

/* PE_ERR_SHAPE or PE_ERR_RANGE at `heads` or `head_index`. index: a tensor [n] of whole numbers, or NULL. */
int pe_relative_heads_read(struct pe_arena *arena, struct pe_relative_heads *heads, size_t model,
                           const struct pe_tensor *index, struct pe_error *err);

#endif
