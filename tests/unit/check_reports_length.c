/* SPDX-License-Identifier: MIT
 *
 * Public bug reports on the ends of tables: too many tokens, a position -1, a position as large as the number
 * of rows. Each test is named after a project and its report. A position without a row is refused by name, in
 * every operation, and never wraps to the other end.
 *
 * Limits of the caches of rotary encodings (onnxruntime #27597 and #28205, rotary-embedding-torch) are tried
 * here on sinusoids, which have no table and so no end, and on rotations in check_reports_rotary.c.
 */
#include "report_run.h"
#include "suites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TABLE "\"type\":\"learned\",\"table\":[[1,2],[3,4],[5,6]]"

/* A body with a table [rows, 2] of zeros and `tokens` embeddings of width 2. */
static char *long_body(size_t rows, size_t tokens) {
    size_t size = 8 * (rows + tokens) + 200, at;
    char *body = malloc(size);
    at = (size_t)snprintf(body, size, "{\"encoding\":{\"type\":\"learned\",\"table\":[");
    for (size_t i = 0; i < rows; i++) {
        at += (size_t)snprintf(body + at, size - at, "%s[0,1]", i ? "," : "");
    }
    at += (size_t)snprintf(body + at, size - at, "]},\"embeddings\":[");
    for (size_t i = 0; i < tokens; i++) {
        at += (size_t)snprintf(body + at, size - at, "%s[0,0]", i ? "," : "");
    }
    snprintf(body + at, size - at, "]}");
    return body;
}

/* "The size of tensor a (532) must match the size of tensor b (512)". */
START_TEST(sentence_transformers_929_532_tokens_on_512_rows) {
    char *fits = long_body(512, 512), *over = long_body(512, 532);
    struct report_tensor got = report_tensor("POST /v1/apply", fits, "embeddings");
    ck_assert(got.dim[0] == 512 && got.values[2 * 511 + 1] == 1);
    report_refused("POST /v1/apply", over, "range", "embeddings",
                   REPORT_WORDS("532 tokens", "512 rows", "0 to 511"));
    free(fits);
    free(over);
}
END_TEST

/* A negative id read before the table, or wrapped to its last row; an id of `rows` read after it. */
static const struct {
    const char *request, *body, *field, *row;
} outside[] = {
    {"GET /v1/encode?type=learned&table=[[1,2],[3,4],[5,6]]&positions=-1", NULL, "positions[0]", "row -1"},
    {"GET /v1/encode?type=learned&table=[[1,2],[3,4],[5,6]]&positions=3", NULL, "positions[0]", "row 3"},
    {"GET /v1/encode?type=learned&table=[[1,2],[3,4],[5,6]]&positions=0:4", NULL, "positions[3]", "row 3"},
    {"GET /v1/encode?type=learned&table=[[1,2],[3,4],[5,6]]&positions=-1:2", NULL, "positions[0]", "row -1"},
    {"GET /v1/encode?type=learned&table=[[1,2],[3,4],[5,6]]&offset=-1&positions=0", NULL, "positions[0]",
     "row -1"},
    {"GET /v1/encode?type=learned&table=[[1,2],[3,4],[5,6]]&positions=9007199254740992", NULL, "positions[0]",
     "row 9007199254740992"},
    {"POST /v1/encode", "{\"encoding\":{" TABLE "},\"positions\":[[0,1],[2,-1]]}", "positions[1][1]",
     "row -1"},
    {"POST /v1/encode", "{\"encoding\":{" TABLE "},\"positions\":[[0,1],[3,1]]}", "positions[1][0]", "row 3"},
    {"POST /v1/apply", "{\"encoding\":{" TABLE "},\"embeddings\":[[0,0]],\"positions\":[-1]}", "positions[0]",
     "row -1"},
    {"POST /v1/apply", "{\"encoding\":{" TABLE "},\"embeddings\":[[0,0],[0,0]],\"positions\":[2,3]}",
     "positions[1]", "row 3"},
    {"POST /v1/apply", "{\"encoding\":{" TABLE ",\"offset\":2},\"embeddings\":[[0,0],[0,0]]}", "embeddings",
     "row 3"},
    {"POST /v1/attention", "{\"encoding\":{" TABLE "},\"embeddings\":[[0,0]],\"query_positions\":[-1]}",
     "query_positions[0]", "row -1"},
    {"POST /v1/attention", "{\"encoding\":{" TABLE "},\"embeddings\":[[0,0]],\"key_positions\":[3]}",
     "key_positions[0]", "row 3"},
};

START_TEST(pytorch_183608_19120_onnxruntime_27573_ids_outside_the_table) {
    report_refused(outside[_i].request, outside[_i].body, "range", outside[_i].field,
                   REPORT_WORDS(outside[_i].row, "3 rows", "0 to 2"));
}
END_TEST

