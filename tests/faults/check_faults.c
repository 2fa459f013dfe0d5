/* SPDX-License-Identifier: MIT
 *
 * Requests of every kind under want: all pages, formats, types of encodings, kinds of bodies, streams, and
 * errors. Those of tests/cases are swept by check_faults_cases.c; what may come of a fault stands in
 * fault_call.h.
 */
#include "faults/fault_call.h"
#include "unit/suites.h"

#include "wire/bind.h"
#include "wire/format.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static struct call_ground ground;

static void setup(void) {
    fault_ground_open(&ground);
}

static void teardown(void) {
    fault_ground_close(&ground);
}

/* Says nothing about how many faults there are: only that it met some. */
static void sweep(struct call_try try) {
    ck_assert_msg(fault_sweep(&ground, &try, false) > 0, "%s met no fault", try.request);
}

/* ---- Without a body ------------------------------------------------------------------------------------ */

static const struct call_try gets[] = {
    {.request = "GET /"},
    {.request = "GET /healthz"},
    {.request = "GET /readyz"},
    {.request = "GET /v1/encodings"},
    {.request = "GET /v1/encodings/sinusoidal"},
    {.request = "GET /v1/encodings/none_such"},
    {.request = "GET /v1/presets"},
    {.request = "GET /v1/tables"},
    {.request = "GET /v1/tables/table"},
    {.request = "GET /v1/tables/none_such"},
    {.request = "GET /v1/limits"},
    {.request = "GET /v1/limits", .head.if_none_match = "*"},
    {.request = "GET /v1/limits?none=1"},
    {.request = "HEAD /v1/limits"},
    {.request = "GET /v1/version"},
    {.request = "GET /v1/encode?type=naive&d_model=6&positions=0:4"},
    {.request = "GET /v1/encode?type=learned&table=test_table&positions=[[0,1],[2,3]]"},
    {.request = "GET /v1/encode?type=random&d_model=6&seed=3&positions=0:4"},
    {.request = "GET /v1/encode?encoding=vaswani&d_model=6&positions=0,1,2.5"},
    {.request = "GET /v1/encode?encoding=test_table&positions=7,0"},
    {.request = "GET /v1/encode?encoding=none_such&positions=0:4"},
    {.request = "GET /v1/encode?type=sinusoidal&d_model=6&positions=0:4&flat=1&dtype=float64"},
    {.request = "GET /v1/encode?type=sinusoidal&d_model=6&positions=0:4", .head.if_none_match = "*"},
    {.request = "HEAD /v1/encode?type=sinusoidal&d_model=6&positions=0:4"},
    {.request = "OPTIONS /v1/encode"},
    {.request = "GET /v1/encode?type=sinusoidal&d_model=6&positions.mask=[[0,1],[1,1]]&positions.rule=opt"},
    {.request = "GET /v1/shift?type=sinusoidal&d_model=6&distance=2.5&matrix=1"},
    {.request = "GET /v1/positions?grid=[2,3]"},
    {.request = "GET /v1/none_such"},
    {.request = "DELETE /v1/encode"},
    {.request = "BREW /v1/encode"},
    {.request = "GET /v1/encode?type=sinusoidal&d_model=6&positions=0:4", .head.accept = "text/html"},
    {.request = "GET /v1/encode?type=sinusoidal&d_model=0&positions=0:4"},
    {.request = "GET /v1/encode?type=sinusoidal&d_model=6&positions=0:4&none_such=1"},
    {.request = "GET /v1/encode?type=sinusoidal&d_model=%zz&positions=0:4"},
    {.request = "GET /v1/encode?type=sinusoidal&d_model=6&positions=0:4", .head.timeout_ms = "soon"},
    {.request = "GET /v1/encode?type=sinusoidal&d_model=65536&positions=0:9007199254740992"},
};

START_TEST(a_get) {
    sweep(gets[_i]);
}
END_TEST

/* Its numbers are another every time. */
START_TEST(the_metrics) {
    ck_assert_uint_gt(fault_sweep(&ground, &(struct call_try){.request = "GET /metrics"}, true), 0);
}
END_TEST

START_TEST(every_format_and_dtype) {
    static const char *const dtypes[] = {"float64", "float32", "float16", "bfloat16"};
    char request[200];
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        for (size_t k = 0; k < PE_COUNT(dtypes); k++) {
            snprintf(request, sizeof request,
                     "GET /v1/encode?type=sinusoidal&d_model=6&positions=0:4&format=%s&dtype=%s",
                     format_at((enum format_id)i)->name, dtypes[k]);
            sweep((struct call_try){.request = request});
        }
    }
}
END_TEST

