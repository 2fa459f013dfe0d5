/* SPDX-License-Identifier: MIT
 *
 * The bits of position p are the same in a range, a list, alone, in a batch, in any number of parts run in
 * any order by any number of threads (pthread), made first or while it is sent, in every format. So a cached
 * reply and a permalink are good for ever.
 */
#include "call_run.h"
#include "suites.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *query; /* width 24 */
} encodings[] = {
    {"sinusoidal", "type=sinusoidal&d_model=24"},
    {"halves, t2t", "encoding=tensor2tensor&d_model=24&base=500000"},
    {"offset and padding", "encoding=fairseq&d_model=24&offset=-3&position_scale=0.3"},
    {"random", "type=random&d_model=24&seed=9"},
    {"uniform", "type=random&d_model=24&distribution=uniform"},
    {"integer", "type=naive&d_model=24"},
    {"normalized", "type=naive&d_model=24&form=normalized&seq_len=5000"},
    {"binary", "type=naive&d_model=24&form=binary"},
    {"learned", "encoding=test_table"},
    {"linear", "type=learned&table=test_table&interpolate=linear"},
    {"clamped", "type=learned&table=test_table&out_of_range=clamp&offset=-7"},
};
static const char *const dtypes[] = {"float64", "float32", "float16", "bfloat16"};

#define WIDTH 24
#define FIRST 3    /* the range of the whole: FIRST .. FIRST+COUNT-1 */
#define COUNT 9000 /* x 24 x 2 bytes: over the size from which a GET is streamed, and several parts */

static struct call_ground ground;

/* A table [9100, 24] in /tmp, loaded and dropped. */
static void setup(void) {
    char folder[] = "/tmp/check_bits_XXXXXX", path[100], header[PE_NPY_HEADER_MAX];
    struct pe_tensor shape = {.dtype = PE_DTYPE_F32, .rank = 2, .dim = {COUNT + 100, WIDTH}};
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/test_table.npy", folder);
    FILE *file = fopen(path, "wb");
    fwrite(header, 1, pe_npy_header(header, sizeof header, &shape), file);
    for (size_t i = 0; i < pe_tensor_count(&shape); i++) {
        float x = (float)(i * 2654435761u % 100003) / 7.0F;
        fwrite(&x, sizeof x, 1, file);
    }
    fclose(file);
    call_ground_open_tables(&ground, folder);
    remove(path);
    remove(folder);
}

static void teardown(void) {
    call_ground_close(&ground);
}

/* Runs, and returns the reply's bytes, which must be `n` (0: any); to be freed. */
static char *bytes_of(struct call_try *try, size_t n) {
    call_try(&ground, try);
    ck_assert_msg(try->status == 200, "%s: %.300s", try->request, try->reply);
    ck_assert_msg(!n || try->reply_n == n, "%s: %zu bytes, not %zu", try->request, try->reply_n, n);
    char *bytes = malloc(try->reply_n + 1);
    memcpy(bytes, try->reply, try->reply_n + 1);
    return bytes;
}

static void expect_same(const char *got, const char *wanted, size_t n, const char *what) {
    for (size_t i = 0; i < n; i++) {
        if (got[i] != wanted[i]) {
            ck_abort_msg("%s: byte %zu (row %zu) differs", what, i, i / WIDTH);
        }
    }
}

/* One spelling of positions against the rows of the whole that they are. */
static void check_spelling(const char *encoding, const char *dtype, const char *positions, const int *rows,
                           size_t n, const char *whole, size_t row_bytes) {
    char request[400];
    snprintf(request, sizeof request, "GET /v1/encode?%s&dtype=%s&format=raw&positions=%s", encoding, dtype,
             positions);
    struct call_try try = {.request = request};
    char *bytes = bytes_of(&try, n * row_bytes);
    for (size_t i = 0; i < n; i++) {
        expect_same(bytes + i * row_bytes, whole + (size_t)(rows[i] - FIRST) * row_bytes, row_bytes, request);
    }
    free(bytes);
    call_try_close(&try);
}

