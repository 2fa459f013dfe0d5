/* SPDX-License-Identifier: MIT
 *
 * properties: the criteria of a good encoding as a scorecard, and what it costs. There are no tensors: the
 * reply is one object, whose parts are written when the work is done.
 */
#include "api/api.h"

#include "wire/text.h"

#include "posenc_admits.h"

#include <string.h>

struct properties_request {
    uint64_t given;
    struct pe_spec encoding;
    struct pe_positions positions;
};

static const struct pe_field fields[] = {
    {PE_FIELD(properties_request, encoding), .flags = PE_FIELD_REQUIRED, .doc = "the encoding"},
    {PE_FIELD(properties_request, positions), .flags = PE_FIELD_REQUIRED,
     .doc = "[T], where it is measured; ten times as far for bounded and beyond"},
};

/* ---- Writing ------------------------------------------------------------------------------------------- */

static void key_bool(struct text *text, const char *name, bool value) {
    text_key(text, name);
    text_bool(text, value);
}

static void key_int(struct text *text, const char *name, size_t value) {
    text_key(text, name);
    text_int(text, (int64_t)value);
}

static void write_unique(struct text *text, const struct pe_properties *p) {
    key_bool(text, "holds", p->unique);
    text_key_real(text, "closest", p->closest);
    text_key(text, "indices");
    text_puts(text, "[");
    text_int(text, (int64_t)p->closest_pair[0]);
    text_puts(text, ",");
    text_int(text, (int64_t)p->closest_pair[1]);
    text_puts(text, "]");
}

static void write_bounded(struct text *text, const struct pe_properties *p) {
    key_bool(text, "holds", p->bounded);
    text_key_real(text, "largest", p->largest);
    text_key_real(text, "largest_far", p->largest_far);
}

static void write_same_lengths(struct text *text, const struct pe_properties *p) {
    key_bool(text, "holds", p->same_lengths);
    text_key_real(text, "change", p->length_change);
}

static void write_beyond(struct text *text, const struct pe_properties *p) {
    key_bool(text, "holds", p->beyond);
    if (p->beyond_text) {
        text_key(text, "detail");
        text_string(text, p->beyond_text);
    }
}

static void write_norm(struct text *text, const struct pe_properties *p) {
    text_key_real(text, "min", p->norm[0]);
    text_key_real(text, "max", p->norm[1]);
}

static void write_step(struct text *text, const struct pe_properties *p) {
    text_key_real(text, "min", p->step[0]);
    text_key_real(text, "max", p->step[1]);
}

static void write_costs(struct text *text, const struct pe_properties *p) {
    key_int(text, "parameters", p->parameters);
    key_int(text, "bytes", p->bytes);
    key_int(text, "flops_per_token", p->flops);
}

/* Members of the reply: `room` is enough for the numbers, and for a sentence of an error. */
static const struct {
    const char *name;
    size_t room;
    void (*write)(struct text *text, const struct pe_properties *p);
} members[] = {
    {"unique", 200, write_unique},
    {"bounded", 200, write_bounded},
    {"same_lengths", 100, write_same_lengths},
    {"beyond", 4000, write_beyond},
    {"norm", 100, write_norm},
    {"step", 100, write_step},
    {"costs", 200, write_costs},
};

struct properties_task {
    struct api_end end;
    const struct pe_properties *properties;
    struct result_late *late; /* [members] */
};

static void properties_run(const void *state, size_t part) {
    const struct properties_task *op = state;
    bool done = api_end_reached(&op->end, part);
    for (size_t i = 0; done && i < PE_COUNT(members); i++) {
        struct result_late *late = &op->late[i];
        struct text text = {.data = late->text, .room = late->room}; /* enough, so it never grows */
        text_puts(&text, "{");
        members[i].write(&text, op->properties);
        text_puts(&text, "}");
        late->n = text.n;
    }
}

/* ---- Opening ------------------------------------------------------------------------------------------- */

/* The row of a length that the vectors depend on; NULL where there is none. */
static const struct pe_field *length_row(const struct pe_encoding_info *info) {
    return pe_field_find(info->fields, info->n_fields, "seq_len");
}

/* The same encoding for twice the length, as it was resolved; for half of it where twice is not allowed. */
static int plan_longer(struct task *task, struct pe_plan **longer, const struct pe_plan *plan,
                       struct pe_error *err) {
    const struct pe_encoding_info *info = pe_plan_encoding(plan);
    const struct pe_field *row = length_row(info);
    const char *params = pe_plan_params(plan);
    const int64_t length = row ? *(const int64_t *)(const void *)(params + row->offset) : 0;
    if (length == 0) {
        return PE_OK;
    }
    char *copy = pe_arena_array(task->arena, 1, info->params_size, err);
    if (!copy) {
        return err->code;
    }
    memcpy(copy, params, info->params_size);
    *(int64_t *)(void *)(copy + row->offset) = 2 * (double)length <= row->max ? 2 * length : length / 2;
    const struct pe_spec spec = {.encoding = info, .params = copy};
    if (pe_plan_open_within(longer, &spec, task->arena, &task->service->allocator, err)) {
        return pe_error_at(err, "encoding");
    }
    task->plans[task->n_plans++] = *longer;
    return PE_OK;
}

static int declare(struct task *task, struct properties_task *op, struct pe_error *err) {
    op->late = pe_arena_array(task->arena, PE_COUNT(members), sizeof *op->late, err);
    for (size_t i = 0; op->late && i < PE_COUNT(members); i++) {
        op->late[i].room = members[i].room;
        op->late[i].text = pe_arena_alloc(task->arena, members[i].room, err);
        result_json_late(&task->result, members[i].name, &op->late[i]);
    }
    if (task_end_open(task, &op->end, err)) {
        return err->code;
    }
    task->work.state = op;
    task->work.run = properties_run;
    return PE_OK;
}

static int properties_open(struct task *task, struct pe_error *err) {
    struct properties_request *request = task->request;
    struct pe_plan *plan, *longer = NULL;
    if (task_plan(task, &plan, &request->encoding, 0, request->positions.length, err) ||
        plan_longer(task, &longer, plan, err)) {
        return err->code;
    }
    pe_positions_suit(plan, &request->positions);
    task_echo_positions(task, "positions", &request->positions);
    struct pe_properties_args args = {
        .size = sizeof args, .plan = plan, .longer = longer, .positions = &request->positions};
    struct properties_task *op = pe_arena_array(task->arena, 1, sizeof *op, err);
    struct pe_properties_result made;
    if (!op || pe_properties_open(task->arena, &task->work, &made, &args, err)) {
        return err->code;
    }
    op->properties = made.properties;
    if (made.wavelengths.data) {
        result_numbers(&task->result, "wavelengths", &made.wavelengths);
    }
    return declare(task, op, err);
}

const struct api_op api_properties = {
    .name = "properties",
    .doc = "What a good encoding has, measured: unique, bounded, alike in all lengths, there beyond them.",
    .get = "GET /v1/properties",
    .post = "POST /v1/properties",
    .request_size = sizeof(struct properties_request),
    .fields = fields,
    .n_fields = PE_COUNT(fields),
    .admits = pe_properties_admits,
    .open = properties_open,
};
