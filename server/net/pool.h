/* SPDX-License-Identifier: MIT
 *
 * The workers: a fixed number of threads and a bounded ring of jobs. A job has n parts. A free worker takes
 * the next part of the next job in the ring, so the jobs take turns part by part: a long job slows the others
 * down, but never holds them up, and one job alone gets every worker.
 *
 * The pool knows neither HTTP nor calls: a job is a struct inside of something bigger, with two functions.
 */
#ifndef POOL_H
#define POOL_H

#include "posenc.h"

struct metrics;
struct pool;

enum pool_job_state { POOL_JOB_IDLE, POOL_JOB_QUEUED, POOL_JOB_ENDED };

struct pool_job {
    size_t n_parts; /* at least 1 */
    /* Runs one part, on any worker. false: the parts that were not taken yet are not wanted any more. */
    bool (*run)(struct pool_job *job, size_t part);
    /* Called once, after the last part, on the worker that ran it. The pool does not touch the job again, so
     * this may hand it over or free it. */
    void (*end)(struct pool_job *job);

    int64_t queued_ns; /* how long it waited for its first part; set before the first run */

    /* The pool's own. */
    struct pool_job *next, *previous;
    size_t n_taken, n_running;
    int64_t submitted_ns;
    enum pool_job_state state;
    bool counted, dropped;
};

struct pool_options {
    size_t n_workers;
    size_t n_waiting;        /* jobs that may wait beside as many as there are workers */
    struct metrics *metrics; /* NULL = none */
};

/* HANDLE. PE_ERR_MEMORY when the system gives no more threads. */
int pool_open(struct pool **out, const struct pool_options *options, struct pe_error *err) PE_CHECKED;
/* Runs what is queued, then ends the threads. NULL is allowed. */
void pool_close(struct pool *pool);
size_t pool_n_workers(const struct pool *pool);
/* The monotonic clock, which all deadlines and durations of the daemon are measured by. */
int64_t pool_now_ns(void);
#define POOL_MS     INT64_C(1000000) /* in nanoseconds */
#define POOL_SECOND INT64_C(1000000000)

/* Any thread. false: full; the job stays the caller's. */
bool pool_submit(struct pool *pool, struct pool_job *job);
/* The same, not counted and never refused: for work whose number is limited elsewhere (streams). */
void pool_submit_always(struct pool *pool, struct pool_job *job);
/* From inside of run: the job has `n` parts more than was known. Nothing, when it was cancelled. */
void pool_grow(struct pool *pool, struct pool_job *job, size_t n);
/* No more parts are taken. true: none runs either, the job is the caller's again and end will not be called.
 * false: parts are running (end will be called when they are done), or end was called already. */
bool pool_cancel(struct pool *pool, struct pool_job *job);

#endif
