/* SPDX-License-Identifier: MIT
 *
 * Transformer-XL's term, scale * (u.k_j + (q_i + v).(W_R R_{i-j})): u.k once for a block of queries, and the
 * rest as a band of rows W_R R, given or made for all distances, once for all blocks; or by turning W_R's
 * product with the queries (both: kernels/sines.h).
 */
#include "encodings/transformer_xl.h"

#include "core/pieces.h"
#include "kernels/band.h"
#include "kernels/vector.h"
#include "kernels/sines.h"

#include <math.h>

#define GATHER_NS 0.8 /* to move a product to its pair, with u.k */

_Static_assert(PE_LOGITS_ROWS <= PE_BAND_ROWS && PE_LOGITS_ROWS <= PE_SINES_ROWS,
               "a block of logits is one of a band, and of sines");

/* ---- What blocks share --------------------------------------------------------------------------------- */

/* Are rows R W_R of all distances given, or made? It pays where pairs are many more than distances. */
static bool has_rows(const struct transformer_xl *xl, const struct pe_relation *relation) {
    double distances = relation->most - relation->least + 1;
    return xl->table.tensor ||
           (relation->whole && relation->distance <= PE_POSITION_MAX &&
            distances * (double)relation->width <= (double)relation->queries * (double)relation->keys);
}

/* Of all heads asked for, side by side. */
struct shared {
    void *u, *v;              /* [1, slots*d] */
    void *made;               /* w_r [d_model, slots*d], unless it is read as it is */
    struct pe_const_matrix w; /* either */
    void *rows, *scratch;     /* R W_R [distances, slots*d], from the largest query - key down */
    void *key_sines;          /* or sinusoids [n, d_model] of the keys */
    double *query_sines;      /* and of the queries */
};

static size_t shared_cut(const struct transformer_xl *xl, const struct pe_relation *relation,
                         enum pe_dtype real, struct shared *out, void *memory) {
    const struct pe_tensor *w_r = xl->w_r.tensor;
    size_t columns = relation->n_slots * relation->width, d_model = pe_transformer_xl_d_model(xl),
           item = pe_dtype_size(real);
    bool as_it_is = w_r && w_r->dtype == real && !relation->slot;
    struct pe_pieces pieces = {memory, 0};
    pe_pieces_take(&pieces, 1, 1, sizeof *out); /* itself */
    out->u = pe_pieces_take(&pieces, 1, columns, item);
    out->v = pe_pieces_take(&pieces, 1, columns, item);
    if (xl->table.tensor) {
        return pieces.bytes;
    }
    out->made = as_it_is ? NULL : pe_pieces_take(&pieces, d_model, columns, item);
    out->w = (struct pe_const_matrix){as_it_is ? w_r->data : out->made, columns};
    if (has_rows(xl, relation)) {
        out->rows = pe_pieces_take(&pieces, (size_t)(relation->most - relation->least) + 1, columns, item);
        out->scratch = pe_pieces_take(&pieces, 1, pe_sines_table_bytes(d_model, columns, real), 1);
    } else {
        out->key_sines = pe_pieces_take(&pieces, relation->n_key_positions, d_model, item);
        out->query_sines = pe_pieces_take(&pieces, relation->n_query_positions, d_model, sizeof(double));
    }
    return pieces.bytes;
}

size_t pe_transformer_xl_shared_bytes(const struct pe_plan_view *view, const struct pe_relation *relation,
                                      enum pe_dtype real) {
    struct shared shared;
    return shared_cut(view->params, relation, real, &shared, NULL);
}

/* The heads' parts of u or v [H, d], or of w_r [d_model, H*d]. */
static void cells_share(const struct transformer_xl *xl, int cells, const struct pe_relation *relation,
                        enum pe_dtype real, unsigned char *out, const struct pe_stop *stop) {
    const struct pe_cells from = pe_transformer_xl_cells(xl, cells);
    bool matrix = cells == CELLS_W_R;
    size_t rows = matrix ? pe_transformer_xl_d_model(xl) : 1, slots = relation->n_slots, d = relation->width;
    for (size_t i = 0; i < rows * slots && !pe_stop_asked(stop); i++) {
        size_t head = pe_relation_head(relation, i % slots);
        pe_cells_row(&from, matrix ? i / slots : head, matrix ? head * d : 0, d, real,
                     out + i * d * pe_dtype_size(real));
    }
}

