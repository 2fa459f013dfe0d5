/* SPDX-License-Identifier: MIT
 *
 * identify: what was posted, checked: one table, a pair of them, or vectors before and after; where its tokens are, and
 * at which positions.
 */
#include "ops/identify.h"
#include "ops/operand.h"

#include <string.h>

#define MOST_WIDTH 65536

/* ---- What was posted ----------------------------------------------------------------------------------- */

static const struct {
    enum pe_identify_kind kind;
    const char *names[2];
    int ranks; /* the highest */
    const char *allowed;
} kinds[] = {
    {PE_IDENTIFY_TABLE, {"tensor", NULL}, 2, "[T, D]"},
    {PE_IDENTIFY_TRIG, {"cos", "sin"}, 2, "[T, n]"},
    {PE_IDENTIFY_TURNED, {"after", "before"}, 3, "[T, d], [T, H, d] and [H, T, d]"},
};

/* Without its first axes of 1, as far as it has too many: buffers are [1, T, D], [T, 1, D] and [1, 1, T, D], too. */
static struct pe_tensor squeezed(const struct pe_tensor *tensor, int ranks) {
    struct pe_tensor out = *tensor;
    for (int i = 0; i < out.rank - 1 && out.rank > ranks;) {
        if (out.dim[i] != 1) {
            i++;
            continue;
        }
        out.rank--;
        memmove(&out.dim[i], &out.dim[i + 1], (size_t)(out.rank - i) * sizeof out.dim[0]);
    }
    return out;
}

/* `tensor` as it was posted, `view` as it is read. */
static int tensor_check(const struct pe_tensor *tensor, const struct pe_tensor *view, size_t kind, int which,
                        struct pe_error *err) {
    char shape[128];
    size_t width = view->rank > 0 ? view->dim[view->rank - 1] : 0;
    size_t most = kinds[kind].kind == PE_IDENTIFY_TRIG ? MOST_WIDTH / 2 : MOST_WIDTH;
    if (view->rank < 2 || view->rank > kinds[kind].ranks || pe_tensor_count(view) == 0 || width > most) {
        return pe_fail(
            err, PE_ERR_SHAPE, kinds[kind].names[which],
            "has shape %s, allowed are %s without an empty axis and with rows of at most %zu numbers",
            pe_tensor_shape_text(tensor, shape, sizeof shape), kinds[kind].allowed, most);
    }
    return pe_tensor_check_finite(tensor, false, err) ? pe_error_at(err, kinds[kind].names[which]) : PE_OK;
}

static bool same_shape(const struct pe_tensor *a, const struct pe_tensor *b) {
    return a->rank == b->rank && memcmp(a->dim, b->dim, (size_t)a->rank * sizeof a->dim[0]) == 0;
}

/* Both in one shape: where one has axes of 1 that the other has not, without these. */
static int pair_check(struct pe_identify *op, const struct pe_tensor *const posted[2], size_t kind,
                      struct pe_error *err) {
    char one[128], other[128];
    if (same_shape(&op->posted[0], &op->posted[1])) {
        return PE_OK;
    }
    for (int i = 0; i < 2; i++) {
        op->posted[i] = squeezed(&op->posted[i], 2);
    }
    return same_shape(&op->posted[0], &op->posted[1])
               ? PE_OK
               : pe_fail(err, PE_ERR_SHAPE, kinds[kind].names[1], "has shape %s, but %s has %s",
                         pe_tensor_shape_text(posted[1], one, sizeof one), kinds[kind].names[0],
                         pe_tensor_shape_text(posted[0], other, sizeof other));
}

/* One of the three ways to post, whole. */
static int kind_find(struct pe_identify *op, const struct pe_identify_args *args, struct pe_error *err) {
    const struct pe_tensor *const all[][2] = {
        {args->tensor, NULL}, {args->cos, args->sin}, {args->after, args->before}};
    size_t found = PE_COUNT(kinds);
    for (size_t k = 0; k < PE_COUNT(kinds); k++) {
        if (!all[k][0] && !all[k][1]) {
            continue;
        }
        if (found < PE_COUNT(kinds)) {
            return pe_fail(err, PE_ERR_CONFLICT, kinds[k].names[all[k][0] ? 0 : 1],
                           "%s is there, too: one of them is identified", kinds[found].names[0]);
        }
        found = k;
    }
    if (found == PE_COUNT(kinds)) {
        return pe_fail(err, PE_ERR_MISSING, "tensor",
                       "is missing: a table, cos and sin, or before and after");
    }
    for (int i = 0; i < 2 && kinds[found].names[i]; i++) {
        if (!all[found][i]) {
            return pe_fail(err, PE_ERR_MISSING, kinds[found].names[i], "is missing: %s is there",
                           kinds[found].names[1 - i]);
        }
        op->posted[i] = squeezed(all[found][i], kinds[found].ranks);
        if (tensor_check(all[found][i], &op->posted[i], found, i, err)) {
            return err->code;
        }
    }
    op->kind = kinds[found].kind;
    op->made[0] = &op->posted[0];
    op->made[1] = op->kind == PE_IDENTIFY_TRIG ? &op->posted[1] : NULL;
    op->before = op->kind == PE_IDENTIFY_TURNED ? &op->posted[1] : NULL;
    return all[found][1] ? pair_check(op, all[found], found, err) : PE_OK;
}

