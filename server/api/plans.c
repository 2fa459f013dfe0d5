/* SPDX-License-Identifier: MIT
 *
 * A plan is found by its descriptor (api/plan_key.h). Equal bytes make equal plans; hashes only find the bucket.
 * Whoever sends parameters that all come into one bucket has PLANS_MOST descriptors compared: a bound, so hashes need
 * no secret.
 *
 * Kept is only what lives by itself. A plan whose parameters still point into its request (posted tensors,
 * names) goes with it, and so does one with a table that was loaded, which is quickly made.
 *
 * Rejected: to let a request wait for another one that makes the same plan. The wait would need a deadline and
 * a way to be stopped, and would block the thread that serves the connections; so both make it, and one is kept.
 */
#include "api/plans.h"

#include "api/plan_key.h"
#include "digest.h"
#include "metrics.h"
#include "service.h"
#include "wire/echo.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS ((size_t)1024)
#define SHARE   4 /* no plan takes more than so much of what may be kept: it would throw out the others */

struct item {
    struct planned planned; /* first: what is lent is the item */
    atomic_size_t references;
    uint64_t hash;
    size_t bytes; /* that it counts */
    struct item *next, *newer, *older;
    size_t key_n;
    unsigned char key[];
};

struct plans {
    pthread_mutex_t lock;
    struct metrics *metrics;
    size_t keep_bytes, kept_bytes, n;
    struct item *newest, *oldest;
    struct item *buckets[BUCKETS];
};

/* ---- Items --------------------------------------------------------------------------------------------- */

static struct item *item_of(const struct planned *planned) {
    return (struct item *)(uintptr_t)planned;
}

static void item_release(struct item *item) {
    if (item != NULL && atomic_fetch_sub(&item->references, 1) == 1) {
        pe_plan_close(item->planned.plan);
        free((char *)(uintptr_t)item->planned.json);
        free(item);
    }
}

static struct item *item_make(const struct service *service, const struct pe_spec *spec,
                              const struct plan_key *key, struct pe_arena *arena, struct pe_error *err) {
    struct item *item = malloc(sizeof *item + key->n);
    if (item == NULL) {
        pe_fail(err, PE_ERR_MEMORY, "", "no memory for a plan");
        return NULL;
    }
    *item = (struct item){.key_n = key->n};
    atomic_init(&item->references, 1);
    memcpy(item->key, key->bytes, key->n);
    if (pe_plan_open_within(&item->planned.plan, spec, arena, &service->allocator, err) != PE_OK) {
        free(item);
        return NULL;
    }
    struct text text = {0};
    const struct pe_spec resolved = {spec->encoding, (void *)(uintptr_t)pe_plan_params(item->planned.plan)};
    echo_encoding(&text, &resolved);
    item->planned.json = text.data;
    item->planned.json_n = text.n;
    item->bytes = sizeof *item + key->n + text.room + pe_plan_bytes(item->planned.plan);
    if (text.failed) {
        item_release(item);
        pe_fail(err, PE_ERR_MEMORY, "", "no memory for the reply");
        return NULL;
    }
    return item;
}

/* ---- What is kept; all with the lock held -------------------------------------------------------------- */

static struct item **bucket_of(struct plans *plans, uint64_t hash) {
    return &plans->buckets[(hash ^ hash >> 32) % BUCKETS];
}

static void list_remove(struct plans *plans, struct item *item) {
    *(item->newer ? &item->newer->older : &plans->newest) = item->older;
    *(item->older ? &item->older->newer : &plans->oldest) = item->newer;
}

static void list_add(struct plans *plans, struct item *item) {
    item->newer = NULL;
    item->older = plans->newest;
    *(plans->newest ? &plans->newest->newer : &plans->oldest) = item;
    plans->newest = item;
}

static struct item *search(struct plans *plans, uint64_t hash, const unsigned char *key, size_t n) {
    struct item *item = *bucket_of(plans, hash);
    while (item != NULL && (item->hash != hash || item->key_n != n || memcmp(item->key, key, n) != 0)) {
        item = item->next;
    }
    return item;
}

static void count(const struct plans *plans) {
    if (plans->metrics != NULL) {
        metrics_set(plans->metrics, METRICS_PLANS, (int64_t)plans->n);
        metrics_set(plans->metrics, METRICS_PLAN_BYTES, (int64_t)plans->kept_bytes);
    }
}

