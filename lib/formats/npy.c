/* SPDX-License-Identifier: MIT
 *
 * The npy format of NumPy (numpy.lib.format), versions 1.0, 2.0 and 3.0:
 *
 *     \x93NUMPY  major minor  length of the header (2 bytes in 1.0, else 4, little-endian)
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }    spaces, a line break
 *     the elements
 *
 * The header is a Python literal. Readers that evaluate it are as large as a Python parser; this one knows
 * the three keys, each once in any order, and refuses all else. The bytes are not trusted: every length is
 * compared with what is there, and the product of the shape with the bytes that follow, before memory is
 * taken.
 *
 * Written is version 1.0, padded to a multiple of 64, so that the elements lie aligned in a file mapped to
 * memory.
 */
#include "formats/elements.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAGIC       "\x93NUMPY"
#define MAGIC_BYTES 6
#define ALIGNMENT   64
#define HEADER_MAX  (1 << 20) /* NumPy itself reads no more than 10000 unless told to */

struct scan {
    const char *start, *at, *end; /* of the header */
    bool suffix_allowed;          /* Python 2 wrote the whole number 3 as 3L */
    struct pe_error *err;
};

struct header {
    struct pe_elements elements; /* without its order, which has a key of its own */
    bool fortran;
    int rank;
    size_t dim[PE_MAX_RANK];
};

/* ---- The scanner: each function takes one thing from the text, or fails ----------------------------- */

static int fail(struct scan *scan, const char *wanted) {
    if (scan->at == scan->end) {
        return pe_fail(scan->err, PE_ERR_FORMAT, "", "the npy header ends where %s should be", wanted);
    }
    return pe_fail(scan->err, PE_ERR_FORMAT, "", "the npy header has '%c' at byte %zu, where %s should be",
                   *scan->at, (size_t)(scan->at - scan->start), wanted);
}

static void skip_space(struct scan *scan) {
    while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\n')) {
        scan->at++;
    }
}

/* True, and past it, when that character comes next. */
static bool take(struct scan *scan, char c) {
    skip_space(scan);
    if (scan->at == scan->end || *scan->at != c) {
        return false;
    }
    scan->at++;
    return true;
}

static int expect(struct scan *scan, char c, const char *wanted) {
    return take(scan, c) ? PE_OK : fail(scan, wanted);
}

/* 'text' or "text" without escapes: a VIEW, without its quotes. */
static int scan_text(struct scan *scan, const char **text, size_t *length, const char *wanted) {
    char quote = take(scan, '\'') ? '\'' : '"';
    if (quote == '"' && expect(scan, '"', wanted)) {
        return scan->err->code;
    }
    *text = scan->at;
    while (scan->at < scan->end && *scan->at != quote && *scan->at != '\\') {
        scan->at++;
    }
    *length = (size_t)(scan->at - *text);
    if (scan->at == scan->end || *scan->at != quote) {
        return fail(scan, "a closing quote");
    }
    scan->at++;
    return PE_OK;
}

static bool equals(const char *text, size_t length, const char *word) {
    return length == strlen(word) && memcmp(text, word, length) == 0;
}

/* A size: digits without a sign, without leading zeros. */
static int scan_size(struct scan *scan, size_t *size) {
    skip_space(scan);
    const char *first = scan->at;
    *size = 0;
    for (; scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9'; scan->at++) {
        size_t digit = (size_t)(*scan->at - '0');
        if (*size > (SIZE_MAX - digit) / 10) {
            return pe_fail(scan->err, PE_ERR_FORMAT, "",
                           "the npy header has a size of the shape that is too large");
        }
        *size = *size * 10 + digit;
    }
    if (scan->at == first || (*first == '0' && scan->at - first > 1)) {
        scan->at = first;
        return fail(scan, "a size of the shape");
    }
    if (scan->suffix_allowed && scan->at < scan->end && *scan->at == 'L') {
        scan->at++;
    }
    return PE_OK;
}

/* ---- The three values ------------------------------------------------------------------------------- */

static const struct {
    const char *name; /* kind and size */
    struct pe_elements elements;
} types[] = {
    {"f8", {.kind = PE_ELEMENT_FLOAT, .dtype = PE_DTYPE_F64, .size = 8}},
    {"f4", {.kind = PE_ELEMENT_FLOAT, .dtype = PE_DTYPE_F32, .size = 4}},
    {"f2", {.kind = PE_ELEMENT_FLOAT, .dtype = PE_DTYPE_F16, .size = 2}},
    {"i1", {.kind = PE_ELEMENT_INT, .size = 1}},
    {"i2", {.kind = PE_ELEMENT_INT, .size = 2}},
    {"i4", {.kind = PE_ELEMENT_INT, .size = 4}},
    {"i8", {.kind = PE_ELEMENT_INT, .size = 8}},
    {"u1", {.kind = PE_ELEMENT_UNSIGNED, .size = 1}},
    {"u2", {.kind = PE_ELEMENT_UNSIGNED, .size = 2}},
    {"u4", {.kind = PE_ELEMENT_UNSIGNED, .size = 4}},
    {"u8", {.kind = PE_ELEMENT_UNSIGNED, .size = 8}},
    {"b1", {.kind = PE_ELEMENT_BOOL, .size = 1}},
};

