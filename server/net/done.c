/* SPDX-License-Identifier: MIT
 *
 * A Treiber stack that is emptied by one exchange, so it has no ABA problem: nothing is ever popped singly.
 * No wake-up is lost: the taker first reads the eventfd and then takes the list. A push after the exchange
 * finds it empty and writes again; a push between the two is taken by the exchange, and its write, if any,
 * costs one turn of the loop for nothing.
 */
#include "done.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

bool done_open(struct done *done) {
    atomic_init(&done->newest, NULL);
    done->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return done->fd >= 0;
}

void done_close(struct done *done) {
    if (done->fd >= 0) {
        close(done->fd);
    }
    done->fd = -1;
}

void done_poke(const struct done *done) {
    const uint64_t one = 1;
    /* It can only fail when the counter is full: then fd is readable anyway. */
    ssize_t written = write(done->fd, &one, sizeof one);
    (void)written;
}

void done_push(struct done *done, struct done_item *item) {
    struct done_item *newest = atomic_load_explicit(&done->newest, memory_order_relaxed);
    do {
        item->next = newest;
    } while (!atomic_compare_exchange_weak_explicit(&done->newest, &newest, item, memory_order_release,
                                                    memory_order_relaxed));
    if (newest == NULL) {
        done_poke(done);
    }
}

bool done_is_empty(const struct done *done) {
    return atomic_load_explicit(&done->newest, memory_order_relaxed) == NULL;
}

struct done_item *done_take(struct done *done) {
    uint64_t count;
    ssize_t n = read(done->fd, &count, sizeof count);
    (void)n; /* EAGAIN: nothing was written, there may still be items */
    struct done_item *item = atomic_exchange_explicit(&done->newest, NULL, memory_order_acquire);
    struct done_item *oldest = NULL;
    while (item != NULL) {
        struct done_item *next = item->next;
        item->next = oldest;
        oldest = item;
        item = next;
    }
    return oldest;
}
