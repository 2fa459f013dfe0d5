/* SPDX-License-Identifier: MIT
 *
 * identify: one hypothesis as an encoding that could be posted, carried out by the library and compared with
 * what was made, rounded as that was.
 */
#include "ops/identify.h"
#include "ops/operand.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The encoding -------------------------------------------------------------------------------------- */

struct setter {
    struct pe_arena *arena;
    struct pe_spec *spec;
    struct pe_error *err;
};

static void set(const struct setter *to, const char *name, const char *value) {
    if (to->err->code || pe_spec_set(to->arena, to->spec, name, value, to->err)) {
        return;
    }
}

/* exp(log(10000)) is not quite 10000. */
static void set_real(const struct setter *to, const char *name, double value, double usual) {
    char text[40], round[40];
    snprintf(text, sizeof text, "%.17g", value);
    snprintf(round, sizeof round, "%.12g", value);
    if (!(fabs(value - usual) <= 3e-14 * fabs(usual))) {
        set(to, name, fabs(strtod(round, NULL) - value) <= 3e-14 * fabs(value) ? round : text);
    }
}

static void set_arithmetic(const struct setter *to, const struct pe_trial *trial) {
    if (trial->arithmetic->arithmetic != PE_ARITHMETIC_EXACT) {
        set(to, "arithmetic", pe_choice_name(pe_arithmetic_choices, (int)trial->arithmetic->arithmetic));
    }
}

/* Where zeros are, as a position of the encoding; NAN where they are not one whole number. */
static double padding_of(const struct pe_identify *op, const struct pe_trial *trial) {
    double at = NAN;
    for (size_t k = 0; k < op->n && op->n_zero == 1; k++) {
        if (op->zero[k]) {
            double x = trial->ladder.sign * pe_ladder_scale(&trial->ladder) * op->p[k] +
                       trial->ladder.v[PE_LADDER_OFFSET];
            at = fabs(x - nearbyint(x)) < 1e-9 * fmax(fabs(x), 1) ? nearbyint(x) : NAN;
        }
    }
    return at;
}

static void sinusoidal_spec(const struct pe_identify *op, struct pe_trial *trial, const struct setter *to) {
    const struct pe_shape *shape = trial->shape;
    const double *v = trial->ladder.v;
    set_real(to, "d_model", (double)op->width, 0);
    set_real(to, "base", exp(v[PE_LADDER_BASE]), 10000);
    if (shape->halves) {
        set(to, "layout", "halves");
    }
    if (shape->cos_first) {
        set(to, "order", "cos_sin");
    }
    if (shape->minus_one) {
        set(to, "denominator", "half_minus_one");
    }
    if (trial->width < op->width) {
        set(to, "odd", "zero");
    }
    set_real(to, "position_scale", trial->ladder.sign * pe_ladder_scale(&trial->ladder), 1);
    set_real(to, "offset", v[PE_LADDER_OFFSET], 0);
    double padding = padding_of(op, trial);
    trial->padded = !isnan(padding);
    if (trial->padded) {
        set_real(to, "padding_idx", padding, NAN);
    }
    trial->factor = exp(v[PE_LADDER_FACTOR]);
}

/* A list of numbers as text. */
static void set_list(const struct setter *to, const char *name, const double *list, size_t n) {
    size_t room = 26 * n + 1, at = 0;
    char *text = pe_arena_alloc(to->arena, room, to->err);
    for (size_t i = 0; i < n && text; i++) {
        at += (size_t)snprintf(text + at, room - at, i ? ",%.15g" : "%.15g", list[i]);
    }
    if (text) {
        set(to, name, text);
    }
}

static const char *const stretch_names[] = {[PE_STRETCH_YARN] = "yarn",
                                            [PE_STRETCH_LLAMA3] = "llama3",
                                            [PE_STRETCH_PROPORTIONAL] = "proportional",
                                            [PE_STRETCH_LONGROPE] = "longrope"};

const char *pe_stretch_name(const struct pe_stretch *stretch) {
    return stretch_names[stretch->type];
}

