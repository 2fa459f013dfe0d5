/* SPDX-License-Identifier: MIT
 *
 * apply for rotary encodings.
 */
#ifndef PE_OPS_ROTATE_H
#define PE_OPS_ROTATE_H

#include "posenc.h"

/* pe_apply_open for a plan that turns pairs; args are checked to have a plan and embeddings. */
int pe_rotate_open(struct pe_arena *arena, struct pe_work *work, struct pe_tensor *out,
                   const struct pe_apply_args *args, struct pe_error *err);

#endif
