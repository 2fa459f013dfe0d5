/* SPDX-License-Identifier: MIT
 *
 * Positions that follow from something else: a grid, a padding mask, the lengths of packed documents.
 *
 * Models disagree about the positions of padded sequences, and their tables were trained with what their code
 * did. With m [T] the mask (1 = token) and c = cumsum(m), c_t = m_0 + ... + m_t, that is
 *
 *     bert               t                    the mask is not looked at
 *     roberta, fairseq   c m + padding_idx    first token padding_idx + 1, padding at padding_idx
 *     opt                c m + 1              c m - 1 as the model counts, and the 2 its table is offset by
 *     gpt2               c - 1, padding 1     as text generation fills masked positions
 *     bloom              (c - 1) m            padding 0
 *
 * so all but the first count tokens from some position on, and give padding another.
 *
 * Randomised positions (Ruoss et al. 2023) are a sorted sample of a range longer than the sequence. Packed
 * documents count from 0 in each; a grid [h, w] is walked row by row, one coordinate per axis.
 */
#include "core/sample.h"
#include "core/stop.h"
#include "posenc_fields.h"

#include <math.h>

enum {
    ROW_START,
    ROW_STEP,
    ROW_COUNT,
    ROW_GRID,
    ROW_MASK,
    ROW_RULE,
    ROW_PADDING_IDX,
    ROW_LENGTHS,
    ROW_SAMPLE,
    ROW_SEED,
    ROWS
};

#define GRID_AXES_MAX 8

const struct pe_choice pe_position_rule_choices[] = {
    {"bert", PE_POSITION_RULE_BERT, "0 to T-1, whatever the mask"},
    {"roberta", PE_POSITION_RULE_ROBERTA, "tokens count from padding_idx + 1, padding has padding_idx"},
    {"opt", PE_POSITION_RULE_OPT, "rows of OPT's table: tokens count from 2, padding has 1"},
    {"gpt2", PE_POSITION_RULE_GPT2, "tokens count from 0, padding has 1"},
    {"bloom", PE_POSITION_RULE_BLOOM, "tokens count from 0, padding has 0"},
    {"fairseq", PE_POSITION_RULE_FAIRSEQ, "as roberta: rows of the sinusoidal table"},
    {NULL, 0, NULL},
};

const struct pe_field pe_positions_fields[] = {
    [ROW_START] = {PE_FIELD(pe_positions_rule, start), .min = -PE_POSITION_MAX, .max = PE_POSITION_MAX,
                   .def = "0", .doc = "first position of a range; needs count"},
    [ROW_STEP] = {PE_FIELD(pe_positions_rule, step), .min = -PE_POSITION_MAX, .max = PE_POSITION_MAX,
                  .def = "1", .doc = "distance of neighbours in a range; needs count"},
    [ROW_COUNT] = {PE_FIELD(pe_positions_rule, count), .min = 0, .max = PE_POSITION_MAX,
                   .doc = "number of positions in a range: start + i*step, rounded once"},
    [ROW_GRID] = {PE_FIELD(pe_positions_rule, grid), .flags = PE_FIELD_NUMBERS, .shape = "[axes]",
                  .doc = "sizes of a grid, e.g. [height, width]: its coordinates row by row"},
    [ROW_MASK] = {PE_FIELD(pe_positions_rule, mask), .flags = PE_FIELD_NUMBERS, .shape = "[T] or [B, T]",
                  .doc = "1 for a token, 0 for padding; needs rule"},
    [ROW_RULE] = {PE_FIELD(pe_positions_rule, rule), .choices = pe_position_rule_choices,
                  .doc = "how a model counts positions under a padding mask"},
    [ROW_PADDING_IDX] = {PE_FIELD(pe_positions_rule, padding_idx), .min = 0, .max = PE_PADDING_IDX_MAX,
                         .def = "1", .doc = "position of padding under the rules roberta and fairseq"},
    [ROW_LENGTHS] = {PE_FIELD(pe_positions_rule, lengths), .flags = PE_FIELD_NUMBERS, .shape = "[N]",
                     .doc = "lengths of documents packed one after the other: each counts from 0"},
    [ROW_SAMPLE] = {PE_FIELD(pe_positions_rule, sample), .flags = PE_FIELD_NUMBERS, .shape = "[T, L]",
                    .doc = "randomised positions: T different whole numbers from 0 to L-1, in order"},
    [ROW_SEED] = {PE_FIELD(pe_positions_rule, seed), .min = 0, .max = PE_POSITION_MAX, .def = "0",
                  .doc = "of sample: another seed, other positions"},
};
const size_t pe_positions_n_fields = PE_COUNT(pe_positions_fields);

_Static_assert(PE_COUNT(pe_positions_fields) == ROWS, "a row for each index");

