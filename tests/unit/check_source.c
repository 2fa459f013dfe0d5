/* SPDX-License-Identifier: MIT
 *
 * Replies as sources of bytes: pulled in any pieces, long numbers, no elements at all, numbers that do not
 * fit, and the promise that a buffer of source_bound bytes holds all of it.
 */
#include "call_run.h"
#include "suites.h"

#include <stdlib.h>
#include <string.h>

static struct call_ground ground;

static void setup(void) {
    call_ground_open(&ground);
}

static void teardown(void) {
    call_ground_close(&ground);
}

/* The bytes of a reply do not depend on the pieces in which they are asked for. */
START_TEST(pulled_in_pieces) {
    static const char *const formats[] = {"json", "json&flat=1", "npy", "raw", "safetensors", "csv", "png"};
    static const char *const ranges[] = {"0:3", "0:3000"}; /* buffered, streamed */
    ground.config.reply_bytes = 2 << 20;                   /* little, so that it is soon streamed */
    for (size_t i = 0; i < PE_COUNT(formats) * PE_COUNT(ranges); i++) {
        char request[200];
        snprintf(request, sizeof request, "GET /v1/encode?type=sinusoidal&d_model=25&positions=%s&format=%s",
                 ranges[i % 2], formats[i / 2]);
        struct call_try whole = {.request = request, .room = 1 << 20};
        call_try(&ground, &whole);
        ck_assert_int_eq(whole.status, 200);
        ck_assert_int_eq(call_reply(whole.call)->stream, i % 2);
        for (size_t room = 1; room < 1000; room += 111) {
            struct call_try pieces = {.request = request, .room = room};
            call_try(&ground, &pieces);
            ck_assert_uint_eq(pieces.reply_n, whole.reply_n);
            ck_assert(memcmp(pieces.reply, whole.reply, whole.reply_n) == 0);
            call_try_close(&pieces);
        }
        call_try_close(&whole);
    }
}
END_TEST

/* Numbers as they lie in memory are sent from there: no copy is made of a result of 2 MiB. */
START_TEST(binary_is_held_once) {
    static const char *const formats[] = {"npy", "raw", "safetensors"};
    size_t result = (size_t)1024 * 512 * 4;
    for (size_t i = 0; i < PE_COUNT(formats); i++) {
        char request[60];
        snprintf(request, sizeof request, "POST /v1/encode?format=%s", formats[i]);
        struct call_try try = {
            .request = request,
            .body = "{\"encoding\":{\"type\":\"sinusoidal\",\"d_model\":512},\"positions\":\"0:1024\"}"};
        call_try(&ground, &try);
        ck_assert_int_eq(try.status, 200);
        ck_assert(!call_reply(try.call)->stream);
        ck_assert_uint_ge(try.reply_n, result);
        ck_assert_msg(ground.bytes < result + result / 4, "%s: %zu bytes are held", formats[i],
                      (size_t)ground.bytes);
        call_try_close(&try);
    }
}
END_TEST

/* The longest texts that numbers have, many of them: the buffer was sized before they were known. */
START_TEST(longest_numbers) {
    static const float singles[] = {-9876543488888832.0F, -9.8765431e15F, -1.17549435e-38F, -1.00000136e-05F};
    static const double doubles[] = {-9876543210123456.0, -2.2250738585072014e-308, -0.000012345678901234567,
                                     -1.7976931348623157e+308};
    for (size_t i = 0; i < PE_COUNT(singles) + PE_COUNT(doubles); i++) {
        bool single = i < PE_COUNT(singles);
        size_t size = single ? 4 : 8, n = 5000;
        char *body = malloc(n * size);
        for (size_t k = 0; k < n; k++) {
            memcpy(body + k * size, single ? (const void *)&singles[i] : &doubles[i - PE_COUNT(singles)],
                   size);
        }
        for (int flat = 0; flat < 2; flat++) {
            struct call_try try = {.request = flat
                                                  ? "POST /v1/apply?type=none&format=json&shape=1,5000&flat=1"
                                                  : "POST /v1/apply?type=none&format=json&shape=1,5000",
                                   .body = body,
                                   .body_n = n * size,
                                   .head.content_type = "application/octet-stream",
                                   .head.raw_dtype = single ? "float32" : "float64"};
            call_try(&ground, &try);
            ck_assert_msg(try.status == 200, "%s", try.reply);
            const json_t *data = json_object_get(json_object_get(try.json, "embeddings"), "data");
            ck_assert_uint_eq(json_array_size(flat ? data : json_array_get(data, 0)), n);
            call_try_close(&try);
        }
        free(body);
    }
}
END_TEST

