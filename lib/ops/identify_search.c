/* SPDX-License-Identifier: MIT
 *
 * identify: which hypotheses are tried. Every shape is fitted; a fit is made simple, and tried in all
 * arithmetics. Mistakes are shapes, too. Where nothing explains the table, its positions may have been
 * rounded before they became angles: the same over rounded positions.
 */
#include "ops/identify.h"

#include <math.h>
#include <string.h>

#define FIT_WORTH 0.2  /* of the power: a fit that misses more is none */
#define FIT_GOOD  4e-4 /* it is good: 2 % of the amplitude */
#define FIT_CLOSE 4e-6 /* 0.2 %: as close as noise lets one come */
#define UNUSUAL   16   /* nats of numbers that nobody would write */
#define XPOS      8    /* nats of its two numbers */
#define SIMPLE    10   /* nats of numbers that need not be simpler */

bool pe_search_is_good(const struct pe_identify *op) {
    const struct pe_trial *best = pe_trial_best(op);
    return best && best->square < FIT_GOOD * op->power;
}

bool pe_search_is_close(const struct pe_identify *op) {
    const struct pe_trial *best = pe_trial_best(op);
    return best && best->square < fmax(FIT_CLOSE * op->power, 4 * op->floor * op->floor);
}

/* Simple numbers explain all columns. */
static bool is_settled(const struct pe_search *search) {
    const struct pe_trial *best = pe_trial_best(search->op);
    return pe_search_is_close(search->op) && search->op->kind == PE_IDENTIFY_TABLE &&
           best->penalty < SIMPLE && best->width == search->sheet.width;
}

/* ---- One fit ------------------------------------------------------------------------------------------- */

struct pe_trial pe_search_trial(const struct pe_search *search, const struct pe_shape *shape,
                                const struct pe_ladder *ladder) {
    return (struct pe_trial){.shape = shape,
                             .ladder = *ladder,
                             .width = search->sheet.width,
                             .layout = search->layout,
                             .xpos = search->xpos,
                             .penalty = shape->penalty + pe_ladder_penalty(ladder, search->sheet.width) +
                                        (search->xpos.scale_base > 0 ? XPOS : 0) +
                                        (search->layout == PE_ROTARY_INTERLEAVED ? 0.5 : 0) +
                                        (search->sheet.width < search->op->width ? 2 : 0)};
}

/* In the arithmetics that it may be in. */
int pe_search_add(const struct pe_search *search, const struct pe_trial *trial, struct pe_error *err) {
    enum pe_arithmetic rounded = search->pass->arithmetic;
    for (size_t i = 0; i < pe_identify_n_arithmetics; i++) {
        struct pe_trial one = *trial;
        one.arithmetic = &pe_identify_arithmetics[i];
        bool wanted = rounded == PE_ARITHMETIC_EXACT || rounded == one.arithmetic->arithmetic;
        wanted = wanted && !(one.arithmetic->divides && search->op->kind != PE_IDENTIFY_TABLE);
        if (wanted && pe_trial_add(search->op, &one, err)) {
            return err->code;
        }
        double floor = search->op->floor;
        bool exact_only = !pe_trial_is_encoding(trial) || trial->xpos.scale_base > 0;
        if (exact_only || (wanted && one.square <= 0.25 * floor * floor)) {
            break;
        }
    }
    return PE_OK;
}

/* Positions that were rounded are whole numbers as they are, but for where they start. */
static bool suits_pass(const struct pe_search *search, struct pe_ladder *ladder) {
    if (search->pass->arithmetic == PE_ARITHMETIC_EXACT) {
        return true;
    }
    bool plain = fabs(ladder->v[PE_LADDER_OFFSET]) < 0.1 && fabs(ladder->v[PE_LADDER_SCALE]) < 1e-3;
    ladder->v[PE_LADDER_OFFSET] = search->pass->start;
    ladder->v[PE_LADDER_SCALE] = 0;
    return plain;
}

static int add_fit(struct pe_search *search, const struct pe_shape *shape, const struct pe_ladder *fit,
                   struct pe_error *err) {
    struct pe_ladder ladder, before = {.sign = 0};
    for (int bold = 0; bold < 2; bold++) {
        ladder = *fit;
        pe_ladder_simplify(&search->sheet, shape, &ladder, bold);
        if (memcmp(ladder.v, before.v, sizeof ladder.v) == 0) {
            break;
        }
        before = ladder;
        if (!suits_pass(search, &ladder)) {
            continue;
        }
        struct pe_trial trial = pe_search_trial(search, shape, &ladder);
        if (pe_search_add(search, &trial, err)) {
            return err->code;
        }
        const struct pe_trial *best = pe_trial_best(search->op);
        double floor = search->op->floor;
        if (best && best->square <= 4 * floor * floor && best->penalty < SIMPLE) {
            break;
        }
    }
    return PE_OK;
}

