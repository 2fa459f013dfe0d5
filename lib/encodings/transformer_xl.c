/* SPDX-License-Identifier: MIT
 *
 * The relative attention of Transformer-XL (Dai et al. 2019): the logits of a query i and a key j are
 *
 *     scale * ((q_i + u).k_j + (q_i + v).(W_R R_{i-j}))
 *
 * with R_n the sinusoid [sin n w_0, sin n w_1 .., cos n w_0 ..] of width d_model (w_m = base^(-2m/d_model)),
 * W_R the part of a learned matrix w_r [d_model, H*d] that belongs to the head (as x.W), and u and v learned
 * vectors of each head, the same for all queries: content_bias and position_bias [H, d], zero where they are
 * not given. The content is q.k, and the term u.k + (q + v).(W_R R).
 *
 * Projects make R for a row of distances and shift the products into place (rel_shift), which leaves products
 * of other queries above the diagonal, valid under a causal mask alone. Nothing of the kind arises here, as
 * each pair takes the product of its own distance; and distances may be any real numbers, since turning W_R's
 * product with the query by the query's angles gives y_i with R_{i-j}.z_i = y_i.s_j, where s_j is the
 * sinusoid of the key's position:
 *
 *     sin(a - b) z + cos(a - b) z' = (z' sin a - z cos a) sin b + (z sin a + z' cos a) cos b
 *     [cos a and sin a of the query, sin b and cos b of the key]
 *
 * It costs d_model/d times what the content does. The sinusoids are exact (core/phase.h), rounded once to the
 * type of the arithmetic, and so is y.
 *
 * Or `table` gives rows R W_R as they are [rows, H*d] or [rows, H, d], one for each whole distance i - j from
 * first_distance downwards: XLNet's 2T rows from T to -T + 1, Transformer-XL's T from T - 1 to 0 for a causal
 * mask. It costs as much as the content does, see kernels/band.h. A query that sees a key at another distance
 * is an error at the positions; of pairs that no query sees the term is u.k alone.
 *
 * Or a seed makes w_r, u and v: tables 0, 1 and 2 of core/cells.h.
 */
#include "encodings/encoding.h"

#include "core/admit.h"
#include "core/cells.h"
#include "core/ladder.h"
#include "core/stop.h"
#include "kernels/band.h"
#include "kernels/vector.h"

#include <math.h>
#include <string.h>

#define MAX_WIDTH    65536
#define SEED_D_MODEL 64
#define TILE         512 /* keys whose term is put together at a time */
#define TILE_LD      (TILE + 16)
#define ALIGN        ((size_t)64)

_Static_assert(PE_LOGITS_ROWS <= PE_BAND_ROWS, "a block of logits is one of a band");

struct transformer_xl {
    uint64_t given;
    int64_t d_model;
    double base;
    struct pe_table w_r, content_bias, position_bias, table;
    int64_t first_distance;
    int64_t seed;
    double std;
};

enum {
    FIELD_D_MODEL,
    FIELD_BASE,
    FIELD_W_R,
    FIELD_CONTENT_BIAS,
    FIELD_POSITION_BIAS,
    FIELD_TABLE,
    FIELD_FIRST_DISTANCE,
    FIELD_SEED,
    FIELD_STD
};

static const struct pe_field fields[] = {
    [FIELD_D_MODEL] = {PE_FIELD(transformer_xl, d_model), .min = 2, .max = MAX_WIDTH,
                       .doc = "width of the sinusoids, even; default: as w_r has rows, or 64 with a seed"},
    [FIELD_BASE] = {PE_FIELD(transformer_xl, base), .min = 1, .max = 1e300, .def = "10000",
                    .doc = "base of their frequencies, which run from 1 down towards 1/base"},
    [FIELD_W_R] = {PE_FIELD(transformer_xl, w_r), .shape = "[d_model, H*d]",
                   .doc = "projects them for each head, as x.W: the transpose of PyTorch's weight"},
    [FIELD_CONTENT_BIAS] = {PE_FIELD(transformer_xl, content_bias), .shape = "[H, d]",
                            .doc = "u, added to the query where it meets keys (r_w_bias); default zero"},
    [FIELD_POSITION_BIAS] = {PE_FIELD(transformer_xl, position_bias), .shape = "[H, d]",
                             .doc = "v, added to it where it meets distances (r_r_bias); default zero"},
    [FIELD_TABLE] = {PE_FIELD(transformer_xl, table), .shape = "[rows, H*d] or [rows, H, d]",
                     .doc = "in place of w_r: projected sinusoids, of distances query - key that fall by 1"},
    [FIELD_FIRST_DISTANCE] = {PE_FIELD(transformer_xl, first_distance), .min = -PE_POSITION_MAX,
                              .max = PE_POSITION_MAX, .doc = "query - key of the table's first row"},
    [FIELD_SEED] = {PE_FIELD(transformer_xl, seed), .min = 0, .max = PE_POSITION_MAX,
                    .doc = "in place of tables: makes w_r, content_bias and position_bias"},
    [FIELD_STD] = {PE_FIELD(transformer_xl, std), .min = 0, .max = 1000, .def = "1",
                   .flags = PE_FIELD_OPEN_MIN, .doc = "standard deviation of the numbers that a seed makes"},
};

