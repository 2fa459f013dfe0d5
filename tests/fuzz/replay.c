/* SPDX-License-Identifier: MIT
 *
 * Gives a target every file of the folders, and then of the files, named, without a fuzzer: `replay-call
 * tests/fuzz/corpus/call`. The last line is `N passed, N failed`. A file that takes some minutes counts as
 * failed: most take some milliseconds.
 */
#include "fuzz/target.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_SECONDS 300

struct counts {
    int passed, failed;
};

static char *read_file(const char *path, size_t *n) {
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    size_t room = 0;
    for (size_t got = 1; file && got; *n += got) {
        room = 2 * room + 4096;
        bytes = realloc(bytes, room);
        FUZZ_EXPECT(bytes, "no memory for %s", path);
        got = fread(bytes + *n, 1, room - *n, file);
    }
    FUZZ_EXPECT(file && !ferror(file), "cannot read %s", path);
    fclose(file);
    return bytes;
}

static void try_file(const char *path) {
    size_t n = 0;
    char *bytes = read_file(path, &n), *own = fuzz_copy(bytes, n);
    free(bytes);
    alarm(LIMIT_SECONDS);
    LLVMFuzzerTestOneInput((const uint8_t *)own, n);
    alarm(0);
    free(own);
}

/* In a process of its own: do they all pass? Of `quiet` ones nothing is printed. */
static bool try_files(char **paths, int n, bool quiet) {
    int status = -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (quiet && !freopen("/dev/null", "w", stderr)) {
            exit(EXIT_FAILURE);
        }
        for (int i = 0; i < n; i++) {
            try_file(paths[i]);
        }
        exit(EXIT_SUCCESS); /* not _exit: leaks are looked for here */
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* First all together, as a process takes longer than most files; where that fails, one by one. */
static void replay(char **paths, int n, struct counts *counts) {
    if (try_files(paths, n, true)) {
        counts->passed += n;
        return;
    }
    int failed = 0;
    for (int i = 0; i < n; i++) {
        if (!try_files(&paths[i], 1, false)) {
            printf("FAIL %s\n", paths[i]);
            failed++;
        }
    }
    if (!failed) {
        printf("FAIL %s to %s: together, but none alone\n", paths[0], paths[n - 1]);
        failed = 1;
    }
    counts->passed += n - failed;
    counts->failed += failed;
}

static void replay_folder(const char *folder, struct counts *counts) {
    struct dirent **files;
    int n = scandir(folder, &files, NULL, alphasort), n_paths = 0;
    FUZZ_EXPECT(n >= 0, "cannot read the folder %s", folder);
    char **paths = calloc((size_t)n + 1, sizeof *paths);
    FUZZ_EXPECT(paths, "no memory");
    for (int i = 0; i < n; i++) {
        size_t size = strlen(folder) + strlen(files[i]->d_name) + 2;
        char *path = malloc(size);
        FUZZ_EXPECT(path, "no memory");
        snprintf(path, size, "%s/%s", folder, files[i]->d_name);
        if (files[i]->d_name[0] != '.') {
            paths[n_paths++] = path;
        } else {
            free(path);
        }
        free(files[i]);
    }
    free(files);
    replay(paths, n_paths, counts);
    for (int i = 0; i < n_paths; i++) {
        free(paths[i]);
    }
    free(paths);
}

int main(int argc, char **argv) {
    struct counts counts = {0};
    int at = 1;
    for (DIR *folder; at < argc && (folder = opendir(argv[at])); at++) {
        closedir(folder);
        replay_folder(argv[at], &counts);
    }
    if (at < argc) {
        replay(argv + at, argc - at, &counts);
    }
    counts.failed += counts.passed + counts.failed == 0; /* no file at all is a mistake */
    printf("%d passed, %d failed\n", counts.passed, counts.failed);
    return counts.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