/* The last row and the first are still there. */
START_TEST(pytorch_183636_the_ends_of_the_table) {
    report_expect("GET /v1/encode?type=learned&table=[[1,2],[3,4],[5,6]]&positions=2,0", NULL, "vectors",
                  REPORT_SHAPE(2, 2), 0, REPORT_VALUES(5, 6, 1, 2));
    report_expect("GET /v1/encode?type=learned&table=[[1,2],[3,4],[5,6]]&positions=1,-1&offset=1", NULL,
                  "vectors", REPORT_SHAPE(2, 2), 0, REPORT_VALUES(5, 6, 1, 2));
}
END_TEST

/* Sinusoids have no table: what lies before 0, and beyond any cache, is computed. sin is odd, cos is even. */
START_TEST(onnxruntime_27597_28205_negative_positions_of_sinusoids) {
    struct report_tensor got =
        report_tensor("GET /v1/encode?type=sinusoidal&d_model=6&positions=-1,1", NULL, "vectors");
    for (size_t c = 0; c < 6; c++) {
        ck_assert(got.values[c] == (c % 2 ? 1 : -1) * got.values[6 + c]);
    }
}
END_TEST

/* 8193 positions where the cache held 8192. */
START_TEST(rotary_embedding_torch_cache_8192) {
    struct report_tensor got =
        report_tensor("GET /v1/encode?type=sinusoidal&d_model=16&positions=0:8194&dtype=float64&format=raw",
                      NULL, "vectors");
    ck_assert_uint_eq(got.n, 8194 * 16);
    for (size_t p = 8190; p < 8194; p++) {
        for (size_t c = 0; c < 16; c++) {
            ck_assert_double_eq_tol(got.values[16 * p + c], report_paper((double)p, c, 16), 1e-11);
        }
    }
}
END_TEST

#define BIAS "GET /v1/bias?type=alibi&heads=1&key_positions=0:200000"

/* Body of `n` equal queries and keys whose values are 1 for the first and 0 for all others. */
static char *many_tokens(size_t n) {
    size_t size = 8 * n + 300, at;
    char *body = malloc(size);
    at = (size_t)snprintf(body, size, "{\"encoding\":\"alibi\",\"mask\":\"causal\"");
    for (size_t i = 0; i < 3; i++) {
        at += (size_t)snprintf(body + at, size - at, ",\"%c\":{\"shape\":[%zu,1],\"data\":[%d", "qkv"[i], n,
                               i == 2);
        for (size_t t = 1; t < n; t++) {
            at += (size_t)snprintf(body + at, size - at, ",0");
        }
        at += (size_t)snprintf(body + at, size - at, "]}");
    }
    snprintf(body + at, size - at, "}");
    return body;
}

/* 720 GB for the bias of 200,000 tokens. Nothing of the size [Tq, Tk] is made but what a reply holds, and that is
 * refused before memory is taken; the rows that are needed can be had alone. With slope m and products of 0 the first
 * key has a share of e^-mi of the sum over the i + 1 keys seen. */
START_TEST(open_sora_70_no_matrix_of_all_pairs) {
    enum { TOKENS = 3000 };
    struct call_try all = {.request = BIAS "&query_positions=0:200000"};
    call_try(&report_ground, &all);
    ck_assert_msg(all.status == 413 && strcmp(call_try_text(&all, "option"), "stream_bytes") == 0, "%s",
                  all.reply);
    call_try_close(&all);
    struct report_tensor row = report_tensor(BIAS "&query_positions=199999&format=raw", NULL, "bias");
    ck_assert_uint_eq(row.n, 200000);
    ck_assert(row.values[0] == -199999 * 0x1p-8 && row.values[199999] == 0);
    report_ground.config.expanded_bytes = TOKENS * TOKENS; /* a quarter of the float32 weights */
    char *body = many_tokens(TOKENS);
    struct call_try weights = {.request = "POST /v1/attention?format=raw", .body = body};
    call_try(&report_ground, &weights);
    ck_assert_msg(weights.status == 413, "%s", weights.reply);
    call_try_close(&weights);
    struct report_tensor got = report_tensor("POST /v1/attention?format=raw&return=output", body, "output");
    ck_assert_uint_eq(got.n, TOKENS);
    for (size_t i = 0; i < TOKENS; i++) {
        double m = 0x1p-8, wanted = exp(-m * (double)i) * expm1(-m) / expm1(-m * (double)(i + 1));
        ck_assert_double_eq_tol(got.values[i], wanted, 1e-6 * wanted);
    }
    free(body);
}
END_TEST

Suite *reports_length_suite(void) {
    Suite *suite = suite_create("reports_length");
    TCase *tests = tcase_create("length");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, report_setup, report_teardown);
    tcase_add_test(tests, sentence_transformers_929_532_tokens_on_512_rows);
    tcase_add_loop_test(tests, pytorch_183608_19120_onnxruntime_27573_ids_outside_the_table, 0,
                        (int)PE_COUNT(outside));
    tcase_add_test(tests, pytorch_183636_the_ends_of_the_table);
    tcase_add_test(tests, onnxruntime_27597_28205_negative_positions_of_sinusoids);
    tcase_add_test(tests, rotary_embedding_torch_cache_8192);
    tcase_add_test(tests, open_sora_70_no_matrix_of_all_pairs);
    return suite;
}