/* ---- Shapes -------------------------------------------------------------------------------------------- */

/* From the hands of a clock; both denominators have the same ladder under another base. */
static bool fit_hands(struct pe_search *search, const struct pe_shape *shape, struct pe_ladder *ladder) {
    size_t at = (size_t)shape->halves * 2 + shape->cos_first;
    double width = (double)search->sheet.width;
    if (!search->tried[at]) {
        struct pe_shape half = *shape;
        half.minus_one = false;
        search->tried[at] = true;
        search->has[at] = pe_ladder_find(&search->sheet, &half, search->scratch, &search->found[at]);
    }
    *ladder = search->found[at];
    if (shape->minus_one) {
        ladder->v[PE_LADDER_BASE] *= (width - 2) / width;
    }
    return search->has[at] && search->sheet.width > 2;
}

/* The best of what people write; rotary positions may be divided. */
static bool fit_usual(struct pe_search *search, const struct pe_shape *shape, struct pe_ladder *ladder) {
    const double bases[] = {10000, 1000, 100, 500000, 1e6, 1e5, 256, search->op->hint_base};
    static const double offsets[] = {0, 1, 2, -1}, divisors[] = {1, 2, 4, 8, 16, 32};
    size_t n = PE_COUNT(bases) * PE_COUNT(offsets) * 2, n_divisors = shape == &pe_identify_rotary ? 6 : 1;
    double full = 0.5 * log(fmax(2 * search->sheet.power, 1e-300)), best = INFINITY;
    for (size_t i = 0; i < n * n_divisors; i++) {
        double base = bases[i % n / 2 / PE_COUNT(offsets)];
        struct pe_ladder at = {.sign = 1};
        at.v[PE_LADDER_BASE] = log(base > 0 ? base : 10000);
        at.v[PE_LADDER_OFFSET] = offsets[i / 2 % PE_COUNT(offsets)] / divisors[i / n];
        at.v[PE_LADDER_SCALE] = -log(divisors[i / n]);
        at.v[PE_LADDER_FACTOR] = i % 2 ? full : 0;
        double miss = pe_ladder_miss_near(&search->sheet, shape, &at);
        if (miss < best) {
            best = miss;
            *ladder = at;
        }
    }
    return best < FIT_WORTH * search->sheet.power;
}

/* Keeps the better ladder; `best` is in parts of the power. */
static void better(const struct pe_search *search, const struct pe_shape *shape,
                   const struct pe_ladder *ladder, double *best, struct pe_ladder *kept) {
    double miss = pe_ladder_miss(&search->sheet, shape, ladder) / fmax(search->sheet.power, 1e-300);
    if (miss < *best) {
        *best = miss;
        *kept = *ladder;
    }
}

static int try_shape(struct pe_search *search, const struct pe_shape *shape, struct pe_error *err) {
    struct pe_ladder ladder, kept = {.sign = 1};
    double best = INFINITY;
    if (pe_error_poll(err)) {
        return err->code;
    }
    size_t at = (size_t)shape->halves * 2 + shape->cos_first;
    if (is_settled(search) && (shape->mistake || !search->has[at])) {
        return PE_OK; /* its other denominator is tried, nothing else */
    }
    bool hands = !shape->mistake && fit_hands(search, shape, &ladder);
    if (hands) {
        better(search, shape, &ladder, &best, &kept);
    }
    if (best > FIT_GOOD && fit_usual(search, shape, &ladder)) {
        struct pe_ladder bridged = ladder;
        better(search, shape, &ladder, &best, &kept);
        pe_ladder_approach(&search->sheet, shape, &ladder, 13);
        better(search, shape, &ladder, &best, &kept);
        if (best > FIT_GOOD && pe_ladder_bridge(&search->sheet, shape, NULL, &bridged)) {
            better(search, shape, &bridged, &best, &kept);
        }
    }
    if (best > FIT_GOOD && hands && pe_ladder_bridge(&search->sheet, shape, search->scratch, &ladder)) {
        better(search, shape, &ladder, &best, &kept);
    }
    return best < FIT_WORTH ? add_fit(search, shape, &kept, err) : PE_OK;
}