static void sines_share(const struct pe_plan_view *view, const struct pe_relation *relation,
                        enum pe_dtype real, const struct shared *is, const struct pe_stop *stop) {
    const struct pe_sines sines = {((const struct transformer_xl_plan *)view->data)->turns,
                                   pe_transformer_xl_d_model(view->params)};
    if (!is->rows) {
        pe_sines_fill(&sines, relation->key_positions, relation->n_key_positions, real, is->key_sines, stop);
        pe_sines_fill(&sines, relation->query_positions, relation->n_query_positions, PE_DTYPE_F64,
                      is->query_sines, stop);
        return;
    }
    const struct pe_sines_table table = {.sines = &sines,
                                         .real = real,
                                         .ordered = relation->ordered,
                                         .first = -(int64_t)relation->least,
                                         .rows = (size_t)(relation->most - relation->least) + 1,
                                         .columns = is->w.ld,
                                         .w = is->w,
                                         .out = is->rows,
                                         .scratch = is->scratch,
                                         .stop = stop};
    pe_sines_project(&table);
}

void pe_transformer_xl_share(const struct pe_plan_view *view, const struct pe_relation *relation,
                             enum pe_dtype real, void *memory, const struct pe_stop *stop) {
    const struct transformer_xl *xl = view->params;
    struct shared *is = memory;
    *is = (struct shared){0};
    shared_cut(xl, relation, real, is, memory);
    void *const out[] = {[CELLS_W_R] = is->made, [CELLS_CONTENT] = is->u, [CELLS_POSITION] = is->v};
    for (int cells = 0; cells < (int)PE_COUNT(out); cells++) {
        if (out[cells] && pe_transformer_xl_has(xl, cells)) {
            cells_share(xl, cells, relation, real, out[cells], stop);
        }
    }
    if (!xl->table.tensor) {
        sines_share(view, relation, real, is, stop);
    }
}

/* ---- Terms --------------------------------------------------------------------------------------------- */

/* Rows R W_R of a head as vectors of distances key - query; shared NULL: their shape alone. */
static struct pe_band band_of(const struct transformer_xl *xl, const struct pe_relation *relation,
                              enum pe_dtype real, size_t slot, const struct shared *shared) {
    const struct pe_tensor *table = xl->table.tensor;
    size_t d = relation->width, head = table ? pe_relation_head(relation, slot) : slot;
    enum pe_dtype dtype = table ? table->dtype : real;
    const unsigned char *data = table ? table->data : shared ? shared->rows : NULL;
    return (struct pe_band){
        .data = data ? data + head * d * pe_dtype_size(dtype) : NULL,
        .dtype = dtype,
        .ld = table ? pe_tensor_count(table) / table->dim[0] : relation->n_slots * d,
        .width = d,
        .least = table ? -xl->first_distance : (int64_t)relation->least,
        .most = table ? (int64_t)table->dim[0] - 1 - xl->first_distance : (int64_t)relation->most,
    };
}

/* The memory of a block: q + v [64, d], u.k [Tk], and that of the products. */
struct parts {
    void *queries, *content, *products;
};

static size_t parts_cut(const struct transformer_xl *xl, const struct pe_relation *relation,
                        enum pe_dtype real, struct parts *out, void *memory) {
    const struct pe_band band = band_of(xl, relation, real, 0, NULL);
    bool u = pe_transformer_xl_has(xl, CELLS_CONTENT), v = pe_transformer_xl_has(xl, CELLS_POSITION);
    size_t item = pe_dtype_size(real),
           bytes = has_rows(xl, relation) ? pe_band_scratch_bytes(&band, real, u)
                                          : pe_sines_scratch_bytes(pe_transformer_xl_d_model(xl), real);
    struct pe_pieces pieces = {memory, 0};
    out->queries = v ? pe_pieces_take(&pieces, PE_LOGITS_ROWS, relation->width, item) : NULL;
    out->content = u ? pe_pieces_take(&pieces, 1, relation->keys, item) : NULL;
    out->products = pe_pieces_take(&pieces, 1, bytes, 1);
    return pieces.bytes;
}

size_t pe_transformer_xl_scratch_bytes(const struct pe_plan_view *view, const struct pe_relation *relation,
                                       enum pe_dtype real) {
    struct parts parts;
    return parts_cut(view->params, relation, real, &parts, NULL);
}

