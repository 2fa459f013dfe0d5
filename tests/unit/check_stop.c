/* SPDX-License-Identifier: MIT
 *
 * Ending early, without a clock: who is asked counts how often, and says yes at one of the questions. After
 * that no more than a few may follow, whichever it was; and there must be a question for every so many
 * numbers, which is what bounds the time between two.
 */
#include "call_run.h"
#include "suites.h"

#include "kernels/linalg.h"
#include "posenc.h"
#include "posenc_identify.h"

#include <stdlib.h>
#include <string.h>

/* Questions that may follow the yes: each loop on the way out may ask once more. */
#define AFTERWARDS 12
#define SIDE       ((size_t)256)
#define MASK       ((size_t)200000)

struct counter {
    size_t asked, yes_at; /* 0: never */
};

static bool count(void *context) {
    struct counter *counter = context;
    counter->asked++;
    return counter->yes_at && counter->asked >= counter->yes_at;
}

/* What a case works with: numbers for its tensors, and one error that carries the question. */
struct ground {
    struct pe_arena *arena;
    struct pe_error err;
    struct counter counter;
    struct pe_stop stop;
    const float *numbers; /* [SIDE*SIDE] */
    const char *type;     /* of the encoding */
};

static struct pe_plan *plan_open(struct ground *g, const char *width) {
    struct pe_spec spec;
    struct pe_plan *plan = NULL;
    const struct pe_stop *stop = g->err.stop;
    g->err.stop = NULL;
    ck_assert_int_eq(pe_spec_init(g->arena, &spec, g->type, &g->err), 0);
    ck_assert_int_eq(pe_spec_set(g->arena, &spec, "d_model", width, &g->err), 0);
    ck_assert_int_eq(pe_plan_open(&plan, &spec, &g->err), 0);
    g->err.stop = stop;
    return plan;
}

static struct pe_tensor view(const struct ground *g, size_t rows, size_t columns) {
    return (struct pe_tensor){(void *)(uintptr_t)g->numbers, PE_DTYPE_F32, 2, {rows, columns}};
}

/* ---- The cases: each opens work, and runs it where it was opened --------------------------------------- */

static bool run(const struct ground *g, const struct pe_work *work) {
    return g->err.code == PE_OK && pe_work_run(work);
}

static bool encode_run(struct ground *g) {
    struct pe_plan *plan = plan_open(g, "256");
    struct pe_positions positions = {.length = 1024, .axes = 1, .step = 1};
    struct pe_tensor out;
    struct pe_work work;
    (void)!pe_encode_open(g->arena, &work, &out, plan, &positions, PE_DTYPE_F32, &g->err);
    bool done = run(g, &work);
    pe_plan_close(plan);
    return done;
}

static bool apply_run(struct ground *g, double scale) {
    struct pe_plan *plan = plan_open(g, "256");
    struct pe_tensor x = view(g, SIDE, SIDE), out;
    struct pe_work work;
    struct pe_apply_args args = {.size = sizeof args,
                                 .plan = plan,
                                 .embeddings = &x,
                                 .scale = scale,
                                 .scale_mode = PE_EMBEDDING_SCALE_NUMBER};
    (void)!pe_apply_open(g->arena, &work, &out, &args, &g->err);
    bool done = run(g, &work);
    pe_plan_close(plan);
    return done;
}

static bool apply_plainly(struct ground *g) {
    return apply_run(g, 1);
}

/* So near the largest number that every sum is looked at while it is planned. */
static bool apply_searched(struct ground *g) {
    return apply_run(g, 3.4028234e38);
}

