/* SPDX-License-Identifier: MIT
 *
 * Want, made to order: the n-th time that our code asks the system for memory, a file, a descriptor or a
 * thread, it gets none. A sweep lets n grow until a run comes through without having met the fault:
 *
 *     for (size_t n = 1; struck; n++) {
 *         fault_arm(n, FAULT_ONCE);
 *         ... the code ...
 *         struck = fault_disarm();
 *         ... what came out must be right, or an honest failure ...
 *     }
 *
 * How: the Makefile links the unit tests with --wrap=malloc and so on for each function of fault.c, so that
 * calls from our objects come here first. Those from inside of shared libraries do not; jansson is given our
 * malloc by json_set_alloc_funcs, and zlib by inflateInit2_, which is wrapped for that. While nothing is
 * armed, which is all of the time in other suites, calls go straight through. Any thread may allocate; one
 * arms.
 */
#ifndef FAULT_H
#define FAULT_H

#include <stdbool.h>
#include <stddef.h>

enum fault_mode {
    FAULT_ONCE,   /* a moment's want: only the n-th request fails */
    FAULT_ONWARDS /* the n-th and all after it */
};

/* From now on; n 0: nothing fails, blocks are only counted. */
void fault_arm(size_t n, enum fault_mode mode);
/* Nothing fails any more. Did something? */
bool fault_disarm(void);
/* Blocks that were allocated while last armed and that we did not free yet. */
size_t fault_live(void);
/* jansson as the daemon has it, until the process ends. */
void fault_setup(void);

#endif
