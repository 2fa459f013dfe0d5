/* SPDX-License-Identifier: MIT
 *
 * apply: embeddings [T, D] or [B, T, D] and an encoding -> `embeddings` of the same shape: x*scale + PE.
 */
#include "api/api.h"

#include "posenc_admits.h"

struct apply_request {
    uint64_t given;
    struct pe_spec encoding;
    const struct pe_tensor *embeddings;
    struct pe_positions positions;
    struct pe_scale embedding_scale;
    const char *axes;
    bool inverse;
    int role;
};

static const struct pe_field fields[] = {
    {PE_FIELD(apply_request, encoding), .flags = PE_FIELD_REQUIRED, .doc = "the encoding"},
    {PE_FIELD(apply_request, embeddings), .flags = PE_FIELD_REQUIRED,
     .shape = "[T, D] or [B, T, D]; images: [h, w, D] or [B, h, w, D]; rotary: any axes",
     .doc = "the token embeddings; rotary: queries or keys"},
    {PE_FIELD(apply_request, positions),
     .doc = "one per token, shared by the batch or [B, T]; default 0..T-1"},
    {PE_FIELD(apply_request, embedding_scale), .choices = api_embedding_scales, .def = "1",
     .doc = "what the embeddings are multiplied by first: a number or sqrt_d_model"},
    {PE_FIELD(apply_request, axes), .doc = "a letter for each axis, d last: td, btd, or hwd and bhwd for "
                                           "the rows and columns of images [td, btd]; rotary also h for "
                                           "heads, as bthd or bhtd"},
    {PE_FIELD(apply_request, inverse), .def = "false", .doc = "rotary: turn back"},
    {PE_FIELD(apply_request, role), .choices = api_roles,
     .doc = "rotary: whether these are queries or keys [query]"},
};
enum { FIELD_POSITIONS = 2, FIELD_SCALE };

static int apply_open(struct task *task, struct pe_error *err) {
    struct apply_request *request = task->request;
    const struct pe_tensor *x = request->embeddings;
    bool placed = pe_field_given(fields, &fields[FIELD_POSITIONS], request);
    struct pe_plan *plan;
    if (task_plan_embeddings(task, &plan, &request->encoding, x, err)) {
        return err->code;
    }
    if (placed && task_place(task, plan, "positions", &request->positions, err)) {
        return err->code;
    }
    if (task_facts(task, plan, err)) {
        return err->code;
    }
    const struct pe_scale *scale = &request->embedding_scale;
    struct pe_apply_args args = {
        .size = sizeof args,
        .plan = plan,
        .embeddings = x,
        .positions = placed ? &request->positions : NULL,
        .scale_mode = api_embedding_scale_mode(scale, pe_field_given(fields, &fields[FIELD_SCALE], request)),
        .scale = scale->number,
        .dtype = task_dtype(task),
        .axes = request->axes,
        .inverse = request->inverse,
        .keys = request->role == API_ROLE_KEY,
    };
    struct pe_tensor out;
    if (pe_apply_open(task->arena, &task->work, &out, &args, err)) {
        return err->code;
    }
    result_tensor(&task->result, "embeddings", &out);
    return placed ? task_warn(task, plan, &request->positions, err) : PE_OK;
}

const struct api_op api_apply = {
    .name = "apply",
    .doc = "Positions put into embeddings: x*scale + PE for encodings that are added, turned pairs for "
           "rotary ones.",
    .post = "POST /v1/apply",
    .request_size = sizeof(struct apply_request),
    .fields = fields,
    .n_fields = PE_COUNT(fields),
    .tensor = "embeddings",
    .tensors = "embeddings",
    .admits = pe_apply_admits,
    .open = apply_open,
};
