/* SPDX-License-Identifier: MIT
 *
 * Runs all unit tests, or those of the modules named on the command line (`build/release/unit arena error`);
 * `--list` prints the modules.
 * libcheck runs each test in a process of its own, so a crash fails one test only; CK_FORK=no keeps them in
 * this one for a debugger. Exits with 1 when a test failed.
 */
#include "suites.h"

#include "config_jansson.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct suite_row {
    const char *name;
    Suite *(*make)(void);
};

#define SUITE_ROW(module) {#module, module##_suite},
static const struct suite_row rows[] = {SUITES(SUITE_ROW){NULL, NULL}};

static bool wanted(const char *name, int argc, char **argv) {
    bool found = argc < 2;
    for (int i = 1; i < argc; i++) {
        found = found || strcmp(name, argv[i]) == 0;
    }
    return found;
}

static bool known(const char *name) {
    for (const struct suite_row *row = rows; row->name != NULL; row++) {
        if (strcmp(row->name, name) == 0) {
            return true;
        }
    }
    return false;
}

static int list(void) {
    for (const struct suite_row *row = rows; row->name != NULL; row++) {
        puts(row->name);
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        return list();
    }
    for (int i = 1; i < argc; i++) {
        if (!known(argv[i])) {
            fprintf(stderr, "no suite is named \"%s\"; `%s --list` names them\n", argv[i], argv[0]);
            return 1;
        }
    }
    jansson_guard_init(); /* as the daemon does */
    SRunner *runner = srunner_create(NULL);
    for (const struct suite_row *row = rows; row->name != NULL; row++) {
        if (wanted(row->name, argc, argv)) {
            srunner_add_suite(runner, row->make());
        }
    }
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
