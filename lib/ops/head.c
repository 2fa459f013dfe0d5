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
#include "kernels/softmax.h"
#include "kernels/vector.h"
#include "ops/operand.h"
#include "ops/turns.h"
#include "ops/vectors.h"

#include <math.h>
#include <string.h>

#define REST      0.01                         /* of the weight, for all other tokens together */
#define GAIN_MOST 1e6                          /* beyond it the gap is rounding */
#define TRIES     100                          /* random heads without an encoding */
#define TRY_WIDTH 16                           /* of its tokens and heads */
#define STEEP     (3.14159265358979323846 / 3) /* of the sine, where it still rises */

struct head {
    const struct pe_plan *plan;
    const struct pe_encoding *row;
    const struct pe_plan_view *view;
    size_t n, width, inner;       /* tokens; of queries and keys; of what is projected */
    const double *positions;      /* [n] */
    const double *x;              /* [n, inner], or NULL: a constant 1 */
    const struct pe_turns *turns; /* of queries and of keys, or NULL */
    double *w_q, *w_k;            /* [inner, width] */
    double *q, *k, *scores;       /* [n, width], [n, n] */
    double *vector;               /* one, of the encoding */
    bool first, causal;
    int64_t offset; /* key - query, in tokens */
    double scale;
    struct pe_head *out;
    const struct pe_stop *stop;
};

/* ---- Weights ------------------------------------------------------------------------------------------- */

static void weight_set(const struct head *op, double *w, size_t from, size_t to, double value) {
    w[from * op->width + to] = value;
}

/* Pair f of the head looks at pair f of the encoding, whose columns are c. */
static void pair_look_back(const struct head *op, size_t f, double distance) {
    double m[4];
    size_t c[2];
    op->row->shift(op->view, distance, f, m, c);
    for (size_t a = 0; a < 2; a++) {
        for (size_t b = 0; b < 2; b++) {
            weight_set(op, op->w_q, c[b], 2 * f + a, m[2 * a + b]);
        }
        weight_set(op, op->w_k, c[a], 2 * f + a, 1);
    }
}

/* What the first token's vector is, from a column of the slowest pair that is nearly 1 everywhere. */
static void pair_look_first(const struct head *op, size_t f, size_t constant) {
    double m[4];
    size_t c[2];
    op->row->shift(op->view, 0, f, m, c);
    for (size_t a = 0; a < 2; a++) {
        weight_set(op, op->w_q, constant, 2 * f + a, op->x[c[a]]);
        weight_set(op, op->w_k, c[a], 2 * f + a, 1);
    }
}

/* The column of the slowest pair that is the cosine: 1 at position 0. */
static size_t slowest_cosine(const struct head *op) {
    double m[4], zero = 0;
    size_t c[2];
    op->row->shift(op->view, 0, op->row->shift_pairs(op->view) - 1, m, c);
    op->row->encode(op->view, &zero, 1, PE_DTYPE_F64, op->vector);
    return op->vector[c[0]] > op->vector[c[1]] ? c[0] : c[1];
}

static void weights_of_added(const struct head *op, double distance) {
    size_t pairs = op->width / 2, constant = op->first ? slowest_cosine(op) : 0;
    for (size_t f = 0; f < pairs && !pe_stop_asked(op->stop); f++) {
        if (op->first) {
            pair_look_first(op, f, constant);
        } else {
            pair_look_back(op, f, distance);
        }
    }
}

/* The fastest pair that turns less than STEEP over all positions; the number of pairs where there is none. */
static size_t steady_pair(const struct head *op, const double *frequencies, size_t pairs) {
    double span = op->positions[op->n - 1] - op->positions[0];
    size_t f = 0;
    while (f < pairs && !(frequencies[f] * span <= STEEP)) {
        f++;
    }
    return f;
}

static void weights_of_turned(const struct head *op, double distance, size_t steady) {
    size_t pairs = op->row->shift_pairs(op->view);
    double m[4];
    size_t c[2];
    for (size_t f = op->first ? steady : 0; f < pairs && !pe_stop_asked(op->stop); f++) {
        op->row->shift(op->view, op->first ? 1 : distance, f, m, c);
        op->w_k[c[0]] = 1;
        if (op->first) { /* a quarter of a turn, to the side where a step on is a larger score */
            op->w_q[c[1]] = m[1] > 0 ? 1 : -1;
            return;
        }
        op->w_q[c[0]] = m[0];
        op->w_q[c[1]] = m[2];
    }
}

/* ---- Scores -------------------------------------------------------------------------------------------- */

/* out [n, width] = x.w, or w itself for a constant 1. */
static void project(const struct head *op, const double *w, double *out) {
    memset(out, 0, op->n * op->width * sizeof *out);
    for (size_t i = 0; i < op->n && !pe_stop_asked(op->stop); i++) {
        for (size_t r = 0; r < op->inner; r++) {
            double factor = op->x ? op->x[i * op->inner + r] : 1;
            for (size_t c = 0; c < op->width && factor != 0; c++) {
                out[i * op->width + c] += factor * w[r * op->width + c];
            }
        }
    }
}

