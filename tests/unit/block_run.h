/* SPDX-License-Identifier: MIT
 *
 * Blocks that are opened and run, with weights from a seed unless some are given.
 */
#ifndef BLOCK_RUN_H
#define BLOCK_RUN_H

#include "posenc.h"
#include "posenc_fields.h"

enum { BLOCK_B = 3, BLOCK_T = 7, BLOCK_D = 12, BLOCK_HEADS = 3 };

extern struct pe_arena *block_arena;
extern struct pe_error block_err;
extern const uint64_t block_seed;

void block_setup(void);
void block_teardown(void);
/* [b, T, D], or for b = 0 [T, D], of multiples of 1/256. */
struct pe_tensor block_numbers(enum pe_dtype dtype, size_t b);
double block_at(const struct pe_tensor *tensor, size_t i);
/* The largest difference of n numbers from a[i] and b[k] on. */
double block_apart(const struct pe_tensor *a, size_t i, const struct pe_tensor *b, size_t k, size_t n);
struct pe_block_result block_run(struct pe_block_args args);
void block_refused(struct pe_block_args args, int code, const char *path, const char *text);
/* With one parameter, or none. */
struct pe_plan *block_plan(const char *type, const char *name, const char *value);

#endif
