/* SPDX-License-Identifier: MIT
 *
 * Rows of sines and cosines in float32, many at a time: the same bits as pe_phase_row, some hundred times
 * faster where rows follow each other in equal steps.
 */
#ifndef PE_WAVE_H
#define PE_WAVE_H

#include "core/phase.h"
#include "kernels/target.h"

#define PE_WAVE_LANES 8 /* pairs in a group */

/* The upper 128 bits of the fractions of a group's frequencies. */
struct pe_wave_turns {
    uint64_t high[PE_WAVE_LANES], low[PE_WAVE_LANES];
};

/* By which four angles rows move from the middle of eight: 1/2, 3/2, 5/2 and 7/2 steps, or from the middle of 64 to
 * those of eight: 4, 12, 20 and 28. Once for each of a group's columns, in one of two orders: sines before cosines, or
 * in pairs. Where a column holds cosines `sin` has the opposite sign. */
#define PE_WAVE_TURNINGS 4
#define PE_WAVE_COLUMNS  (2 * PE_WAVE_LANES)
struct pe_wave_step {
    _Alignas(64) double cos[PE_WAVE_TURNINGS][PE_WAVE_COLUMNS];
    double sin[PE_WAVE_TURNINGS][PE_WAVE_COLUMNS];
    double twice_cos[PE_WAVE_COLUMNS]; /* of a whole step: both neighbours of a row sum up to so much of it */
};

/* The frequencies of an encoding, prepared once. */
struct pe_wave {
    const struct pe_turn *exact; /* [n] */
    size_t n;
    int64_t step;                       /* between rows, that `steps` is for */
    bool pairs;                         /* their order */
    struct pe_wave_turns *turns;        /* [groups] */
    struct pe_wave_step *steps, *leaps; /* [groups] of either kind; or NULL */
    enum pe_instructions instructions;
};

/* Memory for the tables of n pairs, 64-byte aligned. */
size_t pe_wave_bytes(size_t n);
/* Fills them. Every turn must be below 1. step: in which whole steps of x rows will mostly follow; 0: none. pairs:
 * whether sines and cosines will mostly be neighbours. */
void pe_wave_open(struct pe_wave *wave, void *memory, const struct pe_turn *turns, size_t n, int64_t step,
                  bool pairs);

/* A rough cost of a value of single rows; of rows in equal steps it is a third. */
double pe_wave_value_ns(const struct pe_wave *wave);

/* Where the values of a row go: those of pair i are i*step behind `sin` and `cos`, step 1 or 2, and where it is
 * 2 they are neighbours. The last pair may lack one: n_sin and n_cos are n or n - 1. */
struct pe_wave_out {
    float *sin, *cos;
    size_t step, n_sin, n_cos;
    size_t stride; /* numbers from row to row */
    bool far;      /* nobody will read them soon: keep them out of the caches */
};

/* Some of the frequencies: n from `first` on, a multiple of PE_WAVE_LANES. */
struct pe_wave pe_wave_part(const struct pe_wave *wave, size_t first, size_t n);

/* One row, at any place. */
void pe_wave_row(const struct pe_wave *wave, const struct pe_place *place, const struct pe_wave_out *out);
/* n rows at x, x + step, ...; all are whole numbers of magnitude below 2^53. */
void pe_wave_run(const struct pe_wave *wave, int64_t x, int64_t step, size_t n,
                 const struct pe_wave_out *out);

#endif
