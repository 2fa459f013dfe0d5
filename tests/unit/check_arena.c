/* SPDX-License-Identifier: MIT
 *
 * The arena: its limit is exact, sizes cannot overflow, and what the allocator gave it gets back.
 */
#include "suites.h"

#include "posenc_fields.h"

#include <stdlib.h>
#include <string.h>

/* An allocator that keeps the books, and fails from the call `fail_at` on (0: never) and over a gigabyte. */
struct books {
    size_t calls, fail_at, blocks, bytes, refused;
};

static void *books_alloc(void *context, size_t bytes) {
    struct books *books = context;
    books->calls++;
    if ((books->fail_at && books->calls >= books->fail_at) || bytes > 1 << 30) {
        books->refused = bytes;
        return NULL;
    }
    books->blocks++;
    books->bytes += bytes;
    return malloc(bytes);
}

static void books_release(void *context, void *block, size_t bytes) {
    struct books *books = context;
    books->blocks--;
    books->bytes -= bytes;
    memset(block, 0xdd, bytes); /* all of it is ours again */
    free(block);
}

static struct pe_arena *arena_of(size_t limit, struct books *books) {
    struct pe_error err = {0};
    const struct pe_allocator allocator = {books_alloc, books_release, books};
    struct pe_arena *arena = pe_arena_open(limit, books ? &allocator : NULL, &err);
    ck_assert_ptr_nonnull(arena);
    ck_assert_int_eq(err.code, PE_OK);
    return arena;
}

START_TEST(limit_is_exact_to_the_byte) {
    static const size_t limits[] = {1, 63, 64, 65, 4095, 4096, 4097, 100000};
    for (size_t i = 0; i < PE_COUNT(limits); i++) {
        struct pe_error err = {0};
        struct pe_arena *arena = arena_of(limits[i], NULL);
        ck_assert_ptr_null(pe_arena_alloc(arena, limits[i] + 1, &err));
        ck_assert_int_eq(err.code, PE_ERR_LIMIT);
        ck_assert_str_eq(err.limit_name, "request_memory");
        ck_assert_uint_eq(err.limit, limits[i]);
        ck_assert_uint_eq(err.got, limits[i] + 1);
        ck_assert_uint_eq(pe_arena_used(arena), 0);
        struct pe_error none = {0};
        ck_assert_ptr_nonnull(pe_arena_alloc(arena, limits[i], &none));
        ck_assert_uint_eq(pe_arena_used(arena), limits[i]);
        ck_assert_ptr_null(pe_arena_alloc(arena, 1, &none));
        ck_assert_int_eq(none.code, PE_ERR_LIMIT);
        ck_assert_uint_eq(none.got, limits[i] + 1);
        pe_arena_close(arena);
    }
}
END_TEST

/* What was taken elsewhere counts, and what does not fit is refused without being counted. */
START_TEST(charges_count_against_the_limit) {
    struct books books = {0};
    struct pe_error err = {0};
    struct pe_arena *arena = arena_of(4096, &books);
    ck_assert_int_eq(pe_arena_charge(arena, 4000, &err), PE_OK);
    ck_assert_uint_eq(pe_arena_used(arena), 4000);
    ck_assert_int_eq(pe_arena_charge(arena, 97, &err), PE_ERR_LIMIT);
    ck_assert_uint_eq(err.got, 4097);
    ck_assert_uint_eq(pe_arena_used(arena), 4000);
    pe_arena_close(arena);
}
END_TEST

/* Many pieces of one byte must not take more of the machine than the limit says. */
START_TEST(small_pieces_count_as_what_they_take) {
    struct books books = {0};
    struct pe_error err = {0};
    struct pe_arena *arena = arena_of(1 << 16, &books);
    size_t n = 0;
    while (pe_arena_alloc(arena, 1, &err)) {
        n++;
    }
    ck_assert_int_eq(err.code, PE_ERR_LIMIT);
    ck_assert_uint_eq(n, (1 << 16) / 64);
    pe_arena_close(arena);
}
END_TEST

