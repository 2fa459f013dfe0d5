/* SPDX-License-Identifier: MIT
 *
 * Every way in which WavLM's gated bias may be asked for wrongly, and gates at the ends of their range. Its
 * numbers are held against numpy's and published ones by cases.
 */
#include "report_run.h"
#include "suites.h"

#include <math.h>

#define POST   "POST /v1/attention"
#define QK     "\"q\":[[1,0]],\"k\":[[1,0],[0,1]],\"return\":[\"position\"]"
#define FOUR   "{\"encoding\":{\"type\":\"wavlm\",\"num_buckets\":4,\"max_distance\":2"
#define TABLE  ",\"table\":[[1],[2],[3],[4]]"
#define WEIGHT ",\"gate_weight\":[[1,0],[0,1]]"
#define BIAS   ",\"gate_bias\":[0,0]"
#define CONST  ",\"gate_const\":[1]"

static const struct bad {
    const char *request, *body;
    const char *slug, *field, *detail;
} bad[] = {
    /* clang-format off */
    {"GET /v1/bias?type=wavlm&seed=1&head_dim=2&heads=1&query_positions=0:2", NULL, "unsupported", "encoding.type",
     "wavlm depends on the queries and has no bias of its own: attention returns it as position; it can: attention"},
    {POST, "{\"encoding\":\"wavlm\"," QK "}", "missing", "encoding.table",
     "is missing: give the table, or a seed for a random one"},
    {POST, FOUR TABLE BIAS CONST "}," QK "}", "missing", "encoding.gate_weight",
     "is missing: give the table, or a seed for a random one"},
    {POST, FOUR TABLE WEIGHT CONST "}," QK "}", "missing", "encoding.gate_bias",
     "is missing: give the table, or a seed for a random one"},
    {POST, FOUR TABLE WEIGHT BIAS "}," QK "}", "missing", "encoding.gate_const",
     "is missing: give the table, or a seed for a random one"},
    {POST, FOUR ",\"seed\":1" CONST "}," QK "}", "conflict", "encoding.gate_const",
     "is given, and so is seed: give one of them"},
    {POST, "{\"encoding\":{\"type\":\"wavlm\",\"num_buckets\":5,\"seed\":1}," QK "}", "range",
     "encoding.num_buckets",
     "got 5, allowed are even numbers from 4 where bidirectional: half of them are for keys after the query"},
    {POST, "{\"encoding\":{\"type\":\"wavlm\",\"max_distance\":80,\"seed\":1}," QK "}", "range",
     "encoding.max_distance",
     "got 80, allowed is more than 80: with 320 buckets, bidirectional, so many distances have one of their own"},
    {POST, FOUR ",\"table\":[[1],[2],[3]]" WEIGHT BIAS CONST "}," QK "}", "shape", "encoding.table",
     "has shape [3, 1], allowed is [4, H]: a row for each bucket"},
    {POST, FOUR ",\"table\":[1,2,3,4]" WEIGHT BIAS CONST "}," QK "}", "shape", "encoding.table",
     "has shape [4], allowed is [4, H]: a row for each bucket"},
    {POST, FOUR TABLE ",\"gate_weight\":[[1,0],[0,1],[1,1]]" BIAS CONST "}," QK "}", "shape",
     "encoding.gate_weight", "has shape [3, 2], allowed is [n, d] with n even: half of them for each gate"},
    {POST, FOUR TABLE ",\"gate_weight\":[1,0]" BIAS CONST "}," QK "}", "shape",
     "encoding.gate_weight", "has shape [2], allowed is [n, d] with n even: half of them for each gate"},
    {POST, FOUR TABLE ",\"gate_weight\":[[1],[2]]" BIAS CONST "}," QK "}", "shape",
     "encoding.gate_weight", "has shape [2, 1], allowed is [n, 2]: queries are so wide"},
    {POST, FOUR TABLE WEIGHT ",\"gate_bias\":[0,0,0]" CONST "}," QK "}", "shape", "encoding.gate_bias",
     "has shape [3], allowed is [2]: a number for each row of gate_weight"},
    {POST, FOUR TABLE WEIGHT ",\"gate_bias\":[[0,0]]" CONST "}," QK "}", "shape", "encoding.gate_bias",
     "has shape [1, 2], allowed is [2]: a number for each row of gate_weight"},
    {POST, FOUR TABLE WEIGHT BIAS ",\"gate_const\":[1,2]}," QK "}", "shape", "encoding.gate_const",
     "has shape [2], allowed is [1]: a number for each head of table"},
    {POST, FOUR TABLE WEIGHT BIAS ",\"gate_const\":[[1]]}," QK "}", "shape", "encoding.gate_const",
     "has shape [1, 1], allowed is [1]: a number for each head of table"},
    {POST, FOUR ",\"table\":[[1,1],[2,2],[3,3],[4,4]]" WEIGHT BIAS ",\"gate_const\":[1,1]}," QK "}", "shape",
     "encoding.table", "is of 2 heads, but there are 1"},
    {POST, FOUR ",\"seed\":1}," QK ",\"query_positions\":[0.5]}", "range", "query_positions[0]",
     "got 0.5, allowed are whole numbers: buckets are of whole distances"},
    {POST, FOUR ",\"seed\":1,\"head_dim\":3}," QK "}", "conflict", "encoding.head_dim",
     "is 3 but the embeddings have width 2"},
    {POST, FOUR TABLE ",\"gate_weight\":[[1e300,0],[0,1]]" BIAS CONST
     "},\"dtype\":\"float64\",\"q\":[[1e300,0]],\"k\":[[0,0]]}", "range", "encoding",
     "adds numbers that may reach inf to the logits, too near the largest float64, 1.79769e+308"},
    {POST, FOUR ",\"table\":[[3e37],[0],[0],[0]]" WEIGHT BIAS ",\"gate_const\":[9]}," QK "}", "range", "encoding",
     "adds numbers that may reach 3e+38 to the logits, too near the largest float32, 3.40282e+38"},
    /* clang-format on */
};

