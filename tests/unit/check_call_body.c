/* SPDX-License-Identifier: MIT
 *
 * Bodies as they arrive: in any pieces, compressed, too large, of every type of content, cut and forged.
 */
#include "call_run.h"
#include "suites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define NONE_APPLY "POST /v1/apply?encoding=none"

static struct call_ground ground;
static const char good[] = "{\"encoding\":{\"type\":\"none\"},\"embeddings\":[[1,2],[3,4]]}";
static const char data[] =
    "\"embeddings\":{\"shape\":[2,2],\"dtype\":\"float32\",\"data\":[[1.0,2.0],[3.0,4.0]]}";

static void setup(void) {
    call_ground_open(&ground);
}

static void teardown(void) {
    call_ground_close(&ground);
}

static void expect_good(struct call_try *try) {
    call_try(&ground, try);
    ck_assert_msg(try->status == 200, "%s: %s", try->request, try->reply);
    ck_assert_msg(strstr(try->reply, data) != NULL, "%s: %s", try->request, try->reply);
    call_try_close(try);
}

static void expect(struct call_try *try, int status, const char *slug, const char *field,
                   const char *detail) {
    call_expect_problem(&ground, try, status, slug, field, detail);
    call_try_close(try);
}

START_TEST(bodies_in_pieces_of_any_size) {
    for (size_t chunk = 1; chunk <= sizeof good; chunk++) {
        expect_good(&(struct call_try){.request = "POST /v1/apply", .body = good, .chunk = chunk});
    }
    expect_good(&(struct call_try){.request = "POST /v1/apply", .body = good, .no_length = true});
}
END_TEST

/* ---- gzip ---------------------------------------------------------------------------------------------- */

