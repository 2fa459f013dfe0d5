/* SPDX-License-Identifier: MIT
 *
 * A plan is found by its descriptor: the type and all parameters as bytes, each with whether it was given,
 * before anything is resolved. Equal bytes make equal plans; hashes only find the bucket.
 *
 * Kept is only what lives by itself. A plan whose parameters still point into its request (posted tensors,
 * names) goes with it, and so does one with a table that was loaded, which is quickly made.
 *
 * Rejected: to let a request wait for another one that makes the same plan. The wait would need a deadline and
 * a way to be stopped, and would block the thread that serves the connections; so both make it, and one is kept.
 */
#include "api/plans.h"

#include "digest.h"
#include "metrics.h"
#include "wire/echo.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define KEY_BYTES ((size_t)4096) /* longer descriptors are not kept */
#define BUCKETS   ((size_t)1024)
#define SHARE     4 /* no plan takes more than so much of what may be kept: it would throw out the others */

struct key {
    size_t n;
    bool unfit;
    unsigned char bytes[KEY_BYTES];
};

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

/* ---- The descriptor ------------------------------------------------------------------------------------ */

static void key_add(struct key *key, const void *bytes, size_t n) {
    if (key->unfit || n > KEY_BYTES - key->n) {
        key->unfit = true;
        return;
    }
    if (n > 0) { /* else bytes may be NULL */
        memcpy(key->bytes + key->n, bytes, n);
    }
    key->n += n;
}

static void key_text(struct key *key, const char *text) {
    unsigned char given = text != NULL;
    key_add(key, &given, 1);
    if (text != NULL) {
        key_add(key, text, strlen(text) + 1);
    }
}

static void key_tensor(struct key *key, const struct pe_tensor *tensor) {
    int shape[2] = {tensor ? (int)tensor->dtype : 0, tensor ? tensor->rank : -1};
    key_add(key, shape, sizeof shape);
    if (tensor != NULL) {
        key_add(key, tensor->dim, (size_t)tensor->rank * sizeof tensor->dim[0]);
        key_add(key, tensor->data, pe_tensor_bytes(tensor));
    }
}

static void key_fields(struct key *key, const struct pe_field *fields, size_t n, const void *base);

static void key_object(struct key *key, const struct pe_field *row, const void *object) {
    unsigned char given = object != NULL;
    key_add(key, &given, 1);
    if (object != NULL) {
        key_fields(key, row->fields, row->n_fields, object);
    }
}

static void key_value(struct key *key, const struct pe_field *row, const void *member) {
    const struct pe_scale *scale = member;
    const struct pe_ints *ints = member;
    const struct pe_table *table = member;
    switch (row->kind) {
    case PE_KIND_BOOL:
        key_add(key, member, sizeof(bool));
        break;
    case PE_KIND_INT:
        key_add(key, member, sizeof(int64_t));
        break;
    case PE_KIND_REAL:
        key_add(key, member, sizeof(double));
        break;
    case PE_KIND_CHOICE:
        key_add(key, member, sizeof(int));
        break;
    case PE_KIND_SCALE:
        key_add(key, &scale->number, sizeof scale->number);
        key_add(key, &scale->choice, sizeof scale->choice);
        break;
    case PE_KIND_TEXT:
        key_text(key, *(const char *const *)member);
        break;
    case PE_KIND_INTS:
        key_add(key, &ints->n, sizeof ints->n);
        key_add(key, ints->v, ints->n * sizeof ints->v[0]);
        break;
    case PE_KIND_TENSOR:
        key_tensor(key, *(const struct pe_tensor *const *)member);
        break;
    case PE_KIND_OBJECT:
        key_object(key, row, *(const void *const *)member);
        break;
    case PE_KIND_TABLE:
        key->unfit = key->unfit || table->name || table->tensor;
        break;
    case PE_KIND_NAMES:
        key->unfit = key->unfit || ((const struct pe_names *)member)->n;
        break;
    case PE_KIND_CONFIG:
        key->unfit = key->unfit || ((const struct pe_config *)member)->n;
        break;
    case PE_KIND_TEXTS: /* no encoding has these */
    case PE_KIND_TENSORS:
    case PE_KIND_POSITIONS:
    case PE_KIND_ENCODING:
        key->unfit = true;
        break;
    }
}

