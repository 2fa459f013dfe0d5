/* SPDX-License-Identifier: MIT
 *
 * The field `arithmetic`: every value bit by bit as make_arithmetic.py computes it in the steps of deployed
 * code, what becomes of rounded positions, and what is not known. Published errors are in check_check.c.
 */
#include "suites.h"

#include "posenc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct arithmetic_row {
    const char *type, *params; /* "layout=halves head_dim=12 ..." */
    double position;
    size_t n;
    uint32_t bits[32]; /* a vector; rotary: the cosines, then the sines */
};
#include "../golden/arithmetic_values.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define PARTS        16 /* of the rows, so that a failure does not hide all others */

static struct pe_arena *arena;
static struct pe_error err;
static struct pe_plan *plan;

static void setup(void) {
    memset(&err, 0, sizeof err);
    arena = pe_arena_open((size_t)64 << 20, NULL, &err);
    plan = NULL;
}

static void teardown(void) {
    pe_plan_close(plan);
    pe_arena_close(arena);
}

static int try_plan(const char *type, const char *params) {
    struct pe_spec spec;
    char text[400];
    snprintf(text, sizeof text, "%s", params);
    memset(&err, 0, sizeof err);
    pe_plan_close(plan);
    plan = NULL;
    ck_assert_int_eq(pe_spec_init(arena, &spec, type, &err), 0);
    for (char *at = text, *name; (name = strtok_r(at, " ", &at));) {
        char *value = strchr(name, '=');
        *value = '\0';
        if (pe_spec_set(arena, &spec, name, value + 1, &err)) {
            return err.code;
        }
    }
    return pe_plan_open(&plan, &spec, &err);
}

static void open_plan(const char *type, const char *params) {
    ck_assert_msg(try_plan(type, params) == 0, "%s: %s %s", params, err.path, err.text);
}

/* cos [n], then sin [n] of some positions. */
static void angles_of(const struct pe_positions *positions, enum pe_dtype dtype, void *out) {
    struct pe_rotary_rows rows = {
        .plan = plan, .positions = positions, .dtype = dtype, .form = PE_TRIG_PACKED};
    memset(&err, 0, sizeof err);
    ck_assert_msg(pe_rotary_check(plan, positions, dtype, &err) == 0, "%s", err.text);
    pe_rotary_fill(&rows, 0, pe_positions_count(positions), out, NULL);
}

static void check_bits(const struct arithmetic_row *row) {
    const struct pe_positions at = {.length = 1, .axes = 1, .list = &row->position};
    uint32_t got[32];
    open_plan(row->type, row->params);
    if (strcmp(row->type, "rope") == 0) {
        angles_of(&at, PE_DTYPE_F32, got);
    } else {
        pe_encode_rows(plan, &at, PE_DTYPE_F32, 0, 1, got);
    }
    for (size_t i = 0; i < row->n; i++) {
        bool zero = ((got[i] | row->bits[i]) & 0x7fffffff) == 0; /* the steps have -0, the library none */
        ck_assert_msg(zero || got[i] == row->bits[i], "%s at %g: value %zu is %08x, not %08x", row->params,
                      row->position, i, got[i], row->bits[i]);
    }
}

START_TEST(values_have_the_bits_of_the_steps) {
    for (size_t i = (size_t)_i; i < COUNT(arithmetic_rows); i += PARTS) {
        check_bits(&arithmetic_rows[i]);
    }
}
END_TEST

/* Rounded again, never recomputed: a float64 reply holds the float32 numbers. */
START_TEST(other_types_round_the_float32_value) {
    static const char *const all[] = {"float32_pow", "float32_exp", "bfloat16_positions", "ggml"};
    const struct pe_positions at = {.length = 50, .axes = 1, .start = 7, .step = 12345};
    float single[50 * 8], back[50 * 8];
    double wide[50 * 8];
    uint16_t half[50 * 8], rounded[50 * 8];
    char params[100];
    snprintf(params, sizeof params, "d_model=8 arithmetic=%s", all[_i]);
    open_plan("sinusoidal", params);
    pe_encode_rows(plan, &at, PE_DTYPE_F32, 0, 50, single);
    pe_encode_rows(plan, &at, PE_DTYPE_F64, 0, 50, wide);
    pe_encode_rows(plan, &at, PE_DTYPE_BF16, 0, 50, half);
    for (size_t i = 0; i < COUNT(wide); i++) {
        back[i] = (float)wide[i];
        ck_assert(wide[i] == (double)single[i]);
    }
    pe_dtype_store(PE_DTYPE_BF16, wide, COUNT(wide), rounded);
    ck_assert_mem_eq(back, single, sizeof single);
    ck_assert_mem_eq(half, rounded, sizeof half);
}
END_TEST

