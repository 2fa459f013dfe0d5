/* SPDX-License-Identifier: MIT
 *
 * Buckets of distances and T5's bias: every |distance| to 4096 against tables made with whole numbers of any
 * size (tests/golden/make_buckets.py), and every way in which it may be asked for wrongly.
 */
#include "report_run.h"
#include "suites.h"

#include "core/bucket.h"

#include <math.h>
#include <string.h>

struct bucket_config {
    int64_t num_buckets, max_distance;
    bool bidirectional;
    size_t n, first; /* of bucket_edges */
};
#include "../golden/bucket_edges.h"

#define FAR 4096

/* ---- Buckets ------------------------------------------------------------------------------------------- */

/* The bucket of a distance into the past: the last one that begins at or below it. */
static size_t bucket_of(const struct bucket_config *config, double n) {
    size_t b = config->n - 1;
    while (bucket_edges[config->first + b] > n) {
        b--;
    }
    return b;
}

static void expect_bucket(const struct pe_buckets *buckets, const struct bucket_config *config, double n) {
    size_t back = bucket_of(config, n), ahead = config->bidirectional && n > 0 ? config->n + back : 0;
    ck_assert_msg(pe_buckets_find(buckets, -n) == back, "%lld/%lld: %.17g keys back is %zu, not %zu",
                  (long long)config->num_buckets, (long long)config->max_distance, n,
                  pe_buckets_find(buckets, -n), back);
    ck_assert_msg(pe_buckets_find(buckets, n) == ahead, "%lld/%lld: %.17g keys ahead is %zu, not %zu",
                  (long long)config->num_buckets, (long long)config->max_distance, n,
                  pe_buckets_find(buckets, n), ahead);
}

START_TEST(buckets_are_those_of_whole_numbers) {
    const struct bucket_config *config = &bucket_configs[_i];
    const struct pe_bucket_rule rule = {config->num_buckets, config->max_distance, config->bidirectional};
    struct pe_error err = {0};
    struct pe_buckets buckets;
    ck_assert_int_eq(pe_buckets_check(&rule, &err), PE_OK);
    pe_buckets_open(&buckets, &rule, report_doubles(pe_buckets_edges(&rule)));
    for (int n = 0; n <= FAR; n++) {
        expect_bucket(&buckets, config, n);
    }
    for (size_t b = 1; b < config->n; b++) {
        double first = bucket_edges[config->first + b];
        expect_bucket(&buckets, config, first - 1);
        expect_bucket(&buckets, config, first);
    }
    expect_bucket(&buckets, config, (double)config->max_distance);
    expect_bucket(&buckets, config, PE_POSITION_MAX);
    expect_bucket(&buckets, config, 2 * PE_POSITION_MAX);
}
END_TEST

/* The widest rule there is: edges in order, and all distances of each direction in its own buckets. */
START_TEST(the_widest_rule) {
    const struct pe_bucket_rule rule = {PE_BUCKETS_MAX, PE_BUCKETS_MAX_DISTANCE, _i == 1};
    struct pe_buckets buckets;
    pe_buckets_open(&buckets, &rule, report_doubles(pe_buckets_edges(&rule)));
    size_t half = _i == 1 ? PE_BUCKETS_MAX / 2 : PE_BUCKETS_MAX, last = 0;
    for (double n = 0; n <= PE_POSITION_MAX; n = n < FAR ? n + 1 : floor(n * 1.001)) {
        size_t bucket = pe_buckets_find(&buckets, -n);
        ck_assert(bucket >= last && bucket < half && (n < (double)(half / 2)) == (bucket < half / 2));
        last = bucket;
    }
    ck_assert_uint_eq(last, half - 1);
}
END_TEST

/* The same by the service, whose rows are slices of one where positions are in steps, and are made one by
 * one where they are listed. The table's numbers are those of its rows. */
