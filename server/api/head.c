/* SPDX-License-Identifier: MIT
 *
 * head: an attention head that looks where it is told, in closed form -> `w_q`, `w_k`, the `weights` that
 * they give, and how much of them lies on the wanted token.
 */
#include "api/api.h"

#include "wire/text.h"

#include "posenc_admits.h"

enum { ATTEND_FIRST = 1 };

struct goal {
    uint64_t given;
    struct pe_scale attend;
    bool first;
};

struct head_request {
    uint64_t given;
    struct pe_spec encoding;
    const void *goal; /* struct goal */
    int64_t width;
    struct pe_positions positions;
    bool causal;
};

static const struct pe_choice places[] = {
    {"first", ATTEND_FIRST, "the first token"},
    {0},
};

static const struct pe_field goal_fields[] = {
    {PE_FIELD(goal, attend), .min = -PE_HEAD_TOKENS_MAX, .max = PE_HEAD_TOKENS_MAX, .choices = places,
     .doc = "-1 for the token before, 0 for itself, and so on; or first"},
    {PE_FIELD(goal, first), .def = "false", .doc = "the first token"},
};

static const struct pe_field fields[] = {
    {PE_FIELD(head_request, encoding), .flags = PE_FIELD_REQUIRED,
     .doc = "one with an exact shift map, or none"},
    {PE_FIELD(head_request, goal), .flags = PE_FIELD_REQUIRED, .fields = goal_fields,
     .n_fields = PE_COUNT(goal_fields), .object_size = sizeof(struct goal),
     .doc = "where the head looks: {\"attend\":-1}, or \"first\""},
    {PE_FIELD(head_request, width), .min = 2, .max = 65536,
     .doc = "of the head: so many columns, of the fastest pairs; default all"},
    {PE_FIELD(head_request, positions), .doc = "of the sequence it is tried on [0:12]"},
    {PE_FIELD(head_request, causal), .def = "true", .doc = "a token sees itself and those before it"},
};
enum { FIELD_POSITIONS = 3 };

#define TOKENS 12
#define ROOM   400

struct head_task {
    struct api_end end;
    const struct pe_head *head;
    bool none;
    struct result_late *late;
};

static const char *verdict(const struct head_task *op) {
    if (op->none) {
        return "without an encoding equal tokens get equal weights, whatever the head";
    }
    return op->head->possible ? "the head looks where it is told"
                              : "no other token is far enough behind the wanted one";
}

static void write_mass(const struct head_task *op, struct text *text) {
    const struct pe_head *head = op->head;
    text_puts(text, "{");
    text_key(text, "possible");
    text_bool(text, head->possible);
    text_key(text, "min");
    text_real(text, head->mass_least);
    text_key(text, "mean");
    text_real(text, head->mass_mean);
    text_key(text, "queries");
    text_int(text, (int64_t)head->rows);
    text_key(text, "gain");
    text_real(text, head->gain);
    if (head->tries) {
        text_key(text, "tries");
        text_int(text, (int64_t)head->tries);
    }
    text_key(text, "detail");
    text_string(text, verdict(op));
    text_puts(text, "}");
}

static void head_run(const void *state, size_t part) {
    const struct head_task *op = state;
    if (!api_end_reached(&op->end, part)) {
        return;
    }
    struct text text = {.data = op->late->text, .room = op->late->room}; /* enough, so it never grows */
    write_mass(op, &text);
    op->late->n = text.n;
}

/* Which token: exactly one of the ways to say it. */
static int goal_read(const struct goal *goal, struct pe_head_args *args, struct pe_error *err) {
    bool attend = pe_field_given(goal_fields, &goal_fields[0], goal);
    if (attend == goal->first) {
        return pe_fail(err, attend ? PE_ERR_CONFLICT : PE_ERR_MISSING, "goal.attend",
                       attend ? "is given, and so is first" : "is missing: a number of tokens, or first");
    }
    args->first = goal->first || goal->attend.choice == ATTEND_FIRST;
    if (args->first) {
        return PE_OK;
    }
    args->offset = (int64_t)goal->attend.number;
    if ((double)args->offset != goal->attend.number) {
        return pe_fail(err, PE_ERR_RANGE, "goal.attend",
                       "got %.17g, allowed are whole numbers of tokens, or first", goal->attend.number);
    }
    return PE_OK;
}

static int declare(struct task *task, struct head_task *op, const struct pe_head_result *made,
                   struct pe_error *err) {
    const struct {
        const char *name;
        const struct pe_tensor *tensor;
    } tensors[] = {{"w_q", &made->w_q}, {"w_k", &made->w_k}, {"weights", &made->weights}};
    op->late = pe_arena_array(task->arena, 1, sizeof *op->late, err);
    if (!op->late || task_end_open(task, &op->end, err)) {
        return err->code;
    }
    op->late->room = ROOM;
    op->late->text = pe_arena_alloc(task->arena, ROOM, err);
    op->head = made->head;
    task->work.state = op;
    task->work.run = head_run;
    for (size_t i = 0; i < PE_COUNT(tensors); i++) {
        bool by_default = !op->none || i == 2;
        if (task_wants(task, tensors[i].name, by_default) &&
            task_narrow(task, tensors[i].name, tensors[i].tensor, task_dtype(task), err)) {
            return err->code;
        }
    }
    result_json_late(&task->result, "mass", op->late);
    return err->code;
}

static int head_open(struct task *task, struct pe_error *err) {
    struct head_request *request = task->request;
    struct pe_plan *plan;
    if (!pe_field_given(fields, &fields[FIELD_POSITIONS], request)) {
        request->positions = (struct pe_positions){.length = TOKENS, .axes = 1, .step = 1};
    }
    if (task_plan(task, &plan, &request->encoding, 0, request->positions.length, err)) {
        return err->code;
    }
    task_echo_positions(task, "positions", &request->positions);
    struct pe_head_args args = {
        .size = sizeof args,
        .plan = plan,
        .positions = &request->positions,
        .causal = request->causal,
        .width = (size_t)request->width,
    };
    struct pe_head_result made;
    struct head_task *op = pe_arena_array(task->arena, 1, sizeof *op, err);
    if (!op || goal_read(request->goal, &args, err) ||
        pe_head_open(task->arena, &task->work, &made, &args, err)) {
        return err->code;
    }
    op->none = pe_plan_encoding(plan)->family == PE_FAMILY_NONE;
    return declare(task, op, &made, err);
}

const struct api_op api_head = {
    .name = "head",
    .doc = "An attention head that looks some tokens back, or at the first, in closed form.",
    .get = "GET /v1/head",
    .post = "POST /v1/head",
    .request_size = sizeof(struct head_request),
    .fields = fields,
    .n_fields = PE_COUNT(fields),
    .tensors = "w_q, w_k, weights",
    .admits = pe_head_admits,
    .open = head_open,
};
