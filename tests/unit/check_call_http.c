/* SPDX-License-Identifier: MIT
 *
 * Methods, headers, entity tags, deadlines and refusals: what HTTP asks of the service.
 */
#include "call_run.h"
#include "suites.h"
#include "wire/problem.h"

#include <stdio.h>
#include <string.h>

#define TARGET "/v1/encode?type=sinusoidal&d_model=4&positions=0:3"

static struct call_ground ground;

static void setup(void) {
    call_ground_open(&ground);
}

static void teardown(void) {
    call_ground_close(&ground);
}

static void expect(struct call_try *try, int status, const char *slug, const char *field,
                   const char *detail) {
    call_expect_problem(&ground, try, status, slug, field, detail);
}

START_TEST(unknown_paths) {
    static const char *const targets[] = {
        "/nope",       "/v1/", "/v1/encode/",       "/v1/encodings/", "/V1/encode",      "//v1/encode",
        "/v1//encode", "*",    "/v1/encodings/a/b", "/v1/encode%2f",  "/v1/../v1/encode"};
    for (size_t i = 0; i < PE_COUNT(targets); i++) {
        char request[100];
        snprintf(request, sizeof request, "GET %s", targets[i]);
        struct call_try try = {.request = request};
        expect(&try, 404, "not_found", "path", NULL);
        ck_assert_str_eq(call_route_name(try.call), "unmatched");
        call_try_close(&try);
    }
    struct call_try nope = {.request = "GET /nope"};
    expect(&nope, 404, "not_found", "path", "there is no \"/nope\"; GET /v1 lists what there is");
    call_try_close(&nope);
    struct call_try type = {.request = "GET /v1/encodings/nope"};
    expect(&type, 404, "not_found", "path", "there is no type of encoding \"nope\"");
    call_try_close(&type);
    struct call_try table = {.request = "GET /v1/tables/nope"};
    expect(&table, 404, "not_found", "path", NULL);
    call_try_close(&table);
}
END_TEST

START_TEST(targets_in_other_spellings) {
    static const char *const targets[] = {("http://host:8080" TARGET),
                                          "/v1/%65ncode?type=sinusoidal&d_model=4&positions=0:3",
                                          "/v1/encode?&type=sinusoidal&&d_model=4&positions=0%3a3&",
                                          "/v1/encode?positions=0:3&d%5fmodel=4&type=sinusoidal"};
    struct call_try plain = {.request = "GET " TARGET};
    call_try(&ground, &plain);
    for (size_t i = 0; i < PE_COUNT(targets); i++) {
        char request[150];
        snprintf(request, sizeof request, "GET %s", targets[i]);
        struct call_try try = {.request = request};
        call_try(&ground, &try);
        ck_assert_str_eq(try.reply, plain.reply);
        ck_assert_str_eq(call_route_name(try.call), "GET /v1/encode");
        call_try_close(&try);
    }
    call_try_close(&plain);
}
END_TEST

