/* SPDX-License-Identifier: MIT
 *
 * The relative attention of Transformer-XL (Dai et al. 2019): the logits of a query i and a key j are
 *
 *     scale * ((q_i + u).k_j + (q_i + v).(W_R R_{i-j}))
 *
 * with R_n the sinusoid [sin n w_0, sin n w_1 .., cos n w_0 ..] of width d_model (w_m = base^(-2m/d_model)),
 * W_R the part of a learned matrix w_r [d_model, H*d] that belongs to the head (as x.W), and u and v learned
 * vectors of each head, the same for all queries: content_bias and position_bias [H, d], zero where they are
 * not given. The content is q.k, and the term u.k + (q + v).(W_R R).
 *
 * Projects make R for a row of distances and shift the products into place (rel_shift), which leaves products
 * of other queries above the diagonal, valid under a causal mask alone. Nothing of the kind arises here, as
 * each pair takes the product of its own distance; and distances may be any real numbers. Where positions are
 * whole and pairs are many, W_R R is made for all distances of a request, once, and costs little beside the
 * content; else queries are turned, which costs d_model/d times what the content does (kernels/sines.h).
 *
 * Or `table` gives rows R W_R as they are [rows, H*d] or [rows, H, d], one for each whole distance i - j from
 * first_distance downwards: XLNet's 2T rows from T to -T + 1, Transformer-XL's T from T - 1 to 0 for a causal
 * mask. It costs as much as the content does, see kernels/band.h. A query that sees a key at another distance
 * is an error at the positions; of pairs that no query sees the term is u.k alone.
 *
 * Or a seed makes w_r, u and v: tables 0, 1 and 2 of core/cells.h.
 */
#include "encodings/transformer_xl.h"

#include "core/admit.h"
#include "core/ladder.h"
#include "kernels/linalg.h"
#include "kernels/vector.h"

#include <math.h>

#define MAX_WIDTH    65536
#define SEED_D_MODEL 64

enum {
    FIELD_D_MODEL,
    FIELD_BASE,
    FIELD_W_R,
    FIELD_CONTENT_BIAS,
    FIELD_POSITION_BIAS,
    FIELD_TABLE,
    FIELD_FIRST_DISTANCE,
    FIELD_SEED,
    FIELD_STD
};

static const struct pe_field fields[] = {
    [FIELD_D_MODEL] = {PE_FIELD(transformer_xl, d_model), .min = 2, .max = MAX_WIDTH,
                       .doc = "width of the sinusoids, even; default: as w_r has rows, or 64 with a seed"},
    [FIELD_BASE] = {PE_FIELD(transformer_xl, base), .min = 1, .max = 1e300, .def = "10000",
                    .doc = "base of their frequencies, which run from 1 down towards 1/base"},
    [FIELD_W_R] = {PE_FIELD(transformer_xl, w_r), .shape = "[d_model, H*d]",
                   .doc = "projects them for each head, as x.W: the transpose of PyTorch's weight"},
    [FIELD_CONTENT_BIAS] = {PE_FIELD(transformer_xl, content_bias), .shape = "[H, d]",
                            .doc = "u, added to the query where it meets keys (r_w_bias); default zero"},
    [FIELD_POSITION_BIAS] = {PE_FIELD(transformer_xl, position_bias), .shape = "[H, d]",
                             .doc = "v, added to it where it meets distances (r_r_bias); default zero"},
    [FIELD_TABLE] = {PE_FIELD(transformer_xl, table), .shape = "[rows, H*d] or [rows, H, d]",
                     .doc = "in place of w_r: projected sinusoids, of distances query - key that fall by 1"},
    [FIELD_FIRST_DISTANCE] = {PE_FIELD(transformer_xl, first_distance), .min = -PE_POSITION_MAX,
                              .max = PE_POSITION_MAX, .doc = "query - key of the table's first row"},
    [FIELD_SEED] = {PE_FIELD(transformer_xl, seed), .min = 0, .max = PE_POSITION_MAX,
                    .doc = "in place of tables: makes w_r, content_bias and position_bias"},
    [FIELD_STD] = {PE_FIELD(transformer_xl, std), .min = 0, .max = 1000, .def = "1",
                   .flags = PE_FIELD_OPEN_MIN, .doc = "standard deviation of the numbers that a seed makes"},
};

static bool is_given(const struct transformer_xl *xl, int field) {
    return pe_field_given(fields, &fields[field], xl);
}

/* ---- Parameters ---------------------------------------------------------------------------------------- */

static const struct pe_table *table_of(const struct transformer_xl *xl, int cells) {
    const struct pe_table *const tables[] = {&xl->w_r, &xl->content_bias, &xl->position_bias, &xl->table};
    return tables[cells];
}

static const char *name_of(int cells) {
    return (const char *const[]){"w_r", "content_bias", "position_bias", "table"}[cells];
}

