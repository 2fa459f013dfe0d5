/* SPDX-License-Identifier: MIT
 *
 * Posted queries, keys and values as streams: [T, d], [H, T, d] or [B, H, T, d], all of one rank. Key heads may
 * divide those of the queries, which then share them.
 */
#include "ops/attention_input.h"

static int rank_check(const struct pe_tensor *tensor, const char *field, int rank, struct pe_error *err) {
    char shape[128];
    if (tensor->rank < 2 || tensor->rank > 4) {
        return pe_fail(err, PE_ERR_SHAPE, field,
                       "has shape %s, allowed are [T, d], [H, T, d] and [B, H, T, d]",
                       pe_tensor_shape_text(tensor, shape, sizeof shape));
    }
    if (rank && tensor->rank != rank) {
        return pe_fail(err, PE_ERR_SHAPE, field, "has %d axes but q has %d", tensor->rank, rank);
    }
    return PE_OK;
}

static int posted_stream(struct pe_reader *r, enum pe_stream_name name, const struct pe_tensor *tensor,
                         const char *field, struct pe_error *err) {
    struct pe_attention *a = r->a;
    struct pe_operand operand;
    if (pe_reader_operand(r, &operand, tensor, field, err)) {
        return err->code;
    }
    struct pe_stream *s = &a->stream[name];
    s->data = operand.tensor.data;
    s->heads = name == PE_STREAM_Q ? a->heads : a->key_heads;
    s->rows = name == PE_STREAM_Q ? a->queries : a->keys;
    s->width = s->ld = name == PE_STREAM_V ? a->value_width : a->width;
    s->head = s->rows * s->width;
    s->batch = s->heads * s->head;
    r->largest[name] = operand.largest;
    return PE_OK;
}

static int posted_check(const struct pe_attention_args *args, unsigned outputs, struct pe_error *err) {
    if (args->embeddings) {
        return pe_fail(err, PE_ERR_CONFLICT, "embeddings", "post either q and k, or embeddings, not both");
    }
    if (!args->q) {
        return pe_fail(err, PE_ERR_MISSING, "q", "is missing: post q and k, or embeddings");
    }
    if (!args->k) {
        return pe_fail(err, PE_ERR_MISSING, "k", "is missing: q needs its keys");
    }
    if (!args->v && (outputs & PE_ATTENTION_OUTPUT)) {
        return pe_fail(err, PE_ERR_MISSING, "v", "is missing: output is the weighted sum of the values");
    }
    const char *weight = args->w_q ? "w_q" : args->w_k ? "w_k" : args->w_v ? "w_v" : NULL;
    if (weight) {
        return pe_fail(err, PE_ERR_CONFLICT, weight, "projects embeddings, but q and k are given");
    }
    return PE_OK;
}

static int heads_check(const struct pe_reader *r, struct pe_error *err) {
    size_t heads = r->a->heads, key_heads = r->a->key_heads;
    if (!r->args->head_index && r->args->heads && r->args->heads != heads) {
        return pe_fail(err, PE_ERR_CONFLICT, "heads", "is %zu but q has H = %zu%s", r->args->heads, heads,
                       r->relative ? ": head_index says which of the model's heads these are" : "");
    }
    if (heads % key_heads) {
        return pe_fail(err, PE_ERR_SHAPE, "k", "has H = %zu, which does not divide the H = %zu of q",
                       key_heads, heads);
    }
    return PE_OK;
}

static int posted_bind(struct pe_reader *r, struct pe_error *err) {
    static const enum pe_letter of_q[] = {PE_AXIS_B, PE_AXIS_H, PE_AXIS_TQ, PE_AXIS_D};
    static const enum pe_letter of_k[] = {PE_AXIS_B, PE_AXIS_HK, PE_AXIS_TK, PE_AXIS_D};
    static const enum pe_letter of_v[] = {PE_AXIS_B, PE_AXIS_HK, PE_AXIS_TK, PE_AXIS_DV};
    const struct pe_attention_args *args = r->args;
    if (rank_check(args->q, "q", 0, err) || rank_check(args->k, "k", args->q->rank, err) ||
        (args->v && rank_check(args->v, "v", args->q->rank, err)) ||
        pe_axes_bind(&r->axes, "q", args->q, of_q, 4, err) ||
        pe_axes_bind(&r->axes, "k", args->k, of_k, 4, err) ||
        (args->v && pe_axes_bind(&r->axes, "v", args->v, of_v, 4, err))) {
        return err->code;
    }
    struct pe_attention *a = r->a;
    const size_t *size = r->axes.size;
    a->rank = args->q->rank;
    a->batched = a->rank == 4;
    a->batch = a->batched ? size[PE_AXIS_B] : 1;
    a->heads = a->rank > 2 ? size[PE_AXIS_H] : 1;
    a->key_heads = a->rank > 2 ? size[PE_AXIS_HK] : 1;
    a->queries = size[PE_AXIS_TQ];
    a->keys = size[PE_AXIS_TK];
    a->width = size[PE_AXIS_D];
    a->value_width = size[PE_AXIS_DV];
    return heads_check(r, err);
}

int pe_reader_posted(struct pe_reader *r, struct pe_error *err) {
    const struct pe_attention_args *args = r->args;
    if (posted_check(args, r->outputs, err)) {
        return err->code;
    }
    if (args->plan && pe_encoding_adds(pe_plan_row(args->plan))) {
        return pe_fail(
            err, PE_ERR_CONFLICT, "encoding",
            "%s is added to the embeddings before they are projected, so it cannot act on q and k: "
            "post embeddings",
            pe_plan_encoding(args->plan)->type);
    }
    if (posted_bind(r, err) || pe_reader_positions(r, err) ||
        posted_stream(r, PE_STREAM_Q, args->q, "q", err) ||
        posted_stream(r, PE_STREAM_K, args->k, "k", err)) {
        return err->code;
    }
    if (args->v && (r->outputs & PE_ATTENTION_OUTPUT) && posted_stream(r, PE_STREAM_V, args->v, "v", err)) {
        return err->code;
    }
    if (!r->rotary) {
        return PE_OK;
    }
    r->a->split = true;
    r->a->stream[PE_STREAM_Q_CONTENT] = r->a->stream[PE_STREAM_Q];
    r->a->stream[PE_STREAM_K_CONTENT] = r->a->stream[PE_STREAM_K];
    return pe_reader_turn(r, err);
}