static bool attention_run(struct ground *g, struct pe_attention_args args) {
    struct pe_tensor x = view(g, SIDE, SIDE), w = x;
    struct pe_attention_result result;
    struct pe_work work;
    args.size = sizeof args;
    if (args.embeddings) {
        args.embeddings = &x;
        args.w_q = args.w_k = args.w_v = &w;
        args.plan = plan_open(g, "256");
    } else {
        args.q = args.k = args.v = &x;
    }
    (void)!pe_attention_open(g->arena, &work, &result, &args, &g->err);
    bool done = run(g, &work);
    pe_plan_close((struct pe_plan *)(uintptr_t)args.plan);
    return done;
}

static bool attention_of_q(struct ground *g) {
    return attention_run(g, (struct pe_attention_args){.outputs = PE_ATTENTION_OUTPUT | PE_ATTENTION_LOGITS |
                                                                  PE_ATTENTION_CONTENT,
                                                       .dtype = PE_DTYPE_BF16});
}

static const struct pe_tensor embedded;

static bool attention_projected(struct ground *g) {
    return attention_run(
        g, (struct pe_attention_args){
               .embeddings = &embedded, .heads = 4, .outputs = PE_ATTENTION_TERMS | PE_ATTENTION_POSITION});
}

static bool block_run(struct ground *g) {
    const uint64_t seed = 1;
    struct pe_tensor x = view(g, SIDE, 64);
    struct pe_block_args args = {.size = sizeof args,
                                 .embeddings = &x,
                                 .naming = PE_BLOCK_GPT2,
                                 .weights_seed = &seed,
                                 .layers = 2,
                                 .heads = 4,
                                 .dtype = PE_DTYPE_BF16};
    struct pe_block_result result;
    struct pe_work work;
    (void)!pe_block_open(g->arena, &work, &result, &args, &g->err);
    return run(g, &work);
}

static bool shift_run(struct ground *g) {
    struct pe_plan *plan = plan_open(g, "64");
    struct pe_positions positions = {.length = 256, .axes = 1, .step = 1};
    struct pe_shift_args args = {
        .size = sizeof args, .plan = plan, .positions = &positions, .distance = 1, .matrix = true};
    struct pe_shift_result result;
    struct pe_work work;
    (void)!pe_shift_open(g->arena, &work, &result, &args, &g->err);
    bool done = run(g, &work);
    pe_plan_close(plan);
    return done;
}

/* One row whose map is wide: the questions are within it. */
static bool shift_of_a_row(struct ground *g) {
    struct pe_plan *plan = plan_open(g, "1024");
    struct pe_positions positions = {.length = 1, .axes = 1, .step = 1};
    struct pe_shift_args args = {.size = sizeof args, .plan = plan, .positions = &positions, .distance = 1};
    struct pe_shift_result result;
    struct pe_work work;
    (void)!pe_shift_open(g->arena, &work, &result, &args, &g->err);
    g->counter.asked = g->counter.yes_at ? g->counter.asked : 0;
    bool done = run(g, &work);
    pe_plan_close(plan);
    return done;
}

static bool head_run(struct ground *g) {
    struct pe_plan *plan = plan_open(g, "512");
    struct pe_positions positions = {.length = 256, .axes = 1, .step = 1};
    struct pe_head_args args = {.size = sizeof args, .plan = plan, .positions = &positions, .offset = -1};
    struct pe_head_result result;
    struct pe_work work;
    (void)!pe_head_open(g->arena, &work, &result, &args, &g->err);
    bool done = run(g, &work);
    pe_plan_close(plan);
    return done;
}

static bool convert_run(struct ground *g) {
    struct pe_tensor weight = view(g, SIDE, SIDE);
    struct pe_convert_args args = {.size = sizeof args,
                                   .from = PE_ROTARY_HALVES,
                                   .to = PE_ROTARY_INTERLEAVED,
                                   .head_dim = 64,
                                   .heads = 4,
                                   .tensor = &weight,
                                   .axis = 1};
    struct pe_convert_result result;
    struct pe_work work;
    (void)!pe_convert_open(g->arena, &work, &result, &args, &g->err);
    return run(g, &work);
}

