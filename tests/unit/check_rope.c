/* SPDX-License-Identifier: MIT
 *
 * Rotary encodings against tests/golden/rope_values.h, which a script makes from the formulas alone: the
 * frequencies of every scaling, section and axis, their cosines and sines near and far, and the facts that
 * replies tell.
 *
 * float32 must have the very bits of the truth, float64 may be one unit in the last place off.
 */
#include "posenc_fields.h"
#include "suites.h"

#include "posenc.h"

#include "golden/rope_values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static struct pe_arena *arena;

static void setup(void) {
    struct pe_error err = {0};
    arena = pe_arena_open((size_t)1 << 24, NULL, &err);
}

static void teardown(void) {
    pe_arena_close(arena);
}

static struct pe_plan *plan_of(const struct rope_case *row) {
    char name[60], value[300];
    int used = 0;
    struct pe_error err = {0};
    struct pe_plan *plan = NULL;
    struct pe_spec spec;
    ck_assert_int_eq(pe_spec_init(arena, &spec, "rope", &err), PE_OK);
    for (const char *at = row->params; sscanf(at, " %59[^=]=%299s%n", name, value, &used) == 2; at += used) {
        ck_assert_msg(pe_spec_set(arena, &spec, name, value, &err) == PE_OK, "%s: %s: %s", row->params, name,
                      err.text);
    }
    ck_assert_msg(pe_plan_open(&plan, &spec, &err) == PE_OK, "%s: %s: %s", row->params, err.path, err.text);
    return plan;
}

static struct pe_rotary_result tables_of(const struct rope_case *row, const struct pe_plan *plan,
                                         const struct rope_place *place, enum pe_dtype dtype) {
    struct pe_error err = {0};
    struct pe_work work;
    struct pe_rotary_result out;
    struct pe_positions positions = {.length = 1, .axes = place->axes, .list = place->position};
    struct pe_rotary_args args = {.size = sizeof args,
                                  .plan = plan,
                                  .positions = &positions,
                                  .keys = place->keys,
                                  .outputs = PE_ROTARY_COS | PE_ROTARY_SIN | PE_ROTARY_INV_FREQ,
                                  .dtype = dtype};
    ck_assert_msg(pe_rotary_open(arena, &work, &out, &args, &err) == PE_OK, "%s: %s: %s", row->params,
                  err.path, err.text);
    ck_assert(pe_work_run(&work));
    ck_assert_uint_eq(pe_tensor_count(&out.cos), row->n_pairs);
    ck_assert_uint_eq(pe_tensor_count(&out.sin), row->n_pairs);
    ck_assert_uint_eq(pe_tensor_count(&out.inv_freq), row->n_pairs);
    return out;
}

/* ---- Bits ---------------------------------------------------------------------------------------------- */

/* On one line: neighbours differ by 1. */
static int64_t order_of(uint64_t bits) {
    return bits >> 63 ? -(int64_t)(bits & INT64_MAX) : (int64_t)bits;
}

static void check_value(const struct rope_case *row, const char *what, double position, size_t pair,
                        const struct rope_value *wanted, const struct pe_tensor *got) {
    uint64_t float64;
    uint32_t float32;
    if (got->dtype == PE_DTYPE_F64) {
        memcpy(&float64, (const double *)got->data + pair, sizeof float64);
        int64_t apart = order_of(float64) - order_of(wanted->float64);
        ck_assert_msg(apart >= -1 && apart <= 1, "%s: %s of pair %zu at %g: float64 %#llx, not %#llx",
                      row->params, what, pair, position, (unsigned long long)float64,
                      (unsigned long long)wanted->float64);
        return;
    }
    memcpy(&float32, (const float *)got->data + pair, sizeof float32);
    ck_assert_msg(float32 == wanted->float32, "%s: %s of pair %zu at %g: float32 %#x, not %#x", row->params,
                  what, pair, position, float32, wanted->float32);
}

START_TEST(values_of_the_script) {
    const struct rope_case *row = &rope_cases[_i];
    struct pe_plan *plan = plan_of(row);
    for (size_t i = 0; i < 2 * row->n_places; i++) {
        const struct rope_place *place = &rope_places[row->first_place + i / 2];
        struct pe_rotary_result got = tables_of(row, plan, place, i % 2 ? PE_DTYPE_F32 : PE_DTYPE_F64);
        for (size_t pair = 0; pair < row->n_pairs; pair++) {
            const struct rope_value *both = &rope_values[place->first + 2 * pair];
            check_value(row, "inv_freq", 0, pair, &rope_values[row->first + pair], &got.inv_freq);
            check_value(row, "cos", place->position[0], pair, &both[0], &got.cos);
            check_value(row, "sin", place->position[0], pair, &both[1], &got.sin);
        }
    }
    pe_plan_close(plan);
}
END_TEST

/* ---- Facts --------------------------------------------------------------------------------------------- */

static void check_fact(const struct rope_case *row, const struct pe_fact *fact, int number, double wanted) {
    double got = fact->value[number];
    bool nearest = strcmp(fact->name, "softmax_scale") == 0;
    ck_assert_msg(fabs(got - wanted) <= (nearest ? 0 : 2.3e-16) * fabs(wanted), "%s: %s is %.17g, not %.17g",
                  row->params, fact->name, got, wanted);
}