static void scores_make(const struct head *op) {
    project(op, op->w_q, op->q);
    project(op, op->w_k, op->k);
    for (size_t i = 0; op->turns && i < op->n; i++) {
        double *q = op->q + i * op->width, *k = op->k + i * op->width;
        pe_turns_run(&op->turns[0], 0, i, PE_DTYPE_F64, q, q);
        pe_turns_run(&op->turns[1], 0, i, PE_DTYPE_F64, k, k);
    }
    for (size_t i = 0; i < op->n && !pe_stop_asked(op->stop); i++) {
        for (size_t j = 0; j < op->n; j++) {
            double product = pe_vector_dot(op->q + i * op->width, op->k + j * op->width, op->width);
            op->scores[i * op->n + j] = op->scale * product;
        }
    }
}

/* The token that query i should look at, if it is there. */
static bool target_of(const struct head *op, size_t i, size_t *target) {
    int64_t j = op->first ? 0 : (int64_t)i + op->offset;
    *target = (size_t)j;
    return j >= 0 && j < (int64_t)op->n && (!op->causal || j <= (int64_t)i);
}

static size_t visible_of(const struct head *op, size_t i) {
    return op->causal ? i + 1 : op->n;
}

/* The smallest advantage of a wanted token over another. */
static double smallest_gap(const struct head *op) {
    double gap = INFINITY;
    for (size_t i = 0; i < op->n; i++) {
        size_t target, n = visible_of(op, i);
        const double *row = op->scores + i * op->n;
        bool there = target_of(op, i, &target);
        for (size_t j = 0; there && j < n; j++) {
            gap = j == target ? gap : fmin(gap, row[target] - row[j]);
        }
    }
    return gap;
}

static void weights_read(const struct head *op) {
    struct pe_head *out = op->out;
    double sum = 0;
    size_t rows = 0;
    out->mass_least = 1;
    for (size_t i = 0; i < op->n; i++) {
        size_t target;
        const struct pe_softmax softmax = {.dtype = PE_DTYPE_F64, .n = op->n, .end = visible_of(op, i)};
        pe_softmax_run(&softmax, op->scores + i * op->n);
        if (target_of(op, i, &target)) {
            double mass = op->scores[i * op->n + target];
            out->mass_least = fmin(out->mass_least, mass);
            sum += mass;
            rows++;
        }
    }
    out->rows = rows;
    out->mass_mean = rows ? sum / (double)rows : 0;
    out->mass_least = rows ? out->mass_least : 0;
}

static void head_part(const void *state, size_t part) {
    const struct head *op = state;
    (void)part;
    scores_make(op);
    double gap = smallest_gap(op), gain = 1;
    if (isfinite(gap) && gap > 0) {
        gain = log((double)op->n / REST) / gap;
    }
    op->out->possible = gap > 0 && gain <= GAIN_MOST;
    op->out->gain = gain = op->out->possible ? gain : 1;
    for (size_t i = 0; i < op->inner * op->width; i++) {
        op->w_q[i] *= gain;
    }
    for (size_t i = 0; i < op->n * op->n; i++) {
        op->scores[i] *= gain;
    }
    weights_read(op);
}

/* Random heads on equal tokens; the weights of the best one stay. */
static void tries_part(const void *state, size_t part) {
    const struct head *op = state;
    struct pe_head best = {0};
    (void)part;
    for (uint32_t try = 0; try < TRIES && !pe_stop_asked(op->stop); try++) {
        const struct pe_cells q = {.seed = 1, .std = 1, .number = 2 * try};
        const struct pe_cells k = {.seed = 1, .std = 1, .number = 2 * try + 1};
        for (size_t i = 0; i < op->inner; i++) {
            for (size_t c = 0; c < op->width; c++) {
                weight_set(op, op->w_q, i, c, pe_cells_at(&q, i, c));
                weight_set(op, op->w_k, i, c, pe_cells_at(&k, i, c));
            }
        }
        scores_make(op);
        weights_read(op);
        best = op->out->mass_mean > best.mass_mean ? *op->out : best;
    }
    best.gain = 1;
    best.tries = TRIES;
    *op->out = best;
}

/* ---- Opening ------------------------------------------------------------------------------------------- */

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

/* The step from token to token, which the maps are made for. */
static int step_read(const struct head *op, double *step, struct pe_error *err) {
    *step = op->positions[1] - op->positions[0];
    for (size_t i = 2; i < op->n; i++) {
        if (op->positions[i] - op->positions[i - 1] != *step) {
            return pe_fail(err, PE_ERR_RANGE, "positions", "are not evenly spaced, as one map for all needs");
        }
    }
    if (!(*step > 0)) {
        return pe_fail(err, PE_ERR_RANGE, "positions", "go in steps of %g, allowed are steps above 0", *step);
    }
    return PE_OK;
}

