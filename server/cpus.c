/* SPDX-License-Identifier: MIT
 *
 * Everything is read from files, so that a test can lay out any machine in a folder:
 *
 *     /proc/self/status                 Cpus_allowed_list: 0-3,8
 *     /proc/self/cgroup                 0::/app  (version 2);  4:cpu,cpuacct:/app  (version 1)
 *     /sys/fs/cgroup/app/cpu.max        "200000 100000": 2 CPUs; "max 100000": no limit
 *     /sys/fs/cgroup/cpu/app/cpu.cfs_quota_us, cpu.cfs_period_us     -1 = no limit
 *
 * A quota of any ancestor holds as well, so all folders up to the mount are read and the smallest wins.
 * Inside of a container the path in /proc/self/cgroup may not exist below the mount; walking up finds the
 * container's own files at the top.
 */
#include "cpus.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPUS_PATH 1024
#define CPUS_MAX  4096

/* The first line of root/folder/name that starts with `key`, without the key and the line's end. */
static bool read_line(const char *root, const char *name, const char *key, char *line, size_t size) {
    char path[CPUS_PATH];
    int n = snprintf(path, sizeof path, "%s%s", root, name);
    FILE *file = n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;
    if (file == NULL) {
        return false;
    }
    bool found = false;
    while (!found && fgets(line, (int)size, file) != NULL) {
        found = strncmp(line, key, strlen(key)) == 0;
    }
    fclose(file);
    if (found) {
        memmove(line, line + strlen(key), strlen(line) - strlen(key) + 1);
        line[strcspn(line, "\n")] = '\0';
    }
    return found;
}

/* "0-3,8" is 5; 0 = not understood. */
static int count_list(const char *list) {
    long n = 0;
    while (*list != '\0') {
        char *end;
        long first = strtol(list, &end, 10), last = first;
        if (end == list) {
            return 0;
        }
        if (*end == '-') {
            list = end + 1;
            last = strtol(list, &end, 10);
        }
        if (end == list || last < first || last - first >= CPUS_MAX || n > CPUS_MAX) {
            return 0;
        }
        n += last - first + 1;
        list = *end == ',' ? end + 1 : end;
        if (list == end && *end != '\0') {
            return 0;
        }
    }
    return (int)n;
}

static int read_allowed(const char *root) {
    char line[4096];
    int n = 0;
    if (read_line(root, "/proc/self/status", "Cpus_allowed_list:", line, sizeof line)) {
        n = count_list(line + strspn(line, " \t"));
    }
    return n > 0 ? n : 1;
}

static double smaller(double quota, double other) {
    return other > 0 && (quota == 0 || other < quota) ? other : quota;
}

/* quota/period of one folder below /sys/fs/cgroup; 0 = no limit or no such file. */
static double folder_quota(const char *root, const char *folder, bool version2) {
    char name[CPUS_PATH], line[128];
    double quota = 0, period = 100000;
    snprintf(name, sizeof name, "/sys/fs/cgroup%s/%s", folder, version2 ? "cpu.max" : "cpu.cfs_quota_us");
    if (!read_line(root, name, "", line, sizeof line)) {
        return 0;
    }
    char *end;
    quota = strtod(line, &end); /* "max" is 0 */
    if (version2) {
        period = strtod(end, NULL);
    } else {
        snprintf(name, sizeof name, "/sys/fs/cgroup%s/cpu.cfs_period_us", folder);
        period = read_line(root, name, "", line, sizeof line) ? strtod(line, NULL) : 0;
    }
    return quota > 0 && period > 0 ? quota / period : 0;
}

/* `mount` + `path` and all its ancestors up to mount. */
static double tree_quota(const char *root, const char *mount, const char *path, bool version2) {
    char folder[CPUS_PATH];
    size_t mount_size = strlen(mount);
    int n = snprintf(folder, sizeof folder, "%s%s", mount, strcmp(path, "/") == 0 ? "" : path);
    if (n < 0 || (size_t)n >= sizeof folder - 64) {
        return 0;
    }
    double quota = folder_quota(root, folder, version2);
    for (char *cut = strrchr(folder, '/'); cut != NULL && cut >= folder + mount_size;
         cut = strrchr(folder, '/')) {
        *cut = '\0';
        quota = smaller(quota, folder_quota(root, folder, version2));
    }
    return quota;
}

/* Does the list "cpu,cpuacct" name the controller cpu? */
static bool names_cpu(const char *controllers) {
    for (const char *name = controllers; *name != '\0'; name += strcspn(name, ",")) {
        name += *name == ',' ? 1 : 0;
        if (strncmp(name, "cpu", 3) == 0 && (name[3] == ',' || name[3] == '\0')) {
            return true;
        }
    }
    return false;
}

/* One line of /proc/self/cgroup: "4:cpu,cpuacct:/app". */
static double line_quota(const char *root, char *line) {
    char *controllers = strchr(line, ':');
    char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (path == NULL) {
        return 0;
    }
    *controllers++ = '\0';
    *path++ = '\0';
    if (controllers[0] == '\0') {
        return tree_quota(root, "", path, true);
    }
    if (!names_cpu(controllers)) {
        return 0;
    }
    /* Version 1 is mounted under the list's name, with a link from the short one. */
    char mount[256];
    snprintf(mount, sizeof mount, "/%.200s", controllers);
    double quota = tree_quota(root, mount, path, false);
    return smaller(quota, tree_quota(root, "/cpu", path, false));
}

static double read_quota(const char *root) {
    char name[CPUS_PATH], line[CPUS_PATH];
    snprintf(name, sizeof name, "%s/proc/self/cgroup", root);
    FILE *file = fopen(name, "re");
    if (file == NULL) {
        return 0;
    }
    double quota = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        quota = smaller(quota, line_quota(root, line));
    }
    fclose(file);
    return quota;
}

struct cpus cpus_read(const char *root) {
    struct cpus cpus = {.allowed = read_allowed(root), .quota = read_quota(root)};
    cpus.usable = cpus.allowed;
    if (cpus.quota > 0 && ceil(cpus.quota) < cpus.usable) {
        cpus.usable = (int)ceil(cpus.quota);
    }
    return cpus;
}
