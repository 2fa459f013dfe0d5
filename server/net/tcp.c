/* SPDX-License-Identifier: MIT
 *
 * Keep-alive probes find clients that vanished without a word (a cable, a dropped entry in a router's table)
 * where no timeout of ours is shorter.
 *
 * The kernel lets megabytes pile up for one slow reader. TCP_NOTSENT_LOWAT bounds what waits unsent and
 * leaves what is on its way alone. Rejected: SO_SNDBUF, which bounds both, and so holds a far reader to that
 * size for each round trip: 256 KiB are 2.5 MB/s at 100 ms.
 */
#include "tcp.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

#define TCP_CLOSE_WAIT   8 /* the kernel's number of that state, which its header does not name */
#define TCP_UNSENT_BYTES (128 << 10)
#define TCP_IDLE_S       120 /* then a probe */
#define TCP_PROBE_S      15  /* between probes */
#define TCP_PROBES       4   /* without an answer: closed */

bool tcp_look(int fd, struct tcp_state *state) {
    struct tcp_info info;
    socklen_t size = sizeof info;
    const size_t needed = offsetof(struct tcp_info, tcpi_notsent_bytes) + sizeof info.tcpi_notsent_bytes;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || size < needed) {
        return false;
    }
    *state = (struct tcp_state){.received = (int64_t)info.tcpi_bytes_received,
                                .taken = (int64_t)info.tcpi_bytes_acked,
                                .owes = info.tcpi_unacked > 0 || info.tcpi_notsent_bytes > 0,
                                .closing = info.tcpi_state == TCP_CLOSE_WAIT};
    return true;
}

void tcp_drop_unsent(int fd) {
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void tcp_prepare(int fd) {
    const int on = 1, idle = TCP_IDLE_S, between = TCP_PROBE_S, probes = TCP_PROBES,
              unsent = TCP_UNSENT_BYTES;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
}
