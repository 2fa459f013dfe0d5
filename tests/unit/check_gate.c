/* SPDX-License-Identifier: MIT
 *
 * The header gate: what is let in, what is refused with which code, and what calls get to see. The rules are
 * those of RFC 9110 and RFC 9112, the cases those that libmicrohttpd 0.9.75 lets through.
 */
#include "suites.h"

#include "net/gate.h"
#include "wire/problem.h"

#include <stdlib.h>
#include <string.h>

static void add(struct gate_request *request, const char *name, const char *value) {
    request->headers[request->n_headers++] = (struct gate_header){
        .name = name, .value = value, .name_size = strlen(name), .value_size = strlen(value)};
}

static struct gate_request get(const char *target) {
    struct gate_request request = {.method = "GET", .target = target, .version = "HTTP/1.1"};
    add(&request, "Host", "x");
    return request;
}

static struct gate_result check(const struct gate_request *request) {
    struct gate_result result;
    gate_check(request, &result);
    ck_assert(result.code == 0 ? result.detail[0] == '\0' : result.detail[0] != '\0');
    return result;
}

START_TEST(plain_requests_pass) {
    static const char *const targets[] = {
        "/",        "/v1/encode?type=rope&x=%00%0a", "/a%20b", "/?a=%", "http://host/path?q", "/a;b=c,d",
        "HTTPS://h"};
    for (size_t i = 0; i < PE_COUNT(targets); i++) {
        struct gate_request request = get(targets[i]);
        struct gate_result result = check(&request);
        ck_assert_msg(result.code == 0, "%s: %s", targets[i], result.detail);
        ck_assert_int_eq(result.length, 0);
        ck_assert(!result.expects_continue);
    }
}
END_TEST

START_TEST(targets_refused) {
    static const char *const targets[] = {
        "",         "x",          "/a b",  "/a\tb", "/\x01", "/a%00b",    "/a%0Ab",  "/%7f",
        "/a%1Fb?x", "/a%",        "/a%2",  "/a%zz", "/\x7f", "/\xc3\xa9", "//h/ x",  "ftp://h/",
        "host:80",  "http://h?x", "/?a b", "*",     "/a#b",  "http:///a", "http://?"};
    for (size_t i = 0; i < PE_COUNT(targets); i++) {
        struct gate_request request = get(targets[i]);
        ck_assert_msg(check(&request).code == SERVER_BAD_REQUEST, "case %zu, %s", i, targets[i]);
    }
}
END_TEST

/* The problem says where in the request it is. */
START_TEST(where) {
    static const struct {
        const char *method, *target, *field;
    } cases[] = {{"GET", "/%GG", "path"},   {"GET", "/a%0Ab", "path"},  {"GET", "x", "path"},
                 {"GET", "/a b?x", "path"}, {"GET", "/a?b c", "query"}, {"GET", "/%g?b c", "path"},
                 {"G(T", "/", "method"}};
    for (size_t i = 0; i < PE_COUNT(cases); i++) {
        struct gate_request request = get(cases[i].target);
        request.method = cases[i].method;
        ck_assert_str_eq(check(&request).field, cases[i].field);
    }
    struct gate_request request = get("/");
    add(&request, "Host", "y");
    ck_assert_str_eq(check(&request).field, "Host");
    request = get("/");
    add(&request, "X-Y", "a\x01");
    ck_assert_str_eq(check(&request).field, "headers");
}
END_TEST

/* Those that are asked of the server in place of a path. */
START_TEST(methods_and_their_targets) {
    static const struct {
        const char *method, *target;
        int code;
    } cases[] = {
        {"OPTIONS", "*", 0},
        {"OPTIONS", "/a", 0},
        {"POST", "*", SERVER_BAD_REQUEST},
        {"CONNECT", "h:443", 0},
        {"CONNECT", "", SERVER_BAD_REQUEST},
        {"CONNECT", "h h", SERVER_BAD_REQUEST},
        {"M-SEARCH", "/", 0}, /* unknown, but a method: 501 is not for the gate to say */
        {"get", "/", 0},
        {"", "/", SERVER_BAD_REQUEST},
        {"G(T", "/", SERVER_BAD_REQUEST},
        {"\rGET", "/", SERVER_BAD_REQUEST},
        {"G\xc3\xa9T", "/", SERVER_BAD_REQUEST},
    };
    for (size_t i = 0; i < PE_COUNT(cases); i++) {
        struct gate_request request = get(cases[i].target);
        request.method = cases[i].method;
        ck_assert_msg(check(&request).code == cases[i].code, "case %zu", i);
    }
}
END_TEST

