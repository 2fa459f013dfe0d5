/* SPDX-License-Identifier: MIT
 *
 * posencd: reads the configuration and does what the command line asks for. Exit codes: 0 done, 1 failed,
 * 2 refused configuration, 3 an address to listen on cannot be had.
 */
#include "config_jansson.h"
#include "healthcheck.h"
#include "launch.h"
#include "net/http.h"

#include <stdio.h>
#include <unistd.h>

extern char **environ;

static int report(const struct pe_error *err, int status) {
    if (err->code != PE_OK) {
        fprintf(stderr, "posencd: %s%s%s\n", err->path, err->path[0] != '\0' ? ": " : "", err->text);
    }
    return status;
}

/* The actions that need what the configuration names. */
static int act_loaded(const struct config *config, const struct config_command *command,
                      struct pe_error *err) {
    struct launch launch;
    if (launch_load(&launch, config, err) != PE_OK) {
        return CONFIG_EXIT_BAD;
    }
    int status = LAUNCH_EXIT_OK;
    if (command->action == CONFIG_RUN) {
        status = launch_serve(&launch, err);
    } else if (command->action == CONFIG_CALL) {
        status = launch_call(&launch, command, err);
    } else {
        printf("posencd: the configuration is good\n");
    }
    launch_unload(&launch);
    return status;
}

static int act(const struct config *config, const struct config_command *command, struct pe_error *err) {
    switch (command->action) {
    case CONFIG_HELP:
        config_help(stdout);
        return LAUNCH_EXIT_OK;
    case CONFIG_VERSION:
        config_version(stdout, http_library_version(), pe_linalg_name());
        return LAUNCH_EXIT_OK;
    case CONFIG_PRINT:
        config_print(stdout, config);
        return LAUNCH_EXIT_OK;
    case CONFIG_HEALTHCHECK:
        return healthcheck_run(config, err);
    default:
        return act_loaded(config, command, err);
    }
}

int main(int argc, char **argv) {
    struct config config;
    struct config_command command;
    struct pe_error err = {0};
    if (launch_check_system(&err) != PE_OK) {
        _exit(report(&err, LAUNCH_EXIT_FAILED)); /* OpenBLAS would wait for its threads */
    }
    launch_block_signals();
    jansson_guard_init();
    struct pe_arena *arena = pe_arena_open((size_t)16 << 20, NULL, &err);
    if (arena == NULL || config_load(arena, &config, &command, argc, argv, environ, &err) != PE_OK) {
        pe_arena_close(arena);
        return report(&err, CONFIG_EXIT_BAD);
    }
    int status = report(&err, act(&config, &command, &err));
    pe_arena_close(arena);
    return status;
}
