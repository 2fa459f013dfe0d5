/* SPDX-License-Identifier: MIT
 *
 * The reader of npy files: the input is the file. What it accepts has a size that fits its shape and lies
 * within the file or in the arena, wherever in memory the file begins; a file a byte longer or shorter is
 * refused; written and read again it is the same.
 */
#include "fuzz/target.h"

#include <stdlib.h>
#include <string.h>

#define LIMIT ((size_t)1 << 20)

/* pe_npy_header and the elements, read again. */
static void check_written(struct pe_arena *arena, const struct pe_tensor *tensor) {
    char header[PE_NPY_HEADER_MAX];
    struct pe_error err = {0};
    struct pe_tensor again;
    size_t n = pe_npy_header(header, sizeof header, tensor), bytes = pe_tensor_bytes(tensor);
    FUZZ_EXPECT(n > 0 && n % 64 == 0, "a header of %zu bytes", n);
    char *file = malloc(n + bytes);
    FUZZ_EXPECT(file, "no memory");
    memcpy(file, header, n);
    if (bytes) {
        memcpy(file + n, tensor->data, bytes);
    }
    FUZZ_EXPECT(pe_npy_read(arena, &again, file, n + bytes, &err) == PE_OK, "%s", err.text);
    FUZZ_EXPECT(fuzz_tensor_same(tensor, &again), "another tensor was read back");
    free(file);
}

/* A byte more or less than the shape takes. */
static void check_size(struct pe_arena *arena, const uint8_t *data, size_t size) {
    for (size_t n = size - 1; n <= size + 1; n += 2) {
        struct pe_tensor tensor;
        struct pe_error err = {0};
        char *file = calloc(1, n);
        FUZZ_EXPECT(file, "no memory");
        memcpy(file, data, n < size ? n : size);
        FUZZ_EXPECT(pe_npy_read(arena, &tensor, file, n, &err), "%zu bytes as well as %zu", n, size);
        free(file);
    }
}

static int read_at(struct pe_arena *arena, const uint8_t *data, size_t size, size_t shift,
                   struct pe_error *err) {
    char *block = malloc(size + shift);
    struct pe_tensor tensor;
    FUZZ_EXPECT(block, "no memory");
    memcpy(block + shift, data, size);
    int code = pe_npy_read(arena, &tensor, block + shift, size, err);
    fuzz_error_check(code, err);
    if (code == PE_OK) {
        fuzz_tensor_check(&tensor);
        check_written(arena, &tensor);
        check_size(arena, data, size);
    }
    free(block);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint64_t state = fuzz_seed(data, size);
    struct pe_error err[2] = {{0}, {0}};
    for (size_t i = 0; i < 2 && size; i++) {
        struct pe_arena *arena = fuzz_arena(LIMIT);
        read_at(arena, data, size, i * (1 + fuzz_below(&state, 7)), &err[i]);
        pe_arena_close(arena);
    }
    FUZZ_EXPECT(err[0].code == err[1].code && strcmp(err[0].text, err[1].text) == 0,
                "by the address: \"%s\" or \"%s\"", err[0].text, err[1].text);
    return 0;
}