START_TEST(rows_in_steps_and_lists_are_the_same) {
    const struct bucket_config *config = &bucket_configs[0];
    char body[1000] = "{\"encoding\":{\"type\":\"t5\",\"table\":[[0]";
    for (int b = 1; b < 32; b++) {
        snprintf(body + strlen(body), sizeof body - strlen(body), ",[%d]", b);
    }
    size_t at = strlen(body);
    snprintf(body + at, sizeof body - at,
             "]},\"heads\":1,\"query_positions\":\"0:9\",\"key_positions\":\"-4096:4097\"}");
    struct report_tensor steps = report_tensor("POST /v1/bias", body, "bias");
    snprintf(body + at, sizeof body - at,
             "]},\"heads\":1,\"query_positions\":[0,1,2,3,4,5,6,7,8],\"key_positions\":\"-4096:4097\"}");
    struct report_tensor list = report_tensor("POST /v1/bias", body, "bias");
    ck_assert_uint_eq(steps.n, 9 * (2 * FAR + 1));
    ck_assert_mem_eq(steps.values, list.values, steps.n * sizeof(double));
    for (int i = 0; i < 9; i++) {
        for (int j = -FAR; j <= FAR; j++) {
            double wanted = (double)(bucket_of(config, abs(j - i)) + (j > i ? config->n : 0));
            ck_assert_double_eq(steps.values[i * (2 * FAR + 1) + j + FAR], wanted);
        }
    }
}
END_TEST

/* ---- Errors -------------------------------------------------------------------------------------------- */

#define GET  "GET /v1/bias?query_positions=0:2&heads=2&type=t5&"
#define POST "POST /v1/bias?query_positions=0:2&heads=2"
#define T5   "{\"encoding\":{\"type\":\"t5\","
#define TWO  "\"num_buckets\":2,\"bidirectional\":false,"

