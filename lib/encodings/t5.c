/* SPDX-License-Identifier: MIT
 *
 * The relative position bias of T5: one learned number for each head and each bucket of distances,
 *
 *     b_ij = bias_scale * table[bucket(j - i), h]
 *
 * Buckets are those of core/bucket.h: one for each near distance, and a geometric sequence for far ones, for
 * keys before and after the query apart. Encoders look both ways; decoders (bidirectional=false) do not, and
 * a key after its query is in bucket 0. Attention across two sequences has no bias in T5: there no encoding
 * is to be named.
 *
 * T5 does not divide q.k by sqrt(d); its initial weights do so. So the softmax's scale is 1 here, unless the
 * request has another. x-transformers multiplies the bias by sqrt(dim_head): bias_scale.
 *
 * Without a table `seed` makes one: cell (bucket, head) is cell (r, c) of table 0 of core/cells.h.
 */
#include "encodings/encoding.h"

#include "core/admit.h"
#include "core/bucket.h"
#include "core/cells.h"

#include <math.h>

enum table_axes { AXES_BUCKETS_HEADS = 1, AXES_HEADS_BUCKETS };

struct t5 {
    uint64_t given;
    int64_t num_buckets;
    int64_t max_distance;
    bool bidirectional;
    struct pe_table table;
    const char *tensor_name;
    int table_axes;
    int64_t seed;
    double std;
    double bias_scale;
};

struct t5_data {
    struct pe_buckets buckets;
    double reach;
    double edges[]; /* [pe_buckets_edges] */
};

static const struct pe_choice table_axes[] = {
    {"buckets_heads", AXES_BUCKETS_HEADS, "[num_buckets, H], as T5's weights"},
    {"heads_buckets", AXES_HEADS_BUCKETS, "[H, num_buckets], as ONNX Runtime's RelativePositionBias"},
    {0},
};

enum {
    FIELD_NUM_BUCKETS,
    FIELD_MAX_DISTANCE,
    FIELD_BIDIRECTIONAL,
    FIELD_TABLE,
    FIELD_TENSOR_NAME,
    FIELD_TABLE_AXES,
    FIELD_SEED,
    FIELD_STD,
    FIELD_BIAS_SCALE
};

static const struct pe_field fields[] = {
    [FIELD_NUM_BUCKETS] =
        {PE_FIELD(t5, num_buckets), .min = 2, .max = PE_BUCKETS_MAX, .def = "32",
         .doc = "buckets of distances; where bidirectional, half of them are for keys after the query"},
    [FIELD_MAX_DISTANCE] = {PE_FIELD(t5, max_distance), .min = 1, .max = PE_BUCKETS_MAX_DISTANCE,
                            .def = "128", .doc = "the distance from which all are in the last bucket"},
    [FIELD_BIDIRECTIONAL] =
        {PE_FIELD(t5, bidirectional), .def = "true",
         .doc = "are keys after the query told apart? If not, as in decoders, they are in bucket 0"},
    [FIELD_TABLE] = {PE_FIELD(t5, table), .shape = "[num_buckets, H] or [H, num_buckets]",
                     .doc = "the biases: the name of a loaded table, or the tensor itself"},
    [FIELD_TENSOR_NAME] = {PE_FIELD(t5, tensor_name),
                           .doc = "which tensor of the table's file, where there are several"},
    [FIELD_TABLE_AXES] = {PE_FIELD(t5, table_axes), .choices = table_axes, .def = "buckets_heads",
                          .doc = "the order of its axes"},
    [FIELD_SEED] = {PE_FIELD(t5, seed), .min = 0, .max = PE_POSITION_MAX,
                    .doc = "in place of a table: normal random numbers, another seed, others"},
    [FIELD_STD] = {PE_FIELD(t5, std), .min = 0, .max = 1000, .def = "1", .flags = PE_FIELD_OPEN_MIN,
                   .doc = "the standard deviation of biases from a seed"},
    [FIELD_BIAS_SCALE] = {PE_FIELD(t5, bias_scale), .min = -1e6, .max = 1e6, .def = "1",
                          .doc = "what biases are multiplied by: 1 in T5, sqrt(dim_head) in x-transformers"},
};

/* ---- Tables -------------------------------------------------------------------------------------------- */

static struct pe_bucket_rule rule_of(const struct t5 *t5) {
    return (struct pe_bucket_rule){t5->num_buckets, t5->max_distance, t5->bidirectional};
}

static struct pe_cells cells_of(const struct t5 *t5) {
    const struct pe_tensor *table = t5->table.tensor;
    return (struct pe_cells){
        .tensor = table, .columns = table ? table->dim[1] : 0, .seed = t5->seed, .std = t5->std};
}

