/* SPDX-License-Identifier: MIT
 *
 * The smallest parameters that make a scaling do something within 8 pairs.
 */
#include "rotary_setups.h"
#include "unit/expect.h"

#include <stdio.h>
#include <string.h>

#define YARN "scaling.rope_type=yarn scaling.factor=8 scaling.original_max_position_embeddings=64 "
#define DYNAMIC                                                                                              \
    "scaling.rope_type=dynamic scaling.factor=2 scaling.original_max_position_embeddings=64 seq_len=100 "
#define LONG                                                                                                 \
    "scaling.rope_type=longrope scaling.factor=4 scaling.original_max_position_embeddings=64 "               \
    "scaling.short_factor=1,1,1,2,2,2,3,3 scaling.long_factor=1,2,3,4,5,6,7,8 "
#define LLAMA3                                                                                               \
    "scaling.rope_type=llama3 scaling.factor=8 scaling.original_max_position_embeddings=256 "                \
    "scaling.low_freq_factor=1 scaling.high_freq_factor=4 "
#define ORIGINAL "scaling.original_max_position_embeddings=64"
#define AXES     "rope_axes.n_axes=2 base=100 rope_axes.frequencies="
#define PIXEL    "rope_axes.n_axes=2 rope_axes.frequencies="
#define GRID     "rope_axes.grid=4,6 rope_axes.coordinates="

const struct rotary_setup rotary_setups[] = {
    {"rope", "", false, false},
    {"rope", "base=500000 direction=counterclockwise", false, false},
    {"rope", "direction=clockwise", false, false},
    {"rope", "rotary_dim=6", false, false},
    {"rope", "partial_rotary_factor=0.5 scaling.rope_type=default", false, false},
    {"rope", "scaling.rope_type=linear scaling.factor=4", false, false},
    {"rope", "scaling.rope_type=ntk scaling.factor=4 rotary_dim=8", false, false},
    {"rope", DYNAMIC, false, false},
    {"rope", "scaling.rope_type=proportional partial_rotary_factor=0.25 base=1000000", false, false},
    {"rope", "scaling.rope_type=proportional scaling.partial_rotary_factor=0.5", false, false},
    {"rope", YARN, false, false},
    {"rope", YARN "scaling.truncate=false scaling.rope_theta=150000", false, false},
    {"rope", YARN "scaling.mscale=1 scaling.mscale_all_dim=0.7 qk_head_dim=48 direction=clockwise", false,
     false},
    {"rope", LONG "seq_len=10", false, false},
    {"rope", LONG "seq_len=65", false, false},
    {"rope", LLAMA3, false, false},
    {"rope", "scaling.rope_type=ggml scaling.freq_scale=0.25 scaling.ext_factor=1 " ORIGINAL, false, false},
    {"rope", "scaling.rope_type=ggml scaling.attn_factor=1.5 scaling.freq_factors=1,2,3,4,5,6,7,8", false,
     false},
    {"rope", YARN "rotary_dim=12 scaling.attention_factor=0.75", false, false},
    {"rope", "sections=2,3,3", false, false},
    {"rope", "sections=2,2,1,3 section_layout=interleaved", false, false},
    {"rope", LLAMA3 "sections=1,2,5", false, false},
    {"rope", "sections=2,3,3 section_layout=contiguous", false, false},
    {"rope", "sections=4,2,2 section_layout=interleaved " YARN, false, false},
    {"rope", AXES "language", false, false},
    {"rope", AXES "shared rope_axes.coordinates=positions", false, false},
    {"rope", PIXEL "pixel rope_axes.max_freq=8", false, false},
    {"rope", AXES "period " GRID "centered", true, false},
    {"rope", AXES "period " GRID "centered_max", true, false},
    {"rope", AXES "shared " GRID "centered_min", true, false},
    {"rope", PIXEL "pixel " GRID "unit", true, false},
    {"rope", "xpos.scale_base=512", false, true},
    {"rope", "xpos.scale_base=64 xpos.center=10 rotary_dim=8", true, true},
};
const int rotary_setup_count = (int)(sizeof rotary_setups / sizeof rotary_setups[0]);
const char *const rotary_layouts[ROTARY_LAYOUTS] = {"halves", "interleaved"};

