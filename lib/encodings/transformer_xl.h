/* SPDX-License-Identifier: MIT
 *
 * The parameters of `transformer_xl`, and what its two halves share: what it takes (transformer_xl.c), and what
 * it makes of that (transformer_xl_term.c).
 */
#ifndef PE_TRANSFORMER_XL_H
#define PE_TRANSFORMER_XL_H

#include "core/cells.h"
#include "core/phase.h"
#include "encodings/encoding.h"

struct transformer_xl {
    uint64_t given;
    int64_t d_model;
    double base;
    struct pe_table w_r, content_bias, position_bias, table;
    int64_t first_distance;
    int64_t seed;
    double std;
};

enum { CELLS_W_R, CELLS_CONTENT, CELLS_POSITION, CELLS_TABLE, CELLS_COUNT };

struct transformer_xl_plan {
    double largest[CELLS_COUNT];
    struct pe_turn turns[]; /* [d_model / 2]; none with a table */
};

/* Width of the sinusoids; 0 with a table. */
size_t pe_transformer_xl_d_model(const struct transformer_xl *xl);
bool pe_transformer_xl_has(const struct transformer_xl *xl, int cells);
struct pe_cells pe_transformer_xl_cells(const struct transformer_xl *xl, int cells);

/* ---- Hooks of the term --------------------------------------------------------------------------------- */

size_t pe_transformer_xl_shared_bytes(const struct pe_plan_view *view, const struct pe_relation *relation,
                                      enum pe_dtype real);
void pe_transformer_xl_share(const struct pe_plan_view *view, const struct pe_relation *relation,
                             enum pe_dtype real, void *shared, const struct pe_stop *stop);
size_t pe_transformer_xl_scratch_bytes(const struct pe_plan_view *view, const struct pe_relation *relation,
                                       enum pe_dtype real);
double pe_transformer_xl_pair_cost_ns(const struct pe_plan_view *view, const struct pe_relation *relation);
void pe_transformer_xl_term(const struct pe_plan_view *view, const struct pe_logits *logits);

#endif
