/* SPDX-License-Identifier: MIT
 *
 * properties: what a good encoding has, measured on one. The four criteria are those that every introduction
 * to sinusoids begins with:
 *
 *     unique        no two positions have the same vector: the closest pair, and how far apart they are
 *     bounded       no number grows with the position: the largest |x|, here and ten times as far
 *     same_lengths  a position's vector does not depend on how long its sequence is
 *     beyond        there are vectors past the positions that were asked for
 *
 * and beside them norms, the steps from one position to the next, wavelengths, and what it costs. Distances
 * of all pairs are T*T*width operations, in an order of their own, so a GET has the same bits everywhere.
 */
#include "core/last.h"
#include "core/stop.h"
#include "kernels/vector.h"
#include "ops/operand.h"
#include "ops/vectors.h"

#include "posenc_admits.h"

#include <math.h>
#include <string.h>

#define FAR  10 /* times as far, for bounded and beyond */
#define ROOM 16 /* times what is seen: a bound that few numbers show */

#define SQUARES_LEAST 0x1p-900 /* squares that underflow are nothing beside it */

struct properties {
    const struct pe_plan *plan;
    size_t n, width;
    const double *x;      /* [n, width] */
    const double *longer; /* the same positions in a sequence twice as long, or NULL */
    const double *beyond; /* [n, width], FAR times as far, or NULL */
    struct pe_properties *out;
    size_t part_rows;
    struct closest *closest; /* of each part */
    struct pe_last *last;
    const struct pe_stop *stop;
};

/* The closest of some pairs. */
struct closest {
    double distance;
    size_t pair[2];
};

#define PART_ITEMS ((size_t)1 << 22) /* operations in a part, of all pairs of some rows */

/* Before row i of loops that cost a row's width each. */
static bool stopped_at(const struct properties *op, size_t i) {
    return i % (PE_STOP_ITEMS / op->width + 1) == 0 && pe_stop_asked(op->stop);
}

/* |a - b|, or |a| without b, whose squares overflow, or are too small to have all their digits. A power of two,
 * which changes no digit, is taken off. */
static double scaled_length(const double *a, const double *b, size_t width) {
    double most = 0, sum = 0;
    int exponent;
    for (size_t c = 0; c < width; c++) {
        most = fmax(most, fabs(b ? a[c] - b[c] : a[c]));
    }
    if (most == 0 || !isfinite(most)) {
        return most;
    }
    (void)frexp(most, &exponent);
    for (size_t c = 0; c < width; c++) {
        double x = ldexp(b ? a[c] - b[c] : a[c], -exponent);
        sum += x * x;
    }
    return ldexp(sqrt(sum), exponent);
}

/* Has no square overflowed, or underflowed so that it would count? */
static bool is_whole_sum(double squares) {
    return squares >= SQUARES_LEAST && isfinite(squares);
}

static double distance_of(const double *a, const double *b, size_t width) {
    double sum = 0;
    for (size_t c = 0; c < width; c++) {
        sum += (a[c] - b[c]) * (a[c] - b[c]);
    }
    return is_whole_sum(sum) ? sqrt(sum) : scaled_length(a, b, width);
}

static double length_of(const double *x, size_t width) {
    double squares = pe_vector_dot(x, x, width);
    return is_whole_sum(squares) ? sqrt(squares) : scaled_length(x, NULL, width);
}

/* Pairs of rows first .. end-1 with all behind them. */
static void pairs_measure(const struct properties *op, size_t first, size_t end, struct closest *out) {
    size_t unasked = 0; /* operations since the last question, also those of rows before */
    *out = (struct closest){.distance = INFINITY};
    for (size_t i = first; i < end; i++) {
        for (size_t j = i + 1; j < op->n; j++) {
            double distance = distance_of(op->x + i * op->width, op->x + j * op->width, op->width);
            unasked = unasked < PE_STOP_ITEMS ? unasked + op->width : 0;
            if (unasked == 0 && pe_stop_asked(op->stop)) {
                return;
            }
            if (distance < out->distance) {
                *out = (struct closest){.distance = distance, .pair = {i, j}};
            }
        }
    }
}

/* The first of the closest pairs of all parts. */
static void closest_keep(const struct properties *op) {
    struct pe_properties *out = op->out;
    struct closest closest = op->closest[0];
    for (size_t i = 1; i < op->last->n_parts; i++) {
        closest = op->closest[i].distance < closest.distance ? op->closest[i] : closest;
    }
    out->closest = op->n > 1 ? closest.distance : 0;
    out->closest_pair[0] = closest.pair[0];
    out->closest_pair[1] = closest.pair[1];
    out->unique = op->n < 2 || out->closest > 0;
}

