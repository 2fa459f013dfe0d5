/* SPDX-License-Identifier: MIT
 *
 * CoPE: contextual position encoding. Which keys count is for the query to say: each key opens a gate by its
 * content, and the position of key j is the number of gates that are open from it up to the query,
 *
 *     g_ij = sigmoid(scale * q_i.k_j)             0 where the query does not see the key
 *     P_ij = min(sum of g_it over keys t from j up to the query's own place, npos_max - 1)
 *     logits_ij = scale * q_i.k_j + lerp(q_i.e[floor P_ij], q_i.e[ceil P_ij], P_ij)
 *
 * so that one head may count words, another sentences. As in the paper's code the gates take the logits as
 * they are scaled, but not what is added to them, and the second q is not scaled; `pos_emb` is e [npos_max,
 * d], the transpose of the parameter there, shared by heads, or one for each.
 *
 * The paper's mask is causal. Without one, keys behind the query have position 0 and count nothing, which is
 * what they have there before they are hidden. Places are positions: keys between j's and the query's count,
 * in whatever order they are posted, and keys at one place all count for each other.
 *
 * Without pos_emb a seed makes it: row r, column c is cell (r, c) of table 0 of core/cells.h, for all heads.
 */
#include "encodings/encoding.h"

#include "core/cells.h"
#include "kernels/linalg.h"
#include "kernels/vector.h"

#include <math.h>
#include <stdlib.h>

#define MAX_ROWS     65536
#define MAX_WIDTH    65536
#define SEED_ROWS    64
#define SEED_NUMBERS ((size_t)1 << 22) /* that a seed makes, at most */
#define ALIGN        ((size_t)64)
#define CHUNK        ((size_t)256) /* terms put into out at a time */
#define PAIR_NS      6.5           /* a gate, and a place between two products */

struct cope {
    uint64_t given;
    int64_t head_dim;
    int64_t npos_max;
    struct pe_table pos_emb;
    int64_t seed;
    double std;
};

enum { FIELD_HEAD_DIM, FIELD_NPOS_MAX, FIELD_POS_EMB, FIELD_SEED, FIELD_STD };

static const struct pe_field fields[] = {
    [FIELD_HEAD_DIM] = {PE_FIELD(cope, head_dim), .min = 1, .max = MAX_WIDTH, .flags = PE_FIELD_WIDTH,
                        .doc = "width of a query and a key, and of the vectors of positions"},
    [FIELD_NPOS_MAX] = {PE_FIELD(cope, npos_max), .min = 1, .max = MAX_ROWS,
                        .doc =
                            "positions from 0 that have a vector; default: the rows of pos_emb, or 64 of a "
                            "seed"},
    [FIELD_POS_EMB] = {PE_FIELD(cope, pos_emb), .shape = "[npos_max, d] or [H, npos_max, d]",
                       .doc = "vectors of positions, which the query is multiplied by"},
    [FIELD_SEED] = {PE_FIELD(cope, seed), .min = 0, .max = PE_POSITION_MAX,
                    .doc = "in place of them: random ones"},
    [FIELD_STD] = {PE_FIELD(cope, std), .min = 0, .max = 1000, .def = "1", .flags = PE_FIELD_OPEN_MIN,
                   .doc = "standard deviation of their numbers"},
};

/* ---- Parameters ---------------------------------------------------------------------------------------- */

static bool is_given(const struct cope *cope, int field) {
    return pe_field_given(fields, &fields[field], cope);
}

/* As it is resolved. */
static size_t rows_of(const struct cope *cope) {
    return cope->pos_emb.tensor             ? pe_table_rows(cope->pos_emb.tensor)
           : is_given(cope, FIELD_NPOS_MAX) ? (size_t)cope->npos_max
                                            : SEED_ROWS;
}

