/* SPDX-License-Identifier: MIT
 *
 * head: weights of one attention head that looks where we want, written down instead of learned. The score is
 * scale * q_i . k_j, and M(r) is the encoding's map from PE(p) to PE(p + r), the same at every p.
 *
 *     k tokens back, r = -k    k_j = PE(j)            q_i = g M(r) PE(i) = g PE(i + r)
 *                              score = g sum over pairs of cos(w (i + r - j)), largest at j = i + r
 *     the first token, f       q_i = g cos(w_low i) PE(f): the slowest hand hardly moves and stands for a 1
 *
 * A rotary encoding turns queries and keys that a constant 1 in every token is projected to:
 *
 *     k tokens back            k = (1, 0) in every pair, q = g M(r) k
 *     the first token          one pair with w T < pi/3, and q a quarter of a turn behind k: the score is
 *                              g sin(w (i - j)), which grows with the distance, so the farthest token wins
 *
 * The gain g follows from the smallest gap between the score of the wanted token and the next: others have
 * less than a hundredth of the weight. Without an encoding equal tokens are all alike to any weights, and
 * none can do it: random ones are tried, and the best of them told.
 */
#include "core/cells.h"
#include "core/scale.h"
#include "core/stop.h"
#include "ops/head.h"
#include "ops/operand.h"

#include "posenc_admits.h"

#include <math.h>
#include <string.h>

#define TRY_WIDTH  16                /* of tokens and heads without an encoding */
#define PART_ITEMS ((size_t)1 << 22) /* multiplications in a part */

static int args_check(const struct pe_head_args *args, struct pe_error *err) {
    const struct pe_positions *positions = args->positions;
    if (!positions) {
        return pe_fail(err, PE_ERR_MISSING, "positions", "is missing");
    }
    if (positions->batch || positions->axes != 1) {
        return pe_fail(err, PE_ERR_SHAPE, "positions", "are not one sequence with one coordinate each");
    }
    if (positions->length < 2 || positions->length > PE_HEAD_TOKENS_MAX) {
        return pe_fail(err, PE_ERR_RANGE, "positions", "are %zu, allowed are 2 to %d tokens",
                       positions->length, PE_HEAD_TOKENS_MAX);
    }
    int64_t most = (int64_t)positions->length - 1;
    if (!args->first && (args->offset < -most || args->offset > (args->causal ? 0 : most))) {
        return pe_fail(err, PE_ERR_RANGE, "goal.attend",
                       "got %lld, allowed are %lld to %lld with %zu tokens%s", (long long)args->offset,
                       (long long)-most, args->causal ? 0LL : (long long)most, positions->length,
                       args->causal ? " and a causal mask" : "");
    }
    return PE_OK;
}

/* The step from token to token, which the maps are made for: that of a range, else of the whole list, whose
 * positions were rounded. A thousandth of a step is no other place. */
static int step_read(struct pe_head_work *op, const struct pe_positions *positions, struct pe_error *err) {
    const double *at = op->positions;
    op->step = positions->list ? (at[op->n - 1] - at[0]) / (double)(op->n - 1) : positions->step;
    for (size_t i = 1; positions->list && i < op->n; i++) {
        if (!(fabs(at[i] - fma((double)i, op->step, at[0])) <= fabs(op->step) / 1024)) {
            return pe_fail(err, PE_ERR_RANGE, "positions", "are not evenly spaced, as one map for all needs");
        }
    }
    if (!(op->step > 0)) {
        return pe_fail(err, PE_ERR_RANGE, "positions", "go in steps of %g, allowed are steps above 0",
                       op->step);
    }
    return PE_OK;
}

static int width_read(struct pe_head_work *op, size_t asked, struct pe_error *err) {
    size_t pairs = op->row->shift_pairs(op->view), most = 2 * pairs;
    if (op->row->angles) {
        op->width = pe_plan_width(op->plan);
        op->inner = 1;
        return asked && asked != op->width
                   ? pe_fail(err, PE_ERR_CONFLICT, "width", "is %zu, but the encoding turns heads of %zu",
                             asked, op->width)
                   : PE_OK;
    }
    op->inner = pe_plan_width(op->plan);
    op->width = asked ? asked : most;
    if (pairs == 0) {
        return pe_fail(err, PE_ERR_UNSUPPORTED, "encoding.d_model",
                       "is %zu, which has no sine and cosine in pairs, of which a head is built", op->inner);
    }
    if (op->width % 2 || op->width < 2 || op->width > most) {
        return pe_fail(err, PE_ERR_RANGE, "width",
                       "is %zu, allowed are even numbers up to %zu: the pairs of the "
                       "encoding",
                       op->width, most);
    }
    return PE_OK;
}

static int weight_clear(const struct pe_tensor *weight, struct pe_error *err) {
    double *w = weight->data;
    size_t n = pe_tensor_count(weight);
    for (size_t i = 0, step; i < n && !pe_error_poll(err); i += step) {
        step = pe_stop_step(n, i);
        memset(w + i, 0, step * sizeof *w);
    }
    return err->code;
}

