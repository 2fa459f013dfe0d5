/* SPDX-License-Identifier: MIT
 *
 * safetensors: files put together by an independent script (tests/golden/make_formats.py), every way to be
 * malformed, headers written, and that no change of a byte and no cut makes the reader read what is not
 * there.
 */
#include "damage.h"
#include "suites.h"

#include "core/utf8.h"
#include "posenc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct safetensors_tensor {
    const char *name, *dtype;
    size_t rank, dim[PE_MAX_RANK];
    const double *values;
};
struct safetensors_case {
    const char *name;
    size_t n;
    const char *bytes;
    size_t n_tensors;
    const struct safetensors_tensor *tensors;
};
#include "../golden/safetensors_files.h"

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

static void assert_tensor(const struct pe_safetensors *file, const struct safetensors_tensor *want) {
    const struct pe_safetensors_entry *entry = pe_safetensors_find(file, want->name);
    ck_assert_msg(entry, "no %s", want->name);
    ck_assert_str_eq(entry->name, want->name);
    ck_assert_str_eq(entry->dtype, want->dtype);
    ck_assert_uint_eq(entry->rank, want->rank);
    ck_assert_mem_eq(entry->dim, want->dim, sizeof want->dim);
    struct pe_tensor tensor;
    struct pe_error failure = {0};
    int code = pe_safetensors_get(arena, &tensor, file, want->name, &failure);
    if (want->rank > PE_MAX_RANK) {
        ck_assert_int_eq(code, PE_ERR_SHAPE);
    } else if (want->dtype[0] == 'F' && strchr(want->dtype, '_')) {
        ck_assert_int_eq(code, PE_ERR_DTYPE);
    } else {
        ck_assert_msg(code == PE_OK, "%s: %s", want->name, failure.text);
        double values[16];
        size_t n = pe_tensor_count(&tensor);
        ck_assert_uint_eq((uintptr_t)tensor.data % pe_dtype_size(tensor.dtype), 0);
        pe_dtype_load(tensor.dtype, tensor.data, n, values);
        ck_assert_msg(memcmp(values, want->values, n * sizeof *values) == 0, "%s", want->name);
    }
}

START_TEST(files_of_the_script_are_read) {
    const struct safetensors_case *want = &safetensors_cases[_i];
    for (size_t shift = 0; shift < 9; shift++) {
        struct pe_safetensors file;
        char *copy = pe_arena_alloc(arena, want->n + shift, &err);
        memcpy(copy + shift, want->bytes, want->n);
        int code = pe_safetensors_open(arena, &file, copy + shift, want->n, &err);
        ck_assert_msg(code == PE_OK, "%s: %s", want->name, err.text);
        ck_assert_uint_eq(file.n, want->n_tensors);
        for (size_t i = 0; i < want->n_tensors; i++) {
            assert_tensor(&file, &want->tensors[i]);
        }
        for (size_t i = 1; i < file.n; i++) {
            ck_assert_int_lt(strcmp(file.entries[i - 1].name, file.entries[i].name), 0);
        }
    }
}
END_TEST

START_TEST(a_tensor_is_found_by_its_name) {
    struct pe_safetensors file;
    struct pe_tensor out;
    const struct safetensors_case *two = &safetensors_cases[1];
    ck_assert_int_eq(pe_safetensors_open(arena, &file, two->bytes, two->n, &err), PE_OK);
    ck_assert_ptr_null(pe_safetensors_find(&file, "wpe"));
    ck_assert_int_eq(pe_safetensors_get(arena, &out, &file, "wpe", &err), PE_ERR_UNKNOWN_NAME);
    ck_assert_str_eq(err.text, "no tensor 'wpe' among the 2 of the file: 'wpe.weight', 'wte.weight'");
    err = (struct pe_error){0};
    ck_assert_int_eq(pe_safetensors_get(arena, &out, &file, NULL, &err), PE_ERR_MISSING);
    ck_assert_str_eq(err.text, "a file of 2 tensors needs a name; it has 'wpe.weight', 'wte.weight'");
}
END_TEST

#define A  "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}"
#define A2 "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}"
#define B2 "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}"
#define ONE(dtype, shape, offsets)                                                                           \
    "{\"a\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" offsets "]}}"

