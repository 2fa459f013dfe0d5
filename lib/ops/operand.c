/* SPDX-License-Identifier: MIT
 *
 * What the operations share: reading their arguments and posted tensors. A posted tensor is read once for
 * three purposes: to find NaN and infinities, to have its elements in the type of the arithmetic, and to know
 * its largest magnitude, from which the operation concludes before it starts that no result can overflow.
 */
#include "ops/operand.h"

#include "core/dtype.h"
#include "kernels/vector.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

int pe_args_copy(void *ours, size_t size, const void *theirs, size_t their_size, struct pe_error *err) {
    const unsigned char *bytes = theirs;
    if (their_size < sizeof(size_t)) {
        return pe_fail(err, PE_ERR_RANGE, "size", "the arguments say that they have %zu bytes", their_size);
    }
    for (size_t i = size; i < their_size; i++) {
        if (bytes[i]) {
            return pe_fail(err, PE_ERR_UNKNOWN_FIELD, "size",
                           "byte %zu of the arguments is set, this library knows %zu", i, size);
        }
    }
    memset(ours, 0, size);
    memcpy(ours, theirs, their_size < size ? their_size : size);
    return PE_OK;
}

int pe_dtype_check(enum pe_dtype dtype, struct pe_error *err) {
    if (pe_dtype_size(dtype)) {
        return PE_OK;
    }
    return pe_fail(err, PE_ERR_DTYPE, "dtype", "got %d, allowed are %s, %s, %s and %s", (int)dtype,
                   pe_dtype_name(PE_DTYPE_F64), pe_dtype_name(PE_DTYPE_F32), pe_dtype_name(PE_DTYPE_F16),
                   pe_dtype_name(PE_DTYPE_BF16));
}

/* A view of posted bytes may start at any address. */
static int align(struct pe_arena *arena, struct pe_tensor *tensor, struct pe_error *err) {
    if ((uintptr_t)tensor->data % pe_dtype_size(tensor->dtype) == 0) {
        return PE_OK;
    }
    struct pe_tensor copy;
    if (pe_tensor_alloc(arena, &copy, tensor->dtype, tensor->rank, tensor->dim, err)) {
        return err->code;
    }
    const unsigned char *from = tensor->data;
    size_t bytes = pe_tensor_bytes(tensor);
    for (size_t done = 0, step; done < bytes && !pe_error_poll(err); done += step) {
        step = pe_stop_step(bytes, done);
        memcpy((unsigned char *)copy.data + done, from + done, step);
    }
    *tensor = copy;
    return err->code;
}

double pe_largest_find(enum pe_dtype dtype, const void *x, size_t n, bool skip_minus_infinity,
                       struct pe_error *err) {
    double largest = pe_vector_largest(dtype, x, n, skip_minus_infinity, err->stop);
    return pe_error_poll(err) ? 0 : largest;
}

int pe_operand_read(struct pe_arena *arena, struct pe_operand *out, const struct pe_tensor *in,
                    const struct pe_operand_rule *rule, struct pe_error *err) {
    if (pe_tensor_convert(arena, &out->tensor, in, rule->real, err) || align(arena, &out->tensor, err)) {
        return pe_error_at(err, rule->name);
    }
    size_t n = pe_tensor_count(&out->tensor);
    out->largest = pe_largest_find(rule->real, out->tensor.data, n, rule->minus_infinity, err);
    if (isinf(out->largest) && pe_tensor_check_finite(&out->tensor, rule->minus_infinity, err)) {
        return pe_error_at(err, rule->name);
    }
    return err->code;
}

bool pe_encoding_adds(const struct pe_encoding *row) {
    return row->info.family == PE_FAMILY_ABSOLUTE && row->encode;
}

