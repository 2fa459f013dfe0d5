/* SPDX-License-Identifier: MIT
 *
 * KERPLE: kernelised relative positions. Each head learns two positive numbers, p and a, and takes off
 *
 *     log      p ln(1 + a |i - j|)         grows more and more slowly: far keys stay in sight
 *     power    a |i - j|^p                 with p = 1 this is ALiBi with learned slopes
 *
 * which are conditionally positive definite kernels of the distance: the reason why the softmax sees a
 * similarity at any length.
 */
#include "encodings/encoding.h"

#include "core/cells.h"

#include <math.h>

enum form { FORM_LOG = 1, FORM_POWER };

struct kerple {
    uint64_t given;
    int form;
    const struct pe_tensor *p, *a;
};

static const struct pe_choice forms[] = {
    {"log", FORM_LOG, "-p ln(1 + a |i - j|)"},
    {"power", FORM_POWER, "-a |i - j|^p"},
    {0},
};

static const struct pe_field fields[] = {
    {PE_FIELD(kerple, form), .choices = forms, .def = "log", .doc = "which kernel"},
    {PE_FIELD(kerple, p), .flags = PE_FIELD_REQUIRED | PE_FIELD_NUMBERS, .shape = "[1] or [H]",
     .doc = "positive; one for all heads or one for each; form power: at most 2"},
    {PE_FIELD(kerple, a), .flags = PE_FIELD_REQUIRED | PE_FIELD_NUMBERS, .shape = "[1] or [H]",
     .doc = "positive; one for all heads or one for each"},
};

#define P_MOST 1e6 /* of form log; A_MOST * 2^53^2 is far from the largest double */
#define A_MOST 1e6

static double at(const struct pe_tensor *numbers, size_t head) {
    const struct pe_cells cells = {.tensor = numbers, .columns = 1};
    return pe_cells_at(&cells, pe_tensor_count(numbers) > 1 ? head : 0, 0);
}

static int numbers_check(const struct pe_tensor *numbers, const char *field, double most,
                         struct pe_error *err) {
    char shape[128], path[32];
    if (numbers->rank != 1 || numbers->dim[0] == 0) {
        return pe_fail(err, PE_ERR_SHAPE, field,
                       "has shape %s, allowed are one number or a list of one per head",
                       pe_tensor_shape_text(numbers, shape, sizeof shape));
    }
    for (size_t h = 0; h < numbers->dim[0]; h++) {
        double value = at(numbers, h);
        if (!(value > 0 && value <= most)) {
            pe_fail(err, PE_ERR_RANGE, pe_tensor_index_text(numbers, h, path, sizeof path),
                    "got %.17g, allowed are numbers above 0 and up to %g", value, most);
            return pe_error_at(err, field);
        }
    }
    return PE_OK;
}

static int kerple_check(const void *params, struct pe_error *err) {
    const struct kerple *kerple = params;
    double p_most = kerple->form == FORM_POWER ? 2 : P_MOST;
    return numbers_check(kerple->p, "p", p_most, err) || numbers_check(kerple->a, "a", A_MOST, err)
               ? err->code
               : PE_OK;
}

/* The largest of the numbers. */
struct plan {
    double most_p, most_a;
};

static size_t kerple_plan_bytes(const void *params) {
    (void)params;
    return sizeof(struct plan);
}

static int kerple_plan(struct pe_plan_view *view, struct pe_error *err) {
    const struct kerple *kerple = view->params;
    const struct pe_cells p = {.tensor = kerple->p, .columns = 1}, a = {.tensor = kerple->a, .columns = 1};
    struct plan *plan = view->data;
    plan->most_p = pe_cells_largest(&p, err->stop);
    plan->most_a = pe_cells_largest(&a, err->stop);
    return pe_error_poll(err);
}

static int kerple_suits(const struct pe_plan_view *view, const struct pe_relation *relation,
                        struct pe_error *err) {
    size_t heads = relation->heads;
    const struct kerple *kerple = view->params;
    size_t n_p = kerple->p->dim[0], n_a = kerple->a->dim[0];
    if ((n_p == 1 || n_p == heads) && (n_a == 1 || n_a == heads)) {
        return PE_OK;
    }
    bool is_p = n_p != 1 && n_p != heads;
    return pe_fail(err, PE_ERR_SHAPE, is_p ? "p" : "a", "has %zu numbers, but there are %zu heads",
                   is_p ? n_p : n_a, heads);
}

static double kernel(const struct kerple *kerple, double p, double a, double distance) {
    return kerple->form == FORM_POWER ? 0 - a * pow(distance, p) : 0 - p * log1p(a * distance);
}

static void kerple_bias(const struct pe_plan_view *view, const struct pe_pair_row *row, double *out) {
    const struct kerple *kerple = view->params;
    double p = at(kerple->p, row->head), a = at(kerple->a, row->head);
    for (size_t j = 0; j < row->n; j++) {
        out[j] = kernel(kerple, p, a, fabs(row->keys[j] - row->query));
    }
}

static bool kerple_stationary(const struct pe_plan_view *view) {
    (void)view;
    return true;
}

/* Each kernel grows with p, with a and with the distance, from 1 on. */
static double kerple_reach(const struct pe_plan_view *view, const struct pe_relation *relation) {
    const struct plan *plan = view->data;
    return -kernel(view->params, plan->most_p, plan->most_a, fmax(relation->distance, 1));
}

static double kerple_cost_ns(const struct pe_plan_view *view, enum pe_dtype dtype) {
    (void)dtype;
    (void)view;
    return 9; /* a power or a logarithm */
}

const struct pe_encoding pe_kerple = {
    .info =
        {
            .type = "kerple",
            .title = "KERPLE",
            .doc =
                "A learned kernel of the distance for each head, logarithmic or a power: the logarithm takes "
                "off less and less, so far keys stay in sight at any length.",
            .reference = "Chi et al. 2022, KERPLE, arXiv:2205.09921",
            .family = PE_FAMILY_BIAS,
            .params_size = sizeof(struct kerple),
            .fields = fields,
            .n_fields = PE_COUNT(fields),
        },
    .check = kerple_check,
    .plan_bytes = kerple_plan_bytes,
    .plan = kerple_plan,
    .suits = kerple_suits,
    .bias = kerple_bias,
    .stationary = kerple_stationary,
    .reach = kerple_reach,
    .row_cost_ns = kerple_cost_ns,
};
