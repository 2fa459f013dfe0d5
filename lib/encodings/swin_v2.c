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
 * coordinates=cr is the variant of another implementation: sign(d) ln(1 + |d|) of the offset in patches. The
 * network's outputs are the same for all windows, so they are made once, a row for each offset; `table` is
 * these rows before the sigmoid, where somebody else has made them. A side of one patch has offset 0 alone.
 */
#include "encodings/encoding.h"

#include "core/cells.h"
#include "core/window.h"

#include <math.h>
#include <stdio.h>

#define HIDDEN_MAX 4096
#define HEADS_MAX  1024
#define VALUES_MAX ((size_t)1 << 22)

enum coordinates { COORDINATES_SWIN = 1, COORDINATES_CR };

struct swin_v2 {
    uint64_t given;
    struct pe_ints window, pretrained_window;
    int coordinates;
    struct pe_table w1, b1, w2, table;
    const struct pe_tensor *logit_scale;
    int64_t seed;
    double std;
};

static const struct pe_choice coordinate_choices[] = {
    {"swin", COORDINATES_SWIN, "as published: normalised by the pretrained window, base-2 logarithm"},
    {"cr", COORDINATES_CR, "natural logarithm of the offset in patches"},
    {0},
};

static const struct pe_field fields[] = {
    {PE_FIELD(swin_v2, window), .flags = PE_FIELD_REQUIRED, .min = 1, .max = PE_WINDOW_MAX,
     .doc = "[h, w] patches"},
    {PE_FIELD(swin_v2, pretrained_window), .min = 1, .max = PE_WINDOW_MAX,
     .doc = "[h, w] that the network was trained with [window]"},
    {PE_FIELD(swin_v2, coordinates), .choices = coordinate_choices, .def = "swin",
     .doc = "what the network is given"},
    {PE_FIELD(swin_v2, w1), .shape = "[2, n]", .doc = "first layer, as in x.w1: torch's weight transposed"},
    {PE_FIELD(swin_v2, b1), .shape = "[n]", .doc = "its bias"},
    {PE_FIELD(swin_v2, w2), .shape = "[n, H]", .doc = "second layer; it has no bias"},
    {PE_FIELD(swin_v2, table), .shape = "[(2h-1)(2w-1), H]",
     .doc = "in place of the network: its outputs by offset, before the sigmoid"},
    {PE_FIELD(swin_v2, logit_scale), .flags = PE_FIELD_NUMBERS, .shape = "[1] or [H]",
     .doc = "logarithm of what cosines are multiplied by, up to ln 100 [ln 10]"},
    {PE_FIELD(swin_v2, seed), .min = 0, .max = PE_POSITION_MAX, .doc = "in place of both: a random table"},
    {PE_FIELD(swin_v2, std), .min = 0, .max = 1000, .def = "1", .flags = PE_FIELD_OPEN_MIN,
     .doc = "standard deviation of its numbers"},
};
enum { FIELD_SEED = 8 };

/* ---- Checks -------------------------------------------------------------------------------------------- */

static bool there(const struct pe_table *table) {
    return table->tensor || table->name;
}

static bool seeded(const struct swin_v2 *swin) {
    return pe_field_given(fields, &fields[FIELD_SEED], swin);
}

static int shape_fail(const struct pe_tensor *tensor, const char *field, const char *allowed,
                      struct pe_error *err) {
    char shape[128];
    return pe_fail(err, PE_ERR_SHAPE, field, "has shape %s, allowed is %s",
                   pe_tensor_shape_text(tensor, shape, sizeof shape), allowed);
}

