/* SPDX-License-Identifier: MIT
 *
 * The tables of DeBERTa's terms, each from one of three sources: rel_embeddings, perhaps projected; rows that
 * are projected already; a seed. And which row of a table a distance takes.
 */
#include "encodings/deberta.h"

#include "core/bucket.h"
#include "kernels/project.h"

#include <math.h>
#include <stdio.h>

#define VALUES_MAX ((size_t)1 << 22) /* of one projection */

struct deberta_side pe_deberta_side(const struct deberta *deberta, int side) {
    const struct deberta_side sides[N_SIDES] = {
        {.proj = &deberta->pos_key_proj,
         .bias = &deberta->pos_key_bias,
         .ready = &deberta->pos_keys,
         .proj_name = "pos_key_proj",
         .bias_name = "pos_key_bias",
         .ready_name = "pos_keys"},
        {.proj = &deberta->pos_query_proj,
         .bias = &deberta->pos_query_bias,
         .ready = &deberta->pos_queries,
         .proj_name = "pos_query_proj",
         .bias_name = "pos_query_bias",
         .ready_name = "pos_queries"},
    };
    struct deberta_side out = sides[side];
    out.used = pe_deberta_uses(deberta, side);
    return out;
}

size_t pe_deberta_span(const struct deberta *deberta) {
    return (size_t)(deberta->position_buckets > 0 ? deberta->position_buckets
                                                  : deberta->max_relative_positions);
}

size_t pe_deberta_columns(const struct deberta *deberta) {
    const struct deberta_side side = pe_deberta_side(deberta, pe_deberta_uses(deberta, C2P) ? C2P : P2C);
    const struct pe_tensor *table = side.ready->tensor  ? side.ready->tensor
                                    : side.proj->tensor ? side.proj->tensor
                                                        : deberta->rel_embeddings.tensor;
    return table ? table->dim[1] : 0;
}

/* A table with a row for each bucket of both directions. */
static int rows_check(const struct deberta *deberta, const struct pe_tensor *table, const char *field,
                      struct pe_error *err) {
    size_t span = pe_deberta_span(deberta);
    char allowed[100];
    if (table->rank == 2 && table->dim[0] == 2 * span && table->dim[1] > 0) {
        return PE_OK;
    }
    snprintf(allowed, sizeof allowed, "[%zu, %s]: two rows for each of %zu %s", 2 * span,
             field[0] == 'r' ? "D" : "H*d", span,
             deberta->position_buckets > 0 ? "position_buckets" : "max_relative_positions");
    return pe_cells_shape_fail(table, field, allowed, err);
}

/* Some tables of one term are there that nothing asks for. */
static int idle_check(const struct deberta_side *side, const char *why, bool ready, struct pe_error *err) {
    const struct pe_table *tables[] = {side->proj, side->bias, side->ready};
    const char *const names[] = {side->proj_name, side->bias_name, side->ready_name};
    for (int i = 0; i < (ready ? 3 : 2); i++) {
        if (pe_cells_given(tables[i])) {
            return pe_fail(err, PE_ERR_CONFLICT, names[i], "is given, %s", why);
        }
    }
    return PE_OK;
}

static int projection_check(const struct deberta *deberta, const struct deberta_side *side,
                            struct pe_error *err) {
    size_t width = deberta->rel_embeddings.tensor->dim[1], columns = pe_deberta_columns(deberta);
    const struct pe_tensor *proj = side->proj->tensor, *bias = side->bias->tensor;
    char allowed[100];
    if ((pe_cells_given(side->proj) && pe_cells_check(side->proj, side->proj_name, false, err)) ||
        (pe_cells_given(side->bias) && pe_cells_check(side->bias, side->bias_name, false, err))) {
        return err->code;
    }
    if (proj && (proj->rank != 2 || proj->dim[0] != width || proj->dim[1] < 1)) {
        snprintf(allowed, sizeof allowed, "[%zu, H*d], with the D of rel_embeddings", width);
        return pe_cells_shape_fail(proj, side->proj_name, allowed, err);
    }
    size_t n = proj ? proj->dim[1] : width;
    if (n != columns) {
        return pe_fail(err, PE_ERR_SHAPE, proj ? side->proj_name : "rel_embeddings",
                       "gives p2c %zu columns, but c2p has %zu: both are H*d", n, columns);
    }
    if (bias && (bias->rank != 1 || bias->dim[0] != n)) {
        snprintf(allowed, sizeof allowed, "[%zu], the columns of the projection", n);
        return pe_cells_shape_fail(bias, side->bias_name, allowed, err);
    }
    return PE_OK;
}

