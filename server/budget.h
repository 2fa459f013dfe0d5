/* SPDX-License-Identifier: MIT
 *
 * The memory of all requests together. Each request has limits of its own, but many at once, or many whose
 * replies are read slowly, could still add up to more than there is. What would go beyond is refused, and its
 * request answered 503: it may come again.
 */
#ifndef BUDGET_H
#define BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct budget {
    size_t limit;
    atomic_size_t used;
};

/* Any thread. false: too much; nothing was taken. NULL has no limit. */
bool budget_take(struct budget *budget, size_t bytes);
void budget_give(struct budget *budget, size_t bytes);

/* Half of the memory that this process may use: the machine's, or less where a control group says so. `root`
 * stands before /proc and /sys: "" for this system, a folder for tests. */
size_t budget_default(const char *root);

#endif