static const struct {
    const char *header;
    size_t data_bytes;
    const char *says; /* NULL: it is fine */
} headers[] = {
    {"{" A "}", 4, NULL},
    {"{" A "," B2 "}", 8, NULL},
    {"{" B2 "," A "}", 8, NULL},
    {"{" A "} \n\t\r ", 4, NULL},
    {"{ \"a\" : { \"shape\" : [ 1 , 1 ] ,\n\"data_offsets\":[ 0 , 4 ],\"dtype\" : \"F32\" } }", 4, NULL},
    {"{\"a\":{\"\\u0064type\":\"F\\u00332\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, NULL},
    {"{\"__metadata__\":{}}", 0, NULL},
    {"{\"__metadata__\":{\"a\":\"\",\"b\":\"\\ud834\\udd1e\"}," A "}", 4, NULL},
    {ONE("F32", "0,18446744073709551615", "0,0"), 0, NULL},
    {ONE("F4", "2", "0,1"), 1, NULL},
    {ONE("Q9", "2", "0,3"), 3, NULL}, /* a type of the future has an unknown size */
    {"", 0, "ends where a { at the very beginning should be"},
    {" {" A "}", 4, "byte 0x20 at 0, where a { at the very beginning"},
    {"[]", 0, "a { at the very beginning"},
    {"{", 0, "ends where a name in quotes"},
    {"{" A, 4, "ends where a comma or a }"},
    {"{" A ",}", 4, "a name in quotes"},
    {"{" A "}}", 4, "nothing but spaces"},
    {"{" A " " B2 "}", 8, "a comma or a }"},
    {"{'a':1}", 0, "a name in quotes"},
    {"{\"a\"}", 0, "a colon"},
    {"{\"a\":1}", 0, "where a { should be"},
    {"{\"a\":[]}", 0, "where a { should be"},
    {"{\"a\":{}}", 0, "'a' has no dtype"},
    {"{\"a\":{\"dtype\":\"F32\"}}", 0, "'a' has no shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[]}}", 4, "'a' has no data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4],\"x\":0}}", 4, "has the key 'x'"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4],\"shape\":[]}}", 4,
     "has the key shape twice"},
    {"{\"a\":{\"dtype\":4,\"shape\":[],\"data_offsets\":[0,4]}}", 4, "the text of dtype"},
    {"{\"a\":{\"dtype\":null,\"shape\":[],\"data_offsets\":[0,4]}}", 4, "the text of dtype"},
    {"{" A "," A2 "}", 8, "has two tensors 'a'"},
    {"{\"\\u0061\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}," A "}", 8,
     "has two tensors 'a'"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "has __metadata__ twice"},
    {"{\"__metadata__\":{\"k\":\"1\",\"j\":\"\",\"k\":\"2\"}}", 0, "has the key 'k' twice"},
    {"{\"__metadata__\":{\"k\":1}}", 0, "a text of __metadata__"},
    {"{\"__metadata__\":{\"k\":{}}}", 0, "a text of __metadata__"},
    {"{\"__metadata__\":\"x\"}", 0, "where a { should be"},
    {ONE("F32", "1", "0"), 4, "data_offsets has 1 numbers"},
    {ONE("F32", "1", "0,4,8"), 4, "data_offsets has 3 numbers"},
    {ONE("F32", "1", "4,0"), 4, "lies at bytes 4 to 0"},
    {ONE("F32", "1", "0,8"), 4, "lies at bytes 0 to 8, but there are 4"},
    {ONE("F32", "1", "18446744073709551612,0"), 4, "lies at bytes 18446744073709551612 to 0"},
    {ONE("F32", "1", "-4,0"), 4, "a whole number"},
    {ONE("F32", "1", "0,4.0"), 4, "a comma or a ]"},
    {ONE("F32", "1", "0,4e0"), 4, "a comma or a ]"},
    {ONE("F32", "01", "0,4"), 4, "a whole number"},
    {ONE("F32", "1,", "0,4"), 4, "a whole number"},
    {ONE("F32", "\"1\"", "0,4"), 4, "a whole number"},
    {ONE("F32", "[1]", "0,4"), 4, "a whole number"},
    {ONE("F32", "18446744073709551616", "0,4"), 4, "a number that is too large"},
    {ONE("F32", "4611686018427387904", "0,0"), 0, "a shape that is too large"},
    {ONE("F32", "4294967296,4294967296", "0,0"), 0, "a shape that is too large"},
    {ONE("F32", "2", "0,4"), 4, "has 4 bytes, its shape and dtype make 64 bits"},
    {ONE("F4", "3", "0,1"), 1, "has 1 bytes, its shape and dtype make 12 bits"},
    {ONE("F32", "1", "0,4"), 5, "end at byte 4, but there are 5"},
    {ONE("F32", "1", "1,5"), 5, "begins at byte 1, the one before it ends at 0"},
    {"{}", 1, "end at byte 0, but there are 1"},
    {"{" A ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[2,6]}}", 6, "'b' begins at byte 2"},
    {"{" A ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
     "begins at byte 0, the one before"},
    {"{" A ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[5,9]}}", 9, "'b' begins at byte 5"},
    {"{\"\n\":{}}", 0, "a character of UTF-8 that is not a control"},
    {"{\"\x80\":{}}", 0, "a character of UTF-8"},
    {"{\"\xc3\":{}}", 0, "a character of UTF-8"},
    {"{\"\xc0\xaf\":{}}", 0, "a character of UTF-8"},
    {"{\"\xed\xa0\x80\":{}}", 0, "a character of UTF-8"},
    {"{\"\xf4\x90\x80\x80\":{}}", 0, "a character of UTF-8"},
    {"{\"a", 0, "a closing quote"},
    {"{\"a\\", 0, "an escape of JSON"},
    {"{\"a\\x41\":{}}", 0, "an escape of JSON"},
    {"{\"\\u00g0\":{}}", 0, "a hexadecimal digit"},
    {"{\"\\u00", 0, "a hexadecimal digit"},
    {"{\"\\u0000\":{}}", 0, "without the zero character"},
    {"{\"\\ud834\":{}}", 0, "half of a pair of surrogates"},
    {"{\"\\ud834\\u0041\":{}}", 0, "half of a pair of surrogates"},
    {"{\"\\udd1e\\ud834\":{}}", 0, "half of a pair of surrogates"},
    {"{\"\\udd1e\\udd1e\":{}}", 0, "half of a pair of surrogates"},
};