static void yarn_spec(const struct pe_trial *trial, const struct setter *to) {
    const struct pe_stretch *stretch = trial->stretch;
    set_real(to, "scaling.factor", stretch->factor, 0);
    set_real(to, "scaling.original_max_position_embeddings", stretch->original, 0);
    set_real(to, "scaling.beta_fast", stretch->fast, 32);
    set_real(to, "scaling.beta_slow", stretch->slow, 1);
    if (!stretch->truncate) {
        set(to, "scaling.truncate", "false");
    }
}

/* The attention factor stands in the scaling, where it has one. */
static void stretch_spec(struct pe_trial *trial, const struct setter *to) {
    const struct pe_stretch *stretch = trial->stretch;
    size_t pairs = trial->width / 2;
    set(to, "scaling.rope_type", stretch_names[stretch->type]);
    if (stretch->type == PE_STRETCH_YARN) {
        yarn_spec(trial, to);
    } else if (stretch->type == PE_STRETCH_LLAMA3) {
        set_real(to, "scaling.factor", stretch->factor, 0);
        set_real(to, "scaling.original_max_position_embeddings", stretch->original, 0);
        set_real(to, "scaling.low_freq_factor", stretch->slow, 0);
        set_real(to, "scaling.high_freq_factor", stretch->fast, 0);
    } else if (stretch->type == PE_STRETCH_PROPORTIONAL) {
        set_real(to, "scaling.partial_rotary_factor", (double)stretch->turning / (double)pairs, 0);
    } else {
        set_real(to, "scaling.original_max_position_embeddings", stretch->original, 0);
        set_real(to, "seq_len", stretch->original, 0);
        set_list(to, "scaling.short_factor", stretch->divisors, pairs);
        set_list(to, "scaling.long_factor", stretch->divisors, pairs);
    }
    if (trial->attention > 0) {
        set_real(to, "scaling.attention_factor", trial->attention, 0);
    }
}

/* The scaling and shift of rotary ones; the factor of turned vectors stands beside the encoding. */
static void rope_spec(const struct pe_identify *op, struct pe_trial *trial, const struct setter *to) {
    const double *v = trial->ladder.v;
    double scale = pe_ladder_scale(&trial->ladder);
    size_t head = op->kind == PE_IDENTIFY_TURNED ? op->width : trial->width;
    set_real(to, "head_dim", (double)head, 0);
    if (trial->width < head) {
        set_real(to, "rotary_dim", (double)trial->width, 0);
    }
    set(to, "layout", trial->layout == PE_ROTARY_INTERLEAVED ? "interleaved" : "halves");
    set_real(to, "base", exp(v[PE_LADDER_BASE]), 10000);
    if (trial->ladder.sign < 0) {
        set(to, "direction", "clockwise");
    }
    if (trial->stretch) {
        stretch_spec(trial, to);
    } else if (fabs(scale - 1) > 1e-12) {
        set(to, "scaling.rope_type", "linear");
        set_real(to, "scaling.factor", 1 / scale, 0);
    }
    trial->shift = trial->ladder.sign * v[PE_LADDER_OFFSET] / (trial->stretch ? 1 : scale);
    trial->factor = exp(v[PE_LADDER_FACTOR]);
    if (trial->xpos.scale_base > 0) {
        set_real(to, "xpos.scale_base", trial->xpos.scale_base, 0);
        set_real(to, "xpos.center", trial->xpos.center + trial->shift, 0);
    }
}

static void naive_spec(const struct pe_identify *op, struct pe_trial *trial, const struct setter *to) {
    set_real(to, "d_model", (double)op->width, 0);
    set(to, "form", trial->naive);
    if (trial->length > 0) {
        set_real(to, "seq_len", trial->length, 0);
    }
    trial->factor = 1;
    trial->shift = trial->ladder.v[PE_LADDER_OFFSET];
}

