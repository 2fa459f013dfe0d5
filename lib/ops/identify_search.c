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
#define SIMPLE    10   /* nats of numbers that need not be simpler */

struct search {
    struct pe_identify *op;
    struct pe_sheet sheet;
    const struct pe_identify_pass *pass;
    int layout;
    double *scratch;
    struct pe_ladder found[4]; /* by halves and cos_first */
    bool has[4], tried[4];
    double best; /* the least miss of a shape that is no mistake, in parts of the power */
    struct pe_ladder best_ladder;
};

static bool is_good(const struct pe_identify *op) {
    const struct pe_trial *best = pe_trial_best(op);
    return best && best->square < FIT_GOOD * op->power;
}

static bool is_close(const struct pe_identify *op) {
    const struct pe_trial *best = pe_trial_best(op);
    return best && best->square < fmax(FIT_CLOSE * op->power, 4 * op->floor * op->floor);
}

/* Simple numbers explain all columns. */
static bool is_settled(const struct search *search) {
    const struct pe_trial *best = pe_trial_best(search->op);
    return is_close(search->op) && search->op->kind == PE_IDENTIFY_TABLE && best->penalty < SIMPLE &&
           best->width == search->sheet.width;
}

/* ---- One fit ------------------------------------------------------------------------------------------- */

static struct pe_trial trial_of(const struct search *search, const struct pe_shape *shape,
                                const struct pe_ladder *ladder) {
    return (struct pe_trial){.shape = shape,
                             .ladder = *ladder,
                             .width = search->sheet.width,
                             .layout = search->layout,
                             .penalty = shape->penalty + pe_ladder_penalty(ladder, search->sheet.width) +
                                        (search->layout == PE_ROTARY_INTERLEAVED ? 0.5 : 0) +
                                        (search->sheet.width < search->op->width ? 2 : 0)};
}

/* In the arithmetics that it may be in. */
static int add_all(const struct search *search, const struct pe_trial *trial, struct pe_error *err) {
    enum pe_arithmetic rounded = search->pass->arithmetic;
    for (size_t i = 0; i < pe_identify_n_arithmetics; i++) {
        struct pe_trial one = *trial;
        one.arithmetic = &pe_identify_arithmetics[i];
        bool wanted = rounded == PE_ARITHMETIC_EXACT || rounded == one.arithmetic->arithmetic;
        if (wanted && pe_trial_add(search->op, &one, err)) {
            return err->code;
        }
        double floor = search->op->floor;
        if (!pe_trial_is_encoding(trial) || (wanted && one.square <= 4 * floor * floor)) {
            break;
        }
    }
    return PE_OK;
}

/* Positions that were rounded are whole numbers as they are, but for where they start. */
static bool suits_pass(const struct search *search, struct pe_ladder *ladder) {
    if (search->pass->arithmetic == PE_ARITHMETIC_EXACT) {
        return true;
    }
    bool plain = fabs(ladder->v[PE_LADDER_OFFSET]) < 0.1 && fabs(ladder->v[PE_LADDER_SCALE]) < 1e-3;
    ladder->v[PE_LADDER_OFFSET] = search->pass->start;
    ladder->v[PE_LADDER_SCALE] = 0;
    return plain;
}

