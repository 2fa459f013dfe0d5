/* SPDX-License-Identifier: MIT
 *
 * The weights of a head in closed form, see head.c: column by column, from the maps of the encoding's pairs.
 */
#include "ops/head.h"

#include "kernels/vector.h"
#include "ops/operand.h"
#include "ops/vectors.h"

#include <math.h>

#define STEEP (3.14159265358979323846 / 3) /* of the sine, where it still rises */

static void weight_set(const struct pe_head_work *op, bool keys, size_t from, size_t to, double value) {
    struct pe_head_taps *taps = &(keys ? op->k_of : op->q_of)[to];
    (keys ? op->w_k : op->w_q)[from * op->width + to] = value;
    taps->from[taps->n++] = from;
}

/* Pair f of the head looks at pair f of the encoding, whose columns are c. */
static void pair_look_back(const struct pe_head_work *op, size_t f, double distance) {
    double m[4];
    size_t c[2];
    op->row->shift(op->view, distance, f, m, c);
    for (size_t a = 0; a < 2; a++) {
        for (size_t b = 0; b < 2; b++) {
            weight_set(op, false, c[b], 2 * f + a, m[2 * a + b]);
        }
        weight_set(op, true, c[a], 2 * f + a, 1);
    }
}

/* What the first token's vector is, from a column of the slowest pair that is nearly 1 everywhere. */
static void pair_look_first(const struct pe_head_work *op, size_t f, size_t constant) {
    double m[4];
    size_t c[2];
    op->row->shift(op->view, 0, f, m, c);
    for (size_t a = 0; a < 2; a++) {
        weight_set(op, false, constant, 2 * f + a, op->x[c[a]]);
        weight_set(op, true, c[a], 2 * f + a, 1);
    }
}

/* The column of the slowest pair that is the cosine: 1 at position 0. */
static size_t slowest_cosine(const struct pe_head_work *op, double *vector) {
    double m[4], zero = 0;
    size_t c[2];
    op->row->shift(op->view, 0, op->row->shift_pairs(op->view) - 1, m, c);
    op->row->encode(op->view, &zero, 1, PE_DTYPE_F64, vector);
    return vector[c[0]] > vector[c[1]] ? c[0] : c[1];
}

/* vector [D]: memory for one of the encoding. */
static void weights_of_added(const struct pe_head_work *op, double distance, double *vector) {
    size_t pairs = op->width / 2, constant = op->first ? slowest_cosine(op, vector) : 0;
    for (size_t f = 0; f < pairs && !pe_stop_asked(op->stop); f++) {
        if (op->first) {
            pair_look_first(op, f, constant);
        } else {
            pair_look_back(op, f, distance);
        }
    }
}

/* The fastest pair that turns less than STEEP over all positions; the number of pairs where there is none. */
static size_t steady_pair(const struct pe_head_work *op, const double *frequencies, size_t pairs) {
    double span = op->positions[op->n - 1] - op->positions[0];
    size_t f = 0;
    while (f < pairs && !(frequencies[f] * span <= STEEP)) {
        f++;
    }
    return f;
}

static void weights_of_turned(const struct pe_head_work *op, double distance, size_t steady) {
    size_t pairs = op->row->shift_pairs(op->view);
    double m[4];
    size_t c[2];
    for (size_t f = op->first ? steady : 0; f < pairs && !pe_stop_asked(op->stop); f++) {
        op->row->shift(op->view, op->first ? 1 : distance, f, m, c);
        weight_set(op, true, 0, c[0], 1);
        if (op->first) { /* a quarter of a turn, to the side where a step on is a larger score */
            weight_set(op, false, 0, c[1], m[1] > 0 ? 1 : -1);
            return;
        }
        weight_set(op, false, 0, c[0], m[0]);
        weight_set(op, false, 0, c[1], m[2]);
    }
}

static int added_open(struct pe_arena *arena, struct pe_head_work *op, const struct pe_positions *positions,
                      struct pe_error *err) {
    double *x, *vector = pe_arena_array(arena, op->inner, sizeof *vector, err);
    if (!vector || pe_vectors_make(arena, &x, op->plan, positions, err)) {
        return err->code;
    }
    op->x = x;
    weights_of_added(op, (double)op->offset * op->step, vector);
    return pe_error_poll(err);
}

static int turned_open(struct pe_arena *arena, struct pe_head_work *op, const struct pe_positions *positions,
                       struct pe_error *err) {
    size_t pairs = op->row->shift_pairs(op->view), steady;
    struct pe_turns *turns = pe_arena_array(arena, 2, sizeof *turns, err);
    double *frequencies = pe_arena_array(arena, pairs, sizeof *frequencies, err);
    if (!turns || !frequencies || pe_positions_admit(op->plan, positions, PE_DTYPE_F64, "positions", err) ||
        pe_turns_make(arena, &turns[0], op->plan, positions, false, err) ||
        pe_turns_make(arena, &turns[1], op->plan, positions, true, err)) {
        return err->code;
    }
    op->turns = turns;
    op->row->frequencies(op->view, PE_DTYPE_F64, frequencies);
    steady = steady_pair(op, frequencies, pairs);
    if (op->first && steady == pairs) {
        return pe_fail(err, PE_ERR_UNSUPPORTED, "positions",
                       "go so far that even the slowest pair turns past the first token");
    }
    weights_of_turned(op, (double)op->offset * op->step, steady);
    return pe_error_poll(err);
}

int pe_head_weights_open(struct pe_arena *arena, struct pe_head_work *op, struct pe_error *err) {
    const struct pe_positions positions = {.length = op->n, .axes = 1, .list = op->positions};
    op->q_of = pe_arena_array(arena, op->width, sizeof *op->q_of, err);
    op->k_of = pe_arena_array(arena, op->width, sizeof *op->k_of, err);
    if (!op->q_of || !op->k_of || (op->row->angles ? turned_open : added_open)(arena, op, &positions, err)) {
        return err->code;
    }
    pe_head_project(op);
    return pe_error_poll(err);
}