static void row_load(const struct pe_identify *op, const struct pe_tensor *tensor, size_t row, double *out) {
    size_t pieces = op->heads_first ? op->heads : 1, items = pe_tensor_count(tensor) / op->length / pieces;
    for (size_t h = 0; h < pieces; h++) {
        size_t at = (h * op->length + row) * items * pe_dtype_size(tensor->dtype);
        pe_dtype_load(tensor->dtype, (const char *)tensor->data + at, items, out + h * items);
    }
}

void pe_identify_load(const struct pe_identify *op, size_t row, double *got, double *was) {
    row_load(op, op->made[0], row, got);
    if (op->made[1]) {
        row_load(op, op->made[1], row, got + op->items / 2);
    }
    if (op->before) {
        row_load(op, op->before, row, was);
    }
}

static int hints_read(struct pe_identify *op, const struct pe_identify_args *args, struct pe_error *err) {
    bool halves = args->layout && strcmp(args->layout, "halves") == 0;
    if (args->layout && !halves && strcmp(args->layout, "interleaved") != 0) {
        return pe_fail(err, PE_ERR_CHOICE, "hints.layout", "got \"%s\", allowed are halves and interleaved",
                       args->layout);
    }
    if (args->type && !pe_encoding_find(args->type)) {
        return pe_fail(err, PE_ERR_UNKNOWN_NAME, "hints.type", "got \"%s\", which is no type of an encoding",
                       args->type);
    }
    if (args->base != 0 && !(args->base >= 1 && args->base <= 1e300)) {
        return pe_fail(err, PE_ERR_RANGE, "hints.base", "got %g, allowed is 1 to 1e300", args->base);
    }
    op->hint_layout = !args->layout ? 0 : halves ? PE_ROTARY_HALVES : PE_ROTARY_INTERLEAVED;
    op->hint_type = args->type;
    op->hint_base = args->base;
    return PE_OK;
}

/* ---- Coordinates --------------------------------------------------------------------------------------- */

/* Is coordinate pair k, behind the class rows, the next cell of a grid w wide? */
static bool is_cell(const double *cell, size_t k, size_t w, double origin) {
    return cell[0] == origin + (double)(k / w) && cell[1] == origin + (double)(k % w);
}

/* [T, 2], which comes as a batch of rows of two where nobody said what the last axis is: all cells of a grid, row by
 * row, behind class rows at -1. Then positions are tokens, as where none are posted. */
static int coordinates_read(struct pe_identify *op, struct pe_error *err) {
    const double *list = op->positions.list;
    size_t before = 0, w = 1;
    while (before < op->length && list[2 * before] < 0 && list[2 * before + 1] < 0) {
        before++;
    }
    const double *cells = list + 2 * before;
    size_t n = op->length - before;
    while (w < n && cells[2 * w] == cells[0]) {
        w++;
    }
    bool whole = n > 0 && n % w == 0;
    for (size_t k = 0; k < n && whole && !pe_error_poll(err); k++) {
        whole = is_cell(cells + 2 * k, k, w, cells[0]);
    }
    if (!whole) {
        return pe_fail(
            err, PE_ERR_UNSUPPORTED, "positions",
            "are coordinates that are not all cells of a grid, row by row: others are not understood here");
    }
    op->columns = w;
    op->origin = cells[0];
    op->positions = (struct pe_positions){.length = op->length, .axes = 1, .step = 1};
    return err->code;
}

/* Two coordinates for each row of a table. */
static bool are_coordinates(const struct pe_identify *op) {
    const struct pe_positions *at = &op->positions;
    bool many = at->axes == 2 && at->batch <= 1 && at->length == op->length;
    bool few = at->axes == 1 && at->batch == op->length && at->length == 2;
    return op->kind == PE_IDENTIFY_TABLE && at->list && op->length > 1 && (many || few);
}

/* Which axis of turned vectors is tokens; where positions are given, as many. */
static int axes_read(struct pe_identify *op, const struct pe_positions *positions, struct pe_error *err) {
    const struct pe_tensor *made = op->made[0];
    if (op->kind != PE_IDENTIFY_TURNED || made->rank != 3) {
        return PE_OK;
    }
    const size_t *dim = made->dim;
    if (positions && dim[0] != dim[1] && positions->length != dim[0] && positions->length != dim[1]) {
        struct pe_error inner = {0};
        pe_positions_fit(NULL, positions, 0, dim[0], "positions", &inner);
        return pe_fail(err, PE_ERR_SHAPE, inner.path, "%s, as [T, H, d], or [%zu], as [H, T, d]", inner.text,
                       dim[1]);
    }
    op->heads_first = pe_identify_heads_first(op->arena, made, op->before, positions, err);
    return err->code;
}

int pe_identify_read(struct pe_arena *arena, struct pe_identify *op, const struct pe_identify_args *args,
                     struct pe_error *err) {
    op->arena = arena;
    if (kind_find(op, args, err) || hints_read(op, args, err)) {
        return err->code;
    }
    const struct pe_tensor *made = op->made[0];
    if (axes_read(op, args->positions, err)) {
        return err->code;
    }
    op->length = made->dim[op->heads_first ? 1 : 0];
    op->width = made->dim[made->rank - 1];
    op->items = pe_tensor_count(made) / op->length * (op->made[1] ? 2 : 1);
    op->heads = made->rank == 3 ? made->dim[op->heads_first ? 0 : 1] : 1;
    op->positions = (struct pe_positions){.length = op->length, .axes = 1, .step = 1};
    if (args->positions) {
        op->positions = *args->positions;
    }
    if (are_coordinates(op) && coordinates_read(op, err)) {
        return err->code;
    }
    return pe_positions_fit(NULL, &op->positions, 0, op->length, "positions", err)
               ? err->code
               : pe_identify_sample(op, err);
}
