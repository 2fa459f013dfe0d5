/* SPDX-License-Identifier: MIT
 *
 * identify: which encoding made a table that somebody's code produced. A sample of its rows is explained by
 * all hypotheses (ops/identify.h says where they are); here the best of them are compared with the whole
 * table, as far as COMPARED numbers go, and described.
 *
 * All of it is done in opening, as a plan is: it opens plans itself, and can fail for want of memory.
 */
#include "ops/identify.h"
#include "ops/operand.h"

#include <math.h>
#include <string.h>

#define COMPARED  ((size_t)1 << 21) /* numbers compared with each candidate */
#define BLOCK     ((size_t)1 << 13)
#define EXPLAINED 0.02 /* of the power: what misses more explains nothing */
#define SURE      10   /* nats by which a hypothesis must be better than none */
#define NOISE     4e-3 /* of the amplitude, root mean square: what misses more is no noise that tables have */
#define LEAST     2e-3 /* of small numbers */
#define ANGLES    1e-8 /* for each position: what angles in float32 add to that */

/* The root mean square by which a right encoding may miss, beside rounding. */
static double noise_most(const struct pe_identify *op) {
    double far = fmax(fabs(op->p[0]), fabs(op->p[op->n - 1]));
    return fmax((NOISE + ANGLES * far) * sqrt(2 * op->power), LEAST) + 4 * op->floor;
}

/* ---- The whole table ----------------------------------------------------------------------------------- */

struct comparison {
    const struct pe_identify *op;
    const struct pe_trial *trial, *right; /* and without its faults */
    const struct pe_plan *plan, *right_plan;
    double *got, *was, *made, *should, *p, *shifted; /* rows of a block */
    size_t block;                                    /* rows */
    double square, limit; /* found so far; a row that misses by more than the limit parts */
    size_t n;
    struct pe_finding finding;
    struct pe_identify_candidate *out;
};

/* The encoding as it is meant: exact, without a factor, shift or mistake. */
static struct pe_trial without_faults(const struct pe_trial *trial) {
    struct pe_trial right = *trial;
    if (trial->shape && trial->shape->mistake) {
        for (size_t i = 0; i < pe_identify_n_shapes; i++) {
            const struct pe_shape *shape = &pe_identify_shapes[i];
            if (!shape->mistake && shape->halves == trial->shape->halves && !shape->cos_first &&
                !shape->minus_one) {
                right.shape = shape;
            }
        }
    }
    right.arithmetic = &pe_identify_arithmetics[0];
    right.ladder.v[PE_LADDER_FACTOR] = 0;
    return right;
}

static int comparison_open(struct comparison *c, struct pe_error *err) {
    const struct pe_identify *op = c->op;
    c->block = op->items < BLOCK ? BLOCK / op->items : 1;
    c->block = c->block < op->length ? c->block : op->length;
    double *all = pe_arena_array(op->arena, 4 * c->block, op->items * sizeof *all, err);
    c->p = pe_arena_array(op->arena, 3 * c->block, sizeof *c->p, err);
    if (err->code) {
        return err->code;
    }
    c->got = all;
    c->was = all + c->block * op->items;
    c->made = c->was + c->block * op->items;
    c->should = c->made + c->block * op->items;
    c->shifted = c->p + c->block;
    return PE_OK;
}

static void row_compare(struct comparison *c, size_t row, size_t i) {
    const struct pe_identify *op = c->op;
    double most = 0;
    for (size_t k = i * op->items; k < (i + 1) * op->items; k++) {
        double off = fabs(c->got[k] - c->made[k]), fault = fabs(c->got[k] - c->should[k]);
        c->square += off * off;
        c->out->max_abs = fmax(c->out->max_abs, off);
        most = fmax(most, fault);
    }
    c->n += op->items;
    if (most > c->finding.fault) {
        c->finding.fault = most;
        c->finding.fault_position = c->p[i];
    }
    if (most > c->limit && (!c->out->parts || row < c->out->part_index)) {
        c->out->parts = true;
        c->out->part_index = row;
        c->out->part_position = c->p[i];
    }
}