/* What is left where nothing else has found anything. */
static int scan_shape(struct pe_search *search, const struct pe_shape *shape, struct pe_error *err) {
    struct pe_ladder ladder;
    if (pe_error_poll(err)) {
        return err->code;
    }
    pe_ladder_scan(&search->sheet, shape, &ladder);
    double miss = pe_ladder_approach(&search->sheet, shape, &ladder, 13);
    return miss < FIT_WORTH * search->sheet.power ? add_fit(search, shape, &ladder, err) : PE_OK;
}

static bool hinted(const struct pe_identify *op, const struct pe_shape *shape) {
    return !op->hint_layout || (op->hint_layout == PE_ROTARY_HALVES) == shape->halves;
}

/* Both denominators have the same ladder under another base. */
static int add_usual(struct pe_search *search, const struct pe_shape *shapes, size_t n,
                     const struct pe_shape *like, const struct pe_ladder *found, struct pe_error *err) {
    double width = (double)search->sheet.width;
    for (size_t i = 0; i < n && !err->code; i++) {
        const struct pe_shape *shape = &shapes[i];
        struct pe_ladder ladder = *found;
        bool alike = !shape->mistake && shape->halves == like->halves && shape->cos_first == like->cos_first;
        ladder.v[PE_LADDER_BASE] *= shape->minus_one ? (width - 2) / width : 1;
        if (alike && (width > 2 || !shape->minus_one)) {
            add_fit(search, shape, &ladder, err);
        }
    }
    return err->code;
}

int pe_search_usual(struct pe_search *search, const struct pe_shape *shapes, size_t n, struct pe_error *err) {
    const struct pe_positions *at = &search->op->positions;
    bool far = !at->list && at->start == 0;
    search->pass = &pe_identify_passes[0];
    for (size_t i = 0; i < n && !pe_error_poll(err); i++) {
        struct pe_ladder ladder;
        const struct pe_trial *best = pe_trial_best(search->op);
        bool good = pe_search_is_good(search->op);
        if (good && (best->penalty < UNUSUAL || best->shape != &shapes[i])) {
            continue;
        }
        if (!shapes[i].mistake && !shapes[i].minus_one &&
            (hinted(search->op, &shapes[i]) || search->op->kind != PE_IDENTIFY_TABLE) &&
            pe_ladder_usual(&search->sheet, &shapes[i], search->scratch, far, good, &ladder)) {
            add_usual(search, shapes, n, &shapes[i], &ladder, err);
        }
    }
    return err->code;
}

/* False where the type cannot hold them: no such table can be. */
static bool round_positions(struct pe_search *search, const double *given, double *p) {
    bool finite = true;
    for (size_t i = 0; i < search->sheet.rows; i++) {
        uint64_t cell = 0;
        p[i] = given[i] + search->pass->start;
        if (search->pass->rounded) {
            pe_dtype_store(search->pass->rounded, &p[i], 1, &cell);
            pe_dtype_load(search->pass->rounded, &cell, 1, &p[i]);
        }
        finite = finite && isfinite(p[i]);
    }
    search->sheet.p = p;
    search->sheet.rounded = search->pass->rounded != 0;
    return finite;
}

static int search_pass(struct pe_search *search, const struct pe_shape *shapes, size_t n,
                       struct pe_error *err) {
    bool exact = search->pass->arithmetic == PE_ARITHMETIC_EXACT;
    for (int scan = 0; scan < 1 + exact && !(scan && pe_search_is_good(search->op)); scan++) {
        for (size_t i = 0; i < n && !err->code; i++) {
            if (hinted(search->op, &shapes[i]) || search->op->kind != PE_IDENTIFY_TABLE) {
                (scan ? scan_shape : try_shape)(search, &shapes[i], err);
            }
        }
    }
    return err->code;
}

int pe_search_over(struct pe_search *search, const struct pe_shape *shapes, size_t n, size_t pass,
                   struct pe_error *err) {
    double *p = pe_arena_array(search->op->arena, search->sheet.rows, sizeof *p, err);
    const double *given = search->sheet.p;
    if (p) {
        search->pass = &pe_identify_passes[pass];
        memset(search->tried, 0, sizeof search->tried);
        if (round_positions(search, given, p)) {
            search_pass(search, shapes, n, err);
        }
        search->sheet.p = given;
    }
    return err->code;
}

int pe_search_open(struct pe_search *search, struct pe_identify *op, size_t width, int layout,
                   struct pe_error *err) {
    *search = (struct pe_search){.op = op, .layout = layout};
    search->scratch = pe_arena_array(op->arena, 2 * width, sizeof(double), err);
    return search->scratch ? pe_identify_sheet(op, &search->sheet, width, layout, err) : err->code;
}
