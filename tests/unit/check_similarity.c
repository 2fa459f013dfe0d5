/* SPDX-License-Identifier: MIT
 *
 * How similarity, properties, shift and head may be asked for wrongly, with the field that is named and what is
 * told; and what the library says to programs.
 */
#include "call_run.h"
#include "suites.h"

#include "ops/vectors.h"

#include <math.h>
#include <string.h>

static struct call_ground ground;

static void setup(void) {
    call_ground_open(&ground);
}

static void teardown(void) {
    call_ground_close(&ground);
}

#define SIMILAR "GET /v1/similarity?type=sinusoidal&d_model=4&"
#define POST    "POST /v1/similarity"
#define SIN4    "{\"encoding\":{\"type\":\"sinusoidal\",\"d_model\":4},\"positions\":[0,1],"
#define CARD    "GET /v1/properties?"
#define HEAD    "GET /v1/head?type=sinusoidal&d_model=4&"
#define ROPE    "GET /v1/head?type=rope&layout=halves&head_dim=4&"

static const struct bad {
    const char *request, *body;
    int status;
    const char *slug, *field, *detail; /* NULL: any */
} bad[] = {
    /* clang-format off */
    {SIMILAR "metric=dot", NULL, 400, "missing", "positions", NULL},
    {SIMILAR "positions=0:3&metric=euclid", NULL, 400, "choice", "metric",
     "must be one of dot, cosine, got \"euclid\""},
    {SIMILAR "positions=0,1&return=by_offset", NULL, 400, "conflict", "return",
     "by_offset is for positions that are said by their step, as 0:100 or start, count and step, not by a list"},
    {SIMILAR "positions=0,1&return=spread", NULL, 400, "conflict", "return", NULL},
    {SIMILAR "positions=0:2&return=vectors", NULL, 400, "choice", "return", NULL},
    {"GET /v1/similarity?type=alibi&positions=0:3", NULL, 400, "unsupported", "encoding.type",
     "alibi has no vectors to compare; it can: bias, attention"},
    {"GET /v1/similarity?type=none&positions=0:3", NULL, 400, "unsupported", "encoding.type", NULL},
    {"GET /v1/similarity?type=sinusoidal&d_model=512&positions=0:10000", NULL, 413, "limit", "positions",
     "10000 positions with vectors of 512 numbers are 5.12e+10 multiplications, at most 1.72e+10 are allowed"},
    {"GET /v1/similarity?type=sinusoidal&d_model=65536&positions=0:2&w_seed=1", NULL, 413, "limit", "positions",
     "2 positions with vectors of 65536 numbers are 1.72e+10 multiplications, at most 1.72e+10 are allowed"},
    {POST, SIN4 "\"w_q\":[[1],[2],[3],[4]]}", 400, "missing", "w_k", "is missing: give both or none"},
    {POST, SIN4 "\"w_k\":[[1],[2],[3],[4]]}", 400, "missing", "w_q", "is missing: give both or none"},
    {POST, SIN4 "\"w_q\":[[1],[2]],\"w_k\":[[1],[2]]}", 400, "shape", "w_q",
     "has shape [2, 1], allowed is [4, n]: the vectors have 4 numbers"},
    {POST, SIN4 "\"w_q\":[[1],[2],[3],[4]],\"w_k\":[[1,1],[2,1],[3,1],[4,1]]}", 400, "shape", "w_k",
     "has 2 columns but w_q has 1"},
    {POST, SIN4 "\"w_q\":[[1],[2],[3],[4]],\"w_k\":[[1],[2],[3],[4]],\"w_seed\":1}", 400, "conflict", "w_seed",
     "makes weights, and w_q and w_k are given"},
    {CARD "type=sinusoidal&d_model=4&positions=[[0,1],[1,2]]", NULL, 400, "shape", "positions",
     "are of several sequences, allowed is one"},
    {CARD "type=t5&seed=1&positions=0:4", NULL, 400, "unsupported", "encoding.type",
     "t5 has no vectors to measure; it can: bias, attention"},
    {CARD "type=sinusoidal&d_model=512&positions=0:10000", NULL, 413, "limit", "positions",
     "10000 positions are 5.12e+10 operations, at most 1.72e+10 are allowed"},
    {"GET /v1/shift?type=fourier&features=nerf&n_axes=2&n_frequencies=2&positions=[[0,1],[1,2],[3,4]]&distance=1",
     NULL, 400, "shape", "positions", "have 2 coordinates each, a shift is by a distance along one"},
    {HEAD "positions=0:4", NULL, 400, "missing", "goal", NULL},
    {"POST /v1/head", "{\"encoding\":{\"type\":\"sinusoidal\",\"d_model\":4},\"goal\":{}}", 400, "missing",
     "goal.attend", "is missing: a number of tokens, or first"},
    {HEAD "goal.attend=-1&goal.first=true", NULL, 400, "conflict", "goal.attend",
     "is given, and so is first"},
    {HEAD "goal.attend=-1.5", NULL, 400, "range", "goal.attend",
     "got -1.5, allowed are whole numbers of tokens, or first"},
    {HEAD "goal.attend=last", NULL, 400, NULL, "goal.attend", NULL},
    {HEAD "goal.attend=1", NULL, 400, "range", "goal.attend",
     "got 1, allowed are -11 to 0 with 12 tokens and a causal mask"},
    {HEAD "goal.attend=12&causal=false", NULL, 400, "range", "goal.attend",
     "got 12, allowed are -11 to 11 with 12 tokens"},
    {HEAD "goal.attend=-1&positions=0:1", NULL, 400, "range", "positions",
     "are 1, allowed are 2 to 512 tokens"},
    {HEAD "goal.attend=-1&positions=0:513", NULL, 400, "range", "positions",
     "are 513, allowed are 2 to 512 tokens"},
    {HEAD "goal.attend=-1&positions=0,1,3", NULL, 400, "range", "positions",
     "are not evenly spaced, as one map for all needs"},
    {HEAD "goal.attend=-1&positions=3:0:-1", NULL, 400, "range", "positions",
     "go in steps of -1, allowed are steps above 0"},
    {HEAD "goal.attend=-1&positions=[[0,1],[1,2]]", NULL, 400, "shape", "positions",
     "are not one sequence with one coordinate each"},
    {HEAD "goal.attend=-1&width=6", NULL, 400, "range", "width",
     "is 6, allowed are even numbers up to 4: the pairs of the encoding"},
    {HEAD "goal.attend=-1&width=3", NULL, 400, "range", "width", NULL},
    {ROPE "goal.attend=-1&width=2", NULL, 400, "conflict", "width",
     "is 2, but the encoding turns heads of 4"},
    {ROPE "goal=first&positions=0:1e12:1e10", NULL, 400, "unsupported", "positions",
     "go so far that even the slowest pair turns past the first token"},
    {"GET /v1/head?type=random&d_model=4&goal.attend=-1", NULL, 400, "unsupported", "encoding.type",
     "random has no exact map from a position to the next, of which a head is built; it can: encode, apply, attention, shift"},
    /* clang-format on */
};

