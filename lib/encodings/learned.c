/* SPDX-License-Identifier: MIT
 *
 * A learned table: PE(p) = table[p + offset], a row of numbers that training found. [rows, D]; a leading axis
 * of 1, as vision models store it, is allowed.
 *
 * The row of the first token is where models differ. BERT, GPT-2, ViT: row 0, so offset 0. RoBERTa, OPT and
 * BART begin at row 2 (padding_idx + 1, or a fixed offset of 2) and store two rows more than they can use: so
 * offset 2. No row is special here: that a padding row exists in training does not make any stored row zero.
 *
 * A table ends, and that is its fault as an encoding. What then happens is a parameter: an error (the
 * default), the nearest row, or zeros; never a negative index that wraps to the last row. Between rows there
 * is nothing unless interpolate says linear: (1-f) table[i] + f table[i+1]. Tables of images are grids of
 * rows, and are in learned_grid.c. A model may multiply what it looks up: table_scale.
 */
#include "encodings/learned.h"

#include "core/admit.h"
#include "kernels/resample.h"
#include "kernels/vector.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_WIDTH  65536
#define BUFFER     256 /* doubles converted at a time, on the stack */
#define GRID_MOST  16777216
#define GRID_LEAST 7 /* patches along an image, for a guess that there is one */

static const struct pe_choice outsides[] = {
    {"error", LEARNED_ERROR, "refuse a position without a row"},
    {"clamp", LEARNED_CLAMP, "take the first or the last row, of grids the edge of the nearest cell"},
    {"zero", LEARNED_ZERO, "give zeros"},
    {0},
};

static const struct pe_choice interpolations[] = {
    {"none", LEARNED_NONE, "refuse a position between two rows"},
    {"linear", PE_RESAMPLE_LINEAR, "mix the two rows by the distance to each"},
    {"bilinear", PE_RESAMPLE_BILINEAR, "of a grid: mix the four cells around"},
    {"bilinear_antialias", PE_RESAMPLE_BILINEAR_ANTIALIAS, "of a grid: as many more as the image has fewer"},
    {"bicubic", PE_RESAMPLE_BICUBIC, "of a grid: cubic with a = -3/4, edges repeated, as torch has it"},
    {"bicubic_keys", PE_RESAMPLE_BICUBIC_KEYS, "of a grid: cubic with a = -1/2, edges repeated"},
    {"bicubic_antialias", PE_RESAMPLE_BICUBIC_ANTIALIAS,
     "of a grid: cubic with a = -1/2, edges left out, wider for smaller images, as timm and jax have it"},
    {0},
};

static const struct pe_choice scales[] = {
    {"rsqrt_d_model", LEARNED_RSQRT, "1/sqrt(D), as x-transformers has it"},
    {0},
};

static const struct pe_field fields[] = {
    {PE_FIELD(learned, table), .shape = "[rows, D] or [1, rows, D]", .flags = PE_FIELD_REQUIRED,
     .doc = "the table: its name if it is loaded, or the tensor itself"},
    {PE_FIELD(learned, tensor_name), .doc = "which tensor of the table's file, where there are several"},
    {PE_FIELD(learned, offset), .min = -PE_POSITION_MAX, .max = PE_POSITION_MAX, .def = "0",
     .doc = "the row of position 0: 2 for RoBERTa, OPT and BART, 0 for BERT, GPT-2 and ViT"},
    {PE_FIELD(learned, out_of_range), .choices = outsides, .def = "error",
     .doc = "what a position beyond the table gives"},
    {PE_FIELD(learned, interpolate), .choices = interpolations, .def = "none",
     .doc = "what a position between two rows gives"},
    [LEARNED_FIELD_GRID] = {PE_FIELD(learned, grid), .min = 1, .max = GRID_MOST,
                            .doc = "images: height and width of the table's grid, whose rows are row by row "
                                   "[a square, if need be]"},
    {PE_FIELD(learned, image_grid), .min = 1, .max = GRID_MOST,
     .doc = "images of another size: height and width of the grid that positions are on [grid]"},
    {PE_FIELD(learned, cls_rows), .min = 0, .max = GRID_MOST, .def = "0",
     .doc = "images: rows before the grid, which are kept as they are: 1 for a class token"},
    {PE_FIELD(learned, align_corners), .def = "false",
     .doc = "whether corners of the two grids lie on each other, or edges of their cells"},
    {PE_FIELD(learned, table_scale), .choices = scales, .min = -1e6, .max = 1e6, .def = "1",
     .doc = "what the rows are multiplied by"},
};