static char *whole_of(const char *encoding, const char *dtype, size_t row_bytes) {
    char request[400];
    snprintf(request, sizeof request, "GET /v1/encode?%s&dtype=%s&format=raw&positions=%d:%d", encoding,
             dtype, FIRST, FIRST + COUNT);
    struct call_try try = {.request = request, .room = 10000};
    const int64_t usual = ground.config.reply_bytes;
    ground.config.reply_bytes = 64 << 10; /* little, so that it is streamed */
    char *whole = bytes_of(&try, COUNT * row_bytes);
    ground.config.reply_bytes = usual;
    ck_assert(call_reply(try.call)->stream);
    call_try_close(&try);
    return whole;
}

static size_t size_of(const char *dtype) {
    return WIDTH * pe_dtype_size(pe_dtype_find(dtype));
}

START_TEST(any_spelling) {
    const char *encoding = encodings[_i].query;
    static const int alone[] = {4321}, list[] = {8999, 3, 4321, 4321}, down[] = {4323, 4322, 4321},
                     batch[] = {4321, 9, 10, 4321};
    for (size_t d = 0; d < PE_COUNT(dtypes); d++) {
        size_t row = size_of(dtypes[d]);
        char *whole = whole_of(encoding, dtypes[d], row);
        check_spelling(encoding, dtypes[d], "4321", alone, 1, whole, row);
        check_spelling(encoding, dtypes[d], "8999,3,4321,4321", list, 4, whole, row);
        check_spelling(encoding, dtypes[d], "4323:4320:-1", down, 3, whole, row);
        check_spelling(encoding, dtypes[d], "[[4321,9],[10,4321]]", batch, 4, whole, row);
        free(whole);
    }
}
END_TEST

/* POST makes all of it first, in parts. */
START_TEST(any_parts_and_threads) {
    const char *encoding = encodings[_i].query;
    static const int crews[] = {0, -1, 1, 8};
    for (size_t d = 0; d < PE_COUNT(dtypes); d++) {
        size_t row = size_of(dtypes[d]);
        char *whole = whole_of(encoding, dtypes[d], row), request[400];
        snprintf(request, sizeof request, "POST /v1/encode?%s&dtype=%s&format=raw&positions=%d:%d", encoding,
                 dtypes[d], FIRST, FIRST + COUNT);
        for (size_t c = 0; c < PE_COUNT(crews); c++) {
            struct call_try try = {.request = request, .body = "{}", .threads = crews[c]};
            char *bytes = bytes_of(&try, COUNT * row);
            ck_assert(!call_reply(try.call)->stream);
            ck_assert_uint_gt(try.n_parts, 1);
            expect_same(bytes, whole, COUNT * row, request);
            free(bytes);
            call_try_close(&try);
        }
        free(whole);
    }
}
END_TEST

/* Text and binary are the same numbers, above and below the size from which a GET is streamed. */
START_TEST(text_streamed_or_made) {
    static const char *const formats[] = {"json", "csv", "npy", "safetensors"};
    for (size_t f = 0; f < PE_COUNT(formats); f++) {
        char get[400], post[400];
        snprintf(get, sizeof get, "GET /v1/encode?%s&format=%s&positions=%d:%d", encodings[_i].query,
                 formats[f], FIRST, FIRST + 3000);
        snprintf(post, sizeof post, "POST /v1/encode?%s&format=%s&positions=%d:%d", encodings[_i].query,
                 formats[f], FIRST, FIRST + 3000);
        struct call_try streamed = {.request = get, .room = 4096},
                        made = {.request = post, .body = "{}", .threads = 3};
        const int64_t usual = ground.config.reply_bytes;
        ground.config.reply_bytes = 64 << 10; /* little, so that it is streamed */
        char *one = bytes_of(&streamed, 0);
        ground.config.reply_bytes = usual;
        char *other = bytes_of(&made, streamed.reply_n);
        ck_assert(call_reply(streamed.call)->stream && !call_reply(made.call)->stream);
        expect_same(one, other, streamed.reply_n, get);
        free(one);
        free(other);
        call_try_close(&streamed);
        call_try_close(&made);
    }
}
END_TEST

/* Operations with several parts: the order and the threads that run them leave no trace. */
static void check_crews(const char *request, const char *body, size_t parts_least) {
    static const int crews[] = {0, -1, 1, 8};
    char *first = NULL;
    size_t n = 0;
    for (size_t c = 0; c < PE_COUNT(crews); c++) {
        struct call_try try = {.request = request, .body = body, .threads = crews[c]};
        char *bytes = bytes_of(&try, n);
        ck_assert_uint_ge(try.n_parts, parts_least);
        if (first) {
            expect_same(bytes, first, n, request);
        }
        n = try.reply_n;
        free(first);
        first = bytes;
        call_try_close(&try);
    }
    free(first);
}

