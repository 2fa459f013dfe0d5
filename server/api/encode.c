/* SPDX-License-Identifier: MIT
 *
 * encode: an encoding and positions -> `vectors` [T, D] or [B, T, D]. A large reply to a GET is computed
 * while it is sent, so its size is bounded by patience only.
 */
#include "api/api.h"

#include "config.h"

#include "posenc_admits.h"

#include <string.h>

struct encode_request {
    uint64_t given;
    struct pe_spec encoding;
    struct pe_positions positions;
    int trig_form;
    int role;
};

static const struct pe_choice forms[] = {
    {"half", PE_TRIG_HALF, "cos and sin [T, rotary_dim/2]"},
    {"full", PE_TRIG_FULL, "cos and sin [T, rotary_dim], each at both columns of its pair"},
    {"packed", PE_TRIG_PACKED, "packed [T, rotary_dim]: the cosines, then the sines"},
    {"complex", PE_TRIG_COMPLEX, "complex [T, rotary_dim/2, 2]: cos + i sin"},
    {0},
};
static const struct pe_field fields[] = {
    {PE_FIELD(encode_request, encoding), .flags = PE_FIELD_REQUIRED, .doc = "the encoding"},
    {PE_FIELD(encode_request, positions), .flags = PE_FIELD_REQUIRED, .doc = "the positions to encode"},
    {PE_FIELD(encode_request, trig_form), .choices = forms,
     .doc = "rotary: how cosines and sines are given [half]"},
    {PE_FIELD(encode_request, role), .choices = api_roles,
     .doc = "rotary: whether for queries or keys [query]"},
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
    *large = task_is_large(task, bytes);
    if (task->stream_ok && bytes > limit) {
        return pe_fail_limit(err, "positions", "stream_bytes", limit, bytes,
                             "%zu positions of width %zu are more than the %llu bytes that a stream may have",
                             n, width, (unsigned long long)limit);
    }
    return PE_OK;
}

/* ---- Rotary ---- */

struct rotary_rows {
    struct pe_rotary_rows rows;
    struct pe_positions positions;
};

static void first_rows(const void *state, size_t first, size_t n, void *out) {
    pe_rotary_fill(&((const struct rotary_rows *)state)->rows, first, n, out, NULL);
}

static void second_rows(const void *state, size_t first, size_t n, void *out) {
    pe_rotary_fill(&((const struct rotary_rows *)state)->rows, first, n, NULL, out);
}

/* An encoding that is added has vectors and nothing else. */
static int wanted_vectors(const struct task *task, const struct pe_plan *plan, struct pe_error *err) {
    for (size_t i = 0; i < task->common.wanted.n; i++) {
        if (strcmp(task->common.wanted.v[i], "vectors") != 0) {
            return pe_fail(err, PE_ERR_CHOICE, "return", "%s has vectors alone, %s is of rotary encodings",
                           pe_plan_encoding(plan)->type, task->common.wanted.v[i]);
        }
    }
    return PE_OK;
}

/* The tables asked for, by the form. */
static int wanted_tables(const struct task *task, enum pe_trig_form form, unsigned *wanted,
                         struct pe_error *err) {
    bool one = form == PE_TRIG_PACKED || form == PE_TRIG_COMPLEX;
    const char *name = form == PE_TRIG_PACKED ? "packed" : "complex";
    const struct {
        const char *name;
        bool there, by_default;
        unsigned bit;
    } all[] = {{"cos", !one, true, PE_ROTARY_COS},
               {"sin", !one, true, PE_ROTARY_SIN},
               {"packed", form == PE_TRIG_PACKED, true, PE_ROTARY_TABLE},
               {"complex", form == PE_TRIG_COMPLEX, true, PE_ROTARY_TABLE},
               {"inv_freq", true, true, PE_ROTARY_INV_FREQ},
               {"vectors", false, false, 0}};
    *wanted = 0;
    for (size_t i = 0; i < PE_COUNT(all); i++) {
        bool asked = task_wants(task, all[i].name, false);
        if (asked && !all[i].there) {
            return pe_fail(err, PE_ERR_CHOICE, "return",
                           "a rotary encoding has no %s in this form, it has %s and inv_freq", all[i].name,
                           one ? name : "cos, sin");
        }
        *wanted |= all[i].there && task_wants(task, all[i].name, all[i].by_default) ? all[i].bit : 0;
    }
    return PE_OK;
}

