/* SPDX-License-Identifier: MIT
 *
 * encode: an encoding and positions -> `vectors` [T, D] or [B, T, D]. A large reply to a GET is computed
 * while it is sent, so its size is bounded by patience only.
 */
#include "api/api.h"

#include "config.h"

#define STREAM_FROM ((size_t)256 << 10) /* bytes of vectors from which a GET is streamed */

struct encode_request {
    uint64_t given;
    struct pe_spec encoding;
    struct pe_positions positions;
};

static const struct pe_field fields[] = {
    {PE_FIELD(encode_request, encoding), .flags = PE_FIELD_REQUIRED, .doc = "the encoding"},
    {PE_FIELD(encode_request, positions), .flags = PE_FIELD_REQUIRED, .doc = "the positions to encode"},
};

struct encode_rows {
    const struct pe_plan *plan;
    struct pe_positions positions;
    enum pe_dtype dtype;
};

static void encode_rows(const void *state, size_t first, size_t n, void *out) {
    const struct encode_rows *rows = state;
    pe_encode_rows(rows->plan, &rows->positions, rows->dtype, first, n, out);
}

/* Declares the vectors without memory for them. */
static int stream(struct task *task, const struct pe_plan *plan, const struct pe_positions *positions,
                  struct pe_error *err) {
    struct encode_rows *rows = pe_arena_array(task->arena, 1, sizeof *rows, err);
    if (!rows || pe_encode_check(plan, positions, task_dtype(task), err)) {
        return err->code;
    }
    *rows = (struct encode_rows){.plan = plan, .positions = *positions, .dtype = task_dtype(task)};
    struct pe_tensor shape = {.dtype = rows->dtype, .rank = positions->batch ? 3 : 2};
    size_t *dim = shape.dim;
    if (positions->batch) {
        *dim++ = positions->batch;
    }
    dim[0] = positions->length;
    dim[1] = pe_plan_width(plan);
    result_tensor(&task->result, "vectors", &shape);
    struct result_item *item = &task->result.items[task->result.n - 1];
    item->rows = encode_rows;
    item->state = rows;
    return PE_OK;
}

/* Checks the size of a stream before anything is promised. */
static int check_size(const struct task *task, size_t n, size_t width, bool *large, struct pe_error *err) {
    size_t bytes, factors[3] = {n, width, pe_dtype_size(task_dtype(task))};
    uint64_t limit = (uint64_t)task->service->config->stream_bytes;
    if (!pe_size_product(factors, 3, &bytes)) {
        bytes = SIZE_MAX;
    }
    *large = bytes >= STREAM_FROM;
    if (task->stream_ok && bytes > limit) {
        return pe_fail_limit(err, "positions", "stream_bytes", limit, bytes,
                             "%zu positions of width %zu are more than the %llu bytes that a stream may have",
                             n, width, (unsigned long long)limit);
    }
    return PE_OK;
}

static int encode_open(struct task *task, struct pe_error *err) {
    struct encode_request *request = task->request;
    const struct pe_positions *positions = &request->positions;
    struct pe_plan *plan;
    size_t n = pe_positions_count(positions);
    bool large;
    if (task_plan(task, &plan, &request->encoding, 0, positions->length, err) ||
        check_size(task, n, pe_plan_width(plan), &large, err)) {
        return err->code;
    }
    task_echo_positions(task, "positions", positions);
    if (task->stream_ok && large) {
        return stream(task, plan, positions, err);
    }
    struct pe_tensor vectors;
    if (pe_encode_open(task->arena, &task->work, &vectors, plan, positions, task_dtype(task), err)) {
        return err->code;
    }
    result_tensor(&task->result, "vectors", &vectors);
    return PE_OK;
}

const struct api_op api_encode = {
    .name = "encode",
    .doc = "Vectors of an encoding at positions.",
    .get = "GET /v1/encode",
    .post = "POST /v1/encode",
    .brief = true,
    .request_size = sizeof(struct encode_request),
    .fields = fields,
    .n_fields = PE_COUNT(fields),
    .tensors = "vectors",
    .open = encode_open,
};
