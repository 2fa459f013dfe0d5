/* SPDX-License-Identifier: MIT
 *
 * The pool: each part once, jobs in turn, a full queue said so, and nothing lost between cancel and end.
 * Gates (semaphores) hold parts at a known point, so no test depends on how fast threads are. Worth its time
 * in the tsan flavour.
 */
#include "suites.h"

#include "net/pool.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

#define MAX_PARTS 1000

struct probe {
    struct pool_job job; /* first */
    char name;
    size_t quit_after; /* run returns false from this part on; 0 = never */
    atomic_int runs[MAX_PARTS];
    atomic_int n_runs, n_ends;
    sem_t *gate;    /* every part waits here; NULL = none */
    sem_t *entered; /* posted by every part before the gate */
    sem_t ended;
    struct pool *grows_in; /* the first part makes the job grow there; NULL = not */
    size_t grows_by;
    char *order; /* names in the order in which parts began */
    atomic_int *n_order;
};

static bool probe_run(struct pool_job *job, size_t part) {
    struct probe *probe = (struct probe *)job;
    if (probe->order != NULL) {
        probe->order[atomic_fetch_add(probe->n_order, 1)] = probe->name;
    }
    atomic_fetch_add(&probe->runs[part], 1);
    atomic_fetch_add(&probe->n_runs, 1);
    if (probe->entered != NULL) {
        sem_post(probe->entered);
    }
    if (probe->gate != NULL) {
        sem_wait(probe->gate);
    }
    if (probe->grows_in != NULL && part == 0) {
        pool_grow(probe->grows_in, job, probe->grows_by);
    }
    return probe->quit_after == 0 || part < probe->quit_after;
}

static void probe_end(struct pool_job *job) {
    struct probe *probe = (struct probe *)job;
    atomic_fetch_add(&probe->n_ends, 1);
    sem_post(&probe->ended);
}

static struct probe *probe_make(char name, size_t n_parts) {
    struct probe *probe = calloc(1, sizeof *probe);
    ck_assert_ptr_nonnull(probe);
    probe->job = (struct pool_job){.n_parts = n_parts, .run = probe_run, .end = probe_end};
    probe->name = name;
    sem_init(&probe->ended, 0, 0);
    return probe;
}

static struct pool *pool_make(size_t n_workers, size_t n_waiting) {
    struct pe_error err = {0};
    struct pool *pool;
    const struct pool_options options = {.n_workers = n_workers, .n_waiting = n_waiting};
    ck_assert_int_eq(pool_open(&pool, &options, &err), PE_OK);
    return pool;
}

START_TEST(every_part_runs_once) {
    struct pool *pool = pool_make(3, 100);
    struct probe *probes[20];
    for (size_t i = 0; i < 20; i++) {
        probes[i] = probe_make('a', i == 0 ? 1 : MAX_PARTS / i);
        ck_assert(pool_submit(pool, &probes[i]->job));
    }
    for (size_t i = 0; i < 20; i++) {
        sem_wait(&probes[i]->ended);
    }
    pool_close(pool);
    for (size_t i = 0; i < 20; i++) {
        for (size_t part = 0; part < probes[i]->job.n_parts; part++) {
            ck_assert_int_eq(probes[i]->runs[part], 1);
        }
        ck_assert_uint_eq((size_t)probes[i]->n_runs, probes[i]->job.n_parts);
        ck_assert_int_eq(probes[i]->n_ends, 1);
        free(probes[i]);
    }
}
END_TEST

/* One worker, a long job in the middle of its first part; a short one comes. It must not wait for the rest.
 */
START_TEST(jobs_take_turns) {
    struct pool *pool = pool_make(1, 10);
    sem_t gate, entered;
    char order[128];
    atomic_int n_order = 0;
    sem_init(&gate, 0, 0);
    sem_init(&entered, 0, 0);
    struct probe *longer = probe_make('L', 100), *shorter = probe_make('S', 2);
    longer->order = shorter->order = order;
    longer->n_order = shorter->n_order = &n_order;
    longer->gate = &gate;
    longer->entered = &entered;
    ck_assert(pool_submit(pool, &longer->job));
    sem_wait(&entered);
    ck_assert(pool_submit(pool, &shorter->job));
    for (int i = 0; i < 100; i++) {
        sem_post(&gate);
    }
    sem_wait(&longer->ended);
    sem_wait(&shorter->ended);
    pool_close(pool);
    ck_assert_int_eq(n_order, 102);
    ck_assert_mem_eq(order, "LLSLSLLL", 8);
    free(longer);
    free(shorter);
}
END_TEST

