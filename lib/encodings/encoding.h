/* SPDX-License-Identifier: MIT
 *
 * The encoding row: what one file in this folder provides. Facts, parameter rows, and hooks; a NULL hook
 * means "not supported", and everything else (operations, catalogue, messages, property tests) follows from
 * the row. To add an encoding: one file with one const row, and one line in registry.c.
 */
#ifndef PE_ENCODING_H
#define PE_ENCODING_H

#include "posenc_fields.h"

/* A plan as the hooks see it: immutable once `plan` has returned. */
struct pe_plan_view {
    const void *params; /* the resolved parameters (the plan's own copy) */
    void *data;         /* plan_bytes(params) of memory, 64-byte aligned, cleared before `plan` */
    size_t width;       /* D, the width of a vector */
    bool far;           /* what is made now is so large that caches cannot keep it; never in the plan's own */
};

/* Rotary encodings turn pairs of columns: pair i is column first + i*step and the one `apart` behind it. */
struct pe_pairs {
    size_t n, first, step, apart;
    double factor; /* of all cosines and sines, the attention factor; growth with the position comes on top */
};

/* Where a query or key is that turns: its coordinates, and whether it is a key, where these turn differently.
 */
struct pe_spot {
    const double *position; /* [axes] */
    int axes;
    bool keys;
};

/* Pairs first .. first+n-1 go to elements 0, step, 2*step ...; cos or sin may be NULL. */
struct pe_angles {
    size_t first, n;
    void *cos, *sin;
    size_t step;
};

/* At several places: places go to rows, `stride` numbers apart, which have room for whole groups of eight. */
#define PE_ANGLES_GROUP 8
struct pe_angles_rows {
    size_t first, n, stride; /* first: a multiple of a group */
    double *cos, *sin;
};

/* One query and the keys it looks at, with one head of so many. */
struct pe_pair_row {
    size_t head, heads;
    double query;       /* position */
    const double *keys; /* [n] positions */
    size_t n;
    const double *of_head; /* what `head_numbers` made; NULL: nothing */
};

/* What a relative encoding is asked in one request. */
struct pe_relation {
    size_t heads;       /* of the model */
    size_t n_slots;     /* heads asked for */
    const size_t *slot; /* [n_slots] which they are; NULL: all, in order */
    size_t width;       /* of queries and keys; 0 where there are none */
    size_t value_width; /* of values; 0 where no output is asked for */
    size_t queries, keys;
    const double *query_positions, *key_positions; /* [Tq] and [Tk]; of several sequences the first's */
    size_t n_query_positions, n_key_positions;     /* of all sequences, one after the other */
    bool whole;                                    /* they are whole numbers */
    double least, most;                            /* key - query, in any sequence */
    double distance;                               /* no |key - query| is larger */
    double furthest_key;                           /* no |position| of a key is larger */
    double largest_query, largest_key;             /* no |q| or |k| is larger */
    double scale;                                  /* of q.k */
    bool ordered;                                  /* products are to be so, as in pe_gemm */
};

static inline size_t pe_relation_head(const struct pe_relation *relation, size_t slot) {
    return relation->slot ? relation->slot[slot] : slot;
}

/* The keys that a query sees, as in kernels/softmax.h. */
struct pe_visible {
    size_t first, end;
    const void *hidden;
};

#define PE_LOGITS_ROWS     64   /* queries in a block of logits, at most */
#define PE_PRODUCTS_PER_NS 40.0 /* multiplications of large matrices, on one core of a common machine */

/* Some queries of one head against all keys. All numbers but positions are of type `real`. */
struct pe_logits {
    const struct pe_relation *relation;
    size_t head, slot; /* of the model, and its place among those asked for */
    size_t n;          /* queries */
    enum pe_dtype real;
    bool ordered;                                  /* products are to be so, as in pe_gemm */
    const double *query_positions, *key_positions; /* [n] and [Tk], of the relation's lists */
    const void *q, *k;                             /* [n, d] and [Tk, d] */
    size_t q_ld, k_ld;                             /* numbers from row to row */
    const void *content;                           /* [n, Tk], scale * q.k; may be out itself */
    const struct pe_visible *visible;              /* [n] */
    const void *shared;                            /* what `share` made; NULL without the hook */
    void *out;                                     /* [n, Tk], or [n, dv] for `mix` */
    void *scratch;                                 /* scratch_bytes, 64-byte aligned, not cleared */
    const struct pe_stop *stop;                    /* ask it between rows and tiles */
};

