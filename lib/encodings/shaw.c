/* SPDX-License-Identifier: MIT
 *
 * Relative position representations (Shaw et al. 2018): each distance has a learned vector, which is added to
 * the key of the pair, and perhaps another that is added to its value,
 *
 *     logits_ij = scale * q_i.(k_j + aK_r)      out_i = sum_j w_ij (v_j + aV_r)      r = clip(j - i)
 *
 * with r cut to back .. ahead (the paper: -K .. K), so that far keys are all equally far. A table [rows, d]
 * holds the vectors in the order of r, back + ahead + 1 of them; [H, rows, d] has some for each head.
 *
 * What differs between projects: BERT's relative_key and SpeechT5 count i - j (sign query_minus_key);
 * SpeechT5 cuts to -m .. m - 1 (clip [m, m - 1]); the second form of tensor2tensor (Music Transformer) has no
 * vector beyond its table (outside zero), and, where it is causal, none ahead (clip [m - 1, 0], the last row
 * being distance 0); it scales q before, so its users give scale 1 or say scaled false; BERT's
 * relative_key_query adds k_j.aK_r as well (key_side).
 *
 * The paper's own form takes [T, T, d] numbers. Here pairs take products of a band (kernels/band.h).
 *
 * In place of tables a seed makes the keys (there are then no vectors of values): row r, column c is cell
 * (r, c) of table 0 of core/cells.h; clip is then 16 if not given, as in the paper's base model.
 */
#include "encodings/encoding.h"

#include "core/admit.h"
#include "core/cells.h"
#include "kernels/band.h"
#include "kernels/vector.h"

#include <math.h>

#define MAX_WIDTH    65536
#define SEED_CLIP    16
#define SEED_NUMBERS (1 << 22) /* that a seed makes, at most */
#define GATHER_NS    0.5       /* to move a product to its pair */

_Static_assert(PE_LOGITS_ROWS <= PE_BAND_ROWS, "a block of logits is one of a band");

enum outside { OUTSIDE_CLIP = 1, OUTSIDE_ZERO };
enum sign { SIGN_KEY_MINUS_QUERY = 1, SIGN_QUERY_MINUS_KEY };

struct shaw {
    uint64_t given;
    int64_t head_dim;
    struct pe_ints clip;
    int outside, sign;
    struct pe_table keys, values;
    bool scaled, key_side;
    int64_t seed;
    double std;
};

static const struct pe_choice outsides[] = {
    {"clip", OUTSIDE_CLIP, "the vector at the nearer end: the paper, BERT, SpeechT5"},
    {"zero", OUTSIDE_ZERO, "no vector: Music Transformer and the second form of tensor2tensor"},
    {0},
};
static const struct pe_choice signs[] = {
    {"key_minus_query", SIGN_KEY_MINUS_QUERY, "rows go from keys far before the query to those after it"},
    {"query_minus_key", SIGN_QUERY_MINUS_KEY, "the other way: BERT's relative_key, SpeechT5"},
    {0},
};

enum {
    FIELD_HEAD_DIM,
    FIELD_CLIP,
    FIELD_OUTSIDE,
    FIELD_KEYS,
    FIELD_VALUES,
    FIELD_SIGN,
    FIELD_SCALED,
    FIELD_KEY_SIDE,
    FIELD_SEED,
    FIELD_STD
};