static int table_check(const struct t5 *t5, struct pe_error *err) {
    const struct pe_tensor *table = t5->table.tensor;
    bool rows = t5->table_axes == AXES_BUCKETS_HEADS;
    long long n = (long long)t5->num_buckets;
    char shape[128];
    if (!table || (table->rank == 2 && table->dim[!rows] == (size_t)n && table->dim[rows] > 0)) {
        return PE_OK;
    }
    return pe_fail(err, PE_ERR_SHAPE, "table",
                   "has shape %s, allowed is %s%lld%s for %lld buckets with table_axes=%s",
                   pe_tensor_shape_text(table, shape, sizeof shape), rows ? "[" : "[H, ", n,
                   rows ? ", H]" : "]", n, pe_choice_name(table_axes, t5->table_axes));
}

static int t5_check(const void *params, struct pe_error *err) {
    const struct t5 *t5 = params;
    const struct pe_bucket_rule rule = rule_of(t5);
    if (pe_buckets_check(&rule, err) ||
        pe_cells_check(&t5->table, "table", pe_field_given(fields, &fields[FIELD_SEED], t5), err)) {
        return err->code;
    }
    return table_check(t5, err);
}

static int t5_suits(const struct pe_plan_view *view, const struct pe_relation *relation,
                    struct pe_error *err) {
    size_t heads = relation->heads;
    const struct t5 *t5 = view->params;
    const struct pe_tensor *table = t5->table.tensor;
    size_t columns = table ? table->dim[t5->table_axes == AXES_BUCKETS_HEADS] : heads;
    if (columns == heads) {
        return PE_OK;
    }
    return pe_fail(err, PE_ERR_SHAPE, "table", "is of %zu heads, but there are %zu", columns, heads);
}

/* ---- Biases -------------------------------------------------------------------------------------------- */

static size_t t5_plan_bytes(const void *params) {
    const struct pe_bucket_rule rule = rule_of(params);
    return sizeof(struct t5_data) + pe_buckets_edges(&rule) * sizeof(double);
}

static int t5_plan(struct pe_plan_view *view, struct pe_error *err) {
    const struct t5 *t5 = view->params;
    struct t5_data *data = view->data;
    const struct pe_bucket_rule rule = rule_of(t5);
    const struct pe_cells cells = cells_of(t5);
    pe_buckets_open(&data->buckets, &rule, data->edges);
    data->reach = pe_cells_largest(&cells, err->stop) * fabs(t5->bias_scale);
    return pe_error_poll(err);
}

static int t5_admit(const struct pe_plan_view *view, const struct pe_positions *positions,
                    struct pe_error *err) {
    (void)view;
    return pe_positions_whole(positions, "buckets are of whole distances", err);
}

/* Neighbours are often of one bucket, whose number is not made again. */
static void t5_bias(const struct pe_plan_view *view, const struct pe_pair_row *row, double *out) {
    const struct t5 *t5 = view->params;
    const struct t5_data *data = view->data;
    const struct pe_cells cells = cells_of(t5);
    bool heads_first = t5->table.tensor && t5->table_axes == AXES_HEADS_BUCKETS;
    size_t last = SIZE_MAX;
    for (size_t j = 0; j < row->n; j++) {
        size_t bucket = pe_buckets_find(&data->buckets, row->keys[j] - row->query);
        out[j] = bucket == last ? out[j - 1]
                                : t5->bias_scale * (heads_first ? pe_cells_at(&cells, row->head, bucket)
                                                                : pe_cells_at(&cells, bucket, row->head));
        last = bucket;
    }
}

static bool t5_stationary(const struct pe_plan_view *view) {
    (void)view;
    return true;
}

static double t5_reach(const struct pe_plan_view *view, const struct pe_relation *relation) {
    (void)relation;
    return ((const struct t5_data *)view->data)->reach;
}

static double t5_scale(const struct pe_plan_view *view, double usual) {
    (void)view, (void)usual;
    return 1;
}

static double t5_cost_ns(const struct pe_plan_view *view, enum pe_dtype dtype) {
    (void)dtype;
    const struct t5 *t5 = view->params;
    return t5->table.tensor ? 5 : 13;
}

const struct pe_encoding pe_t5 = {
    .info =
        {
            .type = "t5",
            .title = "T5's relative bias",
            .doc = "A learned number for each head and bucket of distances: near distances have a bucket "
                   "each, far ones share theirs, the last takes all beyond. The softmax has no scale.",
            .reference = "Raffel et al. 2020, Exploring the limits of transfer learning with a unified "
                         "text-to-text Transformer, arXiv:1910.10683",
            .family = PE_FAMILY_BIAS,
            .params_size = sizeof(struct t5),
            .fields = fields,
            .n_fields = PE_COUNT(fields),
        },
    .check = t5_check,
    .plan_bytes = t5_plan_bytes,
    .plan = t5_plan,
    .admit = t5_admit,
    .suits = t5_suits,
    .bias = t5_bias,
    .stationary = t5_stationary,
    .reach = t5_reach,
    .scale = t5_scale,
    .row_cost_ns = t5_cost_ns,
};
