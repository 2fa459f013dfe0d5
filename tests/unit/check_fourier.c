/* SPDX-License-Identifier: MIT
 *
 * Fourier features where numbers end: places far away, as many powers of two as there are, and types of 16 bits.
 * Values are in the cases.
 */
#include "call_run.h"
#include "suites.h"

#include "ops/operand.h"

#include <string.h>

static struct call_ground ground;

static void setup(void) {
    call_ground_open(&ground);
}

static void teardown(void) {
    call_ground_close(&ground);
}

#define NERF                                                                                                 \
    "GET /v1/encode?type=fourier&features=nerf&n_frequencies=2&dtype=float16&format=raw&include_input="

/* A position is a number of the vector only where it is asked for: then it has to be below 65520, which rounds
 * to infinity. */
static const struct {
    const char *request;
    int status;
} far[] = {
    {NERF "false&positions=1e15", 200},    {NERF "true&positions=65519.9", 200},
    {NERF "true&positions=-65519.9", 200}, {NERF "true&positions=65520", 400},
    {NERF "true&positions=-65520", 400},
};

START_TEST(only_positions_overflow) {
    struct call_try try = {.request = far[_i].request};
    call_try(&ground, &try);
    ck_assert_msg(try.status == far[_i].status, "%s: %d", far[_i].request, try.status);
    call_try_close(&try);
}
END_TEST

static double row_cost(struct pe_arena *arena, const char *pi) {
    struct pe_error err = {0};
    struct pe_spec spec;
    struct pe_plan *plan;
    ck_assert_int_eq(pe_spec_init(arena, &spec, "fourier", &err), PE_OK);
    ck_assert_int_eq(pe_spec_set(arena, &spec, "features", "nerf", &err), PE_OK);
    ck_assert_int_eq(pe_spec_set(arena, &spec, "n_frequencies", "1000", &err), PE_OK);
    ck_assert_int_eq(pe_spec_set(arena, &spec, "pi", pi, &err), PE_OK);
    ck_assert_int_eq(pe_plan_open(&plan, &spec, &err), PE_OK);
    double cost = pe_encoding_row_ns(plan, PE_DTYPE_F32);
    pe_plan_close(plan);
    return cost;
}

/* Some 950 of 1000 powers of two are beyond 2^53 even at position 1. With pi whole turns are taken off; without,
 * each takes full-width arithmetic, hundreds of times as long: no work for the thread that listens. */
START_TEST(far_powers_have_their_cost) {
    struct pe_error err = {0};
    struct pe_arena *arena = pe_arena_open(1 << 20, NULL, &err);
    double with_pi = row_cost(arena, "true"), without = row_cost(arena, "false");
    ck_assert_msg(without > 100 * with_pi, "%g ns, and with pi %g", without, with_pi);
    pe_arena_close(arena);
}
END_TEST

/* 2^k p is beyond the largest double here, and whole turns of pi all the same. */
START_TEST(powers_beyond_doubles) {
    struct call_try try = {.request = "GET /v1/encode?type=fourier&features=nerf&n_frequencies=1000"
                                      "&positions=9007199254740992&format=raw"};
    call_try(&ground, &try);
    ck_assert_int_eq(try.status, 200);
    ck_assert_uint_eq(try.reply_n, 2000 * sizeof(float));
    for (size_t k = 0; k < 1000; k++) {
        float pair[2];
        memcpy(pair, (const char *)try.reply + k * sizeof pair, sizeof pair);
        ck_assert_msg(pair[0] == 0 && pair[1] == 1, "frequency %zu: %g, %g", k, (double)pair[0],
                      (double)pair[1]);
    }
    call_try_close(&try);
}
END_TEST

Suite *fourier_suite(void) {
    Suite *suite = suite_create("fourier");
    TCase *tests = tcase_create("fourier");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, only_positions_overflow, 0, (int)PE_COUNT(far));
    tcase_add_test(tests, far_powers_have_their_cost);
    tcase_add_test(tests, powers_beyond_doubles);
    return suite;
}