static int add_fit(struct search *search, const struct pe_shape *shape, const struct pe_ladder *fit,
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
        struct pe_trial trial = trial_of(search, shape, &ladder);
        if (add_all(search, &trial, err)) {
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
static bool fit_hands(struct search *search, const struct pe_shape *shape, struct pe_ladder *ladder) {
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

/* The best of what people write. */
static bool fit_usual(struct search *search, const struct pe_shape *shape, struct pe_ladder *ladder) {
    const double bases[] = {10000, 1000, 100, 500000, 1e6, 1e5, 256, search->op->hint_base};
    static const double offsets[] = {0, 1, 2, -1};
    double full = 0.5 * log(fmax(2 * search->sheet.power, 1e-300)), best = INFINITY;
    for (size_t i = 0; i < PE_COUNT(bases) * PE_COUNT(offsets) * 2; i++) {
        double base = bases[i / 2 / PE_COUNT(offsets)];
        struct pe_ladder at = {.sign = 1};
        at.v[PE_LADDER_BASE] = log(base > 0 ? base : 10000);
        at.v[PE_LADDER_OFFSET] = offsets[i / 2 % PE_COUNT(offsets)];
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
static void better(const struct search *search, const struct pe_shape *shape, const struct pe_ladder *ladder,
                   double *best, struct pe_ladder *kept) {
    double miss = pe_ladder_miss(&search->sheet, shape, ladder) / fmax(search->sheet.power, 1e-300);
    if (miss < *best) {
        *best = miss;
        *kept = *ladder;
    }
}

static int try_shape(struct search *search, const struct pe_shape *shape, struct pe_error *err) {
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
static int scan_shape(struct search *search, const struct pe_shape *shape, struct pe_error *err) {
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

static void round_positions(struct search *search, const double *given, double *p) {
    for (size_t i = 0; i < search->sheet.rows; i++) {
        uint64_t cell = 0;
        p[i] = given[i] + search->pass->start;
        if (search->pass->rounded) {
            pe_dtype_store(search->pass->rounded, &p[i], 1, &cell);
            pe_dtype_load(search->pass->rounded, &cell, 1, &p[i]);
        }
    }
    search->sheet.p = p;
}

static int search_pass(struct search *search, const struct pe_shape *shapes, size_t n, struct pe_error *err) {
    bool exact = search->pass->arithmetic == PE_ARITHMETIC_EXACT;
    for (int scan = 0; scan < 1 + exact && !(scan && is_good(search->op)); scan++) {
        for (size_t i = 0; i < n && !err->code; i++) {
            if (hinted(search->op, &shapes[i]) || search->op->kind != PE_IDENTIFY_TABLE) {
                (scan ? scan_shape : try_shape)(search, &shapes[i], err);
            }
        }
    }
    return err->code;
}

/* Over positions as they are, then over rounded ones until something explains the table. */
static int search_passes(struct search *search, const struct pe_shape *shapes, size_t n,
                         struct pe_error *err) {
    double *p = pe_arena_array(search->op->arena, search->sheet.rows, sizeof *p, err);
    const double *given = search->sheet.p;
    for (size_t k = 0; k < pe_identify_n_passes && !err->code && (k == 0 || !is_good(search->op)); k++) {
        search->pass = &pe_identify_passes[k];
        memset(search->tried, 0, sizeof search->tried);
        round_positions(search, given, p);
        search_pass(search, shapes, n, err);
    }
    return err->code;
}

static int search_open(struct search *search, struct pe_identify *op, size_t width, int layout,
                       struct pe_error *err) {
    *search = (struct search){.op = op, .layout = layout};
    search->scratch = pe_arena_array(op->arena, 2 * width, sizeof(double), err);
    return search->scratch ? pe_identify_sheet(op, &search->sheet, width, layout, err) : err->code;
}

/* ---- Tables of vectors --------------------------------------------------------------------------------- */

/* The mean by which the numbers are more than the positions, and the length by which these were divided. */
static int search_naive(struct pe_identify *op, struct pe_error *err) {
    double more = 0, pp = 0, px = 0;
    for (size_t k = 0; k < op->n; k++) {
        for (size_t c = 0; c < op->items; c++) {
            double x = op->got[k * op->items + c];
            more += (x - op->p[k]) / (double)(op->n * op->items);
            pp += op->p[k] * op->p[k];
            px += op->p[k] * x;
        }
    }
    double length = px > 0 ? fmax(nearbyint(pp / px), 1) : 0;
    const struct {
        const char *form;
        double shift, length;
    } forms[] = {{"integer", nearbyint(more), 0}, {"normalized", 0, length}, {"binary", 0, 0}};
    for (size_t i = 0; i < PE_COUNT(forms); i++) {
        struct pe_trial trial = {.naive = forms[i].form,
                                 .length = forms[i].length,
                                 .arithmetic = &pe_identify_arithmetics[0],
                                 .width = op->width,
                                 .penalty = 4 + log1p(fabs(forms[i].shift))};
        trial.ladder.v[PE_LADDER_OFFSET] = forms[i].shift;
        bool told = i != 1 || length > 0;
        if (told && pe_trial_add(op, &trial, err)) {
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

static int search_table(struct pe_identify *op, struct pe_error *err) {
    bool odd = may_end_in_zeros(op), naive = op->hint_type && strcmp(op->hint_type, "naive") == 0;
    if (search_naive(op, err)) {
        return err->code;
    }
    for (size_t cut = odd; !naive && cut <= 1; cut--) { /* the zero column first: then the paper's formula */
        struct search search;
        if (search_open(&search, op, op->width - cut, 0, err) ||
            search_passes(&search, pe_identify_shapes, pe_identify_n_shapes, err)) {
            return err->code;
        }
    }
    return PE_OK;
}

/* ---- Rotary -------------------------------------------------------------------------------------------- */

/* No straight ladder: the scalings that are in use, by their usual numbers. */
static int search_scalings(struct search *search, struct pe_error *err) {
    const double bases[] = {10000, 500000, 1e6, 150000, search->op->hint_base};
    static const double factors[] = {2, 4, 8, 10, 16, 32, 40, 64};
    static const double originals[] = {2048, 4096, 8192, 16384, 32768, 65536, 131072};
    size_t n = PE_COUNT(bases) * PE_COUNT(factors) * PE_COUNT(originals);
    double gain = sqrt(2 * search->sheet.power);
    for (size_t k = 0; k < n * pe_identify_n_scalings; k++) {
        const struct pe_identify_scaling *scaling = &pe_identify_scalings[k / n];
        double base = bases[k % PE_COUNT(bases)];
        double factor = factors[k / PE_COUNT(bases) % PE_COUNT(factors)];
        bool grows = strcmp(scaling->rope_type, "yarn") == 0 && !strstr(scaling->more, "mscale");
        double expected = grows ? 0.1 * log(factor) + 1 : 1;
        if (base == 0 || fabs(gain / expected - 1) > 0.02) {
            continue;
        }
        struct pe_ladder ladder = {.sign = 1};
        ladder.v[PE_LADDER_BASE] = log(base);
        ladder.v[PE_LADDER_SCALE] = -log(factor);
        struct pe_trial trial = trial_of(search, &pe_identify_rotary, &ladder);
        trial.scaling = scaling;
        trial.original = originals[k % n / PE_COUNT(bases) / PE_COUNT(factors)];
        trial.penalty = 8;
        trial.arithmetic = &pe_identify_arithmetics[0];
        if (pe_trial_add(search->op, &trial, err)) {
            return err->code;
        }
    }
    const struct pe_trial *best = pe_trial_best(search->op);
    if (best && best->scaling && is_good(search->op)) {
        struct pe_trial again = *best;
        again.penalty = 8;
        return add_all(search, &again, err);
    }
    return PE_OK;
}

static int search_layout(struct pe_identify *op, size_t width, int layout, bool scaled,
                         struct pe_error *err) {
    struct search search;
    if (search_open(&search, op, width, layout, err)) {
        return err->code;
    }
    search.pass = &pe_identify_passes[0];
    return scaled ? search_scalings(&search, err) : search_passes(&search, &pe_identify_rotary, 1, err);
}

/* The widths of which all turns: a part of the head, or up to the last column that changed. */
static size_t turned_widths(const struct pe_identify *op, size_t widths[5]) {
    size_t n = 0, last = 0;
    const size_t parts[] = {4, 3, 2, 1};
    for (size_t i = 0; i < op->n * op->items; i++) {
        if (fabs(op->got[i] - op->was[i]) > 4 * op->floor && i % op->width > last) {
            last = i % op->width;
        }
    }
    for (size_t i = 0; i < 4; i++) {
        widths[n] = op->width * parts[i] / 4;
        n += widths[n] % 2 == 0 && widths[n] >= 2;
    }
    widths[n++] = (last / 2 + 1) * 2 <= op->width ? (last / 2 + 1) * 2 : op->width / 2 * 2;
    return n;
}

/* In the layouts that there may be: straight ladders, or scaled ones of the whole width. */
static int search_layouts(struct pe_identify *op, size_t width, bool scaled, struct pe_error *err) {
    int only = op->layout ? op->layout : op->hint_layout;
    for (int layout = PE_ROTARY_HALVES; layout <= PE_ROTARY_INTERLEAVED && !err->code; layout++) {
        bool other =
            scaled && op->kind == PE_IDENTIFY_TRIG && op->form == PE_TRIG_HALF && layout != PE_ROTARY_HALVES;
        if (only ? only == layout : !other) {
            search_layout(op, width, layout, scaled, err);
        }
    }
    return err->code;
}

static int search_rotary(struct pe_identify *op, struct pe_error *err) {
    size_t widths[5] = {op->width}, n = 1;
    if (op->kind == PE_IDENTIFY_TURNED) {
        n = turned_widths(op, widths);
    }
    for (size_t i = 0; i < n; i++) {
        bool again = i > 0 && widths[i] == widths[i - 1];
        if (!again && widths[i] >= 2 && search_layouts(op, widths[i], false, err)) {
            return err->code;
        }
    }
    return is_close(op) || op->width < 4 ? PE_OK : search_layouts(op, op->width / 2 * 2, true, err);
}

int pe_identify_search(struct pe_identify *op, struct pe_error *err) {
    op->trials = pe_arena_array(op->arena, PE_IDENTIFY_TRIALS, sizeof *op->trials, err);
    if (!op->trials) {
        return err->code;
    }
    return op->kind == PE_IDENTIFY_TABLE ? search_table(op, err) : search_rotary(op, err);
}
