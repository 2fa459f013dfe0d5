/* SPDX-License-Identifier: MIT
 *
 * identify: what rotary tables and turned vectors may be. Which columns are a pair is told without any angle: a turn
 * keeps the length of the pair. Straight ladders are tried first, then stretched ones, then rounded positions.
 */
#include "ops/identify.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define MOST_PAIRINGS 14
#define ROWS          8     /* that tell which columns are pairs */
#define EVEN          6     /* standard deviations that noise may reach */
#define SIMPLE        16    /* nats of numbers that need no other explanation */
#define WIDE          512   /* a head that is not looked at for every width */
#define RANDOM        0.05  /* of the power: lengths that change so much are not turned */
#define EXACT         1e-14 /* of the power: rounding */
#define SAME          1.6   /* mean squares that are not told from the least */

/* How pairs lie in a row: which columns, and how many turn. */
struct pairing {
    int layout;
    size_t width;
};
struct pairings {
    struct pairing list[MOST_PAIRINGS];
    size_t n;
};

static void pairings_add(struct pairings *pairings, int layout, size_t width) {
    for (size_t i = 0; i < pairings->n; i++) {
        if (pairings->list[i].layout == layout && pairings->list[i].width == width) {
            return;
        }
    }
    if (pairings->n < MOST_PAIRINGS && width >= 2) {
        pairings->list[pairings->n++] = (struct pairing){layout, width};
    }
}

/* ---- Which columns are pairs --------------------------------------------------------------------------- */

static double square(double x) {
    return x * x;
}

/* The mean square by which lengths change, pairs being columns a and b of so many that turn, the others not moving. A
 * common factor is no change: sum of (|got| - g|was|)^2 for the g of all pairs. */
static double strain(const struct pe_identify *op, int layout, size_t width) {
    double gg = 0, gw = 0, ww = 0, still = 0;
    size_t rows = op->n < ROWS ? op->n : ROWS;
    for (size_t j = 0; j < rows * op->heads; j++) {
        size_t k = rows > 1 ? j / op->heads * (op->n - 1) / (rows - 1) : 0;
        const double *got = op->got + k * op->items + j % op->heads * op->width;
        const double *was = op->was + k * op->items + j % op->heads * op->width;
        for (size_t i = 0; i < width / 2; i++) {
            size_t a = layout == PE_ROTARY_HALVES ? i : 2 * i,
                   b = layout == PE_ROTARY_HALVES ? i + width / 2 : a + 1;
            double g = got[a] * got[a] + got[b] * got[b], w = was[a] * was[a] + was[b] * was[b];
            gg += g;
            ww += w;
            gw += sqrt(g * w);
        }
        for (size_t c = width; c < op->width; c++) {
            still += square(got[c] - was[c]);
        }
    }
    double left = ww > 0 ? gg - gw * gw / ww : gg; /* one of two directions of a pair */
    return (2 * fmax(left, 0) + still) / (double)(rows * op->heads * op->width);
}

/* From width to width: of wide heads only parts, as looking at all is the square of the width. */
static size_t stride(const struct pe_identify *op) {
    return op->width > WIDE ? op->width / 4 / 2 * 2 : 2;
}

/* Of neighbouring columns many widths are the same where slow pairs have not moved yet: the least and the most, and
 * parts of the head. */
static void pairings_of(const struct pe_identify *op, int layout, double most, struct pairings *out,
                        struct pe_error *err) {
    size_t least = 0, last = 0;
    for (size_t width = stride(op); width <= op->width && !pe_error_poll(err); width += stride(op)) {
        if (strain(op, layout, width) <= most) {
            least = least ? least : width;
            last = width;
        }
    }
    if (last == 0) {
        return;
    }
    pairings_add(out, layout, least);
    for (size_t part = 4; part > 0; part--) {
        size_t width = op->width * part / 4 / 2 * 2;
        if (width >= least && width <= last && strain(op, layout, width) <= most) {
            pairings_add(out, layout, width);
        }
    }
    static const size_t usual[] = {128, 64, 96, 32, 80};
    for (size_t i = 0; i < PE_COUNT(usual) && least < last; i++) {
        if (usual[i] > least && usual[i] < last) {
            pairings_add(out, layout, usual[i]);
        }
    }
    pairings_add(out, layout, last);
}