/* One table without memory for it. */
static int rotary_stream(struct task *task, const struct pe_rotary_args *args, bool second,
                         struct pe_error *err) {
    struct rotary_rows *state = pe_arena_array(task->arena, 1, sizeof *state, err);
    if (!state || pe_rotary_check(args->plan, args->positions, args->dtype, err)) {
        return err->code;
    }
    state->positions = *args->positions;
    state->rows = (struct pe_rotary_rows){.plan = args->plan,
                                          .positions = &state->positions,
                                          .dtype = args->dtype,
                                          .form = args->form,
                                          .keys = args->keys};
    size_t items = pe_rotary_row_items(&state->rows), n = 0;
    struct pe_tensor shape = {.dtype = args->dtype};
    if (args->positions->batch) {
        shape.dim[n++] = args->positions->batch;
    }
    shape.dim[n++] = args->positions->length;
    shape.dim[n++] = items;
    shape.rank = (int)n;
    result_tensor(&task->result, second ? "sin" : args->form == PE_TRIG_PACKED ? "packed" : "cos", &shape);
    struct result_item *item = &task->result.items[task->result.n - 1];
    item->rows = second ? second_rows : first_rows;
    item->state = state;
    return PE_OK;
}

static void rotary_results(struct task *task, const struct pe_rotary_result *tables, bool alone) {
    const struct {
        const char *name;
        const struct pe_tensor *tensor;
    } all[] = {{"cos", &tables->cos},
               {"sin", &tables->sin},
               {"packed", &tables->packed},
               {"complex", &tables->as_complex}};
    for (size_t i = 0; i < PE_COUNT(all); i++) {
        if (all[i].tensor->rank) {
            result_tensor(&task->result, all[i].name, all[i].tensor);
        }
    }
    if (tables->inv_freq.rank && alone) { /* so that formats of one tensor can hold the table */
        result_numbers(&task->result, "inv_freq", &tables->inv_freq);
    } else if (tables->inv_freq.rank) {
        result_tensor(&task->result, "inv_freq", &tables->inv_freq);
    }
}

static int rotary_open(struct task *task, const struct pe_plan *plan, struct pe_error *err) {
    const struct encode_request *request = task->request;
    enum pe_trig_form form = request->trig_form ? (enum pe_trig_form)request->trig_form : PE_TRIG_HALF;
    struct pe_rotary_args args = {.size = sizeof args,
                                  .plan = plan,
                                  .positions = &request->positions,
                                  .form = form,
                                  .keys = request->role == API_ROLE_KEY,
                                  .dtype = task_dtype(task)};
    bool large, one = form == PE_TRIG_PACKED || form == PE_TRIG_COMPLEX;
    size_t items = pe_rotary_row_items(&(struct pe_rotary_rows){.plan = plan, .form = form});
    if (wanted_tables(task, form, &args.outputs, err) ||
        check_size(task, pe_positions_count(args.positions), items, &large, err) ||
        task_facts(task, plan, err)) {
        return err->code;
    }
    unsigned tables = args.outputs & (PE_ROTARY_COS | PE_ROTARY_SIN | PE_ROTARY_TABLE);
    bool explicit_one = tables == args.outputs && (tables & (tables - 1)) == 0 && form != PE_TRIG_COMPLEX;
    if (task->stream_ok && large && tables && explicit_one) {
        return rotary_stream(task, &args, tables == PE_ROTARY_SIN, err);
    }
    struct pe_rotary_result result;
    if (pe_rotary_open(task->arena, &task->work, &result, &args, err)) {
        return err->code;
    }
    rotary_results(task, &result, one && !task_wants(task, "inv_freq", false));
    return PE_OK;
}

static int encode_open(struct task *task, struct pe_error *err) {
    struct encode_request *request = task->request;
    struct pe_positions *positions = &request->positions;
    struct pe_plan *plan;
    bool large;
    if (task_plan(task, &plan, &request->encoding, 0, positions->length, err)) {
        return err->code;
    }
    if (task_positions(task, plan, positions, err)) {
        return err->code;
    }
    if (pe_plan_encoding(plan)->family == PE_FAMILY_ROTARY) {
        return rotary_open(task, plan, err);
    }
    if (request->trig_form || request->role) {
        return pe_fail(err, PE_ERR_CONFLICT, request->trig_form ? "trig_form" : "role",
                       "is for rotary encodings, got %s", pe_plan_encoding(plan)->type);
    }
    if (wanted_vectors(task, plan, err) ||
        check_size(task, pe_positions_count(positions), pe_plan_width(plan), &large, err) ||
        task_warn(task, plan, positions, err)) {
        return err->code;
    }
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
    .tensors = "vectors, cos, sin, packed, complex, inv_freq",
    .admits = pe_encode_admits,
    .open = encode_open,
};
