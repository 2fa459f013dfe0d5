/* SPDX-License-Identifier: MIT
 *
 * Pages for tests; see fence.h. /dev/zero, as POSIX has no anonymous mappings.
 */
#include "fence.h"

#include <check.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

void fence_make(struct fence *fence, size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int zero = open("/dev/zero", O_RDWR);
    fence->room = (bytes + page - 1) / page * page;
    fence->pages = mmap(NULL, fence->room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE, zero, 0);
    ck_assert(zero >= 0 && fence->pages != MAP_FAILED);
    ck_assert(mprotect(fence->pages + fence->room, page, PROT_NONE) == 0);
    close(zero);
}

void fence_drop(struct fence *fence) {
    munmap(fence->pages, fence->room + (size_t)sysconf(_SC_PAGESIZE));
}

char *fence_last(const struct fence *fence, size_t n) {
    return fence->pages + fence->room - n;
}
