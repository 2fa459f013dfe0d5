/* SPDX-License-Identifier: MIT
 *
 * Every way in which KERPLE, FIRE, Sandwich, Swin, Swin V2, custom biases, and some of the heads may be asked
 * for wrongly.
 */
#include "report_run.h"
#include "suites.h"

#define GET       "GET /v1/bias?query_positions=0:2&heads=2&type="
#define BARE      "POST /v1/bias?heads=2"
#define POST      BARE "&query_positions=0:2"
#define ATTENTION "POST /v1/attention"
#define QK        ",\"q\":[[1,0]],\"k\":[[1,0]]}"
#define OF(type)  "{\"encoding\":{\"type\":\"" type "\","
#define W11       "\"w1\":[1,2],\"b1\":[0,0],"
#define NET       "\"window\":[2,2],\"w1\":[[1,0],[0,1]],\"b1\":[0,0],\"w2\":[[1,0],[2,0]]"
#define SOME      "{\"encoding\":\"alibi\",\"heads\":6,\"head_index\":"

static const struct bad {
    const char *request, *body;
    const char *slug, *field, *detail;
} bad[] = {
    /* clang-format off */
    {GET "kerple&p=1", NULL, "missing", "encoding.a",
     "is required: an array of numbers, positive; one for all heads or one for each"},
    {GET "kerple&a=1", NULL, "missing", "encoding.p",
     "is required: an array of numbers, positive; one for all heads or one for each; form power: at most 2"},
    {GET "kerple&p=1&a=0", NULL, "range", "encoding.a[0]", "got 0, allowed are numbers above 0 and up to 1e+06"},
    {GET "kerple&p=1,-2&a=1", NULL, "range", "encoding.p[1]", "got -2, allowed are numbers above 0 and up to 1e+06"},
    {GET "kerple&form=power&p=1,2.5&a=1", NULL, "range", "encoding.p[1]",
     "got 2.5, allowed are numbers above 0 and up to 2"},
    {GET "kerple&p=1,2,3&a=1", NULL, "shape", "encoding.p", "has 3 numbers, but there are 2 heads"},
    {GET "kerple&p=1&a=1,2,3", NULL, "shape", "encoding.a", "has 3 numbers, but there are 2 heads"},
    {POST, OF("kerple") "\"p\":[[1,2]],\"a\":1}}", "shape", "encoding.p",
     "has shape [1, 2], allowed are one number or a list of one per head"},
    {POST, OF("kerple") "\"p\":[],\"a\":1}}", "shape", "encoding.p",
     "has shape [0], allowed are one number or a list of one per head"},
    {GET "kerple&form=linear&p=1&a=1", NULL, "choice", "encoding.form", "must be one of log, power, got \"linear\""},

    {GET "fire", NULL, "missing", "encoding.w1", "is missing: give the table, or a seed for a random one"},
    {POST, OF("fire") "\"w1\":[1]}}", "missing", "encoding.b1",
     "is missing: give the table, or a seed for a random one"},
    {POST, OF("fire") "\"seed\":1,\"w2\":[[1]]}}", "conflict", "encoding.w2",
     "is given, and so is seed: give one of them"},
    {POST, OF("fire") "\"w1\":[[1,2],[3,4]],\"b1\":[0],\"w2\":[[1,1]],\"b2\":[0,0]}}", "shape", "encoding.w1",
     "has shape [2, 2], allowed is [n], [1, n] or [n, 1] with n up to 4096"},
    {POST, OF("fire") "\"w1\":[1,2],\"b1\":[0],\"w2\":[[1,1]],\"b2\":[0,0]}}", "shape", "encoding.b1",
     "has shape [1], allowed is [n], with the n of w1"},
    {POST, OF("fire") W11 "\"w2\":[[1,1]],\"b2\":[0,0]}}", "shape", "encoding.w2",
     "has shape [1, 2], allowed is [n, H], with the n of w1"},
    {POST, OF("fire") W11 "\"w2\":[[1,1],[1,1]],\"b2\":[0]}}", "shape", "encoding.b2",
     "has shape [1], allowed is [H], with the H of w2"},
    {POST, OF("fire") W11 "\"w2\":[[1],[1]],\"b2\":[0]}}", "shape", "encoding.w2", NULL},
    {GET "fire&seed=1&c=-1", NULL, "range", "encoding.c", "must be at least 0 and at most 1000000, got -1"},
    {GET "fire&seed=1&eps=0&c=0", NULL, "range", "encoding.eps", "got 0, which with c or L of 0 divides by zero"},
    {GET "fire&seed=1&eps=0&L=0", NULL, "range", "encoding.eps", "got 0, which with c or L of 0 divides by zero"},
    {GET "fire&w1=nope&b1=nope&w2=nope&b2=nope", NULL, "unknown_name", "encoding.w1",
     "no table is named \"nope\"; loaded are: none"},

    {GET "sandwich", NULL, "missing", "encoding.d_model", NULL},
    {BARE, OF("swin") "\"window\":[1,1],\"table\":[[1,2,3]]}}", "shape", "encoding.table",
     "has columns for 3 heads, but there are 2"},
    {"GET /v1/bias?type=alibi&heads=2&query_positions=[[0],[1]]&key_positions=[[0],[1],[2]]", NULL, "shape",
     "key_positions", "are of 3 sequences, query_positions of 2"},
    {GET "sandwich&d_model=7", NULL, "range", "encoding.d_model", "got 7, allowed are even numbers"},
    {GET "sandwich&d_model=4098", NULL, "range", "encoding.d_model",
     "must be at least 2 and at most 4096, got 4098"},
    {GET "sandwich&d_model=4&base=0.5", NULL, "range", "encoding.base", NULL},
    {"GET /v1/bias?heads=1&type=sandwich&d_model=4&query_positions=-9007199254740992&key_positions=2", NULL, "range",
     "key_positions", "are up to 9007199254740994 from the queries, allowed are distances up to 2^53"},

    {GET "swin&seed=1", NULL, "missing", "encoding.window", NULL},
    {GET "swin&window=2", NULL, "shape", "encoding.window", "must be [h, w], got 1 numbers"},
    {GET "swin&window=2,2,2", NULL, "shape", "encoding.window", "must be [h, w], got 3 numbers"},
    {GET "swin&window=0,2&seed=1", NULL, "range", "encoding.window[0]", NULL},
    {GET "swin&window=2,1025&seed=1", NULL, "range", "encoding.window[1]", NULL},
    {GET "swin&window=2,2", NULL, "missing", "encoding.table",
     "is missing: give the table, or a seed for a random one"},
    {GET "swin&window=2,2&seed=1&cls_rows=2", NULL, "range", "encoding.cls_rows",
     "must be at least 0 and at most 1, got 2"},
    {"GET /v1/bias?heads=1&type=swin&window=2,2&seed=1&query_positions=0,4", NULL, "range", "query_positions[1]",
     "got 4, allowed are the 4 tokens of the window, row by row from 0"},
    {"GET /v1/bias?heads=1&type=swin&window=2,2&seed=1&key_positions=0,0.5", NULL, "range", "key_positions[1]", NULL},
    {"GET /v1/bias?heads=1&type=swin&window=2,2&seed=1&key_positions=-1:2", NULL, "range", "key_positions[0]", NULL},
    {ATTENTION, OF("swin") "\"window\":[1,1],\"seed\":1},\"q\":[[1],[1]],\"k\":[[1],[1]]}", "range", NULL, NULL},

    {BARE, OF("swin_v2") "\"window\":[2,2]}}", "missing", "encoding.table",
     "is missing: give the table, or a seed for a random one"},
    {BARE, OF("swin_v2") NET ",\"seed\":1}}", "conflict", "encoding.seed",
     "is given, and so is the network (w1, b1, w2): give one of them"},
    {BARE, OF("swin_v2") NET ",\"table\":[[1,2]]}}", "conflict", "encoding.table",
     "is given, and so is the network (w1, b1, w2): give one of them"},
    {BARE, OF("swin_v2") "\"window\":[2,2],\"b2\":[1,2]}}", "missing", "encoding.w1",
     "is missing: give the table, or a seed for a random one"},
    {BARE, OF("swin_v2") "\"window\":[2,2],\"w1\":[[1,0]],\"b1\":[0],\"w2\":[[1,1]]}}", "shape", "encoding.w1",
     "has shape [1, 2], allowed is [2, n] with n up to 4096"},
    {BARE, OF("swin_v2") "\"window\":[2,2],\"w1\":[[1],[0]],\"b1\":[0,0],\"w2\":[[1,1]]}}", "shape", "encoding.b1",
     "has shape [2], allowed is [n], with the n of w1"},
    {BARE, OF("swin_v2") "\"window\":[2,2],\"w1\":[[1],[0]],\"b1\":[0],\"w2\":[[1,1],[1,1]]}}", "shape",
     "encoding.w2", "has shape [2, 2], allowed is [n, H], with the n of w1 and H up to 1024"},
    {BARE, OF("swin_v2") NET ",\"b2\":[1]}}", "shape", "encoding.b2",
     "has shape [1], allowed is [H], with the H of w2"},
    {BARE, OF("swin_v2") "\"window\":[2,2],\"w1\":[[1],[0]],\"b1\":[0],\"w2\":[[1]]}}", "shape", "encoding.w2",
     "has columns for 1 heads, but there are 2"},
    {BARE, OF("swin_v2") "\"window\":[2,2],\"table\":[[1,2],[3,4]]}}", "shape", "encoding.table",
     "has shape [2, 2], allowed is [9, H] for a window of 2 x 2, H up to 1024"},
    {BARE, OF("swin_v2") "\"window\":[2,2],\"cls_rows\":1,\"table\":[[1,2],[3,4]]}}", "shape", "encoding.table",
     "has shape [2, 2], allowed is [12, H] for a window of 2 x 2 with a class token, H up to 1024"},
    {BARE, OF("swin_v2") NET ",\"pretrained_window\":[8]}}", "shape", "encoding.pretrained_window",
     "must be [h, w], got 1 numbers"},
    {BARE, OF("swin_v2") NET ",\"pretrained_window\":[8,1]}}", "range", "encoding.pretrained_window",
     "has 8 x 1 patches, but offsets of the window's 2 x 2 cannot be told by a side of 1"},
    {BARE, OF("swin_v2") NET ",\"coordinates\":\"cr\",\"pretrained_window\":[8,8]}}", "conflict",
     "encoding.pretrained_window",
     "divides the coordinates=swin of a network (w1, b1, w2), not those of cr"},
    {BARE, OF("swin_v2") "\"window\":[2,2],\"seed\":1,\"pretrained_window\":[8,8]}}", "conflict",
     "encoding.pretrained_window",
     "divides the coordinates=swin of a network (w1, b1, w2), which is not given"},
    {BARE, OF("swin_v2") NET ",\"logit_scale\":[1,2,3]}}", "shape", "encoding.logit_scale",
     "has 3 numbers, but there are 2 heads"},
    {BARE, OF("swin_v2") NET ",\"logit_scale\":[]}}", "shape", "encoding.logit_scale",
     "has shape [0], allowed is one number or a list of one per head"},

    {POST, "{\"encoding\":\"custom\"}", "missing", "encoding.matrix", "is missing: give it, or by_distance"},
    {POST, OF("custom") "\"matrix\":[[1]],\"by_distance\":[1]}}", "conflict", "encoding.by_distance",
     "is given, and so is matrix: give one of them"},
    {POST, OF("custom") "\"matrix\":[1,2]}}", "shape", "encoding.matrix",
     "has shape [2], allowed are [Tq, Tk] and [H, Tq, Tk]"},
    {POST, OF("custom") "\"by_distance\":[1,2]}}", "shape", "encoding.by_distance",
     "has shape [2], allowed are [2n - 1] and [H, 2n - 1]: an odd number of distances"},
    {POST, OF("custom") "\"by_distance\":[1]}}", "range", "key_positions",
     "are up to 1 from the queries, but by_distance has 0 to each side"},
    {POST, OF("custom") "\"matrix\":[[1,2,3]]}}", "range", "query_positions",
     "1 is not in the matrix, which has 0 to 0"},
    {POST "&key_positions=0:2", OF("custom") "\"matrix\":[[1],[2]]}}", "range", "key_positions",
     "1 is not in the matrix, which has 0 to 0"},
    {BARE, OF("custom") "\"matrix\":[[[1]],[[2]],[[3]]]}}", "shape", "encoding.matrix",
     "is for 3 heads, but there are 2"},
    {BARE "&query_positions=0,0.5", OF("custom") "\"matrix\":[[1,2],[3,4]]}}", "range", "query_positions[1]",
     "got 0.5, allowed are whole numbers: numbers are given for whole positions alone"},

    {ATTENTION, SOME "[6]" QK, "range", "head_index[0]", "got 6, allowed are heads from 0 to 5"},
    {ATTENTION, SOME "[-1]" QK, "range", "head_index[0]", "got -1, allowed are heads from 0 to 5"},
    {ATTENTION, SOME "[0.5]" QK, "range", "head_index[0]", "got 0.5, allowed are heads from 0 to 5"},
    {ATTENTION, SOME "[]" QK, "shape", "head_index", "has shape [0], allowed is a list of one head or more"},
    {ATTENTION, SOME "[[1]]" QK, "shape", "head_index", "has shape [1, 1], allowed is a list of one head or more"},
    {ATTENTION, SOME "[1,2]" QK, "shape", "head_index", "names 2 heads, but q has 1"},
    {ATTENTION, "{\"encoding\":\"alibi\",\"head_index\":[0]" QK, "missing", "heads",
     "is missing: how many the model has, of head_index"},
    {ATTENTION, "{\"heads\":1,\"head_index\":[0]" QK, "conflict", "head_index",
     "says which heads of a relative encoding these are, and there is none"},
    {ATTENTION, SOME "[0],\"embeddings\":[[1,0]]}", "conflict", "head_index",
     "is for posted q and k: embeddings make all heads"},
    {ATTENTION, SOME "[0]}", "missing", "q", NULL},
    {ATTENTION, "{\"encoding\":\"alibi\",\"heads\":6" QK, "conflict", "heads",
     "is 6 but q has H = 1: head_index says which of the model's heads these are"},
    {ATTENTION, SOME "[0],\"q\":[[[1]],[[1]]],\"k\":[[[1]],[[1]]]}", "shape", "head_index",
     "names 1 heads, but q has 2"},
    {"POST /v1/bias", SOME "[5,6],\"query_positions\":[0]}", "range", "head_index[1]",
     "got 6, allowed are heads from 0 to 5"},
    {"POST /v1/bias", SOME "[-1],\"query_positions\":[0]}", "range", "head_index[0]", NULL},
    {"POST /v1/bias", SOME "[1e300],\"query_positions\":[0]}", "range", "head_index[0]", NULL},
    {"POST /v1/bias", SOME "[],\"query_positions\":[0]}", "shape", "head_index", NULL},
    {"POST /v1/bias", SOME "[[0]],\"query_positions\":[0]}", "shape", "head_index", NULL},
    {"POST /v1/bias", "{\"encoding\":\"alibi\",\"head_index\":[0],\"query_positions\":[0]}", "missing", "heads", NULL},
    {"POST /v1/bias", "{\"encoding\":\"alibi\",\"heads\":0,\"query_positions\":[0]}", "range", "heads", NULL},
    /* clang-format on */
};

