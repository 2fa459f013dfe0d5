/* SPDX-License-Identifier: MIT
 *
 * Plans that are kept: one for equal parameters and only for these, never more than is allowed, in use beyond
 * their end, nothing of a failure; and replies that are the same as without.
 */
#include "suites.h"

#include "api/plans.h"
#include "call_run.h"
#include "metrics.h"
#include "service.h"
#include "wire/bind.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static struct pe_arena *arena;
static struct metrics *metrics;

static void setup(void) {
    struct pe_error err = {0};
    arena = pe_arena_open(256 * MIB, NULL, &err);
    metrics = metrics_open(NULL, 0, &err);
    ck_assert(arena && metrics);
}

static void teardown(void) {
    metrics_close(metrics);
    pe_arena_close(arena);
}

/* "sinusoidal d_model=8 offset=1" */
static struct pe_spec spec_of(struct pe_arena *memory, const char *text) {
    struct pe_error err = {0};
    struct pe_spec spec;
    char words[200], *rest = words;
    snprintf(words, sizeof words, "%s", text);
    const char *type = strtok_r(rest, " ", &rest);
    ck_assert_int_eq(pe_spec_init(memory, &spec, type, &err), PE_OK);
    for (char *word = strtok_r(rest, " ", &rest); word; word = strtok_r(rest, " ", &rest)) {
        char *equals = strchr(word, '=');
        *equals = '\0';
        ck_assert_msg(pe_spec_set(memory, &spec, word, equals + 1, &err) == PE_OK, "%s", err.text);
    }
    ck_assert_int_eq(pe_spec_fit(&spec, 0, 0, &err), PE_OK);
    return spec;
}

static const struct planned *take(struct plans *plans, const char *text) {
    struct pe_error err = {0};
    struct pe_spec spec = spec_of(arena, text);
    const struct planned *planned = plans_take(&(struct service){.plans = plans}, &spec, arena, &err);
    ck_assert_msg(planned != NULL, "%s: %s", text, err.text);
    return planned;
}

/* Is the second of two such requests given what the first one made? */
static bool shared(struct plans *plans, const char *first, const char *second) {
    const struct planned *a = take(plans, first), *b = take(plans, second);
    bool same = a == b;
    plans_give(a);
    plans_give(b);
    return same;
}

static int64_t counted(enum metrics_value value) {
    return metrics_get(metrics, value);
}

static void check_row(const struct planned *planned, double position) {
    float got[8], want[8];
    struct pe_error err = {0};
    const struct pe_positions positions = {.start = position, .step = 1, .length = 1, .axes = 1};
    struct pe_spec spec = {pe_plan_encoding(planned->plan), (void *)(uintptr_t)pe_plan_params(planned->plan)};
    struct pe_plan *fresh;
    ck_assert_uint_eq(pe_plan_width(planned->plan), 8);
    ck_assert_int_eq(pe_plan_open(&fresh, &spec, &err), PE_OK);
    pe_encode_rows(planned->plan, &positions, PE_DTYPE_F32, 0, 1, got);
    pe_encode_rows(fresh, &positions, PE_DTYPE_F32, 0, 1, want);
    pe_plan_close(fresh);
    ck_assert_mem_eq(got, want, sizeof got);
}

/* ---- What is shared ------------------------------------------------------------------------------------ */

START_TEST(equal_parameters_share_a_plan) {
    static const char *const same[] = {
        "sinusoidal d_model=8",
        "sinusoidal d_model=8 base=500 layout=halves offset=0.5",
        "rope head_dim=8 layout=halves scaling.rope_type=yarn scaling.factor=4 "
        "scaling.original_max_position_embeddings=4096",
        "rope head_dim=8 layout=halves sections=2,1,1",
        "rope head_dim=8 layout=halves seq_len=100000 scaling.rope_type=longrope "
        "scaling.short_factor=1,1,1,1 scaling.long_factor=2,3,4,5 "
        "scaling.original_max_position_embeddings=4096 "
        "scaling.factor=32",
        "alibi",
        "fire seed=3",
    };
    struct plans *plans = plans_open(MIB, metrics);
    for (int i = 0; i < (int)PE_COUNT(same); i++) {
        ck_assert_msg(shared(plans, same[i], same[i]), "%s", same[i]);
        ck_assert_int_eq(counted(METRICS_PLANS), i + 1);
        ck_assert_int_eq(counted(METRICS_PLAN_HITS), i + 1);
        ck_assert_int_eq(counted(METRICS_PLAN_MISSES), i + 1);
    }
    plans_close(plans);
}
END_TEST

