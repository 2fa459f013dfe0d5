/* SPDX-License-Identifier: MIT
 *
 * The service end to end: the documents it serves, loaded tables, and what an operation makes of options that
 * do not concern it. Replies of operations are in tests/cases.
 */
#include "call_run.h"
#include "routes.h"
#include "suites.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct call_ground ground;

static void setup(void) {
    call_ground_open(&ground);
}

static void teardown(void) {
    call_ground_close(&ground);
}

static void expect(const char *request, int status, const char *slug, const char *field, const char *detail) {
    struct call_try try = {.request = request};
    call_expect_problem(&ground, &try, status, slug, field, detail);
    call_try_close(&try);
}

static void expect_part(const char *request, const char *part) {
    struct call_try try = {.request = request};
    call_try(&ground, &try);
    ck_assert_msg(try.status == 200 && strstr(try.reply, part), "%s: %s is not in %s", request, part,
                  try.reply);
    call_try_close(&try);
}

/* ---- Documents ----------------------------------------------------------------------------------------- */

START_TEST(every_page_answers) {
    const char *names[64];
    size_t n = routes_names(names, PE_COUNT(names)), pages = 0;
    for (size_t i = 0; i < n; i++) {
        char request[100];
        if (strncmp(names[i], "GET ", 4) != 0) {
            continue;
        }
        snprintf(request, sizeof request, "%s", names[i]);
        char *brace = strchr(request, '{');
        bool tables = brace && strstr(request, "tables");
        if (brace) {
            snprintf(brace, sizeof request - (size_t)(brace - request), "random");
        }
        struct call_try try = {.request = request};
        call_try(&ground, &try);
        bool op = try.status == 400; /* an operation without its fields */
        ck_assert_msg(op || try.status == (tables ? 404 : 200), "%s: %d", request, try.status);
        ck_assert_str_eq(call_route_name(try.call), names[i]);
        pages += !op;
        call_try_close(&try);
    }
    ck_assert_uint_ge(pages, 11);
}
END_TEST

START_TEST(the_catalogue) {
    struct call_try all = {.request = "GET /v1/encodings"};
    call_try(&ground, &all);
    const json_t *list = json_object_get(all.json, "encodings");
    ck_assert_uint_eq(json_array_size(list), pe_encoding_count());
    for (size_t i = 0; i < pe_encoding_count(); i++) {
        char request[100];
        snprintf(request, sizeof request, "GET /v1/encodings/%s", pe_encoding_at(i)->type);
        struct call_try one = {.request = request};
        call_try(&ground, &one);
        ck_assert(json_equal(one.json, json_array_get(list, i)));
        call_try_close(&one);
    }
    call_try_close(&all);
    expect_part("GET /v1/encodings/sinusoidal",
                "\"operations\":[\"encode\",\"apply\",\"attention\",\"shift\"]");
    expect_part("GET /v1/encodings/sinusoidal",
                "\"d_model\":{\"type\":\"integer\",\"minimum\":1.0,\"maximum\":65536.0,\"x-follows\":");
    expect_part("GET /v1/encodings/sinusoidal", "\"enum\":[\"interleaved\",\"halves\"]");
    expect_part("GET /v1/encodings/sinusoidal", "\"required\":[\"d_model\"],\"additionalProperties\":false");
}
END_TEST

START_TEST(limits_and_versions) {
    ground.config.reply_bytes = 4097;
    expect_part("GET /v1/limits", "\"reply_bytes\":4097,");
    expect_part("GET /v1/limits", "\"position_max\":9007199254740992");
    expect_part("GET /v1/version", "\"version\":\"" PE_VERSION "\",\"numerics\":4,\"api\":\"v1\"");
    expect_part("GET /healthz", "{\"live\":true}");
    expect_part("GET /readyz", "{\"ready\":true}");
}
END_TEST

START_TEST(documents_have_tags) {
    struct call_try first = {.request = "GET /v1/presets"};
    call_try(&ground, &first);
    struct call_try again = {.request = "GET /v1/presets",
                             .head.if_none_match = call_try_header(&first, "ETag")};
    call_try(&ground, &again);
    ck_assert_int_eq(again.status, 304);
    ck_assert_uint_eq(again.reply_n, 0);
    call_try_close(&again);
    struct call_try fresh = {.request = "GET /readyz", .head.if_none_match = "*"};
    call_try(&ground, &fresh);
    ck_assert_int_eq(fresh.status, 200);
    ck_assert_str_eq(call_try_header(&fresh, "Cache-Control"), "no-store");
    call_try_close(&fresh);
    call_try_close(&first);
}
END_TEST

