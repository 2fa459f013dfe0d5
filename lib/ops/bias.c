/* SPDX-License-Identifier: MIT
 *
 * bias: the term that an encoding adds to the logits of every query and key, [H, Tq, Tk] or [B, H, Tq, Tk].
 * Each number is made in float64 and rounded once. The rows are independent, so the same call fills a block
 * of a stream or a part of a tensor, with the same bits.
 */
#include "core/stop.h"
#include "kernels/vector.h"
#include "ops/operand.h"
#include "ops/relative.h"

#include "posenc_admits.h"

#include <math.h>
#include <string.h>

#define PART_NS 1e6 /* that a part takes, roughly */
#define CHUNK   64  /* keys at a time, of up to PE_LOGITS_ROWS queries, on the stack */

struct pe_bias_rows {
    struct pe_relative relative;
    size_t batch; /* 0: no such axis */
    enum pe_dtype dtype;
    const struct pe_stop *stop;
};

struct bias {
    const struct pe_bias_rows *rows;
    size_t part_queries, part_keys, parts_down, parts_across;
    unsigned char *out;
};

/* ---- Arguments ----------------------------------------------------------------------------------------- */

/* Of queries and keys. What is not given follows from the other, or from what the encoding is made for. */
static int positions_read(const struct pe_bias_args *args, struct pe_positions out[2], struct pe_error *err) {
    static const char *const fields[] = {"query_positions", "key_positions"};
    const struct pe_encoding *row = pe_plan_row(args->plan);
    const struct pe_positions *const given[] = {args->query_positions, args->key_positions};
    for (int side = 0; side < 2; side++) {
        size_t natural = row->tokens ? row->tokens(pe_plan_view(args->plan), side) : 0;
        if (!given[0] && !given[1] && !natural) {
            return pe_fail(err, PE_ERR_MISSING, fields[0], "is missing: where the queries are");
        }
        int from = given[side] || natural ? side : !side;
        out[side] =
            given[from] ? *given[from] : (struct pe_positions){.length = natural, .axes = 1, .step = 1};
        if (pe_positions_admit(args->plan, &out[side], PE_DTYPE_F64, fields[from], err)) {
            return err->code;
        }
    }
    if (out[0].batch > 1 && out[1].batch > 1 && out[0].batch != out[1].batch) {
        return pe_fail(err, PE_ERR_SHAPE, fields[1], "are of %zu sequences, query_positions of %zu",
                       out[1].batch, out[0].batch);
    }
    return PE_OK;
}

int pe_bias_admits(const struct pe_encoding_info *encoding, struct pe_error *err) {
    const struct pe_encoding *row = pe_encoding_row(encoding);
    if (row->bias) {
        return err->code;
    }
    return pe_encoding_unsupported(
        row,
        row->term ? "depends on the queries and has no bias of its own: attention returns it as position"
                  : "adds no bias to the logits",
        err);
}

static int args_check(const struct pe_bias_args *args, struct pe_error *err) {
    if (!args->plan) {
        return pe_fail(err, PE_ERR_MISSING, "encoding", "is missing");
    }
    if (pe_bias_admits(pe_plan_encoding(args->plan), err)) {
        return err->code;
    }
    if (args->heads < 1) {
        return pe_fail(err, PE_ERR_MISSING, "heads", "is missing: how many heads the model has");
    }
    return pe_dtype_check(args->dtype, err);
}

static int overflow_check(const struct pe_relative *relative, enum pe_dtype dtype, struct pe_error *err) {
    double limit = pe_vector_limit(dtype);
    if (relative->reach <= limit) {
        return PE_OK;
    }
    return pe_fail(err, PE_ERR_RANGE, "key_positions", "biases may reach %g, beyond the largest %s, %g",
                   relative->reach, pe_dtype_name(dtype), limit);
}

/* The arguments as they are meant, and positions of queries and keys. */
static int args_read(struct pe_bias_args *args, struct pe_positions positions[2],
                     const struct pe_bias_args *theirs, struct pe_error *err) {
    if (err->code || pe_args_copy(args, sizeof *args, theirs, theirs->size, err)) {
        return err->code;
    }
    args->dtype = args->dtype ? args->dtype : PE_DTYPE_F32;
    return args_check(args, err) || positions_read(args, positions, err) ? err->code : PE_OK;
}

static size_t batch_of(const struct pe_positions positions[2]) {
    return positions[0].batch > positions[1].batch ? positions[0].batch : positions[1].batch;
}

int pe_bias_shape(const struct pe_bias_args *theirs, struct pe_tensor *shape, struct pe_error *err) {
    struct pe_bias_args args;
    struct pe_positions positions[2];
    *shape = (struct pe_tensor){0};
    if (args_read(&args, positions, theirs, err)) {
        return err->code;
    }
    size_t batch = batch_of(positions), *dim = shape->dim;
    shape->dtype = args.dtype;
    shape->rank = batch ? 4 : 3;
    if (batch) {
        *dim++ = batch;
    }
    dim[0] = args.head_index ? pe_tensor_count(args.head_index) : args.heads;
    dim[1] = positions[0].length;
    dim[2] = positions[1].length;
    return PE_OK;
}

int pe_bias_rows_open(struct pe_arena *arena, const struct pe_bias_rows **out,
                      const struct pe_bias_args *theirs, struct pe_error *err) {
    struct pe_bias_args args;
    struct pe_positions positions[2];
    *out = NULL;
    struct pe_bias_rows *rows = pe_arena_array(arena, 1, sizeof *rows, err);
    if (!rows || args_read(&args, positions, theirs, err)) {
        return err->code;
    }
    struct pe_relative *relative = &rows->relative;
    relative->real = PE_DTYPE_F64;
    if (pe_relative_heads_read(arena, &relative->relation, args.heads, args.head_index, err) ||
        pe_relative_open(arena, relative, args.plan, positions, err) ||
        overflow_check(relative, args.dtype, err) || pe_relative_prepare(arena, relative, err)) {
        return err->code;
    }
    rows->batch = batch_of(positions);
    rows->dtype = args.dtype;
    rows->stop = err->stop;
    *out = rows;
    return PE_OK;
}

