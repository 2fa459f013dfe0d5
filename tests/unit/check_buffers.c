/* SPDX-License-Identifier: MIT
 *
 * Big blocks come back: the same memory is given out again, never more than the limit is kept, and blocks of
 * the sizes asked for are whole and apart.
 */
#include "suites.h"

#include "net/buffers.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

START_TEST(a_block_comes_back) {
    struct buffers *buffers = buffers_open(64 * MIB, NULL);
    struct pe_allocator a = buffers_allocator(buffers);
    void *block = a.alloc(a.context, 3 * MIB);
    ck_assert_ptr_nonnull(block);
    memset(block, 1, 3 * MIB);
    a.release(a.context, block, 3 * MIB);
    ck_assert_uint_eq(buffers_kept(buffers), 3 * MIB);
    ck_assert_ptr_eq(a.alloc(a.context, 3 * MIB), block);
    ck_assert_uint_eq(buffers_kept(buffers), 0);
    a.release(a.context, block, 3 * MIB);
    /* a little less is of the same class, twice as much is not */
    ck_assert_ptr_eq(a.alloc(a.context, 3 * MIB - 1000), block);
    void *other = a.alloc(a.context, 6 * MIB);
    ck_assert_ptr_ne(other, block);
    a.release(a.context, block, 3 * MIB - 1000);
    a.release(a.context, other, 6 * MIB);
    buffers_close(buffers);
}
END_TEST

START_TEST(every_size_is_whole_and_aligned) {
    struct buffers *buffers = buffers_open(64 * MIB, NULL);
    struct pe_allocator a = buffers_allocator(buffers);
    static const size_t sizes[] = {0,           1,
                                   63,          256 * KIB - 1,
                                   256 * KIB,   256 * KIB + 1,
                                   320 * KIB,   320 * KIB + 1,
                                   511 * KIB,   512 * KIB + 1,
                                   2 * MIB - 1, 2 * MIB,
                                   2 * MIB + 1, 5 * MIB + 3,
                                   33 * MIB};
    enum { N = sizeof sizes / sizeof sizes[0] };
    unsigned char *blocks[N];
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < N; i++) {
            blocks[i] = a.alloc(a.context, sizes[i]);
            ck_assert_ptr_nonnull(blocks[i]);
            ck_assert_uint_eq((uintptr_t)blocks[i] % (sizes[i] < 256 * KIB ? _Alignof(max_align_t) : 64), 0);
            memset(blocks[i], (int)i, sizes[i]);
        }
        for (size_t i = 0; i < N; i++) { /* nobody wrote into somebody else's block */
            ck_assert(sizes[i] == 0 || (blocks[i][0] == i && blocks[i][sizes[i] - 1] == i));
            a.release(a.context, blocks[i], sizes[i]);
        }
    }
    buffers_close(buffers);
}
END_TEST

START_TEST(the_limit_holds) {
    struct buffers *buffers = buffers_open(10 * MIB, NULL);
    struct pe_allocator a = buffers_allocator(buffers);
    void *blocks[8];
    for (size_t i = 0; i < 8; i++) {
        blocks[i] = a.alloc(a.context, 3 * MIB);
    }
    for (size_t i = 0; i < 8; i++) {
        a.release(a.context, blocks[i], 3 * MIB);
        ck_assert_uint_le(buffers_kept(buffers), 10 * MIB);
    }
    ck_assert_uint_eq(buffers_kept(buffers), 9 * MIB);
    void *big = a.alloc(a.context, 11 * MIB); /* bigger than all that may be kept */
    a.release(a.context, big, 11 * MIB);
    ck_assert_uint_eq(buffers_kept(buffers), 9 * MIB);
    buffers_close(buffers);
}
END_TEST

/* What came back longest ago makes room. */
START_TEST(the_oldest_goes) {
    struct buffers *buffers = buffers_open(8 * MIB, NULL);
    struct pe_allocator a = buffers_allocator(buffers);
    void *old = a.alloc(a.context, 4 * MIB), *middle = a.alloc(a.context, 2 * MIB);
    a.release(a.context, old, 4 * MIB);
    a.release(a.context, middle, 2 * MIB);
    void *new = a.alloc(a.context, 3 * MIB);
    a.release(a.context, new, 3 * MIB);
    ck_assert_uint_eq(buffers_kept(buffers), 5 * MIB);
    ck_assert_ptr_eq(a.alloc(a.context, 2 * MIB), middle);
    ck_assert_ptr_eq(a.alloc(a.context, 3 * MIB), new);
    a.release(a.context, middle, 2 * MIB);
    a.release(a.context, new, 3 * MIB);
    buffers_close(buffers);
}
END_TEST