START_TEST(every_preset) {
    char request[200];
    for (size_t i = 0; i < presets_count(ground.presets); i++) {
        snprintf(request, sizeof request, "GET /v1/encode?encoding=%s&d_model=6&positions=0:4",
                 presets_at(ground.presets, i)->name);
        sweep((struct call_try){.request = request});
    }
}
END_TEST

/* 256 KiB of vectors, from where a GET is a stream. */
START_TEST(a_stream_of_every_format) {
    char request[200];
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        snprintf(request, sizeof request,
                 "GET /v1/encode?type=sinusoidal&d_model=16&positions=0:4096&format=%s",
                 format_at((enum format_id)i)->name);
        sweep((struct call_try){.request = request});
    }
}
END_TEST

/* ---- With a body --------------------------------------------------------------------------------------- */

#define Q "\"q\":[[1,0],[0,1],[1,1]]"
#define K "\"k\":[[1,0.25],[0,1],[0.5,0.5]]"

/* Long names and texts on purpose: they make a reader's buffers grow. */
static const struct call_try posts[] = {
    {.request = "POST /v1/encode",
     .body = "{\"encoding\":{\"type\":\"random\",\"d_model\":4,\"seed\":18446744},"
             "\"positions\":{\"start\":0,\"count\":3,\"step\":0.5}}"},
    {.request = "POST /v1/encode",
     .body = "{\"encoding\":{\"type\":\"learned\",\"table\":[[1,2],[3,4]],"
             "\"out_of_range\":\"clamp\"},\"positions\":[0,5]}"},
    {.request = "POST /v1/apply",
     .body = "{\"encoding\":\"none\",\"embeddings\":{\"shape\":[2,2],\"dtype\":"
             "\"float64\",\"data\":[1,2,3,4.00000000000000000000000001]}}"},
    {.request = "POST /v1/apply",
     .body = "{\"encoding\":\"vaswani\",\"embeddings\":[[[1,2],[3,4]]],\"scale\":"
             "\"sqrt_d_model\",\"positions\":{\"mask\":[[0,1]],\"rule\":\"fairseq\"}}"},
    {.request = "POST /v1/attention",
     .body = "{" Q "," K ",\"v\":[[1],[2],[3]],\"bias\":[[0,1,2],[3,null,5],[6,7,8]],"
             "\"mask\":{\"causal\":true,\"window\":[2,1],\"documents\":[1,2],\"keep\":[1,0,1]},"
             "\"return\":[\"weights\",\"logits\",\"content\",\"position\",\"output\"]}"},
    {.request = "POST /v1/attention?format=safetensors",
     .body = "{\"encoding\":\"vaswani\",\"embeddings\":[[1,0,2,1],[0,1,1,1]],\"heads\":2,"
             "\"return\":[\"weights\",\"terms\",\"output\"]}"},
    {.request = "POST /v1/attention", .body = "{" Q "," K ",\"mask\":{\"lengths\":[2]}}"},
    {.request = "POST /v1/shift",
     .body = "{\"encoding\":{\"type\":\"naive\",\"d_model\":4,\"form\":\"binary\"},"
             "\"distance\":1,\"positions\":[0,1,2,3]}"},
    {.request = "POST /v1/convert",
     .body = "{\"from\":\"halves\",\"to\":\"interleaved\",\"head_dim\":4,\"tensor\":[[1],[2],[3],[4]],"
             "\"return\":[\"tensor\",\"permutation\"]}"},
    {.request = "POST /v1/check",
     .body = "{\"encoding\":{\"type\":\"rope\",\"layout\":\"halves\",\"head_dim\":4},\"cos\":[[1,1],[2,2]],"
             "\"sin\":[[0,0],[0,0]]}"},
    {.request = "POST /v1/positions", .body = "{\"mask\":[[0,0,1,1],[1,1,1,0]],\"rule\":\"roberta\"}"},
    {.request = "POST /v1/batch",
     .body =
         "{\"requests\":[{\"op\":\"encode\",\"encoding\":{\"type\":\"sinusoidal\",\"d_model\":2},"
         "\"positions\":[1]},"
         "{\"op\":\"encode\",\"encoding\":{\"type\":\"sinusoidal\",\"d_model\":2,\"base\":0},\"positions\":["
         "1]},"
         "{\"op\":\"apply\",\"encoding\":\"tensor2tensor\",\"embeddings\":[[1,2],[3,4]]},"
         "{\"op\":\"attention\"," Q "," K "},"
         "{\"op\":\"shift\",\"encoding\":{\"type\":\"sinusoidal\",\"d_model\":2},\"distance\":1e300},[]]}"},
    {.request = "POST /v1/encode", .body = "{\"encoding\":"},
    {.request = "POST /v1/encode", .body = "{\"encoding_with_a_long_name_that_is_unknown\":1}"},
    {.request = "POST /v1/encode",
     .body = "{\"positions\":[0],\"encoding\":{\"type\":\"sinusoidal\",\"d_model\":"
             "123456789012345678901234567890}}"},
    {.request = "POST /v1/apply", .body = "{\"encoding\":\"none\",\"embeddings\":[[1,2],[3]]}"},
    {.request = "POST /v1/apply", .body = "x", .head.content_type = "text/x-unknown"},
    {.request = "POST /v1/apply", .body = "x", .head.content_encoding = "br"},
    {.request = "POST /v1/apply", .head.content_length = (int64_t)1 << 40},
    {.request = "POST /v1/apply?encoding=none&shape=2,2",
     .body = "123",
     .head.content_type = "application/octet-stream"},
};

