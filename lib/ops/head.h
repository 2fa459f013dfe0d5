/* SPDX-License-Identifier: MIT
 *
 * head from the inside: head.c opens it, head_weights.c writes its weights down, head_run.c tries them.
 */
#ifndef PE_HEAD_H
#define PE_HEAD_H

#include "core/last.h"
#include "encodings/encoding.h"
#include "ops/turns.h"

#define PE_HEAD_TRIES 100 /* random heads without an encoding */

/* The rows of a weight that are not 0 in one column: a head's column looks at one column of the encoding, or at
 * the two of a pair. */
struct pe_head_taps {
    size_t n, from[2];
};

struct pe_head_work {
    const struct pe_plan *plan;
    const struct pe_encoding *row;
    const struct pe_plan_view *view;
    size_t n, width, inner;           /* tokens; of queries and keys; of what is projected */
    double step;                      /* from token to token */
    const double *positions;          /* [n] */
    const double *x;                  /* [n, inner], or NULL: a constant 1 */
    const struct pe_turns *turns;     /* of queries and of keys, or NULL */
    double *w_q, *w_k;                /* [inner, width] */
    struct pe_head_taps *q_of, *k_of; /* [width]; NULL: all rows of the weights count */
    double *q, *k, *scores;           /* [n, width], [n, n] */
    bool first, causal;
    int64_t offset; /* key - query, in tokens */
    double scale;
    size_t part_rows; /* of the scores */
    struct pe_last *last;
    struct pe_head *out;
    const struct pe_stop *stop;
};

/* head_weights.c: w_q and w_k of an encoding that has maps, what they are applied to, and queries and keys. */
int pe_head_weights_open(struct pe_arena *arena, struct pe_head_work *head, struct pe_error *err);
/* head_run.c: queries and keys from the weights, turned where the encoding turns. */
void pe_head_project(const struct pe_head_work *head);
/* Parts of a pe_work: scores, and after the last of them the weights. */
void pe_head_part(const void *head, size_t part);
/* The whole work without an encoding: random heads on equal tokens; the weights of the best one stay. */
void pe_head_tries(const void *head, size_t part);

#endif
