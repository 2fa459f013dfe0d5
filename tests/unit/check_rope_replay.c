/* SPDX-License-Identifier: MIT
 *
 * `arithmetic` with the scalings of rope: every value bit by bit as make_rope_replay.py computes it in the
 * steps of transformers and of ggml, and what is refused because no code computes it.
 */
#include "suites.h"

#include "posenc.h"

#include <stdio.h>
#include <string.h>

struct arithmetic_row {
    const char *type, *params; /* "layout=halves head_dim=12 ..." */
    double position;
    size_t n;
    uint32_t bits[32]; /* the cosines, then the sines */
};
#include "../golden/rope_replay_values.h"

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

static int try_plan(const char *params) {
    struct pe_spec spec;
    char text[1000];
    snprintf(text, sizeof text, "%s", params);
    memset(&err, 0, sizeof err);
    pe_plan_close(plan);
    plan = NULL;
    ck_assert_int_eq(pe_spec_init(arena, &spec, "rope", &err), 0);
    for (char *at = text, *name; (name = strtok_r(at, " ", &at));) {
        char *value = strchr(name, '=');
        *value = '\0';
        if (pe_spec_set(arena, &spec, name, value + 1, &err)) {
            return err.code;
        }
    }
    return pe_plan_open(&plan, &spec, &err);
}

static void open_plan(const char *params) {
    ck_assert_msg(try_plan(params) == 0, "%s: %s %s", params, err.path, err.text);
}

/* cos [n], then sin [n] of some positions. */
static void angles_of(const struct pe_positions *positions, void *out) {
    struct pe_rotary_rows rows = {
        .plan = plan, .positions = positions, .dtype = PE_DTYPE_F32, .form = PE_TRIG_PACKED};
    memset(&err, 0, sizeof err);
    ck_assert_msg(pe_rotary_check(plan, positions, PE_DTYPE_F32, &err) == 0, "%s", err.text);
    pe_rotary_fill(&rows, 0, pe_positions_count(positions), out, NULL);
}

START_TEST(values_have_the_bits_of_the_steps) {
    for (size_t i = (size_t)_i; i < COUNT(rope_replay_rows); i += PARTS) {
        const struct arithmetic_row *row = &rope_replay_rows[i];
        const struct pe_positions at = {.length = 1, .axes = 1, .list = &row->position};
        uint32_t got[32];
        open_plan(row->params);
        angles_of(&at, got);
        for (size_t j = 0; j < row->n; j++) {
            bool zero = ((got[j] | row->bits[j]) & 0x7fffffff) == 0; /* the library has no -0 */
            ck_assert_msg(zero || got[j] == row->bits[j], "%s at %g: value %zu is %08x, not %08x",
                          row->params, row->position, j, got[j], row->bits[j]);
        }
    }
}
END_TEST

#define YARN                                                                                                 \
    "layout=halves head_dim=12 scaling.rope_type=yarn scaling.factor=4 "                                     \
    "scaling.original_max_position_embeddings=64 arithmetic="
#define LISTS                                                                                                \
    "layout=halves head_dim=4 seq_len=9 scaling.rope_type=longrope scaling.factor=2 "                        \
    "scaling.original_max_position_embeddings=64 scaling.short_factor=1,2 scaling.long_factor=3,4 "          \
    "arithmetic="

/* With ggml each section is a running product of its own, of which every pair takes what is its own. */
START_TEST(sections_of_ggml) {
    static const char *const layouts[] = {"contiguous", "interleaved"};
    static const size_t axes[2][6] = {{0, 0, 1, 1, 2, 2}, {0, 1, 2, 0, 1, 2}};
    const double places[3] = {5, 70000, 900};
    const struct pe_positions at = {.length = 1, .axes = 3, .list = places};
    float joined[12], alone[3][12];
    char params[300];
    snprintf(params, sizeof params, YARN "ggml sections=2,2,2 section_layout=%s", layouts[_i]);
    open_plan(params);
    angles_of(&at, joined);
    open_plan(YARN "ggml");
    for (size_t axis = 0; axis < 3; axis++) {
        const struct pe_positions one = {.length = 1, .axes = 1, .list = &places[axis]};
        angles_of(&one, alone[axis]);
    }
    for (size_t pair = 0; pair < 6; pair++) {
        size_t axis = axes[_i][pair];
        ck_assert(joined[pair] == alone[axis][pair] && joined[6 + pair] == alone[axis][6 + pair]);
    }
}
END_TEST