/* ---- Loaded tables ------------------------------------------------------------------------------------- */

static const float ramp[3][2] = {{0, 1}, {2, 3}, {4, 5}};

/* A folder with test_ramp.npy and test_two.safetensors (a [2, 1], b [3, 2]). */
static void make_folder(char *folder, float first) {
    char path[100], header[PE_NPY_HEADER_MAX];
    float changed[3][2];
    struct pe_tensor tensor = {.dtype = PE_DTYPE_F32, .rank = 2, .dim = {3, 2}};
    static const char json[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[24,32]},"
                               "\"b\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[0,24]}}";
    uint64_t n = sizeof json - 1;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    memcpy(changed, ramp, sizeof ramp);
    changed[0][0] = first;
    snprintf(path, sizeof path, "%s/test_ramp.npy", folder);
    FILE *file = fopen(path, "wb");
    fwrite(header, 1, pe_npy_header(header, sizeof header, &tensor), file);
    fwrite(changed, 1, sizeof changed, file);
    fclose(file);
    snprintf(path, sizeof path, "%s/test_two.safetensors", folder);
    file = fopen(path, "wb");
    fwrite(&n, 1, 8, file);
    fwrite(json, 1, n, file);
    fwrite(ramp, 1, sizeof ramp, file);
    fwrite(ramp, 1, 8, file);
    fclose(file);
}

