/* SPDX-License-Identifier: MIT
 *
 * PyTorch beside a benchmark: torch_apply.py as another process, with an allocator that keeps its pages. It is asked
 * for some runs at a time, and answers how long one took its thread.
 */
#ifndef TORCH_H
#define TORCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct torch {
    FILE *to, *from; /* from == NULL: there is none */
};

static inline struct torch torch_begin(void) {
    struct torch torch = {NULL, NULL};
    int to[2], from[2];
    if (pipe(to) || pipe(from)) {
        return torch;
    }
    if (fork() == 0) {
        dup2(to[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        close(to[1]);
        close(from[0]);
        execl("/usr/bin/python3", "python3", "tests/bench/torch_apply.py", (char *)NULL);
        _exit(1);
    }
    close(to[0]);
    close(from[1]);
    torch.to = fdopen(to[1], "w");
    torch.from = fdopen(from[0], "r");
    char line[64];
    if (!fgets(line, sizeof line, torch.from) || strcmp(line, "ready\n") != 0) {
        torch.from = NULL;
    }
    return torch;
}

static inline void torch_end(const struct torch *torch) {
    if (torch->to) {
        fclose(torch->to);
        wait(NULL);
    }
}

/* Milliseconds of a run of `what`, a name and sizes: the mean of so many, if more than one after one that does not
 * count, as what was measured before may have taken the caches. */
static inline double torch_ms(const struct torch *torch, const char *what, unsigned runs) {
    char line[64];
    fprintf(torch->to, "%u %s\n", runs, what);
    fflush(torch->to);
    return fgets(line, sizeof line, torch->from) ? strtod(line, NULL) : 0;
}

#endif