START_TEST(others_do_not) {
    static const char *const pairs[][2] = {
        {"sinusoidal d_model=8", "sinusoidal d_model=10"},
        {"sinusoidal d_model=8", "sinusoidal d_model=8 base=10001"},
        {"sinusoidal d_model=8", "sinusoidal d_model=8 layout=halves"},
        {"sinusoidal d_model=8", "timestep d_model=8"},
        {"rope head_dim=8 layout=halves",
         "rope head_dim=8 layout=halves scaling.rope_type=linear scaling.factor=2"},
        {"rope head_dim=8 layout=halves scaling.rope_type=linear scaling.factor=2",
         "rope head_dim=8 layout=halves scaling.rope_type=linear scaling.factor=3"},
        {"rope head_dim=8 layout=halves sections=2,1,1", "rope head_dim=8 layout=halves sections=1,2,1"},
        {"rope head_dim=8 layout=halves seq_len=100000 scaling.rope_type=longrope "
         "scaling.short_factor=1,1,1,1 scaling.long_factor=2,3,4,5 "
         "scaling.original_max_position_embeddings=4096 "
         "scaling.factor=32",
         "rope head_dim=8 layout=halves seq_len=100000 scaling.rope_type=longrope "
         "scaling.short_factor=1,1,1,1 scaling.long_factor=2,3,4,6 "
         "scaling.original_max_position_embeddings=4096 "
         "scaling.factor=32"},
        {"fire seed=3", "fire seed=4"},
    };
    struct plans *plans = plans_open(MIB, NULL);
    for (size_t i = 0; i < PE_COUNT(pairs); i++) {
        const struct planned *a = take(plans, pairs[i][0]), *b = take(plans, pairs[i][1]);
        ck_assert_ptr_ne(a, b);
        ck_assert_ptr_ne(a->plan, b->plan);
        plans_give(a);
        plans_give(b);
    }
    plans_close(plans);
}
END_TEST

/* What a plan does not own would be gone with its request. */
START_TEST(what_points_into_a_request_is_not_kept) {
    struct plans *plans = plans_open(MIB, metrics);
    struct pe_error err = {0};
    float numbers[3][4] = {{0}};
    const struct pe_tensor keys = {numbers, PE_DTYPE_F32, 2, {3, 4}};
    struct pe_spec spec = spec_of(arena, "shaw");
    ck_assert_int_eq(pe_spec_set_tensor(&spec, "keys", &keys, &err), PE_OK);
    const struct planned *planned = plans_take(&(struct service){.plans = plans}, &spec, arena, &err);
    ck_assert_msg(planned != NULL, "%s", err.text);
    plans_give(planned);
    plans_give(take(plans, "deberta seed=1 pos_att_type=c2p"));
    plans_give(take(plans, "kerple form=power p=1 a=1"));
    ck_assert_int_eq(counted(METRICS_PLANS), 0);
    ck_assert_int_eq(counted(METRICS_PLAN_BYTES), 0);
    ck_assert_int_eq(counted(METRICS_PLAN_MISSES), 3);
    plans_close(plans);
}
END_TEST