/* '<f4': byte order, then kind and size. '=' is the machine's order, '|' says that there is none. */
static int scan_descr(struct scan *scan, struct header *header) {
    skip_space(scan);
    if (scan->at < scan->end && (*scan->at == '[' || *scan->at == '(')) {
        return pe_fail(scan->err, PE_ERR_DTYPE, "", "npy elements of several fields are not numbers");
    }
    const char *text;
    size_t length;
    if (scan_text(scan, &text, &length, "the text of descr")) {
        return scan->err->code;
    }
    char order = length ? text[0] : '\0';
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const struct pe_elements *type = &types[i].elements;
        bool order_known = order && strchr(type->size == 1 ? "<>=|" : "<>=", order);
        if (order_known && equals(text + 1, length - 1, types[i].name)) {
            header->elements = *type;
            header->elements.big_endian = order == '>' || (order == '=' && !pe_host_little_endian());
            return PE_OK;
        }
    }
    return pe_fail(
        scan->err, PE_ERR_DTYPE, "",
        "npy elements are '%.*s', allowed are f2, f4, f8, i1 to i8, u1 to u8 and b1 after <, >, = or |",
        length < 40 ? (int)length : 40, text);
}

static int scan_fortran_order(struct scan *scan, struct header *header) {
    skip_space(scan);
    size_t left = (size_t)(scan->end - scan->at);
    header->fortran = left >= 4 && memcmp(scan->at, "True", 4) == 0;
    if (!header->fortran && !(left >= 5 && memcmp(scan->at, "False", 5) == 0)) {
        return fail(scan, "True or False");
    }
    scan->at += header->fortran ? 4 : 5;
    return PE_OK;
}

/* (), (3,), (2, 3), (2, 3,): a tuple of one needs its comma. */
static int scan_shape(struct scan *scan, struct header *header) {
    if (expect(scan, '(', "the ( of the shape")) {
        return scan->err->code;
    }
    bool comma = true;
    while (!take(scan, ')')) {
        if (!comma) {
            return fail(scan, "a comma or the ) of the shape");
        }
        if (header->rank == PE_MAX_RANK) {
            return pe_fail(scan->err, PE_ERR_SHAPE, "", "the npy file has more than %d axes", PE_MAX_RANK);
        }
        if (scan_size(scan, &header->dim[header->rank])) {
            return scan->err->code;
        }
        header->rank++;
        comma = take(scan, ',');
    }
    if (header->rank == 1 && !comma) {
        return pe_fail(scan->err, PE_ERR_FORMAT, "",
                       "the npy header has a shape of one axis without its comma");
    }
    return PE_OK;
}

static const struct {
    const char *name;
    int (*scan)(struct scan *scan, struct header *header);
} keys[] = {
    {"descr", scan_descr},
    {"fortran_order", scan_fortran_order},
    {"shape", scan_shape},
};
#define N_KEYS (sizeof keys / sizeof *keys)

/* One key with its value; `seen` has a bit for each key. */
static int scan_item(struct scan *scan, struct header *header, unsigned *seen) {
    const char *text;
    size_t length, i = 0;
    if (scan_text(scan, &text, &length, "a key in quotes")) {
        return scan->err->code;
    }
    while (i < N_KEYS && !equals(text, length, keys[i].name)) {
        i++;
    }
    if (i == N_KEYS) {
        return pe_fail(scan->err, PE_ERR_FORMAT, "",
                       "the npy header has the key '%.*s', allowed are descr, fortran_order and shape",
                       length < 40 ? (int)length : 40, text);
    }
    if (*seen & 1U << i) {
        return pe_fail(scan->err, PE_ERR_FORMAT, "", "the npy header has the key %s twice", keys[i].name);
    }
    *seen |= 1U << i;
    return expect(scan, ':', "a colon") ? scan->err->code : keys[i].scan(scan, header);
}

static int scan_header(struct scan *scan, struct header *header) {
    unsigned seen = 0;
    if (expect(scan, '{', "the { of the dictionary")) {
        return scan->err->code;
    }
    bool comma = true;
    while (!take(scan, '}')) {
        if (!comma) {
            return fail(scan, "a comma or the } of the dictionary");
        }
        if (scan_item(scan, header, &seen)) {
            return scan->err->code;
        }
        comma = take(scan, ',');
    }
    for (size_t i = 0; i < N_KEYS; i++) {
        if (!(seen & 1U << i)) {
            return pe_fail(scan->err, PE_ERR_FORMAT, "", "the npy header has no %s", keys[i].name);
        }
    }
    skip_space(scan);
    return scan->at == scan->end ? PE_OK : fail(scan, "nothing but spaces");
}

/* ---- Reading ---------------------------------------------------------------------------------------- */

