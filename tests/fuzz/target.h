/* SPDX-License-Identifier: MIT
 *
 * What the fuzzers share. A target is one file fuzz_<what>.c with LLVMFuzzerTestOneInput: it gives any bytes
 * to one part of the program and aborts where a promise of that part is broken; crashes, leaks and undefined
 * behaviour are for the sanitizers to see. `make fuzz` builds it with clang's libFuzzer, which makes up
 * inputs; replay.c gives it the files of tests/fuzz/corpus/<what>, for `make test`.
 *
 * A target keeps nothing from one input to the next, and what looks random in it follows from the input.
 */
#ifndef FUZZ_TARGET_H
#define FUZZ_TARGET_H

#include "posenc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A promise. What follows says in the words of printf how it was broken. */
#define FUZZ_EXPECT(condition, ...)                                                                          \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fuzz_fail(__FILE__, __LINE__, #condition, __VA_ARGS__);                                          \
        }                                                                                                    \
    } while (0)
_Noreturn void fuzz_fail(const char *file, int line, const char *promise, const char *format, ...)
    PE_PRINTF(4, 5);

/* Numbers that follow from an input. */
uint64_t fuzz_seed(const void *bytes, size_t n);
size_t fuzz_below(uint64_t *state, size_t n);

/* Copies in memory of their own size, so that a sanitizer sees every step beyond them. free() them. */
void *fuzz_copy(const void *bytes, size_t n);
char *fuzz_text(const void *bytes, size_t n); /* up to the first zero, with a zero behind */

struct pe_arena *fuzz_arena(size_t limit);
/* Fails unless code is err's, and the error is what pe_fail makes: one line of UTF-8, or none. */
void fuzz_error_check(int code, const struct pe_error *err);
/* Fails unless shape, type and size fit together; reads every byte. */
void fuzz_tensor_check(const struct pe_tensor *tensor);
/* Same shape, type and bits. */
bool fuzz_tensor_same(const struct pe_tensor *a, const struct pe_tensor *b);
/* Are the `n` bytes at `view` within the `size` bytes at `whole`? */
bool fuzz_within(const void *view, size_t n, const void *whole, size_t size);

#endif
