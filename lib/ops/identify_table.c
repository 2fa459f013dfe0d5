/* SPDX-License-Identifier: MIT
 *
 * identify: what a table of vectors may be: positions written plainly, and sinusoids, over positions as they are and
 * then, until something explains the table, over rounded ones.
 */
#include "ops/identify.h"

#include <math.h>
#include <string.h>

/* The mean by which the numbers are more than the positions, and the length by which these were divided: told without
 * rows of zeros, which may be of padding. */
static int search_naive(struct pe_identify *op, struct pe_error *err) {
    double more = 0, pp = 0, px = 0;
    for (size_t k = 0; k < op->n; k++) {
        for (size_t c = 0; c < op->items && !op->zero[k]; c++) {
            double x = op->got[k * op->items + c];
            more += (x - op->p[k]) / (double)((op->n - op->n_zero) * op->items);
            pp += op->p[k] * op->p[k];
            px += op->p[k] * x;
        }
    }
    double length = px > 0 ? fmax(nearbyint(pp / px), 1) : 0;
    double most = ldexp(1, op->width < 53 ? (int)op->width : 53), last = op->p[op->n - 1];
    const struct {
        const char *form;
        double shift, length, wrap;
    } forms[] = {{"integer", nearbyint(more), 0, 0},
                 {"normalized", 0, length, 0},
                 {"binary", 0, 0, last >= most && op->p[0] >= 0 ? most : 0}};
    for (size_t i = 0; i < PE_COUNT(forms); i++) {
        struct pe_trial trial = {.naive = forms[i].form,
                                 .length = forms[i].length,
                                 .wrap = forms[i].wrap,
                                 .arithmetic = &pe_identify_arithmetics[0],
                                 .width = op->width,
                                 .penalty = 4 + log1p(fabs(forms[i].shift))};
        trial.ladder.v[PE_LADDER_OFFSET] = forms[i].shift;
        bool told = i != 1 || length > 1; /* p / 1 is p */
        if (told && pe_trial_add(op, &trial, err)) {
            return err->code;
        }
    }
    return PE_OK;
}

/* Features of NeRF, which are of real coordinates. */
static int search_nerf(struct pe_identify *op, struct pe_error *err) {
    for (int nerf = 1; nerf <= 2 && op->width >= 4 && op->width <= 64 && !err->code; nerf++) {
        struct pe_trial trial = {
            .nerf = nerf, .arithmetic = &pe_identify_arithmetics[0], .width = op->width, .penalty = 6};
        if (pe_trial_add(op, &trial, err)) {
            return err->code;
        }
    }
    return PE_OK;
}

/* An odd width, and a last column that may be nothing but zeros. */
static bool may_end_in_zeros(const struct pe_identify *op) {
    double sum = 0;
    for (size_t k = 0; k < op->n; k++) {
        double x = op->got[k * op->items + op->items - 1];
        sum += x * x;
    }
    return op->width % 2 == 1 && op->width >= 3 && sum < 0.01 * op->power * (double)op->n;
}

/* Sinusoids in the first `width` columns. */
static int search_width(struct pe_identify *op, size_t width, struct pe_error *err) {
    struct pe_search search;
    if (pe_search_open(&search, op, width, 0, err)) {
        return err->code;
    }
    for (size_t pass = 0; pass < pe_identify_n_passes && (pass == 0 || !pe_search_is_good(op)); pass++) {
        if (pe_search_over(&search, pe_identify_shapes, pe_identify_n_shapes, pass, err) ||
            (pass == 0 && pe_search_usual(&search, pe_identify_shapes, pe_identify_n_shapes, err))) {
            return err->code;
        }
    }
    return PE_OK;
}

int pe_identify_table(struct pe_identify *op, struct pe_error *err) {
    bool odd = may_end_in_zeros(op), naive = op->hint_type && strcmp(op->hint_type, "naive") == 0;
    if (search_naive(op, err) || search_nerf(op, err) || pe_identify_image(op, err)) {
        return err->code;
    }
    bool told = pe_search_is_good(op) && op->trials[0].score < INFINITY && pe_trial_best(op)->grid;
    /* The zero column first: then the paper's formula. */
    if (!naive && !told && (!odd || !search_width(op, op->width - 1, err))) {
        search_width(op, op->width, err);
    }
    return err->code;
}