static bool check_run(struct ground *g) {
    struct pe_plan *plan = plan_open(g, "256");
    struct pe_tensor table = view(g, SIDE, SIDE);
    struct pe_check_args args = {.size = sizeof args, .plan = plan, .tensor = &table};
    struct pe_check_result result;
    struct pe_work work;
    (void)!pe_check_open(g->arena, &work, &result, &args, &g->err);
    bool done = run(g, &work);
    pe_plan_close(plan);
    return done;
}

/* Many narrow vectors: a row of pairs is short, so the questions must go on from row to row. */
static bool properties_run(struct ground *g) {
    struct pe_plan *plan = plan_open(g, "2");
    struct pe_positions positions = {.length = 2048, .axes = 1, .step = 1};
    struct pe_properties_args args = {.size = sizeof args, .plan = plan, .positions = &positions};
    struct pe_properties_result result;
    struct pe_work work;
    (void)!pe_properties_open(g->arena, &work, &result, &args, &g->err);
    bool done = run(g, &work);
    pe_plan_close(plan);
    return done;
}

static bool positions_made(struct ground *g, const struct pe_positions_rule *rule) {
    struct pe_positions positions = {0};
    (void)!pe_positions_make(g->arena, &positions, rule, &g->err);
    double *all = pe_arena_array(g->arena, pe_positions_count(&positions), 2 * sizeof *all, &g->err);
    if (all) {
        (void)!pe_positions_fill(&positions, all, &g->err);
    }
    return g->err.code == PE_OK;
}

static bool positions_of_mask(struct ground *g) {
    struct pe_tensor mask = {.dtype = PE_DTYPE_F32, .rank = 1, .dim = {MASK}};
    mask.data = calloc(MASK, sizeof(float));
    bool done = positions_made(g, &(struct pe_positions_rule){.mask = &mask, .rule = PE_POSITION_RULE_GPT2});
    free(mask.data);
    return done;
}

static bool positions_of_grid(struct ground *g) {
    static double sizes[2] = {512, 512};
    struct pe_tensor grid = {sizes, PE_DTYPE_F64, 1, {2}};
    return positions_made(g, &(struct pe_positions_rule){.grid = &grid});
}

static bool positions_of_lengths(struct ground *g) {
    static double of[2] = {200000, 6000};
    struct pe_tensor lengths = {of, PE_DTYPE_F64, 1, {2}};
    return positions_made(g, &(struct pe_positions_rule){.lengths = &lengths});
}

/* Whatever is identified, nothing explains it: all is tried. */
static bool identify_run(struct ground *g, bool turned) {
    struct pe_tensor x = view(g, SIDE / 4, SIDE / 4), y = x;
    struct pe_identify_args args = {.size = sizeof args};
    struct pe_identify_result result;
    y.data = (void *)(uintptr_t)(g->numbers + SIDE);
    args.tensor = turned ? NULL : &x;
    args.cos = turned ? &x : NULL;
    args.sin = turned ? &y : NULL;
    return pe_identify_open(g->arena, &result, &args, &g->err) == PE_OK;
}

static bool identify_vectors(struct ground *g) {
    return identify_run(g, false);
}

static bool identify_turns(struct ground *g) {
    return identify_run(g, true);
}

