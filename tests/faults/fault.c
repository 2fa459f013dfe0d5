/* SPDX-License-Identifier: MIT
 *
 * The functions are those by which our code gets something that the system may not have. Each asks `strikes`
 * first and then does as before. Blocks are kept in a list while armed, so that a leak is seen in every
 * flavour and at once; it is searched from its end, as what is freed is mostly young.
 */
#include "faults/fault.h"

#include "config_jansson.h"
#include "posenc_types.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <zlib.h>

#define MAX_LIVE 65536

static atomic_bool armed, struck, onwards;
static atomic_size_t asked, fatal;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list */
static void *live[MAX_LIVE];
static atomic_size_t n_live;

/* ---- Counting ------------------------------------------------------------------------------------------ */

static bool strikes(void) {
    if (!atomic_load(&armed)) {
        return false;
    }
    size_t count = atomic_fetch_add(&asked, 1) + 1, n = atomic_load(&fatal);
    if (n == 0 || count < n || (count > n && !atomic_load(&onwards))) {
        return false;
    }
    atomic_store(&struck, true);
    errno = ENOMEM;
    return true;
}

static void *keep(void *block) {
    if (block != NULL && atomic_load(&armed)) {
        pthread_mutex_lock(&lock);
        if (n_live == MAX_LIVE) {
            abort(); /* a larger list is all it takes */
        }
        live[n_live++] = block;
        pthread_mutex_unlock(&lock);
    }
    return block;
}

/* Was it in the list? */
static bool forget(const void *block) {
    bool found = false;
    if (block == NULL || atomic_load(&n_live) == 0) {
        return false;
    }
    pthread_mutex_lock(&lock);
    for (size_t i = n_live; i > 0 && !found; i--) {
        found = live[i - 1] == block;
        if (found) {
            live[i - 1] = live[--n_live];
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void fault_arm(size_t n, enum fault_mode mode) {
    pthread_mutex_lock(&lock);
    n_live = 0;
    pthread_mutex_unlock(&lock);
    atomic_store(&asked, 0);
    atomic_store(&fatal, n);
    atomic_store(&onwards, mode == FAULT_ONWARDS);
    atomic_store(&struck, false);
    atomic_store(&armed, true);
}

bool fault_disarm(void) {
    atomic_store(&armed, false);
    return atomic_load(&struck);
}

size_t fault_live(void) {
    return atomic_load(&n_live);
}

void fault_setup(void) {
    jansson_guard_init();
}

/* ---- Memory -------------------------------------------------------------------------------------------- */

/* The linker makes these names: NOLINTBEGIN(bugprone-reserved-identifier) */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *block, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
int __real_posix_memalign(void **out, size_t align, size_t bytes);
char *__real_strdup(const char *text);
void __real_free(void *block);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);
int __wrap_posix_memalign(void **out, size_t align, size_t bytes);
char *__wrap_strdup(const char *text);
void __wrap_free(void *block);

void *__wrap_malloc(size_t bytes) {
    return strikes() ? NULL : keep(__real_malloc(bytes));
}

void *__wrap_calloc(size_t n, size_t bytes) {
    return strikes() ? NULL : keep(__real_calloc(n, bytes));
}

void *__wrap_realloc(void *block, size_t bytes) {
    if (strikes()) {
        return NULL;
    }
    bool ours = block == NULL || forget(block);
    void *grown = __real_realloc(block, bytes);
    return ours ? keep(grown) : grown;
}

void *__wrap_aligned_alloc(size_t align, size_t bytes) {
    return strikes() ? NULL : keep(__real_aligned_alloc(align, bytes));
}

int __wrap_posix_memalign(void **out, size_t align, size_t bytes) {
    int failed = strikes() ? ENOMEM : __real_posix_memalign(out, align, bytes);
    if (!failed) {
        keep(*out);
    }
    return failed;
}

char *__wrap_strdup(const char *text) {
    return strikes() ? NULL : keep(__real_strdup(text));
}

void __wrap_free(void *block) {
    forget(block);
    __real_free(block);
}

static void *zlib_alloc(void *context, unsigned n, unsigned bytes) {
    (void)context;
    return calloc(n, bytes);
}

static void zlib_free(void *context, void *block) {
    (void)context;
    free(block);
}

int __real_inflateInit2_(z_stream *z, int bits, const char *version, int size);
/* The linker has libpng's references to it come here, too, which it refuses where the name is hidden. */
PE_API int __wrap_inflateInit2_(z_stream *z, int bits, const char *version, int size);
int __wrap_inflateInit2_(z_stream *z, int bits, const char *version, int size) {
    z->zalloc = zlib_alloc;
    z->zfree = zlib_free;
    return __real_inflateInit2_(z, bits, version, size);
}

/* ---- Files, descriptors, threads ----------------------------------------------------------------------- */

typedef int scandir_filter(const struct dirent *entry);
typedef int scandir_order(const struct dirent **a, const struct dirent **b);
FILE *__real_fopen(const char *path, const char *mode);
DIR *__real_opendir(const char *path);
int __real_scandir(const char *path, struct dirent ***out, scandir_filter *filter, scandir_order *order);
int __real_eventfd(unsigned value, int flags);
int __real_epoll_create1(int flags);
int __real_epoll_ctl(int epoll, int what, int fd, struct epoll_event *event);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *context);
FILE *__wrap_fopen(const char *path, const char *mode);
DIR *__wrap_opendir(const char *path);
int __wrap_scandir(const char *path, struct dirent ***out, scandir_filter *filter, scandir_order *order);
int __wrap_eventfd(unsigned value, int flags);
int __wrap_epoll_create1(int flags);
int __wrap_epoll_ctl(int epoll, int what, int fd, struct epoll_event *event);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *context);

FILE *__wrap_fopen(const char *path, const char *mode) {
    return strikes() ? NULL : __real_fopen(path, mode);
}

DIR *__wrap_opendir(const char *path) {
    return strikes() ? NULL : __real_opendir(path);
}

int __wrap_scandir(const char *path, struct dirent ***out, scandir_filter *filter, scandir_order *order) {
    return strikes() ? -1 : __real_scandir(path, out, filter, order);
}

int __wrap_eventfd(unsigned value, int flags) {
    return strikes() ? -1 : __real_eventfd(value, flags);
}

int __wrap_epoll_create1(int flags) {
    return strikes() ? -1 : __real_epoll_create1(flags);
}

int __wrap_epoll_ctl(int epoll, int what, int fd, struct epoll_event *event) {
    return strikes() ? -1 : __real_epoll_ctl(epoll, what, fd, event);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *context) {
    return strikes() ? EAGAIN : __real_pthread_create(thread, attributes, run, context);
}
/* NOLINTEND(bugprone-reserved-identifier) */