enum { CELLS_W_R, CELLS_CONTENT, CELLS_POSITION, CELLS_TABLE, CELLS_COUNT };

struct plan {
    double largest[CELLS_COUNT];
    struct pe_turn turns[]; /* [d_model / 2]; none with a table */
};

static bool is_given(const struct transformer_xl *xl, int field) {
    return pe_field_given(fields, &fields[field], xl);
}

/* ---- Parameters ---------------------------------------------------------------------------------------- */

static const struct pe_table *table_of(const struct transformer_xl *xl, int cells) {
    const struct pe_table *const tables[] = {&xl->w_r, &xl->content_bias, &xl->position_bias, &xl->table};
    return tables[cells];
}

static const char *name_of(int cells) {
    return (const char *const[]){"w_r", "content_bias", "position_bias", "table"}[cells];
}

static int tables_check(const struct transformer_xl *xl, struct pe_error *err) {
    bool seeded = is_given(xl, FIELD_SEED);
    for (int cells = 0; cells < CELLS_COUNT; cells++) {
        const struct pe_table *table = table_of(xl, cells);
        const struct pe_tensor *tensor = table->tensor;
        bool there = pe_cells_given(table);
        char shape[128];
        if (there && pe_cells_check(table, name_of(cells), seeded, err)) {
            return err->code;
        }
        bool fits = there && (tensor->rank == 2 || (tensor->rank == 3 && cells == CELLS_TABLE)) &&
                    pe_tensor_count(tensor) > 0 && pe_tensor_count(tensor) / tensor->dim[0] <= PE_GEMM_MAX;
        if (there && !fits) {
            return pe_fail(err, PE_ERR_SHAPE, name_of(cells), "got shape %s, allowed is %s",
                           pe_tensor_shape_text(tensor, shape, sizeof shape),
                           fields[cells == CELLS_TABLE ? FIELD_TABLE : FIELD_W_R + cells].shape);
        }
    }
    return PE_OK;
}

/* Where the sinusoids' projections come from: w_r, a table, or a seed. */
static int source_check(const struct transformer_xl *xl, struct pe_error *err) {
    bool table = xl->table.tensor, matrix = xl->w_r.tensor;
    if (table && matrix) {
        return pe_fail(err, PE_ERR_CONFLICT, "table", "is given, and so is w_r: give one of them");
    }
    if (!table && !matrix && !is_given(xl, FIELD_SEED)) {
        return pe_fail(
            err, PE_ERR_MISSING, "w_r",
            "is missing: give it, or a table of projected sinusoids, or a seed for random numbers");
    }
    if (table && !is_given(xl, FIELD_FIRST_DISTANCE)) {
        return pe_fail(err, PE_ERR_MISSING, "first_distance",
                       "is missing: query - key of the table's first row");
    }
    if (!table && is_given(xl, FIELD_FIRST_DISTANCE)) {
        return pe_fail(err, PE_ERR_CONFLICT, "first_distance", "is of a table, and there is none");
    }
    if (table && is_given(xl, FIELD_D_MODEL)) {
        return pe_fail(err, PE_ERR_CONFLICT, "d_model", "is of sinusoids, which table gives projected");
    }
    return PE_OK;
}

/* 0 with a table. */
static size_t d_model_of(const struct transformer_xl *xl) {
    if (is_given(xl, FIELD_D_MODEL)) {
        return (size_t)xl->d_model;
    }
    if (xl->w_r.tensor) {
        return xl->w_r.tensor->dim[0];
    }
    return xl->table.tensor ? 0 : SEED_D_MODEL;
}