/* Each with the least number of questions: one for 2^16 numbers at least, or for a tile of a product. */
static const struct {
    const char *name, *type;
    bool (*run)(struct ground *g);
    size_t least;
} cases[] = {
    {"encode", "random", encode_run, 16},
    {"encode sinusoids", "sinusoidal", encode_run, 16},
    {"apply", "random", apply_plainly, 8},
    {"apply searched", "naive", apply_searched, 512},
    {"attention", "none", attention_of_q, 256},
    {"attention projected", "sinusoidal", attention_projected, 1000},
    {"block", "none", block_run, 2 * (8 + 4 + 6) * SIDE},
    {"shift fitted", "random", shift_run, 64 + 256},
    {"shift exact", "sinusoidal", shift_run, 64 + 256},
    {"shift of a row", "random", shift_of_a_row, 3 + 1024 * 1024 / (1 << 16)},
    {"head", "sinusoidal", head_run, 256 * 256 * 512 / (1 << 16)},
    {"convert", "none", convert_run, 5},
    {"check", "sinusoidal", check_run, SIDE},
    {"properties", "sinusoidal", properties_run, 2048 * 1023 * 2 / (1 << 16)},
    {"identify", "none", identify_vectors, 50},
    {"identify turns", "none", identify_turns, 10},
    {"positions of a mask", "none", positions_of_mask, 9},
    {"positions of a grid", "none", positions_of_grid, 12},
    {"positions of lengths", "none", positions_of_lengths, 12},
};

/* Runs a case with a yes at that question. Returns whether it came to its end. */
static bool case_run(size_t i, size_t yes_at, struct counter *counter) {
    struct ground g = {.counter.yes_at = yes_at, .stop.asked = count, .type = cases[i].type};
    float *numbers = malloc(SIDE * SIDE * sizeof *numbers);
    for (size_t n = 0; n < SIDE * SIDE; n++) {
        numbers[n] = (float)(n * 7919 % 1021) / 1020;
    }
    g.numbers = numbers;
    g.stop.context = &g.counter;
    g.err.stop = &g.stop;
    g.arena = pe_arena_open((size_t)64 << 20, NULL, &g.err);
    ck_assert_ptr_nonnull(g.arena);
    bool done = cases[i].run(&g);
    ck_assert_msg(g.err.code == PE_OK || (yes_at && g.err.code == PE_ERR_STOPPED), "%s: %s: %s",
                  cases[i].name, g.err.path, g.err.text);
    pe_arena_close(g.arena);
    free(numbers);
    *counter = g.counter;
    return done;
}

START_TEST(every_question_may_be_the_last) {
    size_t i = (size_t)_i;
    struct counter counter;
    ck_assert_msg(case_run(i, 0, &counter), "%s", cases[i].name);
    size_t all = counter.asked;
    ck_assert_msg(all >= cases[i].least, "%s: asked %zu times, expected %zu", cases[i].name, all,
                  cases[i].least);
    size_t step = all / 12 + 1;
    for (size_t yes_at = 1; yes_at + AFTERWARDS < all; yes_at += yes_at < 8 ? 1 : step) {
        ck_assert_msg(!case_run(i, yes_at, &counter), "%s went on to its end", cases[i].name);
        ck_assert_msg(counter.asked <= yes_at + AFTERWARDS, "%s: yes at %zu, asked %zu times", cases[i].name,
                      yes_at, counter.asked);
    }
}
END_TEST

/* ---- Plans --------------------------------------------------------------------------------------------- */

/* Whichever question was the last: a plan that a program gets is whole. */
START_TEST(a_plan_that_was_stopped_is_none) {
    static float numbers[512 * 128];
    struct pe_tensor table = {numbers, PE_DTYPE_F32, 2, {512, 128}};
    for (size_t yes_at = 0, all = 0; yes_at <= all; yes_at++) {
        struct counter counter = {.yes_at = yes_at};
        const struct pe_stop stop = {count, &counter};
        struct pe_error err = {0};
        struct pe_arena *arena = pe_arena_open((size_t)1 << 20, NULL, &err);
        struct pe_spec spec;
        struct pe_plan *plan = NULL;
        ck_assert(!pe_spec_init(arena, &spec, "deberta", &err));
        ck_assert(!pe_spec_set_tensor(&spec, "rel_embeddings", &table, &err));
        err.stop = &stop;
        ck_assert_int_eq(pe_plan_open(&plan, &spec, &err), yes_at ? PE_ERR_STOPPED : PE_OK);
        all = yes_at ? all : counter.asked;
        ck_assert_uint_ge(all, 4);
        pe_plan_close(plan);
        pe_arena_close(arena);
    }
}
END_TEST