START_TEST(bad_requests) {
    const struct bad *row = &bad[_i];
    struct call_try try = {.request = row->request, .body = row->body};
    call_expect_problem(&ground, &try, row->status, row->slug, row->field, row->detail);
    call_try_close(&try);
}
END_TEST

/* A head that cannot tell its token from the others says so: at a base of 1 all pairs turn alike. */
START_TEST(an_impossible_head) {
    struct call_try try = {
        .request =
            "GET /v1/head?type=sinusoidal&d_model=2&goal.attend=-1&position_scale=1e-7&return=weights"};
    call_try(&ground, &try);
    ck_assert_int_eq(try.status, 200);
    const json_t *mass = json_object_get(try.json, "mass");
    ck_assert(json_is_false(json_object_get(mass, "possible")));
    ck_assert_str_eq(json_string_value(json_object_get(mass, "detail")),
                     "no other token is far enough behind the wanted one");
    call_try_close(&try);
}
END_TEST

/* Steps that no double is, as a list or a range, are steps nevertheless; so are those of a float32. */
START_TEST(steps_are_those_that_were_meant) {
    static const struct {
        const char *positions;
        int status;
    } of[] = {
        {"0,0.1,0.2,0.3,0.4,0.5,0.6,0.7", 200},
        {"0:0.8:0.1", 200},
        {"1000000.1,1000000.2,1000000.3,1000000.4", 200},
        {"0,0.10000000149,0.20000000298,0.30000001192,0.40000000596", 200},
        {"0,0.1,0.2,0.301", 400},
        {"0,1,3", 400},
        {"0,0,0", 400},
        {"3,2,1", 400},
    };
    char request[300];
    snprintf(request, sizeof request, "GET /v1/head?type=sinusoidal&d_model=64&goal.attend=-1&positions=%s",
             of[_i].positions);
    struct call_try try = {.request = request};
    call_try(&ground, &try);
    ck_assert_msg(try.status == of[_i].status, "%s: %.300s", request, try.reply);
    if (try.status == 200) {
        const json_t *mass = json_object_get(try.json, "mass");
        ck_assert_msg(json_number_value(json_object_get(mass, "min")) > 0.95, "%s", try.reply);
    } else {
        ck_assert_str_eq(json_string_value(json_object_get(try.json, "field")), "positions");
    }
    call_try_close(&try);
}
END_TEST