int pe_encoding_unsupported(const struct pe_encoding *row, const char *cannot, struct pe_error *err) {
    static const struct {
        unsigned ability;
        const char *name;
    } names[] = {{PE_CAN_ENCODE, "encode"},
                 {PE_CAN_APPLY, "apply"},
                 {PE_CAN_BIAS, "bias"},
                 {PE_CAN_ATTENTION, "attention"},
                 {PE_CAN_SHIFT, "shift"}};
    unsigned can = pe_encoding_abilities(&row->info);
    char list[80] = "";
    size_t used = 0;
    for (size_t i = 0; i < PE_COUNT(names); i++) {
        if (can & names[i].ability) {
            used +=
                (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", names[i].name);
        }
    }
    return pe_fail(err, PE_ERR_UNSUPPORTED, "encoding.type", "%s %s; it can: %s", row->info.type, cannot,
                   list);
}

double pe_encoding_row_ns(const struct pe_plan *plan, enum pe_dtype dtype) {
    const struct pe_encoding *row = pe_plan_row(plan);
    const struct pe_plan_view *view = pe_plan_view(plan);
    return row->row_cost_ns ? row->row_cost_ns(view, dtype) : 10.0 * (double)view->width;
}

/* "[2, 3, 4]", of which a batch of 0 and a single coordinate are no axes. */
static char *positions_shape_text(size_t batch, size_t length, int axes, char *text, size_t size) {
    struct pe_tensor shape = {.rank = 0};
    if (batch) {
        shape.dim[shape.rank++] = batch;
    }
    shape.dim[shape.rank++] = length;
    if (axes > 1) {
        shape.dim[shape.rank++] = (size_t)axes;
    }
    return pe_tensor_shape_text(&shape, text, size);
}

/* "[4] or [2, 4]", the latter where there is a batch. */
static void shapes_text(size_t batch, size_t length, int axes, char *text, size_t size) {
    char one[80], many[80];
    snprintf(text, size, "%s%s%s", positions_shape_text(0, length, axes, one, sizeof one),
             batch ? " or " : "", batch ? positions_shape_text(batch, length, axes, many, sizeof many) : "");
}

int pe_positions_fit(const struct pe_plan *plan, const struct pe_positions *positions, size_t batch,
                     size_t length, const char *field, struct pe_error *err) {
    bool fits = positions->batch == 0 || positions->batch == (batch ? batch : 1);
    if (fits && positions->length == length && (plan || positions->axes == 1)) {
        return PE_OK;
    }
    int axes = plan ? pe_plan_axes(plan) : 1;
    char shape[100], wanted[180], rows[180] = "";
    positions_shape_text(positions->batch, positions->length, positions->axes, shape, sizeof shape);
    shapes_text(batch, length, 1, wanted, sizeof wanted);
    if (axes > 1) {
        shapes_text(batch, length, axes, rows, sizeof rows);
        return pe_fail(err, PE_ERR_SHAPE, field,
                       "has shape %s but the tokens need %s, or %s with the %d coordinates of each", shape,
                       wanted, rows, axes);
    }
    return pe_fail(err, PE_ERR_SHAPE, field, "has shape %s but the tokens need %s", shape, wanted);
}

bool pe_encoding_below(const struct pe_plan *plan, const struct pe_positions *positions, double limit,
                       const struct pe_stop *stop) {
    struct pe_error over = {.stop = stop};
    const struct pe_encoding *row = pe_plan_row(plan);
    if (pe_positions_count(positions) == 0 || !row->fits) {
        return limit > 1;
    }
    return row->fits(pe_plan_view(plan), positions, PE_DTYPE_F64, limit, &over) == PE_OK;
}

/* A grid beyond that which the encoding was told has height and width in the other order, as likely as not. A
 * part of it is none the less one. Its last position is its last cell, or in one of no cells a class row, whose
 * coordinates are -1. */
static int grid_check(const struct pe_plan *plan, const struct pe_positions *positions, const char *field,
                      struct pe_error *err) {
    const struct pe_encoding *row = pe_plan_row(plan);
    struct pe_tensor got = {.rank = positions->axes}, told = got;
    char shapes[2][100];
    bool fits = true;
    if (!positions->of_grid || !row->grid_size || positions->length == 0 || got.rank > PE_MAX_RANK) {
        return PE_OK;
    }
    const double *last = positions->list + (positions->length - 1) * (size_t)positions->axes;
    for (int axis = 0; axis < got.rank; axis++) {
        got.dim[axis] = (size_t)(last[axis] + 1);
        told.dim[axis] = row->grid_size(pe_plan_view(plan), axis);
        fits = fits && (told.dim[axis] == 0 || got.dim[axis] <= told.dim[axis]);
    }
    return fits ? PE_OK
                : pe_fail(err, PE_ERR_CONFLICT, field, "are a grid of %s, beyond the encoding's, which is %s",
                          pe_tensor_shape_text(&got, shapes[0], sizeof shapes[0]),
                          pe_tensor_shape_text(&told, shapes[1], sizeof shapes[1]));
}

int pe_positions_admit(const struct pe_plan *plan, const struct pe_positions *positions, enum pe_dtype dtype,
                       const char *field, struct pe_error *err) {
    const struct pe_encoding *row = pe_plan_row(plan);
    const struct pe_plan_view *view = pe_plan_view(plan);
    if (positions->axes != 1 && !row->axes) {
        return pe_fail(err, PE_ERR_SHAPE, field, "%s takes one coordinate per position, got %d",
                       row->info.type, positions->axes);
    }
    if (row->admit && row->admit(view, positions, err)) {
        return pe_error_at(err, field);
    }
    if (grid_check(plan, positions, field, err)) {
        return err->code;
    }
    double limit = pe_dtype_overflow(dtype);
    if (row->fits && isfinite(limit) && row->fits(view, positions, dtype, limit, err)) {
        return pe_error_at(err, field);
    }
    return pe_error_poll(err); /* a search that was stopped finds nothing */
}

int pe_vectors_admit(const struct pe_plan *plan, const struct pe_positions *positions, enum pe_dtype dtype,
                     const char *field, struct pe_error *err) {
    const struct pe_encoding *row = pe_plan_row(plan);
    if (positions->axes != 1 && row->axes && !row->encode_axes) {
        return pe_fail(err, PE_ERR_SHAPE, field, "have %d coordinates each, vectors of %s are of one",
                       positions->axes, row->info.type);
    }
    return pe_positions_admit(plan, positions, dtype, field, err);
}

int pe_positions_not_given(const struct pe_error *wrong, size_t n, const char *field, const char *source,
                           struct pe_error *err) {
    return pe_fail(err, wrong->code, source, "has %zu tokens, whose %s are not given: %s", n, field,
                   wrong->text);
}

int pe_positions_admit_default(const struct pe_plan *plan, const struct pe_positions *positions,
                               enum pe_dtype dtype, const char *field, const char *source,
                               struct pe_error *err) {
    const struct pe_encoding *row = pe_plan_row(plan);
    struct pe_error trial = {.stop = err->stop};
    if (pe_plan_axes(plan) > 1 && pe_positions_admit(plan, positions, dtype, field, &trial) == PE_ERR_SHAPE) {
        return pe_fail(err, PE_ERR_MISSING, field, "is missing, %s takes rows of %d coordinates here",
                       pe_plan_encoding(plan)->type, pe_plan_axes(plan));
    }
    trial = (struct pe_error){.stop = err->stop};
    if (row->admit && row->admit(pe_plan_view(plan), positions, &trial) == PE_ERR_RANGE) {
        return pe_positions_not_given(&trial, positions->length, field, source, err);
    }
    return pe_positions_admit(plan, positions, dtype, field, err);
}

int pe_plan_axes(const struct pe_plan *plan) {
    const struct pe_encoding *row = pe_plan_row(plan);
    return row->axes ? row->axes(pe_plan_view(plan)) : 1;
}

void pe_positions_suit(const struct pe_plan *plan, struct pe_positions *positions) {
    int axes = pe_plan_axes(plan);
    if (axes > 1 && positions->axes == 1 && positions->batch && positions->length == (size_t)axes &&
        positions->list) {
        positions->length = positions->batch;
        positions->batch = 0;
        positions->axes = axes;
    }
}

int pe_positions_lead(struct pe_arena *arena, const struct pe_plan *plan, struct pe_positions *positions,
                      struct pe_error *err) {
    const struct pe_encoding *row = pe_plan_row(plan);
    size_t lead = row->lead ? row->lead(pe_plan_view(plan)) : 0, axes = (size_t)positions->axes;
    if (err->code || lead == 0 || !positions->of_grid) {
        return err->code;
    }
    struct pe_tensor list;
    if (pe_tensor_alloc(arena, &list, PE_DTYPE_F64, 2, (size_t[2]){lead + positions->length, axes}, err)) {
        return err->code;
    }
    double *values = list.data;
    for (size_t i = 0; i < lead * axes; i++) {
        values[i] = -1;
    }
    if (pe_positions_fill(positions, values + lead * axes, err)) {
        return err->code;
    }
    positions->length += lead;
    positions->list = values;
    return PE_OK;
}

int pe_operand_result(struct pe_arena *arena, struct pe_tensor *out, const struct pe_apply_args *args,
                      enum pe_dtype dtype, struct pe_error *err) {
    const struct pe_tensor *x = args->embeddings;
    if (args->in_place) {
        *out = *x;
        return dtype == x->dtype ? PE_OK
                                 : pe_fail(err, PE_ERR_CONFLICT, "dtype",
                                           "is %s, but the embeddings whose place the result takes are %s",
                                           pe_dtype_name(dtype), pe_dtype_name(x->dtype));
    }
    return pe_tensor_alloc(arena, out, dtype, x->rank, x->dim, err) ? pe_error_at(err, "embeddings") : PE_OK;
}

int pe_operand_scale_read(const struct pe_operand_scale *scale, size_t width, enum pe_dtype real, double *out,
                          struct pe_error *err) {
    *out = scale->mode == PE_EMBEDDING_SCALE_NUMBER ? scale->number : 1;
    if (scale->mode == PE_EMBEDDING_SCALE_SQRT_D_MODEL) {
        *out = sqrt((double)width);
    }
    if (!isfinite(*out)) {
        return pe_fail(err, PE_ERR_NONFINITE, "embedding_scale", "got %g, allowed are finite numbers", *out);
    }
    if (fabs(*out) > pe_vector_limit(real)) {
        return pe_fail(err, PE_ERR_RANGE, "embedding_scale", "got %g, allowed are numbers up to %g for %s",
                       *out, pe_vector_limit(real), pe_dtype_name(real));
    }
    return PE_OK;
}

/* Height and width in the other order move everything, and all wrongly. */
static int image_check(const struct pe_plan *plan, const size_t image[2], struct pe_error *err) {
    const struct pe_encoding *row = pe_plan_row(plan);
    size_t told[2] = {0};
    bool fits = true;
    for (int i = 0; row->grid_size && i < 2; i++) {
        told[i] = row->grid_size(pe_plan_view(plan), i);
        fits = fits && (told[i] == 0 || told[i] == image[i]);
    }
    return fits ? PE_OK
                : pe_fail(err, PE_ERR_CONFLICT, "embeddings",
                          "are images of [%zu, %zu], but the grid of the encoding is [%zu, %zu]", image[0],
                          image[1], told[0], told[1]);
}

int pe_positions_image(struct pe_arena *arena, struct pe_positions *out, const struct pe_plan *plan,
                       const size_t image[2], struct pe_error *err) {
    const double size[2] = {(double)image[0], (double)image[1]};
    const struct pe_tensor grid = {
        .data = (void *)(uintptr_t)size, .dtype = PE_DTYPE_F64, .rank = 1, .dim = {2}};
    if (image_check(plan, image, err) ||
        pe_positions_make(arena, out, &(struct pe_positions_rule){.grid = &grid}, err)) {
        return err->code;
    }
    out->by_rule = false; /* they were not asked for */
    return PE_OK;
}

struct pe_positions pe_positions_for(const struct pe_plan *plan, const struct pe_positions *given,
                                     size_t batch, size_t length) {
    struct pe_positions positions = *given;
    bool fits = given->batch == batch && given->length == length;
    if (plan) {
        pe_positions_suit(plan, &positions);
    }
    return fits && positions.length != length ? *given : positions;
}
