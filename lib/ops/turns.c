/* SPDX-License-Identifier: MIT
 *
 * A row of angles per position, in float64, so that a turned float32 is rounded once.
 */
#include "ops/turns.h"

#include "kernels/rotate.h"
#include "kernels/vector.h"
#include "ops/operand.h"

#include <string.h>

#define ROWS  16 /* positions at a time */
#define PIECE 64 /* and pairs, a multiple of PE_ANGLES_GROUP */

/* All pairs at some positions from `first` on. */
static void rows_make(const struct pe_turns *turns, const struct pe_plan *plan, const struct pe_spot *spots,
                      size_t first, size_t rows) {
    double cos[ROWS * PIECE], sin[ROWS * PIECE];
    const size_t pairs = turns->pairs.n;
    for (size_t done = 0, n; done < pairs; done += n) {
        n = pairs - done < PIECE ? pairs - done : PIECE;
        const struct pe_angles_rows out = {.first = done, .n = n, .stride = PIECE, .cos = cos, .sin = sin};
        pe_plan_row(plan)->angles_rows(pe_plan_view(plan), spots, rows, &out);
        for (size_t r = 0; r < rows; r++) {
            memcpy(turns->cos + (first + r) * pairs + done, cos + r * PIECE, n * sizeof *cos);
            memcpy(turns->sin + (first + r) * pairs + done, sin + r * PIECE, n * sizeof *sin);
        }
    }
}

static int angles_make(const struct pe_turns *turns, const struct pe_plan *plan,
                       const struct pe_positions *positions, bool keys, struct pe_error *err) {
    double coordinates[ROWS * PE_MAX_AXES];
    const struct pe_spot spots = {.position = coordinates, .axes = positions->axes, .keys = keys};
    size_t n = pe_positions_count(positions);
    for (size_t i = 0, rows; i < n && !pe_error_poll(err); i += rows) {
        rows = n - i < ROWS ? n - i : ROWS;
        pe_positions_read(positions, i, rows, coordinates);
        rows_make(turns, plan, &spots, i, rows);
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
