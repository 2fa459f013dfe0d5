/* SPDX-License-Identifier: MIT
 *
 * Memory that parts share: each part runs once, and no two at a time in one lane, whatever the threads.
 */
#include "core/lanes.h"
#include "suites.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { PARTS = 500, LANES_MOST = 3, THREADS = 8 };

struct ground {
    struct pe_lanes *lanes;
    struct pe_lanes_work work;
    size_t n_lanes;
    atomic_size_t called, clashes, runs[PARTS], inside[LANES_MOST];
};

static void part_run(const void *state, struct pe_lanes_part part) {
    struct ground *ground = *(struct ground *const *)state;
    if (part.lane >= ground->n_lanes || part.run != atomic_load(&ground->runs[part.n]) ||
        atomic_fetch_add(&ground->inside[part.lane], 1) > 0) {
        atomic_fetch_add(&ground->clashes, 1);
    }
    sched_yield(); /* so that others find the lane taken */
    atomic_fetch_add(&ground->runs[part.n], 1);
    atomic_fetch_sub(&ground->inside[part.lane], 1);
}

static void *caller(void *context) {
    struct ground *ground = context;
    while (atomic_fetch_add(&ground->called, 1) < PARTS) {
        pe_lanes_run(ground->lanes, &ground->work);
    }
    return NULL;
}

START_TEST(each_part_runs_once_and_alone_in_its_lane) {
    struct pe_error err = {0};
    struct pe_arena *arena = pe_arena_open((size_t)1 << 16, NULL, &err);
    static struct ground ground;
    struct ground *self = &ground;
    memset(&ground, 0, sizeof ground);
    ground.n_lanes = (size_t)_i;
    ground.lanes = pe_lanes_open(arena, ground.n_lanes, &err);
    ground.work = (struct pe_lanes_work){.n_parts = PARTS, .state = &self, .run = part_run};
    for (size_t round = 1; round <= 2; round++) { /* a work may be run again */
        pthread_t threads[THREADS];
        atomic_store(&ground.called, 0);
        for (size_t i = 0; i < THREADS; i++) {
            ck_assert_int_eq(pthread_create(&threads[i], NULL, caller, &ground), 0);
        }
        for (size_t i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
        }
        for (size_t part = 0; part < PARTS; part++) {
            ck_assert_uint_eq(atomic_load(&ground.runs[part]), round);
        }
    }
    ck_assert_uint_eq(atomic_load(&ground.clashes), 0);
    pe_arena_close(arena);
}
END_TEST

START_TEST(lanes_without_memory_are_refused) {
    struct pe_error err = {0};
    struct pe_arena *arena = pe_arena_open(64, NULL, &err);
    ck_assert_ptr_null(pe_lanes_open(arena, 1000, &err));
    ck_assert_int_eq(err.code, PE_ERR_LIMIT);
    pe_arena_close(arena);
}
END_TEST

Suite *lanes_suite(void) {
    Suite *suite = suite_create("lanes");
    TCase *tests = tcase_create("lanes");
    suite_add_tcase(suite, tests);
    tcase_add_loop_test(tests, each_part_runs_once_and_alone_in_its_lane, 1, LANES_MOST + 1);
    tcase_add_test(tests, lanes_without_memory_are_refused);
    return suite;
}
