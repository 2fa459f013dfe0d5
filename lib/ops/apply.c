/* SPDX-License-Identifier: MIT
 *
 * apply: embeddings [B, T, D] * scale + PE [T, D], the sum that enters the first layer of a Transformer.
 *
 *     out = fl(fl(x*scale) + fl(PE))
 *
 * each step rounded in float32 (in float64 for float64 results), so the result has the same bits as the plain
 * expression in any tensor library that holds the exact PE. 16-bit types are widened to float32 and the sum
 * is rounded once: bfloat16 keeps 8 bits, and a model that adds in it loses the position.
 *
 * A part is a block of rows t. Where the positions are shared by the batch, PE is made once, some rows at a time
 * on the stack, and added to all sequences. A row that is too wide for that is made in the place of the first
 * sequence's result, and added to the others before it is overwritten; where the result is not as wide, or where x
 * is, in memory of its own.
 *
 * Overflow is settled before the work starts. The largest |x*scale| is known, and an encoding can tell
 * whether its vectors stay below what is left up to infinity. Only where they may not is each sum looked at.
 */
#include "core/dtype.h"
#include "kernels/vector.h"
#include "ops/operand.h"
#include "ops/rotate.h"

#include "posenc_admits.h"

#include <math.h>
#include <string.h>

#define PART_ITEMS    ((size_t)16384) /* of PE in one part: it stays in the cache for the whole batch */
#define ROWS_TOGETHER 64              /* where the encoding adds */
#define WIDE_ITEMS    ((size_t)16384) /* a row for which that is too much */
#define CHUNK         128
#define VECTORS_BYTES ((size_t)64 << 10) /* of PE at a time, in the nearest cache */

struct apply {
    const struct pe_plan *plan; /* makes PE; NULL when nothing is added */
    struct pe_positions positions;
    const unsigned char *x; /* real */
    unsigned char *added;   /* real [T, D], where PE is made if it is long; NULL: in out */
    unsigned char *out;     /* dtype */
    enum pe_dtype real, dtype;
    size_t real_size, size;
    size_t batch, length, width; /* positions per sequence: batch 1 and length B*T */
    size_t part_rows;
    double scale;
    bool in_place, together; /* the encoding adds: each vector is for one row */
    const struct pe_stop *stop;
};

/* One run of n numbers from element `first` of x to out; added is real, or NULL. */
static void run_add(const struct apply *op, size_t first, const void *added, size_t n, void *to) {
    const unsigned char *x = op->x + first * op->real_size;
    unsigned char *out = to;
    if (op->dtype == op->real) {
        pe_vector_scale_add(op->real, out, x, op->scale, added, n);
        return;
    }
    float chunk[CHUNK]; /* a type other than real is a narrow one, and then real is float32 */
    for (size_t i = 0, step; i < n; i += step) {
        step = n - i < CHUNK ? n - i : CHUNK;
        const unsigned char *some = added ? (const unsigned char *)added + i * op->real_size : NULL;
        pe_vector_scale_add(op->real, chunk, x + i * op->real_size, op->scale, some, step);
        pe_vector_store(op->real, chunk, step, op->dtype, out + i * op->size);
    }
}

/* The vectors of rows first .. first+n-1. */
static void run_encode(const struct apply *op, size_t first, size_t n, void *out) {
    const struct pe_rows rows = {
        .plan = op->plan, .positions = &op->positions, .dtype = op->real, .stop = op->stop};
    pe_rows_encode(&rows, first, n, out);
}

/* A run that may be a long one: a row can be as wide as the memory of the request. */
static void run_sequence(const struct apply *op, size_t first, const unsigned char *added, size_t n) {
    for (size_t i = 0, step; i < n && !pe_stop_asked(op->stop); i += step) {
        step = pe_stop_step(n, i);
        run_add(op, first + i, added ? added + i * op->real_size : NULL, step,
                op->out + (first + i) * op->size);
    }
}

/* Some rows of all sequences, with PE in `added`. */
static void apply_rows(const struct apply *op, size_t row, size_t rows, unsigned char *added) {
    if (op->plan) {
        run_encode(op, row, rows, added);
    }
    for (size_t b = op->batch; b-- > 0 && !pe_stop_asked(op->stop);) {
        run_sequence(op, (b * op->length + row) * op->width, op->plan ? added : NULL, rows * op->width);
    }
}

