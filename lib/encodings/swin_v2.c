/* SPDX-License-Identifier: MIT
 *
 * Swin V2: the biases of a window are not a table but a small network of the offset, so that they carry over
 * to windows of another size; and logits are cosines, so that no product grows with the model.
 *
 *     u      = 8 (y_q - y_k) / (H - 1), and x likewise, of a window of pretrained size H x W
 *     v      = sign(u) log2(1 + |u|) / log2(8)                            log-spaced coordinates
 *     b(q,k) = 16 sigmoid(relu(v w1 + b1) w2)                             2 -> n -> heads
 *     logits = exp(min(logit_scale, ln 100)) cos(q, k) + b(q, k)
 *
 * coordinates=cr, of Swin V2 CR and of timm's RelPosMlp, are sign(d) ln(1 + |d|) of the offset in patches;
 * there the second layer has a bias b2, and its outputs are the biases as they are: squash=false.
 *
 * The network's outputs are the same for all windows, so they are made once, a row for each offset; `table`
 * is these rows before the sigmoid, where somebody else has made them. A side of one patch has offset 0
 * alone. With a class token before the patches a table has three rows more (swin.c); the network knows
 * nothing of it, and biases from or to it are 0, as RelPosMlp pads them. Without both `seed` makes a table:
 * its cell (row, head) is cell (r, c) of table 0 of core/cells.h.
 */
#include "encodings/encoding.h"

#include "core/cells.h"
#include "core/window.h"

#include <math.h>
#include <stdio.h>

#define HIDDEN_MAX 4096
#define HEADS_MAX  1024
#define VALUES_MAX ((size_t)1 << 22)
#define CHUNK      256 /* cells read at a time, on the stack */

enum coordinates { COORDINATES_SWIN = 1, COORDINATES_CR };

struct swin_v2 {
    uint64_t given;
    struct pe_ints window, pretrained_window;
    int coordinates;
    struct pe_table w1, b1, w2, b2, table;
    bool squash;
    int64_t cls_rows;
    const struct pe_tensor *logit_scale;
    int64_t seed;
    double std;
};

static const struct pe_choice coordinate_choices[] = {
    {"swin", COORDINATES_SWIN, "as published: normalised by the pretrained window, base-2 logarithm"},
    {"cr", COORDINATES_CR, "natural logarithm of the offset in patches"},
    {0},
};

enum {
    FIELD_WINDOW,
    FIELD_PRETRAINED_WINDOW,
    FIELD_COORDINATES,
    FIELD_W1,
    FIELD_B1,
    FIELD_W2,
    FIELD_B2,
    FIELD_TABLE,
    FIELD_SQUASH,
    FIELD_CLS_ROWS,
    FIELD_LOGIT_SCALE,
    FIELD_SEED,
    FIELD_STD
};

static const struct pe_field fields[] = {
    [FIELD_WINDOW] = {PE_FIELD(swin_v2, window), .flags = PE_FIELD_REQUIRED, .min = 1, .max = PE_WINDOW_MAX,
                      .doc = "[h, w] patches"},
    [FIELD_PRETRAINED_WINDOW] = {PE_FIELD(swin_v2, pretrained_window), .min = 1, .max = PE_WINDOW_MAX,
                                 .doc = "[h, w] that the network was trained with [window]"},
    [FIELD_COORDINATES] = {PE_FIELD(swin_v2, coordinates), .choices = coordinate_choices, .def = "swin",
                           .doc = "what the network is given"},
    [FIELD_W1] = {PE_FIELD(swin_v2, w1), .shape = "[2, n]",
                  .doc = "first layer, as in x.w1: torch's weight transposed"},
    [FIELD_B1] = {PE_FIELD(swin_v2, b1), .shape = "[n]", .doc = "its bias"},
    [FIELD_W2] = {PE_FIELD(swin_v2, w2), .shape = "[n, H]", .doc = "second layer"},
    [FIELD_B2] = {PE_FIELD(swin_v2, b2), .shape = "[H]",
                  .doc = "its bias, which the published network does not have"},
    [FIELD_TABLE] = {PE_FIELD(swin_v2, table), .shape = "[(2h-1)(2w-1), H], with cls_rows three rows more",
                     .doc = "in place of the network: its outputs by offset, before the sigmoid"},
    [FIELD_SQUASH] = {PE_FIELD(swin_v2, squash), .def = "true",
                      .doc = "are biases 16 sigmoid(x) of the outputs x, as published? If not, they are x"},
    [FIELD_CLS_ROWS] = {PE_FIELD(swin_v2, cls_rows), .min = 0, .max = 1, .def = "0",
                        .doc = "class tokens before the patches"},
    [FIELD_LOGIT_SCALE] = {PE_FIELD(swin_v2, logit_scale), .flags = PE_FIELD_NUMBERS, .shape = "[1] or [H]",
                           .doc = "logarithm of what cosines are multiplied by, up to ln 100 [ln 10]"},
    [FIELD_SEED] = {PE_FIELD(swin_v2, seed), .min = 0, .max = PE_POSITION_MAX,
                    .doc = "in place of both: a random table"},
    [FIELD_STD] = {PE_FIELD(swin_v2, std), .min = 0, .max = 1000, .def = "1", .flags = PE_FIELD_OPEN_MIN,
                   .doc = "standard deviation of its numbers"},
};

