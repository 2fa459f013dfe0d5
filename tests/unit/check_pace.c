/* SPDX-License-Identifier: MIT
 *
 * The minimum rate: who is too slow, after how long, and who is not although he pauses or takes in steps.
 */
#include "suites.h"

#include "net/pace.h"

#define SECOND INT64_C(1000000000)

/* The second in which one is found too slow who moves moved(second) bytes in each; 0 = not within `limit`. */
static int fails_at(const struct pace_rule *rule, int64_t (*moved)(int second), int limit) {
    struct pace pace;
    int64_t sum = 1000; /* of what came before */
    pace_begin(&pace, rule);
    ck_assert(pace_holds(&pace, rule, sum, true, 5 * SECOND));
    for (int second = 1; second <= limit; second++) {
        sum += moved(second);
        if (!pace_holds(&pace, rule, sum, true, (5 + second) * SECOND)) {
            return second;
        }
    }
    return 0;
}

static int64_t nothing(int second) {
    (void)second;
    return 0;
}

static int64_t half(int second) {
    (void)second;
    return 50;
}

static int64_t enough(int second) {
    (void)second;
    return 100;
}

static int64_t fast_once(int second) {
    return second == 1 ? INT64_C(1) << 40 : 0;
}

/* Nine seconds of nothing, then what they should have brought. */
static int64_t with_pauses(int second) {
    return second % 10 == 0 ? 1000 : 0;
}

START_TEST(too_slow_after_the_patience) {
    const struct pace_rule rule = pace_rule(100, 10, 0);
    ck_assert_int_eq(fails_at(&rule, nothing, 1000), 11);
    ck_assert_int_eq(fails_at(&rule, half, 1000), 20); /* the first 50 find the purse full */
    ck_assert_int_eq(fails_at(&rule, enough, 1000), 0);
    ck_assert_int_eq(fails_at(&rule, with_pauses, 1000), 0);
}
END_TEST

START_TEST(speed_is_not_saved_up) {
    const struct pace_rule rule = pace_rule(100, 10, 0), stepping = pace_rule(100, 10, 500);
    ck_assert_int_eq(fails_at(&rule, fast_once, 1000), 11);
    ck_assert_int_eq(fails_at(&stepping, fast_once, 1000), 16);
}
END_TEST

START_TEST(who_owes_nothing_may_wait) {
    const struct pace_rule rule = pace_rule(100, 10, 0);
    struct pace pace;
    pace_begin(&pace, &rule);
    for (int second = 0; second < 1000; second++) {
        ck_assert(pace_holds(&pace, &rule, 0, false, second * SECOND));
    }
    ck_assert(pace_holds(&pace, &rule, 0, true, 1009 * SECOND));
    ck_assert(!pace_holds(&pace, &rule, 0, true, 1010 * SECOND));
}
END_TEST

START_TEST(no_rule) {
    const struct pace_rule rule = pace_rule(0, 10, 0);
    ck_assert_int_eq(fails_at(&rule, nothing, 100000), 0);
}
END_TEST

Suite *pace_suite(void) {
    Suite *suite = suite_create("pace");
    TCase *tcase = tcase_create("pace");
    tcase_add_test(tcase, too_slow_after_the_patience);
    tcase_add_test(tcase, speed_is_not_saved_up);
    tcase_add_test(tcase, who_owes_nothing_may_wait);
    tcase_add_test(tcase, no_rule);
    suite_add_tcase(suite, tcase);
    return suite;
}