/* Compresses; the result is to be freed. */
static char *gzip(const void *bytes, size_t n, size_t *out_n) {
    z_stream z = {0};
    ck_assert_int_eq(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
    size_t room = deflateBound(&z, (unsigned long)n);
    char *out = malloc(room);
    z.next_in = (unsigned char *)(uintptr_t)bytes;
    z.avail_in = (unsigned)n;
    z.next_out = (unsigned char *)out;
    z.avail_out = (unsigned)room;
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    *out_n = z.total_out;
    deflateEnd(&z);
    return out;
}

static struct call_try gzipped(const char *body, size_t n) {
    return (struct call_try){
        .request = "POST /v1/apply", .body = body, .body_n = n, .head.content_encoding = "gzip"};
}

START_TEST(gzip_in_pieces) {
    size_t n;
    char *body = gzip(good, sizeof good - 1, &n);
    for (size_t chunk = 1; chunk <= n; chunk++) {
        struct call_try try = gzipped(body, n);
        try.chunk = chunk;
        expect_good(&try);
    }
    struct call_try other = gzipped(body, n);
    other.head.content_encoding = "X-Gzip";
    expect_good(&other);
    free(body);
}
END_TEST

START_TEST(gzip_cut_and_forged) {
    size_t n;
    char *body = gzip(good, sizeof good - 1, &n), *more = malloc(2 * n);
    for (size_t cut = 1; cut < n; cut++) {
        struct call_try try = gzipped(body, cut);
        expect(&try, 400, "syntax", "body", "ends inside its gzip stream");
    }
    memcpy(more, body, n);
    more[n] = body[0]; /* another member begins */
    struct call_try tail = gzipped(more, n + 1), late = gzipped(more, n + 1);
    late.chunk = n;
    expect(&tail, 400, "syntax", "body", "ends inside its gzip stream");
    expect(&late, 400, "syntax", "body", "ends inside its gzip stream");
    more[n] = more[n + 1] = 'x';
    struct call_try other = gzipped(more, n + 2);
    expect(&other, 400, "syntax", "body", "has bytes after its gzip stream that are no further part of it");
    more[n - 8] = (char)(more[n - 8] ^ 1); /* the check sum */
    struct call_try sum = gzipped(more, n), plain = gzipped(good, sizeof good - 1), none = gzipped("", 0);
    expect(&sum, 400, "syntax", "body", "is not valid gzip");
    expect(&plain, 400, "syntax", "body", "is not valid gzip");
    expect(&none, 400, "missing", "body", "is empty; an object is expected");
    free(body);
    free(more);
}
END_TEST

/* RFC 1952, 2.2: a file may be several compressed ones in a row, and stands for theirs. */
START_TEST(gzip_of_several_members) {
    size_t n[4], total = 0;
    static const size_t ends[] = {0, 0, 7, 40, sizeof good - 1};
    char *all = malloc(4096);
    for (size_t i = 0; i < 4; i++) {
        char *member = gzip(good + ends[i], ends[i + 1] - ends[i], &n[i]);
        memcpy(all + total, member, n[i]);
        total += n[i];
        free(member);
    }
    for (size_t chunk = 1; chunk <= total; chunk++) {
        struct call_try try = gzipped(all, total);
        try.chunk = chunk;
        expect_good(&try);
    }
    struct call_try cut = gzipped(all, n[0] + n[1]);
    expect(&cut, 400, "syntax", "body", NULL); /* of the JSON */
    free(all);
}
END_TEST

/* A few kilobytes that inflate to many megabytes stop at the limit, not after. */
START_TEST(gzip_bomb) {
    size_t n, zeros = (size_t)64 << 20;
    char *plain = calloc(zeros, 1), *body;
    memset(plain, ' ', zeros);
    body = gzip(plain, zeros, &n);
    free(plain);
    ground.config.expanded_bytes = 1 << 20;
    ground.config.body_bytes = 1 << 20;
    ground.config.envelope_bytes = 1 << 20;
    ck_assert_uint_lt(n, 1 << 20);
    struct call_try try = gzipped(body, n);
    call_expect_problem(&ground, &try, 413, "limit", "body", NULL);
    ck_assert_int_eq(json_integer_value(json_object_get(try.json, "limit")), 1 << 20);
    ck_assert_int_gt(json_integer_value(json_object_get(try.json, "got")), 1 << 20);
    call_try_close(&try);
    struct call_try binary = gzipped(body, n);
    binary.head.content_type = "application/x-npy";
    call_expect_problem(&ground, &binary, 413, "limit", "body", NULL);
    ck_assert_str_eq(call_try_text(&binary, "option"), "expanded_bytes");
    ck_assert_int_le(json_integer_value(json_object_get(binary.json, "got")), (1 << 20) + 65536);
    call_try_close(&binary);
    free(body);
}
END_TEST

/* ---- Limits -------------------------------------------------------------------------------------------- */

static void expect_limit(struct call_try *try, const char *field, int64_t limit, int64_t got,
                         const char *option) {
    call_expect_problem(&ground, try, 413, "limit", field, NULL);
    ck_assert_int_eq(json_integer_value(json_object_get(try->json, "limit")), limit);
    if (got) {
        ck_assert_int_eq(json_integer_value(json_object_get(try->json, "got")), got);
    }
    ck_assert_str_eq(call_try_text(try, "option"), option);
    call_try_close(try);
}

START_TEST(limits_name_their_option) {
    char body[4096];
    ground.config.body_bytes = 2048;
    memset(body, ' ', sizeof body);
    expect_limit(&(struct call_try){.request = "POST /v1/apply", .body = body, .body_n = 3000}, "body", 2048,
                 3000, "body_bytes");
    /* without a length it is found on the way */
    expect_limit(
        &(struct call_try){
            .request = "POST /v1/apply", .body = body, .body_n = 3000, .no_length = true, .chunk = 100},
        "body", 2048, 2100, "body_bytes");
    expect_limit(&(struct call_try){.request = "GET /v1/version", .body = body, .body_n = 3000}, "body", 2048,
                 3000, "body_bytes");
    ground.config.envelope_bytes = 1024;
    expect_limit(&(struct call_try){.request = "POST /v1/apply", .body = body, .body_n = 2000}, "body", 1024,
                 1025, "envelope_bytes");
    expect_limit(&(struct call_try){.request = "POST /v1/encode",
                                    .body = "{\"encoding\":{\"type\":\"sinusoidal\",\"d_model\":4},"
                                            "\"positions\":\"0:9000000000000000\"}"},
                 "positions", 268435456, 0, "expanded_bytes");
    expect_limit(
        &(struct call_try){.request = "GET /v1/encode?type=sinusoidal&d_model=4&positions=0:10000000000"},
        "positions", 68719476736, 160000000000, "stream_bytes");
    expect_limit(&(struct call_try){.request = "GET /v1/positions?positions=0:9000000000000000"}, "positions",
                 268435456, 0, "expanded_bytes");
    expect_limit(&(struct call_try){.request = "GET /v1/positions?grid=9e15,9e15"}, "grid", 268435456, 0,
                 "expanded_bytes");
    ground.config.reply_bytes = 1024;
    expect_limit(&(struct call_try){.request = "GET /v1/positions?positions=0:1000&format=raw"}, "body", 1024,
                 8000, "reply_bytes");
}
END_TEST

START_TEST(numbers_count_against_the_memory_of_a_request) {
    size_t n = 0, room = 300000;
    char *body = malloc(room);
    n += (size_t)snprintf(body, room, "{\"encoding\":\"none\",\"embeddings\":[[1");
    while (n < room - 16) {
        n += (size_t)snprintf(body + n, room - n, ",1");
    }
    n += (size_t)snprintf(body + n, room - n, "]]}");
    ground.config.expanded_bytes = 524288;
    expect_limit(&(struct call_try){.request = "POST /v1/apply", .body = body, .body_n = n},
                 "embeddings[0][65408]", 524288, 524296, "expanded_bytes");
    free(body);
}
END_TEST

/* What jansson makes of a body counts, too: an empty object is three bytes there, and hundreds in memory. */
START_TEST(parsed_json_counts_against_the_memory_of_a_request) {
    enum { OBJECTS = 300000 };
    static const char *const requests[] = {"POST /v1/encode", "POST /v1/batch"};
    char *body = malloc(3 * OBJECTS + 100);
    size_t n = (size_t)snprintf(body, 100, "{\"x\":[");
    for (size_t i = 0; i < OBJECTS; i++, n += 3) {
        memcpy(body + n, i + 1 < OBJECTS ? "{}," : "{}]", 3);
    }
    body[n++] = '}';
    ground.config.expanded_bytes = 1 << 20;
    for (size_t i = 0; i < 2; i++) {
        struct call_try try = {.request = requests[i], .body = body, .body_n = n};
        call_try(&ground, &try);
        ck_assert_msg(try.status == 413, "%s", try.reply);
        ck_assert_int_gt(json_integer_value(json_object_get(try.json, "got")), 1 << 20);
        call_try_close(&try);
        expect_limit(&(struct call_try){.request = requests[i], .body = body, .body_n = n}, "body", 1 << 20,
                     0, "expanded_bytes");
    }
    ground.config.expanded_bytes = 256 << 20; /* by default it is only a body without sense */
    struct call_try roomy = {.request = requests[0], .body = body, .body_n = n};
    call_expect_problem(&ground, &roomy, 400, "unknown_field", "x", NULL);
    call_try_close(&roomy);
    free(body);
}
END_TEST

/* A body of that many numbers of 0.5, in each form that bodies have. */
static char *half_numbers(const char *form, size_t count, size_t *n) {
    size_t header = strcmp(form, "npy") == 0 ? 128 : 0;
    char *body = malloc(header + 4 * count + 100);
    const float half = 0.5F;
    if (strcmp(form, "json") == 0) {
        *n = (size_t)snprintf(body, 100, "{\"encoding\":\"none\",\"embeddings\":[[");
        for (size_t i = 0; i < count; i++, *n += 3) {
            memcpy(body + *n, i + 1 < count ? "15," : "15]", 3);
        }
        *n += (size_t)snprintf(body + *n, 10, "]}");
        return body;
    }
    if (header) {
        struct pe_tensor shape = {.dtype = PE_DTYPE_F32, .rank = 2, .dim = {1, count}};
        header = pe_npy_header(body, 128, &shape);
    }
    for (size_t i = 0; i < count; i++) {
        memcpy(body + header + i * sizeof half, &half, sizeof half);
    }
    *n = header + count * sizeof half;
    return body;
}

/* What a body has become and what is computed from it count together: the least limit that is enough is that
 * of both, and one byte less is refused. */
START_TEST(one_budget_for_body_and_results) {
    enum { COUNT = 50000 };
    static const struct {
        const char *request, *form, *type, *coding;
        size_t bytes; /* for each number, at once */
    } rows[] = {
        {"POST /v1/apply?type=none&format=raw", "npy", "application/x-npy", NULL, 4 + 4},
        {"POST /v1/apply?type=none&format=raw&dtype=float64", "npy", "application/x-npy", NULL, 4 + 8 + 8},
        {"POST /v1/apply?type=none&shape=1,50000", "raw", "application/octet-stream", NULL, 4 + 4},
        {"POST /v1/apply?type=none&format=raw", "npy", "application/x-npy", "gzip", 4 + 4},
        {"POST /v1/apply?format=raw", "json", "application/json", NULL, 8}, /* as many as 4 + 4 */
        {"POST /v1/apply?format=raw&dtype=float64", "json", "application/json", NULL, 8 + 8},
    };
    size_t n, low = 65536, high = (size_t)8 << 20;
    char *body = half_numbers(rows[_i].form, COUNT, &n);
    if (rows[_i].coding) {
        char *plain = body;
        body = gzip(plain, n, &n);
        free(plain);
    }
    while (low < high) { /* the least limit that is enough */
        size_t middle = low + (high - low) / 2;
        ground.config.expanded_bytes = (int64_t)middle;
        struct call_try try = {.request = rows[_i].request, .body = body, .body_n = n};
        try.head.content_type = rows[_i].type;
        try.head.content_encoding = rows[_i].coding;
        call_try(&ground, &try);
        ck_assert_msg(try.status == 200 || try.status == 413, "%s", try.reply);
        if (try.status == 413) {
            ck_assert_str_eq(call_try_text(&try, "option"), "expanded_bytes");
            json_int_t limit = json_integer_value(json_object_get(try.json, "limit"));
            ck_assert(limit == (json_int_t)middle || limit == (json_int_t)middle / 8 * 8); /* in numbers */
            ck_assert_int_gt(json_integer_value(json_object_get(try.json, "got")), (json_int_t)middle);
        }
        low = try.status == 200 ? low : middle + 1;
        high = try.status == 200 ? middle : high;
        call_try_close(&try);
    }
    ck_assert_uint_ge(low, rows[_i].bytes * COUNT);
    ck_assert_uint_le(low, rows[_i].bytes * COUNT + 8192);
    free(body);
}
END_TEST

/* ---- Types of content ---------------------------------------------------------------------------------- */

START_TEST(json_by_any_of_its_names) {
    static const char *const types[] = {NULL,
                                        "",
                                        "application/json",
                                        "Application/JSON ; charset=utf-8",
                                        "application/x-www-form-urlencoded",
                                        "text/json",
                                        "application/vnd.api+json;v=1"};
    for (size_t i = 0; i < PE_COUNT(types); i++) {
        expect_good(
            &(struct call_try){.request = "POST /v1/apply", .body = good, .head.content_type = types[i]});
    }
}
END_TEST

START_TEST(types_that_are_not_read) {
    static const char *const types[] = {"multipart/form-data; boundary=x",
                                        "text/csv",
                                        "text/plain",
                                        "application/xml",
                                        "application",
                                        "application/jsonx",
                                        ";"};
    for (size_t i = 0; i < PE_COUNT(types); i++) {
        struct call_try try = {.request = "POST /v1/apply", .body = good, .head.content_type = types[i]};
        expect(&try, 415, "media_type", "Content-Type", NULL);
    }
    struct call_try coding = {.request = "POST /v1/apply", .body = good, .head.content_encoding = "br"};
    expect(&coding, 415, "media_type", "Content-Encoding", "must be gzip or identity, got \"br\"");
    struct call_try batch = {
        .request = "POST /v1/batch", .body = good, .head.content_type = "application/x-npy"};
    expect(&batch, 415, "media_type", "Content-Type", "a batch is JSON");
    struct call_try shift = {.request = "POST /v1/shift?type=sinusoidal&d_model=2&distance=1",
                             .body = good,
                             .head.content_type = "application/x-npy"};
    expect(&shift, 415, "media_type", "Content-Type", "shift takes no tensor; post JSON");
}
END_TEST

static struct call_try raw(const char *request, const void *body, size_t n) {
    return (struct call_try){
        .request = request, .body = body, .body_n = n, .head.content_type = "application/octet-stream"};
}

START_TEST(raw_bodies) {
    static const float x[] = {1, 2, 3, 4};
    static const struct {
        const char *request, *shape, *dtype, *slug, *field, *detail;
    } rows[] = {
        {NONE_APPLY "&format=json&shape=2,2", NULL, NULL, NULL, NULL, NULL},
        {NONE_APPLY "&format=json", "2,2", "float32", NULL, NULL, NULL},
        {NONE_APPLY "&format=json&shape=2,2", "9,9", NULL, "conflict", "X-Posenc-Shape",
         "is given beside shape in the query"},
        {NONE_APPLY "&format=json", NULL, NULL, "missing", "shape",
         "is required for a raw body (or X-Posenc-Shape)"},
        {NONE_APPLY "&format=json&shape=2,3", NULL, NULL, "shape", "shape",
         "[2, 3] of float32 does not fit the body of 16 bytes"},
        {NONE_APPLY "&format=json&shape=2,2&body_dtype=float64", NULL, NULL, "shape", "shape",
         "[2, 2] of float64 does not fit the body of 16 bytes"},
        {NONE_APPLY "&format=json&shape=4294967296,4294967296,4294967296", NULL, NULL, "shape", "shape",
         "[4294967296, 4294967296, 4294967296] of float32 does not fit the body of 16 bytes"},
        {NONE_APPLY "&shape=1,1,1,1,1,1,1,1,4", NULL, NULL, "shape", "shape",
         "has 9 axes, at most 8 are allowed"},
        {NONE_APPLY "&shape=2,-2", NULL, NULL, "range", "shape[1]", NULL},
        {NONE_APPLY, "2;2", NULL, "type", "X-Posenc-Shape", NULL},
        {NONE_APPLY "&shape=2,2", NULL, "int8", "choice", "X-Posenc-Dtype", NULL},
    };
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct call_try try = raw(rows[i].request, x, sizeof x);
        try.head.raw_shape = rows[i].shape;
        try.head.raw_dtype = rows[i].dtype;
        if (rows[i].slug) {
            expect(&try, 400, rows[i].slug, rows[i].field, rows[i].detail);
        } else {
            expect_good(&try);
        }
    }
    struct call_try empty = raw(NONE_APPLY "&shape=2,2", "", 0);
    expect(&empty, 400, "missing", "body", "is empty");
    static const float wild[] = {1, 2, 3, (float)INFINITY};
    struct call_try infinite = raw(NONE_APPLY "&shape=2,2", wild, sizeof wild);
    expect(&infinite, 400, "nonfinite", "embeddings[1][1]", NULL);
}
END_TEST