START_TEST(facts_of_the_script) {
    static const char *const names[] = {"attention_factor", "base_used", "softmax_scale", "correction_range"};
    const struct rope_case *row = &rope_cases[_i];
    struct pe_fact facts[PE_MAX_FACTS];
    struct pe_plan *plan = plan_of(row);
    size_t n = pe_plan_facts(plan, facts, COUNT(facts)), n_known = 0;
    for (size_t i = 0; i < n; i++) {
        ck_assert(strcmp(facts[i].name, "base_used") != 0 || row->facts[1] != 0);
        for (size_t k = 0; k < COUNT(names); k++) {
            if (strcmp(facts[i].name, names[k]) == 0 && row->facts[k] != 0) {
                check_fact(row, &facts[i], 0, row->facts[k]);
                n_known++;
            }
        }
        if (facts[i].n == 2) {
            check_fact(row, &facts[i], 1, row->facts[4]);
        }
    }
    for (size_t k = 0; k < COUNT(names); k++) {
        n_known -= row->facts[k] != 0;
    }
    ck_assert_msg(n_known == 0, "%s: a fact is missing", row->params);
    pe_plan_close(plan);
}
END_TEST

/* No more is written than there is room for, and their number is told all the same. */
START_TEST(facts_as_many_as_fit) {
    struct pe_plan *plan = plan_of(&rope_cases[0]);
    struct pe_fact facts[PE_MAX_FACTS];
    size_t n = pe_plan_facts(plan, NULL, 0);
    ck_assert_uint_gt(n, 1);
    facts[1].name = "untouched";
    ck_assert_uint_eq(pe_plan_facts(plan, facts, 1), n);
    ck_assert_str_eq(facts[0].name, "attention_factor");
    ck_assert_str_eq(facts[1].name, "untouched");
    pe_plan_close(plan);
}
END_TEST

/* ---- Lifetime ------------------------------------------------------------------------------------------ */

static const struct pe_tensor *tensor_of(const void *base, const struct pe_field *row) {
    const struct pe_tensor *tensor;
    memcpy(&tensor, (const char *)base + row->offset, sizeof tensor);
    return tensor;
}

/* What a plan's parameters still point to, and its numbers, once the memory of its request is gone. */
static double alive(const struct pe_plan *plan) {
    const struct pe_encoding_info *info = pe_plan_encoding(plan);
    const char *params = pe_plan_params(plan);
    double sum = 0;
    for (size_t i = 0; i < info->n_fields; i++) {
        const struct pe_field *row = &info->fields[i];
        if (row->kind == PE_KIND_CONFIG) {
            struct pe_config config;
            memcpy(&config, params + row->offset, sizeof config);
            ck_assert_uint_eq(config.n, 0);
            ck_assert_ptr_null(config.items);
        }
        const void *object;
        memcpy(&object, params + row->offset, sizeof object);
        for (size_t k = 0; row->kind == PE_KIND_OBJECT && object && k < row->n_fields; k++) {
            const struct pe_field *member = &row->fields[k];
            const struct pe_tensor *list = member->kind == PE_KIND_TENSOR ? tensor_of(object, member) : NULL;
            for (size_t j = 0; list && j < list->dim[0]; j++) {
                sum += ((const double *)list->data)[j];
            }
        }
    }
    return sum;
}

/* With lists of both kinds, and a configuration: 2 + 3 + 5 + 7. */
START_TEST(a_plan_outlives_its_request) {
    static struct pe_config_item items[] = {
        {.key = "model_type", .kind = PE_CONFIG_TEXT, .text = "llama"},
        {.key = "head_dim", .kind = PE_CONFIG_NUMBER, .number = 4},
    };
    static const double position = 3;
    struct pe_error err = {0};
    struct pe_arena *own = pe_arena_open((size_t)1 << 20, NULL, &err);
    struct pe_spec lists, model;
    struct pe_plan *plans[2];
    float row[4];
    ck_assert_int_eq(pe_spec_init(own, &lists, "rope", &err), PE_OK);
    static const char *const settings[][2] = {{"head_dim", "4"},
                                              {"layout", "halves"},
                                              {"seq_len", "9"},
                                              {"scaling.rope_type", "longrope"},
                                              {"scaling.factor", "2"},
                                              {"scaling.original_max_position_embeddings", "8"},
                                              {"scaling.short_factor", "2,3"},
                                              {"scaling.long_factor", "5,7"}};
    for (size_t i = 0; i < COUNT(settings); i++) {
        ck_assert_int_eq(pe_spec_set(own, &lists, settings[i][0], settings[i][1], &err), PE_OK);
    }
    const struct pe_config config = {.n = COUNT(items), .items = items};
    ck_assert_int_eq(pe_spec_init(own, &model, "rope", &err), PE_OK);
    const struct pe_field *field =
        pe_field_find(model.encoding->fields, model.encoding->n_fields, "hf_config");
    ck_assert_int_eq(pe_field_set_config(model.encoding->fields, field, model.params, &config, &err), PE_OK);
    ck_assert_int_eq(pe_plan_open(&plans[0], &lists, &err), PE_OK);
    ck_assert_int_eq(pe_plan_open(&plans[1], &model, &err), PE_OK);
    pe_arena_close(own);
    for (size_t i = 0; i < 2; i++) {
        const struct pe_positions at = {.length = 1, .axes = 1, .list = &position};
        ck_assert_int_eq(pe_encode_check(plans[i], &at, PE_DTYPE_F32, &err), PE_OK);
        pe_encode_rows(plans[i], &at, PE_DTYPE_F32, 0, 1, row);
        ck_assert_double_eq(alive(plans[i]), i == 0 ? 17 : 0);
        pe_plan_close(plans[i]);
    }
}
END_TEST

