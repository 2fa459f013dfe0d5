/* SPDX-License-Identifier: MIT
 *
 * The socket's buffer is empty before a request is answered, so one send takes all of it. Should it not, the
 * client has lost an explanation and the connection is closed all the same.
 */
#include "answer.h"

#include "call.h"
#include "wire/problem.h"

#include <stdio.h>
#include <sys/socket.h>

#define ANSWER_HEAD 4096

static size_t put_head(const struct call_reply *reply, char *text, size_t size) {
    size_t n =
        (size_t)snprintf(text, size, "HTTP/1.1 %d Error\r\nConnection: close\r\nContent-Length: %lld\r\n",
                         reply->status, (long long)reply->length);
    for (size_t i = 0; i < reply->n_headers && n < size; i++) {
        n += (size_t)snprintf(text + n, size - n, "%s: %s\r\n", reply->headers[i].name,
                              reply->headers[i].value);
    }
    n += n < size ? (size_t)snprintf(text + n, size - n, "\r\n") : 0;
    return n < size ? n : 0;
}

size_t answer_now(int fd, struct call *call, bool is_head) {
    char bytes[ANSWER_HEAD + PROBLEM_ROOM];
    const struct call_reply *reply = call_reply(call);
    size_t head = put_head(reply, bytes, ANSWER_HEAD);
    ssize_t sent = 0;
    if (head > 0 && reply->length >= 0 && reply->length <= PROBLEM_ROOM) {
        size_t n = is_head ? 0 : call_pull(call, bytes + head, PROBLEM_ROOM);
        sent = send(fd, bytes, head + n, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    shutdown(fd, SHUT_WR);
    return sent > (ssize_t)head ? (size_t)sent - head : 0;
}