static const struct pe_field fields[] = {
    [FIELD_HEAD_DIM] = {PE_FIELD(shaw, head_dim), .min = 1, .max = MAX_WIDTH, .flags = PE_FIELD_WIDTH,
                        .doc = "width of a query and a key, and of the vectors of keys"},
    [FIELD_CLIP] = {PE_FIELD(shaw, clip), .min = 0, .max = PE_POSITION_MAX,
                    .doc =
                        "how far the table reaches: one number K for both sides, or [back, ahead]; default: "
                        "as far as an odd number of rows, 2K + 1, says"},
    [FIELD_OUTSIDE] = {PE_FIELD(shaw, outside), .choices = outsides, .def = "clip",
                       .doc = "what distances beyond the table take"},
    [FIELD_KEYS] = {PE_FIELD(shaw, keys), .shape = "[rows, d] or [H, rows, d]",
                    .doc = "a vector for each distance, added to the key: back + ahead + 1 rows"},
    [FIELD_VALUES] = {PE_FIELD(shaw, values), .shape = "[rows, dv] or [H, rows, dv]",
                      .doc = "the same for values: what the output has more; default none"},
    [FIELD_SIGN] = {PE_FIELD(shaw, sign), .choices = signs, .def = "key_minus_query",
                    .doc = "which difference of positions the rows are in the order of"},
    [FIELD_SCALED] = {PE_FIELD(shaw, scaled), .def = "true",
                      .doc = "the scale of q.k is also that of the vectors' products"},
    [FIELD_KEY_SIDE] = {PE_FIELD(shaw, key_side), .def = "false",
                        .doc = "the key is multiplied by the vector as well: BERT's relative_key_query"},
    [FIELD_SEED] = {PE_FIELD(shaw, seed), .min = 0, .max = PE_POSITION_MAX,
                    .doc = "in place of tables: makes the keys' vectors, of width head_dim"},
    [FIELD_STD] = {PE_FIELD(shaw, std), .min = 0, .max = 1000, .def = "1", .flags = PE_FIELD_OPEN_MIN,
                   .doc = "standard deviation of the numbers that a seed makes"},
};

struct plan {
    double largest_key, largest_value; /* of the tables */
    double made[];                     /* by the seed [rows, head_dim] */
};

static bool is_given(const struct shaw *shaw, int field) {
    return pe_field_given(fields, &fields[field], shaw);
}

/* ---- Parameters ---------------------------------------------------------------------------------------- */

static int table_check(const struct pe_table *table, const char *field, struct pe_error *err) {
    const struct pe_tensor *tensor = table->tensor;
    char shape[128];
    if (!tensor) { /* a seed takes its place, or nothing */
        return PE_OK;
    }
    pe_tensor_shape_text(tensor, shape, sizeof shape);
    if (tensor->rank != 2 && tensor->rank != 3) {
        return pe_fail(err, PE_ERR_SHAPE, field, "got shape %s, allowed are [rows, d] and [H, rows, d]",
                       shape);
    }
    if (pe_tensor_count(tensor) == 0 || pe_table_width(tensor) > MAX_WIDTH) {
        return pe_fail(err, PE_ERR_SHAPE, field, "got shape %s, allowed are 1 row or more of width 1 to %d",
                       shape, MAX_WIDTH);
    }
    return PE_OK;
}

/* How far back and ahead the table reaches; rows 0: it is made. */
static int clip_read(const struct shaw *shaw, uint64_t rows, int64_t clip[2], struct pe_error *err) {
    size_t n = shaw->clip.n;
    if (n > 2 || (n == 0 && is_given(shaw, FIELD_CLIP))) {
        return pe_fail(err, PE_ERR_SHAPE, "clip", "must be one number or [back, ahead], got %zu numbers", n);
    }
    if (n == 0 && rows > 0 && rows % 2 == 0) {
        return pe_fail(err, PE_ERR_MISSING, "clip",
                       "is missing: %llu rows may be those of any [back, ahead] whose sum is %llu",
                       (unsigned long long)rows, (unsigned long long)rows - 1);
    }
    int64_t alone = rows ? (int64_t)(rows / 2) : SEED_CLIP;
    clip[0] = n ? shaw->clip.v[0] : alone;
    clip[1] = n ? shaw->clip.v[n - 1] : alone;
    uint64_t wanted = (uint64_t)clip[0] + (uint64_t)clip[1] + 1;
    if (rows && wanted != rows) {
        return pe_fail(err, PE_ERR_SHAPE, "clip", "[%lld, %lld] takes %llu rows, but keys has %llu",
                       (long long)clip[0], (long long)clip[1], (unsigned long long)wanted,
                       (unsigned long long)rows);
    }
    return PE_OK;
}

