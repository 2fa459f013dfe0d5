/* SPDX-License-Identifier: MIT
 *
 * The reading of attention's inputs, between its files.
 */
#ifndef PE_ATTENTION_INPUT_H
#define PE_ATTENTION_INPUT_H

#include "ops/attention.h"
#include "ops/axes.h"
#include "ops/operand.h"

/* While reading. largest[] bounds the numbers of each stream. */
struct pe_reader {
    struct pe_arena *arena;
    const struct pe_attention_args *args;
    struct pe_attention *a;
    struct pe_axes axes;
    double largest[PE_STREAM_COUNT];
    unsigned outputs;
    bool adds, rotary, relative; /* what the encoding does */
    /* Of queries and of keys, as the encoding takes them; NULL = not given. */
    const struct pe_positions *positions[2];
    struct pe_positions suited[2];
};

/* A posted tensor in the type of the arithmetic. */
int pe_reader_operand(const struct pe_reader *r, struct pe_operand *out, const struct pe_tensor *in,
                      const char *field, struct pe_error *err);
/* attention_posted.c: q, k and v. */
int pe_reader_posted(struct pe_reader *r, struct pe_error *err);
/* attention_place.c: are the posted positions as many as the queries and the keys? */
int pe_reader_positions(struct pe_reader *r, struct pe_error *err);
/* Where queries and keys are, admitted by the encoding, and which fields say so. */
struct pe_sides {
    struct pe_positions positions[2];
    const char *field[2];
    bool given[2];
};
int pe_reader_sides(const struct pe_reader *r, struct pe_sides *sides, struct pe_error *err);
/* The field whose tokens are queries, or keys. */
const char *pe_reader_source(const struct pe_reader *r, int side);
/* The stream, if it is a view of what was posted, gets memory of its own, which is filled during the run. */
int pe_reader_own(struct pe_reader *r, enum pe_stream_name name, struct pe_error *err);
/* attention_relative.c: the term of a relative encoding, once q, k and the scale were read. */
int pe_reader_relate(struct pe_reader *r, struct pe_error *err);
/* attention_turn.c: queries and keys that were read become turned ones. */
int pe_reader_turn(struct pe_reader *r, struct pe_error *err);
/* attention_embed.c: embeddings, encoding and weights. */
int pe_reader_embeddings(struct pe_reader *r, struct pe_error *err);

#endif
