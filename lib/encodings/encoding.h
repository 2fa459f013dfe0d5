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
};

struct pe_encoding {
    struct pe_encoding_info info;
    /* Cross-field rules; single fields were checked by their rows. May be NULL. */
    int (*check)(const void *params, struct pe_error *err);
    /* The width of a vector. NULL: there is none. */
    size_t (*width)(const void *params);
    /* Bytes of precomputed data; NULL: none. Bounded by the field limits, so no overflow. */
    size_t (*plan_bytes)(const void *params);
    /* Precomputes into view->data. NULL: nothing to do. */
    int (*plan)(struct pe_plan_view *view, struct pe_error *err);
    /* Are these positions allowed (finite and |p| <= 2^53 already hold)? The path is relative to the
     * positions: "" or "[3]". NULL: any are. */
    int (*admit)(const struct pe_plan_view *view, const struct pe_positions *positions, struct pe_error *err);
    /* Is every |value| at these positions below `limit`, so that it fits `dtype`? PE_ERR_RANGE at the first
     * position where one is not (pe_positions_overflow), or may not be. NULL: no value is over 1. */
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
    /* The map PE(p) -> PE(p + distance) of pair i as M [2, 2] row-major acting on the pair's two values in
     * column order; `columns` receives the two columns of the pair. Exact for any real distance. NULL: the
     * operation fits the best linear map instead. */
    size_t (*shift_pairs)(const struct pe_plan_view *view);
    void (*shift)(const struct pe_plan_view *view, double distance, size_t pair, double m[4],
                  size_t columns[2]);
    /* A rough cost of one vector on one core. NULL: by its width. */
    double (*row_cost_ns)(const struct pe_plan_view *view);
};

/* registry.c */
const struct pe_encoding *pe_encoding_row(const struct pe_encoding_info *info);
/* core/plan.c */
const struct pe_plan_view *pe_plan_view(const struct pe_plan *plan);
const struct pe_encoding *pe_plan_row(const struct pe_plan *plan);

#endif
