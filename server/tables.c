/* SPDX-License-Identifier: MIT
 *
 * Loading a folder of tables. Whatever is wrong with a file stops the start: a daemon that runs without a
 * table it was given would answer 400 to requests that are right.
 *
 * One arena holds all of it: the files' bytes, which the tensors view where their elements lie as they
 * should, the copies of those which do not, and the lists. The bytes of files are counted against the limit
 * before they are read; a file that grows meanwhile is refused. Names are sorted, so that lists and errors do
 * not depend on the order of the folder.
 */
#include "tables.h"

#include "config.h"
#include "digest.h"
#include "names.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct tables {
    struct pe_arena *arena; /* holds this struct too */
    size_t n;
    struct table *list;
};

/* ---- Digest ------------------------------------------------------------------------------------------ */

static uint64_t tensor_digest(const struct pe_tensor *tensor) {
    char shape[256];
    const char *dtype = pe_dtype_name(tensor->dtype);
    pe_tensor_shape_text(tensor, shape, sizeof shape);
    uint64_t hash = digest_bytes(DIGEST_START, dtype, strlen(dtype));
    hash = digest_bytes(digest_bytes(digest_bytes(hash, ":", 1), shape, strlen(shape)), ":", 1);
    return digest_bytes(hash, tensor->data, pe_tensor_bytes(tensor));
}

/* "name:digest;" of each tensor, so that the same numbers under another name differ. */
static uint64_t table_digest(const struct table *table) {
    uint64_t hash = DIGEST_START;
    for (size_t i = 0; i < table->n_tensors; i++) {
        char digest[24];
        const struct table_tensor *tensor = &table->tensors[i];
        int n = snprintf(digest, sizeof digest, ":%016llx;", (unsigned long long)tensor->digest);
        hash = digest_bytes(digest_bytes(hash, tensor->name, strlen(tensor->name)), digest, (size_t)n);
    }
    return hash;
}

/* ---- Files ------------------------------------------------------------------------------------------- */

#define MAX_NAME 128

/* Of ".npy" or ".safetensors" at the end of a file's name; 0: neither, or nothing before it. */
static size_t suffix_length(const char *file) {
    static const char *const suffixes[] = {".npy", ".safetensors"};
    size_t n = strlen(file);
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        size_t m = strlen(suffixes[i]);
        if (n > m && strcmp(file + n - m, suffixes[i]) == 0) {
            return m;
        }
    }
    return 0;
}

static int system_fail(struct pe_error *err, const char *path, const char *what) {
    char reason[128];
    return pe_fail(err, PE_ERR_UNKNOWN_NAME, path, "%s: %s", what,
                   config_errno_text(errno, reason, sizeof reason));
}

/* The whole of an open file into the arena. */
static void *read_open(struct pe_arena *arena, FILE *file, size_t size, struct pe_error *err) {
    unsigned char *bytes = pe_arena_alloc(arena, size, err);
    if (!bytes) {
        return NULL;
    }
    errno = 0;
    if (fread(bytes, 1, size, file) != size || fgetc(file) != EOF || ferror(file)) {
        if (errno) {
            system_fail(err, "", "cannot be read");
        } else {
            pe_fail(err, PE_ERR_FORMAT, "", "changed while it was read");
        }
        return NULL;
    }
    return bytes;
}

/* `left` is what remains of the limit. A pipe or a device has no size and is refused. */
static void *read_file(struct pe_arena *arena, const char *path, uint64_t *left, size_t *n,
                       struct pe_error *err) {
    struct stat status;
    if (stat(path, &status) != 0) {
        system_fail(err, "", "cannot be read");
        return NULL;
    }
    if (!S_ISREG(status.st_mode)) {
        pe_fail(err, PE_ERR_TYPE, "", "is not a regular file");
        return NULL;
    }
    uint64_t size = (uint64_t)status.st_size;
    if (size > *left) {
        pe_fail_limit(err, "", "tables_bytes", *left, size,
                      "has %llu bytes, more than the %llu that tables_bytes leaves", (unsigned long long)size,
                      (unsigned long long)*left);
        return NULL;
    }
    FILE *file = fopen(path, "rb");
    if (!file) {
        system_fail(err, "", "cannot be read");
        return NULL;
    }
    void *bytes = read_open(arena, file, (size_t)size, err);
    fclose(file);
    *left -= size;
    *n = (size_t)size;
    return bytes;
}

/* ---- Contents ---------------------------------------------------------------------------------------- */