static int tables_check(const struct transformer_xl *xl, struct pe_error *err) {
    bool seeded = is_given(xl, FIELD_SEED);
    for (int cells = 0; cells < CELLS_COUNT; cells++) {
        const struct pe_table *table = table_of(xl, cells);
        const struct pe_tensor *tensor = table->tensor;
        bool there = pe_cells_given(table);
        char shape[128];
        if (there && pe_cells_check(table, name_of(cells), seeded, err)) {
            return err->code;
        }
        bool fits = there && (tensor->rank == 2 || (tensor->rank == 3 && cells == CELLS_TABLE)) &&
                    pe_tensor_count(tensor) > 0 && pe_tensor_count(tensor) / tensor->dim[0] <= PE_GEMM_MAX;
        if (there && !fits) {
            return pe_fail(err, PE_ERR_SHAPE, name_of(cells), "got shape %s, allowed is %s",
                           pe_tensor_shape_text(tensor, shape, sizeof shape),
                           fields[cells == CELLS_TABLE ? FIELD_TABLE : FIELD_W_R + cells].shape);
        }
    }
    return PE_OK;
}

/* Where the sinusoids' projections come from: w_r, a table, or a seed. */
static int source_check(const struct transformer_xl *xl, struct pe_error *err) {
    bool table = xl->table.tensor, matrix = xl->w_r.tensor;
    if (table && matrix) {
        return pe_fail(err, PE_ERR_CONFLICT, "table", "is given, and so is w_r: give one of them");
    }
    if (!table && !matrix && !is_given(xl, FIELD_SEED)) {
        return pe_fail(
            err, PE_ERR_MISSING, "w_r",
            "is missing: give it, or a table of projected sinusoids, or a seed for random numbers");
    }
    if (table && !is_given(xl, FIELD_FIRST_DISTANCE)) {
        return pe_fail(err, PE_ERR_MISSING, "first_distance",
                       "is missing: query - key of the table's first row");
    }
    if (!table && is_given(xl, FIELD_FIRST_DISTANCE)) {
        return pe_fail(err, PE_ERR_CONFLICT, "first_distance", "is of a table, and there is none");
    }
    if (table && is_given(xl, FIELD_D_MODEL)) {
        return pe_fail(err, PE_ERR_CONFLICT, "d_model", "is of sinusoids, which table gives projected");
    }
    return PE_OK;
}

size_t pe_transformer_xl_d_model(const struct transformer_xl *xl) {
    if (is_given(xl, FIELD_D_MODEL)) {
        return (size_t)xl->d_model;
    }
    if (xl->w_r.tensor) {
        return xl->w_r.tensor->dim[0];
    }
    return xl->table.tensor ? 0 : SEED_D_MODEL;
}

static int transformer_xl_check(const void *params, struct pe_error *err) {
    const struct transformer_xl *xl = params;
    if (tables_check(xl, err) || source_check(xl, err)) {
        return err->code;
    }
    size_t d_model = pe_transformer_xl_d_model(xl), rows = xl->w_r.tensor ? xl->w_r.tensor->dim[0] : d_model;
    const char *field = is_given(xl, FIELD_D_MODEL) ? "d_model" : "w_r";
    if (rows != d_model) {
        return pe_fail(err, PE_ERR_SHAPE, "w_r", "has %zu rows, but d_model is %zu", rows, d_model);
    }
    if (d_model % 2 || d_model > MAX_WIDTH) {
        return pe_fail(err, PE_ERR_RANGE, field,
                       "makes sinusoids of width %zu, allowed are even ones up to %d: a sine and a cosine of "
                       "each frequency",
                       d_model, MAX_WIDTH);
    }
    return PE_OK;
}

static void transformer_xl_resolve(void *params, void *data) {
    struct transformer_xl *xl = params;
    (void)data;
    if (!xl->table.tensor) {
        xl->d_model = (int64_t)pe_transformer_xl_d_model(xl);
        xl->given |= UINT64_C(1) << FIELD_D_MODEL;
    }
}

static size_t transformer_xl_plan_bytes(const void *params) {
    return sizeof(struct transformer_xl_plan) +
           pe_transformer_xl_d_model(params) / 2 * sizeof(struct pe_turn);
}

struct pe_cells pe_transformer_xl_cells(const struct transformer_xl *xl, int cells) {
    const struct pe_tensor *tensor = table_of(xl, cells)->tensor;
    return (struct pe_cells){.tensor = tensor,
                             .columns = tensor ? pe_tensor_count(tensor) / tensor->dim[0] : 0,
                             .seed = xl->seed,
                             .std = xl->std,
                             .number = (uint32_t)cells};
}

bool pe_transformer_xl_has(const struct transformer_xl *xl, int cells) {
    return table_of(xl, cells)->tensor || (is_given(xl, FIELD_SEED) && cells != CELLS_TABLE);
}

