/* SPDX-License-Identifier: MIT
 *
 * safetensors: named tensors in one file.
 *
 *     length of the header (8 bytes, little-endian, at most 100 MB)
 *     {"__metadata__":{"format":"pt"},
 *      "wpe.weight":{"dtype":"F32","shape":[512,768],"data_offsets":[0,1572864]}, ...}     spaces
 *     the data, to which the offsets are relative; little-endian, C order
 *
 * The header is JSON of one fixed schema, so this scanner knows that schema and refuses all else: no depth to
 * bound, no values to keep, no JSON library. The bytes are not trusted. As the reference implementation asks,
 * the ranges of the tensors must tile the data exactly, so a file cannot hide bytes nor give the same bytes
 * two names; and names must be unique, since of two with the same name each reader would take another.
 *
 * The header is scanned twice: first to check and to count, then to fill an array of just that size.
 */
#include "formats/elements.h"
#include "formats/json.h"
#include "core/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_MAX   100000000 /* of the reference implementation */
#define COUNT_MAX    65536     /* tensors, and keys of metadata: they are sorted in one go */
#define PREFIX_BYTES 8
#define SHOWN        64 /* bytes of a name in a message, at most */

/* ---- Element types ---------------------------------------------------------------------------------- */

static const struct type {
    const char *name;
    size_t bits;
    struct pe_elements elements; /* size 0: a tensor of it is listed, but not read */
} types[] = {
    {"F64", 64, {.kind = PE_ELEMENT_FLOAT, .dtype = PE_DTYPE_F64, .size = 8}},
    {"F32", 32, {.kind = PE_ELEMENT_FLOAT, .dtype = PE_DTYPE_F32, .size = 4}},
    {"F16", 16, {.kind = PE_ELEMENT_FLOAT, .dtype = PE_DTYPE_F16, .size = 2}},
    {"BF16", 16, {.kind = PE_ELEMENT_FLOAT, .dtype = PE_DTYPE_BF16, .size = 2}},
    {"I64", 64, {.kind = PE_ELEMENT_INT, .size = 8}},
    {"I32", 32, {.kind = PE_ELEMENT_INT, .size = 4}},
    {"I16", 16, {.kind = PE_ELEMENT_INT, .size = 2}},
    {"I8", 8, {.kind = PE_ELEMENT_INT, .size = 1}},
    {"U64", 64, {.kind = PE_ELEMENT_UNSIGNED, .size = 8}},
    {"U32", 32, {.kind = PE_ELEMENT_UNSIGNED, .size = 4}},
    {"U16", 16, {.kind = PE_ELEMENT_UNSIGNED, .size = 2}},
    {"U8", 8, {.kind = PE_ELEMENT_UNSIGNED, .size = 1}},
    {"BOOL", 8, {.kind = PE_ELEMENT_BOOL, .size = 1}},
    {"C64", 64, {0}},
    {"F8_E4M3", 8, {0}},
    {"F8_E5M2", 8, {0}},
    {"F8_E8M0", 8, {0}},
    {"F6_E2M3", 6, {0}},
    {"F6_E3M2", 6, {0}},
    {"F4", 4, {0}},
};

/* NULL for a name of the future: its tensor is listed, its size unknown. */
static const struct type *type_find(const char *name) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].name, name) == 0) {
            return &types[i];
        }
    }
    return NULL;
}

/* ---- The schema ------------------------------------------------------------------------------------- */

/* What is found in the header. */
struct reader {
    struct pe_json json;
    size_t data_bytes;
    struct pe_safetensors_entry *entries; /* NULL in the first pass */
    const char **keys;                    /* of __metadata__; NULL in the first pass */
    size_t n_entries, n_keys;
    bool has_metadata;
};

struct tensor {
    struct pe_safetensors_entry entry;
    struct pe_json_sizes shape;
    unsigned seen; /* a bit for each key */
};

static int scan_dtype(struct pe_json *json, struct tensor *tensor) {
    return pe_json_text(json, &tensor->entry.dtype, "the text of dtype");
}

static int scan_shape(struct pe_json *json, struct tensor *tensor) {
    if (pe_json_sizes(json, &tensor->shape)) {
        return json->err->code;
    }
    tensor->entry.rank = tensor->shape.n;
    memcpy(tensor->entry.dim, tensor->shape.v, sizeof tensor->entry.dim);
    return PE_OK;
}

