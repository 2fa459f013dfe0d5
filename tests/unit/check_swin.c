/* SPDX-License-Identifier: MIT
 *
 * Biases of windows: where a request has more pairs than there are offsets, each offset's is made once; where
 * it has fewer, each pair's is. Both are the same numbers.
 */
#include "posenc.h"
#include "suites.h"

static struct pe_arena *arena;
static struct pe_plan *plan;
static struct pe_error err;

static void teardown(void) {
    pe_plan_close(plan);
    pe_arena_close(arena);
    plan = NULL;
    arena = NULL;
    err = (struct pe_error){0};
}

enum { HEADS = 3, H = 5, W = 7, OFFSETS = (2 * H - 1) * (2 * W - 1) };

static const struct {
    const char *type, *name[3], *value[3];
    size_t tokens, rows;
} setups[] = {
    {"swin", {"seed"}, {"7"}, H *W, OFFSETS},
    {"swin", {"seed", "cls_rows"}, {"7", "1"}, H *W + 1, OFFSETS + 3},
    {"swin", {"seed", "offsets"}, {"7", "absolute"}, H *W, H *W},
    {"swin_v2", {"seed"}, {"7"}, H *W, OFFSETS},
    {"swin_v2", {"seed", "cls_rows", "squash"}, {"7", "1", "false"}, H *W + 1, OFFSETS + 3},
};

static void setup(int i) {
    struct pe_spec spec;
    arena = pe_arena_open((size_t)1 << 22, NULL, &err);
    ck_assert(!pe_spec_init(arena, &spec, setups[i].type, &err));
    ck_assert(!pe_spec_set(arena, &spec, "window", "5,7", &err));
    for (size_t k = 0; k < 3 && setups[i].name[k]; k++) {
        ck_assert(!pe_spec_set(arena, &spec, setups[i].name[k], setups[i].value[k], &err));
    }
    ck_assert_msg(!pe_plan_open(&plan, &spec, &err), "%s: %s", err.path, err.text);
}

/* Of n queries from `first` on and all keys, in float64; returns what it took beside them. */
static size_t biases(size_t i, size_t first, size_t n, const double **out) {
    struct pe_positions queries, keys;
    struct pe_tensor bias;
    struct pe_work work;
    ck_assert(!pe_positions_steps(&queries, (double)first, 1, n, &err));
    ck_assert(!pe_positions_steps(&keys, 0, 1, setups[i].tokens, &err));
    const struct pe_bias_args args = {.size = sizeof args,
                                      .plan = plan,
                                      .heads = HEADS,
                                      .query_positions = &queries,
                                      .key_positions = &keys,
                                      .dtype = PE_DTYPE_F64};
    size_t before = pe_arena_used(arena);
    ck_assert_msg(!pe_bias_open(arena, &work, &bias, &args, &err), "%s: %s", err.path, err.text);
    ck_assert(pe_work_run(&work));
    *out = bias.data;
    return pe_arena_used(arena) - before - pe_tensor_bytes(&bias);
}

START_TEST(offsets_made_once_are_those_of_pairs) {
    size_t i = (size_t)_i, tokens = setups[i].tokens;
    const double *all, *some;
    setup(_i);
    size_t few = biases(i, 0, 1, &some), many = biases(i, 0, tokens, &all);
    ck_assert_uint_ge(many, setups[i].rows * HEADS * sizeof(double));
    ck_assert(tokens >= setups[i].rows || few < setups[i].rows * HEADS * sizeof(double));
    for (size_t q = 0; q < tokens; q++) {
        biases(i, q, 1, &some);
        for (size_t h = 0; h < HEADS; h++) {
            ck_assert_mem_eq(some + h * tokens, all + (h * tokens + q) * tokens, tokens * sizeof *all);
        }
    }
}
END_TEST

Suite *swin_suite(void) {
    Suite *suite = suite_create("swin");
    TCase *tests = tcase_create("offsets");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, NULL, teardown);
    tcase_add_loop_test(tests, offsets_made_once_are_those_of_pairs, 0,
                        (int)(sizeof setups / sizeof *setups));
    return suite;
}
