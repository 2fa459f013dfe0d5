/* SPDX-License-Identifier: MIT
 *
 * Buckets of relative positions, as T5 and its kin have them: near distances have a bucket each, far ones
 * share theirs in a geometric sequence.
 */
#ifndef PE_BUCKET_H
#define PE_BUCKET_H

#include "posenc.h"

#define PE_BUCKETS_MAX          4096
#define PE_BUCKETS_MAX_DISTANCE INT32_MAX

/* What the user says. */
struct pe_bucket_rule {
    int64_t num_buckets, max_distance;
    bool bidirectional;
};

struct pe_buckets {
    size_t half;  /* n_b: buckets of one direction */
    size_t exact; /* me: distances with a bucket each */
    bool bidirectional;
    const double *edges; /* [n_b - me - 1]: the first distance in bucket me + 1, me + 2 .. n_b - 1 */
};

/* PE_ERR_RANGE at "num_buckets" or "max_distance". */
int pe_buckets_check(const struct pe_bucket_rule *rule, struct pe_error *err);
size_t pe_buckets_edges(const struct pe_bucket_rule *rule);
/* edges [pe_buckets_edges] is filled in, and kept. */
void pe_buckets_open(struct pe_buckets *buckets, const struct pe_bucket_rule *rule, double *edges);
/* The bucket of key - query, a whole number. */
size_t pe_buckets_find(const struct pe_buckets *buckets, double distance);

/* The edge me (md/me)^(k/q) of a geometric sequence, 1 <= k <= q < PE_BUCKETS_MAX / 2, me < md. */
struct pe_bucket_edge {
    uint32_t exact, max_distance; /* me, md */
    size_t k, q;
};
/* The first whole number above it, decided by whole numbers, too: where the edge itself belongs to the bucket
 * below. */
double pe_bucket_beyond(const struct pe_bucket_edge *edge);

#endif