static void grid_spec(const struct pe_identify *op, struct pe_trial *trial, const struct setter *to) {
    const struct pe_identify_grid *grid = trial->grid;
    bool last = strcmp(grid->combine, "mae") == 0;
    char sizes[64];
    snprintf(sizes, sizeof sizes, "%zu,%zu", grid->rows, grid->columns);
    set_real(to, "d_model", (double)op->width, 0);
    set(to, "combine", grid->combine);
    set_real(to, "base", grid->base, 10000);
    set_real(to, "cls_rows", (double)grid->before, 0);
    set_real(to, "start", grid->start, 0);
    if (grid->last_first != last) {
        set(to, "axes_order", grid->last_first ? "last_axis_first" : "first_axis_first");
    }
    if (grid->normalized) {
        set(to, "normalize", "true");
        set(to, "grid", sizes);
        set_real(to, "full_scale", grid->full, PE_TURN);
    }
    trial->factor = 1;
}

static void nerf_spec(const struct pe_identify *op, struct pe_trial *trial, const struct setter *to) {
    set(to, "features", "nerf");
    set_real(to, "n_frequencies", (double)(op->width / 2), 0);
    set(to, "pi", trial->nerf == 1 ? "true" : "false");
    set(to, "include_input", op->width % 2 ? "true" : "false");
    trial->factor = 1;
}

static const char *type_of(const struct pe_identify *op, const struct pe_trial *trial) {
    return trial->naive                    ? "naive"
           : trial->grid                   ? "sinusoidal_nd"
           : trial->nerf                   ? "fourier"
           : op->kind == PE_IDENTIFY_TABLE ? "sinusoidal"
                                           : "rope";
}

int pe_trial_spec(const struct pe_identify *op, struct pe_trial *trial, struct pe_error *err) {
    const struct setter to = {op->arena, &trial->spec, err};
    bool rotary = op->kind != PE_IDENTIFY_TABLE;
    if (pe_spec_init(op->arena, &trial->spec, type_of(op, trial), err)) {
        return err->code;
    }
    if (trial->naive) {
        naive_spec(op, trial, &to);
    } else if (trial->grid) {
        grid_spec(op, trial, &to);
    } else if (trial->nerf) {
        nerf_spec(op, trial, &to);
    } else if (rotary) {
        rope_spec(op, trial, &to);
        set_arithmetic(&to, trial);
    } else {
        sinusoidal_spec(op, trial, &to);
        set_arithmetic(&to, trial);
    }
    return err->code;
}

/* ---- Carrying it out ----------------------------------------------------------------------------------- */

static void make_by_ladder(const struct pe_trial_rows *rows, double *out) {
    const struct pe_trial *trial = rows->trial;
    size_t width = rows->op->width;
    memset(out, 0, rows->n * width * sizeof *out);
    for (size_t c = 0; c < trial->width; c++) {
        struct pe_column column = pe_shape_column(trial->shape, trial->width, c);
        for (size_t i = 0; i < rows->n; i++) {
            out[i * width + c] = pe_ladder_value(&trial->ladder, &column, rows->p[i]);
        }
    }
}

/* As code has it that divides: float32 at each step. */
static void make_by_division(const struct pe_trial_rows *rows, double *out) {
    const struct pe_trial *trial = rows->trial;
    size_t width = rows->op->width;
    float base = (float)exp(trial->ladder.v[PE_LADDER_BASE]),
          offset = (float)trial->ladder.v[PE_LADDER_OFFSET];
    float scale = (float)(trial->ladder.sign * pe_ladder_scale(&trial->ladder));
    memset(out, 0, rows->n * width * sizeof *out);
    for (size_t c = 0; c < trial->width; c++) {
        struct pe_column column = pe_shape_column(trial->shape, trial->width, c);
        float power = (float)pow(base, (float)column.exponent);
        for (size_t i = 0; i < rows->n; i++) {
            float angle = (scale * (float)rows->p[i] + offset) / power;
            float value = (float)(column.cosine ? cos(angle) : sin(angle));
            out[i * width + c] = trial->factor * value;
        }
    }
}

static void make_turned(const struct pe_trial_rows *rows, size_t i, const double *cosine, double *out) {
    const struct pe_identify *op = rows->op;
    bool halves = rows->trial->layout != PE_ROTARY_INTERLEAVED;
    size_t pairs = rows->trial->width / 2;
    const double *sine = cosine + pairs, *was = rows->was + i * op->items;
    memcpy(out, was, op->items * sizeof *out);
    for (size_t h = 0; h < op->heads; h++) {
        for (size_t k = 0; k < pairs; k++) {
            size_t a = h * op->width + (halves ? k : 2 * k), b = a + (halves ? pairs : 1);
            out[a] = rows->trial->factor * (was[a] * cosine[k] - was[b] * sine[k]);
            out[b] = rows->trial->factor * (was[b] * cosine[k] + was[a] * sine[k]);
        }
    }
}

