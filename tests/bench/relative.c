/* SPDX-License-Identifier: MIT
 *
 * What attention costs with the encodings that add a term of the query, against attention without one of the
 * same size: 512 tokens, 8 heads of width 64, float32, one thread. As in kernels.c the two are measured in turn,
 * and what is told is the median over rounds. All that a request takes is measured, its preparation too.
 */
#include "bench/rounds.h"
#include "bench/tensors.h"
#include "posenc_fields.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 15
#define T      512
#define H      8
#define D      64

struct table {
    const char *name;
    int rank;
    size_t dim[3];
};

static const struct row {
    const char *name, *type;
    const char *settings[7]; /* name, value ... */
    struct table tables[4];
} rows[] = {
    {"alibi/plain_time", "alibi", {NULL}, {{0}}},
    {"shaw_16/plain_time", "shaw", {NULL}, {{"keys", 2, {33, D}}}},
    {"shaw_all/plain_time", "shaw", {NULL}, {{"keys", 2, {2 * T - 1, D}}}},
    {"shaw_keys/plain_time", "shaw", {"key_side", "true"}, {{"keys", 2, {2 * T - 1, D}}}},
    {"transformer_xl_table/plain_time",
     "transformer_xl",
     {"first_distance", "511"},
     {{"table", 2, {2 * T - 1, H *D}}}},
    {"transformer_xl_table_u_v/plain_time",
     "transformer_xl",
     {"first_distance", "511"},
     {{"table", 2, {2 * T - 1, H *D}}, {"content_bias", 2, {H, D}}, {"position_bias", 2, {H, D}}}},
    {"transformer_xl_w_r_u_v/plain_time",
     "transformer_xl",
     {NULL},
     {{"w_r", 2, {H * D, H *D}}, {"content_bias", 2, {H, D}}, {"position_bias", 2, {H, D}}}},
    {"transformer_xl_seed/plain_time", "transformer_xl", {"seed", "1", "d_model", "512"}, {{0}}},
    {"deberta_tables/plain_time",
     "deberta",
     {NULL},
     {{"pos_keys", 2, {512, H *D}}, {"pos_queries", 2, {512, H *D}}}},
    {"deberta_c2p/plain_time", "deberta", {"pos_att_type", "c2p"}, {{"pos_keys", 2, {512, H *D}}}},
    {"deberta_seed/plain_time", "deberta", {"seed", "1"}, {{0}}},
    {"cope_64/plain_time", "cope", {NULL}, {{"pos_emb", 2, {64, D}}}},
    {"cope_seed/plain_time", "cope", {"seed", "1", "head_dim", "64"}, {{0}}},
    {"wavlm_tables/plain_time",
     "wavlm",
     {NULL},
     {{"table", 2, {320, H}}, {"gate_weight", 2, {8, D}}, {"gate_bias", 1, {8}}, {"gate_const", 1, {H}}}},
    {"wavlm_seed/plain_time", "wavlm", {"seed", "1", "head_dim", "64"}, {{0}}},
};

static struct pe_plan *plan_make(struct pe_arena *arena, const struct row *row) {
    struct pe_error err = {0};
    struct pe_spec spec;
    struct pe_plan *plan = NULL;
    bool fails = pe_spec_init(arena, &spec, row->type, &err) != PE_OK;
    for (size_t i = 0; row->settings[i] && !fails; i += 2) {
        fails = pe_spec_set(arena, &spec, row->settings[i], row->settings[i + 1], &err) != PE_OK;
    }
    for (size_t i = 0; i < PE_COUNT(row->tables) && row->tables[i].name && !fails; i++) {
        const struct pe_tensor *tensor = tensor_make(arena, row->tables[i].rank, row->tables[i].dim);
        fails = pe_spec_set_tensor(&spec, row->tables[i].name, tensor, &err) != PE_OK;
    }
    if (fails || pe_plan_open(&plan, &spec, &err)) {
        give_up(&err);
    }
    return plan;
}

static double timed(const struct pe_tensor *qk[2], struct pe_plan *plan) {
    struct pe_error err = {0};
    struct pe_arena *arena = pe_arena_open((size_t)256 << 20, NULL, &err);
    const struct pe_attention_args args = {.size = sizeof args, .plan = plan, .q = qk[0], .k = qk[1]};
    struct pe_attention_result result;
    struct pe_work work;
    double start = rounds_now();
    if (!arena || pe_attention_open(arena, &work, &result, &args, &err)) {
        give_up(&err);
    }
    pe_work_run(&work);
    double taken = rounds_now() - start;
    pe_arena_close(arena);
    return taken;
}

static void measure(const struct row *row, const struct pe_tensor *qk[2], struct pe_plan *plan) {
    double ours[ROUNDS], ratio[ROUNDS];
    for (int i = -1; i < ROUNDS; i++) {
        double with = timed(qk, plan), without = timed(qk, NULL);
        ours[i < 0 ? 0 : i] = with;
        ratio[i < 0 ? 0 : i] = with / without;
    }
    rounds_print(row->name, rounds_median(ours, ROUNDS), rounds_median(ratio, ROUNDS));
}

int main(void) {
    struct pe_error err = {0};
    struct pe_arena *arena = pe_arena_open((size_t)256 << 20, NULL, &err);
    if (!arena) {
        give_up(&err);
    }
    pe_linalg_init();
    const size_t dim[] = {H, T, D};
    const struct pe_tensor *qk[2] = {tensor_make(arena, 3, dim), tensor_make(arena, 3, dim)};
    for (size_t i = 0; i < PE_COUNT(rows); i++) {
        struct pe_plan *plan = plan_make(arena, &rows[i]);
        measure(&rows[i], qk, plan);
        pe_plan_close(plan);
    }
    pe_arena_close(arena);
    return 0;
}
