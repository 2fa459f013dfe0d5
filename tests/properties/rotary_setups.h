/* SPDX-License-Identifier: MIT
 *
 * Rotary encodings to hold properties against: every scaling, section and axis, each in every layout, with
 * heads of width ROTARY_WIDTH. That no choice of a rotary row is missing is tested (every_choice_is_set_up).
 */
#ifndef ROTARY_SETUPS_H
#define ROTARY_SETUPS_H

#include "encodings/encoding.h"
#include "posenc.h"

#define ROTARY_WIDTH 16

struct rotary_setup {
    const char *type, *params; /* "scaling.rope_type=linear scaling.factor=4" */
    bool starts_turned;        /* position 0 is not coordinate 0 */
    bool grows;                /* queries grow with the position, and keys shrink */
};
extern const struct rotary_setup rotary_setups[];
extern const int rotary_setup_count;

/* Each setup in each layout: variant i is setup i/2. */
#define ROTARY_LAYOUTS 2
extern const char *const rotary_layouts[ROTARY_LAYOUTS];
struct rotary {
    const struct rotary_setup *setup;
    struct pe_arena *arena;
    struct pe_plan *plan;
    double gain; /* the attention factor */
    int axes;
    struct pe_pairs pairs;
};
void rotary_open(struct rotary *r, int variant);
void rotary_close(struct rotary *r);

/* n numbers between -2 and 2 that look random, the same for the same seed. */
double *rotary_numbers(struct rotary *r, size_t n, unsigned seed);
/* Positions whose every coordinate is first + i*step. */
struct pe_positions rotary_positions(struct rotary *r, size_t n, double first, double step);
/* x of these axes, turned; float64. */
double *rotary_apply(struct rotary *r, const double *x, const struct pe_apply_args *args, int rank,
                     const size_t *dim);

#endif
