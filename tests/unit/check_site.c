/* SPDX-License-Identifier: MIT
 *
 * The web page's files: which there are, in which coding they are sent, and what is said with them.
 */
#include "call_run.h"
#include "site.h"
#include "suites.h"
#include "wire/format.h"
#include "wire/source.h"

#include <stdio.h>
#include <string.h>

static const unsigned char page[] = "<!doctype html>", page_gzip[] = "zipped page", style[] = "p{}",
                           picture[] = "<svg/>";
static const struct site_file files[] = {
    {"/", "text/html; charset=utf-8", false, {page, 15, "\"p\""}, {page_gzip, 11, "\"pz\""}},
    {"/assets/a-01234567.css", "text/css; charset=utf-8", true, {style, 3, "\"s\""}, {0}},
    {"/de/", "text/html; charset=utf-8", false, {page, 15, "\"d\""}, {0}},
    {"/labs/order", "text/html; charset=utf-8", false, {page, 15, "\"o\""}, {page_gzip, 11, "\"oz\""}},
    {"/picture.svg", "image/svg+xml", false, {picture, 6, "\"i\""}, {0}},
};
static const struct site site = {files, PE_COUNT(files)};

static struct call_ground ground;

static void setup(void) {
    call_ground_open(&ground);
    ground.service.site = &site;
}

static void teardown(void) {
    call_ground_close(&ground);
}

/* ---- What there is --------------------------------------------------------------------------------------- */

START_TEST(every_file_is_found) {
    for (size_t n = 1; n <= site.n; n++) {
        const struct site part = {files, n};
        for (size_t i = 0; i < site.n; i++) {
            ck_assert_ptr_eq(site_find(&part, files[i].path), i < n ? &files[i] : NULL);
        }
    }
}
END_TEST

START_TEST(nothing_else_is_found) {
    static const char *const paths[] = {"",
                                        "//",
                                        "/index.html",
                                        "/de",
                                        "/de/index.html",
                                        "/labs",
                                        "/labs/",
                                        "/labs/order/",
                                        "/labs/order.html",
                                        "/LABS/order",
                                        "/labs/orders",
                                        "labs/order",
                                        "/assets/",
                                        "/assets/a-01234567.cs",
                                        "/assets/../",
                                        "/~"};
    for (size_t i = 0; i < PE_COUNT(paths); i++) {
        ck_assert_msg(!site_find(&site, paths[i]), "%s", paths[i]);
    }
    const struct site empty = {0};
    ck_assert_ptr_null(site_find(&empty, "/"));
    ck_assert_ptr_null(site_find(NULL, "/"));
}
END_TEST

/* Whatever was built in: in order, or it would not be found; and documents are worth packing. */
START_TEST(the_one_built_in_is_in_order) {
    for (size_t i = 0; i < site_embedded.n; i++) {
        const struct site_file *file = &site_embedded.files[i];
        ck_assert_ptr_eq(site_find(&site_embedded, file->path), file);
        ck_assert_msg(file->gzip.n < file->plain.n, "%s", file->path);
        ck_assert_msg(file->gzip.n || !site_is_document(file), "%s has no twin", file->path);
        ck_assert_uint_eq(strlen(file->plain.etag), 18);
    }
    ck_assert_msg(site_find(&site_embedded, "/"), "a page without a start");
}
END_TEST

/* ---- Codings --------------------------------------------------------------------------------------------- */

START_TEST(gzip_where_it_is_welcome) {
    static const struct {
        const char *header;
        bool gzip;
    } rows[] = {{NULL, false},
                {"", false},
                {"gzip", true},
                {"GZip", true},
                {"x-gzip", true},
                {"gzip, deflate", true},
                {"deflate, br,gzip ;q=1.0", true},
                {" ,\tgzip;q=0.001,", true},
                {"*", true},
                {"br, *;q=0.1", true},
                {"gzip;q=0.5, identity;q=0.5", true},
                {"gzip;q=0.5, identity", false},
                {"gzip;q=0", false},
                {"gzip; q=0.000, *", false},
                {"*, gzip;q=0", false},
                {"*;q=0", false},
                {"identity", false},
                {"deflate, br, zstd", false},
                {"gzipped", false},
                {"gzi", false},
                {"\"gzip\"", false},
                {"gzip;q=", false},
                {"gzip;q=nan", false},
                {"gzip;q=-1", false},
                {"gzip;q=1.5", false}, /* weights that are none */
                {"gzip;q=1.001", false},
                {"gzip;q=1x", false},
                {"gzip;q=1 1", false},
                {"gzip;q=0x1", false},
                {"gzip;q=1e-1", false},
                {"gzip;q=inf", false},
                {"gzip;q=+1", false},
                {"gzip;q=.", false},
                {"gzip;q=\"1\"", false},
                {"gzip;q=2, *;q=0.1", true}, /* as if it were not there */
                {"gzip, gzip;q=-0", true},
                {"gzip;q=0.5, identity;q=7", true},
                {"gzip;q=1. ;a=b", true},
                {"gzip;q=.2", true}, /* as Java writes them */
                {"gzip;q=0.33333", true},
                {"identity;q=0", false},
                {"identity;q=0, *;q=0", false},
                {"gzip;level=9", true}};
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        const char *shown = rows[i].header ? rows[i].header : "(none)";
        ck_assert_msg(format_takes_gzip(rows[i].header) == rows[i].gzip, "%s", shown);
    }
}
END_TEST