/* ---- Checks -------------------------------------------------------------------------------------------- */

static bool seeded(const struct swin_v2 *swin) {
    return pe_field_given(fields, &fields[FIELD_SEED], swin);
}

/* Of the second layer, if there is one. */
static int b2_check(const struct swin_v2 *swin, size_t heads, struct pe_error *err) {
    const struct pe_tensor *b2 = swin->b2.tensor;
    if (pe_cells_given(&swin->b2) && pe_cells_check(&swin->b2, "b2", false, err)) {
        return err->code;
    }
    return b2 && (b2->rank != 1 || b2->dim[0] != heads)
               ? pe_cells_shape_fail(b2, "b2", "[H], with the H of w2", err)
               : PE_OK;
}

static int network_check(const struct swin_v2 *swin, struct pe_error *err) {
    const struct pe_tensor *w1 = swin->w1.tensor, *b1 = swin->b1.tensor, *w2 = swin->w2.tensor;
    if (pe_cells_check(&swin->w1, "w1", false, err) || pe_cells_check(&swin->b1, "b1", false, err) ||
        pe_cells_check(&swin->w2, "w2", false, err)) {
        return err->code;
    }
    if (w1->rank != 2 || w1->dim[0] != 2 || w1->dim[1] < 1 || w1->dim[1] > HIDDEN_MAX) {
        return pe_cells_shape_fail(w1, "w1", "[2, n] with n up to 4096", err);
    }
    if (b1->rank != 1 || b1->dim[0] != w1->dim[1]) {
        return pe_cells_shape_fail(b1, "b1", "[n], with the n of w1", err);
    }
    if (w2->rank != 2 || w2->dim[0] != w1->dim[1] || w2->dim[1] < 1 || w2->dim[1] > HEADS_MAX) {
        return pe_cells_shape_fail(w2, "w2", "[n, H], with the n of w1 and H up to 1024", err);
    }
    return b2_check(swin, w2->dim[1], err);
}

static int table_check(const struct swin_v2 *swin, const struct pe_window *window, struct pe_error *err) {
    const struct pe_tensor *table = swin->table.tensor;
    char allowed[120];
    if (pe_cells_check(&swin->table, "table", seeded(swin), err) || !table) {
        return err->code;
    }
    if (table->rank == 2 && table->dim[0] == pe_window_rows(window) && table->dim[1] >= 1 &&
        table->dim[1] <= HEADS_MAX) {
        return PE_OK;
    }
    snprintf(allowed, sizeof allowed, "[%zu, H] for a window of %zu x %zu%s, H up to %d",
             pe_window_rows(window), window->h, window->w, window->cls ? " with a class token" : "",
             HEADS_MAX);
    return pe_cells_shape_fail(table, "table", allowed, err);
}

static int scale_check(const struct pe_tensor *scale, struct pe_error *err) {
    if (!scale || (scale->rank == 1 && scale->dim[0] > 0)) {
        return PE_OK;
    }
    return pe_cells_shape_fail(scale, "logit_scale", "one number or a list of one per head", err);
}