static int network_check(const struct swin_v2 *swin, struct pe_error *err) {
    const struct pe_tensor *w1 = swin->w1.tensor, *b1 = swin->b1.tensor, *w2 = swin->w2.tensor;
    if (pe_cells_check(&swin->w1, "w1", false, err) || pe_cells_check(&swin->b1, "b1", false, err) ||
        pe_cells_check(&swin->w2, "w2", false, err)) {
        return err->code;
    }
    if (w1->rank != 2 || w1->dim[0] != 2 || w1->dim[1] < 1 || w1->dim[1] > HIDDEN_MAX) {
        return shape_fail(w1, "w1", "[2, n] with n up to 4096", err);
    }
    if (b1->rank != 1 || b1->dim[0] != w1->dim[1]) {
        return shape_fail(b1, "b1", "[n], with the n of w1", err);
    }
    if (w2->rank != 2 || w2->dim[0] != w1->dim[1] || w2->dim[1] < 1 || w2->dim[1] > HEADS_MAX) {
        return shape_fail(w2, "w2", "[n, H], with the n of w1 and H up to 1024", err);
    }
    return PE_OK;
}

static int table_check(const struct swin_v2 *swin, const struct pe_window *window, struct pe_error *err) {
    const struct pe_tensor *table = swin->table.tensor;
    char allowed[80];
    if (pe_cells_check(&swin->table, "table", seeded(swin), err) || !table) {
        return err->code;
    }
    if (table->rank == 2 && table->dim[0] == pe_window_rows(window) && table->dim[1] >= 1 &&
        table->dim[1] <= HEADS_MAX) {
        return PE_OK;
    }
    snprintf(allowed, sizeof allowed, "[%zu, H] for a window of %zu x %zu, H up to %d",
             pe_window_rows(window), window->h, window->w, HEADS_MAX);
    return shape_fail(table, "table", allowed, err);
}

