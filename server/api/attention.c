/* SPDX-License-Identifier: MIT
 *
 * attention: queries and keys, or embeddings with projections, an explicit bias, an encoding and a mask ->
 * `weights` and what they are made of.
 */
#include "api/api.h"

#include <string.h>

struct attention_request {
    uint64_t given;
    struct pe_spec encoding;
    const struct pe_tensor *q, *k, *v;
    const struct pe_tensor *embeddings, *w_q, *w_k, *w_v;
    int64_t heads;
    const struct pe_tensor *head_index;
    const struct pe_tensor *bias;
    struct pe_positions query_positions, key_positions;
    const void *mask; /* struct api_mask */
    double scale;
};

static const struct pe_field fields[] = {
    {PE_FIELD(attention_request, encoding), .doc = "the encoding; default none"},
    {PE_FIELD(attention_request, q), .shape = "[Tq, d], [H, Tq, d] or [B, H, Tq, d]", .doc = "queries"},
    {PE_FIELD(attention_request, k), .shape = "[.., Tk, d]",
     .doc = "keys; their heads may divide those of q"},
    {PE_FIELD(attention_request, v), .shape = "[.., Tk, dv]", .doc = "values, for output"},
    {PE_FIELD(attention_request, embeddings), .shape = "[T, D] or [B, T, D]",
     .doc = "in place of q, k, v: tokens to which an absolute encoding is added"},
    {PE_FIELD(attention_request, w_q), .shape = "[D, H*d]", .doc = "q = x.w_q; default the identity"},
    {PE_FIELD(attention_request, w_k), .shape = "[D, H*d]", .doc = "k = x.w_k; default the identity"},
    {PE_FIELD(attention_request, w_v), .shape = "[D, H*dv]", .doc = "v = x.w_v; default the identity"},
    {PE_FIELD(attention_request, heads), .min = 1, .max = PE_HEADS_MAX, .doc = "H; default 1, or as q has"},
    {PE_FIELD(attention_request, head_index), .flags = PE_FIELD_NUMBERS, .shape = "[n]",
     .doc = "q, k and v are of these of the model's heads, which a relative encoding tells apart"},
    {PE_FIELD(attention_request, bias), .flags = PE_FIELD_MINUS_INF,
     .shape = "[Tq, Tk], [H, Tq, Tk] or [B, H, Tq, Tk]", .doc = "added to the logits; null = -infinity"},
    {PE_FIELD(attention_request, query_positions), .doc = "default: aligned to the right of the keys"},
    {PE_FIELD(attention_request, key_positions), .doc = "default 0..Tk-1"},
    {PE_FIELD(attention_request, mask), .fields = api_mask_fields, .n_fields = API_MASK_FIELDS,
     .object_size = sizeof(struct api_mask), .doc = "which keys a query sees; \"causal\" for short"},
    {PE_FIELD(attention_request, scale), .min = -1e30, .max = 1e30,
     .doc = "of q.k; default 1/sqrt(d), or the encoding's own: 1 of t5"},
};

static const struct {
    const char *name;
    unsigned bit;
} outputs[] = {
    {"weights", PE_ATTENTION_WEIGHTS},   {"logits", PE_ATTENTION_LOGITS}, {"content", PE_ATTENTION_CONTENT},
    {"position", PE_ATTENTION_POSITION}, {"output", PE_ATTENTION_OUTPUT}, {"terms", PE_ATTENTION_TERMS},
};

static bool given(const struct attention_request *request, const char *name) {
    return pe_field_given(fields, pe_field_find(fields, PE_COUNT(fields), name), request);
}

/* The width of one head's queries; 0 where the shapes do not tell, which is an error that comes later. */
static size_t head_width(const struct attention_request *request) {
    const struct pe_tensor *whole = request->q     ? request->q
                                    : request->w_q ? request->w_q
                                                   : request->embeddings;
    size_t heads = request->heads > 0 ? (size_t)request->heads : 1;
    size_t columns = whole && whole->rank > 0 ? whole->dim[whole->rank - 1] : 0;
    return request->q ? columns : columns % heads == 0 ? columns / heads : 0;
}

