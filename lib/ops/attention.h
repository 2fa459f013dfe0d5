/* SPDX-License-Identifier: MIT
 *
 * Attention from the inside: what attention_input.c reads, attention.c plans and attention_run.c computes.
 */
#ifndef PE_ATTENTION_H
#define PE_ATTENTION_H

#include "core/lanes.h"
#include "kernels/linalg.h"
#include "kernels/target.h"
#include "ops/mask.h"
#include "ops/relative.h"
#include "ops/turns.h"

/* The vectors that are multiplied. With an absolute encoding q is the projection of x + p, with a rotary one
 * it is turned; what x and p alone, or vectors before the turn, contribute are streams of their own, there
 * when content, position or terms are asked for. */
enum pe_stream_name {
    PE_STREAM_Q,
    PE_STREAM_K,
    PE_STREAM_V,
    PE_STREAM_Q_CONTENT,
    PE_STREAM_K_CONTENT,
    PE_STREAM_Q_POSITION,
    PE_STREAM_K_POSITION,
    PE_STREAM_COUNT
};

/* Vectors [B, heads, rows, width] wherever they lie: vector t of head h of sequence b begins at element
 * b*batch + h*head + t*ld of data. `heads` may divide the heads H of the queries. When w is there, data is
 * filled during the run: it is source [B, rows, inner] times the head's columns of w [inner, heads*width]. */
struct pe_stream {
    const unsigned char *data;
    size_t batch, head, ld;
    size_t heads, rows, width;
    const unsigned char *source, *w;
    size_t source_batch, inner;
    unsigned char *projected; /* data, writable */
    /* Turned vectors are filled during the run, too: from w's product, or from source with these strides. */
    const struct pe_turns *turns;
    size_t source_head, source_ld;
    bool unit; /* vectors are brought to length 1, queries times the encoding's `cosine`, in the same way */
};

/* Element (b, h, i, j) at b*batch + h*head + i*row + j; strides of 0 broadcast. */
struct pe_attention_bias {
    const unsigned char *data; /* NULL: none */
    size_t batch, head, row;
    double largest;
};

/* One result: rows of `width` numbers in the type of the arithmetic, and rounded, which is the same memory
 * when the types are the same. out NULL: not asked for. Rows in the type of the arithmetic that are no result
 * are of one block, in its lane. */
struct pe_attention_rows {
    unsigned char *real, *out;
    size_t width;
    bool reused; /* memory for one head of each sequence, which the next head writes over; out is NULL then */
    bool local;  /* of a block, `at` bytes behind the start of its lane; real is NULL then */
    size_t at;
};

/* Is it asked for or needed? */
static inline bool pe_rows_made(const struct pe_attention_rows *rows) {
    return rows->real || rows->local;
}

#define PE_TERMS      4
#define PE_STRIP_ROWS ((size_t)16) /* whose scores are still near when they become weights */

/* Keys first .. of a head of a stream, as they were in that run: their values may be others in the next. */
struct pe_packed {
    enum pe_stream_name stream;
    bool is_filled;
    size_t run, b, head, first;
};

struct pe_attention {
    enum pe_dtype real, dtype; /* of the arithmetic and of the results */
    size_t real_size, size;
    int rank;      /* of the weights: 2 to 4 */
    bool batched;  /* there is an axis B */
    bool split;    /* content has streams of its own: what an encoding was added to, or turned */
    bool projects; /* streams are filled during the run */
    bool ordered;  /* products are to be so, as in pe_gemm */
    size_t batch, heads, key_heads, queries, keys, width, value_width;
    double scale;
    struct pe_stream stream[PE_STREAM_COUNT];
    struct pe_attention_bias bias;
    struct pe_relative *relative; /* the encoding's term; NULL: none */
    struct pe_mask mask;
    struct pe_attention_rows weights, logits, content, position, output, terms[PE_TERMS];
    /* A unit is `unit_heads` heads of one sequence, in blocks of rows; either each of its blocks is a part, or
     * several units are. */
    size_t unit_heads, units, block_rows, blocks, part_units;
    /* Rows of a block that become weights together. Where the weights are more than caches keep, scores are made
     * `scores_at` bytes behind the start of a lane, and only weights go where these are asked for. */
    size_t strip_rows, scores_at;
    bool far;
    bool plain; /* nobody asks for scores without the bias, and nothing else is added */
    /* Keys, packed for products by kernels/scores.h: so many at a time, `packed_at` bytes behind the start of a lane.
     * 0: products are those of linalg.h. What each lane has packed is apart, as lanes that nobody uses stay untouched. */
    size_t packed_keys, packed_at;
    struct pe_packed *packed;
    enum pe_instructions instructions;
    /* A lane has memory for one block: what the encoding needs, then rows that are no results. */
    struct pe_lanes *lanes; /* NULL: no block needs any */
    unsigned char *lane;    /* the first */
    size_t lane_bytes, n_parts;
    const struct pe_stop *stop;
};

/* Reads and checks all inputs; fills everything up to mask. */
int pe_attention_read(struct pe_arena *arena, struct pe_attention *a, const struct pe_attention_args *args,
                      struct pe_error *err);
/* All heads of sequence b, one after the other, where each has keys of its own; scratch as the encoding needs
 * it. */
void pe_attention_sequence(const struct pe_attention *a, size_t b, void *scratch);
/* A pe_work's run. */
void pe_attention_part(const void *attention, size_t part);

/* One block of rows first .. first+n-1 of head h of sequence b, or a strip of one. */
struct pe_attention_block {
    const struct pe_attention *a;
    size_t run, b, h, first, n;
    size_t above;  /* rows of the block above the strip */
    void *scratch; /* its lane */
};
/* The block's place in rows of a result. */
unsigned char *pe_block_place(const struct pe_attention_block *block, const struct pe_attention_rows *rows);
/* attention_scores.c, once it is known what is made: how scores are, and how many bytes of a lane packed keys take, and
 * scores that are not made where the weights go. */
void pe_scores_plan(struct pe_attention *a);
size_t pe_scores_packed_bytes(const struct pe_attention *a);
size_t pe_scores_strip_bytes(const struct pe_attention *a);
/* Scores of a strip into [n, Tk], with the bias and what pe_scores takes for `most`; where they are plain. */
void pe_block_scores(const struct pe_attention_block *block, unsigned char *out, float *most);
/* scale * q . k of two streams into [n, Tk]. */
void pe_block_multiply(const struct pe_attention_block *block, enum pe_stream_name q, enum pe_stream_name k,
                       unsigned char *out);
/* Vector `row` of the stream's head for the block's query head, and those after it. */
struct pe_const_matrix pe_block_rows(const struct pe_attention_block *block, enum pe_stream_name name,
                                     size_t row);
/* The row of the posted bias for query i, or NULL. */
const unsigned char *pe_block_bias(const struct pe_attention_block *block, size_t i);
/* attention_relative.c: adds the encoding's term to scores [n, Tk]; also puts it into position, if asked for.
 */
void pe_block_relate(const struct pe_attention_block *block, unsigned char *scores);
/* Adds what the encoding adds to the output of the block. */
void pe_block_mix(const struct pe_attention_block *block, const unsigned char *weights);
/* What the cosines of head h are multiplied by. */
double pe_block_cosine(const struct pe_attention *a, size_t h);
/* terms.c: content, from scores = scale * q . k [n, Tk]. */
void pe_block_content(const struct pe_attention_block *block, const unsigned char *scores);
/* logits, position and terms, from scores to which the encoding has added its term. */
void pe_block_explain(const struct pe_attention_block *block, const unsigned char *scores);

#endif
