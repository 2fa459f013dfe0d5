/* SPDX-License-Identifier: MIT
 *
 * convert: between the rotary layouts. Without a tensor the row permutations of the weights that make queries
 * and keys, with one the tensor itself, its rows moved. Or, with `resize`, a learned table for sequences or
 * images of another size.
 */
#include "api/api.h"

#include <string.h>

struct convert_request {
    uint64_t given;
    int from, to;
    int64_t head_dim, rotary_dim, heads, kv_heads;
    const struct pe_tensor *tensor;
    int64_t axis;
    int of;
    const void *resize; /* struct resize */
};

struct resize {
    uint64_t given;
    int64_t to_rows;
    struct pe_ints to_grid, from_grid;
    int64_t prefix_rows, suffix_rows;
    int kernel;
    bool align_corners;
};

static const struct pe_choice kernels[] = {
    {"linear", PE_RESAMPLE_LINEAR, "the two nearest, by the distance to each"},
    {"bilinear", PE_RESAMPLE_BILINEAR, "linear along both axes"},
    {"bilinear_antialias", PE_RESAMPLE_BILINEAR_ANTIALIAS, "as much wider as the table becomes smaller"},
    {"bicubic", PE_RESAMPLE_BICUBIC, "cubic with a = -3/4, edges repeated: torch's interpolate, MAE, ViT"},
    {"bicubic_keys", PE_RESAMPLE_BICUBIC_KEYS, "cubic with a = -1/2, edges repeated"},
    {"bicubic_antialias", PE_RESAMPLE_BICUBIC_ANTIALIAS,
     "cubic with a = -1/2, edges left out, as much wider as the table becomes smaller: timm, jax, Pillow"},
    {0},
};

#define ROWS_MOST ((int64_t)1 << 40)
#define SIDE_MOST 16777216

static const struct pe_field resize_fields[] = {
    {PE_FIELD(resize, to_rows), .min = 1, .max = (double)ROWS_MOST,
     .doc = "rows that a table in a line gets, beside those that are kept"},
    {PE_FIELD(resize, to_grid), .min = 1, .max = SIDE_MOST,
     .doc = "[height, width] that a table of a grid gets"},
    {PE_FIELD(resize, from_grid), .min = 1, .max = SIDE_MOST,
     .doc = "[height, width] that it has [a square, or as the tensor's axes say]"},
    {PE_FIELD(resize, prefix_rows), .min = 0, .max = (double)ROWS_MOST, .def = "0",
     .doc = "rows before what is resized, which are kept: 1 for a class token"},
    {PE_FIELD(resize, suffix_rows), .min = 0, .max = (double)ROWS_MOST, .def = "0",
     .doc = "rows behind it, which are kept: 3 in BEiT's relative tables"},
    {PE_FIELD(resize, kernel), .choices = kernels, .flags = PE_FIELD_REQUIRED,
     .doc = "how numbers between those of the table are made; projects differ"},
    {PE_FIELD(resize, align_corners), .def = "false",
     .doc = "whether corners of the two grids lie on each other, or edges of their cells"},
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
    {PE_FIELD(convert_request, from), .choices = layouts, .doc = "the layout that the weights have"},
    {PE_FIELD(convert_request, to), .choices = layouts, .doc = "the layout that they get"},
    {PE_FIELD(convert_request, head_dim), .min = 2, .max = 65536, .doc = "width of one head's query or key"},
    {PE_FIELD(convert_request, rotary_dim), .min = 2, .max = 65536,
     .doc = "how many of its columns turn, the first ones; even [head_dim]"},
    {PE_FIELD(convert_request, heads), .min = 1, .max = PE_HEADS_MAX, .def = "1",
     .doc = "heads of the queries"},
    {PE_FIELD(convert_request, kv_heads), .min = 1, .max = PE_HEADS_MAX,
     .doc = "heads of the keys, a divisor of heads [heads]"},
    {PE_FIELD(convert_request, tensor),
     .shape = "[out, in] or [out]; axis 1: [in, out]; to resize: [rows, D] or [h, w, D]",
     .doc = "a weight or bias to convert, or the table to resize"},
    {PE_FIELD(convert_request, axis), .min = 0, .max = 1, .def = "0",
     .doc = "which axis of the tensor its outputs are: 1 for kernels [in, out]"},
    {PE_FIELD(convert_request, of), .choices = sides, .def = "q",
     .doc = "whether the tensor makes queries or keys"},
    {PE_FIELD(convert_request, resize), .fields = resize_fields, .n_fields = PE_COUNT(resize_fields),
     .object_size = sizeof(struct resize),
     .doc = "in place of layouts: the tensor is a learned table, for "
            "sequences or images of another size"},
};
enum { FIELD_TENSOR = 6, FIELD_AXIS, FIELD_OF, FIELD_RESIZE };

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