/* ggml's words and those of a configuration are the same arguments. */
START_TEST(ggml_in_its_own_words) {
    const struct pe_positions at = {.length = 9, .axes = 1, .start = 3, .step = 1234.5};
    float own[9 * 12], told[9 * 12];
    open_plan("head_dim=12 ggml.mode=2 ggml.freq_scale=0.25 ggml.n_ctx_orig=4096 arithmetic=ggml");
    angles_of(&at, own);
    open_plan("head_dim=12 layout=halves scaling.rope_type=linear scaling.factor=4 arithmetic=ggml");
    angles_of(&at, told);
    ck_assert_mem_eq(own, told, sizeof own);
}
END_TEST

START_TEST(what_is_not_known) {
    static const struct {
        const char *params;
        int code;
        const char *path, *text;
    } all[] = {
        {"layout=halves head_dim=4 arithmetic=ggml seq_len=99 scaling.rope_type=dynamic scaling.factor=2 "
         "scaling.original_max_position_embeddings=64",
         PE_ERR_UNSUPPORTED, "arithmetic",
         "ggml with rope_type dynamic is not known: no frequency of llama.cpp depends on the length"},
        {"layout=halves head_dim=4 arithmetic=float32_pow scaling.rope_type=ggml scaling.freq_scale=2",
         PE_ERR_UNSUPPORTED, "arithmetic", "float32_pow with rope_type ggml is not known: its numbers are"},
        {"layout=halves head_dim=4 arithmetic=float32_exp scaling.rope_type=ggml scaling.freq_scale=2",
         PE_ERR_UNSUPPORTED, "arithmetic", "float32_exp with rope_type ggml is not known: its numbers are"},
        {YARN "float32_exp", PE_ERR_UNSUPPORTED, "arithmetic",
         "float32_exp with rope_type yarn is not known: code that has it takes powers"},
        {LISTS "float32_exp", PE_ERR_UNSUPPORTED, "arithmetic",
         "float32_exp with rope_type longrope is not known: code that has it takes powers"},
        {YARN "ggml scaling.truncate=false", PE_ERR_UNSUPPORTED, "scaling.truncate", "ggml rounds the ends"},
        {YARN "ggml scaling.attention_factor=2", PE_ERR_UNSUPPORTED, "scaling.attention_factor",
         "is not what ggml takes"},
        {YARN "ggml scaling.mscale=1 scaling.mscale_all_dim=0.5", PE_ERR_UNSUPPORTED,
         "scaling.mscale_all_dim", "is 0.5, with arithmetic ggml it must be the same as mscale, 1"},
        {YARN "ggml base=1.00000001", PE_ERR_RANGE, "base", "which is 1 in float32"},
        {"layout=halves head_dim=4 arithmetic=ggml base=1.00000001 scaling.rope_type=ggml "
         "scaling.ext_factor=1 scaling.original_max_position_embeddings=64",
         PE_ERR_RANGE, "base", "which is 1 in float32"},
        {"layout=halves head_dim=4 arithmetic=float32_pow base=1e36 scaling.rope_type=ntk scaling.factor=1e6",
         PE_ERR_RANGE, "base", "infinite in float32"},
        {YARN "ggml scaling.beta_fast=1e-300", PE_ERR_RANGE, "scaling.beta_fast",
         "is 1e-300, with arithmetic ggml it must be at least 1e-20"},
        {"layout=halves head_dim=4 arithmetic=ggml scaling.rope_type=ggml scaling.ext_factor=1 "
         "scaling.beta_slow=1e-30 scaling.original_max_position_embeddings=64",
         PE_ERR_RANGE, "scaling.beta_slow", "is 1e-30, with arithmetic ggml it must be at least 1e-20"},
        {"layout=halves head_dim=4 arithmetic=ggml scaling.rope_type=yarn scaling.factor=4.5399911e-05 "
         "scaling.original_max_position_embeddings=64",
         PE_ERR_RANGE, "scaling.factor", "by which ggml divides, is 0 in float32"},
    };
    int code = try_plan(all[_i].params);
    ck_assert_msg(code == all[_i].code && strcmp(err.path, all[_i].path) == 0 &&
                      strstr(err.text, all[_i].text),
                  "%s: %d at %s: %s", all[_i].params, code, err.path, err.text);
}
END_TEST

Suite *rope_replay_suite(void) {
    Suite *suite = suite_create("rope_replay");
    TCase *tests = tcase_create("rope_replay");
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, values_have_the_bits_of_the_steps, 0, PARTS);
    tcase_add_loop_test(tests, sections_of_ggml, 0, 2);
    tcase_add_test(tests, ggml_in_its_own_words);
    tcase_add_loop_test(tests, what_is_not_known, 0, 14);
    return suite;
}
