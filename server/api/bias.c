/* SPDX-License-Identifier: MIT
 *
 * bias: what a relative encoding adds to the logits -> `bias` [H, Tq, Tk]. A large reply to a GET is computed
 * while it is sent.
 */
#include "api/api.h"

#include "config.h"

#include "posenc_admits.h"

struct bias_request {
    uint64_t given;
    struct pe_spec encoding;
    int64_t heads;
    const struct pe_tensor *head_index;
    struct pe_positions query_positions, key_positions;
};

static const struct pe_field fields[] = {
    {PE_FIELD(bias_request, encoding), .flags = PE_FIELD_REQUIRED, .doc = "the encoding"},
    {PE_FIELD(bias_request, heads), .flags = PE_FIELD_REQUIRED, .min = 1, .max = PE_HEADS_MAX,
     .doc = "H, how many heads the model has"},
    {PE_FIELD(bias_request, head_index), .flags = PE_FIELD_NUMBERS, .shape = "[n]",
     .doc = "only these heads of it, counted from 0, in any order, some perhaps twice; default all"},
    {PE_FIELD(bias_request, query_positions), .doc = "default: key_positions"},
    {PE_FIELD(bias_request, key_positions), .doc = "default: query_positions"},
};
enum { FIELD_QUERIES = 3, FIELD_KEYS };

static void rows_fill(const void *state, size_t first, size_t n, void *out) {
    pe_bias_rows_fill(state, first, n, out);
}

/* Declares the biases without memory for them. */
static int stream(struct task *task, const struct pe_bias_args *args, const struct pe_tensor *shape,
                  struct pe_error *err) {
    const struct pe_bias_rows *rows;
    if (pe_bias_rows_open(task->arena, &rows, args, err)) {
        return err->code;
    }
    result_tensor(&task->result, "bias", shape);
    struct result_item *item = &task->result.items[task->result.n - 1];
    item->rows = rows_fill;
    item->state = rows;
    item->minus_inf = true;
    return PE_OK;
}

/* Is it so large that a GET is streamed? Its size is checked before anything is promised. */
static int check_size(const struct task *task, const struct pe_tensor *shape, bool *large,
                      struct pe_error *err) {
    char text[128];
    size_t bytes, factors[5] = {pe_dtype_size(shape->dtype)};
    uint64_t limit = (uint64_t)task->service->config->stream_bytes;
    for (int i = 0; i < shape->rank; i++) {
        factors[1 + i] = shape->dim[i];
    }
    if (!pe_size_product(factors, (size_t)shape->rank + 1, &bytes)) {
        bytes = SIZE_MAX;
    }
    *large = task_is_large(task, bytes);
    if (task->stream_ok && bytes > limit) {
        return pe_fail_limit(err, "key_positions", "stream_bytes", limit, bytes,
                             "biases %s are more than the %llu bytes that a stream may have",
                             pe_tensor_shape_text(shape, text, sizeof text), (unsigned long long)limit);
    }
    return PE_OK;
}

static int bias_open(struct task *task, struct pe_error *err) {
    struct bias_request *request = task->request;
    bool queries = pe_field_given(fields, &fields[FIELD_QUERIES], request);
    bool keys = pe_field_given(fields, &fields[FIELD_KEYS], request);
    struct pe_plan *plan;
    if (task_plan(task, &plan, &request->encoding, 0, 0, err) || task_facts(task, plan, err)) {
        return err->code;
    }
    struct pe_bias_args args = {
        .size = sizeof args,
        .plan = plan,
        .heads = (size_t)request->heads,
        .head_index = request->head_index,
        .query_positions = queries ? &request->query_positions : NULL,
        .key_positions = keys ? &request->key_positions : NULL,
        .dtype = task_dtype(task),
    };
    if (queries) {
        task_echo_positions(task, "query_positions", &request->query_positions);
    }
    if (keys) {
        task_echo_positions(task, "key_positions", &request->key_positions);
    }
    struct pe_tensor bias;
    bool large;
    if (pe_bias_shape(&args, &bias, err) || check_size(task, &bias, &large, err)) {
        return err->code;
    }
    if (task->stream_ok && large) {
        return stream(task, &args, &bias, err);
    }
    if (pe_bias_open(task->arena, &task->work, &bias, &args, err)) {
        return err->code;
    }
    result_tensor(&task->result, "bias", &bias);
    task->result.items[task->result.n - 1].minus_inf = true; /* what is too large was refused by its bound */
    return PE_OK;
}

const struct api_op api_bias = {
    .name = "bias",
    .doc = "What a relative encoding adds to the logits.",
    .get = "GET /v1/bias",
    .post = "POST /v1/bias",
    .request_size = sizeof(struct bias_request),
    .fields = fields,
    .n_fields = PE_COUNT(fields),
    .tensors = "bias",
    .admits = pe_bias_admits,
    .open = bias_open,
};
