/* SPDX-License-Identifier: MIT
 *
 * What all operations do alike: resolve the encoding, choose the element type, echo.
 */
#include "api/api.h"

#include "api/plans.h"
#include "config.h"
#include "tables.h"
#include "wire/picture.h"
#include "wire/text.h"

#include <stdio.h>
#include <string.h>

#define STREAM_FROM ((size_t)2 << 20) /* below, blocks cost more than a buffer */

const struct pe_choice api_roles[] = {
    {"query", API_ROLE_QUERY, "as queries turn"},
    {"key", API_ROLE_KEY, "as keys turn, which differs for xPos"},
    {0},
};

const struct pe_choice api_embedding_scales[] = {
    {"sqrt_d_model", PE_EMBEDDING_SCALE_SQRT_D_MODEL, "the square root of the width, as Vaswani et al. do"},
    {0},
};

enum pe_embedding_scale api_embedding_scale_mode(const struct pe_scale *scale, bool given) {
    if (!given) {
        return PE_EMBEDDING_SCALE_NONE;
    }
    return scale->choice ? (enum pe_embedding_scale)scale->choice : PE_EMBEDDING_SCALE_NUMBER;
}

const struct pe_field api_common_fields[] = {
    {PE_FIELD(api_common, dtype), .choices = pe_dtype_choices,
     .doc = "element type of the result; default: that of the posted tensor, else float32"},
    {PE_FIELD(api_common, format), .doc = "format of the reply: json, npy, raw, safetensors, csv, png; "
                                          "default: Accept, else the body's, else json"},
    {PE_FIELD(api_common, flat), .def = "false", .doc = "JSON: the numbers of a tensor in one flat list"},
    {.name = "return",
     .kind = PE_KIND_NAMES,
     .offset = offsetof(struct api_common, wanted),
     .doc = "names of the tensors to return"},
    {PE_FIELD(api_common, png), .fields = picture_fields, .n_fields = PICTURE_N_FIELDS,
     .object_size = sizeof(struct picture_look), .doc = "format png: how the picture looks"},
    {PE_FIELD(api_common, shape), .min = 0, .max = PE_POSITION_MAX, .doc = "raw body: its shape"},
    {PE_FIELD(api_common, body_dtype), .choices = pe_dtype_choices,
     .doc = "raw body: its element type [float32]"},
};
const size_t api_common_n_fields_raw = PE_COUNT(api_common_fields);
const size_t api_common_n_fields = PE_COUNT(api_common_fields) - 2; /* shape and body_dtype */

/* A name in `return` that the operation does not have. */
static int check_wanted(const struct task *task, struct pe_error *err) {
    const char *names = task->op->tensors;
    for (size_t i = 0; i < task->common.wanted.n; i++) {
        const char *name = task->common.wanted.v[i];
        const char *at = names && name[0] ? strstr(names, name) : NULL;
        size_t n = strlen(name);
        while (at && ((at > names && at[-1] != ' ') || (at[n] && at[n] != ','))) {
            at = strstr(at + 1, name);
        }
        if (!at) {
            return pe_fail(err, PE_ERR_CHOICE, "return", "%s can return %s, got \"%.60s\"", task->op->name,
                           names ? names : "no choice of tensors", name);
        }
    }
    return PE_OK;
}

/* Before it is told what is missing, one wants to know that it would not help. */
static int check_encoding(const struct task *task, struct pe_error *err) {
    const struct api_op *op = task->op;
    const struct pe_field *row = pe_field_find(op->fields, op->n_fields, "encoding");
    if (!op->admits || !pe_field_given(op->fields, row, task->request)) {
        return PE_OK;
    }
    const struct pe_spec *spec = (const void *)((const char *)task->request + row->offset);
    return op->admits(spec->encoding, err);
}

int task_open(struct task *task, struct pe_error *err) {
    if (check_wanted(task, err) || check_encoding(task, err) ||
        pe_fields_check(task->op->fields, task->op->n_fields, task->request, err)) {
        return err->code;
    }
    return task->op->open(task, err);
}

void task_close(struct task *task) {
    for (size_t i = 0; i < task->n_plans; i++) {
        pe_plan_close(task->plans[i]);
    }
    task->n_plans = 0;
}

