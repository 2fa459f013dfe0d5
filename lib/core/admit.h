/* SPDX-License-Identifier: MIT
 *
 * Looking for the first position that an encoding cannot take, and saying which it is.
 */
#ifndef PE_ADMIT_H
#define PE_ADMIT_H

#include "posenc.h"

/* What an encoding asks of every coordinate of every position: min <= p <= max, and perhaps no fraction. */
struct pe_admit {
    bool whole;
    double min, max;
};

struct pe_stray {
    size_t index; /* in the flattened [B*T*axes] */
    double position;
    bool fraction; /* it is not a whole number; else it is outside the bounds */
};

/* True when some position strays from the rule; *stray is the first. A progression is judged by its ends,
 * however long it is. When `stop` asks for it, the search ends and none strays. */
bool pe_positions_stray(const struct pe_positions *positions, const struct pe_admit *rule,
                        const struct pe_stop *stop, struct pe_stray *stray);
/* PE_ERR_RANGE at the first position that is not a whole number, with the reason. */
int pe_positions_whole(const struct pe_positions *positions, const char *why, struct pe_error *err);
/* "[3]" or "[1][3]", and another where positions have several coordinates: the path of one, relative to the
 * positions, into text; returns text. */
char *pe_positions_index_text(const struct pe_positions *positions, size_t index, char *text, size_t size);
/* PE_ERR_RANGE at a coordinate whose vector holds `value`, of magnitude `limit` or more. */
int pe_positions_overflow(const struct pe_positions *positions, size_t index, double value,
                          enum pe_dtype dtype, double limit, struct pe_error *err);

#endif
