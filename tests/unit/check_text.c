/* SPDX-License-Identifier: MIT
 *
 * Digits that are put by hand.
 */
#include "suites.h"

#include "wire/text.h"

#include <string.h>

static const struct row {
    int64_t ns;
    const char *text;
} rows[] = {
    {0, "0.000"},
    {-5, "0.000"}, /* a clock that went back */
    {499, "0.000"},
    {500, "0.001"},
    {1499, "0.001"},
    {1234567, "1.235"},
    {999999499, "999.999"},
    {999999500, "1000.000"},
    {90061000000000, "90061000.000"}, /* more than a day */
    {INT64_MAX, "9223372036854.776"},
};

START_TEST(times_in_milliseconds) {
    char text[32] = "";
    *text_put_ms(text, rows[_i].ns) = '\0';
    ck_assert_str_eq(text, rows[_i].text);
}
END_TEST

START_TEST(bytes_as_hex) {
    char text[16] = "";
    *text_put_hex(text, (const unsigned char[]){0x00, 0x1f, 0xa9, 0xff}, 4) = '\0';
    ck_assert_str_eq(text, "001fa9ff");
}
END_TEST

Suite *text_suite(void) {
    Suite *suite = suite_create("text");
    TCase *tests = tcase_create("digits");
    tcase_add_loop_test(tests, times_in_milliseconds, 0, (int)(sizeof rows / sizeof rows[0]));
    tcase_add_test(tests, bytes_as_hex);
    suite_add_tcase(suite, tests);
    return suite;
}
