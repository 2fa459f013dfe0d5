/* SPDX-License-Identifier: MIT
 *
 * DeBERTa's disentangled attention: content and position have vectors of their own, and each looks at the
 * other. With r = i - j, query less key, and row idx(r) of a table of relative positions,
 *
 *     logits_ij = scale * (q_i.k_j + q_i.Kr[idx(r)] + k_j.Qr[idx(r)])
 *                                    c2p              p2c
 *     idx(r)    = clip(bucket(r) + span, 0, 2 span - 1)
 *     scale     = 1/sqrt(d (1 + number of terms))
 *
 * Kr and Qr [2 span, H*d] are projections of one table `rel_embeddings`: of keys and of queries. With
 * share_att_key, as in v2 and v3, they are those of the content: give its weights. p2c multiplies the key by
 * the row of -(j - i), gathered and transposed, which is the row of r: buckets are odd. (The paper writes the
 * other sign; the code that all models were trained with has this one.)
 *
 * position_buckets = 0 (or -1, as in configurations): bucket(r) = r and span = max_relative_positions M.
 * Otherwise span = position_buckets, near distances up to mid = span/2 have a row each, and far ones share
 * theirs up to M - 1:
 *
 *     bucket(r) = sign(r) (mid + ceil(ln(|r|/mid) / ln((M-1)/mid) * (mid-1)))        |r| > mid
 *
 * Deployed code takes these logarithms in float32 (the original in float64). Here whole numbers decide: row
 * mid + k ends where |r|^q <= (M-1)^k mid^(q-k), q = mid - 1. For 256 buckets to 512, which all models have,
 * the three are the same at every distance. Of other settings some distances on an edge, or next to one, are
 * a bucket further or nearer in deployed code: 24 of 18 buckets to 65 in float32, 32 of 32 to 129 in float64.
 *
 * Without tables a seed makes both projections: Kr is table 0 and Qr table 1 of core/cells.h, head h in
 * columns h*d .. h*d + d - 1.
 *
 * Neither vectors nor products are made for all pairs: see kernels/bucketed.h.
 */
#include "encodings/deberta.h"

#include "core/admit.h"
#include "core/bucket.h"
#include "core/pieces.h"
#include "kernels/project.h"
#include "kernels/vector.h"

#include <math.h>
#include <string.h>

#define MAX_POSITIONS 65536
#define GATHER_NS     1.3 /* to find a product and add it */

_Static_assert(PE_LOGITS_ROWS <= PE_BUCKETED_QUERIES, "a block of logits is one of buckets");

static const struct pe_choice terms[] = {
    {"c2p", C2P + 1, "the query's content looks at the position"},
    {"p2c", P2C + 1, "the position looks at the key's content"},
    {0},
};

enum {
    FIELD_POSITION_BUCKETS,
    FIELD_MAX_RELATIVE_POSITIONS,
    FIELD_POS_ATT_TYPE,
    FIELD_REL_EMBEDDINGS,
    FIELD_POS_KEY_PROJ,
    FIELD_POS_KEY_BIAS,
    FIELD_POS_QUERY_PROJ,
    FIELD_POS_QUERY_BIAS,
    FIELD_POS_KEYS,
    FIELD_POS_QUERIES,
    FIELD_SEED,
    FIELD_STD
};

static const struct pe_field fields[] = {
    [FIELD_POSITION_BUCKETS] =
        {PE_FIELD(deberta, position_buckets), .min = -1, .max = PE_BUCKETS_MAX, .def = "256",
         .doc = "buckets of distances in each direction, an even number; 0 or -1: none, a row for each"},
    [FIELD_MAX_RELATIVE_POSITIONS] = {PE_FIELD(deberta, max_relative_positions), .min = 1,
                                      .max = MAX_POSITIONS, .def = "512",
                                      .doc = "distances from this on are in the last bucket"},
    [FIELD_POS_ATT_TYPE] = {PE_FIELD(deberta, pos_att_type), .choices = terms, .doc = "the terms [c2p,p2c]"},
    [FIELD_REL_EMBEDDINGS] =
        {PE_FIELD(deberta, rel_embeddings), .shape = "[2 span, D]",
         .doc = "vectors of relative positions; span is position_buckets, or max_relative_positions without"},
    [FIELD_POS_KEY_PROJ] =
        {PE_FIELD(deberta, pos_key_proj), .shape = "[D, H*d]",
         .doc =
             "their projection for c2p, as in x.W: torch's weight transposed; default none, D is then H*d"},
    [FIELD_POS_KEY_BIAS] = {PE_FIELD(deberta, pos_key_bias), .shape = "[H*d]", .doc = "what is added to it"},
    [FIELD_POS_QUERY_PROJ] = {PE_FIELD(deberta, pos_query_proj), .shape = "[D, H*d]",
                              .doc = "their projection for p2c"},
    [FIELD_POS_QUERY_BIAS] = {PE_FIELD(deberta, pos_query_bias), .shape = "[H*d]",
                              .doc = "what is added to it"},
    [FIELD_POS_KEYS] = {PE_FIELD(deberta, pos_keys), .shape = "[2 span, H*d]",
                        .doc = "in place of rel_embeddings: what c2p takes, projected already"},
    [FIELD_POS_QUERIES] = {PE_FIELD(deberta, pos_queries), .shape = "[2 span, H*d]", .doc = "what p2c takes"},
    [FIELD_SEED] = {PE_FIELD(deberta, seed), .min = 0, .max = PE_POSITION_MAX,
                    .doc = "in place of tables: random ones"},
    [FIELD_STD] = {PE_FIELD(deberta, std), .min = 0, .max = 1000, .def = "1", .flags = PE_FIELD_OPEN_MIN,
                   .doc = "standard deviation of their numbers"},
};

