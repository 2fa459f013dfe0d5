/* SPDX-License-Identifier: MIT
 *
 * The angles at some positions, made once and used for the vectors of all heads.
 */
#ifndef PE_TURNS_H
#define PE_TURNS_H

#include "encodings/encoding.h"
#include "kernels/target.h"

/* cos and sin [positions, pairs], float64. */
struct pe_turns {
    struct pe_pairs pairs;
    double *cos, *sin;
    size_t batch;   /* from the first position of one sequence to that of the next; 0 = shared */
    double largest; /* of |cos| and |sin| */
    enum pe_instructions instructions;
};

/* `keys`: as keys turn. Positions were admitted. ARENA memory. */
int pe_turns_make(struct pe_arena *arena, struct pe_turns *turns, const struct pe_plan *plan,
                  const struct pe_positions *positions, bool keys, struct pe_error *err);
/* Turns x [width] of type real, the vector at `position` of sequence b, into out, which may be x. */
void pe_turns_run(const struct pe_turns *turns, size_t b, size_t position, enum pe_dtype real, const void *x,
                  void *out);

#endif