size_t pe_learned_rows(const struct learned *learned) {
    const struct pe_tensor *table = learned->table.tensor;
    return table->dim[table->rank - 2];
}

size_t pe_learned_width(const struct learned *learned) {
    const struct pe_tensor *table = learned->table.tensor;
    return table->dim[table->rank - 1];
}

double pe_learned_scale(const struct learned *learned) {
    return learned->table_scale.choice == LEARNED_RSQRT ? 1 / sqrt((double)pe_learned_width(learned))
                                                        : learned->table_scale.number;
}

static int learned_adopt(void *params, struct pe_error *err) {
    pe_learned_grid_adopt(params);
    return err->code;
}

static int learned_check(const void *params, struct pe_error *err) {
    const struct learned *learned = params;
    const struct pe_tensor *table = learned->table.tensor;
    if (!table) { /* the field is required: then it is a name that nobody has replaced by a tensor */
        return pe_fail(err, PE_ERR_UNKNOWN_NAME, "table", "no table \"%.60s\" is loaded",
                       learned->table.name);
    }
    char shape[128];
    pe_tensor_shape_text(table, shape, sizeof shape);
    if (table->rank != 2 && !(table->rank == 3 && table->dim[0] == 1)) {
        return pe_fail(err, PE_ERR_SHAPE, "table", "got shape %s, allowed are [rows, D] and [1, rows, D]",
                       shape);
    }
    if (pe_learned_rows(learned) < 1 || pe_learned_width(learned) < 1 ||
        pe_learned_width(learned) > MAX_WIDTH) {
        return pe_fail(err, PE_ERR_SHAPE, "table", "got shape %s, allowed are 1 row or more of width 1 to %d",
                       shape, MAX_WIDTH);
    }
    return pe_learned_is_grid(learned) ? pe_learned_grid_check(learned, err) : PE_OK;
}

static size_t learned_width(const void *params) {
    const struct learned *learned = params;
    return pe_learned_width(learned);
}

/* Rows and tokens of images of two sizes, if they look like that: 197 is 14 x 14 and 1, 577 is 24 x 24 and 1. */
static char *grids_text(size_t rows, size_t tokens, char *text, size_t size) {
    size_t beside, beside_tokens, side = pe_resample_square(rows, &beside),
                                  side_tokens = pe_resample_square(tokens, &beside_tokens);
    text[0] = '\0';
    if (side >= GRID_LEAST && side_tokens >= GRID_LEAST && beside == beside_tokens) {
        snprintf(text, size,
                 "; as images these are %zu x %zu and %zu, the %zu tokens %zu x %zu and %zu: convert with "
                 "resize makes a table for them",
                 side, side, beside, tokens, side_tokens, side_tokens, beside);
    }
    return text;
}

static int stray_fail(const struct learned *learned, const struct pe_positions *positions,
                      const struct pe_stray *stray, struct pe_error *err) {
    char path[64];
    size_t rows = pe_learned_rows(learned);
    pe_positions_index_text(positions, stray->index, path, sizeof path);
    if (stray->fraction) {
        return pe_fail(err, PE_ERR_RANGE, path,
                       "position %.17g is not a whole number; interpolate=linear allows those between rows",
                       stray->position);
    }
    char grids[280];
    return pe_fail(err, PE_ERR_RANGE, path,
                   "position %.17g with offset %lld is row %.17g, but the table has %zu rows, 0 to %zu%s",
                   stray->position, (long long)learned->offset, stray->position + (double)learned->offset,
                   rows, rows - 1, grids_text(rows, positions->length, grids, sizeof grids));
}