static struct item *take_out(struct plans *plans, struct item *item) {
    struct item **link = bucket_of(plans, item->hash);
    while (*link != item) {
        link = &(*link)->next;
    }
    *link = item->next;
    list_remove(plans, item);
    plans->kept_bytes -= item->bytes;
    plans->n--;
    return item;
}

static void put_in(struct plans *plans, struct item *item) {
    struct item **bucket = bucket_of(plans, item->hash);
    atomic_fetch_add(&item->references, 1);
    item->next = *bucket;
    *bucket = item;
    list_add(plans, item);
    plans->kept_bytes += item->bytes;
    plans->n++;
}

/* ---- Taking -------------------------------------------------------------------------------------------- */

static struct item *find(struct plans *plans, const struct plan_key *key, uint64_t hash) {
    pthread_mutex_lock(&plans->lock);
    struct item *item = search(plans, hash, key->bytes, key->n);
    if (item != NULL) {
        atomic_fetch_add(&item->references, 1);
        list_remove(plans, item);
        list_add(plans, item);
    }
    pthread_mutex_unlock(&plans->lock);
    return item;
}

/* Unless another thread was first, or it is too big. */
static void keep(struct plans *plans, struct item *item) {
    struct item *thrown = NULL;
    if (item->bytes > plans->keep_bytes / SHARE) {
        return;
    }
    pthread_mutex_lock(&plans->lock);
    if (search(plans, item->hash, item->key, item->key_n) == NULL) {
        while (plans->n == PLANS_MOST || plans->kept_bytes > plans->keep_bytes - item->bytes) {
            struct item *old = take_out(plans, plans->oldest);
            old->next = thrown;
            thrown = old;
        }
        put_in(plans, item);
        count(plans);
    }
    pthread_mutex_unlock(&plans->lock);
    while (thrown != NULL) {
        struct item *old = thrown;
        thrown = old->next;
        item_release(old);
    }
}

/* The one that is kept, which counts like one that is made; or NULL. */
static struct item *find_counted(struct plans *plans, const struct plan_key *key, uint64_t hash,
                                 struct pe_arena *arena, struct pe_error *err) {
    struct item *item = key->unfit ? NULL : find(plans, key, hash);
    if (item != NULL && pe_arena_charge(arena, pe_plan_bytes(item->planned.plan), err) != PE_OK) {
        item_release(item);
        return NULL;
    }
    return item;
}

const struct planned *plans_take(const struct service *service, const struct pe_spec *spec,
                                 struct pe_arena *arena, struct pe_error *err) {
    struct plans *plans = service->plans;
    struct plan_key key; /* not cleared: its bytes are many */
    uint64_t hash = 0;
    struct item *item = NULL;
    bool keeps = plans != NULL && plans->keep_bytes > 0;
    key.n = 0;
    key.unfit = true;
    if (keeps) {
        plan_key_make(&key, spec);
        hash = digest_words(DIGEST_START, key.bytes, key.n);
        item = find_counted(plans, &key, hash, arena, err);
    }
    bool hit = item != NULL;
    if (!hit && err->code == PE_OK) {
        item = item_make(service, spec, &key, arena, err);
    }
    if (item == NULL) {
        return NULL;
    }
    if (keeps && plans->metrics != NULL) {
        metrics_add(plans->metrics, hit ? METRICS_PLAN_HITS : METRICS_PLAN_MISSES, 1);
    }
    if (hit) {
        return &item->planned;
    }
    item->hash = hash;
    if (!key.unfit && plan_lives_alone(item->planned.plan)) {
        keep(plans, item);
    }
    return &item->planned;
}

void plans_give(const struct planned *planned) {
    item_release(planned != NULL ? item_of(planned) : NULL);
}

struct plans *plans_open(size_t keep_bytes, struct metrics *metrics) {
    struct plans *plans = calloc(1, sizeof *plans);
    if (plans != NULL) {
        plans->keep_bytes = keep_bytes;
        plans->metrics = metrics;
        pthread_mutex_init(&plans->lock, NULL);
    }
    return plans;
}

void plans_close(struct plans *plans) {
    if (plans == NULL) {
        return;
    }
    while (plans->oldest != NULL) {
        item_release(take_out(plans, plans->oldest));
    }
    pthread_mutex_destroy(&plans->lock);
    free(plans);
}
