/* SPDX-License-Identifier: MIT
 *
 * positions: a rule (mask, lengths, grid, range) -> the `positions` that it gives. The rule's own fields may
 * stand at the top, as in a query: mask=[[0,1,1]]&rule=opt.
 */
#include "api/api.h"

struct positions_request {
    uint64_t given;
    struct pe_positions positions;
    const struct pe_tensor *mask, *lengths, *grid, *sample;
    int rule;
    int64_t padding_idx, seed;
};

static const struct pe_field fields[] = {
    {PE_FIELD(positions_request, positions), .doc = "positions in any spelling"},
    {PE_FIELD(positions_request, mask), .flags = PE_FIELD_NUMBERS, .shape = "[T] or [B, T]",
     .doc = "1 = token, 0 = padding; needs a rule"},
    {PE_FIELD(positions_request, lengths), .flags = PE_FIELD_NUMBERS, .shape = "[N]",
     .doc = "lengths of documents packed one after the other"},
    {PE_FIELD(positions_request, grid), .flags = PE_FIELD_NUMBERS, .shape = "[axes]",
     .doc = "sizes of a grid, row-major"},
    {PE_FIELD(positions_request, rule), .choices = pe_position_rule_choices,
     .doc = "how a mask becomes positions"},
    {PE_FIELD(positions_request, padding_idx), .min = 0, .max = PE_PADDING_IDX_MAX, .def = "1",
     .doc = "of the rules roberta and fairseq"},
    {PE_FIELD(positions_request, sample), .flags = PE_FIELD_NUMBERS, .shape = "[T, L]",
     .doc = "T different whole numbers from 0 to L-1, in order"},
    {PE_FIELD(positions_request, seed), .min = 0, .max = PE_POSITION_MAX, .def = "0", .doc = "of sample"},
};

/* The flat spelling as the rule's struct; `given` by the order of pe_positions_fields. */
static int make_flat(struct task *task, struct positions_request *request, struct pe_error *err) {
    struct pe_positions_rule rule;
    pe_fields_init(pe_positions_fields, pe_positions_n_fields, &rule, sizeof rule);
    for (size_t i = 0; i < PE_COUNT(fields); i++) {
        const struct pe_field *to = pe_field_find(pe_positions_fields, pe_positions_n_fields, fields[i].name);
        if (to && pe_field_given(fields, &fields[i], request)) {
            rule.given |= (uint64_t)1 << (to - pe_positions_fields);
        }
    }
    rule.mask = request->mask;
    rule.lengths = request->lengths;
    rule.grid = request->grid;
    rule.rule = request->rule;
    rule.padding_idx = request->padding_idx;
    rule.sample = request->sample;
    rule.seed = request->seed;
    return pe_positions_make(task->arena, &request->positions, &rule, err);
}

static int positions_open(struct task *task, struct pe_error *err) {
    struct positions_request *request = task->request;
    bool nested = pe_field_given(fields, &fields[0], request);
    bool flat = (request->given & ~(uint64_t)1) != 0;
    if (!nested && !flat) {
        return pe_fail(err, PE_ERR_MISSING, "positions",
                       "is required, or one of mask with rule, lengths, grid and sample");
    }
    if (nested && flat) {
        return pe_fail(err, PE_ERR_CONFLICT, "positions",
                       "is given beside mask, lengths, grid, sample or rule");
    }
    if (!nested && make_flat(task, request, err)) {
        return err->code;
    }
    const struct pe_positions *positions = &request->positions;
    size_t dim[3];
    int rank = task_positions_shape(positions, dim);
    struct pe_tensor doubles, out;
    enum pe_dtype dtype = task->common.dtype ? (enum pe_dtype)task->common.dtype : PE_DTYPE_F64;
    if (pe_result_ask(task->arena, dtype, rank, dim, err)) {
        return err->code;
    }
    if (pe_tensor_alloc(task->arena, &doubles, PE_DTYPE_F64, rank, dim, err)) {
        return pe_error_at(err, "positions");
    }
    if (pe_positions_fill(positions, doubles.data, err)) {
        return err->code;
    }
    if (pe_tensor_convert(task->arena, &out, &doubles, dtype, err)) {
        return pe_error_at(err, "positions");
    }
    result_tensor(&task->result, "positions", &out);
    return PE_OK;
}

const struct api_op api_positions = {
    .name = "positions",
    .doc = "The positions that a mask, lengths of packed documents, a grid, a sample or a range stand for.",
    .get = "GET /v1/positions",
    .post = "POST /v1/positions",
    .brief = true,
    .request_size = sizeof(struct positions_request),
    .fields = fields,
    .n_fields = PE_COUNT(fields),
    .tensor = "mask",
    .tensors = "positions",
    .open = positions_open,
};