/* One worker: one job runs, one waits, the third is refused, but not if it is of a kind that always goes in;
 * and there is room again afterwards. */
START_TEST(full_is_refused) {
    struct pool *pool = pool_make(1, 1);
    sem_t gate, entered;
    sem_init(&gate, 0, 0);
    sem_init(&entered, 0, 0);
    struct probe *probes[4];
    for (size_t i = 0; i < 4; i++) {
        probes[i] = probe_make('a', 1);
        probes[i]->gate = &gate;
        probes[i]->entered = &entered;
    }
    ck_assert(pool_submit(pool, &probes[0]->job));
    sem_wait(&entered);
    ck_assert(pool_submit(pool, &probes[1]->job));
    ck_assert(!pool_submit(pool, &probes[2]->job));
    ck_assert_int_eq(probes[2]->n_runs, 0);
    pool_submit_always(pool, &probes[3]->job);
    sem_post(&gate);
    sem_wait(&probes[0]->ended);
    ck_assert(pool_submit(pool, &probes[2]->job));
    for (int i = 0; i < 3; i++) {
        sem_post(&gate);
    }
    for (size_t i = 1; i < 4; i++) {
        sem_wait(&probes[i]->ended);
    }
    pool_close(pool);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(probes[i]->n_runs, 1);
        free(probes[i]);
    }
}
END_TEST

START_TEST(cancel_of_a_waiting_job_gives_it_back) {
    struct pool *pool = pool_make(1, 1);
    sem_t gate, entered;
    sem_init(&gate, 0, 0);
    sem_init(&entered, 0, 0);
    struct probe *running = probe_make('r', 1), *waiting = probe_make('w', 3), *next = probe_make('n', 1);
    running->gate = &gate;
    running->entered = &entered;
    ck_assert(pool_submit(pool, &running->job));
    sem_wait(&entered);
    ck_assert(pool_submit(pool, &waiting->job));
    ck_assert(pool_cancel(pool, &waiting->job));
    ck_assert(!pool_cancel(pool, &waiting->job)); /* it is not the pool's any more */
    ck_assert(pool_submit(pool, &next->job));     /* and its place is free */
    sem_post(&gate);
    sem_wait(&next->ended);
    pool_close(pool);
    ck_assert_int_eq(waiting->n_runs, 0);
    ck_assert_int_eq(waiting->n_ends, 0);
    free(running);
    free(waiting);
    free(next);
}
END_TEST

START_TEST(cancel_of_a_running_job_lets_its_part_end) {
    struct pool *pool = pool_make(1, 1);
    sem_t gate, entered;
    sem_init(&gate, 0, 0);
    sem_init(&entered, 0, 0);
    struct probe *probe = probe_make('r', 50);
    probe->gate = &gate;
    probe->entered = &entered;
    ck_assert(pool_submit(pool, &probe->job));
    sem_wait(&entered);
    ck_assert(!pool_cancel(pool, &probe->job));
    ck_assert_int_eq(probe->n_ends, 0);
    sem_post(&gate);
    sem_wait(&probe->ended);
    ck_assert(!pool_cancel(pool, &probe->job)); /* after its end it changes nothing */
    pool_close(pool);
    ck_assert_int_eq(probe->n_runs, 1);
    ck_assert_int_eq(probe->n_ends, 1);
    free(probe);
}
END_TEST

START_TEST(a_part_may_give_up_the_rest) {
    struct pool *pool = pool_make(1, 1);
    struct probe *probe = probe_make('q', 50);
    probe->quit_after = 4;
    ck_assert(pool_submit(pool, &probe->job));
    sem_wait(&probe->ended);
    pool_close(pool);
    ck_assert_int_eq(probe->n_runs, 5); /* parts 0 to 4; part 4 said no */
    ck_assert_int_eq(probe->n_ends, 1);
    free(probe);
}
END_TEST

/* One part that finds more to do: the job ends once, after all of it. Its first part may be its only one, or
 * others may still wait. */
START_TEST(a_job_may_grow) {
    for (size_t before = 1; before <= 4; before++) {
        struct pool *pool = pool_make(2, 1);
        struct probe *probe = probe_make('g', before);
        probe->grows_in = pool;
        probe->grows_by = 30;
        ck_assert(pool_submit(pool, &probe->job));
        sem_wait(&probe->ended);
        pool_close(pool);
        ck_assert_uint_eq((size_t)probe->n_runs, before + 30);
        for (size_t part = 0; part < before + 30; part++) {
            ck_assert_int_eq(probe->runs[part], 1);
        }
        ck_assert_int_eq(probe->n_ends, 1);
        free(probe);
    }
}
END_TEST