struct pe_encoding {
    struct pe_encoding_info info;
    /* Sets fields that others say in words of their own (a model's configuration). May be called again, and
     * then changes nothing. NULL: there are none. */
    int (*adopt)(void *params, struct pe_error *err);
    /* Cross-field rules; single fields were checked by their rows. May be NULL. */
    int (*check)(const void *params, struct pe_error *err);
    /* The width of a vector. NULL: there is none. */
    size_t (*width)(const void *params);
    /* Bytes of precomputed data; NULL: none. Bounded by the field limits, so no overflow. */
    size_t (*plan_bytes)(const void *params);
    /* Gives the plan's own copy of the parameters the values that follow from others, and moves into data
     * what they point to, so that the plan outlives its request. NULL: nothing to do. */
    void (*resolve)(void *params, void *data);
    /* Precomputes into view->data. NULL: nothing to do. */
    int (*plan)(struct pe_plan_view *view, struct pe_error *err);
    /* Are the vectors those of the formula, or a replay of less exact arithmetic, for which what follows from
     * the formula (`shift`) holds only nearly? NULL: they are. */
    bool (*exact)(const struct pe_plan_view *view);
    /* Are these positions allowed (finite and |p| <= 2^53 already hold)? The path is relative to the
     * positions: "" or "[3]". NULL: any are. */
    int (*admit)(const struct pe_plan_view *view, const struct pe_positions *positions, struct pe_error *err);
    /* Is every |value| at these positions below `limit`, so that it fits `dtype`? PE_ERR_RANGE at the first
     * position where one is not (pe_positions_overflow), or may not be. Of rotary encodings, whose keys may
     * shrink as queries grow, also every 1/|value|, but for the factor of all. NULL: no value is over 1. */
    int (*fits)(const struct pe_plan_view *view, const struct pe_positions *positions, enum pe_dtype dtype,
                double limit, struct pe_error *err);
    /* The least and the largest position that it takes. NULL: any from -2^53 to 2^53. */
    void (*bounds)(const struct pe_plan_view *view, double *min, double *max);
    /* Is the vector of this position one apart (a row of zeros for padding), which no map takes others to?
     * NULL: none is. */
    bool (*apart)(const struct pe_plan_view *view, double position);
    /* positions [n] to vectors out [n, D], each value rounded once. Cannot fail. */
    void (*encode)(const struct pe_plan_view *view, const double *positions, size_t n, enum pe_dtype dtype,
                   void *out);
    /* The same for positions [n, axes] with several coordinates, of which `admit` saw how many. With the hook
     * `axes`. NULL: vectors are of one coordinate. */
    void (*encode_axes)(const struct pe_plan_view *view, const double *positions, size_t n,
                        enum pe_dtype dtype, void *out);
    /* Are its vectors not to be shifted, as their positions have several coordinates, and the map is that of a
     * distance along one? */
    bool unshifted;
    /* May these vectors be shifted? The path is a parameter's. NULL: they may. */
    int (*admit_shift)(const struct pe_plan_view *view, struct pe_error *err);
    /* The map PE(p) -> PE(p + distance) of pair i as M [2, 2] row-major acting on the pair's two values in
     * column order; `columns` receives the two columns of the pair. Exact for any real distance, infinite
     * where it does not fit. NULL: the operation fits the best linear map instead. */
    size_t (*shift_pairs)(const struct pe_plan_view *view);
    void (*shift)(const struct pe_plan_view *view, double distance, size_t pair, double m[4],
                  size_t columns[2]);
    /* ---- Positions with several coordinates ---- */
    /* How many. Those that turn take positions with one coordinate, too. NULL: 1. */
    int (*axes)(const struct pe_plan_view *view);
    /* Of what size the grid is along an axis, where the encoding was told; 0: any. NULL: any. */
    size_t (*grid_size)(const struct pe_plan_view *view, int axis);
    /* x*scale + the vectors of rows that follow each other, float32, without making them first: so many of the n
     * rows as it takes together, from the first on; 0: encode makes them. out may be x. NULL: it takes none. */
    size_t (*encode_add)(const struct pe_plan_view *view, const double *positions, size_t n, const float *x,
                         double scale, float *out);
    /* Tokens in front of a grid, whose coordinates are all -1. NULL: none. */
    size_t (*lead)(const struct pe_plan_view *view);
    /* ---- Rotary encodings; their encode is the points (cos, sin) of the pairs ---- */
    struct pe_pairs (*pairs)(const struct pe_plan_view *view);
    /* cos and sin of the angles of some pairs at one position, with the attention factor. Cannot fail. */
    void (*angles)(const struct pe_plan_view *view, const struct pe_spot *spot, enum pe_dtype dtype,
                   const struct pe_angles *out);
    /* The same in float64, at so many places, whose coordinates follow each other in `spots`. */
    void (*angles_rows)(const struct pe_plan_view *view, const struct pe_spot *spots, size_t n,
                        const struct pe_angles_rows *out);
    /* The angles per unit of position [pairs], or [shift_pairs] of an encoding that does not turn. */
    void (*frequencies)(const struct pe_plan_view *view, enum pe_dtype dtype, void *out);
    /* ---- Relative encodings: a term of the logits, which has `bias` or `term`. Their width, if they have
     * one, is that of a head. ---- */
    /* Do its tables serve so many heads, and vectors of these widths? Of the relation, heads and widths are
     * known. The path is a parameter's. NULL: they serve any. */
    int (*suits)(const struct pe_plan_view *view, const struct pe_relation *relation, struct pe_error *err);
    /* Does it serve these positions, of which each alone was admitted? The path is the operation's. NULL: it
     * does. */
    int (*admit_relation)(const struct pe_plan_view *view, const struct pe_relation *relation,
                          struct pe_error *err);
    /* The least and the largest key - query that `term` takes, where a query sees the key; of other pairs
     * outside of them it adds something finite. NULL: any. */
    void (*distances)(const struct pe_plan_view *view, double *least, double *most);
    /* Numbers of a head of so many that `bias` needs, made once for each head asked for: first .. first+n-1
     * of them. NULL: none. */
    void (*head_numbers)(const struct pe_plan_view *view, size_t head, size_t heads, size_t first, size_t n,
                         double *out);
    /* How many there are; 0: none for this request. NULL: one. */
    size_t (*n_head_numbers)(const struct pe_plan_view *view, const struct pe_relation *relation);
    /* The biases of one query and head, in float64: out [n]. Never NaN; -infinity hides. */
    void (*bias)(const struct pe_plan_view *view, const struct pe_pair_row *row, double *out);
    /* Is it a function of key - query alone, rounded to a double? NULL: it is not. */
    bool (*stationary)(const struct pe_plan_view *view);
    /* The positions 0..n-1 that it is made for, of queries and of keys. 0 or NULL: there are no such. */
    size_t (*tokens)(const struct pe_plan_view *view, bool keys);
    /* What depends on the query: adds it to out, each element's as one number of type `real`. Cannot fail. */
    void (*term)(const struct pe_plan_view *view, const struct pe_logits *block);
    /* What the blocks of a request share, made once before the first of them, for the heads asked for. Bytes
     * as of scratch_bytes; the memory is 64-byte aligned and not cleared. Stopped, it may hold anything. NULL:
     * they share nothing. */
    size_t (*shared_bytes)(const struct pe_plan_view *view, const struct pe_relation *relation,
                           enum pe_dtype real);
    void (*share)(const struct pe_plan_view *view, const struct pe_relation *relation, enum pe_dtype real,
                  void *shared, const struct pe_stop *stop);
    /* What is added to the output: sum over j of weights [n, Tk] times vectors of the pair. NULL: nothing. */
    void (*mix)(const struct pe_plan_view *view, const struct pe_logits *block, const void *weights);
    /* Memory of `term` and `mix` for one block, by sizes alone; SIZE_MAX where it does not fit. NULL: none.
     */
    size_t (*scratch_bytes)(const struct pe_plan_view *view, const struct pe_relation *relation,
                            enum pe_dtype real);
    /* A rough cost of what `term` and `mix` do for one pair, on one core, in float32; a product of vectors of
     * width d takes d / PE_PRODUCTS_PER_NS. NULL: such a product's. */
    double (*pair_cost_ns)(const struct pe_plan_view *view, const struct pe_relation *relation);
    /* No |bias| or |term| is larger, but -infinity. With the hooks `bias` and `term`. */
    double (*reach)(const struct pe_plan_view *view, const struct pe_relation *relation);
    /* No |number| that `mix` adds for weights whose sum is 1 is larger. With the hook `mix`. */
    double (*mix_reach)(const struct pe_plan_view *view);
    /* Cosine attention: queries and keys of this head are brought to length 1, and their product is times
     * this. NULL: products of the vectors themselves. */
    double (*cosine)(const struct pe_plan_view *view, size_t head);
    /* ---- Of several families ---- */
    /* The scale of the softmax, where it is not 1/sqrt(d), the usual one. NULL: it is. */
    double (*scale)(const struct pe_plan_view *view, double usual);
    /* At most PE_MAX_FACTS; returns their number. NULL: none. */
    size_t (*facts)(const struct pe_plan_view *view, struct pe_fact *facts);
    /* The radians by which the fastest of its sines turns in a unit of position, where the frequencies are a
     * ladder for whole numbers. NULL: they are not. */
    double (*fastest)(const struct pe_plan_view *view);
    /* A rough cost of one vector of this type, or of one bias, on one core. NULL: by its width; of a bias, that of a
     * few operations. */
    double (*row_cost_ns)(const struct pe_plan_view *view, enum pe_dtype dtype);
};

/* registry.c */
const struct pe_encoding *pe_encoding_row(const struct pe_encoding_info *info);
/* core/plan.c */
const struct pe_plan_view *pe_plan_view(const struct pe_plan *plan);
const struct pe_encoding *pe_plan_row(const struct pe_plan *plan);

#endif