static int table_check(const struct cope *cope, struct pe_error *err) {
    const struct pe_tensor *table = cope->pos_emb.tensor;
    char shape[128];
    pe_tensor_shape_text(table, shape, sizeof shape);
    if ((table->rank != 2 && table->rank != 3) || pe_tensor_count(table) == 0 ||
        pe_table_rows(table) > MAX_ROWS || pe_table_width(table) > MAX_WIDTH) {
        return pe_fail(
            err, PE_ERR_SHAPE, "pos_emb",
            "has shape %s, allowed are [npos_max, d] and [H, npos_max, d], npos_max and d from 1 to "
            "%d",
            shape, MAX_ROWS);
    }
    if (is_given(cope, FIELD_NPOS_MAX) && pe_table_rows(table) != (size_t)cope->npos_max) {
        return pe_fail(err, PE_ERR_SHAPE, "pos_emb", "has shape %s, but npos_max is %lld", shape,
                       (long long)cope->npos_max);
    }
    if (is_given(cope, FIELD_HEAD_DIM) && pe_table_width(table) != (size_t)cope->head_dim) {
        return pe_fail(err, PE_ERR_SHAPE, "pos_emb", "has shape %s, but heads are %lld wide", shape,
                       (long long)cope->head_dim);
    }
    return PE_OK;
}

static int seed_check(const struct cope *cope, struct pe_error *err) {
    if (!is_given(cope, FIELD_HEAD_DIM)) {
        return pe_fail(err, PE_ERR_MISSING, "head_dim", "is missing: the width of the vectors of a seed");
    }
    if (rows_of(cope) > SEED_NUMBERS / (size_t)cope->head_dim) {
        return pe_fail(err, PE_ERR_RANGE, "npos_max",
                       "makes %zu rows of width %lld from the seed, allowed are %zu numbers", rows_of(cope),
                       (long long)cope->head_dim, SEED_NUMBERS);
    }
    return PE_OK;
}

static int cope_check(const void *params, struct pe_error *err) {
    const struct cope *cope = params;
    if (pe_cells_check(&cope->pos_emb, "pos_emb", is_given(cope, FIELD_SEED), err)) {
        return err->code;
    }
    return cope->pos_emb.tensor ? table_check(cope, err) : seed_check(cope, err);
}

static void cope_resolve(void *params, void *data) {
    struct cope *cope = params;
    (void)data;
    cope->npos_max = (int64_t)rows_of(cope);
    if (cope->pos_emb.tensor) {
        cope->head_dim = (int64_t)pe_table_width(cope->pos_emb.tensor);
    }
    cope->given |= UINT64_C(1) << FIELD_NPOS_MAX | UINT64_C(1) << FIELD_HEAD_DIM;
}

static size_t cope_width(const void *params) {
    return (size_t)((const struct cope *)params)->head_dim;
}

/* ---- Plan: the vectors [1 or H, npos_max, d] ----------------------------------------------------------- */

struct plan {
    double largest;
    double vectors[];
};

static size_t vectors_count(const struct cope *cope) {
    return cope->pos_emb.tensor ? pe_tensor_count(cope->pos_emb.tensor)
                                : rows_of(cope) * (size_t)cope->head_dim;
}

static size_t cope_plan_bytes(const void *params) {
    return sizeof(struct plan) + vectors_count(params) * sizeof(double);
}

static int cope_plan(struct pe_plan_view *view, struct pe_error *err) {
    const struct cope *cope = view->params;
    struct plan *plan = view->data;
    const struct pe_cells made = {.seed = cope->seed, .std = cope->std};
    size_t n = vectors_count(cope);
    if (cope->pos_emb.tensor && pe_tensor_load(cope->pos_emb.tensor, plan->vectors, err)) {
        return err->code;
    }
    if (!cope->pos_emb.tensor) {
        pe_cells_fill(&made, n / view->width, view->width, plan->vectors, err->stop);
    }
    plan->largest = pe_vector_largest(PE_DTYPE_F64, plan->vectors, n, false, err->stop);
    return pe_error_poll(err);
}

/* ---- Requests ------------------------------------------------------------------------------------------ */

static int cope_suits(const struct pe_plan_view *view, const struct pe_relation *relation,
                      struct pe_error *err) {
    const struct pe_tensor *table = ((const struct cope *)view->params)->pos_emb.tensor;
    if (relation->width != view->width) {
        return pe_fail(err, table ? PE_ERR_SHAPE : PE_ERR_CONFLICT, table ? "pos_emb" : "head_dim",
                       "is of width %zu, but queries and keys are %zu wide", view->width, relation->width);
    }
    if (table && table->rank == 3 && table->dim[0] != relation->heads) {
        return pe_fail(err, PE_ERR_SHAPE, "pos_emb", "is for %zu heads, but there are %zu", table->dim[0],
                       relation->heads);
    }
    return PE_OK;
}