static void drop_folder(const char *folder) {
    char path[100];
    snprintf(path, sizeof path, "%s/test_ramp.npy", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/test_two.safetensors", folder);
    unlink(path);
    rmdir(folder);
}

START_TEST(tables_by_name) {
    char folder[] = "/tmp/check_call_XXXXXX";
    make_folder(folder, 0);
    call_ground_close(&ground);
    call_ground_open_tables(&ground, folder);
    drop_folder(folder); /* read at start */
    expect_part("GET /v1/encode?encoding=test_ramp&positions=2,0", "\"data\":[[4.0,5.0],[0.0,1.0]]");
    expect_part("GET /v1/encode?encoding=roberta&table=test_ramp&offset=1&positions=1",
                "{\"encoding\":{\"type\":\"learned\",\"table\":\"test_ramp\",\"offset\":1,");
    expect_part("GET /v1/encode?type=learned&table=test_two&tensor_name=a&positions=1", "\"data\":[[1.0]]");
    expect("GET /v1/encode?encoding=test_two&positions=0", 400, "missing", "encoding.tensor_name", NULL);
    expect("GET /v1/encode?encoding=test_two&tensor_name=c&positions=0", 400, "unknown_name",
           "encoding.tensor_name", NULL);
    expect("GET /v1/encode?type=learned&table=rump&positions=0", 400, "unknown_name", "encoding.table", NULL);
    expect("GET /v1/encode?encoding=test_ramp&positions=3", 400, "range", "positions[0]", NULL);
    expect_part("GET /v1/tables/test_ramp",
                "\"tensors\":{\"test_ramp\":{\"shape\":[3,2],\"dtype\":\"float32\",\"digest\":\"");
    expect_part("GET /v1/tables", "{\"name\":\"test_two\",\"file\":\"test_two.safetensors\",");
    struct call_try body = {.request = "POST /v1/apply",
                            .body = "{\"encoding\":\"test_ramp\",\"embeddings\":[[1,1],[1,1]]}"};
    call_try(&ground, &body);
    ck_assert_msg(strstr(body.reply, "\"data\":[[1.0,2.0],[3.0,4.0]]") != NULL, "%s", body.reply);
    call_try_close(&body);
}
END_TEST

/* Another content under the same name: another tag, so no cache serves the old one. */
START_TEST(tags_follow_the_table) {
    char tags[2][40];
    for (int i = 0; i < 2; i++) {
        char folder[] = "/tmp/check_call_XXXXXX";
        make_folder(folder, (float)i);
        call_ground_close(&ground);
        call_ground_open_tables(&ground, folder);
        drop_folder(folder);
        struct call_try try = {.request = "GET /v1/encode?encoding=test_ramp&positions=0"};
        call_try(&ground, &try);
        snprintf(tags[i], sizeof tags[i], "%s", call_try_header(&try, "ETag"));
        call_try_close(&try);
    }
    ck_assert_str_ne(tags[0], tags[1]);
}
END_TEST

/* ---- Nothing is ignored -------------------------------------------------------------------------------- */

START_TEST(options_that_do_not_fit) {
    const char *shift = "GET /v1/shift?distance=1&type=";
    char request[200];
    snprintf(request, sizeof request, "%ssinusoidal&d_model=4&dtype=float32", shift);
    expect_part(request, "\"blocks\":{\"shape\":[2,2,2],\"dtype\":\"float32\",\"data\":[[[0.5403023,");
    snprintf(request, sizeof request, "%srandom&d_model=4&return=blocks", shift);
    expect(request, 400, "unsupported", "return", NULL);
    snprintf(request, sizeof request, "%ssinusoidal&d_model=4&dtype=float64&return=blocks", shift);
    expect_part(request, "\"blocks\":{\"shape\":[2,2,2],\"dtype\":\"float64\"");
    snprintf(request, sizeof request, "%srandom&d_model=4", shift);
    expect_part(request, "\"matrix\":{\"shape\":[4,4],\"dtype\":\"float64\"");
    snprintf(request, sizeof request, "%srandom&d_model=4096&positions=0:100000", shift);
    struct call_try try = {.request = request};
    call_expect_problem(&ground, &try, 413, "limit", "positions", NULL);
    ck_assert_ptr_null(json_object_get(try.json, "option")); /* no option changes it */
    call_try_close(&try);
}
END_TEST

/* A map that is beyond the type it is asked in is no reply. */
START_TEST(maps_beyond_float16) {
    expect("GET "
           "/v1/shift?type=learned&table=[[0.000001],[1000]]&distance=1&positions=0&dtype=float16&format=raw",
           400, "nonfinite", "matrix[0][0]", "the result does not fit float16: it came out infinite");
}
END_TEST

/* Whatever a text holds, the echo holds it too. */
START_TEST(texts_come_back) {
    struct call_try try = {.request = "POST /v1/encode",
                           .body = "{\"encoding\":{\"type\":\"learned\",\"table\":[[1]],"
                                   "\"tensor_name\":\"a\\u0001\\\"\\\\\\u007f\\u00e4\\ud83d\\ude00\"},"
                                   "\"positions\":[0]}"};
    call_try(&ground, &try);
    const json_t *echo = json_object_get(try.json, "encoding");
    ck_assert_str_eq(json_string_value(json_object_get(echo, "tensor_name")),
                     "a\x01\"\\\x7f\xc3\xa4\xf0\x9f\x98\x80");
    call_try_close(&try);
}
END_TEST

/* Positions that are not given lie inside of the encoding's, as do those shifted from them; rows of padding,
 * which no map reaches, are left out of what it misses. */
START_TEST(shifts_stay_inside) {
    static const struct {
        const char *body;
        double most; /* of the residual */
    } rows[] = {
        {"{\"encoding\":{\"type\":\"learned\",\"table\":[[1,2],[3,4],[5,7]]},\"distance\":1}", 1e-13},
        {"{\"encoding\":{\"type\":\"learned\",\"table\":[[1,2],[3,4],[5,7]],\"offset\":2},\"distance\":-1}",
         1e-13},
        {"{\"encoding\":{\"type\":\"naive\",\"d_model\":3,\"form\":\"binary\"},\"distance\":4}", 4},
        {"{\"encoding\":{\"type\":\"sinusoidal\",\"d_model\":4,\"padding_idx\":5},\"distance\":1}", 1e-13},
    };
    struct call_try try = {.request = "POST /v1/shift", .body = rows[_i].body};
    call_try(&ground, &try);
    ck_assert_msg(try.status == 200, "%s", try.reply);
    ck_assert_double_le(json_number_value(json_object_get(try.json, "residual")), rows[_i].most);
    call_try_close(&try);
}
END_TEST

Suite *call_suite(void) {
    Suite *suite = suite_create("call");
    TCase *tests = tcase_create("the service");
    tcase_add_loop_test(tests, shifts_stay_inside, 0, 4);
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, every_page_answers);
    tcase_add_test(tests, the_catalogue);
    tcase_add_test(tests, limits_and_versions);
    tcase_add_test(tests, documents_have_tags);
    tcase_add_test(tests, tables_by_name);
    tcase_add_test(tests, tags_follow_the_table);
    tcase_add_test(tests, options_that_do_not_fit);
    tcase_add_test(tests, maps_beyond_float16);
    tcase_add_test(tests, texts_come_back);
    return suite;
}
