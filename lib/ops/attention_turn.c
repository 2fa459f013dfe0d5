/* SPDX-License-Identifier: MIT
 *
 * A rotary encoding in attention: queries and keys are turned by the angles of their positions before they
 * are multiplied (Su et al. 2021), values are not. The angles are made here, once for all heads; the parts
 * turn.
 */
#include "ops/attention_input.h"

static int side_turns(struct pe_reader *r, struct pe_turns **out, const struct pe_sides *sides, bool keys,
                      struct pe_error *err) {
    struct pe_turns *turns = pe_arena_array(r->arena, 1, sizeof *turns, err);
    if (!turns) {
        return err->code;
    }
    *out = turns;
    return pe_turns_make(r->arena, turns, r->args->plan, &sides->positions[keys], keys, err)
               ? pe_error_at(err, sides->field[keys])
               : PE_OK;
}

/* The stream becomes one that is filled during the run. */
static int stream_turn(struct pe_reader *r, enum pe_stream_name name, const struct pe_turns *turns,
                       struct pe_error *err) {
    r->largest[name] *= 2 * turns->largest; /* |a cos x - b sin x| */
    r->a->stream[name].turns = turns;
    return pe_reader_own(r, name, err);
}

int pe_reader_turn(struct pe_reader *r, struct pe_error *err) {
    const struct pe_attention_args *args = r->args;
    const struct pe_attention *a = r->a;
    struct pe_turns *turns[2];
    if (pe_plan_width(args->plan) != a->width) {
        return pe_fail(err, PE_ERR_SHAPE, args->q ? "q" : "w_q",
                       "has heads of width %zu, but the encoding has head_dim %zu", a->width,
                       pe_plan_width(args->plan));
    }
    struct pe_sides sides;
    if (pe_reader_sides(r, &sides, err) || side_turns(r, &turns[0], &sides, false, err) ||
        side_turns(r, &turns[1], &sides, true, err)) {
        return err->code;
    }
    return stream_turn(r, PE_STREAM_Q, turns[0], err) || stream_turn(r, PE_STREAM_K, turns[1], err)
               ? err->code
               : PE_OK;
}
