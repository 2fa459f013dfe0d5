/* SPDX-License-Identifier: MIT
 *
 * What the kernel tells of a connection: bytes that came, bytes that were taken, and who waits for whom.
 */
#include "suites.h"

#include "net/tcp.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Both ends of a connection over the loopback, made by a socket that tcp_prepare prepared. */
struct pair {
    int server, client;
};

static struct pair connected(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    const int small = 4096;
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    tcp_prepare(listener);
    setsockopt(client, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    ck_assert_int_eq(connect(client, (struct sockaddr *)&address, size), 0);
    int server = accept(listener, NULL, NULL);
    ck_assert_int_ge(server, 0);
    close(listener);
    return (struct pair){server, client};
}

static int option(int fd, int level, int name) {
    int value = 0;
    socklen_t size = sizeof value;
    ck_assert_int_eq(getsockopt(fd, level, name, &value, &size), 0);
    return value;
}

/* Sends until nothing more is accepted; how much was. */
static int64_t fill(int fd) {
    static const char block[65536];
    int64_t sum = 0;
    for (ssize_t n; (n = send(fd, block, sizeof block, MSG_DONTWAIT | MSG_NOSIGNAL)) > 0;) {
        sum += n;
    }
    return sum;
}

START_TEST(accepted_sockets_inherit) {
    struct pair pair = connected();
    ck_assert_int_ne(option(pair.server, SOL_SOCKET, SO_KEEPALIVE), 0);
    ck_assert_int_le(option(pair.server, IPPROTO_TCP, TCP_KEEPIDLE), 900);
    int unsent = option(pair.server, IPPROTO_TCP, TCP_NOTSENT_LOWAT);
    ck_assert(unsent >= 64 << 10 && unsent <= 256 << 10);
    close(pair.server);
    close(pair.client);
}
END_TEST

START_TEST(what_was_received) {
    struct pair pair = connected();
    struct tcp_state state;
    ck_assert(tcp_look(pair.server, &state));
    ck_assert_int_eq(state.received, 0);
    ck_assert(!state.owes && !state.closing);
    ck_assert_int_eq(send(pair.client, "GET ", 4, 0), 4);
    ck_assert_int_eq(poll(&(struct pollfd){.fd = pair.server, .events = POLLIN}, 1, 60000), 1);
    ck_assert(tcp_look(pair.server, &state));
    ck_assert_int_eq(state.received, 4);
    shutdown(pair.client, SHUT_WR);
    do {
        ck_assert(tcp_look(pair.server, &state));
    } while (!state.closing);
    close(pair.server);
    close(pair.client);
}
END_TEST

START_TEST(what_was_taken) {
    struct pair pair = connected();
    struct tcp_state state;
    static char bytes[65536];
    int64_t sent = fill(pair.server), read = 0;
    ck_assert(tcp_look(pair.server, &state));
    ck_assert(state.owes);
    ck_assert_int_lt(state.taken, sent);
    int64_t taken = state.taken;
    while (read < sent) {
        ssize_t n = recv(pair.client, bytes, sizeof bytes, 0);
        ck_assert_int_gt(n, 0);
        read += n;
    }
    do { /* the last acknowledgement may be on its way */
        ck_assert(tcp_look(pair.server, &state));
    } while (state.owes);
    ck_assert_int_gt(state.taken, taken);
    ck_assert_int_ge(state.taken, sent);
    close(pair.server);
    close(pair.client);
}
END_TEST

START_TEST(unsent_is_dropped) {
    struct pair pair = connected();
    static char bytes[65536];
    int64_t sent = fill(pair.server), read = 0;
    tcp_drop_unsent(pair.server);
    shutdown(pair.server, SHUT_RDWR);
    close(pair.server);
    for (ssize_t n; (n = recv(pair.client, bytes, sizeof bytes, 0)) > 0;) {
        read += n;
    }
    ck_assert_int_lt(read, sent);
    close(pair.client);
}
END_TEST

START_TEST(not_a_connection) {
    struct tcp_state state;
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert(!tcp_look(ends[0], &state));
    close(ends[0]);
    close(ends[1]);
}
END_TEST

Suite *tcp_suite(void) {
    Suite *suite = suite_create("tcp");
    TCase *tcase = tcase_create("tcp");
    tcase_add_test(tcase, accepted_sockets_inherit);
    tcase_add_test(tcase, what_was_received);
    tcase_add_test(tcase, what_was_taken);
    tcase_add_test(tcase, unsent_is_dropped);
    tcase_add_test(tcase, not_a_connection);
    suite_add_tcase(suite, tcase);
    return suite;
}
