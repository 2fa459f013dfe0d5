/* SPDX-License-Identifier: MIT
 *
 * A row of angles per position, in float64, so that a turned float32 is rounded once.
 */
#include "ops/turns.h"

#include "kernels/rotate.h"
#include "kernels/vector.h"
#include "ops/operand.h"

static int angles_make(const struct pe_turns *turns, const struct pe_plan *plan,
                       const struct pe_positions *positions, bool keys, struct pe_error *err) {
    size_t n = pe_positions_count(positions), pairs = turns->pairs.n;
    for (size_t i = 0; i < n && !pe_error_poll(err); i++) {
        double coordinates[PE_MAX_AXES];
        struct pe_spot spot = {.position = coordinates, .axes = positions->axes, .keys = keys};
        struct pe_angles out = {
            .n = pairs, .cos = turns->cos + i * pairs, .sin = turns->sin + i * pairs, .step = 1};
        pe_positions_read(positions, i, 1, coordinates);
        pe_plan_row(plan)->angles(pe_plan_view(plan), &spot, PE_DTYPE_F64, &out);
    }
    return err->code;
}

int pe_turns_make(struct pe_arena *arena, struct pe_turns *turns, const struct pe_plan *plan,
                  const struct pe_positions *positions, bool keys, struct pe_error *err) {
    size_t n = pe_positions_count(positions);
    *turns = (struct pe_turns){.pairs = pe_plan_row(plan)->pairs(pe_plan_view(plan)),
                               .batch = positions->batch ? positions->length : 0,
                               .instructions = pe_instructions()};
    turns->cos = pe_arena_array(arena, n, turns->pairs.n * sizeof *turns->cos, err);
    turns->sin = pe_arena_array(arena, n, turns->pairs.n * sizeof *turns->sin, err);
    if (!turns->cos || !turns->sin || angles_make(turns, plan, positions, keys, err)) {
        return err->code;
    }
    size_t items = n * turns->pairs.n;
    double cos = pe_largest_find(PE_DTYPE_F64, turns->cos, items, false, err);
    double sin = pe_largest_find(PE_DTYPE_F64, turns->sin, items, false, err);
    turns->largest = cos > sin ? cos : sin;
    return err->code;
}

void pe_turns_run(const struct pe_turns *turns, size_t b, size_t position, enum pe_dtype real, const void *x,
                  void *out) {
    size_t row = (b * turns->batch + position) * turns->pairs.n, size = pe_dtype_size(real);
    struct pe_turn_pairs pairs = {.cos = turns->cos + row,
                                  .sin = turns->sin + row,
                                  .n = turns->pairs.n,
                                  .step = turns->pairs.step,
                                  .apart = turns->pairs.apart,
                                  .instructions = turns->instructions};
    pe_rotate(real, (const char *)x + turns->pairs.first * size, real,
              (char *)out + turns->pairs.first * size, &pairs);
}
