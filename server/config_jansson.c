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
    struct pe_arena *arena;  /* never full by itself: */
    struct pe_arena *budget; /* each piece is counted here first; NULL = not at all */
    struct pe_error *err;
    jmp_buf out;
};

static _Thread_local struct guard *current;

/* The step is left where it stands. What it has told of itself already is not lost. */
_Noreturn static void guard_leave(struct guard *guard, const struct pe_error *why) {
    if (why->code == PE_ERR_LIMIT) {
        pe_fail_limit(guard->err, "", why->limit_name, why->limit, why->got, "%s", why->text);
    } else {
        pe_fail(guard->err, PE_ERR_MEMORY, "", "no memory for reading JSON");
    }
    longjmp(guard->out, 1);
}

/* What an arena counts for a piece, see pe_arena_alloc. */
static size_t piece_bytes(size_t bytes) {
    return bytes > SIZE_MAX - 63 ? SIZE_MAX : (bytes + 63) & ~(size_t)63;
}

static void *guarded_alloc(size_t bytes) {
    struct guard *guard = current;
    struct pe_error err = {0};
    if (!guard) {
        return malloc(bytes);
    }
    void *block = NULL;
    if (!guard->budget || pe_arena_charge(guard->budget, piece_bytes(bytes), &err) == PE_OK) {
        block = pe_arena_alloc(guard->arena, bytes, &err);
    }
    if (!block) {
        guard_leave(guard, &err);
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

int jansson_guard(void (*step)(void *context), void *context, struct pe_arena *budget, struct pe_error *err) {
    struct guard guard = {.outer = current, .budget = budget, .err = err};
    guard.arena = pe_arena_open(SIZE_MAX, NULL, err);
    if (!guard.arena) {
        return err->code;
    }
    if (setjmp(guard.out) == 0) {
        current = &guard;
        step(context);
    }
    current = guard.outer;
    if (budget) {
        pe_arena_discharge(budget, pe_arena_used(guard.arena));
    }
    pe_arena_close(guard.arena);
    return err->code;
}

void jansson_outside(void (*step)(void *context), void *context) {
    struct guard *guard = current;
    current = NULL;
    step(context);
    current = guard;
}
