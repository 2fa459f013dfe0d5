/* SPDX-License-Identifier: MIT
 *
 * Tests on weaker instruction sets than this processor's. The Makefile links tests with --wrap=pe_instructions, so
 * that the library asks here, and is told no more than a limit: at first that of the environment,
 * `PE_INSTRUCTIONS=plain build/release/unit wave`, or else none.
 */
#ifndef INSTRUCTIONS_H
#define INSTRUCTIONS_H

#include "kernels/target.h"

/* Asked by what a plan or a call begins with: what is open already may keep what it was told. */
void instructions_limit(enum pe_instructions most);
const char *instructions_name(enum pe_instructions instructions);

#endif
