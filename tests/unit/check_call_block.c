/* SPDX-License-Identifier: MIT
 *
 * block as a request: weights under names of their own in JSON and in safetensors, alone and in a batch, and
 * what the reply says of them.
 */
#include "call_run.h"
#include "suites.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PREFIX "weights."

enum { D = 2, D_FF = 3 };

static const struct {
    const char *name;
    int rank;
    size_t dim[2];
} tensors[] = {
    {"h.0.ln_1.weight", 1, {D}},
    {"h.0.ln_1.bias", 1, {D}},
    {"h.0.attn.c_attn.weight", 2, {D, 3 * D}},
    {"h.0.attn.c_attn.bias", 1, {3 * D}},
    {"h.0.attn.c_proj.weight", 2, {D, D}},
    {"h.0.attn.c_proj.bias", 1, {D}},
    {"h.0.ln_2.weight", 1, {D}},
    {"h.0.ln_2.bias", 1, {D}},
    {"h.0.mlp.c_fc.weight", 2, {D, D_FF}},
    {"h.0.mlp.c_fc.bias", 1, {D_FF}},
    {"h.0.mlp.c_proj.weight", 2, {D_FF, D}},
    {"h.0.mlp.c_proj.bias", 1, {D}},
    {"ln_f.weight", 1, {D}},
    {"ln_f.bias", 1, {D}},
    {"wpe.weight", 2, {4, D}},
    {"lm_head.weight", 2, {5, D}},
    {"embeddings", 2, {3, D}},
};
#define N PE_COUNT(tensors)

static struct call_ground ground;
static char text[1 << 16]; /* a body in JSON */
static size_t used;
static struct pe_arena *arena;
static struct pe_error err;

static void setup(void) {
    memset(&err, 0, sizeof err);
    used = 0;
    call_ground_open(&ground);
    arena = pe_arena_open((size_t)16 << 20, NULL, &err);
}

static void teardown(void) {
    pe_arena_close(arena);
    call_ground_close(&ground);
}

/* Number i of tensor k, which bfloat16 can hold. */
static double value(size_t k, size_t i) {
    return (double)((k * 31 + i * 17) % 41) / 16 - 1;
}

static struct pe_named_tensor tensor_of(size_t k, const char *prefix, enum pe_dtype dtype) {
    struct pe_named_tensor made;
    char *name = pe_arena_alloc(arena, 80, &err);
    ck_assert_int_eq(pe_tensor_alloc(arena, &made.tensor, dtype, tensors[k].rank, tensors[k].dim, &err), 0);
    snprintf(name, 80, "%s%s", k + 1 < N ? prefix : "", tensors[k].name);
    made.name = name;
    for (size_t i = 0; i < pe_tensor_count(&made.tensor); i++) {
        double number = value(k, i);
        pe_dtype_store(dtype, &number, 1, (char *)made.tensor.data + i * pe_dtype_size(dtype));
    }
    return made;
}

/* A file of all tensors; `twice` names one more, in float64. */
static char *file_make(const char *prefix, const char *twice, enum pe_dtype dtype, size_t *bytes) {
    struct pe_named_tensor all[N + 1];
    struct pe_safetensors_header header;
    size_t n = N;
    for (size_t k = 0; k < N; k++) {
        all[k] = tensor_of(k, prefix, dtype);
    }
    if (twice) {
        all[n] = tensor_of(0, "", PE_DTYPE_F64);
        all[n++].name = twice;
    }
    ck_assert_int_eq(pe_safetensors_write(arena, &header, all, n, &err), 0);
    char *file = pe_arena_alloc(arena, header.file_bytes, &err);
    memcpy(file, header.text, header.bytes);
    *bytes = header.bytes;
    for (size_t k = 0; k < n; k++) {
        memcpy(file + *bytes, all[k].tensor.data, pe_tensor_bytes(&all[k].tensor));
        *bytes += pe_tensor_bytes(&all[k].tensor);
    }
    return file;
}

static void put(const char *format, ...) PE_PRINTF(1, 2);
static void put(const char *format, ...) {
    va_list args;
    va_start(args, format);
    used += (size_t)vsnprintf(text + used, sizeof text - used, format, args);
    va_end(args);
    ck_assert_uint_lt(used, sizeof text);
}