static size_t heads_of(const struct swin_v2 *swin) {
    return swin->w2.tensor ? swin->w2.tensor->dim[1] : swin->table.tensor ? swin->table.tensor->dim[1] : 0;
}

/* The biases of all offsets and heads are kept. */
static int values_check(const struct swin_v2 *swin, const struct pe_window *window, struct pe_error *err) {
    size_t n = pe_window_rows(window) * heads_of(swin); /* 2047^2 * HEADS_MAX fits */
    if (n <= VALUES_MAX) {
        return PE_OK;
    }
    return pe_fail_limit(err, "window", "values", VALUES_MAX, n,
                         "a window of %zu x %zu with %zu heads has %zu biases, at most %zu are allowed",
                         window->h, window->w, heads_of(swin), n, VALUES_MAX);
}

static bool has_network(const struct swin_v2 *swin) {
    return pe_cells_given(&swin->w1) || pe_cells_given(&swin->b1) || pe_cells_given(&swin->w2) ||
           pe_cells_given(&swin->b2);
}

/* The window that the network was trained with divides offsets, and nothing else. */
static int trained_check(const struct swin_v2 *swin, const struct pe_window *window, struct pe_error *err) {
    static const char field[] = "pretrained_window";
    struct pe_window trained;
    if (!swin->pretrained_window.n) {
        return PE_OK;
    }
    if (pe_window_read(&trained, &swin->pretrained_window, 0, field, err)) {
        return err->code;
    }
    if (!has_network(swin) || swin->coordinates == COORDINATES_CR) {
        return pe_fail(err, PE_ERR_CONFLICT, field,
                       "divides the coordinates=swin of a network (w1, b1, w2), %s",
                       has_network(swin) ? "not those of cr" : "which is not given");
    }
    if ((trained.h == 1 && window->h > 1) || (trained.w == 1 && window->w > 1)) {
        return pe_fail(
            err, PE_ERR_RANGE, field,
            "has %zu x %zu patches, but offsets of the window's %zu x %zu cannot be told by a side "
            "of 1",
            trained.h, trained.w, window->h, window->w);
    }
    return PE_OK;
}

static int swin_check(const void *params, struct pe_error *err) {
    const struct swin_v2 *swin = params;
    struct pe_window window;
    if (pe_window_read(&window, &swin->window, swin->cls_rows, "window", err) ||
        trained_check(swin, &window, err) || scale_check(swin->logit_scale, err)) {
        return err->code;
    }
    bool network = has_network(swin);
    if (network && (pe_cells_given(&swin->table) || seeded(swin))) {
        return pe_fail(err, PE_ERR_CONFLICT, seeded(swin) ? "seed" : "table",
                       "is given, and so is the network (w1, b1, w2): give one of them");
    }
    if (network ? network_check(swin, err) : table_check(swin, &window, err)) {
        return err->code;
    }
    return values_check(swin, &window, err);
}

/* ---- Plan ---------------------------------------------------------------------------------------------- */

struct plan {
    struct pe_window window; /* first, so data is a window, too */
    size_t heads;            /* of the rows; 0: from the seed, for any number of heads */
    double largest;          /* |value| */
    double values[];         /* [rows, heads], the biases */
};

/* Bounded by values_check. */
static size_t swin_plan_bytes(const void *params) {
    const struct swin_v2 *swin = params;
    const struct pe_window window = {
        .h = (size_t)swin->window.v[0], .w = (size_t)swin->window.v[1], .cls = (size_t)swin->cls_rows};
    return sizeof(struct plan) + pe_window_rows(&window) * heads_of(swin) * sizeof(double);
}

static double bias_of(const struct swin_v2 *swin, double output) {
    return swin->squash ? 16 / (1 + exp(-output)) : output;
}

/* One coordinate of an offset d, with a side of so many patches. */
static double coordinate(const struct swin_v2 *swin, double d, double side) {
    if (swin->coordinates == COORDINATES_CR) {
        return copysign(log1p(fabs(d)), d);
    }
    double u = side > 1 ? 8 * d / (side - 1) : 0;
    return copysign(log2(1 + fabs(u)) / 3, d);
}

