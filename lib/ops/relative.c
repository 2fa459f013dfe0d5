/* SPDX-License-Identifier: MIT
 *
 * Tiles of biases. Positions are read into lists of doubles once, as every row looks at all the keys.
 */
#include "ops/relative.h"

#include "core/stop.h"
#include "kernels/vector.h"
#include "ops/operand.h"

#include <math.h>
#include <string.h>

#define CHUNK     256  /* biases made at a time, on the stack */
#define CHUNK_NS  1e6  /* and so long it may take, as whoever waits for the end is asked between two */
#define BIAS_NS   20.0 /* one takes, where the encoding does not say */
#define ADD_NS    1.0  /* to add it */
#define HEAD_STEP ((size_t)4096) /* numbers of a head between two questions whether to stop */
#define TILE_KEYS                                                                                            \
    512 /* of PE_LOGITS_ROWS queries, whose biases by distance are made together, on the stack */

/* ---- Heads --------------------------------------------------------------------------------------------- */

static int index_read(const struct pe_tensor *tensor, size_t i, size_t model, size_t *out,
                      struct pe_error *err) {
    double value;
    const unsigned char *data = tensor->data;
    pe_dtype_load(tensor->dtype, data + i * pe_dtype_size(tensor->dtype), 1, &value);
    if (value >= 0 && value < (double)model && value == floor(value)) {
        *out = (size_t)value;
        return PE_OK;
    }
    char path[sizeof err->path];
    pe_fail(err, PE_ERR_RANGE, pe_tensor_index_text(tensor, i, path, sizeof path),
            "got %.17g, allowed are heads from 0 to %zu", value, model - 1);
    return pe_error_at(err, "head_index");
}

int pe_relative_heads_read(struct pe_arena *arena, struct pe_relation *relation, size_t heads,
                           const struct pe_tensor *index, struct pe_error *err) {
    char shape[128];
    relation->heads = relation->n_slots = heads;
    relation->slot = NULL;
    if (heads > PE_HEADS_MAX) {
        return pe_fail(err, PE_ERR_RANGE, "heads", "got %zu, allowed are up to %d", heads, PE_HEADS_MAX);
    }
    if (!index || err->code) {
        return err->code;
    }
    if (index->rank > 1 || pe_tensor_count(index) == 0) {
        return pe_fail(err, PE_ERR_SHAPE, "head_index", "has shape %s, allowed is a list of one head or more",
                       pe_tensor_shape_text(index, shape, sizeof shape));
    }
    size_t n = pe_tensor_count(index);
    size_t *list = pe_arena_array(arena, n, sizeof *list, err);
    for (size_t i = 0; list && i < n; i++) {
        if (index_read(index, i, heads, &list[i], err) || (i % PE_STOP_ITEMS == 0 && pe_error_poll(err))) {
            return err->code;
        }
    }
    relation->n_slots = n;
    relation->slot = list;
    return err->code;
}

/* ---- Positions ----------------------------------------------------------------------------------------- */

static const double *positions_list(struct pe_arena *arena, const struct pe_positions *positions,
                                    struct pe_error *err) {
    size_t n = pe_positions_count(positions);
    if (positions->list) {
        return positions->list;
    }
    double *list = pe_arena_array(arena, n, sizeof *list, err);
    for (size_t done = 0, step; list && done < n && !pe_error_poll(err); done += step) {
        step = pe_stop_step(n, done);
        pe_positions_read(positions, done, step, list + done);
    }
    return list;
}

struct span {
    double least, most;
    bool whole;
};

static struct span positions_span(const double *list, size_t n, struct pe_error *err) {
    struct span span = {INFINITY, -INFINITY, true};
    for (size_t i = 0; i < n && (i % PE_STOP_ITEMS || !pe_error_poll(err)); i++) {
        span.least = fmin(span.least, list[i]);
        span.most = fmax(span.most, list[i]);
        span.whole = span.whole && list[i] == floor(list[i]);
    }
    return span;
}

/* The least and the largest key - query in any sequence, and the largest |key|. */
static int distances_find(struct pe_relative *relative, size_t batch, struct pe_error *err) {
    struct pe_relation *relation = &relative->relation;
    bool any = relation->queries && relation->keys;
    relation->whole = true;
    relation->least = any ? INFINITY : 0;
    relation->most = any ? -INFINITY : 0;
    relation->furthest_key = 0;
    for (size_t b = 0; any && b < batch; b++) {
        struct span q =
            positions_span(relation->query_positions + b * relative->query_batch, relation->queries, err);
        struct span k =
            positions_span(relation->key_positions + b * relative->key_batch, relation->keys, err);
        if (err->code) {
            return err->code;
        }
        relation->whole = relation->whole && q.whole && k.whole;
        relation->least = fmin(relation->least, k.least - q.most);
        relation->most = fmax(relation->most, k.most - q.least);
        relation->furthest_key = fmax(relation->furthest_key, fmax(-k.least, k.most));
    }
    relation->distance = fmax(-relation->least, relation->most);
    return err->code;
}

