/* SPDX-License-Identifier: MIT
 *
 * ALiBi: the slopes of 1 to 64 heads against correctly rounded ones (tests/golden/make_alibi.py), biases that
 * are exact where the formula is, padding on the left by positions, and when keys alone are as good as
 * distances.
 */
#include "report_run.h"
#include "suites.h"

#include <math.h>
#include <string.h>

struct alibi_power {
    const char *bias_max;
    double value[129];
};
#include "../golden/alibi_values.h"

static struct report_tensor ask(const char *what, size_t heads) {
    char request[400];
    snprintf(request, sizeof request, "GET /v1/bias?type=alibi&heads=%zu&format=raw&%s", heads, what);
    return report_tensor(request, NULL, "bias");
}

/* ---- Slopes -------------------------------------------------------------------------------------------- */

static void expect_slopes(const char *rule, const struct alibi_power *power, size_t heads) {
    char what[200];
    snprintf(what, sizeof what, "rule=%s&bias_max=%s&query_positions=1:2&key_positions=0:1&dtype=float64",
             rule, power->bias_max);
    struct report_tensor got = ask(what, heads);
    ck_assert_uint_eq(got.n, heads);
    for (size_t h = 0; h < heads; h++) {
        double wanted = power->value[alibi_slopes[heads - 1][h]];
        ck_assert_msg(got.values[h] == -wanted, "%s: head %zu of %zu is %a, not %a", what, h, heads,
                      -got.values[h], wanted);
    }
}

START_TEST(slopes_are_rounded_correctly) {
    for (size_t heads = 1; heads <= PE_COUNT(alibi_slopes); heads++) {
        expect_slopes("press", &alibi_powers[_i], heads);
        expect_slopes("mpt", &alibi_powers[_i], heads);
    }
}
END_TEST

/* ---- Biases -------------------------------------------------------------------------------------------- */

/* Slopes of 8 heads are powers of two, and so all biases at whole distances are exact, as far as positions
 * go; and they are in lists and in steps, in float64 and, where these are numbers of it, in float32. */
START_TEST(whole_distances_are_exact) {
    static const char *const keys[] = {
        "-9007199254740992,-4097,-1,0,1,2,3,257,65535,16777217,9007199254740991", "0:11", "-4105:-4094",
        "9007199254740981:9007199254740992"};
    static const double first[] = {0, 0, -4105, 9007199254740981},
                        list[] = {-PE_POSITION_MAX, -4097,           -1, 0, 1, 2, 3, 257, 65535,
                                  16777217,         9007199254740991};
    char what[300];
    snprintf(what, sizeof what, "query_positions=0:9&key_positions=%s", keys[_i]);
    struct report_tensor single = ask(what, 8);
    snprintf(what, sizeof what, "query_positions=0:9&key_positions=%s&dtype=float64", keys[_i]);
    struct report_tensor wide = ask(what, 8);
    ck_assert_uint_eq(wide.n, 8 * 9 * 11);
    for (size_t at = 0; at < wide.n; at++) {
        size_t h = at / 99, i = at / 11 % 9, j = at % 11;
        double key = _i == 0 ? list[j] : first[_i] + (double)j;
        double wanted = -ldexp(fabs(key - (double)i), -(int)h - 1);
        ck_assert_double_eq(wide.values[at], wanted);
        ck_assert(single.values[at] == (double)(float)wanted && !(wanted == 0 && signbit(wide.values[at])));
    }
}
END_TEST

/* By key alone, of any sign and between whole numbers. */
START_TEST(by_key_is_slope_times_key) {
    static const double keys[] = {-2.5, 0, 0.125, 7, 1e15};
    struct report_tensor got = ask("form=causal_key&query_positions=3,1e9&key_positions=-2.5,0,0.125,7,1e15"
                                   "&dtype=float64",
                                   4);
    ck_assert_uint_eq(got.n, 4 * 2 * 5);
    for (size_t at = 0; at < got.n; at++) {
        ck_assert_double_eq(got.values[at], ldexp(keys[at % 5], -2 * ((int)(at / 10) + 1)));
    }
}
END_TEST

/* ---- Attention ----------------------------------------------------------------------------------------- */

#define MASK "[[0,0,1,1,1],[1,1,1,0,0]]"