START_TEST(wrong_ones_are_refused) {
    struct call_try try = {.request = bad[_i].request, .body = bad[_i].body};
    call_expect_problem(&report_ground, &try, 400, bad[_i].slug, bad[_i].field, bad[_i].detail);
    call_try_close(&try);
}
END_TEST

/* A head that is asked for twice comes twice, and in the order in which they are asked for. */
START_TEST(heads_may_come_twice) {
    report_expect("POST /v1/bias", SOME "[4,1,4],\"query_positions\":[1],\"key_positions\":[0]}", "bias",
                  REPORT_SHAPE(3, 1, 1), 0, REPORT_VALUES(-.5, -.0625, -.5));
}
END_TEST

/* What only programs can leave out. */
START_TEST(arguments_of_programs) {
    struct pe_error err = {0};
    struct pe_arena *arena = pe_arena_open(1 << 20, NULL, &err);
    struct pe_spec spec;
    struct pe_plan *plan = NULL;
    struct pe_work work;
    struct pe_tensor out;
    ck_assert_int_eq(pe_spec_init(arena, &spec, "alibi", &err), PE_OK);
    ck_assert_int_eq(pe_plan_open(&plan, &spec, &err), PE_OK);
    const struct pe_positions positions = {.length = 3, .axes = 1, .step = 1};
    const struct {
        const struct pe_plan *plan;
        size_t heads;
        const char *field;
    } rows[] = {{NULL, 2, "encoding"}, {plan, 0, "heads"}};
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct pe_error missing = {0};
        const struct pe_bias_args args = {
            .size = sizeof args, .plan = rows[i].plan, .heads = rows[i].heads, .query_positions = &positions};
        ck_assert_int_eq(pe_bias_open(arena, &work, &out, &args, &missing), PE_ERR_MISSING);
        ck_assert_str_eq(missing.path, rows[i].field);
    }
    pe_plan_close(plan);
    pe_arena_close(arena);
}
END_TEST

/* The biases of a window are made once, and kept. */
START_TEST(a_window_of_too_many_biases) {
    struct call_try try = {.request = BARE,
                           .body = OF("swin_v2") "\"window\":[1024,1024],\"w1\":[[1],[1]],\"b1\":[0],"
                                                 "\"w2\":[[1,1]]}}"};
    call_expect_problem(
        &report_ground, &try, 413, "limit", "encoding.window",
        "a window of 1024 x 1024 with 2 heads has 8380418 biases, at most 4194304 are allowed");
    call_try_close(&try);
}
END_TEST

Suite *relative_errors_suite(void) {
    Suite *suite = suite_create("relative_errors");
    TCase *tests = tcase_create("relative_errors");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, report_setup, report_teardown);
    tcase_add_loop_test(tests, wrong_ones_are_refused, 0, PE_COUNT(bad));
    tcase_add_test(tests, heads_may_come_twice);
    tcase_add_test(tests, arguments_of_programs);
    tcase_add_test(tests, a_window_of_too_many_biases);
    return suite;
}
