/* SPDX-License-Identifier: MIT
 *
 * A relative encoding at the positions of one request: what it adds to rows of logits, for `bias` and for
 * attention. Biases are made on the fly, tile by tile, and never stored as [Tq, Tk]; where they depend on the
 * distance alone, and the positions are whole numbers in steps, each tile makes one for every distance in it,
 * and a row is a slice of those.
 */
#ifndef PE_RELATIVE_H
#define PE_RELATIVE_H

#include "encodings/encoding.h"

struct pe_relative {
    const struct pe_encoding *row;
    const struct pe_plan_view *view;
    struct pe_relation relation;
    enum pe_dtype real;
    size_t query_batch, key_batch; /* positions from one sequence to the next; 0 = shared */
    const double *of_heads;        /* [n_slots, n_of_head], or NULL */
    size_t n_of_head;
    const void *shared; /* what its blocks share; NULL: nothing */
    size_t scratch_bytes;
    bool stepped;   /* biases are of distances, and these go in steps */
    double step;    /* from key to key */
    size_t at_once; /* biases made between two questions of `stop` */
    double made_ns; /* to make one, roughly */
    const struct pe_stop *stop;
    double reach;     /* no |bias| or |term| is larger, but -infinity */
    double mix_reach; /* no number added to the output is */
};

/* relation has heads, widths, largest numbers and scale; positions and distance are filled in from the
 * two, which were admitted and fit; batch: sequences. ARENA memory, of lists of positions at most. */
int pe_relative_open(struct pe_arena *arena, struct pe_relative *relative, const struct pe_plan *plan,
                     const struct pe_positions positions[2], struct pe_error *err);
/* What takes memory and time before the first row: after the result was found to fit. */
int pe_relative_prepare(struct pe_arena *arena, struct pe_relative *relative, struct pe_error *err);

/* Some queries, at most PE_LOGITS_ROWS, of sequence b with head h (of those asked for), and some keys. */
struct pe_relative_tile {
    size_t b, h, first_query, queries, first_key, keys;
};
/* Numbers of type real, from row to row `ld` of them. */
struct pe_relative_out {
    void *data;
    size_t ld;
    bool add; /* to what is there */
};
/* Biases of the tile. When somebody asks to stop, out holds any numbers. */
void pe_relative_run(const struct pe_relative *relative, const struct pe_relative_tile *tile,
                     const struct pe_relative_out *out);
/* Roughly what a bias, or a term, takes to be made and added, where tiles have at most so many keys. */
double pe_relative_cost_ns(const struct pe_relative *relative, size_t tile_keys);

/* The model has so many heads, of which `index`, a tensor [n] of whole numbers, asks for some; NULL: for all.
 * PE_ERR_SHAPE or PE_ERR_RANGE at `heads` or `head_index`. */
int pe_relative_heads_read(struct pe_arena *arena, struct pe_relation *relation, size_t heads,
                           const struct pe_tensor *index, struct pe_error *err);

#endif