/* Rows from `row` on that the encoding adds by itself; 0: none. */
static size_t apply_together(const struct apply *op, size_t row, size_t end) {
    double positions[ROWS_TOGETHER];
    const size_t first = row * op->width, n = end - row < ROWS_TOGETHER ? end - row : ROWS_TOGETHER;
    if (!op->together) {
        return 0;
    }
    pe_positions_read(&op->positions, row, n, positions);
    return pe_plan_row(op->plan)->encode_add(pe_plan_view(op->plan), positions, n,
                                             (const float *)(const void *)op->x + first, op->scale,
                                             (float *)(void *)op->out + first);
}

static void apply_part(const void *state, size_t part) {
    const struct apply *op = state;
    double vectors[VECTORS_BYTES / sizeof(double)];
    size_t row = part * op->part_rows, row_bytes = op->width * op->real_size;
    size_t end = op->length - row < op->part_rows ? op->length : row + op->part_rows;
    bool fit = op->plan && row_bytes <= sizeof vectors;
    for (size_t rows; row < end && !pe_stop_asked(op->stop); row += rows) {
        rows = apply_together(op, row, end);
        if (rows != 0) {
            continue;
        }
        size_t most = fit ? sizeof vectors / row_bytes : end - row;
        rows = end - row < most ? end - row : most;
        unsigned char *added = fit         ? (unsigned char *)vectors
                               : op->added ? op->added + row * row_bytes
                                           : op->out + row * row_bytes;
        apply_rows(op, row, rows, added);
    }
}

/* ---- What could overflow ------------------------------------------------------------------------------- */

/* Element i of the result is infinite. */
static int overflow_fail(const struct apply *op, const struct pe_tensor *embeddings, size_t i,
                         struct pe_error *err) {
    char path[sizeof err->path];
    pe_fail(err, PE_ERR_RANGE, pe_tensor_index_text(embeddings, i, path, sizeof path),
            "scaled and with its position it is beyond the largest %s, %g", pe_dtype_name(op->dtype),
            pe_vector_limit(op->dtype));
    return pe_error_at(err, "embeddings");
}

/* Makes all results, as the parts will, and looks for an infinite one. */
static int overflow_search(const struct apply *op, const struct pe_tensor *embeddings, struct pe_error *err) {
    size_t period = op->length * op->width, count = op->batch * period;
    double chunk[CHUNK], result[CHUNK];
    for (size_t i = 0, step; i < count; i += step) {
        size_t at = i % period;
        step = period - at < CHUNK ? period - at : CHUNK;
        if (pe_error_poll(err)) {
            return err->code;
        }
        run_add(op, i, op->plan ? op->added + at * op->real_size : NULL, step, result);
        pe_dtype_load(op->dtype, result, step, chunk);
        for (size_t j = 0; j < step; j++) {
            if (isinf(chunk[j])) {
                return overflow_fail(op, embeddings, i + j, err);
            }
        }
    }
    return PE_OK;
}

static int added_open(struct pe_arena *arena, struct apply *op, struct pe_error *err) {
    struct pe_tensor added;
    if (pe_tensor_alloc(arena, &added, op->real, 2, (size_t[2]){op->length, op->width}, err)) {
        return pe_error_at(err, "embeddings");
    }
    op->added = added.data;
    return PE_OK;
}

/* x*scale and the sum are rounded in float32 or better, and the sum once more to 16 bits: SLACK is above what
 * the first two can add to it. */
#define SLACK 0x1p-20

static int overflow_check(struct pe_arena *arena, struct apply *op, const struct pe_operand *x,
                          struct pe_error *err) {
    bool narrow = op->dtype != op->real, wide = op->width * op->real_size > VECTORS_BYTES;
    if (op->plan && wide && (narrow || op->in_place) && added_open(arena, op, err)) {
        return err->code;
    }
    double limit = narrow ? pe_dtype_overflow(op->dtype) : pe_vector_limit(op->real);
    double room = limit * (1 - SLACK) - x->largest * fabs(op->scale); /* minus infinity at worst */
    if (room > 0 && (!op->plan || pe_encoding_below(op->plan, &op->positions, room, err->stop))) {
        return PE_OK;
    }
    if (op->plan && !op->added && added_open(arena, op, err)) {
        return err->code;
    }
    if (op->plan) {
        run_encode(op, 0, op->length, op->added);
    }
    return overflow_search(op, &x->tensor, err);
}

