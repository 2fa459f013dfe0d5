/* SPDX-License-Identifier: MIT
 *
 * Attention with a term that an encoding adds pair by pair, against the definition of the term, which the
 * test writes down for one pair. Everything else is computed here in plain C.
 */
#ifndef RELATIVE_RUN_H
#define RELATIVE_RUN_H

#include "posenc.h"

/* Where queries and keys are. All but the last are whole numbers. */
enum relative_places {
    PLACES_DEFAULT,   /* aligned to the right */
    PLACES_PADDED,    /* [B, T] padded on the left with as many zeros as differ by sequence */
    PLACES_SHUFFLED,  /* in no order */
    PLACES_REPEATED,  /* each three times */
    PLACES_STEPS,     /* every third */
    PLACES_FALLING,   /* backwards */
    PLACES_DOCUMENTS, /* starting over every 40 tokens */
    PLACES_FAR,       /* around 2^52 */
    PLACES_REAL,      /* with fractions, others in each sequence */
    PLACES_COUNT
};

struct relative_sizes {
    size_t b, h, hk, tq, tk, d, dv;
};

struct relative_pair {
    size_t head;
    double distance; /* key - query */
    double scale;
    const double *q, *k; /* [d] */
    size_t d;
};

/* The term of a pair, and what is added to the value of a key (NULL: nothing): out [dv]. */
struct relative_definition {
    double (*term)(const struct relative_pair *pair, const void *context);
    void (*value)(const struct relative_pair *pair, const void *context, double *out);
    const void *context;
    double shrink; /* the encoding's scale is so many times the usual one; 0: once */
};

/* Numbers in -1 .. 1 without structure, the same in every run. */
double relative_noise(void);
struct pe_tensor *relative_tensor(struct pe_arena *arena, enum pe_dtype dtype, int rank, const size_t *dim);
/* The encoding "type" with settings NAME, VALUE ... NULL; tensors are set by the caller. */
void relative_spec(struct pe_arena *arena, struct pe_spec *spec, const char *type,
                   const char *const *settings);
/* Fails the test where any of the five results is farther from the definition than tolerance, in units of
 * the largest. */
void relative_compare(struct pe_arena *arena, const struct pe_spec *spec, const struct relative_sizes *sizes,
                      enum relative_places places, enum pe_dtype dtype,
                      const struct relative_definition *definition, double tolerance);

#endif