/* How many different vectors the positions 0 .. n-1 have: by the first cosine and sine. */
static size_t distinct(const char *arithmetic, size_t n) {
    char params[100];
    float last[2] = {2, 2}, now[2];
    size_t count = 0;
    snprintf(params, sizeof params, "layout=halves head_dim=2 arithmetic=%s", arithmetic);
    open_plan("rope", params);
    for (size_t p = 0; p < n; p++) { /* rounding is monotone: equal ones stand side by side */
        const struct pe_positions at = {.length = 1, .axes = 1, .start = (double)p, .step = 1};
        angles_of(&at, PE_DTYPE_F32, now);
        count += memcmp(now, last, sizeof now) != 0;
        memcpy(last, now, sizeof now);
    }
    return count;
}

START_TEST(distinct_positions_of_half_precision) {
    ck_assert_uint_eq(distinct("bfloat16_positions", 257), 257);
    ck_assert_uint_eq(distinct("bfloat16_positions", 258), 257); /* 257 is the first that is lost */
    ck_assert_uint_eq(distinct("bfloat16_positions", 8192), 897);
    ck_assert_uint_eq(distinct("bfloat16_positions", 131072), 1409);
    ck_assert_uint_eq(distinct("float16_positions", 2049), 2049);
    ck_assert_uint_eq(distinct("float16_positions", 2050), 2049);
}
END_TEST

START_TEST(cosines_of_15962) {
    static const struct {
        const char *arithmetic;
        double position, cosine;
    } all[] = {{"exact", 15962, -.908015901},
               {"exact", 15968, -.754792760},
               {"bfloat16_positions", 15962, -.267950071}, /* 15936 */
               {"exact", 15936, -.267950071},
               {"exact", 4095, -.0659759966},
               {"bfloat16_positions", 4095, .8039906}}; /* 4096 */
    for (size_t i = 0; i < COUNT(all); i++) {
        char params[100];
        float both[2];
        const struct pe_positions at = {.length = 1, .axes = 1, .start = all[i].position, .step = 1};
        snprintf(params, sizeof params, "layout=halves head_dim=2 arithmetic=%s", all[i].arithmetic);
        open_plan("rope", params);
        angles_of(&at, PE_DTYPE_F32, both);
        ck_assert_msg(fabs((double)both[0] - all[i].cosine) < 4e-8, "%s %g: %.9g", all[i].arithmetic,
                      all[i].position, (double)both[0]);
    }
}
END_TEST

/* Sections, a turned direction and a table's inv_freq go through the same steps. */
START_TEST(sections_and_direction) {
    const double places[3] = {5, 70000, 900};
    const struct pe_positions at = {.length = 1, .axes = 3, .list = places};
    float joined[12], alone[12];
    open_plan("rope",
              "layout=halves head_dim=12 sections=2,2,2 section_layout=interleaved arithmetic=float32_pow");
    angles_of(&at, PE_DTYPE_F32, joined);
    for (size_t axis = 0; axis < 3; axis++) {
        const struct pe_positions one = {.length = 1, .axes = 1, .list = &places[axis]};
        open_plan("rope", "layout=halves head_dim=12 direction=clockwise arithmetic=float32_pow");
        angles_of(&one, PE_DTYPE_F32, alone);
        for (size_t pair = axis; pair < 6; pair += 3) {
            ck_assert(joined[pair] == alone[pair] && joined[6 + pair] == -alone[6 + pair]);
        }
    }
}
END_TEST

START_TEST(a_replay_is_no_exact_map) {
    struct pe_positions at = {.length = 20, .axes = 1, .start = 1000, .step = 1};
    open_plan("sinusoidal", "d_model=4 arithmetic=float32_exp");
    struct pe_shift_args args = {.size = sizeof args, .plan = plan, .distance = 3, .positions = &at};
    struct pe_shift_result result;
    struct pe_work work;
    ck_assert_int_eq(pe_shift_open(arena, &work, &result, &args, &err), 0);
    ck_assert(!result.exact);
}
END_TEST

#define LLAMA3                                                                                               \
    "layout=halves head_dim=4 scaling.rope_type=llama3 scaling.original_max_position_embeddings=64 "         \
    "scaling.factor=8 scaling.low_freq_factor=1 arithmetic=float32_pow "