static void expect_data(const char *request, const char *body, const char *part) {
    struct call_try try = {.request = request, .body = body};
    call_try(&ground, &try);
    ck_assert_msg(try.status == 200 && strstr(try.reply, part), "%s %s: %s", request, body ? body : "",
                  try.reply);
    call_try_close(&try);
}

/* A sequence of no tokens is a sequence: a result without elements, not an error. */
START_TEST(no_elements) {
    const char *get = "GET /v1/encode?type=sinusoidal&d_model=4&positions=";
    char request[200];
    snprintf(request, sizeof request, "%s0:0", get);
    expect_data(request, NULL, "\"vectors\":{\"shape\":[0,4],\"dtype\":\"float32\",\"data\":[]}");
    snprintf(request, sizeof request, "%s[]", get);
    expect_data(request, NULL, "\"vectors\":{\"shape\":[0,4],\"dtype\":\"float32\",\"data\":[]}");
    snprintf(request, sizeof request, "%s[[],[]]", get);
    expect_data(request, NULL, "\"vectors\":{\"shape\":[2,0,4],\"dtype\":\"float32\",\"data\":[[],[]]}");
    snprintf(request, sizeof request, "%s[[],[]]&flat=1", get);
    expect_data(request, NULL, "\"vectors\":{\"shape\":[2,0,4],\"dtype\":\"float32\",\"data\":[]}");
    expect_data("POST /v1/apply", "{\"encoding\":\"vaswani\",\"embeddings\":{\"shape\":[0,4],\"data\":[]}}",
                "\"embeddings\":{\"shape\":[0,4],\"dtype\":\"float32\",\"data\":[]}");
    expect_data("POST /v1/apply",
                "{\"encoding\":\"vaswani\",\"embeddings\":{\"shape\":[2,0,4],\"data\":[[],[]]}}",
                "\"embeddings\":{\"shape\":[2,0,4],\"dtype\":\"float32\",\"data\":[[],[]]}");
    expect_data("POST /v1/attention", "{\"q\":[[1,0]],\"k\":{\"shape\":[0,2],\"data\":[]}}",
                "\"weights\":{\"shape\":[1,0],\"dtype\":\"float32\",\"data\":[[]]}");
    expect_data("POST /v1/attention",
                "{\"q\":{\"shape\":[0,2],\"data\":[]},\"k\":{\"shape\":[0,2],\"data\":[]}}",
                "\"weights\":{\"shape\":[0,0],\"dtype\":\"float32\",\"data\":[]}");
    expect_data("GET /v1/positions?lengths=[]", NULL,
                "\"positions\":{\"shape\":[0],\"dtype\":\"float64\",\"data\":[]}");
}
END_TEST

START_TEST(no_elements_in_binary) {
    static const char *const formats[] = {"npy", "raw", "safetensors", "csv"};
    struct pe_error err = {0};
    struct pe_arena *arena = pe_arena_open(1 << 16, NULL, &err);
    for (size_t i = 0; i < PE_COUNT(formats); i++) {
        char request[200];
        snprintf(request, sizeof request, "GET /v1/encode?type=random&d_model=4&positions=0:0&format=%s",
                 formats[i]);
        struct call_try try = {.request = request};
        call_try(&ground, &try);
        ck_assert_int_eq(try.status, 200);
        if (strcmp(formats[i], "csv") == 0) {
            ck_assert_uint_eq(try.reply_n, 0);
        } else {
            struct pe_tensor tensor = call_try_tensor(&try, arena, "vectors");
            ck_assert(tensor.rank == 2 && tensor.dim[0] == 0 && tensor.dim[1] == 4);
        }
        call_try_close(&try);
    }
    pe_arena_close(arena);
}
END_TEST

