/* SPDX-License-Identifier: MIT
 *
 * libposenc: tensors in files (npy, safetensors) and numbers as text. Part of posenc.h, which includes it.
 */
#ifndef POSENC_FORMATS_H
#define POSENC_FORMATS_H

#include "posenc_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Formats ------------------------------------------------------------------------------------------ */

/* An npy file (versions 1.0, 2.0, 3.0) as a tensor: a VIEW into `bytes` when its elements are floats that lie
 * aligned, in the machine's byte order and in C order, else an ARENA copy. Whole numbers and booleans become
 * float64 where that is exact, and are PE_ERR_RANGE at their index where it is not. `bytes` are not trusted:
 * whatever is wrong with them is PE_ERR_FORMAT, a type of element that is not a number PE_ERR_DTYPE. */
PE_API int pe_npy_read(struct pe_arena *arena, struct pe_tensor *out, const void *bytes, size_t n,
                       struct pe_error *err) PE_CHECKED;
#define PE_NPY_HEADER_MAX 256
/* The header (version 1.0) of a file with this dtype and shape; tensor->data is not read. After it follow the
 * elements, little-endian in C order. Returns its length, a multiple of 64 and at most PE_NPY_HEADER_MAX; 0
 * for bfloat16, which npy cannot name, and when `size` is too small. */
PE_API size_t pe_npy_header(char *out, size_t size, const struct pe_tensor *tensor);

/* One tensor of a safetensors file, as its header describes it. */
struct pe_safetensors_entry {
    const char *name;  /* UTF-8 */
    const char *dtype; /* as the file writes it: "F32", "I64", "F8_E4M3" ... */
    size_t rank;       /* may be over PE_MAX_RANK; dim then holds the first axes */
    size_t dim[PE_MAX_RANK];
    size_t begin, end; /* bytes from the start of the data */
};

/* The checked header of a file: entries are in ARENA memory, in the order of their names; data is a VIEW. */
struct pe_safetensors {
    size_t n;
    const struct pe_safetensors_entry *entries;
    const void *data;
    size_t data_bytes;
};

/* Reads and checks the header of a file held in `bytes`, which are not trusted: PE_ERR_FORMAT. The ranges of
 * the tensors must cover the data without overlaps or holes. */
PE_API int pe_safetensors_open(struct pe_arena *arena, struct pe_safetensors *file, const void *bytes,
                               size_t n, struct pe_error *err) PE_CHECKED;
/* NULL when there is no tensor of that name. */
PE_API const struct pe_safetensors_entry *pe_safetensors_find(const struct pe_safetensors *file,
                                                              const char *name);
/* The tensor of that name (NULL: the only one of the file): a VIEW when it lies aligned, else an ARENA copy;
 * whole numbers and booleans as in pe_npy_read. PE_ERR_UNKNOWN_NAME, or PE_ERR_DTYPE for other elements. */
PE_API int pe_safetensors_get(struct pe_arena *arena, struct pe_tensor *out,
                              const struct pe_safetensors *file, const char *name,
                              struct pe_error *err) PE_CHECKED;

/* A tensor with its name. */
struct pe_named_tensor {
    const char *name;
    struct pe_tensor tensor;
};

/* What comes before the data of a safetensors file. */
struct pe_safetensors_header {
    const char *text; /* ARENA: the 8 bytes of the length, then the JSON, padded to a multiple of 8 */
    size_t bytes;
    size_t file_bytes; /* of the whole file: bytes and those of all tensors */
};

/* The header of a file with these tensors, whose data follow one after the other, little-endian in C order;
 * tensor.data is not read. Give wider element types first where all should lie aligned. */
PE_API int pe_safetensors_write(struct pe_arena *arena, struct pe_safetensors_header *header,
                                const struct pe_named_tensor *tensors, size_t n,
                                struct pe_error *err) PE_CHECKED;

/* ---- Numbers as text ----------------------------------------------------------------------------------- */