START_TEST(failures_are_not_kept) {
    struct plans *plans = plans_open(MIB, metrics);
    struct pe_spec spec = spec_of(arena, "sinusoidal d_model=7 odd=reject");
    for (int i = 0; i < 2; i++) {
        struct pe_error err = {0};
        ck_assert_ptr_null(plans_take(&(struct service){.plans = plans}, &spec, arena, &err));
        ck_assert_int_ne(err.code, PE_OK);
        ck_assert_str_eq(err.path, "d_model");
    }
    ck_assert_int_eq(counted(METRICS_PLANS), 0);
    ck_assert_int_eq(counted(METRICS_PLAN_MISSES), 0); /* none was made */
    plans_close(plans);
}
END_TEST

START_TEST(nothing_may_be_kept) {
    struct plans *plans = plans_open(0, metrics);
    ck_assert(!shared(NULL, "sinusoidal d_model=8", "sinusoidal d_model=8"));
    ck_assert(!shared(plans, "sinusoidal d_model=8", "sinusoidal d_model=8"));
    ck_assert_int_eq(counted(METRICS_PLANS) + counted(METRICS_PLAN_HITS), 0);
    plans_close(plans);
}
END_TEST

/* ---- Memory -------------------------------------------------------------------------------------------- */

/* Blocks that an allocator gave, now and at most at once. */
struct blocks {
    size_t now, ever;
};

static void *block_take(void *context, size_t bytes) {
    struct blocks *blocks = context;
    blocks->now++;
    blocks->ever++;
    return malloc(bytes);
}

static void block_give(void *context, void *block, size_t bytes) {
    (void)bytes;
    ((struct blocks *)context)->now--;
    free(block);
}

/* As a daemon with little memory was not spared before: 13 MB were taken, filled, and then found to be too much. */
START_TEST(too_large_a_plan_is_not_made) {
    struct pe_error err = {0};
    struct blocks blocks = {0};
    const struct service service = {.allocator = {block_take, block_give, &blocks}};
    const struct pe_spec spec = spec_of(arena, "sinusoidal d_model=65536");
    struct pe_arena *small = pe_arena_open(MIB, NULL, &err);
    ck_assert_ptr_null(plans_take(&service, &spec, small, &err));
    ck_assert_int_eq(err.code, PE_ERR_LIMIT);
    ck_assert_uint_eq(blocks.ever, 0);
    pe_arena_close(small);
}
END_TEST

START_TEST(large_plans_are_in_the_allocators_blocks) {
    struct blocks blocks = {0};
    const struct service service = {.allocator = {block_take, block_give, &blocks}};
    struct pe_error err = {0};
    const struct pe_spec large = spec_of(arena, "sinusoidal d_model=65536"),
                         small = spec_of(arena, "sinusoidal d_model=8");
    const struct planned *planned = plans_take(&service, &large, arena, &err);
    ck_assert_msg(planned != NULL, "%s", err.text);
    ck_assert_uint_eq((uintptr_t)planned->plan % 64, 0);
    ck_assert_uint_eq(blocks.now, 1);
    plans_give(planned);
    ck_assert_uint_eq(blocks.now, 0);
    plans_give(plans_take(&service, &small, arena, &err));
    ck_assert_uint_eq(blocks.ever, 1);
}
END_TEST

/* ---- What goes ----------------------------------------------------------------------------------------- */

static void take_many(struct plans *plans, int first, int n) {
    for (int i = first; i < first + n; i++) {
        char text[60];
        snprintf(text, sizeof text, "sinusoidal d_model=8 offset=%d", i);
        plans_give(take(plans, text));
    }
}

/* What one of take_many counts. */
static int64_t bytes_of_one(void) {
    struct plans *plans = plans_open(64 * MIB, metrics);
    take_many(plans, 0, 1);
    const int64_t one = counted(METRICS_PLAN_BYTES);
    plans_close(plans);
    ck_assert_int_gt(one, 300); /* its text alone has as many */
    return one;
}

