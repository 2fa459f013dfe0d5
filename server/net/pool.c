/* SPDX-License-Identifier: MIT
 *
 * The jobs that have parts left form a ring; `turn` is the job whose part is taken next. One mutex guards the
 * ring and the counts: a part is worth some ten microseconds at least, and taking one costs a tenth of one.
 * Rejected: an atomic counter per job with the lock only around the ring. It saves the lock only as long as a
 * worker stays with one job, which is what taking turns forbids.
 *
 * A worker that takes a part wakes one more when there is more to take. So a submit wakes one thread, not
 * all, and a job of many parts still has all of them running after a few microseconds.
 */
#include "pool.h"

#include "metrics.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* Kernels keep their tiles on the stack (at most some 100 KiB), and the sanitizers triple it. */
#define POOL_STACK_BYTES ((size_t)2 << 20)

struct pool {
    pthread_mutex_t lock; /* all below */
    pthread_cond_t work;  /* there are parts to take, or closing */
    struct pool_job *turn;
    size_t n_jobs; /* counted ones: waiting or running */
    size_t n_idle; /* threads in pthread_cond_wait */
    bool closing;

    /* const after pool_open */
    size_t max_jobs;
    struct metrics *metrics;
    size_t n_threads;
    pthread_t thread[];
};

int64_t pool_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * POOL_SECOND + now.tv_nsec;
}

static void gauge(const struct pool *pool, enum metrics_value value, int64_t amount) {
    if (pool->metrics != NULL) {
        metrics_add(pool->metrics, value, amount);
    }
}

/* ---- The ring (lock held) ------------------------------------------------------------------------------ */

/* Last in turn, which in a ring is just before `turn`. */
static void ring_add(struct pool *pool, struct pool_job *job) {
    struct pool_job *turn = pool->turn;
    if (turn == NULL) {
        job->next = job->previous = job;
        pool->turn = job;
        return;
    }
    job->next = turn;
    job->previous = turn->previous;
    turn->previous->next = job;
    turn->previous = job;
}

static void ring_remove(struct pool *pool, struct pool_job *job) {
    if (pool->turn == job) {
        pool->turn = job->next == job ? NULL : job->next;
    }
    job->previous->next = job->next;
    job->next->previous = job->previous;
    job->next = job->previous = NULL;
}

/* The parts not taken yet are dropped. */
static void drop_rest(struct pool *pool, struct pool_job *job) {
    job->dropped = true;
    if (job->n_taken < job->n_parts) {
        if (job->n_taken == 0) {
            gauge(pool, METRICS_QUEUE_DEPTH, -1);
        }
        ring_remove(pool, job);
        job->n_taken = job->n_parts;
    }
}

static size_t take_part(struct pool *pool, struct pool_job *job) {
    if (job->n_taken == 0) {
        job->queued_ns = pool_now_ns() - job->submitted_ns;
        gauge(pool, METRICS_QUEUE_DEPTH, -1);
    }
    size_t part = job->n_taken++;
    job->n_running++;
    if (job->n_taken == job->n_parts) {
        ring_remove(pool, job);
    } else {
        pool->turn = job->next;
    }
    return part;
}

static void leave(struct pool *pool, struct pool_job *job) {
    job->state = POOL_JOB_ENDED;
    pool->n_jobs -= job->counted ? 1 : 0;
}

/* ---- The workers --------------------------------------------------------------------------------------- */

/* Takes one part and runs it. Lock held on entry and on return. */
static void work_once(struct pool *pool) {
    struct pool_job *job = pool->turn;
    size_t part = take_part(pool, job);
    if (pool->turn != NULL && pool->n_idle > 0) {
        pthread_cond_signal(&pool->work);
    }
    pthread_mutex_unlock(&pool->lock);

    gauge(pool, METRICS_WORKERS_BUSY, 1);
    bool more = job->run(job, part);

    pthread_mutex_lock(&pool->lock);
    job->n_running--;
    if (!more) {
        drop_rest(pool, job);
    }
    if (job->n_taken == job->n_parts && job->n_running == 0) {
        leave(pool, job);
        pthread_mutex_unlock(&pool->lock);
        job->end(job);
        pthread_mutex_lock(&pool->lock);
    }
    gauge(pool, METRICS_WORKERS_BUSY, -1);
}

