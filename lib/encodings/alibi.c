/* SPDX-License-Identifier: MIT
 *
 * ALiBi: attention with linear biases. Head h looks at the distance through a slope of its own,
 *
 *     b_ij = -m_h |i - j|                  no parameters, nothing learned, any length
 *
 * with slopes in a geometric sequence: m_h = 2^(-8(h+1)/H) for a number of heads H that is a power of two.
 * For others the paper's code takes the slopes of the power of two P below H, then every other one of those
 * of 2P: 2^(-8(2(h-P)+1)/(2P)), so they are not in the order of their size; using the formula for all H is
 * the commonest fault.
 *
 * MPT and its kin take every odd slope of the power of two above H, then the even ones, until there are H. As
 * 2^(-8(2k+2)/(2P)) = 2^(-8(k+1)/P), these are the same numbers in the same order; bias_max takes the place
 * of the 8.
 *
 * A causal mask leaves j <= i, where -m(i - j) = m j - m i, and the softmax does not see m i, which is the
 * same for the whole row. So BLOOM and MPT add m j alone: form causal_key. Without a causal mask that is a
 * different encoding.
 */
#include "encodings/encoding.h"

#include "core/wide.h"

#include <math.h>

enum rule { RULE_PRESS = 1, RULE_MPT };
enum form { FORM_SYMMETRIC = 1, FORM_CAUSAL_KEY };

struct alibi {
    uint64_t given;
    int rule;
    int form;
    double bias_max;
};

static const struct pe_choice rules[] = {
    {"press", RULE_PRESS, "the paper's code: slopes of the power of two below, then every other of the next"},
    {"mpt", RULE_MPT, "MPT: odd slopes of the power of two above, then the even ones: the same numbers"},
    {0},
};
static const struct pe_choice forms[] = {
    {"symmetric", FORM_SYMMETRIC, "-slope * |key - query|"},
    {"causal_key", FORM_CAUSAL_KEY,
     "slope * key, as BLOOM and MPT add it: the same weights under a causal mask"},
    {0},
};

static const struct pe_field fields[] = {
    {PE_FIELD(alibi, rule), .choices = rules, .def = "press",
     .doc = "the slopes where the number of heads is not a power of two"},
    {PE_FIELD(alibi, form), .choices = forms, .def = "symmetric", .doc = "what is added"},
    {PE_FIELD(alibi, bias_max), .min = 0, .max = 1000, .def = "8", .flags = PE_FIELD_OPEN_MIN,
     .doc = "the slope of the last head is 2^-bias_max"},
};

/* 2^(-bias_max * num / den), correctly rounded. */
static double slope_power(double bias_max, size_t num, size_t den) {
    struct pe_wide x = pe_wide_of(bias_max);
    pe_wide_mul_small(&x, &x, (uint32_t)num);
    pe_wide_div_small(&x, &x, (uint32_t)den);
    pe_wide_mul(&x, &x, &pe_wide_ln2);
    x.sign = -x.sign;
    pe_wide_exp(&x, &x);
    return pe_wide_nearest(&x);
}

/* Heads up to the power of two below H, and those beyond it. */
static double slope_press(double bias_max, size_t head, size_t heads) {
    size_t below = 1;
    while (below * 2 <= heads) {
        below *= 2;
    }
    return head < below ? slope_power(bias_max, head + 1, below)
                        : slope_power(bias_max, 2 * (head - below) + 1, 2 * below);
}

/* Slopes 2, 4, 6 .. of the power of two above, then 1, 3, 5 ..; all in order where H is one itself. */
static double slope_mpt(double bias_max, size_t head, size_t heads) {
    size_t above = 1;
    while (above < heads) {
        above *= 2;
    }
    if (above == heads) {
        return slope_power(bias_max, head + 1, above);
    }
    size_t even = above / 2;
    return slope_power(bias_max, head < even ? 2 * head + 2 : 2 * (head - even) + 1, above);
}

/* The slope, which takes thousands of biases' time. */
static void alibi_head(const struct pe_plan_view *view, size_t head, size_t heads, size_t first, size_t n,
                       double *out) {
    (void)first; /* one number: the slope */
    (void)n;
    const struct alibi *alibi = view->params;
    *out = (alibi->rule == RULE_MPT ? slope_mpt : slope_press)(alibi->bias_max, head, heads);
}

static void alibi_bias(const struct pe_plan_view *view, const struct pe_pair_row *row, double *out) {
    const struct alibi *alibi = view->params;
    double m = row->of_head[0];
    bool by_key = alibi->form == FORM_CAUSAL_KEY;
    for (size_t j = 0; j < row->n; j++) {
        out[j] = by_key ? m * row->keys[j] : 0 - m * fabs(row->keys[j] - row->query); /* no -0 */
    }
}

static bool alibi_stationary(const struct pe_plan_view *view) {
    return ((const struct alibi *)view->params)->form == FORM_SYMMETRIC;
}

/* No slope is above 1. */
static double alibi_reach(const struct pe_plan_view *view, const struct pe_relation *relation) {
    const struct alibi *alibi = view->params;
    return alibi->form == FORM_CAUSAL_KEY ? relation->furthest_key : relation->distance;
}

static double alibi_cost_ns(const struct pe_plan_view *view, enum pe_dtype dtype) {
    (void)dtype;
    (void)view;
    return 1;
}

const struct pe_encoding pe_alibi = {
    .info =
        {
            .type = "alibi",
            .title = "ALiBi",
            .doc = "Each head takes off what the distance is worth to it: -m_h |i - j|, with slopes m_h in a "
                   "geometric sequence. Nothing is learned, and no length is too long.",
            .reference = "Press et al. 2022, Train short, test long, arXiv:2108.12409",
            .family = PE_FAMILY_BIAS,
            .params_size = sizeof(struct alibi),
            .fields = fields,
            .n_fields = PE_COUNT(fields),
        },
    .head_numbers = alibi_head,
    .bias = alibi_bias,
    .stationary = alibi_stationary,
    .reach = alibi_reach,
    .row_cost_ns = alibi_cost_ns,
};