static void rows_measure(const struct properties *op) {
    struct pe_properties *out = op->out;
    out->norm[0] = out->step[0] = INFINITY;
    for (size_t i = 0; i < op->n && !stopped_at(op, i); i++) {
        const double *row = op->x + i * op->width;
        double norm = length_of(row, op->width);
        out->norm[0] = fmin(out->norm[0], norm);
        out->norm[1] = fmax(out->norm[1], norm);
        if (i > 0) {
            double step = distance_of(row - op->width, row, op->width);
            out->step[0] = fmin(out->step[0], step);
            out->step[1] = fmax(out->step[1], step);
        }
    }
    out->norm[0] = op->n ? out->norm[0] : 0;
    out->step[0] = op->n > 1 ? out->step[0] : 0;
}

static double largest(const struct properties *op, const double *x) {
    double most = 0;
    for (size_t i = 0; i < op->n && !stopped_at(op, i); i++) {
        most = fmax(most, pe_vector_largest(PE_DTYPE_F64, x + i * op->width, op->width, false, NULL));
    }
    return most;
}

static void lengths_measure(const struct properties *op) {
    double most = 0;
    for (size_t i = 0; op->longer && i < op->n && !stopped_at(op, i); i++) {
        for (size_t c = 0; c < op->width; c++) {
            most = fmax(most, fabs(op->x[i * op->width + c] - op->longer[i * op->width + c]));
        }
    }
    op->out->length_change = most;
    op->out->same_lengths = most == 0;
}

static void properties_part(const void *state, size_t part) {
    const struct properties *op = state;
    struct pe_properties *out = op->out;
    size_t first = part * op->part_rows, end = first + op->part_rows;
    pairs_measure(op, first, end < op->n ? end : op->n, &op->closest[part]);
    if (!pe_last_done(op->last) || pe_stop_asked(op->stop)) {
        return;
    }
    closest_keep(op);
    rows_measure(op);
    lengths_measure(op);
    out->largest = largest(op, op->x);
    out->largest_far = op->beyond ? largest(op, op->beyond) : out->largest;
}

/* ---- Opening ------------------------------------------------------------------------------------------- */

/* Is there a bound that holds at the ends of what the encoding takes? A random number may be several times
 * what a few of them show. */
static void bound_find(const struct properties *op) {
    double ends[2], most = fmax(largest(op, op->x), 1);
    pe_plan_bounds(op->plan, &ends[0], &ends[1]);
    const struct pe_positions positions = {.length = 2, .axes = 1, .list = ends};
    op->out->bounded = pe_encoding_below(op->plan, &positions, ROOM * most, op->stop);
}

/* FAR times as far: is there anything? */
static int beyond_open(struct pe_arena *arena, struct properties *op, const struct pe_positions *positions,
                       struct pe_error *err) {
    struct pe_error refused = {.stop = err->stop};
    double *list = pe_arena_array(arena, op->n, (size_t)positions->axes * sizeof *list, err);
    size_t items = op->n * (size_t)positions->axes;
    if (!list || pe_positions_fill(positions, list, err)) {
        return err->code;
    }
    for (size_t i = 0; i < items; i++) {
        list[i] = fabs(list[i]) * FAR > PE_POSITION_MAX ? list[i] : list[i] * FAR;
    }
    struct pe_positions far = *positions;
    double *x;
    far.list = list;
    if (pe_vectors_make(arena, &x, op->plan, &far, &refused) == PE_OK) {
        op->beyond = x;
        op->out->beyond = true;
        return PE_OK;
    }
    if (refused.code == PE_ERR_STOPPED || refused.code == PE_ERR_LIMIT || refused.code == PE_ERR_MEMORY) {
        *err = refused;
        return err->code;
    }
    op->out->beyond_text = pe_arena_text(arena, refused.text, strlen(refused.text), err);
    return err->code;
}

static int wavelengths_open(struct pe_arena *arena, struct pe_properties_result *result,
                            const struct pe_plan *plan, struct pe_error *err) {
    const struct pe_encoding *row = pe_plan_row(plan);
    const struct pe_plan_view *view = pe_plan_view(plan);
    if (!row->frequencies) {
        return PE_OK;
    }
    size_t n = row->pairs ? row->pairs(view).n : row->shift_pairs(view);
    if (pe_tensor_alloc(arena, &result->wavelengths, PE_DTYPE_F64, 1, &n, err)) {
        return err->code;
    }
    double *out = result->wavelengths.data;
    row->frequencies(view, PE_DTYPE_F64, out);
    for (size_t i = 0; i < n; i++) {
        out[i] = out[i] > 0 ? 2 * 3.14159265358979323846 / out[i] : 0;
    }
    return PE_OK;
}