static void put_tensor(size_t k) {
    size_t n = tensors[k].dim[0] * (tensors[k].rank > 1 ? tensors[k].dim[1] : 1);
    put("{\"shape\":[%zu", tensors[k].dim[0]);
    if (tensors[k].rank > 1) {
        put(",%zu", tensors[k].dim[1]);
    }
    put("],\"data\":[");
    for (size_t i = 0; i < n; i++) {
        put("%s%.4f", i ? "," : "", value(k, i));
    }
    put("]}");
}

/* The same as JSON. */
static void put_block(const char *before) {
    put("%s\"naming\":\"gpt2\",\"heads\":1,\"weights\":{", before);
    for (size_t k = 0; k + 1 < N; k++) {
        put("%s\"%s\":", k ? "," : "", tensors[k].name);
        put_tensor(k);
    }
    put("},\"embeddings\":");
    put_tensor(N - 1);
    put("}");
}

static void try_file(struct call_try *try, const char *prefix, const char *twice, enum pe_dtype dtype) {
    try->request = "POST /v1/block?naming=gpt2&heads=1&format=json&dtype=float64";
    try->head.content_type = "application/x-safetensors";
    try->body = file_make(prefix, twice, dtype, &try->body_n);
    call_try(&ground, try);
}

START_TEST(safetensors_are_the_same_as_json) {
    static const char *const prefixes[] = {"", PREFIX};
    struct call_try json = {.request = "POST /v1/block?dtype=float64", .body = text};
    put_block("{");
    call_try(&ground, &json);
    ck_assert_msg(json.status == 200, "%s", json.reply);
    for (size_t i = 0; i < PE_COUNT(prefixes); i++) {
        for (int dtype = PE_DTYPE_F64; dtype <= PE_DTYPE_BF16; dtype++) {
            struct call_try file = {0};
            try_file(&file, prefixes[i], NULL, (enum pe_dtype)dtype);
            ck_assert_msg(file.status == 200, "%s", file.reply);
            const char *const names[] = {"output", "weights", "residual", "used", "ignored", "block"};
            for (size_t k = 0; k < PE_COUNT(names); k++) {
                const json_t *a = json_object_get(json.json, names[k]),
                             *b = json_object_get(file.json, names[k]);
                size_t n = json_is_array(a) ? json_array_size(a) : 0;
                ck_assert(n ? n == json_array_size(b)
                            : json_equal((json_t *)(uintptr_t)a, (json_t *)(uintptr_t)b));
            }
            ck_assert(json_array_size(json_object_get(file.json, "used")) == N - 2);
            call_try_close(&file);
        }
    }
    const json_t *ignored = json_object_get(json.json, "ignored");
    ck_assert_uint_eq(json_array_size(ignored), 1);
    ck_assert_str_eq(json_string_value(json_array_get(ignored, 0)), "lm_head.weight");
    call_try_close(&json);
}
END_TEST

START_TEST(names_that_come_twice) {
    struct call_try both = {0};
    try_file(&both, "", PREFIX "h.0.ln_1.weight", PE_DTYPE_F32);
    ck_assert_int_eq(both.status, 400);
    ck_assert_str_eq(call_try_text(&both, "field"), "weights[\"h.0.ln_1.weight\"]");
    ck_assert_str_eq(call_try_slug(&both), "conflict");
    call_try_close(&both);
    struct call_try unknown = {0};
    try_file(&unknown, "", "h.0.ln_3.weight", PE_DTYPE_F32);
    ck_assert_str_eq(call_try_slug(&unknown), "unknown_name");
    ck_assert_str_eq(call_try_text(&unknown, "field"), "weights[\"h.0.ln_3.weight\"]");
    call_try_close(&unknown);
    struct call_try whole = {0};
    try_file(&whole, "", "weights", PE_DTYPE_F32);
    ck_assert_str_eq(call_try_slug(&whole), "type");
    call_try_close(&whole);
}
END_TEST