START_TEST(methods) {
    static const struct {
        const char *request, *allow;
    } wrong[] = {
        {"DELETE " TARGET, "GET, HEAD, POST, OPTIONS"},
        {"PUT /v1/apply", "POST, OPTIONS"},
        {"GET /v1/apply", "POST, OPTIONS"},
        {"HEAD /v1/batch", "POST, OPTIONS"},
        {"POST /v1/version", "GET, HEAD, OPTIONS"},
        {"PATCH /healthz", "GET, HEAD, OPTIONS"},
    };
    for (size_t i = 0; i < PE_COUNT(wrong); i++) {
        struct call_try try = {.request = wrong[i].request};
        if (wrong[i].request[0] == 'H') {
            call_try(&ground, &try);
            ck_assert_int_eq(try.status, 405);
        } else {
            expect(&try, 405, "method_not_allowed", "method", NULL);
        }
        ck_assert_str_eq(call_try_header(&try, "Allow"), wrong[i].allow);
        call_try_close(&try);
    }
    struct call_try unknown = {.request = "BREW /v1/encode"};
    expect(&unknown, 501, "not_implemented", "method", "\"BREW\" is not a method known here");
    call_try_close(&unknown);
    struct call_try small = {.request = "get /v1/encode"}; /* methods are case-sensitive */
    expect(&small, 501, "not_implemented", "method", "\"get\" is not a method known here");
    call_try_close(&small);
    struct call_try nowhere = {.request = "BREW /nothing"}; /* the method is looked at first */
    expect(&nowhere, 501, "not_implemented", "method", NULL);
    call_try_close(&nowhere);
    struct call_try tunnel = {.request = "CONNECT h:443"};
    expect(&tunnel, 405, "method_not_allowed", "method", NULL);
    ck_assert_str_eq(call_try_header(&tunnel, "Allow"), "GET, HEAD, POST, OPTIONS");
    call_try_close(&tunnel);
    struct call_try star = {.request = "GET *"};
    expect(&star, 404, "not_found", "path", NULL);
    call_try_close(&star);
    static const char *const asked[] = {"OPTIONS /v1/shift", "OPTIONS *"};
    for (size_t i = 0; i < PE_COUNT(asked); i++) {
        struct call_try options = {.request = asked[i]};
        call_try(&ground, &options);
        ck_assert_int_eq(options.status, 204);
        ck_assert_uint_eq(options.reply_n, 0);
        ck_assert_str_eq(call_try_header(&options, "Allow"), "GET, HEAD, POST, OPTIONS");
        call_try_close(&options);
    }
}
END_TEST

/* HEAD says what GET would, buffered or streamed. */
START_TEST(head_as_get) {
    static const char *const targets[] = {
        TARGET, TARGET "&format=npy", "/v1/version",
        "/v1/encode?type=sinusoidal&d_model=64&positions=0:10000&format=raw"};
    static const char *const names[] = {"Content-Type", "ETag",           "Cache-Control",
                                        "Vary",         "X-Posenc-Shape", "X-Posenc-Encoding"};
    for (size_t i = 0; i < PE_COUNT(targets); i++) {
        char of_get[150], of_head[150];
        snprintf(of_get, sizeof of_get, "GET %s", targets[i]);
        snprintf(of_head, sizeof of_head, "HEAD %s", targets[i]);
        struct call_try get = {.request = of_get}, head = {.request = of_head};
        call_try(&ground, &get);
        call_try(&ground, &head);
        ck_assert_int_eq(head.status, 200);
        ck_assert_int_eq(call_reply(head.call)->length, call_reply(get.call)->length);
        for (size_t k = 0; k < PE_COUNT(names); k++) {
            ck_assert_str_eq(call_try_header(&head, names[k]), call_try_header(&get, names[k]));
        }
        call_try_close(&get);
        call_try_close(&head);
    }
}
END_TEST

START_TEST(entity_tags) {
    struct call_try first = {.request = "GET " TARGET};
    call_try(&ground, &first);
    char tag[40], list[100];
    snprintf(tag, sizeof tag, "%s", call_try_header(&first, "ETag"));
    ck_assert_uint_eq(strlen(tag), 18);
    const char *const matching[] = {tag, "*", list};
    snprintf(list, sizeof list, "\"x\" , W/%s,\"y\"", tag);
    for (size_t i = 0; i < PE_COUNT(matching); i++) {
        struct call_try again = {.request = "GET " TARGET, .head.if_none_match = matching[i]};
        call_try(&ground, &again);
        ck_assert_int_eq(again.status, 304);
        ck_assert_uint_eq(again.reply_n, 0);
        ck_assert_uint_eq(again.n_parts, 0); /* answered before anything is computed */
        ck_assert_str_eq(call_try_header(&again, "ETag"), tag);
        ck_assert_str_eq(call_try_header(&again, "Content-Type"), "");
        call_try_close(&again);
    }
    /* Another format, element type, spelling, encoding: another tag. */
    static const char *const others[] = {"&format=csv", "&dtype=float64", "&flat=1", "&base=9999"};
    for (size_t i = 0; i < PE_COUNT(others); i++) {
        char request[150];
        snprintf(request, sizeof request, "GET " TARGET "%s", others[i]);
        struct call_try other = {.request = request, .head.if_none_match = tag};
        call_try(&ground, &other);
        ck_assert_int_eq(other.status, 200);
        ck_assert_str_ne(call_try_header(&other, "ETag"), tag);
        call_try_close(&other);
    }
    struct call_try accept = {.request = "GET " TARGET, .head.if_none_match = tag, .head.accept = "text/csv"};
    call_try(&ground, &accept);
    ck_assert_int_eq(accept.status, 200);
    call_try_close(&accept);
    struct call_try post = {.request = "POST /v1/encode?type=none", .head.if_none_match = "*"};
    call_try(&ground, &post);
    ck_assert_int_eq(post.status, 400);
    ck_assert_str_eq(call_try_header(&post, "ETag"), "");
    call_try_close(&post);
    call_try_close(&first);
}
END_TEST

