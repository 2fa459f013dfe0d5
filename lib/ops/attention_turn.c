/* SPDX-License-Identifier: MIT
 *
 * A rotary encoding in attention: queries and keys are turned by the angles of their positions before they
 * are multiplied (Su et al. 2021), values are not. The angles are made here, once for all heads; the parts
 * turn.
 */
#include "ops/attention_input.h"

/* Queries are aligned to the right, as the last of the keys: cached decoding has Tq = 1. */
static struct pe_positions default_positions(size_t length, double start) {
    return (struct pe_positions){.length = length, .axes = 1, .start = start, .step = 1};
}

/* Positions of queries and keys, and which fields they are from. */
struct sides {
    struct pe_positions positions[2];
    const char *field[2];
    bool given[2];
};

static struct sides sides_of(const struct pe_reader *r) {
    const struct pe_attention *a = r->a;
    const struct pe_positions *of_q = r->positions[0], *of_k = r->positions[1];
    struct sides sides = {.field = {"query_positions", "key_positions"}};
    if (r->args->embeddings && !of_q && of_k) { /* queries are keys: what is given for one holds for both */
        of_q = of_k;
        sides.field[0] = "key_positions";
    } else if (r->args->embeddings && of_q && !of_k) {
        of_k = of_q;
        sides.field[1] = "query_positions";
    }
    sides.given[0] = of_q != NULL;
    sides.given[1] = of_k != NULL;
    sides.positions[0] = of_q ? *of_q : default_positions(a->queries, (double)a->keys - (double)a->queries);
    sides.positions[1] = of_k ? *of_k : default_positions(a->keys, 0);
    return sides;
}

static int side_turns(struct pe_reader *r, struct pe_turns **out, const struct sides *sides, bool keys,
                      struct pe_error *err) {
    const struct pe_plan *plan = r->args->plan;
    const struct pe_positions *positions = &sides->positions[keys];
    const char *field = sides->field[keys];
    struct pe_turns *turns = pe_arena_array(r->arena, 1, sizeof *turns, err);
    if (!turns || (sides->given[keys] ? pe_positions_admit : pe_positions_admit_default)(
                      plan, positions, PE_DTYPE_F64, field, err)) {
        return err->code;
    }
    *out = turns;
    return pe_turns_make(r->arena, turns, plan, positions, keys, err) ? pe_error_at(err, field) : PE_OK;
}

/* The stream becomes one that is filled during the run. */
static int stream_turn(struct pe_reader *r, enum pe_stream_name name, const struct pe_turns *turns,
                       struct pe_error *err) {
    struct pe_attention *a = r->a;
    struct pe_stream *s = &a->stream[name];
    r->largest[name] *= 2 * turns->largest; /* |a cos x - b sin x| */
    s->turns = turns;
    a->projects = true;
    if (s->w) {
        return PE_OK;
    }
    struct pe_tensor turned;
    if (pe_tensor_alloc(r->arena, &turned, a->real, 4, (size_t[4]){a->batch, s->heads, s->rows, s->width},
                        err)) {
        return pe_error_at(err, r->args->q ? (name == PE_STREAM_Q ? "q" : "k") : "embeddings");
    }
    s->source = s->data;
    s->source_batch = s->batch;
    s->source_head = s->head;
    s->source_ld = s->ld;
    s->data = s->projected = turned.data;
    s->ld = s->width;
    s->head = s->rows * s->width;
    s->batch = s->heads * s->head;
    return PE_OK;
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
    struct sides sides = sides_of(r);
    if (side_turns(r, &turns[0], &sides, false, err) || side_turns(r, &turns[1], &sides, true, err)) {
        return err->code;
    }
    return stream_turn(r, PE_STREAM_Q, turns[0], err) || stream_turn(r, PE_STREAM_K, turns[1], err)
               ? err->code
               : PE_OK;
}
