/* SPDX-License-Identifier: MIT
 *
 * What the process owns, and its life: load, serve, drain, stop; and the one request of --call.
 */
#ifndef LAUNCH_H
#define LAUNCH_H

#include "budget.h"
#include "config.h"
#include "log.h"
#include "service.h"

#define LAUNCH_EXIT_OK     0
#define LAUNCH_EXIT_FAILED 1
#define LAUNCH_EXIT_LISTEN 3 /* an address cannot be had; CONFIG_EXIT_BAD is 2 */

struct buffers;

/* What requests look at, and its owners. */
struct launch {
    struct service service;
    struct log log;
    struct budget budget;
    struct buffers *buffers;
    struct presets *presets;
    struct tables *tables;
    struct plans *plans;
};

/* First thing in main: standard streams that are closed become /dev/null, so that no file or socket takes
 * their place and gets what is written to them. A system that gives too little to work with is refused here.
 */
int launch_check_system(struct pe_error *err) PE_CHECKED;
/* Then, before any thread: SIGTERM and SIGINT wait for launch_serve, SIGPIPE never comes. */
void launch_block_signals(void);
/* Loads what the configuration names. On failure nothing is left to release. */
int launch_load(struct launch *launch, const struct config *config, struct pe_error *err) PE_CHECKED;
void launch_unload(struct launch *launch);

/* Serves until a signal comes and all is done. Returns the exit code; with a failure in err. */
int launch_serve(struct launch *launch, struct pe_error *err);
/* Answers one request without a socket: the reply's body to standard output. Returns the exit code. */
int launch_call(struct launch *launch, const struct config_command *command, struct pe_error *err);

#endif
