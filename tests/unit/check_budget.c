/* SPDX-License-Identifier: MIT
 *
 * The memory of all requests: what is taken comes back, nothing goes beyond, and a request that would is told
 * so.
 */
#include "unit/call_run.h"
#include "unit/suites.h"

#include "budget.h"
#include "net/buffers.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MIB ((size_t)1 << 20)

START_TEST(nothing_goes_beyond) {
    struct budget budget = {.limit = 100};
    ck_assert(budget_take(&budget, 60));
    ck_assert(!budget_take(&budget, 41));
    ck_assert(!budget_take(&budget, SIZE_MAX));
    ck_assert(budget_take(&budget, 40));
    ck_assert(!budget_take(&budget, 1));
    budget_give(&budget, 60);
    ck_assert(budget_take(&budget, 60));
    ck_assert(budget_take(NULL, SIZE_MAX));
}
END_TEST

START_TEST(big_blocks_count) {
    struct budget budget = {.limit = 8 * MIB};
    struct buffers *buffers = buffers_open(16 * MIB, &budget);
    struct pe_allocator a = buffers_allocator(buffers);
    void *first = a.alloc(a.context, 6 * MIB);
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_null(a.alloc(a.context, 4 * MIB));
    a.release(a.context, first, 6 * MIB);
    ck_assert_uint_eq(budget.used, 0); /* what is kept for reuse is not in use */
    void *second = a.alloc(a.context, 4 * MIB);
    ck_assert_ptr_nonnull(second);
    a.release(a.context, second, 4 * MIB);
    buffers_close(buffers);
}
END_TEST

static struct call_ground ground;
static struct budget budget;

static void setup(void) {
    call_ground_open(&ground);
    budget.limit = MIB;
    budget.used = 0;
    ground.service.budget = &budget;
}

static void teardown(void) {
    call_ground_close(&ground);
}

/* Bodies of every kind count while they arrive, and are given back with the call. */
START_TEST(bodies_count) {
    static const char *const types[] = {"application/json", "application/x-npy", "application/octet-stream"};
    size_t n = 2 * MIB;
    char *body = malloc(n);
    memset(body, '1', n);
    memcpy(body, "{\"embeddings\":[", 15);
    for (size_t i = 16; i < n; i += 2) {
        body[i] = ',';
    }
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct call_try try = {.request = "POST /v1/apply?type=none&shape=1,1",
                               .head.content_type = types[i],
                               .body = body,
                               .body_n = n,
                               .chunk = 32768};
        call_expect_problem(&ground, &try, 503, "memory", "body",
                            "the memory of all requests (option memory_bytes) is in use, try again");
        call_try_close(&try);
        ck_assert_uint_eq(budget.used, 0);
    }
    free(body);
    struct call_try small = {.request = "POST /v1/apply",
                             .body = "{\"encoding\":\"none\",\"embeddings\":[[1,2]]}"};
    call_try(&ground, &small);
    ck_assert_int_eq(small.status, 200);
    call_try_close(&small);
    ck_assert_uint_eq(budget.used, 0);
}
END_TEST

static void put(const char *root, const char *folder, const char *name, const char *text) {
    char path[300];
    for (size_t end = 1; end <= strlen(folder); end++) {
        if (folder[end] == '/' || folder[end] == '\0') {
            snprintf(path, sizeof path, "%s%.*s", root, (int)end, folder);
            mkdir(path, 0700);
        }
    }
    snprintf(path, sizeof path, "%s%s/%s", root, folder, name);
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
}

START_TEST(default_is_half_of_what_there_is) {
    char root[] = "/tmp/check_budget_XXXXXX", command[64];
    ck_assert_ptr_nonnull(mkdtemp(root));
    ck_assert_uint_eq(budget_default(root), SIZE_MAX / 2);
    put(root, "/proc", "meminfo", "MemFree: 1 kB\nMemTotal:        4000 kB\n");
    ck_assert_uint_eq(budget_default(root), (size_t)2000 * 1024);
    put(root, "/sys/fs/cgroup", "memory.max", "max\n");
    ck_assert_uint_eq(budget_default(root), (size_t)2000 * 1024);
    put(root, "/sys/fs/cgroup", "memory.max", "1000000\n");
    ck_assert_uint_eq(budget_default(root), 500000);
    put(root, "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "800000\n");
    ck_assert_uint_eq(budget_default(root), 400000);
    snprintf(command, sizeof command, "rm -r %s", root);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

Suite *budget_suite(void) {
    Suite *suite = suite_create("budget");
    TCase *plain = tcase_create("counting"), *calls = tcase_create("calls");
    tcase_add_test(plain, nothing_goes_beyond);
    tcase_add_test(plain, big_blocks_count);
    tcase_add_test(plain, default_is_half_of_what_there_is);
    tcase_add_checked_fixture(calls, setup, teardown);
    tcase_add_test(calls, bodies_count);
    suite_add_tcase(suite, plain);
    suite_add_tcase(suite, calls);
    return suite;
}
