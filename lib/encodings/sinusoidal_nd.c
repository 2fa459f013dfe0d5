/* SPDX-License-Identifier: MIT
 *
 * Sinusoids of positions with n axes, for images and volumes: each axis has a block of its own. With m pairs
 * to an axis, coordinate x of an axis and i < m,
 *
 *     sin(x * omega_i), cos(x * omega_i),     omega_i = base^(-i/m), in tensor2tensor base^(-i/(m-1))
 *
 * Projects differ in which axis comes first, in the layout, and in what a width means that 2n does not
 * divide:
 *
 *                        first axis   layout                               width D
 *     mae                the last     halves: [sin w|cos w|sin h|cos h]    a multiple of 2n
 *     timm               the first    kinds:  [sin h|sin w|cos h|cos w]    a multiple of 2n
 *     timm_interleaved   the first    halves: [sin h|cos h|sin w|cos w]    a multiple of 2n
 *     detr               the first    interleaved: s0 c0 s1 c1 ... of h, then of w        a multiple of 2n
 *     tatp22             the first    interleaved    blocks of 2*ceil(D/2n), cut to D
 *     t2t                the first    halves         blocks of 2*floor(D/2n), then zeros
 *
 * MAE's code calls the first half h, and fills it with columns. DETR's normalize divides by the size of the
 * grid: x = (p + start)/(size + eps)*full_scale; its positions count from 1 (start).
 *
 * Tokens of a grid are in row-major order whatever the axes' order in the vector: that the two are confused
 * is the usual fault on grids that are not square. Before them may stand cls_rows class tokens, rows of
 * zeros: all coordinates of their position are -1.
 */
#include "core/ladder.h"
#include "encodings/encoding.h"

#include <string.h>

#define MAX_AXES 3

struct nd {
    uint64_t given;
    int64_t d_model;
    int combine;
    int64_t n_axes;
    int axes_order, layout;
    double base;
    int64_t cls_rows;
    bool normalize;
    double start, eps, full_scale;
    struct pe_ints grid;
};

enum { COMBINE_MAE = 1, COMBINE_TIMM, COMBINE_TIMM_INTERLEAVED, COMBINE_DETR, COMBINE_TATP22, COMBINE_T2T };
enum { ORDER_FIRST = 1, ORDER_LAST };
enum { LAYOUT_HALVES = 1, LAYOUT_INTERLEAVED, LAYOUT_KINDS };

static const struct pe_choice combines[] = {
    {"mae", COMBINE_MAE, "MAE, ViTMAE: columns first, halves"},
    {"timm", COMBINE_TIMM, "timm's build_sincos2d_pos_embed: rows first, all sines before all cosines"},
    {"timm_interleaved", COMBINE_TIMM_INTERLEAVED, "the same with interleave_sin_cos: rows first, halves"},
    {"detr", COMBINE_DETR, "DETR's PositionEmbeddingSine: rows first, interleaved"},
    {"tatp22", COMBINE_TATP22,
     "tatp22/multidim-positional-encoding: interleaved blocks of 2*ceil(d_model/2n), cut to d_model"},
    {"t2t", COMBINE_T2T,
     "tensor2tensor's add_timing_signal_nd: the last frequency is 1/base, zeros at the end"},
    {NULL, 0, NULL}};
static const struct pe_choice orders[] = {{"first_axis_first", ORDER_FIRST, "rows before columns"},
                                          {"last_axis_first", ORDER_LAST, "columns before rows"},
                                          {NULL, 0, NULL}};
static const struct pe_choice layouts[] = {
    {"halves", LAYOUT_HALVES, "each axis its sines, then its cosines"},
    {"interleaved", LAYOUT_INTERLEAVED, "each axis s0 c0 s1 c1 ..."},
    {"kinds", LAYOUT_KINDS, "the sines of all axes, then the cosines of all"},
    {NULL, 0, NULL}};

static const struct {
    int order, layout;
} usual[] = {
    [COMBINE_MAE] = {ORDER_LAST, LAYOUT_HALVES},
    [COMBINE_TIMM] = {ORDER_FIRST, LAYOUT_KINDS},
    [COMBINE_TIMM_INTERLEAVED] = {ORDER_FIRST, LAYOUT_HALVES},
    [COMBINE_DETR] = {ORDER_FIRST, LAYOUT_INTERLEAVED},
    [COMBINE_TATP22] = {ORDER_FIRST, LAYOUT_INTERLEAVED},
    [COMBINE_T2T] = {ORDER_FIRST, LAYOUT_HALVES},
};

