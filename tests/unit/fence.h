/* SPDX-License-Identifier: MIT
 *
 * Memory that ends right before a page that may not be touched: whoever reads or writes one byte too many stops the
 * test.
 */
#ifndef FENCE_H
#define FENCE_H

#include <stddef.h>

struct fence {
    char *pages;
    size_t room; /* bytes before the page */
};

void fence_make(struct fence *fence, size_t bytes);
void fence_drop(struct fence *fence);
/* The last n bytes. */
char *fence_last(const struct fence *fence, size_t n);

#endif
