/* SPDX-License-Identifier: MIT
 *
 * The gated relative position bias of WavLM: T5's numbers for buckets of distances (core/bucket.h, 320 to
 * 800, both ways), which each query opens and closes by two gates of its own,
 *
 *     u, r = sigmoid(sum of the first, of the second half of (gate_weight q_i + gate_bias))
 *     g_i  = u (r * gate_const[h] - 1) + 2
 *     term_ij = g_i * table[bucket(j - i), h]
 *
 * under the names of ONNX Runtime's GatedRelativePositionBias; transformers calls the tensors rel_attn_embed,
 * gru_rel_pos_linear and gru_rel_pos_const.
 *
 * The gates look at q as it is posted, as in ONNX Runtime and BEATs. WavLM lets them look at a head's part x
 * of the layer's input in place of the query: then post [q, x] as q, [k, 0] as k, gate_weight with zeros
 * before its columns, and the scale 1/sqrt(d) of q alone.
 *
 * Without tables `seed` makes them: table, gate_weight of 8 rows, gate_bias and gate_const (one column each)
 * are tables 0 to 3 of core/cells.h.
 */
#include "encodings/encoding.h"

#include "core/admit.h"
#include "core/bucket.h"
#include "core/cells.h"
#include "core/pieces.h"
#include "kernels/vector.h"

#include <math.h>
#include <stdio.h>

#define CHUNK       256  /* numbers made at a time, on the stack */
#define PAIR_NS     2.0  /* to find a bias, gate it and add it */
#define STEP        1024 /* biases of a head made between two questions whether to stop */
#define SEEDED_ROWS 8
#define MAX_WIDTH   65536

enum { TABLE, GATE_WEIGHT, GATE_BIAS, GATE_CONST, N_TABLES };

struct wavlm {
    uint64_t given;
    int64_t num_buckets;
    int64_t max_distance;
    int64_t head_dim;
    struct pe_table table, gate_weight, gate_bias, gate_const;
    int64_t seed;
    double std;
};

struct wavlm_data {
    struct pe_buckets buckets;
    double bias[2];   /* of the two gates */
    double most_bias; /* no bias of a bucket is larger, gate_const's numbers, the gates' */
    double most_const, most_gate;
    double numbers[]; /* [2, d] the gates' weights, then the edges of the buckets */
};

enum {
    FIELD_NUM_BUCKETS,
    FIELD_MAX_DISTANCE,
    FIELD_HEAD_DIM,
    FIELD_TABLE,
    FIELD_GATE_WEIGHT,
    FIELD_GATE_BIAS,
    FIELD_GATE_CONST,
    FIELD_SEED,
    FIELD_STD
};

static const struct pe_field fields[] = {
    [FIELD_NUM_BUCKETS] = {PE_FIELD(wavlm, num_buckets), .min = 4, .max = PE_BUCKETS_MAX, .def = "320",
                           .doc = "buckets of distances; half of them are for keys after the query"},
    [FIELD_MAX_DISTANCE] = {PE_FIELD(wavlm, max_distance), .min = 1, .max = PE_BUCKETS_MAX_DISTANCE,
                            .def = "800", .doc = "the distance from which all are in the last bucket"},
    [FIELD_HEAD_DIM] = {PE_FIELD(wavlm, head_dim), .min = 1, .max = MAX_WIDTH, .flags = PE_FIELD_WIDTH,
                        .doc = "width of a head's queries"},
    [FIELD_TABLE] = {PE_FIELD(wavlm, table), .shape = "[num_buckets, H]",
                     .doc = "the biases: rel_attn_embed"},
    [FIELD_GATE_WEIGHT] = {PE_FIELD(wavlm, gate_weight), .shape = "[n, d]",
                           .doc = "weights of the gates, n even, 8 in WavLM: gru_rel_pos_linear.weight"},
    [FIELD_GATE_BIAS] = {PE_FIELD(wavlm, gate_bias), .shape = "[n]",
                         .doc = "their biases: gru_rel_pos_linear.bias"},
    [FIELD_GATE_CONST] = {PE_FIELD(wavlm, gate_const), .shape = "[H] or [1, H, 1, 1]",
                          .doc = "a number for each head: gru_rel_pos_const, eco_a"},
    [FIELD_SEED] = {PE_FIELD(wavlm, seed), .min = 0, .max = PE_POSITION_MAX,
                    .doc = "in place of the tables: normal random numbers, another seed, others"},
    [FIELD_STD] = {PE_FIELD(wavlm, std), .min = 0, .max = 1000, .def = "1", .flags = PE_FIELD_OPEN_MIN,
                   .doc = "the standard deviation of numbers from a seed"},
};