/* The same bits on one thread and on several, and with an element type of 16 bits. */
START_TEST(parts_agree) {
    static const char *const requests[] = {
        "GET /v1/similarity?type=sinusoidal&d_model=256&positions=0:300&format=raw&return=gram",
        "GET /v1/head?type=sinusoidal&d_model=512&positions=0:200&goal.attend=-2",
        "GET /v1/head?type=rope&layout=halves&head_dim=256&positions=0:200&goal.attend=-2&dtype=float64",
        "GET /v1/properties?type=sinusoidal&d_model=256&positions=0:300",
        "GET /v1/properties?type=naive&form=binary&d_model=11&positions=0:1500",
    };
    for (size_t i = 0; i < 5; i++) {
        struct call_try one = {.request = requests[i]};
        call_try(&ground, &one);
        ck_assert_int_eq(one.status, 200);
        ck_assert_msg(one.n_parts > 1, "%s", requests[i]);
        for (int threads = -1; threads <= 8; threads += 9) {
            struct call_try other = {.request = requests[i], .threads = threads};
            call_try(&ground, &other);
            ck_assert_uint_eq(one.reply_n, other.reply_n);
            ck_assert_mem_eq(one.reply, other.reply, one.reply_n);
            call_try_close(&other);
        }
        call_try_close(&one);
    }
    struct call_try half = {
        .request =
            "GET /v1/head?type=sinusoidal&d_model=8&goal.attend=0&format=npy&dtype=float16&return=weights"};
    call_try(&ground, &half);
    ck_assert_uint_eq(half.reply_n, 128 + 2 * 12 * 12);
    call_try_close(&half);
}
END_TEST

/* Lengths and distances of any size: 3, 4, 5 and 5, 12, 13 times a power of ten. */
START_TEST(vectors_of_any_size_are_measured) {
    static const struct {
        const char *unit;
        double value;
    } of[] = {{"e-200", 1e-200}, {"", 1}, {"e200", 1e200}, {"e-320", 1e-320}};
    static const struct {
        const char *part, *member;
        double times;
    } expected[] = {
        {"unique", "closest", 5},           {"norm", "min", 0}, {"norm", "max", 13}, {"step", "min", 5},
        {"step", "max", 8.246211251235321}, /* sqrt(68) */
        {"bounded", "largest", 12}};
    const char *e = of[_i].unit;
    char body[400];
    snprintf(body, sizeof body,
             "{\"encoding\":{\"type\":\"learned\",\"table\":{\"dtype\":\"float64\",\"shape\":[3,2],\"data\":"
             "[0,0,3%s,4%s,5%s,12%s]}},\"positions\":[0,1,2]}",
             e, e, e, e);
    struct call_try try = {.request = "POST /v1/properties", .body = body};
    call_try(&ground, &try);
    ck_assert_msg(try.status == 200, "%s", try.reply);
    ck_assert(json_is_true(json_object_get(json_object_get(try.json, "unique"), "holds")));
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        const json_t *part = json_object_get(try.json, expected[i].part);
        double got = json_number_value(json_object_get(part, expected[i].member)) / of[_i].value;
        double within = of[_i].value < 1e-300 ? 1e-2 : 1e-14; /* 1e-320 has three digits */
        ck_assert_msg(fabs(got - expected[i].times) <= within * expected[i].times, "%s.%s: %s",
                      expected[i].part, expected[i].member, try.reply);
    }
    call_try_close(&try);
}
END_TEST