static int transformer_xl_plan(struct pe_plan_view *view, struct pe_error *err) {
    const struct transformer_xl *xl = view->params;
    struct transformer_xl_plan *plan = view->data;
    size_t d_model = pe_transformer_xl_d_model(xl);
    for (int cells = 0; cells < CELLS_COUNT; cells++) {
        const struct pe_tensor *tensor = table_of(xl, cells)->tensor;
        const struct pe_cells made = pe_transformer_xl_cells(xl, cells);
        plan->largest[cells] = !tensor && pe_transformer_xl_has(xl, cells)
                                   ? pe_cells_largest(&made, err->stop)
                                   : pe_vector_largest_of(tensor, err->stop);
    }
    if (!xl->table.tensor) {
        pe_ladder_fill(plan->turns, d_model / 2, xl->base, 2, (uint32_t)d_model);
    }
    return pe_error_poll(err);
}

/* ---- Requests ------------------------------------------------------------------------------------------ */

static int transformer_xl_admit(const struct pe_plan_view *view, const struct pe_positions *positions,
                                struct pe_error *err) {
    const struct transformer_xl *xl = view->params;
    return xl->table.tensor ? pe_positions_whole(positions, "a distance is a row of the table", err) : PE_OK;
}

static void transformer_xl_distances(const struct pe_plan_view *view, double *least, double *most) {
    const struct transformer_xl *xl = view->params;
    if (xl->table.tensor) {
        *least = -(double)xl->first_distance;
        *most = *least + (double)xl->table.tensor->dim[0] - 1;
    }
}

static int transformer_xl_suits(const struct pe_plan_view *view, const struct pe_relation *relation,
                                struct pe_error *err) {
    const struct transformer_xl *xl = view->params;
    for (int cells = 0; cells < CELLS_COUNT; cells++) {
        const struct pe_tensor *tensor = table_of(xl, cells)->tensor;
        size_t heads = relation->heads, width = relation->width;
        if (!tensor) {
            continue;
        }
        bool split = tensor->rank == 3 || cells == CELLS_CONTENT || cells == CELLS_POSITION;
        size_t got = split ? tensor->dim[tensor->rank - 2] : heads, columns = tensor->dim[tensor->rank - 1];
        if (got != heads || columns != (split ? width : heads * width)) {
            char shape[128];
            return pe_fail(err, PE_ERR_SHAPE, name_of(cells),
                           "has shape %s, but there are %zu heads of width %zu",
                           pe_tensor_shape_text(tensor, shape, sizeof shape), heads, width);
        }
    }
    return PE_OK;
}

static double transformer_xl_reach(const struct pe_plan_view *view, const struct pe_relation *relation) {
    const struct transformer_xl *xl = view->params;
    const double *largest = ((const struct transformer_xl_plan *)view->data)->largest;
    double d = (double)relation->width, query = relation->largest_query + largest[CELLS_POSITION];
    double row =
        xl->table.tensor ? largest[CELLS_TABLE] : largest[CELLS_W_R] * (double)xl->d_model; /* R W_R */
    double turned = d * query * row * (xl->table.tensor ? 1 : 2); /* z and z' of a frequency */
    double content = d * largest[CELLS_CONTENT] * relation->largest_key;
    double most = fmax(row, (turned + content) * fmax(1, fabs(relation->scale))); /* before and after it */
    for (int cells = 0; cells < CELLS_COUNT; cells++) {
        most = fmax(most, largest[cells]);
    }
    return fmax(most, query);
}

const struct pe_encoding pe_transformer_xl = {
    .info =
        {
            .type = "transformer_xl",
            .title = "Transformer-XL's relative attention",
            .doc =
                "Sinusoids of the distance, projected for each head, meet the query, and learned vectors of "
                "the head take the query's place beside it. Also XLNet.",
            .reference = "Dai et al. 2019, arXiv:1901.02860; Yang et al. 2019, arXiv:1906.08237",
            .family = PE_FAMILY_QUERY,
            .params_size = sizeof(struct transformer_xl),
            .fields = fields,
            .n_fields = PE_COUNT(fields),
        },
    .check = transformer_xl_check,
    .plan_bytes = transformer_xl_plan_bytes,
    .resolve = transformer_xl_resolve,
    .plan = transformer_xl_plan,
    .admit = transformer_xl_admit,
    .suits = transformer_xl_suits,
    .distances = transformer_xl_distances,
    .term = pe_transformer_xl_term,
    .shared_bytes = pe_transformer_xl_shared_bytes,
    .share = pe_transformer_xl_share,
    .scratch_bytes = pe_transformer_xl_scratch_bytes,
    .reach = transformer_xl_reach,
    .pair_cost_ns = pe_transformer_xl_pair_cost_ns,
};