START_TEST(bytes_are_bounded) {
    const int64_t one = bytes_of_one(), room = 40 * one;
    struct plans *plans = plans_open((size_t)room, metrics);
    for (int i = 0; i < 200; i++) {
        take_many(plans, i, 1);
        ck_assert_int_le(counted(METRICS_PLAN_BYTES), room);
    }
    ck_assert_int_gt(counted(METRICS_PLAN_BYTES), room - 2 * one);
    ck_assert_int_lt(counted(METRICS_PLANS), 199);
    /* One with more than its share. */
    ck_assert(!shared(plans, "sinusoidal d_model=65536", "sinusoidal d_model=65536"));
    ck_assert_int_gt(counted(METRICS_PLAN_BYTES), room - 2 * one);
    plans_close(plans);
    /* One that would fit, but has more than a quarter; and one that has just that. */
    plans = plans_open((size_t)(3 * one), metrics);
    ck_assert(!shared(plans, "sinusoidal d_model=8 offset=0", "sinusoidal d_model=8 offset=0"));
    plans_close(plans);
    plans = plans_open((size_t)(4 * one), metrics);
    ck_assert(shared(plans, "sinusoidal d_model=8 offset=0", "sinusoidal d_model=8 offset=0"));
    plans_close(plans);
}
END_TEST

START_TEST(their_number_is_bounded) {
    struct plans *plans = plans_open(64 * MIB, metrics);
    take_many(plans, 0, PLANS_MOST);
    ck_assert_int_eq(counted(METRICS_PLANS), PLANS_MOST);
    take_many(plans, PLANS_MOST, 7);
    ck_assert_int_eq(counted(METRICS_PLANS), PLANS_MOST);
    plans_close(plans);
}
END_TEST

START_TEST(the_one_used_longest_ago_goes) {
    struct plans *plans = plans_open(64 * MIB, metrics);
    take_many(plans, 0, PLANS_MOST);
    take_many(plans, 0, 1); /* used again: now 1 is the oldest */
    take_many(plans, PLANS_MOST, 1);
    const int64_t hits = counted(METRICS_PLAN_HITS);
    take_many(plans, 0, 1);
    take_many(plans, 2, 1);
    ck_assert_int_eq(counted(METRICS_PLAN_HITS), hits + 2);
    take_many(plans, 1, 1);
    ck_assert_int_eq(counted(METRICS_PLAN_HITS), hits + 2);
    plans_close(plans);
}
END_TEST

START_TEST(one_in_use_outlives_its_place) {
    struct plans *plans = plans_open(64 * MIB, metrics);
    const struct planned *early = take(plans, "sinusoidal d_model=8 offset=-1");
    take_many(plans, 0, PLANS_MOST);
    const struct planned *again = take(plans, "sinusoidal d_model=8 offset=-1");
    ck_assert_ptr_ne(early, again); /* it was thrown out */
    check_row(early, 5);
    check_row(again, 5);
    plans_close(plans);
    check_row(early, 6);
    check_row(again, 6);
    ck_assert_uint_eq(early->json_n, again->json_n);
    ck_assert_mem_eq(early->json, again->json, early->json_n);
    plans_give(early);
    plans_give(again);
}
END_TEST

/* ---- Threads ------------------------------------------------------------------------------------------- */

static void *take_and_use(void *context) {
    struct plans *plans = context;
    struct pe_error err = {0};
    struct pe_arena *own = pe_arena_open(16 * MIB, NULL, &err);
    bool good = own != NULL;
    for (int i = 0; good && i < 1000; i++) {
        char text[60];
        const struct pe_positions positions = {.step = 1, .length = 1, .axes = 1};
        float row[8];
        snprintf(text, sizeof text, "sinusoidal d_model=8 offset=%d", i * i % 23);
        struct pe_spec spec = spec_of(own, text);
        const struct planned *planned = plans_take(&(struct service){.plans = plans}, &spec, own, &err);
        if (planned) {
            pe_encode_rows(planned->plan, &positions, PE_DTYPE_F32, 0, 1, row);
            good = row[0] <= 1 && planned->json[0] == '{';
            plans_give(planned);
        }
        good = good && planned;
    }
    pe_arena_close(own);
    return good ? plans : NULL;
}

