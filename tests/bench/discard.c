/* SPDX-License-Identifier: MIT
 *
 * What libmicrohttpd alone allows: a server with the daemon's loop and settings (server/net/http.c) that computes
 * nothing. It throws bodies away and answers {}, or, under /echo, a file of a megabyte that it has at hand.
 *
 *     build/release/bench-discard PORT
 *
 * serves on the loopback address until it is killed. serve.py starts it; it is no benchmark by itself.
 */
#include "call.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

/* As the daemon has them: PIECE_BYTES and RUNS are server/net/http.c's own, CONNECTIONS the default of its option in
 * server/config.c. Copied, as nothing else needs them outside of there; a change there belongs here, too, lest what is
 * measured against be another loop. */
#define CONNECTION_BYTES CALL_HEAD_BYTES
#define CONNECTIONS      4096U
#define PIECE_BYTES      (CONNECTION_BYTES / 4)
#define RUNS             8

#define FILE_BYTES (128 + 512 * 512 * sizeof(float))
#define WAIT_MS    1000

struct bare {
    struct MHD_Response *empty, *file;
    bool pieces; /* a body goes on */
};

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *body,
                                  size_t *body_size, void **request_context) {
    struct bare *bare = context;
    (void)method;
    (void)version;
    (void)body;
    if (*request_context == NULL) { /* the head */
        *request_context = bare;
        return MHD_YES;
    }
    if (*body_size > 0) {
        bare->pieces = bare->pieces || *body_size >= PIECE_BYTES;
        *body_size = 0;
        return MHD_YES;
    }
    return MHD_queue_response(connection, MHD_HTTP_OK, strcmp(url, "/echo") == 0 ? bare->file : bare->empty);
}

static struct MHD_Daemon *start(struct bare *bare, unsigned short port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return MHD_start_daemon(MHD_USE_EPOLL, port, NULL, NULL, on_request, bare, MHD_OPTION_SOCK_ADDR, &address,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_BYTES, MHD_OPTION_CONNECTION_LIMIT,
                            CONNECTIONS, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
}

static bool run_library(struct bare *bare, struct MHD_Daemon *daemon) {
    bool ok = true;
    int runs = 0;
    do {
        bare->pieces = false;
        ok = MHD_run(daemon) == MHD_YES;
        runs++;
    } while (ok && bare->pieces && runs < RUNS);
    return ok;
}

static bool serve(struct bare *bare, struct MHD_Daemon *daemon) {
    int library = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    bool ok = epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, library, &event) == 0;
    while (ok) {
        MHD_UNSIGNED_LONG_LONG ms;
        bool soon = MHD_get_timeout(daemon, &ms) == MHD_YES && ms < WAIT_MS;
        epoll_wait(epoll, &event, 1, soon ? (int)ms : WAIT_MS);
        ok = run_library(bare, daemon);
    }
    return ok;
}

int main(int n, char **words) {
    static char file[FILE_BYTES]; /* written to, or its pages were all one page of zeros */
    static char empty[] = "{}";
    unsigned long port = n == 2 ? strtoul(words[1], NULL, 10) : 0;
    memset(file, 1, sizeof file);
    signal(SIGPIPE, SIG_IGN);
    struct bare bare = {.empty =
                            MHD_create_response_from_buffer(sizeof empty - 1, empty, MHD_RESPMEM_PERSISTENT),
                        .file = MHD_create_response_from_buffer(sizeof file, file, MHD_RESPMEM_PERSISTENT)};
    bool good = port > 0 && port <= 65535 && bare.empty != NULL && bare.file != NULL;
    struct MHD_Daemon *daemon = good ? start(&bare, (unsigned short)port) : NULL;
    if (daemon == NULL) {
        fputs("usage: bench-discard PORT, one that is free on the loopback address\n", stderr);
        return 2;
    }
    return serve(&bare, daemon) ? 0 : 1;
}
