/* SPDX-License-Identifier: MIT
 *
 * The clients of one listener by address, and how much each has open. A client is an IPv4 address, or the /64
 * of an IPv6 one: whoever has one address of those has all of them. For the loop thread alone.
 */
#ifndef PEERS_H
#define PEERS_H

#include <stddef.h>
#include <stdint.h>

struct sockaddr;

struct peer {
    uint64_t six;  /* the first half of an IPv6 address, or 0 */
    uint32_t four; /* an IPv4 address, or 0 */
    size_t n_conns;
    size_t n_requests; /* waiting for the pool, or on it */
    size_t n_streams;
    struct peer *next;
};

#define PEERS_BUCKETS 1024
struct peers {
    struct peer *buckets[PEERS_BUCKETS];
};

/* One more connection of this address. NULL = no memory. */
struct peer *peers_enter(struct peers *peers, const struct sockaddr *address);
/* One less of its connections. */
void peers_leave(struct peers *peers, struct peer *peer);
/* Forgets a client that has nothing open: to be called where one of its counts went down. */
void peers_settle(struct peers *peers, struct peer *peer);

#endif