/* ---- Opening ------------------------------------------------------------------------------------------- */

static int tables_check(const struct pe_relative *relative, struct pe_error *err) {
    const struct pe_encoding *row = relative->row;
    if (row->suits && row->suits(relative->view, &relative->relation, err)) {
        return pe_error_at(err, "encoding");
    }
    return PE_OK;
}

static int admit_relation(const struct pe_relative *relative, struct pe_error *err) {
    const struct pe_encoding *row = relative->row;
    return row->admit_relation ? row->admit_relation(relative->view, &relative->relation, err) : PE_OK;
}

static bool whole_steps(const struct pe_positions *positions) {
    return !positions->list && positions->batch == 0 && positions->start == floor(positions->start) &&
           positions->step == floor(positions->step) && positions->axes == 1;
}

/* Keys less queries are then start, start + step ... exactly. */
static bool steps_hold(const struct pe_relative *relative, const struct pe_positions positions[2]) {
    const struct pe_encoding *row = relative->row;
    return row->bias && row->stationary && row->stationary(relative->view) && whole_steps(&positions[0]) &&
           whole_steps(&positions[1]) && positions[0].step == positions[1].step &&
           relative->relation.distance <= PE_POSITION_MAX;
}

/* How large numbers may be, and what memory a block takes. */
static void sizes_open(struct pe_relative *relative) {
    const struct pe_encoding *row = relative->row;
    const struct pe_relation *relation = &relative->relation;
    double reach = row->reach ? row->reach(relative->view, relation) : 0;
    relative->reach = isnan(reach) ? INFINITY : reach; /* of 0 times infinity, say */
    relative->made_ns = row->row_cost_ns ? row->row_cost_ns(relative->view, PE_DTYPE_F64) : BIAS_NS;
    relative->at_once = (size_t)fmin(CHUNK, fmax(1, CHUNK_NS / relative->made_ns));
    relative->mix_reach = row->mix && relation->value_width ? row->mix_reach(relative->view) : 0;
    if (row->scratch_bytes) {
        relative->scratch_bytes = row->scratch_bytes(relative->view, relation, relative->real);
    }
}

int pe_relative_open(struct pe_arena *arena, struct pe_relative *relative, const struct pe_plan *plan,
                     const struct pe_positions positions[2], struct pe_error *err) {
    struct pe_relation *relation = &relative->relation;
    const double *list[2];
    const size_t n[2] = {pe_positions_count(&positions[0]), pe_positions_count(&positions[1])};
    relative->row = pe_plan_row(plan);
    relative->view = pe_plan_view(plan);
    for (int side = 0; side < 2; side++) {
        list[side] = positions_list(arena, &positions[side], err);
    }
    if (err->code || tables_check(relative, err)) {
        return err->code;
    }
    relation->queries = positions[0].length;
    relation->keys = positions[1].length;
    relation->query_positions = list[0];
    relation->key_positions = list[1];
    relation->n_query_positions = n[0];
    relation->n_key_positions = n[1];
    size_t batch = positions[0].batch > positions[1].batch ? positions[0].batch : positions[1].batch;
    relative->query_batch = positions[0].batch > 1 ? positions[0].length : 0;
    relative->key_batch = positions[1].batch > 1 ? positions[1].length : 0;
    if (distances_find(relative, batch ? batch : 1, err) || admit_relation(relative, err)) {
        return err->code;
    }
    sizes_open(relative);
    relative->stepped = steps_hold(relative, positions);
    relative->step = positions[1].step;
    relative->stop = err->stop;
    return PE_OK;
}

static double term_cost_ns(const struct pe_relative *relative) {
    const struct pe_encoding *row = relative->row;
    double cost = row->pair_cost_ns ? row->pair_cost_ns(relative->view, &relative->relation)
                                    : (double)relative->relation.width / PE_PRODUCTS_PER_NS;
    return relative->real == PE_DTYPE_F64 ? 2 * cost : cost;
}

double pe_relative_cost_ns(const struct pe_relative *relative, size_t tile_keys) {
    const struct pe_relation *relation = &relative->relation;
    if (relative->row->term) {
        return term_cost_ns(relative);
    }
    double queries = fmin((double)relation->queries, PE_LOGITS_ROWS),
           keys = fmin(fmin((double)relation->keys, TILE_KEYS), (double)tile_keys);
    double share = relative->stepped && queries > 0 && keys > 0 ? (queries + keys) / (queries * keys) : 1;
    return ADD_NS + relative->made_ns * fmin(share, 1);
}

