/* SPDX-License-Identifier: MIT
 *
 * Swin: within a window of h x w patches every offset of two patches has a learned bias for each head,
 *
 *     b(q, k) = table[(y_q - y_k + h - 1)(2w - 1) + x_q - x_k + w - 1]        [(2h-1)(2w-1), H]
 *
 * LeViT folds the offsets, table[|y_q - y_k| w + |x_q - x_k|] of [h*w, H]: to either side is the same.
 *
 * The factor of the rows is 2w - 1: with 2h - 1 in its place a square window hides the fault. Tokens are the
 * patches row by row. BEiT puts a class token before them, with three rows behind the table for class to
 * patch, patch to class, and class to class. Without a table `seed` makes one: its cell (row, head) is cell
 * (r, c) of table 0 of core/cells.h.
 */
#include "encodings/encoding.h"

#include "core/cells.h"
#include "core/window.h"

struct swin {
    uint64_t given;
    struct pe_ints window;
    struct pe_table table;
    int64_t cls_rows;
    int offsets;
    int64_t seed;
    double std;
};

enum offsets { OFFSETS_SIGNED = 1, OFFSETS_ABSOLUTE };

static const struct pe_choice offset_choices[] = {
    {"signed", OFFSETS_SIGNED, "(2h-1)(2w-1) offsets, as Swin and BEiT have them"},
    {"absolute", OFFSETS_ABSOLUTE, "h*w of them, to either side the same, as in LeViT"},
    {0},
};

enum { FIELD_WINDOW, FIELD_TABLE, FIELD_CLS_ROWS, FIELD_OFFSETS, FIELD_SEED, FIELD_STD };

static const struct pe_field fields[] = {
    [FIELD_WINDOW] = {PE_FIELD(swin, window), .flags = PE_FIELD_REQUIRED, .min = 1, .max = PE_WINDOW_MAX,
                      .doc = "[h, w] patches"},
    [FIELD_TABLE] = {PE_FIELD(swin, table),
                     .shape = "[(2h-1)(2w-1), H] or [h*w, H], with cls_rows three rows more",
                     .doc = "the biases by offset"},
    [FIELD_CLS_ROWS] = {PE_FIELD(swin, cls_rows), .min = 0, .max = 1, .def = "0",
                        .doc = "class tokens before the patches, as in BEiT"},
    [FIELD_OFFSETS] = {PE_FIELD(swin, offsets), .choices = offset_choices, .def = "signed",
                       .doc = "what the table has a row for"},
    [FIELD_SEED] = {PE_FIELD(swin, seed), .min = 0, .max = PE_POSITION_MAX,
                    .doc = "in place of a table: a random one"},
    [FIELD_STD] = {PE_FIELD(swin, std), .min = 0, .max = 1000, .def = "1", .flags = PE_FIELD_OPEN_MIN,
                   .doc = "standard deviation of its numbers"},
};

static int window_of(struct pe_window *window, const struct swin *swin, struct pe_error *err) {
    if (pe_window_read(window, &swin->window, swin->cls_rows, "window", err)) {
        return err->code;
    }
    window->folded = swin->offsets == OFFSETS_ABSOLUTE;
    return PE_OK;
}

static struct pe_cells cells_of(const struct swin *swin) {
    const struct pe_tensor *table = swin->table.tensor;
    return (struct pe_cells){
        .tensor = table, .columns = table ? table->dim[1] : 1, .seed = swin->seed, .std = swin->std};
}

/* A table that does not fit is most often one of another window: 732 rows are 27 x 27 + 3. */
static int swin_check(const void *params, struct pe_error *err) {
    const struct swin *swin = params;
    const struct pe_tensor *table = swin->table.tensor;
    struct pe_window window;
    char shape[128];
    if (window_of(&window, swin, err) ||
        pe_cells_check(&swin->table, "table", pe_field_given(fields, &fields[FIELD_SEED], swin), err)) {
        return err->code;
    }
    size_t rows = pe_window_rows(&window);
    if (!table || (table->rank == 2 && table->dim[0] == rows && table->dim[1] > 0)) {
        return PE_OK;
    }
    return pe_fail(err, PE_ERR_SHAPE, "table",
                   "has shape %s, but a window of %zu x %zu%s needs [%zu, H]; one of another window can be "
                   "resized by convert",
                   pe_tensor_shape_text(table, shape, sizeof shape), window.h, window.w,
                   window.cls ? " with a class token" : "", rows);
}

struct plan {
    struct pe_window window; /* first, so data is a window, too */
    double largest;          /* |bias| */
};

static size_t swin_plan_bytes(const void *params) {
    (void)params;
    return sizeof(struct plan);
}

static int swin_plan(struct pe_plan_view *view, struct pe_error *err) {
    const struct pe_cells cells = cells_of(view->params);
    struct plan *plan = view->data;
    plan->largest = pe_cells_largest(&cells, err->stop);
    return window_of(&plan->window, view->params, err) ? err->code : pe_error_poll(err);
}

static int swin_admit(const struct pe_plan_view *view, const struct pe_positions *positions,
                      struct pe_error *err) {
    return pe_window_admit(view->data, positions, err);
}

static int swin_suits(const struct pe_plan_view *view, const struct pe_relation *relation,
                      struct pe_error *err) {
    size_t heads = relation->heads;
    const struct pe_tensor *table = ((const struct swin *)view->params)->table.tensor;
    if (!table || table->dim[1] == heads) {
        return PE_OK;
    }
    return pe_fail(err, PE_ERR_SHAPE, "table", "has columns for %zu heads, but there are %zu", table->dim[1],
                   heads);
}

static size_t swin_tokens(const struct pe_plan_view *view, bool keys) {
    (void)keys;
    return pe_window_tokens(view->data);
}

/* Each offset's bias, where it would otherwise be read, or drawn, for each pair. */
static size_t swin_n_biases(const struct pe_plan_view *view, const struct pe_relation *relation) {
    return pe_window_worth(view->data, (double)relation->queries * (double)relation->keys, relation->n_slots);
}

static void swin_biases(const struct pe_plan_view *view, size_t head, size_t heads, size_t first, size_t n,
                        double *out) {
    const struct pe_cells cells = cells_of(view->params);
    (void)heads;
    for (size_t i = 0; i < n; i++) {
        out[i] = pe_cells_at(&cells, first + i, head);
    }
}

static void swin_bias(const struct pe_plan_view *view, const struct pe_pair_row *row, double *out) {
    const struct pe_cells cells = cells_of(view->params);
    for (size_t j = 0; j < row->n; j++) {
        size_t offset = pe_window_row(view->data, (size_t)row->query, (size_t)row->keys[j]);
        out[j] = row->of_head ? row->of_head[offset] : pe_cells_at(&cells, offset, row->head);
    }
}

static double swin_reach(const struct pe_plan_view *view, const struct pe_relation *relation) {
    (void)relation;
    return ((const struct plan *)view->data)->largest;
}

static double swin_cost_ns(const struct pe_plan_view *view, enum pe_dtype dtype) {
    (void)dtype;
    (void)view;
    return 6;
}

const struct pe_encoding pe_swin = {
    .info =
        {
            .type = "swin",
            .title = "Swin's relative position bias",
            .doc = "Within a window of image patches, a learned bias for every offset of two patches.",
            .reference = "Liu et al. 2021, Swin Transformer, arXiv:2103.14030; BEiT, arXiv:2106.08254",
            .family = PE_FAMILY_BIAS,
            .params_size = sizeof(struct swin),
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
    .row_cost_ns = swin_cost_ns,
};