enum {
    FIELD_D_MODEL,
    FIELD_COMBINE,
    FIELD_N_AXES,
    FIELD_AXES_ORDER,
    FIELD_LAYOUT,
    FIELD_BASE,
    FIELD_CLS_ROWS,
    FIELD_NORMALIZE,
    FIELD_START,
    FIELD_EPS,
    FIELD_FULL_SCALE,
    FIELD_GRID
};

static const struct pe_field fields[] = {
    [FIELD_D_MODEL] = {PE_FIELD(nd, d_model), .min = 1, .max = 65536,
                       .flags = PE_FIELD_REQUIRED | PE_FIELD_WIDTH, .doc = "Width of a vector."},
    [FIELD_COMBINE] = {PE_FIELD(nd, combine), .choices = combines, .flags = PE_FIELD_REQUIRED,
                       .doc =
                           "Whose convention: what the width means, and what the next two are by default."},
    [FIELD_N_AXES] = {PE_FIELD(nd, n_axes), .min = 1, .max = MAX_AXES, .def = "2",
                      .doc = "Coordinates of a position."},
    [FIELD_AXES_ORDER] = {PE_FIELD(nd, axes_order), .choices = orders,
                          .doc = "Which axis has the first columns [as combine]."},
    [FIELD_LAYOUT] = {PE_FIELD(nd, layout), .choices = layouts,
                      .doc = "The order of sines and cosines [as combine]."},
    [FIELD_BASE] = {PE_FIELD(nd, base), .min = 1, .max = 1e300, .def = "10000",
                    .doc = "Base of the frequencies; also called temperature."},
    [FIELD_CLS_ROWS] = {PE_FIELD(nd, cls_rows), .min = 0, .max = 1024, .def = "0",
                        .doc =
                            "Class tokens: so many rows of zeros stand before a grid; their coordinates are "
                            "all -1, with which one can be asked for as well."},
    [FIELD_NORMALIZE] = {PE_FIELD(nd, normalize), .def = "false",
                         .doc = "Coordinates are divided by the size of the grid, as DETR does: "
                                "(p + start)/(size + eps)*full_scale."},
    [FIELD_START] = {PE_FIELD(nd, start), .min = -PE_POSITION_MAX, .max = PE_POSITION_MAX, .def = "0",
                     .doc = "Added to all coordinates: 1 for DETR, which counts from 1."},
    [FIELD_EPS] = {PE_FIELD(nd, eps), .min = 0, .max = 1, .doc = "Of normalize [1e-6]."},
    [FIELD_FULL_SCALE] = {PE_FIELD(nd, full_scale), .min = 0, .max = 1e9, .flags = PE_FIELD_OPEN_MIN,
                          .alias = "scale", .doc = "Of normalize [2*pi, exactly]."},
    [FIELD_GRID] = {PE_FIELD(nd, grid), .min = 1, .max = 16777216,
                    .doc = "Size of each axis, as [height, width], for normalize."},
};

struct plan {
    size_t pairs; /* of an axis */
    int axes;
    struct pe_turn turns[]; /* [axes, pairs] in the order of the coordinates */
};

static bool given(const struct nd *nd, int field) {
    return nd->given >> field & 1;
}

/* ---- Parameters ---------------------------------------------------------------------------------------- */

static size_t pairs_of(const struct nd *nd) {
    int64_t per_axis = 2 * nd->n_axes;
    return (size_t)((nd->d_model + (nd->combine == COMBINE_TATP22 ? per_axis - 1 : 0)) / per_axis);
}

static int check_normalize(const struct nd *nd, struct pe_error *err) {
    static const int of_it[] = {FIELD_EPS, FIELD_FULL_SCALE, FIELD_GRID};
    for (size_t i = 0; i < PE_COUNT(of_it) && !nd->normalize; i++) {
        if (given(nd, of_it[i])) {
            return pe_fail(err, PE_ERR_CONFLICT, fields[of_it[i]].name, "is for normalize=true");
        }
    }
    if (nd->normalize && !given(nd, FIELD_GRID)) {
        return pe_fail(err, PE_ERR_MISSING, "grid", "is missing, normalize divides by its sizes");
    }
    if (nd->normalize && nd->grid.n != (size_t)nd->n_axes) {
        return pe_fail(err, PE_ERR_SHAPE, "grid", "has %zu sizes, must have one for each of %lld axes",
                       nd->grid.n, (long long)nd->n_axes);
    }
    return PE_OK;
}

