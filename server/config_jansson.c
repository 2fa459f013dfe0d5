/* SPDX-License-Identifier: MIT
 *
 * The hooks are given no context, so which arena they serve is noted per thread: the one place where that is
 * needed, as jansson belongs to the process. Leaving by longjmp is safe for jansson, which holds no locks and
 * keeps nothing but memory.
 */
#include "config_jansson.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdlib.h>

struct guard {
    struct guard *outer;
    struct pe_arena *arena;
    jmp_buf out;
};

static _Thread_local struct guard *current;

static void *guarded_alloc(size_t bytes) {
    struct guard *guard = current;
    struct pe_error err = {0};
    if (!guard) {
        return malloc(bytes);
    }
    void *block = pe_arena_alloc(guard->arena, bytes, &err);
    if (!block) {
        longjmp(guard->out, 1);
    }
    return block;
}

static void guarded_free(void *block) {
    if (!current) {
        free(block);
    }
}

void jansson_guard_init(void) {
    json_set_alloc_funcs(guarded_alloc, guarded_free);
}

int jansson_guard(void (*step)(void *context), void *context, struct pe_error *err) {
    struct guard guard = {.outer = current, .arena = pe_arena_open(SIZE_MAX, NULL, err)};
    if (!guard.arena) {
        return err->code;
    }
    if (setjmp(guard.out) == 0) {
        current = &guard;
        step(context);
    } else {
        pe_fail(err, PE_ERR_MEMORY, "", "no memory for reading JSON");
    }
    current = guard.outer;
    pe_arena_close(guard.arena);
    return err->code;
}