static void spec_set(struct rotary *r, struct pe_spec *spec, const char *name, const char *value) {
    struct pe_error err = {0};
    ck_assert_msg(pe_spec_set(r->arena, spec, name, value, &err) == PE_OK, "%s: %s: %s", r->setup->params,
                  name, err.text);
}

void rotary_open(struct rotary *r, int variant) {
    struct pe_error err = {0};
    struct pe_spec spec;
    struct pe_fact facts[PE_MAX_FACTS];
    char name[60], value[100];
    int used = 0;
    *r = (struct rotary){.setup = &rotary_setups[variant / ROTARY_LAYOUTS],
                         .arena = pe_arena_open((size_t)1 << 24, NULL, &err)};
    ck_assert_int_eq(pe_spec_init(r->arena, &spec, r->setup->type, &err), PE_OK);
    snprintf(value, sizeof value, "%d", ROTARY_WIDTH);
    spec_set(r, &spec, "head_dim", value);
    spec_set(r, &spec, "layout", rotary_layouts[variant % ROTARY_LAYOUTS]);
    for (const char *at = r->setup->params; sscanf(at, " %59[^=]=%99s%n", name, value, &used) == 2;
         at += used) {
        spec_set(r, &spec, name, value);
    }
    ck_assert_msg(pe_plan_open(&r->plan, &spec, &err) == PE_OK, "%s: %s: %s", r->setup->params, err.path,
                  err.text);
    const struct pe_encoding *row = pe_plan_row(r->plan);
    r->pairs = row->pairs(pe_plan_view(r->plan));
    r->axes = row->axes ? row->axes(pe_plan_view(r->plan)) : 1;
    r->gain = 1;
    for (size_t i = 0, n = pe_plan_facts(r->plan, facts, PE_MAX_FACTS); i < n; i++) {
        r->gain = strcmp(facts[i].name, "attention_factor") == 0 ? facts[i].value[0] : r->gain;
    }
}

void rotary_close(struct rotary *r) {
    pe_plan_close(r->plan);
    pe_arena_close(r->arena);
}

double *rotary_numbers(struct rotary *r, size_t n, unsigned seed) {
    struct pe_error err = {0};
    double *x = pe_arena_array(r->arena, n, sizeof *x, &err);
    uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (size_t i = 0; i < n; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        x[i] = (double)(state >> 40) / (1 << 22) - 2; /* 22 bits behind the point: exact in float32 */
    }
    return x;
}

struct pe_positions rotary_positions(struct rotary *r, size_t n, double first, double step) {
    struct pe_error err = {0};
    size_t axes = (size_t)r->axes;
    double *list = pe_arena_array(r->arena, n * axes, sizeof *list, &err);
    for (size_t i = 0; i < n * axes; i++) {
        list[i] = first + (double)(i / axes) * step;
    }
    return (struct pe_positions){.length = n, .axes = r->axes, .list = list};
}

double *rotary_apply(struct rotary *r, const double *x, const struct pe_apply_args *args, int rank,
                     const size_t *dim) {
    struct pe_error err = {0};
    struct pe_work work;
    struct pe_tensor out, in = {.data = (void *)(uintptr_t)x, .dtype = PE_DTYPE_F64, .rank = rank};
    struct pe_apply_args mine = *args;
    memcpy(in.dim, dim, (size_t)rank * sizeof *dim);
    mine.size = sizeof mine;
    mine.plan = r->plan;
    mine.embeddings = &in;
    ck_assert_msg(pe_apply_open(r->arena, &work, &out, &mine, &err) == PE_OK, "%s: %s: %s", r->setup->params,
                  err.path, err.text);
    ck_assert(pe_work_run(&work));
    return out.data;
}
