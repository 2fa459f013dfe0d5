/* SPDX-License-Identifier: MIT
 *
 * Sandwich: the inner product of the sinusoidal vectors of two positions, which depends on their distance
 * alone, as a bias:
 *
 *     b_h(r) = (sum of cos(r / base^(2i/d)) over i = 1..d/2  -  d/2) / (8h/H)       h = 1..H
 *
 * It is 0 at the query, falls with the distance and wavers, as the sinusoids' product does. i begins at 1, so
 * the frequency 1 is not among them. Angles are exact at any distance.
 */
#include "encodings/encoding.h"

#include "core/ladder.h"

#include <math.h>

#define AT_ONCE 64 /* cosines made at a time, on the stack */

struct sandwich {
    uint64_t given;
    int64_t d_model;
    double base;
};

static const struct pe_field fields[] = {
    {PE_FIELD(sandwich, d_model), .min = 2, .max = 4096, .flags = PE_FIELD_REQUIRED,
     .doc = "d, of the sinusoids that are multiplied; even"},
    {PE_FIELD(sandwich, base), .min = 1, .max = 1e12, .def = "10000", .doc = "of their frequencies"},
};

static int sandwich_check(const void *params, struct pe_error *err) {
    const struct sandwich *sandwich = params;
    if (sandwich->d_model % 2) {
        return pe_fail(err, PE_ERR_RANGE, "d_model", "got %lld, allowed are even numbers",
                       (long long)sandwich->d_model);
    }
    return PE_OK;
}

static size_t frequencies(const void *params) {
    return (size_t)((const struct sandwich *)params)->d_model / 2;
}

/* One rung more than is used: the ladder begins with frequency 1. */
static size_t sandwich_plan_bytes(const void *params) {
    return (frequencies(params) + 1) * sizeof(struct pe_turn);
}

static int sandwich_plan(struct pe_plan_view *view, struct pe_error *err) {
    const struct sandwich *sandwich = view->params;
    size_t n = frequencies(sandwich);
    pe_ladder_fill(view->data, n + 1, sandwich->base, 2, (uint32_t)sandwich->d_model);
    return pe_error_poll(err);
}

/* The sum over all frequencies of cos(r w) - 1, in order. */
static double cosines_sum(const struct pe_plan_view *view, double distance) {
    const struct pe_turn *turns = view->data;
    size_t frequency_count = frequencies(view->params);
    double cos[AT_ONCE], sum = 0;
    struct pe_place place;
    pe_place_of(&place, distance, 1, 0);
    for (size_t i = 0, n; i < frequency_count; i += n) {
        n = frequency_count - i < AT_ONCE ? frequency_count - i : AT_ONCE;
        const struct pe_phase_out out = {.cos = cos, .step = 1};
        pe_phase_row(&place, turns + 1 + i, n, PE_DTYPE_F64, &out);
        for (size_t k = 0; k < n; k++) {
            sum += cos[k] - 1;
        }
    }
    return sum;
}

static int sandwich_admit_relation(const struct pe_plan_view *view, const struct pe_relation *relation,
                                   struct pe_error *err) {
    (void)view;
    if (relation->distance <= PE_POSITION_MAX) {
        return PE_OK;
    }
    return pe_fail(err, PE_ERR_RANGE, "key_positions",
                   "are up to %.17g from the queries, allowed are distances up to 2^53", relation->distance);
}

static void sandwich_bias(const struct pe_plan_view *view, const struct pe_pair_row *row, double *out) {
    double share = (double)row->heads / (8 * (double)(row->head + 1));
    for (size_t j = 0; j < row->n; j++) {
        out[j] = cosines_sum(view, fabs(row->keys[j] - row->query)) * share;
    }
}

static bool sandwich_stationary(const struct pe_plan_view *view) {
    (void)view;
    return true;
}

static double sandwich_reach(const struct pe_plan_view *view, const struct pe_relation *relation) {
    return 2 * (double)frequencies(view->params) * (double)relation->heads / 8;
}

static double sandwich_cost_ns(const struct pe_plan_view *view, enum pe_dtype dtype) {
    (void)dtype;
    return 40 * (double)frequencies(view->params);
}

const struct pe_encoding pe_sandwich = {
    .info =
        {
            .type = "sandwich",
            .title = "Sandwich",
            .doc = "The inner product of the sinusoidal vectors of query and key, which depends on their "
                   "distance alone, as a bias with a strength of its own for each head.",
            .reference = "Chi et al. 2023, Dissecting Transformer length extrapolation, arXiv:2212.10356",
            .family = PE_FAMILY_BIAS,
            .params_size = sizeof(struct sandwich),
            .fields = fields,
            .n_fields = PE_COUNT(fields),
        },
    .check = sandwich_check,
    .plan_bytes = sandwich_plan_bytes,
    .plan = sandwich_plan,
    .admit_relation = sandwich_admit_relation,
    .bias = sandwich_bias,
    .stationary = sandwich_stationary,
    .reach = sandwich_reach,
    .row_cost_ns = sandwich_cost_ns,
};
