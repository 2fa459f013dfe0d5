/* SPDX-License-Identifier: MIT
 *
 * similarity: how alike the vectors of positions are -> `gram`, and by the offset of two positions
 * `by_offset` and `spread`.
 */
#include "api/api.h"

#include "posenc_admits.h"

struct similarity_request {
    uint64_t given;
    struct pe_spec encoding;
    struct pe_positions positions;
    int metric;
    const struct pe_tensor *w_q, *w_k;
    int64_t w_seed;
};

static const struct pe_choice metrics[] = {
    {"dot", PE_SIMILARITY_DOT, "the product, as in attention"},
    {"cosine", PE_SIMILARITY_COSINE, "the cosine of the angle between the vectors"},
    {0},
};

static const struct pe_field fields[] = {
    {PE_FIELD(similarity_request, encoding), .flags = PE_FIELD_REQUIRED, .doc = "the encoding"},
    {PE_FIELD(similarity_request, positions), .flags = PE_FIELD_REQUIRED, .doc = "the positions to compare"},
    {PE_FIELD(similarity_request, metric), .choices = metrics, .def = "dot", .doc = "what is compared"},
    {PE_FIELD(similarity_request, w_q), .shape = "[D, n]", .doc = "vectors as queries are PE.w_q"},
    {PE_FIELD(similarity_request, w_k), .shape = "[D, n]", .doc = "vectors as keys are PE.w_k"},
    {PE_FIELD(similarity_request, w_seed), .min = 0, .max = PE_POSITION_MAX,
     .doc = "in place of both: random ones [D, D]"},
};
enum { FIELD_W_SEED = 5 };

static int declare(struct task *task, const char *name, const struct pe_tensor *made, bool by_default,
                   struct pe_error *err) {
    if (!task_wants(task, name, by_default)) {
        return PE_OK;
    }
    if (!made->data) {
        return pe_fail(
            err, PE_ERR_CONFLICT, "return",
            "%s is for positions that are said by their step, as 0:100 or start, count and step, not "
            "by a list",
            name);
    }
    result_tensor(&task->result, name, made);
    return PE_OK;
}

static int similarity_open(struct task *task, struct pe_error *err) {
    struct similarity_request *request = task->request;
    struct pe_plan *plan;
    if (task_plan(task, &plan, &request->encoding, 0, request->positions.length, err) ||
        task_positions(task, plan, &request->positions, err)) {
        return err->code;
    }
    struct pe_similarity_args args = {
        .size = sizeof args,
        .plan = plan,
        .positions = &request->positions,
        .metric = (enum pe_similarity_metric)request->metric,
        .w_q = request->w_q,
        .w_k = request->w_k,
        .w_seed = pe_field_given(fields, &fields[FIELD_W_SEED], request) ? &request->w_seed : NULL,
        .dtype = task_dtype(task),
    };
    struct pe_similarity_result made;
    if (pe_similarity_open(task->arena, &task->work, &made, &args, err)) {
        return err->code;
    }
    bool even = made.by_offset.data != NULL;
    return declare(task, "gram", &made.gram, true, err) ||
                   declare(task, "by_offset", &made.by_offset, even, err) ||
                   declare(task, "spread", &made.spread, even, err)
               ? err->code
               : PE_OK;
}

const struct api_op api_similarity = {
    .name = "similarity",
    .doc = "How alike the vectors of positions are: by pairs, and by their offset.",
    .get = "GET /v1/similarity",
    .post = "POST /v1/similarity",
    .request_size = sizeof(struct similarity_request),
    .fields = fields,
    .n_fields = PE_COUNT(fields),
    .tensors = "gram, by_offset, spread",
    .admits = pe_similarity_admits,
    .open = similarity_open,
};