static double cope_reach(const struct pe_plan_view *view, const struct pe_relation *relation) {
    double largest = ((const struct plan *)view->data)->largest;
    return fmax(largest, (double)view->width * relation->largest_query * largest);
}

static double cope_pair_cost_ns(const struct pe_plan_view *view, const struct pe_relation *relation) {
    double share =
        fmin(1, (double)((const struct cope *)view->params)->npos_max / fmax(1, (double)relation->keys));
    return PAIR_NS + share * (double)relation->width / PE_PRODUCTS_PER_NS;
}

/* ---- Terms --------------------------------------------------------------------------------------------- */

/* A key in the order of places, the last first. */
struct place {
    double position;
    size_t key;
};

/* The memory of a block. */
struct block {
    const struct pe_logits *logits;
    size_t rows;             /* that any position of so many keys reaches */
    unsigned char *vectors;  /* [rows, d] of type real */
    unsigned char *products; /* [queries, rows]: q_i.e */
    double *row;             /* [rows] of one query */
    double *values;          /* [Tk]: its content, then its terms */
    struct place *places;    /* [Tk] */
};

static size_t aligned(size_t bytes) {
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t rows_reached(const struct cope *cope, size_t keys) {
    size_t rows = (size_t)cope->npos_max;
    return keys < rows ? keys + 1 : rows;
}

/* Sets the pointers into memory, or says how many bytes they take. No product overflows: MAX_ROWS, MAX_WIDTH,
 * and as many keys as there are vectors in memory. */
static size_t block_cut(struct block *block, const struct pe_relation *relation, enum pe_dtype real,
                        unsigned char *memory) {
    size_t item = pe_dtype_size(real), at = 0, keys = relation->keys;
    const size_t bytes[] = {block->rows * relation->width * item, PE_LOGITS_ROWS * block->rows * item,
                            block->rows * sizeof(double), keys * sizeof(double), keys * sizeof(struct place)};
    size_t first[PE_COUNT(bytes)];
    for (size_t i = 0; i < PE_COUNT(bytes); i++) {
        first[i] = at;
        at += aligned(bytes[i]);
    }
    if (memory) {
        block->vectors = memory + first[0];
        block->products = memory + first[1];
        block->row = (double *)(void *)(memory + first[2]);
        block->values = (double *)(void *)(memory + first[3]);
        block->places = (struct place *)(void *)(memory + first[4]);
    }
    return at;
}

static size_t cope_scratch_bytes(const struct pe_plan_view *view, const struct pe_relation *relation,
                                 enum pe_dtype real) {
    struct block block = {.rows = rows_reached(view->params, relation->keys)};
    return block_cut(&block, relation, real, NULL);
}

static int by_place(const void *a, const void *b) {
    const struct place *x = a, *y = b;
    if (x->position != y->position) {
        return x->position > y->position ? -1 : 1;
    }
    return x->key > y->key ? -1 : x->key < y->key;
}

/* Nearly always they are in order. */
static void places_open(const struct block *block) {
    size_t n = block->logits->relation->keys;
    const double *positions = block->logits->key_positions;
    bool sorted = true;
    for (size_t i = 0; i < n; i++) {
        size_t key = n - 1 - i;
        block->places[i] = (struct place){.position = positions[key], .key = key};
        sorted = sorted && (i == 0 || positions[key] <= positions[key + 1]);
    }
    if (!sorted) {
        qsort(block->places, n, sizeof *block->places, by_place);
    }
}

static bool is_seen(const struct pe_logits *logits, const struct pe_visible *visible, size_t key) {
    if (key < visible->first || key >= visible->end) {
        return false;
    }
    if (!visible->hidden) {
        return true;
    }
    return logits->real == PE_DTYPE_F64 ? ((const double *)visible->hidden)[key] == 0
                                        : ((const float *)visible->hidden)[key] == 0;
}

static double between(const double *row, double position) {
    size_t low = (size_t)position, high = (size_t)ceil(position);
    double part = position - (double)low;
    return row[high] * part + row[low] * (1 - part);
}

/* Gates of the places from..until-1, which are one. */
static double gates(const struct block *block, const struct pe_visible *visible, size_t from, size_t until) {
    double sum = 0;
    for (size_t i = from; i < until; i++) {
        size_t key = block->places[i].key;
        sum += is_seen(block->logits, visible, key) ? 1 / (1 + exp(-block->values[key])) : 0;
    }
    return sum;
}

/* values: content becomes terms. Gates are added up from the query's place backwards, until the last position
 * is reached, from which on none matters. */
static void row_fill(const struct block *block, size_t query, double most) {
    const struct pe_logits *logits = block->logits;
    const struct place *places = block->places;
    double position = 0, own = logits->query_positions[query];
    size_t keys = logits->relation->keys;
    for (size_t i = 0, next; i < keys; i = next) {
        for (next = i + 1; next < keys && places[next].position == places[i].position;) {
            next++;
        }
        if (places[i].position <= own && position < most) {
            position = fmin(most, position + gates(block, &logits->visible[query], i, next));
        }
        double term = between(block->row, position);
        for (size_t k = i; k < next; k++) {
            block->values[places[k].key] = term;
        }
    }
}

/* q_i.e of all positions that can be reached, of the block's head. */
static void products_open(const struct block *block, const struct pe_plan_view *view) {
    const struct cope *cope = view->params;
    const struct plan *plan = view->data;
    const struct pe_logits *logits = block->logits;
    bool by_head = cope->pos_emb.tensor && cope->pos_emb.tensor->rank == 3;
    size_t d = view->width, first = by_head ? logits->head * (size_t)cope->npos_max * d : 0;
    pe_dtype_store(logits->real, plan->vectors + first, block->rows * d, block->vectors);
    struct pe_gemm gemm = {
        .dtype = logits->real,
        .ordered = logits->ordered,
        .b_transposed = true,
        .m = logits->n,
        .n = block->rows,
        .k = d,
        .alpha = 1,
        .a = {logits->q, logits->q_ld},
        .b = {block->vectors, d},
        .c = {block->products, block->rows},
        .stop = logits->stop,
    };
    pe_gemm_run(&gemm);
}

static void terms_add(enum pe_dtype real, const double *terms, size_t n, unsigned char *out) {
    double chunk[CHUNK]; /* of type real */
    for (size_t i = 0, step; i < n; i += step) {
        step = n - i < CHUNK ? n - i : CHUNK;
        pe_dtype_store(real, terms + i, step, chunk);
        pe_vector_add(real, out, out, chunk, step);
        out += step * pe_dtype_size(real);
    }
}

static void cope_term(const struct pe_plan_view *view, const struct pe_logits *logits) {
    size_t keys = logits->relation->keys, item = pe_dtype_size(logits->real);
    struct block block = {.logits = logits, .rows = rows_reached(view->params, keys)};
    double most = (double)((const struct cope *)view->params)->npos_max - 1;
    block_cut(&block, logits->relation, logits->real, logits->scratch);
    places_open(&block);
    products_open(&block, view);
    for (size_t i = 0; i < logits->n && !pe_stop_asked(logits->stop); i++) {
        unsigned char *out = (unsigned char *)logits->out + i * keys * item;
        pe_dtype_load(logits->real, (const unsigned char *)logits->content + i * keys * item, keys,
                      block.values);
        pe_dtype_load(logits->real, block.products + i * block.rows * item, block.rows, block.row);
        row_fill(&block, i, most);
        terms_add(logits->real, block.values, keys, out);
    }
}

const struct pe_encoding pe_cope = {
    .info =
        {
            .type = "cope",
            .title = "CoPE",
            .doc = "A key's position is the number of keys between it and the query that the query opens a "
                   "gate for, by their content; its vector is interpolated and multiplied by the query.",
            .reference = "Golovneva et al. 2024, Contextual position encoding, arXiv:2405.18719",
            .family = PE_FAMILY_QUERY,
            .params_size = sizeof(struct cope),
            .fields = fields,
            .n_fields = PE_COUNT(fields),
        },
    .check = cope_check,
    .width = cope_width,
    .plan_bytes = cope_plan_bytes,
    .resolve = cope_resolve,
    .plan = cope_plan,
    .suits = cope_suits,
    .term = cope_term,
    .scratch_bytes = cope_scratch_bytes,
    .pair_cost_ns = cope_pair_cost_ns,
    .reach = cope_reach,
};
