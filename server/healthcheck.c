/* SPDX-License-Identifier: MIT
 *
 * The health check of a container: one HTTP/1.0 request over a socket of our own, so that the image needs
 * neither a shell nor curl. Connecting, sending and reading share one limit of time; a daemon that accepts
 * and then stays silent is as dead as one that is gone.
 */
#include "healthcheck.h"

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_MS 2000

static const char request[] = "GET /healthz HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n";

static int64_t now_ms(void) {
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits until fd can be read or written; false at the end of the time. */
static bool wait_for(int fd, short events, int64_t end_ms) {
    struct pollfd poll_fd = {.fd = fd, .events = events};
    for (;;) {
        int64_t left = end_ms - now_ms();
        if (left <= 0) {
            return false;
        }
        int n = poll(&poll_fd, 1, (int)left);
        if (n > 0 || (n < 0 && errno != EINTR)) {
            return n > 0;
        }
    }
}

/* A connected, non-blocking socket, or -1. */
static int connect_to(const struct addrinfo *address, int64_t end_ms) {
    int fd = socket(address->ai_family, address->ai_socktype, address->ai_protocol);
    if (fd < 0) {
        return -1;
    }
    int problem = fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? errno : 0;
    if (problem == 0 && connect(fd, address->ai_addr, address->ai_addrlen) != 0) {
        socklen_t length = sizeof problem;
        problem = errno;
        if (problem == EINPROGRESS && wait_for(fd, POLLOUT, end_ms)) {
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &length);
        }
    }
    if (problem != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool send_request(int fd, int64_t end_ms) {
    for (size_t sent = 0; sent < sizeof request - 1;) {
        ssize_t n = wait_for(fd, POLLOUT, end_ms)
                        ? send(fd, request + sent, sizeof request - 1 - sent, MSG_NOSIGNAL)
                        : -1;
        if (n <= 0) {
            return false;
        }
        sent += (size_t)n;
    }
    return true;
}

/* Reads the status line, "HTTP/1.1 200 OK", into text. */
static bool read_status(int fd, int64_t end_ms, char *text, size_t size) {
    size_t length = 0;
    while (length + 1 < size && !memchr(text, '\n', length)) {
        ssize_t n = wait_for(fd, POLLIN, end_ms) ? recv(fd, text + length, size - 1 - length, 0) : -1;
        if (n <= 0) {
            return false;
        }
        length += (size_t)n;
    }
    text[length] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    return true;
}

static int ask(int fd, const char *where, int64_t end_ms, struct pe_error *err) {
    char status[64];
    if (!send_request(fd, end_ms) || !read_status(fd, end_ms, status, sizeof status)) {
        return pe_fail(err, PE_ERR_UNSUPPORTED, where, "gave no answer within %d ms", LIMIT_MS);
    }
    if (strncmp(status, "HTTP/1.", 7) != 0 || strncmp(status + 8, " 200", 4) != 0) {
        return pe_fail(err, PE_ERR_UNSUPPORTED, where, "answered \"%.60s\"", status);
    }
    return PE_OK;
}

/* "All addresses" is where one listens, not where one connects to. */
static void to_loopback(struct config_address *address) {
    if (address->host[0] == '\0' || strcmp(address->host, "0.0.0.0") == 0) {
        snprintf(address->host, sizeof address->host, "127.0.0.1");
    } else if (strcmp(address->host, "::") == 0) {
        snprintf(address->host, sizeof address->host, "::1");
    }
}

static int connect_any(const struct config_address *address, int64_t end_ms) {
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int fd = -1;
    if (getaddrinfo(address->host, address->port, &hints, &list) != 0) {
        return -1;
    }
    for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
        fd = connect_to(a, end_ms);
    }
    freeaddrinfo(list);
    return fd;
}

int healthcheck_run(const struct config *config, struct pe_error *err) {
    const int64_t end_ms = now_ms() + LIMIT_MS;
    const char *where = config->admin_listen[0] ? config->admin_listen : config->listen;
    struct config_address address;
    if (config_address_parse(where, &address, err)) {
        return 1;
    }
    bool all_v6 = strcmp(address.host, "::") == 0;
    to_loopback(&address);
    int fd = connect_any(&address, end_ms);
    if (fd < 0 && all_v6) { /* a machine without version 6 listens on version 4 only */
        snprintf(address.host, sizeof address.host, "127.0.0.1");
        fd = connect_any(&address, end_ms);
    }
    if (fd < 0) {
        pe_fail(err, PE_ERR_UNSUPPORTED, where, "accepts no connection");
        return 1;
    }
    int failed = ask(fd, where, end_ms, err) ? 1 : 0;
    close(fd);
    return failed;
}
