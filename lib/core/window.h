/* SPDX-License-Identifier: MIT
 *
 * A window of h x w patches, row by row, before which there may be one class token: the tokens that vision
 * models attend within.
 */
#ifndef PE_WINDOW_H
#define PE_WINDOW_H

#include "posenc_fields.h"

struct pe_window {
    size_t h, w, cls; /* cls: tokens before the patches, 0 or 1 */
    bool folded;      /* offsets to either side are one */
};

#define PE_WINDOW_MAX 1024 /* patches to a side */

/* From a field [h, w], whose row bounds its numbers by 1 and PE_WINDOW_MAX; PE_ERR_SHAPE there. */
int pe_window_read(struct pe_window *window, const struct pe_ints *sides, int64_t cls, const char *field,
                   struct pe_error *err);
size_t pe_window_tokens(const struct pe_window *window);
/* Are the positions tokens of the window? PE_ERR_RANGE at the first that is not. */
int pe_window_admit(const struct pe_window *window, const struct pe_positions *positions,
                    struct pe_error *err);
/* Offsets of two patches: (2h-1)(2w-1), folded h*w; and with a class token three rows more. */
size_t pe_window_rows(const struct pe_window *window);
/* The rows again where a request has at least so many pairs for each of its heads, so that it costs less to
 * make each row's number once; 0 where it has fewer, or where that takes much memory. */
size_t pe_window_worth(const struct pe_window *window, double pairs, size_t heads);
/* The row of a table by offsets for two tokens,
 *
 *     (y_q - y_k + h - 1)(2w - 1) + x_q - x_k + w - 1
 *     |y_q - y_k| w + |x_q - x_k|                            folded
 *
 * behind which come class to patch, patch to class, and class to class. */
size_t pe_window_row(const struct pe_window *window, size_t query, size_t key);

#endif