/* One row apart from others that differ by less than the square root of its last digit. */
START_TEST(a_large_vector_hides_no_small_ones) {
    struct call_try try = {
        .request = "POST /v1/properties",
        .body = "{\"encoding\":{\"type\":\"learned\",\"table\":{\"dtype\":\"float64\",\"shape\":[3,2],"
                "\"data\":[1e200,1e200,1e-200,0,0,0]}},\"positions\":[0,1,2]}"};
    call_try(&ground, &try);
    const json_t *unique = json_object_get(try.json, "unique");
    ck_assert_msg(json_is_true(json_object_get(unique, "holds")), "%s", try.reply);
    ck_assert_double_eq(json_number_value(json_object_get(unique, "closest")), 1e-200);
    call_try_close(&try);
}
END_TEST

/* Of pairs that are equally close, as binary numbers are that differ in a digit, the first is told, though several parts
 * have one. */
START_TEST(the_first_of_the_closest_pairs_is_told) {
    struct call_try try = {.request =
                               "GET /v1/properties?type=naive&form=binary&d_model=11&positions=0:1500"};
    call_try(&ground, &try);
    const json_t *unique = json_object_get(try.json, "unique"), *indices = json_object_get(unique, "indices");
    ck_assert_msg(try.n_parts > 1, "%s", try.reply);
    ck_assert_double_eq(json_number_value(json_object_get(unique, "closest")), 1);
    ck_assert_int_eq(json_integer_value(json_array_get(indices, 0)), 0);
    ck_assert_int_eq(json_integer_value(json_array_get(indices, 1)), 1);
    call_try_close(&try);
}
END_TEST

/* The longest sequence that may be said has no other twice as long, but one half as long: 2^52 of 2^53 - 1, or of
 * 2^52 - 1. */
START_TEST(the_longest_sequence_is_measured_by_a_shorter) {
    struct call_try try = {
        .request = "GET /v1/properties?type=naive&form=normalized&d_model=2&seq_len=9007199254740992&"
                   "positions=0,4503599627370496"};
    call_try(&ground, &try);
    const json_t *lengths = json_object_get(try.json, "same_lengths");
    ck_assert_msg(json_is_false(json_object_get(lengths, "holds")), "%s", try.reply);
    ck_assert_double_eq_tol(json_number_value(json_object_get(lengths, "change")), 0.5, 1e-9);
    call_try_close(&try);
}
END_TEST

/* Times within [0, 1], which a ladder for whole numbers hardly tells apart (SiT #24, REPA #40): a warning, where
 * there are enough of them to say so, whatever the spelling. */
