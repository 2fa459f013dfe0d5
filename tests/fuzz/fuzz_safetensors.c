/* SPDX-License-Identifier: MIT
 *
 * The reader of safetensors files: the input is the file. Of a file that is accepted, the entries cover the
 * data without overlaps and holes, each is found by its name, and each tensor that can be had lies within the
 * file or the arena; written and read again all of them are the same.
 */
#include "fuzz/target.h"

#include <stdlib.h>
#include <string.h>

#define LIMIT ((size_t)4 << 20)

/* Those entries that this program can read, as tensors. */
static size_t get_all(struct pe_arena *arena, const struct pe_safetensors *file,
                      struct pe_named_tensor *tensors) {
    size_t n = 0;
    for (size_t i = 0; i < file->n; i++) {
        struct pe_error err = {0};
        const char *name = file->entries[i].name;
        FUZZ_EXPECT(pe_safetensors_find(file, name) == &file->entries[i], "%s is not found", name);
        int code = pe_safetensors_get(arena, &tensors[n].tensor, file, name, &err);
        fuzz_error_check(code, &err);
        if (code == PE_OK) {
            fuzz_tensor_check(&tensors[n].tensor);
            tensors[n++].name = name;
        }
    }
    return n;
}

/* The header as text, then the elements of all. */
static char *write_file(const struct pe_safetensors_header *header, const struct pe_named_tensor *tensors,
                        size_t n) {
    char *file = malloc(header->file_bytes);
    FUZZ_EXPECT(file, "no memory");
    memcpy(file, header->text, header->bytes);
    size_t at = header->bytes;
    for (size_t i = 0; i < n; i++) {
        size_t bytes = pe_tensor_bytes(&tensors[i].tensor);
        FUZZ_EXPECT(bytes <= header->file_bytes - at, "%zu bytes are not enough", header->file_bytes);
        if (bytes) {
            memcpy(file + at, tensors[i].tensor.data, bytes);
        }
        at += bytes;
    }
    FUZZ_EXPECT(at == header->file_bytes, "%zu bytes, not %zu", at, header->file_bytes);
    return file;
}

static void check_written(struct pe_arena *arena, const struct pe_named_tensor *tensors, size_t n) {
    struct pe_error err = {0};
    struct pe_safetensors_header header;
    struct pe_safetensors again;
    struct pe_tensor tensor;
    int code = pe_safetensors_write(arena, &header, tensors, n, &err);
    FUZZ_EXPECT(code == PE_OK, "%s: %s", err.path, err.text);
    char *file = write_file(&header, tensors, n);
    FUZZ_EXPECT(!pe_safetensors_open(arena, &again, file, header.file_bytes, &err), "%s", err.text);
    FUZZ_EXPECT(again.n == n, "%zu tensors, not %zu", again.n, n);
    for (size_t i = 0; i < n; i++) {
        FUZZ_EXPECT(!pe_safetensors_get(arena, &tensor, &again, tensors[i].name, &err), "%s", err.text);
        FUZZ_EXPECT(fuzz_tensor_same(&tensor, &tensors[i].tensor), "another %s", tensors[i].name);
    }
    free(file);
}

static void check_file(struct pe_arena *arena, const struct pe_safetensors *file, const char *bytes,
                       size_t size) {
    size_t covered = 0;
    FUZZ_EXPECT(fuzz_within(file->data, file->data_bytes, bytes, size), "the data is elsewhere");
    for (size_t i = 0; i < file->n; i++) {
        const struct pe_safetensors_entry *entry = &file->entries[i];
        FUZZ_EXPECT(entry->begin <= entry->end && entry->end <= file->data_bytes, "%zu to %zu of %zu",
                    entry->begin, entry->end, file->data_bytes);
        covered += entry->end - entry->begin;
        for (size_t k = 0; k < i; k++) {
            const struct pe_safetensors_entry *other = &file->entries[k];
            FUZZ_EXPECT(entry->begin >= other->end || other->begin >= entry->end, "%s and %s overlap",
                        entry->name, other->name);
        }
    }
    FUZZ_EXPECT(covered == file->data_bytes, "%zu bytes of %zu are covered", covered, file->data_bytes);
    struct pe_named_tensor *tensors = calloc(file->n + 1, sizeof *tensors);
    FUZZ_EXPECT(tensors, "no memory");
    check_written(arena, tensors, get_all(arena, file, tensors));
    free(tensors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint64_t state = fuzz_seed(data, size);
    size_t shift = fuzz_below(&state, 8);
    struct pe_error err = {0};
    struct pe_safetensors file;
    struct pe_arena *arena = fuzz_arena(LIMIT);
    char *block = malloc(size + shift + !size);
    FUZZ_EXPECT(block, "no memory");
    memcpy(block + shift * (size > 0), data, size);
    const char *bytes = block + shift * (size > 0);
    int code = pe_safetensors_open(arena, &file, bytes, size, &err);
    fuzz_error_check(code, &err);
    if (code == PE_OK) {
        check_file(arena, &file, bytes, size);
    }
    free(block);
    pe_arena_close(arena);
    return 0;
}
