/* SPDX-License-Identifier: MIT
 *
 * Big blocks of memory that are used again. The first touch of a fresh page costs microseconds (the kernel
 * clears it, a virtual machine's host may have to find it), so that a fresh block per request can cost more
 * than computing what goes into it. Blocks of 256 KiB and more that come back are kept, up to a limit, and
 * blocks of 2 MiB and more are aligned and marked for huge pages.
 */
#ifndef BUFFERS_H
#define BUFFERS_H

#include "posenc.h"

struct budget;
struct buffers;

/* HANDLE. At most `keep_bytes` are kept for reuse (0 = none). Blocks of 256 KiB and more that are in use
 * count in the budget, which may be NULL: beyond it there are none. NULL = no memory. */
struct buffers *buffers_open(size_t keep_bytes, struct budget *budget);
void buffers_close(struct buffers *buffers); /* all blocks have come back; NULL is allowed */
/* Its functions, for any thread. Blocks are not cleared, and large ones (256 KiB and
 * more) are 64-byte aligned. */
struct pe_allocator buffers_allocator(struct buffers *buffers);
size_t buffers_kept(struct buffers *buffers); /* bytes kept now */
/* When blocks are kept and none has come back since the last call: frees all of them, and then what malloc
 * itself holds back and can give up; where none was kept, malloc is left as it is. Returns how many bytes
 * were kept. */
size_t buffers_tidy(struct buffers *buffers);

/* Sets malloc's own limits, once, at the start of the process: blocks of some megabytes inside of the
 * libraries are reused, and of what is free at the end of a thread's heap 8 MiB are held back. That much
 * stays for ever, as malloc_trim leaves that end alone; with much less, each large request would touch fresh
 * pages. */
void buffers_tune_malloc(void);

#endif