static void pairings_find(const struct pe_identify *op, struct pairings *out, struct pe_error *err) {
    int only = op->layout ? op->layout : op->hint_layout;
    bool both = op->kind == PE_IDENTIFY_TURNED;
    double least = DBL_MAX;
    out->n = 0;
    for (int layout = PE_ROTARY_HALVES; layout <= PE_ROTARY_INTERLEAVED && both; layout++) {
        for (size_t width = stride(op);
             width <= op->width && (!only || only == layout) && !pe_error_poll(err); width += stride(op)) {
            least = fmin(least, strain(op, layout, width));
        }
    }
    for (int layout = PE_ROTARY_HALVES; layout <= PE_ROTARY_INTERLEAVED && both; layout++) {
        if ((!only || only == layout) && least < RANDOM * op->power) {
            pairings_of(op, layout, SAME * least + square(4 * op->floor) + EXACT * op->power, out, err);
        }
    }
    if (!both) {
        pairings_add(out, only ? only : PE_ROTARY_HALVES, op->width / 2 * 2);
    }
}

/* Widths by which the base of the best trial so far is a usual one: the ladder is the same. */
static void pairings_usual(const struct pe_identify *op, struct pairings *out) {
    static const double usual[] = {10000, 500000, 1e6, 1e5, 1e7, 150000, 1000};
    const struct pe_trial *best = pe_trial_best(op);
    size_t known = out->n;
    for (size_t i = 0; i < PE_COUNT(usual) && best && known > 0; i++) {
        double exact = log(usual[i]) / best->ladder.v[PE_LADDER_BASE] * (double)best->width;
        size_t width = exact > 0 && exact < 1e6 ? (size_t)nearbyint(exact / 2) * 2 : 0;
        bool near = fabs(exact - (double)width) < 2e-3 * exact && width <= op->width;
        if (near && best->layout == PE_ROTARY_INTERLEAVED) {
            pairings_add(out, best->layout, width);
        }
    }
}

/* ---- Stretched frequencies ----------------------------------------------------------------------------- */

/* The factor of all as one would write it, as far as it is known. */
static double simple_gain(double gain, double doubt) {
    for (int digits = 1; digits < 12; digits++) {
        double unit = pow(10, 1 - digits), round = nearbyint(gain / unit) * unit;
        if (fabs(round - gain) <= doubt) {
            return round;
        }
    }
    return gain;
}

static void trial_stretch(const struct pe_search *search, const struct pe_stretches *all,
                          const struct pe_stretch *stretch, struct pe_trial *trial) {
    double numbers = (double)search->sheet.rows * (double)search->sheet.width;
    double noise = fmax(all->noise, search->op->floor),
           doubt = 4 * noise / sqrt(numbers) + 4 * noise * noise + 1e-9;
    double gain = simple_gain(all->gain, doubt),
           formula = stretch->type == PE_STRETCH_YARN ? 0.1 * log(stretch->factor) + 1 : 0;
    trial->stretch = stretch;
    trial->penalty += 8 + (stretch->type == PE_STRETCH_LONGROPE ? 3 * (double)search->sheet.width / 2 : 0);
    if (stretch->type == PE_STRETCH_YARN || stretch->type == PE_STRETCH_LONGROPE) {
        trial->attention = fabs(all->gain - formula) <= doubt ? 0 : gain;
        trial->penalty += trial->attention > 0 ? 2 : 0;
        trial->penalty += stretch->type == PE_STRETCH_YARN && stretch->fast != 32 ? 2 : 0;
    } else {
        trial->ladder.v[PE_LADDER_FACTOR] = log(gain);
    }
}

static int add_stretches(struct pe_search *search, struct pe_stretches *all, double *scratch,
                         struct pe_error *err) {
    const struct pe_identify *op = search->op;
    bool far = !op->positions.list && op->positions.start == 0;
    for (size_t i = 0; i < all->n; i++) {
        struct pe_ladder ladder = {.sign = all->sign};
        double start = pe_stretch_start(&all->found[i], all->sign, &search->sheet, far, scratch);
        ladder.v[PE_LADDER_BASE] = log(all->found[i].base);
        ladder.v[PE_LADDER_OFFSET] = all->sign * start;
        struct pe_trial trial = pe_search_trial(search, &pe_identify_rotary, &ladder);
        trial_stretch(search, all, &all->found[i], &trial);
        if (pe_error_poll(err) || pe_search_add(search, &trial, err)) {
            return err->code;
        }
    }
    return err->code;
}

/* ---- Searching ----------------------------------------------------------------------------------------- */