/* A few bytes that say "so many rows of nothing" must not become so many brackets. */
START_TEST(rows_of_nothing) {
    static const struct {
        const char *request, *body, *field;
    } rows[] = {
        {"POST /v1/apply",
         "{\"encoding\":\"vaswani\",\"embeddings\":{\"shape\":[1000000000,0,4],\"data\":[]}}", "embeddings"},
        {"POST /v1/apply",
         "{\"encoding\":\"vaswani\",\"embeddings\":[[1]],\"positions\":{\"mask\":{\"shape\":[1000000000,0],"
         "\"data\":[]},\"rule\":\"bert\"}}",
         "positions.mask"},
        {"POST /v1/encode",
         "{\"encoding\":{\"type\":\"random\",\"d_model\":4},\"positions\":{\"shape\":[1000000000,0],\"data\":"
         "[]}}",
         "positions"},
        {"POST /v1/positions", "{\"mask\":{\"shape\":[1000000000,0],\"data\":[]},\"rule\":\"bert\"}", "mask"},
        {"POST /v1/attention",
         "{\"q\":{\"shape\":[1,9007199254740992,0,4],\"data\":[]},\"k\":{\"shape\":[1,9007199254740992,0,4],"
         "\"data\":[]}}",
         "q"},
    };
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct call_try try = {.request = rows[i].request, .body = rows[i].body};
        call_expect_problem(&ground, &try, 400, "shape", rows[i].field, NULL);
        call_try_close(&try);
    }
    struct call_try raw = {.request = "POST /v1/positions?rule=bert&shape=1000000000,0",
                           .body = "",
                           .head.content_type = "application/octet-stream"};
    call_expect_problem(&ground, &raw, 400, "missing", "body", "is empty");
    call_try_close(&raw);
}
END_TEST

/* A number that does not fit is found before the first one is made: a stream could not take back what it
 * sent. */
START_TEST(numbers_beyond_float16) {
    static const char *const formats[] = {"npy", "raw", "safetensors"};
    struct call_try made = {
        .request = "GET /v1/encode?type=naive&d_model=4&positions=65000:66000&dtype=float16&format=raw"};
    call_expect_problem(&ground, &made, 400, "range", "positions[520]",
                        "the vector of position 65520 reaches 65520, allowed in float16 is less than 65520");
    call_try_close(&made);
    for (size_t i = 0; i < PE_COUNT(formats); i++) {
        char request[200];
        snprintf(request, sizeof request,
                 "GET /v1/encode?type=naive&d_model=4&positions=0:70000&dtype=float16&format=%s", formats[i]);
        struct call_try try = {.request = request};
        call_expect_problem(&ground, &try, 400, "range", "positions[65520]", NULL);
        call_try_close(&try);
    }
}
END_TEST

/* -infinity of a bias is null in JSON; it reads back as what it was. */
START_TEST(minus_infinity) {
    expect_data("POST /v1/attention",
                "{\"q\":[[1]],\"k\":[[1],[1]],\"bias\":[[0,null]],\"return\":[\"position\",\"weights\"]}",
                "\"weights\":{\"shape\":[1,2],\"dtype\":\"float32\",\"data\":[[1.0,0.0]]},\"position\":{"
                "\"shape\":[1,2],\"dtype\":\"float32\",\"data\":[[0.0,null]]}");
}
END_TEST

Suite *source_suite(void) {
    Suite *suite = suite_create("source");
    TCase *tests = tcase_create("sources");
    suite_add_tcase(suite, tests);
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, pulled_in_pieces);
    tcase_add_test(tests, binary_is_held_once);
    tcase_add_test(tests, longest_numbers);
    tcase_add_test(tests, no_elements);
    tcase_add_test(tests, no_elements_in_binary);
    tcase_add_test(tests, rows_of_nothing);
    tcase_add_test(tests, numbers_beyond_float16);
    tcase_add_test(tests, minus_infinity);
    return suite;
}