/* As text numbers are up to five times as long; where little may be buffered, that still is streamed. */
bool task_is_large(const struct task *task, size_t bytes) {
    return bytes >= STREAM_FROM || bytes > (size_t)task->service->config->reply_bytes / 8;
}

enum pe_dtype task_dtype(const struct task *task) {
    if (task->common.dtype) {
        return (enum pe_dtype)task->common.dtype;
    }
    return task->posted ? task->posted : PE_DTYPE_F32;
}

bool task_wants(const struct task *task, const char *name, bool by_default) {
    if (!task->common.wanted.n) {
        return by_default;
    }
    for (size_t i = 0; i < task->common.wanted.n; i++) {
        if (strcmp(task->common.wanted.v[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* The table that a field names. Of several tensors in its file `tensor_name` says which; where the encoding
 * has no such parameter, as it may have several tables, it is the one that is named as the field. */
static const struct pe_tensor *named_table(const struct task *task, const char *field, const char *name,
                                           const char *const *tensor_name, struct pe_error *err) {
    const struct tables *tables = task->service->tables;
    const struct table *table = tables_table(tables, name, err);
    const char *own = table && table->n_tensors > 1 ? field : NULL;
    const struct pe_tensor *found =
        table ? tables_find(tables, name, tensor_name ? *tensor_name : own, err) : NULL;
    if (err->code && (!table || !tensor_name)) {
        snprintf(err->path, sizeof err->path, "%s", field);
    }
    return found;
}

/* Gives tables that are named their tensors. */
static int resolve_tables(struct task *task, struct pe_spec *spec, struct pe_error *err) {
    const struct pe_encoding_info *info = spec->encoding;
    const struct pe_field *part = pe_field_find(info->fields, info->n_fields, "tensor_name");
    for (size_t i = 0; i < info->n_fields; i++) {
        char *params = spec->params;
        if (info->fields[i].kind != PE_KIND_TABLE) {
            continue;
        }
        struct pe_table *table = (struct pe_table *)(void *)(params + info->fields[i].offset);
        const char *const *tensor_name = part ? (const char *const *)(void *)(params + part->offset) : NULL;
        if (table->name && !table->tensor) {
            table->tensor = named_table(task, info->fields[i].name, table->name, tensor_name, err);
        }
        if (err->code) {
            return err->code;
        }
    }
    return PE_OK;
}

/* Into the arena; NULL without memory. Frees the text. */
static const char *text_keep(struct task *task, struct text *text, struct pe_error *err) {
    const char *copy = NULL;
    if (text->failed) {
        pe_fail(err, PE_ERR_MEMORY, "", "no memory for the reply");
    } else {
        copy = pe_arena_text(task->arena, text->data ? text->data : "", text->n, err);
    }
    text_free(text);
    return copy;
}

int task_json(struct task *task, const char *name, struct text *text, struct pe_error *err) {
    const char *json = text_keep(task, text, err);
    if (json) {
        result_json(&task->result, name, json);
    }
    return err->code;
}

/* Which keys of a model's configuration were used: {"used":[...],"ignored":[...]}. */
static int echo_config(struct task *task, const char *name, const struct pe_config *config,
                       struct pe_error *err) {
    struct text text = {0};
    text_puts(&text, "{");
    for (int used = 1; used >= 0; used--) {
        text_key(&text, used ? "used" : "ignored");
        text_puts(&text, "[");
        for (size_t i = 0, n = 0; i < config->n; i++) {
            if (config->items[i].used == (used != 0)) {
                text_puts(&text, n++ ? "," : "");
                text_string(&text, config->items[i].key);
            }
        }
        text_puts(&text, "]");
    }
    text_puts(&text, "}");
    return task_json(task, name, &text, err);
}

static int echo_configs(struct task *task, const struct pe_spec *spec, struct pe_error *err) {
    for (size_t i = 0; i < spec->encoding->n_fields && !err->code; i++) {
        const struct pe_field *row = &spec->encoding->fields[i];
        const struct pe_config *config = (const void *)((const char *)spec->params + row->offset);
        if (row->kind == PE_KIND_CONFIG && config->n) {
            echo_config(task, row->name, config, err);
        }
    }
    return err->code;
}

int task_plan(struct task *task, struct pe_plan **plan, struct pe_spec *spec, size_t width, size_t length,
              struct pe_error *err) {
    if (resolve_tables(task, spec, err) || pe_spec_fit(spec, width, length, err)) {
        return pe_error_at(err, "encoding");
    }
    const struct planned *planned = plans_take(task->service, spec, task->arena, err);
    if (!planned) {
        return pe_error_at(err, "encoding");
    }
    *plan = task->plans[task->n_plans++] = pe_plan_share(planned->plan);
    task->encoding_json = pe_arena_text(task->arena, planned->json, planned->json_n, err);
    plans_give(planned);
    if (!task->encoding_json) {
        return err->code;
    }
    result_json(&task->result, "encoding", task->encoding_json);
    return echo_configs(task, spec, err);
}

int task_warn(struct task *task, const struct pe_plan *plan, const struct pe_positions *positions,
              struct pe_error *err) {
    struct text text = {0};
    char detail[200];
    double span;
    if (!pe_positions_crowd(plan, positions, &span, err)) {
        return err->code;
    }
    snprintf(detail, sizeof detail,
             "differ by %.6g at most, so that even the fastest sine hardly turns and the vectors are nearly "
             "equal: times within [0, 1] want position_scale=1000",
             span);
    text_puts(&text, "[{");
    text_key(&text, "field");
    text_string(&text, "positions");
    text_key(&text, "detail");
    text_string(&text, detail);
    text_puts(&text, "}]");
    return task_json(task, "warnings", &text, err);
}

int task_facts(struct task *task, const struct pe_plan *plan, struct pe_error *err) {
    struct pe_fact facts[PE_MAX_FACTS];
    size_t n = pe_plan_facts(plan, facts, PE_COUNT(facts));
    for (size_t i = 0; i < n; i++) {
        struct text text = {0};
        text_puts(&text, facts[i].n > 1 ? "[" : "");
        for (int k = 0; k < facts[i].n; k++) {
            text_puts(&text, k ? "," : "");
            text_real(&text, facts[i].value[k]);
        }
        text_puts(&text, facts[i].n > 1 ? "]" : "");
        if (task_json(task, facts[i].name, &text, err)) {
            return err->code;
        }
    }
    return PE_OK;
}

int task_plan_embeddings(struct task *task, struct pe_plan **plan, struct pe_spec *spec,
                         const struct pe_tensor *x, struct pe_error *err) {
    char shape[128];
    if (x->rank < 2 || x->dim[x->rank - 1] == 0) {
        return pe_fail(err, PE_ERR_SHAPE, "embeddings",
                       "has shape %s, allowed are [T, D] and [B, T, D] with D of 1 or more",
                       pe_tensor_shape_text(x, shape, sizeof shape));
    }
    return task_plan(task, plan, spec, x->dim[x->rank - 1], x->dim[x->rank - 2], err);
}

int task_positions_shape(const struct pe_positions *positions, size_t *dim) {
    int rank = 0;
    if (positions->batch) {
        dim[rank++] = positions->batch;
    }
    dim[rank++] = positions->length;
    if (positions->axes > 1) {
        dim[rank++] = (size_t)positions->axes;
    }
    return rank;
}

void task_echo_positions(struct task *task, const char *name, const struct pe_positions *positions) {
    struct pe_tensor numbers = {.data = (void *)(uintptr_t)positions->list, .dtype = PE_DTYPE_F64};
    numbers.rank = task_positions_shape(positions, numbers.dim);
    if (positions->by_rule) {
        result_numbers(&task->result, name, &numbers);
    }
}

int task_place(struct task *task, const struct pe_plan *plan, const char *name,
               struct pe_positions *positions, struct pe_error *err) {
    if (plan && pe_positions_lead(task->arena, plan, positions, err)) {
        return pe_error_at(err, name);
    }
    task_echo_positions(task, name, positions);
    return PE_OK;
}

int task_positions(struct task *task, const struct pe_plan *plan, struct pe_positions *positions,
                   struct pe_error *err) {
    pe_positions_suit(plan, positions);
    return task_place(task, plan, "positions", positions, err);
}

int task_number(struct task *task, const char *name, double value, struct pe_error *err) {
    struct text text = {0};
    text_real(&text, value);
    return task_json(task, name, &text, err);
}