/* Two requests have one tag exactly when the resolved request is the same. */
START_TEST(tags_of_spellings) {
    static const struct {
        const char *one, *other;
        bool same;
    } rows[] = {
        {"encode?type=sinusoidal&d_model=4&positions=0:3",
         "encode?format=json&positions=0:3:1&base=1e4&encoding=sinusoidal&d_model=4&dtype=float32", true},
        {"encode?type=sinusoidal&d_model=2&positions=0:3", "encode?type=sinusoidal&d_model=2&positions=0:4",
         false},
        {"encode?type=sinusoidal&d_model=2&positions=0,1,2",
         "encode?type=sinusoidal&d_model=2&positions=0,1,3", false},
        {"positions?lengths=2,3", "positions?lengths=%5B2,3%5D", true},
        {"encode?type=sinusoidal&d_model=2&positions=0,1", "encode?type=sinusoidal&d_model=2&positions=0,1",
         true},
        {"encode?type=sinusoidal&d_model=2&positions=0,1", "encode?type=sinusoidal&d_model=2&positions=0:2",
         false},
        {"positions?lengths=2,3", "positions?lengths=3,2", false},
        {"positions?mask=[[0,1]]&rule=opt", "positions?mask=[[1,1]]&rule=opt", false},
        {"positions?mask=[[0,1]]&rule=opt", "positions?mask=[[0,1]]&rule=bloom", false},
        {"shift?type=sinusoidal&d_model=4&distance=1", "shift?type=sinusoidal&d_model=4&distance=2", false},
        {"shift?type=sinusoidal&d_model=4&distance=1",
         "shift?type=sinusoidal&d_model=4&distance=1&return=matrix", false},
        {"shift?type=sinusoidal&d_model=4&distance=1",
         "shift?type=sinusoidal&d_model=4&distance=1&return=blocks", true},
    };
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        char one[150], other[150];
        snprintf(one, sizeof one, "GET /v1/%s", rows[i].one);
        snprintf(other, sizeof other, "GET /v1/%s", rows[i].other);
        struct call_try first = {.request = one}, second = {.request = other};
        call_try(&ground, &first);
        call_try(&ground, &second);
        ck_assert_uint_eq(strlen(call_try_header(&first, "ETag")), 18);
        ck_assert_uint_eq(strlen(call_try_header(&second, "ETag")), 18);
        ck_assert_msg(rows[i].same ==
                          (strcmp(call_try_header(&first, "ETag"), call_try_header(&second, "ETag")) == 0),
                      "%s and %s", one, other);
        call_try_close(&first);
        call_try_close(&second);
    }
}
END_TEST

