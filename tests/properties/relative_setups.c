/* SPDX-License-Identifier: MIT
 *
 * How they are found: the plan is tried, and its error says what to do next. What is missing is given; what
 * has a wrong shape gets the next one of the list; after anything else there is no such setup.
 */
#include "relative_setups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SETUPS 200
#define T          RELATIVE_T
#define H          RELATIVE_H

static struct relative_setup setups[MAX_SETUPS];
static int n_setups;

/* Tables by distance, by pairs of positions, by the offsets of a window of 4 x 3, by buckets; layers of a
 * network; one number for each head. */
static const struct {
    int rank;
    size_t dim[3];
} shapes[] = {
    {1, {T}},     {1, {2 * T + 1}}, {1, {H}},        {1, {1}},      {2, {T, T}},   {2, {35, H}},
    {2, {38, H}}, {2, {32, H}},     {2, {33, H}},    {2, {320, H}}, {2, {512, H}}, {2, {T, H}},
    {2, {H, H}},  {2, {2, H}},      {2, {8, H}},     {2, {25, H}},  {2, {64, H}},  {2, {H, 32}},
    {2, {H, 8}},  {3, {H, T, T}},   {3, {H, 33, H}},
};

static struct pe_tensor *tensor_make(struct pe_arena *arena, const struct pe_field *row, size_t shape,
                                     struct pe_error *err) {
    struct pe_tensor *tensor = pe_arena_array(arena, 1, sizeof *tensor, err);
    if (!tensor || pe_tensor_alloc(arena, tensor, PE_DTYPE_F64, shapes[shape].rank, shapes[shape].dim, err)) {
        return NULL;
    }
    double *values = tensor->data;
    for (size_t i = 0; i < pe_tensor_count(tensor); i++) { /* lists of parameters are often positive */
        double x = (double)((i * 37 + 11) % 101) / 101;
        values[i] = row->kind == PE_KIND_TENSOR ? x + 0.01 : 2 * x - 1;
    }
    return tensor;
}

static const struct pe_field *row_of(const struct relative_setup *setup, const char *name) {
    return pe_field_find(setup->info->fields, setup->info->n_fields, name);
}

int relative_setup_open(struct pe_arena *arena, const struct relative_setup *setup, struct pe_plan **plan,
                        struct pe_error *err) {
    struct pe_spec spec;
    *plan = NULL;
    if (pe_spec_init(arena, &spec, setup->info->type, err)) {
        return err->code;
    }
    for (size_t i = 0; i < setup->n; i++) {
        const struct relative_step *step = &setup->step[i];
        const struct pe_tensor *tensor =
            step->text ? NULL : tensor_make(arena, row_of(setup, step->name), step->shape, err);
        if (step->text ? pe_spec_set(arena, &spec, step->name, step->text, err)
                       : !tensor || pe_spec_set_tensor(&spec, step->name, tensor, err)) {
            return err->code;
        }
    }
    return pe_plan_open(plan, &spec, err);
}

const char *relative_setup_text(const struct relative_setup *setup, char *text, size_t size) {
    snprintf(text, size, "%s", setup->info->type);
    for (size_t i = 0; i < setup->n; i++) {
        char shape[80];
        const struct relative_step *step = &setup->step[i];
        struct pe_tensor is = {.rank = shapes[step->shape].rank};
        memcpy(is.dim, shapes[step->shape].dim, sizeof shapes[step->shape].dim);
        snprintf(text + strlen(text), size - strlen(text), " %s=%s", step->name,
                 step->text ? step->text : pe_tensor_shape_text(&is, shape, sizeof shape));
    }
    return text;
}

/* ---- Finding them -------------------------------------------------------------------------------------- */

