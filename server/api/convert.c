/* SPDX-License-Identifier: MIT
 *
 * convert: between the rotary layouts. Without a tensor the row permutations of the weights that make queries
 * and keys, with one the tensor itself, its rows moved.
 */
#include "api/api.h"

struct convert_request {
    uint64_t given;
    int from, to;
    int64_t head_dim, rotary_dim, heads, kv_heads;
    const struct pe_tensor *tensor;
    int64_t axis;
    int of;
};

static const struct pe_choice layouts[] = {
    {"halves", PE_ROTARY_HALVES, "pair i is rows i and i + rotary_dim/2 of its head"},
    {"interleaved", PE_ROTARY_INTERLEAVED, "pair i is rows 2i and 2i + 1 of its head"},
    {0},
};
enum { OF_Q = 1, OF_K };
static const struct pe_choice sides[] = {
    {"q", OF_Q, "it makes queries: heads"},
    {"k", OF_K, "it makes keys: kv_heads"},
    {0},
};

static const struct pe_field fields[] = {
    {PE_FIELD(convert_request, from), .choices = layouts, .flags = PE_FIELD_REQUIRED,
     .doc = "the layout that the weights have"},
    {PE_FIELD(convert_request, to), .choices = layouts, .flags = PE_FIELD_REQUIRED,
     .doc = "the layout that they get"},
    {PE_FIELD(convert_request, head_dim), .min = 2, .max = 65536, .flags = PE_FIELD_REQUIRED,
     .doc = "width of one head's query or key"},
    {PE_FIELD(convert_request, rotary_dim), .min = 2, .max = 65536,
     .doc = "how many of its columns turn, the first ones; even [head_dim]"},
    {PE_FIELD(convert_request, heads), .min = 1, .max = 65536, .def = "1", .doc = "heads of the queries"},
    {PE_FIELD(convert_request, kv_heads), .min = 1, .max = 65536,
     .doc = "heads of the keys, a divisor of heads [heads]"},
    {PE_FIELD(convert_request, tensor), .shape = "[out, in] or [out]; axis 1: [in, out]",
     .doc = "a weight or bias to convert"},
    {PE_FIELD(convert_request, axis), .min = 0, .max = 1, .def = "0",
     .doc = "which axis of the tensor its outputs are: 1 for kernels [in, out]"},
    {PE_FIELD(convert_request, of), .choices = sides, .def = "q",
     .doc = "whether the tensor makes queries or keys"},
};
enum { FIELD_AXIS = 7, FIELD_OF };

/* What would be ignored is refused. */
static int check_tensor(const struct task *task, const struct convert_request *request,
                        struct pe_error *err) {
    static const int needs[] = {FIELD_AXIS, FIELD_OF};
    for (size_t i = 0; i < PE_COUNT(needs) && !request->tensor; i++) {
        if (pe_field_given(fields, &fields[needs[i]], request)) {
            return pe_fail(err, PE_ERR_CONFLICT, fields[needs[i]].name, "is of a tensor, and there is none");
        }
    }
    if (!request->tensor && task_wants(task, "tensor", false)) {
        return pe_fail(err, PE_ERR_MISSING, "tensor", "is missing, return asks for it");
    }
    return PE_OK;
}

/* A permutation in the dtype asked for, which must hold its whole numbers. */
static int declare_rows(struct task *task, const char *name, const struct pe_tensor *rows,
                        struct pe_error *err) {
    bool by_default = !((const struct convert_request *)task->request)->tensor;
    enum pe_dtype dtype = task->common.dtype && by_default ? (enum pe_dtype)task->common.dtype : PE_DTYPE_F64;
    static const double most[PE_DTYPE_COUNT] = {
        [PE_DTYPE_F64] = 0x1p53, [PE_DTYPE_F32] = 0x1p24, [PE_DTYPE_F16] = 0x1p11, [PE_DTYPE_BF16] = 0x1p8};
    struct pe_tensor out;
    if (!task_wants(task, name, by_default)) {
        return PE_OK;
    }
    if ((double)rows->dim[0] > most[dtype] + 1) {
        return pe_fail(err, PE_ERR_RANGE, "dtype", "%s has no exact numbers for %zu rows, only up to %g",
                       pe_dtype_name(dtype), rows->dim[0], most[dtype]);
    }
    if (pe_tensor_convert(task->arena, &out, rows, dtype, err)) {
        return pe_error_at(err, name);
    }
    result_tensor(&task->result, name, &out);
    return PE_OK;
}

static int convert_open(struct task *task, struct pe_error *err) {
    const struct convert_request *request = task->request;
    struct pe_convert_args args = {
        .size = sizeof args,
        .from = (enum pe_rotary_layout)request->from,
        .to = (enum pe_rotary_layout)request->to,
        .head_dim = (size_t)request->head_dim,
        .rotary_dim = (size_t)request->rotary_dim,
        .heads = (size_t)request->heads,
        .kv_heads = (size_t)request->kv_heads,
        .tensor = request->tensor,
        .axis = (size_t)request->axis,
        .keys = request->of == OF_K,
        .dtype = (enum pe_dtype)task->common.dtype,
    };
    struct pe_convert_result made;
    if (check_tensor(task, request, err) || pe_convert_open(task->arena, &task->work, &made, &args, err)) {
        return err->code;
    }
    if (made.tensor.rank && task_wants(task, "tensor", true)) {
        result_tensor(&task->result, "tensor", &made.tensor);
    }
    return declare_rows(task, "permutation", &made.permutation, err) ||
                   declare_rows(task, "permutation_k", &made.permutation_k, err)
               ? err->code
               : PE_OK;
}

const struct api_op api_convert = {
    .name = "convert",
    .doc = "Between rotary layouts: the row permutations of the weights that make queries and keys, or a "
           "posted weight with its rows moved.",
    .get = "GET /v1/convert",
    .post = "POST /v1/convert",
    .request_size = sizeof(struct convert_request),
    .fields = fields,
    .n_fields = PE_COUNT(fields),
    .tensor = "tensor",
    .tensors = "permutation, permutation_k, tensor",
    .open = convert_open,
};
