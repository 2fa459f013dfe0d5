/* SPDX-License-Identifier: MIT
 *
 * The buckets of T5. Of num_buckets each direction has n_b, half of them where it looks both ways. Distances
 * n below me = n_b / 2 have a bucket each; the q = n_b - me buckets above share what is left up to
 * max_distance md, in a geometric sequence, and the last one takes all beyond:
 *
 *     bucket(n) = min(n_b - 1, me + floor(q ln(n/me) / ln(md/me)))       n >= me
 *
 * Taken at its word, with logarithms in some floating point, this puts distances on an edge into the bucket
 * below, and which ones depends on the order of the operations: with 32 buckets to 128 the eight steps end at
 * 16, 32 and 64, and 64 falls out. Without logarithms, bucket me + k begins where
 *
 *     n^q me^k >= md^k me^q        or        n^q >= md^k me^(q-k)
 *
 * which whole numbers decide. The edges are found once: a double says where they are to 1e-12, and where that
 * is too near a whole number to tell the side, the two powers are multiplied out.
 */
#include "core/bucket.h"

#include <math.h>

#define LIMBS (PE_BUCKETS_MAX / 2) /* at most so many factors below 2^31 */
#define DOUBT 1e-12                /* relative: a hundred times the error of a double's estimate */

/* ---- Whole numbers of any size ------------------------------------------------------------------------- */

struct whole {
    size_t n;
    uint32_t limb[LIMBS]; /* [n], least significant first, the top one not 0 */
};

static void whole_times(struct whole *x, uint32_t factor, size_t times) {
    while (times-- > 0) {
        uint64_t carry = 0;
        for (size_t i = 0; i < x->n; i++) {
            carry += (uint64_t)x->limb[i] * factor;
            x->limb[i] = (uint32_t)carry;
            carry >>= 32;
        }
        if (carry) {
            x->limb[x->n++] = (uint32_t)carry;
        }
    }
}

/* -1, 0 or 1: a is below b, the same, above. */
static int whole_order(const struct whole *a, const struct whole *b) {
    if (a->n != b->n) {
        return a->n < b->n ? -1 : 1;
    }
    size_t i = a->n - 1;
    while (i > 0 && a->limb[i] == b->limb[i]) {
        i--;
    }
    return (a->limb[i] > b->limb[i]) - (a->limb[i] < b->limb[i]);
}

static size_t common_factor(size_t a, size_t b) {
    while (b) {
        size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* ---- Edges --------------------------------------------------------------------------------------------- */

/* n^q beside md^k me^(q-k): -1, 0 or 1. The q-th powers of a fraction k/q in lowest terms say the same. */
static int order(uint32_t n, uint32_t me, uint32_t md, size_t k, size_t q) {
    struct whole left = {.n = 1, .limb = {1}}, right = {.n = 1, .limb = {1}};
    size_t factor = common_factor(q, k);
    k /= factor;
    q /= factor;
    whole_times(&left, n, q);
    whole_times(&right, md, k);
    whole_times(&right, me, q - k);
    return whole_order(&left, &right);
}

/* The first n at the edge or beyond it, or the first that is beyond it. */
static double edge(const struct pe_bucket_edge *is, bool beyond) {
    double me = is->exact, md = is->max_distance;
    double about = me * exp((double)is->k / (double)is->q * log(md / me)), nearest = round(about);
    if (fabs(about - nearest) > DOUBT * about) {
        return ceil(about);
    }
    int side = order((uint32_t)nearest, is->exact, is->max_distance, is->k, is->q);
    return side > 0 || (side == 0 && !beyond) ? nearest : nearest + 1;
}

double pe_bucket_beyond(const struct pe_bucket_edge *is) {
    return edge(is, true);
}

static size_t half_of(const struct pe_bucket_rule *rule) {
    return (size_t)rule->num_buckets / (rule->bidirectional ? 2 : 1);
}

/* ---- Rules --------------------------------------------------------------------------------------------- */

int pe_buckets_check(const struct pe_bucket_rule *rule, struct pe_error *err) {
    long long n = (long long)rule->num_buckets;
    if (rule->bidirectional && (n % 2 || n < 4)) {
        return pe_fail(err, PE_ERR_RANGE, "num_buckets",
                       "got %lld, allowed are even numbers from 4 where bidirectional: half of them are for "
                       "keys after the query",
                       n);
    }
    long long exact = (long long)half_of(rule) / 2;
    if (rule->max_distance <= exact) {
        return pe_fail(err, PE_ERR_RANGE, "max_distance",
                       "got %lld, allowed is more than %lld: with %lld buckets%s so many distances have one "
                       "of their own",
                       (long long)rule->max_distance, exact, n,
                       rule->bidirectional ? ", bidirectional," : "");
    }
    return PE_OK;
}

size_t pe_buckets_edges(const struct pe_bucket_rule *rule) {
    size_t half = half_of(rule);
    return half - half / 2 - 1;
}

void pe_buckets_open(struct pe_buckets *buckets, const struct pe_bucket_rule *rule, double *edges) {
    size_t half = half_of(rule), exact = half / 2, n = pe_buckets_edges(rule);
    for (size_t k = 1; k <= n; k++) {
        const struct pe_bucket_edge is = {(uint32_t)exact, (uint32_t)rule->max_distance, k, half - exact};
        edges[k - 1] = edge(&is, false);
    }
    *buckets = (struct pe_buckets){
        .half = half, .exact = exact, .bidirectional = rule->bidirectional, .edges = edges};
}

/* How many edges are at or below n. */
static size_t edges_passed(const struct pe_buckets *buckets, double n) {
    size_t low = 0, high = buckets->half - buckets->exact - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (buckets->edges[middle] <= n) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

size_t pe_buckets_find(const struct pe_buckets *buckets, double distance) {
    size_t first = buckets->bidirectional && distance > 0 ? buckets->half : 0;
    double n = buckets->bidirectional ? fabs(distance) : fmax(-distance, 0);
    return first + (n < (double)buckets->exact ? (size_t)n : buckets->exact + edges_passed(buckets, n));
}