static int transformer_xl_check(const void *params, struct pe_error *err) {
    const struct transformer_xl *xl = params;
    if (tables_check(xl, err) || source_check(xl, err)) {
        return err->code;
    }
    size_t d_model = d_model_of(xl), rows = xl->w_r.tensor ? xl->w_r.tensor->dim[0] : d_model;
    const char *field = is_given(xl, FIELD_D_MODEL) ? "d_model" : "w_r";
    if (rows != d_model) {
        return pe_fail(err, PE_ERR_SHAPE, "w_r", "has %zu rows, but d_model is %zu", rows, d_model);
    }
    if (d_model % 2 || d_model > MAX_WIDTH) {
        return pe_fail(err, PE_ERR_RANGE, field,
                       "makes sinusoids of width %zu, allowed are even ones up to %d: a sine and a cosine of "
                       "each frequency",
                       d_model, MAX_WIDTH);
    }
    return PE_OK;
}

static void transformer_xl_resolve(void *params, void *data) {
    struct transformer_xl *xl = params;
    (void)data;
    if (!xl->table.tensor) {
        xl->d_model = (int64_t)d_model_of(xl);
        xl->given |= UINT64_C(1) << FIELD_D_MODEL;
    }
}

static size_t transformer_xl_plan_bytes(const void *params) {
    return sizeof(struct plan) + d_model_of(params) / 2 * sizeof(struct pe_turn);
}

/* The numbers of one table of the encoding; of those that are neither given nor made, zeros. */
static struct pe_cells cells_of(const struct transformer_xl *xl, int cells) {
    const struct pe_tensor *tensor = table_of(xl, cells)->tensor;
    return (struct pe_cells){.tensor = tensor,
                             .columns = tensor ? pe_tensor_count(tensor) / tensor->dim[0] : 0,
                             .seed = xl->seed,
                             .std = xl->std,
                             .number = (uint32_t)cells};
}

static bool has_cells(const struct transformer_xl *xl, int cells) {
    return table_of(xl, cells)->tensor || (is_given(xl, FIELD_SEED) && cells != CELLS_TABLE);
}

static int transformer_xl_plan(struct pe_plan_view *view, struct pe_error *err) {
    const struct transformer_xl *xl = view->params;
    struct plan *plan = view->data;
    size_t d_model = d_model_of(xl);
    for (int cells = 0; cells < CELLS_COUNT; cells++) {
        const struct pe_tensor *tensor = table_of(xl, cells)->tensor;
        const struct pe_cells made = cells_of(xl, cells);
        plan->largest[cells] =
            tensor ? pe_vector_largest(tensor->dtype, tensor->data, pe_tensor_count(tensor), false)
            : has_cells(xl, cells) ? pe_cells_largest(&made, err->stop)
                                   : 0;
    }
    if (!xl->table.tensor) {
        pe_ladder_fill(plan->turns, d_model / 2, xl->base, 2, (uint32_t)d_model);
    }
    return pe_error_poll(err);
}

/* ---- Requests ------------------------------------------------------------------------------------------ */

static int transformer_xl_admit(const struct pe_plan_view *view, const struct pe_positions *positions,
                                struct pe_error *err) {
    const struct transformer_xl *xl = view->params;
    return xl->table.tensor ? pe_positions_whole(positions, "a distance is a row of the table", err) : PE_OK;
}

static void transformer_xl_distances(const struct pe_plan_view *view, double *least, double *most) {
    const struct transformer_xl *xl = view->params;
    if (xl->table.tensor) {
        *least = -(double)xl->first_distance;
        *most = *least + (double)xl->table.tensor->dim[0] - 1;
    }
}

static int transformer_xl_suits(const struct pe_plan_view *view, const struct pe_relation *relation,
                                struct pe_error *err) {
    const struct transformer_xl *xl = view->params;
    for (int cells = 0; cells < CELLS_COUNT; cells++) {
        const struct pe_tensor *tensor = table_of(xl, cells)->tensor;
        size_t heads = relation->heads, width = relation->width;
        if (!tensor) {
            continue;
        }
        bool split = tensor->rank == 3 || cells == CELLS_CONTENT || cells == CELLS_POSITION;
        size_t got = split ? tensor->dim[tensor->rank - 2] : heads, columns = tensor->dim[tensor->rank - 1];
        if (got != heads || columns != (split ? width : heads * width)) {
            char shape[128];
            return pe_fail(err, PE_ERR_SHAPE, name_of(cells),
                           "has shape %s, but there are %zu heads of width %zu",
                           pe_tensor_shape_text(tensor, shape, sizeof shape), heads, width);
        }
    }
    return PE_OK;
}