static void learned_bounds(const struct pe_plan_view *view, double *min, double *max) {
    const struct learned *learned = view->params;
    if (learned->out_of_range == LEARNED_ERROR && pe_learned_is_grid(learned)) {
        *min = 0;
        *max = (double)(pe_learned_grid_tokens(learned) - 1);
    } else if (learned->out_of_range == LEARNED_ERROR) {
        *min = -(double)learned->offset;
        *max = (double)((int64_t)pe_learned_rows(learned) - 1 - learned->offset);
    }
}

/* The row at or below a position and how far above it the position lies, in [0, 1]. False: no row, zeros. */
static bool place(const struct learned *learned, double position, size_t *row, double *part) {
    int64_t last = (int64_t)pe_learned_rows(learned) - 1;
    double below = floor(position);
    int64_t at = (int64_t)below + learned->offset; /* both at most 2^53 */
    *part = position - below;
    if (at < 0 || at > last || (at == last && *part > 0)) {
        if (learned->out_of_range == LEARNED_ZERO) {
            return false;
        }
        at = at < 0 ? 0 : last;
        *part = 0;
    }
    *row = (size_t)at;
    return true;
}

const unsigned char *pe_learned_row(const struct learned *learned, size_t row) {
    const struct pe_tensor *table = learned->table.tensor;
    return (const unsigned char *)table->data + row * pe_learned_width(learned) * pe_dtype_size(table->dtype);
}

/* Which rows a position takes, as a number that rises with the position: 2*row, and one more between this row
 * and the next. None before the table and none after it are two of these numbers. */
#define ROWS_BEFORE (-1)
#define ROWS_AFTER  INT64_MAX

static int64_t rows_taken(const struct learned *learned, const struct pe_positions *positions, size_t index) {
    double position, part;
    size_t row;
    pe_positions_read(positions, index, 1, &position);
    if (place(learned, position, &row, &part)) {
        return 2 * (int64_t)row + (part > 0);
    }
    return position + (double)learned->offset < 0 ? ROWS_BEFORE : ROWS_AFTER;
}

/* The end of the run of positions that take the same rows as the one at first. In a progression they are
 * found by doubling steps and bisection, so that a long one costs no more than the rows it takes. */
static size_t run_end(const struct learned *learned, const struct pe_positions *positions, size_t first) {
    size_t n = pe_positions_count(positions), inside = first, step = 1;
    if (positions->list) {
        return first + 1;
    }
    int64_t rows = rows_taken(learned, positions, first);
    for (; step < n - inside && rows_taken(learned, positions, inside + step) == rows; step *= 2) {
        inside += step;
    }
    size_t outside = step < n - inside ? inside + step : n;
    while (outside - inside > 1) {
        size_t middle = inside + (outside - inside) / 2;
        if (rows_taken(learned, positions, middle) == rows) {
            inside = middle;
        } else {
            outside = middle;
        }
    }
    return outside;
}

static double first_excess(const double *values, size_t n, double limit) {
    for (size_t i = 0; i < n; i++) {
        if (!(fabs(values[i]) < limit)) {
            return values[i];
        }
    }
    return 0;
}

double pe_learned_excess(const struct learned *learned, size_t row, double limit) {
    const struct pe_tensor *table = learned->table.tensor;
    const unsigned char *in = pe_learned_row(learned, row);
    size_t width = pe_learned_width(learned), size = pe_dtype_size(table->dtype);
    double values[BUFFER], excess = 0;
    for (size_t c = 0; c < width && excess == 0; c += BUFFER) {
        size_t n = width - c < BUFFER ? width - c : BUFFER;
        pe_dtype_load(table->dtype, in + c * size, n, values);
        excess = first_excess(values, n, limit);
    }
    return excess;
}

