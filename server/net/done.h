/* SPDX-License-Identifier: MIT
 *
 * What the workers have finished, on its way back to the loop thread: a list that many threads push to and
 * one takes from, and an eventfd the loop can wait on. Only the push that finds the list empty writes to the
 * eventfd, so a burst of completions costs one wake-up.
 */
#ifndef DONE_H
#define DONE_H

#include <stdatomic.h>
#include <stdbool.h>

struct done_item {
    struct done_item *next;
};

struct done {
    _Atomic(struct done_item *) newest;
    int fd; /* readable when there may be something to take, or after done_poke */
};

bool done_open(struct done *done); /* false: no more file descriptors */
void done_close(struct done *done);
/* Any thread. Afterwards the item belongs to the thread that takes. */
void done_push(struct done *done, struct done_item *item);
/* Any thread: makes fd readable without an item. */
void done_poke(const struct done *done);
/* A look, which costs no system call: what is pushed next makes fd readable anyway. */
bool done_is_empty(const struct done *done);
/* All items, oldest first, linked by next; NULL = none. One thread only. */
struct done_item *done_take(struct done *done);

#endif
