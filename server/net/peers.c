/* SPDX-License-Identifier: MIT
 *
 * A hash table of lists. It is never larger than the number of connections allows, so it does not grow.
 */
#include "peers.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* What of an address tells clients apart. Unknown kinds are one client. */
static struct peer key_of(const struct sockaddr *address) {
    struct peer key = {0};
    if (address != NULL && address->sa_family == AF_INET) {
        struct sockaddr_in four;
        memcpy(&four, address, sizeof four);
        key.four = four.sin_addr.s_addr;
    } else if (address != NULL && address->sa_family == AF_INET6) {
        struct sockaddr_in6 six;
        memcpy(&six, address, sizeof six);
        if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
            memcpy(&key.four, &six.sin6_addr.s6_addr[12], sizeof key.four);
        } else {
            memcpy(&key.six, &six.sin6_addr, sizeof key.six);
        }
    }
    return key;
}

static struct peer **bucket_of(struct peers *peers, const struct peer *key) {
    uint64_t mixed = (key->six ^ key->four) * UINT64_C(0x9e3779b97f4a7c15);
    return &peers->buckets[(mixed >> 32) % PEERS_BUCKETS];
}

struct peer *peers_enter(struct peers *peers, const struct sockaddr *address) {
    struct peer key = key_of(address);
    struct peer **bucket = bucket_of(peers, &key);
    struct peer *peer = *bucket;
    while (peer != NULL && (peer->six != key.six || peer->four != key.four)) {
        peer = peer->next;
    }
    if (peer == NULL) {
        peer = malloc(sizeof *peer);
        if (peer == NULL) {
            return NULL;
        }
        *peer = key;
        peer->next = *bucket;
        *bucket = peer;
    }
    peer->n_conns++;
    return peer;
}

void peers_settle(struct peers *peers, struct peer *peer) {
    if (peer->n_conns > 0 || peer->n_requests > 0 || peer->n_streams > 0) {
        return;
    }
    struct peer **link = bucket_of(peers, peer);
    while (*link != peer) {
        link = &(*link)->next;
    }
    *link = peer->next;
    free(peer);
}

void peers_leave(struct peers *peers, struct peer *peer) {
    peer->n_conns--;
    peers_settle(peers, peer);
}