START_TEST(hosts) {
    static const char *const good[] = {
        "x", "x.y:80", "127.0.0.1:8080", "[::1]", "[::1]:80", "x:", "x \t", "a_b", "%41;!$", "[v1.a:b]"};
    static const char *const bad[] = {"",    " ",    ":80",  "a b",      "a/b", "u@h",     "h:8a",
                                      "a:b", "a,b:", "[::1", "[::1]a]:", "::1", "h:80:80", "\xc3\xa9"};
    for (size_t i = 0; i < PE_COUNT(good) + PE_COUNT(bad); i++) {
        bool is_good = i < PE_COUNT(good);
        const char *host = is_good ? good[i] : bad[i - PE_COUNT(good)];
        struct gate_request request = {.method = "GET", .target = "/", .version = "HTTP/1.1"};
        add(&request, "Host", host);
        ck_assert_msg(check(&request).code == (is_good ? 0 : SERVER_BAD_REQUEST), "\"%s\"", host);
    }
}
END_TEST

/* A head where the library leaves it, its separators become NULs. */
static struct gate_request received(void) {
    static const char head[] = "GET\0/a\0HTTP/1.1\0\0Host\0 x\0\0X\0 y\0\0\0";
    return (struct gate_request){
        .method = head,
        .target = "/a",
        .version = head + 7,
        .headers = {{.name = head + 17, .name_size = 4, .value = head + 23, .value_size = 1},
                    {.name = head + 26, .name_size = 1, .value = head + 29, .value_size = 1}},
        .n_headers = 2,
        .target_at = head + 4,
        .head_size = sizeof head,
    };
}

/* Each text moved by a byte: that byte was a NUL, or there was no CR. */
START_TEST(gaps_between_the_texts) {
    static const char *const moved[] = {"nothing",        "the target",   "the version",         "a name",
                                        "a value's end",  "another name", "another value's end", "the end",
                                        "a field is gone"};
    for (size_t i = 0; i < PE_COUNT(moved); i++) {
        for (int by = -1; by <= 1; by += 2) {
            struct gate_request request = received();
            const char **texts[] = {NULL, &request.target_at,      &request.version, &request.headers[0].name,
                                    NULL, &request.headers[1].name};
            if (i < PE_COUNT(texts) && texts[i] != NULL) {
                *texts[i] += by;
            }
            request.headers[0].value -= i == 4 && by < 0;
            request.headers[0].value_size -= i == 4 && by > 0;
            request.headers[1].value -= i == 6 && by < 0;
            request.headers[1].value_size -= i == 6 && by > 0;
            request.head_size += i == 7 ? (size_t)by : 0;
            request.n_headers -= i == 8;
            struct gate_result result;
            gate_check(&request, &result);
            ck_assert_msg(result.code == (i == 0 ? 0 : SERVER_BAD_REQUEST), "%s by %d: %s", moved[i], by,
                          result.detail);
        }
    }
    struct gate_request copied = received();
    copied.target_at = NULL; /* then nothing is known of places */
    copied.head_size = 0;
    ck_assert_int_eq(check(&copied).code, 0);
}
END_TEST