/* ---- npy and safetensors ------------------------------------------------------------------------------- */

/* A npy file of int64 numbers [n]. */
static size_t npy_of(char *out, size_t size, const int64_t *values, size_t n) {
    struct pe_tensor shape = {.dtype = PE_DTYPE_F64, .rank = 2, .dim = {1, n}};
    size_t header = pe_npy_header(out, size, &shape);
    char *type = strstr(out + 10, "<f8");
    ck_assert(type && header + n * sizeof *values <= size);
    type[1] = 'i';
    memcpy(out + header, values, n * sizeof *values);
    return header + n * sizeof *values;
}

START_TEST(npy_bodies) {
    static const int64_t fine[] = {1, 2}, large[] = {1, INT64_C(9007199254740993)};
    char file[512];
    size_t n = npy_of(file, sizeof file, fine, 2);
    struct call_try try = raw(NONE_APPLY "&format=json", file, n);
    try.head.content_type = "application/x-npy";
    call_try(&ground, &try);
    ck_assert_msg(strstr(try.reply, "\"dtype\":\"float64\",\"data\":[[1.0,2.0]]"), "%s", try.reply);
    call_try_close(&try);
    for (size_t cut = 1; cut < n; cut++) {
        struct call_try part = raw(NONE_APPLY, file, cut);
        part.head.content_type = "application/npy";
        expect(&part, 400, "format", "body", NULL);
    }
    n = npy_of(file, sizeof file, large, 2);
    struct call_try inexact = raw(NONE_APPLY, file, n);
    inexact.head.content_type = "application/x-npy";
    expect(&inexact, 400, "range", "embeddings[0][1]", NULL);
    memcpy(strstr(file + 10, "<i8"), "<c8", 3);
    struct call_try complex = raw(NONE_APPLY, file, n);
    complex.head.content_type = "application/x-npy";
    expect(&complex, 400, "dtype", "body", NULL);
}
END_TEST