static void key_fields(struct key *key, const struct pe_field *fields, size_t n, const void *base) {
    key_add(key, base, sizeof(uint64_t)); /* which are given */
    for (size_t i = 0; i < n; i++) {
        key_value(key, &fields[i], (const char *)base + fields[i].offset);
    }
}

static void key_make(struct key *key, const struct pe_spec *spec) {
    key->unfit = false;
    key_add(key, &spec->encoding, sizeof spec->encoding);
    key_fields(key, spec->encoding->fields, spec->encoding->n_fields, spec->params);
}

/* ---- Does it live by itself? --------------------------------------------------------------------------- */

static bool holds(const struct pe_plan *plan, const void *start) {
    uintptr_t from = (uintptr_t)plan, at = (uintptr_t)start;
    return at >= from && at - from < pe_plan_bytes(plan);
}

static bool holds_fields(const struct pe_plan *plan, const struct pe_field *fields, size_t n,
                         const void *base);

static bool holds_value(const struct pe_plan *plan, const struct pe_field *row, const void *member) {
    const void *start = NULL;
    const struct pe_table *table = member;
    switch (row->kind) {
    case PE_KIND_TEXT:
    case PE_KIND_TENSOR:
    case PE_KIND_OBJECT:
        start = *(const void *const *)member;
        break;
    case PE_KIND_TABLE:
        return !table->name && !table->tensor;
    case PE_KIND_NAMES:
        return ((const struct pe_names *)member)->n == 0;
    case PE_KIND_CONFIG:
        return ((const struct pe_config *)member)->n == 0;
    case PE_KIND_BOOL:
    case PE_KIND_INT:
    case PE_KIND_REAL:
    case PE_KIND_CHOICE:
    case PE_KIND_SCALE:
    case PE_KIND_INTS:
        return true;
    default:
        return false;
    }
    if (start == NULL) {
        return true;
    }
    if (!holds(plan, start)) {
        return false;
    }
    return row->kind == PE_KIND_TENSOR   ? holds(plan, ((const struct pe_tensor *)start)->data)
           : row->kind == PE_KIND_OBJECT ? holds_fields(plan, row->fields, row->n_fields, start)
                                         : true;
}

static bool holds_fields(const struct pe_plan *plan, const struct pe_field *fields, size_t n,
                         const void *base) {
    bool all = true;
    for (size_t i = 0; all && i < n; i++) {
        all = holds_value(plan, &fields[i], (const char *)base + fields[i].offset);
    }
    return all;
}

static bool lives_alone(const struct pe_plan *plan) {
    const struct pe_encoding_info *info = pe_plan_encoding(plan);
    return holds_fields(plan, info->fields, info->n_fields, pe_plan_params(plan));
}

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

static struct item *item_make(const struct pe_spec *spec, const struct key *key, struct pe_error *err) {
    struct item *item = malloc(sizeof *item + key->n);
    if (item == NULL) {
        pe_fail(err, PE_ERR_MEMORY, "", "no memory for a plan");
        return NULL;
    }
    *item = (struct item){.key_n = key->n};
    atomic_init(&item->references, 1);
    memcpy(item->key, key->bytes, key->n);
    if (pe_plan_open(&item->planned.plan, spec, err) != PE_OK) {
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

static struct item *find(struct plans *plans, const struct key *key, uint64_t hash) {
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

const struct planned *plans_take(struct plans *plans, const struct pe_spec *spec, struct pe_error *err) {
    struct key key; /* not cleared: its bytes are many */
    uint64_t hash = 0;
    struct item *item = NULL;
    bool keeps = plans != NULL && plans->keep_bytes > 0;
    key.n = 0;
    key.unfit = true;
    if (keeps) {
        key_make(&key, spec);
        hash = digest_words(DIGEST_START, key.bytes, key.n);
        item = key.unfit ? NULL : find(plans, &key, hash);
    }
    if (keeps && plans->metrics != NULL) {
        metrics_add(plans->metrics, item != NULL ? METRICS_PLAN_HITS : METRICS_PLAN_MISSES, 1);
    }
    if (item != NULL) {
        return &item->planned;
    }
    item = item_make(spec, &key, err);
    if (item == NULL) {
        return NULL;
    }
    item->hash = hash;
    if (!key.unfit && lives_alone(item->planned.plan)) {
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