/* Requests whose few bytes can stand for much are not to be planned where others wait. */
START_TEST(quick_calls) {
    static const struct {
        const char *method, *target;
        bool quick;
    } rows[] = {
        {"GET", "/v1/encode?type=sinusoidal&d_model=512&positions=0:999", true},
        {"HEAD", "/v1/encode?type=sinusoidal&d_model=512&positions=0:999", true},
        {"GET", "/v1/limits", true},
        {"GET", "/nothing", true}, /* it is answered */
        {"GET", "/v1/encode?type=sinusoidal&d_model=65536&positions=0", false},
        {"GET", "/v1/encode?type=sinusoidal&d_model=6e4&positions=0", false},
        {"GET", "/v1/encode?type=sinusoidal&d_model=9998&arithmetic=float32_pow&positions=0", false},
        {"GET", "/v1/encode?type=rope&layout=halves&head_dim=9998&xpos.center=0&positions=0", false},
        {"GET", "/v1/encode?type=sinusoidal&d_model=%365536&positions=0", false},
        {"GET", "/v1/positions?grid=3000,3000", false},
        {"GET", "/v1/positions?positions=0:999:0.0001", false},
        {"GET", "/v1/encode?type=sinusoidal&d_model=4&positions.start=5&positions.count=3", true},
        {"GET", "/v1/shift?type=random&d_model=100&distance=1&positions=0:9999", false}, /* takes 30 MB */
        {"POST", "/v1/encode", false},
    };
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct call_head head = {.method = rows[i].method, .target = rows[i].target};
        struct call *call = call_open(&ground.service, &head);
        ck_assert_msg(call_is_quick(call) == rows[i].quick, "%s", rows[i].target);
        call_close(call);
    }
}
END_TEST

/* A wrong request is told so although the client says that it has the answer. */
START_TEST(checked_before_the_tag) {
    struct call_try try = {.request = "GET /v1/encode?type=sinusoidal&d_model=0&positions=0:3",
                           .head.if_none_match = "*"};
    expect(&try, 400, "range", "encoding.d_model", NULL);
    call_try_close(&try);
}
END_TEST

