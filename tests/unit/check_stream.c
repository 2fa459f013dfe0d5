/* SPDX-License-Identifier: MIT
 *
 * Replies that are made while they are sent: one that costs much for each of its bytes takes turns with all other
 * work, and none of its bytes is lost by that. One worker, held at a gate, so that no test depends on how fast threads
 * are.
 */
#include "call_run.h"
#include "suites.h"

#include "net/pool.h"
#include "net/stream.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

/* Some 2^24 pixels, alike in all their lines: 8 KiB, which is what is written at once, are half of them. */
#define PICTURE "/v1/encode?type=naive&d_model=64&positions=0:64&format=png&png.cell=64"

static struct call_ground ground;
static struct pool *pool;
static struct call *call;
static struct stream *stream;
static sem_t filled;
static char order[16]; /* of ends: f, a fill of the stream; g, the job at the gate; o, another */
static atomic_int n_order;

static void note(char name) {
    order[atomic_fetch_add(&n_order, 1)] = name;
}

static void note_filled(void *context) {
    (void)context;
    note('f');
    sem_post(&filled);
}

struct probe {
    struct pool_job job; /* first */
    char name;
    sem_t *gate; /* where it waits, or NULL */
    sem_t entered, ended;
};

static bool probe_run(struct pool_job *job, size_t part) {
    struct probe *probe = (struct probe *)job;
    (void)part;
    sem_post(&probe->entered);
    if (probe->gate != NULL) {
        sem_wait(probe->gate);
    }
    return true;
}

static void probe_end(struct pool_job *job) {
    struct probe *probe = (struct probe *)job;
    note(probe->name);
    sem_post(&probe->ended);
}

static void probe_submit(struct probe *probe, char name, sem_t *gate) {
    *probe =
        (struct probe){.job = {.n_parts = 1, .run = probe_run, .end = probe_end}, .name = name, .gate = gate};
    sem_init(&probe->entered, 0, 0);
    sem_init(&probe->ended, 0, 0);
    ck_assert(pool_submit(pool, &probe->job));
}

static void setup(void) {
    struct pool_options options = {.n_workers = 1, .n_waiting = 8};
    struct call_head head = {.method = "GET", .target = PICTURE};
    struct pe_error err = {0};
    call_ground_open(&ground);
    ground.config.reply_bytes = 1 << 20;
    ck_assert_int_eq(pool_open(&pool, &options, &err), PE_OK);
    call = call_open(&ground.service, &head);
    call_finish(call);
    for (size_t part = 0; part < call_work(call)->n_parts; part++) {
        call_run(call, part);
    }
    call_write(call);
    ck_assert(call_reply(call)->status == 200 && call_reply(call)->stream);
    sem_init(&filled, 0, 0);
    stream = stream_open(pool, call, note_filled, NULL);
    ck_assert_ptr_nonnull(stream);
}

static void teardown(void) {
    stream_close(stream);
    call_close(call);
    pool_close(pool);
    call_ground_close(&ground);
}

static void wait_filled(void) {
    sem_wait(&filled);
    stream_filled(stream);
}

/* The next bytes, of which there is at least one unless it ends. */
static enum stream_state read_some(char *out, size_t room, size_t *n) {
    enum stream_state state = stream_read(stream, out, room, n);
    if (state == STREAM_WAIT) {
        wait_filled();
        state = stream_read(stream, out, room, n);
    }
    ck_assert_int_ne(state, STREAM_WAIT);
    ck_assert(*n > 0 || state != STREAM_BYTES);
    return state;
}

/* What comes later than a fill is done before it, as the fill takes many turns. */
START_TEST(takes_turns) {
    static char out[1 << 16];
    struct probe held, other;
    sem_t gate;
    size_t n;
    sem_init(&gate, 0, 0);
    wait_filled();
    atomic_store(&n_order, 0);
    probe_submit(&held, 'g', &gate);
    sem_wait(&held.entered);
    ck_assert_int_eq(read_some(out, sizeof out, &n), STREAM_BYTES); /* and the next fill waits */
    probe_submit(&other, 'o', NULL);
    sem_post(&gate);
    wait_filled();
    sem_wait(&other.ended);
    ck_assert_mem_eq(order, "gof", 3);
    ck_assert(stream_cancel(stream));
}
END_TEST

/* All bytes in their order, and no block of none, which would be taken for the end. */
START_TEST(bytes) {
    static char out[1 << 20];
    struct call_try whole = {.request = "GET " PICTURE};
    size_t total = 0, n = 0;
    while (read_some(out + total, sizeof out - total, &n) == STREAM_BYTES) {
        total += n;
    }
    ck_assert_int_eq(stream_read(stream, out, sizeof out, &n), STREAM_END);
    call_try(&ground, &whole);
    ck_assert_uint_eq(total, whole.reply_n);
    ck_assert_mem_eq(out, whole.reply, total);
    call_try_close(&whole);
}
END_TEST

/* Between two turns, too. */
START_TEST(cancelled) {
    static char out[1 << 16];
    struct probe held;
    sem_t gate;
    size_t n;
    sem_init(&gate, 0, 0);
    wait_filled();
    probe_submit(&held, 'g', &gate);
    sem_wait(&held.entered);
    ck_assert_int_eq(read_some(out, sizeof out, &n), STREAM_BYTES);
    ck_assert(stream_cancel(stream));
    ck_assert_int_eq(stream_read(stream, out, sizeof out, &n), STREAM_FAILED);
    sem_post(&gate);
    sem_wait(&held.ended);
}
END_TEST

Suite *stream_suite(void) {
    Suite *suite = suite_create("stream");
    TCase *tests = tcase_create("turns");
    suite_add_tcase(suite, tests);
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, takes_turns);
    tcase_add_test(tests, bytes);
    tcase_add_test(tests, cancelled);
    return suite;
}
