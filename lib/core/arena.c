/* SPDX-License-Identifier: MIT
 *
 * Bump memory with a hard limit: one owner for everything that a request needs, dropped at once. Small
 * pieces share chunks; a piece of BIG bytes or more is a block of its own, so that the embedding program can
 * give it from a pool. Under AddressSanitizer every piece is a block of its own, so that an overrun inside
 * the arena is seen.
 */
#include "posenc.h"

#include <stdlib.h>
#include <string.h>

#define ALIGN ((size_t)64)
#define CHUNK ((size_t)16 << 10)
#define BIG   ((size_t)4 << 10)

#if defined(__SANITIZE_ADDRESS__)
#define SEPARATE true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SEPARATE true
#endif
#endif
#ifndef SEPARATE
#define SEPARATE false
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
    struct pe_arena *arena = calloc(1, sizeof *arena);
    if (!arena) {
        pe_fail(err, PE_ERR_MEMORY, "", "no memory for an arena");
        return NULL;
    }
    arena->limit = limit;
    if (allocator)
        arena->allocator = *allocator;
    if (!arena->allocator.alloc || !arena->allocator.release) {
        arena->allocator.alloc = plain_alloc;
        arena->allocator.release = plain_release;
    }
    return arena;
}

void pe_arena_close(struct pe_arena *arena) {
    if (!arena)
        return;
    for (struct block *b = arena->blocks, *next; b; b = next) {
        next = b->next;
        arena->allocator.release(arena->allocator.context, b->raw, b->raw_bytes);
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
    return usable;
}

void *pe_arena_alloc(struct pe_arena *arena, size_t bytes, struct pe_error *err) {
    size_t need = bytes ? bytes : 1;
    if (need > SIZE_MAX - 2 * ALIGN - sizeof(struct block) || need > arena->limit - arena->used) {
        pe_fail_limit(err, "", "request_memory", arena->limit, (uint64_t)arena->used + need,
                      "needs more than the %zu bytes of memory that one request may take", arena->limit);
        return NULL;
    }
    size_t rounded = (need + ALIGN - 1) & ~(ALIGN - 1);
    unsigned char *piece;
    if (SEPARATE || rounded >= BIG) {
        piece = block_open(arena, need, err);
    } else {
        if ((size_t)(arena->end - arena->free) < rounded) {
            unsigned char *chunk = block_open(arena, CHUNK, err);
            if (!chunk)
                return NULL;
            arena->free = chunk;
            arena->end = chunk + CHUNK;
        }
        piece = arena->free;
        arena->free += rounded;
    }
    if (piece)
        arena->used += need;
    return piece;
}

void *pe_arena_array(struct pe_arena *arena, size_t n, size_t size, struct pe_error *err) {
    size_t bytes, factors[2] = {n, size};
    if (!pe_size_product(factors, 2, &bytes))
        bytes = SIZE_MAX;
    void *array = pe_arena_alloc(arena, bytes, err);
    if (array)
        memset(array, 0, bytes);
    return array;
}

char *pe_arena_text(struct pe_arena *arena, const char *text, size_t length, struct pe_error *err) {
    char *copy = pe_arena_alloc(arena, length == SIZE_MAX ? length : length + 1, err);
    if (!copy)
        return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

size_t pe_arena_used(const struct pe_arena *arena) {
    return arena->used;
}

size_t pe_arena_limit(const struct pe_arena *arena) {
    return arena->limit;
}