static void make_rotary(const struct pe_trial_rows *rows, const struct pe_positions *positions, double *out) {
    const struct pe_identify *op = rows->op;
    bool turned = op->kind == PE_IDENTIFY_TURNED;
    const struct pe_rotary_rows trig = {.plan = rows->plan,
                                        .positions = positions,
                                        .dtype = PE_DTYPE_F64,
                                        .keys = rows->trial->xpos.keys,
                                        .form = turned ? PE_TRIG_HALF : op->form};
    size_t n = pe_rotary_row_items(&trig);
    for (size_t i = 0; i < rows->n; i++) {
        double *row = out + i * op->items, *to = turned ? op->scratch : row;
        pe_rotary_fill(&trig, i, 1, to, to + n);
        if (turned) {
            make_turned(rows, i, to, row);
            continue;
        }
        for (size_t k = 0; k < op->items; k++) {
            row[k] *= rows->trial->factor;
        }
    }
}

bool pe_trial_is_encoding(const struct pe_trial *trial) {
    return !trial->shape || !trial->shape->mistake;
}

static void round_all(enum pe_dtype dtype, double *x, size_t n) {
    for (size_t i = 0; i < n && dtype != PE_DTYPE_F64; i++) {
        uint64_t cell = 0;
        pe_dtype_store(dtype, &x[i], 1, &cell);
        pe_dtype_load(dtype, &cell, 1, &x[i]);
    }
}

static double place_of(const struct pe_trial *trial, double p) {
    return trial->wrap > 0 ? fmod(p + trial->shift, trial->wrap) : p + trial->shift;
}

/* The row and column of a token. */
static void place_token(const struct pe_identify_grid *grid, double p, double place[2]) {
    double token = p - (double)grid->before, row = floor(token / (double)grid->columns);
    place[0] = token < 0 ? -1 : grid->origin + row;
    place[1] = token < 0 ? -1 : grid->origin + token - row * (double)grid->columns;
}

void pe_trial_make(const struct pe_trial_rows *rows, double *shifted, double *out) {
    const struct pe_identify *op = rows->op;
    const struct pe_identify_grid *grid = rows->trial->grid;
    for (size_t i = 0; i < rows->n; i++) {
        if (grid) {
            place_token(grid, rows->p[i], shifted + 2 * i);
        } else {
            shifted[i] = place_of(rows->trial, rows->p[i]);
        }
    }
    const struct pe_positions positions = {.length = rows->n, .axes = grid ? 2 : 1, .list = shifted};
    if (!pe_trial_is_encoding(rows->trial)) {
        make_by_ladder(rows, out);
    } else if (rows->trial->arithmetic->divides) {
        make_by_division(rows, out);
    } else if (op->kind != PE_IDENTIFY_TABLE) {
        make_rotary(rows, &positions, out);
    } else {
        const struct pe_rows vectors = {.plan = rows->plan, .positions = &positions, .dtype = PE_DTYPE_F64};
        pe_rows_encode(&vectors, 0, rows->n, out);
        for (size_t i = 0; i < rows->n * op->items; i++) {
            out[i] *= rows->trial->factor;
        }
    }
    round_all(op->stored, out, rows->n * op->items);
}

/* ---- Comparing ----------------------------------------------------------------------------------------- */

bool pe_trial_pads(const struct pe_identify *op, const struct pe_trial *trial, const double *got,
                   const double *made) {
    double size = 0, miss = 0;
    if (op->n_zero == 0 || trial->grid || !pe_identify_is_zero(op, got)) {
        return false;
    }
    for (size_t i = 0; i < op->items; i++) {
        size += got[i] * got[i];
        miss += (got[i] - made[i]) * (got[i] - made[i]);
    }
    return size < miss;
}

