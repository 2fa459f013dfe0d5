/* SPDX-License-Identifier: MIT
 *
 * Custom: biases of one's own, by the places of query and key or by their distance:
 *
 *     b(i, j) = matrix[i, j]                            [Tq, Tk], or [H, Tq, Tk]
 *     b(i, j) = by_distance[j - i + n - 1]              [2n - 1], or [H, 2n - 1]: the middle is distance 0
 *
 * Unlike attention's own `bias`, which lies over the logits as they are, these follow the positions. What is
 * outside of the numbers given is an error. -infinity (null in JSON) hides a key.
 */
#include "encodings/encoding.h"

#include "core/admit.h"
#include "core/cells.h"

#include <math.h>

struct custom {
    uint64_t given;
    struct pe_table matrix, by_distance;
};

static const struct pe_field fields[] = {
    {PE_FIELD(custom, matrix), .flags = PE_FIELD_MINUS_INF, .shape = "[Tq, Tk] or [H, Tq, Tk]",
     .doc = "the bias of query position i and key position j at [i, j]"},
    {PE_FIELD(custom, by_distance), .flags = PE_FIELD_MINUS_INF, .shape = "[2n - 1] or [H, 2n - 1]",
     .doc = "the bias of distance r = key - query at r + n - 1, in place of a matrix"},
};

static const struct pe_tensor *numbers_of(const struct custom *custom) {
    return custom->matrix.tensor ? custom->matrix.tensor : custom->by_distance.tensor;
}

/* Axes without the one of heads. */
static int own_axes(const struct custom *custom) {
    return custom->matrix.tensor ? 2 : 1;
}

static size_t heads_of(const struct custom *custom) {
    const struct pe_tensor *numbers = numbers_of(custom);
    return numbers->rank > own_axes(custom) ? numbers->dim[0] : 1;
}

static size_t last(const struct pe_tensor *tensor) {
    return tensor->dim[tensor->rank - 1];
}

static int shape_check(const struct custom *custom, const char *field, struct pe_error *err) {
    const struct pe_tensor *numbers = numbers_of(custom);
    char shape[128];
    int axes = own_axes(custom);
    bool fits = (numbers->rank == axes || numbers->rank == axes + 1) && pe_tensor_count(numbers) > 0;
    if (fits && (axes == 2 || last(numbers) % 2)) {
        return PE_OK;
    }
    return pe_fail(err, PE_ERR_SHAPE, field, "has shape %s, allowed are %s",
                   pe_tensor_shape_text(numbers, shape, sizeof shape),
                   axes == 1 ? "[2n - 1] and [H, 2n - 1]: an odd number of distances"
                             : "[Tq, Tk] and [H, Tq, Tk]");
}

static int custom_check(const void *params, struct pe_error *err) {
    const struct custom *custom = params;
    bool of_distance = pe_cells_given(&custom->by_distance), matrix = pe_cells_given(&custom->matrix);
    const char *field = of_distance ? "by_distance" : "matrix";
    if (of_distance && matrix) {
        return pe_fail(err, PE_ERR_CONFLICT, field, "is given, and so is matrix: give one of them");
    }
    if (!of_distance && !matrix) {
        return pe_fail(err, PE_ERR_MISSING, field, "is missing: give it, or by_distance");
    }
    if (pe_cells_check(of_distance ? &custom->by_distance : &custom->matrix, field, false, err)) {
        return err->code;
    }
    return shape_check(custom, field, err);
}

/* The plan: the largest |number|. */
static size_t custom_plan_bytes(const void *params) {
    (void)params;
    return sizeof(double);
}

static int custom_plan(struct pe_plan_view *view, struct pe_error *err) {
    const struct pe_cells cells = {.tensor = numbers_of(view->params), .columns = 1};
    *(double *)view->data = pe_cells_largest(&cells, err->stop);
    return pe_error_poll(err);
}

static int custom_suits(const struct pe_plan_view *view, const struct pe_relation *relation,
                        struct pe_error *err) {
    size_t heads = relation->heads;
    const struct custom *custom = view->params;
    if (heads_of(custom) == 1 || heads_of(custom) == heads) {
        return PE_OK;
    }
    return pe_fail(err, PE_ERR_SHAPE, custom->matrix.tensor ? "matrix" : "by_distance",
                   "is for %zu heads, but there are %zu", heads_of(custom), heads);
}