START_TEST(more_blocks_than_slots) {
    struct buffers *buffers = buffers_open(1024 * MIB, NULL);
    struct pe_allocator a = buffers_allocator(buffers);
    void *blocks[300];
    for (size_t i = 0; i < 300; i++) {
        blocks[i] = a.alloc(a.context, 256 * KIB);
    }
    for (size_t i = 0; i < 300; i++) {
        a.release(a.context, blocks[i], 256 * KIB);
    }
    ck_assert_uint_gt(buffers_kept(buffers), 0);
    ck_assert_uint_lt(buffers_kept(buffers), 300 * 256 * KIB);
    ck_assert_ptr_eq(a.alloc(a.context, 256 * KIB), blocks[299]); /* the last one is the warmest */
    a.release(a.context, blocks[299], 256 * KIB);
    buffers_close(buffers);
}
END_TEST

START_TEST(nothing_kept_where_nothing_may_be) {
    struct buffers *buffers = buffers_open(0, NULL);
    struct pe_allocator a = buffers_allocator(buffers);
    void *block = a.alloc(a.context, 3 * MIB);
    a.release(a.context, block, 3 * MIB);
    a.release(a.context, NULL, 0);
    ck_assert_uint_eq(buffers_kept(buffers), 0);
    buffers_close(buffers);
}
END_TEST

/* A burst is kept for the next one; when none comes until the second look, it is given back. */
START_TEST(unused_blocks_go) {
    struct buffers *buffers = buffers_open(64 * MIB, NULL);
    struct pe_allocator a = buffers_allocator(buffers);
    ck_assert_uint_eq(buffers_tidy(buffers), 0);
    void *block = a.alloc(a.context, 3 * MIB), *other = a.alloc(a.context, 1 * MIB);
    a.release(a.context, block, 3 * MIB);
    ck_assert_uint_eq(buffers_tidy(buffers), 0); /* used since the last look */
    a.release(a.context, other, 1 * MIB);
    ck_assert_uint_eq(buffers_tidy(buffers), 0);
    ck_assert_uint_eq(buffers_kept(buffers), 4 * MIB);
    ck_assert_uint_eq(buffers_tidy(buffers), 4 * MIB);
    ck_assert_uint_eq(buffers_kept(buffers), 0);
    ck_assert_uint_eq(buffers_tidy(buffers), 0);
    block = a.alloc(a.context, 3 * MIB); /* and all goes on */
    ck_assert_ptr_nonnull(block);
    a.release(a.context, block, 3 * MIB);
    ck_assert_uint_eq(buffers_kept(buffers), 3 * MIB);
    buffers_close(buffers);
}
END_TEST

/* The sanitizers' own allocators end the process instead. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
START_TEST(too_much_is_null) {
    struct buffers *buffers = buffers_open(0, NULL);
    struct pe_allocator a = buffers_allocator(buffers);
    ck_assert_ptr_null(a.alloc(a.context, SIZE_MAX / 2));
    ck_assert_ptr_null(a.alloc(a.context, SIZE_MAX - 5));
    buffers_close(buffers);
}
END_TEST
#endif

static void *churn(void *context) {
    struct pe_allocator *a = context;
    for (size_t i = 0; i < 2000; i++) {
        size_t size = (256 + 64 * (i % 7)) * KIB;
        unsigned char *block = a->alloc(a->context, size);
        block[0] = block[size - 1] = (unsigned char)i;
        if (block[0] != (unsigned char)i) {
            return a;
        }
        a->release(a->context, block, size);
    }
    return NULL;
}

START_TEST(several_threads) {
    struct buffers *buffers = buffers_open(2 * MIB, NULL);
    struct pe_allocator a = buffers_allocator(buffers);
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, churn, &a), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        ck_assert_ptr_null(wrong);
    }
    ck_assert_uint_le(buffers_kept(buffers), 2 * MIB);
    buffers_close(buffers);
}
END_TEST

Suite *buffers_suite(void) {
    Suite *suite = suite_create("buffers");
    TCase *tests = tcase_create("buffers");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_block_comes_back);
    tcase_add_test(tests, every_size_is_whole_and_aligned);
    tcase_add_test(tests, the_limit_holds);
    tcase_add_test(tests, the_oldest_goes);
    tcase_add_test(tests, more_blocks_than_slots);
    tcase_add_test(tests, nothing_kept_where_nothing_may_be);
    tcase_add_test(tests, unused_blocks_go);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    tcase_add_test(tests, too_much_is_null);
#endif
    tcase_add_test(tests, several_threads);
    suite_add_tcase(suite, tests);
    return suite;
}