static bool given(const struct pe_positions_rule *rule, unsigned row) {
    return rule->given >> row & 1;
}

/* A field of one of the ways to say positions. A program may fill tensors in by hand. */
static bool is_said(const struct pe_positions_rule *rule, unsigned row) {
    const struct pe_field *field = &pe_positions_fields[row];
    const void *member = (const char *)rule + field->offset;
    return field->kind == PE_KIND_TENSOR ? *(const struct pe_tensor *const *)member != NULL
                                         : given(rule, row);
}

/* Which of the ways was used: the row that stands for it, the first of its own. */
static int way_find(const struct pe_positions_rule *rule, int *way, struct pe_error *err) {
    static const struct {
        size_t n;
        unsigned rows[3];
    } ways[] = {
        {3, {ROW_COUNT, ROW_START, ROW_STEP}},
        {1, {ROW_GRID}},
        {3, {ROW_MASK, ROW_RULE, ROW_PADDING_IDX}},
        {1, {ROW_LENGTHS}},
        {2, {ROW_SAMPLE, ROW_SEED}},
    };
    const char *first = NULL;
    for (size_t i = 0; i < PE_COUNT(ways); i++) {
        size_t k = 0;
        while (k < ways[i].n && !is_said(rule, ways[i].rows[k])) {
            k++;
        }
        if (k == ways[i].n) {
            continue;
        }
        const char *name = pe_positions_fields[ways[i].rows[k]].name;
        if (first) {
            return pe_fail(err, PE_ERR_CONFLICT, name,
                           "got %s and %s, allowed is one of count, grid, mask, lengths and sample", first,
                           name);
        }
        first = name;
        *way = (int)ways[i].rows[0];
    }
    if (!first) {
        return pe_fail(err, PE_ERR_MISSING, "",
                       "got none of count, grid, mask, lengths and sample, one is needed");
    }
    return PE_OK;
}

static int range_make(struct pe_positions *out, const struct pe_positions_rule *rule, struct pe_error *err) {
    if (!given(rule, ROW_COUNT)) {
        return pe_fail(err, PE_ERR_MISSING, "count", "got a range without count, the number of positions");
    }
    if (rule->count < 0 || (uint64_t)rule->count > SIZE_MAX - 1) {
        return pe_fail(err, PE_ERR_RANGE, "count", "got %lld, allowed are 0 to 2^53", (long long)rule->count);
    }
    double start = given(rule, ROW_START) ? rule->start : 0;
    double step = given(rule, ROW_STEP) ? rule->step : 1;
    return pe_positions_steps(out, start, step, (size_t)rule->count, err);
}

static int list_check(const struct pe_tensor *list, const char *name, struct pe_error *err) {
    char shape[128];
    if (list->rank == 1) {
        return PE_OK;
    }
    return pe_fail(err, PE_ERR_SHAPE, name, "got shape %s, allowed is a list of whole numbers",
                   pe_tensor_shape_text(list, shape, sizeof shape));
}

/* Element i of a list of sizes: a whole number from 0 to 2^53. */
static int size_read(const struct pe_tensor *list, size_t i, const char *name, size_t *size,
                     struct pe_error *err) {
    double value;
    pe_dtype_load(list->dtype, (const unsigned char *)list->data + i * pe_dtype_size(list->dtype), 1, &value);
    if (value >= 0 && value <= PE_POSITION_MAX && value <= (double)(SIZE_MAX / 2) && value == floor(value)) {
        *size = (size_t)value;
        return PE_OK;
    }
    char path[sizeof err->path];
    pe_fail(err, PE_ERR_RANGE, pe_tensor_index_text(list, i, path, sizeof path),
            "got %.17g, allowed are whole numbers from 0 to 2^53", value);
    return pe_error_at(err, name);
}

/* The next cell, counted like an odometer: the last coordinate first. */
static void cell_next(size_t *at, size_t axes, const size_t *size) {
    for (size_t a = axes; a-- > 0;) {
        if (++at[a] < size[a]) {
            return;
        }
        at[a] = 0;
    }
}

static int grid_fill(double *out, size_t cells, size_t axes, const size_t *size, struct pe_error *err) {
    size_t at[GRID_AXES_MAX] = {0};
    for (size_t t = 0; t < cells; t++, cell_next(at, axes, size)) {
        if (t % PE_STOP_ITEMS == 0 && pe_error_poll(err)) {
            return err->code;
        }
        for (size_t a = 0; a < axes; a++) {
            out[t * axes + a] = (double)at[a];
        }
    }
    return PE_OK;
}