static void safetensors(const char *header, size_t data_bytes, const char *slug, const char *field) {
    char file[1024];
    uint64_t n = strlen(header);
    memcpy(file, &n, 8); /* little-endian, as this machine is */
    memcpy(file + 8, header, n);
    memset(file + 8 + n, 0, data_bytes);
    struct call_try try = raw(NONE_APPLY "&format=json", file, 8 + n + data_bytes);
    try.head.content_type = "application/x-safetensors";
    if (slug) {
        expect(&try, 400, slug, field, NULL);
        return;
    }
    call_try(&ground, &try);
    ck_assert_msg(try.status == 200, "%s: %s", header, try.reply);
    call_try_close(&try);
}

START_TEST(safetensors_bodies) {
    safetensors("{\"embeddings\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}", 8, NULL, NULL);
    safetensors("{\"embeddings\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
                "\"positions\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[8,16]}}",
                16, NULL, NULL);
    safetensors("{\"nope\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}", 8, "unknown_field",
                "nope");
    safetensors("{\"encoding.base\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}", 8,
                "unknown_field", "encoding.base");
    safetensors("{\"embedding_scale\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, "type",
                "embedding_scale");
    safetensors("{\"positions.nope\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
                "unknown_field", "positions.nope");
    safetensors("{\"embeddings\":{\"dtype\":\"F8_E4M3\",\"shape\":[1,2],\"data_offsets\":[0,2]}}", 2, "dtype",
                "embeddings");
    safetensors("{\"embeddings\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
                "\"positions\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
                8, "format", "body");
    safetensors("{\"embeddings\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],"
                "\"data_offsets\":[0,8]}}",
                8, "format", "body");
    safetensors("{\"embeddings\":{\"dtype\":\"F32\",\"shape\":[1,2],"
                "\"data_offsets\":[18446744073709551612,4]}}",
                8, "format", "body");
    safetensors("{}", 0, "missing", "embeddings");
}
END_TEST