/* Rows of the sample in even steps, both ends among them. */
static void compare(const struct pe_identify *op, struct pe_trial *trial, const struct pe_plan *plan) {
    size_t most = PE_IDENTIFY_COMPARED / op->items < 8 ? 8 : PE_IDENTIFY_COMPARED / op->items;
    size_t n = op->n < most ? op->n : most, counted = 0;
    double *made = op->scratch + 2 * op->items, sum = 0, shifted[2];
    for (size_t j = 0; j < n; j++) {
        size_t k = n > 1 ? j * (op->n - 1) / (n - 1) : 0;
        const struct pe_trial_rows rows = {.op = op,
                                           .trial = trial,
                                           .plan = plan,
                                           .p = op->p + k,
                                           .was = op->was ? op->was + k * op->items : NULL,
                                           .n = 1};
        pe_trial_make(&rows, shifted, made);
        if (pe_trial_pads(op, trial, op->got + k * op->items, made)) {
            continue;
        }
        for (size_t i = 0; i < op->items; i++) {
            double off = op->got[k * op->items + i] - made[i];
            sum += off * off;
            trial->largest = fmax(trial->largest, fabs(off));
        }
        counted += op->items;
    }
    trial->square = counted ? sum / (double)counted : 0;
    double items = (double)(op->n * op->items);
    trial->score =
        0.5 * fmin(items, PE_IDENTIFY_COMPARED) * log(trial->square + op->floor * op->floor) + trial->penalty;
}

/* Failures that are no fault of the hypothesis. */
static int grave(const struct pe_error *inner, struct pe_error *err) {
    if (inner->code == PE_ERR_MEMORY || inner->code == PE_ERR_STOPPED || inner->code == PE_ERR_LIMIT) {
        *err = *inner;
    }
    return err->code;
}

/* Does the encoding take the positions? Those of the sample have both ends. */
static int admit(const struct pe_identify *op, const struct pe_trial *trial, const struct pe_plan *plan,
                 struct pe_error *err) {
    double *shifted = op->scratch + 3 * op->items;
    if (trial->grid) { /* tokens of its own grid */
        return PE_OK;
    }
    for (size_t k = 0; k < op->n; k++) {
        shifted[k] = place_of(trial, op->p[k]);
    }
    const struct pe_positions positions = {.length = op->n, .axes = 1, .list = shifted};
    return pe_positions_admit(plan, &positions, PE_DTYPE_F64, "positions", err);
}

static void keep(struct pe_identify *op, const struct pe_trial *trial) {
    size_t worst = 0;
    for (size_t i = 1; i < op->n_trials; i++) {
        worst = op->trials[i].score > op->trials[worst].score ? i : worst;
    }
    if (op->n_trials < PE_IDENTIFY_TRIALS) {
        op->trials[op->n_trials++] = *trial;
    } else if (trial->score < op->trials[worst].score) {
        op->trials[worst] = *trial;
    }
}

int pe_identify_charge(struct pe_identify *op, size_t bytes, struct pe_error *err) {
    if (bytes > op->charged && !pe_arena_charge(op->arena, bytes - op->charged, err)) {
        op->charged = bytes;
    }
    return err->code;
}

int pe_trial_add(struct pe_identify *op, struct pe_trial *trial, struct pe_error *err) {
    struct pe_error inner = {.stop = err->stop};
    struct pe_plan *plan = NULL;
    trial->penalty += trial->arithmetic->penalty;
    trial->square = INFINITY; /* until it is compared */
    trial->largest = 0;
    if (pe_error_poll(err)) {
        return err->code;
    }
    if (pe_trial_spec(op, trial, &inner) || pe_plan_open(&plan, &trial->spec, &inner) ||
        pe_identify_charge(op, pe_plan_bytes(plan), &inner) || admit(op, trial, plan, &inner)) {
        pe_plan_close(plan);
        return grave(&inner, err);
    }
    compare(op, trial, plan);
    pe_plan_close(plan);
    keep(op, trial);
    return PE_OK;
}

const struct pe_trial *pe_trial_best(const struct pe_identify *op) {
    const struct pe_trial *best = op->n_trials ? op->trials : NULL;
    for (size_t i = 1; i < op->n_trials; i++) {
        best = op->trials[i].score < best->score ? &op->trials[i] : best;
    }
    return best;
}
