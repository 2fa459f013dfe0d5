/* SPDX-License-Identifier: MIT
 *
 * check: a table that other code made against the exact one. The reply has no tensor, only what was found, so
 * it is JSON whatever was posted; it is written when the work is done, into places that were reserved before.
 */
#include "api/api.h"

#include "wire/text.h"

#include "posenc_admits.h"

struct check_request {
    uint64_t given;
    struct pe_spec encoding;
    const struct pe_tensor *tensor, *cos, *sin, *packed, *complex;
    struct pe_positions positions;
    int role;
    double rtol, atol;
};

static const struct pe_field fields[] = {
    {PE_FIELD(check_request, encoding), .flags = PE_FIELD_REQUIRED, .doc = "what the table should be"},
    {PE_FIELD(check_request, tensor), .shape = "[T, D] or [B, T, D]",
     .doc = "the table: vectors; rotary: as packed or complex, by its shape"},
    {PE_FIELD(check_request, cos), .shape = "[T, rotary_dim/2] or [T, rotary_dim]",
     .doc = "rotary: cosines, in the form half or full"},
    {PE_FIELD(check_request, sin), .shape = "[T, rotary_dim/2] or [T, rotary_dim]", .doc = "rotary: sines"},
    {PE_FIELD(check_request, packed), .shape = "[T, rotary_dim]",
     .doc = "rotary: the cosines, then the sines"},
    {PE_FIELD(check_request, complex), .shape = "[T, rotary_dim/2, 2]", .doc = "rotary: cos + i sin"},
    {PE_FIELD(check_request, positions), .doc = "one per row, shared by the batch or [B, T]; default 0..T-1"},
    {PE_FIELD(check_request, role), .choices = api_roles,
     .doc = "rotary: whether for queries or keys [query]"},
    {PE_FIELD(check_request, rtol), .min = 0, .max = 1e300,
     .doc =
         "allowed is atol + rtol*|exact| [by the table's type: float64 1e-7, float32 1.3e-6, float16 1e-3, "
         "bfloat16 1.6e-2]"},
    {PE_FIELD(check_request, atol), .min = 0, .max = 1e300, .doc = "see rtol [float64 1e-7, others 1e-5]"},
};
enum { FIELD_POSITIONS = 6, FIELD_ROLE, FIELD_RTOL, FIELD_ATOL };

/* ---- The report as JSON -------------------------------------------------------------------------------- */

enum { PASS, MAX_ABS, MAX_ULP, FIRST_BAD_ROW, WORST_COLUMNS, OCTAVES, N_LATE };
#define NUMBER_ROOM 40 /* with its key */
static const struct {
    const char *name;
    size_t room;
} places[N_LATE] = {
    [PASS] = {"pass", 8},
    [MAX_ABS] = {"max_abs", NUMBER_ROOM},
    [MAX_ULP] = {"max_ulp", NUMBER_ROOM},
    [FIRST_BAD_ROW] = {"first_bad_row", (8 + PE_MAX_AXES) * NUMBER_ROOM},
    [WORST_COLUMNS] = {"worst_columns", 8 + PE_CHECK_COLUMNS * 3 * NUMBER_ROOM},
    [OCTAVES] = {"octaves", 8 + PE_CHECK_OCTAVES * 3 * NUMBER_ROOM},
};

struct check_task {
    struct pe_work work;
    struct pe_check_result result;
    bool rotary, batch;
    int axes;
    struct result_late *late; /* [N_LATE] */
};

/* Which of the tensors, where there may be several. */
static void key_tensor(const struct check_task *check, struct text *text, const char *name) {
    if (check->rotary) {
        text_key(text, "tensor");
        text_string(text, name);
    }
}

static void write_position(const struct check_task *check, struct text *text, const double *position) {
    text_key(text, "position");
    text_puts(text, check->axes > 1 ? "[" : "");
    for (int i = 0; i < check->axes; i++) {
        text_puts(text, i ? "," : "");
        text_real(text, position[i]);
    }
    text_puts(text, check->axes > 1 ? "]" : "");
}

static void write_first_bad(const struct check_task *check, struct text *text) {
    const struct pe_check_bad *bad = &check->result.report->first_bad;
    if (check->result.report->pass) {
        text_puts(text, "null");
        return;
    }
    text_puts(text, "{");
    text_key(text, "index");
    text_puts(text, check->batch ? "[" : "");
    if (check->batch) {
        text_int(text, (int64_t)(bad->row / check->result.length));
        text_puts(text, ",");
    }
    text_int(text, (int64_t)(bad->row % check->result.length));
    text_puts(text, check->batch ? "]" : "");
    write_position(check, text, bad->position);
    key_tensor(check, text, bad->tensor);
    text_key(text, "column");
    text_int(text, (int64_t)bad->column);
    text_key_real(text, "got", bad->got);
    text_key_real(text, "exact", bad->exact);
    text_puts(text, "}");
}

static void write_columns(const struct check_task *check, struct text *text) {
    const struct pe_check_report *report = check->result.report;
    text_puts(text, "[");
    for (size_t i = 0; i < report->n_columns; i++) {
        text_puts(text, i ? ",{" : "{");
        key_tensor(check, text, report->columns[i].tensor);
        text_key(text, "column");
        text_int(text, (int64_t)report->columns[i].column);
        text_key_real(text, "max_abs", report->columns[i].max_abs);
        text_puts(text, "}");
    }
    text_puts(text, "]");
}

