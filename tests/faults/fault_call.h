/* SPDX-License-Identifier: MIT
 *
 * One request under want, and what may come of it:
 *
 *   - no call at all (NULL of call_open: the connection is closed);
 *   - 503 `memory` with Retry-After, whose body may be empty only where want goes on;
 *   - the reply of always, to the byte and the header: what failed was not needed;
 *   - of an error its status without a body, where the text of the problem was what there was no memory for;
 *   - of a batch, in which each entry succeeds or fails alone, 503 in the place of an entry.
 *
 * Never another reply, never a block that is not given back, and the same request afterwards is answered as
 * always.
 */
#ifndef FAULT_CALL_H
#define FAULT_CALL_H

#include "unit/call_run.h"

#include "faults/fault.h"

/* A service with all that requests may name: the built-in presets, a table "test_table" [8, 6] in memory,
 * metrics.
 */
void fault_ground_open(struct call_ground *ground);
void fault_ground_close(struct call_ground *ground);

/* Runs a request with every n and in both modes. Of `try` only what goes in is read. `varies`: no two replies
 * to it are alike, only status and headers are compared. Returns how many faults there were. */
size_t fault_sweep(const struct call_ground *ground, const struct call_try *try, bool varies);

#endif