/* The plan, and attention with all positions and heads. */
static int setup_try(const struct relative_setup *setup, struct pe_error *err) {
    static const double numbers[H * T * RELATIVE_W];
    struct pe_tensor q = {
        .data = (void *)(uintptr_t)numbers, .dtype = PE_DTYPE_F64, .rank = 3, .dim = {H, T, RELATIVE_W}};
    struct pe_plan *plan;
    struct pe_work work;
    struct pe_attention_result result;
    struct pe_arena *arena = pe_arena_open((size_t)1 << 24, NULL, err);
    if (arena && relative_setup_open(arena, setup, &plan, err) == PE_OK) {
        struct pe_attention_args args = {.size = sizeof args,
                                         .plan = plan,
                                         .q = &q,
                                         .k = &q,
                                         .v = &q,
                                         .outputs = PE_ATTENTION_OUTPUT | PE_ATTENTION_WEIGHTS};
        (void)!pe_attention_open(arena, &work, &result, &args, err);
        pe_plan_close(plan);
    }
    pe_arena_close(arena);
    return err->code;
}

static struct relative_step *step_of(struct relative_setup *setup, const char *name) {
    for (size_t i = 0; i < setup->n; i++) {
        if (strcmp(setup->step[i].name, name) == 0) {
            return &setup->step[i];
        }
    }
    return NULL;
}

static bool step_add(struct relative_setup *setup, const char *name, const char *text) {
    if (setup->n == sizeof setup->step / sizeof *setup->step) {
        return false;
    }
    setup->step[setup->n++] = (struct relative_step){.name = name, .text = text};
    return true;
}

static bool is_tensor(const struct pe_field *row) {
    return row->kind == PE_KIND_TABLE || row->kind == PE_KIND_TENSOR;
}

static bool missing_add(struct relative_setup *setup, const struct pe_field *row, bool seeded) {
    if (row->kind == PE_KIND_TABLE && seeded && row_of(setup, "seed")) {
        return step_add(setup, "seed", "5");
    }
    return step_add(setup, row->name,
                    row->kind == PE_KIND_TABLE    ? NULL
                    : row->kind == PE_KIND_TENSOR ? "0.75"
                    : row->kind == PE_KIND_INTS   ? "4,3"
                    : row->choices                ? row->choices[0].name
                                                  : "6");
}

/* Completes the setup; is there such a one? */
static bool complete(struct relative_setup *setup, bool seeded) {
    for (int tries = 0; tries < 200; tries++) {
        struct pe_error err = {0};
        int code = setup_try(setup, &err);
        const char *path = strncmp(err.path, "encoding.", 9) == 0 ? err.path + 9 : err.path;
        const struct pe_field *row = row_of(setup, path);
        struct relative_step *step = step_of(setup, path);
        if (code == PE_OK) {
            return true;
        }
        if (code == PE_ERR_MISSING && row && !step) {
            if (!missing_add(setup, row, seeded)) {
                return false;
            }
        } else if (code != PE_ERR_SHAPE || !step || step->text || ++step->shape == PE_COUNT(shapes)) {
            return false;
        }
    }
    return false;
}

static void add(const struct pe_encoding_info *info, const char *name, const char *text, bool seeded) {
    struct relative_setup *setup = &setups[n_setups];
    *setup = (struct relative_setup){.info = info};
    if (name) {
        (void)step_add(setup, name, text);
    }
    if (complete(setup, seeded) && ++n_setups == MAX_SETUPS) {
        abort(); /* outside of any test; a larger array is all it takes */
    }
}

static void row_add(const struct pe_encoding_info *info, const struct pe_field *row) {
    for (const struct pe_choice *c = row->choices; c && c->name; c++) {
        add(info, row->name, c->name, true);
    }
    if (row->kind == PE_KIND_BOOL) {
        add(info, row->name, "true", true);
        add(info, row->name, "false", true);
    }
    if (row->kind == PE_KIND_INT && row->max == 1) {
        add(info, row->name, "1", true);
    }
    if (is_tensor(row)) {
        add(info, row->name, NULL, false);
    }
}

int relative_setups_make(void) {
    bool made = n_setups > 0;
    for (size_t e = 0; e < pe_encoding_count() && !made; e++) {
        const struct pe_encoding_info *info = pe_encoding_at(e);
        const struct pe_encoding *row = pe_encoding_row(info);
        if (!row->bias && !row->term) {
            continue;
        }
        add(info, NULL, NULL, true);
        for (size_t i = 0; i < info->n_fields; i++) {
            row_add(info, &info->fields[i]);
        }
    }
    return n_setups;
}

const struct relative_setup *relative_setup_at(int i) {
    return &setups[i];
}
