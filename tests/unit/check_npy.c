/* SPDX-License-Identifier: MIT
 *
 * npy: files as NumPy writes them (tests/golden/make_formats.py), every way to be malformed, headers written,
 * and that no change of a byte and no cut makes the reader read what is not there.
 */
#include "damage.h"
#include "suites.h"

#include "posenc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct npy_case {
    const char *name;
    size_t n;
    const char *bytes;
    enum pe_dtype dtype;
    int rank;
    size_t dim[PE_MAX_RANK];
    const double *values;
};
#include "../golden/npy_files.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct pe_arena *arena;
static struct pe_error err;

static void setup(void) {
    err = (struct pe_error){0};
    arena = pe_arena_open((size_t)1 << 20, NULL, &err);
}

static void teardown(void) {
    pe_arena_close(arena);
}

/* The file at an address that is `shift` off from an aligned one. */
static const unsigned char *place(const struct npy_case *file, size_t shift) {
    unsigned char *copy = pe_arena_alloc(arena, file->n + shift, &err);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy + shift, file->bytes, file->n);
    return copy + shift;
}

static void assert_tensor(const struct npy_case *want, const struct pe_tensor *got) {
    ck_assert_msg(got->dtype == want->dtype && got->rank == want->rank, "%s", want->name);
    for (int i = 0; i < want->rank; i++) {
        ck_assert_msg(got->dim[i] == want->dim[i], "%s", want->name);
    }
    double values[64];
    size_t n = pe_tensor_count(got);
    ck_assert_uint_le(n, COUNT(values));
    pe_dtype_load(got->dtype, got->data, n, values);
    ck_assert_msg(memcmp(values, want->values, n * sizeof *values) == 0, "%s", want->name);
}

START_TEST(files_of_numpy_are_read) {
    const struct npy_case *want = &npy_cases[_i];
    for (size_t shift = 0; shift < 9; shift++) {
        struct pe_tensor got;
        int code = pe_npy_read(arena, &got, place(want, shift), want->n, &err);
        ck_assert_msg(code == PE_OK, "%s: %s", want->name, err.text);
        assert_tensor(want, &got);
        ck_assert_uint_eq((uintptr_t)got.data % pe_dtype_size(got.dtype), 0);
    }
}
END_TEST

/* Views where possible: little-endian floats in C order (on a little-endian machine). */
START_TEST(aligned_floats_are_viewed) {
    const struct npy_case *file = &npy_cases[0]; /* <f8 */
    const unsigned char *bytes = place(file, 0);
    struct pe_tensor got;
    ck_assert_int_eq(pe_npy_read(arena, &got, bytes, file->n, &err), PE_OK);
    uint16_t one = 1;
    bool little = *(const unsigned char *)&one == 1;
    ck_assert_int_eq(got.data == (const void *)(bytes + file->n - 48), little);
}
END_TEST

