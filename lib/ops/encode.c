/* SPDX-License-Identifier: MIT
 *
 * encode: positions [T] or [B, T] -> vectors [T, D] or [B, T, D]. The rows are independent, so the same call
 * fills a block of a stream or a part of a tensor, with the same bits.
 */
#include "ops/operand.h"

#include "posenc_admits.h"

#define ROWS_PER_READ 64                  /* positions read at a time, on the stack */
#define READ_ITEMS    ((size_t)1 << 16)   /* numbers made of them, between two questions whether to stop */
#define PART_BYTES    ((size_t)256 << 10) /* of output in one part */
#define FAR_BYTES     ((size_t)8 << 20)   /* of output that is written past the caches */

struct encode {
    const struct pe_plan *plan;
    struct pe_positions positions;
    struct pe_tensor out;
    size_t rows_per_part;
    const struct pe_stop *stop;
};

static int makes_vectors(const struct pe_encoding *row, bool makes, struct pe_error *err) {
    return makes ? err->code : pe_encoding_unsupported(row, "makes no vectors", err);
}

int pe_encode_admits(const struct pe_encoding_info *encoding, struct pe_error *err) {
    const struct pe_encoding *row = pe_encoding_row(encoding);
    return makes_vectors(row, row->encode || row->angles, err); /* of angles the operation gives both */
}

int pe_encode_check(const struct pe_plan *plan, const struct pe_positions *positions, enum pe_dtype dtype,
                    struct pe_error *err) {
    if (err->code || pe_dtype_check(dtype, err)) {
        return err->code;
    }
    const struct pe_encoding *row = pe_plan_row(plan);
    return makes_vectors(row, row->encode != NULL, err)
               ? err->code
               : pe_vectors_admit(plan, positions, dtype, "positions", err);
}

void pe_rows_encode(const struct pe_rows *rows, size_t first, size_t n, void *out) {
    const struct pe_encoding *row = pe_plan_row(rows->plan);
    struct pe_plan_view view = *pe_plan_view(rows->plan);
    size_t row_bytes = view.width * pe_dtype_size(rows->dtype);
    size_t most = view.width && view.width < READ_ITEMS ? READ_ITEMS / view.width : 1;
    most = most < ROWS_PER_READ ? most : ROWS_PER_READ;
    double block[ROWS_PER_READ * PE_MAX_AXES];
    bool several = rows->positions->axes > 1;
    view.far = rows->far;
    for (size_t done = 0, step; done < n && !pe_stop_asked(rows->stop); done += step) {
        step = n - done < most ? n - done : most;
        pe_positions_read(rows->positions, first + done, step, block);
        (several ? row->encode_axes : row->encode)(&view, block, step, rows->dtype,
                                                   (char *)out + done * row_bytes);
    }
}

void pe_encode_rows(const struct pe_plan *plan, const struct pe_positions *positions, enum pe_dtype dtype,
                    size_t first, size_t n, void *out) {
    struct pe_rows rows = {.plan = plan, .positions = positions, .dtype = dtype};
    pe_rows_encode(&rows, first, n, out);
}

static void encode_part(const void *state, size_t part) {
    const struct encode *op = state;
    size_t n = pe_positions_count(&op->positions);
    size_t first = part * op->rows_per_part;
    size_t rows = n - first < op->rows_per_part ? n - first : op->rows_per_part;
    size_t row_bytes = op->out.dim[op->out.rank - 1] * pe_dtype_size(op->out.dtype);
    const struct pe_rows all = {.plan = op->plan,
                                .positions = &op->positions,
                                .dtype = op->out.dtype,
                                .stop = op->stop,
                                .far = pe_tensor_bytes(&op->out) >= FAR_BYTES};
    pe_rows_encode(&all, first, rows, (char *)op->out.data + first * row_bytes);
}

int pe_encode_open(struct pe_arena *arena, struct pe_work *work, struct pe_tensor *vectors,
                   const struct pe_plan *plan, const struct pe_positions *positions, enum pe_dtype dtype,
                   struct pe_error *err) {
    *work = (struct pe_work){0};
    *vectors = (struct pe_tensor){0};
    if (pe_encode_check(plan, positions, dtype, err)) {
        return err->code;
    }
    size_t n = pe_positions_count(positions), width = pe_plan_width(plan);
    size_t dim[3] = {positions->batch, positions->length, width};
    int rank = positions->batch ? 3 : 2;
    const size_t *shape = rank == 3 ? dim : dim + 1;
    if (pe_result_ask(arena, dtype, rank, shape, err)) {
        return err->code;
    }
    if (pe_tensor_alloc(arena, vectors, dtype, rank, shape, err)) {
        return pe_error_at(err, "positions");
    }
    struct encode *op = pe_arena_array(arena, 1, sizeof *op, err);
    if (!op) {
        *vectors = (struct pe_tensor){0};
        return err->code;
    }
    size_t row_bytes = width * pe_dtype_size(dtype);
    *op = (struct encode){.plan = plan, .positions = *positions, .out = *vectors, .stop = err->stop};
    op->rows_per_part = row_bytes && row_bytes < PART_BYTES ? PART_BYTES / row_bytes : 1;
    *work = (struct pe_work){
        .n_parts = n / op->rows_per_part + (n % op->rows_per_part != 0),
        .cost_ns = (double)n * pe_encoding_row_ns(plan, dtype),
        .state = op,
        .run = encode_part,
        .stop = err->stop,
    };
    return PE_OK;
}

bool pe_work_run(const struct pe_work *work) {
    for (size_t part = 0; part < work->n_parts && !pe_stop_asked(work->stop); part++) {
        work->run(work->state, part);
    }
    return !pe_stop_asked(work->stop);
}
