/* SPDX-License-Identifier: MIT
 *
 * A relative encoding in attention: its term is added to the logits of a block, in place, so that nothing of
 * the size [Tq, Tk] stands beside the weights.
 */
#include "core/admit.h"
#include "core/stop.h"
#include "kernels/vector.h"
#include "ops/attention_input.h"

#include <math.h>
#include <string.h>

/* ---- Opening ------------------------------------------------------------------------------------------- */

static int heads_read(const struct pe_reader *r, struct pe_relation *relation, struct pe_error *err) {
    const struct pe_attention_args *args = r->args;
    const struct pe_attention *a = r->a;
    size_t model = args->head_index ? args->heads : a->heads;
    if (pe_relative_heads_read(r->arena, relation, model, args->head_index, err)) {
        return err->code;
    }
    if (relation->n_slots != a->heads) {
        return pe_fail(err, PE_ERR_SHAPE, "head_index", "names %zu heads, but q has %zu", relation->n_slots,
                       a->heads);
    }
    return PE_OK;
}

static int cosine_open(struct pe_reader *r, const struct pe_relation *relation, struct pe_error *err) {
    const struct pe_plan_view *view = pe_plan_view(r->args->plan);
    const struct pe_encoding *row = pe_plan_row(r->args->plan);
    struct pe_attention *a = r->a;
    double most = 0;
    if (!row->cosine) {
        return PE_OK;
    }
    for (size_t h = 0; h < a->heads; h++) {
        most = fmax(most, row->cosine(view, pe_relation_head(relation, h)));
    }
    for (int side = 0; side < 2; side++) {
        enum pe_stream_name name = side ? PE_STREAM_K : PE_STREAM_Q;
        if (pe_reader_own(r, name, err)) {
            return err->code;
        }
        a->stream[name].unit = true;
        r->largest[name] = side ? 1 : most;
    }
    return PE_OK;
}

/* ---- Distances ----------------------------------------------------------------------------------------- */

struct pair {
    size_t b, i, j;
};

static bool is_hidden(const struct pe_softmax *row, size_t j) {
    if (!row->hidden) {
        return false;
    }
    return row->dtype == PE_DTYPE_F64 ? ((const double *)row->hidden)[j] != 0
                                      : ((const float *)row->hidden)[j] != 0;
}

/* The first key of a query's row that it sees and that is too far from it. */
static bool row_strays(const struct pe_attention *a, struct pair *pair, double least, double most) {
    const struct pe_relative *relative = a->relative;
    double query = relative->relation.query_positions[pair->b * relative->query_batch + pair->i];
    const double *keys = relative->relation.key_positions + pair->b * relative->key_batch;
    struct pe_softmax row = {.dtype = a->real};
    pe_mask_row(&a->mask, pair->b, pair->i, &row);
    for (pair->j = row.first; pair->j < row.end; pair->j++) {
        double distance = keys[pair->j] - query;
        if ((distance < least || distance > most) && !is_hidden(&row, pair->j)) {
            return true;
        }
    }
    return false;
}

static int stray_fail(const struct pe_attention *a, const struct pe_sides *sides, const struct pair *pair,
                      const double bounds[2], struct pe_error *err) {
    const struct pe_relation *relation = &a->relative->relation;
    int side = sides->given[1] || !sides->given[0]; /* the field that was given, the keys' if both were */
    size_t key = pair->b * a->relative->key_batch + pair->j,
           query = pair->b * a->relative->query_batch + pair->i;
    char path[64] = "";
    if (sides->given[side]) {
        pe_positions_index_text(&sides->positions[side], side ? key : query, path, sizeof path);
    }
    pe_fail(err, PE_ERR_RANGE, path,
            "key %zu at %.17g is at distance %.17g from query %zu at %.17g, which sees it; allowed are "
            "distances (key - query) from %.17g to %.17g",
            pair->j, relation->key_positions[key],
            relation->key_positions[key] - relation->query_positions[query], pair->i,
            relation->query_positions[query], bounds[0], bounds[1]);
    return pe_error_at(err, sides->field[side]);
}

/* Does the encoding take all distances at which a query sees a key? */
static int distances_check(const struct pe_attention *a, const struct pe_sides *sides, struct pe_error *err) {
    const struct pe_relative *relative = a->relative;
    double bounds[2] = {-INFINITY, INFINITY}, largest = relative->relation.distance;
    if (relative->row->distances) {
        relative->row->distances(relative->view, &bounds[0], &bounds[1]);
    }
    if (-largest >= bounds[0] && largest <= bounds[1]) {
        return PE_OK;
    }
    for (struct pair pair = {0}; pair.b < a->batch; pair.b++) {
        for (pair.i = 0; pair.i < a->queries && !pe_error_poll(err); pair.i++) {
            if (row_strays(a, &pair, bounds[0], bounds[1])) {
                return stray_fail(a, sides, &pair, bounds, err);
            }
        }
    }
    return err->code;
}

/* What is wrong with positions that were not given is wrong with the tokens. */
static int relative_open(struct pe_reader *r, struct pe_relative *relative, const struct pe_sides *sides,
                         struct pe_error *err) {
    struct pe_error trial = {.stop = err->stop};
    if (pe_relative_open(r->arena, relative, r->args->plan, sides->positions, &trial) == PE_OK) {
        return err->code;
    }
    for (int side = 0; side < 2 && trial.code == PE_ERR_RANGE; side++) {
        if (!sides->given[side] && strcmp(trial.path, sides->field[side]) == 0) {
            return pe_positions_not_given(&trial, sides->positions[side].length, sides->field[side],
                                          pe_reader_source(r, side), err);
        }
    }
    *err = trial;
    return err->code;
}

