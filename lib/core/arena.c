/* SPDX-License-Identifier: MIT
 *
 * Bump memory with a hard limit: one owner for everything that a request needs, dropped at once. Small
 * pieces share chunks; a piece of BIG bytes or more is a block of its own, so that the embedding program can
 * give it from a pool. Under AddressSanitizer every piece is a block of its own with a poisoned end, so that
 * an overrun inside the arena is seen.
 *
 * A piece counts as its size rounded up to the alignment, since that is what it takes: were a text of one
 * byte counted as one, a request of many could take 64 times its limit. The last piece is the exception: it
 * may fill the limit to the byte.
 */
#include "posenc.h"

#include <stdlib.h>
#include <string.h>

#define ALIGN   ((size_t)64)
#define CHUNK   ((size_t)16 << 10)
#define BIG     ((size_t)4 << 10)
#define CLEARED ((size_t)1 << 20) /* bytes between two questions whether to stop */

#if defined(__SANITIZE_ADDRESS__)
#define SEPARATE true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SEPARATE true
#endif
#endif
#ifdef SEPARATE
#include <sanitizer/asan_interface.h>
#else
#define SEPARATE                                 false
#define ASAN_POISON_MEMORY_REGION(start, size)   ((void)0)
#define ASAN_UNPOISON_MEMORY_REGION(start, size) ((void)0)
#endif

struct block {
    struct block *next;
    void *raw; /* what the allocator gave */
    size_t raw_bytes;
};

struct pe_arena {
    struct pe_allocator allocator;
    size_t limit, used;
    struct block *blocks;
    unsigned char *free, *end; /* the rest of the current chunk */
    struct pe_result_rule rule;
};

static void *plain_alloc(void *context, size_t bytes) {
    (void)context;
    return malloc(bytes);
}

static void plain_release(void *context, void *block, size_t bytes) {
    (void)context;
    (void)bytes;
    free(block);
}

struct pe_arena *pe_arena_open(size_t limit, const struct pe_allocator *allocator, struct pe_error *err) {
    struct pe_arena *arena = err->code ? NULL : calloc(1, sizeof *arena);
    if (!arena) {
        pe_fail(err, PE_ERR_MEMORY, "", "no memory for an arena");
        return NULL;
    }
    arena->limit = limit;
    if (allocator) {
        arena->allocator = *allocator;
    }
    if (!arena->allocator.alloc || !arena->allocator.release) {
        arena->allocator.alloc = plain_alloc;
        arena->allocator.release = plain_release;
    }
    return arena;
}

void pe_arena_close(struct pe_arena *arena) {
    if (!arena) {
        return;
    }
    for (struct block *b = arena->blocks, *next; b; b = next) {
        struct block block = *b;
        next = block.next;
        ASAN_UNPOISON_MEMORY_REGION(block.raw, block.raw_bytes);
        arena->allocator.release(arena->allocator.context, block.raw, block.raw_bytes);
    }
    free(arena);
}

/* A block whose usable part starts at an aligned address after its header. */
static unsigned char *block_open(struct pe_arena *arena, size_t bytes, struct pe_error *err) {
    size_t raw_bytes = bytes + sizeof(struct block) + ALIGN;
    unsigned char *raw = arena->allocator.alloc(arena->allocator.context, raw_bytes);
    if (!raw) {
        pe_fail(err, PE_ERR_MEMORY, "", "no memory for %zu bytes", bytes);
        return NULL;
    }
    uintptr_t start = ((uintptr_t)raw + sizeof(struct block) + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1);
    unsigned char *usable = raw + (start - (uintptr_t)raw);
    struct block header = {.next = arena->blocks, .raw = raw, .raw_bytes = raw_bytes};
    memcpy(usable - sizeof header, &header, sizeof header);
    arena->blocks = (struct block *)(void *)(usable - sizeof header);
    ASAN_POISON_MEMORY_REGION(usable + bytes, raw_bytes - (size_t)(usable + bytes - raw));
    return usable;
}

/* A piece of a chunk; what was left of the chunk before is given up. */
static unsigned char *chunk_take(struct pe_arena *arena, size_t rounded, struct pe_error *err) {
    if (!arena->free || (size_t)(arena->end - arena->free) < rounded) {
        unsigned char *chunk = block_open(arena, CHUNK, err);
        if (!chunk) {
            return NULL;
        }
        arena->free = chunk;
        arena->end = chunk + CHUNK;
    }
    unsigned char *piece = arena->free;
    arena->free += rounded;
    return piece;
}

