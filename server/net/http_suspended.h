/* SPDX-License-Identifier: MIT
 *
 * The suspended connections of one listener: nothing can be read from or sent to them now. The library does
 * not watch them: that their clients left is seen by the loop's epoll descriptor (EPOLLRDHUP, with the
 * request as its data), and their deadlines are kept here. For the loop thread alone.
 */
#ifndef HTTP_SUSPENDED_H
#define HTTP_SUSPENDED_H

#include <stdint.h>

struct request;

struct suspended {
    int epoll; /* the loop's */
    struct request *first;
    int64_t next_deadline; /* none of theirs is earlier; INT64_MAX = none has any */
};

/* Suspends the request's connection, unless it is. */
void suspended_add(struct suspended *suspended, struct request *request);
/* After an event: may its connection go on? */
void suspended_settle(struct suspended *suspended, struct request *request);
/* Calls `event` on all whose deadline is `by` or earlier, and settles each. */
void suspended_for_each(struct suspended *suspended, int64_t by, void (*event)(struct request *));

#endif