static int check(const void *params, struct pe_error *err) {
    const struct nd *nd = params;
    bool any = nd->combine == COMBINE_TATP22 || nd->combine == COMBINE_T2T;
    if (!any && nd->d_model % (2 * nd->n_axes) != 0) {
        return pe_fail(err, PE_ERR_RANGE, "d_model",
                       "is %lld, must be a multiple of %lld for %s: sine and cosine of each axis",
                       (long long)nd->d_model, (long long)(2 * nd->n_axes),
                       pe_choice_name(combines, nd->combine));
    }
    return check_normalize(nd, err);
}

static size_t width(const void *params) {
    return (size_t)((const struct nd *)params)->d_model;
}

static size_t plan_bytes(const void *params) {
    const struct nd *nd = params;
    return sizeof(struct plan) + pairs_of(nd) * (size_t)nd->n_axes * sizeof(struct pe_turn);
}

static void resolve(void *params, void *data) {
    struct nd *nd = params;
    (void)data;
    if (!given(nd, FIELD_AXES_ORDER)) {
        nd->axes_order = usual[nd->combine].order;
        nd->given |= UINT64_C(1) << FIELD_AXES_ORDER;
    }
    if (!given(nd, FIELD_LAYOUT)) {
        nd->layout = usual[nd->combine].layout;
        nd->given |= UINT64_C(1) << FIELD_LAYOUT;
    }
    if (nd->normalize && !given(nd, FIELD_EPS)) {
        nd->eps = 1e-6;
        nd->given |= UINT64_C(1) << FIELD_EPS;
    }
}

/* What normalize makes of a unit of coordinate, times the turns of the first rung. */
static struct pe_wide first_turns(const struct nd *nd, int axis) {
    struct pe_wide turns = pe_wide_1_2pi;
    if (!nd->normalize) {
        return turns;
    }
    struct pe_wide scale = pe_wide_of(nd->full_scale), size = pe_wide_of((double)nd->grid.v[axis]),
                   eps = pe_wide_of(nd->eps);
    pe_wide_mul(&turns, &turns, &scale);
    if (!given(nd, FIELD_FULL_SCALE)) {
        turns = pe_wide_of(1);
    }
    pe_wide_add(&size, &size, &eps);
    pe_wide_div(&turns, &turns, &size);
    return turns;
}

static int make_plan(struct pe_plan_view *view, struct pe_error *err) {
    const struct nd *nd = view->params;
    struct plan *plan = view->data;
    (void)err;
    plan->pairs = pairs_of(nd);
    plan->axes = (int)nd->n_axes;
    uint32_t m = (uint32_t)plan->pairs, down = nd->combine == COMBINE_T2T ? m - 1 : m;
    for (int axis = 0; axis < plan->axes; axis++) {
        struct pe_ladder ladder;
        pe_ladder_start(&ladder, nd->base, m > 1, m > 1 ? down : 1);
        ladder.turns = first_turns(nd, axis);
        for (size_t i = 0; i < plan->pairs; i++) {
            pe_turn_of(&plan->turns[(size_t)axis * plan->pairs + i], &ladder.turns);
            pe_ladder_next(&ladder);
        }
    }
    return PE_OK;
}

static int axes(const struct pe_plan_view *view) {
    return ((const struct plan *)view->data)->axes;
}

static size_t grid_size(const struct pe_plan_view *view, int axis) {
    const struct nd *nd = view->params;
    return (size_t)axis < nd->grid.n ? (size_t)nd->grid.v[axis] : 0;
}

static size_t lead(const struct pe_plan_view *view) {
    return (size_t)((const struct nd *)view->params)->cls_rows;
}

static int admit(const struct pe_plan_view *view, const struct pe_positions *positions,
                 struct pe_error *err) {
    int wanted = axes(view);
    if (positions->axes == wanted || positions->length == 0) {
        return PE_OK;
    }
    return pe_fail(err, PE_ERR_SHAPE, "",
                   "have %d coordinates each, allowed are %d: rows [T, %d], or a grid of %d sizes",
                   positions->axes, wanted, wanted, wanted);
}