START_TEST(headers_of_replies) {
    struct call_try made = {.request = "GET " TARGET "&format=raw",
                            .head.request_id = "abc-1",
                            .head.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"};
    call_try(&ground, &made);
    ck_assert_str_eq(call_try_header(&made, "Content-Type"), "application/octet-stream");
    ck_assert_str_eq(call_try_header(&made, "X-Request-Id"), "abc-1");
    ck_assert_str_eq(call_try_header(&made, "X-Content-Type-Options"), "nosniff");
    ck_assert_str_eq(call_try_header(&made, "X-Posenc-Shape"), "3,4");
    ck_assert_str_eq(call_try_header(&made, "X-Posenc-Dtype"), "float32");
    ck_assert_str_eq(call_try_header(&made, "Vary"), "Accept, Accept-Encoding");
    ck_assert_str_eq(call_try_header(&made, "X-Posenc-Encoding"),
                     "{\"type\":\"sinusoidal\",\"d_model\":4,\"base\":10000.0,\"layout\":\"interleaved\","
                     "\"order\":\"sin_cos\",\"denominator\":\"half\",\"odd\":\"truncate\","
                     "\"position_scale\":1.0,\"offset\":0.0,\"arithmetic\":\"exact\"}");
    ck_assert_ptr_nonnull(strstr(call_try_header(&made, "Server-Timing"), "compute;dur="));
    ck_assert_str_eq(call_traceparent(made.call), made.head.traceparent);
    call_try_close(&made);
    struct call_try page = {.request = "GET /v1/encodings"};
    call_try(&ground, &page);
    ck_assert_str_eq(call_try_header(&page, "Vary"), "Accept, Accept-Encoding");
    ck_assert_str_eq(call_try_header(&page, "Cache-Control"), "public, max-age=60");
    ck_assert_uint_eq(strlen(call_try_header(&page, "ETag")), 18);
    call_try_close(&page);
    struct call_try batch = {.request = "POST /v1/batch", .body = "{\"requests\": []}"};
    call_try(&ground, &batch);
    ck_assert_str_eq(call_try_header(&batch, "Cache-Control"), "no-store");
    ck_assert_ptr_nonnull(strstr(call_try_header(&batch, "Server-Timing"), "compute;dur="));
    call_try_close(&batch);
    struct call_try streamed = {.request = "GET /v1/encode?type=random&d_model=64&positions=0:10000"};
    call_try(&ground, &streamed);
    ck_assert_str_eq(call_try_header(&streamed, "Server-Timing"), "");
    call_try_close(&streamed);
}
END_TEST

START_TEST(ids_that_are_not_taken) {
    char large[140];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    const char *const ids[] = {"", "a b", "a\nb", "\xc3\xa4", large};
    for (size_t i = 0; i < PE_COUNT(ids); i++) {
        struct call_try try = {.request = "GET /v1/version", .head.request_id = ids[i]};
        call_try(&ground, &try);
        ck_assert_str_ne(call_try_header(&try, "X-Request-Id"), ids[i]);
        ck_assert_uint_eq(strlen(call_try_header(&try, "X-Request-Id")), 24);
        call_try_close(&try);
    }
    static const char *const parents[] = {"00-00000000000000000000000000000000-b7ad6b7169203331-01", "00-x",
                                          "", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
                                          "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01"};
    for (size_t i = 0; i < PE_COUNT(parents); i++) {
        struct call_try try = {.request = "GET /v1/version", .head.traceparent = parents[i]};
        call_try(&ground, &try);
        ck_assert_ptr_null(call_traceparent(try.call));
        call_try_close(&try);
    }
}
END_TEST

START_TEST(deadlines) {
    static const char *const bad[] = {"0", "-1", "x", "", " 5", "0x10", "1e10", "nan", "5 "};
    for (size_t i = 0; i < PE_COUNT(bad); i++) {
        struct call_try try = {.request = "GET " TARGET, .head.timeout_ms = bad[i]};
        expect(&try, 400, "range", "X-Posenc-Timeout-Ms", NULL);
        ck_assert_str_eq(call_route_name(try.call), "unmatched");
        call_try_close(&try);
    }
    static const struct {
        const char *asked;
        int64_t ms;
    } good[] = {{NULL, 30000}, {"1500", 1500}, {"1.5e3", 1500}, {"1000000", 30000}};
    for (size_t i = 0; i < PE_COUNT(good); i++) {
        struct call_try try = {.request = "GET " TARGET, .head.timeout_ms = good[i].asked};
        call_try(&ground, &try);
        ck_assert_int_eq(try.status, 200);
        ck_assert_int_eq(call_deadline_ns(try.call) - call_times(try.call)->open, good[i].ms * 1000000);
        call_try_close(&try);
    }
}
END_TEST

START_TEST(stopped_calls) {
    static const struct {
        enum call_stop_reason reason;
        int status;
        const char *slug;
    } rows[] = {{CALL_STOP_DEADLINE, 504, "deadline"},
                {CALL_STOP_SHUTDOWN, 503, "draining"},
                {CALL_STOP_CLIENT_GONE, 503, "draining"}};
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct call_try try = {.request = "GET " TARGET, .stop = rows[i].reason};
        expect(&try, rows[i].status, rows[i].slug, "body", NULL);
        call_stop(try.call, CALL_STOP_CLIENT_GONE); /* the first reason stays; the answer too */
        ck_assert_int_eq(call_reply(try.call)->status, rows[i].status);
        call_try_close(&try);
    }
}
END_TEST

/* The pool may refuse a call at any moment before its reply is sent. */
START_TEST(refused_calls) {
    const struct call_head head = {.method = "GET", .target = TARGET, .content_length = -1};
    for (int step = 0; step < 4; step++) {
        struct call *call = call_open(&ground.service, &head);
        if (step > 0) {
            call_finish(call);
        }
        if (step > 1) {
            call_run(call, 0);
        }
        if (step > 2) {
            call_write(call);
        }
        call_refuse(call, SERVER_BUSY, "the queue is full");
        ck_assert_int_eq(call_reply(call)->status, 503);
        ck_assert_uint_eq(call_work(call)->n_parts, 0);
        char text[600];
        size_t n = call_pull(call, text, sizeof text - 1);
        text[n] = '\0';
        ck_assert_ptr_nonnull(strstr(text, "\"detail\":\"the queue is full\""));
        ck_assert_int_eq(call_reply(call)->length, (int64_t)n);
        call_close(call);
    }
}
END_TEST

