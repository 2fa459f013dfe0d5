/* SPDX-License-Identifier: MIT
 *
 * Stands in for pe_instructions in tests: the lesser of what there is and of the limit.
 */
#include "instructions.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[PE_INSTRUCTIONS_COUNT] = {
    [PE_INSTRUCTIONS_PLAIN] = "plain", [PE_INSTRUCTIONS_AVX2] = "avx2", [PE_INSTRUCTIONS_AVX512] = "avx512"};

static atomic_int limit = -1; /* unknown */

enum pe_instructions __real_pe_instructions(void);
enum pe_instructions __wrap_pe_instructions(void);

static int limit_of_environment(void) {
    const char *name = getenv("PE_INSTRUCTIONS");
    for (int i = 0; name && *name && i < PE_INSTRUCTIONS_COUNT; i++) {
        if (strcmp(name, names[i]) == 0) {
            return i;
        }
    }
    if (name && *name) { /* to go on would test something else than what was asked for */
        fprintf(stderr, "PE_INSTRUCTIONS is plain, avx2 or avx512, not \"%s\"\n", name);
        abort();
    }
    return PE_INSTRUCTIONS_COUNT - 1;
}

enum pe_instructions __wrap_pe_instructions(void) {
    enum pe_instructions has = __real_pe_instructions();
    int most = atomic_load(&limit);
    if (most < 0) {
        most = limit_of_environment();
        atomic_store(&limit, most);
    }
    return most < (int)has ? (enum pe_instructions)most : has;
}

void instructions_limit(enum pe_instructions most) {
    int allowed = limit_of_environment();
    atomic_store(&limit, (int)most < allowed ? (int)most : allowed);
}

const char *instructions_name(enum pe_instructions instructions) {
    return names[instructions];
}