/* ---- Vectors ------------------------------------------------------------------------------------------- */

static bool is_cls(const struct nd *nd, const double *position) {
    bool all = nd->cls_rows > 0;
    for (int a = 0; a < nd->n_axes; a++) {
        all = all && position[a] == -1;
    }
    return all;
}

/* How many of the m columns from `first` on, each a step behind the other, a vector of width D has. */
static size_t columns_within(size_t first, size_t step, size_t m, size_t D) {
    size_t n = first < D ? (D - first + step - 1) / step : 0;
    return n < m ? n : m;
}

/* The columns of one axis, of which tatp22 cuts off what is over. */
static void encode_axis(const struct pe_plan_view *view, double coordinate, int axis, enum pe_dtype dtype,
                        char *row) {
    const struct nd *nd = view->params;
    const struct plan *plan = view->data;
    size_t m = plan->pairs, size = pe_dtype_size(dtype), D = view->width;
    size_t block = (size_t)(nd->axes_order == ORDER_FIRST ? axis : plan->axes - 1 - axis);
    bool kinds = nd->layout == LAYOUT_KINDS, pairwise = nd->layout == LAYOUT_INTERLEAVED;
    size_t first = block * (kinds ? m : 2 * m), step = pairwise ? 2 : 1;
    size_t second = kinds ? first + (size_t)plan->axes * m : pairwise ? first + 1 : first + m;
    size_t sines = columns_within(first, step, m, D), cosines = columns_within(second, step, m, D);
    const struct pe_turn *turns = &plan->turns[(size_t)axis * m];
    struct pe_place place;
    pe_place_of(&place, coordinate, 1, nd->start);
    if (cosines > 0) {
        const struct pe_phase_out pairs = {
            .sin = row + first * size, .cos = row + second * size, .step = step};
        pe_phase_row(&place, turns, cosines, dtype, &pairs);
    }
    if (sines > cosines) { /* those of a pair or block whose cosines, which come behind them, are cut off */
        const struct pe_phase_out rest = {.sin = row + (first + cosines * step) * size, .step = step};
        pe_phase_row(&place, turns + cosines, sines - cosines, dtype, &rest);
    }
}

static void encode(const struct pe_plan_view *view, const double *positions, size_t n, enum pe_dtype dtype,
                   void *out) {
    const struct nd *nd = view->params;
    size_t row_bytes = view->width * pe_dtype_size(dtype), n_axes = (size_t)nd->n_axes;
    for (size_t i = 0; i < n; i++) {
        char *row = (char *)out + i * row_bytes;
        memset(row, 0, row_bytes); /* all bits zero is +0 in every element type */
        for (size_t a = 0; a < n_axes && !is_cls(nd, positions + i * n_axes); a++) {
            encode_axis(view, positions[i * n_axes + a], (int)a, dtype, row);
        }
    }
}

static double row_cost_ns(const struct pe_plan_view *view, enum pe_dtype dtype) {
    (void)dtype;
    const struct plan *plan = view->data;
    double slow = 0;
    for (size_t i = 0; i < plan->pairs * (size_t)plan->axes; i++) {
        slow += pe_turn_is_slow(&plan->turns[i], false) ? 2 * PE_TURN_SLOW_NS : 0;
    }
    return 60 + 12 * (double)view->width + slow;
}

const struct pe_encoding pe_sinusoidal_nd = {
    .info = {.type = "sinusoidal_nd",
             .title = "Sinusoidal, of several axes",
             .doc = "Sines and cosines of each coordinate of a patch or voxel in columns of its own, in the "
                    "orders of MAE, timm, DETR and others.",
             .reference = "He et al. 2022, Masked Autoencoders; Carion et al. 2020, DETR",
             .family = PE_FAMILY_ABSOLUTE,
             .params_size = sizeof(struct nd),
             .fields = fields,
             .n_fields = PE_COUNT(fields)},
    .check = check,
    .width = width,
    .plan_bytes = plan_bytes,
    .resolve = resolve,
    .plan = make_plan,
    .admit = admit,
    .axes = axes,
    .grid_size = grid_size,
    .lead = lead,
    .unshifted = true,
    .encode = encode,
    .encode_axes = encode,
    .row_cost_ns = row_cost_ns,
};