static int learned_fits(const struct pe_plan_view *view, const struct pe_positions *positions,
                        enum pe_dtype dtype, double limit, struct pe_error *err) {
    const struct learned *learned = view->params;
    double scale = fabs(pe_learned_scale(learned));
    if (pe_learned_reach(learned) * scale * pe_vector_limit(learned->table.tensor->dtype) < limit) {
        return PE_OK;
    }
    limit = scale == 1 ? limit : limit / scale * (1 - 0x1p-50); /* infinite where all are multiplied by 0 */
    if (pe_learned_is_grid(learned)) {
        return pe_learned_grid_fits(learned, positions, dtype, limit, err);
    }
    size_t n = pe_positions_count(positions);
    for (size_t i = 0; i < n; i = run_end(learned, positions, i)) {
        int64_t rows = rows_taken(learned, positions, i);
        if (pe_error_poll(err)) {
            return err->code;
        }
        if (rows == ROWS_BEFORE || rows == ROWS_AFTER) {
            continue;
        }
        bool mixed = rows % 2 != 0;
        double below = mixed ? limit * (1 - 0x1p-50) : limit; /* the mixture is rounded twice */
        size_t row = (size_t)rows / 2;
        double excess = pe_learned_excess(learned, row, below);
        if (excess == 0 && mixed) {
            excess = pe_learned_excess(learned, row + 1, below);
        }
        if (excess != 0) {
            return pe_positions_overflow(positions, i, excess, dtype, limit, err);
        }
    }
    return PE_OK;
}

static int rows_admit(const struct pe_plan_view *view, const struct pe_positions *positions,
                      struct pe_error *err) {
    const struct learned *learned = view->params;
    if (pe_learned_is_grid(learned)) {
        return pe_learned_grid_admit(learned, positions, err);
    }
    if (positions->axes != 1) {
        return pe_fail(err, PE_ERR_SHAPE, "",
                       "have %d coordinates each, rows in a line have one; a grid says that they have 2",
                       positions->axes);
    }
    struct pe_admit rule = {.whole = learned->interpolate == LEARNED_NONE, .min = -INFINITY, .max = INFINITY};
    learned_bounds(view, &rule.min, &rule.max);
    struct pe_stray stray;
    return pe_positions_stray(positions, &rule, err->stop, &stray)
               ? stray_fail(learned, positions, &stray, err)
               : PE_OK;
}

/* Doubles end, too, where rows are weighed or multiplied. */
static int learned_admit(const struct pe_plan_view *view, const struct pe_positions *positions,
                         struct pe_error *err) {
    const struct learned *learned = view->params;
    bool grows = pe_learned_reach(learned) > 1 || fabs(pe_learned_scale(learned)) > 1;
    if (rows_admit(view, positions, err) || !grows || learned->table.tensor->dtype != PE_DTYPE_F64) {
        return err->code;
    }
    return learned_fits(view, positions, PE_DTYPE_F64, DBL_MAX, err);
}

void pe_learned_copy(const struct learned *learned, size_t row, enum pe_dtype dtype, unsigned char *out) {
    const struct pe_tensor *table = learned->table.tensor;
    const unsigned char *in = pe_learned_row(learned, row);
    size_t width = pe_learned_width(learned), in_size = pe_dtype_size(table->dtype);
    double values[BUFFER], scale = pe_learned_scale(learned);
    if (table->dtype == dtype && scale == 1) {
        memcpy(out, in, width * in_size);
        return;
    }
    for (size_t c = 0; c < width; c += BUFFER) {
        size_t n = width - c < BUFFER ? width - c : BUFFER;
        pe_dtype_load(table->dtype, in + c * in_size, n, values);
        for (size_t i = 0; i < n; i++) {
            values[i] *= scale;
        }
        pe_dtype_store(dtype, values, n, out + c * pe_dtype_size(dtype));
    }
}

