/* SPDX-License-Identifier: MIT
 *
 * Memory in huge pages, where the system has such, so that what is measured does not wait for its pages.
 */
#ifndef PAGES_H
#define PAGES_H

#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)

/* As pe_allocator has it. */
static inline void *pages_alloc(void *context, size_t bytes) {
    (void)context;
    void *block = aligned_alloc(HUGE_PAGE, (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
#ifdef MADV_HUGEPAGE /* with _DEFAULT_SOURCE */
    if (block && bytes >= HUGE_PAGE) {
        madvise(block, bytes, MADV_HUGEPAGE);
    }
#endif
    return block;
}

static inline void pages_release(void *context, void *block, size_t bytes) {
    (void)context;
    (void)bytes;
    free(block);
}

#endif
