/* SPDX-License-Identifier: MIT
 *
 * Read from /proc/self, which is Linux; elsewhere the numbers are -1 and their series are left out.
 */
#include "metrics_process.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static bool read_file(const char *path, char *text, size_t size) {
    FILE *file = fopen(path, "r");
    if (!file) {
        return false;
    }
    size_t n = fread(text, 1, size - 1, file);
    fclose(file);
    text[n] = '\0';
    return n > 0;
}

/* statm: "size resident ..." in pages. */
static void read_memory(struct metrics_process *process) {
    char text[256];
    int64_t pages_virtual, pages_resident, page = sysconf(_SC_PAGESIZE);
    process->virtual_bytes = process->resident_bytes = -1;
    if (page > 0 && read_file("/proc/self/statm", text, sizeof text) &&
        sscanf(text, "%" SCNd64 " %" SCNd64, &pages_virtual, &pages_resident) == 2) {
        process->virtual_bytes = pages_virtual * page;
        process->resident_bytes = pages_resident * page;
    }
}

/* stat: "pid (name) state ..."; the name may hold anything, so fields are counted from its last ")". The
 * number of threads is the 20th field, the 18th behind the name. */
static void read_threads(struct metrics_process *process) {
    char text[1024];
    process->threads = -1;
    const char *at = read_file("/proc/self/stat", text, sizeof text) ? strrchr(text, ')') : NULL;
    for (int i = 0; at && i < 18; i++) {
        at = strchr(at + 1, ' ');
    }
    if (at && sscanf(at, "%" SCNd64, &process->threads) != 1) {
        process->threads = -1;
    }
}

static void read_fds(struct metrics_process *process) {
    struct rlimit limit;
    process->max_fds = -1;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        process->max_fds = (int64_t)limit.rlim_cur;
    }
    process->open_fds = -1;
    DIR *folder = opendir("/proc/self/fd");
    if (!folder) {
        return;
    }
    int64_t n = -1; /* less the one that looks */
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        n += entry->d_name[0] != '.';
    }
    closedir(folder);
    process->open_fds = n;
}

void metrics_process_read(struct metrics_process *process) {
    struct timespec cpu = {0};
    process->cpu_ns = -1;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) == 0) {
        process->cpu_ns = (int64_t)cpu.tv_sec * 1000000000 + cpu.tv_nsec;
    }
    read_memory(process);
    read_threads(process);
    read_fds(process);
}
