/* SPDX-License-Identifier: MIT
 *
 * Time2Vec (Kazemi et al. 2019): one column is linear in time, the others are periodic with learned
 * frequencies and phases,
 *
 *     t2v(t)[0] = w_0 t + b_0,     t2v(t)[i] = sin(w_i t + b_i)
 *
 * The paper has the linear column first and a sine; several of its copies have it last, or a cosine. w and b
 * are posted in the order of the columns, or made from a seed (tables 0 and 1 of core/cells.h, row c). The
 * sums are exact, so large timestamps, which float32 code cannot tell from their neighbours, keep their
 * phases.
 */
#include "core/admit.h"
#include "core/angle.h"
#include "core/cells.h"
#include "encodings/encoding.h"

#include <math.h>

struct time2vec {
    uint64_t given;
    int64_t d_model;
    struct pe_table w, b;
    int64_t seed;
    double std;
    int function, linear;
};

enum { FUNCTION_SIN = 1, FUNCTION_COS };
enum { LINEAR_FIRST = 1, LINEAR_LAST };
#define MAX_WIDTH 65536

static const struct pe_choice functions[] = {
    {"sin", FUNCTION_SIN, "the paper"}, {"cos", FUNCTION_COS, "as some copies have it"}, {NULL, 0, NULL}};
static const struct pe_choice linears[] = {{"first", LINEAR_FIRST, "column 0: the paper"},
                                           {"last", LINEAR_LAST, "the last column: several PyTorch copies"},
                                           {NULL, 0, NULL}};

enum { FIELD_D_MODEL, FIELD_W, FIELD_B, FIELD_SEED, FIELD_STD, FIELD_FUNCTION, FIELD_LINEAR };

static const struct pe_field fields[] = {
    [FIELD_D_MODEL] = {PE_FIELD(time2vec, d_model), .min = 1, .max = MAX_WIDTH, .flags = PE_FIELD_WIDTH,
                       .doc = "Width of a vector, the linear column included; that of w where it is given."},
    [FIELD_W] = {PE_FIELD(time2vec, w), .shape = "[d_model]", .doc = "Frequencies, in the order of columns."},
    [FIELD_B] = {PE_FIELD(time2vec, b), .shape = "[d_model]", .doc = "Phases, likewise."},
    [FIELD_SEED] = {PE_FIELD(time2vec, seed), .min = 0, .max = PE_POSITION_MAX,
                    .doc = "In place of w and b: normal random numbers, another seed, others."},
    [FIELD_STD] = {PE_FIELD(time2vec, std), .min = 0, .max = 1000, .flags = PE_FIELD_OPEN_MIN, .def = "1",
                   .doc = "The standard deviation of those from a seed."},
    [FIELD_FUNCTION] = {PE_FIELD(time2vec, function), .choices = functions, .def = "sin",
                        .doc = "Of the periodic columns."},
    [FIELD_LINEAR] = {PE_FIELD(time2vec, linear), .choices = linears, .def = "first",
                      .doc = "Where the linear column is."},
};

struct coefficients {
    double w, b;
};

static bool seeded(const struct time2vec *t2v) {
    return t2v->given >> FIELD_SEED & 1;
}

static int check_table(const struct time2vec *t2v, const struct pe_table *table, const char *field,
                       struct pe_error *err) {
    const struct pe_tensor *tensor = table->tensor, *w = t2v->w.tensor;
    const struct pe_cells cells = {.tensor = tensor, .columns = 1};
    char shape[64];
    if (pe_cells_check(table, field, seeded(t2v), err) || !tensor) {
        return err->code;
    }
    if (tensor->rank != 1 || tensor->dim[0] < 1 || tensor->dim[0] > MAX_WIDTH ||
        tensor->dim[0] != w->dim[0]) {
        return pe_fail(err, PE_ERR_SHAPE, field, "has shape %s, allowed is a list of d_model numbers%s",
                       pe_tensor_shape_text(tensor, shape, sizeof shape),
                       tensor == w ? "" : ", as many as w has");
    }
    return pe_cells_check_range(&cells, field, err);
}

static int check(const void *params, struct pe_error *err) {
    const struct time2vec *t2v = params;
    bool width = t2v->given >> FIELD_D_MODEL & 1;
    if (check_table(t2v, &t2v->w, "w", err) || check_table(t2v, &t2v->b, "b", err)) {
        return err->code;
    }
    if (seeded(t2v) && !width) {
        return pe_fail(err, PE_ERR_MISSING, "d_model", "is missing, a seed does not tell it");
    }
    if (!seeded(t2v) && width && (size_t)t2v->d_model != t2v->w.tensor->dim[0]) {
        return pe_fail(err, PE_ERR_CONFLICT, "d_model", "is %lld, but w has %zu numbers",
                       (long long)t2v->d_model, t2v->w.tensor->dim[0]);
    }
    return PE_OK;
}