static int open_header(const char *header, size_t length, size_t data_bytes, struct pe_safetensors *file) {
    size_t n = 8 + length + data_bytes;
    unsigned char *bytes = pe_arena_array(arena, n, 1, &err);
    for (size_t i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(length >> 8 * i & 0xff);
    }
    memcpy(bytes + 8, header, length);
    return pe_safetensors_open(arena, file, bytes, n, &err);
}

START_TEST(malformed_headers_are_refused) {
    struct pe_safetensors file;
    const char *header = headers[_i].header, *says = headers[_i].says;
    int code = open_header(header, strlen(header), headers[_i].data_bytes, &file);
    ck_assert_msg(code == (says ? PE_ERR_FORMAT : PE_OK), "%s: %d %s", header, code, err.text);
    ck_assert_msg(!says || strstr(err.text, says), "%s: %s", header, err.text);
}
END_TEST

START_TEST(lengths_that_cannot_be_are_refused) {
    static const char one[] = "\x02\0\0\0\0\0\0\0{}";
    static const char all[] = "\xff\xff\xff\xff\xff\xff\xff\xff{}";
    struct pe_safetensors file;
    for (size_t n = 0; n < 10; n++, err = (struct pe_error){0}) {
        ck_assert_int_eq(pe_safetensors_open(arena, &file, one, n, &err), PE_ERR_FORMAT);
    }
    ck_assert_int_eq(pe_safetensors_open(arena, &file, one, 10, &err), PE_OK);
    ck_assert_uint_eq(file.n, 0);
    ck_assert_int_eq(pe_safetensors_open(arena, &file, all, 10, &err), PE_ERR_FORMAT);
    ck_assert_msg(strstr(err.text, "has 18446744073709551615 bytes, but 2 follow"), "%s", err.text);
}
END_TEST