START_TEST(a_cancelled_job_does_not_grow) {
    struct pool *pool = pool_make(1, 1);
    sem_t gate, entered;
    sem_init(&gate, 0, 0);
    sem_init(&entered, 0, 0);
    struct probe *probe = probe_make('g', 1);
    probe->gate = &gate;
    probe->entered = &entered;
    probe->grows_in = pool;
    probe->grows_by = 30;
    ck_assert(pool_submit(pool, &probe->job));
    sem_wait(&entered);
    ck_assert(!pool_cancel(pool, &probe->job));
    sem_post(&gate);
    sem_wait(&probe->ended);
    pool_close(pool);
    ck_assert_int_eq(probe->n_runs, 1);
    ck_assert_int_eq(probe->n_ends, 1);
    free(probe);
}
END_TEST

START_TEST(close_runs_what_is_queued) {
    struct pool *pool = pool_make(2, 100);
    struct probe *probes[50];
    for (size_t i = 0; i < 50; i++) {
        probes[i] = probe_make('a', 7);
        ck_assert(pool_submit(pool, &probes[i]->job));
    }
    pool_close(pool);
    for (size_t i = 0; i < 50; i++) {
        ck_assert_int_eq(probes[i]->n_runs, 7);
        ck_assert_int_eq(probes[i]->n_ends, 1);
        free(probes[i]);
    }
}
END_TEST

static void end_and_free(struct pool_job *job) {
    struct probe *probe = (struct probe *)job;
    sem_t *done = probe->entered;
    free(probe);
    sem_post(done);
}

/* The pool must not touch a job after its end: the sanitizers see it when it does. */
START_TEST(end_may_free_the_job) {
    struct pool *pool = pool_make(2, 1000);
    sem_t done;
    sem_init(&done, 0, 0);
    for (int i = 0; i < 200; i++) {
        struct probe *probe = probe_make('f', 3);
        probe->entered = &done;
        probe->job.end = end_and_free;
        pool_submit_always(pool, &probe->job);
    }
    for (int i = 0; i < 200 * 4; i++) { /* three parts and an end each */
        sem_wait(&done);
    }
    pool_close(pool);
}
END_TEST

START_TEST(time_in_the_queue_is_told) {
    struct pool *pool = pool_make(1, 1);
    sem_t gate, entered;
    sem_init(&gate, 0, 0);
    sem_init(&entered, 0, 0);
    struct probe *first = probe_make('1', 1), *second = probe_make('2', 1);
    first->gate = &gate;
    first->entered = &entered;
    ck_assert(pool_submit(pool, &first->job));
    sem_wait(&entered);
    int64_t before = pool_now_ns();
    ck_assert(pool_submit(pool, &second->job));
    int64_t submitted = pool_now_ns();
    while (pool_now_ns() < submitted + 3 * POOL_MS) {
    }
    sem_post(&gate);
    sem_wait(&second->ended);
    ck_assert_int_ge(second->job.queued_ns, 3 * POOL_MS);
    ck_assert_int_le(second->job.queued_ns, pool_now_ns() - before);
    pool_close(pool);
    free(first);
    free(second);
}
END_TEST

START_TEST(no_threads_is_refused) {
    struct pool *pool;
    const size_t wrong[] = {0, 4097};
    for (size_t i = 0; i < 2; i++) {
        struct pe_error err = {0};
        ck_assert_int_eq(pool_open(&pool, &(struct pool_options){.n_workers = wrong[i]}, &err), PE_ERR_RANGE);
        ck_assert_ptr_null(pool);
    }
}
END_TEST

Suite *pool_suite(void) {
    Suite *suite = suite_create("pool");
    TCase *tests = tcase_create("pool");
    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, every_part_runs_once);
    tcase_add_test(tests, jobs_take_turns);
    tcase_add_test(tests, full_is_refused);
    tcase_add_test(tests, cancel_of_a_waiting_job_gives_it_back);
    tcase_add_test(tests, cancel_of_a_running_job_lets_its_part_end);
    tcase_add_test(tests, a_part_may_give_up_the_rest);
    tcase_add_test(tests, a_job_may_grow);
    tcase_add_test(tests, a_cancelled_job_does_not_grow);
    tcase_add_test(tests, close_runs_what_is_queued);
    tcase_add_test(tests, end_may_free_the_job);
    tcase_add_test(tests, time_in_the_queue_is_told);
    tcase_add_test(tests, no_threads_is_refused);
    suite_add_tcase(suite, tests);
    return suite;
}