/* Numbers as JSON text. Independent of the locale both ways (strtod is only ever asked in the C locale, which
 * a program that embeds the library must not leave).
 *
 * Writing: the fewest digits that read back to the same value, and of those the nearest. Fixed notation where
 * 1e-5 <= |x| < 1e16 (`0.00001`, `16777216.0`), else an exponent (`1e-7`, `1.5e20`); a whole number keeps its
 * ".0", and -0 is `-0.0`, so what was a float is read back as one.
 *
 * Reading: the grammar of RFC 8259 and nothing more, rounded once to the nearest double, ties to even.
 */

/* Every writer may use this much of `out`, though no text is longer than 25 bytes. No terminating zero. */
#define PE_NUMBER_ROOM 48

/* Each returns the length of the text. NaN and the infinities, which JSON does not have, give `null`. */
PE_API size_t pe_number_write_f32(char *out, float value);
PE_API size_t pe_number_write_f64(char *out, double value);
PE_API size_t pe_number_write_int(char *out, int64_t value);

/* n numbers as pe_number_write_f32 writes them, each with a comma behind it; they may use this much of `out`. */
#define PE_NUMBERS_ROOM(n) (20 * (n) + PE_NUMBER_ROOM)
PE_API size_t pe_numbers_write_f32(char *out, const float *values, size_t n);

enum pe_number_status {
    PE_NUMBER_OK,
    PE_NUMBER_SYNTAX,  /* not a JSON number: 01, +1, .5, 5., 1e, NaN ... */
    PE_NUMBER_OVERFLOW /* beyond the largest double, as 1e400 */
};

struct pe_number {
    double value; /* on overflow the infinity of its sign; too small is zero */
    float single; /* the text rounded once to float */
    bool twice;   /* (float)value is another: rounding twice would go wrong */
    bool beyond;  /* value is 2^53 or -2^53, but only by rounding: the text lies further from zero */
    bool decimal; /* of few digits: the next two are the very text */
    uint32_t digits;
    int8_t exponent;
};

/* Reads the number that begins at *text and ends before `end` or at the first byte that cannot continue it.
 * *text becomes its end, or on PE_NUMBER_SYNTAX the byte that is wrong (`end` when bytes are missing). */
PE_API enum pe_number_status pe_number_scan(const char **text, const char *end, struct pe_number *out);
/* The whole of text[0..length) must be the number. */
PE_API enum pe_number_status pe_number_parse(const char *text, size_t length, struct pe_number *out);

/* ---- Many numbers of few digits ------------------------------------------------------------------------ */

/* Numbers as they were written, so that any type can still be made of them, in 5 bytes each: the digits as one
 * number below 2^31, which is enough for the shortest text of any float, and a power of ten. The lowest bit of
 * digits[i] is the sign: (-1)^(digits & 1) * (digits >> 1) * 10^exponent. */
struct pe_decimals {
    uint32_t *digits;  /* [room] */
    int8_t *exponents; /* [room] */
    size_t n, room;
};
#define PE_DECIMAL_MINUS_INF INT8_MIN /* an exponent: the number is minus infinity */

/* Appends numbers at `text`, each followed by a comma and perhaps spaces, as long as there is room and they are
 * plain: no exponent, digits below 2^31, right by the grammar. Returns the first byte that it did not take, at
 * which a number should begin; near `end` it may stop early. */
PE_API const char *pe_decimals_scan(struct pe_decimals *list, const char *text, const char *end);
/* Each number rounded once. `out` may be the memory of the digits. */
PE_API void pe_decimals_f32(void *out, const uint32_t *digits, const int8_t *exponents, size_t n);
/* One of them as pe_number_scan had it; of minus infinity only value and single. */
PE_API void pe_decimal_number(uint32_t digits, int8_t exponent, struct pe_number *out);

#ifdef __cplusplus
}
#endif

#endif