static int seed_check(const struct shaw *shaw, struct pe_error *err) {
    int64_t clip[2];
    if (!is_given(shaw, FIELD_HEAD_DIM)) {
        return pe_fail(err, PE_ERR_MISSING, "head_dim", "is missing: the width of the vectors of a seed");
    }
    if (clip_read(shaw, 0, clip, err)) {
        return err->code;
    }
    uint64_t rows = (uint64_t)clip[0] + (uint64_t)clip[1] + 1;
    if (rows > SEED_NUMBERS / (uint64_t)shaw->head_dim) {
        return pe_fail(err, PE_ERR_RANGE, "clip",
                       "makes %llu rows of width %lld from the seed, allowed are %d numbers",
                       (unsigned long long)rows, (long long)shaw->head_dim, SEED_NUMBERS);
    }
    return PE_OK;
}

static int shaw_check(const void *params, struct pe_error *err) {
    const struct shaw *shaw = params;
    int64_t clip[2];
    char shape[128];
    bool seeded = is_given(shaw, FIELD_SEED), has_values = is_given(shaw, FIELD_VALUES);
    if (pe_cells_check(&shaw->keys, "keys", seeded, err) ||
        (has_values && pe_cells_check(&shaw->values, "values", seeded, err)) ||
        table_check(&shaw->keys, "keys", err) || table_check(&shaw->values, "values", err)) {
        return err->code;
    }
    if (seeded) {
        return seed_check(shaw, err);
    }
    const struct pe_tensor *keys = shaw->keys.tensor, *values = shaw->values.tensor;
    if (clip_read(shaw, pe_table_rows(keys), clip, err)) {
        return err->code;
    }
    if (values && pe_table_rows(values) != pe_table_rows(keys)) {
        return pe_fail(err, PE_ERR_SHAPE, "values", "has %zu rows, but keys has %zu", pe_table_rows(values),
                       pe_table_rows(keys));
    }
    if (is_given(shaw, FIELD_HEAD_DIM) && pe_table_width(keys) != (size_t)shaw->head_dim) {
        return pe_fail(err, PE_ERR_SHAPE, "keys", "has shape %s, but heads are %lld wide",
                       pe_tensor_shape_text(keys, shape, sizeof shape), (long long)shaw->head_dim);
    }
    return PE_OK;
}

static void shaw_resolve(void *params, void *data) {
    struct shaw *shaw = params;
    struct pe_error none = {0};
    int64_t clip[2];
    (void)data;
    if (clip_read(shaw, shaw->keys.tensor ? pe_table_rows(shaw->keys.tensor) : 0, clip, &none) == PE_OK) {
        shaw->clip = (struct pe_ints){.n = 2, .v = {clip[0], clip[1]}};
    }
    if (shaw->keys.tensor) {
        shaw->head_dim = (int64_t)pe_table_width(shaw->keys.tensor);
    }
    shaw->given |= UINT64_C(1) << FIELD_CLIP | UINT64_C(1) << FIELD_HEAD_DIM;
}

static size_t shaw_width(const void *params) {
    return (size_t)((const struct shaw *)params)->head_dim;
}

static size_t shaw_plan_bytes(const void *params) {
    const struct shaw *shaw = params;
    struct pe_error none = {0};
    int64_t clip[2] = {0, 0};
    if (!is_given(shaw, FIELD_SEED) || clip_read(shaw, 0, clip, &none)) {
        return sizeof(struct plan);
    }
    return sizeof(struct plan) + (size_t)(clip[0] + clip[1] + 1) * (size_t)shaw->head_dim * sizeof(double);
}