static int scan_offsets(struct pe_json *json, struct tensor *tensor) {
    struct pe_json_sizes offsets;
    if (pe_json_sizes(json, &offsets)) {
        return json->err->code;
    }
    if (offsets.n != 2) {
        return pe_fail(json->err, PE_ERR_FORMAT, "", "safetensors data_offsets has %zu numbers, 2 are needed",
                       offsets.n);
    }
    tensor->entry.begin = offsets.v[0];
    tensor->entry.end = offsets.v[1];
    return PE_OK;
}

static const struct {
    const char *name;
    int (*scan)(struct pe_json *json, struct tensor *tensor);
} keys[] = {
    {"dtype", scan_dtype},
    {"shape", scan_shape},
    {"data_offsets", scan_offsets},
};
#define N_KEYS (sizeof keys / sizeof *keys)

static int scan_tensor_item(struct pe_json *json, void *context) {
    struct tensor *tensor = context;
    const char *key;
    char shown[SHOWN];
    size_t i = 0;
    if (pe_json_text(json, &key, "a key in quotes")) {
        return json->err->code;
    }
    while (i < N_KEYS && strcmp(key, keys[i].name) != 0) {
        i++;
    }
    if (i == N_KEYS) {
        return pe_fail(json->err, PE_ERR_FORMAT, "",
                       "a safetensors tensor has the key '%s', allowed are dtype, shape and data_offsets",
                       pe_utf8_show(key, shown, sizeof shown));
    }
    if (tensor->seen & 1U << i) {
        return pe_fail(json->err, PE_ERR_FORMAT, "", "a safetensors tensor has the key %s twice",
                       keys[i].name);
    }
    tensor->seen |= 1U << i;
    return pe_json_expect(json, ':', "a colon") ? json->err->code : keys[i].scan(json, tensor);
}

/* What can be said of one tensor without the others. */
static int tensor_check(struct reader *reader, const struct tensor *tensor) {
    const struct pe_safetensors_entry *entry = &tensor->entry;
    char shown[SHOWN];
    pe_utf8_show(entry->name, shown, sizeof shown);
    for (size_t i = 0; i < N_KEYS; i++) {
        if (!(tensor->seen & 1U << i)) {
            return pe_fail(reader->json.err, PE_ERR_FORMAT, "", "safetensors tensor '%s' has no %s", shown,
                           keys[i].name);
        }
    }
    if (entry->begin > entry->end || entry->end > reader->data_bytes) {
        return pe_fail(reader->json.err, PE_ERR_FORMAT, "",
                       "safetensors tensor '%s' lies at bytes %zu to %zu, but there are %zu", shown,
                       entry->begin, entry->end, reader->data_bytes);
    }
    const struct type *type = type_find(entry->dtype);
    size_t bits, factors[2] = {tensor->shape.product, type ? type->bits : 1};
    if (tensor->shape.overflow || !pe_size_product(factors, 2, &bits)) {
        return pe_fail(reader->json.err, PE_ERR_FORMAT, "",
                       "safetensors tensor '%s' has a shape that is too large", shown);
    }
    if (type && (bits % 8 || bits / 8 != entry->end - entry->begin)) {
        return pe_fail(reader->json.err, PE_ERR_FORMAT, "",
                       "safetensors tensor '%s' has %zu bytes, its shape and dtype make %zu bits", shown,
                       entry->end - entry->begin, bits);
    }
    return PE_OK;
}

/* One more of n: models have some thousands. */
static int count_check(struct reader *reader, size_t n, const char *what) {
    if (n < COUNT_MAX) {
        return PE_OK;
    }
    return pe_fail(reader->json.err, PE_ERR_FORMAT, "", "the safetensors header has more than %d %s",
                   COUNT_MAX, what);
}

static int scan_metadata_item(struct pe_json *json, void *context) {
    struct reader *reader = context;
    const char *key, *value;
    if (pe_json_text(json, &key, "a key in quotes") || pe_json_expect(json, ':', "a colon") ||
        pe_json_text(json, &value, "a text of __metadata__")) {
        return reader->json.err->code;
    }
    if (count_check(reader, reader->n_keys, "keys of metadata")) {
        return reader->json.err->code;
    }
    if (reader->keys) {
        reader->keys[reader->n_keys] = key;
    }
    reader->n_keys++;
    return PE_OK;
}