/* ---- Parameters ---------------------------------------------------------------------------------------- */

static bool is_given(const struct deberta *deberta, int field) {
    return pe_field_given(fields, &fields[field], deberta);
}

bool pe_deberta_uses(const struct deberta *deberta, int side) {
    for (size_t i = 0; i < deberta->pos_att_type.n; i++) {
        if (!strcmp(deberta->pos_att_type.v[i], terms[side].name)) {
            return true;
        }
    }
    return !is_given(deberta, FIELD_POS_ATT_TYPE);
}

bool pe_deberta_seeded(const struct deberta *deberta) {
    return is_given(deberta, FIELD_SEED);
}

static int buckets_check(const struct deberta *deberta, struct pe_error *err) {
    long long n = (long long)deberta->position_buckets, most = (long long)deberta->max_relative_positions;
    if (n > 0 && n % 2) {
        return pe_fail(err, PE_ERR_RANGE, "position_buckets",
                       "got %lld, allowed are even numbers, or 0 for a row for each distance", n);
    }
    if (n > 0 && most <= n / 2 + 1) {
        return pe_fail(err, PE_ERR_RANGE, "max_relative_positions",
                       "got %lld, allowed is more than %lld: of %lld buckets so many distances have one of "
                       "their own",
                       most, n / 2 + 1, n);
    }
    return PE_OK;
}

static int terms_check(const struct deberta *deberta, struct pe_error *err) {
    const struct pe_names *names = &deberta->pos_att_type;
    if (names->n == 0 && is_given(deberta, FIELD_POS_ATT_TYPE)) {
        return pe_fail(err, PE_ERR_RANGE, "pos_att_type",
                       "names no term: allowed are c2p, p2c, or both; the type none adds nothing");
    }
    for (size_t i = 1; i < names->n; i++) {
        for (size_t k = 0; k < i; k++) {
            if (!strcmp(names->v[i], names->v[k])) {
                return pe_fail(err, PE_ERR_CONFLICT, "pos_att_type", "names %s twice", names->v[i]);
            }
        }
    }
    return PE_OK;
}

static int deberta_check(const void *params, struct pe_error *err) {
    const struct deberta *deberta = params;
    return buckets_check(deberta, err) || terms_check(deberta, err) || pe_deberta_tables_check(deberta, err)
               ? err->code
               : PE_OK;
}

/* ---- Plan ---------------------------------------------------------------------------------------------- */

struct plan {
    size_t span, reach;      /* reach: M, from which on all distances have the same row */
    size_t columns;          /* 0: from a seed */
    double *tables[N_SIDES]; /* [2 span, columns]; NULL: not used, or made by the seed as it is needed */
    double largest;          /* |number| of a table */
    uint32_t *rows;          /* [2 reach + 1]: idx of -reach .. reach */
};

static size_t panels_count(const struct deberta *deberta) {
    const struct pe_tensor *rel = deberta->rel_embeddings.tensor, *key = deberta->pos_key_proj.tensor,
                           *query = deberta->pos_query_proj.tensor;
    return rel && (key || query) ? pe_project_panels(rel, key ? key : query) : 0; /* both are as wide */
}

static size_t deberta_plan_bytes(const void *params) {
    const struct deberta *deberta = params;
    size_t tables = 0, rows = 2 * (size_t)deberta->max_relative_positions + 1;
    for (int side = 0; side < N_SIDES; side++) {
        tables +=
            pe_deberta_uses(deberta, side) ? 2 * pe_deberta_span(deberta) * pe_deberta_columns(deberta) : 0;
    }
    return sizeof(struct plan) + (tables + panels_count(deberta)) * sizeof(double) + rows * sizeof(uint32_t);
}