/* A body's tensors and a query's rule meet; a rule in pieces is made once, whatever the body is. */
START_TEST(rules_from_query_and_body) {
    struct call_try try = {.request = "POST /v1/apply?positions.mask=[0,1]&positions.rule=bloom",
                           .body = good};
    call_try(&ground, &try);
    ck_assert_msg(try.status == 200 && strstr(try.reply, "\"positions\":[0.0,0.0]"), "%s", try.reply);
    call_try_close(&try);
    safetensors("{\"positions.mask\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]},"
                "\"embeddings\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[8,16]}}",
                16, "missing", "positions.rule");
}
END_TEST

Suite *call_body_suite(void) {
    Suite *suite = suite_create("call_body");
    TCase *tests = tcase_create("bodies");
    suite_add_tcase(suite, tests);
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, bodies_in_pieces_of_any_size);
    tcase_add_test(tests, gzip_in_pieces);
    tcase_add_test(tests, gzip_cut_and_forged);
    tcase_add_test(tests, gzip_of_several_members);
    tcase_add_test(tests, gzip_bomb);
    tcase_add_test(tests, limits_name_their_option);
    tcase_add_test(tests, numbers_count_against_the_memory_of_a_request);
    tcase_add_test(tests, parsed_json_counts_against_the_memory_of_a_request);
    tcase_add_loop_test(tests, one_budget_for_body_and_results, 0, 6);
    tcase_add_test(tests, json_by_any_of_its_names);
    tcase_add_test(tests, types_that_are_not_read);
    tcase_add_test(tests, raw_bodies);
    tcase_add_test(tests, npy_bodies);
    tcase_add_test(tests, safetensors_bodies);
    tcase_add_test(tests, rules_from_query_and_body);
    return suite;
}