int pe_reader_relate(struct pe_reader *r, struct pe_error *err) {
    struct pe_attention *a = r->a;
    struct pe_sides sides;
    if (!r->relative) {
        return PE_OK;
    }
    struct pe_relative *relative = pe_arena_array(r->arena, 1, sizeof *relative, err);
    if (!relative || pe_reader_sides(r, &sides, err)) {
        return err->code;
    }
    struct pe_relation *relation = &relative->relation;
    if (heads_read(r, relation, err) || cosine_open(r, relation, err)) {
        return err->code;
    }
    relative->real = a->real;
    relation->width = a->width;
    relation->value_width = r->outputs & PE_ATTENTION_OUTPUT ? a->value_width : 0;
    relation->largest_query = r->largest[PE_STREAM_Q];
    relation->largest_key = r->largest[PE_STREAM_K];
    relation->scale = a->scale;
    relation->ordered = a->ordered;
    a->relative = relative;
    return relative_open(r, relative, &sides, err) || distances_check(a, &sides, err) ? err->code : PE_OK;
}

/* ---- Running ------------------------------------------------------------------------------------------- */

double pe_block_cosine(const struct pe_attention *a, size_t h) {
    const struct pe_relative *relative = a->relative;
    return relative->row->cosine(relative->view, pe_relation_head(&relative->relation, h));
}

/* Rows first .. first+n-1 of the block as a block of logits, without what they are written to. */
static struct pe_logits logits_of(const struct pe_attention_block *block, size_t first, size_t n,
                                  struct pe_visible *visible) {
    const struct pe_attention *a = block->a;
    const struct pe_relative *relative = a->relative;
    const struct pe_relation *relation = &relative->relation;
    size_t i = block->first + first;
    for (size_t t = 0; t < n; t++) {
        struct pe_softmax row;
        pe_mask_row(&a->mask, block->b, i + t, &row);
        visible[t] = (struct pe_visible){.first = row.first, .end = row.end, .hidden = row.hidden};
    }
    struct pe_const_matrix q = pe_block_rows(block, PE_STREAM_Q, i), k = pe_block_rows(block, PE_STREAM_K, 0);
    const double *positions = relation->query_positions + block->b * relative->query_batch;
    return (struct pe_logits){
        .relation = relation,
        .head = pe_relation_head(relation, block->h),
        .slot = block->h,
        .n = n,
        .real = a->real,
        .ordered = a->ordered,
        .query_positions = positions + i,
        .key_positions = relation->key_positions + block->b * relative->key_batch,
        .q = q.data,
        .k = k.data,
        .q_ld = q.ld,
        .k_ld = k.ld,
        .visible = visible,
        .shared = relative->shared,
        .scratch = block->scratch,
        .stop = a->stop,
    };
}

static void biases_add(const struct pe_attention_block *block, unsigned char *out) {
    const struct pe_attention *a = block->a;
    for (size_t t = 0, n; t < block->n && !pe_stop_asked(a->stop); t += n) {
        n = block->n - t < PE_LOGITS_ROWS ? block->n - t : PE_LOGITS_ROWS;
        const struct pe_relative_tile tile = {
            .b = block->b, .h = block->h, .first_query = block->first + t, .queries = n, .keys = a->keys};
        const struct pe_relative_out to = {
            .data = out + t * a->keys * a->real_size, .ld = a->keys, .add = true};
        pe_relative_run(a->relative, &tile, &to);
    }
}

static void terms_add(const struct pe_attention_block *block, const unsigned char *content,
                      unsigned char *out) {
    const struct pe_attention *a = block->a;
    size_t row_bytes = a->keys * a->real_size;
    struct pe_visible visible[PE_LOGITS_ROWS];
    for (size_t t = 0, n; t < block->n && !pe_stop_asked(a->stop); t += n) {
        n = block->n - t < PE_LOGITS_ROWS ? block->n - t : PE_LOGITS_ROWS;
        struct pe_logits logits = logits_of(block, t, n, visible);
        logits.content = content + t * row_bytes;
        logits.out = out + t * row_bytes;
        a->relative->row->term(a->relative->view, &logits);
    }
}

void pe_block_relate(const struct pe_attention_block *block, unsigned char *scores) {
    const struct pe_attention *a = block->a;
    bool apart = pe_rows_made(&a->position);
    unsigned char *out = apart ? pe_block_place(block, &a->position) : scores;
    size_t row_bytes = a->keys * a->real_size;
    if (!row_bytes) {
        return;
    }
    for (size_t t = 0; apart && t < block->n && !pe_stop_asked(a->stop); t++) {
        memset(out + t * row_bytes, 0, row_bytes);
    }
    if (a->relative->row->term) {
        terms_add(block, scores, out);
    } else {
        biases_add(block, out);
    }
    for (size_t t = 0; apart && t < block->n && !pe_stop_asked(a->stop); t++) {
        pe_vector_add(a->real, scores + t * row_bytes, scores + t * row_bytes, out + t * row_bytes, a->keys);
    }
}

void pe_block_mix(const struct pe_attention_block *block, const unsigned char *weights) {
    const struct pe_attention *a = block->a;
    struct pe_visible visible[PE_LOGITS_ROWS];
    unsigned char *out = pe_block_place(block, &a->output);
    for (size_t t = 0, n; t < block->n && !pe_stop_asked(a->stop); t += n) {
        n = block->n - t < PE_LOGITS_ROWS ? block->n - t : PE_LOGITS_ROWS;
        struct pe_logits logits = logits_of(block, t, n, visible);
        logits.out = out + t * a->value_width * a->real_size;
        a->relative->row->mix(a->relative->view, &logits, weights + t * a->keys * a->real_size);
    }
}
