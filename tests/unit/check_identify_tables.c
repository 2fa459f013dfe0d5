/* SPDX-License-Identifier: MIT
 *
 * identify: tables of all variants are named, and random ones are not. A few of each kind from two seeds; all with
 * FULL=1 in the environment.
 */
#include "identify_made.h"
#include "suites.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Tables -------------------------------------------------------------------------------------------- */

#define PARTS  8  /* tests of a seed, which run side by side */
#define TABLES 40 /* of each: two of every kind; a fifth of them where not FULL */

static struct identify_ground ground;

static void setup(void) {
    memset(&ground, 0, sizeof ground);
    ground.arena = pe_arena_open((size_t)256 << 20, NULL, &ground.err);
}

static void teardown(void) {
    pe_arena_close(ground.arena);
}

START_TEST(all_variants_are_named) {
    static const uint64_t seeds[] = {1, 20261130};
    struct identify_ground *g = &ground;
    size_t wrong = 0, part = (size_t)_i % PARTS;
    for (size_t i = 0; i < TABLES; i++) {
        identify_begin(seeds[(size_t)_i / PARTS] * 1000 + part * 100 + i);
        setup();
        if (i % 5 != part % 5 && !getenv("FULL")) {
            teardown();
            continue;
        }
        identify_some_table(i);
        identify_ask(g);
        if (!identify_is_right(g)) {
            wrong++;
            fprintf(stderr, "WRONG %s -> %s | %s | %g\n", identify_described(),
                    g->result.n ? g->result.candidates[0].name : "none",
                    g->result.n && g->result.candidates[0].mistake ? g->result.candidates[0].mistake : "",
                    g->result.n && !made.exponents ? identify_distance(g, &g->result.candidates[0]) : 0);
        }
        teardown();
    }
    ck_assert_uint_eq(wrong, 0);
}
END_TEST

/* Which axis is tokens follows from how they turned. */
START_TEST(heads_come_first_or_second) {
    struct identify_ground *g = &ground;
    size_t tried = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        for (int heads_first = 0; heads_first < 2; heads_first++) {
            identify_begin(4000 + seed);
            setup();
            identify_some_table(16 + seed % 4);
            made.heads_first = heads_first;
            identify_ask(g);
            if (made.heads > 1) {
                tried++;
                ck_assert_str_eq(g->result.axes, heads_first ? "htd" : "thd");
                ck_assert_msg(identify_is_right(g), "%s", identify_described());
            } else {
                ck_assert_ptr_null(g->result.axes);
            }
            made.heads_first = false;
            teardown();
        }
    }
    ck_assert_uint_gt(tried, 8);
}
END_TEST

START_TEST(random_tables_are_none) {
    static const size_t widths[] = {2, 8, 32, 64};
    struct identify_ground *g = &ground;
    setup();
    identify_begin(77 + (uint64_t)_i);
    memset(&made, 0, sizeof made);
    made.kind = _i % 4 == 3 ? TRIG : ABSOLUTE;
    made.rows = 10 + 5 * (size_t)_i;
    made.items = made.width = widths[_i % 4];
    made.dtype = _i % 2 ? PE_DTYPE_F64 : PE_DTYPE_F32;
    for (size_t i = 0; i < made.rows * made.items; i++) {
        made.clean[i] = _i % 3 ? identify_normal() * 0.02 : 2 * identify_uniform() - 1;
        made.other[i] = identify_normal();
    }
    identify_ask(g);
    ck_assert_msg(g->result.n == 0, "%s", g->result.n ? g->result.candidates[0].name : "");
    ck_assert(strstr(g->result.verdict, "none of these") == g->result.verdict);
    teardown();
}
END_TEST

Suite *identify_tables_suite(void) {
    Suite *suite = suite_create("identify_tables");
    TCase *tests = tcase_create("tables");
    suite_add_tcase(suite, tests);
    tcase_set_timeout(tests, 0);
    tcase_add_loop_test(tests, all_variants_are_named, 0, 2 * PARTS);
    tcase_add_test(tests, heads_come_first_or_second);
    tcase_add_loop_test(tests, random_tables_are_none, 0, 20);
    return suite;
}