START_TEST(pieces_are_aligned_and_do_not_overlap) {
    static const size_t sizes[] = {1, 0, 63, 64, 65, 1000, 4095, 4096, 20000, 3, 16384, 7};
    struct pe_error err = {0};
    struct pe_arena *arena = arena_of(1 << 20, NULL);
    unsigned char *piece[PE_COUNT(sizes)];
    for (size_t i = 0; i < PE_COUNT(sizes); i++) {
        piece[i] = pe_arena_alloc(arena, sizes[i], &err);
        ck_assert_ptr_nonnull(piece[i]);
        ck_assert_uint_eq((uintptr_t)piece[i] % 64, 0);
        if (sizes[i]) {
            memset(piece[i], (int)i + 1, sizes[i]);
        }
    }
    for (size_t i = 0; i < PE_COUNT(sizes); i++) {
        for (size_t b = 0; b < sizes[i]; b++) {
            ck_assert_uint_eq(piece[i][b], i + 1);
        }
    }
    pe_arena_close(arena);
}
END_TEST

/* Whoever refuses, the arena or its allocator, sees the true size and not what is left of it after wrapping.
 */
START_TEST(sizes_near_the_largest_are_refused) {
    for (size_t below = 0; below < 300; below++) {
        struct books books = {0};
        struct pe_error err = {0}, next = {0};
        struct pe_arena *arena = arena_of(SIZE_MAX, &books);
        ck_assert_ptr_nonnull(pe_arena_alloc(arena, 100, &err));
        ck_assert_ptr_null(pe_arena_alloc(arena, SIZE_MAX - below, &err));
        ck_assert(err.code == PE_ERR_LIMIT || err.code == PE_ERR_MEMORY);
        ck_assert_uint_ge(err.code == PE_ERR_LIMIT ? err.got : books.refused, SIZE_MAX - below);
        ck_assert_ptr_nonnull(pe_arena_alloc(arena, 100, &next));
        pe_arena_close(arena);
    }
}
END_TEST

START_TEST(product_of_an_array_cannot_wrap) {
    struct pe_error err = {0};
    struct pe_arena *arena = arena_of(SIZE_MAX, NULL);
    ck_assert_ptr_null(pe_arena_array(arena, SIZE_MAX / 2 + 2, 2, &err)); /* 2 after wrapping */
    ck_assert_int_eq(err.code, PE_ERR_LIMIT);
    pe_arena_close(arena);
}
END_TEST

START_TEST(arrays_are_cleared) {
    struct pe_error err = {0};
    struct pe_arena *arena = arena_of(1 << 20, NULL);
    static const size_t counts[] = {1, 100, 5000};
    for (size_t i = 0; i < PE_COUNT(counts); i++) {
        const unsigned char *array = pe_arena_array(arena, counts[i], 3, &err);
        ck_assert_ptr_nonnull(array);
        for (size_t b = 0; b < 3 * counts[i]; b++) {
            ck_assert_uint_eq(array[b], 0);
        }
    }
    ck_assert_ptr_nonnull(pe_arena_array(arena, 0, 8, &err));
    ck_assert_ptr_nonnull(pe_arena_array(arena, 0, SIZE_MAX, &err));
    pe_arena_close(arena);
}
END_TEST

START_TEST(texts_are_copied_and_terminated) {
    struct pe_error err = {0};
    struct pe_arena *arena = arena_of(1 << 10, NULL);
    ck_assert_str_eq(pe_arena_text(arena, "half_minus_one", 4, &err), "half");
    ck_assert_str_eq(pe_arena_text(arena, NULL, 0, &err), "");
    ck_assert_mem_eq(pe_arena_text(arena, "a\0b", 3, &err), "a\0b", 4);
    ck_assert_ptr_null(pe_arena_text(arena, "", SIZE_MAX, &err));
    ck_assert_int_eq(err.code, PE_ERR_LIMIT);
    pe_arena_close(arena);
}
END_TEST