double pe_transformer_xl_pair_cost_ns(const struct pe_plan_view *view, const struct pe_relation *relation) {
    const struct transformer_xl *xl = view->params;
    double d = (double)relation->width, d_model = (double)pe_transformer_xl_d_model(xl);
    double wide = has_rows(xl, relation) ? d : d_model * (1 + d / fmax(1, (double)relation->keys));
    return GATHER_NS + wide / PE_PRODUCTS_PER_NS;
}

/* q + v [n, d]. */
static struct pe_const_matrix queries_make(const struct pe_logits *logits, unsigned char *out) {
    size_t d = logits->relation->width, item = pe_dtype_size(logits->real);
    const unsigned char *v = ((const struct shared *)logits->shared)->v;
    if (!out) {
        return (struct pe_const_matrix){logits->q, logits->q_ld};
    }
    for (size_t t = 0; t < logits->n; t++) {
        const unsigned char *q = (const unsigned char *)logits->q + t * logits->q_ld * item;
        pe_vector_add(logits->real, out + t * d * item, q, v + logits->slot * d * item, d);
    }
    return (struct pe_const_matrix){out, d};
}

/* u.k of all keys, the same for all queries. */
static const void *content_make(const struct pe_logits *logits, void *out) {
    const unsigned char *u = ((const struct shared *)logits->shared)->u;
    size_t d = logits->relation->width;
    struct pe_gemm gemm = {.dtype = logits->real,
                           .ordered = logits->ordered,
                           .stop = logits->stop,
                           .b_transposed = true,
                           .m = 1,
                           .n = out ? logits->relation->keys : 0,
                           .k = d,
                           .alpha = logits->relation->scale,
                           .a = {u + logits->slot * d * pe_dtype_size(logits->real), d},
                           .b = {logits->k, logits->k_ld},
                           .c = {out, logits->relation->keys}};
    pe_gemm_run(&gemm);
    return out;
}

static void turned_add(const struct transformer_xl *xl, const struct pe_logits *logits,
                       const struct pe_band_term *term, void *scratch, struct pe_matrix out) {
    const struct pe_relation *relation = logits->relation;
    const struct shared *is = logits->shared;
    size_t d_model = pe_transformer_xl_d_model(xl), item = pe_dtype_size(logits->real);
    size_t query = (size_t)(logits->query_positions - relation->query_positions),
           key = (size_t)(logits->key_positions - relation->key_positions);
    const struct pe_sines_block block = {
        .real = logits->real,
        .ordered = logits->ordered,
        .n_rows = logits->n,
        .n_columns = relation->keys,
        .width = d_model,
        .d = relation->width,
        .x = term->rows,
        .w = {(const unsigned char *)is->w.data + logits->slot * relation->width * item, is->w.ld},
        .row_sines = is->query_sines + query * d_model,
        .column_sines = (const unsigned char *)is->key_sines + key * d_model * item,
        .constants = term->constants,
        .alpha = term->alpha,
        .scratch = scratch,
        .stop = logits->stop,
    };
    pe_sines_add(&block, out);
}

void pe_transformer_xl_term(const struct pe_plan_view *view, const struct pe_logits *logits) {
    const struct transformer_xl *xl = view->params;
    const struct pe_relation *relation = logits->relation;
    const struct pe_band band = band_of(xl, relation, logits->real, logits->slot, logits->shared);
    struct parts parts;
    parts_cut(xl, relation, logits->real, &parts, logits->scratch);
    const struct pe_band_term term = {.band = &band,
                                      .rows = queries_make(logits, parts.queries),
                                      .constants = content_make(logits, parts.content),
                                      .alpha = relation->scale};
    const struct pe_matrix out = {logits->out, relation->keys};
    if (!has_rows(xl, relation)) {
        turned_add(xl, logits, &term, parts.products, out);
        return;
    }
    const struct pe_band_block block = {.real = logits->real,
                                        .ordered = logits->ordered,
                                        .n_rows = logits->n,
                                        .n_columns = relation->keys,
                                        .rows = logits->query_positions,
                                        .columns = logits->key_positions,
                                        .scratch = parts.products,
                                        .stop = logits->stop};
    pe_band_add(&term, &block, out);
}