/* ---- Resize -------------------------------------------------------------------------------------------- */

static int grid_read(const struct pe_ints *from, const char *name, size_t to[2], struct pe_error *err) {
    if (from->n && from->n != 2) {
        return pe_fail(err, PE_ERR_SHAPE, name, "got %zu sizes, allowed are 2: height and width", from->n);
    }
    for (size_t i = 0; i < from->n; i++) {
        to[i] = (size_t)from->v[i];
    }
    return PE_OK;
}

/* Errors that are not of the tensor are of the object. */
static int resize_fail(struct pe_error *err) {
    return strcmp(err->path, "tensor") == 0 || strcmp(err->path, "dtype") == 0 ? err->code
                                                                               : pe_error_at(err, "resize");
}

static int resize_open(struct task *task, struct pe_error *err) {
    const struct convert_request *request = task->request;
    const struct resize *resize = request->resize;
    struct pe_resize_args args = {
        .size = sizeof args,
        .table = request->tensor,
        .to_rows = (size_t)resize->to_rows,
        .prefix_rows = (size_t)resize->prefix_rows,
        .suffix_rows = (size_t)resize->suffix_rows,
        .kernel = (enum pe_resample)resize->kernel,
        .align_corners = resize->align_corners,
        .dtype = (enum pe_dtype)task->common.dtype,
    };
    struct pe_tensor resized;
    for (size_t i = 0; i < FIELD_RESIZE; i++) {
        if (i != FIELD_TENSOR && pe_field_given(fields, &fields[i], request)) {
            return pe_fail(err, PE_ERR_CONFLICT, fields[i].name, "is of layouts, and given beside resize");
        }
    }
    if (grid_read(&resize->to_grid, "to_grid", args.to_grid, err) ||
        grid_read(&resize->from_grid, "from_grid", args.from_grid, err) ||
        pe_resize_open(task->arena, &task->work, &resized, &args, err)) {
        return resize_fail(err);
    }
    if (!task_wants(task, "tensor", true)) {
        return pe_fail(err, PE_ERR_MISSING, "return", "names no tensor of resize, which gives tensor");
    }
    result_tensor(&task->result, "tensor", &resized);
    return PE_OK;
}

static int convert_open(struct task *task, struct pe_error *err) {
    const struct convert_request *request = task->request;
    if (request->resize) {
        return resize_open(task, err);
    }
    if (!request->from || !request->to || !request->head_dim) {
        return pe_fail(err, PE_ERR_MISSING,
                       !request->from ? "from"
                       : !request->to ? "to"
                                      : "head_dim",
                       "is missing: weights of queries and keys need from and to (halves or interleaved) and "
                       "head_dim; a learned table of another size is posted as tensor, with resize");
    }
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
           "posted weight with its rows moved. Or a learned table, resized.",
    .get = "GET /v1/convert",
    .post = "POST /v1/convert",
    .request_size = sizeof(struct convert_request),
    .fields = fields,
    .n_fields = PE_COUNT(fields),
    .tensor = "tensor",
    .tensors = "permutation, permutation_k, tensor",
    .open = convert_open,
};