static int ready_check(const struct deberta *deberta, const struct deberta_side *side, struct pe_error *err) {
    if (pe_cells_check(side->ready, side->ready_name, false, err) ||
        rows_check(deberta, side->ready->tensor, side->ready_name, err)) {
        return err->code;
    }
    size_t columns = pe_deberta_columns(deberta), n = side->ready->tensor->dim[1];
    if (n != columns) {
        return pe_fail(err, PE_ERR_SHAPE, side->ready_name, "has %zu columns, but pos_keys has %zu", n,
                       columns);
    }
    return PE_OK;
}

/* The tables of one term: one of three sources, and nothing beside it. */
static int side_check(const struct deberta *deberta, int which, bool ready, struct pe_error *err) {
    const struct deberta_side side = pe_deberta_side(deberta, which);
    char why[60];
    if (!side.used) {
        snprintf(why, sizeof why, "but pos_att_type has no %s", which == C2P ? "c2p" : "p2c");
        return idle_check(&side, why, true, err);
    }
    if (pe_deberta_seeded(deberta)) {
        return idle_check(&side, "and so is seed: give one of them", true, err);
    }
    if (ready) {
        return idle_check(&side, "but rel_embeddings, which it projects, is not", false, err) ||
                       ready_check(deberta, &side, err)
                   ? err->code
                   : PE_OK;
    }
    if (pe_cells_given(side.ready)) {
        return pe_fail(err, PE_ERR_CONFLICT, side.ready_name,
                       "is given, and so is rel_embeddings: give one of them");
    }
    return projection_check(deberta, &side, err);
}

int pe_deberta_tables_check(const struct deberta *deberta, struct pe_error *err) {
    const struct pe_table *rel = &deberta->rel_embeddings;
    bool ready =
        !pe_cells_given(rel) && (pe_cells_given(&deberta->pos_keys) || pe_cells_given(&deberta->pos_queries));
    if (!ready && pe_cells_check(rel, "rel_embeddings", pe_deberta_seeded(deberta), err)) {
        return err->code;
    }
    if (rel->tensor && rows_check(deberta, rel->tensor, "rel_embeddings", err)) {
        return err->code;
    }
    for (int side = 0; side < N_SIDES; side++) {
        if (side_check(deberta, side, ready, err)) {
            return err->code;
        }
    }
    size_t rows = 2 * pe_deberta_span(deberta), columns = pe_deberta_columns(deberta);
    if (columns > VALUES_MAX / rows) {
        return pe_fail_limit(err, "", "values", VALUES_MAX, rows * columns,
                             "%zu rows of %zu columns are %zu numbers, at most %zu are allowed", rows,
                             columns, rows * columns, VALUES_MAX);
    }
    return PE_OK;
}

int pe_deberta_table_make(const struct deberta *deberta, int which, double *out, double *panels,
                          struct pe_error *err) {
    const struct deberta_side side = pe_deberta_side(deberta, which);
    const struct pe_tensor *rel = deberta->rel_embeddings.tensor;
    const struct pe_projection projection = {
        .x = rel ? rel : side.ready->tensor,
        .w = side.proj->tensor,
        .bias = side.bias->tensor,
        .panels = panels,
    };
    return pe_project(&projection, out, err);
}

/* Distances above edge k are in bucket mid + k + 1 or further. With one bucket beside that of 0 there are no
 * edges. */
void pe_deberta_rows_fill(const struct deberta *deberta, uint32_t *rows) {
    size_t span = pe_deberta_span(deberta), reach = (size_t)deberta->max_relative_positions;
    size_t mid = deberta->position_buckets > 0 ? span / 2 : reach, bucket = 0, k = 0;
    const size_t last = span * 2 - 1;
    double next = (double)mid + 1; /* the first distance of the bucket after this one */
    for (size_t n = 0; n <= reach; n++) {
        while (mid > 1 && (double)n >= next) {
            struct pe_bucket_edge edge = {(uint32_t)mid, (uint32_t)reach - 1, ++k, mid - 1};
            next = k < mid ? pe_bucket_beyond(&edge) : INFINITY;
            bucket = mid + k;
        }
        bucket = n > mid ? bucket : n;
        rows[reach + n] = (uint32_t)(span + bucket < last ? span + bucket : last);
        rows[reach - n] = (uint32_t)(span - bucket);
    }
}
