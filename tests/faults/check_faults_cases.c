/* SPDX-License-Identifier: MIT
 *
 * Every request of tests/cases under want: a case that is added is swept by being added. What may come of it
 * stands in fault_call.h.
 */
#include "faults/fault_call.h"
#include "unit/suites.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES ((size_t)1 << 20)

static struct call_ground ground;
static char root[300];

static int is_visible(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

/* Calls `visit` on each entry of a folder; returns how many there were. */
static int each(const char *folder, int (*visit)(const char *path)) {
    char path[600];
    struct dirent **list;
    int n = scandir(folder, &list, is_visible, alphasort), sum = 0;
    ck_assert_msg(n >= 0, "no folder %s", folder);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, list[i]->d_name);
        sum += visit(path);
        free(list[i]);
    }
    free(list);
    return sum;
}

/* One header into the head; those that make no difference for memory are left out. */
static void set_header(struct call_head *head, const char *line) {
    const struct {
        const char *name;
        const char **member;
    } known[] = {{"Accept: ", &head->accept},
                 {"Content-Type: ", &head->content_type},
                 {"Content-Encoding: ", &head->content_encoding},
                 {"If-None-Match: ", &head->if_none_match}};
    for (size_t i = 0; i < PE_COUNT(known); i++) {
        size_t n = strlen(known[i].name);
        *known[i].member = strncmp(line, known[i].name, n) == 0 ? line + n : *known[i].member;
    }
}

/* METHOD TARGET, headers, an empty line, the body. */
static int sweep_file(const char *folder) {
    static char text[MAX_BYTES];
    char path[700];
    struct call_try try = {.request = text};
    snprintf(path, sizeof path, "%s/request", folder);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "no %s", path);
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    char *end = strstr(text, "\n\n"), *line = strchr(text, '\n');
    ck_assert_msg(end != NULL, "%s has no empty line", path);
    *end = '\0';
    try.body = end[2] ? end + 2 : NULL;
    while (line && line < end) {
        *line = '\0';
        set_header(&try.head, line + 1);
        line = strchr(line + 1, '\n');
    }
    ck_assert_msg(fault_sweep(&ground, &try, false) > 0, "%s met no fault", path);
    return 1;
}

static int sweep_operation(const char *folder) {
    return each(folder, sweep_file);
}

START_TEST(every_case) {
    fault_ground_open(&ground);
    ck_assert_int_ge(each(root, sweep_operation), 60);
    fault_ground_close(&ground);
}
END_TEST

Suite *faults_cases_suite(void) {
    Suite *suite = suite_create("faults_cases");
    TCase *tests = tcase_create("faults_cases");
    snprintf(root, sizeof root, "%.*s../cases", (int)(strrchr(__FILE__, '/') + 1 - __FILE__), __FILE__);
    tcase_set_timeout(tests, 60);
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, every_case);
    return suite;
}
