/* SPDX-License-Identifier: MIT
 *
 * One counter. A refused request takes nothing, so there is no lock: two that come at once may both be
 * refused where one would have fitted, and neither is hurt by trying again.
 */
#include "budget.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool budget_take(struct budget *budget, size_t bytes) {
    if (budget == NULL) {
        return true;
    }
    size_t before = atomic_fetch_add(&budget->used, bytes);
    if (before <= budget->limit && bytes <= budget->limit - before) {
        return true;
    }
    atomic_fetch_sub(&budget->used, bytes);
    return false;
}

void budget_give(struct budget *budget, size_t bytes) {
    if (budget != NULL) {
        atomic_fetch_sub(&budget->used, bytes);
    }
}

/* The number behind `label` in a file, times unit; SIZE_MAX where there is none ("max", no such file). */
static size_t read_bytes(const char *root, const char *name, const char *label, size_t unit) {
    char path[512], line[256];
    snprintf(path, sizeof path, "%s%s", root, name);
    FILE *file = fopen(path, "re");
    size_t bytes = SIZE_MAX;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, label, strlen(label)) != 0) {
            continue;
        }
        char *end;
        unsigned long long number = strtoull(line + strlen(label), &end, 10);
        bool any = end != line + strlen(label) && number <= SIZE_MAX / unit;
        bytes = any ? (size_t)number * unit : SIZE_MAX;
        break;
    }
    if (file != NULL) {
        fclose(file);
    }
    return bytes;
}

size_t budget_default(const char *root) {
    static const char *const groups[] = {"/sys/fs/cgroup/memory.max",
                                         "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    size_t least = read_bytes(root, "/proc/meminfo", "MemTotal:", 1024);
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        size_t bytes = read_bytes(root, groups[i], "", 1);
        least = bytes < least ? bytes : least;
    }
    return least / 2;
}