static int scan_header_item(struct pe_json *json, void *context) {
    struct reader *reader = context;
    struct tensor tensor = {0};
    if (pe_json_text(json, &tensor.entry.name, "a name in quotes") || pe_json_expect(json, ':', "a colon")) {
        return reader->json.err->code;
    }
    if (strcmp(tensor.entry.name, "__metadata__") == 0) {
        if (reader->has_metadata) {
            return pe_fail(reader->json.err, PE_ERR_FORMAT, "",
                           "the safetensors header has __metadata__ twice");
        }
        reader->has_metadata = true;
        return pe_json_object(json, scan_metadata_item, reader);
    }
    if (pe_json_object(json, scan_tensor_item, &tensor) || tensor_check(reader, &tensor) ||
        count_check(reader, reader->n_entries, "tensors")) {
        return reader->json.err->code;
    }
    if (reader->entries) {
        reader->entries[reader->n_entries] = tensor.entry;
    }
    reader->n_entries++;
    return PE_OK;
}

static int scan_header(struct reader *reader, char *texts) {
    reader->json.at = reader->json.start;
    reader->json.texts = texts;
    reader->n_entries = reader->n_keys = 0;
    reader->has_metadata = false;
    if (reader->json.at == reader->json.end || *reader->json.at != '{') {
        return pe_json_fail(&reader->json, "a { at the very beginning");
    }
    if (pe_json_object(&reader->json, scan_header_item, reader)) {
        return reader->json.err->code;
    }
    pe_json_space(&reader->json);
    return reader->json.at == reader->json.end ? PE_OK : pe_json_fail(&reader->json, "nothing but spaces");
}

/* ---- What must hold between the tensors ------------------------------------------------------------- */

static int by_offset(const void *left, const void *right) {
    const struct pe_safetensors_entry *a = left, *b = right;
    if (a->begin != b->begin) {
        return a->begin < b->begin ? -1 : 1;
    }
    return (a->end > b->end) - (a->end < b->end);
}

static int by_name(const void *left, const void *right) {
    const struct pe_safetensors_entry *a = left, *b = right;
    return strcmp(a->name, b->name);
}

static int by_text(const void *left, const void *right) {
    const char *const *a = left, *const *b = right;
    return strcmp(*a, *b);
}

/* Each range begins where the one before ends, from the first byte to the last. */
static int tiling_check(struct reader *reader) {
    char shown[SHOWN];
    size_t covered = 0;
    qsort(reader->entries, reader->n_entries, sizeof *reader->entries, by_offset);
    for (size_t i = 0; i < reader->n_entries; i++) {
        const struct pe_safetensors_entry *entry = &reader->entries[i];
        if (entry->begin != covered) {
            return pe_fail(reader->json.err, PE_ERR_FORMAT, "",
                           "safetensors tensor '%s' begins at byte %zu, the one before it ends at %zu",
                           pe_utf8_show(entry->name, shown, sizeof shown), entry->begin, covered);
        }
        covered = entry->end;
    }
    if (covered != reader->data_bytes) {
        return pe_fail(reader->json.err, PE_ERR_FORMAT, "",
                       "the safetensors tensors end at byte %zu, but there are %zu", covered,
                       reader->data_bytes);
    }
    return PE_OK;
}

static int names_check(struct reader *reader) {
    char shown[SHOWN];
    qsort(reader->entries, reader->n_entries, sizeof *reader->entries, by_name);
    for (size_t i = 1; i < reader->n_entries; i++) {
        if (strcmp(reader->entries[i - 1].name, reader->entries[i].name) == 0) {
            return pe_fail(reader->json.err, PE_ERR_FORMAT, "", "the safetensors header has two tensors '%s'",
                           pe_utf8_show(reader->entries[i].name, shown, sizeof shown));
        }
    }
    qsort(reader->keys, reader->n_keys, sizeof *reader->keys, by_text);
    for (size_t i = 1; i < reader->n_keys; i++) {
        if (strcmp(reader->keys[i - 1], reader->keys[i]) == 0) {
            return pe_fail(reader->json.err, PE_ERR_FORMAT, "",
                           "the safetensors metadata has the key '%s' twice",
                           pe_utf8_show(reader->keys[i], shown, sizeof shown));
        }
    }
    return PE_OK;
}

/* ---- Reading ---------------------------------------------------------------------------------------- */