START_TEST(framing) {
    static const struct {
        const char *name1, *value1, *name2, *value2;
        int code;
        int64_t length;
    } cases[] = {
        {"Content-Length", "3", "X", "y", 0, 3},
        {"content-length", "0", "X", "y", 0, 0},
        {"Content-Length", "123456789012345678", "X", "y", 0, 123456789012345678},
        {"Content-Length", "9223372036854775807", "X", "y", 0, INT64_MAX},
        {"Content-Length", "9223372036854775808", "X", "y", 0, INT64_MAX},
        {"Content-Length", "00000000000000000000000012", "X", "y", 0, 12},
        {"Content-Length", "100000000000000000000000000000", "X", "y", 0, INT64_MAX},
        {"Content-Length", "3", "Content-Length", "30", SERVER_BAD_REQUEST, 0},
        {"Content-Length", "3", "CONTENT-LENGTH", "3", SERVER_BAD_REQUEST, 0},
        {"Content-Length", "3", "Transfer-Encoding", "chunked", SERVER_BAD_REQUEST, 0},
        {"Transfer-Encoding", "chunked", "Content-Length", "3", SERVER_BAD_REQUEST, 0},
        {"Content-Length", "+3", "X", "y", SERVER_BAD_REQUEST, 0},
        {"Content-Length", "-3", "X", "y", SERVER_BAD_REQUEST, 0},
        {"Content-Length", "0x3", "X", "y", SERVER_BAD_REQUEST, 0},
        {"Content-Length", "3, 3", "X", "y", SERVER_BAD_REQUEST, 0},
        {"Content-Length", "", "X", "y", SERVER_BAD_REQUEST, 0},
        {"Content-Length", "3 ", "X", "y", SERVER_BAD_REQUEST, 0},
        {"Transfer-Encoding", "chunked", "X", "y", 0, -1},
        {"Transfer-Encoding", "Chunked", "X", "y", 0, -1},
        {"Transfer-Encoding", "xchunked", "X", "y", SERVER_NOT_IMPLEMENTED, 0},
        {"Transfer-Encoding", "gzip, chunked", "X", "y", SERVER_NOT_IMPLEMENTED, 0},
        {"Transfer-Encoding", "identity", "X", "y", SERVER_NOT_IMPLEMENTED, 0},
        {"Transfer-Encoding", "", "X", "y", SERVER_NOT_IMPLEMENTED, 0},
        {"Transfer-Encoding", "chunked", "Transfer-Encoding", "chunked", SERVER_BAD_REQUEST, 0},
        {"Host", "y", "X", "y", SERVER_BAD_REQUEST, 0}, /* a second one */
        {"Content-Length ", "3", "X", "y", SERVER_BAD_REQUEST, 0},
        {"Content Length", "3", "X", "y", SERVER_BAD_REQUEST, 0},
        {"", "3", "X", "y", SERVER_BAD_REQUEST, 0},
        {"X\x01", "3", "X", "y", SERVER_BAD_REQUEST, 0},
        {"X(", "3", "X", "y", SERVER_BAD_REQUEST, 0},
        {"X\xc3\xa9", "3", "X", "y", SERVER_BAD_REQUEST, 0},
        {"X", "a\rb", "X", "y", SERVER_BAD_REQUEST, 0},
        {"X", "a\nb", "X", "y", SERVER_BAD_REQUEST, 0},
        {"X", "a\x7f", "X", "y", SERVER_BAD_REQUEST, 0},
        {"X", "a\tb \xc3\xa9", "X", "y", 0, 0},
        {"X-Request-Id", "1", "X-Request-Id", "2", SERVER_BAD_REQUEST, 0},
        {"Content-Type", "a/b", "content-type", "c/d", SERVER_BAD_REQUEST, 0},
        {"Accept", "a/b", "Accept", "c/d", 0, 0},
    };
    for (size_t i = 0; i < PE_COUNT(cases); i++) {
        struct gate_request request = get("/");
        add(&request, cases[i].name1, cases[i].value1);
        add(&request, cases[i].name2, cases[i].value2);
        struct gate_result result = check(&request);
        ck_assert_msg(result.code == cases[i].code, "case %zu: %d, %s", i, result.code, result.detail);
        if (cases[i].code == 0) {
            ck_assert_int_eq(result.length, cases[i].length);
        }
    }
}
END_TEST

START_TEST(nul_in_a_value) {
    struct gate_request request = get("/");
    add(&request, "X", "ab");
    request.headers[1].value = "a\0b";
    request.headers[1].value_size = 3;
    ck_assert_int_eq(check(&request).code, SERVER_BAD_REQUEST);
    request.headers[1].name = "X\0Y";
    request.headers[1].name_size = 3;
    request.headers[1].value_size = 1;
    ck_assert_int_eq(check(&request).code, SERVER_BAD_REQUEST);
}
END_TEST

START_TEST(host_and_versions) {
    struct gate_request request = {.method = "GET", .target = "/", .version = "HTTP/1.1"};
    ck_assert_int_eq(check(&request).code, SERVER_BAD_REQUEST);
    request.version = "HTTP/1.0";
    ck_assert_int_eq(check(&request).code, 0);
    add(&request, "Transfer-Encoding", "chunked");
    ck_assert_int_eq(check(&request).code, SERVER_BAD_REQUEST);
}
END_TEST