START_TEST(times_below_1_are_warned_of) {
    static const struct {
        const char *request, *body;
        bool warned;
    } of[] = {
        {"GET /v1/encode?type=sinusoidal&d_model=4&positions=0:1:0.25", NULL, true},
        {"GET /v1/encode?type=timestep&d_model=4&positions=0,0.5,0.999", NULL, true},
        {"GET /v1/encode?type=timestep&d_model=4&positions=0.999,0.5,0", NULL, true},
        {"GET /v1/encode?type=sinusoidal&d_model=4&positions=[[5.25,5.5],[5.75,6]]", NULL, true},
        {"GET /v1/encode?type=sinusoidal&d_model=4&positions=1:0:-0.25", NULL, true},
        {"POST /v1/apply",
         "{\"encoding\":{\"type\":\"sinusoidal\"},\"embeddings\":[[0,0],[0,0],[0,0]],\"positions\":[0,0.5,0."
         "75]}",
         true},
        {"GET /v1/encode?type=sinusoidal&d_model=4&positions=0:4:0.0005&position_scale=0.25", NULL, true},
        {"GET /v1/encode?type=sinusoidal&d_model=4&positions=0:1:0.25&position_scale=1000", NULL, false},
        {"GET /v1/encode?type=sinusoidal&d_model=4&positions=0:1.25:0.25", NULL, false}, /* up to 1 */
        {"GET /v1/encode?type=sinusoidal&d_model=4&positions=0.25,0.5", NULL, false},
        {"GET /v1/encode?type=sinusoidal&d_model=4&positions=7,7,7", NULL, false},
        {"GET /v1/encode?type=sinusoidal&d_model=4&positions=[[0,0.5],[1000,1000.5]]", NULL, false},
        {"GET /v1/encode?type=fourier&features=periods&periods=24&positions=0:1:0.25", NULL, false},
        {"GET /v1/encode?type=random&seed=1&d_model=4&positions=0,1,2", NULL, false},
    };
    struct call_try try = {.request = of[_i].request, .body = of[_i].body};
    call_try(&ground, &try);
    ck_assert_msg(try.status == 200, "%s: %.300s", of[_i].request, try.reply);
    const json_t *warning = json_array_get(json_object_get(try.json, "warnings"), 0);
    ck_assert_msg(of[_i].warned == (warning != NULL), "%s: %.300s", of[_i].request, try.reply);
    if (warning) {
        ck_assert_str_eq(json_string_value(json_object_get(warning, "field")), "positions");
        ck_assert_ptr_nonnull(
            strstr(json_string_value(json_object_get(warning, "detail")), "position_scale"));
    }
    call_try_close(&try);
}
END_TEST

/* A cosine has no size: whether squares of numbers are beyond the largest or below the smallest is no matter. */
START_TEST(cosines_have_no_size) {
    struct call_try try = {.request = POST,
                           .body = "{\"metric\":\"cosine\",\"positions\":\"0:3\",\"dtype\":\"float64\","
                                   "\"encoding\":{\"type\":\"learned\","
                                   "\"table\":{\"dtype\":\"float64\",\"shape\":[3,2],\"data\":[3e-200,4e-200,"
                                   "4e250,-3e250,5e-324,5e-324]}}}"};
    static const double expected[3][3] = {{1, 0, 0.98994949366116658}, /* 7/(5 sqrt(2)) */
                                          {0, 1, 0.14142135623730951}, /* 1/(5 sqrt(2)) */
                                          {0.98994949366116658, 0.14142135623730951, 1}};
    call_try(&ground, &try);
    ck_assert_int_eq(try.status, 200);
    const json_t *data = json_object_get(json_object_get(try.json, "gram"), "data");
    for (size_t i = 0; i < 9; i++) {
        double got = json_number_value(json_array_get(json_array_get(data, i / 3), i % 3));
        ck_assert_double_eq_tol(got, expected[i / 3][i % 3], 4e-16);
    }
    call_try_close(&try);
}
END_TEST

static bool count_asked(void *context) {
    ++*(int *)context;
    return false;
}

/* A gram that has no room is told before the vectors, which may take a while, are made. */
START_TEST(memory_is_asked_for_first) {
    int asked = 0;
    const struct pe_stop stop = {count_asked, &asked};
    struct pe_error err = {0};
    struct pe_arena *arena = pe_arena_open(1 << 20, NULL, &err);
    struct pe_spec spec;
    struct pe_plan *plan;
    ck_assert_int_eq(pe_spec_init(arena, &spec, "sinusoidal", &err), PE_OK);
    ck_assert_int_eq(pe_spec_set(arena, &spec, "d_model", "4", &err), PE_OK);
    ck_assert_int_eq(pe_plan_open(&plan, &spec, &err), PE_OK);
    const struct pe_positions positions = {.length = 1000, .axes = 1, .step = 1};
    const struct pe_similarity_args args = {.size = sizeof args, .plan = plan, .positions = &positions};
    struct pe_similarity_result made;
    struct pe_work work;
    err.stop = &stop;
    ck_assert_int_eq(pe_similarity_open(arena, &work, &made, &args, &err), PE_ERR_LIMIT);
    ck_assert_str_eq(err.path, "positions");
    ck_assert_int_le(asked, 1); /* by the memory of the operation itself */
    pe_plan_close(plan);
    pe_arena_close(arena);
}
END_TEST