/* Zeros that the encoding has by itself are compared as any numbers; false where there is nothing to compare. */
static bool row_is_made(struct comparison *c, size_t row, size_t i) {
    const struct pe_identify *op = c->op;
    const double *got = c->got + i * op->items;
    bool pads = pe_trial_pads(op, c->trial, got, c->made + i * op->items);
    if (pads || (c->trial->padded && pe_identify_is_zero(op, got))) {
        c->finding.padding = c->finding.n_padding && c->finding.padding < row ? c->finding.padding : row;
        c->finding.n_padding++;
    }
    return !pads;
}

/* Rows first .. first+n-1 of those looked at; `rows`: which those are, NULL for all. */
static void block_compare(struct comparison *c, const size_t *rows, size_t first, size_t n) {
    const struct pe_identify *op = c->op;
    for (size_t i = 0; i < n; i++) {
        size_t row = rows ? rows[first + i] : first + i;
        pe_identify_load(op, row, c->got + i * op->items, c->was + i * op->items);
        pe_positions_read(&op->positions, row, 1, &c->p[i]);
    }
    const struct pe_trial_rows made = {op, c->trial, c->plan, c->p, c->was, n};
    const struct pe_trial_rows should = {op, c->right, c->right_plan, c->p, c->was, n};
    pe_trial_make(&made, c->shifted, c->made);
    pe_trial_make(&should, c->shifted, c->should);
    for (size_t i = 0; i < n; i++) {
        size_t row = rows ? rows[first + i] : first + i;
        if (row_is_made(c, row, i)) {
            row_compare(c, row, i);
        }
    }
}

static int whole_compare(struct comparison *c, struct pe_error *err) {
    const struct pe_identify *op = c->op;
    bool all = op->length * op->items <= COMPARED;
    size_t n = all ? op->length : op->n;
    c->limit = 6 * fmin(sqrt(c->trial->square), noise_most(op)) + 6 * op->floor;
    for (size_t first = 0, step; first < n && !pe_error_poll(err); first += step) {
        step = n - first < c->block ? n - first : c->block;
        block_compare(c, all ? NULL : op->row, first, step);
    }
    c->out->rms = c->n ? sqrt(c->square / (double)c->n) : 0;
    return err->code;
}

/* ---- Candidates ---------------------------------------------------------------------------------------- */

/* Are values rounded to a narrower type than they came in, or did they come in a narrow one? */
static bool rounding_shows(const struct pe_identify *op) {
    size_t fractions = 0;
    for (size_t i = 0; i < op->n * op->items; i++) {
        double x = op->got[i] * 64;
        fractions += x != nearbyint(x);
    }
    return (op->stored == PE_DTYPE_BF16 || op->stored == PE_DTYPE_F16) && fractions >= 4;
}

static int candidate_describe(struct pe_identify *op, struct pe_trial *trial,
                              struct pe_identify_candidate *out, struct pe_error *err) {
    struct pe_trial right = without_faults(trial);
    struct pe_plan *plan = NULL, *right_plan = NULL;
    struct comparison c = {.op = op, .trial = trial, .right = &right, .out = out};
    *out = (struct pe_identify_candidate){
        .encoding = trial->spec, .factor = trial->factor, .shift = trial->shift, .keys = trial->xpos.keys};
    if (!pe_trial_spec(op, &right, err) && !pe_plan_open(&plan, &trial->spec, err) &&
        !pe_plan_open(&right_plan, &right.spec, err) &&
        !pe_identify_charge(op, pe_plan_bytes(plan) + pe_plan_bytes(right_plan), err) &&
        !comparison_open(&c, err)) {
        c.plan = plan;
        c.right_plan = right_plan;
        right.factor = 1;
        right.shift = 0;
        if (!whole_compare(&c, err)) {
            c.finding.rounding_shows = rounding_shows(op);
            c.finding.is_near = trial->square > noise_most(op) * noise_most(op);
            c.finding.miss = sqrt(trial->square);
            out->name = pe_trial_name(op, trial, &c.finding, err);
            out->mistake = pe_trial_mistake(op, trial, &c.finding, err);
        }
    }
    pe_plan_close(plan);
    pe_plan_close(right_plan);
    return err->code;
}

