/* SPDX-License-Identifier: MIT
 *
 * Sizes are rounded up to classes, four to an octave: a block is at most a quarter bigger than asked, and
 * that quarter is never touched. Kept blocks stand in one small table with the time of their return; the
 * table is short enough to be searched from end to end, and what is thrown out is what came back longest ago,
 * so sizes that are not asked for any more do not stay. Rejected: lists inside of the free blocks, which
 * touch a cold page of each block on the way.
 */
#define _DEFAULT_SOURCE /* madvise; NOLINT(bugprone-reserved-identifier): named by the C library */

#include "buffers.h"

#include "budget.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#define BUFFERS_SMALL ((size_t)256 << 10) /* below: plain malloc */
#define BUFFERS_HUGE  ((size_t)2 << 20)
#define BUFFERS_ALIGN ((size_t)64)
#define BUFFERS_SLOTS 128

struct slot {
    void *block; /* NULL = free */
    size_t bytes;
    uint64_t returned; /* a count, not a clock */
};

struct buffers {
    pthread_mutex_t lock;
    struct budget *budget;
    size_t keep_bytes, kept;
    uint64_t count, seen; /* blocks that have come back: all, and when it was tidied last */
    struct slot slots[BUFFERS_SLOTS];
};

/* The smallest class that holds `bytes`; bytes itself where a class would not fit size_t. */
static size_t class_of(size_t bytes) {
    size_t octave = BUFFERS_SMALL;
    while (octave <= bytes / 2) {
        octave *= 2;
    }
    size_t step = octave / 4;
    size_t rest = bytes % step;
    return rest == 0 || bytes > SIZE_MAX - step ? bytes : bytes - rest + step;
}

#if defined(__SANITIZE_ADDRESS__) /* which watches malloc's blocks only */
static void *fresh(size_t bytes) {
    void *block = NULL;
    return posix_memalign(&block, BUFFERS_ALIGN, bytes) == 0 ? block : NULL;
}

static void drop(void *block, size_t bytes) {
    (void)bytes;
    free(block);
}
#else
static char *map(size_t bytes) {
    void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block != MAP_FAILED ? block : NULL;
}

/* Of the kernel, not of malloc: the heaps of its threads keep what is free at their end, tens of megabytes
 * for ever, and a small block behind a big one is enough to keep that. */
static void *fresh(size_t bytes) {
    if (bytes < BUFFERS_HUGE) {
        return map(bytes);
    }
    char *start = bytes <= SIZE_MAX - BUFFERS_HUGE ? map(bytes + BUFFERS_HUGE) : NULL;
    if (start == NULL) {
        return NULL;
    }
    size_t before = (BUFFERS_HUGE - (uintptr_t)start % BUFFERS_HUGE) % BUFFERS_HUGE;
    char *block = start + before;
    if (before > 0) {
        munmap(start, before);
    }
    munmap(block + bytes, BUFFERS_HUGE - before);
#ifdef MADV_HUGEPAGE
    madvise(block, bytes, MADV_HUGEPAGE); /* only advice: refused is as good */
#endif
    return block;
}

static void drop(void *block, size_t bytes) {
    munmap(block, bytes);
}
#endif

/* Lock held. What was in the slot, which is free afterwards. */
static struct slot empty_slot(struct buffers *buffers, struct slot *slot) {
    struct slot old = *slot;
    buffers->kept -= slot->bytes;
    *slot = (struct slot){0};
    return old;
}

/* Lock held. A kept block of that class: the one returned last, whose pages may be in the cache still. */
static void *find_kept(struct buffers *buffers, size_t bytes) {
    struct slot *best = NULL;
    for (size_t i = 0; i < BUFFERS_SLOTS; i++) {
        struct slot *slot = &buffers->slots[i];
        if (slot->block != NULL && slot->bytes == bytes &&
            (best == NULL || slot->returned > best->returned)) {
            best = slot;
        }
    }
    return best != NULL ? empty_slot(buffers, best).block : NULL;
}

/* Lock held. A free slot, else the one returned longest ago. */
static struct slot *oldest_slot(struct buffers *buffers, bool or_free) {
    struct slot *best = NULL;
    for (size_t i = 0; i < BUFFERS_SLOTS; i++) {
        struct slot *slot = &buffers->slots[i];
        if (slot->block == NULL && or_free) {
            return slot;
        }
        if (slot->block != NULL && (best == NULL || slot->returned < best->returned)) {
            best = slot;
        }
    }
    return best;
}