/* {"a":{"shape":[...],"data":[...]}, ...} of n numbers each. */
static char *body_of(const char *const *names, size_t n_names, const char *shape, size_t n,
                     const char *more) {
    size_t room = n_names * (n * 12 + 100) + 200;
    char *body = malloc(room);
    size_t at = (size_t)snprintf(body, room, "{%s", more);
    for (size_t t = 0; t < n_names; t++) {
        at += (size_t)snprintf(body + at, room - at, "%s\"%s\":{\"shape\":%s,\"data\":[",
                               t || more[0] ? "," : "", names[t], shape);
        for (size_t i = 0; i < n; i++) {
            at += (size_t)snprintf(body + at, room - at, "%s%.5f", i ? "," : "",
                                   (double)((i * 2654435761u + t * 97) % 10007) / 10007 - 0.5);
        }
        at += (size_t)snprintf(body + at, room - at, "]}");
    }
    snprintf(body + at, room - at, "}");
    return body;
}

START_TEST(parts_of_operations) {
    static const char *const qkv[] = {"q", "k", "v"}, *const x[] = {"embeddings"};
    char *attention =
        body_of(qkv, 3, "[2,4,200,8]", 12800, "\"mask\":\"causal\",\"return\":[\"weights\",\"output\"]");
    char *apply = body_of(x, 1, "[3,2000,8]", 48000, "\"encoding\":\"vaswani\"");
    char *projected = body_of(x, 1, "[100,32]", 3200, "\"encoding\":\"vaswani\",\"heads\":4");
    check_crews("POST /v1/attention?format=safetensors", attention, 2);
    check_crews("POST /v1/attention?dtype=float64&format=safetensors", attention, 2);
    check_crews("POST /v1/apply?format=raw", apply, 1);
    check_crews("POST /v1/attention?format=raw", projected, 1);
    check_crews("POST /v1/shift?format=raw&type=random&d_model=16&distance=1", "{}", 1);
    free(attention);
    free(apply);
    free(projected);
}
END_TEST

/* The rows of a batch and of one sequence are the same; so are those of a shorter one. */
START_TEST(apply_in_a_batch) {
    static const char *const x[] = {"embeddings"};
    char *one = body_of(x, 1, "[10,8]", 80, "\"encoding\":\"vaswani\""),
         *three = body_of(x, 1, "[3,10,8]", 240, "\"encoding\":\"vaswani\""),
         *shorter = body_of(x, 1, "[4,8]", 32, "\"encoding\":\"vaswani\"");
    struct call_try single = {.request = "POST /v1/apply?format=raw", .body = one},
                    batch = {.request = "POST /v1/apply?format=raw", .body = three},
                    few = {.request = "POST /v1/apply?format=raw", .body = shorter};
    char *a = bytes_of(&single, 320), *b = bytes_of(&batch, 960), *c = bytes_of(&few, 128);
    ck_assert_mem_eq(a, b, 320);
    ck_assert_mem_eq(a, c, 128);
    char *const bytes[] = {a, b, c, one, three, shorter};
    for (size_t i = 0; i < PE_COUNT(bytes); i++) {
        free(bytes[i]);
    }
    call_try_close(&single);
    call_try_close(&batch);
    call_try_close(&few);
}
END_TEST

Suite *call_bits_suite(void) {
    Suite *suite = suite_create("call_bits");
    TCase *tests = tcase_create("the same bits"), *threads = tcase_create("threads");
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, threads);
    tcase_set_timeout(tests, 60);
    tcase_set_timeout(threads, 60);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_checked_fixture(threads, setup, teardown);
    tcase_add_loop_test(tests, any_spelling, 0, (int)PE_COUNT(encodings));
    tcase_add_loop_test(threads, any_parts_and_threads, 0, (int)PE_COUNT(encodings));
    tcase_add_loop_test(tests, text_streamed_or_made, 0, (int)PE_COUNT(encodings));
    tcase_add_test(tests, parts_of_operations);
    tcase_add_test(tests, apply_in_a_batch);
    return suite;
}