/* The names are kept as ours, as those of the request end with it. */
static void deberta_resolve(void *params, void *data) {
    struct deberta *deberta = params;
    struct pe_names *names = &deberta->pos_att_type;
    (void)data;
    if (!is_given(deberta, FIELD_POS_ATT_TYPE)) {
        *names = (struct pe_names){.n = N_SIDES, .v = {terms[C2P].name, terms[P2C].name}};
        deberta->given |= UINT64_C(1) << FIELD_POS_ATT_TYPE;
        return;
    }
    for (size_t i = 0; i < names->n; i++) {
        names->v[i] = terms[strcmp(names->v[i], terms[C2P].name) ? P2C : C2P].name;
    }
}

static int deberta_plan(struct pe_plan_view *view, struct pe_error *err) {
    const struct deberta *deberta = view->params;
    struct plan *plan = view->data;
    double *next = (double *)(void *)(plan + 1);
    plan->span = pe_deberta_span(deberta);
    plan->reach = (size_t)deberta->max_relative_positions;
    plan->columns = pe_deberta_columns(deberta);
    size_t n = 2 * plan->span * plan->columns;
    for (int side = 0; side < N_SIDES && n > 0; side++) {
        plan->tables[side] = pe_deberta_uses(deberta, side) ? next : NULL;
        next += plan->tables[side] ? n : 0;
    }
    plan->rows = (uint32_t *)(void *)(next + panels_count(deberta));
    pe_deberta_rows_fill(deberta, plan->rows);
    const struct pe_cells made = {.seed = deberta->seed, .std = deberta->std};
    plan->largest = n ? 0 : pe_cells_largest(&made, err->stop);
    for (int side = 0; side < N_SIDES; side++) {
        if (plan->tables[side] && pe_deberta_table_make(deberta, side, plan->tables[side], next, err)) {
            return err->code;
        }
        if (plan->tables[side]) {
            plan->largest =
                fmax(plan->largest, pe_vector_largest(PE_DTYPE_F64, plan->tables[side], n, false, err->stop));
        }
    }
    return PE_OK;
}

/* ---- Requests ------------------------------------------------------------------------------------------ */

static int deberta_admit(const struct pe_plan_view *view, const struct pe_positions *positions,
                         struct pe_error *err) {
    (void)view;
    return pe_positions_whole(positions, "buckets are of whole distances", err);
}

static int deberta_suits(const struct pe_plan_view *view, const struct pe_relation *relation,
                         struct pe_error *err) {
    const struct deberta *deberta = view->params;
    const struct plan *plan = view->data;
    const struct deberta_side side = pe_deberta_side(deberta, pe_deberta_uses(deberta, C2P) ? C2P : P2C);
    const char *field = side.ready->tensor  ? side.ready_name
                        : side.proj->tensor ? side.proj_name
                                            : "rel_embeddings";
    if (plan->columns == 0 || plan->columns == relation->heads * relation->width) {
        return PE_OK;
    }
    return pe_fail(err, PE_ERR_SHAPE, field, "has %zu columns, but %zu heads of width %zu take %zu",
                   plan->columns, relation->heads, relation->width, relation->heads * relation->width);
}

static double deberta_scale(const struct pe_plan_view *view, double usual) {
    double d = nearbyint(1 / (usual * usual)),
           n = (double)((const struct deberta *)view->params)->pos_att_type.n;
    return 1 / sqrt(d * (1 + n));
}

static double deberta_reach(const struct pe_plan_view *view, const struct pe_relation *relation) {
    const struct deberta *deberta = view->params;
    double largest = ((const struct plan *)view->data)->largest;
    double vectors = (pe_deberta_uses(deberta, C2P) ? relation->largest_query : 0) +
                     (pe_deberta_uses(deberta, P2C) ? relation->largest_key : 0);
    double scale = fmax(1, fabs(relation->scale)); /* before and after it */
    return fmax(largest, (double)relation->width * vectors * largest * scale);
}

/* Keys are multiplied by twice the rows that they use. */
static double deberta_pair_cost_ns(const struct pe_plan_view *view, const struct pe_relation *relation) {
    double product = (double)relation->width / PE_PRODUCTS_PER_NS;
    return GATHER_NS + (pe_deberta_uses(view->params, C2P) ? product : 0) +
           (pe_deberta_uses(view->params, P2C) ? 2 * product : 0);
}

/* ---- Terms --------------------------------------------------------------------------------------------- */

/* What blocks share: of each table the rows that any pair reaches and the columns of the heads asked for, as
 * numbers of type real. */
struct shared {
    size_t first, n; /* rows */
    void *tables[N_SIDES];
};