/* ---- Opening ------------------------------------------------------------------------------------------- */

static bool is_rotary(const struct pe_apply_args *args) {
    return args->plan && pe_plan_row(args->plan)->angles;
}

static bool is_image(const struct pe_apply_args *args) {
    return args->axes && strstr(args->axes, "hw");
}

/* Only what stands in memory as sequences do. */
static int axes_check(const struct pe_apply_args *args, struct pe_error *err) {
    static const char *const all[] = {"td", "btd", "hwd", "bhwd"};
    const struct pe_tensor *x = args->embeddings;
    bool known = !args->axes;
    char shape[128];
    pe_tensor_shape_text(x, shape, sizeof shape);
    for (size_t i = 0; args->axes && i < PE_COUNT(all); i++) {
        known = known || strcmp(args->axes, all[i]) == 0;
    }
    if (!known || (args->axes && strlen(args->axes) != (size_t)x->rank)) {
        return pe_fail(
            err, PE_ERR_CHOICE, "axes",
            "\"%.20s\" for embeddings of shape %s, allowed are td, btd, and hwd or bhwd for images",
            args->axes, shape);
    }
    if (!args->axes && x->rank != 2 && x->rank != 3) {
        return pe_fail(err, PE_ERR_SHAPE, "embeddings",
                       "has shape %s, allowed are [T, D] and [B, T, D], and images with the axes hwd or bhwd",
                       shape);
    }
    return PE_OK;
}

static int args_check(const struct pe_apply_args *args, struct pe_error *err) {
    if (args->dtype && pe_dtype_check(args->dtype, err)) {
        return err->code;
    }
    if (!args->embeddings) {
        return pe_fail(err, PE_ERR_MISSING, "embeddings", "is missing");
    }
    if (is_rotary(args)) {
        return PE_OK;
    }
    if (args->inverse || args->keys) {
        return pe_fail(err, PE_ERR_CONFLICT, args->inverse ? "inverse" : "role", "is for rotary encodings");
    }
    const struct pe_tensor *x = args->embeddings;
    char shape[128];
    if (axes_check(args, err)) {
        return err->code;
    }
    if (args->plan && pe_encoding_adds(pe_plan_row(args->plan)) &&
        x->dim[x->rank - 1] != pe_plan_width(args->plan)) {
        return pe_fail(
            err, PE_ERR_SHAPE, "embeddings", "has shape %s, so D = %zu, but the encoding has D = %zu",
            pe_tensor_shape_text(x, shape, sizeof shape), x->dim[x->rank - 1], pe_plan_width(args->plan));
    }
    return PE_OK;
}

int pe_apply_admits(const struct pe_encoding_info *encoding, struct pe_error *err) {
    const struct pe_encoding *row = pe_encoding_row(encoding);
    return pe_encoding_adds(row) || row->angles || row->info.family == PE_FAMILY_NONE
               ? err->code
               : pe_encoding_unsupported(row, "is not added to embeddings", err);
}

static int plan_read(const struct pe_apply_args *args, struct apply *op, struct pe_error *err) {
    const struct pe_encoding *row = args->plan ? pe_plan_row(args->plan) : NULL;
    if (row && pe_encoding_adds(row)) {
        op->plan = args->plan;
    } else if (row && row->info.family != PE_FAMILY_NONE) {
        return pe_apply_admits(&row->info, err);
    }
    return PE_OK;
}

static int scale_read(const struct pe_apply_args *args, struct apply *op, struct pe_error *err) {
    const struct pe_operand_scale scale = {args->scale_mode, args->scale};
    return pe_operand_scale_read(&scale, op->width, op->real, &op->scale, err);
}

/* The positions of [batch, length] tokens: given, those of an image, or 0, 1, 2 ... */
static int positions_read(struct pe_arena *arena, const struct pe_apply_args *args, struct apply *op,
                          size_t batch, struct pe_error *err) {
    const struct pe_tensor *x = args->embeddings;
    bool given = args->positions != NULL;
    op->positions = (struct pe_positions){.length = op->length, .axes = 1, .step = 1};
    if (given) {
        op->positions = pe_positions_for(op->plan, args->positions, batch, op->length);
        if (pe_positions_fit(op->plan, &op->positions, batch, op->length, "positions", err)) {
            return err->code;
        }
    }
    if (!op->plan) {
        return PE_OK;
    }
    if (!given && is_image(args) && pe_plan_axes(op->plan) == 2 &&
        pe_positions_image(arena, &op->positions, op->plan, &x->dim[x->rank - 3], err)) {
        return err->code;
    }
    return given ? pe_positions_admit(op->plan, &op->positions, op->real, "positions", err)
                 : pe_positions_admit_default(op->plan, &op->positions, op->real, "positions", "embeddings",
                                              err);
}