static struct table_tensor *read_npy(struct pe_arena *arena, struct table *table, const void *bytes,
                                     struct pe_error *err) {
    struct table_tensor *tensor = pe_arena_array(arena, 1, sizeof *tensor, err);
    if (!tensor || pe_npy_read(arena, &tensor->tensor, bytes, (size_t)table->bytes, err)) {
        return NULL;
    }
    tensor->name = table->name;
    table->n_tensors = 1;
    return tensor;
}

static struct table_tensor *read_safetensors(struct pe_arena *arena, struct table *table, const void *bytes,
                                             struct pe_error *err) {
    struct pe_safetensors file;
    if (pe_safetensors_open(arena, &file, bytes, (size_t)table->bytes, err)) {
        return NULL;
    }
    if (file.n == 0) {
        pe_fail(err, PE_ERR_FORMAT, "", "holds no tensor");
        return NULL;
    }
    struct table_tensor *tensors = pe_arena_array(arena, file.n, sizeof *tensors, err);
    for (size_t i = 0; tensors && i < file.n; i++) {
        tensors[i].name = file.entries[i].name;
        if (pe_safetensors_get(arena, &tensors[i].tensor, &file, tensors[i].name, err)) {
            return NULL;
        }
    }
    table->n_tensors = file.n;
    return tensors;
}

/* Reads the file of a table whose names are set already. */
static int read_table(struct pe_arena *arena, struct table *table, const char *path, uint64_t *left,
                      struct pe_error *err) {
    size_t n = 0;
    void *bytes = read_file(arena, path, left, &n, err);
    if (!bytes) {
        return err->code;
    }
    table->bytes = n;
    bool npy = strcmp(table->file + strlen(table->name), ".npy") == 0;
    struct table_tensor *tensors =
        npy ? read_npy(arena, table, bytes, err) : read_safetensors(arena, table, bytes, err);
    if (!tensors) {
        return err->code;
    }
    for (size_t i = 0; i < table->n_tensors; i++) {
        /* Posted tables are checked when they are bound to a field, and these here. */
        if (pe_tensor_check_finite(&tensors[i].tensor, false, err)) {
            return npy ? err->code : pe_error_at(err, tensors[i].name);
        }
        tensors[i].digest = tensor_digest(&tensors[i].tensor);
    }
    table->tensors = tensors;
    table->digest = table_digest(table);
    return PE_OK;
}

/* ---- The folder -------------------------------------------------------------------------------------- */

/* Hidden files are left out, as a shell's *.npy leaves them out: they are what copying and editing leave
 * behind. */
static int is_table_file(const struct dirent *entry) {
    return entry->d_name[0] != '.' && suffix_length(entry->d_name) > 0;
}

static int name_table(struct pe_arena *arena, struct table *table, const char *file, struct pe_error *err) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t length = strlen(file), name_length = length - suffix_length(file);
    if (strspn(file, allowed) != length || name_length > MAX_NAME) {
        return pe_fail(err, PE_ERR_SYNTAX, "",
                       "a table's name must be 1 to %d of the characters A-Z a-z 0-9 . _ -", MAX_NAME);
    }
    table->file = pe_arena_text(arena, file, length, err);
    table->name = pe_arena_text(arena, file, name_length, err);
    return err->code;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct table *)a)->name, ((const struct table *)b)->name);
}

/* The fault is in this file; of a long path the end matters. */
static int fault_in(const char *path, struct pe_error *err) {
    char segment[112];
    const size_t n = strlen(path), max = sizeof segment - 4;
    snprintf(segment, sizeof segment, "%s%.*s", n > max ? "..." : "", (int)max,
             n > max ? path + n - max : path);
    return pe_error_at(err, segment);
}

static int check_names(const struct tables *tables, const char *folder, struct pe_error *err) {
    for (size_t i = 1; i < tables->n; i++) {
        const struct table *a = &tables->list[i - 1], *b = &tables->list[i];
        if (strcmp(a->name, b->name) == 0) {
            pe_fail(err, PE_ERR_CONFLICT, "", "%s and %s would be one table, \"%s\"", a->file, b->file,
                    a->name);
            return fault_in(folder, err);
        }
    }
    return PE_OK;
}

static int read_entry(struct tables *tables, const char *folder, const char *file, uint64_t *left,
                      struct pe_error *err) {
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s", folder, file);
    if (n < 0 || (size_t)n >= sizeof path) {
        pe_fail(err, PE_ERR_LIMIT, "", "the path of %.100s is longer than %zu bytes", file, sizeof path - 1);
        return fault_in(folder, err);
    }
    struct table *table = &tables->list[tables->n];
    if (name_table(tables->arena, table, file, err) || read_table(tables->arena, table, path, left, err)) {
        return fault_in(path, err);
    }
    tables->n++;
    return PE_OK;
}