static int custom_admit(const struct pe_plan_view *view, const struct pe_positions *positions,
                        struct pe_error *err) {
    (void)view;
    return pe_positions_whole(positions, "numbers are given for whole positions alone", err);
}

/* Are all positions rows (or columns) of the matrix? */
static int side_admit(const double *positions, size_t n, size_t size, const char *field,
                      struct pe_error *err) {
    for (size_t i = 0; i < n; i++) {
        if (!(positions[i] >= 0 && positions[i] < (double)size)) {
            return pe_fail(err, PE_ERR_RANGE, field, "%.17g is not in the matrix, which has 0 to %zu",
                           positions[i], size - 1);
        }
        if (i % 65536 == 0 && pe_error_poll(err)) {
            return err->code;
        }
    }
    return PE_OK;
}

static int custom_admit_relation(const struct pe_plan_view *view, const struct pe_relation *relation,
                                 struct pe_error *err) {
    const struct custom *custom = view->params;
    const struct pe_tensor *numbers = numbers_of(custom);
    if (custom->matrix.tensor) {
        size_t rows = numbers->dim[numbers->rank - 2];
        return side_admit(relation->query_positions, relation->n_query_positions, rows, "query_positions",
                          err) ||
                       side_admit(relation->key_positions, relation->n_key_positions, last(numbers),
                                  "key_positions", err)
                   ? err->code
                   : PE_OK;
    }
    double most = (double)(last(numbers) / 2);
    if (relation->distance <= most) {
        return PE_OK;
    }
    return pe_fail(err, PE_ERR_RANGE, "key_positions",
                   "are up to %.17g from the queries, but by_distance has %.17g to each side",
                   relation->distance, most);
}

/* All rows and columns of a matrix. */
static size_t custom_tokens(const struct pe_plan_view *view, bool keys) {
    const struct custom *custom = view->params;
    const struct pe_tensor *numbers = numbers_of(custom);
    return !custom->matrix.tensor ? 0 : keys ? last(numbers) : numbers->dim[numbers->rank - 2];
}

static void custom_bias(const struct pe_plan_view *view, const struct pe_pair_row *row, double *out) {
    const struct custom *custom = view->params;
    const struct pe_tensor *numbers = numbers_of(custom);
    const struct pe_cells cells = {.tensor = numbers, .columns = last(numbers)};
    size_t head = heads_of(custom) > 1 ? row->head : 0;
    if (custom->matrix.tensor) {
        size_t i = head * numbers->dim[numbers->rank - 2] + (size_t)row->query;
        for (size_t j = 0; j < row->n; j++) {
            out[j] = pe_cells_at(&cells, i, (size_t)row->keys[j]);
        }
        return;
    }
    double middle = (double)(last(numbers) / 2);
    for (size_t j = 0; j < row->n; j++) {
        out[j] = pe_cells_at(&cells, head, (size_t)(row->keys[j] - row->query + middle));
    }
}

static bool custom_stationary(const struct pe_plan_view *view) {
    return ((const struct custom *)view->params)->by_distance.tensor != NULL;
}

static double custom_reach(const struct pe_plan_view *view, const struct pe_relation *relation) {
    (void)relation;
    return *(const double *)view->data;
}

static double custom_cost_ns(const struct pe_plan_view *view, enum pe_dtype dtype) {
    (void)dtype;
    (void)view;
    return 4;
}

const struct pe_encoding pe_custom = {
    .info =
        {
            .type = "custom",
            .title = "A bias of one's own",
            .doc =
                "Numbers that are given, for every query and key or for every distance, added to the logits.",
            .reference = "Shaw et al. 2018, arXiv:1803.02155: any function of a pair of positions will do",
            .family = PE_FAMILY_BIAS,
            .params_size = sizeof(struct custom),
            .fields = fields,
            .n_fields = PE_COUNT(fields),
        },
    .check = custom_check,
    .plan_bytes = custom_plan_bytes,
    .plan = custom_plan,
    .admit = custom_admit,
    .suits = custom_suits,
    .admit_relation = custom_admit_relation,
    .tokens = custom_tokens,
    .bias = custom_bias,
    .stationary = custom_stationary,
    .reach = custom_reach,
    .row_cost_ns = custom_cost_ns,
};
