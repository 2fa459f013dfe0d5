/* SPDX-License-Identifier: MIT
 *
 * The number of usable CPUs, on machines laid out as files in a folder. The files' forms are those of
 * proc(5) and of the kernel's documents on cgroups, version 1 (cpu.cfs_quota_us) and version 2 (cpu.max).
 */
#include "suites.h"

#include "cpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static void make_root(void) {
    snprintf(root, sizeof root, "/tmp/check_cpus.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void drop_root(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", root);
    ck_assert_int_eq(system(command), 0);
}

static void put(const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void put_allowed(const char *list) {
    char text[256];
    snprintf(text, sizeof text,
             "Name:\tposencd\nCpus_allowed:\tff\nCpus_allowed_list:\t%s\nMems_allowed:\t1\n", list);
    put("/proc/self/status", text);
}

START_TEST(affinity_lists) {
    static const struct {
        const char *list;
        int n;
    } cases[] = {{"0", 1}, {"0-3", 4}, {"0-3,8", 5}, {"1,3,5-6", 4}, {"0-127,256-383", 256}, {"nonsense", 1},
                 {"", 1},  {"3-1", 1}, {"0-", 1},    {"0;1", 1},     {"0-99999999", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put_allowed(cases[i].list);
        struct cpus cpus = cpus_read(root);
        ck_assert_msg(cpus.allowed == cases[i].n, "\"%s\" gave %d", cases[i].list, cpus.allowed);
        ck_assert_int_eq(cpus.usable, cases[i].n);
        ck_assert_double_eq(cpus.quota, 0);
    }
}
END_TEST

START_TEST(nothing_to_read_is_one) {
    struct cpus cpus = cpus_read(root);
    ck_assert_int_eq(cpus.allowed, 1);
    ck_assert_int_eq(cpus.usable, 1);
}
END_TEST

START_TEST(version_2_quota) {
    static const struct {
        const char *max;
        double quota;
        int usable;
    } cases[] = {{"max 100000\n", 0, 8},    {"200000 100000\n", 2, 2},   {"250000 100000\n", 2.5, 3},
                 {"50000 100000\n", .5, 1}, {"9900000 100000\n", 99, 8}, {"150000 50000\n", 3, 3},
                 {"garbage\n", 0, 8},       {"0 100000\n", 0, 8},        {"200000\n", 0, 8}};
    put_allowed("0-7");
    put("/proc/self/cgroup", "0::/app.slice/one\n");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put("/sys/fs/cgroup/app.slice/one/cpu.max", cases[i].max);
        struct cpus cpus = cpus_read(root);
        ck_assert_double_eq(cpus.quota, cases[i].quota);
        ck_assert_msg(cpus.usable == cases[i].usable, "\"%s\" gave %d", cases[i].max, cpus.usable);
    }
}
END_TEST

/* The smallest of all ancestors holds. */
START_TEST(version_2_ancestors) {
    put_allowed("0-15");
    put("/proc/self/cgroup", "0::/a/b/c\n");
    put("/sys/fs/cgroup/a/b/c/cpu.max", "800000 100000\n");
    put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/a/cpu.max", "300000 100000\n");
    put("/sys/fs/cgroup/cpu.max", "1000000 100000\n");
    ck_assert_int_eq(cpus_read(root).usable, 3);
}
END_TEST

/* In a container the path is the host's, and the container's own files lie at the top of the mount. */
START_TEST(version_2_in_a_container) {
    put_allowed("0-15");
    put("/proc/self/cgroup", "0::/system.slice/docker-0123.scope\n");
    put("/sys/fs/cgroup/cpu.max", "400000 100000\n");
    ck_assert_int_eq(cpus_read(root).usable, 4);
    put("/proc/self/cgroup", "0::/\n");
    ck_assert_int_eq(cpus_read(root).usable, 4);
}
END_TEST

START_TEST(version_1_quota) {
    put_allowed("0-15");
    put("/proc/self/cgroup",
        "9:memory:/x\n5:cpuset:/y\n4:cpu,cpuacct:/docker/0123\n1:name=systemd:/\n0::/z\n");
    put("/sys/fs/cgroup/cpu,cpuacct/docker/0123/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu,cpuacct/docker/0123/cpu.cfs_period_us", "100000\n");
    ck_assert_double_eq(cpus_read(root).quota, 0);
    put("/sys/fs/cgroup/cpu,cpuacct/docker/0123/cpu.cfs_quota_us", "150000\n");
    ck_assert_int_eq(cpus_read(root).usable, 2);
    put("/sys/fs/cgroup/cpu,cpuacct/docker/0123/cpu.cfs_period_us", "50000\n");
    ck_assert_int_eq(cpus_read(root).usable, 3);
    /* a controller whose name only begins alike is not it */
    put("/proc/self/cgroup", "5:cpuset:/docker/0123\n4:cpuacct:/docker/0123\n");
    put("/sys/fs/cgroup/cpuset/docker/0123/cpu.cfs_quota_us", "100000\n");
    put("/sys/fs/cgroup/cpuset/docker/0123/cpu.cfs_period_us", "100000\n");
    ck_assert_double_eq(cpus_read(root).quota, 0);
}
END_TEST

START_TEST(version_1_short_mount) {
    put_allowed("0-15");
    put("/proc/self/cgroup", "4:cpu:/host/only\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "700000\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    ck_assert_int_eq(cpus_read(root).usable, 7);
}
END_TEST

START_TEST(long_paths_are_survived) {
    char line[2048] = "0::";
    memset(line + 3, '/', 1500);
    memcpy(line + 1500, "\n", 2);
    put_allowed("0-2");
    put("/proc/self/cgroup", line);
    ck_assert_int_eq(cpus_read(root).usable, 3);
}
END_TEST

/* Eight threads on a quota of four, 45 times slower; all processors of the host in a container of one. */
START_TEST(ollama_17916_xgboost_7653_threads_are_those_of_the_quota) {
    put_allowed("0-7");
    put("/proc/self/cgroup", "0::/\n");
    put("/sys/fs/cgroup/cpu.max", "400000 100000\n");
    ck_assert_int_eq(cpus_read(root).usable, 4);
    put_allowed("0-63");
    put("/sys/fs/cgroup/cpu.max", "100000 100000\n");
    ck_assert_int_eq(cpus_read(root).usable, 1);
    put_allowed("2");
    put("/sys/fs/cgroup/cpu.max", "400000 100000\n");
    ck_assert_int_eq(cpus_read(root).usable, 1);
}
END_TEST

START_TEST(this_machine) {
    struct cpus cpus = cpus_read("");
    ck_assert_int_ge(cpus.usable, 1);
    ck_assert_int_le(cpus.usable, cpus.allowed);
}
END_TEST

Suite *cpus_suite(void) {
    Suite *suite = suite_create("cpus");
    TCase *tests = tcase_create("cpus");
    tcase_add_checked_fixture(tests, make_root, drop_root);
    tcase_add_test(tests, affinity_lists);
    tcase_add_test(tests, nothing_to_read_is_one);
    tcase_add_test(tests, version_2_quota);
    tcase_add_test(tests, version_2_ancestors);
    tcase_add_test(tests, version_2_in_a_container);
    tcase_add_test(tests, version_1_quota);
    tcase_add_test(tests, version_1_short_mount);
    tcase_add_test(tests, long_paths_are_survived);
    tcase_add_test(tests, ollama_17916_xgboost_7653_threads_are_those_of_the_quota);
    tcase_add_test(tests, this_machine);
    suite_add_tcase(suite, tests);
    return suite;
}