/* ---- Time ---------------------------------------------------------------------------------------------- */

static int plan_setup(struct pe_plan **plan, const char *const *settings, struct pe_error *failure) {
    struct pe_error err = {0};
    struct pe_spec spec;
    *plan = NULL;
    ck_assert_int_eq(pe_spec_init(arena, &spec, "rope", &err), PE_OK);
    for (; *settings; settings += 2) {
        ck_assert_int_eq(pe_spec_set(arena, &spec, settings[0], settings[1], &err), PE_OK);
    }
    return pe_plan_open(plan, &spec, failure);
}

/* Counts how often it is asked, and says yes to the last of so many times. */
struct patience {
    int n_asked, least;
};

static bool asked(void *context) {
    struct patience *patience = context;
    return ++patience->n_asked >= patience->least;
}

/* 2048 pairs: a logarithm each takes some 50 ms, so it is asked at every few. */
START_TEST(planning_asks_whether_to_stop) {
    static const struct {
        const char *settings[11];
        int n_asked;
    } rows[] = {
        {{"layout", "halves", "head_dim", "4096", "xpos.scale_base", "512", NULL}, 30},
        {{"layout", "halves", "head_dim", "4096", "arithmetic", "float32_pow", NULL}, 30},
        {{"layout", "halves", "head_dim", "4096", "scaling.rope_type", "linear", "scaling.factor", "4", NULL},
         4},
        {{"layout", "halves", "head_dim", "4096", "rope_axes.n_axes", "4", "rope_axes.frequencies", "shared",
          NULL},
         12},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct patience patience = {.least = rows[i].n_asked};
        const struct pe_stop stop = {asked, &patience};
        struct pe_error stopped = {.stop = &stop};
        struct pe_plan *plan;
        ck_assert_msg(plan_setup(&plan, rows[i].settings, &stopped) == PE_ERR_STOPPED,
                      "row %zu: asked %d times", i, patience.n_asked);
        ck_assert_ptr_null(plan);
    }
}
END_TEST

/* Frequencies of a turn and more have no fast path: a pair takes microseconds, and the estimate, by which a
 * server tells what it may compute at once, knows. */
START_TEST(slow_pairs_cost_more) {
    static const char *const settings[][9] = {
        {"layout", "halves", "head_dim", "256", "scaling.rope_type", "linear", "scaling.factor", "1", NULL},
        {"layout", "halves", "head_dim", "256", "scaling.rope_type", "linear", "scaling.factor", "1e-6",
         NULL}};
    const struct pe_positions at = {.length = 1, .axes = 1, .start = 1};
    struct pe_error err = {0};
    double cost[2];
    for (size_t i = 0; i < 2; i++) {
        struct pe_plan *plan;
        struct pe_work work;
        struct pe_rotary_result out;
        ck_assert_int_eq(plan_setup(&plan, settings[i], &err), PE_OK);
        const struct pe_rotary_args args = {
            .size = sizeof args, .plan = plan, .positions = &at, .outputs = PE_ROTARY_COS};
        ck_assert_int_eq(pe_rotary_open(arena, &work, &out, &args, &err), PE_OK);
        cost[i] = work.cost_ns;
        pe_plan_close(plan);
    }
    ck_assert_double_lt(cost[0], 1e4);
    ck_assert_double_gt(cost[1], 1e6); /* all pairs, as 1e6/10000 is above 2*pi */
}
END_TEST

Suite *rope_suite(void) {
    Suite *suite = suite_create("rope");
    TCase *golden = tcase_create("golden");
    suite_add_tcase(suite, golden);
    tcase_add_checked_fixture(golden, setup, teardown);
    tcase_add_loop_test(golden, values_of_the_script, 0, (int)COUNT(rope_cases));
    tcase_add_loop_test(golden, facts_of_the_script, 0, (int)COUNT(rope_cases));
    tcase_add_test(golden, facts_as_many_as_fit);
    tcase_add_test(golden, a_plan_outlives_its_request);
    TCase *time = tcase_create("time");
    suite_add_tcase(suite, time);
    tcase_add_checked_fixture(time, setup, teardown);
    tcase_add_test(time, planning_asks_whether_to_stop);
    tcase_add_test(time, slow_pairs_cost_more);
    return suite;
}