static int grid_make(struct pe_arena *arena, struct pe_positions *out, const struct pe_tensor *grid,
                     struct pe_error *err) {
    size_t size[GRID_AXES_MAX] = {0}, cells;
    if (list_check(grid, "grid", err)) {
        return err->code;
    }
    const size_t axes = grid->dim[0];
    if (axes < 1 || axes > GRID_AXES_MAX) {
        return pe_fail(err, PE_ERR_SHAPE, "grid", "got %zu sizes, allowed are 1 to %d", axes, GRID_AXES_MAX);
    }
    for (size_t i = 0; i < axes; i++) {
        if (size_read(grid, i, "grid", &size[i], err)) {
            return err->code;
        }
    }
    if (!pe_size_product(size, axes, &cells)) {
        cells = SIZE_MAX; /* which no arena grants */
    }
    struct pe_tensor list;
    if (pe_tensor_alloc(arena, &list, PE_DTYPE_F64, 2, (size_t[]){cells, axes}, err)) {
        return pe_error_at(err, "grid");
    }
    if (grid_fill(list.data, cells, axes, size, err)) {
        return err->code;
    }
    *out = (struct pe_positions){
        .length = cells, .axes = (int)axes, .list = list.data, .by_rule = true, .of_grid = true};
    return PE_OK;
}

/* Every element of a mask is exactly 0 or 1. */
static int mask_check(const struct pe_tensor *mask, const double *values, struct pe_error *err) {
    const size_t count = pe_tensor_count(mask);
    for (size_t i = 0; i < count; i++) {
        if (i % PE_STOP_ITEMS == 0 && pe_error_poll(err)) {
            return err->code;
        }
        if (values[i] == 0 || values[i] == 1) {
            continue;
        }
        char path[sizeof err->path];
        pe_fail(err, PE_ERR_RANGE, pe_tensor_index_text(mask, i, path, sizeof path),
                "got %.17g, allowed are 0 and 1", values[i]);
        return pe_error_at(err, "mask");
    }
    return PE_OK;
}

/* How a model counts: the positions of its first token and of padding. */
struct counting {
    double first, padding;
    bool all; /* the mask is not looked at */
};

static struct counting counting_of(const struct pe_positions_rule *rule) {
    const double padding_idx = given(rule, ROW_PADDING_IDX) ? (double)rule->padding_idx : 1;
    const struct counting countings[] = {
        [PE_POSITION_RULE_BERT] = {.first = 0, .all = true},
        [PE_POSITION_RULE_ROBERTA] = {.first = padding_idx + 1, .padding = padding_idx},
        [PE_POSITION_RULE_OPT] = {.first = 2, .padding = 1},
        [PE_POSITION_RULE_GPT2] = {.first = 0, .padding = 1},
        [PE_POSITION_RULE_BLOOM] = {.first = 0, .padding = 0},
        [PE_POSITION_RULE_FAIRSEQ] = {.first = padding_idx + 1, .padding = padding_idx},
    };
    return countings[rule->rule];
}

/* One row of a mask [T] becomes its positions [T], in place. */
static void mask_apply(double *row, size_t length, const struct counting *counting, struct pe_error *err) {
    double next = counting->first;
    for (size_t t = 0; t < length; t++) {
        if (t % PE_STOP_ITEMS == 0 && pe_error_poll(err)) {
            return;
        }
        bool token = counting->all || row[t] != 0;
        row[t] = token ? next : counting->padding;
        next += token;
    }
}

static int mask_fields_check(const struct pe_positions_rule *rule, struct pe_error *err) {
    char text[128];
    if (!rule->mask) {
        return pe_fail(err, PE_ERR_MISSING, "mask", "got %s without mask",
                       given(rule, ROW_RULE) ? "rule" : "padding_idx");
    }
    if (!rule->rule) {
        return pe_fail(err, PE_ERR_MISSING, "rule", "got mask without rule, allowed are %s",
                       pe_choices_names(pe_position_rule_choices, text, sizeof text));
    }
    const char *name = pe_choice_name(pe_position_rule_choices, rule->rule);
    if (!name) {
        return pe_fail(err, PE_ERR_CHOICE, "rule", "got %d, allowed are %s", rule->rule,
                       pe_choices_names(pe_position_rule_choices, text, sizeof text));
    }
    if (!given(rule, ROW_PADDING_IDX)) {
        return PE_OK;
    }
    if (rule->rule != PE_POSITION_RULE_ROBERTA && rule->rule != PE_POSITION_RULE_FAIRSEQ) {
        return pe_fail(err, PE_ERR_CONFLICT, "padding_idx", "got %s, only roberta and fairseq have one",
                       name);
    }
    if (rule->padding_idx < 0 || rule->padding_idx > PE_PADDING_IDX_MAX) {
        return pe_fail(err, PE_ERR_RANGE, "padding_idx", "got %lld, allowed are 0 to %d",
                       (long long)rule->padding_idx, PE_PADDING_IDX_MAX);
    }
    return PE_OK;
}

