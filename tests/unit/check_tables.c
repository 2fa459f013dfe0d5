/* SPDX-License-Identifier: MIT
 *
 * Loading a folder of tables. The files are built here from the definitions of their formats. Digests: FNV-1a
 * by its definition in a few lines of Python, which gave the published values for "a" (af63dc4c8601ec8c) and
 * "foobar" (85944171f73967e8).
 */
#include "suites.h"

#include "posenc_fields.h"
#include "tables.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIMIT (1 << 20)

static char folder[32];

static void set_up(void) {
    snprintf(folder, sizeof folder, "/tmp/check_tablesXXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

/* Names of the files that this test made, so that they can be removed again. */
static char made[16][160];
static size_t n_made;

static void tear_down(void) {
    for (size_t i = 0; i < n_made; i++) {
        remove(made[i]);
    }
    n_made = 0;
    rmdir(folder);
}

static const char *path_of(const char *name) {
    snprintf(made[n_made], sizeof made[0], "%s/%s", folder, name);
    return made[n_made++];
}

static void write_file(const char *name, const void *bytes, size_t n) {
    FILE *file = fopen(path_of(name), "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, n, file), n);
    ck_assert_int_eq(fclose(file), 0);
}

/* Version 1.0: magic, length of the header, a Python dictionary padded with spaces to a multiple of 64, data.
 */
static void write_npy(const char *name, const char *descr, const char *shape, const void *data, size_t n) {
    unsigned char bytes[1024];
    char header[118 + 1];
    int length = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                          descr, shape);
    memset(header + length, ' ', sizeof header - 1 - (size_t)length);
    header[sizeof header - 2] = '\n';
    memcpy(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(bytes + 10, header, 118);
    memcpy(bytes + 128, data, n);
    write_file(name, bytes, 128 + n);
}

/* Eight bytes of length, little-endian, the JSON header, data. */
static void write_safetensors(const char *name, const char *header, const void *data, size_t n) {
    unsigned char bytes[2048] = {0};
    size_t length = strlen(header);
    bytes[0] = (unsigned char)(length & 0xff);
    bytes[1] = (unsigned char)(length >> 8);
    memcpy(bytes + 8, header, length);
    memcpy(bytes + 8 + length, data, n);
    write_file(name, bytes, 8 + length + n);
}

static const float six[6] = {0, 1, 2, 3, 4, 5};

static void write_pe(const char *name) {
    write_npy(name, "<f4", "2, 3", six, sizeof six);
}

static const struct {
    float a[2];
    double b[2];
} pair = {{1, 2}, {1, 2}};
static const char pair_header[] = "{\"b\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[8,24]},"
                                  "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";

static struct tables *open_good(void) {
    struct pe_error err = {0};
    struct tables *tables = NULL;
    ck_assert_msg(tables_open(&tables, folder, LIMIT, &err) == PE_OK, "%s: %s", err.path, err.text);
    return tables;
}

static struct pe_error open_bad(uint64_t limit) {
    struct pe_error err = {0};
    struct tables *tables = NULL;
    ck_assert_int_ne(tables_open(&tables, folder, limit, &err), PE_OK);
    ck_assert_ptr_null(tables);
    return err;
}

static void expect_error(const struct pe_error *err, int code, const char *path, const char *text) {
    char want[200];
    snprintf(want, sizeof want, "%s%s", folder, path);
    ck_assert_msg(err->code == code, "code %d: %s: %s", err->code, err->path, err->text);
    ck_assert_str_eq(err->path, want);
    ck_assert_msg(strstr(err->text, text) != NULL, "\"%s\" is not in \"%s\"", text, err->text);
}

START_TEST(no_folder_is_no_tables) {
    struct pe_error err = {0};
    struct tables *tables = NULL;
    ck_assert_int_eq(tables_open(&tables, "", LIMIT, &err), PE_OK);
    ck_assert_uint_eq(tables_count(tables), 0);
    ck_assert_ptr_null(tables_find(tables, "pe", NULL, &err));
    ck_assert_int_eq(err.code, PE_ERR_UNKNOWN_NAME);
    ck_assert_str_eq(err.path, "table");
    ck_assert_str_eq(err.text, "no table is named \"pe\"; loaded are: none");
    tables_close(tables);
    ck_assert_uint_eq(tables_count(NULL), 0);
    err = (struct pe_error){0};
    ck_assert_ptr_null(tables_find(NULL, "pe", NULL, &err));
    tables_close(NULL);
}
END_TEST

START_TEST(an_npy_file_is_one_tensor) {
    write_pe("pe.npy");
    struct tables *tables = open_good();
    struct pe_error err = {0};
    ck_assert_uint_eq(tables_count(tables), 1);
    const struct table *table = tables_at(tables, 0);
    ck_assert_str_eq(table->name, "pe");
    ck_assert_str_eq(table->file, "pe.npy");
    ck_assert_uint_eq(table->bytes, 128 + sizeof six);
    ck_assert_uint_eq(table->n_tensors, 1);
    ck_assert_str_eq(table->tensors[0].name, "pe");
    ck_assert_uint_eq(table->tensors[0].digest, 0x53b5447fcad32f26);
    ck_assert_uint_eq(table->digest, 0x027d8fb0cf224b36);
    const struct pe_tensor *tensor = tables_find(tables, "pe", NULL, &err);
    ck_assert_ptr_eq(tensor, &table->tensors[0].tensor);
    ck_assert_int_eq(tensor->dtype, PE_DTYPE_F32);
    ck_assert_int_eq(tensor->rank, 2);
    ck_assert_uint_eq(tensor->dim[0], 2);
    ck_assert_uint_eq(tensor->dim[1], 3);
    ck_assert_mem_eq(tensor->data, six, sizeof six);
    ck_assert_ptr_eq(tables_find(tables, "pe", "pe", &err), tensor);
    ck_assert_ptr_null(tables_find(tables, "pe", "weight", &err));
    ck_assert_str_eq(err.path, "tensor_name");
    tables_close(tables);
}
END_TEST

START_TEST(a_safetensors_file_with_several_needs_the_name) {
    write_safetensors("two.v1.safetensors", pair_header, &pair, sizeof pair);
    struct tables *tables = open_good();
    struct pe_error err = {0};
    const struct table *table = tables_table(tables, "two.v1", &err);
    ck_assert_ptr_nonnull(table);
    ck_assert_uint_eq(table->n_tensors, 2);
    ck_assert_str_eq(table->tensors[0].name, "a");
    ck_assert_uint_eq(table->tensors[0].digest, 0x9b949725351a2971);
    ck_assert_uint_eq(table->tensors[1].digest, 0xc7eaedab4a95ce38);
    ck_assert_uint_eq(table->digest, 0x4e8d3ca0f28a4c24);
    const struct pe_tensor *b = tables_find(tables, "two.v1", "b", &err);
    ck_assert_ptr_nonnull(b);
    ck_assert_int_eq(b->dtype, PE_DTYPE_F64);
    ck_assert_mem_eq(b->data, pair.b, sizeof pair.b);
    ck_assert_ptr_null(tables_find(tables, "two.v1", NULL, &err));
    ck_assert_int_eq(err.code, PE_ERR_MISSING);
    ck_assert_str_eq(err.path, "tensor_name");
    ck_assert_str_eq(err.text, "is required, as the table \"two.v1\" holds 2 tensors: a, b");
    err = (struct pe_error){0};
    ck_assert_ptr_null(tables_find(tables, "two.v1", "c", &err));
    ck_assert_int_eq(err.code, PE_ERR_UNKNOWN_NAME);
    ck_assert_str_eq(err.text, "the table \"two.v1\" has no tensor \"c\" among its 2; the nearest are: a, b");
    tables_close(tables);
}
END_TEST

START_TEST(tables_are_sorted_by_name_and_other_files_left_out) {
    write_pe("b.npy");
    write_pe("a-b.npy"); /* before a.npy as a file, after it as a name */
    write_pe("a.npy");
    write_pe(".hidden.npy");
    write_file("README.md", "x", 1);
    write_file("x.npy.bak", "x", 1);
    struct tables *tables = open_good();
    struct pe_error err = {0};
    static const char *const want[] = {"a", "a-b", "b"};
    ck_assert_uint_eq(tables_count(tables), 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(tables_at(tables, i)->name, want[i]);
    }
    ck_assert_ptr_null(tables_table(tables, "c", &err));
    ck_assert_str_eq(err.text, "no table is named \"c\" among the 3 loaded; the nearest are: a, a-b, b");
    tables_close(tables);
}
END_TEST

/* Every list of names fits into the message, and what was left out is said. */
START_TEST(long_lists_of_names_are_cut) {
    char name[80];
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "table_%02d_%030d.npy", i, 0);
        write_pe(name);
    }
    struct tables *tables = open_good();
    struct pe_error err = {0};
    ck_assert_ptr_null(tables_table(tables, "c", &err));
    size_t n = strlen(err.text);
    ck_assert_uint_lt(n, sizeof err.text - 1);
    ck_assert_str_eq(err.text + n - 5, ", ...");
    ck_assert_ptr_nonnull(strstr(err.text, "table_03_"));
    tables_close(tables);
}
END_TEST

/* A model's file has hundreds of tensors: of what a message has room for, the likest come first. */
START_TEST(the_nearest_names_come_first) {
    char header[1400] = "{", text[600];
    for (int i = 0; i < 18; i++) {
        size_t used = strlen(header);
        snprintf(header + used, sizeof header - used,
                 "%s\"%s%d.ln.weight\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}",
                 i ? "," : "", i == 11 ? "wpe." : "h.", i);
    }
    size_t end = strlen(header);
    snprintf(header + end, sizeof header - end, "}");
    write_safetensors("gpt.safetensors", header, "", 0);
    write_pe("wpe.npy");
    write_pe("abc.npy");
    struct tables *tables = open_good();
    static const char *const asked[][2] = {
        {"transformer.wpe.11.ln.weight", "wpe.11.ln.weight, h.1.ln.weight"},
        {"wpe.11.ln.wieght", "wpe.11.ln.weight, h."},
        {"h.12.weight", "h.12.ln.weight, h.1"}};
    for (size_t i = 0; i < PE_COUNT(asked); i++) {
        struct pe_error err = {0};
        ck_assert_ptr_null(tables_find(tables, "gpt", asked[i][0], &err));
        snprintf(text, sizeof text,
                 "the table \"gpt\" has no tensor \"%s\" among its 18; the nearest are: %s", asked[i][0],
                 asked[i][1]);
        ck_assert_msg(strncmp(err.text, text, strlen(text)) == 0, "%s, not %s", err.text, text);
    }
    struct pe_error err = {0};
    ck_assert_ptr_null(tables_table(tables, "wp", &err));
    ck_assert_str_eq(err.text, "no table is named \"wp\" among the 3 loaded; the nearest are: wpe, abc, gpt");
    tables_close(tables);
}
END_TEST

START_TEST(two_files_of_one_name_are_refused) {
    write_pe("x.npy");
    write_safetensors("x.safetensors", pair_header, &pair, sizeof pair);
    struct pe_error err = open_bad(LIMIT);
    ck_assert_int_eq(err.code, PE_ERR_CONFLICT);
    ck_assert_str_eq(err.path, folder);
    ck_assert_ptr_nonnull(strstr(err.text, "x.npy"));
    ck_assert_ptr_nonnull(strstr(err.text, "x.safetensors"));
}
END_TEST

START_TEST(bad_names_are_refused) {
    write_pe("a b.npy");
    struct pe_error err = open_bad(LIMIT);
    expect_error(&err, PE_ERR_SYNTAX, "/a b.npy", "a table's name must be");
}
END_TEST

START_TEST(malformed_files_are_refused_by_name) {
    write_file("x.npy", "not numpy", 9);
    struct pe_error err = open_bad(LIMIT);
    expect_error(&err, PE_ERR_FORMAT, "/x.npy", "");
}
END_TEST

START_TEST(an_empty_file_is_malformed) {
    write_file("x.safetensors", "", 0);
    struct pe_error err = open_bad(LIMIT);
    expect_error(&err, PE_ERR_FORMAT, "/x.safetensors", "");
}
END_TEST

START_TEST(a_file_without_tensors_is_refused) {
    write_safetensors("x.safetensors", "{}      ", "", 0);
    struct pe_error err = open_bad(LIMIT);
    expect_error(&err, PE_ERR_FORMAT, "/x.safetensors", "holds no tensor");
}
END_TEST

START_TEST(numbers_must_be_finite) {
    static const float bad[2] = {1, INFINITY};
    write_npy("x.npy", "<f4", "2,", bad, sizeof bad);
    struct pe_error err = open_bad(LIMIT);
    expect_error(&err, PE_ERR_NONFINITE, "/x.npy[1]", "");
}
END_TEST

START_TEST(a_folder_that_looks_like_a_table_is_refused) {
    ck_assert_int_eq(mkdir(path_of("x.npy"), 0700), 0);
    struct pe_error err = open_bad(LIMIT);
    expect_error(&err, PE_ERR_TYPE, "/x.npy", "is not a regular file");
}
END_TEST

/* Also a pipe, which would be waited on for ever. */
START_TEST(a_pipe_is_refused) {
    ck_assert_int_eq(mkfifo(path_of("x.npy"), 0600), 0);
    struct pe_error err = open_bad(LIMIT);
    expect_error(&err, PE_ERR_TYPE, "/x.npy", "is not a regular file");
}
END_TEST

START_TEST(the_limit_counts_all_files) {
    write_pe("a.npy");
    write_pe("b.npy"); /* 152 bytes each */
    struct pe_error err = open_bad(303);
    expect_error(&err, PE_ERR_LIMIT, "/b.npy", "has 152 bytes, more than the 151 that tables_bytes leaves");
    ck_assert_str_eq(err.limit_name, "tables_bytes");
    err = (struct pe_error){0};
    struct tables *tables = NULL;
    ck_assert_int_eq(tables_open(&tables, folder, 304, &err), PE_OK);
    tables_close(tables);
}
END_TEST

START_TEST(a_missing_folder_is_refused) {
    rmdir(folder);
    struct pe_error err = open_bad(LIMIT);
    expect_error(&err, PE_ERR_UNKNOWN_NAME, "", "cannot be read: No such file or directory");
}
END_TEST

START_TEST(the_digest_sees_shape_and_type) {
    write_pe("a.npy");
    write_npy("b.npy", "<f4", "3, 2", six, sizeof six);
    write_npy("c.npy", "<f8", "3,", six, sizeof six);
    struct tables *tables = open_good();
    uint64_t a = tables_at(tables, 0)->tensors[0].digest, b = tables_at(tables, 1)->tensors[0].digest,
             c = tables_at(tables, 2)->tensors[0].digest;
    ck_assert(a != b && a != c && b != c);
    tables_close(tables);
}
END_TEST

Suite *tables_suite(void) {
    Suite *suite = suite_create("tables");
    TCase *tests = tcase_create("tables");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, no_folder_is_no_tables);
    tcase_add_test(tests, an_npy_file_is_one_tensor);
    tcase_add_test(tests, a_safetensors_file_with_several_needs_the_name);
    tcase_add_test(tests, tables_are_sorted_by_name_and_other_files_left_out);
    tcase_add_test(tests, long_lists_of_names_are_cut);
    tcase_add_test(tests, the_nearest_names_come_first);
    tcase_add_test(tests, two_files_of_one_name_are_refused);
    tcase_add_test(tests, bad_names_are_refused);
    tcase_add_test(tests, malformed_files_are_refused_by_name);
    tcase_add_test(tests, an_empty_file_is_malformed);
    tcase_add_test(tests, a_file_without_tensors_is_refused);
    tcase_add_test(tests, numbers_must_be_finite);
    tcase_add_test(tests, a_folder_that_looks_like_a_table_is_refused);
    tcase_add_test(tests, a_pipe_is_refused);
    tcase_add_test(tests, the_limit_counts_all_files);
    tcase_add_test(tests, a_missing_folder_is_refused);
    tcase_add_test(tests, the_digest_sees_shape_and_type);
    suite_add_tcase(suite, tests);
    return suite;
}