START_TEST(what_is_not_known) {
    static const struct {
        const char *type, *params;
        int code;
        const char *path, *text;
    } all[] = {
        {"rope", "layout=halves head_dim=4 arithmetic=float32_pow xpos.center=1", PE_ERR_UNSUPPORTED,
         "arithmetic", "float32_pow with xpos is not known"},
        {"rope",
         "layout=halves head_dim=8 arithmetic=float32_exp rope_axes.n_axes=2 rope_axes.frequencies=language",
         PE_ERR_UNSUPPORTED, "arithmetic", "float32_exp with rope_axes is not known"},
        {"rope", "layout=halves head_dim=4 arithmetic=ggml base=1e39", PE_ERR_RANGE, "base",
         "infinite in float32"},
        {"sinusoidal", "d_model=4 arithmetic=float32_exp base=1e39", PE_ERR_RANGE, "base",
         "infinite in float32"},
        {"rope", LLAMA3 "scaling.high_freq_factor=1.0000000000000002", PE_ERR_RANGE,
         "scaling.high_freq_factor", "must with this arithmetic be low_freq_factor, 1, or above it by"},
        {"sinusoidal", "d_model=4 arithmetic=float32", PE_ERR_CHOICE, "arithmetic", "float32_pow"},
    };
    int code = try_plan(all[_i].type, all[_i].params);
    ck_assert_msg(code == all[_i].code && strcmp(err.path, all[_i].path) == 0 &&
                      strstr(err.text, all[_i].text),
                  "%s: %d at %s: %s", all[_i].params, code, err.path, err.text);
}
END_TEST

START_TEST(float16_ends_at_65520) {
    static const struct {
        const char *type, *params;
        double start, step;
        const char *path; /* of four positions; NULL = all are taken */
    } all[] = {{"rope", "layout=halves head_dim=4", 65516, 1, NULL},
               {"rope", "layout=halves head_dim=4", 65517, 1, "[3]"},
               {"rope", "layout=halves head_dim=4 direction=clockwise", -65518, -1, "[2]"},
               {"sinusoidal", "d_model=4 position_scale=-1000 offset=520", -60, -1, "[5]"},
               {"sinusoidal", "d_model=4 position_scale=-1000 offset=520", -62, -1, "[3]"}};
    const struct pe_positions at = {.length = 4, .axes = 1, .start = all[_i].start, .step = all[_i].step};
    char params[200];
    snprintf(params, sizeof params, "%s arithmetic=float16_positions", all[_i].params);
    open_plan(all[_i].type, params);
    int code = strcmp(all[_i].type, "rope") == 0 ? pe_rotary_check(plan, &at, PE_DTYPE_F32, &err)
                                                 : pe_encode_check(plan, &at, PE_DTYPE_F32, &err);
    bool fails = all[_i].path && strcmp(all[_i].path, "[5]") != 0;
    ck_assert_msg(code == (fails ? PE_ERR_RANGE : 0), "%d %s", code, err.text);
    if (fails) {
        ck_assert_str_eq(err.path + strlen("positions"), all[_i].path);
        ck_assert(strstr(err.text, "infinity") != NULL);
    }
}
END_TEST

/* A plan of many frequencies can be stopped. */
static bool always(void *context) {
    (void)context;
    return true;
}

START_TEST(a_plan_can_be_stopped) {
    const struct pe_stop stop = {always, NULL};
    struct pe_spec spec;
    const char *type = _i ? "rope" : "sinusoidal";
    memset(&err, 0, sizeof err);
    ck_assert_int_eq(pe_spec_init(arena, &spec, type, &err), 0);
    ck_assert_int_eq(pe_spec_set(arena, &spec, _i ? "head_dim" : "d_model", "64", &err), 0);
    ck_assert(!_i || !pe_spec_set(arena, &spec, "layout", "halves", &err));
    ck_assert_int_eq(pe_spec_set(arena, &spec, "arithmetic", "ggml", &err), 0);
    err.stop = &stop;
    ck_assert_int_eq(pe_plan_open(&plan, &spec, &err), PE_ERR_STOPPED);
    ck_assert_ptr_null(plan);
}
END_TEST

Suite *arithmetic_suite(void) {
    Suite *suite = suite_create("arithmetic");
    TCase *tests = tcase_create("arithmetic");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, values_have_the_bits_of_the_steps, 0, PARTS);
    tcase_add_loop_test(tests, other_types_round_the_float32_value, 0, 4);
    tcase_add_test(tests, distinct_positions_of_half_precision);
    tcase_add_test(tests, cosines_of_15962);
    tcase_add_test(tests, sections_and_direction);
    tcase_add_test(tests, a_replay_is_no_exact_map);
    tcase_add_loop_test(tests, what_is_not_known, 0, 6);
    tcase_add_loop_test(tests, float16_ends_at_65520, 0, 5);
    tcase_add_loop_test(tests, a_plan_can_be_stopped, 0, 2);
    return suite;
}