static void *worker_main(void *context) {
    struct pool *pool = context;
    pthread_mutex_lock(&pool->lock);
    while (pool->turn != NULL || !pool->closing) {
        if (pool->turn != NULL) {
            work_once(pool);
            continue;
        }
        pool->n_idle++;
        pthread_cond_wait(&pool->work, &pool->lock);
        pool->n_idle--;
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* ---- Jobs ---------------------------------------------------------------------------------------------- */

/* Lock held. */
static void offer(struct pool *pool, struct pool_job *job) {
    ring_add(pool, job);
    if (pool->n_idle > 0) {
        pthread_cond_signal(&pool->work);
    }
}

static void submit(struct pool *pool, struct pool_job *job, bool counted) {
    assert(job->n_parts > 0 && job->state != POOL_JOB_QUEUED);
    job->state = POOL_JOB_QUEUED;
    job->counted = counted;
    job->dropped = false;
    job->n_taken = job->n_running = 0;
    job->queued_ns = 0;
    job->submitted_ns = pool_now_ns();
    pool->n_jobs += counted ? 1 : 0;
    gauge(pool, METRICS_QUEUE_DEPTH, 1);
    offer(pool, job);
}

bool pool_submit(struct pool *pool, struct pool_job *job) {
    pthread_mutex_lock(&pool->lock);
    bool room = pool->n_jobs < pool->max_jobs;
    if (room) {
        submit(pool, job, true);
    }
    pthread_mutex_unlock(&pool->lock);
    return room;
}

void pool_submit_always(struct pool *pool, struct pool_job *job) {
    pthread_mutex_lock(&pool->lock);
    submit(pool, job, false);
    pthread_mutex_unlock(&pool->lock);
}

void pool_grow(struct pool *pool, struct pool_job *job, size_t n) {
    pthread_mutex_lock(&pool->lock);
    if (n > 0 && !job->dropped) {
        bool in_ring = job->n_taken < job->n_parts;
        job->n_parts += n;
        if (!in_ring) {
            offer(pool, job);
        }
    }
    pthread_mutex_unlock(&pool->lock);
}

bool pool_cancel(struct pool *pool, struct pool_job *job) {
    pthread_mutex_lock(&pool->lock);
    bool free_again = false;
    if (job->state == POOL_JOB_QUEUED) {
        drop_rest(pool, job);
        free_again = job->n_running == 0;
        if (free_again) {
            leave(pool, job);
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return free_again;
}

/* ---- Opening and closing ------------------------------------------------------------------------------- */

static int start_threads(struct pool *pool, size_t n, struct pe_error *err) {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) {
        return pe_fail(err, PE_ERR_MEMORY, "workers", "no memory for a thread");
    }
    pthread_attr_setstacksize(&attributes, POOL_STACK_BYTES);
    while (pool->n_threads < n &&
           pthread_create(&pool->thread[pool->n_threads], &attributes, worker_main, pool) == 0) {
        pool->n_threads++;
    }
    pthread_attr_destroy(&attributes);
    if (pool->n_threads < n) {
        return pe_fail(err, PE_ERR_MEMORY, "workers", "the system gave %zu threads of %zu", pool->n_threads,
                       n);
    }
    return PE_OK;
}

int pool_open(struct pool **out, const struct pool_options *options, struct pe_error *err) {
    size_t n = options->n_workers;
    *out = NULL;
    if (n == 0 || n > 4096) {
        return pe_fail(err, PE_ERR_RANGE, "workers", "%zu threads; 1 to 4096 are allowed", n);
    }
    struct pool *pool = calloc(1, sizeof *pool + n * sizeof pool->thread[0]);
    if (pool == NULL) {
        return pe_fail(err, PE_ERR_MEMORY, "workers", "no memory for %zu threads", n);
    }
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pool->max_jobs = n + options->n_waiting;
    pool->metrics = options->metrics;
    if (start_threads(pool, n, err) != PE_OK) {
        pool_close(pool);
        return err->code;
    }
    gauge(pool, METRICS_WORKERS, (int64_t)n);
    gauge(pool, METRICS_QUEUE_CAPACITY, (int64_t)options->n_waiting);
    *out = pool;
    return PE_OK;
}

void pool_close(struct pool *pool) {
    if (pool == NULL) {
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (size_t i = 0; i < pool->n_threads; i++) {
        pthread_join(pool->thread[i], NULL);
    }
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

size_t pool_n_workers(const struct pool *pool) {
    return pool->n_threads;
}