static size_t width(const void *params) {
    const struct time2vec *t2v = params;
    return t2v->w.tensor ? t2v->w.tensor->dim[0] : (size_t)t2v->d_model;
}

static size_t plan_bytes(const void *params) {
    return width(params) * sizeof(struct coefficients);
}

static int make_plan(struct pe_plan_view *view, struct pe_error *err) {
    const struct time2vec *t2v = view->params;
    struct coefficients *all = view->data;
    struct pe_cells w = {.tensor = t2v->w.tensor, .columns = 1, .seed = t2v->seed, .std = t2v->std}, b = w;
    (void)err;
    b.tensor = t2v->b.tensor;
    b.number = 1;
    for (size_t i = 0; i < view->width; i++) {
        all[i] = (struct coefficients){pe_cells_at(&w, i, 0), pe_cells_at(&b, i, 0)};
    }
    return PE_OK;
}

static size_t linear_column(const struct pe_plan_view *view) {
    return ((const struct time2vec *)view->params)->linear == LINEAR_FIRST ? 0 : view->width - 1;
}

/* |w t + b| < limit is an interval of t, taken a little smaller than it is. */
static int fits(const struct pe_plan_view *view, const struct pe_positions *positions, enum pe_dtype dtype,
                double limit, struct pe_error *err) {
    const struct coefficients c = ((const struct coefficients *)view->data)[linear_column(view)];
    double room = limit * (1 - 0x1p-40) - fabs(c.b) * (1 + 0x1p-40),
           everywhere = room > 0 ? INFINITY : -INFINITY;
    double most = fabs(c.w) > 0 ? room / fabs(c.w) : everywhere; /* w 0: b alone */
    const struct pe_admit rule = {.min = -most, .max = most};
    struct pe_stray stray = {.position = 0};
    if (pe_positions_count(positions) == 0) {
        return PE_OK;
    }
    if (limit <= 1 || room <= 0) {
        return pe_positions_overflow(positions, 0, fmax(1, fabs(c.b)), dtype, limit, err);
    }
    if (c.w == 0 || !pe_positions_stray(positions, &rule, err->stop, &stray)) {
        return PE_OK;
    }
    return pe_positions_overflow(positions, stray.index, c.w * stray.position + c.b, dtype, limit, err);
}

static void encode_row(const struct pe_plan_view *view, double position, enum pe_dtype dtype, char *row) {
    const struct time2vec *t2v = view->params;
    const struct coefficients *all = view->data;
    size_t size = pe_dtype_size(dtype), linear = linear_column(view);
    for (size_t i = 0; i < view->width; i++) {
        struct pe_wide sum = pe_wide_of(all[i].b);
        pe_sum_add(&sum, all[i].w, position);
        if (i == linear) {
            pe_sum_write(&sum, dtype, row + i * size);
            continue;
        }
        pe_wide_mul(&sum, &sum, &pe_wide_1_2pi);
        void *to = row + i * size;
        bool sine = t2v->function == FUNCTION_SIN;
        pe_angle_write(&sum, dtype,
                       &(struct pe_phase_out){.sin = sine ? to : NULL, .cos = sine ? NULL : to, .step = 1});
    }
}

static void encode(const struct pe_plan_view *view, const double *positions, size_t n, enum pe_dtype dtype,
                   void *out) {
    size_t row_bytes = view->width * pe_dtype_size(dtype);
    for (size_t i = 0; i < n; i++) {
        encode_row(view, positions[i], dtype, (char *)out + i * row_bytes);
    }
}

static double row_cost_ns(const struct pe_plan_view *view, enum pe_dtype dtype) {
    (void)dtype;
    return PE_ANGLE_NS * (double)view->width;
}

const struct pe_encoding pe_time2vec = {
    .info = {.type = "time2vec",
             .title = "Time2Vec",
             .doc =
                 "One column linear in time and others periodic in it, with learned frequencies and phases; "
                 "made from a seed where there is no model.",
             .reference = "Kazemi et al. 2019, Time2Vec: Learning a Vector Representation of Time",
             .family = PE_FAMILY_ABSOLUTE,
             .params_size = sizeof(struct time2vec),
             .fields = fields,
             .n_fields = PE_COUNT(fields)},
    .check = check,
    .width = width,
    .plan_bytes = plan_bytes,
    .plan = make_plan,
    .fits = fits,
    .encode = encode,
    .row_cost_ns = row_cost_ns,
};
