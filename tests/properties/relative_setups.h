/* SPDX-License-Identifier: MIT
 *
 * Relative encodings as the property tests try them: each type of the registry that adds to the logits, with
 * its defaults, every choice, every switch, from a seed and with each of its tables. None is named: what has
 * to be given is what the encoding itself says is missing, and shapes are tried until it takes one.
 */
#ifndef RELATIVE_SETUPS_H
#define RELATIVE_SETUPS_H

#include "encodings/encoding.h"

/* What all of them serve: positions 0..T-1, H heads of width W. */
enum { RELATIVE_T = 12, RELATIVE_H = 6, RELATIVE_W = 6 };

/* One setting, as a text, or (NULL) as a tensor of that shape. */
struct relative_step {
    const char *name, *text;
    size_t shape; /* of the list of those that are tried */
};
struct relative_setup {
    const struct pe_encoding_info *info;
    size_t n;
    struct relative_step step[12];
};

/* Makes them, once; returns their number. */
int relative_setups_make(void);
const struct relative_setup *relative_setup_at(int i);
/* "swin window=4,3 table=[35, 6]" */
const char *relative_setup_text(const struct relative_setup *setup, char *text, size_t size);
/* Its plan; tensors have the same numbers each time. ARENA memory but for the plan. */
int relative_setup_open(struct pe_arena *arena, const struct relative_setup *setup, struct pe_plan **plan,
                        struct pe_error *err);

#endif
