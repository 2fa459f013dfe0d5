/* SPDX-License-Identifier: MIT
 *
 * Tables that identify has to name, by chance, and whether it does.
 */
#ifndef IDENTIFY_MADE_H
#define IDENTIFY_MADE_H

#include "posenc_identify.h"

#define IDENTIFY_MADE_MOST 32768

enum identify_kind { ABSOLUTE, TRIG, TURNED };

struct identify_made {
    enum identify_kind kind;
    size_t rows, width, heads; /* width: of vectors; of the head */
    double p[400];
    bool placed;      /* positions are posted */
    bool heads_first; /* turned vectors are posted [H, T, d], not [T, H, d] */
    /* vectors */
    bool halves, cos_first, minus_one, zero_column;
    double base, scale, offset, factor;
    double padding; /* NAN: none */
    int exponents;  /* a row of `mistakes`, 0: right */
    /* rotary */
    size_t rotary, copies; /* copies: 1 half, 2 as halves, 3 as interleaved */
    bool clockwise;
    double divisor[128]; /* of the frequency of each pair, and what all are multiplied by */
    int stretch;         /* a row of `stretches`, 0: none */
    enum pe_dtype dtype;
    double noise;
    double clean[IDENTIFY_MADE_MOST],
        other[IDENTIFY_MADE_MOST]; /* [rows, items]; cos and sin; after and before */
    size_t items;
};
extern struct identify_made made;

struct identify_ground {
    struct pe_arena *arena;
    struct pe_error err;
    struct pe_identify_result result;
};

/* Neighbouring seeds, streams that have nothing in common. */
void identify_begin(uint64_t seed);
double identify_uniform(void);
double identify_normal(void);
/* Kinds take turns with k. */
void identify_some_table(size_t k);
/* What was made is posted; the reply is in the ground. */
void identify_ask(struct identify_ground *g);
bool identify_is_right(struct identify_ground *g);
/* The largest distance of the candidate's own table from the clean one. */
double identify_distance(struct identify_ground *g, const struct pe_identify_candidate *candidate);
const char *identify_described(void);
/* A parameter of a spec, as a number; choices by their value. */
double identify_number(const struct pe_spec *spec, const char *name);

#endif