START_TEST(the_twin_has_a_tag_of_its_own) {
    struct call_try plain = {.request = "GET /labs/order"};
    struct call_try gzip = {.request = "GET /labs/order", .head.accept_encoding = "br, gzip"};
    call_try(&ground, &plain);
    call_try(&ground, &gzip);
    ck_assert(plain.status == 200 && plain.reply_n == 15 && memcmp(plain.reply, page, 15) == 0);
    ck_assert(gzip.status == 200 && gzip.reply_n == 11 && memcmp(gzip.reply, page_gzip, 11) == 0);
    ck_assert_str_eq(call_try_header(&plain, "Content-Encoding"), "");
    ck_assert_str_eq(call_try_header(&gzip, "Content-Encoding"), "gzip");
    ck_assert_str_eq(call_try_header(&plain, "ETag"), "\"o\"");
    ck_assert_str_eq(call_try_header(&gzip, "ETag"), "\"oz\"");
    ck_assert_str_eq(call_try_header(&plain, "Vary"), "Accept-Encoding");
    ck_assert_str_eq(call_try_header(&gzip, "Vary"), "Accept-Encoding");
    call_try_close(&plain);
    call_try_close(&gzip);
}
END_TEST

/* Also to who refuses that: whatever has no twin comes plain or not at all. */
START_TEST(without_a_twin_it_is_sent_plain) {
    struct call_try try = {.request = "GET /de/",
                           .head.accept_encoding = _i ? "identity;q=0, *;q=0" : "gzip, identity;q=0"};
    call_try(&ground, &try);
    ck_assert_int_eq(try.status, 200);
    ck_assert_uint_eq(try.reply_n, 15);
    ck_assert_str_eq(call_try_header(&try, "Content-Encoding"), "");
    call_try_close(&try);
}
END_TEST

/* ---- What is said with them ------------------------------------------------------------------------------ */

START_TEST(documents_say_what_they_may_do) {
    static const char *const names[] = {"Content-Security-Policy", "Referrer-Policy"};
    for (size_t i = 0; i < site.n; i++) {
        char request[64];
        snprintf(request, sizeof request, "GET %s", files[i].path);
        struct call_try try = {.request = request};
        call_try(&ground, &try);
        ck_assert_int_eq(try.status, 200);
        ck_assert_str_eq(call_try_header(&try, "Content-Type"), files[i].media);
        ck_assert_str_eq(call_try_header(&try, "X-Content-Type-Options"), "nosniff");
        ck_assert_str_eq(call_try_header(&try, "Cache-Control"),
                         files[i].immutable ? "public, max-age=31536000, immutable" : "no-cache");
        ck_assert_str_eq(call_route_name(try.call), "GET /");
        for (size_t k = 0; k < PE_COUNT(names); k++) {
            bool said = call_try_header(&try, names[k])[0] != '\0';
            ck_assert_msg(said == (strstr(files[i].media, "html") != NULL), "%s %s", request, names[k]);
        }
        call_try_close(&try);
    }
}
END_TEST

START_TEST(who_has_it_is_not_sent_it_again) {
    static const struct {
        const char *tags, *encoding;
        int status;
    } rows[] = {{"\"p\"", NULL, 304},      {"\"p\"", "gzip", 200}, {"\"pz\"", "gzip", 304},
                {"W/\"pz\"", "gzip", 304}, {"\"pz\"", NULL, 200},  {"\"x\", \"p\"", NULL, 304},
                {"*", NULL, 304},          {"\"o\"", NULL, 200},   {"\"oz\", \"p\"", "gzip", 200},
                {"p", NULL, 200}};
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct call_try try = {.request = i % 2 ? "GET /?v.lang=en" : "GET /",
                               .head.if_none_match = rows[i].tags,
                               .head.accept_encoding = rows[i].encoding};
        call_try(&ground, &try);
        ck_assert_msg(try.status == rows[i].status, "%s %d", rows[i].tags, try.status);
        ck_assert_str_eq(call_try_header(&try, "ETag"), rows[i].encoding ? "\"pz\"" : "\"p\"");
        ck_assert_str_eq(call_try_header(&try, "Cache-Control"), "no-cache");
        ck_assert_str_eq(call_try_header(&try, "Vary"), "Accept-Encoding");
        ck_assert_str_eq(call_try_header(&try, "Content-Type"), try.status == 304 ? "" : files[0].media);
        ck_assert(try.status == 200 || try.reply_n == 0);
        call_try_close(&try);
    }
}
END_TEST