/* transformers stores masks beside the weights, as whole numbers, which become float64. */
START_TEST(what_is_ignored_widens_nothing) {
    struct call_try file = {.request = "POST /v1/block?naming=gpt2&heads=1&format=json"};
    file.head.content_type = "application/x-safetensors";
    file.body = file_make("", "h.0.attn.bias", PE_DTYPE_F32, &file.body_n);
    call_try(&ground, &file);
    ck_assert_msg(file.status == 200, "%s", file.reply);
    const json_t *output = json_object_get(file.json, "output");
    ck_assert_str_eq(json_string_value(json_object_get(output, "dtype")), "float32");
    ck_assert_uint_eq(json_array_size(json_object_get(file.json, "ignored")), 2);
    call_try_close(&file);
}
END_TEST

START_TEST(numbers_that_are_none_are_named) {
    struct call_try file = {.request = "POST /v1/block?naming=gpt2&heads=1"};
    char *body = file_make("", NULL, PE_DTYPE_F32, &file.body_n);
    const float endless = INFINITY;
    memcpy(body + file.body_n - sizeof endless - 3 * D * sizeof endless, &endless, sizeof endless);
    file.head.content_type = "application/x-safetensors";
    file.body = body;
    call_expect_problem(&ground, &file, 400, "nonfinite", "weights[\"lm_head.weight\"][4][1]",
                        NULL); /* though it is not used */
    call_try_close(&file);
}
END_TEST

START_TEST(a_batch_of_blocks) {
    struct call_try alone = {.request = "POST /v1/block", .body = text};
    put_block("{");
    call_try(&ground, &alone);
    used = 0;
    struct call_try all = {.request = "POST /v1/batch", .body = text};
    put("{\"requests\":[");
    put_block("{\"op\":\"block\",");
    put(",{\"op\":\"block\",\"weights\":[1],\"embeddings\":[[1]]},");
    put_block("{\"op\":\"block\",");
    put("]}");
    call_try(&ground, &all);
    ck_assert_int_eq(all.status, 200);
    const json_t *list = json_object_get(all.json, "responses");
    for (size_t i = 0; i < 3; i += 2) {
        const json_t *body = json_object_get(json_array_get(list, i), "body");
        ck_assert(json_equal(json_object_get(body, "output"), json_object_get(alone.json, "output")));
    }
    const json_t *problem = json_object_get(json_array_get(list, 1), "body");
    ck_assert_str_eq(json_string_value(json_object_get(problem, "field")), "weights");
    call_try_close(&alone);
    call_try_close(&all);
}
END_TEST

START_TEST(threads_change_nothing) {
    put("{\"weights_seed\":3,\"layers\":2,\"heads\":2,\"embeddings\":[");
    for (int i = 0; i < 60; i++) {
        put("%s[[%d,1,0.5,%d],[2,%d,1,1]]", i ? "," : "", i, i % 7, i % 11);
    }
    put("]}");
    struct call_try one = {.request = "POST /v1/block", .body = text};
    call_try(&ground, &one);
    ck_assert_uint_eq(one.n_parts, 60);
    for (int threads = -1; threads <= 4; threads += 5) {
        struct call_try other = {.request = "POST /v1/block", .body = text, .threads = threads};
        call_try(&ground, &other);
        ck_assert_str_eq(one.reply, other.reply);
        call_try_close(&other);
    }
    call_try_close(&one);
}
END_TEST

