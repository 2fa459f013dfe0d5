/* SPDX-License-Identifier: MIT
 *
 * identify: a table that somebody's code produced -> the encodings that it may be, the best first, each as it
 * would be posted. The reply has no tensors. All is found while the task opens, as plans are made on the way.
 */
#include "api/api.h"

#include "wire/echo.h"
#include "wire/text.h"

#include "posenc_identify.h"

#include <string.h>

struct hints {
    uint64_t given;
    const char *type;
    double base;
    int layout;
};

struct identify_request {
    uint64_t given;
    const struct pe_tensor *tensor, *cos, *sin, *before, *after;
    struct pe_positions positions;
    const void *hints; /* struct hints */
};

static const struct pe_choice layouts[] = {
    {"halves", PE_ROTARY_HALVES, "the second of a pair half the width behind the first"},
    {"interleaved", PE_ROTARY_INTERLEAVED, "pairs of neighbouring columns"},
    {0},
};

static const struct pe_field hint_fields[] = {
    {PE_FIELD(hints, type), .doc = "the type, as sinusoidal, naive or rope, where it is known"},
    {PE_FIELD(hints, base), .min = 1, .max = 1e300, .doc = "a base that is tried beside the usual ones"},
    {PE_FIELD(hints, layout), .choices = layouts, .doc = "only this layout"},
};

static const struct pe_field fields[] = {
    {PE_FIELD(identify_request, tensor), .shape = "[T, D]",
     .doc = "a table of vectors; [T, 1, D] and [1, T, D] are the same"},
    {PE_FIELD(identify_request, cos), .shape = "[T, n]",
     .doc = "a rotary table: cosines, one column for each pair or two"},
    {PE_FIELD(identify_request, sin), .shape = "[T, n]", .doc = "a rotary table: sines"},
    {PE_FIELD(identify_request, before), .shape = "[T, d], [T, H, d] or [H, T, d]",
     .doc = "queries or keys before they turned; axes of 1 may be on one side alone"},
    {PE_FIELD(identify_request, after), .shape = "[T, d], [T, H, d] or [H, T, d]",
     .doc = "the same after they turned"},
    {PE_FIELD(identify_request, positions),
     .doc = "[T], as the code got them; of an image [T, 2], all cells of a grid; default 0..T-1"},
    {PE_FIELD(identify_request, hints), .fields = hint_fields, .n_fields = PE_COUNT(hint_fields),
     .object_size = sizeof(struct hints), .doc = "what is known about the table already"},
};
enum { FIELD_POSITIONS = 5 };

static void key_string(struct text *text, const char *name, const char *value) {
    text_key(text, name);
    if (value) {
        text_string(text, value);
    } else {
        text_puts(text, "null");
    }
}

/* The encoding as a plan resolves it. One such plan, and one more, were open while it was found, and charged. */
static int write_encoding(const struct pe_spec *spec, struct text *text, struct pe_error *err) {
    struct pe_plan *plan = NULL;
    if (pe_plan_open(&plan, spec, err)) {
        return pe_error_at(err, "encoding");
    }
    const struct pe_spec resolved = {spec->encoding, (void *)(uintptr_t)pe_plan_params(plan)};
    text_key(text, "encoding");
    echo_encoding(text, &resolved);
    pe_plan_close(plan);
    return PE_OK;
}

static int write_candidate(const struct pe_identify_candidate *candidate, struct text *text,
                           struct pe_error *err) {
    text_puts(text, "{");
    if (write_encoding(&candidate->encoding, text, err)) {
        return err->code;
    }
    key_string(text, "name", candidate->name);
    key_string(text, "mistake", candidate->mistake);
    text_key_real(text, "factor", candidate->factor);
    text_key_real(text, "shift", candidate->shift);
    if (candidate->keys) { /* without it operations take the side of queries */
        key_string(text, "role", "key");
    }
    text_key(text, "residual");
    text_puts(text, "{");
    text_key_real(text, "max", candidate->max_abs);
    text_key_real(text, "rms", candidate->rms);
    text_puts(text, "}");
    text_key(text, "parts");
    if (candidate->parts) {
        text_puts(text, "{");
        text_key(text, "index");
        text_int(text, (int64_t)candidate->part_index);
        text_key_real(text, "position", candidate->part_position);
        text_puts(text, "}");
    } else {
        text_puts(text, "null");
    }
    text_puts(text, "}");
    return PE_OK;
}

static int candidates_write(struct task *task, const struct pe_identify_result *found, struct pe_error *err) {
    struct text text = {0};
    text_puts(&text, "[");
    for (size_t i = 0; i < found->n; i++) {
        text_puts(&text, i ? "," : "");
        if (write_candidate(&found->candidates[i], &text, err)) {
            text_free(&text);
            return err->code;
        }
    }
    text_puts(&text, "]");
    return task_json(task, "candidates", &text, err);
}

static int identify_open(struct task *task, struct pe_error *err) {
    struct identify_request *request = task->request;
    const struct hints *hints = request->hints;
    bool placed = pe_field_given(fields, &fields[FIELD_POSITIONS], request);
    struct pe_identify_result found;
    struct text text = {0};
    struct pe_identify_args args = {
        .size = sizeof args,
        .tensor = request->tensor,
        .cos = request->cos,
        .sin = request->sin,
        .before = request->before,
        .after = request->after,
        .positions = placed ? &request->positions : NULL,
        .type = hints ? hints->type : NULL,
        .base = hints ? hints->base : 0,
        .layout = hints && hints->layout ? pe_choice_name(layouts, hints->layout) : NULL,
    };
    if (placed) {
        task_echo_positions(task, "positions", &request->positions);
    }
    if (pe_identify_open(task->arena, &found, &args, err) || candidates_write(task, &found, err)) {
        return err->code;
    }
    if (found.axes) {
        result_json(&task->result, "axes", strcmp(found.axes, "htd") == 0 ? "\"htd\"" : "\"thd\"");
    }
    text_string(&text, found.verdict);
    return task_json(task, "verdict", &text, err);
}

const struct api_op api_identify = {
    .name = "identify",
    .doc = "Which encoding made a table, or turned a vector: candidates, the best first, and what is unusual "
           "about each.",
    .post = "POST /v1/identify",
    .request_size = sizeof(struct identify_request),
    .fields = fields,
    .n_fields = PE_COUNT(fields),
    .tensor = "tensor",
    .open = identify_open,
};
