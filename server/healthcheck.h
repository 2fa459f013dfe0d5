/* SPDX-License-Identifier: MIT
 *
 * --healthcheck: asks the running daemon whether it lives, for containers that have no shell and no curl.
 */
#ifndef HEALTHCHECK_H
#define HEALTHCHECK_H

#include "posenc.h"

struct config;

/* GET /healthz at config->admin_listen (at listen where that is empty) by a plain socket, within 2 seconds;
 * addresses that mean "all" become the loopback address. Returns 0 for a 200, else 1 with the reason in err:
 * an exit code. */
int healthcheck_run(const struct config *config, struct pe_error *err);

#endif
