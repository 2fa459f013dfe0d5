/* SPDX-License-Identifier: MIT
 *
 * FIRE: functional interpolation for relative positions. A small network f maps the distance to a bias for
 * each head, after the distance was brought to [0, 1] by the query's own place:
 *
 *     b(i, j) = f( ln(c |i - j| + 1) / (ln(c max(i, L) + 1) + eps) )
 *     f(x)    = relu(x w1 + b1) w2 + b2                 1 -> n -> H
 *
 * A longer sequence asks f for nothing that it has not seen: it interpolates. Up to the threshold L the
 * normaliser is fixed, so that short sequences still tell their distances apart. c is learned, and so is L
 * (as a multiple of a first value). It is made for causal attention, where i is the largest distance that a
 * query can have; keys behind the query get f of a number that may be above 1.
 *
 * Without the layers `seed` makes them, with n = 32: of w1, b1, w2 and b2, tables 0 to 3 of core/cells.h, the
 * number k of the first two is cell (k, 0), that of w2 cell (k, head), and that of b2 cell (head, 0).
 */
#include "encodings/encoding.h"

#include "core/cells.h"

#include <math.h>

#define WIDTH_SEEDED 32 /* of the network, as published */
#define AT_ONCE      64 /* keys, and units, on the stack */

enum { TABLE_W1, TABLE_B1, TABLE_W2, TABLE_B2, N_TABLES };

struct fire {
    uint64_t given;
    double c, L, eps;
    struct pe_table w1, b1, w2, b2;
    int64_t seed;
    double std;
};

enum { FIELD_C, FIELD_L, FIELD_EPS, FIELD_W1, FIELD_B1, FIELD_W2, FIELD_B2, FIELD_SEED, FIELD_STD };

static const struct pe_field fields[] = {
    [FIELD_C] = {PE_FIELD(fire, c), .min = 0, .max = 1e6, .def = "0.1",
                 .doc = "how soon the logarithm bends"},
    [FIELD_L] = {PE_FIELD(fire, L), .min = 0, .max = PE_POSITION_MAX, .def = "512",
                 .doc =
                     "the threshold: the product of multiplier and first value, where a model stores both"},
    [FIELD_EPS] = {PE_FIELD(fire, eps), .min = 0, .max = 1, .def = "1e-6",
                   .doc = "keeps the division from zero"},
    [FIELD_W1] = {PE_FIELD(fire, w1), .shape = "[n], [1, n] or [n, 1]", .doc = "first layer"},
    [FIELD_B1] = {PE_FIELD(fire, b1), .shape = "[n]", .doc = "its bias"},
    [FIELD_W2] = {PE_FIELD(fire, w2), .shape = "[n, H]",
                  .doc = "second layer, as in x.w2: torch's weight transposed"},
    [FIELD_B2] = {PE_FIELD(fire, b2), .shape = "[H]", .doc = "its bias"},
    [FIELD_SEED] = {PE_FIELD(fire, seed), .min = 0, .max = PE_POSITION_MAX,
                    .doc = "in place of the layers: random ones of width 32"},
    [FIELD_STD] = {PE_FIELD(fire, std), .min = 0, .max = 1000, .def = "1", .flags = PE_FIELD_OPEN_MIN,
                   .doc = "standard deviation of their numbers"},
};

static bool seeded(const struct fire *fire) {
    return pe_field_given(fields, &fields[FIELD_SEED], fire);
}

static struct pe_cells cells_of(const struct fire *fire, int table) {
    const struct pe_tensor *tensors[N_TABLES] = {fire->w1.tensor, fire->b1.tensor, fire->w2.tensor,
                                                 fire->b2.tensor};
    const struct pe_tensor *tensor = tensors[table];
    return (struct pe_cells){.tensor = tensor,
                             .columns = table == TABLE_W2 && tensor ? tensor->dim[1] : 1,
                             .seed = fire->seed,
                             .std = fire->std,
                             .number = (uint32_t)table};
}

static size_t hidden(const struct fire *fire) {
    return seeded(fire) ? WIDTH_SEEDED : pe_tensor_count(fire->b1.tensor);
}

static int shapes_check(const struct fire *fire, struct pe_error *err) {
    const struct pe_tensor *w1 = fire->w1.tensor, *b1 = fire->b1.tensor, *w2 = fire->w2.tensor;
    size_t n = pe_tensor_count(w1);
    if (n < 1 || n > 4096 || w1->rank < 1 || w1->rank > 2 ||
        (w1->rank == 2 && w1->dim[0] != n && w1->dim[1] != n)) {
        return pe_cells_shape_fail(w1, "w1", "[n], [1, n] or [n, 1] with n up to 4096", err);
    }
    if (b1->rank != 1 || b1->dim[0] != n) {
        return pe_cells_shape_fail(b1, "b1", "[n], with the n of w1", err);
    }
    if (w2->rank != 2 || w2->dim[0] != n || w2->dim[1] < 1) {
        return pe_cells_shape_fail(w2, "w2", "[n, H], with the n of w1", err);
    }
    if (fire->b2.tensor->rank != 1 || fire->b2.tensor->dim[0] != w2->dim[1]) {
        return pe_cells_shape_fail(fire->b2.tensor, "b2", "[H], with the H of w2", err);
    }
    return PE_OK;
}