static int width_read(struct head *op, size_t asked, struct pe_error *err) {
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
    if (op->width % 2 || op->width < 2 || op->width > most) {
        return pe_fail(err, PE_ERR_RANGE, "width",
                       "is %zu, allowed are even numbers up to %zu: the pairs of the "
                       "encoding",
                       op->width, most);
    }
    return PE_OK;
}

static int memory_open(struct pe_arena *arena, struct head *op, struct pe_head_result *result,
                       struct pe_error *err) {
    const size_t weight[2] = {op->inner, op->width}, pairs[2] = {op->n, op->n};
    size_t vector = pe_plan_width(op->plan) > op->n * op->n ? pe_plan_width(op->plan) : op->n * op->n;
    if (pe_tensor_alloc(arena, &result->w_q, PE_DTYPE_F64, 2, weight, err) ||
        pe_tensor_alloc(arena, &result->w_k, PE_DTYPE_F64, 2, weight, err) ||
        pe_tensor_alloc(arena, &result->weights, PE_DTYPE_F64, 2, pairs, err)) {
        return err->code;
    }
    op->w_q = result->w_q.data;
    op->w_k = result->w_k.data;
    memset(op->w_q, 0, pe_tensor_bytes(&result->w_q));
    memset(op->w_k, 0, pe_tensor_bytes(&result->w_k));
    op->q = pe_arena_array(arena, op->n, op->width * sizeof *op->q, err);
    op->k = pe_arena_array(arena, op->n, op->width * sizeof *op->k, err);
    op->scores = result->weights.data;
    op->vector = pe_arena_array(arena, vector, sizeof *op->vector, err);
    return err->code;
}

/* Equal tokens without an encoding. */
static int none_open(struct pe_arena *arena, struct head *op, struct pe_error *err) {
    const struct pe_cells cells = {.seed = 0, .std = 1};
    double *x = pe_arena_array(arena, op->n, TRY_WIDTH * sizeof *x, err);
    op->inner = op->width = TRY_WIDTH;
    for (size_t i = 0; x && i < op->n * TRY_WIDTH; i++) {
        x[i] = pe_cells_at(&cells, 0, i % TRY_WIDTH);
    }
    op->x = x;
    return err->code;
}

static int weights_open(struct pe_arena *arena, struct head *op, struct pe_error *err) {
    double step, *x;
    size_t pairs = op->row->shift_pairs(op->view), steady = 0;
    if (step_read(op, &step, err)) {
        return err->code;
    }
    const struct pe_positions positions = {.length = op->n, .axes = 1, .list = op->positions};
    double distance = (double)op->offset * step;
    if (!op->row->angles) {
        if (pe_vectors_make(arena, &x, op->plan, &positions, err)) {
            return err->code;
        }
        op->x = x;
        weights_of_added(op, distance);
        return err->code;
    }
    struct pe_turns *turns = pe_arena_array(arena, 2, sizeof *turns, err);
    double *frequencies = pe_arena_array(arena, pairs, sizeof *frequencies, err);
    if (!turns || !frequencies || pe_positions_admit(op->plan, &positions, PE_DTYPE_F64, "positions", err) ||
        pe_turns_make(arena, &turns[0], op->plan, &positions, false, err) ||
        pe_turns_make(arena, &turns[1], op->plan, &positions, true, err)) {
        return err->code;
    }
    op->turns = turns;
    op->row->frequencies(op->view, PE_DTYPE_F64, frequencies);
    steady = steady_pair(op, frequencies, pairs);
    if (op->first && steady == pairs) {
        return pe_fail(err, PE_ERR_UNSUPPORTED, "positions",
                       "go so far that even the slowest pair turns past the first token");
    }
    weights_of_turned(op, distance, steady);
    return err->code;
}

static int head_read(struct pe_arena *arena, struct head *op, const struct pe_head_args *args,
                     struct pe_error *err) {
    double *positions = pe_arena_array(arena, args->positions->length, sizeof *positions, err);
    if (!positions || pe_positions_fill(args->positions, positions, err)) {
        return err->code;
    }
    *op = (struct head){.plan = args->plan,
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
    if (!op->row->shift) {
        return pe_encoding_unsupported(op->row, "has no map from a position to the next to build a head of",
                                       err);
    }
    return width_read(op, args->width, err);
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
    struct head *op = pe_arena_array(arena, 1, sizeof *op, err);
    if (!op || args_check(&args, err) || head_read(arena, op, &args, err) ||
        memory_open(arena, op, result, err)) {
        return err->code;
    }
    bool none = op->row->info.family == PE_FAMILY_NONE;
    op->scale = pe_scale_usual(op->width);
    if (!none && weights_open(arena, op, err)) {
        *result = (struct pe_head_result){0};
        return err->code;
    }
    result->head = op->out;
    *work = (struct pe_work){
        .n_parts = 1,
        .cost_ns = (none ? TRIES : 1.0) * (double)op->n * (double)op->width * (double)(op->inner + op->n),
        .state = op,
        .run = none ? tries_part : head_part,
        .stop = err->stop,
    };
    return PE_OK;
}