/* values += factor * row k of the tensor. */
static void cells_add(const struct pe_tensor *tensor, size_t k, double factor, double *values) {
    size_t heads = tensor->dim[tensor->rank - 1], size = pe_dtype_size(tensor->dtype);
    double cells[CHUNK];
    for (size_t h = 0, n; h < heads; h += n) {
        n = heads - h < CHUNK ? heads - h : CHUNK;
        pe_dtype_load(tensor->dtype, (const unsigned char *)tensor->data + (k * heads + h) * size, n, cells);
        for (size_t i = 0; i < n; i++) {
            values[h + i] += factor * cells[i];
        }
    }
}

/* The outputs [heads] for one offset, to cleared memory. */
static int network(const struct swin_v2 *swin, double y, double x, double *outputs, struct pe_error *err) {
    const struct pe_tensor *w2 = swin->w2.tensor, *b2 = swin->b2.tensor;
    size_t n = w2->dim[0], heads = w2->dim[1];
    const struct pe_cells w1 = {.tensor = swin->w1.tensor, .columns = n};
    const struct pe_cells b1 = {.tensor = swin->b1.tensor, .columns = 1};
    for (size_t k = 0; k < n; k++) {
        double unit = y * pe_cells_at(&w1, 0, k) + x * pe_cells_at(&w1, 1, k) + pe_cells_at(&b1, k, 0);
        if (!isfinite(unit)) {
            return pe_fail(err, PE_ERR_RANGE, "w1", "makes unit %zu larger than any float64", k);
        }
        if (unit > 0) {
            cells_add(w2, k, unit, outputs);
        }
    }
    if (b2) {
        cells_add(b2, 0, 1, outputs);
    }
    for (size_t h = 0; h < heads; h++) {
        if (!isfinite(outputs[h])) {
            return pe_fail(err, PE_ERR_RANGE, "w2", "makes output %zu larger than any float64", h);
        }
    }
    return PE_OK;
}

/* The biases of one offset. */
static int row_fill(const struct pe_plan_view *view, size_t row, struct pe_error *err) {
    const struct swin_v2 *swin = view->params;
    struct plan *plan = view->data;
    double *values = plan->values + row * plan->heads;
    size_t across = 2 * plan->window.w - 1, offsets = (2 * plan->window.h - 1) * across;
    if (swin->table.tensor) {
        cells_add(swin->table.tensor, row, 1, values);
    } else if (row >= offsets) {
        return PE_OK;
    } else {
        const struct pe_ints *trained = swin->pretrained_window.n ? &swin->pretrained_window : &swin->window;
        double y = (double)(row / across) - (double)(plan->window.h - 1);
        double x = (double)(row % across) - (double)(plan->window.w - 1);
        if (network(swin, coordinate(swin, y, (double)trained->v[0]),
                    coordinate(swin, x, (double)trained->v[1]), values, err)) {
            return err->code;
        }
    }
    for (size_t h = 0; h < plan->heads; h++) {
        values[h] = bias_of(swin, values[h]);
        plan->largest = fmax(plan->largest, fabs(values[h]));
    }
    return PE_OK;
}

static int swin_plan(struct pe_plan_view *view, struct pe_error *err) {
    const struct swin_v2 *swin = view->params;
    const struct pe_cells cells = {.seed = swin->seed, .std = swin->std};
    struct plan *plan = view->data;
    plan->heads = heads_of(swin);
    plan->largest = plan->heads ? 0 : swin->squash ? 16 : pe_cells_largest(&cells, err->stop);
    if (pe_window_read(&plan->window, &swin->window, swin->cls_rows, "window", err)) {
        return err->code;
    }
    size_t rows = plan->heads ? pe_window_rows(&plan->window) : 0;
    for (size_t row = 0; row < rows && !pe_error_poll(err); row++) {
        if (row_fill(view, row, err)) {
            return err->code;
        }
    }
    return err->code;
}

/* ---- Hooks --------------------------------------------------------------------------------------------- */

static int swin_admit(const struct pe_plan_view *view, const struct pe_positions *positions,
                      struct pe_error *err) {
    return pe_window_admit(view->data, positions, err);
}