/* ---- Tables -------------------------------------------------------------------------------------------- */

static struct pe_bucket_rule rule_of(const struct wavlm *wavlm) {
    return (struct pe_bucket_rule){wavlm->num_buckets, wavlm->max_distance, true};
}

static struct pe_cells cells_of(const struct wavlm *wavlm, uint32_t number) {
    const struct pe_table *const tables[N_TABLES] = {&wavlm->table, &wavlm->gate_weight, &wavlm->gate_bias,
                                                     &wavlm->gate_const};
    const struct pe_tensor *tensor = tables[number]->tensor;
    bool matrix = number == TABLE || number == GATE_WEIGHT;
    return (struct pe_cells){.tensor = tensor,
                             .columns = tensor && matrix ? tensor->dim[1] : 1,
                             .seed = wavlm->seed,
                             .std = wavlm->std,
                             .number = number};
}

static size_t gate_rows(const struct wavlm *wavlm) {
    return wavlm->gate_weight.tensor ? wavlm->gate_weight.tensor->dim[0] : SEEDED_ROWS;
}

static size_t wavlm_width(const void *params) {
    const struct wavlm *wavlm = params;
    return wavlm->gate_weight.tensor ? wavlm->gate_weight.tensor->dim[1] : (size_t)wavlm->head_dim;
}

static int weight_check(const struct wavlm *wavlm, const struct pe_tensor *weight, struct pe_error *err) {
    char allowed[100];
    if (weight->rank != 2 || weight->dim[0] < 2 || weight->dim[0] % 2 || weight->dim[1] < 1 ||
        weight->dim[1] > MAX_WIDTH) {
        return pe_cells_shape_fail(weight, "gate_weight", "[n, d] with n even: half of them for each gate",
                                   err);
    }
    if (wavlm->head_dim && weight->dim[1] != (size_t)wavlm->head_dim) {
        snprintf(allowed, sizeof allowed, "[n, %lld]: queries are so wide", (long long)wavlm->head_dim);
        return pe_cells_shape_fail(weight, "gate_weight", allowed, err);
    }
    return PE_OK;
}

static int shapes_check(const struct wavlm *wavlm, struct pe_error *err) {
    const struct pe_tensor *table = wavlm->table.tensor, *weight = wavlm->gate_weight.tensor,
                           *bias = wavlm->gate_bias.tensor, *constant = wavlm->gate_const.tensor;
    char allowed[100];
    if (table->rank != 2 || table->dim[0] != (size_t)wavlm->num_buckets || table->dim[1] < 1) {
        snprintf(allowed, sizeof allowed, "[%lld, H]: a row for each bucket", (long long)wavlm->num_buckets);
        return pe_cells_shape_fail(table, "table", allowed, err);
    }
    if (weight_check(wavlm, weight, err)) {
        return err->code;
    }
    if (bias->rank != 1 || bias->dim[0] != weight->dim[0]) {
        snprintf(allowed, sizeof allowed, "[%zu]: a number for each row of gate_weight", weight->dim[0]);
        return pe_cells_shape_fail(bias, "gate_bias", allowed, err);
    }
    if (pe_tensor_count(constant) != table->dim[1] || (constant->rank != 1 && constant->rank != 4) ||
        (constant->rank == 4 && constant->dim[1] != table->dim[1])) {
        snprintf(allowed, sizeof allowed, "[%zu]: a number for each head of table", table->dim[1]);
        return pe_cells_shape_fail(constant, "gate_const", allowed, err);
    }
    return PE_OK;
}

static int wavlm_check(const void *params, struct pe_error *err) {
    const struct wavlm *wavlm = params;
    const struct pe_bucket_rule rule = rule_of(wavlm);
    bool seeded = pe_field_given(fields, &fields[FIELD_SEED], wavlm);
    if (pe_buckets_check(&rule, err) || pe_cells_check(&wavlm->table, "table", seeded, err) ||
        pe_cells_check(&wavlm->gate_weight, "gate_weight", seeded, err) ||
        pe_cells_check(&wavlm->gate_bias, "gate_bias", seeded, err) ||
        pe_cells_check(&wavlm->gate_const, "gate_const", seeded, err)) {
        return err->code;
    }
    if (seeded && !wavlm->head_dim) {
        return pe_fail(err, PE_ERR_MISSING, "head_dim", "is missing: how wide queries are");
    }
    return seeded ? PE_OK : shapes_check(wavlm, err);
}

