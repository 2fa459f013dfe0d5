/* SPDX-License-Identifier: MIT
 *
 * The process as the system sees it, for the process_* metrics; private to metrics*.c.
 */
#ifndef METRICS_PROCESS_H
#define METRICS_PROCESS_H

#include "posenc.h"

struct metrics_process {
    int64_t cpu_ns; /* user and system time */
    int64_t resident_bytes, virtual_bytes;
    int64_t open_fds, max_fds; /* max_fds -1: no limit */
    int64_t threads;
};

/* -1 where the system does not tell. */
void metrics_process_read(struct metrics_process *process);

#endif