/* How many rows a part has, and whether the encoding adds by itself. */
static void parts_fill(struct apply *op) {
    op->together = op->plan && pe_plan_row(op->plan)->encode_add && op->batch == 1 &&
                   op->dtype == PE_DTYPE_F32 && op->positions.axes == 1;
    op->part_rows = op->width && op->width < PART_ITEMS ? PART_ITEMS / op->width : 1;
    if (op->together && op->width < WIDE_ITEMS && op->part_rows < ROWS_TOGETHER) {
        op->part_rows = ROWS_TOGETHER;
    }
}

/* Sizes and positions: sequences that have positions of their own are one long sequence. */
static int rows_read(struct pe_arena *arena, const struct pe_apply_args *args, struct apply *op,
                     struct pe_error *err) {
    const struct pe_tensor *x = args->embeddings;
    bool image = is_image(args), batched = x->rank == (image ? 4 : 3);
    op->batch = batched ? x->dim[0] : 1;
    op->length = x->dim[x->rank - 2] * (image ? x->dim[x->rank - 3] : 1);
    op->width = x->dim[x->rank - 1];
    if (positions_read(arena, args, op, batched ? op->batch : 0, err)) {
        return err->code;
    }
    if (op->positions.batch) {
        op->length *= op->batch;
        op->batch = 1;
    }
    parts_fill(op);
    return PE_OK;
}

static int apply_fill(struct pe_arena *arena, struct apply *op, struct pe_tensor *out,
                      const struct pe_apply_args *args, struct pe_error *err) {
    const struct pe_tensor *x = args->embeddings;
    op->stop = err->stop;
    op->dtype = args->dtype ? args->dtype : x->dtype;
    op->real = op->dtype == PE_DTYPE_F64 ? PE_DTYPE_F64 : PE_DTYPE_F32;
    op->real_size = pe_dtype_size(op->real);
    op->size = pe_dtype_size(op->dtype);
    struct pe_operand operand;
    struct pe_operand_rule rule = {.name = "embeddings", .real = op->real};
    if (pe_result_ask(arena, op->dtype, x->rank, x->dim, err) || rows_read(arena, args, op, err) ||
        scale_read(args, op, err) || pe_operand_read(arena, &operand, x, &rule, err)) {
        return err->code;
    }
    op->x = operand.tensor.data;
    if (pe_operand_result(arena, out, args, op->dtype, err)) {
        return err->code;
    }
    op->out = out->data;
    op->in_place = args->in_place;
    return overflow_check(arena, op, &operand, err);
}

static double cost_ns(const struct apply *op) {
    double made = op->plan ? (double)op->length * pe_encoding_row_ns(op->plan, op->real) : 0;
    return made + 0.5 * (double)op->batch * (double)op->length * (double)op->width;
}

int pe_apply_open(struct pe_arena *arena, struct pe_work *work, struct pe_tensor *out,
                  const struct pe_apply_args *theirs, struct pe_error *err) {
    struct pe_apply_args args;
    *work = (struct pe_work){0};
    *out = (struct pe_tensor){0};
    if (err->code || pe_args_copy(&args, sizeof args, theirs, theirs->size, err) || args_check(&args, err)) {
        return err->code;
    }
    if (is_rotary(&args)) {
        return pe_rotate_open(arena, work, out, &args, err);
    }
    struct apply *op = pe_arena_array(arena, 1, sizeof *op, err);
    if (!op) {
        return err->code;
    }
    if (plan_read(&args, op, err) || apply_fill(arena, op, out, &args, err)) {
        *out = (struct pe_tensor){0};
        return err->code;
    }
    bool any = op->length && op->width && op->batch;
    *work = (struct pe_work){
        .n_parts = any ? op->length / op->part_rows + (op->length % op->part_rows != 0) : 0,
        .cost_ns = cost_ns(op),
        .state = op,
        .run = apply_part,
        .stop = err->stop,
    };
    return PE_OK;
}
