/* SPDX-License-Identifier: MIT
 *
 * The service end to end: what a reply holds, and its headers.
 */
#include "call_run.h"
#include "suites.h"

#include <string.h>

static struct call_ground ground;

static void setup(void) {
    call_ground_open(&ground);
}

static void teardown(void) {
    call_ground_close(&ground);
}

START_TEST(first_reply) {
    struct call_try try = {.request = "GET /v1/encode?type=sinusoidal&d_model=4&positions=0:2&dtype=float64"};
    call_try(&ground, &try);
    ck_assert_msg(try.status == 200, "%s", try.reply);
    ck_assert_str_eq(call_try_header(&try, "Content-Type"), "application/json");
    printf("%s\n", try.reply);
    call_try_close(&try);
}
END_TEST

Suite *call_suite(void) {
    Suite *suite = suite_create("call");
    TCase *tests = tcase_create("call");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, first_reply);
    return suite;
}
