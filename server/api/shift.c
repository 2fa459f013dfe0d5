/* SPDX-License-Identifier: MIT
 *
 * shift: the linear map from PE(p) to PE(p + distance).
 */
#include "api/api.h"

#include "posenc_admits.h"

#include <math.h>

struct shift_request {
    uint64_t given;
    struct pe_spec encoding;
    double distance;
    struct pe_positions positions;
};

static const struct pe_field fields[] = {
    {PE_FIELD(shift_request, encoding), .flags = PE_FIELD_REQUIRED, .doc = "the encoding"},
    {PE_FIELD(shift_request, distance), .flags = PE_FIELD_REQUIRED, .min = -PE_POSITION_MAX,
     .max = PE_POSITION_MAX, .doc = "k in M.PE(p) = PE(p + k)"},
    {PE_FIELD(shift_request, positions),
     .doc = "where the map is tried (or fitted), but for rows of padding; default 64 positions from 0, or as "
            "near to it and as many as the encoding takes at both ends of the distance"},
};

static int check_return(const struct task *task, const struct pe_shift_result *made, struct pe_error *err) {
    if (made->exact || !task_wants(task, "blocks", false)) {
        return PE_OK;
    }
    return pe_fail(err, PE_ERR_UNSUPPORTED, "return",
                   "this encoding has no exact map in blocks; matrix is the best one");
}

static int declare(struct task *task, const struct pe_shift_result *made, struct pe_error *err) {
    enum pe_dtype dtype = task->common.dtype ? (enum pe_dtype)task->common.dtype : PE_DTYPE_F64;
    if ((made->blocks.data && task_wants(task, "blocks", true) &&
         task_narrow(task, "blocks", &made->blocks, dtype, err)) ||
        (made->matrix.data && task_wants(task, "matrix", !made->exact) &&
         task_narrow(task, "matrix", &made->matrix, dtype, err))) {
        return err->code;
    }
    result_json(&task->result, "exact", made->exact ? "true" : "false");
    result_numbers(&task->result, "residual", &made->residual);
    result_numbers(&task->result, "rms", &made->rms);
    return PE_OK;
}

#define POSITIONS 64 /* where none are given */

/* 0:64, as far as both p and p + distance are positions of the encoding. */
static int default_positions(struct shift_request *request, const struct pe_plan *plan,
                             struct pe_error *err) {
    double min, max, k = request->distance;
    pe_plan_bounds(plan, &min, &max);
    double low = ceil(fmax(min, min - k)), high = floor(fmin(max, max - k));
    double start = fmin(fmax(low, 0), fmax(low, high - (POSITIONS - 1)));
    double count = fmin(POSITIONS, high - start + 1);
    if (low > high) {
        return pe_fail(
            err, PE_ERR_RANGE, "distance",
            "is %.17g, but the encoding takes positions from %.17g to %.17g, of which no two are so far "
            "from each other",
            k, min + 0.0, max); /* no -0 */
    }
    return pe_positions_steps(&request->positions, start, 1, (size_t)count, err);
}

static int shift_open(struct task *task, struct pe_error *err) {
    struct shift_request *request = task->request;
    struct pe_plan *plan;
    bool placed = pe_field_given(fields, &fields[2], request);
    size_t length = placed ? request->positions.length : POSITIONS;
    if (task_plan(task, &plan, &request->encoding, 0, length, err) ||
        (!placed && default_positions(request, plan, err))) {
        return err->code;
    }
    pe_positions_suit(plan, &request->positions);
    struct pe_shift_args args = {
        .size = sizeof args,
        .plan = plan,
        .distance = request->distance,
        .positions = &request->positions,
        .matrix = task_wants(task, "matrix", false),
    };
    struct pe_shift_result made;
    if (pe_shift_open(task->arena, &task->work, &made, &args, err) || check_return(task, &made, err)) {
        return err->code;
    }
    task_echo_positions(task, "positions", &request->positions);
    return declare(task, &made, err);
}

const struct api_op api_shift = {
    .name = "shift",
    .doc =
        "The linear map from PE(p) to PE(p + distance): exact where the encoding has one, else the best fit.",
    .get = "GET /v1/shift",
    .post = "POST /v1/shift",
    .request_size = sizeof(struct shift_request),
    .fields = fields,
    .n_fields = PE_COUNT(fields),
    .tensors = "blocks, matrix",
    .admits = pe_shift_admits,
    .open = shift_open,
};
