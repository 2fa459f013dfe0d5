/* SPDX-License-Identifier: MIT
 *
 * Pages for tests; see fence.h. /dev/zero, as POSIX has no anonymous mappings.
 */
#include "fence.h"
#include "expect.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t page_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

void fence_make(struct fence *fence, size_t bytes) {
    const size_t page = page_bytes();
    int zero = open("/dev/zero", O_RDWR);
    fence->room = (bytes + page - 1) / page * page;
    fence->pages = mmap(NULL, fence->room + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, zero, 0);
    ck_assert(zero >= 0 && fence->pages != MAP_FAILED);
    ck_assert(mprotect(fence->pages, page, PROT_NONE) == 0);
    ck_assert(mprotect(fence->pages + page + fence->room, page, PROT_NONE) == 0);
    close(zero);
}

void fence_drop(struct fence *fence) {
    munmap(fence->pages, fence->room + 2 * page_bytes());
}

char *fence_last(const struct fence *fence, size_t n) {
    return fence->pages + page_bytes() + fence->room - n;
}

void *fence_side(const struct fence *fence, size_t n, bool last) {
    return last ? fence_last(fence, n) : fence->pages + page_bytes();
}