static int mask_make(struct pe_arena *arena, struct pe_positions *out, const struct pe_positions_rule *rule,
                     struct pe_error *err) {
    if (mask_fields_check(rule, err)) {
        return err->code;
    }
    const struct pe_tensor *mask = rule->mask;
    char shape[128];
    if (mask->rank < 1 || mask->rank > 2 || (mask->rank == 2 && mask->dim[0] == 0)) {
        return pe_fail(err, PE_ERR_SHAPE, "mask", "got shape %s, allowed are [T] and [B, T] with rows",
                       pe_tensor_shape_text(mask, shape, sizeof shape));
    }
    struct pe_tensor list;
    if (pe_tensor_alloc(arena, &list, PE_DTYPE_F64, mask->rank, mask->dim, err)) {
        return pe_error_at(err, "mask");
    }
    double *values = list.data;
    if (pe_tensor_load(mask, values, err) || mask_check(mask, values, err)) {
        return err->code;
    }
    const size_t batch = mask->rank == 2 ? mask->dim[0] : 0, length = mask->dim[mask->rank - 1];
    const struct counting counting = counting_of(rule);
    for (size_t b = 0; length && b < (batch ? batch : 1); b++) { /* [B, 0] may have any B */
        mask_apply(values + b * length, length, &counting, err);
    }
    if (err->code) {
        return err->code;
    }
    *out =
        (struct pe_positions){.batch = batch, .length = length, .axes = 1, .list = values, .by_rule = true};
    return PE_OK;
}

static int lengths_make(struct pe_arena *arena, struct pe_positions *out, const struct pe_tensor *lengths,
                        struct pe_error *err) {
    if (list_check(lengths, "lengths", err)) {
        return err->code;
    }
    const size_t n = lengths->dim[0];
    size_t total = 0, length = 0;
    for (size_t i = 0; i < n; i++) {
        if (size_read(lengths, i, "lengths", &length, err) ||
            (i % PE_STOP_ITEMS == 0 && pe_error_poll(err))) {
            return err->code;
        }
        total = length <= SIZE_MAX - total ? total + length : SIZE_MAX;
    }
    struct pe_tensor list;
    if (pe_tensor_alloc(arena, &list, PE_DTYPE_F64, 1, &total, err)) {
        return pe_error_at(err, "lengths");
    }
    double *next = list.data;
    size_t done = 0;
    for (size_t i = 0; i < n; i++) {
        if (size_read(lengths, i, "lengths", &length, err)) {
            return err->code;
        }
        for (size_t t = 0; t < length; t++, done++) {
            if (done % PE_STOP_ITEMS == 0 && pe_error_poll(err)) {
                return err->code;
            }
            *next++ = (double)t;
        }
    }
    *out = (struct pe_positions){.length = total, .axes = 1, .list = list.data, .by_rule = true};
    return PE_OK;
}

static int sample_make(struct pe_arena *arena, struct pe_positions *out, const struct pe_positions_rule *rule,
                       struct pe_error *err) {
    size_t count, below;
    if (!rule->sample) {
        return pe_fail(err, PE_ERR_MISSING, "sample", "got seed without sample");
    }
    if (list_check(rule->sample, "sample", err)) {
        return err->code;
    }
    if (rule->sample->dim[0] != 2) {
        return pe_fail(err, PE_ERR_SHAPE, "sample",
                       "got %zu numbers, allowed are two: how many, and below what", rule->sample->dim[0]);
    }
    if (size_read(rule->sample, 0, "sample", &count, err) ||
        size_read(rule->sample, 1, "sample", &below, err)) {
        return err->code;
    }
    if (count > below) {
        return pe_fail(err, PE_ERR_RANGE, "sample[0]",
                       "got %zu, there are no more than %zu numbers below %zu", count, below, below);
    }
    double *list = pe_sample(arena, count, below, (uint64_t)(given(rule, ROW_SEED) ? rule->seed : 0), err);
    if (!list) {
        return pe_error_at(err, "sample");
    }
    *out = (struct pe_positions){.length = count, .axes = 1, .list = list, .by_rule = true};
    return PE_OK;
}

int pe_positions_make(struct pe_arena *arena, struct pe_positions *out, const struct pe_positions_rule *rule,
                      struct pe_error *err) {
    int way = ROWS;
    if (err->code || way_find(rule, &way, err)) {
        return err->code;
    }
    switch (way) {
    case ROW_GRID:
        return grid_make(arena, out, rule->grid, err);
    case ROW_MASK:
        return mask_make(arena, out, rule, err);
    case ROW_LENGTHS:
        return lengths_make(arena, out, rule->lengths, err);
    case ROW_SAMPLE:
        return sample_make(arena, out, rule, err);
    default:
        return range_make(out, rule, err);
    }
}
