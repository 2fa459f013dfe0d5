/* SPDX-License-Identifier: MIT
 *
 * Who counts as one client, and that a client is forgotten when, and only when, it has nothing open.
 */
#include "suites.h"

#include "config.h"
#include "net/conns.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct peer *enter(struct peers *peers, const char *address) {
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(4711)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(4711)};
    bool is_six = inet_pton(AF_INET6, address, &six.sin6_addr) == 1;
    ck_assert(is_six || inet_pton(AF_INET, address, &four.sin_addr) == 1);
    return peers_enter(peers, is_six ? (const struct sockaddr *)&six : (const struct sockaddr *)&four);
}

static size_t count(const struct peers *peers) {
    size_t n = 0;
    for (size_t i = 0; i < PEERS_BUCKETS; i++) {
        for (const struct peer *peer = peers->buckets[i]; peer != NULL; peer = peer->next) {
            n++;
        }
    }
    return n;
}

START_TEST(one_client) {
    static const struct {
        const char *one, *other;
        bool same;
    } rows[] = {
        {"192.0.2.1", "192.0.2.1", true},
        {"192.0.2.1", "192.0.2.2", false},
        {"192.0.2.1", "::ffff:192.0.2.1", true},
        {"::ffff:192.0.2.1", "::ffff:192.0.2.2", false},
        {"2001:db8:1:2::1", "2001:db8:1:2:ffff::9", true},
        {"2001:db8:1:2::1", "2001:db8:1:3::1", false},
        {"::1", "::1", true},
        {"::1", "127.0.0.1", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct peers peers = {0};
        struct peer *one = enter(&peers, rows[i].one), *other = enter(&peers, rows[i].other);
        ck_assert_msg((one == other) == rows[i].same, "%s and %s", rows[i].one, rows[i].other);
        peers_leave(&peers, one);
        ck_assert_uint_eq(count(&peers), 1);
        peers_leave(&peers, other);
        ck_assert_uint_eq(count(&peers), 0);
    }
}
END_TEST

/* connections_per_ip means a client, too, not one of its 2^64 addresses. */
START_TEST(connections_of_one_client) {
    struct config config = {.connections_per_ip = 2};
    struct conns conns;
    struct conn *some[3];
    struct sockaddr_in6 from = {.sin6_family = AF_INET6};
    const char *addresses[] = {"2001:db8:1:2::1", "2001:db8:1:2::2", "2001:db8:1:2::3"};
    conns_init(&conns, &config);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(inet_pton(AF_INET6, addresses[i], &from.sin6_addr), 1);
        some[i] = conns_add(&conns, -1, (const struct sockaddr *)&from);
        ck_assert_msg((some[i] != NULL) == (i < 2), "connection %zu", i);
    }
    ck_assert_uint_eq(some[0]->peer->n_conns, 2);
    conns_remove(&conns, some[0]);
    some[0] = conns_add(&conns, -1, (const struct sockaddr *)&from);
    ck_assert_ptr_nonnull(some[0]);
    ck_assert_int_eq(inet_pton(AF_INET6, "2001:db8:1:3::1", &from.sin6_addr), 1);
    some[2] = conns_add(&conns, -1, (const struct sockaddr *)&from);
    ck_assert_ptr_nonnull(some[2]);
    for (size_t i = 0; i < 3; i++) {
        conns_remove(&conns, some[i]);
    }
    ck_assert_uint_eq(conns.n, 0);
}
END_TEST

START_TEST(forgotten_when_nothing_is_open) {
    struct peers peers = {0};
    struct peer *peer = enter(&peers, "192.0.2.1");
    peer->n_streams++;
    peer->n_requests++;
    peers_leave(&peers, peer);
    ck_assert_uint_eq(count(&peers), 1);
    peer->n_streams--;
    peers_settle(&peers, peer);
    ck_assert_ptr_eq(enter(&peers, "192.0.2.1"), peer);
    peers_leave(&peers, peer);
    peer->n_requests--;
    peers_settle(&peers, peer);
    ck_assert_uint_eq(count(&peers), 0);
}
END_TEST

START_TEST(many_clients) {
    enum { N = 5000 };
    struct peers peers = {0};
    struct peer *all[N];
    char address[40];
    for (int i = 0; i < N; i++) {
        snprintf(address, sizeof address, i % 2 ? "10.0.%d.%d" : "2001:db8:%x:%x::1", i / 250, i % 250);
        all[i] = enter(&peers, address);
        ck_assert_uint_eq(all[i]->n_conns, 1);
    }
    ck_assert_uint_eq(count(&peers), N);
    for (int i = 0; i < N; i++) {
        peers_leave(&peers, all[i * 7 % N]);
    }
    ck_assert_uint_eq(count(&peers), 0);
}
END_TEST

Suite *peers_suite(void) {
    Suite *suite = suite_create("peers");
    TCase *tcase = tcase_create("peers");
    tcase_add_test(tcase, one_client);
    tcase_add_test(tcase, connections_of_one_client);
    tcase_add_test(tcase, forgotten_when_nothing_is_open);
    tcase_add_test(tcase, many_clients);
    suite_add_tcase(suite, tcase);
    return suite;
}