static int fire_check(const void *params, struct pe_error *err) {
    const struct fire *fire = params;
    const struct pe_table *tables[N_TABLES] = {&fire->w1, &fire->b1, &fire->w2, &fire->b2};
    static const char *const names[N_TABLES] = {"w1", "b1", "w2", "b2"};
    for (int i = 0; i < N_TABLES; i++) {
        if (pe_cells_check(tables[i], names[i], seeded(fire), err)) {
            return err->code;
        }
    }
    if (fire->eps == 0 && (fire->c == 0 || fire->L == 0)) {
        return pe_fail(err, PE_ERR_RANGE, "eps", "got 0, which with c or L of 0 divides by zero");
    }
    return seeded(fire) ? PE_OK : shapes_check(fire, err);
}

static int fire_suits(const struct pe_plan_view *view, const struct pe_relation *relation,
                      struct pe_error *err) {
    size_t heads = relation->heads;
    const struct fire *fire = view->params;
    if (seeded(fire) || fire->w2.tensor->dim[1] == heads) {
        return PE_OK;
    }
    return pe_fail(err, PE_ERR_SHAPE, "w2", "has columns for %zu heads, but there are %zu",
                   fire->w2.tensor->dim[1], heads);
}

struct plan {
    double largest[N_TABLES]; /* |number| of each */
    double first[];           /* w1 and b1 side by side, [n, 2] */
};

static size_t fire_plan_bytes(const void *params) {
    return sizeof(struct plan) + hidden(params) * 2 * sizeof(double);
}

static int fire_plan(struct pe_plan_view *view, struct pe_error *err) {
    const struct fire *fire = view->params;
    const struct pe_cells w1 = cells_of(fire, TABLE_W1), b1 = cells_of(fire, TABLE_B1);
    struct plan *plan = view->data;
    size_t n = hidden(fire);
    for (size_t k = 0; k < n; k++) {
        plan->first[2 * k] = pe_cells_at(&w1, k, 0);
        plan->first[2 * k + 1] = pe_cells_at(&b1, k, 0);
    }
    for (int table = 0; table < N_TABLES; table++) {
        const struct pe_cells cells = cells_of(fire, table);
        plan->largest[table] = pe_cells_largest(&cells, err->stop);
    }
    return pe_error_poll(err);
}

/* Units first .. first+n-1 of the network for one head: relu(x w1 + b1) w2, added to out. */
static void units_add(const struct pe_plan_view *view, size_t head, size_t first, const double *x, size_t n,
                      double *out) {
    const struct pe_cells w2 = cells_of(view->params, TABLE_W2);
    const double *of = ((const struct plan *)view->data)->first + 2 * first;
    double weight[AT_ONCE];
    size_t left = hidden(view->params) - first, units = left < AT_ONCE ? left : AT_ONCE;
    for (size_t k = 0; k < units; k++) {
        weight[k] = pe_cells_at(&w2, first + k, head);
    }
    for (size_t k = 0; k < units; k++) {
        for (size_t j = 0; j < n; j++) {
            double unit = x[j] * of[2 * k] + of[2 * k + 1];
            out[j] += unit > 0 ? unit * weight[k] : 0;
        }
    }
}

static void fire_bias(const struct pe_plan_view *view, const struct pe_pair_row *row, double *out) {
    const struct fire *fire = view->params;
    const struct pe_cells b2 = cells_of(fire, TABLE_B2);
    double most = log1p(fire->c * fmax(row->query, fire->L)) + fire->eps, x[AT_ONCE];
    double start = pe_cells_at(&b2, row->head, 0);
    for (size_t first = 0, n; first < row->n; first += n) {
        n = row->n - first < AT_ONCE ? row->n - first : AT_ONCE;
        for (size_t j = 0; j < n; j++) {
            x[j] = log1p(fire->c * fabs(row->keys[first + j] - row->query)) / most;
            out[first + j] = start;
        }
        for (size_t k = 0; k < hidden(fire); k += AT_ONCE) {
            units_add(view, row->head, k, x, n, out + first);
        }
    }
}

/* Every unit at its largest, with the largest x that these distances can have. */
static double fire_reach(const struct pe_plan_view *view, const struct pe_relation *relation) {
    const struct fire *fire = view->params;
    const double *largest = ((const struct plan *)view->data)->largest;
    double x = log1p(fire->c * relation->distance) / (log1p(fire->c * fire->L) + fire->eps);
    double unit = largest[TABLE_W1] * x + largest[TABLE_B1];
    return (double)hidden(fire) * unit * largest[TABLE_W2] + largest[TABLE_B2];
}

static double fire_cost_ns(const struct pe_plan_view *view, enum pe_dtype dtype) {
    (void)dtype;
    return 30 + 2 * (double)hidden(view->params);
}

const struct pe_encoding pe_fire = {
    .info =
        {
            .type = "fire",
            .title = "FIRE",
            .doc =
                "A small network maps the distance, as a share of the query's own place, to a bias for each "
                "head: longer sequences ask it for nothing it has not seen.",
            .reference = "Li et al. 2024, Functional interpolation for relative positions, arXiv:2310.04418",
            .family = PE_FAMILY_BIAS,
            .params_size = sizeof(struct fire),
            .fields = fields,
            .n_fields = PE_COUNT(fields),
        },
    .check = fire_check,
    .plan_bytes = fire_plan_bytes,
    .plan = fire_plan,
    .suits = fire_suits,
    .bias = fire_bias,
    .reach = fire_reach,
    .row_cost_ns = fire_cost_ns,
};