static void *take(void *context, size_t bytes) {
    struct buffers *buffers = context;
    if (bytes < BUFFERS_SMALL) {
        return malloc(bytes > 0 ? bytes
                                : 1); /* an arena aligns by itself, and memalign takes thrice as long */
    }
    size_t rounded = class_of(bytes);
    if (!budget_take(buffers->budget, rounded)) {
        return NULL;
    }
    pthread_mutex_lock(&buffers->lock);
    void *block = find_kept(buffers, rounded);
    pthread_mutex_unlock(&buffers->lock);
    block = block != NULL ? block : fresh(rounded);
    if (block == NULL) {
        budget_give(buffers->budget, rounded);
    }
    return block;
}

/* Keeps the block, unless it is too big for that; older ones make room. Freeing happens outside of the lock:
 * it is a system call. */
static void give_back(void *context, void *block, size_t bytes) {
    struct buffers *buffers = context;
    size_t rounded = bytes < BUFFERS_SMALL ? bytes : class_of(bytes);
    if (block == NULL || bytes < BUFFERS_SMALL) {
        free(block);
        return;
    }
    budget_give(buffers->budget, rounded);
    if (rounded > buffers->keep_bytes) {
        drop(block, rounded);
        return;
    }
    struct slot thrown[BUFFERS_SLOTS];
    size_t n = 0;
    pthread_mutex_lock(&buffers->lock);
    while (buffers->kept + rounded > buffers->keep_bytes) {
        thrown[n++] = empty_slot(buffers, oldest_slot(buffers, false));
    }
    struct slot *slot = oldest_slot(buffers, true);
    if (slot->block != NULL) {
        thrown[n++] = empty_slot(buffers, slot);
    }
    *slot = (struct slot){.block = block, .bytes = rounded, .returned = ++buffers->count};
    buffers->kept += rounded;
    pthread_mutex_unlock(&buffers->lock);
    while (n > 0) {
        n--;
        drop(thrown[n].block, thrown[n].bytes);
    }
}

struct buffers *buffers_open(size_t keep_bytes, struct budget *budget) {
    struct buffers *buffers = calloc(1, sizeof *buffers);
    if (buffers != NULL) {
        buffers->keep_bytes = keep_bytes;
        buffers->budget = budget;
        pthread_mutex_init(&buffers->lock, NULL);
    }
    return buffers;
}

void buffers_close(struct buffers *buffers) {
    if (buffers == NULL) {
        return;
    }
    for (size_t i = 0; i < BUFFERS_SLOTS; i++) {
        if (buffers->slots[i].block != NULL) {
            drop(buffers->slots[i].block, buffers->slots[i].bytes);
        }
    }
    pthread_mutex_destroy(&buffers->lock);
    free(buffers);
}

struct pe_allocator buffers_allocator(struct buffers *buffers) {
    return (struct pe_allocator){.alloc = take, .release = give_back, .context = buffers};
}

size_t buffers_kept(struct buffers *buffers) {
    pthread_mutex_lock(&buffers->lock);
    size_t kept = buffers->kept;
    pthread_mutex_unlock(&buffers->lock);
    return kept;
}

size_t buffers_tidy(struct buffers *buffers) {
    struct slot thrown[BUFFERS_SLOTS];
    size_t n = 0;
    pthread_mutex_lock(&buffers->lock);
    size_t bytes = buffers->count == buffers->seen ? buffers->kept : 0;
    buffers->seen = buffers->count;
    for (size_t i = 0; i < BUFFERS_SLOTS && bytes > 0; i++) {
        if (buffers->slots[i].block != NULL) {
            thrown[n++] = empty_slot(buffers, &buffers->slots[i]);
        }
    }
    pthread_mutex_unlock(&buffers->lock);
    while (n > 0) {
        n--;
        drop(thrown[n].block, thrown[n].bytes);
    }
    if (bytes > 0) {
        malloc_trim(0);
    }
    return bytes;
}

void buffers_tune_malloc(void) {
    /* NOLINTBEGIN(concurrency-mt-unsafe): before there are threads */
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 8 << 20);
    /* NOLINTEND(concurrency-mt-unsafe) */
}