static int scale_check(const struct pe_tensor *scale, struct pe_error *err) {
    if (!scale || (scale->rank == 1 && scale->dim[0] > 0)) {
        return PE_OK;
    }
    return shape_fail(scale, "logit_scale", "one number or a list of one per head", err);
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

static int swin_check(const void *params, struct pe_error *err) {
    const struct swin_v2 *swin = params;
    struct pe_window window, pretrained;
    if (pe_window_read(&window, &swin->window, 0, err) ||
        (swin->pretrained_window.n && pe_window_read(&pretrained, &swin->pretrained_window, 0, err)) ||
        scale_check(swin->logit_scale, err)) {
        return err->code;
    }
    bool network = there(&swin->w1) || there(&swin->b1) || there(&swin->w2);
    if (network && (there(&swin->table) || seeded(swin))) {
        return pe_fail(err, PE_ERR_CONFLICT, seeded(swin) ? "seed" : "table",
                       "is given, and so is the network: give one of them");
    }
    if (network ? network_check(swin, err) : table_check(swin, &window, err)) {
        return err->code;
    }
    return values_check(swin, &window, err);
}

/* ---- Plan ---------------------------------------------------------------------------------------------- */

struct plan {
    struct pe_window window;
    size_t heads;    /* of the rows; 0: from the seed, for any number of heads */
    double values[]; /* [rows, heads], after the sigmoid */
};

/* Bounded by values_check. */
static size_t swin_plan_bytes(const void *params) {
    const struct swin_v2 *swin = params;
    const struct pe_window window = {.h = (size_t)swin->window.v[0], .w = (size_t)swin->window.v[1]};
    return sizeof(struct plan) + pe_window_rows(&window) * heads_of(swin) * sizeof(double);
}

static double sigmoid16(double x) {
    return 16 / (1 + exp(-x));
}

/* One coordinate of an offset d, with a side of so many patches. */
static double coordinate(const struct swin_v2 *swin, double d, double side) {
    if (swin->coordinates == COORDINATES_CR) {
        return copysign(log1p(fabs(d)), d);
    }
    double u = side > 1 ? 8 * d / (side - 1) : 0;
    return copysign(log2(1 + fabs(u)) / 3, d);
}

/* values [heads] of one offset. */
static void network(const struct swin_v2 *swin, double y, double x, double *values) {
    const struct pe_tensor *tensors[] = {swin->w1.tensor, swin->b1.tensor, swin->w2.tensor};
    size_t n = tensors[0]->dim[1], heads = tensors[2]->dim[1];
    const struct pe_cells w1 = {.tensor = tensors[0], .columns = n};
    const struct pe_cells b1 = {.tensor = tensors[1], .columns = 1};
    const struct pe_cells w2 = {.tensor = tensors[2], .columns = heads};
    for (size_t k = 0; k < n; k++) {
        double unit = y * pe_cells_at(&w1, 0, k) + x * pe_cells_at(&w1, 1, k) + pe_cells_at(&b1, k, 0);
        for (size_t h = 0; h < heads && unit > 0; h++) {
            values[h] += unit * pe_cells_at(&w2, k, h);
        }
    }
}

static void row_fill(const struct pe_plan_view *view, size_t row) {
    const struct swin_v2 *swin = view->params;
    struct plan *plan = view->data;
    double *values = plan->values + row * plan->heads;
    if (swin->table.tensor) {
        const struct pe_cells cells = {.tensor = swin->table.tensor, .columns = plan->heads};
        for (size_t h = 0; h < plan->heads; h++) {
            values[h] = pe_cells_at(&cells, row, h);
        }
    } else {
        const struct pe_ints *trained = swin->pretrained_window.n ? &swin->pretrained_window : &swin->window;
        size_t across = 2 * plan->window.w - 1;
        double y = (double)(row / across) - (double)(plan->window.h - 1);
        double x = (double)(row % across) - (double)(plan->window.w - 1);
        network(swin, coordinate(swin, y, (double)trained->v[0]), coordinate(swin, x, (double)trained->v[1]),
                values);
    }
    for (size_t h = 0; h < plan->heads; h++) {
        values[h] = sigmoid16(values[h]);
    }
}

static int swin_plan(struct pe_plan_view *view, struct pe_error *err) {
    const struct swin_v2 *swin = view->params;
    struct plan *plan = view->data;
    plan->heads = heads_of(swin);
    if (pe_window_read(&plan->window, &swin->window, 0, err)) {
        return err->code;
    }
    size_t rows = plan->heads ? pe_window_rows(&plan->window) : 0;
    for (size_t row = 0; row < rows && !pe_error_poll(err); row++) {
        row_fill(view, row);
    }
    return err->code;
}

/* ---- Hooks --------------------------------------------------------------------------------------------- */

static const struct pe_window *window_of(const struct pe_plan_view *view) {
    return &((const struct plan *)view->data)->window;
}

static int swin_admit(const struct pe_plan_view *view, const struct pe_positions *positions,
                      struct pe_error *err) {
    return pe_window_admit(window_of(view), positions, err);
}

static int swin_admit_heads(const struct pe_plan_view *view, size_t heads, struct pe_error *err) {
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

static size_t swin_tokens(const struct pe_plan_view *view) {
    return pe_window_tokens(window_of(view));
}

static void swin_bias(const struct pe_plan_view *view, const struct pe_pair_row *row, double *out) {
    const struct swin_v2 *swin = view->params;
    const struct plan *plan = view->data;
    const struct pe_cells cells = {.seed = swin->seed, .std = swin->std};
    for (size_t j = 0; j < row->n; j++) {
        size_t offset = pe_window_row(&plan->window, (size_t)row->query, (size_t)row->keys[j]);
        out[j] = plan->heads ? plan->values[offset * plan->heads + row->head]
                             : sigmoid16(pe_cells_at(&cells, offset, row->head));
    }
}

static double swin_reach(const struct pe_plan_view *view, const struct pe_relation *relation) {
    (void)view;
    (void)relation;
    return 16;
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
    .admit_heads = swin_admit_heads,
    .tokens = swin_tokens,
    .bias = swin_bias,
    .reach = swin_reach,
    .cosine = swin_cosine,
    .scale = swin_scale,
};
