/* SPDX-License-Identifier: MIT
 *
 * Where the queries and keys of attention are.
 */
#include "ops/attention_input.h"

/* Positions that nothing would look at are a mistake: those of a bias are in its numbers already. */
static int positions_check(const struct pe_reader *r, struct pe_error *err) {
    const struct pe_plan *plan = r->args->plan;
    bool used = plan && pe_plan_row(plan)->info.family != PE_FAMILY_NONE;
    const char *field = r->args->query_positions ? "query_positions"
                        : r->args->key_positions ? "key_positions"
                                                 : NULL;
    if (used || !field) {
        return PE_OK;
    }
    return pe_fail(err, PE_ERR_CONFLICT, field,
                   "no encoding takes these positions: give one that does, or leave them out");
}

int pe_reader_positions(struct pe_reader *r, struct pe_error *err) {
    static const char *const fields[] = {"query_positions", "key_positions"};
    const struct pe_attention *a = r->a;
    const struct pe_positions *const given[] = {r->args->query_positions, r->args->key_positions};
    const size_t batch = a->batched ? a->batch : 0, length[] = {a->queries, a->keys};
    for (int i = 0; i < 2; i++) {
        if (!given[i]) {
            continue;
        }
        r->suited[i] = pe_positions_for(r->args->plan, given[i], batch, length[i]);
        r->positions[i] = &r->suited[i];
        if (pe_positions_fit(r->args->plan, &r->suited[i], batch, length[i], fields[i], err)) {
            return err->code;
        }
    }
    return positions_check(r, err);
}

static struct pe_positions default_positions(size_t length, double start) {
    return (struct pe_positions){.length = length, .axes = 1, .start = start, .step = 1};
}

/* Queries are aligned to the right, as the last of the keys: cached decoding has Tq = 1. But where an
 * encoding is made for so many queries and so many keys, they are these. */
static double first_query(const struct pe_reader *r) {
    const struct pe_attention *a = r->a;
    const struct pe_encoding *row = pe_plan_row(r->args->plan);
    const struct pe_plan_view *view = pe_plan_view(r->args->plan);
    bool all = row->tokens && row->tokens(view, false) == a->queries && row->tokens(view, true) == a->keys;
    return all ? 0 : (double)a->keys - (double)a->queries;
}

const char *pe_reader_source(const struct pe_reader *r, int side) {
    return r->args->embeddings ? "embeddings" : side ? "k" : "q";
}

int pe_reader_sides(const struct pe_reader *r, struct pe_sides *sides, struct pe_error *err) {
    const struct pe_attention *a = r->a;
    const struct pe_positions *of_q = r->positions[0], *of_k = r->positions[1];
    *sides = (struct pe_sides){.field = {"query_positions", "key_positions"}};
    if (r->args->embeddings && !of_q && of_k) { /* queries are keys: what is given for one holds for both */
        of_q = of_k;
        sides->field[0] = "key_positions";
    } else if (r->args->embeddings && of_q && !of_k) {
        of_k = of_q;
        sides->field[1] = "query_positions";
    }
    sides->given[0] = of_q != NULL;
    sides->given[1] = of_k != NULL;
    sides->positions[0] = of_q ? *of_q : default_positions(a->queries, first_query(r));
    sides->positions[1] = of_k ? *of_k : default_positions(a->keys, 0);
    for (int side = 0; side < 2 && !err->code; side++) {
        (void)!(sides->given[side]
                    ? pe_positions_admit(r->args->plan, &sides->positions[side], PE_DTYPE_F64,
                                         sides->field[side], err)
                    : pe_positions_admit_default(r->args->plan, &sides->positions[side], PE_DTYPE_F64,
                                                 sides->field[side], pe_reader_source(r, side), err));
    }
    return err->code;
}