static double transformer_xl_reach(const struct pe_plan_view *view, const struct pe_relation *relation) {
    const struct transformer_xl *xl = view->params;
    const double *largest = ((const struct plan *)view->data)->largest;
    double d = (double)relation->width, query = relation->largest_query + largest[CELLS_POSITION];
    double rows = d * query * (xl->table.tensor ? largest[CELLS_TABLE] : largest[CELLS_W_R]);
    double turned =
        xl->table.tensor ? rows : rows * 2 * (double)xl->d_model; /* a column is z, z' of [-1, 1] */
    double content = d * largest[CELLS_CONTENT] * relation->largest_key;
    double most = (turned + content) * fmax(1, fabs(relation->scale)); /* before and after it */
    for (int cells = 0; cells < CELLS_COUNT; cells++) {
        most = fmax(most, largest[cells]);
    }
    return fmax(most, query);
}

static size_t transformer_xl_key_width(const struct pe_plan_view *view) {
    return d_model_of(view->params);
}

/* cos and sin of a position's angles [d_model / 2], the ones after the others. */
static void angles_of(const struct pe_plan_view *view, double position, enum pe_dtype dtype, void *sin,
                      void *cos) {
    const struct plan *plan = view->data;
    struct pe_place place;
    pe_place_of(&place, position, 1, 0);
    pe_phase_row(&place, plan->turns, d_model_of(view->params) / 2, dtype,
                 &(struct pe_phase_out){.sin = sin, .cos = cos, .step = 1});
}

static void transformer_xl_key_vectors(const struct pe_plan_view *view, const double *positions, size_t n,
                                       enum pe_dtype real, void *out) {
    size_t d_model = d_model_of(view->params), item = pe_dtype_size(real);
    for (size_t i = 0; i < n && d_model; i++) {
        unsigned char *row = (unsigned char *)out + i * d_model * item;
        angles_of(view, positions[i], real, row, row + d_model / 2 * item);
    }
}

/* ---- Terms --------------------------------------------------------------------------------------------- */

/* The scratch memory of a block. */
struct parts {
    size_t u, queries, sums, content, band, angles, turned, matrix, bytes;
};

static size_t part_add(struct parts *parts, size_t bytes) {
    size_t at = parts->bytes;
    parts->bytes += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return at;
}

/* Rows R W_R of a head as vectors of distances key - query. */
static struct pe_band band_of(const struct transformer_xl *xl, size_t head, size_t width) {
    const struct pe_tensor *table = xl->table.tensor;
    return (struct pe_band){
        .data = (const unsigned char *)table->data + head * width * pe_dtype_size(table->dtype),
        .dtype = table->dtype,
        .ld = pe_tensor_count(table) / table->dim[0],
        .width = width,
        .least = -xl->first_distance,
        .most = -xl->first_distance + (int64_t)table->dim[0] - 1,
    };
}

static struct parts parts_of(const struct pe_plan_view *view, size_t width, enum pe_dtype real) {
    const struct transformer_xl *xl = view->params;
    size_t item = pe_dtype_size(real), d_model = d_model_of(xl);
    struct parts parts = {0};
    parts.u = part_add(&parts, width * item);
    parts.queries = part_add(&parts, PE_LOGITS_ROWS * width * item);
    parts.sums = part_add(&parts, PE_LOGITS_ROWS * TILE_LD * item);
    parts.content = part_add(&parts, TILE * item);
    if (xl->table.tensor) {
        struct pe_band band = band_of(xl, 0, width);
        parts.band = part_add(&parts, pe_band_scratch_bytes(&band, real));
        return parts;
    }
    parts.angles = part_add(&parts, d_model * sizeof(double));
    parts.turned = part_add(&parts, PE_LOGITS_ROWS * d_model * item);
    bool as_it_is = xl->w_r.tensor && xl->w_r.tensor->dtype == real;
    parts.matrix = as_it_is ? 0 : part_add(&parts, d_model * width * item);
    return parts;
}

static size_t transformer_xl_scratch_bytes(const struct pe_plan_view *view,
                                           const struct pe_relation *relation, enum pe_dtype real) {
    return parts_of(view, relation->width, real).bytes;
}

/* What a block is computed with. */
struct term {
    const struct pe_plan_view *view;
    const struct transformer_xl *xl;
    const struct pe_logits *logits;
    struct parts parts;
    size_t width, item;
    unsigned char *scratch;
};