static const struct bad {
    const char *request, *body;
    const char *slug, *field, *detail;
} bad[] = {
    /* clang-format off */
    {GET, NULL, "missing", "encoding.table", "is missing: give the table, or a seed for a random one"},
    {POST, T5 TWO "\"table\":[[1,2],[3,4]],\"seed\":1}}", "conflict", "encoding.table",
     "is given, and so is seed: give one of them"},
    {GET "table=nope", NULL, "unknown_name", "encoding.table", "no table is named \"nope\"; loaded are: none"},
    {GET "seed=-1", NULL, "range", "encoding.seed",
     "must be at least 0 and at most 9007199254740992, got -1"},
    {GET "seed=1&std=0", NULL, "range", "encoding.std", "must be above 0 and at most 1000, got 0"},
    {GET "seed=1&bias_scale=1e7", NULL, "range", "encoding.bias_scale",
     "must be at least -1000000 and at most 1000000, got 10000000"},
    {GET "seed=1&num_buckets=0", NULL, "range", "encoding.num_buckets",
     "must be at least 2 and at most 4096, got 0"},
    {GET "seed=1&num_buckets=1&bidirectional=false", NULL, "range", "encoding.num_buckets",
     "must be at least 2 and at most 4096, got 1"},
    {GET "seed=1&num_buckets=4098", NULL, "range", "encoding.num_buckets",
     "must be at least 2 and at most 4096, got 4098"},
    {GET "seed=1&num_buckets=2", NULL, "range", "encoding.num_buckets",
     "got 2, allowed are even numbers from 4 where bidirectional: half of them are for keys after the query"},
    {GET "seed=1&num_buckets=31", NULL, "range", "encoding.num_buckets",
     "got 31, allowed are even numbers from 4 where bidirectional: half of them are for keys after the query"},
    {GET "seed=1&max_distance=0", NULL, "range", "encoding.max_distance",
     "must be at least 1 and at most 2147483647, got 0"},
    {GET "seed=1&max_distance=2147483648", NULL, "range", "encoding.max_distance",
     "must be at least 1 and at most 2147483647, got 2147483648"},
    {GET "seed=1&max_distance=8", NULL, "range", "encoding.max_distance",
     "got 8, allowed is more than 8: with 32 buckets, bidirectional, so many distances have one of their own"},
    {GET "seed=1&max_distance=16&bidirectional=false", NULL, "range", "encoding.max_distance",
     "got 16, allowed is more than 16: with 32 buckets so many distances have one of their own"},
    {GET "seed=1&table_axes=heads", NULL, "choice", "encoding.table_axes",
     "must be one of buckets_heads, heads_buckets, got \"heads\""},
    {POST, T5 "\"table\":[[1,2],[3,4]]}}", "shape", "encoding.table",
     "has shape [2, 2], allowed is [32, H] for 32 buckets with table_axes=buckets_heads"},
    {POST, T5 TWO "\"table\":[[1,2],[3,4],[5,6]]}}", "shape", "encoding.table",
     "has shape [3, 2], allowed is [2, H] for 2 buckets with table_axes=buckets_heads"},
    {POST, T5 TWO "\"table_axes\":\"heads_buckets\",\"table\":[[1,2,3],[4,5,6]]}}", "shape", "encoding.table",
     "has shape [2, 3], allowed is [H, 2] for 2 buckets with table_axes=heads_buckets"},
    {POST, T5 TWO "\"table\":[1,2]}}", "shape", "encoding.table",
     "has shape [2], allowed is [2, H] for 2 buckets with table_axes=buckets_heads"},
    {POST, T5 TWO "\"table\":[[[1,2],[3,4]]]}}", "shape", "encoding.table",
     "has shape [1, 2, 2], allowed is [2, H] for 2 buckets with table_axes=buckets_heads"},
    {POST, T5 TWO "\"table\":[[],[]]}}", "shape", "encoding.table",
     "has shape [2, 0], allowed is [2, H] for 2 buckets with table_axes=buckets_heads"},
    {POST, T5 TWO "\"table\":[[1,2,3],[4,5,6]]}}", "shape", "encoding.table",
     "is of 3 heads, but there are 2"},
    {POST, T5 TWO "\"table_axes\":\"heads_buckets\",\"table\":[[1,2]]}}", "shape", "encoding.table",
     "is of 1 heads, but there are 2"},
    {"POST /v1/attention", T5 TWO "\"table\":[[1,2],[3,4]]},\"q\":[[1,0]],\"k\":[[1,0]]}", "shape",
     "encoding.table", "is of 2 heads, but there are 1"},
    {"GET /v1/bias?heads=1&type=t5&seed=1&query_positions=0,1.5", NULL, "range", "query_positions[1]",
     "got 1.5, allowed are whole numbers: buckets are of whole distances"},
    {"GET /v1/bias?heads=1&type=t5&seed=1&query_positions=0:2&key_positions=0:1:0.5", NULL, "range",
     "key_positions[1]", "got 0.5, allowed are whole numbers: buckets are of whole distances"},
    {"POST /v1/attention", T5 "\"seed\":1},\"q\":[[1,0]],\"k\":[[1,0]],\"key_positions\":[0.25]}", "range",
     "key_positions[0]", "got 0.25, allowed are whole numbers: buckets are of whole distances"},
    {POST "&dtype=float16&format=npy", T5 TWO "\"bias_scale\":1000,\"table\":[[1,2],[3,70]]}}", "range",
     "key_positions", "biases may reach 70000, beyond the largest float16, 65504"},
    {"POST /v1/attention", T5 TWO "\"table\":[[1e38],[0]]},\"q\":[[1,0]],\"k\":[[1,0]]}", "range", "encoding",
     "adds numbers that may reach 1e+38 to the logits, too near the largest float32, 3.40282e+38"},
    /* clang-format on */
};

START_TEST(wrong_ones_are_refused) {
    struct call_try try = {.request = bad[_i].request, .body = bad[_i].body};
    call_expect_problem(&report_ground, &try, 400, bad[_i].slug, bad[_i].field, bad[_i].detail);
    call_try_close(&try);
}
END_TEST

Suite *t5_suite(void) {
    Suite *suite = suite_create("t5");
    TCase *tests = tcase_create("t5");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, report_setup, report_teardown);
    tcase_add_loop_test(tests, buckets_are_those_of_whole_numbers, 0, PE_COUNT(bucket_configs));
    tcase_add_loop_test(tests, the_widest_rule, 0, 2);
    tcase_add_test(tests, rows_in_steps_and_lists_are_the_same);
    tcase_add_loop_test(tests, wrong_ones_are_refused, 0, PE_COUNT(bad));
    return suite;
}