/* ASCII only: also in version 3.0, as no name of a number needs more. */
static int text_check(struct scan *scan) {
    for (const char *at = scan->start; at < scan->end; at++) {
        if (*at != '\n' && (*at < 0x20 || *at > 0x7e)) {
            return pe_fail(scan->err, PE_ERR_FORMAT, "",
                           "the npy header has byte 0x%02x at %zu, which is not text", (unsigned char)*at,
                           (size_t)(at - scan->start));
        }
    }
    return PE_OK;
}

/* Magic, version and length of the header: sets `scan` to its text. */
static int scan_open(struct scan *scan, const unsigned char *bytes, size_t n) {
    if (n == 0 || memcmp(bytes, MAGIC, n < MAGIC_BYTES ? n : MAGIC_BYTES) != 0) {
        return pe_fail(scan->err, PE_ERR_FORMAT, "", "not an npy file: it does not begin with \\x93NUMPY");
    }
    if (n < 8) {
        return pe_fail(scan->err, PE_ERR_FORMAT, "", "the npy file ends after %zu bytes, before its version",
                       n);
    }
    size_t major = bytes[6], minor = bytes[7];
    if (major < 1 || major > 3 || minor != 0) {
        return pe_fail(scan->err, PE_ERR_FORMAT, "",
                       "npy version %zu.%zu is not known, allowed are 1.0, 2.0, 3.0", major, minor);
    }
    size_t length_bytes = major == 1 ? 2 : 4, begin = MAGIC_BYTES + 2 + length_bytes, length = 0;
    if (n < begin) {
        return pe_fail(scan->err, PE_ERR_FORMAT, "", "the npy file ends after %zu bytes, before its header",
                       n);
    }
    for (size_t i = 0; i < length_bytes; i++) {
        length |= (size_t)bytes[8 + i] << 8 * i;
    }
    if (length > n - begin) {
        return pe_fail(scan->err, PE_ERR_FORMAT, "", "the npy header has %zu bytes, but only %zu follow",
                       length, n - begin);
    }
    if (length > HEADER_MAX) {
        return pe_fail(scan->err, PE_ERR_FORMAT, "", "the npy header has %zu bytes, at most %d are allowed",
                       length, HEADER_MAX);
    }
    scan->start = scan->at = (const char *)bytes + begin;
    scan->end = scan->start + length;
    scan->suffix_allowed = major < 3;
    return text_check(scan);
}

int pe_npy_read(struct pe_arena *arena, struct pe_tensor *out, const void *bytes, size_t n,
                struct pe_error *err) {
    struct scan scan = {.err = err};
    struct header header = {0};
    if (err->code || scan_open(&scan, bytes, n) || scan_header(&scan, &header)) {
        return err->code;
    }
    struct pe_tensor tensor = {.rank = header.rank};
    memcpy(tensor.dim, header.dim, sizeof tensor.dim);
    size_t there = (size_t)((const char *)bytes + n - scan.end), need;
    size_t factors[2] = {pe_tensor_count(&tensor), header.elements.size};
    char shape[200];
    pe_tensor_shape_text(&tensor, shape, sizeof shape);
    if (!pe_size_product(factors, 2, &need) || need != there) {
        return pe_fail(err, PE_ERR_FORMAT, "",
                       "npy shape %s of %zu-byte elements does not take the %zu bytes there", shape,
                       header.elements.size, there);
    }
    header.elements.fortran = header.fortran;
    if (pe_elements_read(arena, &tensor, &header.elements, scan.end, err)) {
        return err->code;
    }
    *out = tensor;
    return PE_OK;
}

/* ---- Writing ---------------------------------------------------------------------------------------- */

static const char *descr_of(enum pe_dtype dtype) {
    static const char *const descr[PE_DTYPE_COUNT] = {
        [PE_DTYPE_F64] = "<f8", [PE_DTYPE_F32] = "<f4", [PE_DTYPE_F16] = "<f2"};
    return dtype < PE_DTYPE_COUNT ? descr[dtype] : NULL;
}

size_t pe_npy_header(char *out, size_t size, const struct pe_tensor *tensor) {
    char text[PE_NPY_HEADER_MAX];
    const char *descr = descr_of(tensor->dtype);
    if (!descr || tensor->rank < 0 || tensor->rank > PE_MAX_RANK) {
        return 0;
    }
    int used = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < tensor->rank; i++) {
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%zu%s", i ? " " : "", tensor->dim[i],
                         i < tensor->rank - 1 || i == 0 ? "," : "");
    }
    used += snprintf(text + used, sizeof text - (size_t)used, "), }");
    /* 10 bytes before the text, a line break after it; 8 axes of 20 digits make 241 bytes. */
    size_t prefix = MAGIC_BYTES + 4, total = prefix + (size_t)used + 1;
    total = (total + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (total > size) {
        return 0;
    }
    size_t length = total - prefix;
    memcpy(out, MAGIC "\x01\x00", MAGIC_BYTES + 2);
    out[8] = (char)(length & 0xff);
    out[9] = (char)(length >> 8);
    memcpy(out + prefix, text, (size_t)used);
    memset(out + prefix + used, ' ', length - (size_t)used);
    out[total - 1] = '\n';
    return total;
}