/* A zero byte is not a space, and messages do not carry control characters on. */
START_TEST(messages_stay_on_one_line) {
    struct pe_safetensors file;
    static const char zero[] = "{}\0";
    ck_assert_int_eq(open_header(zero, 3, 0, &file), PE_ERR_FORMAT);
    err = (struct pe_error){0};
    const char *name = "{\"\\u001b\\n\xc3\xa9\":{}}";
    ck_assert_int_eq(open_header(name, strlen(name), 0, &file), PE_ERR_FORMAT);
    ck_assert_str_eq(err.text, "safetensors tensor '??\xc3\xa9' has no dtype");
    char cut[4];
    ck_assert_str_eq(pe_utf8_show("ab\xc3\xa9", cut, sizeof cut), "ab");
    ck_assert_str_eq(pe_utf8_show("a\xc3\xa9", cut, sizeof cut), "a\xc3\xa9");
}
END_TEST

START_TEST(headers_written_are_read_back) {
    const struct pe_named_tensor tensors[] = {
        {"cos", {.dtype = PE_DTYPE_F64, .rank = 2, .dim = {2, 3}}},
        {"a\"\\\n\x01\xc3\xa9", {.dtype = PE_DTYPE_F32, .rank = 1, .dim = {5}}},
        {"b", {.dtype = PE_DTYPE_BF16, .rank = 0}},
        {"h", {.dtype = PE_DTYPE_F16, .rank = 3, .dim = {0, 1, 2}}},
    };
    struct pe_safetensors_header header;
    struct pe_safetensors file;
    ck_assert_int_eq(pe_safetensors_write(arena, &header, tensors, 4, &err), PE_OK);
    ck_assert_uint_eq(header.bytes % 8, 0);
    ck_assert_uint_eq(header.file_bytes, header.bytes + 48 + 20 + 2);
    static const char want[] =
        "{\"cos\":{\"dtype\":\"F64\",\"shape\":[2,3],\"data_offsets\":[0,48]},"
        "\"a\\\"\\\\\\u000a\\u0001\xc3\xa9\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":"
        "[48,68]},\"b\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[68,70]},"
        "\"h\":{\"dtype\":\"F16\",\"shape\":[0,1,2],\"data_offsets\":[70,70]}}";
    ck_assert_mem_eq(header.text + 8, want, sizeof want - 1);
    char *bytes = pe_arena_array(arena, header.file_bytes, 1, &err);
    memcpy(bytes, header.text, header.bytes);
    ck_assert_int_eq(pe_safetensors_open(arena, &file, bytes, header.file_bytes, &err), PE_OK);
    ck_assert_uint_eq(file.n, 4);
    for (size_t i = 0; i < 4; i++) {
        struct pe_tensor tensor;
        ck_assert_int_eq(pe_safetensors_get(arena, &tensor, &file, tensors[i].name, &err), PE_OK);
        ck_assert(tensor.dtype == tensors[i].tensor.dtype && tensor.rank == tensors[i].tensor.rank);
        ck_assert_mem_eq(tensor.dim, tensors[i].tensor.dim, sizeof tensor.dim);
    }
}
END_TEST

START_TEST(headers_written_are_a_multiple_of_8) {
    for (size_t length = 0; length < 16; length++) {
        struct pe_named_tensor tensor = {.name = &"0123456789abcdef"[length],
                                         .tensor = {.dtype = PE_DTYPE_F32}};
        struct pe_safetensors_header header;
        ck_assert_int_eq(pe_safetensors_write(arena, &header, &tensor, 1, &err), PE_OK);
        ck_assert_uint_eq(header.bytes % 8, 0);
        ck_assert(header.text[header.bytes - 1] == ' ' || header.text[header.bytes - 1] == '}');
    }
}
END_TEST

START_TEST(names_that_cannot_be_written_are_refused) {
    static const struct {
        const char *first, *second;
        int code;
    } rows[] = {
        {"a", "a", PE_ERR_CONFLICT}, {"__metadata__", "a", PE_ERR_CONFLICT}, {"a", "\xff", PE_ERR_SYNTAX}};
    struct pe_named_tensor tensors[2] = {{rows[_i].first, {.dtype = PE_DTYPE_F32}},
                                         {rows[_i].second, {.dtype = PE_DTYPE_F32}}};
    struct pe_safetensors_header header;
    ck_assert_int_eq(pe_safetensors_write(arena, &header, tensors, 2, &err), rows[_i].code);
}
END_TEST