static const struct {
    const char *header;
    size_t data_bytes;
    int code;
    const char *says;
} malformed[] = {
    {"", 0, PE_ERR_FORMAT, "ends where the { of the dictionary should be"},
    {"[]", 0, PE_ERR_FORMAT, "has '[' at byte 0, where the { of the dictionary should be"},
    {"{}", 0, PE_ERR_FORMAT, "has no descr"},
    {"{", 0, PE_ERR_FORMAT, "ends where a key in quotes should be"},
    {"{'descr'", 0, PE_ERR_FORMAT, "ends where a colon should be"},
    {"{'descr: '<f4'}", 0, PE_ERR_FORMAT, "has the key 'descr: '"},
    {"{'descr", 0, PE_ERR_FORMAT, "a closing quote should be"},
    {"{'de\\x73cr': '<f4'}", 0, PE_ERR_FORMAT, "a closing quote should be"},
    {"{'descr': '<f4', 'fortran_order': False}", 0, PE_ERR_FORMAT, "has no shape"},
    {"{'descr': '<f4', 'shape': ()}", 4, PE_ERR_FORMAT, "has no fortran_order"},
    {"{'fortran_order': False, 'shape': ()}", 4, PE_ERR_FORMAT, "has no descr"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (), 'x': 1}", 4, PE_ERR_FORMAT, "has the key 'x'"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (), 'descr': '<f4'}", 4, PE_ERR_FORMAT,
     "has the key descr twice"},
    {"{'descr': '<f4' 'fortran_order': False, 'shape': ()}", 4, PE_ERR_FORMAT, "a comma or the } of"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': ()", 4, PE_ERR_FORMAT, "a comma or the } of"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", 4, PE_ERR_FORMAT, "nothing but spaces"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': ()}}", 4, PE_ERR_FORMAT, "nothing but spaces"},
    {"{'descr': '<f4', 'fortran_order': false, 'shape': ()}", 4, PE_ERR_FORMAT, "True or False"},
    {"{'descr': '<f4', 'fortran_order': Fals", 4, PE_ERR_FORMAT, "True or False"},
    {"{'descr': '<f4', 'fortran_order': 0, 'shape': ()}", 4, PE_ERR_FORMAT, "True or False"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3)}", 12, PE_ERR_FORMAT, "without its comma"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': [3]}", 12, PE_ERR_FORMAT, "the ( of the shape"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}", 12, PE_ERR_FORMAT, "a size of the shape"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (03,)}", 12, PE_ERR_FORMAT, "a size of the shape"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3.0,)}", 12, PE_ERR_FORMAT, "a comma or the ) of"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (,)}", 4, PE_ERR_FORMAT, "a size of the shape"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,,1)}", 4, PE_ERR_FORMAT, "a size of the shape"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1 1)}", 4, PE_ERR_FORMAT, "a comma or the ) of"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,", 12, PE_ERR_FORMAT, "a size of the shape"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", 4, PE_ERR_SHAPE,
     "more than 8 axes"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551616,)}", 0, PE_ERR_FORMAT,
     "too large"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999,)}", 0, PE_ERR_FORMAT,
     "too large"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", 0, PE_ERR_FORMAT,
     "does not take the 0 bytes"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,)}", 0, PE_ERR_FORMAT,
     "does not take the 0 bytes"},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (18446744073709551615,)}", 7, PE_ERR_FORMAT,
     "does not take the 7 bytes"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", 23, PE_ERR_FORMAT,
     "npy shape [2, 3] of 4-byte elements does not take the 23 bytes"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", 25, PE_ERR_FORMAT, "the 25 bytes"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': ()}", 0, PE_ERR_FORMAT, "the 0 bytes"},
    {"{'descr': '<f16', 'fortran_order': False, 'shape': ()}", 16, PE_ERR_DTYPE, "npy elements are '<f16'"},
    {"{'descr': '<c8', 'fortran_order': False, 'shape': ()}", 8, PE_ERR_DTYPE, "npy elements are '<c8'"},
    {"{'descr': '|O', 'fortran_order': False, 'shape': ()}", 8, PE_ERR_DTYPE, "npy elements are '|O'"},
    {"{'descr': '|V2', 'fortran_order': False, 'shape': ()}", 2, PE_ERR_DTYPE, "npy elements are '|V2'"},
    {"{'descr': '|f4', 'fortran_order': False, 'shape': ()}", 4, PE_ERR_DTYPE, "npy elements are '|f4'"},
    {"{'descr': 'f4', 'fortran_order': False, 'shape': ()}", 4, PE_ERR_DTYPE, "npy elements are 'f4'"},
    {"{'descr': '<f4 ', 'fortran_order': False, 'shape': ()}", 4, PE_ERR_DTYPE, "npy elements are '<f4 '"},
    {"{'descr': '', 'fortran_order': False, 'shape': ()}", 4, PE_ERR_DTYPE, "npy elements are ''"},
    {"{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': ()}", 4, PE_ERR_DTYPE, "several fields"},
    {"{'descr': <f4, 'fortran_order': False, 'shape': ()}", 4, PE_ERR_FORMAT, "the text of descr"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (\t)}", 4, PE_ERR_FORMAT,
     "byte 0x09 at 51, which is not text"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': ()}\xc3\xa9", 4, PE_ERR_FORMAT, "byte 0xc3"},
};

/* A file of version 1.0 with that header; data are zeros. */
static struct pe_tensor read_header(const char *header, size_t data_bytes) {
    size_t length = strlen(header), n = 10 + length + data_bytes;
    unsigned char *bytes = pe_arena_array(arena, n, 1, &err);
    struct pe_tensor out = {0};
    memcpy(bytes, "\x93NUMPY\x01\x00", 8);
    bytes[8] = (unsigned char)(length & 0xff);
    bytes[9] = (unsigned char)(length >> 8);
    memcpy(bytes + 10, header, length);
    (void)!pe_npy_read(arena, &out, bytes, n, &err);
    return out;
}

START_TEST(malformed_headers_are_refused) {
    read_header(malformed[_i].header, malformed[_i].data_bytes);
    ck_assert_msg(err.code == malformed[_i].code && strstr(err.text, malformed[_i].says), "%s: got %d %s",
                  malformed[_i].header, err.code, err.text);
    ck_assert_str_eq(err.path, "");
    ck_assert_uint_lt(pe_arena_used(arena), 4096); /* nothing was taken for the shape */
}
END_TEST