static size_t shared_cut(const struct pe_plan_view *view, const struct pe_relation *relation,
                         enum pe_dtype real, struct shared *out, void *memory) {
    const struct plan *plan = view->data;
    struct pe_pieces pieces = {memory, 0};
    pe_pieces_take(&pieces, 1, 1, sizeof *out); /* itself */
    out->first = pe_bucketed_row(plan->rows, plan->reach, -relation->most);
    out->n = pe_bucketed_row(plan->rows, plan->reach, -relation->least) - out->first + 1;
    for (int side = 0; side < N_SIDES; side++) {
        out->tables[side] = pe_pieces_take(&pieces, pe_deberta_uses(view->params, side) ? out->n : 0,
                                           relation->n_slots * relation->width, pe_dtype_size(real));
    }
    return pieces.bytes;
}

static size_t deberta_shared_bytes(const struct pe_plan_view *view, const struct pe_relation *relation,
                                   enum pe_dtype real) {
    struct shared shared;
    return shared_cut(view, relation, real, &shared, NULL);
}

static void deberta_share(const struct pe_plan_view *view, const struct pe_relation *relation,
                          enum pe_dtype real, void *memory, const struct pe_stop *stop) {
    const struct deberta *deberta = view->params;
    const struct plan *plan = view->data;
    size_t d = relation->width, slots = relation->n_slots;
    struct shared *is = memory;
    shared_cut(view, relation, real, is, memory);
    for (int side = 0; side < N_SIDES; side++) {
        const struct pe_cells cells = {.seed = deberta->seed, .std = deberta->std, .number = (uint32_t)side};
        size_t n = pe_deberta_uses(view->params, side) ? is->n * slots : 0;
        for (size_t i = 0; i < n && !pe_stop_asked(stop); i++) {
            size_t first = pe_relation_head(relation, i % slots) * d, row = is->first + i / slots;
            unsigned char *out = (unsigned char *)is->tables[side] + i * d * pe_dtype_size(real);
            if (plan->columns) {
                pe_dtype_store(real, plan->tables[side] + row * plan->columns + first, d, out);
            } else {
                pe_cells_row(&cells, row, first, d, real, out);
            }
        }
    }
}

static size_t deberta_scratch_bytes(const struct pe_plan_view *view, const struct pe_relation *relation,
                                    enum pe_dtype real) {
    struct shared shared;
    size_t bytes;
    shared_cut(view, relation, real, &shared, NULL);
    const size_t factors[] = {N_SIDES, PE_LOGITS_ROWS, shared.n, pe_dtype_size(real)};
    return pe_size_product(factors, PE_COUNT(factors), &bytes) ? bytes : SIZE_MAX;
}

static void deberta_term(const struct pe_plan_view *view, const struct pe_logits *logits) {
    const struct plan *plan = view->data;
    const struct pe_relation *relation = logits->relation;
    const struct shared *shared = logits->shared;
    size_t item = pe_dtype_size(logits->real), first = logits->slot * relation->width * item;
    struct pe_bucketed block = {
        .real = logits->real,
        .ordered = logits->ordered,
        .n_queries = logits->n,
        .n_keys = relation->keys,
        .width = relation->width,
        .queries = logits->query_positions,
        .keys = logits->key_positions,
        .q = {logits->q, logits->q_ld},
        .k = {logits->k, logits->k_ld},
        .scale = relation->scale,
        .rows = plan->rows,
        .reach = plan->reach,
        .stop = logits->stop,
        .first = shared->first,
    };
    for (int side = 0; side < N_SIDES; side++) {
        if (pe_deberta_uses(view->params, side)) {
            block.table[side] = (struct pe_const_matrix){(const unsigned char *)shared->tables[side] + first,
                                                         relation->n_slots * relation->width};
            block.products[side] =
                (unsigned char *)logits->scratch + (size_t)side * PE_LOGITS_ROWS * shared->n * item;
        }
    }
    pe_bucketed_add(&block, logits->out);
}

const struct pe_encoding pe_deberta = {
    .info =
        {
            .type = "deberta",
            .title = "DeBERTa's disentangled attention",
            .doc = "Content looks at relative positions, and relative positions at content, each through "
                   "vectors of its own; far distances share theirs in buckets. The scale is of all terms.",
            .reference = "He et al. 2021, DeBERTa, arXiv:2006.03654, and DeBERTaV3, arXiv:2111.09543",
            .family = PE_FAMILY_QUERY,
            .params_size = sizeof(struct deberta),
            .fields = fields,
            .n_fields = PE_COUNT(fields),
        },
    .check = deberta_check,
    .plan_bytes = deberta_plan_bytes,
    .resolve = deberta_resolve,
    .plan = deberta_plan,
    .admit = deberta_admit,
    .suits = deberta_suits,
    .term = deberta_term,
    .shared_bytes = deberta_shared_bytes,
    .share = deberta_share,
    .scratch_bytes = deberta_scratch_bytes,
    .reach = deberta_reach,
    .pair_cost_ns = deberta_pair_cost_ns,
    .scale = deberta_scale,
};
