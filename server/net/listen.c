/* SPDX-License-Identifier: MIT
 *
 * getaddrinfo may give several addresses ("localhost" is 127.0.0.1 and ::1); the first that can be bound is
 * taken. "[::]" without IPv6 in the kernel (common in containers) falls back to 0.0.0.0. SO_REUSEADDR lets a
 * restart bind while connections of the previous process are still in TIME_WAIT; it does not let two daemons
 * share a port.
 */
#include "listen.h"

#include "config.h"
#include "tcp.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Connections that the kernel completes before we accept them; it caps this at its own somaxconn. */
#define LISTEN_BACKLOG 4096

/* The socket, or -1 with errno. */
static int bind_one(const struct addrinfo *info) {
    const int on = 1, off = 0;
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (info->ai_family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    }
    tcp_prepare(fd);
    if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, LISTEN_BACKLOG) == 0) {
        return fd;
    }
    int cause = errno;
    close(fd);
    errno = cause;
    return -1;
}

static int bind_any(const struct addrinfo *list) {
    int fd = -1, cause = EADDRNOTAVAIL;
    for (const struct addrinfo *info = list; info != NULL && fd < 0; info = info->ai_next) {
        fd = bind_one(info);
        /* Of several causes the one of an address in use says most. */
        cause = fd < 0 && cause != EADDRINUSE ? errno : cause;
    }
    errno = cause;
    return fd;
}

static int resolve(const char *host, const char *port, struct addrinfo **list) {
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    return getaddrinfo(host[0] == '\0' ? NULL : host, port, &hints, list);
}

static bool is_wildcard6(const char *host) {
    return host[0] == '\0' || strcmp(host, "::") == 0;
}

struct refusal {
    bool taken;
    char cause[128];
};

static void explain(struct refusal *refusal, int error) {
    refusal->taken = error == EADDRINUSE;
    if (refusal->taken) {
        snprintf(refusal->cause, sizeof refusal->cause, "the address is in use");
    } else {
        config_errno_text(error, refusal->cause, sizeof refusal->cause);
    }
}

/* The socket; -1 with the refusal filled. */
static int bind_address(const struct config_address *address, struct refusal *refusal) {
    /* No host means all addresses: "::" first, which is both versions. */
    const char *hosts[2] = {address->host, NULL};
    if (is_wildcard6(address->host)) {
        hosts[0] = "::";
        hosts[1] = "0.0.0.0";
    }
    for (size_t i = 0; i < 2 && hosts[i] != NULL; i++) {
        struct addrinfo *list = NULL;
        int status = resolve(hosts[i], address->port, &list);
        if (status != 0) {
            snprintf(refusal->cause, sizeof refusal->cause, "%s", gai_strerror(status));
            continue;
        }
        int fd = bind_any(list);
        int error = errno;
        freeaddrinfo(list);
        if (fd >= 0) {
            return fd;
        }
        explain(refusal, error);
        if (error != EAFNOSUPPORT && error != EADDRNOTAVAIL) {
            break;
        }
    }
    return -1;
}

char *listen_peer_name(const struct sockaddr *peer, char *text) {
    char host[INET6_ADDRSTRLEN] = "?";
    unsigned port = 0;
    bool six = false;
    if (peer != NULL && peer->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, peer, sizeof v4);
        inet_ntop(AF_INET, &v4.sin_addr, host, sizeof host);
        port = ntohs(v4.sin_port);
    } else if (peer != NULL && peer->sa_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, peer, sizeof v6);
        inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof host);
        port = ntohs(v6.sin6_port);
        /* An IPv4 client on a socket of both versions: "::ffff:127.0.0.1". */
        six = !IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr);
    }
    const char *start = !six && strncmp(host, "::ffff:", 7) == 0 ? host + 7 : host;
    snprintf(text, LISTEN_NAME_SIZE, six ? "[%s]:%u" : "%s:%u", start, port);
    return text;
}

int listen_open(struct listener *listener, const char *address, const char *option, struct pe_error *err) {
    struct config_address parts;
    struct refusal refusal = {0};
    *listener = (struct listener){.fd = -1};
    if (config_address_parse(address, &parts, err) != PE_OK) {
        return pe_error_at(err, option);
    }
    listener->fd = bind_address(&parts, &refusal);
    if (listener->fd < 0) {
        refusal.cause[0] = (char)tolower((unsigned char)refusal.cause[0]);
        return pe_fail(err, refusal.taken ? PE_ERR_CONFLICT : PE_ERR_RANGE, option, "cannot listen on %s: %s",
                       address, refusal.cause);
    }
    struct sockaddr_storage bound;
    socklen_t size = sizeof bound;
    memset(&bound, 0, sizeof bound);
    getsockname(listener->fd, (struct sockaddr *)&bound, &size);
    listen_peer_name((const struct sockaddr *)&bound, listener->name);
    return PE_OK;
}