/* All that fixes the numbers is in the tag of a GET. */
START_TEST(tags_follow_the_request) {
    static const char *const requests[] = {
        "GET /v1/block?tokens=a,b&width=4&weights_seed=1",
        "GET /v1/block?tokens=a,b&width=4&weights_seed=2",
        "GET /v1/block?tokens=a,c&width=4&weights_seed=1",
        "GET /v1/block?tokens=ab&width=4&weights_seed=1",
        "GET /v1/block?tokens=a,b&width=4&weights_seed=1&token_seed=1",
        "GET /v1/block?tokens=a,b&width=4&weights_seed=1&norm=pre",
        "GET /v1/block?tokens=a,b&width=4&weights_seed=1&mask=causal",
        "GET /v1/block?tokens=a,b&width=4&weights_seed=1&final_norm=true",
        "GET /v1/block?tokens=a,b&width=4&weights_seed=1&type=sinusoidal",
    };
    char tags[PE_COUNT(requests)][40];
    for (size_t i = 0; i < PE_COUNT(requests); i++) {
        struct call_try try = {.request = requests[i]};
        call_try(&ground, &try);
        ck_assert_msg(try.status == 200, "%s", try.reply);
        snprintf(tags[i], sizeof tags[i], "%s", call_try_header(&try, "ETag"));
        ck_assert(tags[i][0] == '"');
        for (size_t k = 0; k < i; k++) {
            ck_assert_msg(strcmp(tags[i], tags[k]) != 0, "%s and %s", requests[i], requests[k]);
        }
        call_try_close(&try);
    }
    struct call_try alias = {.request = "GET /v1/block?weights_seed=1&d_model=4&tokens=[\"a\",\"b\"]"};
    call_try(&ground, &alias);
    ck_assert_str_eq(call_try_header(&alias, "ETag"), tags[0]);
    call_try_close(&alias);
}
END_TEST

/* d_model is another name for the width of tokens, where it is not one of the encoding's. */
START_TEST(d_model_is_the_encodings_first) {
    static const struct {
        const char *request;
        int width;
    } all[] = {
        {"GET /v1/block?tokens=a,b&d_model=6&weights_seed=1", 6},
        {"GET /v1/block?tokens=a,b&d_model=6&weights_seed=1&type=rope&layout=halves", 6},
        {"GET /v1/block?tokens=a,b&d_model=6&weights_seed=1&type=sinusoidal", 6},
        {"GET /v1/block?tokens=a,b&width=6&weights_seed=1&type=sinusoidal", 6},
        {"GET /v1/block?tokens=a,b&width=4&d_model=128&weights_seed=1&type=sandwich", 4},
    };
    for (size_t i = 0; i < PE_COUNT(all); i++) {
        struct call_try try = {.request = all[i].request};
        call_try(&ground, &try);
        ck_assert_msg(try.status == 200, "%s", try.reply);
        const json_t *width = json_object_get(json_object_get(try.json, "block"), "width");
        ck_assert_int_eq(json_integer_value(width), all[i].width);
        call_try_close(&try);
    }
}
END_TEST

/* Before a grid stands the class token, as in encode. */
START_TEST(class_tokens_before_a_grid) {
#define IMAGE                                                                                                \
    "GET /v1/block?type=sinusoidal_nd&combine=mae&cls_rows=1&tokens=a,b,c&width=4&weights_seed=1"            \
    "&return=output&positions"
    struct call_try grid = {.request = IMAGE ".grid=1,2"}, list = {.request = IMAGE "=[[-1,-1],[0,0],[0,1]]"};
    call_try(&ground, &grid);
    call_try(&ground, &list);
    ck_assert_msg(grid.status == 200 && list.status == 200, "%s\n%s", grid.reply, list.reply);
    json_t *told = json_loads("[[-1.0,-1.0],[0.0,0.0],[0.0,1.0]]", 0, NULL);
    ck_assert_msg(json_equal(json_object_get(grid.json, "positions"), told), "%s", grid.reply);
    ck_assert_msg(json_equal(json_object_get(grid.json, "output"), json_object_get(list.json, "output")),
                  "%s\n%s", grid.reply, list.reply);
    json_decref(told);
    call_try_close(&grid);
    call_try_close(&list);
}
END_TEST

Suite *call_block_suite(void) {
    Suite *suite = suite_create("call_block");
    TCase *tests = tcase_create("call_block");
    tcase_add_checked_fixture(tests, setup, teardown);
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, safetensors_are_the_same_as_json);
    tcase_add_test(tests, names_that_come_twice);
    tcase_add_test(tests, what_is_ignored_widens_nothing);
    tcase_add_test(tests, numbers_that_are_none_are_named);
    tcase_add_test(tests, a_batch_of_blocks);
    tcase_add_test(tests, threads_change_nothing);
    tcase_add_test(tests, tags_follow_the_request);
    tcase_add_test(tests, d_model_is_the_encodings_first);
    tcase_add_test(tests, class_tokens_before_a_grid);
    return suite;
}