/* The length of the header: sets where header and data lie. */
static int scan_open(struct reader *reader, const unsigned char *bytes, size_t n) {
    uint64_t length = 0;
    if (n < PREFIX_BYTES) {
        return pe_fail(reader->json.err, PE_ERR_FORMAT, "",
                       "a safetensors file begins with 8 bytes of length, got %zu bytes", n);
    }
    for (size_t i = PREFIX_BYTES; i-- > 0;) {
        length = length << 8 | bytes[i];
    }
    if (length > HEADER_MAX || length > n - PREFIX_BYTES) {
        return pe_fail(reader->json.err, PE_ERR_FORMAT, "",
                       "the safetensors header has %llu bytes, but %zu follow, and %d are allowed",
                       (unsigned long long)length, n - PREFIX_BYTES, HEADER_MAX);
    }
    reader->json.start = bytes + PREFIX_BYTES;
    reader->json.end = reader->json.start + length;
    reader->data_bytes = n - PREFIX_BYTES - (size_t)length;
    return PE_OK;
}

int pe_safetensors_open(struct pe_arena *arena, struct pe_safetensors *file, const void *bytes, size_t n,
                        struct pe_error *err) {
    struct reader reader = {.json = {.err = err}};
    if (err->code || scan_open(&reader, bytes, n)) {
        return err->code;
    }
    char *texts = pe_arena_alloc(arena, (size_t)(reader.json.end - reader.json.start), err);
    if (!texts || scan_header(&reader, texts)) {
        return err->code;
    }
    reader.entries = pe_arena_array(arena, reader.n_entries, sizeof *reader.entries, err);
    reader.keys = pe_arena_array(arena, reader.n_keys, sizeof *reader.keys, err);
    if (!reader.entries || !reader.keys || scan_header(&reader, texts) || tiling_check(&reader) ||
        names_check(&reader)) {
        return err->code;
    }
    *file = (struct pe_safetensors){.n = reader.n_entries,
                                    .entries = reader.entries,
                                    .data = reader.json.end,
                                    .data_bytes = reader.data_bytes};
    return PE_OK;
}

const struct pe_safetensors_entry *pe_safetensors_find(const struct pe_safetensors *file, const char *name) {
    const struct pe_safetensors_entry key = {.name = name};
    return bsearch(&key, file->entries, file->n, sizeof key, by_name);
}

/* Says which tensors there are, as far as there is room. */
static int unknown_fail(const struct pe_safetensors *file, const char *name, struct pe_error *err) {
    char names[4 * SHOWN] = "", shown[SHOWN];
    size_t used = 0;
    for (size_t i = 0; i < file->n && used + SHOWN + 8 < sizeof names; i++) {
        used += (size_t)snprintf(names + used, sizeof names - used, "%s'%s'", i ? ", " : "",
                                 pe_utf8_show(file->entries[i].name, shown, sizeof shown));
    }
    if (!name) {
        return pe_fail(err, PE_ERR_MISSING, "", "a file of %zu tensors needs a name; it has %s", file->n,
                       names);
    }
    return pe_fail(err, PE_ERR_UNKNOWN_NAME, "", "no tensor '%s' among the %zu of the file: %s",
                   pe_utf8_show(name, shown, sizeof shown), file->n, names);
}

int pe_safetensors_get(struct pe_arena *arena, struct pe_tensor *out, const struct pe_safetensors *file,
                       const char *name, struct pe_error *err) {
    const struct pe_safetensors_entry *entry = NULL;
    char shown[SHOWN];
    if (err->code) {
        return err->code;
    }
    if (name) {
        entry = pe_safetensors_find(file, name);
    } else if (file->n == 1) {
        entry = file->entries;
    }
    if (!entry) {
        return unknown_fail(file, name, err);
    }
    if (entry->rank > PE_MAX_RANK) {
        return pe_fail(err, PE_ERR_SHAPE, "", "the tensor has %zu axes, allowed are up to %d", entry->rank,
                       PE_MAX_RANK);
    }
    const struct type *type = type_find(entry->dtype);
    if (!type || type->elements.size == 0) {
        return pe_fail(err, PE_ERR_DTYPE, "",
                       "got dtype %s, allowed are F64, F32, F16, BF16, I8 to I64, U8 to U64 and BOOL",
                       pe_utf8_show(entry->dtype, shown, sizeof shown));
    }
    struct pe_tensor tensor = {.rank = (int)entry->rank};
    memcpy(tensor.dim, entry->dim, sizeof tensor.dim);
    if (pe_elements_read(arena, &tensor, &type->elements, (const char *)file->data + entry->begin, err)) {
        return err->code;
    }
    *out = tensor;
    return PE_OK;
}