/* Numbers in the tensors that were given: what training found. */
static size_t parameters_count(const struct pe_plan *plan) {
    const struct pe_encoding_info *info = pe_plan_encoding(plan);
    const unsigned char *params = pe_plan_params(plan);
    size_t n = 0;
    for (size_t i = 0; i < info->n_fields; i++) {
        const void *member = params + info->fields[i].offset;
        const struct pe_tensor *tensor =
            info->fields[i].kind == PE_KIND_TABLE ? ((const struct pe_table *)member)->tensor : NULL;
        n += tensor ? pe_tensor_count(tensor) : 0;
    }
    return n;
}

int pe_properties_admits(const struct pe_encoding_info *encoding, struct pe_error *err) {
    const struct pe_encoding *row = pe_encoding_row(encoding);
    return row->encode || row->angles ? err->code
                                      : pe_encoding_unsupported(row, "has no vectors to measure", err);
}

static int args_check(const struct pe_properties_args *args, struct pe_error *err) {
    if (!args->plan || !args->positions) {
        return pe_fail(err, PE_ERR_MISSING, args->plan ? "positions" : "encoding", "is missing");
    }
    if (pe_properties_admits(pe_plan_encoding(args->plan), err)) {
        return err->code;
    }
    if (args->positions->batch) {
        return pe_fail(err, PE_ERR_SHAPE, "positions", "are of several sequences, allowed is one");
    }
    double n = (double)args->positions->length, work = n * n * (double)pe_vectors_width(args->plan);
    if (work <= (double)PE_SIMILARITY_WORK_MAX) {
        return PE_OK;
    }
    return pe_fail_limit(err, "positions", "similarity_work", PE_SIMILARITY_WORK_MAX,
                         work < 1.8e19 ? (uint64_t)work : UINT64_MAX,
                         "%zu positions are %.3g operations, at most %.3g are allowed",
                         args->positions->length, work, (double)PE_SIMILARITY_WORK_MAX);
}

static int parts_open(struct pe_arena *arena, struct properties *op, struct pe_error *err) {
    size_t rows = PART_ITEMS / (op->n * op->width + 1);
    op->part_rows = rows ? rows : 1;
    size_t n_parts = op->n > op->part_rows ? (op->n - 1) / op->part_rows + 1 : 1;
    op->closest = pe_arena_array(arena, n_parts, sizeof *op->closest, err);
    op->last = pe_arena_array(arena, 1, sizeof *op->last, err);
    if (op->last) {
        pe_last_open(op->last, n_parts);
    }
    return err->code;
}

int pe_properties_open(struct pe_arena *arena, struct pe_work *work, struct pe_properties_result *result,
                       const struct pe_properties_args *theirs, struct pe_error *err) {
    struct pe_properties_args args;
    *work = (struct pe_work){0};
    *result = (struct pe_properties_result){0};
    if (err->code || pe_args_copy(&args, sizeof args, theirs, theirs->size, err) || args_check(&args, err)) {
        return err->code;
    }
    struct properties *op = pe_arena_array(arena, 1, sizeof *op, err);
    struct pe_properties *out = pe_arena_array(arena, 1, sizeof *out, err);
    if (!op || !out) {
        return err->code;
    }
    double *x, *longer = NULL;
    size_t width = pe_vectors_width(args.plan), n = args.positions->length;
    if (pe_vectors_make(arena, &x, args.plan, args.positions, err) ||
        (args.longer && pe_vectors_make(arena, &longer, args.longer, args.positions, err)) ||
        wavelengths_open(arena, result, args.plan, err)) {
        *result = (struct pe_properties_result){0};
        return err->code;
    }
    *op = (struct properties){
        .plan = args.plan, .n = n, .width = width, .x = x, .longer = longer, .out = out, .stop = err->stop};
    out->parameters = parameters_count(args.plan);
    out->bytes = n * width * sizeof(float);
    out->flops = pe_plan_row(args.plan)->angles ? 3 * width : width;
    if (beyond_open(arena, op, args.positions, err) || parts_open(arena, op, err)) {
        *result = (struct pe_properties_result){0};
        return err->code;
    }
    bound_find(op);
    result->properties = out;
    *work = (struct pe_work){
        .n_parts = op->last->n_parts,
        .cost_ns = (double)n * (double)n * (double)width / 2,
        .state = op,
        .run = properties_part,
        .stop = err->stop,
    };
    return PE_OK;
}