/* The same encoding; `settled`: in whatever arithmetic, as the first explains the table to its rounding. */
static bool same(const struct pe_trial *a, const struct pe_trial *b, bool settled) {
    bool alike = a->shape == b->shape && a->naive == b->naive && a->grid == b->grid && a->nerf == b->nerf &&
                 a->stretch == b->stretch && a->layout == b->layout && a->width == b->width &&
                 (settled || a->arithmetic == b->arithmetic) && a->ladder.sign == b->ladder.sign &&
                 a->xpos.scale_base == b->xpos.scale_base && a->xpos.center == b->xpos.center &&
                 a->xpos.keys == b->xpos.keys;
    for (int i = 0; i < PE_LADDER_N && alike; i++) {
        alike = fabs(a->ladder.v[i] - b->ladder.v[i]) <= 1e-9 * fmax(fabs(a->ladder.v[i]), 1);
    }
    return alike;
}

/* The best trial that is none of those chosen. */
static struct pe_trial *next_best(const struct pe_identify *op, struct pe_trial *const *chosen, size_t n) {
    struct pe_trial *best = NULL;
    for (size_t i = 0; i < op->n_trials; i++) {
        bool known = false;
        for (size_t k = 0; k < n; k++) {
            bool settled = chosen[k]->square <= 4 * op->floor * op->floor;
            known = known || same(&op->trials[i], chosen[k], settled);
        }
        if (!known && isfinite(op->trials[i].score) && (!best || op->trials[i].score < best->score)) {
            best = &op->trials[i];
        }
    }
    return best;
}

/* Of turned vectors the simplest explanation is that nothing turned. */
static double score_of_nothing(const struct pe_identify *op) {
    double square = op->power, moved = 0, items = (double)(op->n * op->items);
    for (size_t i = 0; i < op->n * op->items && op->was; i++) {
        moved += (op->got[i] - op->was[i]) * (op->got[i] - op->was[i]) / items;
    }
    square = op->was && moved < square ? moved : square;
    return 0.5 * fmin(items, PE_IDENTIFY_COMPARED) * log(square + op->floor * op->floor);
}

static bool explains(const struct pe_identify *op, const struct pe_trial *trial) {
    return trial && trial->square < EXPLAINED * op->power && trial->score + SURE < score_of_nothing(op);
}

static int candidates_fill(struct pe_identify *op, struct pe_identify_result *result, struct pe_error *err) {
    struct pe_trial *chosen[PE_IDENTIFY_MAX] = {NULL};
    struct pe_trial *trial = next_best(op, chosen, 0);
    if (!explains(op, trial)) {
        result->verdict = "none of these: no encoding known here makes this table; a learned or random one, "
                          "whose numbers follow no formula, is not told from others";
        return PE_OK;
    }
    double least = trial->square, most = fmax(9 * least, 9 * op->floor * op->floor);
    while (trial && result->n < PE_IDENTIFY_MAX && explains(op, trial)) {
        if (trial->square <= most && candidate_describe(op, trial, &result->candidates[result->n], err)) {
            return err->code;
        }
        chosen[result->n] = trial;
        result->n += trial->square <= most;
        if (trial->square > most) {
            break;
        }
        trial = next_best(op, chosen, result->n);
    }
    result->verdict =
        sqrt(least) > noise_most(op)
            ? "none of these exactly: the first candidate is the nearest known here, but misses the "
              "table by more than rounding or noise would"
            : "the first candidate is the simplest that explains the table to its noise";
    return PE_OK;
}

static int search(struct pe_identify *op, struct pe_error *err) {
    op->trials = pe_arena_array(op->arena, PE_IDENTIFY_TRIALS, sizeof *op->trials, err);
    if (!op->trials) {
        return err->code;
    }
    return op->kind == PE_IDENTIFY_TABLE ? pe_identify_table(op, err) : pe_identify_turns(op, err);
}

int pe_identify_open(struct pe_arena *arena, struct pe_identify_result *result,
                     const struct pe_identify_args *theirs, struct pe_error *err) {
    struct pe_identify_args args;
    struct pe_identify op = {0};
    *result = (struct pe_identify_result){0};
    if (err->code || pe_args_copy(&args, sizeof args, theirs, theirs->size, err) ||
        pe_identify_read(arena, &op, &args, err)) {
        return err->code;
    }
    result->verdict = pe_identify_plain(&op, err);
    if (result->verdict || err->code) {
        return err->code;
    }
    if (op.kind == PE_IDENTIFY_TURNED && op.before->rank == 3) {
        result->axes = op.heads_first ? "htd" : "thd";
    }
    if (search(&op, err) || candidates_fill(&op, result, err)) {
        *result = (struct pe_identify_result){0};
    }
    return err->code;
}