START_TEST(accepted_formats) {
    static const struct {
        const char *query, *accept, *type; /* type NULL: 406 */
    } rows[] = {
        {"", NULL, "application/json"},
        {"", "", "application/json"},
        {"", "*/*", "application/json"},
        {"", "application/*", "application/json"},
        {"", "text/html,application/xhtml+xml,*/*;q=0.8", "application/json"},
        {"", "application/x-npy", "application/x-npy"},
        {"", "Application/NPY", "application/x-npy"},
        {"", "text/csv;q=0.2, application/octet-stream;q=0.9", "application/octet-stream"},
        {"", "text/csv; q=0.9 , application/octet-stream;q=0.2", "text/csv"},
        {"", "application/vnd.safetensors, */*;q=0.1", "application/x-safetensors"},
        {"", "text/html", NULL},
        {"", "text/csv;q=0", NULL},
        {"", "text/csv;q=1.5, application/octet-stream;q=0.1", "application/octet-stream"},
        {"", "text/csv, application/octet-stream;q=2", "text/csv"},
        {"", "text/csv, text/csv;q=-0", "text/csv"},
        {"", "text/html, */*;q=2", NULL},
        {"", "text/csv;q=1.5", "application/json"}, /* nothing is left, as if nothing were asked */
        {"", " , ", "application/json"},
        {"", "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", "application/json"}, /* Java */
        {"", "application/json;q=0, */*", "application/x-npy"},
        {"", "*/*, application/json;q=0.0, application/x-npy;q=0", "application/octet-stream"},
        {"", "text/html;x=\"a, text/csv\"", NULL},
        {"", "text/html;x=\"a;q=0, \\\"text/csv\", application/x-npy", "application/x-npy"},
        {"", "text/csv;x=\";q=0\";q=0.3, application/x-npy;q=0.2", "text/csv"},
        {"", ",, text/csv ,", "text/csv"},
        {"", "image/png", "image/png"},
        {"", "image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5", "image/png"},
        {"", "image/avif,image/webp,image/*,*/*;q=0.8", "application/json"},
        /* a browser's, of whoever follows a link */
        {"", "text/html,application/xhtml+xml,image/avif,image/webp,image/png,*/*;q=0.8", "application/json"},
        {"", "text/html,image/png,text/csv;q=0.5,*/*;q=0.1", "application/json"},
        {"", "text/html,image/png", "image/png"},
        {"&format=csv", "text/html", "text/csv"},
        {"&format=csv", "application/x-npy", "text/csv"},
    };
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        char request[150];
        snprintf(request, sizeof request, "GET " TARGET "%s", rows[i].query);
        struct call_try try = {.request = request, .head.accept = rows[i].accept};
        if (rows[i].type) {
            call_try(&ground, &try);
            ck_assert_str_eq(call_try_header(&try, "Content-Type"), rows[i].type);
        } else {
            expect(&try, 406, "not_acceptable", "Accept", NULL);
        }
        call_try_close(&try);
    }
}
END_TEST

START_TEST(the_admin_listener) {
    static const struct {
        const char *request;
        int status;
    } rows[] = {{"GET /healthz", 200}, {"GET /readyz", 200}, {"GET /metrics", 200},
                {"GET /", 404},        {"GET " TARGET, 404}, {"POST /v1/apply", 404}};
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct call_try try = {.request = rows[i].request, .head.admin = true};
        call_try(&ground, &try);
        ck_assert_int_eq(try.status, rows[i].status);
        call_try_close(&try);
    }
}
END_TEST

Suite *call_http_suite(void) {
    Suite *suite = suite_create("call_http");
    TCase *tests = tcase_create("methods and headers");
    suite_add_tcase(suite, tests);
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, unknown_paths);
    tcase_add_test(tests, targets_in_other_spellings);
    tcase_add_test(tests, methods);
    tcase_add_test(tests, head_as_get);
    tcase_add_test(tests, entity_tags);
    tcase_add_test(tests, tags_of_spellings);
    tcase_add_test(tests, quick_calls);
    tcase_add_test(tests, checked_before_the_tag);
    tcase_add_test(tests, headers_of_replies);
    tcase_add_test(tests, ids_that_are_not_taken);
    tcase_add_test(tests, deadlines);
    tcase_add_test(tests, stopped_calls);
    tcase_add_test(tests, refused_calls);
    tcase_add_test(tests, accepted_formats);
    tcase_add_test(tests, the_admin_listener);
    return suite;
}