START_TEST(expect) {
    struct gate_request request = get("/");
    add(&request, "Expect", "100-Continue");
    ck_assert(check(&request).expects_continue);
    request.headers[1].value = "banana";
    request.headers[1].value_size = 6;
    ck_assert(!check(&request).expects_continue);
}
END_TEST

START_TEST(too_many_fields) {
    struct gate_request request = get("/");
    while (request.n_headers < GATE_MAX_HEADERS) {
        add(&request, "X", "y");
    }
    ck_assert_int_eq(check(&request).code, 0);
    request.n_headers++; /* counted, but not kept */
    ck_assert_int_eq(check(&request).code, SERVER_BAD_REQUEST);
    struct call_head head = {0};
    char *texts = gate_head(&request, &head);
    ck_assert_ptr_nonnull(texts);
    free(texts);
}
END_TEST

/* Never an echo of bytes that a log or a terminal might act on. */
START_TEST(details_are_clean) {
    struct gate_request request = get("/");
    char name[300];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    add(&request, name, "\x1b[31m");
    struct gate_result result = check(&request);
    ck_assert_int_eq(result.code, SERVER_BAD_REQUEST);
    for (const char *c = result.detail; *c != '\0'; c++) {
        ck_assert(*c >= 0x20 && *c < 0x7f);
    }
}
END_TEST

START_TEST(heads) {
    struct gate_request request = get("/");
    add(&request, "accept", "text/csv");
    add(&request, "X-Request-Id", "id-1");
    add(&request, "Accept", "application/json;q=0.5");
    add(&request, "IF-NONE-MATCH", "\"a\"");
    add(&request, "X-Posenc-Timeout-Ms", "250 \t");
    add(&request, "Traceparent", "00-1");
    add(&request, "Content-Encoding", "gzip");
    add(&request, "Accept-Encoding", "br");
    add(&request, "accept-encoding", "gzip;q=0.5");
    add(&request, "Content-Type", "application/json");
    struct call_head head = {.content_length = 17};
    char *texts = gate_head(&request, &head);
    ck_assert_str_eq(head.method, "GET");
    ck_assert_str_eq(head.accept, "text/csv, application/json;q=0.5");
    ck_assert_str_eq(head.request_id, "id-1");
    ck_assert_str_eq(head.if_none_match, "\"a\"");
    ck_assert_str_eq(head.timeout_ms, "250");
    ck_assert_str_eq(head.traceparent, "00-1");
    ck_assert_str_eq(head.content_encoding, "gzip");
    ck_assert_str_eq(head.accept_encoding, "br, gzip;q=0.5");
    ck_assert_str_eq(head.content_type, "application/json");
    ck_assert_ptr_null(head.raw_shape);
    ck_assert_ptr_null(head.raw_dtype);
    ck_assert_int_eq(head.content_length, 17);
    free(texts);
}
END_TEST

START_TEST(target_forms) {
    static const struct {
        const char *sent, *seen;
    } cases[] = {{"/a?b", "/a?b"},
                 {"*", "*"},
                 {"http://h:80/a?b", "/a?b"},
                 {"HTTP://h", "/"},
                 {"https://h/?x/y", "/?x/y"},
                 {"http:/h/a", "http:/h/a"},
                 {"http:///a", "http:///a"}};
    for (size_t i = 0; i < PE_COUNT(cases); i++) {
        ck_assert_str_eq(gate_target(cases[i].sent), cases[i].seen);
    }
}
END_TEST

Suite *gate_suite(void) {
    Suite *suite = suite_create("gate");
    TCase *tests = tcase_create("gate");
    tcase_add_test(tests, plain_requests_pass);
    tcase_add_test(tests, targets_refused);
    tcase_add_test(tests, where);
    tcase_add_test(tests, methods_and_their_targets);
    tcase_add_test(tests, hosts);
    tcase_add_test(tests, gaps_between_the_texts);
    tcase_add_test(tests, framing);
    tcase_add_test(tests, nul_in_a_value);
    tcase_add_test(tests, host_and_versions);
    tcase_add_test(tests, expect);
    tcase_add_test(tests, too_many_fields);
    tcase_add_test(tests, details_are_clean);
    tcase_add_test(tests, heads);
    tcase_add_test(tests, target_forms);
    suite_add_tcase(suite, tests);
    return suite;
}