/* The width and length that the encoding may follow: those of the embeddings. */
static int make_plan(struct task *task, struct attention_request *request, struct pe_plan **plan,
                     struct pe_error *err) {
    const struct pe_tensor *x = request->embeddings;
    *plan = NULL;
    if (!given(request, "encoding")) {
        return PE_OK;
    }
    enum pe_family family = request->encoding.encoding->family;
    bool of_heads = family == PE_FAMILY_ROTARY || family == PE_FAMILY_BIAS || family == PE_FAMILY_QUERY;
    if (of_heads) {
        return task_plan(task, plan, &request->encoding, head_width(request), 0, err) ||
                       task_facts(task, *plan, err)
                   ? err->code
                   : PE_OK;
    }
    if (x) {
        return task_plan_embeddings(task, plan, &request->encoding, x, err);
    }
    if (family == PE_FAMILY_ABSOLUTE) {
        return pe_fail(
            err, PE_ERR_CONFLICT, "encoding",
            "%s is added to embeddings before they become queries and keys: post embeddings (with w_q, w_k) "
            "in place of q and k",
            request->encoding.encoding->type);
    }
    return task_plan(task, plan, &request->encoding, 0, 0, err);
}

static unsigned wanted(const struct task *task) {
    unsigned bits = 0;
    for (size_t i = 0; i < PE_COUNT(outputs); i++) {
        if (task_wants(task, outputs[i].name, outputs[i].bit == PE_ATTENTION_WEIGHTS)) {
            bits |= outputs[i].bit;
        }
    }
    return bits;
}

/* Declares what was asked for; logits and position are where the bias' -infinity shows. */
static void declare(struct task *task, const struct pe_attention_result *made) {
    const struct pe_tensor *tensors[] = {&made->weights,  &made->logits, &made->content,
                                         &made->position, &made->output, &made->terms};
    for (size_t i = 0; i < PE_COUNT(outputs); i++) {
        if (!tensors[i]->data) {
            continue;
        }
        result_tensor(&task->result, outputs[i].name, tensors[i]);
        task->result.items[task->result.n - 1].minus_inf =
            (outputs[i].bit & (PE_ATTENTION_LOGITS | PE_ATTENTION_POSITION)) != 0;
    }
}

static int attention_open(struct task *task, struct pe_error *err) {
    struct attention_request *request = task->request;
    struct pe_attention_mask mask;
    struct pe_plan *plan;
    bool queries = given(request, "query_positions"), keys = given(request, "key_positions");
    if (make_plan(task, request, &plan, err) || (request->mask && api_mask_make(request->mask, &mask, err))) {
        return err->code;
    }
    if ((queries && task_place(task, plan, "query_positions", &request->query_positions, err)) ||
        (keys && task_place(task, plan, "key_positions", &request->key_positions, err))) {
        return err->code;
    }
    struct pe_attention_args args = {
        .size = sizeof args,
        .plan = plan,
        .q = request->q,
        .k = request->k,
        .v = request->v,
        .embeddings = request->embeddings,
        .w_q = request->w_q,
        .w_k = request->w_k,
        .w_v = request->w_v,
        .heads = (size_t)request->heads,
        .head_index = request->head_index,
        .bias = request->bias,
        .query_positions = queries ? &request->query_positions : NULL,
        .key_positions = keys ? &request->key_positions : NULL,
        .mask = request->mask ? &mask : NULL,
        .scale = given(request, "scale") ? &request->scale : NULL,
        .outputs = wanted(task),
        .dtype = task_dtype(task),
    };
    struct pe_attention_result made;
    if (pe_attention_open(task->arena, &task->work, &made, &args, err)) {
        return err->code;
    }
    declare(task, &made);
    return PE_OK;
}

const struct api_op api_attention = {
    .name = "attention",
    .doc = "Attention weights softmax(scale*q.k + bias), and what they are made of.",
    .post = "POST /v1/attention",
    .request_size = sizeof(struct attention_request),
    .fields = fields,
    .n_fields = PE_COUNT(fields),
    .tensor = "embeddings",
    .tensors = "weights, logits, content, position, output, terms",
    .open = attention_open,
};
