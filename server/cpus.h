/* SPDX-License-Identifier: MIT
 *
 * How many CPUs this process may use: what the scheduler allows (affinity), and what a container's quota
 * allows (cgroup). More threads than that do not compute faster, they only wait for each other.
 */
#ifndef CPUS_H
#define CPUS_H

struct cpus {
    int allowed;  /* CPUs that threads may run on; at least 1 */
    double quota; /* CPUs' worth of time; 0 = no limit */
    int usable;   /* min(allowed, quota rounded up): the number of workers; at least 1 */
};

/* `root` stands before /proc and /sys: "" for this system, a folder for tests. */
struct cpus cpus_read(const char *root);

#endif