/* Whole, and in pieces. */
START_TEST(a_post) {
    struct call_try try = posts[_i];
    sweep(try);
    try.chunk = 7;
    sweep(try);
}
END_TEST

/* ---- Binary bodies ------------------------------------------------------------------------------------- */

struct body {
    const char *media;
    char bytes[2048];
    size_t n;
};

static const struct pe_tensor embeddings = {.dtype = PE_DTYPE_F32, .rank = 2, .dim = {16, 4}};

static void add_data(struct body *body) {
    for (int i = 0; i < 64; i++) {
        float x = (float)i / 4 - 3;
        memcpy(body->bytes + body->n, &x, sizeof x);
        body->n += sizeof x;
    }
}

static void make_raw(struct body *body) {
    *body = (struct body){.media = "application/octet-stream"};
    add_data(body);
}

static void make_npy(struct body *body) {
    *body = (struct body){.media = "application/x-npy"};
    body->n = pe_npy_header(body->bytes, sizeof body->bytes, &embeddings);
    add_data(body);
}

static void make_safetensors(struct body *body) {
    struct pe_error err = {0};
    struct pe_arena *arena = pe_arena_open(1 << 20, NULL, &err);
    struct pe_safetensors_header header;
    const struct pe_named_tensor named = {"embeddings", embeddings};
    *body = (struct body){.media = "application/x-safetensors"};
    ck_assert(!pe_safetensors_write(arena, &header, &named, 1, &err));
    memcpy(body->bytes, header.text, header.bytes);
    body->n = header.bytes;
    add_data(body);
    pe_arena_close(arena);
}

static void make_gzip(struct body *out, const struct body *body) {
    z_stream z = {0};
    ck_assert_int_eq(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
    *out = (struct body){.media = body->media};
    z.next_in = (unsigned char *)(uintptr_t)body->bytes;
    z.avail_in = (unsigned)body->n;
    z.next_out = (unsigned char *)out->bytes;
    z.avail_out = sizeof out->bytes;
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    out->n = z.total_out;
    deflateEnd(&z);
}

START_TEST(a_binary_body) {
    static void (*const makers[])(struct body *) = {make_raw, make_npy, make_safetensors};
    struct body plain, packed;
    makers[_i](&plain);
    make_gzip(&packed, &plain);
    struct call_try try = {.request = "POST /v1/apply?type=sinusoidal&dtype=float64",
                           .body = plain.bytes,
                           .body_n = plain.n,
                           .chunk = 100,
                           .head.content_type = plain.media,
                           .head.raw_shape = _i == 0 ? "16,4" : NULL};
    sweep(try);
    try.body = packed.bytes;
    try.body_n = packed.n;
    try.head.content_encoding = "gzip";
    sweep(try);
    try.body_n--; /* cut short */
    sweep(try);
}
END_TEST

START_TEST(packed_json) {
    struct body plain = {0}, packed;
    plain.n = (size_t)snprintf(plain.bytes, sizeof plain.bytes, "%s", (const char *)posts[4].body);
    make_gzip(&packed, &plain);
    sweep((struct call_try){.request = "POST /v1/attention",
                            .body = packed.bytes,
                            .body_n = packed.n,
                            .head.content_encoding = "gzip"});
}
END_TEST

Suite *faults_suite(void) {
    Suite *suite = suite_create("faults");
    TCase *tests = tcase_create("faults");
    tcase_set_timeout(tests, 60);
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, a_get, 0, PE_COUNT(gets));
    tcase_add_test(tests, the_metrics);
    tcase_add_test(tests, every_format_and_dtype);
    tcase_add_test(tests, every_preset);
    tcase_add_test(tests, a_stream_of_every_format);
    tcase_add_loop_test(tests, a_post, 0, PE_COUNT(posts));
    tcase_add_loop_test(tests, a_binary_body, 0, 3);
    tcase_add_test(tests, packed_json);
    return suite;
}