/* Opens a copy of exactly n bytes, so that a sanitizer sees one byte more; touches all that is returned. */
static int read_exactly(const unsigned char *bytes, size_t n) {
    struct pe_error failure = {0};
    struct pe_arena *own = pe_arena_open((size_t)1 << 20, NULL, &failure);
    unsigned char *copy = malloc(n ? n : 1);
    struct pe_safetensors file;
    memcpy(copy, bytes, n);
    int code = pe_safetensors_open(own, &file, copy, n, &failure);
    ck_assert_int_eq(code, failure.code);
    ck_assert(code == PE_OK || (code == PE_ERR_FORMAT && failure.text[0]));
    for (size_t t = 0; code == PE_OK && t < file.n; t++) {
        struct pe_tensor out;
        double value;
        struct pe_error refused = {0};
        if (pe_safetensors_get(own, &out, &file, file.entries[t].name, &refused)) {
            continue;
        }
        for (size_t i = 0; i < pe_tensor_count(&out); i++) {
            pe_dtype_load(out.dtype, (const char *)out.data + i * pe_dtype_size(out.dtype), 1, &value);
        }
    }
    free(copy);
    pe_arena_close(own);
    return code;
}

START_TEST(no_cut_and_no_changed_byte_is_read_beyond) {
    const struct safetensors_case *file = &safetensors_cases[_i];
    damage_file(file->bytes, file->n, file->n < 300 ? 1 : 37, read_exactly);
}
END_TEST

/* As many as are allowed, and one more. */
START_TEST(endless_lists_are_refused) {
    static const struct {
        const char *before, *item, *after, *says;
    } rows[] = {
        {"{", "{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},", "}",
         "the safetensors header has more than 65536 tensors"},
        {"{\"__metadata__\":{", "\"\",", "}}", "the safetensors header has more than 65536 keys of metadata"},
    };
    for (size_t n = 65536; n <= 65537; n++) {
        char *file = malloc(96 * n);
        size_t used = 8 + (size_t)snprintf(file + 8, 96, "%s", rows[_i].before);
        for (size_t i = 0; i < n; i++) {
            used += (size_t)snprintf(file + used, 96, "\"%zx\":%s", i, rows[_i].item);
        }
        used += (size_t)snprintf(file + used - 1, 96, "%s", rows[_i].after) - 1;
        for (size_t i = 0, length = used - 8; i < 8; i++) {
            file[i] = (char)(length >> 8 * i);
        }
        struct pe_arena *own = pe_arena_open((size_t)64 << 20, NULL, &err);
        struct pe_safetensors parsed;
        ck_assert_int_eq(pe_safetensors_open(own, &parsed, file, used, &err), n > 65536 ? PE_ERR_FORMAT : 0);
        pe_arena_close(own);
        free(file);
    }
    ck_assert_str_eq(err.text, rows[_i].says);
}
END_TEST

Suite *safetensors_suite(void) {
    Suite *suite = suite_create("safetensors");
    TCase *tc = tcase_create("safetensors");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, files_of_the_script_are_read, 0, (int)COUNT(safetensors_cases));
    tcase_add_test(tc, a_tensor_is_found_by_its_name);
    tcase_add_loop_test(tc, malformed_headers_are_refused, 0, (int)COUNT(headers));
    tcase_add_test(tc, lengths_that_cannot_be_are_refused);
    tcase_add_test(tc, messages_stay_on_one_line);
    tcase_add_test(tc, headers_written_are_read_back);
    tcase_add_test(tc, headers_written_are_a_multiple_of_8);
    tcase_add_loop_test(tc, names_that_cannot_be_written_are_refused, 0, 3);
    tcase_add_loop_test(tc, endless_lists_are_refused, 0, 2);
    tcase_add_loop_test(tc, no_cut_and_no_changed_byte_is_read_beyond, 0, (int)COUNT(safetensors_cases));
    suite_add_tcase(suite, tc);
    return suite;
}