/* Those that have positions. */
static void write_octaves(const struct check_task *check, struct text *text) {
    const struct pe_check_octave *octaves = check->result.report->octaves;
    text_puts(text, "[");
    for (size_t i = 0, n = 0; i < PE_CHECK_OCTAVES; i++) {
        if (octaves[i].n) {
            text_puts(text, n++ ? ",{" : "{");
            text_key_real(text, "from", octaves[i].from);
            text_key_real(text, "to", octaves[i].to);
            text_key_real(text, "max_abs", octaves[i].max_abs);
            text_puts(text, "}");
        }
    }
    text_puts(text, "]");
}

static void write_pass(const struct check_task *check, struct text *text) {
    text_bool(text, check->result.report->pass);
}

static void write_max_abs(const struct check_task *check, struct text *text) {
    text_real(text, check->result.report->max_abs);
}

static void write_max_ulp(const struct check_task *check, struct text *text) {
    text_real(text, check->result.report->max_ulp);
}

static void check_run(const void *state, size_t part) {
    static void (*const writers[N_LATE])(const struct check_task *, struct text *) = {
        [PASS] = write_pass,
        [MAX_ABS] = write_max_abs,
        [MAX_ULP] = write_max_ulp,
        [FIRST_BAD_ROW] = write_first_bad,
        [WORST_COLUMNS] = write_columns,
        [OCTAVES] = write_octaves,
    };
    const struct check_task *check = state;
    (void)part;
    if (!pe_work_run(&check->work)) {
        return;
    }
    for (size_t i = 0; i < N_LATE; i++) {
        struct result_late *late = &check->late[i];
        struct text text = {.data = late->text, .room = late->room}; /* enough, so it never grows */
        writers[i](check, &text);
        late->n = text.n;
    }
}

/* ---- Opening ------------------------------------------------------------------------------------------- */

static int declare(struct task *task, struct check_task *check, struct pe_error *err) {
    check->late = pe_arena_array(task->arena, N_LATE, sizeof *check->late, err);
    if (!check->late || task_number(task, "rtol", check->result.rtol, err) ||
        task_number(task, "atol", check->result.atol, err)) {
        return err->code;
    }
    for (size_t i = 0; i < N_LATE; i++) {
        struct result_late *late = &check->late[i];
        late->room = places[i].room;
        late->text = pe_arena_alloc(task->arena, late->room, err);
        if (!late->text) {
            return err->code;
        }
        result_json_late(&task->result, places[i].name, late);
    }
    check->work = task->work;
    task->work.state = check;
    task->work.run = check_run;
    return PE_OK;
}

/* A width that was given is not taken from the table: then it is the table's shape that is wrong. */
static bool width_given(const struct pe_spec *spec) {
    const struct pe_encoding_info *info = spec->encoding;
    for (size_t i = 0; i < info->n_fields; i++) {
        if ((info->fields[i].flags & PE_FIELD_WIDTH) &&
            pe_field_given(info->fields, &info->fields[i], spec->params)) {
            return true;
        }
    }
    return false;
}

/* Vectors tell the width and length that an encoding may follow. */
static int plan_open(struct task *task, struct pe_plan **plan, struct check_request *request,
                     struct pe_error *err) {
    const struct pe_tensor *table = request->tensor;
    bool shaped = table && table->rank >= 2;
    bool rotary = request->encoding.encoding->family == PE_FAMILY_ROTARY;
    size_t width = shaped && !rotary && !width_given(&request->encoding) ? table->dim[table->rank - 1] : 0;
    size_t length = shaped && !rotary ? table->dim[table->rank - 2] : 0;
    if (task_plan(task, plan, &request->encoding, width, length, err)) {
        return err->code;
    }
    if (!rotary && request->role) {
        return pe_fail(err, PE_ERR_CONFLICT, "role", "is for rotary encodings, got %s",
                       pe_plan_encoding(*plan)->type);
    }
    pe_positions_suit(*plan, &request->positions);
    if (pe_positions_lead(task->arena, *plan, &request->positions, err)) {
        return pe_error_at(err, "positions");
    }
    return rotary ? task_facts(task, *plan, err) : PE_OK;
}

static int check_open(struct task *task, struct pe_error *err) {
    struct check_request *request = task->request;
    bool placed = pe_field_given(fields, &fields[FIELD_POSITIONS], request);
    struct check_task *check = pe_arena_array(task->arena, 1, sizeof *check, err);
    struct pe_plan *plan;
    if (!check || plan_open(task, &plan, request, err)) {
        return err->code;
    }
    if (placed) {
        task_echo_positions(task, "positions", &request->positions);
    }
    struct pe_check_args args = {
        .size = sizeof args,
        .plan = plan,
        .positions = placed ? &request->positions : NULL,
        .tensor = request->tensor,
        .cos = request->cos,
        .sin = request->sin,
        .packed = request->packed,
        .as_complex = request->complex,
        .keys = request->role == API_ROLE_KEY,
        .rtol = pe_field_given(fields, &fields[FIELD_RTOL], request) ? &request->rtol : NULL,
        .atol = pe_field_given(fields, &fields[FIELD_ATOL], request) ? &request->atol : NULL,
    };
    if (pe_check_open(task->arena, &task->work, &check->result, &args, err)) {
        return err->code;
    }
    check->rotary = pe_plan_encoding(plan)->family == PE_FAMILY_ROTARY;
    check->batch = check->result.batched;
    check->axes = placed ? request->positions.axes : 1;
    return declare(task, check, err);
}

const struct api_op api_check = {
    .name = "check",
    .doc = "A table that other code made against the exact one: how far it is off, where first, in which "
           "columns and at which positions.",
    .post = "POST /v1/check",
    .request_size = sizeof(struct check_request),
    .fields = fields,
    .n_fields = PE_COUNT(fields),
    .tensor = "tensor",
    .admits = pe_check_admits,
    .open = check_open,
};