static int wavlm_suits(const struct pe_plan_view *view, const struct pe_relation *relation,
                       struct pe_error *err) {
    const struct wavlm *wavlm = view->params;
    const struct pe_tensor *table = wavlm->table.tensor;
    if (relation->width != view->width) {
        return pe_fail(err, PE_ERR_CONFLICT, table ? "gate_weight" : "head_dim",
                       "is for a width of %zu, but queries are %zu wide", view->width, relation->width);
    }
    if (table && table->dim[1] != relation->heads) {
        return pe_fail(err, PE_ERR_SHAPE, "table", "is of %zu heads, but there are %zu", table->dim[1],
                       relation->heads);
    }
    return PE_OK;
}

/* ---- Gates --------------------------------------------------------------------------------------------- */

static size_t wavlm_plan_bytes(const void *params) {
    const struct pe_bucket_rule rule = rule_of(params);
    return sizeof(struct wavlm_data) + (2 * wavlm_width(params) + pe_buckets_edges(&rule)) * sizeof(double);
}

/* A gate's sum over its rows of weights is one row: the sum of them. */
static int gate_open(struct pe_plan_view *view, size_t gate, struct pe_error *err) {
    const struct wavlm *wavlm = view->params;
    struct wavlm_data *data = view->data;
    const struct pe_cells weight = cells_of(wavlm, GATE_WEIGHT), bias = cells_of(wavlm, GATE_BIAS);
    size_t half = gate_rows(wavlm) / 2, d = view->width;
    for (size_t r = gate * half; r < (gate + 1) * half && !pe_error_poll(err); r++) {
        for (size_t c = 0; c < d; c++) {
            data->numbers[gate * d + c] += pe_cells_at(&weight, r, c);
        }
        data->bias[gate] += pe_cells_at(&bias, r, 0);
    }
    return err->code;
}

static int wavlm_plan(struct pe_plan_view *view, struct pe_error *err) {
    const struct wavlm *wavlm = view->params;
    struct wavlm_data *data = view->data;
    const struct pe_bucket_rule rule = rule_of(wavlm);
    const struct pe_cells table = cells_of(wavlm, TABLE), constant = cells_of(wavlm, GATE_CONST);
    if (gate_open(view, 0, err) || gate_open(view, 1, err)) {
        return err->code;
    }
    pe_buckets_open(&data->buckets, &rule, data->numbers + 2 * view->width);
    data->most_bias = pe_cells_largest(&table, err->stop);
    data->most_const = pe_cells_largest(&constant, err->stop);
    for (size_t c = 0; c < 2 * view->width; c++) {
        data->most_gate += fabs(data->numbers[c]);
    }
    return pe_error_poll(err);
}

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

/* What blocks share, of each head asked for: gate_const, and the biases of all distances from the least key -
 * query on, or where that would be more than there are pairs, or they are no whole numbers, of all buckets. */
struct shared {
    bool by_distance;
    size_t n;
    double *constants, *biases; /* [slots], [slots, n] */
};

static size_t shared_cut(const struct wavlm *wavlm, const struct pe_relation *relation, struct shared *out,
                         void *memory) {
    double distances = relation->most - relation->least + 1;
    struct pe_pieces pieces = {memory, 0};
    pe_pieces_take(&pieces, 1, 1, sizeof *out); /* itself */
    out->by_distance = relation->whole && distances <= (double)relation->queries * (double)relation->keys;
    out->n = out->by_distance ? (size_t)distances : (size_t)wavlm->num_buckets;
    out->constants = pe_pieces_take(&pieces, 1, relation->n_slots, sizeof(double));
    out->biases = pe_pieces_take(&pieces, relation->n_slots, out->n, sizeof(double));
    return pieces.bytes;
}

static size_t wavlm_shared_bytes(const struct pe_plan_view *view, const struct pe_relation *relation,
                                 enum pe_dtype real) {
    struct shared shared;
    (void)real;
    return shared_cut(view->params, relation, &shared, NULL);
}

static void wavlm_share(const struct pe_plan_view *view, const struct pe_relation *relation,
                        enum pe_dtype real, void *memory, const struct pe_stop *stop) {
    const struct wavlm_data *data = view->data;
    const struct pe_cells table = cells_of(view->params, TABLE),
                          constant = cells_of(view->params, GATE_CONST);
    struct shared *is = memory;
    (void)real;
    shared_cut(view->params, relation, is, memory);
    for (size_t slot = 0; slot < relation->n_slots; slot++) {
        size_t head = pe_relation_head(relation, slot), last = SIZE_MAX;
        double *out = is->biases + slot * is->n;
        is->constants[slot] = pe_cells_at(&constant, head, 0);
        for (size_t i = 0; i < is->n && (i % STEP || !pe_stop_asked(stop)); i++) {
            size_t bucket =
                is->by_distance ? pe_buckets_find(&data->buckets, relation->least + (double)i) : i;
            out[i] = bucket == last ? out[i - 1] : pe_cells_at(&table, bucket, head);
            last = bucket;
        }
    }
}