/* Room for `need` more bytes, or an error. Without an arena there is none: so are defaults parsed. */
static int arena_fits(const struct pe_arena *arena, size_t need, struct pe_error *err) {
    if (err->code) {
        return err->code;
    }
    if (!arena) {
        return pe_fail(err, PE_ERR_MEMORY, "", "no arena for %zu bytes", need);
    }
    if (need <= SIZE_MAX - 2 * ALIGN - sizeof(struct block) && need <= arena->limit - arena->used) {
        return PE_OK;
    }
    uint64_t got = need > UINT64_MAX - arena->used ? UINT64_MAX : (uint64_t)arena->used + need;
    return pe_fail_limit(err, "", "request_memory", arena->limit, got,
                         "needs more than the %zu bytes of memory that one request may take", arena->limit);
}

/* Pieces count as what they take; the last one may fill the limit to the byte. */
static void arena_count(struct pe_arena *arena, size_t rounded) {
    const size_t left = arena->limit - arena->used;
    arena->used += rounded < left ? rounded : left;
}

void *pe_arena_alloc(struct pe_arena *arena, size_t bytes, struct pe_error *err) {
    const size_t need = bytes ? bytes : 1;
    if (arena_fits(arena, need, err)) {
        return NULL;
    }
    const size_t rounded = (need + ALIGN - 1) & ~(ALIGN - 1);
    unsigned char *piece =
        SEPARATE || rounded >= BIG ? block_open(arena, need, err) : chunk_take(arena, rounded, err);
    if (piece) {
        arena_count(arena, rounded);
    }
    return piece;
}

int pe_arena_charge(struct pe_arena *arena, size_t bytes, struct pe_error *err) {
    if (arena_fits(arena, bytes, err)) {
        return err->code;
    }
    arena_count(arena, bytes);
    return PE_OK;
}

void pe_arena_discharge(struct pe_arena *arena, size_t bytes) {
    arena->used -= bytes < arena->used ? bytes : arena->used;
}

void *pe_arena_array(struct pe_arena *arena, size_t n, size_t size, struct pe_error *err) {
    size_t bytes, factors[2] = {n, size};
    if (!pe_size_product(factors, 2, &bytes)) {
        bytes = SIZE_MAX;
    }
    unsigned char *array = pe_arena_alloc(arena, bytes, err);
    for (size_t done = 0, step; array && done < bytes; done += step) {
        step = bytes - done < CLEARED ? bytes - done : CLEARED;
        memset(array + done, 0, step);
        if (pe_error_poll(err)) {
            return NULL;
        }
    }
    return array;
}

char *pe_arena_text(struct pe_arena *arena, const char *text, size_t length, struct pe_error *err) {
    char *copy = pe_arena_alloc(arena, length == SIZE_MAX ? length : length + 1, err);
    if (!copy) {
        return NULL;
    }
    if (length) { /* text may be NULL */
        memcpy(copy, text, length);
    }
    copy[length] = '\0';
    return copy;
}

void pe_arena_rule_results(struct pe_arena *arena, const struct pe_result_rule *rule) {
    arena->rule = rule ? *rule : (struct pe_result_rule){0};
}

int pe_result_ask(struct pe_arena *arena, enum pe_dtype dtype, int rank, const size_t *dim,
                  struct pe_error *err) {
    struct pe_tensor shape = {.dtype = dtype, .rank = rank};
    struct pe_error none = {0};
    if (err->code || !arena || !arena->rule.allowed) {
        return err->code;
    }
    for (int i = 0; i < rank; i++) {
        shape.dim[i] = dim[i];
    }
    if (arena_fits(arena, pe_tensor_bytes(&shape), &none)) {
        return PE_OK; /* to be told by who takes it, with its path */
    }
    return arena->rule.allowed(arena->rule.context, &shape, err);
}

size_t pe_arena_used(const struct pe_arena *arena) {
    return arena->used;
}

size_t pe_arena_limit(const struct pe_arena *arena) {
    return arena->limit;
}
