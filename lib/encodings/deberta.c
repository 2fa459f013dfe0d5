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
#include "encodings/encoding.h"

#include "core/admit.h"
#include "core/bucket.h"
#include "core/cells.h"
#include "kernels/bucketed.h"
#include "kernels/project.h"
#include "kernels/vector.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_POSITIONS 65536
#define VALUES_MAX    ((size_t)1 << 22) /* of one projection */

enum { C2P = PE_BUCKETED_QUERY, P2C = PE_BUCKETED_KEY, N_SIDES = 2 };

_Static_assert(PE_LOGITS_ROWS <= PE_BUCKETED_QUERIES, "a block of logits is one of buckets");

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

static const struct pe_choice terms[] = {
    {"c2p", C2P + 1, "the query's content looks at the position"},
    {"p2c", P2C + 1, "the position looks at the key's content"},
    {0},
};

enum { FIELD_POS_ATT_TYPE = 2, FIELD_SEED = 10 };

static const struct pe_field fields[] = {
    {PE_FIELD(deberta, position_buckets), .min = -1, .max = PE_BUCKETS_MAX, .def = "256",
     .doc = "buckets of distances in each direction, an even number; 0 or -1: none, a row for each"},
    {PE_FIELD(deberta, max_relative_positions), .min = 1, .max = MAX_POSITIONS, .def = "512",
     .doc = "distances from this on are in the last bucket"},
    {PE_FIELD(deberta, pos_att_type), .choices = terms, .doc = "the terms [c2p,p2c]"},
    {PE_FIELD(deberta, rel_embeddings), .shape = "[2 span, D]",
     .doc = "vectors of relative positions; span is position_buckets, or max_relative_positions without"},
    {PE_FIELD(deberta, pos_key_proj), .shape = "[D, H*d]",
     .doc = "their projection for c2p, as in x.W: torch's weight transposed; default none, D is then H*d"},
    {PE_FIELD(deberta, pos_key_bias), .shape = "[H*d]", .doc = "what is added to it"},
    {PE_FIELD(deberta, pos_query_proj), .shape = "[D, H*d]", .doc = "their projection for p2c"},
    {PE_FIELD(deberta, pos_query_bias), .shape = "[H*d]", .doc = "what is added to it"},
    {PE_FIELD(deberta, pos_keys), .shape = "[2 span, H*d]",
     .doc = "in place of rel_embeddings: what c2p takes, projected already"},
    {PE_FIELD(deberta, pos_queries), .shape = "[2 span, H*d]", .doc = "what p2c takes"},
    {PE_FIELD(deberta, seed), .min = 0, .max = PE_POSITION_MAX, .doc = "in place of tables: random ones"},
    {PE_FIELD(deberta, std), .min = 0, .max = 1000, .def = "1", .flags = PE_FIELD_OPEN_MIN,
     .doc = "standard deviation of their numbers"},
};

/* ---- Parameters ---------------------------------------------------------------------------------------- */

/* What one term takes. */
struct side {
    bool used;
    const struct pe_table *proj, *bias, *ready;
    const char *proj_name, *bias_name, *ready_name;
};

static bool is_given(const struct deberta *deberta, int field) {
    return pe_field_given(fields, &fields[field], deberta);
}

static bool uses(const struct deberta *deberta, int side) {
    for (size_t i = 0; i < deberta->pos_att_type.n; i++) {
        if (!strcmp(deberta->pos_att_type.v[i], terms[side].name)) {
            return true;
        }
    }
    return !is_given(deberta, FIELD_POS_ATT_TYPE);
}