static int memory_open(struct pe_arena *arena, struct pe_head_work *op, struct pe_head_result *result,
                       struct pe_error *err) {
    const size_t weight[2] = {op->inner, op->width}, pairs[2] = {op->n, op->n};
    if (pe_tensor_alloc(arena, &result->w_q, PE_DTYPE_F64, 2, weight, err) ||
        pe_tensor_alloc(arena, &result->w_k, PE_DTYPE_F64, 2, weight, err) ||
        pe_tensor_alloc(arena, &result->weights, PE_DTYPE_F64, 2, pairs, err)) {
        return err->code;
    }
    op->w_q = result->w_q.data;
    op->w_k = result->w_k.data;
    if (weight_clear(&result->w_q, err) || weight_clear(&result->w_k, err)) {
        return err->code;
    }
    op->q = pe_arena_array(arena, op->n, op->width * sizeof *op->q, err);
    op->k = pe_arena_array(arena, op->n, op->width * sizeof *op->k, err);
    op->scores = result->weights.data;
    op->last = pe_arena_array(arena, 1, sizeof *op->last, err);
    return err->code;
}

/* Equal tokens without an encoding. */
static int none_open(struct pe_arena *arena, struct pe_head_work *op, struct pe_error *err) {
    const struct pe_cells cells = {.seed = 0, .std = 1};
    double *x = pe_arena_array(arena, op->n, TRY_WIDTH * sizeof *x, err);
    op->inner = op->width = TRY_WIDTH;
    for (size_t i = 0; x && i < op->n * TRY_WIDTH; i++) {
        x[i] = pe_cells_at(&cells, 0, i % TRY_WIDTH);
    }
    op->x = x;
    return err->code;
}

static int head_read(struct pe_arena *arena, struct pe_head_work *op, const struct pe_head_args *args,
                     struct pe_error *err) {
    double *positions = pe_arena_array(arena, args->positions->length, sizeof *positions, err);
    if (!positions || pe_positions_fill(args->positions, positions, err)) {
        return err->code;
    }
    *op = (struct pe_head_work){.plan = args->plan,
                                .row = pe_plan_row(args->plan),
                                .view = pe_plan_view(args->plan),
                                .n = args->positions->length,
                                .positions = positions,
                                .first = args->first,
                                .causal = args->causal,
                                .offset = args->offset,
                                .out = pe_arena_array(arena, 1, sizeof *op->out, err),
                                .stop = err->stop};
    if (op->row->info.family == PE_FAMILY_NONE) {
        return none_open(arena, op, err);
    }
    return width_read(op, args->width, err);
}

/* Returns their number. */
static size_t parts_cut(struct pe_head_work *op, bool none) {
    size_t rows = PART_ITEMS / (op->n * op->width);
    op->part_rows = none || rows > op->n ? op->n : rows > 0 ? rows : 1;
    size_t n_parts = (op->n - 1) / op->part_rows + 1;
    pe_last_open(op->last, n_parts);
    return n_parts;
}

int pe_head_admits(const struct pe_encoding_info *encoding, struct pe_error *err) {
    const struct pe_encoding *row = pe_encoding_row(encoding);
    if (row->shift || row->info.family == PE_FAMILY_NONE) {
        return err->code;
    }
    return pe_encoding_unsupported(
        row, "has no exact map from a position to the next, of which a head is built", err);
}

int pe_head_open(struct pe_arena *arena, struct pe_work *work, struct pe_head_result *result,
                 const struct pe_head_args *theirs, struct pe_error *err) {
    struct pe_head_args args;
    *work = (struct pe_work){0};
    *result = (struct pe_head_result){0};
    if (err->code || pe_args_copy(&args, sizeof args, theirs, theirs->size, err)) {
        return err->code;
    }
    if (!args.plan) {
        return pe_fail(err, PE_ERR_MISSING, "encoding", "is missing");
    }
    struct pe_head_work *op = pe_arena_array(arena, 1, sizeof *op, err);
    if (!op || pe_head_admits(pe_plan_encoding(args.plan), err) || args_check(&args, err) ||
        head_read(arena, op, &args, err) || memory_open(arena, op, result, err)) {
        return err->code;
    }
    bool none = op->row->info.family == PE_FAMILY_NONE;
    op->scale = pe_scale_usual(op->width);
    if (!none && (step_read(op, args.positions, err) || pe_head_weights_open(arena, op, err))) {
        *result = (struct pe_head_result){0};
        return err->code;
    }
    size_t n_parts = parts_cut(op, none);
    result->head = op->out;
    *work = (struct pe_work){
        .n_parts = n_parts,
        .cost_ns =
            (none ? PE_HEAD_TRIES : 1.0) * (double)op->n * (double)op->width * (double)(op->n + TRY_WIDTH),
        .state = op,
        .run = none ? pe_head_tries : pe_head_part,
        .stop = err->stop,
    };
    return PE_OK;
}
