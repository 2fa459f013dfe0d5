/* SPDX-License-Identifier: MIT
 *
 * libposenc: which encoding made a table. A header of its own, which includes posenc.h.
 */
#ifndef POSENC_IDENTIFY_H
#define POSENC_IDENTIFY_H

#include "posenc.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pe_identify_args {
    size_t size;
    /* One of: vectors [T, D]; rotary cosines and sines [T, n], half or full; vectors before and after they
     * were turned, [T, d], [T, H, d] or [H, T, d], whichever fits. Axes of 1 before the last may be more, as in [T, 1, D]. */
    const struct pe_tensor *tensor, *cos, *sin, *before, *after;
    const struct pe_positions *positions; /* [T]; of an image [T, 2], all cells of a grid; default 0..T-1 */
    /* Hints: a type and a layout, which are believed; a base that is tried beside the usual ones. NULL or 0: none. */
    const char *type, *layout;
    double base;
};

/* What the table may be. Numbers are compared as they were posted. */
struct pe_identify_candidate {
    struct pe_spec encoding; /* as it is said; a plan of it says the rest */
    const char *name;        /* in short: "vaswani, float32 angles" */
    const char *mistake;     /* what is unusual about it, in a sentence; NULL: nothing */
    double factor, shift;    /* beside the encoding: of every number, and added to positions */
    double max_abs, rms;     /* by how much the table misses it, mistakes included */
    bool parts;              /* from the encoding as it should be, exact and without the mistakes */
    size_t part_index;       /* the first row that does */
    double part_position;
    bool keys; /* the turn of a key, where that differs from a query's (xPos) */
};
#define PE_IDENTIFY_MAX 5
struct pe_identify_result {
    size_t n;
    struct pe_identify_candidate candidates[PE_IDENTIFY_MAX]; /* the best first */
    const char *verdict;                                      /* a sentence */
    const char
        *axes; /* as which `before` and `after` of three axes were read, "thd" or "htd"; NULL: not there */
};

/* identify: which encoding made a table. Sinusoids in all variants, with usual mistakes, also of an image's grid;
 * features of NeRF; rotary tables, and turned vectors, with linear, YaRN, Llama 3 and proportional scalings, or as
 * LongRoPE by the divisor of each pair, or with the growth of xPos; naive forms. The simplest encoding that explains the table to its noise comes
 * first. Everything is done here, and asks err->stop; a sample of at most 256 rows is searched, and of large tables a
 * part is compared. PE_ERR_MISSING, PE_ERR_CONFLICT and PE_ERR_SHAPE at the tensors. Strings are ARENA. */
PE_API int pe_identify_open(struct pe_arena *arena, struct pe_identify_result *result,
                            const struct pe_identify_args *args, struct pe_error *err) PE_CHECKED;

#ifdef __cplusplus
}
#endif

#endif