static struct side side_of(const struct deberta *deberta, int side) {
    const struct side sides[N_SIDES] = {
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
    struct side out = sides[side];
    out.used = uses(deberta, side);
    return out;
}

static bool seeded(const struct deberta *deberta) {
    return is_given(deberta, FIELD_SEED);
}

static size_t span_of(const struct deberta *deberta) {
    return (size_t)(deberta->position_buckets > 0 ? deberta->position_buckets
                                                  : deberta->max_relative_positions);
}

/* H*d: columns of the projections; 0 from a seed, which makes any number. */
static size_t columns_of(const struct deberta *deberta) {
    const struct side side = side_of(deberta, uses(deberta, C2P) ? C2P : P2C);
    const struct pe_tensor *table = side.ready->tensor  ? side.ready->tensor
                                    : side.proj->tensor ? side.proj->tensor
                                                        : deberta->rel_embeddings.tensor;
    return table ? table->dim[1] : 0;
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

/* A table with a row for each bucket of both directions. */
static int rows_check(const struct deberta *deberta, const struct pe_tensor *table, const char *field,
                      struct pe_error *err) {
    size_t span = span_of(deberta);
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
static int idle_check(const struct side *side, const char *why, bool ready, struct pe_error *err) {
    const struct pe_table *tables[] = {side->proj, side->bias, side->ready};
    const char *const names[] = {side->proj_name, side->bias_name, side->ready_name};
    for (int i = 0; i < (ready ? 3 : 2); i++) {
        if (pe_cells_given(tables[i])) {
            return pe_fail(err, PE_ERR_CONFLICT, names[i], "is given, %s", why);
        }
    }
    return PE_OK;
}

static int projection_check(const struct deberta *deberta, const struct side *side, struct pe_error *err) {
    size_t width = deberta->rel_embeddings.tensor->dim[1], columns = columns_of(deberta);
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

static int ready_check(const struct deberta *deberta, const struct side *side, struct pe_error *err) {
    if (pe_cells_check(side->ready, side->ready_name, false, err) ||
        rows_check(deberta, side->ready->tensor, side->ready_name, err)) {
        return err->code;
    }
    size_t columns = columns_of(deberta), n = side->ready->tensor->dim[1];
    if (n != columns) {
        return pe_fail(err, PE_ERR_SHAPE, side->ready_name, "has %zu columns, but pos_keys has %zu", n,
                       columns);
    }
    return PE_OK;
}

/* The tables of one term: one of three sources, and nothing beside it. */
static int side_check(const struct deberta *deberta, int which, bool ready, struct pe_error *err) {
    const struct side side = side_of(deberta, which);
    char why[60];
    if (!side.used) {
        snprintf(why, sizeof why, "but pos_att_type has no %s", terms[which].name);
        return idle_check(&side, why, true, err);
    }
    if (seeded(deberta)) {
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

static int deberta_check(const void *params, struct pe_error *err) {
    const struct deberta *deberta = params;
    const struct pe_table *rel = &deberta->rel_embeddings;
    if (buckets_check(deberta, err) || terms_check(deberta, err)) {
        return err->code;
    }
    bool ready =
        !pe_cells_given(rel) && (pe_cells_given(&deberta->pos_keys) || pe_cells_given(&deberta->pos_queries));
    if (!ready && pe_cells_check(rel, "rel_embeddings", seeded(deberta), err)) {
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
    size_t rows = 2 * span_of(deberta), columns = columns_of(deberta);
    if (columns > VALUES_MAX / rows) {
        return pe_fail_limit(err, "", "values", VALUES_MAX, rows * columns,
                             "%zu rows of %zu columns are %zu numbers, at most %zu are allowed", rows,
                             columns, rows * columns, VALUES_MAX);
    }
    return PE_OK;
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
    const struct pe_tensor *rel = deberta->rel_embeddings.tensor;
    bool projects = deberta->pos_key_proj.tensor || deberta->pos_query_proj.tensor;
    return rel && projects ? pe_project_panels(rel->dim[1]) : 0;
}

static size_t deberta_plan_bytes(const void *params) {
    const struct deberta *deberta = params;
    size_t tables = 0, rows = 2 * (size_t)deberta->max_relative_positions + 1;
    for (int side = 0; side < N_SIDES; side++) {
        tables += uses(deberta, side) ? 2 * span_of(deberta) * columns_of(deberta) : 0;
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

/* Row of every distance up to M: those above edge k are in bucket mid + k + 1 or further. With one bucket
 * beside that of 0 there are no edges. */
static void rows_fill(const struct deberta *deberta, struct plan *plan) {
    size_t mid = deberta->position_buckets > 0 ? plan->span / 2 : plan->reach, bucket = 0, k = 0;
    const size_t last = plan->span * 2 - 1;
    double next = (double)mid + 1; /* the first distance of the bucket after this one */
    for (size_t n = 0; n <= plan->reach; n++) {
        while (mid > 1 && (double)n >= next) {
            struct pe_bucket_edge edge = {(uint32_t)mid, (uint32_t)plan->reach - 1, ++k, mid - 1};
            next = k < mid ? pe_bucket_beyond(&edge) : INFINITY;
            bucket = mid + k;
        }
        bucket = n > mid ? bucket : n;
        plan->rows[plan->reach + n] = (uint32_t)(plan->span + bucket < last ? plan->span + bucket : last);
        plan->rows[plan->reach - n] = (uint32_t)(plan->span - bucket);
    }
}

static int table_make(const struct deberta *deberta, const struct plan *plan, int which, double *panels,
                      struct pe_error *err) {
    const struct side side = side_of(deberta, which);
    const struct pe_tensor *rel = deberta->rel_embeddings.tensor;
    const struct pe_projection projection = {
        .x = rel ? rel : side.ready->tensor,
        .w = side.proj->tensor,
        .bias = side.bias->tensor,
        .panels = panels,
    };
    return pe_project(&projection, plan->tables[which], err);
}

static int deberta_plan(struct pe_plan_view *view, struct pe_error *err) {
    const struct deberta *deberta = view->params;
    struct plan *plan = view->data;
    double *next = (double *)(void *)(plan + 1);
    plan->span = span_of(deberta);
    plan->reach = (size_t)deberta->max_relative_positions;
    plan->columns = columns_of(deberta);
    size_t n = 2 * plan->span * plan->columns;
    for (int side = 0; side < N_SIDES && n > 0; side++) {
        plan->tables[side] = uses(deberta, side) ? next : NULL;
        next += plan->tables[side] ? n : 0;
    }
    plan->rows = (uint32_t *)(void *)(next + panels_count(deberta));
    rows_fill(deberta, plan);
    const struct pe_cells made = {.seed = deberta->seed, .std = deberta->std};
    plan->largest = n ? 0 : pe_cells_largest(&made, err->stop);
    for (int side = 0; side < N_SIDES; side++) {
        if (plan->tables[side] && table_make(deberta, plan, side, next, err)) {
            return err->code;
        }
        if (plan->tables[side]) {
            plan->largest =
                fmax(plan->largest, pe_vector_largest(PE_DTYPE_F64, plan->tables[side], n, false));
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
    const struct side side = side_of(deberta, uses(deberta, C2P) ? C2P : P2C);
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
    double vectors =
        (uses(deberta, C2P) ? relation->largest_query : 0) + (uses(deberta, P2C) ? relation->largest_key : 0);
    double scale = fmax(1, fabs(relation->scale)); /* before and after it */
    return fmax(largest, (double)relation->width * vectors * largest * scale);
}

/* ---- Terms --------------------------------------------------------------------------------------------- */

static struct pe_bucketed bucketed_of(const struct plan *plan, const struct pe_logits *logits) {
    const struct pe_relation *relation = logits->relation;
    return (struct pe_bucketed){
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
    };
}

/* Numbers of type real: of a slice of a table, and of the products with it. */
struct sizes {
    size_t slice, products;
};

static struct sizes sizes_of(const struct plan *plan, const struct pe_relation *relation) {
    size_t rows = pe_bucketed_most(plan->rows, plan->reach, relation->distance);
    return (struct sizes){.slice = rows * relation->width, .products = PE_LOGITS_ROWS * rows};
}

static size_t deberta_scratch_bytes(const struct pe_plan_view *view, const struct pe_relation *relation,
                                    enum pe_dtype real) {
    const struct sizes sizes = sizes_of(view->data, relation);
    const size_t factors[] = {sizes.slice + sizes.products, N_SIDES, pe_dtype_size(real)};
    size_t bytes;
    return pe_size_product(factors, 3, &bytes) ? bytes : SIZE_MAX;
}

/* Rows first .. first+n-1 of a table and the columns of the head, as numbers of type real. */
static void slice_fill(const struct pe_plan_view *view, int side, const struct pe_logits *logits,
                       const struct pe_bucketed *block, unsigned char *out) {
    const struct deberta *deberta = view->params;
    const struct plan *plan = view->data;
    const struct pe_cells made = {.seed = deberta->seed, .std = deberta->std, .number = (uint32_t)side};
    size_t d = block->width, first = logits->head * d, item = pe_dtype_size(block->real);
    for (size_t r = block->first; r < block->first + block->n && !pe_stop_asked(block->stop); r++) {
        for (size_t c = 0; c < (plan->columns ? 0 : d); c++) {
            double x = pe_cells_at(&made, r, first + c);
            pe_dtype_store(block->real, &x, 1, out + c * item);
        }
        if (plan->columns) {
            pe_dtype_store(block->real, plan->tables[side] + r * plan->columns + first, d, out);
        }
        out += d * item;
    }
}

static void deberta_term(const struct pe_plan_view *view, const struct pe_logits *logits) {
    const struct sizes sizes = sizes_of(view->data, logits->relation);
    struct pe_bucketed block = bucketed_of(view->data, logits);
    size_t item = pe_dtype_size(logits->real);
    unsigned char *next = logits->scratch;
    pe_bucketed_open(&block);
    for (int side = 0; side < N_SIDES; side++, next += (sizes.slice + sizes.products) * item) {
        if (uses(view->params, side)) {
            slice_fill(view, side, logits, &block, next);
            block.table[side] = next;
            block.products[side] = next + sizes.slice * item;
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
    .scratch_bytes = deberta_scratch_bytes,
    .reach = deberta_reach,
    .scale = deberta_scale,
};
