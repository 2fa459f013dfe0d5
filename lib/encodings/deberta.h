/* SPDX-License-Identifier: MIT
 *
 * The parameters of `deberta`, and what its two halves share: its terms (deberta.c), and the tables that they
 * take, which come from three sources (deberta_tables.c).
 */
#ifndef PE_DEBERTA_H
#define PE_DEBERTA_H

#include "core/cells.h"
#include "encodings/encoding.h"
#include "kernels/bucketed.h"

enum { C2P = PE_BUCKETED_QUERY, P2C = PE_BUCKETED_KEY, N_SIDES = 2 };

struct deberta {
    uint64_t given;
    int64_t position_buckets;
    int64_t max_relative_positions;
    struct pe_names pos_att_type;
    struct pe_table rel_embeddings;
    struct pe_table pos_key_proj, pos_key_bias;
    struct pe_table pos_query_proj, pos_query_bias;
    struct pe_table pos_keys, pos_queries;
    int64_t seed;
    double std;
};

/* What one term takes. */
struct deberta_side {
    bool used;
    const struct pe_table *proj, *bias, *ready;
    const char *proj_name, *bias_name, *ready_name;
};

bool pe_deberta_seeded(const struct deberta *deberta);
/* Is there this term? */
bool pe_deberta_uses(const struct deberta *deberta, int side);

struct deberta_side pe_deberta_side(const struct deberta *deberta, int side);
size_t pe_deberta_span(const struct deberta *deberta);
/* H*d: columns of the projections; 0 from a seed, which makes any number. */
size_t pe_deberta_columns(const struct deberta *deberta);
/* Does each term have its tables, and nothing beside them? */
int pe_deberta_tables_check(const struct deberta *deberta, struct pe_error *err);
/* The table of a term in doubles, out [2 span, columns], where there is one; panels: see kernels/project.h. */
int pe_deberta_table_make(const struct deberta *deberta, int side, double *out, double *panels,
                          struct pe_error *err);
/* The rows that distances -M .. M take, M = max_relative_positions: [2M + 1]. */
void pe_deberta_rows_fill(const struct deberta *deberta, uint32_t *rows);

#endif
