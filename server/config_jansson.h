/* SPDX-License-Identifier: MIT
 *
 * jansson without its faults where memory is short. Up to 2.14 its reader passes over a failed allocation
 * inside of a long token: bytes are missing from it then, the search for its closing quote runs beyond the
 * buffer, or an assertion ends the process. So while it reads, its memory is an arena, and a failure leaves
 * it at once.
 */
#ifndef CONFIG_JANSSON_H
#define CONFIG_JANSSON_H

#include "posenc.h"

/* Once, before there are threads and jansson's objects: its hooks belong to the whole process. Without this,
 * jansson_guard changes nothing. */
void jansson_guard_init(void);
/* step(context), in which every allocation of jansson succeeds, or else the step is left where it stands and
 * err is PE_ERR_MEMORY, or PE_ERR_LIMIT where `budget` is full: until the end of the step all of it counts
 * there, too (NULL: nowhere). What jansson makes in it dies with its end. So a step must own nothing while it
 * calls jansson but what its context or an arena knows. May be nested; any thread. Returns err->code. */
int jansson_guard(void (*step)(void *context), void *context, struct pe_arena *budget, struct pe_error *err);
/* step(context), for which a guard around it does not hold: what jansson makes in it stays. For writing:
 * later releases than 2.14 keep memory of it for the next time, and writing survives failed allocations in
 * all. */
void jansson_outside(void (*step)(void *context), void *context);

#endif
