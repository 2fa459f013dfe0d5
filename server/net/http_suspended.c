/* SPDX-License-Identifier: MIT
 *
 * A list in the requests. The earliest deadline is only ever too early: then the loop wakes up once for
 * nothing, and suspended_for_each finds the right one.
 */
#include "http_suspended.h"

#include "request.h"

#include <microhttpd.h>
#include <sys/epoll.h>

#define NEVER INT64_MAX

/* Where the system does not watch the socket (no memory, max_user_watches), a client that leaves is met when
 * its reply is sent, and its deadline holds as always: that is no reason to refuse it. */
static void watch(const struct suspended *suspended, struct request *request) {
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = request};
    epoll_ctl(suspended->epoll, EPOLL_CTL_ADD, request->conn->fd, &event);
}

void suspended_add(struct suspended *suspended, struct request *request) {
    if (request->suspended) {
        return;
    }
    watch(suspended, request);
    request->suspended = true;
    request->previous = NULL;
    request->next = suspended->first;
    if (request->next != NULL) {
        request->next->previous = request;
    }
    suspended->first = request;
    if (request->deadline_ns < suspended->next_deadline) {
        suspended->next_deadline = request->deadline_ns;
    }
    MHD_suspend_connection(request->connection);
}

static void resume(struct suspended *suspended, struct request *request) {
    if (!request->suspended) {
        return;
    }
    epoll_ctl(suspended->epoll, EPOLL_CTL_DEL, request->conn->fd, NULL);
    request->suspended = false;
    if (request->previous != NULL) {
        request->previous->next = request->next;
    } else {
        suspended->first = request->next;
    }
    if (request->next != NULL) {
        request->next->previous = request->previous;
    }
    MHD_resume_connection(request->connection);
}

void suspended_settle(struct suspended *suspended, struct request *request) {
    if (!request_waits(request)) {
        resume(suspended, request);
    } else if (request->deadline_ns < suspended->next_deadline) {
        suspended->next_deadline = request->deadline_ns;
    }
}

void suspended_for_each(struct suspended *suspended, int64_t by, void (*event)(struct request *)) {
    struct request *next;
    suspended->next_deadline = NEVER;
    for (struct request *request = suspended->first; request != NULL; request = next) {
        next = request->next;
        if (request->deadline_ns <= by) {
            event(request);
        }
        suspended_settle(suspended, request);
    }
}
