/* SPDX-License-Identifier: MIT
 *
 * What the fuzzers share; see target.h.
 */
#include "fuzz/target.h"

#include "core/utf8.h"
#include "random.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn void fuzz_fail(const char *file, int line, const char *promise, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s:%d: broken: %s\n    ", file, line, promise);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

/* FNV-1a, then splitmix64. */
uint64_t fuzz_seed(const void *bytes, size_t n) {
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3;
    }
    return hash;
}

size_t fuzz_below(uint64_t *state, size_t n) {
    return (size_t)(random_next(state) % n);
}

void *fuzz_copy(const void *bytes, size_t n) {
    void *copy = malloc(n);
    FUZZ_EXPECT(copy, "no memory for %zu bytes", n);
    if (n) {
        memcpy(copy, bytes, n);
    }
    return copy;
}

char *fuzz_text(const void *bytes, size_t n) {
    const void *zero = n ? memchr(bytes, 0, n) : NULL;
    size_t length = zero ? (size_t)((const char *)zero - (const char *)bytes) : n;
    char *text = malloc(length + 1);
    FUZZ_EXPECT(text, "no memory for %zu bytes", n);
    if (length) {
        memcpy(text, bytes, length);
    }
    text[length] = '\0';
    return text;
}

struct pe_arena *fuzz_arena(size_t limit) {
    struct pe_error err = {0};
    struct pe_arena *arena = pe_arena_open(limit, NULL, &err);
    FUZZ_EXPECT(arena, "%s", err.text);
    return arena;
}

static void line_check(const char *text) {
    size_t n = strlen(text);
    for (size_t at = 0, size; at < n; at += size) {
        uint32_t value;
        size = pe_utf8_read(text + at, n - at, &value);
        FUZZ_EXPECT(size > 0, "byte %zu of a message is not UTF-8", at);
        FUZZ_EXPECT(value >= 0x20 && value != 0x7f, "byte %zu of a message is 0x%02x", at, (unsigned)value);
    }
}

void fuzz_error_check(int code, const struct pe_error *err) {
    FUZZ_EXPECT(code == err->code, "returned %d, but err has %d", code, err->code);
    if (code) {
        FUZZ_EXPECT(err->text[0], "code %d at \"%s\" without a text", code, err->path);
        line_check(err->text);
        line_check(err->path);
    }
}

/* What the bytes sum up to is nothing; that they are read is all. */
static void read_all(const struct pe_tensor *tensor, size_t n) {
    volatile unsigned char sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum = (unsigned char)(sum ^ ((const unsigned char *)tensor->data)[i]);
    }
}

void fuzz_tensor_check(const struct pe_tensor *tensor) {
    size_t factors[PE_MAX_RANK + 1] = {pe_dtype_size(tensor->dtype)}, bytes;
    FUZZ_EXPECT(tensor->rank >= 0 && tensor->rank <= PE_MAX_RANK, "rank %d", tensor->rank);
    FUZZ_EXPECT(factors[0] > 0, "dtype %d", (int)tensor->dtype);
    memcpy(factors + 1, tensor->dim, (size_t)tensor->rank * sizeof *factors);
    FUZZ_EXPECT(pe_size_product(factors, (size_t)tensor->rank + 1, &bytes), "its size overflows");
    FUZZ_EXPECT(bytes == pe_tensor_bytes(tensor), "%zu bytes, not %zu", pe_tensor_bytes(tensor), bytes);
    FUZZ_EXPECT((uintptr_t)tensor->data % factors[0] == 0, "is not aligned");
    read_all(tensor, bytes);
}

bool fuzz_tensor_same(const struct pe_tensor *a, const struct pe_tensor *b) {
    size_t n = pe_tensor_bytes(a);
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) == 0 &&
           (n == 0 || memcmp(a->data, b->data, n) == 0);
}

bool fuzz_within(const void *view, size_t n, const void *whole, size_t size) {
    uintptr_t begin = (uintptr_t)view, low = (uintptr_t)whole;
    return begin >= low && begin <= low + size && n <= low + size - begin;
}
