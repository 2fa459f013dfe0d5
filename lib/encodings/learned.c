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
 * is nothing unless interpolate says linear: (1-f) table[i] + f table[i+1].
 */
#include "encodings/encoding.h"

#include "core/admit.h"
#include "kernels/vector.h"

#include <math.h>
#include <string.h>

#define MAX_WIDTH 65536
#define BUFFER    256 /* doubles converted at a time, on the stack */

enum out_of_range { OUT_ERROR = 1, OUT_CLAMP, OUT_ZERO };
enum interpolate { INTERPOLATE_NONE = 1, INTERPOLATE_LINEAR };

struct learned {
    uint64_t given;
    struct pe_table table;
    const char *tensor_name;
    int64_t offset;
    int out_of_range;
    int interpolate;
};

static const struct pe_choice outsides[] = {
    {"error", OUT_ERROR, "refuse a position without a row"},
    {"clamp", OUT_CLAMP, "take the first or the last row"},
    {"zero", OUT_ZERO, "give zeros"},
    {0},
};

static const struct pe_choice interpolations[] = {
    {"none", INTERPOLATE_NONE, "refuse a position between two rows"},
    {"linear", INTERPOLATE_LINEAR, "mix the two rows by the distance to each"},
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
};

static size_t table_rows(const struct pe_tensor *table) {
    return table->dim[table->rank - 2];
}

static size_t table_width(const struct pe_tensor *table) {
    return table->dim[table->rank - 1];
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
    if (table_rows(table) < 1 || table_width(table) < 1 || table_width(table) > MAX_WIDTH) {
        return pe_fail(err, PE_ERR_SHAPE, "table", "got shape %s, allowed are 1 row or more of width 1 to %d",
                       shape, MAX_WIDTH);
    }
    return PE_OK;
}

static size_t learned_width(const void *params) {
    const struct learned *learned = params;
    return table_width(learned->table.tensor);
}

static int stray_fail(const struct learned *learned, const struct pe_positions *positions,
                      const struct pe_stray *stray, struct pe_error *err) {
    char path[64];
    size_t rows = table_rows(learned->table.tensor);
    pe_positions_index_text(positions, stray->index, path, sizeof path);
    if (stray->fraction) {
        return pe_fail(err, PE_ERR_RANGE, path,
                       "position %.17g is not a whole number; interpolate=linear allows those between rows",
                       stray->position);
    }
    return pe_fail(err, PE_ERR_RANGE, path,
                   "position %.17g with offset %lld is row %.17g, but the table has %zu rows, 0 to %zu",
                   stray->position, (long long)learned->offset, stray->position + (double)learned->offset,
                   rows, rows - 1);
}

static void learned_bounds(const struct pe_plan_view *view, double *min, double *max) {
    const struct learned *learned = view->params;
    if (learned->out_of_range == OUT_ERROR) {
        *min = -(double)learned->offset;
        *max = (double)((int64_t)table_rows(learned->table.tensor) - 1 - learned->offset);
    }
}

static int learned_admit(const struct pe_plan_view *view, const struct pe_positions *positions,
                         struct pe_error *err) {
    const struct learned *learned = view->params;
    struct pe_admit rule = {
        .whole = learned->interpolate == INTERPOLATE_NONE, .min = -INFINITY, .max = INFINITY};
    learned_bounds(view, &rule.min, &rule.max);
    struct pe_stray stray;
    return pe_positions_stray(positions, &rule, err->stop, &stray)
               ? stray_fail(learned, positions, &stray, err)
               : PE_OK;
}

/* The row at or below a position and how far above it the position lies, in [0, 1]. False: no row, zeros. */
static bool place(const struct learned *learned, double position, size_t *row, double *part) {
    int64_t last = (int64_t)table_rows(learned->table.tensor) - 1;
    double below = floor(position);
    int64_t at = (int64_t)below + learned->offset; /* both at most 2^53 */
    *part = position - below;
    if (at < 0 || at > last || (at == last && *part > 0)) {
        if (learned->out_of_range == OUT_ZERO) {
            return false;
        }
        at = at < 0 ? 0 : last;
        *part = 0;
    }
    *row = (size_t)at;
    return true;
}

static const unsigned char *table_row(const struct pe_tensor *table, size_t row) {
    return (const unsigned char *)table->data + row * table_width(table) * pe_dtype_size(table->dtype);
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

/* The first number of a row that is not below limit, or 0. */
static double row_excess(const struct pe_tensor *table, size_t row, double limit) {
    const unsigned char *in = table_row(table, row);
    size_t width = table_width(table), size = pe_dtype_size(table->dtype);
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
    const struct pe_tensor *table = learned->table.tensor;
    if (pe_vector_limit(table->dtype) < limit) {
        return PE_OK;
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
        double excess = row_excess(table, row, below);
        if (excess == 0 && mixed) {
            excess = row_excess(table, row + 1, below);
        }
        if (excess != 0) {
            return pe_positions_overflow(positions, i, excess, dtype, limit, err);
        }
    }
    return PE_OK;
}

/* Row `row` as stored, converted once: out [D]. */
static void copy_row(const struct pe_tensor *table, size_t row, enum pe_dtype dtype, unsigned char *out) {
    const unsigned char *in = table_row(table, row);
    size_t width = table_width(table), in_size = pe_dtype_size(table->dtype), size = pe_dtype_size(dtype);
    if (table->dtype == dtype) {
        memcpy(out, in, width * size);
        return;
    }
    double values[BUFFER];
    for (size_t c = 0; c < width; c += BUFFER) {
        size_t n = width - c < BUFFER ? width - c : BUFFER;
        pe_dtype_load(table->dtype, in + c * in_size, n, values);
        pe_dtype_store(dtype, values, n, out + c * size);
    }
}

/* (1-f) a + f b = (a - f a) + f b: each step one rounding of the exact value, by fma: out [D]. */
static void mix_rows(const struct pe_tensor *table, size_t row, double part, enum pe_dtype dtype,
                     unsigned char *out) {
    const unsigned char *in = table_row(table, row), *next = table_row(table, row + 1);
    size_t width = table_width(table), in_size = pe_dtype_size(table->dtype), size = pe_dtype_size(dtype);
    double a[BUFFER], b[BUFFER];
    for (size_t c = 0; c < width; c += BUFFER) {
        size_t n = width - c < BUFFER ? width - c : BUFFER;
        pe_dtype_load(table->dtype, in + c * in_size, n, a);
        pe_dtype_load(table->dtype, next + c * in_size, n, b);
        for (size_t i = 0; i < n; i++) {
            a[i] = fma(part, b[i], fma(-part, a[i], a[i]));
        }
        pe_dtype_store(dtype, a, n, out + c * size);
    }
}

static void learned_encode(const struct pe_plan_view *view, const double *positions, size_t n,
                           enum pe_dtype dtype, void *out) {
    const struct learned *learned = view->params;
    const struct pe_tensor *table = learned->table.tensor;
    size_t row_bytes = view->width * pe_dtype_size(dtype);
    for (size_t t = 0; t < n; t++) {
        unsigned char *vector = (unsigned char *)out + t * row_bytes;
        size_t row;
        double part;
        if (!place(learned, positions[t], &row, &part)) {
            memset(vector, 0, row_bytes); /* all bits zero is +0 in every element type */
        } else if (part > 0) {
            mix_rows(table, row, part, dtype, vector);
        } else {
            copy_row(table, row, dtype, vector);
        }
    }
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
    .check = learned_check,
    .width = learned_width,
    .admit = learned_admit,
    .bounds = learned_bounds,
    .fits = learned_fits,
    .encode = learned_encode,
};