START_TEST(threads_share_and_throw_out) {
    const int64_t hits = counted(METRICS_PLAN_HITS), misses = counted(METRICS_PLAN_MISSES),
                  room = 9 * bytes_of_one(); /* not for all of them */
    struct plans *plans = plans_open((size_t)room, metrics);
    pthread_t threads[4];
    for (size_t i = 0; i < PE_COUNT(threads); i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, take_and_use, plans), 0);
    }
    for (size_t i = 0; i < PE_COUNT(threads); i++) {
        void *result;
        pthread_join(threads[i], &result);
        ck_assert_ptr_eq(result, plans);
    }
    ck_assert_int_eq(counted(METRICS_PLAN_HITS) - hits + counted(METRICS_PLAN_MISSES) - misses, 4001);
    ck_assert_int_gt(counted(METRICS_PLAN_HITS), hits);
    ck_assert_int_le(counted(METRICS_PLAN_BYTES), room);
    plans_close(plans);
}
END_TEST

/* ---- Replies ------------------------------------------------------------------------------------------- */

/* The same request without kept plans, then twice with them. */
static void compare(struct call_ground *ground, struct plans *plans, const char *request) {
    struct call_try alone = {.request = request}, first = {.request = request}, second = {.request = request};
    ground->service.plans = NULL;
    call_try(ground, &alone);
    ground->service.plans = plans;
    call_try(ground, &first);
    call_try(ground, &second);
    struct call_try *const others[] = {&first, &second};
    for (size_t i = 0; i < PE_COUNT(others); i++) {
        const struct call_try *other = others[i];
        ck_assert_msg(other->status == alone.status, "%s: %d, %d", request, alone.status, other->status);
        ck_assert_str_eq(call_try_header(other, "ETag"), call_try_header(&alone, "ETag"));
        ck_assert(alone.status != 200 ||
                  (other->reply_n == alone.reply_n && memcmp(other->reply, alone.reply, alone.reply_n) == 0));
    }
    call_try_close(&alone);
    call_try_close(&first);
    call_try_close(&second);
}

START_TEST(replies_are_the_same) {
    struct call_ground ground;
    call_ground_open(&ground);
    struct plans *plans = plans_open(MIB, metrics);
    for (size_t i = 0; i < presets_count(ground.presets); i++) {
        const char *name = presets_at(ground.presets, i)->name;
        char request[200];
        snprintf(request, sizeof request, "GET /v1/encode?encoding=%s&positions=0:3", name);
        compare(&ground, plans, request);
        snprintf(request, sizeof request, "GET /v1/encode?encoding=%s&d_model=12&positions=0:3", name);
        compare(&ground, plans, request);
        snprintf(request, sizeof request,
                 "GET /v1/bias?encoding=%s&heads=2&query_positions=0:3&key_positions=0:4", name);
        compare(&ground, plans, request);
    }
    ck_assert_int_gt(counted(METRICS_PLAN_HITS), 20);
    ground.service.plans = NULL;
    plans_close(plans);
    call_ground_close(&ground);
}
END_TEST

Suite *plans_suite(void) {
    Suite *suite = suite_create("plans");
    TCase *tests = tcase_create("plans");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, equal_parameters_share_a_plan);
    tcase_add_test(tests, others_do_not);
    tcase_add_test(tests, what_points_into_a_request_is_not_kept);
    tcase_add_test(tests, failures_are_not_kept);
    tcase_add_test(tests, nothing_may_be_kept);
    tcase_add_test(tests, too_large_a_plan_is_not_made);
    tcase_add_test(tests, large_plans_are_in_the_allocators_blocks);
    tcase_add_test(tests, bytes_are_bounded);
    tcase_add_test(tests, their_number_is_bounded);
    tcase_add_test(tests, the_one_used_longest_ago_goes);
    tcase_add_test(tests, one_in_use_outlives_its_place);
    tcase_add_test(tests, threads_share_and_throw_out);
    tcase_add_test(tests, replies_are_the_same);
    suite_add_tcase(suite, tests);
    return suite;
}