static int shaw_plan(struct pe_plan_view *view, struct pe_error *err) {
    const struct shaw *shaw = view->params;
    struct plan *plan = view->data;
    plan->largest_key = pe_vector_largest_of(shaw->keys.tensor, err->stop);
    plan->largest_value = pe_vector_largest_of(shaw->values.tensor, err->stop);
    if (is_given(shaw, FIELD_SEED)) {
        const struct pe_cells cells = {.seed = shaw->seed, .std = shaw->std};
        size_t rows = (size_t)(shaw->clip.v[0] + shaw->clip.v[1] + 1);
        pe_cells_fill(&cells, rows, view->width, plan->made, err->stop);
        plan->largest_key = pe_vector_largest(PE_DTYPE_F64, plan->made, rows * view->width, false, err->stop);
    }
    return pe_error_poll(err);
}

/* ---- Requests ------------------------------------------------------------------------------------------ */

static int shaw_admit(const struct pe_plan_view *view, const struct pe_positions *positions,
                      struct pe_error *err) {
    (void)view;
    return pe_positions_whole(positions, "a distance is a row of the table", err);
}

static int suits_table(const struct pe_table *table, const char *field, size_t heads, size_t width,
                       struct pe_error *err) {
    const struct pe_tensor *tensor = table->tensor;
    char shape[128];
    if (!tensor) {
        return PE_OK;
    }
    pe_tensor_shape_text(tensor, shape, sizeof shape);
    if (tensor->rank == 3 && tensor->dim[0] != heads) {
        return pe_fail(err, PE_ERR_SHAPE, field, "has shape %s: it is for %zu heads, but there are %zu",
                       shape, tensor->dim[0], heads);
    }
    if (width && pe_table_width(tensor) != width) {
        return pe_fail(err, PE_ERR_SHAPE, field,
                       "has shape %s, but its vectors are added to those of width %zu", shape, width);
    }
    return PE_OK;
}

static int shaw_suits(const struct pe_plan_view *view, const struct pe_relation *relation,
                      struct pe_error *err) {
    const struct shaw *shaw = view->params;
    if (relation->width && relation->width != view->width && !shaw->keys.tensor) {
        return pe_fail(err, PE_ERR_CONFLICT, "head_dim", "is %zu, but queries and keys are %zu wide",
                       view->width, relation->width);
    }
    int code = suits_table(&shaw->keys, "keys", relation->heads, relation->width, err);
    return code ? code : suits_table(&shaw->values, "values", relation->heads, relation->value_width, err);
}

static double shaw_reach(const struct pe_plan_view *view, const struct pe_relation *relation) {
    const struct shaw *shaw = view->params;
    double vectors = relation->largest_query + (shaw->key_side ? relation->largest_key : 0);
    double scale = shaw->scaled ? fmax(1, fabs(relation->scale)) : 1; /* before and after it */
    return ((const struct plan *)view->data)->largest_key * fmax(1, (double)view->width * vectors * scale);
}

/* Of each table, multiplied as far as keys reach; with both sides, keys by twice of that. */
static double shaw_pair_cost_ns(const struct pe_plan_view *view, const struct pe_relation *relation) {
    const struct shaw *shaw = view->params;
    double rows = (double)shaw->clip.v[0] + (double)shaw->clip.v[1] + 1;
    double share = fmin(1, rows / fmax(1, (double)relation->keys)) / PE_PRODUCTS_PER_NS;
    double sides = shaw->key_side ? 3 : 1, values = shaw->values.tensor ? 1 : 0;
    return sides * (GATHER_NS + share * (double)relation->width) +
           values * (GATHER_NS + share * (double)relation->value_width);
}

static double shaw_mix_reach(const struct pe_plan_view *view) {
    return ((const struct plan *)view->data)->largest_value;
}

/* ---- Terms --------------------------------------------------------------------------------------------- */