START_TEST(it_is_read_only) {
    static const char *const methods[] = {"POST", "PUT", "DELETE", "PATCH"};
    for (size_t i = 0; i < PE_COUNT(methods); i++) {
        char request[64];
        snprintf(request, sizeof request, "%s /labs/order", methods[i]);
        struct call_try try = {.request = request};
        call_expect_problem(&ground, &try, 405, "method_not_allowed", "method", NULL);
        ck_assert_str_eq(call_try_header(&try, "Allow"), "GET, HEAD, OPTIONS");
        call_try_close(&try);
    }
}
END_TEST

START_TEST(the_admin_listener_has_no_page) {
    struct call_try try = {.request = "GET /labs/order", .head.admin = true};
    call_expect_problem(&ground, &try, 404, "not_found", "path", "there is no \"/labs/order\"");
    call_try_close(&try);
}
END_TEST

/* The reply is the program's own memory, and still is where its bytes are pulled one by one. */
START_TEST(bytes_are_not_copied) {
    struct call_try try = {.request = "GET /", .room = 1};
    struct source_part parts[SOURCE_MAX_PIECES];
    call_try(&ground, &try);
    ck_assert_uint_eq(call_parts(try.call, parts), 1);
    ck_assert_ptr_eq(parts[0].bytes, page);
    ck_assert_uint_eq(parts[0].n, 15);
    ck_assert(try.reply_n == 15 && memcmp(try.reply, page, 15) == 0);
    call_try_close(&try);
}
END_TEST

/* What refuses a call after its reply was made gives its own in place of the file. */
START_TEST(a_refusal_takes_its_place) {
    char text[4096];
    struct call_try try = {.request = "GET /"};
    call_try(&ground, &try);
    call_refuse(try.call, PE_ERR_MEMORY, "none left");
    size_t n = call_pull(try.call, text, sizeof text);
    ck_assert_int_eq((int)n, (int)call_reply(try.call)->length);
    ck_assert(n > 0 && text[0] == '{');
    call_try_close(&try);
}
END_TEST

/* ---- Without a page -------------------------------------------------------------------------------------- */

START_TEST(a_daemon_without_a_page_says_so) {
    ground.service.site = NULL;
    struct call_try try = {.request = "GET /"};
    call_try(&ground, &try);
    ck_assert_int_eq(try.status, 200);
    ck_assert_str_eq(call_try_header(&try, "Cache-Control"), "no-store");
    ck_assert_ptr_nonnull(strstr(call_try_text(&try, "detail"), "without its web page"));
    call_try_close(&try);
    struct call_try lab = {.request = "GET /labs/order"};
    call_expect_problem(&ground, &lab, 404, "not_found", "path", NULL);
    call_try_close(&lab);
}
END_TEST

Suite *site_suite(void) {
    Suite *suite = suite_create("site");
    TCase *tests = tcase_create("files");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, every_file_is_found);
    tcase_add_test(tests, nothing_else_is_found);
    if (site_embedded.n) {
        tcase_add_test(tests, the_one_built_in_is_in_order);
    } else {
        puts("skip the_one_built_in_is_in_order the page was left out of this build");
        fflush(stdout); /* lest the processes of tests write it, too */
    }
    tcase_add_test(tests, gzip_where_it_is_welcome);
    tcase_add_test(tests, the_twin_has_a_tag_of_its_own);
    tcase_add_loop_test(tests, without_a_twin_it_is_sent_plain, 0, 2);
    tcase_add_test(tests, documents_say_what_they_may_do);
    tcase_add_test(tests, who_has_it_is_not_sent_it_again);
    tcase_add_test(tests, it_is_read_only);
    tcase_add_test(tests, the_admin_listener_has_no_page);
    tcase_add_test(tests, bytes_are_not_copied);
    tcase_add_test(tests, a_refusal_takes_its_place);
    tcase_add_test(tests, a_daemon_without_a_page_says_so);
    suite_add_tcase(suite, tests);
    return suite;
}