static int read_entries(struct tables *tables, const char *folder, struct dirent **entries, int n,
                        uint64_t limit, struct pe_error *err) {
    tables->list = pe_arena_array(tables->arena, (size_t)n, sizeof *tables->list, err);
    if (!tables->list) {
        return err->code;
    }
    uint64_t left = limit;
    for (int i = 0; i < n; i++) {
        if (read_entry(tables, folder, entries[i]->d_name, &left, err)) {
            return err->code;
        }
    }
    qsort(tables->list, tables->n, sizeof *tables->list, by_name);
    return check_names(tables, folder, err);
}

static int read_folder(struct tables *tables, const char *folder, uint64_t limit, struct pe_error *err) {
    struct dirent **entries = NULL;
    int n = scandir(folder, &entries, is_table_file, alphasort);
    if (n < 0) {
        system_fail(err, "", "cannot be read");
        return fault_in(folder, err);
    }
    int code = read_entries(tables, folder, entries, n, limit, err);
    for (int i = 0; i < n; i++) {
        free(entries[i]);
    }
    free(entries);
    return code;
}

/* Files of the limit, their whole numbers as doubles (eight times as large at most), and lists. */
static size_t arena_limit(uint64_t limit) {
    return limit < SIZE_MAX / 32 ? (size_t)limit * 16 + ((size_t)64 << 20) : SIZE_MAX;
}

int tables_open(struct tables **tables, const char *folder, uint64_t limit, struct pe_error *err) {
    struct pe_arena *arena = pe_arena_open(arena_limit(limit), NULL, err);
    struct tables *made = arena ? pe_arena_array(arena, 1, sizeof *made, err) : NULL;
    if (!made) {
        pe_arena_close(arena);
        return err->code;
    }
    made->arena = arena;
    if (folder && folder[0] != '\0' && read_folder(made, folder, limit, err)) {
        pe_arena_close(arena);
        return err->code;
    }
    *tables = made;
    return PE_OK;
}

void tables_close(struct tables *tables) {
    if (tables) {
        pe_arena_close(tables->arena);
    }
}

/* ---- Finding ----------------------------------------------------------------------------------------- */

size_t tables_count(const struct tables *tables) {
    return tables ? tables->n : 0;
}

const struct table *tables_at(const struct tables *tables, size_t i) {
    return &tables->list[i];
}

static const char *table_name(const void *tables, size_t i) {
    return ((const struct tables *)tables)->list[i].name;
}

static const char *tensor_at(const void *table, size_t i) {
    return ((const struct table *)table)->tensors[i].name;
}

const struct table *tables_table(const struct tables *tables, const char *name, struct pe_error *err) {
    for (size_t i = 0; i < tables_count(tables); i++) {
        if (strcmp(tables->list[i].name, name) == 0) {
            return &tables->list[i];
        }
    }
    char nearest[200];
    const struct names names = {tables_count(tables), table_name, tables};
    if (names.n == 0) {
        pe_fail(err, PE_ERR_UNKNOWN_NAME, "table", "no table is named \"%.60s\"; loaded are: none", name);
    } else {
        pe_fail(err, PE_ERR_UNKNOWN_NAME, "table",
                "no table is named \"%.60s\" among the %zu loaded; the nearest are: %s", name, names.n,
                names_write(&names, name, nearest, sizeof nearest));
    }
    return NULL;
}

const struct table_tensor *tables_tensor(const struct tables *tables, const char *name,
                                         const char *tensor_name, struct pe_error *err) {
    const struct table *table = tables_table(tables, name, err);
    if (!table) {
        return NULL;
    }
    if (!tensor_name && table->n_tensors == 1) {
        return &table->tensors[0];
    }
    char text[200];
    const struct names names = {table->n_tensors, tensor_at, table};
    if (!tensor_name) {
        pe_fail(err, PE_ERR_MISSING, "tensor_name",
                "is required, as the table \"%.60s\" holds %zu tensors: %s", name, table->n_tensors,
                names_write(&names, NULL, text, sizeof text));
        return NULL;
    }
    for (size_t i = 0; i < table->n_tensors; i++) {
        if (strcmp(table->tensors[i].name, tensor_name) == 0) {
            return &table->tensors[i];
        }
    }
    pe_fail(err, PE_ERR_UNKNOWN_NAME, "tensor_name",
            "the table \"%.60s\" has no tensor \"%.60s\" among its %zu; the nearest are: %s", name,
            tensor_name, table->n_tensors, names_write(&names, tensor_name, text, sizeof text));
    return NULL;
}

const struct pe_tensor *tables_find(const struct tables *tables, const char *name, const char *tensor_name,
                                    struct pe_error *err) {
    const struct table_tensor *found = tables_tensor(tables, name, tensor_name, err);
    return found ? &found->tensor : NULL;
}