/* A table of this head as vectors of distances key - query. */
static struct pe_band band_of(const struct pe_plan_view *view, const struct pe_tensor *table, size_t head) {
    const struct shaw *shaw = view->params;
    int64_t back = shaw->clip.v[0], ahead = shaw->clip.v[1];
    bool reversed = shaw->sign == SIGN_QUERY_MINUS_KEY;
    struct pe_band band = {
        .data = ((const struct plan *)view->data)->made,
        .dtype = PE_DTYPE_F64,
        .ld = view->width,
        .width = view->width,
        .least = reversed ? -ahead : -back,
        .most = reversed ? back : ahead,
        .reversed = reversed,
        .clip = shaw->outside == OUTSIDE_CLIP,
    };
    if (table) {
        size_t first = table->rank == 3 ? head * pe_table_rows(table) * pe_table_width(table) : 0;
        band.data = (const unsigned char *)table->data + first * pe_dtype_size(table->dtype);
        band.dtype = table->dtype;
        band.ld = band.width = pe_table_width(table);
    }
    return band;
}

static size_t shaw_scratch_bytes(const struct pe_plan_view *view, const struct pe_relation *relation,
                                 enum pe_dtype real) {
    const struct shaw *shaw = view->params;
    const struct pe_tensor *values = relation->value_width ? shaw->values.tensor : NULL;
    const struct pe_band key_band = band_of(view, shaw->keys.tensor, 0),
                         value_band = band_of(view, values, 0);
    size_t bytes = pe_band_scratch_bytes(&key_band, real, shaw->key_side),
           more = values ? pe_band_scratch_bytes(&value_band, real, false) : 0;
    return more > bytes ? more : bytes;
}

/* All pairs of the block. */
static struct pe_band_block block_of(const struct pe_logits *logits) {
    return (struct pe_band_block){
        .real = logits->real,
        .ordered = logits->ordered,
        .n_rows = logits->n,
        .n_columns = logits->relation->keys,
        .rows = logits->query_positions,
        .columns = logits->key_positions,
        .scratch = logits->scratch,
        .stop = logits->stop,
    };
}

static void shaw_term(const struct pe_plan_view *view, const struct pe_logits *logits) {
    const struct shaw *shaw = view->params;
    const struct pe_band band = band_of(view, shaw->keys.tensor, logits->head);
    const struct pe_band_block block = block_of(logits);
    const struct pe_band_term term = {
        .band = &band,
        .rows = {logits->q, logits->q_ld},
        .columns = {shaw->key_side ? logits->k : NULL, logits->k_ld},
        .alpha = shaw->scaled ? logits->relation->scale : 1,
    };
    pe_band_add(&term, &block, (struct pe_matrix){logits->out, logits->relation->keys});
}

static void shaw_mix(const struct pe_plan_view *view, const struct pe_logits *logits, const void *weights) {
    const struct shaw *shaw = view->params;
    size_t keys = logits->relation->keys;
    if (!shaw->values.tensor) {
        return;
    }
    struct pe_band band = band_of(view, shaw->values.tensor, logits->head);
    struct pe_band_block block = block_of(logits);
    pe_band_mix(&band, &block, (struct pe_const_matrix){weights, keys},
                (struct pe_matrix){logits->out, logits->relation->value_width});
}

const struct pe_encoding pe_shaw = {
    .info =
        {
            .type = "shaw",
            .title = "Relative position representations",
            .doc = "Each distance up to a clipping one has a learned vector that is added to the key, and "
                   "perhaps one that is added to the value. Also BERT's relative_key and Music Transformer.",
            .reference = "Shaw et al. 2018, arXiv:1803.02155; Huang et al. 2018, arXiv:1809.04281",
            .family = PE_FAMILY_QUERY,
            .params_size = sizeof(struct shaw),
            .fields = fields,
            .n_fields = PE_COUNT(fields),
        },
    .check = shaw_check,
    .width = shaw_width,
    .plan_bytes = shaw_plan_bytes,
    .resolve = shaw_resolve,
    .plan = shaw_plan,
    .admit = shaw_admit,
    .suits = shaw_suits,
    .term = shaw_term,
    .mix = shaw_mix,
    .scratch_bytes = shaw_scratch_bytes,
    .reach = shaw_reach,
    .pair_cost_ns = shaw_pair_cost_ns,
    .mix_reach = shaw_mix_reach,
};