/* Columns of the head of one row of a table. */
static void cells_read(const struct term *term, int cells, size_t row, size_t first, unsigned char *out) {
    const struct pe_cells from = cells_of(term->xl, cells);
    for (size_t c = 0; c < term->width; c++) {
        double value = pe_cells_at(&from, row, first + c);
        pe_dtype_store(term->logits->real, &value, 1, out + c * term->item);
    }
}

/* q + v [n, d]. */
static struct pe_const_matrix queries_make(const struct term *term) {
    const struct pe_logits *logits = term->logits;
    unsigned char *out = term->scratch + term->parts.queries, *v = term->scratch + term->parts.sums;
    if (!has_cells(term->xl, CELLS_POSITION)) {
        return (struct pe_const_matrix){logits->q, logits->q_ld};
    }
    cells_read(term, CELLS_POSITION, logits->head, 0, v);
    for (size_t t = 0; t < logits->n; t++) {
        const unsigned char *q = (const unsigned char *)logits->q + t * logits->q_ld * term->item;
        pe_vector_add(logits->real, out + t * term->width * term->item, q, v, term->width);
    }
    return (struct pe_const_matrix){out, term->width};
}

/* The head's columns of w_r [d_model, d]. */
static struct pe_const_matrix matrix_make(const struct term *term) {
    const struct pe_tensor *w_r = term->xl->w_r.tensor;
    size_t first = term->logits->head * term->width;
    if (w_r && w_r->dtype == term->logits->real) {
        return (struct pe_const_matrix){(const unsigned char *)w_r->data + first * term->item, w_r->dim[1]};
    }
    unsigned char *out = term->scratch + term->parts.matrix;
    for (size_t r = 0; r < (size_t)term->xl->d_model && !pe_stop_asked(term->logits->stop); r++) {
        cells_read(term, CELLS_W_R, r, first, out + r * term->width * term->item);
    }
    return (struct pe_const_matrix){out, term->width};
}

/* z [d_model] becomes y, see the top. */
static void turn(enum pe_dtype real, void *z, size_t half, const double *sin, const double *cos) {
    for (size_t m = 0; m < half; m++) {
        double a, b;
        if (real == PE_DTYPE_F64) {
            double *x = z;
            a = x[m], b = x[half + m];
            x[m] = b * sin[m] - a * cos[m];
            x[half + m] = a * sin[m] + b * cos[m];
        } else {
            float *x = z;
            a = (double)x[m], b = (double)x[half + m];
            x[m] = (float)(b * sin[m] - a * cos[m]);
            x[half + m] = (float)(a * sin[m] + b * cos[m]);
        }
    }
}

/* y [n, d_model], of which each product with the sinusoid of a key is one of a distance. */
static void queries_turn(const struct term *term, struct pe_const_matrix queries) {
    const struct pe_logits *logits = term->logits;
    size_t d_model = (size_t)term->xl->d_model;
    unsigned char *out = term->scratch + term->parts.turned;
    double *angles = (double *)(void *)(term->scratch + term->parts.angles);
    struct pe_gemm gemm = {.dtype = logits->real,
                           .ordered = logits->ordered,
                           .stop = logits->stop,
                           .b_transposed = true,
                           .m = logits->n,
                           .n = d_model,
                           .k = term->width,
                           .alpha = 1,
                           .a = queries,
                           .b = matrix_make(term),
                           .c = {.data = out, .ld = d_model}};
    pe_gemm_run(&gemm);
    for (size_t t = 0; t < logits->n && !pe_stop_asked(logits->stop); t++) {
        angles_of(term->view, logits->query_positions[t], PE_DTYPE_F64, angles, angles + d_model / 2);
        turn(logits->real, out + t * d_model * term->item, d_model / 2, angles, angles + d_model / 2);
    }
}