static int swin_suits(const struct pe_plan_view *view, const struct pe_relation *relation,
                      struct pe_error *err) {
    size_t heads = relation->heads;
    const struct swin_v2 *swin = view->params;
    const struct plan *plan = view->data;
    size_t n = swin->logit_scale ? swin->logit_scale->dim[0] : 1;
    if (plan->heads && plan->heads != heads) {
        return pe_fail(err, PE_ERR_SHAPE, swin->w2.tensor ? "w2" : "table",
                       "has columns for %zu heads, but there are %zu", plan->heads, heads);
    }
    if (n != 1 && n != heads) {
        return pe_fail(err, PE_ERR_SHAPE, "logit_scale", "has %zu numbers, but there are %zu heads", n,
                       heads);
    }
    return PE_OK;
}

static size_t swin_tokens(const struct pe_plan_view *view, bool keys) {
    (void)keys;
    return pe_window_tokens(view->data);
}

/* Each offset's bias, where a seed would otherwise be asked for each pair. */
static size_t swin_n_biases(const struct pe_plan_view *view, const struct pe_relation *relation) {
    double pairs = (double)relation->queries * (double)relation->keys;
    return pe_window_worth(view->data, pairs, relation->n_slots);
}

static double bias_at(const struct pe_plan_view *view, size_t offset, size_t head) {
    const struct swin_v2 *swin = view->params;
    const struct plan *plan = view->data;
    const struct pe_cells cells = {.seed = swin->seed, .std = swin->std};
    return plan->heads ? plan->values[offset * plan->heads + head]
                       : bias_of(swin, pe_cells_at(&cells, offset, head));
}

static void swin_biases(const struct pe_plan_view *view, size_t head, size_t heads, size_t first, size_t n,
                        double *out) {
    (void)heads;
    for (size_t i = 0; i < n; i++) {
        out[i] = bias_at(view, first + i, head);
    }
}

static void swin_bias(const struct pe_plan_view *view, const struct pe_pair_row *row, double *out) {
    for (size_t j = 0; j < row->n; j++) {
        size_t offset = pe_window_row(view->data, (size_t)row->query, (size_t)row->keys[j]);
        out[j] = row->of_head ? row->of_head[offset] : bias_at(view, offset, row->head);
    }
}

static double swin_reach(const struct pe_plan_view *view, const struct pe_relation *relation) {
    (void)relation;
    return ((const struct plan *)view->data)->largest;
}

static double swin_cosine(const struct pe_plan_view *view, size_t head) {
    const struct pe_tensor *scale = ((const struct swin_v2 *)view->params)->logit_scale;
    const struct pe_cells cells = {.tensor = scale, .columns = 1};
    if (!scale) {
        return 10;
    }
    return fmin(exp(pe_cells_at(&cells, scale->dim[0] > 1 ? head : 0, 0)), 100);
}

/* Cosines are not divided by anything. */
static double swin_scale(const struct pe_plan_view *view, double usual) {
    (void)view;
    (void)usual;
    return 1;
}

static double swin_v2_cost_ns(const struct pe_plan_view *view, enum pe_dtype dtype) {
    (void)dtype;
    (void)view;
    return 4; /* its table is made with the plan */
}

const struct pe_encoding pe_swin_v2 = {
    .info =
        {
            .type = "swin_v2",
            .title = "Swin V2's continuous position bias",
            .doc =
                "Within a window of image patches, a small network of the log-spaced offset gives the bias, "
                "so it carries over to other windows; logits are scaled cosines.",
            .reference = "Liu et al. 2022, Swin Transformer V2, arXiv:2111.09883",
            .family = PE_FAMILY_BIAS,
            .params_size = sizeof(struct swin_v2),
            .fields = fields,
            .n_fields = PE_COUNT(fields),
        },
    .check = swin_check,
    .plan_bytes = swin_plan_bytes,
    .plan = swin_plan,
    .admit = swin_admit,
    .suits = swin_suits,
    .tokens = swin_tokens,
    .head_numbers = swin_biases,
    .n_head_numbers = swin_n_biases,
    .bias = swin_bias,
    .reach = swin_reach,
    .cosine = swin_cosine,
    .scale = swin_scale,
    .row_cost_ns = swin_v2_cost_ns,
};