/* ---- Work ---------------------------------------------------------------------------------------------- */

/* Queries first .. first+n-1 of one head, at most PE_LOGITS_ROWS, and keys of the tile, into rows of out. */
static void tile_make(const struct pe_bias_rows *rows, struct pe_relative_tile tile, unsigned char *out) {
    double made[PE_LOGITS_ROWS * CHUNK];
    size_t keys = rows->relative.relation.keys, item = pe_dtype_size(rows->dtype),
           end = tile.first_key + tile.keys;
    const struct pe_relative_out to = {.data = made, .ld = CHUNK};
    for (size_t first = tile.first_key; first < end && !pe_stop_asked(rows->stop); first += tile.keys) {
        tile.first_key = first;
        tile.keys = end - first < CHUNK ? end - first : CHUNK;
        memset(made, 0, sizeof made);
        pe_relative_run(&rows->relative, &tile, &to);
        for (size_t t = 0; t < tile.queries; t++) {
            pe_dtype_store(rows->dtype, made + t * CHUNK, tile.keys, out + (t * keys + first) * item);
        }
    }
}

/* Rows of the flattened [B*H, Tq]. */
static struct pe_relative_tile rows_tile(const struct pe_bias_rows *rows, size_t index, size_t n) {
    const struct pe_relative *relative = &rows->relative;
    size_t queries = relative->relation.queries, heads = relative->relation.n_slots;
    size_t i = index % queries, left = queries - i;
    n = n < left ? n : left;
    return (struct pe_relative_tile){.b = index / queries / heads,
                                     .h = index / queries % heads,
                                     .first_query = i,
                                     .queries = n < PE_LOGITS_ROWS ? n : PE_LOGITS_ROWS,
                                     .keys = relative->relation.keys};
}

void pe_bias_rows_fill(const struct pe_bias_rows *rows, size_t first, size_t n, void *out) {
    size_t row_bytes = rows->relative.relation.keys * pe_dtype_size(rows->dtype);
    struct pe_relative_tile tile;
    for (size_t i = 0; i < n && !pe_stop_asked(rows->stop); i += tile.queries) {
        tile = rows_tile(rows, first + i, n - i);
        tile_make(rows, tile, (unsigned char *)out + i * row_bytes);
    }
}

static void bias_part(const void *state, size_t part) {
    const struct bias *op = state;
    const struct pe_relation *relation = &op->rows->relative.relation;
    size_t across = part % op->parts_across, down = part / op->parts_across % op->parts_down;
    size_t head = part / op->parts_across / op->parts_down;
    size_t first = head * relation->queries + down * op->part_queries,
           left = relation->queries - down * op->part_queries;
    size_t row_bytes = relation->keys * pe_dtype_size(op->rows->dtype);
    struct pe_relative_tile tile =
        rows_tile(op->rows, first, left < op->part_queries ? left : op->part_queries);
    tile.first_key = across * op->part_keys;
    tile.keys =
        relation->keys - tile.first_key < op->part_keys ? relation->keys - tile.first_key : op->part_keys;
    tile_make(op->rows, tile, op->out + first * row_bytes);
}

/* Into tiles that take PART_NS or so, whatever a bias takes; returns their number. */
static size_t parts_cut(struct bias *op) {
    const struct pe_relative *relative = &op->rows->relative;
    const struct pe_relation *relation = &relative->relation;
    size_t n = (op->rows->batch ? op->rows->batch : 1) * relative->relation.n_slots;
    double biases = fmax(1, PART_NS / pe_relative_cost_ns(relative, CHUNK));
    if (!relation->queries || !relation->keys) {
        return 0;
    }
    op->part_keys = (double)relation->keys < biases ? relation->keys : (size_t)biases;
    op->part_queries = (size_t)fmax(1, fmin(PE_LOGITS_ROWS, biases / (double)op->part_keys));
    op->part_queries = op->part_queries < relation->queries ? op->part_queries : relation->queries;
    op->parts_across = (relation->keys - 1) / op->part_keys + 1;
    op->parts_down = (relation->queries - 1) / op->part_queries + 1;
    return n * op->parts_down * op->parts_across;
}

int pe_bias_open(struct pe_arena *arena, struct pe_work *work, struct pe_tensor *bias,
                 const struct pe_bias_args *args, struct pe_error *err) {
    const struct pe_bias_rows *rows;
    struct pe_tensor out;
    *work = (struct pe_work){0};
    *bias = (struct pe_tensor){0};
    if (pe_bias_shape(args, &out, err) || pe_result_ask(arena, out.dtype, out.rank, out.dim, err)) {
        return err->code;
    }
    struct bias *op =
        pe_arena_array(arena, 1, sizeof *op, err); /* the result is refused before it takes time */
    if (!op || pe_tensor_alloc(arena, &out, out.dtype, out.rank, out.dim, err)) {
        return pe_error_at(err, "key_positions");
    }
    if (pe_bias_rows_open(arena, &rows, args, err)) {
        return err->code;
    }
    *op = (struct bias){.rows = rows, .out = out.data};
    *bias = out;
    *work = (struct pe_work){
        .n_parts = parts_cut(op),
        .cost_ns = (double)pe_tensor_count(&out) * pe_relative_cost_ns(&rows->relative, CHUNK),
        .state = op,
        .run = bias_part,
        .stop = err->stop,
    };
    return PE_OK;
}