/* (1-f) a + f b = (a - f a) + f b: each step one rounding of the exact value, by fma: out [D]. */
static void mix_rows(const struct learned *learned, size_t row, double part, enum pe_dtype dtype,
                     unsigned char *out) {
    const struct pe_tensor *table = learned->table.tensor;
    const unsigned char *in = pe_learned_row(learned, row), *next = pe_learned_row(learned, row + 1);
    size_t width = pe_learned_width(learned), in_size = pe_dtype_size(table->dtype);
    double a[BUFFER], b[BUFFER], scale = pe_learned_scale(learned);
    for (size_t c = 0; c < width; c += BUFFER) {
        size_t n = width - c < BUFFER ? width - c : BUFFER;
        pe_dtype_load(table->dtype, in + c * in_size, n, a);
        pe_dtype_load(table->dtype, next + c * in_size, n, b);
        for (size_t i = 0; i < n; i++) {
            a[i] = scale * fma(part, b[i], fma(-part, a[i], a[i]));
        }
        pe_dtype_store(dtype, a, n, out + c * pe_dtype_size(dtype));
    }
}

/* The vector of a position in a line: out [D]. */
static void line_encode(const struct learned *learned, double position, enum pe_dtype dtype,
                        unsigned char *out) {
    size_t row;
    double part;
    if (!place(learned, position, &row, &part)) {
        memset(out, 0, pe_learned_width(learned) * pe_dtype_size(dtype)); /* +0 in every element type */
    } else if (part > 0) {
        mix_rows(learned, row, part, dtype, out);
    } else {
        pe_learned_copy(learned, row, dtype, out);
    }
}

static void learned_encode(const struct pe_plan_view *view, const double *positions, size_t n,
                           enum pe_dtype dtype, void *out) {
    const struct learned *learned = view->params;
    size_t row_bytes = view->width * pe_dtype_size(dtype);
    bool grid = pe_learned_is_grid(learned);
    for (size_t t = 0; t < n; t++) {
        unsigned char *vector = (unsigned char *)out + t * row_bytes;
        if (grid) {
            pe_learned_grid_encode(learned, &positions[t], 1, dtype, vector);
        } else {
            line_encode(learned, positions[t], dtype, vector);
        }
    }
}

static int learned_axes(const struct pe_plan_view *view) {
    return pe_learned_is_grid(view->params) ? 2 : 1;
}

static void learned_encode_axes(const struct pe_plan_view *view, const double *positions, size_t n,
                                enum pe_dtype dtype, void *out) {
    const int axes = learned_axes(view);
    size_t row_bytes = view->width * pe_dtype_size(dtype);
    for (size_t t = 0; t < n; t++) {
        pe_learned_grid_encode(view->params, positions + t * (size_t)axes, axes, dtype,
                               (unsigned char *)out + t * row_bytes);
    }
}

static double learned_row_cost_ns(const struct pe_plan_view *view, enum pe_dtype dtype) {
    (void)dtype;
    const struct learned *learned = view->params;
    return pe_learned_is_grid(learned) ? pe_learned_grid_cost_ns(learned) : 10.0 * (double)view->width;
}

const struct pe_encoding pe_learned = {
    .info =
        {
            .type = "learned",
            .title = "Learned table",
            .doc =
                "Row p + offset of a table that training found. It fits its data, and ends where the table "
                "ends.",
            .reference = "Gehring et al. 2017, arXiv:1705.03122; Devlin et al. 2018, arXiv:1810.04805",
            .family = PE_FAMILY_ABSOLUTE,
            .params_size = sizeof(struct learned),
            .fields = fields,
            .n_fields = PE_COUNT(fields),
        },
    .adopt = learned_adopt,
    .check = learned_check,
    .width = learned_width,
    .admit = learned_admit,
    .bounds = learned_bounds,
    .fits = learned_fits,
    .encode = learned_encode,
    .encode_axes = learned_encode_axes,
    .axes = learned_axes,
    .row_cost_ns = learned_row_cost_ns,
};