/* ---- Products ------------------------------------------------------------------------------------------ */

/* A product of whole numbers is exact however it is cut: tiles must cover it all, each once. */
START_TEST(products_are_cut_and_stay_whole) {
    static const size_t sizes[][3] = {
        {1, 1, 1}, {3, 700000, 1}, {300, 3000, 700}, {2000, 3, 40000}, {130, 1, 9}};
    const size_t *s = sizes[_i];
    size_t m = s[0], n = s[1], k = s[2];
    float *a = malloc(m * k * sizeof *a), *b = malloc(k * n * sizeof *b), *c = malloc(m * n * sizeof *c);
    for (size_t i = 0; i < m * k; i++) {
        a[i] = (float)(i / k % 5);
    }
    for (size_t i = 0; i < k * n; i++) {
        b[i] = (float)(i % n % 3);
    }
    struct counter counter = {0};
    const struct pe_stop stop = {count, &counter};
    struct pe_gemm gemm = {.dtype = PE_DTYPE_F32,
                           .m = m,
                           .n = n,
                           .k = k,
                           .alpha = 1,
                           .a = {a, k},
                           .b = {b, n},
                           .c = {c, n},
                           .stop = &stop};
    pe_gemm_run(&gemm);
    for (size_t i = 0; i < m * n; i++) {
        ck_assert_msg(c[i] == (float)(i / n % 5 * (i % n % 3) * k), "element %zu", i);
    }
    ck_assert_uint_ge(counter.asked, m * n * k / ((size_t)1 << 28) + 1);
    free(a);
    free(b);
    free(c);
}
END_TEST

/* ---- Calls --------------------------------------------------------------------------------------------- */

/* Asked to end before they are planned, requests are answered with the reason. */
START_TEST(planning_ends_when_the_call_is_stopped) {
    static const char *const requests[] = {
        "GET /v1/positions?grid=[300,300]",
        "GET /v1/encode?type=sinusoidal&d_model=4&positions.grid=[300000]",
        "GET /v1/encode?type=sinusoidal&d_model=4&positions.lengths=[300000]",
        "GET /v1/shift?type=sinusoidal&d_model=4096&distance=1",
        "POST /v1/apply",
        "POST /v1/batch",
    };
    static const char *const bodies[PE_COUNT(requests)] = {
        [4] = "{\"encoding\":{\"type\":\"none\"},\"embeddings\":[[1,2]]}",
        [5] = "{\"requests\":[{\"op\":\"positions\",\"positions\":[1]}]}",
    };
    struct call_ground ground;
    call_ground_open(&ground);
    for (int reason = CALL_STOP_DEADLINE; reason <= CALL_STOP_SHUTDOWN; reason++) {
        struct call_try try = {.request = requests[_i], .body = bodies[_i], .stop_first = true};
        try.stop = (enum call_stop_reason)reason;
        call_try(&ground, &try);
        ck_assert_int_eq(try.status, reason == CALL_STOP_DEADLINE ? 504 : 503);
        ck_assert_str_eq(call_try_slug(&try), reason == CALL_STOP_DEADLINE ? "deadline" : "draining");
        ck_assert_uint_eq(try.n_parts, 0); /* it was not planned */
        call_try_close(&try);
    }
    call_ground_close(&ground);
}
END_TEST

Suite *stop_suite(void) {
    Suite *suite = suite_create("stop");
    TCase *tcase = tcase_create("stop");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, every_question_may_be_the_last, 0, PE_COUNT(cases));
    tcase_add_test(tcase, a_plan_that_was_stopped_is_none);
    tcase_add_loop_test(tcase, products_are_cut_and_stay_whole, 0, 5);
    tcase_add_loop_test(tcase, planning_ends_when_the_call_is_stopped, 0, 6);
    suite_add_tcase(suite, tcase);
    return suite;
}