/* Rows [n, 2] of numbers as JSON, after `before` rows of padding and with `after` behind, into text. */
static char *rows_text(char *text, size_t size, size_t n, unsigned seed, size_t before, size_t after) {
    text[0] = '\0';
    for (size_t i = 0; i < before + n + after; i++) {
        bool real = i >= before && i < before + n;
        size_t at = strlen(text), x = real ? (i - before) * 37 + (size_t)seed * 11 : 9;
        snprintf(text + at, size - at, "%s[%g,%g]", i ? "," : "", (double)(x % 17) / 8 - 1,
                 (double)(x % 13) / 8 - .75);
    }
    return text;
}

/* Attention of one head (slope 2^-8) over [2, 5] tokens, or over the three that are real alone. */
static struct report_tensor attend(const char *form, const char *rule, const char *name) {
    char body[2000], text[2][300], at[200] = "", rows[2][700];
    for (unsigned side = 0; side < 2; side++) {
        rows_text(text[0], sizeof text[0], 3, side, rule ? 2 : 0, 0);
        rows_text(text[1], sizeof text[1], 3, side, 0, 2);
        if (rule) {
            snprintf(rows[side], sizeof rows[side], "[[[%s]],[[%s]]]", text[0], text[1]);
        } else {
            snprintf(rows[side], sizeof rows[side], "[[%s]]", text[0]);
        }
    }
    if (rule) {
        snprintf(at, sizeof at, "{\"mask\":" MASK ",\"rule\":\"%s\"}", rule);
    }
    snprintf(body, sizeof body,
             "{\"encoding\":{\"type\":\"alibi\",\"form\":\"%s\"},\"q\":%s,\"k\":%s%s%s%s%s,\"heads\":3,"
             "\"head_index\":[1],\"dtype\":\"float64\",\"return\":[\"%s\"],\"mask\":{\"causal\":true%s}}",
             form, rows[0], rows[1], rule ? ",\"query_positions\":" : "", at,
             rule ? ",\"key_positions\":" : "", at, name, rule ? ",\"keep\":" MASK : "");
    return report_tensor("POST /v1/attention", body, name);
}

/* A sequence of three tokens in a batch, once padded on the left and once on the right; positions by the rule
 * of a project. The real tokens have the weights that they have alone, and true distances. */
START_TEST(padding_on_the_left_moves_nothing) {
    static const char *const rules[] = {"gpt2", "bloom", "opt"}, *const forms[] = {"symmetric", "causal_key"};
    const char *rule = rules[_i % 3], *form = forms[_i / 3];
    double apart = _i == 5 ? 2 * 0x1p-8 : 0; /* OPT counts from 2 */
    struct report_tensor weights = attend(form, rule, "weights"), position = attend(form, rule, "position"),
                         alone = attend(form, NULL, "weights"), bias = attend(form, NULL, "position");
    ck_assert(weights.n == 50 && position.n == 50 && alone.n == 9 && bias.n == 9);
    for (size_t i = 0; i < 3; i++) {
        for (size_t j = 0; j < 3; j++) {
            size_t left = (i + 2) * 5 + j + 2, right = 25 + i * 5 + j, real = i * 3 + j;
            ck_assert_double_eq_tol(weights.values[left], alone.values[real], 1e-15);
            ck_assert_double_eq_tol(weights.values[right], alone.values[real], 1e-15);
            ck_assert_double_eq(position.values[left], bias.values[real] + apart);
            ck_assert_double_eq(position.values[right], bias.values[real] + apart);
        }
        for (size_t j = 0; j < 2; j++) {
            ck_assert(weights.values[(i + 2) * 5 + j] == 0 && weights.values[25 + i * 5 + 3 + j] == 0);
        }
    }
}
END_TEST

Suite *alibi_suite(void) {
    Suite *suite = suite_create("alibi");
    TCase *tests = tcase_create("alibi");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, report_setup, report_teardown);
    tcase_add_loop_test(tests, slopes_are_rounded_correctly, 0, PE_COUNT(alibi_powers));
    tcase_add_loop_test(tests, whole_distances_are_exact, 0, 4);
    tcase_add_test(tests, by_key_is_slope_times_key);
    tcase_add_loop_test(tests, padding_on_the_left_moves_nothing, 0, 6);
    return suite;
}