static int heads_make(struct pe_arena *arena, struct pe_relative *relative, struct pe_error *err) {
    const struct pe_encoding *row = relative->row;
    const struct pe_relation *relation = &relative->relation;
    size_t n = row->n_head_numbers ? row->n_head_numbers(relative->view, relation) : 1;
    double *out = n ? pe_arena_array(arena, relation->n_slots, n * sizeof *out, err) : NULL;
    for (size_t h = 0; out && h < relation->n_slots; h++) {
        size_t head = pe_relation_head(relation, h);
        for (size_t first = 0, step; first < n && !pe_error_poll(err); first += step) {
            step = n - first < HEAD_STEP ? n - first : HEAD_STEP;
            row->head_numbers(relative->view, head, relation->heads, first, step, out + h * n + first);
        }
    }
    relative->of_heads = out;
    relative->n_of_head = n;
    return err->code;
}

int pe_relative_prepare(struct pe_arena *arena, struct pe_relative *relative, struct pe_error *err) {
    const struct pe_encoding *row = relative->row;
    const struct pe_relation *relation = &relative->relation;
    if (row->head_numbers && heads_make(arena, relative, err)) {
        return err->code;
    }
    if (!row->share) {
        return PE_OK;
    }
    void *shared = pe_arena_alloc(arena, row->shared_bytes(relative->view, relation, relative->real), err);
    if (!shared) {
        return pe_error_at(err, "encoding");
    }
    row->share(relative->view, relation, relative->real, shared, err->stop);
    relative->shared = shared;
    return pe_error_poll(err);
}

/* ---- Tiles --------------------------------------------------------------------------------------------- */

/* Biases of one query and head at the given keys, into out of type real. */
static void row_fill(const struct pe_relative *relative, struct pe_pair_row row, unsigned char *out) {
    double chunk[CHUNK] = {0}; /* what is not made when somebody asks to stop is at least a number */
    size_t n = row.n, size = pe_dtype_size(relative->real);
    for (size_t j = 0; j < n && !pe_stop_asked(relative->stop); j += row.n) {
        row.n = n - j < relative->at_once ? n - j : relative->at_once;
        relative->row->bias(relative->view, &row, chunk);
        pe_dtype_store(relative->real, chunk, row.n, out + j * size);
        row.keys += row.n;
    }
}

/* Some keys of a tile, at most TILE_KEYS. */
struct piece {
    const struct pe_relative *relative;
    const struct pe_relative_tile *tile;
    size_t first, n;
};

static struct pe_pair_row row_of(const struct piece *piece, size_t t) {
    const struct pe_relative *relative = piece->relative;
    const struct pe_relation *relation = &relative->relation;
    const struct pe_relative_tile *tile = piece->tile;
    return (struct pe_pair_row){
        .head = pe_relation_head(relation, tile->h),
        .heads = relation->heads,
        .query = relation->query_positions[tile->b * relative->query_batch + tile->first_query + t],
        .keys = relation->key_positions + tile->b * relative->key_batch + piece->first,
        .n = piece->n,
        .of_head = relative->of_heads ? relative->of_heads + tile->h * relative->n_of_head : NULL,
    };
}

/* The biases of all distances in the piece, from the last query's first key on: those of query t are the
 * slice from number queries - 1 - t. */
static void distances_fill(const struct piece *piece, unsigned char *out) {
    double distance[PE_LOGITS_ROWS + TILE_KEYS];
    size_t n = piece->tile->queries + piece->n - 1;
    struct pe_pair_row row = row_of(piece, piece->tile->queries - 1);
    double first = row.keys[0] - row.query;
    for (size_t m = 0; m < n; m++) {
        distance[m] = first + (double)m * piece->relative->step;
    }
    row.query = 0;
    row.keys = distance;
    row.n = n;
    row_fill(piece->relative, row, out);
}

static void piece_run(const struct piece *piece, const struct pe_relative_out *out) {
    const struct pe_relative *relative = piece->relative;
    size_t item = pe_dtype_size(relative->real), queries = piece->tile->queries;
    union {
        double f64[PE_LOGITS_ROWS + TILE_KEYS];
        float f32[PE_LOGITS_ROWS + TILE_KEYS];
    } biases = {{0}};
    unsigned char *made = (unsigned char *)&biases;
    if (relative->stepped) {
        distances_fill(piece, made);
    }
    for (size_t t = 0; t < queries && !pe_stop_asked(relative->stop); t++) {
        const unsigned char *row = made + (relative->stepped ? (queries - 1 - t) * item : 0);
        unsigned char *to =
            (unsigned char *)out->data + (t * out->ld + piece->first - piece->tile->first_key) * item;
        if (!relative->stepped) {
            row_fill(relative, row_of(piece, t), made);
        }
        if (out->add) {
            pe_vector_add(relative->real, to, to, row, piece->n);
        } else {
            memcpy(to, row, piece->n * item);
        }
    }
}

void pe_relative_run(const struct pe_relative *relative, const struct pe_relative_tile *tile,
                     const struct pe_relative_out *out) {
    struct piece piece = {.relative = relative, .tile = tile, .first = tile->first_key};
    size_t end = tile->first_key + tile->keys;
    for (; piece.first < end && !pe_stop_asked(relative->stop); piece.first += piece.n) {
        piece.n = end - piece.first < TILE_KEYS ? end - piece.first : TILE_KEYS;
        piece_run(&piece, out);
    }
}