START_TEST(blocks_come_from_the_allocator_and_go_back) {
    struct books books = {0};
    struct pe_error err = {0};
    struct pe_arena *arena = arena_of(1 << 20, &books);
    for (size_t i = 0; i < 100; i++) {
        ck_assert_ptr_nonnull(pe_arena_alloc(arena, 37 * i, &err));
    }
    ck_assert_ptr_nonnull(pe_arena_alloc(arena, 300000, &err));
    ck_assert_uint_gt(books.blocks, 1);
    ck_assert_uint_gt(books.bytes, 300000);
    pe_arena_close(arena);
    ck_assert_uint_eq(books.blocks, 0);
    ck_assert_uint_eq(books.bytes, 0);
}
END_TEST

START_TEST(failed_allocator_is_a_memory_error_and_leaks_nothing) {
    for (size_t fail_at = 1; fail_at < 5; fail_at++) {
        struct books books = {.fail_at = fail_at};
        struct pe_error err = {0};
        struct pe_arena *arena = arena_of(1 << 20, &books);
        size_t n = 0;
        while (n < 100 && pe_arena_alloc(arena, n % 2 ? 5000 : 50, &err)) {
            n++;
        }
        ck_assert_int_eq(err.code, PE_ERR_MEMORY);
        size_t used = pe_arena_used(arena);
        ck_assert_uint_le(used, n * 5056);
        books.fail_at = 0;
        struct pe_error next = {0};
        ck_assert_ptr_nonnull(pe_arena_alloc(arena, 5000, &next)); /* memory is back: so is the arena */
        pe_arena_close(arena);
        ck_assert_uint_eq(books.blocks, 0);
    }
}
END_TEST

/* A chain of calls may be checked once, at its end, even when the arena itself could not be opened. */
START_TEST(after_a_failure_nothing_is_taken) {
    struct pe_error err = {0};
    pe_fail(&err, PE_ERR_MEMORY, "", "no memory for an arena");
    ck_assert_ptr_null(pe_arena_alloc(NULL, 10, &err));
    ck_assert_ptr_null(pe_arena_array(NULL, 10, 10, &err));
    ck_assert_ptr_null(pe_arena_text(NULL, "text", 4, &err));
    ck_assert_str_eq(err.text, "no memory for an arena");
}
END_TEST

START_TEST(closing_nothing_is_allowed) {
    pe_arena_close(NULL);
    struct pe_arena *arena = arena_of(0, NULL);
    struct pe_error err = {0};
    ck_assert_uint_eq(pe_arena_limit(arena), 0);
    ck_assert_ptr_null(pe_arena_alloc(arena, 1, &err));
    ck_assert_int_eq(err.code, PE_ERR_LIMIT);
    pe_arena_close(arena);
}
END_TEST

Suite *arena_suite(void) {
    Suite *suite = suite_create("arena");
    TCase *tests = tcase_create("arena");
    tcase_add_test(tests, limit_is_exact_to_the_byte);
    tcase_add_test(tests, charges_count_against_the_limit);
    tcase_add_test(tests, small_pieces_count_as_what_they_take);
    tcase_add_test(tests, pieces_are_aligned_and_do_not_overlap);
    tcase_add_test(tests, sizes_near_the_largest_are_refused);
    tcase_add_test(tests, product_of_an_array_cannot_wrap);
    tcase_add_test(tests, arrays_are_cleared);
    tcase_add_test(tests, texts_are_copied_and_terminated);
    tcase_add_test(tests, blocks_come_from_the_allocator_and_go_back);
    tcase_add_test(tests, failed_allocator_is_a_memory_error_and_leaks_nothing);
    tcase_add_test(tests, after_a_failure_nothing_is_taken);
    tcase_add_test(tests, closing_nothing_is_allowed);
    suite_add_tcase(suite, tests);
    return suite;
}