static int search_straight(struct pe_identify *op, const struct pairing *pairing, size_t pass,
                           struct pe_error *err) {
    struct pe_search search;
    if (pe_search_open(&search, op, pairing->width, pairing->layout, err)) {
        return err->code;
    }
    return pe_search_over(&search, &pe_identify_rotary, 1, pass, err);
}

static int search_stretched(struct pe_identify *op, const struct pairing *pairing, struct pe_error *err) {
    struct pe_search search;
    struct pe_stretches *all = pe_arena_array(op->arena, 1, sizeof *all, err);
    double *scratch = pe_arena_array(op->arena, 4 * pairing->width, sizeof *scratch, err);
    double *divisors = pe_arena_array(op->arena, pairing->width, sizeof *divisors, err);
    if (err->code || pe_search_open(&search, op, pairing->width, pairing->layout, err)) {
        return err->code;
    }
    all->divisors = divisors;
    search.pass = &pe_identify_passes[0];
    pe_stretch_search(all, &search.sheet, op->hint_base, scratch);
    return pe_error_poll(err) ? err->code : add_stretches(&search, all, scratch, err);
}

static int search_usual(struct pe_identify *op, const struct pairing *pairing, struct pe_error *err) {
    struct pe_search search;
    if (pe_search_open(&search, op, pairing->width, pairing->layout, err)) {
        return err->code;
    }
    return pe_search_usual(&search, &pe_identify_rotary, 1, err);
}

/* xPos: a pair has another length than before, and any columns may be pairs. */
static int search_grown(struct pe_identify *op, const struct pairing *pairing, struct pe_error *err) {
    struct pe_search search;
    if (pe_search_open(&search, op, pairing->width, pairing->layout, err) ||
        !pe_xpos_find(&search.sheet, &search.xpos)) {
        return err->code;
    }
    pe_xpos_take_off(&search.xpos, &search.sheet);
    return pe_search_over(&search, &pe_identify_rotary, 1, 0, err);
}

static int search_all_grown(struct pe_identify *op, struct pe_error *err) {
    int only = op->layout ? op->layout : op->hint_layout;
    bool both = op->kind == PE_IDENTIFY_TURNED;
    struct pairings pairings = {.n = 0};
    for (size_t part = 4; part > 0 && (both || part == 4); part--) {
        for (int layout = PE_ROTARY_HALVES; layout <= PE_ROTARY_INTERLEAVED; layout++) {
            if (only ? layout == only : both || layout == PE_ROTARY_HALVES) {
                pairings_add(&pairings, layout, op->width * part / 4 / 2 * 2);
            }
        }
    }
    for (size_t i = 0; i < pairings.n && !err->code; i++) {
        search_grown(op, &pairings.list[i], err);
    }
    return err->code;
}

/* What is left looks like noise: no number sticks out. */
static bool is_even(const struct pe_identify *op) {
    const struct pe_trial *best = pe_trial_best(op);
    return best && pe_search_is_close(op) && best->penalty < SIMPLE &&
           best->largest <= EVEN * sqrt(best->square) + EVEN * op->floor;
}

/* What no straight ladder explains, by the first pairings. */
static int search_others(struct pe_identify *op, const struct pairings *pairings, size_t first,
                         struct pe_error *err) {
    for (size_t i = 0; i < first && !is_even(op); i++) {
        if (search_stretched(op, &pairings->list[i], err)) {
            return err->code;
        }
    }
    first = first < 2 ? first : 2;
    for (size_t i = 0; i < first; i++) {
        if (search_usual(op, &pairings->list[i], err)) {
            return err->code;
        }
    }
    for (size_t k = first; k < first * pe_identify_n_passes && !(k % first == 0 && pe_search_is_good(op));
         k++) {
        if (search_straight(op, &pairings->list[k % first], k / first, err)) {
            return err->code;
        }
    }
    return err->code;
}

int pe_identify_turns(struct pe_identify *op, struct pe_error *err) {
    struct pairings pairings;
    if (search_all_grown(op, err) || pe_search_is_close(op)) {
        return err->code;
    }
    pairings_find(op, &pairings, err);
    size_t first = err->code ? 0 : pairings.n;
    for (size_t i = 0; i < pairings.n && !err->code; i++) {
        if (search_straight(op, &pairings.list[i], 0, err)) {
            return err->code;
        }
        if (i + 1 == first) {
            pairings_usual(op, &pairings);
        }
    }
    return search_others(op, &pairings, first, err);
}