START_TEST(wrong_ones_are_refused) {
    struct call_try try = {.request = bad[_i].request, .body = bad[_i].body};
    call_expect_problem(&report_ground, &try, 400, bad[_i].slug, bad[_i].field, bad[_i].detail);
    call_try_close(&try);
}
END_TEST

/* A plan made for another width than that of the queries, as a program can. */
START_TEST(the_width_is_that_of_queries) {
    struct pe_error err = {0};
    struct pe_arena *arena = pe_arena_open(1 << 20, NULL, &err);
    struct pe_spec spec;
    struct pe_plan *plan = NULL;
    struct pe_tensor q;
    struct pe_attention_result result;
    struct pe_work work;
    const size_t dim[] = {1, 2};
    ck_assert(!pe_spec_init(arena, &spec, "wavlm", &err) && !pe_spec_set(arena, &spec, "seed", "1", &err));
    ck_assert_int_eq(pe_plan_open(&plan, &spec, &err), PE_ERR_MISSING);
    ck_assert_str_eq(err.path, "head_dim");
    err = (struct pe_error){0};
    ck_assert(!pe_spec_set(arena, &spec, "head_dim", "3", &err) && !pe_plan_open(&plan, &spec, &err) &&
              !pe_tensor_alloc(arena, &q, PE_DTYPE_F32, 2, dim, &err));
    struct pe_attention_args args = {.size = sizeof args, .plan = plan, .q = &q, .k = &q};
    ck_assert_int_eq(pe_attention_open(arena, &work, &result, &args, &err), PE_ERR_CONFLICT);
    ck_assert_str_eq(err.path, "encoding.head_dim");
    ck_assert_str_eq(err.text, "is for a width of 3, but queries are 2 wide");
    pe_plan_close(plan);
    pe_arena_close(arena);
}
END_TEST

/* u and r are 0 or 1 where the sums are large, and g is 2, 1 or what gate_const says. */
START_TEST(gates_at_their_ends) {
    static const struct {
        double q[2], g;
    } at[] = {{{-1e6, 0}, 2}, {{1e6, -1e6}, 1}, {{1e6, 1e6}, 8}, {{0, 0}, .5 * (.5 * 7 - 1) + 2}};
    char body[400];
    for (size_t i = 0; i < PE_COUNT(at); i++) {
        snprintf(body, sizeof body,
                 FOUR TABLE WEIGHT BIAS ",\"gate_const\":[7]},\"q\":[[%g,%g]],\"k\":[[0,0],[0,0],[0,0]],"
                                        "\"query_positions\":[1],\"return\":[\"position\"]}",
                 at[i].q[0], at[i].q[1]);
        double g = at[i].g;
        report_expect(POST, body, "position", REPORT_SHAPE(1, 3), 0, REPORT_VALUES(2 * g, g, 4 * g));
    }
}
END_TEST

/* Biases of all distances are not made for a few keys that are far apart: these would be 8 TB. */
START_TEST(far_keys_take_no_memory) {
    report_expect(POST,
                  FOUR TABLE WEIGHT BIAS ",\"gate_const\":[7]},\"q\":[[-1e6,0]],\"k\":[[0,0],[0,0],[0,0]],"
                                         "\"query_positions\":[1],\"key_positions\":[0,1,1000000000000],"
                                         "\"return\":[\"position\"]}",
                  "position", REPORT_SHAPE(1, 3), 0, REPORT_VALUES(4, 2, 8));
}
END_TEST

Suite *wavlm_suite(void) {
    Suite *suite = suite_create("wavlm");
    TCase *tests = tcase_create("wavlm");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, report_setup, report_teardown);
    tcase_add_loop_test(tests, wrong_ones_are_refused, 0, PE_COUNT(bad));
    tcase_add_test(tests, the_width_is_that_of_queries);
    tcase_add_test(tests, gates_at_their_ends);
    tcase_add_test(tests, far_keys_take_no_memory);
    return suite;
}