/* Vectors are made in steps of a few thousand numbers: here of one vector. */
START_TEST(vectors_may_be_stopped) {
    int asked = 0;
    const struct pe_stop stop = {count_asked, &asked};
    struct pe_error err = {0};
    struct pe_arena *arena = pe_arena_open(8 << 20, NULL, &err);
    struct pe_spec spec;
    struct pe_plan *plan;
    double *vectors;
    ck_assert_int_eq(pe_spec_init(arena, &spec, "sinusoidal", &err), PE_OK);
    ck_assert_int_eq(pe_spec_set(arena, &spec, "d_model", "4096", &err), PE_OK);
    ck_assert_int_eq(pe_plan_open(&plan, &spec, &err), PE_OK);
    const struct pe_positions positions = {.length = 100, .axes = 1, .step = 1};
    err.stop = &stop;
    ck_assert_int_eq(pe_vectors_make(arena, &vectors, plan, &positions, &err), PE_OK);
    ck_assert_int_ge(asked, 100);
    pe_plan_close(plan);
    pe_arena_close(arena);
}
END_TEST

/* What only programs can leave out. */
START_TEST(arguments_of_programs) {
    struct pe_error err = {0};
    struct pe_arena *arena = pe_arena_open(1 << 20, NULL, &err);
    struct pe_work work;
    struct pe_similarity_result similarity;
    struct pe_properties_result properties;
    struct pe_head_result head;
    struct pe_spec spec;
    struct pe_plan *plan = NULL;
    ck_assert_int_eq(pe_spec_init(arena, &spec, "sinusoidal", &err), PE_OK);
    ck_assert_int_eq(pe_spec_set(arena, &spec, "d_model", "4", &err), PE_OK);
    ck_assert_int_eq(pe_plan_open(&plan, &spec, &err), PE_OK);
    const struct pe_positions positions = {.length = 3, .axes = 1, .step = 1};
    const struct {
        const struct pe_plan *plan;
        const struct pe_positions *positions;
        const char *field;
    } rows[] = {{NULL, &positions, "encoding"}, {plan, NULL, "positions"}};
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct pe_error errs[3] = {{0}, {0}, {0}};
        const struct pe_similarity_args of_similarity = {
            .size = sizeof of_similarity, .plan = rows[i].plan, .positions = rows[i].positions};
        const struct pe_properties_args of_properties = {
            .size = sizeof of_properties, .plan = rows[i].plan, .positions = rows[i].positions};
        const struct pe_head_args of_head = {
            .size = sizeof of_head, .plan = rows[i].plan, .positions = rows[i].positions};
        (void)!pe_similarity_open(arena, &work, &similarity, &of_similarity, &errs[0]);
        (void)!pe_properties_open(arena, &work, &properties, &of_properties, &errs[1]);
        (void)!pe_head_open(arena, &work, &head, &of_head, &errs[2]);
        for (int k = 0; k < 3; k++) {
            ck_assert_int_eq(errs[k].code, PE_ERR_MISSING);
            ck_assert_str_eq(errs[k].path, rows[i].field);
        }
    }
    pe_plan_close(plan);
    pe_arena_close(arena);
}
END_TEST

Suite *similarity_suite(void) {
    Suite *suite = suite_create("similarity");
    TCase *tests = tcase_create("similarity");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, bad_requests, 0, (int)PE_COUNT(bad));
    tcase_add_test(tests, an_impossible_head);
    tcase_add_loop_test(tests, steps_are_those_that_were_meant, 0, 8);
    tcase_add_loop_test(tests, times_below_1_are_warned_of, 0, 14);
    tcase_add_test(tests, parts_agree);
    tcase_add_loop_test(tests, vectors_of_any_size_are_measured, 0, 4);
    tcase_add_test(tests, a_large_vector_hides_no_small_ones);
    tcase_add_test(tests, the_longest_sequence_is_measured_by_a_shorter);
    tcase_add_test(tests, the_first_of_the_closest_pairs_is_told);
    tcase_add_test(tests, cosines_have_no_size);
    tcase_add_test(tests, memory_is_asked_for_first);
    tcase_add_test(tests, vectors_may_be_stopped);
    tcase_add_test(tests, arguments_of_programs);
    return suite;
}