/* What Python would read as the same: other orders, quotes, spaces, a last comma or none, Python 2's 3L. */
START_TEST(headers_of_other_writers_are_read) {
    static const char *const headers[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }          \n",
        "{'shape': (2, 3), 'fortran_order': False, 'descr': '<f4'}",
        "{\"descr\":\"<f4\",\"fortran_order\":False,\"shape\":(2,3)}",
        "  { 'fortran_order' : False , 'shape' : ( 2 , 3 , ) , 'descr' : '=f4' , } ",
        "{'descr': '>f4', 'fortran_order': True, 'shape': (2L, 3L)}",
    };
    struct pe_tensor out = read_header(headers[_i], 24);
    ck_assert_msg(err.code == PE_OK, "%s", err.text);
    ck_assert(out.dtype == PE_DTYPE_F32 && out.rank == 2 && out.dim[0] == 2 && out.dim[1] == 3);
}
END_TEST

/* The order of the keys changes nothing: fortran_order before descr. */
START_TEST(fortran_order_holds_wherever_it_stands) {
    static const char file[] = "\x93NUMPY\x01\x00\x40\x00"
                               "{'fortran_order': True, 'shape': (2, 2), 'descr': '|u1'}        "
                               "\x01\x02\x03\x04";
    struct pe_tensor out;
    ck_assert_int_eq(pe_npy_read(arena, &out, file, sizeof file - 1, &err), PE_OK);
    static const double want[] = {1, 3, 2, 4};
    ck_assert_mem_eq(out.data, want, sizeof want);
}
END_TEST

static const struct {
    const char *bytes;
    size_t n;
    const char *says;
} cut[] = {
    {"", 0, "does not begin with"},
    {"PK\x03\x04", 4, "does not begin with"},
    {"\x93NUMPX\x01\x00\x02\x00{}", 12, "does not begin with"},
    {"\x93NUM", 4, "ends after 4 bytes"},
    {"\x93NUMPY", 6, "ends after 6 bytes"},
    {"\x93NUMPY\x01", 7, "ends after 7 bytes"},
    {"\x93NUMPY\x01\x00\x02", 9, "ends after 9 bytes"},
    {"\x93NUMPY\x02\x00\x02\x00\x00", 11, "ends after 11 bytes"},
    {"\x93NUMPY\x00\x00\x02\x00{}", 12, "version 0.0"},
    {"\x93NUMPY\x04\x00\x02\x00{}", 12, "version 4.0"},
    {"\x93NUMPY\x01\x01\x02\x00{}", 12, "version 1.1"},
    {"\x93NUMPY\x01\x00\x03\x00{}", 12, "has 3 bytes, but only 2 follow"},
    {"\x93NUMPY\x02\x00\xff\xff\xff\xff{}", 14, "has 4294967295 bytes, but only 2 follow"},
};

START_TEST(beginnings_that_are_not_npy_are_refused) {
    struct pe_tensor out;
    ck_assert_int_eq(pe_npy_read(arena, &out, cut[_i].bytes, cut[_i].n, &err), PE_ERR_FORMAT);
    ck_assert_msg(strstr(err.text, cut[_i].says), "%s", err.text);
}
END_TEST

/* 2^53 + 1 lies between two doubles; a boolean is 0 or 1. */
START_TEST(whole_numbers_must_be_exact) {
    static const struct {
        const char *descr, *element, *says;
        int code;
    } rows[] = {
        {"<i8", "\x01\0\0\0\0\0\x20\0", "got 9007199254740993, which", PE_ERR_RANGE},
        {">i8", "\xff\xdf\xff\xff\xff\xff\xff\xff", "got -9007199254740993, which", PE_ERR_RANGE},
        {"<u8", "\xff\xff\xff\xff\xff\xff\xff\xff", "got 18446744073709551615, which", PE_ERR_RANGE},
        {"<i8", "\xff\xff\xff\xff\xff\xff\xff\x7f", "got 9223372036854775807, which", PE_ERR_RANGE},
        {"|b1", "\x02", "got byte 2 for a boolean", PE_ERR_FORMAT},
    };
    char file[128];
    size_t size = (size_t)(rows[_i].descr[2] - '0');
    int n = snprintf(file, sizeof file,
                     "\x93NUMPY\x01_\x39_{'descr': '%s', 'fortran_order': False, 'shape': (1, 2)}",
                     rows[_i].descr);
    file[7] = file[9] = 0;
    ck_assert_int_eq(n, 10 + 0x39);
    memset(file + n, 0, size);
    memcpy(file + n + size, rows[_i].element, size);
    struct pe_tensor out;
    ck_assert_int_eq(pe_npy_read(arena, &out, file, (size_t)n + 2 * size, &err), rows[_i].code);
    ck_assert_msg(strstr(err.text, rows[_i].says), "%s", err.text);
    ck_assert_str_eq(err.path, "[0][1]");
}
END_TEST

