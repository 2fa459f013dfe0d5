/* SPDX-License-Identifier: MIT
 *
 * Memory between two pages that may not be touched: whoever reads or writes one byte too many stops the test.
 */
#ifndef FENCE_H
#define FENCE_H

#include <stdbool.h>
#include <stddef.h>

struct fence {
    char *pages;
    size_t room; /* bytes between the two */
};

void fence_make(struct fence *fence, size_t bytes);
void fence_drop(struct fence *fence);
/* The last n bytes. */
char *fence_last(const struct fence *fence, size_t n);
/* The last n, or the first ones. */
void *fence_side(const struct fence *fence, size_t n, bool last);

#endif