/* (q + v).(W_R R) of keys first .. first+n-1 into sums [queries, TILE_LD]. */
static void distances_run(const struct term *term, struct pe_const_matrix queries, size_t first, size_t n) {
    const struct pe_logits *logits = term->logits;
    unsigned char *sums = term->scratch + term->parts.sums;
    size_t d_model = d_model_of(term->xl);
    if (term->xl->table.tensor) {
        const struct pe_band band = band_of(term->xl, logits->head, term->width);
        struct pe_band_block block = {.real = logits->real,
                                      .ordered = logits->ordered,
                                      .n_rows = logits->n,
                                      .n_columns = n,
                                      .rows = logits->query_positions,
                                      .columns = logits->key_positions + first,
                                      .scratch = term->scratch + term->parts.band,
                                      .stop = logits->stop};
        memset(sums, 0, logits->n * TILE_LD * term->item);
        pe_band_add(&band, &block, queries, logits->relation->scale,
                    (struct pe_gather_out){sums, TILE_LD, 1});
        return;
    }
    struct pe_gemm gemm = {
        .dtype = logits->real,
        .ordered = logits->ordered,
        .stop = logits->stop,
        .b_transposed = true,
        .m = logits->n,
        .n = n,
        .k = d_model,
        .alpha = logits->relation->scale,
        .a = {.data = term->scratch + term->parts.turned, .ld = d_model},
        .b = {.data = (const unsigned char *)logits->key_vectors + first * d_model * term->item,
              .ld = d_model},
        .c = {.data = sums, .ld = TILE_LD}};
    pe_gemm_run(&gemm);
}

/* u.k of keys first .. first+n-1, the same for all queries. */
static const unsigned char *content_run(const struct term *term, size_t first, size_t n) {
    const struct pe_logits *logits = term->logits;
    unsigned char *out = term->scratch + term->parts.content;
    if (!has_cells(term->xl, CELLS_CONTENT)) {
        return NULL;
    }
    struct pe_gemm gemm = {.dtype = logits->real,
                           .ordered = logits->ordered,
                           .stop = logits->stop,
                           .b_transposed = true,
                           .m = 1,
                           .n = n,
                           .k = term->width,
                           .alpha = logits->relation->scale,
                           .a = {.data = term->scratch + term->parts.u, .ld = term->width},
                           .b = {.data = (const unsigned char *)logits->k + first * logits->k_ld * term->item,
                                 .ld = logits->k_ld},
                           .c = {.data = out, .ld = n}};
    pe_gemm_run(&gemm);
    return out;
}

static void transformer_xl_term(const struct pe_plan_view *view, const struct pe_logits *logits) {
    const size_t width = logits->relation->width, keys = logits->relation->keys;
    const struct term term = {.view = view,
                              .xl = view->params,
                              .logits = logits,
                              .parts = parts_of(view, width, logits->real),
                              .width = width,
                              .item = pe_dtype_size(logits->real),
                              .scratch = logits->scratch};
    struct pe_const_matrix queries = queries_make(&term);
    if (!term.xl->table.tensor) {
        queries_turn(&term, queries);
    }
    if (has_cells(term.xl, CELLS_CONTENT)) {
        cells_read(&term, CELLS_CONTENT, logits->head, 0, term.scratch + term.parts.u);
    }
    for (size_t first = 0, n; first < keys && !pe_stop_asked(logits->stop); first += n) {
        n = keys - first < TILE ? keys - first : TILE;
        const unsigned char *content = content_run(&term, first, n);
        distances_run(&term, queries, first, n);
        for (size_t t = 0; t < logits->n; t++) {
            unsigned char *sums = term.scratch + term.parts.sums + t * TILE_LD * term.item;
            unsigned char *out = (unsigned char *)logits->out + (t * keys + first) * term.item;
            if (content) {
                pe_vector_add(logits->real, sums, sums, content, n);
            }
            pe_vector_add(logits->real, out, out, sums, n);
        }
    }
}

const struct pe_encoding pe_transformer_xl = {
    .info =
        {
            .type = "transformer_xl",
            .title = "Transformer-XL's relative attention",
            .doc =
                "Sinusoids of the distance, projected for each head, meet the query, and learned vectors of "
                "the head take the query's place beside it. Also XLNet.",
            .reference = "Dai et al. 2019, arXiv:1901.02860; Yang et al. 2019, arXiv:1906.08237",
            .family = PE_FAMILY_QUERY,
            .params_size = sizeof(struct transformer_xl),
            .fields = fields,
            .n_fields = PE_COUNT(fields),
        },
    .check = transformer_xl_check,
    .plan_bytes = transformer_xl_plan_bytes,
    .resolve = transformer_xl_resolve,
    .plan = transformer_xl_plan,
    .admit = transformer_xl_admit,
    .suits = transformer_xl_suits,
    .distances = transformer_xl_distances,
    .term = transformer_xl_term,
    .key_width = transformer_xl_key_width,
    .key_vectors = transformer_xl_key_vectors,
    .scratch_bytes = transformer_xl_scratch_bytes,
    .reach = transformer_xl_reach,
};