/* What we write, we and NumPy read; the dictionary is NumPy's to the letter. */
START_TEST(headers_written_are_those_of_numpy) {
    for (size_t i = 0; i < COUNT(npy_cases); i++) {
        const struct npy_case *file = &npy_cases[i];
        char header[PE_NPY_HEADER_MAX + 64 * 8];
        struct pe_tensor shape = {.dtype = file->dtype, .rank = file->rank}, out;
        memcpy(shape.dim, file->dim, sizeof shape.dim);
        size_t n = pe_npy_header(header, PE_NPY_HEADER_MAX, &shape);
        ck_assert(n > 0 && n % 64 == 0 && n <= PE_NPY_HEADER_MAX && header[n - 1] == '\n');
        ck_assert_uint_eq(pe_npy_header(header, n - 1, &shape), 0);
        if (file->name[0] == '<' && file->name[1] == 'f' && !strchr(file->name, ' ')) {
            size_t length = (size_t)(strchr(file->bytes + 10, '}') - file->bytes) + 1;
            ck_assert_mem_eq(header, file->bytes, 8);
            ck_assert_mem_eq(header + 10, file->bytes + 10, length - 10);
        }
        pe_dtype_store(file->dtype, file->values, pe_tensor_count(&shape), header + n);
        ck_assert_int_eq(pe_npy_read(arena, &out, header, n + pe_tensor_bytes(&shape), &err), PE_OK);
        assert_tensor(file, &out);
    }
    struct pe_tensor brain = {.dtype = PE_DTYPE_BF16}, huge = {.dtype = PE_DTYPE_F16, .rank = PE_MAX_RANK};
    char text[PE_NPY_HEADER_MAX];
    ck_assert_uint_eq(pe_npy_header(text, sizeof text, &brain), 0);
    for (int i = 0; i < PE_MAX_RANK; i++) {
        huge.dim[i] = SIZE_MAX;
    }
    ck_assert_uint_eq(pe_npy_header(text, sizeof text, &huge), PE_NPY_HEADER_MAX);
}
END_TEST

/* Reads a copy of exactly n bytes, so that a sanitizer sees one byte more; touches all that is returned. */
static int read_exactly(const unsigned char *bytes, size_t n) {
    struct pe_error failure = {0};
    struct pe_arena *own = pe_arena_open((size_t)1 << 20, NULL, &failure);
    unsigned char *copy = malloc(n ? n : 1);
    struct pe_tensor out;
    double values[8];
    memcpy(copy, bytes, n);
    int code = pe_npy_read(own, &out, copy, n, &failure);
    ck_assert_int_eq(code, failure.code);
    if (code == PE_OK) {
        size_t count = pe_tensor_count(&out), size = pe_dtype_size(out.dtype);
        ck_assert_uint_le(count, n);
        for (size_t i = 0; i < count; i++) {
            pe_dtype_load(out.dtype, (const char *)out.data + i * size, 1, values);
        }
    } else {
        ck_assert(failure.text[0] && code != PE_ERR_LIMIT);
    }
    free(copy);
    pe_arena_close(own);
    return code;
}

/* All values of a byte for some files, a few for the others. */
START_TEST(no_cut_and_no_changed_byte_is_read_beyond) {
    const struct npy_case *file = &npy_cases[_i];
    damage_file(file->bytes, file->n, _i % 8 == 0 ? 1 : 37, read_exactly);
}
END_TEST

/* Longer than any that describes a tensor, and there. */
START_TEST(endless_headers_are_refused) {
    size_t length = ((size_t)1 << 20) + 1;
    unsigned char *file = calloc(length + 12, 1);
    struct pe_tensor out;
    memcpy(file, "\x93NUMPY\x02\0\x01\0\x10\0", 12);
    ck_assert_int_eq(pe_npy_read(arena, &out, file, length + 12, &err), PE_ERR_FORMAT);
    ck_assert_str_eq(err.text, "the npy header has 1048577 bytes, at most 1048576 are allowed");
    free(file);
}
END_TEST

Suite *npy_suite(void) {
    Suite *suite = suite_create("npy");
    TCase *tc = tcase_create("npy");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, files_of_numpy_are_read, 0, (int)COUNT(npy_cases));
    tcase_add_test(tc, aligned_floats_are_viewed);
    tcase_add_loop_test(tc, malformed_headers_are_refused, 0, (int)COUNT(malformed));
    tcase_add_loop_test(tc, headers_of_other_writers_are_read, 0, 5);
    tcase_add_test(tc, fortran_order_holds_wherever_it_stands);
    tcase_add_loop_test(tc, beginnings_that_are_not_npy_are_refused, 0, (int)COUNT(cut));
    tcase_add_loop_test(tc, whole_numbers_must_be_exact, 0, 5);
    tcase_add_test(tc, headers_written_are_those_of_numpy);
    tcase_add_test(tc, endless_headers_are_refused);
    tcase_add_loop_test(tc, no_cut_and_no_changed_byte_is_read_beyond, 0, (int)COUNT(npy_cases));
    suite_add_tcase(suite, tc);
    return suite;
}
