/* SPDX-License-Identifier: MIT
 *
 * The header of a safetensors file (see safetensors.c). Only names, shapes and types are needed, so it can be
 * sent before the first number has been computed. Spaces fill it up to a multiple of 8, so that the data
 * begin aligned. It is composed twice, first without memory to learn its length.
 */
#include "core/utf8.h"
#include "posenc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PREFIX_BYTES 8

static const char *const names_of[PE_DTYPE_COUNT] = {
    [PE_DTYPE_F64] = "F64", [PE_DTYPE_F32] = "F32", [PE_DTYPE_F16] = "F16", [PE_DTYPE_BF16] = "BF16"};

/* A text that grows; text NULL only measures. */
struct sink {
    char *text;
    size_t used;
};

static void put(struct sink *sink, const char *bytes, size_t n) {
    if (sink->text) {
        memcpy(sink->text + sink->used, bytes, n);
    }
    sink->used += n;
}

static void put_text(struct sink *sink, const char *text) {
    put(sink, text, strlen(text));
}

static void put_size(struct sink *sink, size_t size) {
    char digits[24];
    put(sink, digits, (size_t)snprintf(digits, sizeof digits, "%zu", size));
}

/* As a JSON string; the name is UTF-8. */
static void put_name(struct sink *sink, const char *name) {
    put_text(sink, "\"");
    for (; *name; name++) {
        char escape[8];
        if (*name == '"' || *name == '\\') {
            snprintf(escape, sizeof escape, "\\%c", *name);
        } else if ((unsigned char)*name < 0x20) {
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned)*name);
        } else {
            snprintf(escape, sizeof escape, "%c", *name);
        }
        put_text(sink, escape);
    }
    put_text(sink, "\"");
}

static void put_tensor(struct sink *sink, const struct pe_named_tensor *named, size_t begin) {
    const struct pe_tensor *tensor = &named->tensor;
    put_name(sink, named->name);
    put_text(sink, ":{\"dtype\":\"");
    put_text(sink, names_of[tensor->dtype]);
    put_text(sink, "\",\"shape\":[");
    for (int i = 0; i < tensor->rank; i++) {
        put_text(sink, i ? "," : "");
        put_size(sink, tensor->dim[i]);
    }
    put_text(sink, "],\"data_offsets\":[");
    put_size(sink, begin);
    put_text(sink, ",");
    put_size(sink, begin + pe_tensor_bytes(tensor));
    put_text(sink, "]}");
}

static void put_header(struct sink *sink, const struct pe_named_tensor *tensors, size_t n) {
    size_t begin = 0;
    put_text(sink, "{");
    for (size_t i = 0; i < n; i++) {
        put_text(sink, i ? "," : "");
        put_tensor(sink, &tensors[i], begin);
        begin += pe_tensor_bytes(&tensors[i].tensor);
    }
    put_text(sink, "}");
    while (sink->used % 8) {
        put_text(sink, " ");
    }
}

static int name_check(const struct pe_named_tensor *tensors, size_t i, struct pe_error *err) {
    const char *name = tensors[i].name;
    char shown[64];
    pe_utf8_show(name, shown, sizeof shown);
    for (size_t at = 0, left = strlen(name), length; left > 0; at += length, left -= length) {
        uint32_t value;
        length = pe_utf8_read(name + at, left, &value);
        if (length == 0) {
            return pe_fail(err, PE_ERR_SYNTAX, "", "the name '%s' is not UTF-8", shown);
        }
    }
    if (strcmp(name, "__metadata__") == 0) {
        return pe_fail(err, PE_ERR_CONFLICT, "", "safetensors keeps the name __metadata__ for itself");
    }
    for (size_t j = 0; j < i; j++) {
        if (strcmp(tensors[j].name, name) == 0) {
            return pe_fail(err, PE_ERR_CONFLICT, "", "two tensors have the name '%s'", shown);
        }
    }
    return PE_OK;
}

/* Names, types, and the sum of the sizes. */
static int tensors_check(const struct pe_named_tensor *tensors, size_t n, size_t *data_bytes,
                         struct pe_error *err) {
    *data_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        if (name_check(tensors, i, err)) {
            return err->code;
        }
        size_t bytes = pe_tensor_bytes(&tensors[i].tensor);
        if (pe_dtype_size(tensors[i].tensor.dtype) == 0) {
            return pe_fail(err, PE_ERR_DTYPE, "", "a tensor needs an element type");
        }
        if (bytes > SIZE_MAX / 2 - *data_bytes) {
            return pe_fail(err, PE_ERR_SHAPE, "", "the tensors of the file are too large");
        }
        *data_bytes += bytes;
    }
    return PE_OK;
}

int pe_safetensors_write(struct pe_arena *arena, struct pe_safetensors_header *header,
                         const struct pe_named_tensor *tensors, size_t n, struct pe_error *err) {
    size_t data_bytes;
    if (err->code || tensors_check(tensors, n, &data_bytes, err)) {
        return err->code;
    }
    struct sink measure = {0};
    put_header(&measure, tensors, n);
    size_t length = measure.used, total = PREFIX_BYTES + length;
    char *text = pe_arena_alloc(arena, total, err);
    if (!text) {
        return err->code;
    }
    for (size_t i = 0; i < PREFIX_BYTES; i++) {
        text[i] = (char)((uint64_t)length >> 8 * i & 0xff);
    }
    struct sink write = {.text = text + PREFIX_BYTES};
    put_header(&write, tensors, n);
    *header = (struct pe_safetensors_header){.text = text, .bytes = total, .file_bytes = total + data_bytes};
    return PE_OK;
}