/* q [d] -> g */
static double gate(const struct pe_plan_view *view, const struct pe_logits *block, size_t t) {
    const struct wavlm_data *data = view->data;
    size_t d = view->width, item = pe_dtype_size(block->real);
    const unsigned char *q = (const unsigned char *)block->q + t * block->q_ld * item;
    double sum[2] = {data->bias[0], data->bias[1]}, part[CHUNK];
    for (size_t c = 0, n; c < d; c += n) {
        n = d - c < CHUNK ? d - c : CHUNK;
        pe_dtype_load(block->real, q + c * item, n, part);
        sum[0] += pe_vector_dot(part, data->numbers + c, n);
        sum[1] += pe_vector_dot(part, data->numbers + d + c, n);
    }
    double constant = ((const struct shared *)block->shared)->constants[block->slot];
    return sigmoid(sum[0]) * (sigmoid(sum[1]) * constant - 1) + 2;
}

/* Of n keys from `first` on. */
static void chunk_fill(const struct pe_plan_view *view, const struct pe_logits *block, double query,
                       size_t first, size_t n, double *out) {
    const struct wavlm_data *data = view->data;
    const struct shared *is = block->shared;
    const double *biases = is->biases + block->slot * is->n, *keys = block->key_positions + first;
    for (size_t i = 0; i < n; i++) {
        out[i] = biases[is->by_distance ? (size_t)(keys[i] - query - block->relation->least)
                                        : pe_buckets_find(&data->buckets, keys[i] - query)];
    }
}

static void row_add(const struct pe_plan_view *view, const struct pe_logits *block, size_t t) {
    size_t keys = block->relation->keys, item = pe_dtype_size(block->real);
    unsigned char *out = (unsigned char *)block->out + t * keys * item;
    double g = gate(view, block, t), chunk[CHUNK], real[CHUNK];
    for (size_t j = 0, n; j < keys; j += n) {
        n = keys - j < CHUNK ? keys - j : CHUNK;
        chunk_fill(view, block, block->query_positions[t], j, n, chunk);
        for (size_t i = 0; i < n; i++) {
            chunk[i] *= g;
        }
        pe_dtype_store(block->real, chunk, n, real);
        pe_vector_add(block->real, out + j * item, out + j * item, real, n);
    }
}

static void wavlm_term(const struct pe_plan_view *view, const struct pe_logits *block) {
    for (size_t t = 0; t < block->n && !pe_stop_asked(block->stop); t++) {
        row_add(view, block, t);
    }
}

/* u and r are in [0, 1]; but where a sum overflows, nothing is known of them. */
static double wavlm_reach(const struct pe_plan_view *view, const struct pe_relation *relation) {
    const struct wavlm_data *data = view->data;
    double sum =
        data->most_gate * fmax(relation->largest_query, 1) + fabs(data->bias[0]) + fabs(data->bias[1]);
    return isfinite(sum) ? data->most_bias * fmax(2, 1 + data->most_const) : INFINITY;
}

static double wavlm_pair_cost_ns(const struct pe_plan_view *view, const struct pe_relation *relation) {
    (void)view;
    (void)relation;
    return PAIR_NS;
}

static int wavlm_admit(const struct pe_plan_view *view, const struct pe_positions *positions,
                       struct pe_error *err) {
    (void)view;
    return pe_positions_whole(positions, "buckets are of whole distances", err);
}

const struct pe_encoding pe_wavlm = {
    .info =
        {
            .type = "wavlm",
            .title = "WavLM's gated relative bias",
            .doc = "T5's numbers for buckets of distances, times a number that two gates make of the query: "
                   "how much a position matters depends on what is there.",
            .reference =
                "Chen et al. 2022, WavLM, arXiv:2110.13900; Chi et al. 2022, XLM-E, arXiv:2106.16138",
            .family = PE_FAMILY_QUERY,
            .params_size = sizeof(struct wavlm),
            .fields = fields,
            .n_fields = PE_COUNT(fields),
        },
    .check = wavlm_check,
    .width = wavlm_width,
    .plan_bytes = wavlm_plan_bytes,
    .plan = wavlm_plan,
    .admit = wavlm_admit,
    .suits = wavlm_suits,
    .term = wavlm_term,
    .shared_bytes = wavlm_shared_bytes,
    .share = wavlm_share,
    .reach = wavlm_reach,
    .pair_cost_ns = wavlm_pair_cost_ns,
};
